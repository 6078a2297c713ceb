// What all emulated benches have: shaft, measurement, protections, faults.
#include "testbench/bench.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const double TICK = 1e-4;       // s, of the controller (Rautenberg 2023, section 3.2.1)
static const double STANDSTILL = 0.1;  // rad/s
static const double FLOW_PATIENCE = 1; // s until a missing flow is seen
static const double REPAIR = 1;        // s at rest until somebody has mended and acknowledged all

const crdi_plant_type* crdi_plant_type_of(int kind)
{
    static const crdi_plant_type* const types[CRDI_TESTBENCH_KIND_COUNT] = {
        &crdi_plant_em, &crdi_plant_ice, &crdi_plant_back_to_back, &crdi_plant_traction,
        &crdi_plant_battery};
    return kind < 0 || kind >= CRDI_TESTBENCH_KIND_COUNT ? NULL : types[kind];
}

double crdi_lookup(const double (*points)[2], int count, double x)
{
    if (!(x > points[0][0])) { return points[0][1]; }
    for (int i = 1; i < count; i++) {
        const double *a = points[i - 1], *b = points[i];
        if (x < b[0]) { return a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]); }
    }
    return points[count - 1][1];
}

double crdi_condition(double set, double is, double heater, double cooler, double water)
{
    static const double band = 0.5; // K of the controller from nothing to full heating
    // Water of the house cannot do a start at -10 degC (Rautenberg 2023, section 1): below the 25
    // degC at which its table 3 ends, a chiller of our choice comes in.
    static const double chilled = 25, chiller = 6e3;
    if (isnan(set)) { return 0; }
    const double cold = fmax(cooler * fmax(0, is - water), set < chilled ? chiller : 0);
    return crdi_clamp(heater / band * (set - is), -cold, heater);
}

// ---- create ------------------------------------------------------------------------------------

void crdi_plant_init(crdi_plant* p, const crdi_plant_type* type, uint64_t seed)
{
    *p = (crdi_plant){.type = type, .thermal_scale = 1, .stuck = NAN, .cap = NAN};
    p->random = (seed + 1) * 0x9E3779B97F4A7C15u;
    if (p->random == 0) { p->random = 1; }
    for (int i = 0; i < CRDI_NODES; i++) {
        p->temperature[i] = type->ambient;
    }
    for (int i = 0; i < type->input_count; i++) {
        p->set[i] = strcmp(type->signals[i].unit, "degC") == 0 ? NAN : 0;
    }
    type->slow(p, 0);
    for (int i = type->input_count; i < type->signal_count; i++) {
        const crdi_testbench_signal* s = &type->signals[i];
        crdi_bench_sensor* c = &p->sensors[i];
        const double ms = TICK * CRDI_FAST;
        c->weight = s->lag > 0 ? 1 - exp(-ms / s->lag) : 1;
        c->delay = (int)(s->dead_time / ms + 0.5);
        c->filtered = p->value[i];
        for (int k = 0; k < CRDI_RING; k++) {
            c->ring[k] = p->value[i];
        }
        p->measured[i] = p->value[i];
    }
}

// ---- the shaft ---------------------------------------------------------------------------------

// A sign that is a slope around 0, so that friction cannot make it chatter.
static double soft_sign(double omega, double scale)
{
    return crdi_clamp(omega / scale, -1, 1);
}

// By an emergency, or because it is parked.
static bool braked(const crdi_plant* p)
{
    return p->load_off || p->at_rest;
}

// Speed control of the load machine: proportional-integral by the symmetrical optimum for the lag
// of its torque, which grows towards standstill, where the asynchronous machine has no good flux.
static void control_load(crdi_plant* p, double dt)
{
    const crdi_drive* d = &p->type->drive;
    const double speed = fabs(p->omega);
    const double slow = speed < d->slow_speed ? 1 - speed / d->slow_speed : 0;
    const double tau = d->tau + (d->slow_tau - d->tau) * slow;
    const double wanted =
        p->type->speed ? p->type->speed(p) : p->set[p->type->speed_input] * M_PI / 30;
    const double rate = crdi_clamp((wanted - p->reference) / d->filter, -d->slew, d->slew);
    p->reference += rate * dt;
    const double bandwidth = 1 / (3 * tau);
    const double gain = d->inertia * bandwidth, error = p->reference - p->omega;
    const double demand = gain * error + p->integral + d->inertia * rate;
    const double most = fmin(d->torque, d->power / fmax(speed, 1e-3));
    double used = crdi_clamp(demand, -most, most);
    if (used == demand) { p->integral += gain * bandwidth / 3 * error * dt; }
    if (crdi_plant_has(p, CRDI_TESTBENCH_SPEED_RUNAWAY)) { used = most; }
    if (braked(p)) {
        used = p->integral = 0;
        p->reference = p->omega;
    }
    p->load += (used - p->load) * fmin(1, dt / (braked(p) ? d->tau : tau));
}

static void turn_shaft(crdi_plant* p, double dt)
{
    const crdi_drive* d = &p->type->drive;
    const double scale = 0.5, sign = soft_sign(p->omega, scale);
    const double own = d->dut_friction * sign;
    const double rest = (d->friction + (braked(p) ? d->brake : 0)) * sign + d->viscous * p->omega;
    p->acceleration = (p->dut + p->load - own - rest) / d->inertia;
    p->omega += p->acceleration * dt;
    p->shaft = p->dut - own - d->dut_inertia * p->acceleration;
    p->angle += p->omega * dt;
    p->position += p->omega * dt;
    if (fabs(p->angle) > M_PI) { p->angle -= copysign(2 * M_PI, p->angle); }
}

// ---- measurement -------------------------------------------------------------------------------

// Standard deviation 1, mean 0: the sum of four uniform numbers out of one of 64 bits.
static double noise(crdi_plant* p)
{
    uint64_t x = p->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    p->random = x;
    x *= 0x2545F4914F6CDD1Du;
    const uint64_t sum = (x & 0xFFFF) + (x >> 16 & 0xFFFF) + (x >> 32 & 0xFFFF) + (x >> 48);
    return ((double)sum / 65536 - 2) * 1.7320508075688772;
}

static void bench_plant_measure(crdi_plant* p)
{
    const crdi_plant_type* type = p->type;
    p->ring_at = (p->ring_at + 1) % CRDI_RING;
    for (int i = type->input_count; i < type->signal_count; i++) {
        const crdi_testbench_signal* s = &type->signals[i];
        crdi_bench_sensor* c = &p->sensors[i];
        const double raw = p->ideal ? p->value[i] : p->value[i] + s->noise * noise(p);
        c->filtered += (raw - c->filtered) * c->weight;
        c->ring[p->ring_at] = c->filtered;
        const double late = c->ring[(p->ring_at + CRDI_RING - c->delay) % CRDI_RING];
        const bool digital = s->resolution > 0 && !p->ideal;
        p->measured[i] = p->lost_sensor[i] ? NAN
                         : p->ideal        ? p->value[i]
                         : digital         ? s->resolution * nearbyint(late / s->resolution)
                                           : late;
        if (c->wrong) { p->measured[i] = c->gain * p->measured[i] + c->offset; }
        if (c->corrected) { p->measured[i] = c->calibrated * p->measured[i] + c->correction; }
    }
}

// ---- faults and protections --------------------------------------------------------------------

static void begin_faults(crdi_plant* p)
{
    for (int i = 0; i < p->fault_count; i++) {
        const crdi_testbench_fault* f = &p->faults[i];
        if (p->begun & 1u << i || !p->running || p->run_time < f->at) { continue; }
        p->begun |= 1u << i;
        p->active |= 1u << f->kind;
        if (f->kind == CRDI_TESTBENCH_SENSOR_LOSS) { p->lost_sensor[f->signal] = true; }
        if (f->kind == CRDI_TESTBENCH_STUCK_TORQUE) { p->stuck = p->dut; }
    }
}

static void lose(crdi_plant* p, int item)
{
    p->lost |= 1u << item;
}

// How long something has been wrong by now.
static double wrong_for(double before, bool wrong, double dt)
{
    return wrong ? before + dt : 0;
}

// What the controller does by itself, before anybody asks: the drive that does not obey is
// switched off, the DUT first. The voltage stays, whoever has lost what.
static void protect(crdi_plant* p, double dt)
{
    const crdi_drive* d = &p->type->drive;
    p->torque_wrong = wrong_for(p->torque_wrong, fabs(p->dut - p->expected) > d->torque_error, dt);
    // A load machine at its limit is late and no more; one that pushes the other way is lost.
    const double late = p->reference - p->omega;
    const bool away = fabs(late) > d->speed_error && late * p->load < 0;
    p->speed_wrong = wrong_for(p->speed_wrong, away && !p->load_off, dt);
    p->flow_wrong = wrong_for(p->flow_wrong, crdi_plant_has(p, CRDI_TESTBENCH_COOLANT_LOSS), dt);
    if (p->torque_wrong > d->torque_patience) {
        p->torque_off = true;
        lose(p, CRDI_ITEM_TORQUE);
    }
    if (p->speed_wrong > d->speed_patience || fabs(p->omega) > d->overspeed) {
        p->torque_off = p->load_off = true;
        lose(p, CRDI_ITEM_SPEED);
    }
    if (p->flow_wrong > FLOW_PATIENCE) { lose(p, CRDI_ITEM_FLOW); }
    if (crdi_plant_has(p, CRDI_TESTBENCH_EMERGENCY_STOP)) {
        p->torque_off = true;
        lose(p, CRDI_ITEM_BUTTON);
    }
}

// At rest, somebody mends what is broken and acknowledges the errors.
static void repair(crdi_plant* p, double dt)
{
    const bool rest = p->at_rest && fabs(p->omega) < STANDSTILL;
    p->rest_time = rest ? p->rest_time + dt : 0;
    if (p->rest_time < REPAIR || (!p->lost && !p->active && !p->torque_off)) { return; }
    p->lost = p->active = 0;
    p->torque_off = p->load_off = false;
    p->stuck = NAN;
    p->integral = p->reference = 0;
    memset(p->lost_sensor, 0, sizeof p->lost_sensor);
}

double crdi_plant_time(const crdi_plant* p)
{
    return (double)p->ticks * TICK;
}

uint32_t crdi_plant_missing(const crdi_plant* p)
{
    const bool up = crdi_plant_time(p) >= p->start_up;
    return p->lost | p->switched | (up ? 0 : 1u << CRDI_ITEM_SUPPLY);
}

// ---- time --------------------------------------------------------------------------------------

// What has died away is 0: numbers below the normal ones are slow.
static void bench_plant_settle(double* x)
{
    if (fabs(*x) < 1e-30) { *x = 0; }
}

static void slow_step(crdi_plant* p)
{
    double* const states[] = {&p->omega,    &p->load,      &p->dut,      &p->expected,
                              &p->integral, &p->reference, &p->inner[0], &p->inner[1],
                              &p->inner[2], &p->inner[3],  &p->voltage};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        bench_plant_settle(states[i]);
    }
    const double dt = TICK * CRDI_FAST;
    if (p->running) { p->run_time += dt; }
    begin_faults(p);
    p->type->slow(p, dt);
    bench_plant_measure(p);
    protect(p, dt);
    repair(p, dt);
}

void crdi_plant_step(crdi_plant* p, double seconds)
{
    assert(seconds >= 0 && seconds < 1e9);
    p->due += seconds / TICK;
    const int64_t count = (int64_t)(p->due + 1e-6); // 0.001 s are 10 steps, whatever they sum up to
    p->due -= (double)count;
    for (int64_t i = 0; i < count; i++) {
        const bool shaft = p->type->drive.inertia > 0; // a battery has none
        if (shaft) { control_load(p, TICK); }
        p->type->fast(p, TICK);
        if (shaft) { turn_shaft(p, TICK); }
        if (++p->ticks % CRDI_FAST == 0) { slow_step(p); }
    }
}
