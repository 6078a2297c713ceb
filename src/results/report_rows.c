// Tables whose rows are objects of JSON: a column says its title, its member and how that is shown.
#include "results/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char* crdi_text_or_dash(const char* text)
{
    return *text ? text : "\u2013";
}

const char* crdi_percent_text(char out[CRDI_CELL], double x)
{
    char number[32];
    crdi_number_text(number, 100 * x, 3);
    snprintf(out, CRDI_CELL, "%s%s", number, isfinite(x) ? "\u00A0%" : "");
    return out;
}

const char* crdi_connection_text(const crdi_json* row, char out[CRDI_CELL])
{
    return crdi_doc_format(out, CRDI_CELL, "%s \u2192 %s",
                           crdi_text_or_dash(crdi_json_get_text(row, "from")),
                           crdi_text_or_dash(crdi_json_get_text(row, "to")));
}

static const char* cell_text(const crdi_doc_column* c, const crdi_json* row, char out[CRDI_CELL])
{
    const double x = crdi_json_get_number(row, c->key);
    switch (c->kind) {
    case CRDI_CELL_TEXT:
        return crdi_text_or_dash(crdi_json_get_text(row, c->key));
    case CRDI_CELL_SECONDS:
        return crdi_seconds_text(out, x);
    case CRDI_CELL_PERCENT:
        return crdi_percent_text(out, x);
    case CRDI_CELL_NUMBER:
        break;
    }
    return crdi_number_text(out, x, c->digits);
}

void crdi_doc_columns(crdi_doc* d, const char* caption, const crdi_doc_column* columns, int count)
{
    char titles[512];
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        n +=
            (size_t)snprintf(titles + n, sizeof titles - n, "%s%s", i ? "|" : "", columns[i].title);
        d->own_align[i] = columns[i].kind == CRDI_CELL_TEXT ? 'l' : 'r';
    }
    d->own_align[count] = 0;
    crdi_doc_table(d, caption, d->own_align, titles);
}

void crdi_doc_row(crdi_doc* d, const crdi_doc_column* columns, int count, const crdi_json* row)
{
    for (int i = 0; i < count; i++) {
        const crdi_doc_column* c = &columns[i];
        const crdi_json* of = c->part ? crdi_json_get_object(row, c->part) : row;
        char text[CRDI_CELL];
        const char* shown = c->make ? c->make(of, text) : cell_text(c, of, text);
        crdi_doc_cell_tip(d, shown, c->tip ? crdi_json_get_text(of, c->tip) : "");
    }
}

void crdi_doc_rows(crdi_doc* d, const char* caption, const crdi_doc_column* columns, int count,
                   const crdi_json* list, bool (*wanted)(const crdi_json* row))
{
    bool any = false;
    for (const crdi_json* row = crdi_json_first(list); row; row = row->next) {
        if (wanted && !wanted(row)) { continue; }
        if (!any) { crdi_doc_columns(d, caption, columns, count); }
        any = true;
        crdi_doc_row(d, columns, count, row);
    }
    if (any) { crdi_doc_table_end(d); }
}

void crdi_doc_sentences(crdi_doc* d, const crdi_json* texts)
{
    if (crdi_json_count(texts) == 0) { return; }
    crdi_doc_put(d, d->html ? "<ul class=\"advice\">\n" : "\n");
    for (const crdi_json* t = crdi_json_first(texts); t; t = t->next) {
        if (t->kind != CRDI_JSON_TEXT) { continue; }
        crdi_doc_put(d, d->html ? "<li>" : "- ");
        crdi_doc_text(d, t->text);
        crdi_doc_put(d, d->html ? "</li>\n" : "\n");
    }
    crdi_doc_put(d, d->html ? "</ul>\n" : "");
}

// ---- charts ------------------------------------------------------------------------------------

void crdi_svg_clip(char* out, const char* text, int most)
{
    size_t n = 0;
    for (int count = 0; text[n]; n++) {
        count += ((unsigned char)text[n] & 0xC0) != 0x80;
        if (count > most) { break; }
        out[n] = text[n];
    }
    strcpy(out + n, text[n] ? "\u2026" : "");
}

void crdi_svg_begin(crd_text* t, const char* class, const char* label, int width, int height)
{
    crdi_text_add(t,
                  "<svg class=\"%s\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                  "aria-label=\"%s\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
                  "style=\"--width:%dpx\">\n",
                  class, label, width, height, width, height, width);
}

// Colours come from the page that holds it, or are its own.
void crdi_svg_begin_chart(crd_text* t, const char* class, const char* label, int width, int height,
                          bool alone)
{
    crdi_svg_begin(t, class, label, width, height);
    crdi_text_add(
        t,
        "<style>.%s{--tl:var(--grid,#d1d9e0);--tt:var(--text,#1f2328);--tm:var(--muted,#59636e);"
        "--ta:var(--accent,#0969da);--tr:var(--return,#bc4c00)}\n"
        ".%s text{" CRDI_SVG_FONT "}.%s .title{font-weight:600}"
        ".%s .tick{font-size:11px;fill:var(--tm)}.%s .grid{stroke:var(--tl);fill:none}",
        class, class, class, class, class);
    crdi_text_add(t,
                  ".%s .bar{fill:var(--ta)}.%s .above{fill:var(--tr)}"
                  ".%s .limit{stroke:var(--tt);fill:none;stroke-width:1.5;stroke-dasharray:5 4}\n",
                  class, class, class);
    if (alone) {
        crdi_text_add(t,
                      "@media(prefers-color-scheme:dark){.%s{--tl:#343b45;--tt:#e6edf3;"
                      "--tm:#9198a1;--ta:#4ea1ff;--tr:#f0883e}}\n",
                      class);
    }
    crdi_text_add(t, "</style>\n");
}

void crdi_doc_drawing(crdi_doc* d, const char* label, const crd_text* svg)
{
    crdi_text_add(&d->text,
                  "<div class=\"scroll drawing\" tabindex=\"0\" role=\"group\" "
                  "aria-label=\"%s\">",
                  label);
    crdi_doc_bytes(d, svg->data, svg->length);
    crdi_doc_put(d, "</div>\n");
}

crd_status crdi_report_chart(crdi_report* r, crdi_doc* d, int part, const crdi_chart_words* words,
                             const crd_text* svg)
{
    if (svg->failed) { return CRD_E_MEMORY; }
    if (d->html) {
        crdi_doc_drawing(d, words->label, svg);
        return CRD_OK;
    }
    char file[32];
    snprintf(file, sizeof file, "%s-%03d.svg", words->file, part + 1);
    return crdi_report_picture(r, d, words->alt, file, svg);
}
