// Rodriguez Frade 2021, 4.4.4.1 and 4.4.4.2: resistances and capacities of the three-phase
// inverter. The measurements are those of its model with the values after estimation, as the
// computation of the flow that served as reference is not published.
#include "reproduce/rodriguez2021_ch4.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double none = NAN;

// ---- the inverter ------------------------------------------------------------------------------

const double crdi_inverter_truth[CRDI_INVERTER_UNKNOWNS] = {30.47e-3, 12.78e-3, 1.837e-3, 1.27,
                                                            30.79,    114.42,   3.771e-3, 7.516e-3};

static double or_else(double given, double usual)
{
    return given != 0 ? given : usual;
}

void crdi_inverter_text(const crdi_inverter* v, char text[CRDI_INVERTER_TEXT])
{
    const size_t size = CRDI_INVERTER_TEXT;
    const double* usual = crdi_inverter_truth;
    size_t n = (size_t)snprintf(text, size, "inverter\n.thermal start=%.17g\n", v->start);
    for (int i = 0; i < 6; i++) {
        const int copper = 7 + i / 2;
        const double own = v->losses[i / 2];
        char loss[100] = "";
        if (own != 0) { snprintf(loss, sizeof loss, "%.17g", own); }
        if (v->feedback != 0) {
            snprintf(loss, sizeof loss, "{%.17g*t(%d)+(%s)}", v->feedback, i + 1, v->loss);
        }
        n += (size_t)snprintf(text + n, size - n, "heat q%d %d %s\nresistance die%d %d %d %.17g\n",
                              i + 1, i + 1, loss[0] ? loss : v->loss, i + 1, i + 1, copper,
                              or_else(v->die, usual[7]));
    }
    for (int i = 0; i < 3; i++) {
        n += (size_t)snprintf(text + n, size - n, "resistance dbc%d %d 10 %.17g\n", i + 1, 7 + i,
                              or_else(v->dbc, usual[0]));
    }
    n += (size_t)snprintf(text + n, size - n,
                          "resistance sp 10 11 %.17g\nresistance hs 11 12 %.17g\n"
                          "resistance w 12 13 %.17g\ntemperature water 13 %s\n",
                          or_else(v->sp, usual[6]), or_else(v->hs, usual[1]),
                          or_else(v->w, usual[2]), v->water);
    static const char* const capacities[] = {"c1 7", "c2 8", "c3 9", "chs 11", "cw 12"};
    for (int i = 0; i < 5; i++) {
        const int of = i < 3 ? 0 : i - 2;
        n += (size_t)snprintf(text + n, size - n, "capacity %s %.17g start=%.17g\n", capacities[i],
                              or_else(v->capacities[of], usual[3 + of]),
                              or_else(v->starts[of], v->start));
    }
    n += (size_t)snprintf(text + n, size - n, ".endthermal\n");
    snprintf(text + n, size - n, ".output %s\n.tran 1m 5 uic\n.end\n", v->outputs);
}

void crdi_inverter_find(const crd_netlist* n, crdi_inverter_unknowns* u)
{
    static const struct {
        const char *name, *part;
        int count; // 1: as it is called, else with a number
    } all[CRDI_INVERTER_UNKNOWNS] = {{"rdbc", "dbc", 3}, {"rhs", "hs", 1},  {"rw", "w", 1},
                                     {"cdbc", "c", 3},   {"chs", "chs", 1}, {"cw", "cw", 1},
                                     {"rsp", "sp", 1},   {"rdie", "die", 6}};
    for (int i = 0; i < CRDI_INVERTER_UNKNOWNS; i++) {
        for (int k = 0; k < all[i].count; k++) {
            char name[16];
            snprintf(name, sizeof name, all[i].count > 1 ? "%s%d" : "%s", all[i].part, k + 1);
            u->parts[i][k] = crd_netlist_part(n, name);
        }
        u->p[i] = (crd_twin_parameter){
            .group = {.name = all[i].name, .parts = u->parts[i], .count = all[i].count},
            .start = none,
            .sd = 1};
    }
}

// ---- tuning ------------------------------------------------------------------------------------

enum { VALUES = 6 };
static const char* const ids[VALUES] = {"rdbc", "rhs", "rw", "cdbc", "chs", "cw"};
static const char* const words[VALUES] = {"R dbc, mK/W", "R hs, mK/W", "R w, mK/W",
                                          "C dbc, J/K",  "C hs, J/K",  "C w, J/K"};
static const double unit[VALUES] = {1e-3, 1e-3, 1e-3, 1, 1, 1};
// by geometry and materials (4.64), (4.66)
static const double initial[VALUES] = {11.68e-3, 5.457e-3, 10.91e-3, 1.32, 14.97, 29.94};
static const double published[VALUES] = {30.47, 12.78, 1.837, 1.27, 30.79, 114.42};

static const crd_twin_sensor sensors[] = {{"s7", "t(7)", "K", CRDI_CH4_SD},
                                          {"s11", "t(11)", "K", CRDI_CH4_SD},
                                          {"s12", "t(12)", "K", CRDI_CH4_SD}};

static const crdi_inverter inverter = {
    .start = 343.15, .loss = "208", .water = "343.15", .outputs = "T7=t(7) T11=t(11) T12=t(12)"};

typedef struct tuning {
    crdi_reproduction* r;
    crdi_component c;
    crd_arena arena;
    const double* y;
    crdi_inverter_unknowns u;
    double mean[3];       // of the measurements from 4 to 5 s
    double joint[VALUES]; // maximum likelihood of all
} tuning;

// Maximum likelihood of unknowns first .. first + count - 1 from `start`, the others known
static crd_status tune(tuning* t, int first, int count, const double* start, crd_twin_data d,
                       crd_tune_result* out)
{
    crd_twin_spec s = crdi_ch4_spec(sensors, 3);
    for (int i = 0; i < count; i++) {
        t->u.p[first + i].start = start[first + i];
    }
    s.parameters = t->u.p + first;
    s.parameter_count = count;
    d.measurements = t->y;
    d.rows = CRDI_CH4_ROWS;
    return crdi_ch4_tune(t->r->ctx, t->c.n, &s, d, CRD_TUNE_LIKELIHOOD, 100, &t->arena, out);
}

static crd_status claim_value(tuning* t, const char* how, const char* what, int i, double ours,
                              double sd, double reference, double tolerance)
{
    char id[64], text[160], remark[96] = "";
    snprintf(id, sizeof id, "%s.%s.%s", i < 3 ? "table4.4" : "table4.6", how, ids[i]);
    snprintf(text, sizeof text, "%s, %s", words[i], what);
    if (sd > 0) { snprintf(remark, sizeof remark, "sd %.2g", sd / unit[i]); }
    return crdi_ch4_claim(t->r, id, i < 3 ? "Table 4.4" : "Table 4.6",
                          CRDI_NEAR(published[i], ours / unit[i], reference, tolerance,
                                    .what = text, .remark = remark));
}

// In the steady state the resistances follow from mean temperatures and heat flows (4.65).
static crd_status steady(tuning* t)
{
    const double heat = 6 * 208.0, water = 343.15;
    const double flows[3] = {heat / 3, heat, heat};
    static const double reference[3] = {30.531, 12.765, 1.825};
    const double* mean = t->mean;
    const double drop[3] = {mean[0] - mean[1] - heat * crdi_inverter_truth[6], mean[1] - mean[2],
                            mean[2] - water};
    for (int i = 0; i < 3; i++) {
        const crd_status st = claim_value(t, "steady", "closed form of the steady state, 4 to 5 s",
                                          i, drop[i] / flows[i], 0, reference[i], 1e-3);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

typedef struct passes {
    double value[3], sd[3];
    int count; // 0: not converged
} passes;

// The published filter over and over on one second of measurements, as a figure
static crd_status pass(tuning* t, const crd_netlist* n, int first, double q, crd_twin_data d,
                       const char* id, const char* title, passes* out)
{
    static const char* const names[2][4] = {{"pass", "R dbc [mK/W]", "R hs [mK/W]", "R w [mK/W]"},
                                            {"pass", "C dbc [J/K]", "C hs [J/K]", "C w [J/K]"}};
    enum { MOST = 150 };
    crd_twin_spec s = crdi_ch4_spec(sensors, 3);
    crdi_inverter_unknowns u;
    double v[MOST][4] = {{0}};
    int k = 0;
    crdi_inverter_find(n, &u);
    s.filter = CRD_TWIN_THESIS;
    s.thesis_q = q;
    s.parameters = u.p + first;
    s.parameter_count = 3;
    out->count = 0;
    memcpy(out->value, initial + first, sizeof out->value);
    while (k < MOST && !out->count) {
        crd_tune_result got;
        double moved = 0;
        v[k][0] = k;
        for (int i = 0; i < 3; i++) {
            v[k][1 + i] = out->value[i] / unit[first + i];
            u.p[first + i].start = out->value[i];
            u.p[first + i].sd = sqrt(10);
        }
        const crd_status st =
            crdi_ch4_tune(t->r->ctx, n, &s, d, CRD_TUNE_PASSES, 1, &t->arena, &got);
        if (st < 0) { return st; }
        for (int i = 0; i < 3; i++) {
            moved = fmax(moved, fabs(got.value[i] - out->value[i]));
            out->value[i] = got.value[i];
            out->sd[i] = got.sd[i];
        }
        k++;
        if (moved < 1e-10) { out->count = k; }
    }
    return crdi_figure_add(t->r,
                           &CRDI_FIGURE(id, title, 4, names[first > 0], k, v[0], .log_y = true));
}

static const crd_twin_data whole = {.from = (double)NAN, .to = (double)NAN};

// From 4 s on, where all temperatures stand still: they are what the sensors say on average. The
// capacities are those by geometry.
static crd_status make_steady(tuning* t, crd_netlist** n)
{
    char text[CRDI_INVERTER_TEXT];
    crdi_inverter v = inverter;
    for (int i = 0; i < 3; i++) {
        v.starts[i] = t->mean[i];
        v.capacities[i] = initial[3 + i];
    }
    crdi_inverter_text(&v, text);
    return crd_netlist_parse(t->r->ctx, text, strlen(text), "inverter", NULL, n);
}

static crd_status reproduce_resistors(tuning* t)
{
    static const double thesis[3] = {30.533, 12.768, 1.828}, best[3] = {30.531, 12.765, 1.825};
    crd_status st;
    crd_tune_result got;
    passes p;
    crd_netlist* n = NULL;
    const crd_twin_data last = {.start = 4,
                                .rows = 1000,
                                .measurements = t->y + 3 * 4000,
                                .from = (double)NAN,
                                .to = (double)NAN};
    CRD_TRY(make_steady(t, &n));
    CRD_TRY(pass(t, n, 0, 1e3, last, "fig4.16",
                 "Fig. 4.16: resistances of the inverter over the passes", &p));
    for (int i = 0; i < 3; i++) {
        CRD_TRY(claim_value(t, "thesis", "published filter, 4 to 5 s", i, p.value[i], p.sd[i],
                            thesis[i], 5e-3));
    }
    CRD_TRY(crdi_ch4_show(t->r, "table4.4.thesis.passes", "Table 4.4",
                          "passes of the published filter to 1e-10 K/W, q = 1e3", none,
                          p.count ? p.count : none, "as q, which is not published"));
    CRD_TRY(steady(t));
    const crd_twin_data window = {.from = 4, .to = (double)NAN};
    CRD_TRY(tune(t, 0, 3, initial, window, &got));
    for (int i = 0; i < 3; i++) {
        CRD_TRY(claim_value(t, "window", "maximum likelihood, 4 to 5 s", i, got.value[i], got.sd[i],
                            best[i], 5e-3));
    }
fail:
    crd_netlist_destroy(n);
    return st;
}

static crd_status reproduce_capacitors(tuning* t)
{
    static const double best[3] = {1.258, 30.92, 112.3}, digits[3] = {1e-3, 1e-2, 0.1};
    static const double thesis[3] = {1.271, 30.87, 106.2};
    crd_status st;
    crd_tune_result got;
    passes p;
    CRD_TRY(tune(t, 3, 3, initial, whole, &got));
    for (int i = 0; i < 3; i++) {
        CRD_TRY(claim_value(t, "likelihood", "maximum likelihood of the capacities, 5 s", 3 + i,
                            got.value[i], got.sd[i], best[i], digits[i]));
    }
    if (t->r->quick) { return CRD_OK; } // some hundred thousand steps
    const crd_twin_data first = {
        .rows = 1000, .measurements = t->y, .from = (double)NAN, .to = (double)NAN};
    CRD_TRY(pass(t, t->c.n, 3, 1e4, first, "fig4.17",
                 "Fig. 4.17: capacities of the inverter over the passes", &p));
    for (int i = 0; i < 3; i++) {
        CRD_TRY(claim_value(t, "thesis", "published filter, first second", 3 + i, p.value[i],
                            p.sd[i], thesis[i], digits[i]));
    }
    CRD_TRY(crdi_ch4_show(t->r, "table4.6.thesis.passes", "Table 4.6",
                          "passes of the published filter to 1e-10 J/K, q = 1e4", none,
                          p.count ? p.count : none, "as q, which is not published"));
fail:
    return st;
}

static crd_status reproduce_joint(tuning* t)
{
    static const double reference[VALUES] = {30.474, 12.785, 1.830, 1.258, 30.95, 110.5};
    static const double digits[VALUES] = {1e-3, 1e-3, 1e-3, 1e-3, 1e-2, 0.1};
    crd_tune_result got;
    crd_status st = tune(t, 0, VALUES, initial, whole, &got);
    for (int i = 0; i < VALUES && st >= 0; i++) {
        t->joint[i] = got.value[i];
        st = claim_value(t, "joint", "maximum likelihood of all six, 5 s", i, got.value[i],
                         got.sd[i], reference[i], digits[i]);
    }
    return st;
}

// ---- from where it is found (Tables 4.5, 4.7) --------------------------------------------------

// 1: everything is where it should be, from such a start
static crd_status reaches(tuning* t, const double* start, bool* there)
{
    crd_tune_result got;
    const crd_status st = tune(t, 0, VALUES, start, whole, &got);
    *there = st >= 0 && got.converged;
    for (int i = 0; i < VALUES && *there; i++) {
        *there = fabs(got.value[i] - t->joint[i]) <= 1e-4 * t->joint[i];
    }
    return st == CRD_E_MEMORY ? st : CRD_OK;
}

static crd_status claim_range(tuning* t, int i, bool upper)
{
    static const double printed[2][VALUES] = {{0.01, 0.1, 0.3, 0.01, 0.15, 0.3},
                                              {584, 273, 545, 25, 1500, 3000}};
    const double factor = upper ? 1e3 : 1e-3;
    double start[VALUES];
    bool there;
    char id[64], what[128];
    memcpy(start, initial, sizeof start);
    start[i] = factor * crdi_inverter_truth[i];
    const crd_status st = reaches(t, start, &there);
    if (st < 0) { return st; }
    snprintf(id, sizeof id, "%s.%s.%s", i < 3 ? "table4.5" : "table4.7", upper ? "upper" : "lower",
             ids[i]);
    snprintf(what, sizeof what, "%s, found from a start as %s as this", words[i],
             upper ? "large" : "small");
    return crdi_ch4_claim(t->r, id, i < 3 ? "Table 4.5" : "Table 4.7",
                          (crdi_claim){.what = what,
                                       .published = printed[upper][i],
                                       .ours = there ? start[i] / unit[i] : none,
                                       .reference = factor * published[i],
                                       .tolerance = 1e-9,
                                       .relative = true,
                                       .rule = upper ? CRDI_CLAIM_AT_LEAST : CRDI_CLAIM_AT_MOST,
                                       .remark = upper ? "a thousand times the true value"
                                                       : "a thousandth of the true value"});
}

static crd_status reproduce_ranges(tuning* t)
{
    crd_status st = CRD_OK;
    for (int k = 0; k < 2 * VALUES && st >= 0; k++) {
        st = claim_range(t, k / 2, k % 2);
    }
    for (int k = 0; k < 2 && st >= 0; k++) {
        double start[VALUES];
        bool there = false;
        for (int i = 0; i < VALUES; i++) {
            start[i] = crdi_inverter_truth[i] * (k ? 1e3 : 1e-3);
        }
        CRD_TRY(reaches(t, start, &there));
        CRD_TRY(crdi_ch4_claim(t->r, k ? "table4.5.upper.all" : "table4.5.lower.all",
                               "Tables 4.5, 4.7",
                               CRDI_NEAR(none, there, 1, 0,
                                         .what = k ? "all six found from a thousand times (1: yes)"
                                                   : "all six found from a thousandth (1: yes)")));
    }
fail:
    return st;
}

// ---- Figure 4.18 -------------------------------------------------------------------------------

static crd_status draw_corrected(tuning* t)
{
    enum { POINTS = 500 };
    static const char* const names[] = {"t [s]", "T7, truth [K]", "T7, before tuning [K]",
                                        "T7, tuned [K]"};
    crd_status st = CRD_OK;
    double* v = crdi_arena_new(&t->r->arena, 4 * POINTS, sizeof *v);
    if (!v) { return CRD_E_MEMORY; }
    for (int k = 0; k < 2; k++) {
        const double* value = k ? t->joint : initial;
        crd_twin_spec s = crdi_ch4_spec(sensors, 1);
        for (int i = 0; i < VALUES; i++) {
            t->u.p[i].start = value[i];
        }
        s.parameters = t->u.p;
        s.parameter_count = VALUES;
        crd_twin* w = NULL;
        st = crd_twin_create(t->r->ctx, t->c.n, &s, &w);
        if (st >= 0) { st = crd_twin_begin(w, 0); }
        for (int i = 0; i < CRDI_CH4_ROWS && st >= 0; i++) {
            st = crd_twin_step(w, &none); // the model alone
            double* row = v + (ptrdiff_t)(i / 10) * 4;
            row[0] = (i + 1) * CRDI_CH4_STEP;
            row[1] = t->c.truth[(ptrdiff_t)i * t->c.outputs];
            row[2 + k] = crd_twin_output(w, 0).value;
        }
        crd_twin_destroy(w);
        if (st < 0) { return st; }
    }
    return crdi_figure_add(
        t->r,
        &CRDI_FIGURE("fig4.18", "Fig. 4.18: node 7 before and after tuning", 4, names, POINTS, v));
}

static crd_status steady_temperatures(tuning* t)
{
    static const struct {
        const char* id;
        int node;
        double reference;
    } rows[] = {
        {"steady.t7", 7, 378.7713}, {"steady.t11", 11, 361.3898}, {"steady.t12", 12, 345.4422}};
    for (int i = 0; i < 3; i++) { // 5 s are not for ever: seven digits would take 30 s
        char what[64];
        snprintf(what, sizeof what, "T%d after 5 s, K", rows[i].node);
        const crd_status st = crdi_ch4_claim(
            t->r, rows[i].id, "inverter, 208 W each, water at 343.15 K",
            CRDI_NEAR(none, t->c.truth[(ptrdiff_t)(CRDI_CH4_ROWS - 1) * 3 + i], rows[i].reference,
                      0.01, .what = what, .remark = "of the steady state"));
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_ch4_inverter(crdi_reproduction* r)
{
    crd_status st;
    char text[CRDI_INVERTER_TEXT];
    tuning t = {.r = r};
    crdi_inverter_text(&inverter, text);
    crd_arena_init(&t.arena, r->ctx);
    CRD_TRY(crdi_component_init(&t.c, r->ctx, text, CRDI_CH4_ROWS));
    crdi_inverter_find(t.c.n, &t.u);
    t.y = crdi_component_measure(&t.c, 20210041, 0, 3);
    CRD_TRY(t.y ? CRD_OK : CRD_E_MEMORY);
    for (int i = 4000; i < CRDI_CH4_ROWS; i++) {
        for (int j = 0; j < 3; j++) {
            t.mean[j] += t.y[3 * i + j] / 1000;
        }
    }
    CRD_TRY(steady_temperatures(&t));
    CRD_TRY(reproduce_resistors(&t));
    CRD_TRY(reproduce_capacitors(&t));
    CRD_TRY(reproduce_joint(&t));
    if (!r->quick) {
        CRD_TRY(reproduce_ranges(&t));
        CRD_TRY(draw_corrected(&t));
    }
fail:
    crdi_component_clear(&t.c);
    crd_arena_clear(&t.arena);
    return st;
}
