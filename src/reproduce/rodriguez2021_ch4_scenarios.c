// Rodriguez Frade 2021, 4.3: the RC circuit that serves as a benchmark, its four scenarios.
#include "reproduce/rodriguez2021_ch4.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double none = NAN;
enum { SEEDS = 20, POINTS = 500 };

// In K above the air; %s: the source
static const char circuit[] =
    "rc\n.thermal\nheat q0 1 %s\nresistance r1 1 2 1\nresistance r2 2 3 2\n"
    "resistance r3 3 0 3\ncapacity c1 2 0.1 start=-1\ncapacity c2 3 0.2 start=1\n"
    ".endthermal\n.output T1=t(1) T2=t(2) T3=t(3)\n.tran 1m 5 uic\n.end\n";

static const crd_twin_sensor sensors[] = {{"s1", "t(1)", "K", CRDI_CH4_SD},
                                          {"s2", "t(2)", "K", CRDI_CH4_SD},
                                          {"s3", "t(3)", "K", CRDI_CH4_SD}};

static crd_status component(crdi_component* c, crd_context* ctx, const char* source, int64_t rows)
{
    char text[512];
    snprintf(text, sizeof text, circuit, source);
    return crdi_component_init(c, ctx, text, rows);
}

static crd_twin_data data_of(const double* y, int64_t rows)
{
    return (crd_twin_data){.rows = rows, .measurements = y, .from = none, .to = none};
}

static const char* const names[] = {"r1", "r2", "r3", "c1", "c2"};
static const char* const words[] = {"R1, K/W", "R2, K/W", "R3, K/W", "C1, J/K", "C2, J/K"};
static const double truths[] = {1, 2, 3, 0.1, 0.2};

// What scenarios 1 and 2 have in common
typedef struct tuned {
    const char *id, *subject;
    int first, count;    // of `names`
    int sensor, sensors; // first, how many
    double start[3];
    double q;         // of the published filter
    int passes;       // shown of it, besides the first
    double thesis[3]; // independent program, last pass, first seed
    double best[3];   // maximum likelihood, first seed
    double bound[3];  // Cramer-Rao
    double rmse[3];   // of maximum likelihood over the seeds
} tuned;

static const tuned resistors = {
    .id = "scenario1",
    .subject = "scenario 1, resistors from 10, 10, 10 K/W",
    .first = 0,
    .count = 3,
    .sensor = 0,
    .sensors = 3,
    .start = {10, 10, 10},
    .q = 100,
    .passes = 5,
    .thesis = {0.9993995444643057, 2.00120631646245, 2.9989275772443587},
    .best = {0.9991274096479444, 2.0011820779076563, 2.9989863970706323},
    .bound = {0.0009612151684181111, 0.0010763976344412751, 0.0009307928741199678},
    .rmse = {0.0009731822831577325, 0.001116142033638576, 0.0007032995639826601}};

static const tuned capacitors = {.id = "scenario2",
                                 .subject = "scenario 2, capacitors from 1, 10 J/K",
                                 .first = 3,
                                 .count = 2,
                                 .sensor = 1,
                                 .sensors = 2,
                                 .start = {1, 10},
                                 .q = 1e3,
                                 .passes = 60,
                                 .thesis = {0.09958519041679914, 0.20048951844391816},
                                 .best = {0.1000289602945201, 0.20005172189167614},
                                 .bound = {0.00023022814457008287, 0.0005797801815475007},
                                 .rmse = {0.00020207722524772078, 0.0005025618285164388}};

static void spec_of(const tuned* t, const crd_netlist* n, bool thesis, int32_t parts[3],
                    crd_twin_parameter p[3], crd_twin_spec* s)
{
    crdi_ch4_unknown(n, names + t->first, t->start, thesis ? sqrt(10) : 1, t->count, parts, p);
    *s = crdi_ch4_spec(sensors + t->sensor, t->sensors);
    s->parameters = p;
    s->parameter_count = t->count;
    if (thesis) {
        s->filter = CRD_TWIN_THESIS;
        s->thesis_q = t->q;
        s->state_sd = 0.1;
    }
}

static crd_status claim_values(crdi_reproduction* r, const tuned* t, const char* how,
                               const char* how_words, const crd_tune_result* got,
                               const double* reference, double tolerance, const char* remark)
{
    for (int i = 0; i < t->count; i++) {
        char id[64], what[128];
        snprintf(id, sizeof id, "%s.%s.%s", t->id, how, names[t->first + i]);
        snprintf(what, sizeof what, "%s, %s", words[t->first + i], how_words);
        const crd_status st =
            crdi_ch4_claim(r, id, t->subject,
                           CRDI_WITHIN(truths[t->first + i], got->value[i], reference[i], tolerance,
                                       .what = what, .remark = remark));
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// Of the sensors of a scenario; the noise is that of all three.
static const double* measure_scenario(const tuned* t, crdi_component* c, uint64_t seed)
{
    double* y = crdi_component_measure(c, seed, 0, 3);
    for (int64_t i = 0; i < c->rows && y; i++) {
        memmove(y + i * t->sensors, y + i * 3 + t->sensor, (size_t)t->sensors * sizeof *y);
    }
    return y;
}

// Over all seeds: errors of maximum likelihood against the bound, passes of the published filter
static crd_status judge_seeds(crdi_reproduction* r, const tuned* t, crdi_component* c)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    double square[3] = {0}, sd[3] = {0};
    int least = 1000, most = 0;
    crd_arena_init(&arena, r->ctx);
    for (int seed = 0; seed < SEEDS && st >= 0; seed++) {
        int32_t parts[3];
        crd_twin_parameter p[3];
        crd_twin_spec s;
        crd_tune_result got;
        const double* y = measure_scenario(t, c, 20210001 + (uint64_t)seed);
        st = y ? CRD_OK : CRD_E_MEMORY;
        spec_of(t, c->n, false, parts, p, &s);
        if (st >= 0) {
            st = crdi_ch4_tune(r->ctx, c->n, &s, data_of(y, c->rows), CRD_TUNE_LIKELIHOOD, 100,
                               &arena, &got);
        }
        for (int i = 0; i < t->count && st >= 0; i++) {
            const double off = got.value[i] - truths[t->first + i];
            square[i] += off * off / SEEDS;
            sd[i] += got.sd[i] * got.sd[i] / SEEDS;
        }
        if (t != &capacitors || st < 0) { continue; }
        spec_of(t, c->n, true, parts, p, &s);
        st = crdi_ch4_tune(r->ctx, c->n, &s, data_of(y, c->rows), CRD_TUNE_PASSES, t->passes,
                           &arena, &got);
        if (st < 0) { continue; }
        least = got.iterations < least ? got.iterations : least;
        most = got.iterations > most ? got.iterations : most;
    }
    crd_arena_clear(&arena);
    for (int i = 0; i < t->count && st >= 0; i++) {
        char id[64], what[128], remark[128];
        const char* name = names[t->first + i];
        snprintf(id, sizeof id, "%s.rmse.%s", t->id, name);
        snprintf(what, sizeof what, "%s, error of maximum likelihood, rms over %d seeds",
                 words[t->first + i], SEEDS);
        CRD_TRY(crdi_ch4_claim(r, id, t->subject,
                               CRDI_WITHIN(none, sqrt(square[i]), t->rmse[i], 0.01, .what = what,
                                           .remark = "same noise in an independent program")));
        snprintf(id, sizeof id, "%s.bound.%s", t->id, name);
        snprintf(what, sizeof what, "%s, this error over the Cramer-Rao bound",
                 words[t->first + i]);
        snprintf(remark, sizeof remark, "bound %.3g, independent %.3g", sqrt(sd[i]), t->bound[i]);
        CRD_TRY(crdi_ch4_claim(
            r, id, t->subject,
            CRDI_AT_MOST(none, sqrt(square[i] / sd[i]), 1.15, .what = what, .remark = remark)));
    }
    if (t == &capacitors && st >= 0) {
        CRD_TRY(crdi_ch4_claim(r, "scenario2.passes.least", t->subject,
                               CRDI_AT_LEAST(11, least, 11,
                                             .what = "passes of the published filter, least of all "
                                                     "seeds")));
        CRD_TRY(crdi_ch4_claim(r, "scenario2.passes.most", t->subject,
                               CRDI_AT_MOST(11, most, 12,
                                            .what = "passes of the published filter, most of all "
                                                    "seeds",
                                            .remark = "11 or 12, which depends on the noise")));
    }
fail:
    return st;
}

// Values over time during one pass of the published filter and of the recommended one
static crd_status draw_resistors(crdi_reproduction* r, const crdi_component* c, const double* y)
{
    static const char* const columns[] = {"t [s]",
                                          "R1 [K/W]",
                                          "R2 [K/W]",
                                          "R3 [K/W]",
                                          "R1, recommended filter [K/W]",
                                          "R2, recommended filter [K/W]",
                                          "R3, recommended filter [K/W]"};
    enum { COLUMNS = 7 };
    double* v = crdi_arena_new(&r->arena, POINTS * COLUMNS, sizeof *v);
    crd_status st = v ? CRD_OK : CRD_E_MEMORY;
    for (int k = 0; k < 2 && st >= 0; k++) {
        int32_t parts[3];
        crd_twin_parameter p[3];
        crd_twin_spec s;
        crd_twin* w = NULL;
        spec_of(&resistors, c->n, k == 0, parts, p, &s);
        s.state_noise = k ? 1e-4 : 0;
        s.gate = 1;
        st = crd_twin_create(r->ctx, c->n, &s, &w);
        if (st >= 0) { st = crd_twin_begin(w, 0); }
        for (int i = 0; i < CRDI_CH4_ROWS && st >= 0; i++) {
            st = crd_twin_step(w, y + (ptrdiff_t)i * 3);
            double* row = v + (ptrdiff_t)(i / 10) * COLUMNS;
            if (i % 10) { continue; }
            row[0] = crd_twin_time(w);
            for (int j = 0; j < 3; j++) {
                row[1 + 3 * k + j] = crd_twin_parameter_now(w, j).value;
            }
        }
        crd_twin_destroy(w);
    }
    if (st < 0) { return st; }
    return crdi_figure_add(r, &CRDI_FIGURE("fig4.6", "Fig. 4.6: resistances during estimation",
                                           COLUMNS, columns, POINTS, v));
}

static crd_status draw_capacitors(crdi_reproduction* r, const crdi_component* c, const double* y,
                                  int passes)
{
    static const char* const columns[] = {"pass", "C1 [J/K]", "C2 [J/K]"};
    crd_status st = CRD_OK;
    crd_arena arena;
    double v[64][3] = {{0, 1, 10}};
    crd_arena_init(&arena, r->ctx);
    tuned now = capacitors;
    for (int i = 1; i <= passes && i < 64 && st >= 0; i++) {
        int32_t parts[3];
        crd_twin_parameter p[3];
        crd_twin_spec s;
        crd_tune_result got;
        spec_of(&now, c->n, true, parts, p, &s);
        st = crdi_ch4_tune(r->ctx, c->n, &s, data_of(y, c->rows), CRD_TUNE_PASSES, 1, &arena, &got);
        if (st < 0) { break; }
        v[i][0] = i;
        v[i][1] = now.start[0] = got.value[0];
        v[i][2] = now.start[1] = got.value[1];
    }
    crd_arena_clear(&arena);
    if (st < 0) { return st; }
    return crdi_figure_add(
        r, &CRDI_FIGURE("fig4.7", "Fig. 4.7: capacities over the passes of the published filter", 3,
                        columns, passes < 64 ? passes + 1 : 64, v[0], .log_y = true));
}

static crd_status reproduce_tuned(crdi_reproduction* r, const tuned* t, crdi_component* c)
{
    crd_status st;
    crd_arena arena;
    int32_t parts[3];
    crd_twin_parameter p[3];
    crd_twin_spec s;
    crd_tune_result got;
    crd_arena_init(&arena, r->ctx);
    const double* y = measure_scenario(t, c, 20210001);
    CRD_TRY(y ? CRD_OK : CRD_E_MEMORY);
    spec_of(t, c->n, true, parts, p, &s);
    if (t == &resistors) {
        static const double once[] = {0.9980492828220966, 1.998954428688726, 2.999030853256743};
        CRD_TRY(
            crdi_ch4_tune(r->ctx, c->n, &s, data_of(y, c->rows), CRD_TUNE_PASSES, 1, &arena, &got));
        CRD_TRY(claim_values(r, t, "pass1", "published filter, one pass, q = 100", &got, once, 2e-5,
                             "'a single simulation run was sufficient'"));
        CRD_TRY(draw_resistors(r, c, y));
    }
    CRD_TRY(crdi_ch4_tune(r->ctx, c->n, &s, data_of(y, c->rows), CRD_TUNE_PASSES, t->passes, &arena,
                          &got));
    CRD_TRY(claim_values(
        r, t, "passes",
        t == &resistors ? "published filter, five passes" : "published filter, q = 1e3", &got,
        t->thesis, 5e-6, "digits of an independent program; how v' enters differs"));
    if (t == &capacitors) {
        CRD_TRY(crdi_ch4_claim(r, "scenario2.passes", t->subject,
                               CRDI_NEAR(11, got.converged ? got.iterations : none, 11, 0,
                                         .what = "passes of the published filter to 1e-10 J/K",
                                         .remark = "q = 1e3; 24 at 100, 7 at 1e4")));
        CRD_TRY(draw_capacitors(r, c, y, got.iterations));
    }
    spec_of(t, c->n, false, parts, p, &s);
    CRD_TRY(crdi_ch4_tune(r->ctx, c->n, &s, data_of(y, c->rows), CRD_TUNE_LIKELIHOOD, 100, &arena,
                          &got));
    CRD_TRY(claim_values(r, t, "likelihood", "maximum likelihood", &got, t->best, 2e-6,
                         "digits of an independent program"));
    if (!r->quick) { CRD_TRY(judge_seeds(r, t, c)); }
fail:
    crd_arena_clear(&arena);
    return st;
}

// ---- scenario 3: a constant source -------------------------------------------------------------

static crd_twin_source heat_source(const crd_netlist* n, int32_t* part, crd_source_model model)
{
    *part = crd_netlist_part(n, "q0");
    return (crd_twin_source){
        .group = {.name = "q0", .parts = part, .count = 1}, .model = model, .start = 10, .sd = 3};
}

enum { LONG = 10000, MANY = 200 };

static crd_status draw_source(crdi_reproduction* r, const crdi_component* c, const double* y,
                              crd_twin_source source, crd_estimate* last)
{
    static const char* const columns[] = {"t [s]", "Q0 [W]", "residual [W]"};
    double* v = crdi_arena_new(&r->arena, 3 * POINTS, sizeof *v);
    crd_twin_spec s = crdi_ch4_spec(sensors + 2, 1);
    crd_twin* w = NULL;
    s.sources = &source;
    s.source_count = 1;
    s.state_sd = 0.1;
    s.gate = 1;
    crd_status st = v ? crd_twin_create(r->ctx, c->n, &s, &w) : CRD_E_MEMORY;
    if (st >= 0) { st = crd_twin_begin(w, 0); }
    for (int i = 0; i < LONG && st >= 0; i++) {
        st = crd_twin_step(w, y + i);
        if (i % 20) { continue; }
        double* row = v + (ptrdiff_t)(i / 20) * 3;
        row[0] = crd_twin_time(w);
        row[1] = crd_twin_source_now(w, 0).value;
        row[2] = row[1] - 10;
    }
    if (st >= 0) { *last = crd_twin_source_now(w, 0); }
    crd_twin_destroy(w);
    if (st < 0) { return st; }
    return crdi_figure_add(
        r, &CRDI_FIGURE("fig4.8", "Fig. 4.8: a source found from sensor 3", 3, columns, POINTS, v));
}

// Of maximum likelihood over many seeds: that of so few as 20 has itself a spread of 16 %.
static crd_status claim_source(crdi_reproduction* r, const char* subject, const double* off,
                               double bound)
{
    crd_status st;
    double few = 0, all = 0;
    for (int i = 0; i < MANY; i++) {
        all += off[i] * off[i] / MANY;
        if (i < SEEDS) { few += off[i] * off[i] / SEEDS; }
    }
    char remark[128];
    CRD_TRY(crdi_ch4_claim(r, "scenario3.rmse", subject,
                           CRDI_WITHIN(none, sqrt(few), 0.002299679196743791, 0.02,
                                       .what = "error of maximum likelihood, rms over 20 seeds, W",
                                       .remark = "a Kalman filter in an independent program")));
    snprintf(remark, sizeof remark, "chance: 1.24 in the independent program, and %d seeds follow",
             MANY);
    CRD_TRY(crdi_ch4_show(r, "scenario3.bound20", subject,
                          "this error over the Cramer-Rao bound, rms over 20 seeds", none,
                          sqrt(few) / bound, remark));
    snprintf(remark, sizeof remark, "error %.3g W, bound %.3g W", sqrt(all), bound);
    CRD_TRY(crdi_ch4_claim(r, "scenario3.bound", subject,
                           CRDI_AT_MOST(none, sqrt(all) / bound, 1.15,
                                        .what = "error of maximum likelihood over the Cramer-Rao "
                                                "bound, rms over 200 seeds",
                                        .remark = remark)));
fail:
    return st;
}

static crd_status reproduce_source(crdi_reproduction* r)
{
    static const char* const subject = "scenario 3, source from 1 W";
    crd_status st;
    crdi_component c;
    crd_arena arena;
    double off[MANY], bound = 0;
    crd_arena_init(&arena, r->ctx);
    CRD_TRY(component(&c, r->ctx, "10", LONG));
    int32_t part;
    crd_twin_source source = heat_source(c.n, &part, CRD_SOURCE_CONSTANT);
    source.start = 1;
    source.sd = 10;
    crd_twin_spec s = crdi_ch4_spec(sensors + 2, 1);
    s.sources = &source;
    s.source_count = 1;
    for (int i = 0; i < (r->quick ? 1 : MANY); i++) {
        crd_tune_result got;
        const double* y = crdi_component_measure(&c, 20210301 + (uint64_t)i, 2, 1);
        CRD_TRY(y ? CRD_OK : CRD_E_MEMORY);
        if (i == 0) {
            crd_estimate e;
            CRD_TRY(draw_source(r, &c, y, source, &e));
            CRD_TRY(crdi_ch4_claim(r, "scenario3.filter", subject,
                                   CRDI_NEAR(10, e.value, 10.00337411338876, 1e-4,
                                             .what = "Q0, W, Kalman filter after 10 s",
                                             .remark = "digits of an independent program, whose "
                                                       "start is less certain")));
        }
        CRD_TRY(crdi_ch4_tune(r->ctx, c.n, &s, data_of(y, LONG), CRD_TUNE_LIKELIHOOD, 100, &arena,
                              &got));
        off[i] = got.value[0] - 10;
        bound = got.sd[0]; // linear: the same for all
    }
    if (!r->quick) { CRD_TRY(claim_source(r, subject, off, bound)); }
fail:
    crdi_component_clear(&c);
    crd_arena_clear(&arena);
    return st;
}

// ---- scenario 4: states with an unknown input --------------------------------------------------

typedef struct followed {
    double rmse[3];                    // of T2, T3, Q0 after 0.5 s
    double estimate[CRDI_CH4_ROWS][2]; // T2, Q0
} followed;

static double source_at(double t)
{
    return 10 * (1 + sin(31.41592653589793 * t));
}

static crd_status follow_source(crd_context* ctx, const crd_netlist* n, const crdi_component* c,
                                const crd_twin_spec* s, const double* y, followed* f)
{
    crd_twin* w = NULL;
    crd_status st = crd_twin_create(ctx, n, s, &w);
    if (st >= 0) { st = crd_twin_begin(w, 0); }
    double sum[3] = {0};
    int count = 0;
    for (int i = 0; i < CRDI_CH4_ROWS && st >= 0; i++) {
        st = crd_twin_step(w, y + (ptrdiff_t)i * s->sensor_count);
        const double* truth = c->truth + (ptrdiff_t)i * 3;
        const double t = (i + 1) * CRDI_CH4_STEP;
        const double q = s->source_count ? crd_twin_source_now(w, 0).value : 10;
        const double t2 = crd_twin_output(w, 1).value, t3 = crd_twin_output(w, 2).value;
        const double e[3] = {t2 - truth[1], t3 - truth[2], q - source_at(t)};
        f->estimate[i][0] = t2;
        f->estimate[i][1] = q;
        if (t <= 0.5) { continue; }
        for (int j = 0; j < 3; j++) {
            sum[j] += e[j] * e[j];
        }
        count++;
    }
    for (int j = 0; j < 3; j++) {
        f->rmse[j] = sqrt(sum[j] / count);
    }
    crd_twin_destroy(w);
    return st;
}

static crd_status draw_state(crdi_reproduction* r, const crdi_component* c, const followed* f)
{
    static const char* const columns[] = {"t [s]",
                                          "T2 - T air, reference [K]",
                                          "estimated, random walk [K]",
                                          "estimated, oscillator [K]",
                                          "not corrected [K]",
                                          "residual, random walk [K]",
                                          "residual, oscillator [K]"};
    enum { COLUMNS = 7 };
    double* v = crdi_arena_new(&r->arena, POINTS * COLUMNS, sizeof *v);
    if (!v) { return CRD_E_MEMORY; }
    for (int i = 0; i < POINTS; i++) {
        const int at = 10 * i + 9;
        const double truth = c->truth[3 * at + 1];
        const double row[COLUMNS] = {(at + 1) * CRDI_CH4_STEP,    truth,
                                     f[0].estimate[at][0],        f[1].estimate[at][0],
                                     f[2].estimate[at][0],        f[0].estimate[at][0] - truth,
                                     f[1].estimate[at][0] - truth};
        memcpy(v + (ptrdiff_t)i * COLUMNS, row, sizeof row);
    }
    return crdi_figure_add(r, &CRDI_FIGURE("fig4.9",
                                           "Fig. 4.9: temperature of node 2 while the "
                                           "source is not what the model says",
                                           COLUMNS, columns, POINTS, v));
}

static crd_status claim_state(crdi_reproduction* r, const followed* f)
{
    static const char* const subject = "scenario 4, unknown input";
    static const struct {
        const char *id, *what;
        int run, of;
        double reference, tolerance;
        crdi_claim_rule rule;
        const char* remark;
    } rows[] = {
        {"scenario4.walk.t2", "error of T2 after 0.5 s, input a random walk, K", 0, 0, 0.21, 0.005,
         CRDI_CLAIM_AT_MOST, "to two digits: noise spreads it from 0.202 to 0.221"},
        {"scenario4.walk.q", "error of Q0, random walk, W", 0, 2, 2.6547, 0.15, CRDI_CLAIM_AT_MOST,
         "another noise than the independent program's"},
        {"scenario4.oscillator.t2", "error of T2, input an oscillator of 5 Hz, K", 1, 0, 0.05, 0,
         CRDI_CLAIM_AT_MOST, "0.030 in an independent program"},
        {"scenario4.oscillator.q", "error of Q0, oscillator, W", 1, 2, 0.1, 0, CRDI_CLAIM_AT_MOST,
         "0.040 in an independent program"},
        {"scenario4.uncorrected.t2", "error of T2, model not corrected, K", 2, 0,
         2.2132444826381805, 1e-3, CRDI_CLAIM_NEAR, ""},
        {"scenario4.uncorrected.t3", "error of T3, model not corrected, K", 2, 1,
         0.2832700855735229, 1e-3, CRDI_CLAIM_NEAR, ""},
        {"scenario4.thesis.t2", "error of T2, published filter, q = 1e6, K", 3, 0,
         0.210182582749814, 0.02, CRDI_CLAIM_NEAR, "another noise than the independent program's"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const crd_status st = crdi_ch4_claim(r, rows[i].id, subject,
                                             (crdi_claim){.what = rows[i].what,
                                                          .published = none,
                                                          .ours = f[rows[i].run].rmse[rows[i].of],
                                                          .reference = rows[i].reference,
                                                          .tolerance = rows[i].tolerance,
                                                          .rule = rows[i].rule,
                                                          .remark = rows[i].remark});
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status reproduce_state(crdi_reproduction* r)
{
    enum { RUNS = 4 };
    crd_status st;
    crdi_component c, model = {.n = NULL};
    crd_arena_init(&model.arena, r->ctx);
    CRD_TRY(component(&c, r->ctx, "sin(10 10 5)", CRDI_CH4_ROWS));
    CRD_TRY(component(&model, r->ctx, "10", 1));
    followed* f = crdi_arena_new(&c.arena, RUNS, sizeof *f);
    const double* y = crdi_component_measure(&c, 20210401, 1, 2);
    double* nothing = crdi_arena_new(&c.arena, 2 * CRDI_CH4_ROWS, sizeof *nothing);
    CRD_TRY(f && y && nothing ? CRD_OK : CRD_E_MEMORY);
    for (int i = 0; i < CRDI_CH4_ROWS; i++) {
        nothing[2 * i] = nothing[2 * i + 1] = none;
    }
    int32_t part;
    crd_twin_source source = heat_source(model.n, &part, CRD_SOURCE_WALK);
    source.noise = 1;
    crd_twin_spec s = crdi_ch4_spec(sensors + 1, 2);
    s.sources = &source;
    s.source_count = 1;
    s.gate = 1;
    if (!r->quick) {
        crd_twin_spec timed = s;
        timed.thesis_q = 1e6;
        CRD_TRY(crdi_ch4_compare_cost(r, "table4.3", "Table 4.3, scenario 4", model.n, &timed, y,
                                      58.4, 317.4));
    }
    if (r->times) { goto fail; }
    CRD_TRY(follow_source(r->ctx, model.n, &c, &s, y, &f[0]));
    if (!r->quick) {
        double sum = 0;
        for (uint64_t i = 0; i < SEEDS; i++) { // f[1] is still free
            const double* other = crdi_component_measure(&c, 20210401 + i, 1, 2);
            CRD_TRY(other ? CRD_OK : CRD_E_MEMORY);
            CRD_TRY(follow_source(r->ctx, model.n, &c, &s, other, &f[1]));
            sum += f[1].rmse[0] * f[1].rmse[0] / SEEDS;
        }
        CRD_TRY(
            crdi_ch4_claim(r, "scenario4.walk.seeds", "scenario 4, unknown input",
                           CRDI_AT_MOST(none, sqrt(sum), 0.21,
                                        .what = "error of T2, random walk, rms over 20 seeds, K",
                                        .tolerance = 0.005, .remark = "to two digits")));
    }
    s.filter = CRD_TWIN_THESIS;
    s.thesis_q = 1e6;
    CRD_TRY(follow_source(r->ctx, model.n, &c, &s, y, &f[3]));
    s.filter = CRD_TWIN_AUTO;
    source.model = CRD_SOURCE_OSCILLATOR;
    source.frequency = 5;
    source.noise = 1e-6;
    CRD_TRY(follow_source(r->ctx, model.n, &c, &s, y, &f[1]));
    s.source_count = 0;
    CRD_TRY(follow_source(r->ctx, model.n, &c, &s, nothing, &f[2]));
    CRD_TRY(claim_state(r, f));
    CRD_TRY(draw_state(r, &c, f));
fail:
    crdi_component_clear(&c);
    crdi_component_clear(&model);
    return st;
}

static crd_status draw_reference(crdi_reproduction* r, const crdi_component* c, const char* id,
                                 const char* title)
{
    static const char* const columns[] = {"t [s]", "T1 - T air [K]", "T2 - T air [K]",
                                          "T3 - T air [K]"};
    double* v = crdi_arena_new(&r->arena, 4 * POINTS, sizeof *v);
    if (!v) { return CRD_E_MEMORY; }
    for (int i = 0; i < POINTS; i++) {
        v[4 * i] = 10 * (i + 1) * CRDI_CH4_STEP;
        memcpy(v + (ptrdiff_t)4 * i + 1, c->truth + (ptrdiff_t)30 * i + 27, 3 * sizeof *v);
    }
    return crdi_figure_add(r, &CRDI_FIGURE(id, title, 4, columns, POINTS, v));
}

crd_status crdi_ch4_scenarios(crdi_reproduction* r)
{
    crd_status st;
    if (r->times) { return reproduce_state(r); }
    crdi_component c, shaken = {.n = NULL};
    crd_arena_init(&shaken.arena, r->ctx);
    CRD_TRY(component(&c, r->ctx, "10", CRDI_CH4_ROWS));
    CRD_TRY(draw_reference(r, &c, "fig4.4", "Fig. 4.4: temperatures with a constant source"));
    CRD_TRY(component(&shaken, r->ctx, "sin(10 10 5)", CRDI_CH4_ROWS));
    CRD_TRY(
        draw_reference(r, &shaken, "fig4.5", "Fig. 4.5: temperatures with a sinusoidal source"));
    CRD_TRY(reproduce_tuned(r, &resistors, &c));
    CRD_TRY(reproduce_tuned(r, &capacitors, &c));
    CRD_TRY(reproduce_source(r));
    CRD_TRY(reproduce_state(r));
fail:
    crdi_component_clear(&c);
    crdi_component_clear(&shaken);
    return st;
}
