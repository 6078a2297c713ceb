/// Pacing: a run that keeps the wall clock, and the account of how well it did.
///
/// Deadlines are absolute: the cycle that begins at simulated time t is due at
/// origin + (t - start) / factor, so the grid cannot drift. A pacer is a plain struct without
/// memory elsewhere; it takes the time from a crd_clock, so that tests script every lateness. Its
/// functions neither allocate, lock nor format; with the system's clock the only system call is the
/// sleep.
#pragma once
#include "cardan/master.h"
#include "shared/base.h"

typedef struct crdi_pacer {
    crd_pace_spec spec;
    crd_clock clock;
    double start, period;      ///< s of simulated time; of the clock
    int64_t origin;            ///< run: deadline of t = start, as moved so far
    int64_t first;             ///< run: that as it was at the beginning
    int64_t deadline, begin;   ///< run: of the cycle under way
    int64_t wall_offset;       ///< run: wall - now
    int64_t row;               ///< run: overruns in a row
    double row_time;           ///< run
    crd_pace_report report;    ///< run
    const volatile bool* stop; ///< true ends a wait early; NULL: nothing does
    const bool* emergency;     ///< as `stop`; another thread sets it atomically
    double time;               ///< run: simulated, of the cycle under way
    int64_t paused_at;         ///< run: since when, if it is paused
    int64_t looked;            ///< run: when the wall clock was last looked at
    int64_t usage[4];          ///< run: what the system had counted for the thread at the start
    int thread;                ///< run: that paces, as the system calls it
    bool started, paused, wall_known;
} crdi_pacer;

/// spec->factor > 0. `step`: simulated seconds between two cycles if they are equally long, else 0.
void crdi_pacer_init(crdi_pacer* p, const crd_pace_spec* spec, double start, double step,
                     crd_clock clock);
/// The grid begins: t = start is due at `origin`; 0: now. Page faults and context switches of the
/// calling thread are counted from here. Called again, it takes over a grid that somebody else has
/// (a unit that runs in real time by itself); the account goes on.
void crdi_pacer_start(crdi_pacer* p, int64_t origin);
/// Until the cycle that begins at simulated time t is due: sleeps, spins the last spec.spin.
/// CRD_OVERRUN_STRETCH and SKIP have moved the grid before. Signals do not end it, p->stop does,
/// within 50 ms: then begin < deadline, and the cycle is not counted as begun.
void crdi_pacer_wait(crdi_pacer* p, double t);
/// The work of the cycle that began at the last wait is done; the next one begins at simulated time
/// `next`, later than this one. `waited_ns` of it were spent waiting for others on purpose (a
/// remote unit's data that come at the next deadline) and are no work. `unit`: the slowest, -1.
/// false: an overrun, and the policy is to stop.
///
/// The cycle is judged by begin + busy with busy = now - begin - waited_ns; late_ns is that minus
/// the next deadline, and more than spec.slack is an overrun. So to wait for the clock until
/// shortly after the next deadline is none. A cycle that began late is one if its work did not make
/// up for it: a stall of ten periods is a row of overruns, as long as it takes to catch up. STRETCH
/// moves the grid by late_ns, SKIP to the first of its points that is not over at begin + busy.
bool crdi_pacer_done(crdi_pacer* p, double next, int64_t waited_ns, int unit);
/// The run stands still between two cycles: what passes moves the grid, and the cycle after it,
/// which begins at simulated time t, is due at its end at the earliest. A second pause, one before
/// the start, or a resume without one does nothing.
void crdi_pacer_pause(crdi_pacer* p);
void crdi_pacer_resume(crdi_pacer* p, double t);
/// What the system has counted so far for the thread that paces, asked by another one (from /proc;
/// on failure the report stays as it is). Once a cycle is done; not for the thread that paces.
void crdi_pacer_usage(const crdi_pacer* p, crd_pace_report* report);
/// Counts what the system counts for this thread; now and then, and before the report is read. A
/// system call (getrusage), so not in every cycle.
void crdi_pacer_account(crdi_pacer* p);

// ---- what real time needs of the system --------------------------------------------------------

/// Tries what `spec` wishes for the calling thread: SCHED_FIFO with its priority (threads and
/// processes that it makes later do not inherit it, but they do its CPU), one CPU, all memory
/// locked and the stack and heap touched, shallow C-states. What is refused becomes a note in
/// `report`; nothing fails, unless spec->required: then CRD_E_STATE with the first note, and all is
/// as before. After crdi_pacer_init, which clears the report.
crd_status crdi_realtime_enter(crd_context* ctx, const crd_pace_spec* spec,
                               crd_pace_report* report);
/// As before, on the thread that entered; elsewhere it does nothing. Memory is unlocked when the
/// last thread leaves.
void crdi_realtime_leave(const crd_pace_report* report);

// ---- as JSON -----------------------------------------------------------------------------------

/// The report as a JSON object, `null` if the run was not paced; durations in s. Takes no memory
/// but that of the writer's text: at most crdi_pace_json_size bytes.
void crdi_pace_put_json(crdi_json_writer* w, const char* key, const crd_pace_report* p,
                        const char* const* unit_names, int unit_count);
size_t crdi_pace_json_size(size_t longest_name);
struct crd_link_stats;
/// `null` without.
void crdi_link_put_json(crdi_json_writer* w, const char* key, const struct crd_link_stats* l);
/// The quantile in s if there are samples enough to speak of it (one beyond it), else NaN.
double crdi_histogram_claim(const crd_histogram* h, double q);
