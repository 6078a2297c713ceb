// A library for the tests of Model Exchange, FMI 1.0, 2.0 or 3.0 (FMI): small models, chosen by the
// token. It refuses what the standards forbid, and counts what it was asked.
//
// Value references: time 0, states 100 ..., derivatives 200 ..., inputs 300 ..., parameters 400
// ..., outputs 500 ..., integers 600 (input), 601 (events), structural parameter 700, indicators
// 800.
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { OK, WARNING, DISCARD, ERROR, FATAL };
enum { MOST = 64, INPUTS = 2, PARAMETERS = 4 };
enum { INSTANTIATED, CONFIGURATION, INITIALIZATION, EVENT, CONTINUOUS, TERMINATED };

struct model;
typedef struct instance {
    const struct model* model;
    int mode;
    double t, x[MOST], u[INPUTS], p[PARAMETERS];
    int n; // states
    int32_t k;
    int32_t events;
    int asked;        // derivatives
    int left;         // updates that this event needs
    bool flag;        // of the model
    double mark;      // of the model
    double completed; // time of the last completed step
    double next;
    double nominal;
    double stop;
    int refused; // directional derivatives
} instance;

typedef struct model {
    const char* token;
    int n, nz;
    double p[PARAMETERS];
    void (*start)(instance* i);
    int (*derivatives)(instance* i, double* dx); // status
    void (*indicators)(const instance* i, double* z);
    void (*event)(instance* i, bool* values_changed);
    double (*output)(const instance* i, int k);
    double (*partial)(const instance* i, int row, int column);
} model;

// ---- models ------------------------------------------------------------------------------------

static void nothing(instance* i)
{
    (void)i;
}

static void no_event(instance* i, bool* values_changed)
{
    (void)i, (void)values_changed;
}

static double state(const instance* i, int k)
{
    return k < i->n ? i->x[k] : i->asked;
}

// x'' = -w^2 x + u with w = p0; outputs x, x', and t^3, which no state has in it
static void oscillator_start(instance* i)
{
    i->x[0] = 1;
}

static int oscillator(instance* i, double* dx)
{
    dx[0] = i->x[1];
    dx[1] = -i->p[0] * i->p[0] * i->x[0] + i->u[0];
    return OK;
}

static double oscillator_output(const instance* i, int k)
{
    return k == 2 ? i->t * i->t * i->t : k < 2 ? i->x[k] : i->asked;
}

static double oscillator_partial(const instance* i, int row, int column)
{
    return row == 0 ? column == 1 : column == 0 ? -i->p[0] * i->p[0] : 0;
}

// A ball from height 1: p0 g, p1 restitution, p2 lowest speed
static void ball_start(instance* i)
{
    i->x[0] = 1;
}

static int ball(instance* i, double* dx)
{
    dx[0] = i->flag ? 0 : i->x[1];
    dx[1] = i->flag ? 0 : -i->p[0];
    return OK;
}

static void first_state(const instance* i, double* z)
{
    z[0] = i->x[0];
}

static void ball_event(instance* i, bool* values_changed)
{
    if (i->x[0] > 0 || i->x[1] >= 0 || i->flag) { return; }
    i->x[0] = 0;
    i->x[1] *= -i->p[1];
    if (i->x[1] < i->p[2]) {
        i->x[1] = 0;
        i->flag = true;
    }
    i->mark = i->t;
    i->events++;
    *values_changed = true;
}

static double ball_output(const instance* i, int k)
{
    return k == 2 ? i->mark : i->x[k & 1];
}

// Van der Pol: p0 mu
static void vdp_start(instance* i)
{
    i->x[0] = 2;
}

static int vdp(instance* i, double* dx)
{
    dx[0] = i->x[1];
    dx[1] = i->p[0] * (1 - i->x[0] * i->x[0]) * i->x[1] - i->x[0];
    return OK;
}

static double vdp_partial(const instance* i, int row, int column)
{
    if (row == 0) { return column == 1; }
    return column == 0 ? -2 * i->p[0] * i->x[0] * i->x[1] - 1 : i->p[0] * (1 - i->x[0] * i->x[0]);
}

// No states: an event every p0; output 0 is how much an event missed its time at most
static void timer_event(instance* i, bool* values_changed)
{
    (void)values_changed;
    if (i->t >= i->next) {
        i->mark = fmax(i->mark, i->t - i->next);
        i->events++;
    } else if (i->events) {
        i->mark = 1; // too early
    }
    i->next = (i->events + 1) * i->p[0];
}

static void timer_start(instance* i)
{
    i->next = i->p[0];
}

static int no_derivatives(instance* i, double* dx)
{
    (void)i, (void)dx;
    return OK;
}

static double mark_output(const instance* i, int k)
{
    return k == 1 ? i->events : i->mark;
}

// Events at 1 - 2^-n: they never get to 1
static void zeno_event(instance* i, bool* values_changed)
{
    (void)values_changed;
    i->events++;
    i->next = i->t + (1 - i->t) / 2;
}

// An event at 0.5 that never ends
static void half(const instance* i, double* z)
{
    z[0] = 0.5 - i->t;
}

static void endless_event(instance* i, bool* values_changed)
{
    (void)values_changed;
    if (i->t >= 0.5) { i->left = 1; }
}

// x' = x^2 from 1: it ends at t = 1
static void one_start(instance* i)
{
    i->x[0] = 1;
}

static int escape(instance* i, double* dx)
{
    dx[0] = i->x[0] * i->x[0];
    return OK;
}

// x x' = -1 from 1: x = sqrt(1 - 2 t); there is nothing at x <= 0
static int sink(instance* i, double* dx)
{
    if (!(i->x[0] > 0)) { return DISCARD; }
    dx[0] = -1 / i->x[0];
    return OK;
}

// x' = 1, but only up to 0.01 behind the last completed step
static int tether(instance* i, double* dx)
{
    dx[0] = 1;
    return i->t - i->completed > 0.01 ? DISCARD : OK;
}

// Heat in a chain, warm at its beginning: x_k' = p0 (x_k-1 - 2 x_k + x_k+1), x_-1 = 1, x_n = 0
static int chain(instance* i, double* dx)
{
    for (int k = 0; k < i->n; k++) {
        const double before = k ? i->x[k - 1] : 1, after = k + 1 < i->n ? i->x[k + 1] : 0;
        dx[k] = i->p[0] * (before - 2 * i->x[k] + after) - 0.1 * i->x[k] * i->x[k];
    }
    return OK;
}

static double chain_partial(const instance* i, int row, int column)
{
    const int d = row - column;
    return d == 0 ? -2 * i->p[0] - 0.2 * i->x[row] : d == 1 || d == -1 ? i->p[0] : 0;
}

static double chain_output(const instance* i, int k)
{
    return k == 2 ? i->asked : i->x[k == 0 ? i->n / 2 : 1];
}

// A relay: x' = 1 up to x = 0.1, then -1 down to -0.1, and so on
static int relay(instance* i, double* dx)
{
    dx[0] = i->flag ? -1 : 1;
    return OK;
}

static void relay_indicators(const instance* i, double* z)
{
    z[0] = 0.1 - i->x[0];
    z[1] = i->x[0] + 0.1;
}

static void relay_event(instance* i, bool* values_changed)
{
    (void)values_changed;
    if (!i->flag && i->x[0] >= 0.1) {
        i->flag = true;
        i->events++;
    } else if (i->flag && i->x[0] <= -0.1) {
        i->flag = false;
        i->events++;
    }
}

// x' = 1 up to 1, where it stays: its indicator is as good as zero from then on
static int stay(instance* i, double* dx)
{
    dx[0] = i->flag ? 0 : 1;
    return OK;
}

static void stay_indicators(const instance* i, double* z)
{
    z[0] = i->flag ? 1e-13 * sin(1e3 * i->t) : i->x[0] - 1;
}

static void stay_event(instance* i, bool* values_changed)
{
    i->events++; // all, also those that nobody needs
    if (i->x[0] < 1) { return; }
    i->flag = *values_changed = true;
    i->x[0] = 1;
}

// x' = k + u0; an indicator on the input, and one event per change of its side
static int driven(instance* i, double* dx)
{
    dx[0] = i->k + i->u[0];
    return OK;
}

static void input_side(const instance* i, double* z)
{
    z[0] = i->u[0] - 1;
}

static void driven_event(instance* i, bool* values_changed)
{
    (void)values_changed;
    if (i->flag != (i->u[0] > 1)) {
        i->flag = !i->flag;
        i->events++;
    }
}

static double driven_output(const instance* i, int k)
{
    return k == 0 ? i->x[0] : k == 1 ? 2 * i->u[0] + i->x[0] : i->asked;
}

// x' = 1; at the first completed step beyond 0.5 it asks for an event, which sets x to 10
static void hop_event(instance* i, bool* values_changed)
{
    if (i->t <= 0.5 || i->events) { return; }
    i->events++;
    i->x[0] = 10;
    i->nominal = 100;
    *values_changed = true;
}

static int rise(instance* i, double* dx)
{
    (void)i;
    dx[0] = 1;
    return OK;
}

// x = cos(t - 0.02); it is nearer to its top than 0.015 for a while
static void top_start(instance* i)
{
    i->x[0] = cos(0.02);
    i->x[1] = sin(0.02);
}

static int top(instance* i, double* dx)
{
    dx[0] = i->x[1];
    dx[1] = -i->x[0];
    return OK;
}

static void top_side(const instance* i, double* z)
{
    z[0] = cos(0.015) - i->x[0];
}

static void count_events(instance* i, bool* values_changed)
{
    (void)values_changed;
    i->events += i->t > 0;
}

// x' = 1; indicators that are no ordinary numbers for a while: -1, inf, 1 and -1, NaN, 1
static void wild_side(const instance* i, double* z)
{
    z[0] = i->t < 0.35 ? -1 : i->p[0] != 0 ? NAN : INFINITY;
    if (i->t > 0.65) { z[0] = 1; }
}

// x' = x cos t from 1; at 0.5 its nominal value becomes p0, said in the first of two updates
static int swing(instance* i, double* dx)
{
    dx[0] = i->x[0] * cos(i->t);
    return OK;
}

static void swing_event(instance* i, bool* values_changed)
{
    (void)values_changed;
    if (i->t >= 0.5 && !i->flag) {
        i->nominal = i->p[0];
        i->flag = true;
        i->left = 1;
    }
    i->next = i->t < 0.5 ? 0.5 : INFINITY;
}

// A time event at 0.5. p0 = 0: it turns the side of an indicator, which is no event of its own;
// p0 = 1: it turns the slope of x
static int flip(instance* i, double* dx)
{
    dx[0] = i->flag && i->p[0] != 0 ? -1 : 1;
    return OK;
}

static void flip_side(const instance* i, double* z)
{
    z[0] = i->flag ? 1 : -1;
}

static void flip_event(instance* i, bool* values_changed)
{
    (void)values_changed;
    i->flag = i->t >= 0.5;
    i->next = i->flag ? INFINITY : 0.5;
    i->events += i->t > 0;
}

// x' = 1000 (cos t - x), stiff; its first directional derivatives are discarded
static int shy(instance* i, double* dx)
{
    dx[0] = 1000 * (cos(i->t) - i->x[0]);
    return OK;
}

static double shy_partial(const instance* i, int row, int column)
{
    (void)i, (void)row, (void)column;
    return -1000;
}

// x' = 1; it wants the end at x = 0.25
static void quarter(const instance* i, double* z)
{
    z[0] = 0.25 - i->x[0];
}

static int fail(instance* i, double* dx)
{
    dx[0] = 1;
    return i->t > 0.5 ? ERROR : OK;
}

static int crash(instance* i, double* dx)
{
    if (i->t > 0.05) { abort(); }
    dx[0] = 1;
    return OK;
}

static const model models[] = {
    {"oscillator",
     2,
     0,
     {1},
     oscillator_start,
     oscillator,
     NULL,
     no_event,
     oscillator_output,
     oscillator_partial},
    {"ball", 2, 1, {9.81, 0.7, 0.05}, ball_start, ball, first_state, ball_event, ball_output, NULL},
    {"vdp", 2, 0, {1000}, vdp_start, vdp, NULL, no_event, state, vdp_partial},
    {"timer", 0, 0, {0.1}, timer_start, no_derivatives, NULL, timer_event, mark_output, NULL},
    {"zeno", 0, 0, {0}, nothing, no_derivatives, NULL, zeno_event, mark_output, NULL},
    {"endless", 1, 1, {0}, nothing, rise, half, endless_event, state, NULL},
    {"escape", 1, 0, {0}, one_start, escape, NULL, no_event, state, NULL},
    {"sink", 1, 0, {0}, one_start, sink, NULL, no_event, state, NULL},
    {"tether", 1, 0, {0}, nothing, tether, NULL, no_event, state, NULL},
    {"chain", MOST, 0, {30}, nothing, chain, NULL, no_event, chain_output, chain_partial},
    {"relay", 1, 2, {0}, nothing, relay, relay_indicators, relay_event, state, NULL},
    {"stay", 1, 1, {0}, nothing, stay, stay_indicators, stay_event, state, NULL},
    {"driven", 1, 1, {0}, nothing, driven, input_side, driven_event, driven_output, NULL},
    {"hop", 1, 0, {0}, nothing, rise, NULL, hop_event, state, NULL},
    {"top", 2, 1, {0}, top_start, top, top_side, count_events, state, NULL},
    {"wild", 1, 1, {0}, nothing, rise, wild_side, count_events, state, NULL},
    {"flip", 1, 1, {0}, nothing, flip, flip_side, flip_event, state, NULL},
    {"shy", 1, 0, {0}, nothing, shy, NULL, no_event, state, shy_partial},
    {"swing", 1, 0, {1e4}, one_start, swing, NULL, swing_event, state, NULL},
    {"ending", 1, 1, {0}, nothing, rise, quarter, no_event, state, NULL},
    {"fail", 1, 0, {0}, nothing, fail, NULL, no_event, state, NULL},
    {"crash", 1, 0, {0}, nothing, crash, NULL, no_event, state, NULL},
};

// ---- what all versions do -----------------------------------------------------------------------

static void* make(const char* token)
{
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        if (strcmp(models[m].token, token) != 0) { continue; }
        instance* i = calloc(1, sizeof *i);
        *i = (instance){.model = &models[m],
                        .n = models[m].n,
                        .next = INFINITY,
                        .nominal = 1,
                        .stop = INFINITY};
        memcpy(i->p, models[m].p, sizeof i->p);
        return i;
    }
    return NULL;
}

static int enter_initialization(instance* i)
{
    if (i->mode != INSTANTIATED) { return ERROR; }
    i->mode = INITIALIZATION;
    i->model->start(i);
    return OK;
}

#if FMI > 1
static int go(instance* i, int from, int to)
{
    if (i->mode != from) { return ERROR; }
    i->mode = to;
    return OK;
}
#endif

static int update(instance* i, bool* again, bool* terminate, bool* nominals, bool* values,
                  bool* has_next, double* next)
{
    const double before = i->nominal;
    *values = false;
    if (i->mode != EVENT) { return ERROR; }
    i->left = 0;
    i->model->event(i, values);
    *again = i->left > 0;
    *terminate = strcmp(i->model->token, "ending") == 0 && i->x[0] >= 0.25;
    *nominals = i->nominal != before;
    *has_next = isfinite(i->next);
    *next = i->next;
    return OK;
}

static int completed(instance* i, bool* enter, bool* terminate)
{
    if (i->mode != CONTINUOUS || i->t < i->completed) { return ERROR; }
    i->completed = i->t;
    *enter = strcmp(i->model->token, "hop") == 0 && i->t > 0.5 && !i->events;
    *terminate = false;
    return OK;
}

static int set_time(instance* i, double t)
{
    if (FMI == 1 && i->mode == INSTANTIATED) {
        i->completed = t;
    } else if (i->mode != CONTINUOUS || t < i->completed || t > i->stop) {
        return ERROR;
    }
    i->t = t;
    return OK;
}

static int set_states(instance* i, const double* x, size_t n)
{
    if (i->mode != CONTINUOUS || n != (size_t)i->n) { return ERROR; }
    memcpy(i->x, x, n * sizeof *x);
    return OK;
}

static int get_states(const instance* i, double* x, size_t n)
{
    if (i->mode < INITIALIZATION || n != (size_t)i->n) { return ERROR; }
    memcpy(x, i->x, n * sizeof *x);
    return OK;
}

static int get_derivatives(instance* i, double* dx, size_t n)
{
    if (i->mode < INITIALIZATION || n != (size_t)i->n) { return ERROR; }
    i->asked++;
    return i->model->derivatives(i, dx);
}

static int get_indicators(const instance* i, double* z, size_t n)
{
    if (i->mode < INITIALIZATION || n != (size_t)i->model->nz) { return ERROR; }
    if (n) { i->model->indicators(i, z); }
    return OK;
}

static int get_nominals(const instance* i, double* x, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        x[k] = i->nominal;
    }
    return OK;
}

static int get_real(instance* i, uint32_t ref, double* value)
{
    double dx[MOST];
    if (ref == 0) {
        *value = i->t;
    } else if (ref >= 500) {
        *value = i->model->output(i, (int)ref - 500);
    } else if (ref >= 400) {
        *value = i->p[ref - 400];
    } else if (ref >= 300) {
        *value = i->u[ref - 300];
    } else if (ref >= 200) {
        i->model->derivatives(i, dx);
        *value = dx[ref - 200];
    } else {
        *value = i->x[ref - 100];
    }
    return OK;
}

static int set_real(instance* i, uint32_t ref, double value)
{
    if (ref >= 300 && ref < 300 + INPUTS) {
        i->u[ref - 300] = value;
    } else if (ref >= 400 && ref < 400 + PARAMETERS && i->mode == INSTANTIATED) {
        i->p[ref - 400] = value;
    } else {
        return ERROR;
    }
    return OK;
}

static int set_integer(instance* i, uint32_t ref, int32_t value)
{
    if (ref != 600 || (FMI > 1 && i->mode == CONTINUOUS)) { return ERROR; }
    i->k = value;
    return OK;
}

#if FMI > 1
static int directional(instance* i, const double* seed, double* result)
{
    if (!i->model->partial || i->mode < INITIALIZATION) { return ERROR; }
    if (i->model->partial == shy_partial && i->refused++ < 3) { return DISCARD; }
    for (int row = 0; row < i->n; row++) {
        result[row] = 0;
        for (int column = 0; column < i->n; column++) {
            result[row] += i->model->partial(i, row, column) * seed[column];
        }
    }
    return OK;
}
#endif

// ---- the interface -----------------------------------------------------------------------------

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#if FMI == 1
#define NAME(name) me_fmi##name
#else
#define NAME(name) PASTE(PASTE(fmi, FMI), name)
#endif
#define FUNCTION(result, name, ...)                                                                \
    EXPORT result NAME(name)(__VA_ARGS__);                                                         \
    result NAME(name)(__VA_ARGS__)

FUNCTION(const char*, GetVersion, void)
{
    return FMI == 1 ? "1.0" : FMI == 2 ? "2.0" : "3.0";
}

#if FMI > 1
FUNCTION(void, FreeInstance, void* c)
{
    free(c);
}

FUNCTION(int, ExitInitializationMode, void* c)
{
    return go(c, INITIALIZATION, EVENT);
}

FUNCTION(int, EnterEventMode, void* c)
{
    return go(c, CONTINUOUS, EVENT);
}

FUNCTION(int, EnterContinuousTimeMode, void* c)
{
    return go(c, EVENT, CONTINUOUS);
}

FUNCTION(int, GetNominalsOfContinuousStates, void* c, double* x, size_t n)
{
    return get_nominals(c, x, n);
}
#endif

FUNCTION(int, Terminate, void* c)
{
    instance* i = c;
    if (i->mode != EVENT && i->mode != CONTINUOUS) { return ERROR; }
    i->mode = TERMINATED;
    return OK;
}

FUNCTION(int, SetTime, void* c, double t)
{
    return set_time(c, t);
}

FUNCTION(int, SetContinuousStates, void* c, const double* x, size_t n)
{
    return set_states(c, x, n);
}

FUNCTION(int, GetContinuousStates, void* c, double* x, size_t n)
{
    return get_states(c, x, n);
}

FUNCTION(int, GetEventIndicators, void* c, double* z, size_t n)
{
    return get_indicators(c, z, n);
}

#if FMI > 1
static int copy_state(void* c, void** s)
{
    if (!*s) { *s = malloc(sizeof(instance)); }
    memcpy(*s, c, sizeof(instance));
    return OK;
}

static int drop_state(void** s)
{
    free(*s);
    *s = NULL;
    return OK;
}
#endif

#if FMI == 1
typedef struct event_info {
    char converged, references, values, terminate, has_next;
    double next;
} event_info;

typedef struct callbacks {
    void* functions[3];
} callbacks;

FUNCTION(const char*, GetModelTypesPlatform, void)
{
    return "standard32";
}

FUNCTION(void*, InstantiateModel, const char* name, const char* guid, callbacks f, char logging)
{
    (void)name, (void)logging;
    for (int k = 0; k < 3; k++) {
        if (!f.functions[k]) { return NULL; }
    }
    return make(guid);
}

FUNCTION(void, FreeModelInstance, void* c)
{
    free(c);
}

FUNCTION(int, EventUpdate, void* c, char intermediate, event_info* e)
{
    instance* i = c;
    bool again = false, terminate = false, nominals = false, values = false, has_next = false;
    if (i->mode != CONTINUOUS || intermediate) { return ERROR; }
    i->mode = EVENT;
    const int status = update(c, &again, &terminate, &nominals, &values, &has_next, &e->next);
    i->mode = CONTINUOUS;
    e->converged = !again;
    e->terminate = terminate;
    e->references = nominals;
    e->values = values;
    e->has_next = has_next;
    return status;
}

FUNCTION(int, Initialize, void* c, char has_tolerance, double tolerance, event_info* e)
{
    (void)has_tolerance, (void)tolerance;
    if (enter_initialization(c) != OK) { return ERROR; }
    ((instance*)c)->mode = CONTINUOUS;
    for (int k = 0; k < 1000; k++) {
        if (NAME(EventUpdate)(c, 0, e) != OK || e->converged) { break; }
    }
    return OK;
}

FUNCTION(int, CompletedIntegratorStep, void* c, char* event)
{
    bool e = false, t = false;
    const int status = completed(c, &e, &t);
    *event = e;
    return status;
}

FUNCTION(int, GetStateValueReferences, void* c, uint32_t* refs, size_t n)
{
    (void)c;
    for (size_t k = 0; k < n; k++) {
        refs[k] = 100 + (uint32_t)k;
    }
    return OK;
}

FUNCTION(int, SetDebugLogging, void* c, char on)
{
    (void)c, (void)on;
    return OK;
}

// There are no Booleans and no texts.
#define NONE(name, type)                                                                           \
    FUNCTION(int, name, void* c, const uint32_t* refs, size_t n, type values)                      \
    {                                                                                              \
        (void)c, (void)refs, (void)values;                                                         \
        return n ? ERROR : OK;                                                                     \
    }
NONE(GetBoolean, char*)
NONE(SetBoolean, const char*)
NONE(GetString, const char**)
NONE(SetString, const char* const*)

FUNCTION(int, GetNominalContinuousStates, void* c, double* x, size_t n)
{
    return get_nominals(c, x, n);
}
#endif

#if FMI == 2
typedef struct event_info {
    int again, terminate, nominals, values, has_next;
    double next;
} event_info;

FUNCTION(const char*, GetTypesPlatform, void)
{
    return "default";
}

FUNCTION(void*, Instantiate, const char* name, int kind, const char* guid, const char* resources,
         const void* callbacks, int visible, int logging)
{
    (void)name, (void)resources, (void)callbacks, (void)visible, (void)logging;
    return kind == 0 ? make(guid) : NULL;
}

FUNCTION(int, SetupExperiment, void* c, int has_tolerance, double tolerance, double start,
         int has_stop, double stop)
{
    (void)has_tolerance, (void)tolerance;
    ((instance*)c)->t = ((instance*)c)->completed = start;
    ((instance*)c)->stop = has_stop ? stop + 1e-9 : INFINITY;
    return OK;
}

FUNCTION(int, EnterInitializationMode, void* c)
{
    return enter_initialization(c);
}

FUNCTION(int, NewDiscreteStates, void* c, event_info* e)
{
    bool again = false, terminate = false, nominals = false, values = false, has_next = false;
    const int status = update(c, &again, &terminate, &nominals, &values, &has_next, &e->next);
    e->again = again;
    e->terminate = terminate;
    e->nominals = nominals;
    e->values = values;
    e->has_next = has_next;
    return status;
}

FUNCTION(int, CompletedIntegratorStep, void* c, int no_rollback, int* enter, int* terminate)
{
    (void)no_rollback;
    bool e = false, t = false;
    const int status = completed(c, &e, &t);
    *enter = e;
    *terminate = t;
    return status;
}

#endif

#if FMI <= 2
FUNCTION(int, GetDerivatives, void* c, double* dx, size_t n)
{
    return get_derivatives(c, dx, n);
}

FUNCTION(int, GetReal, void* c, const uint32_t* refs, size_t n, double* values)
{
    for (size_t j = 0; j < n; j++) {
        get_real(c, refs[j], &values[j]);
    }
    return OK;
}

FUNCTION(int, SetReal, void* c, const uint32_t* refs, size_t n, const double* values)
{
    for (size_t j = 0; j < n; j++) {
        if (set_real(c, refs[j], values[j]) != OK) { return ERROR; }
    }
    return OK;
}

FUNCTION(int, GetInteger, void* c, const uint32_t* refs, size_t n, int* values)
{
    for (size_t j = 0; j < n; j++) {
        values[j] = refs[j] == 600 ? ((instance*)c)->k : ((instance*)c)->events;
    }
    return OK;
}

FUNCTION(int, SetInteger, void* c, const uint32_t* refs, size_t n, const int* values)
{
    return n == 1 ? set_integer(c, refs[0], values[0]) : ERROR;
}
#endif

#if FMI == 2
FUNCTION(int, GetDirectionalDerivative, void* c, const uint32_t* unknowns, size_t nu,
         const uint32_t* knowns, size_t nk, const double* seed, double* result)
{
    instance* i = c;
    if (nu != (size_t)i->n || nk != nu || unknowns[0] != 200 || knowns[0] != 100) { return ERROR; }
    return directional(i, seed, result);
}

FUNCTION(int, GetFMUstate, void* c, void** s)
{
    return copy_state(c, s);
}

FUNCTION(int, SetFMUstate, void* c, void* s)
{
    memcpy(c, s, sizeof(instance));
    return OK;
}

FUNCTION(int, FreeFMUstate, void* c, void** s)
{
    (void)c;
    return drop_state(s);
}
#endif

#if FMI == 3
FUNCTION(void*, InstantiateModelExchange, const char* name, const char* token,
         const char* resources, bool visible, bool logging, void* environment, void* log)
{
    (void)name, (void)resources, (void)visible, (void)logging, (void)environment, (void)log;
    return make(token);
}

FUNCTION(int, EnterConfigurationMode, void* c)
{
    return go(c, INSTANTIATED, CONFIGURATION);
}

FUNCTION(int, ExitConfigurationMode, void* c)
{
    return go(c, CONFIGURATION, INSTANTIATED);
}

FUNCTION(int, SetUInt64, void* c, const uint32_t* refs, size_t n, const uint64_t* values, size_t nv)
{
    instance* i = c;
    if (n != 1 || nv != 1 || refs[0] != 700 || i->mode != CONFIGURATION || values[0] > MOST) {
        return ERROR;
    }
    i->n = (int)values[0];
    return OK;
}

FUNCTION(int, EnterInitializationMode, void* c, bool has_tolerance, double tolerance, double start,
         bool has_stop, double stop)
{
    (void)has_tolerance, (void)tolerance;
    ((instance*)c)->t = ((instance*)c)->completed = start;
    ((instance*)c)->stop = has_stop ? stop + 1e-9 : INFINITY;
    return enter_initialization(c);
}

FUNCTION(int, UpdateDiscreteStates, void* c, bool* again, bool* terminate, bool* nominals,
         bool* values, bool* has_next, double* next)
{
    return update(c, again, terminate, nominals, values, has_next, next);
}

FUNCTION(int, CompletedIntegratorStep, void* c, bool no_rollback, bool* enter, bool* terminate)
{
    (void)no_rollback;
    return completed(c, enter, terminate);
}

FUNCTION(int, GetContinuousStateDerivatives, void* c, double* dx, size_t n)
{
    return get_derivatives(c, dx, n);
}

FUNCTION(int, GetNumberOfContinuousStates, void* c, size_t* n)
{
    *n = (size_t)((instance*)c)->n;
    return OK;
}

FUNCTION(int, GetNumberOfEventIndicators, void* c, size_t* n)
{
    *n = (size_t)((instance*)c)->model->nz;
    return OK;
}

// States may be one array: then reference 100 has them all.
FUNCTION(int, GetFloat64, void* c, const uint32_t* refs, size_t n, double* values, size_t nv)
{
    const instance* i = c;
    if (n == 1 && refs[0] == 100 && nv > 1) {
        if (nv != (size_t)i->n) { return ERROR; }
        memcpy(values, i->x, nv * sizeof *values);
        return OK;
    }
    for (size_t j = 0; j < n && j < nv; j++) {
        get_real(c, refs[j], &values[j]);
    }
    return n == nv ? OK : ERROR;
}

FUNCTION(int, SetFloat64, void* c, const uint32_t* refs, size_t n, const double* values, size_t nv)
{
    for (size_t j = 0; j < n; j++) {
        if (set_real(c, refs[j], values[j]) != OK) { return ERROR; }
    }
    return n == nv ? OK : ERROR;
}

FUNCTION(int, GetInt32, void* c, const uint32_t* refs, size_t n, int32_t* values, size_t nv)
{
    for (size_t j = 0; j < n; j++) {
        values[j] = refs[j] == 600 ? ((instance*)c)->k : ((instance*)c)->events;
    }
    return n == nv ? OK : ERROR;
}

FUNCTION(int, SetInt32, void* c, const uint32_t* refs, size_t n, const int32_t* values, size_t nv)
{
    return n == 1 && nv == 1 ? set_integer(c, refs[0], values[0]) : ERROR;
}

FUNCTION(int, GetDirectionalDerivative, void* c, const uint32_t* unknowns, size_t nu,
         const uint32_t* knowns, size_t nk, const double* seed, size_t n_seed, double* result,
         size_t n_result)
{
    instance* i = c;
    if (n_seed != (size_t)i->n || n_result != n_seed || nu != nk || unknowns[0] != 200 ||
        knowns[0] != 100) {
        return ERROR;
    }
    return directional(i, seed, result);
}

FUNCTION(int, GetFMUState, void* c, void** s)
{
    return copy_state(c, s);
}

FUNCTION(int, SetFMUState, void* c, void* s)
{
    memcpy(c, s, sizeof(instance));
    return OK;
}

FUNCTION(int, FreeFMUState, void* c, void** s)
{
    (void)c;
    return drop_state(s);
}
#endif
