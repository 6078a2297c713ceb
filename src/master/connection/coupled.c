// Connections with a coupling. At the end of a tick, when all outputs belong to the same time
// whatever the scheme, a sample of the source goes through the emulated channel, arrives when it is
// due, and is pushed into the element; where a step of the target begins, the element is asked for
// that time. Its estimate becomes the input of that step. Shadows get the same samples and are
// scored beside it.
#include "master/master.h"

#include <math.h>
#include <stdio.h>

enum { // which random number of a sample
    NOISE_LOSS,
    NOISE_DELAY,
    NOISE_REPEAT,
    NOISE_REPEAT_DELAY,
    NOISE_COUNT,
};

// ---- the channel -------------------------------------------------------------------------------

uint64_t crdi_scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

// In [0, 1). From the number of the sample and the purpose, not from a sequence of calls: more loss
// does not change the delay of those that arrive.
static double noise(const crdi_coupled* c, int64_t sequence, int purpose)
{
    const uint64_t at = (uint64_t)sequence * NOISE_COUNT + (uint64_t)purpose + 1;
    return (double)(crdi_scramble(c->seed + at * UINT64_C(0x9e3779b97f4a7c15)) >> 11) * 0x1p-53;
}

static bool comes_before(const crdi_flight* a, const crdi_flight* b)
{
    return a->arrival < b->arrival || (a->arrival == b->arrival && a->order < b->order);
}

static void take_off(crdi_coupled* c, crdi_flight f)
{
    if (c->flight_count == c->flight_capacity) { return; } // there is room for all that may be
    int i = c->flight_count++;
    while (i > 0 && comes_before(&f, &c->flights[(i - 1) / 2])) {
        c->flights[i] = c->flights[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    c->flights[i] = f;
}

static crdi_flight land(crdi_coupled* c)
{
    const crdi_flight first = c->flights[0], last = c->flights[--c->flight_count];
    int i = 0;
    for (int child = 1; child < c->flight_count; child = 2 * i + 1) {
        child +=
            child + 1 < c->flight_count && comes_before(&c->flights[child + 1], &c->flights[child]);
        if (!comes_before(&c->flights[child], &last)) { break; }
        c->flights[i] = c->flights[child];
        i = child;
    }
    c->flights[i] = last;
    return first;
}

static bool is_lost(crdi_coupled* c, int64_t sequence)
{
    if (c->burst_left > 0) {
        c->burst_left--;
        return true;
    }
    if (!(noise(c, sequence, NOISE_LOSS) < c->burst_chance)) { return false; }
    c->burst_left = c->channel->burst - 1;
    return true;
}

static double arrival_of(const crdi_coupled* c, const crdi_flight* f, int purpose)
{
    const double spread = 2 * noise(c, f->sequence, purpose) - 1;
    const double late = fmax(0, c->channel->delay + c->channel->jitter * spread) + c->delay;
    return f->stamp + fmax(late, c->steady);
}

void crdi_channel_send(crdi_coupled* c, crdi_flight f)
{
    if (c->channel && is_lost(c, f.sequence)) {
        c->lost++;
        return;
    }
    if (c->channel) { f.arrival = arrival_of(c, &f, NOISE_DELAY); }
    take_off(c, f);
    if (c->channel && noise(c, f.sequence, NOISE_REPEAT) < c->channel->duplicate) {
        c->repeated++;
        f.order++;
        f.arrival = arrival_of(c, &f, NOISE_REPEAT_DELAY);
        take_off(c, f);
    }
}

bool crdi_channel_next(crdi_coupled* c, double due, crdi_flight* out)
{
    const bool arrived = c->flight_count > 0 && c->flights[0].arrival <= due;
    if (arrived) { *out = land(c); }
    return arrived;
}

// ---- arrival -----------------------------------------------------------------------------------

static bool is_usable(double x) // as the element sees it
{
    return fabs(x) <= 1e250;
}

// The sample tells how good the estimate for its time was.
static void score(const crdi_coupled* c, crdi_estimator* p, double value, double since_start)
{
    const int64_t q = llround(since_start / c->interval);
    if (q < 0) { return; }
    const int64_t place = q % c->ring;
    if (p->made_for[place] == q && is_usable(value)) {
        crd_score_add(&p->score, value, p->made[place]);
        p->made_for[place] = -1;
    }
    if (q > p->newest) { p->newest = q; }
}

static void arrive(const crd_master* m, crdi_coupled* c, const crdi_flight* f)
{
    const double ahead = crdi_setpoints_ahead(c);
    if (m->exchange) { crdi_exchange_arrived(m, c, f); }
    if (c->setpoints) { crdi_setpoints_echo(c, f->sequence, f->stamp - ahead); }
    for (int i = 0; i < c->estimator_count; i++) {
        crdi_estimator* p = &c->estimators[i];
        const double stamp = (isnan(p->latency) ? f->stamp : f->arrival - p->latency) - ahead;
        score(c, p, f->value, stamp - m->plan->times.start);
        crd_coupling_push(p->element, f->value, stamp, f->sequence);
        if (p->learn) {
            crd_learn_client_step(p->learn, f->value, stamp, 1e-9 * (double)crdi_now_ns());
        }
    }
    c->arrived = c->arrived || is_usable(f->value);
    if (c->learned) { crdi_learned_arrive(m, c, f); }
    if (c->past) {
        c->past[c->past_at] = *f;
        c->past_at = (c->past_at + 1) % c->past_room;
        c->past_count += c->past_count < c->past_room;
    }
}

// A source that is reached over a network says when its output was made, and may have nothing new.
// Numbers count macro steps there. Some are left out, lost on the way or overtaken by a newer one
// in the same step: the element counts them as filled, the link what was lost.
static bool date(const crd_master* m, crdi_coupled* c, crdi_flight* f)
{
    const double made = c->source->unit->made;
    if (isnan(made)) { return c->sent == 0; } // the start
    const int64_t number = llround((made - m->plan->times.start) / c->interval);
    if (c->sent > 0 && number <= c->newest) { return false; }
    c->newest = number;
    f->sequence = number;
    f->order = 2 * number;
    f->stamp = made;
    return true;
}

static void send(const crd_master* m, crdi_coupled* c, double t)
{
    crdi_flight f = {.arrival = t,
                     .stamp = t,
                     .value = c->gain * *c->from + c->offset,
                     .sequence = c->sent,
                     .order = 2 * c->sent};
    if (c->dated && !date(m, c, &f)) { return; }
    if (c->sent++ == 0) { c->start_value = f.value; }
    if (c->drop > 0 && crdi_fault_chance(c->drop_number, f.sequence) < c->drop) {
        c->lost++;
        return;
    }
    if (!c->channel && (c->delay > 0 || c->steady > 0)) {
        f.arrival = fmax(f.arrival + c->delay, f.stamp + c->steady);
        take_off(c, f);
        return;
    }
    if (!c->channel) {
        arrive(m, c, &f);
        return;
    }
    crdi_channel_send(c, f);
}

// ---- a script instead of the channel ------------------------------------------------------------

static void note_scripted(crdi_coupled* c)
{
    const crd_script* s = c->script;
    const double value = s->values ? s->start : c->gain * *c->from + c->offset;
    if (c->sent == 0) { c->start_value = value; }
    if (c->sent_values) { c->sent_values[c->sent % c->ring] = value; }
    if (c->sent < c->copy_count) { // behind it nobody knows: they were on their way at the end
        const int copies = c->copies[c->sent];
        c->lost += copies == 0;
        c->repeated += copies > 1 ? copies - 1 : 0;
    }
    c->sent++;
}

static void play(const crd_master* m, crdi_coupled* c, double due)
{
    const crd_script* s = c->script;
    for (; c->script_next < s->count && s->samples[c->script_next].arrival <= due;
         c->script_next++) {
        const crd_script_sample* p = &s->samples[c->script_next];
        crdi_flight f = {
            .arrival = p->arrival, .stamp = p->stamp, .value = p->value, .sequence = p->sequence};
        if (!s->values) {
            if (f.sequence >= c->sent || f.sequence < c->sent - c->ring) { continue; }
            f.value = c->sent_values[f.sequence % c->ring];
        }
        arrive(m, c, &f);
    }
}

// ---- estimates ---------------------------------------------------------------------------------

static void count_latency(crdi_coupled* c)
{
    const crd_coupling_state s = crd_coupling_get_state(c->estimators[0].element);
    c->k = s.k;
    c->jump = s.jump;
    c->active = s.active;
    c->k_sum += s.k;
    c->k_count++;
    if (s.k > c->k_max) { c->k_max = s.k; }
}

// What is left of the difference to an element that was replaced.
static double fading(crdi_coupled* c, double t)
{
    const double rest = 1 - (t - c->fade_begin) / c->fade_span;
    if (!(rest > 1e-9)) { c->fade = 0; }
    return c->fade * rest;
}

// Until a sample has arrived, and at the start whatever the weights, the input is what the
// initialisation has found: the signal was always there.
static void estimate(crdi_coupled* c, int64_t n, double t)
{
    const bool known = c->arrived && n > 0;
    const bool truth = c->truth && n % c->source->ticks == 0;
    const double value = truth ? c->gain * *c->from + c->offset : (double)NAN;
    const int64_t q = n % c->every == 0 ? n / c->every : -1;
    for (int i = 0; i < c->estimator_count; i++) {
        crdi_estimator* p = &c->estimators[i];
        p->estimate = known ? crd_coupling_eval(p->element, t) : c->start_value;
        if (i == 0 && c->fade != 0) { p->estimate += fading(c, t); }
        p->error = p->estimate - value;
        if (q > p->newest) { // else the sample itself was there before
            p->made[q % c->ring] = p->estimate;
            p->made_for[q % c->ring] = q;
        }
    }
    if (c->slope) {
        c->rate = known ? crd_coupling_slope(c->estimators[0].element, t) : 0;
        if (c->fade != 0) { c->rate -= c->fade / c->fade_span; }
    }
    if (known) { count_latency(c); }
}

// All samples that are due. Where they are used at one age, one that has not come when it is its
// turn stands on the line between its neighbours, if the next one waits already.
static void receive(const crd_master* m, crdi_coupled* c, double t, double due)
{
    crdi_flight f;
    while (crdi_channel_next(c, due, &f)) {
        if (f.stamp >= c->last.stamp) { c->last = f; }
        arrive(m, c, &f);
    }
    const double turn = t - c->steady;
    if (!(c->steady > 0) || c->flight_count == 0 || c->last.arrival == 0) { return; }
    const crdi_flight *next = &c->flights[0], *last = &c->last;
    const double steps = round((turn - last->stamp) / c->interval);
    if (steps < 1 || next->stamp < turn + 0.5 * c->interval) { return; }
    const double part = (turn - last->stamp) / (next->stamp - last->stamp);
    f = (crdi_flight){.arrival = t,
                      .stamp = turn,
                      .value = last->value + part * (next->value - last->value),
                      .sequence = last->sequence + (int64_t)steps,
                      .order = last->order + 2 * (int64_t)steps};
    c->last = f;
    arrive(m, c, &f);
}

static void accept_all(crd_master* m, int64_t n, double t)
{
    const double due = t + 1e-6 * m->plan->times.tick; // times are multiples of it but for rounding
    if (m->connections.learning) { crdi_learning_watch(m, n); }
    for (int i = 0; i < m->connections.coupled_count; i++) {
        crdi_coupled* c = &m->connections.coupled[i];
        const int64_t every = c->source->ticks;
        if (c->of->observed && n > 0 && n % every == 0) {
            crdi_observe(&c->seen, t, every > 1 ? (double)every * m->plan->times.tick : m->clock.h);
        }
        if (c->setpoints && n % c->every == 0) { crdi_setpoints_take(c, t); }
        if (c->script) {
            if (n % c->every == 0) { note_scripted(c); }
            play(m, c, due);
        } else if (n % c->every == 0) {
            send(m, c, t);
        }
        receive(m, c, t, due);
        if (n % c->target->ticks == 0) { estimate(c, n, t); }
        if (c->learned) { crdi_learned_step(m, c, n, t); }
    }
}

void crdi_coupled_start(crd_master* m)
{
    for (int i = 0; i < m->connections.coupled_count; i++) {
        crdi_coupled* c = &m->connections.coupled[i];
        if (c->of->observed) { crdi_observed_begin(&c->seen); }
    }
    accept_all(m, 0, m->clock.time);
}

static crd_status begin_all(crd_master* m, crdi_rows rows, double t)
{
    (void)t;
    for (int i = rows.first; i < rows.first + rows.count; i++) {
        const crdi_coupled* c = m->connections.couplings[i];
        *c->to = c->estimators[0].estimate + c->correction + c->lead;
        if (c->slope) { *c->slope = c->rate; }
    }
    return CRD_OK;
}

const crdi_connection_kind crdi_kind_coupled = {.begin = begin_all, .accept = accept_all};

crdi_estimator crdi_coupled_swap(crd_master* m, crdi_coupled* c, const crdi_estimator* by)
{
    crdi_estimator* p = &c->estimators[0];
    const crdi_estimator old = *p;
    const double t = crd_master_time(m);
    p->element = by->element;
    p->description = by->description;
    p->learn = NULL;
    p->label = by->description->label;
    p->latency = c->dated && isnan(by->latency) ? old.latency : by->latency; // of the same time
    p->commands = by->commands;
    const int first = c->past_count < c->past_room ? 0 : c->past_at;
    for (int i = 0; i < c->past_count; i++) {
        const crdi_flight* f = &c->past[(first + i) % c->past_room];
        const double stamp = isnan(p->latency) ? f->stamp : f->arrival - p->latency;
        crd_coupling_push(p->element, f->value, stamp - crdi_setpoints_ahead(c), f->sequence);
    }
    c->fade = 0;
    if (c->arrived && m->clock.n > 0) {
        const double difference = p->estimate - crd_coupling_eval(p->element, t);
        c->fade = isfinite(difference) ? difference : 0;
        c->fade_begin = t;
        c->fade_span = (2 + (double)c->k) * c->interval;
    }
    c->truth = (c->channel || isnan(p->latency)) && !(c->script && c->script->values) &&
               crdi_setpoints_ahead(c) == 0;
    c->swapped = true;
    c->swapped_at = t;
    p->score = (crd_score){0};
    memset(p->made_for, 0xFF, (size_t)c->ring * sizeof *p->made_for);
    return old;
}

crd_status crdi_coupled_remember(crd_master* m, crdi_coupled* c)
{
    if (c->past) { return CRD_OK; }
    c->past = crdi_arena_new(&m->arena, CRDI_COUPLED_PAST, sizeof *c->past);
    if (c->past) { c->past_room = CRDI_COUPLED_PAST; }
    return c->past ? CRD_OK : CRD_E_MEMORY;
}

void crdi_coupled_clear(crdi_coupled* c)
{
    for (int i = 0; i < c->estimator_count; i++) {
        crd_learn_client_destroy(c->estimators[i].learn);
        crd_coupling_destroy(c->estimators[i].element);
        crd_element_destroy(c->estimators[i].description);
    }
}

// ---- how it went -------------------------------------------------------------------------------

static void report_estimator(const crdi_estimator* p, crd_tap_report* r)
{
    *r = (crd_tap_report){.label = p->label,
                          .metrics = {NAN, NAN, NAN, NAN, NAN},
                          .scored = p->score.count,
                          .counts = crd_coupling_get_counts(p->element),
                          .learns = p->learn != NULL,
                          .commands = crd_coupling_get_commands(p->element)};
    if (p->score.count) { r->metrics = crd_score_metrics(&p->score); }
    if (p->learn) {
        const crd_learn_client_counts n = crd_learn_client_get_counts(p->learn);
        r->networks = n.networks - n.refused;
        r->connects = n.connects;
    }
}

enum { ENOUGH = 50 }; // samples for a judgement

// C decides; where it is nothing but rounding, or the error itself says otherwise, nobody is told
// to change anything.
static void find_better(crdi_coupled* c)
{
    const crd_tap_report *own = &c->tap_reports[0], *best = own;
    for (int i = 1; i < c->estimator_count; i++) {
        const crd_tap_report* r = &c->tap_reports[i];
        if (r->metrics.C < best->metrics.C && r->metrics.rms < own->metrics.rms) { best = r; }
    }
    c->hint[0] = 0;
    if (own->scored >= ENOUGH && own->metrics.C > 1e-6 && best->metrics.C < 0.9 * own->metrics.C) {
        snprintf(c->hint, sizeof c->hint,
                 "'%s' would have been %.0f %% better than '%s': C = %.3g %% instead of %.3g %%",
                 best->label, 100 * (1 - best->metrics.C / own->metrics.C), own->label,
                 100 * best->metrics.C, 100 * own->metrics.C);
    }
}

void crdi_coupled_report(crd_master* m)
{
    for (int i = 0; i < m->connections.coupled_count; i++) {
        crdi_coupled* c = &m->connections.coupled[i];
        for (int t = 0; t < c->estimator_count; t++) {
            report_estimator(&c->estimators[t], &c->tap_reports[t]);
        }
        if (c->swapped) { // what was before it is not told apart
            snprintf(c->label, sizeof c->label, "%.60s, from t = %.10g s", c->estimators[0].label,
                     c->swapped_at);
            c->tap_reports[0].label = c->label;
        }
        find_better(c);
        m->connections.reports[i] = (crd_coupling_report){
            .from = c->of->from_name,
            .to = c->of->to_name,
            .step = c->interval,
            .sent = c->sent,
            .lost = c->lost,
            .repeated = c->repeated,
            .k_mean = c->k_count ? (double)c->k_sum / (double)c->k_count : (double)NAN,
            .k_max = (int)c->k_max,
            .taps = c->tap_reports,
            .tap_count = c->estimator_count,
            .hint = c->hint,
            .commands = c->setpoints ? c->setpoints->names : NULL,
            .command_count = c->setpoints ? c->setpoints->count : 0,
            .commands_found = c->setpoints && c->setpoints->found,
            .ahead = crdi_setpoints_ahead(c),
            .relative = (double)NAN,
            .error_rms = (double)NAN,
        };
        crdi_judge_coupled(m, c, &m->connections.reports[i]);
    }
}

static void warn(crd_master* m, const crdi_coupled* c, const char* what, int64_t count,
                 const char* then)
{
    if (count > 0) {
        crdi_log(m->log, CRD_LOG_WARNING, "coupling of %s -> %s: %s: %lld%s", c->of->from_name,
                 c->of->to_name, what, (long long)count, then);
    }
}

void crdi_coupled_warn(crd_master* m)
{
    for (int i = 0; i < m->plan->member_count; i++) {
        if (m->plan->members[i].run->crashed) { return; } // nothing may take memory now
    }
    for (int i = 0; i < m->connections.coupled_count; i++) {
        const crdi_coupled* c = &m->connections.coupled[i];
        const crd_coupling_counts n = crd_coupling_get_counts(c->estimators[0].element);
        if (c->sent > 1 && !c->arrived) {
            crdi_log(m->log, CRD_LOG_WARNING,
                     "coupling of %s -> %s: no sample arrived, the input kept its start value",
                     c->of->from_name, c->of->to_name);
        }
        warn(m, c, "samples that were not finite", n.not_finite, ", the one before was held");
        warn(m, c, "estimates beyond 1e300", n.overflows, ", the newest sample was used");
        warn(m, c, "time stamps that contradict the order of the samples", n.backwards, "");
        // One or two at the start are those that the first sample has overtaken.
        warn(m, c, "samples too late for the history", n.too_late > 2 ? n.too_late : 0,
             ", 'late' makes it longer");
        warn(m, c, "predictions that gain-limit has cut", n.limited, "");
        if (n.beyond > 0) {
            crdi_log(m->log, CRD_LOG_WARNING,
                     "coupling of %s -> %s: estimates with a latency above latency-max = %d: %lld, "
                     "compensated up to there only; the latency went up to %lld",
                     c->of->from_name, c->of->to_name, c->estimators[0].description->options.k_max,
                     (long long)n.beyond, (long long)c->k_max);
        }
    }
}
