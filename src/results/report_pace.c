// How runs kept the clock: histograms of lateness and work, quantiles, overruns, budgets, links.
#include "results/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    PER_DECADE = 10, // bars
    DECADES = 12,    // at most; what is shorter counts in the first bar
    BAR = 14,        // width of a bar with its distance
    LEFT = 64,
    RIGHT = 28,
    PANEL = 130, // height of the bars of a panel
    HEAD = 34,   // above them
    FOOT = 30,   // below them
    FEW = 10,    // overruns that are not folded
};

// ---- histograms --------------------------------------------------------------------------------

typedef struct chart {
    int low, decades; // first exponent of ten on the axis of time, and how many
    double most;      // count of the highest bar
    double period;    // s, NaN: none
    double counts[2][PER_DECADE * DECADES];
} chart;

static const struct {
    const char *key, *title;
} panels[2] = {{"lateness", "Wake-up after the deadline"}, {"busy", "Work of a cycle"}};

static const crdi_json* buckets_of(const crdi_json* pace, int panel)
{
    return crdi_json_get_list(crdi_json_get_object(pace, panels[panel].key), "histogram");
}

// [least duration in s, how many] of a histogram; false: it is something else.
static bool read_bucket(const crdi_json* bucket, double* edge, double* count)
{
    const crdi_json *a = crdi_json_item(bucket, 0), *b = crdi_json_item(bucket, 1);
    *edge = crdi_json_value(a);
    *count = crdi_json_value(b);
    return isfinite(*edge) && *edge >= 0 && *count > 0 && *count < 1e18;
}

static void choose_axis(const crdi_json* pace, chart* c)
{
    double low = (double)INFINITY, high = 0, edge, count;
    for (int k = 0; k < 2; k++) {
        for (const crdi_json* b = crdi_json_first(buckets_of(pace, k)); b; b = b->next) {
            if (!read_bucket(b, &edge, &count)) { continue; }
            if (edge > 0) { low = fmin(low, edge); }
            high = fmax(high, edge);
        }
    }
    c->period = crdi_json_get_number(pace, "period");
    if (!(c->period > 0)) { c->period = (double)NAN; }
    if (!isnan(c->period)) {
        low = fmin(low, c->period);
        high = fmax(high, c->period);
    }
    if (!(low > 1e-9)) { low = 1e-9; }
    if (!isfinite(low)) { low = 1e-6; }
    high = fmin(fmax(high, 10 * low), 1e6);
    // The end of the last bar is the end of the axis: a little room for what is on a power of ten.
    const int end = (int)floor(log10(high) + 1e-9) + 1;
    c->low = (int)floor(fmin(log10(low) + 1e-9, end - 1));
    if (end - c->low > DECADES) { c->low = end - DECADES; }
    c->decades = end - c->low;
}

static int bar_of(const chart* c, double edge)
{
    const int n = PER_DECADE * c->decades;
    if (!(edge > 0)) { return 0; }
    const double at = floor(PER_DECADE * (log10(edge) - c->low) + 1e-6);
    return at < 0 ? 0 : at >= n ? n - 1 : (int)at;
}

static void fill_bars(const crdi_json* pace, chart* c)
{
    double edge, count;
    for (int k = 0; k < 2; k++) {
        for (const crdi_json* b = crdi_json_first(buckets_of(pace, k)); b; b = b->next) {
            if (!read_bucket(b, &edge, &count)) { continue; }
            double* bar = &c->counts[k][bar_of(c, edge)];
            *bar += count;
            c->most = fmax(c->most, *bar);
        }
    }
}

static int height_of(const chart* c, double count)
{
    const double foot = 0.4; // of a decade below 1, so that one cycle can be seen
    const double top = fmax(1, ceil(log10(c->most) + 1e-9));
    return (int)lround(PANEL * (log10(count) + foot) / (top + foot));
}

static void report_pace_put_grid(crd_text* t, const chart* c, int base, bool named)
{
    const int width = BAR * PER_DECADE * c->decades;
    const int top = (int)fmax(ceil(log10(c->most) + 1e-9), 1), every = top > 4 ? 2 : 1;
    for (int e = 0; e <= top; e++) {
        const int y = base - height_of(c, pow(10, e));
        crdi_text_add(t, "<path class=\"grid\" d=\"M%d %dh%d\"/>", LEFT, y, width);
        if (e % every) { continue; }
        crdi_text_add(t, "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%d\">%.0f</text>\n",
                      LEFT - 8, y + 4, pow(10, e));
    }
    crdi_text_add(t, "<path class=\"grid\" d=\"M%d %dh%d\"/>", LEFT, base, width);
    for (int e = 0; e <= c->decades; e++) {
        const int x = LEFT + BAR * PER_DECADE * e;
        char label[32];
        crdi_text_add(t, "<path class=\"grid\" d=\"M%d %dv%d\"/>", x, base, -PANEL);
        if (!named) { continue; }
        crdi_text_add(t,
                      "<text class=\"tick\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">%s</text>\n",
                      x, base + 18, crdi_seconds_text(label, pow(10, c->low + e)));
    }
}

static void put_panel(crd_text* t, const chart* c, int k, int base, bool named)
{
    crdi_text_add(t,
                  "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text><text class=\"tick\" "
                  "text-anchor=\"end\" x=\"%d\" y=\"%d\">cycles</text>\n",
                  LEFT, base - PANEL - 12, panels[k].title, LEFT - 8, base - PANEL - 12);
    report_pace_put_grid(t, c, base, named);
    for (int i = 0; i < PER_DECADE * c->decades; i++) {
        char from[48], text[32];
        if (!(c->counts[k][i] > 0)) { continue; }
        const double low = pow(10, c->low + i / (double)PER_DECADE);
        const double high = pow(10, c->low + (i + 1) / (double)PER_DECADE);
        const int height = height_of(c, c->counts[k][i]);
        snprintf(from, sizeof from, "%s to ", crdi_seconds_text(text, low));
        crdi_text_add(t,
                      "<rect class=\"bar%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"><title>"
                      "%s%s: %.0f cycle%s</title></rect>\n",
                      low >= c->period * (1 - 1e-9) ? " above" : "", LEFT + BAR * i + 1,
                      base - height, BAR - 2, height, i ? from : "below ",
                      crdi_seconds_text(text, high), c->counts[k][i],
                      c->counts[k][i] == 1 ? "" : "s");
    }
}

static void put_period(crd_text* t, const chart* c, int bottom)
{
    char text[32];
    if (isnan(c->period)) { return; }
    const int x = LEFT + (int)lround(BAR * PER_DECADE * (log10(c->period) - c->low));
    const bool right = x > LEFT + BAR * PER_DECADE * c->decades - 110;
    crdi_text_add(t,
                  "<path class=\"limit\" d=\"M%d %dV%d\"/><text class=\"tick\" %sx=\"%d\" y=\"%d\">"
                  "period %s</text>\n",
                  x, HEAD - 18, bottom, right ? "text-anchor=\"end\" " : "", right ? x - 6 : x + 6,
                  HEAD - 10, crdi_seconds_text(text, c->period));
}

static void draw_histograms(const chart* c, bool alone, crd_text* t)
{
    const int width = LEFT + BAR * PER_DECADE * c->decades + RIGHT;
    const int first = HEAD + PANEL, second = first + HEAD + PANEL, height = second + FOOT;
    crdi_svg_begin_chart(t, "pace", "How many cycles began how late, and took how long", width,
                         height, alone);
    put_panel(t, c, 0, first, false);
    put_panel(t, c, 1, second, true);
    put_period(t, c, second);
    crdi_text_add(t, "</svg>\n");
}

static crd_status put_chart(crdi_report* r, crdi_doc* d, int part, const crdi_json* pace)
{
    chart c = {0};
    choose_axis(pace, &c);
    fill_bars(pace, &c);
    if (!(c.most > 0)) { return CRD_OK; }
    static const crdi_chart_words words = {"Histograms of lateness and work",
                                           "how late cycles began and how long they took",
                                           "realtime"};
    crd_text svg;
    crd_text_init(&svg, r->ctx);
    draw_histograms(&c, !d->html, &svg);
    const crd_status st = crdi_report_chart(r, d, part, &words, &svg);
    crd_text_clear(&svg);
    return st;
}

// ---- words -------------------------------------------------------------------------------------

static void put_sentence(crdi_doc* d, const crdi_json* pace)
{
    char cycles[32], period[32], late[32], at[32], row[32], factor[48] = "in real time";
    const double x = crdi_json_get_number(pace, "factor"),
                 count = crdi_json_get_number(pace, "overrun_count");
    const double burst = crdi_json_get_number(pace, "burst");
    const crdi_json* worst = crdi_json_get_object(pace, "worst");
    if (x != 1) {
        snprintf(factor, sizeof factor, "at %s times real time", crdi_number_text(at, x, 6));
    }
    const double step = crdi_json_get_number(pace, "period");
    crdi_number_text(cycles, crdi_json_get_number(pace, "cycles"), 15);
    crdi_seconds_text(period, step);
    if (!(count > 0)) {
        crdi_doc_paragraph(d, "%s cycles%s%s %s, each of them done before the next one was due.",
                           cycles, step > 0 ? " of " : "", step > 0 ? period : "", factor);
        return;
    }
    char n[32], longest[128] = "";
    if (burst > 1) {
        snprintf(longest, sizeof longest, " The longest row was %s, from %s s on.",
                 crdi_number_text(row, burst, 12),
                 crdi_number_text(at, crdi_json_get_number(pace, "burst_time"), 9));
    }
    const char* unit = crdi_json_get_text(worst, "unit");
    const double work = crdi_json_get_number(worst, "busy");
    // It worked less than it was late at its beginning.
    const bool woken = crdi_json_get_number(worst, "late") + step - work > work;
    char seconds[32];
    crdi_doc_paragraph(d,
                       "%s cycles%s%s %s, %s of them not done when the next one was due; the worst "
                       "by %s, at %s s%s%s.%s",
                       cycles, step > 0 ? " of " : "", step > 0 ? period : "", factor,
                       crdi_number_text(n, count, 12),
                       crdi_seconds_text(late, crdi_json_get_number(worst, "late")),
                       crdi_number_text(seconds, crdi_json_get_number(worst, "time"), 9),
                       woken   ? ", after it began late"
                       : *unit ? ", longest in "
                               : "",
                       woken ? "" : unit, longest);
}

static void put_moves(crdi_doc* d, const crdi_json* pace)
{
    char a[32], b[32];
    const double moved = crdi_json_get_number(pace, "moved"),
                 paused = crdi_json_get_number(pace, "paused");
    const double drift = crdi_json_get_number(pace, "drift"),
                 steps = crdi_json_get_number(pace, "clock_steps");
    if (moved != 0 && isfinite(moved)) {
        crdi_doc_paragraph(d, "The deadlines were moved by %s, %s of them skipped.",
                           crdi_seconds_text(a, moved),
                           crdi_number_text(b, crdi_json_get_number(pace, "skipped"), 12));
    }
    if (paused > 0) {
        crdi_doc_paragraph(d, "The run stood still for %s.", crdi_seconds_text(a, paused));
    }
    if (drift != 0 && isfinite(drift)) {
        crdi_doc_paragraph(d, "The grid of deadlines drifted by %s.", crdi_seconds_text(a, drift));
    }
    if (steps > 0) {
        crdi_doc_paragraph(d, "Meanwhile the wall clock was set %s time%s, by %s in all.",
                           crdi_number_text(a, steps, 12), steps == 1 ? "" : "s",
                           crdi_seconds_text(b, crdi_json_get_number(pace, "clock_step")));
    }
}

static void report_pace_put_system(crdi_doc* d, const crdi_json* pace)
{
    char n[32], faults[2][32], switches[2][32], policy[64], cpu[64];
    if (crdi_json_get_bool(pace, "fifo", false)) {
        snprintf(policy, sizeof policy, "SCHED_FIFO %s",
                 crdi_number_text(n, crdi_json_get_number(pace, "priority"), 3));
    } else {
        snprintf(policy, sizeof policy, "the ordinary scheduler");
    }
    const double core = crdi_json_get_number(pace, "cpu");
    if (core >= 0) {
        snprintf(cpu, sizeof cpu, "on CPU %s", crdi_number_text(n, core, 6));
    } else {
        snprintf(cpu, sizeof cpu, "on any CPU");
    }
    crdi_doc_paragraph(
        d,
        "The cycle thread had %s, memory %slocked, %s. In its loop: %s major and %s minor page "
        "faults, %s voluntary and %s involuntary context switches.",
        policy, crdi_json_get_bool(pace, "locked", false) ? "" : "not ", cpu,
        crdi_number_text(faults[0], crdi_json_get_number(pace, "major_faults"), 15),
        crdi_number_text(faults[1], crdi_json_get_number(pace, "minor_faults"), 15),
        crdi_number_text(switches[0], crdi_json_get_number(pace, "voluntary_switches"), 15),
        crdi_number_text(switches[1], crdi_json_get_number(pace, "involuntary_switches"), 15));
}

// ---- tables ------------------------------------------------------------------------------------

static const crdi_doc_column quantile_columns[] = {
    {CRDI_TEXT("", "")}, // of the panel
    {CRDI_SECONDS("Mean", "mean")},
    {CRDI_SECONDS("p50", "p50")},
    {CRDI_SECONDS("p90", "p90")},
    {CRDI_SECONDS("p99", "p99")},
    {CRDI_SECONDS("p99.9", "p99.9")},
    {CRDI_SECONDS("p99.99", "p99.99")},
    {CRDI_SECONDS("Largest", "max")},
};

static void put_quantiles(crdi_doc* d, const crdi_json* pace)
{
    enum { COUNT = sizeof quantile_columns / sizeof *quantile_columns };
    crdi_doc_columns(d, "Per cycle", quantile_columns, COUNT);
    for (int k = 0; k < 2; k++) {
        crdi_doc_cell(d, "%s", panels[k].title);
        crdi_doc_row(d, quantile_columns + 1, COUNT - 1, crdi_json_get_object(pace, panels[k].key));
    }
    crdi_doc_table_end(d);
}

static const crdi_doc_column overrun_columns[] = {
    {CRDI_NUMBER("At / s", "time", 9)}, {CRDI_NUMBER("Cycle", "cycle", 15)},
    {CRDI_SECONDS("Late", "late")},     {CRDI_SECONDS("Work", "busy")},
    {CRDI_TEXT("Longest in", "unit")},
};

static void report_pace_put_overruns(crdi_doc* d, const crdi_json* pace)
{
    const crdi_json* list = crdi_json_get_list(pace, "overruns");
    const int n = crdi_json_count(list);
    const double all = crdi_json_get_number(pace, "overrun_count");
    if (n == 0) { return; }
    const bool folded = d->html && n > FEW;
    if (folded && all > (double)n) {
        crdi_text_add(&d->text, "<details><summary>%d of %.15g overruns</summary>\n", n, all);
    } else if (folded) {
        crdi_text_add(&d->text, "<details><summary>%d overruns</summary>\n", n);
    }
    crdi_doc_rows(d, folded ? "" : "Overruns", CRDI_COLUMNS(overrun_columns), list, NULL);
    if (all > (double)n) {
        char t[32];
        crdi_doc_paragraph(d, "The first of %s, and the latest of the others.",
                           crdi_number_text(t, all, 15));
    }
    if (folded) { crdi_doc_put(d, "</details>\n"); }
}

static const crdi_doc_column budget_columns[] = {
    {CRDI_TEXT("Unit", "name")},
    {CRDI_SECONDS("Budget", "budget")},
    {CRDI_NUMBER("Steps", "steps", 15)},
    {CRDI_NUMBER("Cycles without it", "late", 15)},
};

static bool has_budget(const crdi_json* unit)
{
    return crdi_json_get_number(unit, "budget") > 0;
}

static const crdi_doc_column link_columns[] = {
    {CRDI_TEXT("Unit", "name")},
    {CRDI_NUMBER("In", "in", 15), .part = "link"},
    {CRDI_NUMBER("Out", "out", 15), .part = "link"},
    {CRDI_NUMBER("Lost", "lost", 15), .part = "link"},
    {CRDI_NUMBER("Twice", "duplicates", 15), .part = "link"},
    {CRDI_NUMBER("Out of order", "reordered", 15), .part = "link"},
    {CRDI_NUMBER("Bad", "bad", 15), .part = "link"},
    {CRDI_NUMBER("Late", "late", 15), .part = "link"},
    {CRDI_SECONDS("Mean age", "age_mean"), .part = "link"},
    {CRDI_SECONDS("Largest age", "age_max"), .part = "link"},
    {CRDI_SECONDS("Round trip", "round_trip"), .part = "link"},
    {CRDI_SECONDS("Longest", "round_trip_max"), .part = "link"},
    {CRDI_TEXT("Security", "security"), .part = "link"},
};

static bool has_link(const crdi_json* unit)
{
    return crdi_json_get_object(unit, "link") != NULL;
}

// ---- the section -------------------------------------------------------------------------------

static bool report_pace_says_something(const crdi_json* verdict)
{
    if (crdi_report_paced(verdict)) { return true; }
    for (const crdi_json* u = crdi_json_first(crdi_json_get_list(verdict, "units")); u;
         u = u->next) {
        if (has_link(u) || has_budget(u)) { return true; }
    }
    return false;
}

const crdi_json* crdi_report_paced(const crdi_json* verdict)
{
    const crdi_json* pace = crdi_json_get_object(verdict, "pace");
    return crdi_json_get_bool(pace, "on", false) ? pace : NULL;
}

crd_status crdi_report_pace(crdi_report* r, crdi_doc* d)
{
    bool any = false;
    for (int i = 0; i < r->part_count; i++) {
        const crdi_report_part* p = &r->parts[i];
        if (p->run->reference || !report_pace_says_something(p->verdict)) { continue; }
        if (!any) { crdi_doc_heading(d, 2, "realtime", "Real time"); }
        any = true;
        if (r->part_count > 1) { crdi_doc_heading(d, 3, "", p->label); }
        const crdi_json* pace = crdi_report_paced(p->verdict);
        if (pace) {
            put_sentence(d, pace);
            put_moves(d, pace);
            const crd_status st = put_chart(r, d, i, pace);
            if (st < 0) { return st; }
            put_quantiles(d, pace);
            report_pace_put_system(d, pace);
            crdi_doc_sentences(d, crdi_json_get_list(pace, "notes"));
            report_pace_put_overruns(d, pace);
        }
        const crdi_json* units = crdi_json_get_list(p->verdict, "units");
        crdi_doc_rows(d, "Units with a budget", CRDI_COLUMNS(budget_columns), units, has_budget);
        crdi_doc_rows(d, "Links", CRDI_COLUMNS(link_columns), units, has_link);
    }
    return CRD_OK;
}
