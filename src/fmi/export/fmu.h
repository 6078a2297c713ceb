/// The runtime of an exported FMU: one instance of a crd_model, its call order, its values.
///
/// fmi2.c and fmi3.c are thin shells over this file; an FMU has one of them, and includes it once.
/// Status codes are those of both standards (0 OK, 1 warning, 2 discard, 3 error, 4 fatal); a
/// value reference is the index of a row in the model's table. After `fmu_create` only the state
/// functions allocate.
#pragma once
#include "cardan/model.h"
#include "fmu_model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FMU_OK, FMU_WARNING, FMU_DISCARD, FMU_ERROR, FMU_FATAL };

/// Where an instance is in the standards' state machines; bits, so that a call lists its phases.
enum {
    FMU_INSTANTIATED = 1,
    FMU_INITIALIZATION = 2,
    FMU_STEP = 4,
    FMU_EVENT = 8,         // FMI 3 event mode
    FMU_INTERMEDIATE = 16, // FMI 3, inside the importer's callback
    FMU_TERMINATED = 32,
    FMU_FAILED = 64,      // after an error
    FMU_DEAD = 128,       // after a fatal error
    FMU_CONTINUOUS = 256, // Model Exchange: continuous-time mode
    FMU_ALIVE = 0x16f,    // all but the callback and death
};

/// What a message is about; a debug log may be narrowed to some of these.
enum { FMU_LOG_WARNING, FMU_LOG_DISCARD, FMU_LOG_ERROR, FMU_LOG_FATAL, FMU_LOG_CALLS, FMU_LOG_ALL };
static const char* const fmu_categories[] = {"logStatusWarning", "logStatusDiscard",
                                             "logStatusError",   "logStatusFatal",
                                             "logCalls",         "logAll"};
#define FMU_LOG_STATUS 0x0fu // what is reported even when debug logging is off

typedef struct fmu_slot { // a row of the table, as much of it as set and get need
    uint32_t offset;
    uint32_t size;   // elements
    uint16_t set_in; // phases in which the importer may set it
    uint8_t type;    // crd_type
    bool scalar;     // not an array
    bool derivative; // an input with a place for its derivatives
} fmu_slot;

typedef struct fmu {
    const crd_model* model;
    char* self;      // the model's bytes, model->size of them, in this block
    fmu_slot* slots; // (count), in this block
    uint32_t count;
    uint32_t phase;
    double time;
    bool dirty;  // something was set since the outputs were worked out
    bool moving; // an input has a derivative that is not zero
    bool terminate;
    bool has_stop;
    bool ready; // FMI 2: fmi2SetupExperiment was called
    double start, stop;
    double next_event;
    bool exchange; // instantiated for Model Exchange
    bool restless; // its event iteration has not ended
    crd_model_ode ode;
    double* before; // states before an event (ode.states), in this block
    crd_model_host host;
    char* name; // of the instance, in this block
    char* resources;
    unsigned log_mask;
    bool explained; // the model gave a reason for a failure since the call began
    void (*log)(struct fmu* f, int status, const char* category, const char* text);
    // of the shell
    void* environment;
    void (*callback)(void);           // FMI 2 logger or FMI 3 log message
    void (*intermediate)(void);       // FMI 3
    uint32_t intermediate_count;      // inputs that the importer sets within steps
    uint32_t* intermediate_variables; // (intermediate_count), in this block
    bool event_mode, early_return;    // FMI 3: what the importer agreed to
} fmu;

/// A copy of an instance's state; `size` bytes of the model follow, and those from outside of it.
typedef struct fmu_state {
    uint64_t magic, size, outside;
    uint64_t token[2];
    double time, start, stop, next_event;
    uint32_t phase;
    bool dirty, moving, terminate, has_stop, ready, exchange, restless;
    const void* owner; // a pinned model's bytes, NULL
} fmu_state;

// ---- identity ----------------------------------------------------------------------------------

static inline void fmu_hash_bytes(uint64_t h[2], const void* p, size_t n)
{
    for (size_t i = 0; i < n; i++) { // FNV-1a, two lanes from different bases
        h[0] = (h[0] ^ ((const uint8_t*)p)[i]) * 0x100000001b3u;
        h[1] = (h[1] ^ ((const uint8_t*)p)[i]) * 0x100000001b3u;
        h[1] ^= h[1] >> 29;
    }
}

static inline void fmu_hash_text(uint64_t h[2], const char* text)
{
    fmu_hash_bytes(h, text ? text : "\1", text ? strlen(text) + 1 : 1);
}

static inline void fmu_hash_number(uint64_t h[2], double x)
{
    fmu_hash_bytes(h, &x, sizeof x);
}

/// The table's hash: what was described and what was compiled are the same table.
static inline void fmu_hash(const crd_model* m, uint64_t h[2])
{
    h[0] = 0xcbf29ce484222325u;
    h[1] = 0x9e3779b97f4a7c15u;
    fmu_hash_text(h, m->name);
    const double head[] = {m->default_step,          m->default_stop, m->max_input_derivative,
                           m->max_output_derivative, m->fixed_step,   m->has_events,
                           m->partial != NULL};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) {
        fmu_hash_number(h, head[i]);
    }
    for (int i = 0; i < m->variable_count; i++) {
        const crd_model_variable* v = &m->variables[i];
        const double row[] = {
            v->type,  v->causality, v->variability, (double)v->size, (double)v->capacity,
            v->start, v->exact,     v->min,         v->max,          v->derivatives != 0};
        for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
            fmu_hash_number(h, row[k]);
        }
        for (size_t k = 0; v->starts && k < v->size; k++) {
            fmu_hash_number(h, v->starts[k]);
        }
        const char* const texts[] = {v->name, v->start_text, v->unit, v->description, v->depends};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            fmu_hash_text(h, texts[k]);
        }
        for (const char* const* item = v->items; item && *item; item++) {
            fmu_hash_text(h, *item);
        }
        if (m->derivatives) {
            fmu_hash_text(h, v->derivative_of);
            fmu_hash_number(h, v->nominal);
        }
    }
    if (m->derivatives) {
        fmu_hash_number(h, m->indicator_count);
        fmu_hash_number(h, m->completed != NULL);
    }
}

static inline void fmu_token(const crd_model* m, char token[40])
{
    uint64_t h[2];
    fmu_hash(m, h);
    snprintf(token, 40, "{%08x-%04x-%04x-%04x-%012llx}", (unsigned)(h[0] >> 32),
             (unsigned)(h[0] >> 16 & 0xffff), (unsigned)(h[0] & 0xffff), (unsigned)(h[1] >> 48),
             (unsigned long long)(h[1] & 0xffffffffffffu));
}

// ---- messages ----------------------------------------------------------------------------------

/// Word what happened and hand `status` back.
__attribute__((format(printf, 3, 4))) static inline int fmu_say(fmu* f, int status,
                                                                const char* format, ...)
{
    const int category = status == FMU_OK ? FMU_LOG_CALLS : status - 1;
    if (!(f->log_mask & 1u << category)) { return status; }
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    f->log(f, status, fmu_categories[category], text);
    return status;
}

/// A call that went wrong for good.
#define fmu_fail(f, ...) ((f)->phase = FMU_FAILED, fmu_say(f, FMU_ERROR, __VA_ARGS__))

static inline void fmu_host_log(void* user, crd_model_status status, const char* text)
{
    static const uint8_t codes[] = {
        [CRD_MODEL_OK] = FMU_OK,           [CRD_MODEL_WARNING] = FMU_WARNING,
        [CRD_MODEL_EVENT] = FMU_OK,        [CRD_MODEL_TERMINATE] = FMU_OK,
        [CRD_MODEL_DISCARD] = FMU_DISCARD, [CRD_MODEL_ERROR] = FMU_ERROR,
        [CRD_MODEL_FATAL] = FMU_FATAL};
    fmu* f = user;
    if (codes[status] >= FMU_DISCARD) { f->explained = true; }
    fmu_say(f, codes[status], "%s", text);
}

static inline const char* fmu_phase_name(uint32_t phase)
{
    switch (phase) {
    case FMU_INSTANTIATED:
        return "instantiated";
    case FMU_INITIALIZATION:
        return "initialization mode";
    case FMU_STEP:
        return "step mode";
    case FMU_EVENT:
        return "event mode";
    case FMU_INTERMEDIATE:
        return "intermediate update";
    case FMU_CONTINUOUS:
        return "continuous-time mode";
    case FMU_TERMINATED:
        return "terminated";
    case FMU_FAILED:
        return "failed";
    default:
        return "dead";
    }
}

static inline int fmu_misplaced(fmu* f, const char* function)
{
    return fmu_say(f, FMU_ERROR, "%s: not allowed now (%s)", function, fmu_phase_name(f->phase));
}

static inline bool fmu_allowed(fmu* f, uint32_t phases, const char* function)
{
    if (f && (f->phase & phases)) { return true; }
    if (f) { fmu_misplaced(f, function); }
    return false;
}

static inline int fmu_set_log(fmu* f, bool on, const char* const* categories, size_t n,
                              const char* function)
{
    unsigned mask = on ? (n ? FMU_LOG_STATUS : ~0u) : FMU_LOG_STATUS;
    for (size_t i = 0; on && i < n; i++) {
        unsigned k = 0;
        while (k <= FMU_LOG_ALL &&
               (!categories[i] || strcmp(categories[i], fmu_categories[k]) != 0)) {
            k++;
        }
        if (k > FMU_LOG_ALL) {
            return fmu_say(f, FMU_ERROR, "%s: there is no log category \"%s\"", function,
                           categories[i] ? categories[i] : "(null)");
        }
        mask |= k == FMU_LOG_ALL ? ~0u : 1u << k;
    }
    f->log_mask = mask;
    return FMU_OK;
}

// ---- life --------------------------------------------------------------------------------------

static inline void fmu_fill_slots(fmu* f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const crd_model_variable* v = &f->model->variables[i];
        const uint32_t early = FMU_INSTANTIATED | FMU_INITIALIZATION;
        const bool derivative = v->causality == CRD_INPUT && v->derivatives;
        uint32_t set_in = 0;
        if (v->causality == CRD_INPUT) {
            set_in = early | FMU_STEP | FMU_EVENT | (derivative ? FMU_INTERMEDIATE : 0u) |
                     (v->variability == CRD_CONTINUOUS ? FMU_CONTINUOUS : 0u);
        } else if (v->causality == CRD_PARAMETER) {
            set_in = early | (v->variability == CRD_TUNABLE ? FMU_STEP | FMU_EVENT : 0u);
        } else if (v->exact) {
            set_in = early;
        }
        f->slots[i] = (fmu_slot){.offset = (uint32_t)v->offset,
                                 .size = v->size ? (uint32_t)v->size : 1,
                                 .type = (uint8_t)v->type,
                                 .set_in = (uint16_t)set_in,
                                 .scalar = v->size == 0,
                                 .derivative = derivative};
    }
}

/// Back to where `fmu_create` left it.
static inline void fmu_reset(fmu* f)
{
    if (f->model->clear) { f->model->clear(f->self); }
    memset(f->self, 0, f->model->size);
    crd_model_reset(f->model, f->self);
    f->phase = FMU_INSTANTIATED;
    f->time = f->start = f->stop = 0;
    f->next_event = INFINITY;
    f->dirty = true;
    f->moving = f->terminate = f->has_stop = f->ready = f->restless = false;
}

/// The caller's `from` brings logger, environment and what else of the shell's fields it needs.
/// NULL after a message if the token is another FMU's or memory is short. Then the model is still
/// the caller's; else it belongs to the instance.
static inline fmu* fmu_create(const crd_model* model, const fmu* from, const char* name,
                              const char* token, const char* resources, uint32_t intermediate_count)
{
    fmu here = *from; // to speak before there is an instance
    here.name = (char*)(name ? name : "");
    char expected[40];
    fmu_token(model, expected);
    if (!name || !*name) {
        fmu_say(&here, FMU_ERROR, "the instance name is empty");
        return NULL;
    }
    if (!token || strcmp(token, expected) != 0) {
        fmu_say(&here, FMU_ERROR, "the token is %s, this FMU has %s", token ? token : "(null)",
                expected);
        return NULL;
    }
    resources = resources ? resources : "";
    const size_t n = (size_t)model->variable_count;
    const size_t at_slots = (sizeof here + 15) / 16 * 16;
    const size_t at_self = (at_slots + n * sizeof(fmu_slot) + 15) / 16 * 16;
    const size_t at_ode = (at_self + model->size + 15) / 16 * 16;
    crd_model_ode ode;
    crd_model_ode_count(model, &ode);
    const size_t at_before = at_ode + crd_model_ode_bytes(model);
    const size_t at_list = at_before + ode.states * sizeof(double);
    const size_t at_name = at_list + intermediate_count * sizeof(uint32_t);
    const size_t at_resources = at_name + strlen(name) + 1;
    char* block = calloc(1, at_resources + strlen(resources) + 1);
    if (!block) {
        fmu_say(&here, FMU_ERROR, "out of memory");
        return NULL;
    }
    fmu* f = (fmu*)block;
    *f = here;
    f->model = model;
    f->count = (uint32_t)n;
    f->slots = (fmu_slot*)(block + at_slots);
    f->self = block + at_self;
    crd_model_ode_init(&f->ode, model, block + at_ode);
    f->before = (double*)(block + at_before);
    f->intermediate_variables = (uint32_t*)(block + at_list);
    f->name = strcpy(block + at_name, name);
    f->resources = strcpy(block + at_resources, resources);
    f->host =
        (crd_model_host){.user = f, .log = fmu_host_log, .resources = f->resources, .model = model};
    fmu_fill_slots(f);
    fmu_reset(f);
    return f;
}

/// The model goes with its last function.
static inline void fmu_free(fmu* f)
{
    if (!f) { return; }
    if (f->model->clear) { f->model->clear(f->self); }
    fmu_model_close(f->model);
    free(f);
}

static inline int fmu_enter_initialization(fmu* f, double start, bool has_stop, double stop,
                                           const char* function)
{
    if (!isfinite(start) || (has_stop && !(stop >= start))) {
        return fmu_fail(f, "%s: start time %g and stop time %g, expected start <= stop", function,
                        start, stop);
    }
    f->time = f->start = start;
    f->has_stop = has_stop;
    f->stop = stop;
    f->dirty = true;
    f->phase = FMU_INITIALIZATION;
    return fmu_say(f, FMU_OK, "%s: from %g", function, start);
}

/// The model could not do `what` at time t: the status to return. `changed` says that a discard
/// would come too late. The reason is the model's to give; this speaks only when it gave none.
static inline int fmu_failed(fmu* f, crd_model_status st, bool changed, const char* what, double t)
{
    const bool discard = st == CRD_MODEL_DISCARD && !changed;
    const int status = st == CRD_MODEL_FATAL ? FMU_FATAL : discard ? FMU_DISCARD : FMU_ERROR;
    if (!discard) { f->phase = st == CRD_MODEL_FATAL ? FMU_DEAD : FMU_FAILED; }
    if (!f->explained) {
        fmu_say(f, status, "%s %g %s", what, t, discard ? "was discarded" : "failed");
    }
    return status;
}

/// The end of a run.
static inline int fmu_terminate(fmu* f)
{
    f->explained = false;
    const crd_model_status st =
        f->model->terminate ? f->model->terminate(f->self, &f->host) : CRD_MODEL_OK;
    if (st >= CRD_MODEL_DISCARD) { return fmu_failed(f, st, true, "the end at", f->time); }
    f->phase = FMU_TERMINATED;
    return st == CRD_MODEL_WARNING ? FMU_WARNING : FMU_OK;
}

/// Derivatives and outputs at f->time. A point that has none is discarded where a solver tries
/// points; elsewhere that is an error.
static inline int fmu_evaluate(fmu* f)
{
    crd_model_status st = CRD_MODEL_OK;
    if (f->model->derivatives) { st = f->model->derivatives(f->self, f->time); }
    if (st >= CRD_MODEL_DISCARD) {
        f->dirty = true;
        return fmu_failed(f, st, f->phase != FMU_CONTINUOUS, "the evaluation at", f->time);
    }
    f->model->outputs(f->self, f->time);
    return st == CRD_MODEL_WARNING ? FMU_WARNING : FMU_OK;
}

/// Make outputs belong to the inputs as they are now.
static inline int fmu_refresh(fmu* f)
{
    crd_model_status st = CRD_MODEL_OK;
    f->dirty = false;
    f->explained = false;
    if (f->phase == FMU_INITIALIZATION) { st = f->model->initialize(f->self, &f->host, f->time); }
    if (st >= CRD_MODEL_DISCARD) {
        return fmu_failed(f, st, true, "the initialisation at", f->time);
    }
    if (f->phase & (FMU_INITIALIZATION | FMU_STEP | FMU_EVENT | FMU_CONTINUOUS)) {
        const int evaluated = fmu_evaluate(f);
        if (evaluated >= FMU_DISCARD) { return evaluated; }
        if (evaluated == FMU_WARNING) { st = CRD_MODEL_WARNING; }
    }
    return st == CRD_MODEL_WARNING ? FMU_WARNING : FMU_OK;
}

/// Let the model deal with an event; what it changes is seen by the next get. CRD_MODEL_EVENT: it
/// wants another call.
static inline crd_model_status fmu_event(fmu* f, double t)
{
    f->next_event = INFINITY;
    f->dirty = true;
    f->explained = false;
    return f->model->event(f->self, &f->host, t, &f->next_event);
}

/// The same until it has had enough.
static inline crd_model_status fmu_settle(fmu* f, double t)
{
    crd_model_status st = CRD_MODEL_EVENT;
    for (int i = 0; i < 1000 && st == CRD_MODEL_EVENT; i++) {
        st = fmu_event(f, t);
    }
    if (st == CRD_MODEL_EVENT) {
        fmu_host_log(f, CRD_MODEL_ERROR, "the event iteration does not end");
        return CRD_MODEL_ERROR;
    }
    return st;
}

static inline int fmu_exit_initialization(fmu* f)
{
    const int st = f->dirty ? fmu_refresh(f) : FMU_OK;
    if (st >= FMU_ERROR) { return st; }
    f->phase = f->event_mode || f->exchange ? FMU_EVENT : FMU_STEP;
    if (!f->model->has_events || f->phase == FMU_EVENT) { return st; }
    const crd_model_status ev = fmu_settle(f, f->time);
    return ev >= CRD_MODEL_DISCARD ? fmu_failed(f, ev, true, "the event at", f->time) : st;
}

// ---- steps -------------------------------------------------------------------------------------

typedef struct fmu_outcome {
    double reached;
    bool event, early;
} fmu_outcome;

static inline void fmu_advance_inputs(fmu* f, double h)
{
    bool moving = false;
    for (uint32_t i = 0; i < f->count; i++) {
        if (!f->slots[i].derivative) { continue; }
        const crd_model_variable* v = &f->model->variables[i];
        crd_model_advance(v, f->self, h);
        const double* d = (const double*)(f->self + v->derivatives);
        moving = moving || d[0] != 0 || d[1] != 0;
    }
    f->moving = moving;
}

static inline int fmu_check_step(fmu* f, double t, double h, const char* function)
{
    if (!(h > 0) || !isfinite(t + h)) {
        return fmu_fail(f, "%s: step size %g at %g, expected > 0", function, h, t);
    }
    if (!(fabs(t - f->time) <= 1e-9 * (fabs(t) + h))) {
        return fmu_fail(f, "%s: communication point %.17g, expected %.17g", function, t, f->time);
    }
    if (f->has_stop && t + h > f->stop + 1e-6 * h + 1e-12 * fabs(f->stop)) {
        return fmu_fail(f, "%s: step from %g to %g leads past the stop time %g", function, t, t + h,
                        f->stop);
    }
    if (f->model->fixed_step && fabs(h - f->model->default_step) > 1e-9 * h) {
        return fmu_fail(f, "%s: step size %g, only %g is possible", function, h,
                        f->model->default_step);
    }
    return FMU_OK;
}

/// Advance to t + h, or to an event before it if `stop_at_event`; else events are dealt with here.
static inline int fmu_step(fmu* f, double t, double h, bool stop_at_event, fmu_outcome* out,
                           const char* function)
{
    *out = (fmu_outcome){.reached = t};
    int status = fmu_check_step(f, t, h, function);
    if (status != FMU_OK) { return status; }
    const crd_model* m = f->model;
    const double end = t + h;
    double now = t, left = h;
    for (int events = 0;; events++) {
        double reached = end;
        f->explained = false;
        const crd_model_status st = m->step ? m->step(f->self, &f->host, now, left, &reached)
                                            : crd_model_solve(&f->ode, f->self, &f->host, now, left,
                                                              f->next_event, &reached);
        if (st >= CRD_MODEL_DISCARD) { return fmu_failed(f, st, events > 0, "the step from", now); }
        if (f->moving) { fmu_advance_inputs(f, reached - now); }
        if (st == CRD_MODEL_WARNING) { status = FMU_WARNING; }
        if (st == CRD_MODEL_TERMINATE) { f->terminate = true; }
        now = reached;
        if (st != CRD_MODEL_EVENT) { break; }
        if (stop_at_event) {
            out->event = true;
            out->early = reached < end;
            break;
        }
        fmu_say(f, FMU_OK, "%s: event at %.17g", function, reached);
        if (events >= 100000) {
            return fmu_fail(f, "%s: events without end at %g", function, reached);
        }
        const crd_model_status ev = fmu_settle(f, reached);
        if (ev >= CRD_MODEL_DISCARD) { return fmu_failed(f, ev, true, "the event at", reached); }
        if (ev == CRD_MODEL_WARNING) { status = FMU_WARNING; }
        if (ev == CRD_MODEL_TERMINATE) { f->terminate = true; }
        left = end - reached;
        if (f->terminate || !(left > 0)) { break; }
    }
    f->time = out->reached = now;
    f->dirty = false;
    const int evaluated = fmu_evaluate(f);
    return evaluated > status ? evaluated : status;
}

// ---- Model Exchange ----------------------------------------------------------------------------

/// What an update of the discrete states has led to, beside f->next_event.
typedef struct fmu_update {
    bool again, terminate, states_changed;
} fmu_update;

static inline int fmu_update_discrete(fmu* f, fmu_update* out)
{
    *out = (fmu_update){0};
    if (!f->model->has_events) { return FMU_OK; }
    crd_model_get_states(&f->ode, f->self, f->before);
    const crd_model_status st = fmu_event(f, f->time);
    if (st >= CRD_MODEL_DISCARD) { return fmu_failed(f, st, true, "the event at", f->time); }
    for (size_t i = 0; i < f->ode.states; i++) {
        const double x = *(const double*)(f->self + f->ode.x[i]);
        out->states_changed = out->states_changed || x != f->before[i];
    }
    out->again = f->restless = st == CRD_MODEL_EVENT;
    out->terminate = st == CRD_MODEL_TERMINATE;
    return st == CRD_MODEL_WARNING ? FMU_WARNING : FMU_OK;
}

/// From event mode into what comes behind it.
static inline int fmu_leave_events(fmu* f, uint32_t phase, const char* function)
{
    if (f->restless) {
        return fmu_say(f, FMU_ERROR, "%s: the event iteration has not ended", function);
    }
    f->phase = phase;
    return FMU_OK;
}

static inline int fmu_set_time(fmu* f, double time, const char* function)
{
    if (!isfinite(time)) { return fmu_fail(f, "%s: time is %g", function, time); }
    f->dirty = f->dirty || time != f->time;
    f->time = time;
    return FMU_OK;
}

static inline int fmu_check_count(fmu* f, size_t n, size_t expected, const char* function)
{
    if (n == expected) { return FMU_OK; }
    return fmu_say(f, FMU_ERROR, "%s: %zu values, expected %zu", function, n, expected);
}

static inline int fmu_set_continuous(fmu* f, const double* x, size_t n, const char* function)
{
    const int st = fmu_check_count(f, n, f->ode.states, function);
    if (st != FMU_OK) { return st; }
    crd_model_set_states(&f->ode, f->self, x);
    f->dirty = true;
    return FMU_OK;
}

static inline int fmu_get_continuous(fmu* f, double* x, size_t n, const char* function)
{
    int st = fmu_check_count(f, n, f->ode.states, function);
    if (st == FMU_OK && f->dirty && f->phase == FMU_INITIALIZATION) { st = fmu_refresh(f); }
    if (st < FMU_ERROR) { crd_model_get_states(&f->ode, f->self, x); }
    return st;
}

static inline int fmu_get_slopes(fmu* f, double* dx, size_t n, const char* function)
{
    int st = fmu_check_count(f, n, f->ode.states, function);
    if (st == FMU_OK && f->dirty) { st = fmu_refresh(f); }
    if (st >= FMU_DISCARD) { return st; }
    for (size_t i = 0; i < n; i++) {
        dx[i] = *(const double*)(f->self + f->ode.dx[i]);
    }
    return st;
}

static inline int fmu_get_indicators(fmu* f, double* z, size_t n, const char* function)
{
    int st = fmu_check_count(f, n, (size_t)f->model->indicator_count, function);
    if (st == FMU_OK && n && f->dirty) { st = fmu_refresh(f); }
    if (st < FMU_DISCARD && n) { f->model->indicators(f->self, f->time, z); }
    return st;
}

static inline int fmu_get_nominals(fmu* f, double* nominals, size_t n, const char* function)
{
    const int st = fmu_check_count(f, n, f->ode.states, function);
    size_t at = 0;
    for (int i = 0; st == FMU_OK && i < f->model->variable_count; i++) {
        const int state = crd_model_state_of(f->model, i);
        if (state < 0) { continue; }
        const crd_model_variable* v = &f->model->variables[state];
        for (size_t k = 0; k < (v->size ? v->size : 1); k++) {
            nominals[at++] = v->nominal > 0 ? v->nominal : 1;
        }
    }
    return st;
}

static inline int fmu_completed(fmu* f, bool* event, bool* terminate)
{
    *event = *terminate = false;
    if (!f->model->completed) { return FMU_OK; }
    f->explained = false;
    const crd_model_status st = f->model->completed(f->self, &f->host, f->time);
    if (st >= CRD_MODEL_DISCARD) { return fmu_failed(f, st, true, "the step to", f->time); }
    *event = st == CRD_MODEL_EVENT;
    *terminate = st == CRD_MODEL_TERMINATE;
    return st == CRD_MODEL_WARNING ? FMU_WARNING : FMU_OK;
}

// ---- values ------------------------------------------------------------------------------------

/// The slot of a value reference if it has one of the wanted types, else NULL after a message.
static inline const fmu_slot* fmu_find(fmu* f, uint32_t reference, uint32_t types,
                                       const char* function)
{
    if (reference < f->count && (types & 1u << f->slots[reference].type)) {
        return &f->slots[reference];
    }
    fmu_say(f, FMU_ERROR, "%s: value reference %u is no variable of this type", function,
            (unsigned)reference);
    return NULL;
}

static inline int fmu_not_settable(fmu* f, uint32_t reference, const char* function)
{
    return fmu_say(f, FMU_ERROR, "%s: %s cannot be set now (%s)", function,
                   f->model->variables[reference].name, fmu_phase_name(f->phase));
}

/// Models trust their enumerations.
static inline bool fmu_enumeration_ok(fmu* f, uint32_t reference, int64_t value,
                                      const char* function)
{
    const crd_model_variable* v = &f->model->variables[reference];
    int64_t n = 0;
    while (v->items[n]) {
        n++;
    }
    if (value >= 1 && value <= n) { return true; }
    fmu_say(f, FMU_ERROR, "%s: %s = %lld, expected 1 to %lld", function, v->name, (long long)value,
            (long long)n);
    return false;
}

static inline int fmu_set_text(fmu* f, uint32_t reference, size_t element, const char* text,
                               const char* function)
{
    const crd_model_variable* v = &f->model->variables[reference];
    const size_t length = text ? strlen(text) : 0;
    if (!text || length >= v->capacity) {
        return fmu_say(f, FMU_ERROR, "%s: %s has room for %zu bytes, not for %zu", function,
                       v->name, v->capacity - 1, length);
    }
    memcpy(f->self + v->offset + element * v->capacity, text, length + 1);
    return FMU_OK;
}

/// Time derivative of an output; orders beyond the model's are zero.
static inline int fmu_output_derivative(fmu* f, uint32_t reference, int order, double* value,
                                        const char* function)
{
    const fmu_slot* s = fmu_find(f, reference, 1u << CRD_FLOAT64, function);
    if (!s) { return FMU_ERROR; }
    const crd_model_variable* v = &f->model->variables[reference];
    if (v->causality != CRD_OUTPUT || order < 1) {
        return fmu_say(f, FMU_ERROR, "%s: no derivative of order %d of %s", function, order,
                       v->name);
    }
    const bool known = v->derivatives && order <= f->model->max_output_derivative;
    *value = known ? ((const double*)(f->self + v->derivatives))[order - 1] : 0.0;
    return FMU_OK;
}

static inline int fmu_set_input_derivative(fmu* f, uint32_t reference, int order, double value,
                                           const char* function)
{
    const fmu_slot* s = fmu_find(f, reference, 1u << CRD_FLOAT64, function);
    if (!s) { return FMU_ERROR; }
    const crd_model_variable* v = &f->model->variables[reference];
    if (!s->derivative || order < 1 || order > f->model->max_input_derivative) {
        return fmu_say(f, FMU_ERROR, "%s: %s takes no derivative of order %d", function, v->name,
                       order);
    }
    ((double*)(f->self + v->derivatives))[order - 1] = value;
    f->dirty = true;
    f->moving = f->moving || value != 0;
    return FMU_OK;
}

/// out[i] = sum over k of d unknown[i] / d known[k] * seed[k], or its transpose for the adjoint:
/// out[k] = sum over i.
static inline int fmu_derivative(fmu* f, const uint32_t* unknown, size_t unknowns,
                                 const uint32_t* known, size_t knowns, const double* seed,
                                 double* out, bool adjoint, const char* function)
{
    const crd_model* m = f->model;
    if (!m->partial) {
        return fmu_say(f, FMU_ERROR, "%s: this model has no partial derivatives", function);
    }
    const int fresh = f->dirty ? fmu_refresh(f) : FMU_OK;
    if (fresh >= FMU_DISCARD) { return fresh; }
    for (size_t i = 0; i < unknowns + knowns; i++) {
        const uint32_t r = i < unknowns ? unknown[i] : known[i - unknowns];
        const fmu_slot* s = fmu_find(f, r, 1u << CRD_FLOAT64, function);
        if (!s) { return FMU_ERROR; }
        const crd_model_variable* v = &m->variables[r];
        if (!s->scalar || (i < unknowns && v->causality != CRD_OUTPUT && !v->derivative_of)) {
            return fmu_say(f, FMU_ERROR, "%s: %s has no partial derivatives", function, v->name);
        }
    }
    const size_t outer = adjoint ? knowns : unknowns, inner = adjoint ? unknowns : knowns;
    for (size_t r = 0; r < outer; r++) {
        out[r] = 0;
        for (size_t c = 0; c < inner; c++) {
            const uint32_t y = unknown[adjoint ? c : r], u = known[adjoint ? r : c];
            out[r] += m->partial(f->self, (int)y, (int)u) * seed[c];
        }
    }
    return FMU_OK;
}

// ---- states ------------------------------------------------------------------------------------

#define FMU_STATE_MAGIC 0x3154415453445243u // "CRDSTAT1"

static inline size_t fmu_state_bytes(const fmu* f, const fmu_state* s)
{
    return sizeof *s + f->model->size + (s ? s->outside : 0);
}

/// A handle that is there already is used again, unless it has become too small or too large.
static inline int fmu_get_state(fmu* f, void** handle, const char* function)
{
    fmu_state* s = *handle;
    if (f->model->stateless) {
        return fmu_say(f, FMU_ERROR, "%s: this FMU cannot go back to a state", function);
    }
    const size_t outside = f->model->outside ? f->model->outside(f->self) : 0;
    if (!s || s->outside != outside) {
        fmu_state* fresh = calloc(1, sizeof *s + f->model->size + outside);
        if (!fresh) { return fmu_say(f, FMU_ERROR, "%s: out of memory", function); }
        free(s);
        s = fresh;
        s->magic = FMU_STATE_MAGIC;
        s->size = f->model->size;
        s->outside = outside;
        fmu_hash(f->model, s->token);
        *handle = s;
    }
    s->time = f->time;
    s->start = f->start;
    s->stop = f->stop;
    s->next_event = f->next_event;
    s->phase = f->phase;
    s->dirty = f->dirty;
    s->moving = f->moving;
    s->terminate = f->terminate;
    s->has_stop = f->has_stop;
    s->ready = f->ready;
    s->exchange = f->exchange;
    s->restless = f->restless;
    s->owner = f->model->pinned ? f->self : NULL;
    const size_t kept = f->model->kept;
    memcpy((char*)(s + 1) + kept, f->self + kept, f->model->size - kept);
    if (outside) { f->model->save(f->self, (char*)(s + 1) + s->size); }
    return FMU_OK;
}

static inline int fmu_set_state(fmu* f, const fmu_state* s, const char* function)
{
    if (!s || s->magic != FMU_STATE_MAGIC || s->size != f->model->size ||
        s->exchange != f->exchange || s->owner != (f->model->pinned ? f->self : NULL)) {
        return fmu_say(f, FMU_ERROR, "%s: this is no state of this FMU", function);
    }
    f->time = s->time;
    f->start = s->start;
    f->stop = s->stop;
    f->next_event = s->next_event;
    f->phase = s->phase;
    f->dirty = s->dirty;
    f->moving = s->moving;
    f->terminate = s->terminate;
    f->has_stop = s->has_stop;
    f->ready = s->ready;
    f->restless = s->restless;
    const size_t kept = f->model->kept;
    memcpy(f->self + kept, (const char*)(s + 1) + kept, f->model->size - kept);
    if (!f->model->outside) { return FMU_OK; }
    f->explained = false;
    const crd_model_status st =
        f->model->restore(f->self, &f->host, (const char*)(s + 1) + s->size, s->outside);
    return st >= CRD_MODEL_DISCARD ? fmu_failed(f, st, true, "the state of", s->time) : FMU_OK;
}

static inline int fmu_not_serializable(fmu* f, const char* function)
{
    return fmu_say(f, FMU_ERROR, "%s: states of this FMU live in this process only", function);
}

static inline int fmu_serialize(fmu* f, const void* state, uint8_t* bytes, size_t size,
                                const char* function)
{
    if (f->model->pinned) { return fmu_not_serializable(f, function); }
    if (!state || size < fmu_state_bytes(f, state)) {
        return fmu_say(f, FMU_ERROR, "%s: %zu bytes, expected a state and %zu", function, size,
                       fmu_state_bytes(f, state));
    }
    memcpy(bytes, state, fmu_state_bytes(f, state));
    return FMU_OK;
}

static inline int fmu_deserialize(fmu* f, const uint8_t* bytes, size_t size, void** handle,
                                  const char* function)
{
    const size_t least = sizeof(fmu_state) + f->model->size;
    fmu_state head;
    uint64_t token[2];
    if (f->model->pinned) { return fmu_not_serializable(f, function); }
    fmu_hash(f->model, token);
    if (bytes && size >= least) { memcpy(&head, bytes, sizeof head); }
    if (!bytes || size < least || head.magic != FMU_STATE_MAGIC || head.size != f->model->size ||
        head.outside != size - least || memcmp(head.token, token, sizeof token) != 0) {
        return fmu_say(f, FMU_ERROR, "%s: these %zu bytes are no state of this FMU", function,
                       size);
    }
    const fmu_state* old = *handle;
    void* s = old && old->outside == head.outside ? *handle : malloc(size);
    if (!s) { return fmu_say(f, FMU_ERROR, "%s: out of memory", function); }
    memcpy(s, bytes, size);
    if (old && s != *handle) { free(*handle); }
    *handle = s;
    return FMU_OK;
}
