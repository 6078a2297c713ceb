// cardan design: the coupling algorithm for a bandwidth, or for a recording.
#include "cli/design.h"

#include <math.h>

typedef struct design_options {
    crdi_common common;
    const char *signal, *latency, *band, *magnitude_band, *output, *name, *loop;
    double step, from, to, noise, margin, roll_off;
    int method, taps, degree; // -1: not given
} design_options;

enum { ALL = CRDI_DESIGNERS, TAPS = 9, DEGREE = 2 };
static const char* const methods[] = {
    "moment", "savitzky-golay", "wiener", "optimal", "bounded", "all", NULL};

typedef struct designer {
    crdi_cli* cli;
    const design_options* o;
    const char* path; // of the recording
    crd_arena arena;
    crdi_recorded recorded;
    crdi_design_task task;
    int latencies[CRDI_LATENCIES_MAX], latency_count;
    crdi_designed* designs; // by method, then by k
    int count;
} designer;

// ---- what is asked for -------------------------------------------------------------------------

static crd_status read_task(designer* d, const crdi_list* arguments)
{
    const design_options* o = d->o;
    crd_context* ctx = d->cli->ctx;
    crdi_design_task* t = &d->task;
    crd_status st = CRD_OK;
    *t = (crdi_design_task){.goal = crd_goal_defaults(),
                            .degree = o->degree < 0 ? DEGREE : o->degree,
                            .noise = o->noise,
                            .margin = o->margin};
    t->goal.m = o->taps < 0 ? TAPS : o->taps;
    t->goal.v = o->roll_off / 2;
    if (o->band) { CRD_TRY(crdi_parse_interval(ctx, "--band", o->band, &t->goal.phase)); }
    if (o->magnitude_band) {
        CRD_TRY(
            crdi_parse_interval(ctx, "--magnitude-band", o->magnitude_band, &t->goal.magnitude));
    }
    t->goal.dT = o->step;
    if (arguments->count > 0) {
        const crdi_recorded_options r = {o->signal, o->step, o->from, o->to};
        d->path = arguments->items[0];
        CRD_TRY(crdi_recorded_load(ctx, arguments->items[0], &r, &d->recorded));
        CRD_TRY(crdi_recorded_without_gaps(&d->recorded, arguments->items[0]));
        t->recorded = &d->recorded;
        t->goal.dT = d->recorded.step;
    } else if (!o->band || isnan(o->step)) {
        return crdi_fail(ctx, CRD_E_RANGE, "expected --band and --step, or a recording");
    }
    CRD_TRY(crdi_parse_latencies(ctx, o->latency, t->goal.dT, d->latencies, &d->latency_count));
fail:
    return st;
}

// Where the signal lives: from the recording, or the band and what lies behind it.
static crd_status find_bands(designer* d)
{
    crdi_design_task* t = &d->task;
    if (t->recorded) {
        const crd_status st = crdi_design_from_recording(&d->arena, t);
        return st < 0 ? crdi_fail_in(d->cli->ctx, st, "%s", d->path) : st;
    }
    const double dT = t->goal.dT;
    if (!(t->goal.magnitude.hi > 0)) { t->goal.magnitude = t->goal.phase; }
    if (isnan(t->noise)) { t->noise = 1e-4; }
    t->bands = crdi_arena_new(&d->arena, 2, sizeof *t->bands);
    if (!t->bands) { return CRD_E_MEMORY; }
    t->bands[t->band_count++] = (crd_band){0, t->goal.phase.hi * dT, 1};
    if (t->goal.magnitude.hi > t->goal.phase.hi) { // oscillations that shall not be amplified
        t->bands[t->band_count++] =
            (crd_band){t->goal.phase.hi * dT, t->goal.magnitude.hi * dT, 0.03};
    }
    return CRD_OK;
}

static crd_status make_all(designer* d)
{
    const int first = d->o->method == ALL ? 0 : d->o->method;
    const int last = d->o->method == ALL ? CRDI_DESIGNERS - 1 : d->o->method;
    const int most = (last - first + 1) * d->latency_count;
    d->designs = crdi_arena_new(&d->arena, (size_t)most, sizeof *d->designs);
    if (!d->designs) { return CRD_E_MEMORY; }
    crd_status st = CRD_OK;
    const int64_t begin = crdi_now_ns();
    for (int by = first; by <= last && st >= 0; by++) {
        for (int i = 0; i < d->latency_count && st >= 0; i++) {
            crdi_show_progress(d->cli, begin, d->count, most, "designs");
            st = crdi_design_make(d->cli->ctx, &d->task, (crdi_designer)by, d->latencies[i],
                                  &d->designs[d->count]);
            d->count += st >= 0;
        }
    }
    crdi_show_progress(d->cli, begin, -1, 0, "");
    return st;
}

static crd_status find_margins(designer* d)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < d->count && st >= 0; i++) {
        crdi_designed* e = &d->designs[i];
        crd_text text;
        crd_text_init(&text, d->cli->ctx);
        st = crdi_design_describe("design", d->task.goal.dT, e, 1, &text);
        if (st >= 0) {
            st = crdi_design_margins(d->cli->ctx, d->o->loop, text.data, e->linear.k, &e->margins);
        }
        crd_text_clear(&text);
    }
    return st;
}

// ---- what comes out ----------------------------------------------------------------------------

static void print_margins(const designer* d)
{
    crdi_grid grid;
    crdi_grid_init(&grid, d->cli->ctx, 6, 0x3a);
    const char* const heads[] = {"method",       "k",          "loop", "phase margin",
                                 "delay margin", "min |1 + L|"};
    for (int i = 0; i < 6; i++) {
        crdi_grid_add(&grid, "%s", heads[i]);
    }
    for (int i = 0; i < d->count; i++) {
        const crdi_margins* m = &d->designs[i].margins;
        char delay[32];
        crdi_grid_add(&grid, "%s", crdi_designer_names[d->designs[i].by]);
        crdi_grid_add(&grid, "%d", d->designs[i].linear.k);
        crdi_grid_add(&grid, "%s", m->stable ? "stable" : "UNSTABLE");
        crdi_grid_add(&grid, isnan(m->phase) ? "-" : "%.4g deg", m->phase);
        crdi_grid_add(&grid, "%s", isfinite(m->delay) ? crdi_format_seconds(delay, m->delay) : "-");
        crdi_grid_add(&grid, "%.4g", m->nearest);
    }
    printf("\n");
    crdi_grid_print(&grid, stdout, "");
    crdi_grid_clear(&grid);
}

static void print_table(const designer* d)
{
    const crd_goal* g = &d->task.goal;
    const bool recorded = d->task.recorded != NULL;
    printf(
        "macro step %g s, %d taps; phase wanted on %.4g .. %.4g rad/s, magnitude on %.4g .. %.4g "
        "rad/s, noise %.3g\n\n",
        g->dT, g->m, g->phase.lo, g->phase.hi, g->magnitude.lo, g->magnitude.hi, d->task.noise);
    crdi_grid grid;
    crdi_grid_init(&grid, d->cli->ctx, recorded ? 11 : 9, 0x7fe);
    const char* const heads[] = {"method",     "k",     "J",          "J_m",
                                 "J_p [deg]",  "J_r",   "norm",       "gain at most",
                                 "at [rad/s]", "100 C", "against ZOH"};
    for (int i = 0; i < (recorded ? 11 : 9); i++) {
        crdi_grid_add(&grid, "%s", heads[i]);
    }
    for (int i = 0; i < d->count; i++) {
        const crdi_designed* e = &d->designs[i];
        const crd_quality* q = &e->quality;
        crdi_grid_add(&grid, "%s", crdi_designer_names[e->by]);
        crdi_grid_add(&grid, "%d", e->linear.k);
        crdi_grid_add(&grid, "%.6g", q->J);
        crdi_grid_add(&grid, "%.4g", q->J_m);
        crdi_grid_add(&grid, "%.4g", q->J_p_deg);
        crdi_grid_add(&grid, "%.4g", q->J_r_low + q->J_r_high);
        crdi_grid_add(&grid, "%.4g", q->norm);
        crdi_grid_add(&grid, "%.4g", q->peak_gain);
        crdi_grid_add(&grid, "%.4g", q->peak_omega);
        if (recorded) {
            crdi_grid_add_fixed(&grid, 100 * e->metrics.C, 4, "");
            crdi_grid_add_fixed(&grid, 100 * (e->metrics.C / e->zoh - 1), 1, " %");
        }
    }
    crdi_grid_print(&grid, stdout, "");
    crdi_grid_clear(&grid);
    if (d->o->loop) { print_margins(d); }
}

static json_t* interval_json(crd_interval i)
{
    return json_pack("[o, o]", crdi_json_number(i.lo), crdi_json_number(i.hi));
}

static json_t* designed_json(const crdi_designed* e)
{
    const crd_quality* q = &e->quality;
    json_t* a = json_array();
    for (int i = 0; i < e->linear.m; i++) {
        json_array_append_new(a, crdi_json_number(e->linear.a[i]));
    }
    json_t* o = json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o}, s:o}", "method",
                          crdi_designer_names[e->by], "k", e->linear.k, "J", crdi_json_number(q->J),
                          "J_m", crdi_json_number(q->J_m), "J_p", crdi_json_number(q->J_p_deg),
                          "J_r", crdi_json_number(q->J_r_low + q->J_r_high), "norm",
                          crdi_json_number(q->norm), "peak", "gain", crdi_json_number(q->peak_gain),
                          "omega", crdi_json_number(q->peak_omega), "a", a);
    if (e->margins.known) { json_object_set_new(o, "margins", crdi_margins_json(&e->margins)); }
    if (!isnan(e->zoh)) {
        json_object_set_new(o, "C", crdi_json_number(100 * e->metrics.C));
        json_object_set_new(o, "C_zoh", crdi_json_number(100 * e->zoh));
    }
    return o;
}

static crd_status print_json(const designer* d)
{
    json_t* list = json_array();
    for (int i = 0; i < d->count; i++) {
        json_array_append_new(list, designed_json(&d->designs[i]));
    }
    const crd_goal* g = &d->task.goal;
    return crdi_json_print(d->cli, json_pack("{s:o, s:i, s:o, s:o, s:o, s:o}", "step",
                                             crdi_json_number(g->dT), "taps", g->m, "phase_band",
                                             interval_json(g->phase), "magnitude_band",
                                             interval_json(g->magnitude), "noise",
                                             crdi_json_number(d->task.noise), "designs", list));
}

static crd_status write_element(designer* d)
{
    const design_options* o = d->o;
    crd_context* ctx = d->cli->ctx;
    crd_status st = CRD_OK;
    crd_element* check = NULL;
    crd_text text;
    crd_text_init(&text, ctx);
    const char* name = o->name ? o->name : d->task.recorded ? d->recorded.name : "element";
    CRD_TRY(crdi_design_describe(name, d->task.goal.dT, d->designs, d->count, &text));
    CRD_TRY(crd_element_parse(ctx, text.data, text.length, o->output, 1, &check));
    CRD_TRY(crdi_file_write(ctx, o->output, &text));
    if (!o->common.json) { printf("\n%s: %s\n", o->output, methods[o->method]); }
fail:
    crd_element_destroy(check);
    crd_text_clear(&text);
    return st;
}

static crd_status check_options(const designer* d, const crdi_list* arguments)
{
    const design_options* o = d->o;
    crd_context* ctx = d->cli->ctx;
    if (!o->latency) {
        return crdi_fail(ctx, CRD_E_RANGE, "expected --latency, in macro steps or as a time");
    }
    if (o->output && o->method == ALL) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--output: which of the designs? expected --method with one of them");
    }
    return o->output && arguments->count > 0
               ? crdi_check_output(ctx, o->output, arguments->items[0])
               : CRD_OK;
}

static crd_status run_design(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    (void)out;
    designer d = {.cli = cli, .o = options};
    crd_status st = CRD_OK;
    crd_arena_init(&d.arena, cli->ctx);
    CRD_TRY(check_options(&d, arguments));
    CRD_TRY(read_task(&d, arguments));
    CRD_TRY(find_bands(&d));
    CRD_TRY(make_all(&d));
    if (d.o->loop) { CRD_TRY(find_margins(&d)); }
    if (d.o->common.json) {
        CRD_TRY(print_json(&d));
    } else {
        print_table(&d);
    }
    if (d.o->output) { CRD_TRY(write_element(&d)); }
    CRD_TRY(crdi_stdout_done(cli->ctx));
fail:
    for (int i = 0; i < d.count; i++) {
        crd_linear_clear(cli->ctx, &d.designs[i].linear);
    }
    crdi_recorded_clear(&d.recorded);
    crd_arena_clear(&d.arena);
    return st;
}

static const crdi_option rows[] = {
    OPT_TEXT(design_options, latency, "latency", "K",
             "latency in macro steps (6), several for a table over k (4..9 or 0,1,3), or a time"),
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
    OPT_FILE(
        design_options, loop, "loop", "yaml|json",
        "loop or system in which the element will work (see cardan analyze): margins are shown"),
    CRDI_RECORDED_OPTIONS(design_options),
    OPT_FILE(design_options, output, "output", "yaml|json", "element description to write",
             .short_name = 'o'),
    OPT_TEXT(design_options, name, "name", "NAME",
             "of the element; that of the signal unless given"),
    CRDI_JSON_OPTION(
        "print {step, taps, phase_band, magnitude_band, noise, designs: [{method, k, J, "
        "J_m, J_p, J_r, norm, peak, a, ...}]}"),
    CRDI_COMMON_OPTIONS,
};

static const design_options defaults = {.common = CRDI_COMMON_DEFAULTS,
                                        .step = NAN,
                                        .from = NAN,
                                        .to = NAN,
                                        .noise = NAN,
                                        .margin = 0.03,
                                        .roll_off = 2,
                                        .method = ALL,
                                        .taps = -1,
                                        .degree = -1};

const crdi_command crdi_command_design = {
    .name = "design",
    .arguments = "[RECORDING]",
    .summary = "make a coupling algorithm for a bandwidth or a recording",
    .description =
        "Works out the weights of linear coupling algorithms for a signal that arrives k "
        "macro steps late: from the band in which it lives, or from a recording of it, "
        "whose spectrum then says where it lives and how noisy it is. Shows what each "
        "method reaches, and writes one of them as an element description.",
    .examples =
        {{"cardan design --band 0.1..10 --magnitude-band 0.1..55 --step 10ms --latency 6",
          "all methods for a torque with a bandwidth of 10 rad/s"},
         {"cardan design bench.mf4 --signal torque --latency 4..9 --method wiener --taps 25 "
          "-o torque.yaml",
          "a table over k from a recording"}},
    OPTIONS(rows, design_options),
    .max_arguments = 1,
    .extensions = "csv|mf4|mat",
    .defaults = &defaults,
    .run = run_design,
};
