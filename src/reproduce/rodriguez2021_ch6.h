// Chapter 6 between its files: an emulated bench without a network, and its parts.
#pragma once
#include "reproduce/reproduce.h"
#include "shared/testbench_bench.h"

/// A bench that is made; its signals by name.
typedef struct crdi_ch6_bench {
    crdi_testbench_kind kind;
    crdi_testbench* b;
} crdi_ch6_bench;

crd_status crdi_ch6_open(crd_context* ctx, crdi_testbench_kind kind, bool ideal,
                         crdi_ch6_bench* out);
void crdi_ch6_close(crdi_ch6_bench* b);
void crdi_ch6_set(crdi_ch6_bench* b, const char* name, double value);
double crdi_ch6_true(const crdi_ch6_bench* b, const char* name);
double crdi_ch6_measured(const crdi_ch6_bench* b, const char* name);
/// Means of what is measured, over `seconds`.
void crdi_ch6_mean(crdi_ch6_bench* b, double seconds, const char* const* names, int count,
                   double* out);

crd_status crdi_ch6_traction(crdi_reproduction* r);
