// modules: system wire quality archive base
//
// Any bytes as what comes from a partner: each piece, whose length is in its first byte, is
// recognised and judged. Every one has an account, and nothing that is not good is decoded.
#include "shared/system.h"
#include "shared/wire.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static const char layout[] =
    "layout: 1\nkind: { at: 0, type: uint, bits: 2 }\nmessages:\n"
    "  a: { direction: receive, id: 1, counter: { field: n, modulus: 15 },\n"
    "       checksum: { field: c, type: xor8 },\n"
    "       fields: { n: { at: 1, type: uint, bits: 4 }, x: { type: int16 }, c: { type: uint8 } } "
    "}\n"
    "  b: { direction: receive, id: 2, counter: n, fields: { n: { at: 1, type: uint8 },\n"
    "       mode: { type: uint8 }, y: { at: 3, type: float32, when: { mode: 1 } },\n"
    "       z: { at: 3, type: uint, bits: 63, bit: 1, when: { mode: [2, 3] } } } }\n"
    "  c: { direction: receive, id: 3, checksum: { field: c, type: crc8 },\n"
    "       fields: { x: { at: 1, type: float64 }, c: { type: uint8 } } }\n";

enum { MESSAGES = 3 };

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_arena arena;
    crdi_wire_catalog c;
    crd_arena_init(&arena, ctx);
    if (crdi_layout_parse(ctx, layout, strlen(layout), "fuzz", &arena, &c) < 0) { abort(); }
    crdi_wire_state states[MESSAGES] = {0};
    int64_t counts[MESSAGES] = {0};
    double values[8] = {0};
    for (size_t at = 0; at < size;) {
        const size_t wanted = data[at++] % 16, left = size - at, n = wanted < left ? wanted : left;
        uint8_t* frame = calloc(n + CRDI_WIRE_PAD, 1); // behind it nothing may be touched
        memcpy(frame, data + at, n);
        at += n;
        const crdi_wire_message* m = crdi_wire_recognise(&c, frame, n);
        if (m) {
            const int k = (int)(m - c.messages);
            counts[k]++;
            if (crdi_wire_judge(m, &states[k], frame, n) == CRDI_WIRE_GOOD) {
                crdi_wire_decode(m, frame, values);
            }
        }
        free(frame);
    }
    for (int k = 0; k < MESSAGES; k++) {
        const crdi_wire_state* s = &states[k];
        if (s->good + s->length + s->checksum + s->counter + s->repeated + s->old != counts[k]) {
            abort();
        }
    }
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    return 0;
}
