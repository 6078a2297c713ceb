// A circuit near its current point: its states are the voltages of its capacitors and the currents
// of its inductors. A second circuit begins at the point and beside it, and tells by the currents
// of capacitors and the voltages of inductors how the states move on.
#include "shared/circuit_part.h"
#include "shared/num.h"
#include "unit/circuit/circuit_unit.h"

#include <math.h>
#include <string.h>

enum { MOST_STATES = 1000 };

typedef struct job {
    crdi_circuit_unit* u;
    crd_linearised* l;
    const crd_unit_port *in, *out;
    crd_arena arena;
    crd_context* quiet; // beginnings beside the point may warn
    crd_netlist n;      // the unit's, with parts of its own
    crd_circuit* c;
    int32_t* state; // (states) parts: capacitors, then inductors
    int capacitors;
    double* inductance; // (inductors^2) if some are coupled, NULL
    double *work, *rhs; // a copy of it, and one column
    int32_t* pivots;
    double *x, *ends[2]; // (states), (states + outputs): x' and y on both sides
    bool linear;
} job;

static void say_nothing(void* user, crd_level level, const char* text)
{
    (void)user, (void)level, (void)text;
}

// ---- the second circuit ------------------------------------------------------------------------

static bool linearise_is_linear(const crd_netlist* n)
{
    for (int32_t i = 0; i < n->part_count; i++) {
        if (!crdi_part_is_linear(&n->parts[i])) { return false; }
    }
    return true;
}

static crd_status refuse_charges(const job* j)
{
    const crd_netlist* n = &j->n;
    for (int32_t i = 0; i < n->part_count; i++) {
        if (crdi_part_has_charge(n, &n->parts[i])) {
            return crdi_fail(j->u->base.ctx, CRD_E_UNSUPPORTED,
                             "it cannot be linearised: the diode %s has a charge, which nothing "
                             "outside sets",
                             n->names + n->parts[i].name);
        }
    }
    return CRD_OK;
}

static crd_status list_states(job* j)
{
    const crd_netlist* n = &j->n;
    static const crdi_part_store stores[] = {CRDI_STORES_VOLTAGE, CRDI_STORES_CURRENT};
    int count = 0;
    for (int32_t i = 0; i < n->part_count; i++) {
        count += crdi_part_kind_of(&n->parts[i])->stores != CRDI_STORES_NOTHING;
    }
    if (count > MOST_STATES) {
        return crdi_fail(j->u->base.ctx, CRD_E_UNSUPPORTED,
                         "it has %d states, too many to be linearised (at most %d)", count,
                         MOST_STATES);
    }
    j->state = crdi_arena_new(&j->arena, (size_t)count, sizeof *j->state);
    j->x = crdi_arena_new(&j->arena, (size_t)count, sizeof *j->x);
    if (!j->state || !j->x) { return CRD_E_MEMORY; }
    for (int k = 0; k < 2; k++) {
        for (int32_t i = 0; i < n->part_count; i++) {
            if (crdi_part_kind_of(&n->parts[i])->stores == stores[k]) {
                j->state[j->l->states++] = i;
            }
        }
        if (k == 0) { j->capacitors = j->l->states; }
    }
    return CRD_OK;
}

static int inductor(const job* j, int32_t part)
{
    for (int i = j->capacitors; i < j->l->states; i++) {
        if (j->state[i] == part) { return i - j->capacitors; }
    }
    return 0;
}

static crd_status fill_inductance(job* j)
{
    const crd_netlist* n = &j->n;
    const int count = j->l->states - j->capacitors;
    bool coupled = false;
    for (int32_t i = 0; i < n->part_count; i++) {
        coupled = coupled || crdi_part_kind_of(&n->parts[i])->couples;
    }
    if (!coupled) { return CRD_OK; }
    const size_t size = (size_t)count * (size_t)count;
    j->inductance = crdi_arena_new(&j->arena, size, sizeof *j->inductance);
    j->work = crdi_arena_new(&j->arena, size, sizeof *j->work);
    j->rhs = crdi_arena_new(&j->arena, (size_t)count, sizeof *j->rhs);
    j->pivots = crdi_arena_new(&j->arena, (size_t)count, sizeof *j->pivots);
    if (!j->inductance || !j->work || !j->rhs || !j->pivots) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        j->inductance[i * count + i] = n->parts[j->state[j->capacitors + i]].value;
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        if (!crdi_part_kind_of(p)->couples) { continue; }
        const int a = inductor(j, p->refs[0]), b = inductor(j, p->refs[1]);
        const double m =
            crdi_part_mutual(p, n->parts[p->refs[0]].value, n->parts[p->refs[1]].value);
        j->inductance[a * count + b] += m;
        j->inductance[b * count + a] += m;
    }
    return CRD_OK;
}

static double* linearise_start_of(const job* j, int i)
{
    return &j->n.parts[j->state[i]].ic;
}

static crd_status copy_circuit(job* j)
{
    crd_status st = CRD_OK;
    crdi_circuit_unit* u = j->u;
    const size_t parts = (size_t)u->netlist->part_count;
    j->n = *u->netlist;
    j->n.parts = crdi_arena_new(&j->arena, parts, sizeof *j->n.parts);
    j->quiet = crdi_context_tap(u->base.ctx, say_nothing, NULL);
    if (!j->n.parts || !j->quiet) { return CRD_E_MEMORY; }
    memcpy(j->n.parts, u->netlist->parts, parts * sizeof *j->n.parts);
    j->n.uic = true;
    j->n.node_ic = NULL;
    j->linear = linearise_is_linear(&j->n);
    CRD_TRY(refuse_charges(j));
    CRD_TRY(list_states(j));
    CRD_TRY(fill_inductance(j));
    for (int i = 0; i < j->l->states; i++) {
        crd_part* p = &j->n.parts[j->state[i]];
        j->x[i] = i < j->capacitors ? crd_circuit_voltage(u->circuit, p->nodes[0]) -
                                          crd_circuit_voltage(u->circuit, p->nodes[1])
                                    : crd_circuit_current(u->circuit, j->state[i]);
        p->has_ic = true;
        p->ic = j->x[i];
    }
    crd_circuit_options opt = u->opt;
    opt.tolerance = fmin(opt.tolerance, 1e-12);
    opt.fixed_iterations = false;
    opt.max_iterations = opt.max_iterations > 50 ? opt.max_iterations : 50;
    st = crd_circuit_create(j->quiet, &j->n, &opt, &j->c);
    if (st < 0) { st = crdi_fail(u->base.ctx, st, "%s", crd_error_text(j->quiet)); }
fail:
    return st;
}

// ---- differences -------------------------------------------------------------------------------

static crd_status dependent_state(const job* j, int i)
{
    return crdi_fail(j->u->base.ctx, CRD_E_UNSUPPORTED,
                     "it cannot be linearised: %s is in a loop of capacitors and sources, or in a "
                     "cut of inductors and sources, and no state of its own",
                     j->n.names + j->n.parts[j->state[i]].name);
}

static double linearise_across(const job* j, int i)
{
    const crd_part* p = &j->n.parts[j->state[i]];
    return crd_circuit_voltage(j->c, p->nodes[0]) - crd_circuit_voltage(j->c, p->nodes[1]);
}

// x' and y at the states and inputs that have been set.
static crd_status linearise_evaluate(job* j, double* out)
{
    crd_status st = crd_circuit_begin(j->c, j->u->time);
    if (st < 0) { return crdi_fail(j->u->base.ctx, st, "%s", crd_error_text(j->quiet)); }
    const int inductors = j->l->states - j->capacitors;
    for (int i = 0; i < j->l->states; i++) {
        const bool capacitor = i < j->capacitors;
        const double v = linearise_across(j, i), current = crd_circuit_current(j->c, j->state[i]);
        const double is = capacitor ? v : current, want = *linearise_start_of(j, i);
        if (!(fabs(is - want) <= 1e-7 * (fabs(want) + fabs(j->x[i])) + 1e-12)) {
            return dependent_state(j, i);
        }
        out[i] = (capacitor ? current : v) / j->n.parts[j->state[i]].value;
    }
    if (j->inductance) {
        memcpy(j->work, j->inductance, (size_t)(inductors * inductors) * sizeof *j->work);
        for (int i = 0; i < inductors; i++) {
            j->rhs[i] = linearise_across(j, j->capacitors + i);
        }
        st = crdi_num_solve(inductors, j->work, j->rhs, j->pivots);
        if (st < 0) {
            return crdi_fail(j->u->base.ctx, CRD_E_UNSUPPORTED,
                             "it cannot be linearised: its inductors are coupled without leakage");
        }
        memcpy(out + j->capacitors, j->rhs, (size_t)inductors * sizeof *out);
    }
    for (int i = 0; i < j->l->outputs; i++) {
        const int output = j->out[i].variable - j->u->parameters - j->u->inputs;
        out[j->l->states + i] = crd_circuit_get_output(j->c, output);
    }
    return CRD_OK;
}

// Of linear circuits any difference is exact, and large ones drown what rounding does.
static double linearise_distance(const job* j, double x, double usual)
{
    return (j->linear ? 1 : 1e-5) * fmax(fabs(x), usual);
}

static void store(const job* j, double step, double* dx, double* dy, int columns, int column)
{
    for (int i = 0; i < j->l->states + j->l->outputs; i++) {
        double* to = i < j->l->states ? dx + i * columns : dy + (i - j->l->states) * columns;
        to[column] = (j->ends[1][i] - j->ends[0][i]) / (2 * step);
    }
}

static crd_status by_state(job* j, int k)
{
    crd_status st = CRD_OK;
    double largest = k < j->capacitors ? 1 : 1e-3;
    for (int i = 0; i < j->l->states; i++) {
        if ((i < j->capacitors) == (k < j->capacitors)) { largest = fmax(largest, fabs(j->x[i])); }
    }
    const double step = linearise_distance(j, j->x[k], largest);
    for (int side = 0; side < 2 && st == CRD_OK; side++) {
        *linearise_start_of(j, k) = j->x[k] + (side ? step : -step);
        st = linearise_evaluate(j, j->ends[side]);
    }
    *linearise_start_of(j, k) = j->x[k];
    if (st == CRD_OK) { store(j, step, j->l->A, j->l->C, j->l->states, k); }
    return st;
}

static crd_status by_input(job* j, int k)
{
    crd_status st = CRD_OK;
    const int input = j->in[k].variable - j->u->parameters;
    const double u = j->u->curves[input].u, step = linearise_distance(j, u, 1);
    for (int side = 0; side < 2 && st == CRD_OK; side++) {
        st = crd_circuit_set_input(j->c, input, u + (side ? step : -step));
        if (st == CRD_OK) { st = linearise_evaluate(j, j->ends[side]); }
    }
    (void)crd_circuit_set_input(j->c, input, u);
    if (st == CRD_OK) { store(j, step, j->l->B, j->l->D, j->l->inputs, k); }
    return st;
}

static crd_status linearise_allocate(job* j)
{
    crd_linearised* l = j->l;
    const size_t n = (size_t)l->states, in = (size_t)l->inputs, out = (size_t)l->outputs;
    l->A = crdi_new_array(l->ctx, n * n, sizeof *l->A);
    l->B = crdi_new_array(l->ctx, n * in, sizeof *l->B);
    l->C = crdi_new_array(l->ctx, out * n, sizeof *l->C);
    l->D = crdi_new_array(l->ctx, out * in, sizeof *l->D);
    for (int side = 0; side < 2; side++) {
        j->ends[side] = crdi_arena_new(&j->arena, n + out, sizeof(double));
    }
    return l->A && l->B && l->C && l->D && j->ends[0] && j->ends[1] ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_circuit_linearise(crd_unit* unit, const crd_unit_port* inputs,
                                  const crd_unit_port* outputs, crd_linearised* l)
{
    crd_status st = CRD_OK;
    job j = {.u = (crdi_circuit_unit*)unit, .l = l, .in = inputs, .out = outputs};
    if (j.u->phase != CRDI_CIRCUIT_STEP) {
        return crdi_fail(unit->ctx, CRD_E_STATE, "it is not initialised yet");
    }
    crd_arena_init(&j.arena, unit->ctx);
    CRD_TRY(copy_circuit(&j));
    CRD_TRY(linearise_allocate(&j));
    for (int i = 0; i < j.u->inputs; i++) {
        CRD_TRY(crd_circuit_set_input(j.c, i, j.u->curves[i].u));
    }
    for (int i = 0; i < l->states; i++) {
        CRD_TRY(by_state(&j, i));
    }
    for (int i = 0; i < l->inputs; i++) {
        CRD_TRY(by_input(&j, i));
    }
    l->exact = j.linear;
fail:
    crd_circuit_destroy(j.c);
    crd_context_destroy(j.quiet);
    crd_arena_clear(&j.arena);
    return st;
}
