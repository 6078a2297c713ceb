// A twin as a model: an instance, and its steps.
#include "twin/instance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// A communication step may miss a multiple of the twin's by this part of it (and by what times of
// 64 bits lose).
static const double slack = 1e-6;
static const double most_steps = 1e9; // in a communication step

struct crdi_twin_run {
    crd_context* ctx; // of its own
    crd_arena arena;  // of all below
    const crdi_twin_model* model;
    crd_twin* twin;
    double *y, *nothing; // (sensors) measured; NaN
    int64_t* gated;      // (sensors) before the step
};

void crdi_twin_model_clear(void* self)
{
    crdi_twin_self* own = self;
    crdi_twin_run* run = own->run;
    own->run = NULL;
    if (!run) { return; }
    crd_context* ctx = run->ctx;
    crd_twin_destroy(run->twin);
    crd_arena_clear(&run->arena);
    crd_free(ctx, run);
    crd_context_destroy(ctx);
}

static crd_status instance_bring_up(crdi_twin_run* run)
{
    const crdi_twin_model* m = run->model;
    const size_t sensors = (size_t)m->spec->sensor_count;
    crd_arena_init(&run->arena, run->ctx);
    run->y = crdi_arena_new(&run->arena, sensors, sizeof *run->y);
    run->nothing = crdi_arena_new(&run->arena, sensors, sizeof *run->nothing);
    run->gated = crdi_arena_new(&run->arena, sensors, sizeof *run->gated);
    if (run->arena.failed) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < sensors; i++) {
        run->nothing[i] = (double)NAN;
    }
    return crd_twin_create(run->ctx, m->netlist, m->spec, &run->twin);
}

// An instance has a twin of its own.
static crd_model_status provide(void* self, const crd_model_host* host)
{
    crdi_twin_self* own = self;
    const crdi_twin_model* m = host->model->user;
    if (own->run) { return CRD_MODEL_OK; }
    crd_context* ctx = crdi_context_child(m->ctx);
    crdi_twin_run* run = ctx ? crdi_new(ctx, sizeof *run) : NULL;
    if (!run) {
        crd_context_destroy(ctx);
        return crdi_model_refuse(host, CRD_MODEL_ERROR, "out of memory: the twin");
    }
    *run = (crdi_twin_run){.ctx = ctx, .model = m};
    own->run = run;
    if (instance_bring_up(run) < 0) {
        crdi_model_refuse(host, CRD_MODEL_ERROR, crd_error_text(ctx));
        crdi_twin_model_clear(self);
        return CRD_MODEL_ERROR;
    }
    return CRD_MODEL_OK;
}

// ---- values ------------------------------------------------------------------------------------

static void instance_set_inputs(void* self, crdi_twin_run* run, double tau)
{
    for (int i = 0; i < run->model->netlist->input_count; i++) {
        crd_twin_set_input(run->twin, i, crdi_model_input_at(self, run->model->inputs, i, tau));
    }
}

static void set_status(void* self, const crdi_twin_model* m, int sensor, crdi_twin_status status)
{
    *(int32_t*)(void*)(crdi_model_field(self, m->status) + sensor) = status;
}

static void put_estimate(double** to, crd_estimate e)
{
    *(*to)++ = e.value;
    *(*to)++ = e.sd;
}

void crdi_twin_model_outputs(void* self, double t)
{
    (void)t;
    const crdi_twin_run* run = ((const crdi_twin_self*)self)->run;
    if (!run) { return; } // its initialisation failed
    const crdi_twin_model* m = run->model;
    double* to = crdi_model_field(self, m->estimates);
    for (int i = 0; i < m->netlist->output_count; i++) {
        put_estimate(&to, crd_twin_output(run->twin, i));
    }
    for (int i = 0; i < m->spec->source_count; i++) {
        put_estimate(&to, crd_twin_source_now(run->twin, i));
    }
    for (int i = 0; i < m->spec->parameter_count; i++) {
        put_estimate(&to, crd_twin_parameter_now(run->twin, i));
    }
}

crd_model_status crdi_twin_model_initialize(void* self, const crd_model_host* host, double t)
{
    const crd_model_status st = provide(self, host);
    if (st != CRD_MODEL_OK) { return st; }
    crdi_twin_run* run = ((crdi_twin_self*)self)->run;
    instance_set_inputs(self, run, 0);
    for (int i = 0; i < run->model->spec->sensor_count; i++) {
        set_status(self, run->model, i, CRDI_TWIN_MISSING);
    }
    return crd_twin_begin(run->twin, t) < 0
               ? crdi_model_refuse(host, CRD_MODEL_ERROR, crd_error_text(run->ctx))
               : CRD_MODEL_OK;
}

// ---- steps -------------------------------------------------------------------------------------

static void judge_sensors(void* self, crdi_twin_run* run)
{
    for (int i = 0; i < run->model->spec->sensor_count; i++) {
        const crd_twin_sensor_state s = crd_twin_sensor_now(run->twin, i);
        const crdi_twin_status status = isnan(run->y[i])          ? CRDI_TWIN_MISSING
                                        : s.stuck                 ? CRDI_TWIN_STUCK
                                        : s.wild                  ? CRDI_TWIN_WILD
                                        : s.gated > run->gated[i] ? CRDI_TWIN_REFUSED
                                                                  : CRDI_TWIN_GOOD;
        set_status(self, run->model, i, status);
    }
}

crd_model_status crdi_twin_model_step(void* self, const crd_model_host* host, double t, double h,
                                      double* reached)
{
    (void)reached;
    crdi_twin_run* run = ((crdi_twin_self*)self)->run;
    if (!run) { return crdi_model_refuse(host, CRD_MODEL_ERROR, "the twin is not initialised"); }
    const crdi_twin_model* m = run->model;
    const double step = m->spec->step, way = t + h - crd_twin_time(run->twin);
    const double steps = round(way / step), miss = fabs(way - steps * step);
    if (!(steps >= 1 && steps <= most_steps && miss <= slack * step + 2e-15 * fabs(t))) {
        char text[200];
        snprintf(text, sizeof text,
                 "a communication step of %.10g s at %.10g s, expected a multiple of the twin's "
                 "step of %.10g s",
                 h, t, step);
        return crdi_model_refuse(host, CRD_MODEL_ERROR, text); // no shorter step would do
    }
    for (int i = 0; i < m->spec->sensor_count; i++) {
        run->y[i] = crdi_model_input_at(self, m->measured, i, h);
        run->gated[i] = crd_twin_sensor_now(run->twin, i).gated;
    }
    const int64_t count = (int64_t)steps;
    for (int64_t k = 1; k <= count; k++) {
        instance_set_inputs(self, run, (double)k * step);
        if (crd_twin_step(run->twin, k < count ? run->nothing : run->y) < 0) {
            return crdi_model_refuse(host, CRD_MODEL_ERROR, crd_error_text(run->ctx));
        }
    }
    judge_sensors(self, run);
    return CRD_MODEL_OK;
}

// ---- states ------------------------------------------------------------------------------------

// A sum over the twin's bytes stands in front of them.
size_t crdi_twin_model_outside(const void* self)
{
    const crdi_twin_run* run = ((const crdi_twin_self*)self)->run;
    return run ? sizeof(uint64_t) + crd_twin_state_size(run->twin) : 0;
}

void crdi_twin_model_save(const void* self, void* state)
{
    const crdi_twin_run* run = ((const crdi_twin_self*)self)->run;
    char* bytes = (char*)state + sizeof(uint64_t);
    crd_twin_save(run->twin, bytes);
    const uint64_t sum = crdi_model_sum(CRDI_MODEL_SUM, bytes, crd_twin_state_size(run->twin));
    memcpy(state, &sum, sizeof sum);
}

crd_model_status crdi_twin_model_restore(void* self, const crd_model_host* host, const void* state,
                                         size_t size)
{
    if (size == 0) { // before the initialisation
        crdi_twin_model_clear(self);
        return CRD_MODEL_OK;
    }
    const bool fresh = !((const crdi_twin_self*)self)->run;
    const crd_model_status st = provide(self, host);
    if (st != CRD_MODEL_OK) { return st; }
    crdi_twin_run* run = ((crdi_twin_self*)self)->run;
    if (size != crdi_twin_model_outside(self)) {
        return crdi_model_refuse(host, CRD_MODEL_ERROR, "this is no state of this twin");
    }
    uint64_t sum;
    const char* bytes = (const char*)state + sizeof sum;
    memcpy(&sum, state, sizeof sum);
    if (sum != crdi_model_sum(CRDI_MODEL_SUM, bytes, size - sizeof sum)) {
        return crdi_model_refuse(host, CRD_MODEL_ERROR, "this state of the twin is damaged");
    }
    // What follows from the description alone is no part of a state.
    if (fresh && crd_twin_begin(run->twin, 0) < 0) {
        return crdi_model_refuse(host, CRD_MODEL_ERROR, crd_error_text(run->ctx));
    }
    crd_twin_restore(run->twin, bytes);
    return CRD_MODEL_OK;
}
