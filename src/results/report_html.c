// The report as one HTML page: style, tables, drawing, data and scripts, all inside.
//
// A line of a plot is base64 of n values as Float64, then n times: row numbers as Uint32 where the
// raster is regular, else Float64. So the cursor shows what the file holds, to the last digit; 32
// bits would halve the size but show steps where a small ripple rides on a large value.
#include "results/report.h"

#include <math.h>
#include <string.h>

static void put_asset(crdi_doc* d, const crdi_asset* a)
{
    crdi_doc_bytes(d, a->data, a->length);
}

static void report_html_put_head(crdi_doc* d, const char* title)
{
    crdi_doc_put(d, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<meta name=\"generator\" content=\"Cardan " CRD_VERSION "\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n"
                    "<title>");
    crdi_doc_text(d, title);
    crdi_doc_put(d, "</title>\n<style>\n");
    put_asset(d, &crdi_page_css);
    crdi_doc_put(d, "</style>\n<script>\n"
                    "(function(){var h=location.hash.slice(1),s=null;"
                    "try{s=localStorage.getItem(\"cardan-theme\")}catch(e){}"
                    "document.documentElement.dataset.theme=h==\"dark\"||h==\"light\"?h:"
                    "s==\"dark\"||s==\"light\"?s:"
                    "matchMedia(\"(prefers-color-scheme: dark)\").matches?\"dark\":\"light\"})()\n"
                    "</script>\n</head>\n<body>\n");
}

static crdi_state worst_state(const crdi_report* r)
{
    crdi_state worst = CRDI_GOOD;
    for (int i = 0; i < r->part_count; i++) {
        if (r->parts[i].state > worst) { worst = r->parts[i].state; }
    }
    return worst;
}

void crdi_report_html_head(crdi_doc* d, const char* title, crdi_state state)
{
    report_html_put_head(d, title);
    crdi_text_add(&d->text, "<header class=\"top %s\">\n<div class=\"line\"><h1>",
                  crdi_state_word(state));
    crdi_doc_text(d, title);
    crdi_doc_put(d, "</h1>\n<button type=\"button\" id=\"theme\" class=\"control\" "
                    "aria-pressed=\"false\" hidden>Dark</button></div>\n");
}

static void put_header(crdi_doc* d, const crdi_report* r)
{
    crdi_report_html_head(d, r->title, worst_state(r));
    crdi_report_summary(d, r);
    crdi_doc_put(d,
                 "</header>\n<main>\n<noscript><p class=\"verdict doubtful\">The plots are drawn "
                 "by a script inside this file; this browser runs none. The tables are "
                 "complete.</p></noscript>\n");
}

static crd_status report_html_put_system(crdi_doc* d, const crdi_report* r)
{
    const crdi_json* what = crdi_report_drawn(r);
    crd_text svg;
    crd_text_init(&svg, r->ctx);
    const crd_status st = crdi_report_drawing(r->ctx, what, false, &svg);
    if (st == CRD_OK && svg.length) {
        crdi_doc_heading(d, 2, "system", "System");
        crdi_doc_drawing(d, "Drawing of the system", &svg);
    } else if (st == CRD_OK &&
               crdi_json_count(crdi_json_get_list(what, "units")) > CRDI_MOST_BOXES) {
        crdi_doc_heading(d, 2, "system", "System");
        crdi_doc_paragraph(d,
                           "%d units are too many for a drawing; the connections are listed "
                           "below.",
                           crdi_json_count(crdi_json_get_list(what, "units")));
    }
    crd_text_clear(&svg);
    return st;
}

// ---- plots -------------------------------------------------------------------------------------

// What the search box looks for: names in small letters are made by the script.
static void put_figure(crdi_doc* d, const crdi_report* r, int at)
{
    const crdi_report_plot* p = &r->plots[at];
    crdi_text_add(&d->text, "<figure class=\"plot\" id=\"plot-%d\" data-plot=\"%d\" data-names=\"",
                  at, at);
    for (int i = 0; i < p->count; i++) {
        if (i) { crdi_doc_put(d, " "); }
        crdi_doc_text(d, r->signals[p->signals[i]].name);
    }
    crdi_doc_put(d, "\"><figcaption><b>");
    crdi_doc_text(d, p->title);
    crdi_doc_put(d, "</b>");
    if (*p->unit) {
        crdi_doc_put(d, " <span class=\"unit\">");
        crdi_doc_text(d, p->unit);
        crdi_doc_put(d, "</span>");
    }
    crdi_doc_put(d, "</figcaption><div class=\"chart\"></div></figure>\n");
}

static void put_plots(crdi_doc* d, const crdi_report* r)
{
    crdi_doc_put(d, "<div class=\"line\">");
    crdi_doc_heading(d, 2, "signals", "Signals");
    if (r->plot_count == 0) {
        crdi_doc_put(d, "</div>\n");
        crdi_doc_paragraph(d, "There is nothing to draw.");
        return;
    }
    crdi_doc_put(d,
                 "<div class=\"control tools\"><label>Filter <input type=\"search\" id=\"filter\" "
                 "placeholder=\"name or unit\" autocomplete=\"off\"></label> "
                 "<button type=\"button\" id=\"reset\">Whole time</button> "
                 "<output id=\"found\" for=\"filter\"></output></div></div>\n"
                 "<p class=\"control hint\">Drag to zoom in time, double click to see all of it "
                 "again, click a name to hide its line.</p>\n");
    const char* owner = "";
    for (int i = 0; i < r->plot_count; i++) {
        if (strcmp(owner, r->plots[i].owner) != 0) {
            owner = r->plots[i].owner;
            crdi_doc_put(d, "<h3 class=\"owner\">");
            crdi_doc_text(d, owner);
            crdi_doc_put(d, "</h3>\n");
        }
        put_figure(d, r, i);
    }
}

static void report_html_put_number(crdi_doc* d, double x)
{
    crdi_text_json_number(&d->text, x);
}

static void put_labels(crdi_doc* d, const crd_signal_info* s)
{
    crdi_doc_put(d, ",\"labels\":[");
    for (int i = 0; i < s->label_count; i++) {
        crdi_text_add(&d->text, "%s[", i ? "," : "");
        report_html_put_number(d, (double)s->labels[i].value);
        crdi_doc_put(d, ",");
        crdi_text_json(&d->text, s->labels[i].text ? s->labels[i].text : "");
        crdi_doc_put(d, "]");
    }
    crdi_doc_put(d, "]");
}

static bool has_line(const crdi_report_signal* s, int part)
{
    return s->lines[part].there && s->lines[part].trace.samples > 0;
}

static void put_plot_data(crdi_doc* d, const crdi_report* r, const crdi_report_plot* p)
{
    static const char* const kinds[] = {"real", "integer", "boolean", "enumeration", "text"};
    crdi_text_add(&d->text, "{\"kind\":\"%s\",\"unit\":", kinds[p->kind]);
    crdi_text_json(&d->text, p->unit);
    if (p->kind == CRDI_KIND_ENUMERATION) { put_labels(d, r->signals[p->signals[0]].info); }
    crdi_doc_put(d, ",\"lines\":[");
    bool first = true;
    for (int i = 0; i < p->count; i++) {
        const crdi_report_signal* s = &r->signals[p->signals[i]];
        for (int n = 0; n < 2 * r->part_count; n++) { // references first: they lie behind
            const int k = n % r->part_count;
            if (!has_line(s, k) || r->parts[k].run->reference != (n < r->part_count)) { continue; }
            const crdi_report_group* g = &r->parts[k].groups[s->lines[k].group];
            crdi_text_add(&d->text, "%s{\"name\":", first ? "" : ",");
            first = false;
            crdi_text_json(&d->text, s->member);
            crdi_text_add(&d->text, ",\"signal\":%d,\"run\":%d,\"id\":\"d%d-%d\"", p->band ? 0 : i,
                          k, p->signals[i], k);
            if (p->band && i) {
                crdi_doc_put(d, i == 1 ? ",\"band\":\"low\"" : ",\"band\":\"high\"");
            }
            if (g->regular && g->rows > 1) {
                crdi_doc_put(d, ",\"t0\":");
                report_html_put_number(d, g->t0);
                crdi_doc_put(d, ",\"dt\":");
                report_html_put_number(d, (g->last - g->t0) / (double)(g->rows - 1));
            }
            crdi_doc_put(d, "}");
        }
    }
    crdi_doc_put(d, "]}");
}

static void put_event_data(crdi_doc* d, const crdi_report* r)
{
    enum { MOST = 5000 };
    static const char* const kinds[CRD_EVENT_KIND_COUNT] = {"start",   "stop",  "warning",
                                                            "overrun", "error", "mark"};
    int n = 0;
    crdi_doc_put(d, ",\n\"events\":[");
    for (int i = 0; i < r->part_count; i++) {
        const crd_recording_info* info = r->parts[i].info;
        for (int k = 0; k < info->event_count && n < MOST; k++) {
            const crd_event_info* e = &info->events[k];
            if (!isfinite(e->time) || e->kind <= CRD_EVENT_STOP ||
                e->kind >= CRD_EVENT_KIND_COUNT) {
                continue;
            }
            crdi_text_add(&d->text, "%s[", n++ ? "," : "");
            report_html_put_number(d, e->time);
            crdi_text_add(&d->text, ",\"%s\"]", kinds[e->kind]);
        }
    }
    crdi_doc_put(d, "]");
}

static void put_description(crdi_doc* d, const crdi_report* r)
{
    crdi_doc_put(d, "<script type=\"application/json\" id=\"cardan\">\n{\"start\":");
    report_html_put_number(d, r->start);
    crdi_doc_put(d, ",\"stop\":");
    report_html_put_number(d, r->stop);
    crdi_doc_put(d, ",\n\"runs\":[");
    for (int i = 0; i < r->part_count; i++) {
        crdi_text_add(&d->text, "%s{\"label\":", i ? "," : "");
        crdi_text_json(&d->text, r->parts[i].label);
        crdi_text_add(&d->text, ",\"reference\":%s}",
                      r->parts[i].run->reference ? "true" : "false");
    }
    crdi_doc_put(d, "]");
    put_event_data(d, r);
    crdi_doc_put(d, ",\n\"plots\":[\n");
    for (int i = 0; i < r->plot_count; i++) {
        if (i) { crdi_doc_put(d, ",\n"); }
        put_plot_data(d, r, &r->plots[i]);
    }
    crdi_doc_put(d, "\n]}\n</script>\n");
}

// ---- data --------------------------------------------------------------------------------------

static void put_u64(unsigned char* p, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++) { // little endian, as every browser's machine
        p[i] = (unsigned char)(x >> 8 * i);
    }
}

static void report_html_put_double(unsigned char* p, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_u64(p, bits, 8);
}

static crd_status put_lines(crdi_doc* d, const crdi_report* r)
{
    unsigned char* bytes = crdi_new_array(r->ctx, (size_t)r->scratch_most, 16);
    if (!bytes) { return CRD_E_MEMORY; }
    for (int i = 0; i < r->signal_count; i++) {
        const crdi_report_signal* s = &r->signals[i];
        if (s->kind == CRDI_KIND_TEXT) { continue; }
        for (int k = 0; k < r->part_count; k++) {
            if (!has_line(s, k)) { continue; }
            const crdi_report_group* g = &r->parts[k].groups[s->lines[k].group];
            const bool regular = g->regular && g->rows > 1;
            const size_t n = (size_t)crdi_trace_points(&s->lines[k].trace, r->scratch);
            const size_t wide = regular ? 4 : 8;
            for (size_t j = 0; j < n; j++) {
                const crdi_point* p = &r->scratch[j];
                unsigned char* time = bytes + 8 * n + wide * j;
                report_html_put_double(bytes + 8 * j, p->value);
                if (regular) {
                    put_u64(time, (uint64_t)p->row, 4);
                } else {
                    report_html_put_double(time, p->time);
                }
            }
            crdi_text_add(&d->text, "<script type=\"text/plain\" id=\"d%d-%d\">", i, k);
            crdi_doc_base64(d, bytes, n * (8 + wide));
            crdi_doc_put(d, "</script>\n");
        }
    }
    crd_free(r->ctx, bytes);
    return CRD_OK;
}

// One module: what chart.js exports stands above what uses it.
static void put_scripts(crdi_doc* d)
{
    crdi_doc_put(d, "<script type=\"module\">\n");
    put_asset(d, &crdi_chart_js);
    put_asset(d, &crdi_page_js);
    crdi_doc_put(d, "</script>\n");
}

const void* crdi_chart(size_t* length)
{
    *length = crdi_chart_js.length;
    return crdi_chart_js.data;
}

crd_status crdi_report_html(crdi_report* r, crdi_doc* d)
{
    put_header(d, r);
    crd_status st = report_html_put_system(d, r);
    if (st < 0) { return st; }
    st = crdi_report_what_ran(d, r);
    if (st < 0) { return st; }
    put_plots(d, r);
    crdi_report_texts(d, r);
    crdi_report_tables(d, r);
    crdi_doc_put(d, "</main>\n<footer><p>Made by Cardan " CRD_VERSION
                    ". Everything is inside this file: it needs no network.</p></footer>\n");
    put_description(d, r);
    st = put_lines(d, r);
    if (st < 0) { return st; }
    put_scripts(d);
    crdi_doc_put(d, "</body>\n</html>\n");
    return CRD_OK;
}
