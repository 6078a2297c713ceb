// One drive of the coupled benches of Rautenberg (2023): examples/prototype/wltc.yaml, which is
// inside (cmake/Rautenberg.cmake), with its models in this process.
#pragma once
#include "cardan/master.h"
#include "cardan/results.h"
#include "reproduce/reproduce.h"
#include "shared/base_asset.h"

extern const crdi_asset crdi_rautenberg_system, crdi_rautenberg_oil;

typedef enum crdi_drive_how {
    CRDI_DRIVE_LOCAL, // the machines of both benches in this process, no network
    CRDI_DRIVE_STEPS, // benches as processes, DCP over UDP, NRT: on the virtual clock
    CRDI_DRIVE_CLOCK, // the same in SRT, in real time
} crdi_drive_how;

enum { CRDI_DRIVE_ICE, CRDI_DRIVE_EM, CRDI_DRIVE_BENCHES };

typedef struct crdi_drive_spec {
    crdi_drive_how how;
    double from, seconds; // of the cycle
    double start, air;    // degC: media, machines and oil at the start; outside
    double interval;      // s between rows
} crdi_drive_spec;

// What became of the PDUs between master and bench.
typedef struct crdi_drive_account {
    double lost;    // in both directions
    double unknown; // received by the bench and not accounted for, or sent to it and neither
                    // received nor lost
    double late;    // steps of the bench's process
    double age;     // s, mean of its data when they are used
} crdi_drive_account;

typedef struct crdi_drive {
    crd_context* ctx;
    crd_table *run, *session; // session NULL: no benches
    int64_t rows;
    crdi_drive_account benches[CRDI_DRIVE_BENCHES];
    crd_guard_state guard; // what it said, and why
    const char* guard_text;
    // on the clock
    int64_t overruns;      // cycles whose work was not done in time
    int64_t woken, behind; // of those that the account has kept: the thread was woken late; only
                           // behind another one
    double worst, busiest; // s: the latest, and the longest work of a cycle
} crdi_drive;

crd_status crdi_drive_run(crdi_reproduction* r, const crdi_drive_spec* spec, crdi_drive* out);
void crdi_drive_clear(crdi_drive* d);
// (rows) "em.speed"; the drive has it.
const double* crdi_drive_column(const crdi_drive* d, const char* name);
