// Derivatives of outputs, from a polynomial through their last values.
#include "circuit/circuit.h"
#include "shared/base.h"
#include "shared/circuit_part.h"

#include <math.h>
#include <string.h>

static size_t width(const crd_circuit* c)
{
    return 1 + (size_t)c->n->output_count;
}

size_t crdi_past_size(const crd_circuit* c)
{
    return CRDI_PAST * width(c) + 2;
}

crd_status crdi_past_init(crd_circuit* c)
{
    crdi_past* p = &c->past;
    p->row = crdi_arena_new(&c->arena, crdi_past_size(c), sizeof *p->row);
    if (!p->row) { return CRD_E_MEMORY; }
    p->count = p->row + CRDI_PAST * width(c);
    p->cut = p->count + 1;
    return CRD_OK;
}

static void write_newest(crd_circuit* c)
{
    double* row = c->past.row;
    row[0] = crdi_circuit_time(c, 0);
    for (int i = 0; i < c->n->output_count; i++) {
        row[1 + i] = crd_circuit_get_output(c, i);
    }
}

void crdi_past_begin(crd_circuit* c)
{
    *c->past.cut = 0;
    *c->past.count = 0;
    if (c->past.on) {
        write_newest(c);
        *c->past.count = 1;
    }
}

void crdi_past_push(crd_circuit* c)
{
    crdi_past* p = &c->past;
    if (!p->on) { return; }
    if (*p->cut != 0) { *p->count = 1; }
    *p->cut = 0;
    memmove(p->row + width(c), p->row, (CRDI_PAST - 1) * width(c) * sizeof *p->row);
    write_newest(c);
    if (*p->count < CRDI_PAST) { ++*p->count; }
}

int crdi_past_points(crd_circuit_method method)
{
    switch (method) {
    case CRD_METHOD_BDF1:
        return 2;
    case CRD_METHOD_BDF3:
    case CRD_METHOD_GAUSS2:
    case CRD_METHOD_GAUSS4:
        return 4;
    default:
        return 3;
    }
}

double crd_circuit_get_output_derivative(crd_circuit* c, int output)
{
    crdi_past* p = &c->past;
    if (output < 0 || output >= c->n->output_count) { return (double)NAN; }
    if (!c->begun) { return 0; }
    p->on = true;
    if (*p->count == 0) { crdi_past_begin(c); }
    const int most = crdi_past_points(c->opt.method),
              count = *p->count < most ? (int)*p->count : most;
    double t[CRDI_PAST], y[CRDI_PAST], slope = 0, product = 1;
    for (int i = 0; i < count; i++) {
        t[i] = p->row[(size_t)i * width(c)];
        y[i] = p->row[(size_t)i * width(c) + 1 + (size_t)output];
    }
    for (int k = 1; k < count; k++) { // y[0] becomes the k-th divided difference
        for (int i = 0; i + k < count; i++) {
            y[i] = (y[i] - y[i + 1]) / (t[i] - t[i + k]);
        }
        slope += y[0] * product;
        product *= t[0] - t[k];
    }
    return slope;
}
