// The bench of an electric machine (Rautenberg 2023, section 3.2.1): battery simulator, load
// machine of 215 kW, a synchronous machine of 85 kW peak and 40 kW continuous power under test.
#include "testbench/bench.h"

#include <math.h>

enum { // signals
    TORQUE_REF,
    SPEED_REF,
    VOLTAGE_REF,
    OIL_REF,
    VOLTAGE,
    TORQUE,
    TORQUE_MAX,
    TEMPERATURE_MAX,
    TEMPERATURE_MEAN,
    POWER_DC,
    POWER_AC,
    POWER_MECH,
    POWER_MAX,
    OIL_IN,
    OIL_OUT,
    CURRENT,
    SPEED,
    TORQUE_CALC,
    SIGNALS,
    INPUTS = VOLTAGE
};
enum { WINDING, HOUSING, OIL }; // nodes

// Tables 5 and 6. The torque passes an external power meter, whose latency is what makes dead time
// large (section 4.3); what is calculated out of currents has none.
static const crdi_testbench_signal signals[SIGNALS] = {
    [TORQUE_REF] = CRDI_SET_VALUE("torque_ref", "N.m", "set value of the torque", -250, 250),
    [SPEED_REF] = CRDI_SET_VALUE("speed_ref", "rpm", "set value of the speed", 0, 6500),
    [VOLTAGE_REF] =
        CRDI_SET_VALUE("voltage_ref", "V", "set value of the battery simulator", 0, 400),
    [OIL_REF] = CRDI_SET_VALUE("oil_ref", "degC", "set value of the oil's temperature", -15, 95),
    [VOLTAGE] =
        CRDI_MEASURED("voltage_dc", "V", "measured voltage of the DC link", 0.3, 1e-3, 1e-3, 0.05),
    [TORQUE] =
        CRDI_MEASURED("torque", "N.m", "measured torque of the shaft", 0.5, 2e-3, 20e-3, 0.05),
    [TORQUE_MAX] = CRDI_MEASURED(
        "torque_max", "N.m", "largest torque at this speed, voltage and temperature", 0, 0, 0, 0),
    [TEMPERATURE_MAX] = CRDI_MEASURED(
        "temperature_max", "degC", "hottest place of the machine: its winding", 0.1, 0.2, 0, 0.1),
    [TEMPERATURE_MEAN] = CRDI_MEASURED("temperature_mean", "degC",
                                       "mean temperature of the machine", 0.1, 0.2, 0, 0.1),
    [POWER_DC] =
        CRDI_MEASURED("power_dc", "W", "power out of the battery simulator", 30, 2e-3, 20e-3, 1),
    [POWER_AC] =
        CRDI_MEASURED("power_ac", "W", "electrical power of the machine", 30, 2e-3, 20e-3, 1),
    [POWER_MECH] =
        CRDI_MEASURED("power_mech", "W", "mechanical power at the shaft", 30, 2e-3, 20e-3, 1),
    [POWER_MAX] = CRDI_MEASURED("power_max", "W",
                                "largest mechanical power at this speed, voltage and temperature",
                                0, 0, 0, 0),
    [OIL_IN] = CRDI_MEASURED("oil_in", "degC", "oil towards the machine", 0.05, 0.5, 0, 0.1),
    [OIL_OUT] = CRDI_MEASURED("oil_out", "degC", "oil out of the machine", 0.05, 0.5, 0, 0.1),
    [CURRENT] = CRDI_MEASURED("current_dc", "A", "current of the DC link", 0.2, 1e-3, 1e-3, 0.05),
    [SPEED] = CRDI_MEASURED("speed", "rpm", "measured speed", 0.1, 1e-3, 1e-3, 0.1),
    [TORQUE_CALC] =
        CRDI_MEASURED("torque_calc", "N.m", "torque as calculated from currents, without dead time",
                      0.2, 0, 0, 0.05),
};

// ---- the machine -------------------------------------------------------------------------------

static const double PEAK_TORQUE = 250, PEAK_POWER = 85e3, FULL_VOLTAGE = 330;
static const double INDUCED = 0.05; // V min: 325 V at 6500/min

// Derating by the winding: from 140 degC on, 40 of 85 kW at 160, none at 180.
static double derating(double winding)
{
    static const double points[][2] = {{140, 1}, {160, 40.0 / 85}, {180, 0}};
    return crdi_lookup(points, 3, winding);
}

// inner[0]: part of the full envelope that there is, inner[1]: DC current
static void em_fast(crdi_plant* p, double dt)
{
    static const double torque_lag = 2e-3, voltage_lag = 5e-3, resistance = 0.02;
    const double speed = fabs(p->omega);
    p->limit = p->inner[0] * fmin(PEAK_TORQUE, PEAK_POWER / fmax(speed, 1));
    const double wanted = p->torque_off ? 0 : crdi_clamp(p->set[TORQUE_REF], -p->limit, p->limit);
    p->expected += (wanted - p->expected) * dt / torque_lag;
    p->expected = crdi_clamp(p->expected, -p->limit, p->limit);
    if (!isnan(p->stuck) && !p->torque_off) {
        p->dut = p->stuck;
    } else {
        p->dut += (wanted - p->dut) * dt / torque_lag;
        p->dut = crdi_clamp(p->dut, -p->limit, p->limit);
    }
    const double source = fmax(0, p->set[VOLTAGE_REF]);
    const double loaded = source > 1 ? fmax(0, source - resistance * p->inner[1]) : source;
    p->voltage += (loaded - p->voltage) * dt / voltage_lag;
    // through its diodes the machine feeds a DC link that is lower than what it induces
    p->voltage = fmax(p->voltage, INDUCED * speed * 30 / M_PI);
}

static double copper_loss(const crdi_plant* p)
{
    return 0.055 * p->dut * p->dut * (1 + 0.0039 * (p->temperature[WINDING] - 60));
}

// ---- heat --------------------------------------------------------------------------------------

// Winding 6 kJ/K, which copper heats, housing 20 kJ/K, which the rest heats, oil with its
// circuit 70.6 kJ/K. The circuit, its cooler of 232 W/K and the 33.5 degC of the primary side are
// what gives the times of table 3 with a heater of 9 kW: 25 to 80 degC in 9 min, 80 to 50 in 7 min,
// 50 to 35 in 23 min.
static void em_heat(crdi_plant* p, double copper, double rest, double dt)
{
    static const double heater = 9e3, cooler = 232.2, water = 33.53, circuit = 70.58e3;
    const double rpm = fabs(p->omega) * 30 / M_PI;
    const bool flows = !crdi_plant_has(p, CRDI_TESTBENCH_COOLANT_LOSS);
    const double film = flows ? 80 + 140 * fmin(1, rpm / 50) : 8;
    double* t = p->temperature;
    const double to_housing = 25 * (t[WINDING] - t[HOUSING]);
    const double to_oil = film * (t[HOUSING] - t[OIL]);
    // turns that are shorted have what the rotor induces in them
    const double defect =
        crdi_plant_has(p, CRDI_TESTBENCH_OVERTEMPERATURE) ? 60e3 * fmin(1, rpm * rpm / 1e6) : 0;
    const double set = fmin(p->set[OIL_REF], p->cap);
    const double unit = flows ? crdi_condition(set, t[OIL], heater, cooler, water) : 0;
    t[WINDING] += dt * (copper + defect - to_housing) / 6e3;
    t[HOUSING] += dt * (rest + to_housing - to_oil) / 20e3;
    t[OIL] += dt * (to_oil + unit) / circuit;
    p->value[OIL_IN] = t[OIL];
    p->value[OIL_OUT] = t[OIL] + (flows ? to_oil / 400 : 0);
}

static void em_slow(crdi_plant* p, double dt)
{
    const double speed = fabs(p->omega);
    const bool on = p->voltage > 20;
    const double copper = copper_loss(p), inverter = on ? 120 : 0;
    const double rest = inverter + 1.2 * speed + 0.0035 * speed * speed;
    double* v = p->value;
    em_heat(p, copper, rest, dt * p->thermal_scale);
    p->inner[0] = derating(p->temperature[WINDING]) * fmin(1, p->voltage / FULL_VOLTAGE);
    p->inner[1] = on ? (p->dut * p->omega + copper + rest) / p->voltage : 0;
    p->limit = p->inner[0] * fmin(PEAK_TORQUE, PEAK_POWER / fmax(speed, 1));
    v[VOLTAGE] = p->voltage;
    v[TORQUE] = p->shaft;
    v[TORQUE_CALC] = p->dut;
    v[TORQUE_MAX] = p->limit;
    v[TEMPERATURE_MAX] = p->temperature[WINDING];
    v[TEMPERATURE_MEAN] = (6 * p->temperature[WINDING] + 20 * p->temperature[HOUSING]) / 26;
    v[POWER_DC] = p->inner[1] * p->voltage;
    v[POWER_AC] = v[POWER_DC] - inverter;
    v[POWER_MECH] = p->shaft * p->omega;
    v[POWER_MAX] = p->limit * speed;
    v[CURRENT] = p->inner[1];
    v[SPEED] = p->omega * 30 / M_PI;
}

// ---- as a bench --------------------------------------------------------------------------------

static const crdi_plant_quantity quantities[] = {
    // name, unit, role, signals; while conditioning; trips; cool down
    {"speed", NULL, CRD_DCP_ROLE_SPEED, SPEED_REF, SPEED, 100, -500, 7000, NAN},
    {"torque", NULL, CRD_DCP_ROLE_TORQUE, TORQUE_REF, TORQUE, 0, -320, 320, NAN},
    {"voltage", NULL, CRD_DCP_ROLE_VOLTAGE, VOLTAGE_REF, VOLTAGE, 60, -5, 420, NAN},
    {"oil", NULL, CRD_DCP_ROLE_TEMPERATURE, OIL_REF, OIL_IN, NAN, -25, 105, NAN},
    {"winding", "degC", CRD_DCP_ROLE_TEMPERATURE, -1, TEMPERATURE_MAX, NAN, -30, 175, 100},
    {"current", "A", CRD_DCP_ROLE_OTHER, -1, CURRENT, NAN, -400, 400, NAN},
};

const crdi_plant_type crdi_plant_em = {
    .name = "em",
    .title = "electric machine bench",
    .uuid = {0x43, 0x61, 0x72, 0x64, 0x61, 0x6e, 0x4d, 0x01, 0x8e, 0x6d, 0x20, 0x23, 0, 0, 0, 1},
    .signals = signals,
    .signal_count = SIGNALS,
    .input_count = INPUTS,
    .drive = {.inertia = 0.33,
              .dut_inertia = 0.08,
              .torque = 540,
              .power = 215e3,
              .tau = 3e-3,
              .slow_tau = 60e-3,
              .slow_speed = CRDI_RPM(50),
              .filter = 10e-3,
              .slew = CRDI_RPM(8000),
              .friction = 1,
              .dut_friction = 0.5,
              .viscous = 0.002,
              .brake = 100,
              .overspeed = CRDI_RPM(7200),
              .speed_error = CRDI_RPM(300),
              .speed_patience = 0.1,
              .torque_error = 15,
              .torque_patience = 0.05},
    .speed_input = SPEED_REF,
    .torque_input = TORQUE_REF,
    .speed_output = SPEED,
    .ambient = 25,
    .media = true,
    .fast = em_fast,
    .slow = em_slow,
    .limits = "speed 0..6500 1/min rate 8000 1/min/s; torque -250..250 N.m rate 25000 N.m/s; "
              "voltage 0..400 V rate 500 V/s; oil -15..95 degC; winding ..175 degC; "
              "current -400..400 A; avoid speed 0..50 1/min with torque",
    .checklist = {"battery simulator on", "temperature control on", "data acquisition ready",
                  "remote control selected", "oil flow", "torque control", "speed control",
                  "emergency stop released"},
    .quantities = quantities,
    .quantity_count = sizeof quantities / sizeof *quantities,
    .induced = 0.05,
    .stop_rate = 2000,
    .turn_speed = 90,
    .stop_time = 8,
    .speed_overshoot = 130, // 78 of a torque reversal (500 N.m over the controller's 37 N.m s, of
                            // which 0.6 are seen), 40 of the end of a ramp
    .torque_overshoot = 15,
};
