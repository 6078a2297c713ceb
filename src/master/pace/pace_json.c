// The account of a run on the clock as JSON, for the verdict in a recording and for reports.
#include "cardan/unit.h"
#include "master/put.h"
#include "shared/pace.h"

#include <math.h>

enum { NUMBER = 28 }; // bytes of a number at most, with what separates it

static double seconds(int64_t ns)
{
    return (double)ns / 1e9; // divided, not multiplied: prints as one would write it
}

double crdi_histogram_claim(const crd_histogram* h, double q)
{
    // One of `least` cycles lies beyond; of fewer the quantile would be the maximum by another
    // name.
    const double least = 1 / (1 - q);
    return (double)h->count >= least * (1 - 1e-9) ? seconds(crd_histogram_quantile(h, q))
                                                  : (double)NAN;
}

static void put_histogram(crd_text* t, const char* name, const crd_histogram* h)
{
    static const struct {
        const char* name;
        double q;
    } quantiles[] = {
        {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};
    const double none = NAN;
    key(t, name);
    crdi_text_add(t, "{");
    integer(t, "count", h->count);
    number(t, "mean", h->count ? seconds(h->sum) / (double)h->count : none);
    number(t, "min", h->count ? seconds(h->min) : none);
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        number(t, quantiles[i].name, crdi_histogram_claim(h, quantiles[i].q));
    }
    number(t, "max", h->count ? seconds(h->max) : none);
    key(t, "histogram");
    const char* between = "[";
    for (int i = 0; i < CRD_HISTOGRAM_BUCKETS; i++) {
        if (h->buckets[i] == 0) { continue; }
        crdi_text_add(t, "%s[", between);
        crdi_text_json_number(t, seconds(crd_histogram_edge(i)));
        crdi_text_add(t, ", %lld]", (long long)h->buckets[i]);
        between = ", ";
    }
    crdi_text_add(t, "%s]}", *between == '[' ? "[" : "");
}

static void put_overrun(crd_text* t, const crd_overrun_info* o, const char* const* names, int count)
{
    crdi_text_add(t, "{");
    integer(t, "cycle", o->cycle);
    number(t, "time", o->time);
    number(t, "late", seconds(o->late_ns));
    number(t, "busy", seconds(o->busy_ns));
    key(t, "unit");
    if (names && o->unit >= 0 && o->unit < count) {
        crdi_text_json(t, names[o->unit]);
    } else {
        crdi_text_add(t, "null");
    }
    crdi_text_add(t, "}");
}

static void put_overruns(crd_text* t, const crd_pace_report* p, const char* const* names, int count)
{
    integer(t, "overrun_count", p->overruns);
    key(t, "worst");
    if (p->overruns > 0) {
        put_overrun(t, &p->worst, names, count);
    } else {
        crdi_text_add(t, "null");
    }
    integer(t, "burst", p->burst);
    number(t, "burst_time", p->burst > 0 ? p->burst_time : (double)NAN);
    integer(t, "skipped", p->skipped);
    key(t, "overruns");
    crdi_text_add(t, "[");
    for (int i = 0; i < p->kept_count; i++) {
        crdi_text_add(t, i ? ", " : "");
        put_overrun(t, &p->kept[i], names, count);
    }
    crdi_text_add(t, "]");
}

crd_status crdi_pace_to_json(const crd_pace_report* p, const char* const* unit_names,
                             int unit_count, crd_text* out)
{
    crd_text* t = out;
    if (!p->on) {
        crdi_text_add(t, "null");
        return t->failed ? CRD_E_MEMORY : CRD_OK;
    }
    crdi_text_add(t, "{");
    boolean(t, "on", true);
    number(t, "factor", p->factor);
    number(t, "period", p->period > 0 ? p->period : (double)NAN);
    integer(t, "cycles", p->cycles);
    put_histogram(t, "lateness", &p->lateness);
    put_histogram(t, "busy", &p->busy);
    put_overruns(t, p, unit_names, unit_count);
    number(t, "moved", seconds(p->moved_ns));
    number(t, "paused", seconds(p->paused_ns));
    number(t, "drift", seconds(p->drift_ns));
    integer(t, "minor_faults", p->minor_faults);
    integer(t, "major_faults", p->major_faults);
    integer(t, "voluntary_switches", p->voluntary);
    integer(t, "involuntary_switches", p->involuntary);
    integer(t, "clock_steps", p->clock_steps);
    number(t, "clock_step", seconds(p->clock_step_ns));
    boolean(t, "fifo", p->fifo);
    number(t, "priority", p->fifo ? p->priority : (double)NAN);
    boolean(t, "locked", p->locked);
    number(t, "cpu", p->pinned ? p->cpu : (double)NAN);
    boolean(t, "awake", p->awake);
    key(t, "notes");
    crdi_text_add(t, "[");
    for (int i = 0; i < p->note_count; i++) {
        crdi_text_add(t, i ? ", " : "");
        crdi_text_json(t, p->notes[i]);
    }
    crdi_text_add(t, "]}");
    return t->failed ? CRD_E_MEMORY : CRD_OK;
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

crd_status crdi_link_to_json(const crd_link_stats* l, crd_text* out)
{
    const struct {
        const char* name;
        int64_t value;
    } counts[] = {{"in", l->in},
                  {"out", l->out},
                  {"lost", l->lost},
                  {"duplicates", l->duplicates},
                  {"reordered", l->reordered},
                  {"bad", l->bad},
                  {"late", l->late}};
    crdi_text_add(out, "{");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        integer(out, counts[i].name, counts[i].value);
    }
    number(out, "age", l->age);
    number(out, "age_mean", l->age_mean);
    number(out, "age_max", l->age_max);
    number(out, "round_trip", l->round_trip);
    number(out, "round_trip_max", l->round_trip_max);
    key(out, "state");
    crdi_text_json(out, l->state_name ? l->state_name : "");
    crdi_text_add(out, "}");
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}
