// Weights of the caller, one set or one for each of several latencies: that of the largest latency
// not above k is used, or of the smallest.
#include "coupling/algorithm.h"

#include <string.h>

static const crd_linear* given_for(const crd_coupling_options* o, int k)
{
    const crd_linear* best = &o->given[0];
    for (int i = 1; i < o->given_count; i++) {
        if (o->given[i].k <= k && o->given[i].k >= best->k) { best = &o->given[i]; }
    }
    return best;
}

static crd_status given_copy(crd_context* ctx, const crd_coupling_options* o, int k,
                             crd_linear* out)
{
    return crd_linear_copy(ctx, given_for(o, k), o->any_gain, out);
}

static crd_status given_check_options(crd_context* ctx, const crd_coupling_options* o)
{
    const int n = o->given ? o->given_count : 0;
    return crdi_coupling_check_number(ctx, "given_count", n, n > 0, "at least one set of weights");
}

#ifndef CRDI_SMALL
// ---- in descriptions ---------------------------------------------------------------------------

static crd_status read_one_weights(crdi_element_reader* r, const crdi_json* n, bool needs_k,
                                   crd_linear* out)
{
    static const char* const names[] = {"k", "a", "A", "b", NULL};
    crd_status st = CRD_OK;
    CRD_TRY(crdi_element_check_members(r, n, "a mapping such as {k: 6, a: [7, -6]}", names));
    const crdi_json *k = crdi_element_member(n, "k"), *a = crdi_element_member(n, "a"),
                    *A = crdi_element_member(n, "A"), *b = crdi_element_member(n, "b");
    if (!a || (needs_k && !k)) {
        return crdi_element_fail(r, n, CRD_E_FORMAT, "the key '%s' is missing in the weights",
                                 a ? "k" : "a");
    }
    if (k) { CRD_TRY(crdi_element_read_int(r, k, 0, CRD_LATENCY_MAX, &out->k)); }
    const int m = a->kind == CRDI_JSON_LIST && a->count > 0 ? a->count : 1;
    crd_real* w = crdi_arena_new(r->arena, 2 * (size_t)m, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_element_read_numbers(r, a, 1, CRD_TAPS_MAX, w));
    if (A) { CRD_TRY(crdi_element_read_numbers(r, A, m, m, w + m)); }
    if (b) { CRD_TRY(crdi_element_read_number(r, b, CRDI_ANY, &out->b)); }
    out->m = m;
    out->a = w;
    out->A = A ? w + m : NULL;
    crd_linear copy;
    st = crd_linear_copy(r->ctx, out, r->e->options.any_gain, &copy);
    if (st >= 0) { crd_linear_clear(r->ctx, &copy); }
    return crdi_element_placed(r, a, st);
fail:
    return st;
}

static crd_status read_weights(crdi_element_reader* r, const crdi_json* n)
{
    const bool list = n->kind == CRDI_JSON_LIST;
    if (list && (n->count == 0 || n->count > CRD_LATENCY_MAX + 1)) {
        return crdi_element_fail(r, n, CRD_E_RANGE, "%d sets of weights, expected 1 .. %d",
                                 n->count, CRD_LATENCY_MAX + 1);
    }
    const int count = list ? n->count : 1;
    crd_linear* given = crdi_arena_new(r->arena, (size_t)count, sizeof *given);
    if (!given) { return CRD_E_MEMORY; }
    const crdi_json* m = list ? n->first : n;
    for (int i = 0; i < count; i++, m = m->next) {
        const crd_status st = read_one_weights(r, m, count > 1, &given[i]);
        if (st < 0) { return st; }
        if (i > 0 && given[i].k <= given[i - 1].k) {
            return crdi_json_fail(r->ctx, r->file, m->line, CRD_E_RANGE,
                                  "weights: k = %d after %d, expected ascending k", given[i].k,
                                  given[i - 1].k);
        }
    }
    r->e->options.given = given;
    r->e->options.given_count = count;
    return CRD_OK;
}

static void write_weights(crdi_element_writer* w, const crd_element* e)
{
    crdi_element_put_key(w, "weights");
    crdi_text_put(w->out, "[", 1);
    for (int i = 0; i < e->options.given_count; i++) {
        const crd_linear* l = &e->options.given[i];
        crdi_text_add(w->out, i ? ", {" : "{");
        crdi_element_writer inner = {w->out, false};
        crdi_element_put_int(&inner, "k", l->k);
        crdi_element_put_list(&inner, "a", l->a, l->m);
        if (l->A) { crdi_element_put_list(&inner, "A", l->A, l->m); }
        if (l->b != 0) { crdi_element_put_number(&inner, "b", l->b); }
        crdi_text_put(w->out, "}", 1);
    }
    crdi_text_put(w->out, "]", 1);
}

static crd_status given_check_keys(crdi_element_reader* r, const crdi_json* n)
{
    return r->e->options.given ? CRD_OK
                               : crdi_element_fail(r, n, CRD_E_FORMAT,
                                                   "the algorithm linear needs the key 'weights'");
}

static const crdi_element_option keys[] = {
    {"any-gain", CRDI_ELEMENT_BOOL,
     CRDI_ELEMENT_FIELD(any_gain)}, // before the weights, which it is for
    {"weights", .read = read_weights, .write = write_weights},
    {0},
};
#endif

const crdi_algorithm crdi_algorithm_given = {
    .name = "linear",
    CRDI_DESCRIBED(.keys = keys, .check_keys = given_check_keys),
    .needs_keys = true,
    .check_options = given_check_options,
    .linear = given_copy};
