/// Pacing: a run that keeps the wall clock, and the account of how well it did.
///
/// Deadlines are absolute: the cycle that begins at simulated time t is due at
/// origin + (t - start) / factor, so the grid cannot drift. A pacer is a plain struct without
/// memory elsewhere; it takes the time from a crd_clock, so that tests script every lateness. Its
/// functions neither allocate, lock nor format; with the system's clock the only system call is the
/// sleep.
#pragma once
#include "cardan/base.h"
#include "cardan/system.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- clocks ------------------------------------------------------------------------------------

typedef struct crd_clock {
    int64_t (*now)(void* user); ///< ns, monotonic
    /// Returns at `ns` or later; a signal handler may make it return earlier.
    void (*sleep_until)(void* user, int64_t ns);
    /// ns since 1970; an administrator may set it. NULL: nobody asks whether it was set.
    int64_t (*wall)(void* user);
    void* user;
} crd_clock;

CRD_API crd_clock crd_clock_system(void); ///< CLOCK_MONOTONIC, CLOCK_REALTIME

// ---- histograms --------------------------------------------------------------------------------

/// Durations in ns with a resolution of 1/16 of themselves, up to 2^40 ns (18 minutes; longer ones
/// count there). Plain data: copy it, add it up.
enum { CRD_HISTOGRAM_SUB = 16, CRD_HISTOGRAM_BUCKETS = 592 };
typedef struct crd_histogram {
    int64_t count, min, max; ///< min, max exact; 0 while count is 0
    int64_t sum;             ///< stays at INT64_MAX if it gets there
    int64_t buckets[CRD_HISTOGRAM_BUCKETS];
} crd_histogram;

CRD_API void crd_histogram_add(crd_histogram* h, int64_t ns); ///< negative: 0
CRD_API void crd_histogram_merge(crd_histogram* h, const crd_histogram* other);
/// Smallest duration, up to the resolution, that a part q (0 .. 1) of all does not exceed: the
/// longest of its bucket, not above max; q = 0 is min, 1 is max. 0 if empty.
CRD_API int64_t crd_histogram_quantile(const crd_histogram* h, double q);
CRD_API int crd_histogram_bucket(int64_t ns); ///< that counts it
/// Its least duration; of BUCKETS: the end of the last.
CRD_API int64_t crd_histogram_edge(int bucket);

// ---- the pacer ---------------------------------------------------------------------------------

/// A cycle whose work was not done when the next one was due (plus `slack`): crd_pacer_done.
typedef struct crd_overrun_info {
    int64_t cycle;
    double time;     ///< simulated, s, of its beginning
    int64_t late_ns; ///< how long after the next deadline its work was done
    int64_t busy_ns; ///< time of its work
    int unit;        ///< that took longest in it, -1: not known
    int behind;      ///< overruns in a row before it that were not caught up with
} crd_overrun_info;

enum { CRD_PACE_KEPT = 128, CRD_PACE_NOTES = 8, CRD_PACE_NOTE_BYTES = 240 };

typedef struct crd_pace_report {
    bool on;
    double factor;          ///< simulated seconds per second
    double period;          ///< s on the clock between two cycles, 0: they vary
    int64_t cycles;         ///< begun and done
    crd_histogram lateness; ///< ns from its deadline to the beginning of a cycle; every one begun
    crd_histogram busy;     ///< ns of work of a cycle; every one done
    int64_t overruns;
    /// The first CRD_PACE_KEPT / 2 overruns and behind them, once there are more, the latest ones
    /// of the rest by late_ns; by cycle.
    crd_overrun_info kept[CRD_PACE_KEPT];
    int kept_count;
    crd_overrun_info worst; ///< largest late_ns; valid if overruns > 0
    int64_t burst;          ///< longest row of overruns
    double burst_time;      ///< simulated, s, of its first cycle
    int64_t skipped;        ///< grid points that nothing began at (CRD_OVERRUN_SKIP)
    int64_t moved_ns;       ///< what stretching and skipping moved the grid by
    int64_t paused_ns;      ///< what pauses moved it by
    int64_t drift_ns;       ///< newest deadline - (origin + moved + paused + (t - start)/factor): 0
    int64_t minor_faults, major_faults; ///< of the cycle thread in the loop
    int64_t voluntary, involuntary;     ///< its context switches
    /// How often the wall clock was set by 1 ms or more, or the machine slept, as seen when there
    /// was time to look.
    int64_t clock_steps;
    int64_t clock_step_ns;            ///< sum
    bool fifo, locked, pinned, awake; ///< got: SCHED_FIFO, locked memory, a CPU, shallow C-states
    int priority, cpu;                ///< of it; -1: none
    /// What was wished and not allowed, each with the line that would allow it.
    char notes[CRD_PACE_NOTES][CRD_PACE_NOTE_BYTES];
    int note_count;
} crd_pace_report;

typedef struct crd_pacer {
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
} crd_pacer;

/// spec->factor > 0. `step`: simulated seconds between two cycles if they are equally long, else 0.
CRD_API void crd_pacer_init(crd_pacer* p, const crd_pace_spec* spec, double start, double step,
                            crd_clock clock);
/// The grid begins: t = start is due at `origin`; 0: now. Page faults and context switches of the
/// calling thread are counted from here. Called again, it takes over a grid that somebody else has
/// (a unit that runs in real time by itself); the account goes on.
CRD_API void crd_pacer_start(crd_pacer* p, int64_t origin);
/// Until the cycle that begins at simulated time t is due: sleeps, spins the last spec.spin.
/// CRD_OVERRUN_STRETCH and SKIP have moved the grid before. Signals do not end it, p->stop does,
/// within 50 ms: then begin < deadline, and the cycle is not counted as begun.
CRD_API void crd_pacer_wait(crd_pacer* p, double t);
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
CRD_API bool crd_pacer_done(crd_pacer* p, double next, int64_t waited_ns, int unit);
/// The run stands still between two cycles: what passes moves the grid, and the cycle after it,
/// which begins at simulated time t, is due at its end at the earliest. A second pause, one before
/// the start, or a resume without one does nothing.
CRD_API void crd_pacer_pause(crd_pacer* p);
CRD_API void crd_pacer_resume(crd_pacer* p, double t);
/// What the system has counted so far for the thread that paces, asked by another one (from /proc;
/// on failure the report stays as it is). Once a cycle is done; not for the thread that paces.
CRD_API void crd_pacer_usage(const crd_pacer* p, crd_pace_report* report);
/// Counts what the system counts for this thread; now and then, and before the report is read. A
/// system call (getrusage), so not in every cycle.
CRD_API void crd_pacer_account(crd_pacer* p);

// ---- what real time needs of the system --------------------------------------------------------

/// Tries what `spec` wishes for the calling thread: SCHED_FIFO with its priority (threads and
/// processes that it makes later do not inherit it, but they do its CPU), one CPU, all memory
/// locked and the stack and heap touched, shallow C-states. What is refused becomes a note in
/// `report`; nothing fails, unless spec->required: then CRD_E_STATE with the first note, and all is
/// as before. After crd_pacer_init, which clears the report.
CRD_API crd_status crd_realtime_enter(crd_context* ctx, const crd_pace_spec* spec,
                                      crd_pace_report* report);
/// As before, on the thread that entered; elsewhere it does nothing. Memory is unlocked when the
/// last thread leaves.
CRD_API void crd_realtime_leave(const crd_pace_report* report);

// ---- shared inside the library -----------------------------------------------------------------

/// The report as a JSON object, `null` if the run was not paced; durations in s. Appended to `out`,
/// whose memory is all that it takes: at most crdi_pace_json_size bytes.
CRD_API crd_status crdi_pace_to_json(const crd_pace_report* p, const char* const* unit_names,
                                     int unit_count, crdi_text* out);
CRD_API size_t crdi_pace_json_size(size_t longest_name);
struct crd_link_stats;
CRD_API crd_status crdi_link_to_json(const struct crd_link_stats* l, crdi_text* out);
/// The quantile in s if there are samples enough to speak of it (one beyond it), else NaN.
CRD_API double crdi_histogram_claim(const crd_histogram* h, double q);

#ifdef __cplusplus
}
#endif
