// What SSP has no word for, as the text of our annotation: see crd_system_amend.
#include "shared/system.h"
#include "shared/system_words.h"
#include "ssp/write.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

// Nothing was said since: as if it had not been begun.
static void take_back(crd_text* t, size_t length)
{
    if (t->failed) { return; }
    t->length = length;
    crdi_text_put(t, "", 0);
}

static void write_yaml_put_numbers(crdi_flow* f, const char* key, const double* x, int count)
{
    crdi_flow_key(f, key);
    for (int i = 0; i < count; i++) {
        crdi_text_add(f->t, "%s", i ? ", " : "[");
        crdi_text_json_number(f->t, x[i]);
    }
    crdi_text_add(f->t, "]");
}

// ---- units -------------------------------------------------------------------------------------

// Only the keys that the shape has a use for: others would be refused.
static void write_yaml_put_signal(crd_text* t, const crd_signal_spec* g)
{
    crdi_flow f = {.t = t};
    const crd_signal_shape is = g->shape;
    crdi_flow_text(&f, "shape", crdi_shapes[is]);
    if (g->unit[0]) { crdi_flow_text(&f, "unit", g->unit); }
    if (is == CRD_SIGNAL_CONSTANT && g->amplitude == 0) {
        crdi_flow_number(&f, "value", g->offset);
    } else {
        if (g->offset != 0) { crdi_flow_number(&f, "offset", g->offset); }
        if (g->amplitude != 1) { crdi_flow_number(&f, "amplitude", g->amplitude); }
    }
    if (is != CRD_SIGNAL_CONSTANT && g->start != 0) { crdi_flow_number(&f, "start", g->start); }
    if (is == CRD_SIGNAL_RAMP || is == CRD_SIGNAL_CHIRP || is == CRD_SIGNAL_PRBS) {
        crdi_flow_number(&f, "duration", g->duration);
    }
    if (is == CRD_SIGNAL_SINE || is == CRD_SIGNAL_CHIRP) {
        crdi_flow_number(&f, "frequency", g->frequency);
    }
    if (is == CRD_SIGNAL_CHIRP || is == CRD_SIGNAL_MULTISINE) {
        crdi_flow_number(&f, "frequency2", g->frequency2);
    }
    if (is == CRD_SIGNAL_SINE && g->phase != 0) { crdi_flow_number(&f, "phase", g->phase); }
    if (is == CRD_SIGNAL_PRBS || is == CRD_SIGNAL_MULTISINE) {
        crdi_flow_integer(&f, "order", g->order);
        crdi_flow_key(&f, "seed");
        crdi_text_add(t, "%llu", (unsigned long long)g->seed);
    }
    if (is == CRD_SIGNAL_TABLE) {
        write_yaml_put_numbers(&f, "times", g->times, g->table_count);
        write_yaml_put_numbers(&f, "values", g->values, g->table_count);
        crdi_flow_text(&f, "interpolation", crdi_interpolations[g->interpolation]);
    }
    crdi_flow_end(&f);
}

static void write_yaml_put_signals(crdi_flow* f, const crd_unit_spec* u)
{
    if (u->signal_count == 1 && strcmp(u->signals[0].name, "y") == 0) {
        crdi_flow_key(f, "signal");
        write_yaml_put_signal(f->t, &u->signals[0]);
        return;
    }
    crdi_flow_key(f, "signals");
    crdi_flow inner = {.t = f->t};
    for (int i = 0; i < u->signal_count; i++) {
        crdi_flow_key(&inner, u->signals[i].name);
        write_yaml_put_signal(f->t, &u->signals[i]);
    }
    crdi_flow_end(&inner);
}

static void put_replay(crdi_flow* f, const crd_unit_spec* u, const char* source)
{
    crdi_flow_text(f, "replay", source);
    if (u->interpolation != CRD_INTERPOLATE_LINEAR) {
        crdi_flow_text(f, "interpolation", crdi_interpolations[u->interpolation]);
    }
    if (u->column_count > 0) {
        crdi_flow_key(f, "columns");
        crdi_flow inner = {.t = f->t};
        for (int i = 0; i < u->column_count; i++) {
            const crd_column_spec* c = &u->columns[i];
            crdi_flow_key(&inner, c->name);
            crdi_flow column = {.t = f->t};
            crdi_flow_column(&column, c);
            crdi_flow_end(&column);
        }
        crdi_flow_end(&inner);
    }
    if (u->time_offset != 0) { crdi_flow_number(f, "time_offset", u->time_offset); }
    if (u->repeat) { crdi_flow_bool(f, "repeat", true); }
}

// A mapping of what differs; nothing if nothing does.
#define PUT_PART(f, key, put, spec)                                                                \
    do {                                                                                           \
        const size_t begun = (f)->t->length;                                                       \
        const int count = (f)->count;                                                              \
        crdi_flow inner = {.t = (f)->t};                                                           \
        crdi_flow_key(f, key);                                                                     \
        put(&inner, spec);                                                                         \
        if (inner.count) {                                                                         \
            crdi_flow_end(&inner);                                                                 \
        } else {                                                                                   \
            take_back((f)->t, begun);                                                              \
            (f)->count = count;                                                                    \
        }                                                                                          \
    } while (0)

static void put_fmu(crdi_flow* f, const crd_unit_spec* u, const crdi_pack_part* p)
{
    PUT_PART(f, "solver", crdi_flow_solver, &u->solver);
    if (u->logging) { crdi_flow_bool(f, "logging", true); }
    if (u->pinned) { crdi_flow_bool(f, "pinned", true); }
    if (u->allow_nan) { crdi_flow_bool(f, "allow_nan", true); }
    if (u->retry) { crdi_flow_bool(f, "retry", true); }
    if (u->refresh != CRD_REFRESH_AUTO) {
        crdi_flow_key(f, "refresh");
        crdi_text_add(f->t, "%s", u->refresh == CRD_REFRESH_YES ? "yes" : "no");
    }
    if (u->isolate && u->isolate[0]) { crdi_flow_text(f, "isolate", u->isolate); }
    if (u->restart > 0) { crdi_flow_integer(f, "restart", u->restart); }
    if (u->network) { crdi_flow_bool(f, "network", true); }
    if (u->limit > 0) { crdi_flow_number(f, "limit", u->limit); }
    if (p->rest_count == 0) { return; }
    crdi_flow_key(f, "parameters");
    crdi_flow inner = {.t = f->t};
    for (int i = 0; i < p->rest_count; i++) {
        crdi_flow_text(&inner, p->rest[i]->variable, p->rest[i]->text);
    }
    crdi_flow_end(&inner);
}

static void put_units(crdi_pack_writer* w)
{
    crd_text* t = &w->yaml;
    bool first = true;
    for (int i = 0; i < w->s->unit_count; i++) {
        const crd_unit_spec* u = &w->s->units[i];
        const size_t mark = t->length;
        if (first) { crdi_text_add(t, "units:\n"); }
        crdi_text_add(t, "  ");
        crdi_yaml_text(t, w->parts[i].name);
        crdi_text_add(t, ": ");
        crdi_flow f = {.t = t};
        if (u->source == CRD_UNIT_SIGNAL) { write_yaml_put_signals(&f, u); }
        if (u->source == CRD_UNIT_REPLAY) { put_replay(&f, u, w->parts[i].source); }
        if (u->step > 0) { crdi_flow_number(&f, "step", u->step); }
        if (u->real) { crdi_flow_bool(&f, "real", true); }
        if (!isnan(u->budget)) { crdi_flow_number(&f, "budget", u->budget); }
        if (u->source == CRD_UNIT_FMU) { put_fmu(&f, u, &w->parts[i]); }
        if (f.count == 0) { // nothing to say of this one
            take_back(t, mark);
            continue;
        }
        crdi_flow_end(&f);
        crdi_text_add(t, "\n");
        first = false;
    }
}

// ---- run, connections, results -----------------------------------------------------------------

static void put_group(crdi_pack_writer* w, const crd_group* g)
{
    crd_text* t = &w->yaml;
    if (g->kind == CRD_GROUP_UNIT) {
        crdi_yaml_text(t, w->parts[g->unit].name);
        return;
    }
    crdi_text_add(t, "{ %s: [", g->kind == CRD_GROUP_JACOBI ? "jacobi" : "gauss-seidel");
    for (int i = 0; i < g->member_count; i++) {
        if (i) { crdi_text_add(t, ", "); }
        put_group(w, &g->members[i]);
    }
    crdi_text_add(t, "] }");
}

static void put_quality(crdi_flow* f, const crd_run_spec* r)
{
    if (r->predict != CRD_PREDICTION_AUTO) {
        crdi_flow_text(f, "predict", crd_prediction_name(r->predict));
    }
    if (r->control.on) { PUT_PART(f, "control", crdi_flow_control, &r->control); }
    if (r->iterate.on) {
        crdi_flow inner = {.t = f->t};
        crdi_flow_key(f, "iterate");
        crdi_flow_iterate(&inner, &r->iterate);
        crdi_flow_end(&inner);
    }
    if (r->feedthrough != CRD_DEFECT_FRESH) {
        crdi_flow_text(f, "feedthrough", crd_defect_scheme_name(r->feedthrough));
    }
    const bool defect = r->monitor & CRD_MONITOR_DEFECT, energy = r->monitor & CRD_MONITOR_ENERGY;
    if (r->monitor & CRD_MONITOR_SOLVER) {
        crdi_flow_text(f, "monitor", energy ? "all" : "solver");
    } else if (!defect || !energy) {
        crdi_flow_text(f, "monitor", defect ? "defect" : energy ? "energy" : "none");
    }
    if (*r->guard.place.file) { PUT_PART(f, "guard", crdi_flow_guard, &r->guard); }
}

static void write_yaml_put_run(crdi_pack_writer* w)
{
    const crd_run_spec* r = &w->s->run;
    crd_text* t = &w->yaml;
    const size_t mark = t->length;
    crdi_text_add(t, "run: ");
    crdi_flow f = {.t = t};
    if (!isnan(r->step)) { crdi_flow_number(&f, "step", r->step); }
    if (!isnan(r->tolerance)) { crdi_flow_number(&f, "tolerance", r->tolerance); }
    if (r->scheme == CRD_SCHEME_GAUSS_SEIDEL) { crdi_flow_text(&f, "scheme", "gauss-seidel"); }
    if (r->scheme == CRD_SCHEME_GROUPS) {
        crdi_flow_key(&f, "scheme");
        put_group(w, &r->group);
    }
    if (r->pace.factor > 0) { PUT_PART(&f, "pace", crdi_flow_pace, &r->pace); }
    put_quality(&f, r);
    if (r->threads > 0) { crdi_flow_integer(&f, "threads", r->threads); }
    if (r->isolate != crdi_isolation_default(CRD_ISOLATE_FOREIGN)) {
        crdi_flow_text(&f, "isolate", crd_isolation_name(r->isolate));
    }
    if (r->loop_iterations != 50 || r->loop_tolerance != 1e-10) {
        crdi_flow inner = {.t = t};
        crdi_flow_key(&f, "initialization");
        crdi_flow_integer(&inner, "iterations", r->loop_iterations);
        crdi_flow_number(&inner, "tolerance", r->loop_tolerance);
        crdi_flow_end(&inner);
    }
    if (f.count == 0) {
        take_back(t, mark);
        return;
    }
    crdi_flow_end(&f);
    crdi_text_add(t, "\n");
}

// Elements are JSON, which is YAML in flow style; here they stand in one line.
static void put_json(crd_text* t, const char* json, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        crdi_text_put(t, json[i] == '\n' || json[i] == '\r' ? " " : &json[i], 1);
    }
}

// The members of the element, then what surrounds it. Files were read with the description.
static void write_yaml_put_coupling(crd_text* t, const crd_coupling_spec* c)
{
    const char* json = c->element + strspn(c->element, " \t\r\n");
    const char* close = strrchr(json, '}');
    const bool object = json[0] == '{' && close;
    const bool empty = object && json + 1 + strspn(json + 1, " \t\r\n") == close;
    const bool plain =
        !c->has_channel && c->shadow_count == 0 && c->record && !c->model && !c->target;
    if (!object || plain) {
        put_json(t, json, strlen(json));
        return;
    }
    crdi_flow f = {.t = t};
    if (!empty) {
        put_json(t, json, (size_t)(close - json));
        f.count = 1;
    }
    if (c->has_channel) {
        crdi_flow inner = {.t = t};
        crdi_flow_key(&f, "channel");
        crdi_flow_channel(&inner, &c->channel);
        crdi_flow_end(&inner);
    }
    if (c->shadow_count > 0) {
        crdi_flow_key(&f, "shadow");
        for (int i = 0; i < c->shadow_count; i++) {
            crdi_text_add(t, "%s", i ? ", " : "[");
            put_json(t, c->shadows[i], strlen(c->shadows[i]));
        }
        crdi_text_add(t, "]");
    }
    if (!c->record) { crdi_flow_bool(&f, "record", false); }
    if (c->model) { crdi_flow_text(&f, "model", c->model); }
    if (c->target) {
        crdi_flow_text(&f, "target", c->target == CRD_TARGET_NOW ? "now" : "round-trip");
    }
    crdi_flow_end(&f);
}

static const char* end_text(crdi_pack_writer* w, int unit, const char* variable)
{
    return crdi_arena_format(&w->arena, "%s.%s", w->parts[unit].name, variable);
}

static bool write_yaml_is_given(double x) // of scale and tolerance
{
    return !isnan(x) && x != 0;
}

static crd_status write_yaml_put_connections(crdi_pack_writer* w)
{
    const crd_system* s = w->s;
    crd_text* t = &w->yaml;
    bool first = true;
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        const bool measured = write_yaml_is_given(c->scale) || write_yaml_is_given(c->tolerance);
        if (!c->coupling && c->predict == s->run.predict && !measured) { continue; }
        const char* from = end_text(w, c->from_unit, c->from);
        const char* to = end_text(w, c->to_unit, c->to);
        if (!from || !to) { return CRD_E_MEMORY; }
        crdi_text_add(t, "%s  - ", first ? "connections:\n" : "");
        crdi_flow f = {.t = t};
        crdi_flow_text(&f, "from", from);
        crdi_flow_text(&f, "to", to);
        if (c->coupling) {
            crdi_flow_key(&f, "coupling");
            write_yaml_put_coupling(t, c->coupling);
        } else {
            if (c->predict != s->run.predict) {
                crdi_flow_text(&f, "predict", crd_prediction_name(c->predict));
            }
            if (write_yaml_is_given(c->scale)) { crdi_flow_number(&f, "scale", c->scale); }
            if (write_yaml_is_given(c->tolerance)) {
                crdi_flow_number(&f, "tolerance", c->tolerance);
            }
        }
        crdi_flow_end(&f);
        crdi_text_add(t, "\n");
        first = false;
    }
    return CRD_OK;
}

static crd_status put_bonds(crdi_pack_writer* w)
{
    const crd_system* s = w->s;
    crd_text* t = &w->yaml;
    if (s->bond_count > 0) { crdi_text_add(t, "bonds:\n"); }
    for (int i = 0; i < s->bond_count; i++) {
        const crd_bond_spec* b = &s->bonds[i];
        const char* action = end_text(w, b->action_unit, b->action);
        const char* flows = end_text(w, b->flow_unit, b->flow);
        if (!action || !flows) { return CRD_E_MEMORY; }
        crdi_text_add(t, "  - ");
        crdi_flow f = {.t = t};
        crdi_flow_bond(&f, b, action, flows);
        crdi_flow_end(&f);
        crdi_text_add(t, "\n");
    }
    return CRD_OK;
}

// Without the file: it would be relative to the place where the package happens to be unpacked.
static void put_results(crdi_pack_writer* w)
{
    const crd_results_spec* r = &w->s->results;
    crd_text* t = &w->yaml;
    const size_t mark = t->length;
    crdi_text_add(t, "results: ");
    crdi_flow f = {.t = t};
    if (r->pattern_count > 0) {
        crdi_flow_key(&f, "variables");
        for (int i = 0; i < r->pattern_count; i++) {
            crdi_text_add(t, "%s", i ? ", " : "[");
            crdi_yaml_text(t, r->patterns[i]);
        }
        crdi_text_add(t, "]");
    }
    if (r->interval > 0) { crdi_flow_number(&f, "interval", r->interval); }
    if (r->unit_row) { crdi_flow_bool(&f, "unit_row", true); }
    if (r->mat_version) {
        crdi_flow_key(&f, "mat");
        crdi_text_add(t, "%s", r->mat_version == 73 ? "7.3" : "5");
    }
    if (r->on_full && !strpbrk(r->on_full, "./")) { // a file belongs to a machine
        crdi_flow_key(&f, "on_full");
        crdi_yaml_text(t, r->on_full);
    }
    if (f.count == 0) {
        take_back(t, mark);
        return;
    }
    crdi_flow_end(&f);
    crdi_text_add(t, "\n");
}

crd_status crdi_pack_yaml(crdi_pack_writer* w)
{
    put_units(w);
    write_yaml_put_run(w);
    crd_status st = write_yaml_put_connections(w);
    if (st >= 0) { st = put_bonds(w); }
    put_results(w);
    return st < 0 || w->yaml.failed ? CRD_E_MEMORY : CRD_OK;
}
