// What the tests of units share: specs, bindings with their values, and the checks that every
// adapter has to pass.
#pragma once
#include "check.h"
#include "shared/base.h"
#include "shared/unit.h"

#define NO_PLACE ((crd_place){"", 0})

// A binding with room for its values.
typedef struct bound {
    crd_unit* unit;
    crd_binding* b;
    crd_values v;
} bound;

static inline bound bind_variables(crd_unit* u, const int32_t* variables, int32_t count)
{
    bound x = {.unit = u};
    check_ok(crd_binding_create(u, variables, count, &x.b));
    x.v.real = calloc((size_t)x.b->real_count + 1, sizeof *x.v.real);
    x.v.integer = calloc((size_t)x.b->integer_count + 1, sizeof *x.v.integer);
    x.v.bytes = calloc((size_t)x.b->bytes_count + 1, sizeof *x.v.bytes);
    return x;
}

// Names separated by blanks.
static inline bound bind_names(crd_unit* u, const char* names)
{
    int32_t variables[64];
    int32_t n = 0;
    char copy[1024];
    strcpy(copy, names);
    for (char* p = strtok(copy, " "); p; p = strtok(NULL, " ")) {
        variables[n] = u->ops->find(u, p);
        if (variables[n] < 0) { fail_msg("there is no variable '%s'", p); }
        n++;
    }
    return bind_variables(u, variables, n);
}

static inline void unbind(bound* x)
{
    for (int32_t i = 0; i < x->b->bytes_count; i++) {
        crd_free(x->unit->ctx, x->v.bytes[i].data);
    }
    crd_binding_destroy(x->b);
    free(x->v.real);
    free(x->v.integer);
    free(x->v.bytes);
}

static inline void set(bound* x)
{
    const crd_status st = x->unit->ops->set(x->unit, x->b, &x->v);
    if (st < 0) { fail_msg("set: %s", crd_error_text(x->unit->ctx)); }
}

static inline void get(bound* x)
{
    const crd_status st = x->unit->ops->get(x->unit, x->b, &x->v);
    if (st < 0) { fail_msg("get: %s", crd_error_text(x->unit->ctx)); }
}

static inline double get_one(crd_unit* u, const char* name)
{
    bound x = bind_names(u, name);
    get(&x);
    const double y = x.b->real_count ? x.v.real[0] : (double)x.v.integer[0];
    unbind(&x);
    return y;
}

static inline void set_one(crd_unit* u, const char* name, double value)
{
    bound x = bind_names(u, name);
    x.v.real[0] = value;
    set(&x);
    unbind(&x);
}

// Of an event; INFINITY: none.
#define check_time(a, b, tolerance)                                                                \
    do {                                                                                           \
        const double time_ = (a), want_ = (b);                                                     \
        if (time_ != want_) { check_near(time_, want_, tolerance); }                               \
    } while (0)

static inline crd_unit* make(crd_context* ctx, const crd_unit_spec* spec)
{
    crd_unit* u = NULL;
    const crd_status st = crd_unit_create(ctx, spec, &u);
    if (st < 0) { fail_msg("create: %s", crd_error_text(ctx)); }
    return u;
}

static inline void start(crd_unit* u, double t0, double stop)
{
    const crd_experiment e = {.start = t0, .has_stop = true, .stop = stop, .may_roll_back = true};
    crd_status st = crd_unit_instantiate(u);
    if (st == CRD_OK) { st = u->ops->enter_initialization(u, &e); }
    if (st == CRD_OK) { st = u->ops->exit_initialization(u); }
    if (st < 0) { fail_msg("start: %s", crd_error_text(u->ctx)); }
}

static inline void step(crd_unit* u, double t, double h)
{
    const crd_status st = u->ops->step(u, t, h);
    if (st < 0) { fail_msg("step at %g: %s", t, crd_error_text(u->ctx)); }
}

// Every allocation fails in turn: create says so and leaves nothing behind. Then the same for a
// binding of all variables.
static inline void check_survives_failures(const crd_unit_spec* spec, bool once)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    a.once = once;
    const int64_t idle = a.live;
    crd_unit* u = NULL;
    int64_t n = 0;
    for (;; n++) {
        a.allocations = 0;
        a.fail_at = n;
        u = NULL;
        const crd_status st = crd_unit_create(ctx, spec, &u);
        const bool overlooked = st == CRD_OK && a.fail_at < 0;
        a.fail_at = -1;
        check(!overlooked);
        if (st == CRD_OK) { break; }
        if (st != CRD_E_MEMORY) {
            fail_msg("allocation %lld: %s, %s", (long long)n, crd_status_name(st),
                     crd_error_text(ctx));
        }
        check(!u);
        check_contains(crd_error_text(ctx), "memory");
        check_int(a.live, idle);
    }
    check(n > 2);
    const int64_t made = a.live;
    int32_t variables[256];
    const int32_t count = u->info.variable_count < 256 ? u->info.variable_count : 256;
    for (int32_t i = 0; i < count; i++) {
        variables[i] = i;
    }
    crd_binding* b = NULL;
    for (n = 0;; n++) {
        a.allocations = 0;
        a.fail_at = n;
        const crd_status st = crd_binding_create(u, variables, count, &b);
        const bool overlooked = st == CRD_OK && a.fail_at < 0;
        a.fail_at = -1;
        check(!overlooked);
        if (st == CRD_OK) { break; }
        check_status(st, CRD_E_MEMORY);
        check_int(a.live, made);
    }
    check(n > 0);
    crd_binding_destroy(b);
    check_int(a.live, made);
    crd_unit_destroy(u);
    check_int(a.live, idle);
    crd_context_destroy(ctx);
}

static inline void check_survives_lack_of_memory(const crd_unit_spec* spec)
{
    check_survives_failures(spec, false);
    check_survives_failures(spec, true);
}

// 10 000 times set, step and get without an allocation.
static inline void check_steps_do_not_allocate(check_allocator* a, crd_unit* u, const char* inputs,
                                               const char* outputs, double h)
{
    bound in = bind_names(u, inputs), out = bind_names(u, outputs);
    get(&out); // texts get their room
    step(u, 0, h);
    get(&out);
    const int64_t before = a->allocations;
    for (int n = 1; n <= 10000; n++) {
        if (in.b->count) { set(&in); }
        step(u, n * h, h);
        get(&out);
    }
    check_int(a->allocations, before);
    unbind(&in);
    unbind(&out);
}

// Log lines of a context, one after the other.
typedef struct lines {
    char text[4096];
    size_t used;
} lines;

static inline void keep_line(void* user, crd_level level, const char* text)
{
    (void)level;
    lines* l = user;
    const int n = snprintf(l->text + l->used, sizeof l->text - l->used, "%s\n", text);
    if (n > 0 && l->used + (size_t)n < sizeof l->text) { l->used += (size_t)n; }
}

static inline crd_context* context_with_log(lines* l)
{
    *l = (lines){0};
    crd_context_options opt = crd_context_defaults();
    opt.log = keep_line;
    opt.log_user = l;
    return crd_context_create(&opt);
}
