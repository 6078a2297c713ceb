/// Messages on a wire: what CAN frames and datagrams have in common. A message has fields of bits,
/// and may have a counter and a checksum by which its receiver finds mistakes.
///
/// A *catalog* is what a DBC file (wire/dbc.c) or a layout in YAML (system/read_layout.c) says:
/// readers fill in the first part of each struct, crdi_wire_prepare() verifies it and works out the
/// rest. From then on it is const. Encoding, decoding and judging are pure functions over a
/// catalog, a state of a few words for each message, and bytes: nothing allocates, nothing can
/// fail, no clock.
#pragma once
#include "shared/base.h"

enum {
    CRDI_WIRE_LONGEST = 65507, ///< bytes of a message: what a UDP datagram holds
    CRDI_WIRE_PAD = 8,         ///< bytes behind a message that can be read and written
    CRDI_WIRE_DATA_IDS = 16,
};

typedef enum crdi_wire_type {
    CRDI_WIRE_UNSIGNED,
    CRDI_WIRE_SIGNED, ///< two's complement
    CRDI_WIRE_FLOAT32,
    CRDI_WIRE_FLOAT64,
} crdi_wire_type;

/// A row of a value table.
typedef struct crdi_wire_item {
    int64_t value; ///< raw
    const char* name;
} crdi_wire_item;

/// Values of a selector, raw, both included.
typedef struct crdi_wire_range {
    int64_t first, last;
} crdi_wire_range;

/// physical = raw * factor + offset. Bit i is bit i % 8 of byte i / 8, bit 0 the least significant.
typedef struct crdi_wire_field {
    const char* name;
    const char* unit;    ///< "" if none
    const char* comment; ///< "" if none
    int line;            ///< of the file
    int start;  ///< as in a DBC: the least significant bit, or with `big` the most significant one
    int length; ///< bits, 1 to 64
    bool big;   ///< Motorola: the next bit is below, then bit 7 of the next byte
    crdi_wire_type type;
    double factor, offset;
    double min, max; ///< physical; infinite: none (a DBC's [0|0] is none)
    double initial;  ///< physical, what is sent before anything is set; 0 clamped to its range
    const crdi_wire_item* items; ///< value table
    int item_count;
    int selector; ///< field of the message that says whether this one is there; -1: it always is
    const crdi_wire_range* selected_by; ///< values of the selector; it may be selected itself
    int selected_by_count;

    // by crdi_wire_prepare()
    int byte;               ///< first one that it touches
    int shift;              ///< of the word of 8 bytes there; big: negative if there are 9
    int bytes;              ///< that it touches, 1 to 9
    int depth;              ///< selectors above it; 0: always there
    double lowest, highest; ///< raw, what can be sent: type, min and max together
} crdi_wire_field;

typedef enum crdi_wire_checksum_kind {
    CRDI_WIRE_NO_CHECKSUM,
    CRDI_WIRE_SUM8,
    CRDI_WIRE_XOR8,
    CRDI_WIRE_CRC8,    ///< SAE J1850: 0x1D, start 0xFF, xor 0xFF
    CRDI_WIRE_CRC8_2F, ///< AUTOSAR: 0x2F, start 0xFF, xor 0xFF
    CRDI_WIRE_CRC16,   ///< CCITT: 0x1021, start 0xFFFF, xor 0
    CRDI_WIRE_CRC32,   ///< IEEE 802.3: 0x04C11DB7 reflected, start and xor 0xFFFFFFFF
    CRDI_WIRE_CHECKSUMS
} crdi_wire_checksum_kind;

/// Over the bytes from `first` to `first` + `count` - 1 without those that hold the checksum
/// itself, which is a field of whole bytes.
typedef struct crdi_wire_checksum {
    crdi_wire_checksum_kind kind;
    int field;                            ///< of the message
    int first, count;                     ///< `count` 0: up to the end of the message
    uint32_t start, final_xor;            ///< those of the kind unless somebody writes others
    uint16_t data_id[CRDI_WIRE_DATA_IDS]; ///< belongs to it and is not sent
    int data_ids;      ///< 0: none; 1; 16: one for each value of the counter (AUTOSAR profile 2)
    int data_id_bytes; ///< 1 or 2, the low one first
    bool data_id_last; ///< behind the bytes of the message (profile 2), else before (profile 1)
    int line;
    const uint32_t (*table)[256]; ///< of the kind: of a byte, and of one with 1 to 3 behind it
} crdi_wire_checksum;

/// What the next message has: (counter + step) mod modulus.
typedef struct crdi_wire_counter {
    int field;        ///< of the message; -1: it has none
    uint64_t modulus; ///< 2 to 2^32; 0: that of its length
    uint64_t step;    ///< 0: 1
    int line;
} crdi_wire_counter;

typedef struct crdi_wire_message {
    const char* name;
    const char* sender;  ///< node of a DBC, "" if unknown
    const char* comment; ///< "" if none
    int line;
    uint32_t id; ///< CAN identifier without flags; of datagrams what the catalog's `kind` field has
    bool extended; ///< 29 bits
    bool fd;       ///< CAN FD
    bool sent;     ///< by us; else received
    int length;    ///< bytes
    double cycle;  ///< s; 0: unknown, or when something changes
    crdi_wire_field* fields;
    int field_count;
    crdi_wire_counter counter;
    crdi_wire_checksum checksum;

    int depth; ///< of its deepest field; by crdi_wire_prepare(). 0: not multiplexed
} crdi_wire_message;

typedef struct crdi_wire_catalog {
    const char* file;
    crdi_wire_message* messages;
    int message_count;
    crdi_wire_field kind; ///< datagrams: where they say which message they are; length 0: nowhere
} crdi_wire_catalog;

// ---- description
// ---------------------------------------------------------------------------------

const char* crdi_wire_checksum_name(crdi_wire_checksum_kind k);    ///< "crc8"; NULL: unknown
crdi_wire_checksum_kind crdi_wire_checksum_find(const char* name); ///< NO_CHECKSUM: unknown
/// What belongs to the kind; `field`, bytes and data id are the reader's.
void crdi_wire_checksum_init(crdi_wire_checksum* c, crdi_wire_checksum_kind kind);
int crdi_wire_checksum_bits(crdi_wire_checksum_kind k);

/// An empty message or field, with what is usual: factor 1, no limits, no counter.
crdi_wire_field crdi_wire_field_init(void);
crdi_wire_message crdi_wire_message_init(void);

/// Verifies: fields inside of the message and not on top of each other (unless their selectors
/// never have both), names and ids once, selectors there and unsigned or signed, counters and
/// checksums where they can be. What is wrong is said with file, line, and what would be right.
/// CRD_E_FORMAT.
crd_status crdi_wire_prepare(crd_context* ctx, crdi_wire_catalog* c);

/// -1: not there
int crdi_wire_field_find(const crdi_wire_message* m, const char* name);
int crdi_wire_message_find(const crdi_wire_catalog* c, const char* name);
const char* crdi_wire_item_name(const crdi_wire_field* f, int64_t raw); ///< NULL: no such row

// ---- codec
// --------------------------------------------------------------------------------------- `data`
// has CRDI_WIRE_PAD bytes behind the message.

/// Raw: sign extended if signed, the bits of a float as they are.
uint64_t crdi_wire_get_raw(const crdi_wire_field* f, const uint8_t* data);
void crdi_wire_put_raw(const crdi_wire_field* f, uint8_t* data, uint64_t raw);
/// Physical. An integer of more than 53 bits is rounded.
double crdi_wire_get(const crdi_wire_field* f, const uint8_t* data);
/// Rounds to the nearest raw value (half away from zero). False: the value was out of `lowest` to
/// `highest` or no number, and the nearest possible one (the initial one) was put instead.
bool crdi_wire_put(const crdi_wire_field* f, uint8_t* data, double value);
/// Whether a field of a multiplexed message is there.
bool crdi_wire_present(const crdi_wire_message* m, const crdi_wire_field* f, const uint8_t* data);

/// All fields that are there, one value for each field of the message; others stay as they are.
void crdi_wire_decode(const crdi_wire_message* m, const uint8_t* data, double* values);
/// All fields that are there by the selectors among `values`; bits of none are 0. How many values
/// could not be put as they are. Counter and checksum are those of crdi_wire_seal().
int crdi_wire_encode(const crdi_wire_message* m, const double* values, uint8_t* data);
uint32_t crdi_wire_checksum_of(const crdi_wire_message* m, const uint8_t* data);

// ---- mistakes
// ------------------------------------------------------------------------------------

typedef enum crdi_wire_verdict {
    CRDI_WIRE_GOOD,     ///< new data, also after some that are missing
    CRDI_WIRE_LENGTH,   ///< not the length of the message
    CRDI_WIRE_CHECKSUM, ///< does not fit its bytes
    CRDI_WIRE_COUNTER,  ///< no value that the counter can have
    CRDI_WIRE_REPEATED, ///< the counter is that of the last one
    CRDI_WIRE_OLD,      ///< the counter is behind: overtaken by another
} crdi_wire_verdict;

/// Of a message in one direction. Zero at the beginning.
typedef struct crdi_wire_state {
    int64_t good;                                     ///< received and taken; or sent
    int64_t length, checksum, counter, repeated, old; ///< received and not taken, by verdict
    int64_t missing;                                  ///< skipped by the counter
    int64_t stuck;    ///< times that the counter stood still for CRDI_WIRE_PERSIST messages
    int64_t restarts; ///< times that the counter went on from elsewhere, the partner's new start
    int64_t limited;  ///< values that could not be sent as they were
    uint64_t last;    ///< counter
    uint64_t behind;  ///< that of the last old one
    int standing;     ///< messages in a row with `last`
    int going;        ///< old ones in a row that count up
    bool begun;
} crdi_wire_state;

enum { CRDI_WIRE_PERSIST = 3 };

/// What a received message is worth; counts it. Only a good one is to be decoded.
crdi_wire_verdict crdi_wire_judge(const crdi_wire_message* m, crdi_wire_state* s,
                                  const uint8_t* data, size_t length);
/// Counter and checksum into an encoded message that is about to be sent.
void crdi_wire_seal(const crdi_wire_message* m, crdi_wire_state* s, uint8_t* data);
/// Which message a datagram is, by the catalog's kind; or by itself if only one is received.
/// NULL: none, or too short to tell.
const crdi_wire_message* crdi_wire_recognise(const crdi_wire_catalog* c, const uint8_t* data,
                                             size_t length);
/// Of either direction, for who reads along: where both could be, the length decides.
const crdi_wire_message* crdi_wire_recognise_any(const crdi_wire_catalog* c, const uint8_t* data,
                                                 size_t length);
/// How long the message is that a stream goes on with, as crdi_dcp_framing. `any`: of either
/// direction.
size_t crdi_wire_stream_length(const crdi_wire_catalog* c, const uint8_t* bytes, size_t there,
                               bool any);
