// Requests of the master, one after the other.
#include "unit/worker/program/serve.h"
#include "shared/sandbox.h"
#include "unit/fmi/fmi_unit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// ---- log lines ---------------------------------------------------------------------------------

static void put_log(crdi_control* c, uint32_t* at, const void* bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        c->log[(*at)++ % CRDI_CHANNEL_LOG] = ((const char*)bytes)[i];
    }
}

// The FMU may log from any of its threads; the lock is for them. When there is no room the master
// has not come by for long: for a second it is waited for, then the line is lost.
static void forward(void* user, crd_level level, const char* text)
{
    static atomic_flag busy = ATOMIC_FLAG_INIT;
    crdi_control* c = ((crdi_server*)user)->control;
    size_t length = strlen(text);
    if (length >= CRDI_CHANNEL_TEXT) { length = CRDI_CHANNEL_TEXT - 1; }
    while (atomic_flag_test_and_set(&busy)) {
        nanosleep(&(struct timespec){0, 10000}, NULL);
    }
    uint32_t at = atomic_load(&c->log_written);
    for (int i = 0; i < 1000 && CRDI_CHANNEL_LOG - (at - atomic_load(&c->log_read)) < length + 8;
         i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    if (CRDI_CHANNEL_LOG - (at - atomic_load(&c->log_read)) >= length + 8) {
        const uint32_t head[2] = {(uint32_t)level, (uint32_t)length};
        put_log(c, &at, head, sizeof head);
        put_log(c, &at, text, length);
        atomic_store(&c->log_written, at);
    }
    atomic_flag_clear(&busy);
}

// ---- units -------------------------------------------------------------------------------------

static const char* arena_copy(crd_arena* a, const char* text)
{
    return crdi_arena_text(a, text, strlen(text));
}

static crd_status read_spec(crdi_server* s, crdi_served* u, crdi_mail* m)
{
    const uint64_t size = crdi_mail_get_u64(m);
    const void* spec = crdi_mail_get(m, sizeof u->spec);
    if (size != sizeof u->spec || !spec) {
        return crdi_fail(s->ctx, CRD_E_STATE, "cardan-worker is of another version");
    }
    memcpy(&u->spec, spec, sizeof u->spec);
    u->spec.name = arena_copy(&u->arena, crdi_mail_get_text(m));
    u->spec.path = arena_copy(&u->arena, crdi_mail_get_text(m));
    crdi_worker_library = crdi_mail_get_text(m);
    const uint64_t count = crdi_mail_get_u64(m);
    crd_setting* settings = crdi_arena_new(&u->arena, (size_t)count, sizeof *settings);
    for (uint64_t i = 0; settings && i < count; i++) {
        settings[i].variable = arena_copy(&u->arena, crdi_mail_get_text(m));
        settings[i].text = arena_copy(&u->arena, crdi_mail_get_text(m));
        settings[i].place.file = "";
    }
    u->spec.parameters = settings;
    u->spec.parameter_count = (int)count;
    u->spec.place = (crd_place){.file = ""};
    u->spec.shown = "";
    u->spec.isolate = "none";
    u->spec.standby.model = NULL;
    return m->failed ? crdi_fail(s->ctx, CRD_E_FORMAT, "the spec is cut off")
                     : crdi_arena_status(&u->arena);
}

// Before anything foreign is loaded, for all units that this process will have.
static crd_status serve_shut_in(crdi_server* s, crdi_mail* m)
{
    enum { MOST = 4096 };
    static const char *readable[MOST], *writable[MOST]; // once; the stack may be small
    crdi_sandbox box = {
        .readable = readable, .writable = writable, .files = 1024, .processes = 512};
    box.scratch = crdi_mail_get_text(m);
    box.network = crdi_mail_get_u64(m);
    box.memory = crdi_mail_get_u64(m);
#ifdef CRDI_SANITIZED
    box.memory = 0; // sanitizers reserve more address space than there is memory
#endif
    box.file_size = crdi_mail_get_u64(m);
    const uint64_t count = crdi_mail_get_u64(m);
    for (uint64_t i = 0; i < count && i < MOST; i++) {
        readable[box.readable_count++] = crdi_mail_get_text(m);
    }
    const uint64_t resources = crdi_mail_get_u64(m);
    for (uint64_t i = 0; i < resources && i < MOST; i++) {
        writable[box.writable_count++] = crdi_mail_get_text(m);
    }
    return m->failed || count > MOST || resources > MOST
               ? crdi_fail(s->ctx, CRD_E_RANGE, "more than %d folders in one worker", MOST)
               : crdi_sandbox_enter(s->ctx, &box);
}

static crd_status serve_create(crdi_server* s, crdi_served* u, crdi_mail* m)
{
    crd_status st = read_spec(s, u, m);
    if (st >= 0) { st = crd_unit_create_shared(s->ctx, s->store, &u->spec, &u->unit); }
    return st;
}

static crdi_served* add_unit(crdi_server* s, const crdi_request* r)
{
    if ((int32_t)r->unit < s->count && s->units[r->unit]) { return s->units[r->unit]; }
    crdi_served** units =
        crdi_grow(s->ctx, s->units, &s->capacity, (size_t)r->unit + 1, sizeof(crdi_served*));
    crdi_served* u = units ? crdi_new(s->ctx, sizeof *u) : NULL;
    if (!u) { _exit(1); } // there is nowhere to say it
    s->units = units;
    for (; s->count <= (int32_t)r->unit; s->count++) {
        units[s->count] = NULL;
    }
    units[r->unit] = u;
    crd_arena_init(&u->arena, s->ctx);
    u->answer = (crdi_answer*)(s->memory + r->area);
    u->text = s->memory + r->area + sizeof(crdi_answer);
    return u;
}

static void unbind(crdi_server* s, crdi_served* u, int32_t handle)
{
    crdi_bound* b = &u->bound[handle];
    if (!b->binding) { return; }
    for (int32_t i = 0; b->values.bytes && i < b->binding->bytes_count; i++) {
        crd_free(s->ctx, b->values.bytes[i].data);
    }
    crd_free(s->ctx, b->values.bytes);
    crd_binding_destroy(b->binding);
    *b = (crdi_bound){0};
}

// The unit, but not its place: answers are still to be given.
static void serve_destroy(crdi_server* s, crdi_served* u)
{
    for (int32_t i = 0; i < u->bound_count; i++) {
        unbind(s, u, i);
    }
    for (int32_t i = 0; u->unit && i < u->state_count; i++) {
        if (u->states[i]) { u->unit->ops->state->free(u->unit, &u->states[i]); }
    }
    if (u->unit && u->kept) { u->unit->ops->state->free(u->unit, &u->kept); }
    crd_free(s->ctx, u->bound);
    crd_free(s->ctx, u->watched);
    crd_free(s->ctx, u->states);
    u->bound = NULL;
    u->watched = NULL;
    u->states = NULL;
    u->bound_count = u->watched_count = u->state_count = 0;
    crd_unit_destroy(u->unit);
    u->unit = NULL;
    crd_arena_clear(&u->arena);
    crd_arena_init(&u->arena, s->ctx);
}

// ---- values ------------------------------------------------------------------------------------

static void unwatch(crdi_served* u, int32_t handle)
{
    int32_t n = 0;
    for (int32_t i = 0; i < u->watched_count; i++) {
        if (u->watched[i] != handle) { u->watched[n++] = u->watched[i]; }
    }
    u->watched_count = n;
}

static crd_status serve_bind(crdi_server* s, crdi_served* u, const crdi_request* r, crdi_mail* m)
{
    const uint64_t count = crdi_mail_get_u64(m);
    const int32_t* variables = crdi_mail_get(m, (size_t)count * sizeof *variables);
    const size_t need = (size_t)r->handle + 1;
    crdi_bound* all = crdi_grow(s->ctx, u->bound, &u->bound_capacity, need, sizeof *all);
    if (!all || !variables) { return crdi_fail(u->unit->ctx, CRD_E_MEMORY, "out of memory"); }
    u->bound = all;
    for (; u->bound_count < (int32_t)need; u->bound_count++) {
        all[u->bound_count] = (crdi_bound){0};
    }
    crdi_bound* b = &all[r->handle];
    const crd_status st = crd_binding_create(u->unit, variables, (int32_t)count, &b->binding);
    if (st < 0) { return st; }
    b->area = crdi_channel_area_at(s->memory, (size_t)r->area, b->binding);
    b->values = (crd_values){.real = b->area.real, .integer = b->area.integer};
    b->values.bytes =
        crdi_new_array(s->ctx, (size_t)b->binding->bytes_count, sizeof *b->values.bytes);
    return b->values.bytes ? CRD_OK : crdi_fail(u->unit->ctx, CRD_E_MEMORY, "out of memory");
}

static crd_status serve_watch(crdi_server* s, crdi_served* u, const crdi_request* r)
{
    u->bound[r->handle].watch = (uint32_t)r->area;
    unwatch(u, r->handle);
    if (!r->area) { return CRD_OK; }
    int32_t* watched = crdi_grow(s->ctx, u->watched, &u->watched_capacity,
                                 (size_t)u->watched_count + 1, sizeof *watched);
    if (!watched) { return crdi_fail(u->unit->ctx, CRD_E_MEMORY, "out of memory"); }
    u->watched = watched;
    watched[u->watched_count++] = r->handle;
    return CRD_OK;
}

static crd_status serve_gain(crdi_server* s, crdi_served* u, const crdi_request* r)
{
    u->gain_count = r->handle + 1;
    if (r->handle < 0) { return CRD_OK; }
    u->gain_values = (double*)(s->memory + r->area);
    u->gains[r->handle] = (crdi_channel_gain){
        .unknown = (int32_t)(r->length >> 32), .known = (int32_t)(uint32_t)r->length, .seed = r->t};
    return CRD_OK;
}

static crd_status serve_set(crdi_server* s, crdi_served* u, const crdi_request* r)
{
    crdi_bound* b = &u->bound[r->handle];
    const crd_unit_ops* ops = u->unit->ops;
    crd_status st = CRD_OK;
    if (r->area == CRDI_SET_TEXTS) {
        crdi_mail m = {.at = s->memory + crdi_channel_message_at(), .left = r->length};
        st = crdi_mail_get_bytes(&m, s->ctx, b->values.bytes, b->binding->bytes_count);
        if (st < 0) { return crdi_fail(u->unit->ctx, st, "%s", crd_error_text(s->ctx)); }
    }
    if (s->count == 1) { s->inputs = (const char*)b->area.real; }
    if (r->area != CRDI_SET_RATES) { st = ops->set(u->unit, b->binding, &b->values); }
    if (st >= 0 && r->order > 0) {
        const double* const d[] = {b->area.rate[0], b->area.rate[1]};
        st = ops->derivatives->set(u->unit, b->binding, d, r->order);
    }
    return st;
}

static crd_status serve_get(crdi_served* u, const crdi_request* r, crdi_mail* m)
{
    if (r->handle < 0) { return CRD_OK; }
    crdi_bound* b = &u->bound[r->handle];
    const crd_status st = u->unit->ops->get(u->unit, b->binding, &b->values);
    if (st >= 0) { crdi_mail_put_bytes(m, b->values.bytes, b->binding->bytes_count); }
    return st;
}

static crd_status get_rates(crdi_served* u, crdi_bound* b, int order)
{
    return u->unit->ops->derivatives->get(u->unit, b->binding, order, b->area.rate[order - 1]);
}

static crd_status fetch_gains(crdi_served* u)
{
    crd_status st = CRD_OK;
    for (int32_t i = 0; i < u->gain_count && st >= 0; i++) {
        const crdi_channel_gain* g = &u->gains[i];
        st = u->unit->ops->derivatives->directional(u->unit, &g->unknown, 1, &g->known, 1, &g->seed,
                                                    &u->gain_values[i]);
    }
    return st;
}

bool crdi_served_fetch(crdi_served* u, int32_t but)
{
    crd_status st = CRD_OK;
    for (int32_t i = 0; i < u->watched_count && st >= 0; i++) {
        crdi_bound* b = &u->bound[u->watched[i]];
        if (u->watched[i] == but) { continue; }
        if (b->watch & 1) { st = u->unit->ops->get(u->unit, b->binding, &b->values); }
        for (int k = 1; k <= CRDI_CHANNEL_ORDERS && st >= 0; k++) {
            if (b->watch & (1u << k)) { st = get_rates(u, b, k); }
        }
    }
    if (st >= 0 && u->gain_count && but < 0) { st = fetch_gains(u); }
    return st >= 0;
}

void crdi_served_note_step(crdi_served* u, int64_t ns)
{
    u->ns += ns;
    u->answer->step_ns = (uint64_t)(u->ns / ++u->measured);
}

static crd_status serve_step(crdi_server* s, crdi_served* u, const crdi_request* r, uint32_t* flags)
{
    const int64_t begin = crdi_served_measures(u->steps++) ? crdi_now_ns() : 0;
    crd_status st = r->handle >= 0 ? serve_set(s, u, r) : CRD_OK;
    if (st >= 0) { st = u->unit->ops->step(u->unit, r->t, r->h); }
    if (st >= 0 && crdi_served_fetch(u, -1)) { *flags |= CRDI_FETCHED; }
    if (begin) { crdi_served_note_step(u, crdi_now_ns() - begin); }
    return st;
}

// ---- the rest ----------------------------------------------------------------------------------

static crd_status serve_enter(crdi_served* u, crdi_mail* m)
{
    crd_experiment e = {.start = crdi_mail_get_number(m)};
    e.stop = crdi_mail_get_number(m);
    e.tolerance = crdi_mail_get_number(m);
    const uint64_t flags = crdi_mail_get_u64(m);
    e.has_stop = flags & 1;
    e.has_tolerance = flags & 2;
    e.may_roll_back = flags & 4;
    return u->unit->ops->enter_initialization(u->unit, &e);
}

static crd_status serve_state(crdi_server* s, crdi_served* u, const crdi_request* r)
{
    const crd_unit_state_ops* ops = u->unit->ops->state;
    const size_t need = (size_t)r->handle + 1;
    void** states = crdi_grow(s->ctx, u->states, &u->state_capacity, need, sizeof *states);
    if (!states) { return crdi_fail(u->unit->ctx, CRD_E_MEMORY, "out of memory"); }
    u->states = states;
    for (; u->state_count < (int32_t)need; u->state_count++) {
        states[u->state_count] = NULL;
    }
    void** state = &states[r->handle];
    if (r->op == CRDI_OP_SAVE) { return ops->save(u->unit, state); }
    if (r->op == CRDI_OP_RESTORE && !*state) {
        return crdi_fail(u->unit->ctx, CRD_E_STATE,
                         "a state that was saved is lost with the worker process that had it");
    }
    if (r->op == CRDI_OP_RESTORE) { return ops->restore(u->unit, *state); }
    if (*state) { ops->free(u->unit, state); }
    return CRD_OK;
}

static crd_status serve_keep(crdi_served* u, crdi_mail* out)
{
    size_t size = 0;
    uint64_t* head = (void*)(uintptr_t)crdi_mail_get(out, sizeof *head);
    const crd_status st =
        crdi_fmi_unit_keep(u->unit, &u->kept, (uint8_t*)out->at, out->left, &size);
    if (st >= 0) { (void)crdi_mail_get(out, size); } // is there already
    *head = size;
    return st;
}

static crd_status serve_resume(crdi_served* u, crdi_mail* in)
{
    const uint64_t size = crdi_mail_get_u64(in);
    const uint8_t* bytes = crdi_mail_get(in, (size_t)size);
    return bytes ? crdi_fmi_unit_resume(u->unit, bytes, (size_t)size)
                 : crdi_fail(u->unit->ctx, CRD_E_FORMAT, "its state is cut off");
}

static crd_status serve_directional(crdi_served* u, crdi_mail* in, crdi_mail* out)
{
    const int nu = (int)crdi_mail_get_u64(in), nk = (int)crdi_mail_get_u64(in);
    const int32_t* unknowns = crdi_mail_get(in, (size_t)nu * sizeof *unknowns);
    const int32_t* knowns = crdi_mail_get(in, (size_t)nk * sizeof *knowns);
    const double* seed = crdi_mail_get(in, (size_t)nk * sizeof *seed);
    double* result = crdi_new_array(u->unit->ctx, (size_t)nu, sizeof *result);
    if (in->failed || !result) { return crdi_fail(u->unit->ctx, CRD_E_MEMORY, "out of memory"); }
    const crd_status st =
        u->unit->ops->derivatives->directional(u->unit, unknowns, nu, knowns, nk, seed, result);
    if (st >= 0) { crdi_mail_put(out, result, (size_t)nu * sizeof *result); }
    crd_free(u->unit->ctx, result);
    return st;
}

static crd_status serve_linearise(crdi_served* u, crdi_mail* in, crdi_mail* out)
{
    crd_linearised l;
    const int nin = (int)crdi_mail_get_u64(in), nout = (int)crdi_mail_get_u64(in);
    const crd_unit_port* inputs = crdi_mail_get(in, (size_t)nin * sizeof *inputs);
    const crd_unit_port* outputs = crdi_mail_get(in, (size_t)nout * sizeof *outputs);
    if (in->failed) { return crdi_fail(u->unit->ctx, CRD_E_FORMAT, "the ports are cut off"); }
    const crd_status st = crd_unit_linearise(u->unit, inputs, nin, outputs, nout, &l);
    if (st < 0) { return st; }
    const size_t n = (size_t)l.states, a = (size_t)l.inputs, b = (size_t)l.outputs;
    crdi_mail_put_u64(out, n);
    crdi_mail_put_u64(out, (l.exact ? 1u : 0u) | (l.guessed ? 2u : 0u));
    crdi_mail_put(out, l.A, n * n * sizeof(double));
    crdi_mail_put(out, l.B, n * a * sizeof(double));
    crdi_mail_put(out, l.C, b * n * sizeof(double));
    crdi_mail_put(out, l.D, b * a * sizeof(double));
    crd_linearised_clear(&l);
    return CRD_OK;
}

// What a unit finds out about itself at the end of its initialisation.
static crd_status serve_exit(crdi_served* u, crdi_mail* out)
{
    const crd_status st = u->unit->ops->exit_initialization(u->unit);
    crdi_mail_put_u64(out, (uint64_t)u->unit->input_order);
    crdi_mail_put_u64(out, u->unit->begin_again);
    return st;
}

static crd_status serve_rare(crdi_server* s, crdi_served* u, const crdi_request* r, crdi_mail* in,
                             crdi_mail* out)
{
    const crd_unit_ops* ops = u->unit->ops;
    switch (r->op) {
    case CRDI_OP_INSTANTIATE:
        u->unit->input_order = (int)crdi_mail_get_u64(in);
        u->unit->begin_again = false;
        u->unit->step = crdi_mail_get_number(in);
        return ops->instantiate(u->unit); // settings come from the master
    case CRDI_OP_ENTER:
        return serve_enter(u, in);
    case CRDI_OP_EXIT:
        return serve_exit(u, out);
    case CRDI_OP_BIND:
        return serve_bind(s, u, r, in);
    case CRDI_OP_UNBIND:
        unwatch(u, r->handle);
        unbind(s, u, r->handle);
        return CRD_OK;
    case CRDI_OP_SEAT:
        return crdi_serve_seat(s, u, r, in);
    case CRDI_OP_WATCH:
        return serve_watch(s, u, r);
    case CRDI_OP_GAIN:
        return serve_gain(s, u, r);
    case CRDI_OP_GET:
        return serve_get(u, r, out);
    case CRDI_OP_RATES:
        return get_rates(u, &u->bound[r->handle], r->order);
    case CRDI_OP_SAVE:
    case CRDI_OP_RESTORE:
    case CRDI_OP_FREE:
        return serve_state(s, u, r);
    case CRDI_OP_KEEP:
        return serve_keep(u, out);
    case CRDI_OP_RESUME:
        return serve_resume(u, in);
    case CRDI_OP_DIRECTIONAL:
        return serve_directional(u, in, out);
    case CRDI_OP_LINEARISE:
        return serve_linearise(u, in, out);
    case CRDI_OP_TERMINATE:
        return ops->terminate(u->unit);
    default:
        return crdi_fail(u->unit->ctx, CRD_E_STATE, "cardan-worker does not know request %d",
                         r->op);
    }
}

// ---- answers -----------------------------------------------------------------------------------

static void __attribute__((cold, noinline)) tell(crdi_served* u, const crd_context* ctx)
{
    const char* text = crd_error_text(ctx);
    const size_t length = strnlen(text, CRDI_CHANNEL_TEXT - 1);
    memcpy(u->text, text, length);
    u->answer->length = (uint32_t)length;
}

void crdi_served_report(crdi_served* u, const crd_context* ctx, crd_status st, uint32_t flags)
{
    crdi_answer* a = u->answer;
    const crd_unit* unit = u->unit;
    if (st < 0) { tell(u, unit ? unit->ctx : ctx); }
    a->status = st;
    a->flags = flags | (unit && unit->wants_stop ? CRDI_WANTS_STOP : 0);
    a->events = unit ? unit->events : 0;
    a->next_event = unit ? unit->next_event : 0;
}

void crdi_serve_answer(crdi_server* s, crdi_answer* a, const crdi_request* r)
{
    const uint32_t number = atomic_load_explicit(&r->number, memory_order_relaxed);
    a->log = atomic_load_explicit(&s->control->log_written, memory_order_relaxed);
    crdi_channel_raise(&a->number, number);
    if (__builtin_expect(atomic_load_explicit(&a->waited, memory_order_relaxed), 0)) {
        crdi_channel_wake(&a->number);
    }
}

static void serve(crdi_server* s, const crdi_request* r)
{
    crdi_served* u =
        r->op == CRDI_OP_CREATE || r->op == CRDI_OP_SHUT_IN ? add_unit(s, r) : s->units[r->unit];
    crdi_mail in = {.at = s->memory + crdi_channel_message_at(), .left = r->length};
    crdi_mail out = {.at = in.at, .left = CRDI_CHANNEL_MESSAGE};
    crd_status st = u->late;
    uint32_t flags = 0;
    atomic_store_explicit(&s->control->unit, r->unit, memory_order_relaxed);
    s->in_call = u->unit != NULL;
    u->known = false;
    if (r->op == CRDI_OP_DESTROY) {
        serve_destroy(s, u);
        st = CRD_OK;
    } else if (r->op == CRDI_OP_SHUT_IN) {
        st = serve_shut_in(s, &in);
    } else if (r->op == CRDI_OP_CREATE) {
        st = serve_create(s, u, &in);
    } else if (st >= 0 && r->op == CRDI_OP_STEP) {
        st = serve_step(s, u, r, &flags);
    } else if (st >= 0 && r->op == CRDI_OP_SET) {
        st = serve_set(s, u, r);
    } else if (st >= 0) {
        st = serve_rare(s, u, r, &in, &out);
    }
    s->in_call = false;
    const bool answered = crdi_request_is_answered(r);
    u->late = answered ? CRD_OK : st;
    if (st >= 0 && out.failed) {
        st = crdi_fail(u->unit->ctx, CRD_E_RANGE, "the answer of the worker is too long");
    }
    if (!answered) { return; }
    crdi_served_report(u, s->ctx, st, flags);
    u->answer->result = CRDI_CHANNEL_MESSAGE - out.left;
    crdi_serve_answer(s, u->answer, r);
}

// The next request, behind the one in slot `at`. Looks for a while, then sleeps; now and then it
// looks whether the master is still there.
static crdi_request* wait_for(crdi_server* s, uint32_t wanted, uint32_t* at)
{
    static const int64_t LONGEST = 500000000; // ns
    static uint32_t vain;
    crdi_control* c = s->control;
    const crdi_channel_bed bed = {&c->asleep, &c->bell};
    crdi_request* r = &c->ring[*at & (CRDI_CHANNEL_SLOTS - 1)];
    crdi_request* next = &c->ring[(*at + 1) & (CRDI_CHANNEL_SLOTS - 1)];
    crdi_channel_look l = {&r->number, &next->number, wanted,
                           s->inputs ? s->inputs : (const char*)r,
                           atomic_load_explicit(&c->spin_ns, memory_order_relaxed)};
    for (int64_t nap = 1000000; !crdi_channel_spin(&l, &vain);) {
        crdi_channel_sleep(&l, &bed, nap);
        if (getppid() != s->master) { _exit(0); }
        nap = nap < LONGEST ? 2 * nap : nap;
        l.most = atomic_load_explicit(&c->spin_ns, memory_order_relaxed);
    }
    if (__builtin_expect(atomic_load_explicit(&c->asleep, memory_order_relaxed), 0) &&
        !crdi_channel_is_cold(vain)) {
        atomic_store(&c->asleep, 0);
    }
    if (atomic_load_explicit(&r->number, memory_order_acquire) == wanted) { return r; }
    ++*at;
    return next;
}

int crdi_serve(crdi_server* s)
{
    const crd_context_options opt = {
        .log = forward, .log_user = s, .level = (crd_level)s->control->log_level};
    s->ctx = crd_context_create(&opt);
    if (!s->ctx || crd_unit_store_create(s->ctx, &s->store) < 0) { return 1; }
    for (uint32_t next = 1, at = 0;; next++) {
        const crdi_request* r = wait_for(s, next, &at);
        if (r->op == CRDI_OP_ROW) {
            crdi_serve_row(s, r);
        } else {
            serve(s, r);
        }
        atomic_store_explicit(&s->control->taken, next, memory_order_release);
    }
}
