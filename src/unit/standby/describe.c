// The variables of a unit with a stand-in: those of the primary, under their names, and what there
// is to say about the two. And which variable of the model goes with which of the primary.
#include "unit/standby/standby.h"

#include <math.h>
#include <string.h>

static const char measured[] = ".measured"; // behind a sensor's name: what a twin is told

// ---- pairs -------------------------------------------------------------------------------------

// The name in the model for one of the primary, and back.
static const char* model_name(const crdi_standby* u, const char* name)
{
    const crd_standby_spec* s = &u->base.spec->standby;
    for (int i = 0; i < s->name_count; i++) {
        if (strcmp(s->names[i].name, name) == 0) { return s->names[i].model; }
    }
    return name;
}

static int32_t own_of(const crdi_standby* u, const char* model, size_t length)
{
    const crd_standby_spec* s = &u->base.spec->standby;
    const crd_unit* p = u->first.unit;
    for (int i = 0; i < s->name_count; i++) {
        if (strlen(s->names[i].model) == length && memcmp(s->names[i].model, model, length) == 0) {
            return p->ops->find(p, s->names[i].name);
        }
    }
    for (int32_t i = 0; i < p->info.variable_count; i++) {
        const char* name = p->info.variables[i].name;
        // One that goes by another name does not go by its own.
        if (strlen(name) == length && memcmp(name, model, length) == 0 &&
            model_name(u, name) == name) {
            return i;
        }
    }
    return -1;
}

static crd_status check_pairs(crdi_standby* u)
{
    const crd_standby_spec* s = &u->base.spec->standby;
    for (int i = 0; i < s->name_count; i++) {
        int32_t variable = -1, element = -1;
        crd_status st =
            crd_unit_resolve(u->first.unit, u->base.ctx, s->names[i].name, &variable, &element);
        if (st >= 0) {
            st = crd_unit_resolve(u->model, u->base.ctx, s->names[i].model, &variable, &element);
        }
        if (st < 0) { return crdi_fail_in(u->base.ctx, st, "standby.names"); }
        if (element >= 0) {
            return crdi_fail(u->base.ctx, CRD_E_RANGE,
                             "standby.names: '%s' is an element, expected whole variables",
                             s->names[i].model);
        }
    }
    return CRD_OK;
}

// From `a` of one unit to `b` of another: types, sizes, units of measure.
static crd_status standby_describe_convert(crdi_standby* u, const crd_unit* from, int32_t a,
                                           const crd_unit* to, int32_t b, crdi_way* out)
{
    const crd_variable *x = &from->info.variables[a], *y = &to->info.variables[b];
    crd_dimension dx, dy;
    if (crd_type_kind(x->type) != crd_type_kind(y->type) || x->size != y->size ||
        (crd_type_kind(x->type) == CRD_BYTES && x->type != y->type)) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE,
                         "standby: '%s' of the stand-in does not go with '%s' of the unit: type or "
                         "size differ; expected equal ones, or another pair under 'names'",
                         (from == u->model ? x : y)->name, (from == u->model ? y : x)->name);
    }
    out->gain = 1;
    out->offset = 0;
    if (crd_type_kind(x->type) != CRD_REAL || !crdi_unit_dimension(from, a, &dx) ||
        !crdi_unit_dimension(to, b, &dy)) {
        return CRD_OK;
    }
    if (!crd_dimension_equal(&dx, &dy)) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE,
                         "standby: '%s' is in '%s', '%s' of the %s in '%s'; expected the same "
                         "quantity, or another pair under 'names'",
                         x->name, x->unit, y->name, to == u->model ? "stand-in" : "unit", y->unit);
    }
    out->gain = dx.factor / dy.factor;
    out->offset = (dx.offset - dy.offset) / dy.factor;
    return CRD_OK;
}

static bool gives(const crd_variable* v)
{
    return v->causality == CRD_OUTPUT || v->causality == CRD_LOCAL;
}

static void say_held(crdi_standby* u)
{
    char text[400] = "", at[400];
    size_t used = 0;
    int count = 0;
    for (int i = 0; i < u->twofold_count; i++) {
        const char* name = u->first.unit->info.variables[u->twofold[i].own].name;
        if (u->twofold[i].modelled) { continue; }
        // What a bench and its master tell each other is no model's business.
        if (u->primary.source == CRD_UNIT_DCP && strncmp(name, "bench.", 6) == 0) { continue; }
        if (model_name(u, name) != name) { continue; } // told to be one of its inputs
        const size_t n = strlen(name);
        if (used + n + 5 < sizeof text) {
            memcpy(text + used, count ? ", '" : "'", count ? 3 : 1);
            used += count ? 3 : 1;
            memcpy(text + used, name, n);
            used += n;
            text[used++] = '\'';
            text[used] = 0;
        }
        count++;
    }
    if (count == 0) { return; }
    crdi_log(
        u->base.ctx, CRD_LOG_WARNING,
        "%sunit '%s': the stand-in does not have the output%s %s: held at the last value while "
        "it is in use",
        crdi_unit_place_text(u->base.spec->place, at, sizeof at), u->base.name,
        count == 1 ? "" : "s", text);
}

static crd_status match_outputs(crdi_standby* u)
{
    const crd_unit *p = u->first.unit, *m = u->model;
    int modelled = 0;
    for (int32_t i = 0; i < p->info.variable_count; i++) {
        const crd_variable* v = &p->info.variables[i];
        if (v->causality != CRD_OUTPUT) { continue; }
        const int32_t there = m->ops->find(m, model_name(u, v->name));
        crdi_twofold* o = &u->twofold[u->twofold_count++];
        *o = (crdi_twofold){.own = i,
                            .kind = crd_type_kind(v->type),
                            .size = v->size,
                            .continuous = crd_type_kind(v->type) == CRD_REAL &&
                                          v->variability == CRD_CONTINUOUS,
                            .modelled = there >= 0 && gives(&m->info.variables[there])};
        if (!o->modelled) { continue; }
        modelled++;
        crdi_way* w = &u->out[u->out_count++];
        *w = (crdi_way){.own = i, .there = there, .size = v->size, .kind = o->kind};
        const crd_status st = standby_describe_convert(u, m, there, p, i, w);
        if (st < 0) { return st; }
    }
    if (modelled == 0) {
        return crdi_fail(u->base.ctx, CRD_E_RANGE,
                         "standby: the stand-in has no output of the unit, such as '%s'; expected "
                         "outputs of the same names, or pairs under 'names'",
                         u->twofold_count ? p->info.variables[u->twofold[0].own].name : "");
    }
    say_held(u);
    return CRD_OK;
}

static crd_status match_inputs(crdi_standby* u)
{
    const crd_unit *p = u->first.unit, *m = u->model;
    for (int32_t i = 0; i < m->info.variable_count; i++) {
        const crd_variable* v = &m->info.variables[i];
        if (v->causality != CRD_INPUT) { continue; }
        const size_t n = strlen(v->name), tail = sizeof measured - 1;
        int32_t own = own_of(u, v->name, n);
        if (own < 0 && n > tail && strcmp(v->name + n - tail, measured) == 0) {
            own = own_of(u, v->name, n - tail);
            if (own >= 0 && p->info.variables[own].causality != CRD_OUTPUT) { own = -1; }
        }
        const int causality = own < 0 ? CRD_LOCAL : p->info.variables[own].causality;
        if (causality != CRD_INPUT && causality != CRD_OUTPUT) {
            crdi_log(u->base.ctx, CRD_LOG_INFO,
                     "unit '%s': the input '%s' of the stand-in has no counterpart and stays as it "
                     "is",
                     u->base.name, v->name);
            continue;
        }
        crdi_way* w = &u->into[u->into_count++];
        *w = (crdi_way){.own = own,
                        .there = i,
                        .size = v->size,
                        .kind = crd_type_kind(v->type),
                        .measured = causality == CRD_OUTPUT};
        u->feeds_back = u->feeds_back || w->measured;
        const crd_status st = standby_describe_convert(u, p, own, m, i, w);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

crd_status crdi_standby_match(crdi_standby* u)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)u->first.unit->info.variable_count;
    const size_t there = (size_t)u->model->info.variable_count;
    u->twofold = crdi_arena_new(&u->arena, n + 1, sizeof *u->twofold);
    u->out = crdi_arena_new(&u->arena, n + 1, sizeof *u->out);
    u->into = crdi_arena_new(&u->arena, there + 1, sizeof *u->into);
    if (!u->twofold || !u->out || !u->into) { return CRD_E_MEMORY; }
    CRD_TRY(check_pairs(u));
    CRD_TRY(match_outputs(u));
    CRD_TRY(match_inputs(u));
fail:
    return st;
}

// ---- variables ---------------------------------------------------------------------------------

static crd_variable plain(const char* name, const char* description, crd_type type,
                          crd_causality causality)
{
    return (crd_variable){.name = name,
                          .description = description,
                          .unit = "",
                          .size = 1,
                          .unit_index = -1,
                          .type_index = -1,
                          .alias_of = -1,
                          .type = (uint8_t)type,
                          .causality = (uint8_t)causality,
                          .variability = CRD_DISCRETE,
                          .initial = causality == CRD_INPUT ? CRD_EXACT : CRD_CALCULATED,
                          .nominal = 1,
                          .min = -INFINITY,
                          .max = INFINITY};
}

// Behind the primary's.
static crd_status standby_describe_add_variables(crdi_standby* u)
{
    int32_t k = u->primary_count;
    crd_variable* v = u->variables;
    u->use = k;
    v[k] = plain("standby.use", "whose outputs: auto, the bench's at any rate, the stand-in's",
                 CRD_ENUMERATION, CRD_INPUT);
    v[k++].start = "auto";
    u->active = k;
    v[k++] = plain("standby.active", "whose outputs they are", CRD_ENUMERATION, CRD_OUTPUT);
    u->weight = k;
    v[k] = plain("standby.weight", "how much of the outputs is the bench's own", CRD_FLOAT64,
                 CRD_OUTPUT);
    v[k].min = 0;
    v[k++].max = 1;
    for (int i = 0; i < u->twofold_count; i++) {
        crdi_twofold* o = &u->twofold[i];
        if (!o->modelled) { continue; }
        v[k] = v[o->own];
        v[k].name = crdi_arena_format(&u->arena, "model.%s", v[o->own].name);
        v[k].description = "what the stand-in says";
        v[k].start = NULL;
        v[k].alias_of = -1;
        v[k].initial = CRD_CALCULATED;
        if (!v[k].name) { return CRD_E_MEMORY; }
        o->model_at = k++; // the variable; its place when there is room
    }
    u->base.info.variable_count = k;
    return CRD_OK;
}

// The rows of the primary, and those of the new outputs: during the initialisation the model's
// follow all inputs, later nothing acts without a step.
static crd_status extend(crdi_standby* u, const crd_dependencies* d, bool initial,
                         crd_dependencies* out)
{
    const int32_t more = u->base.info.variable_count - u->primary_count - 1;
    const int32_t rows = d->count + more, known = d->first[d->count];
    int32_t* unknown = crdi_arena_new(&u->arena, (size_t)rows, sizeof *unknown);
    int32_t* first = crdi_arena_new(&u->arena, (size_t)rows + 1, sizeof *first);
    bool* on_all = crdi_arena_new(&u->arena, (size_t)rows, sizeof *on_all);
    if (!unknown || !first || !on_all) { return CRD_E_MEMORY; }
    memcpy(unknown, d->unknown, (size_t)d->count * sizeof *unknown);
    memcpy(first, d->first, ((size_t)d->count + 1) * sizeof *first);
    memcpy(on_all, d->on_all, (size_t)d->count * sizeof *on_all);
    for (int32_t i = 0; i < more; i++) {
        const int32_t variable = u->primary_count + 1 + i; // behind standby.use
        unknown[d->count + i] = variable;
        first[d->count + i + 1] = known;
        on_all[d->count + i] = initial && variable > u->weight;
    }
    *out = (crd_dependencies){rows, unknown, first, d->known, on_all};
    return CRD_OK;
}

static crd_status add_dependencies(crdi_standby* u)
{
    crd_status st = CRD_OK;
    const crd_unit_info* p = &u->first.unit->info;
    if (p->outputs) {
        CRD_TRY(extend(u, p->outputs, false, &u->outputs));
        u->base.info.outputs = &u->outputs;
    }
    if (p->initial) {
        CRD_TRY(extend(u, p->initial, true, &u->initial));
        u->base.info.initial = &u->initial;
    }
fail:
    return st;
}

crd_status crdi_standby_describe(crdi_standby* u)
{
    crd_status st = CRD_OK;
    const crd_unit* p = u->first.unit;
    u->primary_count = p->info.variable_count;
    const size_t most = (size_t)u->primary_count + (size_t)u->twofold_count + 3;
    u->variables = crdi_arena_new(&u->arena, most, sizeof *u->variables);
    u->offsets = crdi_arena_new(&u->arena, most, sizeof *u->offsets);
    u->wanted = crdi_arena_new(&u->arena, most, sizeof *u->wanted);
    if (!u->variables || !u->offsets || !u->wanted) { return CRD_E_MEMORY; }
    if (u->primary_count) {
        memcpy(u->variables, p->info.variables, (size_t)u->primary_count * sizeof *u->variables);
    }
    u->base.info.variables = u->variables;
    CRD_TRY(standby_describe_add_variables(u));
    CRD_TRY(add_dependencies(u));
    for (int32_t i = 0; i < u->base.info.variable_count; i++) {
        bool fresh = true;
        CRD_TRY(crdi_map_add(&u->names, u->variables[i].name, i, &fresh));
        if (!fresh && i >= u->primary_count) {
            return crdi_fail(u->base.ctx, CRD_E_RANGE,
                             "standby: the unit has a variable '%s' of its own, which is the name "
                             "of one of the stand-in's",
                             u->variables[i].name);
        }
    }
fail:
    return st;
}
