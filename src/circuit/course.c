// Runs of a circuit: from where it is to a time, and what probes say meanwhile.
#include "circuit/circuit.h"
#include "shared/base.h"

#include <math.h>

crd_status crd_circuit_run(crd_circuit* c, const crd_circuit_course* course)
{
    // A stop that is no multiple of the step is not passed.
    const double t = crd_circuit_time(c), step = c->opt.step;
    const double left = floor((course->stop - t) / step * (1 + 1e-12) + 1e-6);
    crd_status st = CRD_OK;
    for (int64_t n = 0; course->most <= 0 || n < course->most; n++) {
        const bool over =
            course->control ? !(crd_circuit_time(c) < course->stop) : !((double)n < left);
        if (over) { break; }
        if (course->before) { CRD_TRY(course->before(course->user, crd_circuit_time(c) + step)); }
        CRD_TRY(course->control ? crd_circuit_advance(c, course->stop, course->control)
                                : crd_circuit_step(c));
        if (course->after) { CRD_TRY(course->after(course->user, c)); }
        if (course->ended && *course->ended) { break; }
    }
fail:
    return st;
}

typedef struct recorded {
    crd_circuit* c;
    crd_circuit_record* r;
} recorded;

static crd_status feed_row(void* user, double t)
{
    (void)t;
    const recorded* x = user;
    const crd_circuit_record* r = x->r;
    crd_status st = CRD_OK;
    if (!r->inputs || r->steps >= r->input_rows) { return CRD_OK; }
    const int count = x->c->n->input_count;
    for (int i = 0; i < count && st >= 0; i++) {
        st = crd_circuit_set_input(x->c, i, r->inputs[r->steps * count + i]);
    }
    return st;
}

static crd_status add_row(crd_circuit* c, crd_circuit_record* r)
{
    const double t = crd_circuit_time(c);
    if (t < r->from - 1e-9 * c->opt.step) { return CRD_OK; }
    const size_t width = 1 + (size_t)r->probe_count, used = (size_t)r->rows * width;
    double* grown = crdi_grow(c->ctx, r->values, &r->capacity, used + width, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    r->values = grown;
    double* row = grown + used;
    row[0] = t;
    for (int i = 0; i < r->probe_count; i++) {
        row[1 + i] = crd_circuit_probe_value(c, &r->probes[i]);
    }
    r->rows++;
    return CRD_OK;
}

static crd_status count_row(void* user, crd_circuit* c)
{
    crd_circuit_record* r = ((const recorded*)user)->r;
    const int every = r->every > 0 ? r->every : 1;
    return ++r->steps % every == 0 ? add_row(c, r) : CRD_OK;
}

crd_status crd_circuit_run_recorded(crd_circuit* c, const crd_circuit_course* course,
                                    crd_circuit_record* r)
{
    recorded x = {c, r};
    crd_circuit_course own = *course;
    own.before = feed_row;
    own.after = count_row;
    own.user = &x;
    if (r->rows == 0 && r->steps == 0) {
        const crd_status st = add_row(c, r);
        if (st < 0) { return st; }
    }
    return crd_circuit_run(c, &own);
}
