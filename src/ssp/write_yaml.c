// What SSP has no word for, as the text of our annotation: see crd_system_amend.
#include "ssp/write.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

static const char* const interpolations[] = {"hold", "linear"};
static const char* const methods[] = {"bdf", "adams", "euler", "rk4"};
static const char* const shapes[] = {"constant", "step", "ramp",      "sine",
                                     "chirp",    "prbs", "multisine", "table"};

// ---- scalars -----------------------------------------------------------------------------------

// Whether YAML takes it for a text as it stands. What looks like a number may stay one: texts of
// start values are the same with and without quotes.
static bool is_plain(const char* text)
{
    static const char* const words[] = {"null", "true", "false", "yes", "no", "on", "off"};
    if (!isalnum((unsigned char)text[0]) && text[0] != '_' &&
        !(text[0] == '-' && isdigit((unsigned char)text[1]))) {
        return false;
    }
    for (const char* c = text; *c; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("_.-+", *c)) { return false; }
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(text, words[i]) == 0) { return false; }
    }
    return true;
}

static void put_text(crd_text* t, const char* text)
{
    if (is_plain(text)) {
        crdi_text_put(t, text, strlen(text));
    } else {
        crdi_text_json(t, text); // a double-quoted scalar of YAML
    }
}

// The members of a flow mapping: "{ a: 1, b: 2 }".
typedef struct flow {
    crd_text* t;
    int count;
} flow;

static void put_key(flow* f, const char* key)
{
    crdi_text_add(f->t, "%s", f->count++ ? ", " : "{ ");
    put_text(f->t, key);
    crdi_text_add(f->t, ": ");
}

static void end_flow(flow* f)
{
    crdi_text_add(f->t, "%s", f->count ? " }" : "{}");
}

static void put_number(flow* f, const char* key, double x)
{
    put_key(f, key);
    crdi_text_json_number(f->t, x);
}

static void put_word(flow* f, const char* key, const char* text)
{
    put_key(f, key);
    put_text(f->t, text);
}

static void put_true(flow* f, const char* key)
{
    put_key(f, key);
    crdi_text_add(f->t, "true");
}

// Nothing was said since: as if it had not been begun.
static void take_back(crd_text* t, size_t length)
{
    if (t->failed) { return; }
    t->length = length;
    crdi_text_put(t, "", 0);
}

static void put_numbers(flow* f, const char* key, const double* x, int count)
{
    put_key(f, key);
    for (int i = 0; i < count; i++) {
        crdi_text_add(f->t, "%s", i ? ", " : "[");
        crdi_text_json_number(f->t, x[i]);
    }
    crdi_text_add(f->t, "]");
}

static void put_given(flow* f, const char* key, double x)
{
    if (!isnan(x)) { put_number(f, key, x); }
}

// ---- units -------------------------------------------------------------------------------------

// Only the keys that the shape has a use for: others would be refused.
static void put_signal(crd_text* t, const crd_signal_spec* g)
{
    flow f = {.t = t};
    const crd_signal_shape is = g->shape;
    put_word(&f, "shape", shapes[is]);
    if (g->unit[0]) { put_word(&f, "unit", g->unit); }
    if (is == CRD_SIGNAL_CONSTANT && g->amplitude == 0) {
        put_number(&f, "value", g->offset);
    } else {
        if (g->offset != 0) { put_number(&f, "offset", g->offset); }
        if (g->amplitude != 1) { put_number(&f, "amplitude", g->amplitude); }
    }
    if (is != CRD_SIGNAL_CONSTANT && g->start != 0) { put_number(&f, "start", g->start); }
    if (is == CRD_SIGNAL_RAMP || is == CRD_SIGNAL_CHIRP || is == CRD_SIGNAL_PRBS) {
        put_number(&f, "duration", g->duration);
    }
    if (is == CRD_SIGNAL_SINE || is == CRD_SIGNAL_CHIRP) {
        put_number(&f, "frequency", g->frequency);
    }
    if (is == CRD_SIGNAL_CHIRP || is == CRD_SIGNAL_MULTISINE) {
        put_number(&f, "frequency2", g->frequency2);
    }
    if (is == CRD_SIGNAL_SINE && g->phase != 0) { put_number(&f, "phase", g->phase); }
    if (is == CRD_SIGNAL_PRBS || is == CRD_SIGNAL_MULTISINE) {
        put_key(&f, "order");
        crdi_text_add(t, "%d", g->order);
        put_key(&f, "seed");
        crdi_text_add(t, "%llu", (unsigned long long)g->seed);
    }
    if (is == CRD_SIGNAL_TABLE) {
        put_numbers(&f, "times", g->times, g->table_count);
        put_numbers(&f, "values", g->values, g->table_count);
        put_word(&f, "interpolation", interpolations[g->interpolation]);
    }
    end_flow(&f);
}

static void put_signals(flow* f, const crd_unit_spec* u)
{
    if (u->signal_count == 1 && strcmp(u->signals[0].name, "y") == 0) {
        put_key(f, "signal");
        put_signal(f->t, &u->signals[0]);
        return;
    }
    put_key(f, "signals");
    flow inner = {.t = f->t};
    for (int i = 0; i < u->signal_count; i++) {
        put_key(&inner, u->signals[i].name);
        put_signal(f->t, &u->signals[i]);
    }
    end_flow(&inner);
}

static void put_replay(flow* f, const crd_unit_spec* u, const char* source)
{
    put_word(f, "replay", source);
    if (u->interpolation != CRD_INTERPOLATE_LINEAR) {
        put_word(f, "interpolation", interpolations[u->interpolation]);
    }
    if (u->column_count > 0) {
        put_key(f, "columns");
        flow inner = {.t = f->t};
        for (int i = 0; i < u->column_count; i++) {
            const crd_column_spec* c = &u->columns[i];
            put_key(&inner, c->name);
            flow column = {.t = f->t};
            if (c->has_interpolation) {
                put_word(&column, "interpolation", interpolations[c->interpolation]);
            }
            if (c->unit && c->unit[0]) { put_word(&column, "unit", c->unit); }
            end_flow(&column);
        }
        end_flow(&inner);
    }
    if (u->time_offset != 0) { put_number(f, "time_offset", u->time_offset); }
    if (u->repeat) { put_true(f, "repeat"); }
}

static void put_solver(flow* f, const crd_solver_spec* s)
{
    if (s->method == CRD_SOLVER_BDF && isnan(s->relative) && isnan(s->absolute) && isnan(s->step)) {
        return;
    }
    put_key(f, "solver");
    flow inner = {.t = f->t};
    if (s->method != CRD_SOLVER_BDF) { put_word(&inner, "method", methods[s->method]); }
    put_given(&inner, "relative", s->relative);
    put_given(&inner, "absolute", s->absolute);
    put_given(&inner, "step", s->step);
    end_flow(&inner);
}

static void put_fmu(flow* f, const crd_unit_spec* u, const crdi_pack_part* p)
{
    put_solver(f, &u->solver);
    if (u->logging) { put_true(f, "logging"); }
    if (u->pinned) { put_true(f, "pinned"); }
    if (u->refresh != CRD_REFRESH_AUTO) {
        put_key(f, "refresh");
        crdi_text_add(f->t, "%s", u->refresh == CRD_REFRESH_YES ? "yes" : "no");
    }
    if (p->rest_count == 0) { return; }
    put_key(f, "parameters");
    flow inner = {.t = f->t};
    for (int i = 0; i < p->rest_count; i++) {
        put_word(&inner, p->rest[i]->variable, p->rest[i]->text);
    }
    end_flow(&inner);
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
        put_text(t, w->parts[i].name);
        crdi_text_add(t, ": ");
        flow f = {.t = t};
        if (u->source == CRD_UNIT_SIGNAL) { put_signals(&f, u); }
        if (u->source == CRD_UNIT_REPLAY) { put_replay(&f, u, w->parts[i].source); }
        if (u->step > 0) { put_number(&f, "step", u->step); }
        if (u->real) { put_true(&f, "real"); }
        put_given(&f, "budget", u->budget);
        if (u->source == CRD_UNIT_FMU) { put_fmu(&f, u, &w->parts[i]); }
        if (f.count == 0) { // nothing to say of this one
            take_back(t, mark);
            continue;
        }
        end_flow(&f);
        crdi_text_add(t, "\n");
        first = false;
    }
}

// ---- run, connections, results -----------------------------------------------------------------

static void put_group(crdi_pack_writer* w, const crd_group* g)
{
    crd_text* t = &w->yaml;
    if (g->kind == CRD_GROUP_UNIT) {
        put_text(t, w->parts[g->unit].name);
        return;
    }
    crdi_text_add(t, "{ %s: [", g->kind == CRD_GROUP_JACOBI ? "jacobi" : "gauss-seidel");
    for (int i = 0; i < g->member_count; i++) {
        if (i) { crdi_text_add(t, ", "); }
        put_group(w, &g->members[i]);
    }
    crdi_text_add(t, "] }");
}

static void put_control(flow* f, const crd_control_spec* c)
{
    if (!c->on) { return; }
    put_key(f, "control");
    flow inner = {.t = f->t};
    put_number(&inner, "tolerance", c->tolerance);
    if (c->method == CRD_STEP_PI) { put_word(&inner, "method", "pi"); }
    if (c->absolute) { put_true(&inner, "absolute"); }
    put_given(&inner, "first", c->first);
    put_given(&inner, "floor", c->floor);
    put_given(&inner, "ceiling", c->ceiling);
    put_given(&inner, "kp", c->kp);
    put_given(&inner, "ki", c->ki);
    put_given(&inner, "growth", c->growth);
    put_given(&inner, "safety", c->safety);
    put_given(&inner, "reject", c->reject);
    if (c->one_sided) { put_word(&inner, "defects", "one-sided"); }
    if (!c->middle) {
        put_key(&inner, "middle");
        crdi_text_add(f->t, "false");
    }
    end_flow(&inner);
}

static void put_iterate(flow* f, const crd_iterate_spec* i)
{
    if (!i->on) { return; }
    put_key(f, "iterate");
    flow inner = {.t = f->t};
    put_number(&inner, "tolerance", i->tolerance);
    put_key(&inner, "sweeps");
    crdi_text_add(f->t, "%d", i->sweeps);
    if (i->acceleration != CRD_ACCEL_IQN_ILS) {
        put_word(&inner, "acceleration", crd_accel_name(i->acceleration));
    }
    if (i->stop) { put_word(&inner, "otherwise", "stop"); }
    end_flow(&inner);
}

static void put_whole(flow* f, const char* key, int value)
{
    put_key(f, key);
    crdi_text_add(f->t, "%d", value);
}

static void put_pace(flow* f, const crd_pace_spec* p)
{
    if (!(p->factor > 0)) { return; }
    put_key(f, "pace");
    flow inner = {.t = f->t};
    put_number(&inner, "factor", p->factor);
    if (p->overrun != CRD_OVERRUN_RECORD) {
        put_word(&inner, "overrun", crd_overrun_name(p->overrun));
    }
    if (p->slack > 0) { put_number(&inner, "slack", p->slack); }
    if (p->spin > 0) { put_number(&inner, "spin", p->spin); }
    if (p->priority != 80) { put_whole(&inner, "priority", p->priority); }
    if (p->cpu >= 0) { put_whole(&inner, "cpu", p->cpu); }
    if (!p->lock) {
        put_key(&inner, "lock");
        crdi_text_add(f->t, "false");
    }
    if (p->required) { put_true(&inner, "required"); }
    end_flow(&inner);
}

static void put_quality(flow* f, const crd_run_spec* r)
{
    if (r->predict != CRD_PREDICTION_AUTO) {
        put_word(f, "predict", crd_prediction_name(r->predict));
    }
    put_control(f, &r->control);
    put_iterate(f, &r->iterate);
    if (r->feedthrough != CRD_DEFECT_FRESH) {
        put_word(f, "feedthrough", crd_defect_scheme_name(r->feedthrough));
    }
    const bool defect = r->monitor & CRD_MONITOR_DEFECT, energy = r->monitor & CRD_MONITOR_ENERGY;
    if (!defect || !energy) {
        put_word(f, "monitor", defect ? "defect" : energy ? "energy" : "none");
    }
}

static void put_run(crdi_pack_writer* w)
{
    const crd_run_spec* r = &w->s->run;
    crd_text* t = &w->yaml;
    const size_t mark = t->length;
    crdi_text_add(t, "run: ");
    flow f = {.t = t};
    if (!isnan(r->step)) { put_number(&f, "step", r->step); }
    if (!isnan(r->tolerance)) { put_number(&f, "tolerance", r->tolerance); }
    if (r->scheme == CRD_SCHEME_GAUSS_SEIDEL) { put_word(&f, "scheme", "gauss-seidel"); }
    if (r->scheme == CRD_SCHEME_GROUPS) {
        put_key(&f, "scheme");
        put_group(w, &r->group);
    }
    put_pace(&f, &r->pace);
    put_quality(&f, r);
    if (r->threads > 0) {
        put_key(&f, "threads");
        crdi_text_add(t, "%d", r->threads);
    }
    if (r->loop_iterations != 50 || r->loop_tolerance != 1e-10) {
        put_key(&f, "initialization");
        crdi_text_add(t, "{ iterations: %d, tolerance: ", r->loop_iterations);
        crdi_text_json_number(t, r->loop_tolerance);
        crdi_text_add(t, " }");
    }
    if (f.count == 0) {
        take_back(t, mark);
        return;
    }
    end_flow(&f);
    crdi_text_add(t, "\n");
}

// Elements are JSON, which is YAML in flow style; here they stand in one line.
static void put_json(crd_text* t, const char* json, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        crdi_text_put(t, json[i] == '\n' || json[i] == '\r' ? " " : &json[i], 1);
    }
}

static void put_channel(flow* f, const crd_channel_spec* c)
{
    put_key(f, "channel");
    flow inner = {.t = f->t};
    if (!isnan(c->step)) { put_number(&inner, "step", c->step); }
    put_number(&inner, "delay", c->delay);
    if (c->jitter != 0) { put_number(&inner, "jitter", c->jitter); }
    if (c->loss != 0) { put_number(&inner, "loss", c->loss); }
    if (c->burst != 1) { put_number(&inner, "burst", c->burst); }
    if (c->duplicate != 0) { put_number(&inner, "duplicate", c->duplicate); }
    if (c->seed != 1) {
        put_key(&inner, "seed");
        crdi_text_add(f->t, "%llu", (unsigned long long)c->seed);
    }
    end_flow(&inner);
}

// The members of the element, then what surrounds it. Files were read with the description.
static void put_coupling(crd_text* t, const crd_coupling_spec* c)
{
    const char* json = c->element + strspn(c->element, " \t\r\n");
    const char* close = strrchr(json, '}');
    const bool object = json[0] == '{' && close;
    const bool empty = object && json + 1 + strspn(json + 1, " \t\r\n") == close;
    if (!object || (!c->has_channel && c->shadow_count == 0 && c->record)) {
        put_json(t, json, strlen(json));
        return;
    }
    flow f = {.t = t};
    if (!empty) {
        put_json(t, json, (size_t)(close - json));
        f.count = 1;
    }
    if (c->has_channel) { put_channel(&f, &c->channel); }
    if (c->shadow_count > 0) {
        put_key(&f, "shadow");
        for (int i = 0; i < c->shadow_count; i++) {
            crdi_text_add(t, "%s", i ? ", " : "[");
            put_json(t, c->shadows[i], strlen(c->shadows[i]));
        }
        crdi_text_add(t, "]");
    }
    if (!c->record) {
        put_key(&f, "record");
        crdi_text_add(t, "false");
    }
    end_flow(&f);
}

static const char* end_text(crdi_pack_writer* w, int unit, const char* variable)
{
    return crdi_arena_format(&w->arena, "%s.%s", w->parts[unit].name, variable);
}

static bool is_given(double x) // of scale and tolerance
{
    return !isnan(x) && x != 0;
}

static crd_status put_connections(crdi_pack_writer* w)
{
    const crd_system* s = w->s;
    crd_text* t = &w->yaml;
    bool first = true;
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        const bool measured = is_given(c->scale) || is_given(c->tolerance);
        if (!c->coupling && c->predict == s->run.predict && !measured) { continue; }
        const char* from = end_text(w, c->from_unit, c->from);
        const char* to = end_text(w, c->to_unit, c->to);
        if (!from || !to) { return CRD_E_MEMORY; }
        crdi_text_add(t, "%s  - ", first ? "connections:\n" : "");
        flow f = {.t = t};
        put_word(&f, "from", from);
        put_word(&f, "to", to);
        if (c->coupling) {
            put_key(&f, "coupling");
            put_coupling(t, c->coupling);
        } else {
            if (c->predict != s->run.predict) {
                put_word(&f, "predict", crd_prediction_name(c->predict));
            }
            if (is_given(c->scale)) { put_number(&f, "scale", c->scale); }
            if (is_given(c->tolerance)) { put_number(&f, "tolerance", c->tolerance); }
        }
        end_flow(&f);
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
        flow f = {.t = t};
        if (b->name[0]) { put_word(&f, "name", b->name); }
        put_word(&f, "action", action);
        put_word(&f, "flow", flows);
        if (b->correct != CRD_CORRECT_NONE) {
            put_word(&f, "correct", crd_correction_name(b->correct));
        }
        put_given(&f, "mu", b->mu);
        put_given(&f, "ki", b->ki);
        put_given(&f, "limiter", b->limiter);
        put_given(&f, "forget", b->forget);
        end_flow(&f);
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
    flow f = {.t = t};
    if (r->pattern_count > 0) {
        put_key(&f, "variables");
        for (int i = 0; i < r->pattern_count; i++) {
            crdi_text_add(t, "%s", i ? ", " : "[");
            put_text(t, r->patterns[i]);
        }
        crdi_text_add(t, "]");
    }
    if (r->interval > 0) { put_number(&f, "interval", r->interval); }
    if (r->unit_row) { put_true(&f, "unit_row"); }
    if (r->mat_version) {
        put_key(&f, "mat");
        crdi_text_add(t, "%s", r->mat_version == 73 ? "7.3" : "5");
    }
    if (f.count == 0) {
        take_back(t, mark);
        return;
    }
    end_flow(&f);
    crdi_text_add(t, "\n");
}

crd_status crdi_pack_yaml(crdi_pack_writer* w)
{
    put_units(w);
    put_run(w);
    crd_status st = put_connections(w);
    if (st >= 0) { st = put_bonds(w); }
    put_results(w);
    return st < 0 || w->yaml.failed ? CRD_E_MEMORY : CRD_OK;
}
