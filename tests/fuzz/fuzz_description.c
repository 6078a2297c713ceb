// modules: fmi base
#include "cardan/fmi.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_fmu* f = NULL;
    if (crd_fmu_parse(ctx, (const char*)data, size, "fuzz.xml", &f) == CRD_OK) {
        // What was accepted keeps its own promises.
        const crd_fmu_description* d = crd_fmu_describe(f);
        for (int32_t i = 0; i < d->variable_count; i++) {
            const crd_variable* v = &d->variables[i];
            // an alias belongs to what is none, in FMI 3 to what came before
            const int32_t a = v->alias_of;
            if (a >= d->variable_count || (a >= 0 && d->variables[a].alias_of >= 0) ||
                (d->version == CRD_FMI_3 && a >= i)) {
                __builtin_trap();
            }
            if (crd_fmu_find(f, v->name) != i || v->unit_index >= d->unit_count ||
                v->type_index >= d->enumeration_count || v->type >= CRD_TYPE_COUNT ||
                v->variability >= CRD_VARIABILITY_COUNT || v->initial >= CRD_INITIAL_COUNT ||
                (v->rank > 0) != (d->axis_first[i] >= 0)) {
                __builtin_trap();
            }
        }
        const crd_dependencies* lists[] = {&d->outputs, &d->initial_unknowns};
        for (int k = 0; k < 2; k++) {
            for (int32_t r = 0; r < lists[k]->first[lists[k]->count]; r++) {
                if (lists[k]->known[r] < 0 || lists[k]->known[r] >= d->variable_count) {
                    __builtin_trap();
                }
            }
        }
    }
    crd_fmu_close(f);
    crd_context_destroy(ctx);
    return 0;
}
