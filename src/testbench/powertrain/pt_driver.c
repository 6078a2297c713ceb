// The driver: sees the cycle a little ahead and asks for a force at the wheels.
//
//   e = ahead - v,  F = f0 + f1 v + f2 v^2 + m a + kp e + I,  I' = ki e,  a = (ahead - target) /
//   preview
//
// `target` is the speed of the cycle now, `ahead` the one in `preview` seconds. The integral stands
// while the force is at a limit that it would push further. Where car and cycle stand, the driver
// holds the car on its brakes.
#include "pt.h"

typedef struct driver {
    double target, ahead, speed;
    double force, error;
    double integral;
    double mass, f0, f1, f2, kp, ki, preview, force_max, force_hold;
} driver;

static crd_model_status driver_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    driver* d = self;
    d->integral = 0;
    d->error = d->target - d->speed;
    d->force = -d->force_hold;
    return pt_expect(host, d->preview > 0 && d->mass > 0 && d->force_max > 0,
                     "preview, mass and force_max have to be > 0");
}

static crd_model_status driver_step(void* self, const crd_model_host* host, double t, double h,
                                    double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    driver* d = self;
    const double v = d->speed, e = d->ahead - v;
    d->error = d->target - v;
    if (d->ahead < 0.05 && d->target < 0.05 && v < 0.05) {
        d->integral = 0;
        d->force = -d->force_hold;
        return CRD_MODEL_OK;
    }
    const double resistance = v > 0 ? d->f0 + v * (d->f1 + v * d->f2) : d->f0;
    const double a = (d->ahead - d->target) / d->preview;
    const double wish = resistance + d->mass * a + d->kp * e + d->integral;
    d->force = pt_clamp(wish, -2 * d->force_max, d->force_max);
    if (wish == d->force || (wish > d->force) != (e > 0)) { d->integral += h * d->ki * e; }
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {PT_INPUT(driver, target, "m/s", "speed of the cycle now")},
    {PT_INPUT(driver, ahead, "m/s", "speed of the cycle, `preview` from now")},
    {PT_INPUT(driver, speed, "m/s", "of the car")},
    {PT_OUTPUT(driver, force, "N", "wanted at the wheels, negative to brake")},
    {PT_OUTPUT(driver, error, "m/s", "target - speed")},
    {PT_PARAMETER(driver, mass, 1957, "kg", "of the car with its rotating parts")},
    {PT_PARAMETER(driver, f0, 165, "N", "road load, constant part")},
    {PT_PARAMETER(driver, f1, 1.6, "N.s/m", "road load, linear part")},
    {PT_PARAMETER(driver, f2, 0.40, NULL, "road load, quadratic part, N s^2/m^2")},
    {PT_TUNABLE(driver, kp, 1800, 0, 1e5, "N.s/m", "gain on the error of the speed")},
    {PT_TUNABLE(driver, ki, 150, 0, 1e5, "N/m", "gain on its integral")},
    {PT_PARAMETER(driver, preview, 0.35, "s", "how far the driver sees")},
    {PT_TUNABLE(driver, force_max, 9000, 1, 1e5, "N", "traction; twice of it for the brakes")},
    {PT_PARAMETER(driver, force_hold, 800, "N", "of the brakes at a stop")},
};

const crd_model crd_model_pt_driver = {
    .name = "pt_driver",
    .description = "driver with preview who follows a cycle",
    PT_SAMPLED(driver, rows, 10, pt_hold_outputs),
};
