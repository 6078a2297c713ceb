// Baumann 2020: the coupled two-mass oscillator in the frequency domain, and with a stop.
#include "reproduce/papers.h"
#include "reproduce/stop.h"

#include "cardan/analysis.h"
#include "cardan/coupling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { K = 3, TAPS = 4, CURVE = 800 };
static const double step = 0.001;
static const double eq12[TAPS] = {2.4748, -0.6470, -0.1664, -0.6664}; // trained
static const double eq20[TAPS] = {6.5103, -1.5509, -9.9296, 5.9702};  // designed
static const double moment[TAPS] = {23.0 / 3, -31.0 / 6, -37.0 / 6, 14.0 / 3};
static const double hold[TAPS] = {1};

// ---- the design --------------------------------------------------------------------------------

static crd_goal oscillator_goal(void)
{
    crd_goal g = crd_goal_defaults();
    g.dT = step;
    g.k = K;
    g.m = TAPS;
    g.phase = g.magnitude = (crd_interval){1, 6};
    g.v = 1;
    return g;
}

static crd_status claim_objective(crdi_reproduction* r, const char* id, const char* name,
                                  const double* a, double reference, const char* remark)
{
    const crd_goal goal = oscillator_goal();
    crd_quality q;
    char full[64], what[96];
    const crd_status st = crd_goal_quality(r->ctx, &goal, &(crd_linear){TAPS, K, a, NULL, 0}, &q);
    if (st < 0) { return st; }
    snprintf(full, sizeof full, "design.%s", id);
    snprintf(what, sizeof what, "objective J of %s", name);
    return crdi_claim_add(
        r,
        &(crdi_claim){.id = full,
                      .what = what,
                      .published = NAN,
                      .ours = q.J,
                      .reference = reference,
                      .tolerance = a == moment ? 2e-4 : 1e-4, // J is what is left of a difference
                      .relative = true,
                      .remark = remark});
}

static crd_status design(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    const crd_goal goal = oscillator_goal();
    double best[TAPS];
    crd_quality q;
    crd_linear flat = {0};
    crd_design d = crd_design_defaults(CRD_METHOD_MOMENT);
    d.taps = TAPS;
    CRD_TRY(claim_objective(r, "eq20", "the published optimum (20)", eq20, 2.5222884693153495e-6,
                            "in the valley, but not its lowest point"));
    CRD_TRY(claim_objective(r, "eq12", "the trained weights (12)", eq12, 0.005899929373735538,
                            "their sum is 0.995"));
    CRD_TRY(claim_objective(r, "zoh", "ZOH", hold, 0.00701933021241283, ""));
    CRD_TRY(claim_objective(r, "moment", "the moment design", moment, 7.383624e-7,
                            "closed form; better than (20) in J, gain and norm"));
    CRD_TRY(crd_goal_optimal(r->ctx, &goal, best));
    CRD_TRY(crd_goal_quality(r->ctx, &goal, &(crd_linear){TAPS, K, best, NULL, 0}, &q));
    CRD_TRY(crdi_claim_add(r, &CRDI_AT_MOST(NAN, q.J, 7.3e-9, .id = "design.optimum",
                                            .what = "optimum of the objective",
                                            .remark = "with a gain of 103: nobody would want it")));
    CRD_TRY(crd_linear_make(r->ctx, &d, K, &flat));
    for (int i = 0; i < TAPS && st >= 0; i++) {
        char id[32], what[64];
        snprintf(id, sizeof id, "design.moment.a%d", i);
        snprintf(what, sizeof what, "moment design, a_%d", i);
        st = crdi_claim_add(r, &CRDI_NEAR(NAN, flat.a[i], moment[i], 1e-8, .id = id, .what = what));
    }
    crd_linear_clear(r->ctx, &flat);
fail:
    return st;
}

// ---- the linear oscillator ---------------------------------------------------------------------

// Mass 1 (100 kg) sends its motion; mass 2 (1 kg) has the coupling spring and sends its force.
// Springs 10 N/m, dampers 0.01 Ns/m. L = transfers G_p^2 with negative feedback.
typedef struct oscillator {
    double first[3], second_num[4], second_den[3], one;
    crd_transfer transfers[2];
    crd_linear element;
    const crd_linear* elements[2];
    crd_loop loop;
} oscillator;

static void make_loop(oscillator* o, const double* a) // NULL: coupled directly
{
    const double c = 10, d = 0.01;
    *o = (oscillator){.first = {c, d, 100}, .second_den = {2 * c, 2 * d, 1}, .one = 1};
    const double link[] = {c, d}, mass[] = {c, d, 1}; // (c + d s)(m2 s^2 + d s + c)
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            o->second_num[i + j] += link[i] * mass[j];
        }
    }
    o->transfers[0] = (crd_transfer){0, 2, &o->one, o->first};
    o->transfers[1] = (crd_transfer){3, 2, o->second_num, o->second_den};
    o->element = (crd_linear){TAPS, K, a, NULL, 0};
    o->elements[0] = o->elements[1] = &o->element;
    o->loop = (crd_loop){.dT = step,
                         .transfer_count = 2,
                         .transfers = o->transfers,
                         .element_count = a ? 2 : 0,
                         .elements = o->elements};
}

typedef struct loop_case {
    const char *id, *name;
    const double* a;
    double stable;  // what the paper says: 1, 0; NaN: it does not say
    double growth;  // real part of the slow mode, 1/s
    double margin;  // of the phase at 0.387 rad/s, degrees
    double nearest; // min |1 + L|
} loop_case;

static const loop_case loops[] = {
    {"reference", "coupled directly", NULL, 1, -7.48115613577007e-05, 0.06699422482947749,
     0.0011692723208788882},
    {"zoh", "ZOH", hold, 0, 9.842950618131232e-05, -0.08814442634416843, 0.0015384105983838308},
    {"eq12", "trained network (12)", eq12, 1, -4.9765915280734507e-05, 0.044937976800584374,
     0.000784319495146069},
    {"eq20", "optimal network (20)", eq20, 1, -7.478696512446471e-05, 0.0669722021967421,
     0.001168887846740103},
};
enum { LOOPS = sizeof loops / sizeof *loops };

static crd_status claim_loop(crdi_reproduction* r, const loop_case* c)
{
    crd_status st = CRD_OK;
    oscillator o;
    crd_nyquist n;
    crd_complex poles[8];
    int count = 0;
    char id[4][64], what[4][96];
    make_loop(&o, c->a);
    CRD_TRY(crd_loop_nyquist(r->ctx, &o.loop, &n));
    CRD_TRY(crd_loop_poles(r->ctx, &o.loop, 8, poles, &count));
    double growth = NAN, margin = NAN;
    for (int i = 0; i < count && i < 8; i++) {
        if (fabs(poles[i].im) < 1) { growth = poles[i].re; }
    }
    for (int i = 0; i < n.phase_count; i++) {
        if (fabs(n.phase[i].omega - 0.387) < 0.01) { margin = n.phase[i].margin; }
    }
    static const char* const ids[4] = {"stable", "growth", "margin", "nearest"};
    static const char* const texts[4] = {"stable (Figures 6 and 8)", "growth of the slow mode, 1/s",
                                         "phase margin, deg", "min |1 + L|"};
    const double ours[4] = {n.closed_unstable == 0, growth, margin, n.min_distance};
    const double reference[4] = {c->stable, c->growth, c->margin, c->nearest};
    const double tolerance[4] = {0, 1e-9, 1e-5, 1e-5}; // the last one relative, from a grid
    for (int i = 0; i < 4; i++) {
        snprintf(id[i], sizeof id[i], "oscillator.%s.%s", c->id, ids[i]);
        snprintf(what[i], sizeof what[i], "oscillator, %s: %s", c->name, texts[i]);
        CRD_TRY(crdi_claim_add(r, &CRDI_NEAR(i == 0 ? c->stable : NAN, ours[i], reference[i],
                                             tolerance[i], .id = id[i], .what = what[i],
                                             .relative = i == 3)));
    }
fail:
    return st;
}

// Bode data of L (Figures 5 and 7) and its curve near -1 (Figures 6 and 8).
static crd_status loop_figures(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    enum { COLUMNS = 1 + 2 * LOOPS };
    double* bode = crdi_arena_new(&r->arena, CURVE * COLUMNS, sizeof *bode);
    double* curve = crdi_arena_new(&r->arena, CURVE * COLUMNS, sizeof *curve);
    const char *bode_names[COLUMNS] = {"omega [rad/s]"}, *curve_names[COLUMNS] = {"omega [rad/s]"};
    if (!bode || !curve) { return CRD_E_MEMORY; }
    for (int e = 0; e < LOOPS; e++) {
        oscillator o;
        double turns = 0, last = 0;
        make_loop(&o, loops[e].a);
        bode_names[1 + 2 * e] = crdi_arena_format(&r->arena, "%s gain", loops[e].name);
        bode_names[2 + 2 * e] = crdi_arena_format(&r->arena, "%s phase [deg]", loops[e].name);
        curve_names[1 + 2 * e] = crdi_arena_format(&r->arena, "%s Re L", loops[e].name);
        curve_names[2 + 2 * e] = crdi_arena_format(&r->arena, "%s Im L", loops[e].name);
        for (int i = 1; i < COLUMNS && i < 3 + 2 * e; i++) {
            if (!bode_names[i] || !curve_names[i]) { return CRD_E_MEMORY; }
        }
        for (int i = 0; i < CURVE; i++) {
            crd_complex l;
            double* row = &bode[i * COLUMNS];
            row[0] =
                0.1 * pow(3.14159265e4, (double)i / (CURVE - 1)); // up to the Nyquist frequency
            CRD_TRY(crd_loop_response(r->ctx, &o.loop, (crd_complex){0, row[0]}, &l));
            const double phase = atan2(l.im, l.re) * 57.29577951308232;
            if (i > 0 && phase - last > 180) { turns -= 360; }
            if (i > 0 && phase - last < -180) { turns += 360; }
            last = phase;
            row[1 + 2 * e] = hypot(l.re, l.im);
            row[2 + 2 * e] = phase + turns;
            row = &curve[i * COLUMNS];
            row[0] = 0.380 + 0.014 * i / (CURVE - 1); // the slow mode is at 0.3868
            CRD_TRY(crd_loop_response(r->ctx, &o.loop, (crd_complex){0, row[0]}, &l));
            row[1 + 2 * e] = l.re;
            row[2 + 2 * e] = l.im;
        }
    }
    CRD_TRY(
        crdi_figure_add(r, &CRDI_FIGURE("fig5-7", "Open loop of the two-mass oscillator", COLUMNS,
                                        bode_names, CURVE, bode, .kind = CRDI_FIGURE_BODE)));
    CRD_TRY(crdi_figure_add(r, &CRDI_FIGURE("fig6-8", "Nyquist curve near -1", COLUMNS, curve_names,
                                            CURVE, curve, .kind = CRDI_FIGURE_CURVES)));
fail:
    return st;
}

// ---- the stop -----------------------------------------------------------------------------------

enum { SHOWN = 1001, EVERY = 10001 }; // rows of a figure: some macro steps of 50 s, all of 10 s

// Rows of one figure from `from` on, every `stride`-th macro step.
typedef struct strip {
    double from;
    int stride, rows;
    int column, columns; // where the run's values go
    bool speed;          // v1 and its estimate instead of x1
    double* values;      // NULL: the last strip
} strip;

static void take_row(void* user, const crdi_row* row)
{
    for (strip* s = user; s->values; s++) {
        const int64_t n = row->n - llround(s->from / step), i = n / s->stride;
        if (n < 0 || n % s->stride != 0 || i >= s->rows) { continue; }
        double* out = &s->values[i * s->columns];
        out[0] = row->t;
        out[s->column] = s->speed ? row->v1_hat : row->x1;
        if (s->speed) { out[1] = row->v1; }
    }
}

typedef struct stop_case {
    const char *id, *name;
    const double* a; // NULL: coupled directly
    bool trains;
    double over;     // factor at the first jump
    double late_max; // largest x1 after 450 s, 2 %
    bool hits;       // after 450 s
} stop_case;

static const stop_case stops[] = {
    {"reference", "coupled directly", NULL, false, NAN, 0.0989152, false},
    {"zoh", "ZOH", hold, false, 1.0009, 0.100205, true},
    {"eq20", "optimal network (20)", eq20, false, 6.510658, 0.0984882, false},
    {"eq12", "trained network (12)", eq12, false, 2.478034, 0.0975128, false},
    {"learning", "optimal network (20), learning", eq20, true, 6.510658, 0.0984340, false},
};
enum { STOPS = sizeof stops / sizeof *stops };

static crd_status claim_of_stop(crdi_reproduction* r, const char* run, const char* part,
                                const char* what, crdi_claim c)
{
    char id[64], text[160];
    snprintf(id, sizeof id, "stop.%s.%s", run, part);
    snprintf(text, sizeof text, "stop: %s", what);
    c.id = id;
    c.what = text;
    return crdi_claim_add(r, &c);
}

static crd_status claim_impacts(crdi_reproduction* r, const crdi_stop_result* s)
{
    static const double times[3] = {4.314248202080749, 13.199597713913025, 22.458395907009013};
    crd_status st = CRD_OK;
    for (int i = 0; i < 3 && st >= 0; i++) {
        char part[24], what[48];
        snprintf(part, sizeof part, "impact%d", i + 1);
        snprintf(what, sizeof what, "time of impact %d, s", i + 1);
        st = claim_of_stop(r, "reference", part, what,
                           CRDI_NEAR(i == 0 ? 4.5 : NAN, s->jumps[i].impact.t, times[i], 1e-6,
                                     .remark = i == 0 ? "the text rounds generously" : ""));
    }
    return st;
}

static crd_status claim_stop(crdi_reproduction* r, const stop_case* c, const crdi_stop_result* s,
                             double untrained)
{
    crd_status st = CRD_OK;
    char what[128];
    if (!c->a) { CRD_TRY(claim_impacts(r, s)); }
    if (c->a && !c->trains) {
        snprintf(what, sizeof what, "%s: estimate over height at the first jump", c->name);
        CRD_TRY(
            claim_of_stop(r, c->id, "overshoot", what,
                          CRDI_NEAR(c->a == eq20 ? 6.5103 : NAN, s->jumps[0].over, c->over, 1e-3)));
    }
    snprintf(what, sizeof what, "%s: hits the stop after 450 s", c->name);
    CRD_TRY(
        claim_of_stop(r, c->id, "hits", what, CRDI_NEAR(c->hits, s->late_impacts > 0, c->hits, 0)));
    snprintf(what, sizeof what, "%s: largest x1 after 450 s, m", c->name);
    CRD_TRY(claim_of_stop(r, c->id, "amplitude", what,
                          CRDI_WITHIN(c->hits ? 0.1 : NAN, s->late_max, c->late_max, 0.02,
                                      .remark = "late impacts are chaotic")));
    if (c->trains) {
        CRD_TRY(claim_of_stop(
            r, c->id, "second", "learning: estimate over height at the second jump",
            CRDI_AT_MOST(1, s->jumps[1].over, 1.05, .remark = "does not overshoot any more")));
        CRD_TRY(claim_of_stop(r, c->id, "smooth", "learning: error between jumps over that before",
                              CRDI_AT_MOST(NAN, s->smooth_rms / untrained, 3,
                                           .remark = "plain training makes it 5 to 10")));
    }
fail:
    return st;
}

static crd_status run_stop(crdi_reproduction* r, const stop_case* c, strip* strips,
                           crdi_stop_result* out)
{
    crd_status st = CRD_OK;
    crdi_stop_run_options o = crdi_stop_run_defaults();
    const crd_training training = crd_training_defaults();
    crd_network network = {0};
    const crd_linear l = {TAPS, K, c->a, NULL, 0};
    o.whole = c->a == NULL;
    o.linear = c->a ? &l : NULL;
    o.see = take_row;
    o.user = strips;
    if (c->trains) {
        CRD_TRY(crd_network_morph(r->ctx, &l, 0.01, &network));
        o.network = &network;
        o.train = &training;
    }
    CRD_TRY(crdi_stop_run(r->ctx, &o, out));
fail:
    crd_network_clear(r->ctx, &network);
    return st;
}

static crd_status stop_figures(crdi_reproduction* r, double* const values[4])
{
    static const char* const names[] = {"time [s]",
                                        "coupled directly",
                                        "ZOH",
                                        "optimal network (20)",
                                        "trained network (12)",
                                        "optimal network (20), learning"};
    static const char* const speeds[] = {"time [s]", "v1", "estimate"};
    static const crdi_figure figures[4] = {
        {.id = "fig9",
         .title = "Position of the first mass, m",
         .columns = 1 + STOPS,
         .names = names},
        {.id = "fig10",
         .title = "Position of the first mass, m",
         .columns = 1 + STOPS,
         .names = names},
        {.id = "fig11",
         .title = "Velocity of the first mass, m/s: optimal network (20)",
         .columns = 3,
         .names = speeds},
        {.id = "fig12",
         .title = "Velocity of the first mass, m/s: with learning",
         .columns = 3,
         .names = speeds},
    };
    crd_status st = CRD_OK;
    for (int i = 0; i < 4 && st >= 0; i++) {
        crdi_figure f = figures[i];
        f.rows = i < 2 ? SHOWN : EVERY;
        f.values = values[i];
        st = crdi_figure_add(r, &f);
    }
    return st;
}

static crd_status nonlinear(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    double* values[4];
    for (int i = 0; i < 4; i++) {
        values[i] =
            crdi_arena_new(&r->arena, i < 2 ? SHOWN * (1 + STOPS) : EVERY * 3, sizeof(double));
        if (!values[i]) { return CRD_E_MEMORY; }
    }
    double untrained = NAN;
    for (int i = 0; i < STOPS; i++) {
        crdi_stop_result s;
        strip strips[] = {
            {0, 50, SHOWN, 1 + i, 1 + STOPS, false, values[0]},
            {450, 50, SHOWN, 1 + i, 1 + STOPS, false, values[1]},
            {4, 1, EVERY, 2, 3, true,
             stops[i].trains      ? values[3]
             : stops[i].a == eq20 ? values[2]
                                  : NULL},
            {.values = NULL},
        };
        CRD_TRY(run_stop(r, &stops[i], strips, &s));
        if (stops[i].a == eq20 && !stops[i].trains) { untrained = s.smooth_rms; }
        CRD_TRY(claim_stop(r, &stops[i], &s, untrained));
    }
    CRD_TRY(stop_figures(r, values));
fail:
    return st;
}

crd_status crdi_reproduce_baumann2020(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    r->paper = "Baumann, Kotte, Mikelsons, Schramm 2020: Analyzing the Coupling Process of "
               "Distributed Mixed Real-Virtual Prototypes";
    CRD_TRY(design(r));
    for (int i = 0; i < LOOPS; i++) {
        CRD_TRY(claim_loop(r, &loops[i]));
    }
    CRD_TRY(loop_figures(r));
    CRD_TRY(nonlinear(r));
fail:
    return st;
}
