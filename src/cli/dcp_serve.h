// What `cardan dcp describe` and `cardan dcp slave` share: which system, described how.
#pragma once
#include "cardan/system.h"
#include "cli/cli.h"
#include "shared/serve.h"

// The structs of options of both begin with this.
typedef struct crdi_served {
    crdi_common common;
    const char *name, *variant;
    double resolution, heartbeat;
    bool hrt;
    int max_size;
    crdi_list set, parameters;
} crdi_served;

#define CRDI_SERVED_DEFAULTS                                                                       \
    {                                                                                              \
        .common = CRDI_COMMON_DEFAULTS, .resolution = NAN, .heartbeat = NAN, .max_size = -1        \
    }

// The rows of both.
#define CRDI_SERVED_OPTIONS                                                                        \
    {.name = "resolution",                                                                         \
     .type = CRDI_OPT_QUANTITY,                                                                    \
     .metavar = "TIME",                                                                            \
     .unit = "s",                                                                                  \
     .range = CRDI_POSITIVE,                                                                       \
     .offset = offsetof(crdi_served, resolution),                                                  \
     .help = "time resolution; the step of the description or of the FMU unless given, else "      \
             "1 ms. A single unit that steps by any length also offers 1 us to 10 s; a system "    \
             "has this one as its macro step"},                                                    \
        {.name = "set",                                                                            \
         .type = CRDI_OPT_LIST,                                                                    \
         .metavar = "NAME=VALUE",                                                                  \
         .offset = offsetof(crdi_served, set),                                                     \
         .help = "start value of a variable, as unit.variable in a system"},                       \
        CRDI_PARAMETERS_OPTION(crdi_served, parameters),                                           \
        {.name = "variant",                                                                        \
         .type = CRDI_OPT_TEXT,                                                                    \
         .metavar = "NAME",                                                                        \
         .offset = offsetof(crdi_served, variant),                                                 \
         .help = "of an SSP with several system descriptions"},                                    \
        {.name = "name",                                                                           \
         .type = CRDI_OPT_TEXT,                                                                    \
         .metavar = "NAME",                                                                        \
         .offset = offsetof(crdi_served, name),                                                    \
         .help = "of the slave; that of the model or system unless given"},                        \
        {.name = "hrt",                                                                            \
         .type = CRDI_OPT_FLAG,                                                                    \
         .offset = offsetof(crdi_served, hrt),                                                     \
         .help =                                                                                   \
             "offer hard real time, too: a step that begins more than a resolution late is an "    \
             "error then"},                                                                        \
        {.name = "heartbeat",                                                                      \
         .type = CRDI_OPT_QUANTITY,                                                                \
         .metavar = "TIME",                                                                        \
         .unit = "s",                                                                              \
         .range = CRDI_POSITIVE,                                                                   \
         .offset = offsetof(crdi_served, heartbeat),                                               \
         .help = "a master that does not ask for the state within this time is taken for dead: "   \
                 "the slave goes to its safe state; not monitored unless given"},                  \
    {                                                                                              \
        .name = "max-size", .type = CRDI_OPT_INT, .metavar = "BYTES",                              \
        .offset = offsetof(crdi_served, max_size),                                                 \
        .help = "room for each string and binary; 1024 unless given"                               \
    }

// Loads the system and its settings. `out` is the caller's.
crd_status crdi_served_load(crd_context* ctx, const crdi_served* o, const char* path,
                            crd_system** out);
crd_status crdi_served_options(crd_context* ctx, const crdi_served* o, crdi_serve_options* out);
// As .dcpx or .dcp, by the ending of `path`.
crd_status crdi_write_description(crd_context* ctx, const crd_dcp_description* d, const char* path);
