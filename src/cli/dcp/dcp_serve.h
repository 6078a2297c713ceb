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
    crdi_list set, parameters, pairs;
} crdi_served;

// The rows of both.
#define CRDI_SERVED_OPTIONS                                                                        \
    OPT_TIME(crdi_served, resolution, "resolution", CRDI_POSITIVE,                                 \
             "time resolution; the step of the description or of the FMU unless given, else "      \
             "1 ms. A single unit that steps by any length also offers 1 us to 10 s; a system "    \
             "has this one as its macro step"),                                                    \
        OPT_LIST(crdi_served, set, "set", "NAME=VALUE",                                            \
                 "start value of a variable, as unit.variable in a system"),                       \
        CRDI_PARAMETERS_OPTION(crdi_served, parameters),                                           \
        OPT_LIST(crdi_served, pairs, "pair", "INPUT:OUTPUT",                                       \
                 "a wave port at this input and the output that answers it, such as "              \
                 "torque:speed, for a bond with 'pair: wave' (docs/explanation/pairs.md)"),        \
        OPT_TEXT(crdi_served, variant, "variant", "NAME",                                          \
                 "of an SSP with several system descriptions"),                                    \
        OPT_TEXT(crdi_served, name, "name", "NAME",                                                \
                 "of the slave; that of the model or system unless given"),                        \
        OPT_FLAG(                                                                                  \
            crdi_served, hrt, "hrt",                                                               \
            "offer hard real time, too: a step that begins more than a resolution late is an "     \
            "error then"),                                                                         \
        OPT_TIME(crdi_served, heartbeat, "heartbeat", CRDI_POSITIVE,                               \
                 "a master that does not ask for the state within this time is taken for dead: "   \
                 "the slave goes to its safe state; not monitored unless given"),                  \
        OPT_INT(crdi_served, max_size, "max-size", "BYTES",                                        \
                "room for each string and binary; 1024 unless given")

// What all who listen or connect say about keys.
#define CRDI_KEY_OR_PLAIN "--key FILE (cardan key pair makes one) or --plain"
#define CRDI_PLAIN_HELP                                                                            \
    "no key although other hosts reach it: everybody on that network can read, steer and stop. "   \
    "At loopback nobody asks for it"

// Loads the system and its settings. `out` is the caller's.
crd_status crdi_served_load(crd_context* ctx, const crdi_served* o, const char* path,
                            crd_system** out);
crd_status crdi_served_options(crd_context* ctx, const crdi_served* o, crdi_serve_options* out);
// As .dcpx or .dcp, by the ending of `path`.
// Whether a description may be written there; NULL: nowhere. CRD_E_RANGE.
crd_status crdi_check_description(crd_context* ctx, const char* option, const char* path);
crd_status crdi_write_description(crd_context* ctx, const crd_dcp_description* d, const char* path);
