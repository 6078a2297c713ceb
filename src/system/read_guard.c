// What a run does when its coupling does not hold: run.guard.
#include "system/read.h"

#include <string.h>

// In the order of the enumeration.
const char* const crdi_guard_actions[] = {"auto", "stop", "warn", "ladder", "off", NULL};
_Static_assert(COUNT(crdi_guard_actions) == CRD_GUARD_NONE + 2, "a name for each action");

static const crdi_key guard_keys[] = {
    {KEY("action", CHOICE, crd_guard_spec, action), .choices = crdi_guard_actions},
    {KEY("max_defect", NUMBER, crd_guard_spec, max_defect), .range = CRDI_POSITIVE},
    {KEY("max_energy", NUMBER, crd_guard_spec, max_energy), .range = CRDI_POSITIVE},
    {KEY("max_error", NUMBER, crd_guard_spec, max_error), .range = CRDI_POSITIVE},
};
const crdi_table crdi_guard_table = {"guard", guard_keys, COUNT(guard_keys)};

void crdi_flow_guard(crdi_flow* f, const crd_guard_spec* g)
{
    const crd_run_spec defaults = crdi_run_spec_defaults();
    crdi_flow_table(f, &crdi_guard_table, g, &defaults.guard);
}

static crd_status read_action(crdi_reader* r, const crdi_node* n, crd_guard_action* out)
{
    const char* const expected = "auto, stop, warn, ladder, off, or a mapping";
    const crd_status st = crdi_expect_kind(r, n, CRDI_SCALAR, expected);
    if (st < 0) { return st; }
    for (int i = 0; crdi_guard_actions[i]; i++) {
        if (strcmp(n->text, crdi_guard_actions[i]) == 0) {
            *out = (crd_guard_action)i;
            return CRD_OK;
        }
    }
    return crdi_read_fail(r, CRD_E_FORMAT, n->line, "'%s', expected %s", crdi_clip(n->text).text,
                          expected);
}

static crd_status check_guard(crdi_reader* r, const crdi_node* n, const crd_guard_spec* g)
{
    const bool limit = g->max_defect > 0 || g->max_energy > 0 || g->max_error > 0;
    if (g->action == CRD_GUARD_NONE && limit) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line,
                              "a limit, and 'action: off', with which nobody watches it: expected "
                              "another action, or no limit");
    }
    return CRD_OK;
}

crd_status crdi_read_guard(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_guard_spec g = *(crd_guard_spec*)out;
    crd_status st = n->kind == CRDI_MAPPING ? crdi_read_mapping(r, n, &crdi_guard_table, &g, NULL)
                                            : read_action(r, n, &g.action);
    if (st >= 0) { st = check_guard(r, n, &g); }
    if (st < 0) { return st; }
    g.place = (crd_place){r->file, n->line};
    *(crd_guard_spec*)out = g;
    return CRD_OK;
}
