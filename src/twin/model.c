// The network and the models of unknown sources as a transition of q over one step.
#include "twin/twin.h"

#include <math.h>
#include <string.h>

// Beyond this change of a logarithm the matrices are made anew; below it first order serves: what
// is neglected is the square of it.
#define MOVED 1e-3

void crdi_twin_known(const crd_twin* w, double t, double* v)
{
    for (int j = 0; j < w->r; j++) {
        const crd_part* p = &w->net->parts[w->m->input_part[j]];
        v[j] = p->index >= 0 ? crd_waveform_eval(&w->net->waves[p->index], t, w->inputs) : p->value;
        for (int i = 0; i < w->spec.source_count; i++) {
            if (w->select[(ptrdiff_t)j * w->spec.source_count + i] != 0) { v[j] = 0; }
        }
    }
}

int crdi_twin_source_size(crd_source_model model)
{
    return model == CRD_SOURCE_OSCILLATOR ? 4 : model == CRD_SOURCE_INTEGRATED ? 2 : 1;
}

// The states of a source, the value first. An oscillator is [mean + a, mean, a, b]: the sum is
// carried so that the value is one state.
static void source_transition(const crd_twin_source* s, double h, double phi[16])
{
    memset(phi, 0, 16 * sizeof *phi);
    phi[0] = 1;
    if (s->model == CRD_SOURCE_INTEGRATED) {
        phi[1] = h;
        phi[3] = 1;
    } else if (s->model == CRD_SOURCE_OSCILLATOR) {
        const double a = 2 * 3.14159265358979323846 * s->frequency * h, c = cos(a), d = sin(a);
        const double rows[16] = {0, 1, c, d, 0, 1, 0, 0, 0, 0, c, d, 0, 0, -d, c};
        memcpy(phi, rows, sizeof rows);
    }
}

static crd_status refresh_laws(crd_twin* w, bool* moved)
{
    bool any = false;
    for (int i = 0; i < w->law_count; i++) {
        const int32_t part = w->law_parts[i];
        const double now =
            crdi_twin_expression(w, w->net->expressions[w->net->parts[part].index], NULL);
        any = any || !(fabs(now - crd_reduction_value(w->reduction, part)) <= MOVED * fabs(now));
        w->room[i] = now;
    }
    *moved = *moved || any;
    if (!any && w->steps > 0) { return CRD_OK; }
    memcpy(w->law_values, w->room, (size_t)w->law_count * sizeof *w->law_values);
    return crd_reduction_set(w->reduction, w->law_parts, w->law_values, w->law_count);
}

static crd_status twin_model_set_parameters(crd_twin* w, bool* moved)
{
    bool any = false;
    const double* theta = w->q + w->p + w->s;
    for (int g = 0; g < w->k; g++) {
        any = any || !(fabs(theta[g] - w->theta0[g]) <= MOVED);
    }
    if (!any && w->linearised) { return CRD_OK; }
    for (int g = 0; g < w->k; g++) {
        const crd_twin_group* group = &w->spec.parameters[g].group;
        for (int i = 0; i < group->count; i++) {
            const double value = exp(theta[g]) * (group->factors ? group->factors[i] : 1);
            const crd_status st = crd_reduction_set(w->reduction, &group->parts[i], &value, 1);
            if (st < 0) { return st; }
        }
        w->theta0[g] = theta[g];
    }
    *moved = true;
    return CRD_OK;
}

crd_status crdi_twin_linearise(crd_twin* w)
{
    bool moved = !w->linearised;
    crd_status st = twin_model_set_parameters(w, &moved);
    if (st >= 0 && w->law_count && w->steps % 16 == 0) { st = refresh_laws(w, &moved); }
    if (st < 0 || !moved) { return st; }
    w->frozen = false;
    w->still = 0;
    return crdi_twin_matrices(w);
}

crd_status crdi_twin_matrices(crd_twin* w)
{
    crd_twin_group* groups = (crd_twin_group*)w->room;
    for (int g = 0; g < w->k; g++) {
        groups[g] = w->spec.parameters[g].group;
    }
    const size_t nt = (size_t)w->m->variables * (size_t)w->p,
                 nb = (size_t)w->m->variables * (size_t)w->r;
    for (int g = 0; g < w->k; g++) {
        const crd_reduced d = crd_reduction_sensitivity(w->reduction, &groups[g]);
        memcpy(w->dt + (size_t)g * nt, d.t, nt * sizeof *w->dt);
        memcpy(w->db + (size_t)g * nb, d.b, nb * sizeof *w->db);
    }
    const crd_status st = crd_reduction_discretise(w->reduction, w->h, groups, w->k, w->f, w->d0,
                                                   w->d1, w->df, w->dd0, w->dd1, w->work);
    w->linearised = st == CRD_OK;
    return st == CRD_E_RANGE
               ? crdi_fail(w->ctx, st, "twin: a step of %g s is too long for the network", w->h)
               : st;
}

// sum_j m_j v_j of one row, with first-order terms in theta
static double input_row(const crd_twin* w, int i, const double* d0, const double* d1,
                        const double* v0, const double* v1)
{
    double sum = 0;
    for (int j = 0; j < w->r; j++) {
        sum += d0[(ptrdiff_t)i * w->r + j] * v0[j] + d1[(ptrdiff_t)i * w->r + j] * v1[j];
    }
    return sum;
}

// v with the unknown sources, at the beginning and (by their models) at the end of the step
static void all_inputs(const crd_twin* w, double* v0, double* v1)
{
    const int sources = w->spec.source_count;
    memcpy(v0, w->v0, (size_t)w->r * sizeof *v0);
    memcpy(v1, w->v1, (size_t)w->r * sizeof *v1);
    for (int i = 0; i < sources; i++) {
        const crdi_source* s = &w->sources[i];
        double phi[16], after = 0;
        source_transition(&w->spec.sources[i], w->h, phi);
        for (int c = 0; c < s->size; c++) {
            after += phi[c] * w->q[s->at + c];
        }
        for (int j = 0; j < w->r; j++) {
            v0[j] += w->select[(ptrdiff_t)j * sources + i] * w->q[s->at];
            v1[j] += w->select[(ptrdiff_t)j * sources + i] * after;
        }
    }
}

void crdi_twin_transition(crd_twin* w)
{
    const int n = w->n, p = w->p, sources = w->spec.source_count;
    double *v0 = w->vector, *v1 = v0 + w->r;
    memset(w->phi, 0, (size_t)n * (size_t)n * sizeof *w->phi);
    all_inputs(w, v0, v1);
    for (int i = 0; i < p; i++) {
        double* row = w->phi + (ptrdiff_t)i * n;
        memcpy(row, w->f + (ptrdiff_t)i * p, (size_t)p * sizeof *row);
        for (int g = 0; g < w->k; g++) {
            const double* df = w->df + ((ptrdiff_t)g * p + i) * p;
            double sum = input_row(w, i, w->dd0 + (ptrdiff_t)g * p * w->r,
                                   w->dd1 + (ptrdiff_t)g * p * w->r, v0, v1);
            const double moved = w->q[p + w->s + g] - w->theta0[g];
            for (int j = 0; j < p; j++) {
                sum += df[j] * w->q[j];
                row[j] += moved * df[j];
            }
            row[p + w->s + g] = sum;
        }
    }
    for (int a = 0; a < sources; a++) {
        const crdi_source* s = &w->sources[a];
        double phi[16];
        source_transition(&w->spec.sources[a], w->h, phi);
        for (int c = 0; c < s->size; c++) {
            memcpy(w->phi + (ptrdiff_t)(s->at + c) * n + s->at, phi + c * s->size,
                   (size_t)s->size * sizeof *phi);
        }
        for (int i = 0; i < p; i++) {
            double begin = 0, end = 0;
            for (int j = 0; j < w->r; j++) {
                const double f = w->select[(ptrdiff_t)j * sources + a];
                begin += f * w->d0[(ptrdiff_t)i * w->r + j];
                end += f * w->d1[(ptrdiff_t)i * w->r + j];
            }
            double* row = w->phi + (ptrdiff_t)i * n + s->at;
            row[0] += begin;
            for (int c = 0; c < s->size; c++) {
                row[c] += end * phi[c];
            }
        }
    }
    for (int i = p + w->s; i < n; i++) {
        w->phi[(ptrdiff_t)i * n + i] = 1;
    }
}

// phi q + D0 v0 + D1 v1, with matrices that stay the same
static void predict_constant(crd_twin* w)
{
    const int n = w->n, p = w->p;
    double* next = w->vector;
    for (int i = 0; i < n; i++) {
        const double* row = w->phi + (ptrdiff_t)i * n;
        double sum = i < p ? w->steady[i] : 0;
        for (int j = 0; j < n; j++) {
            sum += row[j] * w->q[j];
        }
        next[i] = sum;
    }
    for (int k = 0; k < w->moving_count; k++) {
        const int j = w->moving[k];
        for (int i = 0; i < p; i++) {
            const ptrdiff_t at = (ptrdiff_t)i * w->r + j;
            next[i] += w->d0[at] * w->v0[j] + w->d1[at] * w->v1[j];
        }
    }
    memcpy(w->q, next, (size_t)n * sizeof *next);
}

// z by the matrices at theta (first order around theta0), the rest by phi.
void crdi_twin_predict_mean(crd_twin* w)
{
    if (w->constant) {
        predict_constant(w);
        return;
    }
    const int n = w->n, p = w->p;
    double *v0 = w->vector, *v1 = v0 + w->r, *next = v1 + w->r;
    all_inputs(w, v0, v1);
    for (int i = 0; i < p; i++) {
        double sum = input_row(w, i, w->d0, w->d1, v0, v1);
        for (int j = 0; j < p; j++) {
            sum += w->f[(ptrdiff_t)i * p + j] * w->q[j];
        }
        for (int g = 0; g < w->k; g++) {
            const double moved = w->q[p + w->s + g] - w->theta0[g];
            if (moved == 0) { continue; }
            const double* df = w->df + ((ptrdiff_t)g * p + i) * p;
            double slope = input_row(w, i, w->dd0 + (ptrdiff_t)g * p * w->r,
                                     w->dd1 + (ptrdiff_t)g * p * w->r, v0, v1);
            for (int j = 0; j < p; j++) {
                slope += df[j] * w->q[j];
            }
            sum += moved * slope;
        }
        next[i] = sum;
    }
    for (int i = p; i < n; i++) {
        double sum = 0;
        for (int j = p; j < n; j++) {
            sum += w->phi[(ptrdiff_t)i * n + j] * w->q[j];
        }
        next[i] = sum;
    }
    memcpy(w->q, next, (size_t)n * sizeof *next);
}

crd_status crdi_twin_noise_room(crd_twin* w)
{
    const size_t n = (size_t)w->n, most = 2 * n + 1;
    w->noise_g = crdi_arena_new(&w->arena, n * most, sizeof *w->noise_g);
    w->noise_q = crdi_arena_new(&w->arena, most, sizeof *w->noise_q);
    w->noise_columns = crdi_arena_new(&w->arena, n * most, sizeof *w->noise_columns);
    return w->noise_g && w->noise_q && w->noise_columns ? CRD_OK : CRD_E_MEMORY;
}

// One column per noise: states, sources, drifts. Variances per step grow with the time.
void crdi_twin_noise(crd_twin* w)
{
    int count = 0;
    const double h = w->h, part = h / w->spec.step;
    double* columns = w->noise_columns;
    memset(columns, 0, (size_t)w->n * (2 * (size_t)w->n + 1) * sizeof *columns);
    for (int i = 0; i < w->p && w->spec.state_noise > 0; i++) {
        columns[(ptrdiff_t)count * w->n + i] = 1;
        w->noise_q[count++] = part * w->spec.state_noise;
    }
    for (int i = 0; i < w->spec.source_count; i++) {
        const crd_twin_source* s = &w->spec.sources[i];
        const int at = w->sources[i].at;
        double* c = columns + (ptrdiff_t)count * w->n + at;
        if (!(s->noise > 0)) { continue; }
        if (s->model == CRD_SOURCE_WALK) {
            c[0] = 1;
            w->noise_q[count++] = part * s->noise;
        } else if (s->model == CRD_SOURCE_INTEGRATED) {
            // [h^3/3 h^2/2; h^2/2 h] = [h/2; 1] h [..] + [1; 0] h^3/12 [..]
            c[0] = h / 2;
            c[1] = 1;
            w->noise_q[count++] = s->noise * h;
            columns[(ptrdiff_t)count * w->n + at] = 1;
            w->noise_q[count++] = s->noise * h * h * h / 12;
        } else if (s->model == CRD_SOURCE_OSCILLATOR) {
            for (int k = 1; k < 4; k++) { // mean, a, b
                columns[(ptrdiff_t)count * w->n + at + k] = 1;
                columns[(ptrdiff_t)count * w->n + at] = k < 3;
                w->noise_q[count++] = part * s->noise;
            }
        }
    }
    for (int g = 0; g < w->k; g++) {
        if (w->spec.parameters[g].drift > 0) {
            columns[(ptrdiff_t)count * w->n + w->p + w->s + g] = 1;
            w->noise_q[count++] = part * w->spec.parameters[g].drift;
        }
    }
    w->noises = count;
    for (int i = 0; i < w->n; i++) {
        for (int c = 0; c < count; c++) {
            w->noise_g[(ptrdiff_t)i * count + c] = columns[(ptrdiff_t)c * w->n + i];
        }
    }
}
