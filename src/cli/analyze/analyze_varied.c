// cardan coupling analyze LOOP where samples take a varying time or are lost, or elements adapt:
// what holds for every sequence, what in the mean square, how much may be learned, and what is not
// covered.
#include "cli/analyze/analyze.h"

#include <math.h>
#include <stdio.h>

enum { SHOWN = 24, NOTES = 12 };

typedef struct varied {
    crd_context* ctx;
    crd_loop_model* m;
    crd_varied_report r;
    crdi_result *out, *o; // the text, the object of JSON
} varied;

static bool spreads(const crd_variation* v)
{
    return v->k_min != v->k_max || v->loss > 0;
}

bool crdi_analyze_varies(const crd_loop_model* m)
{
    bool any = false;
    for (int i = 0; i < m->element_count; i++) {
        any = any || m->elements[i].adapts || spreads(&m->elements[i].variation);
    }
    return any;
}

static const char* sure_word(crd_sure s)
{
    return s == CRD_SURE_STABLE ? "stable" : s == CRD_SURE_UNSTABLE ? "unstable" : "not decided";
}

// ---- what may happen
// -----------------------------------------------------------------------------

static void put_links(const varied* w)
{
    static const crdi_column columns[] = {{"element", "element", ""},
                                          {">steps", "steps", ""},
                                          {">lost", "lost", ""},
                                          {">in a row", "row", ""},
                                          {0}};
    crdi_result* list = crdi_array(w->o, "elements");
    for (int i = 0; i < w->m->element_count; i++) {
        const crd_loop_element* e = &w->m->elements[i];
        const crd_variation* v = &e->variation;
        crdi_result* row = crdi_row(list);
        crdi_put(row, TEXT("element", e->label), INT("k_min", v->k_min), INT("k_max", v->k_max),
                 REAL("loss", v->loss), INT("losses", v->burst),
                 BOOL("losses_assumed", v->burst_assumed), BOOL("adapts", e->adapts),
                 CELL("steps", v->k_min == v->k_max
                                   ? crdi_worded(row, "%d", v->k_max)
                                   : crdi_worded(row, "%d..%d", v->k_min, v->k_max)),
                 CELL("lost", crdi_worded(row, "%.4g %%", 100 * v->loss)),
                 CELL("row", v->loss > 0 ? crdi_worded(row, "%d%s", v->burst,
                                                       v->burst_assumed ? " (assumed)" : "")
                                         : "-"));
    }
    crdi_say(w->out, "\nsamples of each link\n");
    crdi_show_table(w->out, list, columns, "");
}

// ---- the worst case
// ------------------------------------------------------------------------------

static void say_ages(const varied* w, int link)
{
    const crd_varied_report* r = &w->r;
    crdi_say(w->out, "  age of the newest sample, link %d:", link + 1);
    for (int t = 0; t < r->period && t < SHOWN; t++) {
        crdi_say(w->out, " %d", r->ages[t * r->link_count + link]);
    }
    crdi_say(w->out, "%s\n",
             r->period > SHOWN ? " ... (all of it with --json)" : ", over and over again");
}

static void put_sequence(const varied* w, crdi_result* o)
{
    const crd_varied_report* r = &w->r;
    if (r->worst != CRD_SURE_UNSTABLE) { return; }
    crdi_result *ages = crdi_array(o, "ages"), *arrivals = crdi_array(o, "arrivals");
    for (int t = 0; t < r->period; t++) {
        crdi_result *row = crdi_array(ages, NULL), *now = crdi_array(arrivals, NULL);
        for (int l = 0; l < r->link_count; l++) {
            crdi_add(row, INT(NULL, r->ages[t * r->link_count + l]));
            crdi_result* list = crdi_array(now, NULL);
            for (int age = 0; age < 64; age++) {
                if (r->arrivals[t * r->link_count + l] >> age & 1) {
                    crdi_add(list, INT(NULL, age));
                }
            }
        }
    }
    for (int l = 0; l < r->link_count; l++) {
        say_ages(w, l);
    }
}

static void put_worst(const varied* w)
{
    const crd_varied_report* r = &w->r;
    crdi_result* o = crdi_object(w->o, "worst_case");
    crdi_put(o, TEXT("verdict", sure_word(r->worst)), REAL("growth_low", r->low),
             REAL("growth_high", r->high), REAL("gain", r->gain), TEXT_IF("by", r->by),
             TEXT("stopped", r->stopped));
    crdi_say(w->out, "\nworst case: ");
    switch (r->worst) {
    case CRD_SURE_STABLE:
        if (r->by[0] == 'n') {
            crdi_say(w->out,
                     "stable for every sequence (by quadratic norms; growth per step %.6g to "
                     "%.6g)\n",
                     r->low, r->high);
        } else {
            crdi_say(w->out,
                     "stable for every sequence, of each link on its own and of all together (by "
                     "small gain: what sequences change comes back %.3g times as large at most)\n",
                     r->gain);
        }
        break;
    case CRD_SURE_UNSTABLE:
        crdi_say(w->out, "unstable for the sequence below: it grows by %.4g %% per step\n",
                 100 * (r->low - 1));
        break;
    case CRD_SURE_OPEN:
        if (isfinite(r->high)) {
            crdi_say(w->out, "not decided (growth per step between %.6g and %.6g)", r->low,
                     r->high);
        } else {
            crdi_say(w->out, "not decided");
        }
        crdi_say(w->out, "%s%s\n", r->stopped ? ": " : "", r->stopped ? r->stopped : "");
        break;
    }
    put_sequence(w, o);
}

// ---- mean square
// ---------------------------------------------------------------------------------

static void put_drawn(const varied* w)
{
    const crd_varied_report* r = &w->r;
    if (isnan(r->drawn)) { return; }
    const double error = 100 * r->drawn_error, by = 100 * expm1(r->drawn);
    const bool known = fabs(by) > 4 * error;
    crdi_put(crdi_object(w->o, "drawn"), REAL("log_growth", r->drawn),
             REAL("standard_error", r->drawn_error));
    crdi_say(w->out,
             "drawn at random, each link on its own: %s, by %.3g %% per step (standard error %.2g "
             "%%); an estimate from 40,000 steps, not a proof\n",
             !known   ? "neither growing nor dying out for sure"
             : by > 0 ? "it grows"
                      : "it dies out",
             by, error);
}

static void put_mean_square(const varied* w)
{
    const crd_varied_report* r = &w->r;
    crdi_result* o = crdi_object(w->o, "mean_square");
    crdi_put(o, TEXT("verdict", sure_word(r->mean_square)), REAL("factor", r->moment),
             REAL("residual", r->moment_error), TEXT("reason", r->no_moment),
             BOOL("shared", r->shared), REAL("loss_limit", r->loss_limit),
             REAL("loss_tried", r->loss_tried));
    crdi_say(w->out, "mean square: ");
    if (r->no_moment) {
        crdi_say(w->out, "not decided: %s\n", r->no_moment);
        return;
    }
    const char* links = r->shared ? "if all links share their packets, " : "";
    if (r->mean_square == CRD_SURE_OPEN) {
        crdi_say(w->out, "%snot decided: too near to the limit to tell within the effort\n", links);
        return;
    }
    crdi_say(w->out, "%s%s (second moments: factor %.6g per step)", links,
             sure_word(r->mean_square), r->moment);
    if (isfinite(r->loss_limit)) {
        crdi_say(w->out, "; lost at a loss of %.4g %%", 100 * r->loss_limit);
    } else if (isfinite(r->loss_tried)) {
        crdi_say(w->out, "; kept up to a loss of %.4g %% at least", 100 * r->loss_tried);
    }
    crdi_say(w->out, "\n");
}

// ---- elements that adapt
// -------------------------------------------------------------------------

static double own_limit(const varied* w) // the largest
{
    double most = 0;
    for (int i = 0; i < w->m->element_count; i++) {
        const crd_loop_element* e = &w->m->elements[i];
        if (e->adapts) { most = fmax(most, e->gain_limit); }
    }
    return most;
}

static void put_adapting(const varied* w)
{
    const double allowed = w->r.allowed, own = own_limit(w);
    if (!w->r.adapting) { return; }
    crdi_put(crdi_object(w->o, "adapting"), INT("elements", w->r.adapting),
             REAL("gain_limit", allowed < 0 ? (double)NAN : allowed), REAL("own", own),
             BOOL("holds", own <= allowed));
    crdi_say(w->out, "elements that adapt: ");
    if (allowed < 0) {
        crdi_say(w->out, "no gain-limit could be shown to be small enough\n");
        return;
    }
    if (own <= allowed) {
        crdi_say(w->out,
                 "whatever they learn, the loop holds for every sequence: gain-limit %g, at most "
                 "%.4g is needed\n",
                 own, allowed);
        return;
    }
    crdi_say(w->out, "whatever they learn, the loop holds for every sequence with gain-limit: %.4g",
             allowed);
    if (isinf(own)) {
        crdi_say(w->out, "; they have none, so nothing is said of them as they are\n");
    } else {
        crdi_say(w->out, "; theirs is %g, of which nothing is said\n", own);
    }
}

// ---- what is not covered
// -------------------------------------------------------------------------

typedef struct notes {
    const char* text[NOTES];
    int count;
} notes;

static void note(notes* n, bool holds, const char* text)
{
    if (holds && n->count < NOTES) { n->text[n->count++] = text; }
}

static void find_notes(const varied* w, notes* n)
{
    bool detects = false, believes = false, slopes = false;
    double longer = 0; // chance of a run of losses that is longer than those of the worst case
    int random = 0;
    for (int i = 0; i < w->m->element_count; i++) {
        const crd_loop_element* e = &w->m->elements[i];
        const crd_linear* l = e->age_count ? &e->by_age[0] : NULL;
        detects = detects || e->detects;
        believes = believes || (e->believes && spreads(&e->variation));
        slopes = slopes || (l && l->A && l->m > 1);
        longer = fmax(longer, pow(e->variation.loss, e->variation.burst + 1));
        random += spreads(&e->variation);
    }
    note(n, true, "units that are not linear, limits of signals, quantised values");
    note(
        n, detects,
        "detection of discontinuities: histories are taken as they came, gaps as filled on a line");
    note(n, longer > 0,
         crdi_worded(w->o,
                     "the worst case of more losses in a row than are given above (the chance of "
                     "that is %.2g for each sample)",
                     longer));
    note(n, random > 1, "links that share packets: each is late and loses on its own");
    note(n, random > 0, "a channel whose delays depend on each other, and one that gets worse");
    note(n, believes,
         "elements with a latency of their own: they are taken as if they measured it");
    note(n, slopes,
         "inputs that take no derivatives: they hold over a macro step (reconstruct: hold)");
    note(n, w->r.adapting > 0,
         "elements that adapt, but for their gain-limit: the other statements are of a hold");
}

static void put_notes(const varied* w)
{
    notes n = {.count = 0};
    find_notes(w, &n);
    crdi_put_texts(w->o, "not_covered", n.text, n.count);
    crdi_say(w->out, "not covered:\n");
    for (int i = 0; i < n.count; i++) {
        crdi_say(w->out, "  - %s\n", n.text[i]);
    }
}

static crd_status check_required(const varied* w)
{
    const crd_varied_report* r = &w->r;
    if (r->reason) {
        return crdi_fail(w->ctx, CRD_E_LIMIT, "%s: nothing is known of it with what varies: %s",
                         w->m->name, r->reason);
    }
    if (r->worst != CRD_SURE_STABLE) {
        return crdi_fail(w->ctx, CRD_E_LIMIT, "%s: in the worst case it is %s", w->m->name,
                         r->worst == CRD_SURE_UNSTABLE ? "not stable" : "not known to be stable");
    }
    if (r->adapting && !(own_limit(w) <= r->allowed)) {
        return crdi_fail(w->ctx, CRD_E_LIMIT,
                         "%s: elements adapt without a gain-limit that is small enough",
                         w->m->name);
    }
    return CRD_OK;
}

crd_status crdi_analyze_varied(crdi_cli* cli, crd_loop_model* m, bool require, crdi_result* out)
{
    varied w = {.ctx = cli->ctx, .m = m, .out = out};
    if (!crdi_analyze_varies(m)) { return CRD_OK; }
    const crd_status st = crd_analysis_varied(m, &w.r);
    if (st < 0) { return st; }
    w.o = crdi_object(out, "varied");
    put_links(&w);
    if (w.r.reason) {
        crdi_put(w.o, TEXT("reason", w.r.reason));
        crdi_say(out, "\nNOTHING is said of what varies: %s\n", w.r.reason);
    } else {
        put_worst(&w);
        put_mean_square(&w);
        put_drawn(&w);
        put_adapting(&w);
    }
    put_notes(&w);
    return require ? check_required(&w) : CRD_OK;
}
