/// The unit interface: everything that takes part in a run is a unit behind one table of functions.
///
/// A unit is described by crd_unit_create (nothing runs yet), then instantiated, initialised,
/// stepped and terminated by the master in this order. Values pass in bindings: sets of variables
/// that are exchanged together, prepared once, so that a step finds everything in place.
/// Threads: one thread at a time; different units may run on different threads. Each unit has a
/// context of its own for the text of its last failure.
#pragma once
#include "cardan/base.h"
#include "cardan/model.h"
#include "cardan/system.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct crd_unit crd_unit;

/// A text or a block of bytes. `data` has room for `capacity` bytes and is zero-terminated.
typedef struct crd_bytes {
    uint8_t* data;
    size_t length, capacity;
} crd_bytes;

/// The values of one binding, a vector per kind.
typedef struct crd_values {
    double* real;
    int64_t* integer;
    crd_bytes* bytes;
} crd_values;

/// A set of variables of one unit that are set or read together. The variables are sorted by type;
/// the elements of variable j of kind k stand at offset[j] ... offset[j] + size - 1 of the vector
/// of k, without gaps in the order of the variables.
typedef struct crd_binding {
    crd_unit* unit;
    int32_t count;
    int32_t* variables; ///< indices (count), sorted by type, then as given
    int32_t* offsets;   ///< (count)
    int32_t real_count, integer_count, bytes_count; ///< elements per kind
    void* prepared;                                 ///< the adapter's own, from lane->prepare
} crd_binding;

enum {
    CRD_UNIT_CAN_SAVE = 1 << 0,        ///< save and restore
    CRD_UNIT_CAN_VARY_STEP = 1 << 1,   ///< steps of any length
    CRD_UNIT_HAS_DIRECTIONAL = 1 << 2, ///< directional derivatives
    CRD_UNIT_IS_SOURCE = 1 << 3,       ///< no inputs; outputs depend on time alone
    CRD_UNIT_HAS_EVENTS = 1 << 4,
    /// Outputs and their derivatives follow inputs and their derivatives that are set between two
    /// steps, and may be got then. Not Co-Simulation of FMI 2 or 3: both standards forbid it,
    /// unless the spec says that this FMU does it (CRD_REFRESH_YES). With FMI 3 the derivatives of
    /// outputs follow the values of inputs only: it takes derivatives of inputs inside of steps.
    CRD_UNIT_CAN_REFRESH = 1 << 5,
    CRD_UNIT_IN_REAL_TIME = 1 << 6,  ///< time passes there by itself
    CRD_UNIT_DATES_OUTPUTS = 1 << 7, ///< `made` says when its outputs belong to
};

/// What a unit is; const after create but for max_input_order (see crd_unit.input_order).
typedef struct crd_unit_info {
    const crd_variable* variables;
    int32_t variable_count;
    uint32_t flags;
    const crd_dependencies*
        outputs; ///< which inputs act on an output without delay; NULL: all on all
    const crd_dependencies* initial;     ///< the same during initialisation; NULL: as `outputs`
    int max_input_order;                 ///< derivatives of inputs that it takes, 0: values only
    int max_output_order;                ///< derivatives of outputs that it gives
    double start, stop, step, tolerance; ///< default experiment, NaN: not given
    double fixed_step;                   ///< > 0: the only communication step it can take
    double step_unit;                    ///< > 0: communication steps have to be multiples of it
    const char* kind; ///< "FMU 2.0", "FMU 3.0 ME", "signal" ... for tables and messages
    /// For reports; NULL: not known.
    const char *model, *model_version, *tool, *date;
} crd_unit_info;

typedef struct crd_experiment {
    double start;
    bool has_stop, has_tolerance;
    double stop, tolerance;
    bool may_roll_back;               ///< an earlier state may be restored
    const volatile bool* interrupted; ///< true: whoever waits gives up; NULL: nobody can
    /// As `interrupted`, also for whoever is in a step, and at once. Another thread sets it: to be
    /// read with __atomic_load_n. NULL: nobody does.
    const bool* emergency;
} crd_experiment;

/// Room for what a unit needs in a step, two cache lines: near is fast.
typedef struct crd_lane {
    uint64_t room[16];
} crd_lane;

/// The short way of a step: set the inputs, step and get the outputs for `count` lanes in a row.
/// `*at` is the id of the lane whose unit runs, also after a failure, which ends the row.
typedef crd_status crd_advance(crd_lane* first, int count, double t, double h, volatile int* at);

/// What a unit that is reached over a network knows about its link. Counts from the start of the
/// run.
typedef struct crd_link_stats {
    int64_t in, out;    ///< messages with data
    int64_t lost;       ///< numbers that never came
    int64_t duplicates; ///< came twice
    int64_t reordered;  ///< came behind a later one
    int64_t bad;        ///< could not be used
    int64_t foreign;    ///< came from others in its name; nothing acts on them
    int64_t late;       ///< steps that ended without the data that were due
    double age;         ///< s: newest outputs when they were last used; NaN: not known
    double age_mean, age_max;
    double round_trip, round_trip_max; ///< s of requests; NaN: none
    int state;                         ///< as the far side calls it, -1: not known
    const char* state_name;            ///< "RUNNING", ""
    const char* security; ///< "plain", or the key and whose it is; NULL, or while the unit lives
} crd_link_stats;

// ---- the table of functions --------------------------------------------------------------------
//
// All that can fail leave a sentence in the unit's context that names what happened, not which unit
// it was: the caller adds that. A kind of unit fills in the first nine of crd_unit_ops; what else
// it can do stands in small tables of its own, each of which may be missing. Whether this unit can,
// out of those of its kind, is said by `info`: callers ask that, never for NULL in a table.

/// Going back, where `info` says CRD_UNIT_CAN_SAVE.
typedef struct crd_unit_state_ops {
    crd_status (*save)(crd_unit* u, void** state); ///< `*state` NULL: a new one, else used again
    crd_status (*restore)(crd_unit* u, void* state);
    void (*free)(crd_unit* u, void** state);
    /// The state as bytes that mean the same in another process, appended to `out`. NULL, or
    /// CRD_E_UNSUPPORTED: it cannot.
    crd_status (*write)(crd_unit* u, crd_text* out);
    crd_status (*read)(crd_unit* u, const void* bytes, size_t size); ///< of an initialised unit
} crd_unit_state_ops;

/// Derivatives, where `info` says so.
typedef struct crd_unit_derivative_ops {
    /// max_input_order > 0. Time derivatives at the beginning of the next step of the real values
    /// of `b`: d[order - 1] has real_count elements. Comes after set.
    crd_status (*set)(crd_unit* u, const crd_binding* b, const double* const* d, int order);
    /// max_output_order > 0. Derivative of the given order of the real values of `b` at the current
    /// time.
    crd_status (*get)(crd_unit* u, const crd_binding* b, int order, double* d);
    /// CRD_UNIT_HAS_DIRECTIONAL. result(nu) = d unknowns / d knowns * seed(nk), scalar real
    /// variables.
    crd_status (*directional)(crd_unit* u, const int32_t* unknowns, int nu, const int32_t* knowns,
                              int nk, const double* seed, double* result);
} crd_unit_derivative_ops;

/// Units that compute elsewhere. Each of them may be NULL.
typedef struct crd_unit_remote_ops {
    /// What takes long about enter_initialization, which follows, begins; nobody waits for it here.
    /// Comes for all units before the first enter_initialization, or not at all.
    crd_status (*approach)(crd_unit* u, const crd_experiment* e);
    /// After set: starts the step that `step` finishes, so that others go on meanwhile. What goes
    /// wrong is told by `step`.
    void (*begin)(crd_unit* u, double t, double h);
    /// How the link to the unit does. The cycle thread. false: there is none.
    bool (*link)(const crd_unit* u, crd_link_stats* out);
    /// What is known about the test bench behind the unit; the same from create to destroy. NULL:
    /// it is none.
    const struct crdi_board* (*board)(const crd_unit* u);
    /// What acts of input `variable`, a real number, in the step that was begun last, if that is
    /// not what was set: limits were agreed with the unit. false: `*value` is not touched. NULL:
    /// what was set acts.
    bool (*acting)(const crd_unit* u, int32_t variable, double* value);
    /// The run is over: whatever turns is to come to rest, and nobody waits for it here;
    /// `terminate` does. Comes for all units before the first `terminate`.
    void (*halt)(crd_unit* u);
    /// Whoever waits in a step of the unit gives up soon. Another thread than the one that is in
    /// the step, when the run is over.
    void (*interrupt)(crd_unit* u);
    /// Output `from` of `u` can go to input `to` of `target`, a unit with the same function,
    /// without the master: true if it will, and `set` does not count for that input any more.
    /// Before the initialisation.
    bool (*route)(crd_unit* u, int32_t from, crd_unit* target, int32_t to);
    /// As `begin`, for a row of lanes; what lane->join has given finishes the steps.
    void (*begin_row)(crd_lane* first, int count, double t, double h);
} crd_unit_remote_ops;

/// What is worked out once for the values that are exchanged. Each of them may be NULL.
typedef struct crd_unit_lane_ops {
    crd_status (*prepare)(crd_unit* u, crd_binding* b); ///< fill b->prepared
    void (*unprepare)(crd_unit* u, crd_binding* b);     ///< free it
    /// The short way for these values, NULL if the unit has none: prepares the lane, for which the
    /// master says `id`. Comes after the initialisation.
    crd_advance* (*join)(crd_unit* u, int id, const crd_binding* in, const crd_values* inputs,
                         const crd_binding* out, crd_values* outputs, crd_lane* lane);
} crd_unit_lane_ops;

/// What variables are called, where it is not what `info` says. Each of them may be NULL.
typedef struct crd_unit_name_ops {
    /// Physical unit of a variable. false: it has none, or none that can be understood. NULL: that
    /// of the variable's text.
    bool (*dimension)(const crd_unit* u, int32_t variable, crd_dimension* out);
    /// Item k = 0, 1, ... of an enumeration with its value; NULL behind the last.
    const char* (*item_at)(const crd_unit* u, int32_t variable, int32_t k, int64_t* value);
    /// Length of one dimension of an array. NULL: arrays have one dimension.
    uint32_t (*extent)(const crd_unit* u, int32_t variable, int axis);
} crd_unit_name_ops;

typedef struct crd_unit_ops {
    crd_status (*instantiate)(crd_unit* u);
    crd_status (*enter_initialization)(crd_unit* u, const crd_experiment* e);
    crd_status (*exit_initialization)(crd_unit* u);
    crd_status (*set)(crd_unit* u, const crd_binding* b, const crd_values* v);
    crd_status (*get)(crd_unit* u, const crd_binding* b, crd_values* v);
    /// Advance from t to t + h, through events if there are some. May set u->wants_stop.
    crd_status (*step)(crd_unit* u, double t, double h);
    crd_status (*terminate)(crd_unit* u);
    void (*destroy)(crd_unit* u);
    int32_t (*find)(const crd_unit* u, const char* name); ///< variable by name, -1

    // NULL: it has none of it.
    const crd_unit_state_ops* state;
    const crd_unit_derivative_ops* derivatives;
    const crd_unit_remote_ops* remote;
    const crd_unit_lane_ops* lane;
    const crd_unit_name_ops* names;
    /// After a crash: `destroy` will follow and must not call the unit's code again. NULL: it does
    /// not anyway.
    void (*abandon)(crd_unit* u);
    const char* (*last_call)(const crd_unit* u); ///< for messages after a crash: "fmi2DoStep"; NULL
} crd_unit_ops;

/// Adapters put this first in their own struct.
struct crd_unit {
    const crd_unit_ops* ops;
    crd_context* ctx; ///< of its own
    const char* name; ///< borrowed from the spec
    const crd_unit_spec* spec;
    crd_unit_info info;
    bool wants_stop;  ///< the unit asked for the end of the run
    int32_t worker;   ///< number of the worker process that its code runs in; 0: this process
    bool* wish;       ///< the master's: set with it, atomically; NULL: nobody listens
    int64_t events;   ///< counts what may have made outputs or their derivatives jump: state and
                      ///< time events in a step, changed discrete values
    double input_lag; ///< s; a new input takes over gradually at the beginning of a step, as if the
                      ///< one before had held for so long (trapezoidal rule); 0: at once
    double next_event; ///< the next time after the unit's own at which that will happen, as far as
                       ///< it is known; INFINITY: none. crd_unit_create sets it to INFINITY
    /// Derivatives of inputs that will be set: max_input_order, unless the master lowers it before
    /// crd_unit_instantiate. 0 saves an FMI 3 FMU from asking for inputs inside its steps. An FMU
    /// that turns out to take less lowers both at the end of its initialisation.
    int input_order;
    /// Raised by exit_initialization: finding that out has spoilt the instance. It has to be made
    /// and initialised again, with the same values; lowered by crd_unit_instantiate.
    bool begin_again;
    double step; ///< communication step that the master will use, s; 0: not known. Before
                 ///< crd_unit_instantiate
    /// A unit in real time steps on a grid of its own: when its t = start was due on the monotonic
    /// clock, ns; 0: it has none. Known after its first `begin`. The run's pacer takes it over.
    int64_t origin;
    int64_t waited; ///< ns that its steps waited for the clock, in all: not the unit's work
    /// The time of the run that its outputs belong to: with no latency that of the end of its last
    /// step, else by as many steps earlier as the way to the unit and back takes. Only with
    /// CRD_UNIT_DATES_OUTPUTS; NaN: not known yet.
    double made;
    /// What the unit has to say for the record: it writes `remark`, then raises the number. The
    /// master looks after each step of the unit and makes it an event.
    int64_t remarks;
    const char* remark;          ///< its own, there from create on; NULL: it never has one
    struct crdi_unit_core* core; ///< crd_unit_create's own; NULL for a unit that it did not make
};

/// What the stand-in of a unit did in a run.
typedef struct crd_standby_stats {
    int64_t takeovers, returns;
    double stood_in; ///< s of the run in which its outputs were used
    int source;      ///< crd_board_source, now
} crd_standby_stats;
/// false: the unit has none. Any thread.
CRD_API bool crd_unit_get_standby(const crd_unit* u, crd_standby_stats* out);

/// What several units share is opened once: an FMU that many units instantiate is unpacked and
/// loaded one time. Make a store, create the units with it, destroy it after the last of them.
typedef struct crd_unit_store crd_unit_store; ///< opaque
CRD_API crd_status crd_unit_store_create(crd_context* ctx, crd_unit_store** out);
CRD_API void crd_unit_store_destroy(crd_unit_store* s);
/// As crd_unit_create, with what the store has already.
CRD_API crd_status crd_unit_create_shared(crd_context* ctx, crd_unit_store* store,
                                          const crd_unit_spec* spec, crd_unit** out);

/// Opens and describes the unit of `spec` (borrowed, outlives it). Parameters of the spec are
/// checked here (names, types, values, causality) and structural ones take effect on array sizes;
/// all are sent by crd_unit_instantiate. Messages start with the place in the description.
CRD_API crd_status crd_unit_create(crd_context* ctx, const crd_unit_spec* spec, crd_unit** out);
CRD_API void crd_unit_destroy(crd_unit* u);
/// Instantiates and sets the spec's parameters.
CRD_API crd_status crd_unit_instantiate(crd_unit* u);

CRD_API crd_status crd_binding_create(crd_unit* u, const int32_t* variables, int32_t count,
                                      crd_binding** out);
CRD_API void crd_binding_destroy(crd_binding* b);

/// "name", "name[2]", "name[2,3]": the variable and the element (-1: whole). CRD_E_NOT_FOUND with
/// the nearest name.
CRD_API crd_status crd_unit_resolve(const crd_unit* u, crd_context* ctx, const char* text,
                                    int32_t* variable, int32_t* element);

/// One setting, parsed for the variable's type and unit of measure ("100 g" into kg, item names of
/// enumerations, arrays as elements separated by spaces, one element for all allowed).
/// CRD_E_RANGE with the place and what would be right.
CRD_API crd_status crd_unit_set_text(crd_unit* u, int32_t variable, const char* text,
                                     crd_place place);

/// The settings of the spec that took effect, one per variable: how many, and number k. `value` and
/// `start` (both empty at first, over any context) get the value and the start value of the
/// description as texts, elements separated by blanks; `start` stays without data if there is none.
CRD_API int32_t crd_unit_setting_count(const crd_unit* u);
CRD_API crd_status crd_unit_describe_setting(crd_unit* u, int32_t k, int32_t* variable,
                                             bool* differs, crd_text* value, crd_text* start);

/// A continuous Float64 input or output, or one element (from 0) of an array; 0 for a scalar.
typedef struct crd_unit_port {
    int32_t variable, element;
} crd_unit_port;

/// A unit near a point: x' = A x + B u, y = C x + D u for what x, u and y differ from it.
/// Row-major.
typedef struct crd_linearised {
    crd_context* ctx; ///< the unit's
    int states, inputs, outputs;
    double *A, *B, *C, *D;
    bool exact;   ///< by directional derivatives; else by differences, to some 1e-9 of the numbers
    bool guessed; ///< it declares no states but need not (Co-Simulation): taken for one without
} crd_linearised;

/// At the current point of an initialised unit, between steps; it stays there. For FMUs that run as
/// Model Exchange, and as Co-Simulation if they name their states and offer directional
/// derivatives; for models in C with `partial`; for circuits whose capacitors and inductors are all
/// states; signals and recordings have nothing inside.
/// CRD_E_UNSUPPORTED says what would be needed. Clear the result before the unit goes.
CRD_API crd_status crd_unit_linearise(crd_unit* u, const crd_unit_port* inputs, int input_count,
                                      const crd_unit_port* outputs, int output_count,
                                      crd_linearised* out);
CRD_API void crd_linearised_clear(crd_linearised* l);

/// Room of a text or binary grows here; the old content stays.
CRD_API crd_status crd_bytes_set(crd_context* ctx, crd_bytes* b, const void* data, size_t length);

/// Whether output `variable` depends on input `input` without delay (during initialisation if
/// `initial`).
CRD_API bool crd_unit_depends(const crd_unit* u, int32_t variable, int32_t input, bool initial);

// ---- the coupling element as a model -----------------------------------------------------------

/// A coupling element (a JSON description, cardan/coupling.h) as a model: Baumann 2024, Fig. 7, in
/// one unit, in this process (CRD_UNIT_NATIVE) or in an FMU (`cardan export coupling`). Inputs:
/// the newest sample `u`, its time `stamp` and number `sequence`; outputs: the estimate `y`,
/// `k`, `jump`, `active` and counters; docs/explanation/coupling.md lists them all. Several signals
/// are arrays, or variables such as `u.torque` if the description names them. The description has a
/// name (a C identifier) and a macro step. `file` is for messages.
///
/// A step of the unit is a micro step. A sample is new, and begins a macro step, when its stamp or
/// number has changed, or, if it has neither or its latency is known, when a macro step has passed.
/// At the initialisation y = u.
///
/// The model outlives its instances and belongs to the caller. CRD_E_FORMAT, CRD_E_RANGE,
/// CRD_E_MEMORY.
CRD_API crd_status crd_coupling_model_create(crd_context* ctx, const char* json, size_t length,
                                             const char* file, const crd_model** out);
CRD_API void crd_coupling_model_destroy(const crd_model* model);
/// The model of `folder`/element.json with a context of its own, for FMUs; give it back with
/// crd_coupling_model_destroy. NULL with a sentence in `message` (room bytes).
CRD_API const crd_model* crd_coupling_model_load(const char* folder, char* message, size_t room);

/// What crd_propose is asked about: the free ends of all units of a system.
typedef struct crd_ports {
    crd_context* ctx;
    crd_arena arena;       ///< of everything here; crd_propose may use it
    crd_unit** opened;     ///< (unit_count); NULL: could not be opened, failures[i] says why
    const char** failures; ///< (unit_count), NULL where it could
    crd_port_unit* units;
    crd_endpoint* ports;
    int unit_count, port_count;
    crd_unit_store* store;
} crd_ports;

/// Inputs and outputs of the units of `s` (outlives it), described without running their code.
/// Inputs with a connection or a start value in the system are `taken`. A unit that cannot be
/// opened has none.
CRD_API crd_status crd_ports_create(crd_context* ctx, const crd_system* s, crd_ports** out);
CRD_API void crd_ports_destroy(crd_ports* p);

#ifdef __cplusplus
}
#endif
