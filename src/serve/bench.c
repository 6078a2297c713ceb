// A unit as a bench: its slave has a crd_dcp_bench between itself and the plant.
//
// The machine lives from STC_prepare on until it is reset: while its media are conditioned, in the
// run, and through the stop, which goes on whatever the master does. Its time is the bench's.
#include "serve/serve.h"
#include "shared/dcp_calibration.h"
#include "shared/system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct crdi_serve_bench {
    crdi_serve* s;
    const crdi_bench_file* f;
    crd_dcp_plant unit, own; // of the served unit, of the bench
    crd_dcp_bench* bench;
    crd_dcp_bench_config c;
    crd_dcp_quantity q[CRD_DCP_LIMITS_MAX];
    int set[CRD_DCP_LIMITS_MAX], get[CRD_DCP_LIMITS_MAX]; // variables
    int driven[CRDI_WAVES_MAX];                           // quantities of the wave ports
    int items[CRDI_BENCH_FILE_ITEMS];
    const char* names[CRDI_BENCH_FILE_ITEMS];
    char limits[1100];
    crdi_calibrations calibrations;
    char calibrated[CRDI_CALIBRATIONS_MAX][160];
    const char* calibrated_texts[CRDI_CALIBRATIONS_MAX];
    int sensors[CRDI_CALIBRATIONS_MAX]; // variables
    bool lives, remote, cut;
    double due;   // s that the unit is behind
    int64_t done; // resolutions
};

// ---- the rig -----------------------------------------------------------------------------------

static bool broken(const crdi_serve_bench* b)
{
    return b->s->phase == CRDI_PLANT_BROKEN || b->s->phase == CRDI_PLANT_ENDED;
}

// What a sensor of the unit reads is what its calibration makes of it, for the master, the limits
// and the stop alike.
static crd_dcp_outcome bench_rig_get_variable(void* user, int variable, crd_dcp_slot* value)
{
    crdi_serve_bench* b = user;
    const crd_dcp_outcome done = b->unit.get(b->unit.user, variable, value);
    for (int i = 0; i < b->calibrations.count && done == CRD_DCP_DONE; i++) {
        const crdi_calibration* c = &b->calibrations.of[i];
        if (b->sensors[i] == variable) { value->real[0] = c->gain * value->real[0] + c->offset; }
    }
    return done;
}

static double value_of(crdi_serve_bench* b, int variable)
{
    double real = NAN;
    int64_t integer = 0;
    crd_dcp_slot slot = {
        .type = b->s->d->variables[variable].type, .count = 1, .real = &real, .integer = &integer};
    if (bench_rig_get_variable(b, variable, &slot) != CRD_DCP_DONE) { return NAN; }
    return crdi_dcp_is_real(slot.type) ? real : (double)integer;
}

static void bench_rig_set(void* user, int quantity, double value)
{
    crdi_serve_bench* b = user;
    const int variable = b->set[quantity];
    if (variable < 0 || !b->lives || broken(b)) { return; }
    const crd_dcp_role role = b->q[quantity].role;
    if (b->cut && role != CRD_DCP_ROLE_VOLTAGE && role != CRD_DCP_ROLE_TEMPERATURE) { value = 0; }
    const crd_dcp_slot slot = {
        .type = b->s->d->variables[variable].type, .count = 1, .real = &value};
    (void)b->unit.set(b->unit.user, variable, &slot);
}

// Of a unit that is not there nothing moves.
static double bench_rig_measure(void* user, int quantity)
{
    crdi_serve_bench* b = user;
    return b->lives && !broken(b) ? value_of(b, b->get[quantity]) : 0;
}

static bool bench_rig_ready(void* user, int item)
{
    crdi_serve_bench* b = user;
    const double x = b->lives && !broken(b) ? value_of(b, b->items[item]) : 0;
    return isfinite(x) && x != 0;
}

// A unit that failed is gone; a reset makes another one.
static int bench_rig_error(void* user)
{
    const crdi_serve_bench* b = user;
    return b->remote && broken(b) ? 1 : 0;
}

static void bench_rig_remote(void* user, bool given)
{
    crdi_serve_bench* b = user;
    b->remote = given;
    if (given) { b->cut = false; }
}

static void bench_rig_step(void* user, double seconds)
{
    crdi_serve_bench* b = user;
    const double h = b->s->resolution;
    if (!b->lives || broken(b)) { return; }
    b->due += seconds;
    const double steps = floor(b->due / h + 1e-6);
    if (steps < 1) { return; }
    b->due -= steps * h;
    (void)b->unit.step(b->unit.user, b->done, (uint32_t)fmin(steps, 1e6), h);
    b->done += (int64_t)steps;
    for (int i = 0; i < b->s->wave_count; i++) {
        crdi_wave* w = &b->s->waves[i];
        crdi_wave_turn(w, b->bench, b->driven[i], steps * h, value_of(b, w->own),
                       value_of(b, b->get[b->driven[i]]));
    }
}

// There is no brake behind a unit: its set values are zero from here on.
static void bench_rig_cut(void* user)
{
    ((crdi_serve_bench*)user)->cut = true;
}

static crd_dcp_outcome bench_rig_set_variable(void* user, int variable, const crd_dcp_slot* value)
{
    crdi_serve_bench* b = user;
    return b->unit.set(b->unit.user, variable, value);
}

// ---- the plant ---------------------------------------------------------------------------------

static crd_dcp_outcome bench_plant_enter(void* user, crd_dcp_state state, double now)
{
    crdi_serve_bench* b = user;
    crd_dcp_outcome done = CRD_DCP_DONE;
    if (state == CRD_DCP_CONFIGURATION) {
        b->lives = b->cut = false;
        b->due = 0;
        b->done = 0;
        done = b->unit.enter(b->unit.user, state, now);
    } else if (state == CRD_DCP_PREPARING) {
        done = b->unit.enter(b->unit.user, CRD_DCP_PREPARING, now);
        if (done == CRD_DCP_DONE) {
            done = b->unit.enter(b->unit.user, CRD_DCP_SYNCHRONIZING, now);
        }
        b->lives = done == CRD_DCP_DONE;
    }
    return done == CRD_DCP_DONE ? b->own.enter(b->own.user, state, now) : done;
}

static crd_dcp_outcome bench_plant_step(void* user, int64_t done, uint32_t steps, double resolution)
{
    crdi_serve_bench* b = user;
    return b->own.step(b->own.user, done, steps, resolution);
}

static crd_dcp_outcome bench_plant_set(void* user, int variable, const crd_dcp_slot* value)
{
    crdi_serve_bench* b = user;
    return b->own.set(b->own.user, variable, value);
}

static crd_dcp_outcome bench_plant_get(void* user, int variable, crd_dcp_slot* value)
{
    crdi_serve_bench* b = user;
    return b->own.get(b->own.user, variable, value);
}

static double bench_plant_next(void* user)
{
    crdi_serve_bench* b = user;
    return b->own.next(b->own.user);
}

static void bench_plant_advance(void* user, double now)
{
    crdi_serve_bench* b = user;
    b->own.advance(b->own.user, now);
}

// ---- from the file -----------------------------------------------------------------------------

static crd_status fail_at(const crdi_serve_bench* b, int line, const char* path, const char* text)
{
    return crdi_fail(b->s->ctx, CRD_E_RANGE, "%s:%d: %s: %s", b->f->file, line, path, text);
}

typedef struct names {
    const crd_dcp_description* d;
    uint8_t causality;
    int at;
} names;

static const char* next_variable(void* user)
{
    names* n = user;
    while (n->at < n->d->variable_count) {
        const crd_dcp_variable* v = &n->d->variables[n->at++];
        if (v->causality == n->causality) { return v->name; }
    }
    return NULL;
}

static crd_status find_variable(const crdi_serve_bench* b, const char* name, uint8_t causality,
                                int line, const char* path, int* out)
{
    const crd_dcp_description* d = b->s->own;
    const int i = crdi_dcp_find_name(d, name);
    const crd_dcp_variable* v = i < 0 ? NULL : &d->variables[i];
    const bool input = causality == CRD_INPUT;
    if (v && v->causality == causality && v->rank == 0 && !crdi_dcp_is_bytes(v->type) &&
        (!input || crdi_dcp_is_real(v->type))) {
        *out = i;
        return CRD_OK;
    }
    names n = {d, causality, 0};
    const char* near = v ? NULL : crdi_nearest(name, next_variable, &n);
    char text[300];
    snprintf(text, sizeof text, "'%s' is %s, expected %s%s%s%s", crdi_clip(name).text,
             v ? "of another kind" : "no variable of the unit",
             input ? "an input of one real number" : "an output of one number",
             near ? ", did you mean '" : "", near ? crdi_clip(near).text : "", near ? "'?" : "");
    return fail_at(b, line, path, text);
}

// A number in the unit of the limits as one in that of the variables.
static double in_variable_unit(double x, const crdi_dcp_limit* l, const crd_dimension* v,
                               bool difference)
{
    if (!l || !v || !isfinite(x)) { return x; }
    const double offset = difference ? 0 : l->dimension.offset - v->offset;
    return (x * l->dimension.factor + offset) / v->factor;
}

// "NAME TEXT" as limits; what is wrong with it, with its line.
static crd_status read_range(crdi_serve_bench* b, const char* name, const char* text, int line,
                             const char* key, crdi_dcp_limit* out)
{
    char all[400], path[80];
    crdi_dcp_limits l;
    snprintf(path, sizeof path, "quantities.%s.%s", crdi_clip(name).text, key);
    const int n = snprintf(all, sizeof all, "%s %s", name, text);
    if (n >= (int)sizeof all) { return fail_at(b, line, path, "longer than 300 characters"); }
    if (crdi_dcp_limits_parse(b->s->ctx, all, (size_t)n, &l) < 0) {
        char why[300];
        snprintf(why, sizeof why, "%s", crd_error_text(b->s->ctx));
        return fail_at(b, line, path, why);
    }
    if (l.count != 1 || l.avoid_count > 0) {
        return fail_at(b, line, path, "expected one range as 0..6500 1/min rate 2000 1/min/s");
    }
    *out = l.of[0];
    return CRD_OK;
}

// The unit of the variables, which is that of the set values; they have the same one.
static crd_status unit_of(crdi_serve_bench* b, int i, const crdi_dcp_limit* l, crd_dimension* out,
                          bool* has)
{
    const crdi_bench_file_quantity* f = &b->f->quantities[i];
    const crd_dcp_variable* all = b->s->own->variables;
    const char* unit = all[b->get[i]].unit;
    char path[80], text[200];
    snprintf(path, sizeof path, "quantities.%s", crdi_clip(f->name).text);
    if (b->set[i] >= 0 &&
        strcmp(all[b->set[i]].unit ? all[b->set[i]].unit : "", unit ? unit : "") != 0) {
        snprintf(text, sizeof text, "%s is in '%s', %s in '%s', expected one unit", f->set,
                 crdi_clip(all[b->set[i]].unit).text, f->measured, crdi_clip(unit).text);
        return fail_at(b, f->line, path, text);
    }
    *has = unit && *unit && crdi_bench_dimension(unit, out);
    b->q[i].unit = *has ? unit : NULL;
    if (*has && l && !crd_dimension_equal(out, &l->dimension)) {
        snprintf(text, sizeof text, "its limits are in '%s', its variable %s in '%s'", l->unit,
                 f->measured, crdi_clip(unit).text);
        return fail_at(b, f->limits_line, path, text);
    }
    return CRD_OK;
}

static void take_numbers(crdi_serve_bench* b, int i, const crdi_dcp_limit* l,
                         const crd_dimension* v)
{
    const crdi_bench_file* f = b->f;
    crd_dcp_quantity* q = &b->q[i];
    q->conditioning = in_variable_unit(f->quantities[i].conditioning, l, v, false);
    q->safe = in_variable_unit(f->quantities[i].safe, l, v, false);
    q->cool_down = in_variable_unit(f->quantities[i].cool_down, l, v, false);
    if (q->role != CRD_DCP_ROLE_SPEED) { return; }
    crd_dcp_bench_config* c = &b->c;
    c->safe_speed = in_variable_unit(isnan(f->safe_speed) ? 100 : f->safe_speed, l, v, true);
    c->turn_speed = in_variable_unit(f->turn_speed, l, v, true);
    c->stop_rate = in_variable_unit(isnan(f->stop_rate) ? NAN : f->stop_rate, l, v, true);
    c->standstill = in_variable_unit(isnan(f->standstill) ? 1 : f->standstill, l, v, true);
    if (l && v) { c->induced *= v->factor / l->dimension.factor; }
}

static crd_status take_quantity(crdi_serve_bench* b, int i)
{
    crd_status st = CRD_OK;
    const crdi_bench_file_quantity* f = &b->f->quantities[i];
    crd_dcp_quantity* q = &b->q[i];
    crdi_dcp_limit limit, trip;
    crd_dimension dimension;
    bool has = false;
    char path[100];
    *q = crd_dcp_quantity_defaults();
    *q = (crd_dcp_quantity){.name = f->name,
                            .role = (crd_dcp_role)f->role,
                            .input = f->set,
                            .output = f->measured,
                            .trip_min = NAN,
                            .trip_max = NAN};
    b->set[i] = -1;
    snprintf(path, sizeof path, "quantities.%s.set", crdi_clip(f->name).text);
    if (f->set) { CRD_TRY(find_variable(b, f->set, CRD_INPUT, f->set_line, path, &b->set[i])); }
    snprintf(path, sizeof path, "quantities.%s.measured", crdi_clip(f->name).text);
    CRD_TRY(find_variable(b, f->measured, CRD_OUTPUT, f->measured_line, path, &b->get[i]));
    if (f->limits) {
        CRD_TRY(read_range(b, f->name, f->limits, f->limits_line, "limits", &limit));
        const bool drives = q->role >= CRD_DCP_ROLE_SPEED && q->role <= CRD_DCP_ROLE_VOLTAGE;
        if (drives && !(isfinite(limit.min) && isfinite(limit.max))) {
            snprintf(path, sizeof path, "quantities.%s.limits", crdi_clip(f->name).text);
            return fail_at(b, f->limits_line, path,
                           "expected a lower and an upper bound, as 0..6500 1/min");
        }
        if (drives && f->set && !(limit.min < limit.max)) {
            snprintf(path, sizeof path, "quantities.%s.limits", crdi_clip(f->name).text);
            return fail_at(b, f->limits_line, path,
                           "a range of one value, expected a lower bound below the upper one");
        }
    }
    CRD_TRY(unit_of(b, i, f->limits ? &limit : NULL, &dimension, &has));
    take_numbers(b, i, f->limits ? &limit : NULL, has ? &dimension : NULL);
    if (f->trip) {
        CRD_TRY(read_range(b, f->name, f->trip, f->trip_line, "trip", &trip));
        if (isfinite(trip.min)) {
            q->trip_min = in_variable_unit(trip.min, &trip, has ? &dimension : NULL, false);
        }
        if (isfinite(trip.max)) {
            q->trip_max = in_variable_unit(trip.max, &trip, has ? &dimension : NULL, false);
        }
    }
fail:
    return st;
}

static crd_status join_limits(crdi_serve_bench* b)
{
    size_t n = 0;
    for (int i = 0; i <= b->f->quantity_count; i++) {
        const bool last = i == b->f->quantity_count;
        const crdi_bench_file_quantity* q = &b->f->quantities[last ? 0 : i];
        const char* text = last ? b->f->avoid : q->limits;
        if (!text) { continue; }
        n += (size_t)snprintf(b->limits + n, sizeof b->limits - n, "%s%s %s", n ? "; " : "",
                              last ? "avoid" : q->name, text);
        if (n >= sizeof b->limits) {
            return fail_at(b, q->line, "quantities", "limits of more than 1000 characters");
        }
    }
    crdi_dcp_limits all;
    if (crdi_dcp_limits_parse(b->s->ctx, b->limits, n, &all) < 0) { // each of the others was fine
        char why[300];
        snprintf(why, sizeof why, "%s", crd_error_text(b->s->ctx));
        return fail_at(b, b->f->avoid_line, "avoid", why);
    }
    b->c.limits = b->limits;
    return CRD_OK;
}

// What a port drives has a measured value: it is booked as it was, not as it was asked for.
static crd_status find_driven(crdi_serve_bench* b)
{
    for (int i = 0; i < b->s->wave_count; i++) {
        const crdi_wave* w = &b->s->waves[i];
        int k = 0;
        while (k < b->f->quantity_count && b->set[k] != w->input) {
            k++;
        }
        if (k == b->f->quantity_count) {
            return crdi_fail(b->s->ctx, CRD_E_RANGE,
                             "%s: no quantity has 'set: %s', expected one: the pair at that input "
                             "acts through its limits",
                             b->f->file, w->name);
        }
        b->driven[i] = k;
    }
    return CRD_OK;
}

static void take_if(double* to, double x)
{
    if (!isnan(x)) { *to = x; }
}

static crd_status take_calibrations(crdi_serve_bench* b)
{
    const char* file = b->f->calibration;
    const crd_dcp_description* d = b->s->own;
    const crd_status st = crdi_calibrations_load(b->s->ctx, file, &b->calibrations);
    for (int i = 0; st == CRD_OK && i < b->calibrations.count; i++) {
        const crdi_calibration* c = &b->calibrations.of[i];
        const int at = crdi_dcp_find_name(d, c->name);
        const crd_dcp_variable* v = at < 0 ? NULL : &d->variables[at];
        if (!v || v->causality != CRD_OUTPUT || v->rank > 0 || !crdi_dcp_is_real(v->type) ||
            strcmp(v->unit ? v->unit : "", c->unit) != 0) {
            return crdi_fail(b->s->ctx, CRD_E_RANGE,
                             "%s: calibration of %s in %s: the unit has no such output in that "
                             "unit",
                             file, c->name, c->unit);
        }
        b->sensors[i] = at;
        crdi_calibration_print(c, b->calibrated[i], sizeof b->calibrated[i]);
        b->calibrated_texts[i] = b->calibrated[i];
    }
    b->c.calibrated = b->calibrated_texts;
    b->c.calibrated_count = b->calibrations.count;
    return st;
}

static crd_status configure(crdi_serve_bench* b)
{
    crd_status st = CRD_OK;
    const crdi_bench_file* f = b->f;
    crd_dcp_bench_config* c = &b->c;
    *c = crd_dcp_bench_defaults();
    take_if(&c->induced, f->induced);
    for (int i = 0; i < f->quantity_count; i++) {
        CRD_TRY(take_quantity(b, i));
    }
    for (int i = 0; i < f->item_count; i++) {
        CRD_TRY(find_variable(b, f->variables[i], CRD_OUTPUT, f->item_lines[i], "checklist",
                              &b->items[i]));
        b->names[i] = f->items[i];
    }
    c->quantities = b->q;
    c->quantity_count = f->quantity_count;
    c->checklist = b->names;
    c->checklist_count = f->item_count;
    c->initial = f->initial ? f->initial : "";
    take_if(&c->tolerance, f->tolerance);
    take_if(&c->watchdog, f->watchdog);
    take_if(&c->heartbeat, f->heartbeat);
    take_if(&c->stop_patience, f->patience);
    take_if(&c->cool_patience, f->cool_patience);
    c->period = fmax(b->s->resolution, 1e-3);
    take_if(&c->period, f->period);
    CRD_TRY(join_limits(b));
    if (f->calibration) { CRD_TRY(take_calibrations(b)); }
fail:
    return st;
}

// Behind the references of the unit's own variables.
static crd_status declare(crdi_serve_bench* b)
{
    crd_status st = CRD_OK;
    crd_dcp_description* d = b->s->own;
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    uint64_t first = 1;
    for (int i = 0; i < d->variable_count; i++) {
        if (d->variables[i].vr >= first) { first = d->variables[i].vr + 1; }
    }
    CRD_TRY(crd_dcp_bench_declare(d, &b->c, first));
    d->uuid[15] ^= 0xBE; // another slave than the unit without it
    CRD_TRY(crd_dcp_validate(d, &findings, &count));
fail:
    return st;
}

// What a file does not speak of has no limits, and no stop takes it back. `count`: of the unit's
// own.
static void warn_of_others(const crdi_serve_bench* b, int count)
{
    char list[200] = "";
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        const crd_dcp_variable* v = &b->s->own->variables[i];
        bool other = v->causality == CRD_INPUT;
        for (int k = 0; k < b->f->quantity_count && other; k++) {
            other = b->set[k] != i;
        }
        if (!other || n >= sizeof list) { continue; }
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", v->name);
    }
    if (n == 0) { return; }
    crdi_log(b->s->ctx, CRD_LOG_WARNING,
             "%s: inputs without a role have no limits and are set as they come, before a run and "
             "in a stop, too: %s%s",
             b->f->file, list, n >= sizeof list ? "..." : "");
}

crd_status crdi_serve_as_bench(crdi_serve* s, const crdi_bench_file* f)
{
    crd_status st = CRD_OK;
    crdi_serve_bench* b = crdi_arena_new(&s->arena, 1, sizeof *b);
    if (!b) { return CRD_E_MEMORY; }
    *b = (crdi_serve_bench){.s = s, .f = f, .unit = crdi_serve_plant(s)};
    if (s->d != s->own) {
        return crdi_fail(s->ctx, CRD_E_UNSUPPORTED,
                         "a bench has the description that is made for it, not another one");
    }
    CRD_TRY(configure(b));
    CRD_TRY(find_driven(b));
    const int count = s->outlet_count;
    CRD_TRY(declare(b));
    const crd_dcp_rig rig = {.user = b,
                             .set = bench_rig_set,
                             .measure = bench_rig_measure,
                             .ready = bench_rig_ready,
                             .error = bench_rig_error,
                             .remote = bench_rig_remote,
                             .step = bench_rig_step,
                             .set_variable = bench_rig_set_variable,
                             .get_variable = bench_rig_get_variable,
                             .cut = bench_rig_cut};
    st = crd_dcp_bench_create(s->ctx, s->own, &b->c, &rig, &b->bench);
    if (st < 0) { return crdi_fail_in(s->ctx, st, "%s", f->file); }
    b->own = crd_dcp_bench_plant(b->bench);
    s->bench = b;
    warn_of_others(b, count);
fail:
    return st;
}

crd_dcp_plant crdi_serve_bench_plant(crdi_serve_bench* b)
{
    return (crd_dcp_plant){.user = b,
                           .enter = bench_plant_enter,
                           .step = bench_plant_step,
                           .set = bench_plant_set,
                           .get = bench_plant_get,
                           .next = bench_plant_next,
                           .advance = bench_plant_advance};
}

void crdi_serve_bench_attach(crdi_serve_bench* b, crd_dcp_slave* slave)
{
    crd_dcp_bench_attach(b->bench, slave);
}

void crdi_serve_bench_stop(crdi_serve_bench* b, double now)
{
    crd_dcp_bench_stop(b->bench, now);
}

void crdi_serve_bench_close(crdi_serve_bench* b)
{
    if (b) { crd_dcp_bench_destroy(b->bench); }
}

bool crdi_serve_at_rest(const crdi_serve* s)
{
    if (!s->bench) { return true; }
    const crd_dcp_bench_phase p = crd_dcp_bench_get_state(s->bench->bench).phase;
    return p == CRD_DCP_BENCH_IDLE || p == CRD_DCP_BENCH_SAFE || p == CRD_DCP_BENCH_PREPARATION;
}
