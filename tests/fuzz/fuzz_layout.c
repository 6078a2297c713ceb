// modules: system wire quality archive base
//
// Any text as the layout of datagrams. What is accepted judges, decodes and encodes any bytes
// inside of its message, and what it has sealed it finds good.
#include "shared/system.h"
#include "shared/wire.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void must(bool holds)
{
    if (!holds) { abort(); }
}

static void there_and_back(const crdi_wire_message* m, const uint8_t* noise, size_t size)
{
    const size_t length = (size_t)m->length, room = length + CRDI_WIRE_PAD;
    uint8_t* data = calloc(room, 1);
    double* values = calloc((size_t)m->field_count + 1, sizeof *values);
    crdi_wire_state sent = {0}, got = {0};
    for (size_t i = 0; i < length; i++) {
        data[i] = noise[i % size];
    }
    (void)crdi_wire_judge(m, &got, data, length);
    (void)crdi_wire_judge(m, &got, data, length / 2);
    crdi_wire_decode(m, data, values);
    got = (crdi_wire_state){0};
    for (int i = 0; i < 20; i++) {
        (void)crdi_wire_encode(m, values, data);
        crdi_wire_seal(m, &sent, data);
        must(crdi_wire_judge(m, &got, data, length) == CRDI_WIRE_GOOD);
    }
    must(got.good == 20 && got.missing == 0);
    must(memcmp(data + length, (const uint8_t[CRDI_WIRE_PAD]){0}, CRDI_WIRE_PAD) == 0);
    free(values);
    free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_arena arena;
    crdi_wire_catalog c;
    crd_arena_init(&arena, ctx);
    if (crdi_layout_parse(ctx, (const char*)data, size, "fuzz.yaml", &arena, &c) < 0) {
        must(crd_error_text(ctx)[0]);
    } else {
        for (int i = 0; i < c.message_count; i++) {
            there_and_back(&c.messages[i], data, size);
        }
    }
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    return 0;
}
