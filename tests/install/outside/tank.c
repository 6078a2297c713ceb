// A tank that runs empty through its valve, level' = (inflow - k level) / area, each step exact for
// an inflow that holds.
#include <cardan/model.h>
#include <math.h>

typedef struct tank {
    double level, inflow, k, area;
} tank;

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)host, (void)t;
    const tank* x = self;
    return x->k > 0 && x->area > 0 ? CRD_MODEL_OK : CRD_MODEL_ERROR;
}

static void outputs(void* self, double t)
{
    (void)self, (void)t;
}

static crd_model_status step(void* self, const crd_model_host* host, double t, double h,
                             double* reached)
{
    (void)host, (void)t, (void)reached;
    tank* x = self;
    const double rest = x->inflow / x->k;
    x->level = rest + (x->level - rest) * exp(-x->k / x->area * h);
    return CRD_MODEL_OK;
}

#define ROW(field, cause, kind)                                                                    \
    .name = #field, .type = CRD_FLOAT64, .causality = cause, .variability = kind,                  \
    .offset = offsetof(tank, field)

static const crd_model_variable rows[] = {
    {ROW(inflow, CRD_INPUT, CRD_CONTINUOUS), .unit = "m3/s"},
    {ROW(level, CRD_OUTPUT, CRD_CONTINUOUS), .unit = "m", .start = 2, .exact = true, .depends = ""},
    {ROW(k, CRD_PARAMETER, CRD_FIXED), .unit = "m2/s", .start = 0.5},
    {ROW(area, CRD_PARAMETER, CRD_FIXED), .unit = "m2", .start = 4},
};

const crd_model crd_model_tank = {
    .name = "tank",
    .description = "a tank with an outlet",
    .size = sizeof(tank),
    .variables = rows,
    .variable_count = sizeof rows / sizeof *rows,
    .default_step = 0.25,
    .default_stop = 8,
    .initialize = initialize,
    .outputs = outputs,
    .step = step,
};
