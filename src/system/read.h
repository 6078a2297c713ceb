/// The language: the tables of all keys, and what they mean together.
#pragma once
#include "system/keys.h"

/// Every table of the reader, for the test that compares them with the schema file.
const crdi_table* const* crdi_system_tables(int* count);

/// Fill `s` from the tree of a whole file.
crd_status crdi_read_system(crdi_reader* r, const crdi_node* root, crd_system* s);
/// run.scheme alone.
crd_status crdi_read_scheme(crdi_reader* r, const crdi_node* n, crd_system* s);

/// ", did you mean 'mass1'?" when a unit's name is near.
crdi_hint crdi_unit_hint(const crd_system* s, const char* word);

crd_status crdi_add_unit(crd_system* s,
                         const crd_unit_spec* unit); ///< texts are the system's already
