// Reading MDF 4: blocks, the data behind a group, channels.
#pragma once
#include "results/mdf.h"
#include "results/recording.h"
#include "shared/base.h"

// ---- blocks ------------------------------------------------------------------------------------

enum {
    CRDI_MDF_MOST_LINKS = 8, // that a crdi_mdf_block keeps
    CRDI_MDF_MOST_DATA = 80,
    CRDI_MDF_MOST_RECORD = 64 << 20,
    CRDI_MDF_MOST_INFLATED = 256 << 20, // of one DZ or attachment
    CRDI_MDF_MOST_TEXT = 64 << 20,      // of a group's texts that stand outside of its records
};

typedef struct crdi_mdf_slot {
    uint64_t offset; // 0: free
    const void* value;
} crdi_mdf_slot;

/// An MDF file, taken for hostile: every offset and length is checked against its size, links
/// may not lead to the same block twice, and all blocks together may not be longer than the file.
typedef struct crdi_mdf_file {
    crd_context* ctx;
    const char* path;
    int fd;
    uint64_t size;
    uint64_t budget;      ///< bytes that blocks may still claim
    bool unfinished;      ///< the writer never closed it
    unsigned flags;       ///< what it left undone
    uint64_t last;        ///< offset of the last block that was met
    crdi_mdf_slot* slots; ///< blocks that were met, by offset (capacity, a power of two)
    size_t capacity, count;
    uint8_t* window; ///< a piece of the file: small blocks lie together
    uint64_t window_at;
    size_t window_length;
    int notes; ///< told so far
} crdi_mdf_file;

/// The beginning of a block: its first links and data, zero where it has none.
typedef struct crdi_mdf_block {
    uint64_t offset, length, link_count;
    uint32_t tag;
    uint64_t links[CRDI_MDF_MOST_LINKS];
    uint8_t data[CRDI_MDF_MOST_DATA];
    uint64_t data_at; // in the file
} crdi_mdf_block;

crd_status crdi_mdf_file_open(crdi_mdf_file* f, crd_context* ctx, const char* path, int fd);
void crdi_mdf_file_close(crdi_mdf_file* f);

/// CRD_E_FORMAT with "path: offset N: ..."
crd_status crdi_mdf_fail(const crdi_mdf_file* f, uint64_t offset, const char* format, ...)
    CRD_PRINTF(3, 4);
/// A warning that something is left out; beyond a few only their number is told, by end_notes.
void crdi_mdf_note(crdi_mdf_file* f, const char* format, ...) CRD_PRINTF(2, 3);
void crdi_mdf_end_notes(crdi_mdf_file* f);

/// All of these bytes, or a failure.
crd_status crdi_mdf_read(const crdi_mdf_file* f, uint64_t at, void* bytes, size_t length);
/// The head of the block at `offset`; `open` allows one that ends behind the file.
crd_status crdi_mdf_read_block(crdi_mdf_file* f, uint64_t offset, bool open, crdi_mdf_block* b);
/// A block of this kind with at least so many links and bytes of data, that was not met before.
crd_status crdi_mdf_expect(crdi_mdf_file* f, uint64_t offset, uint32_t tag, uint64_t links,
                           uint64_t data, crdi_mdf_block* b);
/// Added to an offset: what is remembered for it is a text or a crdi_mdf_conversion.
#define CRDI_MDF_TEXT ((uint64_t)1 << 63)
#define CRDI_MDF_CONVERSION ((uint64_t)1 << 62)
/// Remember `value` (not NULL) for an offset, CRD_E_FORMAT if there is one already.
crd_status crdi_mdf_remember(crdi_mdf_file* f, uint64_t offset, const void* value);
const void* crdi_mdf_recall(const crdi_mdf_file* f, uint64_t offset);
/// Take these bytes from the budget.
crd_status crdi_mdf_spend(crdi_mdf_file* f, uint64_t offset, uint64_t bytes);

/// The text of a TX, or of an MD as it stands there; "" for offset 0. In the arena.
crd_status crdi_mdf_raw_text(crdi_mdf_file* f, crd_arena* arena, uint64_t offset,
                             const char** text);
/// Likewise, and of an MD only what its TX element says.
crd_status crdi_mdf_text(crdi_mdf_file* f, crd_arena* arena, uint64_t offset, const char** text);
/// Content of the first element of this name, "" if there is none; NULL out of memory.
const char* crdi_mdf_element(crd_arena* arena, const char* xml, const char* name);
bool crdi_mdf_is(const crdi_mdf_block* b, char first, char second);

static inline uint16_t crdi_mdf_u16(const uint8_t* p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t crdi_mdf_u32(const uint8_t* p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t crdi_mdf_u64(const uint8_t* p)
{
    return (uint64_t)crdi_mdf_u32(p) | (uint64_t)crdi_mdf_u32(p + 4) << 32;
}

static inline double crdi_mdf_f64(const uint8_t* p)
{
    union {
        uint64_t bits;
        double value;
    } u = {.bits = crdi_mdf_u64(p)};
    return u.value;
}

// ---- data --------------------------------------------------------------------------------------

/// One DT, SD, DV or DZ of a group's data.
typedef struct crdi_mdf_piece {
    uint64_t block;   // offset of the block, for messages
    uint64_t at;      // of its bytes in the file
    uint64_t stored;  // so many of them
    uint64_t size;    // once inflated
    uint32_t columns; // > 0: transposed, rows have so many bytes
    bool deflated;
} crdi_mdf_piece;

typedef struct crdi_mdf_data {
    crdi_mdf_piece* pieces; // from the context
    size_t count, capacity;
    uint64_t size; // of all, inflated
    bool cut;      // an unfinished file ends inside
} crdi_mdf_data;

/// Finds all pieces behind the link `offset`: DT, DZ, or lists of them. 0: none.
/// In an unfinished file the end is where a block is not whole any more.
crd_status crdi_mdf_data_find(crdi_mdf_file* f, uint64_t offset, crdi_mdf_data* d);
void crdi_mdf_data_clear(crdi_mdf_file* f, crdi_mdf_data* d);

/// Walks through data: bytes at hand lie between begin and end.
typedef struct crdi_mdf_stream {
    const crdi_mdf_file* file;
    const crdi_mdf_data* data;
    struct libdeflate_decompressor* inflater;
    size_t piece;
    uint64_t used; // of the piece
    uint8_t *buffer, *begin, *end;
    size_t capacity;
    size_t inflated; // number of the piece that lies inflated in the buffer, from 1; 0: none
    uint8_t* inflated_at;
    size_t chunk;    // most that is read at once of what is not compressed
    uint8_t* stored; // before inflating
    uint8_t* turned; // before transposing back
} crdi_mdf_stream;

/// `keep`: bytes that may still lie unused when more are asked for.
crd_status crdi_mdf_stream_open(crdi_mdf_stream* s, const crdi_mdf_file* f, const crdi_mdf_data* d,
                                size_t keep);
void crdi_mdf_stream_close(crdi_mdf_stream* s);
/// Adds bytes behind those at hand; at the end of the data there are none to add.
crd_status crdi_mdf_stream_more(crdi_mdf_stream* s);
/// Goes on at byte `offset` of the data, which is there. Little is read at first.
crd_status crdi_mdf_stream_seek(crdi_mdf_stream* s, uint64_t offset);

/// zlib stream of known size: CRD_E_FORMAT unless it gives exactly that.
crd_status crdi_mdf_inflate(const crdi_mdf_file* f, uint64_t block,
                            struct libdeflate_decompressor* inflater, const void* stored,
                            size_t stored_length, void* out, size_t length);
/// CRD_E_FORMAT if no zlib stream of `stored` bytes can give so many, or they are too many.
crd_status crdi_mdf_check_inflated(const crdi_mdf_file* f, uint64_t block, uint64_t stored,
                                   uint64_t size);
/// out[r * columns + c] = in[c * rows + r]; what is left of `length` is copied.
void crdi_mdf_transpose(const uint8_t* in, uint8_t* out, size_t length, size_t columns);

// ---- channels ----------------------------------------------------------------------------------

typedef enum crdi_mdf_conversion_kind {
    CRDI_MDF_AS_IT_IS,
    CRDI_MDF_BY_LINE,     // p0 + p1 x
    CRDI_MDF_BY_QUOTIENT, // (p0 x2 + p1 x + p2) / (p3 x2 + p4 x + p5)
} crdi_mdf_conversion_kind;

typedef struct crdi_mdf_conversion {
    crdi_mdf_conversion_kind kind;
    double p[6];
    const crd_label* labels; // of a value-to-text conversion
    int label_count;
    const char* unit;
} crdi_mdf_conversion;

typedef struct crdi_mdf_channel {
    uint64_t block;
    uint8_t data_type; // CRDI_MDF_UINT_LE ...
    uint8_t shift;     // bit offset
    bool by_index;     // virtual: the number of the record is its value
    bool vlsd;         // the record has an offset into `texts`
    bool all_invalid;
    bool can_be_invalid;
    uint32_t byte, bits;  // place in the record
    uint32_t invalid_bit; // counted behind the data bytes
    const crdi_mdf_conversion* conversion;
    crdi_mdf_data texts; // of a VLSD channel
} crdi_mdf_channel;

typedef struct crdi_mdf_group {
    uint32_t record;     // bytes of a record, with its identifier and invalidation bytes
    uint32_t data_bytes; // where the invalidation bytes begin
    uint64_t cycles;     // as the file says
    uint64_t data_block; // offset of the first data block
    crdi_mdf_data data;
    crdi_mdf_channel time;
} crdi_mdf_group;

typedef struct crdi_mdf_attachment {
    uint64_t block, at, stored, size;
    bool deflated;
} crdi_mdf_attachment;

typedef struct crdi_mdf_recording {
    crd_recording base;
    crdi_mdf_file file;
    crdi_mdf_group* groups; // as base.info.groups
    int group_count;        // those that have to be cleared
    size_t group_capacity;
    crdi_mdf_channel* channels; // as base.info.signals
    int channel_count;
    size_t channel_capacity;
    const crdi_mdf_attachment* attachments; // as base.info.attachments
} crdi_mdf_recording;

crd_status crdi_mdf_cursor_open(crd_recording* base, int group, const int* signals, int count,
                                crd_cursor** out);
crd_status crdi_mdf_cursor_next(crd_cursor* c, crd_block* out);
crd_status crdi_mdf_cursor_seek(crd_cursor* c, int64_t row);
void crdi_mdf_cursor_close(crd_cursor* c);
