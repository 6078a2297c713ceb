// Axes of plots: where they end, where their ticks are and how those are called.
//
// Numbers are put together from integers, so that no locale gets into a picture.
#include "results/plot.h"

#include <math.h>
#include <string.h>

enum { MOST_TICKS = 32 };

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

static double power_of_ten(int e)
{
    return pow(10, e);
}

static double tick_at(const crdi_axis* a, int64_t n)
{
    const double m = (double)n * a->mantissa;
    return a->exponent < 0 ? m / power_of_ten(-a->exponent) : m * power_of_ten(a->exponent);
}

crdi_axis crdi_axis_make(double low, double high, int count, bool tight)
{
    if (!(low <= high)) { // no data
        low = 0;
        high = 1;
    }
    low = fmin(fmax(low, -4e307), 4e307); // so that differences are finite, of rounded ends, too
    high = fmin(fmax(high, -4e307), 4e307);
    const double size = fmax(fabs(low), fabs(high));
    if (high - low <= 1e-10 * size || high - low < 1e-290) { // constant: some air around it
        const double air = size > 1e-280 ? 0.1 * size : 1;
        low -= air;
        high += air;
    }
    crdi_axis a = {.low = low, .high = high};
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
    // Far from zero, as the seconds since 1970 are: labels are counted from a tick nearby.
    const int64_t most = a.last > -a.first ? a.last : -a.first;
    if (tight && most >= 100000 && a.last >= a.first && a.exponent >= -9 && a.exponent <= 9) {
        int64_t round = a.mantissa == 1 ? 1 : 10 / a.mantissa; // ticks, together a power of ten
        while (round < 5 * (a.last - a.first)) {
            round *= 10;
        }
        a.base = a.first - ((a.first % round) + round) % round;
    }
    const double from = a.base ? tick_at(&a, a.first - a.base) : a.low;
    const double to = a.base ? tick_at(&a, a.last - a.base) : a.high;
    const double largest = fmax(fabs(from), fabs(to));
    if (largest >= 1e5 || largest < 1e-2) { a.shift = 3 * (int)floor(log10(largest) / 3); }
    return a;
}

// Exactly n * mantissa * 10^(exponent - shift), put together from digits.
static void tick_text(const crdi_axis* a, int64_t n, char* out)
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

void crdi_axis_factor(const crdi_axis* a, char out[64])
{
    *out = 0;
    if (a->shift != 0) { out = power_text(a->shift, stpcpy(out, "\u00D7")); }
    if (a->base) {
        const crdi_axis plain = {.mantissa = a->mantissa, .exponent = a->exponent};
        out = stpcpy(out, a->shift ? " " : "");
        if (a->base > 0) { *out++ = '+'; }
        tick_text(&plain, a->base, out);
    }
}

// Logarithms from the data's ends: ticks at the powers of ten and between them. Not `tight`: air up
// to the next 1, 2 or 5.
static crdi_axis make_log_axis(double low, double high, bool tight)
{
    if (!(low > 0 && low <= high)) { // no data
        low = 1;
        high = 10;
    }
    low = fmax(low, 1e-300);
    high = fmin(high, 1e300);
    crdi_axis a = {.log = true, .low = log10(low), .high = log10(high)};
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
    const crdi_axis plain = {.mantissa = 1, .exponent = exponent};
    tick_text(&plain, digit, out);
}

static int log_marks(const crdi_axis* a, crdi_mark* out)
{
    const int first = (int)floor(a->low), last = (int)ceil(a->high);
    const int apart = last - first > 16 ? (last - first) / 8 : 1;
    const bool fine = last - first <= 8, named = a->high - a->low < 1.6;
    int n = 0;
    for (int e = first; e <= last; e += apart) {
        for (int digit = 1; digit <= (fine ? 9 : 1) && n < CRDI_MOST_MARKS; digit++) {
            const double at = e + log10(digit);
            if (at < a->low - 1e-9 || at > a->high + 1e-9) { continue; }
            out[n] = (crdi_mark){.at = at, .class = digit == 1 ? "grid" : "fine"};
            if (digit == 1 || (named && (digit == 2 || digit == 5))) {
                decade_text(e, digit, out[n].text);
            }
            n++;
        }
    }
    return n;
}

// out has room for CRDI_MOST_MARKS
int crdi_axis_marks(const crdi_axis* a, crdi_mark* out)
{
    if (a->log) { return log_marks(a, out); }
    int n = 0;
    for (int64_t i = a->first; i <= a->last && n < MOST_TICKS; i++, n++) {
        out[n] = (crdi_mark){.at = tick_at(a, i), .class = i == 0 && !a->names ? "zero" : "grid"};
        if (a->names) {
            strncpy(out[n].text, a->names[i], sizeof out[n].text - 1);
        } else {
            tick_text(a, i - a->base, out[n].text);
        }
    }
    return n;
}

double crdi_axis_value(const crdi_axis* a, double v)
{
    return a->log ? log10(v) : v;
}

// Can it be drawn?
bool crdi_axis_shows(const crdi_axis* a, double v)
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
crdi_axis crdi_axis_x(const crd_plot_panel* panels, const crd_plot_scale* scales, int panel_count,
                      bool log, int count)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (int i = 0; i < panel_count; i++) {
        if (scales && scales[i].own_x) { continue; }
        for (int k = 0; k < panels[i].series_count; k++) {
            const crd_plot_series* s = &panels[i].series[k];
            extend_range(&low, &high, s->x, s->y, s->count, log);
        }
    }
    return log ? make_log_axis(low, high, true) : crdi_axis_make(low, high, count, true);
}

bool crdi_has_range(double low, double high)
{
    return low < high && isfinite(low) && isfinite(high);
}

bool crdi_panel_has_right(const crd_plot_panel* p)
{
    for (int k = 0; k < p->series_count; k++) {
        if (p->series[k].right) { return true; }
    }
    return false;
}

crdi_axis crdi_axis_own_x(const crd_plot_panel* panel, const crd_plot_scale* scale, int count)
{
    if (!crdi_has_range(scale->x_low, scale->x_high) || (scale->log_x && !(scale->x_low > 0))) {
        return crdi_axis_x(panel, NULL, 1, scale->log_x, count);
    }
    return scale->log_x ? make_log_axis(scale->x_low, scale->x_high, true)
                        : crdi_axis_make(scale->x_low, scale->x_high, count, true);
}

crdi_axis crdi_axis_y(const crd_plot_panel* panel, const crd_plot_scale* scale, bool right,
                      int count)
{
    const bool log = scale && scale->log_y;
    double low = (double)INFINITY, high = -(double)INFINITY;
    if (scale && scale->bars) { // a row for each series, the first above
        return (crdi_axis){.low = 0,
                           .high = panel->series_count ? panel->series_count : 1,
                           .first = 1,
                           .last = 0,
                           .mantissa = 1};
    }
    if (scale && scale->y_name_count > 0) {
        return (crdi_axis){.low = -0.5,
                           .high = scale->y_name_count - 0.5,
                           .last = scale->y_name_count - 1,
                           .mantissa = 1,
                           .names = scale->y_names};
    }
    if (scale && crdi_has_range(scale->y_low, scale->y_high) && (!log || scale->y_low > 0)) {
        return log ? make_log_axis(scale->y_low, scale->y_high, true)
                   : crdi_axis_make(scale->y_low, scale->y_high, count, true);
    }
    for (int k = 0; k < panel->series_count; k++) {
        const crd_plot_series* s = &panel->series[k];
        if (s->right == right) { extend_range(&low, &high, s->y, s->x, s->count, log); }
    }
    return log ? make_log_axis(low, high, false) : crdi_axis_make(low, high, count, false);
}
