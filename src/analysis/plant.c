// Structure of a network of units: which loops it has, and what is left when direct links are
// closed.
#include <string.h>

#include "analysis/loop.h"

#include "shared/num.h"

// ---- one loop or several -----------------------------------------------------------------------

// Which outputs input u acts on, through states or directly: marks `outputs` (outputs).
static void mark_reached_outputs(const crd_plant* w, int u, bool* outputs, bool* seen,
                                 int32_t* queue)
{
    int head = 0, tail = 0;
    memset(seen, 0, (size_t)w->states * sizeof *seen);
    for (int i = 0; i < w->states; i++) {
        if (w->B[i * w->inputs + u] != 0) {
            seen[i] = true;
            queue[tail++] = i;
        }
    }
    while (head < tail) {
        const int from = queue[head++];
        for (int i = 0; i < w->states; i++) {
            if (!seen[i] && w->A[i * w->states + from] != 0) {
                seen[i] = true;
                queue[tail++] = i;
            }
        }
    }
    for (int y = 0; y < w->outputs; y++) {
        outputs[y] = w->D && w->D[y * w->inputs + u] != 0;
        for (int i = 0; i < w->states && !outputs[y]; i++) {
            outputs[y] = seen[i] && w->C[y * w->states + i] != 0;
        }
    }
}

// Links as nodes, an edge where one acts on the next: is there a circle without link `removed`?
static bool circular(int n, const bool* edge, int removed, bool* gone)
{
    memset(gone, 0, (size_t)n * sizeof *gone);
    int left = n;
    if (removed >= 0) {
        gone[removed] = true;
        left--;
    }
    for (bool found = true; found;) { // take away what nothing acts on
        found = false;
        for (int j = 0; j < n; j++) {
            bool acted_on = false;
            for (int i = 0; i < n && !gone[j]; i++) {
                acted_on = acted_on || (!gone[i] && edge[i * n + j]);
            }
            if (!gone[j] && !acted_on) {
                gone[j] = found = true;
                left--;
            }
        }
    }
    return left > 0;
}

crd_status crdi_one_loop(crd_arena* arena, const crd_plant* w, bool* out)
{
    const size_t n = (size_t)w->link_count;
    bool* edge = crdi_arena_new(arena, n * n, sizeof *edge);
    bool* gone = crdi_arena_new(arena, n, sizeof *gone);
    bool* outputs = crdi_arena_new(arena, (size_t)w->outputs, sizeof *outputs);
    bool* seen = crdi_arena_new(arena, (size_t)w->states, sizeof *seen);
    int32_t* queue = crdi_arena_new(arena, (size_t)w->states, sizeof *queue);
    if (!edge || !gone || !outputs || !seen || !queue) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < n; i++) {
        mark_reached_outputs(w, w->links[i].to, outputs, seen, queue);
        for (size_t j = 0; j < n; j++) {
            edge[i * n + j] = outputs[w->links[j].from];
        }
    }
    *out = false;
    if (n > 100 || !circular((int)n, edge, -1, gone)) { return CRD_OK; }
    for (int i = 0; i < (int)n && !*out; i++) {
        *out = !circular((int)n, edge, i, gone);
    }
    return CRD_OK;
}

// ---- direct links ------------------------------------------------------------------------------

static bool is_direct(const crd_plant_link* l)
{
    return !l->element && l->delay == 0;
}

// The number that row or column i gets when only those in use stay, -1 if it goes
static int number_used(const crd_plant* w, bool inputs, int32_t* number)
{
    const int n = inputs ? w->inputs : w->outputs;
    int count = 0;
    for (int i = 0; i < n; i++) {
        number[i] = -1;
        for (int k = 0; k < w->link_count && number[i] < 0; k++) {
            const crd_plant_link* l = &w->links[k];
            if (!is_direct(l) && (inputs ? l->to : l->from) == i) { number[i] = count++; }
        }
    }
    return count;
}

typedef struct closing {
    const crd_plant* w;
    double* k;    // (inputs x outputs) direct links
    double* s;    // (outputs x (states + inputs)) y over states and remaining inputs: S C, S D
    double* loop; // (outputs x outputs)
    double* right;
    int32_t* pivots;
} closing;

// y = C x + D (K y + v), column by column
static crd_status solve_outputs(crd_context* ctx, const closing* c)
{
    const crd_plant* w = c->w;
    const int n = w->states, in = w->inputs, out = w->outputs;
    for (int column = 0; column < n + in; column++) {
        for (int i = 0; i < out; i++) {
            for (int j = 0; j < out; j++) {
                double sum = i == j ? 1 : 0;
                for (int u = 0; w->D && u < in; u++) {
                    sum -= w->D[i * in + u] * c->k[u * out + j];
                }
                c->loop[i * out + j] = sum;
            }
            c->right[i] = column < n ? w->C[i * n + column] : w->D ? w->D[i * in + column - n] : 0;
        }
        if (crdi_num_solve(out, c->loop, c->right, c->pivots) < 0) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "the direct links form an algebraic loop without solution");
        }
        for (int i = 0; i < out; i++) {
            c->s[i * (n + in) + column] = c->right[i];
        }
    }
    return CRD_OK;
}

// x' = A x + B (K y + v) and the outputs, for what stays
static void assemble_reduced(const closing* c, const int32_t* input_number,
                             const int32_t* output_number, int inputs, double* A, double* B,
                             double* C, double* D)
{
    const crd_plant* w = c->w;
    const int n = w->states, in = w->inputs, out = w->outputs, all = n + in;
    for (int i = 0; i < n; i++) {
        for (int column = 0; column < all; column++) {
            const int v = column < n ? -1 : input_number[column - n];
            if (column >= n && v < 0) { continue; }
            double sum = column < n ? w->A[i * n + column] : w->B[i * in + column - n];
            for (int u = 0; u < in; u++) {
                for (int y = 0; y < out; y++) {
                    sum += w->B[i * in + u] * c->k[u * out + y] * c->s[y * all + column];
                }
            }
            *(column < n ? &A[i * n + column] : &B[i * inputs + v]) = sum;
        }
    }
    for (int y = 0; y < out; y++) {
        const int row = output_number[y];
        for (int column = 0; row >= 0 && column < all; column++) {
            const int v = column < n ? -1 : input_number[column - n];
            const double value = c->s[y * all + column];
            if (column < n) {
                C[row * n + column] = value;
            } else if (v >= 0) {
                D[row * inputs + v] = value;
            }
        }
    }
}

crd_status crd_plant_reduce(crd_context* ctx, crd_arena* arena, const crd_plant* from,
                            crd_plant* out)
{
    const size_t n = (size_t)from->states, in = (size_t)from->inputs, ny = (size_t)from->outputs;
    closing c = {.w = from,
                 .k = crdi_arena_new(arena, in * ny, sizeof(double)),
                 .s = crdi_arena_new(arena, ny * (n + in), sizeof(double)),
                 .loop = crdi_arena_new(arena, ny * ny, sizeof(double)),
                 .right = crdi_arena_new(arena, ny, sizeof(double)),
                 .pivots = crdi_arena_new(arena, ny, sizeof(int32_t))};
    int32_t* input_number = crdi_arena_new(arena, in, sizeof *input_number);
    int32_t* output_number = crdi_arena_new(arena, ny, sizeof *output_number);
    crd_plant_link* links = crdi_arena_new(arena, (size_t)from->link_count, sizeof *links);
    double* A = crdi_arena_new(arena, n * n, sizeof *A);
    double* B = crdi_arena_new(arena, n * in, sizeof *B);
    double* C = crdi_arena_new(arena, ny * n, sizeof *C);
    double* D = crdi_arena_new(arena, ny * in, sizeof *D);
    if (!c.k || !c.s || !c.loop || !c.right || !c.pivots || !input_number || !output_number ||
        !links || !A || !B || !C || !D) {
        return CRD_E_MEMORY;
    }
    const crd_loop loop = {.dT = 1, .network = from};
    crdi_evaluator e;
    crd_status st = crdi_evaluator_init(ctx, arena, &loop, &e); // for its checks
    if (st < 0) { return st; }
    crd_plant p = {.states = from->states, .A = A, .B = B, .C = C, .D = D, .links = links};
    p.inputs = number_used(from, true, input_number);
    p.outputs = number_used(from, false, output_number);
    for (int i = 0; i < from->link_count; i++) {
        const crd_plant_link* l = &from->links[i];
        if (is_direct(l)) {
            c.k[(size_t)l->to * ny + (size_t)l->from] += l->gain == 0 ? 1 : l->gain;
            continue;
        }
        links[p.link_count] = *l;
        links[p.link_count].from = output_number[l->from];
        links[p.link_count++].to = input_number[l->to];
    }
    st = solve_outputs(ctx, &c);
    if (st < 0) { return st; }
    assemble_reduced(&c, input_number, output_number, p.inputs, A, B, C, D);
    *out = p;
    return CRD_OK;
}
