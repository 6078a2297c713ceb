// The values of sources over time.
#include "circuit/netlist.h"

#include <math.h>
#include <string.h>

typedef struct points {
    double *t, *y;
    size_t t_capacity, y_capacity, count;
} points;

static const struct {
    const char* word;
    crd_waveform_kind kind;
    int least, most;
} functions[] = {{"sin", CRD_WAVE_SIN, 2, 6},     {"sine", CRD_WAVE_SIN, 2, 6},
                 {"pulse", CRD_WAVE_PULSE, 2, 7}, {"exp", CRD_WAVE_EXP, 2, 6},
                 {"pwl", CRD_WAVE_PWL, 2, 0},     {"input", CRD_WAVE_INPUT, 1, 1}};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

static bool at_argument(crdi_reading* r, bool bracket)
{
    (void)crdi_scan_take(&r->s, ',');
    if (crdi_scan_end(&r->s) || *r->s.p == ')') { return false; }
    if (bracket) { return true; }
    crdi_scan ahead = r->s;
    crdi_word key;
    return !crdi_key(&ahead, &key) && !crdi_word_is(crdi_scan_word(&ahead), "ac");
}

static crd_status arguments(crdi_reading* r, int f, bool bracket, crd_waveform* w)
{
    crd_status st = CRD_OK;
    int count = 0;
    for (int i = 0; i < 7; i++) {
        w->v[i] = (double)NAN; // what is left out depends on .tran, and is filled in at the end
    }
    while (at_argument(r, bracket)) {
        if (count == functions[f].most) {
            return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED, "%s: %s has at most %d numbers",
                                  crdi_word_clip(r->name).text, functions[f].word,
                                  functions[f].most);
        }
        CRD_TRY(crdi_value(r, false, "the number of a source", &w->v[count]));
        count++;
    }
    if (count < functions[f].least) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: %s has at least %d numbers, here are %d",
                              crdi_word_clip(r->name).text, functions[f].word, functions[f].least,
                              count);
    }
fail:
    return st;
}

static crd_status netlist_sources_add_point(crdi_reading* r, points* q, double t, double y)
{
    crd_context* ctx = r->p->ctx;
    if (q->count && t < q->t[q->count - 1]) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s: pwl goes back from %g s to %g s",
                              crdi_word_clip(r->name).text, q->t[q->count - 1], t);
    }
    if (q->count >= INT32_MAX) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s: pwl has too many points",
                              crdi_word_clip(r->name).text);
    }
    double* p = crdi_grow(ctx, q->t, &q->t_capacity, q->count + 1, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    q->t = p;
    p = crdi_grow(ctx, q->y, &q->y_capacity, q->count + 1, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    q->y = p;
    q->t[q->count] = t;
    q->y[q->count++] = y;
    return CRD_OK;
}

static crd_status read_points(crdi_reading* r, bool bracket, points* q)
{
    crd_status st = CRD_OK;
    while (at_argument(r, bracket)) {
        double t, y;
        CRD_TRY(crdi_value(r, false, "a time", &t));
        if (!at_argument(r, bracket)) {
            return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: pwl has a time %g without a value",
                                  crdi_word_clip(r->name).text, t);
        }
        CRD_TRY(crdi_value(r, false, "a value", &y));
        CRD_TRY(netlist_sources_add_point(r, q, t, y));
    }
    if (q->count == 0) {
        st = crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: pwl has no points",
                            crdi_word_clip(r->name).text);
    }
fail:
    return st;
}

static crd_status piecewise(crdi_reading* r, bool bracket, crd_waveform* w)
{
    crd_status st = CRD_OK;
    points q = {0};
    CRD_TRY(read_points(r, bracket, &q));
    double* t = crdi_arena_new(&r->p->n->arena, 2 * q.count, sizeof *t);
    if (!t) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    memcpy(t, q.t, q.count * sizeof *t);
    memcpy(t + q.count, q.y, q.count * sizeof *t);
    w->times = t;
    w->values = t + q.count;
    w->count = (int)q.count;
fail:
    crd_free(r->p->ctx, q.t);
    crd_free(r->p->ctx, q.y);
    return st;
}

static crd_status input(crdi_reading* r, crd_waveform* w)
{
    char text[CRDI_NAME_MOST + 1];
    const crdi_word name = crdi_scan_word(&r->s);
    const int32_t i = crdi_word_fold(name, text) ? crdi_map_find(&r->p->input_map, text) : -1;
    if (i < 0) {
        return crdi_scan_fail(&r->s, CRD_E_NOT_FOUND, "%s: there is no .input \"%s\"",
                              crdi_word_clip(r->name).text, crdi_word_clip(name).text);
    }
    w->input = i;
    return CRD_OK;
}

static crd_status function(crdi_reading* r, int f, crd_waveform* w)
{
    crd_status st = CRD_OK;
    const bool bracket = crdi_scan_take(&r->s, '(');
    *w = (crd_waveform){.kind = functions[f].kind};
    switch (w->kind) {
    case CRD_WAVE_PWL:
        CRD_TRY(piecewise(r, bracket, w));
        break;
    case CRD_WAVE_INPUT:
        CRD_TRY(input(r, w));
        break;
    default:
        CRD_TRY(arguments(r, f, bracket, w));
        break;
    }
    if (bracket && !crdi_scan_take(&r->s, ')')) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: \"%s\" where the ')' of %s is expected",
                              crdi_word_clip(r->name).text,
                              crdi_word_clip(crdi_scan_look(&r->s)).text, functions[f].word);
    }
fail:
    return st;
}

// AC [magnitude [phase]]: only for other analyses
static crd_status skip_ac(crdi_reading* r)
{
    crd_status st = CRD_OK;
    double value;
    for (int i = 0; i < 2 && !crdi_scan_end(&r->s); i++) {
        const char c = *r->s.p;
        if (!strchr("+-.0123456789{'", c)) { break; }
        CRD_TRY(crdi_value(r, false, "a magnitude", &value));
    }
    crdi_netlist_note(r->p, &r->s, "ac", "of a source does not matter here");
fail:
    return st;
}

static int function_of(crdi_word w)
{
    int f = 0;
    while (f < FUNCTION_COUNT && !crdi_word_is(w, functions[f].word)) {
        f++;
    }
    return f;
}

// [DC] value, AC ..., a function of time, in any order, each also DC=value or in brackets; without
// any it is 0. With `*law` an expression may change while the circuit runs.
crd_status crdi_source(crdi_reading* r, crd_waveform* wave, bool* law, crd_expression** e)
{
    crd_status st = CRD_OK;
    bool constant = false, shaped = false;
    int open = 0;
    *wave = (crd_waveform){.kind = CRD_WAVE_DC};
    *e = NULL;
    while (!crdi_scan_end(&r->s)) {
        if (crdi_scan_take(&r->s, '(')) {
            open++;
            continue;
        }
        if (open && crdi_scan_take(&r->s, ')')) {
            open--;
            continue;
        }
        crdi_scan ahead = r->s;
        crdi_word key;
        const bool keyed = crdi_key(&ahead, &key);
        if (keyed && !crdi_word_is(key, "dc") && !crdi_word_is(key, "ac")) {
            return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED, "%s: \"%s=\" is not supported here",
                                  crdi_word_clip(r->name).text, crdi_word_clip(key).text);
        }
        const crdi_word w = keyed ? key : crdi_scan_word(&ahead);
        const int f = function_of(w);
        if (crdi_word_is(w, "ac")) {
            r->s = ahead;
            CRD_TRY(skip_ac(r));
            continue;
        }
        if (f < FUNCTION_COUNT && !shaped && !*e) {
            r->s = ahead;
            CRD_TRY(function(r, f, wave));
            shaped = true;
            continue;
        }
        if (crdi_word_is(w, "dc")) { r->s = ahead; }
        if (constant || f < FUNCTION_COUNT || (w.n && *ahead.p == '(' && ahead.p < ahead.end)) {
            return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED,
                                  "%s: \"%s\" is not supported here (dc, sin, pulse, pwl, exp, "
                                  "input)",
                                  crdi_word_clip(r->name).text,
                                  crdi_word_clip(crdi_scan_look(&r->s)).text);
        }
        double value;
        if (*law) {
            CRD_TRY(crdi_value_or_law(r, false, false, &value, e));
        } else {
            CRD_TRY(crdi_value(r, false, "the value of a source (a B is not)", &value));
        }
        constant = true;
        if (!shaped) { wave->v[0] = value; }
    }
    if (open) {
        st = crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: a '(' without its ')'",
                            crdi_word_clip(r->name).text);
    } else if (*e && shaped) {
        st = crdi_scan_fail(&r->s, CRD_E_FORMAT,
                            "%s has a function of time and an expression; one of them is enough",
                            crdi_word_clip(r->name).text);
    }
fail:
    return st;
}
