// Reads a number from a file that came with the FMU. For testing that importers say where it is.
#include "numerics.h"

#include <stdio.h>

typedef struct resource {
    int32_t y;
} resource;

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    char path[4096], text[4200];
    int number = 0;
    snprintf(path, sizeof path, "%s/number.txt", host->resources);
    FILE* file = fopen(path, "r");
    if (!file || fscanf(file, "%d", &number) != 1) {
        if (file) { fclose(file); }
        snprintf(text, sizeof text, "cannot read a number from %s", path);
        host->log(host->user, CRD_MODEL_ERROR, text);
        return CRD_MODEL_ERROR;
    }
    fclose(file);
    ((resource*)self)->y = number;
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
    (void)self;
    (void)host;
    (void)t;
    (void)h;
    (void)reached;
    return CRD_MODEL_OK;
}

static const crd_model_variable rows[] = {
    {.name = "y",
     .type = CRD_INT32,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(resource, y),
     .depends = "",
     .description = "the number in resources/number.txt"},
};

const crd_model crd_model_resource = {
    .name = "resource",
    .description = "reads a number from its resources",
    .size = sizeof(resource),
    ROWS(rows),
    .default_step = 0.01,
    .default_stop = 1,
    .initialize = initialize,
    .outputs = outputs,
    .step = step,
};
