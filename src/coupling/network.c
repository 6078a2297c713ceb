// Feedforward networks: forward pass, and the morphism from a linear algorithm.
#include "coupling/algorithm.h"
#include "coupling/networks.h"
#include "shared/base.h"
#include "shared/coupling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = CRD_NETWORK_NEURONS };

// u = b + W y. Four sums at a time do not wait for each other; each runs over y in order.
static void layer(int rows, int columns, const crd_real* restrict W, const crd_real* restrict b,
                  const crd_real* restrict y, crd_real* restrict u)
{
    int i = 0;
    for (; i + 4 <= rows; i += 4, W += 4 * columns) {
        crd_real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
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

static void bend(int n, crd_real alpha, crd_real* x)
{
    for (int j = 0; j < n; j++) {
        x[j] = x[j] >= 0 ? x[j] : alpha * x[j];
    }
}

double crd_network_eval(const crd_network* n, const crd_real* y)
{
    crd_real u[MOST], x[MOST];
    if (n->n1 > 0) {
        layer(n->n1, n->m, n->W1, n->b1, y, u);
        y = u;
    }
    layer(n->n2, crdi_network_columns(n), n->W2, n->b2, y, x);
    int last = n->n2;
    for (int h = 0; h < n->more; h++) {
        bend(last, n->alpha, x);
        memcpy(u, x, (size_t)last * sizeof *u);
        layer(n->n_more[h], last, n->W_more[h], n->b_more[h], u, x);
        last = n->n_more[h];
    }
    const crd_real alpha = n->alpha;
    crd_real out = n->b3;
    for (int j = 0; j < last; j++) {
        out += n->W3[j] * (x[j] >= 0 ? x[j] : alpha * x[j]);
    }
    return out;
}

// ---- shapes ------------------------------------------------------------------------------------

int crdi_network_last(const crd_network* n)
{
    return n->more > 0 ? n->n_more[n->more - 1] : n->n2;
}

int crdi_network_parts(const crd_network* n, crdi_network_part parts[CRDI_NETWORK_PARTS])
{
    static const char* const names[] = {"W3", "b3", "W4", "b4"}; // in descriptions, too
    int count = 0, before = n->n2;
    parts[count++] = (crdi_network_part){"W1", n->W1, n->n1 * n->m};
    parts[count++] = (crdi_network_part){"b1", n->b1, n->n1};
    parts[count++] = (crdi_network_part){"W2", n->W2, n->n2 * crdi_network_columns(n)};
    parts[count++] = (crdi_network_part){"b2", n->b2, n->n2};
    for (int h = 0; h < n->more; h++) {
        const int rows = n->n_more[h];
        parts[count++] = (crdi_network_part){names[2 * h], n->W_more[h], rows * before};
        parts[count++] = (crdi_network_part){names[2 * h + 1], n->b_more[h], rows};
        before = rows;
    }
    parts[count++] = (crdi_network_part){n->more ? "the output's W" : "W3", n->W3, before};
    parts[count++] = (crdi_network_part){n->more ? "the output's b" : "b3", &n->b3, 1};
    return count;
}

size_t crdi_network_weights(const crd_network* n)
{
    crdi_network_part parts[CRDI_NETWORK_PARTS];
    const int count = crdi_network_parts(n, parts);
    size_t sum = 0;
    for (int i = 0; i < count; i++) {
        sum += (size_t)parts[i].count;
    }
    return sum;
}

static bool is_alpha(crd_real alpha)
{
    return alpha > -1 && alpha <= 1;
}

static bool is_width(int n)
{
    return n >= 1 && n <= MOST;
}

bool crdi_network_has_shape(const crd_network* n)
{
    bool fine = n->m >= 1 && n->m <= CRD_TAPS_MAX && (n->n1 == 0 || is_width(n->n1)) &&
                is_width(n->n2) && n->more >= 0 && n->more <= CRD_NETWORK_LAYERS - 2 &&
                (n->n1 > 0 || n->more == 0);
    for (int h = 0; fine && h < n->more; h++) {
        fine = is_width(n->n_more[h]);
    }
    return fine;
}

bool crdi_network_same_shape(const crd_network* a, const crd_network* b)
{
    bool same = a->m == b->m && a->n1 == b->n1 && a->n2 == b->n2 && a->more == b->more;
    for (int h = 0; same && h < a->more; h++) {
        same = a->n_more[h] == b->n_more[h];
    }
    return same;
}

const char* crd_network_shape(const crd_network* n, char* out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "%d", n->m);
    const int widths[] = {n->n1, n->n2, n->n_more[0], n->n_more[1]};
    for (int h = 0; h < 2 + n->more && h < CRD_NETWORK_LAYERS && at < size; h++) {
        if (h > 0 || n->n1 > 0) { at += (size_t)snprintf(out + at, size - at, "-%d", widths[h]); }
    }
    if (at < size) { snprintf(out + at, size - at, "-1"); }
    return out;
}

void crdi_network_place(crd_network* n, const crd_real* weights)
{
    const int columns = crdi_network_columns(n);
    n->W1 = weights;
    n->b1 = n->W1 + n->n1 * n->m;
    n->W2 = n->b1 + n->n1;
    n->b2 = n->W2 + n->n2 * columns;
    const crd_real* next = n->b2 + n->n2;
    for (int h = 0, before = n->n2; h < n->more; before = n->n_more[h], h++) {
        n->W_more[h] = next;
        n->b_more[h] = next + n->n_more[h] * before;
        next = n->b_more[h] + n->n_more[h];
    }
    n->W3 = next;
    n->b3 = n->W3[crdi_network_last(n)];
}

void crdi_network_flatten(const crd_network* n, crd_real* weights)
{
    crdi_network_part parts[CRDI_NETWORK_PARTS];
    const int count = crdi_network_parts(n, parts);
    for (int i = 0; i < count; i++) {
        if (parts[i].count > 0) {
            memcpy(weights, parts[i].w, (size_t)parts[i].count * sizeof *weights);
        }
        weights += parts[i].count;
    }
}

static crd_status check_shape(crd_context* ctx, const crd_network* n)
{
    if (!crdi_network_has_shape(n)) {
        char shape[80];
        return crdi_fail(ctx, CRD_E_RANGE,
                         "coupling: a network of %s, expected 1 .. %d inputs and 1 .. %d layers of "
                         "1 .. %d",
                         crd_network_shape(n, shape, sizeof shape), CRD_TAPS_MAX,
                         CRD_NETWORK_LAYERS, MOST);
    }
    if (!is_alpha(n->alpha)) {
        return crdi_fail(ctx, CRD_E_RANGE, "coupling: alpha = %g, expected above -1 and up to 1",
                         n->alpha);
    }
    return CRD_OK;
}

static crd_status check_finite(crd_context* ctx, const char* name, const crd_real* w, int n)
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

bool crdi_network_is_sane(const crd_network* n)
{
    crdi_network_part parts[CRDI_NETWORK_PARTS];
    const int count = crdi_network_parts(n, parts);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < parts[i].count; j++) {
            if (!parts[i].w || !isfinite(parts[i].w[j])) { return false; }
        }
    }
    return is_alpha(n->alpha);
}

crd_status crdi_network_check(crd_context* ctx, const crd_network* n)
{
    crd_status st = CRD_OK;
    crdi_network_part parts[CRDI_NETWORK_PARTS];
    CRD_TRY(check_shape(ctx, n));
    const int count = crdi_network_parts(n, parts);
    for (int i = 0; i < count; i++) {
        CRD_TRY(check_finite(ctx, parts[i].name, parts[i].w, parts[i].count));
    }
fail:
    return st;
}

crd_status crdi_network_copy(crd_context* ctx, const crd_network* from, size_t room,
                             crd_network* out)
{
    const crd_status st = crdi_network_check(ctx, from);
    if (st < 0) { return st; }
    const size_t own = crdi_network_weights(from);
    crd_real* w = crdi_new_array(ctx, room > own ? room : own, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    crdi_network_flatten(from, w);
    *out = *from;
    crdi_network_place(out, w);
    return CRD_OK;
}

void crdi_network_set(crd_network* to, const crd_network* from)
{
    crd_real* w = (crd_real*)to->W1; // one block
    crdi_network_flatten(from, w);
    *to = *from;
    crdi_network_place(to, w);
}

// ---- morphism ----------------------------------------------------------------------------------

// Leaky ReLUs s in pairs carry a value: x = (s(x) - s(-x)) / (1 + alpha). Baumann 2024, eq. 24, has
// a plus there, which gives a multiple of |x|. Of an odd number the last one is idle. What a layer
// behind them reads: neuron j of it weighs the pairs differently, so that neurons do not train
// alike, 1 in sum.
static void read_pairs(int n, crd_real alpha, int j, crd_real* row)
{
    const int pairs = n / 2;
    const crd_real total = 0.5 * pairs * (pairs + 1);
    for (int i = 0; i < 2 * pairs; i++) {
        const crd_real share = j < 0 ? 1.0 / pairs : ((i / 2 + j / 2) % pairs + 1) / total;
        row[i] = (i % 2 ? -1 : 1) * share / (1 + alpha);
    }
    if (pairs == 0) { row[0] = 1; } // alpha = 1: it is linear by itself
}

// Pairs of neurons that see the input itself have different sizes, which the output has to know.
static crd_real pair_size(int j, int pairs)
{
    const int number = j / 2 + 1;
    return 2.0 * number / (pairs + 1.0);
}

// Neuron j of the first layer of leaky ReLUs: a itself, or neurons that all have it, mixed.
static void read_linear(const crd_network* n, int j, const crd_real* a, crd_real* row)
{
    const int sign = j % 2 ? -1 : 1, pairs = n->n2 / 2;
    if (n->n1 == 0) {
        const crd_real size = pairs > 0 ? pair_size(j, pairs) : 1;
        for (int i = 0; i < n->m; i++) {
            row[i] = sign * size * a[i];
        }
        return;
    }
    const crd_real total = 0.5 * n->n1 * (n->n1 + 1);
    for (int i = 0; i < n->n1; i++) {
        const int place = (j % 2 ? n->n1 - 1 - i : i) + j / 2;
        row[i] = sign * ((place % n->n1 + 1) / total);
    }
}

bool crdi_network_make_linear(crd_network* n, const crd_real* a, crd_real b, crd_real* weights)
{
    int before = n->n2;
    bool possible = n->alpha == 1 || n->n2 >= 2;
    for (int h = 0; h < n->more; h++) {
        possible = possible && (n->alpha == 1 || n->n_more[h] >= 2);
    }
    if (!possible) { return false; }
    memset(weights, 0, crdi_network_weights(n) * sizeof *weights);
    crdi_network_place(n, weights);
    for (int i = 0; i < n->n1; i++) {
        memcpy((crd_real*)n->W1 + i * n->m, a, (size_t)n->m * sizeof *a);
    }
    for (int j = 0; j < n->n2; j++) {
        read_linear(n, j, a, (crd_real*)n->W2 + j * crdi_network_columns(n));
    }
    for (int h = 0; h < n->more; before = n->n_more[h], h++) {
        for (int j = 0; j < n->n_more[h]; j++) {
            crd_real* row = (crd_real*)n->W_more[h] + j * before;
            read_pairs(before, n->alpha, j, row);
            for (int i = 0; i < before && j % 2; i++) {
                row[i] = -row[i];
            }
        }
    }
    crd_real* W3 = (crd_real*)n->W3;
    read_pairs(before, n->alpha, -1, W3);
    for (int i = 0; n->n1 == 0 && i < 2 * (before / 2); i++) {
        W3[i] /= pair_size(i, before / 2);
    }
    W3[before] = n->b3 = b;
    return true;
}

crd_status crd_network_morph_to(crd_context* ctx, const crd_linear* l, double alpha,
                                const int* neurons, int layers, crd_network* out)
{
    crd_status st = CRD_OK;
    crd_network n = {.m = l->m, .alpha = alpha};
    if (layers < 1 || layers > CRD_NETWORK_LAYERS) {
        return crdi_fail(ctx, CRD_E_RANGE, "coupling: %d hidden layers, expected 1 .. %d", layers,
                         CRD_NETWORK_LAYERS);
    }
    n.n1 = layers == 1 ? 0 : neurons[0] > 0 ? neurons[0] : -1;
    n.n2 = neurons[layers > 1];
    n.more = layers > 2 ? layers - 2 : 0;
    for (int h = 0; h < n.more; h++) {
        n.n_more[h] = neurons[h + 2];
    }
    CRD_TRY(check_shape(ctx, &n));
    CRD_TRY(check_finite(ctx, "a", l->a, l->m));
    CRD_TRY(check_finite(ctx, "b", &(crd_real){(crd_real)l->b}, 1));
    for (int h = layers > 1; h < layers; h++) {
        if (neurons[h] % 2 == 0) { continue; }
        return crdi_fail(ctx, CRD_E_RANGE,
                         "coupling: %d leaky ReLUs, expected an even number: two of them make a "
                         "linear neuron",
                         neurons[h]);
    }
    crd_real* w = crdi_new_array(ctx, crdi_network_weights(&n), sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    (void)crdi_network_make_linear(&n, l->a, (crd_real)l->b, w);
    *out = n;
fail:
    return st;
}

crd_status crd_network_morph(crd_context* ctx, const crd_linear* l, double alpha, crd_network* out)
{
    static const int neurons[] = {CRD_NETWORK_N1, CRD_NETWORK_N2};
    return crd_network_morph_to(ctx, l, alpha, neurons, 2, out);
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

static crd_real network_predict(void* self, const crd_real* y, int k)
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

#ifndef CRDI_SMALL
// ---- in descriptions ---------------------------------------------------------------------------

// (rows x columns) by rows; columns 0: as the first row has.
static crd_status network_read_rows(crdi_element_reader* r, const crdi_json* n, int* rows,
                                    int* columns, crd_real** out)
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
    crd_real* w = crdi_arena_new(r->arena, (size_t)*rows * (size_t)*columns, sizeof *w);
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
                            const crd_real** out)
{
    crd_real* w = crdi_arena_new(r->arena, (size_t)count, sizeof *w);
    if (!w) { return CRD_E_MEMORY; }
    *out = w;
    return n ? crdi_element_read_numbers(r, n, count, count, w) : CRD_OK;
}

// Hidden layers are W1, W2 ... by rows; the W behind them is a list, that of the output.
static crd_status read_layers(crdi_element_reader* r, const crdi_json* n, crd_network* net)
{
    static const char* const W[] = {"W1", "W2", "W3", "W4", "W5"};
    static const char* const b[] = {"b1", "b2", "b3", "b4", "b5"};
    const crd_real *rows[CRD_NETWORK_LAYERS], *biases[CRD_NETWORK_LAYERS];
    int widths[CRD_NETWORK_LAYERS], layers = 0, before = 0;
    crd_status st = CRD_OK;
    for (;; layers++) {
        const crdi_json* w = crdi_element_member(n, W[layers]);
        if (!w) {
            return crdi_element_fail(r, n, CRD_E_FORMAT, "the key '%s' is missing in the network",
                                     W[layers]);
        }
        const bool is_list = w->kind == CRDI_JSON_LIST && w->count > 0;
        if (layers == CRD_NETWORK_LAYERS ||
            (layers > 0 && is_list && w->first->kind == CRDI_JSON_NUMBER)) {
            break;
        }
        crd_real* weights = NULL;
        CRD_TRY(network_read_rows(r, w, &widths[layers], &before, &weights));
        rows[layers] = weights;
        if (layers == 0) { net->m = before; }
        before = widths[layers];
        CRD_TRY(read_bias(r, crdi_element_member(n, b[layers]), before, &biases[layers]));
    }
    for (int h = layers + 1; h <= CRD_NETWORK_LAYERS; h++) {
        const crdi_json *w = crdi_element_member(n, W[h]), *c = crdi_element_member(n, b[h]);
        if (w || c) {
            return crdi_element_fail(r, w ? w : c, CRD_E_FORMAT,
                                     "%s is the list of the output, expected nothing behind it",
                                     W[layers]);
        }
    }
    CRD_TRY(read_bias(r, crdi_element_member(n, W[layers]), before, &net->W3));
    const crdi_json* b3 = crdi_element_member(n, b[layers]);
    if (b3) { CRD_TRY(crdi_element_read_number(r, b3, CRDI_ANY, &net->b3)); }
    const int first = layers > 1;
    if (first) {
        net->n1 = widths[0];
        net->W1 = rows[0];
        net->b1 = biases[0];
    }
    net->n2 = widths[first];
    net->W2 = rows[first];
    net->b2 = biases[first];
    net->more = layers > 2 ? layers - 2 : 0;
    for (int h = 0; h < net->more; h++) {
        net->n_more[h] = widths[h + 2];
        net->W_more[h] = rows[h + 2];
        net->b_more[h] = biases[h + 2];
    }
fail:
    return st;
}

static crd_status network_read_network(crdi_element_reader* r, const crdi_json* n)
{
    static const char* const names[] = {"alpha", "W1", "b1", "W2", "b2", "W3",
                                        "b3",    "W4", "b4", "W5", "b5", NULL};
    crd_status st = CRD_OK;
    CRD_TRY(crdi_element_check_members(
        r, n, "a mapping with W1, W2, W3 and, if they are not 0, b1, b2, b3", names));
    const crdi_json* alpha = crdi_element_member(n, "alpha");
    crd_network* net = crdi_arena_new(r->arena, 1, sizeof *net);
    if (!net) { return CRD_E_MEMORY; }
    CRD_TRY(read_layers(r, n, net));
    net->alpha = 0.01;
    if (alpha) { CRD_TRY(crdi_element_read_number(r, alpha, CRDI_ANY, &net->alpha)); }
    CRD_TRY(crdi_element_placed(r, n, crdi_network_check(r->ctx, net)));
    r->e->options.network = net;
fail:
    return st;
}

// Neurons of the hidden layers.
static crd_status read_neurons(crdi_element_reader* r, const crdi_json* n,
                               int shape[CRD_NETWORK_LAYERS], int* layers)
{
    crd_real x[CRD_NETWORK_LAYERS];
    const crd_status st = crdi_element_read_numbers(r, n, 1, CRD_NETWORK_LAYERS, x);
    if (st < 0) { return st; }
    *layers = n->count;
    for (int i = 0; i < n->count; i++) {
        if (!(x[i] >= 1 && x[i] <= MOST && floor(x[i]) == x[i])) {
            return crdi_element_fail(r, n, CRD_E_RANGE,
                                     "%g neurons, expected whole numbers from 1 to %d such as "
                                     "[4, 2], those behind the first one even",
                                     x[i], MOST);
        }
        shape[i] = (int)x[i];
    }
    return CRD_OK;
}

// The network that is the linear algorithm `start` for the known latency.
static crd_status make_network(crdi_element_reader* r, const crdi_json* n, const crdi_json* neurons)
{
    int shape[CRD_NETWORK_LAYERS] = {CRD_NETWORK_N1, CRD_NETWORK_N2}, layers = 2;
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
    if (neurons) { CRD_TRY(read_neurons(r, neurons, shape, &layers)); }
    CRD_TRY(crdi_element_placed(r, n, crd_network_morph_to(r->ctx, &l, 0.01, shape, layers, &net)));
    crd_real* w = crdi_arena_new(r->arena, crdi_network_weights(&net), sizeof *w);
    crd_network* kept = w ? crdi_arena_new(r->arena, 1, sizeof *kept) : NULL;
    CRD_TRY(kept ? CRD_OK : CRD_E_MEMORY);
    crdi_network_flatten(&net, w);
    *kept = net;
    crdi_network_place(kept, w);
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
    int at = 1, before = n->m;
    const int widths[] = {n->n1, n->n2, n->n_more[0], n->n_more[1]};
    const crd_real* const W[] = {n->W1, n->W2, n->W_more[0], n->W_more[1]};
    const crd_real* const b[] = {n->b1, n->b2, n->b_more[0], n->b_more[1]};
    char key[16];
    for (int h = n->n1 == 0; h < 2 + n->more; before = widths[h], h++, at++) {
        snprintf(key, sizeof key, "W%d", at);
        crdi_element_put_rows(&inner, key, W[h], widths[h], before);
        key[0] = 'b';
        crdi_element_put_list(&inner, key, b[h], widths[h]);
    }
    snprintf(key, sizeof key, "W%d", at);
    crdi_element_put_list(&inner, key, n->W3, before);
    key[0] = 'b';
    crdi_element_put_number(&inner, key, n->b3);
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
#endif

const crdi_algorithm crdi_algorithm_network = {
    .name = "network",
    CRDI_DESCRIBED(.keys = keys, .complete = network_complete),
    .needs_keys = true,
    .check_options = network_check_options,
    .size = sizeof(crdi_networks),
    .init = network_init,
    .clear = network_clear,
    .forget = network_forget,
    .predict = network_predict,
    .reach = network_count_taps,
    .memory = network_count_taps};
