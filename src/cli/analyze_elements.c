// cardan analyze ELEMENT...: limits, peaks and Bode data of coupling elements.
#include "cli/analyze.h"
#include "cli/design.h"

#include "cardan/results.h"

#include <math.h>
#include <string.h>

enum { PEAKS = 4096, POINTS = 500, MOST_POINTS = 1000000 };

// ---- elements as linear functions --------------------------------------------------------------

crd_status crdi_linears_make(const crd_element* e, double step, int k, crdi_linears* out)
{
    crd_status st = CRD_OK;
    crdi_linears l = {.ctx = e->ctx};
    crd_arena_init(&l.arena, e->ctx);
    crd_linear* one = crdi_arena_new(&l.arena, 1, sizeof *one);
    if (!one) { CRD_TRY(CRD_E_MEMORY); }
    if (e->options.algorithm == CRD_ALGORITHM_NETWORK) {
        crd_pieces p;
        CRD_TRY(crd_network_pieces(e->ctx, &l.arena, e->options.network, k, &p));
        l.count = p.count;
        l.linear = p.linear;
        l.bias = p.bias;
        l.patterns = p.patterns;
    } else {
        CRD_TRY(crd_element_linear(e, step, k, &l.own));
        *one = l.own;
        l.linear = one;
        l.count = 1;
    }
    *out = l;
    return CRD_OK;
fail:
    crdi_linears_clear(&l);
    // what comes from the element itself bears its name already
    const bool named = st == CRD_E_MEMORY || e->options.algorithm != CRD_ALGORITHM_NETWORK;
    return named ? st : crdi_fail_in(e->ctx, st, "%s", e->label);
}

void crdi_linears_clear(crdi_linears* l)
{
    if (!l->ctx) { return; }
    crd_linear_clear(l->ctx, &l->own);
    crd_arena_clear(&l->arena);
    *l = (crdi_linears){0};
}

// ---- one case: an element with a latency -------------------------------------------------------

// What is found out about one linear function
typedef struct findings {
    const crd_linear* e;
    crd_limits limits;
    double dc, norm, bias;
    int patterns; // 0: not of a network
    crd_peak* peaks;
    int peak_count, highest; // highest -1: none
} findings;

typedef struct element_case {
    crd_element* element;
    crdi_linears linears;
    double step;
    int k;
    findings* pieces; // (linears.count)
    crd_limits worst;
    int highest; // piece with the highest peak
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

// A constant that misses the tolerance makes it 0: no frequency keeps it. The phase is still told.
static crd_status find_limits(crd_context* ctx, const crdi_analyze_options* o, findings* f)
{
    const double tolerance = o->magnitude / 100, off = fabs(f->dc - 1);
    if (off <= tolerance || !(f->dc > 0)) {
        if (f->dc > 0) { return crd_analysis_limits(ctx, f->e, tolerance, o->phase, &f->limits); }
        f->limits = (crd_limits){0, 0, -1, -1};
        return CRD_OK;
    }
    const crd_status st = crd_analysis_limits(ctx, f->e, off + tolerance, o->phase, &f->limits);
    f->limits.magnitude = 0;
    f->limits.magnitude_side = f->dc > 1 ? 1 : -1;
    return st;
}

static crd_status find_out(analysis* a, double step, findings* f)
{
    crd_context* ctx = a->cli->ctx;
    for (int i = 0; i < f->e->m; i++) {
        f->dc += f->e->a[i] + (f->e->A ? 0.5 * f->e->A[i] : 0);
        f->norm = hypot(f->norm, f->e->a[i]);
    }
    crd_status st = find_limits(ctx, a->o, f);
    if (st < 0) { return st; }
    crd_peak* found = crdi_new_array(ctx, PEAKS, sizeof *found);
    if (!found) { return CRD_E_MEMORY; }
    int count = 0;
    st = crd_analysis_peaks(ctx, f->e, step, 2 * M_PI / step, PEAKS, found, &count);
    if (count > PEAKS) { count = PEAKS; }
    f->peaks = crdi_arena_new(&a->arena, (size_t)count, sizeof *f->peaks);
    if (st >= 0 && !f->peaks) { st = CRD_E_MEMORY; }
    f->highest = -1;
    for (int i = 0; i < count && st >= 0; i++) {
        f->peaks[i] = found[i];
        f->peak_count++;
        if (f->highest < 0 || found[i].gain > f->peaks[f->highest].gain) { f->highest = i; }
    }
    crd_free(ctx, found);
    return st;
}

static double highest_gain(const findings* f)
{
    return f->highest < 0 ? 0 : f->peaks[f->highest].gain;
}

static crd_status examine(analysis* a, element_case* c)
{
    crd_status st = crdi_linears_make(c->element, c->step, c->k, &c->linears);
    if (st < 0) { return st; }
    c->pieces = crdi_arena_new(&a->arena, (size_t)c->linears.count, sizeof *c->pieces);
    if (!c->pieces) { return CRD_E_MEMORY; }
    for (int i = 0; i < c->linears.count; i++) {
        findings* f = &c->pieces[i];
        f->e = &c->linears.linear[i];
        f->bias = c->linears.bias ? c->linears.bias[i] : 0;
        f->patterns = c->linears.patterns ? c->linears.patterns[i] : 0;
        st = find_out(a, c->step, f);
        if (st < 0) { return crdi_fail_in(a->cli->ctx, st, "%s", c->element->label); }
        if (i == 0) { c->worst = f->limits; }
        if (f->limits.magnitude < c->worst.magnitude) {
            c->worst.magnitude = f->limits.magnitude;
            c->worst.magnitude_side = f->limits.magnitude_side;
        }
        if (f->limits.phase < c->worst.phase) {
            c->worst.phase = f->limits.phase;
            c->worst.phase_side = f->limits.phase_side;
        }
        if (highest_gain(f) > highest_gain(&c->pieces[c->highest])) { c->highest = i; }
    }
    return CRD_OK;
}

// ---- which cases -------------------------------------------------------------------------------

static int own_latency(const crd_element* e, double step)
{
    return e->latency_steps >= 0 ? e->latency_steps
           : isnan(e->latency)   ? -1
                                 : (int)ceil(e->latency / step - 1e-9);
}

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
        latencies[count++] = own_latency(e, step);
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
        crdi_linears_clear(&a->cases[i].linears);
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

static crd_status bode(analysis* a, const element_case* c, const findings* f, const char* label,
                       curves* out)
{
    crd_context* ctx = a->cli->ctx;
    const size_t n = (size_t)a->points;
    crd_bode_point* points = crdi_new_array(ctx, n, sizeof *points);
    double* gain = crdi_arena_new(&a->arena, n, sizeof *gain);
    double* phase = crdi_arena_new(&a->arena, n, sizeof *phase);
    crd_status st = points && gain && phase && label ? CRD_OK : CRD_E_MEMORY;
    if (st >= 0) { st = crd_analysis_bode(ctx, f->e, c->step, a->omega, a->points, points); }
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
        n += (size_t)a->cases[i].linears.count;
    }
    out->labels = crdi_arena_new(&a->arena, n, sizeof *out->labels);
    out->gain = crdi_arena_new(&a->arena, n, sizeof *out->gain);
    out->phase = crdi_arena_new(&a->arena, n, sizeof *out->phase);
    if (!out->labels || !out->gain || !out->phase) { return CRD_E_MEMORY; }
    for (int i = 0; i < a->count; i++) {
        const element_case* c = &a->cases[i];
        for (int p = 0; p < c->linears.count; p++) {
            const char* label =
                c->linears.count > 1
                    ? crdi_arena_format(&a->arena, "%s, k = %d, piece %d", c->element->label, c->k,
                                        p + 1)
                    : crdi_arena_format(&a->arena, "%s, k = %d", c->element->label, c->k);
            const crd_status st = bode(a, c, &c->pieces[p], label, out);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

static crd_status write_csv(analysis* a, const curves* b)
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

static crd_status draw(analysis* a, const curves* b)
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
    return crd_plot_svg_scaled(a->cli->ctx, a->o->plot, &options, panels, 2);
}

// ---- what comes out ----------------------------------------------------------------------------

static json_t* numbers_json(const double* x, int n)
{
    json_t* j = json_array();
    for (int i = 0; x && i < n; i++) {
        json_array_append_new(j, crdi_json_number(x[i]));
    }
    return j;
}

static json_t* limits_json(const crd_limits* l)
{
    json_t* j = json_object();
    json_object_set_new(j, "magnitude", crdi_json_number(100 * l->magnitude));
    json_object_set_new(j, "phase", crdi_json_number(100 * l->phase));
    return j;
}

static json_t* findings_json(const findings* f)
{
    json_t* j = json_object();
    json_object_set_new(j, "limits", limits_json(&f->limits));
    json_t* peaks = json_array();
    for (int i = 0; i < f->peak_count; i++) {
        json_array_append_new(peaks, json_pack("[o, o]", crdi_json_number(f->peaks[i].gain),
                                               crdi_json_number(f->peaks[i].omega)));
    }
    json_object_set_new(j, "peaks", peaks);
    json_object_set_new(j, "dc", crdi_json_number(f->dc));
    json_object_set_new(j, "norm", crdi_json_number(f->norm));
    json_object_set_new(j, "a", numbers_json(f->e->a, f->e->m));
    json_object_set_new(j, "A", numbers_json(f->e->A, f->e->m));
    if (f->patterns) {
        json_object_set_new(j, "bias", crdi_json_number(f->bias));
        json_object_set_new(j, "patterns", json_integer(f->patterns));
    }
    return j;
}

static json_t* case_json(const element_case* c, const crdi_analyze_options* o)
{
    json_t* j = json_object();
    json_object_set_new(j, "element", crdi_json_text(c->element->label));
    json_object_set_new(j, "k", json_integer(c->k));
    json_object_set_new(j, "step", crdi_json_number(c->step));
    json_object_set_new(j, "nyquist", crdi_json_number(M_PI / c->step));
    json_object_set_new(j, "tolerance",
                        json_pack("{s:f, s:f}", "magnitude", o->magnitude, "phase", o->phase));
    json_t* of_piece = findings_json(&c->pieces[c->highest]);
    json_object_update(j, of_piece);
    json_decref(of_piece);
    json_object_set_new(j, "limits", limits_json(&c->worst));
    if (c->linears.patterns) {
        json_t* pieces = json_array();
        for (int i = 0; i < c->linears.count; i++) {
            json_array_append_new(pieces, findings_json(&c->pieces[i]));
        }
        json_object_set_new(j, "pieces", pieces);
    }
    return j;
}

static crd_status print_json(const analysis* a)
{
    if (a->count == 1) { return crdi_json_print(a->cli, case_json(&a->cases[0], a->o)); }
    json_t* all = json_array();
    for (int i = 0; i < a->count; i++) {
        json_array_append_new(all, case_json(&a->cases[i], a->o));
    }
    return crdi_json_print(a->cli, all);
}

static void add_limit(crdi_grid* g, double part, int side, const char* up, const char* down)
{
    if (isinf(part)) {
        crdi_grid_add(g, "%s", "kept");
        crdi_grid_add(g, "%s", "");
    } else {
        crdi_grid_add(g, "%.7f", 100 * part);
        crdi_grid_add(g, "%s", side > 0 ? up : down);
    }
}

static void add_row(crdi_grid* g, const element_case* c, int piece, const crd_limits* l)
{
    const findings* f = &c->pieces[piece < 0 ? c->highest : piece];
    if (piece < 0) {
        crdi_grid_add(g, "%s", c->element->label);
        crdi_grid_add(g, "%d", c->k);
    } else {
        crdi_grid_add(g, "  piece %d", piece + 1);
        crdi_grid_add(g, "%s", "");
    }
    add_limit(g, l->magnitude, l->magnitude_side, "amplifies", "damps");
    add_limit(g, l->phase, l->phase_side, "leads", "lags");
    if (f->highest >= 0) {
        crdi_grid_add(g, "%.6f", f->peaks[f->highest].gain);
        crdi_grid_add(g, "%.4f", f->peaks[f->highest].omega);
    } else {
        crdi_grid_add(g, "%s", "none");
        crdi_grid_add(g, "%s", "");
    }
    crdi_grid_add(g, "%.6g", f->dc);
    crdi_grid_add(g, "%.6g", f->norm);
}

static void print_peaks(const analysis* a)
{
    const element_case* c = &a->cases[0];
    const findings* f = &c->pieces[c->highest];
    if (f->peak_count < 2) { return; }
    crdi_grid g;
    crdi_grid_init(&g, a->cli->ctx, 3, 7);
    crdi_grid_add(&g, "%s", "gain peak");
    crdi_grid_add(&g, "%s", "at [rad/s]");
    crdi_grid_add(&g, "%s", "of Nyquist");
    for (int i = 0; i < f->peak_count && i < 16; i++) {
        crdi_grid_add(&g, "%.6f", f->peaks[i].gain);
        crdi_grid_add(&g, "%.4f", f->peaks[i].omega);
        crdi_grid_add(&g, "%.2f %%", 100 * f->peaks[i].omega * c->step / M_PI);
    }
    printf("\n");
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
    if (f->peak_count > 16) { printf("and %d more up to 2 pi / dT\n", f->peak_count - 16); }
}

static void print_head(const analysis* a)
{
    char text[32];
    const double step = a->cases[0].step;
    bool same = true;
    for (int i = 1; i < a->count; i++) {
        same = same && a->cases[i].step == step;
    }
    if (same) {
        printf("macro step %s, Nyquist frequency %.6g rad/s; limits in per cent of it",
               crdi_format_seconds(text, step), M_PI / step);
    } else {
        printf("limits in per cent of the Nyquist frequency pi / step, each element with its own "
               "step");
    }
    printf(", where the magnitude is off by %g %% and the phase by %g deg\n\n", a->o->magnitude,
           a->o->phase);
}

static void print_table(const analysis* a)
{
    static const char* const titles[] = {"element", "k",    "magnitude [%]", "",   "phase [%]",
                                         "",        "peak", "at [rad/s]",    "dc", "norm"};
    print_head(a);
    crdi_grid g;
    crdi_grid_init(&g, a->cli->ctx, 10, 0x3D6);
    for (int i = 0; i < 10; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int i = 0; i < a->count; i++) {
        const element_case* c = &a->cases[i];
        add_row(&g, c, -1, &c->worst);
        for (int p = 0; p < c->linears.count && c->linears.count > 1; p++) {
            add_row(&g, c, p, &c->pieces[p].limits);
        }
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
    if (a->count == 1) { print_peaks(a); }
    for (int i = 0; i < a->count; i++) {
        const element_case* c = &a->cases[i];
        if (c->linears.patterns) {
            printf("\n%s: %d linear piece%s", c->element->label, c->linears.count,
                   crdi_plural(c->linears.count));
            printf(c->linears.count > 1 ? ", the row above has the worst of each\n" : "\n");
        }
    }
}

crd_status crdi_analyze_elements(crdi_cli* cli, const crdi_analyze_options* o,
                                 const crdi_list* arguments)
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
        CRD_TRY(examine(&a, &a.cases[i]));
    }
    if (o->csv || o->plot || o->omega) {
        CRD_TRY(find_frequencies(&a));
        CRD_TRY(all_bode(&a, &b));
    }
    if (o->csv) { CRD_TRY(write_csv(&a, &b)); }
    if (o->plot) { CRD_TRY(draw(&a, &b)); }
    if (o->common.json) {
        CRD_TRY(print_json(&a));
    } else {
        print_table(&a);
        CRD_TRY(crdi_stdout_done(cli->ctx));
    }
fail:
    drop_cases(&a);
    crd_arena_clear(&a.arena);
    return st;
}
