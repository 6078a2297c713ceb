// Plots as SVG, written by hand: axes, grid, legend, one polyline per stretch of finite points.
//
// Numbers are put together from integers, so that no locale gets into the file. Colours come from
// Okabe and Ito (2008), told apart by all kinds of colour vision; a style for dark ground is
// included.
#include "cardan/results.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 960,
    RIGHT = 24,
    PLOT_HEIGHT = 220,
    EQUAL_HEIGHT = 440, // of a panel with equal units
    TITLE_HEIGHT = 44,
    LINE_HEIGHT = 18, // of the legend
    GAP = 22,         // between panels
    FOOT = 56,        // x axis: numbers and label
    COLOURS = 7,
    CHAR_WIDTH = 7, // of the 12 px letters, rather too wide
    MOST_TICKS = 32,
    MOST_MARKS = 128, // lines of the grid of a logarithmic axis
};

static const char style[] =
    "<style>\n"
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#333}\n"
    ".title{font-size:16px;font-weight:600;fill:#111}.panel{font-weight:600;fill:#111}\n"
    ".num{font-variant-numeric:tabular-nums;fill:#555}\n"
    ".ground{fill:#fff}.frame{fill:none;stroke:#999}.grid{stroke:#e4e4e4}.zero{stroke:#b8b8b8}\n"
    ".line{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}\n"
    ".dash{stroke-dasharray:6 4;stroke-linecap:butt}.dots{stroke-dasharray:2 3;"
    "stroke-linecap:butt}.points{stroke-width:7}.fine{stroke:#f2f2f2}\n"
    ".s0{stroke:#0072b2}.s1{stroke:#d55e00}.s2{stroke:#009e73}.s3{stroke:#cc79a7}\n"
    ".s4{stroke:#e69f00}.s5{stroke:#56b4e9}.s6{stroke:#555}\n"
    "@media(prefers-color-scheme:dark){text{fill:#ccc}.title,.panel{fill:#f2f2f2}.num{fill:#aaa}\n"
    ".ground{fill:#14171c}.frame{stroke:#666}.grid{stroke:#2b3038}.zero{stroke:#4d5560}\n"
    ".fine{stroke:#20242a}\n"
    ".s0{stroke:#4aa8e8}.s1{stroke:#ff8a3d}.s2{stroke:#2cc795}.s3{stroke:#e59cc4}\n"
    ".s4{stroke:#f2b836}.s5{stroke:#9bd3f5}.s6{stroke:#bbb}}\n"
    "</style>\n";

// ---- text --------------------------------------------------------------------------------------

static void put_svg(crd_text* s, const char* text)
{
    crdi_text_put(s, text, strlen(text));
}

static int unsigned_text(char* out, uint64_t n)
{
    char digits[20];
    int at = 20;
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    memcpy(out, digits + at, (size_t)(20 - at));
    return 20 - at;
}

// A place on the sheet, in tenths of a pixel
static void put_place(crd_text* s, double x)
{
    char text[24];
    int n = 0;
    int64_t tenths = llround(fmin(fmax(x, -1e6), 1e6) * 10);
    if (tenths < 0) {
        text[n++] = '-';
        tenths = -tenths;
    }
    n += unsigned_text(text + n, (uint64_t)tenths / 10);
    if (tenths % 10) {
        text[n++] = '.';
        text[n++] = (char)('0' + tenths % 10);
    }
    crdi_text_put(s, text, (size_t)n);
}

static void put_attribute(crd_text* s, const char* name, double x)
{
    crdi_text_add(s, " %s=\"", name);
    put_place(s, x);
    put_svg(s, "\"");
}

static void put_label(crd_text* s, const char* class, const char* anchor, double x, double y,
                      const char* text)
{
    crdi_text_add(s, "<text class=\"%s\" text-anchor=\"%s\"", class, anchor);
    put_attribute(s, "x", x);
    put_attribute(s, "y", y);
    put_svg(s, ">");
    crdi_text_xml(s, text);
    put_svg(s, "</text>\n");
}

static void put_line(crd_text* s, const char* class, double x1, double y1, double x2, double y2)
{
    crdi_text_add(s, "<line class=\"%s\"", class);
    put_attribute(s, "x1", x1);
    put_attribute(s, "y1", y1);
    put_attribute(s, "x2", x2);
    put_attribute(s, "y2", y2);
    put_svg(s, "/>\n");
}

static int letters(const char* text)
{
    int n = 0;
    for (; *text; text++) {
        n += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return n;
}

// ---- axes --------------------------------------------------------------------------------------

typedef struct axis {
    double low, high;    // ends of the axis
    int64_t first, last; // ticks at (first .. last) * mantissa * 10^exponent
    int mantissa;        // 1, 2 or 5
    int exponent;
    int shift;                // the labels are divided by 10^shift
    bool log;                 // low and high are logarithms of base 10
    const char* const* names; // of 0 .. last, NULL: numbers
} axis;

static double power_of_ten(int e)
{
    return pow(10, e);
}

static double tick_at(const axis* a, int64_t n)
{
    const double m = (double)n * a->mantissa;
    return a->exponent < 0 ? m / power_of_ten(-a->exponent) : m * power_of_ten(a->exponent);
}

// Ticks at 1, 2 or 5 times a power of ten, about `count` of them. `tight`: the axis ends with the
// data, else with the next tick.
static axis make_axis(double low, double high, int count, bool tight)
{
    if (!(low <= high)) { // no data
        low = 0;
        high = 1;
    }
    low = fmin(fmax(low, -1e300), 1e300); // so that differences are finite
    high = fmin(fmax(high, -1e300), 1e300);
    const double size = fmax(fabs(low), fabs(high));
    if (high - low <= 1e-10 * size || high - low < 1e-290) { // constant: some air around it
        const double air = size > 1e-280 ? 0.1 * size : 1;
        low -= air;
        high += air;
    }
    axis a = {.low = low, .high = high};
    const double step = (high - low) / count;
    a.exponent = (int)floor(log10(step));
    const double m = step / power_of_ten(a.exponent);
    a.mantissa = m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 1;
    a.exponent += m >= 7.5;
    const double unit = tick_at(&a, 1);
    if (tight) {
        a.first = (int64_t)ceil(low / unit - 1e-9);
        a.last = (int64_t)floor(high / unit + 1e-9);
    } else {
        a.first = (int64_t)floor(low / unit + 1e-9);
        a.last = (int64_t)ceil(high / unit - 1e-9);
        a.low = tick_at(&a, a.first);
        a.high = tick_at(&a, a.last);
    }
    const double largest = fmax(fabs(a.low), fabs(a.high));
    if (largest >= 1e5 || largest < 1e-2) { a.shift = 3 * (int)floor(log10(largest) / 3); }
    return a;
}

// Exactly n * mantissa * 10^(exponent - shift), put together from digits.
static void tick_text(const axis* a, int64_t n, char* out)
{
    const int64_t value = n * a->mantissa;
    const int places = a->exponent - a->shift;
    char digits[48];
    int length = unsigned_text(digits, (uint64_t)(value < 0 ? -value : value));
    for (int i = 0; i < places && value != 0 && length < 40; i++) {
        digits[length++] = '0';
    }
    if (value < 0) {
        memcpy(out, "\xE2\x88\x92", 3); // a real minus
        out += 3;
    }
    const int behind = places < 0 && value != 0 ? -places : 0; // digits behind the point
    if (behind >= length) { *out++ = '0'; }
    for (int i = length - (behind > length ? behind : length); i < length; i++) {
        if (length - i == behind) { *out++ = '.'; }
        *out++ = i < 0 ? '0' : digits[i];
    }
    *out = 0;
}

// "10⁶"
static char* power_text(int exponent, char* out)
{
    static const char* const raised[] = {"\u2070", "\u00B9", "\u00B2", "\u00B3", "\u2074",
                                         "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
    out = stpcpy(out, exponent < 0 ? "10\u207B" : "10");
    char digits[24];
    const int n = unsigned_text(digits, (uint64_t)(exponent < 0 ? -exponent : exponent));
    for (int i = 0; i < n; i++) {
        out = stpcpy(out, raised[digits[i] - '0']);
    }
    return out;
}

// "×10⁶", "" if the labels are not scaled
static void shift_text(const axis* a, char* out)
{
    *out = 0;
    if (a->shift != 0) { power_text(a->shift, stpcpy(out, "\u00D7")); }
}

// Logarithms from the data's ends: ticks at the powers of ten and between them. Not `tight`: air up
// to the next 1, 2 or 5.
static axis make_log_axis(double low, double high, bool tight)
{
    if (!(low > 0 && low <= high)) { // no data
        low = 1;
        high = 10;
    }
    low = fmax(low, 1e-300);
    high = fmin(high, 1e300);
    axis a = {.log = true, .low = log10(low), .high = log10(high)};
    if (a.high - a.low < 0.05) { // constant
        a.low -= 0.3;
        a.high += 0.3;
    }
    if (!tight) {
        static const double stops[] = {0, 0.3010299956639812, 0.6989700043360189, 1};
        const double down = floor(a.low), up = floor(a.high);
        int i = 3, k = 0;
        while (down + stops[i] > a.low + 1e-9) {
            i--;
        }
        while (up + stops[k] < a.high - 1e-9) {
            k++;
        }
        a.low = down + stops[i];
        a.high = up + stops[k];
    }
    return a;
}

// One line of the grid with its number, "" for none
typedef struct mark {
    double at; // as the axis counts: the logarithm of a logarithmic one
    const char* class;
    char text[48];
} mark;

static void decade_text(int exponent, int digit, char* out)
{
    if (exponent < -3 || exponent > 4) {
        if (digit > 1) {
            *out++ = (char)('0' + digit);
            out = stpcpy(out, "\u00B7");
        }
        power_text(exponent, out);
        return;
    }
    const axis plain = {.mantissa = 1, .exponent = exponent};
    tick_text(&plain, digit, out);
}

static int log_marks(const axis* a, mark* out)
{
    const int first = (int)floor(a->low), last = (int)ceil(a->high);
    const int apart = last - first > 16 ? (last - first) / 8 : 1;
    const bool fine = last - first <= 8, named = a->high - a->low < 1.6;
    int n = 0;
    for (int e = first; e <= last; e += apart) {
        for (int digit = 1; digit <= (fine ? 9 : 1) && n < MOST_MARKS; digit++) {
            const double at = e + log10(digit);
            if (at < a->low - 1e-9 || at > a->high + 1e-9) { continue; }
            out[n] = (mark){.at = at, .class = digit == 1 ? "grid" : "fine"};
            if (digit == 1 || (named && (digit == 2 || digit == 5))) {
                decade_text(e, digit, out[n].text);
            }
            n++;
        }
    }
    return n;
}

// out has room for MOST_MARKS
static int list_marks(const axis* a, mark* out)
{
    if (a->log) { return log_marks(a, out); }
    int n = 0;
    for (int64_t i = a->first; i <= a->last && n < MOST_TICKS; i++, n++) {
        out[n] = (mark){.at = tick_at(a, i), .class = i == 0 && !a->names ? "zero" : "grid"};
        if (a->names) {
            strncpy(out[n].text, a->names[i], sizeof out[n].text - 1);
        } else {
            tick_text(a, i, out[n].text);
        }
    }
    return n;
}

static double axis_value(const axis* a, double v)
{
    return a->log ? log10(v) : v;
}

// Can it be drawn?
static bool can_be_drawn(const axis* a, double v)
{
    return isfinite(v) && (!a->log || v > 0);
}

static void extend_range(double* low, double* high, const double* v, const double* other,
                         int64_t count, bool log)
{
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(v[i]) || !isfinite(other[i]) || (log && !(v[i] > 0))) { continue; }
        *low = fmin(*low, v[i]);
        *high = fmax(*high, v[i]);
    }
}

// All panels that share it; `log` of the axis itself. Values that another, logarithmic axis cannot
// show do no harm here.
static axis x_axis(const crd_plot_panel* panels, const crd_plot_scale* scales, int count, bool log)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (int i = 0; i < count; i++) {
        if (scales && scales[i].own_x) { continue; }
        for (int k = 0; k < panels[i].series_count; k++) {
            const crd_plot_series* s = &panels[i].series[k];
            extend_range(&low, &high, s->x, s->y, s->count, log);
        }
    }
    return log ? make_log_axis(low, high, true) : make_axis(low, high, 10, true);
}

static bool has_range(double low, double high)
{
    return low < high && isfinite(low) && isfinite(high);
}

static axis own_x_axis(const crd_plot_panel* panel, const crd_plot_scale* scale)
{
    if (!has_range(scale->x_low, scale->x_high) || (scale->log_x && !(scale->x_low > 0))) {
        return x_axis(panel, NULL, 1, scale->log_x);
    }
    return scale->log_x ? make_log_axis(scale->x_low, scale->x_high, true)
                        : make_axis(scale->x_low, scale->x_high, 10, true);
}

static axis y_axis(const crd_plot_panel* panel, const crd_plot_scale* scale)
{
    const bool log = scale && scale->log_y;
    double low = (double)INFINITY, high = -(double)INFINITY;
    if (scale && scale->y_name_count > 0) {
        return (axis){.low = -0.5,
                      .high = scale->y_name_count - 0.5,
                      .last = scale->y_name_count - 1,
                      .mantissa = 1,
                      .names = scale->y_names};
    }
    if (scale && has_range(scale->y_low, scale->y_high) && (!log || scale->y_low > 0)) {
        return log ? make_log_axis(scale->y_low, scale->y_high, true)
                   : make_axis(scale->y_low, scale->y_high, 5, true);
    }
    for (int k = 0; k < panel->series_count; k++) {
        const crd_plot_series* s = &panel->series[k];
        extend_range(&low, &high, s->y, s->x, s->count, log);
    }
    return log ? make_log_axis(low, high, false) : make_axis(low, high, 5, false);
}

// ---- one panel ---------------------------------------------------------------------------------

// Where a panel lies on the sheet, and how numbers become places
typedef struct frame {
    double left, top, width, height;
    axis x, y;
    int clip; // number of the path that cuts lines off at the frame, -1: none
} frame;

static double place_x(const frame* f, double x)
{
    return f->left + f->width * ((axis_value(&f->x, x) - f->x.low) / (f->x.high - f->x.low));
}

static double place_y(const frame* f, double y)
{
    return f->top + f->height * (1 - (axis_value(&f->y, y) - f->y.low) / (f->y.high - f->y.low));
}

static void put_point(crd_text* s, double x, double y, bool* open)
{
    put_svg(s, *open ? " " : "M");
    *open = true;
    put_place(s, x);
    put_svg(s, ",");
    put_place(s, y);
}

// The points of one pixel column in a row: the first, the lowest, the highest, the last, in the
// order in which they came.
typedef struct column {
    int64_t pixel, count;
    double x[4], y[4]; // first, low, high, last
    int64_t low_at, high_at;
} column;

static void put_column(crd_text* s, const column* c, bool* open)
{
    if (c->count == 0) { return; }
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

static void put_class(crd_text* s, int i, const crd_plot_series* p)
{
    crdi_text_add(s, "class=\"line s%d", i % COLOURS);
    put_svg(s, p->points ? " points\"" : p->dashed ? " dash\"" : i >= COLOURS ? " dots\"" : "\"");
}

// A stroke without length and with round ends is a dot.
static void put_points(crd_text* s, const frame* f, const crd_plot_series* p)
{
    for (int64_t k = 0; k < p->count; k++) {
        if (!can_be_drawn(&f->x, p->x[k]) || !can_be_drawn(&f->y, p->y[k])) { continue; }
        put_svg(s, "M");
        put_place(s, place_x(f, p->x[k]));
        put_svg(s, ",");
        put_place(s, place_y(f, p->y[k]));
        put_svg(s, "h0");
    }
}

static void put_series(crd_text* s, const frame* f, const crd_plot_series* p, int i)
{
    put_svg(s, "<path ");
    put_class(s, i, p);
    if (f->clip >= 0) { crdi_text_add(s, " clip-path=\"url(#frame%d)\"", f->clip); }
    put_svg(s, " d=\"");
    if (p->points) { put_points(s, f, p); }
    column c = {0};
    bool open = false;
    const double beyond = f->clip >= 0 ? 1e5 : 9;
    for (int64_t k = 0; k < p->count && !p->points; k++) {
        if (!can_be_drawn(&f->x, p->x[k]) || !can_be_drawn(&f->y, p->y[k])) { // a gap
            put_column(s, &c, &open);
            c.count = 0;
            open = false;
            continue;
        }
        const double x = fmin(fmax(place_x(f, p->x[k]), -1e5), 1e5);
        const double y =
            fmin(fmax(place_y(f, p->y[k]), f->top - beyond), f->top + f->height + beyond);
        const int64_t pixel = (int64_t)floor(fmin(fmax(x, -1e6), 1e6));
        // A curve that goes to and fro has to keep its shape within a column, too.
        if (c.count && (pixel != c.pixel || (f->clip >= 0 && fabs(y - c.y[0]) > 1.5))) {
            put_column(s, &c, &open);
            c.count = 0;
        }
        plot_add_point(&c, pixel, x, y);
    }
    put_column(s, &c, &open);
    put_svg(s, "\"/>\n");
}

static void put_box(crd_text* s, const frame* f)
{
    put_attribute(s, "x", f->left);
    put_attribute(s, "y", f->top);
    put_attribute(s, "width", f->width);
    put_attribute(s, "height", f->height);
    put_svg(s, "/>");
}

static void plot_put_grid(crd_text* s, const frame* f, bool numbers_below)
{
    char text[64];
    mark marks[MOST_MARKS];
    int n = list_marks(&f->y, marks);
    for (int i = 0; i < n; i++) {
        const double part = (marks[i].at - f->y.low) / (f->y.high - f->y.low);
        const double y = f->top + f->height * (1 - part);
        put_line(s, marks[i].class, f->left, y, f->left + f->width, y);
        if (marks[i].text[0]) { put_label(s, "num", "end", f->left - 7, y + 4, marks[i].text); }
    }
    n = list_marks(&f->x, marks);
    for (int i = 0; i < n; i++) {
        const double part = (marks[i].at - f->x.low) / (f->x.high - f->x.low);
        const double x = f->left + f->width * part;
        // zero is nothing special for a time axis
        const bool zero = f->clip >= 0 && marks[i].class[0] == 'z';
        put_line(s, marks[i].class[0] == 'z' && !zero ? "grid" : marks[i].class, x, f->top, x,
                 f->top + f->height);
        if (numbers_below && marks[i].text[0]) {
            put_label(s, "num", "middle", x, f->top + f->height + 17, marks[i].text);
        }
    }
    put_svg(s, "<rect class=\"frame\"");
    put_box(s, f);
    put_svg(s, "\n");
    if (f->clip >= 0) {
        crdi_text_add(s, "<clipPath id=\"frame%d\"><rect", f->clip);
        put_box(s, f);
        put_svg(s, "</clipPath>\n");
    }
    shift_text(&f->y, text);
    if (text[0]) { put_label(s, "num", "end", f->left - 7, f->top - 9, text); }
}

// Title and legend above the panel, the legend in as many lines as it needs. Returns the height;
// s NULL: only that.
static int put_legend(crd_text* s, const crd_plot_panel* p, double left, double top)
{
    double x = left;
    int line = 1;
    if (p->title && p->title[0]) {
        if (s) { put_label(s, "panel", "start", x, top + LINE_HEIGHT - 5, p->title); }
        x += CHAR_WIDTH * letters(p->title) + 24;
    }
    for (int i = 0; i < p->series_count; i++) {
        const crd_plot_series* series = &p->series[i];
        const char* label = series->label ? series->label : "";
        if (!label[0] && p->series_count > 1) { continue; } // explained elsewhere
        const double width = 30 + CHAR_WIDTH * letters(label) + 18;
        if (x > left && x + width > WIDTH - RIGHT) {
            x = left;
            line++;
        }
        if (s) {
            const double y = top + line * LINE_HEIGHT - 9;
            put_svg(s, "<path ");
            put_class(s, i, series);
            put_svg(s, " d=\"M");
            put_place(s, series->points ? x + 11 : x);
            put_svg(s, ",");
            put_place(s, y);
            put_svg(s, series->points ? "h0\"/>\n" : "h22\"/>\n");
            put_label(s, "key", "start", x + 28, y + 4, label);
        }
        x += width;
    }
    return line * LINE_HEIGHT + 4;
}

static void put_panel(crd_text* s, const frame* f, const crd_plot_panel* p, bool numbers_below)
{
    plot_put_grid(s, f, numbers_below);
    if (p->y_label && p->y_label[0]) {
        const double y = f->top + f->height / 2;
        put_svg(s, "<text text-anchor=\"middle\" transform=\"translate(16,");
        put_place(s, y);
        put_svg(s, ") rotate(-90)\">");
        crdi_text_xml(s, p->y_label);
        put_svg(s, "</text>\n");
    }
    bool any = false;
    for (int i = 0; i < p->series_count; i++) {
        any = any || p->series[i].count > 0;
        put_series(s, f, &p->series[i], i);
    }
    if (!any) {
        put_label(s, "num", "middle", f->left + f->width / 2, f->top + f->height / 2, "no data");
    }
}

// ---- the sheet ---------------------------------------------------------------------------------

typedef struct layout {
    const crd_plot_options* options;
    const crd_plot_panel* panels;
    int count;
} layout;

static const crd_plot_scale* scale_of(const layout* l, int i)
{
    static const crd_plot_scale plain = {0};
    return l->options->scales ? &l->options->scales[i] : &plain;
}

// Room for the longest number at the left
static double left_margin(const layout* l)
{
    int most = 3;
    mark marks[MOST_MARKS];
    for (int i = 0; i < l->count; i++) {
        const axis a = y_axis(&l->panels[i], scale_of(l, i));
        const int n = list_marks(&a, marks);
        for (int k = 0; k < n; k++) {
            most = letters(marks[k].text) > most ? letters(marks[k].text) : most;
        }
    }
    return 34 + CHAR_WIDTH * most;
}

static int panel_height(const crd_plot_scale* scale)
{
    const int named = LINE_HEIGHT * scale->y_name_count; // so that each can be read
    return scale->equal ? EQUAL_HEIGHT : named > PLOT_HEIGHT ? named : PLOT_HEIGHT;
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
    f->x = make_axis(x - 0.5 * per * f->width, x + 0.5 * per * f->width, 10, true);
    f->y = make_axis(y - 0.5 * per * f->height, y + 0.5 * per * f->height, 6, true);
}

static void put_x_label(crd_text* s, const frame* f, const char* label)
{
    char factor[64];
    shift_text(&f->x, factor);
    const double y = f->top + f->height + FOOT - 14;
    put_label(s, "key", "middle", f->left + f->width / 2, y, label ? label : "");
    if (factor[0]) { put_label(s, "num", "end", WIDTH - RIGHT, y, factor); }
}

static void put_panels(crd_text* s, const layout* l, double left)
{
    double top = TITLE_HEIGHT;
    const axis shared = x_axis(l->panels, l->options->scales, l->count, l->options->log_x);
    for (int i = 0; i < l->count; i++) {
        const crd_plot_scale* scale = scale_of(l, i);
        const bool cut = has_range(scale->x_low, scale->x_high) ||
                         has_range(scale->y_low, scale->y_high) || scale->equal;
        frame f = {.left = left,
                   .top = top + put_legend(s, &l->panels[i], left, top),
                   .width = WIDTH - RIGHT - left,
                   .height = panel_height(scale),
                   .x = scale->own_x ? own_x_axis(&l->panels[i], scale) : shared,
                   .y = y_axis(&l->panels[i], scale),
                   .clip = cut ? i : -1};
        if (scale->equal && scale->own_x && !f.x.log && !f.y.log) { make_equal(&f); }
        const bool numbers = scale->own_x || ends_axis(l, i);
        put_panel(s, &f, &l->panels[i], numbers);
        if (numbers) { put_x_label(s, &f, scale->own_x ? scale->x_label : l->options->x_label); }
        top = f.top + f.height + space_below(l, i);
    }
}

static void put_sheet(crd_text* s, const layout* l)
{
    const double left = left_margin(l);
    const char* title = l->options->title ? l->options->title : "";
    int height = l->count ? TITLE_HEIGHT : TITLE_HEIGHT + FOOT - GAP;
    for (int i = 0; i < l->count; i++) {
        height += put_legend(NULL, &l->panels[i], left, 0) + panel_height(scale_of(l, i)) +
                  space_below(l, i);
    }
    crdi_text_add(s,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" "
                  "height=\"%d\" viewBox=\"0 0 %d %d\">\n<title>",
                  WIDTH, height, WIDTH, height);
    crdi_text_xml(s, title);
    put_svg(s, "</title>\n");
    put_svg(s, style);
    put_svg(s, "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
    put_label(s, "title", "start", left, 28, title);
    put_panels(s, l, left);
    put_svg(s, "</svg>\n");
}

crd_status crd_plot_svg_scaled(crd_context* ctx, const char* path, const crd_plot_options* options,
                               const crd_plot_panel* panels, int panel_count)
{
    crd_text sheet;
    crd_text_init(&sheet, ctx);
    put_sheet(&sheet, &(layout){options, panels, panel_count});
    const crd_status st = crdi_file_write(ctx, path, &sheet);
    crd_text_clear(&sheet);
    return st;
}

crd_status crd_plot_svg(crd_context* ctx, const char* path, const char* title, const char* x_label,
                        const crd_plot_panel* panels, int panel_count)
{
    const crd_plot_options options = {.title = title, .x_label = x_label};
    return crd_plot_svg_scaled(ctx, path, &options, panels, panel_count);
}
