// Creating and destroying units: picks the adapter, checks and keeps the settings of the spec.
#include "unit/unit.h"
#include "shared/base.h"
#include "shared/base_findings.h"
#include "shared/unit.h"
#include "unit/worker/worker.h"

#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

const char* crdi_unit_place_text(crd_place place, char* buffer, size_t size)
{
    buffer[0] = 0;
    if (place.file && place.file[0] && place.line > 0) {
        snprintf(buffer, size, "%s:%d: ", place.file, place.line);
    } else if (place.file && place.file[0]) {
        snprintf(buffer, size, "%s: ", place.file);
    }
    return buffer;
}

crd_status crdi_unit_fail_at(crd_context* ctx, crd_status st, crd_place place, const char* name)
{
    // A single FMU is its own place, and what it could not be opened for begins with it.
    const size_t file = place.file && !place.line ? strlen(place.file) : 0;
    if (file && strncmp(crd_error_text(ctx), place.file, file) == 0) { return st; }
    char at[400];
    return crdi_fail_in(ctx, st, "%sunit '%s'", crdi_unit_place_text(place, at, sizeof at), name);
}

const char* crdi_signal_text(int number)
{
    if (number == SIGILL) {
        return "Illegal instruction, as code for a processor with more than this one has ends here";
    }
    const char* text = sigdescr_np(number); // not strsignal, which may look for a translation
    return text ? text : "a signal";
}

// ---- settings ----------------------------------------------------------------------------------

const crdi_setting* crdi_unit_setting(const crd_unit* u, int32_t variable)
{
    for (int32_t i = 0; u->core && i < u->core->setting_count; i++) {
        if (u->core->settings[i].variable == variable) { return &u->core->settings[i]; }
    }
    return NULL;
}

// A setting that is there already is used again: the last one wins.
static crd_status get_setting(crd_unit* u, int32_t variable, crdi_setting** out)
{
    crdi_unit_core* core = u->core;
    *out = (crdi_setting*)crdi_unit_setting(u, variable);
    if (*out) { return CRD_OK; }
    crdi_setting* settings = crdi_grow(u->ctx, core->settings, &core->setting_capacity,
                                       (size_t)core->setting_count + 1, sizeof *settings);
    if (!settings) { return CRD_E_MEMORY; }
    core->settings = settings;
    const crd_variable* v = &u->info.variables[variable];
    crdi_setting s = {.variable = variable, .count = v->size};
    const crd_status st = crdi_unit_values_init(u->ctx, &s.values, crd_type_kind(v->type), s.count);
    if (st < 0) { return st; }
    *out = &settings[core->setting_count++];
    **out = s;
    return CRD_OK;
}

// A unit that nobody knows cannot be converted; that of the variable needs not be known.
static void warn_unknown_unit(crd_unit* u, const crd_variable* v, const crd_setting* given)
{
    const crd_transformation* via = given->via;
    crd_dimension known;
    char at[400];
    if (!via || !via->unit || !via->unit[0] || via->dimension || !via->convert_units ||
        crd_type_kind(v->type) != CRD_REAL || strcmp(via->unit, v->unit) == 0 ||
        crd_dimension_parse(via->unit, &known)) {
        return;
    }
    crdi_log(u->ctx, CRD_LOG_WARNING,
             "%sunit '%s': '%s' = '%.60s' in '%.60s', which is not known: taken as it is%s%s",
             crdi_unit_place_text(given->place, at, sizeof at), u->name, v->name, given->text,
             via->unit, v->unit[0] ? ", in " : "", v->unit);
}

static crd_status unit_add_setting(crd_unit* u, const crd_setting* given, int32_t variable,
                                   int32_t element)
{
    crd_status st = CRD_OK;
    const int32_t v = crdi_unit_canonical(u, variable);
    const bool fresh = !crdi_unit_setting(u, v);
    crdi_setting* s = NULL;
    CRD_TRY(crdi_unit_check_settable(u, variable));
    CRD_TRY(get_setting(u, v, &s));
    s->place = given->place;
    if (element < 0) {
        CRD_TRY(crdi_unit_parse_via(u, variable, given->text, given->via, 0, s->count, &s->values));
    } else {
        // FMI sets whole arrays only: the other elements come from the description.
        const char* start = u->info.variables[v].start;
        if (fresh && !start) {
            return crdi_fail(u->ctx, CRD_E_RANGE,
                             "'%s': the other elements have no start value, give all %u",
                             given->variable, s->count);
        }
        if (fresh) { CRD_TRY(crdi_unit_parse_start(u, v, &s->values, s->count)); }
        CRD_TRY(crdi_unit_parse_via(u, variable, given->text, given->via, (uint32_t)element, 1,
                                    &s->values));
    }
    warn_unknown_unit(u, &u->info.variables[v], given);
    crdi_unit_check_limits(u, variable, &s->values, s->count, given->place);
fail:
    return st;
}

enum { MOST_NOTES = 3 }; // of a unit; then one line says how many more there are

// A parameter of a set that was made for more than this unit.
static void note_ignored(crd_unit* u, const crd_setting* s, int count)
{
    char at[400];
    if (count > MOST_NOTES) { return; }
    crdi_log(u->ctx, CRD_LOG_WARNING,
             "%sparameter '%s' fits no variable of unit '%s' and is ignored",
             crdi_unit_place_text(s->place, at, sizeof at), s->variable, u->name);
}

// Structural parameters come first: they decide the sizes that the others have.
static crd_status add_settings(crd_unit* u, bool structural)
{
    int ignored = 0;
    for (int i = 0; i < u->spec->parameter_count; i++) {
        const crd_setting* s = &u->spec->parameters[i];
        int32_t variable = -1, element = -1;
        crd_status st = CRD_OK;
        // An index may only make sense once the sizes are known; unknown names wait as well.
        if (structural) {
            variable = u->ops->find(u, s->variable);
            if (variable < 0) { continue; }
        } else {
            st = crd_unit_resolve(u, u->ctx, s->variable, &variable, &element);
            if (st == CRD_E_NOT_FOUND && s->optional) {
                note_ignored(u, s, ++ignored);
                continue;
            }
            if (st < 0) {
                st = crdi_go_on(u->ctx, crdi_unit_fail_at(u->ctx, st, s->place, u->name));
                if (st < 0) { return st; }
                continue;
            }
        }
        const int32_t v = crdi_unit_canonical(u, variable);
        const bool is_structural = u->info.variables[v].causality == CRD_STRUCTURAL_PARAMETER;
        if (is_structural && element >= 0) {
            st = crdi_fail(u->ctx, CRD_E_RANGE, "'%s': structural parameters are set as a whole",
                           s->variable);
        } else if (is_structural == structural) {
            st = unit_add_setting(u, s, variable, element);
        }
        if (st < 0) { st = crdi_go_on(u->ctx, crdi_unit_fail_at(u->ctx, st, s->place, u->name)); }
        if (st < 0) { return st; }
    }
    if (ignored > MOST_NOTES) {
        crdi_log(u->ctx, CRD_LOG_WARNING,
                 "unit '%s': %d more parameters fit no variable and are ignored", u->name,
                 ignored - MOST_NOTES);
    }
    return CRD_OK;
}

crd_status crdi_unit_fail_size(crd_unit* u, size_t size, size_t expected)
{
    return crdi_fail(u->ctx, CRD_E_FORMAT,
                     "the saved state is one of another unit: it has %zu bytes, expected %zu", size,
                     expected);
}

crd_status crdi_unit_send(crd_unit* u, bool structural)
{
    for (int32_t i = 0; i < u->core->setting_count; i++) {
        const crdi_setting* s = &u->core->settings[i];
        const crd_variable* v = &u->info.variables[s->variable];
        if ((v->causality == CRD_STRUCTURAL_PARAMETER) != structural) { continue; }
        crd_binding* b = NULL;
        crd_status st = crd_binding_create(u, &s->variable, 1, &b);
        if (st == CRD_OK) { st = u->ops->set(u, b, &s->values); }
        crd_binding_destroy(b);
        if (st < 0) {
            char at[400];
            crdi_unit_place_text(s->place, at, sizeof at);
            const size_t n = strlen(at); // "file:line: "
            return n ? crdi_fail_in(u->ctx, st, "setting '%s' (%.*s)", v->name, (int)n - 2, at)
                     : crdi_fail_in(u->ctx, st, "setting '%s'", v->name);
        }
    }
    return CRD_OK;
}

// ---- dependencies ------------------------------------------------------------------------------

// The row of each variable, unless they are so few that looking is as good. A row may name an
// alias: then it also counts for what it stands for.
static crd_status index_rows(crd_unit* u, const crd_dependencies* d, int32_t** out)
{
    enum { FEW = 16 };
    if (!d || u->info.variable_count <= FEW) { return CRD_OK; }
    int32_t* rows = crdi_new_array(u->ctx, (size_t)u->info.variable_count, sizeof *rows);
    if (!rows) { return CRD_E_MEMORY; }
    memset(rows, 0xff, (size_t)u->info.variable_count * sizeof *rows);
    for (int32_t r = 0; r < d->count; r++) {
        rows[d->unknown[r]] = r;
    }
    for (int32_t r = 0; r < d->count; r++) {
        int32_t* row = &rows[crdi_unit_canonical(u, d->unknown[r])];
        if (*row < 0) { *row = r; }
    }
    *out = rows;
    return CRD_OK;
}

// ---- life --------------------------------------------------------------------------------------

// A sentence that begins with a path on the disk begins with what the user calls the file.
static void show_path(crd_context* ctx, crd_status st, const crd_unit_spec* spec)
{
    const char* text = crd_error_text(ctx);
    const size_t n = spec->path ? strlen(spec->path) : 0;
    if (!spec->shown || !spec->shown[0] || !n || strncmp(text, spec->path, n) != 0) { return; }
    crdi_fail(ctx, st, "%s%s", spec->shown, text + n);
}

static crd_status unit_complete(crd_unit* u, const crdi_adapter* adapter)
{
    crd_status st = CRD_OK;
    u->input_order = u->info.max_input_order;
    u->next_event = INFINITY;
    u->made = NAN;
    if (u->spec->refresh == CRD_REFRESH_NO) { u->info.flags &= ~(uint32_t)CRD_UNIT_CAN_REFRESH; }
    u->core = crdi_new(u->ctx, sizeof *u->core);
    if (!u->core) { return CRD_E_MEMORY; }
    CRD_TRY(index_rows(u, u->info.outputs, &u->core->output_rows));
    CRD_TRY(index_rows(u, u->info.initial, &u->core->initial_rows));
    CRD_TRY(add_settings(u, true));
    if (adapter->resize && u->core->setting_count > 0) {
        st = adapter->resize(u);
        if (st < 0) { return crdi_unit_fail_at(u->ctx, st, u->core->settings[0].place, u->name); }
    }
    CRD_TRY(add_settings(u, false));
    if (adapter->complete) {
        st = adapter->complete(u);
        if (st < 0) {
            show_path(u->ctx, st, u->spec);
            return crdi_unit_fail_at(u->ctx, st, u->spec->place, u->name);
        }
    }
fail:
    return st;
}

crd_status crd_unit_create(crd_context* ctx, const crd_unit_spec* spec, crd_unit** out)
{
    return crd_unit_create_shared(ctx, NULL, spec, out);
}

// The kinds of units: a new one is a line here, and a row in system/read_units.c for its keys.
#define KINDS(X)                                                                                   \
    X(FMU, fmi)                                                                                    \
    X(SIGNAL, signal)                                                                              \
    X(REPLAY, replay)                                                                              \
    X(NATIVE, native)                                                                              \
    X(DCP, dcp)                                                                                    \
    X(CIRCUIT, circuit)                                                                            \
    X(TWIN, twin)                                                                                  \
    X(FRAMES, frames)                                                                              \
    X(CAN, can)                                                                                    \
    X(DRIVER, driver)
#define DECLARE(source, folder) extern const crdi_adapter crdi_adapter_##folder;
#define ROW(source, folder) [CRD_UNIT_##source] = &crdi_adapter_##folder,
KINDS(DECLARE)

static const crdi_adapter* adapter_of(const crd_unit_spec* spec)
{
    static const crdi_adapter* const adapters[] = {KINDS(ROW)};
    return adapters[spec->source];
}

static crd_status unit_create(crd_context* ctx, crd_unit_store* store, const crdi_adapter* adapter,
                              const crd_unit_spec* spec, crd_unit** out)
{
    crd_context* own = crdi_context_child(ctx);
    if (!own) { return crdi_fail(ctx, CRD_E_MEMORY, "out of memory for unit '%s'", spec->name); }
    crd_unit* u = NULL;
    crd_place place = spec->place;
    crd_status st = adapter->create(own, store, spec, &place, &u);
    if (st < 0 && adapter != &crdi_adapter_standby) { // which says whose it is
        show_path(own, st, spec);
        crdi_unit_fail_at(own, st, place, spec->name);
    } else if (st >= 0) {
        st = unit_complete(u, adapter);
    }
    if (st == CRD_OK) {
        *out = u;
        return CRD_OK;
    }
    crdi_fail(ctx, st, "%s", crd_error_text(own));
    if (u) {
        crd_unit_destroy(u);
    } else {
        crd_context_destroy(own);
    }
    return st;
}

crd_status crdi_unit_create_alone(crd_context* ctx, crd_unit_store* store,
                                  const crd_unit_spec* spec, crd_unit** out)
{
    const crd_status st = unit_create(ctx, store, adapter_of(spec), spec, out);
    return st >= 0 && crdi_worker_wanted(store, *out) ? crdi_worker_wrap(ctx, store, out) : st;
}

crd_status crd_unit_create_shared(crd_context* ctx, crd_unit_store* store,
                                  const crd_unit_spec* spec, crd_unit** out)
{
    return spec->standby.model ? unit_create(ctx, store, &crdi_adapter_standby, spec, out)
                               : crdi_unit_create_alone(ctx, store, spec, out);
}

void crd_unit_destroy(crd_unit* u)
{
    if (!u) { return; }
    crd_context* ctx = u->ctx;
    crdi_unit_core* core = u->core;
    if (core) {
        for (int32_t i = 0; i < core->setting_count; i++) {
            crdi_unit_values_clear(ctx, &core->settings[i].values, core->settings[i].count);
        }
        crd_free(ctx, core->settings);
        crd_free(ctx, core->output_rows);
        crd_free(ctx, core->initial_rows);
        crd_free(ctx, core);
    }
    u->ops->destroy(u);
    crd_context_destroy(ctx);
}

void crdi_unit_wish_stop(crd_unit* u)
{
    u->wants_stop = true;
    if (u->wish) { __atomic_store_n(u->wish, true, __ATOMIC_RELAXED); }
}

crd_status crd_unit_instantiate(crd_unit* u)
{
    u->next_event = INFINITY;
    u->begin_again = false;
    const crd_status st = u->ops->instantiate(u);
    return st < 0 || !u->core ? st : crdi_unit_send(u, false);
}
