/// The virtual test field: drive cycles, and the models of the hybrid powertrain.
///
/// A cycle is a speed over time, a line through its points. The models are tables in C
/// (cardan/model.h): in this process they become units, as FMUs they are build/fmus/*/pt_*.fmu.
#pragma once
#include "cardan/base.h"
#include "cardan/model.h"

/// A drive cycle; const once made.
typedef struct crdi_cycle {
    const char* name;
    int64_t count;       ///< points, at least 2
    const double* time;  ///< s, never decreasing
    const double* speed; ///< m/s, >= 0
} crdi_cycle;

/// Where a cycle comes from.
typedef struct crdi_cycle_source {
    const char* name;   ///< "nedc", or the path of a recording (CSV, MF4, MAT)
    const char* column; ///< of the recording; NULL: `speed`, `v` or `velocity`, or the only one
    const char* unit;   ///< of the column; NULL: what the recording says, else km/h
} crdi_cycle_source;

/// `*out` is written on CRD_OK only; destroy it with crdi_cycle_destroy().
/// CRD_E_NOT_FOUND: no such file or column; CRD_E_FORMAT: times or speeds that make no sense;
/// CRD_E_RANGE: a unit that is no speed.
crd_status crdi_cycle_create(crd_context* ctx, const crdi_cycle_source* source,
                             const crdi_cycle** out);
void crdi_cycle_destroy(crd_context* ctx, const crdi_cycle* c);

/// Speed at time t, m/s; before the first point the first, behind the last the last.
double crdi_cycle_speed(const crdi_cycle* c, double t);

/// "pt_driver", "pt_controller", "pt_engine", "pt_clutch", "pt_machine", "pt_battery",
/// "pt_vehicle"; else NULL.
const crd_model* crdi_powertrain_model(const char* name);
