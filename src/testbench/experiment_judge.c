// What the numbers of the experiment say: goals, and where an order differs from the paper's.
#include "testbench/experiment.h"

#include "cardan/analysis.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const double pi = 3.14159265358979323846;

static double experiment_judge_percent(double part)
{
    return 100 * part;
}

static double energy_change(const crdi_bench_experiment* e, int i)
{
    return experiment_judge_percent(e->runs[i].energy / e->runs[CRDI_BENCH_ZOH].energy - 1);
}

static double peak_change(const crdi_bench_experiment* e, int i)
{
    return e->runs[i].peak - e->runs[CRDI_BENCH_ZOH].peak;
}

// ---- goals -------------------------------------------------------------------------------------

// The methods of Table 2; the detection of the switching ones is read in one way or the other.
enum { PUBLISHED = 7 };
static void methods_of(bool above, int* out)
{
    const int all[PUBLISHED] = {CRDI_BENCH_ZOH,
                                CRDI_BENCH_FOH,
                                CRDI_BENCH_EROS,
                                above ? CRDI_BENCH_FOH_ABOVE : CRDI_BENCH_FOH_SWITCH,
                                above ? CRDI_BENCH_EROS_ABOVE : CRDI_BENCH_EROS_SWITCH,
                                CRDI_BENCH_OPTIMAL,
                                CRDI_BENCH_TRAINED};
    for (int i = 0; i < PUBLISHED; i++) {
        out[i] = all[i];
    }
}

// Is the order of two runs another one than in the paper? Within 0.2 % they have none.
static bool swapped(const crdi_bench_run* a, const crdi_bench_run* b, bool* equal)
{
    const double ours = a->metrics.C - b->metrics.C;
    const double theirs = a->published.C - b->published.C;
    *equal = fabs(ours) < 0.002 * b->metrics.C;
    return theirs != 0 && (*equal || ours * theirs < 0);
}

static int count_swapped(const crdi_bench_experiment* e, bool above, bool with_zoh)
{
    int which[PUBLISHED], count = 0;
    bool equal;
    methods_of(above, which);
    for (int i = 0; i < (with_zoh ? 1 : PUBLISHED); i++) { // ZOH is the first
        for (int j = i + 1; j < PUBLISHED; j++) {
            count += swapped(&e->runs[which[i]], &e->runs[which[j]], &equal);
        }
    }
    return count;
}

static void add_goal(crdi_bench_experiment* e, crdi_bench_goal* all, const char* what, double ours,
                     double wanted)
{
    all[e->goal_count++] = (crdi_bench_goal){what, ours, wanted, ours <= wanted};
}

static crd_status set_goals(crdi_bench_experiment* e)
{
    enum { CAPACITY = 16 };
    static const struct {
        crdi_bench_case which;
        const char *error, *energy;
        double wanted; // change of C, %; NaN: none
    } table[] = {
        {CRDI_BENCH_OPTIMAL, "optimal: C against ZOH, %",
         "optimal: energy, distance from ideal, % of ZOH's", -35},
        {CRDI_BENCH_TRAINED, "network, trained: C against ZOH, %",
         "network, trained: energy, distance from ideal, % of ZOH's", -40},
        {CRDI_BENCH_AUTO, "", "auto: energy, distance from ideal, % of ZOH's", NAN},
        {CRDI_BENCH_COMMANDS, "commands (ours): C against ZOH, %",
         "commands (ours): energy, distance from ideal, % of ZOH's", -50},
    };
    crdi_bench_goal* g = crdi_arena_new(&e->arena, CAPACITY, sizeof *g);
    if (!g) { return CRD_E_MEMORY; }
    e->goals = g;
    add_goal(e, g, "Table 2, bins 1-4: methods on the other side of ZOH than in the paper",
             count_swapped(e, false, true), 0);
    add_goal(e, g, "Table 2, bins 1-4: pairs of 21 in another order than in the paper",
             count_swapped(e, false, false), 0);
    add_goal(e, g, "Table 2, bins 2-4: methods on the other side of ZOH than in the paper",
             count_swapped(e, true, true), 0);
    add_goal(e, g, "Table 2, bins 2-4: pairs of 21 in another order than in the paper",
             count_swapped(e, true, false), 0);
    const crdi_bench_published* p = &e->runs[CRDI_BENCH_IDEAL].published;
    add_goal(e, g, "Table 3, ideal coupling: peak, s from the paper's",
             fabs(peak_change(e, CRDI_BENCH_IDEAL) - p->peak), 0.1);
    add_goal(e, g, "Table 3, ideal coupling: energy, points from the paper's",
             fabs(energy_change(e, CRDI_BENCH_IDEAL) - p->energy), 0.5);
    const double ideal = e->runs[CRDI_BENCH_IDEAL].energy, zoh = e->runs[CRDI_BENCH_ZOH].energy;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const crdi_bench_run* r = &e->runs[table[i].which];
        if (!isnan(table[i].wanted)) {
            add_goal(e, g, table[i].error, experiment_judge_percent(r->change), table[i].wanted);
        }
        add_goal(e, g, table[i].energy,
                 experiment_judge_percent(fabs(r->energy - ideal) / fabs(zoh - ideal)), 100);
    }
    return CRD_OK;
}

// ---- remarks -----------------------------------------------------------------------------------

static crd_status say(crdi_bench_experiment* e, const char* format, ...) CRD_PRINTF(2, 3);
static crd_status say(crdi_bench_experiment* e, const char* format, ...)
{
    char text[800];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    const char** all = crdi_grow(e->ctx, (void*)(uintptr_t)e->remarks, &e->remark_capacity,
                                 (size_t)e->remark_count + 1, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    e->remarks = all;
    const char* kept = crdi_arena_format(&e->arena, "%s", text);
    if (!kept) { return CRD_E_MEMORY; }
    all[e->remark_count++] = kept;
    return CRD_OK;
}

static bool switches(int i)
{
    return i >= CRDI_BENCH_FOH_SWITCH && i <= CRDI_BENCH_EROS_ABOVE;
}

// The same detection, as far as they have one.
static bool comparable(int i, int j)
{
    return !switches(i) || !switches(j) ||
           (i >= CRDI_BENCH_FOH_ABOVE) == (j >= CRDI_BENCH_FOH_ABOVE);
}

static crd_status linear_of(const crdi_bench_experiment* e, int i, double* a, int capacity, int* m)
{
    if (i == CRDI_BENCH_OPTIMAL) {
        for (*m = 0; *m < CRDI_EXPERIMENT_TAPS; (*m)++) {
            a[*m] = e->optimal[*m];
        }
        return CRD_OK;
    }
    const crd_method method = i == CRDI_BENCH_FOH    ? CRD_METHOD_FOH
                              : i == CRDI_BENCH_EROS ? CRD_METHOD_EROS
                                                     : CRD_METHOD_ZOH;
    crd_linear l = {0};
    const crd_design d = crd_design_defaults(method);
    const crd_status st = crd_linear_make(e->ctx, &d, e->k, &l);
    for (*m = 0; st >= 0 && *m < l.m && *m < capacity; (*m)++) {
        a[*m] = l.a[*m];
    }
    crd_linear_clear(e->ctx, &l);
    return st;
}

// |1 - sum a_i e^-j(k+i)x|: how far an algorithm misses a sine of frequency x / dT at macro points.
static double miss(const double* a, int m, int k, double x)
{
    double re = 1, im = 0;
    for (int i = 0; i < m; i++) {
        re -= a[i] * cos((k + i) * x);
        im += a[i] * sin((k + i) * x);
    }
    return hypot(re, im);
}

// The part of ZOH's error that lies below a frequency.
static crd_status part_below(const crdi_bench_experiment* e, double omega, double* out)
{
    const crdi_bench_run* zoh = &e->runs[CRDI_BENCH_ZOH];
    crd_spectrum s = {0};
    double* error = crdi_new_array(e->ctx, (size_t)e->count, sizeof *error);
    if (!error) { return CRD_E_MEMORY; }
    for (int64_t n = 0; n < e->count; n++) {
        error[n] = zoh->sent[n] - zoh->received[n];
    }
    const crd_status st = crd_analysis_spectrum(e->ctx, error, e->count, e->options.step, 0, &s);
    crd_free(e->ctx, error);
    if (st < 0) { return st; }
    double below = 0, all = 0;
    for (int i = 0; i < s.bins; i++) {
        all += s.density[i];
        below += s.omega[i] < omega ? s.density[i] : 0;
    }
    *out = all > 0 ? below / all : 0;
    crd_spectrum_clear(e->ctx, &s);
    return CRD_OK;
}

// Why `better` has less error than `worse` here: up to where it does, and how much lies there.
static crd_status why_linear(const crdi_bench_experiment* e, int better, int worse, char* out,
                             size_t size)
{
    enum { MOST = 64 };
    double a[MOST], b[MOST], part = 0;
    int ma = 0, mb = 0;
    crd_status st = CRD_OK;
    CRD_TRY(linear_of(e, better, a, MOST, &ma));
    CRD_TRY(linear_of(e, worse, b, MOST, &mb));
    const double dT = e->options.step, nyquist = pi / dT;
    double omega = 0.5;
    const bool low = miss(a, ma, e->k, omega * dT) < miss(b, mb, e->k, omega * dT);
    while (omega < nyquist &&
           (miss(a, ma, e->k, omega * dT) < miss(b, mb, e->k, omega * dT)) == low) {
        omega += 0.1;
    }
    CRD_TRY(part_below(e, omega, &part));
    snprintf(out, size,
             " Why: %s errs %s than %s on sines below %.0f rad/s and %s above, and %.0f %% of the "
             "error of ZOH lie %s that here; the paper's signal must have had a larger part %s.",
             e->runs[better].name, low ? "less" : "more", e->runs[worse].name, omega,
             low ? "more" : "less", experiment_judge_percent(low ? part : 1 - part),
             low ? "below" : "above", low ? "above" : "below");
fail:
    return st;
}

static void why_switching(const crdi_bench_experiment* e, char* out, size_t size)
{
    const crdi_bench_run* r = &e->runs[CRDI_BENCH_FOH_SWITCH];
    snprintf(
        out, size,
        " Why: with bins 1 to 4 the detection has found %lld discontinuities with FOH and %lld "
        "with EROS in %lld samples, with bins 2 to 4 %lld and %lld. Behind the low-pass an "
        "edge takes several samples: the detection, if at all, comes at its first, where an "
        "extrapolation is right, and not at its last, where it overshoots. In the paper it was "
        "active in major parts of the signal.",
        (long long)r[0].jumps, (long long)r[1].jumps, (long long)e->count, (long long)r[2].jumps,
        (long long)r[3].jumps);
}

// Two runs whose errors come in another order than in the paper.
static crd_status compare_errors(crdi_bench_experiment* e)
{
    crd_status st = CRD_OK;
    bool has_reason = false;
    for (int i = CRDI_BENCH_ZOH; i <= CRDI_BENCH_TRAINED; i++) {
        for (int j = i + 1; j <= CRDI_BENCH_TRAINED; j++) {
            const crdi_bench_run *a = &e->runs[i], *b = &e->runs[j];
            bool equal;
            if (!comparable(i, j) || !swapped(a, b, &equal)) { continue; }
            char why[560] = "";
            const bool first = a->published.C > b->published.C;
            const crdi_bench_run *better = first ? a : b, *worse = first ? b : a;
            if (switches(i) || switches(j)) {
                if (!has_reason) { why_switching(e, why, sizeof why); }
                has_reason = true;
            } else if (i <= CRDI_BENCH_OPTIMAL && j <= CRDI_BENCH_OPTIMAL) {
                CRD_TRY(why_linear(e, first ? i : j, first ? j : i, why, sizeof why));
            }
            CRD_TRY(say(e, "%s is %s %s (C %.2f and %.2f), worse in the paper (%.2f and %.2f).%s",
                        better->name, equal ? "as good as" : "better than", worse->name,
                        experiment_judge_percent(better->metrics.C),
                        experiment_judge_percent(worse->metrics.C), better->published.C,
                        worse->published.C, why));
        }
    }
fail:
    return st;
}

// Runs whose peak or energy moves to the other side of ZOH's than in the paper.
static crd_status compare_behaviour(crdi_bench_experiment* e)
{
    crd_status st = CRD_OK;
    const double ideal = peak_change(e, CRDI_BENCH_IDEAL);
    for (int i = CRDI_BENCH_FOH; i <= CRDI_BENCH_TRAINED; i++) {
        const crdi_bench_run* r = &e->runs[i];
        const double peak = peak_change(e, i), energy = energy_change(e, i);
        if (peak * r->published.peak < 0 && fabs(peak) >= 0.005) { // else it would be printed as 0
            CRD_TRY(say(e, "%s has its first peak %.2f s %s than ZOH, %.2f s %s in the paper.%s",
                        r->name, fabs(peak), peak < 0 ? "earlier" : "later",
                        fabs(r->published.peak), peak < 0 ? "later" : "earlier",
                        peak * ideal > 0 ? " Why: with ideal coupling it comes earlier, too, and "
                                           "that is what a prediction aims at."
                                         : ""));
        }
        if (energy * r->published.energy < 0 && fabs(energy) >= 0.005) {
            CRD_TRY(say(e, "%s transfers %+.2f %% of energy against ZOH, %+.2f %% in the paper.%s",
                        r->name, energy, r->published.energy,
                        r->metrics.M < -0.01
                            ? " Why: its estimates are larger than the signal (M < 0), most where "
                              "the driveline swings."
                            : ""));
        }
    }
fail:
    return st;
}

// How large the influence of a latency is.
static crd_status compare_sizes(crdi_bench_experiment* e)
{
    const crdi_bench_run* r = &e->runs[CRDI_BENCH_IDEAL];
    return say(e,
               "Ideal coupling changes the energy by %+.2f %% and the time of the peak by %+.2f s "
               "(%+.2f %% and %+.2f s in the paper): what a latency does to the loop depends on "
               "driver and gearbox, and the paper's are not published.",
               energy_change(e, CRDI_BENCH_IDEAL), peak_change(e, CRDI_BENCH_IDEAL),
               r->published.energy, r->published.peak);
}

crd_status crdi_experiment_judge(crdi_bench_experiment* e)
{
    crd_status st = CRD_OK;
    const double zoh = e->runs[CRDI_BENCH_ZOH].metrics.C;
    for (int i = 0; i < CRDI_BENCH_CASES; i++) {
        e->runs[i].change = e->runs[i].metrics.C / zoh - 1;
    }
    CRD_TRY(set_goals(e));
    CRD_TRY(compare_errors(e));
    CRD_TRY(compare_behaviour(e));
    CRD_TRY(compare_sizes(e));
fail:
    return st;
}
