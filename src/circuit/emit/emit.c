// A circuit as C: tables of its pattern and factors, its laws written out, and loops over both that
// compute what dae_step.c and KLU compute, in their order. So results are the same bit by bit as
// long as nobody fuses products and sums.
#include "circuit/emit/emit.h"

#include <math.h>
#include <string.h>

typedef struct factors { // of the Newton matrix, in pivot order
    int32_t n, blocks, count;
    int32_t *block, *row, *column; // first of each block; row p and column q of each pivot
    int32_t *l_first, *l_row, *u_first, *u_row, *off_first, *off_row;
    double *l, *u, *off, *diagonal, *scale;
    int32_t *a_first, *a_at, *a_to; // entries of the matrix by columns in pivot order
} factors;

typedef struct plan {
    crdi_emit e;
    factors f;
    int order;     // of BDF, 0: TR, -1: TRBDF2
    int start;     // steps of TR before BDF
    double weight; // of A x; of BDF behind its start
    bool moves;    // the matrix does, and is factored on the way
    crdi_emit_cost laws, fill, rates, limits, switches, outputs;
} plan;

// ---- numbers -----------------------------------------------------------------------------------

void crdi_emit_doubles(crd_text* out, const char* name, const double* v, size_t count, bool real)
{
    char digits[CRDI_C_NUMBER];
    crdi_text_add(out, "static const %s %s[%zu] = {", real ? "real" : "double", name,
                  count ? count : 1);
    for (size_t i = 0; i < count; i++) {
        crdi_text_add(out, "%s%s",
                      i % 6 ? ", "
                      : i   ? ",\n    "
                            : "\n    ",
                      crdi_c_number(digits, v[i]));
    }
    crdi_text_add(out, "%s};\n\n", count ? "" : "0");
}

static int index_bytes(const int32_t* v, size_t count)
{
    int32_t most = 0;
    for (size_t i = 0; i < count; i++) {
        most = v[i] > most ? v[i] : most;
    }
    return most < 256 ? 1 : most < 65536 ? 2 : 4;
}

void crdi_emit_integers(crd_text* out, const char* name, const int32_t* v, size_t count)
{
    crdi_text_add(out, "static const uint%d_t %s[%zu] = {", 8 * index_bytes(v, count), name,
                  count ? count : 1);
    for (size_t i = 0; i < count; i++) {
        crdi_text_add(out, "%s%d", i % 16 ? ", " : i ? ",\n    " : "\n    ", (int)v[i]);
    }
    crdi_text_add(out, "%s};\n\n", count ? "" : "0");
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static crdi_emit_cost sum(crdi_emit_cost a, crdi_emit_cost b, int64_t times)
{
    return (crdi_emit_cost){a.sums + times * b.sums, a.divisions + times * b.divisions,
                            a.functions + times * b.functions};
}

static crdi_emit_cost count_text(const char* text, size_t length);

// The body of a function that exported files share; 0: there is none of this name.
static size_t find_body(const char* texts, const char* word, size_t n, const char** body)
{
    for (const char* line = texts; *line; line += strcspn(line, "\n") + 1) {
        const size_t length = strcspn(line, "\n");
        const char* open = memchr(line, '(', length);
        const bool defines = strncmp(line, "static ", 7) == 0 && open &&
                             (size_t)(open - line) > n && !in_word(open[-(ptrdiff_t)n - 1]) &&
                             memcmp(open - n, word, n) == 0;
        if (!defines) { continue; }
        *body = strchr(line, '{');
        const char *on_line = line + length, *end = strstr(*body, "\n}");
        return (size_t)((*body < on_line ? on_line : end) - *body);
    }
    return 0;
}

// What a call costs: of a function of ours its body (and what searches does so 20 times).
static crdi_emit_cost cost_of_call(const char* word, size_t n)
{
    static const char* const free_words[] = {
        "if", "for", "while", "real", "sizeof", "limit_diodes", "at_rounding", "move_switches"};
    static const char* const cheap[] = {"fabs", "fmax", "fmin", "floor"};
    const char* const texts[] = {crdi_emit_waves, crdi_emit_operators, crdi_emit_diode};
    for (size_t i = 0; i < sizeof free_words / sizeof *free_words; i++) {
        if (n == strlen(free_words[i]) && memcmp(word, free_words[i], n) == 0) {
            return (crdi_emit_cost){0};
        }
    }
    for (size_t i = 0; i < sizeof cheap / sizeof *cheap; i++) {
        if (n == strlen(cheap[i]) && memcmp(word, cheap[i], n) == 0) {
            return (crdi_emit_cost){.sums = 1};
        }
    }
    if (n == 4 && memcmp(word, "sqrt", n) == 0) { return (crdi_emit_cost){.divisions = 1}; }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char* body = NULL;
        const size_t length = find_body(texts[i], word, n, &body);
        if (length == 0) { continue; }
        const crdi_emit_cost once = count_text(body, length);
        const char* loop = strstr(body, "while");
        return sum((crdi_emit_cost){0}, once, loop && loop < body + length ? 20 : 1);
    }
    return (crdi_emit_cost){.functions = 1};
}

// Operators and calls of straight code; inside [ ] they are of indices.
static crdi_emit_cost count_text(const char* text, size_t length)
{
    crdi_emit_cost cost = {0};
    int brackets = 0;
    for (size_t i = 0; i < length; i++) {
        const char c = text[i], before = i ? text[i - 1] : 0;
        const char after = i + 1 < length ? text[i + 1] : 0;
        brackets += (c == '[') - (c == ']');
        if (brackets) { continue; }
        if (c == '(' && in_word(before)) {
            size_t start = i;
            while (start > 0 && in_word(text[start - 1])) {
                start--;
            }
            cost = sum(cost, cost_of_call(text + start, i - start), 1);
        }
        const bool exponent = before == 'e' && i > 1 && text[i - 2] >= '0' && text[i - 2] <= '9';
        if (c == '/') { cost.divisions++; }
        if (c == '+' || c == '*' || c == '<' || c == '?') { cost.sums += !exponent; }
        if (c == '-' || c == '>') { cost.sums += !exponent && after != '>' && before != '-'; }
    }
    return cost;
}

crdi_emit_cost crdi_emit_count(const crd_text* text, size_t from)
{
    return text->data ? count_text(text->data + from, text->length - from) : (crdi_emit_cost){0};
}

// ---- factors -----------------------------------------------------------------------------------

static bool make_room(factors* f, crd_arena* a, const klu_numeric* k, size_t off)
{
    const size_t n = (size_t)f->n, l = (size_t)k->lnz, u = (size_t)k->unz;
    f->block = crdi_arena_new(a, (size_t)f->blocks + 1, sizeof(int32_t));
    f->row = crdi_arena_new(a, n, sizeof(int32_t));
    f->column = crdi_arena_new(a, n, sizeof(int32_t));
    f->l_first = crdi_arena_new(a, n + 1, sizeof(int32_t));
    f->u_first = crdi_arena_new(a, n + 1, sizeof(int32_t));
    f->off_first = crdi_arena_new(a, n + 1, sizeof(int32_t));
    f->a_first = crdi_arena_new(a, n + 1, sizeof(int32_t));
    f->l_row = crdi_arena_new(a, l, sizeof(int32_t));
    f->u_row = crdi_arena_new(a, u, sizeof(int32_t));
    f->off_row = crdi_arena_new(a, off, sizeof(int32_t));
    f->l = crdi_arena_new(a, l, sizeof(double));
    f->u = crdi_arena_new(a, u, sizeof(double));
    f->off = crdi_arena_new(a, off, sizeof(double));
    f->diagonal = crdi_arena_new(a, n, sizeof(double));
    f->scale = crdi_arena_new(a, n, sizeof(double));
    f->a_at = crdi_arena_new(a, (size_t)f->count, sizeof(int32_t));
    f->a_to = crdi_arena_new(a, (size_t)f->count, sizeof(int32_t));
    return !a->failed;
}

// KLU gives L with its ones first in each column, U with its diagonal last: both go elsewhere.
static void without_diagonal(factors* f)
{
    int32_t l = 0, u = 0;
    for (int32_t k = 0; k < f->n; k++) {
        const int32_t l_from = f->l_first[k], u_from = f->u_first[k];
        f->l_first[k] = l;
        f->u_first[k] = u;
        for (int32_t p = l_from + 1; p < f->l_first[k + 1]; p++, l++) {
            f->l_row[l] = f->l_row[p];
            f->l[l] = f->l[p];
        }
        for (int32_t p = u_from; p < f->u_first[k + 1] - 1; p++, u++) {
            f->u_row[u] = f->u_row[p];
            f->u[u] = f->u[p];
        }
        f->diagonal[k] = f->u[f->u_first[k + 1] - 1];
    }
    f->l_first[f->n] = l;
    f->u_first[f->n] = u;
}

static crd_status take_factors(factors* f, crd_arena* a, crdi_sparse* s)
{
    klu_numeric* k = s->numeric;
    f->n = s->n;
    f->blocks = s->symbolic->nblocks;
    f->count = s->first[s->n];
    if (!make_room(f, a, k, (size_t)k->nzoff)) { return CRD_E_MEMORY; }
    int32_t* inverse = crdi_arena_new(a, (size_t)f->n, sizeof *inverse);
    if (!inverse || !klu_extract(k, s->symbolic, f->l_first, f->l_row, f->l, f->u_first, f->u_row,
                                 f->u, f->off_first, f->off_row, f->off, f->row, f->column,
                                 f->scale, f->block, &s->common)) {
        return CRD_E_MEMORY;
    }
    without_diagonal(f);
    for (int32_t i = 0; i < f->n; i++) {
        inverse[f->row[i]] = i;
    }
    int32_t at = 0;
    for (int32_t i = 0; i < f->n; i++) {
        const int32_t c = f->column[i];
        for (int32_t p = s->first[c]; p < s->first[c + 1]; p++, at++) {
            f->a_at[at] = p;
            f->a_to[at] = inverse[s->row[p]];
        }
        f->a_first[i + 1] = at;
    }
    return CRD_OK;
}

// Pivots as the first step finds them; then everything is as it was.
static crd_status find_factors(plan* p, crd_circuit* c)
{
    crd_status st = CRD_OK;
    void* state = crdi_arena_new(p->e.arena, 1, crd_circuit_state_size(c));
    if (!state) { return CRD_E_MEMORY; }
    crd_circuit_save(c, state);
    CRD_TRY(crd_circuit_step(c));
    CRD_TRY(take_factors(&p->f, p->e.arena, &p->e.d->newton));
    crd_circuit_restore(c, state);
    p->e.d->factored = false;
    crdi_dae_eval(p->e.d, p->e.d->x[0], crdi_circuit_time(c, 0), p->e.d->limit, p->e.d->residual);
fail:
    return st;
}

// ---- tables ------------------------------------------------------------------------------------

static void put_factors(plan* p)
{
    const factors* f = &p->f;
    crd_text* out = p->e.out;
    const size_t n = (size_t)f->n;
    crdi_emit_integers(out, "row", f->row, n);
    crdi_emit_integers(out, "column", f->column, n);
    crdi_emit_integers(out, "block", f->block, (size_t)f->blocks + 1);
    crdi_emit_integers(out, "l_first", f->l_first, n + 1);
    crdi_emit_integers(out, "l_row", f->l_row, (size_t)f->l_first[n]);
    crdi_emit_integers(out, "u_first", f->u_first, n + 1);
    crdi_emit_integers(out, "u_row", f->u_row, (size_t)f->u_first[n]);
    crdi_emit_integers(out, "off_first", f->off_first, n + 1);
    crdi_emit_integers(out, "off_row", f->off_row, (size_t)f->off_first[n]);
    if (p->moves) {
        crdi_emit_integers(out, "a_first", f->a_first, n + 1);
        crdi_emit_integers(out, "a_at", f->a_at, (size_t)f->count);
        crdi_emit_integers(out, "a_to", f->a_to, (size_t)f->count);
        return;
    }
    crdi_emit_doubles(out, "lower", f->l, (size_t)f->l_first[n], true);
    crdi_emit_doubles(out, "upper", f->u, (size_t)f->u_first[n], true);
    crdi_emit_doubles(out, "off", f->off, (size_t)f->off_first[n], true);
    crdi_emit_doubles(out, "diagonal", f->diagonal, n, true);
    crdi_emit_doubles(out, "scale", f->scale, n, true);
}

static void put_system(plan* p)
{
    const crdi_dae* d = p->e.d;
    crd_text* out = p->e.out;
    crdi_emit_doubles(out, "x_start", d->x[0], (size_t)d->n, false);
    if (d->diodes) { crdi_emit_doubles(out, "limit_start", d->limit, (size_t)d->diodes, false); }
    if (d->switches) {
        crdi_emit_doubles(out, "closed_start", d->closed, (size_t)d->switches, false);
    }
    crdi_emit_integers(out, "mass_row", d->a.row, d->a.count);
    crdi_emit_integers(out, "mass_column", d->a.column, d->a.count);
    crdi_emit_doubles(out, "mass", d->a.value, d->a.count, false);
    if (!d->linear) {
        int32_t* kind = crdi_arena_new(p->e.arena, (size_t)d->n, sizeof *kind);
        for (int32_t i = 0; kind && i < d->n; i++) {
            kind[i] = d->column_kind[i];
        }
        if (kind) { crdi_emit_integers(out, "kind", kind, (size_t)d->n); }
    }
}

// ---- the matrix --------------------------------------------------------------------------------

// Entry k of the Newton matrix, in the order of assemble(): as text, or a number.
static bool entry_moves(const plan* p, size_t k)
{
    const crdi_dae* d = p->e.d;
    return k < d->j.count ? p->e.varying[k] >= 0 : p->start > 0;
}

static double entry_value(const plan* p, size_t k)
{
    const crdi_dae* d = p->e.d;
    return k < d->j.count ? d->j.value[k] : p->weight * d->a.value[k - d->j.count];
}

static void put_entry(plan* p, size_t k)
{
    const crdi_dae* d = p->e.d;
    char digits[CRDI_C_NUMBER];
    if (!entry_moves(p, k)) {
        crdi_text_add(p->e.out, "%s", crdi_c_number(digits, entry_value(p, k)));
    } else if (k < d->j.count) {
        crdi_text_add(p->e.out, "j[%d]", (int)p->e.varying[k]);
    } else {
        crdi_text_add(p->e.out, "w * %s", crdi_c_number(digits, d->a.value[k - d->j.count]));
    }
}

// Sums of what does not move, and a line for each sum that does.
static bool put_fill(plan* p)
{
    const crdi_sparse* s = &p->e.d->newton;
    const size_t slots = (size_t)p->f.count;
    double* constant = crdi_arena_new(p->e.arena, slots, sizeof *constant);
    int32_t* first = crdi_arena_new(p->e.arena, slots + 1, sizeof *first);
    int32_t* next = crdi_arena_new(p->e.arena, s->count, sizeof *next);
    bool* moves = crdi_arena_new(p->e.arena, slots, sizeof *moves);
    if (!constant || !first || !next || !moves) { return false; }
    for (size_t k = s->count; k-- > 0;) { // lists, whose first is the first entry
        next[k] = first[s->slot[k]] - 1;
        first[s->slot[k]] = (int32_t)k + 1;
        moves[s->slot[k]] |= entry_moves(p, k);
    }
    for (size_t i = 0; i < slots; i++) {
        for (int32_t k = first[i] - 1; k >= 0; k = next[k]) {
            constant[i] += entry_value(p, (size_t)k);
        }
    }
    crdi_emit_doubles(p->e.out, "constant", constant, slots, true);
    crdi_text_add(p->e.out, "static void fill(const real* j, double w, real* v)\n{\n"
                            "    (void)j;\n    (void)w;\n");
    const size_t from = p->e.out->length;
    for (size_t i = 0; i < slots; i++) {
        if (!moves[i]) { continue; }
        crdi_text_add(p->e.out, "    v[%zu] = (real)(", i);
        for (int32_t k = first[i] - 1; k >= 0; k = next[k]) {
            put_entry(p, (size_t)k);
            crdi_text_add(p->e.out, "%s", next[k] >= 0 ? " + " : ");\n");
        }
    }
    p->fill = crdi_emit_count(p->e.out, from);
    crdi_text_add(p->e.out, "}\n\n");
    return true;
}

static const char factor_text[] =
    "// Rows scaled by their largest entry, then columns one after the other (Gilbert and Peierls\n"
    "// 1988), with the pivots that were found when this file was made. Where they are too small,\n"
    "// factors would be wrong: that is an error.\n"
    "static int factor(STATE* s)\n{\n"
    "    real* x = s->work;\n"
    "    int off = 0;\n"
    "    memset(x, 0, sizeof s->work);\n"
    "    memset(s->scale, 0, sizeof s->scale);\n"
    "    for (int p = 0; p < ENTRIES; p++) {\n"
    "        const real a = (real)fabs(s->v[a_at[p]]);\n"
    "        if (a > s->scale[a_to[p]]) { s->scale[a_to[p]] = a; }\n"
    "    }\n"
    "    for (int i = 0; i < N; i++) {\n"
    "        if (!(s->scale[i] > 0)) { s->scale[i] = 1; }\n"
    "    }\n"
    "    for (int b = 0; b < BLOCKS; b++) {\n"
    "        for (int k = block[b]; k < block[b + 1]; k++) {\n"
    "            real largest = 0, grown = 0;\n"
    "            for (int p = a_first[k]; p < a_first[k + 1]; p++) {\n"
    "                const real a = s->v[a_at[p]] / s->scale[a_to[p]];\n"
    "                if (a_to[p] < block[b]) {\n"
    "                    s->off[off++] = a;\n"
    "                } else {\n"
    "                    x[a_to[p]] = a;\n"
    "                    if (fabs(a) > largest) { largest = (real)fabs(a); }\n"
    "                }\n"
    "            }\n"
    "            for (int i = u_first[k]; i < u_first[k + 1]; i++) {\n"
    "                const int j = u_row[i];\n"
    "                const real u = x[j];\n"
    "                x[j] = 0;\n"
    "                s->upper[i] = u;\n"
    "                if (fabs(u) > grown) { grown = (real)fabs(u); }\n"
    "                for (int p = l_first[j]; p < l_first[j + 1]; p++) {\n"
    "                    x[l_row[p]] -= s->lower[p] * u;\n"
    "                }\n"
    "            }\n"
    "            const real pivot = x[k];\n"
    "            x[k] = 0;\n"
    "            s->diagonal[k] = pivot;\n"
    "            if (fabs(pivot) > grown) { grown = (real)fabs(pivot); }\n"
    "            if (!(fabs(pivot) > 0) || !(largest > GROWTH * grown)) { return 2; }\n"
    "            for (int p = l_first[k]; p < l_first[k + 1]; p++) {\n"
    "                s->lower[p] = x[l_row[p]] / pivot;\n"
    "                x[l_row[p]] = 0;\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "    return 0;\n"
    "}\n\n";

static const char solve_text[] =
    "// r becomes the solution.\n"
    "static void solve(STATE* s, double* r)\n{\n"
    "    real* x = s->work;\n"
    "    for (int k = 0; k < N; k++) {\n"
    "        x[k] = (real)r[row[k]] / SCALE[k];\n"
    "    }\n"
    "    for (int b = BLOCKS - 1; b >= 0; b--) {\n"
    "        for (int k = block[b]; k < block[b + 1]; k++) {\n"
    "            for (int p = l_first[k]; p < l_first[k + 1]; p++) {\n"
    "                x[l_row[p]] -= LOWER[p] * x[k];\n"
    "            }\n"
    "        }\n"
    "        for (int k = block[b + 1] - 1; k >= block[b]; k--) {\n"
    "            x[k] /= DIAGONAL[k];\n"
    "            for (int p = u_first[k]; p < u_first[k + 1]; p++) {\n"
    "                x[u_row[p]] -= UPPER[p] * x[k];\n"
    "            }\n"
    "        }\n"
    "        for (int k = block[b]; k < block[b + 1]; k++) {\n"
    "            for (int p = off_first[k]; p < off_first[k + 1]; p++) {\n"
    "                x[off_row[p]] -= OFF[p] * x[k];\n"
    "            }\n"
    "        }\n"
    "    }\n"
    "    for (int k = 0; k < N; k++) {\n"
    "        r[column[k]] = x[k];\n"
    "    }\n"
    "}\n\n";

// ---- Newton ------------------------------------------------------------------------------------

static const char assemble_text[] =
    "// history += factor A x\n"
    "static void add_product(STATE* s, double factor, const double* x)\n{\n"
    "    double product[P] = {0};\n"
    "    for (int k = 0; k < MASSES; k++) {\n"
    "        product[mass_row[k]] += mass[k] * x[mass_column[k]];\n"
    "    }\n"
    "    for (int i = 0; i < P; i++) {\n"
    "        s->history[i] += factor * product[i];\n"
    "    }\n"
    "}\n\n"
    "// Minus the residual: [Phi; w A x + history + b]\n"
    "static void assemble(STATE* s, const double* u, double t, double w)\n{\n"
    "    double product[P] = {0};\n"
    "    for (int k = 0; k < MASSES; k++) {\n"
    "        product[mass_row[k]] += mass[k] * s->next[mass_column[k]];\n"
    "    }\n"
    "    laws(s, s->next, u, t);\n"
    "    for (int k = 0; k < P; k++) {\n"
    "        const double part = s->history[k] + w * product[k];\n"
    "        s->f[M + k] += part;\n"
    "    }\n"
    "    for (int k = 0; k < N; k++) {\n"
    "        s->f[k] = -s->f[k];\n"
    "    }\n"
    "}\n\n"
    "static int is_finite(const double* f)\n{\n"
    "    for (int k = 0; k < N; k++) {\n"
    "        if (!isfinite(f[k])) { return 0; }\n"
    "    }\n"
    "    return 1;\n"
    "}\n\n";

static const char linear_text[] =
    "static int newton(STATE* s, const double* u, double t, double w)\n{\n"
    "    for (int pass = 0; pass < PASSES; pass++) {\n"
    "        assemble(s, u, t, w);\n"
    "        if (!is_finite(s->f)) { return 1; }\n"
    "FACTOR"
    "        solve(s, s->f);\n"
    "        for (int k = 0; k < N; k++) {\n"
    "            s->next[k] += s->f[k];\n"
    "        }\n"
    "    }\n"
    "    return is_finite(s->next) ? 0 : 1;\n"
    "}\n\n";

static const char newton_text[] =
    "static double change(const double* x, const double* delta)\n{\n"
    "    double large[3] = {1e-6, 1e-9, 1e-15}, worst = 0;\n"
    "    for (int k = 0; k < N; k++) {\n"
    "        large[kind[k]] = fmax(large[kind[k]], fabs(x[k]));\n"
    "    }\n"
    "    for (int k = 0; k < N; k++) {\n"
    "        const double by = fabs(delta[k]) / large[kind[k]];\n"
    "        if (!(by <= worst)) { worst = by; }\n"
    "    }\n"
    "    return worst;\n"
    "}\n\n"
    "static int newton(STATE* s, const double* u, double t, double w)\n{\n"
    "    double before = INFINITY;\n"
    "    DIODES memcpy(s->limits, s->limit, sizeof s->limits);\n"
    "    for (int pass = 1; pass <= PASSES; pass++) {\n"
    "        assemble(s, u, t, w);\n"
    "        if (!is_finite(s->f)) { return 1; }\n"
    "FACTOR"
    "        solve(s, s->f);\n"
    "        for (int k = 0; k < N; k++) {\n"
    "            s->next[k] += s->f[k];\n"
    "        }\n"
    "        if (!is_finite(s->next)) { return 1; }\n"
    "        const double by = change(s->next, s->f);\n"
    "        int settled = by <= TOLERANCE || (by < 1e-7 && by > 0.3 * before);\n"
    "        before = by;\n"
    "        DIODES if (!settled && pass >= 10) { settled = at_rounding(s->next, s->limits); }\n"
    "        DIODES if (limit_diodes(s->next, s->limits)) { settled = 0; }\n"
    "        if (settled && !FIXED) { break; }\n"
    "        if (pass == PASSES && !FIXED) { return 1; }\n"
    "    }\n"
    "    DIODES memcpy(s->limit, s->limits, sizeof s->limit);\n"
    "    return 0;\n"
    "}\n\n";

static const char factor_linear_text[] = "        if (s->weight != w) { // or switches have moved\n"
                                         "            fill(s->j, w, s->v);\n"
                                         "            s->weight = 0;\n"
                                         "            if (factor(s)) { return 2; }\n"
                                         "            s->weight = w;\n"
                                         "        }\n";
static const char factor_always_text[] = "        fill(s->j, w, s->v);\n"
                                         "        if (factor(s)) { return 2; }\n";

// `text` with STATE and other words in their places; lines that begin with the word DIODES stay
// where there are some.
static void put_template(plan* p, const char* text)
{
    const bool diodes = p->e.d->diodes > 0;
    const char* const pairs[][2] = {{"STATE", p->e.opt->name},
                                    {"FACTOR", !p->moves        ? ""
                                               : p->e.d->linear ? factor_linear_text
                                                                : factor_always_text},
                                    {"SCALE", p->moves ? "s->scale" : "scale"},
                                    {"LOWER", p->moves ? "s->lower" : "lower"},
                                    {"UPPER", p->moves ? "s->upper" : "upper"},
                                    {"OFF", p->moves ? "s->off" : "off"},
                                    {"DIAGONAL", p->moves ? "s->diagonal" : "diagonal"},
                                    {"DIODES", ""}};
    for (const char* line = text; *line;) {
        const size_t n = strcspn(line, "\n") + (strchr(line, '\n') ? 1 : 0);
        const char* words = memchr(line, 'D', n);
        const bool only = words && strncmp(words, "DIODES", 6) == 0;
        for (size_t i = 0; i < n && (diodes || !only);) {
            size_t k = 0, length = 0;
            const bool start = i == 0 || !in_word(line[i - 1]);
            for (; start && k < sizeof pairs / sizeof *pairs; k++) {
                length = strlen(pairs[k][0]);
                if (strncmp(line + i, pairs[k][0], length) == 0 && !in_word(line[i + length])) {
                    break;
                }
                length = 0;
            }
            // A word that is a line of its own has no blank before it
            const bool found = start && length > 0;
            if (found) {
                crdi_text_add(p->e.out, "%s", pairs[k][1]);
                i += length + (strcmp(pairs[k][0], "DIODES") == 0);
            } else {
                crdi_text_put(p->e.out, line + i, 1);
                i++;
            }
        }
        line += n;
    }
}

// ---- steps -------------------------------------------------------------------------------------

static void put_trapezoid(plan* p, double w, const char* t)
{
    char digits[CRDI_C_NUMBER];
    crdi_c_number(digits, w);
    crdi_text_add(p->e.out,
                  "    guess(s, s->x[0]);\n    add_product(s, -%s, s->x[0]);\n"
                  "    add_rates(s, s->x[0]);\n    st = newton(s, u, %s, %s);\n",
                  digits, t, digits);
}

static void put_method(plan* p)
{
    const crd_circuit_options* o = &p->e.d->c->opt;
    crd_text* out = p->e.out;
    char a[CRDI_C_NUMBER], b[CRDI_C_NUMBER];
    if (p->order < 0) {
        const crdi_trbdf2 m = crdi_trbdf2_of(o->step);
        crdi_text_add(out, "    const double tg = t0 + %s * STEP;\n", crdi_c_number(a, m.g));
        put_trapezoid(p, m.w, "tg");
        crdi_text_add(
            out,
            "    if (st) { return st; }\n    memcpy(s->middle, s->next, sizeof s->middle);\n"
            "    guess(s, s->middle);\n    add_product(s, %s, s->middle);\n",
            crdi_c_number(a, m.middle));
        crdi_text_add(out, "    add_product(s, %s, s->x[0]);\n    st = newton(s, u, t1, %s);\n",
                      crdi_c_number(a, m.first), crdi_c_number(b, m.w));
        return;
    }
    if (p->order == 0) {
        put_trapezoid(p, 2 / o->step, "t1");
        return;
    }
    double w[4];
    crdi_bdf_weights(p->order, o->step, p->e.d->age, w);
    if (p->start > 0) {
        crdi_text_add(out, "    if (s->steps < %d) {\n", p->start);
        put_trapezoid(p, 2 / o->step, "t1");
        crdi_text_add(out, "    return st;\n    }\n");
    }
    crdi_text_add(out, "    guess(s, s->x[0]);\n");
    for (int k = 1; k <= p->order; k++) {
        crdi_text_add(out, "    add_product(s, %s, s->x[%d]);\n", crdi_c_number(a, w[k]), k - 1);
    }
    crdi_text_add(out, "    st = newton(s, u, t1, %s);\n", crdi_c_number(a, w[0]));
}

static void put_step(plan* p)
{
    const crdi_dae* d = p->e.d;
    crd_text* out = p->e.out;
    const char* name = p->e.opt->name;
    char digits[CRDI_C_NUMBER];
    crdi_text_add(out,
                  "static void guess(%s* s, const double* x)\n{\n"
                  "    memcpy(s->next, x, sizeof s->next);\n"
                  "    memset(s->history, 0, sizeof s->history);\n}\n\n"
                  "static int advance(%s* s, const double* u, double t0, double t1)\n{\n"
                  "    int st;\n    (void)t0;\n",
                  name, name);
    put_method(p);
    crdi_text_add(out, "    return st;\n}\n\n");
    crdi_text_add(out,
                  "void %s_begin(%s* s)\n{\n    memset(s, 0, sizeof *s);\n"
                  "    for (int k = 0; k < %s_LEVELS; k++) {\n"
                  "        memcpy(s->x[k], x_start, sizeof s->x[k]);\n    }\n",
                  name, name, name);
    if (d->diodes) { crdi_text_add(out, "    memcpy(s->limit, limit_start, sizeof s->limit);\n"); }
    if (d->switches) {
        crdi_text_add(out, "    memcpy(s->closed, closed_start, sizeof s->closed);\n");
    }
    if (p->moves) {
        crdi_text_add(out, "    for (int k = 0; k < ENTRIES; k++) {\n        s->v[k] = "
                           "constant[k];\n    }\n");
    }
    crdi_text_add(out,
                  "}\n\ndouble %s_time(const %s* s)\n{\n    return %s + (double)s->steps * "
                  "STEP;\n}\n\n",
                  name, name, crdi_c_number(digits, d->c->t0));
    crdi_text_add(out,
                  "int %s_step(%s* s, const double* u)\n{\n"
                  "    const double t0 = %s_time(s), t1 = %s + (double)(s->steps + 1) * STEP;\n"
                  "    int st = 0;\n",
                  name, name, name, crdi_c_number(digits, d->c->t0));
    if (d->diodes) {
        crdi_text_add(out,
                      "    double limit[DIODES];\n    memcpy(limit, s->limit, sizeof limit);\n");
    }
    if (d->switches) {
        crdi_text_add(out, "    double closed[SWITCHES];\n"
                           "    memcpy(closed, s->closed, sizeof closed);\n"
                           "    for (int pass = 0; pass < 10; pass++) {\n"
                           "        st = advance(s, u, t0, t1);\n"
                           "        if (st || !move_switches(s->next, s->closed)) { break; }\n"
                           "        s->weight = 0;\n    }\n");
    } else {
        crdi_text_add(out, "    st = advance(s, u, t0, t1);\n");
    }
    crdi_text_add(out, "    if (st) {\n");
    if (d->diodes) { crdi_text_add(out, "        memcpy(s->limit, limit, sizeof limit);\n"); }
    if (d->switches) {
        crdi_text_add(out, "        memcpy(s->closed, closed, sizeof closed);\n"
                           "        s->weight = 0;\n");
    }
    crdi_text_add(out,
                  "        return st;\n    }\n"
                  "    for (int k = %s_LEVELS - 1; k > 0; k--) {\n"
                  "        memcpy(s->x[k], s->x[k - 1], sizeof s->x[k]);\n    }\n"
                  "    memcpy(s->x[0], s->next, sizeof s->next);\n    s->steps++;\n"
                  "    return 0;\n}\n\n",
                  name);
}

static void put_functions(plan* p)
{
    crdi_emit* e = &p->e;
    const crdi_dae* d = e->d;
    const char* name = e->opt->name;
    crdi_text_add(e->out,
                  "// [Phi; b] at x, and what moves of its derivative (Rodriguez 2021, Eqs. "
                  "3.6 and 3.7)\nstatic void laws(%s* s, const double* x, const double* u, "
                  "double t)\n{\n    double* f = s->f;\n    (void)u;\n    (void)t;\n",
                  name);
    if (d->diodes) { crdi_text_add(e->out, "    const double* limit = s->limits;\n"); }
    if (d->switches) { crdi_text_add(e->out, "    const double* closed = s->closed;\n"); }
    crdi_text_add(e->out, "    real* j = s->j;\n    (void)j;\n    memset(f, 0, sizeof s->f);\n");
    const size_t from = e->out->length;
    crdi_emit_laws(e);
    p->laws = crdi_emit_count(e->out, from);
    crdi_text_add(e->out, "}\n\n");
    crdi_text_add(e->out,
                  "// history += b(x)\nstatic void add_rates(%s* s, const double* x)\n{\n"
                  "    (void)s;\n    (void)x;\n",
                  name);
    const size_t rates = e->out->length;
    crdi_emit_rates(e);
    p->rates = crdi_emit_count(e->out, rates);
    crdi_text_add(e->out, "}\n\n");
    const size_t limits = e->out->length;
    if (d->diodes) { crdi_emit_limits(e); }
    p->limits = crdi_emit_count(e->out, limits);
    const size_t switches = e->out->length;
    if (d->switches) { crdi_emit_switches(e); }
    p->switches = crdi_emit_count(e->out, switches);
}

static void put_outputs(plan* p)
{
    const char* name = p->e.opt->name;
    crdi_text_add(p->e.out,
                  "void %s_outputs(const %s* s, const double* u, double* y)\n{\n"
                  "    const double* x = s->x[0];\n    const double t = %s_time(s);\n"
                  "    (void)u;\n    (void)x;\n    (void)t;\n",
                  name, name, name);
    const size_t from = p->e.out->length;
    crdi_emit_outputs(&p->e);
    p->outputs = crdi_emit_count(p->e.out, from);
    crdi_text_add(p->e.out, "}\n");
}

// ---- what it costs -----------------------------------------------------------------------------

static crdi_emit_cost cost_of_factor(const factors* f)
{
    crdi_emit_cost c = {0};
    for (int32_t k = 0; k < f->n; k++) {
        const int32_t mine = f->l_first[k + 1] - f->l_first[k];
        c.sums += 7;
        c.divisions += mine;
        for (int32_t i = f->u_first[k]; i < f->u_first[k + 1]; i++) {
            const int32_t j = f->u_row[i];
            c.sums += 2 + 2 * (int64_t)(f->l_first[j + 1] - f->l_first[j]);
        }
    }
    c.sums += 5 * (int64_t)f->count;
    c.divisions += f->count;
    return c;
}

static void work_out_cost(const plan* p, crdi_emit_report* r)
{
    const crdi_dae* d = p->e.d;
    const factors* f = &p->f;
    const int64_t n = d->n, rows = d->p, masses = (int64_t)d->a.count;
    const crdi_emit_cost solve = {2 * (int64_t)(f->l_first[n] + f->u_first[n] + f->off_first[n]),
                                  2 * n, 0};
    const crdi_emit_cost product = {2 * masses, 0, 0};
    r->once = sum(sum(p->laws, solve, 1), product, 1);
    r->once.sums += 3 * rows + 4 * n; // history, sign, sum, finite twice
    if (p->moves) { r->once = sum(sum(r->once, p->fill, 1), cost_of_factor(f), 1); }
    if (!d->linear) {
        r->once = sum(r->once, p->limits, 1);
        r->once.sums += 5 * n + 6;
        r->once.divisions += n;
    }
    const int64_t histories = p->order < 0 ? 3 : p->order > 1 ? p->order : 1;
    const int64_t solutions = p->order < 0 ? 2 : 1, passes = d->switches ? 10 : 1;
    crdi_emit_cost step = {4, 0, 0};
    step = sum(step, product, histories);
    step.sums += histories * 2 * rows;
    step = sum(step, p->rates, 1);
    step = sum(step, r->once, solutions * r->iterations);
    step = sum(step, p->switches, 1);
    r->cost = sum(p->outputs, step, passes);
}

static void work_out_sizes(const plan* p, int levels, crdi_emit_report* r)
{
    const crdi_dae* d = p->e.d;
    const factors* f = &p->f;
    const size_t n = (size_t)d->n, real = p->e.opt->single ? 4 : 8;
    const size_t factor = (size_t)f->l_first[n] + (size_t)f->u_first[n] + (size_t)f->off_first[n];
    const size_t doubles = n * ((size_t)levels + 2 + (p->order < 0)) + (size_t)d->p +
                           2 * (size_t)d->diodes + (size_t)d->switches + 2;
    r->state = doubles * 8 + real * (n + (size_t)p->e.moving);
    if (p->moves) { r->state += real * ((size_t)f->count + factor + 2 * n); }
    r->tables = 8 * (n + d->a.count) + real * (p->moves ? (size_t)f->count : factor + 2 * n);
}

// ---- the file ----------------------------------------------------------------------------------

static void put_struct(const plan* p, int levels, int outputs, crd_text* h)
{
    const crdi_dae* d = p->e.d;
    const factors* f = &p->f;
    const char *name = p->e.opt->name, *real = p->e.opt->single ? "float" : "double";
    const int n = (int)d->n;
    crdi_text_add(h,
                  "#ifndef %s_H\n#define %s_H\n#include <stdint.h>\n\n"
                  "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                  "enum { %s_INPUTS = %d, %s_OUTPUTS = %d, %s_LEVELS = %d };\n\n",
                  name, name, name, p->e.n->input_count, name, outputs, name, levels);
    crdi_text_add(h,
                  "// All that it needs; nobody but the functions below looks inside.\n"
                  "typedef struct %s {\n    int64_t steps;\n    double weight;\n"
                  "    double x[%d][%d], next[%d], f[%d], history[%d];\n",
                  name, levels, n, n, n, d->p > 0 ? (int)d->p : 1);
    if (p->order < 0) { crdi_text_add(h, "    double middle[%d];\n", n); }
    if (d->diodes) {
        crdi_text_add(h, "    double limit[%d], limits[%d];\n", d->diodes, d->diodes);
    }
    if (d->switches) { crdi_text_add(h, "    double closed[%d];\n", d->switches); }
    crdi_text_add(h, "    %s work[%d], j[%d];\n", real, n, p->e.moving ? (int)p->e.moving : 1);
    if (p->moves) {
        const int l = (int)f->l_first[n], u = (int)f->u_first[n], o = (int)f->off_first[n];
        crdi_text_add(h, "    %s v[%d], scale[%d], diagonal[%d], lower[%d], upper[%d], off[%d];\n",
                      real, (int)f->count, n, n, l ? l : 1, u ? u : 1, o ? o : 1);
    }
    crdi_text_add(h, "} %s;\n\n", name);
    crdi_text_add(
        h,
        "void %s_begin(%s* s); // t = 0, the inputs being what the netlist says\n"
        "// One step on, the inputs being u (may be NULL if there are none). 0: done. 1: "
        "the iteration did\n// not converge, 2: the pivots of this file do not serve; then "
        "the state is that before the step.\n"
        "int %s_step(%s* s, const double* u);\n"
        "void %s_outputs(const %s* s, const double* u, double* y);\n"
        "double %s_time(const %s* s); // s\n\n",
        name, name, name, name, name, name, name, name);
}

static void put_header(const plan* p, int levels, int outputs, crd_text* h)
{
    const crd_netlist* n = p->e.n;
    crdi_text_add(h, "// Made by cardan export c from %s.\n", p->e.opt->origin);
    put_struct(p, levels, outputs, h);
    for (int i = 0; i < n->input_count; i++) {
        char digits[CRDI_C_NUMBER];
        crdi_text_add(h, "// u[%d] %s %s, begins with %s\n", i, n->inputs[i].name,
                      n->inputs[i].unit ? n->inputs[i].unit : "",
                      crdi_c_number(digits, n->inputs[i].start));
    }
    for (int i = 0; i < outputs; i++) {
        if (n->output_count) {
            crdi_text_add(h, "// y[%d] %s %s\n", i, n->outputs[i].name,
                          n->outputs[i].unit ? n->outputs[i].unit : "");
        } else {
            crdi_text_add(h, "// y[%d] v(%s)\n", i, n->nodes[i + 1]);
        }
    }
    crdi_text_add(h, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

static void put_head(const plan* p, const crdi_emit_report* r, crd_text* out)
{
    const crdi_dae* d = p->e.d;
    const crd_circuit_options* o = &d->c->opt;
    char step[CRDI_C_NUMBER], tolerance[CRDI_C_NUMBER];
    crdi_text_add(out,
                  "// Made by cardan export c from %s: a circuit with a fixed step of %g s.\n//\n"
                  "// C17, <math.h>, <stdint.h> and <string.h>; no memory but the struct. Compile "
                  "it with -std=c17 or\n// -ffp-contract=off and without -ffast-math: then it "
                  "computes bit by bit what cardan circuit\n// --form dae does%s.\n//\n"
                  "// %d variables, %d of them algebraic. A step takes at most %lld sums, products "
                  "and comparisons,\n// %lld divisions and %lld calls of functions of <math.h> (%d "
                  "iteration%s of %lld, %lld and %lld%s),\n// outputs included. State %zu bytes, "
                  "tables %zu.\n",
                  p->e.opt->origin, o->step,
                  p->e.opt->single ? " to about 1e-6, as matrices are float here" : "", (int)d->n,
                  (int)d->m, (long long)r->cost.sums, (long long)r->cost.divisions,
                  (long long)r->cost.functions, r->iterations, r->iterations == 1 ? "" : "s",
                  (long long)r->once.sums, (long long)r->once.divisions,
                  (long long)r->once.functions,
                  d->switches ? ", ten times over if switches move" : "", r->state, r->tables);
    crdi_text_add(
        out,
        "#include \"%s.h\"\n#include <math.h>\n#include <string.h>\n\n"
        "#if defined __FAST_MATH__\n#error \"not with -ffast-math\"\n#endif\n"
        "#if defined __clang__\n#pragma STDC FP_CONTRACT OFF\n#endif\n\n"
        "typedef %s real;\n"
        "#define STEP %s\n#define TOLERANCE %s\n#define GROWTH %s\n"
        "enum { N = %d, M = %d, P = %d, MASSES = %zu, BLOCKS = %d, ENTRIES = %d, PASSES = "
        "%d, FIXED = %d",
        p->e.opt->name, p->e.opt->single ? "float" : "double", crdi_c_number(step, o->step),
        crdi_c_number(tolerance, o->tolerance), d->linear ? "1e-6" : "1e-10", (int)d->n, (int)d->m,
        d->p > 0 ? (int)d->p : 1, d->a.count, (int)p->f.blocks, (int)p->f.count, r->iterations,
        o->fixed_iterations);
    if (d->diodes) { crdi_text_add(out, ", DIODES = %d", d->diodes); }
    if (d->switches) { crdi_text_add(out, ", SWITCHES = %d", d->switches); }
    crdi_text_add(out, " };\n\n");
}

static crd_status make_plan(plan* p, crd_circuit* c)
{
    const crd_circuit_options* o = &c->opt;
    if (o->method > CRD_METHOD_TRBDF2 || o->method == CRD_METHOD_TR_CARRIED) {
        return crdi_fail(c->ctx, CRD_E_UNSUPPORTED,
                         "this method is not for controllers; expected bdf1, bdf2, bdf3, tr or "
                         "trbdf2");
    }
    p->order = o->method == CRD_METHOD_TR       ? 0
               : o->method == CRD_METHOD_TRBDF2 ? -1
                                                : (int)o->method - (int)CRD_METHOD_BDF1 + 1;
    p->start = p->order > 0 ? crdi_start_steps(o, p->order) : 0;
    p->weight = p->order > 0   ? crdi_bdf_lead[p->order] / o->step
                : p->order < 0 ? crdi_trbdf2_of(o->step).w
                               : 2 / o->step;
    p->e.varying = crdi_arena_new(p->e.arena, p->e.d->j.count, sizeof *p->e.varying);
    return p->e.varying ? find_factors(p, c) : CRD_E_MEMORY;
}

crd_status crdi_circuit_emit(crd_circuit* c, const crdi_emit_options* opt, crd_text* source,
                             crd_text* header, crdi_emit_report* report)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    crd_text body;
    crd_arena_init(&arena, c->ctx);
    crd_text_init(&body, c->ctx);
    plan p = {.e = {.d = c->self, .n = c->n, .opt = opt, .arena = &arena, .out = &body}};
    *report = (crdi_emit_report){0};
    CRD_TRY(make_plan(&p, c));
    const crdi_dae* d = p.e.d;
    const int levels = p.order > 1 ? p.order : 1;
    const int single = opt->single ? 2 : 1; // a second pass mends what float has rounded
    report->iterations = d->linear && !c->opt.fixed_iterations ? single : c->opt.max_iterations;
    report->outputs = c->n->output_count ? c->n->output_count : (int)c->n->node_count - 1;
    put_system(&p);
    crdi_emit_tables(&p.e);
    put_functions(&p);
    p.moves = p.e.moving > 0 || p.start > 0;
    put_factors(&p);
    if (p.moves) {
        CRD_TRY(put_fill(&p) ? CRD_OK : CRD_E_MEMORY);
        put_template(&p, factor_text);
    }
    put_template(&p, solve_text);
    put_template(&p, assemble_text);
    put_template(&p, d->linear ? linear_text : newton_text);
    put_step(&p);
    put_outputs(&p);
    work_out_cost(&p, report);
    work_out_sizes(&p, levels, report);
    put_header(&p, levels, report->outputs, header);
    put_head(&p, report, source);
    if (body.data) { crdi_text_put(source, body.data, body.length); }
    st = body.failed || source->failed || header->failed || arena.failed ? CRD_E_MEMORY : CRD_OK;
fail:
    crd_text_clear(&body);
    crd_arena_clear(&arena);
    return st;
}
