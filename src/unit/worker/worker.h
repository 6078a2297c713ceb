// A unit whose code runs in another process. The unit itself is made here as always but only
// describes: names, types, settings. A worker makes it again from the same description and carries
// out its table of functions, so that what comes is equal, bit for bit.
//
//   channel.[ch]   the memory that both share
//   process.c      a worker process: how it begins, is waited for, and ends
//   group.c        which units share a worker
//   worker_unit.c  the unit that the master sees
//   transfer.c     its values and steps
//   restart.c      how it goes on when its worker has ended
//   program/       the executable
#pragma once
#include "unit/unit.h"
#include "unit/worker/channel.h"

#include <sys/types.h>

typedef struct crdi_proxy crdi_proxy;

// Values of one binding in the shared memory; b->prepared.
typedef struct crdi_proxy_binding {
    crd_binding* binding;
    int32_t handle; // -1: the worker does not know it yet
    size_t at, bytes;
    crdi_channel_area area;
    int16_t order; // of derivatives that go with a set that waits
    bool waits;    // was set; goes with the next request
    bool inputs;   // was ever set
    bool rates_only;
    uint32_t watch; // what the worker fetches after each step: bit 0 values, bit k rates of order k
    int unread;     // steps in a row for nothing
    uint64_t fresh[1 + CRDI_CHANNEL_ORDERS]; // the unit's `epoch` that they belong to
    struct crdi_proxy_binding* next;
} crdi_proxy_binding;

// A worker process, seen from the master. Units of one worker may be on several threads.
typedef struct crdi_worker {
    crd_context* ctx;
    struct crdi_worker** list; // that it is in
    struct crdi_worker* next;
    const char* group; // NULL: whoever comes by itself, "": one unit alone
    crdi_proxy** units;
    size_t unit_capacity;
    int32_t unit_count; // places taken, also by units that are gone
    int32_t users;

    _Atomic uint32_t mail; // taken by who uses the message area; comes before `lock`
    _Atomic uint32_t lock; // of all that follows
    pid_t pid;             // 0: not running
    const char* scratch;   // the folder that it may write
    crd_arena arena;       // of that
    int memory_fd, life_fd;
    char* memory;
    crdi_control* control;
    size_t used;     // of the memory
    uint32_t number; // of the last request
    uint32_t log_read;
    int64_t spin_ns;
    bool failed;    // its end was not asked for
    int32_t blamed; // unit that was in a call then, -1: none
    char why[256];  // what happened, from the point of view of that unit
} crdi_worker;

struct crdi_proxy {
    crd_unit base;   // as of `inner`
    crd_unit* inner; // describes; is never instantiated
    crdi_worker* worker;
    int32_t index; // in the worker
    crdi_answer* answer;
    char* text;
    uint32_t number;  // of its last request that is answered
    uint16_t op;      // of its last request
    uint32_t vain;    // waits in which it was looked for in vain
    bool created;     // the worker has the unit
    bool begun;       // a step is under way
    bool steps;       // it is initialised: what is read will be read again
    bool said;        // the end of the worker
    int restarts;     // so far
    char remark[320]; // base.remark
    int64_t limit;    // of a call, ns
    int64_t events;   // as the worker counts
    int16_t waiting;  // bindings that were set
    uint64_t epoch;   // changes when values do
    int32_t handles;  // of bindings so far
    int32_t states;   // of saved states so far
    crdi_proxy_binding* bindings;
    crdi_proxy_binding* spare; // areas to be used again
    crd_experiment experiment;
    _Atomic bool given_up; // the run is over
    const char* folder;    // of the FMU
    bool unpacked;         // which is a copy of this run's
    const char* path;      // what users call it
    const char* library;   // below the folder, or absolute where it was compiled here
};

// ---- group.c -----------------------------------------------------------------------------------

// Whether the spec, or what the store was given, wants the unit in a process of its own.
bool crdi_worker_wanted(const crd_unit_store* store, const crd_unit_spec* spec);
// Puts the unit `*u` into a worker: becomes the unit around it. Else `*u` is destroyed.
crd_status crdi_worker_wrap(crd_context* ctx, crd_unit_store* store, crd_unit** u);
// Is it such a unit? For who asks the inside of a unit.
bool crdi_worker_has(const crd_unit* u);
crd_status crdi_worker_linearise(crd_unit* u, const crd_unit_port* in, int in_count,
                                 const crd_unit_port* out, int out_count, crd_linearised* result);
crd_status crdi_worker_join(crdi_proxy* u, crd_unit_store* store);
void crdi_worker_leave(crdi_proxy* u);

// ---- process.c ---------------------------------------------------------------------------------

crd_status crdi_worker_find(crd_context* ctx); // is there an executable?
crd_status crdi_worker_start(crdi_worker* w, crd_context* ctx);
void crdi_worker_stop(crdi_worker* w); // ends the process; the sentence about it stays
// A part of the memory, SIZE_MAX: there is no room.
size_t crdi_worker_area(crdi_worker* w, size_t bytes);

// Nobody holds them for long, but for `mail`: a call with a message has the area to itself.
void crdi_worker_lock(_Atomic uint32_t* lock);
static inline void crdi_worker_unlock(_Atomic uint32_t* lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

// One request of the unit into the ring; under lock, the process running. The worker is woken up.
void crdi_worker_push(crdi_proxy* u, const crdi_request* r);
// Until the last request of the unit is answered. `limit` in ns.
crd_status crdi_worker_wait(crdi_proxy* u, int64_t limit);
// The sentence about a worker that is no more.
crd_status crdi_worker_gone(crdi_proxy* u);

// ---- transfer.c --------------------------------------------------------------------------------

crd_status crdi_proxy_prepare(crd_unit* unit, crd_binding* b);
void crdi_proxy_unprepare(crd_unit* unit, crd_binding* b);
crd_status crdi_proxy_set(crd_unit* unit, const crd_binding* b, const crd_values* v);
crd_status crdi_proxy_get(crd_unit* unit, const crd_binding* b, crd_values* v);
crd_status crdi_proxy_set_rates(crd_unit* unit, const crd_binding* b, const double* const* d,
                                int order);
crd_status crdi_proxy_get_rates(crd_unit* unit, const crd_binding* b, int order, double* d);
crd_status crdi_proxy_bind(crdi_proxy* u, crdi_proxy_binding* p);
void crdi_proxy_begin(crd_unit* unit, double t, double h);
crd_status crdi_proxy_step(crd_unit* unit, double t, double h);
crd_advance* crdi_proxy_join(crd_unit* unit, int id, const crd_binding* in,
                             const crd_values* inputs, const crd_binding* out, crd_values* outputs,
                             crd_lane* lane);
// restart.c: the step that its worker did not survive, in another one.
crd_status crdi_proxy_restart(crdi_proxy* u, double t, double h);
// What was set goes to the worker, without waiting; under lock.
void crdi_proxy_flush(crdi_proxy* u);

// ---- worker_unit.c -----------------------------------------------------------------------------

// One request and its answer. `fill` writes the message, `take` reads it; both may be NULL.
typedef struct crdi_proxy_call {
    crdi_request request;
    void (*fill)(crdi_mail* m, const void* with);
    crd_status (*take)(crdi_proxy* u, crdi_mail* m, void* into);
    const void* with;
    void* into;
    int64_t limit; // ns; 0: that of a call
} crdi_proxy_call;
crd_status crdi_proxy_do(crdi_proxy* u, const crdi_proxy_call* c);
