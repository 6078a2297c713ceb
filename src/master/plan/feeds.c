// Connections by kind, phase and target: the rows that a phase moves.
#include "master/plan/plan.h"

static bool is_real(const crdi_plan* plan, const crdi_end* e)
{
    return crd_type_kind(crdi_variable_at(plan, e)->type) == CRD_REAL;
}

void crdi_plan_kinds(crdi_plan* plan)
{
    crdi_connections_mark_predicted(plan);
    for (int i = 0; i < plan->connection_count; i++) {
        crdi_connection* k = &plan->connections[i];
        const bool real = is_real(plan, &k->from) && is_real(plan, &k->to);
        k->kind = k->paired                           ? CRDI_PAIRED
                  : k->spec->coupling                 ? CRDI_COUPLED
                  : !real                             ? CRDI_CONVERT
                  : crdi_connection_predicts(plan, k) ? CRDI_PREDICT
                  : k->transform                      ? CRDI_SCALE
                                                      : CRDI_COPY;
    }
}

// A connection that holds, if defects are monitored.
static void feeds_observe(const crdi_plan* plan, crdi_connections* c, crdi_connection* k)
{
    if (!k->real || !(plan->sys->run.monitor & CRD_MONITOR_DEFECT)) { return; }
    k->observed = &c->observed[c->observed_count++];
    *k->observed = (crdi_observed){.of = k,
                                   .from = crdi_connection_from(plan, k),
                                   .to = crdi_connection_to(plan, k),
                                   .gain = k->gain,
                                   .offset = k->offset};
}

static crd_status add_to_feed(crdi_plan* plan, crdi_connections* c, crdi_connection* k,
                              crdi_feed* f)
{
    const double* from = crdi_connection_from(plan, k);
    double* to = crdi_connection_to(plan, k);
    const int at = f->rows[k->kind].first + f->rows[k->kind].count++;
    switch (k->kind) {
    case CRDI_COPY:
        c->copies[at] = (crdi_copy){from, to};
        feeds_observe(plan, c, k);
        return CRD_OK;
    case CRDI_SCALE:
        c->scaled[at] = (crdi_scaled){from, to, k->gain, k->offset};
        feeds_observe(plan, c, k);
        return CRD_OK;
    case CRDI_PREDICT:
        return crdi_prediction_bind(plan, k, &c->predictions[at]);
    case CRDI_CONVERT:
        c->conversions[at] = crdi_conversion_of(plan, k, to);
        return CRD_OK;
    case CRDI_PAIRED:
        return CRD_OK;
    default:
        c->couplings[at] = &c->coupled[k->couple];
        crdi_coupled_bind(plan, k, c->couplings[at]);
        return CRD_OK;
    }
}

static void open_feed(crdi_plan* plan, const crdi_connection* k, const crdi_feed* last,
                      crdi_feed* f)
{
    *f = (crdi_feed){.member = k->to.member};
    for (int i = 0; last && i < CRDI_KINDS; i++) {
        f->rows[i].first = last->rows[i].first + last->rows[i].count;
    }
    const int index = (int)(f - plan->feeds);
    crdi_phase* phase = &plan->phases[k->phase];
    int* first = k->early ? &phase->early_first : &phase->late_first;
    int* count = k->early ? &phase->early_count : &phase->late_count;
    if (*count == 0) { *first = index; }
    (*count)++;
}

// Feeds that stand in a row as one.
static crdi_feed merge_feeds(const crdi_plan* plan, int first, int count)
{
    if (count == 0) { return (crdi_feed){.member = -1}; }
    crdi_feed all = plan->feeds[first];
    for (int i = 1; i < count; i++) {
        for (int k = 0; k < CRDI_KINDS; k++) {
            all.rows[k].count += plan->feeds[first + i].rows[k].count;
        }
    }
    return all;
}

static crd_status feeds_make_room(crdi_plan* plan, crdi_connections* c)
{
    size_t n[CRDI_KINDS] = {0};
    for (int i = 0; i < plan->connection_count; i++) {
        n[plan->connections[i].kind]++;
    }
    crd_arena* room = plan->arena;
    c->copies = crdi_arena_new(room, n[CRDI_COPY], sizeof *c->copies);
    c->scaled = crdi_arena_new(room, n[CRDI_SCALE], sizeof *c->scaled);
    c->observed = crdi_arena_new(room, n[CRDI_COPY] + n[CRDI_SCALE], sizeof *c->observed);
    c->predictions = crdi_arena_new(room, n[CRDI_PREDICT], sizeof *c->predictions);
    c->conversions = crdi_arena_new(room, n[CRDI_CONVERT], sizeof *c->conversions);
    c->couplings = crdi_arena_new(room, n[CRDI_COUPLED], sizeof *c->couplings);
    c->prediction_count = (int)n[CRDI_PREDICT];
    plan->feeds = crdi_arena_new(room, (size_t)plan->connection_count, sizeof *plan->feeds);
    return c->copies && c->scaled && c->observed && c->predictions && c->conversions &&
                   c->couplings && plan->feeds
               ? CRD_OK
               : CRD_E_MEMORY;
}

crd_status crdi_plan_feeds(crdi_plan* plan, crdi_connections* connections)
{
    crd_status st = feeds_make_room(plan, connections);
    crdi_feed* f = NULL;
    for (int i = 0; i < plan->connection_count && st >= 0; i++) {
        crdi_connection* k = &plan->connections[i];
        const crdi_connection* before = i ? k - 1 : NULL;
        if (!before || before->phase != k->phase || before->early != k->early ||
            before->to.member != k->to.member) {
            crdi_feed* next = f ? f + 1 : plan->feeds;
            open_feed(plan, k, f, next);
            f = next;
        }
        st = add_to_feed(plan, connections, k, f);
    }
    for (int i = 0; i < plan->phase_count; i++) {
        crdi_phase* p = &plan->phases[i];
        p->early = merge_feeds(plan, p->early_first, p->early_count);
        p->late = merge_feeds(plan, p->late_first, p->late_count);
    }
    for (int i = 0; i < plan->connection_count && st >= 0; i++) {
        crdi_connections_use(connections, plan->connections[i].kind);
    }
    if (connections->observed_count) { // scaled ones, too
        crdi_connections_use(connections, CRDI_COPY);
    }
    return st < 0 ? st : crdi_predictions_index(plan, connections);
}
