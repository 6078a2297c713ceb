// A unit whose code runs in another process. The unit itself is made here as always but only
// describes: names, types, settings. A worker makes it again from the same description and carries
// out its table of functions, so that what comes is equal, bit for bit.
//
//   channel.[ch]   the memory that both share
//   process.c      a worker process: how it begins, is waited for, and ends
//   group.c        which units share a worker
//   cost.c         what their steps cost in earlier runs
//   worker_unit.c  the unit that the master sees
//   transfer.c     its values and steps
//   row.c          steps of many units in one request
//   restart.c      how it goes on when its worker has ended
//   program/       the executable
#pragma once
#include "unit/unit.h"
#include "unit/worker/channel.h"

#include <limits.h>
#include <sys/types.h>

typedef struct crdi_proxy crdi_proxy;

// Values of one binding in the shared memory; b->prepared.
typedef struct crdi_proxy_binding {
    crd_binding* binding;
    int32_t handle; // -1: the worker does not know it yet
    size_t at, bytes;
    crdi_channel_area area;
    char* own; // what was set, as it stands in the area, of a unit that may begin anew; else NULL
    int16_t order;     // of derivatives that go with a set that waits
    int16_t own_order; // of derivatives in `own`
    bool waits;        // was set; goes with the next request
    bool inputs;       // was ever set
    bool rates_only;
    uint32_t watch; // what the worker fetches after each step: bit 0 values, bit k rates of order k
    uint64_t read;  // the unit's `epoch` when it was read last
    const double* seat; // values after a step in a row, NULL: none
    uint64_t
        fresh[1 + CRDI_CHANNEL_ORDERS]; // the unit's `epoch` that they belong to, if not `fetched`
    struct crdi_proxy_binding* next;
} crdi_proxy_binding;

// Room for values without gaps, a few cache lines at a time.
typedef struct crdi_worker_block {
    size_t at, end;
} crdi_worker_block;

// Units of a worker that are stepped in one request.
typedef struct crdi_worker_row {
    bool pending;     // is under way
    crdi_proxy* lead; // the first
    const void* owner;
    int32_t first, count; // seats
    int id;               // of the lane of the first
    uint32_t number;
    int32_t status;
    uint32_t flags;
    int16_t order; // crdi_row_order
    const double* outputs;
    struct crdi_worker* next; // that has others of the same row of lanes
} crdi_worker_row;

// A worker process, seen from the master. Units of one worker may be on several threads.
typedef struct crdi_worker {
    crd_context* ctx;
    struct crdi_worker** list; // that it is in
    struct crdi_worker* next;
    int32_t id;        // among those of the list, from 1
    const char* group; // NULL: whoever comes by itself, "": one unit alone
    crdi_proxy** units;
    size_t unit_capacity;
    int32_t unit_count; // places taken, also by units that are gone
    int32_t users;
    int64_t load; // ns of a step of all its units, as far as it is known

    _Atomic uint32_t mail; // taken by who uses the message area; comes before `lock`
    _Atomic uint32_t lock; // of all that follows
    pid_t pid;             // 0: not running
    const char* scratch;   // the folder that it may write
    crd_arena arena;       // of that
    int memory_fd;
    int life_fds[2];     // both ends of a socket: who has them is alive
    int stream_flags[2]; // of standard output and error
    int segment;         // instead of memory_fd, -1: none
    char* memory;
    crdi_control* control;
    size_t used;                 // of the memory
    crdi_worker_block values[2]; // seats' inputs and outputs
    int32_t seats;               // so far
    uint32_t life;               // counts its processes
    crdi_worker_row row;         // that is under way
    double few[CRDI_FEW_INPUTS]; // its inputs, if they are few
    uint32_t number;             // of the last request
    uint32_t slot;               // that it is in
    uint32_t answered;           // a number, and so all before it are
    uint32_t log_read;
    int64_t spin_ns;
    _Atomic bool failed; // its end was not asked for; `why` and `blamed` stand before it does
    int32_t blamed;      // unit that was in a call then, -1: none
    char why[256];       // what happened, from the point of view of that unit
} crdi_worker;

struct crdi_proxy {
    crd_unit base;   // as of `inner`
    crd_unit* inner; // describes; is never instantiated
    crdi_worker* worker;
    int32_t index; // in the worker
    crdi_answer* answer;
    char* text;
    uint32_t number; // of its last request that is answered
    uint16_t op;     // of its last request
    uint32_t vain;   // waits in which it was looked for in vain
    bool created;    // the worker has the unit
    bool begun;      // a step is under way
    bool steps;      // it is initialised: what is read will be read again
    bool said;       // the end of the worker
    int restarts;    // so far
    uint8_t* kept; // its state after the last step, of a unit that may begin anew; NULL: it cannot
    size_t kept_size, kept_capacity;
    double kept_at;   // its time
    char remark[448]; // base.remark
    int64_t limit;    // of a call, ns
    int64_t events;   // as the worker counts
    int16_t waiting;  // bindings that were set
    uint64_t epoch;   // changes when values do
    uint64_t fetched; // epoch of the last step after which the worker has read what is watched
    bool in_row;      // that step was one of a row
    crdi_channel_gain gains[CRDI_CHANNEL_GAINS];
    int32_t gain_count;
    size_t gains_at;       // 0: no room yet
    uint64_t gains_read;   // as `read` of a binding
    const double* watched; // what is read first after a step, NULL: not known
    int32_t handles;       // of bindings so far
    int32_t states;        // of saved states so far
    crdi_proxy_binding* bindings;
    crdi_proxy_binding* spare; // areas to be used again
    crd_experiment experiment;
    _Atomic bool given_up; // the run is over
    int64_t cost;          // ns of a step in an earlier run, 0: not known
    bool speaks;           // for all that have the same FMU
    const char* folder;    // of the FMU
    bool unpacked;         // which is a copy of this run's
    const char* path;      // what users call it
    const char* library;   // below the folder, or absolute where it was compiled here
};

// ---- group.c -----------------------------------------------------------------------------------

// Whether the spec, or what the store was given, wants the unit in a process of its own.
bool crdi_worker_wanted(const crd_unit_store* store, const crd_unit* u);
// Puts the unit `*u` into a worker: becomes the unit around it. Else `*u` is destroyed.
crd_status crdi_worker_wrap(crd_context* ctx, crd_unit_store* store, crd_unit** u);
// Is it such a unit? For who asks the inside of a unit.
bool crdi_worker_has(const crd_unit* u);
crd_status crdi_worker_linearise(crd_unit* u, const crd_unit_port* in, int in_count,
                                 const crd_unit_port* out, int out_count, crd_linearised* result);
crd_status crdi_worker_join(crdi_proxy* u, crd_unit_store* store);
// Where a unit goes whose step takes `cost` ns (0: not known): a worker by its load, -1: one more.
int crdi_worker_choose(const int64_t* loads, int count, int most, int64_t cost);
void crdi_worker_leave(crdi_proxy* u);

// ---- cost.c ------------------------------------------------------------------------------------

#define CRDI_WORKER_LONGEST ((int64_t)1000000000000) // ns of a step that is believed

int64_t crdi_worker_recall_cost(const crdi_proxy* u); // ns, 0: not known
void crdi_worker_remember_cost(const crdi_proxy* u);

// ---- process.c ---------------------------------------------------------------------------------

// The list of FMUs that are our own, see crdi_fmu_is_own; false: there is none.
bool crdi_worker_find_own(char out[PATH_MAX]);
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

// For a push: not needed where nobody else can be on another thread. It is a barrier, which waits
// for stores into lines that the worker has: not between those and the number.
static inline void crdi_worker_lock_push(crdi_worker* w)
{
    if (w->users > 1) { crdi_worker_lock(&w->lock); }
}
static inline void crdi_worker_unlock_push(crdi_worker* w)
{
    if (w->users > 1) { crdi_worker_unlock(&w->lock); }
}
// Room for `bytes` of a seat, inputs (0) or outputs (1); under lock. SIZE_MAX: there is none.
size_t crdi_worker_seat_area(crdi_worker* w, int which, size_t bytes);
// One request of the unit into the ring; under lock, the process running. The worker is woken up.
void crdi_worker_push(crdi_proxy* u, const crdi_request* r);
// Until the last request of the unit is answered.
crd_status crdi_worker_wait(crdi_proxy* u);
// Until `a` has the number; the values are read then. false: the worker is no more. And what such
// an answer, or that of a row, says of the unit.
bool crdi_worker_await(crdi_proxy* u, crdi_answer* a, uint32_t number, const double* values);
crd_status crdi_worker_take(crdi_proxy* u);
crd_status crdi_worker_tell(crdi_proxy* u, int32_t status); // its sentence about a failure
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
// One request: what waits of the last set, and the step.
void crdi_proxy_push_step(crdi_proxy* u, double t, double h);
crd_status crdi_proxy_step(crd_unit* unit, double t, double h);
crd_status crdi_proxy_end_step(crdi_proxy* u, double t, double h);
// What nobody has read for some steps is not fetched any more.
void crdi_proxy_stop_watching(crdi_proxy* u);
// The worker has stepped the unit, and read what is watched where it says so.
static inline void crdi_proxy_note_step(crdi_proxy* u, bool fetched, bool in_row)
{
    u->epoch++;
    u->in_row = in_row;
    if (fetched) { u->fetched = u->epoch; }
    if (u->epoch % 64 < 3) { crdi_proxy_stop_watching(u); } // a step is up to three of them
}

// ---- row.c -------------------------------------------------------------------------------------

void crdi_proxy_begin_row(crd_lane* first, int count, double t, double h);
void crdi_proxy_forget_row(crdi_worker* w); // waits for one that nobody has asked for the end of
crd_advance* crdi_proxy_join(crd_unit* unit, int id, const crd_binding* in,
                             const crd_values* inputs, const crd_binding* out, crd_values* outputs,
                             crd_lane* lane);
// One of the derivatives that the worker has fetched after the step; else from now on it does.
bool crdi_proxy_find_gain(crdi_proxy* u, const crdi_channel_gain* g, double* value);
void crdi_proxy_watch_gain(crdi_proxy* u, const crdi_channel_gain* g);
// restart.c: the step that its worker did not survive, in another one; and what is needed for that.
crd_status crdi_proxy_restart(crdi_proxy* u, double t, double h);
crd_status crdi_proxy_keep(crdi_proxy* u, double t); // its state; nothing if it cannot, or need not
crd_status crdi_proxy_write(crd_unit* unit, crd_text* out); // crd_unit_state_ops
crd_status crdi_proxy_read(crd_unit* unit, const void* bytes, size_t size);
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
