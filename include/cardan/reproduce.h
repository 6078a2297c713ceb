/// Published tables and figures, computed anew: what was printed, what comes out here, and whether
/// the two agree.
#pragma once
#include "cardan/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// When a number is right: |ours - reference| <= tolerance, or on one side of the reference.
typedef enum crd_claim_rule {
    CRD_CLAIM_NEAR,
    CRD_CLAIM_AT_MOST,
    CRD_CLAIM_AT_LEAST,
    CRD_CLAIM_SHOWN ///< not judged: times, which are those of this machine
} crd_claim_rule;

/// One number of a paper. NaN: not published, not known.
typedef struct crd_claim {
    const char* id;   ///< "table1.eros.k6.phase"
    const char* what; ///< "EROS, k = 6: phase limit, % of Nyquist"
    double published; ///< as printed
    double ours;      ///< computed now
    double reference; ///< from an independent computation, to more digits
    double tolerance; ///< of ours against the reference, or published if there is none
    bool relative;    ///< the tolerance is a part of the reference
    crd_claim_rule rule;
    bool ok;
    const char* remark; ///< why published and ours differ, ""
} crd_claim;

/// What the columns behind the first are.
typedef enum crd_figure_kind {
    CRD_FIGURE_LINES,  ///< curves over the first column
    CRD_FIGURE_BODE,   ///< gain and phase in turn, over a frequency
    CRD_FIGURE_CURVES, ///< abscissa and ordinate in turn, the first column being a parameter
    CRD_FIGURE_BARS,   ///< as lines, but each value is a bar
} crd_figure_kind;

/// Data of a figure: columns of equal length.
typedef struct crd_figure {
    const char* id; ///< "fig3.bode"
    const char* title;
    int columns;
    const char* const* names; ///< (columns) "omega [rad/s]"
    int64_t rows;
    const double* values; ///< (rows x columns)
    crd_figure_kind kind;
    bool log_x, log_y; ///< of lines: how they are best drawn
} crd_figure;

typedef struct crd_reproduction {
    crd_context* ctx;
    crdi_arena arena;  ///< all of it
    const char* paper; ///< "Baumann 2024: title, journal"
    bool quick;        ///< as asked for
    crd_claim* claims;
    int claim_count;
    size_t claim_capacity;
    crd_figure* figures;
    int figure_count;
    size_t figure_capacity;
} crd_reproduction;

/// Names of papers that can be reproduced, NULL-terminated.
CRD_API const char* const* crd_reproduce_papers(void);

typedef struct crd_reproduce_options {
    bool quick; ///< nothing is timed, and runs of very many steps are left out with their rows
} crd_reproduce_options;

/// CRD_E_NOT_FOUND: no such paper, with the nearest name. `opt` may be NULL.
CRD_API crd_status crd_reproduce_with(crd_context* ctx, const char* paper,
                                      const crd_reproduce_options* opt, crd_reproduction** out);
CRD_API crd_status crd_reproduce(crd_context* ctx, const char* paper, crd_reproduction** out);
CRD_API void crd_reproduction_destroy(crd_reproduction* r);

#ifdef __cplusplus
}
#endif
