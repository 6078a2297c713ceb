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

static const char* text_or_dash(const char* text)
{
    return *text ? text : "\u2013";
}

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

static void put_grid(crd_text* t, const chart* c, int base, bool named)
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
    put_grid(t, c, base, named);
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

// Colours come from the page that holds it, or are its own.
static const char style[] =
    "<style>.pace{--tl:var(--grid,#d1d9e0);--tt:var(--text,#1f2328);--tm:var(--muted,#59636e);"
    "--ta:var(--accent,#0969da);--tr:var(--return,#bc4c00)}\n"
    ".pace text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
    "fill:var(--tt)}.pace .title{font-weight:600}.pace .tick{font-size:11px;fill:var(--tm)}"
    ".pace .grid{stroke:var(--tl);fill:none}.pace .bar{fill:var(--ta)}.pace .above{fill:var(--tr)}"
    ".pace .limit{stroke:var(--tt);fill:none;stroke-width:1.5;stroke-dasharray:5 4}\n";
static const char dark_style[] =
    "@media(prefers-color-scheme:dark){.pace{--tl:#343b45;--tt:#e6edf3;--tm:#9198a1;"
    "--ta:#4ea1ff;--tr:#f0883e}}\n";

static void draw_histograms(const chart* c, bool alone, crd_text* t)
{
    const int width = LEFT + BAR * PER_DECADE * c->decades + RIGHT;
    const int first = HEAD + PANEL, second = first + HEAD + PANEL, height = second + FOOT;
    crdi_text_add(t,
                  "<svg class=\"pace\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                  "aria-label=\"How many cycles began how late, and took how long\" width=\"%d\" "
                  "height=\"%d\" viewBox=\"0 0 %d %d\" style=\"--width:%dpx\">\n",
                  width, height, width, height, width);
    crdi_text_put(t, style, sizeof style - 1);
    if (alone) { crdi_text_put(t, dark_style, sizeof dark_style - 1); }
    crdi_text_add(t, "</style>\n");
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
    crd_status st = CRD_OK;
    crd_text svg;
    crd_text_init(&svg, r->ctx);
    draw_histograms(&c, !d->html, &svg);
    if (svg.failed) {
        st = CRD_E_MEMORY;
    } else if (d->html) {
        crdi_doc_put(d, "<div class=\"scroll drawing\" tabindex=\"0\" role=\"group\" "
                        "aria-label=\"Histograms of lateness and work\">");
        crdi_doc_bytes(d, svg.data, svg.length);
        crdi_doc_put(d, "</div>\n");
    } else {
        char file[32];
        snprintf(file, sizeof file, "realtime-%03d.svg", part + 1);
        st = crdi_report_picture(r, d, "how late cycles began and how long they took", file, &svg);
    }
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

static void put_system(crdi_doc* d, const crdi_json* pace)
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

static void put_notes(crdi_doc* d, const crdi_json* notes)
{
    if (crdi_json_count(notes) == 0) { return; }
    crdi_doc_put(d, d->html ? "<ul class=\"advice\">\n" : "\n");
    for (const crdi_json* note = crdi_json_first(notes); note; note = note->next) {
        if (note->kind != CRDI_JSON_TEXT) { continue; }
        crdi_doc_put(d, d->html ? "<li>" : "- ");
        crdi_doc_text(d, note->text);
        crdi_doc_put(d, d->html ? "</li>\n" : "\n");
    }
    crdi_doc_put(d, d->html ? "</ul>\n" : "");
}

// ---- tables ------------------------------------------------------------------------------------

static void put_seconds(crdi_doc* d, const crdi_json* object, const char* key)
{
    char t[32];
    crdi_doc_cell(d, "%s", crdi_seconds_text(t, crdi_json_get_number(object, key)));
}

static void put_quantiles(crdi_doc* d, const crdi_json* pace)
{
    static const char* const keys[] = {"mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"};
    crdi_doc_table(d, "Per cycle", "lrrrrrrr", "|Mean|p50|p90|p99|p99.9|p99.99|Largest");
    for (int k = 0; k < 2; k++) {
        const crdi_json* h = crdi_json_get_object(pace, panels[k].key);
        crdi_doc_cell(d, "%s", panels[k].title);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            put_seconds(d, h, keys[i]);
        }
    }
    crdi_doc_table_end(d);
}

static void put_overruns(crdi_doc* d, const crdi_json* pace)
{
    const crdi_json* list = crdi_json_get_list(pace, "overruns");
    const size_t n = crdi_json_count(list);
    const double all = crdi_json_get_number(pace, "overrun_count");
    if (n == 0) { return; }
    const bool folded = d->html && n > FEW;
    if (folded && all > (double)n) {
        crdi_text_add(&d->text, "<details><summary>%zu of %.15g overruns</summary>\n", n, all);
    } else if (folded) {
        crdi_text_add(&d->text, "<details><summary>%zu overruns</summary>\n", n);
    }
    crdi_doc_table(d, folded ? "" : "Overruns", "rrrrl", "At / s|Cycle|Late|Work|Longest in");
    for (const crdi_json* o = crdi_json_first(list); o; o = o->next) {
        char t[32];
        crdi_doc_cell(d, "%s", crdi_number_text(t, crdi_json_get_number(o, "time"), 9));
        crdi_doc_cell(d, "%s", crdi_number_text(t, crdi_json_get_number(o, "cycle"), 15));
        put_seconds(d, o, "late");
        put_seconds(d, o, "busy");
        crdi_doc_cell(d, "%s", text_or_dash(crdi_json_get_text(o, "unit")));
    }
    crdi_doc_table_end(d);
    if (all > (double)n) {
        char t[32];
        crdi_doc_paragraph(d, "The first of %s, and the latest of the others.",
                           crdi_number_text(t, all, 15));
    }
    if (folded) { crdi_doc_put(d, "</details>\n"); }
}

static void put_budgets(crdi_doc* d, const crdi_json* units)
{
    bool any = false;
    for (const crdi_json* u = crdi_json_first(units); u; u = u->next) {
        char t[32];
        if (!(crdi_json_get_number(u, "budget") > 0)) { continue; }
        if (!any) {
            crdi_doc_table(d, "Units with a budget", "lrrr", "Unit|Budget|Steps|Cycles without it");
        }
        any = true;
        crdi_doc_cell(d, "%s", crdi_json_get_text(u, "name"));
        put_seconds(d, u, "budget");
        crdi_doc_cell(d, "%s", crdi_number_text(t, crdi_json_get_number(u, "steps"), 15));
        crdi_doc_cell(d, "%s", crdi_number_text(t, crdi_json_get_number(u, "late"), 15));
    }
    if (any) { crdi_doc_table_end(d); }
}

static void put_links(crdi_doc* d, const crdi_json* units)
{
    static const char* const counts[] = {"in",        "out", "lost", "duplicates",
                                         "reordered", "bad", "late"};
    static const char* const times[] = {"age_mean", "age_max", "round_trip", "round_trip_max"};
    bool any = false;
    for (const crdi_json* u = crdi_json_first(units); u; u = u->next) {
        const crdi_json* l = crdi_json_get_object(u, "link");
        char t[32];
        if (!l) { continue; }
        if (!any) {
            crdi_doc_table(d, "Links", "lrrrrrrrrrrr",
                           "Unit|In|Out|Lost|Twice|Out of order|Bad|Late|Mean age|Largest age|"
                           "Round trip|Longest");
        }
        any = true;
        crdi_doc_cell(d, "%s", crdi_json_get_text(u, "name"));
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            crdi_doc_cell(d, "%s", crdi_number_text(t, crdi_json_get_number(l, counts[k]), 15));
        }
        for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
            put_seconds(d, l, times[k]);
        }
    }
    if (any) { crdi_doc_table_end(d); }
}

// ---- the section -------------------------------------------------------------------------------

static bool says_something(const crdi_json* verdict)
{
    if (crdi_report_paced(verdict)) { return true; }
    for (const crdi_json* u = crdi_json_first(crdi_json_get_list(verdict, "units")); u;
         u = u->next) {
        if (crdi_json_get_object(u, "link") || crdi_json_get_number(u, "budget") > 0) {
            return true;
        }
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
        if (p->run->reference || !says_something(p->verdict)) { continue; }
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
            put_system(d, pace);
            put_notes(d, crdi_json_get_list(pace, "notes"));
            put_overruns(d, pace);
        }
        put_budgets(d, crdi_json_get_list(p->verdict, "units"));
        put_links(d, crdi_json_get_list(p->verdict, "units"));
    }
    return CRD_OK;
}
