// Benchmarks: each measures something and a floor or a peer in the same run, and reports the ratio.
#pragma once
#include "cardan/cardan.h"
#include "shared/base.h"

/// One line of the table and of build/bench.json.
typedef struct bench_result {
    char name[64];
    double value; // what was measured, in `unit`
    const char* unit;
    double floor; // the same of the floor or peer
    double ratio; // value / floor
    double limit; // 0: for information
    char note[96];
} bench_result;

typedef struct bench bench;

typedef struct bench_case {
    const char* name; // of the group, like "master/chain"
    void (*run)(bench* b);
} bench_case;

/// value / floor against limit (0: none); `format` is a note.
void bench_report(bench* b, const char* name, double value, const char* unit, double floor,
                  double limit, const char* format, ...) CRD_PRINTF(7, 8);
/// Python interpreter with the peers, "" if none was given.
const char* bench_python(const bench* b);
/// Of benchmarks that last as long as one likes (--long SECONDS).
double bench_seconds(const bench* b);
/// Ends the program with the context's message if st < 0.
void bench_must(crd_context* ctx, crd_status st);

extern const bench_case bench_master_cases[], bench_fmi_cases[], bench_results_cases[],
    bench_read_cases[], bench_peer_cases[], bench_coupling_cases[], bench_learn_cases[],
    bench_dcp_cases[], bench_dcp_net_cases[], bench_circuit_cases[], bench_twin_cases[],
    bench_live_cases[], bench_testbench_cases[];
