/// A run with test benches and the process that guards it: what they share. Not for users.
///
/// The ward is the master's side: a thread of its own gives the heart beat and looks after the
/// guard. The guard (src/guard, the executable cardan-guard) has this page as shared memory and
/// duplicates of the sockets of all sessions. When the master's process is gone, stuck or stopped,
/// or somebody asks for an emergency stop, it puts up the fence, behind which the master sends
/// nothing any more, and brings the benches down in the master's place.
#pragma once
#include "shared/dcp.h"

#include <stdatomic.h>
#include <sys/types.h>

enum {
    CRDI_WARD_SLAVES = 64,
    CRDI_WARD_SOCKET_FD = 3, ///< of the guard: messages from the ward
    CRDI_WARD_PAGE_FD = 4,   ///< of the guard: the page
    CRDI_WARD_TEXT = 256
};

typedef struct crdi_ward_slave {
    char name[64];
    crd_dcp_address control;
    int32_t mode; ///< crd_dcp_op_mode
    int32_t session;
    _Atomic uint32_t held; ///< registered by the master: has to be brought down
    _Atomic uint32_t id, seq, state;
} crdi_ward_slave;

typedef enum crdi_ward_phase {
    CRDI_WARD_STARTING, ///< units are made and initialised, benches conditioned
    CRDI_WARD_RUNNING,
    CRDI_WARD_ENDING, ///< units come to rest
    CRDI_WARD_OVER,   ///< the guard may go
} crdi_ward_phase;

typedef struct crdi_ward_page {
    uint64_t layout; ///< sizeof of this
    // what was wished, before the guard begins
    int32_t master;               ///< process
    int64_t watchdog_ns;          ///< silence of the process until it is stuck
    int64_t cycle_ns;             ///< the same of steps while it runs; 0: they are not watched
    char address[CRDI_WARD_TEXT]; ///< of the emergency stop, "127.0.0.1:8422"
    char token[CRDI_WARD_TEXT];   ///< of its own
    char input[CRDI_WARD_TEXT];   ///< a device that triggers it, ""
    char results[4096];           ///< result file, ""
    char session[4096];           ///< session record, ""
    char note[CRDI_WARD_TEXT];    ///< what stands there until the end
    // by somebody else of this user: src/unit/ward_find.c
    char asker[CRDI_WARD_TEXT]; ///< before `asked`
    _Atomic int asked;          ///< 1: everything is to stop
    // by the master's process
    _Atomic int64_t beat;       ///< ns on the monotonic clock
    _Atomic int64_t cycle_beat; ///< the same when the run was seen to go on
    _Atomic int phase;          ///< crdi_ward_phase
    _Atomic int slave_count;
    crdi_ward_slave slaves[CRDI_WARD_SLAVES];
    // by the guard
    _Atomic int ready; ///< 1: it watches, and `url` is there; -1: `cause` says why not
    _Atomic int64_t guard_beat;
    int32_t chosen; ///< the port of `address` was not wished: another one will do
    char url[2 * CRDI_WARD_TEXT];
    char cause[2 * CRDI_WARD_TEXT]; ///< before the fence
    _Atomic int fence;              ///< 1: the benches are the guard's
} crdi_ward_page;

/// A message from the ward to the guard, with a descriptor beside it: how to speak to a slave.
typedef struct crdi_ward_message {
    int32_t slave, key_count;
    char keys[4096]; ///< files of the session, each with its zero
} crdi_ward_message;

// ---- guards of this user on this machine: src/unit/ward_find.c
// -----------------------------------

/// The processes of guards, in order; how many there are, of which `most` are written.
int crdi_ward_find(pid_t* out, int most);
/// What a guard and its run share; NULL: there is no such guard, or it is of another version or
/// another user. Belongs to the caller, who hands it to munmap.
crdi_ward_page* crdi_ward_open(pid_t guard);

// ---- the master's side: src/unit/ward.c ---------------------------------------------------------

typedef struct crdi_ward crdi_ward; ///< opaque

typedef struct crdi_ward_options {
    double watchdog;                      ///< s
    double period;                        ///< s of a step in real time; 0: steps are not watched
    const char *address, *token, *input;  ///< NULL: the default
    const char *results, *session, *note; ///< NULL: none
    /// Where the run is: the number of its steps so far. Any thread.
    crdi_ward_phase (*pulse)(void* user, int64_t* steps);
    /// The fence is up: the run has to end at once, and must not touch the benches. On the ward's
    /// thread; may not come back.
    void (*fenced)(void* user, const char* cause);
    void* user;
} crdi_ward_options;

/// One in a process. Returns when the guard watches. CRD_E_NOT_FOUND, CRD_E_IO, CRD_E_RANGE: there
/// is no guard, and why.
crd_status crdi_ward_create(crd_context* ctx, const crdi_ward_options* opt, crdi_ward** out);
/// `pulse` and `fenced` are not called any more: before what they look at is destroyed.
void crdi_ward_let_go(crdi_ward* w);
/// The run is over and its benches are at rest: the guard goes. Behind the sessions.
void crdi_ward_destroy(crdi_ward* w);
const char* crdi_ward_url(const crdi_ward* w); ///< of the emergency stop
crdi_ward* crdi_ward_of_process(void);         ///< NULL: there is none

/// A session with its slaves, and the files of its keys; not on the step path. `*session` -1: no
/// room. CRD_E_RANGE: the names of the files are longer than the guard takes.
crd_status crdi_ward_join(crd_context* ctx, crdi_ward* w, crd_dcp_net* net, const char* const* keys,
                          int count, int* session);
/// What is known of a slave has changed. `slave` -1 at first, then what it returned before.
int crdi_ward_note(crdi_ward* w, int slave, int session, const crd_dcp_master* m, int index,
                   const crd_dcp_slave_spec* spec);
