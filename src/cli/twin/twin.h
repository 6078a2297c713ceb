// cardan twin, part by part.
#pragma once
#include "cardan/results.h"
#include "cardan/twin.h"
#include "cli/cli.h"
#include "shared/twin_model.h"
#include "shared/unit.h"

// All four commands begin with this: what is followed, and what was measured.
typedef struct crdi_twin_command {
    crdi_common common;
    crdi_list sensors, estimate, unknown, params, map;
    const char* measurements;
    double sd, step, start, from, to;
} crdi_twin_command;

#define CRDI_TWIN_OPTIONS(object, field)                                                           \
    OPT_LIST(object, field.sensors, "sensors", "NAME[=WHAT][:SD],...",                             \
             "what is measured: T7=t(7):0.5 is the temperature of node 7 with noise of 0.5 K; "    \
             "without WHAT an .output or node of that name; may be given several times"),          \
        OPT_NUMBER(object, field.sd, "sd", NULL, CRDI_POSITIVE,                                    \
                   "standard deviation of the noise of sensors that do not say it"),               \
        OPT_LIST(object, field.estimate, "estimate", "NAME[=PARTS][:START],...",                   \
                 "values of R, C or L to find: rdbc=x*.dbc:0.01 is one value of all parts that "   \
                 "fit, PARTS joined by +; begins with the netlist's value"),                       \
        OPT_LIST(object, field.unknown, "unknown",                                                 \
                 "NAME[=PARTS][:MODEL[:NOISE[:START[:SD]]]],...",                                  \
                 "sources to find: loss=q*:walk:1:208:100; MODEL is constant, walk, integrated "   \
                 "or oscillator@HZ; NOISE how much it may change (variance per step)"),            \
        OPT_LIST(object, field.params, "param", "NAME=NUMBER",                                     \
                 "value of a .param instead of the netlist's", .short_name = 'D',                  \
                 .alias = "define"),                                                               \
        OPT_FILE(object, field.measurements, "measurements", "csv|mf4|mat",                        \
                 "recording whose columns are called like sensors and inputs of the netlist",      \
                 .short_name = 'm'),                                                               \
        OPT_LIST(object, field.map, "map", "COLUMN=NAME",                                          \
                 "a column that belongs to a sensor or input of another name"),                    \
        OPT_TIME(object, field.step, "step", CRDI_POSITIVE,                                        \
                 "between two measurements; that of the recording unless given"),                  \
        OPT_TIME(object, field.start, "start", CRDI_ANY,                                           \
                 "when the network is in the state that the netlist says; 0 unless given, if "     \
                 "the recording begins there or a step later; if it begins elsewhere its state "   \
                 "there is found, too"),                                                           \
        OPT_TIME(object, field.from, "from", CRDI_ANY, "measurements count from here on"),         \
        OPT_TIME(object, field.to, "to", CRDI_ANY, "and to here")

typedef struct crdi_twin_job {
    crdi_cli* cli;
    const crdi_twin_command* o;
    const char* path;
    crd_arena arena;
    crd_netlist* own; // of a .cir
    crd_twin_description* d;
    const crd_netlist* n; // of d
    crd_twin_spec spec;
    crd_table* table;
    crd_twin_data data;
    int* column;             // (sensors) of the table
    double *factor, *offset; // (sensors) to the sensor's unit
    int64_t missing;         // measurements that are not there
    int64_t gaps, before;    // instants between rows that lie apart; rows before the start
    int64_t crowded;         // rows too near to one before, not used
    bool irregular;          // rows are not a step apart
} crdi_twin_job;

// The description, and with `stop` (s, NaN: the recording is needed) the data; without a recording
// inputs keep their start values and nothing is measured. Clear the job also after a failure.
crd_status crdi_twin_load(crdi_twin_job* j, crdi_cli* cli, const crdi_twin_command* o,
                          const char* path, double stop);
void crdi_twin_clear(crdi_twin_job* j);
// CRD_E_RANGE: the file is one that is read. NULL: there is none.
crd_status crdi_twin_check_output(const crdi_twin_job* j, const char* output);
// Unit of a sensor: its own, that of an output, K in a thermal network, or V or A.
const char* crdi_twin_job_unit(const crdi_twin_job* j, const char* what);
// Factor and offset from a column of numbers to a unit. CRD_E_RANGE: it has texts, or another unit.
crd_status crdi_twin_column(crdi_twin_job* j, const crd_table_column* c, const char* unit,
                            double* factor, double* offset);
// What a column says at an instant of the data; NaN where only others say something, and in gaps.
// `*at` (start with 0) rises with `row`.
double crdi_twin_cell(const crdi_twin_job* j, const crd_table_column* c, int64_t row, int64_t* at);
// What was made of the times of the recording, in words and JSON.
void crdi_twin_put_time(crdi_result* out, const crdi_twin_job* j);
