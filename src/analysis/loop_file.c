// Loop files: transfer functions with the elements behind them, or units with matrices and links.
#include "analysis/analysis.h"

#include "shared/base.h"
#include "shared/coupling.h"

#include <stdio.h>
#include <string.h>

enum { MOST_NUMBERS = 1000, MOST_IN_LOOP = 100 };

typedef struct reader {
    crd_context* ctx;
    const char* file;
    const char* folder; // of the file, "" or with a slash
    const crd_loop_options* o;
    crd_loop_model* m;
    int latency;       // for elements that do not know theirs, -1: not said
    crd_spread spread; // of links that do not say theirs
} reader;

// A value, or where it is missing
typedef struct node {
    const crdi_json* value; // NULL: missing
    int line;
    const char* name;
} node;

crd_loop_options crd_loop_defaults(void)
{
    return (crd_loop_options){
        .step = NAN, .latency_steps = -1, .latency = NAN, .spread = crd_spread_none()};
}

// ---- nodes -------------------------------------------------------------------------------------

#define FAIL(r, n, ...) crdi_json_fail((r)->ctx, (r)->file, (n).line, CRD_E_FORMAT, __VA_ARGS__)

static bool is_kind(const node* n, crdi_json_kind kind)
{
    return n->value && n->value->kind == kind;
}

static node loop_file_member(const node* n, const char* key)
{
    const crdi_json* m = is_kind(n, CRDI_JSON_OBJECT) ? n->value->first : NULL;
    while (m && strcmp(m->key, key) != 0) {
        m = m->next;
    }
    return (node){m, m ? m->line : n->line, key};
}

static node as_node(const crdi_json* value, const char* name)
{
    return (node){value, value->line, name};
}

static size_t list_size(const node* n)
{
    return is_kind(n, CRDI_JSON_LIST) ? (size_t)n->value->count : 0;
}

static bool whole_number(const node* n, int64_t* out)
{
    return is_kind(n, CRDI_JSON_NUMBER) &&
           crdi_parse_int64(n->value->text, strlen(n->value->text), out);
}

static const char* loop_file_next_word(void* user)
{
    const char* const** words = user;
    return **words ? *(*words)++ : NULL;
}

static crd_status check_keys(const reader* r, const node* n, const char* const* known)
{
    if (!is_kind(n, CRDI_JSON_OBJECT)) {
        return FAIL(r, *n, "%s: expected a mapping with %s ...", n->name, known[0]);
    }
    for (const crdi_json* m = n->value->first; m; m = m->next) {
        const char* const* k = known;
        while (*k && strcmp(*k, m->key) != 0) {
            k++;
        }
        if (*k) { continue; }
        const char* const* words = known;
        const char* near = crdi_nearest(m->key, loop_file_next_word, &words);
        return FAIL(r, *m, "unknown key '%s'%s%s%s", m->key, near ? ", did you mean '" : "",
                    near ? near : "", near ? "'?" : "");
    }
    return CRD_OK;
}

// ---- values ------------------------------------------------------------------------------------

static crd_status read_number(const reader* r, const node* n, double* out)
{
    if (!is_kind(n, CRDI_JSON_NUMBER)) { return FAIL(r, *n, "%s: expected a number", n->name); }
    *out = n->value->number;
    return CRD_OK;
}

// A text such as "10 ms"; NaN if it is no time with its unit, `*bare` without one.
static double time_of(const char* text, bool* bare)
{
    crd_dimension dim;
    double t = NAN;
    const bool good = crd_quantity_parse(text, &t, &dim, bare) &&
                      (*bare || crd_dimension_equal(&dim, &(crd_dimension){.s = 1}));
    return good ? t : (double)NAN;
}

// "10 ms", or a number of s
static crd_status loop_file_read_time(const reader* r, const node* n, double* out)
{
    bool bare = true;
    const double t = is_kind(n, CRDI_JSON_NUMBER) ? n->value->number
                     : is_kind(n, CRDI_JSON_TEXT) ? time_of(n->value->text, &bare)
                                                  : (double)NAN;
    if (!(t >= 0 && isfinite(t))) {
        return FAIL(r, *n, "%s: expected a time such as 10 ms, not negative", n->name);
    }
    *out = t;
    return CRD_OK;
}

int crd_latency_steps(double latency, double step)
{
    const double steps = latency / step;
    // A sample that was sent on the raster is used on it: 57.5 ms of 10 ms each are six steps.
    return steps >= -1e-6 && steps <= CRD_LATENCY_MAX + 1e-6 ? (int)ceil(fmax(steps, 0) - 1e-6)
                                                             : -1;
}

crd_status crd_loop_latency(crd_context* ctx, const crd_loop_options* o, double step, int own,
                            int* out)
{
    *out = o->latency_steps >= 0 ? o->latency_steps
           : isnan(o->latency)   ? own
                                 : crd_latency_steps(o->latency, step);
    if (isnan(o->latency) || *out >= 0) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "a latency of %g s is %g macro steps of %g s, expected 0 to %d", o->latency,
                     o->latency / step, step, CRD_LATENCY_MAX);
}

// "2..5": of samples that take now so many steps and now so many. False if it is nothing of the
// kind.
static bool read_latencies(const char* text, crd_spread* s)
{
    const char* dots = strstr(text, "..");
    int64_t low = 0, high = 0;
    if (!dots || !crdi_parse_int64(text, (size_t)(dots - text), &low) ||
        !crdi_parse_int64(dots + 2, strlen(dots + 2), &high) || low < 0 || low > high ||
        high > CRD_LATENCY_MAX) {
        return false;
    }
    s->k_min = (int)low;
    s->k_max = (int)high;
    return true;
}

// Several latencies go into the spread, too; the longest of them is the latency.
static crd_status read_latency(const reader* r, const node* n, double step, int* out,
                               crd_spread* spread)
{
    int64_t k = -1;
    bool bare = true;
    if (is_kind(n, CRDI_JSON_TEXT)) {
        const char* text = n->value->text;
        if (strstr(text, "..")) {
            if (!read_latencies(text, spread)) {
                return FAIL(r, *n,
                            "%s: '%s', expected macro steps such as 2..5, the smaller one first, "
                            "up to %d",
                            n->name, text, CRD_LATENCY_MAX);
            }
            *out = spread->k_max;
            return CRD_OK;
        }
        if (!crdi_parse_int64(text, strlen(text), &k)) {
            const double t = time_of(text, &bare);
            k = isnan(t) || bare ? -1 : crd_latency_steps(t, step);
        }
    } else if (!whole_number(n, &k)) {
        k = -1;
    }
    if (k < 0 || k > CRD_LATENCY_MAX) {
        return FAIL(r, *n, "%s: expected a number of macro steps, or a time such as 60 ms",
                    n->name);
    }
    *out = (int)k;
    return CRD_OK;
}

// jitter, loss and losses of the loop or of a link
static crd_status read_spread(const reader* r, const node* n, crd_spread* out)
{
    const node jitter = loop_file_member(n, "jitter"), loss = loop_file_member(n, "loss"),
               losses = loop_file_member(n, "losses");
    crd_status st = CRD_OK;
    int64_t count = 0;
    if (jitter.value) { CRD_TRY(loop_file_read_time(r, &jitter, &out->jitter)); }
    if (loss.value) {
        CRD_TRY(read_number(r, &loss, &out->loss));
        if (!(out->loss >= 0 && out->loss < 1)) {
            CRD_TRY(FAIL(r, loss, "loss: %g, expected a part of the samples: 0 or more, below 1",
                         out->loss));
        }
    }
    if (losses.value) {
        if (!whole_number(&losses, &count) || count < 0 || count > CRD_BURST_MAX) {
            CRD_TRY(FAIL(r, losses,
                         "losses: expected how many samples are lost in a row at most, "
                         "0 to %d",
                         CRD_BURST_MAX));
        }
        out->burst = (int)count;
    }
fail:
    return st;
}

// A list of numbers; `out` from the arena.
static crd_status read_list(const reader* r, const node* n, int* count, const double** out)
{
    const size_t size = list_size(n);
    if (size < 1 || size > MOST_NUMBERS) {
        return FAIL(r, *n, "%s: expected a list of 1 to %d numbers", n->name, MOST_NUMBERS);
    }
    double* x = crdi_arena_new(&r->m->arena, size, sizeof *x);
    if (!x) { return CRD_E_MEMORY; }
    int i = 0;
    for (const crdi_json* v = n->value->first; v; v = v->next, i++) {
        const node one = as_node(v, n->name);
        const crd_status st = read_number(r, &one, &x[i]);
        if (st < 0) { return st; }
    }
    *count = (int)size;
    *out = x;
    return CRD_OK;
}

// Rows of numbers. -1 of rows or columns: any, and told. [] has no rows.
static crd_status read_matrix(const reader* r, const node* n, int* rows, int* columns,
                              const double** out)
{
    const size_t size = list_size(n);
    if (!is_kind(n, CRDI_JSON_LIST) || size > MOST_NUMBERS) {
        return FAIL(r, *n, "%s: expected a matrix as a list of rows, such as [[0, 1], [-10, 0]]",
                    n->name);
    }
    if (*rows >= 0 && size != (size_t)*rows) {
        return FAIL(r, *n, "%s has %zu rows, expected %d", n->name, size, *rows);
    }
    double* x = NULL;
    size_t i = 0, at = 0;
    for (const crdi_json* v = n->value->first; v; v = v->next) {
        const node row = as_node(v, n->name);
        const size_t width = list_size(&row);
        i++;
        if (!is_kind(&row, CRDI_JSON_LIST) || width > MOST_NUMBERS) {
            return FAIL(r, row, "%s: row %zu is no list of numbers", n->name, i);
        }
        if (*columns < 0) { *columns = (int)width; }
        if (width != (size_t)*columns) {
            return FAIL(r, row, "%s: row %zu has %zu numbers, expected %d", n->name, i, width,
                        *columns);
        }
        if (!x) { x = crdi_arena_new(&r->m->arena, size * width, sizeof *x); }
        if (!x) { return CRD_E_MEMORY; }
        for (const crdi_json* k = v->first; k; k = k->next) {
            const node one = as_node(k, n->name);
            const crd_status st = read_number(r, &one, &x[at++]);
            if (st < 0) { return st; }
        }
    }
    *rows = (int)size;
    if (*columns < 0) { *columns = 0; }
    *out = x;
    return CRD_OK;
}

// ---- elements ----------------------------------------------------------------------------------

static crd_status load_word(void* user, const char* text, crd_element** out)
{
    return crd_element_of_name(user, text, out);
}

// A word, a file beside the loop file, or a mapping in place
static crd_status load_element(const reader* r, const node* n, crd_element** out)
{
    if (is_kind(n, CRDI_JSON_OBJECT)) { return crdi_element_read(r->ctx, n->value, r->file, out); }
    if (!is_kind(n, CRDI_JSON_TEXT)) {
        return FAIL(r, *n, "%s: expected a word such as eros, a file, or a mapping", n->name);
    }
    const char* text = n->value->text;
    const bool path = text[0] != '/' && text[0] != '{' && strpbrk(text, "./");
    char* where = crdi_format(r->ctx, "%s%s", path ? r->folder : "", text);
    if (!where) { return CRD_E_MEMORY; }
    crd_element_loader* load = r->o->load ? r->o->load : load_word;
    const crd_status st = load(r->o->load ? r->o->load_user : r->ctx, where, out);
    crd_free(r->ctx, where);
    return st < 0 && st != CRD_E_MEMORY ? crdi_fail_in(r->ctx, st, "%s:%d", r->file, n->line) : st;
}

static bool is_none(const node* n)
{
    return !n->value || is_kind(n, CRDI_JSON_NULL) ||
           (is_kind(n, CRDI_JSON_TEXT) && strcmp(n->value->text, "none") == 0);
}

// `own` is the latency that the link says, -1: none. `*out` NULL: connected directly.
static crd_status loop_file_add_element(const reader* r, const node* n, int own,
                                        const crd_spread* spread, const crd_linear** out)
{
    crd_element* loaded = NULL;
    const crd_element* e = r->o->element;
    crd_status st = CRD_OK;
    *out = NULL;
    if (is_none(n)) { return CRD_OK; }
    const double step = r->m->loop.dT;
    if (!e) {
        CRD_TRY(load_element(r, n, &loaded));
        e = loaded;
    }
    int k = own >= 0 ? own : crd_element_latency(e, step);
    if (k < 0) { k = r->latency; }
    CRD_TRY(crd_loop_latency(r->ctx, r->o, step, k, &k));
    if (k < 0) {
        CRD_TRY(FAIL(r, *n, "%s: expected a latency, as 'latency: 3' of the loop or --latency",
                     n->name));
    }
    st = crd_loop_model_add(r->m, e, step, k, out);
    if (st >= 0 && r->m->varied) {
        st = crd_loop_model_vary(r->m, spread, &r->o->spread, step, k * step);
    }
    if (st < 0) { st = crdi_fail_in(r->ctx, st, "%s:%d", r->file, n->line); }
fail:
    crd_element_destroy(loaded);
    return st;
}

// ---- transfer functions ------------------------------------------------------------------------

static crd_status read_transfer(const reader* r, const node* n, crd_transfer* t)
{
    static const char* const keys[] = {"num", "den", NULL};
    const node num = loop_file_member(n, "num"), den = loop_file_member(n, "den");
    crd_status st = CRD_OK;
    CRD_TRY(check_keys(r, n, keys));
    if (!num.value || !den.value) {
        CRD_TRY(FAIL(r, *n, "transfers: expected num and den, coefficients of rising powers of s"));
    }
    CRD_TRY(read_list(r, &num, &t->num_degree, &t->num));
    CRD_TRY(read_list(r, &den, &t->den_degree, &t->den));
    t->num_degree--;
    t->den_degree--;
    while (t->num_degree > 0 && t->num[t->num_degree] == 0) {
        t->num_degree--;
    }
    if (t->den[t->den_degree] == 0) {
        CRD_TRY(FAIL(r, den, "den: the last coefficient, of the highest power of s, is 0"));
    }
fail:
    return st;
}

static crd_status read_transfers(const reader* r, const node* n)
{
    const size_t size = list_size(n);
    if (size < 1 || size > MOST_IN_LOOP) {
        return FAIL(r, *n, "transfers: expected a list of {num: [...], den: [...]}");
    }
    crd_transfer* t = crdi_arena_new(&r->m->arena, size, sizeof *t);
    if (!t) { return CRD_E_MEMORY; }
    r->m->loop.transfers = t;
    r->m->loop.transfer_count = (int)size;
    for (const crdi_json* v = n->value->first; v; v = v->next) {
        const node one = as_node(v, n->name);
        const crd_status st = read_transfer(r, &one, t++);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status read_elements(const reader* r, const node* n)
{
    const size_t size = list_size(n);
    if (n->value && (!is_kind(n, CRDI_JSON_LIST) || size > MOST_IN_LOOP)) {
        return FAIL(r, *n, "elements: expected a list, such as [zoh, zoh]");
    }
    const crd_linear** list = crdi_arena_new(&r->m->arena, size, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    for (const crdi_json* v = n->value ? n->value->first : NULL; v; v = v->next) {
        const node one = as_node(v, n->name);
        const crd_linear* e = NULL;
        const crd_status st = loop_file_add_element(r, &one, -1, &r->spread, &e);
        if (st < 0) { return st; }
        if (e) { list[r->m->loop.element_count++] = e; }
    }
    r->m->loop.elements = list;
    return CRD_OK;
}

static crd_status read_transfer_loop(const reader* r, const node* root)
{
    static const char* const keys[] = {"loop",     "name",    "step",  "transfers",
                                       "elements", "latency", "delay", "jitter",
                                       "loss",     "losses",  NULL};
    const node transfers = loop_file_member(root, "transfers"),
               elements = loop_file_member(root, "elements"),
               delay = loop_file_member(root, "delay");
    crd_status st = CRD_OK;
    CRD_TRY(check_keys(r, root, keys));
    CRD_TRY(read_transfers(r, &transfers));
    CRD_TRY(read_elements(r, &elements));
    if (delay.value) { CRD_TRY(loop_file_read_time(r, &delay, &r->m->loop.delay)); }
fail:
    return st;
}

// ---- units and links ---------------------------------------------------------------------------

// Units by name; the matrices of unit i are blocks[i].
typedef struct units {
    int count;
    crd_plant* blocks;
    struct unit {
        const char* name;                            // "" if there is one only
        const crdi_json *input_names, *output_names; // NULL: numbers
        int first_input, first_output;               // in the network
    } * list;
} units;

static crd_status loop_file_read_names(const reader* r, const node* n, int count,
                                       const crdi_json** out)
{
    *out = n->value;
    if (!n->value) { return CRD_OK; }
    if (!is_kind(n, CRDI_JSON_LIST) || list_size(n) != (size_t)count) {
        return FAIL(r, *n, "%s: expected a list of %d names", n->name, count);
    }
    for (const crdi_json* v = n->value->first; v; v = v->next) {
        const node one = as_node(v, n->name);
        if (!is_kind(&one, CRDI_JSON_TEXT)) { return FAIL(r, one, "%s: expected names", n->name); }
    }
    return CRD_OK;
}

static crd_status loop_file_read_unit(const reader* r, const node* n, const char* name, units* u)
{
    static const char* const keys[] = {"A", "B", "C", "D", "inputs", "outputs", NULL};
    const node A = loop_file_member(n, "A"), B = loop_file_member(n, "B"),
               C = loop_file_member(n, "C"), D = loop_file_member(n, "D");
    const node inputs = loop_file_member(n, "inputs"), outputs = loop_file_member(n, "outputs");
    crd_plant* b = &u->blocks[u->count];
    struct unit* names = &u->list[u->count++];
    crd_status st = CRD_OK;
    *b = (crd_plant){.states = -1, .inputs = -1, .outputs = -1};
    names->name = name;
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
    CRD_TRY(loop_file_read_names(r, &inputs, b->inputs, &names->input_names));
    CRD_TRY(loop_file_read_names(r, &outputs, b->outputs, &names->output_names));
fail:
    return st;
}

static crd_status read_units(const reader* r, const node* n, units* u)
{
    const bool one = loop_file_member(n, "A").value || loop_file_member(n, "B").value ||
                     loop_file_member(n, "C").value || loop_file_member(n, "D").value;
    const size_t size = !is_kind(n, CRDI_JSON_OBJECT) ? 0 : one ? 1 : (size_t)n->value->count;
    if (size < 1 || size > MOST_NUMBERS) {
        return FAIL(r, *n,
                    "units: expected {A: ..., B: ..., C: ..., D: ...}, or several of them "
                    "with names");
    }
    u->blocks = crdi_arena_new(&r->m->arena, size, sizeof *u->blocks);
    u->list = crdi_arena_new(&r->m->arena, size, sizeof *u->list);
    if (!u->blocks || !u->list) { return CRD_E_MEMORY; }
    if (one) { return loop_file_read_unit(r, n, "", u); }
    for (const crdi_json* v = n->value->first; v; v = v->next) {
        const node unit = as_node(v, v->key);
        const crd_status st = loop_file_read_unit(r, &unit, v->key, u);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status join_units(const reader* r, units* u)
{
    crd_plant* p = &r->m->whole;
    for (int i = 0; i < u->count; i++) {
        u->list[i].first_input = p->inputs;
        u->list[i].first_output = p->outputs;
        p->states += u->blocks[i].states;
        p->inputs += u->blocks[i].inputs;
        p->outputs += u->blocks[i].outputs;
    }
    if (p->states > MOST_NUMBERS || p->inputs > MOST_NUMBERS || p->outputs > MOST_NUMBERS) {
        return crdi_fail(r->ctx, CRD_E_FORMAT,
                         "%s: the units have %d states, %d inputs and %d outputs together, "
                         "expected at most %d of each",
                         r->file, p->states, p->inputs, p->outputs, MOST_NUMBERS);
    }
    return crd_plant_stack(&r->m->arena, u->blocks, u->count, p);
}

// "unit.name", "unit.2", "name" or 2 of a single unit; numbers from 1
static int find_port(const units* u, const char* text, bool input)
{
    for (int i = 0; i < u->count; i++) {
        const struct unit* x = &u->list[i];
        const size_t length = strlen(x->name);
        const char* port = text;
        if (length) {
            if (strncmp(text, x->name, length) != 0 || text[length] != '.') { continue; }
            port += length + 1;
        }
        const int ports = input ? u->blocks[i].inputs : u->blocks[i].outputs;
        const int first = input ? x->first_input : x->first_output;
        const crdi_json* names = input ? x->input_names : x->output_names;
        int64_t number;
        int k = 0;
        for (const crdi_json* v = names ? names->first : NULL; v; v = v->next, k++) {
            if (strcmp(v->text, port) == 0) { return first + k; }
        }
        if (crdi_parse_int64(port, strlen(port), &number) && number >= 1 && number <= ports) {
            return first + (int)number - 1;
        }
    }
    return -1;
}

static crd_status read_port(const reader* r, const node* n, const units* u, bool input, int* out)
{
    int64_t number;
    const char* text =
        is_kind(n, CRDI_JSON_TEXT) || whole_number(n, &number) ? n->value->text : NULL;
    *out = text ? find_port(u, text, input) : -1;
    if (*out >= 0) { return CRD_OK; }
    return FAIL(r, *n, "%s: %s%s%s is no %s of the units; expected unit.name or a number from 1",
                n->name, text ? "'" : "it", text ? text : "", text ? "'" : "",
                input ? "input" : "output");
}

static crd_status read_link(const reader* r, const node* n, const units* u, crd_plant_link* l)
{
    static const char* const keys[] = {"from",  "to",     "gain", "element", "latency",
                                       "delay", "jitter", "loss", "losses",  NULL};
    const node from = loop_file_member(n, "from"), to = loop_file_member(n, "to"),
               gain = loop_file_member(n, "gain"), element = loop_file_member(n, "element"),
               latency = loop_file_member(n, "latency"), delay = loop_file_member(n, "delay");
    int k = -1;
    crd_spread spread = r->spread;
    crd_status st = CRD_OK;
    CRD_TRY(check_keys(r, n, keys));
    CRD_TRY(read_port(r, &from, u, false, &l->from));
    CRD_TRY(read_port(r, &to, u, true, &l->to));
    l->gain = 1;
    if (gain.value) { CRD_TRY(read_number(r, &gain, &l->gain)); }
    if (l->gain == 0) { CRD_TRY(FAIL(r, gain, "gain: 0 would be no link; leave it out")); }
    if (latency.value) {
        spread.k_min = spread.k_max = -1;
        CRD_TRY(read_latency(r, &latency, r->m->loop.dT, &k, &spread));
    }
    CRD_TRY(read_spread(r, n, &spread));
    CRD_TRY(loop_file_add_element(r, &element, k, &spread, &l->element));
    if (delay.value) { CRD_TRY(loop_file_read_time(r, &delay, &l->delay)); }
fail:
    return st;
}

static crd_status loop_file_read_network(const reader* r, const node* root)
{
    static const char* const keys[] = {"loop",    "name",   "step", "units",  "links",
                                       "latency", "jitter", "loss", "losses", NULL};
    const node blocks = loop_file_member(root, "units"), links = loop_file_member(root, "links");
    units u = {0};
    crd_status st = CRD_OK;
    CRD_TRY(check_keys(r, root, keys));
    CRD_TRY(read_units(r, &blocks, &u));
    CRD_TRY(join_units(r, &u));
    const size_t size = list_size(&links);
    if (size < 1 || size > MOST_NUMBERS) {
        CRD_TRY(FAIL(r, links, "links: expected a list of {from: output, to: input, ...}"));
    }
    crd_plant_link* l = crdi_arena_new(&r->m->arena, size, sizeof *l);
    if (!l) { CRD_TRY(CRD_E_MEMORY); }
    r->m->whole.links = l;
    for (const crdi_json* v = links.value->first; v; v = v->next) {
        const node one = as_node(v, links.name);
        CRD_TRY(read_link(r, &one, &u, l++));
    }
    r->m->whole.link_count = (int)size;
fail:
    return st;
}

// ---- the file ----------------------------------------------------------------------------------

static crd_status read_loop(reader* r, const node* root)
{
    const node version = loop_file_member(root, "loop"), step = loop_file_member(root, "step"),
               latency = loop_file_member(root, "latency");
    crd_status st = CRD_OK;
    int64_t number = 0;
    if (!whole_number(&version, &number) || number != 1) {
        CRD_TRY(FAIL(r, version, "loop: expected 1, the version of the format"));
    }
    double* dT = &r->m->loop.dT;
    *dT = r->o->step;
    if (isnan(*dT)) {
        if (!step.value) {
            CRD_TRY(FAIL(r, *root, "expected step: the macro step, such as 1 ms; or --step"));
        }
        CRD_TRY(loop_file_read_time(r, &step, dT));
        if (!(*dT > 0)) { CRD_TRY(FAIL(r, step, "step: expected a time > 0")); }
    }
    if (latency.value) { CRD_TRY(read_latency(r, &latency, *dT, &r->latency, &r->spread)); }
    CRD_TRY(read_spread(r, root, &r->spread));
    r->m->varied = r->o->varied;
    r->m->exact = true;
    const bool transfers = loop_file_member(root, "transfers").value != NULL;
    if (!transfers && !loop_file_member(root, "units").value) {
        CRD_TRY(FAIL(r, *root, "expected transfers: [{num, den}, ...] or units: and links:"));
    }
    CRD_TRY(transfers ? read_transfer_loop(r, root) : loop_file_read_network(r, root));
    CRD_TRY(crd_loop_model_finish(r->m));
fail:
    return st;
}

crd_status crd_loop_parse(crd_context* ctx, const char* json, size_t length, const char* file,
                          const crd_loop_options* o, crd_loop_model* out)
{
    crd_status st = CRD_OK;
    crdi_json* root = NULL;
    crd_loop_model_init(out, ctx, file);
    const char* slash = strrchr(file, '/');
    reader r = {.ctx = ctx,
                .file = file,
                .folder =
                    crdi_arena_text(&out->arena, file, slash ? (size_t)(slash - file) + 1 : 0),
                .o = o,
                .m = out,
                .latency = -1,
                .spread = crd_spread_none()};
    if (!r.folder) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_json_parse(&out->arena, json, length,
                            (crdi_json_source){.file = file, .first_line = 1}, &root));
    const node top = as_node(root, "loop");
    if (!is_kind(&top, CRDI_JSON_OBJECT)) {
        CRD_TRY(FAIL(&r, top, "expected a mapping that begins with loop: 1"));
    }
    CRD_TRY(read_loop(&r, &top));
    return CRD_OK;
fail:
    crd_loop_model_clear(out);
    return st;
}
