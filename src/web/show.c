// What pages are told, as JSON.
#include "web/web.h"

#include <math.h>
#include <string.h>

#include "cardan/coupling.h"
#include "cardan/results.h"

static crdi_json_writer begin_message(crd_text* t, const char* is)
{
    crdi_json_writer w;
    crdi_json_writer_init(&w, t, CRDI_JSON_COMPACT);
    crdi_json_begin_object(&w, NULL);
    crdi_json_put_text(&w, "is", is);
    return w;
}

static void put_seconds(crdi_json_writer* w, const char* key, int64_t ns)
{
    crdi_json_put_number(w, key, (double)ns / 1e9);
}

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

static void put_units(crdi_json_writer* w, const crdi_live_info* info)
{
    crdi_json_begin_list(w, "units");
    for (int i = 0; i < info->unit_count; i++) {
        const crdi_live_unit* u = &info->units[i];
        crdi_json_begin_object(w, NULL);
        crdi_json_put_text(w, "name", u->name);
        crdi_json_put_text(w, "kind", u->kind);
        crdi_json_put_bool(w, "remote", u->remote);
        crdi_json_put_bool(w, "real", u->real);
        crdi_json_put_number(w, "step", u->step);
        crdi_json_put_number(w, "budget", u->budget);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

static void put_signals(crdi_json_writer* w, const crdi_live_info* info)
{
    crdi_json_begin_list(w, "signals");
    for (int i = 0; i < info->signal_count; i++) {
        const crdi_live_signal* s = &info->signals[i];
        crdi_json_begin_object(w, NULL);
        crdi_json_put_text(w, "name", s->name);
        crdi_json_put_text(w, "unit", s->unit);
        crdi_json_put_text(w, "description", s->description);
        crdi_json_put_integer(w, "owner", s->owner);
        crdi_json_put_text(w, "type", type_name(s->type));
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_put_integer(w, "signals_left_out", info->signals_left_out);
}

static void put_settings(crdi_json_writer* w, const crdi_live_info* info)
{
    crdi_json_begin_list(w, "settings");
    for (int i = 0; i < info->setting_count; i++) {
        const crdi_live_setting* s = &info->settings[i];
        crdi_json_begin_object(w, NULL);
        crdi_json_put_text(w, "name", s->name);
        crdi_json_put_text(w, "unit", s->unit);
        crdi_json_put_text(w, "description", s->description);
        crdi_json_put_integer(w, "owner", s->owner);
        crdi_json_put_text(w, "type", type_name(s->type));
        crdi_json_put_number(w, "start", s->start);
        crdi_json_put_number(w, "min", s->min);
        crdi_json_put_number(w, "max", s->max);
        crdi_json_put_bool(w, "input", s->input);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

static void put_links(crdi_json_writer* w, const crdi_live_info* info)
{
    crdi_json_begin_list(w, "links");
    for (int i = 0; i < info->link_count; i++) {
        const crdi_live_link* l = &info->links[i];
        crdi_json_begin_object(w, NULL);
        crdi_json_put_text(w, "from", l->from);
        crdi_json_put_text(w, "to", l->to);
        crdi_json_put_text(w, "unit", l->unit);
        crdi_json_put_integer(w, "from_unit", l->from_unit);
        crdi_json_put_integer(w, "to_unit", l->to_unit);
        crdi_json_put_integer(w, "coupling", l->coupling);
        crdi_json_put_bool(w, "can_fault", l->can_fault);
        crdi_json_put_integer(w, "from_signal", l->from_signal);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

static void put_words(crdi_json_writer* w, const crdi_live_info* info)
{
    crdi_json_begin_list(w, "bonds");
    for (int i = 0; i < info->bond_count; i++) {
        crdi_json_begin_object(w, NULL);
        crdi_json_put_text(w, "name", info->bonds[i].name);
        crdi_json_put_text(w, "action", info->bonds[i].action);
        crdi_json_put_text(w, "flow", info->bonds[i].flow);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "algorithms");
    const char* const* names = crd_element_algorithms();
    for (int i = 0; names[i]; i++) {
        crdi_json_put_text(w, NULL, names[i]);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "faults");
    for (int k = CRDI_FAULT_NONE + 1; k < CRDI_FAULT_KINDS; k++) {
        crdi_json_put_text(w, NULL, crdi_fault_name((crdi_fault_kind)k));
    }
    crdi_json_end(w);
}

void crdi_web_hello(crd_text* t, const crdi_live_info* info, bool read_only)
{
    crdi_json_writer message = begin_message(t, "hello"), *w = &message;
    crdi_json_put_text(w, "version", crd_version());
    crdi_json_put_text(w, "title", info->title);
    crdi_json_put_text(w, "file", info->file);
    crdi_json_put_text(w, "results", info->results);
    crdi_json_put_number(w, "start", info->start);
    crdi_json_put_number(w, "stop", info->stop);
    crdi_json_put_number(w, "step", info->step);
    crdi_json_put_number(w, "factor", info->factor);
    crdi_json_put_bool(w, "read_only", read_only || info->read_only);
    put_units(w, info);
    put_signals(w, info);
    put_settings(w, info);
    put_links(w, info);
    put_words(w, info);
    crdi_json_end(w);
}

// ---- before there is more to say ---------------------------------------------------------------

void crdi_web_wait(crd_text* t, const crdi_live_info* info, const crdi_live_outcome* o,
                   bool read_only)
{
    crdi_json_writer message = begin_message(t, "wait"), *w = &message;
    crdi_json_put_text(w, "version", crd_version());
    crdi_json_put_text(w, "title", info->title);
    crdi_json_put_text(w, "file", info->file);
    crdi_json_put_text(w, "results", info->results);
    crdi_json_put_bool(w, "read_only", read_only || info->read_only);
    crdi_json_put_text(w, "state", crdi_web_state_name(o->state));
    crdi_json_put_text(w, "end", crdi_web_end_name(o->end));
    crdi_json_put_text(w, "message", o->message);
    crdi_json_end(w);
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

static void put_quantiles(crdi_json_writer* w, const char* name, const crd_histogram* h)
{
    crdi_json_begin_object(w, name);
    crdi_json_put_number(w, "p50", crdi_histogram_claim(h, 0.5));
    crdi_json_put_number(w, "p99", crdi_histogram_claim(h, 0.99));
    crdi_json_put_number(w, "p9999", crdi_histogram_claim(h, 0.9999));
    put_seconds(w, "max", h->max);
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
        crdi_json_put_number(w, NULL, (double)crd_histogram_edge(b) / 1e9);
        crdi_json_put_integer(w, NULL, count);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

static void put_kept(crdi_json_writer* w, const crd_pace_report* p)
{
    enum { SHOWN = 20 };
    crdi_json_begin_list(w, "kept");
    const int first = p->kept_count > SHOWN ? p->kept_count - SHOWN : 0;
    for (int i = first; i < p->kept_count; i++) {
        const crd_overrun_info* o = &p->kept[i];
        crdi_json_begin_object(w, NULL);
        crdi_json_put_integer(w, "cycle", o->cycle);
        crdi_json_put_number(w, "time", o->time);
        put_seconds(w, "late", o->late_ns);
        put_seconds(w, "busy", o->busy_ns);
        crdi_json_put_integer(w, "unit", o->unit);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

static void put_pace(crdi_json_writer* w, const crd_pace_report* p)
{
    crdi_json_begin_object(w, "pace");
    crdi_json_put_bool(w, "on", p->on);
    crdi_json_put_number(w, "factor", p->factor);
    crdi_json_put_number(w, "period", p->period);
    crdi_json_put_integer(w, "cycles", p->cycles);
    crdi_json_put_integer(w, "overruns", p->overruns);
    crdi_json_put_integer(w, "burst", p->burst);
    crdi_json_put_number(w, "burst_time", p->burst_time);
    crdi_json_put_integer(w, "skipped", p->skipped);
    put_seconds(w, "moved", p->moved_ns);
    put_seconds(w, "paused", p->paused_ns);
    put_quantiles(w, "lateness", &p->lateness);
    put_quantiles(w, "busy", &p->busy);
    crdi_json_begin_object(w, "histogram");
    put_buckets(w, "lateness", &p->lateness);
    put_buckets(w, "busy", &p->busy);
    crdi_json_end(w);
    crdi_json_put_bool(w, "fifo", p->fifo);
    crdi_json_put_bool(w, "locked", p->locked);
    crdi_json_put_bool(w, "pinned", p->pinned);
    crdi_json_put_integer(w, "priority", p->priority);
    crdi_json_put_integer(w, "cpu", p->cpu);
    crdi_json_begin_list(w, "notes");
    for (int i = 0; i < p->note_count; i++) {
        crdi_json_put_text(w, NULL, p->notes[i]);
    }
    crdi_json_end(w);
    put_kept(w, p);
    crdi_json_put_integer(w, "minor_faults", p->minor_faults);
    crdi_json_put_integer(w, "major_faults", p->major_faults);
    crdi_json_put_integer(w, "voluntary", p->voluntary);
    crdi_json_put_integer(w, "involuntary", p->involuntary);
    crdi_json_put_integer(w, "clock_steps", p->clock_steps);
    crdi_json_end(w);
}

static void put_link_stats(crdi_json_writer* w, const crd_link_stats* l)
{
    crdi_json_begin_object(w, "link");
    crdi_json_put_text(w, "state", l->state_name);
    crdi_json_put_integer(w, "in", l->in);
    crdi_json_put_integer(w, "out", l->out);
    crdi_json_put_integer(w, "lost", l->lost);
    crdi_json_put_integer(w, "duplicates", l->duplicates);
    crdi_json_put_integer(w, "reordered", l->reordered);
    crdi_json_put_integer(w, "bad", l->bad);
    crdi_json_put_integer(w, "late", l->late);
    crdi_json_put_number(w, "age", l->age);
    crdi_json_put_number(w, "age_mean", l->age_mean);
    crdi_json_put_number(w, "age_max", l->age_max);
    crdi_json_put_number(w, "round_trip", l->round_trip);
    crdi_json_end(w);
}

static void put_unit_state(crdi_json_writer* w, const crdi_live_unit_state* u)
{
    crdi_json_put_integer(w, "steps", u->steps);
    put_seconds(w, "last", u->ns_last);
    put_seconds(w, "worst", u->ns_worst);
    crdi_json_put_integer(w, "late", u->late);
    crdi_json_put_bool(w, "is_late", u->is_late);
    crdi_json_put_bool(w, "failed", u->failed);
    if (u->has_link) {
        put_link_stats(w, &u->link);
    } else {
        crdi_json_put_null(w, "link");
    }
}

static void put_link_state(crdi_json_writer* w, const crdi_live_link_state* l)
{
    crdi_json_put_number(w, "value", l->value);
    crdi_json_put_number(w, "defect", l->defect);
    crdi_json_put_number(w, "scale", l->scale);
    crdi_json_put_number(w, "relative", l->relative);
    crdi_json_put_number(w, "age", l->age);
    crdi_json_put_integer(w, "k", l->k);
    crdi_json_put_number(w, "error", l->error);
    crdi_json_put_integer(w, "sent", l->sent);
    crdi_json_put_integer(w, "lost", l->lost);
    crdi_json_put_integer(w, "late", l->late);
    crdi_json_put_integer(w, "duplicates", l->duplicates);
    crdi_json_put_integer(w, "jumps", l->jumps);
    crdi_json_put_integer(w, "active", l->active);
    crdi_json_put_text(w, "algorithm", l->algorithm);
    crdi_json_put_text(w, "fault",
                       l->fault == CRDI_FAULT_NONE ? "none"
                                                   : crdi_fault_name((crdi_fault_kind)l->fault));
    crdi_json_put_number(w, "fault_left", l->fault_left);
}

static void put_states(crdi_json_writer* w, const crdi_live_status* s, const crdi_live_info* info)
{
    crdi_json_begin_list(w, "units");
    for (int i = 0; i < info->unit_count; i++) {
        crdi_json_begin_object(w, NULL);
        put_unit_state(w, &s->units[i]);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "links");
    for (int i = 0; i < info->link_count; i++) {
        crdi_json_begin_object(w, NULL);
        put_link_state(w, &s->links[i]);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "bonds");
    for (int i = 0; i < info->bond_count; i++) {
        const crdi_live_bond_state* b = &s->bonds[i];
        crdi_json_begin_object(w, NULL);
        crdi_json_put_number(w, "power", b->power);
        crdi_json_put_number(w, "residual", b->residual);
        crdi_json_put_number(w, "energy", b->energy);
        crdi_json_put_number(w, "work", b->work);
        crdi_json_put_number(w, "relative", b->relative);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

void crdi_web_status(crd_text* t, const crdi_live_status* s, const crdi_live_info* info,
                     int64_t lost_rows, int readers)
{
    crdi_json_writer message = begin_message(t, "status"), *w = &message;
    crdi_json_put_integer(w, "number", s->number);
    crdi_json_put_text(w, "state", crdi_web_state_name(s->state));
    crdi_json_put_text(w, "end", crdi_web_end_name(s->end));
    crdi_json_put_text(w, "message", s->message);
    crdi_json_put_number(w, "time", s->time);
    crdi_json_put_number(w, "h", s->h);
    crdi_json_put_integer(w, "cycles", s->cycles);
    put_seconds(w, "elapsed", s->elapsed_ns);
    crdi_json_put_number(w, "speed", s->speed);
    crdi_json_put_integer(w, "rows", s->rows);
    crdi_json_put_integer(w, "lost_rows", lost_rows);
    crdi_json_put_integer(w, "warnings", s->warnings);
    crdi_json_put_integer(w, "readers", readers);
    put_pace(w, &s->pace);
    put_states(w, s, info);
    crdi_json_end(w);
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
    crdi_json_writer message = begin_message(t, "event"), *w = &message;
    crdi_json_put_integer(w, "number", e->number);
    crdi_json_put_number(w, "time", e->time);
    crdi_json_put_text(w, "kind", known ? kinds[e->kind] : "mark");
    crdi_json_put_text(w, "text", e->text);
    crdi_json_end(w);
}

void crdi_web_reply(crd_text* t, const crdi_web_request* r, const char* error)
{
    crdi_json_writer message = begin_message(t, "reply"), *w = &message;
    crdi_json_put_number(w, "id", r->has_id ? r->id : NAN);
    crdi_json_put_bool(w, "ok", !error);
    if (error) { crdi_json_put_text(w, "error", error); }
    crdi_json_end(w);
}
