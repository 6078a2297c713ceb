// A unit with a stand-in: the primary (a bench, as a rule) and a model that runs beside it and
// takes over when it drops out. Seen from outside it is the primary, with some variables more.
//
// Threads: the unit belongs to the cycle thread, and so does the primary while its seat is there.
// One that has failed is handed to the attendant, a thread of the unit's own, which lets another
// thread bring a new one up and hands it back; `post` says whose it is. The attendant keeps the
// board, too. The cycle thread never waits for either.
#pragma once
#include "shared/base.h"
#include "shared/board.h"
#include "unit/unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

// One variable on its way between the unit's own values and those of a binding.
typedef struct crdi_way {
    int32_t own;      // variable here
    int32_t there;    // variable of the other unit
    int32_t at, slot; // first element in our values and in theirs
    uint32_t size;    // elements
    crd_kind kind;
    bool measured;       // into the model: what the primary says, not what it is told
    double gain, offset; // real: what arrives = gain * what leaves + offset
} crdi_way;

// Values that go together to or from a unit.
typedef struct crdi_strand {
    crd_binding* binding; // NULL: none
    crd_values values;
    crdi_way* ways; // (count)
    int count;
} crdi_strand;

// A primary with its strands.
typedef struct crdi_standby_seat {
    crd_context* ctx; // of whoever made it
    crd_unit* unit;
    crdi_strand in, out;
    bool alive;  // instantiated: terminate is due
    bool failed; // what it says in the end is no news
} crdi_standby_seat;

// An output, which both may have.
typedef struct crdi_twofold {
    int32_t own;
    crd_kind kind;
    int32_t at;
    uint32_t size;
    bool continuous;  // real, and without steps when hands change
    bool modelled;    // else it is held
    int32_t model_at; // of the variable model.<name>, where modelled
} crdi_twofold;

typedef enum crdi_use { CRDI_USE_AUTO, CRDI_USE_BENCH, CRDI_USE_MODEL } crdi_use;

// Whose the primary is.
typedef enum crdi_post {
    CRDI_POST_HERE,   // the cycle thread's
    CRDI_POST_AWAY,   // nobody's: the run began with the model
    CRDI_POST_WANTED, // the attendant's: to be brought up; it begins with what is left of the old
    CRDI_POST_COMING, // being brought up
    CRDI_POST_READY,  // brought up, for the cycle thread to take
    CRDI_POST_GONE,   // for good
} crdi_post;

typedef enum crdi_why {
    CRDI_WHY_NONE,
    CRDI_WHY_WANTED,  // by standby.use
    CRDI_WHY_SILENT,  // no new data
    CRDI_WHY_NUMBERS, // outputs that are none
    CRDI_WHY_FAILED,  // with a sentence
    CRDI_WHY_COUNT,
} crdi_why;

typedef struct crdi_standby {
    crd_unit base;
    char remark[200];
    crd_arena arena;
    crd_map names;
    crd_unit_spec primary, model_spec; // as they are made
    crd_unit_spec again;               // the primary, as it is brought up again
    crd_variable* variables;
    int32_t primary_count;       // variables of the primary, which come first
    int32_t use, active, weight; // variables
    crd_dependencies outputs, initial;
    int32_t* offsets; // of each variable in the vector of its kind
    size_t real_count, integer_count, bytes_count;
    crd_values values; // what the run sees, inputs among it
    crd_values seen;   // outputs of the primary
    crd_values shadow; // outputs of the model, in the primary's units; of those that it has not
                       // what they are held at
    double* before;    // real ones of `shadow` a step ago (real_count)
    double* rest;      // (real_count) what is left of the difference at the last change of hands
    double* size;      // (real_count) largest magnitude so far
    double* apart;     // (real_count) how far the two were from each other at the last look
    crdi_twofold* twofold;
    int twofold_count;
    crdi_way *into, *out; // of the strands of the model
    int into_count, out_count;
    bool* wanted; // per variable of the primary: bound by somebody

    _Atomic(crdi_standby_seat*) seat; // the cycle thread's, NULL: not here
    crdi_standby_seat first;          // describes the variables as long as the unit is there
    crd_unit* model;
    crdi_strand to_model, from_model;
    bool model_alive;
    bool feeds_back; // the model takes what the primary measures
    bool is_twin;    // to which NaN is no measurement
    bool real_time;

    crd_experiment experiment;
    bool opened, configured, initializing, dirty, begun;
    double start;
    double after, fade;    // s; after NaN: not known yet
    double h, decay;       // of the last step
    crdi_use use_wanted;   // standby.use
    int source;            // crd_board_source, without COMING
    double part;           // weight of the bench
    bool good, model_good; // have outputs that can be used
    bool model_failed;     // for good
    bool expected;         // the primary is away, and is to come
    double fresh;          // s of the run: when data came last
    double look_at;        // when the two are compared again, while the bench is not taken yet
    int looks;
    bool settled;        // the bench has stopped approaching the model
    int64_t seen_in;     // messages of the link so far
    int64_t unit_events; // of both, those that are known
    crdi_why why;        // the model is in use
    crdi_why trouble;    // of the primary now
    char failure[200];   // its sentence
    crd_link_stats link; // as it was last, of all sessions together
    crd_link_stats past; // of those before this one
    const char* prefix;  // of remarks: "em: "
    const char* silent;  // "no new data for 50 ms"

    // For other threads, written by the cycle thread.
    _Atomic int64_t takeovers, returns;
    _Atomic int shown_source, shown_why;
    _Atomic double shown_part, stood_in, now;
    _Atomic int64_t origin;
    _Atomic uint64_t* mirror; // inputs while the primary is away (real_count + integer_count)

    _Atomic int post;
    crdi_standby_seat* passing; // with WANTED the old one or NULL, with READY the new one
    bool quit;                  // atomic: the run is over
    _Atomic bool done;          // the attendant may go
    sem_t wake, enough;         // of the attendant, of the one who brings up
    sem_t calm;                 // nothing is brought up any more ...
    bool gathered;              // ... which the cycle thread knows
    bool has_sems, has_attendant;
    pthread_t attendant, restarter;
    bool restarting; // the attendant's
    _Atomic bool restart_done;
    crd_context* helper;  // of the thread that brings up
    pthread_mutex_t desk; // of the next two, between these two threads; and of the board at the end
    crd_unit* boarded;    // whose board is copied
    char hitch[200];      // why the primary is not back
    char lost[200];       // the attendant's: why it was lost
    crdi_board* board;
    crdi_board_state* copy;
    int64_t born;           // ns, of the board
    const void* copied;     // board that was read last ...
    int64_t copied_moments; // ... and how many of its moments were
    bool copied_first;      // it is that of the first primary,
    int64_t first_moments;  // of which so many were when another one's was read
    int shown_on_board;     // source that stands there, -1
} crdi_standby;

// ---- describe.c: variables, and how they go with those of the model
crd_status crdi_standby_match(crdi_standby* u); // first
crd_status crdi_standby_describe(crdi_standby* u);

// ---- values.c
crd_status crdi_strand_create(crd_context* ctx, crd_unit* unit, const crdi_way* ways, int count,
                              crdi_strand* out);
void crdi_strand_clear(crd_context* ctx, crdi_strand* s);
// From our values into those of the binding and into the unit, and back.
crd_status crdi_strand_set(const crdi_standby* u, crdi_strand* s);
crd_status crdi_strand_get(crdi_standby* u, crdi_strand* s, crd_values* to);
crd_status crdi_seat_bind(crdi_standby* u, crdi_standby_seat* s); // its strands
void crdi_seat_clear(crdi_standby_seat* s);                       // with its unit
crd_status crdi_standby_make_room(crdi_standby* u);
void crdi_standby_clear_values(crdi_standby* u);

// ---- change.c: whom to trust, and the change of hands
// A step of the primary is over: is it good?
void crdi_standby_judge(crdi_standby* u, double t);
// The step of the primary failed: it is not ours any more. Says so by what it returns if nobody can
// stand in for it.
crd_status crdi_standby_lose(crdi_standby* u, crd_status st);
// A primary that was brought up is taken.
void crdi_standby_meet(crdi_standby* u, double t);
// Decides whose outputs they are at t, the end of a step of h, and makes them.
crd_status crdi_standby_hand_out(crdi_standby* u, double t, double h);
const char* crdi_standby_reason(const crdi_standby* u, crdi_why why); // a constant text

// ---- attend.c
// false: no threads; a test calls the next two by itself.
extern bool crdi_standby_has_threads;
// Waits until `until` on the monotonic clock: a test may have another one.
extern void (*crdi_standby_wait)(crdi_standby* u, int64_t until);
crd_status crdi_standby_open(crdi_standby* u); // semaphores and the attendant
void crdi_standby_give_up(crdi_standby* u);    // whoever brings up gives up
void crdi_standby_gather(crdi_standby* u);     // and has: all seats are the cycle thread's
void crdi_standby_close(crdi_standby* u);      // nobody is left but the cycle thread
// One attempt to bring the primary up; READY if it could be.
crd_status crdi_standby_bring_up(crdi_standby* u);
void crdi_standby_show(crdi_standby* u); // on the board
