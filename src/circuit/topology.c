// What no form can solve, found before anything is built.
#include "circuit/circuit.h"
#include "shared/base.h"
#include "shared/circuit_part.h"

#include <math.h>
#include <stdio.h>

crdi_place crdi_part_place(const crd_netlist* n, int32_t part)
{
    crdi_place at = {"circuit"};
    const crd_part* p = part >= 0 ? &n->parts[part] : NULL;
    if (p && n->files && p->file >= 0 && p->line > 0) {
        snprintf(at.text, sizeof at.text, "%.300s:%d", n->files[p->file], (int)p->line);
    }
    return at;
}

static crd_status bad(crd_context* ctx, const crd_netlist* n, int32_t part, const char* what)
{
    return crdi_fail(ctx, CRD_E_RANGE, "%s: %s: %s", crdi_part_place(n, part).text,
                     crdi_clip(crdi_part_name(n, part)).text, what);
}

static bool has_current(const crd_netlist* n, int32_t part)
{
    return part >= 0 && part < n->part_count && !crdi_part_kind_of(&n->parts[part])->couples;
}

static int model_count(const crd_netlist* n, const crd_part* p)
{
    switch (crdi_part_kind_of(p)->model) {
    case CRDI_MODEL_WAVE:
        return n->wave_count;
    case CRDI_MODEL_DIODE:
        return n->diode_count;
    case CRDI_MODEL_SWITCH:
        return n->switch_count;
    case CRDI_MODEL_EXPRESSION:
        return n->expression_count;
    case CRDI_MODEL_LAW:
        return p->index >= 0 ? n->expression_count : -1;
    default:
        return -1; // needs none
    }
}

static crd_status check_references(crd_context* ctx, const crd_netlist* n, int32_t i)
{
    const crd_part* p = &n->parts[i];
    const crdi_part_kind* k = crdi_part_kind_of(p);
    const int models = model_count(n, p);
    if (models >= 0 && (p->index < 0 || p->index >= models)) {
        return bad(ctx, n, i, "its model, waveform or expression does not exist");
    }
    if (k->couples) { return CRD_OK; }
    if (k->control == CRDI_CONTROL_CURRENT && !has_current(n, p->refs[0])) {
        return bad(ctx, n, i, "the part whose current controls it has none");
    }
    for (int e = 0; e < (k->control == CRDI_CONTROL_VOLTAGE ? 4 : 2); e++) {
        if (p->nodes[e] < 0 || p->nodes[e] >= n->node_count) {
            return bad(ctx, n, i, "it lacks a node");
        }
    }
    return CRD_OK;
}

static crd_status check_value(crd_context* ctx, const crd_netlist* n, int32_t i)
{
    const crd_part* p = &n->parts[i];
    const crdi_part_kind* k = crdi_part_kind_of(p);
    const char* name = crdi_part_name(n, i);
    const char* wrong = k->couples ? k->check(n, p) : NULL; // before its value
    if (wrong) { return bad(ctx, n, i, wrong); }
    if (k->has_value && !crdi_part_law(n, p) && !isfinite(p->value)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: %s = %g, expected a finite value",
                         crdi_part_place(n, i).text, crdi_clip(name).text, p->value);
    }
    if (k->couples && fabs(p->value) > 1) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: %s = %g, expected a factor of -1 to 1",
                         crdi_part_place(n, i).text, crdi_clip(name).text, p->value);
    }
    if (p->has_ic && !isfinite(p->ic)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: %s: ic = %g, expected a finite value",
                         crdi_part_place(n, i).text, crdi_clip(name).text, p->ic);
    }
    wrong = k->check ? k->check(n, p) : NULL;
    return wrong ? bad(ctx, n, i, wrong) : CRD_OK;
}

static crd_status check_expressions(crd_context* ctx, const crd_netlist* n)
{
    for (int k = 0; k < n->expression_count; k++) {
        const crd_use* uses;
        const int count = crd_expression_uses(n->expressions[k], &uses);
        for (int u = 0; u < count; u++) {
            if (uses[u].kind == CRD_USE_CURRENT && !has_current(n, uses[u].a)) {
                return crdi_fail(ctx, CRD_E_RANGE,
                                 "circuit: an expression uses the current of a part without one");
            }
        }
    }
    return CRD_OK;
}

// The parts on the way from b to a among those before `last`, in words; few sweeps, as the message
// need not be complete.
static crd_status loop_found(crd_context* ctx, const crd_netlist* n, int32_t last, int32_t* from)
{
    const int32_t a = n->parts[last].nodes[0], b = n->parts[last].nodes[1];
    for (int32_t i = 0; i < n->node_count; i++) {
        from[i] = -1;
    }
    from[a] = last;
    for (int sweep = 0; sweep < 64 && from[b] < 0; sweep++) {
        for (int32_t i = 0; i < last; i++) {
            if (crdi_part_fixes_what(&n->parts[i]) != CRDI_FIXES_VOLTAGE) { continue; }
            const int32_t x = n->parts[i].nodes[0], y = n->parts[i].nodes[1];
            if (from[x] >= 0 && from[y] < 0) { from[y] = i; }
            if (from[y] >= 0 && from[x] < 0) { from[x] = i; }
        }
    }
    crd_text names;
    crd_text_init(&names, ctx);
    int32_t at = b;
    for (int k = 0; k < 8 && a != b && from[at] >= 0 && from[at] != last; k++) {
        const int32_t i = from[at];
        crdi_text_add(&names, ", %s", crdi_clip(crdi_part_name(n, i)).text);
        at = n->parts[i].nodes[0] == at ? n->parts[i].nodes[1] : n->parts[i].nodes[0];
    }
    const crd_status st =
        names.failed
            ? CRD_E_MEMORY
            : crdi_fail(ctx, CRD_E_RANGE,
                        "%s: a loop of voltage sources at nodes %s and %s: %s%s; a resistance "
                        "in it would do",
                        crdi_part_place(n, last).text, crdi_clip(n->nodes[a]).text,
                        crdi_clip(n->nodes[b]).text, crdi_clip(crdi_part_name(n, last)).text,
                        names.data ? names.data : "");
    crd_text_clear(&names);
    return st;
}

static int32_t part_at(const crd_netlist* n, int32_t node) // the first one; -1
{
    for (int32_t i = 0; i < n->part_count; i++) {
        if (n->parts[i].nodes[0] == node || n->parts[i].nodes[1] == node) { return i; }
    }
    return -1;
}

static crd_status floating_found(crd_context* ctx, const crd_netlist* n, int32_t* tree,
                                 int32_t node)
{
    const int32_t root = crdi_tree_root(tree, node);
    int32_t others = -1;
    for (int32_t i = 0; i < n->node_count; i++) {
        others += crdi_tree_root(tree, i) == root;
    }
    char more[48] = "";
    if (others > 0) { snprintf(more, sizeof more, " (and %d more)", (int)others); }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (crdi_part_fixes_what(p) == CRDI_FIXES_CURRENT &&
            (crdi_tree_root(tree, p->nodes[0]) == root) !=
                (crdi_tree_root(tree, p->nodes[1]) == root)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "%s: a cutset of current sources: only %s and the like lead to "
                             "node %s%s; a resistance to ground would do",
                             crdi_part_place(n, i).text, crdi_clip(crdi_part_name(n, i)).text,
                             crdi_clip(n->nodes[node]).text, more);
        }
    }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "%s: node %s%s floats: nothing leads to ground, which is node 0; a resistance "
                     "would do",
                     crdi_part_place(n, part_at(n, node)).text, crdi_clip(n->nodes[node]).text,
                     more);
}

// A law that depends on the voltage between nodes holds them together.
static void join_uses(int32_t* tree, const crd_expression* e)
{
    const crd_use* uses;
    const int count = crd_expression_uses(e, &uses);
    for (int k = 0; k < count; k++) {
        if (uses[k].kind == CRD_USE_NODE) { crdi_tree_join(tree, uses[k].a, 0); }
        if (uses[k].kind == CRD_USE_PAIR) { crdi_tree_join(tree, uses[k].a, uses[k].b); }
    }
}

// Nodes that nothing joins to ground may all be raised by the same voltage, and no law notices.
static void join_all(int32_t* tree, const crd_netlist* n)
{
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (!crdi_part_kind_of(p)->couples && crdi_part_fixes_what(p) != CRDI_FIXES_CURRENT) {
            crdi_tree_join(tree, p->nodes[0], p->nodes[1]);
        }
        const crdi_part_kind* k = crdi_part_kind_of(p);
        if (k->control == CRDI_CONTROL_VOLTAGE && !k->switches) {
            crdi_tree_join(tree, p->nodes[2], p->nodes[3]);
        }
        const crd_expression* law = crdi_part_law(n, p);
        if (law) { join_uses(tree, law); }
    }
}

static crd_status check_connections(crd_context* ctx, const crd_netlist* n, int32_t* parent,
                                    int32_t* from)
{
    for (int32_t i = 0; i < n->node_count; i++) {
        parent[i] = i;
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (crdi_part_fixes_what(p) == CRDI_FIXES_VOLTAGE &&
            !crdi_tree_join(parent, p->nodes[0], p->nodes[1])) {
            return loop_found(ctx, n, i, from);
        }
    }
    join_all(parent, n);
    for (int32_t i = 1; i < n->node_count; i++) {
        if (crdi_tree_root(parent, i) != 0) { return floating_found(ctx, n, parent, i); }
    }
    return CRD_OK;
}

crd_status crdi_circuit_check(crd_context* ctx, const crd_netlist* n)
{
    crd_status st = CRD_OK;
    if (n->part_count < 1 || n->node_count < 2) {
        return crdi_fail(ctx, CRD_E_RANGE, "circuit: the netlist has no parts");
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        st = check_references(ctx, n, i);
        if (st == CRD_OK) { st = check_value(ctx, n, i); }
        if (st < 0) { return st; }
    }
    st = check_expressions(ctx, n);
    if (st < 0) { return st; }
    int32_t* room = crdi_new_array(ctx, 2 * (size_t)n->node_count, sizeof *room);
    if (!room) { return CRD_E_MEMORY; }
    st = check_connections(ctx, n, room, room + n->node_count);
    crd_free(ctx, room);
    return st;
}

// ---- Gauss methods -----------------------------------------------------------------------------

static bool has_corners(const crd_netlist* n, const crd_part* p)
{
    if (!crdi_part_is_source(p)) { return false; }
    const crd_waveform* w = &n->waves[p->index];
    return w->kind == CRD_WAVE_INPUT || isfinite(crd_waveform_next(w, 0)); // after the beginning
}

static crd_status not_smooth(crd_context* ctx, const crd_netlist* n, int32_t part, const char* what)
{
    return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                     "%s: %s %s, which Gauss methods cannot follow; TRBDF2, BDF2 or BDF3 can",
                     crdi_part_place(n, part).text, crdi_clip(crdi_part_name(n, part)).text, what);
}

// Loops of a source with corners and capacitors; then cutsets of one and inductors.
static crd_status check_corners(crd_context* ctx, const crd_netlist* n, int32_t* tree, bool loops)
{
    for (int32_t i = 0; i < n->node_count; i++) {
        tree[i] = i;
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const bool fixed = crdi_part_fixes_what(p) == CRDI_FIXES_VOLTAGE && !has_corners(n, p);
        const crdi_part_kind* k = crdi_part_kind_of(p);
        const bool firm = !k->couples && k->stores != CRDI_STORES_CURRENT &&
                          crdi_part_fixes_what(p) != CRDI_FIXES_CURRENT;
        if (loops ? fixed || k->stores == CRDI_STORES_VOLTAGE : firm) {
            crdi_tree_join(tree, p->nodes[0], p->nodes[1]);
        }
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (!has_corners(n, p)) { continue; }
        const bool voltage = crdi_part_kind_of(p)->fixes == CRDI_FIXES_VOLTAGE;
        if (loops && voltage && !crdi_tree_join(tree, p->nodes[0], p->nodes[1])) {
            return not_smooth(ctx, n, i, "has corners and lies across capacitors alone");
        }
        if (!loops && !voltage &&
            crdi_tree_root(tree, p->nodes[0]) != crdi_tree_root(tree, p->nodes[1])) {
            return not_smooth(ctx, n, i, "has corners and leads to inductors alone");
        }
    }
    return CRD_OK;
}

crd_status crdi_circuit_smooth(crd_context* ctx, const crd_netlist* n)
{
    for (int32_t i = 0; i < n->part_count; i++) {
        if (crdi_part_has_charge(n, &n->parts[i])) {
            return not_smooth(ctx, n, i, "has a model with cjo or tt");
        }
    }
    int32_t* tree = crdi_new_array(ctx, (size_t)n->node_count, sizeof *tree);
    if (!tree) { return CRD_E_MEMORY; }
    crd_status st = check_corners(ctx, n, tree, true);
    if (st == CRD_OK) { st = check_corners(ctx, n, tree, false); }
    crd_free(ctx, tree);
    return st;
}
