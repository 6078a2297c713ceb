/// Emulated test benches: an electric machine, an engine (both after Rautenberg et al. 2023,
/// section 3.2), and two small motors back to back (Rodriguez 2021, chapter 6).
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
#include "cardan/dcp_bench.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum crd_testbench_kind {
    CRD_TESTBENCH_EM,           ///< electric machine, 85 kW
    CRD_TESTBENCH_ICE,          ///< engine, 225 kW
    CRD_TESTBENCH_BACK_TO_BACK, ///< two motors of 180 W
    CRD_TESTBENCH_KIND_COUNT,
} crd_testbench_kind;

CRD_API const char* crd_testbench_kind_name(int kind); ///< "em", "ice", "backtoback"; NULL

// ---- faults ------------------------------------------------------------------------------------

typedef enum crd_testbench_fault_kind {
    CRD_TESTBENCH_OVERTEMPERATURE, ///< the device under test is heated by a defect of its own
    CRD_TESTBENCH_SENSOR_LOSS,     ///< an output is not a number any more
    CRD_TESTBENCH_STUCK_TORQUE,    ///< the torque stays as it is
    CRD_TESTBENCH_COOLANT_LOSS,    ///< no medium flows
    CRD_TESTBENCH_SPEED_RUNAWAY,   ///< the load machine gives all it has
    CRD_TESTBENCH_EMERGENCY_STOP,  ///< somebody hits the button
    CRD_TESTBENCH_FAULT_COUNT,
} crd_testbench_fault_kind;

enum { CRD_TESTBENCH_FAULTS_MAX = 8 };

typedef struct crd_testbench_fault {
    crd_testbench_fault_kind kind;
    int signal; ///< of a sensor loss: the output
    double at;  ///< s of run, counted over all runs
} crd_testbench_fault;

CRD_API const char* crd_testbench_fault_name(int kind); ///< "stuck-torque"; NULL: unknown
/// "overtemperature@30s", "sensor-loss:speed@1.5 s". CRD_E_RANGE: what is wrong with it.
CRD_API crd_status crd_testbench_fault_parse(crd_context* ctx, crd_testbench_kind kind,
                                             const char* text, crd_testbench_fault* out);

// ---- signals -----------------------------------------------------------------------------------

/// A row of the table of inputs and outputs (Rautenberg 2023, tables 5 and 6).
typedef struct crd_testbench_signal {
    const char *name, *unit, *description;
    bool input;
    double min, max;   ///< of set values
    double noise;      ///< of measured values: standard deviation
    double lag;        ///< s, low-pass
    double dead_time;  ///< s, up to 0.06
    double resolution; ///< of the converter, 0: none
} crd_testbench_signal;

CRD_API const crd_testbench_signal* crd_testbench_signals(crd_testbench_kind kind, int* count);
CRD_API int crd_testbench_find(crd_testbench_kind kind, const char* name); ///< -1: no such signal

// ---- the bench ---------------------------------------------------------------------------------

/// Start from crd_testbench_defaults.
typedef struct crd_testbench_options {
    crd_testbench_kind kind;
    uint64_t seed;   ///< of the noise; default 1
    bool ideal;      ///< measured values are the true ones; default false
    double speed_up; ///< of temperatures while media are conditioned or cool down, 1 to 1000
    double start_up; ///< s until its supply is on; default 0
    double watchdog; ///< s without data in a run; default 0.5
    crd_testbench_fault faults[CRD_TESTBENCH_FAULTS_MAX];
    int fault_count;
    crd_dcp_address address; ///< for the description; default udp://127.0.0.1:8080
} crd_testbench_options;

typedef struct crd_testbench crd_testbench; ///< opaque

CRD_API crd_testbench_options crd_testbench_defaults(crd_testbench_kind kind);
/// `*out` is written on CRD_OK only. CRD_E_RANGE, CRD_E_MEMORY.
CRD_API crd_status crd_testbench_create(crd_context* ctx, const crd_testbench_options* opt,
                                        crd_testbench** out);
CRD_API void crd_testbench_destroy(crd_testbench* b);
CRD_API const crd_dcp_description* crd_testbench_description(const crd_testbench* b);

/// Without a network: what its operator does. Set values (of inputs; what is no number is ignored)
/// take effect at once, nobody keeps them to limits but the machines themselves.
CRD_API void crd_testbench_set(crd_testbench* b, int signal, double value);
CRD_API void crd_testbench_step(crd_testbench* b, double seconds);
CRD_API double crd_testbench_measured(const crd_testbench* b, int signal); ///< as sent
CRD_API double crd_testbench_true(const crd_testbench* b, int signal);     ///< as it is
/// An item of the checklist by its index; `on` false: somebody has switched it off.
CRD_API void crd_testbench_switch(crd_testbench* b, int item, bool on);
CRD_API const char* crd_testbench_item(const crd_testbench* b, int item); ///< NULL: no such item

/// As a slave behind `link`; who drives the slave drives the bench. Options may be NULL.
CRD_API crd_status crd_testbench_start(crd_testbench* b, const crd_dcp_link* link,
                                       const crd_dcp_slave_options* opt);
CRD_API crd_dcp_slave* crd_testbench_slave(crd_testbench* b); ///< NULL before start
CRD_API crd_dcp_bench* crd_testbench_bench(crd_testbench* b);
/// Told behind each step of the controller (1 ms in real time), with the bench's own time in s: for
/// traces and messages. It must not touch the bench. NULL: nobody.
typedef void crd_testbench_observer(void* user, double time);
CRD_API void crd_testbench_observe(crd_testbench* b, crd_testbench_observer* observer, void* user);
/// Why the last stop was, in words: "lost torque control", "temperature_max 175.4 degC". ""
CRD_API const char* crd_testbench_why(const crd_testbench* b);

#ifdef __cplusplus
}
#endif
