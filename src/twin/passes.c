// The filter over the same measurements again and again, as Rodriguez 2021 tunes (4.2.5.1).
#include "twin/twin.h"

#include <math.h>
#include <string.h>

typedef struct pass {
    crd_context* ctx;
    const crd_netlist* n;
    crd_twin_spec spec;
    crd_twin_parameter* parameters; // with the starts of this pass
    crd_twin_source* sources;
    const crd_twin_data* data;
} pass;

static bool counts(const crd_twin_data* d, double t)
{
    return !(t < d->from || t > d->to);
}

// One pass; estimates at its end
static crd_status passes_run(pass* p, crd_tune_result* out, double* squares, int64_t* used)
{
    crd_twin* w = NULL;
    const int sensors = p->spec.sensor_count;
    crd_status st = crd_twin_create(p->ctx, p->n, &p->spec, &w);
    if (st == CRD_OK) { st = crd_twin_begin(w, p->data->start); }
    memset(squares, 0, (size_t)sensors * sizeof *squares);
    memset(used, 0, (size_t)sensors * sizeof *used);
    for (int64_t row = 0; row < p->data->rows && st == CRD_OK; row++) {
        const double* y = p->data->measurements + row * sensors;
        st = crd_twin_follow(w, p->data, row);
        const bool now = counts(p->data, crdi_twin_row_time(w, p->data, row));
        for (int i = 0; i < sensors && now && st == CRD_OK; i++) {
            const crd_twin_sensor_state s = crd_twin_sensor_now(w, i);
            if (isnan(y[i])) { continue; }
            squares[i] += s.innovation * s.innovation;
            used[i]++;
        }
    }
    for (int i = 0; i < out->unknowns && st == CRD_OK; i++) {
        const int k = p->spec.parameter_count;
        const crd_estimate e = i < k ? crd_twin_parameter_now(w, i) : crd_twin_source_now(w, i - k);
        out->value[i] = e.value;
        out->sd[i] = e.sd;
    }
    crd_twin_destroy(w);
    return st;
}

crd_status crdi_twin_passes(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                            const crd_twin_data* data, const crd_tune_options* opt,
                            crd_arena* arena, crd_tune_result* out)
{
    const size_t k = (size_t)spec->parameter_count, s = (size_t)spec->source_count,
                 d = sizeof(double);
    const size_t sensors = (size_t)spec->sensor_count, m = k + s;
    pass p = {.ctx = ctx, .n = n, .spec = *spec, .data = data};
    p.parameters = crdi_arena_new(arena, k + 1, sizeof *p.parameters);
    p.sources = crdi_arena_new(arena, s + 1, sizeof *p.sources);
    const char** names = crdi_arena_new(arena, m + 1, sizeof *names);
    double* before = crdi_arena_new(arena, m + 1, d);
    double* squares = crdi_arena_new(arena, sensors + 1, d);
    int64_t* used = crdi_arena_new(arena, sensors + 1, sizeof *used);
    out->value = crdi_arena_new(arena, m + 1, d);
    out->sd = crdi_arena_new(arena, m + 1, d);
    out->covariance = crdi_arena_new(arena, m * m + 1, d);
    out->sensor_sd = crdi_arena_new(arena, sensors + 1, d);
    out->residual_rms = crdi_arena_new(arena, sensors + 1, d);
    if (!p.parameters || !p.sources || !names || !before || !squares || !used || !out->value ||
        !out->sd || !out->covariance || !out->sensor_sd || !out->residual_rms) {
        return CRD_E_MEMORY;
    }
    if (k) { memcpy(p.parameters, spec->parameters, k * sizeof *p.parameters); }
    if (s) { memcpy(p.sources, spec->sources, s * sizeof *p.sources); }
    p.spec.parameters = p.parameters;
    p.spec.sources = p.sources;
    out->unknowns = (int)m;
    out->names = names;
    out->ljung_box = out->flatness = out->likelihood = (double)NAN;
    for (size_t i = 0; i < m; i++) {
        names[i] = i < k ? spec->parameters[i].group.name : spec->sources[i - k].group.name;
        before[i] = (double)INFINITY;
    }
    crd_status st = CRD_OK;
    while (st == CRD_OK && out->iterations < opt->max_iterations && !out->converged) {
        st = passes_run(&p, out, squares, used);
        out->iterations++;
        double moved = 0;
        for (size_t i = 0; i < m && st == CRD_OK; i++) {
            moved = fmax(moved, fabs(out->value[i] - before[i]));
            before[i] = out->value[i];
            if (i < k) {
                p.parameters[i].start = out->value[i];
            } else {
                p.sources[i - k].start = out->value[i];
            }
        }
        out->converged = moved < opt->tolerance; // absolute, as published
    }
    for (size_t i = 0; i < sensors; i++) {
        out->sensor_sd[i] = spec->sensors[i].sd;
        out->residual_rms[i] = used[i] ? sqrt(squares[i] / (double)used[i]) : (double)NAN;
    }
    for (size_t i = 0; i < m; i++) {
        const double sd = i < k ? out->sd[i] / out->value[i] : out->sd[i];
        out->covariance[i * m + i] = sd * sd;
    }
    return st;
}
