// modules: wire base
//
// Any text as a DBC file. What is accepted decodes and encodes: the bits of what is there come
// back.
#include "shared/wire_can.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { BYTES = 2048 };

static void must(bool holds)
{
    if (!holds) { abort(); }
}

static void there_and_back(const crdi_wire_message* m, const uint8_t* noise, size_t size)
{
    uint8_t data[BYTES + CRDI_WIRE_PAD] = {0}, back[BYTES + CRDI_WIRE_PAD] = {0};
    must(m->length <= BYTES);
    for (int i = 0; size && i < m->length; i++) {
        data[i] = noise[(size_t)i % size];
    }
    double* values = calloc((size_t)m->field_count + 1, sizeof *values);
    crdi_wire_decode(m, data, values);
    for (int i = 0; i < m->field_count; i++) {
        const crdi_wire_field* f = &m->fields[i];
        if (!crdi_wire_present(m, f, data)) { continue; }
        crdi_wire_put_raw(f, back, crdi_wire_get_raw(f, data));
    }
    for (int i = 0; i < m->field_count; i++) {
        const crdi_wire_field* f = &m->fields[i];
        must(crdi_wire_present(m, f, data) == crdi_wire_present(m, f, back));
        must(!crdi_wire_present(m, f, data) ||
             crdi_wire_get_raw(f, data) == crdi_wire_get_raw(f, back));
    }
    (void)crdi_wire_encode(m, values, back);
    must(memcmp(back + m->length, (const uint8_t[CRDI_WIRE_PAD]){0}, CRDI_WIRE_PAD) == 0);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_arena arena;
    crdi_wire_catalog c;
    crd_arena_init(&arena, ctx);
    if (crdi_wire_dbc_parse(&arena, "fuzz.dbc", (const char*)data, size, &c) < 0) {
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
