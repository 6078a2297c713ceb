// Sensors and outputs as rows over the variables of the network.
#include "twin/twin.h"

#include <math.h>
#include <string.h>

static crd_status unknown(crd_twin* w, int sensor, const char* kind, const char* name)
{
    const crd_twin_sensor* s = &w->spec.sensors[sensor];
    return crdi_fail(w->ctx, CRD_E_NOT_FOUND,
                     "sensor %s: there is no %s \"%s\" in the netlist (at: %s)",
                     crdi_clip(s->name).text, kind, crdi_clip(name).text, crdi_clip(s->what).text);
}

// A name and the blanks around it; what follows.
static const char* twin_rows_name(const char* p, char name[64])
{
    p += strspn(p, " ");
    const size_t n = strcspn(p, ",() ");
    if (n < 64) {
        memcpy(name, p, n);
        name[n] = 0;
    }
    return p + n + strspn(p + n, " ");
}

// v(a), v(a,b), t(...), i(part), q(part) into kind and one or two names; false: something else
static bool twin_rows_split(const char* what, char* kind, char a[64], char b[64])
{
    while (*what == ' ') {
        what++;
    }
    *kind = (char)(*what | 0x20);
    a[0] = b[0] = 0;
    if (!strchr("vtiq", *kind) || !*what) { return false; }
    what += 1 + strspn(what + 1, " ");
    if (*what != '(') { return false; }
    what = twin_rows_name(what + 1, a);
    if (a[0] && *what == ',') { what = twin_rows_name(what + 1, b); }
    const char* end = strchr(what, ')');
    return a[0] && end && strspn(end + 1, " ") == strlen(end + 1);
}

static bool room_for(crd_twin* w, crdi_row* row, int count)
{
    row->at = crdi_arena_new(&w->arena, (size_t)count, sizeof *row->at);
    row->factor = crdi_arena_new(&w->arena, (size_t)count, sizeof *row->factor);
    return row->at && row->factor;
}

static crd_status named_row(crd_twin* w, int sensor, char kind, const char* a, const char* b)
{
    crdi_row* row = &w->sensors[sensor].row;
    if (!room_for(w, row, 2)) { return CRD_E_MEMORY; }
    if (kind == 'i' || kind == 'q') {
        const int32_t part = crd_netlist_part(w->net, a);
        if (part < 0) { return unknown(w, sensor, "part", a); }
        row->at[0] = w->net->node_count + part;
        row->factor[0] = 1;
        row->count = 1;
        return CRD_OK;
    }
    const char* names[2] = {a, b};
    for (int i = 0; i < 2 && names[i][0]; i++) {
        const int32_t node = crd_netlist_node(w->net, names[i]);
        if (node < 0) { return unknown(w, sensor, "node", names[i]); }
        row->at[row->count] = node;
        row->factor[row->count++] = i ? -1 : 1;
    }
    return CRD_OK;
}

double crdi_twin_expression(const crd_twin* w, const crd_expression* e, crdi_row* row)
{
    const crd_use* uses;
    const int count = crd_expression_uses(e, &uses);
    double *x = w->values, *gradient = w->values + count;
    const int32_t nodes = w->net->node_count;
    for (int i = 0; i < count; i++) {
        const int32_t first = uses[i].kind == CRD_USE_CURRENT ? nodes + uses[i].a : uses[i].a;
        x[i] = uses[i].kind == CRD_USE_INPUT ? w->inputs[uses[i].a] : crdi_twin_variable(w, first);
        if (uses[i].kind == CRD_USE_PAIR) { x[i] -= crdi_twin_variable(w, uses[i].b); }
    }
    const double value = crd_expression_eval(e, x, crd_twin_time(w), row ? gradient : NULL);
    if (!row) { return value; }
    row->count = 0;
    for (int i = 0; i < count; i++) {
        if (uses[i].kind == CRD_USE_INPUT) { continue; }
        row->at[row->count] = uses[i].kind == CRD_USE_CURRENT ? nodes + uses[i].a : uses[i].a;
        row->factor[row->count++] = gradient[i];
        if (uses[i].kind == CRD_USE_PAIR) {
            row->at[row->count] = uses[i].b;
            row->factor[row->count++] = -gradient[i];
        }
    }
    return value;
}

// An output as a sensor: value = sum factor x + offset, wherever it is looked at.
static crd_status output_row(crd_twin* w, int sensor, int output)
{
    const crd_expression* e = w->net->outputs[output].what;
    crdi_row* row = &w->sensors[sensor].row;
    const crd_use* uses;
    const int count = crd_expression_uses(e, &uses);
    if (!room_for(w, row, 2 * count + 1)) { return CRD_E_MEMORY; }
    double *x = w->values, *slope = x + count, *first = slope + count;
    bool linear = true;
    for (int trial = 0; trial < 3 && linear; trial++) {
        double sum = 0;
        for (int i = 0; i < count; i++) {
            linear = linear && uses[i].kind != CRD_USE_INPUT;
            x[i] = trial ? 300.0 + 37.0 * trial * (i + 1) : 0;
        }
        const double value = crd_expression_eval(e, x, trial, slope);
        for (int i = 0; i < count; i++) {
            if (!trial) { first[i] = slope[i]; }
            linear = linear && fabs(slope[i] - first[i]) <= 1e-9 * fabs(first[i]);
            sum += first[i] * x[i];
        }
        if (!trial) { row->offset = value; }
        linear = linear && fabs(value - sum - row->offset) <= 1e-9 * (fabs(value) + fabs(sum));
    }
    if (!linear) {
        return crdi_fail(
            w->ctx, CRD_E_UNSUPPORTED,
            "sensor %s: the output %s is not a linear combination of voltages and currents",
            crdi_clip(w->spec.sensors[sensor].name).text,
            crdi_clip(w->net->outputs[output].name).text);
    }
    for (int i = 0; i < count; i++) {
        row->at[row->count] =
            uses[i].kind == CRD_USE_CURRENT ? w->net->node_count + uses[i].a : uses[i].a;
        row->factor[row->count++] = first[i];
        if (uses[i].kind == CRD_USE_PAIR) {
            row->at[row->count] = uses[i].b;
            row->factor[row->count++] = -first[i];
        }
    }
    return CRD_OK;
}

crd_status crdi_twin_sensor_row(crd_twin* w, int sensor)
{
    const crd_twin_sensor* s = &w->spec.sensors[sensor];
    char kind, a[64], b[64];
    crd_status st = CRD_E_NOT_FOUND;
    bool found = twin_rows_split(s->what, &kind, a, b);
    if (found) { st = named_row(w, sensor, kind, a, b); }
    for (int i = 0; i < w->net->output_count && !found; i++) {
        if (strcmp(w->net->outputs[i].name, s->what) == 0) {
            found = true;
            st = output_row(w, sensor, i);
        }
    }
    if (!found) {
        return crdi_fail(
            w->ctx, CRD_E_NOT_FOUND,
            "sensor %s: at: %s is neither v(node), v(node,node), t(node), i(part), q(part) "
            "nor an .output of the netlist",
            crdi_clip(s->name).text, crdi_clip(s->what).text);
    }
    if (st < 0) { return st; }
    const crdi_row* row = &w->sensors[sensor].row;
    for (int i = 0; i < row->count; i++) {
        for (int j = 0; j < w->r; j++) {
            if (w->m->b2[(ptrdiff_t)row->at[i] * w->r + j] != 0) {
                return crdi_fail(w->ctx, CRD_E_UNSUPPORTED,
                                 "sensor %s: %s depends on the derivative of a source", s->name,
                                 s->what);
            }
        }
    }
    return CRD_OK;
}

static double source_now(const crd_twin* w, int j) // element j of v
{
    double v = w->v1[j];
    for (int i = 0; i < w->spec.source_count; i++) {
        v += w->select[(ptrdiff_t)j * w->spec.source_count + i] * w->q[w->sources[i].at];
    }
    return v;
}

double crdi_twin_variable(const crd_twin* w, int32_t x)
{
    const double *t = w->m->t + (ptrdiff_t)x * w->p, *b = w->m->b + (ptrdiff_t)x * w->r;
    const double* b2 = w->m->b2 + (ptrdiff_t)x * w->r;
    double sum = 0;
    for (int j = 0; j < w->p; j++) {
        sum += t[j] * w->q[j];
    }
    for (int j = 0; j < w->r; j++) {
        sum += b[j] * source_now(w, j);
        if (b2[j] != 0) { sum += b2[j] * (w->v1[j] - w->v0[j]) / w->h; }
    }
    for (int g = 0; g < w->k; g++) { // first order around theta0
        const double moved = w->q[w->p + w->s + g] - w->theta0[g];
        const ptrdiff_t row = (ptrdiff_t)g * w->m->variables + x;
        double slope = 0;
        for (int j = 0; j < w->p && moved != 0; j++) {
            slope += w->dt[row * w->p + j] * w->q[j];
        }
        for (int j = 0; j < w->r && moved != 0; j++) {
            slope += w->db[row * w->r + j] * source_now(w, j);
        }
        sum += moved * slope;
    }
    return sum;
}

double crdi_twin_row_value(const crd_twin* w, const crdi_row* row)
{
    double sum = row->offset;
    for (int i = 0; i < row->count; i++) {
        sum += row->factor[i] * crdi_twin_variable(w, row->at[i]);
    }
    return sum;
}

// By z: T; by a source: B S; by theta: dT z + dB v
static void add_slope(const crd_twin* w, int32_t x, double f, double* h)
{
    const int sources = w->spec.source_count;
    for (int j = 0; j < w->p; j++) {
        h[j] += f * w->m->t[(ptrdiff_t)x * w->p + j];
    }
    for (int j = 0; j < w->r; j++) {
        const double b = f * w->m->b[(ptrdiff_t)x * w->r + j];
        for (int i = 0; i < sources; i++) {
            h[w->sources[i].at] += b * w->select[(ptrdiff_t)j * sources + i];
        }
    }
    for (int g = 0; g < w->k; g++) {
        const double* dt = w->dt + ((ptrdiff_t)g * w->m->variables + x) * w->p;
        const double* db = w->db + ((ptrdiff_t)g * w->m->variables + x) * w->r;
        double sum = 0;
        for (int j = 0; j < w->p; j++) {
            sum += dt[j] * w->q[j];
        }
        for (int j = 0; j < w->r; j++) {
            double v = w->v1[j];
            for (int i = 0; i < sources; i++) {
                v += w->select[(ptrdiff_t)j * sources + i] * w->q[w->sources[i].at];
            }
            sum += db[j] * v;
        }
        h[w->p + w->s + g] += f * sum;
    }
}

void crdi_twin_row_slope(const crd_twin* w, const crdi_row* row, double* h)
{
    memset(h, 0, (size_t)w->n * sizeof *h);
    for (int i = 0; i < row->count; i++) {
        add_slope(w, row->at[i], row->factor[i], h);
    }
}
