// Feedforward networks: forward pass, and the morphism from a linear algorithm.
#include "coupling/algorithm.h"
#include "coupling/networks.h"
#include "shared/base.h"

#include <math.h>
#include <string.h>

enum { N1_MAX = 64, N2_MAX = 64 };

// u = b + W y. Four sums at a time do not wait for each other; each runs over y in order.
static void layer(int rows, int columns, const double* restrict W, const double* restrict b,
                  const double* restrict y, double* restrict u)
{
    int i = 0;
    for (; i + 4 <= rows; i += 4, W += 4 * columns) {
        double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (int j = 0; j < columns; j++) {
            s0 += W[j] * y[j];
            s1 += W[columns + j] * y[j];
            s2 += W[2 * columns + j] * y[j];
            s3 += W[3 * columns + j] * y[j];
        }
        u[i] = b[i] + s0;
        u[i + 1] = b[i + 1] + s1;
        u[i + 2] = b[i + 2] + s2;
        u[i + 3] = b[i + 3] + s3;
    }
    for (; i < rows; i++, W += columns) {
        u[i] = b[i] + crdi_dot(columns, W, y);
    }
}

double crd_network_eval(const crd_network* n, const double* y)
{
    double u[N1_MAX], x[N2_MAX];
    layer(n->n1, n->m, n->W1, n->b1, y, u);
    layer(n->n2, n->n1, n->W2, n->b2, u, x);
    double out = n->b3;
    for (int j = 0; j < n->n2; j++) {
        out += n->W3[j] * (x[j] >= 0 ? x[j] : n->alpha * x[j]);
    }
    return out;
}

static double* network_allocate(crd_context* ctx, crd_network* n)
{
    const size_t m = (size_t)n->m, n1 = (size_t)n->n1, n2 = (size_t)n->n2;
    double* w = crdi_new_array(ctx, n1 * m + n1 + n2 * n1 + n2 + n2, sizeof *w);
    if (!w) { return NULL; }
    n->W1 = w;
    n->b1 = n->W1 + n1 * m;
    n->W2 = n->b1 + n1;
    n->b2 = n->W2 + n2 * n1;
    n->W3 = n->b2 + n2;
    return w;
}

static bool is_alpha(double alpha)
{
    return alpha > -1 && alpha <= 1;
}

static crd_status check_shape(crd_context* ctx, const crd_network* n)
{
    if (n->m < 1 || n->m > CRD_TAPS_MAX || n->n1 < 1 || n->n1 > N1_MAX || n->n2 < 1 ||
        n->n2 > N2_MAX) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "coupling: a network of %d-%d-%d-1, expected 1 .. %d inputs and layers of "
                         "1 .. %d",
                         n->m, n->n1, n->n2, CRD_TAPS_MAX, N1_MAX);
    }
    if (!is_alpha(n->alpha)) {
        return crdi_fail(ctx, CRD_E_RANGE, "coupling: alpha = %g, expected above -1 and up to 1",
                         n->alpha);
    }
    return CRD_OK;
}

static crd_status check_finite(crd_context* ctx, const char* name, const double* w, int n)
{
    for (int i = 0; i < n; i++) {
        if (!isfinite(w[i])) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "coupling: %s[%d] of the network = %g, expected a finite number", name,
                             i, w[i]);
        }
    }
    return CRD_OK;
}

typedef struct part {
    const char* name;
    const double* w;
    int count;
} part;

enum { PARTS = 6, IN_BLOCK = 5 }; // b3 stands in the struct

static void list_parts(const crd_network* n, part parts[PARTS])
{
    parts[0] = (part){"W1", n->W1, n->n1 * n->m};
    parts[1] = (part){"b1", n->b1, n->n1};
    parts[2] = (part){"W2", n->W2, n->n2 * n->n1};
    parts[3] = (part){"b2", n->b2, n->n2};
    parts[4] = (part){"W3", n->W3, n->n2};
    parts[5] = (part){"b3", &n->b3, 1};
}

bool crdi_network_is_sane(const crd_network* n)
{
    part parts[PARTS];
    list_parts(n, parts);
    for (int i = 0; i < PARTS; i++) {
        for (int j = 0; j < parts[i].count; j++) {
            if (!parts[i].w || !isfinite(parts[i].w[j])) { return false; }
        }
    }
    return is_alpha(n->alpha);
}

void crdi_network_set(crd_network* to, const crd_network* from)
{
    part parts[PARTS];
    list_parts(from, parts);
    double* w = (double*)to->W1; // one block
    for (int i = 0; i < IN_BLOCK; i++) {
        memcpy(w, parts[i].w, (size_t)parts[i].count * sizeof *w);
        w += parts[i].count;
    }
    to->b3 = from->b3;
    to->alpha = from->alpha;
}

crd_status crdi_network_copy(crd_context* ctx, const crd_network* from, crd_network* out)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_shape(ctx, from));
    part parts[PARTS];
    list_parts(from, parts);
    for (int i = 0; i < PARTS; i++) {
        CRD_TRY(check_finite(ctx, parts[i].name, parts[i].w, parts[i].count));
    }
    crd_network n = *from;
    if (!network_allocate(ctx, &n)) { return CRD_E_MEMORY; }
    crdi_network_set(&n, from);
    *out = n;
fail:
    return st;
}

// x = (s(x) - s(-x)) / (1 + alpha) for the leaky ReLU s: two neurons make a linear one. Baumann
// 2024, eq. 24, has a plus there, which gives a multiple of |x|.
crd_status crd_network_morph_to(crd_context* ctx, const crd_linear* l, double alpha, int n1, int n2,
                                crd_network* out)
{
    crd_network n = {.m = l->m, .n1 = n1, .n2 = n2, .alpha = alpha};
    crd_status st = CRD_OK;
    CRD_TRY(check_shape(ctx, &n));
    CRD_TRY(check_finite(ctx, "a", l->a, l->m));
    if (n2 % 2) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "coupling: %d leaky ReLUs, expected an even number: two of them make a "
                         "linear neuron",
                         n2);
    }
    double* w = network_allocate(ctx, &n);
    if (!w) { return CRD_E_MEMORY; }
    double* W2 = w + n1 * l->m + n1;
    double* W3 = W2 + n2 * n1 + n2;
    const double total = 0.5 * n1 * (n1 + 1); // neurons that differ do not train alike
    for (int i = 0; i < n1; i++) {
        memcpy(&w[i * l->m], l->a, (size_t)l->m * sizeof *w);
        for (int j = 0; j < n2; j++) {
            const int place = (j % 2 ? n1 - 1 - i : i) + j / 2;
            W2[j * n1 + i] = (j % 2 ? -1 : 1) * ((place % n1 + 1) / total);
        }
    }
    for (int j = 0; j < n2; j++) {
        W3[j] = (j % 2 ? -1 : 1) / ((1 + alpha) * (0.5 * n2));
    }
    *out = n;
fail:
    return st;
}

crd_status crd_network_morph(crd_context* ctx, const crd_linear* l, double alpha, crd_network* out)
{
    return crd_network_morph_to(ctx, l, alpha, CRD_NETWORK_N1, CRD_NETWORK_N2, out);
}

void crd_network_clear(crd_context* ctx, crd_network* n)
{
    crd_free(ctx, (void*)n->W1); // one block
    *n = (crd_network){0};
}

// ---- as an algorithm ---------------------------------------------------------------------------

static crd_status network_init(void* self, crd_context* ctx, const crd_coupling_options* o)
{
    return crdi_networks_init(self, ctx, o->network, o->k_max);
}

static void network_clear(void* self, crd_context* ctx)
{
    crdi_networks_clear(self, ctx);
}

static void network_forget(void* self)
{
    crdi_networks_forget(self);
}

static double network_predict(void* self, const double* y, int k)
{
    (void)k;
    const crdi_networks* x = self;
    return crd_network_eval(&x->slot[x->in_use], y);
}

static int network_count_taps(const void* self)
{
    return ((const crdi_networks*)self)->slot[0].m;
}

static crd_status network_check_options(crd_context* ctx, const crd_coupling_options* o)
{
    return o->network ? CRD_OK : crdi_fail(ctx, CRD_E_RANGE, "coupling: no network, expected one");
}

// ---- in descriptions ---------------------------------------------------------------------------

// (rows x columns) by rows; columns 0: as the first row has.
static crd_status network_read_rows(crdi_element_reader* r, const crdi_json* n, int* rows,
                                    int* columns, double** out)
{
    const char* what = "a list of rows such as [[1, 0], [0, 1]]";
    if (n->kind != CRDI_JSON_LIST || n->count == 0 || n->first->kind != CRDI_JSON_LIST ||
        n->first->count == 0) {
        return crdi_element_expected(r, n, what);
    }
    *rows = n->count;
    if (*columns == 0) { *columns = n->first->count; }
    for (const crdi_json* m = n->first; m; m = m->next) { // no room for what is not there
        if (m->kind == CRDI_JSON_LIST && m->count != *columns) {
            return crdi_json_fail(r->ctx, r->file, m->line, CRD_E_RANGE,
                                  "%s: a row of %d numbers, expected %d", n->key, m->count,
                                  *columns);
        }
        if (m->kind != CRDI_JSON_LIST) { return crdi_element_expected(r, n, what); }
    }
    double* w = crdi_arena_new(r->arena, (size_t)*rows * (size_t)*columns, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    *out = w;
    for (const crdi_json* m = n->first; m; m = m->next, w += *columns) {
        const crd_status st = crdi_element_read_numbers(r, m, *columns, *columns, w);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// A vector that may be missing: zeros then.
static crd_status read_bias(crdi_element_reader* r, const crdi_json* n, int count,
                            const double** out)
{
    double* w = crdi_arena_new(r->arena, (size_t)count, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    *out = w;
    return n ? crdi_element_read_numbers(r, n, count, count, w) : CRD_OK;
}

static crd_status network_check_network(crdi_element_reader* r, const crdi_json* n,
                                        const crd_network* net)
{
    crd_network copy;
    const crd_status st = crdi_network_copy(r->ctx, net, &copy);
    if (st >= 0) { crd_network_clear(r->ctx, &copy); }
    return crdi_element_placed(r, n, st);
}

static crd_status network_read_network(crdi_element_reader* r, const crdi_json* n)
{
    static const char* const names[] = {"alpha", "W1", "b1", "W2", "b2", "W3", "b3", NULL};
    crd_status st = CRD_OK;
    CRD_TRY(crdi_element_check_members(
        r, n, "a mapping with W1, W2, W3 and, if they are not 0, b1, b2, b3", names));
    const crdi_json *W1 = crdi_element_member(n, "W1"), *W2 = crdi_element_member(n, "W2"),
                    *W3 = crdi_element_member(n, "W3");
    const crdi_json *alpha = crdi_element_member(n, "alpha"), *b3 = crdi_element_member(n, "b3");
    if (!W1 || !W2 || !W3) {
        return crdi_element_fail(r, n, CRD_E_FORMAT, "the key '%s' is missing in the network",
                                 !W1   ? "W1"
                                 : !W2 ? "W2"
                                       : "W3");
    }
    crd_network* net = crdi_arena_new(r->arena, 1, sizeof *net);
    if (!net) { return CRD_E_MEMORY; }
    double *w1 = NULL, *w2 = NULL;
    int n1 = 0;
    CRD_TRY(network_read_rows(r, W1, &net->n1, &net->m, &w1));
    n1 = net->n1;
    CRD_TRY(network_read_rows(r, W2, &net->n2, &n1, &w2));
    net->W1 = w1;
    net->W2 = w2;
    CRD_TRY(read_bias(r, W3, net->n2, &net->W3));
    CRD_TRY(read_bias(r, crdi_element_member(n, "b1"), net->n1, &net->b1));
    CRD_TRY(read_bias(r, crdi_element_member(n, "b2"), net->n2, &net->b2));
    net->alpha = 0.01;
    if (alpha) { CRD_TRY(crdi_element_read_number(r, alpha, CRDI_ANY, &net->alpha)); }
    if (b3) { CRD_TRY(crdi_element_read_number(r, b3, CRDI_ANY, &net->b3)); }
    CRD_TRY(network_check_network(r, n, net));
    r->e->options.network = net;
fail:
    return st;
}

// Linear neurons, and leaky ReLUs behind them.
static crd_status read_neurons(crdi_element_reader* r, const crdi_json* n, int shape[2])
{
    double x[2];
    const crd_status st = crdi_element_read_numbers(r, n, 2, 2, x);
    if (st < 0) { return st; }
    for (int i = 0; i < 2; i++) {
        if (!(x[i] >= 1 && x[i] <= N1_MAX && floor(x[i]) == x[i])) {
            return crdi_element_fail(r, n, CRD_E_RANGE,
                                     "%g neurons, expected whole numbers from 1 to %d such as "
                                     "[4, 2], the second one even",
                                     x[i], N1_MAX);
        }
        shape[i] = (int)x[i];
    }
    return CRD_OK;
}

// The network that is the linear algorithm `start` for the known latency.
static crd_status make_network(crdi_element_reader* r, const crdi_json* n, const crdi_json* neurons)
{
    int shape[2] = {CRD_NETWORK_N1, CRD_NETWORK_N2};
    crd_status st = CRD_OK;
    crd_element* e = r->e;
    crd_element start;
    crd_linear l = {0};
    crd_network net = {0};
    CRD_TRY(crdi_element_read_nested(r, n, &start));
    const int k = crdi_element_steps(e);
    if (k < 0) {
        return crdi_element_fail(
            r, n, CRD_E_FORMAT,
            "a network is made for one latency, expected the key 'latency' in steps "
            "too%s",
            isnan(e->latency) ? "" : ", or 'step' beside it");
    }
    if (start.bands_given && isnan(e->step)) {
        return crdi_element_fail(r, n, CRD_E_FORMAT,
                                 "bands in rad/s need the key 'step' of the element");
    }
    CRD_TRY(crdi_element_placed(r, n, crd_element_linear(&start, e->step, k, &l)));
    if (neurons) { CRD_TRY(read_neurons(r, neurons, shape)); }
    CRD_TRY(crdi_element_placed(r, n,
                                crd_network_morph_to(r->ctx, &l, 0.01, shape[0], shape[1], &net)));
    const size_t m = (size_t)net.m, n1 = (size_t)net.n1, n2 = (size_t)net.n2;
    const size_t count = n1 * m + n1 + n2 * n1 + n2 + n2;
    double* w = crdi_arena_new(r->arena, count, sizeof *w);
    crd_network* kept = w ? crdi_arena_new(r->arena, 1, sizeof *kept) : NULL;
    CRD_TRY(kept ? CRD_OK : CRD_E_MEMORY);
    memcpy(w, net.W1, count * sizeof *w); // one block
    *kept = net;
    kept->W1 = w;
    kept->b1 = kept->W1 + n1 * m;
    kept->W2 = kept->b1 + n1;
    kept->b2 = kept->W2 + n2 * n1;
    kept->W3 = kept->b2 + n2;
    e->options.network = kept;
fail:
    crd_linear_clear(r->ctx, &l);
    crd_network_clear(r->ctx, &net);
    return st;
}

static crd_status network_complete(crdi_element_reader* r, const crdi_json* n)
{
    const crdi_json *start = crdi_element_member(n, "start"),
                    *network = crdi_element_member(n, "network");
    if (!start && !network) {
        return crdi_element_fail(
            r, n, CRD_E_FORMAT,
            "the algorithm network needs the key 'network' with its weights, or 'start' "
            "with a linear algorithm that it begins as");
    }
    if (start && network) {
        return crdi_element_fail(r, start, CRD_E_FORMAT,
                                 "'start' and 'network', expected one of them");
    }
    const crdi_json* neurons = crdi_element_member(n, "neurons");
    if (neurons && !start) {
        return crdi_element_fail(
            r, neurons, CRD_E_FORMAT,
            "the shape of 'network' is that of its weights, expected 'neurons' "
            "beside 'start' only");
    }
    return start ? make_network(r, start, neurons) : CRD_OK;
}

static crd_status read_learn(crdi_element_reader* r, const crdi_json* n)
{
    const char* what = "the address of a server, unix:PATH or tcp:ADDRESS:PORT";
    const char* text = NULL;
    const crd_status st = crdi_element_read_text(r, n, what, &text);
    if (st < 0) { return st; }
    bool fine = strncmp(text, "unix:", 5) == 0 && text[5];
    if (strncmp(text, "tcp:", 4) == 0) {
        const char* colon = strrchr(text + 4, ':');
        int64_t port = 0;
        fine = colon && colon > text + 4 && crdi_parse_int64(colon + 1, strlen(colon + 1), &port) &&
               port > 0 && port < 65536;
    }
    if (!fine) { return crdi_element_expected(r, n, what); }
    r->e->learn_server = text;
    return CRD_OK;
}

static void write_network(crdi_element_writer* w, const crd_element* e)
{
    const crd_network* n = e->options.network;
    crdi_element_put_key(w, "network");
    crdi_text_put(w->out, "{", 1);
    crdi_element_writer inner = {w->out, false};
    crdi_element_put_number(&inner, "alpha", n->alpha);
    crdi_element_put_rows(&inner, "W1", n->W1, n->n1, n->m);
    crdi_element_put_list(&inner, "b1", n->b1, n->n1);
    crdi_element_put_rows(&inner, "W2", n->W2, n->n2, n->n1);
    crdi_element_put_list(&inner, "b2", n->b2, n->n2);
    crdi_element_put_list(&inner, "W3", n->W3, n->n2);
    crdi_element_put_number(&inner, "b3", n->b3);
    crdi_text_put(w->out, "}", 1);
}

static const crdi_element_option keys[] = {
    {"any-gain", CRDI_ELEMENT_BOOL, CRDI_ELEMENT_FIELD(any_gain)},
    {"network", .read = network_read_network, .write = write_network},
    {.name = "start"},   // by `complete`
    {.name = "neurons"}, // the same
    {"learn", .read = read_learn},
    {0},
};

const crdi_algorithm crdi_algorithm_network = {.name = "network",
                                               .keys = keys,
                                               .needs_keys = true,
                                               .complete = network_complete,
                                               .check_options = network_check_options,
                                               .size = sizeof(crdi_networks),
                                               .init = network_init,
                                               .clear = network_clear,
                                               .forget = network_forget,
                                               .predict = network_predict,
                                               .reach = network_count_taps,
                                               .memory = network_count_taps};
