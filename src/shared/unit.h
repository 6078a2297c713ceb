/// What modules share of unit. Not for users.
#pragma once
#include "cardan/twin.h"
#include "cardan/unit.h"
#include "shared/base.h"

#include <limits.h>
#include <string.h>

/// One element of a variable as a setting would write it, into the result of its kind. Not for
/// texts and binaries. The sentence about a failure is in the unit's context.
crd_status crdi_unit_parse_one(crd_unit* u, int32_t variable, const char* text, double* real,
                               int64_t* integer);

/// Room for the values of a binding.
crd_status crdi_values_create(crd_arena* arena, const crd_binding* b, crd_values* out);
void crdi_values_clear(crd_context* ctx, const crd_binding* b, crd_values* v);

/// Of a unit that makes inner steps which are known: the longest, s, INFINITY: its communication
/// step; the part of one that the input of the one before decides; how many of their ends the
/// derivatives of its outputs are made of. Elsewhere nothing is written.
void crdi_unit_inner(const crd_unit* u, double* longest, double* past, int* points);

/// Variables of a unit in this process that are its states and their derivatives, in the order of
/// crd_unit_linearise; from the arena. How many there are, 0: nobody tells.
int crdi_unit_states(crd_unit* u, crd_arena* arena, const int32_t** states,
                     const int32_t** derivatives);

/// The unit wants the end of the run; for adapters.
void crdi_unit_wish_stop(crd_unit* u);

/// Which units of the store run in worker processes where they say nothing themselves. Before they
/// are created.
void crdi_unit_store_isolate(crd_unit_store* s, crd_isolation isolation);

/// Once its units have gone: may new ones find what they left in the process? See crdi_fmu_lingers.
bool crdi_unit_store_lingers(const crd_unit_store* s);

/// FMUs are those of `lender` (NULL: its own), which outlives it. Before units are created.
void crdi_unit_store_borrow(crd_unit_store* s, crd_unit_store* lender);

/// A file of ours: in a build tree beside the library or the command, in libexec of an installed
/// one; first beside what the variable of the environment says (NULL: none). `mode` as of
/// access(2).
bool crdi_program_beside(const char* name, const char* variable, int mode, char out[PATH_MAX]);
/// The executable of worker processes. CRD_E_NOT_FOUND: there is none.
crd_status crdi_worker_find(crd_context* ctx, char out[PATH_MAX]);

// ---- optional functions, with what they are where a kind says nothing ---------------------------

/// Is there this function in this optional table of the unit's kind?
#define CRDI_UNIT_HAS(unit, table, function) ((unit)->ops->table && (unit)->ops->table->function)

static inline bool crdi_unit_dimension(const crd_unit* u, int32_t variable, crd_dimension* out)
{
    if (CRDI_UNIT_HAS(u, names, dimension)) { return u->ops->names->dimension(u, variable, out); }
    const char* text = u->info.variables[variable].unit;
    return text[0] && crd_dimension_parse(text, out);
}

static inline const char* crdi_unit_item_at(const crd_unit* u, int32_t variable, int32_t k,
                                            int64_t* value)
{
    return CRDI_UNIT_HAS(u, names, item_at) ? u->ops->names->item_at(u, variable, k, value) : NULL;
}

/// The item of an enumeration by name. false: no such item.
static inline bool crdi_unit_item(const crd_unit* u, int32_t variable, const char* name,
                                  int64_t* value)
{
    const char* text = NULL;
    for (int32_t k = 0; (text = crdi_unit_item_at(u, variable, k, value)) != NULL; k++) {
        if (strcmp(text, name) == 0) { return true; }
    }
    return false;
}

static inline uint32_t crdi_unit_extent(const crd_unit* u, int32_t variable, int axis)
{
    return CRDI_UNIT_HAS(u, names, extent) ? u->ops->names->extent(u, variable, axis)
                                           : u->info.variables[variable].size;
}

static inline const struct crdi_board* crdi_unit_board(const crd_unit* u)
{
    return CRDI_UNIT_HAS(u, remote, board) ? u->ops->remote->board(u) : NULL;
}

/// What a signal that ended a unit says, and what may be behind it. May be called in a signal
/// handler.
const char* crdi_signal_text(int number);

static inline const char* crdi_unit_last_call(const crd_unit* u)
{
    return u->ops->last_call ? u->ops->last_call(u) : "";
}

static inline void crdi_unit_abandon(crd_unit* u)
{
    if (u->ops->abandon) { u->ops->abandon(u); }
}

/// The description of a twin in a YAML file.
crd_status crdi_twin_read(crd_context* ctx, const char* path, crd_twin_description** out);
