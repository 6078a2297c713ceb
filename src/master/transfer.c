// Values on their way from outputs to inputs.
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

static bool convert_by_chain(const crdi_conversion* c)
{
    bool fits = false;
    crdi_scalar x = {.integer = *(const int64_t*)c->from};
    if (!crdi_chain_pass(c->chain, c->from_type == CRD_UINT64, &x, &fits)) { return false; }
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
    if (c->chain && convert_by_chain(c)) { return; } // what no stage changed goes on as it is
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

crd_status crdi_master_transfer(crd_master* m, const crdi_feed* f, double t)
{
    const crdi_copy* copy = m->copies + f->copy_first;
    for (int i = 0; i < f->copy_count; i++) {
        *copy[i].to = *copy[i].from;
    }
    const crdi_scaled* scaled = m->scaled + f->scaled_first;
    for (int i = 0; i < f->scaled_count; i++) {
        *scaled[i].to = scaled[i].gain * *scaled[i].from + scaled[i].offset;
    }
    for (int i = 0; i < f->flow_count; i++) {
        crdi_flow* flow = &m->flows[f->flow_first + i];
        crdi_flow_begin(m, flow, t, m->multirate ? m->members[flow->target].step : m->h);
    }
    for (int i = 0; i < f->conversion_count; i++) {
        const crdi_conversion* c = &m->conversions[f->conversion_first + i];
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
