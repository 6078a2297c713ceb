// The values of the variables of a description: where they stand in memory, how many elements they
// have by the structural parameters, and how they start. A slave has one such list, a master one
// for each of its slaves.
#pragma once
#include "shared/dcp.h"

typedef struct crdi_dcp_value {
    crd_dcp_slot slot;
    uint32_t capacity;   // elements, or bytes, that there is room for; slot.count may be more
    uint32_t byte_count; // slot.byte_count points here
    int linked[8];       // indices of structural parameters, -1: the dimension is a constant
    bool dirty;          // slave: received and not yet handed to the plant
    bool touched; // slave: the plant was given a value: a reset has to give it the start value
    bool is_set;  // master: by crd_dcp_master_set
} crdi_dcp_value;

typedef struct crdi_dcp_room {
    uint32_t elements;  // along a dimension whose structural parameter has no max; 0: as it starts
    uint32_t text;      // bytes of a string or binary without maxSize
    uint32_t most;      // elements of a variable
    uint32_t most_text; // bytes of a string or binary
} crdi_dcp_room;

/// All with their start values. Numbers of one causality stand behind each other in the order of
/// the description, so that a group of neighbours is copied as one.
crd_status crdi_dcp_values_create(crd_arena* arena, const crd_dcp_description* d,
                                  const crdi_dcp_room* room, crdi_dcp_value** out);
/// Elements of a variable as the structural parameters stand, if `changed` (-1: none) had the value
/// `to`; no more than UINT32_MAX.
uint64_t crdi_dcp_elements(const crd_dcp_description* d, const crdi_dcp_value* values, int variable,
                           int changed, uint64_t to);
/// All that there is room for, so that an array that grows has start values.
void crdi_dcp_value_restart(const crd_dcp_description* d, crdi_dcp_value* values, int variable);

// description/start.c
/// Fills `capacity` elements, or the bytes, of a slot with a start value as a description has it;
/// the last number again where there are no more. NULL: zeros, nothing.
void crdi_dcp_read_start(const char* start, crd_dcp_slot* slot, uint32_t capacity);
