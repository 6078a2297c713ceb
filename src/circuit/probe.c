// What is looked at in a circuit: probes by name, and their values.
#include "cardan/circuit.h"
#include "shared/base.h"
#include "shared/circuit_part.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum {
    PROBES_UNASKED = 200, // of node voltages, when nobody said which
    PROBES_MOST = 100000,
    NAMES_SEARCHED = 20000 // for one that was meant
};

typedef struct picker {
    crd_context* ctx;
    const crd_netlist* n;
    crd_arena* arena;
    crd_circuit_probe* all; // of the context: it grows
    int count;
    bool *thermal, *nodes, *parts, *outputs; // thermal nodes; what is chosen already
    size_t capacity;
} picker;

static bool* thermal_nodes(crd_arena* a, const crd_netlist* n)
{
    bool* thermal = crdi_arena_new(a, (size_t)n->node_count, sizeof *thermal);
    for (int32_t i = 0; thermal && i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        for (int k = 0; p->thermal && k < 4; k++) {
            if (p->nodes[k] > 0) { thermal[p->nodes[k]] = true; }
        }
    }
    return thermal;
}

double crd_circuit_probe_value(crd_circuit* c, const crd_circuit_probe* s)
{
    switch (s->kind) {
    case CRD_PROBE_OUTPUT:
        return crd_circuit_get_output(c, s->a);
    case CRD_PROBE_NODE:
        return crd_circuit_voltage(c, s->a);
    case CRD_PROBE_PAIR:
        return crd_circuit_voltage(c, s->a) - crd_circuit_voltage(c, s->b);
    case CRD_PROBE_CURRENT:
        return crd_circuit_current(c, s->a);
    }
    return NAN;
}

static crd_status probe_add(picker* p, crd_probe_kind kind, int32_t a, int32_t b)
{
    const crd_netlist* n = p->n;
    crd_circuit_probe s = {.kind = kind, .a = a, .b = b};
    bool hot = false;
    switch (kind) {
    case CRD_PROBE_OUTPUT:
        if (p->outputs[a]) { return CRD_OK; }
        p->outputs[a] = true;
        s.name = n->outputs[a].name;
        s.unit = n->outputs[a].unit;
        break;
    case CRD_PROBE_NODE:
        if (p->nodes[a]) { return CRD_OK; }
        p->nodes[a] = true;
        hot = p->thermal[a];
        s.name = crdi_arena_format(p->arena, "%c(%s)", hot ? 't' : 'v', n->nodes[a]);
        s.unit = hot ? "K" : "V";
        break;
    case CRD_PROBE_PAIR:
        hot = p->thermal[a] || p->thermal[b];
        s.name =
            crdi_arena_format(p->arena, "%c(%s,%s)", hot ? 't' : 'v', n->nodes[a], n->nodes[b]);
        s.unit = hot ? "K" : "V";
        break;
    case CRD_PROBE_CURRENT:
        if (p->parts[a]) { return CRD_OK; }
        p->parts[a] = true;
        hot = n->parts[a].thermal;
        s.name =
            crdi_arena_format(p->arena, "%c(%s)", hot ? 'q' : 'i', n->names + n->parts[a].name);
        s.unit = hot ? "W" : "A";
        break;
    }
    if (!s.name) { return CRD_E_MEMORY; }
    if (p->count == PROBES_MOST) {
        return crdi_fail(p->ctx, CRD_E_RANGE,
                         "signals chooses more than %d signals, expected fewer", PROBES_MOST);
    }
    crd_circuit_probe* grown =
        crdi_grow(p->ctx, p->all, &p->capacity, (size_t)p->count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    p->all = grown;
    p->all[p->count++] = s;
    return CRD_OK;
}

// ---- what --signals says -----------------------------------------------------------------------

typedef struct near {
    const crd_netlist* n;
    bool parts; // names of parts, else of nodes; of outputs where `outputs` is set
    bool outputs;
    int32_t i;
} near;

static const char* probe_next_name(void* user)
{
    near* x = user;
    const crd_netlist* n = x->n;
    const int32_t count = x->outputs ? n->output_count : x->parts ? n->part_count : n->node_count;
    if (x->i >= count || x->i > NAMES_SEARCHED) { return NULL; }
    const int32_t i = x->i++;
    return x->outputs ? n->outputs[i].name : x->parts ? n->names + n->parts[i].name : n->nodes[i];
}

static crd_status nothing_fits(picker* p, const char* item, const char* word, bool parts,
                               bool outputs)
{
    near x = {p->n, parts, outputs, 0};
    const char* found = crdi_nearest(word, probe_next_name, &x);
    const char* what = outputs ? ".output" : parts ? "part" : "node";
    return crdi_fail(p->ctx, CRD_E_NOT_FOUND, "signals '%s': no %s fits '%s'%s%s%s%s", item, what,
                     word, found ? ", did you mean '" : "", found ? found : "", found ? "'?" : "",
                     found || !outputs ? "" : "; v(node) and i(part) are signals, too");
}

static bool probe_fits(const char* pattern, const char* name)
{
    char text[1100];
    size_t k = 0;
    for (; name[k] && k + 1 < sizeof text; k++) {
        text[k] = (char)tolower((unsigned char)name[k]);
    }
    text[k] = 0;
    return crdi_glob(pattern, text);
}

static crd_status pick_all(picker* p, crd_probe_kind kind, const char* item, const char* pattern)
{
    const crd_netlist* n = p->n;
    const int before = p->count;
    bool found = false;
    const int32_t count = kind == CRD_PROBE_OUTPUT    ? n->output_count
                          : kind == CRD_PROBE_CURRENT ? n->part_count
                                                      : n->node_count;
    for (int32_t i = kind == CRD_PROBE_NODE ? 1 : 0; i < count; i++) {
        if (kind == CRD_PROBE_CURRENT && crdi_part_kind_of(&n->parts[i])->couples) { continue; }
        const char* name = kind == CRD_PROBE_OUTPUT    ? n->outputs[i].name
                           : kind == CRD_PROBE_CURRENT ? n->names + n->parts[i].name
                                                       : n->nodes[i];
        if (!probe_fits(pattern, name)) { continue; }
        found = true;
        const crd_status st = probe_add(p, kind, i, -1);
        if (st < 0) { return st; }
    }
    if (p->count == before + 1 && !strpbrk(item, "*?[ ")) {
        p->all[before].name = item; // as the user spells it
    }
    if (found) { return CRD_OK; }
    return nothing_fits(p, item, pattern, kind == CRD_PROBE_CURRENT, kind == CRD_PROBE_OUTPUT);
}

static char* trim(char* text)
{
    while (isspace((unsigned char)*text)) {
        text++;
    }
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1])) {
        text[--n] = 0;
    }
    return text;
}

static crd_status pick_pair(picker* p, const char* item, char* first, char* second)
{
    char* const words[] = {trim(first), trim(second)};
    int32_t nodes[2];
    for (int i = 0; i < 2; i++) {
        nodes[i] = crd_netlist_node(p->n, words[i]);
        if (nodes[i] < 0) { return nothing_fits(p, item, words[i], false, false); }
    }
    return probe_add(p, CRD_PROBE_PAIR, nodes[0], nodes[1]);
}

// v(node), v(a,b), i(part), t() and q() of thermal circuits, or an output; with * and ?
static crd_status pick(picker* p, const char* whole)
{
    char* item = crdi_arena_text(p->arena, whole, strlen(whole));
    char* copy = item ? crdi_arena_text(p->arena, whole, strlen(whole)) : NULL;
    if (!copy) { return CRD_E_MEMORY; }
    for (char* c = copy; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    const size_t n = strlen(copy);
    for (int i = 0; i < p->n->output_count; i++) { // one may be called v(1)
        if (strcasecmp(p->n->outputs[i].name, item) == 0) {
            return probe_add(p, CRD_PROBE_OUTPUT, i, -1);
        }
    }
    if (n < 2 || copy[1] != '(') { return pick_all(p, CRD_PROBE_OUTPUT, item, copy); }
    if (!strchr("vitq", copy[0]) || n < 4 || copy[n - 1] != ')') {
        return crdi_fail(p->ctx, CRD_E_RANGE,
                         "signals '%s', expected v(node), v(node,node), i(part) or the name of an "
                         ".output",
                         item);
    }
    copy[n - 1] = 0;
    char* inside = trim(copy + 2);
    char* comma = strchr(inside, ',');
    const bool current = copy[0] == 'i' || copy[0] == 'q';
    if (comma && !current) {
        *comma = 0;
        return pick_pair(p, item, inside, comma + 1);
    }
    if (!current && crd_netlist_node(p->n, inside) == 0) { // ground: asked for by name only
        return probe_add(p, CRD_PROBE_NODE, 0, -1);
    }
    return pick_all(p, current ? CRD_PROBE_CURRENT : CRD_PROBE_NODE, item, inside);
}

// Items between commas outside of brackets.
static crd_status pick_list(picker* p, const char* text)
{
    char* copy = crdi_arena_text(p->arena, text, strlen(text));
    if (!copy) { return CRD_E_MEMORY; }
    int depth = 0, count = 0;
    for (char *c = copy, *begin = copy;; c++) {
        depth += *c == '(';
        depth -= *c == ')';
        if (*c && (*c != ',' || depth > 0)) { continue; }
        const bool last = !*c;
        *c = 0;
        const char* item = trim(begin);
        if (*item) {
            const crd_status st = pick(p, item);
            if (st < 0) { return st; }
            count++;
        }
        if (last) { break; }
        begin = c + 1;
    }
    if (count) { return CRD_OK; }
    return crdi_fail(p->ctx, CRD_E_RANGE,
                     "signals '%s', expected a list as in 'v(3), i(L1), i(R*)'", text);
}

// ---- all together ------------------------------------------------------------------------------

static crd_status pick_unasked(picker* p, int* left_out)
{
    const crd_netlist* n = p->n;
    for (int i = 0; i < n->output_count; i++) {
        const crd_status st = probe_add(p, CRD_PROBE_OUTPUT, i, -1);
        if (st < 0) { return st; }
    }
    if (n->output_count) { return CRD_OK; }
    for (int32_t i = 1; i < n->node_count && i <= PROBES_UNASKED; i++) {
        const crd_status st = probe_add(p, CRD_PROBE_NODE, i, -1);
        if (st < 0) { return st; }
    }
    if (n->node_count - 1 > PROBES_UNASKED) { *left_out = n->node_count - 1 - PROBES_UNASKED; }
    return CRD_OK;
}

crd_status crd_circuit_find_probes(crd_context* ctx, const crd_netlist* n, const char* const* lists,
                                   int list_count, crd_arena* arena, crd_circuit_probes* out)
{
    crd_status st = CRD_OK;
    int left_out = 0;
    picker p = {.ctx = ctx, .n = n, .arena = arena, .thermal = thermal_nodes(arena, n)};
    p.nodes = crdi_arena_new(arena, (size_t)n->node_count, sizeof(bool));
    p.parts = crdi_arena_new(arena, (size_t)n->part_count, sizeof(bool));
    p.outputs = crdi_arena_new(arena, (size_t)n->output_count, sizeof(bool));
    if (!p.thermal || !p.nodes || !p.parts || !p.outputs) { return CRD_E_MEMORY; }
    for (int i = 0; i < list_count; i++) {
        CRD_TRY(pick_list(&p, lists[i]));
    }
    if (list_count == 0) { CRD_TRY(pick_unasked(&p, &left_out)); }
    crd_circuit_probe* all = crdi_arena_new(arena, (size_t)p.count, sizeof *all);
    if (!all) { CRD_TRY(CRD_E_MEMORY); }
    for (int i = 0; i < p.count; i++) {
        all[i] = p.all[i];
    }
    *out = (crd_circuit_probes){.all = all, .count = p.count, .left_out = left_out};
fail:
    crd_free(ctx, p.all);
    return st;
}
