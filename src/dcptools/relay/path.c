// One direction of a relay: when a packet arrives, and whether it does.
#include "dcptools/relay/relay.h"
#include "shared/base.h"

#include <math.h>

static const double most_time = 1e6, header_udp = 28, header_tcp = 44; // IPv4 and UDP, TCP, prefix
enum { MOST_REPEATS = 10 };                                            // of a stream

// SplitMix64 (Steele, Lea, Flood 2014)
static uint64_t splitmix64(uint64_t* state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
}

static double uniform(uint64_t* state) // 0 <= x < 1
{
    return (double)(splitmix64(state) >> 11) * 0x1p-53;
}

static double normal(uint64_t* state) // Box and Muller 1958
{
    const double pi = 3.14159265358979323846;
    const double a = uniform(state), b = uniform(state);
    return sqrt(-2 * log(1 - a)) * cos(2 * pi * b);
}

// ---- settings ----------------------------------------------------------------------------------

static crd_status check_trace(crd_context* ctx, const char* name, const crdi_dcp_path* p)
{
    for (int64_t i = 0; i < p->trace_count; i++) {
        const double t = p->trace_time[i], d = p->trace_delay[i];
        if (!(isfinite(t) && (i == 0 || t >= p->trace_time[i - 1]))) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "relay: %s: time %g s of row %lld of the recording, expected times "
                             "that rise",
                             name, t, (long long)i + 1);
        }
        if (!(isnan(d) || (d >= 0 && d <= most_time))) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "relay: %s: latency %g s at %g s of the recording, expected 0 to %g s",
                             name, d, t, most_time);
        }
    }
    return CRD_OK;
}

static crd_status check_cuts(crd_context* ctx, const char* name, const crdi_dcp_path* p)
{
    if (p->cut_count < 0 || p->cut_count > CRDI_DCP_CUTS_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "relay: %s: %d cuts, expected up to %d", name,
                         p->cut_count, CRDI_DCP_CUTS_MAX);
    }
    for (int i = 0; i < p->cut_count; i++) {
        const crdi_dcp_cut* c = &p->cuts[i];
        if (!(c->from >= 0 && c->from < c->to)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "relay: %s: a cut from %g s to %g s, expected an end behind its start",
                             name, c->from, c->to);
        }
    }
    return CRD_OK;
}

crd_status crdi_dcp_path_check(crd_context* ctx, const char* name, const crdi_dcp_path* p)
{
    const struct {
        const char* name;
        double value, most;
    } rows[] = {
        {"delay", p->delay, most_time},
        {"jitter", p->jitter, most_time},
        {"correlation", p->correlation, 0.999999},
        {"loss", p->loss, 1},
        {"burst", p->burst, 1},
        {"burst_length", p->burst_length, 1e9},
        {"burst_loss", p->burst_loss, 1},
        {"duplicate", p->duplicate, 1},
        {"reorder", p->reorder, 1},
        {"hold", p->hold, most_time},
        {"corrupt", p->corrupt, 1},
        {"rate", p->rate, 1e15},
        {"repeat", p->repeat, most_time},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!(rows[i].value >= 0 && rows[i].value <= rows[i].most)) {
            return crdi_fail(ctx, CRD_E_RANGE, "relay: %s: %s = %g, expected 0 to %g", name,
                             rows[i].name, rows[i].value, rows[i].most);
        }
    }
    if ((unsigned)p->distribution > CRDI_DCP_JITTER_GAMMA) {
        return crdi_fail(ctx, CRD_E_RANGE, "relay: %s: unknown distribution %d", name,
                         (int)p->distribution);
    }
    if (p->burst_length > 0 && p->burst_length < 1) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "relay: %s: bursts of %g packets, expected at least 1 in the mean", name,
                         p->burst_length);
    }
    const crd_status st = check_cuts(ctx, name, p);
    return st < 0 ? st : check_trace(ctx, name, p);
}

void crdi_dcp_path_init(crdi_dcp_path_state* s, const crdi_dcp_path* p, uint64_t seed)
{
    *s = (crdi_dcp_path_state){.path = *p, .busy = -INFINITY, .last = -INFINITY};
    crdi_dcp_path* own = &s->path;
    if (own->burst_length == 0) { own->burst_length = 1; }
    if (own->burst_loss == 0) { own->burst_loss = 1; }
    if (own->hold == 0) { own->hold = 0.01; }
    if (own->queue == 0) { own->queue = 64 << 10; }
    s->seed = splitmix64(&seed);
    s->z = normal(&seed);
}

// ---- delays ------------------------------------------------------------------------------------

// The g at which a gamma distribution of shape 2 exceeds it with probability q:
// (1 + g) exp(-g) = q, by Newton from above, where g - log(1 + g) is convex.
static double gamma_tail(double q)
{
    const double l = -log(q);
    double g = l + sqrt(2 * l);
    for (int i = 0; i < 20 && g > 0; i++) {
        const double step = (g - log1p(g) - l) * (1 + g) / g;
        g -= step;
        if (!(fabs(step) > 1e-12 * g)) { break; }
    }
    return g > 0 ? g : 0;
}

// z is standard normal, and so the correlation of successive delays is the same whatever their
// distribution is.
static double delay_of(const crdi_dcp_path* p, double z)
{
    const double root2 = 1.41421356237309504880;
    if (p->jitter == 0) { return p->delay; }
    double x = 0; // of mean 0
    switch (p->distribution) {
    case CRDI_DCP_JITTER_UNIFORM:
        x = erf(z / root2);
        break;
    case CRDI_DCP_JITTER_NORMAL:
        x = z;
        break;
    case CRDI_DCP_JITTER_GAMMA:
        x = (gamma_tail(0.5 * erfc(z / root2)) - 2) / root2;
        break;
    }
    const double d = p->delay + p->jitter * x;
    return d > 0 ? d : 0;
}

// The row that counts at `elapsed`; the recording begins again behind its last row.
static double trace_at(const crdi_dcp_path* p, double elapsed)
{
    const int64_t n = p->trace_count;
    const double length = p->trace_time[n - 1] - p->trace_time[0];
    const double period = n > 1 ? length * (double)n / (double)(n - 1) : 0;
    const double t = p->trace_time[0] + (period > 0 && elapsed > 0 ? fmod(elapsed, period) : 0);
    int64_t low = 0, high = n; // the row is in [low, high)
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (p->trace_time[middle] <= t) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return p->trace_delay[low];
}

// ---- what becomes of it ------------------------------------------------------------------------

// Gilbert (1960), Elliott (1963): a state that is good or bad, with its own part of losses.
static double part_lost(crdi_dcp_path_state* s, uint64_t* chance)
{
    const crdi_dcp_path* p = &s->path;
    const double begin = uniform(chance), end = uniform(chance);
    if (!s->bad && begin < p->burst) {
        s->bad = true;
        s->counts.bursts++;
    }
    const double part = s->bad ? p->burst_loss : p->loss;
    if (s->bad && end < 1 / p->burst_length) { s->bad = false; }
    return part;
}

// The rate: when the last byte has gone. false: no room in the queue.
static bool depart(crdi_dcp_path_state* s, bool stream, size_t length, double now, double* out)
{
    const crdi_dcp_path* p = &s->path;
    *out = now;
    if (!(p->rate > 0)) { return true; }
    const double begin = s->busy > now ? s->busy : now;
    const double bytes = (double)length + (stream ? header_tcp : header_udp);
    if (!stream && (begin - now) * p->rate + bytes > (double)p->queue) { return false; }
    *out = s->busy = begin + bytes / p->rate;
    return true;
}

// When the cut that it came in ends, s since the first packet; NaN: it came in none.
static double cut_until(const crdi_dcp_path* p, double elapsed)
{
    double until = NAN;
    for (int i = 0; i < p->cut_count; i++) {
        const crdi_dcp_cut* c = &p->cuts[i];
        if (elapsed >= c->from && elapsed < c->to && !(until >= c->to)) { until = c->to; }
    }
    return until;
}

// A stream repeats until it gets through; its peer does not learn more than that it took time.
static double stream_time(crdi_dcp_path_state* s, uint64_t* chance, double part, double time,
                          double since, double trip)
{
    const crdi_dcp_path* p = &s->path;
    const double bad = 1 - (1 - part) * (1 - p->corrupt);
    const double again = p->repeat > 0 ? p->repeat : fmax(trip, 1e-3);
    double delay = p->trace_count > 0 ? trace_at(p, time - since) : delay_of(p, s->z);
    for (int i = 0; i < MOST_REPEATS && (uniform(chance) < bad || isnan(delay)); i++) {
        s->counts.repeated++;
        time += again;
        if (p->trace_count > 0) { delay = trace_at(p, time - since); }
    }
    return time + (isnan(delay) ? 0 : delay);
}

static crdi_dcp_fate datagram_fate(crdi_dcp_path_state* s, uint64_t* chance, double part,
                                   size_t length, double now, double since)
{
    const crdi_dcp_path* p = &s->path;
    crdi_dcp_fate f = {0};
    bool lost = uniform(chance) < part;
    const bool doubled = uniform(chance) < p->duplicate;
    const bool held = uniform(chance) < p->reorder;
    f.corrupt = uniform(chance) < p->corrupt && length > 0;
    f.noise = splitmix64(chance);
    double delay[2] = {0};
    if (p->trace_count > 0) {
        delay[0] = delay[1] = trace_at(p, now - since);
        lost = lost || isnan(delay[0]);
    } else {
        const double c = p->correlation;
        delay[0] = delay_of(p, s->z);
        const double z = doubled && p->jitter > 0 ? normal(chance) : 0;
        delay[1] = delay_of(p, c * s->z + sqrt(1 - c * c) * z);
    }
    double leaves = 0;
    if (!isnan(cut_until(p, now - since))) {
        s->counts.cut++;
    } else if (lost) {
        s->counts.lost++;
    } else if (!depart(s, false, length, now, &leaves)) {
        s->counts.queue_full++;
    } else {
        f.copies = doubled ? 2 : 1;
    }
    for (int i = 0; i < f.copies; i++) {
        double t = leaves + delay[i];
        if (p->in_order) { s->last = t = t > s->last ? t : s->last; }
        f.time[i] = t + (held && i == 0 ? p->hold : 0);
    }
    if (f.copies == 0) { return f; }
    s->counts.duplicated += doubled;
    s->counts.held += held;
    s->counts.corrupted += f.corrupt;
    return f;
}

crdi_dcp_fate crdi_dcp_path_pass(crdi_dcp_path_state* s, bool stream, size_t length, double now,
                                 double since, double trip)
{
    // Every packet draws from the seed and its own number, always the same in the same order: a
    // change of one setting leaves the others as they were.
    uint64_t chance = s->seed ^ s->number++;
    chance = splitmix64(&chance);
    uint64_t spread = ~chance;
    const double part = part_lost(s, &chance);
    const double c = s->path.correlation;
    if (s->path.jitter > 0) { s->z = c * s->z + sqrt(1 - c * c) * normal(&spread); }
    if (!stream) { return datagram_fate(s, &chance, part, length, now, since); }
    double leaves = 0;
    const double until = cut_until(&s->path, now - since);
    (void)depart(s, true, length, isnan(until) ? now : since + until, &leaves);
    return (crdi_dcp_fate){.copies = 1,
                           .time = {stream_time(s, &chance, part, leaves, since, trip)}};
}
