// Defects as signals of the record: "first.v2.defect" is the RMS of the defect of that input over
// the last step. Nobody gets them who does not ask: a pattern has to end in ".defect".
#include "master/plan/plan.h"

#include <stdio.h>
#include <string.h>

static const char ending[] = ".defect";

static bool asks_for_defects(const char* pattern)
{
    const size_t n = strlen(pattern), k = sizeof ending - 1;
    return n >= k && strcmp(pattern + n - k, ending) == 0;
}

// In a single FMU, names go without the unit.
static bool is_asked_for(const crdi_plan* plan, const crdi_end* e, char* name, size_t size)
{
    const crd_results_spec* r = &plan->sys->results;
    const crd_variable* v = crdi_variable_at(plan, e);
    char index[16] = "";
    int asking = 0;
    for (int i = 0; i < r->pattern_count; i++) {
        asking += asks_for_defects(r->patterns[i]);
    }
    if (!asking) { return false; }
    if (v->rank > 0) { snprintf(index, sizeof index, "[%d]", e->element + 1); }
    snprintf(name, size, "%s%s%s%s%s", plan->sys->single ? "" : plan->members[e->member].unit->name,
             plan->sys->single ? "" : ".", v->name, index, ending);
    for (int i = 0; i < r->pattern_count; i++) {
        if (asks_for_defects(r->patterns[i]) && crdi_glob(r->patterns[i], name)) { return true; }
    }
    return false;
}

bool crdi_defect_is_recorded(const crdi_plan* plan, const crdi_connection* k)
{
    char name[1024];
    return is_asked_for(plan, &k->to, name, sizeof name);
}

crd_status crdi_defect_offer(const crdi_plan* plan, const crdi_prediction* f,
                             const crdi_offer** out)
{
    char name[1024];
    *out = NULL;
    if (!is_asked_for(plan, &f->of->to, name, sizeof name)) { return CRD_OK; }
    crdi_offer* x = crdi_arena_new(plan->arena, 1, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    *x = (crdi_offer){.name = crdi_arena_text(plan->arena, name, strlen(name)),
                      .from = &f->rms,
                      .type = CRD_FLOAT64,
                      .unit = crdi_variable_at(plan, &f->of->to)->unit,
                      .description = "RMS of input minus output over the last step"};
    *out = x;
    return x->name ? CRD_OK : CRD_E_MEMORY;
}
