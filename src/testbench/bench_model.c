// A bench inside of this process: its machines and its measurement as a model, without a network,
// a session and limits. What a coupling does is the difference to this.
#include "shared/base.h"
#include "testbench/bench.h"

#include <math.h>
#include <string.h>

typedef struct bench_model {
    crdi_plant plant;
    double temperature; // degC, of all of it at the start
} bench_model;

static crd_model_status bench_model_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    bench_model* b = self;
    const crdi_plant_type* type = host->model->user;
    double set[CRDI_SIGNALS];
    memcpy(set, b->plant.set, sizeof set); // the inputs stand there
    crdi_plant_init(&b->plant, type, 1);
    memcpy(b->plant.set, set, sizeof set);
    for (int i = 0; i < CRDI_NODES; i++) {
        b->plant.temperature[i] = b->temperature;
    }
    b->plant.running = true;
    type->slow(&b->plant, 0);
    memcpy(b->plant.measured, b->plant.value, sizeof b->plant.value);
    return CRD_MODEL_OK;
}

static void bench_model_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status bench_model_step(void* self, const crd_model_host* host, double t, double h,
                                         double* reached)
{
    (void)host;
    (void)t;
    (void)reached;
    crdi_plant_step(&((bench_model*)self)->plant, h);
    return CRD_MODEL_OK;
}

crd_status crdi_testbench_model(crd_arena* arena, crdi_testbench_kind kind, const crd_model** out)
{
    const crdi_plant_type* type = crdi_plant_type_of((int)kind);
    const size_t count = (size_t)type->signal_count;
    crd_model* m = crdi_arena_new(arena, 1, sizeof *m);
    crd_model_variable* v = crdi_arena_new(arena, count + 1, sizeof *v);
    if (!m || !v) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < count; i++) {
        const crdi_testbench_signal* s = &type->signals[i];
        const size_t values =
            s->input ? offsetof(bench_model, plant.set) : offsetof(bench_model, plant.measured);
        v[i] = (crd_model_variable){.name = s->name,
                                    .type = CRD_FLOAT64,
                                    .causality = s->input ? CRD_INPUT : CRD_OUTPUT,
                                    .variability = CRD_CONTINUOUS,
                                    .offset = values + i * sizeof(double),
                                    .unit = s->unit,
                                    .description = s->description,
                                    .depends = s->input ? NULL : ""};
    }
    v[count] = (crd_model_variable){.name = "temperature",
                                    .type = CRD_FLOAT64,
                                    .causality = CRD_PARAMETER,
                                    .variability = CRD_FIXED,
                                    .offset = offsetof(bench_model, temperature),
                                    .start = type->ambient,
                                    .unit = "degC",
                                    .description = "of machine and media at the start"};
    *m = (crd_model){.name = type->name,
                     .description = type->title,
                     .size = sizeof(bench_model),
                     .variables = v,
                     .variable_count = type->signal_count + 1,
                     .default_step = 0.01,
                     .default_stop = 10,
                     .initialize = bench_model_initialize,
                     .outputs = bench_model_outputs,
                     .step = bench_model_step,
                     .user = type,
                     .pinned = true};
    *out = m;
    return CRD_OK;
}
