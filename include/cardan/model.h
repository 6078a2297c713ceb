/// What a variable is, and what a model written in C looks like.
///
/// A `crd_variable` describes one variable of a unit, whoever implements it: the FMI import fills
/// it from a modelDescription, a native model from its table. A `crd_model` is one table of
/// variables and a handful of functions over a plain struct; Cardan runs it in process
/// (`unit/native`) and exports it as an FMU (FMI 2.0 and 3.0) from the same source.
/// Header only, libc only: it goes into exported FMUs.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum crd_type {
    CRD_FLOAT64,
    CRD_FLOAT32,
    CRD_INT8,
    CRD_UINT8,
    CRD_INT16,
    CRD_UINT16,
    CRD_INT32,
    CRD_UINT32,
    CRD_INT64,
    CRD_UINT64,
    CRD_BOOLEAN,
    CRD_ENUMERATION, ///< int64 value
    CRD_STRING,
    CRD_BINARY,
    CRD_CLOCK,
    CRD_TYPE_COUNT
} crd_type;

/// How the master carries a value: every type is one of three kinds.
typedef enum crd_kind {
    CRD_REAL,    ///< double: Float64, Float32
    CRD_INTEGER, ///< int64_t: all integers (UInt64 by its bits), Boolean, Enumeration, Clock
    CRD_BYTES,   ///< String and Binary
} crd_kind;

static inline crd_kind crd_type_kind(crd_type t)
{
    return t <= CRD_FLOAT32                     ? CRD_REAL
           : t == CRD_STRING || t == CRD_BINARY ? CRD_BYTES
                                                : CRD_INTEGER;
}

typedef enum crd_causality {
    CRD_LOCAL,
    CRD_INPUT,
    CRD_OUTPUT,
    CRD_PARAMETER,
    CRD_CALCULATED_PARAMETER,
    CRD_STRUCTURAL_PARAMETER,
    CRD_INDEPENDENT,
    CRD_CAUSALITY_COUNT
} crd_causality;

typedef enum crd_variability {
    CRD_CONTINUOUS,
    CRD_DISCRETE,
    CRD_TUNABLE,
    CRD_FIXED,
    CRD_CONSTANT,
    CRD_VARIABILITY_COUNT
} crd_variability;

typedef enum crd_initial { CRD_EXACT, CRD_APPROX, CRD_CALCULATED, CRD_INITIAL_COUNT } crd_initial;

/// One variable of a unit. Texts are never NULL, "" means absent.
typedef struct crd_variable {
    const char* name;
    const char* description;
    const char* unit;    ///< name of the physical unit
    const char* start;   ///< start value(s) as written, elements separated by spaces; for
                         ///< strings the text itself; NULL if there is none. Arrays of
                         ///< strings and binaries: `size` texts, each with its final zero
    uint32_t reference;  ///< FMI value reference, or index in the model's table
    uint32_t size;       ///< number of elements with the current structural parameters, >= 1 or 0
    int32_t unit_index;  ///< into the owner's list of unit definitions, -1: none
    int32_t type_index;  ///< into the owner's list of enumerations, -1: none
    int32_t alias_of;    ///< index of the variable with the same value that stands for it, -1
    uint32_t line;       ///< of the declaration in its file, 0: unknown
    uint8_t type;        ///< crd_type
    uint8_t causality;   ///< crd_causality
    uint8_t variability; ///< crd_variability
    uint8_t initial;     ///< crd_initial
    uint8_t rank;        ///< number of dimensions, 0 for a scalar
    bool relative_quantity;   ///< the unit's offset does not apply
    bool intermediate_update; ///< FMI 3: may be set and read inside a step
    bool can_handle_multiple_set;
    double nominal, min, max; ///< 1, -inf, inf when not given
} crd_variable;

/// Which knowns an unknown depends on. Row r says of variable `unknown[r]` that it depends on
/// known[first[r]] ... known[first[r+1]-1]; `on_all[r]`: nothing was said, so on everything.
typedef struct crd_dependencies {
    int32_t count;
    const int32_t* unknown; ///< variable indices (count)
    const int32_t* first;   ///< (count + 1)
    const int32_t* known;   ///< variable indices
    const bool* on_all;     ///< (count)
} crd_dependencies;

// ---- models in C -------------------------------------------------------------------------------

#define CRD_MODEL_MAX_ORDER 2 ///< input and output derivatives that a model may handle

/// One row of a model's table. Fields are found in the instance struct by offset and have the C
/// type of `type`: double, float, int8_t ... uint64_t, bool, int64_t (enumeration),
/// `char[capacity]` zero-terminated (string), `CRD_MODEL_BINARY(capacity)`.
typedef struct crd_model_variable {
    const char* name;
    crd_type type;
    crd_causality causality;
    crd_variability variability;
    size_t offset;
    size_t size;             ///< elements of an array (one fixed dimension), 0 for a scalar
    size_t capacity;         ///< bytes of a string or binary field
    double start;            ///< of parameters, inputs and `exact` variables
    const double* starts;    ///< of an array's elements; NULL: `start` for all of them
    const char* start_text;  ///< of strings; of binaries in hexadecimal
    const char* unit;        ///< NULL: none; a name that crd_dimension_parse knows
    const char* description; ///< NULL: none
    /// Outputs: names of the inputs that act on it without delay, separated by spaces.
    /// "" none. NULL: all.
    const char* depends;
    size_t derivatives;       ///< scalar Float64 only, offset of double[CRD_MODEL_MAX_ORDER]: of an
                              ///< input, where its time derivatives at the beginning of the step
                              ///< stand; of an output, where `outputs` leaves its derivatives.
                              ///< 0: none
    const char* const* items; ///< enumeration: item names, values 1..n, NULL-terminated
    bool exact; ///< a local or output whose start value is set by the importer (initial = exact)
    double min, max; ///< both 0: no limits
} crd_model_variable;

/// The field of a binary variable; elements of an array follow each other.
#define CRD_MODEL_BINARY(capacity)                                                                 \
    struct {                                                                                       \
        size_t length;                                                                             \
        uint8_t data[capacity];                                                                    \
    }

/// Bytes from one element of a row's field to the next.
static inline size_t crd_model_stride(const crd_model_variable* row)
{
    static const uint8_t bytes[CRD_TYPE_COUNT] = {8, 4, 1, 1, 2, 2, 4, 4, 8, 8, sizeof(bool), 8};
    const size_t head = sizeof(size_t);
    return row->type == CRD_STRING   ? row->capacity
           : row->type == CRD_BINARY ? head + (row->capacity + head - 1) / head * head
                                     : bytes[row->type];
}

typedef enum crd_model_status {
    CRD_MODEL_OK,
    CRD_MODEL_WARNING,   ///< done like OK, but somebody should look at it
    CRD_MODEL_EVENT,     ///< the step ended early, at an event; `*reached` says when
    CRD_MODEL_TERMINATE, ///< the step is done and the model wants the run to end
    CRD_MODEL_DISCARD,   ///< the step cannot be done; nothing has changed
    CRD_MODEL_ERROR,
    CRD_MODEL_FATAL,
} crd_model_status;

/// What the surroundings offer a model during a call.
typedef struct crd_model_host {
    void* user;
    /// Never NULL. Status as above; the text is a finished line.
    void (*log)(void* user, crd_model_status status, const char* text);
    const char* resources; ///< folder of the model's files, without trailing slash, "" if none
} crd_model_host;

/// A model. `self` points at `size` zeroed bytes whose fields got their start values; it holds no
/// pointers to itself, so that a copy of the bytes is a copy of the state. All functions but
/// `event` and `partial` are there; those that have nothing to do are empty.
///
/// What the surroundings do, in this order: zero and crd_model_reset(); set parameters, inputs and
/// exact variables; `initialize` and `outputs`, again after each change; then for each step set
/// inputs, `step`, crd_model_advance() if any input has a derivative, `outputs`. `outputs` alone
/// is called when inputs were changed between steps and an output is read.
typedef struct crd_model {
    const char* name; ///< a C identifier
    const char* description;
    size_t size;
    const crd_model_variable* variables;
    int variable_count;
    double default_step, default_stop;
    int max_input_derivative;  ///< 0 .. CRD_MODEL_MAX_ORDER
    int max_output_derivative; ///< likewise
    bool fixed_step;           ///< only `default_step` is possible
    bool has_events;           ///< step may return CRD_MODEL_EVENT
    /// Parameters and inputs are set, time is t: work out what follows from them. Called again
    /// whenever an input changed in initialisation, so it must not accumulate.
    crd_model_status (*initialize)(void* self, const crd_model_host* host, double t);
    /// Outputs (and their derivatives) at time t from state and inputs.
    void (*outputs)(void* self, double t);
    /// Advance from t to t + h with the inputs u(t + tau) = u + u' tau + u''/2 tau^2. On
    /// CRD_MODEL_OK `*reached` is t + h (the caller has put it there). Afterwards the inputs are
    /// moved along their polynomials; a model that holds its inputs over the step clears their
    /// derivatives here, and they stay.
    crd_model_status (*step)(void* self, const crd_model_host* host, double t, double h,
                             double* reached);
    /// At an event: change discrete states, say in `*next` when the next time event comes
    /// (infinity: none). Also called once after the initialisation, and whenever the importer
    /// thinks that something may have happened. NULL if has_events is false.
    crd_model_status (*event)(void* self, const crd_model_host* host, double t, double* next);
    /// d unknown / d known (indices into `variables`) at the current point. NULL: not offered.
    double (*partial)(const void* self, int unknown, int known);
} crd_model;

/// The integer (or Boolean, or enumeration) of a type at p; UInt64 beyond INT64_MAX wraps.
static inline int64_t crd_model_integer(crd_type type, const void* p)
{
    switch (type) {
    case CRD_INT8:
        return *(const int8_t*)p;
    case CRD_UINT8:
        return *(const uint8_t*)p;
    case CRD_INT16:
        return *(const int16_t*)p;
    case CRD_UINT16:
        return *(const uint16_t*)p;
    case CRD_INT32:
        return *(const int32_t*)p;
    case CRD_UINT32:
        return *(const uint32_t*)p;
    case CRD_BOOLEAN:
        return *(const bool*)p;
    default:
        return *(const int64_t*)p;
    }
}

/// Its counterpart; what does not fit is cut to the type's bits.
static inline void crd_model_set_integer(crd_type type, void* p, int64_t x)
{
    switch (type) {
    case CRD_INT8:
        *(int8_t*)p = (int8_t)x;
        break;
    case CRD_UINT8:
        *(uint8_t*)p = (uint8_t)x;
        break;
    case CRD_INT16:
        *(int16_t*)p = (int16_t)x;
        break;
    case CRD_UINT16:
        *(uint16_t*)p = (uint16_t)x;
        break;
    case CRD_INT32:
        *(int32_t*)p = (int32_t)x;
        break;
    case CRD_UINT32:
        *(uint32_t*)p = (uint32_t)x;
        break;
    case CRD_BOOLEAN:
        *(bool*)p = x != 0;
        break;
    default:
        *(int64_t*)p = x;
        break;
    }
}

/// Put the start values of all rows into the zeroed bytes at `self`.
static inline void crd_model_reset(const crd_model* model, void* self)
{
    for (int i = 0; i < model->variable_count; i++) {
        const crd_model_variable* row = &model->variables[i];
        const size_t count = row->size ? row->size : 1;
        const char* text = row->start_text;
        for (size_t k = 0; k < count; k++) {
            void* p = (char*)self + row->offset + k * crd_model_stride(row);
            const double x = row->starts ? row->starts[k] : row->start;
            switch (row->type) {
            case CRD_FLOAT64:
                *(double*)p = x;
                break;
            case CRD_FLOAT32:
                *(float*)p = (float)x;
                break;
            case CRD_UINT64:
                *(uint64_t*)p = (uint64_t)x;
                break;
            case CRD_INT8:
            case CRD_UINT8:
            case CRD_INT16:
            case CRD_UINT16:
            case CRD_INT32:
            case CRD_UINT32:
            case CRD_INT64:
            case CRD_BOOLEAN:
            case CRD_ENUMERATION:
                crd_model_set_integer(row->type, p, (int64_t)x);
                break;
            case CRD_STRING:
                for (size_t n = 0; text && text[n] && n + 1 < row->capacity; n++) {
                    ((char*)p)[n] = text[n];
                }
                break;
            case CRD_BINARY:
                for (size_t n = 0; text && text[n] && n < 2 * row->capacity; n++) {
                    const int digit = text[n] <= '9' ? text[n] - '0' : (text[n] | 32) - 'a' + 10;
                    uint8_t* byte = (uint8_t*)p + sizeof(size_t) + n / 2;
                    *byte = (uint8_t)(*byte << 4 | digit);
                    *(size_t*)p = n / 2 + 1;
                }
                break;
            case CRD_CLOCK:
            case CRD_TYPE_COUNT:
                break;
            }
        }
    }
}

/// Move one input of the model h further along its polynomial.
static inline void crd_model_advance(const crd_model_variable* row, void* self, double h)
{
    double* u = (double*)((char*)self + row->offset);
    double* d = (double*)((char*)self + row->derivatives);
    *u += h * (d[0] + 0.5 * h * d[1]);
    d[0] += h * d[1];
}

#ifdef __cplusplus
}
#endif
