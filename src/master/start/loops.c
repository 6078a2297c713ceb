// Consistent values at the start. Outputs may depend on inputs without delay, and inputs on other
// units' outputs: nodes are the connected inputs and outputs, edges are connections and
// feedthrough. Strongly connected components, visited in topological order, are either one node,
// whose value just moves on, or an algebraic loop u = G(u) over its real inputs, which Newton's
// method solves: (I - dG/du) du = G(u) - u. Integers, Booleans and texts in a loop move when its
// real numbers fit together, until nothing changes any more.
#include "master/master.h"

#include "shared/num.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    crd_master* m;
    int node_count;
    int* in_first;   // first input node of a member; nodes follow its binding's variables
    int* out_first;  // likewise outputs
    int* owner;      // member of a node
    int* component;  // of a node
    bool* fresh;     // per member: outputs belong to the inputs that were set
    bool* dirty;     // per member: inputs changed since they were set
    int* link_first; // links into a node, as a list of links sorted by target node
    int* link;
} start;

static int node_of_target(const start* s, const crdi_connection* k)
{
    return s->in_first[k->to.member] + k->to.position;
}

static int node_of_source(const start* s, const crdi_connection* k)
{
    return s->out_first[k->from.member] + k->from.position;
}

static crd_status push_inputs(start* s, int member)
{
    crdi_member* p = &s->m->plan->members[member];
    if (!s->dirty[member] || !p->in) { return CRD_OK; }
    s->dirty[member] = false;
    s->fresh[member] = false;
    s->m->running = member;
    return crdi_member_left(s->m, member, p->unit->ops->set(p->unit, p->in, &p->inputs));
}

static crd_status pull_outputs(start* s, int member)
{
    crdi_member* p = &s->m->plan->members[member];
    const crd_status st = push_inputs(s, member);
    if (st < 0 || s->fresh[member] || !p->out) { return st; }
    s->fresh[member] = true;
    s->m->running = member;
    return crdi_member_left(s->m, member, p->unit->ops->get(p->unit, p->out, &p->outputs));
}

// ---- the graph ---------------------------------------------------------------------------------

// Links are moved one by one here, off the step path, straight from slot to slot.
static crd_status move_link(start* s, const crdi_connection* k, bool* changed)
{
    crd_status st = CRD_OK;
    crdi_member *a = &s->m->plan->members[k->from.member], *b = &s->m->plan->members[k->to.member];
    const int from = a->unit->info.variables[k->from.variable].type;
    const int to = b->unit->info.variables[k->to.variable].type;
    crdi_conversion c = {.from_type = (uint8_t)from,
                         .to_type = (uint8_t)to,
                         .gain = k->gain,
                         .offset = k->offset,
                         .transform = k->transform,
                         .mapping = k->mapping};
    c.from = crdi_slot(&a->outputs, crd_type_kind(from), k->from.slot);
    c.to = crdi_slot(&b->inputs, crd_type_kind(to), k->to.slot);
    s->dirty[k->to.member] = true;
    if (crd_type_kind(from) == CRD_BYTES) {
        const crd_bytes *x = c.from, *y = c.to;
        const bool same = x->length == y->length && memcmp(x->data, y->data, x->length) == 0;
        if (!same) { *changed = true; }
        st = crdi_convert_bytes(b->unit->ctx, &c);
        return st < 0 ? crdi_member_failed(s->m, k->to.member, st) : CRD_OK;
    }
    const uint64_t before = *(const uint64_t*)c.to; // or the bits of a double
    crdi_convert(&c);
    if (*(const uint64_t*)c.to != before) { *changed = true; }
    return CRD_OK;
}

static crd_status count_nodes(start* s)
{
    crd_master* m = s->m;
    const size_t n = (size_t)m->plan->member_count;
    s->in_first = crdi_arena_new(&m->arena, n, sizeof(int));
    s->out_first = crdi_arena_new(&m->arena, n, sizeof(int));
    s->fresh = crdi_arena_new(&m->arena, n, sizeof(bool));
    s->dirty = crdi_arena_new(&m->arena, n, sizeof(bool));
    if (!s->in_first || !s->out_first || !s->fresh || !s->dirty) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->plan->member_count; i++) {
        const crdi_member* p = &m->plan->members[i];
        s->in_first[i] = s->node_count;
        s->node_count += p->in ? p->in->count : 0;
        s->out_first[i] = s->node_count;
        s->node_count += p->out ? p->out->count : 0;
    }
    const size_t nodes = (size_t)s->node_count + 1;
    s->owner = crdi_arena_new(&m->arena, nodes, sizeof(int));
    s->component = crdi_arena_new(&m->arena, nodes, sizeof(int));
    s->link_first = crdi_arena_new(&m->arena, nodes + 1, sizeof(int));
    s->link = crdi_arena_new(&m->arena, (size_t)m->plan->connection_count, sizeof(int));
    if (!s->owner || !s->component || !s->link_first || !s->link) { return CRD_E_MEMORY; }
    for (int i = 0; i < m->plan->member_count; i++) {
        const int end = i + 1 < m->plan->member_count ? s->in_first[i + 1] : s->node_count;
        for (int j = s->in_first[i]; j < end; j++) {
            s->owner[j] = i;
        }
    }
    return CRD_OK;
}

static bool is_input(const start* s, int node)
{
    return node < s->out_first[s->owner[node]];
}

static int32_t loops_variable_of(const start* s, int node)
{
    const int member = s->owner[node];
    const crdi_member* p = &s->m->plan->members[member];
    return is_input(s, node) ? p->in->variables[node - s->in_first[member]]
                             : p->out->variables[node - s->out_first[member]];
}

// Links by target node, so that a node finds its sources.
static void sort_links(start* s)
{
    const crd_master* m = s->m;
    for (int i = 0; i < m->plan->connection_count; i++) {
        s->link_first[node_of_target(s, &m->plan->connections[i]) + 2]++;
    }
    for (int i = 2; i <= s->node_count; i++) {
        s->link_first[i] += s->link_first[i - 1];
    }
    for (int i = 0; i < m->plan->connection_count; i++) {
        s->link[s->link_first[node_of_target(s, &m->plan->connections[i]) + 1]++] = i;
    }
}

// Edges out of every node: an output feeds inputs along links, an input acts on outputs.
static crd_status build_edges(start* s, int** first_out, int** edge_out, size_t* capacity)
{
    crd_master* m = s->m;
    int* first = crdi_new_array(m->ctx, (size_t)s->node_count + 2, sizeof *first);
    int* edge = NULL;
    int count = 0;
    *first_out = first;
    if (!first) { return CRD_E_MEMORY; }
    // Backwards along the links: edges go from a node to those it needs; the components then come
    // in the order of evaluation.
    for (int node = 0; node < s->node_count; node++) {
        first[node] = count;
        const int member = s->owner[node];
        const crdi_member* p = &m->plan->members[member];
        const int need = is_input(s, node) ? s->link_first[node + 1] - s->link_first[node]
                         : p->in           ? p->in->count
                                           : 0;
        int* grown =
            crdi_grow(m->ctx, edge, capacity, (size_t)count + (size_t)need + 1, sizeof *edge);
        if (!grown) { return CRD_E_MEMORY; }
        *edge_out = edge = grown;
        if (is_input(s, node)) {
            for (int i = s->link_first[node]; i < s->link_first[node + 1]; i++) {
                edge[count++] = node_of_source(s, &m->plan->connections[s->link[i]]);
            }
        } else {
            for (int i = 0; i < need; i++) {
                if (crd_unit_depends(p->unit, loops_variable_of(s, node), p->in->variables[i],
                                     true)) {
                    edge[count++] = s->in_first[member] + i;
                }
            }
        }
    }
    first[s->node_count] = count;
    return CRD_OK;
}

static crd_status visit_node(start* s, int node)
{
    crd_status st = CRD_OK;
    bool changed = false;
    if (!is_input(s, node)) { return pull_outputs(s, s->owner[node]); }
    for (int i = s->link_first[node]; i < s->link_first[node + 1]; i++) {
        const crdi_connection* k = &s->m->plan->connections[s->link[i]];
        // An earlier visit may have read the source before all of its inputs were there.
        CRD_TRY(pull_outputs(s, k->from.member));
        CRD_TRY(move_link(s, k, &changed));
    }
fail:
    return st;
}

// ---- loops -------------------------------------------------------------------------------------

enum { MOST_UNKNOWNS = 2000, MOST_HALVINGS = 8 }; // of Newton's method; its matrix is dense

/// The nodes of one component and its real unknowns.
typedef struct {
    start* s;
    const int* nodes;
    int count;
    int* unknown; // link index per unknown
    int n;
    int* discrete; // link index of those that carry no real numbers
    int discrete_count;
    double *u, *g, *jacobian, *column;
    int32_t* pivots;
} loop;

static double* input_of(const loop* l, int i)
{
    const crdi_connection* k = &l->s->m->plan->connections[l->unknown[i]];
    return &l->s->m->plan->members[k->to.member].inputs.real[k->to.slot];
}

// g = G(u): set the inputs of the loop, read its outputs, move them along its links.
static crd_status loops_evaluate(loop* l, const double* u, double* g)
{
    crd_status st = CRD_OK;
    start* s = l->s;
    for (int i = 0; i < l->n; i++) {
        double* input = input_of(l, i);
        if (*input == u[i]) { continue; } // a column of the Jacobian concerns one unit
        *input = u[i];
        s->dirty[s->m->plan->connections[l->unknown[i]].to.member] = true;
    }
    for (int i = 0; i < l->count; i++) {
        if (!is_input(s, l->nodes[i])) { CRD_TRY(pull_outputs(s, s->owner[l->nodes[i]])); }
    }
    for (int i = 0; i < l->n; i++) {
        const crdi_connection* k = &s->m->plan->connections[l->unknown[i]];
        const crdi_member* a = &s->m->plan->members[k->from.member];
        g[i] = k->gain * a->outputs.real[k->from.slot] + k->offset;
    }
fail:
    return st;
}

// Column j of dG/du by the units' own derivatives. false: not offered.
static bool directional_column(loop* l, int j, double* column)
{
    start* s = l->s;
    crd_master* m = s->m;
    const crdi_connection* in = &m->plan->connections[l->unknown[j]];
    crdi_member* p = &m->plan->members[in->to.member];
    crd_unit* u = p->unit;
    if (!(u->info.flags & CRD_UNIT_HAS_DIRECTIONAL)) { return false; }
    if (u->info.variables[in->to.variable].size != 1) { return false; }
    const int32_t known = in->to.variable;
    const double seed = 1;
    for (int i = 0; i < l->n; i++) {
        const crdi_connection* k = &m->plan->connections[l->unknown[i]];
        column[i] = 0;
        if (k->from.member != in->to.member) { continue; }
        if (!crd_unit_depends(u, k->from.variable, known, true)) { continue; }
        const int32_t unknown = k->from.variable;
        double d = 0;
        if (u->info.variables[unknown].size != 1) { return false; }
        m->running = in->to.member;
        const crd_status st =
            u->ops->derivatives->directional(u, &unknown, 1, &known, 1, &seed, &d);
        m->running = -1;
        if (st < 0) { return false; }
        column[i] = k->gain * d;
    }
    return true;
}

// jacobian = I - dG/du, row-major; finite differences where a unit offers no derivatives.
static crd_status build_jacobian(loop* l)
{
    const int n = l->n;
    for (int j = 0; j < n; j++) {
        if (!directional_column(l, j, l->column)) {
            const double u = l->u[j];
            const double du = sqrt(DBL_EPSILON) * fmax(fabs(u), 1e-3);
            l->u[j] = u + du;
            const crd_status st = loops_evaluate(l, l->u, l->column);
            l->u[j] = u;
            if (st < 0) { return st; }
            for (int i = 0; i < n; i++) {
                l->column[i] = (l->column[i] - l->g[i]) / du;
            }
        }
        for (int i = 0; i < n; i++) {
            l->jacobian[i * n + j] = (i == j ? 1 : 0) - l->column[i];
        }
    }
    return CRD_OK;
}

// Relative to values above 1; infinite where G has no value.
static double residual_of(const loop* l)
{
    double worst = 0;
    for (int i = 0; i < l->n; i++) {
        if (!isfinite(l->g[i])) { return INFINITY; }
        worst = fmax(worst, fabs(l->g[i] - l->u[i]) / fmax(1, fmax(fabs(l->g[i]), fabs(l->u[i]))));
    }
    return worst;
}

static crd_status fail_not_finite(const loop* l)
{
    int i = 0;
    while (i + 1 < l->n && isfinite(l->g[i])) {
        i++;
    }
    const crdi_connection* k = &l->s->m->plan->connections[l->unknown[i]];
    return crdi_fail(l->s->m->ctx, CRD_E_CONVERGENCE,
                     "initialisation: %s.%s is %g inside an algebraic loop",
                     l->s->m->plan->members[k->from.member].unit->name, k->spec->from, l->g[i]);
}

// max |G(u) - u|. Newton's method goes down in it, not in the relative residual: that one also
// falls when u runs away.
static double distance_of(const loop* l)
{
    double worst = 0;
    for (int i = 0; i < l->n; i++) {
        if (!isfinite(l->g[i])) { return INFINITY; }
        worst = fmax(worst, fabs(l->g[i] - l->u[i]));
    }
    return worst;
}

// Newton's method, halving the step while it does not lead closer.
static crd_status iterate_newton(loop* l, crd_loop_report* r)
{
    const crd_run_spec* run = &l->s->m->plan->sys->run;
    crd_status st = CRD_OK;
    CRD_TRY(loops_evaluate(l, l->u, l->g));
    r->residual = residual_of(l);
    while (r->residual > run->loop_tolerance && r->iterations < run->loop_iterations) {
        if (!isfinite(r->residual)) { return fail_not_finite(l); }
        CRD_TRY(build_jacobian(l));
        for (int i = 0; i < l->n; i++) {
            l->column[i] = l->g[i] - l->u[i];
        }
        if (crdi_num_solve(l->n, l->jacobian, l->column, l->pivots) < 0) {
            // Singular here: a step of the fixed-point iteration leads elsewhere.
            for (int i = 0; i < l->n; i++) {
                l->column[i] = l->g[i] - l->u[i];
            }
        }
        const double before = distance_of(l);
        double move = 1; // relative to the full step: 1, then back by a half, a quarter, ...
        for (int half = 0; half <= MOST_HALVINGS; half++) {
            for (int i = 0; i < l->n; i++) {
                l->u[i] += move * l->column[i];
            }
            CRD_TRY(loops_evaluate(l, l->u, l->g));
            if (distance_of(l) < before) { break; }
            move = half ? move / 2 : -0.5;
        }
        r->residual = residual_of(l);
        r->iterations++;
    }
fail:
    return st;
}

// Too many unknowns for a matrix: one member after the other takes what is there, until the real
// inputs rest.
static crd_status iterate_fixed_point(loop* l, crd_loop_report* r)
{
    const crd_run_spec* run = &l->s->m->plan->sys->run;
    crd_status st = CRD_OK;
    for (r->residual = INFINITY;
         r->residual > run->loop_tolerance && r->iterations < run->loop_iterations;
         r->iterations++) {
        for (int i = 0; i < l->n; i++) {
            l->u[i] = *input_of(l, i);
        }
        for (int i = 0; i < l->count; i++) {
            CRD_TRY(visit_node(l->s, l->nodes[i]));
        }
        for (int i = 0; i < l->n; i++) {
            l->g[i] = *input_of(l, i);
        }
        r->residual = residual_of(l);
    }
fail:
    return st;
}

static crd_status move_discrete(loop* l, bool* changed)
{
    start* s = l->s;
    crd_status st = CRD_OK;
    *changed = false;
    for (int i = 0; i < l->discrete_count; i++) {
        const crdi_connection* k = &s->m->plan->connections[l->discrete[i]];
        CRD_TRY(pull_outputs(s, k->from.member));
        CRD_TRY(move_link(s, k, changed));
    }
fail:
    return st;
}

static crd_status loops_iterate(loop* l, crd_loop_report* r)
{
    crd_status st = CRD_OK;
    const int most =
        l->s->m->plan->sys->run.loop_iterations + l->count; // a value may go round once
    bool changed = true;
    int rounds = 0;
    for (; changed && rounds < most; rounds++) {
        if (l->n) { CRD_TRY(r->newton ? iterate_newton(l, r) : iterate_fixed_point(l, r)); }
        if (r->residual > l->s->m->plan->sys->run.loop_tolerance) { break; }
        CRD_TRY(move_discrete(l, &changed));
    }
    if (!l->n) { r->iterations = rounds; }
    if (changed && r->residual <= l->s->m->plan->sys->run.loop_tolerance) {
        return crdi_fail(l->s->m->ctx, CRD_E_CONVERGENCE,
                         "initialisation: the values in the loop over %s that are not real numbers "
                         "still change after %d rounds",
                         r->text, rounds);
    }
fail:
    return st;
}

static const char* describe_loop(const loop* l)
{
    crd_master* m = l->s->m;
    char text[400];
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < l->count && n < sizeof text - 1; i++) {
        const int node = l->nodes[i];
        const crd_unit* u = m->plan->members[l->s->owner[node]].unit;
        const int more = snprintf(text + n, sizeof text - n, "%s%s.%s", i ? ", " : "", u->name,
                                  u->info.variables[loops_variable_of(l->s, node)].name);
        n += more > 0 ? (size_t)more : 0;
    }
    if (n >= sizeof text) { memcpy(text + sizeof text - 4, "...", 4); }
    return crdi_arena_text(&m->arena, text, strlen(text));
}

// The loop's real links become unknowns; those from outside move now.
static crd_status collect_unknowns(loop* l, int component)
{
    start* s = l->s;
    crd_master* m = s->m;
    bool changed = false;
    for (int i = 0; i < l->count; i++) {
        const int node = l->nodes[i];
        for (int k = s->link_first[node]; is_input(s, node) && k < s->link_first[node + 1]; k++) {
            const crdi_connection* link = &m->plan->connections[s->link[k]];
            if (s->component[node_of_source(s, link)] != component) {
                const crd_status st = move_link(s, link, &changed);
                if (st < 0) { return st; }
                continue;
            }
            const crdi_member* a = &m->plan->members[link->from.member];
            const crdi_member* b = &m->plan->members[link->to.member];
            if (crd_type_kind(a->unit->info.variables[link->from.variable].type) == CRD_REAL &&
                crd_type_kind(b->unit->info.variables[link->to.variable].type) == CRD_REAL) {
                l->unknown[l->n++] = s->link[k];
            } else {
                l->discrete[l->discrete_count++] = s->link[k];
            }
        }
    }
    return CRD_OK;
}

static crd_status solve_loop(start* s, const int* nodes, int count, int component)
{
    crd_master* m = s->m;
    loop l = {.s = s, .nodes = nodes, .count = count};
    int links = 0;
    for (int i = 0; i < count; i++) {
        links += s->link_first[nodes[i] + 1] - s->link_first[nodes[i]];
    }
    l.unknown = crdi_arena_new(&m->arena, (size_t)links, sizeof *l.unknown);
    l.discrete = crdi_arena_new(&m->arena, (size_t)links, sizeof *l.discrete);
    if (!l.unknown || !l.discrete) { return CRD_E_MEMORY; }
    crd_status st = collect_unknowns(&l, component);
    if (st < 0) { return st; }
    const size_t n = (size_t)l.n;
    const bool newton = n > 0 && n <= MOST_UNKNOWNS;
    l.u = crdi_arena_new(&m->arena, n, sizeof *l.u);
    l.g = crdi_arena_new(&m->arena, n, sizeof *l.g);
    l.column = crdi_arena_new(&m->arena, n, sizeof *l.column);
    l.jacobian = crdi_arena_new(&m->arena, newton ? n * n : 0, sizeof *l.jacobian);
    l.pivots = crdi_arena_new(&m->arena, n, sizeof *l.pivots);
    if (!l.u || !l.g || !l.column || !l.jacobian || !l.pivots) { return CRD_E_MEMORY; }
    for (int i = 0; i < l.n; i++) {
        l.u[i] = *input_of(&l, i);
    }
    crd_loop_report* r = crdi_verdict_add_loop(m);
    *r = (crd_loop_report){.text = describe_loop(&l), .size = l.n, .newton = newton};
    if (!r->text) { return CRD_E_MEMORY; }
    st = loops_iterate(&l, r);
    r->converged = st >= 0 && r->residual <= m->plan->sys->run.loop_tolerance;
    if (st < 0) { return st; }
    if (!r->converged) {
        return crdi_fail(m->ctx, CRD_E_CONVERGENCE,
                         "initialisation: the algebraic loop over %s did not converge: residual %g "
                         "after %d iterations, wanted %g (run.initialization)",
                         r->text, r->residual, r->iterations, m->plan->sys->run.loop_tolerance);
    }
    crdi_log(m->log, CRD_LOG_INFO,
             "initialisation: loop over %s solved by %s in %d iterations, residual %g", r->text,
             r->newton ? "Newton" : "fixed point", r->iterations, r->residual);
    return CRD_OK;
}

// Nodes sorted by component, which are in the order of evaluation.
static crd_status visit_components(start* s, int components)
{
    crd_master* m = s->m;
    crd_status st = CRD_OK;
    int* first = crdi_new_array(m->ctx, (size_t)components + 2, sizeof *first);
    int* nodes = crdi_new_array(m->ctx, (size_t)s->node_count + 1, sizeof *nodes);
    if (!first || !nodes || crdi_verdict_open_loops(m, components) < 0) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    for (int i = 0; i < s->node_count; i++) {
        first[s->component[i] + 2]++;
    }
    for (int i = 2; i <= components; i++) {
        first[i] += first[i - 1];
    }
    for (int i = 0; i < s->node_count; i++) {
        nodes[first[s->component[i] + 1]++] = i;
    }
    for (int c = 0; c < components; c++) {
        const int count = first[c + 1] - first[c];
        if (count == 1) {
            CRD_TRY(visit_node(s, nodes[first[c]]));
        } else {
            CRD_TRY(solve_loop(s, nodes + first[c], count, c));
        }
    }
    for (int i = 0; i < m->plan->member_count; i++) {
        CRD_TRY(push_inputs(s, i));
    }
fail:
    crd_free(m->ctx, first);
    crd_free(m->ctx, nodes);
    return st;
}

crd_status crdi_start_solve(crd_master* m)
{
    crd_status st = CRD_OK;
    start s = {.m = m};
    int *first = NULL, *edge = NULL;
    size_t capacity = 0;
    CRD_TRY(count_nodes(&s));
    sort_links(&s);
    CRD_TRY(build_edges(&s, &first, &edge, &capacity));
    const int components = crdi_components(m->ctx, s.node_count, first, edge, s.component);
    if (components < 0) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    CRD_TRY(visit_components(&s, components));
fail:
    crd_free(m->ctx, first);
    crd_free(m->ctx, edge);
    return st;
}
