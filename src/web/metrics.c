// The state of a run in Prometheus' text format 0.0.4.
#include "web/fields.h"
#include "web/web.h"

#include <math.h>
#include <string.h>

// ---- lines -------------------------------------------------------------------------------------

static void family(crd_text* t, const char* name, const char* type, const char* help)
{
    crdi_text_add(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metrics_put_number(crd_text* t, double x)
{
    if (isnan(x)) {
        crdi_text_add(t, "NaN");
    } else if (isinf(x)) {
        crdi_text_add(t, x > 0 ? "+Inf" : "-Inf");
    } else {
        crdi_text_json_number(t, x);
    }
}

// ` name="value"`, with \ " and newline escaped; other control characters have no business here.
static void label(crd_text* t, const char* name, const char* value, bool first)
{
    crdi_text_add(t, "%s%s=\"", first ? "{" : ",", name);
    for (const char* p = value ? value : ""; *p; p++) {
        if (*p == '\\' || *p == '"') {
            crdi_text_add(t, "\\%c", *p);
        } else if (*p == '\n') {
            crdi_text_put(t, "\\n", 2);
        } else if ((unsigned char)*p >= ' ') {
            crdi_text_put(t, p, 1);
        }
    }
    crdi_text_put(t, "\"", 1);
}

static void value(crd_text* t, double x)
{
    crdi_text_put(t, " ", 1);
    metrics_put_number(t, x);
    crdi_text_put(t, "\n", 1);
}

static void single(crd_text* t, const char* name, const char* type, const char* help, double x)
{
    family(t, name, type, help);
    crdi_text_put(t, name, strlen(name));
    value(t, x);
}

static void summary(crd_text* t, const char* name, const char* help, const crd_histogram* h)
{
    static const struct {
        const char* text;
        double q;
    } quantiles[] = {{"0.5", 0.5}, {"0.99", 0.99}, {"0.9999", 0.9999}, {"1", 1}};
    family(t, name, "summary", help);
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        const double q = quantiles[i].q;
        const double most = h->count ? (double)h->max / 1e9 : NAN;
        crdi_text_add(t, "%s{quantile=\"%s\"}", name, quantiles[i].text);
        value(t, q < 1 ? crdi_histogram_claim(h, q) : most);
    }
    crdi_text_add(t, "%s_sum", name);
    value(t, (double)h->sum / 1e9);
    crdi_text_add(t, "%s_count %lld\n", name, (long long)h->count);
}

// ---- families ----------------------------------------------------------------------------------

static void metrics_put_run(crd_text* t, const crdi_live_info* info, const crdi_live_status* s)
{
    family(t, "cardan_info", "gauge", "What runs.");
    crdi_text_add(t, "cardan_info");
    label(t, "version", crd_version(), true);
    label(t, "title", info ? info->title : "", false);
    label(t, "file", info ? info->file : "", false);
    crdi_text_add(t, "} 1\n");
    family(t, "cardan_run_state", "gauge", "1 for the state that the run is in.");
    const crdi_live_state state = s ? s->state : CRDI_LIVE_STARTING;
    for (int k = CRDI_LIVE_STARTING; k <= CRDI_LIVE_ENDED; k++) {
        crdi_text_add(t, "cardan_run_state{state=\"%s\"} %d\n",
                      crdi_web_state_name((crdi_live_state)k), k == (int)state);
    }
    if (!s) { return; }
    single(t, "cardan_time_seconds", "gauge", "Simulated time.", s->time);
    single(t, "cardan_step_seconds", "gauge", "Macro step.", s->h);
    single(t, "cardan_elapsed_seconds", "gauge", "Time on the clock since the first step.",
           (double)s->elapsed_ns / 1e9);
    single(t, "cardan_speed", "gauge", "Simulated seconds per second.", s->speed);
    single(t, "cardan_cycles_total", "counter", "Macro steps done.", (double)s->cycles);
    single(t, "cardan_rows_total", "counter", "Rows shown to watchers.", (double)s->rows);
    single(t, "cardan_warnings_total", "counter", "Warnings of the run.", (double)s->warnings);
}

static void metrics_put_pace(crd_text* t, const crd_pace_report* p)
{
    single(t, "cardan_paced", "gauge", "1 if the run keeps the clock.", p->on);
    single(t, "cardan_overruns_total", "counter",
           "Cycles that were not done when the next one was due.", (double)p->overruns);
    single(t, "cardan_skipped_total", "counter", "Cycles that were left out to be in phase again.",
           (double)p->skipped);
    summary(t, "cardan_cycle_lateness_seconds", "From its deadline to the beginning of a cycle.",
            &p->lateness);
    summary(t, "cardan_cycle_busy_seconds", "Work of a cycle.", &p->busy);
    single(t, "cardan_page_faults_major_total", "counter",
           "Major page faults of the cycle thread in the loop.", (double)p->major_faults);
    single(t, "cardan_context_switches_involuntary_total", "counter",
           "Times that the cycle thread was taken off its CPU.", (double)p->involuntary);
    single(t, "cardan_clock_steps_total", "counter", "Times that the wall clock was set.",
           (double)p->clock_steps);
}

// NaN is left out; `only` says which other things have no such number.
typedef struct column {
    const char *name, *type, *help;
    crdi_web_field of;
    bool (*only)(const void* state); // NULL: all
} column;

static bool is_remote(const void* unit)
{
    return ((const crdi_live_unit_state*)unit)->has_link;
}

static bool is_coupled(const void* link)
{
    return ((const crdi_live_link_state*)link)->k >= 0;
}

#define UNIT(member) CRDI_WEB_FIELD(crdi_live_unit_state, member)
#define UNIT_SECONDS(member) CRDI_WEB_FIELD_AS(crdi_live_unit_state, member, "", CRDI_WEB_SECONDS)
#define LINK(member) CRDI_WEB_FIELD(crdi_live_link_state, member)
#define LINK_FAULT CRDI_WEB_FIELD_AS(crdi_live_link_state, fault, "", CRDI_WEB_FAULT)
#define BOND(member) CRDI_WEB_FIELD(crdi_live_bond_state, member)
#define PORT(member) CRDI_WEB_FIELD(crdi_live_port_state, member)

static const column unit_columns[] = {
    {"cardan_unit_steps_total", "counter", "Steps of a unit.", UNIT(steps), NULL},
    {"cardan_unit_step_seconds", "gauge", "Time that the last step took.", UNIT_SECONDS(ns_last),
     NULL},
    {"cardan_unit_step_worst_seconds", "gauge", "Time that the longest step took.",
     UNIT_SECONDS(ns_worst), NULL},
    {"cardan_unit_late_total", "counter", "Cycles that went on without the unit.", UNIT(late),
     NULL},
    {"cardan_unit_failed", "gauge", "1 if the unit has failed.", UNIT(failed), NULL},
    {"cardan_unit_messages_total", "counter", "Messages with data from a remote unit.",
     UNIT(link.in), is_remote},
    {"cardan_unit_messages_lost_total", "counter", "Messages that never came.", UNIT(link.lost),
     is_remote},
    {"cardan_unit_data_age_seconds", "gauge", "Age of a remote unit's data when used.",
     UNIT(link.age), is_remote},
    {"cardan_unit_round_trip_seconds", "gauge", "Round trip of requests.", UNIT(link.round_trip),
     is_remote},
};

static const column link_columns[] = {
    {"cardan_link_age_seconds", "gauge", "Age of the sample in use.", LINK(age), NULL},
    {"cardan_link_defect", "gauge", "Defect of the last step, in the input's unit.", LINK(defect),
     NULL},
    {"cardan_link_defect_relative", "gauge", "RMS defect over the run against its scale.",
     LINK(relative), NULL},
    {"cardan_link_latency_steps", "gauge", "Latency of the coupling in macro steps.", LINK(k),
     is_coupled},
    {"cardan_link_lost_total", "counter", "Samples of the coupling that were lost.", LINK(lost),
     is_coupled},
    {"cardan_link_fault", "gauge", "1 while a fault is injected.", LINK_FAULT, NULL},
};

static const column bond_columns[] = {
    {"cardan_bond_residual_watts", "gauge", "Power that coupling adds, last step.", BOND(residual),
     NULL},
    {"cardan_bond_residual_joules", "gauge", "Energy that coupling added so far.", BOND(energy),
     NULL},
};

static const column port_columns[] = {
    {"cardan_pair_tank_joules", "gauge", "Energy in the tank of a port.", PORT(tank), NULL},
    {"cardan_pair_dumped_joules_total", "counter", "Energy thrown away.", PORT(dumped), NULL},
    {"cardan_pair_predicted_total", "counter", "Macro steps in which commands acted.",
     PORT(predicted), NULL},
};

typedef enum table { UNITS, LINKS, BONDS, PORTS } table;

static void put_labels(crd_text* t, const crdi_live_info* info, table which, int i)
{
    if (which == UNITS) {
        label(t, "unit", info->units[i].name, true);
    } else if (which == LINKS) {
        label(t, "from", info->links[i].from, true);
        label(t, "to", info->links[i].to, false);
    } else if (which == PORTS) {
        label(t, "pair", info->ports[i].pair, true);
        label(t, "output", info->ports[i].output, false);
    } else {
        label(t, "bond", info->bonds[i].name, true);
    }
    crdi_text_put(t, "}", 1);
}

// NaN: there is no such thing, so there is no line.
static void metrics_put_table(crd_text* t, const crdi_live_info* info, table which, const column* c,
                              size_t columns, const void* states, size_t size, int count)
{
    for (size_t k = 0; k < columns; k++) {
        bool any = false;
        for (int i = 0; i < count; i++) {
            const void* state = (const char*)states + (size_t)i * size;
            const double x = crdi_web_field_number(state, &c[k].of);
            if (isnan(x) || (c[k].only && !c[k].only(state))) { continue; }
            if (!any) { family(t, c[k].name, c[k].type, c[k].help); }
            any = true;
            crdi_text_put(t, c[k].name, strlen(c[k].name));
            put_labels(t, info, which, i);
            value(t, x);
        }
    }
}

void crdi_web_metrics(crd_text* t, const crdi_live_info* info, const crdi_live_status* s,
                      int64_t lost_rows, int readers)
{
    metrics_put_run(t, info, s);
    single(t, "cardan_live_rows_lost_total", "counter",
           "Rows that watchers did not take in time; the record has them.", (double)lost_rows);
    single(t, "cardan_live_readers", "gauge", "Open live pages.", readers);
    if (!info || !s) { return; }
    metrics_put_pace(t, &s->pace);
    metrics_put_table(t, info, UNITS, unit_columns, sizeof unit_columns / sizeof unit_columns[0],
                      s->units, sizeof *s->units, info->unit_count);
    metrics_put_table(t, info, LINKS, link_columns, sizeof link_columns / sizeof link_columns[0],
                      s->links, sizeof *s->links, info->link_count);
    metrics_put_table(t, info, BONDS, bond_columns, sizeof bond_columns / sizeof bond_columns[0],
                      s->bonds, sizeof *s->bonds, info->bond_count);
    metrics_put_table(t, info, PORTS, port_columns, sizeof port_columns / sizeof port_columns[0],
                      s->ports, sizeof *s->ports, info->port_count);
}
