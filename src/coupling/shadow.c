// What an element would have made of a recorded signal.
#include "coupling/coupling.h"
#include "shared/base.h"

#include <stdlib.h>
#include <string.h>

enum {
    BEHIND = 8, // samples behind the oldest in use, and ahead, whose range is no overshoot
    AHEAD = 3,
    DRAW_LOSS = 0, // which random number of a sample
    DRAW_DELAY,
    DRAW_REPEAT,
    DRAW_REPEAT_DELAY,
    DRAWS,
};

typedef struct flight {
    double arrival; // in steps
    int64_t sample;
} flight;

// The range of the signal over a window that moves along, by queues whose values descend (ascend).
typedef struct window {
    const double* y;
    int64_t count, next; // samples before `next` are in
    int64_t *low, *high; // (count) indices
    int64_t low_first, low_end, high_first, high_end;
} window;

typedef struct replay {
    crd_context* ctx;
    const crd_replay_options* o;
    const double* y;
    int64_t count;
    crd_coupling* element;
    flight* flights; // by arrival
    int64_t flight_count;
    window range;
    crd_replay result;
} replay;

crd_replay_options crd_replay_defaults(void)
{
    return (crd_replay_options){.burst = 1, .seed = 1};
}

static crd_status check_number(crd_context* ctx, const char* name, double x, bool fine,
                               const char* expected)
{
    return fine ? CRD_OK
                : crdi_fail(ctx, CRD_E_RANGE, "replay: %s = %g, expected %s", name, x, expected);
}

static crd_status shadow_check_options(crd_context* ctx, const crd_replay_options* o)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_number(ctx, "step", o->step, o->step > 0 && isfinite(1 / o->step), "> 0"));
    CRD_TRY(check_number(ctx, "delay", o->delay, o->delay >= 0 && o->delay / o->step < 1e9,
                         "0 .. 1e9 steps"));
    CRD_TRY(check_number(ctx, "jitter", o->jitter, o->jitter >= 0 && o->jitter <= o->delay,
                         "0 up to the delay: no sample arrives before it was taken"));
    CRD_TRY(check_number(ctx, "loss", o->loss, o->loss >= 0 && o->loss <= 1, "0 .. 1"));
    CRD_TRY(check_number(ctx, "burst", o->burst, o->burst >= 1, "at least 1"));
    CRD_TRY(check_number(ctx, "duplicate", o->duplicate, o->duplicate >= 0 && o->duplicate <= 1,
                         "0 .. 1"));
    CRD_TRY(check_number(ctx, "command_delay", o->command_delay,
                         o->command_delay >= 0 && isfinite(o->command_delay), "at least 0"));
    CRD_TRY(check_number(ctx, "first", (double)o->first, o->first >= 0, "at least 0"));
    if (!o->delays) { return CRD_OK; }
    CRD_TRY(
        check_number(ctx, "delay_count", (double)o->delay_count, o->delay_count > 0, "at least 1"));
    for (int64_t i = 0; i < o->delay_count; i++) {
        CRD_TRY(check_number(ctx, "delay", o->delays[i], !(o->delays[i] < 0), "at least 0"));
    }
fail:
    return st;
}

// ---- the channel -------------------------------------------------------------------------------

// In [0, 1). From the number of the sample and the purpose, not from a sequence of calls: more loss
// does not change the delay of those that arrive.
static double draw(uint64_t seed, int64_t sample, int purpose)
{
    uint64_t x =
        seed + ((uint64_t)sample * DRAWS + (uint64_t)purpose + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

static int by_arrival(const void* a, const void* b)
{
    const flight *x = a, *y = b;
    if (x->arrival != y->arrival) { return x->arrival < y->arrival ? -1 : 1; }
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static double delay_of(const crd_replay_options* o, int64_t sample, int purpose)
{
    if (o->delays) { return o->delays[sample % o->delay_count]; }
    return o->delay + o->jitter * (2 * draw(o->seed, sample, purpose) - 1);
}

static double longest_delay(const crd_replay_options* o)
{
    double longest = o->delays ? 0 : o->delay + o->jitter;
    for (int64_t i = 0; o->delays && i < o->delay_count; i++) {
        longest = fmax(longest, o->delays[i]); // not NaN
    }
    return longest;
}

static void add_flight(replay* r, int64_t sample, int purpose)
{
    const double steps = delay_of(r->o, sample, purpose) / r->o->step;
    r->flights[r->flight_count++] = (flight){(double)sample + (steps > 0 ? steps : 0), sample};
}

static void send_all(replay* r)
{
    const crd_replay_options* o = r->o;
    // with this chance the part that is lost is `loss`, whatever the length of a burst
    const double chance = o->loss > 0 ? o->loss / (o->loss + o->burst * (1 - o->loss)) : 0;
    int burst = 0;
    for (int64_t n = 0; n < r->count; n++) {
        if (!crdi_usable(r->y[n])) { continue; }
        const bool lost = o->delays ? isnan(delay_of(o, n, DRAW_DELAY))
                                    : burst == 0 && draw(o->seed, n, DRAW_LOSS) < chance;
        if (lost) { burst = o->delays ? 1 : o->burst; }
        if (burst > 0) {
            burst--;
            r->result.lost++;
            continue;
        }
        add_flight(r, n, DRAW_DELAY);
        if (draw(o->seed, n, DRAW_REPEAT) < o->duplicate) {
            r->result.repeated++;
            add_flight(r, n, DRAW_REPEAT_DELAY);
        }
    }
    if (o->jitter > 0 || o->duplicate > 0 || o->delays) {
        qsort(r->flights, (size_t)r->flight_count, sizeof *r->flights, by_arrival);
    }
}

// ---- overshoot ---------------------------------------------------------------------------------

// Samples up to `last` are in, those before `first` are out.
static void move_window(window* w, int64_t first, int64_t last)
{
    for (; w->next <= last && w->next < w->count; w->next++) {
        const double y = w->y[w->next];
        if (!crdi_usable(y)) { continue; }
        while (w->low_end > w->low_first && w->y[w->low[w->low_end - 1]] >= y) {
            w->low_end--;
        }
        w->low[w->low_end++] = w->next;
        while (w->high_end > w->high_first && w->y[w->high[w->high_end - 1]] <= y) {
            w->high_end--;
        }
        w->high[w->high_end++] = w->next;
    }
    while (w->low_first < w->low_end && w->low[w->low_first] < first) {
        w->low_first++;
    }
    while (w->high_first < w->high_end && w->high[w->high_first] < first) {
        w->high_first++;
    }
}

static void look_at(replay* r, int64_t n, double estimate, int64_t longest)
{
    crd_replay* s = &r->result;
    window* w = &r->range;
    move_window(w, n - longest - BEHIND, n + AHEAD);
    if (w->low_first < w->low_end) {
        const double low = w->y[w->low[w->low_first]], high = w->y[w->high[w->high_first]];
        const double beyond = fmax(estimate - high, low - estimate);
        if (beyond > s->overshoot) {
            s->overshoot = beyond;
            s->overshoot_at = n;
        }
    }
    const double y = r->y[n];
    if (!crdi_usable(y)) { return; }
    if (s->score.count == 0 || y < s->low) { s->low = y; }
    if (s->score.count == 0 || y > s->high) { s->high = y; }
    if (s->worst_at < 0 || fabs(estimate - y) > s->score.worst) { s->worst_at = n; }
    crd_score_add(&s->score, y, estimate);
}

// ---- the whole ---------------------------------------------------------------------------------

static crd_status prepare(replay* r, const crd_element* e)
{
    crd_status st = CRD_OK;
    crd_coupling_options opt;
    const size_t n = (size_t)r->count;
    CRD_TRY(crd_element_options(e, r->o->step, &opt));
    if (opt.commands > (r->o->commands ? r->o->command_count : 0)) {
        return crdi_fail(r->ctx, CRD_E_RANGE,
                         "%s: an element for %d commands, expected as many of them (there are %d)",
                         e->label, opt.commands, r->o->commands ? r->o->command_count : 0);
    }
    CRD_TRY(crd_coupling_create(r->ctx, &opt, &r->element));
    r->flights = crdi_new_array(r->ctx, r->o->duplicate > 0 ? 2 * n : n, sizeof *r->flights);
    r->range = (window){.y = r->y, .count = r->count};
    r->range.low = crdi_new_array(r->ctx, n, sizeof *r->range.low);
    r->range.high = crdi_new_array(r->ctx, n, sizeof *r->range.high);
    if (!r->flights || !r->range.low || !r->range.high) { st = CRD_E_MEMORY; }
fail:
    return st;
}

static void tell_commands(replay* r, int commands, int64_t n)
{
    double u[CRD_COMMANDS_MAX];
    for (int a = 0; a < commands; a++) {
        u[a] = r->o->commands[a][n];
    }
    crd_coupling_command(r->element, u, (double)n * r->o->step + r->o->command_delay);
}

static void take_weights(replay* r)
{
    crd_command_weights w;
    r->result.commands = crd_coupling_get_commands(r->element);
    if (!crd_coupling_get_weights(r->element, &w)) { return; }
    memcpy(r->result.weights, w.w, (size_t)w.count * sizeof *w.w);
    r->result.weight_count = w.count;
}

static void shadow_run(replay* r, const crd_element* e, double* estimate)
{
    const double dT = r->o->step, tolerance = 1e-6; // of the grid
    const double known = e->latency_steps >= 0 ? e->latency_steps * dT : e->latency;
    const int64_t longest =
        (int64_t)fmin(ceil(longest_delay(r->o) / dT - tolerance), (double)r->count);
    int64_t first = 0, next = 0, estimates = 0;
    double k_sum = 0;
    while (first < r->count && !crdi_usable(r->y[first])) {
        first++;
    }
    double value = first < r->count ? r->y[first] : 0;
    for (int64_t n = 0; n < r->count; n++) {
        if (e->options.commands > 0) { tell_commands(r, e->options.commands, n); }
        for (; next < r->flight_count && r->flights[next].arrival <= (double)n + tolerance;
             next++) {
            const flight* f = &r->flights[next];
            const double stamp = isnan(known) ? (double)f->sample * dT : f->arrival * dT - known;
            crd_coupling_push(r->element, r->y[f->sample], stamp, f->sample);
        }
        if (next > 0) {
            value = crd_coupling_eval(r->element, (double)n * dT);
            const int k = crd_coupling_get_state(r->element).k;
            k_sum += k;
            estimates++;
            if (k > r->result.k_max) { r->result.k_max = k; }
        }
        if (estimate) { estimate[n] = value; }
        if (n >= r->o->first) { look_at(r, n, value, longest); }
    }
    r->result.k_mean = estimates ? k_sum / (double)estimates : 0;
    r->result.counts = crd_coupling_get_counts(r->element);
    take_weights(r);
}

static crd_status check_samples(crd_context* ctx, const double* y, int64_t count)
{
    bool one = false;
    for (int64_t n = 0; n < count; n++) {
        if (!crdi_usable(y[n]) && !isnan(y[n])) {
            return crdi_fail(ctx, CRD_E_RANGE, "replay: sample %lld = %g, expected up to 1e250",
                             (long long)n, y[n]);
        }
        one |= !isnan(y[n]);
    }
    if (one) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE, "replay: %lld samples%s, expected at least 1",
                     (long long)count, count > 0 ? " and none is a number" : "");
}

crd_status crd_coupling_replay(crd_context* ctx, const crd_element* e, const crd_replay_options* o,
                               const double* y, int64_t count, double* estimate, crd_replay* out)
{
    crd_status st = CRD_OK;
    replay r = {
        .ctx = ctx, .o = o, .y = y, .count = count, .result = {.worst_at = -1, .overshoot_at = -1}};
    CRD_TRY(shadow_check_options(ctx, o));
    CRD_TRY(check_samples(ctx, y, count));
    CRD_TRY(prepare(&r, e));
    send_all(&r);
    shadow_run(&r, e, estimate);
    *out = r.result;
fail:
    crd_coupling_destroy(r.element);
    crd_free(ctx, r.flights);
    crd_free(ctx, r.range.low);
    crd_free(ctx, r.range.high);
    return st;
}
