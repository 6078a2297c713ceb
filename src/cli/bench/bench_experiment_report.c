// Files of `cardan bench experiment`: series, drawings and the report.
#include "cli/bench/bench_experiment.h"

#include "cardan/analysis.h"
#include "cardan/results.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { BODE_POINTS = 400 };

typedef struct writing {
    const crdi_bench_experiment* e;
    crd_context* ctx;
    crd_arena arena;
    const char* folder;
} writing;

static const char* path_of(writing* w, const char* name, const char* ending)
{
    return crdi_arena_format(&w->arena, "%s/%s%s", w->folder, name, ending);
}

static crd_status open_file(writing* w, const char* path, FILE** out)
{
    if (!path) { return CRD_E_MEMORY; }
    *out = fopen(path, "we");
    return *out ? CRD_OK : crdi_fail(w->ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
}

static crd_status close_file(writing* w, const char* path, FILE* f)
{
    const bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) {
        return crdi_fail(w->ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
    }
    return CRD_OK;
}

// ---- series ------------------------------------------------------------------------------------

static crd_status write_series(writing* w, const crdi_bench_run* r)
{
    FILE* f = NULL;
    const char* path = path_of(w, r->id, ".csv");
    const crd_status st = open_file(w, path, &f);
    if (st < 0) { return st; }
    fprintf(f, "time [s],sent [N.m],received [N.m],shaft_speed [rad/s],speed [m/s],target [m/s]\n");
    for (int64_t n = 0; n < w->e->count; n++) {
        const double x[] = {w->e->time[n],     r->sent[n],  r->received[n],
                            r->shaft_speed[n], r->speed[n], r->target[n]};
        for (int i = 0; i < 6; i++) {
            char text[32];
            crdi_format_double(text, x[i]);
            fprintf(f, "%s%s", i ? "," : "", text);
        }
        fputc('\n', f);
    }
    return close_file(w, path, f);
}

// ---- drawings ----------------------------------------------------------------------------------

static crd_plot_series series_of(const writing* w, const crdi_bench_run* r, bool dashed)
{
    return (crd_plot_series){.label = r->name,
                             .x = w->e->time,
                             .y = r->received,
                             .count = w->e->count,
                             .dashed = dashed};
}

// As Figure 10: the torque at the car's input for each configuration, that of ZOH behind it.
static crd_status draw_torque(writing* w)
{
    enum { FIRST = CRDI_BENCH_FOH, PANELS = CRDI_BENCH_CASES - FIRST + 1 };
    crd_plot_series lines[PANELS][2];
    crd_plot_panel panels[PANELS];
    for (int i = 0; i < PANELS; i++) {
        const crdi_bench_run* r = &w->e->runs[i + 1 < PANELS ? FIRST + i : (int)CRDI_BENCH_IDEAL];
        lines[i][0] = series_of(w, r, false);
        lines[i][1] = series_of(w, &w->e->runs[CRDI_BENCH_ZOH], true);
        panels[i] = (crd_plot_panel){
            .title = r->name, .y_label = "N.m", .series = lines[i], .series_count = 2};
    }
    const char* path = path_of(w, "torque", ".svg");
    if (!path) { return CRD_E_MEMORY; }
    return crd_plot_svg(w->ctx, path, "Shaft torque at the car's input", "time [s]", panels,
                        PANELS);
}

// The weights of an element at this latency; of a network those of the piece it uses at a constant
// torque. `out` is in the arena.
static crd_status linear_of(writing* w, const crdi_bench_run* r, crd_linear* out)
{
    crd_status st = CRD_OK;
    crd_element* element = NULL;
    CRD_TRY(crd_element_parse(w->ctx, r->element, strlen(r->element), r->id, 1, &element));
    const crd_network* n = element->options.network;
    if (n && element->options.algorithm == CRD_ALGORITHM_NETWORK) {
        crd_pieces pieces;
        double* y = crdi_arena_new(&w->arena, (size_t)n->m, sizeof *y);
        if (!y) { CRD_TRY(CRD_E_MEMORY); }
        for (int i = 0; i < n->m; i++) {
            y[i] = 100; // N.m
        }
        CRD_TRY(crd_network_pieces(w->ctx, &w->arena, n, w->e->k, &pieces));
        const int piece = pieces.of_pattern[crd_network_pattern(n, y)];
        *out = pieces.linear[piece < 0 ? 0 : piece];
    } else {
        crd_linear l = {0};
        CRD_TRY(crd_element_linear(element, w->e->options.step, w->e->k, &l));
        double* a = crdi_arena_new(&w->arena, 2 * (size_t)l.m, sizeof *a);
        if (a) {
            memcpy(a, l.a, (size_t)l.m * sizeof *a);
            if (l.A) { memcpy(a + l.m, l.A, (size_t)l.m * sizeof *a); }
            *out = (crd_linear){l.m, l.k, a, l.A ? a + l.m : NULL, l.b};
        }
        crd_linear_clear(w->ctx, &l);
        if (!a) { CRD_TRY(CRD_E_MEMORY); }
    }
fail:
    crd_element_destroy(element);
    return st;
}

static crd_status draw_bode(writing* w)
{
    static const crdi_bench_case which[] = {CRDI_BENCH_ZOH,     CRDI_BENCH_FOH,
                                            CRDI_BENCH_EROS,    CRDI_BENCH_OPTIMAL,
                                            CRDI_BENCH_TRAINED, CRDI_BENCH_LEAST_SQUARES};
    enum { COUNT = sizeof which / sizeof *which };
    crd_status st = CRD_OK;
    const double dT = w->e->options.step;
    double* omega = crdi_arena_new(&w->arena, BODE_POINTS, sizeof *omega);
    double* y = crdi_arena_new(&w->arena, (size_t)2 * COUNT * BODE_POINTS, sizeof *y);
    crd_bode_point* points = crdi_arena_new(&w->arena, BODE_POINTS, sizeof *points);
    if (!omega || !y || !points) { return CRD_E_MEMORY; }
    crd_plot_series lines[2 * COUNT];
    CRD_TRY(crd_frequency_grid(w->ctx, 0.1, M_PI / dT, BODE_POINTS, true, omega));
    for (int i = 0; i < COUNT; i++) {
        crd_linear l;
        CRD_TRY(linear_of(w, &w->e->runs[which[i]], &l));
        CRD_TRY(crd_analysis_bode(w->ctx, &l, dT, omega, BODE_POINTS, points));
        double* gain = y + (size_t)i * BODE_POINTS;
        double* phase = gain + (size_t)COUNT * BODE_POINTS;
        for (int k = 0; k < BODE_POINTS; k++) {
            gain[k] = points[k].gain;
            phase[k] = points[k].phase_deg;
        }
        const crd_plot_series s = {.label = w->e->runs[which[i]].name,
                                   .x = omega,
                                   .count = BODE_POINTS,
                                   .dashed = which[i] == CRDI_BENCH_ZOH};
        lines[i] = lines[COUNT + i] = s;
        lines[i].y = gain;
        lines[COUNT + i].y = phase;
    }
    const crd_plot_panel panels[2] = {
        {.title = "gain", .y_label = "", .series = lines, .series_count = COUNT},
        {.title = "phase", .y_label = "deg", .series = lines + COUNT, .series_count = COUNT}};
    const crd_plot_scale scales[2] = {{.log_y = true}, {.y_low = -360, .y_high = 90}};
    const crd_plot_options opt = {.title = "The coupling process of the torque",
                                  .x_label = "omega [rad/s]",
                                  .log_x = true,
                                  .scales = scales};
    const char* path = path_of(w, "bode", ".svg");
    if (!path) { return CRD_E_MEMORY; }
    CRD_TRY(crd_plot_svg_scaled(w->ctx, path, &opt, panels, 2));
fail:
    return st;
}

static crd_status draw_spectrum(writing* w)
{
    crd_spectrum s = {0};
    const crdi_bench_run* r = &w->e->runs[CRDI_BENCH_ZOH];
    const char* path = path_of(w, "spectrum", ".svg");
    if (!path) { return CRD_E_MEMORY; }
    crd_status st = crd_analysis_spectrum(w->ctx, r->sent, w->e->count, w->e->options.step, 0, &s);
    if (st < 0) { return st; }
    const crd_plot_series line = {
        .label = "power density", .x = s.omega, .y = s.density, .count = s.bins};
    const crd_plot_panel panel = {
        .title = "", .y_label = "N2m2s", .series = &line, .series_count = 1};
    const crd_plot_scale scale = {.log_y = true};
    const crd_plot_options opt = {.title = "Spectrum of the torque at the bench, with ZOH",
                                  .x_label = "omega [rad/s]",
                                  .scales = &scale};
    st = crd_plot_svg_scaled(w->ctx, path, &opt, &panel, 1);
    crd_spectrum_clear(w->ctx, &s);
    return st;
}

// ---- the report --------------------------------------------------------------------------------

static void bench_experiment_report_put_table(crd_text* t, const crdi_experiment_table* table)
{
    crdi_text_add(t, "<h2>");
    crdi_text_xml(t, table->title);
    crdi_text_add(t, "</h2>\n<table>\n");
    for (int i = 0; i < table->rows; i++) {
        crdi_text_add(t, "<tr>");
        for (int j = 0; j < table->columns; j++) {
            const char* cell = i ? "td" : "th";
            crdi_text_add(t, table->right >> j & 1 ? "<%s class=\"n\">" : "<%s>", cell);
            crdi_text_xml(t, table->cells[i][j]);
            crdi_text_add(t, "</%s>", cell);
        }
        crdi_text_add(t, "</tr>\n");
    }
    crdi_text_add(t, "</table>\n<p class=\"note\">");
    crdi_text_xml(t, table->note);
    crdi_text_add(t, "</p>\n");
}

// As a picture of its own inside the page: styles and names of one do not reach the others.
static crd_status put_drawing(writing* w, crd_text* t, const char* name, const char* caption)
{
    const char* path = path_of(w, name, ".svg");
    if (!path) { return CRD_E_MEMORY; }
    crd_text svg;
    crd_text_init(&svg, w->ctx);
    const crd_status st = crdi_file_read(
        w->ctx, path, &(crdi_file_need){.what = "a drawing", .most = 64 << 20}, &svg);
    crdi_text_add(t, "<figure><img alt=\"%s\" src=\"data:image/svg+xml;base64,", caption);
    crdi_text_base64(t, svg.data, svg.length);
    crdi_text_add(t, "\"><figcaption>%s</figcaption></figure>\n", caption);
    crd_text_clear(&svg);
    return st;
}

static crd_status bench_experiment_report_put_report(writing* w, crd_text* t)
{
    crd_status st = CRD_OK;
    crdi_experiment_table table;
    crd_text setup;
    crd_text_init(&setup, w->ctx);
    crdi_text_add(t, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<title>Latency between a car and its engine on a bench</title>\n<style>\n"
                     "body { font: 15px/1.5 sans-serif; max-width: 62rem; margin: 2rem auto; "
                     "padding: 0 1rem; color: #222; background: #fff }\n"
                     "table { border-collapse: collapse; margin: 1rem 0 }\n"
                     "th, td { padding: 0.15rem 0.7rem; border-bottom: 1px solid #ddd; "
                     "text-align: left }\n"
                     ".n { text-align: right; font-variant-numeric: tabular-nums }\n"
                     ".note { color: #666; font-size: 13px }\n"
                     "figure { margin: 1.5rem 0 } img { width: 100%%; height: auto }\n"
                     "figcaption { color: #666; font-size: 13px }\n</style>\n</head>\n<body>\n"
                     "<h1>Latency between a car and its engine on a bench</h1>\n<p>");
    CRD_TRY(crdi_experiment_setup(w->e, &setup));
    crdi_text_xml(t, setup.data);
    crdi_text_add(t, "</p>\n");
    CRD_TRY(crdi_experiment_errors(w->e, &w->arena, &table));
    bench_experiment_report_put_table(t, &table);
    CRD_TRY(crdi_experiment_behaviour(w->e, &w->arena, &table));
    bench_experiment_report_put_table(t, &table);
    CRD_TRY(crdi_experiment_goals(w->e, &w->arena, &table));
    bench_experiment_report_put_table(t, &table);
    crdi_text_add(t, "<h2>Where it differs from the paper</h2>\n<ul>\n");
    for (int i = 0; i < w->e->remark_count; i++) {
        crdi_text_add(t, "<li>");
        crdi_text_xml(t, w->e->remarks[i]);
        crdi_text_add(t, "</li>\n");
    }
    crdi_text_add(t, "</ul>\n<h2>Drawings</h2>\n");
    CRD_TRY(put_drawing(w, t, "torque",
                        "Each configuration and ZOH (dashed), as Figure 10 of the paper."));
    CRD_TRY(put_drawing(w, t, "spectrum", "What the torque consists of, as Figure 9a."));
    CRD_TRY(put_drawing(w, t, "bode",
                        "What the elements do to it, as Figure 9b; networks at constant torque."));
    crdi_text_add(t,
                  "<p class=\"note\">Baumann, Kotte, Mikelsons, Schramm 2024: Enhancing the "
                  "Coupling of Real-Virtual Prototypes, Electronics 13, 1077. Cardan %s.</p>\n"
                  "</body>\n</html>\n",
                  crd_version());
    if (t->failed) { CRD_TRY(CRD_E_MEMORY); }
fail:
    crd_text_clear(&setup);
    return st;
}

static crd_status bench_experiment_report_write_report(writing* w)
{
    crd_status st = CRD_OK;
    FILE* f = NULL;
    crd_text t;
    crd_text_init(&t, w->ctx);
    const char* path = path_of(w, "report", ".html");
    CRD_TRY(bench_experiment_report_put_report(w, &t));
    CRD_TRY(open_file(w, path, &f));
    fwrite(t.data, 1, t.length, f);
    CRD_TRY(close_file(w, path, f));
fail:
    crd_text_clear(&t);
    return st;
}

crd_status crdi_experiment_write(const crdi_bench_experiment* e, const char* folder)
{
    crd_status st = CRD_OK;
    writing w = {.e = e, .ctx = e->ctx, .folder = folder};
    crd_arena_init(&w.arena, e->ctx);
    for (int i = 0; i < CRDI_BENCH_CASES; i++) {
        CRD_TRY(write_series(&w, &e->runs[i]));
    }
    CRD_TRY(draw_torque(&w));
    CRD_TRY(draw_bode(&w));
    CRD_TRY(draw_spectrum(&w));
    CRD_TRY(bench_experiment_report_write_report(&w));
fail:
    crd_arena_clear(&w.arena);
    return st;
}
