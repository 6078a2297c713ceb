// cardan coupling analyze RECORDING: spectrum, bandwidth, and the macro step that elements need.
#include "cli/analyze/analyze.h"

#include "cardan/results.h"

#include <math.h>
#include <string.h>

// What an element needs for this signal
typedef struct need {
    const char* label;
    crd_step_need need;
} need;

typedef struct study {
    crdi_cli* cli;
    const crdi_analyze_options* o;
    const char* path;
    crd_arena arena;
    crdi_recorded recorded;
    crd_signal_report report;
    double latency; // s, NaN: given in macro steps
    need* needs;
    int need_count;
} study;

static crd_status read_signal(study* s)
{
    crd_context* ctx = s->cli->ctx;
    const crdi_analyze_options* o = s->o;
    const crdi_recorded_options r = {o->signal, o->step, o->from, o->to};
    crd_status st = CRD_OK;
    CRD_TRY(crdi_recorded_load(ctx, s->path, &r, &s->recorded));
    CRD_TRY(crdi_recorded_without_gaps(&s->recorded, s->path));
    const crd_signal signal = crdi_signal_of(&s->recorded);
    st = crd_analysis_signal(ctx, &signal, o->length > 0 ? o->length : 0, o->part, &s->report);
    if (st < 0 && st != CRD_E_MEMORY) {
        st = crdi_fail_in(ctx, st, "%s: '%s'", s->path, s->recorded.name);
    }
fail:
    return st;
}

// ---- elements ----------------------------------------------------------------------------------

static crd_status add_needs(study* s, const char* text, const int* latencies, int count)
{
    crd_element* e = NULL;
    crd_status st = crdi_load_element(s->cli->ctx, text, &e);
    for (int i = 0; i < count && st >= 0; i++) {
        need* n = &s->needs[s->need_count];
        st = crd_analysis_step_need(e, s->report.bandwidth, s->recorded.step, latencies[i],
                                    s->latency, s->o->magnitude / 100, s->o->phase, &n->need);
        if (st >= 0) {
            n->label = crdi_arena_format(&s->arena, "%s", e->label);
            s->need_count++;
            st = n->label ? CRD_OK : CRD_E_MEMORY;
        }
    }
    crd_element_destroy(e);
    return st;
}

static crd_status find_needs(study* s)
{
    static const char* const usual[] = {"zoh", "foh", "eros"};
    crd_context* ctx = s->cli->ctx;
    int latencies[CRDI_LATENCIES_MAX] = {0}, count = 1;
    crd_dimension dim, seconds;
    bool bare = true;
    s->latency = NAN;
    double time;
    (void)crd_dimension_parse("s", &seconds);
    if (s->o->latency && crd_quantity_parse(s->o->latency, &time, &dim, &bare) && !bare) {
        if (!crd_dimension_equal(&dim, &seconds) || !(time > 0)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "--latency: '%s', expected a time such as 60 ms, or macro steps",
                             s->o->latency);
        }
        s->latency = time;
    } else if (s->o->latency) {
        const crd_status st =
            crdi_parse_latencies(ctx, s->o->latency, s->recorded.step, latencies, &count);
        if (st < 0) { return st; }
    }
    const int elements = s->o->elements.count ? s->o->elements.count : 3;
    s->needs = crdi_arena_new(&s->arena, (size_t)elements * (size_t)count, sizeof *s->needs);
    if (!s->needs) { return CRD_E_MEMORY; }
    for (int i = 0; i < elements; i++) {
        const char* text = s->o->elements.count ? s->o->elements.items[i] : usual[i];
        const crd_status st = add_needs(s, text, latencies, count);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static const need* best_need(const study* s)
{
    const need* best = NULL;
    for (int i = 0; i < s->need_count; i++) {
        const need* n = &s->needs[i];
        if (!isnan(n->need.step) && (!best || n->need.step > best->need.step)) { best = n; }
    }
    return best;
}

static const char* suggest(study* s)
{
    const double nyquist = M_PI / s->recorded.step;
    const need* best = best_need(s);
    char step[32], latency[32];
    if (s->report.bandwidth > 0.8 * nyquist) {
        return crdi_arena_format(
            &s->arena,
            "the bandwidth is that of the recording (%.4g rad/s): record it faster, or raise less "
            "than %g of its power with --part",
            nyquist, s->o->part);
    }
    if (!best) {
        double keeps = 0;
        const char* label = "";
        for (int i = 0; i < s->need_count; i++) {
            if (s->needs[i].need.keeps > keeps) {
                keeps = s->needs[i].need.keeps;
                label = s->needs[i].label;
            }
        }
        return crdi_arena_format(
            &s->arena,
            "a latency of %s is too long for this bandwidth, whatever the "
            "macro step: %s keeps its tolerances up to %.4g rad/s; design an "
            "element for the signal (cardan coupling design), or shorten the latency",
            crdi_format_seconds(latency, s->latency), label, keeps);
    }
    return crdi_arena_format(&s->arena,
                             "%s with k = %d allows the longest macro step: %s, which is %.3g "
                             "samples in a period of the highest frequency",
                             best->label, best->need.k, crdi_format_seconds(step, best->need.step),
                             2 * M_PI / (s->report.bandwidth * best->need.step));
}

// ---- what comes out ----------------------------------------------------------------------------

static void put_needs(const study* s, crdi_result* out)
{
    static const crdi_column columns[] = {{"element", "element", ""},
                                          {">k", "k", ""},
                                          {">macro step at most", "step", "s"},
                                          {">keeps up to [rad/s]", "keeps", "%.5g"},
                                          {0}};
    static const crdi_column short_columns[] = {
        {"element", "element", ""}, {">k", "k", ""}, {">macro step at most", "step", "s"}, {0}};
    const bool timed = !isnan(s->latency);
    crdi_result* elements = crdi_array(out, "elements");
    for (int i = 0; i < s->need_count; i++) {
        const crd_step_need* n = &s->needs[i].need;
        crdi_result* row = crdi_row(elements);
        crdi_put(row, TEXT("element", s->needs[i].label), INT("k", n->k),
                 AS(REAL("step", n->step), isnan(n->step) ? "none" : NULL));
        if (timed) { crdi_put(row, REAL("latency", s->latency), REAL("keeps", n->keeps)); }
    }
    crdi_show_table(out, elements, timed ? columns : short_columns, "");
}

static void put_study(const study* s, const char* suggestion, crdi_result* out)
{
    const crdi_recorded* r = &s->recorded;
    const crd_signal_report* found = &s->report;
    char step[32];
    crdi_say(out, "%s: %s%s%s%s, %lld samples every %s from %.6g s to %.6g s\n", s->path, r->name,
             r->unit[0] ? " [" : "", r->unit, r->unit[0] ? "]" : "", (long long)r->count,
             crdi_format_seconds(step, r->step), r->start,
             r->start + (double)(r->count - 1) * r->step);
    crdi_say(out, "mean %.6g, standard deviation %.6g (%d segments, resolution %.4g rad/s)\n",
             found->mean, sqrt(found->spectrum.variance), found->spectrum.segments,
             found->spectrum.omega[1]);
    crdi_say(out,
             "bandwidth %.6g rad/s (%.4g Hz): %g %% of the power lies below; half of it below %.4g "
             "rad/s\n\n",
             found->bandwidth, found->bandwidth / (2 * M_PI), 100 * s->o->part, found->half);
    crdi_put(out, TEXT("recording", s->path), TEXT("signal", r->name), TEXT("unit", r->unit),
             INT("samples", r->count), REAL("step", r->step), REAL("nyquist", M_PI / r->step),
             REAL("start", r->start), REAL("mean", found->mean),
             REAL("variance", found->spectrum.variance), INT("segments", found->spectrum.segments),
             REAL("part", s->o->part), REAL("bandwidth", found->bandwidth),
             REAL("half_power", found->half));
    put_needs(s, out);
    crdi_say(out, "\n%s\n", suggestion);
    crdi_put(out, TEXT("suggestion", suggestion));
}

static crd_status analyze_recording_write_csv(const study* s)
{
    const char* const names[] = {"omega [rad/s]", "density [power/(rad/s)]"};
    const double* const columns[] = {s->report.spectrum.omega, s->report.spectrum.density};
    return crdi_write_columns(s->cli->ctx, s->o->csv, names, columns, 2, s->report.spectrum.bins);
}

static crd_status draw_spectrum(const study* s)
{
    double low = INFINITY, high = 0;
    for (int i = 1; i < s->report.spectrum.bins; i++) {
        const double d = s->report.spectrum.density[i];
        if (d > 0) {
            low = fmin(low, d);
            high = fmax(high, d);
        }
    }
    const double at[2] = {s->report.bandwidth, s->report.bandwidth},
                 ends[2] = {fmax(low, 1e-12 * high), high};
    char label[96];
    snprintf(label, sizeof label, "%g %% of the power", 100 * s->o->part);
    const crd_plot_series series[] = {
        {.label = s->recorded.name,
         .x = s->report.spectrum.omega + 1,
         .y = s->report.spectrum.density + 1,
         .count = s->report.spectrum.bins - 1},
        {.label = label, .x = at, .y = ends, .count = 2, .dashed = true}};
    const crd_plot_panel panel = {
        .title = "Power density", .y_label = "per rad/s", .series = series, .series_count = 2};
    const crd_plot_scale scale = {.log_y = true};
    const crd_plot_options options = {
        .title = s->recorded.name, .x_label = "frequency [rad/s]", .log_x = true, .scales = &scale};
    return crdi_picture_write(s->cli, s->o->plot, &options, &panel, 1);
}

crd_status crdi_analyze_recording(crdi_cli* cli, const crdi_analyze_options* o, const char* path,
                                  crdi_result* out)
{
    study s = {.cli = cli, .o = o, .path = path, .latency = NAN};
    crd_status st = CRD_OK;
    crd_arena_init(&s.arena, cli->ctx);
    s.recorded.ctx = cli->ctx;
    CRD_TRY(read_signal(&s));
    CRD_TRY(find_needs(&s));
    const char* suggestion = suggest(&s);
    if (!suggestion) { CRD_TRY(CRD_E_MEMORY); }
    if (o->csv) { CRD_TRY(analyze_recording_write_csv(&s)); }
    if (o->plot) { CRD_TRY(draw_spectrum(&s)); }
    put_study(&s, suggestion, out);
fail:
    crd_spectrum_clear(cli->ctx, &s.report.spectrum);
    crdi_recorded_clear(&s.recorded);
    crd_arena_clear(&s.arena);
    return st;
}
