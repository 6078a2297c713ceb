// Any bytes as a netlist. What is accepted has indices within bounds, sources whose corners go
// forwards, and expressions that can be evaluated.
// modules: circuit num base
#include "cardan/circuit.h"
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void demand(bool good)
{
    if (!good) { __builtin_trap(); }
}

static void evaluate(const crd_netlist* n, const crd_expression* e)
{
    const crd_use* uses;
    const int count = crd_expression_uses(e, &uses);
    double* x = calloc((size_t)count + 1, 2 * sizeof *x);
    for (int i = 0; i < count; i++) {
        const int32_t end = uses[i].kind == CRD_USE_CURRENT ? n->part_count
                            : uses[i].kind == CRD_USE_INPUT ? n->input_count
                                                            : n->node_count;
        demand(uses[i].a >= 0 && uses[i].a < end);
        demand(uses[i].kind != CRD_USE_PAIR || (uses[i].b > 0 && uses[i].b < n->node_count));
        x[i] = 0.5 + i;
    }
    (void)crd_expression_eval(e, x, 0.25, x + count);
    free(x);
}

static void look_at_parts(const crd_netlist* n)
{
    const int limits[] = {
        [CRD_PART_RESISTOR] = n->expression_count,  [CRD_PART_VOLTAGE] = n->wave_count,
        [CRD_PART_CURRENT] = n->wave_count,         [CRD_PART_DIODE] = n->diode_count,
        [CRD_PART_SWITCH] = n->switch_count,        [CRD_PART_CURRENT_SWITCH] = n->switch_count,
        [CRD_PART_B_VOLTAGE] = n->expression_count, [CRD_PART_B_CURRENT] = n->expression_count};
    for (int32_t i = 0; i < n->part_count; i++) {
        const crd_part* p = &n->parts[i];
        demand(crd_netlist_part(n, n->names + p->name) == i);
        demand(p->kind <= CRD_PART_B_CURRENT && p->index < (limits[p->kind] ? limits[p->kind] : 1));
        for (int k = 0; k < 4; k++) {
            demand(p->nodes[k] >= -1 && p->nodes[k] < n->node_count);
        }
        demand(p->refs[0] >= -1 && p->refs[0] < n->part_count);
        demand(p->refs[1] >= -1 && p->refs[1] < n->part_count);
        demand(isfinite(p->value) && isfinite(p->ic));
    }
}

static void look_at(const crd_netlist* n)
{
    look_at_parts(n);
    double* inputs = calloc((size_t)n->input_count + 1, sizeof *inputs);
    for (int i = 0; i < n->wave_count; i++) {
        double t = -1;
        for (int k = 0; k < 10 && isfinite(t); k++) {
            (void)crd_waveform_eval(&n->waves[i], t, inputs);
            const double next = crd_waveform_next(&n->waves[i], t);
            demand(next > t);
            t = next;
        }
    }
    free(inputs);
    for (int i = 0; i < n->expression_count; i++) {
        evaluate(n, n->expressions[i]);
    }
    for (int i = 0; i < n->output_count; i++) {
        evaluate(n, n->outputs[i].what);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    const crd_netlist_options opt = {.max_parts = 5000};
    crd_netlist* n = NULL;
    if (crd_netlist_parse(ctx, (const char*)data, size, "fuzz.cir", &opt, &n) == CRD_OK) {
        look_at(n);
    } else {
        demand(crd_error_text(ctx)[0] != 0);
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
    return 0;
}
