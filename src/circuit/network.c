#include "circuit/network.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

typedef struct builder {
    crdi_network* w;
    const crd_netlist* n;
    crd_arena* kept;            // of what is made
    crd_arena room;             // of what is only needed meanwhile:
    uint8_t* role;              // (parts) crdi_role
    uint8_t* plain;             // (parts) what the role were if nothing needed its current
    uint8_t* wanted;            // (parts) something else needs its current
    int32_t* sourced;           // (parts) number of its source, -1
    uint8_t* busy;              // (nodes) more than branches are there
    int32_t* degree;            // (nodes) ends of branches
    int32_t* meets;             // (2 * nodes) the first two branch parts at a node
    int32_t *tree, *queue;      // (nodes) union-find; breadth first
    int32_t *hang_first, *hang; // parts of role CRDI_ROLE_TIE by node
    int32_t* parent_tie;        // (nodes) tie number, -1: none
    bool* seen;                 // (parts)
} builder;

// ---- roles -------------------------------------------------------------------------------------

static void mark_wanted(builder* b)
{
    for (int32_t i = 0; i < b->n->part_count; i++) {
        const crd_part* p = &b->n->parts[i];
        const crdi_part_kind* kind = crdi_part_kind_of(p);
        if (kind->control == CRDI_CONTROL_CURRENT) { b->wanted[p->refs[0]] = true; }
        if (kind->couples && b->w->purpose == CRDI_NETWORK_STEPS) {
            b->wanted[p->refs[0]] = b->wanted[p->refs[1]] = true;
        }
        const crd_expression* e = crdi_part_law(b->n, p);
        const crd_use* uses;
        const int count = e ? crd_expression_uses(e, &uses) : 0;
        for (int k = 0; k < count; k++) {
            if (uses[k].kind == CRD_USE_CURRENT) { b->wanted[uses[k].a] = true; }
            if (uses[k].kind == CRD_USE_NODE || uses[k].kind == CRD_USE_PAIR) {
                b->busy[uses[k].a] = true;
            }
            if (uses[k].kind == CRD_USE_PAIR) { b->busy[uses[k].b] = true; }
        }
    }
}

// What its row says, but for values that make another part of it: no resistance ties two nodes, and
// what stores nothing has no place.
static crdi_role plain_role(const builder* b, const crd_part* p)
{
    const crdi_part_kind* k = crdi_part_kind_of(p);
    if (k->model == CRDI_MODEL_LAW && p->index >= 0) {
        return b->w->purpose == CRDI_NETWORK_STEPS ? CRDI_ROLE_DEVICE : CRDI_ROLE_NONE;
    }
    if (k->stores && !(p->value > 0)) { return CRDI_ROLE_NONE; }
    if (k->fixes_at_0 == CRDI_FIXES_VOLTAGE && p->value == 0) { return CRDI_ROLE_TIE; }
    return k->role[b->w->purpose];
}

// Something that depends on its current gives it a row, if its equation fits into one.
static crdi_role role_of(const builder* b, int32_t i)
{
    const crdi_role plain = (crdi_role)b->plain[i];
    const bool may = plain != CRDI_ROLE_GAIN && plain != CRDI_ROLE_DEVICE;
    return plain == CRDI_ROLE_NONE || !b->wanted[i] ? plain : may ? CRDI_ROLE_ROW : CRDI_ROLE_NONE;
}

static bool has_source(const builder* b, int32_t i)
{
    const uint8_t plain = b->plain[i];
    return plain == CRDI_ROLE_TIE || plain == CRDI_ROLE_FLOW ||
           (plain == CRDI_ROLE_OPEN && b->role[i] == CRDI_ROLE_ROW);
}

// B with V=: a row and a device
static bool is_law_row(const builder* b, int32_t i)
{
    return b->role[i] == CRDI_ROLE_ROW && b->plain[i] == CRDI_ROLE_ROW &&
           crdi_part_kind_of(&b->n->parts[i])->device;
}

static crd_status find_roles(builder* b)
{
    const crd_netlist* n = b->n;
    crdi_network* w = b->w;
    mark_wanted(b);
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        const bool couples = crdi_part_kind_of(p)->couples;
        b->plain[i] = (uint8_t)plain_role(b, p);
        b->role[i] = (uint8_t)role_of(b, i);
        if (b->role[i] == CRDI_ROLE_NONE) {
            return crdi_fail(b->room.ctx, CRD_E_UNSUPPORTED,
                             "circuit: %s has no place in the nodal form (%s); form DAE takes it",
                             crdi_clip(crdi_part_name(n, i)).text,
                             b->wanted[i] ? "something depends on its current" : "its value is 0");
        }
        if (has_source(b, i)) { b->sourced[i] = w->sources++; }
        w->gains += b->role[i] == CRDI_ROLE_GAIN;
        w->flows += b->role[i] == CRDI_ROLE_FLOW;
        w->rows += b->role[i] == CRDI_ROLE_ROW;
        w->couplings += couples && w->purpose == CRDI_NETWORK_STEPS;
        w->devices += b->role[i] == CRDI_ROLE_DEVICE || is_law_row(b, i);
        if (couples) { continue; }
        for (int k = 0; k < 4; k++) {
            const int32_t node = p->nodes[k];
            if (node < 0) { continue; }
            if (b->role[i] != CRDI_ROLE_BRANCH || k > 1) {
                b->busy[node] |= b->role[i] != CRDI_ROLE_OPEN || k > 1;
                continue;
            }
            if (b->degree[node] < 2) { b->meets[2 * node + b->degree[node]] = i; }
            b->degree[node] += b->degree[node] < 3;
        }
        // a negative resistance may cancel what it is in series with
        if (b->role[i] == CRDI_ROLE_BRANCH && !(p->value > 0)) {
            b->busy[p->nodes[0]] = b->busy[p->nodes[1]] = true;
        }
    }
    return CRD_OK;
}

// ---- trees of voltage sources ------------------------------------------------------------------

static crd_status list_ties(builder* b)
{
    const crd_netlist* n = b->n;
    crdi_network* w = b->w;
    for (int32_t i = 0; i < n->node_count; i++) {
        b->tree[i] = i;
        b->parent_tie[i] = -1;
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        if (b->role[i] != CRDI_ROLE_TIE) { continue; }
        if (!crdi_tree_join(b->tree, n->parts[i].nodes[0], n->parts[i].nodes[1])) {
            return crdi_fail(b->room.ctx, CRD_E_UNSUPPORTED, "circuit: a loop of voltages with %s",
                             crdi_clip(crdi_part_name(n, i)).text);
        }
        w->ties++;
        for (int k = 0; k < 2; k++) {
            b->hang_first[n->parts[i].nodes[k] + 1]++;
        }
    }
    for (int32_t i = 0; i < n->node_count; i++) {
        b->hang_first[i + 1] += b->hang_first[i];
    }
    b->hang = crdi_arena_new(&b->room, 2 * (size_t)w->ties, sizeof *b->hang);
    w->tie = crdi_arena_new(b->kept, (size_t)w->ties, sizeof *w->tie);
    return b->hang && w->tie ? CRD_OK : CRD_E_MEMORY;
}

// Breadth first from the lowest node of each tree; ground is the lowest of all. A parent is a node
// here (potentials are not numbered yet).
static void grow_trees(builder* b)
{
    const crd_netlist* n = b->n;
    crdi_network* w = b->w;
    int32_t* used = b->queue; // not in use yet
    memset(used, 0, (size_t)n->node_count * sizeof *used);
    for (int32_t i = 0; i < n->part_count; i++) {
        if (b->role[i] != CRDI_ROLE_TIE) { continue; }
        for (int k = 0; k < 2; k++) {
            const int32_t node = n->parts[i].nodes[k];
            b->hang[b->hang_first[node] + used[node]++] = i;
        }
    }
    int32_t count = 0;
    for (int32_t start = 0; start < n->node_count; start++) {
        if (crdi_tree_root(b->tree, start) != start) { continue; }
        int32_t head = 0, tail = 0;
        b->queue[tail++] = start;
        while (head < tail) {
            const int32_t a = b->queue[head++];
            for (int32_t k = b->hang_first[a]; k < b->hang_first[a + 1]; k++) {
                const crd_part* p = &n->parts[b->hang[k]];
                const int32_t c = p->nodes[0] == a ? p->nodes[1] : p->nodes[0];
                if (c == start || b->parent_tie[c] >= 0) { continue; }
                w->tie[count] = (crdi_tie){.parent = a,
                                           .source = b->hang[k],
                                           .sign = p->nodes[0] == c ? 1 : -1,
                                           .node = c};
                b->parent_tie[c] = count++;
                b->queue[tail++] = c;
            }
        }
    }
}

// ---- branches ----------------------------------------------------------------------------------

static bool vanishes(const builder* b, int32_t node)
{
    return b->w->purpose == CRDI_NETWORK_STEPS && node > 0 && !b->busy[node] &&
           b->degree[node] == 2 && b->meets[2 * node] != b->meets[2 * node + 1];
}

// Follows the branch that begins with this part at its kept end. Members go to w->member; the
// second end is returned.
static int32_t network_follow(builder* b, int32_t part, int32_t branch, int32_t* members,
                              bool backwards)
{
    crdi_network* w = b->w;
    const crd_netlist* n = b->n;
    w->r[branch] = w->l[branch] = w->s[branch] = 0;
    for (;;) {
        const crd_part* p = &n->parts[part];
        w->member[(*members)++] = backwards ? ~part : part;
        b->seen[part] = true;
        w->home[part] = CRDI_HOME_BRANCH;
        w->home_index[part] = branch;
        switch (crdi_part_kind_of(p)->stores) { // v = R i + L i' + vC, vC' = S i
        case CRDI_STORES_NOTHING:
            w->r[branch] += p->value;
            break;
        case CRDI_STORES_CURRENT:
            w->l[branch] += p->value;
            break;
        case CRDI_STORES_VOLTAGE:
            w->s[branch] += 1 / p->value;
            break;
        }
        const int32_t next = p->nodes[backwards ? 0 : 1];
        if (!vanishes(b, next)) { return next; }
        w->node_at[next] = -1 - branch;
        part = b->meets[2 * next] == part ? b->meets[2 * next + 1] : b->meets[2 * next];
        backwards = n->parts[part].nodes[1] == next;
    }
}

static int network_group_of(const crdi_network* w, int32_t branch)
{
    return w->l[branch] > 0 ? 2 : w->s[branch] > 0 ? 1 : 0;
}

// Brings branches into groups, keeping their order inside.
static crd_status sort_branches(builder* b, int32_t members)
{
    crdi_network* w = b->w;
    const size_t count = (size_t)w->branches;
    int32_t* old_of = crdi_arena_new(&b->room, count, sizeof *old_of); // place -> old branch
    int32_t* place = crdi_arena_new(&b->room, count, sizeof *place);   // old branch -> place
    const crdi_network old = *w;
    w->from = crdi_arena_new(b->kept, count, sizeof *w->from);
    w->to = crdi_arena_new(b->kept, count, sizeof *w->to);
    w->r = crdi_arena_new(b->kept, count, sizeof *w->r);
    w->l = crdi_arena_new(b->kept, count, sizeof *w->l);
    w->s = crdi_arena_new(b->kept, count, sizeof *w->s);
    w->first = crdi_arena_new(b->kept, count + 1, sizeof *w->first);
    w->member = crdi_arena_new(b->kept, (size_t)members, sizeof *w->member);
    if (b->room.failed || b->kept->failed) { return CRD_E_MEMORY; }
    int32_t start[4] = {0}, at = 0;
    for (int32_t i = 0; i < w->branches; i++) {
        start[network_group_of(&old, i) + 1]++;
    }
    w->resistive = start[1];
    w->capacitive = start[1] + start[2];
    start[2] += start[1];
    for (int32_t i = 0; i < w->branches; i++) {
        const int32_t to = start[network_group_of(&old, i)]++;
        old_of[to] = i;
        place[i] = to;
    }
    for (int32_t i = 0; i < w->branches; i++) {
        const int32_t from = old_of[i];
        w->from[i] = old.from[from];
        w->to[i] = old.to[from];
        w->r[i] = old.r[from];
        w->l[i] = old.l[from];
        w->s[i] = old.s[from];
        for (int32_t k = old.first[from]; k < old.first[from + 1]; k++) {
            const int32_t m = old.member[k];
            w->member[at++] = m;
            w->home_index[m < 0 ? ~m : m] = i;
        }
        w->first[i + 1] = at;
    }
    for (int32_t i = 0; i < w->n->node_count; i++) {
        if (w->node_at[i] < 0) { w->node_at[i] = -1 - place[-1 - w->node_at[i]]; }
    }
    return CRD_OK;
}

static int32_t follow_all(builder* b)
{
    crdi_network* w = b->w;
    const crd_netlist* n = b->n;
    int32_t members = 0;
    w->branches = 0;
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (b->role[i] != CRDI_ROLE_BRANCH || b->seen[i]) { continue; }
        const bool first = !vanishes(b, p->nodes[0]), second = !vanishes(b, p->nodes[1]);
        if (!first && !second) { continue; } // met from one of its ends
        const int32_t branch = w->branches++;
        w->from[branch] = p->nodes[first ? 0 : 1];
        w->to[branch] = network_follow(b, i, branch, &members, !first);
        w->first[branch + 1] = members;
    }
    return members;
}

static bool network_is_known(builder* b, int32_t node)
{
    return crdi_tree_root(b->tree, node) == 0;
}

// The node behind the resistors that a branch begins (or ends) with; -1: it does with none.
static int32_t behind_resistors(const crdi_network* w, int32_t branch, bool at_end)
{
    const int32_t first = w->first[branch], last = w->first[branch + 1] - 1;
    int32_t node = -1;
    for (int32_t k = at_end ? last : first; k >= first && k <= last; k += at_end ? -1 : 1) {
        const int32_t m = w->member[k];
        const crd_part* p = &w->n->parts[m < 0 ? ~m : m];
        if (crdi_part_kind_of(p)->stores) { return node; }
        node = p->nodes[(m < 0) == at_end ? 1 : 0];
    }
    return -1;
}

// A node has at most one branch with state to what is known, where that is possible: the last
// resistor of a ladder is one of its links, not part of a second branch of the node before.
static bool split_parallel(builder* b)
{
    const crdi_network* w = b->w;
    int32_t* count = b->queue; // not in use any more
    memset(count, 0, (size_t)b->n->node_count * sizeof *count);
    bool split = false;
    for (int pass = 0; pass < 2 && w->purpose == CRDI_NETWORK_STEPS; pass++) {
        for (int32_t k = 0; k < w->branches; k++) {
            const bool from = network_is_known(b, w->from[k]), to = network_is_known(b, w->to[k]);
            if (from == to || network_group_of(w, k) == 0) { continue; }
            const int32_t x = from ? w->to[k] : w->from[k];
            const int32_t inner = behind_resistors(w, k, from);
            if (pass == 0) {
                count[x] += inner < 0;
            } else if (inner >= 0 && count[x] == 0) {
                count[x] = 1; // the first one stays
            } else if (inner >= 0) {
                b->busy[inner] = true;
                split = true;
            }
        }
    }
    return split;
}

// Ends are nodes here. How many branches there are is known after the last pass: sorting them makes
// the lists that are kept.
static crd_status find_branches(builder* b)
{
    crdi_network* w = b->w;
    const crd_netlist* n = b->n;
    int32_t parts = 0;
    for (int32_t i = 0; i < n->part_count; i++) {
        parts += b->role[i] == CRDI_ROLE_BRANCH;
    }
    const size_t most = (size_t)parts;
    w->from = crdi_arena_new(&b->room, most, sizeof *w->from);
    w->to = crdi_arena_new(&b->room, most, sizeof *w->to);
    w->r = crdi_arena_new(&b->room, most, sizeof *w->r);
    w->l = crdi_arena_new(&b->room, most, sizeof *w->l);
    w->s = crdi_arena_new(&b->room, most, sizeof *w->s);
    w->first = crdi_arena_new(&b->room, most + 1, sizeof *w->first);
    w->member = crdi_arena_new(&b->room, most, sizeof *w->member);
    if (b->room.failed) { return CRD_E_MEMORY; }
    int32_t members = follow_all(b);
    if (split_parallel(b)) {
        memset(b->seen, 0, (size_t)n->part_count * sizeof *b->seen);
        memset(w->node_at, 0, (size_t)n->node_count * sizeof *w->node_at);
        members = follow_all(b);
    }
    return sort_branches(b, members);
}

// ---- numbers -----------------------------------------------------------------------------------

static crd_status number_potentials(builder* b)
{
    crdi_network* w = b->w;
    const crd_netlist* n = b->n;
    for (int32_t i = 1; i < n->node_count; i++) {
        if (b->parent_tie[i] < 0 && w->node_at[i] >= 0) { w->node_at[i] = w->unknowns++; }
    }
    const int32_t currents = w->unknowns;
    w->unknowns += w->rows;
    const int32_t ground = w->unknowns;
    w->node_at[0] = ground;
    w->root = crdi_arena_new(b->kept, (size_t)crdi_network_potentials(w), sizeof *w->root);
    w->row = crdi_arena_new(b->kept, (size_t)w->rows, sizeof *w->row);
    if (!w->root || !w->row) { return CRD_E_MEMORY; }
    for (int32_t i = 0; i < ground; i++) {
        w->root[i] = i;
    }
    w->root[ground] = -1;
    for (int32_t k = 0; k < w->ties; k++) {
        crdi_tie* t = &w->tie[k];
        const int32_t part = t->source;
        t->parent = w->node_at[t->parent];
        t->source = b->sourced[part];
        w->node_at[t->node] = ground + 1 + k;
        w->root[ground + 1 + k] = w->root[t->parent];
        w->home[part] = CRDI_HOME_TIE;
        w->home_index[part] = k;
    }
    for (int32_t i = 0; i < w->branches; i++) {
        w->from[i] = w->node_at[w->from[i]];
        w->to[i] = w->node_at[w->to[i]];
    }
    int32_t row = 0;
    for (int32_t i = 0; i < n->part_count; i++) {
        if (b->role[i] != CRDI_ROLE_ROW) { continue; }
        w->home[i] = CRDI_HOME_ROW;
        w->home_index[i] = row;
        w->row[row] = (crdi_row){.role = b->plain[i],
                                 .part = i,
                                 .unknown = currents + row,
                                 .source = b->sourced[i],
                                 .state = -1};
        row++;
    }
    return CRD_OK;
}

static int32_t at_node(const crdi_network* w, int32_t node)
{
    return node >= 0 ? w->node_at[node] : -1;
}

static int32_t row_at(const crdi_network* w, int32_t node)
{
    const int32_t root = w->root[w->node_at[node]];
    return root >= 0 ? root : crdi_network_ground(w);
}

// Potentials of what controls it, or the unknown that does; -1: nothing
static void find_control(const crdi_network* w, const crd_part* p, int32_t* c, int32_t* d)
{
    const crdi_part_control control = crdi_part_kind_of(p)->control;
    *c = *d = -1;
    if (control == CRDI_CONTROL_VOLTAGE) {
        *c = at_node(w, p->nodes[2]);
        *d = at_node(w, p->nodes[3]);
    }
    if (control == CRDI_CONTROL_CURRENT) { *c = crdi_network_current_unknown(w, p->refs[0]); }
}

static void fill_row(crdi_network* w, crdi_row* r, int32_t* state)
{
    const crd_part* p = &w->n->parts[r->part];
    const crdi_part_kind* k = crdi_part_kind_of(p);
    r->from = at_node(w, p->nodes[0]);
    r->to = at_node(w, p->nodes[1]);
    r->value = p->value;
    find_control(w, p, &r->c, &r->d);
    if (r->role != CRDI_ROLE_BRANCH) { return; }
    r->drop = k->drop;
    r->capacitor = k->stores == CRDI_STORES_VOLTAGE;
    if (k->stores) { r->state = (*state)++; }
}

static void fill_gain(crdi_network* w, crdi_gain* g, const crd_part* p)
{
    *g = (crdi_gain){.from = at_node(w, p->nodes[0]),
                     .to = at_node(w, p->nodes[1]),
                     .value = p->value,
                     .by_current = crdi_part_kind_of(p)->control == CRDI_CONTROL_CURRENT};
    find_control(w, p, &g->c, &g->d);
}

static crd_status fill_lists(builder* b)
{
    crdi_network* w = b->w;
    const crd_netlist* n = b->n;
    w->source = crdi_arena_new(b->kept, (size_t)w->sources, sizeof *w->source);
    w->gain = crdi_arena_new(b->kept, (size_t)w->gains, sizeof *w->gain);
    w->coupling = crdi_arena_new(b->kept, (size_t)w->couplings, sizeof *w->coupling);
    w->device = crdi_arena_new(b->kept, (size_t)w->devices, sizeof *w->device);
    w->flow = crdi_arena_new(b->kept, (size_t)w->flows, sizeof *w->flow);
    if (b->kept->failed) { return CRD_E_MEMORY; }
    int32_t gain = 0, coupling = 0, device = 0, flow = 0;
    w->states = w->branches - w->resistive;
    for (int32_t k = 0; k < w->rows; k++) {
        fill_row(w, &w->row[k], &w->states);
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (b->sourced[i] >= 0) { w->source[b->sourced[i]] = i; }
        if (b->role[i] == CRDI_ROLE_FLOW) {
            w->home[i] = CRDI_HOME_FLOW;
            w->home_index[i] = b->sourced[i];
            w->flow[flow++] = (crdi_flow){.from = row_at(w, p->nodes[0]),
                                          .to = row_at(w, p->nodes[1]),
                                          .source = b->sourced[i]};
        } else if (b->role[i] == CRDI_ROLE_GAIN) {
            w->home[i] = CRDI_HOME_GAIN;
            w->home_index[i] = gain;
            fill_gain(w, &w->gain[gain++], p);
        } else if (b->role[i] == CRDI_ROLE_DEVICE) {
            w->home[i] = CRDI_HOME_DEVICE;
            w->home_index[i] = device;
            w->device[device++] = i;
        } else if (is_law_row(b, i)) {
            w->device[device++] = i;
        } else if (crdi_part_kind_of(p)->couples && w->purpose == CRDI_NETWORK_STEPS) {
            const double la = n->parts[p->refs[0]].value, lb = n->parts[p->refs[1]].value;
            w->coupling[coupling++] = (crdi_coupling){.a = w->home_index[p->refs[0]],
                                                      .b = w->home_index[p->refs[1]],
                                                      .value = crdi_part_mutual(p, la, lb)};
        }
    }
    return CRD_OK;
}

// Who touches the nodes of ties.
static crd_status fill_touches(builder* b)
{
    crdi_network* w = b->w;
    const crd_netlist* n = b->n;
    w->touch_first = crdi_arena_new(b->kept, (size_t)w->ties + 1, sizeof *w->touch_first);
    if (!w->touch_first) { return CRD_E_MEMORY; }
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < n->part_count; i++) {
            const crd_part* p = &n->parts[i];
            if (crdi_part_kind_of(p)->couples || p->nodes[0] == p->nodes[1]) { continue; }
            for (int k = 0; k < 2; k++) {
                const int32_t t = b->parent_tie[p->nodes[k]];
                if (t < 0 || (b->role[i] == CRDI_ROLE_TIE && w->home_index[i] == t)) { continue; }
                if (pass == 0) {
                    w->touch_first[t + 1]++;
                } else {
                    w->touch[w->touch_first[t]++] = k == 0 ? i : ~i;
                }
            }
        }
        if (pass == 0) {
            for (int32_t t = 0; t < w->ties; t++) {
                w->touch_first[t + 1] += w->touch_first[t];
            }
            w->touch = crdi_arena_new(b->kept, (size_t)w->touch_first[w->ties], sizeof *w->touch);
            if (!w->touch) { return CRD_E_MEMORY; }
        }
    }
    for (int32_t t = w->ties; t > 0; t--) { // pass 1 moved the starts to the ends
        w->touch_first[t] = w->touch_first[t - 1];
    }
    w->touch_first[0] = 0;
    return CRD_OK;
}

// ---- all of it ---------------------------------------------------------------------------------

static crd_status network_make_room(builder* b)
{
    crdi_network* w = b->w;
    const size_t parts = (size_t)b->n->part_count, nodes = (size_t)b->n->node_count;
    b->role = crdi_arena_new(&b->room, parts, 1);
    b->plain = crdi_arena_new(&b->room, parts, 1);
    b->wanted = crdi_arena_new(&b->room, parts, 1);
    b->seen = crdi_arena_new(&b->room, parts, sizeof *b->seen);
    b->sourced = crdi_arena_new(&b->room, parts, sizeof *b->sourced);
    b->busy = crdi_arena_new(&b->room, nodes, 1);
    b->degree = crdi_arena_new(&b->room, nodes, sizeof *b->degree);
    b->meets = crdi_arena_new(&b->room, 2 * nodes, sizeof *b->meets);
    b->tree = crdi_arena_new(&b->room, nodes, sizeof *b->tree);
    b->queue = crdi_arena_new(&b->room, nodes, sizeof *b->queue);
    b->hang_first = crdi_arena_new(&b->room, nodes + 1, sizeof *b->hang_first);
    b->parent_tie = crdi_arena_new(&b->room, nodes, sizeof *b->parent_tie);
    w->node_at = crdi_arena_new(b->kept, nodes, sizeof *w->node_at);
    w->home = crdi_arena_new(b->kept, parts, 1);
    w->home_index = crdi_arena_new(b->kept, parts, sizeof *w->home_index);
    if (b->room.failed || b->kept->failed) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < parts; i++) {
        b->sourced[i] = -1;
    }
    return CRD_OK;
}

static crd_status network_build(builder* b)
{
    crd_status st = CRD_OK;
    CRD_TRY(network_make_room(b));
    CRD_TRY(find_roles(b));
    CRD_TRY(list_ties(b));
    grow_trees(b);
    CRD_TRY(find_branches(b));
    CRD_TRY(number_potentials(b));
    CRD_TRY(fill_lists(b));
    CRD_TRY(fill_touches(b));
fail:
    return st;
}

crd_status crdi_network_init(crdi_network* w, crd_arena* a, const crd_netlist* n,
                             crdi_network_for purpose)
{
    *w = (crdi_network){.n = n, .purpose = purpose};
    builder b = {.w = w, .n = n, .kept = a};
    crd_arena_init(&b.room, a->ctx);
    const crd_status st = network_build(&b);
    crd_arena_clear(&b.room);
    return st;
}

static void network_move(int32_t* at, int32_t unknowns, const int32_t* to)
{
    if (*at >= 0 && *at < unknowns) { *at = to[*at]; }
}

void crdi_network_renumber(crdi_network* w, const int32_t* to)
{
    const int32_t n = w->unknowns;
    for (int32_t k = 0; k < w->branches; k++) {
        network_move(&w->from[k], n, to);
        network_move(&w->to[k], n, to);
    }
    for (int32_t k = 0; k < w->ties; k++) {
        network_move(&w->tie[k].parent, n, to);
        network_move(&w->root[n + 1 + k], n, to);
    }
    for (int32_t k = 0; k < w->rows; k++) {
        crdi_row* r = &w->row[k];
        network_move(&r->unknown, n, to);
        network_move(&r->from, n, to);
        network_move(&r->to, n, to);
        network_move(&r->c, n, to);
        network_move(&r->d, n, to);
    }
    for (int32_t k = 0; k < w->gains; k++) {
        network_move(&w->gain[k].from, n, to);
        network_move(&w->gain[k].to, n, to);
        network_move(&w->gain[k].c, n, to);
        network_move(&w->gain[k].d, n, to);
    }
    for (int32_t k = 0; k < w->flows; k++) {
        network_move(&w->flow[k].from, n, to);
        network_move(&w->flow[k].to, n, to);
    }
    for (int32_t k = 0; k < w->n->node_count; k++) {
        network_move(&w->node_at[k], n, to);
    }
}
