// What the sensors would say, and how that depends on what is unknown: open loop.
#pragma once
#include "shared/base.h"
#include "twin/twin.h"

typedef struct crdi_response {
    crd_twin* w; // its sources are constants
    const crd_twin_data* data;
    int k, s, p, m; // unknowns: parameters, sources, initial states (0 if known), all
    const char** names;
    double* start;         // (p) states at the start, as the netlist has them
    double* x;             // (m) the unknowns: logarithms, values, values
    double* slope;         // (p x m) dz / dx
    double *next, *y, *dy; // (p x m), (sensors), (sensors x m)
} crdi_response;

// Called for every row that counts. y (sensors) without noise, dy (sensors x m) or NULL.
typedef void (*crdi_visit)(void* user, int64_t row, const double* y, double* dy);

crd_status crdi_response_create(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                                const crd_twin_data* data, bool states, crd_arena* arena,
                                crdi_response* out);
void crdi_response_destroy(crdi_response* r);
crd_status crdi_respond(crdi_response* r, bool slopes, crdi_visit visit, void* user);
