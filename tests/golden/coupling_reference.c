// The library's coupling element as a filter: coupling_reference ELEMENT.json START_VALUE
// reads lines `push VALUE STAMP SEQUENCE`, `eval T` and `reset`, and answers each eval with
// `Y K JUMP ACTIVE SAMPLES FILLED LATE JUMPS NOT_FINITE`, Y to the last bit.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cardan/coupling.h"

static char text[1 << 20];

static void answer(crd_coupling* c, double t)
{
    const double y = crd_coupling_eval(c, t);
    const crd_coupling_state s = crd_coupling_get_state(c);
    const crd_coupling_counts n = crd_coupling_get_counts(c);
    printf("%a %d %d %d %lld %lld %lld %lld %lld\n", y, s.k, s.jump, s.active + 1,
           (long long)n.samples, (long long)n.filled, (long long)n.late, (long long)n.jumps,
           (long long)n.not_finite);
}

int main(int argc, char** argv)
{
    crd_context* ctx = crd_context_create(NULL);
    FILE* f = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!ctx || !f) { return 2; }
    const size_t length = fread(text, 1, sizeof text, f);
    fclose(f);
    crd_element* e = NULL;
    crd_coupling* c = NULL;
    crd_coupling_options opt;
    if (crd_element_parse(ctx, text, length, argv[1], 1, &e) < 0 ||
        crd_element_options(e, e->step, &opt) < 0) {
        fprintf(stderr, "%s\n", crd_error_text(ctx));
        return 1;
    }
    opt.start_value = strtod(argv[2], NULL);
    if (crd_coupling_create(ctx, &opt, &c) < 0) {
        fprintf(stderr, "%s\n", crd_error_text(ctx));
        return 1;
    }
    double value, stamp, t;
    long long sequence;
    while (fgets(text, sizeof text, stdin)) {
        if (sscanf(text, "push %lf %lf %lld", &value, &stamp, &sequence) == 3) {
            crd_coupling_push(c, value, stamp, sequence);
        } else if (sscanf(text, "eval %lf", &t) == 1) {
            answer(c, t);
        } else if (strcmp(text, "reset\n") == 0) {
            crd_coupling_reset(c);
        } else {
            fprintf(stderr, "not understood: %s", text);
            return 1;
        }
    }
    crd_coupling_destroy(c);
    crd_element_destroy(e);
    crd_context_destroy(ctx);
    return 0;
}
