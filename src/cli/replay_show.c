// cardan replay: tables, JSON, and the sentence that says what a replay is worth.
#include "cli/replay.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double ROUNDING = 1e-9; // relative; less is no difference

// ---- the sentence ------------------------------------------------------------------------------

enum { MOST_NAMED = 3 };

// What is no number is as far away as can be.
static double distance(const crdi_deviation* d)
{
    return isnan(d->relative) ? (double)INFINITY : d->relative;
}

// The input that differs most and is not one of the `count` that were named, -1.
static int worst_of(const crdi_replay* r, const crdi_replay_result* x, const int* named, int count)
{
    int worst = -1;
    for (int i = 0; i < r->recorded->link_count; i++) {
        const crdi_deviation* d = &x->deviations[i];
        bool old = false;
        for (int k = 0; k < count; k++) {
            old = old || named[k] == i;
        }
        if (old || !x->asked[i] || d->compared == 0 || distance(d) <= ROUNDING) { continue; }
        if (worst < 0 || distance(d) > distance(&x->deviations[worst])) { worst = i; }
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
        named[n] = worst_of(r, x, named, n);
        if (named[n] < 0) { return; }
        add_difference(t, r, x, named[n], n == 0);
    }
    if (worst_of(r, x, named, MOST_NAMED) >= 0) { crdi_text_add(t, " and others less"); }
}

crd_status crdi_replay_judge(crdi_replay* r, crdi_replay_result* x)
{
    crd_text t;
    double most = 0;
    int asked = 0;
    for (int i = 0; i < r->recorded->link_count; i++) {
        if (!x->asked[i] || x->deviations[i].compared == 0) { continue; }
        asked++;
        most = fmax(most, distance(&x->deviations[i]));
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

static void add_number(crdi_grid* g, double x)
{
    if (isfinite(x)) {
        crdi_grid_add(g, "%.4g", x);
    } else {
        crdi_grid_add(g, "-");
    }
}

static void add_titles(crdi_grid* g, const char* const* titles, int count)
{
    for (int i = 0; i < count; i++) {
        crdi_grid_add(g, "%s", titles[i]);
    }
}

static void add_tap_name(crdi_grid* g, const crdi_replay_tap* t)
{
    if (t->in_use) {
        crdi_grid_add(g, "%s -> %s", t->from, t->to);
    } else {
        crdi_grid_add(g, "%s", "");
    }
    crdi_grid_add(g, "%s%s", t->label, t->in_use ? "" : " (shadow)");
}

static void print_taps(const crdi_replay* r, const crdi_replay_result* x)
{
    static const char* const titles[] = {"coupling", "algorithm", "C [%]", "rms",
                                         "worst",    "sent",      "lost",  "twice"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    if (x->tap_count == 0) { return; }
    crdi_grid g;
    crdi_grid_init(&g, r->cli->ctx, COLUMNS, 0xFC);
    add_titles(&g, titles, COLUMNS);
    for (int i = 0; i < x->tap_count; i++) {
        const crdi_replay_tap* t = &x->taps[i];
        add_tap_name(&g, t);
        add_number(&g, 100 * t->C);
        add_number(&g, t->rms);
        add_number(&g, t->worst);
        const int64_t counts[] = {t->sent, t->lost, t->repeated};
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            if (t->in_use) {
                crdi_grid_add(&g, "%" PRId64, counts[k]);
            } else {
                crdi_grid_add(&g, "%s", "");
            }
        }
    }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
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

// Open and closed side by side.
static void print_both(const crdi_replay* r)
{
    static const char* const titles[] = {"coupling", "algorithm", "C open [%]", "closed",
                                         "rms open", "closed",    "worst open", "closed"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    const crdi_replay_result *open = &r->results[0], *closed = &r->results[1];
    if (open->tap_count == 0) { return; }
    crdi_grid g;
    crdi_grid_init(&g, r->cli->ctx, COLUMNS, 0xFC);
    add_titles(&g, titles, COLUMNS);
    for (int i = 0; i < open->tap_count; i++) {
        const crdi_replay_tap *a = &open->taps[i], *b = find_tap(closed, a);
        add_tap_name(&g, a);
        const double pairs[][2] = {{100 * a->C, b ? 100 * b->C : (double)NAN},
                                   {a->rms, b ? b->rms : (double)NAN},
                                   {a->worst, b ? b->worst : (double)NAN}};
        for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
            add_number(&g, pairs[k][0]);
            add_number(&g, pairs[k][1]);
        }
    }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
}

static void print_deviations(const crdi_replay* r, const crdi_replay_result* x)
{
    static const char* const titles[] = {"input", "differs [%]", "largest", "at [s]",
                                         "above 1 % from [s]"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    int rows = 0;
    crdi_grid g;
    crdi_grid_init(&g, r->cli->ctx, COLUMNS, 0x1E);
    add_titles(&g, titles, COLUMNS);
    for (int i = 0; i < r->recorded->link_count; i++) {
        const crdi_deviation* d = &x->deviations[i];
        if (!x->asked[i] || d->compared == 0) { continue; }
        rows++;
        crdi_grid_add(&g, "%s", r->recorded->links[i].to);
        add_number(&g, 100 * d->relative);
        add_number(&g, d->max);
        add_number(&g, d->max > 0 ? d->max_time : (double)NAN);
        add_number(&g, d->first);
    }
    if (rows) { crdi_grid_print(&g, stdout, "  "); }
    crdi_grid_clear(&g);
}

static void print_played(const crdi_replay* r)
{
    for (int i = 0; i < r->played->count; i++) {
        printf("%s%s", i ? ", " : "", r->played->items[i]);
    }
}

static void print_one(const crdi_replay* r, const crdi_replay_result* x)
{
    char a[32];
    printf("%-9s", x->open ? "open" : "closed");
    if (x->open) {
        print_played(r);
        printf(" played from the recording, the others run");
    } else {
        printf("all units run, samples take as long as they took");
    }
    printf(", to t = %.10g s in %s\n", x->time, crdi_format_seconds(a, x->wall_time));
    for (int i = 0; i < x->note_count; i++) {
        crdi_print_wrapped(stdout, "note", x->notes[i]);
    }
    if (*x->results) { printf("%-9s%s\n", "results", x->results); }
    if (*x->exchange) { printf("%-9s%s\n", "exchange", x->exchange); }
    if (r->result_count == 1) { print_taps(r, x); }
    print_deviations(r, x);
    crdi_print_wrapped(stdout, "verdict", x->verdict);
}

crd_status crdi_replay_print(const crdi_replay* r)
{
    for (int i = 0; i < r->result_count; i++) {
        print_one(r, &r->results[i]);
    }
    if (r->result_count == 2) { print_both(r); }
    return crdi_stdout_done(r->cli->ctx);
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t* tap_to_json(const crdi_replay_tap* t)
{
    json_t* j = json_object();
    json_object_set_new(j, "from", crdi_json_text(t->from));
    json_object_set_new(j, "to", crdi_json_text(t->to));
    json_object_set_new(j, "algorithm", crdi_json_text(t->label));
    json_object_set_new(j, "in_use", json_boolean(t->in_use));
    json_object_set_new(j, "C", crdi_json_number(100 * t->C)); // as a run tells it
    json_object_set_new(j, "rms", crdi_json_number(t->rms));
    json_object_set_new(j, "worst", crdi_json_number(t->worst));
    json_object_set_new(j, "scored", json_integer(t->scored));
    json_object_set_new(j, "sent", json_integer(t->sent));
    json_object_set_new(j, "lost", json_integer(t->lost));
    json_object_set_new(j, "repeated", json_integer(t->repeated));
    return j;
}

static json_t* deviation_to_json(const crdi_replay* r, const crdi_replay_result* x, int i)
{
    const crdi_deviation* d = &x->deviations[i];
    json_t* j = json_object();
    json_object_set_new(j, "from", crdi_json_text(r->recorded->links[i].from));
    json_object_set_new(j, "to", crdi_json_text(r->recorded->links[i].to));
    json_object_set_new(j, "unit", crdi_json_text(r->recorded->links[i].unit));
    json_object_set_new(j, "compared", json_integer(d->compared));
    json_object_set_new(j, "relative", crdi_json_number(d->relative));
    json_object_set_new(j, "rms", crdi_json_number(d->rms));
    json_object_set_new(j, "max", crdi_json_number(d->max));
    json_object_set_new(j, "max_time", crdi_json_number(d->max_time));
    json_object_set_new(j, "first", crdi_json_number(d->first));
    return j;
}

static json_t* result_to_json(const crdi_replay* r, const crdi_replay_result* x)
{
    json_t *j = json_object(), *taps = json_array(), *inputs = json_array(), *notes = json_array();
    json_object_set_new(j, "kind", json_string(x->open ? "open" : "closed"));
    json_object_set_new(j, "time", crdi_json_number(x->time));
    json_object_set_new(j, "wall_time", crdi_json_number(x->wall_time));
    json_object_set_new(j, "results", *x->results ? crdi_json_text(x->results) : json_null());
    json_object_set_new(j, "exchange", *x->exchange ? crdi_json_text(x->exchange) : json_null());
    for (int i = 0; i < x->tap_count; i++) {
        json_array_append_new(taps, tap_to_json(&x->taps[i]));
    }
    for (int i = 0; i < r->recorded->link_count; i++) {
        if (x->asked[i]) { json_array_append_new(inputs, deviation_to_json(r, x, i)); }
    }
    for (int i = 0; i < x->note_count; i++) {
        json_array_append_new(notes, crdi_json_text(x->notes[i]));
    }
    json_object_set_new(j, "couplings", taps);
    json_object_set_new(j, "inputs", inputs);
    json_object_set_new(j, "notes", notes);
    json_object_set_new(j, "equal", json_boolean(x->equal));
    json_object_set_new(j, "verdict", crdi_json_text(x->verdict));
    return j;
}

static json_t* differences_to_json(const crdi_replay* r)
{
    json_t* list = json_array();
    for (int i = 0; i < r->results[0].tap_count; i++) {
        const crdi_replay_tap *a = &r->results[0].taps[i], *b = find_tap(&r->results[1], a);
        if (!b) { continue; }
        json_t* j = json_object();
        json_object_set_new(j, "to", crdi_json_text(a->to));
        json_object_set_new(j, "algorithm", crdi_json_text(a->label));
        json_object_set_new(j, "C", crdi_json_number(100 * (b->C - a->C)));
        json_object_set_new(j, "rms", crdi_json_number(b->rms - a->rms));
        json_object_set_new(j, "worst", crdi_json_number(b->worst - a->worst));
        json_array_append_new(list, j);
    }
    return list;
}

crd_status crdi_replay_print_json(const crdi_replay* r)
{
    json_t *j = json_object(), *played = json_array(), *list = json_array();
    for (int i = 0; i < r->played->count; i++) {
        json_array_append_new(played, crdi_json_text(r->played->items[i]));
    }
    for (int i = 0; i < r->result_count; i++) {
        json_array_append_new(list, result_to_json(r, &r->results[i]));
    }
    json_object_set_new(j, "recording", crdi_json_text(r->recorded->path));
    json_object_set_new(j, "system", *r->system ? crdi_json_text(r->system) : json_null());
    json_object_set_new(j, "unfinished", json_boolean(r->recorded->unfinished));
    json_object_set_new(j, "start", crdi_json_number(r->recorded->start));
    json_object_set_new(j, "end", crdi_json_number(r->recorded->end));
    json_object_set_new(j, "played", played);
    json_object_set_new(j, "replays", list);
    // Closed minus open.
    json_object_set_new(j, "differences",
                        r->result_count == 2 ? differences_to_json(r) : json_null());
    json_object_set_new(j, "warnings", crdi_warnings_json(r->cli));
    return crdi_json_print(r->cli, j);
}
