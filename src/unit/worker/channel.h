// What a master and a worker process share: one block of memory, a ring of requests in it.
//
//   control | ring of requests | message area | areas of units and of bindings, as they come
//
// The master writes requests in order and raises the number of a slot last; the worker carries them
// out in this order and answers each in the line of its unit. The next request is in the same slot,
// where the line is at hand, if all before are answered, else in the next one. Values of a binding
// lie in an area of their own. Nothing that the worker writes is trusted: the master knows from its
// own memory where areas are and how long, and reads a number once.
#pragma once
#include <stdatomic.h>

#include "shared/unit.h"

enum {
    CRDI_CHANNEL_LAYOUT = 1,    // raised when one of these structs or operations changes
    CRDI_CHANNEL_FD = 3,        // the memory
    CRDI_CHANNEL_SLOTS = 256,   // a power of two
    CRDI_CHANNEL_LINE = 64,     // bytes of a cache line
    CRDI_CHANNEL_TEXT = 4096,   // of a sentence
    CRDI_CHANNEL_LOG = 1 << 18, // bytes of log lines on their way
    CRDI_CHANNEL_ORDERS = CRD_MODEL_MAX_ORDER,
    CRDI_CHANNEL_GAINS = 8, // of a unit, fetched after each step
    CRDI_FEW_INPUTS = 3,    // of a row, which lie in its request and its answer
    CRDI_FEW_OUTPUTS = 5,
};
// Address space, not memory: pages are there when they are touched.
#define CRDI_CHANNEL_BYTES ((size_t)1 << 30)
#define CRDI_CHANNEL_MESSAGE ((size_t)1 << 28)

// What a request asks for: the table of functions of a unit, and what goes with it.
#define CRDI_CHANNEL_OPS(X)                                                                        \
    X(SHUT_IN, "enter its sandbox")                                                                \
    X(CREATE, "create")                                                                            \
    X(INSTANTIATE, "instantiate")                                                                  \
    X(ENTER, "enter its initialisation")                                                           \
    X(EXIT, "leave its initialisation")                                                            \
    X(BIND, "prepare its values")                                                                  \
    X(UNBIND, "prepare its values")                                                                \
    X(WATCH, "prepare its values")                                                                 \
    X(GAIN, "prepare its values")                                                                  \
    X(SET, "set its inputs")                                                                       \
    X(GET, "get its outputs")                                                                      \
    X(RATES, "get derivatives of its outputs")                                                     \
    X(STEP, "step")                                                                                \
    X(SEAT, "prepare its values")                                                                  \
    X(ROW, "step")                                                                                 \
    X(SAVE, "save its state")                                                                      \
    X(RESTORE, "restore its state")                                                                \
    X(FREE, "free its state")                                                                      \
    X(KEEP, "save its state")                                                                      \
    X(RESUME, "restore its state")                                                                 \
    X(DIRECTIONAL, "get directional derivatives")                                                  \
    X(LINEARISE, "get its derivatives")                                                            \
    X(TERMINATE, "terminate")                                                                      \
    X(DESTROY, "free its instance")
#define CRDI_CHANNEL_ENUM(name, text) CRDI_OP_##name,
typedef enum crdi_channel_op { CRDI_CHANNEL_OPS(CRDI_CHANNEL_ENUM) CRDI_OP_COUNT } crdi_channel_op;
#undef CRDI_CHANNEL_ENUM

// A request, one cache line. `number` is written last.
typedef struct crdi_request {
    _Atomic uint32_t number;
    uint16_t op;    // crdi_channel_op
    int16_t order;  // SET, STEP: derivatives of inputs that follow; RATES: which; ROW: see below
    uint32_t unit;  // index in the worker
    int32_t handle; // binding (-1: none) or saved state
    double t, h;
    uint64_t length; // bytes of the message; ROW: seats, from number `handle` on
    union {
        uint64_t area; // BIND: offset of the values; CREATE: of the unit's line; WATCH: what
        double few[CRDI_FEW_INPUTS]; // ROW
    };
} crdi_request;
_Static_assert(sizeof(crdi_request) == CRDI_CHANNEL_LINE, "a request is a cache line");

// `order` of a row whose values are few; 0: they are not.
static inline int16_t crdi_row_order(int inputs, int outputs)
{
    return (int16_t)(1 + inputs + 8 * outputs);
}

enum { CRDI_SET_VALUES, CRDI_SET_RATES, CRDI_SET_TEXTS }; // `area` of SET and STEP

// Of those that are not, a failure comes out with the next of the unit.
static inline bool crdi_request_is_answered(const crdi_request* r)
{
    return !(r->op == CRDI_OP_WATCH || r->op == CRDI_OP_GAIN || r->op == CRDI_OP_SAVE ||
             r->op == CRDI_OP_RESTORE || r->op == CRDI_OP_FREE ||
             (r->op == CRDI_OP_SET && r->area != CRDI_SET_TEXTS));
}

enum { CRDI_WANTS_STOP = 1, CRDI_FETCHED = 2, CRDI_LOOK = 4 };

// The answer of a unit, one cache line; its sentence lies behind it. A row has one for all: with
// CRDI_LOOK, or when it has failed, those of its units have news.
typedef struct crdi_answer {
    _Atomic uint32_t number; // of the request that it answers, written last
    _Atomic uint32_t waited; // by the master: somebody sleeps until it changes
    int32_t status;
    uint32_t flags;
    uint32_t log;    // bytes of log lines written
    uint32_t length; // of the sentence
    union {
        struct {
            int64_t events;
            double next_event;
            uint64_t result;  // bytes of the message, SAVE: nothing
            uint64_t step_ns; // that a step takes, 0: not known
        };
        double few[CRDI_FEW_OUTPUTS]; // of a row
    };
} crdi_answer;
_Static_assert(sizeof(crdi_answer) == CRDI_CHANNEL_LINE, "an answer is a cache line");

typedef struct crdi_control {
    // by the master
    uint32_t layout;
    uint32_t log_level;
    int32_t master; // its process
    _Atomic uint32_t log_read;
    _Alignas(CRDI_CHANNEL_LINE) _Atomic int64_t spin_ns; // how long to look before sleeping
    // by the worker
    _Alignas(CRDI_CHANNEL_LINE) crdi_answer row;
    _Alignas(CRDI_CHANNEL_LINE) _Atomic uint32_t asleep;
    _Atomic uint32_t bell; // by the master: counts how often it has woken the worker up
    _Alignas(CRDI_CHANNEL_LINE) _Atomic uint32_t taken; // number of the request that is carried out
    _Atomic uint32_t unit;                              // whose it is
    _Atomic uint32_t log_written;
    // what a handler of a signal, or of exit, leaves: the function that the FMU was in
    char call[64];
    _Alignas(CRDI_CHANNEL_LINE) crdi_request ring[CRDI_CHANNEL_SLOTS];
    char
        log[CRDI_CHANNEL_LOG]; // {u32 level, u32 length, text} one behind the other, around the end
} crdi_control;

// Equal only for two programs of one build, or of builds that agree.
static inline uint32_t crdi_channel_layout(void)
{
    uint32_t hash = CRDI_CHANNEL_LAYOUT + (uint32_t)sizeof(crdi_control);
    hash = hash * 31 + (uint32_t)sizeof(crd_unit_spec);
    for (const char* p = crd_version(); *p; p++) {
        hash = hash * 31 + (uint32_t)*p;
    }
    return hash;
}

// Where the message area and what follows it begin.
static inline size_t crdi_channel_message_at(void)
{
    return (sizeof(crdi_control) + 4095) & ~(size_t)4095;
}

static inline size_t crdi_channel_areas_at(void)
{
    return crdi_channel_message_at() + CRDI_CHANNEL_MESSAGE;
}

// ---- values of a binding -----------------------------------------------------------------------
//
//   doubles (n) | integers (m) | derivatives, order 1 and 2 (2 n), without gaps: few cache lines
// Texts and binaries travel as a message: {u64 length, bytes} each.

static inline size_t crdi_channel_round(size_t bytes)
{
    return (bytes + CRDI_CHANNEL_LINE - 1) & ~(size_t)(CRDI_CHANNEL_LINE - 1);
}

typedef struct crdi_channel_area {
    double* real;
    int64_t* integer;
    double* rate[CRDI_CHANNEL_ORDERS];
} crdi_channel_area;

static inline crdi_channel_area crdi_channel_area_at(char* memory, size_t at, const crd_binding* b)
{
    crdi_channel_area a;
    a.real = (double*)(memory + at);
    a.integer = (int64_t*)(a.real + b->real_count);
    for (int k = 0; k < CRDI_CHANNEL_ORDERS; k++) {
        a.rate[k] = (double*)(a.integer + b->integer_count) + (size_t)k * (size_t)b->real_count;
    }
    return a;
}

static inline size_t crdi_channel_area_bytes(const crd_binding* b)
{
    return (1 + CRDI_CHANNEL_ORDERS) * (size_t)b->real_count * sizeof(double) +
           (size_t)b->integer_count * sizeof(int64_t);
}

// A derivative of one variable with respect to another, fetched after each step. GAIN has its
// number in `handle`, the seed in `t`, and `area` is where the values of all of them are; -1: no
// more.

typedef struct crdi_channel_gain {
    int32_t unknown, known; // `length`: both
    double seed;
} crdi_channel_gain;

// ---- seats -------------------------------------------------------------------------------------
//
// A unit that is stepped in a row with others has a seat: its real inputs and outputs, without gaps
// between the units, so that few cache lines change hands. SEAT has this message.

typedef struct crdi_channel_seat {
    int32_t in, out;        // handles of bindings, -1: none
    uint64_t in_at, out_at; // offsets of the values
} crdi_channel_seat;

// ---- messages ----------------------------------------------------------------------------------

// Writes and reads what does not fit into a request; remembers its first overflow.
typedef struct crdi_mail {
    char* at;
    size_t left;
    bool failed;
} crdi_mail;

void crdi_mail_put(crdi_mail* m, const void* bytes, size_t length);
const void* crdi_mail_get(crdi_mail* m, size_t length); // NULL: there is not so much
void crdi_mail_put_u64(crdi_mail* m, uint64_t x);
uint64_t crdi_mail_get_u64(crdi_mail* m);
void crdi_mail_put_number(crdi_mail* m, double x);
double crdi_mail_get_number(crdi_mail* m);
void crdi_mail_put_text(crdi_mail* m, const char* text); // NULL: ""
const char* crdi_mail_get_text(crdi_mail* m);            // "" after a failure
void crdi_mail_put_bytes(crdi_mail* m, const crd_bytes* values, int32_t count);
crd_status crdi_mail_get_bytes(crdi_mail* m, crd_context* ctx, crd_bytes* values, int32_t count);

// ---- waiting -----------------------------------------------------------------------------------

// Where there are more processes than cores whoever looks lets others run in between, and soon
// sleeps.
static inline bool crdi_channel_is_crowded(int64_t spin_ns)
{
    return spin_ns < 10000;
}

// With a barrier: whoever then sees nobody asleep is seen by who goes to sleep. It costs nothing,
// as the store leaves the processor the sooner for it.
static inline void crdi_channel_raise(_Atomic uint32_t* number, uint32_t value)
{
    atomic_exchange(number, value);
}

// What is looked at: a number, which may come at one of two places, and the values that are read as
// soon as it is there, the first line of which comes along. Never NULL.
typedef struct crdi_channel_look {
    _Atomic uint32_t *number, *other;
    uint32_t wanted;
    const char* values;
    int64_t most; // ns
} crdi_channel_look;

// true once the number is as wanted. Where looking was in vain, which `*vain` counts, the other
// side takes long or wants this very core: then both sleep at once, which hands it over, until
// looking is tried again.
bool crdi_channel_spin(const crdi_channel_look* l, uint32_t* vain);
static inline bool crdi_channel_is_cold(uint32_t vain)
{
    return vain >= 3;
}

// Who sleeps says so, and sleeps while `*word` is what it was. The word changes with the number, or
// by who wakes the sleeper up. While it is cold the sleeper says so all the time.
typedef struct crdi_channel_bed {
    _Atomic uint32_t *asleep, *word;
} crdi_channel_bed;
void crdi_channel_sleep(const crdi_channel_look* l, const crdi_channel_bed* b, int64_t ns);
void crdi_channel_wake(_Atomic uint32_t* word);
