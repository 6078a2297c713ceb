/// Published tables and figures, computed anew: what was printed, what comes out here, and whether
/// the two agree.
#pragma once
#include "shared/base.h"

/// When a number is right: |ours - reference| <= tolerance, or on one side of the reference.
typedef enum crdi_claim_rule {
    CRDI_CLAIM_NEAR,
    CRDI_CLAIM_AT_MOST,
    CRDI_CLAIM_AT_LEAST,
    CRDI_CLAIM_SHOWN ///< not judged: times, which are those of this machine
} crdi_claim_rule;

/// What became of a printed value, which is another question than whether ours is right.
typedef enum crdi_print {
    CRDI_PRINT_NONE,        ///< nothing was printed
    CRDI_PRINT_AGREES,      ///< within 5 %, or half a unit of the last printed digit
    CRDI_PRINT_REFUTED,     ///< the paper's own formulas or data give another value
    CRDI_PRINT_INCOMPARABLE ///< ours is not the same thing
} crdi_print;

/// One number of a paper. NaN: not published, not known.
typedef struct crdi_claim {
    const char* id;   ///< "table1.eros.k6.phase"
    const char* what; ///< "EROS, k = 6: phase limit, % of Nyquist"
    double published; ///< as printed
    double ours;      ///< computed now
    double reference; ///< from an independent computation, to more digits
    double tolerance; ///< of ours against the reference, or published if there is none
    bool relative;    ///< the tolerance is a part of the reference
    crdi_claim_rule rule;
    bool ok;
    const char* remark; ///< about the row, ""
    crdi_print print;
    const char* why; ///< it is refuted or cannot be compared; "" where it agrees
} crdi_claim;

/// What the columns behind the first are.
typedef enum crdi_figure_kind {
    CRDI_FIGURE_LINES,  ///< curves over the first column
    CRDI_FIGURE_BODE,   ///< gain and phase in turn, over a frequency
    CRDI_FIGURE_CURVES, ///< abscissa and ordinate in turn, the first column being a parameter
    CRDI_FIGURE_BARS,   ///< as lines, but each value is a bar
} crdi_figure_kind;

/// Data of a figure: columns of equal length.
typedef struct crdi_figure {
    const char* id; ///< "fig3.bode"
    const char* title;
    int columns;
    const char* const* names; ///< (columns) "omega [rad/s]"
    int64_t rows;
    const double* values; ///< (rows x columns)
    crdi_figure_kind kind;
    bool log_x, log_y; ///< of lines: how they are best drawn
} crdi_figure;

typedef struct crdi_reproduction {
    crd_context* ctx;
    crd_arena arena;   ///< all of it
    const char* name;  ///< of crdi_papers
    const char* paper; ///< "Baumann 2024: title, journal"
    bool quick;        ///< as asked for, and so are the next five
    bool times, whole;
    const char *cycle, *command;
    const volatile bool* stop;
    crdi_claim* claims;
    int claim_count;
    size_t claim_capacity;
    crdi_figure* figures;
    int figure_count;
    size_t figure_capacity;
} crdi_reproduction;

/// Names of papers that can be reproduced, NULL-terminated.
extern const char* const crdi_papers[];

typedef struct crdi_reproduce_options {
    bool quick; ///< nothing is timed, and runs of very many steps are left out with their rows
    bool times; ///< of rodriguez2021-ch3 and -ch4: what boards needed, too, and nothing else
    // rautenberg2023
    bool whole;                ///< benches drive the whole cycle, not 120 s of it
    const char* cycle;         ///< recording of the WLTC; NULL: build/cycles/wltc3b.csv
    const char* command;       ///< the executable `cardan`, whose benches it starts
    const volatile bool* stop; ///< ends a drive; NULL: nobody can
} crdi_reproduce_options;

/// CRD_E_NOT_FOUND: no such paper, with the nearest name. `opt` may be NULL.
crd_status crdi_reproduce_with(crd_context* ctx, const char* name,
                               const crdi_reproduce_options* opt, crdi_reproduction** out);
crd_status crdi_reproduce(crd_context* ctx, const char* name, crdi_reproduction** out);
void crdi_reproduction_destroy(crdi_reproduction* r);
