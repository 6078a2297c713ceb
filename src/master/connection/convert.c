// Connections that change the type of a value, or whose values are not real numbers.
#include "master/master.h"

#include <math.h>
#include <string.h>

static double as_real(const crdi_conversion* c)
{
    if (crd_type_kind(c->from_type) == CRD_REAL) { return *(const double*)c->from; }
    const int64_t i = *(const int64_t*)c->from;
    return c->from_type == CRD_UINT64 ? (double)(uint64_t)i : (double)i;
}

// Nearest integer that the type can hold: a connection does not fail in a step.
static int64_t to_integer(double x, int type)
{
    static const struct {
        double low, high;
    } range[CRD_TYPE_COUNT] = {
        [CRD_INT8] = {-128, 127},
        [CRD_UINT8] = {0, 255},
        [CRD_INT16] = {-32768, 32767},
        [CRD_UINT16] = {0, 65535},
        [CRD_INT32] = {-2147483648.0, 2147483647},
        [CRD_UINT32] = {0, 4294967295.0},
        [CRD_INT64] = {-9223372036854775808.0, 9223372036854774784.0},
        [CRD_UINT64] = {0, 18446744073709549568.0},
        [CRD_ENUMERATION] = {-2147483648.0, 2147483647},
    };
    if (type == CRD_BOOLEAN) { return x != 0; }
    if (isnan(x)) { return 0; }
    x = fmin(fmax(nearbyint(x), range[type].low), range[type].high);
    return type == CRD_UINT64 ? (int64_t)(uint64_t)x : (int64_t)x;
}

static bool is_wide(int type)
{
    return type == CRD_INT64 || type == CRD_UINT64;
}

static bool convert_by_mapping(const crdi_conversion* c)
{
    bool fits = false;
    crdi_scalar x = {.integer = *(const int64_t*)c->from};
    if (!crdi_mapping_apply(c->mapping, c->from_type == CRD_UINT64, &x, &fits)) { return false; }
    if (crd_type_kind(c->to_type) == CRD_REAL) {
        *(double*)c->to = x.is_real ? x.real : (double)x.integer;
    } else if (x.is_real) {
        *(int64_t*)c->to = to_integer(x.real, c->to_type);
    } else {
        *(int64_t*)c->to = fits ? x.integer : to_integer((double)x.integer, c->to_type);
    }
    return true;
}

void crdi_convert(const crdi_conversion* c)
{
    if (c->mapping && convert_by_mapping(c)) { return; } // what no stage changed goes on as it is
    const bool to_real = crd_type_kind(c->to_type) == CRD_REAL;
    if (!to_real && !c->transform && c->from_type == c->to_type) { // all 64 bits survive
        *(int64_t*)c->to = *(const int64_t*)c->from;
        return;
    }
    if (!c->transform && is_wide(c->from_type) && is_wide(c->to_type)) {
        const int64_t i = *(const int64_t*)c->from; // beyond the other's range the sign bit is set
        *(int64_t*)c->to = i >= 0 ? i : c->to_type == CRD_INT64 ? INT64_MAX : 0;
        return;
    }
    double x = as_real(c);
    if (c->transform) { x = c->gain * x + c->offset; }
    if (to_real) {
        *(double*)c->to = x;
    } else {
        *(int64_t*)c->to = to_integer(x, c->to_type);
    }
}

crd_status crdi_convert_bytes(crd_context* ctx, const crdi_conversion* c)
{
    const crd_bytes* from = c->from;
    return crd_bytes_set(ctx, c->to, from->data, from->length);
}

crdi_conversion crdi_conversion_of(const crdi_plan* plan, const crdi_connection* k, void* to)
{
    return (crdi_conversion){.from = crdi_connection_from(plan, k),
                             .to = to,
                             .from_type = (uint8_t)crdi_variable_at(plan, &k->from)->type,
                             .to_type = (uint8_t)crdi_variable_at(plan, &k->to)->type,
                             .gain = k->gain,
                             .offset = k->offset,
                             .transform = k->transform,
                             .mapping = k->mapping};
}

static crd_status convert_begin(crd_master* m, crdi_rows rows, double t)
{
    (void)t;
    for (int i = 0; i < rows.count; i++) {
        const crdi_conversion* c = &m->connections.conversions[rows.first + i];
        if (crd_type_kind(c->from_type) == CRD_BYTES) {
            // Allocates only when a text outgrows its room.
            const crd_status st = crdi_convert_bytes(m->ctx, c);
            if (st < 0) { return st; }
        } else {
            crdi_convert(c);
        }
    }
    return CRD_OK;
}

const crdi_connection_kind crdi_kind_convert = {.begin = convert_begin};
