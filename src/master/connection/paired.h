// Power bonds with a pair of wave ports (cardan/pair.h): each unit makes inner steps in its macro
// step and gets in each of them what its port says; packets pass at the end of macro steps, through
// an emulated channel if there is one. Two connections become one pair; neither holds a value.
//
// A unit that has the variables of a port itself (a slave that was started with --pair) makes the
// inner steps where it is: here its side only hands its packets on.
#pragma once
#include "master/energy/energy.h"
#include "shared/coupling.h"
#include "shared/unit_wave.h"

typedef struct crdi_paired crdi_paired;

/// A port that stands in the unit: what is said to it and what it says.
typedef struct crdi_paired_far {
    int32_t at[CRDI_WAVE_VARIABLES]; // variables of the unit
    crd_binding *in, *out;
    crd_values inputs, outputs; // as many numbers as stand in the names
    double run, number;         // run: of the last packet
} crdi_paired_far;

/// One unit's end of a bond, and the way of its packets to the other.
typedef struct crdi_paired_side {
    crdi_paired* of;
    const crdi_connection* gives; // its own value
    crdi_connection* gets;        // what the port acts with
    struct crdi_member* member;
    struct crdi_paired_side* next; // of the same unit
    const double* own;             // in the outputs of its unit
    double* to;                    // in its inputs
    double own_gain, own_offset;   // to SI, with the signs of cardan/pair.h
    double in_gain, in_offset;     // from there to the input
    bool through;                  // its own value follows the input at once
    int parts;                     // inner steps of a macro step
    crd_pair_port pair;            // run
    crd_pair_state shown;          // run: at the end of the last macro step
    double begin;                  // run: own value when the inner step began
    crdi_pair_answer answer;       // run: while that is looked at
    crdi_coupled way;              // run: the channel alone; flights carry numbers of packets
    crd_pair_packet* packets;      // run: (way.ring) at place number % ring
    bool received;                 // run: a packet of the other has arrived
    crdi_observed seen;            // run: how far `gets` misses, if both ports are here
    double missed, looked;         // run: at the end of its last step, and when that was
    crdi_pair_over* over;          // run: commands on top; NULL: none
    crdi_paired_far* far;          // the port stands in the unit; NULL: here
} crdi_paired_side;

struct crdi_paired {
    const crdi_bond* bond;
    const crdi_axis* axis;
    const char* name;
    crdi_paired_side sides[2]; // by crd_pair_side
    bool agreed;               // run: the signs are right, as far as answers tell
    double known;              // run: size of its signals (squared) when answers began to tell
    crdi_offer* signals;
    int signal_count;
};

/// Finds the pairs among the bonds and marks their connections.
crd_status crdi_paired_plan(crdi_plan* plan, crdi_connections* c, const crdi_energy* energy);
crd_status crdi_paired_bind(crdi_plan* plan, crdi_connections* c); ///< once values have places
void crdi_paired_start(crd_master* m);                             ///< the values of the start
/// Around each inner step of a member with ports: writes its inputs; looks at its outputs.
void crdi_paired_act(const struct crdi_member* p, double t, double h);
crd_status crdi_paired_begin(const struct crdi_member* p); ///< inputs are set, the step comes
void crdi_paired_done(const struct crdi_member* p);
/// Before the unit of a member goes: what stands between it and its ports.
void crdi_paired_release(crd_master* m, const struct crdi_member* p);
void crdi_paired_moving(const crdi_paired* w, crdi_note_moving* note, void* user);
void crdi_paired_clear(crdi_paired* w);
void crdi_paired_report(const crd_master* m, crd_pair_report* out); ///< (pair_count)
void crdi_paired_warn(crd_master* m);           ///< at the end: links that brought nothing
bool crdi_paired_is_late(const crdi_paired* w); ///< by an emulated channel, or a real link
