#include "twin/respond.h"

#include <math.h>
#include <string.h>

static crd_status name_unknowns(crdi_response* r, crd_arena* arena, const crd_netlist* n)
{
    const crd_twin_spec* s = &r->w->spec;
    for (int i = 0; i < r->k; i++) {
        r->names[i] = s->parameters[i].group.name;
    }
    for (int i = 0; i < r->s; i++) {
        r->names[r->k + i] = s->sources[i].group.name;
    }
    for (int i = 0; i < r->p; i++) {
        const int32_t part = r->w->m->state_part[i];
        const char* name = crdi_arena_format(arena, "start of %s", n->names + n->parts[part].name);
        if (!name) { return CRD_E_MEMORY; }
        r->names[r->k + r->s + i] = name;
    }
    return CRD_OK;
}

crd_status crdi_response_create(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                                const crd_twin_data* data, bool states, crd_arena* arena,
                                crdi_response* out)
{
    crd_status st;
    *out = (crdi_response){.data = data, .k = spec->parameter_count, .s = spec->source_count};
    crd_twin_spec plain = *spec;
    const size_t count = (size_t)spec->source_count;
    crd_twin_source* constant = crdi_arena_new(arena, count + 1, sizeof *constant);
    CRD_TRY(constant ? CRD_OK : CRD_E_MEMORY);
    for (size_t i = 0; i < count; i++) {
        constant[i] = spec->sources[i];
        constant[i].model = CRD_SOURCE_CONSTANT;
    }
    plain.sources = constant;
    plain.filter = CRD_TWIN_REDUCED;
    CRD_TRY(crd_twin_create(ctx, n, &plain, &out->w));
    CRD_TRY(crd_twin_begin(out->w, data->start));
    out->p = states ? out->w->p : 0;
    out->m = out->k + out->s + out->p;
    const size_t m = (size_t)out->m, p = (size_t)out->w->p, sensors = (size_t)spec->sensor_count;
    out->names = crdi_arena_new(arena, m + 1, sizeof *out->names);
    out->start = crdi_arena_new(arena, p + 1, sizeof(double));
    out->x = crdi_arena_new(arena, m + 1, sizeof(double));
    out->slope = crdi_arena_new(arena, p * m + 1, sizeof(double));
    out->next = crdi_arena_new(arena, p * m + 1, sizeof(double));
    out->y = crdi_arena_new(arena, sensors, sizeof(double));
    out->dy = crdi_arena_new(arena, sensors * m + 1, sizeof(double));
    CRD_TRY(out->names && out->start && out->x && out->slope && out->next && out->y && out->dy
                ? CRD_OK
                : CRD_E_MEMORY);
    memcpy(out->start, out->w->q, p * sizeof(double));
    for (int i = 0; i < out->k; i++) {
        out->x[i] = out->w->q[out->w->p + out->w->s + i];
    }
    for (int i = 0; i < out->s; i++) {
        out->x[out->k + i] = spec->sources[i].start;
    }
    memcpy(out->x + out->k + out->s, out->start, (size_t)out->p * sizeof(double));
    CRD_TRY(name_unknowns(out, arena, n));
    return CRD_OK;
fail:
    crdi_response_destroy(out);
    return st;
}

void crdi_response_destroy(crdi_response* r)
{
    crd_twin_destroy(r->w);
    r->w = NULL;
}

static void respond_set_inputs(const crdi_response* r, int64_t row)
{
    const int count = r->w->net->input_count;
    for (int i = 0; i < count && r->data->inputs; i++) {
        const double value = r->data->inputs[row * count + i];
        if (isfinite(value)) { r->w->inputs[i] = value; }
    }
}

static void respond_begin(crdi_response* r)
{
    crd_twin* w = r->w;
    memcpy(w->q, r->p ? r->x + r->k + r->s : r->start, (size_t)w->p * sizeof(double));
    memcpy(w->q + w->p, r->x + r->k, (size_t)r->s * sizeof(double));
    memcpy(w->q + w->p + r->s, r->x, (size_t)r->k * sizeof(double));
    for (int i = 0; i < w->net->input_count; i++) {
        w->inputs[i] = w->net->inputs[i].start;
    }
    if (r->data->rows > 0) { respond_set_inputs(r, 0); }
    w->t0 = r->data->start;
    w->steps = 0;
    w->h = w->spec.step;
    crdi_twin_known(w, w->t0, w->v1);
    memset(r->slope, 0, (size_t)w->p * (size_t)r->m * sizeof(double));
    for (int i = 0; i < r->p; i++) {
        r->slope[(ptrdiff_t)i * r->m + r->k + r->s + i] = 1;
    }
}

// dz/dx one step on: phi_zz dz/dx, and what comes in directly by parameters and sources
static void carry_slopes(crdi_response* r)
{
    const crd_twin* w = r->w;
    const int p = w->p, m = r->m, n = w->n;
    for (int i = 0; i < p; i++) {
        const double* phi = w->phi + (ptrdiff_t)i * n;
        double* to = r->next + (ptrdiff_t)i * m;
        memset(to, 0, (size_t)m * sizeof *to);
        for (int l = 0; l < p; l++) {
            for (int j = 0; j < m; j++) {
                to[j] += phi[l] * r->slope[(ptrdiff_t)l * m + j];
            }
        }
        for (int j = 0; j < r->k; j++) {
            to[j] += phi[p + r->s + j];
        }
        for (int j = 0; j < r->s; j++) {
            to[r->k + j] += phi[p + j];
        }
    }
    double* swap = r->slope;
    r->slope = r->next;
    r->next = swap;
}

static void respond_look(crdi_response* r, bool slopes)
{
    const crd_twin* w = r->w;
    const int m = r->m;
    for (int i = 0; i < w->spec.sensor_count; i++) {
        const crdi_sensor* s = &w->sensors[i];
        r->y[i] = crdi_twin_row_value(w, &s->row);
        if (!slopes) { continue; }
        double *h = w->slope, *to = r->dy + (ptrdiff_t)i * m;
        crdi_twin_row_slope(w, &s->row, h);
        for (int j = 0; j < m; j++) {
            to[j] = j < r->k ? h[w->p + r->s + j] : j < r->k + r->s ? h[w->p + j - r->k] : 0;
            for (int l = 0; l < w->p; l++) {
                to[j] += h[l] * r->slope[(ptrdiff_t)l * m + j];
            }
        }
    }
}

crd_status crdi_respond(crdi_response* r, bool slopes, crdi_visit visit, void* user)
{
    crd_twin* w = r->w;
    const crd_twin_data* d = r->data;
    respond_begin(r);
    w->linearised = false; // exactly at theta, not near it
    crd_status st = crdi_twin_linearise(w);
    if (st >= 0) { crdi_twin_remade(w); }
    for (int64_t row = 0; row < d->rows && st >= 0; row++) {
        const double t = crdi_twin_row_time(w, d, row);
        respond_set_inputs(r, row);
        st = crdi_twin_aim(w, t);
        if (st < 0) { break; }
        memcpy(w->v0, w->v1, (size_t)w->r * sizeof *w->v0);
        crdi_twin_known(w, crd_twin_time(w) + w->h, w->v1);
        if (w->law_count) { st = crdi_twin_linearise(w); }
        if (slopes || w->constant || row == 0) { crdi_twin_transition(w); }
        if (slopes) { carry_slopes(r); }
        crdi_twin_predict_mean(w);
        crdi_twin_count_step(w);
        if (!isfinite(w->q[0])) { return CRD_E_CONVERGENCE; }
        if (t < d->from || t > d->to) { continue; } // NaN: never
        respond_look(r, slopes);
        visit(user, row, r->y, slopes ? r->dy : NULL);
    }
    return st;
}
