// Which inputs act on which outputs without delay. What is known of a circuit at an instant are the
// voltages of capacitors and sources and the currents of inductors; a spanning forest of the former
// ("trees") gives all voltages inside of a tree. The tree of ground is known altogether; the others
// hang on it by resistors and the like. Whatever is not seen through depends on everything.
#include "shared/circuit_part.h"
#include "unit/circuit/circuit_unit.h"

#include <string.h>

enum {
    MOST_WORDS = 1 << 22,  // of dependencies; larger ones are not looked into
    MOST_EDGES = 30000000, // looked at in all
    MOST_CUT = 256,        // nodes on one side of a cut
};

typedef uint64_t word;

typedef struct graph {
    const crd_netlist* n;
    crd_arena arena;
    int words;                  // of a set of inputs
    int64_t edges;              // that were looked at
    int32_t *first, *incident;  // parts at a node: incident[first[node]] ... [first[node + 1] - 1]
    bool* tree;                 // parts that are edges of trees
    int32_t *root, *up, *depth; // of nodes: its tree, the part that leads to the root, how far
    int32_t *links, *group;     // (nodes) union-find of roots: joined by parts, and by control too
    bool *held, *any; // (nodes) by root of links: hangs on ground; of group: on everything
    bool floats;      // there is something that hangs on inductors only
    word* edge;       // (parts x words) what the voltage of a capacitor or source follows
    word* inside;     // (nodes x words) by root of group
} graph;

static word* set_of(word* sets, const graph* g, int32_t i)
{
    return sets + (size_t)i * (size_t)g->words;
}

static bool add_set(const graph* g, word* to, const word* from)
{
    bool grew = false;
    for (int i = 0; i < g->words; i++) {
        grew = grew || (from[i] & ~to[i]);
        to[i] |= from[i];
    }
    return grew;
}

static void add_input(word* to, int input)
{
    to[input / 64] |= (word)1 << (input % 64);
}

static void add_all(const graph* g, word* to)
{
    memset(to, 0xff, (size_t)g->words * sizeof *to);
}

static int32_t find_root(int32_t* parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static bool feedthrough_join(int32_t* parent, int32_t a, int32_t b)
{
    a = find_root(parent, a);
    b = find_root(parent, b);
    parent[b] = a;
    return a != b;
}

// ---- kinds of parts ----------------------------------------------------------------------------

static bool has_known_voltage(const crd_part* p) // V, C
{
    const crdi_part_kind* k = crdi_part_kind_of(p);
    return k->stores == CRDI_STORES_VOLTAGE ||
           (k->model == CRDI_MODEL_WAVE && k->fixes == CRDI_FIXES_VOLTAGE);
}

static bool has_ends(const crd_part* p) // a current between nodes[0] and nodes[1]
{
    return !crdi_part_kind_of(p)->couples;
}

// Its voltage and current follow each other, or its voltage something else.
static bool is_link(const crd_part* p)
{
    const crdi_part_kind* k = crdi_part_kind_of(p);
    return has_ends(p) && !k->stores && k->fixes != CRDI_FIXES_CURRENT &&
           k->model != CRDI_MODEL_WAVE;
}

// The input of a source, -1: none.
static int input_of(const crd_netlist* n, const crd_part* p)
{
    const bool source = crdi_part_is_source(p) && p->index >= 0;
    return source && n->waves[p->index].kind == CRD_WAVE_INPUT ? n->waves[p->index].input : -1;
}

// What a part is controlled by, as uses of an expression: how many.
static int controls(const crd_netlist* n, const crd_part* p, crd_use own[1], const crd_use** uses)
{
    const crd_expression* law = crdi_part_law(n, p);
    *uses = own;
    switch (crdi_part_kind_of(p)->control) {
    case CRDI_CONTROL_VOLTAGE:
        own[0] = (crd_use){CRD_USE_PAIR, p->nodes[2], p->nodes[3]};
        return 1;
    case CRDI_CONTROL_CURRENT:
        own[0] = (crd_use){CRD_USE_CURRENT, p->refs[0], -1};
        return 1;
    default:
        return law ? crd_expression_uses(law, uses) : 0;
    }
}

// ---- trees -------------------------------------------------------------------------------------

static crd_status feedthrough_make_room(graph* g)
{
    const crd_netlist* n = g->n;
    const size_t nodes = (size_t)n->node_count, parts = (size_t)n->part_count;
    const size_t words = (size_t)g->words;
    g->first = crdi_arena_new(&g->arena, nodes + 1, sizeof *g->first);
    g->incident = crdi_arena_new(&g->arena, 2 * parts, sizeof *g->incident);
    g->tree = crdi_arena_new(&g->arena, parts, sizeof *g->tree);
    g->root = crdi_arena_new(&g->arena, nodes, sizeof *g->root);
    g->up = crdi_arena_new(&g->arena, nodes, sizeof *g->up);
    g->depth = crdi_arena_new(&g->arena, nodes, sizeof *g->depth);
    g->links = crdi_arena_new(&g->arena, nodes, sizeof *g->links);
    g->group = crdi_arena_new(&g->arena, nodes, sizeof *g->group);
    g->held = crdi_arena_new(&g->arena, nodes, sizeof *g->held);
    g->any = crdi_arena_new(&g->arena, nodes, sizeof *g->any);
    g->edge = crdi_arena_new(&g->arena, parts * words, sizeof *g->edge);
    g->inside = crdi_arena_new(&g->arena, nodes * words, sizeof *g->inside);
    return g->first && g->incident && g->tree && g->root && g->up && g->depth && g->links &&
                   g->group && g->held && g->any && g->edge && g->inside
               ? CRD_OK
               : CRD_E_MEMORY;
}

static void list_incident(graph* g)
{
    const crd_netlist* n = g->n;
    for (int32_t i = 0; i < n->part_count; i++) {
        for (int e = 0; e < 2 && has_ends(&n->parts[i]); e++) {
            g->first[n->parts[i].nodes[e] + 1]++;
        }
    }
    for (int32_t v = 0; v < n->node_count; v++) {
        g->first[v + 1] += g->first[v];
        g->depth[v] = g->first[v]; // where the next one goes
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        for (int e = 0; e < 2 && has_ends(&n->parts[i]); e++) {
            g->incident[g->depth[n->parts[i].nodes[e]]++] = i;
        }
    }
}

// Sources first: a capacitor beside one has its voltage.
static void choose_edges(graph* g)
{
    const crd_netlist* n = g->n;
    for (int32_t v = 0; v < n->node_count; v++) {
        g->links[v] = v;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < n->part_count; i++) {
            const crd_part* p = &n->parts[i];
            if (has_known_voltage(p) && crdi_part_is_source(p) == (pass == 0)) {
                g->tree[i] = feedthrough_join(g->links, p->nodes[0], p->nodes[1]);
            }
        }
    }
}

static int32_t other_end(const crd_part* p, int32_t node)
{
    return p->nodes[0] == node ? p->nodes[1] : p->nodes[0];
}

// Roots, in the order of nodes: ground is one.
static crd_status grow_trees(graph* g)
{
    const crd_netlist* n = g->n;
    int32_t* queue = crdi_arena_new(&g->arena, (size_t)n->node_count, sizeof *queue);
    if (!queue) { return CRD_E_MEMORY; }
    for (int32_t v = 0; v < n->node_count; v++) {
        g->root[v] = -1;
    }
    for (int32_t start = 0; start < n->node_count; start++) {
        if (g->root[start] >= 0) { continue; }
        int32_t head = 0, tail = 0;
        queue[tail++] = start;
        g->root[start] = start;
        g->up[start] = -1;
        g->depth[start] = 0;
        while (head < tail) {
            const int32_t v = queue[head++];
            for (int32_t k = g->first[v]; k < g->first[v + 1]; k++) {
                const int32_t part = g->incident[k], w = other_end(&n->parts[part], v);
                if (!g->tree[part] || g->root[w] >= 0) { continue; }
                g->root[w] = start;
                g->up[w] = part;
                g->depth[w] = g->depth[v] + 1;
                queue[tail++] = w;
            }
        }
    }
    return CRD_OK;
}

// What the voltage between two nodes of one tree follows. With `give` the capacitors on the way get
// that set: true if one grew.
static bool feedthrough_walk(graph* g, int32_t a, int32_t b, word* follows, const word* give)
{
    bool grew = false;
    while (a != b && g->edges++ < MOST_EDGES) {
        int32_t* v = g->depth[a] >= g->depth[b] ? &a : &b;
        const int32_t part = g->up[*v];
        word* own = set_of(g->edge, g, part);
        if (follows) { (void)add_set(g, follows, own); }
        if (give && crdi_part_kind_of(&g->n->parts[part])->stores) {
            grew = add_set(g, own, give) || grew;
        }
        *v = other_end(&g->n->parts[part], *v);
    }
    return grew;
}

// A capacitor that closes a loop: voltages in it jump with the sources in it.
static crd_status close_loops(graph* g)
{
    const crd_netlist* n = g->n;
    word* set = crdi_arena_new(&g->arena, (size_t)g->words, sizeof *set);
    if (!set) { return CRD_E_MEMORY; }
    for (int32_t i = 0; i < n->part_count; i++) {
        const int input = input_of(n, &n->parts[i]);
        if (input >= 0) { add_input(set_of(g->edge, g, i), input); }
    }
    for (bool grew = true; grew && g->edges < MOST_EDGES;) {
        grew = false;
        for (int32_t i = 0; i < n->part_count; i++) {
            const crd_part* p = &n->parts[i];
            if (g->tree[i] || !has_known_voltage(p)) { continue; }
            memcpy(set, set_of(g->edge, g, i), (size_t)g->words * sizeof *set);
            (void)feedthrough_walk(g, p->nodes[0], p->nodes[1], set, NULL);
            grew = add_set(g, set_of(g->edge, g, i), set) || grew;
            grew = feedthrough_walk(g, p->nodes[0], p->nodes[1], NULL, set) || grew;
        }
    }
    return CRD_OK;
}

// ---- what hangs on the trees -------------------------------------------------------------------

static bool is_state_current(const graph* g, int32_t part)
{
    return crdi_part_kind_of(&g->n->parts[part])->stores == CRDI_STORES_CURRENT && !g->floats;
}

static void join_groups(graph* g)
{
    const crd_netlist* n = g->n;
    for (int32_t v = 0; v < n->node_count; v++) {
        g->links[v] = g->group[v] = v;
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const int32_t a = has_ends(p) ? g->root[p->nodes[0]] : 0;
        const int32_t b = has_ends(p) ? g->root[p->nodes[1]] : 0;
        if (is_link(p) && a && b) { (void)feedthrough_join(g->links, a, b); }
        if (is_link(p) && a && b) { (void)feedthrough_join(g->group, a, b); }
        crd_use own[1];
        const crd_use* uses;
        const int count = controls(n, p, own, &uses);
        for (int k = 0; k < count; k++) {
            if (uses[k].kind != CRD_USE_NODE && uses[k].kind != CRD_USE_PAIR) { continue; }
            for (int e = 0; e < 2; e++) {
                const int32_t c = uses[k].kind == CRD_USE_NODE && e ? 0 : e ? uses[k].b : uses[k].a;
                if (c < 0 || !g->root[c]) { continue; }
                if (a) { (void)feedthrough_join(g->group, a, g->root[c]); }
                if (b) { (void)feedthrough_join(g->group, b, g->root[c]); }
            }
        }
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (!is_link(p)) { continue; }
        const int32_t a = g->root[p->nodes[0]], b = g->root[p->nodes[1]];
        if (!a && b) { g->held[find_root(g->links, b)] = true; }
        if (!b && a) { g->held[find_root(g->links, a)] = true; }
    }
    for (int32_t v = 1; v < n->node_count; v++) {
        if (g->root[v] != v || g->held[find_root(g->links, v)]) { continue; }
        g->floats = true;
        g->any[find_root(g->group, v)] = true;
    }
}

// A set follows what a control follows, but for the groups, which have been joined.
static void add_controls(graph* g, const crd_part* p, word* to)
{
    crd_use own[1];
    const crd_use* uses;
    const int count = controls(g->n, p, own, &uses);
    for (int k = 0; k < count; k++) {
        switch (uses[k].kind) {
        case CRD_USE_NODE:
        case CRD_USE_PAIR:
            if (!g->root[uses[k].a]) { (void)feedthrough_walk(g, uses[k].a, 0, to, NULL); }
            if (uses[k].kind == CRD_USE_PAIR && !g->root[uses[k].b]) {
                (void)feedthrough_walk(g, uses[k].b, 0, to, NULL);
            }
            break;
        case CRD_USE_CURRENT:
            if (!is_state_current(g, uses[k].a)) { add_all(g, to); }
            break;
        case CRD_USE_INPUT:
            add_input(to, uses[k].a);
            break;
        }
    }
}

static void fill_groups(graph* g)
{
    const crd_netlist* n = g->n;
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (!has_ends(p) || crdi_part_kind_of(p)->stores == CRDI_STORES_CURRENT) { continue; }
        for (int e = 0; e < 2; e++) {
            const int32_t mine = g->root[p->nodes[e]], other = p->nodes[1 - e];
            if (!mine) { continue; }
            word* to = set_of(g->inside, g, find_root(g->group, mine));
            (void)add_set(g, to, set_of(g->edge, g, i));
            if (is_link(p) && !g->root[other]) { (void)feedthrough_walk(g, other, 0, to, NULL); }
            add_controls(g, p, to);
        }
    }
    for (int32_t v = 1; v < n->node_count; v++) {
        if (g->any[v]) { add_all(g, set_of(g->inside, g, find_root(g->group, v))); }
    }
}

// ---- outputs -----------------------------------------------------------------------------------

static void add_voltage(graph* g, int32_t a, int32_t b, word* to)
{
    if (g->root[a] == g->root[b]) {
        (void)feedthrough_walk(g, a, b, to, NULL);
        return;
    }
    const int32_t ends[2] = {a, b};
    for (int e = 0; e < 2; e++) {
        const int32_t r = g->root[ends[e]];
        (void)feedthrough_walk(g, ends[e], r, to, NULL);
        if (r) { (void)add_set(g, to, set_of(g->inside, g, find_root(g->group, r))); }
    }
}

static void add_use(graph* g, const crd_use* use, word* to);

// The current of a part whose voltages or state tell it. false: they do not.
static bool add_plain_current(graph* g, int32_t part, word* to)
{
    const crd_part* p = &g->n->parts[part];
    const crdi_part_kind* kind = crdi_part_kind_of(p);
    if (kind->stores == CRDI_STORES_CURRENT) { return is_state_current(g, part); }
    if (kind->stores || kind->couples || kind->switches || kind->fixes == CRDI_FIXES_VOLTAGE ||
        kind->control == CRDI_CONTROL_CURRENT || crdi_part_has_charge(g->n, p)) {
        return false;
    }
    if (crdi_part_is_source(p)) {
        (void)add_set(g, to, set_of(g->edge, g, part));
        return true;
    }
    crd_use own[1];
    const crd_use* uses;
    const int count = controls(g->n, p, own, &uses);
    for (int k = 0; k < count; k++) {
        // A current in a law could be that of a part whose law says this one.
        if (uses[k].kind == CRD_USE_CURRENT && !is_state_current(g, uses[k].a)) { return false; }
        add_use(g, &uses[k], to);
    }
    if (kind->fixes == CRDI_FIXES_NOTHING) { add_voltage(g, p->nodes[0], p->nodes[1], to); }
    return true;
}

// The current of an edge of a tree: what flows out of the nodes beyond it. false: not seen through.
static bool add_cut_current(graph* g, int32_t part, word* to)
{
    const crd_netlist* n = g->n;
    const crd_part* edge = &n->parts[part];
    int32_t side[MOST_CUT];
    int count = 0;
    side[count++] = g->up[edge->nodes[0]] == part ? edge->nodes[0] : edge->nodes[1];
    for (int at = 0; at < count; at++) {
        const int32_t v = side[at];
        for (int32_t k = g->first[v]; k < g->first[v + 1]; k++) {
            const int32_t i = g->incident[k];
            if (i == part || i == g->up[v] || !g->tree[i]) { continue; }
            if (count == MOST_CUT) { return false; }
            side[count++] = other_end(&n->parts[i], v);
        }
    }
    for (int at = 0; at < count; at++) {
        const int32_t v = side[at];
        for (int32_t k = g->first[v]; k < g->first[v + 1]; k++) {
            const int32_t i = g->incident[k];
            if (g->tree[i]) { continue; } // inside, or the edge itself
            if (!add_plain_current(g, i, to)) { return false; }
        }
    }
    return true;
}

static void add_use(graph* g, const crd_use* use, word* to)
{
    switch (use->kind) {
    case CRD_USE_NODE:
        add_voltage(g, use->a, 0, to);
        break;
    case CRD_USE_PAIR:
        add_voltage(g, use->a, use->b, to);
        break;
    case CRD_USE_CURRENT: {
        const bool seen =
            g->tree[use->a] ? add_cut_current(g, use->a, to) : add_plain_current(g, use->a, to);
        if (!seen) { add_all(g, to); }
        break;
    }
    case CRD_USE_INPUT:
        add_input(to, use->a);
        break;
    }
}

static crd_status find_outputs(graph* g, bool* direct)
{
    const crd_netlist* n = g->n;
    word* set = crdi_arena_new(&g->arena, (size_t)g->words, sizeof *set);
    if (!set) { return CRD_E_MEMORY; }
    for (int i = 0; i < n->output_count; i++) {
        const crd_use* uses;
        const int count = crd_expression_uses(n->outputs[i].what, &uses);
        memset(set, 0, (size_t)g->words * sizeof *set);
        for (int k = 0; k < count; k++) {
            add_use(g, &uses[k], set);
        }
        for (int k = 0; k < n->input_count; k++) {
            direct[i * n->input_count + k] = (set[k / 64] >> (k % 64)) & 1;
        }
    }
    return CRD_OK;
}

crd_status crdi_circuit_feedthrough(crd_context* ctx, const crd_netlist* n, bool* direct)
{
    const size_t size = (size_t)n->output_count * (size_t)n->input_count;
    if (size == 0) { return CRD_OK; }
    graph g = {.n = n, .words = (n->input_count + 63) / 64};
    if ((int64_t)(n->part_count + n->node_count) * g.words > MOST_WORDS) {
        memset(direct, true, size * sizeof *direct);
        return CRD_OK;
    }
    crd_status st = CRD_OK;
    crd_arena_init(&g.arena, ctx);
    CRD_TRY(feedthrough_make_room(&g));
    list_incident(&g);
    choose_edges(&g);
    CRD_TRY(grow_trees(&g));
    CRD_TRY(close_loops(&g));
    join_groups(&g);
    fill_groups(&g);
    CRD_TRY(find_outputs(&g, direct));
    if (g.edges >= MOST_EDGES) { memset(direct, true, size * sizeof *direct); }
fail:
    crd_arena_clear(&g.arena);
    return st;
}
