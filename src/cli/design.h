// What cardan design and cardan link design share.
#pragma once
#include "cardan/analysis.h"
#include "cardan/coupling.h"
#include "cli/cli.h"

// A link has late samples now and then: so many steps more than it was designed for.
enum { CRDI_LATENCIES_MAX = CRD_LATENCY_MAX + 1, CRDI_LATENCY_SPARE = 3 };

typedef enum crdi_designer {
    CRDI_DESIGN_MOMENT,
    CRDI_DESIGN_SAVITZKY_GOLAY,
    CRDI_DESIGN_WIENER,
    CRDI_DESIGN_OPTIMAL,
    CRDI_DESIGN_BOUNDED,
    CRDI_DESIGNERS,
} crdi_designer;
extern const char* const crdi_designer_names[]; // NULL-terminated

// What is known of the signal and wanted of the algorithm.
typedef struct crdi_design_task {
    crd_goal goal;   // k is set per design
    int degree;      // moment, Savitzky-Golay
    double noise;    // Wiener: over the power of the signal
    double margin;   // bounded: |G| <= 1 + margin
    crd_band* bands; // Wiener, in x = omega dT
    int band_count;
    const crdi_recorded* recorded; // NULL: none
} crdi_design_task;

// What a loop makes of an element.
typedef struct crdi_margins {
    bool known, stable;
    double phase;   // degrees, the one nearest to 0; NaN: none
    double delay;   // s that the stable loop still survives; NaN: a network of several links
    double nearest; // min |1 + L|
} crdi_margins;

// One designed algorithm and what it is worth.
typedef struct crdi_designed {
    crdi_designer by;
    crd_linear linear; // crd_linear_clear
    crd_quality quality;
    crd_metrics metrics; // on the recording, NaN without
    double zoh;          // C of ZOH on it
    crdi_margins margins;
} crdi_designed;

// "6", "0,1,3,6", "4..9", or a time ("60 ms") that is a multiple of the step; ascending in `out`.
crd_status crdi_parse_latencies(crd_context* ctx, const char* text, double step,
                                int out[CRDI_LATENCIES_MAX], int* count);
// "0.1..10", "0.1..10 rad/s", "1..5 Hz"; one number is the upper end, the lower a hundredth of it.
crd_status crdi_parse_interval(crd_context* ctx, const char* option, const char* text,
                               crd_interval* out);

// Bands, noise and the two intervals from the spectrum of the recording; what the caller has set
// already (hi > 0, noise not NaN) stays. task->bands come from `arena`.
crd_status crdi_design_from_recording(crd_arena* arena, crdi_design_task* task);
crd_status crdi_design_make(crd_context* ctx, const crdi_design_task* task, crdi_designer by, int k,
                            crdi_designed* out);
// Margins of the loop in file `path` with `element` (a word or a description) at latency k in it.
crd_status crdi_design_margins(crd_context* ctx, const char* path, const char* element, int k,
                               crdi_margins* out);
json_t* crdi_margins_json(const crdi_margins* m); // null if not known
// An element with a table of weights over k, as its description.
crd_status crdi_design_describe(const char* name, double step, const crdi_designed* designs,
                                int count, crd_text* out);
// What is written must not be what is read.
crd_status crdi_check_output(crd_context* ctx, const char* output, const char* recording);
