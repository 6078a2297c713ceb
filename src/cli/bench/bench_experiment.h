// Shared by the files of `cardan bench experiment`.
#pragma once
#include "cli/cli.h"
#include "shared/base.h"
#include "shared/testbench_experiment.h"

// Tables as rows of texts, for the terminal and for the report.
enum { CRDI_EXPERIMENT_COLUMNS = 9 };
typedef struct crdi_experiment_table {
    const char* title;
    int columns;
    uint32_t right;                                                   // bit per column
    const char* cells[CRDI_BENCH_CASES + 2][CRDI_EXPERIMENT_COLUMNS]; // with a row of heads
    int rows;
    const char* note; // below it
} crdi_experiment_table;

// All texts are of the arena.
crd_status crdi_experiment_errors(const crdi_bench_experiment* e, crd_arena* a,
                                  crdi_experiment_table* out);
crd_status crdi_experiment_behaviour(const crdi_bench_experiment* e, crd_arena* a,
                                     crdi_experiment_table* out);
crd_status crdi_experiment_goals(const crdi_bench_experiment* e, crd_arena* a,
                                 crdi_experiment_table* out);
// "12 s of acceleration ...", one sentence per line.
crd_status crdi_experiment_setup(const crdi_bench_experiment* e, crd_text* out);

// ID.csv of each run, torque.svg, bode.svg, spectrum.svg and report.html.
crd_status crdi_experiment_write(const crdi_bench_experiment* e, const char* folder);
