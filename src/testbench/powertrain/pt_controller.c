// The hybrid controller: which part of the wanted force comes from the engine, the machine and the
// friction brakes, when the engine runs, and which gear is in. Rules, no optimisation.
//
//   engine on   P_req > P_on = clamp(16 kW + 6e5 W (SoC - target), 5 kW, 60 kW), or T_req above
//   what the
//               machine can do, or SoC < soc_min; and the shaft turns faster than 900/min
//   engine off  P_req < 0.35 P_on after 6 s, or the shaft is too slow
//   load point  T_engine = T_req + max(0, min(190 N.m - T_req, P_chg / w)),
//               P_chg = clamp(8 kW + 8e5 W (target - SoC), 0, 20 kW)
//   boost       what is beyond the engine's full load comes from the machine
//   brakes      the machine within its limits and those of the battery, fading below 3.5 m/s;
//               friction does the rest
//   gears       up above 1900 + 4000 load^1.5, down below 1150 + 1800 load^1.5 /min, 1.2 s apart
//
// The machine's torque is T_req less the engine's as it will be after its lag, so that the sum is
// what was asked for while the engine comes and goes.
#include "pt.h"

enum { STANDSTILL = 1, ELECTRIC, ENGINE, BOOST, LOAD_POINT, RECUPERATION, COASTING, SHIFTING };
static const char* const modes[] = {"standstill",   "electric", "engine",   "boost", "load_point",
                                    "recuperation", "coasting", "shifting", NULL};

typedef struct controller {
    double force, speed, shaft_speed, ratio, soc, discharge_max, charge_max;
    double engine_torque, engine_torque_max, machine_torque_max;
    bool engine_running, shifting;
    double pedal, machine_torque, brake, torque_request, torque_engine, power_request;
    bool engine_on;
    int32_t gear, mode_changes;
    int64_t mode;
    double since_shift, since_start, since_mode, load;
    double soc_target, soc_min, power_on, charge_power, load_torque, engine_lag, min_on, fade_speed,
        efficiency, drag, machine_efficiency, engine_min_speed, shift_interval, force_max;
} controller;

static crd_model_status controller_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    controller* c = self;
    c->pedal = c->machine_torque = c->brake = 0;
    c->torque_request = c->torque_engine = c->power_request = c->load = 0;
    c->engine_on = false;
    c->gear = 1;
    c->mode = STANDSTILL;
    c->mode_changes = 0;
    c->since_shift = c->since_start = c->since_mode = 1e3;
    return pt_expect(
        host,
        c->efficiency > 0 && c->machine_efficiency > 0 && c->fade_speed > 0 && c->engine_lag >= 0,
        "efficiency, machine_efficiency and fade_speed have to be > 0, engine_lag >= 0");
}

// Torque at the shaft for the force at the wheels, through gearbox and drag.
static double torque_for(const controller* c)
{
    if (c->shifting || !(c->ratio > 0)) { return 0; }
    const double eta = c->force > 0 ? 1 / c->efficiency : c->efficiency;
    return c->force * eta / c->ratio + c->drag;
}

// How far the machine may go to either side: envelope and battery.
static void machine_limits(const controller* c, double w, double* low, double* high)
{
    const double at = fmax(w, 1);
    *high = fmin(c->machine_torque_max, c->machine_efficiency * c->discharge_max / at);
    *low = -fmin(c->machine_torque_max, c->charge_max / at);
}

static void switch_engine(controller* c, double w, double high, double h)
{
    const double n = w / PT_RPM, p = c->power_request;
    const double on = pt_clamp(c->power_on + 6e5 * (c->soc - c->soc_target), 5e3, 60e3);
    c->since_start += h;
    if (!c->engine_on) {
        const bool needed =
            p > on || c->torque_request > high || c->load > 0.9 || c->soc < c->soc_min;
        if (needed && !c->shifting && c->force > 0 && n > c->engine_min_speed) {
            c->engine_on = true;
            c->since_start = 0;
        }
        return;
    }
    const bool enough =
        p < 0.35 * on && c->torque_request <= high && c->load <= 0.9 && c->soc >= c->soc_min;
    if (n < 0.85 * c->engine_min_speed) { c->engine_on = false; }
    if (enough && !c->shifting && c->since_start > c->min_on) { c->engine_on = false; }
}

static double engine_wish(const controller* c, double w, double low)
{
    const double req = c->torque_request;
    if (!c->engine_on || !c->engine_running || c->shifting || req <= 0) { return 0; }
    const double charge = pt_clamp(c->charge_power + 8e5 * (c->soc_target - c->soc), 0, 20e3);
    const double more = fmin(fmin(c->load_torque - req, charge / fmax(w, 1)), -low);
    return fmin(req + fmax(more, 0), c->engine_torque_max);
}

static int mode_of(const controller* c)
{
    if (c->shifting) { return SHIFTING; }
    if (c->speed < 0.02 && c->force <= 0) { return STANDSTILL; }
    const double req = c->torque_request;
    if (req < -1) { return RECUPERATION; }
    if (c->engine_on && c->engine_running && req > 1) {
        if (req > c->engine_torque_max) { return BOOST; }
        return c->torque_engine > req + 1 ? LOAD_POINT : ENGINE;
    }
    return req > 1 ? ELECTRIC : COASTING;
}

// Coasting is a narrow gate between driving and braking: it counts only once it lasts.
static void tell_mode(controller* c, double h)
{
    const int now = mode_of(c);
    c->since_mode += h;
    if (now == c->mode || (now == COASTING && c->since_mode < 0.5)) { return; }
    if (now != COASTING && c->mode != SHIFTING && now != SHIFTING && c->since_mode < 0.5) {
        return;
    }
    c->mode_changes++;
    c->mode = now;
    c->since_mode = 0;
}

static void choose_gear(controller* c, double w, double h)
{
    const double n = w / PT_RPM;
    c->since_shift += h;
    // Of the force that engine and machine can give together and the tyres hold.
    const double most = fmin(
        (c->engine_torque_max + c->machine_torque_max) * c->ratio * c->efficiency, c->force_max);
    if (!c->shifting) { c->load = pt_clamp(c->force / fmax(most, 1), 0, 1); }
    if (c->shifting || c->since_shift < c->shift_interval) { return; }
    const double x = c->load * sqrt(c->load);
    const int step = n > 1900 + 4000 * x && c->gear < 8   ? 1
                     : n < 1150 + 1800 * x && c->gear > 1 ? -1
                                                          : 0;
    if (step) {
        c->gear += step;
        c->since_shift = 0;
    }
}

static crd_model_status controller_step(void* self, const crd_model_host* host, double t, double h,
                                        double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    controller* c = self;
    const double w = c->shaft_speed;
    double low = 0, high = 0;
    machine_limits(c, w, &low, &high);
    c->torque_request = torque_for(c);
    c->power_request = c->torque_request * w;
    switch_engine(c, w, high, h);
    c->torque_engine = engine_wish(c, w, low);
    c->pedal = c->engine_torque_max > 0 ? c->torque_engine / c->engine_torque_max : 0;
    const bool fires = c->engine_on && c->engine_running;
    const double soon = !fires ? 0
                               : c->engine_torque + (c->torque_engine - c->engine_torque) *
                                                        pt_approach(h, c->engine_lag);
    const double fade = pt_clamp(c->speed / c->fade_speed, 0, 1);
    const double floor = c->torque_request < 0 ? fmax(low, c->torque_request * fade) : low;
    const double wish = c->force < 0 && c->speed < 0.02 ? 0 : c->torque_request - soon;
    c->machine_torque = pt_clamp(wish, fmin(floor, high), high);
    // What the machine does not brake, in newtons at the wheels.
    c->brake = 0;
    if (c->force < 0) {
        const double net = c->shifting ? 0 : c->machine_torque + soon - c->drag;
        const double drive = net * c->ratio * (net > 0 ? c->efficiency : 1 / c->efficiency);
        c->brake = fmax(drive - c->force, 0);
    }
    tell_mode(c, h);
    choose_gear(c, w, h);
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {PT_INPUT(controller, force, "N", "wanted at the wheels, negative to brake")},
    {PT_INPUT(controller, speed, "m/s", "of the car")},
    {PT_INPUT(controller, shaft_speed, "rad/s", "at the input of the gearbox")},
    {PT_INPUT(controller, ratio, "rad/m", "shaft speed over speed of the car")},
    {PT_INPUT(controller, soc, NULL, "state of charge"), .start = 0.2},
    {PT_INPUT(controller, discharge_max, "W", "that the battery has left for the machine")},
    {PT_INPUT(controller, charge_max, "W", "that the battery takes back")},
    {PT_INPUT(controller, engine_torque, "N.m", "measured")},
    {PT_INPUT(controller, engine_torque_max, "N.m", "full load at this speed")},
    {PT_INPUT(controller, machine_torque_max, "N.m", "envelope with derating")},
    {PT_FLAG(controller, engine_running, CRD_INPUT, "the engine can give torque")},
    {PT_FLAG(controller, shifting, CRD_INPUT, "no torque goes through the gearbox")},
    {PT_OUTPUT(controller, pedal, "1", "throttle, 0 to 1")},
    {PT_OUTPUT(controller, machine_torque, "N.m", "wanted of the machine")},
    {PT_OUTPUT(controller, brake, "N", "wanted of the friction brakes")},
    {PT_OUTPUT(controller, torque_request, "N.m", "wanted at the shaft")},
    {PT_OUTPUT(controller, torque_engine, "N.m", "wanted of the engine")},
    {PT_OUTPUT(controller, power_request, "W", "wanted at the shaft")},
    {PT_FLAG(controller, engine_on, CRD_OUTPUT, "ignition")},
    {PT_COUNT(controller, gear, CRD_OUTPUT, "wanted, 1 to 8")},
    {PT_COUNT(controller, mode_changes, CRD_OUTPUT, "since the beginning")},
    {.name = "mode",
     .type = CRD_ENUMERATION,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(controller, mode),
     .items = modes,
     .description = "what it does",
     .depends = ""},
    {PT_TUNABLE(controller, soc_target, 0.2, 0, 1, NULL, "charge that is kept")},
    {PT_TUNABLE(controller, soc_min, 0.14, 0, 1, NULL, "below it the engine runs")},
    {PT_TUNABLE(controller, power_on, 16e3, 0, 1e6, "W",
                "from which the engine runs, at the target")},
    {PT_TUNABLE(controller, charge_power, 8e3, 0, 1e5, "W",
                "of load-point shifting, at the target")},
    {PT_TUNABLE(controller, load_torque, 190, 0, 1e3, "N.m", "up to which the load point moves")},
    {PT_PARAMETER(controller, engine_lag, 0.08, "s",
                  "of the engine's torque; 0: it is not foreseen")},
    {PT_TUNABLE(controller, min_on, 6, 0, 1e3, "s", "that the engine runs at least")},
    {PT_TUNABLE(controller, fade_speed, 3.5, 0.1, 50, "m/s", "recuperation fades below")},
    {PT_PARAMETER(controller, efficiency, 0.9457, NULL, "of gearbox and final drive")},
    {PT_PARAMETER(controller, drag, 3, "N.m", "of the gearbox")},
    {PT_PARAMETER(controller, machine_efficiency, 0.9, NULL, "lowest, for the battery's limit")},
    {PT_PARAMETER(controller, engine_min_speed, 900, "rpm", "of the shaft to start the engine")},
    {PT_PARAMETER(controller, force_max, 9000, "N", "that the tyres hold: full load")},
    {PT_TUNABLE(controller, shift_interval, 1.2, 0, 60, "s", "between two shifts, at least")},
};

const crd_model crd_model_pt_controller = {
    .name = "pt_controller",
    .description = "rule-based hybrid controller with gear choice",
    PT_SAMPLED(controller, rows, 10, pt_hold_outputs),
};
