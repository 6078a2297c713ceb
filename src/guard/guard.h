// cardan-guard, the process that watches a run with test benches from outside: main.c looks at the
// heart beat, act.c brings the benches down in the master's place, stop.c has the emergency stop.
//
// It is small and knows nothing of units: one thread, no file but the socket of its page, memory
// locked as far as the system allows it. Everything that it needs to act is made when a slave is
// announced, so that nothing has to be found or opened when the master is gone.
#pragma once
#include "shared/unit_ward.h"

enum { GUARD_LOOK_MS = 20, GUARD_TEXT = 2 * CRDI_WARD_TEXT };

// ---- act.c
typedef struct guard_session {
    crd_dcp_net* net; // NULL: there is no such session
    crd_dcp_master* master;
    int slaves[CRDI_WARD_SLAVES]; // of the master: rows of the page
} guard_session;

typedef struct guard {
    crd_context* ctx;
    crdi_ward_page* page;
    int ward;   // the socket; -1: the other end is closed
    int master; // pidfd
    bool locked, fifo;
    bool acting;
    guard_session sessions[CRDI_WARD_SLAVES];
    int rows[CRDI_WARD_SLAVES]; // of the page: index in the master of its session + 1, 0: none
    struct guard_stop* stop;
} guard;

bool guard_take_message(guard* g);      // from the ward; false: there is none now
bool guard_has_benches(const guard* g); // some slave is registered
// The fence goes up, the benches come down, the record is closed where the master does not do that
// itself, and it is said. Returns the exit code.
int guard_act(guard* g, const char* cause);

// ---- main.c
bool guard_master_is_gone(const guard* g); // also if nobody has waited for it yet
bool guard_master_is_stopped(const guard* g);

// ---- stop.c
// Opens page and input. On failure the context says why.
crd_status guard_stop_open(guard* g);
// Waits for `ms` at most; also for the ward and the master. true: somebody wants everything to
// stop, `cause` says who.
bool guard_stop_look(guard* g, int ms, char cause[GUARD_TEXT]);
