// FMUs that several units share, by path, and the session of DCP slaves. They live in a context of
// their own, as the units come and go.
#include <stdlib.h>
#include <string.h>

#include "cardan/fmi.h"
#include "shared/fmi_build.h"
#include "unit/dcp/dcp_unit.h"
#include "unit/unit.h"

typedef struct {
    char* path;   // a way to write it
    crd_fmu* fmu; // NULL: that of an entry before it
} entry;

struct crd_unit_store {
    crd_context* parent;
    crd_context* ctx;
    crd_map index; // path -> entry
    entry* entries;
    size_t capacity;
    int32_t count;
    crdi_session* session;  // NULL: no DCP slave
    crdi_session* sessions; // all of them, one behind the other
    crd_unit_store* lender; // NULL: all FMUs are opened here
    crd_isolation isolation;
    struct crdi_worker* workers;
};

crd_status crd_unit_store_create(crd_context* ctx, crd_unit_store** out)
{
    crd_unit_store* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->parent = ctx;
    s->ctx = crdi_context_child(ctx);
    crdi_map_init(&s->index, s->ctx);
    if (!s->ctx) {
        crd_unit_store_destroy(s);
        return crdi_fail(ctx, CRD_E_MEMORY, "out of memory");
    }
    *out = s;
    return CRD_OK;
}

void crd_unit_store_destroy(crd_unit_store* s)
{
    if (!s) { return; }
    crdi_session_destroy(s->session);
    for (int32_t i = 0; i < s->count; i++) {
        crd_fmu_close(s->entries[i].fmu);
        crd_free(s->ctx, s->entries[i].path);
    }
    crdi_map_clear(&s->index);
    if (s->ctx) { crd_free(s->ctx, s->entries); }
    crd_context_destroy(s->ctx);
    crd_free(s->parent, s);
}

// Another name for what the index knows already, or for a new one.
static crd_status store_add(crd_unit_store* s, const char* path, crd_fmu* fmu, int32_t value)
{
    entry* entries =
        crdi_grow(s->ctx, s->entries, &s->capacity, (size_t)s->count + 1, sizeof *entries);
    if (!entries) { return CRD_E_MEMORY; }
    s->entries = entries;
    char* own = crdi_strdup(s->ctx, path);
    if (!own) { return CRD_E_MEMORY; }
    const crd_status st = crdi_map_add(&s->index, own, value, NULL);
    if (st < 0) {
        crd_free(s->ctx, own);
        return st;
    }
    entries[s->count++] = (entry){.path = own, .fmu = fmu};
    return CRD_OK;
}

crd_status crdi_unit_store_fmu(crd_unit_store* s, crd_context* ctx, const char* path, crd_fmu** out)
{
    if (s->lender) { return crdi_unit_store_fmu(s->lender, ctx, path, out); }
    crd_status st = CRD_OK;
    crd_fmu* fmu = NULL;
    int32_t known = crdi_map_find(&s->index, path);
    char* real = known < 0 ? realpath(path, NULL) : NULL; // NULL: opening it says what is wrong
    if (known < 0 && real) {
        known = crdi_map_find(&s->index, real);
        if (known >= 0) { CRD_TRY(store_add(s, path, NULL, known)); }
    }
    if (known < 0) {
        known = s->count;
        CRD_TRY(crd_fmu_open(s->ctx, path, NULL, &fmu));
        CRD_TRY(store_add(s, path, fmu, known));
        fmu = NULL; // the store's
        if (real && strcmp(real, path) != 0) { CRD_TRY(store_add(s, real, NULL, known)); }
    }
    *out = s->entries[known].fmu;
fail:
    free(real);
    crd_fmu_close(fmu);
    return st < 0 ? crdi_fail(ctx, st, "%s", crd_error_text(s->ctx)) : CRD_OK;
}

bool crdi_unit_store_lingers(const crd_unit_store* s)
{
    bool any = false;
    for (int32_t i = 0; i < s->count; i++) {
        any = any || (s->entries[i].fmu && crdi_fmu_lingers(s->entries[i].fmu));
    }
    return any;
}

crdi_session** crdi_unit_store_session(crd_unit_store* s)
{
    return &s->session;
}

crdi_session** crdi_unit_store_sessions(crd_unit_store* s)
{
    return &s->sessions;
}

crd_context* crdi_unit_store_context(crd_unit_store* s)
{
    return s->ctx;
}

struct crdi_worker** crdi_unit_store_workers(crd_unit_store* s)
{
    return &s->workers;
}

crd_isolation crdi_unit_store_isolation(const crd_unit_store* s)
{
    return s->isolation;
}

void crdi_unit_store_isolate(crd_unit_store* s, crd_isolation isolation)
{
    s->isolation = isolation;
}

void crdi_unit_store_borrow(crd_unit_store* s, crd_unit_store* lender)
{
    s->lender = lender;
}
