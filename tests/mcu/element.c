// An exported element, and with WITH_CORE the same of libcardan beside it: what they say, as
// hexadecimal bits. METHOD, TAPS, HOLD say which; NAME is `element`.
#include "element.h"
#include "board.h"
#ifdef WITH_CORE
#include "cardan/coupling.h"
#endif

enum { SAMPLES = 300, PARTS = 4 };

static double noise(void) // in [-1, 1), exact on every machine
{
    static uint32_t x = 1;
    x = x * 1664525u + 1013904223u;
    return (double)(int32_t)x / 2147483648.0;
}

int main(void)
{
    static element e;
    double signal = 0;
    element_begin(&e, 0.5);
#ifdef WITH_CORE
    crd_context* ctx = crd_context_create(0);
    crd_coupling* c = 0;
    crd_coupling_options o = crd_coupling_defaults();
    o.step = element_STEP;
    o.start_value = 0.5;
    o.algorithm = CRD_ALGORITHM_LINEAR;
    o.design = crd_design_defaults(METHOD);
    o.design.taps = TAPS;
    o.detection = CRD_DETECT_NONE;
    o.reconstruction = HOLD ? CRD_RECONSTRUCT_HOLD : CRD_RECONSTRUCT_OWN;
    if (crd_coupling_create(ctx, &o, &c) < 0) { return 1; }
#endif
    for (int n = 0; n < SAMPLES; n++) {
        if (n >= element_LATENCY) {
            signal += 0.3 * noise();
            element_push(&e, signal);
#ifdef WITH_CORE
            const int taken = n - element_LATENCY;
            crd_coupling_push(c, signal, element_STEP * taken, taken);
#endif
        }
        for (int i = 0; i < PARTS; i++) {
            const double theta = (double)i / PARTS;
            board_number((double)element_eval(&e, theta));
#ifdef WITH_CORE
            board_number(crd_coupling_eval(c, element_STEP * (n + theta)));
#endif
        }
        board_write("\n");
    }
    return 0;
}
