// Ten inputs and one output, a few flops per step: a node of a large network, where what is left of
// the time and of the memory is the importer's.
#include "numerics.h"

enum { INPUTS = 10 };

typedef struct mesh {
    double y, u[INPUTS];
} mesh;

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

// y(n+1) = y(n)/2 + (u1 + ... + u10)/20 + t/1000: the mean of the inputs, half of it new.
static crd_model_status step(void* self, const crd_model_host* host, double t, double h,
                             double* reached)
{
    (void)host;
    (void)h;
    (void)reached;
    mesh* m = self;
    double sum = 0;
    for (int i = 0; i < INPUTS; i++) {
        sum += m->u[i];
    }
    m->y = 0.5 * (m->y + sum / INPUTS) + 1e-3 * t;
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {ROW_REAL(mesh, u[0], "u1", CRD_INPUT, NULL)},
    {ROW_REAL(mesh, u[1], "u2", CRD_INPUT, NULL)},
    {ROW_REAL(mesh, u[2], "u3", CRD_INPUT, NULL)},
    {ROW_REAL(mesh, u[3], "u4", CRD_INPUT, NULL)},
    {ROW_REAL(mesh, u[4], "u5", CRD_INPUT, NULL)},
    {ROW_REAL(mesh, u[5], "u6", CRD_INPUT, NULL)},
    {ROW_REAL(mesh, u[6], "u7", CRD_INPUT, NULL)},
    {ROW_REAL(mesh, u[7], "u8", CRD_INPUT, NULL)},
    {ROW_REAL(mesh, u[8], "u9", CRD_INPUT, NULL)},
    {ROW_REAL(mesh, u[9], "u10", CRD_INPUT, NULL)},
    {ROW_REAL(mesh, y, "y", CRD_OUTPUT, NULL), .start = 1, .exact = true},
};

const crd_model crd_model_mesh = {
    .name = "mesh",
    .description = "y becomes half of itself and half of the mean of ten inputs",
    .size = sizeof(mesh),
    ROWS(rows),
    .default_step = 1e-3,
    .default_stop = 1,
    .initialize = initialize,
    .outputs = outputs,
    .step = step,
};
