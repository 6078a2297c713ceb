// What an FMU is, in words and as JSON.
#include "cardan/fmi.h"
#include "cli/info/info.h"
#include "shared/base_names.h"
#include "shared/fmi_build.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct capability {
    bool there;
    const char *words, *key;
} capability;

enum { CAPABILITIES = 14 };

static void list_capabilities(const crd_fmu_description* d, capability out[CAPABILITIES])
{
    const capability all[CAPABILITIES] = {
        {d->can_handle_variable_step, "steps of any length", "variable_step"},
        {d->can_interpolate_inputs, "takes input derivatives", "interpolate_inputs"},
        {d->max_output_derivative > 0, "gives output derivatives", "output_derivatives"},
        {d->can_get_set_state, "saves and restores its state", "get_set_state"},
        {d->can_serialize_state, "serialises its state", "serialize_state"},
        {d->provides_directional_derivatives, "directional derivatives", "directional_derivatives"},
        {d->provides_adjoint_derivatives, "adjoint derivatives", "adjoint_derivatives"},
        {d->has_event_mode, "event mode", "event_mode"},
        {d->can_return_early, "early return", "early_return"},
        {d->provides_intermediate_update, "intermediate update", "intermediate_update"},
        {d->can_run_asynchronously, "can step asynchronously", "asynchronous"},
        {d->can_be_instantiated_once, "only one instance per process", "only_one_instance"},
        {d->can_not_use_memory_functions, "uses its own memory functions", "own_memory_functions"},
        {d->needs_execution_tool, "needs the tool that made it", "needs_execution_tool"},
    };
    memcpy(out, all, sizeof all);
}

// Those of Model Exchange, which may differ from those of Co-Simulation.
enum { EXCHANGE_CAPABILITIES = 8 };

static void list_exchange(const crd_fmu_model_exchange* x, capability out[EXCHANGE_CAPABILITIES])
{
    const capability all[EXCHANGE_CAPABILITIES] = {
        {x->can_get_set_state, "saves and restores its state", "get_set_state"},
        {x->can_serialize_state, "serialises its state", "serialize_state"},
        {x->provides_directional_derivatives, "directional derivatives", "directional_derivatives"},
        {x->provides_adjoint_derivatives, "adjoint derivatives", "adjoint_derivatives"},
        {x->needs_completed_step, "wants to know of each inner step", "completed_step"},
        {x->can_be_instantiated_once, "only one instance per process", "only_one_instance"},
        {x->can_not_use_memory_functions, "uses its own memory functions", "own_memory_functions"},
        {x->needs_execution_tool, "needs the tool that made it", "needs_execution_tool"},
    };
    memcpy(out, all, sizeof all);
}

// The lengths of an array: "[3]", "[2,n]"; "" for a scalar.
static const char* dimensions(const crd_fmu_description* d, int32_t i, char* out, size_t size)
{
    const crd_variable* v = &d->variables[i];
    out[0] = 0;
    if (v->rank == 0 || d->axis_first[i] < 0) { return out; }
    size_t used = (size_t)snprintf(out, size, "[");
    for (int k = 0; k < v->rank && used < size; k++) {
        const crd_fmu_axis* axis = &d->axes[d->axis_first[i] + k];
        const char* comma = k ? "," : "";
        used += (size_t)(axis->variable >= 0
                             ? snprintf(out + used, size - used, "%s%s", comma,
                                        d->variables[axis->variable].name)
                             : snprintf(out + used, size - used, "%s%" PRIu64, comma, axis->start));
    }
    if (used < size) { snprintf(out + used, size - used, "]"); }
    return out;
}

// ---- in words ----------------------------------------------------------------------------------

static void say_interfaces(crdi_result* out, const crd_fmu_description* d)
{
    const struct {
        bool there;
        const char* name;
    } interfaces[] = {{d->has_cosimulation, "Co-Simulation"},
                      {d->has_model_exchange, "Model Exchange"},
                      {d->has_scheduled_execution, "Scheduled Execution"}};
    const char* comma = "";
    crdi_say(out, "%-14s", "interfaces");
    for (size_t i = 0; i < sizeof interfaces / sizeof *interfaces; i++) {
        if (!interfaces[i].there) { continue; }
        crdi_say(out, "%s%s", comma, interfaces[i].name);
        comma = ", ";
    }
    crdi_say(out, "%s\n",
             d->has_cosimulation || d->has_model_exchange
                 ? ""
                 : "; cardan run needs Co-Simulation or Model Exchange");
}

// The title for what comes next: "" once it was used.
static const char* say_list(crdi_result* out, const char* title, const capability* all, int count)
{
    for (int i = 0; i < count; i++) {
        if (!all[i].there) { continue; }
        crdi_say(out, "%-14s%s\n", title, all[i].words);
        title = "";
    }
    return title;
}

static void say_exchange(crdi_result* out, const crd_fmu_description* d)
{
    capability all[EXCHANGE_CAPABILITIES];
    if (!d->has_model_exchange) { return; }
    const long long states = (long long)d->exchange.state_count;
    const long long indicators = (long long)d->exchange.indicator_count;
    crdi_say(out, "%-14s%lld state%s, %lld event indicator%s\n", "exchange", states,
             states == 1 ? "" : "s", indicators, indicators == 1 ? "" : "s");
    list_exchange(&d->exchange, all);
    say_list(out, "", all, EXCHANGE_CAPABILITIES);
}

static void say_capabilities(crdi_result* out, const crd_fmu_description* d)
{
    capability all[CAPABILITIES];
    list_capabilities(d, all);
    const char* title = say_list(out, "capabilities", all, CAPABILITIES);
    if (!d->can_handle_variable_step && d->has_cosimulation) {
        crdi_say(out, "%-14sfixed communication step only\n", title);
    }
    if (d->fixed_internal_step > 0) {
        char step[32];
        crdi_say(out, "%-14s%s\n", "inner step", crdi_format_seconds(step, d->fixed_internal_step));
    }
}

static void say_experiment(crdi_result* out, const crd_fmu_description* d)
{
    if (!d->has_start && !d->has_stop && !d->has_step && !d->has_tolerance) { return; }
    crdi_say(out, "%-14s", "experiment");
    const char* comma = "";
    if (d->has_start) {
        crdi_say(out, "start %.10g s", d->start);
        comma = ", ";
    }
    if (d->has_stop) {
        crdi_say(out, "%sstop %.10g s", comma, d->stop);
        comma = ", ";
    }
    if (d->has_step) {
        crdi_say(out, "%sstep %.10g s", comma, d->step);
        comma = ", ";
    }
    if (d->has_tolerance) { crdi_say(out, "%stolerance %.10g", comma, d->tolerance); }
    crdi_say(out, "\n");
}

static bool is_listed(const crd_variable* v, const crdi_info_options* o)
{
    return crdi_match_any(&o->variables, v->name) &&
           (o->all || o->variables.count || v->causality != CRD_LOCAL);
}

static void say_fmu(crdi_result* out, const crd_fmu* f)
{
    const crd_fmu_description* d = crd_fmu_describe(f);
    crdi_say(out, "%s: FMU of FMI %s\n", crd_fmu_path(f), d->fmi_version_text);
    crdi_fact_if(out, "name", d->model_name);
    crdi_fact_if(out, "description", d->description);
    crdi_fact_if(out, "version", d->model_version);
    crdi_fact_if(out, "author", d->author);
    crdi_fact_if(out, "generator", d->generation_tool);
    crdi_fact_if(out, "generated", d->generation_date);
    crdi_fact_if(out, "copyright", d->copyright);
    crdi_fact_if(out, "license", d->license);
    say_interfaces(out, d);
    say_capabilities(out, d);
    say_exchange(out, d);
    const char* clock = d->input_clock ? d->input_clock : d->clocked;
    if (clock) {
        crdi_say(out, "%-14s'%s' %s: cannot be run, clocks do not tick here\n", "clocks", clock,
                 d->input_clock ? "is an input clock" : "changes with a clock");
    }
    const char* platforms = crd_fmu_platforms(f);
    crdi_fact_if(out, "platforms", *platforms ? platforms : "none");
    crdi_fact_if(out, "sources", crdi_fmu_has_sources(f) ? "yes" : "");
    say_experiment(out, d);
    for (int32_t i = 0; i < d->layered_standard_count; i++) {
        crdi_fact_if(out, "extra", d->layered_standards[i]);
    }
}

// ---- JSON --------------------------------------------------------------------------------------

static void put_axes(crdi_result* list, const crd_fmu_description* d, int32_t i)
{
    for (int k = 0; k < d->variables[i].rank && d->axis_first[i] >= 0; k++) {
        const crd_fmu_axis* axis = &d->axes[d->axis_first[i] + k];
        if (axis->variable >= 0) {
            crdi_add(list, TEXT(NULL, d->variables[axis->variable].name));
        } else {
            crdi_add(list, INT(NULL, axis->start));
        }
    }
}

static void put_variable(crdi_result* j, const crd_fmu_description* d, int32_t i)
{
    const crd_variable* v = &d->variables[i];
    const char* type = crdi_type_names[v->type];
    char axes[128];
    crdi_put(
        j, TEXT("name", v->name), INT("reference", v->reference),
        AS(TEXT("type", type), crdi_worded(j, "%s%s", type, dimensions(d, i, axes, sizeof axes))),
        TEXT("causality", crdi_causality_names[v->causality]),
        TEXT("variability", crdi_variability_names[v->variability]),
        TEXT("initial", crdi_initial_names[v->initial]), TEXT("unit", v->unit),
        AS(TEXT("start", v->start), crdi_worded(j, "%.40s", v->start ? v->start : "")),
        TEXT("description", v->description));
    if (!crdi_makes_json(j)) { return; }
    put_axes(crdi_array(j, "dimensions"), d, i);
    crdi_put(j, INT("size", v->size), REAL("min", v->min), REAL("max", v->max),
             REAL("nominal", v->nominal),
             TEXT("alias_of", v->alias_of >= 0 ? d->variables[v->alias_of].name : NULL),
             TEXT("enumeration", v->type == CRD_ENUMERATION && v->type_index >= 0
                                     ? d->enumerations[v->type_index].name
                                     : NULL));
}

// What the variables that are shown can be: "red 1, green 2".
static void show_items(crdi_result* out, const crd_fmu_description* d, const crdi_info_options* o)
{
    static const crdi_column columns[] = {
        {"enumeration", "name", "%s"}, {"items", "items", "%s"}, {0}};
    crdi_result* lines = crdi_array(out, NULL);
    for (int32_t i = 0; i < d->variable_count; i++) {
        const crd_variable* v = &d->variables[i];
        if (v->type != CRD_ENUMERATION || v->type_index < 0 || !is_listed(v, o)) { continue; }
        const crd_fmu_enumeration* e = &d->enumerations[v->type_index];
        char list[512] = "";
        size_t used = 0;
        for (int32_t k = 0; k < e->item_count && used < sizeof list; k++) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s %lld", k ? ", " : "",
                                     e->items[k].name, (long long)e->items[k].value);
        }
        crdi_put(crdi_row(lines), TEXT("name", v->name),
                 TEXT("items", crdi_worded(out, "%s%s", list, used < sizeof list ? "" : "...")));
    }
    if (lines && lines->first) { crdi_say(out, "\n"); }
    crdi_show_table(out, lines, columns, "");
}

static void put_variables(crdi_result* out, const crd_fmu_description* d,
                          const crdi_info_options* o)
{
    static const crdi_column columns[] = {{"name", "name", "%s"},
                                          {"causality", "causality", "%s"},
                                          {"type", "type", "%s"},
                                          {"unit", "unit", "%s"},
                                          {"start", "start", "%s"},
                                          {"description", "description", "%s"},
                                          {0}};
    crdi_result* variables = crdi_array(out, "variables");
    int shown = 0;
    for (int32_t i = 0; i < d->variable_count; i++) {
        const bool listed = is_listed(&d->variables[i], o);
        if (listed ||
            (crdi_makes_json(out) && crdi_match_any(&o->variables, d->variables[i].name))) {
            put_variable(crdi_row(variables), d, i);
        }
        shown += listed;
    }
    crdi_say(out, "%-14s%d", "variables", d->variable_count);
    if (shown < d->variable_count) {
        crdi_say(out, ", %d shown%s", shown,
                 o->all || o->variables.count ? "" : "; --all shows locals, too");
    }
    crdi_say(out, "\n%s", shown ? "\n" : "");
    crdi_show_table(out, variables, columns, "");
    show_items(out, d, o);
}

static void put_dependencies(crdi_result* j, const crd_fmu_description* d,
                             const crd_dependencies* deps)
{
    for (int32_t r = 0; r < deps->count; r++) {
        const char* name = crdi_result_copy(j, d->variables[deps->unknown[r]].name);
        if (deps->on_all[r]) {
            crdi_put(j, NONE(name));
            continue;
        }
        crdi_result* knowns = crdi_array(j, name);
        for (int32_t k = deps->first[r]; k < deps->first[r + 1]; k++) {
            crdi_add(knowns, TEXT(NULL, d->variables[deps->known[k]].name));
        }
    }
}

static void put_enumerations(crdi_result* j, const crd_fmu_description* d)
{
    for (int32_t i = 0; i < d->enumeration_count; i++) {
        const crd_fmu_enumeration* e = &d->enumerations[i];
        crdi_result* items = crdi_object(j, crdi_result_copy(j, e->name));
        for (int32_t k = 0; k < e->item_count; k++) {
            crdi_put(items, INT(crdi_result_copy(j, e->items[k].name), e->items[k].value));
        }
    }
}

static void put_units(crdi_result* list, const crd_fmu_description* d)
{
    for (int32_t i = 0; i < d->unit_count; i++) {
        const crd_fmu_unit* u = &d->units[i];
        crd_dimension b = u->base;
        crdi_result* j = crdi_row(list);
        crdi_put(j, TEXT("name", u->name));
        if (u->has_base) {
            crdi_result* base = crdi_object(j, "base");
            for (int k = 0; k < CRDI_BASE_UNITS; k++) {
                const int exponent = *crdi_exponent(&b, k);
                if (exponent) { crdi_put(base, INT(crdi_base_units[k], exponent)); }
            }
            crdi_put(j, REAL("factor", b.factor), REAL("offset", b.offset));
        }
    }
}

static void put_platforms(crdi_result* list, const char* platforms)
{
    while (*platforms) {
        const size_t n = strcspn(platforms, " ");
        if (n) { crdi_add(list, TEXT(NULL, crdi_worded(list, "%.*s", (int)n, platforms))); }
        platforms += n + (platforms[n] == ' ');
    }
}

static void put_experiment(crdi_result* j, const crd_fmu_description* d)
{
    crdi_put(j, ONLY_IF(d->has_start, REAL("start", d->start)),
             ONLY_IF(d->has_stop, REAL("stop", d->stop)),
             ONLY_IF(d->has_step, REAL("step", d->step)),
             ONLY_IF(d->has_tolerance, REAL("tolerance", d->tolerance)));
}

static void put_capabilities(crdi_result* j, const crd_fmu_description* d)
{
    capability all[CAPABILITIES];
    list_capabilities(d, all);
    for (int i = 0; i < CAPABILITIES; i++) {
        crdi_put(j, BOOL(all[i].key, all[i].there));
    }
    crdi_put(
        j, INT("max_output_derivative", d->max_output_derivative),
        ONLY_IF(d->fixed_internal_step > 0, REAL("fixed_internal_step", d->fixed_internal_step)));
}

static void put_exchange(crdi_result* j, const crd_fmu_description* d)
{
    capability all[EXCHANGE_CAPABILITIES];
    crdi_put(j, TEXT("model_identifier", d->exchange.model_identifier),
             INT("states", d->exchange.state_count),
             INT("event_indicators", d->exchange.indicator_count));
    list_exchange(&d->exchange, all);
    for (int i = 0; i < EXCHANGE_CAPABILITIES; i++) {
        crdi_put(j, BOOL(all[i].key, all[i].there));
    }
    put_dependencies(crdi_object(j, "derivative_dependencies"), d, &d->exchange.derivatives);
}

static void put_fmu(crdi_result* j, const crd_fmu* f, const crdi_info_options* o)
{
    const crd_fmu_description* d = crd_fmu_describe(f);
    crdi_put(j, TEXT("kind", "fmu"), TEXT("file", crd_fmu_path(f)),
             TEXT("fmi_version", d->fmi_version_text), TEXT("model_name", d->model_name),
             TEXT("model_identifier", d->model_identifier), TEXT("token", d->token),
             TEXT("description", d->description), TEXT("author", d->author),
             TEXT("model_version", d->model_version), TEXT("generation_tool", d->generation_tool),
             TEXT("generation_date", d->generation_date), TEXT("copyright", d->copyright),
             TEXT("license", d->license), BOOL("cosimulation", d->has_cosimulation),
             BOOL("model_exchange", d->has_model_exchange),
             BOOL("scheduled_execution", d->has_scheduled_execution),
             BOOL("needs_clocks", d->input_clock || d->clocked));
    put_capabilities(crdi_object(j, "capabilities"), d);
    put_exchange(crdi_object_if(j, "model_exchange_capabilities", d->has_model_exchange), d);
    put_platforms(crdi_array(j, "platforms"), crd_fmu_platforms(f));
    crdi_put(j, BOOL("sources", crdi_fmu_has_sources(f)));
    put_experiment(crdi_object(j, "default_experiment"), d);
    crdi_put_texts(j, "log_categories", d->log_categories, d->log_category_count);
    crdi_put_texts(j, "layered_standards", d->layered_standards, d->layered_standard_count);
    put_units(crdi_array(j, "units"), d);
    put_enumerations(crdi_object(j, "enumerations"), d);
    if (crdi_makes_json(j)) {
        put_dependencies(crdi_object(j, "output_dependencies"), d, &d->outputs);
        put_dependencies(crdi_object(j, "initial_dependencies"), d, &d->initial_unknowns);
    }
    put_variables(j, d, o);
}

static const char* info_fmu_variable_name(const void* d, int i)
{
    return ((const crd_fmu_description*)d)->variables[i].name;
}

crd_status crdi_info_fmu(crdi_cli* cli, const char* path, const crdi_info_options* o,
                         crdi_result* out)
{
    crd_fmu_options opt = crd_fmu_defaults();
    opt.description_only = true;
    crd_fmu* f = NULL;
    crd_status st = crd_fmu_open(cli->ctx, path, &opt, &f);
    if (st < 0) { return st; }
    const crd_fmu_description* d = crd_fmu_describe(f);
    st = crdi_check_names(cli->ctx, &o->variables, path, "variable", info_fmu_variable_name, d,
                          d->variable_count);
    if (st < 0) {
        crd_fmu_close(f);
        return st;
    }
    say_fmu(out, f);
    put_fmu(out, f, o);
    crd_fmu_close(f);
    return st;
}
