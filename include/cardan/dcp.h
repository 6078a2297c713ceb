/// The Distributed Co-Simulation Protocol, DCP 1.0: descriptions (dcpx), the slave, the networks
/// that carry it, the master's session with its slaves, and test benches as slaves.
///
/// Everything here is driven from outside: bytes and times are handed in, bytes come out through a
/// callback. Nothing has a thread or a clock of its own, so that the same code runs on a virtual
/// clock, in a real-time thread and on a controller. After `create` nothing allocates, except where
/// it is said.
#pragma once
#include "cardan/base.h"
#include "cardan/model.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- numbers of the protocol -------------------------------------------------------------------

typedef enum crd_dcp_state {
    CRD_DCP_ALIVE,
    CRD_DCP_CONFIGURATION,
    CRD_DCP_PREPARING,
    CRD_DCP_PREPARED,
    CRD_DCP_CONFIGURING,
    CRD_DCP_CONFIGURED,
    CRD_DCP_INITIALIZING,
    CRD_DCP_INITIALIZED,
    CRD_DCP_SENDING_I,
    CRD_DCP_SYNCHRONIZING,
    CRD_DCP_SYNCHRONIZED,
    CRD_DCP_RUNNING,
    CRD_DCP_COMPUTING,
    CRD_DCP_COMPUTED,
    CRD_DCP_SENDING_D,
    CRD_DCP_STOPPING,
    CRD_DCP_STOPPED,
    CRD_DCP_ERRORHANDLING,
    CRD_DCP_ERRORRESOLVED,
    CRD_DCP_STATE_COUNT,
} crd_dcp_state;

typedef enum crd_dcp_op_mode { CRD_DCP_HRT, CRD_DCP_SRT, CRD_DCP_NRT } crd_dcp_op_mode;
typedef enum crd_dcp_transport {
    CRD_DCP_UDP,
    CRD_DCP_BLUETOOTH,
    CRD_DCP_CAN,
    CRD_DCP_USB,
    CRD_DCP_TCP,
} crd_dcp_transport;

typedef enum crd_dcp_data_type {
    CRD_DCP_UINT8,
    CRD_DCP_UINT16,
    CRD_DCP_UINT32,
    CRD_DCP_UINT64,
    CRD_DCP_INT8,
    CRD_DCP_INT16,
    CRD_DCP_INT32,
    CRD_DCP_INT64,
    CRD_DCP_FLOAT32,
    CRD_DCP_FLOAT64,
    CRD_DCP_STRING,
    CRD_DCP_BINARY,
    CRD_DCP_DATA_TYPE_COUNT,
} crd_dcp_data_type;

/// In RSP_nack and RSP_error_ack.
typedef enum crd_dcp_error {
    CRD_DCP_NONE = 0,
    CRD_DCP_E_GENERIC = 0x1001,
    CRD_DCP_E_HEARTBEAT_MISSED = 0x1002,
    CRD_DCP_E_NOT_ALLOWED_IN_THIS_STATE = 0x1003,
    CRD_DCP_E_PROPERTY_VIOLATED = 0x1004,
    CRD_DCP_E_TRANSITION_IN_PROGRESS = 0x1005,
    CRD_DCP_E_INVALID_LENGTH = 0x2001,
    CRD_DCP_E_INVALID_LOG_CATEGORY = 0x2002,
    CRD_DCP_E_INVALID_LOG_LEVEL = 0x2003,
    CRD_DCP_E_INVALID_LOG_MODE = 0x2004,
    CRD_DCP_E_INVALID_MAJOR_VERSION = 0x2005,
    CRD_DCP_E_INVALID_MINOR_VERSION = 0x2006,
    CRD_DCP_E_INVALID_NETWORK_INFORMATION = 0x2007,
    CRD_DCP_E_INVALID_OP_MODE = 0x2008,
    CRD_DCP_E_INVALID_PAYLOAD = 0x2009,
    CRD_DCP_E_INVALID_SCOPE = 0x200A,
    CRD_DCP_E_INVALID_SOURCE_DATA_TYPE = 0x200B,
    CRD_DCP_E_INVALID_START_TIME = 0x200C,
    CRD_DCP_E_INVALID_STATE_ID = 0x200D,
    CRD_DCP_E_INVALID_STEPS = 0x200E,
    CRD_DCP_E_INVALID_TIME_RESOLUTION = 0x200F,
    CRD_DCP_E_INVALID_TRANSPORT_PROTOCOL = 0x2010,
    CRD_DCP_E_INVALID_UUID = 0x2011,
    CRD_DCP_E_INVALID_VALUE_REFERENCE = 0x2012,
    CRD_DCP_E_INVALID_SEQUENCE_ID = 0x2013,
    CRD_DCP_E_GAP_INPUT_POS = 0x3001,
    CRD_DCP_E_GAP_OUTPUT_POS = 0x3002,
    CRD_DCP_E_GAP_TUNABLE_POS = 0x3003,
    CRD_DCP_E_NO_NETWORK_INPUT = 0x3004,
    CRD_DCP_E_NO_NETWORK_OUTPUT = 0x3005,
    CRD_DCP_E_NO_NETWORK_TUNABLE = 0x3006,
    CRD_DCP_E_NO_SCOPE = 0x3007,
    CRD_DCP_E_NO_STEPS = 0x3008,
    CRD_DCP_E_NO_TIME_RESOLUTION = 0x3009,
    CRD_DCP_E_INCOMPLETE = 0x300A,
    CRD_DCP_E_NO_LOG_ON_NOTIFICATION = 0x4001,
    CRD_DCP_E_NO_LOG_ON_REQUEST = 0x4002,
    CRD_DCP_E_NO_VARIABLE_STEPS = 0x4003,
    CRD_DCP_E_TRANSPORT_NOT_SUPPORTED = 0x4004,
    CRD_DCP_E_PDU_NOT_SUPPORTED = 0x4005,
    CRD_DCP_E_PDU_SIZE = 0x4006,
} crd_dcp_error;

CRD_API const char* crd_dcp_state_name(int state);    ///< "ALIVE"; NULL: unknown
CRD_API const char* crd_dcp_data_type_name(int type); ///< "float64"; NULL: unknown
CRD_API const char* crd_dcp_error_name(int code);     ///< "INVALID_UUID", "NONE"; NULL: unknown
CRD_API const char* crd_dcp_error_text(int code);     ///< a sentence for people
CRD_API const char* crd_dcp_op_mode_name(int mode);   ///< "NRT"

// ---- values ------------------------------------------------------------------------------------

/// Values of one variable: `count` elements of `type`, row-major; strings and binaries are one.
/// Numbers stand as in crd_values: float types as double, integers as int64_t (uint64 by its bits).
typedef struct crd_dcp_slot {
    uint8_t type;         ///< crd_dcp_data_type of the memory here
    uint32_t count;       ///< elements
    uint32_t max_size;    ///< string, binary: bytes there is room for
    double* real;         ///< (count) float32, float64
    int64_t* integer;     ///< (count) integers
    uint8_t* bytes;       ///< (max_size)
    uint32_t* byte_count; ///< of bytes
} crd_dcp_slot;

// ---- descriptions: dcpx ------------------------------------------------------------------------

typedef struct crd_dcp_dependency {
    uint64_t vr;
    bool linear;
} crd_dcp_dependency;

typedef struct crd_dcp_variable {
    const char *name, *description;
    uint64_t vr;
    uint8_t causality;   ///< crd_causality: CRD_INPUT, CRD_OUTPUT, CRD_PARAMETER,
                         ///< CRD_STRUCTURAL_PARAMETER
    uint8_t variability; ///< crd_variability
    uint8_t type;        ///< crd_dcp_data_type
    const char *unit, *display_unit, *quantity, *declared_type; ///< "" none
    double min, max, gradient, nominal;                         ///< NaN: not given
    uint32_t max_size; ///< string, binary; UINT32_MAX: not given
    const char* mime;  ///< binary, ""
    const char* start; ///< as written (elements separated by blanks), NULL: none
    int rank;
    uint64_t dimensions[8]; ///< constants, or
    uint64_t linked[8];     ///< value references of structural parameters
    bool is_linked[8];
    double pre_edge, post_edge; ///< s, NaN
    bool has_max_missed;
    uint32_t max_missed;
    uint32_t default_steps, min_steps, max_steps; ///< output; min = max = default if fixed
    bool fixed_steps, initialization;             ///< output
    bool has_initial_dependencies, has_run_dependencies;
    const crd_dcp_dependency *initial_dependencies, *run_dependencies;
    int initial_dependency_count, run_dependency_count;
    int line;
} crd_dcp_variable;

typedef struct crd_dcp_resolution { ///< a range: numerator .. numerator_to
    uint32_t numerator, numerator_to, denominator;
    bool recommended;
    int line; ///< here and below: in the file, 0 if made by hand
} crd_dcp_resolution;

typedef struct crd_dcp_ports { ///< from .. to
    uint16_t from, to;
} crd_dcp_ports;

typedef struct crd_dcp_endpoint { ///< UDP_IPv4 or TCP_IPv4
    bool offered;
    uint32_t max_pdu_size;
    const char* host; ///< of Control, "" none
    uint16_t port;    ///< of Control, 0 none
    bool has_data, has_parameter;
    const char *data_host, *parameter_host;
    const crd_dcp_ports *data, *parameter;
    int data_count, parameter_count;
    int line;
} crd_dcp_endpoint;

typedef struct crd_dcp_log_template {
    uint8_t id, category, level;
    const char* message;      ///< "speed %float64 rad/s"
    const uint8_t* arguments; ///< crd_dcp_data_type
    int argument_count;
    int line;
} crd_dcp_log_template;

typedef struct crd_dcp_log_category {
    uint8_t id;
    const char* name;
    int line;
} crd_dcp_log_category;

typedef struct crd_dcp_display_unit { ///< shown = factor * value + offset
    const char* name;
    double factor, offset;
} crd_dcp_display_unit;

typedef struct crd_dcp_unit { ///< base = factor * value + offset
    const char* name;
    bool has_base;
    int8_t exponents[8]; ///< kg m s A K mol cd rad
    double factor, offset;
    const crd_dcp_display_unit* displays;
    int display_count;
    int line;
} crd_dcp_unit;

/// A slave description. All memory is in its arena; made by crd_dcp_load, or by hand.
typedef struct crd_dcp_description {
    crd_context* ctx;
    crd_arena arena;
    const char* file; ///< for messages
    const char *name, *description, *author, *version, *copyright, *license, *tool, *date;
    uint8_t uuid[16];
    uint8_t major, minor;
    bool structured; ///< variable naming convention
    bool hrt, srt, nrt;
    uint32_t nrt_default_steps, nrt_min_steps, nrt_max_steps;
    bool nrt_fixed_steps;
    const crd_dcp_resolution* resolutions;
    int resolution_count;
    bool fixed_resolution; ///< exactly one, which may only be confirmed
    bool has_heartbeat;
    uint32_t heartbeat_numerator, heartbeat_denominator; ///< s
    crd_dcp_endpoint udp, tcp;
    bool can, usb, bluetooth; ///< offered; their details are not kept
    bool can_accept_config, can_reset, can_vary_steps, can_monitor_heartbeat, can_log_on_request,
        can_log_on_notification;
    const crd_dcp_unit* units;
    int unit_count;
    const crd_dcp_variable* variables;
    int variable_count;
    const crd_dcp_log_category* categories;
    int category_count;
    const crd_dcp_log_template* templates;
    int template_count;
    struct {
        int root, op_mode, time_res, heartbeat, transports, flags, variables, log;
    } lines;                            ///< of its parts
    const struct crdi_dcp_index* by_vr; ///< by parse and validate, for crd_dcp_find_vr; NULL
    int by_vr_count;
} crd_dcp_description;

typedef enum crd_dcp_severity { CRD_DCP_NOTE, CRD_DCP_WARNING, CRD_DCP_FAULT } crd_dcp_severity;

/// A rule of the standard that a description breaks.
typedef struct crd_dcp_finding {
    crd_dcp_severity severity;
    const char* code; ///< "V03": docs/reference/dcpx.md lists them
    int line;
    const char* text; ///< what is wrong and what would be right
} crd_dcp_finding;

/// A .dcpx, or a .dcp archive (v1.0/dcpSlaveDescription.dcpx in it). CRD_E_FORMAT with file and
/// line only where nothing can be made of it; broken rules are findings, and a description with a
/// fault can be looked at but not used. `findings` (may be NULL) are in the arena of the
/// description.
CRD_API crd_status crd_dcp_load(crd_context* ctx, const char* path, crd_dcp_description** out,
                                const crd_dcp_finding** findings, int* count);
CRD_API crd_status crd_dcp_parse(crd_context* ctx, const char* text, size_t length,
                                 const char* file, crd_dcp_description** out,
                                 const crd_dcp_finding** findings, int* count);
/// An empty one, every text "" and every number as in a file that does not give it.
CRD_API crd_status crd_dcp_description_create(crd_context* ctx, crd_dcp_description** out);
/// A variable of which nothing is given: numbers NaN, texts "", steps fixed to 1.
CRD_API crd_dcp_variable crd_dcp_variable_defaults(void);
CRD_API void crd_dcp_description_destroy(crd_dcp_description* d);
/// The rules, for a description made by hand as well.
CRD_API crd_status crd_dcp_validate(crd_dcp_description* d, const crd_dcp_finding** findings,
                                    int* count);
/// As XML that the schema accepts, appended to `out`. Equal descriptions give equal bytes, and
/// reading them gives an equal description. CRD_E_RANGE with the first fault if the rules are
/// broken, CRD_E_UNSUPPORTED for Bluetooth, whose address is not kept.
CRD_API crd_status crd_dcp_write(const crd_dcp_description* d, crd_text* out);
/// A .dcp archive at `path`.
CRD_API crd_status crd_dcp_write_archive(const crd_dcp_description* d, const char* path);
/// Index of a variable, -1.
CRD_API int crd_dcp_find_vr(const crd_dcp_description* d, uint64_t vr);

// ---- the slave ---------------------------------------------------------------------------------

/// An address of a peer as a number: IPv4 and port, and whether it is a stream.
typedef struct crd_dcp_address {
    uint32_t ip; ///< 127.0.0.1 = 0x7F000001
    uint16_t port;
    uint8_t transport; ///< crd_dcp_transport
} crd_dcp_address;

/// What a slave does to the plant behind it. All are called from crd_dcp_slave_receive and
/// crd_dcp_slave_advance; they return at once. A duty that takes longer returns CRD_DCP_LATER and
/// is finished by crd_dcp_slave_done. CRD_DCP_FAILED leads to ERRORHANDLING.
typedef enum crd_dcp_outcome { CRD_DCP_DONE, CRD_DCP_LATER, CRD_DCP_FAILED } crd_dcp_outcome;

typedef struct crd_dcp_plant {
    void* user;
    /// A duty of a state: PREPARING, CONFIGURING, INITIALIZING, SYNCHRONIZING, STOPPING,
    /// ERRORHANDLING, and CONFIGURATION when it is entered again (STC_reset, or a registration
    /// after an earlier one): back to the start. NULL: nothing to do. STOPPING and ERRORHANDLING
    /// may come while a duty or step is LATER: that one is given up and never done.
    crd_dcp_outcome (*enter)(void* user, crd_dcp_state state, double now);
    /// NRT: `steps` resolutions; SRT, HRT: one resolution that begins at its time.
    crd_dcp_outcome (*step)(void* user, int64_t steps_done, uint32_t steps, double resolution);
    /// Inputs and parameters that have been received, before a step or duty; outputs behind it.
    /// `variable` is an index of the description; the values are the slave's, in crd_dcp_slot, to
    /// be copied. Neither may be LATER. Parameters come before PREPARING, or when they are tuned.
    crd_dcp_outcome (*set)(void* user, int variable, const crd_dcp_slot* value);
    crd_dcp_outcome (*get)(void* user, int variable, crd_dcp_slot* value);
    /// A plant that does something by itself: when the next time is, and one such thing, which may
    /// end with crd_dcp_slave_done. They come in their order between the events of the slave. NULL.
    double (*next)(void* user);
    void (*advance)(void* user, double now);
} crd_dcp_plant;

/// Opens and closes what data arrive on, and sends. Addresses are local for listen.
typedef struct crd_dcp_link {
    void* user;
    bool (*send)(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length);
    bool (*listen)(void* user, const crd_dcp_address* at);  ///< PREPARING; may be NULL
    bool (*connect)(void* user, const crd_dcp_address* to); ///< CONFIGURING, streams; may be NULL
    void (*close)(void* user);                              ///< all of them; may be NULL
    /// What is sent between true and false may leave together behind it; may be NULL.
    void (*hold)(void* user, bool on);
} crd_dcp_link;

typedef struct crd_dcp_slave_options {
    int max_groups;     ///< data_ids and param_ids together; default 64
    int max_group_size; ///< variables in one; default 256
    int max_targets;    ///< of one data_id; default 8
    int log_entries;    ///< kept on request; default 64
    uint32_t max_pdu;   ///< bytes; default 65507
    /// Targets outside of these are refused (INVALID_NETWORK_INFORMATION); NULL: loopback and the
    /// master's address.
    const uint32_t *allowed_ip, *allowed_mask;
    int allowed_count;
    /// Refused requests of others than the registered master that get an answer, per second;
    /// default 100.
    int max_garbage;
    int max_elements;   ///< of an array whose structural parameter has no max; default 1024
    uint32_t max_text;  ///< bytes of a string or binary without maxSize; default 1024
    uint32_t log_bytes; ///< of the arguments of an entry that is kept; default 256
    /// Requests also from other ports of the master's host than the one that has registered: from
    /// any process there. Default false: they get no answer and are counted, unless the slave is at
    /// rest (CONFIGURATION, STOPPED, ERRORRESOLVED) and its master has been silent for 3 s or has
    /// missed its heartbeat; then a new one may take it over. INF_state is answered to everybody;
    /// as a heartbeat and with a sequence id it counts from the master only.
    bool any_port;
    /// Values outside of min and max are an error (PROPERTY_VIOLATED); default false: they are
    /// counted and handed to the plant.
    bool check_range;
    /// In a run: inputs that change faster than their gradient, data that arrive earlier than
    /// preEdge or later than postEdge around one interval behind the last ones (the interval being
    /// that of CFG_steps for their data_id). Default false: they are counted.
    bool check_gradient, check_edges;
} crd_dcp_slave_options;

/// Counters, all exact.
typedef struct crd_dcp_slave_counts {
    int64_t requests, acks, nacks, dropped;  ///< dropped: unknown, for others, from strangers
    int64_t data_in, data_out, data_dropped; ///< dropped: unknown id, length, state
    int64_t data_old, data_missed;           ///< by sequence ids
    /// What data_old is made of: came before; came behind a later one (and was missed at first).
    int64_t data_duplicates, data_reordered;
    int64_t steps, late_steps; ///< late: behind their time by more than one resolution
    int64_t muted;             ///< answers that the rate limit held back
    int64_t out_of_range;      ///< PDUs with a value outside of its min and max
    int64_t too_steep;         ///< PDUs with a value that changed faster than its gradient
    int64_t off_edge;          ///< PDUs that came too early or too late
    int64_t logs_lost;         ///< oldest of a full ring, or longer than log_bytes
    int64_t send_failed;       ///< PDUs that the link refused or that were too long for it
    int64_t data_foreign;      ///< from others than those whose data count: nothing acts on them
    int64_t foreign;           ///< of dropped: requests of others than the registered master
} crd_dcp_slave_counts;

typedef struct crd_dcp_slave crd_dcp_slave; ///< opaque

CRD_API crd_dcp_slave_options crd_dcp_slave_defaults(void);
/// `d` is borrowed and has no fault. CRD_E_RANGE, CRD_E_MEMORY.
CRD_API crd_status crd_dcp_slave_create(crd_context* ctx, const crd_dcp_description* d,
                                        const crd_dcp_plant* plant, const crd_dcp_link* link,
                                        const crd_dcp_slave_options* opt, crd_dcp_slave** out);
CRD_API void crd_dcp_slave_destroy(crd_dcp_slave* s);
/// One PDU from a peer that arrived at the local address `at`. `now` in s since 1970 (UNIX time
/// with fractions), never going back.
CRD_API void crd_dcp_slave_receive(crd_dcp_slave* s, const crd_dcp_address* from,
                                   const crd_dcp_address* at, const uint8_t* bytes, size_t length,
                                   double now);
/// Time passes: heartbeat, start times, and steps that are due: 1000 at most, then
/// crd_dcp_slave_next is in the past.
CRD_API void crd_dcp_slave_advance(crd_dcp_slave* s, double now);
/// When crd_dcp_slave_advance has something to do, INFINITY: only after a PDU.
CRD_API double crd_dcp_slave_next(const crd_dcp_slave* s);
/// The duty that was LATER is over; a step, if one is. Not to be called by the plant's functions,
/// which return what they have done; these may call fault, stop and log.
CRD_API void crd_dcp_slave_done(crd_dcp_slave* s, crd_dcp_outcome outcome, double now);
/// The plant has a fault: ERRORHANDLING with this code.
CRD_API void crd_dcp_slave_fault(crd_dcp_slave* s, crd_dcp_error code, double now);
/// The slave's own wish to stop (SRT, HRT: in the Run superstate).
CRD_API void crd_dcp_slave_stop(crd_dcp_slave* s, double now);
/// A log entry with the values of its template's arguments.
CRD_API void crd_dcp_slave_log(crd_dcp_slave* s, uint8_t template_id, const crd_dcp_slot* arguments,
                               double now);
CRD_API crd_dcp_state crd_dcp_slave_state(const crd_dcp_slave* s);
CRD_API crd_dcp_error crd_dcp_slave_error(const crd_dcp_slave* s); ///< why it is in Error
CRD_API crd_dcp_slave_counts crd_dcp_slave_get_counts(const crd_dcp_slave* s);

// ---- networks ----------------------------------------------------------------------------------

/// "udp://127.0.0.1:8080", "tcp://bench-7:8080". A name is resolved (which may take as long as the
/// resolver likes); without a host ("udp://:8080") it is 127.0.0.1. Port 0 is left to the system.
/// CRD_E_FORMAT: what is wrong with the text; CRD_E_NOT_FOUND: nobody knows the host.
CRD_API crd_status crd_dcp_address_parse(crd_context* ctx, const char* text, crd_dcp_address* out);
/// As snprintf; 28 bytes are enough.
CRD_API int crd_dcp_address_print(const crd_dcp_address* a, char* out, size_t room);
CRD_API bool crd_dcp_address_equal(const crd_dcp_address* a, const crd_dcp_address* b);

/// Sockets of some network, for the master's side and the slave's: datagrams, or streams with
/// length prefixes, which look the same from here. Never blocks, except in crd_dcp_net_wait.
/// Belongs to one thread at a time. Listening, connecting and taking a connection in allocate;
/// sending and receiving do not.
typedef struct crd_dcp_net crd_dcp_net; ///< opaque

typedef struct crd_dcp_packet {
    crd_dcp_address from, at;
    const uint8_t* bytes; ///< valid until the next crd_dcp_net_receive
    size_t length;        ///< 0 is possible: an empty datagram
    double time;          ///< of arrival, on the clock of the net
} crd_dcp_packet;

/// The test network has the first of them only.
typedef struct crd_dcp_net_limits {
    uint32_t max_pdu;    ///< bytes; a stream that announces a longer one is closed; default 65507
    int max_connections; ///< default 256; see `evicted`
    size_t max_queue; ///< bytes a stream may wait with when its peer reads slowly; default 256 KiB
} crd_dcp_net_limits;

/// Counters, all exact.
typedef struct crd_dcp_net_counts {
    int64_t sent, received;             ///< PDUs
    int64_t bytes_sent, bytes_received; ///< of PDUs, without framing
    int64_t dropped;     ///< PDUs that could not be sent: too long, no connection, queue full
    int64_t overrun;     ///< datagrams that the system threw away because nobody read them in time
    int64_t refused;     ///< streams closed because they announced a PDU beyond max_pdu
    int64_t evicted;     ///< streams closed, or not taken in, because there were max_connections
    int64_t lost;        ///< connections that ended or failed from outside
    int64_t connections; ///< now
} crd_dcp_net_counts;

/// Real sockets: UDP/IPv4 and TCP/IPv4 (NODELAY, quick acknowledgement). Their clock is UNIX time
/// as it was at create and goes on with the monotonic clock, so that it never jumps.
CRD_API crd_status crd_dcp_net_create(crd_context* ctx, crd_dcp_net** out);
CRD_API void crd_dcp_net_destroy(crd_dcp_net* n);
CRD_API crd_dcp_net_limits crd_dcp_net_default_limits(void);
/// For what is opened from now on. CRD_E_RANGE.
CRD_API crd_status crd_dcp_net_set_limits(crd_dcp_net* n, const crd_dcp_net_limits* limits);
/// Binds; port 0 chooses one, which is then in `*at`. Several may be open; one that is open
/// already, or that one on all interfaces covers, is fine. ip 0 is 0.0.0.0, all interfaces: whoever
/// does not mean that says 127.0.0.1.
CRD_API crd_status crd_dcp_net_listen(crd_dcp_net* n, crd_dcp_address* at);
/// The index-th address that is listened at, in the order of opening; false: there are no more.
CRD_API bool crd_dcp_net_local(const crd_dcp_net* n, int index, crd_dcp_address* out);
CRD_API double crd_dcp_net_now(const crd_dcp_net* n); ///< the clock of the net, s
CRD_API crd_dcp_net_counts crd_dcp_net_get_counts(const crd_dcp_net* n);
/// The next packet that is there; false: none.
CRD_API bool crd_dcp_net_receive(crd_dcp_net* n, crd_dcp_packet* out);
/// Waits until something may be there or `seconds` have passed (0: do not wait); may come back
/// earlier.
CRD_API void crd_dcp_net_wait(crd_dcp_net* n, double seconds);
/// For who waits for several things: poll(2) finds it readable when something may be there, once
/// receive has said that there is nothing. -1: this network has none.
CRD_API int crd_dcp_net_descriptor(const crd_dcp_net* n);
/// A local address with the connections that came in there, or the connection to a peer. NULL: all
/// but control.
CRD_API void crd_dcp_net_close(crd_dcp_net* n, const crd_dcp_address* at);
/// A slave's link over it. What listens now is control from then on: crd_dcp_net_close(NULL) leaves
/// it open, and the connections that came in through it. A peer that lets the slave listen at
/// 0.0.0.0 gets the interface of the control address: it cannot open more than is open.
CRD_API crd_dcp_link crd_dcp_net_link(crd_dcp_net* n);

// ---- secured networks --------------------------------------------------------------------------

/// Every PDU encrypted and authenticated with a key that both partners have (32 random bytes):
/// X25519 and BLAKE2b make the keys of each association, ChaCha20-Poly1305 seals the PDUs. What an
/// attacker without the key can still do is delay and lose packets, and see who talks to whom and
/// how long the PDUs are. A key of two partners (cardan key pair) says what each may do; one of a
/// group (crd_dcp_key_make, zeros behind `bytes`) stands for the group, not for one partner in it.
typedef enum crd_dcp_key_role {
    CRD_DCP_ANY_ROLE, ///< of a group: everything
    CRD_DCP_MASTER_ROLE,
    CRD_DCP_BENCH_ROLE,    ///< is driven: answers, notifies and sends data, and asks for nothing
    CRD_DCP_OBSERVER_ROLE, ///< looks: INF_state, INF_error, INF_log
} crd_dcp_key_role;

typedef struct crd_dcp_key {
    uint8_t bytes[32];
    uint8_t previous[32];        ///< that it has replaced, taken until `previous_until`
    crd_dcp_key_role role, peer; ///< of this side and the other
    int64_t created, expires;    ///< s since 1970; expires 0: never
    int64_t previous_until;      ///< 0: there is none
    char name[33];               ///< of the other side
} crd_dcp_key;

/// From the random numbers of the system.
CRD_API crd_status crd_dcp_key_make(crd_context* ctx, crd_dcp_key* out);
/// A text file as cardan key pair writes it, or 64 hex digits or 44 characters of base64 of a
/// group. CRD_E_NOT_FOUND, CRD_E_IO, CRD_E_FORMAT; CRD_E_RANGE: others may read it, it has expired,
/// or it is revoked (~/.config/cardan/revoked). The sentence does not quote the file.
CRD_API crd_status crd_dcp_key_load(crd_context* ctx, const char* path, crd_dcp_key* out);
/// Mode 0600. CRD_E_IO if there is such a file already.
CRD_API crd_status crd_dcp_key_write(crd_context* ctx, const char* path, const crd_dcp_key* key);
CRD_API void crd_dcp_key_clear(crd_dcp_key* key); ///< wipes it

enum { CRD_DCP_MOST_KEYS = 16 };       ///< of one network
enum { CRD_DCP_SECURE_OVERHEAD = 34 }; ///< bytes that a PDU grows by; max_pdu shrinks by them

typedef struct crd_dcp_secure_options {
    int max_peers; ///< associations at once; default 256
    /// Accept handshakes that were meant for another address than the one where they arrive: for
    /// peers behind NAT or a relay. Default false: two slaves with the same key cannot be swapped.
    bool any_address;
    const crd_dcp_key* more; ///< further keys, of other partners; copied
    int more_count;
} crd_dcp_secure_options;

/// Counters, all exact.
typedef struct crd_dcp_secure_counts {
    int64_t handshakes;  ///< finished
    int64_t rejected;    ///< packets that are damaged, forged or made with another key
    int64_t replayed;    ///< genuine, but here before or too old (more than 1024 behind)
    int64_t plain;       ///< PDUs without encryption
    int64_t misdirected; ///< handshakes meant for another address
    int64_t
        unknown;   ///< packets of no association that is known, or from elsewhere than its partner
    int64_t muted; ///< answers that the rate limit held back
    int64_t given_up;  ///< handshakes that nobody answered
    int64_t dropped;   ///< PDUs that waited for such a handshake, or found the queue full
    int64_t peers;     ///< associations now
    int64_t forbidden; ///< PDUs that the role of the partner does not allow
} crd_dcp_secure_counts;

CRD_API crd_dcp_secure_options crd_dcp_secure_defaults(void);
/// A network over `inner`, to be used like any other; `inner` belongs to it from then on (on
/// failure it stays the caller's). The first PDU to a peer waits for a handshake of one round trip.
/// Strangers get no answer. A peer that was restarted is met by another handshake when nothing has
/// come from it for 2 s; what was sent to it meanwhile is lost as datagrams are. Bounded: max_peers
/// (further ones are refused), 64 KiB of PDUs that wait, 256 answers per second. Who asks many
/// addresses at once needs as many max_peers. `opt` may be NULL. A capture of `out` has the PDUs in
/// clear, one of `inner` as they travel.
CRD_API crd_status crd_dcp_net_secure(crd_context* ctx, crd_dcp_net* inner, const crd_dcp_key* key,
                                      const crd_dcp_secure_options* opt, crd_dcp_net** out);
/// Of a secured network; zeros for others.
CRD_API crd_dcp_secure_counts crd_dcp_net_secure_counts(const crd_dcp_net* n);

// ---- captures ----------------------------------------------------------------------------------

/// PDUs as a pcapng file that Wireshark opens (tools/dcp.lua shows what is in them): IPv4 with UDP
/// or TCP headers made up around them, times in ns; of CAN frames as SocketCAN has them.
typedef struct crd_dcp_capture crd_dcp_capture; ///< opaque
CRD_API crd_status crd_dcp_capture_open(crd_context* ctx, const char* path, crd_dcp_capture** out);
/// CRD_E_RANGE: longer than its transport can carry, or another transport than UDP and TCP;
/// CRD_E_MEMORY: of a new stream. What could not be written is told by close.
CRD_API crd_status crd_dcp_capture_add(crd_dcp_capture* c, double time, const crd_dcp_address* from,
                                       const crd_dcp_address* to, const uint8_t* bytes,
                                       size_t length);
/// CRD_E_IO: the file is not complete. NULL is fine.
CRD_API crd_status crd_dcp_capture_close(crd_dcp_capture* c);
/// Everything that `n` sends and receives from now on is added to `c` (borrowed); NULL ends that.
/// Writes to a file while sending: not for a thread with deadlines.
CRD_API void crd_dcp_net_capture(crd_dcp_net* n, crd_dcp_capture* c);

// ---- CAN ---------------------------------------------------------------------------------------

/// DCP over CAN is configured by a file: which identifier stands for which message (KMatrix), and
/// what CFG PDUs would have told the slaves (ScenarioConfiguration).

typedef struct crd_dcp_can_description crd_dcp_can_description; ///< opaque; by crd_dcp_can_load

/// As crd_dcp_load. Codes C01 ... in docs/reference/dcpx.md.
CRD_API crd_status crd_dcp_can_load(crd_context* ctx, const char* path,
                                    crd_dcp_can_description** out, const crd_dcp_finding** findings,
                                    int* count);
CRD_API crd_status crd_dcp_can_parse(crd_context* ctx, const char* text, size_t length,
                                     const char* file, crd_dcp_can_description** out,
                                     const crd_dcp_finding** findings, int* count);
CRD_API void crd_dcp_can_description_destroy(crd_dcp_can_description* d);
CRD_API int crd_dcp_can_message_count(const crd_dcp_can_description* d);

/// One end of a bus: frames in, PDUs out, and back.
typedef struct crd_dcp_can crd_dcp_can; ///< opaque
typedef struct crd_dcp_can_counts {
    int64_t sent, received; ///< PDUs
    int64_t unknown; ///< frames whose identifier is in no message, or that are no data frames
    int64_t bad_length;
    int64_t dropped; ///< PDUs that have no message, do not fit, or that the bus did not take
} crd_dcp_can_counts;

/// `d` (without fault) is borrowed. A bus by its name: an interface of SocketCAN ("can0", "vcan0"),
/// or one of this host, "udp://239.74.163.2:43113" (docs/reference/can.md). CRD_E_UNSUPPORTED: what
/// the system lacks, and what to load; CRD_E_RANGE, CRD_E_NOT_FOUND, CRD_E_IO.
CRD_API crd_status crd_dcp_can_open(crd_context* ctx, const crd_dcp_can_description* d,
                                    const char* interface, crd_dcp_can** out);
/// `d` (without fault) and `fd` are borrowed. Any descriptor that reads and writes whole
/// struct can_frame will do; it is made non-blocking.
CRD_API crd_status crd_dcp_can_create(crd_context* ctx, const crd_dcp_can_description* d, int fd,
                                      crd_dcp_can** out);
CRD_API void crd_dcp_can_destroy(crd_dcp_can* c);
CRD_API void crd_dcp_can_wait(crd_dcp_can* c, double seconds);
CRD_API crd_dcp_can_counts crd_dcp_can_get_counts(const crd_dcp_can* c);

/// A slave on a bus: the engine with what CAN lacks (CFG PDUs at registration and reset, sequence
/// ids, uuid, version) put in from the file. A setting that the slave refuses leads to
/// ERRORHANDLING with its code, and a line in the log says which.
typedef struct crd_dcp_can_slave crd_dcp_can_slave; ///< opaque
/// `c` and `d` are borrowed; the slave is the one with the uuid of `d`, or with dcp id `id` if
/// several have it (0: the first). CRD_E_NOT_FOUND: the file has none.
CRD_API crd_status crd_dcp_can_slave_create(crd_context* ctx, crd_dcp_can* c,
                                            const crd_dcp_can_description* file,
                                            const crd_dcp_description* d,
                                            const crd_dcp_plant* plant, uint8_t id,
                                            const crd_dcp_slave_options* opt,
                                            crd_dcp_can_slave** out);
CRD_API void crd_dcp_can_slave_destroy(crd_dcp_can_slave* s);
/// Takes in what has arrived and does what is due. `now` as for crd_dcp_slave_receive.
CRD_API void crd_dcp_can_slave_poll(crd_dcp_can_slave* s, double now);
/// The engine: for its state, counters, and crd_dcp_slave_done, fault, stop.
CRD_API crd_dcp_slave* crd_dcp_can_slave_engine(crd_dcp_can_slave* s);

// ---- the master --------------------------------------------------------------------------------

/// The other side: a session with its slaves.
///
/// A session is planned (slaves, groups of values, routes), then brought up, initialised, run and
/// brought down. It has no thread: the functions that wait do so in crd_dcp_net_wait, on the clock
/// of the network, so that a session runs on a virtual clock as well. After
/// crd_dcp_master_configure the functions of the data path (send, poll, begin_step, end_step, wait)
/// do not allocate. All functions that fail leave a sentence in the context that names the slave,
/// what was asked of it, its answer (code and meaning) and what would be right.
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
    crd_dcp_address control;                ///< udp or tcp; data go over the same transport. On a
                                            ///< CAN bus the port is its dcp id
    crd_dcp_op_mode mode;
    uint32_t numerator, denominator; ///< time resolution; 0: the fixed, recommended or first one
    uint8_t id;                      ///< 0: the session chooses
    bool one_target;                 ///< serves one target per data_id only, as DCPLib does
    double alive;                    ///< s without a PDU from it after which it is lost, also while
                                     ///< it is at a duty, however long that may take. 0: who is at
                                     ///< work need not answer
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
    int64_t foreign; ///< PDUs of others in its name: nothing acts on them. What is in nobody's
                     ///< name counts for the first slave
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
/// Stops, resets nothing, deregisters: what may turn something first, all at the same time, and
/// goes on with the others when one does not answer. CRD_OK if all are ALIVE at the end; else which
/// are not, and why. May be called at any time, and again.
CRD_API crd_status crd_dcp_master_stop(crd_dcp_master* m);

CRD_API int crd_dcp_master_count(const crd_dcp_master* m);
CRD_API crd_dcp_slave_status crd_dcp_master_status(const crd_dcp_master* m, int slave);
CRD_API double crd_dcp_master_resolution(const crd_dcp_master* m, int slave); ///< s
CRD_API double crd_dcp_master_now(const crd_dcp_master* m); ///< the clock of the net

// ---- test benches ------------------------------------------------------------------------------

/// Test benches behind the Distributed Co-Simulation Protocol: limits, readiness, conditioning and
/// a safe state, after Rautenberg et al. 2023, section 3.4.
///
/// A plain DCP slave does what its master says. A bench does not: it moves masses and voltages, so
/// it keeps its own limits, gets ready and warm before a run, and has a way to stand still that it
/// goes whenever something is wrong. `crd_dcp_bench` is that part. It is a crd_dcp_plant between a
/// crd_dcp_slave and the hardware (crd_dcp_rig), and it works with any master.
///
/// With a master that knows the extension more is said: limits, test case and initial temperatures
/// in CONFIGURATION, sequence numbers that the peer sends back in the run. All of it travels in
/// ordinary means of DCP: parameters, inputs, outputs and log entries that the slave's description
/// lists (crd_dcp_bench_declare). A master that leaves `bench.extension` at 0 notices nothing of
/// it.
///
/// Time is handed in; after `create` nothing allocates. One thread at a time.

enum { CRD_DCP_LIMITS_MAX = 16 }; ///< quantities of a bench

/// Limits are what a bench can do, or what a test case asks for: a text, statements between
/// semicolons:
///
///     speed 0..6500 1/min rate 2000 1/min/s; torque -210..210 N.m; voltage ..400 V;
///     avoid speed 0..50 1/min with torque
///
/// Of a test case, `avoid` says that it keeps clear of these points. One number stands for a range
/// (torque 0 N.m). "1/min" is a speed of rotation as "rpm" is.

/// What becomes of the set value of a quantity in a controlled stop.
typedef enum crd_dcp_role {
    CRD_DCP_ROLE_OTHER,       ///< goes to its safe value at once
    CRD_DCP_ROLE_SPEED,       ///< one at most: is ramped down
    CRD_DCP_ROLE_TORQUE,      ///< is 0 at once
    CRD_DCP_ROLE_VOLTAGE,     ///< is held until the speed is safe, then lowered
    CRD_DCP_ROLE_TEMPERATURE, ///< a medium: is conditioned, and cooled down
} crd_dcp_role;

/// Start from crd_dcp_quantity_defaults. NAN: not given.
typedef struct crd_dcp_quantity {
    const char* name; ///< as in the limits
    const char* unit; ///< of its values here and in its variables; NULL: that of its limit
    crd_dcp_role role;
    const char* input;         ///< the variable of its set value, NULL: none
    const char* output;        ///< the variable of its measured value, NULL: none
    double conditioning;       ///< set value while media are conditioned
    double safe;               ///< set value at the end of a stop; default 0, a medium's: as it is
    double trip_min, trip_max; ///< measured values beyond are a fault
    double cool_down;          ///< a medium: a stop is over when it is not above this
    /// An earlier quantity that this one moves as well, as a current does a torque: what is agreed
    /// of that one holds for this one, too, and where it is forbidden this one is. NULL: none.
    const char* of;
    double factor; ///< unit of that one per unit of this one
} crd_dcp_quantity;

/// Everything is borrowed and outlives the bench. Start from crd_dcp_bench_defaults.
typedef struct crd_dcp_bench_config {
    const char* limits; ///< as text; set values are kept to them
    const crd_dcp_quantity* quantities;
    int quantity_count;           ///< at most CRD_DCP_LIMITS_MAX
    const char* const* checklist; ///< what has to be so before remote control is given
    int checklist_count;          ///< at most 31
    const char* initial;          ///< temperatures where the master says none; default ""
    double tolerance;             ///< K, where the master says none; default 1
    double safe_speed;            ///< in the unit of the speed; default 100
    double turn_speed;            ///< while a stop cools down; default NAN: half of the safe speed
    double stop_rate;  ///< of the speed in a stop, unit/s; default NAN: its limit's, else 1000
    double standstill; ///< a speed that counts as 0; default 1
    double induced;    ///< voltage that the machine induces per unit of speed: the set value of the
                       ///< voltage is never below that; default 0
    double watchdog;   ///< s without valid data until the stop, from STC_run on (or from the start
                       ///< that it names); default 0.5; 0: none
    uint32_t gap_limit; ///< of sequence numbers; default 100. A side that sends 100 times as often
                        ///< as the other needs more
    double period;      ///< s, of the bench's own control; default 0.01
    double report;      ///< s between entries of the log about what is waited for; default 5
    double stop_patience; ///< s that a stage of a stop may take until the drive is cut (speed,
                          ///< standstill) or the next stage begins; default 60
    double cool_patience; ///< s, the same of cooling down; default 7200
    double heartbeat;     ///< s without INF_state outside of runs until the stop; for
                          ///< crd_dcp_bench_declare; default 3; 0: none
    const char* const*
        calibrated; ///< told to the master at STC_prepare: sensors with gain, offset,
                    ///< date and who did it, "torque 0.98 -0.3 2026-11-17 J. Doe"
    int calibrated_count;
} crd_dcp_bench_config;

/// The hardware. Quantities and items by their index in the configuration.
typedef struct crd_dcp_rig {
    void* user;
    void (*set)(void* user, int quantity, double value);
    double (*measure)(void* user, int quantity);
    bool (*ready)(void* user, int item); ///< NULL: all are
    int (*error)(void* user);            ///< what is in the error memory, 0: nothing; NULL: never
    void (*remote)(void* user, bool given);   ///< remote control is given or withdrawn; NULL
    void (*step)(void* user, double seconds); ///< its controller or model goes on; NULL
    /// Variables that are not of the bench, as in crd_dcp_plant; NULL: nothing to do.
    crd_dcp_outcome (*set_variable)(void* user, int variable, const crd_dcp_slot* value);
    crd_dcp_outcome (*get_variable)(void* user, int variable, crd_dcp_slot* value);
    /// The speed does not come down: drive off, brake on, by whatever way does not need the
    /// controller. It lasts until remote control is given again. NULL: there is no such way.
    void (*cut)(void* user);
    /// What the hardware allows of a set value now, inside of its limits: a battery that is nearly
    /// empty. It is above what was agreed. False: no more than its limits. NULL: never.
    bool (*range)(void* user, int quantity, double* min, double* max);
} crd_dcp_rig;

/// Where the bench is; `bench.status`.
typedef enum crd_dcp_bench_phase {
    CRD_DCP_BENCH_IDLE,         ///< nobody's, at rest
    CRD_DCP_BENCH_PREPARATION,  ///< goes through its checklist
    CRD_DCP_BENCH_PREPARED,     ///< under remote control from here on
    CRD_DCP_BENCH_CONDITIONING, ///< media come to their temperatures
    CRD_DCP_BENCH_CONDITIONED,  ///< and are held there
    CRD_DCP_BENCH_RUN,          ///< follows the set values of the master
    CRD_DCP_BENCH_SPEED_DOWN,   ///< remote control withdrawn, torque 0, voltage held
    CRD_DCP_BENCH_VOLTAGE_DOWN, ///< the speed is safe
    CRD_DCP_BENCH_COOL_DOWN,    ///< turns slowly until the media are cool enough
    CRD_DCP_BENCH_STAND_DOWN,   ///< to standstill, voltage to 0
    CRD_DCP_BENCH_SAFE,         ///< at rest, until STC_reset or a new registration
    CRD_DCP_BENCH_ARMED, ///< before RUN: STC_run has come, valid data in RUNNING have not, and set
                         ///< values move nothing
} crd_dcp_bench_phase;

/// Why the last stop was; `bench.reason`.
typedef enum crd_dcp_bench_reason {
    CRD_DCP_BENCH_NO_REASON,
    CRD_DCP_BENCH_BY_MASTER,   ///< STC_stop
    CRD_DCP_BENCH_BY_OPERATOR, ///< crd_dcp_bench_stop
    CRD_DCP_BENCH_WATCHDOG,    ///< valid data have stopped
    CRD_DCP_BENCH_GAP,         ///< sequence numbers too far apart
    CRD_DCP_BENCH_TRIP,        ///< a measured value beyond its bounds
    CRD_DCP_BENCH_RIG_ERROR,   ///< the error memory of the rig
    CRD_DCP_BENCH_ITEM_LOST,   ///< of the checklist
    CRD_DCP_BENCH_LIMITS,      ///< the test case was refused
    CRD_DCP_BENCH_WITHDRAWN,   ///< STC_prepare behind a stop, without STC_reset
    CRD_DCP_BENCH_SLAVE,       ///< anything that the slave found: heartbeat, missed PDUs
} crd_dcp_bench_reason;

CRD_API const char* crd_dcp_bench_phase_name(int phase);   ///< "conditioning"; NULL: unknown
CRD_API const char* crd_dcp_bench_reason_name(int reason); ///< "watchdog"; NULL: unknown

/// Times between sending a sequence number and getting it back.
typedef struct crd_dcp_round_trip {
    int64_t count;
    double last, least, most, sum; ///< s
} crd_dcp_round_trip;

typedef struct crd_dcp_bench_state {
    crd_dcp_bench_phase phase;
    crd_dcp_bench_reason reason;
    bool extension;    ///< switched on by the master
    bool remote;       ///< the master has control
    uint32_t missing;  ///< items of the checklist, by bits; bit 31: the error memory
    uint32_t clamped;  ///< set values: bit i outside of limits, bit 16 + i changing too fast
    int64_t clamps;    ///< how often a set value went outside
    int64_t refused;   ///< set values that were not numbers
    int64_t foreign;   ///< data of others than the master
    bool cut;          ///< a stage of the stop took too long, and the drive was cut
    double safe_since; ///< speed safe and torque 0, s; NAN: not
    double valid;      ///< time of the last valid data, -INFINITY
    double time;       ///< of its control, which is what the watchdog goes by
    crd_dcp_round_trip round_trip;
} crd_dcp_bench_state;

typedef struct crd_dcp_bench crd_dcp_bench; ///< opaque

CRD_API crd_dcp_quantity crd_dcp_quantity_defaults(void);
CRD_API crd_dcp_bench_config crd_dcp_bench_defaults(void);

/// Adds the variables `bench.*` (value references from `first_vr` on) and the log entries of a
/// bench to a description of crd_dcp_description_create. CRD_E_RANGE: a name or reference that is
/// taken; CRD_E_FORMAT: the limits.
CRD_API crd_status crd_dcp_bench_declare(crd_dcp_description* d, const crd_dcp_bench_config* c,
                                         uint64_t first_vr);

/// `d` need not be declared a bench: then masters cannot switch the extension on, and all else is
/// there. CRD_E_NOT_FOUND: a variable or limit that is named does not exist. CRD_E_RANGE.
CRD_API crd_status crd_dcp_bench_create(crd_context* ctx, const crd_dcp_description* d,
                                        const crd_dcp_bench_config* c, const crd_dcp_rig* rig,
                                        crd_dcp_bench** out);
CRD_API void crd_dcp_bench_destroy(crd_dcp_bench* b);
/// For crd_dcp_slave_create, whose slave is then told to the bench (borrowed). What the bench does
/// by itself (control, watch, duties that take their time) it does when crd_dcp_slave_advance or
/// crd_dcp_slave_receive is called: who drives the slave drives the bench. In NRT the rig's time is
/// that of the steps while it runs.
CRD_API crd_dcp_plant crd_dcp_bench_plant(crd_dcp_bench* b);
CRD_API void crd_dcp_bench_attach(crd_dcp_bench* b, crd_dcp_slave* s);
/// Somebody at the bench wants it to stop.
CRD_API void crd_dcp_bench_stop(crd_dcp_bench* b, double now);
CRD_API crd_dcp_bench_state crd_dcp_bench_get_state(const crd_dcp_bench* b);
CRD_API double crd_dcp_bench_set_value(const crd_dcp_bench* b, int quantity); ///< what the rig has

#ifdef __cplusplus
}
#endif
