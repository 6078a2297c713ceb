// Values in and out of the fields of a model's struct.
#include <string.h>

#include "unit/native/native.h"

static crd_status check_integer(crdi_native* u, const crd_model_variable* row, int64_t x)
{
    int64_t low = INT64_MIN, high = INT64_MAX;
    if (row->type == CRD_UINT64) { return CRD_OK; }
    if (row->type == CRD_ENUMERATION) {
        low = 1;
        for (high = 0; row->items && row->items[high];) {
            high++;
        }
    } else {
        crdi_unit_integer_range(row->type, &low, &high);
    }
    if (x >= low && x <= high) { return CRD_OK; }
    return crdi_fail(u->base.ctx, CRD_E_RANGE, "'%s' = %lld, expected %lld to %lld", row->name,
                     (long long)x, (long long)low, (long long)high);
}

static crd_status native_values_put_bytes(crdi_native* u, const crd_model_variable* row, char* p,
                                          const crd_bytes* x)
{
    const size_t most = row->type == CRD_STRING ? row->capacity - 1 : row->capacity;
    if (x->length > most) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE, "'%s' has room for %zu bytes, not for %zu",
                         row->name, most, x->length);
    }
    if (row->type == CRD_BINARY) {
        memcpy(p, &x->length, sizeof x->length);
        p += sizeof x->length;
    }
    if (x->length) { memcpy(p, x->data, x->length); }
    if (row->type == CRD_STRING) { p[x->length] = 0; }
    return CRD_OK;
}

static crd_status set_other(crdi_native* u, const crd_model_variable* row, int32_t at,
                            const crd_values* v)
{
    const size_t n = row->size ? row->size : 1, stride = crd_model_stride(row);
    char* p = u->self + row->offset;
    for (size_t k = 0; k < n; k++, p += stride) {
        crd_status st = CRD_OK;
        if (crd_type_kind(row->type) == CRD_BYTES) {
            st = native_values_put_bytes(u, row, p, &v->bytes[(size_t)at + k]);
        } else if (row->type == CRD_FLOAT32) {
            *(float*)p = (float)v->real[(size_t)at + k];
        } else if (row->type != CRD_CLOCK) {
            st = check_integer(u, row, v->integer[(size_t)at + k]);
            if (st == CRD_OK) { crd_model_set_integer(row->type, p, v->integer[(size_t)at + k]); }
        }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_native_set(crd_unit* unit, const crd_binding* b, const crd_values* v)
{
    crdi_native* u = (crdi_native*)unit;
    u->dirty = true;
    for (int32_t j = 0; j < b->count; j++) {
        const crd_model_variable* row = &u->model->variables[b->variables[j]];
        if (row->type == CRD_FLOAT64) {
            memcpy(u->self + row->offset, v->real + b->offsets[j],
                   (row->size ? row->size : 1) * sizeof(double));
        } else {
            const crd_status st = set_other(u, row, b->offsets[j], v);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}

static crd_status get_other(crdi_native* u, const crd_model_variable* row, int32_t at,
                            crd_values* v)
{
    const size_t n = row->size ? row->size : 1, stride = crd_model_stride(row);
    const char* p = u->self + row->offset;
    for (size_t k = 0; k < n; k++, p += stride) {
        const size_t i = (size_t)at + k;
        crd_status st = CRD_OK;
        switch ((crd_type)row->type) {
        case CRD_FLOAT32:
            v->real[i] = (double)*(const float*)p;
            break;
        case CRD_STRING:
            st = crd_bytes_set(u->base.ctx, &v->bytes[i], p, strnlen(p, row->capacity));
            break;
        case CRD_BINARY: {
            size_t length;
            memcpy(&length, p, sizeof length);
            st = crd_bytes_set(u->base.ctx, &v->bytes[i], p + sizeof length,
                               length < row->capacity ? length : row->capacity);
            break;
        }
        case CRD_CLOCK:
            v->integer[i] = 0;
            break;
        default:
            v->integer[i] = crd_model_integer(row->type, p);
            break;
        }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_native_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    crdi_native* u = (crdi_native*)unit;
    crd_status st = crdi_native_refresh(u);
    if (st < 0) { return st; }
    for (int32_t j = 0; j < b->count; j++) {
        const crd_model_variable* row = &u->model->variables[b->variables[j]];
        if (row->type == CRD_FLOAT64) {
            memcpy(v->real + b->offsets[j], u->self + row->offset,
                   (row->size ? row->size : 1) * sizeof(double));
        } else {
            st = get_other(u, row, b->offsets[j], v);
            if (st < 0) { return st; }
        }
    }
    return CRD_OK;
}
