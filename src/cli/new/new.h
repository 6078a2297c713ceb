// cardan new and cardan connect: systems out of files, and their connections.
#pragma once
#include "cardan/unit.h"
#include "cli/cli.h"
#include "cli/run/run.h"

// ---- propose.c
// What `connect propose` and `new` found out about a system.
typedef struct crdi_proposed {
    crd_context* quiet; // what units say while they are described
    crd_ports* ports;
    const crd_proposal* items;
    int count;
} crdi_proposed;

crd_status crdi_propose(crd_context* ctx, const crd_system* s, crdi_proposed* out);
void crdi_proposed_clear(crdi_proposed* p);
// "unit.variable"; as long as the ports.
const char* crdi_port_name(const crdi_proposed* p, int port);
// The text of a description after one connection came or went, checked as `cardan check` does.
crd_status crdi_check_text(crd_context* ctx, const crd_text* text, const char* path);

// ---- sources.c
// One thing that a system is made of.
typedef struct crdi_source {
    const char *path, *name; // as given; as the unit is called
    const char* flow;        // "{ fmu: a.fmu }"; NULL: not a unit
    const char* failure;     // why it is not used; NULL: it is
    bool system;             // an SSP: the system below
} crdi_source;

typedef struct crdi_sources {
    crd_arena* arena;
    crdi_source* items;
    int count;
    size_t capacity;
} crdi_sources;

// Files, folders and addresses; what is none of ours gets a failure. `output` is where the
// description will be: its paths are relative to that.
crd_status crdi_sources_collect(crd_context* ctx, const crdi_list* arguments, const char* output,
                                crdi_sources* out);

// ---- trial.c
typedef struct crdi_trial {
    crd_status status;
    bool timed_out;
    double step, time;    // s
    double error, defect; // worst, of the signals' scales; NaN: not known
    char text[500];       // of a failure
} crdi_trial;

// Runs the description in a process of its own up to `stop`, for some seconds at most.
void crdi_trial_run(crd_context* ctx, const crd_text* text, const char* path, double step,
                    double stop, crdi_trial* out);

// ---- draft.c
// A connection as it will be written.
typedef struct crdi_draft_line {
    int from, to; // ports; from -1: nothing was found
    crd_sureness sure;
    bool used; // not a comment
    const char* why;
} crdi_draft_line;

typedef struct crdi_draft {
    const crdi_sources* sources;
    const crdi_proposed* p;
    const crd_system* system;
    crdi_draft_line* lines; // one per free input
    int count;
    double step, stop;    // s, NaN: none
    const char* step_why; // of the step
    const char *path, *command;
} crdi_draft;

crd_status crdi_draft_begin(crdi_draft* d, crd_arena* arena);
// The whole file.
void crdi_draft_write(const crdi_draft* d, crd_text* out);
// The units alone, for the first look at them.
void crdi_draft_write_units(const crdi_sources* s, const crdi_proposed* p, crd_text* out);
// "unit.output" for the input of a line; why not in the context, CRD_E_RANGE.
crd_status crdi_draft_choose(crd_context* ctx, crdi_draft* d, int line, const char* output);

// ---- page.c
// The page on which connections are drawn, until Ctrl-C. `draft`: the text is not in the file yet.
crd_status crdi_draw_serve(crdi_cli* cli, const crdi_watch_options* o, const crd_text* text,
                           const char* path, bool draft, crdi_result* out);

// ---- ask.c
// Questions about what is not sure, on standard error, answers from standard input.
void crdi_draft_ask(crd_context* ctx, crdi_draft* d);
