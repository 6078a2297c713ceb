// A linear element as C for controllers: its weights for one latency, its history, and
//   yhat(t_n + theta H) = b + sum_i a_i y_{n-k-i} + theta sum_i A_i y_{n-k-i}
// summed in the order of element.c, so that results are the same bits.
#include "coupling/algorithm.h"
#include "shared/base.h"
#include "shared/base_c.h"
#include "shared/coupling.h"

#include <string.h>

static const char* number(char out[40], double x, bool single)
{
    crdi_c_number(out, single ? (double)(float)x : x);
    return single ? strcat(out, "f") : out;
}

static void put_weights(crd_text* out, const char* name, const double* w, int m, bool single)
{
    char digits[40];
    crdi_text_add(out, "static const %s %s[%d] = {", single ? "float" : "double", name, m);
    for (int i = 0; i < m; i++) {
        crdi_text_add(out, "%s%s",
                      i % 4 ? ", "
                      : i   ? ",\n    "
                            : "\n    ",
                      number(digits, w[i], single));
    }
    crdi_text_add(out, "};\n");
}

static bool has_slope(const crd_linear* l)
{
    for (int i = 0; l->A && i < l->m; i++) {
        if (l->A[i] != 0) { return true; }
    }
    return false;
}

static void put_sums(crd_text* out, const crd_linear* l, bool sloped, const char* real)
{
    const int head = sloped ? l->m : crdi_dot_head(l->m);
    crdi_text_add(out, "    %s p0 = 0%s;\n", real, sloped ? ", p1 = 0" : "");
    crdi_text_add(out, "    for (int i = 0; i < %d; i++) {\n        p0 += a[i] * s->y[i];\n", head);
    if (sloped) { crdi_text_add(out, "        p1 += slope[i] * s->y[i];\n"); }
    crdi_text_add(out, "    }\n");
    if (head == l->m) { return; }
    crdi_text_add(out,
                  "    %s s0 = 0, s1 = 0, s2 = 0, s3 = 0;\n"
                  "    for (int i = %d; i < %d; i += 4) {\n"
                  "        s0 += a[i] * s->y[i];\n        s1 += a[i + 1] * s->y[i + 1];\n"
                  "        s2 += a[i + 2] * s->y[i + 2];\n        s3 += a[i + 3] * s->y[i + 3];\n"
                  "    }\n    p0 += (s0 + s1) + (s2 + s3);\n",
                  real, head, l->m);
}

static void put_header(crd_text* out, const crdi_coupling_emit_options* o, const crd_linear* l,
                       int cost)
{
    char step[40];
    const char *n = o->name, *real = o->single ? "float" : "double";
    crdi_text_add(
        out,
        "// The coupling element %s for latency %d, by cardan export c. An estimate takes "
        "at most\n// %d sums and products, a sample %d moves and 2 comparisons.\n"
        "#pragma once\n\n",
        crdi_clip(o->origin).text, l->k, cost, l->m - 1);
    crdi_text_add(out, "#define %s_STEP %s // macro step, s\n", n, number(step, o->step, false));
    crdi_text_add(out, "enum { %s_TAPS = %d, %s_LATENCY = %d };\n\n", n, l->m, n, l->k);
    crdi_text_add(out,
                  "typedef struct %s {\n    %s y[%s_TAPS]; // newest first\n    int started;\n} "
                  "%s;\n\n",
                  n, real, n, n);
    crdi_text_add(
        out,
        "void %s_begin(%s* s, %s start); // the signal until there is a sample\n"
        "// Each macro step, the sample of %s_LATENCY steps ago; one that is missing, "
        "infinite or no number (NaN)\n// is held over.\nvoid %s_push(%s* s, %s sample);\n",
        n, n, real, n, n, n, real);
    crdi_text_add(out,
                  "// The signal theta macro steps behind the one of the last push, 0 .. 1.\n"
                  "%s %s_eval(const %s* s, %s theta);\n",
                  real, n, n, real);
}

void crdi_coupling_emit(const crd_linear* l, bool hold, const crdi_coupling_emit_options* o,
                        crd_text* source, crd_text* header, int* cost)
{
    char digits[40];
    const char *n = o->name, *real = o->single ? "float" : "double";
    const bool sloped = !hold && has_slope(l);
    *cost = (sloped ? 4 * l->m + 2 : 2 * l->m) + (l->b != 0) + 2; // theta is kept within 0 and 1
    put_header(header, o, l, *cost);
    crdi_text_add(source, "// %s, by cardan export c: %s.h says what it is.\n#include \"%s.h\"\n\n",
                  crdi_clip(o->origin).text, n, n);
    put_weights(source, "a", l->a, l->m, o->single);
    if (sloped) { put_weights(source, "slope", l->A, l->m, o->single); }
    crdi_text_add(source,
                  "\nvoid %s_begin(%s* s, %s start)\n{\n    for (int i = 0; i < %s_TAPS; i++) {\n"
                  "        s->y[i] = start;\n    }\n    s->started = 0;\n}\n\n",
                  n, n, real, n);
    crdi_text_add(source,
                  "void %s_push(%s* s, %s sample)\n{\n"
                  "    if (!(sample >= -%s && sample <= %s)) {\n"
                  "        if (!s->started) { return; }\n        sample = s->y[0];\n    }\n"
                  "    if (!s->started) {\n        %s_begin(s, sample);\n        s->started = 1;\n"
                  "        return;\n    }\n"
                  "    for (int i = %s_TAPS - 1; i > 0; i--) {\n        s->y[i] = s->y[i - 1];\n"
                  "    }\n    s->y[0] = sample;\n}\n\n",
                  n, n, real, o->single ? "1e30f" : "1e250", o->single ? "1e30f" : "1e250", n, n);
    crdi_text_add(source, "%s %s_eval(const %s* s, %s theta)\n{\n", real, n, n, real);
    crdi_text_add(source, "    if (!s->started) { return s->y[0]; }\n");
    put_sums(source, l, sloped, real);
    if (l->b != 0) { crdi_text_add(source, "    p0 += %s;\n", number(digits, l->b, o->single)); }
    if (sloped) {
        crdi_text_add(source, "    theta = !(theta > 0) ? 0 : theta > 1 ? 1 : theta;\n"
                              "    return p0 + p1 * theta;\n}\n");
    } else {
        crdi_text_add(source, "    (void)theta; // it holds\n    return p0;\n}\n");
    }
}
