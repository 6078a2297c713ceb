// modules: dcp base
// Any bytes as a PDU, as a CAN frame, and as a payload with a layout.
#include "shared/dcp.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void must(bool holds)
{
    if (!holds) { abort(); }
}

static void print(const crdi_dcp_pdu* p)
{
    const int length = crdi_dcp_print(p, NULL, 0);
    must(length > 0);
    char* text = malloc((size_t)length + 1);
    must(text && crdi_dcp_print(p, text, (size_t)length + 1) == length);
    must(strlen(text) == (size_t)length);
    free(text);
}

static void as_pdu(const uint8_t* data, size_t size)
{
    crdi_dcp_pdu p;
    const crdi_dcp_decoded got = crdi_dcp_decode(data, size, &p);
    if (got == CRDI_DCP_UNKNOWN) { return; }
    must(p.type == data[0] && crdi_dcp_type_name(p.type));
    print(&p);
    must((got == CRDI_DCP_BAD_LENGTH) == (p.bad_length != 0));
    if (got != CRDI_DCP_GOOD) { return; }
    uint8_t* again = malloc(size);
    must(again && crdi_dcp_encode(&p, again, size) == size);
    must(memcmp(again, data, size) == 0);
    must(crdi_dcp_encode(&p, again, size - 1) == size);
    free(again);
}

static void as_frame(const uint8_t* data, size_t size)
{
    if (size == 0) { return; }
    crdi_dcp_pdu p = {.type = data[0]};
    uint8_t again[CRDI_DCP_CAN_ROOM];
    if (crdi_dcp_can_decode(data + 1, size - 1, &p) != CRDI_DCP_GOOD) { return; }
    must(crdi_dcp_can_encode(&p, again) == (int)size - 1);
    must(memcmp(again, data + 1, size - 1) == 0);
}

// ---- values ------------------------------------------------------------------------------------

enum { SLOTS = 8, ROOM = 16 };

typedef struct store {
    double real[SLOTS * ROOM];
    int64_t integer[SLOTS * ROOM];
    uint8_t bytes[SLOTS * ROOM];
    uint32_t byte_count[SLOTS];
} store;

// Slots behind each other in the store, so that some can be joined.
static void lay_out(store* s, const uint8_t* recipe, int count, crd_dcp_slot* slots, uint8_t* types)
{
    uint32_t at = 0;
    for (int i = 0; i < count; i++) {
        const uint8_t type = recipe[2 * i] & 15, elements = recipe[2 * i + 1] & 15;
        slots[i] = (crd_dcp_slot){.type = type < CRD_DCP_DATA_TYPE_COUNT ? type : CRD_DCP_FLOAT64,
                                  .count = elements,
                                  .max_size = elements,
                                  .real = s->real + at,
                                  .integer = s->integer + at,
                                  .bytes = s->bytes + at,
                                  .byte_count = &s->byte_count[i]};
        // as the slot has it, or something else
        types[i] = recipe[2 * i] & 16 ? recipe[2 * i + 1] >> 4 : slots[i].type;
        at += elements;
    }
}

static bool is_alike(const crd_dcp_slot* slots, const uint8_t* types, int count)
{
    for (int i = 0; i < count; i++) {
        // a signalling NaN does not survive the way through double
        if (slots[i].type != types[i] || types[i] == CRD_DCP_FLOAT32) { return false; }
    }
    return true;
}

static void taken(crd_dcp_slot* slots, const uint8_t* types, int count, const uint8_t* payload,
                  size_t length)
{
    const size_t own = crdi_dcp_put(slots, count, NULL, 0);
    uint8_t *first = malloc(own + 1), *second = malloc(own + 1), own_types[SLOTS];
    must(first && second);
    must(crdi_dcp_put(slots, count, first, own) == own);
    if (is_alike(slots, types, count)) {
        must(own == length && (own == 0 || memcmp(first, payload, own) == 0));
    }
    for (int i = 0; i < count; i++) {
        own_types[i] = slots[i].type;
    }
    must(crdi_dcp_take(slots, own_types, count, first, own) == CRD_DCP_NONE);
    const int joined = crdi_dcp_join(slots, own_types, count);
    must(joined <= count);
    must(crdi_dcp_take(slots, own_types, joined, first, own) == CRD_DCP_NONE);
    must(crdi_dcp_put(slots, joined, second, own) == own && memcmp(first, second, own) == 0);
    free(first);
    free(second);
}

static void as_payload(const uint8_t* data, size_t size)
{
    if (size == 0) { return; }
    const int count = data[0] % (SLOTS + 1);
    const size_t begin = 1 + 2 * (size_t)count;
    if (size < begin) { return; }
    static store s, before;
    crd_dcp_slot slots[SLOTS];
    uint8_t types[SLOTS];
    memset(&s, 0x5A, sizeof s);
    before = s;
    lay_out(&s, data + 1, count, slots, types);
    const crd_dcp_error got = crdi_dcp_take(slots, types, count, data + begin, size - begin);
    if (got != CRD_DCP_NONE) {
        must(memcmp(&s, &before, sizeof s) == 0);
        return;
    }
    taken(slots, types, count, data + begin, size - begin);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    as_pdu(data, size);
    as_frame(data, size);
    as_payload(data, size);
    return 0;
}
