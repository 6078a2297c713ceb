// A unit on a wire: messages of a catalog that come and go cyclically, in real time. What the wire
// is, datagrams or CAN, is said by its kind: how the catalog is read, and a link of six functions.
#pragma once
#include "shared/wire.h"
#include "unit/unit.h"

typedef struct crdi_wire_packet {
    int message;         // of the catalog, -1: none that is known
    const uint8_t* data; // with CRDI_WIRE_PAD bytes behind it; until the next receive
    size_t length;
    double time;  // of arrival, on the clock of the link
    bool foreign; // from somebody else than the partner
} crdi_wire_packet;

typedef struct crdi_wire_link crdi_wire_link;

// Nothing here waits but `wait`, nothing allocates but opening.
typedef struct crdi_wire_link_ops {
    double (*now)(const crdi_wire_link* l);          // s, on a clock that never jumps
    void (*wait)(crdi_wire_link* l, double seconds); // what comes meanwhile is there afterwards
    bool (*receive)(crdi_wire_link* l, crdi_wire_packet* out); // false: nothing more
    bool (*send)(crdi_wire_link* l, const crdi_wire_message* m, const uint8_t* data);
    const char* (*trouble)(const crdi_wire_link* l); // "the interface is down", ""; may be NULL
    crd_status (*close)(
        crdi_wire_link* l); // destroys it, too; what could not be written of captures
} crdi_wire_link_ops;

struct crdi_wire_link { // first in the link's own struct
    const crdi_wire_link_ops* ops;
};

typedef struct crdi_wire_kind {
    const char* name;    // of info: "frames"
    const char* foreign; // who else may have sent: "came from others than the partner"
    // The catalog, in `arena`; and what else of the spec can be told wrong before anything is
    // opened.
    crd_status (*load)(crd_context* ctx, const crd_unit_spec* spec, crd_arena* arena,
                       crdi_wire_catalog* out);
    crd_status (*open)(crd_context* ctx, const crd_unit_spec* spec,
                       const crdi_wire_catalog* catalog, crdi_wire_link** out);
} crdi_wire_kind;

crd_status crdi_wire_unit_create(crd_context* ctx, const crd_unit_spec* spec,
                                 const crdi_wire_kind* kind, crd_unit** out);

// Who waits for every message pays for a change of processes with each; who sleeps finds all of
// them, and they know when they came.
void crdi_wire_sleep(double seconds);

// Tests have networks and a clock of their own.
struct crd_dcp_net;
extern crd_status (*crdi_wire_open_net)(crd_context* ctx, struct crd_dcp_net** out);
