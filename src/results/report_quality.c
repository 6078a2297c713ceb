// How good the runs were: defects of connections, energy of bonds, step control, iteration, advice.
#include "results/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_BARS = 40, // the worst
    ROW = 20,       // height of a bar with its distance
    BAR = 12,
    AXIS = 520, // width
    LETTER = 7,
    MOST_LETTERS = 44,
    TOP = 22,
    DECADES = 12, // at most; what is smaller is a stub
};

// ---- bars --------------------------------------------------------------------------------------

typedef struct axis {
    double low, high; // exponents of ten
    double left;      // where it begins
} axis;

static double bar_end(const axis* a, double x)
{
    const double at = x > 0 ? (log10(x) - a->low) / (a->high - a->low) : 0;
    return a->left + AXIS * fmin(1, fmax(0, at));
}

static axis choose_axis(const crdi_json* flows, int count, double limit)
{
    axis a = {.low = (double)INFINITY, .high = -(double)INFINITY};
    size_t longest = 0;
    const crdi_json* f = crdi_json_first(flows);
    for (int i = 0; i < count; i++, f = f->next) {
        const double x = crdi_json_get_number(f, "relative");
        const size_t n =
            strlen(crdi_json_get_text(f, "from")) + strlen(crdi_json_get_text(f, "to")) + 3;
        longest = n > longest ? n : longest;
        if (!(x > 0) || !isfinite(x)) { continue; }
        a.low = fmin(a.low, floor(log10(x)));
        a.high = fmax(a.high, ceil(log10(x) + 1e-9));
    }
    if (limit > 0 && isfinite(limit)) {
        a.low = fmin(a.low, floor(log10(limit)));
        a.high = fmax(a.high, ceil(log10(limit) + 1e-9));
    }
    if (!isfinite(a.low)) { a = (axis){.low = -4, .high = 0}; }
    a.low = fmax(a.low, a.high - DECADES);
    if (a.high - a.low < 2) { a.low = a.high - 2; }
    a.left = 16 + LETTER * (double)(longest < MOST_LETTERS ? longest : MOST_LETTERS);
    return a;
}

static void report_quality_put_name(crd_text* t, const crdi_json* flow)
{
    char name[4 * MOST_LETTERS + 8], whole[CRDI_CELL];
    crdi_svg_clip(name, crdi_connection_text(flow, whole), MOST_LETTERS);
    crdi_text_xml(t, name);
}

static void put_axis(crd_text* t, const axis* a, int height)
{
    const int every = a->high - a->low > 6 ? 2 : 1;
    for (int e = (int)a->low; e <= (int)a->high; e++) {
        const int x = (int)lround(bar_end(a, pow(10, e)));
        crdi_text_add(t, "<path class=\"grid\" d=\"M%d %dV%d\"/>", x, TOP - 4, height - 6);
        if ((e - (int)a->high) % every) { continue; }
        char label[32];
        crdi_text_add(
            t, "<text class=\"tick\" text-anchor=\"middle\" x=\"%d\" y=\"12\">%s %%</text>\n", x,
            crdi_number_text(label, pow(10, e + 2), 3));
    }
}

static void put_bar(crd_text* t, const axis* a, const crdi_json* flow, int row, double limit)
{
    const double x = crdi_json_get_number(flow, "relative");
    const bool broken = !isfinite(x), above = broken || (limit > 0 && x > limit);
    const int y = TOP + ROW * row, left = (int)a->left;
    const int end = broken ? left + AXIS : (int)lround(bar_end(a, x));
    char text[CRDI_CELL];
    crdi_text_add(t, "<g><title>");
    report_quality_put_name(t, flow);
    crdi_text_add(t, ": %s</title><text text-anchor=\"end\" x=\"%d\" y=\"%d\">",
                  broken ? "not finite" : crdi_percent_text(text, x), left - 8, y + BAR - 1);
    report_quality_put_name(t, flow);
    crdi_text_add(
        t, "</text><rect class=\"bar%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></g>\n",
        above ? " above" : "", left, y, end - left > 2 ? end - left : 2, BAR);
}

// Relative defects as bars on a logarithmic axis, with the limit.
static void draw_bars(const crdi_json* flows, double limit, bool alone, crd_text* t)
{
    const int all = crdi_json_count(flows), count = all < MOST_BARS ? all : MOST_BARS;
    const axis a = choose_axis(flows, count, limit);
    const int width = (int)a.left + AXIS + 40, height = TOP + ROW * count + 8;
    char label[48];
    snprintf(label, sizeof label, "Defects of %d connections", count);
    crdi_svg_begin_chart(t, "defects", label, width, height, alone);
    put_axis(t, &a, height);
    const crdi_json* flow = crdi_json_first(flows);
    for (int i = 0; i < count; i++, flow = flow->next) {
        put_bar(t, &a, flow, i, limit);
    }
    if (limit > 0 && isfinite(limit)) {
        char text[CRDI_CELL];
        const int x = (int)lround(bar_end(&a, limit));
        crdi_text_add(t, "<path class=\"limit\" d=\"M%d %dV%d\"><title>limit: %s</title></path>\n",
                      x, TOP - 6, height - 4, crdi_percent_text(text, limit));
    }
    crdi_text_add(t, "</svg>\n");
}

// ---- tables ------------------------------------------------------------------------------------

static const char* predictor_text(const crdi_json* f, char out[CRDI_CELL])
{
    const char* used = crdi_text_or_dash(crdi_json_get_text(f, "used"));
    const double share = crdi_json_get_number(f, "share");
    const bool partly = share > 0 && share < 0.995;
    return partly ? crdi_doc_format(out, CRDI_CELL, "%s (%.0f %%)", used, 100 * share) : used;
}

static const char* residual_power_text(const crdi_json* b, char out[CRDI_CELL])
{
    char low[32], high[32];
    return crdi_doc_format(out, CRDI_CELL, "%s to %s",
                           crdi_number_text(low, crdi_json_get_number(b, "power_min"), 3),
                           crdi_number_text(high, crdi_json_get_number(b, "power_max"), 3));
}

static const char* sweeps_text(const crdi_json* c, char out[CRDI_CELL])
{
    const double steps = crdi_json_get_number(c, "steps");
    const double sweeps = crdi_json_get_number(c, "sweeps");
    return crdi_number_text(out, steps > 0 ? sweeps / steps : (double)NAN, 3);
}

static const crdi_doc_column flow_columns[] = {
    {.title = "Connection", .make = crdi_connection_text},
    {.title = "Predictor", .make = predictor_text},
    {CRDI_NUMBER("Defect RMS", "defect_rms", 4)},
    {CRDI_NUMBER("Largest", "defect_max", 4)},
    {CRDI_NUMBER("At / s", "defect_max_time", 6)},
    {CRDI_TEXT("Unit", "unit")},
    {CRDI_PERCENT("Of scale", "relative")},
    {CRDI_NUMBER("Output defect", "output_defect_rms", 4)},
    {CRDI_NUMBER("Estimated error", "error_rms", 4)},
    {CRDI_NUMBER("Bound if smooth", "error_bound", 4)},
    {CRDI_NUMBER("Solver, a step", "solver_rms", 4)},
    {CRDI_NUMBER("Jumps", "jumps", 4)},
};
static const crdi_doc_column bond_columns[] = {
    {CRDI_TEXT("Bond", "name")},
    {CRDI_TEXT("Action", "action")},
    {CRDI_TEXT("Flow", "flow")},
    {CRDI_TEXT("Correction", "correct")},
    {CRDI_NUMBER("\u03BC", "mu", 4)},
    {CRDI_NUMBER("Put in / J", "energy", 4)},
    {CRDI_NUMBER("Corrected / J", "work", 4)},
    {CRDI_NUMBER("Passed / J", "transferred", 4)},
    {CRDI_PERCENT("Of passed", "relative")},
    {.title = "Residual power / W", .kind = CRDI_CELL_NUMBER, .make = residual_power_text},
};
static const crdi_doc_column pair_columns[] = {
    {CRDI_TEXT("Pair", "name")},
    {CRDI_TEXT("Unit", "unit")},
    {CRDI_TEXT("Port", "port")},
    {CRDI_SECONDS("Inner step", "inner")},
    {CRDI_NUMBER("Impedance", "impedance", 4)},
    {CRDI_SECONDS("Delay", "delay")},
    {CRDI_NUMBER("Tank / J", "tank", 4)},
    {CRDI_NUMBER("Granted / J", "granted", 4)},
    {CRDI_NUMBER("Thrown away / J", "dumped", 4)},
    {CRDI_NUMBER("Times limited", "limited", 4)},
    {CRDI_NUMBER("Steps predicted", "predicted", 4)},
};
static const crdi_doc_column control_columns[] = {
    {CRDI_NUMBER("Tolerance", "tolerance", 4)},
    {CRDI_SECONDS("Shortest step", "shortest")},
    {CRDI_SECONDS("Longest", "longest")},
    {CRDI_SECONDS("Mean", "mean")},
    {CRDI_NUMBER("Worst defect / tolerance", "worst", 4)},
    {CRDI_NUMBER("Steps beyond it", "beyond", 4)},
    {CRDI_NUMBER("Taken back", "rejected", 4)},
    {CRDI_NUMBER("At the floor", "at_floor", 4)},
    {CRDI_NUMBER("At the ceiling", "at_ceiling", 4)},
    {CRDI_NUMBER("Events", "events", 4)},
};
static const crdi_doc_column iteration_columns[] = {
    {CRDI_NUMBER("Steps", "steps", 12)},
    {.title = "Sweeps per step", .kind = CRDI_CELL_NUMBER, .make = sweeps_text},
    {CRDI_NUMBER("Most sweeps", "most", 4)},
    {CRDI_NUMBER("Not converged", "failed", 4)},
};

static void put_one_row(crdi_doc* d, const char* caption, const crdi_doc_column* columns, int count,
                        const crdi_json* object)
{
    if (!object) { return; }
    crdi_doc_columns(d, caption, columns, count);
    crdi_doc_row(d, columns, count, object);
    crdi_doc_table_end(d);
}

static void report_quality_put_iteration(crdi_doc* d, const crdi_json* c)
{
    char t[32];
    put_one_row(d, "Iteration", CRDI_COLUMNS(iteration_columns), c);
    if (!c) { return; }
    const char* once = crdi_json_get_text(c, "stepped_once");
    if (*once) { crdi_doc_paragraph(d, "Stepped once, without going back: %s.", once); }
    if (!(crdi_json_get_number(c, "failed") > 0)) { return; }
    char list[512] = "";
    size_t n = 0;
    for (const crdi_json* x = crdi_json_first(crdi_json_get_list(c, "residuals")); x; x = x->next) {
        const double residual = crdi_json_value(x);
        if (n + 48 > sizeof list) { break; }
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "",
                              crdi_number_text(t, residual, 3));
    }
    crdi_doc_paragraph(
        d,
        "The first step that did not converge ended at %s s; its residuals, sweep by "
        "sweep and in tolerances: %s. The largest was that of %s.",
        crdi_number_text(t, crdi_json_get_number(c, "failed_time"), 9), crdi_text_or_dash(list),
        crdi_text_or_dash(crdi_json_get_text(c, "failed_connection")));
}

// What was learned of the cycle, and what it was worth in this run.
static void report_quality_put_learned(crdi_doc* d, const crdi_json* c)
{
    char is[32], held[32], best[32], until[32];
    if (!c) { return; }
    const double end = crdi_json_get_number(c, "until");
    crdi_doc_paragraph(
        d,
        "%s corrects %.0f late signals: coupling error %s %%, held %s %%, %s %% when it was "
        "learned%s%s%s.",
        crdi_json_get_text(c, "file"), crdi_json_get_number(c, "signals"),
        crdi_number_text(is, 100 * crdi_json_get_number(c, "error"), 3),
        crdi_number_text(held, 100 * crdi_json_get_number(c, "first_error"), 3),
        crdi_number_text(best, 100 * crdi_json_get_number(c, "best_error"), 3),
        isnan(end) ? "" : "; not used any more after ",
        isnan(end) ? "" : crdi_number_text(until, end, 6), isnan(end) ? "" : " s");
}

// In a page they are folded: the plots are near, and paper shows all.
static void report_quality_put_numbers(crdi_doc* d, const crdi_json* verdict)
{
    if (d->html) { crdi_doc_put(d, "<details><summary>In numbers</summary>\n"); }
    crdi_doc_rows(d, "Connections", CRDI_COLUMNS(flow_columns),
                  crdi_json_get_list(verdict, "flows"), NULL);
    const char* note = crdi_json_get_text(verdict, "error_note");
    if (*note) { crdi_doc_paragraph(d, "Errors of outputs are not estimated: %s", note); }
    crdi_doc_rows(d, "Power bonds", CRDI_COLUMNS(bond_columns),
                  crdi_json_get_list(verdict, "bonds"), NULL);
    crdi_doc_rows(d, "Pairs of wave ports", CRDI_COLUMNS(pair_columns),
                  crdi_json_get_list(verdict, "pairs"), NULL);
    put_one_row(d, "Step control", CRDI_COLUMNS(control_columns),
                crdi_json_get_object(verdict, "control"));
    report_quality_put_iteration(d, crdi_json_get_object(verdict, "iteration"));
    if (d->html) { crdi_doc_put(d, "</details>\n"); }
}

// ---- the section -------------------------------------------------------------------------------

static bool report_quality_says_something(const crdi_json* verdict)
{
    return crdi_json_count(crdi_json_get_list(verdict, "flows")) > 0 ||
           crdi_json_count(crdi_json_get_list(verdict, "bonds")) > 0 ||
           crdi_json_count(crdi_json_get_list(verdict, "pairs")) > 0 ||
           crdi_json_get_object(verdict, "control") || crdi_json_get_object(verdict, "iteration");
}

static crd_status put_chart(crdi_report* r, crdi_doc* d, int part)
{
    static const crdi_chart_words words = {"Defects relative to the scales of their signals",
                                           "defects of the connections", "defects"};
    const crdi_json* verdict = r->parts[part].verdict;
    const crdi_json* flows = crdi_json_get_list(verdict, "flows");
    if (crdi_json_count(flows) == 0) { return CRD_OK; }
    crd_text svg;
    crd_text_init(&svg, r->ctx);
    draw_bars(flows, crdi_json_get_number(verdict, "defect_goal"), !d->html, &svg);
    const crd_status st = crdi_report_chart(r, d, part, &words, &svg);
    crd_text_clear(&svg);
    return st;
}

static bool records_defects(const crdi_report* r)
{
    for (int i = 0; i < r->signal_count; i++) {
        if (crdi_ends_with(r->signals[i].name, ".defect")) { return true; }
    }
    return false;
}

crd_status crdi_report_quality(crdi_report* r, crdi_doc* d)
{
    bool any = false;
    for (int i = 0; i < r->part_count; i++) {
        const crdi_report_part* p = &r->parts[i];
        if (p->run->reference || !report_quality_says_something(p->verdict)) { continue; }
        if (!any) {
            crdi_doc_heading(d, 2, "quality", "Quality");
            crdi_doc_paragraph(
                d,
                "A defect is by how much an input missed the output that it stands for, over "
                "the steps of the run; its RMS is compared with the scale of the signal.%s",
                records_defects(r) ? " Over time they are among the signals, as .defect." : "");
        }
        any = true;
        if (r->part_count > 1) { crdi_doc_heading(d, 3, "", p->label); }
        crdi_doc_sentences(d, crdi_json_get_list(p->verdict, "advice"));
        report_quality_put_learned(d, crdi_json_get_object(p->verdict, "learned"));
        const crd_status st = put_chart(r, d, i);
        if (st < 0) { return st; }
        report_quality_put_numbers(d, p->verdict);
    }
    return CRD_OK;
}
