/// What modules share of dcp. Not for users.
#pragma once
#include "cardan/dcp.h"
#include "shared/base.h"

// ---- bytes -------------------------------------------------------------------------------------

/// A little endian number of 1, 2, 4 or 8 bytes. Written out and not as a loop over bytes: of this
/// compilers make one load or store.
static inline uint64_t crdi_load_le(const uint8_t* p, size_t size)
{
    const uint64_t low = p[0];
    if (size == 1) { return low; }
    const uint64_t two = low | (uint64_t)p[1] << 8;
    if (size == 2) { return two; }
    const uint64_t four = two | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
    if (size == 4) { return four; }
    return four | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

static inline void crdi_store_le(uint8_t* p, size_t size, uint64_t x)
{
    p[0] = (uint8_t)x;
    if (size == 1) { return; }
    p[1] = (uint8_t)(x >> 8);
    if (size == 2) { return; }
    p[2] = (uint8_t)(x >> 16);
    p[3] = (uint8_t)(x >> 24);
    if (size == 4) { return; }
    p[4] = (uint8_t)(x >> 32);
    p[5] = (uint8_t)(x >> 40);
    p[6] = (uint8_t)(x >> 48);
    p[7] = (uint8_t)(x >> 56);
}

/// An unsigned member of a struct, of 1, 2, 4 or 8 bytes, for tables that know offset and size.
static inline uint64_t crdi_dcp_member_get(const void* base, size_t offset, size_t size)
{
    const void* at = (const char*)base + offset;
    return size == 1   ? *(const uint8_t*)at
           : size == 2 ? *(const uint16_t*)at
           : size == 4 ? *(const uint32_t*)at
                       : *(const uint64_t*)at;
}

static inline void crdi_dcp_member_set(void* base, size_t offset, size_t size, uint64_t x)
{
    void* at = (char*)base + offset;
    if (size == 1) { *(uint8_t*)at = (uint8_t)x; }
    if (size == 2) { *(uint16_t*)at = (uint16_t)x; }
    if (size == 4) { *(uint32_t*)at = (uint32_t)x; }
    if (size == 8) { *(uint64_t*)at = x; }
}

/// A line of text in given room, as of snprintf: `length` counts what there would be. The text is
/// ended after every call.
typedef struct crdi_dcp_line {
    char* out;
    size_t room, length;
} crdi_dcp_line;
void crdi_dcp_line_put(crdi_dcp_line* l, const char* text, size_t length);
void crdi_dcp_line_add(crdi_dcp_line* l, const char* format, ...) CRD_PRINTF(2, 3);
void crdi_dcp_line_hex(crdi_dcp_line* l, const uint8_t* bytes, size_t count);

// ---- PDUs --------------------------------------------------------------------------------------

typedef enum crdi_dcp_pdu_type {
    CRDI_DCP_STC_REGISTER = 0x01,
    CRDI_DCP_STC_DEREGISTER = 0x02,
    CRDI_DCP_STC_PREPARE = 0x03,
    CRDI_DCP_STC_CONFIGURE = 0x04,
    CRDI_DCP_STC_INITIALIZE = 0x05,
    CRDI_DCP_STC_RUN = 0x06,
    CRDI_DCP_STC_DO_STEP = 0x07,
    CRDI_DCP_STC_SEND_OUTPUTS = 0x08,
    CRDI_DCP_STC_STOP = 0x09,
    CRDI_DCP_STC_RESET = 0x0A,
    CRDI_DCP_CFG_TIME_RES = 0x20,
    CRDI_DCP_CFG_STEPS = 0x21,
    CRDI_DCP_CFG_INPUT = 0x22,
    CRDI_DCP_CFG_OUTPUT = 0x23,
    CRDI_DCP_CFG_CLEAR = 0x24,
    CRDI_DCP_CFG_TARGET_NETWORK = 0x25,
    CRDI_DCP_CFG_SOURCE_NETWORK = 0x26,
    CRDI_DCP_CFG_PARAMETER = 0x27,
    CRDI_DCP_CFG_TUNABLE_PARAMETER = 0x28,
    CRDI_DCP_CFG_PARAM_NETWORK = 0x29,
    CRDI_DCP_CFG_LOGGING = 0x2A,
    CRDI_DCP_CFG_SCOPE = 0x2B,
    CRDI_DCP_INF_STATE = 0x80,
    CRDI_DCP_INF_ERROR = 0x81,
    CRDI_DCP_INF_LOG = 0x82,
    CRDI_DCP_RSP_ACK = 0xB0,
    CRDI_DCP_RSP_NACK = 0xB1,
    CRDI_DCP_RSP_STATE_ACK = 0xB2,
    CRDI_DCP_RSP_ERROR_ACK = 0xB3,
    CRDI_DCP_RSP_LOG_ACK = 0xB4,
    CRDI_DCP_NTF_STATE_CHANGED = 0xE0,
    CRDI_DCP_NTF_LOG = 0xE1,
    CRDI_DCP_DAT_INPUT_OUTPUT = 0xF0,
    CRDI_DCP_DAT_PARAMETER = 0xF1,
} crdi_dcp_pdu_type;

typedef enum crdi_dcp_scope {
    CRDI_DCP_ALWAYS,
    CRDI_DCP_INITIALIZATION,
    CRDI_DCP_RUN
} crdi_dcp_scope;
const char* crdi_dcp_type_name(int type);        ///< "STC_register"; NULL: unknown
size_t crdi_dcp_size_of(crd_dcp_data_type type); ///< bytes; 0: string, binary
/// Whether an input or parameter of type `to` may be fed with values of type `from`.
bool crdi_dcp_converts(crd_dcp_data_type from, crd_dcp_data_type to);

/// Any PDU, decoded. Which fields count is said by one table per type (src/dcp/pdu.c), from which
/// encoder, decoder and printer come; fields that a type does not have are 0.
typedef struct crdi_dcp_pdu {
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
} crdi_dcp_pdu;

typedef enum crdi_dcp_decoded {
    CRDI_DCP_GOOD,
    CRDI_DCP_UNKNOWN, ///< empty, fewer than the common fields, or a type that does not exist: drop
    CRDI_DCP_BAD_LENGTH, ///< type, seq and peer are there (and state if it reaches so far), no more
} crdi_dcp_decoded;

crdi_dcp_decoded crdi_dcp_decode(const uint8_t* bytes, size_t length, crdi_dcp_pdu* out);
/// Bytes that it takes, 0 if the type is unknown or a value too large for its field (port and
/// bd_addr of Bluetooth). `out` may be NULL; nothing is written where `room` is too small. The
/// payload may stand in `out` already, best where it goes: data from byte 5 on.
size_t crdi_dcp_encode(const crdi_dcp_pdu* p, uint8_t* out, size_t room);
/// One line: "STC_register seq=1 rcv=1 state_id=ALIVE uuid=... op_mode=NRT ver=1.0". As snprintf.
int crdi_dcp_print(const crdi_dcp_pdu* p, char* out, size_t room);

/// DCP over CAN, where type, data_id or param_id, and the sender of a slave's message are in the
/// identifier of the frame: what its data bytes carry. There is no CFG, no log, no sequence id.
/// Error codes have 8 bits there: the group (0xg000) in the upper three, the number in the lower
/// five; what does not fit becomes CRD_DCP_E_GENERIC.
enum { CRDI_DCP_CAN_ROOM = 8 };
/// Bytes written, 0 .. 8; -1: not a message of CAN, more than 255 steps, or a payload beyond 8.
int crdi_dcp_can_encode(const crdi_dcp_pdu* p, uint8_t out[CRDI_DCP_CAN_ROOM]);
/// `p` comes with what the identifier says (type, id, and peer for a slave's message), and the rest
/// of it is overwritten. CRDI_DCP_UNKNOWN: not a message of CAN.
crdi_dcp_decoded crdi_dcp_can_decode(const uint8_t* bytes, size_t length, crdi_dcp_pdu* p);

/// Families of PDUs are ranges of their types: DCP 1.0, table of PDU types.
static inline bool crdi_dcp_is_state_change(int type)
{
    return type >= CRDI_DCP_STC_REGISTER && type <= CRDI_DCP_STC_RESET;
}

static inline bool crdi_dcp_is_configuration(int type)
{
    return type >= CRDI_DCP_CFG_TIME_RES && type <= CRDI_DCP_CFG_SCOPE;
}

static inline bool crdi_dcp_is_request(int type)
{
    return crdi_dcp_is_state_change(type) || crdi_dcp_is_configuration(type) ||
           (type >= CRDI_DCP_INF_STATE && type <= CRDI_DCP_INF_LOG);
}

static inline bool crdi_dcp_is_response(int type)
{
    return type >= CRDI_DCP_RSP_ACK && type <= CRDI_DCP_RSP_LOG_ACK;
}

static inline bool crdi_dcp_is_data(int type)
{
    return type == CRDI_DCP_DAT_INPUT_OUTPUT || type == CRDI_DCP_DAT_PARAMETER;
}

/// CFG_target_, CFG_source_ and CFG_param_network_information.
static inline bool crdi_dcp_is_network(int type)
{
    return type == CRDI_DCP_CFG_TARGET_NETWORK || type == CRDI_DCP_CFG_SOURCE_NETWORK ||
           type == CRDI_DCP_CFG_PARAM_NETWORK;
}

/// CFG_input, CFG_output, CFG_parameter and CFG_tunable_parameter, which name a variable.
static inline bool crdi_dcp_names_variable(int type)
{
    return type == CRDI_DCP_CFG_INPUT || type == CRDI_DCP_CFG_OUTPUT ||
           type == CRDI_DCP_CFG_PARAMETER || type == CRDI_DCP_CFG_TUNABLE_PARAMETER;
}

/// The Run superstate and the states of its steps.
static inline bool crdi_dcp_in_run(crd_dcp_state state)
{
    return state >= CRD_DCP_SYNCHRONIZING && state <= CRD_DCP_SENDING_D;
}

/// The address in network information.
static inline crd_dcp_address crdi_dcp_address_of(const crdi_dcp_pdu* p)
{
    return (crd_dcp_address){.ip = p->address, .port = p->port, .transport = p->transport};
}

/// Sequence ids of the data PDUs that arrive under one id.
typedef struct crdi_dcp_sequence {
    uint16_t last;
    bool begun;      // there is a last one
    uint64_t window; // bit k: the one that is k older than the last one has come
} crdi_dcp_sequence;
/// How many PDUs lie between the last one and this, -1: it is that one or older. The first one that
/// comes is right, whatever its sequence id.
int crdi_dcp_sequence_gap(const crdi_dcp_sequence* s, uint16_t seq);
/// It is the last one now; its gap was not negative.
void crdi_dcp_sequence_take(crdi_dcp_sequence* s, uint16_t seq);
/// Whether an old one has come before; else it was overtaken. Older than the window are those whose
/// sender is far behind: nobody sends one again so late.
bool crdi_dcp_sequence_repeated(crdi_dcp_sequence* s, uint16_t seq);

// ---- the state machine -------------------------------------------------------------------------

/// The state machine alone: the state behind a request or an internal event, -1: not allowed there.
typedef enum crdi_dcp_event {
    CRDI_DCP_SIG_DONE, ///< the duty of a transient state is over
    CRDI_DCP_SIG_STOP, ///< the slave's own wish
    CRDI_DCP_SIG_ERROR,
    CRDI_DCP_SIG_RESOLVED,
} crdi_dcp_event;
/// `type` is an STC; `from_run` the Run state that STC_do_step left (for SENDING_D).
int crdi_dcp_next_state(crd_dcp_state state, int type, crd_dcp_op_mode mode);
int crdi_dcp_next_state_event(crd_dcp_state state, crdi_dcp_event event, crd_dcp_state from_run);
/// Whether the slave takes a PDU of this type in this state (the table of the standard, put right).
bool crdi_dcp_allowed(crd_dcp_state state, int type, crd_dcp_op_mode mode);

// ---- values ------------------------------------------------------------------------------------

/// Writes the values in their own type behind each other. Bytes that it takes; nothing is written
/// beyond `room`.
size_t crdi_dcp_put(const crd_dcp_slot* slots, int count, uint8_t* out, size_t room);
/// Reads them, encoded as `types[i]`, converted to the slots' types. All or nothing: first
/// everything is walked through with bounds checks. CRD_DCP_NONE, CRD_DCP_E_INVALID_LENGTH (too
/// short, too long), CRD_DCP_E_INVALID_PAYLOAD (a string or binary beyond max_size),
/// CRD_DCP_E_INVALID_SOURCE_DATA_TYPE.
crd_dcp_error crdi_dcp_take(const crd_dcp_slot* slots, const uint8_t* types, int count,
                            const uint8_t* payload, size_t length);
/// Makes one slot of neighbours of the same numeric type whose values stand behind each other in
/// memory, and whose `types` (those of take; NULL: for put) are equal. The payload stays the same;
/// a run of float64 becomes one copy. The new count.
int crdi_dcp_join(crd_dcp_slot* slots, uint8_t* types, int count);

static inline bool crdi_dcp_is_real(int type)
{
    return type == CRD_DCP_FLOAT32 || type == CRD_DCP_FLOAT64;
}

static inline bool crdi_dcp_is_bytes(int type)
{
    return type == CRD_DCP_STRING || type == CRD_DCP_BINARY;
}

crd_type crdi_dcp_type(int data_type); ///< of a variable in a model or unit
/// Least and greatest value of a number's type; double has rounded the last of 64 bits up.
void crdi_dcp_range(int data_type, double* least, double* most);
/// A number as text, into the result of its kind. false: it is none, or outside of its type.
bool crdi_dcp_parse_number(int data_type, const char* text, size_t length, double* real,
                           int64_t* integer);
/// An element of a number; uint64 beyond int64 as it is meant.
double crdi_dcp_slot_number(const crd_dcp_slot* s, uint32_t i);
/// As many elements or bytes as both have room for. Where the types differ, the nearest value that
/// the target's type has; NaN becomes 0 in integers.
void crdi_dcp_slot_copy(const crd_dcp_slot* to, const crd_dcp_slot* from);
/// Bytes that `count` elements take which begin at `bytes`, of `left`; SIZE_MAX: more than there
/// are, or no type.
size_t crdi_dcp_encoded_size(uint8_t type, uint64_t count, const uint8_t* bytes, size_t left);
/// One number as it is encoded: integers in `*integer`, others in `*real`.
void crdi_dcp_load_number(uint8_t type, const uint8_t* bytes, double* real, int64_t* integer);

// ---- descriptions ------------------------------------------------------------------------------

/// As constants of C, `NAME_description`, and an enumerator `NAME_var_VARIABLE` per variable with
/// its index; the source includes NAME.h. What nothing runs by (descriptions, units' definitions,
/// dependencies) stays out.
void crdi_dcp_emit(const crd_dcp_description* d, const char* name, const char* origin,
                   crd_text* source, crd_text* header);

bool crdi_dcp_offers_mode(const crd_dcp_description* d, int mode);
/// NULL: it does not offer this transport, or it is none of UDP and TCP.
const crd_dcp_endpoint* crdi_dcp_find_endpoint(const crd_dcp_description* d, int transport);
bool crdi_dcp_offers_resolution(const crd_dcp_description* d, uint32_t numerator,
                                uint32_t denominator);
/// The recommended one, else the first; NULL: there is none.
const crd_dcp_resolution* crdi_dcp_usual_resolution(const crd_dcp_description* d);
/// The longest that it offers of which at most `most` make a step; false: there is none.
bool crdi_dcp_divide_step(const crd_dcp_description* d, double step, int most, uint32_t* numerator,
                          uint32_t* denominator);
/// What another process needs to go on as the master of a slave, from the same sockets.
typedef struct crdi_dcp_hold {
    uint8_t id;
    uint16_t seq; // of the next request
    crd_dcp_state state;
} crdi_dcp_hold;
/// false: the slave is not registered by this master (any more).
bool crdi_dcp_master_holds(const crd_dcp_master* m, int slave, crdi_dcp_hold* out);
/// The slave is as if this master had registered it: crd_dcp_master_halt and _stop bring it down.
void crdi_dcp_master_adopt(crd_dcp_master* m, int slave, const crdi_dcp_hold* as);

/// s, INFINITY: it does not monitor its master.
double crdi_dcp_heartbeat(const crd_dcp_description* d);
/// Whether STC_do_step may have this many steps, and CFG_steps of a group with this output.
bool crdi_dcp_nrt_steps_fit(const crd_dcp_description* d, uint32_t steps);
bool crdi_dcp_output_steps_fit(const crd_dcp_variable* v, uint32_t steps);
/// Whether its capabilities cover a request in an operating mode.
bool crdi_dcp_supports(const crd_dcp_description* d, int type, crd_dcp_op_mode mode);
bool crdi_dcp_port_listed(const crd_dcp_ports* ports, int count, uint32_t port);
const crd_dcp_log_template* crdi_dcp_find_template(const crd_dcp_description* d, uint8_t id);
int crdi_dcp_find_name(const crd_dcp_description* d, const char* name); ///< of a variable, -1

/// "6f1d2c3b-4a59-4e68-8f70-0123456789ab"; false, and `out` as it was: it is none.
bool crdi_dcp_uuid_parse(const char* text, size_t length, uint8_t out[16]);
void crdi_dcp_uuid_print(const uint8_t uuid[16], char out[37]);
/// Bytes of the character that `text` begins with, 0: it is no UTF-8, or none that XML may have.
size_t crdi_dcp_utf8(const char* text);
/// Two hexadecimal digits each; false: other characters, an odd number, or more than `room` bytes.
bool crdi_dcp_hex_parse(const char* text, size_t length, uint8_t* out, size_t room, size_t* count);

// ---- values of all variables of a description --------------------------------------------------

/// Where a variable's value stands, how many elements it has by the structural parameters, and how
/// much room there is. A slave has one such list, a master one for each slave, a unit one.
typedef struct crdi_dcp_value {
    crd_dcp_slot slot;
    uint32_t capacity;   ///< elements, or bytes, that there is room for; slot.count may be more
    uint32_t byte_count; ///< slot.byte_count points here
    int linked[8];       ///< indices of structural parameters, -1: the dimension is a constant
} crdi_dcp_value;

typedef struct crdi_dcp_room {
    uint32_t elements; ///< along a dimension whose structural parameter has no max; 0: as it starts
    uint32_t text;     ///< bytes of a string or binary without maxSize
    uint32_t most;     ///< elements of a variable
    uint32_t most_text; ///< bytes of a string or binary
} crdi_dcp_room;

/// All with their start values, structural parameters with those of `structural` (variable_count;
/// may be NULL). Numbers of one causality stand behind each other in the order of the description,
/// so that a group of neighbours is copied as one.
crd_status crdi_dcp_values_create(crd_arena* arena, const crd_dcp_description* d,
                                  const crdi_dcp_room* room, const uint64_t* structural,
                                  crdi_dcp_value** out);
/// Elements of a variable as the structural parameters stand, if `changed` (-1: none) had the value
/// `to`; no more than UINT32_MAX.
uint64_t crdi_dcp_elements(const crd_dcp_description* d, const crdi_dcp_value* values, int variable,
                           int changed, uint64_t to);
/// All that there is room for, so that an array that grows has start values.
void crdi_dcp_value_restart(const crd_dcp_description* d, crdi_dcp_value* values, int variable);
/// Fills `capacity` elements, or the bytes, of a slot with a start value as a description has it;
/// the last number again where there are no more. NULL: zeros, nothing.
void crdi_dcp_read_start(const char* start, crd_dcp_slot* slot, uint32_t capacity);

// ---- log entries of the bench extension --------------------------------------------------------

/// What an entry is about: the word that it begins with, wherever a session puts it into its line.
typedef enum crdi_bench_entry {
    CRDI_BENCH_PREPARATION,
    CRDI_BENCH_CONDITIONING,
    CRDI_BENCH_REFUSED,
    CRDI_BENCH_CLAMPED,
    CRDI_BENCH_FAULT,
    CRDI_BENCH_STOP,
    CRDI_BENCH_CALIBRATED,
    CRDI_BENCH_NO_ENTRY,
} crdi_bench_entry;
/// `*entry` is where it begins in `line`, `*text` what is behind its word.
crdi_bench_entry crdi_bench_find_entry(const char* line, const char** entry, const char** text);

// ---- networks ----------------------------------------------------------------------------------

enum {
    CRDI_DCP_MOST_UDP = 65507, ///< 65535 - 20 of IPv4 - 8 of UDP
    CRDI_DCP_LOOPBACK = 0x7F000001,
};

/// "udp://127.0.0.1:8080" for a message
typedef struct crdi_dcp_address_text {
    char text[32];
} crdi_dcp_address_text;
crdi_dcp_address_text crdi_dcp_address_text_of(const crd_dcp_address* a);

crd_dcp_net_limits crdi_dcp_net_get_limits(const crd_dcp_net* n);

/// Answers to strangers, so many per second at most: whoever forges addresses shall not make us
/// flood their owners.
typedef struct crdi_dcp_rate {
    double left, time; ///< answers that may be given at that time
} crdi_dcp_rate;
bool crdi_dcp_rate_spend(crdi_dcp_rate* r, double per_second, double now);

// What a slave does through its link, and masters and tools by themselves.

/// TCP. Returns at once, the connection comes about while time passes; what is sent meanwhile waits
/// for it. When it breaks, what waits is lost, and the next sending tries again, at most every
/// 100 ms; connect tries at once. One that is there already is fine.
crd_status crdi_dcp_net_connect(crd_dcp_net* n, const crd_dcp_address* to);
/// The same from an own address, for hosts with several; each is a connection of its own, used by
/// crdi_dcp_net_send_from with this address and port 0. Networks that have no choice connect as
/// above.
crd_status crdi_dcp_net_connect_from(crd_dcp_net* n, uint32_t ip, const crd_dcp_address* to);
/// Whether there is a connection to this peer and it is established, as far as receive has seen.
bool crdi_dcp_net_connected(const crd_dcp_net* n, const crd_dcp_address* to);
/// What listens now is control: crd_dcp_net_close(NULL) leaves it open, and the connections that
/// came in through it.
void crdi_dcp_net_set_control(crd_dcp_net* n);
/// The local address that leads to `to`: what a peer there has to be told to answer us. 0: no way.
/// crdi_check_plain for an address of DCP; `key` may be NULL.
crd_status crdi_dcp_check_plain(crd_context* ctx, const crd_dcp_address* a, bool has_key,
                                bool plain, const char* how);
/// Puts encryption with the keys of files around `*net`; on failure it stays as it is. `role`: what
/// this side is, which keys of two partners have to say; ANY: whatever they say.
crd_status crdi_dcp_net_secure_files(crd_context* ctx, const char* const* paths, int count,
                                     crd_dcp_key_role role, const crd_dcp_secure_options* opt,
                                     crd_dcp_net** net);
extern const char* const crdi_dcp_role_names[];
void crdi_dcp_key_id(const crd_dcp_key* key, char out[17]); ///< what a key is called in public
/// What protects a link, for records and people: "plain, this host", "key 0123456789abcdef of bench
/// hall7, until 2027-11-16". `key` NULL: none.
void crdi_dcp_security_print(const crd_dcp_address* a, const crd_dcp_key* key, char out[96]);
void crdi_dcp_date_print(int64_t time, char out[11]); ///< "2027-11-16", UTC
bool crdi_dcp_key_name_fits(const char* name); ///< 1 to 32 letters, digits, - _ . for a partner
/// The text of a file; `path` is for the sentence.
crd_status crdi_dcp_key_decode(crd_context* ctx, const char* path, const char* text, size_t length,
                               crd_dcp_key* out);
crd_status crdi_dcp_key_check_role(crd_context* ctx, const char* path, const crd_dcp_key* key,
                                   crd_dcp_key_role role);
char* crdi_dcp_key_folder(crd_context* ctx); ///< ~/.config/cardan; NULL: no memory
uint32_t crdi_dcp_net_source_ip(const crd_dcp_net* n, const crd_dcp_address* to);
/// From the first local address of the transport (UDP; where there is none, one is opened beside
/// the first that listens), or over the connection to `to` (TCP). false: it was dropped.
bool crdi_dcp_net_send(crd_dcp_net* n, const crd_dcp_address* to, const uint8_t* bytes,
                       size_t length);
/// The same from another of the local addresses (UDP), or over the connection that came in there
/// (TCP). One that is not open, or NULL: as crdi_dcp_net_send.
bool crdi_dcp_net_send_from(crd_dcp_net* n, const crd_dcp_address* from, const crd_dcp_address* to,
                            const uint8_t* bytes, size_t length);
/// What is sent between true and false leaves together behind it, or in crd_dcp_net_wait: several
/// PDUs with one call of the system, and in one segment of a stream. May be nested. A datagram that
/// cannot be sent then is counted in `dropped`, although send said true.
void crdi_dcp_net_hold(crd_dcp_net* n, bool on);
/// While `*fence` is not 0 nothing is sent: somebody else speaks to the slaves now. Borrowed.
void crdi_dcp_net_set_fence(crd_dcp_net* n, const _Atomic int* fence);
/// Streams whose messages have no length in front of them: how long the one is that `bytes` begin
/// with, 0 if that cannot be told yet, SIZE_MAX if it is none, which ends the stream. Before
/// anything is opened; with captures, before those as well. Datagrams are the same as ever.
typedef struct crdi_dcp_framing {
    size_t (*length)(const void* user, const uint8_t* bytes, size_t there);
    const void* user;
} crdi_dcp_framing;
void crdi_dcp_net_set_framing(crd_dcp_net* n, const crdi_dcp_framing* framing);
/// What comes is a packet, whatever it is.
size_t crdi_dcp_framing_any(const void* user, const uint8_t* bytes, size_t there);
/// A bus of CAN as a network, each frame a packet as in captures. `bus` belongs to it, also if it
/// fails. All who are at a bus have one address.
enum { CRDI_DCP_BUS_PORT = 1024 };
struct crdi_can_bus;
crd_status crdi_dcp_net_bus(crd_context* ctx, struct crdi_can_bus* bus, crd_dcp_net** out);
/// can://vcan0, or can://239.74.163.2:43113 of this host
bool crdi_dcp_is_bus(const char* text);
crd_status crdi_dcp_bus_open(crd_context* ctx, const char* text, struct crdi_can_bus** out);
// ---- DCP over CAN: what others need of it beside cardan/dcp.h
struct crdi_can_frame;
/// Frames of a capture: without a bus. `d` is borrowed.
crd_status crdi_dcp_can_reader(crd_context* ctx, const crd_dcp_can_description* d,
                               crd_dcp_can** out);
/// The PDU of a frame; false: no message of the file. Payload as of crdi_dcp_can_receive.
bool crdi_dcp_can_take(crd_dcp_can* c, const struct crdi_can_frame* f, crdi_dcp_pdu* out,
                       uint8_t* sender);
/// Who gets data, the first if there are several.
uint8_t crdi_dcp_can_receiver(const crd_dcp_can* c, const crdi_dcp_pdu* p, uint8_t sender);
/// The settings of the slaves, one after the other: false, there are no more.
bool crdi_dcp_can_setting(const crd_dcp_can_description* d, int slave, int index,
                          crdi_dcp_pdu* out);
/// dcp id and uuid of a slave; false: there are no more.
bool crdi_dcp_can_slave_of(const crd_dcp_can_description* d, int slave, uint8_t* id,
                           const uint8_t** uuid);
/// The dcp id of the slave with this uuid; `id` if several have it, 0: the first. 0: there is none.
uint8_t crdi_dcp_can_find(const crd_dcp_can_description* d, const uint8_t uuid[16], uint8_t id);
/// Without faults. CRD_E_FORMAT: the first of them.
crd_status crdi_dcp_can_load_good(crd_context* ctx, const char* path,
                                  crd_dcp_can_description** out);

/// A bus as the network of a master: requests to `can://ID` are frames, answers get the sequence id
/// of the request before, as frames have none. `text` as of crdi_dcp_bus_open, `d` is borrowed.
crd_status crdi_dcp_net_can_master(crd_context* ctx, const char* text,
                                   const crd_dcp_can_description* d, crd_dcp_net** out);
/// As the network of the slave with the uuid of `d` in `file`: what CAN has no room for (sequence
/// ids, uuid, CFG PDUs) comes from the file. To the slave it is a network of UDP with one address,
/// crdi_dcp_bus_address, which its description has to offer. bind() comes before anything is
/// received.
crd_status crdi_dcp_net_can_slave(crd_context* ctx, const char* text,
                                  const crd_dcp_can_description* file, const crd_dcp_description* d,
                                  uint8_t id, crd_dcp_net** out);
/// The description of a slave that has the bus for its network.
void crdi_dcp_can_stand_for(crd_dcp_description* d);
void crdi_dcp_net_can_bind(crd_dcp_net* n, crd_dcp_slave* slave);
extern const crd_dcp_address crdi_dcp_bus_address;

/// A file for these slaves: all inputs from the master, all outputs to it, as many in a frame as
/// there is room for. CRD_E_RANGE: a variable that no frame can hold, too many messages.
typedef struct crdi_dcp_can_plan {
    const crd_dcp_description* const* slaves; ///< dcp ids 1, 2, ...
    int slave_count;
    double resolution; ///< s; NaN: the usual one of each slave
    uint16_t first;    ///< identifier: control from here on, data behind it
} crdi_dcp_can_plan;
crd_status crdi_dcp_can_make(crd_context* ctx, const crdi_dcp_can_plan* plan, crd_text* out);

/// A frame of CAN into a capture, beside what else is in it; without a time it is of now.
void crdi_dcp_capture_frame(crd_dcp_capture* c, const struct crdi_can_frame* f);
/// For another process that shall be able to speak in our place: the socket that PDUs to this
/// address leave by, -1: none (yet). There it is adopted, and belongs to the network then.
int crdi_dcp_net_socket_to(const crd_dcp_net* n, const crd_dcp_address* to);
crd_status crdi_dcp_net_adopt(crd_dcp_net* n, int fd, const crd_dcp_address* to);
