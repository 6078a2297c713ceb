// Frames out of a file decoded and encoded by a DBC file, for comparison with others.
//
//   dbc_peer FILE.dbc                 prints messages and fields, a line each
//   dbc_peer FILE.dbc FRAMES RESULTS  frames: u16 message, 64 bytes; little endian
//   results, of each frame: per field u8 present, u64 raw, f64 physical; then the message's bytes,
//   encoded by raw values and by physical ones
#include "shared/wire_can.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, FIELDS = 1024 };

static void list_messages(const crdi_wire_catalog* c)
{
    for (int i = 0; i < c->message_count; i++) {
        const crdi_wire_message* m = &c->messages[i];
        printf("BO %s %u %d %d %d %.17g %d\n", m->name, m->id, m->extended, m->fd, m->length,
               m->cycle, m->field_count);
        for (int k = 0; k < m->field_count; k++) {
            const crdi_wire_field* f = &m->fields[k];
            printf("SG %s %.17g %d \"%s\" \"%s\"\n", f->name, f->initial, f->item_count, f->unit,
                   f->comment);
        }
    }
}

static void work_on(const crdi_wire_message* m, const uint8_t* data, FILE* out)
{
    uint8_t raw_bytes[MOST + CRDI_WIRE_PAD] = {0}, bytes[MOST + CRDI_WIRE_PAD] = {0};
    double values[FIELDS];
    for (int k = 0; k < m->field_count; k++) {
        values[k] = m->fields[k].initial;
    }
    crdi_wire_decode(m, data, values);
    for (int k = 0; k < m->field_count; k++) {
        const crdi_wire_field* f = &m->fields[k];
        const uint8_t present = crdi_wire_present(m, f, data);
        const uint64_t raw = present ? crdi_wire_get_raw(f, data) : 0;
        if (present) { crdi_wire_put_raw(f, raw_bytes, raw); }
        fwrite(&present, 1, 1, out);
        fwrite(&raw, sizeof raw, 1, out);
        fwrite(&values[k], sizeof values[k], 1, out);
    }
    crdi_wire_encode(m, values, bytes);
    fwrite(raw_bytes, 1, (size_t)m->length, out);
    fwrite(bytes, 1, (size_t)m->length, out);
}

int main(int argc, char** argv)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_arena arena;
    crdi_wire_catalog c;
    crd_arena_init(&arena, ctx);
    if (argc < 2 || crdi_wire_dbc_read(&arena, argv[1], &c) < 0) {
        printf("%s\n", argc < 2 ? "dbc_peer FILE.dbc" : crd_error_text(ctx));
        crd_arena_clear(&arena);
        crd_context_destroy(ctx);
        return 1;
    }
    if (argc < 4) {
        list_messages(&c);
    } else {
        FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
        uint8_t frame[2 + MOST + CRDI_WIRE_PAD] = {0};
        while (in && out && fread(frame, 2 + MOST, 1, in) == 1) {
            const int i = frame[0] | frame[1] << 8;
            if (i >= c.message_count || c.messages[i].length > MOST) { abort(); }
            work_on(&c.messages[i], frame + 2, out);
        }
        if (!in || !out || fclose(out)) { return 1; }
        fclose(in);
    }
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    return 0;
}
