// A model for tests: y = gain * x + u, x' = u, with limits, units, items and an array.
#pragma once
#include "cardan/model.h"

typedef struct sample {
    double u, du[2];
    double x, y, dy[2];
    double m, gain, pressures[3], temperature;
    int8_t small;
    uint64_t large;
    bool flag;
    int64_t colour;
    char text[16], texts[2][16];
    CRD_MODEL_BINARY(8) blob;
    int inits, calls; // how often it was called
    double stop_at, fail_at;
} sample;

static crd_model_status sample_initialize(void* self, const crd_model_host* host, double t)
{
    (void)host;
    (void)t;
    sample* s = self;
    s->inits++;
    return s->m > 0 ? CRD_MODEL_OK : CRD_MODEL_ERROR;
}

static void sample_outputs(void* self, double t)
{
    (void)t;
    sample* s = self;
    s->calls++;
    s->y = s->gain * s->x + s->u;
    s->dy[0] = s->gain * s->u + s->du[0];
    s->dy[1] = s->gain * s->du[0] + s->du[1];
}

static crd_model_status sample_step(void* self, const crd_model_host* host, double t, double h,
                                    double* reached)
{
    sample* s = self;
    (void)reached;
    if (t + h > s->fail_at) {
        host->log(host->user, CRD_MODEL_ERROR, "it was asked to fail");
        return CRD_MODEL_ERROR;
    }
    s->x += h * (s->u + h * (s->du[0] / 2 + h * s->du[1] / 6));
    return t + h >= s->stop_at ? CRD_MODEL_TERMINATE : CRD_MODEL_OK;
}

static double sample_partial(const void* self, int unknown, int known)
{
    return unknown == 1 && known == 0   ? 1
           : unknown == 1 && known == 4 ? ((const sample*)self)->x
                                        : 0;
}

static const char* const sample_colours[] = {"red", "green", "blue", 0};
static const double sample_pressures[] = {1, 2, 3};

#define SAMPLE(field_, type_, cause_, vary_)                                                       \
    .name = #field_, .type = type_, .causality = cause_, .variability = vary_,                     \
    .offset = offsetof(sample, field_)
#define SAMPLE_PARAMETER(field_, type_) SAMPLE(field_, type_, CRD_PARAMETER, CRD_FIXED)

static const crd_model_variable sample_rows[] = {
    {SAMPLE(u, CRD_FLOAT64, CRD_INPUT, CRD_CONTINUOUS), .derivatives = offsetof(sample, du)},
    {SAMPLE(y, CRD_FLOAT64, CRD_OUTPUT, CRD_CONTINUOUS), .derivatives = offsetof(sample, dy),
     .depends = "u"},
    {SAMPLE(x, CRD_FLOAT64, CRD_OUTPUT, CRD_CONTINUOUS), .start = 2, .exact = true, .depends = ""},
    {SAMPLE_PARAMETER(m, CRD_FLOAT64), .start = 1, .unit = "kg", .min = 0, .max = 10},
    {SAMPLE_PARAMETER(gain, CRD_FLOAT64), .start = 3},
    {SAMPLE_PARAMETER(pressures, CRD_FLOAT64), .size = 3, .starts = sample_pressures,
     .unit = "bar"},
    {SAMPLE_PARAMETER(temperature, CRD_FLOAT64), .start = 293.15, .unit = "K"},
    {SAMPLE_PARAMETER(small, CRD_INT8), .start = -5},
    {SAMPLE_PARAMETER(large, CRD_UINT64), .start = 5},
    {SAMPLE_PARAMETER(flag, CRD_BOOLEAN), .start = 1},
    {SAMPLE_PARAMETER(colour, CRD_ENUMERATION), .start = 2, .items = sample_colours},
    {SAMPLE_PARAMETER(text, CRD_STRING), .capacity = 16, .start_text = "hello"},
    {SAMPLE_PARAMETER(texts, CRD_STRING), .size = 2, .capacity = 16, .start_text = "a"},
    {SAMPLE_PARAMETER(blob, CRD_BINARY), .capacity = 8, .start_text = "00ff"},
    {SAMPLE_PARAMETER(stop_at, CRD_FLOAT64), .start = 1e9, .unit = "s"},
    {SAMPLE_PARAMETER(fail_at, CRD_FLOAT64), .start = 1e9, .unit = "s"},
};

static const crd_model sample_model = {
    .name = "sample",
    .description = "for tests",
    .size = sizeof(sample),
    .variables = sample_rows,
    .variable_count = sizeof sample_rows / sizeof *sample_rows,
    .default_step = 0.1,
    .default_stop = 1,
    .max_input_derivative = 2,
    .max_output_derivative = 2,
    .initialize = sample_initialize,
    .outputs = sample_outputs,
    .step = sample_step,
    .partial = sample_partial,
};
