// Benchmarks: each measures something and a floor or a peer in the same run, and reports the ratio.
#pragma once
#include "cardan/cardan.h"
#include "shared/base.h"

/// One line of the table and of build/bench.json.
typedef struct benchmark_result {
    char name[64];
    double value; // what was measured, in `unit`
    const char* unit;
    double floor; // the same of the floor or peer
    double ratio; // value / floor
    double limit; // 0: for information
    char note[96];
} benchmark_result;

typedef struct benchmark benchmark;

typedef struct benchmark_case {
    const char* name; // of the group, like "master/chain"
    void (*run)(benchmark* b);
} benchmark_case;

/// value / floor against limit (0: none); `format` is a note.
void benchmark_report(benchmark* b, const char* name, double value, const char* unit, double floor,
                      double limit, const char* format, ...) CRD_PRINTF(7, 8);
/// Python interpreter with the peers, "" if none was given.
const char* benchmark_python(const benchmark* b);
/// Of benchmarks that last as long as one likes (--long SECONDS).
double benchmark_seconds(const benchmark* b);
/// Ends the program with the context's message if st < 0.
void benchmark_must(crd_context* ctx, crd_status st);

extern const benchmark_case benchmark_master_cases[], benchmark_fmi_cases[],
    benchmark_results_cases[], benchmark_read_cases[], benchmark_peer_cases[],
    benchmark_coupling_cases[], benchmark_learn_cases[], benchmark_dcp_cases[],
    benchmark_dcp_net_cases[], benchmark_circuit_cases[], benchmark_twin_cases[],
    benchmark_live_cases[], benchmark_testbench_cases[], benchmark_worker_cases[],
    benchmark_wire_cases[], benchmark_study_cases[];
