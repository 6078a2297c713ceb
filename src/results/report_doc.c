// The same calls write HTML or Markdown. Every text that is not ours is escaped here.
#include "results/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH_AT = 1 << 20 };

void crdi_doc_flush(crdi_doc* d)
{
    if (d->text.failed && d->st == CRD_OK) { d->st = CRD_E_MEMORY; }
    const char* p = d->text.data;
    size_t left = d->text.length;
    while (d->st == CRD_OK && left > 0) {
        const ssize_t n = write(d->fd, p, left);
        if (n < 0 && errno == EINTR) { continue; }
        if (n < 0) {
            d->st = crdi_fail(d->ctx, CRD_E_IO, "%s: cannot write the report: %s", d->path,
                              strerror(errno));
            return;
        }
        p += n;
        left -= (size_t)n;
    }
    d->text.length = 0;
}

void crdi_doc_bytes(crdi_doc* d, const void* bytes, size_t length)
{
    crdi_text_put(&d->text, bytes, length);
    if (d->text.length > FLUSH_AT) { crdi_doc_flush(d); }
}

void crdi_doc_put(crdi_doc* d, const char* raw)
{
    crdi_doc_bytes(d, raw, strlen(raw));
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// What Markdown or HTML inside it would read as markup becomes an entity: that works everywhere,
// in tables too. An underscore inside a word means nothing.
static void put_markdown(crd_text* t, const char* text)
{
    bool inside = false; // a word
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        const bool plain = c == '_' && inside && is_letter(text[1]);
        inside = is_letter(*text) || plain;
        if (c < ' ') {
            crdi_text_put(t, " ", 1);
        } else if (!plain && strchr("&<>|*_`[]#\\~", c)) {
            crdi_text_add(t, "&#%d;", c);
        } else {
            crdi_text_put(t, text, 1);
        }
    }
}

void crdi_doc_text(crdi_doc* d, const char* text)
{
    if (d->html) {
        crdi_text_xml(&d->text, text);
    } else {
        put_markdown(&d->text, text);
    }
}

void crdi_doc_base64(crdi_doc* d, const unsigned char* bytes, size_t length)
{
    crdi_text_base64(&d->text, bytes, length);
    if (d->text.length > FLUSH_AT) { crdi_doc_flush(d); }
}

void crdi_doc_heading(crdi_doc* d, int level, const char* id, const char* text)
{
    if (d->html) {
        crdi_text_add(&d->text, "<h%d", level);
        if (*id) { crdi_text_add(&d->text, " id=\"%s\"", id); }
        crdi_doc_put(d, ">");
        crdi_doc_text(d, text);
        crdi_text_add(&d->text, "</h%d>\n", level);
    } else {
        crdi_text_add(&d->text, "\n%.*s ", level, "######");
        crdi_doc_text(d, text);
        crdi_doc_put(d, "\n\n");
    }
}

// Texts up to some length; longer ones are cut at a whole character.
enum { MOST_TEXT = 2048 };

static void format_text(char* out, size_t size, const char* format, va_list args)
{
    const int n = vsnprintf(out, size, format, args);
    if (n < (int)size) { return; }
    size_t end = size - 1;
    while (end > 0 && ((unsigned char)out[end - 1] & 0xC0) == 0x80) {
        end--;
    }
    out[end > 0 ? end - 1 : 0] = 0;
}

const char* crdi_doc_format(char* out, size_t size, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    format_text(out, size, format, args);
    va_end(args);
    return out;
}

void crdi_doc_paragraph(crdi_doc* d, const char* format, ...)
{
    char text[MOST_TEXT];
    va_list args;
    va_start(args, format);
    format_text(text, sizeof text, format, args);
    va_end(args);
    crdi_doc_put(d, d->html ? "<p>" : "\n");
    crdi_doc_text(d, text);
    crdi_doc_put(d, d->html ? "</p>\n" : "\n");
}

void crdi_doc_table(crdi_doc* d, const char* caption, const char* align, const char* titles)
{
    d->align = align;
    d->columns = (int)strlen(align);
    d->column = 0;
    if (d->html) {
        crdi_doc_put(d, "<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
                        "aria-label=\"table\"><table>");
        if (*caption) {
            crdi_doc_put(d, "<caption>");
            crdi_doc_text(d, caption);
            crdi_doc_put(d, "</caption>");
        }
        crdi_doc_put(d, "<thead><tr>");
    } else {
        crdi_doc_put(d, "\n");
        if (*caption) {
            crdi_doc_text(d, caption);
            crdi_doc_put(d, ":\n\n");
        }
        crdi_doc_put(d, "|");
    }
    for (int i = 0; i < d->columns; i++) {
        const size_t n = strcspn(titles, "|");
        if (d->html) {
            crdi_doc_put(d,
                         align[i] == 'r' ? "<th scope=\"col\" class=\"r\">" : "<th scope=\"col\">");
        }
        crdi_doc_bytes(d, titles, n);
        crdi_doc_put(d, d->html ? "</th>" : "|");
        titles += n + (titles[n] == '|');
    }
    crdi_doc_put(d, d->html ? "</tr></thead>\n<tbody>\n" : "\n|");
    for (int i = 0; i < d->columns && !d->html; i++) {
        crdi_doc_put(d, align[i] == 'r' ? "--:|" : "---|");
    }
    if (!d->html) { crdi_doc_put(d, "\n"); }
}

static void begin_cell(crdi_doc* d, const char* tip)
{
    if (d->html) {
        if (d->column == 0) { crdi_doc_put(d, "<tr>"); }
        crdi_doc_put(d, d->align[d->column] == 'r' ? "<td class=\"r\"" : "<td");
        if (tip && *tip) {
            crdi_doc_put(d, " title=\"");
            crdi_doc_text(d, tip);
            crdi_doc_put(d, "\"");
        }
        crdi_doc_put(d, ">");
    } else if (d->column == 0) {
        crdi_doc_put(d, "|");
    }
}

static void end_cell(crdi_doc* d)
{
    crdi_doc_put(d, d->html ? "</td>" : "|");
    if (++d->column == d->columns) {
        d->column = 0;
        crdi_doc_put(d, d->html ? "</tr>\n" : "\n");
    }
}

void crdi_doc_cell(crdi_doc* d, const char* format, ...)
{
    char text[MOST_TEXT];
    va_list args;
    va_start(args, format);
    format_text(text, sizeof text, format, args);
    va_end(args);
    begin_cell(d, NULL);
    crdi_doc_text(d, text);
    end_cell(d);
}

void crdi_doc_cell_tip(crdi_doc* d, const char* text, const char* tip)
{
    begin_cell(d, tip);
    crdi_doc_text(d, text);
    end_cell(d);
}

void crdi_doc_table_end(crdi_doc* d)
{
    if (d->html) { crdi_doc_put(d, "</tbody></table></div>\n"); }
}

const char* crdi_number_text(char out[32], double x, int digits)
{
    if (!isfinite(x)) { return strcpy(out, isnan(x) ? "\u2013" : x > 0 ? "\u221E" : "-\u221E"); }
    snprintf(out, 32, "%.*g", digits, x);
    for (char* p = out; *p; p++) { // whatever the locale has for a decimal point
        if (!strchr("0123456789+-e", *p)) { *p = '.'; }
    }
    return out;
}

const char* crdi_seconds_text(char out[32], double seconds)
{
    static const struct {
        double factor;
        const char* name;
    } units[] = {{1, "s"}, {1e3, "ms"}, {1e6, "\u00B5s"}, {1e9, "ns"}};
    if (!isfinite(seconds)) { return crdi_number_text(out, seconds, 4); }
    int i = 0;
    while (i < 3 && seconds != 0 && fabs(seconds) * units[i].factor < 0.9999) {
        i++;
    }
    char number[32];
    crdi_number_text(number, seconds * units[i].factor, 4);
    snprintf(out, 32, "%.20s\u00A0%s", number, units[i].name);
    return out;
}
