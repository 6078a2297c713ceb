// Conformance between its files: cases.c is the table of scripts, conform.c goes through them,
// play.c has requests and answers, choose.c what a description has for them.
#pragma once
#include "shared/dcp.h"
#include "shared/dcptools_query.h"

// What a step of a script does.
typedef enum crdi_conform_op {
    CRDI_END,
    CRDI_GO,      // to `state`, by requests that are right
    CRDI_CONFIG,  // the usual configuration without the parts in `without`
    CRDI_ASK,     // a request of `type`, with what is bent about it, and its answer
    CRDI_SWEEP,   // every request that this state does not allow; those that it allows with a
                  // state_id that is not the slave's
    CRDI_LENGTHS, // every request one byte too long, and one too short
    CRDI_RAW,     // bytes that are no request: dropped without a word
    CRDI_DATA,    // DAT of `type` with sequence id `number`
    CRDI_STATE,   // it is in `state` and says so
    CRDI_NOTIFY,  // it goes to `state` by itself, through ERRORHANDLING if that is an error
    CRDI_OUTPUT,  // `number` DATs of the output group have come since the last state change
    CRDI_SILENT,  // none has
    CRDI_PAUSE,   // for `number` ms; with heartbeats unless `without`
    CRDI_SEQ,     // the next sequence id is `number`
    CRDI_COUNTED, // behind CFG_clear or STC_reset it has not gone back to the id of STC_register
} crdi_conform_op;

typedef enum crdi_conform_want {
    CRDI_ACK,
    CRDI_NACK,      // with `code`
    CRDI_STATE_ACK, // with the present state
    CRDI_ERROR_ACK, // with `code`
    CRDI_LOG_ACK,   // with entries that are whole
    CRDI_DROPPED,   // no answer
} crdi_conform_want;

// What is not as it should be about a request.
enum {
    CRDI_X_UUID = 1 << 0,
    CRDI_X_OP_MODE = 1 << 1,
    CRDI_X_MAJOR = 1 << 2,
    CRDI_X_MINOR = 1 << 3,
    CRDI_X_VR = 1 << 4,        // of no variable
    CRDI_X_CAUSALITY = 1 << 5, // vr of a variable of another causality
    CRDI_X_FIXED = 1 << 6,     // vr of a parameter that is not tunable
    CRDI_X_TYPE = 1 << 7,      // source data type that does not convert
    CRDI_X_RESOLUTION = 1 << 8,
    CRDI_X_PORT = 1 << 9, // that the description does not list
    CRDI_X_TRANSPORT = 1 << 10,
    CRDI_X_PAST = 1 << 11,      // start time
    CRDI_X_FUTURE = 1 << 12,    // start time, two seconds from now
    CRDI_X_LONG_TEXT = 1 << 13, // a string beyond its maxSize
    CRDI_X_CATEGORY = 1 << 14,
    CRDI_X_NUMBER = 1 << 15, // steps, scope, log level and mode as in `number`
    CRDI_X_POS = 1 << 16,    // pos 2, which leaves a gap
    CRDI_X_SEQ = 1 << 17,    // sequence id ahead by `number`
    CRDI_X_RECEIVER = 1 << 18,
    CRDI_X_STATE = 1 << 19,
    CRDI_X_LONGER = 1 << 20, // by a byte
    CRDI_X_SHORTER = 1 << 21,
    CRDI_X_REPEATED = 1 << 22, // sequence id of the request before
};

// What CRDI_CONFIG sends, in this order.
enum {
    CRDI_P_RESOLUTION = 1 << 0,
    CRDI_P_OUTPUT = 1 << 1,
    CRDI_P_STEPS = 1 << 2,
    CRDI_P_OUTPUT_SCOPE = 1 << 3,
    CRDI_P_TARGET = 1 << 4,
    CRDI_P_INPUT = 1 << 5,
    CRDI_P_INPUT_SCOPE = 1 << 6,
    CRDI_P_SOURCE = 1 << 7,
    CRDI_P_TUNABLE = 1 << 8,
    CRDI_P_TUNABLE_SOURCE = 1 << 9,
    CRDI_P_INPUTS = CRDI_P_INPUT | CRDI_P_INPUT_SCOPE | CRDI_P_SOURCE,
    CRDI_P_OUTPUTS = CRDI_P_OUTPUT | CRDI_P_STEPS | CRDI_P_OUTPUT_SCOPE | CRDI_P_TARGET,
    CRDI_P_ALL = (1 << 10) - 1,
};

// What a description must have for a case, and why the case is skipped where it has not. ERROR is a
// way into the Error superstate, OUTPUT_STEPS are steps that the output does not allow.
// clang-format off
#define CRDI_CONFORM_NEEDS(X) \
    X(OUTPUT, "no output that is a scalar number, or canAcceptConfigPdus is false") \
    X(INPUT, "no input that is a scalar number, or canAcceptConfigPdus is false") \
    X(TUNABLE, "no tunable parameter that is a scalar number") \
    X(PARAMETER, "no parameter that is a scalar number") \
    X(FIXED, "no fixed parameter that is a scalar number") \
    X(TEXT, "no string parameter with a maxSize up to 900") \
    X(MISSED, "no input with maxConsecMissedPdus up to 1000") \
    X(ERROR, "no way into the Error superstate: neither maxConsecMissedPdus nor a heartbeat up to 10 s") \
    X(HEARTBEAT, "no heartbeat up to 10 s") \
    X(RESET, "canHandleReset is false") \
    X(NO_RESET, "canHandleReset is true") \
    X(LOG, "no log is provided") \
    X(NO_LOG, "a log is provided") \
    X(LOG_REQUEST, "canProvideLogOnRequest is false") \
    X(NO_LOG_REQUEST, "canProvideLogOnRequest is true") \
    X(LOG_NOTIFICATION, "canProvideLogOnNotification is false") \
    X(NO_LOG_NOTIFICATION, "canProvideLogOnNotification is true") \
    X(FREE_RESOLUTION, "the time resolution is fixed") \
    X(FIXED_STEPS, "canHandleVariableSteps is true, or there is only one number of steps") \
    X(MOST_STEPS, "any number of steps is allowed") \
    X(OUTPUT_STEPS, "the output may have any number of steps") \
    X(OTHER_PORT, "every port is listed") \
    X(CONFIG, "canAcceptConfigPdus is false") \
    X(NO_CONFIG, "canAcceptConfigPdus is true") \
    X(PARAMETER_PORT, "every port for parameters is listed")
// clang-format on
#define CRDI_CONFORM_INDEX(name, text) CRDI_NEED_##name,
enum { CRDI_CONFORM_NEEDS(CRDI_CONFORM_INDEX) CRDI_N_COUNT };
#define CRDI_CONFORM_BIT(name, text) CRDI_N_##name = 1 << CRDI_NEED_##name,
enum { CRDI_CONFORM_NEEDS(CRDI_CONFORM_BIT) };
extern const char* const crdi_conform_needs[CRDI_N_COUNT]; // why a case is skipped

enum { CRDI_ALSO_ANY = 0xFFFF }; // code

typedef struct crdi_conform_step {
    uint8_t op, type, want, state;
    uint8_t category;
    uint16_t id;   // data_id or param_id, 0: the usual one
    uint16_t code; // wanted
    uint16_t also; // code that the standard leaves open, 0: none
    uint32_t bent, without, number;
    const char* raw; // hexadecimal
} crdi_conform_step;

enum { CRDI_IN_NRT = 1, CRDI_IN_REAL_TIME = 2 }; // modes of a case, 0: any

typedef struct crdi_conform_case {
    const char *id, *done, *prescribed;
    uint32_t needs;
    uint8_t modes;
    bool risky;
    const crdi_conform_step* steps;
} crdi_conform_case;
extern const crdi_conform_case crdi_conform_cases[];
extern const int crdi_conform_case_count;
/// Section and table of DCP 1.0 that a case is about.
const char* crdi_conform_clause(const char* id);

// Data ids of the usual configuration.
enum { CRDI_CONFORM_OUT = 10, CRDI_CONFORM_IN = 20, CRDI_CONFORM_TUNE = 30 };

// ---- the player --------------------------------------------------------------------------------

enum { CRDI_CONFORM_STATES = 64, CRDI_CONFORM_BYTES = 2048 };

// What of the description the scripts are about.
typedef struct crdi_conform_choice {
    const crd_dcp_variable *output, *input, *tunable, *parameter, *fixed, *text; // NULL: none
    uint32_t numerator, denominator;
    uint16_t data_port, tune_port;           // of the slave
    uint16_t other_port, other_tune_port;    // not listed, 0: none
    uint8_t transport, other_transport;      // of control; not offered
    uint32_t other_steps;                    // of STC_do_step, allowed and not the default
    uint64_t no_vr, output_like, input_like; // of nobody; of others than inputs and outputs
    double heartbeat;                        // s, INFINITY
    uint32_t have;                           // CRDI_N_...
} crdi_conform_choice;

typedef struct crdi_conform_player {
    crd_dcp_net* net;
    crd_dcp_address control;
    const crd_dcp_description* d;
    const crdi_dcp_conform_options* opt;
    crdi_conform_choice choice;

    // the session
    crd_dcp_op_mode mode;
    crd_dcp_state state, from_run; // STC_do_step left that
    uint16_t seq, registered;      // of the next request, of STC_register
    bool may_rewind, rewound; // behind CFG_clear and STC_reset some slaves count from STC_register
    bool configured;
    bool mute;   // no heartbeats
    double beat; // when the last one was sent
    uint16_t beat_seq;

    // what has come
    bool waiting, answered;
    uint16_t waiting_seq;
    crdi_dcp_pdu answer, stray; // to the request; to something else
    int stray_count, empty_count;
    bool hasty; // a notification came before the answer
    uint8_t states[CRDI_CONFORM_STATES];
    int state_count;
    int data_count;
    bool data_wrong; // length or order of sequence ids
    bool has_data_seq;
    uint16_t data_seq;
    uint8_t answer_bytes[CRDI_CONFORM_BYTES]; // its payload

    uint8_t payload[CRDI_CONFORM_BYTES]; // of what is sent
    uint8_t out[CRDI_CONFORM_BYTES];
    crdi_dcp_conform_result* r;
    bool silent; // something did not come: perhaps it was lost
    bool cancelled;
} crdi_conform_player;

// play.c
void crdi_conform_receive(crdi_conform_player* p);
/// Heartbeats go on meanwhile. false: cancelled, or the time is over.
bool crdi_conform_wait(crdi_conform_player* p, double until);
/// false: there is no way to send.
bool crdi_conform_send(crdi_conform_player* p, const crd_dcp_address* to, const uint8_t* bytes,
                       size_t n);
/// A request that is right: with the next sequence id, and what the description says.
crdi_dcp_pdu crdi_conform_request(crdi_conform_player* p, uint8_t type);
/// Sends a request, `longer` bytes longer than it should be, and waits for the answer.
bool crdi_conform_ask(crdi_conform_player* p, crdi_dcp_pdu* q, int longer);
/// Notifies of these states one after the other.
bool crdi_conform_states(crdi_conform_player* p, const uint8_t* states, int count);
/// The states behind an STC that was acknowledged.
bool crdi_conform_follow(crdi_conform_player* p, uint8_t type);
bool crdi_conform_configure(crdi_conform_player* p, uint32_t without);
bool crdi_conform_go(crdi_conform_player* p, crd_dcp_state to);
bool crdi_conform_data(crdi_conform_player* p, uint8_t type, uint16_t id, uint16_t seq, int longer);
/// Into the Error superstate.
bool crdi_conform_upset(crdi_conform_player* p);
/// Back to ALIVE from wherever it is.
bool crdi_conform_home(crdi_conform_player* p);
/// The verdict, unless it is FAIL already.
bool crdi_conform_fail(crdi_conform_player* p, const char* format, ...) CRD_PRINTF(2, 3);
/// What the standard leaves open.
void crdi_conform_differ(crdi_conform_player* p, const char* format, ...) CRD_PRINTF(2, 3);
void crdi_conform_note(crdi_conform_player* p, const char* format, ...) CRD_PRINTF(2, 3);
/// "RSP_nack INVALID_UUID", "nothing".
const char* crdi_conform_words(const crdi_dcp_pdu* a, char out[80]);
bool crdi_conform_supports(const crdi_conform_player* p, uint8_t type);

// choose.c
void crdi_conform_choose(crdi_conform_choice* c, const crd_dcp_description* d,
                         const crd_dcp_address* control, uint16_t data_port);
