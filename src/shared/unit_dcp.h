/// Values between units and DCP: the one place where reals, integers and bytes are told apart on
/// the way of a DCP value. Not for users.
#pragma once
#include "shared/dcp.h"
#include "shared/unit.h"

/// Values of a unit's vectors, from `at` on, into a slot. false: a text or binary that is longer
/// than the slot's max_size; then the slot is as it was.
bool crdi_dcp_slot_set(const crd_dcp_slot* to, const crd_values* from, int32_t at);
/// And back. Of numbers as many as the slot has; fails only where a text has no memory in `ctx`.
crd_status crdi_dcp_slot_get(crd_context* ctx, const crd_dcp_slot* from, crd_values* to,
                             int32_t at);
