// The traction battery, 96 cells of 34 Ah in series: open-circuit voltage by charge, a resistance
// and two RC elements, limits of the current, and the car's own consumers.
//
//   V' = V_oc(SoC) - V_1 - V_2,  I = (V' - sqrt(V'^2 - 4 R_0 P)) / (2 R_0),  SoC' = -I / Q
//   V_k' = (R_k I - V_k) / tau_k
//
// P is the machine's power and `aux`. Where the current is at a limit the rest of the power is not
// there; `energy_missing` counts it, and a controller that keeps to the limits leaves it at zero.
#include "pt.h"

typedef struct battery {
    double power;
    double voltage, current, soc, voltage_open, discharge_max, charge_max, loss;
    double energy_terminal, energy_chemical, energy_loss, energy_aux, energy_missing;
    double v1, v2;
    double soc_start, capacity_ah, r0, r1, tau1, r2, tau2, current_max, current_min, aux, cells;
    double soc_low, soc_high;
} battery;

static const double soc_grid[] = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
static const double cell_voltage[] = {3.30, 3.50, 3.58, 3.62, 3.66, 3.71,
                                      3.80, 3.90, 4.00, 4.09, 4.18};

// The powers that are left for the machine, both >= 0; they fade at the ends of the charge.
static void limits(battery* b)
{
    b->voltage_open = b->cells * pt_curve(soc_grid, cell_voltage, 11, b->soc);
    const double v = b->voltage_open - b->v1 - b->v2;
    const double i = fmin(b->current_max, v / (2 * b->r0));
    const double low = pt_clamp((b->soc - b->soc_low) / 0.02, 0, 1);
    const double high = pt_clamp((b->soc_high - b->soc) / 0.02, 0, 1);
    b->discharge_max = fmax(0, low * (v - b->r0 * i) * i - b->aux);
    b->charge_max = high * -(v - b->r0 * b->current_min) * b->current_min + b->aux;
}

static crd_model_status battery_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    battery* b = self;
    b->soc = b->soc_start;
    b->v1 = b->v2 = b->current = b->loss = 0;
    b->energy_terminal = b->energy_chemical = b->energy_loss = b->energy_aux = 0;
    b->energy_missing = 0;
    const bool good = b->soc >= 0 && b->soc <= 1 && b->r0 > 0 && b->tau1 > 0 && b->tau2 > 0 &&
                      b->capacity_ah > 0 && b->current_max > 0 && b->current_min < 0;
    if (good) {
        limits(b);
        b->voltage = b->voltage_open;
    }
    return pt_expect(
        host, good,
        "expected 0 <= soc_start <= 1, r0, tau1, tau2, capacity_ah, current_max > 0 and "
        "current_min < 0");
}

static crd_model_status battery_step(void* self, const crd_model_host* host, double t, double h,
                                     double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    battery* b = self;
    const double v = b->voltage_open - b->v1 - b->v2, p = b->power + b->aux;
    const double root = fmax(v * v - 4 * b->r0 * p, 0);
    b->current = pt_clamp((v - sqrt(root)) / (2 * b->r0), b->current_min, b->current_max);
    b->voltage = v - b->r0 * b->current;
    const double given = b->voltage * b->current, i = b->current;
    b->loss = b->voltage_open * i - given;
    b->energy_terminal += h * given;
    b->energy_chemical += h * b->voltage_open * i;
    b->energy_loss += h * b->loss;
    b->energy_aux += h * b->aux;
    b->energy_missing += h * (p - given);
    b->soc = pt_clamp(b->soc - h * i / (3600 * b->capacity_ah), 0, 1);
    b->v1 += (b->r1 * i - b->v1) * pt_approach(h, b->tau1);
    b->v2 += (b->r2 * i - b->v2) * pt_approach(h, b->tau2);
    limits(b);
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {PT_INPUT(battery, power, "W", "that the machine takes")},
    {PT_OUTPUT(battery, voltage, "V", "at the terminals")},
    {PT_OUTPUT(battery, current, "A", "positive: discharge")},
    {PT_OUTPUT(battery, soc, NULL, "state of charge, 0 to 1")},
    {PT_OUTPUT(battery, voltage_open, "V", "open circuit")},
    {PT_OUTPUT(battery, discharge_max, "W", "left for the machine")},
    {PT_OUTPUT(battery, charge_max, "W", "that the machine may give back")},
    {PT_OUTPUT(battery, loss, "W", "inside")},
    {PT_OUTPUT(battery, energy_terminal, "J", "given at the terminals")},
    {PT_OUTPUT(battery, energy_chemical, "J", "taken from the charge")},
    {PT_OUTPUT(battery, energy_loss, "J", "heat, and what its capacitances hold")},
    {PT_OUTPUT(battery, energy_aux, "J", "for the car's own consumers")},
    {PT_OUTPUT(battery, energy_missing, "J", "asked for beyond the limits of the current")},
    {PT_PARAMETER(battery, soc_start, 0.2, NULL, "state of charge at the beginning"), .max = 1},
    {PT_PARAMETER(battery, capacity_ah, 34, NULL, "A h")},
    {PT_PARAMETER(battery, cells, 96, NULL, "in series")},
    {PT_PARAMETER(battery, r0, 0.085, "Ohm", "of all cells")},
    {PT_PARAMETER(battery, r1, 0.030, "Ohm", "of the fast RC element")},
    {PT_PARAMETER(battery, tau1, 8, "s", "of the fast RC element")},
    {PT_PARAMETER(battery, r2, 0.045, "Ohm", "of the slow RC element")},
    {PT_PARAMETER(battery, tau2, 150, "s", "of the slow RC element")},
    {PT_PARAMETER(battery, current_max, 340, "A", "discharge")},
    {PT_PARAMETER(battery, current_min, -260, "A", "charge")},
    {PT_TUNABLE(battery, aux, 300, 0, 1e4, "W", "the car's own consumers")},
    {PT_PARAMETER(battery, soc_low, 0.05, NULL, "no power for the machine below")},
    {PT_PARAMETER(battery, soc_high, 0.97, NULL, "no charging above")},
};

const crd_model crd_model_pt_battery = {
    .name = "pt_battery",
    .description = "traction battery with two RC elements",
    PT_SAMPLED(battery, rows, 10, pt_hold_outputs),
};
