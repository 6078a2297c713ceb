// Setting and getting values: doubles go straight through, other types are converted in scratch
// memory that crd_fmi_reserve() makes.
#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "fmi/instance.h"
#include "shared/base.h"
#include "shared/base_names.h"

// FMI 1 and 2 have scalars only, so that its functions take one count; a caller who disagrees is
// wrong.
#define ASSERT_SCALARS(i) assert(!crdi_fmi_is_two(i) || value_count == n)

// ---- reals, in every step ----------------------------------------------------------------------

CRDI_COLD static crd_status not_ok(crd_fmi* i, int function, crdi_fmi_status status,
                                   const uint32_t* refs, size_t n)
{
    return crdi_fmi_judge(i, function, status, &(crdi_fmi_place){.refs = refs, .n = n});
}

crd_status crd_fmi_set_real(crd_fmi* i, const uint32_t* refs, size_t n, const double* values,
                            size_t value_count)
{
    ASSERT_SCALARS(i);
    if (!crdi_fmi_may(i, CRDI_FMI_SET_REAL)) { return crdi_fmi_refuse(i, CRDI_FMI_SET_REAL); }
    crdi_fmi_mark(i, CRDI_FMI_SET_REAL);
    const crdi_fmi_status status =
        crdi_fmi_is_two(i) ? i->f->two.SetReal(i->component, refs, n, values)
                           : i->f->three.SetFloat64(i->component, refs, n, values, value_count);
    crdi_fmi_left(i);
    return __builtin_expect(status == CRDI_FMI_OK, 1)
               ? CRD_OK
               : not_ok(i, CRDI_FMI_SET_REAL, status, refs, n);
}

crd_status crd_fmi_get_real(crd_fmi* i, const uint32_t* refs, size_t n, double* values,
                            size_t value_count)
{
    ASSERT_SCALARS(i);
    if (!crdi_fmi_may(i, CRDI_FMI_GET_REAL)) {
        const crd_status st = crdi_fmi_open(i, CRDI_FMI_GET_REAL);
        if (st < 0) { return st; }
    }
    crdi_fmi_mark(i, CRDI_FMI_GET_REAL);
    const crdi_fmi_status status =
        crdi_fmi_is_two(i) ? i->f->two.GetReal(i->component, refs, n, values)
                           : i->f->three.GetFloat64(i->component, refs, n, values, value_count);
    crdi_fmi_left(i);
    return __builtin_expect(status == CRDI_FMI_OK, 1)
               ? CRD_OK
               : not_ok(i, CRDI_FMI_GET_REAL, status, refs, n);
}

// ---- scratch -----------------------------------------------------------------------------------

// The widest element is a binary: its size and its address.
enum { ELEMENT = sizeof(size_t) + sizeof(void*) };

crd_status crd_fmi_reserve(crd_fmi* i, size_t value_count)
{
    if (value_count <= i->scratch_capacity) { return CRD_OK; }
    void* p = crdi_grow(i->ctx, i->scratch, &i->scratch_capacity, value_count, ELEMENT);
    if (!p) { return CRD_E_MEMORY; }
    i->scratch = p;
    return CRD_OK;
}

// The function may be called and there is room for its values.
static crd_status fmi_values_begin(crd_fmi* i, int function, size_t value_count)
{
    crd_status st = crdi_fmi_may(i, function) ? CRD_OK : crdi_fmi_open(i, function);
    if (st == CRD_OK) { st = crd_fmi_reserve(i, value_count); }
    if (st == CRD_OK) { crdi_fmi_mark(i, function); }
    return st;
}

static crd_status end(crd_fmi* i, int function, crdi_fmi_status status, const uint32_t* refs,
                      size_t n)
{
    crdi_fmi_left(i);
    return status == CRDI_FMI_OK ? CRD_OK : not_ok(i, function, status, refs, n);
}

CRDI_COLD static crd_status no_such_type(crd_fmi* i, crd_type type)
{
    return crdi_fail(i->ctx, CRD_E_UNSUPPORTED,
                     "%s: FMI %d.0 has no values of type %s that could be set or read so", i->name,
                     (int)i->version,
                     (unsigned)type < CRD_TYPE_COUNT ? crdi_type_names[type] : "unknown");
}

// ---- Float32 -----------------------------------------------------------------------------------

crd_status crd_fmi_set_float32(crd_fmi* i, const uint32_t* refs, size_t n, const double* values,
                               size_t value_count)
{
    if (crdi_fmi_is_two(i)) { return no_such_type(i, CRD_FLOAT32); }
    const int function = CRDI_FMI3_SetFloat32;
    const crd_status st = fmi_values_begin(i, function, value_count);
    if (st < 0) { return st; }
    float* x = (float*)(void*)i->scratch;
    for (size_t k = 0; k < value_count; k++) {
        if (isfinite(values[k]) && fabs(values[k]) > (double)FLT_MAX) {
            return crdi_fail(i->ctx, CRD_E_RANGE, "%s: %.17g does not fit into a Float32", i->name,
                             values[k]);
        }
        x[k] = (float)values[k];
    }
    return end(i, function, i->f->three.SetFloat32(i->component, refs, n, x, value_count), refs, n);
}

crd_status crd_fmi_get_float32(crd_fmi* i, const uint32_t* refs, size_t n, double* values,
                               size_t value_count)
{
    if (crdi_fmi_is_two(i)) { return no_such_type(i, CRD_FLOAT32); }
    const int function = CRDI_FMI3_GetFloat32;
    crd_status st = fmi_values_begin(i, function, value_count);
    if (st < 0) { return st; }
    float* x = (float*)(void*)i->scratch;
    st = end(i, function, i->f->three.GetFloat32(i->component, refs, n, x, value_count), refs, n);
    for (size_t k = 0; k < value_count && st == CRD_OK; k++) {
        values[k] = (double)x[k];
    }
    return st;
}

// ---- integers ----------------------------------------------------------------------------------

CRDI_COLD static crd_status does_not_fit(crd_fmi* i, crd_type type, int64_t value, int64_t low,
                                         int64_t high)
{
    return crdi_fail(i->ctx, CRD_E_RANGE,
                     "%s: %" PRId64 " does not fit into %s %s, which holds %" PRId64 " to %" PRId64,
                     i->name, value, crdi_type_names[type][0] == 'I' ? "an" : "a",
                     crdi_type_names[type], low, high);
}

// Sets through scratch memory of C type T.
#define SET_AS(T, low, high, function, call)                                                       \
    do {                                                                                           \
        const crd_status st = fmi_values_begin(i, function, value_count);                          \
        if (st < 0) { return st; }                                                                 \
        T* x = (T*)(void*)i->scratch;                                                              \
        for (size_t k = 0; k < value_count; k++) {                                                 \
            if (values[k] < (low) || values[k] > (high)) {                                         \
                return does_not_fit(i, type, values[k], low, high);                                \
            }                                                                                      \
            x[k] = (T)values[k];                                                                   \
        }                                                                                          \
        return end(i, function, call, refs, n);                                                    \
    } while (0)

// Booleans: everything but zero is true.
#define SET_TRUTH(T, function, call)                                                               \
    do {                                                                                           \
        const crd_status st = fmi_values_begin(i, function, value_count);                          \
        if (st < 0) { return st; }                                                                 \
        T* x = (T*)(void*)i->scratch;                                                              \
        for (size_t k = 0; k < value_count; k++) {                                                 \
            x[k] = values[k] != 0;                                                                 \
        }                                                                                          \
        return end(i, function, call, refs, n);                                                    \
    } while (0)

#define GET_AS(T, function, call)                                                                  \
    do {                                                                                           \
        crd_status st = fmi_values_begin(i, function, value_count);                                \
        if (st < 0) { return st; }                                                                 \
        T* x = (T*)(void*)i->scratch;                                                              \
        st = end(i, function, call, refs, n);                                                      \
        for (size_t k = 0; k < value_count && st == CRD_OK; k++) {                                 \
            values[k] = (int64_t)x[k];                                                             \
        }                                                                                          \
        return st;                                                                                 \
    } while (0)

// 64-bit values go straight through, unsigned ones by their bits.
#define PASS(function, call)                                                                       \
    do {                                                                                           \
        const crd_status st = fmi_values_begin(i, function, 0);                                    \
        return st < 0 ? st : end(i, function, call, refs, n);                                      \
    } while (0)

#define CALL3(name) i->f->three.name(i->component, refs, n, x, value_count)

static crd_status set_integer2(crd_fmi* i, crd_type type, const uint32_t* refs, size_t n,
                               const int64_t* values, size_t value_count)
{
    switch (type) {
    case CRD_INT32:
    case CRD_ENUMERATION:
        SET_AS(int, INT32_MIN, INT32_MAX, CRDI_FMI2_SetInteger,
               i->f->two.SetInteger(i->component, refs, n, x));
    case CRD_BOOLEAN:
        if (crdi_fmi_is_one(i)) {
            SET_TRUTH(char, CRDI_FMI2_SetBoolean, crdi_fmi1_set_booleans(i, refs, n, x));
        }
        SET_TRUTH(int, CRDI_FMI2_SetBoolean, i->f->two.SetBoolean(i->component, refs, n, x));
    default:
        return no_such_type(i, type);
    }
}

static crd_status get_integer2(crd_fmi* i, crd_type type, const uint32_t* refs, size_t n,
                               int64_t* values, size_t value_count)
{
    switch (type) {
    case CRD_INT32:
    case CRD_ENUMERATION:
        GET_AS(int, CRDI_FMI2_GetInteger, i->f->two.GetInteger(i->component, refs, n, x));
    case CRD_BOOLEAN: {
        crd_status st = fmi_values_begin(i, CRDI_FMI2_GetBoolean, value_count);
        if (st < 0) { return st; }
        int* x = (int*)(void*)i->scratch;
        const bool one = crdi_fmi_is_one(i);
        const crdi_fmi_status status = one ? crdi_fmi1_get_booleans(i, refs, n, (char*)i->scratch)
                                           : i->f->two.GetBoolean(i->component, refs, n, x);
        st = end(i, CRDI_FMI2_GetBoolean, status, refs, n);
        for (size_t k = 0; k < value_count && st == CRD_OK; k++) {
            values[k] = one ? i->scratch[k] != 0 : x[k] != 0; // some FMUs say true with -1
        }
        return st;
    }
    default:
        return no_such_type(i, type);
    }
}

static crd_status set_integer3(crd_fmi* i, crd_type type, const uint32_t* refs, size_t n,
                               const int64_t* values, size_t value_count)
{
    switch (type) {
    case CRD_INT8:
        SET_AS(int8_t, INT8_MIN, INT8_MAX, CRDI_FMI3_SetInt8, CALL3(SetInt8));
    case CRD_UINT8:
        SET_AS(uint8_t, 0, UINT8_MAX, CRDI_FMI3_SetUInt8, CALL3(SetUInt8));
    case CRD_INT16:
        SET_AS(int16_t, INT16_MIN, INT16_MAX, CRDI_FMI3_SetInt16, CALL3(SetInt16));
    case CRD_UINT16:
        SET_AS(uint16_t, 0, UINT16_MAX, CRDI_FMI3_SetUInt16, CALL3(SetUInt16));
    case CRD_INT32:
        SET_AS(int32_t, INT32_MIN, INT32_MAX, CRDI_FMI3_SetInt32, CALL3(SetInt32));
    case CRD_UINT32:
        SET_AS(uint32_t, 0, UINT32_MAX, CRDI_FMI3_SetUInt32, CALL3(SetUInt32));
    case CRD_BOOLEAN:
        SET_TRUTH(bool, CRDI_FMI3_SetBoolean, CALL3(SetBoolean));
    case CRD_INT64:
    case CRD_ENUMERATION:
        PASS(CRDI_FMI3_SetInt64, i->f->three.SetInt64(i->component, refs, n, values, value_count));
    case CRD_UINT64:
        PASS(CRDI_FMI3_SetUInt64,
             i->f->three.SetUInt64(i->component, refs, n, (const uint64_t*)values, value_count));
    default:
        return no_such_type(i, type);
    }
}

static crd_status get_integer3(crd_fmi* i, crd_type type, const uint32_t* refs, size_t n,
                               int64_t* values, size_t value_count)
{
    switch (type) {
    case CRD_INT8:
        GET_AS(int8_t, CRDI_FMI3_GetInt8, CALL3(GetInt8));
    case CRD_UINT8:
        GET_AS(uint8_t, CRDI_FMI3_GetUInt8, CALL3(GetUInt8));
    case CRD_INT16:
        GET_AS(int16_t, CRDI_FMI3_GetInt16, CALL3(GetInt16));
    case CRD_UINT16:
        GET_AS(uint16_t, CRDI_FMI3_GetUInt16, CALL3(GetUInt16));
    case CRD_INT32:
        GET_AS(int32_t, CRDI_FMI3_GetInt32, CALL3(GetInt32));
    case CRD_UINT32:
        GET_AS(uint32_t, CRDI_FMI3_GetUInt32, CALL3(GetUInt32));
    case CRD_INT64:
    case CRD_ENUMERATION:
        PASS(CRDI_FMI3_GetInt64, i->f->three.GetInt64(i->component, refs, n, values, value_count));
    case CRD_UINT64:
        PASS(CRDI_FMI3_GetUInt64,
             i->f->three.GetUInt64(i->component, refs, n, (uint64_t*)values, value_count));
    case CRD_BOOLEAN: {
        crd_status st = fmi_values_begin(i, CRDI_FMI3_GetBoolean, value_count);
        if (st < 0) { return st; }
        bool* x = (bool*)(void*)i->scratch;
        st = end(i, CRDI_FMI3_GetBoolean, CALL3(GetBoolean), refs, n);
        for (size_t k = 0; k < value_count && st == CRD_OK; k++) {
            values[k] =
                i->scratch[k] != 0; // by its byte: a foreign bool may hold more than 0 and 1
        }
        return st;
    }
    default:
        return no_such_type(i, type);
    }
}

crd_status crd_fmi_set_integer(crd_fmi* i, crd_type type, const uint32_t* refs, size_t n,
                               const int64_t* values, size_t value_count)
{
    ASSERT_SCALARS(i);
    return crdi_fmi_is_two(i) ? set_integer2(i, type, refs, n, values, value_count)
                              : set_integer3(i, type, refs, n, values, value_count);
}

crd_status crd_fmi_get_integer(crd_fmi* i, crd_type type, const uint32_t* refs, size_t n,
                               int64_t* values, size_t value_count)
{
    ASSERT_SCALARS(i);
    return crdi_fmi_is_two(i) ? get_integer2(i, type, refs, n, values, value_count)
                              : get_integer3(i, type, refs, n, values, value_count);
}

// ---- texts and bytes ---------------------------------------------------------------------------

crd_status crd_fmi_set_string(crd_fmi* i, const uint32_t* refs, size_t n, const char* const* values,
                              size_t value_count)
{
    ASSERT_SCALARS(i);
    const int function = crdi_fmi_is_two(i) ? (int)CRDI_FMI2_SetString : (int)CRDI_FMI3_SetString;
    const crd_status st = fmi_values_begin(i, function, 0);
    if (st < 0) { return st; }
    const crdi_fmi_status status =
        crdi_fmi_is_two(i) ? i->f->two.SetString(i->component, refs, n, values)
                           : i->f->three.SetString(i->component, refs, n, values, value_count);
    return end(i, function, status, refs, n);
}

crd_status crd_fmi_get_string(crd_fmi* i, const uint32_t* refs, size_t n, const char** values,
                              size_t value_count)
{
    ASSERT_SCALARS(i);
    const int function = crdi_fmi_is_two(i) ? (int)CRDI_FMI2_GetString : (int)CRDI_FMI3_GetString;
    crd_status st = fmi_values_begin(i, function, 0);
    if (st < 0) { return st; }
    for (size_t k = 0; k < value_count; k++) {
        values[k] = NULL;
    }
    const crdi_fmi_status status =
        crdi_fmi_is_two(i) ? i->f->two.GetString(i->component, refs, n, values)
                           : i->f->three.GetString(i->component, refs, n, values, value_count);
    st = end(i, function, status, refs, n);
    for (size_t k = 0; k < value_count; k++) {
        if (!values[k]) { values[k] = ""; }
    }
    return st;
}

crd_status crd_fmi_set_binary(crd_fmi* i, const uint32_t* refs, size_t n,
                              const crd_fmi_binary* values, size_t value_count)
{
    if (crdi_fmi_is_two(i)) { return no_such_type(i, CRD_BINARY); }
    const crd_status st = fmi_values_begin(i, CRDI_FMI3_SetBinary, value_count);
    if (st < 0) { return st; }
    size_t* sizes = (size_t*)(void*)i->scratch;
    const uint8_t** data = (const uint8_t**)(void*)(i->scratch + value_count * sizeof(size_t));
    for (size_t k = 0; k < value_count; k++) {
        sizes[k] = values[k].size;
        data[k] = values[k].data;
    }
    return end(i, CRDI_FMI3_SetBinary,
               i->f->three.SetBinary(i->component, refs, n, sizes, data, value_count), refs, n);
}

crd_status crd_fmi_get_binary(crd_fmi* i, const uint32_t* refs, size_t n, crd_fmi_binary* values,
                              size_t value_count)
{
    if (crdi_fmi_is_two(i)) { return no_such_type(i, CRD_BINARY); }
    crd_status st = fmi_values_begin(i, CRDI_FMI3_GetBinary, value_count);
    if (st < 0) { return st; }
    size_t* sizes = (size_t*)(void*)i->scratch;
    const uint8_t** data = (const uint8_t**)(void*)(i->scratch + value_count * sizeof(size_t));
    for (size_t k = 0; k < value_count; k++) {
        sizes[k] = 0;
        data[k] = NULL;
    }
    st = end(i, CRDI_FMI3_GetBinary,
             i->f->three.GetBinary(i->component, refs, n, sizes, data, value_count), refs, n);
    for (size_t k = 0; k < value_count && st == CRD_OK; k++) {
        values[k] = (crd_fmi_binary){.data = data[k], .size = data[k] ? sizes[k] : 0};
    }
    return st;
}
