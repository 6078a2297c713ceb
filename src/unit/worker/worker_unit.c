// The unit that the master sees when the code of a unit runs in a worker process.
#include "shared/fmi_build.h"
#include "unit/fmi/fmi_unit.h"
#include "unit/worker/worker.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t FILE_BYTES = (uint64_t)4 << 30; // of a file that a worker writes
static const int64_t LIMIT = 300000000000; // ns that a call may take where the spec says nothing

crd_status crdi_proxy_do(crdi_proxy* u, const crdi_proxy_call* c)
{
    crdi_worker* w = u->worker;
    crdi_request r = c->request;
    crd_status st = CRD_OK;
    const bool mail = c->fill || c->take;
    if (w->failed || !w->pid) { return crdi_worker_gone(u); }
    if (u->begun) { // nobody has asked for the end of the step
        (void)crdi_worker_wait(u);
        u->begun = false;
    }
    if (mail) { crdi_worker_lock(&w->mail); }
    crdi_mail m = {.at = w->memory + crdi_channel_message_at(), .left = CRDI_CHANNEL_MESSAGE};
    if (c->fill) {
        c->fill(&m, c->with);
        r.length = CRDI_CHANNEL_MESSAGE - m.left;
    }
    if (m.failed) {
        st = crdi_fail(u->base.ctx, CRD_E_RANGE, "more than %zu MB for one call of a worker",
                       CRDI_CHANNEL_MESSAGE >> 20);
    } else {
        crdi_worker_lock(&w->lock);
        crdi_proxy_flush(u);
        crdi_worker_push(u, &r);
        crdi_worker_unlock(&w->lock);
        st = crdi_worker_wait(u);
    }
    if (st >= 0 && c->take) {
        const uint64_t length = __atomic_load_n(&u->answer->result, __ATOMIC_RELAXED); // once
        m = (crdi_mail){.at = w->memory + crdi_channel_message_at(),
                        .left =
                            length < CRDI_CHANNEL_MESSAGE ? (size_t)length : CRDI_CHANNEL_MESSAGE};
        st = c->take(u, &m, c->into);
        if (st >= 0 && m.failed) {
            st = crdi_fail(u->base.ctx, CRD_E_UNIT, "its worker's answer is too short");
        }
    }
    if (mail) { crdi_worker_unlock(&w->mail); }
    return st;
}

static crd_status do_simply(crdi_proxy* u, crdi_channel_op op)
{
    const crdi_proxy_call c = {.request = {.op = (uint16_t)op, .handle = -1}};
    u->epoch++;
    return crdi_proxy_do(u, &c);
}

// ---- beginning ---------------------------------------------------------------------------------

// The spec as it is, with the folder for the path and without what an FMU does not look at;
// structural parameters as texts, as they decide sizes. The others are set from here.
// Settings come later, but for those that are wanted before: structural ones, and inputs of FMI 1,
// which cannot be asked for them.
static void fill_spec(crdi_mail* m, const void* with)
{
    const crdi_proxy* u = with;
    const crdi_unit_core* core = u->base.core;
    const bool one = strncmp(u->base.info.kind, "FMU 1.", 6) == 0;
    crdi_mail_put_u64(m, sizeof(crd_unit_spec));
    crdi_mail_put(m, u->base.spec, sizeof(crd_unit_spec));
    crdi_mail_put_text(m, u->base.name);
    crdi_mail_put_text(m, u->folder);
    crdi_mail_put_text(m, u->library);
    uint64_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t i = 0; i < core->setting_count; i++) {
            const crdi_setting* s = &core->settings[i];
            const crd_variable* v = &u->base.info.variables[s->variable];
            if (v->causality != CRD_STRUCTURAL_PARAMETER && !(one && v->causality == CRD_INPUT)) {
                continue;
            }
            count++;
            if (!pass) { continue; }
            crd_text text, start;
            int32_t variable = 0;
            bool differs = false;
            crd_text_init(&text, u->base.ctx);
            crd_text_init(&start, u->base.ctx);
            if (crd_unit_describe_setting((crd_unit*)&u->base, i, &variable, &differs, &text,
                                          &start) < 0) {
                m->failed = true;
            }
            crdi_mail_put_text(m, v->name);
            crdi_mail_put_text(m, text.data ? text.data : "");
            crd_text_clear(&text);
            crd_text_clear(&start);
        }
        if (!pass) { crdi_mail_put_u64(m, count); }
    }
}

// A new process knows nothing of what the one before had.
static void forget_process(crdi_worker* w)
{
    for (int32_t i = 0; i < w->unit_count; i++) {
        crdi_proxy* u = w->units[i];
        if (!u) { continue; }
        u->created = u->begun = u->steps = u->said = false;
        u->answer = NULL;
        u->waiting = 0;
        u->events = 0;
        u->watched = NULL;
        u->gain_count = 0;
        u->gains_at = 0;
        for (crdi_proxy_binding* p = u->bindings; p; p = p->next) {
            p->handle = -1;
            p->waits = p->rates_only = false;
            p->watch = 0;
            p->seat = NULL;
            memset(p->fresh, 0, sizeof p->fresh);
        }
        while (u->spare) {
            crdi_proxy_binding* s = u->spare;
            u->spare = s->next;
            crd_free(u->base.ctx, s);
        }
        u->handles = 0; // states go on: none of before is taken for one of after
    }
}

// The library as a file: it may be elsewhere, compiled here, or by a link in a folder of the
// user's.
static const char* find_library(const crdi_proxy* u, char path[PATH_MAX])
{
    char named[PATH_MAX];
    snprintf(named, sizeof named, "%s/%s", u->folder, u->library);
    if (u->library[0] == '/') { return u->library; }
    return !u->unpacked && u->library[0] && realpath(named, path) ? path : NULL;
}

// One unit for each folder and library that the worker has: there may be a hundred thousand units
// of one FMU.
enum { MOST_FOLDERS = 4095 };
static size_t list_folders(const crdi_worker* w, const crdi_proxy* list[MOST_FOLDERS])
{
    size_t count = 0;
    for (int32_t i = 0; i < w->unit_count && count < MOST_FOLDERS; i++) {
        const crdi_proxy* u = w->units[i];
        size_t k = 0;
        while (u && k < count &&
               (strcmp(list[k]->folder, u->folder) != 0 ||
                strcmp(list[k]->library, u->library) != 0)) {
            k++;
        }
        if (u && k == count) { list[count++] = u; }
    }
    return count;
}

// There are FMUs that write into their resources: into a copy that was unpacked for this run they
// may. A folder of the user's stays as it is.
static void fill_resources(crdi_mail* m, const crdi_proxy* const* list, size_t folders)
{
    uint64_t count = 0;
    for (size_t i = 0; i < folders; i++) {
        count += list[i]->unpacked;
    }
    crdi_mail_put_u64(m, count);
    for (size_t i = 0; i < folders; i++) {
        char path[PATH_MAX];
        if (!list[i]->unpacked) { continue; }
        snprintf(path, sizeof path, "%s/resources", list[i]->folder);
        crdi_mail_put_text(m, path);
    }
}

// All that the units of the worker read, known before the first of them is loaded.
static void fill_sandbox(crdi_mail* m, const void* with)
{
    const crdi_worker* w = with;
    const uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
    const crdi_proxy* list[MOST_FOLDERS];
    const size_t folders = list_folders(w, list);
    uint64_t network = 0, count = folders < MOST_FOLDERS ? folders : UINT32_MAX; // too many
    char path[PATH_MAX];
    for (int32_t i = 0; i < w->unit_count; i++) {
        network |= w->units[i] && w->units[i]->base.spec->network;
    }
    for (size_t i = 0; i < folders; i++) {
        count += find_library(list[i], path) != NULL;
    }
    crdi_mail_put_text(m, w->scratch);
    crdi_mail_put_u64(m, network);
    crdi_mail_put_u64(m, pages * (uint64_t)sysconf(_SC_PAGESIZE) / 4 * 3 + CRDI_CHANNEL_BYTES);
    crdi_mail_put_u64(m, FILE_BYTES);
    crdi_mail_put_u64(m, count);
    for (size_t i = 0; i < folders; i++) {
        const char* library = find_library(list[i], path);
        crdi_mail_put_text(m, list[i]->folder);
        if (library) { crdi_mail_put_text(m, library); }
    }
    fill_resources(m, list, folders);
}

static crd_status shut_in(crdi_proxy* u)
{
    const crdi_proxy_call c = {
        .request = {.op = CRDI_OP_SHUT_IN,
                    .handle = -1,
                    .area = (uint64_t)((char*)u->answer - u->worker->memory)},
        .fill = fill_sandbox,
        .with = u->worker};
    const crd_status st = crdi_proxy_do(u, &c);
    const bool begun = st < 0 && !u->worker->failed;
    return begun ? crdi_fail_in(u->base.ctx, st, "its worker process has no sandbox") : st;
}

static crd_status start_process(crdi_proxy* u)
{
    crdi_worker* w = u->worker;
    crd_status st = CRD_OK;
    crdi_worker_lock(&w->lock);
    const bool fresh = !w->pid;
    if (fresh) {
        forget_process(w);
        st = crdi_worker_start(w, u->base.ctx);
    }
    if (st >= 0 && !u->answer) {
        const size_t at = crdi_worker_area(w, sizeof(crdi_answer) + CRDI_CHANNEL_TEXT);
        if (at == SIZE_MAX) {
            st = crdi_fail(u->base.ctx, CRD_E_RANGE, "its worker process has too many units");
        } else {
            u->answer = (crdi_answer*)(w->memory + at);
            u->text = w->memory + at + sizeof(crdi_answer);
        }
    }
    crdi_worker_unlock(&w->lock);
    return st >= 0 && fresh ? shut_in(u) : st;
}

// What fails before the first step of an FMU that starts its tool fails here for sure.
static crd_status say_tool(crdi_proxy* u, crd_status st)
{
    const crdi_fmi_unit* f = (const crdi_fmi_unit*)u->inner;
    const bool tool =
        f->exchange ? f->d->exchange.needs_execution_tool : f->d->needs_execution_tool;
    if (st >= 0 || !tool || !(u->worker->pid || u->worker->failed)) { return st; }
    return crdi_fail(u->base.ctx, st,
                     "%s; the FMU needs its tool (%s), and from a worker process no program can be "
                     "started: trust it and choose 'isolate: none' for the unit, or --isolate none",
                     crd_error_text(u->base.ctx),
                     *f->d->generation_tool ? f->d->generation_tool : "it does not say which");
}

static void fill_plan(crdi_mail* m, const void* with)
{
    const crd_unit* u = with;
    crdi_mail_put_u64(m, (uint64_t)u->input_order);
    crdi_mail_put_number(m, u->step);
}

static crd_status proxy_instantiate(crd_unit* unit)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    crd_status st = CRD_OK;
    const double limit = unit->spec->limit;
    u->limit = limit > 0 ? (int64_t)(limit * 1e9) : LIMIT;
    unit->wants_stop = false;
    CRD_TRY(start_process(u));
    if (!u->created) {
        const crdi_proxy_call create = {
            .request = {.op = CRDI_OP_CREATE,
                        .handle = -1,
                        .area = (uint64_t)((char*)u->answer - u->worker->memory)},
            .fill = fill_spec,
            .with = u};
        CRD_TRY(crdi_proxy_do(u, &create));
        u->created = true;
    }
    for (crdi_proxy_binding* p = u->bindings; p; p = p->next) {
        CRD_TRY(crdi_proxy_bind(u, p));
    }
    u->steps = false;
    const crdi_proxy_call c = {
        .request = {.op = CRDI_OP_INSTANTIATE, .handle = -1}, .fill = fill_plan, .with = unit};
    u->epoch++;
    CRD_TRY(crdi_proxy_do(u, &c));
fail:
    return say_tool(u, st);
}

static void fill_experiment(crdi_mail* m, const void* with)
{
    const crd_experiment* e = with;
    crdi_mail_put_number(m, e->start);
    crdi_mail_put_number(m, e->stop);
    crdi_mail_put_number(m, e->tolerance);
    crdi_mail_put_u64(m, (e->has_stop ? 1u : 0u) | (e->has_tolerance ? 2u : 0u) |
                             (e->may_roll_back ? 4u : 0u));
}

static crd_status proxy_enter(crd_unit* unit, const crd_experiment* e)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    u->experiment = *e;
    u->epoch++;
    const crdi_proxy_call c = {
        .request = {.op = CRDI_OP_ENTER, .handle = -1}, .fill = fill_experiment, .with = e};
    return say_tool(u, crdi_proxy_do(u, &c));
}

static crd_status take_findings(crdi_proxy* u, crdi_mail* m, void* into)
{
    (void)into;
    const uint64_t order = crdi_mail_get_u64(m);
    const bool lower = order < (uint64_t)u->base.input_order;
    if (lower) { u->base.input_order = u->base.info.max_input_order = (int)order; }
    u->base.begin_again = crdi_mail_get_u64(m) != 0 && lower; // else it might do so for ever
    return CRD_OK;
}

static crd_status proxy_exit(crd_unit* unit)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    const crdi_proxy_call c = {.request = {.op = CRDI_OP_EXIT, .handle = -1},
                               .take = take_findings};
    const crd_status st = crdi_proxy_do(u, &c);
    u->steps = st >= 0;
    u->epoch++; // what was read before may have changed
    return st >= 0 && !u->base.begin_again ? crdi_proxy_keep(u, u->experiment.start) : st;
}

// ---- end ---------------------------------------------------------------------------------------

static crd_status proxy_terminate(crd_unit* unit)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    if (!u->created || u->said) { return CRD_OK; }
    // Whoever interrupts wants an end in good order; `limit` stays.
    u->experiment.interrupted = NULL;
    return do_simply(u, CRDI_OP_TERMINATE);
}

static void proxy_interrupt(crd_unit* unit)
{
    atomic_store(&((crdi_proxy*)unit)->given_up, true);
}

static void proxy_destroy(crd_unit* unit)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    crd_context* ctx = unit->ctx;
    u->experiment = (crd_experiment){0};
    atomic_store(&u->given_up, false);
    if (u->created && !u->worker->failed && do_simply(u, CRDI_OP_DESTROY) < 0) {
        crdi_log(ctx, CRD_LOG_WARNING, "unit '%s': %s", unit->name, crd_error_text(ctx));
    }
    if (u->worker) { crdi_worker_leave(u); }
    while (u->spare) {
        crdi_proxy_binding* s = u->spare;
        u->spare = s->next;
        crd_free(ctx, s);
    }
    u->inner->ops->destroy(u->inner); // what else it has is this unit's
    crd_free(ctx, u->kept);
    crd_free(ctx, u);
}

// ---- states ------------------------------------------------------------------------------------

// Nobody waits for these: they are in order with the steps, and what fails comes with the next one.
typedef struct proxy_state {
    int32_t handle;
    double t, next_event; // as of then
    bool wants_stop;
} proxy_state;

static crd_status push_state(crdi_proxy* u, crdi_channel_op op, const proxy_state* s)
{
    crdi_worker* w = u->worker;
    const crdi_request r = {.op = (uint16_t)op, .handle = s->handle};
    if (w->failed || !u->created) { return crdi_worker_gone(u); }
    if (u->begun) { // nobody has asked for the end of the step
        (void)crdi_worker_wait(u);
        u->begun = false;
    }
    crdi_worker_lock(&w->lock);
    crdi_proxy_flush(u);
    crdi_worker_push(u, &r);
    crdi_worker_unlock(&w->lock);
    return CRD_OK;
}

static crd_status proxy_save(crd_unit* unit, void** state)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    const bool fresh = !*state;
    if (fresh) { *state = crdi_new(unit->ctx, sizeof(proxy_state)); }
    proxy_state* s = *state;
    if (!s) { return CRD_E_MEMORY; }
    if (fresh) { s->handle = u->states++; }
    s->t = u->kept_at;
    s->next_event = unit->next_event;
    s->wants_stop = unit->wants_stop;
    return push_state(u, CRDI_OP_SAVE, s);
}

static crd_status proxy_restore(crd_unit* unit, void* state)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    const proxy_state* s = state;
    u->epoch++;
    unit->next_event = s->next_event;
    unit->wants_stop = s->wants_stop;
    const crd_status st = push_state(u, CRDI_OP_RESTORE, s);
    return st >= 0 ? crdi_proxy_keep(u, s->t) : st;
}

static void proxy_free_state(crd_unit* unit, void** state)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    if (!*state) { return; }
    if (u->created && !u->worker->failed) { (void)push_state(u, CRDI_OP_FREE, *state); }
    crd_free(unit->ctx, *state);
    *state = NULL;
}

// ---- derivatives -------------------------------------------------------------------------------

typedef struct {
    const int32_t *unknowns, *knowns;
    int nu, nk;
    const double* seed;
    double* result;
} direction;

static void fill_direction(crdi_mail* m, const void* with)
{
    const direction* d = with;
    crdi_mail_put_u64(m, (uint64_t)d->nu);
    crdi_mail_put_u64(m, (uint64_t)d->nk);
    crdi_mail_put(m, d->unknowns, (size_t)d->nu * sizeof *d->unknowns);
    crdi_mail_put(m, d->knowns, (size_t)d->nk * sizeof *d->knowns);
    crdi_mail_put(m, d->seed, (size_t)d->nk * sizeof *d->seed);
}

static crd_status take_numbers(crdi_mail* m, double* to, size_t count)
{
    const void* from = crdi_mail_get(m, count * sizeof *to);
    if (from && count) { memcpy(to, from, count * sizeof *to); }
    return CRD_OK;
}

static crd_status take_direction(crdi_proxy* u, crdi_mail* m, void* into)
{
    (void)u;
    const direction* d = into;
    return take_numbers(m, d->result, (size_t)d->nu);
}

static crd_status proxy_directional(crd_unit* unit, const int32_t* unknowns, int nu,
                                    const int32_t* knowns, int nk, const double* seed,
                                    double* result)
{
    crdi_proxy* u = (crdi_proxy*)unit;
    const bool one = nu == 1 && nk == 1;
    const crdi_channel_gain g = {one ? *unknowns : 0, one ? *knowns : 0, one ? *seed : 0};
    if (one && crdi_proxy_find_gain(u, &g, result)) { return CRD_OK; }
    direction d = {unknowns, knowns, nu, nk, seed, result};
    const crdi_proxy_call c = {.request = {.op = CRDI_OP_DIRECTIONAL, .handle = -1},
                               .fill = fill_direction,
                               .take = take_direction,
                               .with = &d,
                               .into = &d};
    const crd_status st = crdi_proxy_do(u, &c);
    if (one && st >= 0) { crdi_proxy_watch_gain(u, &g); }
    return st;
}

typedef struct {
    const crd_unit_port *in, *out;
    crd_linearised* l;
} linearisation;

static void fill_ports(crdi_mail* m, const void* with)
{
    const linearisation* j = with;
    crdi_mail_put_u64(m, (uint64_t)j->l->inputs);
    crdi_mail_put_u64(m, (uint64_t)j->l->outputs);
    crdi_mail_put(m, j->in, (size_t)j->l->inputs * sizeof *j->in);
    crdi_mail_put(m, j->out, (size_t)j->l->outputs * sizeof *j->out);
}

static crd_status take_matrices(crdi_proxy* u, crdi_mail* m, void* into)
{
    crd_linearised* l = ((linearisation*)into)->l;
    const uint64_t states = crdi_mail_get_u64(m), flags = crdi_mail_get_u64(m);
    if (states > 100000) { return crdi_fail(u->base.ctx, CRD_E_UNIT, "too many states"); }
    l->ctx = u->base.ctx;
    l->states = (int)states;
    l->exact = flags & 1;
    l->guessed = flags & 2;
    const size_t n = (size_t)states, in = (size_t)l->inputs, out = (size_t)l->outputs;
    double** const matrices[] = {&l->A, &l->B, &l->C, &l->D};
    const size_t sizes[] = {n * n, n * in, out * n, out * in};
    for (int i = 0; i < 4; i++) {
        if (sizes[i] * sizeof(double) > m->left) { m->failed = true; }
        *matrices[i] = m->failed ? NULL : crdi_new_array(l->ctx, sizes[i], sizeof(double));
        if (!*matrices[i]) { return m->failed ? CRD_OK : CRD_E_MEMORY; }
        (void)take_numbers(m, *matrices[i], sizes[i]);
    }
    return CRD_OK;
}

crd_status crdi_worker_linearise(crd_unit* u, const crd_unit_port* in, int in_count,
                                 const crd_unit_port* out, int out_count, crd_linearised* result)
{
    crd_linearised l = {.inputs = in_count, .outputs = out_count};
    linearisation j = {in, out, &l};
    const crdi_proxy_call c = {.request = {.op = CRDI_OP_LINEARISE, .handle = -1},
                               .fill = fill_ports,
                               .take = take_matrices,
                               .with = &j,
                               .into = &j};
    const crd_status st = crdi_proxy_do((crdi_proxy*)u, &c);
    if (st < 0) {
        crd_linearised_clear(&l);
    } else {
        *result = l;
    }
    return st;
}

// ---- names -------------------------------------------------------------------------------------

static int32_t proxy_find(const crd_unit* unit, const char* name)
{
    const crd_unit* inner = ((const crdi_proxy*)unit)->inner;
    return inner->ops->find(inner, name);
}

static bool proxy_dimension(const crd_unit* unit, int32_t variable, crd_dimension* out)
{
    return crdi_unit_dimension(((const crdi_proxy*)unit)->inner, variable, out);
}

static const char* proxy_item_at(const crd_unit* unit, int32_t variable, int32_t k, int64_t* value)
{
    return crdi_unit_item_at(((const crdi_proxy*)unit)->inner, variable, k, value);
}

static uint32_t proxy_extent(const crd_unit* unit, int32_t variable, int axis)
{
    return crdi_unit_extent(((const crdi_proxy*)unit)->inner, variable, axis);
}

static const crd_unit_state_ops state_ops = {proxy_save, proxy_restore, proxy_free_state,
                                             crdi_proxy_write, crdi_proxy_read};
static const crd_unit_derivative_ops derivative_ops = {crdi_proxy_set_rates, crdi_proxy_get_rates,
                                                       proxy_directional};
static const crd_unit_lane_ops lane_ops = {crdi_proxy_prepare, crdi_proxy_unprepare,
                                           crdi_proxy_join};
static const crd_unit_remote_ops remote_ops = {
    .begin = crdi_proxy_begin, .begin_row = crdi_proxy_begin_row, .interrupt = proxy_interrupt};
static const crd_unit_name_ops name_ops = {proxy_dimension, proxy_item_at, proxy_extent};

static const crd_unit_ops ops = {
    .instantiate = proxy_instantiate,
    .enter_initialization = proxy_enter,
    .exit_initialization = proxy_exit,
    .set = crdi_proxy_set,
    .get = crdi_proxy_get,
    .step = crdi_proxy_step,
    .terminate = proxy_terminate,
    .destroy = proxy_destroy,
    .find = proxy_find,
    .state = &state_ops,
    .derivatives = &derivative_ops,
    .remote = &remote_ops,
    .lane = &lane_ops,
    .names = &name_ops,
};

bool crdi_worker_has(const crd_unit* u)
{
    return u->ops == &ops;
}

// The unit around has the context and the core of the inner one, which keeps what it describes.
crd_status crdi_worker_wrap(crd_context* ctx, crd_unit_store* store, crd_unit** unit)
{
    crd_unit* inner = *unit;
    crdi_proxy* u = crdi_new(inner->ctx, sizeof *u);
    crd_status st = u ? CRD_OK : CRD_E_MEMORY;
    if (u) {
        const crd_fmu* fmu = ((const crdi_fmi_unit*)inner)->fmu;
        u->base = *inner;
        u->base.ops = &ops;
        u->base.remark = inner->spec->restart > 0 ? u->remark : NULL;
        u->inner = inner;
        u->epoch = 1;
        u->index = -1;
        u->folder = crd_fmu_folder(fmu);
        u->unpacked = crdi_fmu_is_unpacked(fmu);
        u->path = crd_fmu_path(fmu);
        u->library = crdi_fmu_library(fmu, ((const crdi_fmi_unit*)inner)->exchange);
        st = crdi_worker_join(u, store);
        *unit = &u->base;
    }
    if (st < 0) {
        crdi_fail(ctx, st, "unit '%s': %s", inner->name, crd_error_text(inner->ctx));
        crd_unit_destroy(*unit);
        *unit = NULL;
    }
    return st;
}
