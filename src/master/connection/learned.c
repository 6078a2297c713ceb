// Corrections of late signals that were learned in earlier runs of this cycle (run.learned), or are
// being learned in this one (a pass). They are added to the estimates, within the limits of the
// inputs. A run that is not the one that was learned is noticed: before it begins by the lines that
// describe cycle and link, in it by the latency, by what drives it, and by what is sent. Then the
// corrections fade, and it is said at the end; nothing of it allocates or formats in a step.
#include "master/master.h"
#include "shared/board.h"
#include "shared/master_cycle.h"
#include "shared/unit.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    FADE = 20,     // samples until corrections that are not valid any more are gone
    MEMORY = 50,   // samples that means look back
    ELSEWHERE = 5, // samples by which a signal may come earlier or later than when it was learned
};
static const double strange_sent = 0.1;   // of the range, RMS
static const double strange_drive = 0.01; // of the range

typedef enum crdi_doubt {
    DOUBT_NONE,
    DOUBT_LATENCY, // other than learned
    DOUBT_DRIVEN,  // what drives the cycle is another
    DOUBT_SENT,    // signals are not those of the cycle
    DOUBT_ELEMENT, // one was replaced
} crdi_doubt;

/// One signal.
typedef struct crdi_learned {
    int index;                        // of the cycle's signals
    const crdi_repeat_signal* signal; // of the file, or of the pass
    const double* correction;         // (count) NULL: none
    crdi_repeat_limits limits;
    double wish;              // run: correction of this sample, before limits
    double value, value_time; // run: what the input got last, NaN
    double latency, strange;  // run: means, samples; square of the range
    int64_t limited;          // run
    double* received;         // run: (count) what the input got; NULL: in the pass
    double missed;            // run: sum of squares of sent - received ...
    int64_t compared;         // run: ... over so many samples
} crdi_learned;

typedef struct crdi_driven {
    const double* from;
    crdi_repeat_series* series;
} crdi_driven;

struct crdi_learning {
    crdi_repeat file;       // what was learned
    crdi_repeat* cycle;     // that, or what is being learned
    crdi_repeat_pass* pass; // NULL: nobody learns
    crdi_driven* driven;
    int driven_count;
    int64_t every;
    double weight;    // run: of corrections
    double now;       // run: s
    crdi_doubt doubt; // run: why they are not used any more ...
    const char* doubt_of;
    double doubt_time, is, was;
};
typedef struct crdi_learning crdi_learning;

// ---- what the cycle is -------------------------------------------------------------------------

typedef struct lines {
    crd_arena* arena;
    const char** line;
    size_t count, room;
    bool failed;
} lines;

static void add_line(crd_context* ctx, lines* l, const crd_text* text)
{
    char* copy = text->failed ? NULL : crdi_arena_text(l->arena, text->data, text->length);
    const char** grown = crdi_grow(ctx, (void*)l->line, &l->room, l->count + 1, sizeof *grown);
    if (grown) { l->line = grown; }
    if (!copy || !grown) {
        l->failed = true;
        return;
    }
    l->line[l->count++] = copy;
}

static crd_status describe_unit(crd_master* m, const crd_unit_spec* u, crd_text* t)
{
    const char* hash = "";
    const crd_status st = u->path ? crdi_record_hash(m, u->path, &hash) : CRD_OK;
    if (st < 0) { return st; }
    crdi_text_add(t, "unit %s: kind %d, file %.16s, step %.9g", u->name, (int)u->source,
                  *hash ? hash : "none", u->step);
    if (u->time_offset != 0 || u->repeat) {
        crdi_text_add(t, ", offset %.9g%s", u->time_offset, u->repeat ? ", repeated" : "");
    }
    for (int i = 0; i < u->signal_count; i++) {
        const crd_signal_spec* s = &u->signals[i];
        crdi_text_add(t, ", %s %d %.9g %.9g %.9g %.9g %.9g %.9g %.9g", s->name, (int)s->shape,
                      s->offset, s->amplitude, s->start, s->duration, s->frequency, s->frequency2,
                      s->phase);
        for (int k = 0; k < s->table_count; k++) {
            crdi_text_add(t, " %.9g:%.9g", s->times[k], s->values[k]);
        }
    }
    for (int i = 0; i < u->parameter_count; i++) {
        crdi_text_add(t, ", %s = %s", u->parameters[i].variable, u->parameters[i].text);
    }
    return CRD_OK;
}

static void describe_connection(const crd_system* s, const crd_connection_spec* k, crd_text* t)
{
    crdi_text_add(t, "connection %s.%s -> %s.%s: gain %.9g, offset %.9g, predict %s",
                  s->units[k->from_unit].name, k->from, s->units[k->to_unit].name, k->to, k->gain,
                  k->offset, crd_prediction_name(k->predict));
}

static void describe_link(const crdi_coupled* c, crd_text* t)
{
    const crd_coupling_spec* s = c->of->spec->coupling;
    crdi_text_add(t, "link %s -> %s: every %.9g s, element ", c->of->from_name, c->of->to_name,
                  c->interval);
    for (const char* x = s->element; *x; x++) {
        if (!isspace((unsigned char)*x)) { crdi_text_put(t, x, 1); }
    }
    if (c->channel) {
        crdi_text_add(t, ", delay %.9g s, jitter %.9g s, loss %.9g, burst %d, duplicate %.9g",
                      c->channel->delay, c->channel->jitter, c->channel->loss, c->channel->burst,
                      c->channel->duplicate);
    } else {
        crdi_text_add(t, ", %s", c->dated ? "a bench that dates its outputs" : "no channel");
    }
}

static crd_status take_lines(lines* l, const char* const** out, int* count)
{
    const char** copy = crdi_arena_new(l->arena, l->count, sizeof *copy);
    if (l->failed || !copy) { return CRD_E_MEMORY; }
    if (l->count) { memcpy((void*)copy, (const void*)l->line, l->count * sizeof *copy); }
    *out = copy;
    *count = (int)l->count;
    l->count = 0;
    return CRD_OK;
}

// Lines by which a run is recognised: what takes part and with what values; what is late and how.
// Seeds of emulated links are left out: noise is not learned.
static crd_status describe(crd_master* m, crdi_repeat* c, crdi_coupled* const* of, int count)
{
    const crd_system* s = m->plan->sys;
    const crdi_times* times = &m->plan->times;
    crd_status st = CRD_OK;
    lines l = {.arena = &c->arena};
    crd_text t;
    crd_text_init(&t, m->ctx);
    crdi_text_add(&t, "run: %.9g s to %.9g s, step %.9g s, scheme %d", times->start, times->stop,
                  times->tick, (int)s->run.scheme);
    add_line(m->ctx, &l, &t);
    for (int i = 0; i < s->unit_count + s->connection_count; i++) {
        t.length = 0;
        if (i < s->unit_count) {
            CRD_TRY(describe_unit(m, &s->units[i], &t));
        } else {
            describe_connection(s, &s->connections[i - s->unit_count], &t);
        }
        add_line(m->ctx, &l, &t);
    }
    CRD_TRY(take_lines(&l, &c->cycle, &c->cycle_lines));
    for (int i = 0; i < count; i++) {
        t.length = 0;
        describe_link(of[i], &t);
        add_line(m->ctx, &l, &t);
    }
    CRD_TRY(take_lines(&l, &c->link, &c->link_lines));
fail:
    crd_free(m->ctx, (void*)l.line);
    crd_text_clear(&t);
    return st;
}

static int add_late(crdi_coupled** out, int count, crdi_coupled* c)
{
    if (!c || count > CRDI_REPEAT_SIGNALS) { return count; }
    for (int i = 0; i < count; i++) {
        if (out[i] == c) { return count; }
    }
    if (count < CRDI_REPEAT_SIGNALS) { out[count] = c; }
    return count + 1;
}

// Signals of power bonds that have a coupling. One more than fit: too many.
static int find_late(const crd_master* m, crdi_coupled** out)
{
    int count = 0;
    for (int i = 0; i < m->energy.bond_count; i++) {
        const crdi_bond* p = &m->energy.bonds[i];
        for (int k = 0; k < p->axis_count; k++) {
            count = add_late(out, count, p->axes[k].action ? p->axes[k].action->coupled : NULL);
            count = add_late(out, count, p->axes[k].flow ? p->axes[k].flow->coupled : NULL);
        }
    }
    return count;
}

static bool drives(const crd_master* m, const crdi_connection* k)
{
    const crd_unit_source s = m->plan->members[k->from.member].unit->spec->source;
    const crd_variable* v = crdi_variable_at(m->plan, &k->from);
    return (s == CRD_UNIT_SIGNAL || s == CRD_UNIT_REPLAY) &&
           crd_type_kind((crd_type)v->type) == CRD_REAL;
}

// What drives the cycle, once each, with names in `arena`; how many.
static int find_drives(const crd_master* m, crd_arena* arena, const double** from,
                       const char** names)
{
    int count = 0;
    for (int i = 0; i < m->plan->connection_count; i++) {
        const crdi_connection* k = &m->plan->connections[i];
        if (!drives(m, k)) { continue; }
        const double* x = crdi_connection_from(m->plan, k);
        int j = 0;
        while (j < count && from[j] != x) {
            j++;
        }
        if (j < count) { continue; }
        from[count] = x;
        names[count++] = crdi_end_name(m->plan, arena, &k->from);
    }
    return count;
}

static crd_status describe_driven(crd_master* m, crdi_repeat* out)
{
    const size_t most = (size_t)m->plan->connection_count;
    const double** from = crdi_arena_new(&out->arena, most, sizeof *from);
    const char** names = crdi_arena_new(&out->arena, most, sizeof *names);
    if (!from || !names) { return CRD_E_MEMORY; }
    out->driven_count = find_drives(m, &out->arena, from, names);
    out->driven = crdi_arena_new(&out->arena, (size_t)out->driven_count, sizeof *out->driven);
    for (int i = 0; out->driven && i < out->driven_count; i++) {
        out->driven[i].name = names[i];
        out->driven[i].samples = crdi_arena_new(&out->arena, (size_t)out->count, sizeof(double));
    }
    return crdi_arena_status(&out->arena);
}

crd_status crdi_repeat_describe(crd_master* m, crdi_repeat* out)
{
    crdi_coupled* of[CRDI_REPEAT_SIGNALS];
    const int count = find_late(m, of);
    const crd_system* s = m->plan->sys;
    *out = (crdi_repeat){0};
    crd_arena_init(&out->arena, m->ctx);
    if (m->plan->controlled || m->plan->opt.open_end) {
        return crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                         "%s: a cycle is learned on a fixed grid: expected a run without 'control'",
                         s->file);
    }
    if (count == 0) {
        return crdi_fail(m->ctx, CRD_E_NOT_FOUND,
                         m->energy.bond_count
                             ? "%s: no signal of a power bond is late: expected 'coupling:' at the "
                               "connections of the bond that go over the link"
                         : s->bond_count
                             ? "%s: signals of bonds with 'pair: wave' cannot be learned, expected "
                               "a bond whose connections have 'coupling:'"
                             : "%s: the system has no power bond, expected 'bonds: [[unit.torque, "
                               "unit.speed]]'",
                         s->file);
    }
    if (count > CRDI_REPEAT_SIGNALS) {
        return crdi_fail(m->ctx, CRD_E_RANGE, "%s: more than %d late signals, expected fewer",
                         s->file, CRDI_REPEAT_SIGNALS);
    }
    for (int i = 1; i < count; i++) {
        if (of[i]->every == of[0]->every) { continue; }
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "%s: '%s' has a sample every %g s and '%s' every %g "
                         "s: late signals are learned on one grid",
                         s->file, of[0]->of->to_name, of[0]->interval, of[i]->of->to_name,
                         of[i]->interval);
    }
    out->start = m->plan->times.start;
    out->step = of[0]->interval;
    out->count = (int)(m->plan->times.tick_count / of[0]->every) + 1;
    out->signals = crdi_arena_new(&out->arena, (size_t)count, sizeof *out->signals);
    if (!out->signals) { return CRD_E_MEMORY; }
    out->signal_count = count;
    for (int i = 0; i < count; i++) {
        const char* unit = crdi_variable_at(m->plan, &of[i]->of->to)->unit;
        out->signals[i].from = crdi_arena_format(&out->arena, "%s", of[i]->of->from_name);
        out->signals[i].to = crdi_arena_format(&out->arena, "%s", of[i]->of->to_name);
        out->signals[i].unit = crdi_arena_format(&out->arena, "%s", unit);
    }
    const crd_status st = describe_driven(m, out);
    return st < 0 ? st : describe(m, out, of, count);
}

// ---- before the run ----------------------------------------------------------------------------

static crdi_repeat_limits limits_of(const crd_master* m, const crdi_coupled* c,
                                    const crdi_repeat_signal* signal)
{
    const crd_variable* v = crdi_variable_at(m->plan, &c->of->to);
    double min = v->min, max = v->max, rate = INFINITY;
    const crdi_board* board = crdi_unit_board(c->target->unit);
    crdi_board_state now;
    if (board) {
        crdi_board_read(board, &now);
        for (int i = 0; i < now.quantity_count; i++) {
            const crdi_board_quantity* q = &now.quantities[i];
            if (q->input != c->of->to.variable) { continue; }
            min = fmax(min, q->input_min);
            max = fmin(max, q->input_max);
            rate = fmin(rate, q->input_rate);
        }
    }
    return crdi_repeat_limits_of(signal, min, max, rate);
}

// What was learned is not what is run: it is said, and the run goes without.
static void __attribute__((format(printf, 2, 3))) go_without(crd_master* m, const char* why, ...)
{
    char text[900], at[512];
    va_list args;
    va_start(args, why);
    vsnprintf(text, sizeof text, why, args);
    va_end(args);
    crdi_where((crd_place){.file = m->plan->sys->file}, at, sizeof at);
    crdi_log(m->log, CRD_LOG_WARNING, "%srun.learned: %s; the run goes on without what was learned",
             at, text);
}

static crd_status load(crd_master* m, const char* path, crdi_repeat* out, bool* good)
{
    static const crdi_file_need need = {.what = "a learned cycle", .most = CRDI_JSON_RUN_BYTES};
    crd_text text;
    crd_text_init(&text, m->ctx);
    crd_status st = crdi_file_read(m->ctx, path, &need, &text);
    if (st == CRD_OK) { st = crdi_repeat_parse(m->ctx, text.data, text.length, path, out); }
    crd_text_clear(&text);
    *good = st == CRD_OK;
    if (st == CRD_E_MEMORY) { return st; }
    if (st < 0) { go_without(m, "%s", crd_error_text(m->ctx)); }
    return CRD_OK;
}

// Whether the file is of this run.
static bool fits(crd_master* m, const char* path, const crdi_repeat* was, const crdi_repeat* is)
{
    char text[600];
    crdi_repeat_difference(was->cycle, was->cycle_lines, is->cycle, is->cycle_lines, text,
                           sizeof text);
    if (*text) {
        go_without(m, "%s was learned for another cycle: %s", path, text);
        return false;
    }
    crdi_repeat_difference(was->link, was->link_lines, is->link, is->link_lines, text, sizeof text);
    if (*text) {
        go_without(m, "%s was learned for another link: %s", path, text);
        return false;
    }
    bool same = was->signal_count == is->signal_count && was->driven_count == is->driven_count &&
                was->count == is->count && fabs(was->step - is->step) <= 1e-9 * is->step &&
                fabs(was->start - is->start) <= 1e-9 * is->step;
    for (int i = 0; same && i < is->signal_count; i++) {
        same = strcmp(was->signals[i].to, is->signals[i].to) == 0 &&
               strcmp(was->signals[i].unit, is->signals[i].unit) == 0;
    }
    if (!same) {
        go_without(m, "%s: its signals, units or samples are not those of this run", path);
    }
    return same;
}

// Samples wait until they are `age` samples old.
static crd_status wait_for_age(crd_master* m, crdi_coupled* c, double age)
{
    if (!(age > 0) || c->script) { return CRD_OK; }
    if (!c->flights) {
        c->flight_capacity = 2 * c->ring;
        c->flights = crdi_arena_new(&m->arena, (size_t)c->flight_capacity, sizeof *c->flights);
    }
    c->steady = fmin(age, c->ring - 1) * c->interval;
    return c->flights ? CRD_OK : CRD_E_MEMORY;
}

static crd_status bind(crd_master* m, crdi_learning* l)
{
    crdi_coupled* of[CRDI_REPEAT_SIGNALS];
    const int count = find_late(m, of);
    const size_t most = (size_t)m->plan->connection_count;
    const double** from = crdi_arena_new(&m->arena, most, sizeof *from);
    const char** names = crdi_arena_new(&m->arena, most, sizeof *names);
    if (!from || !names) { return CRD_E_MEMORY; }
    l->driven_count = find_drives(m, &m->arena, from, names);
    l->driven = crdi_arena_new(&m->arena, (size_t)l->driven_count, sizeof *l->driven);
    crdi_learned* all = crdi_arena_new(&m->arena, (size_t)count, sizeof *all);
    if (!l->driven || !all) { return CRD_E_MEMORY; }
    for (int i = 0; i < l->driven_count; i++) {
        l->driven[i] = (crdi_driven){from[i], &l->cycle->driven[i]};
    }
    for (int i = 0; i < count; i++) {
        const crdi_repeat_signal* s = &l->cycle->signals[i];
        const double* given = l->pass ? l->pass->correction : NULL;
        all[i] = (crdi_learned){.index = i,
                                .signal = s,
                                .correction = !l->pass ? s->correction
                                              : given  ? given + (size_t)i * (size_t)l->cycle->count
                                                       : NULL,
                                .limits = limits_of(m, of[i], s),
                                .value = NAN,
                                .latency = s->latency};
        of[i]->learned = &all[i];
        if (!l->pass) {
            all[i].received =
                crdi_arena_new(&m->arena, (size_t)l->cycle->count, sizeof *all[i].received);
            if (!all[i].received) { return CRD_E_MEMORY; }
            for (int k = 0; k < l->cycle->count; k++) {
                all[i].received[k] = NAN;
            }
        }
        const crd_status st = wait_for_age(m, of[i], s->steady);
        if (st < 0) { return st; }
        if (l->pass) { l->pass->real = l->pass->real || of[i]->dated; }
        if (l->pass) { of[i]->seed += (uint64_t)l->pass->number * UINT64_C(0x9e3779b97f4a7c15); }
    }
    l->every = of[0]->every;
    l->weight = 1;
    m->connections.learning = l;
    return CRD_OK;
}

static crd_status use_file(crd_master* m, crdi_learning* l, const char* path, bool* good)
{
    crdi_repeat is = {0};
    crd_status st = load(m, path, &l->file, good);
    if (st < 0 || !*good) { return st; }
    st = crdi_repeat_describe(m, &is);
    *good = st == CRD_OK && fits(m, path, &l->file, &is);
    if (st < 0 && st != CRD_E_MEMORY) { go_without(m, "%s: %s", path, crd_error_text(m->ctx)); }
    crd_arena_clear(&is.arena);
    l->cycle = &l->file;
    return st == CRD_E_MEMORY ? st : CRD_OK;
}

crd_status crdi_learning_plan(crd_master* m)
{
    crdi_repeat_pass* pass = m->plan->opt.pass;
    const char* path = m->plan->sys->run.learned;
    if (!pass && !path) { return CRD_OK; }
    crdi_learning* l = crdi_arena_new(&m->arena, 1, sizeof *l);
    if (!l) { return CRD_E_MEMORY; }
    bool good = true;
    l->pass = pass;
    l->cycle = pass ? pass->cycle : NULL;
    if (pass && !pass->cycle) { return CRD_OK; } // it is only to be described
    crd_status st = pass ? CRD_OK : use_file(m, l, path, &good);
    if (st == CRD_OK && good) { st = bind(m, l); }
    if (m->connections.learning != l && l->file.arena.ctx) { crd_arena_clear(&l->file.arena); }
    return st;
}

void crdi_learning_free(crd_master* m)
{
    crdi_learning* l = m->connections.learning;
    if (l && l->file.arena.ctx) { crd_arena_clear(&l->file.arena); }
}

// ---- in the run --------------------------------------------------------------------------------

static void doubt(crdi_learning* l, crdi_doubt why, const char* of, double is, double was)
{
    if (l->doubt || l->pass) { return; }
    l->doubt = why;
    l->doubt_of = of;
    l->doubt_time = l->now;
    l->is = is;
    l->was = was;
}

static bool has_sample(const crdi_learning* l, int64_t q)
{
    return q >= 0 && q < l->cycle->count;
}

void crdi_learning_watch(crd_master* m, int64_t n)
{
    crdi_learning* l = m->connections.learning;
    const int64_t q = n / l->every;
    l->now = m->plan->times.start + (double)n * m->plan->times.tick;
    if (n % l->every != 0 || !has_sample(l, q)) { return; }
    for (int i = 0; i < l->driven_count; i++) {
        const crdi_driven* d = &l->driven[i];
        if (l->pass) {
            d->series->samples[q] = *d->from;
            continue;
        }
        const double was = d->series->samples[q];
        if (!(fabs(*d->from - was) <= strange_drive * d->series->scale) && !isnan(was)) {
            doubt(l, DOUBT_DRIVEN, d->series->name, *d->from, was);
        }
    }
    if (l->doubt && l->weight > 0) { l->weight = fmax(0, l->weight - 1.0 / FADE); }
}

// How far a sample is from what was sent when it was learned, a little earlier or later: a jump
// that comes a sample later is the same cycle.
static double distance(const crdi_learning* l, const crdi_repeat_signal* s, int64_t q, double x)
{
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = q - ELSEWHERE; i <= q + ELSEWHERE; i++) {
        if (!has_sample(l, i) || isnan(s->sent[i])) { continue; }
        low = fmin(low, s->sent[i]);
        high = fmax(high, s->sent[i]);
    }
    if (!(low <= high)) { return 0; }
    return x < low ? low - x : x > high ? x - high : 0;
}

void crdi_learned_arrive(const crd_master* m, crdi_coupled* c, const crdi_flight* f)
{
    crdi_learning* l = m->connections.learning;
    crdi_learned* p = c->learned;
    const int64_t q = llround((f->stamp - l->cycle->start) / c->interval);
    if (!has_sample(l, q)) { return; }
    if (l->pass) {
        const double age =
            fmax(0, fmin(round((l->now - f->stamp) / c->interval), CRDI_REPEAT_AGES - 1));
        l->pass->ages[(int64_t)p->index * CRDI_REPEAT_AGES + (int64_t)age]++;
        l->pass->sent[(int64_t)p->index * l->cycle->count + q] = f->value;
        return;
    }
    const double missed = f->value - p->received[q];
    if (isfinite(missed)) {
        p->missed += missed * missed;
        p->compared++;
    }
    const double d = distance(l, p->signal, q, f->value) / p->signal->scale;
    p->strange += (fmin(d * d, 1e6) - p->strange) / MEMORY;
    if (!(p->strange <= strange_sent * strange_sent)) {
        doubt(l, DOUBT_SENT, p->signal->from, f->value, p->signal->sent[q]);
    }
}

// The correction at t, on the line between two samples.
static double wish_at(const crdi_learning* l, const crdi_learned* p, double t)
{
    const double at = (t - l->cycle->start) / l->cycle->step;
    const int64_t q = (int64_t)floor(at + 1e-6);
    if (!p->correction || !has_sample(l, q)) { return 0; }
    const double part = fmax(0, at - (double)q), a = p->correction[q];
    return has_sample(l, q + 1) ? a + part * (p->correction[q + 1] - a) : a;
}

static void follow_latency(const crd_master* m, crdi_learning* l, crdi_coupled* c)
{
    crdi_learned* p = c->learned;
    if (l->pass) {
        l->pass->latency[p->index] = c->k_count ? (double)c->k_sum / (double)c->k_count : 0;
        return;
    }
    if (c->swapped) { doubt(l, DOUBT_ELEMENT, c->of->to_name, 0, 0); }
    if (!c->arrived || m->clock.n < MEMORY) { return; }
    p->latency += ((double)c->k - p->latency) / MEMORY;
    if (!(fabs(p->latency - p->signal->latency) <= 0.5 + 0.05 * p->signal->latency)) {
        doubt(l, DOUBT_LATENCY, p->signal->to, p->latency * c->interval,
              p->signal->latency * c->interval);
    }
}

void crdi_learned_step(crd_master* m, crdi_coupled* c, int64_t n, double t)
{
    crdi_learning* l = m->connections.learning;
    crdi_learned* p = c->learned;
    const double estimate = c->estimators[0].estimate + c->correction;
    if (n % c->target->ticks == 0) {
        p->wish = l->weight * wish_at(l, p, t);
        c->lead = crdi_repeat_limit(&p->limits, estimate, p->wish, p->value, t - p->value_time);
        p->limited += fabs(c->lead - p->wish) > 1e-9 * p->signal->scale;
        p->value = estimate + c->lead;
        p->value_time = t;
        follow_latency(m, l, c);
    }
    const int64_t q = n / l->every;
    if (n % l->every != 0 || !has_sample(l, q)) { return; }
    if (!l->pass) {
        p->received[q] = estimate + c->lead;
        return;
    }
    const int64_t at = (int64_t)p->index * l->cycle->count + q;
    l->pass->received[at] = estimate + c->lead;
    l->pass->acted[at] = c->lead;
    l->pass->limited += fabs(c->lead - p->wish) > 1e-9 * p->signal->scale;
}

bool crdi_learning_use(const crd_master* m, crdi_learned_use* out)
{
    const crdi_learning* l = m->connections.learning;
    if (!l || l->pass) { return false; }
    *out = (crdi_learned_use){.path = m->plan->sys->run.learned,
                              .first = l->file.first,
                              .best = l->file.best,
                              .until = l->doubt ? l->doubt_time : (double)NAN};
    double sum = 0;
    for (int i = 0; i < m->connections.coupled_count; i++) {
        const crdi_learned* p = m->connections.coupled[i].learned;
        if (!p) { continue; }
        out->limited += p->limited;
        out->signals++;
        sum += p->missed / (double)p->compared / (p->signal->scale * p->signal->scale);
    }
    out->error = sqrt(sum / out->signals);
    return true;
}

void crdi_learning_warn(crd_master* m)
{
    const crdi_learning* l = m->connections.learning;
    if (!l || l->pass) { return; }
    switch (l->doubt) {
    case DOUBT_NONE:
        return;
    case DOUBT_LATENCY:
        go_without(m, "at t = %.6g s the latency of %s was %.3g s, when it was learned %.3g s",
                   l->doubt_time, l->doubt_of, l->is, l->was);
        return;
    case DOUBT_DRIVEN:
    case DOUBT_SENT:
        go_without(m, "at t = %.6g s %s was %.6g, when it was learned %.6g: this is another cycle",
                   l->doubt_time, l->doubt_of, l->is, l->was);
        return;
    case DOUBT_ELEMENT:
        go_without(m, "at t = %.6g s the element of %s was replaced", l->doubt_time, l->doubt_of);
        return;
    }
}
