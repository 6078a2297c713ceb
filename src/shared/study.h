/// Studies: many runs of one system, and what is kept of each. docs/how-to/study.md.
///
/// One SQLite file is the study. It has the design (a row for each run, with the values that make
/// it), how far every run is, what was kept, and the hashes of the files that ran. A row is all
/// that a run depends on: seeds come from its values, so that it does not matter who runs it.
///
/// Three parts share the work. The store claims open rows for an owner and puts results into them,
/// each in one transaction. A worker makes one run of one row; it knows no store. An executor takes
/// rows from the store, hands them to workers wherever they are, and puts back what comes. What an
/// owner has claimed is open again when its lease ends, or at once when its process, on this host,
/// is gone: killed at any moment, nothing is lost, and nobody's results count twice.
#pragma once
#include "shared/system_study.h"

typedef struct crdi_study crdi_study; ///< opaque

typedef enum crdi_run_state {
    CRDI_RUN_OPEN,
    CRDI_RUN_CLAIMED,
    CRDI_RUN_DONE,
    CRDI_RUN_LIMIT,    ///< done, but a limit of the study is not kept
    CRDI_RUN_FAILED,   ///< a unit or the description failed
    CRDI_RUN_DIVERGED, ///< the guard ended it, or something kept is no number
    CRDI_RUN_CRASHED,  ///< with its worker
    CRDI_RUN_HUNG,     ///< longer than `timeout`
    CRDI_RUN_STATES
} crdi_run_state;
extern const char* const crdi_run_states[]; ///< "open", ... NULL

/// One value of a factor.
typedef struct crdi_study_value {
    double x;         ///< of a numeric factor, in its unit
    const char* text; ///< of the others
} crdi_study_value;

enum { CRDI_STUDY_REASON = 320 };
/// A run: what makes it, and what came of it.
typedef struct crdi_study_run {
    int64_t id; ///< from 1; with Morris and Saltelli the place in the design
    uint64_t seed;
    crdi_study_value* values; ///< (factor_count)
    crdi_run_state state;
    double seconds; ///< that it took
    double* kept;   ///< (kept_count); NaN: it got no such number
    char reason[CRDI_STUDY_REASON];
    int part; ///< the executor's own
} crdi_study_run;

// ---- design ------------------------------------------------------------------------------------

/// How many runs there are, before conditions exclude some; -1: more than 10^12.
int64_t crdi_points_count(const crdi_study_file* f);
typedef struct crdi_points crdi_points; ///< a design, point by point
crd_status crdi_points_create(crd_context* ctx, const crdi_study_file* f, crdi_points** out);
void crdi_points_destroy(crdi_points* d);
/// Point `index` from 0 into `values` (factor_count); `*key` is what it is known by. false: a
/// condition excludes it.
bool crdi_points_point(crdi_points* d, int64_t index, crdi_study_value* values, uint64_t* key);
/// The same of any values, at a place of the sample and of its repetitions.
uint64_t crdi_points_key(const crdi_study_file* f, const crdi_study_value* values, int64_t sample,
                         int64_t again);
/// Whether no condition excludes them.
bool crdi_points_allowed(crdi_points* d, const crdi_study_value* values);
/// The seed of all that is random in a run.
uint64_t crdi_points_seed(const crdi_study_file* f, uint64_t key);
/// Names as expressions know them, "motor_k" for "motor.k": factors, then what is kept.
const char* const* crdi_study_names(crd_arena* arena, const crdi_study_file* f, bool kept);
/// Coordinate of point `index` of Sobol's sequence in (0, 1), shifted by the bits of `shift`; `v`
/// are the direction numbers of its dimension, 0 .. CRDI_SOBOL_MOST - 1.
enum { CRDI_SOBOL_MOST = 21 };
void crdi_sobol_directions(int dimension, uint32_t v[32]);
double crdi_sobol(const uint32_t v[32], uint32_t index, uint32_t shift);
/// What a uniform number in (0, 1) is in the distribution of a factor; `cut` are the probabilities
/// that min and max of it leave out below.
void crdi_law_cut(const crdi_study_factor* f, double cut[2]);
double crdi_law_quantile(const crdi_study_factor* f, const double cut[2], double u);
double crdi_normal_quantile(double p);

// ---- worker ------------------------------------------------------------------------------------

typedef struct crdi_study_worker crdi_study_worker; ///< opaque
/// Reads the system once; its FMUs stay open from run to run. `f` is borrowed.
crd_status crdi_study_worker_create(crd_context* ctx, const crdi_study_file* f,
                                    crdi_study_worker** out);
void crdi_study_worker_destroy(crdi_study_worker* w);
/// The run of `r->values`, into the rest of it. Never fails: that is a state, too. `tainted`: a
/// unit crashed, or code of an FMU stays loaded with what it remembers, and this process should
/// make no further run.
void crdi_study_worker_run(crdi_study_worker* w, crdi_study_run* r, bool* tainted);
/// The same, recorded into a file (MF4, CSV, MAT) with the variables of `patterns`.
crd_status crdi_study_worker_record(crdi_study_worker* w, crdi_study_run* r, const char* path,
                                    const char* const* patterns, int count);
/// What a run of the first point consists of, as crd_master_describe_run says it. Also checks that
/// all names exist. Appended to `out`.
crd_status crdi_study_worker_describe(crdi_study_worker* w, crdi_study_run* r, crd_text* out);

// ---- store -------------------------------------------------------------------------------------

typedef struct crdi_study_counts {
    int64_t total, by_state[CRDI_RUN_STATES];
    double seconds; ///< mean of those that ended by themselves; NaN: none
} crdi_study_counts;

/// The study of a file that is there, or NULL in `*out` if there is none (CRD_OK). What the
/// database says is what counts: the study file itself may be gone.
crd_status crdi_study_open(crd_context* ctx, const char* database, crdi_study** out);
/// A new one, or one whose file `f` has changed since: points that are new are added. `describe` is
/// what crdi_study_worker_describe said. CRD_E_DIFFERENT: what ran before is not what would run
/// now; the sentence names it. `*added` points.
crd_status crdi_study_sync(crd_context* ctx, const char* database, const crdi_study_file* f,
                           const char* describe, crdi_study** out, int64_t* added);
void crdi_study_close(crdi_study* s);
const crdi_study_file* crdi_study_get_file(const crdi_study* s);
const char* crdi_study_database(const crdi_study* s);
crd_status crdi_study_count(crdi_study* s, crdi_study_counts* out);

/// Up to `most` open runs become this owner's; fewer than asked for means that there are no more
/// now. They live in `arena`.
crd_status crdi_study_claim(crdi_study* s, int most, crd_arena* arena, crdi_study_run** out,
                            int* count);
/// Results of runs that this owner has claimed; those that it has lost since are dropped. Renews
/// the lease of the rest.
crd_status crdi_study_put(crdi_study* s, const crdi_study_run* const* runs, int count);
/// Results of whoever: only of runs that have none yet. For those who ran a copy of a part.
crd_status crdi_study_merge(crdi_study* s, const crdi_study_run* const* runs, int count);
/// Rows of points that are asked for, where there is no design: those that are there, else new ones
/// that are open.
crd_status crdi_study_ask(crdi_study* s, const crdi_study_value* const* points, int count,
                          int64_t* ids);
/// What is claimed and not put is open again.
crd_status crdi_study_release(crdi_study* s);
/// Runs that other owners have: how many, once those that are gone have been buried, whose runs are
/// open again.
crd_status crdi_study_count_others(crdi_study* s, int64_t* count);
/// Runs of a state are open again: `cardan study run --again failed`.
crd_status crdi_study_reopen(crdi_study* s, crdi_run_state state, int64_t* count);

/// Runs in the order of a query, all in memory: columns of numbers. `where` is SQL over the columns
/// or NULL, `order` a column or NULL ("-name": the largest first), `limit` 0: all.
typedef struct crdi_study_rows {
    crd_arena arena;
    int64_t count;
    int columns; ///< factors, then what is kept
    const char** names;
    const int64_t* ids;
    const uint64_t* seeds;
    const uint8_t* states;
    const double* seconds;
    const double** numbers;    ///< (columns)(count); NaN where there is none
    const char* const** texts; ///< (columns); NULL: numbers
    const char** reasons;      ///< (count); "" none
} crdi_study_rows;
crd_status crdi_study_select(crdi_study* s, const char* where, const char* order, int64_t limit,
                             crdi_study_rows* out);
void crdi_study_rows_clear(crdi_study_rows* r);
int crdi_study_find_column(const crdi_study_rows* r, const char* name); ///< -1

// ---- executors ---------------------------------------------------------------------------------

typedef struct crdi_study_job {
    crdi_study* study;
    int workers;               ///< 0: as many as there are cores
    int chunk;                 ///< runs that a worker is given at once; 0: chosen by their time
    const volatile bool* stop; ///< true: no more runs are begun; NULL
    void (*progress)(void* user, int64_t done, int64_t of, int64_t failed, double rate);
    void (*say)(void* user, const char* line); ///< what an executor has to show
    void* user;
    const char* submit; ///< options for a scheduler; NULL
    bool dry_run;       ///< slurm: only say what would be submitted
    /// When nothing is left to do: whether there are more open runs now. An executor may end
    /// without asking. NULL: there are none.
    crd_status (*more)(void* user, bool* open);
    void* more_user;
} crdi_study_job;

/// One way to get all open runs done. What it has put stays when it fails or is killed.
typedef struct crdi_study_executor {
    const char *name, *about;
    crd_status (*run)(crd_context* ctx, const crdi_study_job* job);
    bool waits; ///< crdi_study_run_all stays until all runs are made, also those of other commands
    /// Before the study is opened; NULL: nothing to do. `*ours` false: this process was one of many
    /// workers, and is done; otherwise `end` comes last.
    crd_status (*begin)(crd_context* ctx, bool* ours);
    void (*end)(void);
} crdi_study_executor;
/// Up to the first without name; the first is the default.
extern const crdi_study_executor crdi_study_executors[];

/// All runs, also those that another command had when it was killed meanwhile.
crd_status crdi_study_run_all(crd_context* ctx, const crdi_study_executor* e,
                              const crdi_study_job* job);
/// The run of `r->values` into the rest of it, in a process of its own: one that crashes or hangs
/// is told. Twice if it ends by itself: the time is that of the second, when everything is open.
crd_status crdi_study_try_run(crd_context* ctx, const crdi_study_file* f, crdi_study_run* r);
/// A chunk, which `list` and `slurm` write and which says all that another machine has to know: its
/// runs are made here, with results beside it. "-": from standard input, results on standard
/// output. CRD_E_DIFFERENT: what would run here is not what the study began with. `*made` runs, and
/// how many there are in it.
crd_status crdi_study_work(crd_context* ctx, const char* chunk, const crdi_study_job* job,
                           int64_t* made, int64_t* of);
/// What came of chunks that lie in the folder beside the study, into it.
crd_status crdi_study_collect(crd_context* ctx, crdi_study* s);

// ---- optimisation ------------------------------------------------------------------------------

typedef enum crdi_search_end {
    CRDI_SEARCH_BUDGET,
    CRDI_SEARCH_CONVERGED,
    CRDI_SEARCH_BEHIND, ///< given up for better ones
    CRDI_SEARCH_FAILED, ///< no point that it tried to begin from gave a number
} crdi_search_end;
extern const char* const crdi_search_ends[]; ///< "runs used up", ... NULL

/// One search, from one point of the design.
typedef struct crdi_search {
    int64_t run; ///< its best; 0: none
    double value;
    bool good;  ///< within all limits
    int points; ///< that it asked for
    crdi_search_end end;
} crdi_search;

typedef struct crdi_optimum {
    crd_arena arena;
    int64_t run; ///< 0: none keeps all limits
    double value;
    int search;
    int64_t points; ///< that were asked for; fewer runs, where some were the same
    const crdi_search* searches;
    int count;
} crdi_optimum;

/// Values of the factors for the least of `minimise` within the limits, by runs of the executor.
/// Depends on the study's file alone, not on who makes the runs or how often it was interrupted.
/// CRD_E_RANGE: nothing is to be looked for, or with too few runs. With `job->stop` what there is.
crd_status crdi_study_optimise(crd_context* ctx, const crdi_study_executor* executor,
                               const crdi_study_job* job, crdi_optimum* out);
void crdi_optimum_clear(crdi_optimum* o);

/// How runs travel between processes: bytes of one point, and of its result. Encode gives the
/// length, at most `room`, 0: it does not fit; decode false: no such thing. `r->values` and
/// `r->kept` have room; texts point into `bytes`.
size_t crdi_study_encode_point(const crdi_study_file* f, const crdi_study_run* r, char* bytes,
                               size_t room);
bool crdi_study_decode_point(const crdi_study_file* f, crdi_study_run* r, const char* bytes,
                             size_t length);
size_t crdi_study_encode_result(const crdi_study_file* f, const crdi_study_run* r, char* bytes,
                                size_t room);
bool crdi_study_decode_result(const crdi_study_file* f, crdi_study_run* r, const char* bytes,
                              size_t length);

// ---- answers -----------------------------------------------------------------------------------

typedef struct crdi_study_summary {
    int64_t count;                               ///< finite numbers
    double mean, deviation, mean_low, mean_high; ///< 95 % by Student's t
    double min, max;
    double quantiles[5];            ///< 5, 25, 50, 75, 95 %
    double median_low, median_high; ///< 95 % by order statistics
} crdi_study_summary;
crd_status crdi_study_summarise(crd_context* ctx, const double* x, int64_t count,
                                crdi_study_summary* s);
double crdi_student_quantile(double p, double n); ///< n degrees of freedom

/// Of one factor on one number; intervals of 95 %.
typedef struct crdi_study_effect {
    double first, first_low, first_high; ///< Sobol: first order. Morris: mu
    double total, total_low, total_high; ///< Sobol: total. Morris: mu*
    double sigma;                        ///< Morris
} crdi_study_effect;
/// `y` is that of all runs of a Saltelli design in its order, (k + 2) for each of `samples`;
/// those with a NaN are left out as a whole. Bootstrap with `seed`.
crd_status crdi_study_sobol(crd_context* ctx, const double* y, int64_t samples, int k,
                            uint64_t seed, crdi_study_effect* out);
/// `u` are the places of the factors in (0, 1), (k + 1) runs of each trajectory.
crd_status crdi_study_morris(crd_context* ctx, const double* y, const double* const* u,
                             int64_t trajectories, int k, crdi_study_effect* out);
/// Places in (0, 1) of the factors of run `index` (from 0) of a sampled design.
void crdi_points_unit(crdi_points* d, int64_t index, double* u);
