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
    bool negated; ///< FMI 1: its value is the negative (of a Boolean: the opposite) of the FMU's
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
    /// "" none. NULL: all. In a model with `derivatives` the states that act on it belong to the
    /// list as well, and derivatives have such a list, too.
    const char* depends;
    size_t derivatives;       ///< scalar Float64 only, offset of double[CRD_MODEL_MAX_ORDER]: of an
                              ///< input, where its time derivatives at the beginning of the step
                              ///< stand; of an output, where `outputs` leaves its derivatives.
                              ///< 0: none
    const char* const* items; ///< enumeration: item names, values 1..n, NULL-terminated
    bool exact; ///< a local or output whose start value is set by the importer (initial = exact)
    double min, max; ///< both 0: no limits
    /// This row is the time derivative of the row of that name, which makes the latter a continuous
    /// state. Both are continuous Float64 of the same size; the derivative is local or an output.
    const char* derivative_of;
    double nominal; ///< the size that its values usually have, for solvers; 0: 1
    /// Element j of this array depends on element j of the inputs in `depends` that have its size.
    bool by_element;
    /// In the initialisation all inputs act on it, whatever `depends` says of the time after it.
    bool starts_with_all;
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

/// A unit that Cardan does not know by its name: base = factor * value + offset.
typedef struct crd_model_unit {
    const char* name;
    bool has_base;       ///< what follows is known
    int8_t exponents[8]; ///< kg m s A K mol cd rad
    double factor, offset;
} crd_model_unit;

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
    const struct crd_model* model; ///< whose function is called
} crd_model_host;

/// A model. `self` points at `size` zeroed bytes whose fields got their start values; it holds no
/// pointers to itself (unless `pinned`), so that a copy of the bytes is a copy of the state.
/// `initialize` and `outputs` are there, and `step` or `derivatives`; those that have nothing to do
/// are empty.
///
/// A model that gives `derivatives` is an ordinary differential equation: rows with `derivative_of`
/// say which variables are its states. As an FMU it offers Model Exchange, and Co-Simulation too;
/// without a `step` of its own that is crd_model_solve().
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
    /// thinks that something may have happened; so it looks at the state, or at t, to see what has.
    /// States may change as well. CRD_MODEL_EVENT: it has to be called once more at the same time.
    /// NULL if has_events is false.
    crd_model_status (*event)(void* self, const crd_model_host* host, double t, double* next);
    /// d unknown / d known (indices into `variables`) at the current point. NULL: not offered.
    /// Unknowns are outputs and derivatives, knowns inputs and states, all of them scalar.
    double (*partial)(const void* self, int unknown, int known);
    /// All rows with `derivative_of` at time t, from states, inputs and discrete variables, and
    /// from nothing else: solvers try states that they discard again. Called before each `outputs`.
    /// CRD_MODEL_DISCARD: there is no derivative at this point, a shorter step may avoid it.
    crd_model_status (*derivatives)(void* self, double t);
    int indicator_count;
    /// State events: z[0 .. indicator_count-1] at time t. A change from > 0 to <= 0 or back is an
    /// event; `event` is then called a little behind it and has to leave the new signs stable, so
    /// none of them is 0 there. Needs has_events.
    void (*indicators)(void* self, double t, double* z);
    /// An integrator has accepted a step that ends at t. CRD_MODEL_EVENT: a step event, call
    /// `event`. CRD_MODEL_TERMINATE: the run should end. NULL: nobody needs to tell.
    crd_model_status (*completed)(void* self, const crd_model_host* host, double t);

    // Models that are made while the program runs; zero for all others.
    const void* user; ///< the model's own; its functions find it by way of their host
    /// `self` has pointers into itself, or to things of this process. Its bytes are a state for
    /// this instance at this address: they can be restored, but not go into a file.
    bool pinned;
    /// So many bytes at the beginning of `self` are no part of the state: a restored state leaves
    /// them alone. Handles of sockets and files stand there.
    size_t kept;
    /// Give back what `self` has outside of its bytes and forget it. Called at the end and before
    /// the bytes are zeroed; `self` may be all zero. NULL: there is nothing.
    void (*clear)(void* self);
    const crd_model_unit* units; ///< of rows whose unit has another name than those that are known
    int unit_count;
    /// Its state is not all in `self`: it can neither be taken nor restored.
    bool stateless;
    /// The run is over in order; `clear` comes later. NULL: nobody needs to tell.
    crd_model_status (*terminate)(void* self, const crd_model_host* host);
    /// What belongs to the state and stands outside of `self`: so many bytes, as plain as those of
    /// `self` are. NULL: all of it is in `self`.
    size_t (*outside)(const void* self);
    void (*save)(const void* self, void* state); ///< so many bytes into `state`
    /// `self` has got its own bytes back (but for those that are `kept`); now the `size` bytes of
    /// `state`, which another instance or process may have saved.
    crd_model_status (*restore)(void* self, const crd_model_host* host, const void* state,
                                size_t size);
    /// Libraries beside libc and libm that its sources are linked with, names between spaces. NULL:
    /// none.
    const char* libraries;
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

// ---- models that are differential equations ----------------------------------------------------

/// The row whose derivative row `index` is, -1: it is none.
static inline int crd_model_state_of(const crd_model* model, int index)
{
    const char* name = model->variables[index].derivative_of;
    for (int i = 0; name && i < model->variable_count; i++) {
        const char *a = name, *b = model->variables[i].name;
        while (*a && *a == *b) {
            a++, b++;
        }
        if (*a == *b) { return i; }
    }
    return -1;
}

/// Where the states of a model stand, and room for the solver. `states` is 0 if the model gives no
/// derivatives. The order of states is that of their derivatives in the table.
typedef struct crd_model_ode {
    const crd_model* model;
    size_t states;
    size_t* x;          ///< offsets of the states (states)
    size_t* dx;         ///< and of their derivatives (states)
    size_t input_count; ///< rows of inputs that have derivatives
    size_t* inputs;     ///< (input_count)
    double* u;          ///< their value and two derivatives at the beginning (3 input_count)
    double *x0, *x1;    ///< states at the beginning of the step and of an inner one (states)
    double* sum;        ///< of the slopes (states)
    double *z0, *z1;    ///< indicators at the beginning and end of an inner step
} crd_model_ode;

/// Count what there is; `out` may be without memory.
static inline void crd_model_ode_count(const crd_model* model, crd_model_ode* out)
{
    size_t states = 0, inputs = 0;
    for (int i = 0; model->derivatives && i < model->variable_count; i++) {
        const crd_model_variable* v = &model->variables[i];
        if (crd_model_state_of(model, i) >= 0) { states += v->size ? v->size : 1; }
        if (v->causality == CRD_INPUT && v->derivatives) { inputs++; }
    }
    out->model = model;
    out->states = states;
    out->input_count = inputs;
}

/// Bytes that crd_model_ode_init() wants, aligned for doubles.
static inline size_t crd_model_ode_bytes(const crd_model* model)
{
    crd_model_ode o;
    crd_model_ode_count(model, &o);
    return sizeof(double) *
               (3 * o.states + 3 * o.input_count + 2 * (size_t)model->indicator_count) +
           sizeof(size_t) * (2 * o.states + o.input_count);
}

static inline void crd_model_ode_init(crd_model_ode* o, const crd_model* model, void* memory)
{
    crd_model_ode_count(model, o);
    const size_t n = o->states, nz = (size_t)model->indicator_count;
    o->x0 = (double*)memory;
    o->x1 = o->x0 + n;
    o->sum = o->x1 + n;
    o->u = o->sum + n;
    o->z0 = o->u + 3 * o->input_count;
    o->z1 = o->z0 + nz;
    o->x = (size_t*)(void*)(o->z1 + nz);
    o->dx = o->x + n;
    o->inputs = o->dx + n;
    size_t at = 0, inputs = 0;
    for (int i = 0; model->derivatives && i < model->variable_count; i++) {
        const crd_model_variable* v = &model->variables[i];
        const int state = crd_model_state_of(model, i);
        for (size_t k = 0; state >= 0 && k < (v->size ? v->size : 1); k++, at++) {
            o->x[at] = model->variables[state].offset + k * sizeof(double);
            o->dx[at] = v->offset + k * sizeof(double);
        }
        if (v->causality == CRD_INPUT && v->derivatives) { o->inputs[inputs++] = (size_t)i; }
    }
}

static inline void crd_model_get_states(const crd_model_ode* o, const void* self, double* x)
{
    for (size_t i = 0; i < o->states; i++) {
        x[i] = *(const double*)((const char*)self + o->x[i]);
    }
}

static inline void crd_model_set_states(const crd_model_ode* o, void* self, const double* x)
{
    for (size_t i = 0; i < o->states; i++) {
        *(double*)((char*)self + o->x[i]) = x[i];
    }
}

/// Inputs at tau behind the beginning of the step; 0 puts them back to the last bit.
static inline void crd_model_ode_inputs(const crd_model_ode* o, void* self, double tau)
{
    for (size_t i = 0; i < o->input_count; i++) {
        const double* u = o->u + 3 * i;
        double* p = (double*)((char*)self + o->model->variables[o->inputs[i]].offset);
        *p = tau > 0 ? u[0] + tau * (u[1] + 0.5 * tau * u[2]) : u[0];
    }
}

/// One step of the classical Runge-Kutta method, from the states x1 at t + tau over h.
static inline crd_model_status crd_model_ode_rk4(const crd_model_ode* o, void* self,
                                                 const crd_model_host* host, double t, double tau,
                                                 double h)
{
    static const double at[4] = {0, 0.5, 0.5, 1}, weight[4] = {1, 2, 2, 1};
    char* const p = (char*)self;
    for (int s = 0; s < 4; s++) {
        for (size_t i = 0; i < o->states; i++) {
            const double slope = s ? *(const double*)(p + o->dx[i]) : 0;
            *(double*)(p + o->x[i]) = o->x1[i] + at[s] * h * slope;
        }
        crd_model_ode_inputs(o, self, tau + at[s] * h);
        const crd_model_status st = o->model->derivatives(self, t + (tau + at[s] * h));
        if (st >= CRD_MODEL_DISCARD) { return st; }
        for (size_t i = 0; i < o->states; i++) {
            o->sum[i] = (s ? o->sum[i] : 0) + weight[s] * *(const double*)(p + o->dx[i]);
        }
    }
    for (size_t i = 0; i < o->states; i++) {
        const double x = o->x1[i] + h / 6 * o->sum[i];
        *(double*)(p + o->x[i]) = x;
        if (!(x - x == 0)) { // NaN or infinite
            host->log(host->user, CRD_MODEL_ERROR, "the inner solver (RK4) has left the numbers");
            return CRD_MODEL_ERROR;
        }
    }
    return CRD_MODEL_OK;
}

/// Has an indicator another sign than at the beginning of the inner step?
static inline bool crd_model_ode_crossed(const crd_model_ode* o, void* self, double t)
{
    o->model->indicators(self, t, o->z1);
    for (int i = 0; i < o->model->indicator_count; i++) {
        if ((o->z0[i] > 0) != (o->z1[i] > 0)) { return true; }
    }
    return false;
}

/// An inner step from t + tau to t + *to; at a state event it ends just behind it.
static inline crd_model_status crd_model_ode_inner(const crd_model_ode* o, void* self,
                                                   const crd_model_host* host, double t, double tau,
                                                   double* to)
{
    crd_model_get_states(o, self, o->x1);
    double low = 0, high = *to - tau;
    crd_model_status st = crd_model_ode_rk4(o, self, host, t, tau, high);
    if (st != CRD_MODEL_OK || o->model->indicator_count == 0) { return st; }
    if (!crd_model_ode_crossed(o, self, t + *to)) {
        for (int i = 0; i < o->model->indicator_count; i++) {
            o->z0[i] = o->z1[i];
        }
        return CRD_MODEL_OK;
    }
    const double middle = t + tau;
    const double fine = 1e-15 * ((middle < 0 ? -middle : middle) + high); // a few digits of t
    while (high - low > fine && st == CRD_MODEL_OK) {
        const double half = 0.5 * (low + high);
        if (half <= low || half >= high) { break; }
        st = crd_model_ode_rk4(o, self, host, t, tau, half);
        if (crd_model_ode_crossed(o, self, t + (tau + half))) {
            high = half;
        } else {
            low = half;
        }
    }
    if (st == CRD_MODEL_OK) { st = crd_model_ode_rk4(o, self, host, t, tau, high); }
    *to = tau + high;
    return st == CRD_MODEL_OK ? CRD_MODEL_EVENT : st;
}

/// `step` of a model that gives `derivatives` only: Runge-Kutta 4 with equal inner steps of at most
/// `default_step`. State events are located by halving, `next` is the time event that `event` gave.
/// An event ends the step with CRD_MODEL_EVENT; inputs and their derivatives stay as they are.
/// What this is not: two crossings of one indicator within an inner step go unseen, and a stiff
/// model needs inner steps as short as its fastest mode; it is for Model Exchange and its solvers.
static inline crd_model_status crd_model_solve(const crd_model_ode* o, void* self,
                                               const crd_model_host* host, double t, double h,
                                               double next, double* reached)
{
    const crd_model* m = o->model;
    const double ratio = m->default_step > 0 ? h / m->default_step : 1;
    const long count = ratio > 1 ? (long)((ratio < 1e9 ? ratio : 1e9) + 1 - 1e-9) : 1;
    const double dt = h / (double)count, until = next - t;
    crd_model_status st = CRD_MODEL_OK;
    double tau = 0;
    if (until <= 0) {
        *reached = t;
        return CRD_MODEL_EVENT;
    }
    crd_model_get_states(o, self, o->x0);
    for (size_t i = 0; i < o->input_count; i++) {
        const crd_model_variable* row = &m->variables[o->inputs[i]];
        const double* d = (const double*)((const char*)self + row->derivatives);
        o->u[3 * i] = *(const double*)((const char*)self + row->offset);
        o->u[3 * i + 1] = d[0];
        o->u[3 * i + 2] = d[1];
    }
    if (m->indicator_count) { m->indicators(self, t, o->z0); }
    for (long k = 1; k <= count && st <= CRD_MODEL_WARNING; k++) {
        double to = k < count ? (double)k * dt : h;
        const bool due = until <= to + 1e-9 * dt; // an event just behind the step belongs to it
        if (due && until < to) { to = until; }
        crd_model_status got = crd_model_ode_inner(o, self, host, t, tau, &to);
        if (got == CRD_MODEL_OK && due) { got = CRD_MODEL_EVENT; }
        tau = to;
        if (got == CRD_MODEL_OK && m->completed) { got = m->completed(self, host, t + tau); }
        st = got > st ? got : st;
    }
    crd_model_ode_inputs(o, self, 0);
    if (st == CRD_MODEL_DISCARD) { crd_model_set_states(o, self, o->x0); }
    if (tau < h) { *reached = tau < until ? t + tau : next; }
    return st;
}

#ifdef __cplusplus
}
#endif
