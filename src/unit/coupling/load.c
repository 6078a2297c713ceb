// The coupling model of an FMU: the element is a file of its resources.
#include <stdio.h>

#include "unit/coupling/coupling_model.h"

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
    CRD_TRY(crdi_file_read(
        ctx, path, &(crdi_file_need){.what = "a coupling element", .most = 16 << 20}, &json));
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
