// What ran and how it went, as the two JSON documents that go into a result file.
#include "master/verdict/judge.h"
#include "shared/base_system.h"
#include "shared/base_values.h"
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
        crdi_json_put(w, TEXT("name", v->name), TEXT("value", value.data),
                      start.data ? TEXT("start", start.data) : NONE("start"),
                      TEXT_IF("unit", v->unit));
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
    crdi_json_put(w, TEXT("name", p->unit->name), TEXT("kind", info->kind),
                  TEXT_IF("file", is_file ? short_path(m, spec->path) : NULL),
                  TEXT_IF("sha256", hash));
    const bool named = stand_in && stand_in->path && stand_in->path[0];
    crdi_json_put(w, TEXT_IF("standby", named ? short_path(m, stand_in->path) : NULL),
                  TEXT_IF("model", info->model), TEXT_IF("version", info->model_version),
                  TEXT_IF("tool", info->tool), TEXT_IF("date", info->date), REAL("step", p->step),
                  INT("inputs", inputs), INT("outputs", outputs));
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
    if (!crdi_json_begin_object_if(w, "coupling", k && k->spec->coupling)) { return; }
    const crdi_coupled* c = &m->connections.coupled[k->couple];
    const crd_channel_spec* h = c->channel;
    crdi_json_put(w, TEXT("algorithm", c->estimators[0].label), REAL("step", c->interval),
                  REAL("latency", c->estimators[0].latency));
    crdi_json_begin_list(w, "shadows");
    for (int i = 1; i < c->estimator_count; i++) {
        crdi_json_put_text(w, NULL, c->estimators[i].label);
    }
    crdi_json_end(w);
    if (crdi_json_begin_object_if(w, "channel", h)) {
        char seed[24];
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)h->seed);
        crdi_json_put(w, REAL("delay", h->delay), REAL("jitter", h->jitter), REAL("loss", h->loss),
                      INT("burst", h->burst), REAL("duplicate", h->duplicate));
        crdi_json_put_raw(w, "seed", seed);
        crdi_json_end(w);
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
        crdi_json_put(w, TEXT("predict", k && k->paired ? "wave pair" : predict),
                      REAL("gain", k ? k->gain : 1), REAL("offset", k ? k->offset : 0),
                      BOOL("mapped", k && k->mapping));
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
    crdi_json_put(w, TEXT("file", m->plan->sys->file),
                  TEXT("title", m->plan->sys->title ? m->plan->sys->title : ""),
                  TEXT_IF("sha256", hash),
                  TEXT("base", m->plan->sys->base ? m->plan->sys->base : ""));
    crdi_json_end(w);
    return CRD_OK;
}

static void put_machine(const crd_master* m, crdi_json_writer* w)
{
    struct utsname name;
    char at[24], os[256] = "";
    const int64_t wall = m->life.wall_start;
    if (uname(&name) == 0) {
        snprintf(os, sizeof os, "%.80s %.80s %.80s", name.sysname, name.release, name.machine);
    }
    crdi_json_put_text_or_null(w, "started", crdi_utc(wall ? wall / 1000000000 : time(NULL), at));
    crdi_json_begin_object(w, "machine");
    crdi_json_put(w, TEXT_IF("os", os), INT("processors", sysconf(_SC_NPROCESSORS_ONLN)));
    crdi_json_end(w);
}

// null: steps are not controlled
static void put_control_settings(const crd_master* m, crdi_json_writer* w)
{
    const crd_control_spec* c = &m->plan->sys->run.control;
    if (!crdi_json_begin_object_if(w, "control", m->plan->controlled)) { return; }
    crdi_json_put(w, TEXT("method", c->method == CRD_STEP_PI ? "pi" : "h211b"),
                  REAL("tolerance", c->tolerance), BOOL("absolute", c->absolute),
                  REAL("reject", c->reject));
    crdi_json_end(w);
}

static void put_iterate_settings(const crd_master* m, crdi_json_writer* w)
{
    const crd_iterate_spec* s = &m->plan->sys->run.iterate;
    if (!crdi_json_begin_object_if(w, "iterate", m->plan->iterated)) { return; }
    crdi_json_put(w, TEXT("acceleration", crd_accel_name(s->acceleration)),
                  REAL("tolerance", s->tolerance), INT("sweeps", s->sweeps));
    crdi_json_end(w);
}

// null: as fast as possible
static void put_pace_settings(const crd_master* m, crdi_json_writer* w)
{
    const crd_pace_spec* p = &m->plan->sys->run.pace;
    if (!crdi_json_begin_object_if(w, "pace", m->plan->paced)) { return; }
    crdi_json_put(w, REAL("factor", p->factor), TEXT("overrun", crd_overrun_name(p->overrun)),
                  REAL("slack", p->slack), REAL("spin", p->spin),
                  REAL("priority", p->priority > 0 ? (double)p->priority : (double)NAN),
                  REAL("cpu", p->cpu >= 0 ? (double)p->cpu : (double)NAN), BOOL("lock", p->lock),
                  BOOL("required", p->required));
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
    crdi_json_put(w, REAL("start", m->plan->times.start), REAL("step", m->plan->times.tick),
                  REAL("tolerance", m->plan->times.tolerance),
                  TEXT("scheme", schemes[m->plan->sys->run.scheme]));
    put_control_settings(m, w);
    put_iterate_settings(m, w);
}

static void record_describe_put_run(const crd_master* m, crdi_json_writer* w)
{
    crdi_json_begin_object(w, "run");
    put_grid(m, w);
    crdi_json_put(w, REAL("stop", m->plan->times.stop),
                  REAL("threads", m->plan->sys->run.threads > 0 ? (double)m->plan->sys->run.threads
                                                                : (double)NAN));
    put_pace_settings(m, w);
    crdi_json_end(w);
}

static void put_bonds(const crd_master* m, crdi_json_writer* w)
{
    crdi_json_begin_list(w, "bonds");
    for (int i = 0; i < m->energy.bond_count; i++) {
        const crdi_bond* p = &m->energy.bonds[i];
        crdi_json_begin_object(w, NULL);
        crdi_json_put(
            w, TEXT("name", p->name), TEXT("action", p->action_name), TEXT("flow", p->flow_name),
            TEXT("correct", crd_correction_name(p->bond.correction)), REAL("mu", p->bond.mu));
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
    crdi_json_put(w, INT("format", 1), TEXT("cardan", crd_version()));
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
        crdi_json_put(w, TEXT("name", m->record.rasters[i].name),
                      REAL("interval", (double)m->record.rasters[i].ticks * m->plan->times.tick));
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
    crdi_json_put(w, TEXT("name", r->name), TEXT("kind", r->kind), INT("steps", r->steps),
                  REAL("step_size", r->step_size), REAL("time_step", r->time_step),
                  REAL("time_get", r->time_get), REAL("time_set", r->time_set),
                  REAL("worst_step", r->worst_step), INT("measured", r->measured),
                  REAL("budget", r->budget), INT("late", r->late), INT("worker", r->worker));
    crdi_link_put_json(w, "link", r->link);
    if (crdi_json_begin_object_if(w, "standby", r->standby)) {
        crdi_json_put(w, INT("takeovers", r->standby->takeovers),
                      INT("returns", r->standby->returns), REAL("stood_in", r->standby->stood_in));
        crdi_json_end(w);
    }
}

static void record_describe_put_loop(crdi_json_writer* w, const crd_loop_report* l)
{
    crdi_json_put(w, TEXT("text", l->text), INT("size", l->size), INT("iterations", l->iterations),
                  REAL("residual", l->residual), BOOL("newton", l->newton),
                  BOOL("converged", l->converged));
}

static void put_commands(crdi_json_writer* w, const crd_coupling_report* of,
                         const crd_coupling_commands* c)
{
    if (c->count == 0) { return; }
    crdi_json_put_number(w, "share", 100 * c->share); // %
    crdi_json_begin_list(w, "commands");
    for (int i = 0; i < c->count && i < of->command_count; i++) {
        crdi_json_begin_object(w, NULL);
        crdi_json_put(w, TEXT("name", of->commands[i]), REAL("part", 100 * c->part[i]),
                      INT("changes", c->changes[i]));
        crdi_json_end(w);
    }
    crdi_json_end(w);
}

static void put_tap(crdi_json_writer* w, const crd_coupling_report* of, const crd_tap_report* r)
{
    crdi_json_put(w, TEXT("algorithm", r->label), INT("scored", r->scored));
    crdi_json_put_number(w, "C", 100 * r->metrics.C); // %
    crdi_json_put(w, REAL("M", 100 * r->metrics.M), REAL("P", 100 * r->metrics.P),
                  REAL("rms", r->metrics.rms), REAL("worst", r->metrics.worst));
    put_commands(w, of, &r->commands);
}

static void put_coupled(crdi_json_writer* w, const crd_coupling_report* r)
{
    const crd_coupling_counts* n = &r->taps[0].counts;
    crdi_json_put(w, TEXT("from", r->from), TEXT("to", r->to), REAL("step", r->step));
    put_tap(w, r, &r->taps[0]);
    crdi_json_put(w, REAL("scale", r->scale > 0 ? r->scale : (double)NAN),
                  REAL("relative", r->relative), REAL("signal_rms", r->signal_rms),
                  REAL("error_rms", r->error_rms), REAL("k_mean", r->k_mean),
                  INT("k_max", r->k_max), INT("sent", r->sent), INT("lost", r->lost),
                  INT("repeated", r->repeated), INT("filled", n->filled), INT("late", n->late),
                  INT("too_late", n->too_late), INT("duplicates", n->duplicates),
                  INT("not_finite", n->not_finite), INT("beyond", n->beyond),
                  INT("limited", n->limited), INT("jumps", n->jumps), INT("restarts", n->restarts),
                  INT("swaps", n->swaps), INT("rollbacks", n->rollbacks));
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
    crdi_json_put(w, TEXT("from", r->from), TEXT("to", r->to), TEXT("unit", r->unit),
                  TEXT("predict", crd_prediction_name(r->predict)), TEXT("used", r->used),
                  REAL("share", r->share), INT("order", r->order), BOOL("constant", r->hold_only),
                  REAL("step", r->step), REAL("scale", r->scale), REAL("defect_rms", r->rms),
                  REAL("defect_max", r->max), REAL("defect_max_time", r->max_time),
                  REAL("output_defect_rms", r->output_rms), REAL("relative", r->relative),
                  REAL("signal_rms", r->signal_rms), REAL("error_rms", r->error_rms),
                  REAL("error_max", r->error_max), REAL("error_bound", r->error_bound),
                  REAL("solver_rms", r->solver_rms), INT("jumps", r->jumps),
                  INT("switches", r->switches));
}

static void record_describe_put_bond(crdi_json_writer* w, const crd_bond_report* r)
{
    crdi_json_put(w, TEXT("name", r->name), TEXT("action", r->action), TEXT("flow", r->flow),
                  TEXT("correct", crd_correction_name(r->correct)), REAL("mu", r->mu),
                  REAL("energy", r->energy), REAL("residual", r->residual), REAL("work", r->work),
                  REAL("transferred", r->transferred), REAL("relative", r->relative),
                  REAL("power_min", r->power_min), REAL("power_max", r->power_max));
}

static void record_describe_put_side(crdi_json_writer* w, const crd_pair_report* p,
                                     const crd_pair_side_report* s)
{
    crdi_json_put(w, TEXT("name", p->name), TEXT("unit", s->unit), TEXT("own", s->own),
                  REAL("inner", s->inner), TEXT("port", s->state.strict ? "strict" : "inner steps"),
                  REAL("impedance", s->state.impedance), REAL("delay", s->state.delay),
                  REAL("tank", s->state.tank), REAL("absorbed", s->state.absorbed),
                  REAL("spent", s->state.spent), REAL("granted", s->state.granted),
                  REAL("dumped", s->state.dumped), INT("limited", s->state.limited),
                  INT("predicted", s->predicted), INT("sent", s->sent), INT("lost", s->lost));
}

// null: steps were not controlled
static void record_describe_put_control(crdi_json_writer* w, const crd_control_report* r)
{
    if (!crdi_json_begin_object_if(w, "control", r->on)) { return; }
    crdi_json_put(w, REAL("tolerance", r->tolerance), REAL("first", r->first),
                  REAL("shortest", r->shortest), REAL("longest", r->longest), REAL("mean", r->mean),
                  REAL("worst", r->worst), TEXT("worst_connection", r->worst_flow),
                  INT("beyond", r->beyond), TEXT("forward_only", r->forward_only),
                  INT("rejected", r->rejected), INT("at_floor", r->at_floor),
                  INT("at_ceiling", r->at_ceiling), INT("events", r->events));
    crdi_json_end(w);
}

// null: steps were not iterated
static void record_describe_put_iteration(crdi_json_writer* w, const crd_iteration_report* r)
{
    if (!crdi_json_begin_object_if(w, "iteration", r->on)) { return; }
    crdi_json_put(w, INT("steps", r->steps), INT("sweeps", r->sweeps), INT("most", r->most),
                  INT("failed", r->failed),
                  REAL("failed_time", r->failed ? r->failed_time : (double)NAN),
                  TEXT_IF("failed_connection", r->failed_flow));
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
    if (!crdi_json_begin_object_if(w, "learned", crdi_learning_use(m, &use))) { return; }
    crdi_json_put(w, TEXT("file", short_path(m, use.path)), INT("signals", use.signals),
                  REAL("error", use.error), REAL("first_error", use.first),
                  REAL("best_error", use.best), INT("limited", use.limited),
                  REAL("until", use.until));
    crdi_json_end(w);
}

static void put_guard(crdi_json_writer* w, const crd_guard_report* g)
{
    crdi_json_begin_object(w, "guard");
    crdi_json_put(w, TEXT("state", crd_guard_state_name(g->state)), BOOL("stopped", g->stopped),
                  BOOL("exploded", g->exploded), REAL("time", g->time), REAL("growth", g->growth),
                  TEXT("text", g->text), TEXT("help", g->help), TEXT("note", g->note),
                  INT("loops", g->loops), INT("mapped", g->mapped));
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
    crdi_json_put(w, REAL("defect_goal", crdi_defect_goal(m)),
                  REAL("energy_goal", crdi_energy_goal(m)), REAL("worst_defect", r->worst_defect),
                  REAL("worst_error", r->worst_error), REAL("worst_part", r->worst_part),
                  TEXT("trust", crd_trust_name(r->trust)), REAL("worst_energy", r->worst_energy),
                  TEXT("error_note", r->error_note));
    crdi_json_put_texts(w, "advice", r->advice, r->advice_count);
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
    crdi_json_put(w, INT("format", 1), TEXT_IF("end", end_text(m)), TEXT("unit", r->end_unit),
                  TEXT("message", m->life.message), REAL("time", r->time), INT("steps", r->steps),
                  REAL("wall_time", r->wall_time),
                  REAL("initialization_time", r->initialization_time), INT("rows", r->rows),
                  INT("threads", r->threads), TEXT_IF("isolation", r->isolation));
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
