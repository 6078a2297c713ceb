// The car behind the engine and the machine: gearbox with losses and interrupted shifts, final
// drive, wheels, road load, friction brakes, limit of traction.
//
//   F_w = (T - T_drag) r eta^(+-1),  r = i_gear i_final / radius,  w = r v
//   m v' = F_w - F_brake - F_road,  F_road = f0 + f1 v + f2 v^2
//   T_drag = drag exp((60 degC - oil) / 40 K): the churning of cold oil
//
// A new gear is engaged at once when it is asked for, but for `shift_time` no torque goes through;
// meanwhile the ratio moves from the old one to the new one, and with it the speed of the shaft.
// Energies go with the mean speed of the step, so that the kinetic energy is exact.
#include "pt.h"

#define GEARS 8

typedef struct vehicle {
    double engine_torque, machine_torque, brake, oil;
    int32_t gear;
    double speed, distance, acceleration, shaft_speed, ratio, force_wheel, force_brake, force_road,
        heat;
    bool shifting;
    int32_t engaged, shifts;
    double energy_shaft, energy_gearbox, energy_wheel, energy_brake, energy_road, energy_kinetic,
        energy_slip;
    double shift_left, ratio_from;
    double mass, f0, f1, f2, radius, final, efficiency, drag, shift_time, traction, speed_start;
} vehicle;

static const double gears[GEARS] = {4.71, 3.14, 2.11, 1.67, 1.29, 1.00, 0.84, 0.67};

static double ratio_of(const vehicle* c, int gear)
{
    const int i = gear < 1 ? 0 : gear > GEARS ? GEARS - 1 : gear - 1;
    return gears[i] * c->final / c->radius;
}

static crd_model_status vehicle_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    vehicle* c = self;
    const bool good = c->mass > 0 && c->radius > 0 && c->final > 0 && c->efficiency > 0 &&
                      c->efficiency <= 1 && c->shift_time >= 0 && c->speed_start >= 0;
    c->speed = c->speed_start;
    c->distance = c->acceleration = c->force_wheel = c->force_brake = c->force_road = c->heat = 0;
    c->energy_shaft = c->energy_gearbox = c->energy_wheel = c->energy_brake = c->energy_road = 0;
    c->energy_slip = 0;
    c->energy_kinetic = 0.5 * c->mass * c->speed * c->speed;
    c->shifting = false;
    c->shift_left = 0;
    c->shifts = 0;
    c->engaged = c->gear < 1 ? 1 : c->gear > GEARS ? GEARS : c->gear;
    if (good) { c->ratio = c->ratio_from = ratio_of(c, c->engaged); }
    c->shaft_speed = c->ratio * c->speed;
    return pt_expect(host, good,
                     "mass, radius and final have to be > 0, 0 < efficiency <= 1, shift_time and "
                     "speed_start >= 0");
}

static void change_gear(vehicle* c, double h)
{
    const int wanted = c->gear < 1 ? 1 : c->gear > GEARS ? GEARS : c->gear;
    if (c->shift_left > 0) { c->shift_left -= h; }
    if (c->shift_left < 1e-9) {
        c->shift_left = 0;
        if (wanted != c->engaged) {
            c->ratio_from = ratio_of(c, c->engaged);
            c->engaged = wanted;
            c->shift_left = c->shift_time;
            c->shifts++;
        }
    }
    c->shifting = c->shift_left > 0;
}

// From the shaft through the gearbox to the wheels; what the tyres cannot hold is slip.
static double traction_force(const vehicle* c, double torque, double* slip)
{
    *slip = 0;
    if (c->shifting) { return 0; }
    const double net = torque - c->drag * exp((60 - c->oil) / 40);
    const double force = net * c->ratio * (net > 0 ? c->efficiency : 1 / c->efficiency);
    const double held = pt_clamp(force, -c->traction, c->traction);
    *slip = force - held;
    return held;
}

static crd_model_status vehicle_step(void* self, const crd_model_host* host, double t, double h,
                                     double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    vehicle* c = self;
    change_gear(c, h);
    double slip = 0;
    const double v = c->speed, torque = c->engine_torque + c->machine_torque;
    double wheel = traction_force(c, torque, &slip);
    double road = c->f0 + v * (c->f1 + v * c->f2), brake = fmax(c->brake, 0);
    // What would push it backwards holds it instead: first the brake gives way, then the road.
    double excess = -(wheel - brake - road) - c->mass * v / h;
    if (excess > 0) {
        const double less = fmin(excess, brake);
        brake -= less;
        excess -= less;
        const double still = fmin(excess, road);
        road -= still;
        wheel += excess - still;
    }
    c->acceleration = (wheel - brake - road) / c->mass;
    const double after = fmax(v + h * c->acceleration, 0), way = 0.5 * h * (v + after);
    const double shaft = torque * c->ratio * way;
    c->force_wheel = wheel;
    c->force_brake = brake;
    c->force_road = road;
    c->energy_shaft += shaft;
    c->energy_wheel += wheel * way;
    c->energy_slip += slip * way;
    c->heat = (shaft - (wheel + slip) * way) / h;
    c->energy_gearbox += shaft - (wheel + slip) * way;
    c->energy_brake += brake * way;
    c->energy_road += road * way;
    c->energy_kinetic = 0.5 * c->mass * after * after;
    c->distance += way;
    c->speed = after;
    // The ratio of the next step, and with it the speed of the shaft.
    const double part = c->shift_time > 0 ? fmax(c->shift_left - h, 0) / c->shift_time : 0;
    const double to = ratio_of(c, c->engaged);
    c->ratio = c->shifting ? to + (c->ratio_from - to) * part : to;
    c->shaft_speed = c->ratio * after;
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {PT_INPUT(vehicle, engine_torque, "N.m", "at the shaft of the gearbox")},
    {PT_INPUT(vehicle, machine_torque, "N.m", "at the shaft of the gearbox")},
    {PT_INPUT(vehicle, brake, "N", "of the friction brakes, >= 0")},
    {PT_COUNT(vehicle, gear, CRD_INPUT, "wanted gear, 1 to 8"), .start = 1},
    {PT_INPUT(vehicle, oil, "degC", "in the gearbox: cold oil drags"), .start = 60},
    {PT_OUTPUT(vehicle, speed, "m/s", "of the car")},
    {PT_OUTPUT(vehicle, distance, "m", "travelled")},
    {PT_OUTPUT(vehicle, acceleration, "m/s2", "of the car")},
    {PT_OUTPUT(vehicle, shaft_speed, "rad/s", "at the input of the gearbox")},
    {PT_OUTPUT(vehicle, ratio, "rad/m", "shaft speed over speed of the car")},
    {PT_OUTPUT(vehicle, force_wheel, "N", "of the drive at the wheels")},
    {PT_OUTPUT(vehicle, force_brake, "N", "of the friction brakes, in effect")},
    {PT_OUTPUT(vehicle, force_road, "N", "road load, in effect")},
    {PT_OUTPUT(vehicle, heat, "W", "of the gearbox, into its oil")},
    {PT_FLAG(vehicle, shifting, CRD_OUTPUT, "no torque goes through")},
    {PT_COUNT(vehicle, engaged, CRD_OUTPUT, "gear, 1 to 8")},
    {PT_COUNT(vehicle, shifts, CRD_OUTPUT, "since the beginning")},
    {PT_OUTPUT(vehicle, energy_shaft, "J", "taken from the shaft")},
    {PT_OUTPUT(vehicle, energy_gearbox, "J", "lost in the gearbox")},
    {PT_OUTPUT(vehicle, energy_wheel, "J", "of the drive at the wheels")},
    {PT_OUTPUT(vehicle, energy_brake, "J", "lost in the friction brakes")},
    {PT_OUTPUT(vehicle, energy_road, "J", "lost to road and air")},
    {PT_OUTPUT(vehicle, energy_kinetic, "J", "in the moving car")},
    {PT_OUTPUT(vehicle, energy_slip, "J", "lost in the tyres at the limit of traction")},
    {PT_PARAMETER(vehicle, mass, 1957, "kg", "1900 kg, and 3 % for what rotates")},
    {PT_PARAMETER(vehicle, f0, 165, "N", "road load, constant part")},
    {PT_PARAMETER(vehicle, f1, 1.6, "N.s/m", "road load, linear part")},
    {PT_PARAMETER(vehicle, f2, 0.40, NULL, "road load, quadratic part, N s^2/m^2")},
    {PT_PARAMETER(vehicle, radius, 0.330, "m", "of the wheels")},
    {PT_PARAMETER(vehicle, final, 3.15, NULL, "ratio of the final drive")},
    {PT_PARAMETER(vehicle, efficiency, 0.9457, NULL, "gearbox 0.965 times final drive 0.98")},
    {PT_PARAMETER(vehicle, drag, 3, "N.m", "of the gearbox, at its shaft, with oil of 60 degC")},
    {PT_PARAMETER(vehicle, shift_time, 0.25, "s", "without torque")},
    {PT_TUNABLE(vehicle, traction, 9000, 0, 1e5, "N", "that the tyres hold")},
    {PT_PARAMETER(vehicle, speed_start, 0, "m/s", "at the beginning")},
};

const crd_model crd_model_pt_vehicle = {
    .name = "pt_vehicle",
    .description = "gearbox, wheels, road load and brakes of a car",
    PT_SAMPLED(vehicle, rows, 10, pt_hold_outputs),
};
