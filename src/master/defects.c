// Defects as signals of the record: "first.v2.defect" is the RMS of the defect of that input over
// the last step. Nobody gets them who does not ask: a pattern has to end in ".defect".
#include "master/master.h"

#include <stdio.h>
#include <string.h>

static const char ending[] = ".defect";

static bool asks_for_defects(const char* pattern)
{
    const size_t n = strlen(pattern), k = sizeof ending - 1;
    return n >= k && strcmp(pattern + n - k, ending) == 0;
}

// In a single FMU, names go without the unit.
static const char* defect_name(const crd_master* m, int member, int32_t variable, int32_t element,
                               char* out, size_t size)
{
    const crd_unit* u = m->members[member].unit;
    const crd_variable* v = &u->info.variables[variable];
    const bool single = m->sys->single;
    if (v->rank == 0) {
        snprintf(out, size, "%s%s%s%s", single ? "" : u->name, single ? "" : ".", v->name, ending);
    } else {
        snprintf(out, size, "%s%s%s[%d]%s", single ? "" : u->name, single ? "" : ".", v->name,
                 element + 1, ending);
    }
    return out;
}

static bool is_asked_for(const crd_master* m, const char* name)
{
    const crd_results_spec* r = &m->sys->results;
    for (int i = 0; i < r->pattern_count; i++) {
        if (asks_for_defects(r->patterns[i]) && crdi_glob(r->patterns[i], name)) { return true; }
    }
    return false;
}

bool crdi_link_records_defect(const crd_master* m, const crdi_link* k)
{
    char name[1024];
    return m->sys->results.pattern_count > 0 &&
           is_asked_for(
               m, defect_name(m, k->to_member, k->to_variable, k->to_element, name, sizeof name));
}

crd_status crdi_flow_offer(crd_master* m, const crdi_flow* f, const crdi_coupled** out)
{
    char name[1024];
    *out = NULL;
    defect_name(m, f->target, f->to_variable, f->to_element, name, sizeof name);
    if (!is_asked_for(m, name)) { return CRD_OK; }
    crdi_coupled* x = crdi_arena_new(&m->arena, 1, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    *x = (crdi_coupled){.name = crdi_arena_text(&m->arena, name, strlen(name)),
                        .from = &f->rms,
                        .type = CRD_FLOAT64,
                        .unit = m->members[f->target].unit->info.variables[f->to_variable].unit,
                        .description = "RMS of input minus output over the last step"};
    *out = x;
    return x->name ? CRD_OK : CRD_E_MEMORY;
}
