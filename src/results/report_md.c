// The report as Markdown: headings and tables, plots and drawing as SVG files in a folder beside
// it. Sites that show Markdown leave out pictures that stand in it as data, so they are files.
#include "results/report.h"
#include "shared/base_path.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

// "a/report.md" -> folder "a/report-plots", and its name in links
static crd_status make_folder(crdi_report* r)
{
    size_t length;
    const char* base = crdi_path_stem(r->path, &length);
    r->folder_name = crdi_arena_format(&r->arena, "%.*s-plots", (int)length, base);
    r->folder = crdi_arena_format(&r->arena, "%.*s%s", (int)(base - r->path), r->path,
                                  r->folder_name ? r->folder_name : "");
    if (!r->folder_name || !r->folder) { return CRD_E_MEMORY; }
    if (mkdir(r->folder, 0777) != 0 && errno != EEXIST) {
        return crdi_fail(r->ctx, CRD_E_IO, "%s: cannot make the folder of the plots: %s", r->folder,
                         strerror(errno));
    }
    return CRD_OK;
}

// In a link everything but letters, digits and -._~/ as %XX
static void put_link(crdi_doc* d, const char* alt, const char* folder, const char* file)
{
    crdi_doc_put(d, "\n![");
    crdi_doc_text(d, alt);
    crdi_doc_put(d, "](");
    for (const char* p = folder; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || strchr("-._~", c);
        crdi_text_add(&d->text, plain ? "%c" : "%%%02X", c);
    }
    crdi_text_add(&d->text, "/%s)\n", file);
}

crd_status crdi_report_picture(crdi_report* r, crdi_doc* d, const char* alt, const char* file,
                               const crd_text* svg)
{
    const char* path = crdi_arena_format(&r->arena, "%s/%s", r->folder, file);
    const crd_status st = path ? crdi_file_write(r->ctx, path, svg) : CRD_E_MEMORY;
    if (st == CRD_OK) { put_link(d, alt, r->folder_name, file); }
    return st;
}

static crd_status report_md_put_system(crdi_report* r, crdi_doc* d)
{
    crd_text svg;
    crd_text_init(&svg, r->ctx);
    crd_status st = crdi_report_drawing(r->ctx, crdi_report_drawn(r), true, &svg);
    if (st == CRD_OK && svg.length) {
        crdi_doc_heading(d, 2, "system", "System");
        st = crdi_report_picture(r, d, "units and their connections", "system.svg", &svg);
    }
    crd_text_clear(&svg);
    return st;
}

// The points of a line as two arrays; values that hold become stairs.
static crd_status make_series(crdi_report* r, const crdi_report_signal* s, int part,
                              crd_plot_series* out)
{
    const int64_t n = crdi_trace_points(&s->lines[part].trace, r->scratch);
    const bool stairs = s->kind != CRDI_KIND_REAL;
    double* x = crdi_new_array(r->ctx, (size_t)n * 4, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    double* y = x + 2 * n;
    int64_t k = 0;
    for (int64_t i = 0; i < n; i++) {
        const crdi_point* p = &r->scratch[i];
        if (stairs && k > 0 && isfinite(y[k - 1])) {
            x[k] = p->time;
            y[k] = y[k - 1];
            k++;
        }
        x[k] = p->time;
        y[k++] = p->value;
    }
    out->x = x;
    out->y = y;
    out->count = k;
    return CRD_OK;
}

static crd_status draw_plot(crdi_report* r, const crdi_report_plot* p, const char* path)
{
    crd_plot_series* series =
        crdi_new_array(r->ctx, (size_t)p->count * (size_t)r->part_count, sizeof *series);
    if (!series) { return CRD_E_MEMORY; }
    crd_status st = CRD_OK;
    int n = 0;
    for (int i = 0; i < p->count; i++) {
        const crdi_report_signal* s = &r->signals[p->signals[i]];
        for (int k = 0; k < r->part_count; k++) {
            if (!s->lines[k].there || s->lines[k].trace.samples == 0) { continue; }
            CRD_TRY(make_series(r, s, k, &series[n]));
            n++;
            series[n - 1].dashed = r->parts[k].run->reference || s->bounds;
            series[n - 1].label = s->member;
            if (r->part_count == 1) { continue; }
            series[n - 1].label =
                crdi_arena_format(&r->arena, "%s, %s", s->member, r->parts[k].label);
            if (!series[n - 1].label) {
                st = CRD_E_MEMORY;
                goto fail;
            }
        }
    }
    const crd_plot_panel panel = {
        .title = "", .y_label = p->unit, .series = series, .series_count = n};
    const char* title =
        *p->owner ? crdi_arena_format(&r->arena, "%s: %s", p->owner, p->title) : p->title;
    st = title ? crd_plot_svg(r->ctx, path, title, "time / s", &panel, 1) : CRD_E_MEMORY;
fail:
    for (int i = 0; i < n; i++) {
        crd_free(r->ctx, (double*)series[i].x);
    }
    crd_free(r->ctx, series);
    return st;
}

static crd_status put_plots(crdi_report* r, crdi_doc* d)
{
    const char* owner = "";
    if (r->plot_count) { crdi_doc_heading(d, 2, "signals", "Signals"); }
    for (int i = 0; i < r->plot_count; i++) {
        const crdi_report_plot* p = &r->plots[i];
        char file[32];
        snprintf(file, sizeof file, "plot-%03d.svg", i + 1);
        const char* path = crdi_arena_format(&r->arena, "%s/%s", r->folder, file);
        if (!path) { return CRD_E_MEMORY; }
        const crd_status st = draw_plot(r, p, path);
        if (st < 0) { return st; }
        if (strcmp(owner, p->owner) != 0) {
            owner = p->owner;
            crdi_doc_heading(d, 3, "", owner);
        }
        put_link(d, p->title, r->folder_name, file);
    }
    return CRD_OK;
}

crd_status crdi_report_markdown(crdi_report* r, crdi_doc* d)
{
    crd_status st = make_folder(r);
    if (st < 0) { return st; }
    crdi_doc_put(d, "# ");
    crdi_doc_text(d, r->title);
    crdi_doc_put(d, "\n");
    crdi_report_summary(d, r);
    st = report_md_put_system(r, d);
    if (st < 0) { return st; }
    st = crdi_report_what_ran(d, r);
    if (st < 0) { return st; }
    st = put_plots(r, d);
    if (st < 0) { return st; }
    crdi_report_texts(d, r);
    crdi_report_tables(d, r);
    crdi_doc_put(d, "\nMade by Cardan " CRD_VERSION ".\n");
    return CRD_OK;
}
