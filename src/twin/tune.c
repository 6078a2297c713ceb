// Values of parts, sources and initial states from measurements.
//
// Maximum likelihood with known dynamics is least squares of the outputs: r = (measured - y) / sd,
// Levenberg-Marquardt in the logarithms of parameters, with exact sensitivities.
#include "shared/base_progress.h"
#include "shared/circuit_part.h"
#include "twin/factor.h"
#include "twin/respond.h"

#include <float.h>
#include <math.h>
#include <string.h>

// No step changes a logarithm by more than this: the model is far from linear over decades.
#define LONGEST 1.5
// So many states at the start at most are tested: the work grows with the cube of their number.
#define MOST_TESTED 100

crd_tune_options crd_tune_defaults(void)
{
    return (crd_tune_options){.max_iterations = 100, .tolerance = 1e-10, .points = 7, .decades = 3};
}

typedef struct fit {
    crd_context* ctx;
    crdi_response r;
    const crd_twin_data* data;
    const crd_tune_options* opt;
    int sensors;
    double* sd; // (sensors)
    crdi_qr qr; // J and r
    crdi_qr damped;
    double *step, *trial, *best, *room;
    double cost;
    bool prior;                  // the states at the start are known to spec.state_sd
    double *squares, *residuals; // (sensors); (sensors x rows) normalised, for whiteness
    int64_t* counts;
    bool keep;
    int tried; // sets of values, so far
} fit;

static void tune_add(void* user, int64_t row, const double* y, double* dy)
{
    fit* f = user;
    const int m = f->r.m;
    for (int i = 0; i < f->sensors; i++) {
        const double measured = f->data->measurements[row * f->sensors + i];
        if (!isfinite(measured)) { continue; }
        const double miss = (measured - y[i]) / f->sd[i];
        f->cost += miss * miss;
        if (f->keep) {
            f->residuals[i * f->data->rows + f->counts[i]] = miss;
            f->squares[i] += (measured - y[i]) * (measured - y[i]);
            f->counts[i]++;
        }
        if (!dy) { continue; }
        double* line = dy + (ptrdiff_t)i * m;
        for (int j = 0; j < m; j++) {
            line[j] /= f->sd[i];
        }
        crdi_qr_add(&f->qr, line, miss);
    }
}

// What is known about the states at the start: (netlist - z) / sd is one more residual each.
static void add_prior(fit* f, bool slopes)
{
    const int first = f->r.k + f->r.s, m = f->r.m;
    const double sd = f->r.w->spec.state_sd;
    for (int i = 0; i < f->r.p && f->prior; i++) {
        const double miss = (f->r.start[i] - f->r.x[first + i]) / sd;
        f->cost += miss * miss;
        if (!slopes) { continue; }
        memset(f->room, 0, (size_t)m * sizeof *f->room);
        f->room[first + i] = 1 / sd;
        crdi_qr_add(&f->qr, f->room, miss);
    }
}

// Sum of squares at x; infinite where the model cannot be computed
static crd_status cost_at(fit* f, const double* x, bool slopes, double* out)
{
    crdi_progress(f->ctx, "tuning", f->tried++, 0, "trials");
    memcpy(f->r.x, x, (size_t)f->r.m * sizeof *x);
    if (slopes) { crdi_qr_clear(&f->qr); }
    f->cost = 0;
    const crd_status st = crdi_respond(&f->r, slopes, tune_add, f);
    add_prior(f, slopes);
    *out = st < 0 || !isfinite(f->cost) ? (double)INFINITY : f->cost;
    return st == CRD_E_MEMORY ? st : CRD_OK;
}

// ---- a start -----------------------------------------------------------------------------------

static bool stores(const fit* f, int parameter)
{
    const crd_twin* w = f->r.w;
    const int32_t part = w->spec.parameters[parameter].group.parts[0];
    return crdi_part_kind_of(&w->net->parts[part])->stores != CRDI_STORES_NOTHING;
}

static double offset(const fit* f, int i)
{
    const double decades = -f->opt->decades + 2 * f->opt->decades * i / (f->opt->points - 1);
    return decades * 2.302585092994046;
}

// Everything resistive and everything that stores, each by a common factor; then one parameter
// after the other.
static crd_status look_for_start(fit* f)
{
    const int m = f->r.m, points = f->opt->points;
    double lowest;
    crd_status st = cost_at(f, f->best, false, &lowest);
    double *base = f->room, *winner = f->room + m;
    memcpy(base, f->best, (size_t)m * sizeof *base);
    memcpy(winner, base, (size_t)m * sizeof *base);
    for (int a = 0; a < points && st == CRD_OK; a++) {
        for (int b = 0; b < points && st == CRD_OK; b++) {
            double now;
            memcpy(f->trial, base, (size_t)m * sizeof *base);
            for (int j = 0; j < f->r.k; j++) {
                f->trial[j] += offset(f, stores(f, j) ? b : a);
            }
            st = cost_at(f, f->trial, false, &now);
            if (now < lowest) {
                lowest = now;
                memcpy(winner, f->trial, (size_t)m * sizeof *base);
            }
        }
    }
    for (int sweep = 0; sweep < 3 && st == CRD_OK; sweep++) {
        for (int j = 0; j < f->r.k && st == CRD_OK; j++) {
            memcpy(f->trial, winner, (size_t)m * sizeof *base);
            for (int a = 0; a < points && st == CRD_OK; a++) {
                double now;
                f->trial[j] = base[j] + offset(f, a);
                st = cost_at(f, f->trial, false, &now);
                if (now < lowest) {
                    lowest = now;
                    winner[j] = f->trial[j];
                }
            }
        }
    }
    memcpy(f->best, winner, (size_t)m * sizeof *base);
    return st;
}

// ---- Levenberg-Marquardt -----------------------------------------------------------------------

// (J^T J + lambda diag(J^T J)) step = J^T r, by rows under R
static bool find_step(fit* f, double lambda)
{
    const int m = f->r.m;
    memcpy(f->damped.r, f->qr.r, (size_t)m * (size_t)m * sizeof(double));
    memcpy(f->damped.b, f->qr.b, (size_t)m * sizeof(double));
    for (int j = 0; j < m; j++) {
        double length = 0;
        for (int i = 0; i <= j; i++) {
            length += f->qr.r[(ptrdiff_t)i * m + j] * f->qr.r[(ptrdiff_t)i * m + j];
        }
        memset(f->room, 0, (size_t)m * sizeof *f->room);
        f->room[j] = sqrt(lambda * length);
        crdi_qr_add(&f->damped, f->room, 0);
    }
    if (!crdi_qr_solve(&f->damped, f->step)) { return false; }
    for (int j = 0; j < f->r.k; j++) {
        f->step[j] = fmax(-LONGEST, fmin(LONGEST, f->step[j]));
    }
    return true;
}

static double size_of_step(const fit* f)
{
    double largest = 0;
    for (int j = 0; j < f->r.m; j++) {
        const double scale = j < f->r.k ? 1 : fmax(fabs(f->best[j]), 1e-12);
        largest = fmax(largest, fabs(f->step[j]) / scale);
    }
    return largest;
}

static crd_status tune_iterate(fit* f, crd_tune_result* out)
{
    const int m = f->r.m;
    double now, lambda = 1e-3;
    crd_status st = cost_at(f, f->best, true, &now);
    if (st == CRD_OK && !isfinite(now)) {
        return crdi_fail(f->ctx, CRD_E_CONVERGENCE,
                         "twin: the model cannot be computed at the start values");
    }
    out->converged = m == 0;
    for (; st == CRD_OK && out->iterations < f->opt->max_iterations && !out->converged;) {
        out->iterations++;
        if (!find_step(f, lambda)) {
            lambda *= 10;
            if (lambda > 1e12) { break; }
            continue;
        }
        double next;
        for (int j = 0; j < m; j++) {
            f->trial[j] = f->best[j] + f->step[j];
        }
        const double moved = size_of_step(f);
        st = cost_at(f, f->trial, false, &next);
        if (next <= now) {
            out->converged = moved < f->opt->tolerance || now - next <= 1e-14 * now;
            memcpy(f->best, f->trial, (size_t)m * sizeof *f->best);
            st = cost_at(f, f->best, true, &now);
            lambda = fmax(lambda / 10, 1e-12);
        } else {
            // below rounding of the sum of squares no step can be better
            out->converged = moved < sqrt(f->opt->tolerance) && next - now <= 1e-12 * now;
            lambda *= 10;
            if (lambda > 1e12) { break; }
        }
    }
    return st;
}

// ---- the result --------------------------------------------------------------------------------

static crd_status measure_noise(fit* f)
{
    double cost;
    f->keep = true;
    memset(f->squares, 0, (size_t)f->sensors * sizeof *f->squares);
    memset(f->counts, 0, (size_t)f->sensors * sizeof *f->counts);
    const crd_status st = cost_at(f, f->best, false, &cost);
    f->keep = false;
    return st;
}

static void say_noise(fit* f, crd_tune_result* out)
{
    out->ljung_box = out->flatness = (double)NAN; // too few rows to tell
    for (int i = 0; i < f->sensors; i++) {
        const double count = (double)f->counts[i];
        out->measurements += f->counts[i];
        out->squares += f->squares[i] / (f->sd[i] * f->sd[i]);
        out->sensor_sd[i] = f->sd[i];
        out->residual_rms[i] = count > 0 ? sqrt(f->squares[i] / count) : (double)NAN;
        const double* x = f->residuals + i * f->data->rows;
        out->ljung_box = fmax(out->ljung_box, crd_ljung_box(x, f->counts[i], 50));
        out->flatness = fmin(out->flatness, crd_flatness(x, f->counts[i]));
        out->likelihood -= 0.5 * count * log(6.283185307179586 * f->sd[i] * f->sd[i]) +
                           0.5 * f->squares[i] / (f->sd[i] * f->sd[i]);
    }
}

// What the measurements cannot tell is no result. At the values that were found: far from them a
// part may not show though it does.
static crd_status check_found(const fit* f, const crd_netlist* n, const crd_twin_spec* spec,
                              crd_arena* arena)
{
    crd_twin_spec found = *spec;
    crd_twin_parameter* p = crdi_arena_new(arena, (size_t)f->r.k + 1, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    for (int i = 0; i < f->r.k; i++) {
        p[i] = spec->parameters[i];
        p[i].start = exp(f->best[i]);
    }
    found.parameters = p;
    return crd_twin_require_observable(f->ctx, n, &found, f->data, f->opt->fit_start && !f->prior);
}

static crd_status say_values(fit* f, crd_tune_result* out)
{
    const int m = f->r.m;
    if (!crdi_qr_covariance(&f->qr, out->covariance, f->room)) {
        return crdi_fail(f->ctx, CRD_E_CONVERGENCE,
                         "twin: these sensors and this experiment do not determine all of the %d "
                         "unknowns; cardan twin check says which",
                         m);
    }
    for (int j = 0; j < m; j++) {
        const double sd = sqrt(out->covariance[(ptrdiff_t)j * m + j]);
        out->value[j] = j < f->r.k ? exp(f->best[j]) : f->best[j];
        out->sd[j] = j < f->r.k ? out->value[j] * sd : sd;
    }
    return CRD_OK;
}

// Would other states at the start explain the measurements better? With the residuals r at the
// values that were found and the sensitivities J to them and to the states at the start, the sum of
// squares falls by |Q^T r|^2, J = Q R, if all are found together: a score test.
static crd_status test_start(fit* f, const crd_netlist* n, const crd_twin_spec* spec,
                             crd_arena* arena, crd_tune_result* out)
{
    fit all = {.ctx = f->ctx, .data = f->data, .opt = f->opt, .sensors = f->sensors, .sd = f->sd};
    out->start_states = f->r.w->p;
    out->start_squares = (double)NAN;
    if (f->r.p || f->r.w->p == 0 || f->r.w->p > MOST_TESTED) { return CRD_OK; }
    crd_status st = crdi_response_create(f->ctx, n, spec, f->data, true, arena, &all.r);
    if (st < 0) { return st; }
    const size_t m = (size_t)all.r.m;
    double cost = 0, sum = 0;
    all.qr = (crdi_qr){.m = all.r.m,
                       .r = crdi_arena_new(arena, m * m, sizeof(double)),
                       .b = crdi_arena_new(arena, m, sizeof(double))};
    double* x = crdi_arena_new(arena, m, sizeof *x);
    CRD_TRY(all.qr.r && all.qr.b && x ? CRD_OK : CRD_E_MEMORY);
    memcpy(x, all.r.x, m * sizeof *x);
    memcpy(x, f->best, (size_t)f->r.m * sizeof *x); // then the states, as the netlist has them
    CRD_TRY(cost_at(&all, x, true, &cost));
    for (size_t i = 0; i < m; i++) {
        sum += all.qr.b[i] * all.qr.b[i];
    }
    out->start_squares = sum;
fail:
    crdi_response_destroy(&all.r);
    return st;
}

static bool tune_make_room(fit* f, crd_arena* arena, crd_tune_result* out)
{
    const size_t m = (size_t)f->r.m + 1, sensors = (size_t)f->sensors + 1, d = sizeof(double);
    f->qr.m = f->damped.m = f->r.m;
    return (f->sd = crdi_arena_new(arena, sensors, d)) &&
           (f->qr.r = crdi_arena_new(arena, m * m, d)) && (f->qr.b = crdi_arena_new(arena, m, d)) &&
           (f->damped.r = crdi_arena_new(arena, m * m, d)) &&
           (f->damped.b = crdi_arena_new(arena, m, d)) && (f->step = crdi_arena_new(arena, m, d)) &&
           (f->trial = crdi_arena_new(arena, m, d)) && (f->best = crdi_arena_new(arena, m, d)) &&
           (f->room = crdi_arena_new(arena, m * m + 2 * m, d)) &&
           (f->squares = crdi_arena_new(arena, sensors, d)) &&
           (f->counts = crdi_arena_new(arena, sensors, sizeof *f->counts)) &&
           (f->residuals = crdi_arena_new(arena, sensors * (size_t)(f->data->rows + 1), d)) &&
           (out->value = crdi_arena_new(arena, m, d)) && (out->sd = crdi_arena_new(arena, m, d)) &&
           (out->covariance = crdi_arena_new(arena, m * m, d)) &&
           (out->sensor_sd = crdi_arena_new(arena, sensors, d)) &&
           (out->residual_rms = crdi_arena_new(arena, sensors, d));
}

static crd_status likelihood(fit* f, crd_tune_result* out)
{
    crd_status st = CRD_OK;
    if (f->opt->points > 1 && f->r.k > 0) { st = look_for_start(f); }
    if (st == CRD_OK) { st = tune_iterate(f, out); }
    for (int again = 0; again < 3 && f->opt->fit_noise && st == CRD_OK; again++) {
        st = measure_noise(f);
        for (int i = 0; i < f->sensors; i++) {
            const double variance = f->squares[i] / (double)(f->counts[i] ? f->counts[i] : 1);
            if (variance > 0) { f->sd[i] = sqrt(variance); }
        }
        if (st == CRD_OK) { st = tune_iterate(f, out); }
    }
    return st;
}

crd_status crd_twin_tune(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                         const crd_twin_data* data, const crd_tune_options* opt, crd_arena* arena,
                         crd_tune_result* out)
{
    *out = (crd_tune_result){0};
    crd_tune_options with_start = *opt;
    with_start.fit_start = opt->fit_start || data->start_unknown;
    opt = &with_start;
    out->start_squares = (double)NAN;
    if (opt->how == CRD_TUNE_PASSES) {
        const crd_status seen = crd_twin_require_observable(ctx, n, spec, data, false);
        return seen < 0 ? seen : crdi_twin_passes(ctx, n, spec, data, opt, arena, out);
    }
    fit f = {.ctx = ctx, .data = data, .opt = opt, .sensors = spec->sensor_count};
    f.prior = data->start_unknown && spec->state_sd > 0;
    crd_status st = crdi_response_create(ctx, n, spec, data, opt->fit_start, arena, &f.r);
    if (st < 0) { return st; }
    CRD_TRY(tune_make_room(&f, arena, out) ? CRD_OK : CRD_E_MEMORY);
    out->unknowns = f.r.m;
    out->names = f.r.names;
    for (int i = 0; i < f.sensors; i++) {
        f.sd[i] = spec->sensors[i].sd;
    }
    memcpy(f.best, f.r.x, (size_t)f.r.m * sizeof *f.best);
    CRD_TRY(likelihood(&f, out));
    CRD_TRY(check_found(&f, n, spec, arena));
    CRD_TRY(say_values(&f, out));
    CRD_TRY(measure_noise(&f));
    say_noise(&f, out);
    CRD_TRY(test_start(&f, n, spec, arena, out));
    crdi_response_destroy(&f.r);
    return CRD_OK;
fail:
    crdi_response_destroy(&f.r);
    return st;
}
