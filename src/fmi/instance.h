// One instance of an FMU, for the files that drive it: instance.c makes it, calls.c walks it
// through its states, values.c moves values, log.c words what it says; version1.c has what FMI 1.0
// does in a way of its own.
#pragma once
#include <stdatomic.h>

#include "fmi/fmu_internal.h"
#include "fmi/foreign.h"
#include "fmi/states.h"

enum {
    CRDI_FMI_TEXT = 2048,   // bytes of a message that are kept
    CRDI_FMI_WORDINGS = 32, // of warnings that are told
};

// What an FMU has said, by log.c.
typedef struct crdi_fmi_said {
    char text[CRDI_FMI_TEXT];        // the last message of Warning level or worse
    uint64_t warned[CRDI_FMI_WORDS]; // functions whose Warning has been told
    uint64_t wordings[CRDI_FMI_WORDINGS];
    int wording_count;
    bool full; // has been told
} crdi_fmi_said;

// FMI 1.0: what is known before its one call that initialises, and what that and events gave.
typedef struct crdi_fmi1_part {
    bool has_tolerance, has_stop;
    bool early;    // initialised by the first value that was read, in initialization mode
    bool has_info; // Model Exchange: `info` is that of the initialisation, not yet handed out
    double tolerance, start, stop;
    crdi_fmi1_event_info info;
} crdi_fmi1_part;

struct crd_fmi {
    // The first cache line: all that set, step and get touch.
    void* component;                          // NULL until the FMU gave one
    _Atomic uint64_t allowed[CRDI_FMI_WORDS]; // functions there are and that the state allows
    uint8_t version;                          // crd_fmi_version
    _Atomic uint8_t last_call;                // function number, read when the FMU crashed
    uint8_t state;                            // crd_fmi_state, changed by crdi_fmi_set_state only
    bool event_mode;                          // FMI 3, agreed at instantiation
    bool exchange;                            // Model Exchange, else Co-Simulation
    atomic_bool fatal;           // also by another instance of the same library, on another thread
    const crdi_fmi_functions* f; // of the library

    crd_fmi_exchange* joined; // has a copy of what a step looks at, NULL: none
    crd_context* ctx;
    const crd_fmu* fmu; // borrowed, outlives the instance
    const crd_fmu_description* d;
    crdi_fmi_library* library; // the FMU's, of the interface that is used
    // what the interface that is used offers
    bool can_get_set_state, can_serialize_state, provides_directional_derivatives;
    bool needs_execution_tool, can_be_instantiated_once;
    bool asked; // inside crd_fmi_try_input_derivatives
    bool registered, float_warned;
    crdi_fmi2_callbacks callbacks; // here because many FMUs keep the pointer
    crdi_fmi1_part* one;           // NULL: not FMI 1

    crd_fmi_logger* logger;
    void* logger_user;
    crd_fmi_intermediate* intermediate;
    void* intermediate_user;

    unsigned char* scratch; // for conversions, grown by reserve
    size_t scratch_capacity;

    crdi_fmi_said* said;
    int text_status; // of the text in `said`, 0: nothing new since the last report
    int speaking;    // messages that are being worded, under the lock of `beside`

    struct crd_fmi *next, *previous; // of the library

    struct crd_fmi* beside; // in the table of those who may speak, under its lock
    char name[];
};

#define CRDI_COLD __attribute__((cold, noinline))

// FMI 2, and FMI 1: both have the numbers and pointers of FMI 2.
static inline bool crdi_fmi_is_two(const crd_fmi* i)
{
    return i->version != CRD_FMI_3;
}

static inline bool crdi_fmi_is_one(const crd_fmi* i)
{
    return i->version == CRD_FMI_1;
}

static inline crdi_fmi_kind crdi_fmi_kind_of(const crd_fmi* i)
{
    return (crdi_fmi_kind){
        .version = i->version, .exchange = i->exchange, .event_mode = i->event_mode};
}

// May the function be called now? One load and a test.
static inline bool crdi_fmi_may(const crd_fmi* i, int function)
{
    const uint64_t set = atomic_load_explicit(&i->allowed[function / 64], memory_order_relaxed);
    return (set >> (function % 64)) & 1;
}

static inline void crdi_fmi_mark(crd_fmi* i, int function)
{
    crdi_fmi_calling = i;
    atomic_store_explicit(&i->last_call, (uint8_t)function, memory_order_relaxed);
    if (i->joined) { __atomic_store_n(&i->joined->call, CRDI_FMI_NO_FUNCTION, __ATOMIC_RELAXED); }
}

// Behind every call: what it did to the floating-point control does not reach others.
static inline void crdi_fmi_left(crd_fmi* i)
{
    if (__builtin_expect(!crdi_float_is_normal(), 0)) { crdi_float_check(i); }
}

void crdi_fmi_set_state(crd_fmi* i, crd_fmi_state state);
// Tells the exchange whether set, step and get are allowed.
void crdi_fmi_tell_joined(crd_fmi* i);
// To the intermediate state inside a step, narrowed to what the FMU asks for.
void crdi_fmi_set_intermediate(crd_fmi* i, bool may_set, bool may_get);
// The FMU said Fatal: no instance of its library is ever called again.
void crdi_fmi_set_fatal(crd_fmi* i);
void crdi_fmi_close_calls(crd_fmi* i); // what that means for one of them

// library.c: loads the library with its first instance, unloads it with the last one. Refuses an
// instance that may not be there beside the others.
crd_status crdi_fmi_library_join(crd_fmi* i);
void crdi_fmi_library_leave(crd_fmi* i, bool unload); // `unload` false: it stays for ever
const char* crdi_fmi_library_name(const crd_fmi* i);  // below the FMU's folder

// Says why a function may not be called: CRD_E_UNSUPPORTED if the library has none, CRD_E_STATE.
CRDI_COLD crd_status crdi_fmi_refuse(crd_fmi* i, int function);

// Where and for what a call was made, for the sentence about its failure.
typedef struct crdi_fmi_place {
    const double* time;       // of a step, or NULL
    const crdi_fmi_ref* refs; // variables, or NULL
    size_t n;
} crdi_fmi_place;

// Ends a call whose status is not OK: logs a Warning and gives CRD_OK, else words the failure,
// moves the state and gives CRD_E_UNIT. Does not take a state's step: that is crdi_fmi_end.
CRDI_COLD crd_status crdi_fmi_judge(crd_fmi* i, int function, crdi_fmi_status status,
                                    const crdi_fmi_place* place);
// Ends a call that may lead to another state.
crd_status crdi_fmi_end(crd_fmi* i, int function, crdi_fmi_status status);

// model_exchange.c: fmi2NewDiscreteStates
crd_status crdi_fmi_new_discrete_states(crd_fmi* i, crd_fmi_update* out);

// version1.c
void* crdi_fmi1_instantiate(crd_fmi* i, const crd_fmi_options* opt);
crd_status crdi_fmi1_initialize(crd_fmi* i);
// Before a value is read: in initialization mode FMI 1 has none, so that it is initialised now.
// Else says why the function may not be called.
CRDI_COLD crd_status crdi_fmi_open(crd_fmi* i, int function);
// Enters a mode that FMI 1 does not know.
crd_status crdi_fmi1_enter(crd_fmi* i, int function);
crdi_fmi_status crdi_fmi1_update_events(crd_fmi* i, crd_fmi_update* out);
crdi_fmi_status crdi_fmi1_completed(crd_fmi* i, bool* event);
crdi_fmi_status crdi_fmi1_get_booleans(crd_fmi* i, const uint32_t* refs, size_t n, char* values);
crdi_fmi_status crdi_fmi1_set_booleans(crd_fmi* i, const uint32_t* refs, size_t n,
                                       const char* values);

// For the FMU: as calloc and free, of the C library, as it calls them from any thread.
void* crdi_fmi_allocate(size_t count, size_t size);
void crdi_fmi_release(void* p);

// What the FMU calls.
crdi_fmi1_logger crdi_fmi1_log;
crdi_fmi2_logger crdi_fmi2_log;
crdi_fmi3_logger crdi_fmi3_log;
crdi_fmi3_intermediate crdi_fmi3_update;

// Takes the last message of Warning level or worse since the last report. "" if there was none.
void crdi_fmi_take_text(crd_fmi* i, char out[CRDI_FMI_TEXT]);
