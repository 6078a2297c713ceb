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

/// To the label `fail` if `expr` is a failure, which is in `st` then.
#define CRD_TRY(expr)                                                                              \
    do {                                                                                           \
        st = (expr);                                                                               \
        if (st < 0) { goto fail; }                                                                 \
    } while (0)

// ---- memory ------------------------------------------------------------------------------------

/// What the library has handed out with the words "for crd_free"; NULL is fine.
CRD_API void crd_free(crd_context* ctx, void* p);

/// Memory that goes all at once: chunks from the context, objects are never freed singly. Whoever
/// makes several of them asks once, at the end, whether it `failed`.
typedef struct crd_arena {
    crd_context* ctx;
    struct crdi_chunk* chunks;
    size_t used;    ///< bytes handed out
    bool failed;    ///< there was no memory once: nothing is handed out since
    uint32_t first; ///< bytes that it begins with, 0: some thousand
} crd_arena;

CRD_API void crd_arena_init(crd_arena* a, crd_context* ctx);
CRD_API void crd_arena_clear(crd_arena* a);

/// Text that grows. Running out of memory is remembered in `failed`; later calls do nothing.
typedef struct crd_text {
    crd_context* ctx;
    char* data; ///< zero-terminated once something was added, NULL before
    size_t length, capacity;
    bool failed;
} crd_text;

CRD_API void crd_text_init(crd_text* t, crd_context* ctx);
CRD_API void crd_text_clear(crd_text* t);

/// Names to numbers, safe against names that were chosen to collide. Keys are borrowed and must
/// outlive the map.
typedef struct crd_map {
    crd_context* ctx;
    struct crdi_map_slot* slots;
    uint32_t capacity, count; ///< capacity is a power of two
    uint64_t key[2];          ///< of the hash, drawn with the first slots
} crd_map;

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
#ifdef __cplusplus
}
#endif
