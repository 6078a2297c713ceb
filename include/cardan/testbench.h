/// The virtual test field: drive cycles, and the models of the hybrid powertrain.
///
/// A cycle is a speed over time, a line through its points. The models are tables in C
/// (cardan/model.h): in this process they become units, as FMUs they are build/fmus/*/pt_*.fmu.
#pragma once
#include "cardan/base.h"
#include "cardan/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A drive cycle; const once made.
typedef struct crd_cycle {
    const char* name;
    int64_t count;       ///< points, at least 2
    const double* time;  ///< s, never decreasing
    const double* speed; ///< m/s, >= 0
} crd_cycle;

/// Where a cycle comes from.
typedef struct crd_cycle_source {
    const char* name;   ///< "nedc", or the path of a recording (CSV, MF4, MAT)
    const char* column; ///< of the recording; NULL: `speed`, `v` or `velocity`, or the only one
    const char* unit;   ///< of the column; NULL: what the recording says, else km/h
} crd_cycle_source;

/// What a cycle amounts to.
typedef struct crd_cycle_summary {
    double duration;         ///< s
    double distance;         ///< m
    double speed_max;        ///< m/s
    double acceleration_max; ///< m/s^2
    double acceleration_min; ///< m/s^2, of the strongest braking
    double standstill;       ///< s without speed
} crd_cycle_summary;

/// `*out` is written on CRD_OK only; destroy it with crd_cycle_destroy().
/// CRD_E_NOT_FOUND: no such file or column; CRD_E_FORMAT: times or speeds that make no sense;
/// CRD_E_RANGE: a unit that is no speed.
CRD_API crd_status crd_cycle_create(crd_context* ctx, const crd_cycle_source* source,
                                    const crd_cycle** out);
CRD_API void crd_cycle_destroy(crd_context* ctx, const crd_cycle* c);

/// Speed at time t, m/s; before the first point the first, behind the last the last.
CRD_API double crd_cycle_speed(const crd_cycle* c, double t);
CRD_API crd_cycle_summary crd_cycle_describe(const crd_cycle* c);
/// As CSV with the columns time and speed (km/h), for `replay` units.
CRD_API crd_status crd_cycle_write(crd_context* ctx, const crd_cycle* c, const char* path);

/// "pt_driver", "pt_controller", "pt_engine", "pt_clutch", "pt_machine", "pt_battery",
/// "pt_vehicle"; else NULL.
CRD_API const crd_model* crd_powertrain_model(const char* name);

#ifdef __cplusplus
}
#endif
