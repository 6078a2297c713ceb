// A few flops per step: what is left of the time is the importer's. The time goes in so that no two
// values are alike: a recorder has to write all their digits.
#include "numerics.h"

typedef struct chain {
    double y, u;
} chain;

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status step(void* self, const crd_model_host* host, double t, double h,
                             double* reached)
{
    (void)host;
    (void)h;
    (void)reached;
    chain* c = self;
    c->y = 0.5 * (c->y + c->u) + 1e-3 * t;
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {ROW_REAL(chain, u, "u", CRD_INPUT, NULL), .start = 1},
    {ROW_REAL(chain, y, "y", CRD_OUTPUT, NULL), .exact = true},
};

const crd_model crd_model_chain = {
    .name = "chain",
    .description = "y becomes (y + u)/2 + t/1000 in each step",
    .size = sizeof(chain),
    ROWS(rows),
    .default_step = 1e-3,
    .default_stop = 1,
    .initialize = initialize,
    .outputs = outputs,
    .step = step,
};
