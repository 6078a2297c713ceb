// A line of a field or a checksum in, what Cardan makes of it out; for peer_codec.py.
//   field START LENGTH BIG TYPE FACTOR OFFSET RAW HEX   ->  raw, value, bytes with RAW put
//   checksum NAME FIRST COUNT OWN HEX                        ->  checksum
#include "shared/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 128 };

static int bytes_of(const char* hex, uint8_t* data)
{
    int n = 0;
    memset(data, 0xa5, MOST + CRDI_WIRE_PAD);
    for (unsigned byte; n < MOST && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++) {
        data[n] = (uint8_t)byte;
    }
    return n;
}

static int prepared(crd_context* ctx, crdi_wire_message* m)
{
    crdi_wire_catalog c = {.file = "tool", .messages = m, .message_count = 1};
    if (crdi_wire_prepare(ctx, &c) >= 0) { return 1; }
    printf("error %s\n", crd_error_text(ctx));
    return 0;
}

static void field_line(crd_context* ctx, const char* line)
{
    crdi_wire_field f = crdi_wire_field_init();
    crdi_wire_message m = crdi_wire_message_init();
    uint8_t data[MOST + CRDI_WIRE_PAD];
    char hex[2 * MOST + 1];
    int big, type;
    uint64_t raw;
    if (sscanf(line, "field %d %d %d %d %lf %lf %" SCNx64 " %256s", &f.start, &f.length, &big,
               &type, &f.factor, &f.offset, &raw, hex) != 8) {
        printf("error line\n");
        return;
    }
    m.length = bytes_of(hex, data);
    f.name = "x", f.big = big, f.type = (crdi_wire_type)type;
    m.name = "m", m.fields = &f, m.field_count = 1;
    if (!prepared(ctx, &m)) { return; }
    const double value = crdi_wire_get(&f, data);
    printf("%016" PRIx64 " %a ", crdi_wire_get_raw(&f, data), value);
    crdi_wire_put_raw(&f, data, raw);
    for (int i = 0; i < m.length + CRDI_WIRE_PAD; i++) {
        printf("%02x", data[i]);
    }
    printf(" %d", crdi_wire_put(&f, data, value));
    printf(" %016" PRIx64 "\n", crdi_wire_get_raw(&f, data));
}

static void checksum_line(crd_context* ctx, const char* line)
{
    crdi_wire_field f = crdi_wire_field_init();
    crdi_wire_message m = crdi_wire_message_init();
    uint8_t data[MOST + CRDI_WIRE_PAD];
    char hex[2 * MOST + 1], name[20];
    int first, count, own;
    if (sscanf(line, "checksum %19s %d %d %d %256s", name, &first, &count, &own, hex) != 5) {
        printf("error line\n");
        return;
    }
    m.length = bytes_of(hex, data);
    crdi_wire_checksum_init(&m.checksum, crdi_wire_checksum_find(name));
    m.checksum.first = first, m.checksum.count = count;
    f.name = "x", f.start = 8 * own, f.length = crdi_wire_checksum_bits(m.checksum.kind);
    m.name = "m", m.fields = &f, m.field_count = 1;
    if (!prepared(ctx, &m)) { return; }
    printf("%" PRIx32 "\n", crdi_wire_checksum_of(&m, data));
}

int main(void)
{
    crd_context* ctx = crd_context_create(NULL);
    char line[2048];
    if (!ctx) { return 1; }
    while (fgets(line, sizeof line, stdin)) {
        (line[0] == 'f' ? field_line : checksum_line)(ctx, line);
    }
    crd_context_destroy(ctx);
    return 0;
}
