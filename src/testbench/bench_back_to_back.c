// Two small brushless motors on one shaft, one under test and one as its load, on one DC link
// (Rodriguez 2021, section 6.2). Numbers of each motor: table 6.1.
//
// The drives have four modes there. Here the motor under test follows a torque or a current, the
// load a speed or a position, which it goes to with `speed_ref` as its largest speed: what is
// agreed of torque and speed holds in all of them.
#include "testbench/bench.h"

#include <math.h>

enum { // signals
    TORQUE_REF,
    SPEED_REF,
    VOLTAGE_REF,
    CURRENT_REF,
    POSITION_REF,
    TEST_MODE_REF,
    LOAD_MODE_REF,
    VOLTAGE,
    TORQUE,
    TORQUE_MAX,
    CURRENT,
    CURRENT_LOAD,
    CURRENT_DC,
    POWER_DC,
    POWER_MECH,
    SPEED,
    ANGLE,
    POSITION,
    TEST_MODE,
    LOAD_MODE,
    TEMPERATURE,
    SIGNALS,
    INPUTS = VOLTAGE
};
enum { WINDING, HOUSING };
enum { DRIVE_CURRENT, DRIVE_TEST_MODE, DRIVE_LOAD_MODE }; // inner

// Torque by load cells, noisy; currents and angle by the motors' controllers.
static const crdi_testbench_signal signals[SIGNALS] = {
    [TORQUE_REF] =
        CRDI_SET_VALUE("torque_ref", "N.m", "set value of the motor under test", -0.43, 0.43),
    [SPEED_REF] = CRDI_SET_VALUE("speed_ref", "rpm", "set value of the motor as load", -4680, 4680),
    [VOLTAGE_REF] = CRDI_SET_VALUE("voltage_ref", "V", "set value of the power supply", 0, 40),
    [CURRENT_REF] = CRDI_SET_VALUE("current_ref", "A",
                                   "set value of the motor under test in current mode", -15, 15),
    [POSITION_REF] = CRDI_SET_VALUE("position_ref", "rad",
                                    "set value of the motor as load in position mode", -1e5, 1e5),
    [TEST_MODE_REF] =
        CRDI_SET_VALUE("test_mode_ref", "1", "motor under test: 0 torque, 1 current", 0, 1),
    [LOAD_MODE_REF] =
        CRDI_SET_VALUE("load_mode_ref", "1",
                       "motor as load: 0 speed, 1 position; changes when the shaft stands", 0, 1),
    [VOLTAGE] = CRDI_MEASURED("voltage", "V", "voltage of the DC link", 0.01, 1e-3, 1e-3, 0.01),
    [TORQUE] = CRDI_MEASURED("torque", "N.m", "torque of the load cell", 0.004, 5e-3, 1e-3, 1e-4),
    [TORQUE_MAX] =
        CRDI_MEASURED("torque_max", "N.m", "largest torque at this speed and voltage", 0, 0, 0, 0),
    [CURRENT] =
        CRDI_MEASURED("current", "A", "current of the motor under test", 0.02, 0, 1e-3, 1e-3),
    [CURRENT_LOAD] =
        CRDI_MEASURED("current_load", "A", "current of the motor as load", 0.02, 0, 1e-3, 1e-3),
    [CURRENT_DC] =
        CRDI_MEASURED("current_dc", "A", "current of the power supply", 0.02, 5e-3, 0, 1e-2),
    [POWER_DC] = CRDI_MEASURED("power_dc", "W",
                               "power of the power supply; below 0: into the braking resistor", 0.5,
                               5e-3, 0, 0.1),
    [POWER_MECH] = CRDI_MEASURED("power_mech", "W", "power of the shaft between the motors", 0.5,
                                 5e-3, 0, 0.1),
    [SPEED] = CRDI_MEASURED("speed", "rpm", "measured speed", 0.1, 0, 1e-3, 0.1),
    [ANGLE] =
        CRDI_MEASURED("angle", "rad", "of the shaft, -pi to pi, from an encoder of 4096 lines", 0,
                      0, 0, 2 * 3.14159265358979 / 16384),
    [POSITION] = CRDI_MEASURED("position", "rad", "of the shaft since the bench was switched on", 0,
                               0, 0, 2 * 3.14159265358979 / 16384),
    [TEST_MODE] = CRDI_MEASURED("test_mode", "1", "of the motor under test, in force", 0, 0, 0, 0),
    [LOAD_MODE] = CRDI_MEASURED("load_mode", "1", "of the motor as load, in force", 0, 0, 0, 0),
    [TEMPERATURE] =
        CRDI_MEASURED("temperature", "degC", "winding of the motor under test", 0.1, 0.2, 0, 0.1),
};

// ---- the motors --------------------------------------------------------------------------------

static const double RESISTANCE = 44.7e-3, INDUCTANCE = 61e-6; // of a phase
static const double VOLTAGE_CONSTANT = 5.076e-3;              // V min
static const double TORQUE_CONSTANT = 48.6e-3;                // N m/A
static const double CONTINUOUS = 15;                          // A, of the controllers
#define NO_LOAD_TORQUE (0.726 * 48.6e-3)                      // N m: no-load current

// Drives change over between torque and current at once, as both are the same current. From speed
// to position and back they do so at standstill only: a stop that begins in position mode ends in
// it.
static void choose_modes(crdi_plant* p)
{
    static const double standstill = 0.1; // rad/s
    p->inner[DRIVE_TEST_MODE] = p->set[TEST_MODE_REF] >= 0.5;
    if (fabs(p->omega) < standstill && fabs(p->reference) < standstill) {
        p->inner[DRIVE_LOAD_MODE] = p->set[LOAD_MODE_REF] >= 0.5;
    }
}

// Wanted speed of the load. To a position: no faster than `speed_ref`, than what can be braked on
// the way that is left, and than 30/s of it. Out of a run it only becomes slower.
static double motor_speed(crdi_plant* p)
{
    static const double gain = 30, share = 0.5; // of the largest deceleration
    const double most = p->set[SPEED_REF] * M_PI / 30;
    choose_modes(p);
    if (p->inner[DRIVE_LOAD_MODE] == 0) { return most; }
    if (!p->running) { return copysign(fmin(fabs(p->reference), fabs(most)), p->reference); }
    const double way = p->set[POSITION_REF] - p->position, far = fabs(way);
    const double braked = sqrt(2 * share * p->type->drive.slew * far);
    return copysign(fmin(fabs(most), fmin(gain * far, braked)), way);
}

// The controller of the motor under test cannot give more than what is left of the voltage above
// the induced one drives through the phase.
static void motor_fast(crdi_plant* p, double dt)
{
    static const double source_lag = 5e-3;
    const double lag = INDUCTANCE / RESISTANCE / 3; // of the controlled current
    const double rpm = fabs(p->omega) * 30 / M_PI;
    const double left = fmax(0, p->voltage - VOLTAGE_CONSTANT * rpm) / RESISTANCE;
    p->limit = TORQUE_CONSTANT * fmin(CONTINUOUS, left);
    const double asked =
        p->inner[DRIVE_TEST_MODE] != 0 ? TORQUE_CONSTANT * p->set[CURRENT_REF] : p->set[TORQUE_REF];
    double wanted = p->torque_off ? 0 : crdi_clamp(asked, -p->limit, p->limit);
    p->expected += (wanted - p->expected) * dt / lag;
    if (!isnan(p->stuck) && !p->torque_off) { wanted = p->stuck; }
    p->dut += (wanted - p->dut) * dt / lag;
    p->inner[DRIVE_CURRENT] = p->dut / TORQUE_CONSTANT;
    p->voltage += (fmax(0, p->set[VOLTAGE_REF]) - p->voltage) * dt / source_lag;
    p->voltage = fmax(p->voltage, VOLTAGE_CONSTANT * rpm);
}

static void motor_slow(crdi_plant* p, double dt)
{
    const double i = p->inner[DRIVE_CURRENT], i_load = p->load / TORQUE_CONSTANT;
    const double copper = RESISTANCE * i * i;
    const double defect = crdi_plant_has(p, CRDI_TESTBENCH_OVERTEMPERATURE) ? 300 : 0;
    const double power = (p->dut + p->load) * p->omega + copper + RESISTANCE * i_load * i_load;
    double *v = p->value, *t = p->temperature;
    const double to_housing = (t[WINDING] - t[HOUSING]) / 1.0;
    const double step = dt * p->thermal_scale;
    const double turning = fmin(1, fabs(p->omega) / 50);
    t[WINDING] += step * (copper + defect * turning - to_housing) / 30;
    t[HOUSING] += step * (to_housing - (t[HOUSING] - p->type->ambient) / 2.5) / 250;
    v[VOLTAGE] = p->voltage;
    v[TORQUE] = p->shaft;
    v[TORQUE_MAX] = p->limit;
    v[CURRENT] = i;
    v[CURRENT_LOAD] = i_load;
    v[CURRENT_DC] = p->voltage > 1 ? power / p->voltage : 0;
    v[POWER_DC] = power;
    v[POWER_MECH] = p->shaft * p->omega;
    v[SPEED] = p->omega * 30 / M_PI;
    v[ANGLE] = p->angle;
    v[POSITION] = p->position;
    v[TEST_MODE] = p->inner[DRIVE_TEST_MODE];
    v[LOAD_MODE] = p->inner[DRIVE_LOAD_MODE];
    v[TEMPERATURE] = t[WINDING];
}

// ---- as a bench --------------------------------------------------------------------------------

static const crdi_plant_quantity quantities[] = {
    // name, unit, role, signals; while conditioning; trips; cool down
    {"speed", NULL, CRD_DCP_ROLE_SPEED, SPEED_REF, SPEED, NAN, -5000, 5000, NAN},
    {"torque", NULL, CRD_DCP_ROLE_TORQUE, TORQUE_REF, TORQUE, NAN, -0.9, 0.9, NAN},
    {"voltage", NULL, CRD_DCP_ROLE_VOLTAGE, VOLTAGE_REF, VOLTAGE, NAN, -1, 45, NAN},
    {"winding", "degC", CRD_DCP_ROLE_TEMPERATURE, -1, TEMPERATURE, NAN, -20, 125, NAN},
    {"current", "A", CRD_DCP_ROLE_TORQUE, CURRENT_REF, CURRENT, NAN, -20, 20, NAN},
    {"position", NULL, CRD_DCP_ROLE_OTHER, POSITION_REF, POSITION, NAN, -INFINITY, INFINITY, NAN},
    {"test_mode", NULL, CRD_DCP_ROLE_OTHER, TEST_MODE_REF, TEST_MODE, NAN, -INFINITY, INFINITY,
     NAN},
    {"load_mode", NULL, CRD_DCP_ROLE_OTHER, LOAD_MODE_REF, LOAD_MODE, NAN, -INFINITY, INFINITY,
     NAN},
};

const crdi_plant_type crdi_plant_back_to_back = {
    .name = "backtoback",
    .title = "back-to-back bench",
    .uuid = {0x43, 0x61, 0x72, 0x64, 0x61, 0x6e, 0x4d, 0x03, 0x8e, 0x6d, 0x20, 0x21, 0, 0, 0, 3},
    .signals = signals,
    .signal_count = SIGNALS,
    .input_count = INPUTS,
    .drive = {.inertia = 2 * 170e-7 + 10e-7, // 170 g cm^2 each, and the couplings
              .dut_inertia = 175e-7,
              .torque = 15 * 48.6e-3,
              .power = 400,
              .tau = 0.5e-3,
              .slow_tau = 0.5e-3,
              .filter = 5e-3,
              .slew = CRDI_RPM(20000),
              .friction = NO_LOAD_TORQUE,
              .dut_friction = NO_LOAD_TORQUE,
              .brake = 0.05,
              .overspeed = CRDI_RPM(5200),
              .speed_error = CRDI_RPM(300),
              .speed_patience = 5e-3,
              .torque_error = 0.05,
              .torque_patience = 0.05},
    .speed_input = SPEED_REF,
    .torque_input = TORQUE_REF,
    .speed_output = SPEED,
    .ambient = 25,
    .fast = motor_fast,
    .slow = motor_slow,
    .speed = motor_speed,
    .limits = "speed -4680..4680 1/min rate 20000 1/min/s; torque -0.43..0.43 N.m; "
              "voltage 0..40 V rate 100 V/s; current -15..15 A; winding ..125 degC; "
              "position -1e5..1e5 rad; test_mode 0..1 1; load_mode 0..1 1",
    .checklist = {"power supply on", "motor controllers answer", "data acquisition ready",
                  "remote control selected", "load cells calibrated", "torque control",
                  "speed control", "emergency stop released"},
    .quantities = quantities,
    .quantity_count = sizeof quantities / sizeof *quantities,
    .moves = {.quantity = 4, .of = "torque", .factor = 48.6e-3}, // the current
    .induced = 5.076e-3,
    .stop_rate = 10000,
    .turn_speed = 90,
    .stop_time = 4,
    .speed_overshoot = 47,
    .torque_overshoot = 0.05,
};
