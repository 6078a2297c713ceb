/// FMU import: open an FMU of FMI 1.0, 2.0 or 3.0, look at what it describes, instantiate and drive
/// it.
///
/// `crd_fmu` is the description: const once opened, shared by all instances. `crd_fmi` is one
/// instance: one thread at a time. One set of functions serves all versions; what a version does
/// not have gives CRD_E_UNSUPPORTED. Every call is checked against one table of call orders
/// (CRD_E_STATE), so an importer's mistake is a message, not an FMU's crash.
/// An FMU is foreign native code: instantiating it runs it.
#pragma once
#include "cardan/base.h"
#include "cardan/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct crd_fmu crd_fmu; ///< opaque
typedef struct crd_fmi crd_fmi; ///< opaque, an instance

typedef struct crd_fmu_options {
    bool description_only; ///< do not unpack anything but modelDescription.xml
    uint64_t max_unpacked; ///< bytes that an archive may grow to; default 0: CARDAN_MAX_UNPACKED of
                           ///< the environment, or else 1 GiB or 20 times the archive
    uint32_t max_entries;  ///< default 100000
    const char* unpack_to; ///< folder for the private directory; NULL: $TMPDIR or /tmp
} crd_fmu_options;

typedef enum crd_fmi_version { CRD_FMI_1 = 1, CRD_FMI_2, CRD_FMI_3 } crd_fmi_version;

/// One physical unit of the description.
typedef struct crd_fmu_unit {
    const char* name;
    bool has_base; ///< false: only the name is known
    crd_dimension base;
} crd_fmu_unit;

typedef struct crd_fmu_item {
    const char* name;
    const char* description;
    int64_t value;
} crd_fmu_item;

/// One enumeration type.
typedef struct crd_fmu_enumeration {
    const char* name;
    const crd_fmu_item* items;
    int32_t item_count;
} crd_fmu_enumeration;

/// What <ModelExchange> offers. Co-Simulation's flags stand in the description itself: the two
/// interfaces of one FMU need not offer the same.
typedef struct crd_fmu_model_exchange {
    const char* model_identifier; ///< "" if the FMU has no Model Exchange
    bool needs_execution_tool;
    bool can_be_instantiated_once;
    bool can_not_use_memory_functions;
    bool can_get_set_state, can_serialize_state;
    bool provides_directional_derivatives, provides_adjoint_derivatives;
    bool needs_completed_step; ///< fmi2CompletedIntegratorStep after every step of the solver
    /// FMI 1 and 2: scalars. FMI 3: sum of the sizes of `indicators`, with the start values of
    /// structural parameters.
    uint32_t indicator_count;
    const int32_t* indicators; ///< FMI 3: their variables (indicator_variable_count)
    int32_t indicator_variable_count;
    /// ModelStructure: one row per state derivative in the order of the state vector; arrays of
    /// FMI 3 stand in it with all their elements.
    crd_dependencies derivatives;
    const int32_t* states; ///< (derivatives.count) variable of the state, -1: not said
    /// Length of the state vector, likewise. FMI 1 says no more than that: it has no `derivatives`.
    uint32_t state_count;
} crd_fmu_model_exchange;

/// One dimension of an array: a fixed length, or the structural parameter that gives it.
typedef struct crd_fmu_axis {
    uint64_t start;   ///< fixed length, or 0
    int32_t variable; ///< index of the structural parameter, or -1
} crd_fmu_axis;

/// FMI 3: <Alias> children, and FMI 1 and 2 variables that share type and value reference appear as
/// variables with `alias_of` set.
typedef struct crd_fmu_description {
    crd_fmi_version version;
    const char* fmi_version_text; ///< "1.0", "2.0", "3.0"
    const char* model_name;
    const char* model_identifier; ///< of Co-Simulation, "" if the FMU has none
    const char* token;            ///< guid or instantiationToken
    const char* description;
    const char* author;
    const char* model_version;
    const char* generation_tool;
    const char* generation_date;
    const char* copyright;
    const char* license;

    bool has_cosimulation, has_model_exchange, has_scheduled_execution;
    bool needs_execution_tool;
    bool can_handle_variable_step;
    bool can_interpolate_inputs;   ///< FMI 1 and 2: takes input derivatives
    bool can_run_asynchronously;   ///< FMI 1 and 2
    bool can_be_instantiated_once; ///< only one instance in a process
    bool can_not_use_memory_functions;
    bool can_get_set_state, can_serialize_state;
    bool provides_directional_derivatives, provides_adjoint_derivatives;
    bool has_event_mode; ///< FMI 3
    bool provides_intermediate_update;
    bool can_return_early;
    int max_output_derivative;
    double fixed_internal_step; ///< FMI 3, 0: not given
    /// FMI 3: the first clock that the importer has to tick, the first variable that belongs to a
    /// clock; NULL: none. An FMU with either of them is not run, as clocks do not tick here.
    const char *input_clock, *clocked;
    crd_fmu_model_exchange exchange; ///< Model Exchange

    bool has_start, has_stop, has_tolerance, has_step;
    double start, stop, tolerance, step; ///< default experiment

    const crd_variable* variables; ///< in file order; <Alias> after the variable it belongs to
    int32_t variable_count;
    const crd_fmu_axis* axes;  ///< all dimensions; those of variable i start at axis_first[i]
    const int32_t* axis_first; ///< (variable_count), -1 for scalars
    const crd_fmu_unit* units;
    int32_t unit_count;
    const crd_fmu_enumeration* enumerations;
    int32_t enumeration_count;
    crd_dependencies outputs; ///< ModelStructure; FMI 1: DirectDependency
    crd_dependencies initial_unknowns;
    const char* const* log_categories;
    int32_t log_category_count;
    const char* const* layered_standards; ///< FMI-LS folders named under extra/, recognised only
    int32_t layered_standard_count;
} crd_fmu_description;

CRD_API crd_fmu_options crd_fmu_defaults(void);

/// `path` is an .fmu archive, an unpacked folder, or (description_only) a modelDescription.xml.
/// CRD_E_NOT_FOUND: no such file. CRD_E_FORMAT: not an FMU; the text says where and why.
/// CRD_E_UNSUPPORTED: a version that is not known. Warnings go to the log.
CRD_API crd_status crd_fmu_open(crd_context* ctx, const char* path, const crd_fmu_options* opt,
                                crd_fmu** out);
/// Also removes the private directory. Destroy all instances first.
CRD_API void crd_fmu_close(crd_fmu* f);
CRD_API const crd_fmu_description* crd_fmu_describe(const crd_fmu* f);
CRD_API const char* crd_fmu_path(const crd_fmu* f);   ///< as given
CRD_API const char* crd_fmu_folder(const crd_fmu* f); ///< where it is unpacked
/// Index of a variable by name, -1 if absent.
CRD_API int32_t crd_fmu_find(const crd_fmu* f, const char* name);
/// The platforms that have a binary, separated by spaces, like "linux64 win64"; "" if none.
CRD_API const char* crd_fmu_platforms(const crd_fmu* f);
/// Could it be instantiated here, for Co-Simulation or for Model Exchange? CRD_E_UNSUPPORTED with
/// the reason in `ctx`: it has no such interface, no binary for this platform (the text lists those
/// there are), not unpacked. Runs nothing of it.
CRD_API crd_status crd_fmu_check_interface(const crd_fmu* f, bool model_exchange, crd_context* ctx);
/// The same for the interface that it has: Co-Simulation, else Model Exchange.
CRD_API crd_status crd_fmu_check_runnable(const crd_fmu* f, crd_context* ctx);

/// Parse a modelDescription from memory: the parser alone, as the fuzz target uses it.
CRD_API crd_status crd_fmu_parse(crd_context* ctx, const char* xml, size_t length,
                                 const char* name_in_messages, crd_fmu** out);

// ---- instances ---------------------------------------------------------------------------------

typedef enum crd_fmi_state {
    CRD_FMI_INSTANTIATED,
    CRD_FMI_CONFIGURATION,   ///< FMI 3, for structural parameters
    CRD_FMI_RECONFIGURATION, ///< FMI 3
    CRD_FMI_INITIALIZATION,
    CRD_FMI_STEP,         ///< between steps
    CRD_FMI_EVENT,        ///< FMI 3 and Model Exchange
    CRD_FMI_CONTINUOUS,   ///< Model Exchange: continuous-time mode
    CRD_FMI_INTERMEDIATE, ///< FMI 3, inside the callback
    CRD_FMI_STEP_FAILED,  ///< FMI 1 and 2 Discard
    CRD_FMI_TERMINATED,
    CRD_FMI_ERROR, ///< reset, restore, free and reading for diagnosis are left
    CRD_FMI_FATAL, ///< nothing is allowed
    CRD_FMI_STATE_COUNT
} crd_fmi_state;

/// Called on the FMU's thread; the text is finished and valid during the call. `status` counts as
/// in FMI 2: 0 OK, 1 Warning, 2 Discard, 3 Error, 4 Fatal, 5 Pending.
typedef void crd_fmi_logger(void* user, int status, const char* category, const char* text);

/// FMI 3 intermediate update. Inputs asked for at `time` may be set with crd_fmi_set_real inside
/// the call. Return true to ask for an early return.
typedef bool crd_fmi_intermediate(void* user, double time, bool inputs_wanted, bool outputs_there,
                                  bool step_finished, bool can_return_early);

typedef struct crd_fmi_options {
    const char* instance_name;
    bool logging_on; ///< the FMU's debug log
    bool visible;
    crd_fmi_logger* logger; ///< NULL: to the context's log
    void* logger_user;
    bool model_exchange;                ///< for Model Exchange; else for Co-Simulation
    bool event_mode;                    ///< FMI 3 Co-Simulation: use event mode if the FMU has it
    bool early_return;                  ///< FMI 3: allow early return
    crd_fmi_intermediate* intermediate; ///< FMI 3, NULL: none
    void* intermediate_user;
    const uint32_t* intermediate_inputs; ///< references that the callback will set
    size_t intermediate_input_count;
    /// NULL, or where the name of what is being called stands while there is no instance to ask.
    const char** call;
} crd_fmi_options;

/// What a step came to.
typedef struct crd_fmi_step {
    double reached;    ///< time after the call: t + h unless early or discarded
    bool event_needed; ///< FMI 3: go to event mode now
    bool terminate;    ///< the FMU wants the run to end
    bool early;        ///< it returned early
    bool discarded;    ///< part (FMI 1 and 2) or nothing (FMI 3) of the step was done
} crd_fmi_step;

/// Set, step and get of Float64 values in one call: what a fixed-step run does over and over. Fill
/// in the first part, then crd_fmi_join() the rest. Everything that a step needs stands here, so
/// that a thousand instances stay in the cache.
typedef struct crd_fmi_exchange {
    const uint32_t* set_refs; ///< NULL: nothing to set
    const double* set_values;
    const uint32_t* get_refs; ///< NULL: nothing to read
    double* get_values;
    uint32_t set_count, set_value_count; ///< references, elements
    uint32_t get_count, get_value_count;
    int id; ///< the caller's number for it
    bool no_rollback;
    // by crd_fmi_join, and kept by the instance
    bool two;     ///< FMI 1 or 2
    bool ready;   ///< the call order allows set, step and get; atomic
    uint8_t call; ///< function that was called last; atomic
    /// Called after a step that was not a plain full one, and before the values are read.
    crd_status (*odd)(void* user, double t, double h, crd_fmi_step* step);
    void* user;
    crd_fmi* fmi; ///< this and the rest by crd_fmi_join
    void* component;
    void (*functions[3])(void); ///< set, step, get
} crd_fmi_exchange;

typedef struct crd_fmi_update {
    bool again, terminate, nominals_changed, values_changed;
    bool has_next_event;
    double next_event;
} crd_fmi_update;

typedef struct crd_fmi_binary {
    const uint8_t* data;
    size_t size;
} crd_fmi_binary;

/// Loads the library and instantiates it. `opt->instance_name` must not be empty.
/// CRD_E_UNSUPPORTED: as crd_fmu_check_interface. CRD_E_UNIT: the FMU refused (the text has its
/// last message).
CRD_API crd_status crd_fmi_instantiate(crd_context* ctx, crd_fmu* f, const crd_fmi_options* opt,
                                       crd_fmi** out);
/// Terminates if need be, frees the instance unless it is in the fatal state, unloads the library.
CRD_API void crd_fmi_destroy(crd_fmi* i);
/// Forget the instance without calling its code again: it crashed.
CRD_API void crd_fmi_abandon(crd_fmi* i);

CRD_API crd_fmi_state crd_fmi_get_state(const crd_fmi* i);
/// The name of the FMI function that was called last ("fmi2DoStep"), for messages.
CRD_API const char* crd_fmi_last_call(const crd_fmi* i);

/// The FMU's own handle, for callers that go past this interface and its checks.
CRD_API void* crd_fmi_component(const crd_fmi* i);

/// SetupExperiment (FMI 2) and EnterInitializationMode. FMI 1 has no such mode: the FMU is
/// initialised at its end, or when a value is read before; inputs that are set after that count
/// from then on.
CRD_API crd_status crd_fmi_enter_initialization(crd_fmi* i, bool has_tolerance, double tolerance,
                                                double start, bool has_stop, double stop);
CRD_API crd_status crd_fmi_exit_initialization(crd_fmi* i);
CRD_API crd_status crd_fmi_enter_configuration(crd_fmi* i);
CRD_API crd_status crd_fmi_exit_configuration(crd_fmi* i);
CRD_API crd_status crd_fmi_enter_event_mode(crd_fmi* i);
CRD_API crd_status crd_fmi_enter_step_mode(crd_fmi* i); ///< Co-Simulation
/// FMI 3, and Model Exchange of FMI 2 (fmi2NewDiscreteStates) and FMI 1 (fmiEventUpdate).
CRD_API crd_status crd_fmi_update_discrete(crd_fmi* i, crd_fmi_update* out);
CRD_API crd_status crd_fmi_terminate(crd_fmi* i);
CRD_API crd_status crd_fmi_reset(crd_fmi* i);

/// `no_rollback` true only if no earlier state will be restored.
CRD_API crd_status crd_fmi_do_step(crd_fmi* i, double t, double h, bool no_rollback,
                                   crd_fmi_step* out);

// Model Exchange. `n` is the number of states or of indicators, arrays counted by elements. Where
// `*discarded` becomes true the FMU cannot compute this point (its status is Discard): a shorter
// step may help, and the result is CRD_OK.

/// How many states and indicators there are: what the FMU says (FMI 3, after structural parameters
/// were set), else what is described.
CRD_API crd_status crd_fmi_get_counts(crd_fmi* i, size_t* states, size_t* indicators);
CRD_API crd_status crd_fmi_enter_continuous_time(crd_fmi* i);
CRD_API crd_status crd_fmi_set_time(crd_fmi* i, double t);
CRD_API crd_status crd_fmi_set_states(crd_fmi* i, const double* x, size_t n, bool* discarded);
CRD_API crd_status crd_fmi_get_states(crd_fmi* i, double* x, size_t n);
CRD_API crd_status crd_fmi_get_derivatives(crd_fmi* i, double* dx, size_t n, bool* discarded);
CRD_API crd_status crd_fmi_get_indicators(crd_fmi* i, double* z, size_t n, bool* discarded);
/// An FMU whose library has no such function has 1 for all.
CRD_API crd_status crd_fmi_get_nominals(crd_fmi* i, double* x, size_t n);
/// The step is accepted, time, states and inputs of its end are set.
CRD_API crd_status crd_fmi_completed_step(crd_fmi* i, bool no_rollback, bool* enter_event_mode,
                                          bool* terminate);

/// `x` must live as long as the instance. An instance has one exchange at a time.
CRD_API void crd_fmi_join(crd_fmi* i, crd_fmi_exchange* x);
/// Set, step and get for `count` exchanges, `stride` bytes from one to the next, one after the
/// other. `*at` is the id of the one that runs, also after a failure, which ends the row. The call
/// order is checked for each.
CRD_API crd_status crd_fmi_advance(crd_fmi_exchange* first, size_t stride, int count, double t,
                                   double h, volatile int* at);

/// Values by value reference; `type` picks the FMI function. For FMI 1 and 2: Float64 -> Real,
/// Int32 and Enumeration -> Integer, Boolean, String. `value_count` counts elements (arrays are
/// longer than `n`). The C types of the buffers: double for CRD_FLOAT64 (handed through without a
/// copy); for the other numbers int64_t or, for CRD_FLOAT32, double: converted inside, range
/// checked on set.
CRD_API crd_status crd_fmi_set_real(crd_fmi* i, const uint32_t* refs, size_t n,
                                    const double* values, size_t value_count);
CRD_API crd_status crd_fmi_get_real(crd_fmi* i, const uint32_t* refs, size_t n, double* values,
                                    size_t value_count);
CRD_API crd_status crd_fmi_set_float32(crd_fmi* i, const uint32_t* refs, size_t n,
                                       const double* values, size_t value_count);
CRD_API crd_status crd_fmi_get_float32(crd_fmi* i, const uint32_t* refs, size_t n, double* values,
                                       size_t value_count);
CRD_API crd_status crd_fmi_set_integer(crd_fmi* i, crd_type type, const uint32_t* refs, size_t n,
                                       const int64_t* values, size_t value_count);
CRD_API crd_status crd_fmi_get_integer(crd_fmi* i, crd_type type, const uint32_t* refs, size_t n,
                                       int64_t* values, size_t value_count);
CRD_API crd_status crd_fmi_set_string(crd_fmi* i, const uint32_t* refs, size_t n,
                                      const char* const* values, size_t value_count);
/// The texts live until the next call on the instance.
CRD_API crd_status crd_fmi_get_string(crd_fmi* i, const uint32_t* refs, size_t n,
                                      const char** values, size_t value_count);
CRD_API crd_status crd_fmi_set_binary(crd_fmi* i, const uint32_t* refs, size_t n,
                                      const crd_fmi_binary* values, size_t value_count);
CRD_API crd_status crd_fmi_get_binary(crd_fmi* i, const uint32_t* refs, size_t n,
                                      crd_fmi_binary* values, size_t value_count);

/// Make room so that later set and get calls of up to `value_count` elements do not allocate.
CRD_API crd_status crd_fmi_reserve(crd_fmi* i, size_t value_count);

/// FMI 1 and 2. orders[j] >= 1 belongs to refs[j]; derivatives refer to the beginning of the step.
CRD_API crd_status crd_fmi_set_input_derivatives(crd_fmi* i, const uint32_t* refs, size_t n,
                                                 const int32_t* orders, const double* values);
/// The same to find out whether the FMU takes these orders: canInterpolateInputs promises none. A
/// Warning is a refusal too; after an Error the instance is of no use (crd_fmi_get_state).
CRD_API crd_status crd_fmi_try_input_derivatives(crd_fmi* i, const uint32_t* refs, size_t n,
                                                 const int32_t* orders, const double* values);
/// All versions, at the current time.
CRD_API crd_status crd_fmi_get_output_derivatives(crd_fmi* i, const uint32_t* refs, size_t n,
                                                  const int32_t* orders, double* values);
/// sensitivity = d unknowns / d knowns * seed
CRD_API crd_status crd_fmi_directional_derivative(crd_fmi* i, const uint32_t* unknowns, size_t nu,
                                                  const uint32_t* knowns, size_t nk,
                                                  const double* seed, double* sensitivity);
/// The same with arrays: `seed_count` and `count` are numbers of elements.
CRD_API crd_status crd_fmi_directional_elements(crd_fmi* i, const uint32_t* unknowns, size_t nu,
                                                const uint32_t* knowns, size_t nk,
                                                const double* seed, size_t seed_count,
                                                double* sensitivity, size_t count);

/// `*state` NULL makes a new one, else it is used again. Free it before the instance goes.
CRD_API crd_status crd_fmi_save(crd_fmi* i, void** state);
CRD_API crd_status crd_fmi_restore(crd_fmi* i, void* state);
CRD_API crd_status crd_fmi_free_state(crd_fmi* i, void** state);
CRD_API crd_status crd_fmi_serialized_size(crd_fmi* i, void* state, size_t* size);
CRD_API crd_status crd_fmi_serialize(crd_fmi* i, void* state, uint8_t* bytes, size_t size);
CRD_API crd_status crd_fmi_deserialize(crd_fmi* i, const uint8_t* bytes, size_t size, void** state);

// ---- export ------------------------------------------------------------------------------------

/// modelDescription.xml of a model as an FMU for Co-Simulation, version 2 or 3, and for the latter,
/// or with libraries, which FMI 2.0 cannot name, sources/buildDescription.xml (else `build_xml` is
/// not touched and may be NULL). `sources` are the files that have to be compiled, as named below
/// sources/. The table is trusted.
CRD_API crd_status crd_fmu_describe_model(crd_context* ctx, const crd_model* model, int version,
                                          const char* const* sources, int source_count,
                                          crd_text* description_xml, crd_text* build_xml);

#ifdef __cplusplus
}
#endif
