// The slave between its files: slave.c answers requests, run.c goes through states and time,
// config.c has what CFG PDUs say, data.c values and data PDUs, log.c log entries, watch.c gradients
// and edges.
#pragma once
#include "shared/dcp.h"

enum { CRDI_DCP_LEVELS = 5, CRDI_DCP_CATEGORIES = 256 };

typedef struct crdi_dcp_entry {
    int32_t variable; // -1: a gap
    uint8_t type;     // source_data_type
} crdi_dcp_entry;

/// Variables of a payload by their pos.
typedef struct crdi_dcp_list {
    crdi_dcp_entry* entries; // (max_group_size)
    int end;                 // highest pos + 1
    int count;               // without gaps
    crd_dcp_slot* slots; // (slot_count) by STC_prepare: neighbours in memory as one; NULL: no room
    uint8_t* types;
    int slot_count;
} crdi_dcp_list;

/// What was said about a data_id or a param_id. The same data_id may be sent and received.
typedef struct crdi_dcp_group {
    uint16_t id;
    bool parameters; // a param_id
    bool has_scope, has_steps, has_source;
    uint8_t scope;
    uint32_t steps;
    crdi_dcp_list in, out;
    crd_dcp_address source;
    crd_dcp_address sender;   // who has sent its first data since STC_prepare, port 0: nobody yet
    crd_dcp_address* targets; // (max_targets)
    int target_count;
    bool has_limit; // of missed PDUs, by STC_prepare
    uint32_t limit;
    // while it runs
    uint32_t phase; // steps since it was sent
    uint16_t seq_out;
    crdi_dcp_sequence arrived_seq;
    bool steep, edged;          // some of its inputs have a gradient, an edge; by STC_prepare
    double pre_edge, post_edge; // s, INFINITY: none
    double arrived;             // the last of them, NAN: none yet
} crdi_dcp_group;

/// What a slave knows of a variable beside its value.
typedef struct crdi_dcp_mark {
    bool dirty;   // received and not yet handed to the plant: is in the list `dirty`
    bool touched; // the plant was given a value: a reset has to give it the start value
    double* last; // (capacity) values of an input with a gradient, NULL: it has none
    double time;  // of them, NAN: none yet
} crdi_dcp_mark;

typedef struct crdi_dcp_log_slot {
    int64_t time;
    uint8_t template_id, category;
    uint32_t length;
    uint8_t* bytes; // (log_bytes)
} crdi_dcp_log_slot;

typedef enum crdi_dcp_pending { CRDI_NOTHING, CRDI_DUTY, CRDI_STEP } crdi_dcp_pending;

struct crd_dcp_slave {
    crd_context* ctx;
    crd_arena arena;
    const crd_dcp_description* d; // borrowed
    crd_dcp_plant plant;
    crd_dcp_link link;
    int held; // depth of hold
    crd_dcp_slave_options opt;
    crd_dcp_slave_counts counts;

    // registration
    crd_dcp_state state;
    uint64_t entry;          // counts states entered: tells whether a callback has moved on
    uint64_t configurations; // how often CONFIGURATION was entered: registrations and resets
    bool one_sender;         // data count from the registered master only
    crd_dcp_op_mode mode;
    uint8_t id;
    crd_dcp_address master, control; // the peer, and where it reached us
    uint16_t registered, last;       // sequence ids: of STC_register, of the last valid request
    bool rewind;                     // behind CFG_clear, STC_reset: registered + 1 is good as well
    crd_dcp_error error;
    crdi_dcp_rate garbage; // answers to refused requests of strangers

    // configuration
    crdi_dcp_value* values; // (variable_count)
    crdi_dcp_mark* marks;   // (variable_count)
    int* dirty;             // (variable_count)
    int dirty_count;
    crdi_dcp_group* groups; // (max_groups)
    int group_count;
    uint32_t numerator, denominator; // 0: not given
    uint8_t log_modes[CRDI_DCP_CATEGORIES][CRDI_DCP_LEVELS];

    // states
    crdi_dcp_pending pending;
    bool synchronizing;     // its duty is LATER; it may last over steps
    bool worn;              // the plant has to go back to its start
    crd_dcp_state from_run; // where STC_do_step came from
    uint32_t do_steps;      // of the present one
    uint32_t first_steps;   // of the run, 0: none yet
    int64_t steps_done;

    // time
    double now;
    double beat;       // of the last heartbeat
    double asked;      // of the last request of the master
    double start;      // of the grid of steps
    int64_t grid;      // index of the next step there
    double resolution; // s

    // log
    crdi_dcp_log_slot* logs; // (log_entries)
    int* log_order;          // (log_entries) those kept, oldest first, then the free ones
    int log_count;

    crd_dcp_slot* pool; // (pool_room) of what STC_prepare makes of the groups
    uint8_t* pool_types;
    int pool_room, pool_used;

    // workspace
    crd_dcp_slot* slots;  // (max_group_size)
    uint8_t* types;       // (max_group_size)
    uint8_t* pdu;         // (max_pdu)
    crd_dcp_slot scratch; // room for any single value
    uint32_t scratch_bytes;
};

// slave.c
/// Sends `length` bytes of s->pdu.
bool crdi_dcp_slave_send(crd_dcp_slave* s, const crd_dcp_address* to, size_t length);
void crdi_dcp_slave_send_pdu(crd_dcp_slave* s, const crd_dcp_address* to, const crdi_dcp_pdu* p);
/// What is sent between the two leaves together, what the plant takes its time for behind it.
void crdi_dcp_slave_hold(crd_dcp_slave* s);
void crdi_dcp_slave_release(crd_dcp_slave* s);
void crdi_dcp_slave_flush(crd_dcp_slave* s);

// run.c
void crdi_dcp_slave_clock(crd_dcp_slave* s, double now); // it never goes back
void crdi_dcp_slave_fault(crd_dcp_slave* s, crd_dcp_error code);
/// A state change that was checked and acknowledged.
void crdi_dcp_change(crd_dcp_slave* s, const crd_dcp_address* from, const crd_dcp_address* at,
                     const crdi_dcp_pdu* p);

// config.c
crd_status crdi_dcp_config_create(crd_dcp_slave* s);
/// Executes a CFG request.
crd_dcp_error crdi_dcp_configure(crd_dcp_slave* s, const crdi_dcp_pdu* p);
/// Whether the configuration is complete: what STC_prepare asks. Fills in the limits.
crd_dcp_error crdi_dcp_complete(crd_dcp_slave* s);
/// Forgets everything that CFG PDUs have set.
void crdi_dcp_unconfigure(crd_dcp_slave* s);
crdi_dcp_group* crdi_dcp_find_group(crd_dcp_slave* s, uint16_t id, bool parameters);
bool crdi_dcp_log_category_known(const crd_dcp_slave* s, uint8_t category);
/// Bytes of the largest PDU over a transport.
uint32_t crdi_dcp_max_pdu(const crd_dcp_slave* s, uint8_t transport);

// data.c
crd_status crdi_dcp_slave_values_create(crd_dcp_slave* s);
/// Start values; those that the plant has seen others of are handed to it again.
void crdi_dcp_slave_values_restart(crd_dcp_slave* s);
/// How the payloads of all groups are read and made.
void crdi_dcp_join_groups(crd_dcp_slave* s);
/// CFG_parameter.
crd_dcp_error crdi_dcp_set_parameter(crd_dcp_slave* s, int variable, uint8_t type,
                                     const uint8_t* payload, size_t length);
/// Hands what was received to the plant. `all` false: parameters only, structural ones first.
void crdi_dcp_latch(crd_dcp_slave* s, bool all);
void crdi_dcp_receive_data(crd_dcp_slave* s, const crd_dcp_address* from, const crdi_dcp_pdu* p);
/// Sends a group to all its targets.
void crdi_dcp_send_group(crd_dcp_slave* s, crdi_dcp_group* g);

// log.c
crd_status crdi_dcp_logs_create(crd_dcp_slave* s);
/// RSP_log_ack into s->pdu; its length. The entries in it are kept no longer.
size_t crdi_dcp_take_logs(crd_dcp_slave* s, const crdi_dcp_pdu* request, size_t room);

// watch.c
crd_status crdi_dcp_watch_create(crd_dcp_slave* s);
/// What is to be watched of a group; forgets what was.
void crdi_dcp_watch_group(crd_dcp_slave* s, crdi_dcp_group* g);
/// Data have come in a run, `gap` missed before them; false: they are an error.
bool crdi_dcp_watch_data(crd_dcp_slave* s, crdi_dcp_group* g, int gap);
