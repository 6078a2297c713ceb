// Loops for cardan analyze: the loop file, and what a loop file and a system have in common.
#include "cli/analyze.h"
#include "cli/design.h"

#include "cardan/system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST = 4 << 20, MOST_VARIANTS = 256, MOST_NUMBERS = 1000 };

// ---- cases -------------------------------------------------------------------------------------

const crd_linear* crdi_loop_add_element(crdi_loop_case* c, const crd_element* e, double step, int k,
                                        crd_status* st)
{
    crdi_loop_element* x = &c->elements[c->element_count];
    *st = crdi_linears_make(e, step, k, &x->linears);
    if (*st < 0) { return NULL; }
    c->element_count++;
    x->label = crdi_arena_format(&c->arena, "%s", e->label);
    x->current = crdi_arena_new(&c->arena, 1, sizeof *x->current);
    if (!x->label || !x->current) {
        *st = CRD_E_MEMORY;
        return NULL;
    }
    *x->current = x->linears.linear[0];
    return x->current;
}

void crdi_loop_choose(crdi_loop_case* c, int variant)
{
    for (int i = 0; i < c->element_count; i++) {
        crdi_loop_element* x = &c->elements[i];
        *x->current = x->linears.linear[variant % x->linears.count];
        variant /= x->linears.count;
    }
}

static crd_status count_variants(crdi_loop_case* c)
{
    c->variants = 1;
    for (int i = 0; i < c->element_count; i++) {
        c->variants *= c->elements[i].linears.count;
        if (c->variants > MOST_VARIANTS) {
            return crdi_fail(c->ctx, CRD_E_UNSUPPORTED,
                             "the networks of the loop have more than %d combinations of linear "
                             "pieces",
                             MOST_VARIANTS);
        }
    }
    return CRD_OK;
}

crd_status crdi_loop_finish(crdi_loop_case* c)
{
    crd_status st = count_variants(c);
    if (st < 0 || !c->whole.link_count) { return st; }
    for (int i = 0; i < c->whole.link_count; i++) {
        c->direct += !c->whole.links[i].element && c->whole.links[i].delay == 0;
    }
    c->reduced = c->whole;
    if (c->direct && c->direct < c->whole.link_count) {
        st = crd_plant_reduce(c->ctx, &c->arena, &c->whole, &c->reduced);
        if (st < 0) { return st; }
    }
    c->loop.network = &c->reduced;
    c->sampled = c->reduced;
    c->no_map = NULL;
    for (int i = 0; i < c->reduced.link_count; i++) {
        if (!c->reduced.links[i].element || c->reduced.links[i].delay > 0) {
            c->no_map = "a link has a delay in s, or no element";
        }
    }
    return CRD_OK;
}

void crdi_loop_clear(crdi_loop_case* c)
{
    if (!c->ctx) { return; }
    for (int i = 0; i < c->element_count; i++) {
        crdi_linears_clear(&c->elements[i].linears);
    }
    crd_arena_clear(&c->arena);
    *c = (crdi_loop_case){0};
}

// ---- places in the JSON text -------------------------------------------------------------------

static const char* skip_space(const char* p)
{
    return p + strspn(p, " \t\r\n");
}

// Behind the value that begins at p; the text is known to be JSON.
static const char* skip_value(const char* p)
{
    int depth = 0;
    do {
        p = skip_space(p);
        if (*p == '"') {
            for (p++; *p && *p != '"'; p++) {
                if (*p == '\\' && p[1]) { p++; }
            }
            p += *p == '"';
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            depth--;
            p++;
        } else if (*p == ',' || *p == ':') {
            p++;
        } else {
            p += strcspn(p, ",:]} \t\r\n");
        }
    } while (depth > 0 && *p);
    return p;
}

// The value under a key of the object at p, or element `index` if key is NULL; p itself if there is
// none.
static const char* child(const char* p, const char* key, size_t index)
{
    const char* begin = p;
    p = skip_space(p);
    if (*p != (key ? '{' : '[')) { return begin; }
    p = skip_space(p + 1);
    for (size_t i = 0; *p && *p != '}' && *p != ']'; i++) {
        const char* name = p;
        if (key) { p = skip_space(skip_value(p)) + 1; } // behind the colon
        p = skip_space(p);
        if (key ? strncmp(name + 1, key, strlen(key)) == 0 && name[1 + strlen(key)] == '"'
                : i == index) {
            return p;
        }
        p = skip_space(skip_value(p));
        if (*p == ',') { p = skip_space(p + 1); }
    }
    return begin;
}

// ---- reading -----------------------------------------------------------------------------------

typedef struct reader {
    crd_context* ctx;
    const char* file;
    const char* folder; // of the file, "" or with a slash
    crd_text json;
    json_t* root;
    const crdi_analyze_options* o;
    crdi_loop_case* c;
    int latency; // for elements that do not know theirs, -1: not said
} reader;

// A value with where it stands
typedef struct node {
    json_t* value;
    const char* at;
    const char* name;
} node;

static int line_of(const reader* r, const char* at)
{
    int line = 1;
    for (const char* p = r->json.data; p < at; p++) {
        line += *p == '\n';
    }
    return line;
}

#define FAIL(r, n, ...) fail_at(r, (n).at, __VA_ARGS__)
static crd_status fail_at(const reader* r, const char* at, const char* format, ...)
    CRD_PRINTF(3, 4);
static crd_status fail_at(const reader* r, const char* at, const char* format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%d: %s", r->file, line_of(r, at), text);
}

static node get(const node* n, const char* key)
{
    json_t* value = json_object_get(n->value, key);
    return (node){value, value ? child(n->at, key, 0) : n->at, key};
}

static node item(const node* n, size_t i)
{
    return (node){json_array_get(n->value, i), child(n->at, NULL, i), n->name};
}

static const char* next_word(void* user)
{
    const char* const** words = user;
    return **words ? *(*words)++ : NULL;
}

static crd_status check_keys(const reader* r, const node* n, const char* const* known)
{
    const char* key;
    json_t* value;
    if (!json_is_object(n->value)) {
        return FAIL(r, *n, "%s: expected a mapping with %s ...", n->name, known[0]);
    }
    json_object_foreach(n->value, key, value)
    {
        const char* const* k = known;
        while (*k && strcmp(*k, key) != 0) {
            k++;
        }
        if (*k) { continue; }
        const char* const* words = known;
        const char* near = crdi_nearest(key, next_word, &words);
        return fail_at(r, child(n->at, key, 0), "unknown key '%s'%s%s%s", key,
                       near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    return CRD_OK;
}

static crd_status read_number(const reader* r, const node* n, double* out)
{
    if (!json_is_number(n->value) || !isfinite(json_number_value(n->value))) {
        return FAIL(r, *n, "%s: expected a number", n->name);
    }
    *out = json_number_value(n->value);
    return CRD_OK;
}

// "10 ms", or a number of s
static crd_status read_time(const reader* r, const node* n, double* out)
{
    crd_dimension dim, seconds;
    bool bare = true;
    double t = NAN;
    if (json_is_number(n->value)) {
        t = json_number_value(n->value);
    } else if (!json_is_string(n->value) ||
               !crd_quantity_parse(json_string_value(n->value), &t, &dim, &bare) ||
               (!bare &&
                (!crd_dimension_parse("s", &seconds) || !crd_dimension_equal(&dim, &seconds)))) {
        t = NAN;
    }
    if (!(t >= 0 && isfinite(t))) {
        return FAIL(r, *n, "%s: expected a time such as 10 ms, not negative", n->name);
    }
    *out = t;
    return CRD_OK;
}

static crd_status read_latency(const reader* r, const node* n, double step, int* out)
{
    char text[64];
    if (json_is_integer(n->value)) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(n->value));
    } else {
        snprintf(text, sizeof text, "%s",
                 json_is_string(n->value) ? json_string_value(n->value) : "");
    }
    int k[CRDI_LATENCIES_MAX], count = 0;
    if (crdi_parse_latencies(r->ctx, text, step, k, &count) < 0 || count != 1) {
        return FAIL(r, *n, "%s: expected a number of macro steps, or a time such as 60 ms",
                    n->name);
    }
    *out = k[0];
    return CRD_OK;
}

// A list of numbers; `out` from the arena.
static crd_status read_list(const reader* r, const node* n, int* count, const double** out)
{
    const size_t size = json_array_size(n->value);
    if (!json_is_array(n->value) || size < 1 || size > MOST_NUMBERS) {
        return FAIL(r, *n, "%s: expected a list of 1 to %d numbers", n->name, MOST_NUMBERS);
    }
    double* x = crdi_arena_new(&r->c->arena, size, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < size; i++) {
        const node one = item(n, i);
        const crd_status st = read_number(r, &one, &x[i]);
        if (st < 0) { return st; }
    }
    *count = (int)size;
    *out = x;
    return CRD_OK;
}

// Rows of numbers. -1 of rows or columns: any, and told. [] has no rows.
static crd_status read_matrix(const reader* r, const node* n, int* rows, int* columns, double** out)
{
    const size_t size = json_array_size(n->value);
    if (!json_is_array(n->value) || size > MOST_NUMBERS) {
        return FAIL(r, *n, "%s: expected a matrix as a list of rows, such as [[0, 1], [-10, 0]]",
                    n->name);
    }
    if (*rows >= 0 && size != (size_t)*rows) {
        return FAIL(r, *n, "%s has %zu rows, expected %d", n->name, size, *rows);
    }
    double* x = NULL;
    for (size_t i = 0; i < size; i++) {
        const node row = item(n, i);
        const size_t width = json_array_size(row.value);
        if (!json_is_array(row.value) || width > MOST_NUMBERS) {
            return FAIL(r, row, "%s: row %zu is no list of numbers", n->name, i + 1);
        }
        if (*columns < 0) { *columns = (int)width; }
        if (width != (size_t)*columns) {
            return FAIL(r, row, "%s: row %zu has %zu numbers, expected %d", n->name, i + 1, width,
                        *columns);
        }
        if (!x) { x = crdi_arena_new(&r->c->arena, size * width, sizeof *x); }
        if (!x) { return CRD_E_MEMORY; }
        for (size_t k = 0; k < width; k++) {
            const node one = item(&row, k);
            const crd_status st = read_number(r, &one, &x[i * width + k]);
            if (st < 0) { return st; }
        }
    }
    *rows = (int)size;
    if (*columns < 0) { *columns = 0; }
    *out = x;
    return CRD_OK;
}

// ---- elements ----------------------------------------------------------------------------------

// A word, a file beside the loop file, or a mapping in place
static crd_status load_element(reader* r, const node* n, crd_element** out)
{
    if (json_is_object(n->value)) {
        const char* end = skip_value(n->at);
        return crd_element_parse(r->ctx, n->at, (size_t)(end - n->at), r->file, line_of(r, n->at),
                                 out);
    }
    if (!json_is_string(n->value)) {
        return FAIL(r, *n, "%s: expected a word such as eros, a file, or a mapping", n->name);
    }
    const char* text = json_string_value(n->value);
    const bool path = text[0] != '/' && text[0] != '{' && strpbrk(text, "./");
    char* where = crdi_format(r->ctx, "%s%s", path ? r->folder : "", text);
    if (!where) { return CRD_E_MEMORY; }
    const crd_status st = crdi_load_element(r->ctx, where, out);
    crd_free(r->ctx, where);
    return st < 0 && st != CRD_E_MEMORY
               ? crdi_fail_in(r->ctx, st, "%s:%d", r->file, line_of(r, n->at))
               : st;
}

static bool is_none(const node* n)
{
    return !n->value || json_is_null(n->value) ||
           (json_is_string(n->value) && strcmp(json_string_value(n->value), "none") == 0);
}

// `own` is the latency that the link says, -1: none. `*out` NULL: connected directly.
static crd_status add_element(reader* r, const node* n, int own, const crd_linear** out)
{
    crd_element* e = NULL;
    crd_status st = CRD_OK;
    *out = NULL;
    if (is_none(n)) { return CRD_OK; }
    const double step = r->c->loop.dT;
    if (r->o->elements.count) {
        CRD_TRY(crdi_load_element(r->ctx, r->o->elements.items[0], &e));
    } else {
        CRD_TRY(load_element(r, n, &e));
    }
    int k = own >= 0                ? own
            : e->latency_steps >= 0 ? e->latency_steps
            : !isnan(e->latency)    ? (int)ceil(e->latency / step - 1e-9)
                                    : r->latency;
    CRD_TRY(crdi_one_latency(r->ctx, r->o->latency, step, k, &k));
    if (k < 0) {
        CRD_TRY(FAIL(r, *n, "%s: expected a latency, as 'latency: 3' of the loop or --latency",
                     n->name));
    }
    *out = crdi_loop_add_element(r->c, e, step, k, &st);
    if (!*out) { st = crdi_fail_in(r->ctx, st, "%s:%d", r->file, line_of(r, n->at)); }
fail:
    crd_element_destroy(e);
    return st;
}

// ---- transfer functions ------------------------------------------------------------------------

static crd_status read_transfers(reader* r, const node* n)
{
    static const char* const keys[] = {"num", "den", NULL};
    const size_t size = json_array_size(n->value);
    if (!json_is_array(n->value) || size < 1 || size > 100) {
        return FAIL(r, *n, "transfers: expected a list of {num: [...], den: [...]}");
    }
    crd_transfer* t = crdi_arena_new(&r->c->arena, size, sizeof *t);
    if (!t) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < size; i++) {
        const node one = item(n, i), num = get(&one, "num"), den = get(&one, "den");
        crd_status st = check_keys(r, &one, keys);
        if (st >= 0 && (!num.value || !den.value)) {
            st =
                FAIL(r, one, "transfers: expected num and den, coefficients of rising powers of s");
        }
        if (st >= 0) { st = read_list(r, &num, &t[i].num_degree, &t[i].num); }
        if (st >= 0) { st = read_list(r, &den, &t[i].den_degree, &t[i].den); }
        if (st < 0) { return st; }
        t[i].num_degree--;
        t[i].den_degree--;
        while (t[i].num_degree > 0 && t[i].num[t[i].num_degree] == 0) {
            t[i].num_degree--;
        }
        if (t[i].den[t[i].den_degree] == 0) {
            return FAIL(r, den, "den: the last coefficient, of the highest power of s, is 0");
        }
    }
    r->c->loop.transfers = t;
    r->c->loop.transfer_count = (int)size;
    return CRD_OK;
}

static crd_status read_elements(reader* r, const node* n)
{
    const size_t size = json_array_size(n->value);
    if (n->value && (!json_is_array(n->value) || size > 100)) {
        return FAIL(r, *n, "elements: expected a list, such as [zoh, zoh]");
    }
    const crd_linear** list = crdi_arena_new(&r->c->arena, size, sizeof *list);
    r->c->elements = crdi_arena_new(&r->c->arena, size, sizeof *r->c->elements);
    if (!list || !r->c->elements) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < size; i++) {
        const node one = item(n, i);
        const crd_linear* e = NULL;
        const crd_status st = add_element(r, &one, -1, &e);
        if (st < 0) { return st; }
        if (e) { list[r->c->loop.element_count++] = e; }
    }
    r->c->loop.elements = list;
    return CRD_OK;
}

// Controllable canonical form: y = num / den u
static void realise(const crd_transfer* t, int first, int n, double* A, double* B, double* C,
                    double* D, int unit, int units)
{
    const int degree = t->den_degree;
    const double lead = t->den[degree];
    const double direct = t->num_degree == degree ? t->num[degree] / lead : 0;
    for (int i = 0; i < degree; i++) {
        const int row = first + i;
        if (i + 1 < degree) { A[row * n + row + 1] = 1; }
        A[(first + degree - 1) * n + row] = -t->den[i] / lead;
        C[unit * n + row] = ((i <= t->num_degree ? t->num[i] : 0) - direct * t->den[i]) / lead;
        if (i == degree - 1) { B[row * units + unit] = 1; }
    }
    D[unit * units + unit] = direct;
}

// The map over one macro step: transfer i feeds element i, which feeds transfer i + 1.
static crd_status make_sampled(reader* r)
{
    crdi_loop_case* c = r->c;
    const crd_loop* l = &c->loop;
    int n = 0;
    const int units = l->transfer_count;
    for (int i = 0; i < units; i++) {
        n += l->transfers[i].den_degree;
        if (l->transfers[i].num_degree > l->transfers[i].den_degree) {
            c->no_map = "a transfer function alone is not proper; give units and links instead";
        }
    }
    if (l->element_count != units) {
        c->no_map = "it needs one element behind each transfer function";
    } else if (l->delay > 0) {
        c->no_map = "the loop has a delay in s";
    }
    if (c->no_map) { return CRD_OK; }
    double* A = crdi_arena_new(&c->arena, (size_t)n * (size_t)n, sizeof *A);
    double* B = crdi_arena_new(&c->arena, (size_t)n * (size_t)units, sizeof *B);
    double* C = crdi_arena_new(&c->arena, (size_t)units * (size_t)n, sizeof *C);
    double* D = crdi_arena_new(&c->arena, (size_t)units * (size_t)units, sizeof *D);
    crd_plant_link* links = crdi_arena_new(&c->arena, (size_t)units, sizeof *links);
    if (!A || !B || !C || !D || !links) { return CRD_E_MEMORY; }
    for (int i = 0, first = 0; i < units; i++) {
        realise(&l->transfers[i], first, n, A, B, C, D, i, units);
        first += l->transfers[i].den_degree;
        links[i] = (crd_plant_link){.from = i,
                                    .to = (i + 1) % units,
                                    .gain = i + 1 == units ? -1 : 1, // negative feedback
                                    .element = l->elements[i]};
    }
    c->sampled = (crd_plant){n, units, units, A, B, C, D, units, links};
    return CRD_OK;
}

static crd_status read_transfer_loop(reader* r, const node* root)
{
    static const char* const keys[] = {"loop",     "name",    "step",  "transfers",
                                       "elements", "latency", "delay", NULL};
    const node transfers = get(root, "transfers"), elements = get(root, "elements"),
               delay = get(root, "delay");
    crd_status st = CRD_OK;
    CRD_TRY(check_keys(r, root, keys));
    CRD_TRY(read_transfers(r, &transfers));
    CRD_TRY(read_elements(r, &elements));
    if (delay.value) { CRD_TRY(read_time(r, &delay, &r->c->loop.delay)); }
    CRD_TRY(make_sampled(r));
fail:
    return st;
}

// ---- state space -------------------------------------------------------------------------------

typedef struct block {
    const char* name; // "" if there is one only
    int states, inputs, outputs;
    int first_input, first_output, first_state;
    double *A, *B, *C, *D;
    json_t *input_names, *output_names; // NULL: numbers
} block;

static crd_status read_names(const reader* r, const node* n, int count, json_t** out)
{
    *out = n->value;
    if (!n->value) { return CRD_OK; }
    if (!json_is_array(n->value) || json_array_size(n->value) != (size_t)count) {
        return FAIL(r, *n, "%s: expected a list of %d names", n->name, count);
    }
    for (int i = 0; i < count; i++) {
        const node one = item(n, (size_t)i);
        if (!json_is_string(one.value)) { return FAIL(r, one, "%s: expected names", n->name); }
    }
    return CRD_OK;
}

static crd_status read_block(const reader* r, const node* n, const char* name, block* b)
{
    static const char* const keys[] = {"A", "B", "C", "D", "inputs", "outputs", NULL};
    const node A = get(n, "A"), B = get(n, "B"), C = get(n, "C"), D = get(n, "D");
    const node inputs = get(n, "inputs"), outputs = get(n, "outputs");
    crd_status st = CRD_OK;
    *b = (block){.name = name, .states = -1, .inputs = -1, .outputs = -1};
    CRD_TRY(check_keys(r, n, keys));
    if (!A.value && D.value) {
        b->states = 0;
        CRD_TRY(read_matrix(r, &D, &b->outputs, &b->inputs, &b->D));
    } else {
        if (!A.value || !B.value || !C.value) {
            CRD_TRY(FAIL(r, *n, "units: expected the matrices A, B, C, and D unless it is 0"));
        }
        CRD_TRY(read_matrix(r, &A, &b->states, &b->states, &b->A));
        CRD_TRY(read_matrix(r, &B, &b->states, &b->inputs, &b->B));
        CRD_TRY(read_matrix(r, &C, &b->outputs, &b->states, &b->C));
        if (D.value) { CRD_TRY(read_matrix(r, &D, &b->outputs, &b->inputs, &b->D)); }
    }
    CRD_TRY(read_names(r, &inputs, b->inputs, &b->input_names));
    CRD_TRY(read_names(r, &outputs, b->outputs, &b->output_names));
fail:
    return st;
}

static crd_status read_blocks(const reader* r, const node* n, block** blocks, int* count)
{
    const bool one = json_object_get(n->value, "A") || json_object_get(n->value, "B") ||
                     json_object_get(n->value, "C") || json_object_get(n->value, "D");
    const size_t size = one ? 1 : json_object_size(n->value);
    if (!json_is_object(n->value) || size < 1 || size > MOST_NUMBERS) {
        return FAIL(r, *n,
                    "units: expected {A: ..., B: ..., C: ..., D: ...}, or several of them "
                    "with names");
    }
    *blocks = crdi_arena_new(&r->c->arena, size, sizeof **blocks);
    if (!*blocks) { return CRD_E_MEMORY; }
    if (one) {
        *count = 1;
        return read_block(r, n, "", &(*blocks)[0]);
    }
    const char* key;
    json_t* value;
    json_object_foreach(n->value, key, value)
    {
        const node unit = get(n, key);
        const crd_status st = read_block(r, &unit, key, &(*blocks)[(*count)++]);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static void put_block(double* to, const double* from, int row, int rows, int column, int columns,
                      int width)
{
    for (int i = 0; from && i < rows; i++) {
        for (int k = 0; k < columns; k++) {
            to[(row + i) * width + column + k] = from[i * columns + k];
        }
    }
}

static crd_status assemble(const reader* r, block* blocks, int count)
{
    crd_plant* p = &r->c->whole;
    for (int i = 0; i < count; i++) {
        block* b = &blocks[i];
        b->first_state = p->states;
        b->first_input = p->inputs;
        b->first_output = p->outputs;
        p->states += b->states;
        p->inputs += b->inputs;
        p->outputs += b->outputs;
    }
    if (p->states > MOST_NUMBERS || p->inputs > MOST_NUMBERS || p->outputs > MOST_NUMBERS) {
        return crdi_fail(r->ctx, CRD_E_FORMAT,
                         "%s: the units have %d states, %d inputs and %d outputs together, "
                         "expected at most %d of each",
                         r->file, p->states, p->inputs, p->outputs, MOST_NUMBERS);
    }
    const size_t n = (size_t)p->states, in = (size_t)p->inputs, out = (size_t)p->outputs;
    double* A = crdi_arena_new(&r->c->arena, n * n, sizeof *A);
    double* B = crdi_arena_new(&r->c->arena, n * in, sizeof *B);
    double* C = crdi_arena_new(&r->c->arena, out * n, sizeof *C);
    double* D = crdi_arena_new(&r->c->arena, out * in, sizeof *D);
    if (!A || !B || !C || !D) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        const block* b = &blocks[i];
        put_block(A, b->A, b->first_state, b->states, b->first_state, b->states, p->states);
        put_block(B, b->B, b->first_state, b->states, b->first_input, b->inputs, p->inputs);
        put_block(C, b->C, b->first_output, b->outputs, b->first_state, b->states, p->states);
        put_block(D, b->D, b->first_output, b->outputs, b->first_input, b->inputs, p->inputs);
    }
    p->A = A;
    p->B = B;
    p->C = C;
    p->D = D;
    return CRD_OK;
}

// "unit.name", "unit.2", "name" or 2 of a single unit; numbers from 1
static int find_port(const block* blocks, int count, const char* text, bool input)
{
    for (int i = 0; i < count; i++) {
        const block* b = &blocks[i];
        const size_t length = strlen(b->name);
        const char* port = text;
        if (length) {
            if (strncmp(text, b->name, length) != 0 || text[length] != '.') { continue; }
            port += length + 1;
        }
        const int ports = input ? b->inputs : b->outputs;
        const int first = input ? b->first_input : b->first_output;
        json_t* names = input ? b->input_names : b->output_names;
        int64_t number;
        for (int k = 0; names && k < ports; k++) {
            if (strcmp(json_string_value(json_array_get(names, (size_t)k)), port) == 0) {
                return first + k;
            }
        }
        if (crdi_parse_int64(port, strlen(port), &number) && number >= 1 && number <= ports) {
            return first + (int)number - 1;
        }
    }
    return -1;
}

static crd_status read_port(const reader* r, const node* n, const block* blocks, int count,
                            bool input, int* out)
{
    char number[32];
    const char* text = json_string_value(n->value);
    if (json_is_integer(n->value)) {
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(n->value));
        text = number;
    }
    *out = text ? find_port(blocks, count, text, input) : -1;
    if (*out >= 0) { return CRD_OK; }
    return FAIL(r, *n, "%s: %s%s%s is no %s of the units; expected unit.name or a number from 1",
                n->name, text ? "'" : "it", text ? text : "", text ? "'" : "",
                input ? "input" : "output");
}

static crd_status read_link(reader* r, const node* n, const block* blocks, int count,
                            crd_plant_link* l)
{
    static const char* const keys[] = {"from", "to", "gain", "element", "latency", "delay", NULL};
    const node from = get(n, "from"), to = get(n, "to"), gain = get(n, "gain"),
               element = get(n, "element"), latency = get(n, "latency"), delay = get(n, "delay");
    int k = -1;
    crd_status st = CRD_OK;
    CRD_TRY(check_keys(r, n, keys));
    CRD_TRY(read_port(r, &from, blocks, count, false, &l->from));
    CRD_TRY(read_port(r, &to, blocks, count, true, &l->to));
    l->gain = 1;
    if (gain.value) { CRD_TRY(read_number(r, &gain, &l->gain)); }
    if (l->gain == 0) { CRD_TRY(FAIL(r, gain, "gain: 0 would be no link; leave it out")); }
    if (latency.value) { CRD_TRY(read_latency(r, &latency, r->c->loop.dT, &k)); }
    CRD_TRY(add_element(r, &element, k, &l->element));
    if (delay.value) { CRD_TRY(read_time(r, &delay, &l->delay)); }
fail:
    return st;
}

static crd_status read_network(reader* r, const node* root)
{
    static const char* const keys[] = {"loop", "name", "step", "units", "links", "latency", NULL};
    const node units = get(root, "units"), links = get(root, "links");
    block* blocks = NULL;
    int count = 0;
    crd_status st = CRD_OK;
    CRD_TRY(check_keys(r, root, keys));
    CRD_TRY(read_blocks(r, &units, &blocks, &count));
    CRD_TRY(assemble(r, blocks, count));
    const size_t size = json_array_size(links.value);
    if (!json_is_array(links.value) || size < 1 || size > MOST_NUMBERS) {
        CRD_TRY(FAIL(r, links, "links: expected a list of {from: output, to: input, ...}"));
    }
    crd_plant_link* l = crdi_arena_new(&r->c->arena, size, sizeof *l);
    r->c->elements = crdi_arena_new(&r->c->arena, size, sizeof *r->c->elements);
    if (!l || !r->c->elements) { CRD_TRY(CRD_E_MEMORY); }
    for (size_t i = 0; i < size; i++) {
        const node one = item(&links, i);
        CRD_TRY(read_link(r, &one, blocks, count, &l[i]));
    }
    r->c->whole.links = l;
    r->c->whole.link_count = (int)size;
fail:
    return st;
}

// ---- the file ----------------------------------------------------------------------------------

static crd_status read_file(reader* r)
{
    crd_text bytes;
    crd_text_init(&bytes, r->ctx);
    crd_status st =
        crdi_file_read(r->ctx, r->file,
                       &(crdi_file_need){.what = "a loop", .most = LARGEST, .pipes = true}, &bytes);
    if (st >= 0) {
        st = crd_yaml_to_json(r->ctx, bytes.data, bytes.length, (crd_place){r->file, 1}, &r->json);
    }
    crd_text_clear(&bytes);
    if (st < 0) { return st; }
    json_error_t error;
    r->root = json_loadb(r->json.data, r->json.length, 0, &error);
    if (!r->root || !json_is_object(r->root)) {
        return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%d: expected a mapping that begins with loop: 1",
                         r->file, r->root ? 1 : error.line);
    }
    return CRD_OK;
}

static crd_status read_loop(reader* r)
{
    const node root = {r->root, skip_space(r->json.data), "loop"};
    const node version = get(&root, "loop"), step = get(&root, "step"),
               latency = get(&root, "latency");
    crd_status st = CRD_OK;
    if (!json_is_integer(version.value) || json_integer_value(version.value) != 1) {
        CRD_TRY(FAIL(r, version, "loop: expected 1, the version of the format"));
    }
    r->c->loop.dT = r->o->step;
    if (isnan(r->o->step)) {
        if (!step.value) {
            CRD_TRY(FAIL(r, root, "expected step: the macro step, such as 1 ms; or --step"));
        }
        CRD_TRY(read_time(r, &step, &r->c->loop.dT));
        if (!(r->c->loop.dT > 0)) { CRD_TRY(FAIL(r, step, "step: expected a time > 0")); }
    }
    r->latency = -1;
    if (latency.value) { CRD_TRY(read_latency(r, &latency, r->c->loop.dT, &r->latency)); }
    r->c->exact = true;
    const bool transfers = json_object_get(r->root, "transfers") != NULL;
    if (!transfers && !json_object_get(r->root, "units")) {
        CRD_TRY(FAIL(r, root, "expected transfers: [{num, den}, ...] or units: and links:"));
    }
    CRD_TRY(transfers ? read_transfer_loop(r, &root) : read_network(r, &root));
    CRD_TRY(crdi_loop_finish(r->c));
fail:
    return st;
}

static bool is_loop_text(const reader* r)
{
    return json_object_get(r->root, "loop") != NULL;
}

static crd_status find_folder(reader* r)
{
    const char* slash = strrchr(r->file, '/');
    r->folder = crdi_arena_text(&r->c->arena, r->file, slash ? (size_t)(slash - r->file) + 1 : 0);
    return r->folder ? CRD_OK : CRD_E_MEMORY;
}

static bool has_ending(const char* path, const char* ending)
{
    const size_t n = strlen(path), k = strlen(ending);
    return n > k && strcmp(path + n - k, ending) == 0;
}

crd_status crdi_loop_read(crd_context* ctx, const char* path, const crdi_analyze_options* o,
                          crdi_loop_case* out)
{
    *out = (crdi_loop_case){.ctx = ctx, .name = path, .place = "", .variants = 1};
    crd_arena_init(&out->arena, ctx);
    crd_status st = CRD_OK;
    reader r = {.ctx = ctx, .file = path, .o = o, .c = out};
    crd_text_init(&r.json, ctx);
    if (o->elements.count > 1) {
        CRD_TRY(crdi_fail(ctx, CRD_E_RANGE, "--element: %d are given, expected one for a loop",
                          o->elements.count));
    }
    if (has_ending(path, ".yaml") || has_ending(path, ".yml") || has_ending(path, ".json")) {
        CRD_TRY(read_file(&r));
        if (is_loop_text(&r)) {
            CRD_TRY(find_folder(&r));
            CRD_TRY(read_loop(&r));
            goto fail;
        }
    }
    CRD_TRY(crdi_loop_of_system(ctx, path, o, out));
fail:
    json_decref(r.root);
    crd_text_clear(&r.json);
    if (st < 0) { crdi_loop_clear(out); }
    return st;
}
