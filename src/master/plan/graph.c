#include "master/master.h"

typedef struct {
    int node, next; // next edge to look at
} frame;

int crdi_components(crd_context* ctx, int n, const int* first, const int* edge, int* component)
{
    // Tarjan 1972, with a stack of our own: chains of 100 000 nodes must not overflow the C stack.
    int* index = crdi_new_array(ctx, (size_t)n + 1, sizeof *index); // 0: not seen
    int* low = crdi_new_array(ctx, (size_t)n + 1, sizeof *low);
    int* open = crdi_new_array(ctx, (size_t)n + 1, sizeof *open);
    frame* stack = crdi_new_array(ctx, (size_t)n + 1, sizeof *stack);
    int count = -1;
    if (!index || !low || !open || !stack) { goto done; }
    count = 0;
    int seen = 0, open_count = 0;
    for (int i = 0; i < n; i++) {
        component[i] = -1;
    }
    for (int root = 0; root < n; root++) {
        if (index[root]) { continue; }
        int depth = 0;
        stack[0] = (frame){root, first[root]};
        index[root] = low[root] = ++seen;
        open[open_count++] = root;
        while (depth >= 0) {
            frame* f = &stack[depth];
            const int v = f->node;
            if (f->next < first[v + 1]) {
                const int w = edge[f->next++];
                if (!index[w]) {
                    index[w] = low[w] = ++seen;
                    open[open_count++] = w;
                    stack[++depth] = (frame){w, first[w]};
                } else if (component[w] < 0 && index[w] < low[v]) {
                    low[v] = index[w];
                }
                continue;
            }
            if (low[v] == index[v]) {
                int w = -1;
                do {
                    w = open[--open_count];
                    component[w] = count;
                } while (w != v);
                count++;
            }
            if (--depth >= 0) {
                const int parent = stack[depth].node;
                if (low[v] < low[parent]) { low[parent] = low[v]; }
            }
        }
    }
done:
    crd_free(ctx, index);
    crd_free(ctx, low);
    crd_free(ctx, open);
    crd_free(ctx, stack);
    return count;
}

int crdi_plan_components(const crdi_plan* plan, crdi_chooser* chooses, const void* with,
                         int* component)
{
    const int n = plan->member_count;
    int* first = crdi_new_array(plan->ctx, (size_t)n + 2, sizeof *first);
    int* edge = crdi_new_array(plan->ctx, (size_t)plan->connection_count + 1, sizeof *edge);
    int count = -1;
    if (!first || !edge) { goto done; }
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        if (chooses(plan, k, with)) { first[k->from.member + 2]++; }
    }
    for (int i = 0; i < n; i++) {
        first[i + 2] += first[i + 1];
    }
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        if (chooses(plan, k, with)) { edge[first[k->from.member + 1]++] = k->to.member; }
    }
    count = crdi_components(plan->ctx, n, first, edge, component);
done:
    crd_free(plan->ctx, first);
    crd_free(plan->ctx, edge);
    return count;
}

static crd_status index_ends(crdi_plan* plan, bool to, int** index, int** first)
{
    const int n = plan->member_count;
    *first = crdi_arena_new(plan->arena, (size_t)n + 2, sizeof **first);
    *index = crdi_arena_new(plan->arena, (size_t)plan->connection_count, sizeof **index);
    if (!*first || !*index) { return CRD_E_MEMORY; }
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        (*first)[(to ? k->to.member : k->from.member) + 2]++;
    }
    for (int i = 0; i < n; i++) {
        (*first)[i + 2] += (*first)[i + 1];
    }
    for (int i = 0; i < plan->connection_count; i++) {
        const crdi_connection* k = &plan->connections[i];
        (*index)[(*first)[(to ? k->to.member : k->from.member) + 1]++] = i;
    }
    return CRD_OK;
}

crd_status crdi_plan_index(crdi_plan* plan)
{
    const crd_status st = index_ends(plan, true, &plan->into, &plan->into_first);
    return st < 0 ? st : index_ends(plan, false, &plan->out_of, &plan->out_of_first);
}
