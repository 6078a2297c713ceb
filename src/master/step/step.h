// The step of a run: the loop over ticks, and what it does to the units.
#pragma once
#include "master/plan/plan.h"

#include <setjmp.h>

typedef struct crdi_pool crdi_pool;

/// Where the run is. Foreign threads read n and time.
typedef struct crdi_clockwork {
    int64_t n;   // ticks done
    double time; // s, of that point
    double h;    // s, length of the tick under way
} crdi_clockwork;

/// How long steps are: all alike, or as long as the defects allow.
typedef struct crdi_step_rule {
    double (*begin)(crd_master* m); ///< the length of the step that begins, NULL: the grid's
    /// The step with this defect fails, has to be repeated with another length, or counts.
    crd_status (*judge)(crd_master* m, double eps, bool* again);
    double (*end)(const crd_master* m); ///< where it ends, to the last bit, NULL: on the grid
    crd_status (*next)(crd_master* m);  ///< after a step that counts, NULL: nothing
    double (*ahead)(const crd_master* m, int64_t ticks); ///< s until so many ticks from now
} crdi_step_rule;
extern const crdi_step_rule crdi_step_fixed, crdi_step_controlled; // fixed.c, control.c

/// Tick n of the grid. From the count: a sum would drift. The last one may be shorter.
static inline double crdi_grid_time(const crdi_times* t, int64_t n)
{
    return n >= t->tick_count ? t->stop : t->start + (double)n * t->tick;
}

static inline double crdi_grid_step(const crdi_times* t, int64_t n)
{
    return n + 1 == t->tick_count ? t->last_tick : t->tick;
}

/// How the run began and ended.
typedef struct crdi_life {
    crd_stage stage;
    bool initialized, started, finished; // started: the first step may come
    bool asked;                          // crd_master_initialize was called
    int halted;                          // members that were told to come to rest
    int destroyed;                       // members that are gone
    crd_end end;
    int end_member;       // -1
    bool wish;            // some unit wants the end; atomic
    bool stands;          // a page lets it wait or pause; atomic
    bool emergency;       // the watcher wants everything to stop now; atomic
    bool stopped_by_page; // a command ended it
    char message[1024];   // why it failed, ""
    int64_t wall_start;   // ns since 1970, 0: not initialised yet
    int64_t ns_wall, ns_initialization;
} crdi_life;

/// What a step needs of units that take their values, advance and give their values in one call.
typedef struct crdi_lanes {
    crd_lane* lanes;       // like plan->batch, close together
    char* room;            // with what they take to stand on a cache line
    crd_advance** advance; // like plan->batch, NULL: the long way
    int* rows;             // like plan->batch: how many from here have the same function
    bool brief;            // every step is made once, by all, on this thread
} crdi_lanes;

/// What a tick does besides a sweep, found before the first one.
typedef struct crdi_duties {
    bool cycle; // somebody steers, or the run keeps the clock
    bool step;  // steps are predicted, saved, repeated or looked at
    bool after; // somebody has something to do when a step counts
} crdi_duties;

/// The controller of a variable step.
typedef struct crdi_control {
    crd_step_options options;
    double quantum; // s; steps are multiples of it, 0: any
    double limit;   // tolerances beyond which a step is taken back, INFINITY: never
    crd_step step;
    double worst;              // defect of the step under way
    double tried_h, tried_eps; // of the last try of this step, 0: none was taken back
    int useless;               // tries in a row that promised nothing of shorter ones
    bool stuck;                // shorter tries were no better
    crd_control_report report;
} crdi_control;

/// How long the units take, and whether threads pay.
typedef struct crdi_tuning {
    int64_t at;            // tick at which crdi_tuning_look looks again
    int64_t measure_every; // ticks between two measurements, 0: not known yet
    bool measure;          // in this tick
    bool brief;            // nothing is in the way of lanes until then
    int64_t ns_clock;      // what reading the clock costs; each measured time has it in
    crdi_pool* pool;
    int threads;                       // in use
    int threads_possible;              // with the pool
    int trial;                         // 1 without threads, 2 with them, 0 decided
    int64_t trial_begin, trial_serial; // ns
} crdi_tuning;

// sweep.c
/// All phases once.
crd_status crdi_step_sweep(crd_master* m);
// tick.c: the main loop
void crdi_tick_plan(crd_master* m); ///< before the first step
/// The stop flag is set, or an emergency came: whoever waits gives up.
bool crdi_life_stops(const crd_master* m);
/// The run ends with this tick; `member` is to blame, -1: none.
void crdi_life_end(crd_master* m, crd_end end, int member);
void crdi_life_stop_by_command(crd_master* m);
void crdi_life_stood_still(crd_master* m, int64_t ns); ///< that time is none of the run's
/// Stop time, the stop flag, or a unit's wish.
void crdi_life_look_for_end(crd_master* m);
bool crdi_life_is_last(const crd_master* m);                        ///< the stop time is there
void crdi_life_end_text(const crd_master* m, char text[CRDI_TEXT]); ///< "stop time"
double crdi_time_seen(const crd_master* m); ///< simulated time, asked by any thread
// fixed.c
void crdi_step_init(crd_master* m); ///< once the plan is made
/// Simulated time of tick n. Of a controlled run: now, or the end of the step under way.
double crdi_time_of(const crd_master* m, int64_t n);
// member.c: one unit over its step
/// Inputs with their derivatives into the unit; derivatives of the outputs out of it.
crd_status crdi_member_set(crdi_member* p);
crd_status crdi_member_get_rates(crdi_member* p);
/// Inputs as they were predicted for time t, into the member's own.
void crdi_member_show_prediction(crd_master* m, const crdi_member* p, double t);
/// One member over its step that ends with the tick under way; its status says how it went.
void crdi_member_run(crd_master* m, crdi_member* p);
/// Infinite ones may be meant; the unit may be allowed to give what is not a number. The first is
/// said.
bool crdi_member_lets_pass(crd_master* m, int member, const char* output, double t, double y);
/// That step: its beginning and length.
void crdi_member_step(const crd_master* m, const crdi_member* p, double* t, double* h);
bool crdi_member_is_due(const crd_master* m, int member); ///< its step ends with this tick
/// Words the failure of a member, marks the end of the run, hands `st` back.
crd_status crdi_member_failed(crd_master* m, int member, crd_status st);
crd_status crdi_member_crashed(crd_master* m, int member, int signal_number);
/// Behind a call into a unit that m->running names: a failure is worded.
crd_status crdi_member_left(crd_master* m, int member, crd_status st);
// lanes.c
crd_status crdi_lanes_plan(crd_master* m); ///< once the units are initialised
void* crdi_lanes_room(const crd_master* m, size_t* size);
// control.c: the variable step
crd_status crdi_control_plan(crdi_plan* plan, crdi_control* c); ///< before values have places
crd_status crdi_control_start(crd_master* m);
const crd_step_options* crdi_control_options(const crd_master* m); ///< tolerance, safety ...
/// How it did so far.
crd_control_report crdi_control_get_report(const crd_master* m);
double crdi_control_floor(const crd_master* m); ///< s, the shortest step
/// Steps are planned for this length: of a controlled run that of the next one.
double crdi_step_nominal(const crd_master* m);
// rollback.c: steps that are taken back
crd_status crdi_rollback_plan(crd_master* m);
/// States and outputs of all members that can.
crd_status crdi_rollback_save(crd_master* m);
crd_status crdi_rollback_restore(crd_master* m);
void crdi_rollback_free(const crdi_member* p); ///< before its unit goes
// solvers.c: what units' own solvers miss, in some steps
crd_status crdi_solvers_plan(crdi_plan* plan, crd_master* m); ///< once the pace is known
crd_status crdi_solvers_begin(crd_master* m);                 ///< before the step
crd_status crdi_solvers_look(crd_master* m);                  ///< when the units have made it
/// RMS of what two halves instead of one step change in an output, NaN: not known.
double crdi_solvers_missed(const crd_master* m, const crdi_end* from);
void crdi_solvers_forget(crd_master* m, int member);        ///< before its unit goes
void** crdi_solvers_state(const crd_master* m, int member); ///< saved by its unit; NULL: never
// iterate.c: steps that are repeated until they fit
crd_status crdi_iteration_plan(crdi_plan* plan, crd_master* m);
crd_status crdi_iteration_step(crd_master* m); ///< one step, sweep after sweep
/// A unit that has made its step, in a later sweep; and whether this is one.
/// Where addresses stand that change in a run.
void crdi_iteration_moving(crd_master* m, crdi_note_moving* note, void* user);
void crdi_control_moving(crd_master* m, crdi_note_moving* note, void* user);
bool crdi_iteration_skips(const crd_master* m, const crdi_member* p);
bool crdi_iteration_guesses(const crd_master* m);
/// Steps are iterated, and the one under way was not given up: inputs are reconstructed.
bool crdi_iteration_fits(const crd_master* m);
const crd_iteration_report* crdi_iteration_get_report(const crd_master* m);
void crdi_iteration_free(crd_master* m);
// refresh.c: outputs with feedthrough, evaluated again with fresh inputs
crd_status crdi_refresh_plan(crdi_plan* plan, crdi_connections* connections);
/// Predictions around units whose outputs are not fresh; with the derivatives that units take.
crd_status crdi_refresh_find_stale(crdi_plan* plan, const crdi_connections* c);
crd_status crdi_refresh_start(crd_master* m);
crd_status crdi_refresh_step(crd_master* m, double t);    ///< at the end of a step
bool crdi_refresh_has(const crdi_plan* plan, int member); ///< it is among them
// tune.c: decides what is measured and how many threads run
void crdi_tuning_look(crd_master* m);
crd_status crdi_tuning_start(crd_master* m); ///< threads
void crdi_tuning_set_priority(crd_master* m, int priority);
void crdi_tuning_restart(crd_master* m); ///< the run has gone back
void crdi_tuning_free(crd_master* m);
void crdi_tuning_measure_clock(crd_master* m);
int64_t crdi_tuning_clock_cost(const crd_master* m); ///< ns of one reading
int crdi_tuning_threads(const crd_master* m);        ///< in use
int crdi_tuning_running(const crd_master* m); ///< a member whose code a worker runs, -1: none
// async.c: units with a budget, which step on threads of their own
crd_status crdi_async_check(crdi_plan* plan); ///< finds them, before anything is planned
crd_status crdi_async_plan(crd_master* m);    ///< once the units are initialised
void crdi_async_set_priority(crd_master* m, int priority); ///< of the cycle thread: theirs is lower
/// Those of the phase that are due begin their step, unless they are behind; and what has become of
/// it at the latest when the budget of the last one is over.
void crdi_async_begin(crd_master* m, const crdi_phase* phase);
crd_status crdi_async_end(crd_master* m, const crdi_phase* phase);
/// Outputs again, with the member's inputs as they are; not while it is busy.
crd_status crdi_async_ask(crd_master* m, int member);
/// The unit is in a step, or may be: nobody else calls it. The cycle thread asks. False for others.
bool crdi_async_busy(crd_master* m, int member);
void crdi_async_free(crd_master* m); ///< waits for steps under way; may be called again
/// Before the units are destroyed. false: a thread is still in its unit, and all that it may touch,
/// the master among it, has to stay.
bool crdi_async_clear(crd_master* m);
bool crdi_async_left(const crd_master* m); ///< some thread did not come back
/// Cycles that went on without the member, and whether it is late now.
int64_t crdi_async_late(const crd_master* m, int member, bool* now);
/// Steps that the member made, with or without a thread of its own. `*lasts_ns`: how long the one
/// lasts that the run did not wait for, 0: there is none.
int64_t crdi_async_steps(const crd_master* m, int member, int64_t* lasts_ns);
/// How the link to the unit does, of a unit that is busy how it did when it was asked last. false:
/// it has none. The cycle thread.
bool crdi_member_link(crd_master* m, int member, crd_link_stats* out);
// pool.c: workers that take members of a batch
crd_status crdi_pool_create(crd_master* m, int workers, crdi_pool** out);
void crdi_pool_destroy(crdi_pool* p);
void crdi_pool_set_priority(crdi_pool* p, int priority); ///< SCHED_FIFO, as far as it is allowed
int crdi_pool_workers(const crdi_pool* p);               ///< those that could be started
/// Runs the members of plan->batch[first] ... [first + count - 1] on the workers and on this
/// thread; returns when all are done. Each one's outcome is in its `status`.
void crdi_pool_run(crdi_pool* p, int first, int count);
int crdi_pool_running(const crdi_pool* p); ///< a member whose code a worker runs, -1: none
// crash.c: crashes of units; more in shared/master_crash.h
typedef struct crdi_crash_frame {
    sigjmp_buf env;
    volatile int* running; // member whose code runs, -1: our own, which is not guarded
    struct crdi_crash_frame* outer;
} crdi_crash_frame;
/// A signal in a unit's code between enter and leave jumps to env with its number, exit() with
/// CRDI_CRASH_EXIT.
void crdi_crash_enter(crdi_crash_frame* g, volatile int* running);
void crdi_crash_leave(crdi_crash_frame* g);
/// Calls f(with) and returns the signal of a crash in the unit that m->running names, 0: none. Only
/// if the options ask for it; else a crash is one of the process.
int crdi_life_catch(crd_master* m, void (*f)(void* with), void* with);
typedef struct crdi_crash_news {
    int what;     // a signal or CRDI_CRASH_...
    int member;   // in whose code it happened, -1: in none's
    bool foreign; // on a thread that is none of ours
    int seconds;  // that it hangs
} crdi_crash_news;
/// From now on a crash is not caught but posted, and its thread stays where it is. false: somebody
/// else has done that already.
bool crdi_crash_open_desk(void);
void crdi_crash_read_desk(void); ///< by the thread that reads: whose crash ends the process
void crdi_crash_close_desk(void);
void crdi_crash_post(const crdi_crash_news* news);
/// What was posted, NULL: nothing until then (monotonic clock).
const crdi_crash_news* crdi_crash_wait(int64_t until);
void crdi_crash_wake(void);
/// This process is a copy that a unit made with fork(). It must not go on with the run.
extern volatile bool crdi_crash_child;
extern int crdi_crash_parent; ///< the member that made it
_Noreturn void crdi_crash_leave_child(const crd_master* m);
static inline void crdi_crash_check_child(const crd_master* m)
{
    if (__builtin_expect(crdi_crash_child, 0)) { crdi_crash_leave_child(m); }
}
// sentinel.c: a run whose process may end with its sentence (crd_master_options.last_words)
crd_status crdi_sentinel_start(crd_master* m); ///< nothing if the options do not ask for it
void crdi_sentinel_stop(crd_master* m);
/// Puts back what a member has changed in the process, with a warning; -1: one of them.
void crdi_sentinel_check(crd_master* m, int member);
_Noreturn void crdi_sentinel_end_late(int number); ///< a unit's thread crashed after the run
_Noreturn void crdi_sentinel_give_up(void);        ///< says what is known and ends the process
// start/: values consistent at the start
crd_status crdi_start_solve(crd_master* m);
crd_status crdi_start_orders(crd_master* m); ///< of derivatives, as units turned out to take them
crd_status crdi_start_predictions(crd_master* m); ///< their first samples
