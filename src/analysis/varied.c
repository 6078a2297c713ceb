#include "analysis/varied.h"

#include "shared/num.h"

#include <string.h>

// ---- which samples an element has
// ----------------------------------------------------------------

// A macro step later. Beyond `cap` the newest is not told older, but distances stay.
static crdi_ages older(const crdi_varied_link* l, const crdi_ages* s)
{
    crdi_ages t = *s;
    const int by = t.age[0] < l->cap ? 1 : 0;
    for (int i = 0; i < t.count; i++) {
        t.age[i] = (int16_t)(t.age[i] + by);
    }
    return t;
}

static bool has_age(const crdi_ages* s, int age)
{
    for (int i = 0; i < s->count; i++) {
        if (s->age[i] == age) { return true; }
    }
    return false;
}

static void insert_age(crdi_ages* s, int age)
{
    int i = s->count++;
    for (; i > 0 && s->age[i - 1] > age; i--) {
        s->age[i] = s->age[i - 1];
    }
    s->age[i] = (int16_t)age;
}

// What lies behind the sample that ends the last tap is never looked at again.
static void forget_old(const crdi_varied_link* l, crdi_ages* s)
{
    int i = 0;
    while (i + 1 < s->count && s->age[i] < s->age[0] + l->taps - 1) {
        i++;
    }
    s->count = i + 1;
}

static crd_status state_of(crd_context* ctx, crdi_varied_link* l, const crdi_ages* s, int* out)
{
    for (int i = 0; i < l->state_count; i++) {
        const crdi_ages* t = &l->states[i];
        if (t->count == s->count &&
            memcmp(t->age, s->age, (size_t)s->count * sizeof *s->age) == 0) {
            *out = i;
            return CRD_OK;
        }
    }
    crdi_ages* states =
        crdi_grow(ctx, l->states, &l->state_capacity, (size_t)l->state_count + 1, sizeof *states);
    if (!states) { return CRD_E_MEMORY; }
    l->states = states;
    states[l->state_count] = *s;
    *out = l->state_count++;
    return CRD_OK;
}

static crd_status add_next(crd_context* ctx, crdi_varied_link* l, int first, int to, double chance)
{
    for (int i = first; i < l->next_count; i++) {
        if (l->next[i].to == to) {
            l->next[i].chance += chance;
            return CRD_OK;
        }
    }
    crdi_next* next =
        crdi_grow(ctx, l->next, &l->next_capacity, (size_t)l->next_count + 1, sizeof *next);
    if (!next) { return CRD_E_MEMORY; }
    l->next = next;
    next[l->next_count++] = (crdi_next){to, chance};
    return CRD_OK;
}

// Chance that a sample which is not there yet arrives at age j: P(arrives at j | not before).
static double arrival_chance(const crd_variation* v, int j)
{
    const int n = v->k_max - v->k_min + 1;
    if (j == v->k_max && !(v->loss > 0)) { return 1; }
    double before = 0;
    for (int i = 0; i < j - v->k_min; i++) {
        before += v->share ? v->share[i] : 1.0 / n;
    }
    const double now = v->share ? v->share[j - v->k_min] : 1.0 / n;
    const double rest = 1 - (1 - v->loss) * before;
    return rest > 0 ? fmin(1, (1 - v->loss) * now / rest) : 1;
}

// The next sample that has arrived, behind age k_max.
static int run_of_losses(const crdi_varied_link* l, const crdi_ages* s)
{
    int i = 0;
    while (i < s->count && s->age[i] <= l->v.k_max) {
        i++;
    }
    return i < s->count ? s->age[i] - l->v.k_max : 0;
}

static crd_status add_successors(crd_context* ctx, crdi_varied_link* l, int state, bool random,
                                 const char** stopped)
{
    const crdi_ages base = older(l, &l->states[state]);
    const int first = l->next_count;
    int pending[CRD_LATENCY_MAX + 1], count = 0;
    for (int j = l->v.k_min; j <= l->v.k_max && j < base.age[base.count - 1]; j++) {
        if (!has_age(&base, j)) { pending[count++] = j; }
    }
    if (count > CRDI_VARIED_PENDING) {
        *stopped = "too many samples of a link can be on their way at once";
        return CRD_OK;
    }
    for (uint32_t arrived = 0; arrived < UINT32_C(1) << count; arrived++) {
        crdi_ages s = base;
        double chance = 1;
        bool lost = false;
        for (int i = 0; i < count; i++) {
            const bool here = arrived >> i & 1;
            const double p = arrival_chance(&l->v, pending[i]);
            chance *= here ? p : 1 - p;
            if (here && s.count <= CRDI_VARIED_TAPS) { insert_age(&s, pending[i]); }
            lost = lost || (!here && pending[i] == l->v.k_max);
        }
        if (random ? !(chance > 0) : lost && run_of_losses(l, &s) > l->v.burst) { continue; }
        forget_old(l, &s);
        int to = 0;
        crd_status st = state_of(ctx, l, &s, &to);
        if (st >= 0) { st = add_next(ctx, l, first, to, chance); }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// All states that can follow from one in which every sample came after k_max steps.
static crd_status explore(crdi_varied* s, crdi_varied_link* l)
{
    crdi_ages begin = {.count = l->taps};
    for (int i = 0; i < l->taps; i++) {
        begin.age[i] = (int16_t)(l->v.k_max + i);
    }
    int at = 0;
    crd_status st = state_of(s->ctx, l, &begin, &at);
    l->first = crdi_arena_new(&s->arena, CRDI_VARIED_STATES + 2, sizeof *l->first);
    if (st >= 0 && !l->first) { st = CRD_E_MEMORY; }
    for (int i = 0; st >= 0 && i < l->state_count && !s->stopped; i++) {
        if (l->state_count > CRDI_VARIED_STATES) {
            s->stopped = "samples of a link can be there or not in too many ways";
            break;
        }
        l->first[i] = l->next_count;
        st = add_successors(s->ctx, l, i, s->registers, &s->stopped);
        l->first[i + 1] = l->next_count;
    }
    return st;
}

// ---- weights -----------------------------------------------------------------------------------

static bool same_at_all_ages(const crd_loop_element* e)
{
    for (int i = 0; i < e->age_count; i++) {
        const crd_linear* w = &e->by_age[i];
        if (w->m > 1 || w->a[0] != 1 || (w->A && w->A[0] != 0)) { return false; }
    }
    return true;
}

// Beyond the largest latency that is compensated a curve stays where its last step ended.
static crd_status fill_weights(crdi_varied* s, crdi_varied_link* l)
{
    const crd_loop_element* e = l->element;
    const size_t n = ((size_t)l->cap + 1) * (size_t)l->taps;
    l->a = crdi_arena_new(&s->arena, n, sizeof *l->a);
    l->A = crdi_arena_new(&s->arena, n, sizeof *l->A);
    if (!l->a || !l->A) { return CRD_E_MEMORY; }
    for (int age = 0; age <= l->cap; age++) {
        const bool beyond = age >= e->age_count;
        const crd_linear* w = &e->by_age[beyond ? e->age_count - 1 : age];
        for (int i = 0; i < w->m; i++) {
            const double slope = w->A ? w->A[i] : 0;
            l->a[age * l->taps + i] = w->a[i] + (beyond ? slope : 0);
            l->A[age * l->taps + i] = beyond ? 0 : slope;
            l->sloped = l->sloped || (!beyond && slope != 0);
        }
    }
    return CRD_OK;
}

// An empty place at age_j < p < age_{j+1} lies on the line between the two.
void crdi_varied_weights(const crdi_varied_link* l, int state, double* value, double* slope)
{
    const crdi_ages* s = &l->states[state];
    const int newest = s->age[0] < l->cap ? s->age[0] : l->cap;
    memset(value, 0, (CRDI_VARIED_TAPS + 1) * sizeof *value);
    memset(slope, 0, (CRDI_VARIED_TAPS + 1) * sizeof *slope);
    for (int i = 0, j = 0; i < l->taps; i++) {
        while (j + 1 < s->count && s->age[j + 1] <= s->age[0] + i) {
            j++;
        }
        const int past = s->age[0] + i - s->age[j];
        const double part = past > 0 ? (double)past / (s->age[j + 1] - s->age[j]) : 0;
        const double a = l->a[newest * l->taps + i], A = l->A[newest * l->taps + i];
        value[j] += (1 - part) * a;
        slope[j] += (1 - part) * A;
        if (part > 0) {
            value[j + 1] += part * a;
            slope[j + 1] += part * A;
        }
    }
}

static crd_status make_link(crdi_varied* s, const crd_loop_model* m, int i, double loss)
{
    crdi_varied_link* l = &s->links[i];
    l->link = &s->w->links[i];
    for (int k = 0; k < m->element_count; k++) {
        if (m->elements[k].current == l->link->element) { l->element = &m->elements[k]; }
    }
    if (!l->element || !l->element->age_count) {
        s->stopped = "an element is not known as linear functions of its samples";
        return CRD_OK;
    }
    l->v = l->element->variation;
    if (loss >= 0 && l->v.loss > 0) { l->v.loss = loss; }
    if (!(l->v.loss > 0)) { l->v.burst = 0; }
    l->cap = l->v.k_max + l->v.burst + 1; // which no sample reaches
    if (s->registers && l->v.loss > 0) {
        // What is rarer than 1e-6 is not told apart, where it makes a difference at all.
        const int rare = (int)ceil(log(1e-6) / log(fmin(l->v.loss, 0.5)));
        l->cap = l->v.k_max + 1;
        if (!same_at_all_ages(l->element)) { l->cap += rare; }
    }
    l->taps = 1;
    for (int k = 0; k < l->element->age_count && k <= l->cap; k++) {
        const int taps = l->element->by_age[k].m;
        l->taps = taps > l->taps ? taps : l->taps;
    }
    if (l->taps > CRDI_VARIED_TAPS) {
        s->stopped = "an element looks at too many samples";
        return CRD_OK;
    }
    const crd_status st = fill_weights(s, l);
    return st < 0 ? st : explore(s, l);
}

// ---- the whole ---------------------------------------------------------------------------------

static void place_columns(crdi_varied* s)
{
    for (int o = 0; o < s->w->outputs; o++) {
        s->depth[o] = 1;
    }
    for (int i = 0; i < s->link_count; i++) {
        const crdi_varied_link* l = &s->links[i];
        int oldest = l->v.k_max;
        for (int k = 0; k < l->state_count && !s->registers; k++) {
            const int age = l->states[k].age[l->states[k].count - 1];
            oldest = age > oldest ? age : oldest;
        }
        int* depth = &s->depth[l->link->from];
        *depth = oldest > *depth ? oldest : *depth;
    }
    s->size = s->w->states;
    for (int o = 0; o < s->w->outputs; o++) {
        s->buffer[o] = s->size;
        s->size += s->depth[o] + 1;
    }
    for (int i = 0; i < s->link_count; i++) {
        s->links[i].column = s->size;
        if (s->registers) { s->size += s->links[i].taps; }
    }
}

static crd_status make_room(crdi_varied* s)
{
    const size_t all = (size_t)s->w->states + 2 * (size_t)s->w->inputs;
    const size_t rows = (size_t)s->w->inputs * (size_t)s->size;
    s->phi = crdi_arena_new(&s->arena, 3 * all * all, sizeof *s->phi);
    s->u0 = crdi_arena_new(&s->arena, rows, sizeof *s->u0);
    s->u1 = crdi_arena_new(&s->arena, rows, sizeof *s->u1);
    s->scale = crdi_arena_new(&s->arena, (size_t)s->size, sizeof *s->scale);
    return s->phi && s->u0 && s->u1 && s->scale ? CRD_OK : CRD_E_MEMORY;
}

// Coordinates are measured by what kicks at the links make of them.
static crd_status find_scales(crdi_varied* s)
{
    enum { STEPS = 200 };
    const size_t n = (size_t)s->size;
    double* a = crdi_arena_new(&s->arena, n * n + 2 * n, sizeof *a);
    if (!a) { return CRD_E_MEMORY; }
    double *z = a + n * n, *next = z + n;
    for (size_t i = 0; i < n; i++) {
        s->scale[i] = 1;
    }
    crdi_varied_matrix(s, 0, 0, a);
    double* largest = crdi_arena_new(&s->arena, n, sizeof *largest);
    if (!largest) { return CRD_E_MEMORY; }
    for (int l = 0; l < s->link_count; l++) {
        crdi_varied_kick(s, l, false, z);
        double size = 1;
        for (int t = 0; t < STEPS && size < 1e6; t++) {
            for (size_t i = 0; i < n; i++) {
                largest[i] = fmax(largest[i], fabs(z[i]));
                next[i] = 0;
                for (size_t k = 0; k < n; k++) {
                    next[i] += a[i * n + k] * z[k];
                }
            }
            for (size_t i = 0; i < n; i++) {
                size = fmax(size, fabs(next[i]));
                z[i] = next[i];
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (largest[i] > 1e-100 && largest[i] < 1e100) { s->scale[i] = largest[i]; }
    }
    return CRD_OK;
}

static const crdi_varied_link* leader(const crdi_varied* s);

// Links that vary have the same states and go through them in the same ways.
static bool are_alike(const crdi_varied* s)
{
    const crdi_varied_link* a = leader(s);
    for (int i = 0; i < s->link_count; i++) {
        const crdi_varied_link* b = &s->links[i];
        if (b->state_count == 1) { continue; }
        bool alike = a->state_count == b->state_count && a->next_count == b->next_count;
        for (int k = 0; alike && k < a->state_count; k++) {
            alike = a->states[k].count == b->states[k].count &&
                    memcmp(a->states[k].age, b->states[k].age,
                           (size_t)a->states[k].count * sizeof a->states[k].age[0]) == 0;
        }
        for (int k = 0; alike && k < a->next_count; k++) {
            alike = a->next[k].to == b->next[k].to &&
                    fabs(a->next[k].chance - b->next[k].chance) < 1e-12;
        }
        if (!alike) { return false; }
    }
    return true;
}

crd_status crdi_varied_make(const crd_loop_model* m, bool random, double loss, crdi_varied* out)
{
    crd_status st = CRD_OK;
    crdi_varied s = {
        .ctx = m->ctx, .w = &m->sampled, .registers = random, .link_count = m->sampled.link_count};
    crd_arena_init(&s.arena, m->ctx);
    s.links = crdi_arena_new(&s.arena, (size_t)s.link_count, sizeof *s.links);
    s.buffer = crdi_arena_new(&s.arena, (size_t)s.w->outputs, sizeof *s.buffer);
    s.depth = crdi_arena_new(&s.arena, (size_t)s.w->outputs, sizeof *s.depth);
    if (!s.links || !s.buffer || !s.depth) { CRD_TRY(CRD_E_MEMORY); }
    double states = 1, transitions = 1;
    for (int i = 0; i < s.link_count && !s.stopped; i++) {
        CRD_TRY(make_link(&s, m, i, loss));
        states *= s.links[i].state_count;
        transitions *= s.links[i].next_count;
    }
    if (!s.stopped && (states > CRDI_VARIED_STATES || transitions > CRDI_VARIED_TRANSITIONS)) {
        s.shared = are_alike(&s);
        if (!s.shared) { s.stopped = "the links together can be in too many states"; }
    }
    if (!s.stopped) {
        s.states = s.shared ? leader(&s)->state_count : (int)states;
        s.transitions = s.shared ? leader(&s)->next_count : (int64_t)transitions;
        place_columns(&s);
        CRD_TRY(make_room(&s));
        CRD_TRY(crdi_plant_transition(m->ctx, s.w, m->loop.dT, s.phi));
        CRD_TRY(find_scales(&s));
    }
    *out = s;
    return CRD_OK;
fail:
    crdi_varied_clear(&s);
    return st;
}

void crdi_varied_clear(crdi_varied* s)
{
    if (!s->ctx) { return; }
    for (int i = 0; s->links && i < s->link_count; i++) {
        crd_free(s->ctx, s->links[i].states);
        crd_free(s->ctx, s->links[i].next);
    }
    crd_arena_clear(&s->arena);
    *s = (crdi_varied){0};
}

// ---- states of all links
// -------------------------------------------------------------------------

int crdi_varied_part(const crdi_varied* s, int state, int l)
{
    if (s->shared) { return s->links[l].state_count > 1 ? state : 0; }
    for (int i = 0; i < l; i++) {
        state /= s->links[i].state_count;
    }
    return state % s->links[l].state_count;
}

// The first link that varies
static const crdi_varied_link* leader(const crdi_varied* s)
{
    int l = 0;
    while (l + 1 < s->link_count && s->links[l].state_count == 1) {
        l++;
    }
    return &s->links[l];
}

static int most_successors(const crdi_varied_link* l)
{
    int most = 0;
    for (int k = 0; k < l->state_count; k++) {
        const int n = l->first[k + 1] - l->first[k];
        most = n > most ? n : most;
    }
    return most;
}

int crdi_varied_most(const crdi_varied* s)
{
    int most = 1;
    if (s->shared) { return most_successors(leader(s)); }
    for (int i = 0; i < s->link_count; i++) {
        most *= most_successors(&s->links[i]);
    }
    return most;
}

int crdi_varied_next(const crdi_varied* s, int state, crdi_next* list)
{
    int count = 1, stride = 1;
    if (s->shared) {
        const crdi_varied_link* l = leader(s);
        count = l->first[state + 1] - l->first[state];
        memcpy(list, l->next + l->first[state], (size_t)count * sizeof *list);
        return count;
    }
    list[0] = (crdi_next){0, 1};
    for (int i = 0; i < s->link_count; i++) {
        const crdi_varied_link* l = &s->links[i];
        const int part = state % l->state_count;
        const int n = l->first[part + 1] - l->first[part];
        for (int k = n - 1; k >= 0; k--) { // the first of them last: it takes the place
            const crdi_next* x = &l->next[l->first[part] + k];
            for (int j = 0; j < count; j++) {
                list[k * count + j] =
                    (crdi_next){list[j].to + stride * x->to, list[j].chance * x->chance};
            }
        }
        count *= n;
        stride *= l->state_count;
        state /= l->state_count;
    }
    return count;
}

int crdi_varied_constant(const crdi_varied* s, const int* k)
{
    int state = 0, stride = 1;
    for (int i = 0; i < s->link_count; i++) {
        const crdi_varied_link* l = &s->links[i];
        int found = -1;
        for (int j = 0; j < l->state_count && found < 0; j++) {
            const crdi_ages* a = &l->states[j];
            if (a->age[0] == k[i] && a->count == l->taps &&
                a->age[a->count - 1] == k[i] + l->taps - 1) {
                found = j;
            }
        }
        if (found < 0) { return -1; }
        if (s->shared && l->state_count > 1) {
            if (stride > 1 && found != state) { return -1; } // they are apart
            state = found;
            stride = 2;
        } else if (!s->shared) {
            state += stride * found;
            stride *= l->state_count;
        }
    }
    return state;
}

// ---- the map over a step
// -------------------------------------------------------------------------

// Column of z in which sample i of the new state of a link stands when the step begins.
static int column_of(const crdi_varied* s, const crdi_varied_link* l, int from, int to, int i)
{
    const int age = l->states[to].age[i];
    if (!s->registers) { return s->buffer[l->link->from] + age; }
    const crdi_ages before = older(l, &l->states[from]);
    for (int k = 0; k < before.count; k++) {
        if (before.age[k] == age) { return l->column + k; }
    }
    return s->buffer[l->link->from] + age; // arrives now
}

static void add_inputs(const crdi_varied* s, const crdi_varied_link* l, int from, int to)
{
    double value[CRDI_VARIED_TAPS + 1], slope[CRDI_VARIED_TAPS + 1];
    const double gain = l->link->gain == 0 ? 1 : l->link->gain;
    double *u0 = s->u0 + l->link->to * s->size, *u1 = s->u1 + l->link->to * s->size;
    crdi_varied_weights(l, to, value, slope);
    for (int i = 0; i < l->states[to].count; i++) {
        const int column = column_of(s, l, from, to, i);
        u0[column] += gain * value[i];
        u1[column] += gain * slope[i];
    }
}

// x' = phi x + Gamma0 u0 + Gamma1 u1 for column c of the inputs; y' = C x' + D (u0 + u1)
static void step_column(const crdi_varied* s, const double* u0, const double* u1, int c, bool state,
                        double* a)
{
    const crd_plant* w = s->w;
    const int n = w->states, all = n + 2 * w->inputs, N = s->size;
    for (int i = 0; i < n; i++) {
        double sum = state ? s->phi[i * all + c] : 0;
        for (int u = 0; u < w->inputs; u++) {
            sum += s->phi[i * all + n + u] * u0[u * N + c] +
                   s->phi[i * all + n + w->inputs + u] * u1[u * N + c];
        }
        a[i * N + c] = sum;
    }
    for (int y = 0; y < w->outputs; y++) {
        double sum = 0;
        for (int i = 0; i < n; i++) {
            sum += w->C[y * n + i] * a[i * N + c];
        }
        for (int u = 0; w->D && u < w->inputs; u++) {
            sum += w->D[y * w->inputs + u] * (u0[u * N + c] + u1[u * N + c]);
        }
        a[s->buffer[y] * N + c] = sum;
    }
}

void crdi_varied_matrix(const crdi_varied* s, int from, int to, double* a)
{
    const int N = s->size;
    memset(a, 0, (size_t)N * (size_t)N * sizeof *a);
    memset(s->u0, 0, (size_t)s->w->inputs * (size_t)N * sizeof *s->u0);
    memset(s->u1, 0, (size_t)s->w->inputs * (size_t)N * sizeof *s->u1);
    for (int i = 0; i < s->link_count; i++) {
        const crdi_varied_link* l = &s->links[i];
        const int before = crdi_varied_part(s, from, i), after = crdi_varied_part(s, to, i);
        add_inputs(s, l, before, after);
        for (int k = 0; s->registers && k < l->states[after].count; k++) {
            a[(l->column + k) * N + column_of(s, l, before, after, k)] = 1;
        }
    }
    for (int c = 0; c < N; c++) {
        step_column(s, s->u0, s->u1, c, c < s->w->states, a);
    }
    for (int y = 0; y < s->w->outputs; y++) { // the others grow older
        for (int i = 1; i <= s->depth[y]; i++) {
            a[(s->buffer[y] + i) * N + s->buffer[y] + i - 1] = 1;
        }
    }
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++) {
            a[i * N + k] *= s->scale[k] / s->scale[i];
        }
    }
}

void crdi_varied_kick(const crdi_varied* s, int l, bool slope, double* b)
{
    const crd_plant* w = s->w;
    const crd_plant_link* link = s->links[l].link;
    const int n = w->states, all = n + 2 * w->inputs;
    const double gain = link->gain == 0 ? 1 : link->gain;
    memset(b, 0, (size_t)s->size * sizeof *b);
    for (int i = 0; i < n; i++) {
        b[i] = gain * s->phi[i * all + n + (slope ? w->inputs : 0) + link->to];
    }
    for (int y = 0; y < w->outputs; y++) {
        double sum = w->D ? gain * w->D[y * w->inputs + link->to] : 0;
        for (int i = 0; i < n; i++) {
            sum += w->C[y * n + i] * b[i];
        }
        b[s->buffer[y]] = sum;
    }
    for (int i = 0; i < s->size; i++) {
        b[i] /= s->scale[i];
    }
}
