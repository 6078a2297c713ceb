// cardan coupling design: the coupling algorithm for a bandwidth, or for a recording.
#include "cardan/results.h"
#include "cli/analyze/signals.h"

#include <math.h>
#include <string.h>

typedef struct design_options {
    crdi_common common;
    const char *signal, *latency, *band, *magnitude_band, *output, *name, *loop, *plot, *csv;
    double step, from, to, noise, margin, roll_off, alpha, beta, gamma, delta;
    bool pareto, constant;
    int method, taps, degree; // -1: not given
    crdi_list commands;
    double command_delay;
} design_options;

enum { ALL = CRD_DESIGNERS };
static const char* const methods[] = {
    "moment", "savitzky-golay", "wiener", "optimal", "bounded", "all", NULL};

typedef struct designer {
    crdi_cli* cli;
    const design_options* o;
    const char* path; // of the recording
    crd_arena arena;
    crdi_recorded recorded;
    crdi_recorded_commands commands;
    crd_signal signal;
    crd_design_task task;
    int latencies[CRDI_LATENCIES_MAX], latency_count;
    crd_designed* designs; // by method, then by k
    int count;
} designer;

// ---- what is asked for -------------------------------------------------------------------------

static crd_status read_recording(designer* d)
{
    const design_options* o = d->o;
    const crdi_recorded_options r = {o->signal, o->step, o->from, o->to};
    crd_status st = CRD_OK;
    CRD_TRY(crdi_recorded_load(d->cli->ctx, d->path, &r, &d->recorded));
    CRD_TRY(crdi_recorded_without_gaps(&d->recorded, d->path));
    CRD_TRY(crdi_commands_load(d->cli->ctx, d->path, &o->commands, &r, &d->recorded, &d->commands));
    d->signal = crdi_signal_of(&d->recorded);
    d->task.signal = &d->signal;
    d->task.goal.dT = d->recorded.step;
fail:
    return st;
}

static crd_status read_task(designer* d)
{
    const design_options* o = d->o;
    crd_context* ctx = d->cli->ctx;
    crd_design_task* t = &d->task;
    crd_status st = CRD_OK;
    *t = crd_design_task_defaults();
    t->noise = o->noise;
    t->margin = o->margin;
    t->constant = o->constant;
    t->goal.v = o->roll_off / 2;
    t->goal.dT = o->step;
    if (!isnan(o->alpha)) { t->goal.alpha = o->alpha; }
    if (!isnan(o->beta)) { t->goal.beta = o->beta; }
    if (!isnan(o->gamma)) { t->goal.gamma = o->gamma; }
    t->goal.delta = o->delta;
    if (o->degree >= 0) { t->degree = o->degree; }
    if (o->taps >= 0) { t->goal.m = o->taps; }
    if (o->band) { CRD_TRY(crdi_parse_interval(ctx, "--band", o->band, &t->goal.phase)); }
    if (o->magnitude_band) {
        CRD_TRY(
            crdi_parse_interval(ctx, "--magnitude-band", o->magnitude_band, &t->goal.magnitude));
    }
    if (d->path) {
        CRD_TRY(read_recording(d));
    } else if (!o->band || isnan(o->step)) {
        return crdi_fail(ctx, CRD_E_RANGE, "expected --band and --step, or a recording");
    }
    CRD_TRY(crdi_parse_latencies(ctx, o->latency, t->goal.dT, d->latencies, &d->latency_count));
    st = crd_design_find_bands(ctx, &d->arena, t);
    if (st < 0 && d->path) { st = crdi_fail_in(ctx, st, "%s", d->path); }
fail:
    return st;
}

static crd_status make_all(designer* d)
{
    const int first = d->o->method == ALL ? 0 : d->o->method;
    const int last = d->o->method == ALL ? CRD_DESIGNERS - 1 : d->o->method;
    const int most = (last - first + 1) * d->latency_count;
    d->designs = crdi_arena_new(&d->arena, (size_t)most, sizeof *d->designs);
    if (!d->designs) { return CRD_E_MEMORY; }
    crd_status st = CRD_OK;
    for (int by = first; by <= last && st >= 0; by++) {
        for (int i = 0; i < d->latency_count && st >= 0; i++) {
            crdi_progress(d->cli->ctx, "designing", d->count, most, "elements");
            st = crd_design_make(d->cli->ctx, &d->task, (crd_designer)by, d->latencies[i],
                                 &d->designs[d->count]);
            d->count += st >= 0;
        }
    }
    crdi_progress_end(d->cli->ctx);
    return st;
}

static crd_status find_margins(designer* d)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < d->count && st >= 0; i++) {
        crd_designed* e = &d->designs[i];
        crd_text text;
        crd_text_init(&text, d->cli->ctx);
        st = crd_design_describe("design", d->task.goal.dT, e, 1, &text);
        if (st >= 0) {
            st = crdi_loop_margins(d->cli->ctx, d->o->loop, text.data, e->linear.k, &e->margins);
        }
        crd_text_clear(&text);
    }
    return st;
}

// ---- what comes out ----------------------------------------------------------------------------

static void put_design(const crd_designed* e, crdi_result* row)
{
    const crd_quality* q = &e->quality;
    crdi_put(row, TEXT("method", crd_designer_name(e->by)), INT("k", e->linear.k), REAL("J", q->J),
             REAL("J_m", q->J_m), REAL("J_p", q->J_p_deg), REAL("J_r", q->J_r_low + q->J_r_high),
             REAL("norm", q->norm));
    crdi_put(crdi_object(row, "peak"), REAL("gain", q->peak_gain), REAL("omega", q->peak_omega));
    crdi_put_numbers(row, "a", e->linear.a, e->linear.m);
    crdi_put(row, REAL("b", e->linear.b));
    crdi_put(row, CELL("gain", crdi_worded(row, "%.4g", q->peak_gain)),
             CELL("omega", crdi_worded(row, "%.4g", q->peak_omega)));
    if (e->margins.known) { crdi_put_margins(row, &e->margins); }
    if (isnan(e->zoh)) { return; }
    crdi_put(row, REAL("C", 100 * e->metrics.C), REAL("C_zoh", 100 * e->zoh),
             CELL("change", crdi_percent(row, e->metrics.C / e->zoh - 1)));
}

static void put_designs(const designer* d, crdi_result* out)
{
#define COLUMNS                                                                                    \
    {"method", "method", ""}, {">k", "k", ""}, {">J", "J", "%.6g"}, {">J_m", "J_m", "%.4g"},       \
        {">J_p [deg]", "J_p", "%.4g"}, {">J_r", "J_r", "%.4g"}, {">norm", "norm", "%.4g"},         \
        {">gain at most", "gain", ""},                                                             \
    {                                                                                              \
        ">at [rad/s]", "omega", ""                                                                 \
    }
    static const crdi_column plain[] = {COLUMNS, {0}};
    static const crdi_column recorded[] = {
        COLUMNS, {">100 C", "C", "%.4f"}, {">against ZOH", "change", ""}, {0}};
#undef COLUMNS
    static const crdi_column margins[] = {{"method", "method", ""},
                                          {">k", "k", ""},
                                          {"loop", "loop", ""},
                                          {">phase margin", "phase", ""},
                                          {">delay margin", "delay", ""},
                                          {">min |1 + L|", "nearest", ""},
                                          {0}};
    const crd_goal* g = &d->task.goal;
    crdi_say(out,
             "macro step %g s, %d taps; phase wanted on %.4g .. %.4g rad/s, magnitude on %.4g .. "
             "%.4g rad/s, noise %.3g\n\n",
             g->dT, g->m, g->phase.lo, g->phase.hi, g->magnitude.lo, g->magnitude.hi,
             d->task.noise);
    crdi_put(out, REAL("step", g->dT), INT("taps", g->m));
    crdi_put_numbers(out, "phase_band", (double[]){g->phase.lo, g->phase.hi}, 2);
    crdi_put_numbers(out, "magnitude_band", (double[]){g->magnitude.lo, g->magnitude.hi}, 2);
    crdi_put(out, REAL("noise", d->task.noise));
    crdi_result* list = crdi_array(out, "designs");
    for (int i = 0; i < d->count; i++) {
        put_design(&d->designs[i], crdi_row(list));
    }
    crdi_show_table(out, list, d->task.signal ? recorded : plain, "");
    for (int i = 0; i < d->count && d->o->constant; i++) {
        const crd_linear* l = &d->designs[i].linear;
        double sum = 0;
        for (int j = 0; j < l->m; j++) {
            sum += l->a[j];
        }
        crdi_say(out, "%sk = %d: sum a = %.6g, b = %.6g; a constant passes at %.6g only\n",
                 i ? "" : "\n", l->k, sum, l->b, l->b / (1 - sum));
    }
    if (!d->o->loop) { return; }
    crdi_say(out, "\n");
    crdi_show_table(out, list, margins, "");
}

// ---- the front ---------------------------------------------------------------------------------

// Optimal designs for weights around the given ones, and which of them are no better in magnitude,
// phase and noise at once than another.
static const double betas[] = {0.1, 0.3, 1, 3, 10}, gammas[] = {1, 1e-3},
                    deltas[] = {0, 1, 10, 100}; // of --delta, or of 1e-5
enum {
    BETAS = sizeof betas / sizeof *betas,
    GAMMAS = sizeof gammas / sizeof *gammas,
    DELTAS = sizeof deltas / sizeof *deltas,
    FRONT = BETAS * GAMMAS * DELTAS
};

typedef struct front {
    int count, best; // designs; of them, on the front: first, by J_p
    int order[FRONT];
    double beta[FRONT], gamma[FRONT], delta[FRONT];
} front;

static bool beats(const crd_quality* a, const crd_quality* b)
{
    return a->J_m <= b->J_m && a->J_p_deg <= b->J_p_deg && a->norm <= b->norm &&
           (a->J_m < b->J_m || a->J_p_deg < b->J_p_deg || a->norm < b->norm);
}

static void find_front(const designer* d, front* f)
{
    for (int i = 0; i < d->count; i++) {
        bool beaten = false;
        for (int j = 0; j < d->count; j++) {
            beaten = beaten || beats(&d->designs[j].quality, &d->designs[i].quality);
        }
        if (beaten) { continue; }
        int at = f->best++;
        const double J_p = d->designs[i].quality.J_p_deg;
        for (; at > 0 && d->designs[f->order[at - 1]].quality.J_p_deg > J_p; at--) {
            f->order[at] = f->order[at - 1];
        }
        f->order[at] = i;
    }
}

static crd_status make_front(designer* d, front* f)
{
    const double delta = d->o->delta > 0 ? d->o->delta : 1e-5;
    crd_status st = CRD_OK;
    d->designs = crdi_arena_new(&d->arena, FRONT, sizeof *d->designs);
    if (!d->designs) { return CRD_E_MEMORY; }
    for (int i = 0; i < FRONT && st >= 0; i++) {
        crd_design_task t = d->task;
        t.goal.beta *= betas[i % BETAS];
        t.goal.gamma *= gammas[i / BETAS % GAMMAS];
        t.goal.delta = delta * deltas[i / BETAS / GAMMAS];
        f->beta[i] = t.goal.beta;
        f->gamma[i] = t.goal.gamma;
        f->delta[i] = t.goal.delta;
        crdi_progress(d->cli->ctx, "front", i, FRONT, "designs");
        st = crd_design_make(d->cli->ctx, &t, CRD_DESIGNER_OPTIMAL, d->latencies[0],
                             &d->designs[d->count]);
        d->count += st >= 0;
    }
    crdi_progress_end(d->cli->ctx);
    if (st >= 0) { find_front(d, f); }
    return st;
}

static crd_status draw_front(designer* d, const front* f)
{
    static const char* const names[] = {"alpha", "beta",      "gamma", "delta",
                                        "J_m",   "J_p [deg]", "norm",  "J_r"};
    enum { COLUMNS = sizeof names / sizeof *names, J_M = 4, J_P, NORM };
    const int n = f->best;
    double* column[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
        column[c] = crdi_arena_new(&d->arena, (size_t)n, sizeof **column);
        if (!column[c]) { return CRD_E_MEMORY; }
    }
    for (int i = 0; i < n; i++) {
        const int at = f->order[i];
        const crd_quality* q = &d->designs[at].quality;
        const double row[COLUMNS] = {d->task.goal.alpha,
                                     f->beta[at],
                                     f->gamma[at],
                                     f->delta[at],
                                     q->J_m,
                                     q->J_p_deg,
                                     q->norm,
                                     q->J_r_low + q->J_r_high};
        for (int c = 0; c < COLUMNS; c++) {
            column[c][i] = row[c];
        }
    }
    crd_context* ctx = d->cli->ctx;
    crd_status st = CRD_OK;
    if (d->o->csv) {
        st = crdi_write_columns(ctx, d->o->csv, names, (const double* const*)column, COLUMNS, n);
    }
    if (st < 0 || !d->o->plot) { return st; }
    crd_plot_series series[2] = {{.label = "", .x = column[J_P], .count = n, .points = true}};
    series[1] = series[0];
    series[0].y = column[J_M];
    series[1].y = column[NORM];
    const crd_plot_panel panels[] = {
        {.title = "Magnitude", .y_label = "J_m", .series = &series[0], .series_count = 1},
        {.title = "Noise", .y_label = "norm", .series = &series[1], .series_count = 1}};
    const crd_plot_options picture = {.title = "Designs that no other beats",
                                      .x_label = "J_p [deg]"};
    return crdi_picture_write(d->cli, d->o->plot, &picture, panels, 2);
}

static void put_front(const designer* d, const front* f, crdi_result* out)
{
    static const crdi_column columns[] = {
        {">beta", "beta", "%.4g"},     {">gamma", "gamma", "%.4g"},
        {">delta", "delta", "%.4g"},   {">J_m", "J_m", "%.4g"},
        {">J_p [deg]", "J_p", "%.4g"}, {">norm", "norm", "%.4g"},
        {">J_r", "J_r", "%.4g"},       {">gain at most", "gain", ""},
        {">at [rad/s]", "omega", ""},  {0}};
    crdi_say(out,
             "alpha %g; %d designs, %d of them are beaten by no other in magnitude, phase and "
             "noise at once\n\n",
             d->task.goal.alpha, d->count, f->best);
    crdi_put(out, REAL("alpha", d->task.goal.alpha));
    crdi_result* list = crdi_array(out, "pareto");
    for (int i = 0; i < f->best; i++) {
        const int at = f->order[i];
        crdi_result* row = crdi_row(list);
        crdi_put(row, REAL("beta", f->beta[at]), REAL("gamma", f->gamma[at]),
                 REAL("delta", f->delta[at]));
        put_design(&d->designs[at], row);
    }
    crdi_show_table(out, list, columns, "");
}

// ---- what no linear design has -----------------------------------------------------------------

// 100 C of an element over the recording, its learning included.
static crd_status replay_element(const designer* d, const char* name,
                                 const crdi_recorded_commands* commands, int k, double* C,
                                 crdi_result* says)
{
    crd_context* ctx = d->cli->ctx;
    const double* y[CRD_COMMANDS_MAX] = {NULL};
    crd_replay_options channel = crd_replay_defaults();
    crd_element* e = NULL;
    crd_replay r;
    crd_status st = CRD_OK;
    channel.step = d->recorded.step;
    channel.delay = k * channel.step;
    if (!isnan(d->o->command_delay)) { channel.command_delay = d->o->command_delay; }
    CRD_TRY(crd_element_of_name(ctx, name, &e));
    if (e->options.k_max < k) { e->options.k_max = k; }
    if (commands) {
        CRD_TRY(crdi_commands_choose(ctx, commands, e, y));
        channel.commands = y;
        channel.command_count = e->options.commands;
    }
    CRD_TRY(crd_coupling_replay(ctx, e, &channel, d->recorded.y, d->recorded.count, NULL, &r));
    *C = 100 * crd_score_metrics(&r.score).C;
    if (says) { crdi_commands_report(says, says, e, &r.commands); }
fail:
    crd_element_destroy(e);
    return st;
}

static crd_status put_with_commands(designer* d, crdi_result* out)
{
    static const crdi_column columns[] = {{"with", "method", ""},
                                          {">k", "k", ""},
                                          {">100 C", "C", "%.4f"},
                                          {">against ZOH", "change", ""},
                                          {0}};
    crd_status st = CRD_OK;
    crdi_result* list = crdi_array(out, "with_commands");
    for (int i = 0; i < d->latency_count; i++) {
        double hold = 0, C = 0;
        crdi_result* row = crdi_row(list);
        CRD_TRY(replay_element(d, "zoh", NULL, d->latencies[i], &hold, NULL));
        CRD_TRY(replay_element(d, "commands", &d->commands, d->latencies[i], &C,
                               i + 1 == d->latency_count ? row : NULL));
        crdi_put(row, TEXT("method", "commands"), INT("k", d->latencies[i]), REAL("C", C),
                 REAL("C_zoh", hold), CELL("change", crdi_percent(row, C / hold - 1)));
    }
    crdi_say(out, "\n");
    crdi_show_table(out, list, columns, "");
    crdi_say(
        out,
        "\nlearned while it was replayed; 'cardan coupling learn train --command' writes such an "
        "element\n");
fail:
    return st;
}

static crd_status write_element(const designer* d, crdi_result* out)
{
    const design_options* o = d->o;
    crd_context* ctx = d->cli->ctx;
    crd_status st = CRD_OK;
    crd_element* check = NULL;
    crd_text text;
    crd_text_init(&text, ctx);
    const char* name = o->name ? o->name : d->path ? d->recorded.name : "element";
    CRD_TRY(crd_design_describe(name, d->task.goal.dT, d->designs, d->count, &text));
    CRD_TRY(crd_element_parse(ctx, text.data, text.length, o->output, 1, &check));
    CRD_TRY(crdi_file_write(ctx, o->output, &text));
    crdi_say(out, "\n%s: %s\n", o->output, methods[o->method]);
fail:
    crd_element_destroy(check);
    crd_text_clear(&text);
    return st;
}

static crd_status check_design_options(const designer* d)
{
    const design_options* o = d->o;
    crd_context* ctx = d->cli->ctx;
    if (!o->latency) {
        return crdi_fail(ctx, CRD_E_RANGE, "expected --latency, in macro steps or as a time");
    }
    if (o->commands.count > 0 && (!d->path || o->pareto)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--command: what a command does is learned from a recording of both, "
                         "expected one, and no --pareto");
    }
    if (o->constant && (!d->path || o->method != CRD_DESIGNER_WIENER)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--constant: the constant is that of a signal with a mean and of least "
                         "squares, expected a recording and --method wiener");
    }
    if (o->output && o->method == ALL) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--output: which of the designs? expected --method with one of them");
    }
    if (o->pareto && (o->output || o->loop || o->method < CRD_DESIGNER_OPTIMAL ||
                      o->method == CRD_DESIGNER_BOUNDED)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--pareto compares optimal designs: --output, --loop and another --method "
                         "do not go with it");
    }
    if ((o->plot || o->csv) && !o->pareto) {
        return crdi_fail(ctx, CRD_E_RANGE, "--%s is for the front, expected --pareto beside it",
                         o->plot ? "plot" : "csv");
    }
    const crd_status st = crdi_picture_check(d->cli, o->plot, &o->common);
    return st < 0 || !d->path ? st : crdi_check_output(ctx, o->output, d->path);
}

static crd_status run_design(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    designer d = {
        .cli = cli, .o = options, .path = arguments->count > 0 ? arguments->items[0] : NULL};
    crd_status st = CRD_OK;
    crd_arena_init(&d.arena, cli->ctx);
    CRD_TRY(check_design_options(&d));
    CRD_TRY(read_task(&d));
    if (d.o->pareto) {
        front f = {0};
        if (d.latency_count != 1) {
            CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE, "--pareto: %d latencies, expected one of them",
                              d.latency_count));
        }
        CRD_TRY(make_front(&d, &f));
        put_front(&d, &f, out);
        CRD_TRY(draw_front(&d, &f));
        goto fail; // all is done
    }
    CRD_TRY(make_all(&d));
    if (d.o->loop) { CRD_TRY(find_margins(&d)); }
    put_designs(&d, out);
    if (d.o->commands.count > 0) { CRD_TRY(put_with_commands(&d, out)); }
    if (d.o->output) { CRD_TRY(write_element(&d, out)); }
fail:
    for (int i = 0; i < d.count; i++) {
        crd_linear_clear(cli->ctx, &d.designs[i].linear);
    }
    crdi_commands_clear(&d.commands);
    crdi_recorded_clear(&d.recorded);
    crd_arena_clear(&d.arena);
    return st;
}

static const crdi_option rows[] = {
    OPT_TEXT(design_options, latency, "latency", "K",
             "latency in macro steps (6), several for a table over k (4..9 or 0,1,3), or a time"),
    OPT_LIST(design_options, commands, "command", "NAME",
             "a signal of the recording that is a command to what the signal comes from: what an "
             "element that knows it would reach stands below the designs"),
    OPT_TIME(design_options, command_delay, "command-delay", CRDI_NOT_NEGATIVE,
             "the commands were recorded when they were sent and act so much later; 0 unless "
             "given"),
    OPT_CHOICE(
        design_options, method, "method", methods,
        "moment: flat at low frequencies; wiener: least squares over the bands; optimal: the "
        "objective of Baumann 2024; bounded: least squares with a roll-off that holds; all of "
        "them unless given"),
    OPT_TEXT(
        design_options, band, "band", "LOW..HIGH",
        "frequencies without phase error, in rad/s or with Hz; from the recording unless given"),
    OPT_TEXT(design_options, magnitude_band, "magnitude-band", "LOW..HIGH",
             "frequencies that shall not be amplified; --band unless given"),
    OPT_INT(design_options, taps, "taps", "M", "past samples that are used; 9 unless given"),
    OPT_INT(design_options, degree, "degree", "N",
            "moment and savitzky-golay: exact up to this degree; 2 unless given"),
    OPT_NUMBER(design_options, noise, "noise", "PART", CRDI_POSITIVE,
               "power of the noise over that of the signal; from the recording, else 1e-4"),
    OPT_NUMBER(
        design_options, roll_off, "roll-off", "R", CRDI_POSITIVE,
        "relative degree of the loop: above the band the gain may rise with its half; 2 unless "
        "given"),
    OPT_NUMBER(design_options, margin, "margin", "PART", CRDI_POSITIVE,
               "bounded: amplification that is allowed in the magnitude band; 0.03 unless given"),
    OPT_NUMBER(design_options, alpha, "alpha", "W", CRDI_NOT_NEGATIVE,
               "optimal: weight of the magnitude in J = alpha J_m + beta J_p + gamma J_r + delta "
               "|a|^2; 1 unless given"),
    OPT_NUMBER(design_options, beta, "beta", "W", CRDI_NOT_NEGATIVE,
               "optimal: weight of the phase, per degree; 0.01 unless given"),
    OPT_NUMBER(design_options, gamma, "gamma", "W", CRDI_NOT_NEGATIVE,
               "optimal: weight of what is amplified above the roll-off; 1000 unless given"),
    OPT_NUMBER(design_options, delta, "delta", "W", CRDI_NOT_NEGATIVE,
               "optimal: weight of the noise, by the sum of the squared weights; 0 unless given"),
    OPT_FLAG(design_options, constant, "constant",
             "wiener, from a recording: yhat = a y + b about the mean of the signal instead of "
             "sum a = 1; constants elsewhere are distorted"),
    OPT_FLAG(design_options, pareto, "pareto",
             "optimal designs for many weights around the given ones: those that no other beats in "
             "magnitude, phase and noise"),
    OPT_FILE(design_options, plot, "plot", CRDI_PICTURE_ENDINGS,
             "with --pareto: picture of the front" CRDI_PICTURE_HELP),
    OPT_FILE(design_options, csv, "csv", "csv", "with --pareto: the front as a table"),
    OPT_FILE(design_options, loop, "loop", "yaml|json",
             "loop or system in which the element will work (see cardan coupling analyze): margins "
             "are shown"),
    CRDI_RECORDED_OPTIONS(design_options),
    OPT_FILE(design_options, output, "output", "yaml|json", "element description to write",
             .short_name = 'o'),
    OPT_TEXT(design_options, name, "name", "NAME",
             "of the element; that of the signal unless given"),
    CRDI_ISOLATE_OPTION,
    CRDI_JSON_OPTION(
        "print {step, taps, phase_band, magnitude_band, noise, designs: [{method, k, J, "
        "J_m, J_p, J_r, norm, peak, a, b, ...}], with_commands: [{k, C, C_zoh, commands}]}, with "
        "--pareto {alpha, pareto: [{beta, gamma, "
        "delta, "
        "...}]}"),
    CRDI_QUIET_OPTION,
    CRDI_COMMON_OPTIONS,
};

static const design_options defaults = {.common = CRDI_COMMON_DEFAULTS,
                                        .step = NAN,
                                        .from = NAN,
                                        .to = NAN,
                                        .noise = NAN,
                                        .alpha = NAN,
                                        .beta = NAN,
                                        .gamma = NAN,
                                        .margin = 0.03,
                                        .roll_off = 2,
                                        .method = ALL,
                                        .taps = -1,
                                        .degree = -1};

const crdi_command crdi_command_design = {
    .name = "coupling design",
    .arguments = "[RECORDING]",
    .summary = "make a coupling algorithm for a bandwidth or a recording",
    .description =
        "Works out the weights of linear coupling algorithms for a signal that arrives k "
        "macro steps late: from the band in which it lives, or from a recording of it, "
        "whose spectrum then says where it lives and how noisy it is. Shows what each "
        "method reaches, and writes one of them as an element description.",
    .examples =
        {{"cardan coupling design --band 0.1..10 --magnitude-band 0.1..55 --step 10ms --latency 6",
          "all methods for a torque with a bandwidth of 10 rad/s"},
         {"cardan coupling design bench.mf4 --signal torque --latency 4..9 --method wiener --taps "
          "25 "
          "-o torque.yaml",
          "a table over k from a recording"}},
    OPTIONS(rows, design_options),
    .max_arguments = 1,
    .extensions = "csv|mf4|mat",
    .defaults = &defaults,
    .run = run_design,
};
