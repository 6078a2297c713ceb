// What is known about a bench, for others to read while it is written: a sequence lock over words,
// so that readers see all of a state or try again, and the writer never waits.
#include "shared/board.h"
#include "shared/base.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { WORDS = (sizeof(crdi_board_state) + 7) / 8 };

struct crdi_board {
    crd_context* ctx;
    int64_t born; // ns on the monotonic clock
    crdi_board_state mine;
    _Atomic uint64_t turn; // odd: being written
    _Atomic uint64_t shown[WORDS];
};

static double age(const crdi_board* b)
{
    return 1e-9 * (double)(crdi_now_ns() - b->born);
}

crd_status crdi_board_create(crd_context* ctx, crdi_board** out)
{
    crdi_board* b = crdi_new(ctx, sizeof *b);
    if (!b) { return CRD_E_MEMORY; }
    b->ctx = ctx;
    b->born = crdi_now_ns();
    b->mine.state = -1;
    b->mine.last_data = b->mine.round_trip = b->mine.round_trip_max = NAN;
    b->mine.weight = 1;
    crdi_board_show(b);
    *out = b;
    return CRD_OK;
}

void crdi_board_destroy(crdi_board* b)
{
    if (b) { crd_free(b->ctx, b); }
}

void crdi_board_read(const crdi_board* b, crdi_board_state* out)
{
    uint64_t words[WORDS];
    uint64_t before, after;
    do { // a word of a newer state brings the odd number that was stored before it: `after` differs
        before = atomic_load_explicit(&b->turn, memory_order_acquire);
        for (size_t i = 0; i < WORDS; i++) {
            words[i] = atomic_load_explicit(&b->shown[i], memory_order_acquire);
        }
        after = atomic_load_explicit(&b->turn, memory_order_relaxed);
    } while (before != after || before % 2 != 0);
    memcpy(out, words, sizeof *out);
}

crdi_board_state* crdi_board_edit(crdi_board* b)
{
    return &b->mine;
}

int64_t crdi_board_born(const crdi_board* b)
{
    return b->born;
}

void crdi_board_note(crdi_board* b, crdi_board_what what, double value)
{
    crdi_board_note_at(b, what, value, age(b));
}

// The first half stays, the second half moves on: how it began and what is going on now.
void crdi_board_note_at(crdi_board* b, crdi_board_what what, double value, double time)
{
    crdi_board_state* s = &b->mine;
    const double newest = s->moment_count ? s->moments[s->moment_count - 1].time : 0;
    if (!(time > newest)) { time = newest; }
    if (s->moment_count == CRDI_BOARD_MOMENTS) {
        const int half = CRDI_BOARD_MOMENTS / 2;
        memmove(&s->moments[half], &s->moments[half + 1], (size_t)(half - 1) * sizeof *s->moments);
        s->moment_count--;
        s->moments_left_out++;
    }
    s->moments[s->moment_count++] = (crdi_board_moment){time, (int)what, value};
}

void crdi_board_show(crdi_board* b)
{
    uint64_t words[WORDS] = {0};
    b->mine.now = age(b);
    memcpy(words, &b->mine, sizeof b->mine);
    const uint64_t turn = atomic_load_explicit(&b->turn, memory_order_relaxed);
    atomic_store_explicit(&b->turn, turn + 1, memory_order_relaxed);
    for (size_t i = 0; i < WORDS; i++) { // each release keeps the odd number before it
        atomic_store_explicit(&b->shown[i], words[i], memory_order_release);
    }
    atomic_store_explicit(&b->turn, turn + 2, memory_order_release);
}
