/// The end of a wave pair (cardan/pair.h) inside a DCP slave: a port at one input of the slave and
/// the output that answers it, with inner steps at the slave's own rate.
///
/// What the two sides exchange are ordinary variables of the slave's description, beside the input
/// (here `tau`): inputs `tau.pair.far.*` are the other side's packet, outputs `tau.pair.*` this
/// side's packet and account, parameters `tau.pair.side`, `own_gain`, `in_gain`, `set_impedance`
/// what a master says in CONFIGURATION. A master that leaves `side` at 0 notices nothing of it.
///
/// Of a bench the port stands in front of the envelope: what it asks for is a set value like
/// another, and what it books is what the machine did. Time is handed in; nothing allocates after
/// `declare`. Not for users.
#pragma once
#include "cardan/dcp.h"
#include "cardan/pair.h"
#include "shared/coupling.h"

enum { CRDI_WAVES_MAX = 4 }; ///< ports of one slave

/// Places of the variables of a port, from the first of them on; all are one float64.
typedef enum crdi_wave_variable {
    CRDI_WAVE_SIDE, ///< 0 off, 1 owns the flow, 2 owns the effort
    CRDI_WAVE_OWN_GAIN,
    CRDI_WAVE_IN_GAIN,
    CRDI_WAVE_SET_IMPEDANCE,
    CRDI_WAVE_FAR,                              ///< CRD_PAIR_NUMBERS inputs
    CRDI_WAVE_OWN = CRDI_WAVE_FAR + 10,         ///< CRD_PAIR_NUMBERS outputs
    CRDI_WAVE_ACCOUNT = CRDI_WAVE_OWN + 10,     ///< CRDI_WAVE_NUMBERS outputs
    CRDI_WAVE_VARIABLES = CRDI_WAVE_ACCOUNT + 9 ///< how many there are
} crdi_wave_variable;

/// What a side says about itself beside its packet.
typedef struct crdi_wave_account {
    double tank, absorbed, spent, received, dumped, debt; ///< J
    double limited;                                       ///< inner steps cut for want of energy
    double inner;                                         ///< inner step, s
    double agreement;                                     ///< crdi_pair_answer_of
} crdi_wave_account;

_Static_assert(CRD_PAIR_NUMBERS == 10 && sizeof(crdi_wave_account) == 9 * sizeof(double),
               "the places above");

/// Name of a variable behind that of the input: "tau" + ".pair.tank".
const char* crdi_wave_suffix(int variable);

/// One port. Fields are read by its functions alone.
typedef struct crdi_wave {
    crd_context* ctx;
    const char* name;                                  // of the input
    int first;                                         // of its variables in the description
    int input, own;                                    // variables of the slave
    double given[CRDI_WAVE_FAR], usual[CRDI_WAVE_FAR]; // parameters, and where nobody says anything
    uint32_t run;                                      // number of its life
    crd_dcp_plant inner;                               // what stands behind it
    bool at_bench;                                     // crdi_wave_turn makes the inner steps
    crd_pair_packet far, packet;
    double plain;        // what the input got by itself, NAN: nothing
    double begin, acted; // own value and real input when the inner step began
    double time;         // s of its life
    int64_t unsent;      // inner steps since the packet
    bool on, acting, first_packet;
    crd_pair_port pair;
    crdi_pair_answer answer;
} crdi_wave;

/// "tau:omega", input and output, becomes a port: adds its variables to the description, behind all
/// value references. `run` is greater after each start of the slave (seconds since 1970 will do).
/// CRD_E_RANGE, CRD_E_NOT_FOUND: what of it does not fit the slave; `*w` is written on CRD_OK only.
crd_status crdi_wave_declare(crd_dcp_description* d, const char* text, uint32_t run, crdi_wave* w);
/// The plant with the port in front. `at_bench`: somebody calls crdi_wave_turn; else the port makes
/// one step of the plant for each resolution and acts in it.
crd_dcp_plant crdi_wave_plant(crdi_wave* w, const crd_dcp_plant* inner, bool at_bench);
/// Behind each step of the rig of a bench, `seconds` long: own value and real input at its end. The
/// set value for the next one goes to quantity `quantity`.
void crdi_wave_turn(crdi_wave* w, crd_dcp_bench* bench, int quantity, double seconds, double own,
                    double acted);
