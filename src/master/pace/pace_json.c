// The account of a run on the clock as JSON, for the verdict in a recording and for reports.
#include "cardan/unit.h"
#include "shared/base_values.h"
#include "shared/pace.h"

#include <math.h>

enum { NUMBER = 28 }; // bytes of a number at most, with what separates it

static double pace_json_seconds(int64_t ns)
{
    return (double)ns / 1e9; // divided, not multiplied: prints as one would write it
}

double crdi_histogram_claim(const crd_histogram* h, double q)
{
    // One of `least` cycles lies beyond; of fewer the quantile would be the maximum by another
    // name.
    const double least = 1 / (1 - q);
    return (double)h->count >= least * (1 - 1e-9) ? pace_json_seconds(crd_histogram_quantile(h, q))
                                                  : (double)NAN;
}

static void put_histogram(crdi_json_writer* w, const char* name, const crd_histogram* h)
{
    static const struct {
        const char* name;
        double q;
    } quantiles[] = {
        {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};
    const double none = NAN;
    crdi_json_begin_object(w, name);
    crdi_json_put(w, INT("count", h->count),
                  REAL("mean", h->count ? pace_json_seconds(h->sum) / (double)h->count : none),
                  REAL("min", h->count ? pace_json_seconds(h->min) : none));
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        crdi_json_put_number(w, quantiles[i].name, crdi_histogram_claim(h, quantiles[i].q));
    }
    crdi_json_put_number(w, "max", h->count ? pace_json_seconds(h->max) : none);
    crdi_json_begin_list(w, "histogram");
    for (int i = 0; i < CRD_HISTOGRAM_BUCKETS; i++) {
        if (h->buckets[i] == 0) { continue; }
        crdi_json_begin_list(w, NULL);
        crdi_json_put(w, REAL(NULL, pace_json_seconds(crd_histogram_edge(i))),
                      INT(NULL, h->buckets[i]));
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_end(w);
}

static void put_overrun(crdi_json_writer* w, const char* key, const crd_overrun_info* o,
                        const char* const* names, int count)
{
    const bool known = names && o->unit >= 0 && o->unit < count;
    crdi_json_begin_object(w, key);
    crdi_json_put(w, INT("cycle", o->cycle), REAL("time", o->time),
                  REAL("late", pace_json_seconds(o->late_ns)),
                  REAL("busy", pace_json_seconds(o->busy_ns)),
                  known ? TEXT("unit", names[o->unit]) : NONE("unit"));
    crdi_json_end(w);
}

static void pace_json_put_overruns(crdi_json_writer* w, const crd_pace_report* p,
                                   const char* const* names, int count)
{
    crdi_json_put_integer(w, "overrun_count", p->overruns);
    if (p->overruns > 0) {
        put_overrun(w, "worst", &p->worst, names, count);
    } else {
        crdi_json_put_null(w, "worst");
    }
    crdi_json_put(w, INT("burst", p->burst),
                  REAL("burst_time", p->burst > 0 ? p->burst_time : (double)NAN),
                  INT("skipped", p->skipped));
    crdi_json_begin_list(w, "overruns");
    for (int i = 0; i < p->kept_count; i++) {
        put_overrun(w, NULL, &p->kept[i], names, count);
    }
    crdi_json_end(w);
}

void crdi_pace_put_json(crdi_json_writer* w, const char* key, const crd_pace_report* p,
                        const char* const* unit_names, int unit_count)
{
    if (!crdi_json_begin_object_if(w, key, p->on)) { return; }
    crdi_json_put(w, BOOL("on", true), REAL("factor", p->factor),
                  REAL("period", p->period > 0 ? p->period : (double)NAN),
                  INT("cycles", p->cycles));
    put_histogram(w, "lateness", &p->lateness);
    put_histogram(w, "busy", &p->busy);
    pace_json_put_overruns(w, p, unit_names, unit_count);
    crdi_json_put(w, REAL("moved", pace_json_seconds(p->moved_ns)),
                  REAL("paused", pace_json_seconds(p->paused_ns)),
                  REAL("drift", pace_json_seconds(p->drift_ns)),
                  INT("minor_faults", p->minor_faults), INT("major_faults", p->major_faults),
                  INT("voluntary_switches", p->voluntary),
                  INT("involuntary_switches", p->involuntary), INT("clock_steps", p->clock_steps),
                  REAL("clock_step", pace_json_seconds(p->clock_step_ns)), BOOL("fifo", p->fifo),
                  REAL("priority", p->fifo ? p->priority : (double)NAN), BOOL("locked", p->locked),
                  REAL("cpu", p->pinned ? p->cpu : (double)NAN), BOOL("awake", p->awake));
    crdi_json_begin_list(w, "notes");
    for (int i = 0; i < p->note_count; i++) {
        crdi_json_put_text(w, NULL, p->notes[i]);
    }
    crdi_json_end(w);
    crdi_json_end(w);
}

// Each key has at most 32 bytes with quotes and what is between; a byte of a text takes six.
size_t crdi_pace_json_size(size_t longest_name)
{
    enum { KEY = 32 };
    const size_t histogram = 10 * (KEY + NUMBER) + CRD_HISTOGRAM_BUCKETS * (2 * (size_t)NUMBER + 4);
    const size_t overrun = 5 * (KEY + NUMBER) + 6 * longest_name;
    return 2 * histogram + (CRD_PACE_KEPT + 1) * overrun + 28 * (KEY + NUMBER) +
           CRD_PACE_NOTES * (6 * (size_t)CRD_PACE_NOTE_BYTES + 4);
}

void crdi_link_put_json(crdi_json_writer* w, const char* key, const crd_link_stats* l)
{
    if (!crdi_json_begin_object_if(w, key, l)) { return; }
    crdi_json_put(w, INT("in", l->in), INT("out", l->out), INT("lost", l->lost),
                  INT("duplicates", l->duplicates), INT("reordered", l->reordered),
                  INT("bad", l->bad), INT("foreign", l->foreign), INT("late", l->late),
                  REAL("age", l->age), REAL("age_mean", l->age_mean), REAL("age_max", l->age_max),
                  REAL("round_trip", l->round_trip), REAL("round_trip_max", l->round_trip_max),
                  TEXT("state", l->state_name));
    if (l->security) { crdi_json_put_text(w, "security", l->security); }
    crdi_json_end(w);
}
