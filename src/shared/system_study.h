/// Study files: which runs of a system there are to be, and what is kept of each.
/// docs/how-to/study.md. Read by the same tables as descriptions.
#pragma once
#include "shared/system.h"

/// Where the values of a factor come from.
typedef enum crdi_law {
    CRDI_LAW_LIST, ///< `texts`, one after the other: part of the grid
    CRDI_LAW_UNIFORM,
    CRDI_LAW_LOGUNIFORM,
    CRDI_LAW_NORMAL,     ///< a mean, b standard deviation
    CRDI_LAW_LOGNORMAL,  ///< a median, b standard deviation of the logarithm
    CRDI_LAW_TRIANGULAR, ///< a least, b most likely, c largest
} crdi_law;

/// What varies: a variable of a unit ("motor.k"), a key of the run ("run.step"), or a name that
/// stands in `change` as $name.
typedef struct crdi_study_factor {
    const char* name;
    crdi_law law;
    int count;                ///< LIST
    const char* const* texts; ///< LIST: as they are written
    double a, b, c;           ///< the others, in `unit`
    double low, high;         ///< what is drawn lies between, -INFINITY, INFINITY
    const char* unit;         ///< of a, b, c; of a list of numbers; "": none
    bool numeric;             ///< all values are numbers in `unit`
    bool whole;               ///< rounded
    int line;
} crdi_study_factor;

typedef struct crdi_study_text {
    const char *name, *text; ///< name "" where there is none
    int line;
} crdi_study_text;

typedef enum crdi_sampling {
    CRDI_SAMPLE_RANDOM,
    CRDI_SAMPLE_LATIN,
    CRDI_SAMPLE_SOBOL,
    CRDI_SAMPLE_MORRIS,   ///< `count` trajectories of one step per factor
    CRDI_SAMPLE_SALTELLI, ///< two Sobol samples of `count` points, and their mixtures
} crdi_sampling;
extern const char* const crdi_samplings[]; ///< "random", ... NULL

/// How the least is looked for (NLopt).
typedef enum crdi_optimiser {
    CRDI_OPTIMISER_COBYLA, ///< linear models in a simplex, with limits (Powell 1994)
    CRDI_OPTIMISER_BOBYQA, ///< quadratic models (Powell 2009)
    CRDI_OPTIMISER_SBPLX,  ///< Nelder and Mead in subspaces (Rowan 1990)
    CRDI_OPTIMISER_DIRECT, ///< rectangles that are halved, everywhere (Gablonsky 2001)
    CRDI_OPTIMISER_ISRES,  ///< evolution, everywhere, with limits (Runarsson 2005)
} crdi_optimiser;
extern const char* const crdi_optimisers[]; ///< "cobyla", ... NULL

typedef struct crdi_study_file {
    const char *file, *title, *system; ///< `system` as a path from here
    const char* state; ///< a saved state that all runs go on from; NULL: from the start
    int state_line;
    const crdi_study_factor* factors;
    int factor_count;
    const crdi_study_text *kept, *limits, *exclude;
    int kept_count, limit_count, exclude_count;
    crdi_sampling method;
    int count, levels; ///< samples; levels of Morris
    uint64_t seed;
    const char* change; ///< JSON in the lines where it stands, with $name; NULL: none
    int change_line;
    int repeat;           ///< runs of each point with seeds of their own
    double timeout;       ///< s that a run may take
    bool isolate;         ///< FMUs in worker processes of their own, as the system says
    const char* minimise; ///< of `kept`: points are asked for, not designed; NULL: a design
    int minimise_line, minimise_runs;
    crdi_optimiser optimiser;
    double tolerance; ///< of the range of each factor
} crdi_study_file;

/// All of it lives in `arena`. `text` NULL: the file is read.
crd_status crdi_study_file_read(crd_context* ctx, const char* text, size_t length, const char* path,
                                crd_arena* arena, crdi_study_file* out);
/// "12.5 kg" into the number and where its unit stands; false: it is no number.
bool crdi_study_number(const char* text, double* x, const char** unit);
