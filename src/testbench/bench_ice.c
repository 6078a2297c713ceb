// The bench of an engine (Rautenberg 2023, section 3.2.2): 3 l, six cylinders, 400 N m from 1200 to
// 5000/min, 225 kW at 5800/min, driven by speed and pedal; load machine of 330 kW.
#include "testbench/bench.h"

#include <math.h>

enum { // signals
    PEDAL_REF,
    SPEED_REF,
    COOLANT_REF,
    OIL_REF,
    SPEED,
    TORQUE,
    TORQUE_CALC,
    TORQUE_MAX,
    PEDAL,
    POWER_MECH,
    FUEL,
    COOLANT_IN,
    COOLANT_OUT,
    OIL,
    SIGNALS,
    INPUTS = SPEED
};
enum { BLOCK, COOLANT_NODE, OIL_NODE };

static const crdi_testbench_signal signals[SIGNALS] = {
    [PEDAL_REF] = CRDI_SET_VALUE("pedal_ref", "%", "set value of the pedal", 0, 50),
    [SPEED_REF] = CRDI_SET_VALUE("speed_ref", "rpm", "set value of the speed", 0, 6500),
    [COOLANT_REF] = CRDI_SET_VALUE("coolant_ref", "degC", "set value of the coolant", -15, 105),
    [OIL_REF] = CRDI_SET_VALUE("oil_ref", "degC", "set value of the oil", -15, 120),
    [SPEED] = CRDI_MEASURED("speed", "rpm", "measured speed", 0.1, 1e-3, 1e-3, 0.1),
    [TORQUE] = CRDI_MEASURED("torque", "N.m", "measured torque of the shaft", 1, 5e-3, 5e-3, 0.1),
    [TORQUE_CALC] = CRDI_MEASURED(
        "torque_calc", "N.m", "torque as the engine's controller calculates it", 0.5, 0, 0, 0.5),
    [TORQUE_MAX] = CRDI_MEASURED("torque_max", "N.m", "full load at this speed", 0, 0, 0, 0),
    [PEDAL] = CRDI_MEASURED("throttle", "%", "measured position of the throttle", 0.05, 0, 0, 0.1),
    [POWER_MECH] =
        CRDI_MEASURED("power_mech", "W", "mechanical power at the shaft", 50, 5e-3, 5e-3, 1),
    [FUEL] = CRDI_MEASURED("fuel", "kg/s", "fuel that is burnt", 1e-5, 0.2, 50e-3, 1e-6),
    [COOLANT_IN] =
        CRDI_MEASURED("coolant_in", "degC", "coolant towards the engine", 0.05, 0.5, 0, 0.1),
    [COOLANT_OUT] =
        CRDI_MEASURED("coolant_out", "degC", "coolant out of the engine", 0.05, 0.5, 0, 0.1),
    [OIL] = CRDI_MEASURED("oil", "degC", "oil in the sump", 0.05, 0.5, 0, 0.1),
};

// ---- the engine --------------------------------------------------------------------------------

static const double IDLE = 400; // 1/min: below, nothing burns

static double full_load(double rpm)
{
    static const double points[][2] = {{600, 180},  {800, 250},    {1200, 400},
                                       {5000, 400}, {5800, 370.4}, {6500, 310}};
    return crdi_lookup(points, 6, rpm);
}

// Mean pressure of friction and gas exchange of 3 l: 1.5 bar + 0.35 bar (n/3000)^2.
static double loss_torque(double rpm)
{
    const double n = rpm / 3000;
    return 3e-3 / (4 * M_PI) * (1.5 + 0.35 * n * n) * 1e5;
}

// inner: [0] throttle (0..1), [1] indicated torque, and both as they should be: [2], [3]
static void ice_fast(crdi_plant* p, double dt)
{
    static const double throttle_lag = 50e-3, manifold_lag = 80e-3, cut = 20e-3;
    const double rpm = fabs(p->omega) * 30 / M_PI;
    const bool burns = !p->torque_off && rpm > IDLE;
    const double drag = loss_torque(rpm), most = p->limit + drag;
    const double pedal = crdi_clamp(p->set[PEDAL_REF] / 100, 0, 1);
    const double lag = burns ? manifold_lag : cut;
    p->inner[2] += (pedal - p->inner[2]) * dt / throttle_lag;
    p->inner[3] += ((burns ? p->inner[2] * most : 0) - p->inner[3]) * dt / lag;
    if (isnan(p->stuck)) { p->inner[0] += (pedal - p->inner[0]) * dt / throttle_lag; }
    p->inner[1] += ((burns ? p->inner[0] * most : 0) - p->inner[1]) * dt / lag;
    const double sign = crdi_clamp(p->omega, -1, 1);
    p->dut = p->inner[1] - drag * sign;
    p->expected = p->inner[3] - drag * sign;
}

// Willans: what is burnt is the indicated power by an efficiency that falls off 2500/min.
static double fuel_power(const crdi_plant* p, double rpm)
{
    const double n = (rpm - 2500) / 3000, e = 0.41 - 0.03 * n * n;
    return fmax(0, p->inner[1]) * fabs(p->omega) / e;
}

// ---- heat --------------------------------------------------------------------------------------

static void ice_heat(crdi_plant* p, double burnt, double rpm, double dt)
{
    const bool flows = !crdi_plant_has(p, CRDI_TESTBENCH_COOLANT_LOSS);
    const double turning = fmin(1, rpm / 500);
    double* t = p->temperature;
    const double friction = loss_torque(rpm) * fabs(p->omega);
    const double to_coolant =
        (flows ? 1500 * (0.3 + 0.7 * turning) : 20) * (t[BLOCK] - t[COOLANT_NODE]);
    const double to_oil = (50 + 250 * turning) * (t[BLOCK] - t[OIL_NODE]);
    // a head gasket: gas of the cylinders drives the coolant out of its cooler
    const double leak = crdi_plant_has(p, CRDI_TESTBENCH_OVERTEMPERATURE)
                            ? 300e3 * crdi_clamp((rpm - 500) / 500, 0, 1)
                            : 0;
    const double coolant_unit =
        flows && leak == 0 ? crdi_condition(p->set[COOLANT_REF], t[COOLANT_NODE], 18e3, 4000, 20)
                           : 0;
    const double oil_unit = crdi_condition(p->set[OIL_REF], t[OIL_NODE], 6e3, 600, 20);
    t[BLOCK] += dt * (0.25 * burnt + 0.5 * friction - to_coolant - to_oil) / 60e3;
    t[COOLANT_NODE] += dt * (to_coolant + coolant_unit + leak) / 50e3;
    t[OIL_NODE] += dt * (0.5 * friction + to_oil + oil_unit) / 25e3;
    p->value[COOLANT_IN] = t[COOLANT_NODE];
    p->value[COOLANT_OUT] = t[COOLANT_NODE] + (flows ? to_coolant / 7000 : 0);
    p->value[OIL] = t[OIL_NODE];
}

static void ice_slow(crdi_plant* p, double dt)
{
    static const double heating_value = 42.5e6; // J/kg
    const double rpm = fabs(p->omega) * 30 / M_PI, burnt = fuel_power(p, rpm);
    double* v = p->value;
    p->limit = full_load(rpm);
    ice_heat(p, burnt, rpm, dt * p->thermal_scale);
    v[SPEED] = p->omega * 30 / M_PI;
    v[TORQUE] = p->shaft;
    v[TORQUE_CALC] = p->dut;
    v[TORQUE_MAX] = p->limit;
    v[PEDAL] = 100 * p->inner[0];
    v[POWER_MECH] = p->shaft * p->omega;
    v[FUEL] = burnt / heating_value;
}

// ---- as a bench --------------------------------------------------------------------------------

static const crdi_plant_quantity quantities[] = {
    // name, unit, role, signals; while conditioning; trips; cool down
    {"speed", NULL, CRD_DCP_ROLE_SPEED, SPEED_REF, SPEED, 800, -500, 7000, NAN},
    {"pedal", NULL, CRD_DCP_ROLE_TORQUE, PEDAL_REF, PEDAL, 0, -5, 105, NAN},
    {"coolant", NULL, CRD_DCP_ROLE_TEMPERATURE, COOLANT_REF, COOLANT_IN, NAN, -25, 115, 100},
    {"oil", NULL, CRD_DCP_ROLE_TEMPERATURE, OIL_REF, OIL, NAN, -25, 140, NAN},
    {"torque", "N.m", CRD_DCP_ROLE_OTHER, -1, TORQUE, NAN, -600, 600, NAN},
};

const crdi_plant_type crdi_plant_ice = {
    .name = "ice",
    .title = "engine bench",
    .uuid = {0x43, 0x61, 0x72, 0x64, 0x61, 0x6e, 0x4d, 0x02, 0x8e, 0x6d, 0x20, 0x23, 0, 0, 0, 2},
    .signals = signals,
    .signal_count = SIGNALS,
    .input_count = INPUTS,
    .drive = {.inertia = 1.0,
              .dut_inertia = 0.2,
              .torque = 1400,
              .power = 330e3,
              .tau = 4e-3,
              .slow_tau = 20e-3,
              .slow_speed = CRDI_RPM(50),
              .filter = 15e-3,
              .slew = CRDI_RPM(8000),
              .friction = 2,
              .viscous = 0.005,
              .brake = 300,
              .overspeed = CRDI_RPM(7200),
              .speed_error = CRDI_RPM(300),
              .speed_patience = 0.1,
              .torque_error = 30,
              .torque_patience = 0.2},
    .speed_input = SPEED_REF,
    .torque_input = PEDAL_REF,
    .speed_output = SPEED,
    .ambient = 25,
    .media = true,
    .fast = ice_fast,
    .slow = ice_slow,
    // half of the pedal: what this bench allows in coupled operation (section 4.2)
    .limits = "speed 0..6500 1/min rate 8000 1/min/s; pedal 0..50 %; coolant -15..105 degC; "
              "oil -15..120 degC; torque -100..420 N.m; avoid speed 0..500 1/min with pedal",
    .checklist = {"fuel pump running", "temperature control on", "data acquisition ready",
                  "remote control selected", "coolant flow", "torque control", "speed control",
                  "emergency stop released"},
    .quantities = quantities,
    .quantity_count = sizeof quantities / sizeof *quantities,
    .stop_rate = 2000,
    .turn_speed = 90,
    .stop_time = 8,
    .speed_overshoot = 65,
    .torque_overshoot = 25,
};
