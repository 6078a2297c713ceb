// Events for the watcher: any thread writes, nobody waits. A writer takes a number and with it a
// slot; the slot's turn tells whether what stands in it is whole and which number it has.
#include "master/live/live.h"

#include <string.h>

enum { WORDS = 2 + CRDI_LIVE_TEXT / 8, BEHIND = 64 };

// Bytes of the character that `s` begins with, 0 if it is none (RFC 3629).
static size_t character(const unsigned char* s)
{
    const unsigned char a = s[0];
    const size_t n = a < 0x80 ? 1 : a < 0xC2 ? 0 : a < 0xE0 ? 2 : a < 0xF0 ? 3 : a < 0xF5 ? 4 : 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) { return 0; }
    }
    const bool low = (a == 0xE0 && s[1] < 0xA0) || (a == 0xF0 && s[1] < 0x90);
    const bool high = (a == 0xED && s[1] >= 0xA0) || (a == 0xF4 && s[1] >= 0x90);
    return low || high ? 0 : n;
}

void crdi_live_copy_text(char* out, size_t room, const char* text)
{
    size_t at = 0;
    for (const unsigned char* s = (const unsigned char*)text; *s;) {
        const size_t n = character(s);
        if (at + (n ? n : 1) >= room) { break; }
        if (n == 0 || (n == 1 && (*s < 0x20 || *s == 0x7F))) {
            out[at++] = n == 0 ? '?' : ' ';
            s++;
            continue;
        }
        memcpy(out + at, s, n);
        at += n;
        s += n;
    }
    memset(out + at, 0, room - at);
}

void crdi_live_put_event(crdi_live* l, crd_event_kind kind, double time, const char* text)
{
    const uint64_t number = atomic_fetch_add_explicit(&l->event_count, 1, memory_order_relaxed) + 1;
    crdi_live_slot* s = &l->events[number % CRDI_LIVE_EVENTS];
    uint64_t words[WORDS] = {0};
    memcpy(&words[0], &time, sizeof time);
    words[1] = (uint64_t)kind;
    crdi_live_copy_text((char*)&words[2], CRDI_LIVE_TEXT, text);

    // Somebody who has slept for a thousand events may still be at it: then this one is lost.
    uint64_t turn = atomic_load_explicit(&s->turn, memory_order_relaxed);
    if (turn % 2 == 1 || turn > 2 * number ||
        !atomic_compare_exchange_strong_explicit(&s->turn, &turn, 2 * number - 1,
                                                 memory_order_acq_rel, memory_order_relaxed)) {
        return;
    }
    for (int i = 0; i < WORDS; i++) {
        atomic_store_explicit(&s->words[i], words[i], memory_order_release);
    }
    atomic_store_explicit(&s->turn, 2 * number, memory_order_release);
}

void crdi_live_note_event(crd_master* m, crd_event_kind kind, double time, const char* text)
{
    if (m->live) { crdi_live_put_event(m->live, kind, time, text); }
}

typedef enum { WHOLE, NOT_YET, GONE } found;

static found read_slot(crdi_live_slot* s, uint64_t number, crdi_live_event* out)
{
    uint64_t words[WORDS];
    const uint64_t before = atomic_load_explicit(&s->turn, memory_order_acquire);
    if (before != 2 * number) { return before < 2 * number ? NOT_YET : GONE; }
    for (int i = 0; i < WORDS; i++) {
        words[i] = atomic_load_explicit(&s->words[i], memory_order_acquire);
    }
    if (atomic_load_explicit(&s->turn, memory_order_relaxed) != before) { return GONE; }
    *out = (crdi_live_event){.number = (int64_t)number, .kind = (int)words[1]};
    memcpy(&out->time, &words[0], sizeof out->time);
    memcpy(out->text, &words[2], sizeof out->text);
    return WHOLE;
}

bool crdi_live_get_event(crdi_live* l, int64_t after, crdi_live_event* out)
{
    const uint64_t count = atomic_load_explicit(&l->event_count, memory_order_acquire);
    uint64_t n = after > 0 ? (uint64_t)after + 1 : 1;
    if (n + CRDI_LIVE_EVENTS <= count) { n = count - CRDI_LIVE_EVENTS + 1; }
    for (; n <= count; n++) {
        const found f = read_slot(&l->events[n % CRDI_LIVE_EVENTS], n, out);
        if (f == WHOLE) { return true; }
        if (f == NOT_YET && count - n < BEHIND) { return false; } // its writer is at it
    }
    return false;
}
