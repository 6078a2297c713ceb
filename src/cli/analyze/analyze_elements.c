// cardan coupling analyze ELEMENT...: limits, peaks and Bode data of coupling elements.
#include "cli/analyze/analyze.h"

#include "cardan/results.h"

#include <math.h>
#include <string.h>

enum { POINTS = 500, MOST_POINTS = 1000000 };

// An element with a latency
typedef struct element_case {
    crd_element* element;
    double step;
    int k;
    crd_element_report report;
} element_case;

typedef struct analysis {
    crdi_cli* cli;
    const crdi_analyze_options* o;
    crd_arena arena;
    element_case* cases;
    int count;
    double* omega; // Bode
    int points;
} analysis;

// ---- which cases -------------------------------------------------------------------------------

static crd_status add_cases(analysis* a, const char* text)
{
    crd_context* ctx = a->cli->ctx;
    crd_element* e = NULL;
    int latencies[CRDI_LATENCIES_MAX], count = 0;
    crd_status st = crdi_load_element(ctx, text, &e);
    if (st < 0) { return st; }
    a->cases[a->count++].element = e; // who owns it
    const double step = isnan(a->o->step) ? e->step : a->o->step;
    if (isnan(step)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: expected --step with the macro step, such as 10ms",
                         e->label);
    }
    if (a->o->latency) {
        st = crdi_parse_latencies(ctx, a->o->latency, step, latencies, &count);
        if (st < 0) { return st; }
    } else {
        latencies[count++] = crd_element_latency(e, step);
        if (latencies[0] < 0) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "%s: expected --latency with the age of samples in macro steps",
                             e->label);
        }
    }
    a->count--;
    for (int i = 0; i < count; i++) {
        a->cases[a->count++] = (element_case){.element = e, .step = step, .k = latencies[i]};
    }
    return CRD_OK;
}

static void drop_cases(analysis* a)
{
    for (int i = 0; i < a->count; i++) {
        crd_element_report_clear(&a->cases[i].report);
    }
    for (int i = 0; i < a->count; i++) { // cases of an element follow each other
        if (i == 0 || a->cases[i].element != a->cases[i - 1].element) {
            crd_element_destroy(a->cases[i].element);
        }
    }
}

// ---- frequencies -------------------------------------------------------------------------------

static crd_status list_frequencies(analysis* a)
{
    const char* at = a->o->omega;
    for (;;) {
        const size_t length = strcspn(at, ",");
        if (!crdi_parse_double(at, length, &a->omega[a->points])) {
            return crdi_fail(a->cli->ctx, CRD_E_RANGE,
                             "--omega: '%.*s', expected a frequency in rad/s", (int)length, at);
        }
        a->points++;
        if (!at[length]) { return CRD_OK; }
        at += length + 1;
    }
}

static crd_status find_frequencies(analysis* a)
{
    crd_context* ctx = a->cli->ctx;
    double shortest = INFINITY, longest = 0;
    for (int i = 0; i < a->count; i++) {
        shortest = fmin(shortest, a->cases[i].step);
        longest = fmax(longest, a->cases[i].step);
    }
    crd_interval range = {1e-3 * M_PI / longest, M_PI / shortest};
    const char* text = a->o->omega;
    const bool listed = text && strchr(text, ',');
    size_t n = a->o->points > 0 ? (size_t)a->o->points : POINTS;
    if (text && !listed) {
        const crd_status st = crdi_parse_interval(ctx, "--omega", text, &range);
        if (st < 0) { return st; }
    }
    for (const char* p = text; listed && p; p = strchr(p + 1, ',')) {
        n = p == text ? 1 : n + 1;
    }
    if (n > MOST_POINTS) {
        return crdi_fail(ctx, CRD_E_RANGE, "--points: %zu, expected 2 to %d", n, MOST_POINTS);
    }
    a->omega = crdi_arena_new(&a->arena, n, sizeof *a->omega);
    if (!a->omega) { return CRD_E_MEMORY; }
    if (listed) { return list_frequencies(a); }
    a->points = (int)n;
    return crd_frequency_grid(ctx, range.lo, range.hi, (int)n, range.lo > 0, a->omega);
}

// ---- Bode data ---------------------------------------------------------------------------------

typedef struct curves {
    int count;
    const char** labels;
    double **gain, **phase;
} curves;

static crd_status add_bode(analysis* a, const element_case* c, const crd_linear* e,
                           const char* label, curves* out)
{
    crd_context* ctx = a->cli->ctx;
    const size_t n = (size_t)a->points;
    crd_bode_point* points = crdi_new_array(ctx, n, sizeof *points);
    double* gain = crdi_arena_new(&a->arena, n, sizeof *gain);
    double* phase = crdi_arena_new(&a->arena, n, sizeof *phase);
    crd_status st = points && gain && phase && label ? CRD_OK : CRD_E_MEMORY;
    if (st >= 0) { st = crd_analysis_bode(ctx, e, c->step, a->omega, a->points, points); }
    for (size_t i = 0; i < n && st >= 0; i++) {
        gain[i] = a->o->decibel ? 20 * log10(points[i].gain) : points[i].gain;
        phase[i] = points[i].phase_deg;
    }
    crd_free(ctx, points);
    out->labels[out->count] = label;
    out->gain[out->count] = gain;
    out->phase[out->count] = phase;
    out->count += st >= 0;
    return st;
}

static crd_status all_bode(analysis* a, curves* out)
{
    size_t n = 0;
    for (int i = 0; i < a->count; i++) {
        n += (size_t)a->cases[i].report.linears.count;
    }
    out->labels = crdi_arena_new(&a->arena, n, sizeof *out->labels);
    out->gain = crdi_arena_new(&a->arena, n, sizeof *out->gain);
    out->phase = crdi_arena_new(&a->arena, n, sizeof *out->phase);
    if (!out->labels || !out->gain || !out->phase) { return CRD_E_MEMORY; }
    for (int i = 0; i < a->count; i++) {
        const element_case* c = &a->cases[i];
        const crd_linears* l = &c->report.linears;
        for (int p = 0; p < l->count; p++) {
            const char* label =
                l->count > 1 ? crdi_arena_format(&a->arena, "%s, k = %d, piece %d",
                                                 c->element->label, c->k, p + 1)
                             : crdi_arena_format(&a->arena, "%s, k = %d", c->element->label, c->k);
            const crd_status st = add_bode(a, c, &l->linear[p], label, out);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

static crd_status analyze_elements_write_csv(analysis* a, const curves* b)
{
    const size_t n = 1 + 2 * (size_t)b->count;
    const char** names = crdi_arena_new(&a->arena, n, sizeof *names);
    const double** columns = crdi_arena_new(&a->arena, n, sizeof *columns);
    if (!names || !columns) { return CRD_E_MEMORY; }
    const char* unit = a->o->decibel ? "gain [dB]" : "gain";
    names[0] = "omega [rad/s]";
    columns[0] = a->omega;
    for (int i = 0; i < b->count; i++) {
        names[1 + 2 * i] =
            b->count == 1 ? unit : crdi_arena_format(&a->arena, "%s: %s", b->labels[i], unit);
        names[2 + 2 * i] = b->count == 1
                               ? "phase [deg]"
                               : crdi_arena_format(&a->arena, "%s: phase [deg]", b->labels[i]);
        columns[1 + 2 * i] = b->gain[i];
        columns[2 + 2 * i] = b->phase[i];
        if (!names[1 + 2 * i] || !names[2 + 2 * i]) { return CRD_E_MEMORY; }
    }
    return crdi_write_columns(a->cli->ctx, a->o->csv, names, columns, (int)n, a->points);
}

// Zeros of G would draw the axis out to nothing: 80 dB below the highest gain are enough.
static void show_gains(const analysis* a, const curves* b, crd_plot_scale* scale)
{
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < b->count; i++) {
        for (int k = 0; k < a->points; k++) {
            low = fmin(low, b->gain[i][k]);
            high = fmax(high, b->gain[i][k]);
        }
    }
    const double least = a->o->decibel ? high - 80 : 1e-4 * high;
    if (low >= least) { return; }
    scale->y_low = least;
    scale->y_high = a->o->decibel ? high + 5 : 1.5 * high;
}

static crd_status draw_bode(analysis* a, const curves* b)
{
    const size_t n = (size_t)b->count;
    crd_plot_series* gain = crdi_arena_new(&a->arena, n, sizeof *gain);
    crd_plot_series* phase = crdi_arena_new(&a->arena, n, sizeof *phase);
    if (!gain || !phase) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < n; i++) {
        gain[i] = (crd_plot_series){
            .label = b->labels[i], .x = a->omega, .y = b->gain[i], .count = a->points};
        phase[i] = gain[i];
        phase[i].label = "";
        phase[i].y = b->phase[i];
    }
    const crd_plot_panel panels[] = {
        {.title = "Gain",
         .y_label = a->o->decibel ? "|G| [dB]" : "|G|",
         .series = gain,
         .series_count = b->count},
        {.title = "Phase", .y_label = "arg G [deg]", .series = phase, .series_count = b->count}};
    crd_plot_scale scales[] = {{.log_y = !a->o->decibel}, {0}};
    show_gains(a, b, &scales[0]);
    const crd_plot_options options = {.title = "Transfer function of coupling elements",
                                      .x_label = "frequency [rad/s]",
                                      .log_x = a->omega[0] > 0 || a->points > 2,
                                      .scales = scales};
    return crdi_picture_write(a->cli, a->o->plot, &options, panels, 2);
}

// ---- what comes out ----------------------------------------------------------------------------

static void analyze_elements_put_limits(crdi_result* o, const crd_limits* l)
{
    crdi_put(crdi_object(o, "limits"), REAL("magnitude", 100 * l->magnitude),
             REAL("phase", 100 * l->phase));
}

static void put_piece(crdi_result* o, const crd_linear_report* r, const crd_limits* limits)
{
    analyze_elements_put_limits(o, limits);
    crdi_result* peaks = crdi_array(o, "peaks");
    for (int i = 0; i < r->peak_count; i++) {
        crdi_put_numbers(peaks, NULL, (double[]){r->peaks[i].gain, r->peaks[i].omega}, 2);
    }
    crdi_put(o, REAL("dc", r->dc), REAL("norm", r->norm));
    crdi_put_numbers(o, "a", r->e->a, r->e->m);
    crdi_put_numbers(o, "A", r->e->A, r->e->A ? r->e->m : 0);
    crdi_put(o, REAL("b", r->e->b));
    if (r->patterns) { crdi_put(o, INT("patterns", r->patterns)); }
}

static void put_case(crdi_result* o, const element_case* c, const crdi_analyze_options* options)
{
    const crd_element_report* r = &c->report;
    crdi_put(o, TEXT("element", c->element->label), INT("k", c->k), REAL("step", c->step),
             REAL("nyquist", M_PI / c->step));
    crdi_put(crdi_object(o, "tolerance"), REAL("magnitude", options->magnitude),
             REAL("phase", options->phase));
    put_piece(o, &r->pieces[r->highest], &r->worst);
    if (!r->linears.patterns) { return; }
    crdi_result* pieces = crdi_array(o, "pieces");
    for (int i = 0; i < r->linears.count; i++) {
        put_piece(crdi_row(pieces), &r->pieces[i], &r->pieces[i].limits);
    }
}

// A limit, and how it is left
static void analyze_elements_put_limit(crdi_result* row, const char* key, double part,
                                       const char* how, const char* side)
{
    const bool kept = isinf(part);
    crdi_put(row, CELL(key, kept ? "kept" : crdi_worded(row, "%.7f", 100 * part)),
             CELL(how, kept ? "" : side));
}

// The row of an element, which has the worst of its pieces, or of one of them.
static void analyze_elements_put_row(crdi_result* row, const element_case* c, int piece)
{
    const crd_element_report* report = &c->report;
    const crd_linear_report* r = &report->pieces[piece < 0 ? report->highest : piece];
    const crd_limits* l = piece < 0 ? &report->worst : &r->limits;
    const crd_peak* peak = r->highest >= 0 ? &r->peaks[r->highest] : NULL;
    crdi_put(
        row,
        CELL("element", piece < 0 ? c->element->label : crdi_worded(row, "  piece %d", piece + 1)),
        CELL("k", piece < 0 ? crdi_worded(row, "%d", c->k) : ""));
    analyze_elements_put_limit(row, "magnitude", l->magnitude, "gain",
                               l->magnitude_side > 0 ? "amplifies" : "damps");
    analyze_elements_put_limit(row, "phase", l->phase, "shift",
                               l->phase_side > 0 ? "leads" : "lags");
    crdi_put(row, CELL("peak", peak ? crdi_worded(row, "%.6f", peak->gain) : "none"),
             CELL("at", peak ? crdi_worded(row, "%.4f", peak->omega) : ""),
             CELL("dc", crdi_worded(row, "%.6g", r->dc)),
             CELL("norm", crdi_worded(row, "%.6g", r->norm)));
}

static void say_head(const analysis* a, crdi_result* out)
{
    char text[32];
    const double step = a->cases[0].step;
    bool same = true;
    for (int i = 1; i < a->count; i++) {
        same = same && a->cases[i].step == step;
    }
    if (same) {
        crdi_say(out, "macro step %s, Nyquist frequency %.6g rad/s; limits in per cent of it",
                 crdi_format_seconds(text, step), M_PI / step);
    } else {
        crdi_say(out, "limits in per cent of the Nyquist frequency pi / step, each element with "
                      "its own step");
    }
    crdi_say(out, ", where the magnitude is off by %g %% and the phase by %g deg\n\n",
             a->o->magnitude, a->o->phase);
}

static void say_peaks(const element_case* c, crdi_result* out)
{
    enum { SHOWN = 16 };
    static const crdi_column columns[] = {{">gain peak", "gain", "%.6f"},
                                          {">at [rad/s]", "at", "%.4f"},
                                          {">of Nyquist", "part", "%.2f %%"},
                                          {0}};
    const crd_linear_report* r = &c->report.pieces[c->report.highest];
    if (r->peak_count < 2) { return; }
    crdi_result* list = crdi_array(out, NULL);
    for (int i = 0; i < r->peak_count && i < SHOWN; i++) {
        crdi_put(crdi_row(list), REAL("gain", r->peaks[i].gain), REAL("at", r->peaks[i].omega),
                 REAL("part", 100 * r->peaks[i].omega * c->step / M_PI));
    }
    crdi_say(out, "\n");
    crdi_show_table(out, list, columns, "");
    if (r->peak_count > SHOWN) {
        crdi_say(out, "and %d more up to 2 pi / dT\n", r->peak_count - SHOWN);
    }
}

static void say_table(const analysis* a, crdi_result* out)
{
    static const crdi_column columns[] = {{"element", "element", ""},
                                          {">k", "k", ""},
                                          {">magnitude [%]", "magnitude", ""},
                                          {"", "gain", ""},
                                          {">phase [%]", "phase", ""},
                                          {"", "shift", ""},
                                          {">peak", "peak", ""},
                                          {">at [rad/s]", "at", ""},
                                          {">dc", "dc", ""},
                                          {">norm", "norm", ""},
                                          {0}};
    say_head(a, out);
    crdi_result* list = crdi_array(out, NULL);
    for (int i = 0; i < a->count; i++) {
        const int pieces = a->cases[i].report.linears.count;
        analyze_elements_put_row(crdi_row(list), &a->cases[i], -1);
        for (int p = 0; p < pieces && pieces > 1; p++) {
            analyze_elements_put_row(crdi_row(list), &a->cases[i], p);
        }
    }
    crdi_show_table(out, list, columns, "");
    if (a->count == 1) { say_peaks(&a->cases[0], out); }
    for (int i = 0; i < a->count; i++) {
        const crd_linears* l = &a->cases[i].report.linears;
        if (!l->patterns) { continue; }
        crdi_say(out, "\n%s: %d linear piece%s%s\n", a->cases[i].element->label, l->count,
                 crdi_plural(l->count),
                 l->count > 1 ? ", the row above has the worst of each" : "");
    }
}

crd_status crdi_analyze_elements(crdi_cli* cli, const crdi_analyze_options* o,
                                 const crdi_list* arguments, crdi_result* out)
{
    analysis a = {.cli = cli, .o = o};
    crd_status st = CRD_OK;
    curves b = {0};
    crd_arena_init(&a.arena, cli->ctx);
    if (o->elements.count) {
        CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE,
                          "--element is for loops and recordings; name %s beside %s",
                          o->elements.items[0], arguments->items[0]));
    }
    const size_t most = (size_t)arguments->count * CRDI_LATENCIES_MAX;
    a.cases = crdi_arena_new(&a.arena, most, sizeof *a.cases);
    if (!a.cases) { CRD_TRY(CRD_E_MEMORY); }
    for (int i = 0; i < arguments->count; i++) {
        CRD_TRY(add_cases(&a, arguments->items[i]));
    }
    for (int i = 0; i < a.count; i++) {
        element_case* c = &a.cases[i];
        CRD_TRY(crd_analysis_element(c->element, c->step, c->k, o->magnitude / 100, o->phase,
                                     &c->report));
    }
    if (o->csv || o->plot || o->omega) {
        CRD_TRY(find_frequencies(&a));
        CRD_TRY(all_bode(&a, &b));
    }
    if (o->csv) { CRD_TRY(analyze_elements_write_csv(&a, &b)); }
    if (o->plot) { CRD_TRY(draw_bode(&a, &b)); }
    if (!o->common.json) {
        say_table(&a, out);
    } else if (a.count == 1) {
        put_case(out, &a.cases[0], o);
    } else {
        crdi_result* list = crdi_whole_array(out);
        for (int i = 0; i < a.count; i++) {
            put_case(crdi_row(list), &a.cases[i], o);
        }
    }
fail:
    drop_cases(&a);
    crd_arena_clear(&a.arena);
    return st;
}
