// The adapter: inputs leave in cyclic messages, what comes in others are the outputs.
//
// Time passes on the wire by itself, so the unit runs in real time: a step from t to t + h ends
// when that time has passed since the start, whatever came or did not. Messages leave on a grid of
// their own cycle; of those that come the newest counts, with its age.
#include "unit/wire/wire_unit.h"
#include "shared/base.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit/dcp/dcp_unit.h"

static const double LONGEST_SLEEP = 0.005; // s: what comes has to fit into the system's memory
static const double EARLY = 1e-6;          // s: as good as now; the clock has steps of some 0.2 us
static const double STALE = 5;             // cycles: worth a warning
static const double USUAL_CONTACT = 5, USUAL_TIMEOUT = 1; // s

// A message on its way.
typedef struct slot {
    const crdi_wire_message* m;
    crdi_wire_state state;
    double* values; // of its fields
    double arrived; // clock of the link: the last good one; -INFINITY: none
    int64_t turns;  // sent on its grid since the start
    bool watched;   // received, with a cycle
} slot;

typedef struct wire_unit {
    crd_unit base; // first
    const crdi_wire_kind* kind;
    crd_arena arena;
    crd_map names;
    crdi_wire_catalog catalog;
    slot* slots;     // (message_count)
    double** values; // of each variable
    crd_variable* variables;
    crd_dependencies none;
    uint8_t* out; // room for the longest that is sent
    crdi_wire_link* link;
    const volatile bool* interrupted;
    const bool* emergency;
    _Atomic bool given_up;
    double begin;   // s of the run: where its grid begins
    double start;   // the same on the clock of the link
    double fastest; // s: smallest cycle of those that come
    bool started, begun;
    int64_t unknown, foreign, unsent, late_ends;
    double age_sum;
    int64_t age_count;
    crd_link_stats stats;
} wire_unit;

void crdi_wire_sleep(double seconds)
{
    const struct timespec t = {.tv_sec = (time_t)seconds,
                               .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

// ---- values
// --------------------------------------------------------------------------------------

static crd_status wire_set(crd_unit* unit, const crd_binding* b, const crd_values* v)
{
    wire_unit* u = (wire_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        *u->values[b->variables[j]] = v->real[b->offsets[j]];
    }
    return CRD_OK;
}

static crd_status wire_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    const wire_unit* u = (const wire_unit*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        v->real[b->offsets[j]] = *u->values[b->variables[j]];
    }
    return CRD_OK;
}

// ---- messages
// ------------------------------------------------------------------------------------

static void send_message(wire_unit* u, slot* s)
{
    s->state.limited += crdi_wire_encode(s->m, s->values, u->out);
    if (u->catalog.kind.length > 0) { crdi_wire_put_raw(&u->catalog.kind, u->out, s->m->id); }
    crdi_wire_seal(s->m, &s->state, u->out);
    if (!u->link->ops->send(u->link, s->m, u->out)) {
        s->state.good--;
        u->unsent++;
    }
}

// The time of the run at which a message leaves next: with its cycle, or with every step.
static double due(const wire_unit* u, const slot* s)
{
    return u->begin + (double)s->turns * s->m->cycle;
}

static void send_due(wire_unit* u, double t, bool step)
{
    for (int i = 0; i < u->catalog.message_count; i++) {
        slot* s = &u->slots[i];
        if (!s->m->sent || (s->m->cycle == 0 && !step)) { continue; }
        if (s->m->cycle > 0 && due(u, s) > t + EARLY) { continue; }
        send_message(u, s);
        if (s->m->cycle == 0) { continue; }
        // What could not leave in time is left out: the partner wants the newest.
        s->turns = (int64_t)floor((t + EARLY - u->begin) / s->m->cycle) + 1;
    }
}

static double next_due(const wire_unit* u)
{
    double next = INFINITY;
    for (int i = 0; i < u->catalog.message_count; i++) {
        const slot* s = &u->slots[i];
        if (s->m->sent && s->m->cycle > 0) { next = fmin(next, due(u, s)); }
    }
    return next;
}

static void receive_all(wire_unit* u)
{
    crdi_wire_packet p;
    while (u->link->ops->receive(u->link, &p)) {
        if (p.foreign || p.message < 0) {
            u->foreign += p.foreign;
            u->unknown += !p.foreign;
            continue;
        }
        slot* s = &u->slots[p.message];
        if (crdi_wire_judge(s->m, &s->state, p.data, p.length) != CRDI_WIRE_GOOD) { continue; }
        crdi_wire_decode(s->m, p.data, s->values);
        s->arrived = p.time;
    }
}

static bool gives_up(const wire_unit* u)
{
    return atomic_load_explicit(&u->given_up, memory_order_relaxed) ||
           (u->interrupted && *u->interrupted) ||
           (u->emergency && __atomic_load_n(u->emergency, __ATOMIC_RELAXED));
}

// ---- the beginning
// -------------------------------------------------------------------------------

static const char* missing_message(const wire_unit* u)
{
    for (int i = 0; i < u->catalog.message_count; i++) {
        const slot* s = &u->slots[i];
        if (s->watched && isinf(s->arrived)) { return s->m->name; }
    }
    return NULL;
}

// Skipped by the counter, less those that came after all, too late or damaged.
static int64_t lost_of(const crdi_wire_state* s)
{
    const int64_t gone = s->missing - s->old - s->length - s->checksum;
    return gone > 0 ? gone : 0;
}

typedef struct tally {
    int64_t in, out, length, checksum, counter, repeated, old, lost;
} tally;

static tally sum(const wire_unit* u)
{
    tally n = {0};
    for (int i = 0; i < u->catalog.message_count; i++) {
        const crdi_wire_state* s = &u->slots[i].state;
        *(u->slots[i].m->sent ? &n.out : &n.in) += s->good;
        n.length += s->length, n.checksum += s->checksum, n.counter += s->counter;
        n.repeated += s->repeated, n.old += s->old, n.lost += lost_of(s);
    }
    return n;
}

// "; of 12 that came ...": what may be the reason.
static crd_status fail_silent(wire_unit* u, const char* message, double seconds, const char* key)
{
    const tally n = sum(u);
    const char* trouble = u->link->ops->trouble ? u->link->ops->trouble(u->link) : "";
    const int64_t wrong = n.length + n.checksum + n.counter;
    char found[280] = "";
    if (wrong + n.repeated + n.old + u->unknown + u->foreign > 0) {
        snprintf(found, sizeof found,
                 "; what came had %lld times another length, %lld a wrong checksum, %lld a wrong "
                 "counter, %lld one that stood still, %lld one that was behind, %lld were of no "
                 "message, %lld from others",
                 (long long)n.length, (long long)n.checksum, (long long)n.counter,
                 (long long)n.repeated, (long long)n.old, (long long)u->unknown,
                 (long long)u->foreign);
    }
    return crdi_fail(u->base.ctx, CRD_E_UNIT,
                     "no valid message '%s' from %s for %.3g s%s%s%s, expected one in each cycle "
                     "(link.%s says how long to wait)",
                     message, u->base.spec->address, seconds, trouble[0] ? ": " : "", trouble,
                     found, key);
}

// All that come cyclically have to have come; ours leave meanwhile, so that the partner wakes up.
static crd_status make_contact(wire_unit* u)
{
    const crdi_wire_link_ops* ops = u->link->ops;
    const double wanted = u->base.spec->link.contact;
    const double contact = isnan(wanted) ? USUAL_CONTACT : wanted, first = ops->now(u->link);
    bool asked = false;
    u->begin = 0;
    for (;;) {
        const double now = ops->now(u->link) - first;
        receive_all(u);
        send_due(u, now, !asked);
        asked = true;
        const char* name = missing_message(u);
        if (!name || gives_up(u) || contact == 0) { return CRD_OK; }
        if (now >= contact - EARLY / 2) { return fail_silent(u, name, contact, "contact"); }
        const double to_send = fmax(next_due(u) - now, EARLY);
        ops->wait(u->link, fmin(fmin(LONGEST_SLEEP, contact - now), to_send));
    }
}

static crd_status wire_enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    wire_unit* u = (wire_unit*)unit;
    u->interrupted = e->interrupted;
    u->emergency = e->emergency;
    crd_status st = u->kind->open(unit->ctx, unit->spec, &u->catalog, &u->link);
    if (st >= 0) { st = make_contact(u); }
    u->begin = e->start;
    return st;
}

// Counts begin with the run; counters, and what has come, go on.
static void start_run(wire_unit* u, double t)
{
    const double now = u->link->ops->now(u->link);
    for (int i = 0; i < u->catalog.message_count; i++) {
        slot* s = &u->slots[i];
        const crdi_wire_state was = s->state;
        s->state = (crdi_wire_state){.last = was.last, .begun = was.begun};
        s->turns = 0;
        if (s->watched && isinf(s->arrived)) { s->arrived = now; } // link.contact 0: it is due now
    }
    u->unknown = u->foreign = u->unsent = 0;
    u->start = now;
    const int64_t clock = crdi_session_now();
    if (u->base.origin != 0) { // somebody else's grid since `begin`, which this one goes on with
        u->start += 1e-9 * (double)(u->base.origin - clock);
    } else {
        u->begin = t;
        u->base.origin = clock;
    }
    u->started = true;
}

// ---- steps
// ---------------------------------------------------------------------------------------

static void wire_begin(crd_unit* unit, double t, double h)
{
    wire_unit* u = (wire_unit*)unit;
    (void)h;
    if (!u->started) { start_run(u, t); }
    send_due(u, t, true);
    u->begun = true;
}

// Age of what is most overdue, s: that of a slow message counts from its cycle on as that of the
// fastest.
static double age_of(const wire_unit* u, double now, const slot** oldest)
{
    double most = NAN;
    for (int i = 0; i < u->catalog.message_count; i++) {
        const slot* s = &u->slots[i];
        if (!s->watched) { continue; }
        const double age = fmax(0, now - s->arrived - (s->m->cycle - u->fastest));
        if (!(age <= most)) {
            most = age;
            *oldest = s;
        }
    }
    return most;
}

static void note_stats(wire_unit* u, double age)
{
    const tally n = sum(u);
    crd_link_stats* l = &u->stats;
    l->in = n.in;
    l->out = n.out;
    l->lost = n.lost;
    l->duplicates = n.repeated;
    l->reordered = n.old;
    l->bad = n.length + n.checksum + n.counter + u->unknown;
    l->foreign = u->foreign;
    if (isnan(age)) { return; }
    l->age = age;
    u->age_sum += age;
    l->age_mean = u->age_sum / (double)++u->age_count;
    l->age_max = u->age_count > 1 ? fmax(l->age_max, age) : age;
    l->late += age > 1.5 * u->fastest;
}

static crd_status wire_step(crd_unit* unit, double t, double h)
{
    wire_unit* u = (wire_unit*)unit;
    const crdi_wire_link_ops* ops = u->link->ops;
    if (!u->begun) { wire_begin(unit, t, h); }
    u->begun = false;
    const double end = u->start + (t + h - u->begin), first = ops->now(u->link);
    double now = first;
    u->late_ends += now > end + h;
    for (; end - now > EARLY / 2 && !gives_up(u); now = ops->now(u->link)) {
        const double to_send = u->start + (next_due(u) - u->begin) - now;
        if (to_send <= EARLY / 2) {
            send_due(u, u->begin + (now - u->start), false);
            continue;
        }
        ops->wait(u->link, fmin(fmin(end - now, to_send), LONGEST_SLEEP));
        if (end - now > LONGEST_SLEEP) { receive_all(u); }
    }
    unit->waited += llround(1e9 * (now - first));
    receive_all(u);
    const slot* oldest = NULL;
    const double age = age_of(u, now, &oldest);
    const double wanted = unit->spec->link.timeout, most = isnan(wanted) ? USUAL_TIMEOUT : wanted;
    note_stats(u, age);
    if (most > 0 && age > most + u->fastest && !gives_up(u)) {
        return fail_silent(u, oldest->m->name, age, "timeout");
    }
    return CRD_OK;
}

static bool wire_link(const crd_unit* unit, crd_link_stats* out)
{
    *out = ((const wire_unit*)unit)->stats;
    return true;
}

static void wire_interrupt(crd_unit* unit)
{
    atomic_store_explicit(&((wire_unit*)unit)->given_up, true, memory_order_relaxed);
}

// ---- the end
// -------------------------------------------------------------------------------------

// What was not as it should be, once for each message: of the rows those that have a count.
static void tell_mistakes(const wire_unit* u, const slot* s)
{
    const crdi_wire_state* n = &s->state;
    const struct {
        int64_t count;
        const char* what;
    } rows[] = {{n->length, "of another length"},
                {n->checksum, "with a wrong checksum"},
                {n->counter, "with no value of the counter"},
                {n->repeated, "with the counter of the one before"},
                {n->stuck, "times that the counter stood still"},
                {n->old, "that were overtaken"},
                {lost_of(n), "that did not come"},
                {n->restarts, "new starts of the counter"},
                {n->limited, "values beyond what their fields can hold, which were limited"}};
    char text[500] = "";
    int at = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].count == 0) { continue; }
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld %s", at ? ", " : "",
                       (long long)rows[i].count, rows[i].what);
    }
    if (at == 0) { return; }
    crdi_log(u->base.ctx, CRD_LOG_WARNING, "unit '%s': '%s' (%d bytes): %lld %s; %s", u->base.name,
             s->m->name, s->m->length, (long long)n->good, s->m->sent ? "sent" : "taken", text);
}

static crd_status wire_terminate(crd_unit* unit)
{
    wire_unit* u = (wire_unit*)unit;
    if (!u->link) { return CRD_OK; }
    for (int i = 0; u->started && i < u->catalog.message_count; i++) {
        tell_mistakes(u, &u->slots[i]);
    }
    const struct {
        int64_t count;
        const char *what, *then;
    } rest[] = {{u->unknown, "came that are no message of the layout", ""},
                {u->foreign, u->kind->foreign, "; nothing acted on them"},
                {u->unsent, "could not be sent", ""}};
    for (int i = 0; u->started && i < 3; i++) {
        if (rest[i].count == 0) { continue; }
        crdi_log(unit->ctx, CRD_LOG_WARNING, "unit '%s': %lld %s%s", unit->name,
                 (long long)rest[i].count, rest[i].what, rest[i].then);
    }
    if (u->stats.age_max > STALE * u->fastest) {
        crdi_log(
            unit->ctx, CRD_LOG_WARNING,
            "unit '%s': %lld steps used values of more than 1.5 cycles ago, of %.3g s at worst",
            unit->name, (long long)u->stats.late, u->stats.age_max);
    }
    if (u->late_ends > 0) {
        crdi_log(unit->ctx, CRD_LOG_WARNING, "unit '%s': %lld step%s ended late", unit->name,
                 (long long)u->late_ends, u->late_ends == 1 ? "" : "s");
    }
    crdi_wire_link* link = u->link;
    u->link = NULL;
    return link->ops->close(link);
}

static void wire_destroy(crd_unit* unit)
{
    wire_unit* u = (wire_unit*)unit;
    if (u->link) { (void)u->link->ops->close(u->link); }
    crdi_map_clear(&u->names);
    crd_arena_clear(&u->arena);
    crd_free(unit->ctx, u);
}

// ---- description
// ---------------------------------------------------------------------------------

static int32_t wire_find(const crd_unit* unit, const char* name)
{
    return crdi_map_find(&((const wire_unit*)unit)->names, name);
}

static const crd_unit_remote_ops remote_ops = {
    .begin = wire_begin, .link = wire_link, .interrupt = wire_interrupt};

static crd_status wire_nothing(crd_unit* unit)
{
    (void)unit;
    return CRD_OK;
}

static const crd_unit_ops ops = {
    .instantiate = wire_nothing,
    .enter_initialization = wire_enter_initialization,
    .exit_initialization = wire_nothing,
    .set = wire_set,
    .get = wire_get,
    .step = wire_step,
    .terminate = wire_terminate,
    .destroy = wire_destroy,
    .find = wire_find,
    .remote = &remote_ops,
};

// Counters and checksums are the unit's own business.
static bool is_value(const crdi_wire_message* m, int field)
{
    return field != m->counter.field && !(m->checksum.kind && field == m->checksum.field);
}

static crd_status describe_field(wire_unit* u, slot* s, int field)
{
    const crdi_wire_field* f = &s->m->fields[field];
    const int32_t i = u->base.info.variable_count++;
    const char* name = crdi_arena_format(&u->arena, "%s.%s", s->m->name, f->name);
    const char* start = crdi_arena_format(&u->arena, "%.17g", f->initial);
    if (!name || !start) { return CRD_E_MEMORY; }
    u->values[i] = &s->values[field];
    u->variables[i] = (crd_variable){.name = name,
                                     .description = f->comment,
                                     .unit = f->unit,
                                     .start = start,
                                     .reference = (uint32_t)i,
                                     .size = 1,
                                     .unit_index = -1,
                                     .type_index = -1,
                                     .alias_of = -1,
                                     .line = (uint32_t)f->line,
                                     .type = CRD_FLOAT64,
                                     .causality = s->m->sent ? CRD_INPUT : CRD_OUTPUT,
                                     .variability = CRD_CONTINUOUS,
                                     .initial = s->m->sent ? CRD_EXACT : CRD_CALCULATED,
                                     .nominal = 1,
                                     .min = f->min,
                                     .max = f->max};
    if (!s->m->sent) { u->variables[i].start = NULL; }
    return crdi_map_add(&u->names, name, i, NULL);
}

static crd_status describe_message(wire_unit* u, slot* s, const crdi_wire_message* m)
{
    *s = (slot){.m = m, .arrived = -INFINITY, .watched = !m->sent && m->cycle > 0};
    s->values = crdi_arena_new(&u->arena, (size_t)m->field_count + 1, sizeof *s->values);
    if (!s->values) { return CRD_E_MEMORY; }
    if (s->watched) { u->fastest = fmin(u->fastest, m->cycle); }
    for (int i = 0; i < m->field_count; i++) {
        s->values[i] = m->fields[i].initial;
        const crd_status st = is_value(m, i) ? describe_field(u, s, i) : CRD_OK;
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// What comes depends on what leaves after a while only: no output on any input at once.
static crd_status describe_dependencies(wire_unit* u, size_t n)
{
    int32_t* unknown = crdi_arena_new(&u->arena, n + 1, sizeof *unknown);
    const int32_t* first = crdi_arena_new(&u->arena, n + 2, sizeof *first);
    const bool* on_all = crdi_arena_new(&u->arena, n + 1, sizeof *on_all);
    if (!unknown || !first || !on_all) { return CRD_E_MEMORY; }
    u->none = (crd_dependencies){0, unknown, first, unknown, on_all};
    for (int32_t i = 0; i < u->base.info.variable_count; i++) {
        if (u->variables[i].causality == CRD_OUTPUT) { unknown[u->none.count++] = i; }
    }
    u->base.info.outputs = u->base.info.initial = &u->none;
    return CRD_OK;
}

static crd_status describe(wire_unit* u)
{
    crd_status st = CRD_OK;
    const crdi_wire_catalog* c = &u->catalog;
    size_t fields = 0, longest = 0;
    for (int i = 0; i < c->message_count; i++) {
        const size_t length = (size_t)c->messages[i].length;
        fields += (size_t)c->messages[i].field_count;
        longest = length > longest ? length : longest;
    }
    u->fastest = INFINITY;
    u->slots = crdi_arena_new(&u->arena, (size_t)c->message_count + 1, sizeof *u->slots);
    u->values = crdi_arena_new(&u->arena, fields + 1, sizeof *u->values);
    u->variables = crdi_arena_new(&u->arena, fields + 1, sizeof *u->variables);
    u->out = crdi_arena_new(&u->arena, longest + CRDI_WIRE_PAD, 1);
    if (!u->slots || !u->values || !u->variables || !u->out) { return CRD_E_MEMORY; }
    u->base.info = (crd_unit_info){.variables = u->variables,
                                   .flags = CRD_UNIT_IN_REAL_TIME | CRD_UNIT_CAN_VARY_STEP,
                                   .start = NAN,
                                   .stop = NAN,
                                   .tolerance = NAN,
                                   .kind = u->kind->name};
    for (int i = 0; i < c->message_count; i++) {
        CRD_TRY(describe_message(u, &u->slots[i], &c->messages[i]));
    }
    u->base.info.step = isinf(u->fastest) ? (double)NAN : u->fastest;
    CRD_TRY(describe_dependencies(u, fields));
fail:
    return st;
}

crd_status crdi_wire_unit_create(crd_context* ctx, const crd_unit_spec* spec,
                                 const crdi_wire_kind* kind, crd_unit** out)
{
    crd_status st = CRD_OK;
    wire_unit* u = crdi_new(ctx, sizeof *u);
    if (!u) { return CRD_E_MEMORY; }
    u->base = (crd_unit){.ops = &ops, .ctx = ctx, .name = spec->name, .spec = spec};
    u->kind = kind;
    u->stats = (crd_link_stats){.age = NAN,
                                .age_mean = NAN,
                                .age_max = NAN,
                                .round_trip = NAN,
                                .round_trip_max = NAN,
                                .state = -1,
                                .state_name = "",
                                .security = "plain"};
    crd_arena_init(&u->arena, ctx);
    crdi_map_init(&u->names, ctx);
    CRD_TRY(kind->load(ctx, spec, &u->arena, &u->catalog));
    CRD_TRY(describe(u));
    *out = &u->base;
    return CRD_OK;
fail:
    wire_destroy(&u->base);
    return st;
}
