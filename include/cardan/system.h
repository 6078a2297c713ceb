/// The system description: which units there are, how they are connected, how they run.
///
/// Read from YAML by crd_system_load, or made by hand with the crd_system_add functions. A loaded
/// system is a plain structure that fronts may still change (a stop time from the command line);
/// from crd_master_create on it is const and outlives the master. All memory belongs to the system.
#pragma once
#include "cardan/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Where something was written. Every message about it starts with "file:line:".
typedef struct crd_place {
    const char* file; ///< "" when it came from nowhere, "--set" and the like for the command line
    int line;         ///< 0: unknown
} crd_place;

/// One start value or parameter: `text` is parsed once the variable's type and unit are known.
typedef struct crd_setting {
    const char* variable;
    const char* text; ///< as written: "3", "10 ms", "true", "1 2 3" for arrays. A YAML list becomes
                      ///< that, row after row; its elements with blanks, quotes or backslashes
                      ///< stand in double quotes, with a backslash before each " and backslash.
    crd_place place;
} crd_setting;

typedef enum crd_unit_source {
    CRD_UNIT_FMU,
    CRD_UNIT_SIGNAL, ///< a signal generator
    CRD_UNIT_REPLAY, ///< a recording
    CRD_UNIT_NATIVE, ///< a crd_model in this process; only from C
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
    const char* unit;  ///< physical unit of the output, "" none
    double offset;     ///< value before `start`, and mean; default 0
    double amplitude;  ///< default 1; constant: the value is offset + amplitude
    double start;      ///< when it begins, default 0
    double duration;   ///< ramp: time from 0 to 1; chirp: sweep time; prbs: time of one bit
    double frequency;  ///< sine, chirp: at the start, Hz
    double frequency2; ///< chirp: at the end; multisine: highest, Hz
    double phase;      ///< sine, rad
    int order;         ///< prbs: register length 3..31, default 9; multisine: number of lines
    uint64_t seed;     ///< prbs, multisine
    const double* times;  ///< table (table_count), ascending
    const double* values; ///< table
    int table_count;
    crd_interpolation interpolation; ///< table; default linear
    crd_place place;
} crd_signal_spec;

typedef struct crd_unit_spec {
    const char* name;
    crd_unit_source source;
    const char* path;  ///< FMU or recording, made absolute or relative to the working directory
    const void* model; ///< CRD_UNIT_NATIVE: const crd_model*
    double step;       ///< this unit's own communication step, 0: the run's
    const crd_setting* parameters; ///< start values, in order of writing
    int parameter_count;
    const crd_signal_spec* signals;
    int signal_count;
    crd_interpolation interpolation; ///< replay; default linear
    bool logging; ///< FMU debug log
    bool pinned;  ///< always the same thread: instantiate, step, free
    crd_place place;
} crd_unit_spec;

typedef enum crd_extrapolation {
    CRD_EXTRAPOLATE_HOLD,
    CRD_EXTRAPOLATE_LINEAR,
    CRD_EXTRAPOLATE_QUADRATIC,
} crd_extrapolation;

/// value at the input = gain * (value of the output in the input's unit) + offset
typedef struct crd_connection_spec {
    int from_unit, to_unit; ///< indices into units
    const char* from;       ///< variable, element of an array as name[2] or name[2,3], from 1
    const char* to;
    double gain, offset;     ///< 1, 0
    bool has_transformation; ///< gain or offset was given
    bool convert_units;      ///< default true; false: numbers pass as they are
    crd_extrapolation extrapolation;
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

typedef struct crd_run_spec {
    double start, stop;     ///< s; NaN: from the units' default experiment, else 0 and 1
    double step;            ///< macro step, s; NaN: from the units, else (stop - start)/1000
    double tolerance;       ///< handed to units; NaN: their default
    crd_scheme scheme;
    crd_group group;        ///< CRD_SCHEME_GROUPS
    crd_extrapolation extrapolation; ///< of connections that say nothing
    int threads;            ///< 0: measured at the start
    int loop_iterations;    ///< initialisation, default 50
    double loop_tolerance;  ///< relative, default 1e-10
} crd_run_spec;

typedef struct crd_results_spec {
    const char* path;            ///< NULL: none
    const char* const* patterns; ///< variables to record; none: all outputs
    int pattern_count;
    double interval;             ///< s between rows, 0: every macro step
    bool unit_row;               ///< CSV: a second row with the units
} crd_results_spec;

typedef struct crd_system {
    crd_context* ctx;
    crdi_arena arena;
    const char* file; ///< where it was read from, ""
    crd_unit_spec* units;
    int unit_count;
    crd_connection_spec* connections;
    int connection_count;
    crd_run_spec run;
    crd_results_spec results;
    bool single; ///< one FMU without description: result columns bear its own names
    size_t unit_capacity, connection_capacity;
    crdi_map unit_map; ///< name -> index, for crd_system_find
} crd_system;

/// An empty system with the defaults above.
CRD_API crd_status crd_system_create(crd_context* ctx, crd_system** out);
/// YAML. Paths in the file are relative to the file. CRD_E_FORMAT with "file:line: ..." otherwise;
/// CRD_E_RANGE for values that make no sense, CRD_E_NOT_FOUND for unknown units and a missing file.
CRD_API crd_status crd_system_load(crd_context* ctx, const char* path, crd_system** out);
/// The same from memory; `path` serves messages and relative paths.
CRD_API crd_status crd_system_parse(crd_context* ctx, const char* text, size_t length,
                                    const char* path, crd_system** out);
/// A system of one FMU, for running it as it is.
CRD_API crd_status crd_system_of_fmu(crd_context* ctx, const char* fmu_path, crd_system** out);
CRD_API void crd_system_destroy(crd_system* s);

/// Index of a unit by name, -1.
CRD_API int crd_system_find(const crd_system* s, const char* unit);
/// The index of the new unit in `*index` (may be NULL). Texts are copied; arrays inside are
/// borrowed unless they come from the arena.
CRD_API crd_status crd_system_add_unit(crd_system* s, const crd_unit_spec* unit, int* index);
CRD_API crd_status crd_system_add_connection(crd_system* s, const crd_connection_spec* c);
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

CRD_API crd_unit_spec crd_unit_spec_defaults(void);
CRD_API crd_connection_spec crd_connection_spec_defaults(void);
CRD_API crd_signal_spec crd_signal_spec_defaults(void);

#ifdef __cplusplus
}
#endif
