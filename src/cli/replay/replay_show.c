// cardan replay: its result, and the sentence that says what a replay is worth.
#include "cli/replay/replay.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double ROUNDING = 1e-9; // relative; less is no difference

// ---- the sentence ------------------------------------------------------------------------------

enum { MOST_NAMED = 3 };

// What is no number is as far away as can be.
static double replay_show_distance(const crdi_deviation* d)
{
    return isnan(d->relative) ? (double)INFINITY : d->relative;
}

// The input that differs most and is not one of the `count` that were named, -1.
static int replay_show_worst_of(const crdi_replay* r, const crdi_replay_result* x, const int* named,
                                int count)
{
    int worst = -1;
    for (int i = 0; i < r->recorded->link_count; i++) {
        const crdi_deviation* d = &x->deviations[i];
        bool old = false;
        for (int k = 0; k < count; k++) {
            old = old || named[k] == i;
        }
        if (old || !x->asked[i] || d->compared == 0 || replay_show_distance(d) <= ROUNDING) {
            continue;
        }
        if (worst < 0 || replay_show_distance(d) > replay_show_distance(&x->deviations[worst])) {
            worst = i;
        }
    }
    return worst;
}

static void add_difference(crd_text* t, const crdi_replay* r, const crdi_replay_result* x, int i,
                           bool first)
{
    const crdi_deviation* d = &x->deviations[i];
    const char *to = r->recorded->links[i].to, *unit = x->unit_of[i];
    const char* variable = *unit ? to + strlen(unit) + 1 : to;
    const char* verb = x->open ? "would have seen" : "saw";
    if (first) {
        crdi_text_add(t, "'%s' %s %s differ", unit, verb, variable);
    } else {
        crdi_text_add(t, ", '%s' %s", unit, variable);
    }
    if (isfinite(d->relative)) {
        crdi_text_add(t, " by %.2g %%", 100 * d->relative);
    } else {
        crdi_text_add(t, " beyond all measure");
    }
    if (isnan(d->first)) {
        crdi_text_add(t, " (never by more than 1 %% at a time)");
    } else {
        crdi_text_add(t, " (from t = %.6g s on)", d->first);
    }
}

static void add_differences(crd_text* t, const crdi_replay* r, const crdi_replay_result* x)
{
    int named[MOST_NAMED];
    for (int n = 0; n < MOST_NAMED; n++) {
        named[n] = replay_show_worst_of(r, x, named, n);
        if (named[n] < 0) { return; }
        add_difference(t, r, x, named[n], n == 0);
    }
    if (replay_show_worst_of(r, x, named, MOST_NAMED) >= 0) {
        crdi_text_add(t, " and others less");
    }
}

crd_status crdi_replay_judge(crdi_replay* r, crdi_replay_result* x)
{
    crd_text t;
    double most = 0;
    int asked = 0;
    for (int i = 0; i < r->recorded->link_count; i++) {
        if (!x->asked[i] || x->deviations[i].compared == 0) { continue; }
        asked++;
        most = fmax(most, replay_show_distance(&x->deviations[i]));
    }
    crd_text_init(&t, r->cli->ctx);
    x->equal = most <= ROUNDING;
    if (asked == 0) {
        crdi_text_add(&t, x->open ? "nothing goes back to what is played: open and closed loop are "
                                    "the same"
                                  : "there is nothing to compare with the recorded run");
    } else if (x->equal) {
        crdi_text_add(&t, "the replay equals the recorded run%s%s",
                      most > 0 ? " but for rounding" : "",
                      x->open ? ": open and closed loop are the same" : "");
    } else if (x->open) {
        crdi_text_add(&t, "valid as open loop only: ");
        add_differences(&t, r, x);
        crdi_text_add(&t, "; in a closed loop it would have answered");
    } else {
        crdi_text_add(&t, "closed loop with the recorded delays; against the recorded run ");
        add_differences(&t, r, x);
    }
    x->verdict = t.failed ? NULL : crdi_arena_text(&r->arena, t.data, t.length);
    crd_text_clear(&t);
    return x->verdict ? CRD_OK : CRD_E_MEMORY;
}

// ---- tables ------------------------------------------------------------------------------------

static const char* tap_name(crdi_result* out, const crdi_replay_tap* t)
{
    return t->in_use ? crdi_worded(out, "%s -> %s", t->from, t->to) : "";
}

static const char* tap_label(crdi_result* out, const crdi_replay_tap* t)
{
    return crdi_worded(out, "%s%s", t->label, t->in_use ? "" : " (shadow)");
}

static void put_taps(crdi_result* out, const crdi_replay_result* x, bool shown)
{
    static const crdi_column columns[] = {
        {"coupling", "coupling", "%s"}, {"algorithm", "label", "%s"}, {">C [%]", "C", "%.4g"},
        {">rms", "rms", "%.4g"},        {">worst", "worst", "%.4g"},  {">sent", "sent", "%d"},
        {">lost", "lost", "%d"},        {">twice", "repeated", "%d"}, {0}};
    crdi_result* taps = crdi_array(out, "couplings");
    for (int i = 0; i < x->tap_count; i++) {
        const crdi_replay_tap* t = &x->taps[i];
        const char* no = t->in_use ? NULL : "";
        crdi_put(crdi_row(taps), TEXT("from", t->from), TEXT("to", t->to),
                 TEXT("algorithm", t->label), BOOL("in_use", t->in_use),
                 REAL("C", 100 * t->C), // as a run tells it
                 REAL("rms", t->rms), REAL("worst", t->worst), INT("scored", t->scored),
                 AS(INT("sent", t->sent), no), AS(INT("lost", t->lost), no),
                 AS(INT("repeated", t->repeated), no), CELL("coupling", tap_name(out, t)),
                 CELL("label", tap_label(out, t)));
    }
    if (shown) { crdi_show_table(out, taps, columns, "  "); }
}

// The same element in the other replay, NULL.
static const crdi_replay_tap* find_tap(const crdi_replay_result* x, const crdi_replay_tap* t)
{
    for (int i = 0; i < x->tap_count; i++) {
        const crdi_replay_tap* o = &x->taps[i];
        if (strcmp(o->to, t->to) == 0 && strcmp(o->label, t->label) == 0 &&
            o->in_use == t->in_use) {
            return o;
        }
    }
    return NULL;
}

// Closed minus open; in text both side by side.
static void put_both(crdi_result* out, const crdi_replay* r)
{
    static const crdi_column columns[] = {{"coupling", "coupling", "%s"},
                                          {"algorithm", "label", "%s"},
                                          {">C open [%]", "C open", "%.4g"},
                                          {">closed", "C closed", "%.4g"},
                                          {">rms open", "rms open", "%.4g"},
                                          {">closed", "rms closed", "%.4g"},
                                          {">worst open", "worst open", "%.4g"},
                                          {">closed", "worst closed", "%.4g"},
                                          {0}};
    const crdi_replay_result *open = &r->results[0], *closed = &r->results[1];
    crdi_result *list = crdi_array(out, "differences"), *lines = crdi_array(out, NULL);
    for (int i = 0; i < open->tap_count; i++) {
        const crdi_replay_tap *a = &open->taps[i], *b = find_tap(closed, a);
        const crdi_replay_tap none = {.C = NAN, .rms = NAN, .worst = NAN}, *c = b ? b : &none;
        crdi_put(crdi_row(lines), TEXT("coupling", tap_name(out, a)),
                 TEXT("label", tap_label(out, a)), REAL("C open", 100 * a->C),
                 REAL("C closed", 100 * c->C), REAL("rms open", a->rms), REAL("rms closed", c->rms),
                 REAL("worst open", a->worst), REAL("worst closed", c->worst));
        if (!b) { continue; }
        crdi_put(crdi_row(list), TEXT("to", a->to), TEXT("algorithm", a->label),
                 REAL("C", 100 * (b->C - a->C)), REAL("rms", b->rms - a->rms),
                 REAL("worst", b->worst - a->worst));
    }
    crdi_show_table(out, lines, columns, "  ");
}

static void put_deviations(crdi_result* out, const crdi_replay* r, const crdi_replay_result* x)
{
    static const crdi_column columns[] = {{"input", "to", "%s"},
                                          {">differs [%]", "relative", "100*%.4g"},
                                          {">largest", "max", "%.4g"},
                                          {">at [s]", "max_time", "%.4g"},
                                          {">above 1 % from [s]", "first", "%.4g"},
                                          {0}};
    crdi_result* inputs = crdi_array(out, "inputs");
    for (int i = 0; i < r->recorded->link_count; i++) {
        const crdi_deviation* d = &x->deviations[i];
        if (!x->asked[i]) { continue; }
        crdi_result* row = crdi_row(inputs);
        crdi_put(row, TEXT("from", r->recorded->links[i].from),
                 TEXT("to", r->recorded->links[i].to), TEXT("unit", r->recorded->links[i].unit),
                 INT("compared", d->compared), REAL("relative", d->relative), REAL("rms", d->rms),
                 REAL("max", d->max), AS(REAL("max_time", d->max_time), d->max > 0 ? NULL : "-"),
                 REAL("first", d->first));
        if (d->compared == 0) { crdi_only_json(row); }
    }
    crdi_show_table(out, inputs, columns, "  ");
}

static void put_one(crdi_result* out, const crdi_replay* r, const crdi_replay_result* x)
{
    char a[32];
    crdi_put(out, TEXT("kind", x->open ? "open" : "closed"), REAL("time", x->time),
             REAL("wall_time", x->wall_time), TEXT_IF("results", x->results),
             TEXT_IF("exchange", x->exchange));
    crdi_say(out, "%-9s", x->open ? "open" : "closed");
    for (int i = 0; x->open && i < r->played->count; i++) {
        crdi_say(out, "%s%s", i ? ", " : "", r->played->items[i]);
    }
    crdi_say(out, "%s, to t = %.10g s in %s\n",
             x->open ? " played from the recording, the others run"
                     : "all units run, samples take as long as they took",
             x->time, crdi_format_seconds(a, x->wall_time));
    for (int i = 0; i < x->note_count; i++) {
        crdi_say_wrapped(out, "note", "%s", x->notes[i]);
    }
    crdi_fact_if(out, "results", x->results);
    crdi_fact_if(out, "exchange", x->exchange);
    put_taps(out, x, r->result_count == 1);
    put_deviations(out, r, x);
    crdi_put_texts(out, "notes", x->notes, x->note_count);
    crdi_put(out, BOOL("equal", x->equal), TEXT("verdict", x->verdict));
    crdi_say_wrapped(out, "verdict", "%s", x->verdict);
}

void crdi_replay_put(const crdi_replay* r, crdi_result* out)
{
    crdi_label_width(out, 9);
    crdi_put(out, TEXT("recording", r->recorded->path), TEXT_IF("system", r->system),
             BOOL("unfinished", r->recorded->unfinished), REAL("start", r->recorded->start),
             REAL("end", r->recorded->end));
    crdi_put_texts(out, "played", r->played->items, r->played->count);
    crdi_result* list = crdi_array(out, "replays");
    for (int i = 0; i < r->result_count; i++) {
        put_one(crdi_row(list), r, &r->results[i]);
    }
    if (r->result_count == 2) {
        put_both(out, r);
    } else {
        crdi_put(out, NONE("differences"));
    }
    crdi_put_texts(out, "warnings", r->cli->warnings.items, r->cli->warnings.count);
}
