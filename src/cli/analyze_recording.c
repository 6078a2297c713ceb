// cardan analyze RECORDING: spectrum, bandwidth, and the macro step that elements need.
#include "cli/analyze.h"
#include "cli/design.h"

#include "cardan/results.h"

#include <math.h>
#include <string.h>

// What an element needs for this signal
typedef struct need {
    const char* label;
    int k;        // latency in macro steps
    double step;  // largest macro step, s; NaN: none is short enough
    double keeps; // rad/s up to which it is good at best; NaN unless the latency is a time
} need;

typedef struct study {
    crdi_cli* cli;
    const crdi_analyze_options* o;
    const char* path;
    crd_arena arena;
    crdi_recorded recorded;
    crd_spectrum spectrum;
    double mean, bandwidth, half; // half of the power lies below `half`
    double latency;               // s, NaN: given in macro steps
    need* needs;
    int need_count;
} study;

// ---- the signal --------------------------------------------------------------------------------

static crd_status find_spectrum(study* s)
{
    crd_context* ctx = s->cli->ctx;
    const crdi_recorded* r = &s->recorded;
    const int length = s->o->length > 0 ? s->o->length : 0;
    crd_status st = CRD_OK;
    CRD_TRY(crd_analysis_spectrum(ctx, r->y, r->count, r->step, length, &s->spectrum));
    CRD_TRY(crd_spectrum_bandwidth(ctx, &s->spectrum, s->o->part, &s->bandwidth));
    CRD_TRY(crd_spectrum_bandwidth(ctx, &s->spectrum, 0.5, &s->half));
fail:
    return st < 0 && st != CRD_E_MEMORY ? crdi_fail_in(ctx, st, "%s: '%s'", s->path, r->name) : st;
}

static crd_status read_signal(study* s)
{
    crd_context* ctx = s->cli->ctx;
    const crdi_analyze_options* o = s->o;
    const crdi_recorded_options r = {o->signal, o->step, o->from, o->to};
    crd_status st = CRD_OK;
    CRD_TRY(crdi_recorded_load(ctx, s->path, &r, &s->recorded));
    CRD_TRY(crdi_recorded_without_gaps(&s->recorded, s->path));
    for (int64_t i = 0; i < s->recorded.count; i++) {
        s->mean += s->recorded.y[i] / (double)s->recorded.count;
    }
    return find_spectrum(s);
fail:
    return st;
}

// ---- elements ----------------------------------------------------------------------------------

// How far an element for latency k is as good as a direct connection, as x = omega dT
static crd_status reach(study* s, const crd_element* e, double step, int k, double* x)
{
    crdi_linears l = {0};
    crd_limits limits;
    crd_status st = crdi_linears_make(e, step, k, &l);
    *x = INFINITY;
    for (int i = 0; st >= 0 && i < l.count; i++) {
        st = crd_analysis_limits(s->cli->ctx, &l.linear[i], s->o->magnitude / 100, s->o->phase,
                                 &limits);
        if (st >= 0) { *x = fmin(*x, M_PI * fmin(limits.magnitude, limits.phase)); }
    }
    crdi_linears_clear(&l);
    return st;
}

// A latency of k steps, whatever their length
static crd_status for_steps(study* s, const crd_element* e, int k, need* out)
{
    double x = 0;
    const crd_status st = reach(s, e, s->recorded.step, k, &x);
    *out = (need){.label = e->label, .k = k, .keeps = NAN};
    out->step = fmin(x, M_PI) / s->bandwidth;
    return st;
}

// A latency in s is k macro steps for steps from latency / k on and below latency / (k - 1). The
// first k for which some of them are short enough has the longest one.
static crd_status for_time(study* s, const crd_element* e, need* out)
{
    *out = (need){.label = e->label, .step = NAN};
    for (int k = 1; k <= CRD_LATENCY_MAX; k++) {
        const double shortest = s->latency / k;
        double x = 0;
        const crd_status st = reach(s, e, shortest, k, &x);
        if (st < 0) { return st; }
        const double omega = fmin(x, M_PI) / shortest;
        if (omega > out->keeps) {
            out->keeps = omega;
            out->k = k;
        }
        if (omega >= s->bandwidth) {
            out->step = fmin(x, M_PI) / s->bandwidth;
            if (k > 1) { out->step = fmin(out->step, s->latency / (k - 1)); }
            out->k = k;
            return CRD_OK;
        }
    }
    return CRD_OK;
}

static crd_status add_needs(study* s, const char* text, const int* latencies, int count)
{
    crd_element* e = NULL;
    crd_status st = crdi_load_element(s->cli->ctx, text, &e);
    for (int i = 0; i < count && st >= 0; i++) {
        need* n = &s->needs[s->need_count];
        st = isnan(s->latency) ? for_steps(s, e, latencies[i], n) : for_time(s, e, n);
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
    s->needs = crdi_arena_new(&s->arena, (size_t)(elements * count), sizeof *s->needs);
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
        if (!isnan(n->step) && (!best || n->step > best->step)) { best = n; }
    }
    return best;
}

static const char* suggest(study* s)
{
    const double nyquist = M_PI / s->recorded.step;
    const need* best = best_need(s);
    char step[32], latency[32];
    if (s->bandwidth > 0.8 * nyquist) {
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
            if (s->needs[i].keeps > keeps) {
                keeps = s->needs[i].keeps;
                label = s->needs[i].label;
            }
        }
        return crdi_arena_format(&s->arena,
                                 "a latency of %s is too long for this bandwidth, whatever the "
                                 "macro step: %s keeps its tolerances up to %.4g rad/s; design an "
                                 "element for the signal (cardan design), or shorten the latency",
                                 crdi_format_seconds(latency, s->latency), label, keeps);
    }
    return crdi_arena_format(&s->arena,
                             "%s with k = %d allows the longest macro step: %s, which is %.3g "
                             "samples in a period of the highest frequency",
                             best->label, best->k, crdi_format_seconds(step, best->step),
                             2 * M_PI / (s->bandwidth * best->step));
}

// ---- what comes out ----------------------------------------------------------------------------

static crd_status print_json(study* s, const char* suggestion)
{
    json_t* j = json_object();
    const crdi_recorded* r = &s->recorded;
    json_object_set_new(j, "recording", crdi_json_text(s->path));
    json_object_set_new(j, "signal", crdi_json_text(r->name));
    json_object_set_new(j, "unit", crdi_json_text(r->unit));
    json_object_set_new(j, "samples", json_integer(r->count));
    json_object_set_new(j, "step", crdi_json_number(r->step));
    json_object_set_new(j, "nyquist", crdi_json_number(M_PI / r->step));
    json_object_set_new(j, "start", crdi_json_number(r->start));
    json_object_set_new(j, "mean", crdi_json_number(s->mean));
    json_object_set_new(j, "variance", crdi_json_number(s->spectrum.variance));
    json_object_set_new(j, "segments", json_integer(s->spectrum.segments));
    json_object_set_new(j, "part", crdi_json_number(s->o->part));
    json_object_set_new(j, "bandwidth", crdi_json_number(s->bandwidth));
    json_object_set_new(j, "half_power", crdi_json_number(s->half));
    json_t* elements = json_array();
    for (int i = 0; i < s->need_count; i++) {
        const need* n = &s->needs[i];
        json_t* e = json_object();
        json_object_set_new(e, "element", crdi_json_text(n->label));
        json_object_set_new(e, "k", json_integer(n->k));
        json_object_set_new(e, "step", crdi_json_number(n->step));
        if (!isnan(s->latency)) {
            json_object_set_new(e, "latency", crdi_json_number(s->latency));
            json_object_set_new(e, "keeps", crdi_json_number(n->keeps));
        }
        json_array_append_new(elements, e);
    }
    json_object_set_new(j, "elements", elements);
    json_object_set_new(j, "suggestion", crdi_json_text(suggestion));
    return crdi_json_print(s->cli, j);
}

static void print_text(const study* s, const char* suggestion)
{
    const crdi_recorded* r = &s->recorded;
    char step[32], resolution[32];
    printf("%s: %s%s%s%s, %lld samples every %s from %.6g s to %.6g s\n", s->path, r->name,
           r->unit[0] ? " [" : "", r->unit, r->unit[0] ? "]" : "", (long long)r->count,
           crdi_format_seconds(step, r->step), r->start,
           r->start + (double)(r->count - 1) * r->step);
    printf("mean %.6g, standard deviation %.6g (%d segments, resolution %.4g rad/s)\n", s->mean,
           sqrt(s->spectrum.variance), s->spectrum.segments, s->spectrum.omega[1]);
    printf("bandwidth %.6g rad/s (%.4g Hz): %g %% of the power lies below; half of it below %.4g "
           "rad/s\n\n",
           s->bandwidth, s->bandwidth / (2 * M_PI), 100 * s->o->part, s->half);
    crdi_grid g;
    crdi_grid_init(&g, s->cli->ctx, isnan(s->latency) ? 3 : 4, 0xE);
    crdi_grid_add(&g, "%s", "element");
    crdi_grid_add(&g, "%s", "k");
    crdi_grid_add(&g, "%s", "macro step at most");
    if (!isnan(s->latency)) { crdi_grid_add(&g, "%s", "keeps up to [rad/s]"); }
    for (int i = 0; i < s->need_count; i++) {
        const need* n = &s->needs[i];
        crdi_grid_add(&g, "%s", n->label);
        crdi_grid_add(&g, "%d", n->k);
        crdi_grid_add(&g, "%s", isnan(n->step) ? "none" : crdi_format_seconds(resolution, n->step));
        if (!isnan(s->latency)) { crdi_grid_add(&g, "%.5g", n->keeps); }
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
    printf("\n%s\n", suggestion);
}

static crd_status write_csv(const study* s)
{
    const char* const names[] = {"omega [rad/s]", "density [power/(rad/s)]"};
    const double* const columns[] = {s->spectrum.omega, s->spectrum.density};
    return crdi_write_columns(s->cli->ctx, s->o->csv, names, columns, 2, s->spectrum.bins);
}

static crd_status draw(const study* s)
{
    double low = INFINITY, high = 0;
    for (int i = 1; i < s->spectrum.bins; i++) {
        const double d = s->spectrum.density[i];
        if (d > 0) {
            low = fmin(low, d);
            high = fmax(high, d);
        }
    }
    const double at[2] = {s->bandwidth, s->bandwidth}, ends[2] = {fmax(low, 1e-12 * high), high};
    char label[96];
    snprintf(label, sizeof label, "%g %% of the power", 100 * s->o->part);
    const crd_plot_series series[] = {
        {.label = s->recorded.name,
         .x = s->spectrum.omega + 1,
         .y = s->spectrum.density + 1,
         .count = s->spectrum.bins - 1},
        {.label = label, .x = at, .y = ends, .count = 2, .dashed = true}};
    const crd_plot_panel panel = {
        .title = "Power density", .y_label = "per rad/s", .series = series, .series_count = 2};
    const crd_plot_scale scale = {.log_y = true};
    const crd_plot_options options = {
        .title = s->recorded.name, .x_label = "frequency [rad/s]", .log_x = true, .scales = &scale};
    return crd_plot_svg_scaled(s->cli->ctx, s->o->plot, &options, &panel, 1);
}

crd_status crdi_analyze_recording(crdi_cli* cli, const crdi_analyze_options* o, const char* path)
{
    study s = {.cli = cli, .o = o, .path = path, .latency = NAN};
    crd_status st = CRD_OK;
    crd_arena_init(&s.arena, cli->ctx);
    s.recorded.ctx = cli->ctx;
    CRD_TRY(read_signal(&s));
    CRD_TRY(find_needs(&s));
    const char* suggestion = suggest(&s);
    if (!suggestion) { CRD_TRY(CRD_E_MEMORY); }
    if (o->csv) { CRD_TRY(write_csv(&s)); }
    if (o->plot) { CRD_TRY(draw(&s)); }
    if (o->common.json) {
        CRD_TRY(print_json(&s, suggestion));
    } else {
        print_text(&s, suggestion);
        CRD_TRY(crdi_stdout_done(cli->ctx));
    }
fail:
    crd_spectrum_clear(cli->ctx, &s.spectrum);
    crdi_recorded_clear(&s.recorded);
    crd_arena_clear(&s.arena);
    return st;
}
