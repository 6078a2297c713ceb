// Which variables of each unit are exchanged, and where their values stand.
#include "master/plan/plan.h"

#include <stdlib.h>
#include <string.h>

static int by_number(const void* a, const void* b)
{
    const int32_t x = *(const int32_t*)a, y = *(const int32_t*)b;
    return x < y ? -1 : x > y;
}

static int32_t unique(int32_t* list, int32_t count)
{
    int32_t n = 0;
    if (count) { qsort(list, (size_t)count, sizeof *list, by_number); }
    for (int32_t i = 0; i < count; i++) {
        if (n == 0 || list[n - 1] != list[i]) { list[n++] = list[i]; }
    }
    return n;
}

// position[variable] in a binding, for the variables that are in it
static void note_positions(const crd_binding* b, int32_t* position)
{
    for (int32_t i = 0; b && i < b->count; i++) {
        position[b->variables[i]] = i;
    }
}

// An input whose derivatives the unit is not told rests for it over the step. What an output's
// derivatives are worth then: y' = C (A x + B u) + D u' needs u' only with feedthrough, y'' needs
// it always. With a known gain D u' is added by the master.
static int worth_of_rates(const crdi_plan* plan, const crdi_member* p, const crdi_connection* out,
                          const int* incoming, int in_count)
{
    const uint32_t flags = p->unit->info.flags;
    const bool gain = !(flags & CRD_UNIT_CAN_REFRESH) && (flags & CRD_UNIT_HAS_DIRECTIONAL);
    int order = 2;
    for (int i = 0; i < in_count; i++) {
        const crdi_connection* k = &plan->connections[incoming[i]];
        if (!k->real) { continue; }
        int given = k->kind == CRDI_PREDICT ? crdi_prediction_order(plan, k) : 0;
        given = given < p->slope_order ? given : p->slope_order;
        const bool feeds = crd_unit_depends(p->unit, out->from.variable, k->to.variable, false);
        given += gain || !feeds;
        order = given < order ? given : order;
    }
    return order;
}

static crd_status bind_member(crdi_plan* plan, crdi_member* p, int32_t* list, const int* incoming,
                              int in_count, const int* outgoing, int out_count)
{
    crd_status st = CRD_OK;
    crd_unit* u = p->unit;
    int32_t* position = NULL;
    bool needs_rates = false;
    for (int i = 0; i < in_count; i++) {
        list[i] = plan->connections[incoming[i]].to.variable;
    }
    const int32_t in = unique(list, in_count);
    if (in) {
        CRD_TRY(crd_binding_create(u, list, in, &p->in));
        CRD_TRY(crdi_values_create(plan->arena, p->in, &p->inputs));
    }
    for (int i = 0; i < out_count; i++) {
        list[i] = plan->connections[outgoing[i]].from.variable;
    }
    int wanted = out_count;
    for (int i = 0; i < plan->read_count; i++) {
        if (&plan->members[plan->read[i].member] == p) { list[wanted++] = plan->read[i].variable; }
    }
    const int32_t out = unique(list, wanted);
    if (out) {
        CRD_TRY(crd_binding_create(u, list, out, &p->out));
        CRD_TRY(crdi_values_create(plan->arena, p->out, &p->outputs));
        plan->output_count += (size_t)p->out->real_count;
    }

    position = crdi_new_array(plan->ctx, (size_t)u->info.variable_count, sizeof *position);
    if (!position) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    note_positions(p->in, position);
    for (int i = 0; i < in_count; i++) {
        crdi_connection* k = &plan->connections[incoming[i]];
        k->to.position = position[k->to.variable];
        k->to.slot = p->in->offsets[k->to.position] + k->to.element;
        const int order = k->slope                  ? 1
                          : k->kind == CRDI_PREDICT ? crdi_prediction_order(plan, k)
                                                    : 0;
        if (order > p->slope_order) { p->slope_order = order; }
    }
    note_positions(p->out, position);
    for (int i = 0; i < out_count; i++) {
        crdi_connection* k = &plan->connections[outgoing[i]];
        k->from.position = position[k->from.variable];
        k->from.slot = p->out->offsets[k->from.position] + k->from.element;
        const bool flows = k->kind == CRDI_PREDICT;
        p->feeds_flow = p->feeds_flow || flows;
        const bool values = k->spec->predict == CRD_PREDICTION_LINEAR ||
                            k->spec->predict == CRD_PREDICTION_QUADRATIC;
        needs_rates = needs_rates || (flows && (plan->iterated || !values));
    }
    if (p->slope_order > u->info.max_input_order) { p->slope_order = u->info.max_input_order; }
    u->input_order = p->slope_order;
    for (int d = 0; d < p->slope_order; d++) {
        p->slopes[d] = crdi_arena_new(plan->arena, (size_t)p->in->real_count, sizeof(double));
        if (!p->slopes[d]) { st = CRD_E_MEMORY; }
    }
    for (int d = 0; needs_rates && d < 2 && d < u->info.max_output_order; d++) {
        p->rates[d] = crdi_arena_new(plan->arena, (size_t)p->out->real_count, sizeof(double));
        if (!p->rates[d]) { st = CRD_E_MEMORY; }
    }
    // A unit with a step of its own may make an odd number of them.
    if (plan->samples_middle && p->feeds_flow && !(p->step > 0) &&
        (u->info.flags & CRD_UNIT_CAN_VARY_STEP)) {
        p->middles = crdi_arena_new(plan->arena, (size_t)p->out->real_count, sizeof(double));
        if (!p->middles) { st = CRD_E_MEMORY; }
    }
fail:
    crd_free(plan->ctx, position);
    return st < 0 ? crdi_member_refused(plan->ctx, p, st) : CRD_OK;
}

// Links sorted by member: list[first[i]] ... list[first[i+1]-1] belong to member i.
static void sort_by_member(const crdi_plan* plan, bool target, int* first, int* list)
{
    memset(first, 0, ((size_t)plan->member_count + 2) * sizeof *first);
    for (int i = 0; i < plan->connection_count; i++) {
        first[(target ? plan->connections[i].to.member : plan->connections[i].from.member) + 2]++;
    }
    for (int i = 2; i <= plan->member_count; i++) {
        first[i] += first[i - 1];
    }
    for (int i = 0; i < plan->connection_count; i++) {
        list[first[(target ? plan->connections[i].to.member : plan->connections[i].from.member) +
                   1]++] = i;
    }
}

static void find_rate_orders(crdi_plan* plan, const int* in_first, const int* in)
{
    for (int i = 0; i < plan->connection_count; i++) {
        crdi_connection* k = &plan->connections[i];
        const int m = k->from.member;
        const crdi_member* p = &plan->members[m];
        if (!p->rates[0]) { continue; }
        k->rate_order = worth_of_rates(plan, p, k, in + in_first[m], in_first[m + 1] - in_first[m]);
    }
}

// The real outputs of all units in one row: they are looked through after every tick.
static crd_status gather_outputs(crdi_plan* plan)
{
    plan->outputs = crdi_arena_new(plan->arena, plan->output_count, sizeof *plan->outputs);
    if (!plan->outputs) { return CRD_E_MEMORY; }
    double* next = plan->outputs;
    for (int i = 0; i < plan->member_count; i++) {
        crdi_member* p = &plan->members[i];
        if (!p->out) { continue; }
        p->outputs.real = next;
        next += p->out->real_count;
    }
    return CRD_OK;
}

crd_status crdi_plan_bind(crdi_plan* plan)
{
    crd_status st = CRD_E_MEMORY;
    const size_t members = (size_t)plan->member_count + 2,
                 connections = (size_t)plan->connection_count + 1;
    int* in_first = crdi_new_array(plan->ctx, members, sizeof *in_first);
    int* out_first = crdi_new_array(plan->ctx, members, sizeof *out_first);
    int* in = crdi_new_array(plan->ctx, connections, sizeof *in);
    int* out = crdi_new_array(plan->ctx, connections, sizeof *out);
    int32_t* list = crdi_new_array(plan->ctx, connections + (size_t)plan->read_count, sizeof *list);
    if (!in_first || !out_first || !in || !out || !list) { goto fail; }
    sort_by_member(plan, true, in_first, in);
    sort_by_member(plan, false, out_first, out);
    for (int i = 0; i < plan->member_count; i++) {
        CRD_TRY(bind_member(plan, &plan->members[i], list, in + in_first[i],
                            in_first[i + 1] - in_first[i], out + out_first[i],
                            out_first[i + 1] - out_first[i]));
    }
    find_rate_orders(plan, in_first, in);
    st = gather_outputs(plan);
fail:
    crd_free(plan->ctx, in_first);
    crd_free(plan->ctx, out_first);
    crd_free(plan->ctx, in);
    crd_free(plan->ctx, out);
    crd_free(plan->ctx, list);
    return st;
}

crd_status crdi_plan_lower_orders(crdi_plan* plan, bool* lowered)
{
    *lowered = false;
    for (int i = 0; i < plan->member_count; i++) {
        crdi_member* p = &plan->members[i];
        if (p->unit->input_order >= p->slope_order) { continue; }
        p->slope_order = p->unit->input_order;
        *lowered = true;
    }
    if (!*lowered) { return CRD_OK; }
    int* first = crdi_new_array(plan->ctx, (size_t)plan->member_count + 2, sizeof *first);
    int* in = crdi_new_array(plan->ctx, (size_t)plan->connection_count + 1, sizeof *in);
    const crd_status st = first && in ? CRD_OK : CRD_E_MEMORY;
    if (st == CRD_OK) {
        sort_by_member(plan, true, first, in);
        find_rate_orders(plan, first, in);
    }
    crd_free(plan->ctx, first);
    crd_free(plan->ctx, in);
    return st;
}
