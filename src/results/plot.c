// Plots: panels one under the other with axes, grid and legend, drawn on a canvas that is SVG, PNG
// or PDF; or on a terminal. Colours come from Okabe and Ito (2008), told apart by all kinds of
// colour vision.
#include "results/plot.h"
#include "shared/results.h"

#include <math.h>
#include <string.h>

enum {
    RIGHT = 24,
    PLOT_HEIGHT = 220,
    EQUAL_HEIGHT = 440, // of a panel with equal units
    LINE_HEIGHT = 18,   // of the legend
    ROW_HEIGHT = 26,    // of bars
    GAP = 22,           // between panels
    FOOT = 56,          // x axis: numbers and label
};
#define SCREEN_WIDTH 960.0

// Of a sans-serif font with letters of 12 units, near enough to leave room for it
static double text_width(const char* text)
{
    double n = 0;
    for (; *text; text++) {
        if (((unsigned char)*text & 0xC0) == 0x80) { continue; }
        n += strchr("iljtfI.,:;'|!()[] ", *text) ? 4.2 : strchr("mwMW%@", *text) ? 10.5 : 7.2;
    }
    return n;
}

// ---- one panel ---------------------------------------------------------------------------------

// Where a panel lies on the sheet, and how numbers become places
typedef struct frame {
    double left, top, width, height;
    crdi_axis x, y, right;
    bool has_right;
    int clip; // number of the path that cuts lines off at the frame, -1: none
} frame;

static double part_of(const crdi_axis* a, double v)
{
    return (crdi_axis_value(a, v) - a->low) / (a->high - a->low);
}

// The points of one unit of width in a row: the first, the lowest, the highest, the last, in the
// order in which they came.
typedef struct column {
    int64_t pixel, count;
    double x[4], y[4]; // first, low, high, last
    int64_t low_at, high_at;
} column;

static void put_point(crdi_canvas* c, double x, double y, bool* open)
{
    c->ops->point(c, x, y, !*open);
    *open = true;
}

// `alone`: the curve ends here.
static void put_column(crdi_canvas* s, const column* c, bool alone, bool* open)
{
    if (c->count == 0) { return; }
    if (!*open && alone) { // nothing before it, nothing behind it
        s->ops->dot(s, c->x[0], c->y[0]);
        return;
    }
    const int a = c->low_at <= c->high_at ? 1 : 2, b = 3 - a;
    put_point(s, c->x[0], c->y[0], open);
    if (c->count > 2) {
        const int64_t at_a = a == 1 ? c->low_at : c->high_at,
                      at_b = a == 1 ? c->high_at : c->low_at;
        if (at_a > 0 && at_a < c->count - 1) { put_point(s, c->x[a], c->y[a], open); }
        if (at_b > 0 && at_b < c->count - 1 && at_b != at_a) {
            put_point(s, c->x[b], c->y[b], open);
        }
    }
    if (c->count > 1) { put_point(s, c->x[3], c->y[3], open); }
}

static void plot_add_point(column* c, int64_t pixel, double x, double y)
{
    if (c->count == 0) {
        *c = (column){.pixel = pixel};
        for (int i = 0; i < 4; i++) {
            c->x[i] = x;
            c->y[i] = y;
        }
    }
    if (y < c->y[1]) {
        c->x[1] = x;
        c->y[1] = y;
        c->low_at = c->count;
    }
    if (y > c->y[2]) {
        c->x[2] = x;
        c->y[2] = y;
        c->high_at = c->count;
    }
    c->x[3] = x;
    c->y[3] = y;
    c->count++;
}

static void put_series(crdi_canvas* s, const frame* f, const crd_plot_series* p, int i)
{
    const crdi_axis* y_axis = p->right ? &f->right : &f->y;
    s->ops->begin(s, &(crdi_pen){i, p->dashed, p->points, f->clip});
    column c = {0};
    bool open = false;
    const double beyond = f->clip >= 0 ? 1e5 : 9;
    for (int64_t k = 0; k < p->count; k++) {
        if (!crdi_axis_shows(&f->x, p->x[k]) || !crdi_axis_shows(y_axis, p->y[k])) { // a gap
            put_column(s, &c, c.count == 1, &open);
            c.count = 0;
            open = false;
            continue;
        }
        const double x = fmin(fmax(f->left + f->width * part_of(&f->x, p->x[k]), -1e5), 1e5);
        const double y =
            fmin(fmax(f->top + f->height * (1 - part_of(y_axis, p->y[k])), f->top - beyond),
                 f->top + f->height + beyond);
        if (p->points) {
            s->ops->dot(s, x, y);
            continue;
        }
        const int64_t pixel = (int64_t)floor(x);
        // A curve that goes to and fro has to keep its shape within a column, too.
        if (c.count && (pixel != c.pixel || (f->clip >= 0 && fabs(y - c.y[0]) > 1.5))) {
            put_column(s, &c, false, &open);
            c.count = 0;
        }
        plot_add_point(&c, pixel, x, y);
    }
    put_column(s, &c, c.count == 1, &open);
    s->ops->end(s);
}

static bool is_used(const crd_plot_panel* p, int value)
{
    for (int i = 0; i < p->series_count; i++) {
        for (int64_t k = 0; k < p->series[i].count; k++) {
            if (p->series[i].y[k] == value) { return true; }
        }
    }
    return false;
}

// Colours go to the values that occur, in their order: more of them can be told apart then.
static int colour_of(const crd_plot_panel* p, int value)
{
    int colour = 0;
    for (int i = 0; i < value; i++) {
        colour += is_used(p, i);
    }
    return colour;
}

// From one value that is no state, or another one, to the next; the last ends with its point.
static void put_bars(crdi_canvas* s, const frame* f, const crd_plot_panel* panel, int row,
                     int names)
{
    const crd_plot_series* p = &panel->series[row];
    const double height = f->height / f->y.high, top = f->top + row * height;
    for (int64_t k = 0; k < p->count;) {
        int64_t end = k + 1;
        while (end < p->count && p->y[end] == p->y[k]) {
            end++;
        }
        const double until = end < p->count ? p->x[end] : p->x[p->count - 1];
        if (p->y[k] >= 0 && p->y[k] < names && crdi_axis_shows(&f->x, p->x[k]) &&
            crdi_axis_shows(&f->x, until)) {
            const double x = f->left + f->width * part_of(&f->x, p->x[k]);
            const double width = f->left + f->width * part_of(&f->x, until) - x;
            if (width > 0) {
                s->ops->bar(s, colour_of(panel, (int)p->y[k]), x, top + 4, fmax(width, 0.4),
                            height - 8);
            }
        }
        k = end;
    }
    s->ops->text(s, "key", 'e', f->left - 7, top + height / 2 + 4, false, p->label ? p->label : "");
}

static void put_right_axis(crdi_canvas* s, const frame* f)
{
    crdi_mark marks[CRDI_MOST_MARKS];
    char factor[64];
    const int n = crdi_axis_marks(&f->right, marks);
    const double x = f->left + f->width;
    for (int i = 0; i < n; i++) {
        const double part = (marks[i].at - f->right.low) / (f->right.high - f->right.low);
        const double y = f->top + f->height * (1 - part);
        s->ops->line(s, "frame", x, y, x + 4, y);
        if (marks[i].text[0]) { s->ops->text(s, "num", 's', x + 7, y + 4, false, marks[i].text); }
    }
    crdi_axis_factor(&f->right, factor);
    if (factor[0]) { s->ops->text(s, "num", 's', x + 7, f->top - 9, false, factor); }
}

static void plot_put_grid(crdi_canvas* s, const frame* f, bool numbers_below)
{
    char text[64];
    crdi_mark marks[CRDI_MOST_MARKS];
    int n = crdi_axis_marks(&f->y, marks);
    for (int i = 0; i < n; i++) {
        const double part = (marks[i].at - f->y.low) / (f->y.high - f->y.low);
        const double y = f->top + f->height * (1 - part);
        s->ops->line(s, marks[i].class, f->left, y, f->left + f->width, y);
        if (marks[i].text[0]) {
            s->ops->text(s, "num", 'e', f->left - 7, y + 4, false, marks[i].text);
        }
    }
    n = crdi_axis_marks(&f->x, marks);
    for (int i = 0; i < n; i++) {
        const double part = (marks[i].at - f->x.low) / (f->x.high - f->x.low);
        const double x = f->left + f->width * part;
        // zero is nothing special for a time axis
        const bool zero = f->clip >= 0 && marks[i].class[0] == 'z';
        s->ops->line(s, marks[i].class[0] == 'z' && !zero ? "grid" : marks[i].class, x, f->top, x,
                     f->top + f->height);
        if (numbers_below && marks[i].text[0]) {
            s->ops->text(s, "num", 'm', x, f->top + f->height + 17, false, marks[i].text);
        }
    }
    s->ops->frame(s, f->left, f->top, f->width, f->height, f->clip);
    crdi_axis_factor(&f->y, text);
    if (text[0]) { s->ops->text(s, "num", 'e', f->left - 7, f->top - 9, false, text); }
}

typedef struct legend {
    crdi_canvas* to; // NULL: only how high it is
    double left, end, top, x;
    int line;
} legend;

static void put_key(legend* l, int colour, const crd_plot_series* series, const char* label)
{
    const double width = 30 + text_width(label) + 18;
    if (l->x > l->left && l->x + width > l->end) {
        l->x = l->left;
        l->line++;
    }
    if (l->to) {
        const crdi_canvas_ops* ops = l->to->ops;
        const double y = l->top + l->line * LINE_HEIGHT - 9;
        if (series) {
            ops->begin(l->to, &(crdi_pen){colour, series->dashed, series->points, -1});
            if (series->points) {
                ops->dot(l->to, l->x + 11, y);
            } else {
                ops->point(l->to, l->x, y, true);
                ops->point(l->to, l->x + 22, y, false);
            }
            ops->end(l->to);
        } else {
            ops->bar(l->to, colour, l->x, y - 5, 22, 10);
        }
        ops->text(l->to, "key", 's', l->x + 28, y + 4, false, label);
    }
    l->x += width;
}

// Title and legend above the panel, the legend in as many lines as it needs. Returns the height;
// s NULL: only that.
static int put_legend(crdi_canvas* s, const crd_plot_panel* p, const crd_plot_scale* scale,
                      double left, double top, double end)
{
    legend l = {s, left, end, top, left, 1};
    const bool one = p->series_count == 1 && !(p->series[0].label && p->series[0].label[0]);
    if (one && !scale->bars && !(p->title && p->title[0])) { return 12; } // its axes say it all
    if (p->title && p->title[0]) {
        if (s) { s->ops->text(s, "panel", 's', l.x, top + LINE_HEIGHT - 5, false, p->title); }
        l.x += 1.08 * text_width(p->title) + 24;
    }
    for (int i = 0; scale->bars && i < scale->y_name_count; i++) {
        if (is_used(p, i)) { put_key(&l, colour_of(p, i), NULL, scale->y_names[i]); }
    }
    for (int i = 0; !scale->bars && i < p->series_count; i++) {
        const char* label = p->series[i].label ? p->series[i].label : "";
        if (label[0] || p->series_count == 1) { put_key(&l, i, &p->series[i], label); }
    }
    return l.line * LINE_HEIGHT + 4;
}

static void put_panel(crdi_canvas* s, const frame* f, const crd_plot_panel* p,
                      const crd_plot_scale* scale, double width, bool numbers_below)
{
    const double middle = f->top + f->height / 2;
    plot_put_grid(s, f, numbers_below);
    if (f->has_right) { put_right_axis(s, f); }
    if (p->y_label && p->y_label[0]) { s->ops->text(s, "key", 'm', 16, middle, true, p->y_label); }
    if (f->has_right && p->right_label && p->right_label[0]) {
        s->ops->text(s, "key", 'm', width - 8, middle, true, p->right_label);
    }
    bool any = false;
    for (int i = 0; i < p->series_count; i++) {
        any = any || p->series[i].count > 0;
        if (scale->bars) {
            put_bars(s, f, p, i, scale->y_name_count);
        } else {
            put_series(s, f, &p->series[i], i);
        }
    }
    if (!any) { s->ops->text(s, "num", 'm', f->left + f->width / 2, middle, false, "no data"); }
}

// ---- the sheet ---------------------------------------------------------------------------------

typedef struct layout {
    const crd_plot_options* options;
    const crd_plot_panel* panels;
    int count;
    double unit;               // pt
    double width, left, right; // of the sheet, units, and its margins
    double head;               // above the first panel
    double panel_height;       // of one whose height nothing else says
} layout;

static const crd_plot_scale* scale_of(const layout* l, int i)
{
    static const crd_plot_scale plain = {0};
    return l->options->scales ? &l->options->scales[i] : &plain;
}

static int ticks_across(const layout* l)
{
    const int n = (int)((l->width - l->left - l->right) / 80);
    return n < 3 ? 3 : n > 10 ? 10 : n;
}

static int ticks_up(double height)
{
    return height >= 160 ? 5 : height >= 80 ? 4 : 3;
}

static double widest_mark(const crdi_axis* a)
{
    crdi_mark marks[CRDI_MOST_MARKS];
    double most = 0;
    const int n = crdi_axis_marks(a, marks);
    for (int k = 0; k < n; k++) {
        most = fmax(most, text_width(marks[k].text));
    }
    return most;
}

// Room for the longest number at either side
static void set_margins(layout* l)
{
    double left = 21, right = 0;
    bool has_right = false;
    for (int i = 0; i < l->count; i++) {
        const crd_plot_panel* p = &l->panels[i];
        const crd_plot_scale* scale = scale_of(l, i);
        const crdi_axis a = crdi_axis_y(p, scale, false, 5);
        left = fmax(left, widest_mark(&a));
        for (int k = 0; scale->bars && k < p->series_count; k++) {
            left = fmax(left, text_width(p->series[k].label ? p->series[k].label : ""));
        }
        if (crdi_panel_has_right(p)) {
            const crdi_axis b = crdi_axis_y(p, scale, true, 5);
            right = fmax(right, widest_mark(&b));
            has_right = true;
        }
    }
    l->left = fmin(34 + left, 0.4 * l->width);
    l->right = has_right ? fmin(34 + right, 0.4 * l->width) : RIGHT;
}

static double panel_height(const layout* l, int i)
{
    const crd_plot_scale* scale = scale_of(l, i);
    if (scale->bars) { return ROW_HEIGHT * fmax(1, l->panels[i].series_count); }
    const double named = LINE_HEIGHT * scale->y_name_count; // so that each can be read
    return scale->equal && !(l->options->height > 0) ? EQUAL_HEIGHT : fmax(named, l->panel_height);
}

// Does the shared x axis have its numbers and its label below panel i?
static bool ends_axis(const layout* l, int i)
{
    for (int k = i + 1; k < l->count; k++) {
        if (!scale_of(l, k)->own_x) { return false; }
    }
    return !scale_of(l, i)->own_x;
}

// Below a panel: the next one, or numbers and label of an x axis
static int space_below(const layout* l, int i)
{
    const bool axis_below = scale_of(l, i)->own_x || ends_axis(l, i);
    return axis_below ? (i == l->count - 1 ? FOOT : FOOT + GAP / 2) : GAP;
}

// The shorter of two axes, measured in units per pixel, is made longer on both sides.
static void make_equal(frame* f)
{
    const double per_x = (f->x.high - f->x.low) / f->width;
    const double per_y = (f->y.high - f->y.low) / f->height;
    const double per = fmax(per_x, per_y);
    const double x = 0.5 * (f->x.high + f->x.low), y = 0.5 * (f->y.high + f->y.low);
    f->x = crdi_axis_make(x - 0.5 * per * f->width, x + 0.5 * per * f->width, 10, true);
    f->y = crdi_axis_make(y - 0.5 * per * f->height, y + 0.5 * per * f->height, 6, true);
}

static void put_x_label(crdi_canvas* s, const frame* f, double end, const char* label)
{
    char factor[64];
    crdi_axis_factor(&f->x, factor);
    const double y = f->top + f->height + FOOT - 14;
    s->ops->text(s, "key", 'm', f->left + f->width / 2, y, false, label ? label : "");
    if (factor[0]) { s->ops->text(s, "num", 'e', end, y, false, factor); }
}

static void put_panels(crdi_canvas* s, const layout* l)
{
    double top = l->head;
    const int across = ticks_across(l);
    const crdi_axis shared =
        crdi_axis_x(l->panels, l->options->scales, l->count, l->options->log_x, across);
    for (int i = 0; i < l->count; i++) {
        const crd_plot_scale* scale = scale_of(l, i);
        const crd_plot_panel* p = &l->panels[i];
        const bool cut = crdi_has_range(scale->x_low, scale->x_high) ||
                         crdi_has_range(scale->y_low, scale->y_high) || scale->equal ||
                         scale->keep_shape;
        const double end = l->width - l->right, height = panel_height(l, i);
        frame f = {.left = l->left,
                   .top = top + put_legend(s, p, scale, l->left, top, end),
                   .width = end - l->left,
                   .height = height,
                   .x = scale->own_x ? crdi_axis_own_x(p, scale, across) : shared,
                   .y = crdi_axis_y(p, scale, false, ticks_up(height)),
                   .has_right = crdi_panel_has_right(p),
                   .clip = cut ? i : -1};
        if (f.has_right) { f.right = crdi_axis_y(p, scale, true, ticks_up(height)); }
        if (scale->equal && scale->own_x && !f.x.log && !f.y.log) { make_equal(&f); }
        const bool numbers = scale->own_x || ends_axis(l, i);
        put_panel(s, &f, p, scale, l->width, numbers);
        if (numbers) {
            put_x_label(s, &f, end, scale->own_x ? scale->x_label : l->options->x_label);
        }
        top = f.top + f.height + space_below(l, i);
    }
}

static double sheet_height(const layout* l)
{
    double height = l->count ? l->head : l->head + FOOT - GAP;
    for (int i = 0; i < l->count; i++) {
        height += put_legend(NULL, &l->panels[i], scale_of(l, i), l->left, 0, l->width - l->right) +
                  panel_height(l, i) + space_below(l, i);
    }
    return height;
}

// Of a given height, what is left for the panels that may have any; else as high as looks well
static void set_heights(layout* l)
{
    const crd_plot_options* o = l->options;
    int free = 0;
    for (int i = 0; i < l->count; i++) {
        free += !scale_of(l, i)->bars && scale_of(l, i)->y_name_count == 0;
    }
    if (o->height > 0 && free > 0) {
        l->panel_height = 0;
        const double rest = o->height / 25.4 * 72 / l->unit - sheet_height(l);
        l->panel_height = fmax(rest / free, 24);
    } else if (o->width > 0 && free > 0) {
        l->panel_height = free == 1 ? fmin(0.5 * l->width, 320) : fmin(fmax(560.0 / free, 90), 160);
    } else {
        l->panel_height = PLOT_HEIGHT;
    }
}

static crd_status put_sheet(crd_context* ctx, crd_text* out, layout* l)
{
    const crd_plot_options* o = l->options;
    const char* title = o->title ? o->title : "";
    const double font = o->font_size > 0 ? o->font_size : 9;
    if (!(font >= 1 && font <= 200) || !(o->width >= 0 && o->width <= 5000) ||
        !(o->height >= 0 && o->height <= 20000)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "a picture of %g x %g mm with letters of %g pt, expected up to 5000 x "
                         "20000 mm and 1 to 200 pt",
                         o->width, o->height, font);
    }
    l->unit = font / 12;
    l->width = o->width > 0 ? o->width / 25.4 * 72 / l->unit : SCREEN_WIDTH;
    l->head = title[0] || !(o->width > 0) ? 44 : 6;
    set_margins(l);
    if (l->width - l->left - l->right < 40) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "a picture %g mm wide has no room for its axes with letters of %g pt, "
                         "expected more or smaller ones",
                         o->width, font);
    }
    set_heights(l);
    crdi_canvas canvas = {.ctx = ctx, .out = out};
    const double height = sheet_height(l);
    const crd_status st = (o->format == CRD_PLOT_SVG ? crdi_canvas_svg : crdi_canvas_cairo)(
        &canvas, o, l->width, height, l->unit);
    if (st < 0) { return st; }
    if (title[0] || !(o->width > 0)) {
        canvas.ops->text(&canvas, "title", 's', l->left, 28, false, title);
    }
    put_panels(&canvas, l);
    return canvas.ops->finish(&canvas);
}

crd_status crdi_plot_put(crd_context* ctx, crd_text* out, const crd_plot_options* options,
                         const crd_plot_panel* panels, int panel_count)
{
    if (options->format == CRD_PLOT_TERMINAL) {
        crdi_plot_terminal(out, options, panels, panel_count);
        return CRD_OK;
    }
    return put_sheet(ctx, out,
                     &(layout){.options = options, .panels = panels, .count = panel_count});
}

crd_status crd_plot_write(crd_context* ctx, const char* path, const crd_plot_options* options,
                          const crd_plot_panel* panels, int panel_count)
{
    crd_text sheet;
    crd_text_init(&sheet, ctx);
    crd_status st = crdi_plot_put(ctx, &sheet, options, panels, panel_count);
    if (st >= 0) { st = crdi_file_write(ctx, path, &sheet); }
    crd_text_clear(&sheet);
    return st;
}

crd_status crd_plot_svg_scaled(crd_context* ctx, const char* path, const crd_plot_options* options,
                               const crd_plot_panel* panels, int panel_count)
{
    crd_plot_options o = *options;
    o.format = CRD_PLOT_SVG;
    return crd_plot_write(ctx, path, &o, panels, panel_count);
}

crd_status crd_plot_svg(crd_context* ctx, const char* path, const char* title, const char* x_label,
                        const crd_plot_panel* panels, int panel_count)
{
    const crd_plot_options options = {.title = title, .x_label = x_label};
    return crd_plot_svg_scaled(ctx, path, &options, panels, panel_count);
}
