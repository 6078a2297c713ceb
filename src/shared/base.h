/// What modules share of base: failures, memory, text, maps, numbers, JSON, rings. Not for users.
#pragma once
#include "cardan/base.h"

// ---- contexts and failures ---------------------------------------------------------------------

/// A context of its own (text of the last failure) over the same allocator and log: a unit that
/// may fail on another thread has one. NULL when out of memory.
crd_context* crdi_context_child(const crd_context* ctx);

/// A child whose lines go to `sink` (level: at least CRD_LOG_WARNING), which may hand them on with
/// crdi_log_on. For the run that counts its warnings.
crd_context* crdi_context_tap(const crd_context* ctx, crd_log_sink* sink, void* user);
/// One finished line to the sink of a context, if its level wants it.
void crdi_log_on(const crd_context* ctx, crd_level level, const char* text);

/// Store a sentence (without file name of ours, without newline) and hand `st` back. The newest
/// sentence wins, so a caller that knows more may word it again.
crd_status crdi_fail(crd_context* ctx, crd_status st, const char* format, ...) CRD_PRINTF(3, 4);
/// Put "prefix: " in front of the stored sentence: the caller knows which file or unit it was.
crd_status crdi_fail_in(crd_context* ctx, crd_status st, const char* format, ...) CRD_PRINTF(3, 4);
void crdi_log(crd_context* ctx, crd_level level, const char* format, ...) CRD_PRINTF(3, 4);

/// Zeroed memory from the context, NULL after storing CRD_E_MEMORY's text.
void* crdi_new(crd_context* ctx, size_t size);
/// n objects of `size` bytes, zeroed, overflow checked. n = 0 gives a valid pointer.
void* crdi_new_array(crd_context* ctx, size_t n, size_t size);
/// Grow `p` of `*capacity` elements so that it holds at least `need`; keeps the content, new part
/// not zeroed. NULL when out of memory: then p is still valid.
void* crdi_grow(crd_context* ctx, void* p, size_t* capacity, size_t need, size_t size);
char* crdi_strdup(crd_context* ctx, const char* text);
char* crdi_format(crd_context* ctx, const char* format, ...) CRD_PRINTF(2, 3);

// ---- arenas, texts and maps (the structs are in cardan/base.h) ----------------------------------

void* crdi_arena_new(crd_arena* a, size_t n, size_t size); ///< zeroed, 16-byte aligned
char* crdi_arena_text(crd_arena* a, const char* text, size_t length);
char* crdi_arena_format(crd_arena* a, const char* format, ...) CRD_PRINTF(2, 3);

void crdi_text_put(crd_text* t, const void* bytes, size_t length);
void crdi_text_add(crd_text* t, const char* format, ...) CRD_PRINTF(2, 3);
/// With & < > " ' as entities; control characters that XML has no room for become '?'.
void crdi_text_xml(crd_text* t, const char* text);
/// In double quotes, escaped as JSON wants it; bytes that are not UTF-8 become U+FFFD.
void crdi_text_json(crd_text* t, const char* text);
/// Shortest text that reads back as the same number; `null` unless finite.
void crdi_text_json_number(crd_text* t, double x);

void crdi_map_init(crd_map* m, crd_context* ctx);
void crdi_map_clear(crd_map* m);
crd_status crdi_map_reserve(crd_map* m, size_t count);
/// false in `*fresh` (may be NULL) when the key was there already; then the old value stays.
crd_status crdi_map_add(crd_map* m, const char* key, int32_t value, bool* fresh);
int32_t crdi_map_find(const crd_map* m, const char* key); ///< -1 when absent

/// The candidate nearest to `word` in edit distance if it is near enough to be what was meant,
/// else NULL. `next` hands out candidates until it returns NULL.
const char* crdi_nearest(const char* word, const char* (*next)(void* user), void* user);

/// Shell pattern (`*`, `?`, `[a-z]`) over the whole text. `[2]`, `[1,3]` and `[*]` are the index of
/// an element, not a set of characters.
bool crdi_glob(const char* pattern, const char* text);

/// A text from a file as it may stand in a message: no control characters, 60 bytes at most.
typedef struct crdi_quote {
    char text[68];
} crdi_quote;
crdi_quote crdi_clip(const char* text);

/// Locale-independent decimal numbers. false unless the whole of [text, text+length) is a number;
/// accepts INF, -INF, NaN in the spelling of XML Schema and of C.
bool crdi_parse_double(const char* text, size_t length, double* out);
bool crdi_parse_int64(const char* text, size_t length, int64_t* out);
bool crdi_parse_uint64(const char* text, size_t length, uint64_t* out);

/// The text of printf("%.17g"), without locale and about ten times as fast.
/// Writes at most 25 bytes including the final zero and returns the length.
int crdi_format_double(char* out, double x);

/// Length of the decimal number that `text` starts with, 0 if there is none; the unit follows it.
size_t crdi_number_prefix(const char* text);

// ---- JSON --------------------------------------------------------------------------------------

typedef enum crdi_json_kind {
    CRDI_JSON_NULL,
    CRDI_JSON_BOOL,
    CRDI_JSON_NUMBER,
    CRDI_JSON_TEXT,
    CRDI_JSON_LIST,
    CRDI_JSON_OBJECT,
} crdi_json_kind;

/// A tree that knows its lines, for descriptions. Bounded: depth and size; keys that are given
/// twice, zero bytes and bytes that are not UTF-8 are refused.
typedef struct crdi_json {
    crdi_json_kind kind;
    int line;         ///< of the value, 0: unknown
    bool truth;       ///< CRDI_JSON_BOOL
    double number;    ///< CRDI_JSON_NUMBER, finite
    const char* key;  ///< of an object's member, else NULL
    const char* text; ///< CRDI_JSON_TEXT; of a number as it was written; "" otherwise
    struct crdi_json *first, *last, *next;
    int count; ///< members
} crdi_json;

enum { CRDI_JSON_DEPTH = 32, CRDI_JSON_BYTES = 4 << 20 };

/// Where messages say that something stands; first_line 0: lines are not told.
typedef struct crdi_json_source {
    const char* file;
    int first_line;
} crdi_json_source;

/// One value and nothing behind it. All nodes and texts live in `arena`.
crd_status crdi_json_parse(crd_arena* arena, const char* text, size_t length,
                           crdi_json_source source, crdi_json** out);
/// "file:line: ", "file: ", "line 3: " or "" and the sentence.
crd_status crdi_json_fail(crd_context* ctx, const char* file, int line, crd_status st,
                          const char* format, ...) CRD_PRINTF(5, 6);

// ---- clock and rings ---------------------------------------------------------------------------

/// Monotonic, in ns. Read by fronts and by the master for statistics and pacing, by nobody below.
int64_t crdi_now_ns(void);

/// One producer, one consumer, blocks of equal size, no lock. The memory belongs to the ring.
typedef struct crdi_ring crdi_ring;
crd_status crdi_ring_create(crd_context* ctx, size_t block_bytes, size_t blocks, crdi_ring** out);
void crdi_ring_destroy(crdi_ring* r);
void* crdi_ring_write(crdi_ring* r);      ///< next free block, NULL when full
void crdi_ring_commit(crdi_ring* r);      ///< hands the block of the last write over
const void* crdi_ring_read(crdi_ring* r); ///< oldest block, NULL when empty
void crdi_ring_release(crdi_ring* r);     ///< gives the block of the last read back
size_t crdi_ring_count(const crdi_ring* r);
