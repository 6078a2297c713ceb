// A bench in time: control of its set values, watch over them, and the duties of its states.
#include "dcp/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const uint32_t ERROR_MEMORY = 1u << 31;

// Of what the bench does by itself, or of what the slave is asked.
static double bench_now(const crd_dcp_bench* b)
{
    return b->ticking ? b->time : b->slave->now;
}

static double speed_of(const crd_dcp_bench* b) // 0 where there is none
{
    return b->speed < 0 ? 0 : fabs(b->q[b->speed].measured);
}

static bool stopping(const crd_dcp_bench* b)
{
    return crdi_safety_stopping(&b->safety);
}

static bool happens(crd_dcp_bench* b, crdi_safety_event event)
{
    return crdi_safety_happens(&b->safety, event, bench_now(b));
}

// What the slave has received and taken since is the core's to know.
static void sync_safety(const crd_dcp_bench* b, crdi_safety* s)
{
    s->received = b->slave->beat;
    const double valid = crdi_bench_valid(b);
    if (valid > s->valid) { crdi_safety_data(s, valid); }
}

static double deadline_of(const crd_dcp_bench* b)
{
    crdi_safety s = b->safety;
    sync_safety(b, &s);
    return crdi_safety_deadline(&s);
}

static void measure_quantities(crd_dcp_bench* b)
{
    for (int i = 0; i < b->c.quantity_count; i++) {
        b->q[i].measured = b->rig.measure(b->rig.user, i);
    }
}

static void fault(crd_dcp_bench* b, crd_dcp_bench_reason reason, crd_dcp_error code)
{
    b->cause = reason;
    crd_dcp_slave_fault(b->slave, code, bench_now(b));
    b->cause = CRD_DCP_BENCH_NO_REASON; // where the slave is in Error already
}

// ---- exchange of limits, in CONFIGURATION ------------------------------------------------------

crd_status crdi_bench_read_media(crd_dcp_bench* b, const crdi_dcp_limits* initial, double tolerance)
{
    b->media_count = 0;
    for (int k = 0; k < initial->count; k++) {
        const crdi_dcp_limit* l = &initial->of[k];
        int i = 0;
        while (i < b->c.quantity_count && strcmp(b->q[i].spec->name, l->name) != 0) {
            i++;
        }
        const crdi_bench_quantity* q = &b->q[i];
        if (i == b->c.quantity_count || q->spec->role != CRD_DCP_ROLE_TEMPERATURE ||
            !crd_dimension_equal(&q->dimension, &l->dimension)) {
            return crdi_fail(b->ctx, CRD_E_RANGE,
                             "initial temperature of %s, which is no medium of the bench", l->name);
        }
        const double wanted = crdi_bench_convert(l->min, l, q->unit, &q->dimension);
        const crdi_safety_range* r = &q->axis.own;
        if (!(wanted >= r->min && wanted <= r->max)) {
            return crdi_fail(b->ctx, CRD_E_RANGE,
                             "limit %s: initial temperature %g %s, the bench allows %g to %g",
                             l->name, wanted, q->unit, r->min, r->max);
        }
        b->media[b->media_count++] =
            (crdi_bench_medium){i, wanted, tolerance / q->dimension.factor};
    }
    return CRD_OK;
}

static crd_status read_peer_texts(crd_dcp_bench* b, crdi_dcp_limits* peer, crdi_dcp_limits* planned,
                                  crdi_dcp_limits* initial, double* tolerance)
{
    crd_status st = CRD_OK;
    const char* mine = b->c.initial ? b->c.initial : "";
    const bool given = b->extension && b->lengths[2] > 0;
    const char* text = given ? b->texts[2] : mine;
    const size_t length = given ? b->lengths[2] : strlen(mine);
    *peer = *planned = (crdi_dcp_limits){0};
    int i = 0;
    if (b->extension) {
        CRD_TRY(crdi_dcp_limits_parse(b->ctx, b->texts[0], b->lengths[0], peer));
        i = 1;
        CRD_TRY(crdi_dcp_limits_parse(b->ctx, b->texts[1], b->lengths[1], planned));
    }
    i = 2;
    CRD_TRY(crdi_dcp_initial_parse(b->ctx, text, length, initial, tolerance));
    if (!given) { *tolerance = b->c.tolerance; }
    return CRD_OK;
fail:
    return crdi_fail_in(b->ctx, st, "%s", crdi_bench_words[i]);
}

// The envelope of the run is what the bench, the test case and the other side allow together.
static crd_status narrow_envelope(crd_dcp_bench* b, const crdi_dcp_limits* by, const char* who)
{
    for (int i = 0; i < b->c.quantity_count; i++) {
        crdi_bench_quantity* q = &b->q[i];
        const crdi_dcp_limit* l = crdi_dcp_limits_find(by, q->spec->name);
        crdi_safety_range r;
        if (!l) { continue; }
        if (!crdi_bench_range(l, q->unit, &q->dimension, &r)) {
            return crdi_fail(b->ctx, CRD_E_RANGE, "limit %s: %s has it in '%s', the bench in '%s'",
                             l->name, who, l->unit, q->unit);
        }
        if (!crdi_safety_narrow(&q->axis, &r)) {
            return crdi_fail(b->ctx, CRD_E_RANGE,
                             "limit %s: %s allows %g to %g %s, which leaves nothing of %g to %g",
                             l->name, who, r.min, r.max, q->unit, q->axis.agreed.min,
                             q->axis.agreed.max);
        }
    }
    return crdi_bench_add_regions(b, by, false);
}

static crd_status agree_on_envelope(crd_dcp_bench* b, const crdi_dcp_limits* planned,
                                    const crdi_dcp_limits* peer)
{
    crd_status st = CRD_OK;
    b->region_count = b->own_regions;
    for (int i = 0; i < b->c.quantity_count; i++) {
        crdi_safety_axis_open(&b->q[i].axis);
    }
    CRD_TRY(crdi_dcp_limits_agree(b->ctx, planned, &b->own, peer));
    CRD_TRY(narrow_envelope(b, planned, "the test case"));
    CRD_TRY(narrow_envelope(b, peer, "the master's side"));
    for (int i = 0; i < b->c.quantity_count; i++) {
        crdi_bench_quantity* q = &b->q[i];
        if (q->of < 0) { continue; }
        const crdi_safety_range r = crdi_safety_scaled(&b->q[q->of].axis.agreed, q->spec->factor);
        if (!crdi_safety_narrow(&q->axis, &r)) {
            return crdi_fail(b->ctx, CRD_E_RANGE,
                             "limit %s: %s leaves %g to %g %s, and nothing of %g to %g",
                             q->spec->name, q->spec->of, r.min, r.max, q->unit, q->axis.agreed.min,
                             q->axis.agreed.max);
        }
    }
fail:
    return st;
}

bool crdi_bench_agree(crd_dcp_bench* b, double now)
{
    crd_status st = CRD_OK;
    crdi_dcp_limits peer, planned, initial;
    double tolerance = 1;
    CRD_TRY(read_peer_texts(b, &peer, &planned, &initial, &tolerance));
    CRD_TRY(agree_on_envelope(b, &planned, &peer));
    CRD_TRY(crdi_bench_read_media(b, &initial, tolerance));
    return true;
fail:
    crdi_bench_tell(b, CRDI_LOG_REFUSED, (const char*[]){crd_error_text(b->ctx), ""}, NULL);
    b->cause = CRD_DCP_BENCH_LIMITS;
    crd_dcp_slave_fault(
        b->slave, st == CRD_E_FORMAT ? CRD_DCP_E_INVALID_PAYLOAD : CRD_DCP_E_PROPERTY_VIOLATED,
        now);
    return false;
}

// ---- what is not guarded -----------------------------------------------------------------------

static void warn_of(crd_dcp_bench* b, bool master, const char* what)
{
    if (master) {
        crdi_bench_tell(b, CRDI_LOG_UNSAFE, (const char*[]){what, ""}, NULL);
    } else {
        crdi_log(b->ctx, CRD_LOG_WARNING, "bench '%s' is not safe: %s", b->d->name, what);
    }
}

static const double long_watchdog = 10, long_heartbeat = 60; // s: as good as none

void crdi_bench_warn(crd_dcp_bench* b, bool master)
{
    const crdi_safety_times* t = &b->safety.times;
    char text[120];
    if (isinf(t->watchdog)) {
        warn_of(b, master, "watchdog 0: a run goes on without its master");
    } else if (t->watchdog > long_watchdog) {
        snprintf(text, sizeof text, "watchdog %g s: a run goes on for so long without its master",
                 t->watchdog);
        warn_of(b, master, text);
    }
    if (isinf(t->heart)) {
        warn_of(b, master, "no heartbeat: outside of runs a dead master is not noticed");
    } else if (t->heart > long_heartbeat && !master) { // who has it in the description
        snprintf(text, sizeof text,
                 "heartbeat %g s: outside of runs a dead master is not noticed for so long",
                 t->heart);
        warn_of(b, master, text);
    }
    if (isinf(t->speed)) {
        warn_of(b, master, "stop_patience 0: a machine that does not slow down is not cut off");
    }
    const crdi_safety_range* speed = b->speed < 0 ? NULL : &b->q[b->speed].axis.own;
    if (speed && b->c.safe_speed > fmax(speed->max, -speed->min)) {
        warn_of(b, master, "safe_speed: no speed within the limits is above it");
    }
    for (int i = 0; i < b->c.quantity_count; i++) {
        const crdi_bench_quantity* q = &b->q[i];
        const crd_dcp_role role = q->spec->role;
        const bool moves = role == CRD_DCP_ROLE_SPEED || role == CRD_DCP_ROLE_TORQUE ||
                           role == CRD_DCP_ROLE_VOLTAGE;
        if (!moves || !q->spec->input ||
            (isfinite(q->axis.agreed.min) && isfinite(q->axis.agreed.max))) {
            continue;
        }
        snprintf(text, sizeof text, "no limits: %.32s may be set to any value", q->spec->name);
        warn_of(b, master, text);
    }
}

// ---- preparation, in PREPARING -----------------------------------------------------------------

static uint32_t missing_items(const crd_dcp_bench* b)
{
    uint32_t missing = 0;
    for (int i = 0; b->rig.ready && i < b->c.checklist_count; i++) {
        if (!b->rig.ready(b->rig.user, i)) { missing |= 1u << i; }
    }
    if (b->rig.error && b->rig.error(b->rig.user) != 0) { missing |= ERROR_MEMORY; }
    return missing;
}

static void name_items(const crd_dcp_bench* b, uint32_t missing, char* out, size_t room)
{
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < 32; i++) {
        if (!(missing & 1u << i)) { continue; }
        const char* name = i < b->c.checklist_count ? b->c.checklist[i] : "error memory not empty";
        const int more = snprintf(out + n, room - n, "%s%s", n ? ", " : "", name);
        n += (size_t)more < room - n ? (size_t)more : room - n - 1;
    }
}

// Whether it is time for an entry about what is waited for.
static bool may_report(crd_dcp_bench* b, bool changed)
{
    const bool due = b->c.report > 0 && bench_now(b) >= b->reported + b->c.report - 1e-6;
    if (!changed && !due) { return false; }
    b->reported = bench_now(b);
    return true;
}

void crdi_bench_check_items(crd_dcp_bench* b)
{
    const uint32_t missing = missing_items(b);
    const bool changed = missing != b->missing;
    b->missing = missing;
    if (missing == 0) {
        (void)happens(b, CRDI_SAFETY_READY);
        b->remote = true;
        if (b->rig.remote) { b->rig.remote(b->rig.user, true); }
        measure_quantities(b);
        crdi_bench_tell(b, CRDI_LOG_READY, NULL, NULL);
    } else if (may_report(b, changed)) {
        char names[160];
        name_items(b, missing, names, sizeof names);
        crdi_bench_tell(b, CRDI_LOG_MISSING, (const char*[]){names, ""}, NULL);
    }
}

// ---- conditioning, in CONFIGURING --------------------------------------------------------------

void crdi_bench_condition(crd_dcp_bench* b)
{
    const bool report = may_report(b, false);
    b->conditioned = true;
    for (int i = 0; i < b->media_count; i++) {
        const crdi_bench_medium* m = &b->media[i];
        const crdi_bench_quantity* q = &b->q[m->quantity];
        if (fabs(q->measured - m->wanted) <= m->tolerance) { continue; }
        b->conditioned = false;
        if (report) {
            crdi_bench_tell(b, CRDI_LOG_CONDITIONING, (const char*[]){q->spec->name, q->unit},
                            (const double[]){q->measured, m->wanted});
        }
    }
    if (b->conditioned) {
        (void)happens(b, CRDI_SAFETY_WARM);
        crdi_bench_tell(b, CRDI_LOG_CONDITIONED, NULL, NULL);
    }
}

// ---- the controlled stop, in STOPPING and ERRORHANDLING ----------------------------------------

static void tell_stop(crd_dcp_bench* b, const char* what)
{
    crdi_bench_tell(b, CRDI_LOG_STOP, (const char*[]){what, ""}, NULL);
}

static double safe_value(const crdi_bench_quantity* q)
{
    return isnan(q->spec->safe) ? 0 : q->spec->safe;
}

// A machine that has stood all the time has no hot spots to be turned out of.
static bool must_cool(const crd_dcp_bench* b)
{
    if (!b->turned) { return false; }
    for (int i = 0; i < b->c.quantity_count; i++) {
        const crdi_bench_quantity* q = &b->q[i];
        if (q->spec->role == CRD_DCP_ROLE_TEMPERATURE && !isnan(q->spec->cool_down) &&
            !(q->measured <= q->spec->cool_down)) {
            return true;
        }
    }
    return false;
}

// Where the first set value starts from, so that nothing jumps.
static void start_from_measured(crdi_bench_quantity* q)
{
    const crdi_safety_range* own = &q->axis.own;
    if (isfinite(q->measured)) { q->set = fmin(fmax(q->measured, own->min), own->max); }
}

// What has no energy to be taken out of goes to its safe value at once, whatever its rate.
static void release_quantities(crd_dcp_bench* b)
{
    for (int i = 0; i < b->c.quantity_count; i++) {
        crdi_bench_quantity* q = &b->q[i];
        if (!q->driven) { start_from_measured(q); }
        // A stop drives nothing that nobody has driven, whatever a sensor says.
        if (q->spec->role == CRD_DCP_ROLE_TORQUE ||
            (q->spec->role == CRD_DCP_ROLE_SPEED && !q->driven)) {
            q->set = 0;
        } else if (q->spec->role == CRD_DCP_ROLE_OTHER) {
            q->set = safe_value(q);
        } else {
            continue;
        }
        b->rig.set(b->rig.user, i, q->set);
    }
}

void crdi_bench_begin_stop(crd_dcp_bench* b, crd_dcp_bench_reason reason)
{
    b->reason = reason;
    if (b->remote) {
        b->remote = false;
        if (b->rig.remote) { b->rig.remote(b->rig.user, false); }
        tell_stop(b, "remote control withdrawn");
    }
    const bool asked = reason == CRD_DCP_BENCH_BY_MASTER || reason == CRD_DCP_BENCH_BY_OPERATOR;
    if (!happens(b, asked                              ? CRDI_SAFETY_STOP
                    : reason == CRD_DCP_BENCH_WATCHDOG ? CRDI_SAFETY_SILENCE
                                                       : CRDI_SAFETY_FAULT)) {
        return; // a fault in a stop: it goes on where it is
    }
    b->clamped = 0;
    measure_quantities(b);
    release_quantities(b);
    tell_stop(b, "torque 0, speed down, voltage held");
}

static bool voltages_are_low(const crd_dcp_bench* b)
{
    for (int i = 0; i < b->c.quantity_count; i++) {
        const crdi_bench_quantity* q = &b->q[i];
        if (q->spec->role == CRD_DCP_ROLE_VOLTAGE && q->set != q->target) { return false; }
    }
    return true;
}

// As measured, where it is: capacitors keep a voltage that nobody sets any more. Up to 60 V of DC
// may be touched (IEC 60364-4-41).
static bool voltages_are_gone(const crd_dcp_bench* b)
{
    static const double harmless = 60;
    for (int i = 0; i < b->c.quantity_count; i++) {
        const crdi_bench_quantity* q = &b->q[i];
        if (q->spec->role != CRD_DCP_ROLE_VOLTAGE || !q->spec->output) { continue; }
        if (!(fabs(q->measured) <= fabs(q->set) + harmless / q->dimension.factor)) { return false; }
    }
    return true;
}

static void stand_still(crd_dcp_bench* b)
{
    for (int i = 0; i < b->c.quantity_count; i++) {
        crdi_bench_quantity* q = &b->q[i];
        if (q->spec->role == CRD_DCP_ROLE_TEMPERATURE && isnan(q->spec->safe)) { continue; }
        q->set = q->spec->role == CRD_DCP_ROLE_SPEED ? 0 : safe_value(q);
        b->rig.set(b->rig.user, i, q->set);
    }
}

// Rautenberg 2023, section 3.4: speed first, then voltage, so that the voltage that the machine
// induces is never above that of the DC link.
bool crdi_bench_stopped(crd_dcp_bench* b)
{
    switch (b->safety.phase) {
    case CRD_DCP_BENCH_SPEED_DOWN:
        if (speed_of(b) <= b->c.safe_speed && happens(b, CRDI_SAFETY_SLOW)) {
            b->safe_since = bench_now(b);
            tell_stop(b, "speed is safe, voltage down");
        }
        return false; // control sets where the voltage goes
    case CRD_DCP_BENCH_VOLTAGE_DOWN:
        if (voltages_are_low(b)) {
            const bool cool = must_cool(b);
            (void)happens(b, cool ? CRDI_SAFETY_HOT : CRDI_SAFETY_LOW);
            tell_stop(b, cool ? "cool down, turning" : "to standstill");
        }
        return false;
    case CRD_DCP_BENCH_COOL_DOWN:
        if (!must_cool(b) && happens(b, CRDI_SAFETY_COOL)) { tell_stop(b, "to standstill"); }
        return false;
    case CRD_DCP_BENCH_STAND_DOWN:
        if (speed_of(b) <= b->c.standstill && voltages_are_low(b) && voltages_are_gone(b) &&
            happens(b, CRDI_SAFETY_STILL)) {
            stand_still(b);
            tell_stop(b, "safe");
        }
        break;
    default:
        break;
    }
    return b->safety.phase == CRD_DCP_BENCH_SAFE;
}

// A stage that does not end: see the table of the safety core.
static void look_at_stop(crd_dcp_bench* b)
{
    const double since = b->safety.since;
    if (bench_now(b) < crdi_safety_stage_end(&b->safety)) { return; }
    if (!happens(b, CRDI_SAFETY_LATE)) { return; }
    crdi_bench_tell(
        b, CRDI_LOG_STOP_LATE, NULL,
        (const double[]){bench_now(b) - since, b->speed < 0 ? 0 : b->q[b->speed].measured});
    if (!b->safety.cut) { return; }
    tell_stop(b, b->rig.cut ? "drive cut off" : "no way to cut the drive off");
    if (b->rig.cut) { b->rig.cut(b->rig.user); }
}

// ---- control -----------------------------------------------------------------------------------

static double induced(const crd_dcp_bench* b)
{
    const double set = b->speed < 0 ? 0 : fabs(b->q[b->speed].set);
    return b->c.induced * fmax(speed_of(b), set);
}

// A region that begins or ends where the range does has no other side: a machine that stands and
// whose speed is measured as -0.1 is in 0..50.
static bool in_region(const crd_dcp_bench* b, const crdi_bench_region* r)
{
    const crdi_bench_quantity* q = &b->q[r->where];
    const crdi_safety_range* a = &q->axis.agreed;
    return !(q->measured < r->where_min && r->where_min > a->min) &&
           !(q->measured > r->where_max && r->where_max < a->max);
}

// Moves `x` of a quantity out of the regions that are forbidden at what is measured now.
static double keep_clear(const crd_dcp_bench* b, int i, double x)
{
    for (int k = 0; k < b->region_count; k++) {
        const crdi_bench_region* r = &b->regions[k];
        if (r->with != i || !in_region(b, r)) { continue; }
        if (isnan(r->with_min)) {
            x = 0;
        } else if (x > r->with_min && x < r->with_max) {
            const crdi_safety_range* a = &b->q[i].axis.agreed;
            const bool below = r->with_min >= a->min, above = r->with_max <= a->max;
            const bool nearer = x - r->with_min < r->with_max - x;
            x = below && (nearer || !above) ? r->with_min : above ? r->with_max : 0;
        }
    }
    const crdi_bench_quantity* q = &b->q[i];
    if (q->of < 0) { return x; }
    const double moved = x * q->spec->factor, kept = keep_clear(b, q->of, moved);
    return kept == moved ? x : kept / q->spec->factor;
}

// The range of a set value now: what was agreed, and what the hardware allows of it.
static crdi_safety_axis axis_now(const crd_dcp_bench* b, int i)
{
    crdi_safety_axis a = b->q[i].axis;
    double min = -INFINITY, max = INFINITY;
    if (!b->rig.range || !b->rig.range(b->rig.user, i, &min, &max)) { return a; }
    if (crdi_safety_narrow(&a, &(crdi_safety_range){min, max, INFINITY})) { return a; }
    // Nothing is left of what was agreed: the hardware's law is above it.
    a.agreed.min = fmin(fmax(min, a.own.min), a.own.max);
    a.agreed.max = fmax(fmin(max, a.own.max), a.agreed.min);
    return a;
}

static double follow_master(crd_dcp_bench* b, int i)
{
    crdi_bench_quantity* q = &b->q[i];
    if (!q->given) {
        q->wanted = q->set;
        q->given = true;
    }
    const crdi_safety_axis now = axis_now(b, i), *a = &now;
    const double inside = crdi_safety_keep(a, q->wanted);
    double x = keep_clear(b, i, inside);
    q->at_once = x != inside; // out of there, whatever the rate
    // The machine's own law is above what was agreed.
    if (q->spec->role == CRD_DCP_ROLE_VOLTAGE) { x = fmax(x, fmin(induced(b), a->own.max)); }
    const uint32_t bit = 1u << i;
    b->clamped = x != q->wanted ? b->clamped | bit : b->clamped & ~bit;
    if (crdi_safety_note(&q->outside, q->wanted, x, bench_now(b))) {
        b->clamps++;
        if (bench_now(b) >= q->logged + 1) { // a set value that dances on its limit fills no logs
            q->logged = bench_now(b);
            crdi_bench_tell(b, q->at_once ? CRDI_LOG_AVOIDED : CRDI_LOG_CLAMPED,
                            (const char*[]){q->spec->name, q->unit},
                            (const double[]){q->wanted, x, a->agreed.min, a->agreed.max});
        }
    }
    return x;
}

// NAN: none.
static double conditioning_value(const crd_dcp_bench* b, int i)
{
    for (int k = 0; k < b->media_count; k++) {
        if (b->media[k].quantity == i) { return b->media[k].wanted; }
    }
    // What turns for the sake of conditioning does so only where there is something to condition.
    const crdi_bench_quantity* q = &b->q[i];
    return b->media_count == 0 ? NAN : crdi_safety_keep_own(&q->axis, q->spec->conditioning);
}

static double stop_value(const crd_dcp_bench* b, int i, bool cool)
{
    const crdi_bench_quantity* q = &b->q[i];
    const bool last = b->safety.phase == CRD_DCP_BENCH_STAND_DOWN;
    const double turn = isnan(b->c.turn_speed) ? 0.5 * b->c.safe_speed : b->c.turn_speed;
    switch (q->spec->role) {
    case CRD_DCP_ROLE_SPEED:
        // never faster than it is
        return cool && !last ? copysign(fmin(fmin(turn, b->c.safe_speed), fabs(q->set)), q->set)
                             : 0;
    case CRD_DCP_ROLE_VOLTAGE:
        if (b->safety.phase == CRD_DCP_BENCH_SPEED_DOWN) { return q->set; }
        return cool && !last && !isnan(q->spec->conditioning) ? fmin(q->set, q->spec->conditioning)
                                                              : safe_value(q);
    case CRD_DCP_ROLE_TEMPERATURE:
        return cool && !isnan(q->spec->cool_down)
                   ? crdi_safety_keep_own(&q->axis, q->spec->cool_down - b->c.tolerance)
                   : q->set;
    default:
        return q->spec->role == CRD_DCP_ROLE_TORQUE ? 0 : safe_value(q);
    }
}

static double rate_of(const crd_dcp_bench* b, const crdi_bench_quantity* q)
{
    const crdi_safety_axis* a = &q->axis;
    if (!stopping(b)) { return a->agreed.rate; }
    switch (q->spec->role) {
    case CRD_DCP_ROLE_VOLTAGE:
    case CRD_DCP_ROLE_TEMPERATURE:
        return a->own.rate;
    case CRD_DCP_ROLE_SPEED:
        if (b->safety.cut) { return INFINITY; } // nobody follows it any more
        return !isnan(b->c.stop_rate) ? b->c.stop_rate : isfinite(a->own.rate) ? a->own.rate : 1000;
    default:
        return INFINITY;
    }
}

// Towards the target, as fast as the rate allows.
static void move_set_value(crd_dcp_bench* b, int i, double seconds)
{
    crdi_bench_quantity* q = &b->q[i];
    bool slow;
    q->set =
        crdi_safety_move(q->set, q->target, q->at_once ? INFINITY : rate_of(b, q), seconds, &slow);
    // In a stop, too: what the machine induces falls with its speed.
    if (q->spec->role == CRD_DCP_ROLE_VOLTAGE) {
        const double least = fmin(induced(b), q->axis.own.max);
        if (q->set < least) { q->set = least; }
        if (stopping(b) && q->target < least) { q->target = least; }
    }
    if (b->safety.phase == CRD_DCP_BENCH_RUN) {
        const uint32_t bit = 1u << (16 + i);
        b->clamped = slow ? b->clamped | bit : b->clamped & ~bit;
    }
    b->rig.set(b->rig.user, i, q->set);
}

// A quantity that nobody has said anything about is left as it is.
static bool drives(const crd_dcp_bench* b, int i, bool cool)
{
    const crdi_bench_quantity* q = &b->q[i];
    if (q->driven) { return true; }
    if (!stopping(b)) {
        return crdi_safety_mover_of(b->safety.phase) == CRDI_SAFETY_MASTER
                   ? q->given
                   : !isnan(conditioning_value(b, i));
    }
    return q->spec->role != CRD_DCP_ROLE_TEMPERATURE || (cool && !isnan(q->spec->cool_down));
}

static void control(crd_dcp_bench* b, double seconds)
{
    sync_safety(b, &b->safety);
    const bool cool = stopping(b) && must_cool(b);
    const crdi_safety_mover mover = crdi_safety_mover_of(b->safety.phase);
    if (mover == CRDI_SAFETY_NOBODY) { return; }
    if (mover == CRDI_SAFETY_MASTER || speed_of(b) > b->c.standstill) { b->turned = true; }
    for (int i = 0; i < b->c.quantity_count; i++) {
        crdi_bench_quantity* q = &b->q[i];
        if (!drives(b, i, cool)) {
            start_from_measured(q);
            continue;
        }
        q->driven = true;
        q->at_once = false;
        q->target = mover == CRDI_SAFETY_ORDER    ? stop_value(b, i, cool)
                    : mover == CRDI_SAFETY_MASTER ? follow_master(b, i)
                                                  : conditioning_value(b, i);
        if (isnan(q->target)) { q->target = q->set; }
        move_set_value(b, i, seconds);
    }
}

void crdi_bench_go_on(crd_dcp_bench* b, double seconds)
{
    control(b, seconds);
    if (b->rig.step) { b->rig.step(b->rig.user, seconds); }
    measure_quantities(b);
}

// ---- watch -------------------------------------------------------------------------------------

static bool check_trips(crd_dcp_bench* b)
{
    for (int i = 0; i < b->c.quantity_count; i++) {
        const crdi_bench_quantity* q = &b->q[i];
        const crd_dcp_quantity* s = q->spec;
        // written so that a measured value that is NAN is outside, and a bound that is NAN none
        if ((isnan(s->trip_min) || q->measured >= s->trip_min) &&
            (isnan(s->trip_max) || q->measured <= s->trip_max)) {
            continue;
        }
        crdi_bench_tell(b, CRDI_LOG_TRIP, (const char*[]){s->name, q->unit},
                        (const double[]){q->measured, s->trip_min, s->trip_max});
        fault(b, CRD_DCP_BENCH_TRIP, CRD_DCP_E_PROPERTY_VIOLATED);
        return true;
    }
    return false;
}

static bool check_rig(crd_dcp_bench* b)
{
    const uint32_t missing = missing_items(b);
    if (missing & ERROR_MEMORY) {
        crdi_bench_tell(b, CRDI_LOG_RIG_ERROR, NULL, (const double[]){b->rig.error(b->rig.user)});
        fault(b, CRD_DCP_BENCH_RIG_ERROR, CRD_DCP_E_GENERIC);
    } else if (missing && b->slave->state != CRD_DCP_STOPPING) {
        char names[160];
        name_items(b, missing, names, sizeof names);
        crdi_bench_tell(b, CRDI_LOG_ITEM_LOST, (const char*[]){names, ""}, NULL);
        fault(b, CRD_DCP_BENCH_ITEM_LOST, CRD_DCP_E_GENERIC);
    } else {
        return false;
    }
    return true;
}

static bool check_sequence_numbers(crd_dcp_bench* b)
{
    const crdi_bench_sequence* n = &b->numbers;
    if (!b->extension || !n->has_back || b->c.gap_limit == 0) { return false; }
    const uint32_t behind = n->sent - n->back;
    const uint32_t gap = behind > n->lost ? behind : n->lost;
    if (gap <= b->c.gap_limit) { return false; }
    crdi_bench_tell(b, CRDI_LOG_GAP, NULL, (const double[]){gap, b->c.gap_limit});
    fault(b, CRD_DCP_BENCH_GAP, CRD_DCP_E_PROPERTY_VIOLATED);
    return true;
}

// Somebody else sends data, or tries to.
static void tell_foreign(crd_dcp_bench* b)
{
    const int64_t count = b->slave->counts.data_foreign;
    if (count == b->foreign || b->time < b->foreign_since + 1) { return; }
    const double more = (double)(count - b->foreign);
    b->foreign = count;
    b->foreign_since = b->time;
    crdi_bench_tell(b, CRDI_LOG_FOREIGN, NULL, &more);
}

static void tell_silence(crd_dcp_bench* b)
{
    const bool heart =
        crdi_safety_deadman_of(b->safety.phase) == CRDI_SAFETY_HEART || b->time < b->safety.due;
    crdi_bench_tell(b, heart ? CRDI_LOG_SILENCE : CRDI_LOG_WATCHDOG, NULL,
                    heart ? &b->safety.times.heart : &b->c.watchdog);
    fault(b, heart ? CRD_DCP_BENCH_SLAVE : CRD_DCP_BENCH_WATCHDOG, CRD_DCP_E_HEARTBEAT_MISSED);
}

static void watch_run(crd_dcp_bench* b, double deadline)
{
    const crd_dcp_state state = b->slave->state;
    if (state < CRD_DCP_PREPARED || state > CRD_DCP_STOPPING) { return; }
    tell_foreign(b);
    if (state == CRD_DCP_RUNNING && !b->running) {
        b->running = true; // the second STC_run may have named a later start
        const bool real_time = b->slave->mode != CRD_DCP_NRT;
        crdi_safety_start(&b->safety, b->time, real_time ? b->slave->start : b->time);
    }
    if (check_rig(b)) { return; }
    if (state >= CRD_DCP_CONFIGURING && state != CRD_DCP_STOPPING && check_trips(b)) { return; }
    if (b->time >= deadline) {
        tell_silence(b);
    } else if (crdi_dcp_in_run(state)) {
        check_sequence_numbers(b);
    }
}

// ---- time --------------------------------------------------------------------------------------

static bool duty_is_done(crd_dcp_bench* b)
{
    switch (b->slave->state) {
    case CRD_DCP_PREPARING:
        crdi_bench_check_items(b);
        return b->safety.phase == CRD_DCP_BENCH_PREPARED;
    case CRD_DCP_CONFIGURING:
        crdi_bench_condition(b);
        return b->conditioned;
    case CRD_DCP_STOPPING:
        return crdi_bench_stopped(b);
    case CRD_DCP_ERRORHANDLING:
        return crdi_bench_stopped(b) && !(b->rig.error && b->rig.error(b->rig.user) != 0);
    default:
        return false;
    }
}

static void go_to_time(crd_dcp_bench* b, double time)
{
    crd_dcp_slave* s = b->slave;
    const double deadline = deadline_of(b), seconds = time - b->time;
    b->time = time;
    b->ticking = true;
    if (s->mode != CRD_DCP_NRT || !crdi_dcp_in_run(s->state)) { crdi_bench_go_on(b, seconds); }
    watch_run(b, deadline);
    if (stopping(b)) { look_at_stop(b); }
    const bool done = s->pending == CRDI_DUTY && duty_is_done(b);
    b->ticking = false;
    if (done) { crd_dcp_slave_done(s, CRD_DCP_DONE, s->now); }
}

static double next_period(const crd_dcp_bench* b)
{
    return b->base + (double)(b->periods + 1) * b->c.period; // from the count: a sum would drift
}

double crdi_bench_next(void* user)
{
    const crd_dcp_bench* b = user;
    if (!b->slave) { return INFINITY; }
    if (!b->started) { return -INFINITY; }
    return fmin(next_period(b), fmax(deadline_of(b), b->time));
}

void crdi_bench_advance(void* user, double now)
{
    crd_dcp_bench* b = user;
    if (!b->started) {
        b->started = true;
        b->time = b->base = now;
        measure_quantities(b);
        return;
    }
    const double next = crdi_bench_next(b);
    if (next == next_period(b)) { b->periods++; }
    go_to_time(b, next);
}

void crd_dcp_bench_stop(crd_dcp_bench* b, double now)
{
    crd_dcp_slave* s = b->slave;
    b->cause = CRD_DCP_BENCH_BY_OPERATOR;
    if (b->remote) { tell_stop(b, "by its operator"); } // before the master sees the state
    if (crdi_dcp_next_state_event(s->state, CRDI_DCP_SIG_STOP, s->state) >= 0) {
        crd_dcp_slave_stop(s, now);
    } else if (s->state >= CRD_DCP_PREPARING && s->state <= CRD_DCP_SENDING_D) {
        crd_dcp_slave_fault(s, CRD_DCP_E_GENERIC, now); // the protocol has no other way from there
    }
    b->cause = CRD_DCP_BENCH_NO_REASON;
}
