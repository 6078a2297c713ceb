// A bench as its master sees it.
#include "dcp/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- states of a master ------------------------------------------------------------------------

const char* crdi_dcp_master_state_name(int state)
{
    static const char* const names[] = {"REGISTER", "CONFIGURE", "APPLY", "INITIALIZE", "SEND_I",
                                        "RUN",      "SEND_D",    "STOP",  "STOPPED"};
    return state >= 0 && state < CRDI_DCP_MASTER_STATE_COUNT ? names[state] : NULL;
}

static crdi_dcp_master_state with(crd_dcp_state slave)
{
    switch (slave) {
    case CRD_DCP_ALIVE:
        return CRDI_DCP_MASTER_REGISTER;
    case CRD_DCP_CONFIGURATION:
        return CRDI_DCP_MASTER_CONFIGURE;
    case CRD_DCP_PREPARING:
    case CRD_DCP_PREPARED:
    case CRD_DCP_CONFIGURING:
        return CRDI_DCP_MASTER_APPLY;
    case CRD_DCP_CONFIGURED:
    case CRD_DCP_INITIALIZING:
    case CRD_DCP_INITIALIZED:
        return CRDI_DCP_MASTER_INITIALIZE;
    case CRD_DCP_SENDING_I:
        return CRDI_DCP_MASTER_SEND_I;
    case CRD_DCP_SENDING_D:
        return CRDI_DCP_MASTER_SEND_D;
    case CRD_DCP_STOPPED:
        return CRDI_DCP_MASTER_STOPPED;
    case CRD_DCP_STOPPING:
    case CRD_DCP_ERRORHANDLING:
    case CRD_DCP_ERRORRESOLVED:
        return CRDI_DCP_MASTER_STOP;
    default:
        return CRDI_DCP_MASTER_RUN;
    }
}

crdi_dcp_master_state crdi_dcp_master_state_of(const crd_dcp_state* slaves, int count, bool ready)
{
    crdi_dcp_master_state least = CRDI_DCP_MASTER_STOPPED;
    bool stop = false;
    for (int i = 0; i < count; i++) {
        const crdi_dcp_master_state s = with(slaves[i]);
        if (s < least) { least = s; }
        stop = stop || s == CRDI_DCP_MASTER_STOP;
    }
    if (stop) { return CRDI_DCP_MASTER_STOP; }
    const bool waits = !ready && least > CRDI_DCP_MASTER_APPLY && least < CRDI_DCP_MASTER_RUN;
    return waits ? CRDI_DCP_MASTER_APPLY : least;
}

// ---- create ------------------------------------------------------------------------------------

// A set value of ours: what is sent keeps to what was agreed, as the bench does.
typedef struct peer_axis {
    char name[32];
    char unit[16];
    int bit, input; // of bench.clamped; variable
    crdi_safety_axis axis;
    crdi_safety_clamps outside, fast;
    double* slot;
    double sent; // NAN: nothing yet
} peer_axis;

struct crdi_dcp_bench_peer {
    crd_context* ctx;
    const crd_dcp_description* d; // borrowed
    crdi_dcp_bench_plan plan;     // NULLs are ""
    crdi_dcp_bench_variables at;
    // slots of the session
    int64_t *sequence, *echo, *sequence_out, *echo_out, *status, *reason, *clamped, *clamps,
        *refused;
    crdi_bench_sequence numbers;
    peer_axis axes[CRD_DCP_LIMITS_MAX];
    int axis_count;
    double begun, last_number;
    double ratio;
    uint32_t least; // of the gap limit
    char missing[200], progress[200], why[200];
};

crdi_dcp_bench_plan crdi_dcp_bench_plan_defaults(void)
{
    return (crdi_dcp_bench_plan){.name = "bench",
                                 .limits = "",
                                 .planned = "",
                                 .initial = "",
                                 .gap_limit = 100,
                                 .watchdog = 0.5};
}

static crd_status check_initial(crdi_dcp_bench_peer* p, const crdi_dcp_limits* bench)
{
    crd_status st = CRD_OK;
    crdi_dcp_limits initial;
    double tolerance;
    CRD_TRY(crdi_dcp_initial_parse(p->ctx, p->plan.initial, strlen(p->plan.initial), &initial,
                                   &tolerance));
    CRD_TRY(crdi_dcp_limits_check(p->ctx, &initial, bench, "the bench"));
fail:
    return st;
}

// The unit of a set value: that of its variable, else that of who limits it first.
static void choose_unit(const crdi_dcp_bench_peer* p, peer_axis* a, const crdi_dcp_limit* first,
                        crd_dimension* out)
{
    const char* unit = p->d->variables[a->input].unit;
    *out = first->dimension;
    memcpy(a->unit, first->unit, sizeof a->unit);
    crd_dimension own;
    if (unit && *unit && strlen(unit) < sizeof a->unit && crdi_bench_dimension(unit, &own) &&
        crd_dimension_equal(&own, out)) {
        *out = own;
        snprintf(a->unit, sizeof a->unit, "%.15s", unit);
    }
}

// False: nothing is left that all of them allow.
static bool make_axis(const crdi_dcp_bench_peer* p, peer_axis* a,
                      const crdi_dcp_limits* const* limits, bool* limited)
{
    crd_dimension dimension;
    *limited = false;
    a->outside.since = a->fast.since = NAN;
    a->axis.own = crdi_safety_unbounded();
    crdi_safety_axis_open(&a->axis);
    for (int k = 0; k < 3; k++) {
        const crdi_dcp_limit* l = crdi_dcp_limits_find(limits[k], a->name);
        crdi_safety_range r;
        if (!l) { continue; }
        if (!*limited) { choose_unit(p, a, l, &dimension); }
        *limited = true;
        if (!crdi_bench_range(l, a->unit, &dimension, &r) || !crdi_safety_narrow(&a->axis, &r)) {
            return false;
        }
    }
    return true;
}

static crd_status make_axes(crdi_dcp_bench_peer* p, const crdi_dcp_limits* bench,
                            const crdi_dcp_limits* planned, const crdi_dcp_limits* own)
{
    const crdi_dcp_limits* const all[3] = {bench, planned, own};
    crdi_dcp_bench_pair pairs[CRD_DCP_LIMITS_MAX];
    const int count = crdi_dcp_bench_pairs(p->d, pairs);
    for (int i = 0; i < count; i++) {
        if (pairs[i].input < 0) { continue; }
        peer_axis* a = &p->axes[p->axis_count];
        bool limited;
        *a = (peer_axis){.bit = i, .input = pairs[i].input, .sent = NAN};
        memcpy(a->name, pairs[i].name, sizeof a->name);
        if (!make_axis(p, a, all, &limited)) {
            return crdi_fail(p->ctx, CRD_E_RANGE,
                             "limit %s: the bench, the test case and this side leave nothing that "
                             "all of them allow",
                             a->name);
        }
        p->axis_count += limited;
    }
    return CRD_OK;
}

static crd_status check_plan(crdi_dcp_bench_peer* p)
{
    crd_status st = CRD_OK;
    const struct {
        const char *text, *what;
        int variable;
    } texts[] = {{p->plan.limits, crdi_bench_words[0], p->at.peer_limits},
                 {p->plan.planned, crdi_bench_words[1], p->at.planned},
                 {p->plan.initial, crdi_bench_words[2], p->at.initial}};
    crdi_dcp_limits all[2], bench;
    for (int i = 0; i < 3; i++) {
        const size_t n = strlen(texts[i].text);
        const uint32_t room = p->d->variables[texts[i].variable].max_size;
        if (n > room) {
            return crdi_fail(p->ctx, CRD_E_RANGE, "%s of %zu bytes, expected up to %u",
                             texts[i].what, n, (unsigned)room);
        }
        if (i == 2) { break; }
        st = crdi_dcp_limits_parse(p->ctx, texts[i].text, n, &all[i]);
        if (st < 0) { return crdi_fail_in(p->ctx, st, "%s", texts[i].what); }
    }
    const char* declared = p->d->variables[p->at.limits].start;
    if (!declared) { declared = ""; }
    st = crdi_dcp_limits_parse(p->ctx, declared, strlen(declared), &bench);
    if (st < 0) { return crdi_fail_in(p->ctx, st, "bench.limits of its description"); }
    CRD_TRY(crdi_dcp_limits_agree(p->ctx, &all[1], &bench, &all[0]));
    CRD_TRY(make_axes(p, &bench, &all[1], &all[0]));
    CRD_TRY(check_initial(p, &bench));
fail:
    return st;
}

crd_status crdi_dcp_bench_peer_create(crd_context* ctx, const crd_dcp_description* d,
                                      const crdi_dcp_bench_plan* plan, crdi_dcp_bench_peer** out)
{
    crd_status st = CRD_OK;
    crdi_dcp_bench_variables at;
    const char* name = plan->name ? plan->name : "bench";
    if (!crdi_dcp_bench_find(d, &at)) {
        return crdi_fail(
            ctx, CRD_E_UNSUPPORTED,
            "%s: its description has no bench extension (bench.extension, bench.limits "
            "...)",
            name);
    }
    if (!(plan->watchdog >= 0)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: watchdog = %g s, expected >= 0", name,
                         plan->watchdog);
    }
    crdi_dcp_bench_peer* p = crdi_new(ctx, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    *p = (crdi_dcp_bench_peer){.ctx = ctx, .d = d, .plan = *plan, .at = at};
    p->plan.name = name;
    p->ratio = 1;
    p->plan.limits = plan->limits ? plan->limits : "";
    p->plan.planned = plan->planned ? plan->planned : "";
    p->plan.initial = plan->initial ? plan->initial : "";
    p->begun = INFINITY;
    p->last_number = -INFINITY;
    CRD_TRY(check_plan(p));
    *out = p;
    return CRD_OK;
fail:
    crdi_dcp_bench_peer_destroy(p);
    return crdi_fail_in(ctx, st, "%s", name);
}

void crdi_dcp_bench_peer_destroy(crdi_dcp_bench_peer* p)
{
    if (p) { crd_free(p->ctx, p); }
}

// ---- in a session ------------------------------------------------------------------------------

static crd_status set_text(crd_dcp_master* m, int slave, int variable, const char* text)
{
    crd_dcp_slot* s = crd_dcp_master_slot(m, slave, variable);
    const size_t n = strlen(text);
    if (n == 0) { return CRD_OK; } // as it starts
    memcpy(s->bytes, text, n);     // its length was checked
    *s->byte_count = (uint32_t)n;
    return crd_dcp_master_set(m, slave, variable);
}

crd_status crdi_dcp_bench_peer_bind(crdi_dcp_bench_peer* p, crd_dcp_master* m, int slave)
{
    crd_status st = CRD_OK;
    const crdi_dcp_bench_variables* at = &p->at;
    const struct {
        int variable;
        int64_t** to;
    } slots[] = {
        {at->sequence, &p->sequence},
        {at->echo, &p->echo},
        {at->sequence_out, &p->sequence_out},
        {at->echo_out, &p->echo_out},
        {at->status, &p->status},
        {at->reason, &p->reason},
        {at->clamped, &p->clamped},
        {at->clamps, &p->clamps},
        {at->refused, &p->refused},
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        crd_dcp_slot* s = crd_dcp_master_slot(m, slave, slots[i].variable);
        if (!s) {
            return crdi_fail(p->ctx, CRD_E_STATE, "%s: the session has no slave %d of this bench",
                             p->plan.name, slave);
        }
        *slots[i].to = s->integer;
    }
    for (int i = 0; i < p->axis_count; i++) {
        peer_axis* a = &p->axes[i];
        a->slot = crd_dcp_master_slot(m, slave, a->input)->real;
        a->outside = a->fast = (crdi_safety_clamps){.since = NAN};
        a->sent = NAN;
    }
    *crd_dcp_master_slot(m, slave, at->extension)->integer = 1;
    CRD_TRY(crd_dcp_master_set(m, slave, at->extension));
    CRD_TRY(set_text(m, slave, at->peer_limits, p->plan.limits));
    CRD_TRY(set_text(m, slave, at->planned, p->plan.planned));
    CRD_TRY(set_text(m, slave, at->initial, p->plan.initial));
fail:
    return st;
}

int crdi_dcp_bench_peer_inputs(const crdi_dcp_bench_peer* p, int out[2])
{
    out[0] = p->at.sequence;
    out[1] = p->at.echo;
    return 2;
}

int crdi_dcp_bench_peer_outputs(const crdi_dcp_bench_peer* p, int out[7])
{
    const int all[7] = {p->at.sequence_out, p->at.echo_out, p->at.status, p->at.reason,
                        p->at.clamped,      p->at.clamps,   p->at.refused};
    memcpy(out, all, sizeof all);
    return 7;
}

void crdi_dcp_bench_peer_begin(crdi_dcp_bench_peer* p, double start)
{
    p->begun = start;
    p->numbers = (crdi_bench_sequence){0};
    p->last_number = -INFINITY;
    if (p->sequence_out) { *p->sequence_out = *p->echo_out = 0; } // of an earlier run
}

// Six, or as many as tell what was wanted from what was used.
static int digits_of(const crdi_safety_clamps* c)
{
    char wanted[40], used[40];
    int digits = 5;
    do {
        digits++;
        snprintf(wanted, sizeof wanted, "%.*g", digits, c->wanted);
        snprintf(used, sizeof used, "%.*g", digits, c->used);
    } while (digits < 17 && strcmp(wanted, used) == 0);
    return digits;
}

static void tell_clamp(const peer_axis* a, char* out, size_t room)
{
    const crdi_safety_range* r = &a->axis.agreed;
    const int digits = digits_of(&a->outside);
    snprintf(out, room, "clamped: %s = %.*g %s, used %.*g, limits %g to %g", a->name, digits,
             a->outside.wanted, a->unit, digits, a->outside.used, r->min, r->max);
}

void crdi_dcp_bench_peer_limit(crdi_dcp_bench_peer* p, double seconds, double now, crd_context* log)
{
    for (int i = 0; i < p->axis_count; i++) {
        peer_axis* a = &p->axes[i];
        const double wanted = *a->slot;
        if (!isfinite(wanted)) { continue; } // refused by the bench, with its own words
        const double inside = crdi_safety_keep(&a->axis, wanted);
        bool slow = false;
        const double used =
            isnan(a->sent) || !(seconds > 0)
                ? inside
                : crdi_safety_move(a->sent, inside, a->axis.agreed.rate, seconds, &slow);
        (void)crdi_safety_note(&a->fast, inside, used, now);
        *a->slot = a->sent = used;
        if (crdi_safety_note(&a->outside, wanted, inside, now) && a->outside.count == 1) {
            tell_clamp(a, p->why, sizeof p->why); // once in a run
            crdi_log(log, CRD_LOG_WARNING, "unit '%s': %s", p->plan.name, p->why);
        }
    }
}

bool crdi_dcp_bench_peer_acting(const crdi_dcp_bench_peer* p, int variable, double* value)
{
    for (int i = 0; i < p->axis_count; i++) {
        const peer_axis* a = &p->axes[i];
        if (a->input != variable || isnan(a->sent)) { continue; }
        *value = a->sent;
        return true;
    }
    return false;
}

bool crdi_dcp_bench_peer_clamps(const crdi_dcp_bench_peer* p, int i, char* out, size_t room)
{
    if (i >= 2 * p->axis_count) { return false; }
    const peer_axis* a = &p->axes[i / 2];
    const bool fast = i % 2;
    const crdi_safety_clamps* c = fast ? &a->fast : &a->outside;
    const crdi_safety_range* r = &a->axis.agreed;
    out[0] = 0;
    if (c->count == 0) { return true; }
    char limit[64];
    if (fast) {
        snprintf(limit, sizeof limit, "a rate of %g %s/s", r->rate, a->unit);
    } else {
        snprintf(limit, sizeof limit, "%g to %g %s", r->min, r->max, a->unit);
    }
    const int digits = digits_of(c);
    snprintf(out, room,
             "%s was %.*g %s and was kept at %.*g, %s was agreed; %lld set value%s, %lld time%s%s",
             a->name, digits, c->wanted, a->unit, digits, c->used, limit, (long long)c->values,
             c->values == 1 ? "" : "s", (long long)c->count, c->count == 1 ? "" : "s",
             isnan(c->since) ? "" : ", still so at the end");
    return true;
}

void crdi_dcp_bench_peer_send(crdi_dcp_bench_peer* p, double now)
{
    crdi_bench_next_number(&p->numbers, now);
    *p->sequence = p->numbers.sent;
    *p->echo = p->numbers.theirs;
}

void crdi_dcp_bench_peer_set_pace(crdi_dcp_bench_peer* p, double ratio, double least)
{
    p->ratio = fmax(1, ratio);
    p->least = (uint32_t)fmin(fmax(0, least), 1e9);
}

static uint32_t gap_of(const crdi_dcp_bench_peer* p)
{
    const crdi_bench_sequence* n = &p->numbers;
    const uint32_t behind = n->has_back ? n->sent - n->back : 0;
    const uint32_t lost = (uint32_t)((double)n->lost / p->ratio);
    return behind > lost ? behind : lost;
}

crd_status crdi_dcp_bench_peer_check(crdi_dcp_bench_peer* p, double now)
{
    crdi_bench_sequence* n = &p->numbers;
    const uint32_t theirs = (uint32_t)*p->sequence_out;
    if (theirs != 0 && crdi_bench_take_number(n, theirs)) { p->last_number = now; }
    crdi_bench_take_echo(n, (uint32_t)*p->echo_out, now);
    const uint32_t limit = p->plan.gap_limit > p->least ? p->plan.gap_limit : p->least;
    if (p->plan.gap_limit > 0 && gap_of(p) > limit) {
        return crdi_fail(p->ctx, CRD_E_UNIT,
                         "%s: sequence numbers are %u apart (sent %u, sent back %u), allowed %u",
                         p->plan.name, (unsigned)gap_of(p), (unsigned)n->sent, (unsigned)n->back,
                         (unsigned)limit);
    }
    const double since = fmax(p->last_number, p->begun);
    if (p->plan.watchdog > 0 && now - since >= p->plan.watchdog) {
        return crdi_fail(p->ctx, CRD_E_UNIT,
                         "%s: no new data for %.3g s, expected some within %g s", p->plan.name,
                         now - since, p->plan.watchdog);
    }
    return CRD_OK;
}

crdi_bench_entry crdi_bench_find_entry(const char* line, const char** entry, const char** text)
{
    static const char* const words[CRDI_BENCH_NO_ENTRY] = {
        "preparation: ", "conditioning: ", "refused: ",   "clamped: ",
        "fault: ",       "stop: ",         "calibrated: "};
    int i = 0;
    while (i < CRDI_BENCH_NO_ENTRY && !(*entry = strstr(line, words[i]))) {
        i++;
    }
    *text = *entry ? *entry + strlen(words[i]) : "";
    return (crdi_bench_entry)i;
}

void crdi_dcp_bench_peer_notice(crdi_dcp_bench_peer* p, const crd_dcp_notice* n)
{
    const char *entry = NULL, *text = NULL;
    if (n->kind != CRD_DCP_NOTICE_LOG || !n->text) { return; }
    const crdi_bench_entry kind = crdi_bench_find_entry(n->text, &entry, &text);
    if (kind == CRDI_BENCH_NO_ENTRY || kind == CRDI_BENCH_CALIBRATED) { return; }
    char* to = kind == CRDI_BENCH_PREPARATION    ? p->missing
               : kind == CRDI_BENCH_CONDITIONING ? p->progress
                                                 : p->why;
    // The phases of a stop follow their reason and do not hide it.
    const bool phase = strncmp(p->why, "stop: ", 6) == 0 && strncmp(p->why, "stop: by ", 9) != 0;
    const bool news = strncmp(text, "by ", 3) == 0 && strncmp(p->why, "clamped: ", 9) == 0;
    if (kind == CRDI_BENCH_STOP && p->why[0] && !phase && !news) { return; }
    snprintf(to, sizeof p->why, "%s", entry);
}

crdi_dcp_bench_view crdi_dcp_bench_peer_view(const crdi_dcp_bench_peer* p)
{
    const bool bound = p->status != NULL;
    uint32_t clamped = 0; // by this side, which the bench does not see
    int64_t clamps = 0;
    for (int i = 0; i < p->axis_count; i++) {
        const peer_axis* a = &p->axes[i];
        clamps += a->outside.count;
        if (a->outside.count && !isnan(a->outside.since)) { clamped |= 1u << a->bit; }
        if (a->fast.count && !isnan(a->fast.since)) { clamped |= 0x10000u << a->bit; }
    }
    return (crdi_dcp_bench_view){.phase = bound ? (crd_dcp_bench_phase)*p->status : 0,
                                 .reason = bound ? (crd_dcp_bench_reason)*p->reason : 0,
                                 .clamped = clamped | (bound ? (uint32_t)*p->clamped : 0),
                                 .clamps = clamps + (bound ? *p->clamps : 0),
                                 .refused = bound ? *p->refused : 0,
                                 .gap = gap_of(p),
                                 .behind = p->numbers.sent - p->numbers.timed,
                                 .answers = p->numbers.round_trip.count > 0,
                                 .last_number = p->last_number,
                                 .round_trip = p->numbers.round_trip,
                                 .missing = p->missing,
                                 .progress = p->progress,
                                 .why = p->why};
}
