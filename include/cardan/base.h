/// What everything else stands on: status codes, the context, memory, text, logging.
///
/// A context belongs to one run and to one thread at a time. It carries the allocator, the text of
/// the last failure and the sink for log lines; the library itself never prints. Its only globals
/// are those that a process has once: the list of its FMU instances and its crash handlers.
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define CRD_API __attribute__((visibility("default")))
#define CRD_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define CRD_API
#define CRD_PRINTF(f, a)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// Every code with its text and the exit code that the command gives for it.
#define CRD_STATUS_LIST(X)                                                                         \
    X(CRD_OK, 0, 0, "done")                                                                        \
    X(CRD_E_MEMORY, -1, 1, "out of memory")                                                        \
    X(CRD_E_RANGE, -2, 2, "a value makes no sense")                                                \
    X(CRD_E_FORMAT, -3, 2, "a file is not what its format says")                                   \
    X(CRD_E_NOT_FOUND, -4, 2, "something that was named does not exist")                           \
    X(CRD_E_UNSUPPORTED, -5, 2, "this is not supported here")                                      \
    X(CRD_E_IO, -6, 1, "reading or writing failed")                                                \
    X(CRD_E_UNIT, -7, 1, "a unit failed")                                                          \
    X(CRD_E_CRASH, -8, 1, "a unit crashed")                                                        \
    X(CRD_E_STATE, -9, 1, "a call came at the wrong time")                                         \
    X(CRD_E_CONVERGENCE, -10, 1, "an iteration did not converge")                                  \
    X(CRD_E_DIFFERENT, -11, 1, "results differ")                                                   \
    X(CRD_E_LIMIT, -12, 3, "a limit set by the user was not kept")

#define CRD_STATUS_ENUM(name, value, exit_code, text) name = value,
/// Zero is success, negative is failure.
typedef enum crd_status { CRD_STATUS_LIST(CRD_STATUS_ENUM) } crd_status;
#undef CRD_STATUS_ENUM

CRD_API const char* crd_status_name(crd_status st); ///< "CRD_E_RANGE"
CRD_API const char* crd_status_text(crd_status st);
CRD_API int crd_status_exit_code(crd_status st); ///< 0, 1, 2 or 3

CRD_API const char* crd_version(void); ///< "0.4.0"

// ---- context ---------------------------------------------------------------------------------

typedef struct crd_context crd_context; ///< opaque

typedef enum crd_level {
    CRD_LOG_ERROR,
    CRD_LOG_WARNING,
    CRD_LOG_INFO,
    CRD_LOG_DEBUG,
} crd_level;

/// Gets one finished line without newline. May be called from any thread of the run, one line at a
/// time being the sink's own business.
typedef void crd_log_sink(void* user, crd_level level, const char* text);

/// realloc semantics: p NULL allocates, size 0 frees and returns NULL.
typedef void* crd_realloc(void* user, void* p, size_t size);

typedef struct crd_context_options {
    crd_realloc* realloc; ///< NULL: the C library's
    void* realloc_user;
    crd_log_sink* log; ///< NULL: lines are dropped
    void* log_user;
    crd_level level; ///< lines above it cost nothing; default CRD_LOG_WARNING
} crd_context_options;

CRD_API crd_context_options crd_context_defaults(void);
/// NULL when out of memory. `opt` may be NULL.
CRD_API crd_context* crd_context_create(const crd_context_options* opt);
CRD_API void crd_context_destroy(crd_context* ctx);

/// One sentence about the last failure, "" if there was none. Valid until the next failure.
CRD_API const char* crd_error_text(const crd_context* ctx);
CRD_API crd_level crd_log_level(const crd_context* ctx);

// ---- shared inside the library -----------------------------------------------------------------

/// A context of its own (text of the last failure) over the same allocator and log: a unit that
/// may fail on another thread has one. NULL when out of memory.
CRD_API crd_context* crdi_context_child(const crd_context* ctx);

/// A child whose lines go to `sink` (level: at least CRD_LOG_WARNING), which may hand them on with
/// crdi_log_on. For the run that counts its warnings.
CRD_API crd_context* crdi_context_tap(const crd_context* ctx, crd_log_sink* sink, void* user);
/// One finished line to the sink of a context, if its level wants it.
CRD_API void crdi_log_on(const crd_context* ctx, crd_level level, const char* text);

/// Store a sentence (without file name of ours, without newline) and hand `st` back. The newest
/// sentence wins, so a caller that knows more may word it again.
CRD_API crd_status crdi_fail(crd_context* ctx, crd_status st, const char* format, ...)
    CRD_PRINTF(3, 4);
/// Put "prefix: " in front of the stored sentence: the caller knows which file or unit it was.
CRD_API crd_status crdi_fail_in(crd_context* ctx, crd_status st, const char* format, ...)
    CRD_PRINTF(3, 4);
CRD_API void crdi_log(crd_context* ctx, crd_level level, const char* format, ...) CRD_PRINTF(3, 4);

#define CRD_TRY(expr)                                                                              \
    do {                                                                                           \
        st = (expr);                                                                               \
        if (st < 0) { goto fail; }                                                                 \
    } while (0)

/// Zeroed memory from the context, NULL after storing CRD_E_MEMORY's text.
CRD_API void* crdi_new(crd_context* ctx, size_t size);
/// n objects of `size` bytes, zeroed, overflow checked. n = 0 gives a valid pointer.
CRD_API void* crdi_new_array(crd_context* ctx, size_t n, size_t size);
/// Grow `p` of `*capacity` elements so that it holds at least `need`; keeps the content, new part
/// not zeroed. NULL when out of memory: then p is still valid.
CRD_API void* crdi_grow(crd_context* ctx, void* p, size_t* capacity, size_t need, size_t size);
CRD_API void crdi_free(crd_context* ctx, void* p);
CRD_API char* crdi_strdup(crd_context* ctx, const char* text);
CRD_API char* crdi_format(crd_context* ctx, const char* format, ...) CRD_PRINTF(2, 3);

/// Memory that goes all at once: chunks from the context, objects are never freed singly.
typedef struct crdi_arena {
    crd_context* ctx;
    struct crdi_chunk* chunks;
    size_t used; ///< bytes handed out
} crdi_arena;

CRD_API void crdi_arena_init(crdi_arena* a, crd_context* ctx);
CRD_API void crdi_arena_clear(crdi_arena* a);
CRD_API void* crdi_arena_new(crdi_arena* a, size_t n, size_t size); ///< zeroed, 16-byte aligned
CRD_API char* crdi_arena_text(crdi_arena* a, const char* text, size_t length);
CRD_API char* crdi_arena_format(crdi_arena* a, const char* format, ...) CRD_PRINTF(2, 3);

/// Text that grows. Running out of memory is remembered in `failed`; later calls do nothing.
typedef struct crdi_text {
    crd_context* ctx;
    char* data; ///< zero-terminated once something was added, NULL before
    size_t length, capacity;
    bool failed;
} crdi_text;

CRD_API void crdi_text_init(crdi_text* t, crd_context* ctx);
CRD_API void crdi_text_clear(crdi_text* t);
CRD_API void crdi_text_put(crdi_text* t, const void* bytes, size_t length);
CRD_API void crdi_text_add(crdi_text* t, const char* format, ...) CRD_PRINTF(2, 3);
/// With & < > " ' as entities; control characters that XML has no room for become '?'.
CRD_API void crdi_text_xml(crdi_text* t, const char* text);
/// In double quotes, escaped as JSON wants it; bytes that are not UTF-8 become U+FFFD.
CRD_API void crdi_text_json(crdi_text* t, const char* text);
/// Shortest text that reads back as the same number; `null` unless finite.
CRD_API void crdi_text_json_number(crdi_text* t, double x);

/// Names to numbers, safe against names that were chosen to collide. Keys are borrowed and must
/// outlive the map.
typedef struct crdi_map {
    crd_context* ctx;
    struct crdi_map_slot* slots;
    uint32_t capacity, count; ///< capacity is a power of two
    uint64_t key[2];          ///< of the hash, drawn with the first slots
} crdi_map;

CRD_API void crdi_map_init(crdi_map* m, crd_context* ctx);
CRD_API void crdi_map_clear(crdi_map* m);
CRD_API crd_status crdi_map_reserve(crdi_map* m, size_t count);
/// false in `*fresh` (may be NULL) when the key was there already; then the old value stays.
CRD_API crd_status crdi_map_add(crdi_map* m, const char* key, int32_t value, bool* fresh);
CRD_API int32_t crdi_map_find(const crdi_map* m, const char* key); ///< -1 when absent

/// The candidate nearest to `word` in edit distance if it is near enough to be what was meant,
/// else NULL. `next` hands out candidates until it returns NULL.
CRD_API const char* crdi_nearest(const char* word, const char* (*next)(void* user), void* user);

/// Shell pattern (`*`, `?`, `[a-z]`) over the whole text. `[2]`, `[1,3]` and `[*]` are the index of
/// an element, not a set of characters.
CRD_API bool crdi_glob(const char* pattern, const char* text);

/// A text from a file as it may stand in a message: no control characters, 60 bytes at most.
typedef struct crdi_quote {
    char text[68];
} crdi_quote;
CRD_API crdi_quote crdi_clip(const char* text);

/// Locale-independent decimal numbers. false unless the whole of [text, text+length) is a number;
/// accepts INF, -INF, NaN in the spelling of XML Schema and of C.
CRD_API bool crdi_parse_double(const char* text, size_t length, double* out);
CRD_API bool crdi_parse_int64(const char* text, size_t length, int64_t* out);
CRD_API bool crdi_parse_uint64(const char* text, size_t length, uint64_t* out);

/// The text of printf("%.17g"), without locale and about ten times as fast.
/// Writes at most 25 bytes including the final zero and returns the length.
CRD_API int crdi_format_double(char* out, double x);

// ---- quantities --------------------------------------------------------------------------------

/// A physical unit: value_SI = factor * value + offset, with exponents of the SI base units.
typedef struct crd_dimension {
    int8_t kg, m, s, A, K, mol, cd, rad;
    double factor, offset;
} crd_dimension;

/// "N.m", "km/h", "1/s", "m/s2", "degC", "rpm", "%", "" ... false if a name is unknown.
CRD_API bool crd_dimension_parse(const char* text, crd_dimension* out);
CRD_API bool crd_dimension_equal(const crd_dimension* a, const crd_dimension* b); ///< exponents
/// "10 ms" -> 0.01 and the dimension; a bare number is dimensionless with `*bare` set.
CRD_API bool crd_quantity_parse(const char* text, double* si, crd_dimension* dim, bool* bare);
/// Length of the decimal number that `text` starts with, 0 if there is none; the unit follows it.
CRD_API size_t crdi_number_prefix(const char* text);

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
CRD_API crd_status crdi_json_parse(crdi_arena* arena, const char* text, size_t length,
                                   crdi_json_source source, crdi_json** out);
/// "file:line: ", "file: ", "line 3: " or "" and the sentence.
CRD_API crd_status crdi_json_fail(crd_context* ctx, const char* file, int line, crd_status st,
                                  const char* format, ...) CRD_PRINTF(5, 6);

// ---- clock and rings ---------------------------------------------------------------------------

/// Monotonic, in ns. Read by fronts and by the master for statistics and pacing, by nobody below.
CRD_API int64_t crdi_now_ns(void);

/// One producer, one consumer, blocks of equal size, no lock. The memory belongs to the ring.
typedef struct crdi_ring crdi_ring;
CRD_API crd_status crdi_ring_create(crd_context* ctx, size_t block_bytes, size_t blocks,
                                    crdi_ring** out);
CRD_API void crdi_ring_destroy(crdi_ring* r);
CRD_API void* crdi_ring_write(crdi_ring* r);      ///< next free block, NULL when full
CRD_API void crdi_ring_commit(crdi_ring* r);      ///< hands the block of the last write over
CRD_API const void* crdi_ring_read(crdi_ring* r); ///< oldest block, NULL when empty
CRD_API void crdi_ring_release(crdi_ring* r);     ///< gives the block of the last read back
CRD_API size_t crdi_ring_count(const crdi_ring* r);

#ifdef __cplusplus
}
#endif
