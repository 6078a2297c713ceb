// How far what inputs got in a replay is from what they got in the recorded run.
#include "shared/master_replay.h"

#include <math.h>
#include <string.h>

// What an input was told, or where nothing stands between, what came.
typedef struct course {
    const double *time, *value;
    int64_t count;
} course;

static course course_of(const crdi_exchange_link* k)
{
    return k->coupled ? (course){k->input_time, k->input, k->input_count}
                      : (course){k->arrival, k->value, k->count};
}

static const crdi_exchange_link* compare_find(const crdi_exchange* x, const char* to)
{
    for (int i = 0; i < x->link_count; i++) {
        if (strcmp(x->links[i].to, to) == 0) { return &x->links[i]; }
    }
    return NULL;
}

static double compare_size_of(const course* c, double end)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < c->count && c->time[i] <= end; i++) {
        if (!isfinite(c->value[i])) { continue; }
        sum += c->value[i] * c->value[i];
        n++;
    }
    return n ? sqrt(sum / (double)n) : 0;
}

static void compare(const course* a, const course* b, double slack, double end, crdi_deviation* d)
{
    double size = compare_size_of(a, end), sum = 0;
    if (size == 0) { size = compare_size_of(b, end); }
    for (int64_t i = 0, k = 0; i < a->count && a->time[i] <= end; i++) {
        while (k < b->count && b->time[k] < a->time[i] - slack) {
            k++;
        }
        if (k == b->count) { break; }
        if (b->time[k] > a->time[i] + slack) { continue; }
        // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits
        const bool same = memcmp(&a->value[i], &b->value[k], sizeof(double)) == 0;
        const double e = same ? 0 : fabs(b->value[k] - a->value[i]);
        d->compared++;
        sum += e * e;
        if (!(e <= d->max) && !isnan(d->max)) { // NaN is the largest, and stays it
            d->max = e;
            d->max_time = a->time[i];
        }
        if (!same && isnan(d->first) && !(e <= 0.01 * size)) { d->first = a->time[i]; }
    }
    d->rms = d->compared ? sqrt(sum / (double)d->compared) : 0;
    d->relative = d->max == 0 ? 0 : size > 0 ? d->rms / size : (double)INFINITY;
}

void crdi_replay_compare(const crdi_exchange* recorded, const crdi_exchange* replayed,
                         crdi_deviation* out)
{
    const double slack = 0.25 * recorded->tick, end = recorded->end + slack;
    for (int i = 0; i < recorded->link_count; i++) {
        const crdi_exchange_link* k = &recorded->links[i];
        const crdi_exchange_link* other = compare_find(replayed, k->to);
        out[i] = (crdi_deviation){.link = i, .max_time = NAN, .first = NAN};
        if (!other) { continue; }
        const course a = course_of(k), b = course_of(other);
        compare(&a, &b, slack, end, &out[i]);
    }
}
