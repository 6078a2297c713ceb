// cardan link design: from a measured link and a recorded signal to an element, in one go.
#include "cardan/coupling.h"
#include "cli/design.h"
#include "cli/export/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct link_options {
    crdi_common common;
    const char *signal, *latency, *link, *link_signal, *output, *fmu, *loop;
    double step, from, to, jitter, loss;
    int fmi, taps; // -1: not given
} link_options;

static const char* const versions[] = {"2", "3", NULL};
enum { CANDIDATES = 9, EMULATED = 10000, SAMPLES_LEAST = 20 };
static const double unseen = 0.4; // part of the recording that designs are judged by

// What the link does to samples: a delay each, NaN for those that it loses.
typedef struct link {
    double* delays; // s
    int64_t count;
    double mean, low, high; // s; 0.1 % are beyond `high`
    int64_t lost;
    int k_low, k_high, k_most; // macro steps; with the samples that are lost now and then
} link;

typedef struct candidate {
    const char* name;
    crd_coupling_options options;
    crdi_designed designs[CRDI_LATENCIES_MAX]; // of a designed one
    int design_count;
    crd_metrics metrics;
    crdi_margins margins; // of a linear one, if a loop is given
} candidate;

typedef struct worker {
    crdi_cli* cli;
    const link_options* o;
    const char* path; // of the recording
    crd_arena arena;
    crdi_recorded recorded;
    link link;
    candidate candidates[CANDIDATES];
    int count, best;
    int only; // the only one whose weights are wanted, -1: all
} worker;

// ---- the link ----------------------------------------------------------------------------------

static int by_size(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static double next_uniform(uint64_t* x)
{
    *x += 0x9e3779b97f4a7c15u; // splitmix64
    uint64_t z = *x;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// A file with the latency of each packet, lost ones missing or NaN.
static crd_status measured_link(worker* w)
{
    const crdi_recorded_options o = {w->o->link_signal, NAN, NAN, NAN};
    crdi_recorded r;
    crd_status st = crdi_recorded_load(w->cli->ctx, w->o->link, &o, &r);
    if (st < 0) { return st; }
    double factor = 1;
    crd_dimension unit, time;
    (void)crd_dimension_parse("s", &time);
    if (r.unit[0] && (!crd_dimension_parse(r.unit, &unit) || !crd_dimension_equal(&unit, &time))) {
        st = crdi_fail(w->cli->ctx, CRD_E_RANGE,
                       "%s: '%s' is in '%s', expected a latency in s or ms", w->o->link, r.name,
                       r.unit);
    } else if (r.unit[0]) {
        factor = unit.factor;
    }
    w->link.delays = st < 0 ? NULL : crdi_arena_new(&w->arena, (size_t)r.count, sizeof(double));
    if (st >= 0 && !w->link.delays) { st = CRD_E_MEMORY; }
    for (int64_t i = 0; st >= 0 && i < r.count; i++) {
        const double delay = factor * r.y[i];
        if (delay < 0) {
            st = crdi_fail(w->cli->ctx, CRD_E_RANGE, "%s: '%s' is %g s at %g s, expected >= 0",
                           w->o->link, r.name, delay, r.start + (double)i * r.step);
        }
        w->link.delays[i] = delay;
    }
    w->link.count = r.count;
    crdi_recorded_clear(&r);
    return st;
}

static crd_status given_link(worker* w)
{
    const link_options* o = w->o;
    crd_context* ctx = w->cli->ctx;
    double delay, number;
    crd_dimension dim, time;
    bool bare;
    (void)crd_dimension_parse("s", &time);
    if (!crd_quantity_parse(o->latency, &number, &dim, &bare) || !(number >= 0) ||
        (!bare && !crd_dimension_equal(&dim, &time))) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--latency: '%s', expected macro steps (6) or a time (60 ms)", o->latency);
    }
    delay = bare ? number * w->recorded.step : number;
    const double jitter = isnan(o->jitter) ? 0 : o->jitter, loss = isnan(o->loss) ? 0 : o->loss;
    if (jitter > delay || loss >= 1) {
        return crdi_fail(
            ctx, CRD_E_RANGE,
            "a latency of %g s +- %g s with %g of the samples lost, expected less jitter "
            "than latency and a part < 1",
            delay, jitter, loss);
    }
    uint64_t seed = 1;
    w->link.delays = crdi_arena_new(&w->arena, EMULATED, sizeof(double));
    if (!w->link.delays) { return CRD_E_MEMORY; }
    w->link.count = EMULATED;
    for (int i = 0; i < EMULATED; i++) {
        const double here = delay + jitter * (2 * next_uniform(&seed) - 1);
        w->link.delays[i] = next_uniform(&seed) < loss ? NAN : here;
    }
    return CRD_OK;
}

static int latency_of(double delay, double step)
{
    return (int)ceil(delay / step - 1e-6);
}

static crd_status look_at_link(worker* w)
{
    link* l = &w->link;
    crd_context* ctx = w->cli->ctx;
    const double step = w->recorded.step;
    double* sorted = crdi_arena_new(&w->arena, (size_t)l->count, sizeof *sorted);
    if (!sorted) { return CRD_E_MEMORY; }
    int64_t n = 0;
    for (int64_t i = 0; i < l->count; i++) {
        if (isnan(l->delays[i])) { continue; }
        sorted[n++] = l->delays[i];
        l->mean += l->delays[i];
    }
    if (n == 0) { return crdi_fail(ctx, CRD_E_RANGE, "the link loses every packet"); }
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    l->lost = l->count - n;
    l->mean /= (double)n;
    l->low = sorted[0];
    l->high = sorted[(int64_t)(0.999 * (double)(n - 1))];
    const int lost = l->lost > 0 ? 2 : 0, most = CRD_LATENCY_MAX - CRDI_LATENCY_SPARE - lost;
    if (!(l->high / step - 1e-6 <= most)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "a latency of %g s is more than %d macro steps of %g s: too much to be "
                         "compensated",
                         l->high, most, step);
    }
    l->k_low = latency_of(l->low, step);
    l->k_most = latency_of(sorted[n / 2], step);
    l->k_high = latency_of(l->high, step) + lost;
    return CRD_OK;
}

// ---- candidates --------------------------------------------------------------------------------

static candidate* add(worker* w, const char* name)
{
    candidate* c = &w->candidates[w->count++];
    *c = (candidate){.name = name, .options = crd_coupling_defaults()};
    c->options.step = w->recorded.step;
    c->options.k_max = w->link.k_high + CRDI_LATENCY_SPARE;
    return c;
}

static void add_linear(worker* w, const char* name, crd_method method)
{
    candidate* c = add(w, name);
    c->options.algorithm = CRD_ALGORITHM_LINEAR;
    c->options.design = crd_design_defaults(method);
    c->options.reaction = CRD_REACT_NONE;
}

// A table of weights over the latencies of the link.
static crd_status add_design(worker* w, const char* name, const crdi_design_task* task,
                             crdi_designer by)
{
    crd_status st = CRD_OK;
    candidate* c = add(w, name);
    if (w->only >= 0 && w->only != w->count - 1) { return CRD_OK; }
    crd_linear* given = crdi_arena_new(&w->arena, CRDI_LATENCIES_MAX, sizeof *given);
    if (!given) { return CRD_E_MEMORY; }
    for (int k = w->link.k_low; k <= w->link.k_high && st >= 0; k++) {
        st = crdi_design_make(w->cli->ctx, task, by, k, &c->designs[c->design_count]);
        if (st >= 0) { given[c->design_count] = c->designs[c->design_count].linear; }
        c->design_count += st >= 0;
    }
    c->options.algorithm = CRD_ALGORITHM_GIVEN;
    c->options.reconstruction = CRD_RECONSTRUCT_HOLD;
    c->options.given = given;
    c->options.given_count = c->design_count;
    return st;
}

static void clear_designs(worker* w)
{
    for (int i = 0; i < w->count; i++) {
        for (int j = 0; j < w->candidates[i].design_count; j++) {
            crd_linear_clear(w->cli->ctx, &w->candidates[i].designs[j].linear);
        }
    }
    w->count = 0;
}

// Designs from the first `samples` of the recording.
static crd_status make_candidates(worker* w, int64_t samples)
{
    crd_status st = CRD_OK;
    crdi_recorded seen = w->recorded;
    seen.count = samples;
    crdi_design_task task = {
        .goal = crd_goal_defaults(), .degree = 2, .noise = NAN, .margin = 0.03, .recorded = &seen};
    task.goal.dT = seen.step;
    task.goal.m = w->o->taps > 0 ? w->o->taps : 9;
    clear_designs(w);
    st = crdi_design_from_recording(&w->arena, &task);
    if (st < 0) { return crdi_fail_in(w->cli->ctx, st, "%s", w->path); }
    add_linear(w, "zoh", CRD_METHOD_ZOH);
    add_linear(w, "foh", CRD_METHOD_FOH);
    add_linear(w, "eros", CRD_METHOD_EROS);
    CRD_TRY(add_design(w, "optimal", &task, CRDI_DESIGN_OPTIMAL));
    CRD_TRY(add_design(w, "bounded", &task, CRDI_DESIGN_BOUNDED));
    CRD_TRY(add_design(w, "wiener", &task, CRDI_DESIGN_WIENER));
    task.goal.m = w->o->taps > 0 ? w->o->taps : 25;
    CRD_TRY(add_design(w, "wiener, long", &task, CRDI_DESIGN_WIENER));
    candidate* ridge = add(w, "ridge");
    ridge->options.algorithm = CRD_ALGORITHM_LEARNING;
    add(w, "auto");
fail:
    return st;
}

// ---- trial -------------------------------------------------------------------------------------

// All samples of the recording through the link; estimates count from sample `first` on.
static crd_status try_one(worker* w, candidate* c, int64_t first)
{
    crd_replay_options o = crd_replay_defaults();
    o.step = w->recorded.step;
    o.delays = w->link.delays;
    o.delay_count = w->link.count;
    o.first = first;
    const crd_element e = {.ctx = w->cli->ctx,
                           .label = c->name,
                           .step = NAN,
                           .latency = NAN,
                           .latency_steps = -1,
                           .options = c->options};
    crd_replay r;
    const crd_status st =
        crd_coupling_replay(w->cli->ctx, &e, &o, w->recorded.y, w->recorded.count, NULL, &r);
    if (st < 0) { return crdi_fail_in(w->cli->ctx, st, "%s", c->name); }
    c->metrics = crd_score_metrics(&r.score);
    return CRD_OK;
}

static crd_status try_all(worker* w, int64_t first)
{
    crd_status st = CRD_OK;
    const int64_t begin = crdi_now_ns();
    for (int i = 0; i < w->count && st >= 0; i++) {
        crdi_show_progress(w->cli, begin, i, w->count, "algorithms");
        st = try_one(w, &w->candidates[i], first);
    }
    crdi_show_progress(w->cli, begin, -1, 0, "");
    return st;
}

// The worst over all latencies that the link has: each of them may last.
static crd_status margins_of(worker* w, const char* element, crdi_margins* worst)
{
    crd_status st = CRD_OK;
    for (int k = w->link.k_low; k <= w->link.k_high && st >= 0; k++) {
        crdi_margins m = {0};
        st = crdi_design_margins(w->cli->ctx, w->o->loop, element, k, &m);
        if (st < 0) { break; }
        const bool worse = !worst->known || (worst->stable && !m.stable) ||
                           (worst->stable == m.stable && m.phase < worst->phase);
        if (worse) { *worst = m; }
    }
    return st;
}

// Margins of what is linear. What learns has none: nobody can promise them beforehand.
static crd_status find_margins(worker* w)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < w->count && st >= 0; i++) {
        candidate* c = &w->candidates[i];
        crd_text text;
        crd_text_init(&text, w->cli->ctx);
        if (c->design_count > 0) {
            st =
                crdi_design_describe(c->name, w->recorded.step, c->designs, c->design_count, &text);
        }
        if (st >= 0 && (text.data || c->options.algorithm == CRD_ALGORITHM_LINEAR)) {
            st = margins_of(w, text.data ? text.data : c->name, &c->margins);
        }
        crd_text_clear(&text);
    }
    return st;
}

// The smallest error; in a loop, of those that keep it stable.
static crd_status choose(worker* w)
{
    w->best = -1;
    for (int i = 0; i < w->count; i++) {
        const candidate* c = &w->candidates[i];
        if (w->o->loop && !(c->margins.known && c->margins.stable)) { continue; }
        if (w->best < 0 || c->metrics.C < w->candidates[w->best].metrics.C) { w->best = i; }
    }
    return w->best >= 0
               ? CRD_OK
               : crdi_fail(w->cli->ctx, CRD_E_LIMIT,
                           "%s: no linear algorithm keeps this loop stable at k = %d .. %d",
                           w->o->loop, w->link.k_low, w->link.k_high);
}

// ---- what comes out ----------------------------------------------------------------------------

static void print_report(const worker* w)
{
    const link* l = &w->link;
    const crdi_recorded* r = &w->recorded;
    printf("link: %lld packets, latency %.4g ms (%.4g .. %.4g), %.2g %% lost: k = %d, up to %d\n",
           (long long)l->count, 1e3 * l->mean, 1e3 * l->low, 1e3 * l->high,
           100 * (double)l->lost / (double)l->count, l->k_most, l->k_high);
    printf("signal: %s, %lld samples, macro step %g s; judged by the last %.0f %% of them\n\n",
           r->name, (long long)r->count, r->step, 100 * unseen);
    crdi_grid g;
    crdi_grid_init(&g, w->cli->ctx, 7, 0x7e);
    const char* const heads[] = {"algorithm", "100 C", "against ZOH",  "100 M",
                                 "100 P",     "RMS",   "largest error"};
    for (int i = 0; i < 7; i++) {
        crdi_grid_add(&g, "%s", heads[i]);
    }
    for (int i = 0; i < w->count; i++) {
        const candidate* c = &w->candidates[i];
        crdi_grid_add(&g, "%s%s", c->name, i == w->best ? " *" : "");
        crdi_grid_add_fixed(&g, 100 * c->metrics.C, 4, "");
        crdi_grid_add_fixed(&g, 100 * (c->metrics.C / w->candidates[0].metrics.C - 1), 1, " %");
        crdi_grid_add_fixed(&g, 100 * c->metrics.M, 4, "");
        crdi_grid_add_fixed(&g, 100 * c->metrics.P, 4, "");
        crdi_grid_add(&g, "%.4g", c->metrics.rms);
        crdi_grid_add(&g, "%.4g", c->metrics.worst);
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
}

static void print_margins(const worker* w)
{
    crdi_grid g;
    crdi_grid_init(&g, w->cli->ctx, 5, 0x1c);
    const char* const heads[] = {"algorithm", "loop", "phase margin", "delay margin",
                                 "min |1 + L|"};
    for (int i = 0; i < 5; i++) {
        crdi_grid_add(&g, "%s", heads[i]);
    }
    for (int i = 0; i < w->count; i++) {
        const candidate* c = &w->candidates[i];
        const crdi_margins* m = &c->margins;
        char delay[32];
        crdi_grid_add(&g, "%s%s", c->name, i == w->best ? " *" : "");
        crdi_grid_add(&g, "%s", !m->known ? "not linear" : m->stable ? "stable" : "UNSTABLE");
        crdi_grid_add(&g, !m->known || isnan(m->phase) ? "-" : "%.4g deg", m->phase);
        crdi_grid_add(&g, "%s",
                      m->known && isfinite(m->delay) ? crdi_format_seconds(delay, m->delay) : "-");
        crdi_grid_add(&g, m->known ? "%.4g" : "-", m->nearest);
    }
    printf("\n%s, the worst of k = %d .. %d\n", w->o->loop, w->link.k_low, w->link.k_high);
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
}

static crd_status print_json(const worker* w)
{
    const link* l = &w->link;
    json_t* list = json_array();
    for (int i = 0; i < w->count; i++) {
        const candidate* c = &w->candidates[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "algorithm",
                                        c->name, "C", crdi_json_number(100 * c->metrics.C), "M",
                                        crdi_json_number(100 * c->metrics.M), "P",
                                        crdi_json_number(100 * c->metrics.P), "rms",
                                        crdi_json_number(c->metrics.rms), "worst",
                                        crdi_json_number(c->metrics.worst), "margins",
                                        crdi_margins_json(&c->margins), "chosen", i == w->best));
    }
    return crdi_json_print(
        w->cli, json_pack("{s:{s:I, s:I, s:o, s:o, s:o, s:i, s:i}, s:s, s:o, s:o}", "link",
                          "packets", (json_int_t)l->count, "lost", (json_int_t)l->lost, "mean",
                          crdi_json_number(l->mean), "low", crdi_json_number(l->low), "high",
                          crdi_json_number(l->high), "k", l->k_most, "k_max", l->k_high, "signal",
                          w->recorded.name, "step", crdi_json_number(w->recorded.step),
                          "candidates", list));
}

// The best one as a description: a designed one with its weights, the others by their names.
static crd_status describe_best(worker* w, crd_text* out)
{
    const candidate* c = &w->candidates[w->best];
    if (c->design_count > 0) {
        return crdi_design_describe(w->recorded.name, w->recorded.step, c->designs, c->design_count,
                                    out);
    }
    crdi_text_add(out, "{\n  \"element\": 1,\n  \"name\": ");
    crdi_text_json(out, w->recorded.name);
    crdi_text_add(out, ",\n  \"step\": ");
    crdi_text_json_number(out, w->recorded.step);
    crdi_text_add(out, ",\n  \"algorithm\": \"%s\",\n  \"latency-max\": %d\n}\n", c->name,
                  c->options.k_max);
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}

static crd_status write_files(worker* w)
{
    const link_options* o = w->o;
    crd_context* ctx = w->cli->ctx;
    crd_status st = CRD_OK;
    crd_element* e = NULL;
    crd_text text;
    crd_text_init(&text, ctx);
    CRD_TRY(describe_best(w, &text));
    CRD_TRY(
        crd_element_parse(ctx, text.data, text.length, o->output ? o->output : "element", 1, &e));
    if (o->output) {
        CRD_TRY(crdi_file_write(ctx, o->output, &text));
        if (!o->common.json) { printf("\n%s: %s", o->output, w->candidates[w->best].name); }
    }
    if (o->fmu) {
        CRD_TRY(
            crdi_write_coupling_fmu(ctx, e, o->fmi + 2, o->output ? o->output : "element", o->fmu));
        if (!o->common.json) { printf("\n%s: FMI %d.0", o->fmu, o->fmi + 2); }
    }
    if (!o->common.json && (o->output || o->fmu)) { printf("\n"); }
fail:
    crd_element_destroy(e);
    crd_text_clear(&text);
    return st;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status check_words(crdi_cli* cli, const link_options* o, const crdi_list* arguments)
{
    crd_context* ctx = cli->ctx;
    if (strcmp(arguments->items[0], "design") != 0) {
        return crdi_fail(ctx, CRD_E_RANGE, "'%s', expected cardan link design",
                         arguments->items[0]);
    }
    if (arguments->count < 2) {
        return crdi_fail(ctx, CRD_E_RANGE, "expected a recording: cardan link design RECORDING");
    }
    if (!o->latency == !o->link) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "expected either --latency, or --link with a recording of latencies");
    }
    if (o->link && (!isnan(o->jitter) || !isnan(o->loss))) {
        return crdi_fail(
            ctx, CRD_E_RANGE,
            "--jitter and --loss go with --latency, the recording of --link has its own");
    }
    return CRD_OK;
}

static crd_status check_outputs(const worker* w)
{
    const char *const written[] = {w->o->output, w->o->fmu}, *const read[] = {w->path, w->o->link};
    crd_status st = CRD_OK;
    for (int i = 0; i < 4; i++) {
        if (!written[i / 2] || !read[i % 2]) { continue; }
        CRD_TRY(crdi_check_output(w->cli->ctx, written[i / 2], read[i % 2]));
    }
fail:
    return st;
}

static crd_status run_link(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    (void)out;
    worker* w = crdi_new(cli->ctx, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    *w = (worker){.cli = cli, .o = options, .only = -1};
    const link_options* o = options;
    crd_status st = CRD_OK;
    crd_arena_init(&w->arena, cli->ctx);
    CRD_TRY(check_words(cli, o, arguments));
    const crdi_recorded_options r = {o->signal, o->step, o->from, o->to};
    w->path = arguments->items[1];
    CRD_TRY(check_outputs(w));
    CRD_TRY(crdi_recorded_load(cli->ctx, w->path, &r, &w->recorded));
    CRD_TRY(crdi_recorded_without_gaps(&w->recorded, w->path));
    if (w->recorded.count < SAMPLES_LEAST) {
        CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE, "%s: %lld samples, expected at least %d", w->path,
                          (long long)w->recorded.count, SAMPLES_LEAST));
    }
    CRD_TRY(o->link ? measured_link(w) : given_link(w));
    CRD_TRY(look_at_link(w));
    // Judged by what the designs have not seen; the one that is written has seen everything, unless
    // a loop depends on it.
    const int64_t first = (int64_t)((1 - unseen) * (double)w->recorded.count);
    CRD_TRY(make_candidates(w, first));
    CRD_TRY(try_all(w, first));
    if (o->loop) { CRD_TRY(find_margins(w)); }
    CRD_TRY(choose(w));
    if (o->common.json) {
        CRD_TRY(print_json(w));
    } else {
        print_report(w);
        if (o->loop) { print_margins(w); }
    }
    if (!o->loop) { // else the margins would be those of another element
        w->only = w->best;
        CRD_TRY(make_candidates(w, w->recorded.count));
    }
    CRD_TRY(write_files(w));
    CRD_TRY(crdi_stdout_done(cli->ctx));
fail:
    clear_designs(w);
    crdi_recorded_clear(&w->recorded);
    crd_arena_clear(&w->arena);
    crd_free(cli->ctx, w);
    return st;
}

static const crdi_option rows[] = {
    OPT_TEXT(link_options, latency, "latency", "K|TIME",
             "latency of the link in macro steps (6) or as a time (57.5 ms)"),
    OPT_TIME(link_options, jitter, "jitter", CRDI_NOT_NEGATIVE,
             "the latency is this much shorter or longer at most"),
    OPT_NUMBER(link_options, loss, "loss", "PART", CRDI_NOT_NEGATIVE,
               "part of the samples that are lost"),
    OPT_FILE(link_options, link, "link", "csv|mf4|mat",
             "recording with the measured latency of each packet"),
    OPT_TEXT(link_options, link_signal, "link-signal", "NAME", "its signal, in s or in its unit"),
    CRDI_RECORDED_OPTIONS(link_options),
    OPT_FILE(
        link_options, loop, "loop", "yaml|json",
        "loop or system in which the element will work (see cardan analyze): only an algorithm "
        "that keeps it stable is chosen"),
    OPT_INT(link_options, taps, "taps", "M",
            "past samples that designs use; 9, and 25 for the long one, unless given"),
    OPT_FILE(link_options, output, "output", "yaml|json", "element description to write",
             .short_name = 'o'),
    OPT_FILE(link_options, fmu, "fmu", "fmu", "coupling FMU to write"),
    OPT_CHOICE(link_options, fmi, "fmi", versions, "version of the FMU; 2 unless given"),
    CRDI_JSON_OPTION(
        "print {link, signal, step, candidates: [{algorithm, C, M, P, rms, worst, chosen}]}"),
    CRDI_COMMON_OPTIONS,
};

static const link_options defaults = {.common = CRDI_COMMON_DEFAULTS,
                                      .step = NAN,
                                      .from = NAN,
                                      .to = NAN,
                                      .jitter = NAN,
                                      .loss = NAN,
                                      .taps = -1};
static const char* const words[] = {"design", NULL};

const crdi_command crdi_command_link = {
    .name = "link",
    .arguments = "design RECORDING",
    .summary = "from a link and a recording to a coupling element",
    .description = "link design tries the coupling algorithms on a recorded signal behind a link "
                   "that was measured, or is given by its latency, jitter and loss. Algorithms are "
                   "designed for the spectrum of the first part of the recording and judged by the "
                   "rest. The best one is designed anew for all of it, unless a loop depends on "
                   "it, and written as an element description and as an FMU.",
    .examples =
        {{"cardan link design bench.mf4 --signal torque --latency 57.5ms --jitter 0.5ms -o "
          "torque.yaml --fmu torque.fmu",
          "for a link of 57.5 ms"},
         {"cardan link design bench.mf4 --signal torque --link ping.csv --link-signal latency",
          "for a measured link"}},
    OPTIONS(rows, link_options),
    .min_arguments = 1,
    .max_arguments = 2,
    .words = words,
    .extensions = "csv|mf4|mat",
    .defaults = &defaults,
    .run = run_link,
};
