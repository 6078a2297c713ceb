// Rodriguez Frade 2021, 4.4.4.3: temperatures of junctions that no sensor measures, while the
// losses are not known.
#include "reproduce/rodriguez2021_ch4.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double none = NAN;
enum { POINTS = 500 };
// W^2 a step: a loss that is not known may drift by 7 W in 5 s, even if this one happens not to.
#define LEAST_WALK 0.01

typedef struct junction_case {
    crdi_inverter truth;
    uint64_t seed;
    double limit;             // K, rms of T1 over 5 s, model that matches
    double mismatch;          // K, the same with a truth that has the resistances of (4.65)
    double open_loop;         // K, of the model alone
    double laptop, raspberry; // ms
} junction_case;

static const junction_case cases[4] = {
    CRDI_ROW(.truth = {.start = 343.15, .loss = "208", .water = "343.15"}, .seed = 20210051,
             .limit = 0.10, .mismatch = 0.49, .open_loop = 0, .laptop = 167.9, .raspberry = 847.9),
    CRDI_ROW(.truth =
                 {.start = 343.15,
                  .loss =
                      "pwl(0 0 0.099999 0 0.1 208 0.999999 208 1 325 1.999999 325 2 125 10 125)",
                  .water = "343.15"},
             .seed = 20210052, .limit = 0.25, .mismatch = 0.49, .open_loop = 12.0, .laptop = 168.6,
             .raspberry = 855.8),
    CRDI_ROW(.truth = {.start = 343.15, .loss = "-206.58", .water = "343.15", .feedback = 1.355},
             .seed = 20210053, .limit = 0.12, .mismatch = 0.76, .open_loop = 21.4, .laptop = 176.4,
             .raspberry = 850.9),
    CRDI_ROW(.truth = {.start = 293.15,
                       .loss = "600",
                       .water = "exp(293.15 306.15 0 1.33333333333333333)"},
             .seed = 20210054, .limit = 0.15, .mismatch = 1.38, .open_loop = 66, .laptop = 168.2,
             .raspberry = 864.1),
};

static const crd_twin_sensor sensors[] = {{"s7", "t(7)", "K", CRDI_CH4_SD},
                                          {"s8", "t(8)", "K", CRDI_CH4_SD},
                                          {"s9", "t(9)", "K", CRDI_CH4_SD}};
enum { JUNCTION = 3 }; // of the outputs
#define OUTPUTS "T7=t(7) T8=t(8) T9=t(9) T1=t(1)"

// The component with its true losses, or with the resistances of (4.65) in addition
static crd_status make_truth(crd_context* ctx, const junction_case* k, bool mismatch,
                             crdi_component* c)
{
    char text[CRDI_INVERTER_TEXT];
    crdi_inverter v = k->truth;
    v.outputs = OUTPUTS;
    if (mismatch) {
        v.die = 5.163e-3;
        v.dbc = 33.74e-3;
        v.sp = 2.579e-3;
        v.hs = 12.75e-3;
        v.w = 1.713e-3;
    }
    crdi_inverter_text(&v, text);
    return crdi_component_init(c, ctx, text, CRDI_CH4_ROWS);
}

// What the twin believes: 208 W, the water being measured
static crd_status make_model(crd_context* ctx, const junction_case* k, crdi_component* c)
{
    char text[CRDI_INVERTER_TEXT];
    crdi_inverter v = {
        .start = k->truth.start, .loss = "208", .water = k->truth.water, .outputs = OUTPUTS};
    crdi_inverter_text(&v, text);
    return crdi_component_init(c, ctx, text, CRDI_CH4_ROWS);
}

static crd_status estimate_junction(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* s,
                                    const crdi_component* truth, const double* y, double* t1,
                                    double* rmse)
{
    crd_twin* w = NULL;
    crd_status st = crd_twin_create(ctx, n, s, &w);
    if (st >= 0) { st = crd_twin_begin(w, 0); }
    double sum = 0;
    for (int i = 0; i < CRDI_CH4_ROWS && st >= 0; i++) {
        st = crd_twin_step(w, y + (ptrdiff_t)3 * i);
        const double now = crd_twin_output(w, JUNCTION).value;
        const double off = now - truth->truth[(ptrdiff_t)i * truth->outputs + JUNCTION];
        sum += off * off;
        if (t1) { t1[i] = now; }
    }
    *rmse = sqrt(sum / CRDI_CH4_ROWS);
    crd_twin_destroy(w);
    return st;
}

// (a) temperatures, (b) what the estimate is off by
static crd_status draw_junction(crdi_reproduction* r, int k, const crdi_component* truth,
                                const crdi_component* model, const double* t1)
{
    static const char* const names[] = {"t [s]", "T1, reference [K]", "estimated [K]",
                                        "not corrected [K]"};
    static const char* const off[] = {"t [s]", "estimated - reference [K]"};
    enum { COLUMNS = 4 };
    char id[24], title[96];
    double* v = crdi_arena_new(&r->arena, POINTS * (COLUMNS + 2), sizeof *v);
    if (!v) { return CRD_E_MEMORY; }
    double* residual = v + POINTS * COLUMNS;
    for (int i = 0; i < POINTS; i++) {
        const int at = 10 * i + 9;
        const double reference = truth->truth[(ptrdiff_t)at * truth->outputs + JUNCTION];
        const double row[COLUMNS] = {(at + 1) * CRDI_CH4_STEP, reference, t1[at],
                                     model->truth[(ptrdiff_t)at * model->outputs + JUNCTION]};
        memcpy(v + (ptrdiff_t)i * COLUMNS, row, sizeof row);
        residual[2 * i] = row[0];
        residual[2 * i + 1] = t1[at] - reference;
    }
    snprintf(id, sizeof id, "fig4.%da", 19 + k);
    snprintf(title, sizeof title, "Fig. 4.%da: junction temperature of the inverter, case %d",
             19 + k, k + 1);
    const crd_status st = crdi_figure_add(r, &CRDI_FIGURE(id, title, COLUMNS, names, POINTS, v));
    if (st < 0) { return st; }
    snprintf(id, sizeof id, "fig4.%db", 19 + k);
    snprintf(title, sizeof title, "Fig. 4.%db: residual of the junction temperature, case %d",
             19 + k, k + 1);
    return crdi_figure_add(r, &CRDI_FIGURE(id, title, 2, off, POINTS, residual));
}

typedef struct found {
    double rmse, mismatch, open_loop, thesis;
    double noise, ljung_box;
    bool white;
} found;

static crd_status claim_case(crdi_reproduction* r, int k, const found* f)
{
    const junction_case* c = &cases[k];
    crd_status st;
    char id[64], subject[64], remark[160];
    snprintf(subject, sizeof subject, "inverter, case %d", k + 1);
    snprintf(id, sizeof id, "case%d.matched", k + 1);
    snprintf(remark, sizeof remark, "walk of %.3g W^2 a step, %s (Ljung-Box %.2f)", f->noise,
             f->noise <= LEAST_WALK ? "as for a drift of 7 W in 5 s; less would be white, too"
             : f->white             ? "the smallest with white innovations"
                                    : "the whitest, as the input is no random walk",
             f->ljung_box);
    CRD_TRY(
        crdi_ch4_claim(r, id, subject,
                       CRDI_AT_MOST(none, f->rmse, c->limit,
                                    .what = "error of the junction's temperature, rms over 5 s, K",
                                    .remark = remark)));
    snprintf(id, sizeof id, "case%d.openloop", k + 1);
    CRD_TRY(crdi_ch4_claim(r, id, subject,
                           CRDI_NEAR(none, f->open_loop, c->open_loop, k == 3 ? 0.5 : 0.05,
                                     .what = "the same of the model alone, K")));
    snprintf(id, sizeof id, "case%d.mismatch", k + 1);
    CRD_TRY(crdi_ch4_claim(r, id, subject,
                           CRDI_WITHIN(none, f->mismatch, c->mismatch, 0.1,
                                       .what = "the same, the truth with the resistances of "
                                               "(4.65), K",
                                       .remark = "no filter removes it: 2.35 mK/W of R die times "
                                                 "the loss")));
    if (r->quick) { return CRD_OK; }
    snprintf(id, sizeof id, "case%d.thesis", k + 1);
    CRD_TRY(crdi_ch4_show(r, id, subject, "the same, model that matches, published filter, K", none,
                          f->thesis, "q = 1e6, same walk"));
fail:
    return st;
}

static crd_status reproduce_case(crdi_reproduction* r, int k)
{
    const junction_case* this = &cases[k];
    crd_status st;
    crdi_component truth = {.n = NULL}, other = {.n = NULL}, model = {.n = NULL};
    crd_arena_init(&truth.arena, r->ctx);
    crd_arena_init(&other.arena, r->ctx);
    crd_arena_init(&model.arena, r->ctx);
    found f = {0};
    CRD_TRY(make_truth(r->ctx, this, false, &truth));
    CRD_TRY(make_truth(r->ctx, this, true, &other));
    CRD_TRY(make_model(r->ctx, this, &model));
    const double* y[2] = {crdi_component_measure(&truth, this->seed, 0, 3),
                          crdi_component_measure(&other, this->seed, 0, 3)};
    double* t1 = crdi_arena_new(&truth.arena, CRDI_CH4_ROWS, sizeof *t1);
    CRD_TRY(y[0] && y[1] && t1 ? CRD_OK : CRD_E_MEMORY);
    int32_t parts[6];
    for (int i = 0; i < 6; i++) {
        const char name[] = {'q', (char)('1' + i), 0};
        parts[i] = crd_netlist_part(model.n, name);
    }
    crd_twin_source source = {.group = {.name = "loss", .parts = parts, .count = 6},
                              .model = CRD_SOURCE_WALK,
                              .noise = 1,
                              .start = 208,
                              .sd = 300};
    crd_twin_source chosen = source;
    crd_twin_spec s = crdi_ch4_spec(sensors, 3);
    s.sources = &source;
    s.source_count = 1;
    s.gate = 1;
    crd_twin_spec timed = s;
    timed.thesis_q = 1e6;
    if (!r->quick) {
        char id[32], subject[64];
        snprintf(id, sizeof id, "table4.8.case%d", k + 1);
        snprintf(subject, sizeof subject, "Table 4.8, inverter, case %d", k + 1);
        CRD_TRY(crdi_ch4_compare_cost(r, id, subject, model.n, &timed, y[0], this->laptop,
                                      this->raspberry));
    }
    if (r->times) { goto fail; }
    double flat;
    const crd_twin_data data = {
        .rows = CRDI_CH4_ROWS, .measurements = y[0], .from = none, .to = none};
    st = crd_twin_whiten(r->ctx, model.n, &s, &chosen, &data, &f.ljung_box, &flat);
    f.white = st == CRD_OK;
    CRD_TRY(st == CRD_E_LIMIT ? CRD_OK : st);
    chosen.noise = fmax(LEAST_WALK, chosen.noise);
    f.noise = chosen.noise;
    CRD_TRY(estimate_junction(r->ctx, model.n, &s, &truth, y[0], t1, &f.rmse));
    CRD_TRY(estimate_junction(r->ctx, model.n, &s, &other, y[1], NULL, &f.mismatch));
    if (!r->quick) {
        timed.filter = CRD_TWIN_THESIS;
        CRD_TRY(estimate_junction(r->ctx, model.n, &timed, &truth, y[0], NULL, &f.thesis));
    }
    for (int i = 0; i < CRDI_CH4_ROWS; i++) {
        const double off = model.truth[4 * i + JUNCTION] - truth.truth[4 * i + JUNCTION];
        f.open_loop += off * off / CRDI_CH4_ROWS;
    }
    f.open_loop = sqrt(f.open_loop);
    CRD_TRY(claim_case(r, k, &f));
    CRD_TRY(draw_junction(r, k, &truth, &model, t1));
fail:
    crdi_component_clear(&truth);
    crdi_component_clear(&other);
    crdi_component_clear(&model);
    return st;
}

crd_status crdi_ch4_junction(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    for (int k = 0; k < 4 && st >= 0; k++) {
        st = reproduce_case(r, k);
    }
    return st;
}
