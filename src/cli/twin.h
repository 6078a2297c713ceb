// cardan twin, part by part.
#pragma once
#include "cardan/results.h"
#include "cardan/twin.h"
#include "cli/cli.h"
#include "shared/twin_model.h"

// All four commands begin with this: what is followed, and what was measured.
typedef struct crdi_twin_command {
    crdi_common common;
    crdi_list sensors, estimate, unknown, params, map;
    const char* measurements;
    double sd, step, start, from, to;
} crdi_twin_command;

#define CRDI_TWIN_DEFAULTS                                                                         \
    {                                                                                              \
        .common = CRDI_COMMON_DEFAULTS, .sd = NAN, .step = NAN, .start = NAN, .from = NAN,         \
        .to = NAN                                                                                  \
    }

#define CRDI_TWIN_OPTIONS(object, field)                                                           \
    {.name = "sensors",                                                                            \
     .type = CRDI_OPT_LIST,                                                                        \
     .metavar = "NAME[=WHAT][:SD],...",                                                            \
     .offset = offsetof(object, field.sensors),                                                    \
     .help = "what is measured: T7=t(7):0.5 is the temperature of node 7 with noise of 0.5 K; "    \
             "without WHAT an .output or node of that name; may be given several times"},          \
        {.name = "sd",                                                                             \
         .type = CRDI_OPT_NUMBER,                                                                  \
         .range = CRDI_POSITIVE,                                                                   \
         .offset = offsetof(object, field.sd),                                                     \
         .help = "standard deviation of the noise of sensors that do not say it"},                 \
        {.name = "estimate",                                                                       \
         .type = CRDI_OPT_LIST,                                                                    \
         .metavar = "NAME[=PARTS][:START],...",                                                    \
         .offset = offsetof(object, field.estimate),                                               \
         .help = "values of R, C or L to find: rdbc=x*.dbc:0.01 is one value of all parts that "   \
                 "fit, PARTS joined by +; begins with the netlist's value"},                       \
        {.name = "unknown",                                                                        \
         .type = CRDI_OPT_LIST,                                                                    \
         .metavar = "NAME[=PARTS][:MODEL[:NOISE[:START[:SD]]]],...",                               \
         .offset = offsetof(object, field.unknown),                                                \
         .help = "sources to find: loss=q*:walk:1:208:100; MODEL is constant, walk, integrated "   \
                 "or oscillator@HZ; NOISE how much it may change (variance per step)"},            \
        {.name = "param",                                                                          \
         .alias = "define",                                                                        \
         .short_name = 'D',                                                                        \
         .type = CRDI_OPT_LIST,                                                                    \
         .metavar = "NAME=NUMBER",                                                                 \
         .offset = offsetof(object, field.params),                                                 \
         .help = "value of a .param instead of the netlist's"},                                    \
        {.name = "measurements",                                                                   \
         .short_name = 'm',                                                                        \
         .type = CRDI_OPT_FILE,                                                                    \
         .metavar = "FILE",                                                                        \
         .extensions = "csv|mf4|mat",                                                              \
         .offset = offsetof(object, field.measurements),                                           \
         .help = "recording whose columns are called like sensors and inputs of the netlist"},     \
        {.name = "map",                                                                            \
         .type = CRDI_OPT_LIST,                                                                    \
         .metavar = "COLUMN=NAME",                                                                 \
         .offset = offsetof(object, field.map),                                                    \
         .help = "a column that belongs to a sensor or input of another name"},                    \
        {.name = "step",                                                                           \
         .type = CRDI_OPT_QUANTITY,                                                                \
         .metavar = "TIME",                                                                        \
         .unit = "s",                                                                              \
         .range = CRDI_POSITIVE,                                                                   \
         .offset = offsetof(object, field.step),                                                   \
         .help = "between two measurements; that of the recording unless given"},                  \
        {.name = "start",                                                                          \
         .type = CRDI_OPT_QUANTITY,                                                                \
         .metavar = "TIME",                                                                        \
         .unit = "s",                                                                              \
         .offset = offsetof(object, field.start),                                                  \
         .help = "when the network is in the state that the netlist says; the first row of the "   \
                 "recording unless given (that row is then not used)"},                            \
        {.name = "from",                                                                           \
         .type = CRDI_OPT_QUANTITY,                                                                \
         .metavar = "TIME",                                                                        \
         .unit = "s",                                                                              \
         .offset = offsetof(object, field.from),                                                   \
         .help = "measurements count from here on"},                                               \
    {                                                                                              \
        .name = "to", .type = CRDI_OPT_QUANTITY, .metavar = "TIME", .unit = "s",                   \
        .offset = offsetof(object, field.to), .help = "and to here"                                \
    }

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
    int64_t missing, gaps; // measurements that are not there; rows of the grid without any
} crdi_twin_job;

// The description, and with `stop` (s, NaN: the recording is needed) the data; without a recording
// inputs keep their start values and nothing is measured. Clear the job also after a failure.
crd_status crdi_twin_load(crdi_twin_job* j, crdi_cli* cli, const crdi_twin_command* o,
                          const char* path, double stop);
void crdi_twin_clear(crdi_twin_job* j);
// CRD_E_RANGE: the file is one that is read. NULL: there is none.
crd_status crdi_twin_check_output(const crdi_twin_job* j, const char* output);
// A description from a YAML or JSON file, with the netlist that it names.
crd_status crdi_twin_read(crd_context* ctx, const char* path, crd_twin_description** out);
// Unit of a sensor: its own, that of an output, K in a thermal network, or V or A.
const char* crdi_twin_job_unit(const crdi_twin_job* j, const char* what);
