// Coupling algorithms as rows of a table: an algorithm is one file that begins with its equation,
// and one line in algorithm.c. Names, keys, defaults and ranges are taken from there by the reader
// and the writer of descriptions, by commands and by the live page.
#pragma once
#include "coupling/coupling.h"
#include "shared/base.h"

// ---- keys of descriptions ----------------------------------------------------------------------

typedef enum crdi_element_option_type {
    CRDI_ELEMENT_OWN, // read and written by functions of its own
    CRDI_ELEMENT_INT,
    CRDI_ELEMENT_NUMBER,
    CRDI_ELEMENT_TIME,
    CRDI_ELEMENT_BOOL, // written if true
    CRDI_ELEMENT_CHOICE,
} crdi_element_option_type;
typedef enum crdi_element_range {
    CRDI_ANY,
    CRDI_NOT_NEGATIVE,
    CRDI_POSITIVE,
    CRDI_ABOVE_ONE
} crdi_element_range;

struct crdi_element_reader;
struct crdi_element_writer;

typedef struct crdi_element_option {
    const char* name;
    crdi_element_option_type type;
    size_t offset; // in crd_element
    int min, max;  // CRDI_ELEMENT_INT
    crdi_element_range range;
    const char* const* choices;
    // CRDI_ELEMENT_OWN. NULL: by those who need it
    crd_status (*read)(struct crdi_element_reader* r, const crdi_json* n);
    void (*write)(struct crdi_element_writer* w, const crd_element* e);
} crdi_element_option;

#define CRDI_ELEMENT_FIELD(field) .offset = offsetof(crd_element, options.field)
// Taps of linear algorithms and of those that learn.
#define CRDI_ELEMENT_TAPS                                                                          \
    {                                                                                              \
        .name = "taps", .type = CRDI_ELEMENT_INT, CRDI_ELEMENT_FIELD(design.taps), .min = 1,       \
        .max = CRD_TAPS_MAX                                                                        \
    }
#define CRDI_ELEMENT_LEARNING                                                                      \
    {.name = "taps",                                                                               \
     .type = CRDI_ELEMENT_INT,                                                                     \
     CRDI_ELEMENT_FIELD(learning_taps),                                                            \
     .min = 2,                                                                                     \
     .max = 128},                                                                                  \
    {                                                                                              \
        .name = "window", .type = CRDI_ELEMENT_NUMBER, CRDI_ELEMENT_FIELD(learning_window),        \
        .range = CRDI_ABOVE_ONE                                                                    \
    }

// Of those that may know commands (commands_row.c).
extern const crdi_element_option crdi_commands_keys[];
crd_status crdi_commands_check_keys(struct crdi_element_reader* r, const crdi_json* n);

// Of those that adapt.
#define CRDI_ELEMENT_GAIN_LIMIT                                                                    \
    {                                                                                              \
        .name = "gain-limit", .read = crdi_element_read_gain_limit,                                \
        .write = crdi_element_write_gain_limit                                                     \
    }

// ---- the row -----------------------------------------------------------------------------------

// What reads and writes descriptions. On controllers options are structs, and there is none of it.
#ifdef CRDI_SMALL
#define CRDI_DESCRIBED(...) .described = false
#else
#define CRDI_DESCRIBED(...) .described = true, __VA_ARGS__
#endif

typedef struct crdi_algorithm {
    const char* name;
    bool described;                  // there are descriptions of it
    const crdi_element_option* keys; // its own, ends with a row without a name; NULL: none
    bool needs_keys;                 // its name alone is not enough
    bool learns;     // from the signal, so that it is re-based at jumps unless told otherwise
    bool has_design; // options.design counts for it
    // All of its keys are read: do they go together? May be NULL.
    crd_status (*check_keys)(struct crdi_element_reader* r, const crdi_json* n);
    // The same, when the latency is known, too. May be NULL.
    crd_status (*complete)(struct crdi_element_reader* r, const crdi_json* n);

    // A design: yhat = sum_i a_i y_{n-k-i} + theta sum_i A_i y_{n-k-i}, made for any k.
    crd_status (*check)(crd_context* ctx, const crd_design* d); // NULL: nothing can be wrong
    int (*taps)(const crd_design* d, int k);                    // NULL: d->taps
    double own[CRD_DESIGN_OWN];                                 // defaults of d->own
    // Into zeroed a and A (m each).
    crd_status (*weigh)(crd_context* ctx, const crd_design* d, int k, int m, double* a, double* A);

    // Predicts the signal from its own past as this one does. NULL: itself
    const struct crdi_algorithm* alone;

    // What is not a design.
    crd_status (*check_options)(crd_context* ctx, const crd_coupling_options* o); // may be NULL
    // One linear function for each k; NULL: it has a state instead. Give it back by
    // crd_linear_clear.
    crd_status (*linear)(crd_context* ctx, const crd_coupling_options* o, int k, crd_linear* out);

    // A state of `size` zeroed bytes. `clear` takes half of it.
    size_t size;
    crd_status (*init)(void* self, crd_context* ctx, const crd_coupling_options* o);
    void (*clear)(void* self, crd_context* ctx);
    void (*forget)(void* self); // the samples are counted anew
    // y is the history after a new sample, newest first; `lift` is what a re-based jump has added
    // to all older samples.
    void (*push)(void* self, const crd_real* y, crd_real lift);
    crd_real (*predict)(void* self, const crd_real* y, int k);
    int (*reach)(const void* self);  // samples of history that it looks at
    int (*memory)(const void* self); // samples after which a jump does not disturb it any more
} crdi_algorithm;

// Index 0, 1 ... in the order of tables: designs (as crd_method), then the others (as
// crd_algorithm); NULL behind the last.
const crdi_algorithm* crdi_algorithm_at(int index);
const crdi_algorithm* crdi_design_at(int method); // NULL: there is none
int crdi_design_count(void);
int crdi_algorithm_last(void); // the largest crd_algorithm that there is
// Of options; NULL if they name none.
const crdi_algorithm* crdi_algorithm_of(const crd_coupling_options* o);
// The options for it, its design by default.
void crdi_algorithm_choose(const crdi_algorithm* a, crd_coupling_options* o);
// Names of the designs, separated by commas.
const char* crdi_design_names(char* out, size_t size);

// Weights for latency k by the row of d->method, checked.
crd_status crdi_coupling_check_int(crd_context* ctx, const char* what, int x, int low, int high);
crd_status crdi_coupling_check_learning(crd_context* ctx, const crd_coupling_options* o);
// An algorithm of m taps whose a and A are worked out in `*w`, in double precision whatever
// crd_real is; then they are taken over, or, of a failure, everything is given back.
crd_status crdi_linear_begin(crd_context* ctx, int m, int k, crd_linear* out, double** w);
void crdi_linear_end(crd_context* ctx, crd_status st, crd_linear* out, double* w);
// The a of least norm with sum_i a_i (i + shift)^r = moments[r], r = 0 .. degree (polynomial.c).
void crdi_least_norm(int m, double shift, int degree, const double* moments, double* a);

// ---- reading (describe_read.c) -----------------------------------------------------------------

typedef struct crdi_element_reader {
    crd_context* ctx;
    crd_arena* arena;
    const char* file;
    const char* inside; // "towards" for what stands in it, "" at the top
    crd_element* e;
    const crdi_algorithm* algorithm;
    crd_status wrong; // the last failure that was noted (base_findings.h)
} crdi_element_reader;

// "file:line: towards.taps: sentence"
crd_status crdi_element_fail(crdi_element_reader* r, const crdi_json* n, crd_status st,
                             const char* format, ...) CRD_PRINTF(4, 5);
// The sentence of another function, with the place in front.
crd_status crdi_element_placed(crdi_element_reader* r, const crdi_json* n, crd_status st);
crdi_quote crdi_element_shown(const crdi_json* n); // what stands there, for messages
crd_status crdi_element_expected(crdi_element_reader* r, const crdi_json* n, const char* what);

crd_status crdi_element_read_int(crdi_element_reader* r, const crdi_json* n, int min, int max,
                                 int* out);
crd_status crdi_element_read_range(crdi_element_reader* r, const crdi_json* n,
                                   crdi_element_range range, double x);
crd_status crdi_element_read_number(crdi_element_reader* r, const crdi_json* n,
                                    crdi_element_range range, double* out);
crd_status crdi_element_read_time(crdi_element_reader* r, const crdi_json* n, const char* what,
                                  crdi_element_range range, double* out);
// rad/s. The nodes of a list have no key: the caller words what is wrong with the number itself.
crd_status crdi_element_read_frequency(crdi_element_reader* r, const crdi_json* n, double* out);
crd_status crdi_element_read_choice(crdi_element_reader* r, const crdi_json* n,
                                    const char* const* choices, int* out);
crd_status crdi_element_read_text(crdi_element_reader* r, const crdi_json* n, const char* what,
                                  const char** out);
// A list of finite numbers, `at_least` .. `at_most` of them.
crd_status crdi_element_read_numbers(crdi_element_reader* r, const crdi_json* n, int at_least,
                                     int at_most, double* out);
// Up to `most` names that differ, or only their number.
crd_status crdi_element_read_names(crdi_element_reader* r, const crdi_json* n, const char* what,
                                   int most, int* count, const char* const** out);
crd_status crdi_element_read_key(crdi_element_reader* r, const crdi_json* n,
                                 const crdi_element_option* k);
crd_status crdi_element_check_errors(crdi_element_reader* r, const crdi_json* n); // error_space.c
crd_status crdi_element_read_gain_limit(crdi_element_reader* r, const crdi_json* n);
const crdi_json* crdi_element_member(const crdi_json* object, const char* name);
// An object with no other keys than these.
crd_status crdi_element_check_members(crdi_element_reader* r, const crdi_json* n, const char* what,
                                      const char* const* names);
typedef struct crdi_element_suggestion {
    char text[100];
} crdi_element_suggestion;
crdi_element_suggestion crdi_element_hint(const char* word, const char* (*next)(void*), void* user);

// ---- describe.c --------------------------------------------------------------------------------

// A linear algorithm inside of another element: a word, or a mapping with its own keys.
crd_status crdi_element_read_nested(crdi_element_reader* r, const crdi_json* n, crd_element* out);
// Known latency in macro steps, -1.
int crdi_element_steps(const crd_element* e);
// Names of all keys, ends with NULL; one that two algorithms share may come twice.
const char* crdi_element_key(int index);
// Design with bands in x = omega dT. CRD_E_RANGE: a band lies above pi / dT.
crd_status crdi_element_design(const crd_element* e, double step, crd_design* out);
extern const char *const crdi_reconstructions[], *const crdi_detections[], *const crdi_reactions[];

// ---- writing (describe_write.c) ----------------------------------------------------------------

typedef struct crdi_element_writer {
    crd_text* out;
    bool started; // a member stands there already
} crdi_element_writer;

void crdi_element_write_gain_limit(crdi_element_writer* w, const crd_element* e);
void crdi_element_put_key(crdi_element_writer* w, const char* key);
void crdi_element_put_int(crdi_element_writer* w, const char* key, int x);
void crdi_element_put_number(crdi_element_writer* w, const char* key, double x);
void crdi_element_put_text(crdi_element_writer* w, const char* key, const char* text);
void crdi_element_put_names(crdi_element_writer* w, const char* key, const char* const* names,
                            int count);
void crdi_element_put_list(crdi_element_writer* w, const char* key, const double* x, int count);
void crdi_element_put_rows(crdi_element_writer* w, const char* key, const double* x, int rows,
                           int columns);
// The word of an algorithm and its own keys.
void crdi_element_put_algorithm(crdi_element_writer* w, const crdi_algorithm* a,
                                const crd_element* e);
