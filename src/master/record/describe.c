// What ran and how it went, as the two JSON documents that go into a result file.
#include "master/verdict/judge.h"
#include "shared/master_cycle.h"
#include "shared/system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

// ---- pieces ------------------------------------------------------------------------------------

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

static crd_status record_describe_put_parameters(crd_master* m, crdi_json_writer* w, crd_unit* u)
{
    crd_status st = CRD_OK;
    crd_text value, start;
    crd_text_init(&value, m->ctx);
    crd_text_init(&start, m->ctx);
    crdi_json_begin_list(w, "parameters");
    const int32_t n = crd_unit_setting_count(u);
    for (int32_t k = 0; k < n; k++) {
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
        crdi_json_begin_object(w, NULL);
        crdi_json_put_text(w, "name", v->name);
        crdi_json_put_text(w, "value", value.data);
        if (start.data) {
            crdi_json_put_text(w, "start", start.data);
        } else {
            crdi_json_put_null(w, "start");
        }
        crdi_json_put_text_or_null(w, "unit", v->unit);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crd_text_clear(&value);
    crd_text_clear(&start);
    return st;
}

static crd_status record_describe_put_unit(crd_master* m, crdi_json_writer* w, const crdi_member* p)
{
    const crd_unit_spec* spec = p->unit->spec;
    const crd_unit_info* info = &p->unit->info;
    const bool is_file = crdi_unit_kind_of(spec->source)->is_file;
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
    crdi_json_put_text(w, "name", p->unit->name);
    crdi_json_put_text(w, "kind", info->kind);
    crdi_json_put_text_or_null(w, "file", is_file ? short_path(m, spec->path) : NULL);
    crdi_json_put_text_or_null(w, "sha256", hash);
    const bool named = stand_in && stand_in->path && stand_in->path[0];
    crdi_json_put_text_or_null(w, "standby", named ? short_path(m, stand_in->path) : NULL);
    crdi_json_put_text_or_null(w, "model", info->model);
    crdi_json_put_text_or_null(w, "version", info->model_version);
    crdi_json_put_text_or_null(w, "tool", info->tool);
    crdi_json_put_text_or_null(w, "date", info->date);
    crdi_json_put_number(w, "step", p->step);
    crdi_json_put_integer(w, "inputs", inputs);
    crdi_json_put_integer(w, "outputs", outputs);
    return record_describe_put_parameters(m, w, p->unit);
}

static void put_end(const crd_master* m, crdi_json_writer* w, const char* name, int unit,
                    const char* variable)
{
    char* whole = crdi_format(m->ctx, "%s.%s", m->plan->members[unit].unit->name, variable);
    if (!whole) { w->out->failed = true; }
    crdi_json_put_text(w, name, whole ? whole : "");
    crd_free(m->ctx, whole);
}

static void record_describe_put_coupling(crd_master* m, crdi_json_writer* w,
                                         const crdi_connection* k)
{
    if (!k || !k->spec->coupling) {
        crdi_json_put_null(w, "coupling");
        return;
    }
    const crdi_coupled* c = &m->connections.coupled[k->couple];
    const crd_channel_spec* h = c->channel;
    crdi_json_begin_object(w, "coupling");
    crdi_json_put_text(w, "algorithm", c->estimators[0].label);
    crdi_json_put_number(w, "step", c->interval);
    crdi_json_put_number(w, "latency", c->estimators[0].latency);
    crdi_json_begin_list(w, "shadows");
    for (int i = 1; i < c->estimator_count; i++) {
        crdi_json_put_text(w, NULL, c->estimators[i].label);
    }
    crdi_json_end(w);
    if (h) {
        char seed[24];
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)h->seed);
        crdi_json_begin_object(w, "channel");
        crdi_json_put_number(w, "delay", h->delay);
        crdi_json_put_number(w, "jitter", h->jitter);
        crdi_json_put_number(w, "loss", h->loss);
        crdi_json_put_integer(w, "burst", h->burst);
        crdi_json_put_number(w, "duplicate", h->duplicate);
        crdi_json_put_raw(w, "seed", seed);
        crdi_json_end(w);
    } else {
        crdi_json_put_null(w, "channel");
    }
    crdi_json_end(w);
}

static crd_status record_describe_put_connections(crd_master* m, crdi_json_writer* w)
{
    const int n = m->plan->sys->connection_count;
    const crdi_connection** of = crdi_new_array(m->ctx, (size_t)n, sizeof *of);
    if (!of) { return CRD_E_MEMORY; }
    for (int i = m->plan->connection_count - 1; i >= 0;
         i--) { // elements of an array share all that is shown
        of[m->plan->connections[i].number] = &m->plan->connections[i];
    }
    for (int i = 0; i < n; i++) {
        const crd_connection_spec* c = &m->plan->sys->connections[i];
        const crdi_connection* k = of[i];
        crdi_json_begin_object(w, NULL);
        put_end(m, w, "from", c->from_unit, c->from);
        put_end(m, w, "to", c->to_unit, c->to);
        const crd_unit* to = m->plan->members[c->to_unit].unit;
        crdi_json_put_text_or_null(w, "unit", k ? to->info.variables[k->to.variable].unit : NULL);
        const char* predict = crd_prediction_name(k && k->real ? c->predict : CRD_PREDICTION_HOLD);
        crdi_json_put_text(w, "predict", k && k->paired ? "wave pair" : predict);
        crdi_json_put_number(w, "gain", k ? k->gain : 1);
        crdi_json_put_number(w, "offset", k ? k->offset : 0);
        crdi_json_put_bool(w, "mapped", k && k->mapping);
        record_describe_put_coupling(m, w, k);
        crdi_json_end(w);
    }
    crd_free(m->ctx, (void*)of);
    return CRD_OK;
}

static crd_status record_describe_put_system(crd_master* m, crdi_json_writer* w)
{
    const char* hash = "";
    const crd_status st = crdi_record_hash(m, m->plan->sys->file, &hash);
    if (st < 0) { return st; }
    crdi_json_begin_object(w, "system");
    crdi_json_put_text(w, "file", m->plan->sys->file);
    crdi_json_put_text(w, "title", m->plan->sys->title ? m->plan->sys->title : "");
    crdi_json_put_text_or_null(w, "sha256", hash);
    crdi_json_put_text(w, "base", m->plan->sys->base ? m->plan->sys->base : "");
    crdi_json_end(w);
    return CRD_OK;
}

static void put_machine(const crd_master* m, crdi_json_writer* w)
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
    crdi_json_put_text_or_null(w, "started", at);
    crdi_json_begin_object(w, "machine");
    crdi_json_put_text_or_null(w, "os", os);
    crdi_json_put_integer(w, "processors", sysconf(_SC_NPROCESSORS_ONLN));
    crdi_json_end(w);
}

// null: steps are not controlled
static void put_control_settings(const crd_master* m, crdi_json_writer* w)
{
    const crd_control_spec* c = &m->plan->sys->run.control;
    if (!m->plan->controlled) {
        crdi_json_put_null(w, "control");
        return;
    }
    crdi_json_begin_object(w, "control");
    crdi_json_put_text(w, "method", c->method == CRD_STEP_PI ? "pi" : "h211b");
    crdi_json_put_number(w, "tolerance", c->tolerance);
    crdi_json_put_bool(w, "absolute", c->absolute);
    crdi_json_put_number(w, "reject", c->reject);
    crdi_json_end(w);
}

static void put_iterate_settings(const crd_master* m, crdi_json_writer* w)
{
    const crd_iterate_spec* s = &m->plan->sys->run.iterate;
    if (!m->plan->iterated) {
        crdi_json_put_null(w, "iterate");
        return;
    }
    crdi_json_begin_object(w, "iterate");
    crdi_json_put_text(w, "acceleration", crd_accel_name(s->acceleration));
    crdi_json_put_number(w, "tolerance", s->tolerance);
    crdi_json_put_integer(w, "sweeps", s->sweeps);
    crdi_json_end(w);
}

// null: as fast as possible
static void put_pace_settings(const crd_master* m, crdi_json_writer* w)
{
    const crd_pace_spec* p = &m->plan->sys->run.pace;
    if (!m->plan->paced) {
        crdi_json_put_null(w, "pace");
        return;
    }
    crdi_json_begin_object(w, "pace");
    crdi_json_put_number(w, "factor", p->factor);
    crdi_json_put_text(w, "overrun", crd_overrun_name(p->overrun));
    crdi_json_put_number(w, "slack", p->slack);
    crdi_json_put_number(w, "spin", p->spin);
    crdi_json_put_number(w, "priority", p->priority > 0 ? (double)p->priority : (double)NAN);
    crdi_json_put_number(w, "cpu", p->cpu >= 0 ? (double)p->cpu : (double)NAN);
    crdi_json_put_bool(w, "lock", p->lock);
    crdi_json_put_bool(w, "required", p->required);
    crdi_json_end(w);
}

// How time is stepped, but for where it ends.
static void put_grid(const crd_master* m, crdi_json_writer* w)
{
    static const char* const schemes[] = {
        [CRD_SCHEME_JACOBI] = "jacobi",
        [CRD_SCHEME_GAUSS_SEIDEL] = "gauss-seidel",
        [CRD_SCHEME_GROUPS] = "groups",
    };
    crdi_json_put_number(w, "start", m->plan->times.start);
    crdi_json_put_number(w, "step", m->plan->times.tick);
    crdi_json_put_number(w, "tolerance", m->plan->times.tolerance);
    crdi_json_put_text(w, "scheme", schemes[m->plan->sys->run.scheme]);
    put_control_settings(m, w);
    put_iterate_settings(m, w);
}

static void record_describe_put_run(const crd_master* m, crdi_json_writer* w)
{
    crdi_json_begin_object(w, "run");
    put_grid(m, w);
    crdi_json_put_number(w, "stop", m->plan->times.stop);
    crdi_json_put_number(w, "threads",
                         m->plan->sys->run.threads > 0 ? (double)m->plan->sys->run.threads
                                                       : (double)NAN);
    put_pace_settings(m, w);
    crdi_json_end(w);
}

static void put_bonds(const crd_master* m, crdi_json_writer* w)
{
    crdi_json_begin_list(w, "bonds");
    for (int i = 0; i < m->energy.bond_count; i++) {
        const crdi_bond* p = &m->energy.bonds[i];
        crdi_json_begin_object(w, NULL);
        crdi_json_put_text(w, "name", p->name);
        crdi_json_put_text(w, "action", p->action_name);
        crdi_json_put_text(w, "flow", p->flow_name);
        crdi_json_put_text(w, "correct", crd_correction_name(p->bond.correction));
        crdi_json_put_number(w, "mu", p->bond.mu);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

crd_status crdi_describe_fingerprint(crd_master* m, crd_text* out)
{
    crd_status st = CRD_OK;
    crdi_json_writer writer, *w = &writer;
    crdi_json_writer_init(w, out, CRDI_JSON_ROWS);
    crdi_json_begin_object(w, NULL);
    crdi_json_begin_object(w, "run");
    put_grid(m, w);
    crdi_json_end(w);
    crdi_json_begin_list(w, "units");
    for (int i = 0; i < m->plan->member_count; i++) {
        crdi_json_begin_object(w, NULL);
        CRD_TRY(record_describe_put_unit(m, w, &m->plan->members[i]));
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "connections");
    CRD_TRY(record_describe_put_connections(m, w));
    crdi_json_end(w);
    put_bonds(m, w);
    crdi_json_end(w);
    if (out->failed) { st = crdi_fail(m->ctx, CRD_E_MEMORY, "out of memory"); }
fail:
    return st;
}

crd_status crd_master_describe_run(crd_master* m, crd_text* out)
{
    crd_status st = CRD_OK;
    crdi_json_writer writer, *w = &writer;
    crdi_json_writer_init(w, out, CRDI_JSON_ROWS);
    crdi_json_begin_object(w, NULL);
    crdi_json_put_integer(w, "format", 1);
    crdi_json_put_text(w, "cardan", crd_version());
    CRD_TRY(record_describe_put_system(m, w));
    put_machine(m, w);
    record_describe_put_run(m, w);
    crdi_json_begin_list(w, "units");
    for (int i = 0; i < m->plan->member_count; i++) {
        crdi_json_begin_object(w, NULL);
        CRD_TRY(record_describe_put_unit(m, w, &m->plan->members[i]));
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "connections");
    CRD_TRY(record_describe_put_connections(m, w));
    crdi_json_end(w);
    put_bonds(m, w);
    crdi_json_put_integer(w, "signals", m->record.signal_count);
    crdi_json_begin_list(w, "rasters");
    for (int i = 0; i < m->record.raster_count; i++) {
        crdi_json_begin_object(w, NULL);
        crdi_json_put_text(w, "name", m->record.rasters[i].name);
        crdi_json_put_number(w, "interval",
                             (double)m->record.rasters[i].ticks * m->plan->times.tick);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_end(w);
    crdi_text_put(out, "\n", 1);
    if (out->failed) { st = crdi_fail(m->ctx, CRD_E_MEMORY, "out of memory"); }
fail:
    return st;
}

// ---- how it went -------------------------------------------------------------------------------

static void put_unit_times(crdi_json_writer* w, const crd_unit_report* r)
{
    crdi_json_put_text(w, "name", r->name);
    crdi_json_put_text(w, "kind", r->kind);
    crdi_json_put_integer(w, "steps", r->steps);
    crdi_json_put_number(w, "step_size", r->step_size);
    crdi_json_put_number(w, "time_step", r->time_step);
    crdi_json_put_number(w, "time_get", r->time_get);
    crdi_json_put_number(w, "time_set", r->time_set);
    crdi_json_put_number(w, "worst_step", r->worst_step);
    crdi_json_put_integer(w, "measured", r->measured);
    crdi_json_put_number(w, "budget", r->budget);
    crdi_json_put_integer(w, "late", r->late);
    crdi_json_put_integer(w, "worker", r->worker);
    crdi_link_put_json(w, "link", r->link);
    if (r->standby) {
        crdi_json_begin_object(w, "standby");
        crdi_json_put_integer(w, "takeovers", r->standby->takeovers);
        crdi_json_put_integer(w, "returns", r->standby->returns);
        crdi_json_put_number(w, "stood_in", r->standby->stood_in);
        crdi_json_end(w);
    } else {
        crdi_json_put_null(w, "standby");
    }
}

static void record_describe_put_loop(crdi_json_writer* w, const crd_loop_report* l)
{
    crdi_json_put_text(w, "text", l->text);
    crdi_json_put_integer(w, "size", l->size);
    crdi_json_put_integer(w, "iterations", l->iterations);
    crdi_json_put_number(w, "residual", l->residual);
    crdi_json_put_bool(w, "newton", l->newton);
    crdi_json_put_bool(w, "converged", l->converged);
}

static void put_commands(crdi_json_writer* w, const crd_coupling_report* of,
                         const crd_coupling_commands* c)
{
    if (c->count == 0) { return; }
    crdi_json_put_number(w, "share", 100 * c->share); // %
    crdi_json_begin_list(w, "commands");
    for (int i = 0; i < c->count && i < of->command_count; i++) {
        crdi_json_begin_object(w, NULL);
        crdi_json_put_text(w, "name", of->commands[i]);
        crdi_json_put_number(w, "part", 100 * c->part[i]);
        crdi_json_put_integer(w, "changes", c->changes[i]);
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

static void put_tap(crdi_json_writer* w, const crd_coupling_report* of, const crd_tap_report* r)
{
    crdi_json_put_text(w, "algorithm", r->label);
    crdi_json_put_integer(w, "scored", r->scored);
    crdi_json_put_number(w, "C", 100 * r->metrics.C); // %
    crdi_json_put_number(w, "M", 100 * r->metrics.M);
    crdi_json_put_number(w, "P", 100 * r->metrics.P);
    crdi_json_put_number(w, "rms", r->metrics.rms);
    crdi_json_put_number(w, "worst", r->metrics.worst);
    put_commands(w, of, &r->commands);
}

static void put_coupled(crdi_json_writer* w, const crd_coupling_report* r)
{
    const crd_coupling_counts* n = &r->taps[0].counts;
    crdi_json_put_text(w, "from", r->from);
    crdi_json_put_text(w, "to", r->to);
    crdi_json_put_number(w, "step", r->step);
    put_tap(w, r, &r->taps[0]);
    crdi_json_put_number(w, "scale", r->scale > 0 ? r->scale : (double)NAN);
    crdi_json_put_number(w, "relative", r->relative);
    crdi_json_put_number(w, "signal_rms", r->signal_rms);
    crdi_json_put_number(w, "error_rms", r->error_rms);
    crdi_json_put_number(w, "k_mean", r->k_mean);
    crdi_json_put_integer(w, "k_max", r->k_max);
    crdi_json_put_integer(w, "sent", r->sent);
    crdi_json_put_integer(w, "lost", r->lost);
    crdi_json_put_integer(w, "repeated", r->repeated);
    crdi_json_put_integer(w, "filled", n->filled);
    crdi_json_put_integer(w, "late", n->late);
    crdi_json_put_integer(w, "too_late", n->too_late);
    crdi_json_put_integer(w, "duplicates", n->duplicates);
    crdi_json_put_integer(w, "not_finite", n->not_finite);
    crdi_json_put_integer(w, "beyond", n->beyond);
    crdi_json_put_integer(w, "limited", n->limited);
    crdi_json_put_integer(w, "jumps", n->jumps);
    crdi_json_put_integer(w, "restarts", n->restarts);
    crdi_json_put_integer(w, "swaps", n->swaps);
    crdi_json_put_integer(w, "rollbacks", n->rollbacks);
    crdi_json_begin_list(w, "shadows");
    for (int i = 1; i < r->tap_count; i++) {
        crdi_json_begin_object(w, NULL);
        put_tap(w, r, &r->taps[i]);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    if (r->ahead > 0) { crdi_json_put_number(w, "ahead", r->ahead); }
    crdi_json_put_text(w, "hint", r->hint);
}

static void put_flow(crdi_json_writer* w, const crd_flow_report* r)
{
    crdi_json_put_text(w, "from", r->from);
    crdi_json_put_text(w, "to", r->to);
    crdi_json_put_text(w, "unit", r->unit);
    crdi_json_put_text(w, "predict", crd_prediction_name(r->predict));
    crdi_json_put_text(w, "used", r->used);
    crdi_json_put_number(w, "share", r->share);
    crdi_json_put_integer(w, "order", r->order);
    crdi_json_put_bool(w, "constant", r->hold_only);
    crdi_json_put_number(w, "step", r->step);
    crdi_json_put_number(w, "scale", r->scale);
    crdi_json_put_number(w, "defect_rms", r->rms);
    crdi_json_put_number(w, "defect_max", r->max);
    crdi_json_put_number(w, "defect_max_time", r->max_time);
    crdi_json_put_number(w, "output_defect_rms", r->output_rms);
    crdi_json_put_number(w, "relative", r->relative);
    crdi_json_put_number(w, "signal_rms", r->signal_rms);
    crdi_json_put_number(w, "error_rms", r->error_rms);
    crdi_json_put_number(w, "error_max", r->error_max);
    crdi_json_put_number(w, "error_bound", r->error_bound);
    crdi_json_put_number(w, "solver_rms", r->solver_rms);
    crdi_json_put_integer(w, "jumps", r->jumps);
    crdi_json_put_integer(w, "switches", r->switches);
}

static void record_describe_put_bond(crdi_json_writer* w, const crd_bond_report* r)
{
    crdi_json_put_text(w, "name", r->name);
    crdi_json_put_text(w, "action", r->action);
    crdi_json_put_text(w, "flow", r->flow);
    crdi_json_put_text(w, "correct", crd_correction_name(r->correct));
    crdi_json_put_number(w, "mu", r->mu);
    crdi_json_put_number(w, "energy", r->energy);
    crdi_json_put_number(w, "residual", r->residual);
    crdi_json_put_number(w, "work", r->work);
    crdi_json_put_number(w, "transferred", r->transferred);
    crdi_json_put_number(w, "relative", r->relative);
    crdi_json_put_number(w, "power_min", r->power_min);
    crdi_json_put_number(w, "power_max", r->power_max);
}

static void record_describe_put_side(crdi_json_writer* w, const crd_pair_report* p,
                                     const crd_pair_side_report* s)
{
    crdi_json_put_text(w, "name", p->name);
    crdi_json_put_text(w, "unit", s->unit);
    crdi_json_put_text(w, "own", s->own);
    crdi_json_put_number(w, "inner", s->inner);
    crdi_json_put_text(w, "port", s->state.strict ? "strict" : "inner steps");
    crdi_json_put_number(w, "impedance", s->state.impedance);
    crdi_json_put_number(w, "delay", s->state.delay);
    crdi_json_put_number(w, "tank", s->state.tank);
    crdi_json_put_number(w, "absorbed", s->state.absorbed);
    crdi_json_put_number(w, "spent", s->state.spent);
    crdi_json_put_number(w, "granted", s->state.granted);
    crdi_json_put_number(w, "dumped", s->state.dumped);
    crdi_json_put_integer(w, "limited", s->state.limited);
    crdi_json_put_integer(w, "predicted", s->predicted);
    crdi_json_put_integer(w, "sent", s->sent);
    crdi_json_put_integer(w, "lost", s->lost);
}

// null: steps were not controlled
static void record_describe_put_control(crdi_json_writer* w, const crd_control_report* r)
{
    if (!r->on) {
        crdi_json_put_null(w, "control");
        return;
    }
    crdi_json_begin_object(w, "control");
    crdi_json_put_number(w, "tolerance", r->tolerance);
    crdi_json_put_number(w, "first", r->first);
    crdi_json_put_number(w, "shortest", r->shortest);
    crdi_json_put_number(w, "longest", r->longest);
    crdi_json_put_number(w, "mean", r->mean);
    crdi_json_put_number(w, "worst", r->worst);
    crdi_json_put_text(w, "worst_connection", r->worst_flow);
    crdi_json_put_integer(w, "beyond", r->beyond);
    crdi_json_put_text(w, "forward_only", r->forward_only);
    crdi_json_put_integer(w, "rejected", r->rejected);
    crdi_json_put_integer(w, "at_floor", r->at_floor);
    crdi_json_put_integer(w, "at_ceiling", r->at_ceiling);
    crdi_json_put_integer(w, "events", r->events);
    crdi_json_end(w);
}

// null: steps were not iterated
static void record_describe_put_iteration(crdi_json_writer* w, const crd_iteration_report* r)
{
    if (!r->on) {
        crdi_json_put_null(w, "iteration");
        return;
    }
    crdi_json_begin_object(w, "iteration");
    crdi_json_put_integer(w, "steps", r->steps);
    crdi_json_put_integer(w, "sweeps", r->sweeps);
    crdi_json_put_integer(w, "most", r->most);
    crdi_json_put_integer(w, "failed", r->failed);
    crdi_json_put_number(w, "failed_time", r->failed ? r->failed_time : (double)NAN);
    crdi_json_put_text_or_null(w, "failed_connection", r->failed_flow);
    crdi_json_begin_list(w, "residuals");
    for (int i = 0; i < r->residual_count; i++) {
        crdi_json_put_number(w, NULL, r->residuals[i]);
    }
    crdi_json_end(w);
    crdi_json_put_text(w, "stepped_once", r->explicit_units ? r->explicit_units : "");
    crdi_json_end(w);
}

static void put_learned(const crd_master* m, crdi_json_writer* w)
{
    crdi_learned_use use;
    if (!crdi_learning_use(m, &use)) {
        crdi_json_put_null(w, "learned");
        return;
    }
    crdi_json_begin_object(w, "learned");
    crdi_json_put_text(w, "file", short_path(m, use.path));
    crdi_json_put_integer(w, "signals", use.signals);
    crdi_json_put_number(w, "error", use.error);
    crdi_json_put_number(w, "first_error", use.first);
    crdi_json_put_number(w, "best_error", use.best);
    crdi_json_put_integer(w, "limited", use.limited);
    crdi_json_put_number(w, "until", use.until);
    crdi_json_end(w);
}

static void put_guard(crdi_json_writer* w, const crd_guard_report* g)
{
    crdi_json_begin_object(w, "guard");
    crdi_json_put_text(w, "state", crd_guard_state_name(g->state));
    crdi_json_put_bool(w, "stopped", g->stopped);
    crdi_json_put_bool(w, "exploded", g->exploded);
    crdi_json_put_number(w, "time", g->time);
    crdi_json_put_number(w, "growth", g->growth);
    crdi_json_put_text(w, "text", g->text);
    crdi_json_put_text(w, "help", g->help);
    crdi_json_put_text(w, "note", g->note);
    crdi_json_put_integer(w, "loops", g->loops);
    crdi_json_put_integer(w, "mapped", g->mapped);
    crdi_json_end(w);
}

static void put_quality(const crd_master* m, crdi_json_writer* w, const crd_master_report* r)
{
    crdi_json_begin_list(w, "flows");
    for (int i = 0; i < r->flow_count; i++) {
        crdi_json_begin_object(w, NULL);
        put_flow(w, &r->flows[i]);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "bonds");
    for (int i = 0; i < r->bond_count; i++) {
        crdi_json_begin_object(w, NULL);
        record_describe_put_bond(w, &r->bonds[i]);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "pairs");
    for (int i = 0; i < 2 * r->pair_count; i++) {
        crdi_json_begin_object(w, NULL);
        record_describe_put_side(w, &r->pairs[i / 2], &r->pairs[i / 2].sides[i % 2]);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    record_describe_put_control(w, &r->control);
    record_describe_put_iteration(w, &r->iteration);
    put_guard(w, &r->guard);
    put_learned(m, w);
    crdi_json_put_number(w, "defect_goal", crdi_defect_goal(m));
    crdi_json_put_number(w, "energy_goal", crdi_energy_goal(m));
    crdi_json_put_number(w, "worst_defect", r->worst_defect);
    crdi_json_put_number(w, "worst_error", r->worst_error);
    crdi_json_put_number(w, "worst_part", r->worst_part);
    crdi_json_put_text(w, "trust", crd_trust_name(r->trust));
    crdi_json_put_number(w, "worst_energy", r->worst_energy);
    crdi_json_put_text(w, "error_note", r->error_note);
    crdi_json_begin_list(w, "advice");
    for (int i = 0; i < r->advice_count; i++) {
        crdi_json_put_text(w, NULL, r->advice[i]);
    }
    crdi_json_end(w);
}

static const char* end_text(const crd_master* m)
{
    static const char* const ends[] = {
        [CRD_END_STOP_TIME] = "stop time",     [CRD_END_UNIT] = "unit",
        [CRD_END_INTERRUPTED] = "interrupted", [CRD_END_FAILED] = "failed",
        [CRD_END_OVERRUN] = "overrun",         [CRD_END_GUARD] = "guard",
    };
    if (m->life.stopped_by_page && m->life.end == CRD_END_INTERRUPTED) { return "page"; }
    return m->life.end == CRD_END_NONE && m->life.finished ? "interrupted" : ends[m->life.end];
}

crd_status crd_master_describe_verdict(crd_master* m, crd_text* out)
{
    crdi_json_writer writer, *w = &writer;
    const crd_master_report* r = crd_master_get_report(m);
    crdi_json_writer_init(w, out, CRDI_JSON_ROWS);
    crdi_json_begin_object(w, NULL);
    crdi_json_put_integer(w, "format", 1);
    crdi_json_put_text_or_null(w, "end", end_text(m));
    crdi_json_put_text(w, "unit", r->end_unit);
    crdi_json_put_text(w, "message", m->life.message);
    crdi_json_put_number(w, "time", r->time);
    crdi_json_put_integer(w, "steps", r->steps);
    crdi_json_put_number(w, "wall_time", r->wall_time);
    crdi_json_put_number(w, "initialization_time", r->initialization_time);
    crdi_json_put_integer(w, "rows", r->rows);
    crdi_json_put_integer(w, "threads", r->threads);
    crdi_json_put_text_or_null(w, "isolation", r->isolation);
    crdi_json_begin_list(w, "units");
    for (int i = 0; i < r->unit_count; i++) {
        crdi_json_begin_object(w, NULL);
        put_unit_times(w, &r->units[i]);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "loops");
    for (int i = 0; i < r->loop_count; i++) {
        crdi_json_begin_object(w, NULL);
        record_describe_put_loop(w, &r->loops[i]);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    crdi_json_begin_list(w, "couplings");
    for (int i = 0; i < r->coupling_count; i++) {
        crdi_json_begin_object(w, NULL);
        put_coupled(w, &r->couplings[i]);
        crdi_json_end(w);
    }
    crdi_json_end(w);
    put_quality(m, w, r);
    crdi_pace_put_json(w, "pace", r->pace, m->plan->unit_names, m->plan->member_count);
    crdi_json_put_integer(w, "warnings", crdi_events_warnings(m));
    crdi_json_end(w);
    crdi_text_put(out, "\n", 1);
    const bool complete = crdi_verdict_is_complete(m) && !out->failed;
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
    const crd_master_report* r = crdi_verdict_last(m);
    size_t numbers = 24 * 16 + (24 * 24 + 640) * (size_t)m->plan->member_count; // links, too
    size_t hints = CRDI_ADVICE * CRDI_SENTENCE + 2 * CRDI_GUARD_TEXT;
    numbers += 24 * (20 + CRD_RESIDUALS + 14 * (size_t)r->flow_count + 9 * (size_t)r->bond_count +
                     40 * (size_t)r->pair_count);
    for (int i = 0; i < r->flow_count; i++) {
        const size_t n = strlen(r->flows[i].from) + strlen(r->flows[i].to) + 4;
        longest_flow = n > longest_flow ? n : longest_flow;
    }
    for (int i = 0; i < m->connections.coupled_count; i++) {
        numbers += 24 * (24 + 6 * (size_t)m->connections.coupled[i].estimator_count);
        hints += sizeof m->connections.coupled[i].hint;
    }
    const size_t need = m->record.verdict.length + numbers +
                        (m->plan->paced ? crdi_pace_json_size(longest) : 0) +
                        6 * (sizeof m->life.message + longest + longest_flow + hints + CRDI_TEXT +
                             CRDI_ISOLATION_TEXT) +
                        512;
    char* grown = crdi_grow(m->ctx, m->record.verdict.data, &m->record.verdict.capacity, need, 1);
    if (!grown) { return CRD_E_MEMORY; }
    m->record.verdict.data = grown;
    m->record.verdict.length = 0;
    return CRD_OK;
}
