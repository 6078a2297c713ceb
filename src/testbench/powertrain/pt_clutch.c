// What joins the car to an engine and a machine that stand on benches: the clutch of the engine
// with its pedal, and the one that slips when the car sets off.
//
//   open:    the bench turns at idle, the car gets no torque
//   started: the bench is brought to the speed of the shaft; after the time of a start, and when
//            the speeds are near each other, the clutch closes within `closing`
//   closed:  torque = engagement * bench_torque
//
// Below `idle` of the shaft the launch clutch slips: the machine turns at idle and its torque
// passes. Benches give no torque near standstill.
//
// The bench has a throttle p, the car asks for a part of the torque that there is. With the drag
// T_loss(n) of the engine, T = p (T_full + T_loss) - T_loss; the throttle is capped at `pedal_max`,
// and the torque that there is, too (Rautenberg 2023: 50 %).
#include "pt.h"

typedef struct clutch {
    double pedal, shaft_speed, bench_speed, bench_torque, bench_torque_max;
    bool run;
    double pedal_ref, speed_ref, machine_speed_ref, torque, torque_max, engagement;
    bool running;
    double crank; // s since the start began
    double displacement, pedal_max, idle, near, start_time, closing, stall_speed;
} clutch;

static double throttle_of(const clutch* c, double torque, double w)
{
    const double loss = pt_drag(c->displacement, w), most = c->bench_torque_max + loss;
    return most > loss ? pt_clamp((torque + loss) / most, 0, c->pedal_max) : 0;
}

static double available(const clutch* c, double w)
{
    const double loss = pt_drag(c->displacement, w);
    return fmax(0, c->pedal_max * (c->bench_torque_max + loss) - loss);
}

static crd_model_status clutch_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    clutch* c = self;
    c->engagement = c->crank = c->pedal_ref = 0;
    c->running = false;
    c->speed_ref = c->machine_speed_ref = c->idle;
    c->torque_max = available(c, c->idle);
    return pt_expect(host,
                     c->displacement > 0 && c->closing >= 0 && c->start_time >= 0 && c->idle > 0,
                     "displacement and idle have to be > 0, closing and start_time >= 0");
}

static void start_or_stop(clutch* c, double h)
{
    if (!c->run) {
        c->running = false;
        c->crank = 0;
        return;
    }
    c->crank += h;
    const bool near = fabs(c->bench_speed - c->speed_ref) < c->near;
    c->running = c->running || (near && c->crank > c->start_time - 1e-9);
}

static crd_model_status clutch_step(void* self, const crd_model_host* host, double t, double h,
                                    double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    clutch* c = self;
    start_or_stop(c, h);
    const double w = fmax(c->shaft_speed, c->idle);
    const bool turns = c->shaft_speed >= c->stall_speed;
    const double target = c->running && turns ? 1 : 0;
    const double most = c->closing > 0 ? h / c->closing : 1;
    c->engagement += pt_clamp(target - c->engagement, -most, most);
    c->speed_ref = c->run ? w : c->idle;
    c->machine_speed_ref = w;
    c->torque_max = available(c, w);
    c->pedal_ref = target > 0 ? throttle_of(c, pt_clamp(c->pedal, 0, 1) * c->torque_max, w) : 0;
    return CRD_MODEL_OK;
}

static void clutch_outputs(void* self, double t)
{
    (void)t;
    clutch* c = self;
    c->torque = c->engagement * c->bench_torque;
}

static const crd_model_variable rows[] = {
    {PT_INPUT(clutch, pedal, "1", "torque that is wanted, 0 to 1 of torque_max")},
    {PT_FLAG(clutch, run, CRD_INPUT, "ignition: the engine is wanted")},
    {PT_INPUT(clutch, shaft_speed, "rad/s", "of the car")},
    {PT_INPUT(clutch, bench_speed, "rad/s", "of the engine")},
    {PT_INPUT(clutch, bench_torque, "N.m", "of the engine, measured at its shaft")},
    {PT_INPUT(clutch, bench_torque_max, "N.m", "full load at its speed")},
    {PT_OUTPUT(clutch, pedal_ref, "1", "throttle for the bench, 0 to pedal_max")},
    {PT_OUTPUT(clutch, speed_ref, "rad/s", "speed for the bench of the engine")},
    {PT_OUTPUT(clutch, machine_speed_ref, "rad/s", "speed for the bench of the machine")},
    {.name = "torque",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(clutch, torque),
     .unit = "N.m",
     .description = "at the shaft of the car",
     .depends = "bench_torque"},
    {PT_OUTPUT(clutch, torque_max, "N.m", "that there is with the throttle at its cap")},
    {PT_OUTPUT(clutch, engagement, "1", "of the clutch, 0 to 1")},
    {PT_FLAG(clutch, running, CRD_OUTPUT, "the engine can give torque")},
    {PT_PARAMETER(clutch, displacement, 3e-3, "m3", "of the engine, for its drag")},
    {PT_TUNABLE(clutch, pedal_max, 0.5, 0, 1, NULL, "cap of the throttle")},
    {PT_PARAMETER(clutch, idle, 84, "rad/s", "speed of the benches while a clutch is open")},
    {PT_PARAMETER(clutch, near, 25, "rad/s", "difference of speeds at which it closes")},
    {PT_PARAMETER(clutch, start_time, 0.35, "s", "from the ignition until it may close")},
    {PT_PARAMETER(clutch, closing, 0.1, "s", "from open to closed")},
    {PT_PARAMETER(clutch, stall_speed, 60, "rad/s", "below it, it is open")},
};

const crd_model crd_model_pt_clutch = {
    .name = "pt_clutch",
    .description = "clutches and pedal between the car and its benches",
    PT_SAMPLED(clutch, rows, 10, clutch_outputs),
};
