// What pages are told, as JSON.
#include "web/fields.h"
#include "web/web.h"

#include <math.h>

#include "cardan/coupling.h"
#include "cardan/results.h"
#include "shared/base_values.h"

static void begin_message(crdi_json_writer* w, crd_text* t, const char* is)
{
    crdi_json_writer_init(w, t, CRDI_JSON_COMPACT);
    crdi_json_begin_object(w, NULL);
    crdi_json_put_text(w, "is", is);
}

// ---- hello -------------------------------------------------------------------------------------

#define INFO(member) CRDI_WEB_FIELD(crdi_live_info, member)
#define UNIT(member) CRDI_WEB_FIELD(crdi_live_unit, member)
#define SIGNAL(member) CRDI_WEB_FIELD(crdi_live_signal, member)
#define SETTING(member) CRDI_WEB_FIELD(crdi_live_setting, member)
#define LINK(member) CRDI_WEB_FIELD(crdi_live_link, member)
#define BOND(member) CRDI_WEB_FIELD(crdi_live_bond, member)
#define PORT(member) CRDI_WEB_FIELD(crdi_live_port, member)

static const crdi_web_field name_fields[] = {INFO(title), INFO(file), INFO(results), {0}};
static const crdi_web_field run_fields[] = {
    INFO(start), INFO(stop), INFO(step), INFO(factor), {0},
};
static const crdi_web_field unit_fields[] = {
    UNIT(name), UNIT(kind), UNIT(remote), UNIT(real), UNIT(step), UNIT(budget), {0},
};
static const crdi_web_field signal_fields[] = {
    SIGNAL(name),
    SIGNAL(unit),
    SIGNAL(description),
    SIGNAL(owner),
    CRDI_WEB_FIELD_AS(crdi_live_signal, type, "type", CRDI_WEB_TYPE),
    {0},
};
static const crdi_web_field setting_fields[] = {
    SETTING(name),
    SETTING(unit),
    SETTING(description),
    SETTING(owner),
    CRDI_WEB_FIELD_AS(crdi_live_setting, type, "type", CRDI_WEB_TYPE),
    SETTING(start),
    SETTING(min),
    SETTING(max),
    SETTING(input),
    {0},
};
static const crdi_web_field link_fields[] = {
    LINK(from),      LINK(to),          LINK(unit), LINK(from_unit), LINK(to_unit), LINK(coupling),
    LINK(can_fault), LINK(from_signal), {0},
};
static const crdi_web_field bond_fields[] = {BOND(name), BOND(action), BOND(flow), {0}};
static const crdi_web_field port_fields[] = {PORT(pair), PORT(output), {0}};

static void web_show_put_words(crdi_json_writer* w)
{
    crdi_json_begin_list(w, "algorithms");
    for (const char* const* name = crd_element_algorithms(); *name; name++) {
        crdi_json_put_text(w, NULL, *name);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "faults");
    for (int k = CRDI_FAULT_NONE + 1; k < CRDI_FAULT_KINDS; k++) {
        crdi_json_put_text(w, NULL, crdi_fault_name((crdi_fault_kind)k));
    }
    crdi_json_end(w);
}

#define LEVER(member) CRDI_WEB_FIELD(crd_lever_spec, member)
static const crdi_web_field lever_fields[] = {
    LEVER(name), LEVER(unit),  LEVER(min),     LEVER(max), LEVER(rate),
    LEVER(rest), LEVER(whole), LEVER(gamepad), {0},
};

static void put_seats(crdi_json_writer* w, const crdi_live_info* info)
{
    crdi_json_begin_list(w, "seats");
    for (int i = 0; i < info->seat_count; i++) {
        const crd_driver_spec* d = info->seats[i]->driver;
        crdi_json_begin_object(w, NULL);
        crdi_json_put(w, TEXT("unit", info->seats[i]->name), REAL("silence", d->silence),
                      BOOL("stop", d->stop));
        crdi_json_begin_list(w, "levers");
        for (int k = 0; k < d->lever_count; k++) {
            const crd_lever_spec* l = &d->levers[k];
            crdi_json_begin_object(w, NULL);
            crdi_web_put_fields(w, l, lever_fields);
            crdi_json_put_texts(w, "items", l->items, l->item_count);
            crdi_json_end(w);
        }
        crdi_json_end(w);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

// Who has them, and where their levers are to go.
static void put_seat_states(crdi_json_writer* w, const crdi_live_info* info)
{
    crdi_json_begin_list(w, "seats");
    for (int i = 0; i < info->seat_count; i++) {
        crdi_seat* s = info->seats[i];
        crdi_json_begin_object(w, NULL);
        crdi_json_put(w, BOOL("taken", atomic_load(&s->holder) != 0),
                      INT("lost", atomic_load(&s->lost)));
        crdi_json_begin_list(w, "targets");
        for (int k = 0; k < s->driver->lever_count; k++) {
            crdi_json_put_number(w, NULL, atomic_load(&s->goals[k].target));
        }
        crdi_json_end(w);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

void crdi_web_hello(crd_text* t, const crdi_live_info* info, bool read_only)
{
    crdi_json_writer w;
    begin_message(&w, t, "hello");
    crdi_json_put_text(&w, "version", crd_version());
    crdi_web_put_fields(&w, info, name_fields);
    crdi_web_put_fields(&w, info, run_fields);
    crdi_json_put_bool(&w, "read_only", read_only || info->read_only);
    crdi_web_put_objects(&w, "units", info->units, sizeof *info->units, info->unit_count,
                         unit_fields);
    crdi_web_put_objects(&w, "signals", info->signals, sizeof *info->signals, info->signal_count,
                         signal_fields);
    crdi_json_put_integer(&w, "signals_left_out", info->signals_left_out);
    crdi_web_put_objects(&w, "settings", info->settings, sizeof *info->settings,
                         info->setting_count, setting_fields);
    crdi_web_put_objects(&w, "links", info->links, sizeof *info->links, info->link_count,
                         link_fields);
    crdi_web_put_objects(&w, "bonds", info->bonds, sizeof *info->bonds, info->bond_count,
                         bond_fields);
    crdi_web_put_objects(&w, "ports", info->ports, sizeof *info->ports, info->port_count,
                         port_fields);
    crdi_json_put(&w, BOOL("desk", info->desk), BOOL("calibrates", info->calibrates));
    put_seats(&w, info);
    web_show_put_words(&w);
    crdi_json_end(&w);
}

// ---- before there is more to say ---------------------------------------------------------------

void crdi_web_wait(crd_text* t, const crdi_live_info* info, const crdi_live_outcome* o,
                   bool read_only)
{
    crdi_json_writer w;
    begin_message(&w, t, "wait");
    crdi_json_put_text(&w, "version", crd_version());
    crdi_web_put_fields(&w, info, name_fields);
    crdi_json_put(&w, BOOL("read_only", read_only || info->read_only),
                  TEXT("state", crdi_web_state_name(o->state)),
                  TEXT("end", crdi_web_end_name(o->end)), TEXT("message", o->message),
                  BOOL("desk", info->desk), BOOL("asks", o->asks));
    crdi_json_end(&w);
}

// ---- status ------------------------------------------------------------------------------------

const char* crdi_web_state_name(crdi_live_state state)
{
    static const char* const names[] = {
        [CRDI_LIVE_STARTING] = "starting", [CRDI_LIVE_WAITING] = "waiting",
        [CRDI_LIVE_RUNNING] = "running",   [CRDI_LIVE_PAUSED] = "paused",
        [CRDI_LIVE_STOPPING] = "stopping", [CRDI_LIVE_ENDED] = "ended",
    };
    return names[state];
}

const char* crdi_web_end_name(crd_end end)
{
    static const char* const names[] = {
        [CRD_END_NONE] = "none",     [CRD_END_STOP_TIME] = "stop time",
        [CRD_END_UNIT] = "unit",     [CRD_END_INTERRUPTED] = "interrupted",
        [CRD_END_FAILED] = "failed", [CRD_END_OVERRUN] = "overrun",
        [CRD_END_GUARD] = "guard",
    };
    return names[end];
}

static void put_quantiles(crdi_json_writer* w, const char* name, const crd_histogram* h)
{
    crdi_json_begin_object(w, name);
    crdi_json_put(
        w, REAL("p50", crdi_histogram_claim(h, 0.5)), REAL("p99", crdi_histogram_claim(h, 0.99)),
        REAL("p9999", crdi_histogram_claim(h, 0.9999)), REAL("max", (double)h->max / 1e9));
    crdi_json_end(w);
}

// Four buckets make one: a quarter of an octave is enough to look at.
static void put_buckets(crdi_json_writer* w, const char* name, const crd_histogram* h)
{
    enum { TOGETHER = CRD_HISTOGRAM_SUB / 4 };
    crdi_json_begin_list(w, name);
    for (int b = 0; b < CRD_HISTOGRAM_BUCKETS; b += TOGETHER) {
        int64_t count = 0;
        for (int i = b; i < b + TOGETHER; i++) {
            count += h->buckets[i];
        }
        if (count == 0) { continue; }
        crdi_json_begin_list(w, NULL);
        crdi_json_put(w, REAL(NULL, (double)crd_histogram_edge(b) / 1e9), INT(NULL, count));
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

#define PACE(member) CRDI_WEB_FIELD(crd_pace_report, member)
#define OVERRUN(member) CRDI_WEB_FIELD(crd_overrun_info, member)

static void web_show_put_overruns(crdi_json_writer* w, const crd_pace_report* p)
{
    enum { SHOWN = 20 };
    static const crdi_web_field fields[] = {
        OVERRUN(cycle),
        OVERRUN(time),
        CRDI_WEB_FIELD_AS(crd_overrun_info, late_ns, "late", CRDI_WEB_SECONDS),
        CRDI_WEB_FIELD_AS(crd_overrun_info, busy_ns, "busy", CRDI_WEB_SECONDS),
        OVERRUN(unit),
        {0},
    };
    const int first = p->kept_count > SHOWN ? p->kept_count - SHOWN : 0;
    crdi_web_put_objects(w, "kept", p->kept + first, sizeof *p->kept, p->kept_count - first,
                         fields);
}

static void web_show_put_pace(crdi_json_writer* w, const crd_pace_report* p)
{
    static const crdi_web_field grid[] = {
        PACE(on),
        PACE(factor),
        PACE(period),
        PACE(cycles),
        PACE(overruns),
        PACE(burst),
        PACE(burst_time),
        PACE(skipped),
        CRDI_WEB_FIELD_AS(crd_pace_report, moved_ns, "moved", CRDI_WEB_SECONDS),
        CRDI_WEB_FIELD_AS(crd_pace_report, paused_ns, "paused", CRDI_WEB_SECONDS),
        {0},
    };
    static const crdi_web_field thread[] = {
        PACE(fifo), PACE(locked), PACE(pinned), PACE(priority), PACE(cpu), {0},
    };
    static const crdi_web_field system[] = {
        PACE(minor_faults), PACE(major_faults), PACE(voluntary),
        PACE(involuntary),  PACE(clock_steps),  {0},
    };
    crdi_json_begin_object(w, "pace");
    crdi_web_put_fields(w, p, grid);
    put_quantiles(w, "lateness", &p->lateness);
    put_quantiles(w, "busy", &p->busy);
    crdi_json_begin_object(w, "histogram");
    put_buckets(w, "lateness", &p->lateness);
    put_buckets(w, "busy", &p->busy);
    crdi_json_end(w);
    crdi_web_put_fields(w, p, thread);
    crdi_json_begin_list(w, "notes");
    for (int i = 0; i < p->note_count; i++) {
        crdi_json_put_text(w, NULL, p->notes[i]);
    }
    crdi_json_end(w);
    web_show_put_overruns(w, p);
    crdi_web_put_fields(w, p, system);
    crdi_json_end(w);
}

#define STATS(member) CRDI_WEB_FIELD(crd_link_stats, member)
#define UNIT_STATE(member) CRDI_WEB_FIELD(crdi_live_unit_state, member)
#define LINK_STATE(member) CRDI_WEB_FIELD(crdi_live_link_state, member)
#define BOND_STATE(member) CRDI_WEB_FIELD(crdi_live_bond_state, member)
#define PORT_STATE(member) CRDI_WEB_FIELD(crdi_live_port_state, member)

static const crdi_web_field stats_fields[] = {
    CRDI_WEB_FIELD_AS(crd_link_stats, state_name, "state", CRDI_WEB_TEXT),
    STATS(in),
    STATS(out),
    STATS(lost),
    STATS(duplicates),
    STATS(reordered),
    STATS(bad),
    STATS(late),
    STATS(age),
    STATS(age_mean),
    STATS(age_max),
    STATS(round_trip),
    {0},
};
static const crdi_web_field unit_state_fields[] = {
    UNIT_STATE(steps),
    CRDI_WEB_FIELD_AS(crdi_live_unit_state, ns_last, "last", CRDI_WEB_SECONDS),
    CRDI_WEB_FIELD_AS(crdi_live_unit_state, ns_worst, "worst", CRDI_WEB_SECONDS),
    UNIT_STATE(late),
    UNIT_STATE(is_late),
    UNIT_STATE(failed),
    {0},
};
static const crdi_web_field link_state_fields[] = {
    LINK_STATE(value),
    LINK_STATE(defect),
    LINK_STATE(scale),
    LINK_STATE(relative),
    LINK_STATE(age),
    LINK_STATE(k),
    LINK_STATE(error),
    LINK_STATE(sent),
    LINK_STATE(lost),
    LINK_STATE(late),
    LINK_STATE(duplicates),
    LINK_STATE(jumps),
    LINK_STATE(active),
    LINK_STATE(algorithm),
    CRDI_WEB_FIELD_AS(crdi_live_link_state, fault, "fault", CRDI_WEB_FAULT),
    LINK_STATE(fault_left),
    {0},
};
static const crdi_web_field bond_state_fields[] = {
    BOND_STATE(power), BOND_STATE(residual), BOND_STATE(energy),
    BOND_STATE(work),  BOND_STATE(relative), {0},
};
static const crdi_web_field port_state_fields[] = {
    PORT_STATE(tank),
    PORT_STATE(dumped),
    PORT_STATE(predicted),
    {0},
};

static void put_unit_states(crdi_json_writer* w, const crdi_live_unit_state* units, int count)
{
    crdi_json_begin_list(w, "units");
    for (int i = 0; i < count; i++) {
        crdi_json_begin_object(w, NULL);
        crdi_web_put_fields(w, &units[i], unit_state_fields);
        if (crdi_json_begin_object_if(w, "link", units[i].has_link)) {
            crdi_web_put_fields(w, &units[i].link, stats_fields);
            crdi_json_end(w);
        }
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

#define STATUS(member) CRDI_WEB_FIELD(crdi_live_status, member)

void crdi_web_status(crd_text* t, const crdi_live_status* s, const crdi_live_info* info,
                     int64_t lost_rows, int readers)
{
    static const crdi_web_field progress[] = {
        STATUS(message),
        STATUS(guard),
        STATUS(time),
        STATUS(h),
        STATUS(cycles),
        CRDI_WEB_FIELD_AS(crdi_live_status, elapsed_ns, "elapsed", CRDI_WEB_SECONDS),
        STATUS(speed),
        STATUS(rows),
        {0},
    };
    crdi_json_writer w;
    begin_message(&w, t, "status");
    crdi_json_put(&w, INT("number", s->number), TEXT("state", crdi_web_state_name(s->state)),
                  TEXT("end", crdi_web_end_name(s->end)));
    crdi_web_put_fields(&w, s, progress);
    crdi_json_put(&w, INT("lost_rows", lost_rows), INT("warnings", s->warnings),
                  INT("readers", readers));
    web_show_put_pace(&w, &s->pace);
    put_unit_states(&w, s->units, info->unit_count);
    crdi_web_put_objects(&w, "links", s->links, sizeof *s->links, info->link_count,
                         link_state_fields);
    crdi_web_put_objects(&w, "bonds", s->bonds, sizeof *s->bonds, info->bond_count,
                         bond_state_fields);
    crdi_web_put_objects(&w, "ports", s->ports, sizeof *s->ports, info->port_count,
                         port_state_fields);
    put_seat_states(&w, info);
    crdi_json_end(&w);
}

// ---- events and replies ------------------------------------------------------------------------

void crdi_web_event(crd_text* t, const crdi_live_event* e)
{
    static const char* const kinds[CRD_EVENT_KIND_COUNT] = {
        [CRD_EVENT_START] = "start",     [CRD_EVENT_STOP] = "stop",
        [CRD_EVENT_WARNING] = "warning", [CRD_EVENT_OVERRUN] = "overrun",
        [CRD_EVENT_ERROR] = "error",     [CRD_EVENT_MARK] = "mark",
    };
    const bool known = e->kind >= 0 && e->kind < CRD_EVENT_KIND_COUNT;
    crdi_json_writer w;
    begin_message(&w, t, "event");
    crdi_json_put(&w, INT("number", e->number), REAL("time", e->time),
                  TEXT("kind", known ? kinds[e->kind] : "mark"), TEXT("text", e->text));
    crdi_json_end(&w);
}

void crdi_web_reply(crd_text* t, const crdi_web_request* r, const char* error)
{
    crdi_json_writer w;
    begin_message(&w, t, "reply");
    crdi_json_put(&w, REAL("id", r->has_id ? r->id : (double)NAN), BOOL("ok", !error));
    if (error) { crdi_json_put_text(&w, "error", error); }
    crdi_json_end(&w);
}
