// Plots as text: two dots across and four down in every letter, which Braille has from U+2800 on.
#include "results/plot.h"

#include <math.h>
#include <string.h>

enum { HIGH = 10, LEAST = 20, MOST = 400, LABEL = 10 }; // lines, columns

typedef struct dots {
    int across, down; // letters
    unsigned char* bits;
    unsigned char* colours; // of letters, 0: none
} dots;

static void set_dot(const dots* d, int x, int y, int colour)
{
    static const unsigned char bit[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    if (x < 0 || y < 0 || x >= 2 * d->across || y >= 4 * d->down) { return; }
    const int at = y / 4 * d->across + x / 2;
    d->bits[at] |= bit[y % 4][x % 2];
    d->colours[at] = (unsigned char)(1 + colour % CRDI_COLOURS);
}

// All dots between two, as many as the longer way has
static void set_line(const dots* d, const double from[2], const double to[2], int colour)
{
    const double n = fmax(1, ceil(fmax(fabs(to[0] - from[0]), fabs(to[1] - from[1]))));
    for (int i = 0; i <= (int)n; i++) {
        set_dot(d, (int)lround(from[0] + (to[0] - from[0]) * i / n),
                (int)lround(from[1] + (to[1] - from[1]) * i / n), colour);
    }
}

static void set_series(const dots* d, const crdi_axis* x, const crdi_axis* y,
                       const crd_plot_series* s, int colour)
{
    double last[2];
    bool open = false;
    for (int64_t k = 0; k < s->count; k++) {
        if (!crdi_axis_shows(x, s->x[k]) || !crdi_axis_shows(y, s->y[k])) {
            open = false;
            continue;
        }
        const double px = (crdi_axis_value(x, s->x[k]) - x->low) / (x->high - x->low);
        const double py = (crdi_axis_value(y, s->y[k]) - y->low) / (y->high - y->low);
        const double at[2] = {fmin(fmax(px, -1), 2) * (2 * d->across - 1),
                              (1 - fmin(fmax(py, -1), 2)) * (4 * d->down - 1)};
        set_line(d, open && !s->points ? last : at, at, colour);
        memcpy(last, at, sizeof last);
        open = true;
    }
}

static void put_letters(crd_text* out, const char* text, int count)
{
    for (; *text && count > 0; count--) {
        const size_t n = crdi_letter_length(text);
        crdi_text_put(out, n ? text : "?", n ? n : 1);
        text += n ? n : 1;
    }
    for (; count > 0; count--) {
        crdi_text_put(out, " ", 1);
    }
}

static int letters(const char* text)
{
    int n = 0;
    for (; *text; text++) {
        n += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return n;
}

static void put_colour(crd_text* out, const crd_plot_options* o, int colour)
{
    if (!o->color) { return; }
    const crdi_colour k = crdi_colours[colour % CRDI_COLOURS];
    crdi_text_add(out, "\033[38;2;%d;%d;%dm", k.red, k.green, k.blue);
}

static void put_plain(crd_text* out, const crd_plot_options* o)
{
    if (o->color) { crdi_text_add(out, "\033[0m"); }
}

// "name  name [unit, at the right]"
static void put_names(crd_text* out, const crd_plot_options* o, const crd_plot_panel* p)
{
    put_letters(out, "", LABEL + 1);
    if (p->title && p->title[0]) { crdi_text_add(out, "%s  ", p->title); }
    for (int i = 0; i < p->series_count; i++) {
        const char* label = p->series[i].label ? p->series[i].label : "";
        if (!label[0]) { continue; }
        put_colour(out, o, i);
        put_letters(out, label, letters(label));
        put_plain(out, o);
        crdi_text_add(out, "%s", p->series[i].right ? " (right)  " : "  ");
    }
    if (p->y_label && p->y_label[0]) { crdi_text_add(out, "[%s]", p->y_label); }
    if (p->right_label && p->right_label[0]) { crdi_text_add(out, " right [%s]", p->right_label); }
    while (out->length > 0 && out->data[out->length - 1] == ' ') {
        out->data[--out->length] = 0;
    }
    crdi_text_add(out, "\n");
}

static const char* mark_of(const crdi_mark* marks, int n, const crdi_axis* a, int line, int lines)
{
    for (int i = 0; i < n; i++) {
        const double part = (marks[i].at - a->low) / (a->high - a->low);
        if ((int)lround((1 - part) * (lines - 1)) == line) { return marks[i].text; }
    }
    return "";
}

static void put_rows(crd_text* out, const crd_plot_options* o, const dots* d, const crdi_axis* y,
                     const crdi_axis* right)
{
    crdi_mark left[CRDI_MOST_MARKS], other[CRDI_MOST_MARKS];
    const int n = crdi_axis_marks(y, left), m = right ? crdi_axis_marks(right, other) : 0;
    for (int row = 0; row < d->down; row++) {
        const char* text = mark_of(left, n, y, row, d->down);
        put_letters(out, "", LABEL - 1 - letters(text));
        put_letters(out, text, letters(text) < LABEL ? letters(text) : LABEL - 1);
        crdi_text_add(out, text[0] ? " \u2524" : " \u2502");
        int colour = 0;
        for (int i = 0; i < d->across; i++) {
            const int at = row * d->across + i;
            if (d->bits[at] && d->colours[at] != colour) {
                put_colour(out, o, d->colours[at] - 1);
                colour = d->colours[at];
            }
            const char braille[] = {(char)0xE2, (char)(0xA0 | d->bits[at] >> 6),
                                    (char)(0x80 | (d->bits[at] & 63))};
            crdi_text_put(out, d->bits[at] ? braille : " ", d->bits[at] ? 3 : 1);
        }
        if (colour) { put_plain(out, o); }
        const char* beside = right ? mark_of(other, m, right, row, d->down) : "";
        crdi_text_add(out, beside[0] ? "\u251C %s\n" : "\u2502\n", beside);
    }
}

static void put_foot(crd_text* out, const crd_plot_options* o, const crdi_axis* x, int across,
                     const char* label)
{
    crdi_mark marks[CRDI_MOST_MARKS];
    const int n = crdi_axis_marks(x, marks);
    char factor[64];
    bool ticks[MOST] = {false};
    int starts[MOST] = {0}; // number of the mark whose text begins here, from 1
    int free = 0;
    (void)o;
    for (int i = 0; i < n; i++) {
        const int at = (int)lround((marks[i].at - x->low) / (x->high - x->low) * (across - 1));
        if (at < 0 || at >= across) { continue; }
        ticks[at] = true;
        const int wide = letters(marks[i].text), begin = at - wide / 2;
        if (!wide || begin < free || begin + wide > across + 2 || begin < 0) {
            if (!(wide && begin < 0 && free == 0)) { continue; }
        }
        const int from = begin < 0 ? 0 : begin;
        starts[from] = i + 1;
        free = from + wide + 1;
    }
    put_letters(out, "", LABEL);
    crdi_text_add(out, "\u2514");
    for (int i = 0; i < across; i++) {
        crdi_text_add(out, ticks[i] ? "\u252C" : "\u2500");
    }
    crdi_text_add(out, "\u2518\n");
    put_letters(out, "", LABEL + 1);
    for (int i = 0; i < across;) {
        const char* text = starts[i] ? marks[starts[i] - 1].text : " ";
        put_letters(out, text, letters(text));
        i += letters(text);
    }
    crdi_axis_factor(x, factor);
    crdi_text_add(out, "\n");
    put_letters(out, "", LABEL + 1 + across / 2 - letters(label) / 2);
    crdi_text_add(out, "%s%s%s\n", label, factor[0] ? " " : "", factor);
}

void crdi_plot_terminal(crd_text* out, const crd_plot_options* o, const crd_plot_panel* panels,
                        int panel_count)
{
    const int wanted = (o->columns > 0 ? o->columns : 80) - 2 * LABEL - 2;
    dots d = {.across = wanted < LEAST ? LEAST : wanted > MOST ? MOST : wanted, .down = HIGH};
    const size_t cells = (size_t)d.across * HIGH;
    d.bits = crdi_new_array(out->ctx, 2, cells);
    if (!d.bits) {
        out->failed = true;
        return;
    }
    d.colours = d.bits + cells;
    const int ticks = d.across / 14 < 3 ? 3 : d.across / 14;
    const crdi_axis shared = crdi_axis_x(panels, o->scales, panel_count, o->log_x, ticks);
    if (o->title && o->title[0]) { crdi_text_add(out, "%*s%s\n", LABEL + 1, "", o->title); }
    for (int i = 0; i < panel_count; i++) {
        const crd_plot_panel* p = &panels[i];
        const crd_plot_scale* scale = o->scales ? &o->scales[i] : NULL;
        const bool own = scale && scale->own_x, right = crdi_panel_has_right(p);
        const crdi_axis x = own ? crdi_axis_own_x(p, scale, ticks) : shared;
        const crdi_axis y = crdi_axis_y(p, scale, false, 4), z = crdi_axis_y(p, scale, true, 4);
        memset(d.bits, 0, 2 * cells);
        for (int k = 0; k < p->series_count; k++) {
            set_series(&d, &x, p->series[k].right ? &z : &y, &p->series[k], k);
        }
        put_names(out, o, p);
        char factor[64];
        crdi_axis_factor(&y, factor);
        if (factor[0]) {
            put_letters(out, "", LABEL - 1 - letters(factor));
            crdi_text_add(out, "%s\n", factor);
        }
        put_rows(out, o, &d, &y, right ? &z : NULL);
        const bool last = own || i + 1 == panel_count;
        const char* label = own ? scale->x_label : o->x_label;
        if (last) {
            put_foot(out, o, &x, d.across, label ? label : "");
        } else {
            put_letters(out, "", LABEL);
            crdi_text_add(out, "\u2514");
            for (int k = 0; k < d.across; k++) {
                crdi_text_add(out, "\u2500");
            }
            crdi_text_add(out, "\u2518\n");
        }
    }
    crd_free(out->ctx, d.bits);
}
