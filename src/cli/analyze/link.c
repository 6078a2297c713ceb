// cardan coupling link design: from a measured link and a recorded signal to an element, in one go.
#include "cardan/coupling.h"
#include "cli/analyze/signals.h"
#include "cli/export/export.h"

#include <math.h>
#include <string.h>

typedef struct link_options {
    crdi_common common;
    const char *signal, *latency, *link, *link_signal, *output, *fmu, *loop;
    double step, from, to, jitter, loss;
    int fmi, taps; // -1: not given
} link_options;

static const char* const versions[] = {"2", "3", NULL};
enum { SAMPLES_LEAST = 20 };
static const double unseen = 0.4; // part of the recording that designs are judged by

typedef struct worker {
    crdi_cli* cli;
    const link_options* o;
    const char* path; // of the recording
    crd_arena arena;
    crdi_recorded recorded;
    crd_signal signal;
    crd_link link;
    crd_link_trial trial;
    int best;
} worker;

// ---- the link ----------------------------------------------------------------------------------

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
    double* delays = st < 0 ? NULL : crdi_arena_new(&w->arena, (size_t)r.count, sizeof *delays);
    if (st >= 0 && !delays) { st = CRD_E_MEMORY; }
    for (int64_t i = 0; st >= 0 && i < r.count; i++) {
        const double delay = factor * r.y[i];
        if (delay < 0) {
            st = crdi_fail(w->cli->ctx, CRD_E_RANGE, "%s: '%s' is %g s at %g s, expected >= 0",
                           w->o->link, r.name, delay, r.start + (double)i * r.step);
        }
        delays[i] = delay;
    }
    w->link = (crd_link){.delays = delays, .count = r.count};
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
    return crd_link_emulate(ctx, &w->arena, delay, isnan(o->jitter) ? 0 : o->jitter,
                            isnan(o->loss) ? 0 : o->loss, &w->link);
}

// ---- trial -------------------------------------------------------------------------------------

// Designs from the first `samples` of the recording; `only` one of them, -1: all.
static crd_status design_all(worker* w, int64_t samples, int only)
{
    const crd_status st =
        crd_link_design(w->cli->ctx, &w->link, &w->signal, samples, w->o->taps, only, &w->trial);
    return st < 0 && w->trial.count == 0 ? crdi_fail_in(w->cli->ctx, st, "%s", w->path) : st;
}

static crd_status try_all(worker* w, int64_t first)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < w->trial.count && st >= 0; i++) {
        crdi_progress(w->cli->ctx, "trying", i, w->trial.count, "algorithms");
        st = crd_link_try(&w->trial, &w->link, &w->signal, first, i);
    }
    crdi_progress_end(w->cli->ctx);
    return st;
}

// The worst over all latencies that the link has: each of them may last.
static crd_status margins_of(worker* w, const char* element, crd_margins* worst)
{
    for (int k = w->link.k_low; k <= w->link.k_high; k++) {
        crd_margins m = {0};
        const crd_status st = crdi_loop_margins(w->cli->ctx, w->o->loop, element, k, &m);
        if (st < 0) { return st; }
        const bool worse = !worst->known || (worst->stable && !m.stable) ||
                           (worst->stable == m.stable && m.phase < worst->phase);
        if (worse) { *worst = m; }
    }
    return CRD_OK;
}

// Margins of what is linear. What learns has none: nobody can promise them beforehand.
static crd_status find_margins(worker* w)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < w->trial.count && st >= 0; i++) {
        crd_link_candidate* c = &w->trial.candidates[i];
        crd_text text;
        crd_text_init(&text, w->cli->ctx);
        if (c->design_count > 0) {
            st = crd_design_describe(c->name, w->signal.step, c->designs, c->design_count, &text);
        }
        if (st >= 0 && (text.data || c->options.algorithm == CRD_ALGORITHM_LINEAR)) {
            st = margins_of(w, text.data ? text.data : c->name, &c->margins);
        }
        crd_text_clear(&text);
    }
    return st;
}

// The smallest error; in a loop, of those that keep it stable.
static crd_status choose_candidate(worker* w)
{
    w->best = -1;
    for (int i = 0; i < w->trial.count; i++) {
        const crd_link_candidate* c = &w->trial.candidates[i];
        if (w->o->loop && !(c->margins.known && c->margins.stable)) { continue; }
        if (w->best < 0 || c->metrics.C < w->trial.candidates[w->best].metrics.C) { w->best = i; }
    }
    return w->best >= 0
               ? CRD_OK
               : crdi_fail(w->cli->ctx, CRD_E_LIMIT,
                           "%s: no linear algorithm keeps this loop stable at k = %d .. %d",
                           w->o->loop, w->link.k_low, w->link.k_high);
}

// ---- what comes out ----------------------------------------------------------------------------

static void put_candidates(const worker* w, crdi_result* out)
{
    static const crdi_column errors[] = {{"algorithm", "shown", ""},
                                         {">100 C", "C", "%.4f"},
                                         {">against ZOH", "change", ""},
                                         {">100 M", "M", "%.4f"},
                                         {">100 P", "P", "%.4f"},
                                         {">RMS", "rms", "%.4g"},
                                         {">largest error", "worst", "%.4g"},
                                         {0}};
    static const crdi_column margins[] = {
        {"algorithm", "shown", ""},      {"loop", "loop", ""},
        {">phase margin", "phase", ""},  {">delay margin", "delay", ""},
        {">min |1 + L|", "nearest", ""}, {0}};
    crdi_result* list = crdi_array(out, "candidates");
    for (int i = 0; i < w->trial.count; i++) {
        const crd_link_candidate* c = &w->trial.candidates[i];
        crdi_result* row = crdi_row(list);
        crdi_put(row, TEXT("algorithm", c->name), REAL("C", 100 * c->metrics.C),
                 REAL("M", 100 * c->metrics.M), REAL("P", 100 * c->metrics.P),
                 REAL("rms", c->metrics.rms), REAL("worst", c->metrics.worst));
        crdi_put_margins(row, &c->margins);
        crdi_put(
            row, BOOL("chosen", i == w->best),
            CELL("shown", crdi_worded(row, "%s%s", c->name, i == w->best ? " *" : "")),
            CELL("change", crdi_percent(row, c->metrics.C / w->trial.candidates[0].metrics.C - 1)));
    }
    crdi_show_table(out, list, errors, "");
    if (!w->o->loop) { return; }
    crdi_say(out, "\n%s, the worst of k = %d .. %d\n", w->o->loop, w->link.k_low, w->link.k_high);
    crdi_show_table(out, list, margins, "");
}

static void link_put_report(const worker* w, crdi_result* out)
{
    const crd_link* l = &w->link;
    const crd_signal* s = &w->signal;
    crdi_say(out,
             "link: %lld packets, latency %.4g ms (%.4g .. %.4g), %.2g %% lost: k = %d, up to %d\n",
             (long long)l->count, 1e3 * l->mean, 1e3 * l->low, 1e3 * l->high,
             100 * (double)l->lost / (double)l->count, l->k_most, l->k_high);
    crdi_say(out,
             "signal: %s, %lld samples, macro step %g s; judged by the last %.0f %% of them\n\n",
             s->name, (long long)s->count, s->step, 100 * unseen);
    crdi_put(crdi_object(out, "link"), INT("packets", l->count), INT("lost", l->lost),
             REAL("mean", l->mean), REAL("low", l->low), REAL("high", l->high), INT("k", l->k_most),
             INT("k_max", l->k_high));
    crdi_put(out, TEXT("signal", s->name), REAL("step", s->step));
    put_candidates(w, out);
}

static crd_status write_files(const worker* w, crdi_result* out)
{
    const link_options* o = w->o;
    crd_context* ctx = w->cli->ctx;
    const crd_link_candidate* best = &w->trial.candidates[w->best];
    const char* label = o->output ? o->output : "element";
    crd_status st = CRD_OK;
    crd_element* e = NULL;
    crd_text text;
    crd_text_init(&text, ctx);
    CRD_TRY(crd_link_describe(best, w->signal.name, w->signal.step, &text));
    CRD_TRY(crd_element_parse(ctx, text.data, text.length, label, 1, &e));
    if (o->output) {
        CRD_TRY(crdi_file_write(ctx, o->output, &text));
        crdi_say(out, "\n%s: %s", o->output, best->name);
    }
    if (o->fmu) {
        CRD_TRY(crdi_write_coupling_fmu(ctx, e, o->fmi + 2, NULL, label, o->fmu));
        crdi_say(out, "\n%s: FMI %d.0", o->fmu, o->fmi + 2);
    }
    if (o->output || o->fmu) { crdi_say(out, "\n"); }
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
        return crdi_fail(ctx, CRD_E_RANGE, "'%s', expected cardan coupling link design",
                         arguments->items[0]);
    }
    if (arguments->count < 2) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "expected a recording: cardan coupling link design RECORDING");
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

static crd_status link_check_outputs(const worker* w)
{
    const char *const written[] = {w->o->output, w->o->fmu}, *const read[] = {w->path, w->o->link};
    crd_status st = CRD_OK;
    for (int i = 0; i < 4; i++) {
        if (!read[i % 2]) { continue; }
        CRD_TRY(crdi_check_output(w->cli->ctx, written[i / 2], read[i % 2]));
    }
fail:
    return st;
}

static crd_status read_signal(worker* w)
{
    const link_options* o = w->o;
    crd_context* ctx = w->cli->ctx;
    const crdi_recorded_options r = {o->signal, o->step, o->from, o->to};
    crd_status st = CRD_OK;
    CRD_TRY(crdi_recorded_load(ctx, w->path, &r, &w->recorded));
    CRD_TRY(crdi_recorded_without_gaps(&w->recorded, w->path));
    w->signal = crdi_signal_of(&w->recorded);
    if (w->signal.count < SAMPLES_LEAST) {
        CRD_TRY(crdi_fail(ctx, CRD_E_RANGE, "%s: %lld samples, expected at least %d", w->path,
                          (long long)w->signal.count, SAMPLES_LEAST));
    }
fail:
    return st;
}

static crd_status run_link(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    const link_options* o = options;
    crd_status st = check_words(cli, o, arguments);
    if (st < 0) { return st; }
    worker w = {.cli = cli, .o = o, .path = arguments->items[1]};
    crd_arena_init(&w.arena, cli->ctx);
    CRD_TRY(link_check_outputs(&w));
    CRD_TRY(read_signal(&w));
    CRD_TRY(o->link ? measured_link(&w) : given_link(&w));
    CRD_TRY(crd_link_examine(cli->ctx, &w.link, w.signal.step));
    // Judged by what the designs have not seen; the one that is written has seen everything, unless
    // a loop depends on it.
    const int64_t first = (int64_t)((1 - unseen) * (double)w.signal.count);
    CRD_TRY(design_all(&w, first, -1));
    CRD_TRY(try_all(&w, first));
    if (o->loop) { CRD_TRY(find_margins(&w)); }
    CRD_TRY(choose_candidate(&w));
    link_put_report(&w, out);
    if (!o->loop) { // else the margins would be those of another element
        CRD_TRY(design_all(&w, w.signal.count, w.best));
    }
    CRD_TRY(write_files(&w, out));
fail:
    crd_link_trial_clear(&w.trial);
    crdi_recorded_clear(&w.recorded);
    crd_arena_clear(&w.arena);
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
    OPT_FILE(link_options, loop, "loop", "yaml|json",
             "loop or system in which the element will work (see cardan coupling analyze): only an "
             "algorithm "
             "that keeps it stable is chosen"),
    OPT_INT(link_options, taps, "taps", "M",
            "past samples that designs use; 9, and 25 for the long one, unless given"),
    OPT_FILE(link_options, output, "output", "yaml|json", "element description to write",
             .short_name = 'o'),
    OPT_FILE(link_options, fmu, "fmu", "fmu", "coupling FMU to write"),
    OPT_CHOICE(link_options, fmi, "fmi", versions, "version of the FMU; 2 unless given"),
    CRDI_ISOLATE_OPTION,
    CRDI_JSON_OPTION(
        "print {link, signal, step, candidates: [{algorithm, C, M, P, rms, worst, chosen}]}"),
    CRDI_QUIET_OPTION,
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
    .name = "coupling link",
    .arguments = "design RECORDING",
    .summary = "from a link and a recording to a coupling element",
    .description = "link design tries the coupling algorithms on a recorded signal behind a link "
                   "that was measured, or is given by its latency, jitter and loss. Algorithms are "
                   "designed for the spectrum of the first part of the recording and judged by the "
                   "rest. The best one is designed anew for all of it, unless a loop depends on "
                   "it, and written as an element description and as an FMU.",
    .examples = {{"cardan coupling link design bench.mf4 --signal torque --latency 57.5ms --jitter "
                  "0.5ms -o "
                  "torque.yaml --fmu torque.fmu",
                  "for a link of 57.5 ms"},
                 {"cardan coupling link design bench.mf4 --signal torque --link ping.csv "
                  "--link-signal latency",
                  "for a measured link"}},
    OPTIONS(rows, link_options),
    .min_arguments = 1,
    .max_arguments = 2,
    .words = words,
    .extensions = "csv|mf4|mat",
    .defaults = &defaults,
    .run = run_link,
};
