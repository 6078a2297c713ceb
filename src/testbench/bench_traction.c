// Two traction motors back to back on one DC link (Rodriguez 2021, section 6.3): 200 kW, 400 N m,
// 18,000 1/min, 550 A per phase. A converter of 54 kW feeds the link and takes nothing back, so
// what is left over goes into a braking resistor of 3 kW; a wattmeter measures the motor under test
// and its inverter. Its temperature controller of 9 kW stands between the motor's own circuit and a
// tank of 2000 l, which an outdoor cooler of 10 kW keeps near 298 K.
//
// Losses, capacities and inertias are ours. The resistor is what limits how fast the shaft may slow
// down: J w w' beyond the losses has to fit into it, 2.3 kW at 1100 1/min/s and 10,650 1/min.
#include "testbench/bench.h"

#include <math.h>

enum { // signals
    TORQUE_REF,
    SPEED_REF,
    VOLTAGE_REF,
    COOLANT_REF,
    VOLTAGE,
    TORQUE,
    TORQUE_CALC,
    TORQUE_MAX,
    CURRENT,
    POWER_DC,
    POWER_AC,
    POWER_MECH,
    POWER_SUPPLY,
    POWER_RESISTOR,
    SPEED,
    WINDING_TEMPERATURE,
    COOLANT_IN,
    TANK_TEMPERATURE,
    SIGNALS,
    INPUTS = VOLTAGE
};
enum { WINDING, HOUSING, COOLANT, TANK }; // nodes
enum { DERATING, SUPPLY, RESISTOR };      // inner

static const crdi_testbench_signal signals[SIGNALS] = {
    [TORQUE_REF] =
        CRDI_SET_VALUE("torque_ref", "N.m", "set value of the motor under test", -400, 400),
    [SPEED_REF] = CRDI_SET_VALUE("speed_ref", "rpm", "set value of the motor as load", 0, 18000),
    [VOLTAGE_REF] = CRDI_SET_VALUE("voltage_ref", "V", "set value of the DC link", 0, 400),
    [COOLANT_REF] = CRDI_SET_VALUE("coolant_ref", "degC",
                                   "set value of the circuit of the motor under test", 25, 77),
    [VOLTAGE] = CRDI_MEASURED("voltage_dc", "V", "voltage of the DC link", 0.3, 1e-3, 1e-3, 0.05),
    [TORQUE] = CRDI_MEASURED("torque", "N.m", "torque sensor of the shaft", 0.2, 1e-3, 1e-3, 0.05),
    [TORQUE_CALC] = CRDI_MEASURED("torque_calc", "N.m",
                                  "torque of the motor under test as its inverter calculates it",
                                  0.5, 0, 0, 0.05),
    [TORQUE_MAX] = CRDI_MEASURED(
        "torque_max", "N.m", "largest torque at this speed, voltage and temperature", 0, 0, 0, 0),
    [CURRENT] = CRDI_MEASURED("current", "A", "of a phase of the motor under test, rms", 0.3, 1e-3,
                              1e-3, 0.1),
    [POWER_DC] =
        CRDI_MEASURED("power_dc", "W", "wattmeter: into the inverter of the motor under test", 20,
                      20e-3, 20e-3, 1),
    [POWER_AC] =
        CRDI_MEASURED("power_ac", "W", "wattmeter: into the motor under test", 20, 20e-3, 20e-3, 1),
    [POWER_MECH] =
        CRDI_MEASURED("power_mech", "W", "of the shaft between the motors", 20, 20e-3, 20e-3, 1),
    [POWER_SUPPLY] =
        CRDI_MEASURED("power_supply", "W", "of the converter into the DC link", 20, 5e-3, 0, 1),
    [POWER_RESISTOR] =
        CRDI_MEASURED("power_resistor", "W", "of the braking resistor", 20, 5e-3, 0, 1),
    [SPEED] = CRDI_MEASURED("speed", "rpm", "measured speed", 0.1, 1e-3, 1e-3, 0.1),
    [WINDING_TEMPERATURE] =
        CRDI_MEASURED("temperature", "degC", "winding of the motor under test", 0.1, 0.2, 0, 0.1),
    [COOLANT_IN] =
        CRDI_MEASURED("coolant_in", "degC", "coolant of the motor under test", 0.05, 0.5, 0, 0.1),
    [TANK_TEMPERATURE] =
        CRDI_MEASURED("tank", "degC", "water of the tank, for all others", 0.05, 0.5, 0, 0.1),
};

// ---- the motors --------------------------------------------------------------------------------

static const double PEAK_TORQUE = 400, PEAK_POWER = 200e3, FULL_VOLTAGE = 350;
static const double TORQUE_CONSTANT = 400.0 / 550; // N m/A
static const double PHASE_RESISTANCE = 5e-3;       // at 65 degC
static const double SUPPLY_POWER = 54e3, RESISTOR_POWER = 3e3, CAPACITANCE = 10e-3;

typedef struct losses {
    double copper, iron, inverter;
} losses;

// 3 R I^2, iron and windage, switching and conduction of the inverter.
static losses losses_of(const crdi_plant* p, double torque, double winding)
{
    const double w = fabs(p->omega), i = fabs(torque) / TORQUE_CONSTANT;
    const bool on = p->voltage > 50;
    return (losses){
        .copper = 3 * PHASE_RESISTANCE * i * i * (1 + 0.0039 * (winding - 65)),
        .iron = on ? 0.8 * w + 0.0008 * w * w : 0,
        .inverter = on ? 150 + 3 * i + 0.003 * i * i : 0,
    };
}

static double dc_power(const crdi_plant* p, double torque, const losses* l)
{
    return torque * p->omega + l->copper + l->iron + l->inverter;
}

// C V V' = P_supply - P_resistor - P of both motors. The converter gives and does not take; the
// resistor begins 5 V above the set value.
static void feed_link(crdi_plant* p, double dt)
{
    static const double stiff = 2700, full = 10; // W/V, V
    const double set = fmax(0, p->set[VOLTAGE_REF]), v = fmax(p->voltage, 20);
    const double begins = set > 0 ? 5 : 0; // switched off, it discharges the link
    const losses test = losses_of(p, p->dut, p->temperature[WINDING]);
    const losses load = losses_of(p, p->load, p->temperature[WINDING]);
    const double taken =
        p->voltage > 50 ? dc_power(p, p->dut, &test) + dc_power(p, p->load, &load) : 0;
    p->inner[SUPPLY] = crdi_clamp(stiff * (set - p->voltage) + taken, 0, SUPPLY_POWER);
    if (set == 0) { p->inner[SUPPLY] = 0; }
    p->inner[RESISTOR] =
        crdi_clamp((p->voltage - set - begins) / full, 0, 1) * RESISTOR_POWER * (p->voltage > 1);
    p->voltage += dt * (p->inner[SUPPLY] - p->inner[RESISTOR] - taken) / (CAPACITANCE * v);
    // through its diodes a motor feeds a link that is lower than what it induces
    p->voltage = fmax(p->voltage, p->type->induced * fabs(p->omega) * 30 / M_PI);
}

static void traction_fast(crdi_plant* p, double dt)
{
    static const double lag = 2e-3;
    p->limit = p->inner[DERATING] * fmin(PEAK_TORQUE, PEAK_POWER / fmax(fabs(p->omega), 1)) *
               fmin(1, p->voltage / FULL_VOLTAGE);
    double wanted = p->torque_off ? 0 : crdi_clamp(p->set[TORQUE_REF], -p->limit, p->limit);
    p->expected += (wanted - p->expected) * dt / lag;
    if (!isnan(p->stuck) && !p->torque_off) { wanted = p->stuck; }
    p->dut += (wanted - p->dut) * dt / lag;
    feed_link(p, dt);
}

// ---- heat --------------------------------------------------------------------------------------

// Winding 5 kJ/K, housing 15 kJ/K, the motor's own circuit with 40 l of coolant, the tank.
static void traction_heat(crdi_plant* p, const losses* test, const losses* load, double dt)
{
    static const double to_housing = 30, film = 120, circuit = 150e3, tank = 2000 * 4184.0;
    static const double controller = 9e3, cooler = 10e3, kept = 25, band = 0.5;
    const bool flows = !crdi_plant_has(p, CRDI_TESTBENCH_COOLANT_LOSS);
    double* t = p->temperature;
    const double defect =
        crdi_plant_has(p, CRDI_TESTBENCH_OVERTEMPERATURE) ? 40e3 * fmin(1, fabs(p->omega) / 50) : 0;
    const double a = to_housing * (t[WINDING] - t[HOUSING]);
    const double b = (flows ? film : 6) * (t[HOUSING] - t[COOLANT]);
    const double set = isnan(p->set[COOLANT_REF]) ? t[COOLANT] : p->set[COOLANT_REF];
    const double unit =
        flows
            ? crdi_clamp(controller / band * (fmin(set, isnan(p->cap) ? set : p->cap) - t[COOLANT]),
                         t[COOLANT] > t[TANK] ? -controller : 0, controller)
            : 0;
    const double others = test->inverter + load->inverter + load->copper + load->iron;
    const double out = crdi_clamp((t[TANK] - kept) / 2, 0, 1) * cooler;
    t[WINDING] += dt * (test->copper + defect - a) / 5e3;
    t[HOUSING] += dt * (test->iron + a - b) / 15e3;
    t[COOLANT] += dt * (b + unit) / circuit;
    t[TANK] += dt * (others + fmax(0, -unit) - out) / tank;
}

static void traction_slow(crdi_plant* p, double dt)
{
    static const double points[][2] = {{150, 1}, {180, 0}};
    const losses test = losses_of(p, p->dut, p->temperature[WINDING]);
    const losses load = losses_of(p, p->load, p->temperature[WINDING]);
    double* v = p->value;
    traction_heat(p, &test, &load, dt * p->thermal_scale);
    p->inner[DERATING] = crdi_lookup(points, 2, p->temperature[WINDING]);
    v[VOLTAGE] = p->voltage;
    v[TORQUE] = p->shaft;
    v[TORQUE_CALC] = p->dut;
    v[TORQUE_MAX] = p->limit;
    v[CURRENT] = fabs(p->dut) / TORQUE_CONSTANT;
    v[POWER_DC] = dc_power(p, p->dut, &test);
    v[POWER_AC] = v[POWER_DC] - test.inverter;
    v[POWER_MECH] = p->shaft * p->omega;
    v[POWER_SUPPLY] = p->inner[SUPPLY];
    v[POWER_RESISTOR] = p->inner[RESISTOR];
    v[SPEED] = p->omega * 30 / M_PI;
    v[WINDING_TEMPERATURE] = p->temperature[WINDING];
    v[COOLANT_IN] = p->temperature[COOLANT];
    v[TANK_TEMPERATURE] = p->temperature[TANK];
}

// ---- as a bench --------------------------------------------------------------------------------

static const crdi_plant_quantity quantities[] = {
    // name, unit, role, signals; while conditioning; trips; cool down
    {"speed", NULL, CRD_DCP_ROLE_SPEED, SPEED_REF, SPEED, 100, -500, 19000, NAN},
    {"torque", NULL, CRD_DCP_ROLE_TORQUE, TORQUE_REF, TORQUE, 0, -480, 480, NAN},
    {"voltage", NULL, CRD_DCP_ROLE_VOLTAGE, VOLTAGE_REF, VOLTAGE, 60, -5, 430, NAN},
    {"coolant", NULL, CRD_DCP_ROLE_TEMPERATURE, COOLANT_REF, COOLANT_IN, NAN, 0, 95, NAN},
    {"winding", "degC", CRD_DCP_ROLE_TEMPERATURE, -1, WINDING_TEMPERATURE, NAN, -20, 175, 120},
    {"current", "A", CRD_DCP_ROLE_OTHER, -1, CURRENT, NAN, -1, 600, NAN},
};

const crdi_plant_type crdi_plant_traction = {
    .name = "traction",
    .title = "traction motor bench",
    .uuid = {0x43, 0x61, 0x72, 0x64, 0x61, 0x6e, 0x4d, 0x04, 0x8e, 0x6d, 0x20, 0x21, 0, 0, 0, 4},
    .signals = signals,
    .signal_count = SIGNALS,
    .input_count = INPUTS,
    .drive = {.inertia = 0.065,
              .dut_inertia = 0.0325,
              .torque = 430,
              .power = 215e3,
              .tau = 2e-3,
              .slow_tau = 2e-3,
              .filter = 10e-3,
              .slew = CRDI_RPM(1100),
              .friction = 0.8,
              .dut_friction = 0.4,
              .viscous = 5e-4,
              .brake = 20,
              .overspeed = CRDI_RPM(19500),
              .speed_error = CRDI_RPM(300),
              .speed_patience = 0.05,
              .torque_error = 20,
              .torque_patience = 0.05},
    .speed_input = SPEED_REF,
    .torque_input = TORQUE_REF,
    .speed_output = SPEED,
    .ambient = 25,
    .media = true,
    .fast = traction_fast,
    .slow = traction_slow,
    .limits = "speed 0..18000 1/min rate 1100 1/min/s; torque -400..400 N.m rate 4000 N.m/s; "
              "voltage 0..400 V rate 200 V/s; coolant 25..77 degC; winding ..175 degC; "
              "current 0..560 A",
    .checklist = {"converter on", "temperature control on", "data acquisition ready",
                  "remote control selected", "coolant flow", "torque control", "speed control",
                  "emergency stop released"},
    .quantities = quantities,
    .quantity_count = sizeof quantities / sizeof *quantities,
    .induced = 0.02,
    .stop_rate = 1100,
    .turn_speed = 90,
    .stop_time = 22, // 16.4 s of it from 18,000 1/min at 1100 1/min/s
    .speed_overshoot = 130,
    .torque_overshoot = 15,
};
