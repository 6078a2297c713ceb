// The adapter: a primary and its stand-in behind the functions of one unit.
#include "shared/unit.h"
#include "unit/standby/standby.h"

#include <math.h>
#include <string.h>

#include "unit/dcp/dcp_unit.h"

static const char* const uses[] = {"auto", "bench", "model"};      // by crdi_use
static const char* const sources[] = {"bench", "model", "coming"}; // by crd_board_source

// What one of the two says is what the unit says.
static crd_status failure_of(crdi_standby* u, const crd_unit* by, crd_status st)
{
    if (st >= 0) { return st; }
    return by == u->model ? crdi_fail(u->base.ctx, st, "the stand-in: %s", crd_error_text(by->ctx))
                          : crdi_fail(u->base.ctx, st, "%s", crd_error_text(by->ctx));
}

// ---- values ------------------------------------------------------------------------------------

static crd_status set_use(crdi_standby* u, int64_t value)
{
    if (value < CRDI_USE_AUTO || value > CRDI_USE_MODEL) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE,
                         "'standby.use' = %lld, expected 0 (auto), 1 (bench) or 2 (model)",
                         (long long)value);
    }
    u->use_wanted = (crdi_use)value;
    return CRD_OK;
}

// Parameters go to the primary as it was made; a new one gets those of the description.
static crd_status standby_set_parameters(crdi_standby* u, const crd_binding* b, const crd_values* v)
{
    crdi_strand* s = b->prepared;
    crd_unit* p = u->first.unit;
    if (!s) { return CRD_OK; }
    if (u->configured && u->seat != &u->first) {
        return crdi_fail(u->base.ctx, CRD_E_STATE,
                         "'%s' cannot be set while the unit is not the one that the run began with",
                         u->variables[s->ways[0].own].name);
    }
    for (int k = 0; k < s->count; k++) {
        const crdi_way* w = &s->ways[k];
        const crd_status st =
            crdi_unit_values_copy(p->ctx, w->kind, w->size, v, w->at, &s->values, w->slot);
        if (st < 0) { return st; }
    }
    return failure_of(u, p, p->ops->set(p, s->binding, &s->values));
}

static crd_status standby_set(crd_unit* unit, const crd_binding* b, const crd_values* v)
{
    crdi_standby* u = (crdi_standby*)unit;
    for (int32_t j = 0; j < b->count; j++) {
        const int32_t i = b->variables[j], from = b->offsets[j];
        const crd_variable* own = &u->variables[i];
        crd_status st = i == u->use ? set_use(u, v->integer[from]) : CRD_OK;
        if (st >= 0) {
            st = crdi_unit_values_copy(unit->ctx, crd_type_kind(own->type), own->size, v, from,
                                       &u->values, u->offsets[i]);
        }
        if (st < 0) { return st; }
    }
    u->dirty = true;
    return standby_set_parameters(u, b, v);
}

// During the initialisation outputs follow inputs.
static crd_status standby_settle(crdi_standby* u)
{
    crd_status st = CRD_OK;
    if (!u->initializing || !u->dirty) { return CRD_OK; }
    if (u->seat) {
        st = crdi_strand_set(u, &u->seat->in);
        if (st >= 0) { st = crdi_strand_get(u, &u->seat->out, &u->seen); }
        if (st < 0) { return failure_of(u, u->seat->unit, st); }
    }
    st = crdi_strand_set(u, &u->to_model);
    if (st >= 0) { st = crdi_strand_get(u, &u->from_model, &u->shadow); }
    if (st < 0) { return failure_of(u, u->model, st); }
    u->dirty = false;
    return crdi_standby_hand_out(u, u->start, 0);
}

static crd_status standby_get(crd_unit* unit, const crd_binding* b, crd_values* v)
{
    crdi_standby* u = (crdi_standby*)unit;
    crd_status st = standby_settle(u);
    for (int32_t j = 0; j < b->count && st >= 0; j++) {
        const crd_variable* own = &u->variables[b->variables[j]];
        st = crdi_unit_values_copy(unit->ctx, crd_type_kind(own->type), own->size, &u->values,
                                   u->offsets[b->variables[j]], v, b->offsets[j]);
    }
    return st;
}

static bool standby_is_given(const crd_variable* v)
{
    return v->causality == CRD_PARAMETER || v->causality == CRD_STRUCTURAL_PARAMETER;
}

// Inputs and inner variables of the primary are bound with it; its parameters go straight there.
static crd_status standby_prepare(crd_unit* unit, crd_binding* b)
{
    crdi_standby* u = (crdi_standby*)unit;
    crd_status st = CRD_OK;
    int count = 0;
    crdi_way* ways = crdi_new_array(unit->ctx, (size_t)b->count, sizeof *ways);
    crdi_strand* s = NULL;
    if (!ways) { return CRD_E_MEMORY; }
    for (int32_t j = 0; j < b->count; j++) {
        const int32_t i = b->variables[j];
        const crd_variable* v = &u->variables[i];
        if (i >= u->primary_count) { continue; }
        if (standby_is_given(v)) {
            ways[count++] = (crdi_way){.own = i,
                                       .there = i,
                                       .at = b->offsets[j],
                                       .size = v->size,
                                       .kind = crd_type_kind(v->type),
                                       .gain = 1};
        } else if (!u->wanted[i] && v->causality != CRD_OUTPUT) {
            if (u->configured) {
                st = crdi_fail(unit->ctx, CRD_E_STATE,
                               "'%s' cannot be connected any more: the unit is initialised",
                               v->name);
                goto fail;
            }
            u->wanted[i] = true;
        }
    }
    if (count == 0) { goto fail; }
    s = crdi_new(unit->ctx, sizeof *s);
    if (!s) {
        st = CRD_E_MEMORY;
        goto fail;
    }
    b->prepared = s; // from here on it is freed
    CRD_TRY(crdi_strand_create(unit->ctx, u->first.unit, ways, count, s));
fail:
    crd_free(unit->ctx, ways);
    return st;
}

static void standby_unprepare(crd_unit* unit, crd_binding* b)
{
    if (!b->prepared) { return; }
    crdi_strand_clear(unit->ctx, b->prepared);
    crd_free(unit->ctx, b->prepared);
}

// ---- the beginning -----------------------------------------------------------------------------

static crd_status standby_instantiate(crd_unit* unit)
{
    crdi_standby* u = (crdi_standby*)unit;
    crd_unit* const both[] = {u->first.unit, u->model};
    for (int i = 0; i < 2; i++) {
        both[i]->step = unit->step;
        both[i]->input_order = 0;
        const crd_status st = crd_unit_instantiate(both[i]);
        if (st < 0) { return failure_of(u, both[i], st); }
    }
    u->first.alive = u->model_alive = true;
    u->use_wanted = (crdi_use)u->values.integer[u->offsets[u->use]];
    return CRD_OK;
}

static crd_status open_up(crdi_standby* u, const crd_experiment* e)
{
    crd_status st = CRD_OK;
    if (u->opened) { return CRD_OK; }
    u->opened = true;
    u->experiment = *e;
    u->start = e->start;
    atomic_store(&u->now, e->start);
    CRD_TRY(crdi_standby_open(u));
    CRD_TRY(crdi_seat_bind(u, &u->first));
fail:
    return st;
}

static crd_status standby_approach(crd_unit* unit, const crd_experiment* e)
{
    crdi_standby* u = (crdi_standby*)unit;
    crd_unit* p = u->first.unit;
    const crd_status st = open_up(u, e);
    if (st < 0 || u->use_wanted == CRDI_USE_MODEL || !CRDI_UNIT_HAS(p, remote, approach)) {
        return st;
    }
    return failure_of(u, p, p->ops->remote->approach(p, e));
}

static crd_status standby_enter_initialization(crd_unit* unit, const crd_experiment* e)
{
    crdi_standby* u = (crdi_standby*)unit;
    crd_status st = CRD_OK;
    CRD_TRY(open_up(u, e));
    CRD_TRY(crdi_strand_create(unit->ctx, u->model, u->into, u->into_count, &u->to_model));
    CRD_TRY(crdi_strand_create(unit->ctx, u->model, u->out, u->out_count, &u->from_model));
    u->configured = true;
    u->model_good = true;
    CRD_TRY(failure_of(u, u->model, u->model->ops->enter_initialization(u->model, e)));
    if (u->use_wanted == CRDI_USE_MODEL) {
        u->source = CRDI_BOARD_MODEL;
        u->part = 0;
        u->why = CRDI_WHY_WANTED;
        atomic_store(&u->post, CRDI_POST_AWAY); // until somebody asks for it
    } else {
        crd_unit* p = u->first.unit;
        CRD_TRY(failure_of(u, p, p->ops->enter_initialization(p, e)));
        u->seat = &u->first;
        u->good = true;
    }
    u->initializing = u->dirty = true;
fail:
    return st;
}

static crd_status standby_exit_initialization(crd_unit* unit)
{
    crdi_standby* u = (crdi_standby*)unit;
    crd_status st = CRD_OK;
    CRD_TRY(standby_settle(u));
    if (u->seat) {
        crd_unit* p = u->seat->unit;
        CRD_TRY(failure_of(u, p, p->ops->exit_initialization(p)));
        CRD_TRY(failure_of(u, p, crdi_strand_get(u, &u->seat->out, &u->seen)));
        u->unit_events = p->events;
        u->fresh = u->start;
    }
    CRD_TRY(failure_of(u, u->model, u->model->ops->exit_initialization(u->model)));
    CRD_TRY(failure_of(u, u->model, crdi_strand_get(u, &u->from_model, &u->shadow)));
    u->unit_events += u->model->events;
    u->initializing = u->dirty = false;
    return crdi_standby_hand_out(u, u->start, 0);
fail:
    return st;
}

// ---- steps -------------------------------------------------------------------------------------

// What whoever brings up the primary will begin with.
static void mirror_inputs(crdi_standby* u)
{
    for (int k = 0; k < u->first.in.count; k++) {
        const crdi_way* w = &u->first.in.ways[k];
        for (uint32_t e = 0; e < w->size; e++) {
            const size_t at = (size_t)w->at + e;
            uint64_t bits = 0;
            if (w->kind == CRD_REAL) {
                memcpy(&bits, &u->values.real[at], sizeof bits);
                atomic_store_explicit(&u->mirror[at], bits, memory_order_relaxed);
            } else if (w->kind == CRD_INTEGER) {
                memcpy(&bits, &u->values.integer[at], sizeof bits);
                atomic_store_explicit(&u->mirror[u->real_count + at], bits, memory_order_relaxed);
            }
        }
    }
}

static void note_origin(crdi_standby* u)
{
    const int64_t origin = u->seat ? u->seat->unit->origin : 0;
    if (u->base.origin != 0 || origin == 0) { return; }
    u->base.origin = origin;
    atomic_store_explicit(&u->origin, origin, memory_order_relaxed);
}

static void standby_begin(crd_unit* unit, double t, double h)
{
    crdi_standby* u = (crdi_standby*)unit;
    crdi_standby_meet(u, t);
    u->begun = true;
    if (!u->seat) {
        mirror_inputs(u);
        return;
    }
    crd_unit* p = u->seat->unit;
    if (crdi_strand_set(u, &u->seat->in) < 0) { return; } // the step will tell
    if (CRDI_UNIT_HAS(p, remote, begin)) { p->ops->remote->begin(p, t, h); }
    note_origin(u);
}

// The step length seldom changes.
static void note_step(crdi_standby* u, double h)
{
    if (h == u->h) { return; }
    u->h = h;
    u->decay = exp(-h / u->fade);
    if (isnan(u->after)) {
        const crd_unit* p = u->first.unit;
        const double every = isnan(p->info.step) ? 0 : p->info.step * u->primary.session.steps;
        u->after = 5 * fmax(h, u->real_time ? every : 0);
    }
}

static crd_status step_primary(crdi_standby* u, double t, double h, bool* waits)
{
    *waits = false;
    if (!u->seat) { return CRD_OK; }
    crd_unit* p = u->seat->unit;
    const int64_t before = p->waited;
    crd_status st = crdi_strand_set(u, &u->seat->in);
    if (st >= 0) { st = p->ops->step(p, t, h); }
    if (st >= 0) { st = crdi_strand_get(u, &u->seat->out, &u->seen); }
    u->base.waited += p->waited - before;
    note_origin(u);
    if (st < 0) { return crdi_standby_lose(u, st); }
    *waits = true;
    if (p->wants_stop) { crdi_unit_wish_stop(&u->base); }
    crdi_standby_judge(u, t + h);
    return CRD_OK;
}

static void step_model(crdi_standby* u, double t, double h)
{
    if (u->model_failed) { return; }
    memcpy(u->before, u->shadow.real, u->real_count * sizeof *u->before);
    crd_status st = crdi_strand_set(u, &u->to_model);
    if (st >= 0) { st = u->model->ops->step(u->model, t, h); }
    if (st >= 0) { st = crdi_strand_get(u, &u->from_model, &u->shadow); }
    if (st < 0) {
        (void)failure_of(u, u->model, st);
        u->model_failed = true;
    }
    if (u->model->wants_stop && u->source == CRDI_BOARD_MODEL) { crdi_unit_wish_stop(&u->base); }
}

// A run that the primary kept in real time stays there without it.
static void keep_pace(crdi_standby* u, double t, double h)
{
    if (!u->real_time) { return; }
    if (u->base.origin == 0) { // it began with the model
        u->base.origin = crdi_session_now() - llround(1e9 * (t - u->start));
        atomic_store_explicit(&u->origin, u->base.origin, memory_order_relaxed);
    }
    const int64_t before = crdi_now_ns();
    crdi_standby_wait(u, u->base.origin + llround(1e9 * (t + h - u->start)));
    u->base.waited += crdi_now_ns() - before;
}

static crd_status standby_step(crd_unit* unit, double t, double h)
{
    crdi_standby* u = (crdi_standby*)unit;
    bool waits = false;
    if (!u->begun) { standby_begin(unit, t, h); }
    u->begun = false;
    note_step(u, h);
    // In real time the model computes while the primary does, unless it wants what that measures.
    if (!u->feeds_back) { step_model(u, t, h); }
    const crd_status st = step_primary(u, t, h, &waits);
    if (st < 0) { return st; }
    if (u->feeds_back) { step_model(u, t, h); }
    if (!waits) { keep_pace(u, t, h); }
    const int64_t events = u->model->events + (u->seat ? u->seat->unit->events : 0);
    if (events != u->unit_events) { unit->events++; }
    u->unit_events = events;
    return crdi_standby_hand_out(u, t + h, h);
}

// ---- the rest ----------------------------------------------------------------------------------

// A primary that is not reached over a network has no link to tell about.
static bool link_stats(const crd_unit* unit, crd_link_stats* out)
{
    const crdi_standby* u = (const crdi_standby*)unit;
    *out = u->link;
    return CRDI_UNIT_HAS(u->first.unit, remote, link);
}

static const crdi_board* standby_board(const crd_unit* unit)
{
    return ((const crdi_standby*)unit)->board;
}

static void standby_interrupt(crd_unit* unit)
{
    crdi_standby* u = (crdi_standby*)unit;
    crdi_standby_seat* s = u->seat;
    crdi_standby_give_up(u);
    if (s && CRDI_UNIT_HAS(s->unit, remote, interrupt)) {
        s->unit->ops->remote->interrupt(s->unit);
    }
}

static void standby_halt(crd_unit* unit)
{
    crdi_standby* u = (crdi_standby*)unit;
    crdi_standby_give_up(u);
    if (u->seat && CRDI_UNIT_HAS(u->seat->unit, remote, halt)) {
        u->seat->unit->ops->remote->halt(u->seat->unit);
    }
    if (u->model_alive && CRDI_UNIT_HAS(u->model, remote, halt)) {
        u->model->ops->remote->halt(u->model);
    }
}

// A primary that was lost has had its say: what is still wrong with it is a warning.
static crd_status end_seat(crdi_standby* u, crdi_standby_seat* s)
{
    if (!s || !s->alive) { return CRD_OK; }
    s->alive = false;
    const crd_status st = s->unit->ops->terminate(s->unit);
    if (st < 0 && s->failed) {
        crdi_log(u->base.ctx, CRD_LOG_WARNING, "unit '%s', which was lost: %s", u->base.name,
                 crd_error_text(s->unit->ctx));
        return CRD_OK;
    }
    return failure_of(u, s->unit, st);
}

static crd_status standby_terminate(crd_unit* unit)
{
    crdi_standby* u = (crdi_standby*)unit;
    crdi_standby_gather(u);
    crd_status st = end_seat(u, u->seat);
    if (u->passing && end_seat(u, u->passing) < 0) { st = CRD_E_UNIT; }
    if (end_seat(u, &u->first) < 0) { st = CRD_E_UNIT; }
    if (u->model_alive) {
        u->model_alive = false;
        const crd_status ended = u->model->ops->terminate(u->model);
        if (st >= 0 && u->model_good) { st = failure_of(u, u->model, ended); }
    }
    crdi_standby_close(u);
    crdi_standby_show(u);
    return st;
}

static void standby_abandon(crd_unit* unit)
{
    crdi_standby* u = (crdi_standby*)unit;
    crdi_unit_abandon(u->model);
    crdi_unit_abandon(u->first.unit);
    if (u->seat && u->seat != &u->first) { crdi_unit_abandon(u->seat->unit); }
}

static void free_seat(crdi_standby* u, crdi_standby_seat* s)
{
    if (!s || s == &u->first) { return; }
    crdi_seat_clear(s);
    crd_free(s->ctx, s);
}

static void standby_destroy(crd_unit* unit)
{
    crdi_standby* u = (crdi_standby*)unit;
    crdi_standby_close(u);
    if (u->passing != u->seat) { free_seat(u, u->passing); }
    free_seat(u, u->seat);
    crdi_seat_clear(&u->first);
    crdi_strand_clear(unit->ctx, &u->to_model);
    crdi_strand_clear(unit->ctx, &u->from_model);
    crd_unit_destroy(u->model);
    crdi_standby_clear_values(u);
    crdi_board_destroy(u->board);
    crd_free(unit->ctx, u->copy);
    crd_context_destroy(u->helper);
    pthread_mutex_destroy(&u->desk);
    crdi_map_clear(&u->names);
    crd_arena_clear(&u->arena);
    crd_free(unit->ctx, u);
}

// ---- description -------------------------------------------------------------------------------

static int32_t standby_find(const crd_unit* unit, const char* name)
{
    return crdi_map_find(&((const crdi_standby*)unit)->names, name);
}

// Those of the stand-in are in the units of the primary.
static int32_t like(const crdi_standby* u, int32_t variable)
{
    if (variable < u->primary_count) { return variable; }
    int32_t k = u->weight + 1;
    for (int i = 0; i < u->twofold_count; i++) {
        if (u->twofold[i].modelled && k++ == variable) { return u->twofold[i].own; }
    }
    return -1;
}

static bool standby_dimension(const crd_unit* unit, int32_t variable, crd_dimension* out)
{
    const crdi_standby* u = (const crdi_standby*)unit;
    const crd_unit* p = u->first.unit;
    const int32_t i = like(u, variable);
    return i >= 0 && crdi_unit_dimension(p, i, out);
}

static const char* standby_item_at(const crd_unit* unit, int32_t variable, int32_t k,
                                   int64_t* value)
{
    const crdi_standby* u = (const crdi_standby*)unit;
    const crd_unit* p = u->first.unit;
    *value = k;
    if (variable == u->use) { return k < 3 ? uses[k] : NULL; }
    if (variable == u->active) { return k < 3 ? sources[k] : NULL; }
    const int32_t i = like(u, variable);
    return i >= 0 ? crdi_unit_item_at(p, i, k, value) : NULL;
}

static uint32_t standby_extent(const crd_unit* unit, int32_t variable, int axis)
{
    const crdi_standby* u = (const crdi_standby*)unit;
    const crd_unit* p = u->first.unit;
    const int32_t i = like(u, variable);
    return i >= 0 ? crdi_unit_extent(p, i, axis) : u->variables[variable].size;
}

static const char* standby_last_call(const crd_unit* unit)
{
    const crdi_standby* u = (const crdi_standby*)unit;
    return crdi_unit_last_call(u->model);
}

// What the primary was told in the end.
static bool standby_acting(const crd_unit* unit, int32_t variable, double* value)
{
    const crdi_standby* u = (const crdi_standby*)unit;
    const crd_unit* p = u->seat ? u->seat->unit : NULL;
    for (int k = 0; p && CRDI_UNIT_HAS(p, remote, acting) && k < u->seat->in.count; k++) {
        const crdi_way* w = &u->seat->in.ways[k];
        if (w->own != variable || w->gain == 0) { continue; }
        if (!p->ops->remote->acting(p, w->there, value)) { return false; }
        *value = (*value - w->offset) / w->gain;
        return true;
    }
    return false;
}

static const crd_unit_remote_ops remote_ops = {
    .approach = standby_approach,
    .begin = standby_begin,
    .link = link_stats,
    .board = standby_board,
    .acting = standby_acting,
    .halt = standby_halt,
    .interrupt = standby_interrupt,
};
static const crd_unit_lane_ops lane_ops = {.prepare = standby_prepare,
                                           .unprepare = standby_unprepare};
static const crd_unit_name_ops name_ops = {standby_dimension, standby_item_at, standby_extent};

static const crd_unit_ops ops = {
    .instantiate = standby_instantiate,
    .enter_initialization = standby_enter_initialization,
    .exit_initialization = standby_exit_initialization,
    .set = standby_set,
    .get = standby_get,
    .step = standby_step,
    .terminate = standby_terminate,
    .destroy = standby_destroy,
    .find = standby_find,
    .remote = &remote_ops,
    .lane = &lane_ops,
    .names = &name_ops,
    .abandon = standby_abandon,
    .last_call = standby_last_call,
};

// The settings of the primary, without those of the unit around it.
static crd_status split_settings(crdi_standby* u)
{
    const crd_unit_spec* spec = u->base.spec;
    crd_setting* kept = crdi_arena_new(&u->arena, (size_t)spec->parameter_count + 1, sizeof *kept);
    if (!kept) { return CRD_E_MEMORY; }
    u->primary = *spec;
    u->primary.parameters = kept;
    u->primary.parameter_count = 0;
    for (int i = 0; i < spec->parameter_count; i++) {
        if (strcmp(spec->parameters[i].variable, "standby.use") == 0) { continue; }
        kept[u->primary.parameter_count++] = spec->parameters[i];
    }
    u->again = u->primary;
    u->again.session.capture = NULL; // that file is the first session's
    u->again.link.capture = NULL;
    return CRD_OK;
}

static crd_status make_both(crdi_standby* u, crd_unit_store* store)
{
    crd_status st = CRD_OK;
    crd_context* ctx = u->base.ctx;
    CRD_TRY(crdi_unit_create_alone(ctx, store, &u->primary, &u->first.unit));
    u->base.worker = u->first.unit->worker;
    if (!u->again.isolate) { u->again.isolate = u->base.worker ? "process" : "none"; }
    u->model_spec = *u->base.spec->standby.model;
    u->model_spec.name = crdi_arena_format(&u->arena, "%s.standby", u->base.name);
    if (!u->model_spec.name) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_unit_create_alone(ctx, store, &u->model_spec, &u->model));
fail:
    return st;
}

// What both can do.
static crd_status put_together(crdi_standby* u)
{
    const crd_unit_info *p = &u->first.unit->info, *m = &u->model->info;
    crd_unit_info* info = &u->base.info;
    *info = *p;
    const uint32_t kept = CRD_UNIT_IN_REAL_TIME | CRD_UNIT_DATES_OUTPUTS;
    info->flags = (p->flags & kept) | (p->flags & m->flags & CRD_UNIT_CAN_VARY_STEP);
    info->max_input_order = info->max_output_order = 0;
    if (p->fixed_step > 0 && m->fixed_step > 0 && fabs(p->fixed_step - m->fixed_step) > 1e-9) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE,
                         "standby: the stand-in has steps of %g s only, the unit of %g s; expected "
                         "equal ones",
                         m->fixed_step, p->fixed_step);
    }
    if (m->fixed_step > 0) { info->fixed_step = m->fixed_step; }
    if (m->step_unit > info->step_unit) { info->step_unit = m->step_unit; }
    info->kind = crdi_arena_format(&u->arena, "%s + %s", p->kind, m->kind);
    u->prefix = crdi_arena_format(&u->arena, "%s: ", u->base.name);
    u->real_time = (p->flags & CRD_UNIT_IN_REAL_TIME) != 0;
    u->silent = isnan(u->after)
                    ? "no new data"
                    : crdi_arena_format(&u->arena, "no new data for %.4g ms", 1e3 * u->after);
    return info->kind && u->prefix && u->silent ? CRD_OK : CRD_E_MEMORY;
}

static crd_status create_parts(crdi_standby* u)
{
    crd_status st = CRD_OK;
    crd_context* ctx = u->base.ctx;
    CRD_TRY(put_together(u));
    CRD_TRY(crdi_standby_match(u));
    CRD_TRY(crdi_standby_describe(u));
    CRD_TRY(crdi_standby_make_room(u));
    CRD_TRY(crdi_board_create(ctx, &u->board));
    u->born = crdi_now_ns();
    u->copy = crdi_new(ctx, sizeof *u->copy);
    u->helper = crdi_context_child(ctx);
    if (!u->copy || !u->helper) { return crdi_fail(ctx, CRD_E_MEMORY, "out of memory"); }
    u->boarded = u->first.unit;
    crdi_standby_show(u);
fail:
    return st;
}

static crd_status standby_create(crd_context* ctx, crd_unit_store* store, const crd_unit_spec* spec,
                                 crd_place* place, crd_unit** out)
{
    (void)place;
    crd_status st = CRD_OK;
    crdi_standby* u = crdi_new(ctx, sizeof *u);
    if (!u) { return crdi_unit_fail_at(ctx, CRD_E_MEMORY, spec->place, spec->name); }
    u->base =
        (crd_unit){.ops = &ops, .ctx = ctx, .name = spec->name, .spec = spec, .remark = u->remark};
    u->link = (crd_link_stats){.age = NAN,
                               .age_mean = NAN,
                               .age_max = NAN,
                               .round_trip = NAN,
                               .round_trip_max = NAN,
                               .state = -1,
                               .state_name = ""};
    u->past = u->link;
    u->first.ctx = ctx;
    u->after = spec->standby.after;
    u->fade = spec->standby.fade;
    u->part = u->decay = 1;
    atomic_init(&u->shown_part, 1);
    u->h = -1;
    u->look_at = NAN;
    u->shown_on_board = -1;
    u->is_twin = spec->standby.model->source == CRD_UNIT_TWIN;
    crd_arena_init(&u->arena, ctx);
    crdi_map_init(&u->names, ctx);
    pthread_mutex_init(&u->desk, NULL);
    st = split_settings(u);
    if (st >= 0) { st = make_both(u, store); } // which say their place
    if (st >= 0) {
        st = create_parts(u);
        if (st < 0) { crdi_unit_fail_at(ctx, st, spec->place, spec->name); }
    }
    if (st >= 0) {
        *out = &u->base;
        return CRD_OK;
    }
    standby_destroy(&u->base);
    return st;
}

const crdi_adapter crdi_adapter_standby = {.create = standby_create};

bool crd_unit_get_standby(const crd_unit* unit, crd_standby_stats* out)
{
    if (unit->ops != &ops) { return false; }
    const crdi_standby* u = (const crdi_standby*)unit;
    *out = (crd_standby_stats){.takeovers = atomic_load(&u->takeovers),
                               .returns = atomic_load(&u->returns),
                               .stood_in = atomic_load(&u->stood_in),
                               .source = atomic_load(&u->shown_source)};
    return true;
}
