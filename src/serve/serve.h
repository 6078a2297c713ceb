// What the files of a served unit or system share.
//
//   serve.c     makes and destroys it; the slave; messages become log entries
//   ports.c     which variables are served, and their start values
//   describe.c  ports become a slave description
//   use.c       a description that was given instead
//   plant.c     what the slave asks of the units: values, states, steps
//   bench.c     a unit as a bench: between the slave and the plant
#pragma once
#include "cardan/dcp.h"
#include "cardan/fmi.h"
#include "cardan/master.h"
#include "shared/base.h"
#include "shared/dcp_bench.h"
#include "shared/master_crash.h"
#include "shared/serve.h"
#include "shared/unit.h"
#include "shared/unit_dcp.h"
#include "shared/unit_wave.h"

#include <pthread.h>

/// One variable that is served: all of one of a unit, or one element of an array of texts, for
/// which DCP has no type.
typedef struct crdi_outlet {
    int unit;
    int32_t variable, element;   // element -1: all of it
    const char *name, *own_name; // "unit.variable[2]", "variable"
    uint8_t causality;           // crd_causality
    uint8_t variability;         // crd_variability
    uint8_t type;                // crd_dcp_data_type
    crd_kind kind;
    uint64_t vr;
    uint32_t size; // elements, as it was described
    bool used;     // the description in use has it
    int32_t head;  // parameters: outlet whose binding it shares, itself for all but elements
    // with the units that are there now
    int32_t at;           // in the values of its binding
    uint32_t count;       // elements there
    crd_binding* binding; // of a parameter, of the head
    crd_values values;    // of it
    int64_t given;        // of a structural parameter: what the master wants; -1: nothing
} crdi_outlet;

/// The values of one unit that are exchanged with the slave.
typedef struct crdi_station {
    crd_unit* unit; // of the master, or s->unit
    crd_binding *in, *out;
    crd_values inputs, outputs;
    bool changed;                  // inputs that the unit has not got
    bool fresh;                    // outputs are those of now
    const char** settings;         // (variables) texts of the description, NULL: none
    const crd_setting* parameters; // of the description, without what a session adds
    int parameter_count;
} crdi_station;

enum { CRDI_SERVE_LINES = 64, CRDI_SERVE_LINE = 240, CRDI_SERVE_LEVELS = 5 };

/// A line of a unit, on its way into the log of the slave.
typedef struct crdi_serve_line {
    uint8_t level; // of DCP
    uint32_t length;
    char text[CRDI_SERVE_LINE];
} crdi_serve_line;

typedef enum crdi_plant_phase {
    CRDI_PLANT_NONE,
    CRDI_PLANT_MADE,         // units are there; nothing of them runs
    CRDI_PLANT_BOUND,        // ... and bindings
    CRDI_PLANT_INSTANTIATED, // parameters may be set
    CRDI_PLANT_ENTERED,      // initialisation mode
    CRDI_PLANT_RUNS,
    CRDI_PLANT_ENDED,
    CRDI_PLANT_BROKEN, // failed or crashed
} crdi_plant_phase;

typedef struct crdi_serve_bench crdi_serve_bench; // bench.c

struct crdi_serve {
    crd_context* ctx;
    crd_context* log; // over ctx: lines of the units pass crdi_serve_take_line
    crd_arena arena;
    crd_system* sys; // borrowed
    crdi_serve_options opt;
    uint32_t numerator, denominator; // of the time resolution
    double resolution;
    bool one;    // a single unit, without a master
    bool varies; // ... that steps by any length
    int inner;   // ... steps of its own in a resolution, 1 unless they are fixed
    double start, tolerance;

    crdi_outlet* outlets;
    int outlet_count;
    crdi_station* stations; // (unit_count)
    int unit_count;
    crd_dcp_description* own;
    const crd_dcp_description* d;         // own, or one that was given
    int* outlet_of;                       // (d->variable_count)
    uint8_t templates[CRDI_SERVE_LEVELS]; // ids of entries with one text, by level
    bool templated[CRDI_SERVE_LEVELS];

    // what is there now
    crdi_plant_phase phase;
    crd_unit_store* store;
    crd_unit* unit;
    crd_master* master;
    crd_arena live;       // bindings' values
    bool resized;         // a structural parameter is not as the units have it
    volatile int running; // unit whose code runs, -1
    char failure[512];

    crd_dcp_slave* slave;
    crdi_serve_bench* bench; // NULL: a plain slave
    crdi_wave waves[CRDI_WAVES_MAX];
    int wave_count;
    crd_dcp_link link; // that was given
    crdi_serve_watch* watch;
    void* watch_user;

    pthread_mutex_t lines_lock;
    crdi_serve_line lines[CRDI_SERVE_LINES];
    int line_first, line_count;
    bool has_lines; // atomic
};

// ports.c
/// Which variables are served: fills outlets, from the units that are open.
crd_status crdi_serve_list(crdi_serve* s);
/// The start value of an outlet as a slave description writes it, in the arena of `a`; NULL: none
/// can be told. CRD_E_MEMORY alone fails.
crd_status crdi_serve_start_text(crdi_serve* s, const crdi_outlet* o, crd_arena* a,
                                 const char** out);

// describe.c
crd_status crdi_serve_make_description(crdi_serve* s, crd_fmu* const* fmus,
                                       crd_dcp_description** out);
/// x = numerator / denominator as exactly as 32 bits allow; false: it is not.
bool crdi_serve_fraction(double x, uint32_t* numerator, uint32_t* denominator);

// plant.c
crd_dcp_plant crdi_serve_plant(crdi_serve* s);
/// Creates the units (nothing runs): those that there are go.
crd_status crdi_serve_make(crdi_serve* s);
void crdi_serve_close(crdi_serve* s);

// bench.c
crd_dcp_plant crdi_serve_bench_plant(crdi_serve_bench* b);
void crdi_serve_bench_attach(crdi_serve_bench* b, crd_dcp_slave* slave);
void crdi_serve_bench_stop(crdi_serve_bench* b, double now);
void crdi_serve_bench_close(crdi_serve_bench* b);

// serve.c
crd_log_sink crdi_serve_take_line; // of s->log; any thread
void crdi_serve_find_templates(crdi_serve* s);
/// Lines that were taken become entries of the slave's log.
void crdi_serve_send_lines(crdi_serve* s);
/// An entry of this level of DCP (0 fatal .. 4 debug).
void crdi_serve_note(crdi_serve* s, uint8_t level, const char* text);
