// The bench of a traction battery, the third of Rautenberg 2023 (section 5): a battery simulator
// that closes the DC link of the machine's bench. Its current is what the link takes, its voltage
// what the link gets.
//
// Contactors close over a pre-charge when a voltage is asked for, and open when none is, at zero
// current. The battery management (BMS) allows currents that move with charge and temperature: they
// are the limits of the set value, by the safety core. Data of the cells are those of pt_battery;
// heat, pre-charge and the curves of the BMS are ours.
#include "testbench/bench.h"

#include <math.h>

enum { // signals
    CURRENT_REF,
    VOLTAGE_REF,
    COOLANT_REF,
    VOLTAGE,
    CURRENT,
    POWER,
    SOC,
    CURRENT_MAX,
    CURRENT_MIN,
    DISCHARGE_MAX,
    CHARGE_MAX,
    CONTACTORS,
    TEMPERATURE,
    COOLANT_IN,
    SIGNALS,
    INPUTS = VOLTAGE
};
enum { CELLS, COOLANT };                 // nodes
enum { CHARGE, FAST_RC, SLOW_RC, LINK }; // inner; LINK: of the contactors
enum { OPEN, PRE_CHARGE, CLOSED };

static const crdi_testbench_signal signals[SIGNALS] = {
    [CURRENT_REF] = CRDI_SET_VALUE("current_ref", "A",
                                   "what the DC link takes; below 0: gives back", -260, 340),
    [VOLTAGE_REF] = CRDI_SET_VALUE("voltage_ref", "V",
                                   "contactors are closed above 250 V and open below", 0, 420),
    [COOLANT_REF] = CRDI_SET_VALUE("coolant_ref", "degC", "set value of the coolant", 0, 45),
    [VOLTAGE] = CRDI_MEASURED("voltage", "V", "of the DC link", 0.1, 1e-3, 1e-3, 0.05),
    [CURRENT] =
        CRDI_MEASURED("current", "A", "of the battery, above 0: discharge", 0.1, 1e-3, 1e-3, 0.05),
    [POWER] = CRDI_MEASURED("power", "W", "into the DC link", 20, 1e-3, 1e-3, 1),
    [SOC] = CRDI_MEASURED("soc", "1", "state of charge, as the BMS counts it", 0, 0, 0, 1e-5),
    [CURRENT_MAX] = CRDI_MEASURED("current_max", "A", "BMS: largest discharge now", 0, 0, 0, 0),
    [CURRENT_MIN] =
        CRDI_MEASURED("current_min", "A", "BMS: largest charge now, below 0", 0, 0, 0, 0),
    [DISCHARGE_MAX] = CRDI_MEASURED("discharge_max", "W", "BMS: largest power now", 0, 0, 0, 0),
    [CHARGE_MAX] = CRDI_MEASURED("charge_max", "W", "BMS: largest charging power now", 0, 0, 0, 0),
    [CONTACTORS] = CRDI_MEASURED("contactors", "1", "0 open, 1 pre-charge, 2 closed", 0, 0, 0, 0),
    [TEMPERATURE] = CRDI_MEASURED("temperature", "degC", "hottest cell", 0.1, 0.2, 0, 0.1),
    [COOLANT_IN] =
        CRDI_MEASURED("coolant_in", "degC", "coolant towards the cells", 0.05, 0.5, 0, 0.1),
};

// ---- the cells ---------------------------------------------------------------------------------

static const double CAPACITY = 34 * 3600; // A s
static const double R0 = 85e-3, R1 = 30e-3, TAU1 = 8, R2 = 45e-3, TAU2 = 150;

// 96 in series
static double open_voltage(double soc)
{
    static const double points[][2] = {{0, 3.30},   {0.1, 3.50}, {0.2, 3.58}, {0.3, 3.62},
                                       {0.4, 3.66}, {0.5, 3.71}, {0.6, 3.80}, {0.7, 3.90},
                                       {0.8, 4.00}, {0.9, 4.09}, {1, 4.18}};
    return 96 * crdi_lookup(points, 11, soc);
}

static double inner_voltage(const crdi_plant* p)
{
    return open_voltage(p->inner[CHARGE]) - p->inner[FAST_RC] - p->inner[SLOW_RC];
}

// ---- the BMS -----------------------------------------------------------------------------------

// Nothing out of an empty battery, nothing into a full or frozen one, nothing through a hot one.
static void bms_limits(const crdi_plant* p, double* min, double* max)
{
    static const double low[][2] = {{0.05, 0}, {0.15, 1}}, high[][2] = {{0.85, 1}, {0.97, 0}};
    static const double out[][2] = {{-20, 0}, {15, 1}, {45, 1}, {58, 0}};
    static const double in[][2] = {{0, 0}, {15, 1}, {45, 1}, {56, 0}};
    const double soc = p->inner[CHARGE], t = p->temperature[CELLS];
    *max = 340 * crdi_lookup(low, 2, soc) * crdi_lookup(out, 4, t);
    *min = -260 * crdi_lookup(high, 2, soc) * crdi_lookup(in, 4, t);
}

static bool battery_range(const crdi_plant* p, int signal, double* min, double* max)
{
    if (signal != CURRENT_REF) { return false; }
    bms_limits(p, min, max);
    return true;
}

// The link has 2 mF. Pre-charge goes through 50 Ohm until 95 % are reached; what is open discharges
// through a resistor, ten times its time constant before the set value of a stop is at 0.
// Contactors do not open under load: the current dies first.
static void switch_contactors(crdi_plant* p, double terminal, double dt)
{
    static const double closes = 250, charges = 0.1, discharges = 0.1, no_load = 1; // V, s, s, A
    const bool wanted = p->set[VOLTAGE_REF] > closes && !p->load_off && !p->torque_off;
    const double is = p->inner[LINK];
    if (!wanted && fabs(p->dut) < no_load) {
        p->inner[LINK] = OPEN;
    } else if (wanted && is == OPEN) {
        p->inner[LINK] = PRE_CHARGE;
    } else if (is == PRE_CHARGE && p->voltage > 0.95 * terminal) {
        p->inner[LINK] = CLOSED;
    }
    if (p->inner[LINK] == CLOSED) {
        p->voltage = terminal;
    } else if (p->inner[LINK] == PRE_CHARGE) {
        p->voltage += (terminal - p->voltage) * dt / charges;
    } else {
        p->voltage -= p->voltage * dt / discharges;
    }
}

static void battery_fast(crdi_plant* p, double dt)
{
    static const double lag = 2e-3;
    double min, max;
    bms_limits(p, &min, &max);
    const bool on = p->inner[LINK] == CLOSED && !p->torque_off && !p->load_off;
    double wanted = on ? crdi_clamp(p->set[CURRENT_REF], min, max) : 0;
    p->expected += (wanted - p->expected) * dt / lag;
    if (!isnan(p->stuck) && on) { wanted = p->stuck; }
    p->dut += (wanted - p->dut) * dt / lag;
    switch_contactors(p, inner_voltage(p) - R0 * p->dut, dt);
}

// ---- heat and charge ---------------------------------------------------------------------------

static void battery_slow(crdi_plant* p, double dt)
{
    static const double cells = 100e3, film = 300, circuit = 20e3;
    const double i = p->dut, loss = R0 * i * i + i * (p->inner[FAST_RC] + p->inner[SLOW_RC]);
    const bool flows = !crdi_plant_has(p, CRDI_TESTBENCH_COOLANT_LOSS);
    const double defect =
        crdi_plant_has(p, CRDI_TESTBENCH_OVERTEMPERATURE) && p->inner[LINK] == CLOSED ? 2e6 : 0;
    double *v = p->value, *t = p->temperature, min, max;
    const double out = (flows ? film : 10) * (t[CELLS] - t[COOLANT]), step = dt * p->thermal_scale;
    t[CELLS] += step * (loss + defect - out) / cells;
    t[COOLANT] +=
        step *
        (out + (flows ? crdi_condition(fmin(p->set[COOLANT_REF], p->cap), t[COOLANT], 3e3, 500, -5)
                      : 0)) /
        circuit;
    p->inner[CHARGE] = crdi_clamp(p->inner[CHARGE] - dt * i / CAPACITY, 0, 1);
    p->inner[FAST_RC] += (R1 * i - p->inner[FAST_RC]) * dt / TAU1;
    p->inner[SLOW_RC] += (R2 * i - p->inner[SLOW_RC]) * dt / TAU2;
    bms_limits(p, &min, &max);
    v[VOLTAGE] = p->voltage;
    v[CURRENT] = i;
    v[POWER] = i * p->voltage;
    v[SOC] = p->inner[CHARGE];
    v[CURRENT_MAX] = max;
    v[CURRENT_MIN] = min;
    v[DISCHARGE_MAX] = max * fmax(0, inner_voltage(p) - R0 * max);
    v[CHARGE_MAX] = -min * (inner_voltage(p) - R0 * min);
    v[CONTACTORS] = p->inner[LINK];
    v[TEMPERATURE] = t[CELLS];
    v[COOLANT_IN] = t[COOLANT];
}

// ---- as a bench --------------------------------------------------------------------------------

static const crdi_plant_quantity quantities[] = {
    // name, unit, role, signals; while conditioning; trips; cool down
    {"current", NULL, CRD_DCP_ROLE_TORQUE, CURRENT_REF, CURRENT, NAN, -300, 380, NAN},
    {"voltage", NULL, CRD_DCP_ROLE_VOLTAGE, VOLTAGE_REF, VOLTAGE, NAN, -5, 430, NAN},
    {"coolant", NULL, CRD_DCP_ROLE_TEMPERATURE, COOLANT_REF, COOLANT_IN, NAN, -25, 65, NAN},
    {"cells", "degC", CRD_DCP_ROLE_TEMPERATURE, -1, TEMPERATURE, NAN, -25, 60, NAN},
    {"soc", "1", CRD_DCP_ROLE_OTHER, -1, SOC, NAN, 0.02, 0.99, NAN},
};

const crdi_plant_type crdi_plant_battery = {
    .name = "battery",
    .title = "battery bench",
    .uuid = {0x43, 0x61, 0x72, 0x64, 0x61, 0x6e, 0x4d, 0x05, 0x8e, 0x6d, 0x20, 0x23, 0, 0, 0, 5},
    .signals = signals,
    .signal_count = SIGNALS,
    .input_count = INPUTS,
    .drive = {.torque_error = 20, .torque_patience = 0.05}, // of the current; there is no shaft
    .speed_input = -1,
    .torque_input = CURRENT_REF,
    .speed_output = -1,
    .ambient = 25,
    .media = true,
    .charge = CHARGE,
    .fast = battery_fast,
    .slow = battery_slow,
    .range = battery_range,
    .limits = "current -260..340 A; voltage 0..420 V rate 250 V/s; coolant 0..45 degC; "
              "cells ..60 degC; soc 0.02..0.99 1",
    .checklist = {"battery simulator on", "temperature control on", "data acquisition ready",
                  "remote control selected", "coolant flow", "current control", "insulation",
                  "emergency stop released"},
    .quantities = quantities,
    .quantity_count = sizeof quantities / sizeof *quantities,
    .stop_rate = 1,
    .stop_time = 4,
};
