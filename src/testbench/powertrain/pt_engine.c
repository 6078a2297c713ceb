// The combustion engine on its bench or in the car: 3 l, 400 N.m from 1200/min, 225 kW at 5800/min.
//
//   T_full(n) from the full-load curve, T' = (pedal T_full - T) / lag
//   P_fuel = (T + T_loss) w / e,  T_loss = V_d / (4 pi) (1.5 + 0.35 (n / 3000)^2) bar,
//   e = 0.41 - 0.03 ((n - 2500) / 3000)^2                              (a Willans line for each
//   speed)
//
// The speed is set from outside, by the bench or the gearbox. A start takes 0.35 s, in which there
// is no torque, and 8 kJ of fuel. Below the stall speed there is no torque either.
//
// With `throttle` it has the signals of a bench: it is always on, the pedal is its throttle,
//   T' = (pedal (T_full + T_loss) - T_loss - T) / lag
#include "pt.h"

#define LOWER_HEATING_VALUE 42.5e6 // J/kg, petrol

typedef struct engine {
    double pedal, speed_ref;
    bool run;
    double torque, torque_max, power_max, power_mech, power_fuel, fuel_rate;
    double fuel, energy_fuel, energy_mech, energy_loss;
    bool running;
    int32_t starts;
    bool throttle;
    double crank; // s since the start began
    double displacement, lag, start_time, start_energy, pedal_max, stall_speed;
} engine;

static const double curve_rpm[] = {600, 800, 1200, 5000, 5800, 6500};
static const double curve_torque[] = {180, 250, 400, 400, 370.4, 310};

static double full_load(double w)
{
    return pt_curve(curve_rpm, curve_torque, 6, w / PT_RPM);
}

static double fuel_power(const engine* e, double torque, double w)
{
    const double x = (w / PT_RPM - 2500) / 3000;
    return (torque + pt_drag(e->displacement, w)) * w / fmax(0.41 - 0.03 * x * x, 0.2);
}

static crd_model_status engine_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    engine* e = self;
    e->torque = e->power_mech = e->power_fuel = e->fuel_rate = e->crank = 0;
    e->fuel = e->energy_fuel = e->energy_mech = e->energy_loss = 0;
    e->starts = 0;
    e->running = false;
    e->torque_max = full_load(e->speed_ref);
    e->power_max = e->torque_max * e->speed_ref;
    return pt_expect(host, e->displacement > 0 && e->lag >= 0 && e->start_time >= 0,
                     "displacement has to be > 0, lag and start_time >= 0");
}

// Whether it runs at the end of a step of length h, and what starting has cost.
static double start_or_stop(engine* e, double h)
{
    if (e->throttle) {
        e->running = true;
        return 0;
    }
    if (!e->run) {
        e->running = false;
        e->crank = 0;
        return 0;
    }
    if (e->running) { return 0; }
    e->crank += h;
    if (e->crank < e->start_time - 1e-9) { return 0; }
    e->running = true;
    e->starts++;
    return e->start_energy;
}

static crd_model_status engine_step(void* self, const crd_model_host* host, double t, double h,
                                    double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    engine* e = self;
    const double w = e->speed_ref;
    const double started = start_or_stop(e, h);
    e->torque_max = full_load(w);
    e->power_max = e->torque_max * w;
    const bool fires = e->running && w >= e->stall_speed;
    const double pedal = pt_clamp(e->pedal, 0, e->pedal_max);
    const double loss = e->throttle ? pt_drag(e->displacement, w) : 0;
    const double target = pedal * (e->torque_max + loss) - loss;
    e->torque += fires ? (target - e->torque) * pt_approach(h, e->lag) : -e->torque;
    if (e->torque > e->torque_max) { e->torque = e->torque_max; }
    e->power_mech = e->torque * w;
    e->power_fuel = fires ? fuel_power(e, e->torque, w) : 0;
    e->fuel_rate = e->power_fuel / LOWER_HEATING_VALUE;
    e->energy_fuel += h * e->power_fuel + started;
    e->energy_mech += h * e->power_mech;
    e->energy_loss = e->energy_fuel - e->energy_mech;
    e->fuel = e->energy_fuel / LOWER_HEATING_VALUE;
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {PT_INPUT(engine, pedal, "1", "throttle, 0 to 1 of the full load at this speed")},
    {PT_INPUT(engine, speed_ref, "rad/s", "speed that bench or gearbox set")},
    {PT_FLAG(engine, run, CRD_INPUT, "ignition: starts it, and stops it")},
    {PT_OUTPUT(engine, torque, "N.m", "at the shaft")},
    {PT_OUTPUT(engine, torque_max, "N.m", "full load at this speed")},
    {PT_OUTPUT(engine, power_max, "W", "full load at this speed")},
    {PT_OUTPUT(engine, power_mech, "W", "at the shaft")},
    {PT_OUTPUT(engine, power_fuel, "W", "in the fuel")},
    {PT_OUTPUT(engine, fuel_rate, "kg/s", "consumption, without starts")},
    {PT_OUTPUT(engine, fuel, "kg", "burnt since the beginning")},
    {PT_OUTPUT(engine, energy_fuel, "J", "in the fuel burnt")},
    {PT_OUTPUT(engine, energy_mech, "J", "given to the shaft")},
    {PT_OUTPUT(engine, energy_loss, "J", "heat and starts")},
    {PT_FLAG(engine, running, CRD_OUTPUT, "it can give torque")},
    {PT_COUNT(engine, starts, CRD_OUTPUT, "since the beginning")},
    {PT_PARAMETER(engine, displacement, 3e-3, "m3", "of all cylinders")},
    {PT_PARAMETER(engine, lag, 0.08, "s", "of the torque behind the pedal")},
    {PT_PARAMETER(engine, start_time, 0.35, "s", "from the ignition until there is torque")},
    {PT_PARAMETER(engine, start_energy, 8e3, "J", "fuel that a start costs")},
    {PT_TUNABLE(engine, pedal_max, 1, 0, 1, NULL, "cap of the throttle; 0.5 on a careful bench")},
    {.name = "throttle",
     .type = CRD_BOOLEAN,
     .causality = CRD_PARAMETER,
     .variability = CRD_FIXED,
     .offset = offsetof(engine, throttle),
     .description = "the signals of a bench: always on, the pedal is its throttle"},
    {PT_PARAMETER(engine, stall_speed, 60, "rad/s", "below it there is no torque")},
};

const crd_model crd_model_pt_engine = {
    .name = "pt_engine",
    .description = "combustion engine: map, Willans fuel, lag, start",
    PT_SAMPLED(engine, rows, 10, pt_hold_outputs),
};
