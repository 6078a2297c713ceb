/// The language: the tables of all keys, and what they mean together.
#pragma once
#include "shared/system_words.h"
#include "system/keys.h"

// Rows of tables.
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define BIT(i) (UINT64_C(1) << (i))
#define KEY(key, kind, object, field)                                                              \
    .name = (key), .type = CRDI_KEY_##kind, .offset = offsetof(object, field)

#define TABLE(name) static const crdi_table name##_table = {#name, name##_keys, COUNT(name##_keys)}

/// Every table of the reader, for the test that compares them with the schema file.
const crdi_table* const* crdi_system_tables(int* count);

crd_run_spec crdi_run_spec_defaults(void);
extern const crdi_table crdi_unit_table, crdi_standby_table, crdi_session_table, crdi_bench_table,
    crdi_link_table, crdi_solver_table, crdi_circuit_table, crdi_column_table, crdi_signal_table,
    crdi_lever_table;
extern const crdi_table crdi_connection_table;
extern const crdi_table crdi_channel_table;
extern const crd_channel_spec crdi_no_channel; ///< nothing is lost or late
crd_status crdi_read_channel(crdi_reader* r, const crdi_node* n, crd_channel_spec* c);
extern const crdi_table crdi_control_table;
extern const crdi_table crdi_iterate_table;
extern const crdi_table crdi_pace_table;
extern const crdi_table crdi_guard_table;
extern const crdi_table crdi_bond_table;
crd_status crdi_read_signal(crdi_reader* r, const crdi_node* n, const char* name,
                            crd_signal_spec* out);
crd_status crdi_read_units(crdi_reader* r, const crdi_node* n, crd_system* s);
crd_status crdi_read_connections(crdi_reader* r, const crdi_node* n, crd_system* s);
crd_status crdi_read_coupling(crdi_reader* r, const crdi_node* n,
                              void* out); ///< const crd_coupling_spec*
/// The keys of run, and of a unit, that have more than one form.
crd_status crdi_read_control(crdi_reader* r, const crdi_node* n, void* out); ///< crd_control_spec
crd_status crdi_read_iterate(crdi_reader* r, const crdi_node* n, void* out); ///< crd_iterate_spec
crd_status crdi_read_pace(crdi_reader* r, const crdi_node* n, void* out);    ///< crd_pace_spec
crd_status crdi_read_guard(crdi_reader* r, const crdi_node* n, void* out);   ///< crd_guard_spec
crd_status crdi_read_monitor(crdi_reader* r, const crdi_node* n, void* out); ///< unsigned
crd_status crdi_read_refresh(crdi_reader* r, const crdi_node* n, void* out); ///< crd_refresh
crd_status crdi_read_bonds(crdi_reader* r, const crdi_node* n, crd_system* s);
/// Ranges of a bond's numbers; `*key` is then the one that makes no sense.
crd_status crdi_bond_check(crd_context* ctx, const crd_bond_spec* b, const char** key);
/// The node as JSON without those of its keys; each token in its line, the first being
/// `first_line`.
void crdi_node_json(const crdi_node* n, int first_line, const char* const* except, crd_text* out);
/// `send` and `receive` of a unit on a CAN bus, into a crd_message_list.
crd_status crdi_read_messages(crdi_reader* r, const crdi_node* n, void* out);
/// The whole file of a description.
crd_status crdi_read_file(crd_context* ctx, const char* path, crd_text* out);
/// The levers of a driver, and how long its page may be silent.
crd_status crdi_read_levers(crdi_reader* r, const crdi_node* n, crd_driver_spec* out);
crd_status crdi_read_silence(crdi_reader* r, int line, double silence);
/// A key that is the name of something of ours.
crd_status crdi_read_check_name(crdi_reader* r, const crdi_node* n, const char* what);
/// Line of a key, else of the mapping.
int crdi_line_of(const crdi_node* mapping, const char* key);

/// Fill `s` from the tree of a whole file. `base` reads what `system:` names, NULL: refused.
crd_status crdi_read_system(crdi_reader* r, const crdi_node* root, crd_system* s,
                            crd_system_base* base);
/// Change and add to what is there.
crd_status crdi_read_amendment(crdi_reader* r, const crdi_node* root, crd_system* s);
/// run.scheme, into a crd_run_spec.
crd_status crdi_read_scheme(crdi_reader* r, const crdi_node* n, void* out);

/// ", did you mean 'mass1'?" when a unit's name is near.
crdi_hint crdi_unit_hint(const crd_system* s, const char* word);

crd_status crdi_add_unit(crd_system* s,
                         const crd_unit_spec* unit); ///< texts are the system's already
