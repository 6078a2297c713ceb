// Any bytes as a netlist, and if it is one, it is run: both forms, every method, fixed steps, state
// save and restore, steps of their own choosing. Linear circuits out of positive R, L, C give the
// same voltages in both forms.
// modules: circuit num base
#include "cardan/circuit.h"
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 50, STEPS = 20 };

static void demand(bool good)
{
    if (!good) { __builtin_trap(); }
}

static void look(crd_circuit* c, const crd_netlist* n)
{
    double sum = 0;
    for (int32_t i = 0; i < n->node_count; i++) {
        sum += crd_circuit_voltage(c, i);
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        sum += crd_circuit_current(c, i);
    }
    for (int i = 0; i < n->output_count; i++) {
        sum += crd_circuit_get_output(c, i) + crd_circuit_get_output_derivative(c, i);
    }
    (void)sum;
}

static double largest(const double* v, int32_t count)
{
    double large = 1e-9;
    for (int32_t i = 0; i < count; i++) {
        large = fmax(large, fabs(v[i]));
    }
    return large;
}

// The same steps again from a saved state: the same voltages but for the order of pivots.
static void again(crd_circuit* c, const crd_netlist* n)
{
    double v[2][2 * PARTS + 1] = {{0}};
    bool ok = true;
    void* state = malloc(crd_circuit_state_size(c) + 1);
    if (!state) { return; }
    crd_circuit_save(c, state);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 3 && ok; i++) {
            ok = crd_circuit_step(c) >= 0;
        }
        for (int32_t i = 0; i < n->node_count; i++) {
            v[pass][i] = crd_circuit_voltage(c, i);
        }
        crd_circuit_restore(c, state);
    }
    free(state);
    const double large = largest(v[0], n->node_count);
    for (int32_t i = 0; i < n->node_count && ok; i++) {
        demand(!(fabs(v[1][i] - v[0][i]) > 1e-6 * large));
    }
}

static void advance(crd_circuit* c, const crd_netlist* n, double step)
{
    const crd_circuit_control k = crd_circuit_control_defaults();
    const double stop = crd_circuit_time(c) + 50 * step;
    for (int i = 0; i < STEPS && crd_circuit_time(c) < stop; i++) {
        const double before = crd_circuit_time(c);
        if (crd_circuit_advance(c, stop, &k) < 0) { return; }
        demand(crd_circuit_time(c) > before && crd_circuit_time(c) <= stop * (1 + 1e-12));
    }
    look(c, n);
}

// Voltages after some steps into `v`; false: it was refused or failed.
static bool run(crd_context* ctx, const crd_netlist* n, const crd_circuit_options* o, double* v)
{
    crd_circuit* c = NULL;
    bool ok = crd_circuit_create(ctx, n, o, &c) >= 0;
    if (!ok) {
        demand(crd_error_text(ctx)[0] != 0);
        return false;
    }
    (void)crd_circuit_get_structure(c);
    ok = crd_circuit_begin(c, 0) >= 0;
    for (int i = 0; i < STEPS && ok; i++) {
        ok = crd_circuit_step(c) >= 0;
    }
    look(c, n);
    for (int32_t i = 0; i < n->node_count; i++) {
        v[i] = crd_circuit_voltage(c, i);
    }
    if (ok) {
        again(c, n);
        advance(c, n, o->step);
        if (crd_circuit_set_step(c, 0.3 * o->step) >= 0) { (void)crd_circuit_step(c); }
    }
    crd_circuit_destroy(c);
    return ok;
}

// Out of R, L, C, V, I alone, all of them of a size that leaves room for rounding
static bool is_plain(const crd_netlist* n, double step)
{
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        double size = 1; // in units of its step: what ends up in the matrix
        switch (p->kind) {
        case CRD_PART_RESISTOR:
            if (p->index >= 0) { return false; }
            size = p->value;
            break;
        case CRD_PART_INDUCTOR:
            size = p->value / step;
            break;
        case CRD_PART_CAPACITOR:
            size = step / p->value;
            break;
        case CRD_PART_VOLTAGE:
        case CRD_PART_CURRENT:
            break;
        default:
            return false;
        }
        if (!(size >= 1e-3 && size <= 1e3)) { return false; }
    }
    return true;
}

static void compare(const crd_netlist* n, const double* a, const double* b)
{
    const double large = largest(a, n->node_count);
    for (int32_t i = 0; i < n->node_count; i++) {
        demand(!(fabs(a[i] - b[i]) > 1e-6 * large));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    static const crd_circuit_method methods[] = {
        CRD_METHOD_TR,     CRD_METHOD_BDF1,       CRD_METHOD_BDF2,   CRD_METHOD_BDF3,
        CRD_METHOD_TRBDF2, CRD_METHOD_TR_CARRIED, CRD_METHOD_GAUSS2, CRD_METHOD_GAUSS4};
    enum { METHODS = sizeof methods / sizeof *methods };
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    const crd_netlist_options limits = {.max_parts = PARTS};
    crd_netlist* n = NULL;
    if (crd_netlist_parse(ctx, (const char*)data, size, "fuzz.cir", &limits, &n) == CRD_OK &&
        n->node_count <= 2 * PARTS) {
        crd_circuit_options o = crd_circuit_defaults();
        o.step = n->tran_step > 0 && isfinite(n->tran_step) ? n->tran_step : 1e-3;
        o.max_iterations = 30;
        // One method per input and form is enough; which one, its bytes say.
        unsigned turn = (unsigned)size;
        for (size_t i = 0; i < size; i++) {
            turn = 31 * turn + data[i];
        }
        o.method = methods[turn % METHODS];
        o.start = (crd_circuit_start)(turn / METHODS % 3);
        o.no_chains = turn / 64 % 2;
        double a[2 * PARTS + 1], b[2 * PARTS + 1];
        o.form = CRD_FORM_DAE;
        const bool one = run(ctx, n, &o, a);
        o.form = CRD_FORM_NODAL;
        const bool other = run(ctx, n, &o, b);
        if (one && other && is_plain(n, o.step)) { compare(n, a, b); }
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
    return 0;
}
