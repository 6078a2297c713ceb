// A bench as the plant of a slave: what it is given, what it gives, what its states begin.
#include "dcp/bench/bench.h"

#include <math.h>
#include <string.h>

// ---- create ------------------------------------------------------------------------------------

crd_dcp_quantity crd_dcp_quantity_defaults(void)
{
    return (crd_dcp_quantity){
        .conditioning = NAN, .safe = NAN, .trip_min = NAN, .trip_max = NAN, .cool_down = NAN};
}

crd_dcp_bench_config crd_dcp_bench_defaults(void)
{
    return (crd_dcp_bench_config){.limits = "",
                                  .initial = "",
                                  .tolerance = 1,
                                  .safe_speed = 100,
                                  .turn_speed = NAN,
                                  .stop_rate = NAN,
                                  .standstill = 1,
                                  .watchdog = 0.5,
                                  .gap_limit = 100,
                                  .period = 0.01,
                                  .report = 5,
                                  .stop_patience = 60,
                                  .cool_patience = 7200,
                                  .heartbeat = 3};
}

static crd_status check_config(crd_context* ctx, const crd_dcp_bench_config* c)
{
    const struct {
        const char* name;
        double value;
        bool zero; // is fine
    } numbers[] = {
        {"tolerance", c->tolerance, false},
        {"safe_speed", c->safe_speed, false},
        {"standstill", c->standstill, false},
        {"induced", c->induced, true},
        {"watchdog", c->watchdog, true},
        {"period", c->period, false},
        {"report", c->report, true},
        {"stop_patience", c->stop_patience, true},
        {"cool_patience", c->cool_patience, true},
        {"heartbeat", c->heartbeat, true},
        {"turn_speed", isnan(c->turn_speed) ? 0 : c->turn_speed, true},
        {"stop_rate", isnan(c->stop_rate) ? 1 : c->stop_rate, false},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const double x = numbers[i].value;
        if (!isfinite(x) || x < 0 || (x == 0 && !numbers[i].zero)) {
            return crdi_fail(ctx, CRD_E_RANGE, "bench: %s = %g, expected %s", numbers[i].name, x,
                             numbers[i].zero ? ">= 0" : "> 0");
        }
    }
    if (c->standstill > c->safe_speed) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "bench: standstill = %g, expected at most safe_speed, which is %g",
                         c->standstill, c->safe_speed);
    }
    if (c->quantity_count < 0 || c->quantity_count > CRDI_DCP_LIMITS) {
        return crdi_fail(ctx, CRD_E_RANGE, "bench: %d quantities, expected up to %d",
                         c->quantity_count, CRDI_DCP_LIMITS);
    }
    if (c->checklist_count < 0 || c->checklist_count > CRDI_BENCH_ITEMS) {
        return crdi_fail(ctx, CRD_E_RANGE, "bench: a checklist of %d items, expected up to %d",
                         c->checklist_count, CRDI_BENCH_ITEMS);
    }
    return CRD_OK;
}

static crd_status find_quantity_variable(crd_dcp_bench* b, const char* name, uint8_t causality,
                                         int16_t* of, int quantity)
{
    if (!name) { return CRD_OK; }
    const int i = crdi_dcp_find_name(b->d, name);
    const crd_dcp_variable* v = i < 0 ? NULL : &b->d->variables[i];
    if (v && v->causality == causality && v->rank == 0 && crdi_dcp_is_real(v->type)) {
        of[i] = (int16_t)quantity;
        return CRD_OK;
    }
    return crdi_fail(b->ctx, CRD_E_NOT_FOUND,
                     "bench: quantity %s has the variable %s; expected %s of one float64 or "
                     "float32 of that name",
                     b->c.quantities[quantity].name, name,
                     causality == CRD_INPUT ? "an input" : "an output");
}

// A value in the unit of a limit as one in the unit of the quantity.
static double in_unit(const crdi_bench_quantity* q, const crdi_dcp_limit* l, double x)
{
    return crdi_bench_convert(x, l, q->unit, &q->dimension);
}

static int find_quantity(const crd_dcp_bench* b, const char* name)
{
    for (int i = 0; i < b->c.quantity_count; i++) {
        if (strcmp(b->c.quantities[i].name, name) == 0) { return i; }
    }
    return -1;
}

// What it moves as well: its own range is no wider than that one's.
static crd_status read_origin(crd_dcp_bench* b, int i)
{
    crdi_bench_quantity* q = &b->q[i];
    const crd_dcp_quantity* spec = q->spec;
    q->of = spec->of ? find_quantity(b, spec->of) : -1;
    if (!spec->of) { return CRD_OK; }
    if (q->of < 0 || q->of >= i || !isfinite(spec->factor) || spec->factor == 0) {
        return crdi_fail(b->ctx, CRD_E_RANGE,
                         "bench: %s is %g of %s; expected a factor other than 0 of a quantity that "
                         "stands before it",
                         spec->name, spec->factor, spec->of);
    }
    const crdi_safety_range r = crdi_safety_scaled(&b->q[q->of].axis.own, spec->factor);
    crdi_safety_axis_open(&q->axis);
    if (!crdi_safety_narrow(&q->axis, &r)) {
        return crdi_fail(b->ctx, CRD_E_RANGE, "bench: %s leaves nothing of the limits of %s",
                         spec->of, spec->name);
    }
    q->axis.own = q->axis.agreed;
    return CRD_OK;
}

static crd_status bench_read_quantity(crd_dcp_bench* b, int i)
{
    crd_status st = CRD_OK;
    const crd_dcp_quantity* spec = &b->c.quantities[i];
    crdi_bench_quantity* q = &b->q[i];
    const crdi_dcp_limit* l = crdi_dcp_limits_find(&b->own, spec->name);
    q->spec = spec;
    q->unit = spec->unit ? spec->unit : l ? l->unit : "";
    q->logged = q->taken = -INFINITY;
    q->axis.own = crdi_safety_unbounded();
    if (!crdi_bench_dimension(q->unit, &q->dimension)) {
        return crdi_fail(b->ctx, CRD_E_RANGE, "bench: quantity %s has the unit '%s'; no such unit",
                         spec->name, crdi_clip(q->unit).text);
    }
    if (l && !crdi_bench_range(l, q->unit, &q->dimension, &q->axis.own)) {
        return crdi_fail(b->ctx, CRD_E_RANGE, "bench: quantity %s is in '%s', its limit in '%s'",
                         spec->name, q->unit, l->unit);
    }
    if ((spec->role == CRD_DCP_ROLE_SPEED || spec->role == CRD_DCP_ROLE_TORQUE) &&
        !isnan(spec->safe) && spec->safe != 0) {
        return crdi_fail(b->ctx, CRD_E_RANGE, "bench: %s: safe = %g, but a stop ends with %s 0",
                         spec->name, spec->safe,
                         spec->role == CRD_DCP_ROLE_SPEED ? "speed" : "torque");
    }
    CRD_TRY(read_origin(b, i));
    crdi_safety_axis_open(&q->axis);
    if (spec->role == CRD_DCP_ROLE_SPEED) {
        if (b->speed >= 0) {
            return crdi_fail(b->ctx, CRD_E_RANGE, "bench: %s and %s are both the speed",
                             b->q[b->speed].spec->name, spec->name);
        }
        b->speed = i;
    }
    CRD_TRY(find_quantity_variable(b, spec->input, CRD_INPUT, b->set, i));
    CRD_TRY(find_quantity_variable(b, spec->output, CRD_OUTPUT, b->get, i));
fail:
    return st;
}

crd_status crdi_bench_add_regions(crd_dcp_bench* b, const crdi_dcp_limits* from, bool own)
{
    for (int i = 0; i < from->avoid_count; i++) {
        const crdi_dcp_region* g = &from->avoid[i];
        crdi_bench_region r = {.where = find_quantity(b, g->where.name),
                               .with = find_quantity(b, g->with.name)};
        if ((r.where < 0 || r.with < 0) && !own) { continue; } // of a quantity of the other side
        if (r.where < 0 || r.with < 0) {
            return crdi_fail(b->ctx, CRD_E_NOT_FOUND,
                             "bench: avoid %s with %s: %s is none of its quantities", g->where.name,
                             g->with.name, r.where < 0 ? g->where.name : g->with.name);
        }
        const crdi_bench_quantity *a = &b->q[r.where], *w = &b->q[r.with];
        if (!crd_dimension_equal(&a->dimension, &g->where.dimension) ||
            (!isnan(g->with.min) && !crd_dimension_equal(&w->dimension, &g->with.dimension))) {
            return crdi_fail(b->ctx, CRD_E_RANGE,
                             "bench: avoid %s with %s: units differ from '%s' "
                             "and '%s' of the quantities",
                             g->where.name, g->with.name, a->unit, w->unit);
        }
        r.where_min = in_unit(a, &g->where, g->where.min);
        r.where_max = in_unit(a, &g->where, g->where.max);
        r.with_min = in_unit(w, &g->with, g->with.min);
        r.with_max = in_unit(w, &g->with, g->with.max);
        b->regions[b->region_count++] = r;
    }
    return CRD_OK;
}

static crd_status read_config(crd_dcp_bench* b)
{
    crd_status st = CRD_OK;
    const size_t count = (size_t)b->d->variable_count;
    const char* limits = b->c.limits ? b->c.limits : "";
    CRD_TRY(check_config(b->ctx, &b->c));
    CRD_TRY(crdi_dcp_limits_parse(b->ctx, limits, strlen(limits), &b->own));
    b->set = crdi_arena_new(&b->arena, count, sizeof *b->set);
    b->get = crdi_arena_new(&b->arena, count, sizeof *b->get);
    CRD_TRY(b->set && b->get ? CRD_OK : CRD_E_MEMORY);
    for (size_t i = 0; i < count; i++) {
        b->set[i] = b->get[i] = -1;
    }
    b->speed = -1;
    for (int i = 0; i < b->c.quantity_count; i++) {
        CRD_TRY(bench_read_quantity(b, i));
    }
    CRD_TRY(crdi_bench_add_regions(b, &b->own, true));
    b->own_regions = b->region_count;
    crdi_dcp_limits media;
    double tolerance;
    const char* initial = b->c.initial ? b->c.initial : "";
    CRD_TRY(crdi_dcp_initial_parse(b->ctx, initial, strlen(initial), &media, &tolerance));
    CRD_TRY(crdi_bench_read_media(b, &media, tolerance));
    b->declared = crdi_dcp_bench_find(b->d, &b->at);
    for (int i = 0; i < CRDI_LOG_COUNT; i++) {
        b->logs[i] = crdi_bench_template(b->d, i);
    }
fail:
    return st;
}

static double or_never(double seconds)
{
    return seconds > 0 ? seconds : INFINITY;
}

static void begin_safety(crd_dcp_bench* b)
{
    const crd_dcp_bench_config* c = &b->c;
    const double stage = or_never(c->stop_patience);
    crdi_safety_init(&b->safety, &(crdi_safety_times){.heart = crdi_dcp_heartbeat(b->d),
                                                      .watchdog = or_never(c->watchdog),
                                                      .speed = stage,
                                                      .voltage = stage,
                                                      .stand = stage,
                                                      .cool = or_never(c->cool_patience)});
}

crd_status crd_dcp_bench_create(crd_context* ctx, const crd_dcp_description* d,
                                const crd_dcp_bench_config* c, const crd_dcp_rig* rig,
                                crd_dcp_bench** out)
{
    crd_status st = CRD_OK;
    crd_dcp_bench* b = crdi_new(ctx, sizeof *b);
    if (!b) { return CRD_E_MEMORY; }
    b->ctx = ctx;
    b->d = d;
    b->c = *c;
    b->rig = *rig;
    b->safe_since = NAN;
    b->valid = b->valid_before = b->data_time = -INFINITY;
    crd_arena_init(&b->arena, ctx);
    CRD_TRY(read_config(b));
    begin_safety(b);
    crdi_bench_warn(b, false);
    *out = b;
    return CRD_OK;
fail:
    crd_dcp_bench_destroy(b);
    return st;
}

void crd_dcp_bench_destroy(crd_dcp_bench* b)
{
    if (!b) { return; }
    crd_arena_clear(&b->arena);
    crd_free(b->ctx, b);
}

void crd_dcp_bench_attach(crd_dcp_bench* b, crd_dcp_slave* s)
{
    b->slave = s;
    s->one_sender = true; // with and without keys: nobody but the master moves a machine
}

// ---- values ------------------------------------------------------------------------------------

// Data are valid if no value of theirs is refused; with the extension, if their number is new.
static void note_set_values(crd_dcp_bench* b, bool good, bool counts)
{
    const double now = b->slave->now;
    if (b->slave->state < CRD_DCP_RUNNING) { // remembered, and no sign of anything
        (void)crdi_safety_happens(&b->safety, CRDI_SAFETY_EARLY, now);
        return;
    }
    if (now != b->data_time) {
        b->data_time = now;
        b->data_bad = false;
        b->valid_before = b->valid;
    }
    if (!good) {
        b->data_bad = true;
        b->valid = b->valid_before;
        (void)crdi_safety_happens(&b->safety, CRDI_SAFETY_FOREIGN, now);
    } else if (counts && !b->data_bad) {
        b->valid = now;
    }
}

static void take_set_value(crd_dcp_bench* b, int i, double value)
{
    crdi_bench_quantity* q = &b->q[i];
    note_set_values(b, isfinite(value), !b->extension);
    if (isfinite(value)) {
        if (b->slave->state >= CRD_DCP_RUNNING) { q->taken = b->slave->now; }
        q->wanted = value;
        q->given = true;
        return;
    }
    b->refused++; // the last good one stays
    if (b->slave->now >= q->logged + 1) {
        q->logged = b->slave->now;
        crdi_bench_tell(b, CRDI_LOG_NOT_A_NUMBER, (const char*[]){q->spec->name, ""}, NULL);
    }
}

void crdi_bench_follow(crd_dcp_bench* b, int quantity, double value, bool data)
{
    crdi_bench_quantity* q = &b->q[quantity];
    if (data) {
        note_set_values(b, true, !b->extension);
        if (b->slave->state >= CRD_DCP_RUNNING) { q->taken = b->slave->now; }
    }
    if (isfinite(value)) {
        q->wanted = value;
        q->given = true;
    }
}

// The time of the last valid data; of a master that has several data_ids, of the one that is
// behind: no set value that moves something acts for longer than the watchdog after it came.
double crdi_bench_valid(const crd_dcp_bench* b)
{
    double time = b->valid;
    for (int i = 0; i < b->c.quantity_count; i++) {
        const crdi_bench_quantity* q = &b->q[i];
        const crd_dcp_role role = q->spec->role;
        const bool moves = role == CRD_DCP_ROLE_SPEED || role == CRD_DCP_ROLE_TORQUE ||
                           role == CRD_DCP_ROLE_VOLTAGE;
        if (moves && q->taken > -INFINITY && q->taken < time) { time = q->taken; }
    }
    return time;
}

static crd_dcp_outcome take_text(crd_dcp_bench* b, int i, const crd_dcp_slot* value)
{
    const uint32_t n = *value->byte_count;
    if (n > CRDI_DCP_LIMITS_TEXT) { return CRD_DCP_FAILED; }
    b->lengths[i] = n;
    if (n) { memcpy(b->texts[i], value->bytes, n); }
    return CRD_DCP_DONE;
}

// true: it was a variable of the extension.
static bool set_extension(crd_dcp_bench* b, int variable, const crd_dcp_slot* value,
                          crd_dcp_outcome* outcome)
{
    const crdi_dcp_bench_variables* at = &b->at;
    *outcome = CRD_DCP_DONE;
    if (variable == at->sequence) {
        const bool fresh = crdi_bench_take_number(&b->numbers, (uint32_t)*value->integer);
        if (fresh) { note_set_values(b, true, b->extension); }
    } else if (variable == at->echo) {
        crdi_bench_take_echo(&b->numbers, (uint32_t)*value->integer, b->slave->now);
    } else if (variable == at->extension) {
        b->extension = *value->integer == 1; // a version that we do not know is none
    } else if (variable == at->peer_limits) {
        *outcome = take_text(b, 0, value);
    } else if (variable == at->planned) {
        *outcome = take_text(b, 1, value);
    } else if (variable == at->initial) {
        *outcome = take_text(b, 2, value);
    } else {
        return variable == at->limits; // the bench's own, whatever the master says
    }
    return true;
}

static crd_dcp_outcome bench_set(void* user, int variable, const crd_dcp_slot* value)
{
    crd_dcp_bench* b = user;
    crd_dcp_outcome outcome;
    if (b->set[variable] >= 0) {
        take_set_value(b, b->set[variable], *value->real);
        return CRD_DCP_DONE;
    }
    if (b->declared && set_extension(b, variable, value, &outcome)) { return outcome; }
    return b->rig.set_variable ? b->rig.set_variable(b->rig.user, variable, value) : CRD_DCP_DONE;
}

static bool get_extension(crd_dcp_bench* b, int variable, crd_dcp_slot* value)
{
    const crdi_dcp_bench_variables* at = &b->at;
    if (variable == at->sequence_out) {
        crdi_bench_next_number(&b->numbers, b->slave->now);
        *value->integer = b->numbers.sent;
    } else if (variable == at->echo_out) {
        *value->integer = b->numbers.theirs;
    } else if (variable == at->status) {
        *value->integer = b->safety.phase;
    } else if (variable == at->reason) {
        *value->integer = b->reason;
    } else if (variable == at->clamped) {
        *value->integer = b->clamped;
    } else if (variable == at->clamps) {
        *value->integer = (uint32_t)b->clamps;
    } else if (variable == at->refused) {
        *value->integer = (uint32_t)b->refused;
    } else {
        return false;
    }
    return true;
}

static crd_dcp_outcome bench_get(void* user, int variable, crd_dcp_slot* value)
{
    crd_dcp_bench* b = user;
    if (b->get[variable] >= 0) {
        *value->real = b->q[b->get[variable]].measured;
        return CRD_DCP_DONE;
    }
    if (b->declared && get_extension(b, variable, value)) { return CRD_DCP_DONE; }
    return b->rig.get_variable ? b->rig.get_variable(b->rig.user, variable, value) : CRD_DCP_DONE;
}

// ---- states ------------------------------------------------------------------------------------

static void reset_bench(crd_dcp_bench* b)
{
    for (int i = 0; i < b->c.quantity_count; i++) {
        b->q[i].given = b->q[i].driven = false;
        b->q[i].taken = -INFINITY;
        b->q[i].logged = -INFINITY;
        b->q[i].outside = (crdi_safety_clamps){.since = NAN};
    }
    b->reason = CRD_DCP_BENCH_NO_REASON;
    b->clamped = 0;
    b->clamps = b->refused = 0;
    b->safe_since = NAN;
    b->conditioned = b->turned = false;
    b->valid = b->valid_before = b->data_time = -INFINITY;
    b->numbers = (crdi_bench_sequence){0};
}

// Behind a stop only STC_reset or a registration brings remote control back.
static void look_for_reset(crd_dcp_bench* b)
{
    if (b->slave->configurations == b->configurations) { return; }
    b->configurations = b->slave->configurations;
    (void)crdi_safety_happens(&b->safety, CRDI_SAFETY_RESET, b->slave->now);
}

static crd_dcp_outcome prepare_bench(crd_dcp_bench* b, double now)
{
    look_for_reset(b);
    if (!crdi_safety_happens(&b->safety, CRDI_SAFETY_PREPARE, now)) {
        crdi_bench_tell(b, CRDI_LOG_REFUSED,
                        (const char*[]){"the bench was stopped; it takes STC_reset, or a new "
                                        "registration",
                                        ""},
                        NULL);
        b->cause = CRD_DCP_BENCH_WITHDRAWN;
        crd_dcp_slave_fault(b->slave, CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE, now);
        return CRD_DCP_FAILED;
    }
    reset_bench(b);
    b->reported = -INFINITY;
    b->missing = UINT32_MAX; // whatever is missing is new
    if (!crdi_bench_agree(b, now)) { return CRD_DCP_FAILED; }
    crdi_bench_warn(b, true);
    for (int i = 0; i < b->c.calibrated_count; i++) {
        crdi_bench_tell(b, CRDI_LOG_CALIBRATED, (const char*[]){b->c.calibrated[i], ""}, NULL);
    }
    crdi_bench_check_items(b);
    return b->safety.phase == CRD_DCP_BENCH_PREPARED ? CRD_DCP_DONE : CRD_DCP_LATER;
}

static crd_dcp_outcome stop_bench(crd_dcp_bench* b, crd_dcp_bench_reason otherwise)
{
    crdi_bench_begin_stop(b, b->cause != CRD_DCP_BENCH_NO_REASON ? b->cause : otherwise);
    b->cause = CRD_DCP_BENCH_NO_REASON;
    const bool errors =
        b->slave->state == CRD_DCP_ERRORHANDLING && b->rig.error && b->rig.error(b->rig.user) != 0;
    return crdi_bench_stopped(b) && !errors ? CRD_DCP_DONE : CRD_DCP_LATER;
}

static crd_dcp_outcome bench_enter(void* user, crd_dcp_state state, double now)
{
    crd_dcp_bench* b = user;
    switch (state) {
    case CRD_DCP_PREPARING:
        return prepare_bench(b, now);
    case CRD_DCP_CONFIGURATION:
        look_for_reset(b);
        return CRD_DCP_DONE;
    case CRD_DCP_CONFIGURING:
        (void)crdi_safety_happens(&b->safety, CRDI_SAFETY_CONFIGURE, now);
        b->reported = -INFINITY;
        crdi_bench_condition(b);
        return b->conditioned ? CRD_DCP_DONE : CRD_DCP_LATER;
    case CRD_DCP_SYNCHRONIZING:
        crdi_safety_start(&b->safety, now, b->slave->mode == CRD_DCP_NRT ? now : b->slave->start);
        b->running = false; // until the second STC_run
        b->valid = b->valid_before = -INFINITY;
        b->numbers.has_back = false; // nobody has been sending for a while
        return CRD_DCP_DONE;
    case CRD_DCP_STOPPING:
        return stop_bench(b, CRD_DCP_BENCH_BY_MASTER);
    case CRD_DCP_ERRORHANDLING:
        return stop_bench(b, CRD_DCP_BENCH_SLAVE);
    default:
        return CRD_DCP_DONE;
    }
}

// In real time the rig has a time of its own; in NRT it is that of the steps.
static crd_dcp_outcome bench_step(void* user, int64_t steps_done, uint32_t steps, double resolution)
{
    crd_dcp_bench* b = user;
    (void)steps_done;
    if (b->slave->mode != CRD_DCP_NRT) { return CRD_DCP_DONE; }
    enum { MOST = 1000 };
    const double seconds = steps * resolution;
    const double parts = fmin(fmax(1, ceil(seconds / b->c.period - 1e-9)), MOST);
    for (int i = 0; i < (int)parts; i++) {
        crdi_bench_go_on(b, seconds / parts);
    }
    return CRD_DCP_DONE;
}

crd_dcp_plant crd_dcp_bench_plant(crd_dcp_bench* b)
{
    return (crd_dcp_plant){.user = b,
                           .enter = bench_enter,
                           .step = bench_step,
                           .set = bench_set,
                           .get = bench_get,
                           .next = crdi_bench_next,
                           .advance = crdi_bench_advance};
}

// ---- looking -----------------------------------------------------------------------------------

crd_dcp_bench_state crd_dcp_bench_get_state(const crd_dcp_bench* b)
{
    return (crd_dcp_bench_state){.phase = b->safety.phase,
                                 .reason = b->reason,
                                 .extension = b->extension,
                                 .remote = b->remote,
                                 .missing =
                                     b->safety.phase == CRD_DCP_BENCH_PREPARATION ? b->missing : 0,
                                 .clamped = b->clamped,
                                 .clamps = b->clamps,
                                 .refused = b->refused,
                                 .foreign = b->slave ? b->slave->counts.data_foreign : 0,
                                 .cut = b->safety.cut,
                                 .safe_since = b->safe_since,
                                 .valid = crdi_bench_valid(b),
                                 .time = b->time,
                                 .round_trip = b->numbers.round_trip};
}

double crd_dcp_bench_set_value(const crd_dcp_bench* b, int quantity)
{
    return b->q[quantity].set;
}
