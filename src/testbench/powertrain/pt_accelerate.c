// A hybrid car that accelerates and shifts once, for the coupling with an engine on a test bed
// (after Baumann et al. 2024, section 3): driver, electric machine behind a double-clutch gearbox
// (P2.5), flexible driveline, road load.
//
//   w_o: speed behind the gearbox, phi: twist of the side shafts, i: ratio, theta: of the wheels
//   (J_1 i^2 + J_2) w_o' = kappa i eta (T + T_em) - T_s,  phi' = w_o - v / r
//   T_s = k phi (1 + u sin theta) + d (w_o - v / r),  m v' = T_s / r - F_road - F_brake
//
// The driveline swings with 17 rad/s in the first gear and 23 rad/s in the second. Joints and tyres
// are not quite even (u): they excite it once per revolution of the wheels, most at 8 m/s, which
// is about 4 s. During the shift the gearbox lets the engine's torque be taken away (torque_limit),
// opens (kappa), moves its ratio and closes again. Below the speed of launch the clutch slips. The
// driver follows a speed by feed-forward and a proportional-integral controller, with a lag in the
// foot, brakes if need be, and is not quite steady. Inside, 2 kHz.
//
// The paper's car is not published. Driver, driveline and shift were found by a search for the
// order of its Table 2 and for what ideal coupling changes in its Table 3
// (docs/explanation/experiment.md).
#include "pt.h"

#define INNER 5e-4 // s

typedef struct car {
    double torque, torque_slope[CRD_MODEL_MAX_ORDER];
    double shaft_speed, torque_request, torque_limit, torque_used;
    double speed, target, distance, acceleration, ratio, twist_torque, machine_torque, brake;
    double energy_shaft, energy_machine;
    double output_speed, twist, wheel_angle, integral, unsteady, force; // states
    uint64_t random;
    double mass, f0, f1, f2, radius, ratio1, ratio2, efficiency, inertia, inertia2;
    double stiffness, damping, uneven;
    double kp, ki, t_foot, unsteadiness, machine_share, machine_max, torque_max, launch_speed;
    double pace, roughness, begin, shift_at, shift_depth, shift_down, shift_open, shift_up;
    double seed;
} car;

// The speed that the driver follows, one point each second as cycles have them, m/s.
static const double plan[] = {0, 0.5, 2.9, 5.0, 6.4, 8.6, 11.0, 12.1, 14.0, 14.8, 16.4, 16.9, 18.0};
enum { PLAN = sizeof plan / sizeof *plan };

// A point of it: `pace` times the parabola that fits best, and `roughness` of what it leaves.
static double planned(const car* c, int second)
{
    const double even = second * (1.8886 - 0.0289 * second);
    return c->pace * (even + c->roughness * (plan[second] - even));
}

static crd_model_status car_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    car* c = self;
    c->torque_used = c->torque;
    c->speed = c->target = c->distance = c->acceleration = c->twist_torque = 0;
    c->machine_torque = c->brake = c->energy_shaft = c->energy_machine = 0;
    c->output_speed = c->twist = c->wheel_angle = c->integral = c->unsteady = c->force = 0;
    c->ratio = c->ratio1;
    c->shaft_speed = c->launch_speed;
    c->torque_request = 0;
    c->torque_limit = c->torque_max;
    c->random = ((uint64_t)fmax(c->seed, 0) + 1) * 0xD1B54A32D192ED03u;
    return pt_expect(host,
                     c->mass > 0 && c->radius > 0 && c->ratio1 > 0 && c->ratio2 > 0 &&
                         c->efficiency > 0 && c->efficiency <= 1 && c->inertia > 0 &&
                         c->inertia2 > 0 && c->stiffness > 0 && c->launch_speed > 0 &&
                         c->shift_down > 0 && c->shift_open > 0 && c->shift_up > 0 &&
                         c->seed >= 0 && c->seed < 9e15,
                     "masses, inertias, ratios, stiffness, launch_speed and the times of the shift "
                     "have to be > 0, 0 < efficiency <= 1, seed >= 0");
}

// 0 to 1 over `length` from `begin`, without corners.
static double blend(double t, double begin, double length)
{
    const double x = pt_clamp((t - begin) / length, 0, 1);
    return x * x * (3 - 2 * x);
}

// Uniform in -1 .. 1.
static double uniform(car* c)
{
    return (double)(int64_t)pt_random(&c->random) * 0x1p-63;
}

// The driver, and how the torque is divided between engine and machine.
static void drive(car* c, double t, double h, double closed)
{
    const double since = fmax(t - c->begin, 0);
    const int second = since < PLAN - 1 ? (int)since : PLAN - 2;
    const double from = planned(c, second);
    const double a = t < c->begin ? 0 : planned(c, second + 1) - from;
    c->target = from + a * (since - second);
    // a lag of 0.4 s makes it slow; the factor keeps its standard deviation
    const double lag = 0.4;
    c->unsteady += -c->unsteady * h / lag + uniform(c) * sqrt(6 * h / lag);
    const double e = c->target - c->speed;
    const double wish = c->mass * (a + c->unsteadiness * c->unsteady) + c->kp * e + c->integral +
                        c->f0 + c->speed * (c->f1 + c->speed * c->f2);
    c->force += ((t < c->begin ? 0 : wish) - c->force) * pt_approach(h, c->t_foot);
    if (closed > 0.99 && t > c->begin) { c->integral += h * c->ki * e; }
    c->brake = fmax(-c->force, 0);
    const double total = fmax(c->force, 0) * c->radius / (c->ratio * c->efficiency);
    const double share = pt_clamp(c->machine_share * total, 0, c->machine_max);
    c->machine_torque += (share - c->machine_torque) * pt_approach(h, 0.03);
    c->torque_request = pt_clamp(total - share, 0, c->torque_max);
}

static void move(car* c, double torque, double h, double closed)
{
    const double wheel = c->speed / c->radius, slip = c->output_speed - wheel;
    const double drive = closed * c->ratio * c->efficiency * (torque + c->machine_torque);
    const double inertia = c->inertia * c->ratio * c->ratio + c->inertia2;
    const double uneven = 1 + c->uneven * sin(c->wheel_angle);
    c->twist_torque = c->stiffness * c->twist * uneven + c->damping * slip;
    const double held = tanh(c->speed / 0.05); // at rest neither road nor brake pushes
    const double road = (c->f0 + c->brake) * held + c->speed * (c->f1 + c->speed * c->f2);
    c->output_speed += h * (drive - c->twist_torque) / inertia;
    c->acceleration = (c->twist_torque / c->radius - road) / c->mass;
    c->speed = fmax(c->speed + h * c->acceleration, 0);
    c->twist += h * (c->output_speed - c->speed / c->radius); // with the new speeds: symplectic
    c->wheel_angle += h * c->speed / c->radius;
    c->distance += h * c->speed;
}

static crd_model_status car_step(void* self, const crd_model_host* host, double t, double h,
                                 double* reached)
{
    (void)host;
    (void)reached;
    car* c = self;
    const int64_t count = h > INNER ? (int64_t)(h / INNER + 0.5) : 1;
    const double inner = h / (double)count;
    c->torque_used = c->torque;
    for (int64_t i = 0; i < count; i++) {
        const double now = t + (double)i * inner;
        const double torque = c->torque + (double)i * inner * c->torque_slope[0];
        const double opening = blend(now, c->shift_at, c->shift_down);
        const double up = c->shift_at + c->shift_down + c->shift_open;
        const double closing = blend(now, up, c->shift_up);
        const double closed = 1 - c->shift_depth * (opening - closing);
        const double moved = blend(now, c->shift_at + c->shift_down, c->shift_open);
        c->ratio = c->ratio1 + (c->ratio2 - c->ratio1) * moved;
        drive(c, now, inner, closed);
        move(c, torque, inner, closed);
        const double turn = c->ratio * fmax(c->output_speed, 0);
        c->shaft_speed = turn + c->launch_speed * exp(-turn / c->launch_speed);
        c->torque_limit = closed < 1 ? closed * c->torque_request : c->torque_max;
        c->energy_shaft += inner * torque * c->shaft_speed;
        c->energy_machine += inner * c->machine_torque * c->shaft_speed;
    }
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {PT_INPUT(car, torque, "N.m", "of the engine's shaft"),
     .derivatives = offsetof(car, torque_slope)},
    {PT_OUTPUT(car, shaft_speed, "rad/s", "of the engine")},
    {PT_OUTPUT(car, torque_request, "N.m", "wanted of the engine")},
    {PT_OUTPUT(car, torque_limit, "N.m", "that the gearbox allows")},
    {PT_OUTPUT(car, torque_used, "N.m", "the input at the beginning of the last step")},
    {PT_OUTPUT(car, speed, "m/s", "of the car")},
    {PT_OUTPUT(car, target, "m/s", "speed that the driver wants")},
    {PT_OUTPUT(car, distance, "m", "travelled")},
    {PT_OUTPUT(car, acceleration, "m/s2", "of the car")},
    {PT_OUTPUT(car, ratio, NULL, "of engine over wheels")},
    {PT_OUTPUT(car, twist_torque, "N.m", "in the side shafts")},
    {PT_OUTPUT(car, machine_torque, "N.m", "of the electric machine")},
    {PT_OUTPUT(car, brake, "N", "of the friction brakes")},
    {PT_OUTPUT(car, energy_shaft, "J", "that came from the engine's shaft")},
    {PT_OUTPUT(car, energy_machine, "J", "that came from the electric machine")},
    {PT_PARAMETER(car, mass, 1900, "kg", "of the car with its wheels")},
    {PT_PARAMETER(car, f0, 165, "N", "road load, constant part")},
    {PT_PARAMETER(car, f1, 1.6, "N.s/m", "road load, linear part")},
    {PT_PARAMETER(car, f2, 0.40, NULL, "road load, quadratic part, N s^2/m^2")},
    {PT_PARAMETER(car, radius, 0.330, "m", "of the wheels")},
    {PT_PARAMETER(car, ratio1, 10.5, NULL, "first gear with final drive")},
    {PT_PARAMETER(car, ratio2, 7.2, NULL, "second gear with final drive")},
    {PT_PARAMETER(car, efficiency, 0.95, NULL, "of gearbox and final drive")},
    {PT_PARAMETER(car, inertia, 0.39, "kg.m2",
                  "of engine, clutch and gearbox at the engine's shaft")},
    {PT_PARAMETER(car, inertia2, 1, "kg.m2", "of final drive and shafts")},
    {PT_PARAMETER(car, stiffness, 9900, "N.m/rad", "of both side shafts")},
    {PT_PARAMETER(car, damping, 32, "N.m.s/rad", "of both side shafts and the tyres")},
    {PT_PARAMETER(car, uneven, 0.15, NULL, "part of the torque that varies as the wheels turn")},
    {PT_TUNABLE(car, kp, 19700, 0, 1e6, "N.s/m", "driver's gain on the error of the speed")},
    {PT_TUNABLE(car, ki, 8200, 0, 1e6, "N/m", "driver's gain on its integral")},
    {PT_PARAMETER(car, t_foot, 0.055, "s", "lag of the driver's foot")},
    {PT_PARAMETER(car, unsteadiness, 0.035, "m/s2", "of the driver, standard deviation")},
    {PT_PARAMETER(car, machine_share, 0.15, NULL, "of the torque that is wanted")},
    {PT_PARAMETER(car, machine_max, 50, "N.m", "at the engine's shaft")},
    {PT_PARAMETER(car, torque_max, 400, "N.m", "of the engine")},
    {PT_PARAMETER(car, launch_speed, 90, "rad/s", "of the engine while the clutch slips")},
    {PT_PARAMETER(car, pace, 1.31, NULL, "factor of the speed that the driver wants")},
    {PT_PARAMETER(car, roughness, 1.16, NULL, "of that speed, 0: a parabola over time")},
    {PT_PARAMETER(car, begin, 0.4, "s", "when the driver sets off")},
    {PT_PARAMETER(car, shift_at, 3.2, "s", "when the gearbox shifts")},
    {PT_PARAMETER(car, shift_depth, 1, NULL, "part of the torque that is taken away")},
    {PT_PARAMETER(car, shift_down, 0.01, "s", "to take the torque away")},
    {PT_PARAMETER(car, shift_open, 0.103, "s", "without torque, while the ratio moves")},
    {PT_PARAMETER(car, shift_up, 0.084, "s", "to give the torque back")},
    {PT_PARAMETER(car, seed, 1, NULL, "of the driver's unsteadiness, a whole number")},
};

const crd_model crd_model_pt_accelerate = {
    .name = "pt_accelerate",
    .description = "hybrid car with a flexible driveline that accelerates and shifts",
    PT_SAMPLED(car, rows, 12, pt_hold_outputs),
    .max_input_derivative = 1,
};
