// How a run kept the clock: one screen of tables, JSON, and limits that become an exit code.
#include "cardan/unit.h"
#include "cli/run/run.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_OVERRUNS = 10 };

static double run_pace_seconds(int64_t ns)
{
    return 1e-9 * (double)ns;
}

static const char* unit_name(const crd_master_report* r, int unit)
{
    return unit >= 0 && unit < r->unit_count ? r->units[unit].name : "";
}

// A cycle that worked less than it was late at its beginning did not cause that.
static bool began_late(const crd_pace_report* p, const crd_overrun_info* o)
{
    const double work = run_pace_seconds(o->busy_ns);
    return p->period > 0 && run_pace_seconds(o->late_ns) + p->period - work > work;
}

// The kept overrun only comes from the one before it.
static bool follows(const crd_pace_report* p, int i)
{
    const crd_overrun_info* o = &p->kept[i];
    return i > 0 && o->behind > 0 && o[-1].cycle == o->cycle - 1 && began_late(p, o);
}

// "" if it is not known.
static const char* cause(const crd_master_report* r, const crd_overrun_info* o, char* out,
                         size_t size)
{
    const char* unit = unit_name(r, o->unit);
    if (began_late(r->pace, o) && o->behind > 0) {
        snprintf(out, size, "behind since cycle %" PRId64, o->cycle - o->behind);
        return out;
    }
    if (began_late(r->pace, o)) { return "woken late"; }
    snprintf(out, size, *unit ? "longest in unit '%s'" : "%s", unit);
    return out;
}

// ---- sentences ---------------------------------------------------------------------------------

// "; 3 overruns, the worst 2.1 ms late at t = 12.345 s, longest in unit 'engine'; ..."
static void run_pace_put_overruns(crd_text* t, const crd_master_report* r)
{
    const crd_pace_report* p = r->pace;
    char a[32];
    if (p->overruns == 0) {
        crdi_text_add(t, "; no overrun");
        return;
    }
    crdi_text_add(t, "; %" PRId64 " overrun%s, %s%s late at t = %.9g s", p->overruns,
                  crdi_plural(p->overruns), p->overruns > 1 ? "the worst " : "",
                  crdi_format_seconds(a, run_pace_seconds(p->worst.late_ns)), p->worst.time);
    char b[256];
    const char* why = cause(r, &p->worst, b, sizeof b);
    if (*why) { crdi_text_add(t, ", %s", why); }
    if (p->burst > 1) {
        crdi_text_add(t, "; longest row %" PRId64 " from t = %.9g s", p->burst, p->burst_time);
    }
}

// What became of the grid: nothing, unless the policy moves it or somebody paused the run.
static void run_pace_put_grid(crd_text* t, const crd_pace_report* p)
{
    char a[32];
    if (p->drift_ns == 0) {
        crdi_text_add(t, "; grid drift 0");
    } else {
        crdi_text_add(t, "; grid drift %+" PRId64 " ns", p->drift_ns);
    }
    if (p->moved_ns != 0) {
        crdi_text_add(t, ", grid moved by %s",
                      crdi_format_seconds(a, run_pace_seconds(p->moved_ns)));
    }
    if (p->skipped > 0) {
        crdi_text_add(t, ", %" PRId64 " deadline%s skipped", p->skipped, crdi_plural(p->skipped));
    }
    if (p->paused_ns > 0) {
        crdi_text_add(t, ", paused for %s", crdi_format_seconds(a, run_pace_seconds(p->paused_ns)));
    }
}

static void put_verdict(crd_text* t, const crd_pace_report* p)
{
    if (p->cycles == 0) {
        crdi_text_add(t, "no cycle was done");
    } else if (p->overruns == 0 && p->period > 0) {
        crdi_text_add(t, "kept: the longest cycle took %.3g %% of its period",
                      100 * run_pace_seconds(p->busy.max) / p->period);
    } else if (p->overruns == 0) {
        crdi_text_add(t, "kept");
    } else {
        crdi_text_add(t, "not kept: %.3g %% of the cycles were late",
                      100 * (double)p->overruns / (double)p->cycles);
    }
}

static void say_sentence(crdi_result* out, const crd_master_report* r)
{
    const crd_pace_report* p = r->pace;
    crd_text t;
    char a[32];
    crd_text_init(&t, crdi_result_context(out));
    if (p->factor == 1) {
        crdi_text_add(&t, "real time");
    } else {
        crdi_text_add(&t, "%.6gx", p->factor);
    }
    crdi_text_add(&t, ", %" PRId64 " cycle%s", p->cycles, crdi_plural(p->cycles));
    if (p->period > 0) { crdi_text_add(&t, " of %s", crdi_format_seconds(a, p->period)); }
    run_pace_put_overruns(&t, r);
    run_pace_put_grid(&t, p);
    if (!t.failed) { crdi_say_wrapped(out, "pace", "%s", t.data); }
    t.length = 0;
    put_verdict(&t, p);
    if (!t.failed) { crdi_say_wrapped(out, "", "%s", t.data); }
    crd_text_clear(&t);
}

static void say_system(crdi_result* out, const crd_pace_report* p)
{
    crd_text t;
    char a[32];
    crd_text_init(&t, crdi_result_context(out));
    if (p->fifo) {
        crdi_text_add(&t, "SCHED_FIFO %d", p->priority);
    } else {
        crdi_text_add(&t, "ordinary scheduler");
    }
    crdi_text_add(&t, ", memory %slocked, ", p->locked ? "" : "not ");
    if (p->pinned) {
        crdi_text_add(&t, "CPU %d", p->cpu);
    } else {
        crdi_text_add(&t, "any CPU");
    }
    if (p->awake) { crdi_text_add(&t, ", kept awake"); }
    crdi_text_add(&t,
                  "; page faults %" PRId64 " major, %" PRId64 " minor; context switches %" PRId64
                  " voluntary, %" PRId64 " involuntary",
                  p->major_faults, p->minor_faults, p->voluntary, p->involuntary);
    if (p->clock_steps > 0) {
        crdi_text_add(&t, "; the wall clock was set %" PRId64 " time%s, by %s%s in all",
                      p->clock_steps, crdi_plural(p->clock_steps), p->clock_step_ns < 0 ? "-" : "+",
                      crdi_format_seconds(a, fabs(run_pace_seconds(p->clock_step_ns))));
    }
    if (!t.failed) { crdi_say_wrapped(out, "system", "%s", t.data); }
    crd_text_clear(&t);
}

// ---- tables ------------------------------------------------------------------------------------

static void put_task(crdi_result* row, const char* name, const crd_histogram* h)
{
    crdi_put(row, TEXT("name", name), REAL("p50", crdi_histogram_claim(h, 0.5)),
             REAL("p99", crdi_histogram_claim(h, 0.99)),
             REAL("p99.99", crdi_histogram_claim(h, 0.9999)),
             REAL("max", h->count ? run_pace_seconds(h->max) : (double)NAN));
}

static void show_tasks(crdi_result* out, const crd_master_report* r)
{
    static const crdi_column columns[] = {{"per cycle", "name", "%s"},
                                          {">p50", "p50", "s"},
                                          {">p99", "p99", "s"},
                                          {">p99.99", "p99.99", "s"},
                                          {">max", "max", "s"},
                                          {">load", "load", "100*%.3g %%"},
                                          {0}};
    const crd_pace_report* p = r->pace;
    const double clock = (r->time - r->start) / p->factor;
    crdi_result* lines = crdi_array(out, NULL);
    put_task(crdi_row(lines), "wake-up after its deadline", &p->lateness);
    crdi_result* work = crdi_row(lines);
    put_task(work, "work", &p->busy);
    if (clock > 0) { crdi_put(work, REAL("load", run_pace_seconds(p->busy.sum) / clock)); }
    crdi_show_table(out, lines, columns, "  ");
}

// All of a few; of many those that were latest.
static bool is_among_worst(const crd_pace_report* p, int index)
{
    int worse = 0;
    for (int i = 0; i < p->kept_count; i++) {
        const int64_t more = p->kept[i].late_ns - p->kept[index].late_ns;
        worse += !follows(p, i) && (more > 0 || (more == 0 && i < index));
    }
    return !follows(p, index) && worse < MOST_OVERRUNS;
}

static void show_overruns(crdi_result* out, const crd_master_report* r)
{
    static const crdi_column columns[] = {{">overrun at", "time", "%.9g s"},
                                          {">cycle", "cycle", "%d"},
                                          {">late", "late", "s"},
                                          {">work", "work", "s"},
                                          {">in a row", "row", "%s"},
                                          {"", "why", "%s"},
                                          {0}};
    const crd_pace_report* p = r->pace;
    if (p->overruns < 2) { return; } // of one the sentence says everything
    crdi_result* lines = crdi_array(out, NULL);
    int64_t shown = 0;
    for (int i = 0; i < p->kept_count; i++) {
        char why[256];
        int row = 1;
        const crd_overrun_info* o = &p->kept[i];
        if (!is_among_worst(p, i)) { continue; }
        while (i + row < p->kept_count && follows(p, i + row)) {
            row++;
        }
        shown += row;
        // Of those that are not kept some may belong to it.
        const char* plus = p->overruns > p->kept_count ? "+" : "";
        crdi_put(crdi_row(lines), REAL("time", o->time), INT("cycle", o->cycle),
                 REAL("late", run_pace_seconds(o->late_ns)),
                 REAL("work", run_pace_seconds(o->busy_ns)),
                 TEXT("row", crdi_worded(out, "%d%s", row, plus)),
                 TEXT("why", cause(r, o, why, sizeof why)));
    }
    crdi_show_table(out, lines, columns, "  ");
    if (shown < p->overruns) {
        crdi_say(out, "  and %" PRId64 " more%s\n", p->overruns - shown,
                 shown < p->kept_count ? "; --json and the report have some of them" : "");
    }
}

static void say_budgets(crdi_result* out, const crd_master_report* r)
{
    char a[32];
    for (int i = 0; i < r->unit_count; i++) {
        const crd_unit_report* u = &r->units[i];
        if (isnan(u->budget)) { continue; }
        crdi_say(out, "budget   unit '%s', %s: ", u->name, crdi_format_seconds(a, u->budget));
        if (u->late == 0) {
            crdi_say(out, "never late\n");
        } else {
            crdi_say(out, "%" PRId64 " cycle%s went on without it\n", u->late,
                     crdi_plural(u->late));
        }
    }
}

void crdi_say_pace(crdi_result* out, const crd_master_report* r)
{
    if (r->pace->on) {
        say_sentence(out, r);
        say_system(out, r->pace);
        show_tasks(out, r);
        show_overruns(out, r);
    }
    say_budgets(out, r);
}

void crdi_show_links(crdi_result* out, const crd_master_report* r)
{
    static const crdi_column columns[] = {{"link", "name", "%s"},
                                          {">in", "in", "%d"},
                                          {">out", "out", "%d"},
                                          {">lost", "lost", "%d"},
                                          {">twice", "twice", "%d"},
                                          {">swapped", "swapped", "%d"},
                                          {">bad", "bad", "%d"},
                                          {">late", "late", "%d"},
                                          {">age mean", "age mean", "s"},
                                          {">age max", "age max", "s"},
                                          {">round trip", "trip", "s"},
                                          {">max", "trip max", "s"},
                                          {0}};
    crdi_result* lines = crdi_array(out, NULL);
    for (int i = 0; i < r->unit_count; i++) {
        const crd_link_stats* l = r->units[i].link;
        if (!l) { continue; }
        crdi_put(crdi_row(lines), TEXT("name", r->units[i].name), INT("in", l->in),
                 INT("out", l->out), INT("lost", l->lost), INT("twice", l->duplicates),
                 INT("swapped", l->reordered), INT("bad", l->bad), INT("late", l->late),
                 REAL("age mean", l->age_mean), REAL("age max", l->age_max),
                 REAL("trip", l->round_trip), REAL("trip max", l->round_trip_max));
    }
    crdi_show_table(out, lines, columns, "  ");
}

// ---- values ------------------------------------------------------------------------------------

// What the result file says about it, too.
static void put_document(crdi_result* out, const char* key, crd_text* t)
{
    if (t->failed || !t->data) {
        crdi_result_spoil(out, CRD_E_MEMORY);
    } else {
        crdi_put_json(out, key, t->data, t->length);
    }
    crd_text_clear(t);
}

void crdi_put_pace(crdi_result* out, const crd_master_report* r)
{
    crd_context* ctx = crdi_result_context(out);
    crd_text t;
    const char** names = crdi_new(ctx, ((size_t)r->unit_count + 1) * sizeof *names);
    for (int i = 0; names && i < r->unit_count; i++) {
        names[i] = r->units[i].name;
    }
    crdi_json_writer w;
    crd_text_init(&t, ctx);
    crdi_json_writer_init(&w, &t, CRDI_JSON_COMPACT);
    if (names) { crdi_pace_put_json(&w, NULL, r->pace, names, r->unit_count); }
    crd_free(ctx, names);
    put_document(out, "pace", &t);
}

void crdi_put_link(crdi_result* out, const struct crd_link_stats* l)
{
    crd_text t;
    crdi_json_writer w;
    crd_text_init(&t, crdi_result_context(out));
    crdi_json_writer_init(&w, &t, CRDI_JSON_COMPACT);
    crdi_link_put_json(&w, NULL, l);
    put_document(out, "link", &t);
}

// ---- limits ------------------------------------------------------------------------------------

crd_status crdi_check_pace(crd_context* ctx, const crd_master_report* r, int max_overruns,
                           double max_lateness)
{
    const crd_pace_report* p = r->pace;
    char a[32], b[32];
    if (max_overruns >= 0 && p->overruns > max_overruns) {
        char c[256];
        const char* why = cause(r, &p->worst, c, sizeof c);
        return crdi_fail(ctx, CRD_E_LIMIT,
                         "%" PRId64 " of %" PRId64 " cycles were late, the worst %s at t = %.9g s "
                         "(cycle %" PRId64 "%s%s), more than --max-overruns = %d",
                         p->overruns, p->cycles,
                         crdi_format_seconds(a, run_pace_seconds(p->worst.late_ns)), p->worst.time,
                         p->worst.cycle, *why ? ", " : "", why, max_overruns);
    }
    if (!isnan(max_lateness) && !(run_pace_seconds(p->lateness.max) <= max_lateness)) {
        return crdi_fail(ctx, CRD_E_LIMIT,
                         "a cycle began %s after its deadline, more than --max-lateness = %s",
                         crdi_format_seconds(a, run_pace_seconds(p->lateness.max)),
                         crdi_format_seconds(b, max_lateness));
    }
    return CRD_OK;
}

crd_status crdi_fail_overrun(crd_context* ctx, const crd_master_report* r)
{
    const crd_overrun_info* o = &r->pace->worst;
    char a[32], b[256];
    const char* why = cause(r, o, b, sizeof b);
    return crdi_fail(ctx, CRD_E_LIMIT,
                     "cycle %" PRId64 " at t = %.9g s was done %s late%s%s, and the run ends then "
                     "('overrun: stop')%s%s",
                     o->cycle, o->time, crdi_format_seconds(a, run_pace_seconds(o->late_ns)),
                     *why ? ", " : "", why,
                     *r->results ? "; everything up to there is recorded in " : "", r->results);
}
