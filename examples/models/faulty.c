// Goes wrong on demand: from the first step that begins at or after the time `when`, in the way
// `mode` says. For testing importers.
#include "numerics.h"

#include <stdlib.h>

typedef struct faulty {
    double u, y;
    double when;
    int32_t mode;
} faulty;

enum {
    HEALTHY,
    WARNING,
    DISCARD,
    ERROR,
    FATAL,
    NOT_A_NUMBER,
    TERMINATE,
    SEGFAULT,
    STACK_OVERFLOW,
    BAD_START,    // initialisation fails
    SHORT_STEPS,  // steps longer than 1 ms are discarded
    ENDLESS_STEP, // a step that never ends
    EXIT,         // ends the process
    MODES
};

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    const faulty* m = self;
    if (m->mode == BAD_START) {
        host->log(host->user, CRD_MODEL_ERROR, "the initialisation fails, as asked for");
        return CRD_MODEL_ERROR;
    }
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    faulty* m = self;
    m->y = m->mode == NOT_A_NUMBER && t >= m->when ? NAN : t;
}

static volatile int bottom = 1;

static int dig(int depth) // never returns: the stack ends first
{
    volatile char hole[4096];
    hole[0] = (char)depth;
    return bottom ? dig(depth + 1) + hole[0] : 0;
}

static crd_model_status step(void* self, const crd_model_host* host, double t, double h,
                             double* reached)
{
    (void)reached;
    faulty* m = self;
    if (t < m->when) { return CRD_MODEL_OK; }
    switch (m->mode) {
    case WARNING:
        host->log(host->user, CRD_MODEL_WARNING, "this step gives a warning, as asked for");
        return CRD_MODEL_WARNING;
    case DISCARD:
        return CRD_MODEL_DISCARD;
    case ERROR:
        host->log(host->user, CRD_MODEL_ERROR, "this step fails, as asked for");
        return CRD_MODEL_ERROR;
    case FATAL:
        return CRD_MODEL_FATAL;
    case TERMINATE:
        return CRD_MODEL_TERMINATE;
    case SEGFAULT: {
        volatile int* volatile nowhere = NULL;
        *nowhere = 1;
        return CRD_MODEL_OK;
    }
    case STACK_OVERFLOW:
        m->y = dig(0);
        return CRD_MODEL_OK;
    case SHORT_STEPS:
        return h > 1.0000001e-3 ? CRD_MODEL_DISCARD : CRD_MODEL_OK;
    case ENDLESS_STEP:
        while (bottom) {}
        return CRD_MODEL_OK;
    case EXIT:
        exit(0);
    default:
        return CRD_MODEL_OK;
    }
}

static const crd_model_variable rows[] = {
    {ROW_REAL(faulty, u, "u", CRD_INPUT, NULL)},
    {ROW_REAL(faulty, y, "y", CRD_OUTPUT, "s"), .description = "the time"},
    {ROW_PARAMETER(faulty, when, "when", 0.5, "s")},
    {ROW_COUNT(faulty, mode, "mode", HEALTHY, HEALTHY, MODES - 1),
     .description = "0 none, 1 warning, 2 discard, 3 error, 4 fatal, 5 NaN, 6 terminate, "
                    "7 segmentation fault, 8 stack overflow, 9 error at the start, "
                    "10 discards steps > 1 ms, 11 endless step, 12 exit"},
};

const crd_model crd_model_faulty = {
    .name = "faulty",
    .description = "goes wrong on demand",
    .size = sizeof(faulty),
    ROWS(rows),
    .default_step = 0.01,
    .default_stop = 1,
    .initialize = initialize,
    .outputs = outputs,
    .step = step,
};
