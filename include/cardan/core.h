/// Cardan on a microcontroller: what turns memory and five functions of the board into a context
/// for coupling elements, wave ports and twins, and a DCP slave with the safety core of a bench.
///
/// libcardan-core is these headers: core.h, coupling.h (all but descriptions of elements, which are
/// text), pair.h, of twin.h the filter, and of dcp.h the slave and the bench. C17, no heap, no
/// files, no clock but the port's; docs/how-to/controllers.md shows a whole program.
///
///     static _Alignas(16) unsigned char memory[24 * 1024];
///     const char* why;
///     crd_core* core = crd_core_start(&port, memory, sizeof memory, &why);
///     if (!core) { stop(why); }
///     ... crd_coupling_create(crd_core_context(core), ...), crd_core_serve(core, ...)
///     crd_core_seal(core);
///     for (;;) { crd_core_turn(core); }
///
/// Threads: all of it belongs to the main loop. What an interrupt shares with it (set values,
/// measured values) is copied by the plant's `set` and `get`, which the core calls inside of the
/// port's critical section.
#pragma once
#include "cardan/coupling.h"
#include "cardan/dcp.h"
#include "cardan/pair.h"
#include "cardan/twin.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What the board lends. Functions return at once; `user` is handed to each.
typedef struct crd_core_port {
    void* user;
    /// s since any moment, never less than before. Deadmen and steps go by it, so nothing starts
    /// without it.
    double (*time)(void* user);
    /// A datagram leaves. false: it could not. NULL: this board has no network.
    bool (*send)(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length);
    /// The oldest datagram that has arrived and was not asked for yet: its length, 0: there is
    /// none. `from`: who has sent it, `at`: our own address, as the sender knows it. Of a datagram
    /// above `room` bytes the port tells its length and writes nothing: it is refused.
    size_t (*receive)(void* user, crd_dcp_address* from, crd_dcp_address* at, uint8_t* bytes,
                      size_t room);
    /// true: nothing interrupts any more, false: as before. NULL: nothing shares values.
    void (*critical)(void* user, bool enter);
    void (*log)(void* user, crd_level level, const char* text); ///< NULL: nobody reads it
} crd_core_port;

typedef struct crd_core crd_core; ///< opaque; lies in the memory that it was given

// A program for the library in the other precision does not link.
#ifdef CARDAN_CORE_SINGLE
#define crd_core_start crd_core_start_single
#endif

/// `port` is copied, `memory` (of `size` bytes) belongs to the core from here on. NULL: `*why` is
/// the sentence that says what the port lacks: no time, a time that is no number or that stands
/// still, too little memory.
crd_core* crd_core_start(const crd_core_port* port, void* memory, size_t size, const char** why);
/// For all that is created on this board. Destroying gives memory back only in reverse order.
crd_context* crd_core_context(crd_core* core);

/// Options of a slave that is as small as its description allows: 8 data_ids and param_ids with all
/// variables in one, 2 targets, 4 entries of the log, PDUs up to 512 bytes. For
/// crd_core_serve(..., NULL, ...), or to start from.
crd_dcp_slave_options crd_core_slave_defaults(const crd_dcp_description* d);
/// The slave of this board: `plant` behind it, the port as its network. One at most. `d` and the
/// plant's user are borrowed. CRD_E_UNSUPPORTED: the port cannot send or receive; what
/// crd_dcp_slave_create says.
crd_status crd_core_serve(crd_core* core, const crd_dcp_description* d, const crd_dcp_plant* plant,
                          const crd_dcp_slave_options* opt, crd_dcp_slave** out);

/// Everything is made: whatever asks for memory from here on gets none, is counted, and fails.
void crd_core_seal(crd_core* core);
/// Takes in what has arrived, 16 datagrams at most, and does what is due. For the main loop: often
/// enough for the shortest step. Returns the time when the next thing is due unless something
/// arrives, INFINITY: none is. A clock that has not moved for a million turns is a fault of the
/// slave (ERRORHANDLING), since no deadman would act any more.
double crd_core_turn(crd_core* core);

typedef struct crd_core_state {
    size_t size, used, most; ///< bytes of memory: there, in use, in use at most
    int64_t refused;         ///< allocations after crd_core_seal
    int64_t received, too_long;
    bool stands_still; ///< the clock did
} crd_core_state;
crd_core_state crd_core_get_state(const crd_core* core);

#ifdef __cplusplus
}
#endif
