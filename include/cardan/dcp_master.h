/// The master's side of the Distributed Co-Simulation Protocol: a session with its slaves.
///
/// A session is planned (slaves, groups of values, routes), then brought up, initialised, run and
/// brought down. It has no thread: the functions that wait do so in crd_dcp_net_wait, on the clock
/// of the network, so that a session runs on a virtual clock as well. After
/// crd_dcp_master_configure the functions of the data path (send, poll, begin_step, end_step, wait)
/// do not allocate. All functions that fail leave a sentence in the context that names the slave,
/// what was asked of it, its answer (code and meaning) and what would be right.
#pragma once
#include "cardan/dcp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct crd_dcp_master crd_dcp_master; ///< opaque

/// What happens in a session, told to `notice`.
typedef enum crd_dcp_notice_kind {
    CRD_DCP_NOTICE_STATE,  ///< a slave is in a new state; not those of the steps of NRT
    CRD_DCP_NOTICE_LOG,    ///< an entry of its log, put into its template's words
    CRD_DCP_NOTICE_REPAIR, ///< a repeated request, a sequence id taken over, a lost notification
    CRD_DCP_NOTICE_LOSS,   ///< data that did not come
    CRD_DCP_NOTICE_ERROR,  ///< the slave is in Error, with its code; or it is lost
} crd_dcp_notice_kind;

typedef struct crd_dcp_notice {
    crd_dcp_notice_kind kind;
    int slave;           ///< index
    double time;         ///< on the clock of the net
    crd_dcp_state state; ///< of the slave, as far as it is known
    crd_dcp_error error; ///< of ERROR and REPAIR, else NONE
    uint8_t level;       ///< of LOG, 0 fatal .. 4 debug
    const char* text;    ///< one line, valid during the call
} crd_dcp_notice;

typedef struct crd_dcp_master_options {
    double timeout;    ///< s until an unanswered request is repeated; default 0.2
    int retries;       ///< repetitions of a request until the slave counts as lost; default 10
    double patience;   ///< s that a duty (PREPARING, CONFIGURING, INITIALIZING, COMPUTING, ...)
                       ///< may take; default 30. A bench that conditions needs more
    double rest;       ///< s that STOPPING and ERRORHANDLING may take at least, if that is longer;
                       ///< default 0: `patience`
    double contact;    ///< s to wait for a slave that does not answer at first; default 5
    double heartbeat;  ///< s between two INF_state; default 0: a third of what the slave demands,
                       ///< else 1 s; NRT without demand: none while a step is under way
    uint32_t max_pdu;  ///< bytes; larger groups are split; default 1020 (DCPLib's buffers). A
                       ///< variable that is longer by itself goes alone, up to maxPduSize
    uint32_t local_ip; ///< where the session listens; 0: the interface that leads to each slave
    bool take_over;    ///< bring a slave that is not ALIVE down first, whatever its id (all are
                       ///< tried if ours is not answered); default true. Not from a master
                       ///< that is there: a slave that is in Run is left alone and named,
                       ///< unless `force`
    bool force;        ///< take over from Run, too; default false
    bool log;          ///< switch on the logs that a slave offers; default true
    bool lossless;     ///< NRT: data that do not come within `timeout` are an error; else the
                       ///< last values stay and a LOSS is noticed. Default true
    /// Asked while waiting, ten times a second at least; true gives up with CRD_E_UNIT,
    /// "interrupted", except in crd_dcp_master_stop, which comes to its end. NULL.
    bool (*cancelled)(void* user);
    void (*notice)(void* user, const crd_dcp_notice* n); ///< NULL
    void* user;
} crd_dcp_master_options;

/// A slave of the session.
typedef struct crd_dcp_slave_spec {
    const char* name;                       ///< for messages; borrowed
    const crd_dcp_description* description; ///< borrowed, without faults
    crd_dcp_address control;                ///< udp or tcp; data go over the same transport
    crd_dcp_op_mode mode;
    uint32_t numerator, denominator; ///< time resolution; 0: the fixed, recommended or first one
    uint8_t id;                      ///< 0: the session chooses
    bool one_target;                 ///< serves one target per data_id only, as DCPLib does
} crd_dcp_slave_spec;

/// What is known about a slave. Counters are exact.
typedef struct crd_dcp_slave_status {
    crd_dcp_state state;
    crd_dcp_error error; ///< the last code that it told, NONE
    bool lost;           ///< it does not answer
    double last_pdu;     ///< time of the last PDU, -INFINITY: none
    double data_time;    ///< arrival of the newest data, -INFINITY: none
    int64_t requests, repeated, nacks, resynchronised;
    int64_t data_in, data_out;               ///< PDUs
    int64_t data_old, data_missed, data_bad; ///< by sequence ids; of unknown id or length
    /// What data_old is made of: came before; came behind a later one (and was missed at first).
    int64_t data_duplicates, data_reordered;
    double round_trip, round_trip_max; ///< s, smoothed and worst, of control
} crd_dcp_slave_status;

CRD_API crd_dcp_master_options crd_dcp_master_defaults(void);
/// `net` is borrowed; it may be a network of the test kind, and may have listeners already.
CRD_API crd_status crd_dcp_master_create(crd_context* ctx, crd_dcp_net* net,
                                         const crd_dcp_master_options* opt, crd_dcp_master** out);
/// Without a word to the slaves: crd_dcp_master_stop comes before.
CRD_API void crd_dcp_master_destroy(crd_dcp_master* m);

// ---- the plan ----------------------------------------------------------------------------------

/// Adds a slave; `*index` counts from 0. CRD_E_RANGE: mode, transport or resolution that it does
/// not offer, an id twice.
CRD_API crd_status crd_dcp_master_add(crd_dcp_master* m, const crd_dcp_slave_spec* spec,
                                      int* index);
/// The values of a variable, for the master's own use: inputs and parameters to be written,
/// outputs to be read. Start values of the description stand there at first. The slot stays where
/// it is; what it points to may move when a structural parameter is set. NULL: no such.
CRD_API crd_dcp_slot* crd_dcp_master_slot(crd_dcp_master* m, int slave, int variable);
/// The master gives these inputs (in one data_id, or several if they are too long for one) ...
CRD_API crd_status crd_dcp_master_feed(crd_dcp_master* m, int slave, const int* variables,
                                       int count);
/// ... and gets these outputs, in SRT and HRT every `steps` resolutions.
CRD_API crd_status crd_dcp_master_watch(crd_dcp_master* m, int slave, const int* variables,
                                        int count, uint32_t steps);
/// An output goes to an input of another (or the same) slave. Directly if both are in SRT or HRT,
/// use the same transport, the types convert, and the source may serve several targets (or nobody
/// else wants this output); else the master relays it: in NRT before the next step of the target,
/// else when it arrives. `*direct` (may be NULL) says which after crd_dcp_master_configure.
CRD_API crd_status crd_dcp_master_route(crd_dcp_master* m, int from, int output, int to, int input,
                                        uint32_t steps, bool* direct);
/// A parameter gets the value of its slot, by CFG_parameter.
CRD_API crd_status crd_dcp_master_set(crd_dcp_master* m, int slave, int variable);
/// Tunable parameters that crd_dcp_master_tune will send together.
CRD_API crd_status crd_dcp_master_tunable(crd_dcp_master* m, int slave, const int* variables,
                                          int count, int* group);

// ---- the session -------------------------------------------------------------------------------

/// Finds the slaves, takes them over where that is allowed, registers and configures them, brings
/// all to PREPARED, then all to CONFIGURED. On failure all are brought down again.
CRD_API crd_status crd_dcp_master_configure(crd_dcp_master* m);
/// The inputs of `slave` (-1: of all) as they stand in the slots, STC_initialize, STC_send_outputs,
/// and the outputs that come back; routes are relayed. Once per turn of an initialisation loop.
CRD_API crd_status crd_dcp_master_initialize(crd_dcp_master* m, int slave);
/// All slaves to RUNNING. `lead` > 0: SRT and HRT begin together at the first whole second that is
/// at least `lead` away, which is `*start` (on the clock of the net); a slave whose clock does not
/// allow that is started at once, with a notice. 0: all at once.
CRD_API crd_status crd_dcp_master_run(crd_dcp_master* m, double lead, double* start);
/// The same in two parts, for sessions that begin together: the beginning is told to the slaves,
/// `time` being a whole second of the clock of the net, 0: at once. Does not wait ...
CRD_API crd_status crd_dcp_master_announce(crd_dcp_master* m, int64_t time);
/// ... and all come to RUNNING.
CRD_API crd_status crd_dcp_master_go(crd_dcp_master* m);
/// Inputs of the slots are sent. Does not wait.
CRD_API crd_status crd_dcp_master_send(crd_dcp_master* m, int slave);
CRD_API crd_status crd_dcp_master_tune(crd_dcp_master* m, int slave, int group);
/// NRT: inputs and STC_do_step leave, in this order; several slaves may be begun before the first
/// is ended. Ends with the slave in RUNNING again and its outputs in the slots.
CRD_API crd_status crd_dcp_master_begin_step(crd_dcp_master* m, int slave, uint32_t steps);
CRD_API crd_status crd_dcp_master_end_step(crd_dcp_master* m, int slave);
/// The same, until `time` on the clock of the net at most. `*done` false: not yet; ask again.
CRD_API crd_status crd_dcp_master_end_step_until(crd_dcp_master* m, int slave, double time,
                                                 bool* done);
/// What has arrived is taken in, what is due (heartbeats, repetitions) is sent. Does not wait.
/// CRD_E_UNIT: a slave has stopped, is in Error or lost.
CRD_API crd_status crd_dcp_master_poll(crd_dcp_master* m);
/// Polls until `time` on the clock of the net.
CRD_API crd_status crd_dcp_master_wait(crd_dcp_master* m, double time);
/// STC_stop to all slaves that may turn something, at once and without waiting for answers:
/// crd_dcp_master_stop comes after it and waits. In between crd_dcp_master_poll repeats what was
/// lost.
CRD_API void crd_dcp_master_halt(crd_dcp_master* m);
/// Stops, resets nothing, deregisters: slaves that are in Run first, all at the same time, and goes
/// on with the others when one does not answer. CRD_OK if all are ALIVE at the end; else which are
/// not, and why. May be called at any time, and again.
CRD_API crd_status crd_dcp_master_stop(crd_dcp_master* m);

CRD_API int crd_dcp_master_count(const crd_dcp_master* m);
CRD_API crd_dcp_slave_status crd_dcp_master_status(const crd_dcp_master* m, int slave);
CRD_API double crd_dcp_master_resolution(const crd_dcp_master* m, int slave); ///< s
CRD_API double crd_dcp_master_now(const crd_dcp_master* m); ///< the clock of the net

#ifdef __cplusplus
}
#endif
