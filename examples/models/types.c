// Every type as input, output and parameter: after each evaluation the outputs are the inputs.
// Parameters go to their own outputs, so that they can be seen to have arrived.
#include "numerics.h"

enum { TEXT = 64, BYTES = 32, N = 3 };

typedef struct values {
    double f64, f64s[N];
    float f32;
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32, i32s[N];
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    bool b, bs[N];
    int64_t e;
    char s[TEXT], ss[2][TEXT];
    CRD_MODEL_BINARY(BYTES) bin;
} values;

typedef struct types {
    values in, out, par, par_out;
} types;

static const char* const colours[] = {"red", "green", "blue", NULL};

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)t;
    types* m = self;
    m->out = m->in;
    m->par_out = m->par;
}

static crd_model_status step(void* self, const crd_model_host* host, double t, double h,
                             double* reached)
{
    (void)self;
    (void)host;
    (void)t;
    (void)h;
    (void)reached;
    return CRD_MODEL_OK;
}

static const double starts[N] = {1.5, 2.5, -3.5};
static const double flags[N] = {1, 0, 1};

#define ROW(set, label, field, type_, cause, vary, ...)                                            \
    {                                                                                              \
        .name = label #field, .type = type_, .causality = cause, .variability = vary,              \
        .offset = offsetof(types, set.field), __VA_ARGS__                                          \
    }
#define ALL(set, label, cause, real, other, on)                                                    \
    ROW(set, label, f64, CRD_FLOAT64, cause, real, .start = 0.1, .depends = on("f64")),            \
        ROW(set, label, f32, CRD_FLOAT32, cause, real, .start = 0.25, .depends = on("f32")),       \
        ROW(set, label, i8, CRD_INT8, cause, other, .start = -8, .depends = on("i8")),             \
        ROW(set, label, u8, CRD_UINT8, cause, other, .start = 8, .depends = on("u8")),             \
        ROW(set, label, i16, CRD_INT16, cause, other, .start = -16, .depends = on("i16")),         \
        ROW(set, label, u16, CRD_UINT16, cause, other, .start = 16, .depends = on("u16")),         \
        ROW(set, label, i32, CRD_INT32, cause, other, .start = -32, .depends = on("i32")),         \
        ROW(set, label, u32, CRD_UINT32, cause, other, .start = 32, .depends = on("u32")),         \
        ROW(set, label, i64, CRD_INT64, cause, other, .start = -64, .depends = on("i64")),         \
        ROW(set, label, u64, CRD_UINT64, cause, other, .start = 64, .depends = on("u64")),         \
        ROW(set, label, b, CRD_BOOLEAN, cause, other, .start = 1, .depends = on("b")),             \
        ROW(set, label, e, CRD_ENUMERATION, cause, other, .start = 2, .items = colours,            \
            .depends = on("e")),                                                                   \
        ROW(set, label, s, CRD_STRING, cause, other, .start_text = "a < b & \"c\"",                \
            .capacity = TEXT, .depends = on("s")),                                                 \
        ROW(set, label, bin, CRD_BINARY, cause, other, .start_text = "00ff10", .capacity = BYTES,  \
            .depends = on("bin")),                                                                 \
        ROW(set, label, f64s, CRD_FLOAT64, cause, real, .size = N, .starts = starts,               \
            .depends = on("f64s")),                                                                \
        ROW(set, label, i32s, CRD_INT32, cause, other, .size = N, .start = 7,                      \
            .depends = on("i32s")),                                                                \
        ROW(set, label, bs, CRD_BOOLEAN, cause, other, .size = N, .starts = flags,                 \
            .depends = on("bs")),                                                                  \
        ROW(set, label, ss, CRD_STRING, cause, other, .size = 2, .start_text = "text",             \
            .capacity = TEXT, .depends = on("ss"))

#define SAME_INPUT(field) "in_" field
#define NO_INPUT(field) ""
static const crd_model_variable rows[] = {
    ALL(in, "in_", CRD_INPUT, CRD_CONTINUOUS, CRD_DISCRETE, NO_INPUT),
    ALL(out, "out_", CRD_OUTPUT, CRD_CONTINUOUS, CRD_DISCRETE, SAME_INPUT),
    ALL(par, "par_", CRD_PARAMETER, CRD_TUNABLE, CRD_TUNABLE, NO_INPUT),
    ALL(par_out, "par_out_", CRD_OUTPUT, CRD_CONTINUOUS, CRD_DISCRETE, NO_INPUT),
};

const crd_model crd_model_types = {
    .name = "types",
    .description = "every type as input, output and parameter",
    .size = sizeof(types),
    ROWS(rows),
    .default_step = 0.01,
    .default_stop = 1,
    .initialize = initialize,
    .outputs = outputs,
    .step = step,
};
