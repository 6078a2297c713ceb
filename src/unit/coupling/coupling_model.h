// The inside of the coupling model: what it is, and one instance of it.
#pragma once
#include "cardan/coupling.h"
#include "cardan/learn.h"
#include "cardan/pair.h"
#include "cardan/unit.h"
#include "shared/base.h"

enum {
    CRDI_COUPLING_ADDRESS = 256, // bytes of the learning server's address
    CRDI_COUPLING_COUNTERS = 10,
    CRDI_COUPLING_SIGNALS = 1000, // at most
};

// A counter of the element that is an output.
typedef struct crdi_coupling_counter {
    const char *name, *description;
    size_t offset; // in crd_coupling_counts
} crdi_coupling_counter;
extern const crdi_coupling_counter crdi_coupling_counters[CRDI_COUPLING_COUNTERS];

// Where the arrays of an instance stand, n elements each.
typedef struct crdi_coupling_places {
    size_t u; // and the commands behind it
    size_t y, slopes, k, jump, active, counters, tried_u;
    size_t live, backup; // the elements, and how they were before a sample that is only tried
    size_t room;         // bytes of one element
} crdi_coupling_places;

typedef struct crdi_coupling_model {
    crd_model base; // first, and found by way of its `user`
    crd_context* ctx;
    bool owns_context;
    crd_arena arena;      // the table
    crd_element* element; // NULL: a side of a pair
    crd_pair_side pair;   // which
    int n;                // signals
    int commands;         // values that act at the partner
    crdi_coupling_places at;
} crdi_coupling_model;

// When a sample was taken, and its number; what a sample is known by.
typedef struct crdi_coupling_sample {
    double stamp;
    int64_t sequence;
} crdi_coupling_sample;

// What of the incoming signal has been used.
typedef struct crdi_coupling_marks {
    int64_t step;                // macro step since the start whose sample was taken, -1: none
    int64_t given;               // ... whose commands were
    bool stamped;                // samples with a time stamp or a number have been there
    crdi_coupling_sample newest; // of them
} crdi_coupling_marks;

// The bytes of an instance; the arrays follow.
typedef struct crdi_coupling_self {
    // Not part of the state: the lines to the learning server.
    crd_context* line;
    crd_learn_client** clients; // (client_count), NULL: none
    int client_count;

    const crdi_coupling_model* model; // NULL before the initialisation
    // inputs
    crdi_coupling_sample in;
    // parameters
    double macro_step, latency, threshold, command_delay;
    char learn_server[CRDI_COUPLING_ADDRESS];
    // outputs
    int64_t learning;
    int32_t networks;

    double start;
    crdi_coupling_marks marks;
    bool settled; // inputs have not been set since the last step, or since the initialisation
    // What has been pushed because outputs were asked for, until the step confirms it.
    bool tried, tried_fresh; // the latter: a sample is part of it
    crdi_coupling_marks before;
    crdi_coupling_sample tried_inputs, tried_sample;
} crdi_coupling_self;

// A name of C.
bool crdi_coupling_is_identifier(const char* name);
// pair_model.c: {"pair": "flow" or "effort", "name", "step"} instead of an element
crd_status crdi_pair_model_build(crdi_coupling_model* m, const crdi_json* root, const char* file);
// instance.c
crd_model_status crdi_coupling_initialize(void* self, const crd_model_host* host, double t);
void crdi_coupling_outputs(void* self, double t);
crd_model_status crdi_coupling_step(void* self, const crd_model_host* host, double t, double h,
                                    double* reached);
void crdi_coupling_clear(void* self);

// ---- place.c: an element and its context inside of a block of bytes

typedef struct crdi_place {
    size_t size, used; // bytes from the beginning of this
    size_t last;       // the newest object's
    size_t most;       // that were ever used
    crd_context* ctx;  // in the block
    crd_coupling* element;
} crdi_place;

// Makes an element in the `size` bytes at `p`, 16-byte aligned. After a failure p->ctx has the
// sentence, unless it is NULL.
crd_status crdi_place_create(crdi_place* p, size_t size, const crd_coupling_options* opt);
// Bytes that an element with these options needs. The sentence about a failure is in `ctx`.
crd_status crdi_place_measure(crd_context* ctx, const crd_coupling_options* opt, size_t* room);
