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

static const char* text_or_dash(const char* text)
{
    return *text ? text : "\u2013";
}

// A part of a whole in per cent.
static const char* percent_text(char out[40], double x)
{
    char number[32];
    crdi_number_text(number, 100 * x, 3);
    snprintf(out, 40, "%s%s", number, isfinite(x) ? "\u00A0%" : "");
    return out;
}

// ---- bars --------------------------------------------------------------------------------------

typedef struct axis {
    double low, high; // exponents of ten
    double left;      // where it begins
} axis;

static double place_of(const axis* a, double x)
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

static void put_name(crd_text* t, const crdi_json* flow)
{
    char name[4 * MOST_LETTERS + 8], whole[512];
    crdi_doc_format(whole, sizeof whole, "%s \u2192 %s", crdi_json_get_text(flow, "from"),
                    crdi_json_get_text(flow, "to"));
    size_t n = 0;
    for (int count = 0; whole[n]; n++) {
        count += ((unsigned char)whole[n] & 0xC0) != 0x80;
        if (count > MOST_LETTERS || n + 8 > sizeof name) { break; }
        name[n] = whole[n];
    }
    snprintf(name + n, sizeof name - n, "%s", whole[n] ? "\u2026" : "");
    crdi_text_xml(t, name);
}

static void put_axis(crd_text* t, const axis* a, int height)
{
    const int every = a->high - a->low > 6 ? 2 : 1;
    for (int e = (int)a->low; e <= (int)a->high; e++) {
        const int x = (int)lround(place_of(a, pow(10, e)));
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
    const int end = broken ? left + AXIS : (int)lround(place_of(a, x));
    char text[40];
    crdi_text_add(t, "<g><title>");
    put_name(t, flow);
    crdi_text_add(t, ": %s</title><text text-anchor=\"end\" x=\"%d\" y=\"%d\">",
                  broken ? "not finite" : percent_text(text, x), left - 8, y + BAR - 1);
    put_name(t, flow);
    crdi_text_add(
        t, "</text><rect class=\"bar%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></g>\n",
        above ? " above" : "", left, y, end - left > 2 ? end - left : 2, BAR);
}

// Colours come from the page that holds it, or are its own.
static const char style[] =
    "<style>.defects{--tl:var(--grid,#d1d9e0);--tt:var(--text,#1f2328);--tm:var(--muted,#59636e);"
    "--ta:var(--accent,#0969da);--tr:var(--return,#bc4c00)}\n"
    ".defects text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
    "fill:var(--tt)}.defects .tick{font-size:11px;fill:var(--tm)}"
    ".defects .grid{stroke:var(--tl);fill:none}.defects .bar{fill:var(--ta)}"
    ".defects .above{fill:var(--tr)}"
    ".defects .limit{stroke:var(--tt);fill:none;stroke-width:1.5;stroke-dasharray:5 4}\n";
static const char dark_style[] =
    "@media(prefers-color-scheme:dark){.defects{--tl:#343b45;--tt:#e6edf3;--tm:#9198a1;"
    "--ta:#4ea1ff;--tr:#f0883e}}\n";

// Relative defects as bars on a logarithmic axis, with the limit.
static void draw_bars(const crdi_json* flows, double limit, bool alone, crd_text* t)
{
    const int all = crdi_json_count(flows), count = all < MOST_BARS ? all : MOST_BARS;
    const axis a = choose_axis(flows, count, limit);
    const int width = (int)a.left + AXIS + 40, height = TOP + ROW * count + 8;
    crdi_text_add(t,
                  "<svg class=\"defects\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                  "aria-label=\"Defects of %d connections\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\" style=\"--width:%dpx\">\n",
                  count, width, height, width, height, width);
    crdi_text_put(t, style, sizeof style - 1);
    if (alone) { crdi_text_put(t, dark_style, sizeof dark_style - 1); }
    crdi_text_add(t, "</style>\n");
    put_axis(t, &a, height);
    const crdi_json* flow = crdi_json_first(flows);
    for (int i = 0; i < count; i++, flow = flow->next) {
        put_bar(t, &a, flow, i, limit);
    }
    if (limit > 0 && isfinite(limit)) {
        char text[40];
        const int x = (int)lround(place_of(&a, limit));
        crdi_text_add(t, "<path class=\"limit\" d=\"M%d %dV%d\"><title>limit: %s</title></path>\n",
                      x, TOP - 6, height - 4, percent_text(text, limit));
    }
    crdi_text_add(t, "</svg>\n");
}

// ---- tables ------------------------------------------------------------------------------------

static void put_cell(crdi_doc* d, const crdi_json* object, const char* key)
{
    char t[32];
    crdi_doc_cell(d, "%s", crdi_number_text(t, crdi_json_get_number(object, key), 4));
}

static void put_percent(crdi_doc* d, const crdi_json* object, const char* key)
{
    char t[40];
    crdi_doc_cell(d, "%s", percent_text(t, crdi_json_get_number(object, key)));
}

static void put_flows(crdi_doc* d, const crdi_json* flows)
{
    if (crdi_json_count(flows) == 0) { return; }
    crdi_doc_table(d, "Connections", "llrrrlrrrr",
                   "Connection|Predictor|Defect RMS|Largest|At / s|Unit|Of scale|Output defect|"
                   "Estimated error|Jumps");
    for (const crdi_json* f = crdi_json_first(flows); f; f = f->next) {
        char t[40];
        const double share = crdi_json_get_number(f, "share");
        const bool partly = share > 0 && share < 0.995;
        crdi_doc_cell(d, "%s \u2192 %s", text_or_dash(crdi_json_get_text(f, "from")),
                      text_or_dash(crdi_json_get_text(f, "to")));
        if (partly) {
            crdi_doc_cell(d, "%s (%.0f %%)", text_or_dash(crdi_json_get_text(f, "used")),
                          100 * share);
        } else {
            crdi_doc_cell(d, "%s", text_or_dash(crdi_json_get_text(f, "used")));
        }
        put_cell(d, f, "defect_rms");
        put_cell(d, f, "defect_max");
        crdi_doc_cell(d, "%s", crdi_number_text(t, crdi_json_get_number(f, "defect_max_time"), 6));
        crdi_doc_cell(d, "%s", text_or_dash(crdi_json_get_text(f, "unit")));
        put_percent(d, f, "relative");
        put_cell(d, f, "output_defect_rms");
        put_cell(d, f, "error_rms");
        put_cell(d, f, "jumps");
    }
    crdi_doc_table_end(d);
}

static void put_bonds(crdi_doc* d, const crdi_json* bonds)
{
    if (crdi_json_count(bonds) == 0) { return; }
    crdi_doc_table(d, "Power bonds", "llllrrrrrr",
                   "Bond|Action|Flow|Correction|\u03BC|Put in / J|Corrected / J|Passed / J|"
                   "Of passed|Residual power / W");
    for (const crdi_json* b = crdi_json_first(bonds); b; b = b->next) {
        char low[32], high[32];
        crdi_doc_cell(d, "%s", text_or_dash(crdi_json_get_text(b, "name")));
        crdi_doc_cell(d, "%s", text_or_dash(crdi_json_get_text(b, "action")));
        crdi_doc_cell(d, "%s", text_or_dash(crdi_json_get_text(b, "flow")));
        crdi_doc_cell(d, "%s", text_or_dash(crdi_json_get_text(b, "correct")));
        put_cell(d, b, "mu");
        put_cell(d, b, "energy");
        put_cell(d, b, "work");
        put_cell(d, b, "transferred");
        put_percent(d, b, "relative");
        crdi_doc_cell(d, "%s to %s", crdi_number_text(low, crdi_json_get_number(b, "power_min"), 3),
                      crdi_number_text(high, crdi_json_get_number(b, "power_max"), 3));
    }
    crdi_doc_table_end(d);
}

static void put_control(crdi_doc* d, const crdi_json* c)
{
    char t[32];
    if (!c) { return; }
    crdi_doc_table(d, "Step control", "rrrrrrrrr",
                   "Tolerance|Shortest step|Longest|Mean|Worst defect / tolerance|Taken back|"
                   "At the floor|At the ceiling|Events");
    put_cell(d, c, "tolerance");
    crdi_doc_cell(d, "%s", crdi_seconds_text(t, crdi_json_get_number(c, "shortest")));
    crdi_doc_cell(d, "%s", crdi_seconds_text(t, crdi_json_get_number(c, "longest")));
    crdi_doc_cell(d, "%s", crdi_seconds_text(t, crdi_json_get_number(c, "mean")));
    put_cell(d, c, "worst");
    put_cell(d, c, "rejected");
    put_cell(d, c, "at_floor");
    put_cell(d, c, "at_ceiling");
    put_cell(d, c, "events");
    crdi_doc_table_end(d);
}

static void put_iteration(crdi_doc* d, const crdi_json* c)
{
    char t[32];
    if (!c) { return; }
    const double steps = crdi_json_get_number(c, "steps"),
                 sweeps = crdi_json_get_number(c, "sweeps");
    crdi_doc_table(d, "Iteration", "rrrr", "Steps|Sweeps per step|Most sweeps|Not converged");
    crdi_doc_cell(d, "%s", crdi_number_text(t, steps, 12));
    crdi_doc_cell(d, "%s", crdi_number_text(t, steps > 0 ? sweeps / steps : (double)NAN, 3));
    put_cell(d, c, "most");
    put_cell(d, c, "failed");
    crdi_doc_table_end(d);
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
        crdi_number_text(t, crdi_json_get_number(c, "failed_time"), 9), text_or_dash(list),
        text_or_dash(crdi_json_get_text(c, "failed_connection")));
}

static void put_advice(crdi_doc* d, const crdi_json* advice)
{
    if (crdi_json_count(advice) == 0) { return; }
    crdi_doc_put(d, d->html ? "<ul class=\"advice\">\n" : "\n");
    for (const crdi_json* a = crdi_json_first(advice); a; a = a->next) {
        if (a->kind != CRDI_JSON_TEXT) { continue; }
        crdi_doc_put(d, d->html ? "<li>" : "- ");
        crdi_doc_text(d, a->text);
        crdi_doc_put(d, d->html ? "</li>\n" : "\n");
    }
    crdi_doc_put(d, d->html ? "</ul>\n" : "");
}

// In a page they are folded: the plots are near, and paper shows all.
static void put_numbers(crdi_doc* d, const crdi_json* verdict)
{
    if (d->html) { crdi_doc_put(d, "<details><summary>In numbers</summary>\n"); }
    put_flows(d, crdi_json_get_list(verdict, "flows"));
    const char* note = crdi_json_get_text(verdict, "error_note");
    if (*note) { crdi_doc_paragraph(d, "Errors of outputs are not estimated: %s", note); }
    put_bonds(d, crdi_json_get_list(verdict, "bonds"));
    put_control(d, crdi_json_get_object(verdict, "control"));
    put_iteration(d, crdi_json_get_object(verdict, "iteration"));
    if (d->html) { crdi_doc_put(d, "</details>\n"); }
}

// ---- the section -------------------------------------------------------------------------------

static bool says_something(const crdi_json* verdict)
{
    return crdi_json_count(crdi_json_get_list(verdict, "flows")) > 0 ||
           crdi_json_count(crdi_json_get_list(verdict, "bonds")) > 0 ||
           crdi_json_get_object(verdict, "control") || crdi_json_get_object(verdict, "iteration");
}

static crd_status put_chart(crdi_report* r, crdi_doc* d, int part)
{
    const crdi_json* verdict = r->parts[part].verdict;
    const crdi_json* flows = crdi_json_get_list(verdict, "flows");
    if (crdi_json_count(flows) == 0) { return CRD_OK; }
    crd_status st = CRD_OK;
    crd_text svg;
    crd_text_init(&svg, r->ctx);
    draw_bars(flows, crdi_json_get_number(verdict, "defect_goal"), !d->html, &svg);
    if (svg.failed) {
        st = CRD_E_MEMORY;
    } else if (d->html) {
        crdi_doc_put(d, "<div class=\"scroll drawing\" tabindex=\"0\" role=\"group\" "
                        "aria-label=\"Defects relative to the scales of their signals\">");
        crdi_doc_bytes(d, svg.data, svg.length);
        crdi_doc_put(d, "</div>\n");
    } else {
        char file[32];
        snprintf(file, sizeof file, "defects-%03d.svg", part + 1);
        st = crdi_report_picture(r, d, "defects of the connections", file, &svg);
    }
    crd_text_clear(&svg);
    return st;
}

static bool records_defects(const crdi_report* r)
{
    static const char ending[] = ".defect";
    for (int i = 0; i < r->signal_count; i++) {
        const size_t n = strlen(r->signals[i].name), k = sizeof ending - 1;
        if (n > k && strcmp(r->signals[i].name + n - k, ending) == 0) { return true; }
    }
    return false;
}

crd_status crdi_report_quality(crdi_report* r, crdi_doc* d)
{
    bool any = false;
    for (int i = 0; i < r->part_count; i++) {
        const crdi_report_part* p = &r->parts[i];
        if (p->run->reference || !says_something(p->verdict)) { continue; }
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
        put_advice(d, crdi_json_get_list(p->verdict, "advice"));
        const crd_status st = put_chart(r, d, i);
        if (st < 0) { return st; }
        put_numbers(d, p->verdict);
    }
    return CRD_OK;
}
