// What ran and how it went, as the two JSON documents that go into a result file.
#include "master/put.h"
#include "master/verdict/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

// ---- pieces ------------------------------------------------------------------------------------

static void open_item(crd_text* t, int i)
{
    crdi_text_add(t, i ? ",\n  {" : "\n  {");
}

// The file as seen from the folder of the description, or from where a package was unpacked.
static const char* seen_from(const char* folder, size_t length, const char* path)
{
    return length && strncmp(folder, path, length) == 0 && path[length] ? path + length : path;
}

static const char* short_path(const crd_master* m, const char* path)
{
    const char* slash = strrchr(m->plan->sys->file, '/');
    const char* scratch = m->plan->sys->scratch;
    if (scratch && strncmp(scratch, path, strlen(scratch)) == 0 && path[strlen(scratch)] == '/') {
        return path + strlen(scratch) + 1;
    }
    return slash ? seen_from(m->plan->sys->file, (size_t)(slash + 1 - m->plan->sys->file), path)
                 : path;
}

// ---- what ran ----------------------------------------------------------------------------------

static crd_status put_parameters(crd_master* m, crd_text* t, crd_unit* u)
{
    crd_status st = CRD_OK;
    crd_text value, start;
    crd_text_init(&value, m->ctx);
    crd_text_init(&start, m->ctx);
    key(t, "parameters");
    crdi_text_add(t, "[");
    const int32_t n = crd_unit_setting_count(u);
    for (int32_t k = 0, shown = 0; k < n; k++) {
        int32_t variable = 0;
        bool differs = false;
        value.length = start.length = 0;
        crd_text_clear(&start); // data says that there is one
        st = crd_unit_describe_setting(u, k, &variable, &differs, &value, &start);
        if (st < 0) {
            st = crdi_fail(m->ctx, st, "out of memory for the settings of unit '%s'", u->name);
            break;
        }
        if (!differs) { continue; }
        const crd_variable* v = &u->info.variables[variable];
        crdi_text_add(t, shown++ ? ", {" : "{");
        text(t, "name", v->name);
        text(t, "value", value.data);
        key(t, "start");
        if (start.data) {
            crdi_text_json(t, start.data);
        } else {
            crdi_text_add(t, "null");
        }
        text_or_null(t, "unit", v->unit);
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]");
    crd_text_clear(&value);
    crd_text_clear(&start);
    return st;
}

static crd_status put_unit(crd_master* m, crd_text* t, const crdi_member* p)
{
    const crd_unit_spec* spec = p->unit->spec;
    const crd_unit_info* info = &p->unit->info;
    const bool is_file = spec->source == CRD_UNIT_FMU || spec->source == CRD_UNIT_REPLAY ||
                         spec->source == CRD_UNIT_DCP || spec->source == CRD_UNIT_CIRCUIT ||
                         spec->source == CRD_UNIT_TWIN;
    const crd_unit_spec* stand_in = spec->standby.model;
    const char* hash = "";
    int inputs = 0, outputs = 0;
    if (is_file) {
        const crd_status st = crdi_record_hash(m, spec->path, &hash);
        if (st < 0) { return st; }
    }
    for (int32_t i = 0; i < info->variable_count; i++) {
        inputs += info->variables[i].causality == CRD_INPUT;
        outputs += info->variables[i].causality == CRD_OUTPUT;
    }
    text(t, "name", p->unit->name);
    text(t, "kind", info->kind);
    text_or_null(t, "file", is_file ? short_path(m, spec->path) : NULL);
    text_or_null(t, "sha256", hash);
    const bool named = stand_in && stand_in->path && stand_in->path[0];
    text_or_null(t, "standby", named ? short_path(m, stand_in->path) : NULL);
    text_or_null(t, "model", info->model);
    text_or_null(t, "version", info->model_version);
    text_or_null(t, "tool", info->tool);
    text_or_null(t, "date", info->date);
    number(t, "step", p->step);
    integer(t, "inputs", inputs);
    integer(t, "outputs", outputs);
    return put_parameters(m, t, p->unit);
}

static void put_end(const crd_master* m, crd_text* t, const char* name, int unit,
                    const char* variable)
{
    char* whole = crdi_format(m->ctx, "%s.%s", m->plan->members[unit].unit->name, variable);
    if (!whole) { t->failed = true; }
    text(t, name, whole ? whole : "");
    crd_free(m->ctx, whole);
}

static void put_coupling(crd_master* m, crd_text* t, const crdi_connection* k)
{
    key(t, "coupling");
    if (!k || !k->spec->coupling) {
        crdi_text_add(t, "null");
        return;
    }
    const crdi_coupled* c = &m->connections.coupled[k->couple];
    const crd_channel_spec* h = c->channel;
    crdi_text_add(t, "{");
    text(t, "algorithm", c->estimators[0].label);
    number(t, "step", c->interval);
    number(t, "latency", c->estimators[0].latency);
    key(t, "shadows");
    crdi_text_add(t, "[");
    for (int i = 1; i < c->estimator_count; i++) {
        crdi_text_add(t, i > 1 ? ", " : "");
        crdi_text_json(t, c->estimators[i].label);
    }
    crdi_text_add(t, "]");
    key(t, "channel");
    crdi_text_add(t, h ? "{" : "null}");
    if (!h) { return; }
    number(t, "delay", h->delay);
    number(t, "jitter", h->jitter);
    number(t, "loss", h->loss);
    integer(t, "burst", h->burst);
    number(t, "duplicate", h->duplicate);
    key(t, "seed");
    crdi_text_add(t, "%llu}}", (unsigned long long)h->seed);
}

static crd_status put_connections(crd_master* m, crd_text* t)
{
    const int n = m->plan->sys->connection_count;
    const crdi_connection** of = crdi_new_array(m->ctx, (size_t)n, sizeof *of);
    if (!of) { return CRD_E_MEMORY; }
    for (int i = m->plan->connection_count - 1; i >= 0;
         i--) { // elements of an array share all that is shown
        of[m->plan->connections[i].spec - m->plan->sys->connections] = &m->plan->connections[i];
    }
    for (int i = 0; i < n; i++) {
        const crd_connection_spec* c = &m->plan->sys->connections[i];
        const crdi_connection* k = of[i];
        open_item(t, i);
        put_end(m, t, "from", c->from_unit, c->from);
        put_end(m, t, "to", c->to_unit, c->to);
        const crd_unit* to = m->plan->members[c->to_unit].unit;
        text_or_null(t, "unit", k ? to->info.variables[k->to.variable].unit : NULL);
        text(t, "predict", crd_prediction_name(k && k->real ? c->predict : CRD_PREDICTION_HOLD));
        number(t, "gain", k ? k->gain : 1);
        number(t, "offset", k ? k->offset : 0);
        boolean(t, "mapped", k && k->mapping);
        put_coupling(m, t, k);
        crdi_text_add(t, "}");
    }
    crd_free(m->ctx, (void*)of);
    return CRD_OK;
}

static crd_status put_system(crd_master* m, crd_text* t)
{
    const char* hash = "";
    const crd_status st = crdi_record_hash(m, m->plan->sys->file, &hash);
    if (st < 0) { return st; }
    key(t, "system");
    crdi_text_add(t, "{");
    text(t, "file", m->plan->sys->file);
    text(t, "title", m->plan->sys->title ? m->plan->sys->title : "");
    text_or_null(t, "sha256", hash);
    text(t, "base", m->plan->sys->base ? m->plan->sys->base : "");
    crdi_text_add(t, "}");
    return CRD_OK;
}

static void put_machine(const crd_master* m, crd_text* t)
{
    struct utsname name;
    struct tm utc;
    char at[64] = "", os[256] = "";
    const time_t seconds =
        m->life.wall_start ? (time_t)(m->life.wall_start / 1000000000) : time(NULL);
    if (gmtime_r(&seconds, &utc)) { strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &utc); }
    if (uname(&name) == 0) {
        snprintf(os, sizeof os, "%.80s %.80s %.80s", name.sysname, name.release, name.machine);
    }
    text_or_null(t, "started", at);
    key(t, "machine");
    crdi_text_add(t, "{");
    text_or_null(t, "os", os);
    integer(t, "processors", sysconf(_SC_NPROCESSORS_ONLN));
    crdi_text_add(t, "}");
}

// null: steps are not controlled
static void put_control_settings(const crd_master* m, crd_text* t)
{
    const crd_control_spec* c = &m->plan->sys->run.control;
    key(t, "control");
    crdi_text_add(t, m->plan->controlled ? "{" : "null");
    if (!m->plan->controlled) { return; }
    text(t, "method", c->method == CRD_STEP_PI ? "pi" : "h211b");
    number(t, "tolerance", c->tolerance);
    boolean(t, "absolute", c->absolute);
    number(t, "reject", c->reject);
    crdi_text_add(t, "}");
}

static void put_iterate_settings(const crd_master* m, crd_text* t)
{
    const crd_iterate_spec* s = &m->plan->sys->run.iterate;
    key(t, "iterate");
    crdi_text_add(t, m->plan->iterated ? "{" : "null");
    if (!m->plan->iterated) { return; }
    text(t, "acceleration", crd_accel_name(s->acceleration));
    number(t, "tolerance", s->tolerance);
    integer(t, "sweeps", s->sweeps);
    crdi_text_add(t, "}");
}

// null: as fast as possible
static void put_pace_settings(const crd_master* m, crd_text* t)
{
    const crd_pace_spec* p = &m->plan->sys->run.pace;
    key(t, "pace");
    crdi_text_add(t, m->plan->paced ? "{" : "null");
    if (!m->plan->paced) { return; }
    number(t, "factor", p->factor);
    text(t, "overrun", crd_overrun_name(p->overrun));
    number(t, "slack", p->slack);
    number(t, "spin", p->spin);
    number(t, "priority", p->priority > 0 ? (double)p->priority : (double)NAN);
    number(t, "cpu", p->cpu >= 0 ? (double)p->cpu : (double)NAN);
    boolean(t, "lock", p->lock);
    boolean(t, "required", p->required);
    crdi_text_add(t, "}");
}

static void put_run(const crd_master* m, crd_text* t)
{
    static const char* const schemes[] = {
        [CRD_SCHEME_JACOBI] = "jacobi",
        [CRD_SCHEME_GAUSS_SEIDEL] = "gauss-seidel",
        [CRD_SCHEME_GROUPS] = "groups",
    };
    key(t, "run");
    crdi_text_add(t, "{");
    number(t, "start", m->plan->times.start);
    number(t, "stop", m->plan->times.stop);
    number(t, "step", m->plan->times.tick);
    number(t, "tolerance", m->plan->times.tolerance);
    text(t, "scheme", schemes[m->plan->sys->run.scheme]);
    number(t, "threads",
           m->plan->sys->run.threads > 0 ? (double)m->plan->sys->run.threads : (double)NAN);
    put_control_settings(m, t);
    put_iterate_settings(m, t);
    put_pace_settings(m, t);
    crdi_text_add(t, "}");
}

static void put_bonds(const crd_master* m, crd_text* t)
{
    key(t, "bonds");
    crdi_text_add(t, "[");
    for (int i = 0; i < m->energy.bond_count; i++) {
        const crdi_bond* p = &m->energy.bonds[i];
        open_item(t, i);
        text(t, "name", p->name);
        text(t, "action", p->action_name);
        text(t, "flow", p->flow_name);
        text(t, "correct", crd_correction_name(p->bond.correction));
        number(t, "mu", p->bond.mu);
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]");
}

crd_status crd_master_describe_run(crd_master* m, crd_text* out)
{
    crd_status st = CRD_OK;
    crd_text* t = out;
    crdi_text_add(t, "{");
    integer(t, "format", 1);
    text(t, "cardan", crd_version());
    CRD_TRY(put_system(m, t));
    put_machine(m, t);
    put_run(m, t);
    key(t, "units");
    crdi_text_add(t, "[");
    for (int i = 0; i < m->plan->member_count; i++) {
        open_item(t, i);
        CRD_TRY(put_unit(m, t, &m->plan->members[i]));
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]");
    key(t, "connections");
    crdi_text_add(t, "[");
    CRD_TRY(put_connections(m, t));
    crdi_text_add(t, "]");
    put_bonds(m, t);
    integer(t, "signals", m->record.signal_count);
    key(t, "rasters");
    crdi_text_add(t, "[");
    for (int i = 0; i < m->record.raster_count; i++) {
        crdi_text_add(t, i ? ", {" : "{");
        text(t, "name", m->record.rasters[i].name);
        number(t, "interval", (double)m->record.rasters[i].ticks * m->plan->times.tick);
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]}\n");
    if (t->failed) { st = crdi_fail(m->ctx, CRD_E_MEMORY, "out of memory"); }
fail:
    return st;
}

// ---- how it went -------------------------------------------------------------------------------

static void put_unit_times(crd_text* t, const crd_unit_report* r)
{
    text(t, "name", r->name);
    text(t, "kind", r->kind);
    integer(t, "steps", r->steps);
    number(t, "step_size", r->step_size);
    number(t, "time_step", r->time_step);
    number(t, "time_get", r->time_get);
    number(t, "time_set", r->time_set);
    number(t, "worst_step", r->worst_step);
    integer(t, "measured", r->measured);
    number(t, "budget", r->budget);
    integer(t, "late", r->late);
    key(t, "link");
    if (r->link) {
        (void)crdi_link_to_json(r->link, t);
    } else {
        crdi_text_add(t, "null");
    }
    key(t, "standby");
    if (r->standby) {
        crdi_text_add(t, "{");
        integer(t, "takeovers", r->standby->takeovers);
        integer(t, "returns", r->standby->returns);
        number(t, "stood_in", r->standby->stood_in);
        crdi_text_add(t, "}");
    } else {
        crdi_text_add(t, "null");
    }
}

static void put_loop(crd_text* t, const crd_loop_report* l)
{
    text(t, "text", l->text);
    integer(t, "size", l->size);
    integer(t, "iterations", l->iterations);
    number(t, "residual", l->residual);
    boolean(t, "newton", l->newton);
    boolean(t, "converged", l->converged);
}

static void put_tap(crd_text* t, const crd_tap_report* r)
{
    text(t, "algorithm", r->label);
    integer(t, "scored", r->scored);
    number(t, "C", 100 * r->metrics.C); // %
    number(t, "M", 100 * r->metrics.M);
    number(t, "P", 100 * r->metrics.P);
    number(t, "rms", r->metrics.rms);
    number(t, "worst", r->metrics.worst);
}

static void put_coupled(crd_text* t, const crd_coupling_report* r)
{
    const crd_coupling_counts* n = &r->taps[0].counts;
    text(t, "from", r->from);
    text(t, "to", r->to);
    number(t, "step", r->step);
    put_tap(t, &r->taps[0]);
    number(t, "k_mean", r->k_mean);
    integer(t, "k_max", r->k_max);
    integer(t, "sent", r->sent);
    integer(t, "lost", r->lost);
    integer(t, "repeated", r->repeated);
    integer(t, "filled", n->filled);
    integer(t, "late", n->late);
    integer(t, "too_late", n->too_late);
    integer(t, "duplicates", n->duplicates);
    integer(t, "not_finite", n->not_finite);
    integer(t, "beyond", n->beyond);
    integer(t, "jumps", n->jumps);
    integer(t, "restarts", n->restarts);
    integer(t, "swaps", n->swaps);
    integer(t, "rollbacks", n->rollbacks);
    key(t, "shadows");
    crdi_text_add(t, "[");
    for (int i = 1; i < r->tap_count; i++) {
        crdi_text_add(t, i > 1 ? ", {" : "{");
        put_tap(t, &r->taps[i]);
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]");
    text(t, "hint", r->hint);
}

static void put_flow(crd_text* t, const crd_flow_report* r)
{
    text(t, "from", r->from);
    text(t, "to", r->to);
    text(t, "unit", r->unit);
    text(t, "predict", crd_prediction_name(r->predict));
    text(t, "used", r->used);
    number(t, "share", r->share);
    integer(t, "order", r->order);
    boolean(t, "constant", r->hold_only);
    number(t, "step", r->step);
    number(t, "scale", r->scale);
    number(t, "defect_rms", r->rms);
    number(t, "defect_max", r->max);
    number(t, "defect_max_time", r->max_time);
    number(t, "output_defect_rms", r->output_rms);
    number(t, "relative", r->relative);
    number(t, "error_rms", r->error_rms);
    number(t, "error_max", r->error_max);
    integer(t, "jumps", r->jumps);
    integer(t, "switches", r->switches);
}

static void put_bond(crd_text* t, const crd_bond_report* r)
{
    text(t, "name", r->name);
    text(t, "action", r->action);
    text(t, "flow", r->flow);
    text(t, "correct", crd_correction_name(r->correct));
    number(t, "mu", r->mu);
    number(t, "energy", r->energy);
    number(t, "residual", r->residual);
    number(t, "work", r->work);
    number(t, "transferred", r->transferred);
    number(t, "relative", r->relative);
    number(t, "power_min", r->power_min);
    number(t, "power_max", r->power_max);
}

// null: steps were not controlled
static void put_control(crd_text* t, const crd_control_report* r)
{
    key(t, "control");
    crdi_text_add(t, r->on ? "{" : "null");
    if (!r->on) { return; }
    number(t, "tolerance", r->tolerance);
    number(t, "first", r->first);
    number(t, "shortest", r->shortest);
    number(t, "longest", r->longest);
    number(t, "mean", r->mean);
    number(t, "worst", r->worst);
    integer(t, "rejected", r->rejected);
    integer(t, "at_floor", r->at_floor);
    integer(t, "at_ceiling", r->at_ceiling);
    integer(t, "events", r->events);
    crdi_text_add(t, "}");
}

// null: steps were not iterated
static void put_iteration(crd_text* t, const crd_iteration_report* r)
{
    key(t, "iteration");
    crdi_text_add(t, r->on ? "{" : "null");
    if (!r->on) { return; }
    integer(t, "steps", r->steps);
    integer(t, "sweeps", r->sweeps);
    integer(t, "most", r->most);
    integer(t, "failed", r->failed);
    number(t, "failed_time", r->failed ? r->failed_time : (double)NAN);
    text_or_null(t, "failed_connection", r->failed_flow);
    key(t, "residuals");
    crdi_text_add(t, "[");
    for (int i = 0; i < r->residual_count; i++) {
        crdi_text_add(t, i ? ", " : "");
        crdi_text_json_number(t, r->residuals[i]);
    }
    crdi_text_add(t, "]");
    text(t, "stepped_once", r->explicit_units ? r->explicit_units : "");
    crdi_text_add(t, "}");
}

static void put_quality(const crd_master* m, crd_text* t, const crd_master_report* r)
{
    key(t, "flows");
    crdi_text_add(t, "[");
    for (int i = 0; i < r->flow_count; i++) {
        open_item(t, i);
        put_flow(t, &r->flows[i]);
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]");
    key(t, "bonds");
    crdi_text_add(t, "[");
    for (int i = 0; i < r->bond_count; i++) {
        open_item(t, i);
        put_bond(t, &r->bonds[i]);
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]");
    put_control(t, &r->control);
    put_iteration(t, &r->iteration);
    number(t, "defect_goal", crdi_defect_goal(m));
    number(t, "energy_goal", crdi_energy_goal(m));
    number(t, "worst_defect", r->worst_defect);
    number(t, "worst_energy", r->worst_energy);
    text(t, "error_note", r->error_note);
    key(t, "advice");
    crdi_text_add(t, "[");
    for (int i = 0; i < r->advice_count; i++) {
        crdi_text_add(t, i ? ", " : "");
        crdi_text_json(t, r->advice[i]);
    }
    crdi_text_add(t, "]");
}

static const char* end_text(const crd_master* m)
{
    static const char* const ends[] = {
        [CRD_END_STOP_TIME] = "stop time",     [CRD_END_UNIT] = "unit",
        [CRD_END_INTERRUPTED] = "interrupted", [CRD_END_FAILED] = "failed",
        [CRD_END_OVERRUN] = "overrun",
    };
    if (m->life.stopped_by_page && m->life.end == CRD_END_INTERRUPTED) { return "page"; }
    return m->life.end == CRD_END_NONE && m->life.finished ? "interrupted" : ends[m->life.end];
}

crd_status crd_master_describe_verdict(crd_master* m, crd_text* out)
{
    crd_text* t = out;
    const crd_master_report* r = crd_master_get_report(m);
    crdi_text_add(t, "{");
    integer(t, "format", 1);
    text_or_null(t, "end", end_text(m));
    text(t, "unit", r->end_unit);
    text(t, "message", m->life.message);
    number(t, "time", r->time);
    integer(t, "steps", r->steps);
    number(t, "wall_time", r->wall_time);
    number(t, "initialization_time", r->initialization_time);
    integer(t, "rows", r->rows);
    integer(t, "threads", r->threads);
    key(t, "units");
    crdi_text_add(t, "[");
    for (int i = 0; i < r->unit_count; i++) {
        open_item(t, i);
        put_unit_times(t, &r->units[i]);
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]");
    key(t, "loops");
    crdi_text_add(t, "[");
    for (int i = 0; i < r->loop_count; i++) {
        open_item(t, i);
        put_loop(t, &r->loops[i]);
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]");
    key(t, "couplings");
    crdi_text_add(t, "[");
    for (int i = 0; i < r->coupling_count; i++) {
        open_item(t, i);
        put_coupled(t, &r->couplings[i]);
        crdi_text_add(t, "}");
    }
    crdi_text_add(t, "]");
    put_quality(m, t, r);
    key(t, "pace");
    (void)crdi_pace_to_json(r->pace, m->plan->unit_names, m->plan->member_count, t);
    pthread_mutex_lock(&m->events.lock);
    integer(t, "warnings", m->events.warnings);
    pthread_mutex_unlock(&m->events.lock);
    crdi_text_add(t, "}\n");
    const bool complete = r->unit_count == m->plan->member_count && m->verdict.judge && !t->failed;
    return complete ? CRD_OK : crdi_fail(m->ctx, CRD_E_MEMORY, "out of memory for the verdict");
}

// What may still grow: the numbers, each at most 24 digits, names of predictors, the message, the
// name of a unit, hints, advice and what is said about an iteration, of which a byte takes at most
// six.
crd_status crdi_record_reserve_verdict(crd_master* m)
{
    size_t longest = 0, longest_flow = 0;
    for (int i = 0; i < m->plan->member_count; i++) {
        const size_t n = strlen(m->plan->members[i].unit->name);
        longest = n > longest ? n : longest;
    }
    const crd_status st = crd_master_describe_verdict(m, &m->record.verdict);
    if (st < 0) { return st; }
    const crd_master_report* r = &m->verdict.report;
    size_t numbers = 24 * 16 + (24 * 24 + 640) * (size_t)m->plan->member_count; // links, too
    size_t hints = CRDI_ADVICE * CRDI_SENTENCE;
    numbers += 24 * (14 + CRD_RESIDUALS + 14 * (size_t)r->flow_count + 9 * (size_t)r->bond_count);
    for (int i = 0; i < r->flow_count; i++) {
        const size_t n = strlen(r->flows[i].from) + strlen(r->flows[i].to) + 4;
        longest_flow = n > longest_flow ? n : longest_flow;
    }
    for (int i = 0; i < m->connections.coupled_count; i++) {
        numbers += 24 * (24 + 6 * (size_t)m->connections.coupled[i].estimator_count);
        hints += sizeof m->connections.coupled[i].hint;
    }
    const size_t need =
        m->record.verdict.length + numbers + (m->plan->paced ? crdi_pace_json_size(longest) : 0) +
        6 * (sizeof m->life.message + longest + longest_flow + hints + CRDI_TEXT) + 512;
    char* grown = crdi_grow(m->ctx, m->record.verdict.data, &m->record.verdict.capacity, need, 1);
    if (!grown) { return CRD_E_MEMORY; }
    m->record.verdict.data = grown;
    m->record.verdict.length = 0;
    return CRD_OK;
}
