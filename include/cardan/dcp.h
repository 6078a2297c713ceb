/// The Distributed Co-Simulation Protocol, DCP 1.0: its bytes, its descriptions (dcpx), the slave,
/// and the networks that carry it.
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

typedef enum crd_dcp_type {
    CRD_DCP_STC_REGISTER = 0x01,
    CRD_DCP_STC_DEREGISTER = 0x02,
    CRD_DCP_STC_PREPARE = 0x03,
    CRD_DCP_STC_CONFIGURE = 0x04,
    CRD_DCP_STC_INITIALIZE = 0x05,
    CRD_DCP_STC_RUN = 0x06,
    CRD_DCP_STC_DO_STEP = 0x07,
    CRD_DCP_STC_SEND_OUTPUTS = 0x08,
    CRD_DCP_STC_STOP = 0x09,
    CRD_DCP_STC_RESET = 0x0A,
    CRD_DCP_CFG_TIME_RES = 0x20,
    CRD_DCP_CFG_STEPS = 0x21,
    CRD_DCP_CFG_INPUT = 0x22,
    CRD_DCP_CFG_OUTPUT = 0x23,
    CRD_DCP_CFG_CLEAR = 0x24,
    CRD_DCP_CFG_TARGET_NETWORK = 0x25,
    CRD_DCP_CFG_SOURCE_NETWORK = 0x26,
    CRD_DCP_CFG_PARAMETER = 0x27,
    CRD_DCP_CFG_TUNABLE_PARAMETER = 0x28,
    CRD_DCP_CFG_PARAM_NETWORK = 0x29,
    CRD_DCP_CFG_LOGGING = 0x2A,
    CRD_DCP_CFG_SCOPE = 0x2B,
    CRD_DCP_INF_STATE = 0x80,
    CRD_DCP_INF_ERROR = 0x81,
    CRD_DCP_INF_LOG = 0x82,
    CRD_DCP_RSP_ACK = 0xB0,
    CRD_DCP_RSP_NACK = 0xB1,
    CRD_DCP_RSP_STATE_ACK = 0xB2,
    CRD_DCP_RSP_ERROR_ACK = 0xB3,
    CRD_DCP_RSP_LOG_ACK = 0xB4,
    CRD_DCP_NTF_STATE_CHANGED = 0xE0,
    CRD_DCP_NTF_LOG = 0xE1,
    CRD_DCP_DAT_INPUT_OUTPUT = 0xF0,
    CRD_DCP_DAT_PARAMETER = 0xF1,
} crd_dcp_type;

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
typedef enum crd_dcp_scope { CRD_DCP_ALWAYS, CRD_DCP_INITIALIZATION, CRD_DCP_RUN } crd_dcp_scope;
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

CRD_API const char* crd_dcp_type_name(int type);        ///< "STC_register"; NULL: unknown
CRD_API const char* crd_dcp_state_name(int state);      ///< "ALIVE"; NULL: unknown
CRD_API const char* crd_dcp_data_type_name(int type);   ///< "float64"; NULL: unknown
CRD_API const char* crd_dcp_error_name(int code);       ///< "INVALID_UUID", "NONE"; NULL: unknown
CRD_API const char* crd_dcp_error_text(int code);       ///< a sentence for people
CRD_API const char* crd_dcp_op_mode_name(int mode);     ///< "NRT"
CRD_API size_t crd_dcp_size_of(crd_dcp_data_type type); ///< bytes; 0: string, binary
/// Whether an input or parameter of type `to` may be fed with values of type `from`.
CRD_API bool crd_dcp_converts(crd_dcp_data_type from, crd_dcp_data_type to);

// ---- PDUs --------------------------------------------------------------------------------------

/// Any PDU, decoded. Which fields count is said by one table per type (src/dcp/pdu.c), from which
/// encoder, decoder and printer come; fields that a type does not have are 0.
typedef struct crd_dcp_pdu {
    uint8_t type;
    uint16_t seq;  ///< pdu_seq_id, or resp_seq_id of a response
    uint8_t peer;  ///< receiver of a request, sender of a response or notification
    uint8_t state; ///< state_id
    uint8_t uuid[16];
    uint8_t op_mode, major, minor;
    int64_t time; ///< s since 1970
    uint32_t steps;
    uint32_t numerator, denominator;
    uint16_t id; ///< data_id or param_id
    uint16_t pos;
    uint64_t vr;
    uint8_t data_type; ///< source_data_type
    uint8_t transport;
    uint16_t port;                      ///< UDP, TCP; Bluetooth's 8 bits
    uint32_t address;                   ///< IPv4, 127.0.0.1 = 0x7F000001
    uint64_t bd_addr;                   ///< Bluetooth
    uint8_t endpoint;                   ///< USB
    uint8_t category, level, mode, max; ///< of logs
    uint8_t scope;
    uint16_t expected; ///< exp_seq_id
    uint16_t error;
    uint8_t template_id;
    const uint8_t* payload; ///< what follows: value, log entries, arguments, data; borrowed
    size_t payload_length;
    size_t bad_length; ///< by decode with BAD_LENGTH: the bytes that there were, for print; else 0
} crd_dcp_pdu;

typedef enum crd_dcp_decoded {
    CRD_DCP_GOOD,
    CRD_DCP_UNKNOWN, ///< empty, fewer than the common fields, or a type that does not exist: drop
    CRD_DCP_BAD_LENGTH, ///< type, seq and peer are there (and state if it reaches so far), no more
} crd_dcp_decoded;

CRD_API crd_dcp_decoded crd_dcp_decode(const uint8_t* bytes, size_t length, crd_dcp_pdu* out);
/// Bytes that it takes, 0 if the type is unknown or a value too large for its field (port and
/// bd_addr of Bluetooth). `out` may be NULL; nothing is written where `room` is too small. The
/// payload may stand in `out` already, best where it goes: data from byte 5 on.
CRD_API size_t crd_dcp_encode(const crd_dcp_pdu* p, uint8_t* out, size_t room);
/// One line: "STC_register seq=1 rcv=1 state_id=ALIVE uuid=... op_mode=NRT ver=1.0". As snprintf.
CRD_API int crd_dcp_print(const crd_dcp_pdu* p, char* out, size_t room);

/// DCP over CAN, where type, data_id or param_id, and the sender of a slave's message are in the
/// identifier of the frame: what its data bytes carry. There is no CFG, no log, no sequence id.
/// Error codes have 8 bits there: the group (0xg000) in the upper three, the number in the lower
/// five; what does not fit becomes CRD_DCP_E_GENERIC.
enum { CRD_DCP_CAN_ROOM = 8 };
/// Bytes written, 0 .. 8; -1: not a message of CAN, more than 255 steps, or a payload beyond 8.
CRD_API int crd_dcp_can_encode(const crd_dcp_pdu* p, uint8_t out[CRD_DCP_CAN_ROOM]);
/// `p` comes with what the identifier says (type, id, and peer for a slave's message), and the rest
/// of it is overwritten. CRD_DCP_UNKNOWN: not a message of CAN.
CRD_API crd_dcp_decoded crd_dcp_can_decode(const uint8_t* bytes, size_t length, crd_dcp_pdu* p);

// ---- values in payloads ------------------------------------------------------------------------

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

/// Writes the values in their own type behind each other. Bytes that it takes; nothing is written
/// beyond `room`.
CRD_API size_t crd_dcp_put(const crd_dcp_slot* slots, int count, uint8_t* out, size_t room);
/// Reads them, encoded as `types[i]`, converted to the slots' types. All or nothing: first
/// everything is walked through with bounds checks. CRD_DCP_NONE, CRD_DCP_E_INVALID_LENGTH (too
/// short, too long), CRD_DCP_E_INVALID_PAYLOAD (a string or binary beyond max_size),
/// CRD_DCP_E_INVALID_SOURCE_DATA_TYPE.
CRD_API crd_dcp_error crd_dcp_take(const crd_dcp_slot* slots, const uint8_t* types, int count,
                                   const uint8_t* payload, size_t length);
/// Makes one slot of neighbours of the same numeric type whose values stand behind each other in
/// memory, and whose `types` (those of take; NULL: for put) are equal. The payload stays the same;
/// a run of float64 becomes one copy. The new count.
CRD_API int crd_dcp_join(crd_dcp_slot* slots, uint8_t* types, int count);

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
    const char* code; ///< "V03": docs/dcpx.md lists them
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
    /// Requests only from the port that registered, too. Default false: a master that was restarted
    /// or has connected anew may go on from another port of its host with the next sequence id, and
    /// gets the notifications then. INF_state is answered to everybody; as a heartbeat and with a
    /// sequence id it counts from the master only.
    bool same_port;
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

/// The state machine alone: the state behind a request or an internal event, -1: not allowed there.
typedef enum crd_dcp_event {
    CRD_DCP_SIG_DONE, ///< the duty of a transient state is over
    CRD_DCP_SIG_STOP, ///< the slave's own wish
    CRD_DCP_SIG_ERROR,
    CRD_DCP_SIG_RESOLVED,
} crd_dcp_event;
/// `type` is an STC; `from_run` the Run state that STC_do_step left (for SENDING_D).
CRD_API int crd_dcp_next_state(crd_dcp_state state, int type, crd_dcp_op_mode mode);
CRD_API int crd_dcp_next_state_event(crd_dcp_state state, crd_dcp_event event,
                                     crd_dcp_state from_run);
/// Whether the slave takes a PDU of this type in this state (the table of the standard, put right).
CRD_API bool crd_dcp_allowed(crd_dcp_state state, int type, crd_dcp_op_mode mode);

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
/// TCP. Returns at once, the connection comes about while time passes; what is sent meanwhile waits
/// for it. When it breaks, what waits is lost, and the next sending tries again, at most every
/// 100 ms; connect tries at once. One that is there already is fine.
CRD_API crd_status crd_dcp_net_connect(crd_dcp_net* n, const crd_dcp_address* to);
/// The same from an own address, for hosts with several; each is a connection of its own, used by
/// crd_dcp_net_send_from with this address and port 0. Networks that have no choice connect as
/// above.
CRD_API crd_status crd_dcp_net_connect_from(crd_dcp_net* n, uint32_t ip, const crd_dcp_address* to);
/// Whether there is a connection to this peer and it is established, as far as receive has seen.
CRD_API bool crd_dcp_net_connected(const crd_dcp_net* n, const crd_dcp_address* to);
/// The index-th address that is listened at, in the order of opening; false: there are no more.
CRD_API bool crd_dcp_net_local(const crd_dcp_net* n, int index, crd_dcp_address* out);
/// What listens now is control: crd_dcp_net_close(NULL) leaves it open, and the connections that
/// came in through it.
CRD_API void crd_dcp_net_set_control(crd_dcp_net* n);
CRD_API double crd_dcp_net_now(const crd_dcp_net* n); ///< the clock of the net, s
/// The local address that leads to `to`: what a peer there has to be told to answer us. 0: no way.
CRD_API uint32_t crd_dcp_net_source_ip(const crd_dcp_net* n, const crd_dcp_address* to);
CRD_API crd_dcp_net_counts crd_dcp_net_get_counts(const crd_dcp_net* n);
/// From the first local address of the transport (UDP; where there is none, one is opened beside
/// the first that listens), or over the connection to `to` (TCP). false: it was dropped.
CRD_API bool crd_dcp_net_send(crd_dcp_net* n, const crd_dcp_address* to, const uint8_t* bytes,
                              size_t length);
/// The same from another of the local addresses (UDP), or over the connection that came in there
/// (TCP). One that is not open, or NULL: as crd_dcp_net_send.
CRD_API bool crd_dcp_net_send_from(crd_dcp_net* n, const crd_dcp_address* from,
                                   const crd_dcp_address* to, const uint8_t* bytes, size_t length);
/// What is sent between true and false leaves together behind it, or in crd_dcp_net_wait: several
/// PDUs with one call of the system, and in one segment of a stream. May be nested. A datagram that
/// cannot be sent then is counted in `dropped`, although send said true.
CRD_API void crd_dcp_net_hold(crd_dcp_net* n, bool on);
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
/// A slave's link over it; does crd_dcp_net_set_control. A peer that lets the slave listen at
/// 0.0.0.0 gets the interface of the control address: it cannot open more than is open.
CRD_API crd_dcp_link crd_dcp_net_link(crd_dcp_net* n);

// ---- secured networks --------------------------------------------------------------------------

/// Every PDU encrypted and authenticated with a key that all partners have (32 random bytes):
/// X25519 and BLAKE2b make the keys of each association, ChaCha20-Poly1305 seals the PDUs. What an
/// attacker without the key can still do is delay and lose packets, and see who talks to whom and
/// how long the PDUs are. The key stands for the group, not for one partner in it.
typedef struct crd_dcp_key {
    uint8_t bytes[32];
} crd_dcp_key;

/// From the random numbers of the system.
CRD_API crd_status crd_dcp_key_make(crd_context* ctx, crd_dcp_key* out);
/// A text file: 64 hex digits or 44 characters of base64. Warns (log) if others may read it.
/// CRD_E_NOT_FOUND, CRD_E_IO, CRD_E_FORMAT; the sentence does not quote the file.
CRD_API crd_status crd_dcp_key_load(crd_context* ctx, const char* path, crd_dcp_key* out);
/// As 64 hex digits, mode 0600. CRD_E_IO if there is such a file already.
CRD_API crd_status crd_dcp_key_write(crd_context* ctx, const char* path, const crd_dcp_key* key);
CRD_API void crd_dcp_key_clear(crd_dcp_key* key); ///< wipes it

enum { CRD_DCP_SECURE_OVERHEAD = 34 }; ///< bytes that a PDU grows by; max_pdu shrinks by them

typedef struct crd_dcp_secure_options {
    int max_peers; ///< associations at once; default 256
    /// Accept handshakes that were meant for another address than the one where they arrive: for
    /// peers behind NAT or a relay. Default false: two slaves with the same key cannot be swapped.
    bool any_address;
} crd_dcp_secure_options;

/// Counters, all exact.
typedef struct crd_dcp_secure_counts {
    int64_t handshakes;  ///< finished
    int64_t rejected;    ///< packets that are damaged, forged or made with another key
    int64_t replayed;    ///< genuine, but here before or too old (more than 1024 behind)
    int64_t plain;       ///< PDUs without encryption
    int64_t misdirected; ///< handshakes meant for another address
    int64_t unknown;     ///< packets of associations that are not known any more
    int64_t muted;       ///< answers that the rate limit held back
    int64_t given_up;    ///< handshakes that nobody answered
    int64_t dropped;     ///< PDUs that waited for such a handshake, or found the queue full
    int64_t peers;       ///< associations now
} crd_dcp_secure_counts;

CRD_API crd_dcp_secure_options crd_dcp_secure_defaults(void);
/// A network over `inner`, to be used like any other; `inner` belongs to it from then on (on
/// failure it stays the caller's). The first PDU to a peer waits for a handshake of one round trip.
/// A peer that was restarted is met by another handshake; what was sent to it meanwhile is lost as
/// datagrams are. Bounded: max_peers (further ones are refused), 64 KiB of PDUs that wait, 256
/// answers per second. Who asks many addresses at once needs as many max_peers. `opt` may be NULL.
/// A capture of `out` has the PDUs in clear, one of `inner` as they travel.
CRD_API crd_status crd_dcp_net_secure(crd_context* ctx, crd_dcp_net* inner, const crd_dcp_key* key,
                                      const crd_dcp_secure_options* opt, crd_dcp_net** out);
/// Of a secured network; zeros for others.
CRD_API crd_dcp_secure_counts crd_dcp_net_secure_counts(const crd_dcp_net* n);

// ---- CAN ---------------------------------------------------------------------------------------

/// DCP over CAN is configured by a file: which identifier stands for which message (KMatrix), and
/// what CFG PDUs would have told the slaves (ScenarioConfiguration).

/// A value in a data message.
typedef struct crd_dcp_can_item {
    const char *name, *unit; ///< unit "" none
    uint8_t type;            ///< crd_dcp_data_type
    uint8_t offset;          ///< first byte
    uint8_t length;          ///< bytes; given for string and binary, else that of the type
    double min, max;         ///< NaN: not given
    int line;                ///< here and below: in the file, 0 if made by hand
} crd_dcp_can_item;

typedef struct crd_dcp_can_message {
    uint16_t can_id;               ///< up to 2047 a standard frame, beyond an extended one
    uint8_t type;                  ///< crd_dcp_type
    uint8_t sender;                ///< dcp id, 0 the master
    uint16_t id;                   ///< data_id or param_id
    uint8_t length;                ///< bytes of the frame
    const crd_dcp_can_item* items; ///< of data, by `pos` of CFG_output and CFG_input
    int item_count;                ///< up to 8
    const uint8_t* receivers;      ///< dcp ids, of data
    int receiver_count;
    int line;
} crd_dcp_can_message;

typedef struct crd_dcp_can_config { ///< of one slave
    const char* name;               ///< "" none
    uint8_t uuid[16];
    uint8_t id;                  ///< dcp id
    const crd_dcp_pdu* settings; ///< CFG PDUs without sequence ids; CAN needs no addresses
    const int* lines;            ///< (setting_count), NULL
    int setting_count;
    int line;
} crd_dcp_can_config;

/// All memory is in its arena; made by crd_dcp_can_load, or by hand.
typedef struct crd_dcp_can_description {
    crd_context* ctx;
    crd_arena arena;
    const char* file;
    const crd_dcp_can_message* messages;
    int message_count;
    const crd_dcp_can_config* slaves;
    int slave_count;
} crd_dcp_can_description;

/// As crd_dcp_load. Codes C01 ... in docs/dcpx.md.
CRD_API crd_status crd_dcp_can_load(crd_context* ctx, const char* path,
                                    crd_dcp_can_description** out, const crd_dcp_finding** findings,
                                    int* count);
CRD_API crd_status crd_dcp_can_parse(crd_context* ctx, const char* text, size_t length,
                                     const char* file, crd_dcp_can_description** out,
                                     const crd_dcp_finding** findings, int* count);
CRD_API crd_status crd_dcp_can_description_create(crd_context* ctx, crd_dcp_can_description** out);
CRD_API void crd_dcp_can_description_destroy(crd_dcp_can_description* d);
/// The rules, for a description made by hand as well.
CRD_API crd_status crd_dcp_can_validate(crd_dcp_can_description* d,
                                        const crd_dcp_finding** findings, int* count);
/// As XML that the schema accepts, appended to `out`; reading it gives an equal description.
/// CRD_E_RANGE with the first fault if the rules are broken.
CRD_API crd_status crd_dcp_can_write(crd_dcp_can_description* d, crd_text* out);
/// Adds the messages of control to a description made by hand: twelve requests from `first` on,
/// then five per slave, in the order in which they should win the bus. Data come before or behind
/// them.
CRD_API crd_status crd_dcp_can_add_control(crd_dcp_can_description* d, uint16_t first);

/// One end of a bus: frames in, PDUs out, and back.
typedef struct crd_dcp_can crd_dcp_can; ///< opaque
typedef struct crd_dcp_can_counts {
    int64_t sent, received; ///< PDUs
    int64_t unknown; ///< frames whose identifier is in no message, or that are no data frames
    int64_t bad_length;
    int64_t dropped; ///< PDUs that have no message, do not fit, or that the bus did not take
} crd_dcp_can_counts;

/// A raw socket of SocketCAN ("can0", "vcan0"), to be closed by the caller. CRD_E_UNSUPPORTED: what
/// the system lacks, and what to load; CRD_E_NOT_FOUND, CRD_E_IO.
CRD_API crd_status crd_dcp_can_open(crd_context* ctx, const char* interface, int* fd);
/// `d` (without fault) and `fd` are borrowed. Any descriptor that reads and writes whole
/// struct can_frame will do; it is made non-blocking.
CRD_API crd_status crd_dcp_can_create(crd_context* ctx, const crd_dcp_can_description* d, int fd,
                                      crd_dcp_can** out);
CRD_API void crd_dcp_can_destroy(crd_dcp_can* c);
/// By type, and by peer (answers, notifications) or id (data). Data and their payload as in a PDU.
/// `sender` of data: 0 for the master.
CRD_API bool crd_dcp_can_send(crd_dcp_can* c, const crd_dcp_pdu* p, uint8_t sender);
/// The next PDU that is there; false: none. The payload is valid until the next call; seq is 0.
/// `*sender` (may be NULL) is the dcp id.
CRD_API bool crd_dcp_can_receive(crd_dcp_can* c, crd_dcp_pdu* out, uint8_t* sender);
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

// ---- captures ----------------------------------------------------------------------------------

/// PDUs as a pcapng file that Wireshark opens (tools/dcp.lua shows what is in them): IPv4 with UDP
/// or TCP headers made up around them, times in ns.
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

#ifdef __cplusplus
}
#endif
