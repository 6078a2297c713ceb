// The master between its files: master.c has the plan and the slots, config.c lays it out and says
// it in CFG PDUs, control.c sends requests, answers.c takes answers, data.c sends and takes values,
// log.c puts log entries into words, run.c goes from phase to phase.
#pragma once
#include "cardan/dcp.h"
#include "shared/dcp.h"

enum {
    CRDI_DCP_OUTBOX = 16,   // requests that wait or are on their way
    CRDI_DCP_WINDOW = 8,    // of them on their way over a stream
    CRDI_DCP_SHORT = 24,    // bytes of every request but CFG_parameter
    CRDI_DCP_REASON = 400,  // of a sentence
    CRDI_DCP_RENEWALS = 40, // of a sequence id, until the slave counts as one that makes no sense
    CRDI_DCP_REFUSALS = 20  // of one change of state because of where the slave is
};

typedef struct crdi_dcp_request {
    uint8_t small[CRDI_DCP_SHORT];
    uint8_t* bytes; // of a longer one (layout), else NULL
    uint32_t length;
    uint16_t seq;
    bool flying;
    int tries;    // sendings with this sequence id
    int renewals; // of the sequence id
    int bundle;   // of network information, -1
    double begun, sent;
} crdi_dcp_request;

/// A change of state. `from` -> request -> `via` -> `to`.
typedef enum crdi_dcp_stage {
    CRDI_IDLE,
    CRDI_NEED,   // the slave is not known to be in `from`
    CRDI_ASKED,  // the request is on its way
    CRDI_UNSURE, // it has got there, but what became of it is not known: INF_state tells
    CRDI_ACKED   // until `to` is reached
} crdi_dcp_stage;

typedef struct crdi_dcp_operation {
    crdi_dcp_stage stage;
    uint8_t type; // STC, 0: only wait for `to`
    crd_dcp_state from, via, to;
    uint32_t steps;
    int64_t time;
    int refusals;
    crd_dcp_error code; // of the last one
    double until;       // its end at the latest
    double poll, pause; // when the state is asked for, how long until the next time
} crdi_dcp_operation;

typedef struct crdi_dcp_peer crdi_dcp_peer;
/// Called while no operation is under way. true: it is reached; false: an operation has begun, or
/// something else is waited for.
typedef bool crdi_dcp_aim(crd_dcp_master* m, crdi_dcp_peer* p);

struct crdi_dcp_peer {
    int index;
    crd_dcp_slave_spec spec;
    const crd_dcp_description* d;
    const crd_dcp_endpoint* endpoint;
    crdi_dcp_value* values; // (variable_count)
    bool* is_set;           // (variable_count) by crd_dcp_master_set
    uint8_t own_id, id;     // ours; the one it has now, of an earlier session perhaps
    uint32_t local_ip;      // ours as it sees it
    double resolution;
    crd_dcp_slave_status status;

    bool known;      // its state
    bool contacting; // nothing has come from it
    bool touched;    // it has been asked for more than its state: has to be brought down
    bool registered, prepared, going_down, failed;
    bool error_asked;
    int errors_refused; // INF_error that found no error
    int doubts;         // answers in a row that say it is where it should not be
    double contact_until;
    char reason[CRDI_DCP_REASON];
    char logged[CRDI_DCP_REASON / 2]; // its last log entry that is an error

    uint16_t seq; // of the next request
    int window, retries;
    double timeout; // s until a request is sent again
    crdi_dcp_request outbox[CRDI_DCP_OUTBOX];
    int outbox_count;
    crdi_dcp_operation op;
    crdi_dcp_aim* aim;
    int phase;         // of the aim
    int detours;       // of an aim that leads down
    double data_until; // of an aim that waits for data

    crdi_dcp_request* script; // (layout)
    int script_count, script_next;
    uint32_t first_steps; // of a run, 0: none yet

    double beat, beat_pause;    // next INF_state
    uint8_t log_mode;           // 0, 1 on request, 2 on notification
    double log_at;              // next INF_log
    int log_category;           // index of the category that is asked for next
    int logs_empty, logs_asked; // answers without an entry, questions, on the way down
    double due;
    int *feeds, *watches, *tunes; // indices of bundles (layout)
    int feed_count, watch_count, tune_count;
};

typedef enum crdi_dcp_kind { CRDI_FEED, CRDI_WATCH, CRDI_TUNE, CRDI_DIRECT } crdi_dcp_kind;

typedef struct crdi_dcp_relayed {
    const crd_dcp_slot* from;
    const crd_dcp_slot* to;
    int bundle; // that has the input
} crdi_dcp_relayed;

/// What travels under one data_id or param_id.
typedef struct crdi_dcp_bundle {
    uint16_t id; // its index + 1, or what a file says
    crdi_dcp_kind kind;
    int slave; // FEED, TUNE: gets it; WATCH, DIRECT: sends it
    int to;    // DIRECT: gets it
    int group; // TUNE
    uint32_t steps;
    int *variables, *inputs; // (count) inputs: of DIRECT
    int count;
    crd_dcp_address address; // where it arrives
    int port_tries;
    crd_dcp_slot* slots; // joined
    uint8_t* types;
    int slot_count;
    uint8_t* pdu; // FEED, TUNE, (room)
    size_t room;
    uint16_t seq; // of the next one out
    crdi_dcp_sequence arrived;
    uint16_t next; // the least one in that is of this turn
    bool has_next;
    bool due; // a relay has written into it
    crdi_dcp_relayed* relays;
    int relay_count;
} crdi_dcp_bundle;

typedef struct crdi_dcp_wish {
    crdi_dcp_kind kind;
    int slave, count, group;
    int* variables; // (count)
    uint32_t steps;
} crdi_dcp_wish;

typedef struct crdi_dcp_route {
    int from, output, to, input;
    uint32_t steps;
    bool* answer; // where `direct` shall be told, NULL
    bool direct;
} crdi_dcp_route;

typedef enum crdi_dcp_progress { CRDI_PLANNED, CRDI_READY, CRDI_RUNS } crdi_dcp_progress;

struct crd_dcp_master {
    crd_context* ctx;
    crd_dcp_net* net; // borrowed
    crd_dcp_master_options opt;
    crd_arena arena;  // of the plan
    crd_arena layout; // of the session
    crdi_dcp_progress progress;
    crdi_dcp_peer* peers;
    int count;
    size_t peer_room;
    crdi_dcp_wish* wishes;
    int wish_count;
    size_t wish_room;
    crdi_dcp_route* routes;
    int route_count;
    size_t route_room;
    crdi_dcp_bundle* bundles; // (layout)
    int bundle_count, bundle_room;
    crd_dcp_address udp, tcp; // where data arrive; port 0: not opened
    double now, due;
    double run_lead;
    int64_t run_time;
    int failed;    // the first slave that has, -1
    bool stopping; // from crd_dcp_master_halt or _stop on: who fails now does not end the session
};

// master.c
/// Its elements as the structural parameters stand now; the slots follow.
crd_status crdi_dcp_master_resize(crd_dcp_master* m, crdi_dcp_peer* p);
const char* crdi_dcp_variable_name(const crdi_dcp_peer* p, int variable);

// config.c
crd_status crdi_dcp_master_lay_out(crd_dcp_master* m);
/// With room for so many variables; NULL: out of memory.
crdi_dcp_bundle* crdi_dcp_bundle_new(crd_dcp_master* m, crdi_dcp_kind kind, int slave, int room,
                                     uint32_t steps);
bool crdi_dcp_bundled(const crd_dcp_master* m, crdi_dcp_kind kind, int slave, int variable,
                      int* index);
/// The scripts of all: direct targets only, or everything else.
crd_status crdi_dcp_master_write_scripts(crd_dcp_master* m, bool direct_targets);
/// Another port for this network information; false: there is none left to try.
bool crdi_dcp_master_next_port(crd_dcp_master* m, crdi_dcp_peer* p, crdi_dcp_request* r);

// answers.c
/// Somebody else has sent it in the name of this slave, or of none: 0.
void crdi_dcp_count_foreign(crd_dcp_master* m, uint8_t id);
void crdi_dcp_handle_packet(crd_dcp_master* m, const crd_dcp_packet* packet);

// control.c
/// Names for messages, also of what DCP does not have.
const char* crdi_dcp_code_name(int code);
const char* crdi_dcp_state_word(int state);
const char* crdi_dcp_type_word(int type);
uint8_t crdi_dcp_request_type(const crdi_dcp_request* r);
void crdi_dcp_transmit(crd_dcp_master* m, crdi_dcp_peer* p); ///< what may be on its way and is not
void crdi_dcp_ask_state(crd_dcp_master* m, crdi_dcp_peer* p);
void crdi_dcp_remove_request(crdi_dcp_peer* p, int i);
/// It gets another sequence id: the old one was used up, or is not the one the slave waits for.
void crdi_dcp_renew(crd_dcp_master* m, crdi_dcp_peer* p, int i);
double crdi_dcp_patience(const crd_dcp_master* m, const crdi_dcp_operation* op);
void crdi_dcp_operation_refused(crd_dcp_master* m, crdi_dcp_peer* p, crd_dcp_error code);
/// INF_state says what became of a request.
void crdi_dcp_settle_operation(crd_dcp_master* m, crdi_dcp_peer* p);
void crdi_dcp_wake(crd_dcp_master* m, crdi_dcp_peer* p, double time); ///< not later than then
void crdi_dcp_ask(crd_dcp_master* m, crdi_dcp_peer* p, const crdi_dcp_pdu* pdu);
bool crdi_dcp_asks(const crdi_dcp_peer* p, uint8_t type); ///< whether such a request is under way
const uint8_t* crdi_dcp_request_bytes(const crdi_dcp_request* r);
void crdi_dcp_push(crd_dcp_master* m, crdi_dcp_peer* p, const crdi_dcp_request* r);
void crdi_dcp_begin(crd_dcp_master* m, crdi_dcp_peer* p, uint8_t type, crd_dcp_state from,
                    crd_dcp_state via, crd_dcp_state to);
void crdi_dcp_aim_at(crd_dcp_master* m, crdi_dcp_peer* p, crdi_dcp_aim* aim);
void crdi_dcp_drive(crd_dcp_master* m, crdi_dcp_peer* p);
void crdi_dcp_forget(crdi_dcp_peer* p); ///< what is under way
void crdi_dcp_ask_log(crd_dcp_master* m, crdi_dcp_peer* p);
void crdi_dcp_peer_fail(crd_dcp_master* m, crdi_dcp_peer* p, const char* format, ...)
    CRD_PRINTF(3, 4);
void crdi_dcp_notify(crd_dcp_master* m, crdi_dcp_peer* p, crd_dcp_notice_kind kind,
                     crd_dcp_error error, const char* format, ...) CRD_PRINTF(5, 6);
crd_status crdi_dcp_failure(crd_dcp_master* m); ///< of the first slave that has failed
/// Until the aim of a slave (-1: of all) is reached. `tolerant`: others may fail, and nobody
/// cancels.
crd_status crdi_dcp_pursue(crd_dcp_master* m, int slave, bool tolerant);
/// The same, until `time` on the clock of the net at most.
crd_status crdi_dcp_pursue_until(crd_dcp_master* m, int slave, bool tolerant, double time);
/// What is there and what is due, without waiting.
void crdi_dcp_pump(crd_dcp_master* m);
double crdi_dcp_master_clock(crd_dcp_master* m);

// data.c
crd_status crdi_dcp_bundle_prepare(crd_dcp_master* m, crdi_dcp_bundle* b);
void crdi_dcp_bundle_send(crd_dcp_master* m, crdi_dcp_bundle* b);
void crdi_dcp_master_take(crd_dcp_master* m, const crd_dcp_address* from, const crdi_dcp_pdu* pdu,
                          double time);
/// A turn begins: what a slave sends from now on is awaited. Whether it is there; it is over.
bool crdi_dcp_fresh(const crd_dcp_master* m, const crdi_dcp_peer* p);
void crdi_dcp_turn_over(crd_dcp_master* m, crdi_dcp_peer* p);

// log.c
/// The entries of NTF_log or RSP_log_ack into notices.
void crdi_dcp_master_log(crd_dcp_master* m, crdi_dcp_peer* p, const crdi_dcp_pdu* pdu);
