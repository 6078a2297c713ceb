// Rodriguez Frade 2021, chapter 3: what the circuits cost. All times are CPU times of this machine,
// measured now; rows show them beside those of the thesis (an i7-8700K, 3.7 GHz) and judge nothing.
#include "reproduce/rodriguez2021_ch3.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct method {
    const char *id, *name;
    crd_circuit_method method;
    double projection; // of TR
} method;

enum { TR, TRNP, BDF1, BDF2, BDF3, METHODS };

static const method methods[METHODS] = {{"tr", "TR", CRD_METHOD_TR, INFINITY},
                                        {"trnp", "TRnP", CRD_METHOD_TR, 0},
                                        {"bdf1", "BDF1", CRD_METHOD_BDF1, 0},
                                        {"bdf2", "BDF2", CRD_METHOD_BDF2, 0},
                                        {"bdf3", "BDF3", CRD_METHOD_BDF3, 0}};

static crd_circuit_options rodriguez2021_ch3_times_options(int m, double step,
                                                           crd_circuit_form form)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.method = methods[m].method;
    o.step = step;
    o.form = form;
    return o;
}

// As the thesis does it: derivatives are carried (and projected), iterations are counted out.
// `refactor`: also where the tangent is constant.
static crd_circuit_options thesis_options(int m, double step, int gamma, bool refactor)
{
    crd_circuit_options o = rodriguez2021_ch3_times_options(m, step, CRD_FORM_DAE);
    if (o.method == CRD_METHOD_TR) { o.method = CRD_METHOD_TR_CARRIED; }
    o.projection = methods[m].projection;
    o.max_iterations = gamma;
    o.fixed_iterations = true;
    o.refactor = refactor;
    return o;
}

// ---- Tables 3.9, 3.12, 3.16, 3.19 --------------------------------------------------------------

typedef struct times {
    double step;
    int gamma;
    double desktop, bbb, rpi4; // in units of the table
} times;

typedef struct time_table {
    const char *id, *subject, *unit;
    crdi_problem problem;
    double scale; // of the unit
    times rows[2][METHODS];
} time_table;

static const time_table time_tables[] = {
    CRDI_ROW("table3.9", "Table 3.9, RLC", "ms", CRDI_RLC, 1e-3,
             {{{2.5e-3, 2, 6.5, 176.8, 50.6},
               {2.5e-3, 2, 3.0, 92.6, 34.85},
               {2.5e-5, 1, 190.6, 4988.0, 815.0},
               {2.5e-3, 2, 3.2, 108.0, 38.5},
               {2.5e-3, 2, 3.4, 112.8, 39.6}},
              {{2.5e-4, 2, 69.4, 1708.1, 307.0},
               {2.5e-4, 2, 32.3, 856.7, 162.3},
               {2.5e-7, 1, 16764.9, 496852.0, 77287.4},
               {2.5e-4, 1, 23.3, 587.8, 128.6},
               {2.5e-4, 1, 24.8, 636.3, 133.6}}}),
    CRDI_ROW("table3.12", "Table 3.12, scalable RLC, N = 2", "ms", CRDI_SCALABLE, 1e-3,
             {{{2.5e-3, 2, 0.9, 32.9, 10.4},
               {2.5e-3, 2, 0.4, 21.5, 4.6},
               {2.5e-5, 1, 24.0, 713.3, 153.7},
               {1e-3, 2, 1.1, 40.0, 12.4},
               {2.5e-3, 2, 0.5, 21.7, 5.3}},
              {{2.5e-4, 2, 9.8, 236.6, 82.8},
               {2.5e-4, 2, 3.9, 116.1, 37.6},
               {2.5e-7, 1, 2191.3, 65542.3, 9977.6},
               {1e-4, 2, 10.2, 337.3, 74.2},
               {2.5e-4, 2, 4.3, 143.6, 39.6}}}),
    CRDI_ROW("table3.16", "Table 3.16, rectifier", "ms", CRDI_RECTIFIER, 1e-3,
             {{{5e-4, 16, 47.0, 1103.8, 223.5},
               {5e-4, 16, 42.7, 984.0, 220.3},
               {1e-5, 3, 391.4, 9821.6, 1719.3},
               {2.5e-4, 7, 37.8, 924.1, 223.5},
               {1e-4, 9, 125.1, 3025.8, 574.2}},
              {{5e-5, 6, 206.3, 4817.1, 913.8},
               {5e-5, 6, 161.2, 3805.3, 724.9},
               {1e-7, 1, 14009.5, 141564.0, 61429.0},
               {5e-5, 9, 241.6, 5897.7, 1060.0},
               {1e-4, 9, 125.1, 3025.8, 574.2}}}),
    CRDI_ROW("table3.19", "Table 3.19, motor", "s", CRDI_MOTOR, 1,
             {{{0.5, 2, 0.12, 2.81, 0.59},
               {0.5, 2, 0.06, 1.28, 0.27},
               {0.025, 2, 1.12, 26.29, 5.79},
               {0.25, 2, 0.12, 2.86, 0.58},
               {0.5, 2, 0.06, 1.60, 0.32}},
              {{0.1, 2, 0.55, 14.03, 2.82},
               {0.1, 2, 0.27, 6.34, 1.40},
               {0.0025, 2, 10.88, 264.15, 56.08},
               {0.1, 2, 0.29, 7.17, 1.49},
               {0.25, 2, 0.12, 3.20, 0.64}}}),
};
enum { TIME_TABLES = sizeof time_tables / sizeof *time_tables };

static crd_status claim_time(crdi_reproduction* r, const char* family, const char* last,
                             const char* subject, const char* what, double published, double ours,
                             const char* remark)
{
    return crdi_claim_row(r, family, last, subject, what,
                          CRDI_SHOWN(published, ours, .remark = remark));
}

static crd_status reproduce_time(crdi_reproduction* r, const time_table* t, const crdi_bench* b,
                                 int high, int m)
{
    crd_status st = CRD_OK;
    const times* w = &t->rows[high][m];
    const crd_circuit_options thesis = thesis_options(m, w->step, w->gamma, false);
    const crd_circuit_options fast = rodriguez2021_ch3_times_options(m, w->step, CRD_FORM_NODAL);
    char family[64], subject[128], what[64], remark[160];
    double cost[2];
    snprintf(family, sizeof family, "%s.%s.%s", t->id, high ? "high" : "low", methods[m].id);
    snprintf(subject, sizeof subject, "%s, %s, %s precision", t->subject, methods[m].name,
             high ? "high" : "low");
    CRD_TRY(crdi_bench_cost(b, &thesis, 0.02, &cost[0]));
    cost[0] /= t->scale;
    snprintf(what, sizeof what, "time, thesis's form, %s", t->unit);
    snprintf(remark, sizeof remark, "%.2g of its desktop; BeagleBone %g, Raspberry Pi 4 %g %s",
             cost[0] / w->desktop, w->bbb, w->rpi4, t->unit);
    CRD_TRY(claim_time(r, family, "thesis", subject, what, w->desktop, cost[0], remark));
    if (m == TRNP || !crdi_ch3_has_nodal(b, &fast)) { return CRD_OK; }
    CRD_TRY(crdi_bench_cost(b, &fast, 0.02, &cost[1]));
    cost[1] /= t->scale;
    snprintf(what, sizeof what, "time, nodal form, %s", t->unit);
    snprintf(remark, sizeof remark, "%.3g times as fast as the thesis's form here",
             cost[0] / cost[1]);
    if (m == TR) { // our projection is dearer than that of the thesis
        const crd_circuit_options bare = thesis_options(TRNP, w->step, w->gamma, false);
        CRD_TRY(crdi_bench_cost(b, &bare, 0.02, &cost[0]));
        const size_t used = strlen(remark);
        snprintf(remark + used, sizeof remark - used, ", %.3g without its projection",
                 cost[0] / t->scale / cost[1]);
    }
    CRD_TRY(claim_time(r, family, "nodal", subject, what, w->desktop, cost[1], remark));
fail:
    return st;
}

static crd_status reproduce_times(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < TIME_TABLES && st >= 0; i++) {
        crdi_bench b;
        st = crdi_bench_init(&b, r->ctx, time_tables[i].problem, 2, 2);
        for (int k = 0; k < 2 * METHODS && st >= 0; k++) {
            st = reproduce_time(r, &time_tables[i], &b, k / METHODS, k % METHODS);
        }
        crdi_bench_clear(&b);
    }
    return st;
}

// ---- Figure 3.11 and Table 3.13: many loops ----------------------------------------------------

static const times* scalable_times(int high, int m)
{
    return &time_tables[1].rows[high][m];
}

// Per simulated second, s.
static crd_status loops_cost(crd_context* ctx, int loops, const crd_circuit_options* o,
                             double seconds, double* cost)
{
    crdi_bench b;
    crd_status st = crdi_bench_init(&b, ctx, CRDI_SCALABLE, loops, 1);
    if (st >= 0) { st = crdi_bench_cost(&b, o, seconds, cost); }
    crdi_bench_clear(&b);
    return st;
}

static bool has_nodal(crd_context* ctx)
{
    crdi_bench b;
    const crd_circuit_options o = rodriguez2021_ch3_times_options(TR, 2.5e-3, CRD_FORM_NODAL);
    const bool has =
        crdi_bench_init(&b, ctx, CRDI_SCALABLE, 2, 1) >= 0 && crdi_ch3_has_nodal(&b, &o);
    crdi_bench_clear(&b);
    return has;
}

static crd_status draw_loops(crdi_reproduction* r, int high, bool nodal)
{
    enum { SIZES = 7, COLUMNS = 11 };
    static const int sizes[SIZES] = {2, 100, 250, 500, 1000, 2000, 5000};
    static const int order[] = {TR, BDF2, BDF3, BDF1};
    crd_status st = CRD_OK;
    const char* names[COLUMNS] = {"loops N"};
    double v[SIZES * COLUMNS];
    const int shown = high ? 3 : 4, columns = 1 + 2 * shown + (nodal ? 2 : 0);
    for (int i = 0; i < SIZES; i++) {
        double* at = v + i * columns;
        *at++ = sizes[i];
        for (int k = 0; k < 2 * shown; k++) {
            const int m = order[k / 2];
            const times* w = scalable_times(high, m);
            const crd_circuit_options o = thesis_options(m, w->step, w->gamma, k % 2);
            CRD_TRY(loops_cost(r->ctx, sizes[i], &o, 0.01, at++));
            names[1 + k] = crdi_arena_format(&r->arena, "%s, tangent %s [s]", methods[m].name,
                                             k % 2 ? "refactored" : "constant");
            if (!names[1 + k]) { return CRD_E_MEMORY; }
        }
        for (int k = 0; k < 2 && nodal; k++) {
            crd_circuit_options o =
                rodriguez2021_ch3_times_options(TR, scalable_times(high, TR)->step, CRD_FORM_NODAL);
            o.no_chains = k == 0;
            CRD_TRY(loops_cost(r->ctx, sizes[i], &o, 0.01, at++));
            names[1 + 2 * shown + k] =
                k ? "TR, nodal form, chain [s]" : "TR, nodal form, sparse [s]";
        }
    }
    CRD_TRY(crdi_figure_add(
        r, &CRDI_FIGURE(high ? "fig3.11b" : "fig3.11a",
                        high ? "Fig. 3.11b, scalable RLC, high precision: CPU time of a "
                               "simulated second on this machine"
                             : "Fig. 3.11a, scalable RLC, low precision: CPU time of a "
                               "simulated second on this machine",
                        columns, names, SIZES, v, .log_x = true, .log_y = true)));
fail:
    return st;
}

enum { MOST_LOOPS = 1500000 }; // that are tried: two gigabytes

// The number of loops of which a simulated second costs a second. The cost grows with the loops, a
// bit faster than they do: from a trial follows the next one.
static crd_status largest_loops(crd_context* ctx, const crd_circuit_options* o, double from,
                                double* loops)
{
    double n = fmin(MOST_LOOPS, from), cost = 0;
    for (int trial = 0; trial < 4; trial++) {
        const crd_status st = loops_cost(ctx, (int)n, o, 0, &cost);
        if (st == CRD_E_MEMORY && trial > 0) { break; } // what smaller ones promised
        if (st < 0) { return st; }
        *loops = n / cost;
        if (fabs(log(cost)) < 0.25 || (n >= MOST_LOOPS && cost < 1)) { break; }
        n = fmin(MOST_LOOPS, fmax(2, fmin(32 * n, round(*loops))));
    }
    return CRD_OK;
}

// What Table 3.13 has of one method.
typedef struct size_row {
    int m;
    double published[2]; // low, high precision; NaN: none
} size_row;

static const size_row sizes[] = {
    {TR, {2053, 248}}, {BDF1, {48, NAN}}, {BDF2, {1790, 186}}, {BDF3, {3661, 447}}};

static crd_status claim_sizes(crdi_reproduction* r, const size_row* row, int high, bool nodal)
{
    enum { FORMS = 3 };
    static const char* const ids[FORMS] = {"thesis", "sparse", "chain"};
    static const char* const forms[FORMS] = {"thesis's method", "nodal form, sparse",
                                             "nodal form, chain"};
    static const double larger[FORMS] = {1, 35, 8}; // first trial, of what the form before reaches
    const method* m = &methods[row->m];
    const times* w = scalable_times(high, row->m);
    char family[64], subject[96], what[96], remark[128];
    double n = row->published[high], base = 0;
    snprintf(family, sizeof family, "table3.13.%s.%s", high ? "high" : "low", m->id);
    snprintf(subject, sizeof subject, "Table 3.13, %s, %s precision", m->name,
             high ? "high" : "low");
    for (int k = 0; k < (nodal ? FORMS : 1); k++) {
        crd_circuit_options o =
            k == 0 ? thesis_options(row->m, w->step, w->gamma, true)
                   : rodriguez2021_ch3_times_options(row->m, w->step, CRD_FORM_NODAL);
        o.no_chains = k == 1;
        crd_status st = largest_loops(r->ctx, &o, larger[k] * n, &n);
        if (st < 0) { return st; }
        n = floor(n);
        snprintf(what, sizeof what, "most loops in real time, %s", forms[k]);
        if (k == 0) {
            base = n;
            snprintf(remark, sizeof remark, "n = %.0f%s", 3 + 5 * n,
                     row->m == TR ? "; projection with constant factors" : "");
        } else {
            snprintf(remark, sizeof remark, "n = %.0f; %.3g times the thesis's method here%s",
                     3 + 5 * n, n / base,
                     n > 1.2 * MOST_LOOPS ? "; extrapolated from 1 500 000" : "");
        }
        st = claim_time(r, family, ids[k], subject, what, row->published[high], n, remark);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status reproduce_sizes(crdi_reproduction* r, bool nodal)
{
    for (int high = 0; high < 2; high++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            if (isnan(sizes[i].published[high])) { continue; }
            const crd_status st = claim_sizes(r, &sizes[i], high, nodal);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

// ---- Figure 3.13: where the time goes ----------------------------------------------------------

enum { STAGES = 4 };

// From outside: what one more iteration, one more factorisation, no projection change.
static crd_status profile(const crdi_bench* b, double step, int gamma, double share[STAGES],
                          double* projection)
{
    enum { MORE = 8 };
    crd_status st = CRD_OK;
    const double seconds = 0.1;
    double all, factors, iterations, bare;
    crd_circuit_options o = thesis_options(TR, step, gamma, true);
    CRD_TRY(crdi_bench_cost(b, &o, seconds, &all));
    o.refactor = 1 + MORE;
    CRD_TRY(crdi_bench_cost(b, &o, seconds, &factors));
    o.refactor = 1;
    o.max_iterations = gamma + MORE;
    CRD_TRY(crdi_bench_cost(b, &o, seconds, &iterations));
    o.max_iterations = gamma;
    o.projection = 0;
    CRD_TRY(crdi_bench_cost(b, &o, seconds, &bare));
    factors = (factors - all) / MORE;
    iterations = (iterations - all) / MORE; // of one
    *projection = (all - bare) / iterations;
    iterations *= gamma;
    const double parts[STAGES] = {iterations - factors, factors, all - bare, bare - iterations};
    for (int i = 0; i < STAGES; i++) {
        share[i] = fmax(0, 100 * parts[i] / all);
    }
fail:
    return st;
}

static crd_status reproduce_profile(crdi_reproduction* r)
{
    static const char* const names[] = {
        "1 terms, residual, tangent, substitution; 2 factorisation; 3 projection; 4 other",
        "rectifier [%]", "scalable RLC, N = 4 [%]"};
    static const char* const ids[] = {"rectifier", "scalable"};
    static const char* const subjects[] = {"rectifier, TR, 0.5 ms",
                                           "scalable RLC, N = 4, TR, 2.5 ms"};
    crd_status st = CRD_OK;
    double share[2][STAGES], v[STAGES][3];
    for (int k = 0; k < 2; k++) {
        crdi_bench b;
        double projection = 0;
        st = crdi_bench_init(&b, r->ctx, k ? CRDI_SCALABLE : CRDI_RECTIFIER, 4, 4);
        if (st >= 0) { st = profile(&b, k ? 2.5e-3 : 5e-4, k ? 2 : 16, share[k], &projection); }
        crdi_bench_clear(&b);
        if (st < 0) { return st; }
        CRD_TRY(claim_time(r, "fig3.13.projection", ids[k], subjects[k],
                           "iterations that a projection costs", 2, projection,
                           k ? "'two or three'; ours is factored once, as its matrix is constant"
                             : "'two or three'; ours is a least squares solution"));
    }
    for (int i = 0; i < STAGES; i++) {
        v[i][0] = i + 1;
        v[i][1] = share[0][i];
        v[i][2] = share[1][i];
    }
    CRD_TRY(crdi_figure_add(r, &CRDI_FIGURE("fig3.13",
                                            "Fig. 3.13: where the time of a step of TR "
                                            "goes on this machine",
                                            3, names, STAGES, v[0], .kind = CRDI_FIGURE_BARS)));
fail:
    return st;
}

crd_status crdi_ch3_times(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    const bool nodal = has_nodal(r->ctx);
    CRD_TRY(reproduce_times(r));
    if (r->times) { return CRD_OK; }
    for (int high = 0; high < 2; high++) {
        CRD_TRY(draw_loops(r, high, nodal));
    }
    CRD_TRY(reproduce_sizes(r, nodal));
    CRD_TRY(reproduce_profile(r));
fail:
    return st;
}
