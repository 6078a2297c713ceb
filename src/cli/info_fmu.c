// What an FMU is, in words and as JSON.
#include "cardan/fmi.h"
#include "cli/info.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char* const type_names[CRD_TYPE_COUNT] = {
    "Float64", "Float32", "Int8",    "UInt8",       "Int16",  "UInt16", "Int32", "UInt32",
    "Int64",   "UInt64",  "Boolean", "Enumeration", "String", "Binary", "Clock"};
static const char* const causality_names[CRD_CAUSALITY_COUNT] = {
    "local",      "input", "output", "parameter", "calculatedParameter", "structuralParameter",
    "independent"};
static const char* const variability_names[CRD_VARIABILITY_COUNT] = {
    "continuous", "discrete", "tunable", "fixed", "constant"};
static const char* const initial_names[CRD_INITIAL_COUNT] = {"exact", "approx", "calculated"};

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

// With the start values of structural parameters.
static int64_t count_states(const crd_fmu_description* d)
{
    int64_t n = 0;
    for (int32_t r = 0; r < d->exchange.derivatives.count; r++) {
        n += d->variables[d->exchange.derivatives.unknown[r]].size;
    }
    return n;
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

static void fact(const char* name, const char* text)
{
    if (*text) { printf("%-14s%s\n", name, text); }
}

static void print_interfaces(const crd_fmu_description* d)
{
    const struct {
        bool there;
        const char* name;
    } interfaces[] = {{d->has_cosimulation, "Co-Simulation"},
                      {d->has_model_exchange, "Model Exchange"},
                      {d->has_scheduled_execution, "Scheduled Execution"}};
    const char* comma = "";
    printf("%-14s", "interfaces");
    for (size_t i = 0; i < sizeof interfaces / sizeof *interfaces; i++) {
        if (!interfaces[i].there) { continue; }
        printf("%s%s", comma, interfaces[i].name);
        comma = ", ";
    }
    printf("%s\n", d->has_cosimulation || d->has_model_exchange
                       ? ""
                       : "; cardan run needs Co-Simulation or Model Exchange");
}

// The title for what comes next: "" once it was used.
static const char* print_list(const char* title, const capability* all, int count)
{
    for (int i = 0; i < count; i++) {
        if (!all[i].there) { continue; }
        printf("%-14s%s\n", title, all[i].words);
        title = "";
    }
    return title;
}

static void print_exchange(const crd_fmu_description* d)
{
    capability all[EXCHANGE_CAPABILITIES];
    if (!d->has_model_exchange) { return; }
    const long long states = (long long)count_states(d);
    const long long indicators = (long long)d->exchange.indicator_count;
    printf("%-14s%lld state%s, %lld event indicator%s\n", "exchange", states,
           states == 1 ? "" : "s", indicators, indicators == 1 ? "" : "s");
    list_exchange(&d->exchange, all);
    print_list("", all, EXCHANGE_CAPABILITIES);
}

static void print_capabilities(const crd_fmu_description* d)
{
    capability all[CAPABILITIES];
    list_capabilities(d, all);
    const char* title = print_list("capabilities", all, CAPABILITIES);
    if (!d->can_handle_variable_step && d->has_cosimulation) {
        printf("%-14sfixed communication step only\n", title);
    }
    if (d->fixed_internal_step > 0) {
        char step[32];
        printf("%-14s%s\n", "inner step", crdi_format_seconds(step, d->fixed_internal_step));
    }
}

static void print_experiment(const crd_fmu_description* d)
{
    if (!d->has_start && !d->has_stop && !d->has_step && !d->has_tolerance) { return; }
    printf("%-14s", "experiment");
    const char* comma = "";
    if (d->has_start) {
        printf("start %.10g s", d->start);
        comma = ", ";
    }
    if (d->has_stop) {
        printf("%sstop %.10g s", comma, d->stop);
        comma = ", ";
    }
    if (d->has_step) {
        printf("%sstep %.10g s", comma, d->step);
        comma = ", ";
    }
    if (d->has_tolerance) { printf("%stolerance %.10g", comma, d->tolerance); }
    printf("\n");
}

static bool is_shown(const crd_variable* v, const crdi_info_options* o)
{
    return crdi_match_any(&o->variables, v->name) &&
           (o->all || o->variables.count || v->causality != CRD_LOCAL);
}

// What the variables that are shown can be: "red 1, green 2".
static void print_items(crdi_cli* cli, const crd_fmu_description* d, const crdi_info_options* o)
{
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 2, 0);
    crdi_grid_add(&g, "enumeration");
    crdi_grid_add(&g, "items");
    bool any = false;
    for (int32_t i = 0; i < d->variable_count; i++) {
        const crd_variable* v = &d->variables[i];
        if (v->type != CRD_ENUMERATION || v->type_index < 0 || !is_shown(v, o)) { continue; }
        const crd_fmu_enumeration* e = &d->enumerations[v->type_index];
        char list[512] = "";
        size_t used = 0;
        for (int32_t k = 0; k < e->item_count && used < sizeof list; k++) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s %lld", k ? ", " : "",
                                     e->items[k].name, (long long)e->items[k].value);
        }
        crdi_grid_add(&g, "%s", v->name);
        crdi_grid_add(&g, "%s%s", list, used < sizeof list ? "" : "...");
        any = true;
    }
    if (any) {
        printf("\n");
        crdi_grid_print(&g, stdout, "");
    }
    crdi_grid_clear(&g);
}

static void print_variables(crdi_cli* cli, const crd_fmu_description* d, const crdi_info_options* o)
{
    static const char* const titles[] = {"name", "causality", "type",
                                         "unit", "start",     "description"};
    crdi_grid g;
    int shown = 0;
    crdi_grid_init(&g, cli->ctx, 6, 0);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int32_t i = 0; i < d->variable_count; i++) {
        const crd_variable* v = &d->variables[i];
        char axes[128];
        if (!is_shown(v, o)) { continue; }
        crdi_grid_add(&g, "%s", v->name);
        crdi_grid_add(&g, "%s", causality_names[v->causality]);
        crdi_grid_add(&g, "%s%s", type_names[v->type], dimensions(d, i, axes, sizeof axes));
        crdi_grid_add(&g, "%s", v->unit);
        crdi_grid_add(&g, "%.40s", v->start ? v->start : "");
        crdi_grid_add(&g, "%s", v->description);
        shown++;
    }
    printf("%-14s%d", "variables", d->variable_count);
    if (shown < d->variable_count) {
        printf(", %d shown%s", shown,
               o->all || o->variables.count ? "" : "; --all shows locals, too");
    }
    printf("\n");
    if (shown) {
        printf("\n");
        crdi_grid_print(&g, stdout, "");
    }
    crdi_grid_clear(&g);
    print_items(cli, d, o);
}

static void print_words(crdi_cli* cli, const crd_fmu* f, const crdi_info_options* o)
{
    const crd_fmu_description* d = crd_fmu_describe(f);
    printf("%s: FMU of FMI %s\n", crd_fmu_path(f), d->fmi_version_text);
    fact("name", d->model_name);
    fact("description", d->description);
    fact("version", d->model_version);
    fact("author", d->author);
    fact("generator", d->generation_tool);
    fact("generated", d->generation_date);
    fact("copyright", d->copyright);
    fact("license", d->license);
    print_interfaces(d);
    print_capabilities(d);
    print_exchange(d);
    const char* platforms = crd_fmu_platforms(f);
    fact("platforms", *platforms ? platforms : "none");
    print_experiment(d);
    for (int32_t i = 0; i < d->layered_standard_count; i++) {
        fact("extra", d->layered_standards[i]);
    }
    print_variables(cli, d, o);
}

// ---- JSON --------------------------------------------------------------------------------------

static void add_text(json_t* j, const char* key, const char* text)
{
    json_object_set_new(j, key, crdi_json_text(text));
}

static json_t* axes_to_json(const crd_fmu_description* d, int32_t i)
{
    json_t* list = json_array();
    for (int k = 0; k < d->variables[i].rank && d->axis_first[i] >= 0; k++) {
        const crd_fmu_axis* axis = &d->axes[d->axis_first[i] + k];
        json_array_append_new(list, axis->variable >= 0
                                        ? crdi_json_text(d->variables[axis->variable].name)
                                        : json_integer((json_int_t)axis->start));
    }
    return list;
}

static json_t* variable_to_json(const crd_fmu_description* d, int32_t i)
{
    const crd_variable* v = &d->variables[i];
    json_t* j = json_object();
    add_text(j, "name", v->name);
    json_object_set_new(j, "reference", json_integer(v->reference));
    add_text(j, "type", type_names[v->type]);
    add_text(j, "causality", causality_names[v->causality]);
    add_text(j, "variability", variability_names[v->variability]);
    add_text(j, "initial", initial_names[v->initial]);
    add_text(j, "unit", v->unit);
    add_text(j, "start", v->start);
    add_text(j, "description", v->description);
    json_object_set_new(j, "dimensions", axes_to_json(d, i));
    json_object_set_new(j, "size", json_integer(v->size));
    json_object_set_new(j, "min", crdi_json_number(v->min));
    json_object_set_new(j, "max", crdi_json_number(v->max));
    json_object_set_new(j, "nominal", crdi_json_number(v->nominal));
    add_text(j, "alias_of", v->alias_of >= 0 ? d->variables[v->alias_of].name : NULL);
    add_text(j, "enumeration",
             v->type == CRD_ENUMERATION && v->type_index >= 0 ? d->enumerations[v->type_index].name
                                                              : NULL);
    return j;
}

static json_t* dependencies_to_json(const crd_fmu_description* d, const crd_dependencies* deps)
{
    json_t* j = json_object();
    for (int32_t r = 0; r < deps->count; r++) {
        json_t* knowns = deps->on_all[r] ? json_null() : json_array();
        for (int32_t k = deps->first[r]; !deps->on_all[r] && k < deps->first[r + 1]; k++) {
            json_array_append_new(knowns, crdi_json_text(d->variables[deps->known[k]].name));
        }
        json_object_set_new(j, d->variables[deps->unknown[r]].name, knowns);
    }
    return j;
}

static json_t* enumerations_to_json(const crd_fmu_description* d)
{
    json_t* j = json_object();
    for (int32_t i = 0; i < d->enumeration_count; i++) {
        const crd_fmu_enumeration* e = &d->enumerations[i];
        json_t* items = json_object();
        for (int32_t k = 0; k < e->item_count; k++) {
            json_object_set_new(items, e->items[k].name, json_integer(e->items[k].value));
        }
        json_object_set_new(j, e->name, items);
    }
    return j;
}

static json_t* units_to_json(const crd_fmu_description* d)
{
    json_t* list = json_array();
    for (int32_t i = 0; i < d->unit_count; i++) {
        const crd_fmu_unit* u = &d->units[i];
        const crd_dimension* b = &u->base;
        json_t* j = json_object();
        add_text(j, "name", u->name);
        if (u->has_base) {
            const struct {
                const char* name;
                int exponent;
            } parts[] = {{"kg", b->kg}, {"m", b->m},     {"s", b->s},   {"A", b->A},
                         {"K", b->K},   {"mol", b->mol}, {"cd", b->cd}, {"rad", b->rad}};
            json_t* base = json_object();
            for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
                if (parts[k].exponent) {
                    json_object_set_new(base, parts[k].name, json_integer(parts[k].exponent));
                }
            }
            json_object_set_new(j, "base", base);
            json_object_set_new(j, "factor", crdi_json_number(b->factor));
            json_object_set_new(j, "offset", crdi_json_number(b->offset));
        }
        json_array_append_new(list, j);
    }
    return list;
}

static json_t* texts_to_json(const char* const* texts, int32_t count)
{
    json_t* list = json_array();
    for (int32_t i = 0; i < count; i++) {
        json_array_append_new(list, crdi_json_text(texts[i]));
    }
    return list;
}

static json_t* platforms_to_json(const char* platforms)
{
    json_t* list = json_array();
    while (*platforms) {
        const size_t n = strcspn(platforms, " ");
        if (n) { json_array_append_new(list, json_stringn(platforms, n)); }
        platforms += n + (platforms[n] == ' ');
    }
    return list;
}

static json_t* experiment_to_json(const crd_fmu_description* d)
{
    json_t* j = json_object();
    json_object_set_new(j, "start", d->has_start ? crdi_json_number(d->start) : json_null());
    json_object_set_new(j, "stop", d->has_stop ? crdi_json_number(d->stop) : json_null());
    json_object_set_new(j, "step", d->has_step ? crdi_json_number(d->step) : json_null());
    json_object_set_new(j, "tolerance",
                        d->has_tolerance ? crdi_json_number(d->tolerance) : json_null());
    return j;
}

static json_t* capabilities_to_json(const crd_fmu_description* d)
{
    capability all[CAPABILITIES];
    json_t* j = json_object();
    list_capabilities(d, all);
    for (int i = 0; i < CAPABILITIES; i++) {
        json_object_set_new(j, all[i].key, json_boolean(all[i].there));
    }
    json_object_set_new(j, "max_output_derivative", json_integer(d->max_output_derivative));
    json_object_set_new(j, "fixed_internal_step",
                        d->fixed_internal_step > 0 ? crdi_json_number(d->fixed_internal_step)
                                                   : json_null());
    return j;
}

static json_t* exchange_to_json(const crd_fmu_description* d)
{
    capability all[EXCHANGE_CAPABILITIES];
    if (!d->has_model_exchange) { return json_null(); }
    json_t* j = json_object();
    add_text(j, "model_identifier", d->exchange.model_identifier);
    json_object_set_new(j, "states", json_integer((json_int_t)count_states(d)));
    json_object_set_new(j, "event_indicators", json_integer(d->exchange.indicator_count));
    list_exchange(&d->exchange, all);
    for (int i = 0; i < EXCHANGE_CAPABILITIES; i++) {
        json_object_set_new(j, all[i].key, json_boolean(all[i].there));
    }
    json_object_set_new(j, "derivative_dependencies",
                        dependencies_to_json(d, &d->exchange.derivatives));
    return j;
}

static json_t* to_json(const crd_fmu* f, const crdi_info_options* o)
{
    const crd_fmu_description* d = crd_fmu_describe(f);
    json_t* j = json_object();
    json_object_set_new(j, "kind", json_string("fmu"));
    add_text(j, "file", crd_fmu_path(f));
    add_text(j, "fmi_version", d->fmi_version_text);
    add_text(j, "model_name", d->model_name);
    add_text(j, "model_identifier", d->model_identifier);
    add_text(j, "token", d->token);
    add_text(j, "description", d->description);
    add_text(j, "author", d->author);
    add_text(j, "model_version", d->model_version);
    add_text(j, "generation_tool", d->generation_tool);
    add_text(j, "generation_date", d->generation_date);
    add_text(j, "copyright", d->copyright);
    add_text(j, "license", d->license);
    json_object_set_new(j, "cosimulation", json_boolean(d->has_cosimulation));
    json_object_set_new(j, "model_exchange", json_boolean(d->has_model_exchange));
    json_object_set_new(j, "scheduled_execution", json_boolean(d->has_scheduled_execution));
    json_object_set_new(j, "capabilities", capabilities_to_json(d));
    json_object_set_new(j, "model_exchange_capabilities", exchange_to_json(d));
    json_object_set_new(j, "platforms", platforms_to_json(crd_fmu_platforms(f)));
    json_object_set_new(j, "default_experiment", experiment_to_json(d));
    json_object_set_new(j, "log_categories",
                        texts_to_json(d->log_categories, d->log_category_count));
    json_object_set_new(j, "layered_standards",
                        texts_to_json(d->layered_standards, d->layered_standard_count));
    json_object_set_new(j, "units", units_to_json(d));
    json_object_set_new(j, "enumerations", enumerations_to_json(d));
    json_object_set_new(j, "output_dependencies", dependencies_to_json(d, &d->outputs));
    json_object_set_new(j, "initial_dependencies", dependencies_to_json(d, &d->initial_unknowns));
    json_t* variables = json_array();
    for (int32_t i = 0; i < d->variable_count; i++) {
        if (crdi_match_any(&o->variables, d->variables[i].name)) {
            json_array_append_new(variables, variable_to_json(d, i));
        }
    }
    json_object_set_new(j, "variables", variables);
    return j;
}

static crd_status check_patterns(crd_context* ctx, const crd_fmu_description* d, const char* path,
                                 const crdi_list* patterns)
{
    for (int i = 0; i < patterns->count; i++) {
        int32_t k = 0;
        while (k < d->variable_count && !crdi_glob(patterns->items[i], d->variables[k].name)) {
            k++;
        }
        if (k == d->variable_count) {
            return crdi_fail(ctx, CRD_E_NOT_FOUND, "--variables '%s' fits no variable of %s",
                             patterns->items[i], path);
        }
    }
    return CRD_OK;
}

crd_status crdi_info_fmu(crdi_cli* cli, const char* path, const crdi_info_options* o)
{
    crd_fmu_options opt = crd_fmu_defaults();
    opt.description_only = true;
    crd_fmu* f = NULL;
    crd_status st = crd_fmu_open(cli->ctx, path, &opt, &f);
    if (st < 0) { return st; }
    st = check_patterns(cli->ctx, crd_fmu_describe(f), path, &o->variables);
    if (st < 0) {
        crd_fmu_close(f);
        return st;
    }
    if (o->common.json) {
        st = crdi_json_print(cli, to_json(f, o));
    } else {
        print_words(cli, f, o);
        st = crdi_stdout_done(cli->ctx);
    }
    crd_fmu_close(f);
    return st;
}
