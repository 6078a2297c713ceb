// An expression without a circuit: what it uses are numbers with names.
#include "circuit/expression.h"
#include "shared/circuit_formula.h"

#include <string.h>

struct crdi_formula {
    crd_context* ctx;
    crd_arena arena;
    crd_expression* e; // NULL: `value`
    double value;
    double* x; // what e uses
    const crd_use* uses;
    int count;
};

typedef struct known {
    const char* const* names;
    int count;
} known;

static crd_status use_name(void* user, const crdi_scan* at, crd_use_kind kind, crdi_word a,
                           crdi_word b, crd_use* out, bool* found)
{
    const known* k = user;
    (void)b;
    if (kind != CRD_USE_INPUT) {
        return crdi_scan_fail(at, CRD_E_UNSUPPORTED, "there is no circuit here for v() and i()");
    }
    for (int i = 0; i < k->count; i++) {
        if (strlen(k->names[i]) == a.n && memcmp(k->names[i], a.p, a.n) == 0) {
            *out = (crd_use){CRD_USE_INPUT, i, 0};
            *found = true;
        }
    }
    return CRD_OK;
}

crd_status crdi_formula_create(crd_context* ctx, const char* text, const char* file, int line,
                               const char* const* names, int count, crdi_formula** out)
{
    crd_status st = CRD_OK;
    crdi_builder b;
    known k = {names, count};
    const crdi_names all = {.user = &k, .use = use_name, .why = "this", .temperature = 300.15};
    const size_t n = strlen(text);
    crdi_scan s = {ctx, text, text, text + n, file, line};
    crdi_builder_init(&b, ctx);
    crdi_formula* f = crdi_new(ctx, sizeof *f);
    if (!f) { return CRD_E_MEMORY; }
    f->ctx = ctx;
    crd_arena_init(&f->arena, ctx);
    CRD_TRY(crdi_expression_read(&b, &s, &all, &f->arena, false, &f->value, &f->e));
    if (!crdi_scan_end(&s)) {
        st = crdi_scan_fail(&s, CRD_E_FORMAT, "\"%s\" behind the end of the expression",
                            crdi_word_clip(crdi_scan_look(&s)).text);
        goto fail;
    }
    if (f->e) {
        f->count = crd_expression_uses(f->e, &f->uses);
        f->x = crdi_arena_new(&f->arena, (size_t)f->count, sizeof *f->x);
        CRD_TRY(crdi_arena_status(&f->arena));
    }
    *out = f;
    f = NULL;
fail:
    crdi_formula_destroy(f);
    crdi_builder_clear(&b);
    return st;
}

double crdi_formula_value(crdi_formula* f, const double* numbers)
{
    if (!f->e) { return f->value; }
    for (int i = 0; i < f->count; i++) {
        f->x[i] = numbers[f->uses[i].a];
    }
    return crd_expression_eval(f->e, f->x, 0, NULL);
}

void crdi_formula_destroy(crdi_formula* f)
{
    if (!f) { return; }
    crd_arena_clear(&f->arena);
    crd_free(f->ctx, f);
}
