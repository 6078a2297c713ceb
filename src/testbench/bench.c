// An emulated bench as a slave: its description, its rig, its options.
#include "testbench/bench.h"
#include "shared/base.h"
#include "shared/unit_wave.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct crdi_testbench {
    crd_context* ctx;
    crdi_plant plant;
    double speed_up;
    crd_dcp_quantity quantities[CRDI_QUANTITIES];
    crd_dcp_bench_config config;
    crd_dcp_variable variables[CRDI_SIGNALS];
    crd_dcp_unit units[CRDI_SIGNALS];
    crdi_wave waves[CRDI_WAVES_MAX];
    int driven[CRDI_WAVES_MAX]; // their quantities
    int wave_count;
    char host[16];
    crd_dcp_description* description;
    crd_dcp_bench* bench;
    crd_dcp_slave* slave;
    crdi_testbench_observer* observer;
    void* observer_user;
    char why[160];
    char calibrated[CRDI_CALIBRATIONS_MAX][160];
    const char* calibrated_texts[CRDI_CALIBRATIONS_MAX];
};

// ---- kinds, faults, signals --------------------------------------------------------------------

const char* crdi_testbench_kind_name(int kind)
{
    const crdi_plant_type* type = crdi_plant_type_of(kind);
    return type ? type->name : NULL;
}

const char* crdi_testbench_fault_name(int kind)
{
    static const char* const names[CRDI_TESTBENCH_FAULT_COUNT] = {
        "overtemperature", "sensor-loss",   "stuck-torque",
        "coolant-loss",    "speed-runaway", "emergency-stop"};
    return kind < 0 || kind >= CRDI_TESTBENCH_FAULT_COUNT ? NULL : names[kind];
}

const crdi_testbench_signal* crdi_testbench_signals(crdi_testbench_kind kind, int* count)
{
    const crdi_plant_type* type = crdi_plant_type_of((int)kind);
    *count = type->signal_count;
    return type->signals;
}

int crdi_testbench_find(crdi_testbench_kind kind, const char* name)
{
    const crdi_plant_type* type = crdi_plant_type_of((int)kind);
    for (int i = 0; i < type->signal_count; i++) {
        if (strcmp(type->signals[i].name, name) == 0) { return i; }
    }
    return -1;
}

static bool is_word(const char* text, size_t length, const char* word)
{
    return strlen(word) == length && strncmp(text, word, length) == 0;
}

static crd_status read_sensor(crd_context* ctx, const crdi_plant_type* type, const char* text,
                              size_t length, crdi_testbench_fault* out)
{
    for (int i = type->input_count; i < type->signal_count; i++) {
        if (is_word(text, length, type->signals[i].name)) {
            out->signal = i;
            return CRD_OK;
        }
    }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "fault sensor-loss: the %s has no output '%.*s'; expected one such as "
                     "sensor-loss:speed",
                     type->title, (int)length, text);
}

static crd_status read_kind(crd_context* ctx, const crdi_plant_type* type, const char* text,
                            size_t length, crdi_testbench_fault* out)
{
    const char* colon = memchr(text, ':', length);
    const size_t word = colon ? (size_t)(colon - text) : length;
    int kind = 0;
    while (kind < CRDI_TESTBENCH_FAULT_COUNT &&
           !is_word(text, word, crdi_testbench_fault_name(kind))) {
        kind++;
    }
    if (kind == CRDI_TESTBENCH_FAULT_COUNT) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "fault '%.*s', expected overtemperature, sensor-loss:OUTPUT, "
                         "stuck-torque, coolant-loss, speed-runaway or emergency-stop",
                         (int)length, text);
    }
    out->kind = (crdi_testbench_fault_kind)kind;
    if (kind == CRDI_TESTBENCH_COOLANT_LOSS && !type->media) {
        return crdi_fail(ctx, CRD_E_RANGE, "fault coolant-loss: the %s has no coolant",
                         type->title);
    }
    if (kind == CRDI_TESTBENCH_SPEED_RUNAWAY && !(type->drive.inertia > 0)) {
        return crdi_fail(ctx, CRD_E_RANGE, "fault speed-runaway: the %s has no shaft", type->title);
    }
    if (kind == CRDI_TESTBENCH_SENSOR_LOSS) {
        return read_sensor(ctx, type, text + word + (colon ? 1 : 0),
                           length - word - (colon ? 1 : 0), out);
    }
    return colon ? crdi_fail(ctx, CRD_E_RANGE, "fault '%.*s': %s is of no output", (int)length,
                             text, crdi_testbench_fault_name(kind))
                 : CRD_OK;
}

crd_status crdi_testbench_fault_parse(crd_context* ctx, crdi_testbench_kind kind, const char* text,
                                      crdi_testbench_fault* out)
{
    const char* at = strrchr(text, '@');
    crdi_testbench_fault f = {.signal = -1};
    crd_dimension dim;
    bool bare = false;
    const crd_dimension second = {.factor = 1, .s = 1};
    if (!at || !crd_quantity_parse(at + 1, &f.at, &dim, &bare) ||
        !(bare || crd_dimension_equal(&dim, &second)) || !(f.at >= 0) || isinf(f.at)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "fault '%s', expected a kind and its time in the run, such as "
                         "overtemperature@30s",
                         crdi_clip(text).text);
    }
    const crd_status st =
        read_kind(ctx, crdi_plant_type_of((int)kind), text, (size_t)(at - text), &f);
    if (st == CRD_OK) { *out = f; }
    return st;
}

// ---- the rig -----------------------------------------------------------------------------------

static void rig_set(void* user, int quantity, double value)
{
    crdi_testbench* b = user;
    const crdi_plant_quantity* q = &b->plant.type->quantities[quantity];
    if (q->input >= 0) {
        b->plant.set[q->input] = value;
    } else if (q->role == CRD_DCP_ROLE_TEMPERATURE) {
        b->plant.cap = value; // of the machine itself: its medium goes there
    }
}

// A controller that has withdrawn itself goes on with substitutes: the resolver of the drive, the
// model of a temperature.
static double rig_measure(void* user, int quantity)
{
    const crdi_testbench* b = user;
    const int i = b->plant.type->quantities[quantity].output;
    return b->plant.lost_sensor[i] && !b->plant.remote ? b->plant.value[i] : b->plant.measured[i];
}

static bool rig_ready(void* user, int item)
{
    const crdi_testbench* b = user;
    return !(crdi_plant_missing(&b->plant) & 1u << item);
}

// While the bench is driven, a loss is told by its item; behind the stop it stands in the memory of
// errors until it is acknowledged.
static int rig_error(void* user)
{
    const crdi_testbench* b = user;
    return b->plant.remote ? 0 : (int)b->plant.lost;
}

// Which measured value or item it was.
static void note_why(crdi_testbench* b)
{
    const crdi_plant_type* type = b->plant.type;
    const uint32_t missing = crdi_plant_missing(&b->plant);
    for (int i = 0; i < CRDI_ITEMS && !b->why[0]; i++) {
        if (missing & 1u << i) { snprintf(b->why, sizeof b->why, "lost %s", type->checklist[i]); }
    }
    for (int i = 0; i < type->quantity_count && !b->why[0]; i++) {
        const crdi_plant_quantity* q = &type->quantities[i];
        const double x = b->plant.measured[q->output];
        if (x >= q->trip_min && x <= q->trip_max) { continue; }
        const crdi_testbench_signal* s = &type->signals[q->output];
        snprintf(b->why, sizeof b->why, "%s = %.5g %s, allowed %g to %g", s->name, x, s->unit,
                 q->trip_min, q->trip_max);
    }
}

static void rig_remote(void* user, bool given)
{
    crdi_testbench* b = user;
    b->plant.remote = given;
    b->why[0] = 0;
    if (!given) {
        note_why(b);
        return;
    }
    b->plant.cap = NAN;
    for (int i = 0; i < b->plant.type->quantity_count; i++) { // held as they are, until told
        const crdi_plant_quantity* q = &b->plant.type->quantities[i];
        if (q->role == CRD_DCP_ROLE_TEMPERATURE && q->input >= 0) { b->plant.set[q->input] = NAN; }
    }
}

static void rig_step(void* user, double seconds)
{
    crdi_testbench* b = user;
    const crd_dcp_bench_phase phase = crd_dcp_bench_get_state(b->bench).phase;
    b->plant.running = phase == CRD_DCP_BENCH_RUN;
    b->plant.at_rest = phase == CRD_DCP_BENCH_IDLE || phase == CRD_DCP_BENCH_SAFE;
    b->plant.thermal_scale =
        phase == CRD_DCP_BENCH_CONDITIONING || phase == CRD_DCP_BENCH_COOL_DOWN ? b->speed_up : 1;
    crdi_plant_step(&b->plant, seconds);
    for (int i = 0; i < b->wave_count; i++) {
        const int k = b->driven[i], real = b->plant.type->quantities[k].output;
        crdi_wave_turn(&b->waves[i], b->bench, k, seconds, b->plant.measured[b->waves[i].own],
                       b->plant.measured[real]);
    }
    if (b->observer) { b->observer(b->observer_user, crdi_plant_time(&b->plant)); }
}

static void rig_cut(void* user)
{
    crdi_testbench* b = user;
    b->plant.torque_off = b->plant.load_off = true;
}

static bool rig_range(void* user, int quantity, double* min, double* max)
{
    const crdi_testbench* b = user;
    const crdi_plant_type* type = b->plant.type;
    const int input = type->quantities[quantity].input;
    return type->range && input >= 0 && type->range(&b->plant, input, min, max);
}

static crd_dcp_outcome rig_get(void* user, int variable, crd_dcp_slot* value)
{
    const crdi_testbench* b = user;
    *value->real = b->plant.measured[variable];
    return CRD_DCP_DONE;
}

// ---- its description ---------------------------------------------------------------------------

static void describe_variable(crdi_testbench* b, int i)
{
    const crdi_testbench_signal* s = &b->plant.type->signals[i];
    crd_dcp_variable* v = &b->variables[i];
    *v = crd_dcp_variable_defaults();
    v->name = s->name;
    v->description = s->description;
    v->vr = (uint64_t)i + 1;
    v->causality = s->input ? CRD_INPUT : CRD_OUTPUT;
    v->variability = CRD_CONTINUOUS;
    v->type = CRD_DCP_FLOAT64;
    v->unit = s->unit;
    v->start = "0";
    if (s->input) {
        v->min = s->min;
        v->max = s->max;
        if (strcmp(s->unit, "degC") == 0) { v->start = "25"; }
    } else {
        v->fixed_steps = false;
        v->default_steps = v->min_steps = 1;
        v->max_steps = 10000;
    }
}

static int bench_add_units(crdi_testbench* b)
{
    int count = 0;
    for (int i = 0; i < b->plant.type->signal_count; i++) {
        const char* name = b->plant.type->signals[i].unit;
        int k = 0;
        while (k < count && strcmp(b->units[k].name, name) != 0) {
            k++;
        }
        if (k < count) { continue; }
        crd_dcp_unit* u = &b->units[count++];
        crd_dimension d;
        *u = (crd_dcp_unit){.name = name, .factor = 1};
        if (crd_dimension_parse(name, &d)) {
            const int8_t exponents[8] = {d.kg, d.m, d.s, d.A, d.K, d.mol, d.cd, d.rad};
            memcpy(u->exponents, exponents, sizeof exponents);
            u->has_base = true;
            u->factor = d.factor;
            u->offset = d.offset;
        }
    }
    return count;
}

static crd_dcp_endpoint endpoint(crdi_testbench* b, const crd_dcp_address* a)
{
    static const crd_dcp_ports ports[] = {{1024, 65535}};
    snprintf(b->host, sizeof b->host, "%u.%u.%u.%u", a->ip >> 24, a->ip >> 16 & 255,
             a->ip >> 8 & 255, a->ip & 255);
    return (crd_dcp_endpoint){.offered = true,
                              .max_pdu_size = 65507,
                              .host = b->host,
                              .port = a->port,
                              .has_data = true,
                              .has_parameter = true,
                              .data_host = "",
                              .parameter_host = "",
                              .data = ports,
                              .parameter = ports,
                              .data_count = 1,
                              .parameter_count = 1};
}

static crd_status describe(crdi_testbench* b, const crd_dcp_address* address)
{
    static const crd_dcp_resolution resolutions[] = {
        {.numerator = 1, .numerator_to = 1, .denominator = 1000, .recommended = true},
        {.numerator = 1, .numerator_to = 1, .denominator = 100}};
    const crdi_plant_type* type = b->plant.type;
    crd_status st = CRD_OK;
    CRD_TRY(crd_dcp_description_create(b->ctx, &b->description));
    crd_dcp_description* d = b->description;
    d->file = type->name;
    d->name = type->title;
    d->description = "emulated test bench";
    memcpy(d->uuid, type->uuid, sizeof d->uuid);
    d->major = 1;
    d->hrt = d->srt = d->nrt = true;
    d->nrt_default_steps = d->nrt_min_steps = 1;
    d->nrt_max_steps = 1000;
    d->nrt_fixed_steps = false;
    d->resolutions = resolutions;
    d->resolution_count = 2;
    crd_dcp_endpoint* e = address->transport == CRD_DCP_TCP ? &d->tcp : &d->udp;
    *e = endpoint(b, address);
    d->can_accept_config = d->can_vary_steps = true;
    for (int i = 0; i < type->signal_count; i++) {
        describe_variable(b, i);
    }
    d->variables = b->variables;
    d->variable_count = type->signal_count;
    d->units = b->units;
    d->unit_count = bench_add_units(b);
    CRD_TRY(crd_dcp_bench_declare(d, &b->config, 100));
fail:
    return st;
}

static void configure(crdi_testbench* b, const crdi_testbench_options* opt)
{
    const crdi_plant_type* type = b->plant.type;
    for (int i = 0; i < type->quantity_count; i++) {
        const crdi_plant_quantity* q = &type->quantities[i];
        crd_dcp_quantity* to = &b->quantities[i];
        *to = crd_dcp_quantity_defaults();
        to->name = q->name;
        to->unit = q->unit;
        to->role = q->role;
        to->input = q->input < 0 ? NULL : type->signals[q->input].name;
        to->output = type->signals[q->output].name;
        to->conditioning = q->conditioning;
        to->trip_min = q->trip_min;
        to->trip_max = q->trip_max;
        to->cool_down = q->cool_down;
        if (type->moves.of && i == type->moves.quantity) {
            to->of = type->moves.of;
            to->factor = type->moves.factor;
        }
    }
    b->config = crd_dcp_bench_defaults();
    b->config.limits = type->limits;
    b->config.quantities = b->quantities;
    b->config.quantity_count = type->quantity_count;
    b->config.checklist = type->checklist;
    b->config.checklist_count = CRDI_ITEMS;
    b->config.induced = type->induced;
    b->config.stop_rate = type->stop_rate;
    b->config.turn_speed = type->turn_speed;
    b->config.watchdog = opt->watchdog;
    b->config.heartbeat = opt->heartbeat;
    b->config.stop_patience = type->stop_time;
    b->config.period = 1e-3;
    b->config.gap_limit = 1000; // at 1 kHz
    b->config.report = fmax(0.25, b->config.report / b->speed_up);
}

// What a port drives is booked as it was measured.
static crd_status add_ports(crdi_testbench* b, const crdi_testbench_options* opt)
{
    const crdi_plant_type* type = b->plant.type;
    for (; b->wave_count < opt->pair_count; b->wave_count++) {
        crdi_wave* w = &b->waves[b->wave_count];
        const crd_status st =
            crdi_wave_declare(b->description, opt->pairs[b->wave_count], opt->life, w);
        if (st < 0) { return st; }
        int k = 0;
        while (k < type->quantity_count && type->quantities[k].input != w->input) {
            k++;
        }
        if (k == type->quantity_count) {
            return crdi_fail(b->ctx, CRD_E_RANGE,
                             "pair '%s': the %s does not measure what it sets there, expected an "
                             "input with a measured value",
                             w->name, type->title);
        }
        b->driven[b->wave_count] = k;
    }
    return CRD_OK;
}

// ---- create ------------------------------------------------------------------------------------

crdi_testbench_options crdi_testbench_defaults(crdi_testbench_kind kind)
{
    return (crdi_testbench_options){.kind = kind,
                                    .seed = 1,
                                    .speed_up = 1,
                                    .watchdog = 0.5,
                                    .heartbeat = 3,
                                    .soc = 0.5,
                                    .life = 1,
                                    .address = {0x7F000001, 8080, CRD_DCP_UDP}};
}

static crd_status bench_check_options(crd_context* ctx, const crdi_testbench_options* o)
{
    if (!crdi_plant_type_of((int)o->kind)) {
        return crdi_fail(ctx, CRD_E_RANGE, "testbench: kind %d, expected 0 to %d", (int)o->kind,
                         CRDI_TESTBENCH_KIND_COUNT - 1);
    }
    if (!(o->speed_up >= 1 && o->speed_up <= 1000)) {
        return crdi_fail(ctx, CRD_E_RANGE, "testbench: speed-up %g, expected 1 to 1000",
                         o->speed_up);
    }
    if (!(o->start_up >= 0) || isinf(o->start_up)) {
        return crdi_fail(ctx, CRD_E_RANGE, "testbench: start-up %g s, expected >= 0", o->start_up);
    }
    if (o->pair_count > CRDI_WAVES_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "testbench: %d pairs, expected %d at most",
                         o->pair_count, CRDI_WAVES_MAX);
    }
    if (!(o->soc >= 0 && o->soc <= 1)) {
        return crdi_fail(ctx, CRD_E_RANGE, "testbench: charge %g, expected 0 to 1", o->soc);
    }
    if (o->fault_count < 0 || o->fault_count > CRDI_TESTBENCH_FAULTS_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE, "testbench: %d faults, expected up to %d",
                         o->fault_count, CRDI_TESTBENCH_FAULTS_MAX);
    }
    const crdi_plant_type* type = crdi_plant_type_of((int)o->kind);
    for (int i = 0; i < o->fault_count; i++) {
        const crdi_testbench_fault* f = &o->faults[i];
        const bool output = f->signal >= type->input_count && f->signal < type->signal_count;
        if (!crdi_testbench_fault_name((int)f->kind) || !(f->at >= 0) ||
            (f->kind == CRDI_TESTBENCH_SENSOR_LOSS && !output) ||
            (f->kind == CRDI_TESTBENCH_COOLANT_LOSS && !type->media)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "testbench: fault %d (kind %d, signal %d, at %g s) is none of the %s",
                             i + 1, (int)f->kind, f->signal, f->at, type->title);
        }
    }
    return CRD_OK;
}

crd_status crdi_testbench_misread_parse(crd_context* ctx, crdi_testbench_kind kind,
                                        const char* text, crdi_testbench_misread* out)
{
    char name[32] = "";
    int end = 0;
    const crdi_plant_type* type = crdi_plant_type_of((int)kind);
    out->offset = 0;
    const int n = sscanf(text, "%31[^=]=%lf%n%lf%n", name, &out->gain, &end, &out->offset, &end);
    out->signal = crdi_testbench_find(kind, name);
    if (n >= 2 && !text[end] && out->signal >= type->input_count && isfinite(out->gain) &&
        isfinite(out->offset)) {
        return CRD_OK;
    }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "'%s', expected an output of the bench, the gain and the offset that it reads "
                     "with, as torque=1.02+0.5",
                     crdi_clip(text).text);
}

// What its sensors read wrong, and what a calibration makes of it.
static crd_status bench_set_sensors(crdi_testbench* b, const crdi_testbench_options* opt)
{
    const crdi_plant_type* type = b->plant.type;
    for (int i = 0; i < opt->misread_count; i++) {
        crdi_bench_sensor* s = &b->plant.sensors[opt->misread[i].signal];
        s->wrong = true;
        s->gain = opt->misread[i].gain;
        s->offset = opt->misread[i].offset;
    }
    for (int i = 0; opt->calibrations && i < opt->calibrations->count; i++) {
        const crdi_calibration* c = &opt->calibrations->of[i];
        const int signal = crdi_testbench_find(opt->kind, c->name);
        if (signal < type->input_count || strcmp(type->signals[signal].unit, c->unit) != 0) {
            return crdi_fail(b->ctx, CRD_E_RANGE,
                             "calibration of %s in %s: the bench has no such output in that unit",
                             c->name, c->unit);
        }
        b->plant.sensors[signal].corrected = true;
        b->plant.sensors[signal].calibrated = c->gain;
        b->plant.sensors[signal].correction = c->offset;
        crdi_calibration_print(c, b->calibrated[i], sizeof b->calibrated[i]);
        b->calibrated_texts[i] = b->calibrated[i];
    }
    b->config.calibrated = b->calibrated_texts;
    b->config.calibrated_count = opt->calibrations ? opt->calibrations->count : 0;
    return CRD_OK;
}

crd_status crdi_testbench_create(crd_context* ctx, const crdi_testbench_options* opt,
                                 crdi_testbench** out)
{
    crd_status st = bench_check_options(ctx, opt);
    if (st < 0) { return st; }
    crdi_testbench* b = crdi_new(ctx, sizeof *b);
    if (!b) { return CRD_E_MEMORY; }
    b->ctx = ctx;
    b->speed_up = opt->speed_up;
    crdi_plant_init(&b->plant, crdi_plant_type_of((int)opt->kind), opt->seed);
    if (opt->kind == CRDI_TESTBENCH_BATTERY) { b->plant.inner[b->plant.type->charge] = opt->soc; }
    b->plant.ideal = opt->ideal;
    b->plant.start_up = opt->start_up;
    memcpy(b->plant.faults, opt->faults, sizeof opt->faults);
    b->plant.fault_count = opt->fault_count;
    configure(b, opt);
    CRD_TRY(bench_set_sensors(b, opt));
    CRD_TRY(describe(b, &opt->address));
    CRD_TRY(add_ports(b, opt));
    const crd_dcp_rig rig = {.user = b,
                             .set = rig_set,
                             .measure = rig_measure,
                             .ready = rig_ready,
                             .error = rig_error,
                             .remote = rig_remote,
                             .step = rig_step,
                             .get_variable = rig_get,
                             .cut = rig_cut,
                             .range = rig_range};
    CRD_TRY(crd_dcp_bench_create(ctx, b->description, &b->config, &rig, &b->bench));
    *out = b;
    return CRD_OK;
fail:
    crdi_testbench_destroy(b);
    return st;
}

void crdi_testbench_destroy(crdi_testbench* b)
{
    if (!b) { return; }
    crd_dcp_slave_destroy(b->slave);
    crd_dcp_bench_destroy(b->bench);
    crd_dcp_description_destroy(b->description);
    crd_free(b->ctx, b);
}

crd_status crdi_testbench_start(crdi_testbench* b, const crd_dcp_link* link,
                                const crd_dcp_slave_options* opt)
{
    crd_dcp_plant plant = crd_dcp_bench_plant(b->bench);
    for (int i = 0; i < b->wave_count; i++) {
        plant = crdi_wave_plant(&b->waves[i], &plant, true);
    }
    const crd_status st =
        crd_dcp_slave_create(b->ctx, b->description, &plant, link, opt, &b->slave);
    if (st == CRD_OK) { crd_dcp_bench_attach(b->bench, b->slave); }
    return st;
}

// ---- looking and touching ----------------------------------------------------------------------

const crd_dcp_description* crdi_testbench_description(const crdi_testbench* b)
{
    return b->description;
}

void crdi_testbench_set(crdi_testbench* b, int signal, double value)
{
    assert(signal >= 0 && signal < b->plant.type->input_count);
    if (isfinite(value)) { b->plant.set[signal] = value; }
}

void crdi_testbench_step(crdi_testbench* b, double seconds)
{
    b->plant.running = true;
    crdi_plant_step(&b->plant, seconds);
}

double crdi_testbench_measured(const crdi_testbench* b, int signal)
{
    return b->plant.measured[signal];
}

double crdi_testbench_true(const crdi_testbench* b, int signal)
{
    return signal < b->plant.type->input_count ? b->plant.set[signal] : b->plant.value[signal];
}

void crdi_testbench_switch(crdi_testbench* b, int item, bool on)
{
    const uint32_t bit = 1u << item;
    b->plant.switched = on ? b->plant.switched & ~bit : b->plant.switched | bit;
}

const char* crdi_testbench_item(const crdi_testbench* b, int item)
{
    return item < 0 || item >= CRDI_ITEMS ? NULL : b->plant.type->checklist[item];
}

crd_dcp_slave* crdi_testbench_slave(crdi_testbench* b)
{
    return b->slave;
}

crd_dcp_bench* crdi_testbench_bench(crdi_testbench* b)
{
    return b->bench;
}

void crdi_testbench_observe(crdi_testbench* b, crdi_testbench_observer* observer, void* user)
{
    b->observer = observer;
    b->observer_user = user;
}

const char* crdi_testbench_why(const crdi_testbench* b)
{
    return b->why;
}
