// cardan circuit, part by part.
#pragma once
#include "cardan/circuit.h"
#include "cardan/results.h"
#include "cli/cli.h"
#include "shared/base.h"
#include "shared/system_words.h"

typedef struct crdi_circuit_command {
    crdi_common common;
    const char *output, *input, *projection;
    double step, stop, from, accuracy, seconds, tolerance;
    double relative, voltage, current, smallest, largest; // of --variable
    crdi_list params, set, signals;
    int method, form, start; // choices, -1: not given
    int every, iterations, fixed_iterations, mat_version;
    bool variable, structure, realtime, unit_row;
} crdi_circuit_command;

typedef struct crdi_circuit_signal { // what a probe did
    double last, least, most;
    double area, square; // integrals of y and y^2 over time
} crdi_circuit_signal;

typedef struct crdi_circuit_job {
    crdi_cli* cli;
    crdi_result* out;
    const crdi_circuit_command* o;
    const char* path;
    crd_context* ctx; // of the netlist: shows what it passes over
    crd_arena arena;
    crd_netlist* n;
    crd_text flat; // as it was read, for the result file
    crd_circuit_options opt;
    crd_circuit* c;
    double stop;                  // s
    double from;                  // s, where rows and statistics begin
    crd_table* stimulus;          // --input
    int* columns;                 // (input_count) of it, -1
    int64_t* hints;               // (input_count)
    crd_circuit_probe* probes;    // (signal_count)
    crdi_circuit_signal* signals; // (signal_count)
    int signal_count, left_out;
    bool chosen;
    double longest;            // step that --accuracy tries
    crd_circuit_choice choice; // --accuracy
} crdi_circuit_job;

const char* crdi_circuit_method_text(crd_circuit_method m);

// ---- circuit_load.c
// The netlist with --param and --set, and nothing else yet. Clear the job also after a failure.
crd_status crdi_circuit_load(crdi_circuit_job* j, crdi_cli* cli, const crdi_circuit_command* o,
                             const char* path, crdi_result* out);
void crdi_circuit_clear(crdi_circuit_job* j);
// The options of the circuit. Without .tran and --step: `otherwise`; NaN: then it is an error.
crd_status crdi_circuit_prepare(crdi_circuit_job* j, double otherwise);
crd_status crdi_circuit_load_input(crdi_circuit_job* j); // --input
// Inputs from the recording, for time t.
crd_status crdi_circuit_feed(crdi_circuit_job* j, double t);

// At t = 0, with the inputs for it.
crd_status crdi_circuit_begin(crdi_circuit_job* j);

// ---- circuit_run.c
crd_status crdi_circuit_run(crdi_circuit_job* j);

// ---- circuit_structure.c
crd_status crdi_circuit_show_structure(crdi_circuit_job* j);

// ---- circuit_realtime.c
crd_status crdi_circuit_realtime(crdi_circuit_job* j);
int64_t crdi_clock_cost(void); // ns, of reading the clock once
