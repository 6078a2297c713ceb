// Values between the vectors of units and the slots of DCP.
#include "shared/unit_dcp.h"

#include <string.h>

bool crdi_dcp_slot_set(const crd_dcp_slot* to, const crd_values* from, int32_t at)
{
    if (crdi_dcp_is_bytes(to->type)) {
        const crd_bytes* b = &from->bytes[at];
        if (b->length > to->max_size) { return false; }
        if (b->length) { memcpy(to->bytes, b->data, b->length); }
        *to->byte_count = (uint32_t)b->length;
    } else if (crdi_dcp_is_real(to->type)) {
        memcpy(to->real, from->real + at, to->count * sizeof *to->real);
    } else {
        memcpy(to->integer, from->integer + at, to->count * sizeof *to->integer);
    }
    return true;
}

crd_status crdi_dcp_slot_get(crd_context* ctx, const crd_dcp_slot* from, crd_values* to, int32_t at)
{
    if (crdi_dcp_is_bytes(from->type)) {
        return crd_bytes_set(ctx, &to->bytes[at], from->bytes, *from->byte_count);
    }
    if (crdi_dcp_is_real(from->type)) {
        memcpy(to->real + at, from->real, from->count * sizeof *from->real);
    } else {
        memcpy(to->integer + at, from->integer, from->count * sizeof *from->integer);
    }
    return CRD_OK;
}
