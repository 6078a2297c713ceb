/// Learning: from a recorded or running signal to a network that continues it better.
///
/// Training runs aside of the step: in `cardan coupling learn train` on a recording, or in the
/// server
/// (`cardan coupling learn serve`), a process of its own. Elements send it their samples and get
/// networks back through a client that never blocks, so a server that dies costs nothing but the
/// learning. client.c and message.c use libc alone and go into exported FMUs.
#pragma once
#include "cardan/base.h"
#include "cardan/coupling.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- training ----------------------------------------------------------------------------------

typedef enum crd_training_method {
    CRD_TRAIN_ADAM,  ///< gradient descent from the network as it is (Baumann 2020)
    CRD_TRAIN_RIDGE, ///< least squares on differences, written into a linear network by morphism
} crd_training_method;

/// How a network is trained to say y_s from y_{s-k}, y_{s-k-1}, ... Start from
/// crd_training_defaults().
typedef struct crd_training {
    crd_training_method method; ///< default CRD_TRAIN_ADAM
    int k;                      ///< latency in macro steps; no default
    int epochs;                 ///< Adam, in all; default 1000
    int batch;                  ///< samples per step, 0: all of them; default 0
    double rate;                ///< Adam's first learning rate; default 1e-2
    int stages;           ///< the rate falls by half a decade after each epochs / stages; default 4
    double ridge;         ///< pull towards the network it started from, relative; default 1e-3
    double hold_out;      ///< part at the end that is not trained on but judged by; default 0.2
    bool freeze_biases;   ///< keeps constants and the smooth part as they are; default true
    bool drop_after_jump; ///< targets that no past sample could tell do not count; default true
    uint64_t seed;        ///< order of the samples in mini-batches; default 1
    /// Adam: the error on the smooth part may become so many times as large (root mean square) and
    /// no larger; what descent finds competes with least squares whose expectation is limited
    /// where the data jumps, and with the start. 0: descent alone, whatever it does. Default 1.5
    double protect;
    const volatile bool* stop; ///< true: Adam ends without a result, soon; default NULL
} crd_training;

CRD_API crd_training crd_training_defaults(void);

typedef struct crd_training_report {
    int64_t pairs, dropped;         ///< used; left out because of jumps or gaps
    int epochs;                     ///< done
    double loss_before, loss_after; ///< mean squared error on what was trained on
    double held_before, held_after; ///< on what was held out; if nothing was, the same as loss_
    bool better;                    ///< worth a swap: less error on what was held out and at jumps
    int64_t jumps;                  ///< pairs with a jump between their inputs
    double smooth_before, smooth_after; ///< mean squared error on all others
    bool guarded;                       ///< the network limits what it expects: no overshoot
} crd_training_report;

/// `y` (n) samples at macro steps, oldest first; NaN: a gap. `start` is not changed; `*out` (its
/// memory from `ctx`, crd_network_clear) has the same shape. The same arguments give the same
/// network. `loss` (may be NULL) gets Adam's training loss before each epoch (epochs), NaN for
/// those that were not done. Pairs with a jump between their inputs are rare: descent has them
/// wherever they are, least squares does without them.
/// CRD_E_RANGE: too few samples for the taps, or an argument makes no sense.
CRD_API crd_status crd_learn_train(crd_context* ctx, const crd_training* t, const double* y,
                                   int64_t n, const crd_network* start, crd_network* out,
                                   crd_training_report* report, double* loss);

// ---- server ------------------------------------------------------------------------------------

typedef struct crd_learn_server crd_learn_server; ///< opaque

typedef enum crd_learn_event_kind {
    CRD_LEARN_JOINED,      ///< an element has said what it is
    CRD_LEARN_TRAINED,     ///< `generation` > 0: and the network was sent to it
    CRD_LEARN_SWAPPED,     ///< the element has taken it, on trial
    CRD_LEARN_KEPT,        ///< ... and keeps it
    CRD_LEARN_REFUSED,     ///< ... or has not taken it
    CRD_LEARN_ROLLED_BACK, ///< ... or has gone back to the one before
    CRD_LEARN_LEFT,        ///< `text` says why
} crd_learn_event_kind;

/// What happened to an element. Texts are valid during the call.
typedef struct crd_learn_event {
    crd_learn_event_kind kind;
    const char* name;           ///< of the element
    const char* text;           ///< why it left, why nothing was sent; "" none
    const crd_network* network; ///< that it uses; its shape counts
    int64_t samples, jumps;     ///< in its history; discontinuities among those it has sent
    int64_t generation;         ///< of the network that this is about, 0: none
    int k;                      ///< trained for this latency
    double seconds;             ///< that training took
    crd_training_report report; ///< of CRD_LEARN_TRAINED
} crd_learn_event;

typedef struct crd_learn_server_options {
    const char* address; ///< "unix:PATH" or "tcp:ADDRESS:PORT" (port 0: any)
    void (*note)(void* user, const crd_learn_event* e); ///< on the thread of run; NULL: nobody
    void* note_user;
    crd_training training; ///< k comes from the elements
    int64_t every;         ///< new samples before an element is trained again; default 5000
    int64_t keep;          ///< samples kept per element; default 20000
    int clients;           ///< at most; default 64
    bool plain;            ///< may listen beyond this host, although nothing is authenticated
} crd_learn_server_options;

CRD_API crd_learn_server_options crd_learn_server_defaults(void);
/// Listens at once. CRD_E_IO: the address is in use or cannot be had.
CRD_API crd_status crd_learn_server_create(crd_context* ctx, const crd_learn_server_options* opt,
                                           crd_learn_server** out);
/// Serves until `*stop` becomes true (a signal handler may set it) or the time (s, NaN: for ever)
/// is over; 0 deals with what is there already. Trains on a thread of its own, one element at a
/// time; what is under way at the end is given up. A client that sends nonsense is dismissed with
/// a sentence in the log; others go on.
CRD_API crd_status crd_learn_server_run(crd_learn_server* s, const volatile bool* stop,
                                        double seconds);
/// Where it really listens.
CRD_API const char* crd_learn_server_address(const crd_learn_server* s);
CRD_API void crd_learn_server_destroy(crd_learn_server* s);

// ---- client ------------------------------------------------------------------------------------

typedef struct crd_learn_client crd_learn_client; ///< opaque

typedef enum crd_learn_link {
    CRD_LEARN_OFFLINE, ///< nobody there; tried again now and then
    CRD_LEARN_CONNECTING,
    CRD_LEARN_ONLINE,
} crd_learn_link;

typedef struct crd_learn_client_counts {
    int64_t sent, dropped;       ///< samples; dropped while nobody listened or the buffer was full
    int64_t networks, refused;   ///< received; refused for size, numbers or sums
    int64_t connects, malformed; ///< connections made; messages that ended one
} crd_learn_client_counts;

/// For one coupling element with a network, which is borrowed and outlives the client. Nothing is
/// sent before the first push. The address is numeric, nothing is looked up. CRD_E_RANGE: it makes
/// no sense.
CRD_API crd_status crd_learn_client_create(crd_context* ctx, const char* address, const char* name,
                                           double step, crd_coupling* element,
                                           crd_learn_client** out);
/// Once per macro step, after the element's push: the sample on its way to the server, and a
/// network that came back into the element (crd_coupling_swap). `now` (s, any clock that rises)
/// paces reconnection. Never blocks, never fails, does not allocate.
CRD_API void crd_learn_client_step(crd_learn_client* c, double sample, double stamp, double now);
CRD_API crd_learn_link crd_learn_client_link(const crd_learn_client* c);
CRD_API crd_learn_client_counts crd_learn_client_get_counts(const crd_learn_client* c);
CRD_API void crd_learn_client_destroy(crd_learn_client* c);

#ifdef __cplusplus
}
#endif
