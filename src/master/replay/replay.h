// Units that are played.
#pragma once
#include "shared/base.h"
#include "shared/master_replay.h"

/// What the events of a recording say when it is not whole.
#define CRDI_GAPS "rows are not in the file"

/// What CRD_ATTACHMENT_EXCHANGE says, into `x` and its arena: all but the samples.
crd_status crdi_exchange_head(crdi_exchange* x, const char* text, size_t length);

/// A variable of a unit that is played.
typedef struct crdi_played_port {
    const char* name;
    bool output;
    bool array;
    int count;                              // elements
    const crdi_exchange_link* const* links; // (count)
} crdi_played_port;

/// A model for a native unit. All memory is the arena's; the recording is borrowed.
crd_status crdi_played_create(crd_arena* arena, const crdi_played_port* ports, int count,
                              double tick, const crd_model** out);
