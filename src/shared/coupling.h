/// What modules share of the coupling elements beside cardan/coupling.h.
#pragma once
#include "cardan/coupling.h"
#include "cardan/pair.h"
#include "shared/base.h"

/// The weights of a network in the order W1 b1 W2 b2, those of `more` layers, W3 b3.
typedef struct crdi_network_part {
    const char* name;
    const crd_real* w;
    int count;
} crdi_network_part;
enum { CRDI_NETWORK_PARTS = 10 };

int crdi_network_parts(const crd_network* n, crdi_network_part parts[CRDI_NETWORK_PARTS]);
size_t crdi_network_weights(const crd_network* n);           ///< b3 included
int crdi_network_last(const crd_network* n);                 ///< neurons of the last hidden layer
static inline int crdi_network_columns(const crd_network* n) ///< of W2
{
    return n->n1 > 0 ? n->n1 : n->m;
}
bool crdi_network_has_shape(const crd_network* n); ///< one that is allowed, with alpha
bool crdi_network_same_shape(const crd_network* a, const crd_network* b);
/// One after the other in `weights` (crdi_network_weights), and a network that points there.
void crdi_network_flatten(const crd_network* n, crd_real* weights);
void crdi_network_place(crd_network* n, const crd_real* weights);
/// The network of crd_network_morph_to into `weights` (crdi_network_weights), for the shape of `n`.
/// false: a layer has a single leaky ReLU.
bool crdi_network_make_linear(crd_network* n, const crd_real* a, crd_real b, crd_real* weights);

/// An element that stands within a larger description; `root` outlives it.
crd_status crdi_element_read(crd_context* ctx, const crdi_json* root, const char* file,
                             crd_element** out);

typedef struct crdi_coupling_emit_options {
    const char* name;   ///< a name of C
    const char* origin; ///< for the comment at the top
    double step;
    bool single;
} crdi_coupling_emit_options;

/// A linear algorithm for one latency as a file of C and its header; `*cost`: sums and products of
/// an estimate at most. `hold`: between macro steps, too. Samples in order give the bits of
/// crd_coupling without detection.
void crdi_coupling_emit(const crd_linear* l, bool hold, const crdi_coupling_emit_options* o,
                        crd_text* source, crd_text* header, int* cost);

enum { CRDI_PAIR_OVER_RING = 64 };

/// Commands on top of one side of a pair: predicts the wave that will answer to what is sent now,
/// and puts it in the place of what has arrived while its error is below half of that one's. The
/// tank pays as before. Per macro step: `receive` after each packet that the port has taken,
/// `begin` before its first inner step, `sent` after crd_pair_send. Times are the port's.
typedef struct crdi_pair_over {
    crd_coupling* element;
    double macro, start;
    double predicted[CRDI_PAIR_OVER_RING], late[CRDI_PAIR_OVER_RING]; // waves by macro step
    double error, error_late;                                         // squared, of the last 2 s
    int64_t n, used; // macro steps; those in which it acted
} crdi_pair_over;

/// `element` belongs to the caller: crd_coupling_destroy.
crd_status crdi_pair_over_init(crd_context* ctx, crdi_pair_over* o, double macro, double start);
void crdi_pair_over_receive(crdi_pair_over* o, const crd_pair_port* p, const crd_pair_packet* k);
void crdi_pair_over_begin(crdi_pair_over* o, crd_pair_port* p, double t);
void crdi_pair_over_sent(crdi_pair_over* o, const crd_pair_port* p, const crd_pair_packet* k);

/// Whether a unit answers its port with the right sign: how the own value bends when the action
/// changes. A mass falls behind an effort that resists, a spring answers a flow with an effort of
/// its sign; both sides of a bond the other way round are a wrong sign.
typedef struct crdi_pair_answer {
    double bent, action; // mean - begin, and the action, of the inner step before
    double xx, yy, xy;
    int64_t count;
} crdi_pair_answer;

void crdi_pair_answer_note(crdi_pair_answer* a, const crd_pair_port* p, double mean); ///< each step
/// -1 wrong to 1 right; 0: not known yet.
double crdi_pair_answer_of(const crdi_pair_answer* a);

/// Told where the addresses stand that change while it runs.
typedef void crdi_note_moving(void* user, const void* at);
void crdi_coupling_moving(const crd_coupling* c, crdi_note_moving* note, void* user);
