// The cheapest method and step for an accuracy, by trial.
#include "circuit/circuit.h"
#include "shared/base.h"
#include "shared/circuit_part.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SAMPLES 2000    // of a signal at most
#define NUMBERS 2e7     // of all signals
#define SHARPER 0.03125 // the tolerance of the next reference
#define ROUNDS 6        // references at most
#define TRUSTED 0.05    // of the accuracy: how well two references agree
#define MOST_STEPS 5e7
// Of all trials together: a search that takes a minute is no answer.
#define MOST_IN_ALL 1e7
#define MOST_VARIED 3e6 // of all references: variable steps cost more

typedef struct search {
    crd_context* ctx;
    crd_arena arena; // of references and sums
    const crd_netlist* n;
    crd_circuit_options opt;
    double accuracy, stop;
    int signals; // outputs, or nodes but ground
    int samples;
    double grid;        // of the samples
    double unit;        // the grid of steps: options.step
    double spent;       // steps of all trials
    double varied;      // of all references
    int64_t stride;     // grid / unit
    double *y, *finer;  // (samples x signals) references
    double* sum;        // (signals) of squares
    double* range;      // (signals)
    unsigned char* use; // (samples) 0: a source has a corner there, and two values
    int64_t used;
} search;

static double choose_look(const search* s, crd_circuit* c, int signal)
{
    return s->n->output_count > 0 ? crd_circuit_get_output(c, signal)
                                  : crd_circuit_voltage(c, signal + 1);
}

static double sample_time(const search* s, int i)
{
    return (i + 1) * s->grid;
}

// ---- room --------------------------------------------------------------------------------------

static crd_status choose_make_room(search* s)
{
    const crd_netlist* n = s->n;
    s->signals = n->output_count > 0 ? n->output_count : n->node_count - 1;
    const double units = floor(s->stop / s->unit * (1 + 1e-9));
    const double most = fmax(fmin(SAMPLES, NUMBERS / fmax(1, s->signals)), 20);
    s->stride = (int64_t)ceil(units / most);
    s->samples = (int)(units / (double)s->stride);
    s->grid = (double)s->stride * s->unit;
    const size_t all = (size_t)s->samples * (size_t)s->signals;
    s->y = crdi_arena_new(&s->arena, all, sizeof *s->y);
    s->finer = crdi_arena_new(&s->arena, all, sizeof *s->finer);
    s->sum = crdi_arena_new(&s->arena, (size_t)s->signals, sizeof *s->sum);
    s->range = crdi_arena_new(&s->arena, (size_t)s->signals, sizeof *s->range);
    s->use = crdi_arena_new(&s->arena, (size_t)s->samples, sizeof *s->use);
    return crdi_arena_status(&s->arena);
}

static void mark_corners(search* s)
{
    for (int i = 0; i < s->samples; i++) {
        const double t = sample_time(s, i), near = 1e-6 * s->unit;
        s->use[i] = 1;
        for (int k = 0; k < s->n->wave_count; k++) {
            if (crd_waveform_next(&s->n->waves[k], t - near) <= t + near) { s->use[i] = 0; }
        }
        s->used += s->use[i];
    }
}

// ---- errors ------------------------------------------------------------------------------------

static void find_ranges(search* s)
{
    double top = DBL_MIN;
    for (int k = 0; k < s->signals; k++) {
        double low = s->y[k], high = low;
        for (int i = 1; i < s->samples; i++) {
            const double y = s->y[(size_t)i * (size_t)s->signals + (size_t)k];
            low = fmin(low, y);
            high = fmax(high, y);
        }
        // what does not move is judged by its size
        s->range[k] = high - low > 1e-9 * fmax(fabs(low), fabs(high)) ? high - low : fabs(high);
        top = fmax(top, s->range[k]);
    }
    for (int k = 0; k < s->signals; k++) { // and what is dead beside the others by theirs
        s->range[k] = fmax(s->range[k], 1e-9 * top);
    }
}

// Root mean square over the range, the worst signal's.
static double worst_error(const search* s, int* worst)
{
    double most = -1;
    for (int k = 0; k < s->signals; k++) {
        const double e = sqrt(s->sum[k] / (double)s->used) / s->range[k];
        if (!(e <= most)) { // NaN too
            most = e;
            *worst = k;
        }
    }
    return isnan(most) ? (double)INFINITY : most;
}

static void add_sample(search* s, int i, const double* row, const double* reference)
{
    if (!s->use[i]) { return; }
    for (int k = 0; k < s->signals; k++) {
        const double e = row[k] - reference[k];
        s->sum[k] += e * e;
    }
}

// ---- the reference -----------------------------------------------------------------------------

static crd_status choose_create(search* s, crd_circuit_method method, double step,
                                crd_circuit** out)
{
    crd_circuit_options o = s->opt;
    o.method = method;
    o.step = step;
    o.fixed_iterations = false;
    const crd_status st = crd_circuit_create(s->ctx, s->n, &o, out);
    if (st == CRD_OK) { (*out)->warned = method != CRD_METHOD_BDF3; } // once is enough
    return st;
}

static crd_status run_reference(search* s, crd_circuit* c, double relative, double* y)
{
    const crd_circuit_control control = {
        .relative = relative, .voltage = 1e-4 * relative, .current = 1e-4 * relative};
    crd_status st = crd_circuit_begin(c, 0);
    for (int i = 0; i < s->samples && st == CRD_OK; i++) {
        const double t = sample_time(s, i);
        while (st == CRD_OK && crd_circuit_time(c) < t && s->varied < MOST_VARIED) {
            const crd_circuit_counts before = crd_circuit_get_counts(c);
            st = crd_circuit_advance(c, t, &control);
            const crd_circuit_counts after = crd_circuit_get_counts(c);
            s->varied += (double)(after.factorisations - before.factorisations + 1);
        }
        if (st == CRD_OK && s->varied >= MOST_VARIED) {
            return crdi_fail(s->ctx, CRD_E_CONVERGENCE,
                             "circuit: no reference for an accuracy of %g within %g steps: what "
                             "switches often has no such step; ask for less, or a shorter stop",
                             s->accuracy, MOST_VARIED);
        }
        for (int k = 0; k < s->signals && st == CRD_OK; k++) {
            *y++ = choose_look(s, c, k);
        }
    }
    return st;
}

// Sharper and sharper, until that does not matter any more.
static crd_status find_reference(search* s)
{
    crd_circuit* c = NULL;
    crd_status st = CRD_OK;
    double relative = 0.1 * s->accuracy, off = (double)INFINITY;
    int worst = 0;
    CRD_TRY(choose_create(s, CRD_METHOD_BDF3, s->unit, &c));
    CRD_TRY(run_reference(s, c, relative, s->y));
    for (int round = 0; round < ROUNDS && !(off <= TRUSTED * s->accuracy); round++) {
        relative = fmax(SHARPER * relative, 1e-13);
        CRD_TRY(run_reference(s, c, relative, s->finer));
        memset(s->sum, 0, (size_t)s->signals * sizeof *s->sum);
        double* coarser = s->y;
        s->y = s->finer;
        s->finer = coarser;
        find_ranges(s);
        for (int i = 0; i < s->samples; i++) {
            const size_t at = (size_t)i * (size_t)s->signals;
            add_sample(s, i, coarser + at, s->y + at);
        }
        off = worst_error(s, &worst);
    }
    if (!(off <= TRUSTED * s->accuracy)) {
        st = crdi_fail(
            s->ctx, CRD_E_CONVERGENCE,
            "circuit: no reference for an accuracy of %g: the last two differ by %g of "
            "the range of %s",
            s->accuracy, off,
            crdi_clip(s->n->output_count > 0 ? s->n->outputs[worst].name : s->n->nodes[worst + 1])
                .text);
    }
fail:
    crd_circuit_destroy(c);
    return st;
}

// ---- trials ------------------------------------------------------------------------------------

static int64_t divisor(int k) // 1 2 4 5 10 20 40 50 100 ...
{
    int64_t d = (int64_t[]){1, 2, 4, 5}[k % 4];
    for (; k >= 4; k -= 4) {
        d *= 10;
    }
    return d;
}

typedef struct trial {
    double error; // INFINITY: it did not run
    int worst;
    int64_t cost;
} trial;

static crd_status run_trial(search* s, crd_circuit* c, int64_t parts, trial* out)
{
    *out = (trial){(double)INFINITY, 0, INT64_MAX};
    memset(s->sum, 0, (size_t)s->signals * sizeof *s->sum);
    crd_status st = crd_circuit_set_step(c, s->unit / (double)parts);
    if (st == CRD_OK) { st = crd_circuit_begin(c, 0); }
    for (int i = 0; i < s->samples && st == CRD_OK; i++) {
        for (int64_t k = 0; k < parts * s->stride && st == CRD_OK; k++) {
            st = crd_circuit_step(c);
        }
        const double* reference = s->y + (size_t)i * (size_t)s->signals;
        for (int k = 0; k < s->signals && st == CRD_OK && s->use[i]; k++) {
            const double e = choose_look(s, c, k) - reference[k];
            s->sum[k] += e * e;
        }
    }
    if (st == CRD_E_CONVERGENCE) { return CRD_OK; }
    if (st == CRD_OK) {
        out->error = worst_error(s, &out->worst);
        const crd_circuit_counts k = crd_circuit_get_counts(c);
        out->cost = k.iterations > k.steps ? k.iterations : k.steps;
    }
    return st;
}

static int choose_order_of(crd_circuit_method method)
{
    return method == CRD_METHOD_BDF1 ? 1 : method == CRD_METHOD_BDF3 ? 3 : 2;
}

// The largest step of a method that is accurate enough, as long as it is cheaper than the best.
static crd_status try_method(search* s, crd_circuit_method method, crd_circuit_choice* best,
                             int64_t* cost)
{
    crd_circuit* c = NULL;
    crd_status st = choose_create(s, method, s->unit, &c);
    const double units = (double)s->stride * s->samples;
    const int solves = method == CRD_METHOD_TRBDF2 ? 2 : 1;
    for (int k = 0; st == CRD_OK; k++) {
        const double steps = units * (double)divisor(k);
        if (steps * solves >= (double)*cost || steps > MOST_STEPS) { break; }
        if (k > 0 && s->spent + steps > MOST_IN_ALL) {
            s->spent = MOST_IN_ALL;
            break;
        }
        s->spent += steps;
        trial t;
        st = run_trial(s, c, divisor(k), &t);
        if (st == CRD_OK && t.error <= s->accuracy) {
            if (t.cost < *cost) {
                *cost = t.cost;
                *best =
                    (crd_circuit_choice){.method = method,
                                         .step = s->unit / (double)divisor(k),
                                         .error = t.error,
                                         .worst = s->n->output_count > 0 ? t.worst : t.worst + 1,
                                         .steps = llround(s->stop / s->unit * (double)divisor(k))};
            }
            break;
        }
        // Far off: leave out what its order says cannot do, with a factor of 4 for luck.
        const double far = pow(t.error / s->accuracy / 4, 1.0 / choose_order_of(method));
        while (isfinite(far) && (double)divisor(k + 1) < far * steps / units && k < 40) {
            k++;
        }
    }
    crd_circuit_destroy(c);
    return st;
}

static bool choose_is_plain(const crd_netlist* n) // linear, without switches
{
    for (int32_t i = 0; i < n->part_count; i++) {
        if (!crdi_part_is_linear(&n->parts[i])) { return false; }
    }
    return true;
}

static crd_status check_wishes(crd_context* ctx, const crd_circuit_options* opt, double accuracy,
                               double stop)
{
    if (!(accuracy >= 1e-10 && accuracy < 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "circuit: accuracy = %g, expected 1e-10 to 1", accuracy);
    }
    if (!(opt->step > 0 && isfinite(opt->step))) {
        return crdi_fail(ctx, CRD_E_RANGE, "circuit: step = %g s, expected > 0", opt->step);
    }
    if (!(stop >= opt->step * (1 - 1e-9) && stop / opt->step <= MOST_STEPS)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "circuit: stop = %g s, expected 1 to %g steps of the grid of %g s", stop,
                         MOST_STEPS, opt->step);
    }
    return CRD_OK;
}

static crd_status choose_method(crd_context* ctx, const crd_netlist* n,
                                const crd_circuit_options* opt, double accuracy, double stop,
                                crd_circuit_choice* out, bool* tired)
{
    static const crd_circuit_method methods[] = {CRD_METHOD_BDF3, CRD_METHOD_TR, CRD_METHOD_BDF2,
                                                 CRD_METHOD_TRBDF2, CRD_METHOD_BDF1};
    search s = {
        .ctx = ctx, .n = n, .opt = *opt, .accuracy = accuracy, .stop = stop, .unit = opt->step};
    crd_circuit_choice best = {0};
    int64_t cost = INT64_MAX;
    crd_status st = check_wishes(ctx, opt, accuracy, stop);
    if (st < 0) { return st; }
    crd_arena_init(&s.arena, ctx);
    CRD_TRY(choose_make_room(&s));
    mark_corners(&s);
    if (s.used == 0) {
        st = crdi_fail(ctx, CRD_E_RANGE,
                       "circuit: sources have corners at all samples, every %g s: accuracy is not "
                       "seen there",
                       s.grid);
        goto fail;
    }
    CRD_TRY(find_reference(&s));
    const bool plain = choose_is_plain(n);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (plain && methods[i] == CRD_METHOD_TRBDF2) { continue; }
        CRD_TRY(try_method(&s, methods[i], &best, &cost));
    }
    if (cost == INT64_MAX) {
        st =
            crdi_fail(ctx, CRD_E_CONVERGENCE,
                      "circuit: no method keeps %g of the range with steps of 1, 1/2, 1/4 ... of "
                      "%g s%s",
                      accuracy, s.unit,
                      s.spent >= MOST_IN_ALL
                          ? " within ten million steps of trials; an oscillator whose phase drifts "
                            "has no such step"
                          : "");
        goto fail;
    }
    *out = best;
fail:
    *tired = s.varied >= MOST_VARIED || s.spent >= MOST_IN_ALL;
    crd_arena_clear(&s.arena);
    return st;
}

// The reference takes tiny steps, for which the other form may be the better one.
crd_status crd_circuit_choose(crd_context* ctx, const crd_netlist* n,
                              const crd_circuit_options* opt, double accuracy, double stop,
                              crd_circuit_choice* out)
{
    bool tired = false;
    crd_status st = choose_method(ctx, n, opt, accuracy, stop, out, &tired);
    if (st == CRD_E_CONVERGENCE && opt->form == CRD_FORM_AUTO && !tired) {
        crd_circuit_options other = *opt;
        other.form = CRD_FORM_DAE;
        st = choose_method(ctx, n, &other, accuracy, stop, out, &tired);
    }
    return st;
}
