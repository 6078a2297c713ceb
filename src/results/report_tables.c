// The words and tables of a report: how the runs went, what ran, events, times, loops, couplings,
// statistics.
#include "results/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char* crdi_state_word(crdi_state s)
{
    static const char* const words[] = {"good", "unknown", "doubtful", "bad"};
    return words[s];
}

const crdi_json* crdi_report_drawn(const crdi_report* r)
{
    for (int i = 0; i < r->part_count; i++) {
        if (r->parts[i].what && !r->parts[i].run->reference) { return r->parts[i].what; }
    }
    return NULL;
}

// ---- verdicts ----------------------------------------------------------------------------------

static void verdict_sentence(const crdi_report_part* p, char* out, size_t size)
{
    char time[32];
    if (!p->verdict) {
        snprintf(out, size, "%s",
                 p->info->unfinished
                     ? "The file was never closed: the run was killed or is still going on"
                     : "The file does not say how the run went; MF4 and MAT files of Cardan do");
        return;
    }
    const char* end = crdi_json_get_text(p->verdict, "end");
    const char* unit = crdi_json_get_text(p->verdict, "unit");
    const char* message = crdi_json_get_text(p->verdict, "message");
    crdi_number_text(time, crdi_json_get_number(p->verdict, "time"), 9);
    if (strcmp(end, "stop time") == 0) {
        snprintf(out, size, "Reached its stop time %s s", time);
    } else if (strcmp(end, "unit") == 0) {
        crdi_doc_format(out, size, "Ended at %s s by unit %s", time, unit);
    } else if (strcmp(end, "interrupted") == 0) {
        snprintf(out, size, "Interrupted at %s s", time);
    } else if (strcmp(end, "guard") == 0) {
        snprintf(out, size, "Stopped by the guard at %s s", time);
    } else if (strcmp(end, "overrun") == 0) {
        snprintf(out, size, "Ended at %s s by a late cycle", time);
    } else if (strcmp(end, "failed") == 0) {
        crdi_doc_format(out, size, "Failed at %s s%s%s", time, *message ? ": " : "", message);
    } else {
        crdi_doc_format(out, size, "Ended at %s s (%s)", time, crdi_text_or_dash(end));
    }
}

static int warning_count(const crdi_report_part* p)
{
    int events = 0;
    for (int i = 0; i < p->info->event_count; i++) {
        events += p->info->events[i].kind == CRD_EVENT_WARNING;
    }
    const double said = crdi_json_get_number(p->verdict, "warnings");
    return said > events && said < 1e9 ? (int)said : events;
}

static int error_count(const crdi_report_part* p, crd_event_kind kind)
{
    int n = 0;
    for (int i = 0; i < p->info->event_count; i++) {
        n += p->info->events[i].kind == kind;
    }
    return n;
}

// The account knows more of them than there are events.
static int overrun_count(const crdi_report_part* p)
{
    const int events = error_count(p, CRD_EVENT_OVERRUN);
    const double said = crdi_json_get_number(crdi_report_paced(p->verdict), "overrun_count");
    return said > events && said < 1e9 ? (int)said : events;
}

void crdi_doc_verdict(crdi_doc* d, crdi_state state)
{
    static const char* const marks[] = {"\u2714", "\u25CB", "\u26A0", "\u2716"};
    if (d->html) {
        crdi_text_add(&d->text,
                      "<p class=\"verdict %s\"><span class=\"mark\" aria-hidden=\"true\">"
                      "%s</span> <span>",
                      crdi_state_word(state), marks[state]);
    } else {
        crdi_text_add(&d->text, "\n%s ", marks[state]);
    }
}

void crdi_doc_verdict_end(crdi_doc* d)
{
    crdi_doc_put(d, d->html ? "</span></p>\n" : "\n");
}

static void put_verdict(crdi_doc* d, const crdi_report* r, const crdi_report_part* p)
{
    char sentence[1024], more[256] = "", number[32];
    verdict_sentence(p, sentence, sizeof sentence);
    size_t n = 0;
    const int warnings = warning_count(p), overruns = overrun_count(p);
    if (warnings) {
        n += (size_t)snprintf(more + n, sizeof more - n, ", %d warning%s", warnings,
                              warnings == 1 ? "" : "s");
    }
    if (overruns) {
        n += (size_t)snprintf(more + n, sizeof more - n, ", %d overrun%s", overruns,
                              overruns == 1 ? "" : "s");
    }
    const double defect = crdi_json_get_number(p->verdict, "worst_defect");
    if (isfinite(defect)) {
        n += (size_t)snprintf(more + n, sizeof more - n, ", largest defect %s %%",
                              crdi_number_text(number, 100 * defect, 2));
    }
    if (crdi_report_knows_nothing(p->verdict)) {
        n += (size_t)snprintf(more + n, sizeof more - n, ", defects not measured");
    }
    if (crdi_report_adds_up(p->verdict)) {
        n += (size_t)snprintf(more + n, sizeof more - n, ", errors not known");
    }
    const double error = crdi_json_get_number(p->verdict, "worst_part");
    if (error >= 0.5 * CRDI_MUCH_ERROR) {
        snprintf(more + n, sizeof more - n, ", estimated error %s %% of RMS",
                 crdi_number_text(number, 100 * error, 2));
    }
    crdi_doc_verdict(d, p->state);
    if (r->part_count > 1) {
        crdi_doc_put(d, d->html ? "<b>" : "**");
        crdi_doc_text(d, p->label);
        crdi_doc_put(d, d->html ? "</b> " : "**: ");
    }
    crdi_doc_text(d, sentence);
    crdi_doc_text(d, more);
    const crdi_json* guard = crdi_json_get_object(p->verdict, "guard");
    const char *said = crdi_json_get_text(guard, "text"), *help = crdi_json_get_text(guard, "help");
    if (!*said && strcmp(crdi_json_get_text(guard, "state"), "off") == 0) {
        const char* note = crdi_json_get_text(guard, "note");
        crdi_doc_text(d, *note ? ". Guard " : "");
        crdi_doc_text(d, note);
    } else if (*said) {
        crdi_doc_text(d, ". Guard: ");
        crdi_doc_text(d, said);
        crdi_doc_text(d, *help ? "; " : "");
        crdi_doc_text(d, help);
    }
    crdi_doc_verdict_end(d);
}

// "2026-11-15 07:00:00 UTC" out of "2026-11-15T07:00:00Z", or of the recording's own stamp
static void started_text(const crdi_report_part* p, char out[64])
{
    const char* said = crdi_json_get_text(p->what, "started");
    const time_t seconds = (time_t)(p->info->started / 1000000000);
    struct tm tm;
    if (strlen(said) >= 19 && said[10] == 'T') {
        snprintf(out, 64, "%.10s %.8s%s", said, said + 11, said[19] == 'Z' ? " UTC" : "");
    } else if (*said) {
        snprintf(out, 64, "%.60s", said);
    } else if (p->info->started && gmtime_r(&seconds, &tm)) {
        strftime(out, 64, "%Y-%m-%d %H:%M:%S UTC", &tm);
    } else {
        snprintf(out, 64, "\u2013");
    }
}

// ---- what ran ----------------------------------------------------------------------------------

static void put_fact(crdi_doc* d, const char* name, const char* value)
{
    if (!*value) { return; }
    crdi_doc_put(d, d->html ? "<div><dt>" : "- ");
    crdi_doc_text(d, name);
    crdi_doc_put(d, d->html ? "</dt><dd>" : ": ");
    crdi_doc_text(d, value);
    crdi_doc_put(d, d->html ? "</dd></div>\n" : "\n");
}

static void put_number_fact(crdi_doc* d, const char* name, double x, const char* unit)
{
    char number[32], text[64];
    if (!isfinite(x)) { return; }
    snprintf(text, sizeof text, "%s%s%s", crdi_number_text(number, x, 9), *unit ? " " : "", unit);
    put_fact(d, name, text);
}

static void put_span(crdi_doc* d, const crdi_report_part* p)
{
    const crdi_json* run = crdi_json_get_object(p->what, "run");
    double start = crdi_json_get_number(run, "start"),
           stop = crdi_json_get_number(p->verdict, "time");
    for (int i = 0; i < p->info->group_count && !p->verdict; i++) {
        const crdi_report_group* g = &p->groups[i];
        if (!g->rows) { continue; }
        if (!isfinite(start)) { start = g->t0; }
        stop = fmax(stop, g->last);
    }
    char a[32], b[32], text[96];
    if (!isfinite(stop)) { return; }
    crdi_number_text(a, isfinite(start) ? start : 0, 9);
    snprintf(text, sizeof text, "%s s to %s s", a, crdi_number_text(b, stop, 9));
    put_fact(d, "Time", text);
}

static void put_performance(crdi_doc* d, const crdi_report_part* p)
{
    const crdi_json* run = crdi_json_get_object(p->what, "run");
    const double wall = crdi_json_get_number(p->verdict, "wall_time");
    const double start = crdi_json_get_number(run, "start");
    const double span = crdi_json_get_number(p->verdict, "time") - (isfinite(start) ? start : 0);
    char text[128], a[32], b[32];
    if (!isfinite(wall)) { return; }
    crdi_seconds_text(a, wall);
    if (wall > 0 && span > 0) {
        snprintf(text, sizeof text, "%s, %s times real time", a,
                 crdi_number_text(b, span < 100 * wall ? span / wall : round(span / wall),
                                  span < 100 * wall ? 3 : 9));
    } else {
        snprintf(text, sizeof text, "%s", a);
    }
    put_fact(d, "Computed in", text);
}

static void put_facts(crdi_doc* d, const crdi_report_part* p)
{
    const crdi_json* system = crdi_json_get_object(p->what, "system");
    const crdi_json* run = crdi_json_get_object(p->what, "run");
    const crdi_json* machine = crdi_json_get_object(p->what, "machine");
    char text[256];
    crdi_doc_put(d, d->html ? "<dl class=\"facts\">\n" : "\n");
    put_fact(d, "Result", p->info->path);
    put_fact(d, "System", crdi_json_get_text(system, "file"));
    put_fact(d, "Title", crdi_json_get_text(system, "title"));
    put_fact(d, "Based on", crdi_json_get_text(system, "base"));
    started_text(p, text);
    if (strcmp(text, "\u2013") != 0) { put_fact(d, "Started", text); }
    put_span(d, p);
    put_number_fact(d, "Step", crdi_json_get_number(run, "step"), "s");
    put_number_fact(d, "Steps", crdi_json_get_number(p->verdict, "steps"), "");
    put_number_fact(d, "Tolerance", crdi_json_get_number(run, "tolerance"), "");
    put_fact(d, "Scheme", crdi_json_get_text(run, "scheme"));
    put_number_fact(d, "Threads", crdi_json_get_number(run, "threads"), "");
    put_performance(d, p);
    put_fact(d, "Isolated", crdi_json_get_text(p->verdict, "isolation"));
    const char* os = crdi_json_get_text(machine, "os");
    const double processors = crdi_json_get_number(machine, "processors");
    if (*os && processors > 0 && processors < 1e6) {
        snprintf(text, sizeof text, "%.200s, %d processor%s", os, (int)processors,
                 processors == 1 ? "" : "s");
        put_fact(d, "Machine", text);
    } else {
        put_fact(d, "Machine", os);
    }
    const char* version = crdi_json_get_text(p->what, "cardan");
    snprintf(text, sizeof text, "%s%.100s", *version ? "Cardan " : "",
             *version ? version : p->info->program);
    put_fact(d, "Program", text);
    crdi_doc_put(d, d->html ? "</dl>\n" : "");
}

static const char* file_name_text(const crdi_json* unit, char out[CRDI_CELL])
{
    const char* file = crdi_json_get_text(unit, "file");
    const char* slash = strrchr(file, '/');
    (void)out;
    return crdi_text_or_dash(slash && slash[1] ? slash + 1 : file);
}

static const char* hash_text(const crdi_json* unit, char out[CRDI_CELL])
{
    snprintf(out, CRDI_CELL, "%.10s", crdi_json_get_text(unit, "sha256"));
    return crdi_text_or_dash(out);
}

static const crdi_doc_column unit_columns[] = {
    {CRDI_TEXT("Unit", "name")},
    {CRDI_TEXT("Kind", "kind")},
    {CRDI_TEXT("Model", "model")},
    {CRDI_TEXT("Version", "version")},
    {.title = "Made with", .key = "tool", .tip = "date"},
    {.title = "File", .make = file_name_text, .tip = "file"},
    {.title = "SHA-256", .make = hash_text, .tip = "sha256"},
    {CRDI_NUMBER("Step / s", "step", 6)},
};

// A value of a parameter: the format has texts, but a number does no harm.
static const char* value_text(const crdi_json* object, const char* key, char number[32])
{
    const crdi_json* x = crdi_json_member(object, key);
    if (x && x->kind == CRDI_JSON_NUMBER) { return crdi_number_text(number, x->number, 9); }
    if (x && x->kind == CRDI_JSON_BOOL) { return x->truth ? "true" : "false"; }
    return crdi_json_get_text(object, key);
}

static void report_tables_put_parameters(crdi_doc* d, const crdi_json* units)
{
    bool any = false;
    for (const crdi_json* u = crdi_json_first(units); u; u = u->next) {
        any = any || crdi_json_count(crdi_json_get_list(u, "parameters")) > 0;
    }
    if (!any) { return; }
    crdi_doc_table(d, "Parameters that differ from their start values", "llrrl",
                   "Unit|Parameter|Value|Start value|Unit of measure");
    for (const crdi_json* u = crdi_json_first(units); u; u = u->next) {
        for (const crdi_json* q = crdi_json_first(crdi_json_get_list(u, "parameters")); q;
             q = q->next) {
            char a[32], b[32];
            crdi_doc_cell(d, "%s", crdi_json_get_text(u, "name"));
            crdi_doc_cell(d, "%s", crdi_json_get_text(q, "name"));
            crdi_doc_cell(d, "%s", value_text(q, "value", a));
            crdi_doc_cell(d, "%s", crdi_text_or_dash(value_text(q, "start", b)));
            crdi_doc_cell(d, "%s", crdi_text_or_dash(crdi_json_get_text(q, "unit")));
        }
    }
    crdi_doc_table_end(d);
}

static const char* conversion_text(const crdi_json* c, char out[CRDI_CELL])
{
    char a[32], b[32];
    const double gain = crdi_json_get_number(c, "gain"), offset = crdi_json_get_number(c, "offset");
    const bool scaled = isfinite(gain) && gain != 1, moved = isfinite(offset) && offset != 0;
    snprintf(out, CRDI_CELL, "%s%s%s%s%s", scaled ? "\u00D7 " : "",
             scaled ? crdi_number_text(a, gain, 9) : "", moved ? " + " : "",
             moved ? crdi_number_text(b, offset, 9) : "",
             crdi_json_get_bool(c, "mapped", false) ? " mapped" : "");
    return out;
}

static const crdi_doc_column connection_columns[] = {
    {CRDI_TEXT("From", "from")},
    {CRDI_TEXT("To", "to")},
    {CRDI_TEXT("Unit of measure", "unit")},
    {CRDI_TEXT("Prediction", "predict")},
    {.title = "Conversion", .make = conversion_text},
};

static void report_tables_put_connections(crdi_doc* d, const crdi_json* connections)
{
    const int n = crdi_json_count(connections);
    if (!n) { return; }
    if (d->html) {
        crdi_text_add(&d->text, "<details%s><summary>%d connection%s</summary>\n",
                      n <= 6 ? " open" : "", n, n == 1 ? "" : "s");
    }
    crdi_doc_rows(d, d->html ? "" : "Connections", CRDI_COLUMNS(connection_columns), connections,
                  NULL);
    if (d->html) { crdi_doc_put(d, "</details>\n"); }
}

void crdi_report_summary(crdi_doc* d, const crdi_report* r)
{
    for (int i = 0; i < r->part_count; i++) {
        if (!r->parts[i].run->reference) { put_verdict(d, r, &r->parts[i]); }
    }
}

// Whether two runs had the same units, whatever their parameters.
static bool same_units(const crdi_json* a, const crdi_json* b)
{
    if (!a || !b || a->count != b->count) { return false; }
    const crdi_json* other = b->first;
    for (const crdi_json* u = a->first; u; u = u->next, other = other->next) {
        if (u->count != other->count) { return false; }
        for (const crdi_json* m = u->first; m; m = m->next) {
            if (m->key && strcmp(m->key, "parameters") != 0 &&
                !crdi_json_equal(m, crdi_json_member(other, m->key))) {
                return false;
            }
        }
    }
    return true;
}

static void put_what_ran(crdi_doc* d, const crdi_report* r)
{
    const crdi_json *shown = NULL, *wired = NULL; // units and connections of the run above
    for (int i = 0; i < r->part_count; i++) {
        const crdi_report_part* p = &r->parts[i];
        if (r->part_count > 1) {
            char text[512];
            crdi_doc_format(text, sizeof text, "%s%s", p->run->reference ? "Reference: " : "",
                            p->label);
            crdi_doc_heading(d, 3, "", text);
        }
        put_facts(d, p);
        const crdi_json* units = crdi_json_get_list(p->what, "units");
        const crdi_json* connections = crdi_json_get_list(p->what, "connections");
        const bool again = same_units(units, shown);
        const bool tuned = again && !crdi_json_equal(units, shown);
        const bool wired_again = connections && wired && crdi_json_equal(connections, wired);
        if (!again) { crdi_doc_rows(d, "Units", CRDI_COLUMNS(unit_columns), units, NULL); }
        if (!again || tuned) { report_tables_put_parameters(d, units); }
        if (!wired_again) { report_tables_put_connections(d, connections); }
        if (again || wired_again) {
            crdi_doc_paragraph(d, "The same %s as above.",
                               !again        ? "connections"
                               : wired_again ? tuned ? "units and connections"
                                                     : "units, parameters and connections"
                               : tuned       ? "units"
                                             : "units and parameters");
        }
        if (units) { shown = units; }
        if (connections) { wired = connections; }
    }
}

crd_status crdi_report_what_ran(crdi_doc* d, crdi_report* r)
{
    crdi_doc_heading(d, 2, "what", "What ran");
    put_what_ran(d, r);
    const crd_status st = crdi_report_quality(r, d);
    return st < 0 ? st : crdi_report_pace(r, d);
}

// ---- texts, events -----------------------------------------------------------------------------

void crdi_report_texts(crdi_doc* d, const crdi_report* r)
{
    bool any = false;
    for (int i = 0; i < r->signal_count; i++) {
        const crdi_report_signal* s = &r->signals[i];
        if (s->kind != CRDI_KIND_TEXT) { continue; }
        if (!any) { crdi_doc_heading(d, 2, "texts", "Texts"); }
        any = true;
        for (int k = 0; k < r->part_count; k++) {
            const crdi_report_line* line = &s->lines[k];
            if (!line->there || !line->change_count) { continue; }
            char caption[512], number[32];
            crdi_doc_format(caption, sizeof caption, "%s%s%s",
                            r->part_count > 1 ? r->parts[k].label : "",
                            r->part_count > 1 ? ": " : "", s->name);
            crdi_doc_table(d, caption, "rl", "Time / s|Text");
            for (int c = 0; c < line->change_count && c < CRDI_MOST_CHANGES; c++) {
                crdi_doc_cell(d, "%s", crdi_number_text(number, line->changes[c].time, 9));
                crdi_doc_cell(d, "%s", line->changes[c].text);
            }
            crdi_doc_table_end(d);
            if (line->change_count > CRDI_MOST_CHANGES) {
                crdi_doc_paragraph(d, "The first %d of %lld changes are shown.", CRDI_MOST_CHANGES,
                                   (long long)line->change_count);
            }
        }
    }
}

static void put_events(crdi_doc* d, const crdi_report* r)
{
    static const char* const words[CRD_EVENT_KIND_COUNT] = {"Start",   "Stop",  "Warning",
                                                            "Overrun", "Error", "Mark"};
    int shown = 0, all = 0;
    for (int i = 0; i < r->part_count; i++) {
        all += r->parts[i].info->event_count;
    }
    if (!all) { return; }
    crdi_doc_heading(d, 2, "events", "Events and warnings");
    const bool several = r->part_count > 1;
    crdi_doc_table(d, "", several ? "rlll" : "rll",
                   several ? "Time / s|Kind|Text|Run" : "Time / s|Kind|Text");
    for (int i = 0; i < r->part_count; i++) {
        const crd_recording_info* info = r->parts[i].info;
        for (int k = 0; k < info->event_count && shown < CRDI_MOST_EVENTS; k++, shown++) {
            const crd_event_info* e = &info->events[k];
            char number[32];
            const bool known = (int)e->kind >= 0 && e->kind < CRD_EVENT_KIND_COUNT;
            crdi_doc_cell(d, "%s", crdi_number_text(number, e->time, 9));
            crdi_doc_cell(d, "%s", known ? words[e->kind] : "Mark");
            crdi_doc_cell(d, "%s", e->text ? e->text : "");
            if (several) { crdi_doc_cell(d, "%s", r->parts[i].label); }
        }
    }
    crdi_doc_table_end(d);
    if (shown < all) { crdi_doc_paragraph(d, "The first %d of %d events are shown.", shown, all); }
}

// ---- times and loops ---------------------------------------------------------------------------

static const char* process_text(const crdi_json* unit, char out[CRDI_CELL])
{
    const double worker = crdi_json_get_number(unit, "worker");
    if (!(worker > 0)) { return "Cardan's"; }
    snprintf(out, CRDI_CELL, "worker %.0f", worker);
    return out;
}

static const crdi_doc_column time_columns[] = {
    {CRDI_TEXT("Unit", "name")},
    {CRDI_TEXT("Kind", "kind")},
    {CRDI_NUMBER("Steps", "steps", 12)},
    {CRDI_SECONDS("Step size", "step_size")},
    {CRDI_SECONDS("Stepping", "time_step")},
    {CRDI_SECONDS("Getting", "time_get")},
    {CRDI_SECONDS("Setting", "time_set")},
    {CRDI_SECONDS("Longest step", "worst_step")},
    {.title = "Process", .make = process_text},
};

static void report_tables_put_times(crdi_doc* d, const char* caption, const crdi_json* units)
{
    crdi_doc_rows(d, caption, CRDI_COLUMNS(time_columns), units, NULL);
}

static const char* method_text(const crdi_json* loop, char out[CRDI_CELL])
{
    (void)out;
    return crdi_json_get_bool(loop, "newton", false) ? "Newton" : "fixed point";
}

static const char* converged_text(const crdi_json* loop, char out[CRDI_CELL])
{
    (void)out;
    return crdi_json_get_bool(loop, "converged", true) ? "yes" : "no";
}

static const crdi_doc_column loop_columns[] = {
    {CRDI_TEXT("Loop", "text")},
    {CRDI_NUMBER("Size", "size", 9)},
    {CRDI_NUMBER("Iterations", "iterations", 9)},
    {CRDI_NUMBER("Residual", "residual", 3)},
    {.title = "Method", .make = method_text},
    {.title = "Converged", .make = converged_text},
};

static void put_loops(crdi_doc* d, const char* caption, const crdi_json* loops)
{
    crdi_doc_rows(d, caption, CRDI_COLUMNS(loop_columns), loops, NULL);
}

// ---- couplings ---------------------------------------------------------------------------------

enum { COUPLING_ERRORS = 8 }; // the first column that is the algorithm's, not the link's

static const crdi_doc_column coupling_columns[] = {
    {.title = "Connection", .make = crdi_connection_text},
    {CRDI_TEXT("Algorithm", "algorithm")},
    {CRDI_NUMBER("k mean", "k_mean", 3)},
    {CRDI_NUMBER("k max", "k_max", 12)},
    {CRDI_NUMBER("Lost", "lost", 12)},
    {CRDI_NUMBER("Filled", "filled", 12)},
    {CRDI_NUMBER("Late", "late", 12)},
    {CRDI_NUMBER("Jumps", "jumps", 12)},
    [COUPLING_ERRORS] = {CRDI_NUMBER("C / %", "C", 4)},
    {CRDI_NUMBER("RMS", "rms", 4)},
    {CRDI_NUMBER("Worst", "worst", 4)},
    {CRDI_PERCENT("Of scale", "relative")},
    {CRDI_NUMBER("Est. error", "error_rms", 3)},
};

// Algorithms that were only computed beside the one in use.
static void put_shadows(crdi_doc* d, const crdi_json* shadows)
{
    enum { COUNT = sizeof coupling_columns / sizeof *coupling_columns };
    for (const crdi_json* shadow = crdi_json_first(shadows); shadow; shadow = shadow->next) {
        crdi_doc_cell(d, "%s", "");
        crdi_doc_cell(d, "\u21B3 %s (shadow)",
                      crdi_text_or_dash(crdi_json_get_text(shadow, "algorithm")));
        for (int k = 2; k < COUPLING_ERRORS; k++) {
            crdi_doc_cell(d, "%s", "");
        }
        crdi_doc_row(d, coupling_columns + COUPLING_ERRORS, COUNT - COUPLING_ERRORS, shadow);
    }
}

// What part of the changes of the signal its commands account for.
static void put_commands(crdi_doc* d, const crdi_json* c)
{
    char connection[CRDI_CELL], text[CRDI_CELL] = "";
    size_t n = 0;
    const crdi_json* list = crdi_json_get_list(c, "commands");
    for (const crdi_json* p = crdi_json_first(list); p && n + 100 < sizeof text; p = p->next) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.60s %.0f %%", n ? ", " : "",
                              crdi_json_get_text(p, "name"), crdi_json_get_number(p, "part"));
    }
    if (n == 0) { return; }
    crdi_doc_paragraph(d,
                       "%s: commands account for these parts of its changes: %s; believed to "
                       "%.0f %% at the end",
                       crdi_connection_text(c, connection), text, crdi_json_get_number(c, "share"));
}

static void put_couplings(crdi_doc* d, const char* caption, const crdi_json* couplings)
{
    if (crdi_json_count(couplings) == 0) { return; }
    crdi_doc_columns(d, caption, CRDI_COLUMNS(coupling_columns));
    for (const crdi_json* c = crdi_json_first(couplings); c; c = c->next) {
        crdi_doc_row(d, CRDI_COLUMNS(coupling_columns), c);
        put_shadows(d, crdi_json_get_list(c, "shadows"));
    }
    crdi_doc_table_end(d);
    for (const crdi_json* c = crdi_json_first(couplings); c; c = c->next) {
        const char* hint = crdi_json_get_text(c, "hint");
        char connection[CRDI_CELL];
        put_commands(d, c);
        if (!*hint) { continue; }
        crdi_doc_paragraph(d, "%s: %s", crdi_connection_text(c, connection), hint);
    }
}

// Sections with a table of each run that has such a list.
static const struct section {
    const char *key, *id, *title, *note;
    void (*put)(crdi_doc* d, const char* caption, const crdi_json* list);
} sections[] = {
    {"units", "times", "Where the time went", NULL, report_tables_put_times},
    {"loops", "loops", "Algebraic loops", NULL, put_loops},
    {"couplings", "couplings", "Couplings",
     "Latency k in macro steps; the errors are those of the estimate against what the signal "
     "turned out to be.",
     put_couplings},
};

static void put_section(crdi_doc* d, const crdi_report* r, const struct section* s)
{
    bool any = false;
    for (int i = 0; i < r->part_count; i++) {
        const crdi_json* list = crdi_json_get_list(r->parts[i].verdict, s->key);
        if (crdi_json_count(list) == 0) { continue; }
        if (!any) { crdi_doc_heading(d, 2, s->id, s->title); }
        if (!any && s->note) { crdi_doc_paragraph(d, "%s", s->note); }
        any = true;
        s->put(d, r->part_count > 1 ? r->parts[i].label : "", list);
    }
}

static void put_statistics(crdi_doc* d, const crdi_report* r)
{
    const bool several = r->part_count > 1;
    if (r->signal_count == 0) { return; }
    crdi_doc_heading(d, 2, "statistics", "Statistics");
    crdi_doc_table(d, "", several ? "lllrrrrr" : "llrrrrr",
                   several ? "Signal|Run|Unit|Minimum|Maximum|Mean|Last|Samples"
                           : "Signal|Unit|Minimum|Maximum|Mean|Last|Samples");
    for (int i = 0; i < r->signal_count; i++) {
        const crdi_report_signal* s = &r->signals[i];
        for (int k = 0; k < r->part_count; k++) {
            const crdi_report_line* line = &s->lines[k];
            const crdi_trace* t = &line->trace;
            const int64_t good = t->samples - t->bad;
            char x[32];
            if (!line->there || s->kind == CRDI_KIND_TEXT) { continue; }
            crdi_doc_cell_tip(d, s->name, s->info->description);
            if (several) { crdi_doc_cell(d, "%s", r->parts[k].label); }
            crdi_doc_cell(d, "%s", crdi_text_or_dash(s->info->unit));
            crdi_doc_cell(d, "%s", crdi_number_text(x, t->min, 7));
            crdi_doc_cell(d, "%s", crdi_number_text(x, t->max, 7));
            crdi_doc_cell(d, "%s",
                          crdi_number_text(x, good ? t->sum / (double)good : (double)NAN, 7));
            crdi_doc_cell(d, "%s", crdi_number_text(x, t->last, 7));
            if (t->bad) {
                crdi_doc_cell(d, "%lld, %lld not finite", (long long)t->samples, (long long)t->bad);
            } else {
                crdi_doc_cell(d, "%lld", (long long)t->samples);
            }
        }
    }
    crdi_doc_table_end(d);
    if (r->left_out) {
        crdi_doc_paragraph(d, "%d signal%s that only the reference has %s left out.", r->left_out,
                           r->left_out == 1 ? "" : "s", r->left_out == 1 ? "is" : "are");
    }
}

void crdi_report_tables(crdi_doc* d, const crdi_report* r)
{
    put_events(d, r);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        put_section(d, r, &sections[i]);
    }
    put_statistics(d, r);
}
