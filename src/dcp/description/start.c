// Start values as descriptions write them.
#include "shared/dcp.h"

#include <ctype.h>
#include <string.h>

static void read_text(crd_dcp_slot* slot, const char* start)
{
    const size_t length = strlen(start), room = slot->max_size;
    uint32_t count = 0;
    if (slot->type == CRD_DCP_STRING) {
        count = (uint32_t)(length < room ? length : room);
        if (count) { memcpy(slot->bytes, start, count); }
    } else {
        size_t n = 0;
        (void)crdi_dcp_hex_parse(start, length / 2 < room ? length / 2 * 2 : room * 2, slot->bytes,
                                 room, &n);
        count = (uint32_t)n;
    }
    *slot->byte_count = count;
}

bool crdi_dcp_parse_number(int data_type, const char* text, size_t length, double* real,
                           int64_t* integer)
{
    double least, most;
    uint64_t natural = 0;
    crdi_dcp_range(data_type, &least, &most);
    if (crdi_dcp_is_real(data_type)) {
        return crdi_parse_double(text, length, real) && *real >= least && *real <= most;
    }
    if (data_type == CRD_DCP_UINT64 && crdi_parse_uint64(text, length, &natural)) {
        *integer = (int64_t)natural;
        return true;
    }
    return crdi_parse_int64(text, length, integer) && (double)*integer >= least &&
           (double)*integer <= most;
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
    double x = 0;
    int64_t whole = 0;
    if (crdi_dcp_parse_number(type, at, length, &x, &whole)) {
        *real = x;
        *integer = whole;
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
