// Steps as large as the accuracy allows.
//
// The local error of a step is a constant of the method times a divided difference of the states
// through the last accepted points. Steps are the first one times powers of two, so that factors
// serve for many steps; only the last step before a corner, an event or t_stop has a size of its
// own. What jumps ends a stretch: the method begins anew with two half steps of BDF1, which need
// nothing but charges and fluxes and damp what TR would let ring (with the matrix of one step of
// TR; Marti and Lin 1989).
#include "circuit/circuit.h"
#include "circuit/parts/switch.h"
#include "shared/base.h"
#include "shared/circuit_part.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define POINTS 4      // accepted ones behind a step: BDF3 asks for x''''
#define GENTLE 0.125  // the first step after a jump, of those before it
#define LOCATE 1e-10  // of a step: how well an event is found
#define PATIENCE 4    // rejections before a jump is suspected
#define PER_PERIOD 10 // steps of a sine at least
#define FLUTTER 20    // events in a row that are looked for exactly: switches may have no rest
#define CROWDED 0.05  // of the first step

typedef struct crdi_control {
    size_t count, charges;   // states, and those of diodes among them, which come last
    crd_arena arena;         // of everything below
    double* save;            // the circuit before a step
    double* point[POINTS];   // states, newest first
    double ago[POINTS];      // how long ago they were, s
    int points;              // how many
    double *middle, *end;    // states within and after the step that is tried
    double* large;           // (count) largest magnitudes
    double* floor;           // (count) absolute tolerances
    double* inputs;          // as they were
    double *excess, *beyond; // (2 * switches) at the beginning of the step, and now
    int32_t* switches;       // parts
    int switch_count;
    double voltage, current; // what floor was made from
    double base;             // the first step; all are base * 2^k
    double step;             // to be tried
    double cruise;           // the last one that was not a start
    double fastest;          // period of the sources
    double corner;           // of sources, the next one
    double time;             // where it left the circuit
    int calm;                // steps of this size without a rejection
    int flutter;             // events without a step of the method in between
    int crowd;               // events that followed the one before within CROWDED of the first step
    double event_at;         // time of the last one
    bool stale;              // somebody else moved the circuit
    bool start;              // two half steps of BDF1
} crdi_control;

crd_circuit_control crd_circuit_control_defaults(void)
{
    return (crd_circuit_control){.relative = 1e-4, .voltage = 1e-6, .current = 1e-9};
}

// ---- making it ---------------------------------------------------------------------------------

static bool is_switch(const crd_part* p)
{
    return crdi_part_kind_of(p)->switches;
}

static bool is_state(const crd_part* p)
{
    return crdi_part_kind_of(p)->stores != CRDI_STORES_NOTHING;
}

// What the error is judged by: capacitor voltages and inductor currents in the order of the form,
// then charges of diodes as volts or amperes.
static void read_states(const crd_circuit* c, double* out)
{
    const crd_netlist* n = c->n;
    const crdi_control* a = c->control;
    c->form->states(c, out);
    double* to = out + a->count - a->charges;
    bool volts;
    for (int32_t i = 0; i < n->part_count && a->charges; i++) {
        const crd_part* p = &n->parts[i];
        if (crdi_part_has_charge(n, p)) { *to++ = crdi_part_kind_of(p)->charge(c, i, &volts); }
    }
}

void crdi_control_destroy(crd_circuit* c)
{
    if (!c->control) { return; }
    crd_arena_clear(&c->control->arena);
    crd_free(c->ctx, c->control);
    c->control = NULL;
}

void crdi_control_reset(crd_circuit* c, double step)
{
    if (!c->control) { return; }
    c->control->stale = true;
    if (step > 0) { c->control->base = step; }
}

static double fastest_period(const crd_netlist* n)
{
    double period = (double)INFINITY;
    for (int i = 0; i < n->wave_count; i++) {
        const crd_waveform* w = &n->waves[i];
        if (w->kind == CRD_WAVE_SIN && w->v[1] != 0 && w->v[2] > 0) {
            period = fmin(period, 1 / w->v[2]);
        }
    }
    return period;
}

static crd_status make_control(crd_circuit* c)
{
    const crd_netlist* n = c->n;
    crdi_control* a = c->control = crdi_new(c->ctx, sizeof *a);
    if (!a) { return CRD_E_MEMORY; }
    for (int32_t i = 0; i < n->part_count; i++) {
        a->switch_count += is_switch(&n->parts[i]);
        a->count += is_state(&n->parts[i]);
        a->charges += crdi_part_has_charge(n, &n->parts[i]);
    }
    a->count += a->charges;
    crd_arena_init(&a->arena, c->ctx);
    const size_t edges = 2 * (size_t)a->switch_count;
    a->save = crdi_arena_new(&a->arena, crd_circuit_state_size(c), 1);
    for (int i = 0; i < POINTS; i++) {
        a->point[i] = crdi_arena_new(&a->arena, a->count, sizeof(double));
    }
    a->middle = crdi_arena_new(&a->arena, a->count, sizeof *a->middle);
    a->end = crdi_arena_new(&a->arena, a->count, sizeof *a->end);
    a->large = crdi_arena_new(&a->arena, a->count, sizeof *a->large);
    a->floor = crdi_arena_new(&a->arena, a->count, sizeof *a->floor);
    a->excess = crdi_arena_new(&a->arena, edges, sizeof *a->excess);
    a->beyond = crdi_arena_new(&a->arena, edges, sizeof *a->beyond);
    a->inputs = crdi_arena_new(&a->arena, (size_t)n->input_count, sizeof *a->inputs);
    a->switches = crdi_arena_new(&a->arena, (size_t)a->switch_count, sizeof *a->switches);
    if (a->arena.failed) {
        crdi_control_destroy(c);
        return CRD_E_MEMORY;
    }
    for (int32_t i = 0, k = 0; i < n->part_count; i++) {
        if (is_switch(&n->parts[i])) { a->switches[k++] = i; }
    }
    a->base = c->opt.step;
    a->voltage = a->current = (double)NAN;
    a->fastest = fastest_period(n);
    a->stale = true;
    return CRD_OK;
}

static void set_floors(crd_circuit* c, const crd_circuit_control* o)
{
    crdi_control* a = c->control;
    double* to = a->floor;
    if (a->voltage == o->voltage && a->current == o->current) { return; }
    a->voltage = o->voltage;
    a->current = o->current;
    for (int32_t i = 0; i < c->n->part_count; i++) {
        if (is_state(&c->n->parts[i])) {
            const crdi_part_store stores = crdi_part_kind_of(&c->n->parts[i])->stores;
            *to++ = stores == CRDI_STORES_VOLTAGE ? o->voltage : o->current;
        }
    }
    for (int32_t i = 0; i < c->n->part_count && a->charges; i++) {
        const crd_part* p = &c->n->parts[i];
        if (crdi_part_has_charge(c->n, p)) {
            bool volts;
            (void)crdi_part_kind_of(p)->charge(c, i, &volts);
            *to++ = volts ? o->voltage : o->current;
        }
    }
}

// ---- steps on the ladder -----------------------------------------------------------------------

// The largest base * 2^k that is not above `most`.
static double rung(const crdi_control* a, double most)
{
    return ldexp(a->base, ilogb(most / a->base * (1 + 1e-12)));
}

static double ulp(double t)
{
    return nextafter(fabs(t), (double)INFINITY) - fabs(t);
}

// Corners that rounding tells apart (1u + 48u + 1u and 50u) are one.
static double next_corner(const crd_circuit* c, double t)
{
    const crd_netlist* n = c->n;
    const double behind = t + fmax(64 * ulp(t), 1e-10 * c->control->base);
    double corner = (double)INFINITY;
    for (int i = 0; i < n->wave_count; i++) {
        corner = fmin(corner, crd_waveform_next(&n->waves[i], behind));
    }
    return corner;
}

// From here on nothing that was is a guide.
static void jump(crd_circuit* c)
{
    crdi_control* a = c->control;
    crdi_circuit_restart(c);
    read_states(c, a->point[0]);
    a->ago[0] = 0;
    a->points = 1;
    a->calm = 0;
    a->start = true;
    if (a->cruise > 0) { a->step = fmin(a->step, rung(a, GENTLE * a->cruise)); }
}

static void look_around(crd_circuit* c)
{
    crdi_control* a = c->control;
    const double t = crdi_circuit_time(c, 0);
    const size_t inputs = (size_t)c->n->input_count * sizeof *a->inputs;
    const bool moved = a->stale || a->time != t;
    if (moved) {
        a->step = a->base;
        a->cruise = 0;
        a->crowd = 0;
        a->event_at = -(double)INFINITY;
        a->corner = next_corner(c, t);
        memset(a->large, 0, a->count * sizeof *a->large);
    }
    if (moved || (inputs > 0 && memcmp(a->inputs, c->inputs, inputs) != 0)) {
        if (inputs > 0) { memcpy(a->inputs, c->inputs, inputs); }
        jump(c);
    }
    a->stale = false;
}

// ---- a step that is tried ----------------------------------------------------------------------

// As far as the points reach: BDF3 comes after BDF2.
static crd_circuit_method method_now(const crdi_control* a, crd_circuit_method wanted)
{
    return a->start                                     ? CRD_METHOD_BDF1
           : wanted == CRD_METHOD_BDF3 && a->points < 4 ? CRD_METHOD_BDF2
                                                        : wanted;
}

static crd_status try_step(crd_circuit* c, double step)
{
    crdi_control* a = c->control;
    const crd_circuit_options user = c->opt;
    crd_status st = crdi_circuit_restep(c, a->start ? step / 2 : step);
    if (st < 0) { return st; }
    c->opt.method = method_now(a, user.method);
    c->opt.start = CRD_START_CONSTANT;
    c->hold = true;
    if (a->start) {
        st = crdi_circuit_try(c);
        if (st == CRD_OK) { read_states(c, a->middle); }
    }
    if (st == CRD_OK) { st = crdi_circuit_try(c); }
    c->hold = false;
    c->opt.method = user.method;
    c->opt.start = user.start;
    if (st == CRD_OK) { read_states(c, a->end); }
    return st;
}

// Weights of end, point[0], point[1] ... for the local error; returns how many.
//     BDF-k: [t1 .. t-k] times the product of t1 - t0 .. t1 - t(1-k) over the weight of x1
//     TR:    [t1 .. t-2] h^3 / 2, that is h^3/12 x'''
//     TRBDF2: [t1 .. t-2] h^3 (3 g^2 - 4 g + 2) / (2 (2 - g)), g = 2 - sqrt(2) (Bank et al. 1985)
// A start is judged by its two halves: half the second difference each.
static int error_weights(const crdi_control* a, crd_circuit_method method, double h,
                         double w[POINTS + 1])
{
    const int order = method == CRD_METHOD_BDF1 ? 1 : method == CRD_METHOD_BDF3 ? 3 : 2;
    double constant, tau[POINTS + 1] = {0};
    for (int k = 0; k <= order; k++) {
        tau[k + 1] = h + a->ago[k];
    }
    if (method == CRD_METHOD_TR) {
        constant = 0.5 * h * h * h;
    } else if (method == CRD_METHOD_TRBDF2) {
        const double g = 2 - sqrt(2);
        constant = (3 * g * g - 4 * g + 2) / (2 * (2 - g)) * h * h * h;
    } else {
        double product = 1, sum = 0;
        for (int k = 1; k <= order; k++) {
            product *= tau[k];
            sum += 1 / tau[k];
        }
        constant = product / sum;
    }
    for (int i = 0; i <= order + 1; i++) {
        w[i] = constant;
        for (int k = 0; k <= order + 1; k++) {
            if (k != i) { w[i] /= tau[k] - tau[i]; }
        }
    }
    return order + 2;
}

// Of what is allowed, the worst state's: |sum_k w_k y_k| / (relative * largest + absolute)
static double local_error(const crd_circuit* c, const crd_circuit_control* o, double step)
{
    const crdi_control* a = c->control;
    const double* y[POINTS + 1] = {a->end, a->middle, a->point[0]};
    double w[POINTS + 1] = {1, -2, 1}, worst = 0;
    int count = 3;
    if (!a->start) {
        count = error_weights(a, method_now(a, c->opt.method), step, w);
        for (int k = 1; k < count; k++) {
            y[k] = a->point[k - 1];
        }
    }
    for (size_t i = 0; i < a->count; i++) {
        double e = 0;
        for (int k = 0; k < count; k++) {
            e += w[k] * y[k][i];
        }
        const double large = fmax(a->large[i], fmax(fabs(a->end[i]), fabs(a->point[0][i])));
        e = fabs(e) / (o->relative * large + a->floor[i]);
        if (!(e <= worst)) { worst = isnan(e) ? (double)INFINITY : e; }
    }
    return worst;
}

static void push_point(crdi_control* a, double* states, double step) // states are swapped in
{
    double* last = a->point[POINTS - 1];
    for (int k = POINTS - 1; k > 0; k--) {
        a->point[k] = a->point[k - 1];
        a->ago[k] = a->ago[k - 1] + step;
    }
    a->point[0] = states;
    a->ago[0] = 0;
    if (states == a->middle) {
        a->middle = last;
    } else {
        a->end = last;
    }
    if (a->points < POINTS) { a->points++; }
}

static int advance_order_of(const crdi_control* a, crd_circuit_method method)
{
    return a->start || method == CRD_METHOD_BDF1 ? 1 : method == CRD_METHOD_BDF3 ? 3 : 2;
}

// The step was good; the next one may be twice as large where the error, which goes with h^(order +
// 1), would still be below half of what is allowed.
static void accept(crd_circuit* c, double step, double error, double largest)
{
    crdi_control* a = c->control;
    const bool one_step = c->opt.method == CRD_METHOD_TR || c->opt.method == CRD_METHOD_TRBDF2;
    const int order = advance_order_of(a, c->opt.method);
    const bool catching_up = 2 * a->step <= a->cruise; // the size of before the jump
    const int wait = (one_step ? 2 : order + 1) - (catching_up ? 1 : 0);
    c->counts.steps += a->start ? 2 : 1;
    for (size_t i = 0; i < a->count; i++) {
        a->large[i] = fmax(a->large[i], fmax(fabs(a->end[i]), fabs(a->point[0][i])));
    }
    if (a->start) {
        push_point(a, a->middle, step / 2);
        push_point(a, a->end, step / 2);
        a->start = false;
        a->calm = one_step ? wait : 0;
    } else {
        push_point(a, a->end, step);
        a->calm++;
        if (step >= a->step * (1 - 1e-9)) { a->cruise = a->step; } // nothing cut it short
        a->flutter = 0;
    }
    const double more = ldexp(error, order + 1); // with the step doubled
    if (more < 0.5 && a->calm >= wait && 2 * a->step <= largest && step >= 0.5 * a->step) {
        a->step *= 2;
        a->calm = 0;
    }
}

// ---- events ------------------------------------------------------------------------------------

// How far the control of every switch is beyond its two thresholds.
static void advance_measure(const crd_circuit* c, double* excess)
{
    const crdi_control* a = c->control;
    for (int i = 0; i < a->switch_count; i++) {
        crdi_switch_excess(c, a->switches[i], excess + 2 * (ptrdiff_t)i);
    }
}

// > 0: a threshold was passed that was not at the beginning of the step.
static double passed(const crd_circuit* c, const double* now)
{
    const crdi_control* a = c->control;
    double most = -DBL_MAX;
    for (int i = 0; i < 2 * a->switch_count; i++) {
        if (a->excess[i] <= 0) { most = fmax(most, now[i]); }
    }
    return most;
}

static crd_status try_again(crd_circuit* c, double step, double* beyond)
{
    crdi_control* a = c->control;
    crdi_circuit_return(c, a->save);
    const crd_status st = try_step(c, step);
    if (st < 0) { return st; }
    advance_measure(c, a->beyond);
    *beyond = passed(c, a->beyond);
    return CRD_OK;
}

// The step ended beyond a threshold; it is made shorter until it ends just behind it. The secant
// aims a little behind the crossing, so that both sides come near.
static crd_status locate(crd_circuit* c, double* step)
{
    crdi_control* a = c->control;
    const double close = fmax(LOCATE * *step, 4 * ulp(crdi_circuit_time(c, 0)));
    double low = 0, high = *step, below = passed(c, a->excess), above = passed(c, a->beyond);
    double now = above, at = high;
    for (int k = 0; k < 100; k++) {
        double next = low + (high - low) * (below / (below - above));
        if (now > 0 && high - next <= close) { break; } // here it is
        next = k % 4 == 3 ? 0.5 * (low + high) : next + 0.5 * close;
        if (k == 0 && a->start) { next = close; } // what jumped may have moved it at once
        if (!(next > low && next < high)) { next = 0.5 * (low + high); }
        at = next;
        const crd_status st = try_again(c, at, &now);
        if (st < 0) { return st; }
        if (now > 0) {
            high = at;
            above = now;
        } else {
            low = at;
            below = now;
        }
        if (high - low <= close) { break; }
    }
    *step = high;
    return at == high ? CRD_OK : try_again(c, high, &now);
}

// ---- one step ----------------------------------------------------------------------------------

typedef struct goal {
    double step;
    double lands; // at this time; NaN: nowhere in particular
} goal;

// A corner is seen from the left: the step ends where sources do not know of it yet.
static goal advance_plan(const crd_circuit* c, double t, double stop)
{
    const crdi_control* a = c->control;
    const double to = fmin(stop, a->corner), rest = to - t;
    const bool multistep = c->opt.method == CRD_METHOD_BDF2 || c->opt.method == CRD_METHOD_BDF3;
    double step = a->step;
    if (multistep && !a->start) { // or what is behind would weigh more than what comes
        step = fmin(step, rung(a, 2 * a->ago[1]));
    }
    if (step < 0.5 * rest * (1 - 1e-9)) { return (goal){step, (double)NAN}; }
    if (step < rest * (1 - 1e-9)) { return (goal){rest / 2, (double)NAN}; }
    step = rest;
    for (int k = 0; k < 4 && to == a->corner && !(t + step < to); k++) {
        step -= ulp(to);
    }
    return (goal){step, to};
}

// Smaller by 2^-k, k = log2(2 error) / (order + 1) rounded up, 1 to 6 (3 without a solution). true:
// a jump is suspected.
static bool reject(crd_circuit* c, const goal* g, double error, int times)
{
    crdi_control* a = c->control;
    const int order = advance_order_of(a, c->opt.method);
    const int most = isfinite(error) ? (int)ceil(log2(2 * error) / (order + 1)) : 3;
    c->counts.rejected++;
    crdi_circuit_return(c, a->save);
    a->step = rung(a, ldexp(g->step, -(most < 1 ? 1 : most > 6 ? 6 : most)));
    a->calm = 0;
    return !a->start && times >= PATIENCE;
}

// A switch that keeps something at its threshold switches ever faster: then steps of the first
// size go on without looking for the moments.
static bool restless(const crdi_control* a, double t)
{
    return a->crowd >= FLUTTER && t - a->event_at < a->base;
}

static void arrive(crd_circuit* c, const goal* g, bool event)
{
    crdi_control* a = c->control;
    if (!isnan(g->lands)) { // exactly
        c->t0 = g->lands;
        c->steps = 0;
    }
    const double t = crdi_circuit_time(c, 0);
    const bool corner = t >= a->corner;
    if (corner) { a->corner = next_corner(c, t); }
    const bool rest = !restless(a, t);
    if (event) {
        a->crowd = t - a->event_at < CROWDED * a->base || !rest ? a->crowd + 1 : 0;
        a->event_at = t;
    }
    if (corner || event) {
        c->counts.events++;
        a->flutter += event;
        jump(c);
    }
    a->time = t;
}

static crd_status advance_to(crd_circuit* c, double stop, const crd_circuit_control* o)
{
    crdi_control* a = c->control;
    const double t = crdi_circuit_time(c, 0);
    const double smallest =
        fmax(o->smallest > 0 ? o->smallest : 1e-9 * a->base, 16 * ulp(fmax(fabs(t), fabs(stop))));
    double largest = fmin(o->largest > 0 ? o->largest : (double)INFINITY, a->fastest / PER_PERIOD);
    largest = fmax(largest, smallest);
    if (a->step > largest) { a->step = rung(a, largest); }
    c->t0 = t; // a count does not help where steps change
    c->steps = 0;
    crd_circuit_save(c, a->save);
    advance_measure(c, a->excess);
    const bool hurried = restless(a, t);
    if (hurried) { a->step = fmin(rung(a, a->base), largest); }
    for (int times = 1;; times++) {
        goal g = advance_plan(c, t, stop);
        bool event = false;
        crd_status st = try_step(c, g.step);
        const double error = st == CRD_OK ? local_error(c, o, g.step) : (double)INFINITY;
        const bool last = g.step <= smallest;
        // A start that is that short moves only what jumps.
        const bool good = st == CRD_OK && (error <= 1 || hurried || (last && a->start));
        if (good) {
            advance_measure(c, a->beyond);
            event = passed(c, a->beyond) > 0;
            if (event && !hurried && g.step > 16 * smallest && a->flutter < FLUTTER) {
                st = locate(c, &g.step);
                g.lands = (double)NAN;
            }
        }
        if (st != CRD_OK && st != CRD_E_CONVERGENCE) {
            crdi_circuit_return(c, a->save);
            return st;
        }
        if (good && st == CRD_OK) {
            accept(c, g.step, error, largest);
            arrive(c, &g, event);
            return CRD_OK;
        }
        const bool suspect = reject(c, &g, st < 0 ? (double)INFINITY : error, times);
        if (st < 0 && last && a->start) {
            return crdi_fail_in(c->ctx, st, "with a step of %g s", g.step);
        }
        if (suspect || (last && !a->start)) {
            jump(c);
            crd_circuit_save(c, a->save);
        }
        a->step = fmax(a->step, fmin(smallest, g.step));
    }
}

static crd_status check_control(crd_circuit* c, double stop, const crd_circuit_control* o)
{
    const crd_circuit_method m = c->opt.method;
    if (!c->begun) {
        return crdi_fail(c->ctx, CRD_E_STATE, "circuit: a step before crd_circuit_begin");
    }
    if (m > CRD_METHOD_TRBDF2 || m == CRD_METHOD_TR_CARRIED) {
        return crdi_fail(c->ctx, CRD_E_UNSUPPORTED,
                         "circuit: steps of varying size need BDF1, BDF2, BDF3, TR or TRBDF2");
    }
    if (!isfinite(stop)) {
        return crdi_fail(c->ctx, CRD_E_RANGE, "circuit: advance to t = %g, expected a time", stop);
    }
    if (!(o->relative >= 0 && o->voltage >= 0 && o->current >= 0 &&
          o->relative + fmin(o->voltage, o->current) > 0 && isfinite(o->relative))) {
        return crdi_fail(c->ctx, CRD_E_RANGE,
                         "circuit: tolerances %g, %g V, %g A, expected >= 0 and not all 0",
                         o->relative, o->voltage, o->current);
    }
    if (!(o->smallest >= 0 && o->largest >= 0)) {
        return crdi_fail(c->ctx, CRD_E_RANGE, "circuit: steps of %g to %g s, expected >= 0",
                         o->smallest, o->largest);
    }
    return CRD_OK;
}

crd_status crd_circuit_advance(crd_circuit* c, double t_stop, const crd_circuit_control* control)
{
    crd_status st = check_control(c, t_stop, control);
    if (st == CRD_OK && !c->control) { st = make_control(c); }
    if (st < 0) { return st; }
    const double t = crdi_circuit_time(c, 0);
    if (!(t < t_stop)) { return CRD_OK; }
    set_floors(c, control);
    look_around(c);
    // Corners of two sources may be apart by rounding, and t_stop from them: no step in between.
    const double close = fmax(16 * ulp(t_stop), 1e-10 * c->control->base);
    double to = fmin(t_stop, c->control->corner);
    while (crdi_circuit_time(c, 0) < t_stop && to - crdi_circuit_time(c, 0) <= close) {
        arrive(c, &(goal){0, to}, false);
        to = fmin(t_stop, c->control->corner);
    }
    return crdi_circuit_time(c, 0) < t_stop ? advance_to(c, t_stop, control) : CRD_OK;
}
