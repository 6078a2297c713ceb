// No state: y = a u + b, or y = a cos(u) + b. For algebraic loops.
#include "numerics.h"

typedef struct feedthrough {
    double u, y, a, b;
    int32_t kind; // 0 linear, 1 cosine
} feedthrough;

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
    feedthrough* m = self;
    m->y = m->a * (m->kind ? cos(m->u) : m->u) + m->b;
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

static double partial(const void* self, int unknown, int known)
{
    const feedthrough* m = self;
    if (unknown != 1 || known != 0) { return 0; }
    return m->kind ? -m->a * sin(m->u) : m->a;
}

static const crd_model_variable rows[] = {
    {ROW_REAL(feedthrough, u, "u", CRD_INPUT, NULL)},
    {.name = "y",
     .type = CRD_FLOAT64,
     .causality = CRD_OUTPUT,
     .variability = CRD_CONTINUOUS,
     .offset = offsetof(feedthrough, y),
     .depends = "u"},
    {ROW_PARAMETER(feedthrough, a, "a", 0.5, NULL)},
    {ROW_PARAMETER(feedthrough, b, "b", 1, NULL)},
    {ROW_COUNT(feedthrough, kind, "kind", 0, 0, 1), .description = "0: linear, 1: cosine"},
};

const crd_model crd_model_feedthrough = {
    .name = "feedthrough",
    .description = "y = a u + b, or a cos(u) + b",
    .size = sizeof(feedthrough),
    ROWS(rows),
    .default_step = 0.01,
    .default_stop = 1,
    .initialize = initialize,
    .outputs = outputs,
    .step = step,
    .partial = partial,
};
