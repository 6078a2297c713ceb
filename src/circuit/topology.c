// What no form can solve, found before anything is built.
#include "circuit/circuit.h"
#include "shared/base.h"

#include <math.h>
#include <stdio.h>

typedef struct sets { // union-find over the nodes
    int32_t* parent;
} sets;

static int32_t find(const sets* s, int32_t a)
{
    while (s->parent[a] != a) {
        s->parent[a] = s->parent[s->parent[a]]; // halve the path
        a = s->parent[a];
    }
    return a;
}

static bool join(const sets* s, int32_t a, int32_t b) // false: they were joined already
{
    const int32_t x = find(s, a), y = find(s, b);
    if (x == y) { return false; }
    s->parent[x > y ? x : y] = x > y ? y : x; // ground, 0, stays on top
    return true;
}

static bool has_law(const crd_part* p)
{
    return p->kind == CRD_PART_RESISTOR && p->index >= 0;
}

// Its voltage does not depend on its own current.
static bool is_voltage_defined(const crd_part* p)
{
    switch (p->kind) {
    case CRD_PART_VOLTAGE:
    case CRD_PART_VCVS:
    case CRD_PART_CCVS:
    case CRD_PART_B_VOLTAGE:
        return true;
    case CRD_PART_RESISTOR:
        return p->value == 0 && !has_law(p);
    case CRD_PART_INDUCTOR:
        return p->value == 0;
    default:
        return false;
    }
}

// Its current does not depend on its own voltage.
static bool is_current_defined(const crd_part* p)
{
    switch (p->kind) {
    case CRD_PART_CURRENT:
    case CRD_PART_CCCS:
    case CRD_PART_VCCS:
    case CRD_PART_B_CURRENT:
        return true;
    case CRD_PART_CAPACITOR:
        return p->value == 0;
    default:
        return false;
    }
}

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
    return part >= 0 && part < n->part_count && n->parts[part].kind != CRD_PART_MUTUAL;
}

static int model_count(const crd_netlist* n, const crd_part* p)
{
    switch (p->kind) {
    case CRD_PART_VOLTAGE:
    case CRD_PART_CURRENT:
        return n->wave_count;
    case CRD_PART_DIODE:
        return n->diode_count;
    case CRD_PART_SWITCH:
    case CRD_PART_CURRENT_SWITCH:
        return n->switch_count;
    case CRD_PART_B_VOLTAGE:
    case CRD_PART_B_CURRENT:
        return n->expression_count;
    default:
        return has_law(p) ? n->expression_count : -1; // -1: needs none
    }
}

static crd_status check_references(crd_context* ctx, const crd_netlist* n, int32_t i)
{
    const crd_part* p = &n->parts[i];
    const int models = model_count(n, p);
    if (models >= 0 && (p->index < 0 || p->index >= models)) {
        return bad(ctx, n, i, "its model, waveform or expression does not exist");
    }
    if (p->kind == CRD_PART_MUTUAL) {
        for (int k = 0; k < 2; k++) {
            const int32_t r = p->refs[k];
            if (r < 0 || r >= n->part_count || n->parts[r].kind != CRD_PART_INDUCTOR) {
                return bad(ctx, n, i, "it has to couple two inductors");
            }
        }
        const bool wound = n->parts[p->refs[0]].value > 0 && n->parts[p->refs[1]].value > 0;
        return p->refs[0] == p->refs[1] ? bad(ctx, n, i, "it couples an inductor with itself")
               : !wound ? bad(ctx, n, i, "the inductors that it couples have to be > 0")
                        : CRD_OK;
    }
    const bool controlled_by_current =
        p->kind == CRD_PART_CCCS || p->kind == CRD_PART_CCVS || p->kind == CRD_PART_CURRENT_SWITCH;
    if (controlled_by_current && !has_current(n, p->refs[0])) {
        return bad(ctx, n, i, "the part whose current controls it has none");
    }
    const bool controlled_by_voltage =
        p->kind == CRD_PART_VCCS || p->kind == CRD_PART_VCVS || p->kind == CRD_PART_SWITCH;
    for (int k = 0; k < (controlled_by_voltage ? 4 : 2); k++) {
        if (p->nodes[k] < 0 || p->nodes[k] >= n->node_count) {
            return bad(ctx, n, i, "it lacks a node");
        }
    }
    return CRD_OK;
}

static crd_status check_value(crd_context* ctx, const crd_netlist* n, int32_t i)
{
    const crd_part* p = &n->parts[i];
    const char* name = crdi_part_name(n, i);
    const bool plain = p->kind == CRD_PART_CAPACITOR || p->kind == CRD_PART_INDUCTOR ||
                       p->kind == CRD_PART_MUTUAL || (p->kind == CRD_PART_RESISTOR && !has_law(p));
    const bool gain = p->kind >= CRD_PART_VCVS && p->kind <= CRD_PART_CCVS;
    if ((plain || gain) && !isfinite(p->value)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: %s = %g, expected a finite value",
                         crdi_part_place(n, i).text, crdi_clip(name).text, p->value);
    }
    if (p->kind == CRD_PART_MUTUAL && fabs(p->value) > 1) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: %s = %g, expected a factor of -1 to 1",
                         crdi_part_place(n, i).text, crdi_clip(name).text, p->value);
    }
    if (p->has_ic && !isfinite(p->ic)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: %s: ic = %g, expected a finite value",
                         crdi_part_place(n, i).text, crdi_clip(name).text, p->ic);
    }
    if (p->kind == CRD_PART_DIODE) {
        const crd_diode_model* d = &n->diodes[p->index];
        if (!(d->is > 0 && d->n > 0 && d->vt > 0 && d->rs >= 0 && d->cjo >= 0 && d->tt >= 0)) {
            return bad(ctx, n, i, "its model needs is, n > 0 and rs, cjo, tt >= 0");
        }
        if (d->cjo > 0 && !(d->vj > 0 && d->m >= 0 && d->m < 1)) {
            return bad(ctx, n, i, "its model needs vj > 0 and 0 <= m < 1");
        }
    }
    if (p->kind == CRD_PART_SWITCH || p->kind == CRD_PART_CURRENT_SWITCH) {
        const crd_switch_model* s = &n->switches[p->index];
        if (!(s->on > 0 && s->off > 0 && isfinite(s->on) && isfinite(s->off))) {
            return bad(ctx, n, i, "its model needs resistances on, off > 0");
        }
    }
    return CRD_OK;
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
            if (!is_voltage_defined(&n->parts[i])) { continue; }
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

static crd_status floating_found(crd_context* ctx, const crd_netlist* n, const sets* s,
                                 int32_t node)
{
    const int32_t root = find(s, node);
    int32_t others = -1;
    for (int32_t i = 0; i < n->node_count; i++) {
        others += find(s, i) == root;
    }
    char more[48] = "";
    if (others > 0) { snprintf(more, sizeof more, " (and %d more)", (int)others); }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (is_current_defined(p) &&
            (find(s, p->nodes[0]) == root) != (find(s, p->nodes[1]) == root)) {
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
static void join_uses(const sets* s, const crd_expression* e)
{
    const crd_use* uses;
    const int count = crd_expression_uses(e, &uses);
    for (int k = 0; k < count; k++) {
        if (uses[k].kind == CRD_USE_NODE) { join(s, uses[k].a, 0); }
        if (uses[k].kind == CRD_USE_PAIR) { join(s, uses[k].a, uses[k].b); }
    }
}

// Nodes that nothing joins to ground may all be raised by the same voltage, and no law notices.
static void join_all(const sets* s, const crd_netlist* n)
{
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (p->kind != CRD_PART_MUTUAL && !is_current_defined(p)) {
            join(s, p->nodes[0], p->nodes[1]);
        }
        if (p->kind == CRD_PART_VCVS || p->kind == CRD_PART_VCCS) {
            join(s, p->nodes[2], p->nodes[3]);
        }
        if (has_law(p) || p->kind == CRD_PART_B_VOLTAGE || p->kind == CRD_PART_B_CURRENT) {
            join_uses(s, n->expressions[p->index]);
        }
    }
}

static crd_status check_connections(crd_context* ctx, const crd_netlist* n, int32_t* parent,
                                    int32_t* from)
{
    const sets s = {parent};
    for (int32_t i = 0; i < n->node_count; i++) {
        parent[i] = i;
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (is_voltage_defined(p) && !join(&s, p->nodes[0], p->nodes[1])) {
            return loop_found(ctx, n, i, from);
        }
    }
    join_all(&s, n);
    for (int32_t i = 1; i < n->node_count; i++) {
        if (find(&s, i) != 0) { return floating_found(ctx, n, &s, i); }
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
    if (p->kind != CRD_PART_VOLTAGE && p->kind != CRD_PART_CURRENT) { return false; }
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
static crd_status check_corners(crd_context* ctx, const crd_netlist* n, const sets* s, bool loops)
{
    for (int32_t i = 0; i < n->node_count; i++) {
        s->parent[i] = i;
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const bool fixed = is_voltage_defined(p) && !has_corners(n, p);
        const bool firm =
            p->kind != CRD_PART_MUTUAL && p->kind != CRD_PART_INDUCTOR && !is_current_defined(p);
        if (loops ? fixed || p->kind == CRD_PART_CAPACITOR : firm) {
            join(s, p->nodes[0], p->nodes[1]);
        }
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (!has_corners(n, p)) { continue; }
        if (loops && p->kind == CRD_PART_VOLTAGE && !join(s, p->nodes[0], p->nodes[1])) {
            return not_smooth(ctx, n, i, "has corners and lies across capacitors alone");
        }
        if (!loops && p->kind == CRD_PART_CURRENT && find(s, p->nodes[0]) != find(s, p->nodes[1])) {
            return not_smooth(ctx, n, i, "has corners and leads to inductors alone");
        }
    }
    return CRD_OK;
}

crd_status crdi_circuit_smooth(crd_context* ctx, const crd_netlist* n)
{
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (p->kind == CRD_PART_DIODE &&
            (n->diodes[p->index].cjo > 0 || n->diodes[p->index].tt > 0)) {
            return not_smooth(ctx, n, i, "has a model with cjo or tt");
        }
    }
    const sets s = {crdi_new_array(ctx, (size_t)n->node_count, sizeof *s.parent)};
    if (!s.parent) { return CRD_E_MEMORY; }
    crd_status st = check_corners(ctx, n, &s, true);
    if (st == CRD_OK) { st = check_corners(ctx, n, &s, false); }
    crd_free(ctx, s.parent);
    return st;
}
