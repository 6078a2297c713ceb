// What pages are told, as JSON.
#include "web/put.h"
#include "web/web.h"

#include <math.h>
#include <string.h>

#include "cardan/coupling.h"
#include "cardan/results.h"

// ---- hello -------------------------------------------------------------------------------------

static const char* type_name(crd_type type)
{
    switch (type) {
    case CRD_FLOAT64:
    case CRD_FLOAT32:
        return "real";
    case CRD_BOOLEAN:
        return "boolean";
    default:
        return "integer";
    }
}

static void put_units(crd_text* t, const crdi_live_info* info)
{
    begin(t, "units", "[");
    for (int i = 0; i < info->unit_count; i++) {
        const crdi_live_unit* u = &info->units[i];
        item(t, i);
        text(t, "name", u->name);
        text(t, "kind", u->kind);
        truth(t, "remote", u->remote);
        truth(t, "real", u->real);
        number(t, "step", u->step);
        number(t, "budget", u->budget);
        finish(t, "}");
    }
    finish(t, "]");
}

static void put_signals(crd_text* t, const crdi_live_info* info)
{
    begin(t, "signals", "[");
    for (int i = 0; i < info->signal_count; i++) {
        const crdi_live_signal* s = &info->signals[i];
        item(t, i);
        text(t, "name", s->name);
        text(t, "unit", s->unit);
        text(t, "description", s->description);
        integer(t, "owner", s->owner);
        text(t, "type", type_name(s->type));
        finish(t, "}");
    }
    finish(t, "]");
    integer(t, "signals_left_out", info->signals_left_out);
}

static void put_settings(crd_text* t, const crdi_live_info* info)
{
    begin(t, "settings", "[");
    for (int i = 0; i < info->setting_count; i++) {
        const crdi_live_setting* s = &info->settings[i];
        item(t, i);
        text(t, "name", s->name);
        text(t, "unit", s->unit);
        text(t, "description", s->description);
        integer(t, "owner", s->owner);
        text(t, "type", type_name(s->type));
        number(t, "start", s->start);
        number(t, "min", s->min);
        number(t, "max", s->max);
        truth(t, "input", s->input);
        finish(t, "}");
    }
    finish(t, "]");
}

static void put_links(crd_text* t, const crdi_live_info* info)
{
    begin(t, "links", "[");
    for (int i = 0; i < info->link_count; i++) {
        const crdi_live_link* l = &info->links[i];
        item(t, i);
        text(t, "from", l->from);
        text(t, "to", l->to);
        text(t, "unit", l->unit);
        integer(t, "from_unit", l->from_unit);
        integer(t, "to_unit", l->to_unit);
        integer(t, "coupling", l->coupling);
        truth(t, "can_fault", l->can_fault);
        integer(t, "from_signal", l->from_signal);
        finish(t, "}");
    }
    finish(t, "]");
}

static void put_words(crd_text* t, const crdi_live_info* info)
{
    begin(t, "bonds", "[");
    for (int i = 0; i < info->bond_count; i++) {
        item(t, i);
        text(t, "name", info->bonds[i].name);
        text(t, "action", info->bonds[i].action);
        text(t, "flow", info->bonds[i].flow);
        finish(t, "}");
    }
    finish(t, "]");
    begin(t, "algorithms", "[");
    const char* const* names = crd_element_algorithms();
    for (int i = 0; names[i]; i++) {
        if (i) { crdi_text_put(t, ",", 1); }
        crdi_text_json(t, names[i]);
    }
    finish(t, "]");
    begin(t, "faults", "[");
    for (int k = CRDI_FAULT_NONE + 1; k < CRDI_FAULT_KINDS; k++) {
        if (k > CRDI_FAULT_NONE + 1) { crdi_text_put(t, ",", 1); }
        crdi_text_json(t, crdi_fault_name((crdi_fault_kind)k));
    }
    finish(t, "]");
}

void crdi_web_hello(crd_text* t, const crdi_live_info* info, bool read_only)
{
    crdi_text_add(t, "{");
    text(t, "is", "hello");
    text(t, "version", crd_version());
    text(t, "title", info->title);
    text(t, "file", info->file);
    text(t, "results", info->results);
    number(t, "start", info->start);
    number(t, "stop", info->stop);
    number(t, "step", info->step);
    number(t, "factor", info->factor);
    truth(t, "read_only", read_only || info->read_only);
    put_units(t, info);
    put_signals(t, info);
    put_settings(t, info);
    put_links(t, info);
    put_words(t, info);
    finish(t, "}");
}

// ---- before there is more to say ---------------------------------------------------------------

void crdi_web_wait(crd_text* t, const crdi_live_info* info, const crdi_live_outcome* o,
                   bool read_only)
{
    crdi_text_add(t, "{");
    text(t, "is", "wait");
    text(t, "version", crd_version());
    text(t, "title", info->title);
    text(t, "file", info->file);
    text(t, "results", info->results);
    truth(t, "read_only", read_only || info->read_only);
    text(t, "state", crdi_web_state_name(o->state));
    text(t, "end", crdi_web_end_name(o->end));
    text(t, "message", o->message);
    finish(t, "}");
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

const char* crdi_web_end_name(crd_end how)
{
    static const char* const names[] = {
        [CRD_END_NONE] = "none",     [CRD_END_STOP_TIME] = "stop time",
        [CRD_END_UNIT] = "unit",     [CRD_END_INTERRUPTED] = "interrupted",
        [CRD_END_FAILED] = "failed", [CRD_END_OVERRUN] = "overrun",
    };
    return names[how];
}

static void put_quantiles(crd_text* t, const char* name, const crd_histogram* h)
{
    begin(t, name, "{");
    number(t, "p50", crdi_histogram_claim(h, 0.5));
    number(t, "p99", crdi_histogram_claim(h, 0.99));
    number(t, "p9999", crdi_histogram_claim(h, 0.9999));
    seconds(t, "max", h->max);
    finish(t, "}");
}

// Four buckets make one: a quarter of an octave is enough to look at.
static void put_buckets(crd_text* t, const char* name, const crd_histogram* h)
{
    enum { TOGETHER = CRD_HISTOGRAM_SUB / 4 };
    begin(t, name, "[");
    bool first = true;
    for (int b = 0; b < CRD_HISTOGRAM_BUCKETS; b += TOGETHER) {
        int64_t count = 0;
        for (int i = b; i < b + TOGETHER; i++) {
            count += h->buckets[i];
        }
        if (count == 0) { continue; }
        crdi_text_add(t, first ? "[" : ",[");
        crdi_text_json_number(t, (double)crd_histogram_edge(b) / 1e9);
        crdi_text_add(t, ",%lld]", (long long)count);
        first = false;
    }
    finish(t, "]");
}

static void put_kept(crd_text* t, const crd_pace_report* p)
{
    enum { SHOWN = 20 };
    begin(t, "kept", "[");
    const int first = p->kept_count > SHOWN ? p->kept_count - SHOWN : 0;
    for (int i = first; i < p->kept_count; i++) {
        const crd_overrun_info* o = &p->kept[i];
        item(t, i - first);
        integer(t, "cycle", o->cycle);
        number(t, "time", o->time);
        seconds(t, "late", o->late_ns);
        seconds(t, "busy", o->busy_ns);
        integer(t, "unit", o->unit);
        finish(t, "}");
    }
    finish(t, "]");
}

static void put_pace(crd_text* t, const crd_pace_report* p)
{
    begin(t, "pace", "{");
    truth(t, "on", p->on);
    number(t, "factor", p->factor);
    number(t, "period", p->period);
    integer(t, "cycles", p->cycles);
    integer(t, "overruns", p->overruns);
    integer(t, "burst", p->burst);
    number(t, "burst_time", p->burst_time);
    integer(t, "skipped", p->skipped);
    seconds(t, "moved", p->moved_ns);
    seconds(t, "paused", p->paused_ns);
    put_quantiles(t, "lateness", &p->lateness);
    put_quantiles(t, "busy", &p->busy);
    begin(t, "histogram", "{");
    put_buckets(t, "lateness", &p->lateness);
    put_buckets(t, "busy", &p->busy);
    finish(t, "}");
    truth(t, "fifo", p->fifo);
    truth(t, "locked", p->locked);
    truth(t, "pinned", p->pinned);
    integer(t, "priority", p->priority);
    integer(t, "cpu", p->cpu);
    begin(t, "notes", "[");
    for (int i = 0; i < p->note_count; i++) {
        if (i) { crdi_text_put(t, ",", 1); }
        crdi_text_json(t, p->notes[i]);
    }
    finish(t, "]");
    put_kept(t, p);
    integer(t, "minor_faults", p->minor_faults);
    integer(t, "major_faults", p->major_faults);
    integer(t, "voluntary", p->voluntary);
    integer(t, "involuntary", p->involuntary);
    integer(t, "clock_steps", p->clock_steps);
    finish(t, "}");
}

static void put_link_stats(crd_text* t, const crd_link_stats* l)
{
    begin(t, "link", "{");
    text(t, "state", l->state_name);
    integer(t, "in", l->in);
    integer(t, "out", l->out);
    integer(t, "lost", l->lost);
    integer(t, "duplicates", l->duplicates);
    integer(t, "reordered", l->reordered);
    integer(t, "bad", l->bad);
    integer(t, "late", l->late);
    number(t, "age", l->age);
    number(t, "age_mean", l->age_mean);
    number(t, "age_max", l->age_max);
    number(t, "round_trip", l->round_trip);
    finish(t, "}");
}

static void put_unit_state(crd_text* t, const crdi_live_unit_state* u)
{
    integer(t, "steps", u->steps);
    seconds(t, "last", u->ns_last);
    seconds(t, "worst", u->ns_worst);
    integer(t, "late", u->late);
    truth(t, "is_late", u->is_late);
    truth(t, "failed", u->failed);
    if (u->has_link) {
        put_link_stats(t, &u->link);
    } else {
        begin(t, "link", "null");
    }
}

static void put_link_state(crd_text* t, const crdi_live_link_state* l)
{
    number(t, "value", l->value);
    number(t, "defect", l->defect);
    number(t, "scale", l->scale);
    number(t, "relative", l->relative);
    number(t, "age", l->age);
    integer(t, "k", l->k);
    number(t, "error", l->error);
    integer(t, "sent", l->sent);
    integer(t, "lost", l->lost);
    integer(t, "late", l->late);
    integer(t, "duplicates", l->duplicates);
    integer(t, "jumps", l->jumps);
    integer(t, "active", l->active);
    text(t, "algorithm", l->algorithm);
    text(t, "fault",
         l->fault == CRDI_FAULT_NONE ? "none" : crdi_fault_name((crdi_fault_kind)l->fault));
    number(t, "fault_left", l->fault_left);
}

static void put_states(crd_text* t, const crdi_live_status* s, const crdi_live_info* info)
{
    begin(t, "units", "[");
    for (int i = 0; i < info->unit_count; i++) {
        item(t, i);
        put_unit_state(t, &s->units[i]);
        finish(t, "}");
    }
    finish(t, "]");
    begin(t, "links", "[");
    for (int i = 0; i < info->link_count; i++) {
        item(t, i);
        put_link_state(t, &s->links[i]);
        finish(t, "}");
    }
    finish(t, "]");
    begin(t, "bonds", "[");
    for (int i = 0; i < info->bond_count; i++) {
        const crdi_live_bond_state* b = &s->bonds[i];
        item(t, i);
        number(t, "power", b->power);
        number(t, "residual", b->residual);
        number(t, "energy", b->energy);
        number(t, "work", b->work);
        number(t, "relative", b->relative);
        finish(t, "}");
    }
    finish(t, "]");
}

void crdi_web_status(crd_text* t, const crdi_live_status* s, const crdi_live_info* info,
                     int64_t lost_rows, int readers)
{
    crdi_text_add(t, "{");
    text(t, "is", "status");
    integer(t, "number", s->number);
    text(t, "state", crdi_web_state_name(s->state));
    text(t, "end", crdi_web_end_name(s->end));
    text(t, "message", s->message);
    number(t, "time", s->time);
    number(t, "h", s->h);
    integer(t, "cycles", s->cycles);
    seconds(t, "elapsed", s->elapsed_ns);
    number(t, "speed", s->speed);
    integer(t, "rows", s->rows);
    integer(t, "lost_rows", lost_rows);
    integer(t, "warnings", s->warnings);
    integer(t, "readers", readers);
    put_pace(t, &s->pace);
    put_states(t, s, info);
    finish(t, "}");
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
    crdi_text_add(t, "{");
    text(t, "is", "event");
    integer(t, "number", e->number);
    number(t, "time", e->time);
    text(t, "kind", known ? kinds[e->kind] : "mark");
    text(t, "text", e->text);
    finish(t, "}");
}

void crdi_web_reply(crd_text* t, const crdi_web_request* r, const char* error)
{
    crdi_text_add(t, "{");
    text(t, "is", "reply");
    number(t, "id", r->has_id ? r->id : NAN);
    truth(t, "ok", !error);
    if (error) { text(t, "error", error); }
    finish(t, "}");
}
