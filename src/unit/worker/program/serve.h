// What the worker process knows. Not trusted by the master, which does not trust it either.
#pragma once
#include "unit/worker/channel.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CRDI_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CRDI_SANITIZED
#endif
#endif

typedef struct crdi_bound {
    crd_binding* binding; // NULL: this handle is free
    crdi_channel_area area;
    crd_values values; // over the area; texts are here
    uint32_t watch;
} crdi_bound;

// A unit.
typedef struct crdi_served {
    crd_unit* unit;
    crd_arena arena; // texts of the spec
    crd_unit_spec spec;
    crdi_answer* answer;
    char* text;
    crdi_bound* bound;
    size_t bound_capacity;
    int32_t bound_count;
    int32_t* watched; // handles, in the order in which they are fetched
    size_t watched_capacity;
    int32_t watched_count;
    crdi_channel_gain gains[CRDI_CHANNEL_GAINS];
    double* gain_values;
    int32_t gain_count;
    void** states;
    size_t state_capacity;
    int32_t state_count;
    void* kept;      // of KEEP
    crd_status late; // of a request that is not answered
    // what the master knows of the unit from steps in a row; `known`: nothing else has been since
    bool known, known_stop;
    int64_t known_events;
    double known_next_event;
    int64_t steps, measured, ns; // so far; of these, and how long they took
} crdi_served;

typedef struct crdi_seat crdi_seat; // of a unit that is stepped in a row with others

typedef struct crdi_server {
    crd_context* ctx;
    crd_unit_store* store;
    char* memory;
    crdi_control* control;
    int32_t master; // its process
    crdi_served** units;
    size_t capacity;
    int32_t count;
    crdi_seat* seats;
    size_t seat_capacity;
    int32_t seat_count;
    crd_lane** lanes; // of seats, in blocks that stay where they are
    size_t lane_capacity;
    int32_t lane_blocks;
    int64_t rows;       // so far
    const char* inputs; // of the last step: those of the next are likely there, too
    bool in_call;       // of a unit: control->unit
} crdi_server;

extern const char* crdi_worker_library; // of the unit that is made, as the master says

// ---- serve.c -----------------------------------------------------------------------------------

// Reads what the master will ask for, but for the binding `but`. false: in vain.
bool crdi_served_fetch(crdi_served* u, int32_t but);
// What is to be said of a unit, without the number.
void crdi_served_report(crdi_served* u, const crd_context* ctx, crd_status st, uint32_t flags);
void crdi_serve_answer(crdi_server* s, crdi_answer* a, const crdi_request* r); // and the number

// Now and then it is measured what a step costs, for the next run; not the first one.
static inline bool crdi_served_measures(int64_t steps)
{
    return steps % 1024 < 16 && steps > 0;
}
void crdi_served_note_step(crdi_served* u, int64_t ns);

// ---- row.c -------------------------------------------------------------------------------------

crd_status crdi_serve_seat(crdi_server* s, crdi_served* u, const crdi_request* r, crdi_mail* m);
void crdi_serve_row(crdi_server* s, const crdi_request* r);

// ---- serve.c -----------------------------------------------------------------------------------

// Carries out requests until the process is ended from outside. Returns when it cannot begin.
int crdi_serve(crdi_server* s);
