// What the unit interface shares with its adapters.
#pragma once
#include "shared/unit.h"

// One start value of the spec, parsed for its variable. Later settings of the same variable, or of
// elements of it, have been merged into it.
typedef struct crdi_setting {
    int32_t variable; // never an alias
    crd_place place;
    crd_values values;
    uint32_t count; // elements
} crdi_setting;

typedef struct crdi_unit_core {
    crdi_setting* settings; // in the order of the spec
    int32_t setting_count;
    size_t setting_capacity;
    int32_t* output_rows;  // row of info.outputs per variable, -1; NULL: none, or few
    int32_t* initial_rows; // the same for info.initial
} crdi_unit_core;

// What crd_unit_create asks of an adapter. `create` makes the unit with ops, ctx, name, spec and
// info filled in; its messages say what is wrong, the caller adds the place (which `create` may
// change if it knows better) and the unit's name.
typedef struct crdi_adapter {
    crd_status (*create)(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                         crd_place* place, crd_unit** out); // store may be NULL
    crd_status (*resize)(crd_unit* u);   // structural parameters are known; NULL: there are none
    crd_status (*complete)(crd_unit* u); // all settings are known; may be NULL
} crdi_adapter;

extern const crdi_adapter crdi_adapter_standby;

// The unit of `spec` itself, whether or not it has a stand-in.
crd_status crdi_unit_create_alone(crd_context* ctx, crd_unit_store* store,
                                  const crd_unit_spec* spec, crd_unit** out);

// The FMU at `path`, opened once for all that ask. It belongs to the store.
struct crd_fmu;
crd_status crdi_unit_store_fmu(crd_unit_store* s, crd_context* ctx, const char* path,
                               struct crd_fmu** out);

// The session that the DCP slaves of the store share: where it stands, NULL there at first.
struct crdi_session;
struct crdi_session** crdi_unit_store_session(crd_unit_store* s);
// All sessions of the store, a list: that one, and those of slaves with a stand-in.
struct crdi_session** crdi_unit_store_sessions(crd_unit_store* s);
crd_context* crdi_unit_store_context(crd_unit_store* s);
// The worker processes of its units, a list.
struct crdi_worker;
struct crdi_worker** crdi_unit_store_workers(crd_unit_store* s);
crd_isolation crdi_unit_store_isolation(const crd_unit_store* s);

// The setting of a variable, NULL if the spec has none.
const crdi_setting* crdi_unit_setting(const crd_unit* u, int32_t variable);
// Sends the structural settings, or all others, through ops->set.
crd_status crdi_unit_send(crd_unit* u, bool structural);

// The variable that stands for `v`: itself, or the one that it is an alias of.
static inline int32_t crdi_unit_canonical(const crd_unit* u, int32_t v)
{
    const int32_t a = u->info.variables[v].alias_of;
    return a >= 0 ? a : v;
}

// Room for the elements of one variable. Clearing takes half-built values.
crd_status crdi_unit_values_init(crd_context* ctx, crd_values* v, crd_kind kind, uint32_t count);
void crdi_unit_values_clear(crd_context* ctx, crd_values* v, uint32_t count);
// `size` elements of a kind from place `at` of one set of values to place `to_at` of another, whose
// texts grow over `ctx`.
crd_status crdi_unit_values_copy(crd_context* ctx, crd_kind kind, uint32_t size,
                                 const crd_values* from, int32_t at, crd_values* to, int32_t to_at);

// Parses `text` for elements first ... first + count - 1 of a variable into those of `v`.
crd_status crdi_unit_parse(crd_unit* u, int32_t variable, const char* text, uint32_t first,
                           uint32_t count, crd_values* v);
// The same for a text that passes `via` (NULL: as it stands).
crd_status crdi_unit_parse_via(crd_unit* u, int32_t variable, const char* text,
                               const crd_transformation* via, uint32_t first, uint32_t count,
                               crd_values* v);
// The start value of a variable, which has one, into all of its elements.
crd_status crdi_unit_parse_start(crd_unit* u, int32_t variable, crd_values* v, uint32_t count);
// Says that a value lies outside of the variable's limits.
void crdi_unit_check_limits(crd_unit* u, int32_t variable, const crd_values* v, uint32_t count,
                            crd_place place);
// CRD_E_RANGE with the causality and the parameters there are, if the variable cannot be set.
crd_status crdi_unit_check_settable(crd_unit* u, int32_t variable);

// Puts "file:line: unit 'name': " in front of the sentence in the unit's context.
crd_status crdi_unit_fail_at(crd_context* ctx, crd_status st, crd_place place, const char* name);
// "file:line: " or "", cut to the buffer.
const char* crdi_unit_place_text(crd_place place, char* buffer, size_t size);

// Smallest and largest value of an integer type; UInt64 is not among them.
void crdi_unit_integer_range(crd_type t, int64_t* low, int64_t* high);

// A state in a file is not as long as this unit's.
crd_status crdi_unit_fail_size(crd_unit* u, size_t size, size_t expected);

// ---- sources -----------------------------------------------------------------------------------

// A unit without inputs whose state is the time: put first by signals and recordings.
typedef struct crdi_source {
    crd_unit base;
    double time;
} crdi_source;

crd_status crdi_source_nothing(crd_unit* u);
crd_status crdi_source_set(crd_unit* u, const crd_binding* b, const crd_values* v);
int32_t crdi_source_find(const crd_unit* u, const char* name);
crd_status crdi_source_save(crd_unit* u, void** state); // the state is the time, a double
void crdi_source_free_state(crd_unit* u, void** state);
crd_status crdi_source_write(crd_unit* u, crd_text* out);
crd_status crdi_source_read(crd_unit* u, const void* bytes, size_t size); // by ops->state->restore

// What sources have in common of the table of functions.
#define CRDI_SOURCE_OPS                                                                            \
    .instantiate = crdi_source_nothing, .exit_initialization = crdi_source_nothing,                \
    .terminate = crdi_source_nothing, .set = crdi_source_set
