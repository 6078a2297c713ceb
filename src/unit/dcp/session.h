// The session of DCP slaves between its files: session.c makes, plans and opens it, session_run.c
// runs it.
#pragma once
#include "shared/unit_ward.h"
#include "unit/dcp/dcp_unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

struct crdi_session {
    crd_context* ctx;            // of its own
    crdi_session **first, *next; // those of the store; first NULL: it has none
    crdi_dcp_unit** units;
    int count;
    size_t capacity;
    struct route {
        crdi_dcp_unit *from, *to;
        int32_t output, input;
    } * routes;
    int route_count;
    size_t route_capacity;

    crd_dcp_net* net;
    crd_dcp_capture* capture;
    crdi_ward* ward; // borrowed; NULL: nobody guards it
    int ward_session;
    crd_dcp_master* master;
    const volatile bool* interrupted;
    const bool* emergency; // atomic
    double interrupted_at; // when that was seen in a run, on the clock of the net; NAN before
    bool tried;            // it was brought up, or is
    crd_status status;     // of that
    pthread_t opener;      // who does it, beside those of other sessions
    bool opening;
    atomic_bool failed;    // it could not be brought up
    crdi_session* because; // another one could not
    bool running, halted, stopped;
    bool worded;             // a unit was told why it fails
    bool in_real_time;       // some slave is in SRT or HRT
    crdi_session* announced; // another one that begins with it
    double begin;            // time of the experiment at the start, s
    double start;            // the same on the clock of the net

    sem_t baton;
    atomic_int waiting;   // for it
    bool shared;          // several slaves, some with a budget
    atomic_bool given_up; // nobody waits for a slave any more
    atomic_bool quit;
    atomic_int uses; // of the session by the cycle thread
    pthread_t heartbeats;
    bool has_heartbeats;
};

// ---- session.c
void crdi_session_take_baton(crdi_session* s);
void crdi_session_give_baton(crdi_session* s);
bool crdi_session_take_baton_within(crdi_session* s, int64_t ns); // false: it does not come back
void crdi_session_pass_baton(crdi_session* s);                    // to who waits for it, and back
void crdi_session_end_opener(crdi_session* s);
void crdi_session_end_heartbeats(crdi_session* s);
// The sentence of the session becomes that of the unit, whose name need not be said twice; that of
// another one is. With the baton: the heartbeat thread leaves sentences, too.
crd_status crdi_session_word_failure(crdi_dcp_unit* u, crd_status st);
// The sentence of the bench's side, which stands behind the name of its unit anyway.
crd_status crdi_session_word_bench_failure(crdi_dcp_unit* u, crd_status st);
// The unit of whose slave the session says this, and behind its name what it says; NULL.
const crdi_dcp_unit* crdi_session_unit_of(const crdi_session* s, const char** text);
// With the set values of a bench kept to what was agreed; `seconds` since the last ones, 0: the
// first.
void crdi_session_put_inputs(crdi_dcp_unit* u, double seconds);
void crdi_session_get_outputs(crdi_dcp_unit* u);
// ---- session_run.c
void crdi_session_rest(crdi_session* s); // whatever turns is told to stop; with the baton
