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

/// Families of PDUs are ranges of their types: DCP 1.0, table of PDU types.
static inline bool crdi_dcp_is_state_change(int type)
{
    return type >= CRD_DCP_STC_REGISTER && type <= CRD_DCP_STC_RESET;
}

static inline bool crdi_dcp_is_configuration(int type)
{
    return type >= CRD_DCP_CFG_TIME_RES && type <= CRD_DCP_CFG_SCOPE;
}

static inline bool crdi_dcp_is_request(int type)
{
    return crdi_dcp_is_state_change(type) || crdi_dcp_is_configuration(type) ||
           (type >= CRD_DCP_INF_STATE && type <= CRD_DCP_INF_LOG);
}

static inline bool crdi_dcp_is_response(int type)
{
    return type >= CRD_DCP_RSP_ACK && type <= CRD_DCP_RSP_LOG_ACK;
}

static inline bool crdi_dcp_is_data(int type)
{
    return type == CRD_DCP_DAT_INPUT_OUTPUT || type == CRD_DCP_DAT_PARAMETER;
}

/// CFG_target_, CFG_source_ and CFG_param_network_information.
static inline bool crdi_dcp_is_network(int type)
{
    return type == CRD_DCP_CFG_TARGET_NETWORK || type == CRD_DCP_CFG_SOURCE_NETWORK ||
           type == CRD_DCP_CFG_PARAM_NETWORK;
}

/// CFG_input, CFG_output, CFG_parameter and CFG_tunable_parameter, which name a variable.
static inline bool crdi_dcp_names_variable(int type)
{
    return type == CRD_DCP_CFG_INPUT || type == CRD_DCP_CFG_OUTPUT ||
           type == CRD_DCP_CFG_PARAMETER || type == CRD_DCP_CFG_TUNABLE_PARAMETER;
}

/// The Run superstate and the states of its steps.
static inline bool crdi_dcp_in_run(crd_dcp_state state)
{
    return state >= CRD_DCP_SYNCHRONIZING && state <= CRD_DCP_SENDING_D;
}

/// The address in network information.
static inline crd_dcp_address crdi_dcp_address_of(const crd_dcp_pdu* p)
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

// ---- values ------------------------------------------------------------------------------------

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
