// The models behind emulated test benches.
//
// A plant is a plain struct with a step function: a shaft that the load machine keeps at its
// speed, a device under test (DUT) that gives a torque, temperatures, and what is measured of it
// all. What differs between benches stands in a crdi_plant_type.
#pragma once
#include "shared/testbench_bench.h"

enum {
    CRDI_SIGNALS = 24,
    CRDI_QUANTITIES = 10,
    CRDI_RING = 64, // dead time, ms
    CRDI_FAST = 10, // steps of the controller in one of the measurement
    CRDI_NODES = 4, // of heat
};

// Items of the checklist: what a bench watches of itself.
enum {
    CRDI_ITEM_SUPPLY,
    CRDI_ITEM_TEMPERATURE_CONTROL,
    CRDI_ITEM_ACQUISITION,
    CRDI_ITEM_REMOTE,
    CRDI_ITEM_FLOW,
    CRDI_ITEM_TORQUE,
    CRDI_ITEM_SPEED,
    CRDI_ITEM_BUTTON,
    CRDI_ITEMS
};

// Rows of a bench's table of signals: what it is told, and what it measures (standard deviation of
// the noise, lag and dead time in s, resolution).
#define CRDI_SET_VALUE(name_, unit_, what, min_, max_)                                             \
    {                                                                                              \
        .name = name_, .unit = unit_, .description = what, .input = true, .min = min_, .max = max_ \
    }
#define CRDI_MEASURED(name_, unit_, what, noise_, lag_, dead, resolution_)                         \
    {                                                                                              \
        .name = name_, .unit = unit_, .description = what, .noise = noise_, .lag = lag_,           \
        .dead_time = dead, .resolution = resolution_                                               \
    }
#define CRDI_RPM(x) ((x)*3.14159265358979 / 30) // 1/min in rad/s

// The shaft with its load machine.
typedef struct crdi_drive {
    double inertia, dut_inertia; // kg m^2, of all and of the part on the DUT's side of the flange
    double torque, power;        // of the load machine, N m, W
    double tau;                  // of its torque, s
    double slow_tau, slow_speed; // at standstill, s; below this speed, rad/s, it becomes slow
    double filter, slew;         // of the reference, s, rad/s^2
    double friction, dut_friction, viscous; // N m, N m, N m s
    double brake;                           // N m, of the emergency brake
    double overspeed;                       // rad/s: it is switched off
    double speed_error, speed_patience;     // rad/s and s until speed control counts as lost
    double torque_error, torque_patience;   // N m and s, likewise of the torque
} crdi_drive;

// As in crd_dcp_quantity. NAN: not given.
typedef struct crdi_plant_quantity {
    const char *name, *unit;
    crd_dcp_role role;
    int input, output; // signals, -1: none
    double conditioning, trip_min, trip_max, cool_down;
} crdi_plant_quantity;

struct crdi_plant;
typedef struct crdi_plant_type {
    const char *name, *title;
    uint8_t uuid[16];
    const crdi_testbench_signal* signals; // inputs first
    int signal_count, input_count;
    crdi_drive drive;
    int speed_input, torque_input; // signals
    int speed_output;
    double ambient;                                // degC
    int charge;                                    // of a battery: which of `inner`; see `soc`
    bool media;                                    // has a medium to lose
    void (*fast)(struct crdi_plant* p, double dt); // torque of the DUT, every 0.1 ms
    void (*slow)(struct crdi_plant* p, double dt); // temperatures and values, every ms
    double (*speed)(struct crdi_plant* p);         // wanted, rad/s; NULL: the set value
    bool (*range)(const struct crdi_plant* p, int signal, double* min, double* max); // NULL
    // as a bench
    const char* limits;
    const char* checklist[CRDI_ITEMS];
    const crdi_plant_quantity* quantities;
    int quantity_count;
    struct {
        int quantity;
        const char* of; // that this one moves as well, by the factor; NULL: none does
        double factor;
    } moves;
    double induced, stop_rate, turn_speed;
    // Its sheet: from any point of its limits to rest without cooling down, s; how far speed and
    // torque overshoot set values within the limits.
    double stop_time, speed_overshoot, torque_overshoot;
} crdi_plant_type;

typedef struct crdi_bench_sensor {
    double filtered;
    double ring[CRDI_RING];
    double weight;                 // of a new sample in the filter
    int delay;                     // samples
    bool wrong, corrected;         // the next two rows count
    double gain, offset;           // of what it reads
    double calibrated, correction; // gain and offset that make the value of it again
} crdi_bench_sensor;

typedef struct crdi_plant {
    const crdi_plant_type* type;
    double set[CRDI_SIGNALS];      // inputs, in their units; NAN: nobody has said
    double value[CRDI_SIGNALS];    // outputs as they are
    double measured[CRDI_SIGNALS]; // and as they are measured
    // shaft, SI
    double omega, acceleration, reference, integral, load;
    double dut, expected, shaft;     // torque at the DUT's rotor, as it should be, at the flange
    double inner[4];                 // states of the DUT, see its file
    double limit;                    // largest torque, from `slow`
    double voltage, angle, position; // rad, -pi to pi; since it was made
    double temperature[CRDI_NODES];  // degC
    double thermal_scale;            // how much faster temperatures are, >= 1
    double cap;                      // a temperature that the media are kept below, NAN
    // measurement
    crdi_bench_sensor sensors[CRDI_SIGNALS];
    int ring_at;
    uint64_t random;
    bool ideal;
    // time
    double due; // of the controller, in steps
    int64_t ticks;
    double start_up, run_time, rest_time;
    bool running, at_rest; // told by who steps it
    // protections and faults
    bool remote;
    uint32_t lost;     // items
    uint32_t switched; // items that somebody has switched off
    bool torque_off, load_off;
    double torque_wrong, speed_wrong, flow_wrong; // s
    crdi_testbench_fault faults[CRDI_TESTBENCH_FAULTS_MAX];
    int fault_count;
    uint32_t begun;  // faults, by their index
    uint32_t active; // by their kind
    bool lost_sensor[CRDI_SIGNALS];
    double stuck; // torque, NAN
} crdi_plant;

extern const crdi_plant_type crdi_plant_em, crdi_plant_ice, crdi_plant_back_to_back,
    crdi_plant_traction, crdi_plant_battery;
const crdi_plant_type* crdi_plant_type_of(int kind); // NULL

void crdi_plant_init(crdi_plant* p, const crdi_plant_type* type, uint64_t seed);
void crdi_plant_step(crdi_plant* p, double seconds);
double crdi_plant_time(const crdi_plant* p);      // s since it was made
uint32_t crdi_plant_missing(const crdi_plant* p); // items
static inline bool crdi_plant_has(const crdi_plant* p, crdi_testbench_fault_kind kind)
{
    return p->active & 1u << kind;
}

// For the types.
static inline double crdi_clamp(double x, double min, double max)
{
    return x < min ? min : x > max ? max : x;
}
// Straight lines between points, held outside.
double crdi_lookup(const double (*points)[2], int count, double x);
// Power of a temperature control unit with `heater` W, `cooler` W/K against water, and a chiller.
double crdi_condition(double set, double is, double heater, double cooler, double water);
