// Any bytes as an expression. Its value does not depend on whether derivatives are asked for, and
// the derivative with respect to what is not used is not there.
// modules: circuit num base
#include "circuit/expression.h"
#include "fuzz.h"

#include <math.h>
#include <string.h>

static crd_status use(void* user, const crdi_scan* at, crd_use_kind kind, crdi_word a, crdi_word b,
                      crd_use* out, bool* found)
{
    (void)user, (void)at;
    *found = kind != CRD_USE_INPUT || crdi_word_is(a, "speed");
    *out = (crd_use){kind, a.n ? *a.p & 7 : 0, kind == CRD_USE_PAIR ? *b.p & 7 : -1};
    return CRD_OK;
}

static crd_status parameter(void* user, const crdi_scan* at, crdi_word name, double* value,
                            bool* found)
{
    (void)user, (void)at;
    *found = crdi_word_is(name, "r0");
    *value = 47;
    return CRD_OK;
}

static crd_context* now; // of the present input

static const crdi_function* function(void* user, crdi_word name)
{
    static const char text[] = "x*y+y";
    crdi_function* f = user;
    *f = (crdi_function){.name = "f", .arguments = {{text, 1}, {text + 2, 1}}, .count = 2};
    f->body = (crdi_scan){now, text, text, text + 5, "f", 1};
    return crdi_word_is(name, "f") ? f : NULL;
}

static void run(crd_context* ctx, const char* text, size_t n, const crdi_names* names)
{
    crdi_builder builder;
    crd_arena arena;
    crdi_builder_init(&builder, ctx);
    crd_arena_init(&arena, ctx);
    crdi_scan s = {ctx, text, text, text + n, "fuzz", 1};
    double value;
    crd_expression* e;
    const crd_status st = crdi_expression_read(&builder, &s, names, &arena, true, &value, &e);
    if (builder.depth || builder.count || builder.table_count) { __builtin_trap(); }
    if (st == CRD_OK && e) {
        const crd_use* uses;
        static double x[CRDI_OPERATIONS_MOST], g[CRDI_OPERATIONS_MOST];
        const int count = crd_expression_uses(e, &uses);
        for (int i = 0; i < count; i++) {
            x[i] = 0.3 * i - 1;
        }
        const double a = crd_expression_eval(e, x, 0.5, NULL);
        const double b = crd_expression_eval(e, x, 0.5, g);
        if (memcmp(&a, &b, sizeof a) != 0) { __builtin_trap(); }
        if (!isnan(value) && value != a) { __builtin_trap(); }
    }
    crdi_builder_clear(&builder);
    crd_arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return 0; }
    now = ctx;
    crdi_function f;
    crdi_names names = {.user = &f, .parameter = parameter, .function = function, .use = use};
    names.temperature = 300.15;
    names.why = "it";
    run(ctx, (const char*)data, size, &names);
    names.use = NULL;
    run(ctx, (const char*)data, size, &names);
    const crdi_names dry = {.dry = true, .why = "it"};
    run(ctx, (const char*)data, size, &dry);
    crd_context_destroy(ctx);
    return 0;
}
