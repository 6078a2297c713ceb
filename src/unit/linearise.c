// A unit near its current point, x' = A x + B u, y = C x + D u: by directional derivatives where it
// offers them, else by central differences over its Model Exchange interface.
#include <float.h>
#include <math.h>
#include <string.h>

#include "unit/circuit/circuit_unit.h"
#include "unit/me/me_unit.h"
#include "unit/native/native.h"
#include "unit/worker/worker.h"

typedef struct job {
    crd_unit* unit;
    crdi_me_unit* me; // NULL: not Model Exchange
    const crd_unit_port *in, *out;
    const int32_t *derivatives, *states; // (rows) variables, arrays with all their elements
    int32_t rows;
    crd_linearised* l;
    crd_arena arena;
    // differences
    double *x, *plus, *minus; // (states), (states + outputs) twice
    double* values;           // of the variable of one port
} job;

static const crd_variable* linearise_variable_of(const job* j, int32_t v)
{
    return &j->unit->info.variables[v];
}

// ---- what there is to do -----------------------------------------------------------------------

static crd_status check_port(const job* j, const crd_unit_port* p, bool input)
{
    const crd_variable* v = linearise_variable_of(j, p->variable);
    const char* what = input ? "input" : "output";
    if (v->type != CRD_FLOAT64 || v->variability != CRD_CONTINUOUS) {
        return crdi_fail(j->unit->ctx, CRD_E_UNSUPPORTED,
                         "the %s '%s' is not a continuous Float64 (Real): there is no derivative "
                         "by it",
                         what, v->name);
    }
    if (p->element < 0 || (uint32_t)p->element >= v->size) {
        return crdi_fail(j->unit->ctx, CRD_E_RANGE, "the %s '%s' has %u elements, there is no %d",
                         what, v->name, (unsigned)v->size, (int)p->element + 1);
    }
    return CRD_OK;
}

static crd_status cannot(const job* j, const char* lacking)
{
    return crdi_fail(j->unit->ctx, CRD_E_UNSUPPORTED,
                     "it cannot be linearised: %s; an FMU needs Model Exchange, or as "
                     "Co-Simulation its states in ModelStructure and directional derivatives. "
                     "Else give its matrices in a loop file",
                     lacking);
}

// An output that depends on no input and is no state has a state behind it that nobody tells of.
static const char* hidden_state(const job* j)
{
    const crd_dependencies* d = j->unit->info.outputs;
    for (int32_t r = 0; d && r < d->count; r++) {
        const crd_variable* v = linearise_variable_of(j, d->unknown[r]);
        if (!d->on_all[r] && d->first[r] == d->first[r + 1] && v->type == CRD_FLOAT64 &&
            v->variability == CRD_CONTINUOUS) {
            return v->name;
        }
    }
    return NULL;
}

static crd_status find_fmu_states(job* j)
{
    const crdi_fmi_unit* u = (const crdi_fmi_unit*)j->unit;
    const crd_fmu_model_exchange* x = &u->d->exchange;
    j->derivatives = x->derivatives.unknown;
    j->states = x->states;
    j->rows = x->derivatives.count;
    if (u->exchange) {
        j->me = (crdi_me_unit*)j->unit;
        if (!j->rows) { j->l->states = j->me->nx; } // FMI 1 has states without variables
        return CRD_OK;
    }
    if (!(j->unit->info.flags & CRD_UNIT_HAS_DIRECTIONAL)) {
        return cannot(j, "it runs as Co-Simulation and offers no directional derivatives");
    }
    const char* hidden = j->rows ? NULL : hidden_state(j);
    if (hidden) {
        const crd_status st = cannot(j, "it runs as Co-Simulation and hides its states");
        return crdi_fail_in(j->unit->ctx, st, "output '%s' depends on no input", hidden);
    }
    j->l->guessed = j->rows == 0;
    return CRD_OK;
}

static crd_status find_native_states(job* j)
{
    const crdi_native* u = (const crdi_native*)j->unit;
    const size_t n = (size_t)u->model->variable_count;
    int32_t* derivatives = crdi_arena_new(&j->arena, n, sizeof *derivatives);
    int32_t* states = crdi_arena_new(&j->arena, n, sizeof *states);
    if (!derivatives || !states) { return CRD_E_MEMORY; }
    if (!(j->unit->info.flags & CRD_UNIT_HAS_DIRECTIONAL) ||
        (!u->model->derivatives && hidden_state(j))) {
        return cannot(j, "the model gives no derivatives, or no partial ones");
    }
    for (int i = 0; i < u->model->variable_count; i++) {
        const int state = crd_model_state_of(u->model, i);
        if (state < 0) { continue; }
        derivatives[j->rows] = i;
        states[j->rows++] = state;
    }
    j->derivatives = derivatives;
    j->states = states;
    j->l->guessed = !u->model->derivatives;
    return CRD_OK;
}

static crd_status find_states(job* j)
{
    crd_status st = CRD_OK;
    switch (j->unit->spec->source) {
    case CRD_UNIT_FMU:
        st = find_fmu_states(j);
        break;
    case CRD_UNIT_NATIVE:
        st = find_native_states(j);
        break;
    case CRD_UNIT_SIGNAL: // their outputs follow time alone
    case CRD_UNIT_REPLAY:
        break;
    default: // a slave, a twin: there is an inside that nobody tells of
        st = crdi_fail(j->unit->ctx, CRD_E_UNSUPPORTED,
                       "it cannot be linearised: a unit of this kind tells nothing of its states");
        break;
    }
    for (int32_t r = 0; r < j->rows && st == CRD_OK && j->l->states <= 5000; r++) {
        j->l->states += (int)linearise_variable_of(j, j->derivatives[r])->size;
    }
    if (st < 0 || j->l->states <= 5000) { return st; }
    return crdi_fail(j->unit->ctx, CRD_E_UNSUPPORTED,
                     "it has more than 5000 states, too many to be linearised");
}

// ---- directional derivatives -------------------------------------------------------------------

// d unknowns / d known * seed, all elements; known is one variable with `size` elements.
static crd_status directional(job* j, const int32_t* unknowns, int count, int32_t known,
                              const double* seed, double* result, size_t elements)
{
    if (j->unit->spec->source != CRD_UNIT_FMU) {
        return j->unit->ops->derivatives->directional(j->unit, unknowns, count, &known, 1, seed,
                                                      result);
    }
    crdi_fmi_unit* u = (crdi_fmi_unit*)j->unit;
    uint32_t* refs =
        crdi_grow(j->unit->ctx, u->refs, &u->ref_capacity, (size_t)count + 1, sizeof *refs);
    if (!refs) { return CRD_E_MEMORY; }
    u->refs = refs;
    for (int i = 0; i < count; i++) {
        refs[i] = crdi_fmi_unit_reference(j->unit, unknowns[i]);
    }
    refs[count] = crdi_fmi_unit_reference(j->unit, known);
    return crd_fmi_directional_elements(u->fmi, refs, (size_t)count, refs + count, 1, seed,
                                        linearise_variable_of(j, known)->size, result, elements);
}

// Which element of the state vector an output is, -1: none. FMUs need not know derivatives of
// states by states.
static int as_state(const job* j, const crd_unit_port* p)
{
    int at = 0;
    for (int32_t r = 0; r < j->rows; r++) {
        if (j->states[r] >= 0 && crdi_unit_canonical(j->unit, j->states[r]) ==
                                     crdi_unit_canonical(j->unit, p->variable)) {
            return at + p->element;
        }
        at += (int)linearise_variable_of(j, j->derivatives[r])->size;
    }
    return -1;
}

// One column: how derivatives and outputs follow element e of variable `known`. `dx` (rows of A or
// B) and `dy` (rows of C or D) are `columns` apart.
static crd_status column(job* j, int32_t known, uint32_t e, double* dx, double* dy, int columns)
{
    crd_status st = CRD_OK;
    const uint32_t size = linearise_variable_of(j, known)->size;
    double* seed = crdi_arena_new(&j->arena, size, sizeof *seed);
    double* result = crdi_arena_new(&j->arena, (size_t)j->l->states, sizeof *result);
    if (!seed || !result) { return CRD_E_MEMORY; }
    seed[e] = 1;
    if (j->rows) {
        st = directional(j, j->derivatives, j->rows, known, seed, result, (size_t)j->l->states);
        if (st < 0) { return st; }
    }
    for (int i = 0; i < j->l->states; i++) {
        dx[i * columns] = result[i];
    }
    for (int i = 0; i < j->l->outputs; i++) {
        if (as_state(j, &j->out[i]) >= 0) { continue; }
        const uint32_t elements = linearise_variable_of(j, j->out[i].variable)->size;
        double* y = crdi_arena_new(&j->arena, elements, sizeof *y);
        if (!y) { return CRD_E_MEMORY; }
        st = directional(j, &j->out[i].variable, 1, known, seed, y, elements);
        if (st < 0) { return st; }
        dy[i * columns] = y[j->out[i].element];
    }
    return CRD_OK;
}

static crd_status by_directions(job* j)
{
    crd_linearised* l = j->l;
    int at = 0;
    for (int32_t r = 0; r < j->rows; r++) {
        const uint32_t size = linearise_variable_of(j, j->derivatives[r])->size;
        for (uint32_t e = 0; e < size; e++, at++) {
            const crd_status st = column(j, j->states[r], e, l->A + at, l->C + at, l->states);
            if (st < 0) { return st; }
        }
    }
    for (int i = 0; i < l->outputs; i++) {
        const int state = as_state(j, &j->out[i]);
        if (state >= 0) { l->C[i * l->states + state] = 1; }
    }
    for (int i = 0; i < l->inputs; i++) {
        const crd_unit_port* p = &j->in[i];
        const crd_status st =
            column(j, p->variable, (uint32_t)p->element, l->B + i, l->D + i, l->inputs);
        if (st < 0) { return st; }
    }
    l->exact = true;
    return CRD_OK;
}

// ---- differences -------------------------------------------------------------------------------

// The FMU at the states j->x, with `value` at input `port`: derivatives, then outputs
static crd_status linearise_evaluate(job* j, const crd_unit_port* port, double value, double* out)
{
    crdi_me_unit* u = j->me;
    crd_fmi* fmi = u->base.fmi;
    crd_status st = CRD_OK;
    u->failed = CRD_OK;
    u->bad = -1;
    u->discarded = false;
    if (crdi_me_place(u, u->t, j->x) != CRDI_ME_DONE) {
        return crdi_me_fail_point(u, u->t, "it is linearised here");
    }
    if (port) {
        const uint32_t ref = crdi_fmi_unit_reference(j->unit, port->variable);
        const size_t size = linearise_variable_of(j, port->variable)->size;
        CRD_TRY(crd_fmi_get_real(fmi, &ref, 1, j->values, size));
        j->values[port->element] = value;
        CRD_TRY(crd_fmi_set_real(fmi, &ref, 1, j->values, size));
    }
    if (u->nx) {
        bool discarded = false;
        CRD_TRY(crd_fmi_get_derivatives(fmi, out, (size_t)u->nx, &discarded));
        if (discarded) {
            u->discarded = true;
            return crdi_me_fail_point(u, u->t, "it is linearised here");
        }
    }
    for (int i = 0; i < j->l->outputs; i++) {
        const uint32_t ref = crdi_fmi_unit_reference(j->unit, j->out[i].variable);
        const size_t size = linearise_variable_of(j, j->out[i].variable)->size;
        CRD_TRY(crd_fmi_get_real(fmi, &ref, 1, j->values + size, size));
        out[j->l->states + i] = j->values[size + (size_t)j->out[i].element];
    }
fail:
    return st;
}

// A power of two, so that moving to and fro is exact where numbers allow it: the cube root of the
// precision balances rounding and the bend of the curve.
static double difference(double size)
{
    return exp2(round(log2(cbrt(DBL_EPSILON) * size)));
}

static void linearise_fill(job* j, double wide, double* dx, double* dy, int columns)
{
    for (int i = 0; i < j->l->states + j->l->outputs; i++) {
        const double slope = (j->plus[i] - j->minus[i]) / wide;
        *(i < j->l->states ? &dx[i * columns] : &dy[(i - j->l->states) * columns]) = slope;
    }
}

static crd_status by_states(job* j)
{
    crd_status st = CRD_OK;
    crd_linearised* l = j->l;
    for (int k = 0; k < l->states; k++) {
        const double s = difference(fmax(fabs(j->me->x[k]), j->me->nominal[k]));
        j->x[k] = j->me->x[k] + s;
        CRD_TRY(linearise_evaluate(j, NULL, 0, j->plus));
        j->x[k] = j->me->x[k] - s;
        CRD_TRY(linearise_evaluate(j, NULL, 0, j->minus));
        j->x[k] = j->me->x[k];
        linearise_fill(j, 2 * s, l->A + k, l->C + k, l->states);
    }
fail:
    return st;
}

static crd_status by_input(job* j, int k)
{
    const crd_unit_port* p = &j->in[k];
    const crd_variable* v = linearise_variable_of(j, p->variable);
    const uint32_t ref = crdi_fmi_unit_reference(j->unit, p->variable);
    crd_fmi* fmi = j->me->base.fmi;
    crd_status st = CRD_OK;
    CRD_TRY(crd_fmi_get_real(fmi, &ref, 1, j->values, v->size));
    const double u = j->values[p->element];
    const double nominal = v->nominal > 0 && isfinite(v->nominal) ? v->nominal : 1;
    const double s = difference(fmax(fabs(u), nominal));
    const double up = u + s > v->max ? 0 : s, down = u - s < v->min ? 0 : s; // its range ends here
    if (up + down == 0) {
        return crdi_fail(j->unit->ctx, CRD_E_UNSUPPORTED,
                         "the input '%s' has no room to move between %g and %g", v->name, v->min,
                         v->max);
    }
    CRD_TRY(linearise_evaluate(j, p, u + up, j->plus));
    CRD_TRY(linearise_evaluate(j, p, u - down, j->minus));
    linearise_fill(j, up + down, j->l->B + k, j->l->D + k, j->l->inputs);
    CRD_TRY(crd_fmi_get_real(fmi, &ref, 1, j->values, v->size));
    j->values[p->element] = u;
    CRD_TRY(crd_fmi_set_real(fmi, &ref, 1, j->values, v->size));
fail:
    return st;
}

static crd_status by_differences(job* j)
{
    crd_linearised* l = j->l;
    size_t largest = 1;
    for (int i = 0; i < l->inputs + l->outputs; i++) {
        const crd_unit_port* p = i < l->inputs ? &j->in[i] : &j->out[i - l->inputs];
        const size_t size = linearise_variable_of(j, p->variable)->size;
        largest = size > largest ? size : largest;
    }
    const size_t n = (size_t)l->states + (size_t)l->outputs;
    j->x = crdi_arena_new(&j->arena, (size_t)l->states, sizeof *j->x);
    j->plus = crdi_arena_new(&j->arena, n, sizeof *j->plus);
    j->minus = crdi_arena_new(&j->arena, n, sizeof *j->minus);
    j->values = crdi_arena_new(&j->arena, 2 * largest, sizeof *j->values);
    if (!j->x || !j->plus || !j->minus || !j->values) { return CRD_E_MEMORY; }
    memcpy(j->x, j->me->x, (size_t)l->states * sizeof *j->x);
    crd_status st = by_states(j);
    for (int i = 0; i < l->inputs && st == CRD_OK; i++) {
        st = by_input(j, i);
    }
    // Back to where it was, also after a failure
    j->me->failed = CRD_OK;
    if (crdi_me_place(j->me, j->me->t, j->me->x) != CRDI_ME_DONE && st == CRD_OK) {
        st = crdi_me_fail_point(j->me, j->me->t, "it was linearised here");
    }
    return st;
}

// ---- all of it ---------------------------------------------------------------------------------

static crd_status linearise_allocate(crd_linearised* l)
{
    const size_t n = (size_t)l->states, in = (size_t)l->inputs, out = (size_t)l->outputs;
    l->A = crdi_new_array(l->ctx, n * n, sizeof *l->A);
    l->B = crdi_new_array(l->ctx, n * in, sizeof *l->B);
    l->C = crdi_new_array(l->ctx, out * n, sizeof *l->C);
    l->D = crdi_new_array(l->ctx, out * in, sizeof *l->D);
    return l->A && l->B && l->C && l->D ? CRD_OK : CRD_E_MEMORY;
}

static bool all_states_named(const job* j)
{
    for (int32_t r = 0; r < j->rows; r++) {
        if (j->states[r] < 0) { return false; }
    }
    return true;
}

static crd_status linearise_check_numbers(const crd_linearised* l)
{
    const double* const fields[] = {l->A, l->B, l->C, l->D};
    const int sizes[] = {l->states * l->states, l->states * l->inputs, l->outputs * l->states,
                         l->outputs * l->inputs};
    for (int f = 0; f < 4; f++) {
        for (int i = 0; i < sizes[f]; i++) {
            if (!isfinite(fields[f][i])) {
                return crdi_fail(l->ctx, CRD_E_UNIT,
                                 "a derivative is %g at this point: linearise it at another one",
                                 fields[f][i]);
            }
        }
    }
    return CRD_OK;
}

// The differences were those of the FMU's own values.
static void flip_negated(const job* j)
{
    crd_linearised* l = j->l;
    for (int i = 0; i < l->outputs; i++) {
        const double sign = linearise_variable_of(j, j->out[i].variable)->negated ? -1 : 1;
        for (int k = 0; k < l->states; k++) {
            l->C[i * l->states + k] *= sign;
        }
        for (int k = 0; k < l->inputs; k++) {
            l->D[i * l->inputs + k] *= sign;
        }
    }
    for (int k = 0; k < l->inputs; k++) {
        const double sign = linearise_variable_of(j, j->in[k].variable)->negated ? -1 : 1;
        for (int i = 0; i < l->states + l->outputs; i++) {
            *(i < l->states ? &l->B[i * l->inputs + k] : &l->D[(i - l->states) * l->inputs + k]) *=
                sign;
        }
    }
}

static crd_status linearise(job* j)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < j->l->inputs; i++) {
        CRD_TRY(check_port(j, &j->in[i], true));
    }
    for (int i = 0; i < j->l->outputs; i++) {
        CRD_TRY(check_port(j, &j->out[i], false));
    }
    crd_standby_stats stats;
    if (crd_unit_get_standby(j->unit, &stats)) { // what it is changes while it runs
        return crdi_fail(j->unit->ctx, CRD_E_UNSUPPORTED,
                         "it has a stand-in (key 'standby'), so that it cannot be linearised");
    }
    if (j->unit->spec->source == CRD_UNIT_CIRCUIT) {
        CRD_TRY(crdi_circuit_linearise(j->unit, j->in, j->out, j->l));
        return linearise_check_numbers(j->l);
    }
    if (j->unit->spec->source == CRD_UNIT_DCP || j->unit->spec->source == CRD_UNIT_TWIN ||
        j->unit->info.flags & CRD_UNIT_IN_REAL_TIME) {
        return crdi_fail(j->unit->ctx, CRD_E_UNSUPPORTED,
                         "a %s tells neither its states nor derivatives, so that it cannot be "
                         "linearised. Give its matrices in a loop file",
                         j->unit->info.kind);
    }
    CRD_TRY(find_states(j));
    CRD_TRY(linearise_allocate(j->l));
    if (j->unit->info.flags & CRD_UNIT_IS_SOURCE) {
        j->l->exact = true;
    } else if ((j->unit->info.flags & CRD_UNIT_HAS_DIRECTIONAL) && all_states_named(j)) {
        CRD_TRY(by_directions(j));
    } else if (j->me) {
        CRD_TRY(by_differences(j));
        flip_negated(j);
    } else {
        CRD_TRY(cannot(j, "its ModelStructure does not name the states of its derivatives"));
    }
    CRD_TRY(linearise_check_numbers(j->l));
fail:
    return st;
}

void crdi_unit_inner(const crd_unit* u, double* longest, double* past, int* points)
{
    if (u->spec->source != CRD_UNIT_CIRCUIT) { return; }
    const crdi_circuit_unit* c = (const crdi_circuit_unit*)u;
    *longest = c->longest > 0 ? c->longest : INFINITY;
    *past = c->past;
    *points = c->points;
}

int crdi_unit_states(crd_unit* u, crd_arena* arena, const int32_t** states,
                     const int32_t** derivatives)
{
    crd_linearised l = {.ctx = u->ctx};
    job j = {.unit = u, .l = &l};
    crd_arena_init(&j.arena, u->ctx);
    const bool known = !crdi_worker_has(u) && u->spec->source != CRD_UNIT_CIRCUIT &&
                       find_states(&j) == CRD_OK && all_states_named(&j);
    const size_t n = known ? (size_t)j.rows : 0, bytes = n * sizeof **states;
    int32_t* list = n ? crdi_arena_new(arena, 2 * n, sizeof *list) : NULL;
    if (list) {
        memcpy(list, j.states, bytes);
        memcpy(list + n, j.derivatives, bytes);
        *states = list;
        *derivatives = list + n;
    }
    crd_arena_clear(&j.arena);
    return list ? (int)n : 0;
}

crd_status crd_unit_linearise(crd_unit* u, const crd_unit_port* inputs, int input_count,
                              const crd_unit_port* outputs, int output_count, crd_linearised* out)
{
    if (crdi_worker_has(u)) {
        return crdi_worker_linearise(u, inputs, input_count, outputs, output_count, out);
    }
    crd_linearised l = {.ctx = u->ctx, .inputs = input_count, .outputs = output_count};
    job j = {.unit = u, .in = inputs, .out = outputs, .l = &l};
    crd_arena_init(&j.arena, u->ctx);
    const crd_status st = linearise(&j);
    crd_arena_clear(&j.arena);
    if (st < 0) {
        crd_linearised_clear(&l);
        return st;
    }
    *out = l;
    return CRD_OK;
}

void crd_linearised_clear(crd_linearised* l)
{
    if (!l->ctx) { return; }
    crd_free(l->ctx, l->A);
    crd_free(l->ctx, l->B);
    crd_free(l->ctx, l->C);
    crd_free(l->ctx, l->D);
    *l = (crd_linearised){0};
}
