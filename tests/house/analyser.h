// Put in front of each source when clang's static analyser reads it. It sees one file at a time,
// and does not know that a function which fails returns what it was given: then it walks on with
// what was never made.
#pragma once
#include "circuit/scan.h"
#include "shared/base.h"

#define crdi_fail(ctx, st, ...) ((void)crdi_fail(ctx, st, __VA_ARGS__), (st))
#define crdi_fail_in(ctx, st, ...) ((void)crdi_fail_in(ctx, st, __VA_ARGS__), (st))
#define crdi_json_fail(ctx, file, line, st, ...)                                                   \
    ((void)crdi_json_fail(ctx, file, line, st, __VA_ARGS__), (st))
#define crdi_scan_fail(scan, st, ...) ((void)crdi_scan_fail(scan, st, __VA_ARGS__), (st))
