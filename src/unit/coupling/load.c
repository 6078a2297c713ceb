// The coupling model of an FMU: the element is a file of its resources.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "unit/coupling/coupling_model.h"

enum { MOST = 16 << 20 }; // bytes of a description

static crd_status read_file(crd_context* ctx, const char* path, crd_text* out)
{
    FILE* f = fopen(path, "rb");
    if (!f) { return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno)); }
    char buffer[4096];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0 && out->length <= MOST) {
        crdi_text_put(out, buffer, n);
    }
    const bool torn = ferror(f) != 0;
    (void)fclose(f);
    if (torn) { return crdi_fail(ctx, CRD_E_IO, "%s: reading failed", path); }
    if (out->failed) { return CRD_E_MEMORY; }
    if (out->length > MOST || !out->data) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s: %zu bytes, expected an element of at most %d",
                         path, out->length, (int)MOST);
    }
    return CRD_OK;
}

const crd_model* crd_coupling_model_load(const char* folder, char* message, size_t room)
{
    crd_status st = CRD_OK;
    const crd_model* model = NULL;
    crd_text json = {0};
    snprintf(message, room, "out of memory");
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return NULL; }
    crd_text_init(&json, ctx);
    char* path = crdi_format(ctx, "%s/element.json", folder);
    CRD_TRY(path ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(read_file(ctx, path, &json));
    CRD_TRY(
        crd_coupling_model_create(ctx, json.data, json.length, "resources/element.json", &model));
    ((crdi_coupling_model*)model->user)->owns_context = true;
fail:
    if (st < 0) { snprintf(message, room, "%s", crd_error_text(ctx)); }
    crd_text_clear(&json);
    crd_free(ctx, path);
    if (st < 0) { crd_context_destroy(ctx); }
    return model;
}
