// Start values as descriptions write them.
#include "shared/dcp.h"

#include <ctype.h>
#include <string.h>

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c - 'A' + 10;
}

static void read_text(crd_dcp_slot* slot, const char* start)
{
    const size_t length = strlen(start), room = slot->max_size;
    uint32_t count = 0;
    if (slot->type == CRD_DCP_STRING) {
        count = (uint32_t)(length < room ? length : room);
        if (count) { memcpy(slot->bytes, start, count); }
    } else {
        for (size_t i = 0; i + 1 < length && count < room; i += 2) {
            if (!isxdigit((unsigned char)start[i]) || !isxdigit((unsigned char)start[i + 1])) {
                break;
            }
            slot->bytes[count++] = (uint8_t)(hex(start[i]) * 16 + hex(start[i + 1]));
        }
    }
    *slot->byte_count = count;
}

// The next number of a list; what stood there stays where the list is over.
static const char* read_number(const char* at, uint8_t type, double* real, int64_t* integer)
{
    while (isspace((unsigned char)*at)) {
        at++;
    }
    size_t length = 0;
    while (at[length] && !isspace((unsigned char)at[length])) {
        length++;
    }
    if (type == CRD_DCP_FLOAT32 || type == CRD_DCP_FLOAT64) {
        crdi_parse_double(at, length, real);
    } else if (type <= CRD_DCP_UINT64) {
        uint64_t u = 0;
        if (crdi_parse_uint64(at, length, &u)) { *integer = (int64_t)u; }
    } else {
        crdi_parse_int64(at, length, integer);
    }
    return at + length;
}

void crdi_dcp_read_start(const char* start, crd_dcp_slot* slot, uint32_t capacity)
{
    if (slot->type == CRD_DCP_STRING || slot->type == CRD_DCP_BINARY) {
        read_text(slot, start ? start : "");
        return;
    }
    double real = 0;
    int64_t integer = 0;
    for (uint32_t i = 0; i < capacity; i++) {
        if (start) { start = read_number(start, slot->type, &real, &integer); }
        if (slot->real) {
            slot->real[i] = real;
        } else {
            slot->integer[i] = integer;
        }
    }
}
