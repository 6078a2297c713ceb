// What a run says at its end: a report for people on standard error, and its values.
#include "cli/run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

// What was told, as words of the table and of JSON.
static const struct {
    const char *text, *word;
} ends[] = {
    [CRD_END_NONE] = {"not begun", "none"},
    [CRD_END_STOP_TIME] = {"stop time reached", "stop time"},
    [CRD_END_UNIT] = {"a unit ended the run", "unit"},
    [CRD_END_INTERRUPTED] = {"interrupted", "interrupted"},
    [CRD_END_FAILED] = {"failed", "failed"},
    [CRD_END_OVERRUN] = {"ended by a late cycle", "overrun"},
    [CRD_END_GUARD] = {"stopped by the guard", "guard"},
};

static double in_unit(const crd_unit_report* u)
{
    return u->time_step + u->time_get + u->time_set;
}

static double units_time(const crd_master_report* r)
{
    double sum = 0;
    for (int i = 0; i < r->unit_count; i++) {
        sum += in_unit(&r->units[i]);
    }
    return sum;
}

// What shares are parts of: the time of all threads in steps. The times of units are estimated
// from some of their steps; where these add up to more, their sum is the whole.
static double whole_time(const crd_master_report* r)
{
    return fmax(units_time(r), r->wall_time * r->threads);
}

enum { MOST_UNITS = 50 }; // in the table; of more, those that took the longest

static void show_units(crdi_result* aside, const crd_master_report* r, crdi_result* units)
{
    static const crdi_column columns[] = {{"unit", "name", "%s"},
                                          {"kind", "kind", "%s"},
                                          {">steps", "steps", "%d"},
                                          {">step size", "step_size", "s"},
                                          {">in step", "time_step", "s"},
                                          {">in get", "time_get", "s"},
                                          {">in set", "time_set", "s"},
                                          {">share", "share", "100*%.0f %%"},
                                          {">worst step", "worst_step", "s"},
                                          {0}};
    const double sum = units_time(r), whole = whole_time(r);
    if (r->threads == 1 && whole > sum) {
        crdi_result* rest = crdi_row(units);
        crdi_put(rest, TEXT("name", r->pace->on ? "(waiting, master)" : "(master, recording)"),
                 REAL("share", 1 - sum / whole));
        crdi_only_text(rest);
    }
    crdi_show_table(aside, units, columns, "  ");
    if (r->unit_count > MOST_UNITS) {
        crdi_say(aside, "  and %d more units that took less time; --json has them\n",
                 r->unit_count - MOST_UNITS);
    }
}

static void show_tap(crdi_result* lines, const crd_coupling_report* c, int index)
{
    const crd_tap_report* t = &c->taps[index];
    const char* name = index ? "" : crdi_worded(lines, "%s -> %s", c->from, c->to);
    crdi_put(crdi_row(lines), TEXT("coupling", name),
             TEXT("algorithm", crdi_worded(lines, "%s%s", t->label, index ? " (shadow)" : "")),
             REAL("C", 100 * t->metrics.C), REAL("rms", t->metrics.rms),
             REAL("worst", t->metrics.worst), REAL("relative", index ? (double)NAN : c->relative),
             REAL("error", index ? (double)NAN : c->error_rms));
}

static void show_couplings(crdi_result* aside, const crd_master_report* r,
                           const crdi_result* couplings)
{
    static const crdi_column scores[] = {{"coupling", "coupling", "%s"},
                                         {"algorithm", "algorithm", "%s"},
                                         {">C [%]", "C", "%.4g"}, // NaN: nothing could be compared
                                         {">rms", "rms", "%.4g"},
                                         {">worst", "worst", "%.4g"},
                                         {">of scale", "relative", "100*%.2g %%"},
                                         {">est. error", "error", "%.3g"},
                                         {0}};
    static const crdi_column samples[] = {
        {"samples for", "to", "%s"}, {">k", "k_mean", "%.2f"},
        {">max k", "k_max", "%d"},   {">sent", "sent", "%d"},
        {">lost", "lost", "%d"},     {">filled", "filled", "%d"},
        {">late", "late", "%d"},     {">twice", "duplicates", "%d"},
        {">jumps", "jumps", "%d"},   {0}};
    crdi_result* lines = crdi_array(aside, NULL);
    for (int i = 0; i < r->coupling_count; i++) {
        for (int t = 0; t < r->couplings[i].tap_count; t++) {
            show_tap(lines, &r->couplings[i], t);
        }
    }
    crdi_show_table(aside, lines, scores, "  ");
    crdi_show_table(aside, couplings, samples, "  ");
}

static void say_learning(crdi_result* out, const crd_coupling_report* c)
{
    for (int t = 0; t < c->tap_count; t++) {
        const crd_tap_report* p = &c->taps[t];
        if (!p->learns) { continue; }
        if (p->connects == 0) {
            crdi_say(out, "learning %s, %s: the server was never reached\n", c->to, p->label);
            continue;
        }
        crdi_say(out,
                 "learning %s, %s: %" PRId64 " network%s from the server, %" PRId64
                 " taken over, %" PRId64 " rolled back\n",
                 c->to, p->label, p->networks, crdi_plural(p->networks), p->counts.swaps,
                 p->counts.rollbacks);
    }
}

// What part of the signal's changes commands account for, and how far that was believed.
static void say_commands(crdi_result* out, const crd_coupling_report* c)
{
    for (int t = 0; t < c->tap_count; t++) {
        const crd_coupling_commands* p = &c->taps[t].commands;
        const char *parts = "", *constant = "";
        for (int i = 0; i < p->count && i < c->command_count; i++) {
            const int copy = p->copy_of[i];
            if (p->changes[i] == 0 && !(p->part[i] > 0)) {
                constant =
                    crdi_worded(out, "%s%s%s", constant, *constant ? ", " : "", c->commands[i]);
                continue;
            }
            parts = crdi_worded(out, "%s%s%s %.0f %%", parts, *parts ? ", " : "", c->commands[i],
                                100 * p->part[i]);
            if (copy >= 0 && copy < c->command_count) {
                parts = crdi_worded(out, "%s (moves with %s)", parts, c->commands[copy]);
            }
        }
        if (!*parts && !*constant) { continue; }
        const char* trouble = crdi_commands_trouble(out, p);
        crdi_say(out, "commands %s, %s%s: %s%s%s%s%s%s; believed to %.0f %% at the end%s%s\n",
                 c->to, c->taps[t].label, t ? " (shadow)" : "", c->commands_found ? "found " : "",
                 parts, *parts ? " of its changes" : "", *parts && *constant ? "; " : "", constant,
                 *constant ? " constant" : "", 100 * p->share, *trouble ? "; " : "", trouble);
    }
}

static const char* source_name(int source) // crd_board_source
{
    return source == 0 ? "bench" : source == 1 ? "model" : "coming";
}

static void say_standby(crdi_result* out, const crd_master_report* r)
{
    for (int i = 0; i < r->unit_count; i++) {
        char a[32], b[32];
        const crd_standby_stats* s = r->units[i].standby;
        if (!s) { continue; }
        crdi_say(out, "standby  %s: ", r->units[i].name);
        if (s->stood_in > 0) {
            crdi_say(out,
                     "the stand-in was in use for %s of %s; %" PRId64 " takeover%s, %" PRId64
                     " return%s%s\n",
                     crdi_format_seconds(a, s->stood_in),
                     crdi_format_seconds(b, r->time - r->start), s->takeovers,
                     crdi_plural(s->takeovers), s->returns, crdi_plural(s->returns),
                     s->source == 0 ? "" : "; the bench is not back");
        } else {
            crdi_say(out, "the stand-in was not needed\n");
        }
    }
}

static void say_report(crdi_result* out, const crd_master_report* r, bool by_page)
{
    char a[32], b[32], c[32];
    const char* unit = r->end == CRD_END_OVERRUN ? "" : r->end_unit; // 'pace' says whose fault
    crdi_say(out, "time     %.10g s to %.10g s in %" PRId64 " step%s of %s; %s%s%s\n", r->start,
             r->time, r->steps, crdi_plural(r->steps),
             r->control.on ? "variable length" : crdi_format_seconds(a, r->step),
             by_page ? "ended from the page" : ends[r->end].text, *unit ? ": " : "", unit);
    const double simulated = r->time - r->start;
    const double factor = r->wall_time > 0 ? simulated / r->wall_time : 0;
    crdi_say(out, "speed    %.*f x real time: %s in steps, %s to initialise, %d thread%s\n",
             factor < 10     ? 3
             : factor < 1000 ? 1
                             : 0,
             factor, crdi_format_seconds(b, r->wall_time),
             crdi_format_seconds(c, r->initialization_time), r->threads, crdi_plural(r->threads));
    if (*r->isolation) { crdi_say_wrapped(out, "isolated", "%s", r->isolation); }
    for (int i = 0; i < r->loop_count; i++) {
        const crd_loop_report* l = &r->loops[i];
        crdi_say(out, "loop     %s: %d unknown%s, %d %s iteration%s, residual %.2g%s\n", l->text,
                 l->size, crdi_plural(l->size), l->iterations, l->newton ? "Newton" : "fixed-point",
                 crdi_plural(l->iterations), l->residual, l->converged ? "" : ", not converged");
    }
    crdi_say_step_quality(out, r);
    for (int i = 0; i < r->coupling_count; i++) {
        const crd_coupling_report* k = &r->couplings[i];
        if (*k->hint) { crdi_say_wrapped(out, "hint", "%s -> %s: %s", k->from, k->to, k->hint); }
        say_learning(out, k);
        say_commands(out, k);
    }
    if (*r->results) {
        crdi_say(out, "results  %" PRId64 " row%s in %s\n", r->rows, crdi_plural(r->rows),
                 r->results);
    } else {
        crdi_say(out, "results  not recorded\n");
    }
    if (*r->record_note) { crdi_say_wrapped(out, "disk", "%s", r->record_note); }
    if (*r->exchange) {
        crdi_say(out, "exchange %" PRId64 " sample%s in %s\n", r->exchanged,
                 crdi_plural(r->exchanged), r->exchange);
    }
    say_standby(out, r);
    crdi_say_pace(out, r);
    crdi_show_links(out, r);
}

static void put_standby(crdi_result* j, const crd_standby_stats* s)
{
    if (!s) { return; }
    crdi_put(j, INT("takeovers", s->takeovers), INT("returns", s->returns),
             REAL("stood_in", s->stood_in), TEXT("source", source_name(s->source)));
}

static void run_report_put_unit(crdi_result* j, const crd_unit_report* u, double whole)
{
    crdi_put(j, TEXT("name", u->name), TEXT("kind", u->kind), INT("steps", u->steps),
             REAL("step_size", u->step_size), REAL("time_step", u->time_step),
             REAL("time_get", u->time_get), REAL("time_set", u->time_set),
             REAL("share", in_unit(u) / whole), REAL("worst_step", u->worst_step),
             INT("measured", u->measured), REAL("budget", u->budget), INT("late", u->late),
             INT("worker", u->worker));
    crdi_put_link(j, u->link);
    put_standby(crdi_object_if(j, "standby", u->standby), u->standby);
}

// The time in a unit from which on it is in the table.
static double least_shown(const crd_master_report* r)
{
    double most[MOST_UNITS]; // the longest times, falling
    for (int i = 0; i < MOST_UNITS; i++) {
        most[i] = -1;
    }
    for (int i = 0; i < r->unit_count; i++) {
        const double x = in_unit(&r->units[i]);
        int k = MOST_UNITS;
        for (; k > 0 && x > most[k - 1]; k--) {
            if (k < MOST_UNITS) { most[k] = most[k - 1]; }
        }
        if (k < MOST_UNITS) { most[k] = x; }
    }
    return most[MOST_UNITS - 1];
}

static void put_units(crdi_result* units, const crd_master_report* r)
{
    const double whole = whole_time(r), least = least_shown(r);
    for (int i = 0, shown = 0; i < r->unit_count; i++) {
        const bool shows = in_unit(&r->units[i]) >= least && shown < MOST_UNITS;
        shown += shows;
        if (!shows && !crdi_makes_json(units)) { continue; }
        crdi_result* row = crdi_row(units);
        run_report_put_unit(row, &r->units[i], whole);
        if (!shows) { crdi_only_json(row); }
    }
}

static void run_report_put_loop(crdi_result* j, const crd_loop_report* l)
{
    crdi_put(j, TEXT("loop", l->text), INT("size", l->size), INT("iterations", l->iterations),
             REAL("residual", l->residual), TEXT("method", l->newton ? "newton" : "fixed point"),
             BOOL("converged", l->converged));
}

// How good the estimates of an element were, into `j`.
static void put_tap(crdi_result* j, const crd_coupling_report* c, const crd_tap_report* t)
{
    crdi_put(j, TEXT("algorithm", t->label), INT("scored", t->scored),
             REAL("C", 100 * t->metrics.C), REAL("M", 100 * t->metrics.M),
             REAL("P", 100 * t->metrics.P), REAL("rms", t->metrics.rms),
             REAL("worst", t->metrics.worst), BOOL("learns", t->learns),
             INT("networks", t->networks), INT("connects", t->connects),
             INT("swaps", t->counts.swaps), INT("rollbacks", t->counts.rollbacks));
    if (t->commands.count == 0) { return; }
    crdi_put(j, REAL("share", 100 * t->commands.share), INT("alarms", t->commands.alarms));
    crdi_result* list = crdi_array(j, "commands");
    for (int i = 0; i < t->commands.count && i < c->command_count; i++) {
        crdi_put(crdi_row(list), TEXT("name", c->commands[i]),
                 REAL("part", 100 * t->commands.part[i]), INT("changes", t->commands.changes[i]));
    }
}

static void run_report_put_coupling(crdi_result* j, const crd_coupling_report* c)
{
    const crd_coupling_counts* n = &c->taps[0].counts;
    crdi_put(j, TEXT("from", c->from), TEXT("to", c->to), REAL("step", c->step));
    put_tap(j, c, &c->taps[0]);
    crdi_put(j, REAL("scale", c->scale > 0 ? c->scale : (double)NAN), REAL("relative", c->relative),
             REAL("signal_rms", c->signal_rms), REAL("error_rms", c->error_rms));
    crdi_put(j, REAL("k_mean", c->k_mean), INT("k_max", c->k_max), REAL("ahead", c->ahead));
    crdi_put(j, INT("sent", c->sent), INT("lost", c->lost), INT("repeated", c->repeated),
             INT("filled", n->filled), INT("late", n->late), INT("too_late", n->too_late),
             INT("duplicates", n->duplicates), INT("not_finite", n->not_finite),
             INT("beyond", n->beyond), INT("limited", n->limited), INT("jumps", n->jumps),
             INT("restarts", n->restarts));
    crdi_result* shadows = crdi_array(j, "shadows");
    for (int t = 1; t < c->tap_count; t++) {
        crdi_result* shadow = crdi_row(shadows);
        put_tap(shadow, c, &c->taps[t]);
    }
    crdi_put(j, TEXT_IF("hint", c->hint));
}

void crdi_put_report(crdi_result* out, const crd_master_report* r, const crdi_run_end* end,
                     bool quiet)
{
    crdi_result* aside = quiet ? NULL : crdi_aside(out);
    const bool by_page = end->by_page;
    crdi_put(out, TEXT("end", by_page ? "page" : ends[r->end].word),
             TEXT_IF("end_unit", r->end_unit), REAL("start", r->start), REAL("stop", r->stop),
             REAL("step", r->step), REAL("time", r->time), INT("steps", r->steps),
             INT("threads", r->threads), REAL("wall_time", r->wall_time),
             REAL("initialization_time", r->initialization_time),
             REAL("real_time_factor", (r->time - r->start) / r->wall_time), INT("rows", r->rows),
             TEXT_IF("isolation", r->isolation), TEXT_IF("results", r->results),
             INT("rows_lost", r->rows_lost), INT("rows_thinned", r->rows_thinned),
             TEXT_IF("record_note", r->record_note), TEXT_IF("exchange", r->exchange),
             INT("exchanged", r->exchanged));
    crdi_put_pace(out, r);
    crdi_result *units = crdi_array(out, "units"), *loops = crdi_array(out, "loops");
    crdi_result* couplings = crdi_array(out, "couplings");
    put_units(units, r);
    for (int i = 0; i < r->loop_count; i++) {
        run_report_put_loop(crdi_row(loops), &r->loops[i]);
    }
    for (int i = 0; i < r->coupling_count; i++) {
        run_report_put_coupling(crdi_row(couplings), &r->couplings[i]);
    }
    if (aside) {
        say_report(aside, r, by_page);
        show_units(aside, r, units);
        show_couplings(aside, r, couplings);
    }
    crdi_put_quality(out, aside, r);
}
