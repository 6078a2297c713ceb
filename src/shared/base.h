/// What modules share of base: failures, memory, text, maps, numbers, JSON, rings. Not for users.
#pragma once
#include "cardan/base.h"

// ---- contexts and failures ---------------------------------------------------------------------

/// crd_context_create where nobody has a heap to fall back on: the options have an allocator.
crd_context* crdi_context_make(const crd_context_options* o);

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

void* crdi_arena_new(crd_arena* a, size_t n, size_t size); ///< zeroed, aligned for any type
/// What whoever has made its objects returns.
static inline crd_status crdi_arena_status(const crd_arena* a)
{
    return a->failed ? CRD_E_MEMORY : CRD_OK;
}
/// Its chunks one after the other: the first, then the one behind `after`; NULL behind the last.
const void* crdi_arena_chunk(const crd_arena* a, const void* after, void** data, size_t* used);
/// A context whose memory is the arena's: what is made in it can be copied away and back with the
/// rest. Destroy it before the arena is cleared. NULL: out of memory.
crd_context* crdi_context_in(crd_arena* a);
char* crdi_arena_text(crd_arena* a, const char* text, size_t length);
char* crdi_arena_format(crd_arena* a, const char* format, ...) CRD_PRINTF(2, 3);

void crdi_text_put(crd_text* t, const void* bytes, size_t length);
/// Room for `more` bytes and a zero behind what is there; who fills it in adds to `length`. NULL:
/// out of memory.
char* crdi_text_room(crd_text* t, size_t more);
void crdi_text_add(crd_text* t, const char* format, ...) CRD_PRINTF(2, 3);
/// With & < > " ' as entities; control characters that XML has no room for become '?'.
void crdi_text_xml(crd_text* t, const char* text);
void crdi_text_base64(crd_text* t, const void* bytes, size_t length);
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

/// Something and the ending, ".csv" for one; upper and lower case are the same.
bool crdi_ends_with(const char* text, const char* ending);

/// Bytes of the UTF-8 character that [s, s+length) begins with, 0: it is none.
size_t crdi_utf8_length(const char* s, size_t length);

/// A text from a file as it may stand in a message: no control characters, 60 bytes at most.
typedef struct crdi_quote {
    char text[68];
} crdi_quote;
crdi_quote crdi_clip(const char* text);

/// The one rule for all who listen or connect: on this host (loopback) as they like, beyond it with
/// a key, or plain where somebody has said that word. `words`: how each is asked for, "--key FILE
/// or
/// --plain". CRD_E_RANGE with a sentence.
crd_status crdi_check_plain(crd_context* ctx, const char* address, bool loopback, bool has_key,
                            bool plain, const char* words);

/// Locale-independent decimal numbers. false unless the whole of [text, text+length) is a number;
/// accepts INF, -INF, NaN in the spelling of XML Schema and of C.
bool crdi_parse_double(const char* text, size_t length, double* out);
bool crdi_parse_int64(const char* text, size_t length, int64_t* out);
bool crdi_parse_uint64(const char* text, size_t length, uint64_t* out);

/// The fewest digits that read back as the same double, laid out as printf("%.17g") does, without
/// locale. Writes at most 25 bytes including the final zero and returns the length.
int crdi_format_double(char* out, double x);

/// Length of the decimal number that `text` starts with, 0 if there is none; the unit follows it.
size_t crdi_number_prefix(const char* text);

// ---- files -------------------------------------------------------------------------------------

/// What a file is read for.
typedef struct crdi_file_need {
    const char* what;  ///< it is expected to be, for messages: "a netlist"
    size_t most;       ///< bytes; a larger one is refused with CRD_E_FORMAT, never cut off
    const char* shown; ///< its name in messages, NULL: the path
    bool pipes;        ///< pipes and devices will do, although reading them may wait for ever
    bool text;         ///< reading ends behind a zero byte, which no text has: /dev/zero does not
} crdi_file_need;

/// The whole file, appended to `out`, whose data is not NULL then. CRD_E_NOT_FOUND: there is none;
/// CRD_E_IO: it cannot be read; CRD_E_FORMAT: a folder, no regular file, or too large.
crd_status crdi_file_read(crd_context* ctx, const char* path, const crdi_file_need* need,
                          crd_text* out);
/// From now on the path of every file that crdi_file_read reads goes into `names`, each with a zero
/// behind it; NULL: no more.
void crdi_file_note_reads(crd_context* ctx, crd_text* names);
/// The first half of it, for who reads piece by piece: CRD_E_NOT_FOUND or CRD_E_IO.
crd_status crdi_file_open(crd_context* ctx, const char* path, const crdi_file_need* need, int* fd);
/// The second half, of what is open already, standard input for one.
crd_status crdi_file_read_from(crd_context* ctx, int fd, const char* path,
                               const crdi_file_need* need, crd_text* out);
/// The sentence about a file that is not there or cannot be read; `why` is errno.
crd_status crdi_file_fail(crd_context* ctx, const char* name, int why);
/// Beside its place, then put there: whoever looks sees the old file or the new one. Devices, pipes
/// and what a link leads to are written as they are. CRD_E_IO, or CRD_E_MEMORY if the text failed.
crd_status crdi_file_write(crd_context* ctx, const char* path, const crd_text* text);
/// Up to `room` - 1 bytes from the beginning of a regular file and a zero. How many there are; 0
/// also when it cannot be read, which the reader of the whole tells better.
size_t crdi_file_head(const char* path, char* head, size_t room);

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

enum { CRDI_JSON_DEPTH = 32, CRDI_JSON_BYTES = 4 << 20, CRDI_JSON_RUN_BYTES = 64 << 20 };

/// Where messages say that something stands; first_line 0: lines are not told.
typedef struct crdi_json_source {
    const char* file;
    int first_line;
} crdi_json_source;

/// One value and nothing behind it. All nodes and texts live in `arena`.
crd_status crdi_json_parse(crd_arena* arena, const char* text, size_t length,
                           crdi_json_source source, crdi_json** out);
/// The same of what may be longer than CRDI_JSON_BYTES: what runs say of themselves and leave in
/// their results, CRDI_JSON_RUN_BYTES.
crd_status crdi_json_parse_most(crd_arena* arena, const char* text, size_t length, size_t most,
                                crdi_json_source source, crdi_json** out);
/// "file:line: ", "file: ", "line 3: " or "" and the sentence.
crd_status crdi_json_fail(crd_context* ctx, const char* file, int line, crd_status st,
                          const char* format, ...) CRD_PRINTF(5, 6);

/// What an object's member is. NULL, "", NaN: there is none, or it is something else; `object` may
/// be NULL.
const crdi_json* crdi_json_member(const crdi_json* object, const char* key);
const crdi_json* crdi_json_get_list(const crdi_json* object, const char* key);
const crdi_json* crdi_json_get_object(const crdi_json* object, const char* key);
const char* crdi_json_get_text(const crdi_json* object, const char* key);
double crdi_json_get_number(const crdi_json* object, const char* key);
double crdi_json_value(const crdi_json* number);
bool crdi_json_get_bool(const crdi_json* object, const char* key, bool otherwise);
/// Of a list or an object, which may be NULL: how many members, the first, the one at `i`.
int crdi_json_count(const crdi_json* list);
const crdi_json* crdi_json_first(const crdi_json* list);
const crdi_json* crdi_json_item(const crdi_json* list, int i);
/// Equal values; the order of an object's members does not matter.
bool crdi_json_equal(const crdi_json* a, const crdi_json* b);

typedef enum crdi_json_style {
    CRDI_JSON_COMPACT,  ///< without blanks, numbers as short as they can be: what travels
    CRDI_JSON_ROWS,     ///< on one line but for the objects in lists of the outermost object
    CRDI_JSON_INDENTED, ///< by two blanks, reals with 17 digits and a point: what commands print
    CRDI_JSON_LINE,     ///< as COMPACT with numbers as INDENTED: a line of a command
} crdi_json_style;

/// Writes JSON as it comes; brackets, commas and blanks are its own business. `key` is NULL in
/// lists and at the outermost level. Running out of memory is remembered by the text.
typedef struct crdi_json_writer {
    crd_text* out;
    crdi_json_style style;
    int depth;      ///< what is open
    uint32_t lists; ///< a bit for each level: a list
    bool filled;    ///< what is open has a member already
} crdi_json_writer;

void crdi_json_writer_init(crdi_json_writer* w, crd_text* out, crdi_json_style style);
void crdi_json_begin_object(crdi_json_writer* w, const char* key);
void crdi_json_begin_list(crdi_json_writer* w, const char* key);
void crdi_json_end(crdi_json_writer* w); ///< of what was begun last
/// Bytes that are not UTF-8 become U+FFFD, NULL is "".
void crdi_json_put_text(crdi_json_writer* w, const char* key, const char* text);
void crdi_json_put_text_or_null(crdi_json_writer* w, const char* key, const char* text);
void crdi_json_put_number(crdi_json_writer* w, const char* key, double x); ///< NaN: null
void crdi_json_put_integer(crdi_json_writer* w, const char* key, int64_t x);
void crdi_json_put_bool(crdi_json_writer* w, const char* key, bool truth);
void crdi_json_put_null(crdi_json_writer* w, const char* key);
void crdi_json_put_raw(crdi_json_writer* w, const char* key, const char* json);
void crdi_json_put_tree(crdi_json_writer* w, const char* key, const crdi_json* tree);

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

// ---- memory that stays -------------------------------------------------------------------------

/// All memory of the process stays in RAM: what is private at once, what is shared with worker
/// processes (a gigabyte of addresses each, of which little is used) as it is touched. false:
/// errno.
bool crdi_lock_memory(void);
