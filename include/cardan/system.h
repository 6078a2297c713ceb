/// The system description: which units there are, how they are connected, how they run.
///
/// Read from YAML by crd_system_load, or made by hand with the crd_system_add functions. A loaded
/// system is a plain structure that fronts may still change (a stop time from the command line);
/// from crd_master_create on it is const and outlives the master. All memory belongs to the system.
#pragma once
#include "cardan/base.h"
#include "cardan/model.h"
#include "cardan/quality.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Where something was written. Every message about it starts with "file:line:".
typedef struct crd_place {
    const char* file; ///< "" when it came from nowhere, "--set" and the like for the command line
    int line;         ///< 0: unknown
} crd_place;

/// What one value of a map becomes: "true" -> "false", "3" -> "7", "off" -> "closed".
typedef struct crd_map_entry {
    const char *from, *to; ///< numbers, true and false, or item names of enumerations
} crd_map_entry;

/// One change of a value on its way. With a map: the mapped value, and one that the map does not
/// have stays as it is. Else: converted from the unit before into `unit` if both are known and
/// `convert_units`, then gain * value + offset.
typedef struct crd_transformation {
    const char* unit; ///< physical unit of the value behind it, "": that of the value before it
    const crd_dimension* dimension; ///< of `unit` as its file defines it; NULL: known by its name
    double gain, offset;            ///< 1, 0
    bool has_transformation;        ///< gain or offset was given
    bool convert_units;             ///< default true
    const crd_map_entry* map;
    int map_count;
} crd_transformation;

/// One start value or parameter: `text` is parsed once the variable's type and unit are known.
typedef struct crd_setting {
    const char* variable;
    const char* text; ///< as written: "3", "10 ms", "true", "1 2 3" for arrays. A YAML list becomes
                      ///< that, row after row; its elements with blanks, quotes or backslashes
                      ///< stand in double quotes, with a backslash before each " and backslash.
    crd_place place;
    /// How the text becomes the variable's value, NULL: as it stands. `dimension` (or `unit`) is
    /// that of the text here; conversion into the variable's unit comes first, then the rest.
    const crd_transformation* via;
    bool optional; ///< a variable that does not exist is noted, not refused (SSV)
} crd_setting;

typedef enum crd_unit_source {
    CRD_UNIT_FMU,
    CRD_UNIT_SIGNAL,  ///< a signal generator
    CRD_UNIT_REPLAY,  ///< a recording
    CRD_UNIT_NATIVE,  ///< a crd_model in this process; only from C
    CRD_UNIT_DCP,     ///< a slave of the Distributed Co-Simulation Protocol
    CRD_UNIT_CIRCUIT, ///< a netlist
    CRD_UNIT_TWIN,    ///< a digital twin
    CRD_UNIT_FRAMES,  ///< a partner of cyclic datagrams
    CRD_UNIT_CAN,     ///< partners on a CAN bus
    CRD_UNIT_DRIVER,  ///< a human being at the live page
} crd_unit_source;

typedef enum crd_signal_shape {
    CRD_SIGNAL_CONSTANT,
    CRD_SIGNAL_STEP,
    CRD_SIGNAL_RAMP,
    CRD_SIGNAL_SINE,
    CRD_SIGNAL_CHIRP,
    CRD_SIGNAL_PRBS,
    CRD_SIGNAL_MULTISINE,
    CRD_SIGNAL_TABLE,
    CRD_SIGNAL_SHAPE_COUNT
} crd_signal_shape;

typedef enum crd_interpolation { CRD_INTERPOLATE_HOLD, CRD_INTERPOLATE_LINEAR } crd_interpolation;

/// One generator: one output `name` of a signal unit. Which fields count is said per shape; the
/// output is offset + amplitude * shape(t - start).
typedef struct crd_signal_spec {
    const char* name; ///< output name; "y" when the unit has only one
    crd_signal_shape shape;
    const char* unit;     ///< physical unit of the output, "" none
    double offset;        ///< value before `start`, and mean; default 0
    double amplitude;     ///< default 1; constant: the value is offset + amplitude
    double start;         ///< when it begins, default 0
    double duration;      ///< ramp: time from 0 to 1; chirp: sweep time; prbs: time of one bit
    double frequency;     ///< sine, chirp: at the start, Hz
    double frequency2;    ///< chirp: at the end; multisine: highest, Hz
    double phase;         ///< sine, rad
    int order;            ///< prbs: register length 3..31, default 9; multisine: number of lines
    uint64_t seed;        ///< prbs, multisine
    const double* times;  ///< table (table_count), ascending
    const double* values; ///< table
    int table_count;
    crd_interpolation interpolation; ///< table; default linear
    crd_place place;
} crd_signal_spec;

/// How an FMU is run. AUTO: as Co-Simulation if it can, else as Model Exchange.
typedef enum crd_interface {
    CRD_INTERFACE_AUTO,
    CRD_INTERFACE_COSIMULATION,
    CRD_INTERFACE_MODEL_EXCHANGE,
} crd_interface;

typedef enum crd_solver {
    CRD_SOLVER_BDF,   ///< CVODE, stiff; default
    CRD_SOLVER_ADAMS, ///< CVODE, not stiff
    CRD_SOLVER_EULER, ///< fixed step, for real time
    CRD_SOLVER_RK4,   ///< fixed step
} crd_solver;

/// Model Exchange only.
typedef struct crd_solver_spec {
    crd_solver method;
    double relative; ///< tolerance; NaN: the run's, else the FMU's default, else 1e-6
    double absolute; ///< times each state's nominal value; NaN: relative / 100
    double step;     ///< fixed step: length of an inner step, NaN: the communication step;
                     ///< it is made to divide it. CVODE: longest inner step, NaN: no limit
} crd_solver_spec;

/// What to do with one column of a recording that drives a system.
typedef struct crd_column_spec {
    const char* name; ///< of the column; a pattern may stand for several
    crd_interpolation interpolation;
    bool has_interpolation; ///< else as the unit says
    const char* unit;       ///< physical unit of the numbers ("km/h"), "": what the file says
} crd_column_spec;

/// Whether outputs with feedthrough are evaluated again once all inputs are fresh.
typedef enum crd_refresh {
    CRD_REFRESH_AUTO, ///< where the unit can (CRD_UNIT_CAN_REFRESH) or gives directional
                      ///< derivatives
    CRD_REFRESH_YES,  ///< by setting inputs and getting outputs, also where FMI (Co-Simulation)
                      ///< forbids that
    CRD_REFRESH_NO,
} crd_refresh;

typedef enum crd_dcp_mode {
    CRD_DCP_MODE_AUTO, ///< default: the first of these that the slave offers
    CRD_DCP_MODE_NRT,  ///< in steps, as fast as everybody can
    CRD_DCP_MODE_SRT,  ///< in real time; being late is counted
    CRD_DCP_MODE_HRT,  ///< in real time; the slave takes being late for an error
} crd_dcp_mode;

/// `session:` of a DCP slave, how it is driven. NaN and 0: the default of cardan/dcp.h.
typedef struct crd_session_spec {
    crd_dcp_mode mode;
    int retries;
    double resolution;   ///< s; NaN: the fixed, recommended or first one of the description
    int steps;           ///< SRT, HRT: resolutions between two sendings of outputs; default 1
    int id;              ///< 1 .. 255; 0: chosen
    bool relay;          ///< connections between slaves always pass here; default false: directly
                         ///< in real time where nothing is done to the values on their way
    bool one_target;     ///< the slave sends each group to one target only, as DCPLib does
    bool force;          ///< take the slave over although it is in Run
    bool lossy;          ///< NRT: go on with the last values when data are lost
    bool plain;          ///< not encrypted, although the slave is on another host
    double lead;         ///< SRT, HRT: s until the common start, at the next whole second; 0: each
                         ///< at once; default 0.5
    double contact;      ///< s to wait for a slave that does not answer at first
    double timeout;      ///< s until a request is repeated
    double patience;     ///< s that the slave may take for a duty, such as conditioning
    double heartbeat;    ///< s
    double alive;        ///< s without a sign of life until it is lost, whatever it is doing; NaN:
                         ///< 3 s for a bench, else it may be silent while it is at a duty
    const char* local;   ///< address of this side, "192.168.2.1"; NULL: what leads to the slave
    const char* key;     ///< file with the key that both sides share; NULL: not encrypted
    const char* capture; ///< file that gets all PDUs of the session (pcapng); NULL
    const char* matrix;  ///< on a CAN bus: the file that says which frames are what; NULL
} crd_session_spec;

/// `link:` of a unit that exchanges cyclic messages.
typedef struct crd_link_spec {
    const char* local;   ///< UDP: own address, "udp://127.0.0.1:5000"; NULL: chosen
    bool listen;         ///< `frames` is the own address, and the partner is who comes first
    bool plain;          ///< not encrypted, although the partner is on another host
    double contact;      ///< s to wait for the first messages; 0: not at all; NaN: 5 s
    double timeout;      ///< s without a valid message until the unit fails; 0: never; NaN: 1 s
    const char* capture; ///< file that gets all messages (pcapng); NULL
} crd_link_spec;

/// `send:` or `receive:` of a unit on a CAN bus: the messages of the DBC file, as YAML or JSON: one
/// name, a list of them, or a mapping of names to what the DBC file does not say of them.
typedef struct crd_message_list {
    const char* text; ///< NULL: not given
    crd_place place;  ///< file and first line of `text`
} crd_message_list;

/// `bench:` of a DCP slave that declares the bench extension (Rautenberg 2023).
typedef struct crd_bench_spec {
    bool used;
    int gap;             ///< largest difference of sequence numbers; 0: 100
    const char* limits;  ///< of this side: "speed -680..680 rad/s; torque -200..200 N.m"
    const char* plan;    ///< what the test case will ask for, in the same words; key `case`
    const char* initial; ///< temperatures to begin with: "coolant 80 degC +- 1 K"
    double watchdog;     ///< s without valid data; NaN: the bench's own
} crd_bench_spec;

/// A variable of a unit and the one of its stand-in, where their names differ.
typedef struct crd_name_pair {
    const char *name, *model;
} crd_name_pair;

/// `standby:` of a unit: a model that runs beside it and takes over when it drops out. The keys of
/// a unit (`fmu`, `twin`, `parameters` ...) and these:
typedef struct crd_standby_spec {
    const struct crd_unit_spec* model; ///< NULL: none
    double after; ///< s without new outputs until the model takes over; NaN: five steps
    double fade;  ///< s: time constant with which the difference at a change of hands vanishes;
                  ///< default 0.2
    bool rejoin;  ///< a unit that dropped out is brought up again; default true
    int name_count;
    const crd_name_pair* names; ///< key `names`
} crd_standby_spec;

typedef enum crd_netlist_method { ///< those of cardan/circuit.h, in the same order
    CRD_NETLIST_BDF1,
    CRD_NETLIST_BDF2,
    CRD_NETLIST_BDF3,
    CRD_NETLIST_TR, ///< default
    CRD_NETLIST_TR_CARRIED,
    CRD_NETLIST_TRBDF2,
    CRD_NETLIST_GAUSS2,
    CRD_NETLIST_GAUSS4,
    CRD_NETLIST_METHOD_COUNT,
} crd_netlist_method;

typedef enum crd_netlist_form { ///< those of cardan/circuit.h, in the same order
    CRD_NETLIST_AUTO,
    CRD_NETLIST_DAE,
    CRD_NETLIST_NODAL,
} crd_netlist_form;

/// `solver:` of a circuit.
typedef struct crd_netlist_spec {
    crd_netlist_method method;
    crd_netlist_form form;
    double step;      ///< longest inner step, s; it is made to divide the communication step. NaN:
                      ///< that of .tran, else the communication step
    double tolerance; ///< of Newton, relative; NaN: 1e-10
    int iterations;   ///< of Newton per inner step at most; 0: 50
    bool fixed_iterations; ///< always so many: real time
} crd_netlist_spec;

/// One thing that a human being moves: a pedal, a selector, a set value. It is an output of its
/// unit.
typedef struct crd_lever_spec {
    const char *name, *unit;
    double min, max;          ///< range, -INFINITY, INFINITY: none
    double rate;              ///< fastest change, 1/s, INFINITY: at once
    double rest;              ///< where it is while nobody moves it
    bool whole;               ///< whole numbers only: a gear
    const char* const* items; ///< names of 0, 1, 2 ...: a selector
    int item_count;
    const char* gamepad; ///< "button 7", "axis 1", "axis 1 reversed"; "": none
    crd_place place;
} crd_lever_spec;

enum { CRD_LEVERS_MAX = 32 };
typedef struct crd_driver_spec {
    const crd_lever_spec* levers;
    int lever_count;
    double silence; ///< s without a sign of the page until nobody drives; default 0.5
    bool stop;      ///< the run ends then; else the levers go to rest
} crd_driver_spec;

/// Which units run in worker processes where they say nothing themselves.
typedef enum crd_isolation {
    CRD_ISOLATE_NONE,
    CRD_ISOLATE_FOREIGN, ///< FMUs, but for those whose binary is one of this build of Cardan's
    CRD_ISOLATE_ALL,     ///< all FMUs
} crd_isolation;
CRD_API const char* crd_isolation_name(crd_isolation i); ///< "none", "foreign", "all"

typedef struct crd_unit_spec {
    const char* name;
    crd_unit_source source;
    int parameter_count, signal_count, column_count;
    const char* path; ///< FMU, recording, netlist, description of a DCP slave or of a twin, layout,
                      ///< DBC file, made absolute or relative to the working directory
    const char* shown; ///< what messages call it where the path would tell nothing (inside of an
                       ///< archive: "car.ssp/resources/motor.fmu"), "" or NULL: the path
    const void* model; ///< CRD_UNIT_NATIVE: const crd_model*
    double step;       ///< this unit's own communication step, 0: the run's
    const crd_setting* parameters; ///< start values, in order of writing
    const crd_signal_spec* signals;
    const crd_column_spec* columns;  ///< replay: columns that differ; the first that fits counts
    crd_interpolation interpolation; ///< replay; default linear
    crd_interface interface;         ///< FMU
    double time_offset;              ///< replay: row at t is used at t + time_offset, s; default 0
    crd_solver_spec solver;          ///< FMU as Model Exchange
    crd_netlist_spec netlist;        ///< circuit
    const char* address; ///< DCP, frames: "udp://127.0.0.1:8080"; NULL: what the description says.
                         ///< CAN: the bus
    crd_session_spec session;       ///< DCP
    crd_bench_spec bench;           ///< DCP
    crd_link_spec link;             ///< frames, CAN
    crd_message_list send, receive; ///< CAN
    crd_driver_spec driver;
    crd_standby_spec standby;
    bool repeat;    ///< replay: starts again behind its last row; its first row then follows the
                    ///< last without a step in time
    bool logging;   ///< FMU debug log
    bool pinned;    ///< always the same thread: instantiate, step, free
    bool real;      ///< stands for hardware: corrections of power bonds go to the other side
    bool allow_nan; ///< outputs that are not a number pass; its connections hold
    bool retry;     ///< FMI 2: saves its state before each step, and makes one that it discards in
                    ///< shorter ones
    bool network;   ///< in a worker: it may use the network
    crd_refresh refresh;
    int restart; ///< in a worker: how often it begins anew, from its start values, when that ended
    /// s from the beginning of a cycle that the run waits for this unit; it then steps on a thread
    /// of its own, and the others go on with its last outputs while it is late. NaN: as long as it
    /// takes
    double budget;
    /// FMU: "process": its code runs in a worker process of its own; the name of a group: in one
    /// that the units of the group share; "none": in this process. NULL: as the system says, and in
    /// this process for a unit that belongs to none.
    const char* isolate;
    double limit; ///< in a worker: s that one call may take before it is ended; 0, NaN: 300 s
    crd_place place;
} crd_unit_spec;

/// How a real, continuous input goes on between two samples of its source. A unit that takes
/// derivatives of its inputs gets the polynomial; one that can only hold gets its mean over the
/// step, except with linear and quadratic: those give the value at the beginning, as textbooks do.
typedef enum crd_prediction {
    CRD_PREDICTION_AUTO,      ///< default: after each step the one that would have been best
    CRD_PREDICTION_HOLD,      ///< the newest sample
    CRD_PREDICTION_LINEAR,    ///< through the last two samples, whatever derivatives are known
    CRD_PREDICTION_QUADRATIC, ///< ... three
    CRD_PREDICTION_TAYLOR1,   ///< from here on as crd_predictor, which see
    CRD_PREDICTION_TAYLOR2,
    CRD_PREDICTION_HERMITE,
    CRD_PREDICTION_AB2,
    CRD_PREDICTION_AB3,
    CRD_PREDICTION_AB4,
    CRD_PREDICTION_COUNT,
} crd_prediction;

CRD_API const char* crd_prediction_name(crd_prediction p); ///< "auto", "hold", ... "ab4"

/// An emulated transmission, for studies: what a network would do to the samples of a connection.
typedef struct crd_channel_spec {
    double step;      ///< s between two samples; NaN: each time the source has a new value
    double delay;     ///< s from taking a sample to its arrival, >= 0; default 0
    double jitter;    ///< s; each sample's delay is uniform in [delay - jitter, delay + jitter]
    double loss;      ///< part of the samples that never arrive, 0 .. 1
    int burst;        ///< samples that are lost in a row, default 1
    double duplicate; ///< part of the samples that arrive twice
    uint64_t seed;    ///< default 1
} crd_channel_spec;

/// What the estimate of a coupling is of.
typedef enum crd_coupling_target {
    CRD_TARGET_USUAL,      ///< of what dates its outputs by the commands (benches): the round trip
    CRD_TARGET_NOW,        ///< the signal as it is at its source now
    CRD_TARGET_ROUND_TRIP, ///< what the source will answer to what is being sent to it now
} crd_coupling_target;

/// `coupling:` of a connection. Elements are texts here: JSON as crd_element_parse reads it, each
/// token in the line in which the file has it.
typedef struct crd_coupling_spec {
    const char* element;
    crd_place place; ///< file and first line of `element`
    crd_channel_spec channel;
    bool has_channel;
    const char* const* shadows; ///< elements that are evaluated beside it and scored, not used
    const crd_place* shadow_places;
    int shadow_count;
    bool record; ///< estimate's error, latency and jumps become signals of the record; default true
    const char* model; ///< output of a model of the source that runs beside it; NULL: none
    crd_coupling_target target;
    crd_place origin; ///< of `coupling:` itself
} crd_coupling_spec;

/// value at the input = gain * (value of the output in the input's unit) + offset, or what the
/// map makes of it. Before that it passes `via`, one after the other: connectors of nested systems
/// that have units or transformations of their own.
typedef struct crd_connection_spec {
    int from_unit, to_unit; ///< indices into units
    const char* from;       ///< variable, element of an array as name[2] or name[2,3], from 1
    const char* to;
    double gain, offset;      ///< 1, 0
    bool has_transformation;  ///< gain or offset was given
    bool convert_units;       ///< default true; false: numbers pass as they are
    const crd_map_entry* map; ///< instead of gain and offset
    int map_count;
    const crd_transformation* via;
    int via_count;
    crd_prediction predict;
    double scale; ///< what a defect is measured against, in the input's unit; NaN or 0: the
                  ///< largest magnitude of the signal so far
    double
        tolerance; ///< of an iteration, in the input's unit; NaN or 0: run.iterate's, times scale
    const crd_coupling_spec* coupling; ///< NULL: none; then the three above do not count
    crd_place place;
} crd_connection_spec;

/// A tree of execution: leaves are units, groups run their members in parallel (Jacobi) or one
/// after the other (Gauss-Seidel).
typedef enum crd_group_kind {
    CRD_GROUP_UNIT,
    CRD_GROUP_JACOBI,
    CRD_GROUP_GAUSS_SEIDEL,
} crd_group_kind;
typedef struct crd_group {
    crd_group_kind kind;
    int unit; ///< of a leaf
    const struct crd_group* members;
    int member_count;
} crd_group;

typedef enum crd_scheme {
    CRD_SCHEME_JACOBI,
    CRD_SCHEME_GAUSS_SEIDEL, ///< order from the dependency graph
    CRD_SCHEME_GROUPS,       ///< as `group` says
} crd_scheme;

/// `run.control`: a variable communication step, so long that the defects of all connections stay
/// near a tolerance (Glumac 2023). NaN: the default that is said.
typedef struct crd_control_spec {
    bool on;
    crd_step_method method; ///< default CRD_STEP_H211B
    double tolerance;       ///< > 0, RMS of a defect over a step relative to the signal's scale
    bool absolute;          ///< the tolerance is in the units of the signals
    double first;           ///< s; NaN: found from the start's derivatives
    double floor, ceiling;  ///< s; NaN: 1e-12 of the run, and the whole run
    double kp, ki, growth;  ///< CRD_STEP_PI: NaN: 0.13, 1/15, 2
    double safety;          ///< CRD_STEP_H211B: NaN: 0.9
    double reject;          ///< a step with a defect above this many tolerances is taken back and
                            ///< made shorter; all units have to save their state. NaN: above one,
                            ///< if they do and the run does not keep the clock; INFINITY: never
    bool one_sided;         ///< defects against the Taylor polynomial at the end of the step, as
                            ///< published, not against both ends
    bool middle; ///< units sample at mid-step (two half steps), for output defects; default
                 ///< true; those that cannot are left out
    crd_place place;
} crd_control_spec;

/// `run.iterate`: each step is repeated until inputs and outputs fit together.
typedef struct crd_iterate_spec {
    bool on;
    crd_accel_method acceleration; ///< default CRD_ACCEL_IQN_ILS
    double tolerance;              ///< relative to the signals' scales; default 1e-8
    int sweeps;                    ///< at most; default 10
    bool stop; ///< one that does not converge ends the run; default false: that step is made
               ///< explicitly
    crd_place place;
} crd_iterate_spec;

/// What a power bond is coupled by.
typedef enum crd_pair_kind {
    CRD_PAIR_NONE, ///< its two connections, each for itself
    CRD_PAIR_WAVE,
} crd_pair_kind;

/// Two outputs whose product is a power, each connected to an input of the other's unit. f acts on
/// the unit that gives v; f as it arrives there times v is the power into it.
typedef struct crd_bond_spec {
    const char* name; ///< "": "f x v". Bonds of the same name (and units) are components of one
    int action_unit, flow_unit;
    const char *action, *flow; ///< outputs: f (force, torque, voltage) and v
    crd_correction correct;
    double mu;                  ///< NaN: from the known delays
    double ki, limiter, forget; ///< NaN: as crd_bond_defaults
    /// Quantities as text, NULL or "": none. factor: what makes the product a power, "0.0012 m2".
    /// stiffness, damping: action and flow are displacements with a spring between them, "100 N/m",
    /// "0.1 N.s/m".
    const char *factor, *stiffness, *damping;
    /// Both outputs go by a pair of wave ports (cardan/pair.h) in place of their connections.
    crd_pair_kind pair;
    const char* impedance; ///< of the pair, effort per flow, "6 N.m.s/rad"; "": learned
    double inner;          ///< s, step of both units inside the macro step; NaN or 0: a tenth
    /// The side that owns the flow learns what the other answers, and acts on that once it proves
    /// better than what arrives (key `over: commands`).
    bool over;
    crd_channel_spec channel; ///< emulated, for its packets
    bool has_channel;
    crd_place place;
} crd_bond_spec;

/// SOLVER: in twenty steps of the run units that can go back make their step in two halves, too
enum {
    CRD_MONITOR_DEFECT = 1 << 0,
    CRD_MONITOR_ENERGY = 1 << 1,
    CRD_MONITOR_SOLVER = 1 << 2,
};

/// What a run on the wall clock does when a cycle was not done when the next one was due.
typedef enum crd_overrun {
    CRD_OVERRUN_RECORD,  ///< count it and keep the grid: the next cycles begin at once until it is
                         ///< caught up with
    CRD_OVERRUN_STRETCH, ///< the grid moves by what was late: time goes slower
    CRD_OVERRUN_SKIP,    ///< the grid moves by whole periods: the next cycle begins in phase
    CRD_OVERRUN_STOP,    ///< the run ends
} crd_overrun;
CRD_API const char* crd_overrun_name(crd_overrun policy); ///< "record", ... "stop"

/// `run.pace`: how simulated time follows the clock.
typedef struct crd_pace_spec {
    double factor; ///< simulated seconds per second; 0: as fast as possible (default)
    crd_overrun overrun;
    double slack;  ///< s that a cycle may be late before it counts as an overrun; default 0
    double spin;   ///< s before a deadline in which the thread looks at the clock; default 0
    int priority;  ///< of SCHED_FIFO, 1 .. 99; 0: the scheduler stays as it is; default 80
    int cpu;       ///< that the cycle thread stays on; -1: any (default)
    bool lock;     ///< memory is locked; default true
    bool required; ///< what is not allowed is an error and not a note; default false
    crd_place place;
} crd_pace_spec;

/// What the guard does about a loop that grows by its coupling (docs/explanation/quality.md).
typedef enum crd_guard_action {
    CRD_GUARD_AUTO,   ///< stops what is proven, warns of the rest
    CRD_GUARD_STOP,   ///< stops at every alarm
    CRD_GUARD_WARN,   ///< says so and goes on
    CRD_GUARD_LADDER, ///< of links with hardware: a calmer element, the stand-in, then it stops
    CRD_GUARD_NONE,   ///< nothing is watched
} crd_guard_action;

/// `run.guard`
typedef struct crd_guard_spec {
    crd_guard_action action;
    /// Limits at which a run ends: defects and estimated errors of the scales of their signals,
    /// energy of what passes a bond; NaN: none.
    double max_defect, max_energy, max_error;
    crd_place place;
} crd_guard_spec;

typedef struct crd_run_spec {
    double start, stop; ///< s; NaN: from the units' default experiment, else 0 and 1
    double step;        ///< macro step, s; NaN: from the units, else (stop - start)/1000
    double tolerance;   ///< handed to units; NaN: their default
    crd_scheme scheme;
    crd_group group;        ///< CRD_SCHEME_GROUPS
    crd_prediction predict; ///< of connections that say nothing
    crd_pace_spec pace;
    crd_control_spec control;
    crd_iterate_spec iterate;
    crd_defect_scheme feedthrough; ///< default CRD_DEFECT_FRESH
    unsigned monitor;              ///< CRD_MONITOR_...; default defect and energy
    crd_guard_spec guard;
    double watchdog;       ///< s without a sign of life after which the guard process stops the
                           ///< benches; 0: there is no such process; NaN: 2 s
    int threads;           ///< 0: measured at the start
    crd_isolation isolate; ///< which units run in worker processes; default CRD_ISOLATE_FOREIGN
    int loop_iterations;   ///< initialisation, default 50
    double loop_tolerance; ///< relative, default 1e-10
    const char*
        learned; ///< file of `cardan coupling learn cycle` whose corrections are used; NULL: none
} crd_run_spec;

typedef struct crd_results_spec {
    const char* path;            ///< NULL: none
    const char* const* patterns; ///< variables to record; none: all outputs
    int pattern_count;
    double interval;      ///< s between rows, 0: every macro step
    bool unit_row;        ///< CSV: a second row with the units
    int mat_version;      ///< MAT: 5 or 73; 0: 5, and 73 where 5 is too small
    const char* exchange; ///< MF4 with every exchanged sample and its time stamps; NULL: none
    const char* session;  ///< CSV with the states of master and test benches; NULL: none
    const char*
        on_full; ///< what happens when the disk is full: "stop", "thin", "drop", or a file
                 ///< that the rest goes to; NULL: drop on the clock with hardware, else stop
} crd_results_spec;

/// An annotation of an SSP that is not ours, kept for export.
typedef struct crd_note {
    int unit;           ///< whose, -1: of a system
    const char* type;   ///< "org.openmodelica"
    const char* xml;    ///< the whole Annotation element, namespaces declared
    const char* system; ///< of which system: "outer.inner"; "" or NULL: the whole
} crd_note;

/// A connector of the outermost system of an SSP and one variable that it leads to: values for the
/// connector (see crd_ssp_apply) become start values of the variable.
typedef struct crd_port {
    const char* name;
    int unit;
    const char* variable;
    const crd_transformation* stages; ///< unit of the connector, then one per connection
    int stage_count;                  ///< >= 2
    const struct crd_port* next;
} crd_port;

typedef struct crd_system {
    crd_context* ctx;
    crd_arena arena;
    const char* file; ///< where it was read from, ""
    crd_unit_spec* units;
    int unit_count;
    crd_connection_spec* connections;
    int connection_count;
    crd_bond_spec* bonds; ///< (bond_count)
    int bond_count;
    crd_run_spec run;
    crd_results_spec results;
    const char* title; ///< name of the system, "" if it has none
    const char* base;  ///< SSP that it stands on (`system:` of the YAML), ""
    const crd_note* notes;
    int note_count;
    const crd_port* ports;
    /// Removed with everything in it by crd_system_destroy: where an archive was unpacked. NULL:
    /// none
    const char* scratch;
    bool single; ///< one FMU or netlist without description: result columns bear its own names
    size_t unit_capacity, connection_capacity, bond_capacity;
    crd_map unit_map; ///< name -> index, for crd_system_find
} crd_system;

/// An empty system with the defaults above.
CRD_API crd_status crd_system_create(crd_context* ctx, crd_system** out);
/// YAML. Paths in the file are relative to the file. CRD_E_FORMAT with "file:line: ..." otherwise;
/// CRD_E_RANGE for values that make no sense, CRD_E_NOT_FOUND for unknown units and a missing file.
CRD_API crd_status crd_system_load(crd_context* ctx, const char* path, crd_system** out);
/// The same from memory; `path` serves messages and relative paths.
CRD_API crd_status crd_system_parse(crd_context* ctx, const char* text, size_t length,
                                    const char* path, crd_system** out);
/// Reads the SSP `path` (variant NULL: the default one) into a system that has nothing yet.
/// crd_ssp_read is one: this module does not know SSP itself.
typedef crd_status crd_system_base(crd_system* s, const char* path, const char* variant,
                                   crd_place place);
/// As crd_system_load and crd_system_parse (text NULL: read the file), for files that may have the
/// key `system:`; they add to what that says and change it. Without `base` the key is refused.
CRD_API crd_status crd_system_load_on(crd_context* ctx, const char* text, size_t length,
                                      const char* path, crd_system_base* base, crd_system** out);
/// What a YAML with `system:` says beyond it, applied to a system that is there already: keys as in
/// a description, all optional, `cardan:` and `system:` not needed. Units and connections that
/// exist are changed (options, parameters, another file of the same kind), new ones are added. The
/// annotation of an SSP holds such a text, so new units may have any name; `first_line` is where it
/// begins in `path`, 0: unknown. After a failure the system may be changed in part.
CRD_API crd_status crd_system_amend(crd_system* s, const char* text, size_t length,
                                    const char* path, int first_line);
/// A system of one FMU, for running it as it is.
CRD_API crd_status crd_system_of_fmu(crd_context* ctx, const char* fmu_path, crd_system** out);
/// The same of one netlist.
CRD_API crd_status crd_system_of_circuit(crd_context* ctx, const char* path, crd_system** out);
CRD_API void crd_system_destroy(crd_system* s);

/// Index of a unit by name, -1.
CRD_API int crd_system_find(const crd_system* s, const char* unit);
/// The index of the new unit in `*index` (may be NULL). Texts are copied; arrays inside are
/// borrowed unless they come from the arena.
CRD_API crd_status crd_system_add_unit(crd_system* s, const crd_unit_spec* unit, int* index);
/// A unit of the caller's own: a table of variables and functions (cardan/model.h), borrowed, which
/// outlives the system. `step` 0: the run's. What it leaves open, crd_system_amend may say.
CRD_API crd_status crd_system_add_model(crd_system* s, const char* name, const crd_model* model,
                                        double step, int* index);
CRD_API crd_status crd_system_add_connection(crd_system* s, const crd_connection_spec* c);
CRD_API crd_status crd_system_add_bond(crd_system* s, const crd_bond_spec* b);
/// "unit.var" -> the connection's ends; the longest unit name that fits wins. CRD_E_NOT_FOUND with
/// the nearest unit. `*variable` points into `text`. In a `single` system the unit may be left out.
CRD_API crd_status crd_system_split(const crd_system* s, const char* text, crd_place place,
                                    int* unit, const char** variable);
/// Append a start value, as `--set` does: it wins over those before.
CRD_API crd_status crd_system_set(crd_system* s, int unit, const char* variable, const char* text,
                                  crd_place place);
/// jacobi, gauss-seidel, or a nested form as in YAML flow style:
/// "gauss-seidel: [a, jacobi: [b, c]]".
CRD_API crd_status crd_system_set_scheme(crd_system* s, const char* text, crd_place place);
/// realtime, free, 10x, or a mapping as in YAML flow style: "{ factor: 2x, overrun: stop }".
CRD_API crd_status crd_system_set_pace(crd_system* s, const char* text, crd_place place);
/// auto, stop, warn, ladder, off, or a mapping as in YAML flow style: "{ max_defect: 1 % }".
CRD_API crd_status crd_system_set_guard(crd_system* s, const char* text, crd_place place);

/// YAML (or JSON, which it includes) as JSON text on one line per line: each token stays in the
/// line in which it stood, so that messages about the JSON tell the line of the YAML. Plain scalars
/// that are numbers, true, false or null in YAML stay that, all others become strings. `place` as
/// in messages; its line counts from 1. CRD_E_FORMAT.
CRD_API crd_status crd_yaml_to_json(crd_context* ctx, const char* text, size_t length,
                                    crd_place place, crd_text* out);

CRD_API crd_unit_spec crd_unit_spec_defaults(void);
CRD_API crd_connection_spec crd_connection_spec_defaults(void);
CRD_API crd_signal_spec crd_signal_spec_defaults(void);
CRD_API crd_bond_spec crd_bond_spec_defaults(void);

// ---- proposed connections ----------------------------------------------------------------------

/// A unit as far as proposals need it.
typedef struct crd_port_unit {
    const char* name;
    bool source; ///< a generator or a recording: it depends on nobody
} crd_port_unit;

/// A variable at which a connection could begin or end.
typedef struct crd_endpoint {
    int unit; ///< index of its unit
    const char* name;
    const char* measure;     ///< unit of measure, "" none
    crd_dimension dimension; ///< of it, if has_dimension
    bool has_dimension;
    crd_type type;
    crd_causality causality; ///< CRD_INPUT and CRD_OUTPUT count, others are passed over
    uint32_t size;           ///< elements
    bool taken;              ///< an input that has a source already
} crd_endpoint;

typedef enum crd_sureness {
    CRD_DOUBTFUL, ///< somebody has to look
    CRD_LIKELY,   ///< the best by far, though not in all respects
    CRD_SURE,
} crd_sureness;
CRD_API const char* crd_sureness_name(crd_sureness s); ///< "doubtful", "likely", "sure"

typedef struct crd_proposal {
    int from, to; ///< ports
    crd_sureness sure;
    const char* why; ///< "same name, both in N.m"
} crd_proposal;

/// For every free input at most one output that it could get its value from: by the tokens of
/// names, with names of the partners and common synonyms, by units of measure and types. In the
/// order of inputs, in `arena`. Time grows with what names have in common, not with all pairs.
CRD_API crd_status crd_propose(crd_arena* arena, const crd_port_unit* units, int unit_count,
                               const crd_endpoint* ports, int port_count, const crd_proposal** out,
                               int* count);
/// NULL if a value of `from` can go to `to`, else why not; in `arena`.
CRD_API const char* crd_propose_refusal(crd_arena* arena, const crd_endpoint* from,
                                        const crd_endpoint* to);
/// Whether the product of both is a power.
CRD_API bool crd_is_power(const crd_endpoint* a, const crd_endpoint* b);

// ---- descriptions edited -----------------------------------------------------------------------

/// The text of a description with one connection more ("a.y", "b.u"), everything else as it was:
/// in the line of a comment that has it already, else behind the last connection. `out` is empty at
/// first. Whether it makes sense is for whoever loads the result. CRD_E_FORMAT.
CRD_API crd_status crd_system_text_connect(crd_context* ctx, const char* text, size_t length,
                                           const char* path, const char* from, const char* to,
                                           crd_text* out);
/// One connection less. `from` NULL: whatever drives `to`. CRD_E_NOT_FOUND.
CRD_API crd_status crd_system_text_disconnect(crd_context* ctx, const char* text, size_t length,
                                              const char* path, const char* from, const char* to,
                                              crd_text* out);
/// "a.y -> b.u" in its two ends, without blanks; in `arena`. CRD_E_FORMAT.
CRD_API crd_status crd_system_arrow(crd_arena* arena, const char* text, const char** from,
                                    const char** to);

// ---- SSP ---------------------------------------------------------------------------------------

/// System Structure and Parameterization, 1.0 and 2.0: packages read into a system, and written.
///
/// Nested systems become flat: the component `motor` of the subsystem `drive` is the unit
/// "drive.motor", and connections through connectors of systems become connections of units with
/// all transformations on the way. Parameters arrive as settings in order of rising precedence.

/// Fills a system that is empty. `path`: an .ssp, an .ssd, or the folder of an unpacked package.
/// `variant`: another .ssd at the root of the package, with or without its ending; NULL:
/// SystemStructure.ssd. An archive is unpacked into a private folder that goes with the system.
/// Run options come from DefaultExperiment and our annotation. CRD_E_FORMAT with "file:line: ..."
/// for what the schema forbids (of all such places the first; the others go to the log as errors);
/// CRD_E_NOT_FOUND for missing files and variants; CRD_E_RANGE for connections that cannot be;
/// CRD_E_UNSUPPORTED for types of components that Cardan cannot run. Indices of array connectors
/// (2.0) count from 1. A crd_system_base.
CRD_API crd_status crd_ssp_read(crd_system* s, const char* path, const char* variant,
                                crd_place place);
/// A new system from it.
CRD_API crd_status crd_ssp_load(crd_context* ctx, const char* path, const char* variant,
                                crd_system** out);

/// A parameter set (.ssv) for a system that is there, however it was made: its values win over all
/// before. `ssm`: a mapping, NULL: none. Names are those at the outermost level: unit.variable,
/// connectors of the outermost system of an SSP, and plain variables in a `single` system. Names
/// that fit nothing are noted in the log; whether values fit their variables is seen when the
/// system is run. CRD_E_NOT_FOUND, CRD_E_FORMAT with "file:line: ...". After a failure the system
/// is as before.
CRD_API crd_status crd_ssp_apply(crd_system* s, const char* ssv, const char* ssm);

typedef enum crd_ssp_kind { CRD_SSP_SSD, CRD_SSP_SSV, CRD_SSP_SSM } crd_ssp_kind;

/// What is in a package or .ssd, for listings.
typedef struct crd_ssp_component {
    const char *name, *type, *source, *implementation; ///< name with the systems around it
    int connectors, depth;
    bool system; ///< a nested system, not a component
} crd_ssp_component;

typedef struct crd_ssp_info {
    const char *path, *version, *name, *tool, *author, *date, *description, *license;
    const char* const* variants; ///< .ssd files at the root; the first is the one described
    int variant_count;
    const char* const* resources; ///< all other files of the package
    int resource_count;
    const crd_ssp_component* components;
    int component_count;
    int connections, parameter_bindings;
    const char* const* annotations; ///< types
    int annotation_count;
    bool has_start, has_stop;
    double start, stop;
    crd_arena arena;
} crd_ssp_info;

CRD_API crd_status crd_ssp_describe(crd_context* ctx, const char* path, const char* variant,
                                    crd_ssp_info** out);
CRD_API void crd_ssp_info_destroy(crd_ssp_info* i);

/// What is in a parameter set (.ssv) or a mapping (.ssm), for listings.
typedef struct crd_ssp_parameter {
    const char* name;   ///< of a mapping: the target
    const char* type;   ///< "Real"; "" of a mapping
    const char* value;  ///< elements of arrays with blanks between them; of a mapping: the source
    const char* unit;   ///< "" none
    const char* change; ///< of a mapping: "2 x + 1", "1 -> 2, 3 -> 4"; "" none
} crd_ssp_parameter;

typedef struct crd_ssp_parameters {
    const char *path, *version, *name, *description; ///< a mapping has no name: ""
    bool mapping;
    const crd_ssp_parameter* items; ///< in order of the file
    int count;
    crd_system* owner; ///< of the memory
} crd_ssp_parameters;

/// `kind`: CRD_SSP_SSV or CRD_SSP_SSM.
CRD_API crd_status crd_ssp_list(crd_context* ctx, crd_ssp_kind kind, const char* path,
                                crd_ssp_parameters** out);
CRD_API void crd_ssp_parameters_destroy(crd_ssp_parameters* p);

/// One document from memory: parser and schema checks alone, as the fuzz targets use them.
CRD_API crd_status crd_ssp_parse(crd_context* ctx, crd_ssp_kind kind, const char* text,
                                 size_t length, const char* name_in_messages);

/// What a unit's variables are, for the connectors of the package. The caller knows FMI, this
/// module does not.
typedef struct crd_ssp_connector {
    const char* name;
    const char* unit; ///< "" none
    crd_type type;
    crd_causality causality;
    const char* enumeration; ///< name of its type, "" none
    bool has_dimension;
    bool relative;                    ///< a difference: zero points of units do not count
    crd_dimension dimension;          ///< of `unit`
    const struct crd_ssp_item* items; ///< of the enumeration; none: written as an integer
    int item_count;
    const uint64_t* sizes; ///< of an array, one per dimension
    int rank;              ///< 0: a scalar
} crd_ssp_connector;

typedef struct crd_ssp_item {
    const char* name;
    int64_t value;
} crd_ssp_item;

typedef struct crd_ssp_source {
    void* user;
    /// All inputs, outputs and parameters of unit `unit`, other variables as well: these only say
    /// of what type a start value is. The array lives until the next call.
    crd_status (*connectors)(void* user, int unit, const crd_ssp_connector** out, int* count);
} crd_ssp_source;

typedef struct crd_ssp_options {
    int version;        ///< 1 or 2; default 1, which all tools read
    const char* author; ///< NULL: none
    bool only_used;     ///< connectors only for what is connected or set; default false
} crd_ssp_options;

/// Writes the system as a package: SystemStructure.ssd, the FMUs under resources/, parameters as
/// an SSV, run options and what SSP has no word for in our annotation, kept annotations as they
/// were. Units that are not FMUs become components of a type of their own, which only Cardan runs:
/// said in a warning.
CRD_API crd_status crd_ssp_write(const crd_system* s, const char* path, const crd_ssp_source* src,
                                 const crd_ssp_options* opt);

/// Our annotation stands in the SystemStructureDescription of the variant and holds what a YAML
/// with `system:` would add (see crd_system_amend), as text:
///     <ssc:Annotation type="org.cardan"><yaml xmlns="urn:org.cardan">run: { step: 1 ms }
///     </yaml></ssc:Annotation>
#define CRD_SSP_ANNOTATION "org.cardan"
#define CRD_SSP_SPACE "urn:org.cardan"

/// Types of components that are no FMUs: `units:` in the annotation says what they are.
#define CRD_SSP_SIGNAL "application/x-cardan-signal"
#define CRD_SSP_REPLAY "application/x-cardan-replay"

#ifdef __cplusplus
}
#endif
