/// Looking at slaves and at the way to them: who is there, how good is the link, and does a slave
/// keep to the standard.
///
/// Everything here waits in crd_dcp_net_wait on the clock of the network, and asks `cancelled` (may
/// be NULL) at least every 10 ms of it; true ends the work early, with what is known by then. Nets
/// are borrowed, and what they receive meanwhile is consumed.
#pragma once
#include "shared/base.h"
#include "shared/dcp.h"

// ---- scan --------------------------------------------------------------------------------------

enum { CRDI_DCP_SCAN_MOST = 4096, CRDI_DCP_SCAN_PORT = 8080 };

/// "udp://10.0.0.7:8080", "10.0.0.7" (UDP and TCP, port 8080), "192.168.2.0/28:8080-8090",
/// "tcp://bench-7:8080-8081" as single addresses. `out` may be NULL: how many there are. Of a range
/// of addresses the first and the last, which belong to the network, are left out.
/// CRD_E_FORMAT; CRD_E_NOT_FOUND: nobody knows the host; CRD_E_RANGE: more than CRDI_DCP_SCAN_MOST.
crd_status crdi_dcp_scan_expand(crd_context* ctx, const char* text, crd_dcp_address* out, int room,
                                int* count);

/// What is known about one address. `address` and `description` are given, the rest is found out.
typedef struct crdi_dcp_sighting {
    crd_dcp_address address;
    const crd_dcp_description* description; ///< that it should have, NULL: those of the options

    bool answered;
    bool connected; ///< TCP: somebody took the connection in
    int state;      ///< crd_dcp_state; -1: it answered with `error` instead, as slaves do that
                    ///< tell their state to their master only
    crd_dcp_error error;
    uint8_t id;                       ///< the receiver that it answers to; in ALIVE that is any
    double round_trip;                ///< s
    const crd_dcp_description* match; ///< its uuid, if one of those that were tried
    int tried;                        ///< descriptions that it answered about; 0: it is not ALIVE
    bool registered; ///< it let itself be registered in a mode that does not exist; was undone
} crdi_dcp_sighting;

typedef struct crdi_dcp_scan_options {
    double timeout; ///< s to wait for answers, twice; default 0.5
    int most_ids;   ///< receivers 1 .. this are asked for; default 0: 255, of more than 64
                    ///< addresses 8
    const crd_dcp_description* const* descriptions; ///< tried where none is given
    int description_count;
    bool (*cancelled)(void* user);
    void* user;
} crdi_dcp_scan_options;

crdi_dcp_scan_options crdi_dcp_scan_defaults(void);
/// Asks all of them at the same time, without disturbing them: INF_state, which anybody may ask,
/// with a sequence id that no master is at; and in ALIVE STC_register in an operating mode that
/// does not exist, whose refusal tells whether the uuid was right.
crd_status crdi_dcp_scan(crd_context* ctx, crd_dcp_net* net, const crdi_dcp_scan_options* opt,
                         crdi_dcp_sighting* sightings, int count);

// ---- the link ----------------------------------------------------------------------------------

/// A question of crdi_dcp_ping, and its echo, are DAT_input_output of a data_id that nobody has, so
/// that slaves drop them (types that do not exist make some abort):
///    0  u8   0xF0              9  u8   version 1               20  i64  left the asker, ns
///    1  u16  number           10  u8   0 question, 1 echo      28  i64  reached the echo, ns
///    3  u16  0xFFFF           11  u8   0                       36  i64  left it again, ns
///    5  "CRDP"                12  u32  session                 44  zeros up to the size that was
///                             16  u32  number                      asked for
/// The two times of the echo are by its own clock.
enum { CRDI_DCP_ECHO_LEAST = 44 };
/// Turns a question into its echo, in place and of the same length. false: it is not one, and gets
/// no answer.
bool crdi_dcp_echo(uint8_t* bytes, size_t length, double arrived, double now);

typedef struct crdi_dcp_ping_options {
    crd_dcp_address to;
    uint8_t id;      ///< of a slave that is registered; default 1
    int count;       ///< default 1000
    double interval; ///< s from one to the next, on a grid; default 0.01
    uint32_t size;   ///< bytes of a question to an echo; default 80. INF_state has 4
    double timeout;  ///< s after which an answer counts as lost; default 1
    double contact;  ///< s to find out who is there; default 3
    bool (*cancelled)(void* user);
    void (*progress)(void* user, int sent); ///< may be NULL
    void* user;
} crdi_dcp_ping_options;

/// One question. NaN: not known; of a lost one, all but `sent`.
typedef struct crdi_dcp_ping_sample {
    double sent;        ///< on the grid, s since the first
    double late;        ///< s that it left behind its time
    double round_trip;  ///< s, without what the echo took
    double there, back; ///< s, by the clocks of both sides put right by `offset`
} crdi_dcp_ping_sample;

typedef struct crdi_dcp_ping_report {
    bool echo; ///< an echo answered, with its times; else a slave
    int state; ///< of the slave at first, -1: it told an error only
    int sent, answered, lost, duplicates, reordered;
    double late;                                      ///< s, the worst
    double least, mean, median, p90, p99, p999, most; ///< s, round trips
    double deviation;                                 ///< s, standard deviation
    double jitter;               ///< s, mean difference of a round trip to the one before it
    double offset, offset_error; ///< s, clock of the echo minus ours; NaN without echo
    double drift, drift_error;   ///< of the clocks against each other, s/s; NaN if too short
    /// One way: measured by an echo, else half of the round trip. The tail is the worse direction.
    double way_median, way_least, way_p999;
} crdi_dcp_ping_report;

crdi_dcp_ping_options crdi_dcp_ping_defaults(void);
/// `samples` has room for opt->count. CRD_E_NOT_FOUND: neither an echo nor a slave answers.
crd_status crdi_dcp_ping(crd_context* ctx, crd_dcp_net* net, const crdi_dcp_ping_options* opt,
                         crdi_dcp_ping_sample* samples, crdi_dcp_ping_report* out);

/// What a coupling over this link needs. k = ceil(latency / step), as for coupling elements.
typedef struct crdi_dcp_ping_advice {
    double step;   ///< macro step, s
    int k, k_most; ///< latency in macro steps: the median, and that of 99.9 %; two more where
                   ///< questions were lost
} crdi_dcp_ping_advice;
/// For a macro step of `step`; NaN: the shortest of 1, 2, 5, 10 ... that holds the jitter in one
/// step and the latency in eight.
crdi_dcp_ping_advice crdi_dcp_ping_advise(const crdi_dcp_ping_report* r, double step);

// ---- conformance -------------------------------------------------------------------------------

typedef enum crdi_dcp_verdict {
    CRDI_DCP_PASS,
    CRDI_DCP_FAIL,
    CRDI_DCP_SKIP,    ///< does not apply to this description or these options
    CRDI_DCP_DIFFERS, ///< not as usual, in what the standard leaves open
} crdi_dcp_verdict;

typedef struct crdi_dcp_conform_result {
    const char *id, *done, *prescribed; ///< constants
    const char* clause;                 ///< section and table of DCP 1.0
    char came[256];                     ///< what came, or why it was skipped
    crdi_dcp_verdict verdict;
    int mode;       ///< crd_dcp_op_mode it was tried in
    bool restarted; ///< behind it the slave had to be started again
    bool unseen;    ///< skipped because the slave was gone
    double seconds; ///< it took, on the clock of the net
} crdi_dcp_conform_result;

typedef struct crdi_dcp_conform_options {
    int mode;              ///< crd_dcp_op_mode; -1: those that the slave offers, NRT first
    bool risky;            ///< also what makes a DCPLib slave abort
    const char* only;      ///< pattern of ids (crdi_glob), NULL: all
    uint8_t id;            ///< the slave's, default 1
    double timeout;        ///< s for an answer; default 1
    double patience;       ///< s for a state; default 5
    bool take_over;        ///< bring a slave that is not ALIVE down first; default false
    uint16_t data_port;    ///< of the slave, for data; 0: one that its description lists
    crd_dcp_address local; ///< where the slave's data reach `net`: an address that it listens at
    bool (*cancelled)(void* user);
    void (*next)(void* user, const crdi_dcp_conform_result* r); ///< behind each case; may be NULL
    /// A PDU of a case that was sent or came; may be NULL.
    void (*seen)(void* user, bool sent, const uint8_t* bytes, size_t length);
    /// Begins to start a slave again that is gone; it has twice `patience` to answer. NULL: what is
    /// left is skipped then. false: it cannot be.
    bool (*restart)(void* user);
    void* user;
} crdi_dcp_conform_options;

crdi_dcp_conform_options crdi_dcp_conform_defaults(void);
int crdi_dcp_conform_count(void); ///< cases, the most results there are
/// Plays the procedures of the standard, right ones and wrong ones, against a slave that is ALIVE.
/// Every case begins in ALIVE and ends there. CRD_E_NOT_FOUND: it does not answer; CRD_E_STATE: it
/// belongs to a master; else CRD_OK, whatever the verdicts are. `results` has room for all.
crd_status crdi_dcp_conform(crd_context* ctx, crd_dcp_net* net, const crd_dcp_address* control,
                            const crd_dcp_description* d, const crdi_dcp_conform_options* opt,
                            crdi_dcp_conform_result* results, int* count);
const char* crdi_dcp_verdict_name(crdi_dcp_verdict v); ///< "pass", "FAIL", "skip", "differs"
