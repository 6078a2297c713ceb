/// Sensors of a bench that were calibrated by two points: value = gain * reading + offset.
///
/// Files are JSON, written by the desk (docs/how-to/operator.md) and read by a bench when it
/// starts.
#pragma once
#include "shared/base.h"

enum { CRDI_CALIBRATIONS_MAX = 16 };

typedef struct crdi_calibration {
    char name[32], unit[16];         ///< output of the bench
    double reference[2], reading[2]; ///< what it was, what the sensor read, both in its unit
    double gain, offset;             ///< by crdi_calibration_make
    char date[24];                   ///< "2026-11-17T13:45:00Z"
    char by[48];                     ///< who did it
} crdi_calibration;

typedef struct crdi_calibrations {
    crdi_calibration of[CRDI_CALIBRATIONS_MAX];
    int count;
} crdi_calibrations;

/// gain and offset out of the two points. CRD_E_RANGE, with what would be right: no number, the
/// same point twice, a reading that falls while the value rises, a gain outside of 0.5 to 2, a
/// reading that is off by more than the two points are apart, points nearer to each other than a
/// twentieth of `range` (the sensor's, NaN: not known), nobody who did it.
crd_status crdi_calibration_make(crd_context* ctx, crdi_calibration* c, double range);
const crdi_calibration* crdi_calibrations_find(const crdi_calibrations* all, const char* name);
/// CRD_E_FORMAT, CRD_E_RANGE with the file and the sensor: also where gain and offset are not those
/// of the points.
crd_status crdi_calibrations_parse(crd_context* ctx, const char* text, size_t length,
                                   const char* file, crdi_calibrations* out);
crd_status crdi_calibrations_load(crd_context* ctx, const char* path, crdi_calibrations* out);
/// `c` into the file, in the place of one of its name; a file that is not there is made. It is
/// whole or as before.
crd_status crdi_calibrations_store(crd_context* ctx, const char* path, const crdi_calibration* c);
/// "torque 0.98 -0.3 2026-11-17T13:45:00Z J. Doe": as a bench tells its master; and read again.
void crdi_calibration_print(const crdi_calibration* c, char* out, size_t room);
bool crdi_calibration_scan(const char* text, crdi_calibration* out); ///< without points
