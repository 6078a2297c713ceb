// An engine on its test bed: throttle and air path, the control unit's fast interventions, a
// dynamometer in speed control, and the measured torque of the shaft.
//
//   throttle' = (request - throttle) / t_throttle,  air' = (throttle - air) / t_air
//   T' = (min(air, limit) + T_damp - T) / t_fast,   T_damp = -k_damp (w - slow w)
//   J w' = T + T_dyno,  T_dyno: proportional-integral of the filtered speed_ref, with a lag
//
// Requests for torque pass the throttle and the manifold; `torque_limit` is what a gearbox wants
// during a shift and acts by the ignition. So does the damping of the driveline (anti-jerk), which
// sees the speed without its slow part. The torque is corrected for the engine's inertia, which is
// in the model of the car: what is measured is what the engine gives. The measurement has noise, a
// converter and a low-pass of second order after Bessel, whose delay is the same over its band.
// Inside, 2 kHz; the measurement 1 kHz.
#include "pt.h"

#define INNER 5e-4 // s
#define EVERY 2    // inner steps between two samples of the measurement

typedef struct testbed {
    double speed_ref, torque_request, torque_limit;
    double torque, torque_shaft, torque_dyno, speed, energy;
    double throttle, air, slow_speed, reference, integral; // states
    double low, low_rate;                                  // of the filter
    uint64_t random;
    int64_t ticks;
    double torque_max, t_throttle, t_air, t_fast, damping, t_slow;
    double inertia, t_dyno, t_reference, friction;
    double noise, resolution, filter_delay;
    double speed_start, seed;
} testbed;

static crd_model_status testbed_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    testbed* b = self;
    b->torque = b->torque_shaft = b->energy = 0;
    b->throttle = b->air = b->integral = b->low = b->low_rate = 0;
    b->speed = b->reference = b->slow_speed = b->speed_start;
    b->integral = b->torque_dyno = b->friction * b->speed;
    b->random = ((uint64_t)fmax(b->seed, 0) + 1) * 0x9E3779B97F4A7C15u;
    b->ticks = 0;
    return pt_expect(host,
                     b->t_throttle > 0 && b->t_air > 0 && b->t_fast > 0 && b->t_slow > 0 &&
                         b->inertia > 0 && b->t_dyno > 0 && b->t_reference > 0 &&
                         b->filter_delay >= 2e-3 && b->noise >= 0 && b->resolution >= 0 &&
                         b->seed >= 0 && b->seed < 9e15,
                     "lags and inertia have to be > 0, filter_delay >= 2 ms, noise, resolution and "
                     "seed >= 0");
}

// The engine and its control unit.
static void burn(testbed* b, double h)
{
    const double wish = pt_clamp(b->torque_request, 0, b->torque_max);
    b->throttle += (wish - b->throttle) * pt_approach(h, b->t_throttle);
    b->air += (b->throttle - b->air) * pt_approach(h, b->t_air);
    b->slow_speed += (b->speed - b->slow_speed) * pt_approach(h, b->t_slow);
    const double damp = -b->damping * (b->speed - b->slow_speed);
    const double most = pt_clamp(b->torque_limit, 0, b->torque_max);
    const double target = pt_clamp(fmin(b->air, most) + damp, 0, most);
    b->torque_shaft += (target - b->torque_shaft) * pt_approach(h, b->t_fast);
}

// The dynamometer: symmetrical optimum for the lag of its torque.
static void turn(testbed* b, double h)
{
    const double rate = (b->speed_ref - b->reference) / b->t_reference;
    b->reference += (b->speed_ref - b->reference) * pt_approach(h, b->t_reference);
    const double bandwidth = 1 / (3 * b->t_dyno), gain = b->inertia * bandwidth;
    const double error = b->reference - b->speed;
    const double wish = gain * error + b->integral + b->inertia * rate;
    b->integral += h * gain * bandwidth / 3 * error;
    b->torque_dyno += (wish - b->torque_dyno) * pt_approach(h, b->t_dyno);
    b->speed += h * (b->torque_shaft + b->torque_dyno - b->friction * b->speed) / b->inertia;
    b->energy += h * b->torque_shaft * b->speed;
}

// Standard deviation 1, mean 0: the sum of four uniform numbers out of one of 64 bits.
static double noise(testbed* b)
{
    const uint64_t x = pt_random(&b->random);
    const uint64_t sum = (x & 0xFFFF) + (x >> 16 & 0xFFFF) + (x >> 32 & 0xFFFF) + (x >> 48);
    return ((double)sum / 65536 - 2) * 1.7320508075688772;
}

// D = filter_delay: D^2 y'' + 3 D y' + 3 y = 3 u
static void measure(testbed* b, double h)
{
    double u = b->torque_shaft + b->noise * noise(b);
    if (b->resolution > 0) { u = b->resolution * nearbyint(u / b->resolution); }
    const double d = b->filter_delay;
    // implicit, so that it is stable for every delay
    const double q = 3 * h / d;
    b->low_rate = (b->low_rate + q / d * (u - b->low)) / (1 + q + q * h / d);
    b->low += h * b->low_rate;
}

static crd_model_status testbed_step(void* self, const crd_model_host* host, double t, double h,
                                     double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    testbed* b = self;
    const int64_t count = h > INNER ? (int64_t)(h / INNER + 0.5) : 1;
    const double inner = h / (double)count;
    for (int64_t i = 0; i < count; i++) {
        burn(b, inner);
        turn(b, inner);
        if (++b->ticks % EVERY == 0) { measure(b, inner * EVERY); }
    }
    b->torque = b->low;
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {PT_INPUT(testbed, speed_ref, "rad/s", "set value of the speed"), .start = 90},
    {PT_INPUT(testbed, torque_request, "N.m", "by throttle and manifold")},
    {PT_INPUT(testbed, torque_limit, "N.m", "at once, by the ignition"), .start = 1000},
    {PT_OUTPUT(testbed, torque, "N.m", "of the shaft as measured: noise, converter, low-pass")},
    {PT_OUTPUT(testbed, torque_shaft, "N.m", "of the shaft as it is")},
    {PT_OUTPUT(testbed, torque_dyno, "N.m", "of the dynamometer")},
    {PT_OUTPUT(testbed, speed, "rad/s", "of the shaft")},
    {PT_OUTPUT(testbed, energy, "J", "that the engine gave to the shaft")},
    {PT_PARAMETER(testbed, torque_max, 400, "N.m", "of the engine")},
    {PT_PARAMETER(testbed, t_throttle, 0.019, "s", "lag of the throttle")},
    {PT_PARAMETER(testbed, t_air, 0.125, "s", "lag of the manifold")},
    {PT_PARAMETER(testbed, t_fast, 10.5e-3, "s", "lag of the ignition: one working cycle")},
    {PT_TUNABLE(testbed, damping, 0.02, 0, 100, "N.m.s", "of the driveline, by the control unit")},
    {PT_PARAMETER(testbed, t_slow, 0.1, "s", "speed without this lag is what damping sees")},
    {PT_PARAMETER(testbed, inertia, 1, "kg.m2", "of engine and dynamometer")},
    {PT_PARAMETER(testbed, t_dyno, 4e-3, "s", "lag of the dynamometer's torque")},
    {PT_PARAMETER(testbed, t_reference, 15e-3, "s", "lag of the set value")},
    {PT_PARAMETER(testbed, friction, 0.005, "N.m.s", "of the dynamometer")},
    {PT_PARAMETER(testbed, noise, 0.1, "N.m", "standard deviation of a sample at 1 kHz")},
    {PT_PARAMETER(testbed, resolution, 0.1, "N.m", "of the converter, 0: none")},
    {PT_PARAMETER(testbed, filter_delay, 3.5e-3, "s", "of the measurement's low-pass")},
    {PT_PARAMETER(testbed, speed_start, 90, "rad/s", "at the beginning")},
    {PT_PARAMETER(testbed, seed, 1, NULL, "of the noise, a whole number")},
};

const crd_model crd_model_pt_testbed = {
    .name = "pt_testbed",
    .description = "engine, control unit, dynamometer and measurement on a test bed",
    PT_SAMPLED(testbed, rows, 12, pt_hold_outputs),
};
