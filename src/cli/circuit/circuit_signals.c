// cardan circuit: which signals are looked at, and their values.
#include "cli/circuit/circuit.h"
#include "shared/circuit_part.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum {
    SIGNALS_UNASKED = 200, // of node voltages, when nobody said which
    SIGNALS_MOST = 100000,
    NAMES_SEARCHED = 20000 // for one that was meant
};

typedef struct picker {
    crdi_circuit_job* j;
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

double crdi_circuit_signal_value(crd_circuit* c, const crdi_circuit_signal* s)
{
    switch (s->kind) {
    case CRDI_SIGNAL_OUTPUT:
        return crd_circuit_get_output(c, s->a);
    case CRDI_SIGNAL_NODE:
        return crd_circuit_voltage(c, s->a);
    case CRDI_SIGNAL_PAIR:
        return crd_circuit_voltage(c, s->a) - crd_circuit_voltage(c, s->b);
    case CRDI_SIGNAL_CURRENT:
        return crd_circuit_current(c, s->a);
    }
    return NAN;
}

static crd_status circuit_signals_add(picker* p, crdi_signal_kind kind, int32_t a, int32_t b)
{
    crdi_circuit_job* j = p->j;
    const crd_netlist* n = j->n;
    crdi_circuit_signal s = {.kind = kind, .a = a, .b = b};
    bool hot = false;
    switch (kind) {
    case CRDI_SIGNAL_OUTPUT:
        if (p->outputs[a]) { return CRD_OK; }
        p->outputs[a] = true;
        s.name = n->outputs[a].name;
        s.unit = n->outputs[a].unit;
        break;
    case CRDI_SIGNAL_NODE:
        if (p->nodes[a]) { return CRD_OK; }
        p->nodes[a] = true;
        hot = p->thermal[a];
        s.name = crdi_arena_format(&j->arena, "%c(%s)", hot ? 't' : 'v', n->nodes[a]);
        s.unit = hot ? "K" : "V";
        break;
    case CRDI_SIGNAL_PAIR:
        hot = p->thermal[a] || p->thermal[b];
        s.name =
            crdi_arena_format(&j->arena, "%c(%s,%s)", hot ? 't' : 'v', n->nodes[a], n->nodes[b]);
        s.unit = hot ? "K" : "V";
        break;
    case CRDI_SIGNAL_CURRENT:
        if (p->parts[a]) { return CRD_OK; }
        p->parts[a] = true;
        hot = n->parts[a].thermal;
        s.name =
            crdi_arena_format(&j->arena, "%c(%s)", hot ? 'q' : 'i', n->names + n->parts[a].name);
        s.unit = hot ? "W" : "A";
        break;
    }
    if (!s.name) { return CRD_E_MEMORY; }
    if (j->signal_count == SIGNALS_MOST) {
        return crdi_fail(j->cli->ctx, CRD_E_RANGE,
                         "--signals chooses more than %d signals, expected fewer", SIGNALS_MOST);
    }
    crdi_circuit_signal* grown = crdi_grow(j->cli->ctx, j->signals, &p->capacity,
                                           (size_t)j->signal_count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    j->signals = grown;
    j->signals[j->signal_count++] = s;
    return CRD_OK;
}

// ---- what --signals says -----------------------------------------------------------------------

typedef struct near {
    const crd_netlist* n;
    bool parts; // names of parts, else of nodes; of outputs where `outputs` is set
    bool outputs;
    int32_t i;
} near;

static const char* circuit_signals_next_name(void* user)
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
    near x = {p->j->n, parts, outputs, 0};
    const char* found = crdi_nearest(word, circuit_signals_next_name, &x);
    const char* what = outputs ? ".output" : parts ? "part" : "node";
    return crdi_fail(p->j->cli->ctx, CRD_E_NOT_FOUND, "--signals '%s': no %s fits '%s'%s%s%s%s",
                     item, what, word, found ? ", did you mean '" : "", found ? found : "",
                     found ? "'?" : "",
                     found || !outputs ? "" : "; v(node) and i(part) are signals, too");
}

static bool circuit_signals_fits(const char* pattern, const char* name)
{
    char text[1100];
    size_t k = 0;
    for (; name[k] && k + 1 < sizeof text; k++) {
        text[k] = (char)tolower((unsigned char)name[k]);
    }
    text[k] = 0;
    return crdi_glob(pattern, text);
}

static crd_status pick_all(picker* p, crdi_signal_kind kind, const char* item, const char* pattern)
{
    const crd_netlist* n = p->j->n;
    const int before = p->j->signal_count;
    bool found = false;
    const int32_t count = kind == CRDI_SIGNAL_OUTPUT    ? n->output_count
                          : kind == CRDI_SIGNAL_CURRENT ? n->part_count
                                                        : n->node_count;
    for (int32_t i = kind == CRDI_SIGNAL_NODE ? 1 : 0; i < count; i++) {
        if (kind == CRDI_SIGNAL_CURRENT && crdi_part_kind_of(&n->parts[i])->couples) { continue; }
        const char* name = kind == CRDI_SIGNAL_OUTPUT    ? n->outputs[i].name
                           : kind == CRDI_SIGNAL_CURRENT ? n->names + n->parts[i].name
                                                         : n->nodes[i];
        if (!circuit_signals_fits(pattern, name)) { continue; }
        found = true;
        const crd_status st = circuit_signals_add(p, kind, i, -1);
        if (st < 0) { return st; }
    }
    if (p->j->signal_count == before + 1 && !strpbrk(item, "*?[ ")) {
        p->j->signals[before].name = item; // as the user spells it
    }
    if (found) { return CRD_OK; }
    return nothing_fits(p, item, pattern, kind == CRDI_SIGNAL_CURRENT, kind == CRDI_SIGNAL_OUTPUT);
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
        nodes[i] = crd_netlist_node(p->j->n, words[i]);
        if (nodes[i] < 0) { return nothing_fits(p, item, words[i], false, false); }
    }
    return circuit_signals_add(p, CRDI_SIGNAL_PAIR, nodes[0], nodes[1]);
}

// v(node), v(a,b), i(part), t() and q() of thermal circuits, or an output; with * and ?
static crd_status pick(picker* p, const char* whole)
{
    char* item = crdi_arena_text(&p->j->arena, whole, strlen(whole));
    char* copy = item ? crdi_arena_text(&p->j->arena, whole, strlen(whole)) : NULL;
    if (!copy) { return CRD_E_MEMORY; }
    for (char* c = copy; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    const size_t n = strlen(copy);
    for (int i = 0; i < p->j->n->output_count; i++) { // one may be called v(1)
        if (strcasecmp(p->j->n->outputs[i].name, item) == 0) {
            return circuit_signals_add(p, CRDI_SIGNAL_OUTPUT, i, -1);
        }
    }
    if (n < 2 || copy[1] != '(') { return pick_all(p, CRDI_SIGNAL_OUTPUT, item, copy); }
    if (!strchr("vitq", copy[0]) || n < 4 || copy[n - 1] != ')') {
        return crdi_fail(
            p->j->cli->ctx, CRD_E_RANGE,
            "--signals '%s', expected v(node), v(node,node), i(part) or the name of an "
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
    if (!current && crd_netlist_node(p->j->n, inside) == 0) { // ground: asked for by name only
        return circuit_signals_add(p, CRDI_SIGNAL_NODE, 0, -1);
    }
    return pick_all(p, current ? CRDI_SIGNAL_CURRENT : CRDI_SIGNAL_NODE, item, inside);
}

// Items between commas outside of brackets.
static crd_status pick_list(picker* p, const char* text)
{
    char* copy = crdi_arena_text(&p->j->arena, text, strlen(text));
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
    return crdi_fail(p->j->cli->ctx, CRD_E_RANGE,
                     "--signals '%s', expected a list as in 'v(3), i(L1), i(R*)'", text);
}

// ---- all together ------------------------------------------------------------------------------

static crd_status pick_unasked(picker* p)
{
    const crd_netlist* n = p->j->n;
    for (int i = 0; i < n->output_count; i++) {
        const crd_status st = circuit_signals_add(p, CRDI_SIGNAL_OUTPUT, i, -1);
        if (st < 0) { return st; }
    }
    if (n->output_count) { return CRD_OK; }
    for (int32_t i = 1; i < n->node_count && i <= SIGNALS_UNASKED; i++) {
        const crd_status st = circuit_signals_add(p, CRDI_SIGNAL_NODE, i, -1);
        if (st < 0) { return st; }
    }
    if (n->node_count - 1 > SIGNALS_UNASKED) {
        p->j->left_out = n->node_count - 1 - SIGNALS_UNASKED;
        crdi_log(p->j->ctx, CRD_LOG_INFO,
                 "the first %d of %d nodes are shown; choose with --signals or .output",
                 SIGNALS_UNASKED, n->node_count - 1);
    }
    return CRD_OK;
}

crd_status crdi_circuit_choose_signals(crdi_circuit_job* j)
{
    crd_status st = CRD_OK;
    const crd_netlist* n = j->n;
    picker p = {.j = j, .thermal = thermal_nodes(&j->arena, n)};
    p.nodes = crdi_arena_new(&j->arena, (size_t)n->node_count, sizeof(bool));
    p.parts = crdi_arena_new(&j->arena, (size_t)n->part_count, sizeof(bool));
    p.outputs = crdi_arena_new(&j->arena, (size_t)n->output_count, sizeof(bool));
    if (!p.thermal || !p.nodes || !p.parts || !p.outputs) { return CRD_E_MEMORY; }
    for (int i = 0; i < j->o->signals.count; i++) {
        CRD_TRY(pick_list(&p, j->o->signals.items[i]));
    }
    if (j->o->signals.count == 0) { CRD_TRY(pick_unasked(&p)); }
fail:
    return st;
}
