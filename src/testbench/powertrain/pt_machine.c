// The electric machine with its inverter, as its bench sees it: torque, speed, voltage and oil
// temperature are set; torque, limits, powers, current and temperatures come back (the signals of
// Rautenberg et al. 2023, tables 5 and 6).
//
//   T_max = min(250, 85 kW / w) k_T min(1, U / 330 V),  T follows T_ref within +-T_max
//   P_loss = 120 + 1.2 w + 0.0035 w^2 + 0.055 T^2 (1 + 0.0039 (T_w - 60))
//   winding 6 kJ/K - 25 W/K - housing 20 kJ/K - 220 W/K - oil; copper heats the winding, the rest
//   the housing. k_T is 1 below 140 degC, falls to 40/85 at 160 and to 0 at 180.
//
// With `external` the temperature of the winding comes from outside, from a finer thermal network
// that is fed by `loss_copper`, `loss_iron`; the machine's own two bodies then rest.
#include "pt.h"

typedef struct machine {
    double torque_ref, speed_ref, voltage_ref, oil_ref, winding_in;
    double speed, torque, torque_max, power_max, power_mech, power_ac, power_dc, current_dc;
    double voltage_dc;
    double temperature_max, temperature_mean, oil_in, oil_out;
    double loss, loss_copper, loss_iron, loss_inverter, derating;
    double energy_mech, energy_dc, energy_loss;
    double winding, housing; // degC
    bool external;
    double torque_peak, power_peak, voltage_full, lag, start_temperature, oil_rate, speed_max;
} machine;

static const double derating_temperature[] = {140, 160, 180};
static const double derating_factor[] = {1, 40.0 / 85.0, 0};

static double envelope(const machine* m, double w, double voltage)
{
    const double a = fabs(w);
    if (a > m->speed_max) { return 0; }
    const double base = a * m->torque_peak > m->power_peak ? m->power_peak / a : m->torque_peak;
    return base * m->derating * pt_clamp(voltage / m->voltage_full, 0, 1);
}

// What follows from temperatures and inputs.
static void limits(machine* m)
{
    m->derating = pt_curve(derating_temperature, derating_factor, 3, m->winding);
    m->torque_max = envelope(m, m->speed_ref, m->voltage_ref);
    m->power_max = m->torque_max * fabs(m->speed_ref);
    m->voltage_dc = m->voltage_ref;
    m->speed = m->speed_ref;
}

static void temperatures(machine* m)
{
    m->temperature_max = m->winding;
    m->temperature_mean = (6 * m->winding + 20 * m->housing) / 26; // by heat capacity
    m->oil_in = m->oil_ref;
    m->oil_out = m->oil_in + 220 * (m->housing - m->oil_in) / m->oil_rate;
}

static crd_model_status machine_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    machine* m = self;
    m->winding = m->external ? m->winding_in : m->start_temperature;
    m->housing = m->start_temperature;
    m->torque = m->power_mech = m->power_ac = m->power_dc = m->current_dc = 0;
    m->loss = m->loss_copper = m->loss_iron = m->loss_inverter = 0;
    m->energy_mech = m->energy_dc = m->energy_loss = 0;
    const bool good = m->oil_rate > 0 && m->voltage_full > 0 && m->torque_peak >= 0 &&
                      m->power_peak >= 0 && m->lag >= 0;
    if (good) {
        limits(m);
        temperatures(m);
    }
    return pt_expect(host, good, "oil_rate and voltage_full have to be > 0, peaks and lag >= 0");
}

static void losses(machine* m, double w)
{
    const double T = m->torque, a = fabs(w);
    m->loss_inverter = 120;
    m->loss_iron = 1.2 * a + 0.0035 * a * a;
    m->loss_copper = 0.055 * T * T * (1 + 0.0039 * (m->winding - 60));
    m->loss = m->loss_inverter + m->loss_iron + m->loss_copper;
}

static void heat(machine* m, double h)
{
    if (m->external) {
        m->winding = m->winding_in;
        return;
    }
    const double across = 25 * (m->winding - m->housing), out = 220 * (m->housing - m->oil_ref);
    m->winding += h * (m->loss_copper - across) / 6e3;
    m->housing += h * (m->loss_iron + m->loss_inverter + across - out) / 20e3;
}

static crd_model_status machine_step(void* self, const crd_model_host* host, double t, double h,
                                     double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    machine* m = self;
    const double w = m->speed_ref;
    limits(m);
    m->torque += (m->torque_ref - m->torque) * pt_approach(h, m->lag);
    m->torque = pt_clamp(m->torque, -m->torque_max, m->torque_max);
    losses(m, w);
    m->power_mech = m->torque * w;
    m->power_ac = m->power_mech + m->loss - m->loss_inverter;
    m->power_dc = m->power_mech + m->loss;
    m->current_dc = m->voltage_ref > 0 ? m->power_dc / m->voltage_ref : 0;
    m->energy_mech += h * m->power_mech;
    m->energy_dc += h * m->power_dc;
    m->energy_loss += h * m->loss;
    heat(m, h);
    temperatures(m);
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {PT_INPUT(machine, torque_ref, "N.m", "wanted torque, negative: generator")},
    {PT_INPUT(machine, speed_ref, "rad/s", "speed that bench or gearbox set")},
    {PT_INPUT(machine, voltage_ref, "V", "of the battery or its simulator"), .start = 340},
    {PT_INPUT(machine, oil_ref, "degC", "of the conditioning, at the inlet"), .start = 60},
    {PT_INPUT(machine, winding_in, "degC", "of the winding, with `external`"), .start = 30},
    {PT_OUTPUT(machine, speed, "rad/s", "as it was set")},
    {PT_OUTPUT(machine, torque, "N.m", "at the shaft")},
    {PT_OUTPUT(machine, torque_max, "N.m", "envelope at this speed, voltage and temperature")},
    {PT_OUTPUT(machine, power_max, "W", "envelope at this speed, voltage and temperature")},
    {PT_OUTPUT(machine, power_mech, "W", "at the shaft")},
    {PT_OUTPUT(machine, power_ac, "W", "between inverter and winding")},
    {PT_OUTPUT(machine, power_dc, "W", "from the battery")},
    {PT_OUTPUT(machine, current_dc, "A", "from the battery")},
    {PT_OUTPUT(machine, voltage_dc, "V", "measured")},
    {PT_OUTPUT(machine, temperature_max, "degC", "of the winding")},
    {PT_OUTPUT(machine, temperature_mean, "degC", "of all of it")},
    {PT_OUTPUT(machine, oil_in, "degC", "inlet")},
    {PT_OUTPUT(machine, oil_out, "degC", "outlet")},
    {PT_OUTPUT(machine, loss, "W", "of all kinds")},
    {PT_OUTPUT(machine, loss_copper, "W", "in the winding")},
    {PT_OUTPUT(machine, loss_iron, "W", "iron and friction")},
    {PT_OUTPUT(machine, loss_inverter, "W", "in the inverter")},
    {PT_OUTPUT(machine, derating, NULL, "part of the torque that the temperature leaves")},
    {PT_OUTPUT(machine, energy_mech, "J", "given to the shaft")},
    {PT_OUTPUT(machine, energy_dc, "J", "taken from the battery")},
    {PT_OUTPUT(machine, energy_loss, "J", "heat")},
    {.name = "external",
     .type = CRD_BOOLEAN,
     .causality = CRD_PARAMETER,
     .variability = CRD_FIXED,
     .offset = offsetof(machine, external),
     .description = "winding_in says how warm the winding is"},
    {PT_PARAMETER(machine, torque_peak, 250, "N.m", "at low speed")},
    {PT_PARAMETER(machine, power_peak, 85e3, "W", "at high speed")},
    {PT_PARAMETER(machine, voltage_full, 330, "V", "below it the torque falls with the voltage")},
    {PT_PARAMETER(machine, lag, 0, "s", "of the torque; 0: as fast as the step")},
    {PT_PARAMETER(machine, start_temperature, 30, "degC", "of winding and housing")},
    {PT_PARAMETER(machine, oil_rate, 300, "W/K", "heat capacity of the oil that flows per second")},
    {PT_PARAMETER(machine, speed_max, 680.678, "rad/s", "no torque above: 6500/min")},
};

const crd_model crd_model_pt_machine = {
    .name = "pt_machine",
    .description = "electric machine and inverter: envelope, losses, temperatures, derating",
    PT_SAMPLED(machine, rows, 10, pt_hold_outputs),
};
