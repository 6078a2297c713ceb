/// Emulated test benches: an electric machine, an engine (both after Rautenberg et al. 2023,
/// section 3.2), and two motors back to back, small and large (Rodriguez 2021, chapter 6).
///
/// A bench is a model of its machines with the controller that a bench has: 10 kHz inside, load
/// machine in speed control, temperature conditioning, a measurement chain for each output
/// (noise, low-pass, dead time, quantisation), protections, and faults on demand. As a slave of
/// the Distributed Co-Simulation Protocol it has the bench extension (dcp_bench.h): limits,
/// checklist, conditioning, controlled stop.
///
/// Time is handed in, noise comes from a seed: equal calls give equal bits. After `create` and
/// `start` nothing allocates. One thread at a time.
#pragma once
#include "shared/dcp_bench.h"
#include "shared/dcp_calibration.h"

typedef enum crdi_testbench_kind {
    CRDI_TESTBENCH_EM,           ///< electric machine, 85 kW
    CRDI_TESTBENCH_ICE,          ///< engine, 225 kW
    CRDI_TESTBENCH_BACK_TO_BACK, ///< two motors of 180 W
    CRDI_TESTBENCH_TRACTION,     ///< two motors of 200 kW
    CRDI_TESTBENCH_BATTERY,      ///< battery of 34 A h, no shaft: behind all that have one
    CRDI_TESTBENCH_KIND_COUNT,
} crdi_testbench_kind;

const char*
crdi_testbench_kind_name(int kind); ///< "em", "ice", "backtoback", "traction", "battery"; NULL

// ---- faults ------------------------------------------------------------------------------------

typedef enum crdi_testbench_fault_kind {
    CRDI_TESTBENCH_OVERTEMPERATURE, ///< the device under test is heated by a defect of its own
    CRDI_TESTBENCH_SENSOR_LOSS,     ///< an output is not a number any more
    CRDI_TESTBENCH_STUCK_TORQUE,    ///< the torque stays as it is
    CRDI_TESTBENCH_COOLANT_LOSS,    ///< no medium flows
    CRDI_TESTBENCH_SPEED_RUNAWAY,   ///< the load machine gives all it has
    CRDI_TESTBENCH_EMERGENCY_STOP,  ///< somebody hits the button
    CRDI_TESTBENCH_FAULT_COUNT,
} crdi_testbench_fault_kind;

enum { CRDI_TESTBENCH_FAULTS_MAX = 8 };

typedef struct crdi_testbench_fault {
    crdi_testbench_fault_kind kind;
    int signal; ///< of a sensor loss: the output
    double at;  ///< s of run, counted over all runs
} crdi_testbench_fault;

const char* crdi_testbench_fault_name(int kind); ///< "stuck-torque"; NULL: unknown
/// "overtemperature@30s", "sensor-loss:speed@1.5 s". CRD_E_RANGE: what is wrong with it.
crd_status crdi_testbench_fault_parse(crd_context* ctx, crdi_testbench_kind kind, const char* text,
                                      crdi_testbench_fault* out);

// ---- signals -----------------------------------------------------------------------------------

/// A row of the table of inputs and outputs (Rautenberg 2023, tables 5 and 6).
typedef struct crdi_testbench_signal {
    const char *name, *unit, *description;
    bool input;
    double min, max;   ///< of set values
    double noise;      ///< of measured values: standard deviation
    double lag;        ///< s, low-pass
    double dead_time;  ///< s, up to 0.06
    double resolution; ///< of the converter, 0: none
} crdi_testbench_signal;

const crdi_testbench_signal* crdi_testbench_signals(crdi_testbench_kind kind, int* count);
int crdi_testbench_find(crdi_testbench_kind kind, const char* name); ///< -1: no such signal

/// A sensor that reads gain * value + offset.
typedef struct crdi_testbench_misread {
    int signal;
    double gain, offset;
} crdi_testbench_misread;
/// "torque=1.02+0.5". CRD_E_RANGE: what is wrong with it.
crd_status crdi_testbench_misread_parse(crd_context* ctx, crdi_testbench_kind kind,
                                        const char* text, crdi_testbench_misread* out);

// ---- the bench ---------------------------------------------------------------------------------

/// Start from crdi_testbench_defaults.
typedef struct crdi_testbench_options {
    crdi_testbench_kind kind;
    uint64_t seed;    ///< of the noise; default 1
    bool ideal;       ///< measured values are the true ones; default false
    double speed_up;  ///< of temperatures while media are conditioned or cool down, 1 to 1000
    double start_up;  ///< s until its supply is on; default 0
    double watchdog;  ///< s without data from STC_run on; default 0.5
    double heartbeat; ///< s without a sign of the master before; default 3
    double soc;       ///< of a battery, its charge, 0 to 1; default 0.5
    crdi_testbench_fault faults[CRDI_TESTBENCH_FAULTS_MAX];
    int fault_count;
    const char* const* pairs; ///< wave ports, "speed_ref:torque"; at most CRDI_WAVES_MAX
    int pair_count;
    uint32_t life; ///< greater after each start of the process; default 1
    crdi_testbench_misread misread[CRDI_TESTBENCH_FAULTS_MAX];
    int misread_count;
    const crdi_calibrations* calibrations; ///< of its sensors; NULL: none
    crd_dcp_address address;               ///< for the description; default udp://127.0.0.1:8080
} crdi_testbench_options;

typedef struct crdi_testbench crdi_testbench; ///< opaque

crdi_testbench_options crdi_testbench_defaults(crdi_testbench_kind kind);
/// `*out` is written on CRD_OK only. CRD_E_RANGE, CRD_E_MEMORY.
crd_status crdi_testbench_create(crd_context* ctx, const crdi_testbench_options* opt,
                                 crdi_testbench** out);
void crdi_testbench_destroy(crdi_testbench* b);
const crd_dcp_description* crdi_testbench_description(const crdi_testbench* b);

/// Without a network: what its operator does. Set values (of inputs; what is no number is ignored)
/// take effect at once, nobody keeps them to limits but the machines themselves.
void crdi_testbench_set(crdi_testbench* b, int signal, double value);
void crdi_testbench_step(crdi_testbench* b, double seconds);
double crdi_testbench_measured(const crdi_testbench* b, int signal); ///< as sent
double crdi_testbench_true(const crdi_testbench* b, int signal);     ///< as it is
/// An item of the checklist by its index; `on` false: somebody has switched it off.
void crdi_testbench_switch(crdi_testbench* b, int item, bool on);
const char* crdi_testbench_item(const crdi_testbench* b, int item); ///< NULL: no such item

/// The machines and the measurement of a bench as a model for CRD_UNIT_NATIVE, without network,
/// session and limits; it is in the arena. Variables are the signals, and the parameter
/// `temperature` (degC, at the start).
crd_status crdi_testbench_model(crd_arena* arena, crdi_testbench_kind kind, const crd_model** out);

/// As a slave behind `link`; who drives the slave drives the bench. Options may be NULL.
crd_status crdi_testbench_start(crdi_testbench* b, const crd_dcp_link* link,
                                const crd_dcp_slave_options* opt);
crd_dcp_slave* crdi_testbench_slave(crdi_testbench* b); ///< NULL before start
crd_dcp_bench* crdi_testbench_bench(crdi_testbench* b);
/// Told behind each step of the controller (1 ms in real time), with the bench's own time in s: for
/// traces and messages. It must not touch the bench. NULL: nobody.
typedef void crdi_testbench_observer(void* user, double time);
void crdi_testbench_observe(crdi_testbench* b, crdi_testbench_observer* observer, void* user);
/// Why the last stop was, in words: "lost torque control", "temperature_max 175.4 degC". ""
const char* crdi_testbench_why(const crdi_testbench* b);
