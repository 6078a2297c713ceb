#include "check.h"

#include <malloc.h>
#include <stdio.h>

#include "cardan/fmi.h"
#include "fmi/description.h"

// ---- small documents ---------------------------------------------------------------------------

#define FMI2(content)                                                                              \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"                                                 \
    "<fmiModelDescription fmiVersion=\"2.0\" modelName=\"m\" guid=\"{1}\">\n"                      \
    "<CoSimulation modelIdentifier=\"m\"/>\n" content "</fmiModelDescription>\n"
#define FMI3(content)                                                                              \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"                                                 \
    "<fmiModelDescription fmiVersion=\"3.0\" modelName=\"m\" instantiationToken=\"{1}\">\n"        \
    "<CoSimulation modelIdentifier=\"m\"/>\n" content "</fmiModelDescription>\n"
#define VARIABLES(content) "<ModelVariables>\n" content "</ModelVariables>\n"
#define SCALAR(attributes, type) "<ScalarVariable " attributes ">" type "</ScalarVariable>\n"

typedef struct fixture {
    check_allocator allocator;
    crd_context* ctx;
    char log[4096];
} fixture;

static void on_log(void* user, crd_level level, const char* text)
{
    (void)level;
    fixture* fx = user;
    const size_t n = strlen(fx->log);
    snprintf(fx->log + n, sizeof fx->log - n, "%s\n", text);
}

static int setup(void** state)
{
    fixture* fx = calloc(1, sizeof *fx);
    fx->allocator.fail_at = -1;
    crd_context_options opt = crd_context_defaults();
    opt.realloc = check_realloc;
    opt.realloc_user = &fx->allocator;
    opt.log = on_log;
    opt.log_user = fx;
    fx->ctx = crd_context_create(&opt);
    *state = fx;
    return fx->ctx ? 0 : -1;
}

static int teardown(void** state)
{
    fixture* fx = *state;
    crd_context_destroy(fx->ctx);
    const int64_t live = fx->allocator.live;
    free(fx);
    return live == 0 ? 0 : -1;
}

static crd_fmu* parse(fixture* fx, const char* xml)
{
    crd_fmu* f = NULL;
    const crd_status st = crd_fmu_parse(fx->ctx, xml, strlen(xml), "t.xml", &f);
    if (st < 0) { fail_msg("%s: %s", crd_status_name(st), crd_error_text(fx->ctx)); }
    return f;
}

static void refused(fixture* fx, const char* xml, crd_status want, const char* part)
{
    crd_fmu* f = NULL;
    const crd_status st = crd_fmu_parse(fx->ctx, xml, strlen(xml), "t.xml", &f);
    if (st == CRD_OK) { fail_msg("accepted, expected \"%s\": %s", part, xml); }
    check_status(st, want);
    check_contains(crd_error_text(fx->ctx), part);
    check(f == NULL);
}

static const crd_variable* variable(const crd_fmu* f, const char* name)
{
    const int32_t i = crd_fmu_find(f, name);
    if (i < 0) { fail_msg("no variable '%s'", name); }
    return &crd_fmu_describe(f)->variables[i];
}

// ---- the model ---------------------------------------------------------------------------------

static void fmi2_header_capabilities_and_experiment_are_read(void** state)
{
    crd_fmu* f = parse(
        *state,
        "<fmiModelDescription fmiVersion='2.0.4' modelName='A &amp; B' guid='{g}' description='d'"
        " author='a' version='v' copyright='c' license='l' generationTool='t'"
        " generationDateAndTime='2020-01-01T00:00:00Z' vendor='ignored'>"
        "<ModelExchange modelIdentifier='me'/>"
        "<CoSimulation modelIdentifier='cs' needsExecutionTool='true'"
        " canHandleVariableCommunicationStepSize='1' canInterpolateInputs='true'"
        " maxOutputDerivativeOrder='3' canRunAsynchronuously='true'"
        " canBeInstantiatedOnlyOncePerProcess='true' canNotUseMemoryManagementFunctions='true'"
        " canGetAndSetFMUstate='true' canSerializeFMUstate='true'"
        " providesDirectionalDerivative='true'><SourceFiles><File name='x.c'/></SourceFiles>"
        "</CoSimulation>"
        "<LogCategories><Category name='logAll'/><Category name='logError'/></LogCategories>"
        "<DefaultExperiment startTime='1' stopTime='2.5' tolerance='1e-4' stepSize='0.5'/>"
        "<VendorAnnotations><Tool name='x'><a b='c'/></Tool></VendorAnnotations>"
        "</fmiModelDescription>");
    const crd_fmu_description* d = crd_fmu_describe(f);
    check_int(d->version, CRD_FMI_2);
    check_text(d->fmi_version_text, "2.0.4");
    check_text(d->model_name, "A & B");
    check_text(d->model_identifier, "cs");
    check_text(d->token, "{g}");
    check_text(d->description, "d");
    check_text(d->author, "a");
    check_text(d->model_version, "v");
    check_text(d->copyright, "c");
    check_text(d->license, "l");
    check_text(d->generation_tool, "t");
    check_text(d->generation_date, "2020-01-01T00:00:00Z");
    check(d->has_cosimulation && d->has_model_exchange && !d->has_scheduled_execution);
    check(d->needs_execution_tool && d->can_handle_variable_step && d->can_interpolate_inputs);
    check(d->can_run_asynchronously && d->can_be_instantiated_once);
    check(d->can_not_use_memory_functions && d->can_get_set_state && d->can_serialize_state);
    check(d->provides_directional_derivatives && !d->has_event_mode);
    check_int(d->max_output_derivative, 3);
    check(d->has_start && d->has_stop && d->has_tolerance && d->has_step);
    check_near(d->start, 1, 0);
    check_near(d->stop, 2.5, 0);
    check_near(d->tolerance, 1e-4, 0);
    check_near(d->step, 0.5, 0);
    check_int(d->log_category_count, 2);
    check_text(d->log_categories[1], "logError");
    check_int(d->variable_count, 0);
    check_int(d->outputs.count, 0);
    check_text(crd_fmu_platforms(f), "");
    crd_fmu_close(f);
}

static void fmi3_capabilities_are_read(void** state)
{
    crd_fmu* f = parse(
        *state,
        "<fmiModelDescription fmiVersion='3.1-alpha.1' modelName='m' instantiationToken='tok'>"
        "<CoSimulation modelIdentifier='cs' canGetAndSetFMUState='true' canSerializeFMUState='true'"
        " providesDirectionalDerivatives='true' providesAdjointDerivatives='true'"
        " fixedInternalStepSize='0.01' hasEventMode='true' providesIntermediateUpdate='true'"
        " canReturnEarlyAfterIntermediateUpdate='true'/>"
        "<ScheduledExecution modelIdentifier='se'/></fmiModelDescription>");
    const crd_fmu_description* d = crd_fmu_describe(f);
    check_int(d->version, CRD_FMI_3);
    check_text(d->fmi_version_text, "3.1-alpha.1");
    check_text(d->token, "tok");
    check(d->can_get_set_state && d->can_serialize_state && d->provides_directional_derivatives);
    check(d->provides_adjoint_derivatives && d->has_event_mode && d->provides_intermediate_update);
    check(d->can_return_early && d->has_scheduled_execution && !d->has_model_exchange);
    check(!d->can_handle_variable_step && !d->has_stop);
    check_near(d->fixed_internal_step, 0.01, 0);
    crd_fmu_close(f);
}

// ---- variables ---------------------------------------------------------------------------------

static void fmi2_knows_all_its_types_and_inherits_from_declared_types(void** state)
{
    crd_fmu* f = parse(
        *state,
        FMI2(
            "<UnitDefinitions><Unit name='degC'><BaseUnit K='1' factor='2' offset='273.15'/>"
            "<DisplayUnit name='K'/></Unit><Unit name='bare'/>"
            "<Unit name='N.m'><BaseUnit kg='1' m='2' s='-2'/></Unit></UnitDefinitions>"
            "<TypeDefinitions><SimpleType name='Temp'><Real unit='degC' nominal='300' min='-273.15'"
            " max='INF' relativeQuantity='true'/></SimpleType>"
            "<SimpleType name='Gear'><Enumeration><Item name='R' value='-1'/>"
            "<Item name='N' value='5' description='neutral'/></Enumeration></SimpleType>"
            "</TypeDefinitions>" VARIABLES(
                SCALAR("name='t' valueReference='0' description='warm'",
                       "<Real declaredType='Temp' max='100'/>")
                    SCALAR("name='u' valueReference='1' causality='input'",
                           "<Real unit='N.m' start=' 1.5 '/>")
                        SCALAR("name='i' valueReference='0' causality='parameter'"
                               " variability='tunable'",
                               "<Integer start='-7' min='-8' max='8'/>")
                            SCALAR("name='b' valueReference='0' causality='output'",
                                   "<Boolean/><Annotations/>")
                                SCALAR("name='s' valueReference='0' causality='parameter'"
                                       " variability='fixed'",
                                       "<String start='a  b'/>")
                                    SCALAR("name='g' valueReference='1'",
                                           "<Enumeration declaredType='Gear'/>")
                                        SCALAR("name='odd' valueReference='9'",
                                               "<Real unit='furlong'/>"))));
    const crd_fmu_description* d = crd_fmu_describe(f);
    check_int(d->variable_count, 7);
    const crd_variable* t = variable(f, "t");
    check_int(t->type, CRD_FLOAT64);
    check_text(t->description, "warm");
    check_text(t->unit, "degC");
    check_near(t->nominal, 300, 0);
    check_near(t->min, -273.15, 0);
    check_near(t->max, 100, 0);
    check(t->relative_quantity && t->start == NULL);
    check_near(d->units[t->unit_index].base.factor, 2, 0);
    check_near(d->units[t->unit_index].base.offset, 273.15, 0);
    check_int(d->units[t->unit_index].base.K, 1);
    const crd_variable* u = variable(f, "u");
    check_text(u->start, "1.5");
    check_text(u->description, "");
    check_int(d->units[u->unit_index].base.s, -2);
    check_int(d->units[u->unit_index].base.m, 2);
    check(isinf(u->min) && isinf(u->max) && u->min < 0);
    const crd_variable* i = variable(f, "i");
    check_int(i->type, CRD_INT32);
    check_text(i->start, "-7");
    check_near(i->min, -8, 0);
    check_int(i->variability, CRD_TUNABLE);
    check_int(variable(f, "b")->type, CRD_BOOLEAN);
    check_text(variable(f, "b")->unit, "");
    check_int(variable(f, "b")->unit_index, -1);
    check_int(variable(f, "s")->type, CRD_STRING);
    check_text(variable(f, "s")->start, "a  b");
    const crd_variable* g = variable(f, "g");
    check_int(g->type, CRD_ENUMERATION);
    const crd_fmu_enumeration* e = &d->enumerations[g->type_index];
    check_text(e->name, "Gear");
    check_int(e->item_count, 2);
    check_int(e->items[0].value, -1);
    check_text(e->items[1].name, "N");
    check_text(e->items[1].description, "neutral");
    // a unit without definition is known by its name alone
    check_text(variable(f, "odd")->unit, "furlong");
    check(!d->units[variable(f, "odd")->unit_index].has_base);
    check(!d->units[1].has_base); // <Unit name="bare">
    for (int32_t k = 0; k < d->variable_count; k++) {
        check_int(d->axis_first[k], -1);
        check_int(d->variables[k].size, 1);
        check_int(d->variables[k].alias_of, -1);
    }
    crd_fmu_close(f);
}

static void fmi3_knows_all_its_types(void** state)
{
    static const struct {
        const char *element, *start;
        crd_type type;
    } rows[] = {
        {"Float64", "1e-3", CRD_FLOAT64},
        {"Float32", "-INF", CRD_FLOAT32},
        {"Int8", "-128", CRD_INT8},
        {"UInt8", "255", CRD_UINT8},
        {"Int16", "-32768", CRD_INT16},
        {"UInt16", "65535", CRD_UINT16},
        {"Int32", "-2147483648", CRD_INT32},
        {"UInt32", "4294967295", CRD_UINT32},
        {"Int64", "-9223372036854775808", CRD_INT64},
        {"UInt64", "18446744073709551615", CRD_UINT64},
        {"Boolean", "true", CRD_BOOLEAN},
        {"Enumeration", "-3", CRD_ENUMERATION},
        {"Clock", NULL, CRD_CLOCK},
    };
    fixture* fx = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char xml[1024], start[64] = "";
        if (rows[i].start) { snprintf(start, sizeof start, "start='%s'", rows[i].start); }
        snprintf(xml, sizeof xml, FMI3(VARIABLES("<%s name='v' valueReference='4294967295' %s/>")),
                 rows[i].element, start);
        crd_fmu* f = parse(fx, xml);
        const crd_variable* v = variable(f, "v");
        check_int(v->type, rows[i].type);
        check_int(v->reference, UINT32_MAX);
        if (rows[i].start) {
            check_text(v->start, rows[i].start);
        } else {
            check(v->start == NULL);
        }
        crd_fmu_close(f);
    }
    crd_fmu* f = parse(
        fx, FMI3(VARIABLES("<String name='s' valueReference='1'><Start value=' x y '/></String>"
                           "<String name='e' valueReference='2'><Start value=''/></String>"
                           "<Binary name='b' valueReference='3' mimeType='a/b'>"
                           "<Start value='00ffA0'/></Binary>"
                           "<Float64 name='m' valueReference='4' intermediateUpdate='true'"
                           " canHandleMultipleSetPerTimeInstant='false' causality='input'"
                           " start='0' clocks='5'/>"
                           "<Clock name='c' valueReference='5' causality='input'"
                           " intervalVariability='constant'/>")));
    check_text(variable(f, "s")->start, " x y ");
    check_text(variable(f, "e")->start, "");
    check_text(variable(f, "b")->start, "00ffA0");
    check_int(variable(f, "b")->type, CRD_BINARY);
    check(variable(f, "m")->intermediate_update && !variable(f, "m")->can_handle_multiple_set);
    check(variable(f, "s")->can_handle_multiple_set && !variable(f, "s")->intermediate_update);
    check_text(crd_fmu_describe(f)->clocked, "m");
    check_text(crd_fmu_describe(f)->input_clock, "c");
    crd_fmu_close(f);
}

// What belongs to a clock, or is one that others tick, makes wrong results: nothing of it is run.
static void fmus_that_need_clocks_are_refused(void** state)
{
    fixture* fx = *state;
    static const struct {
        const char *variables, *part; // NULL: clocks are no reason
    } rows[] = {
        {"<Clock name='r' valueReference='1' causality='input' intervalVariability='constant'"
         " intervalDecimal='0.1'/>",
         "'r' is an input clock"},
        {"<Clock name='s' valueReference='1' causality='input' intervalVariability='triggered'/>",
         "'s' is an input clock"},
        {"<Clock name='s' valueReference='1' causality='output' intervalVariability='triggered'/>"
         "<Float64 name='as' valueReference='2' causality='output' variability='discrete'"
         " clocks='1'/>",
         "'as' changes with a clock"},
        {"<Clock name='s' valueReference='1' causality='output' intervalVariability='triggered'/>"
         "<Float64 name='x' valueReference='2' causality='output' clocks=' '/>",
         NULL},
        {"<Float64 name='x' valueReference='2' causality='output'/>", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2000];
        snprintf(text, sizeof text, FMI3(VARIABLES("%s")), rows[i].variables);
        crd_fmu* f = parse(fx, text);
        check_status(crd_fmu_check_runnable(f, fx->ctx), CRD_E_UNSUPPORTED); // there is no library
        const bool clocks = strstr(crd_error_text(fx->ctx), "clocks of FMI 3 do not tick here");
        check_int(clocks, rows[i].part != NULL);
        if (clocks) { check_contains(crd_error_text(fx->ctx), rows[i].part); }
        crd_fmu_close(f);
    }
}

static void fmi3_types_hand_down_units_and_items(void** state)
{
    crd_fmu* f = parse(
        *state, FMI3("<UnitDefinitions><Unit name='rpm'><BaseUnit rad='1' s='-1' factor='0.1047'/>"
                     "</Unit></UnitDefinitions><TypeDefinitions>"
                     "<Float64Type name='Speed' unit='rpm' nominal='1000' min='0'/>"
                     "<Int16Type name='Count' min='-5' max='5'/>"
                     "<EnumerationType name='Mode'><Item name='on' value='3'/></EnumerationType>"
                     "</TypeDefinitions>" VARIABLES(
                         "<Float64 name='n' valueReference='1' declaredType='Speed'/>"
                         "<Int16 name='k' valueReference='2' declaredType='Count'/>"
                         "<Enumeration name='m' valueReference='3' declaredType='Mode'/>")));
    const crd_fmu_description* d = crd_fmu_describe(f);
    check_near(variable(f, "n")->nominal, 1000, 0);
    check_near(variable(f, "n")->min, 0, 0);
    check_text(variable(f, "n")->unit, "rpm");
    check_int(d->units[variable(f, "n")->unit_index].base.rad, 1);
    check_near(variable(f, "k")->max, 5, 0);
    check_text(d->enumerations[variable(f, "m")->type_index].items[0].name, "on");
    crd_fmu_close(f);
}

// One row of the standards' tables: what is written, and what follows.
static void defaults_follow_the_tables_of_the_standards(void** state)
{
    static const struct {
        const char *causality, *variability;
        int version, real, want_variability, want_initial;
    } rows[] = {
        {"", "", 2, 1, CRD_CONTINUOUS, CRD_CALCULATED},
        {"", "", 2, 0, CRD_DISCRETE, CRD_CALCULATED},
        {"", "constant", 2, 1, CRD_CONSTANT, CRD_EXACT},
        {"", "fixed", 2, 1, CRD_FIXED, CRD_CALCULATED},
        {"", "tunable", 2, 1, CRD_TUNABLE, CRD_CALCULATED},
        {"", "discrete", 2, 1, CRD_DISCRETE, CRD_CALCULATED},
        {"output", "", 2, 1, CRD_CONTINUOUS, CRD_CALCULATED},
        {"output", "constant", 2, 1, CRD_CONSTANT, CRD_EXACT},
        {"output", "", 2, 0, CRD_DISCRETE, CRD_CALCULATED},
        {"input", "", 2, 1, CRD_CONTINUOUS, CRD_EXACT},
        {"input", "discrete", 2, 1, CRD_DISCRETE, CRD_EXACT},
        {"input", "", 2, 0, CRD_DISCRETE, CRD_EXACT},
        {"parameter", "fixed", 2, 1, CRD_FIXED, CRD_EXACT},
        {"parameter", "tunable", 2, 0, CRD_TUNABLE, CRD_EXACT},
        {"calculatedParameter", "fixed", 2, 1, CRD_FIXED, CRD_CALCULATED},
        {"calculatedParameter", "tunable", 2, 1, CRD_TUNABLE, CRD_CALCULATED},
        {"independent", "", 2, 1, CRD_CONTINUOUS, CRD_CALCULATED},
        {"", "", 3, 1, CRD_CONTINUOUS, CRD_CALCULATED},
        {"", "", 3, 0, CRD_DISCRETE, CRD_CALCULATED},
        {"parameter", "", 3, 1, CRD_FIXED, CRD_EXACT},
        {"parameter", "", 3, 0, CRD_FIXED, CRD_EXACT},
        {"structuralParameter", "", 3, 0, CRD_FIXED, CRD_EXACT},
        {"calculatedParameter", "", 3, 1, CRD_FIXED, CRD_CALCULATED},
        {"output", "", 3, 1, CRD_CONTINUOUS, CRD_CALCULATED},
        {"input", "", 3, 0, CRD_DISCRETE, CRD_EXACT},
    };
    fixture* fx = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char own[200] = "name='v' valueReference='1'", xml[1024];
        if (rows[i].causality[0]) {
            snprintf(own + strlen(own), 100, " causality='%s'", rows[i].causality);
        }
        if (rows[i].variability[0]) {
            snprintf(own + strlen(own), 100, " variability='%s'", rows[i].variability);
        }
        if (rows[i].version == 2) {
            snprintf(xml, sizeof xml, FMI2(VARIABLES(SCALAR("%s", "<%s start='1'/>"))), own,
                     rows[i].real ? "Real" : "Integer");
        } else {
            snprintf(xml, sizeof xml, FMI3(VARIABLES("<%s %s start='1'/>")),
                     rows[i].real ? "Float32" : "UInt64", own);
        }
        crd_fmu* f = parse(fx, xml);
        const crd_variable* v = variable(f, "v");
        if (v->variability != rows[i].want_variability || v->initial != rows[i].want_initial) {
            fail_msg("row %zu: variability %d, expected %d; initial %d, expected %d", i,
                     v->variability, rows[i].want_variability, v->initial, rows[i].want_initial);
        }
        crd_fmu_close(f);
    }
    check_text(fx->log, ""); // none of them is odd
}

static void a_local_variable_that_is_declared_again_has_its_line_in_its_name(void** state)
{
    fixture* fx = *state;
    crd_fmu* f = parse(fx, FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Real/>")
                                              SCALAR("name='x' valueReference='2'", "<Real/>"))));
    const crd_fmu_description* d = crd_fmu_describe(f);
    check_int(d->variable_count, 2);
    check_text(d->variables[0].name, "x");
    check_text(d->variables[1].name, "x (line 6)");
    check_int(crd_fmu_find(f, "x"), 0);
    check_contains(fx->log, "t.xml:6: variable 'x (line 6)' is called so here");
    crd_fmu_close(f);
}

static void odd_combinations_and_missing_starts_are_warned_of_once(void** state)
{
    fixture* fx = *state;
    crd_fmu* f = parse(
        fx, FMI2(VARIABLES(
                SCALAR("name='p' valueReference='1' causality='parameter'", "<Real start='1'/>")
                    SCALAR("name='q' valueReference='2' causality='input'"
                           " variability='fixed'",
                           "<Real/>") SCALAR("name='r' valueReference='3' variability='continuous'",
                                             "<Integer/>"))));
    check_int(variable(f, "p")->variability, CRD_FIXED);
    check_int(variable(f, "q")->variability, CRD_FIXED);
    check_contains(fx->log,
                   "t.xml:5: variable 'p' has a causality and a variability that do not go "
                   "together (and 2 more)\n");
    check_contains(fx->log, "t.xml:6: variable 'q' lacks the start value");
    crd_fmu_close(f);
}

static void written_initial_is_kept(void** state)
{
    crd_fmu* f = parse(
        *state,
        FMI2(VARIABLES(SCALAR("name='a' valueReference='1' initial='approx'", "<Real start='1'/>")
                           SCALAR("name='e' valueReference='2' initial='exact' causality='output'",
                                  "<Real start='2'/>"))));
    check_int(variable(f, "a")->initial, CRD_APPROX);
    check_int(variable(f, "e")->initial, CRD_EXACT);
    crd_fmu_close(f);
}

// ---- aliases and arrays ------------------------------------------------------------------------

static void fmi2_aliases_share_a_reference_within_a_base_type(void** state)
{
    crd_fmu* f = parse(
        *state,
        FMI2("<TypeDefinitions><SimpleType "
             "name='E'><Enumeration/></SimpleType></TypeDefinitions>" VARIABLES(
                 SCALAR("name='r7' valueReference='7'", "<Real/>")
                     SCALAR("name='i3' valueReference='3'", "<Integer/>")
                         SCALAR("name='b3' valueReference='3'", "<Boolean/>")
                             SCALAR("name='r3' valueReference='3'", "<Real/>") SCALAR(
                                 "name='e3' valueReference='3'", "<Enumeration declaredType='E'/>")
                                 SCALAR("name='r7b' valueReference='7'", "<Real/>")
                                     SCALAR("name='s3' valueReference='3'", "<String/>")
                                         SCALAR("name='r7c' valueReference='7'", "<Real/>"))));
    static const struct {
        const char *name, *of;
    } rows[] = {{"r7", NULL}, {"i3", NULL},  {"b3", NULL}, {"r3", NULL},
                {"e3", "i3"}, {"r7b", "r7"}, {"s3", NULL}, {"r7c", "r7"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_int(variable(f, rows[i].name)->alias_of,
                  rows[i].of ? crd_fmu_find(f, rows[i].of) : -1);
    }
    crd_fmu_close(f);
}

// FMI 1.0: one interface, words of its own, aliases that are opposites, dependencies by name.
static void fmi1_descriptions_are_read(void** state)
{
    crd_fmu* f = parse(
        *state,
        "<fmiModelDescription fmiVersion='1.0' modelName='m' modelIdentifier='id' guid='{g}'"
        " numberOfContinuousStates='3' numberOfEventIndicators='2'>"
        "<UnitDefinitions><BaseUnit unit='K'><DisplayUnitDefinition displayUnit='degC'"
        " offset='-273.15'/></BaseUnit></UnitDefinitions><TypeDefinitions>"
        "<Type name='T'><RealType unit='K' nominal='300' min='0'/></Type>"
        "<Type name='G'><EnumerationType><Item name='a'/><Item name='b'/></EnumerationType></Type>"
        "</TypeDefinitions><DefaultExperiment stopTime='3'/><ModelVariables>"
        "<ScalarVariable name='local' valueReference='1'><Real start='2' fixed='false'/>"
        "</ScalarVariable>"
        "<ScalarVariable name='y' valueReference='1' causality='output' alias='alias'>"
        "<Real declaredType='T'/><DirectDependency><Name>u</Name><Name> &lt;w&gt;\n</Name>"
        "</DirectDependency></ScalarVariable>"
        "<ScalarVariable name='-y' valueReference='1' causality='output' alias='negatedAlias'>"
        "<Real/></ScalarVariable>"
        "<ScalarVariable name='-z' valueReference='1' alias='negatedAlias'><Real/></ScalarVariable>"
        "<ScalarVariable name='u' valueReference='2' causality='input'><Real start='0'/>"
        "<DirectDependency><Name>y</Name></DirectDependency></ScalarVariable>"
        "<ScalarVariable name='&lt;w&gt;' valueReference='3' causality='input'"
        " variability='discrete'><Real start='0'/></ScalarVariable>"
        "<ScalarVariable name='p' valueReference='4' variability='parameter'><Real start='1'/>"
        "</ScalarVariable>"
        "<ScalarVariable name='q' valueReference='5' variability='parameter'><Real/>"
        "</ScalarVariable>"
        "<ScalarVariable name='k' valueReference='6' variability='constant' causality='none'>"
        "<Integer start='7'/></ScalarVariable>"
        "<ScalarVariable name='e' valueReference='7' causality='output'><Enumeration"
        " declaredType='G' start='2'/><DirectDependency/></ScalarVariable>"
        "<ScalarVariable name='x' valueReference='8' causality='output'><Real start='1'/>"
        "<DirectDependency><Name>nobody</Name></DirectDependency></ScalarVariable>"
        "</ModelVariables></fmiModelDescription>");
    const crd_fmu_description* d = crd_fmu_describe(f);
    check_int(d->version, CRD_FMI_1);
    check(d->has_model_exchange && !d->has_cosimulation && d->exchange.needs_completed_step);
    check_text(d->exchange.model_identifier, "id");
    check_text(d->model_identifier, "");
    check_text(d->token, "{g}");
    check_int(d->exchange.state_count, 3);
    check_int(d->exchange.indicator_count, 2);
    static const struct {
        const char* name;
        int causality, variability, initial, alias_of;
        bool negated;
    } rows[] = {
        {"local", CRD_LOCAL, CRD_CONTINUOUS, CRD_APPROX, 1, false}, // the output stands for it
        {"y", CRD_OUTPUT, CRD_CONTINUOUS, CRD_CALCULATED, -1, false},
        {"-y", CRD_OUTPUT, CRD_CONTINUOUS, CRD_CALCULATED, -1, true},
        {"-z", CRD_LOCAL, CRD_CONTINUOUS, CRD_CALCULATED, 2, true},
        {"u", CRD_INPUT, CRD_CONTINUOUS, CRD_EXACT, -1, false},
        {"<w>", CRD_INPUT, CRD_DISCRETE, CRD_EXACT, -1, false},
        {"p", CRD_PARAMETER, CRD_FIXED, CRD_EXACT, -1, false},
        {"q", CRD_CALCULATED_PARAMETER, CRD_FIXED, CRD_CALCULATED, -1, false},
        {"k", CRD_LOCAL, CRD_CONSTANT, CRD_EXACT, -1, false},
        {"e", CRD_OUTPUT, CRD_DISCRETE, CRD_EXACT, -1, false},
        {"x", CRD_OUTPUT, CRD_CONTINUOUS, CRD_EXACT, -1, false},
    };
    check_int(d->variable_count, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const crd_variable* v = &d->variables[i];
        check_text(v->name, rows[i].name);
        check_int(v->causality, rows[i].causality);
        check_int(v->variability, rows[i].variability);
        check_int(v->initial, rows[i].initial);
        check_int(v->alias_of, rows[i].alias_of);
        check_int(v->negated, rows[i].negated);
    }
    check_text(variable(f, "y")->unit, "K");
    check_near(variable(f, "y")->nominal, 300, 0);
    check_int(d->enumerations[0].item_count, 2);
    check_int(d->enumerations[0].items[1].value, 2);
    const crd_dependencies* o = &d->outputs;
    check_int(o->count, 4);
    check_int(o->unknown[0], 1);
    check(!o->on_all[0] && o->on_all[1] && !o->on_all[2] && o->on_all[3]); // x: nobody knows
    check_int(o->first[1] - o->first[0], 2);
    check_int(o->known[0], 4);
    check_int(o->known[1], 5);
    check_int(o->first[3] - o->first[2], 0);
    crd_fmu_close(f);
}

static void fmi1_slaves_have_an_implementation(void** state)
{
    crd_fmu* f = parse(
        *state, "<fmiModelDescription fmiVersion='1.0' modelName='m' modelIdentifier='id' guid='g'"
                "><ModelVariables/><Implementation><CoSimulation_Tool><Capabilities"
                " canHandleVariableCommunicationStepSize='true' canInterpolateInputs='true'"
                " maxOutputDerivativeOrder='2' canRunAsynchronuously='1'"
                " canBeInstantiatedOnlyOncePerProcess='true'"
                " canNotUseMemoryManagementFunctions='true'/><Model entryPoint='file:///x.mdl'"
                " manualStart='false' type='application/x-tool'/></CoSimulation_Tool>"
                "</Implementation></fmiModelDescription>");
    const crd_fmu_description* d = crd_fmu_describe(f);
    check(d->has_cosimulation && !d->has_model_exchange && d->needs_execution_tool);
    check(d->can_handle_variable_step && d->can_interpolate_inputs && d->can_run_asynchronously);
    check(d->can_be_instantiated_once && d->can_not_use_memory_functions && !d->can_get_set_state);
    check_int(d->max_output_derivative, 2);
    check_text(d->model_identifier, "id");
    check_text(f->mime_type, "application/x-tool");
    crd_fmu_close(f);
}

static void fmi1_mistakes_are_named(void** state)
{
#define ONE(attributes, variable)                                                                  \
    "<fmiModelDescription fmiVersion='1.0' modelName='m' guid='g' " attributes                     \
    "><ModelVariables>" variable "</ModelVariables></fmiModelDescription>"
    refused(*state, ONE("", ""), CRD_E_FORMAT, "lacks its attribute 'modelIdentifier'");
    refused(*state, ONE("modelIdentifier='../x'", ""), CRD_E_FORMAT, "expected a C identifier");
    refused(*state, ONE("modelIdentifier='x' numberOfContinuousStates='-1'", ""), CRD_E_FORMAT,
            "numberOfContinuousStates = '-1'");
    refused(*state, ONE("modelIdentifier='x' numberOfContinuousStates='4000000000'", ""),
            CRD_E_FORMAT, "numberOfContinuousStates = 4000000000 is above the limit");
    refused(*state,
            ONE("modelIdentifier='x'", "<ScalarVariable name='a' valueReference='0'"
                                       " causality='local'><Real/></ScalarVariable>"),
            CRD_E_FORMAT, "causality = 'local', expected internal, input, output or none");
    refused(*state,
            ONE("modelIdentifier='x'", "<ScalarVariable name='a' valueReference='0'"
                                       " alias='yes'><Real/></ScalarVariable>"),
            CRD_E_FORMAT, "alias = 'yes', expected noAlias, alias or negatedAlias");
#undef ONE
}

static void fmi3_alias_children_become_variables(void** state)
{
    crd_fmu* f = parse(
        *state, FMI3(VARIABLES(
                    "<Float64 name='x' valueReference='1' unit='m' causality='output'>"
                    "<Alias name='y' description='also x'/><Dimension start='2'/><Alias name='z'/>"
                    "</Float64><Float64 name='w' valueReference='2'/>")));
    const crd_fmu_description* d = crd_fmu_describe(f);
    check_int(d->variable_count, 4);
    check_text(d->variables[1].name, "y");
    check_text(d->variables[1].description, "also x");
    check_text(d->variables[1].unit, "m");
    check_int(d->variables[1].alias_of, 0);
    check_int(d->variables[1].causality, CRD_OUTPUT);
    check_int(d->variables[1].size, 2);
    check_int(d->variables[1].rank, 1);
    check_int(d->axis_first[1], d->axis_first[0]);
    check_text(d->variables[2].name, "z");
    check_text(d->variables[2].description, "");
    check_int(d->variables[2].alias_of, 0);
    check_text(d->variables[3].name, "w");
    check_int(d->variables[3].alias_of, -1);
    crd_fmu_close(f);
}

static void sizes_of_arrays_follow_structural_parameters(void** state)
{
    crd_fmu* f = parse(
        *state, FMI3(VARIABLES(
                    "<Float64 name='A' valueReference='1' start='1 2 3 4 5 6'>"
                    "<Dimension valueReference='9'/><Dimension start='2'/></Float64>"
                    "<UInt64 name='n' valueReference='9' causality='structuralParameter' start='3'"
                    " variability='tunable'/>"
                    "<Boolean name='b' valueReference='2' start='true'><Dimension start='4'/>"
                    "</Boolean><Int8 name='none' valueReference='3' start=''>"
                    "<Dimension start='0'/></Int8>"
                    "<String name='s' valueReference='4'><Dimension start='2'/>"
                    "<Start value='a b'/><Start value=''/><Alias name='sa'/></String>"
                    "<String name='t' valueReference='5'><Dimension start='3'/><Start value='xy'/>"
                    "<Alias name='ta'/></String>"
                    "<Binary name='x' valueReference='6'><Dimension start='2'/><Start value='01'/>"
                    "<Start value='0203'/></Binary>")));
    const crd_fmu_description* d = crd_fmu_describe(f);
    const crd_variable* a = variable(f, "A");
    check_int(a->size, 6);
    check_int(a->rank, 2);
    const crd_fmu_axis* axes = &d->axes[d->axis_first[crd_fmu_find(f, "A")]];
    check_int(axes[0].variable, crd_fmu_find(f, "n"));
    check_int(axes[0].start, 0);
    check_int(axes[1].variable, -1);
    check_int(axes[1].start, 2);
    check_int(variable(f, "n")->causality, CRD_STRUCTURAL_PARAMETER);
    check_int(variable(f, "n")->size, 1);
    check_int(variable(f, "b")->size, 4);
    check_int(variable(f, "none")->size, 0);
    check(memcmp(variable(f, "s")->start, "a b\0", 5) == 0);
    check(memcmp(variable(f, "t")->start, "xy\0xy\0xy", 9) == 0);
    check(variable(f, "ta")->start == variable(f, "t")->start);
    check(memcmp(variable(f, "x")->start,
                 "01\0"
                 "0203",
                 8) == 0);
    crd_fmu_close(f);
}

// ---- dependencies ------------------------------------------------------------------------------

static void fmi2_dependencies_count_from_one(void** state)
{
    crd_fmu* f = parse(
        *state,
        FMI2(VARIABLES(
            SCALAR("name='u1' valueReference='1' causality='input'", "<Real start='0'/>") SCALAR(
                "name='u2' valueReference='2' causality='input'", "<Real start='0'/>")
                SCALAR("name='y1' valueReference='3' causality='output'", "<Real/>")
                    SCALAR("name='y2' valueReference='4' causality='output'", "<Real/>") SCALAR(
                        "name='y3' valueReference='5' causality='output'",
                        "<Real/>")) "<ModelStructure><Outputs><Unknown index='3' dependencies='1 2'"
                                    " dependenciesKind='dependent constant'/><Unknown index='4'/>"
                                    "<Unknown index='5' dependencies=''/></Outputs>"
                                    "<Derivatives><Unknown index='99'/></Derivatives>"
                                    "<InitialUnknowns><Unknown index='4' dependencies=' 2 "
                                    "'/></InitialUnknowns>"
                                    "</ModelStructure>"));
    const crd_dependencies* o = &crd_fmu_describe(f)->outputs;
    check_int(o->count, 3);
    check_int(o->unknown[0], 2);
    check_int(o->first[1] - o->first[0], 2);
    check_int(o->known[0], 0);
    check_int(o->known[1], 1);
    check(!o->on_all[0]);
    check(o->on_all[1]);
    check_int(o->first[2] - o->first[1], 0);
    check(!o->on_all[2]);
    check_int(o->first[3] - o->first[2], 0);
    const crd_dependencies* i = &crd_fmu_describe(f)->initial_unknowns;
    check_int(i->count, 1);
    check_int(i->unknown[0], 3);
    check_int(i->known[i->first[0]], 1);
    crd_fmu_close(f);
}

static void fmi3_dependencies_are_value_references(void** state)
{
    // references out of order, so that they have to be sorted, and beyond 16 bits
    crd_fmu* f =
        parse(*state,
              FMI3(VARIABLES(
                  "<Float64 name='y' valueReference='700000' causality='output'/>"
                  "<Float64 name='u' valueReference='3' causality='input' start='0'/>"
                  "<Float64 name='v' valueReference='300' causality='input' start='0'>"
                  "<Alias name='va'/></Float64>") "<ModelStructure><Output valueReference='700000' "
                                                  "dependencies='300 3'/>"
                                                  "<ContinuousStateDerivative valueReference='5'/>"
                                                  "<InitialUnknown "
                                                  "valueReference='700000'/><EventIndicator "
                                                  "valueReference='6'/>"
                                                  "</ModelStructure>"));
    const crd_dependencies* o = &crd_fmu_describe(f)->outputs;
    check_int(o->count, 1);
    check_int(o->unknown[0], crd_fmu_find(f, "y"));
    check_int(o->known[0], crd_fmu_find(f, "v"));
    check_int(o->known[1], crd_fmu_find(f, "u"));
    check_int(crd_fmu_describe(f)->initial_unknowns.count, 1);
    check(crd_fmu_describe(f)->initial_unknowns.on_all[0]);
    crd_fmu_close(f);
}

static void many_unsorted_references_are_all_found(void** state)
{
    enum { N = 3000 };
    char* xml = malloc(N * 100 + 1000);
    char* at = xml + sprintf(xml, "<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'>"
                                  "<ModelVariables>");
    for (int i = 0; i < N; i++) { // a permutation of 0 .. N/2-1, twice, times 65537
        at += sprintf(at, "<ScalarVariable name='v%d' valueReference='%u'><Real/></ScalarVariable>",
                      i, (unsigned)(i * 7 % (N / 2)) * 65537U);
    }
    strcpy(at, "</ModelVariables></fmiModelDescription>");
    crd_fmu* f = parse(*state, xml);
    for (int i = 0; i < N; i++) {
        check_int(crd_fmu_describe(f)->variables[i].alias_of, i < N / 2 ? -1 : i - N / 2);
        char name[20];
        sprintf(name, "v%d", i);
        check_int(crd_fmu_find(f, name), i);
    }
    check_int(crd_fmu_find(f, "v3000"), -1);
    crd_fmu_close(f);
    free(xml);
}

// ---- what is refused
// -----------------------------------------------------------------------------

static void other_versions_are_refused_with_a_sentence(void** state)
{
    refused(*state, "<fmiModelDescription fmiVersion='0.9' modelName='m' guid='g'/>",
            CRD_E_UNSUPPORTED, "t.xml:1: fmiVersion = '0.9' is not known here, only FMI 1.0, 2.0");
    refused(*state, "<fmiModelDescription fmiVersion='4.0' modelName='m'/>", CRD_E_UNSUPPORTED,
            "fmiVersion = '4.0' is not known here");
    refused(*state, "<fmiModelDescription fmiVersion='20' modelName='m'/>", CRD_E_UNSUPPORTED,
            "'20'");
    refused(*state, "<fmiModelDescription fmiVersion='two' modelName='m'/>", CRD_E_FORMAT, "'two'");
    refused(*state, "\n<Something/>", CRD_E_FORMAT, "t.xml:2: the root element is <Something>");
}

static void missing_attributes_are_named(void** state)
{
    static const struct {
        const char *xml, *part;
    } rows[] = {
        {"<fmiModelDescription modelName='m' guid='g'/>", "'fmiVersion'"},
        {"<fmiModelDescription fmiVersion='2.0' guid='g'/>", "'modelName'"},
        {"<fmiModelDescription fmiVersion='2.0' modelName='m'/>", "'guid'"},
        {"<fmiModelDescription fmiVersion='3.0' modelName='m' guid='g'/>", "'instantiationToken'"},
        {"<fmiModelDescription fmiVersion='3.0' modelName='m' instantiationToken='g'>"
         "<CoSimulation/></fmiModelDescription>",
         "<CoSimulation> lacks its attribute 'modelIdentifier'"},
        {FMI2(VARIABLES(SCALAR("valueReference='1'", "<Real/>"))),
         "t.xml:5: a variable lacks its attribute 'name'"},
        {FMI2(VARIABLES(SCALAR("name='x'", "<Real/>"))),
         "'x' lacks its attribute 'valueReference'"},
        {FMI3(VARIABLES("<Int8 name='x'/>")), "'x' lacks its attribute 'valueReference'"},
        {FMI3(VARIABLES("<Int8 valueReference='1'/>")), "lacks its attribute 'name'"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", ""))), "'x' has no type"},
        {FMI2("<UnitDefinitions><Unit/></UnitDefinitions>"), "<Unit> lacks its attribute 'name'"},
        {FMI2("<TypeDefinitions><SimpleType/></TypeDefinitions>"), "lacks its attribute 'name'"},
        {FMI3("<TypeDefinitions><EnumerationType name='e'><Item name='i'/></EnumerationType>"
              "</TypeDefinitions>"),
         "<Item> lacks its attribute 'value'"},
        {FMI3("<LogCategories><Category/></LogCategories>"), "<Category> lacks"},
        {FMI3("<ModelStructure><Output/></ModelStructure>"),
         "lacks its attribute 'valueReference'"},
        {FMI3(VARIABLES("<String name='s' valueReference='1'><Start/></String>")),
         "<Start> lacks its attribute 'value'"},
        {FMI3(VARIABLES("<Int8 name='s' valueReference='1'><Alias/></Int8>")),
         "lacks its attribute 'name'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refused(*state, rows[i].xml, CRD_E_FORMAT, rows[i].part);
    }
}

static void bad_values_are_named_with_their_attribute(void** state)
{
    static const struct {
        const char *xml, *part;
    } rows[] = {
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1' causality='outptu'", "<Real/>"))),
         "t.xml:5: x: causality = 'outptu', expected local, input, output"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1' variability='often'", "<Real/>"))),
         "x: variability = 'often'"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1' initial='x'", "<Real/>"))),
         "initial = 'x', expected exact, approx or calculated"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='one'", "<Real/>"))),
         "x: valueReference = 'one', expected a whole number"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='-1'", "<Real/>"))), "'-1'"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='4294967296'", "<Real/>"))),
         "'4294967296'"},
        {FMI2(VARIABLES(SCALAR("name='' valueReference='1'", "<Real/>"))), "empty name"},
        {FMI2(VARIABLES(SCALAR("name='a&#10;b' valueReference='1'", "<Real/>"))),
         "variable 'a?b': line breaks"},
        {FMI2(VARIABLES(
             SCALAR("name='x' valueReference='1' causality='structuralParameter'", "<Real/>"))),
         "needs FMI 3.0"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Real start='abc'/>"))),
         "t.xml:5: variable 'x': start = 'abc', expected a number"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Real start='1 2'/>"))), "'1 2'"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Real start=''/>"))), "start = ''"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Integer start='1.5'/>"))),
         "'1.5', expected a whole number"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Integer start='2147483648'/>"))),
         "'2147483648'"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Boolean start='yes'/>"))),
         "'yes', expected true or false"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Boolean start='2'/>"))),
         "'2', expected true or false"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Boolean start='11'/>"))),
         "'11', expected true or false"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Real min='low'/>"))),
         "x: min = 'low'"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Integer max='1e3'/>"))),
         "max = '1e3'"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Real nominal='?'/>"))),
         "nominal = '?'"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Real relativeQuantity='2'/>"))),
         "relativeQuantity = '2', expected true or false"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Real declaredType='T'/>"))),
         "declaredType = 'T' is not among the TypeDefinitions"},
        {FMI2("<TypeDefinitions><SimpleType "
              "name='T'><Integer/></SimpleType></TypeDefinitions>" VARIABLES(
                  SCALAR("name='x' valueReference='1'", "<Real declaredType='T'/>"))),
         "a type of another kind"},
        {FMI2("<TypeDefinitions><SimpleType name='T'/><SimpleType name='T'/></TypeDefinitions>"),
         "type 'T' is defined twice"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Real/><Integer/>"))), "two types"},
        {FMI2(VARIABLES(SCALAR("name='x' valueReference='1'", "<Real/>")
                            SCALAR("name='x' valueReference='2' causality='output'", "<Real/>"))),
         "t.xml:6: variable 'x' is declared again; the first one is in line 5"},
        {FMI3(VARIABLES("<Int8 name='x' valueReference='1'><Alias name='x'/></Int8>")),
         "declared again"},
        {FMI3(VARIABLES("<Int8 name='x' valueReference='1'/>\n"
                        "<UInt8 name='y' valueReference='1'/>")),
         "t.xml:6: variable 'y': valueReference = 1 belongs to 'x' in line 5 already"},
        {FMI3(VARIABLES("<Int8 name='x' valueReference='1' start='128'/>")), "start = '128'"},
        {FMI3(VARIABLES("<UInt64 name='x' valueReference='1' start='-1'/>")), "start = '-1'"},
        {FMI3(VARIABLES("<Clock name='x' valueReference='1' start='1'/>")), "no start value"},
        {FMI3(VARIABLES("<Binary name='x' valueReference='1'><Start value='abc'/></Binary>")),
         "'abc', expected pairs of hexadecimal digits"},
        {FMI3(VARIABLES("<Binary name='x' valueReference='1' start='0g'/>")), "hexadecimal"},
        {FMI3(VARIABLES("<Float64 name='x' valueReference='1' intermediateUpdate='maybe'/>")),
         "intermediateUpdate = 'maybe'"},
        {FMI2("<UnitDefinitions><Unit name='u'><BaseUnit m='1.5'/></Unit></UnitDefinitions>"),
         "unit 'u': m = '1.5'"},
        {FMI2("<UnitDefinitions><Unit name='u'><BaseUnit s='300'/></Unit></UnitDefinitions>"),
         "s = '300'"},
        {FMI2("<UnitDefinitions><Unit name='u'><BaseUnit factor='0'/></Unit></UnitDefinitions>"),
         "factor = 0"},
        {FMI2("<UnitDefinitions><Unit name='u'><BaseUnit offset='x'/></Unit></UnitDefinitions>"),
         "u: offset = 'x'"},
        {FMI2("<DefaultExperiment stopTime='late'/>"), "stopTime = 'late'"},
        {FMI3("<TypeDefinitions><EnumerationType name='e'><Item name='i' value='x'/>"
              "</EnumerationType></TypeDefinitions>"),
         "item 'i' has value = 'x'"},
        {"<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'>"
         "<CoSimulation modelIdentifier='../../evil'/></fmiModelDescription>",
         "modelIdentifier = '../../evil', expected a C identifier"},
        {"<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'>"
         "<CoSimulation modelIdentifier='m' canGetAndSetFMUstate='ja'/></fmiModelDescription>",
         "canGetAndSetFMUstate = 'ja'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refused(*state, rows[i].xml, CRD_E_FORMAT, rows[i].part);
    }
}

static void bad_model_structures_are_refused(void** state)
{
#define TWO                                                                                        \
    SCALAR("name='u' valueReference='1'", "<Real/>")                                               \
    SCALAR("name='y' valueReference='2'", "<Real/>")
#define OUTPUT2(unknown)                                                                           \
    FMI2(VARIABLES(TWO) "<ModelStructure>\n<Outputs>\n" unknown "</Outputs></ModelStructure>")
    static const struct {
        const char *xml, *part;
    } rows[] = {
        {OUTPUT2("<Unknown index='3'/>"), "t.xml:10: ModelStructure: unknown 3 is out of range"},
        {OUTPUT2("<Unknown index='0'/>"), "unknown 0 is out of range"},
        {OUTPUT2("<Unknown index='2' dependencies='1 7'/>"), "dependency 7 is out of range"},
        {OUTPUT2("<Unknown index='2' dependencies='one'/>"), "dependencies = 'one'"},
        {OUTPUT2("<Unknown index='2' dependencies='1' dependenciesKind='maybe'/>"),
         "dependenciesKind = 'maybe'"},
        {OUTPUT2("<Unknown index='2' dependencies='1' dependenciesKind='fixed fixed'/>"),
         "2 words in dependenciesKind for 1 dependencies"},
        {OUTPUT2("<Unknown index='x'/>"), "index = 'x'"},
        {OUTPUT2("<Unknown/>"), "lacks its attribute 'index'"},
        {FMI3("<ModelStructure><Output valueReference='8'/></ModelStructure>"),
         "unknown 8 is not the valueReference"},
        {FMI3(VARIABLES(
             "<Float64 name='y' valueReference='2'/>") "<ModelStructure><InitialUnknown "
                                                       "valueReference='2' dependencies='1'/>"
                                                       "</ModelStructure>"),
         "dependency 1 is not the valueReference"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refused(*state, rows[i].xml, CRD_E_FORMAT, rows[i].part);
    }
}

static void bad_arrays_are_refused(void** state)
{
#define ARRAY(start, dimensions)                                                                   \
    FMI3(VARIABLES("<UInt64 name='n' valueReference='1' causality='structuralParameter'"           \
                   " start='2'/><UInt64 name='p' valueReference='3' start='2'/>"                   \
                   "<Float64 name='a' valueReference='2' " start ">" dimensions "</Float64>"))
    static const struct {
        const char *xml, *part;
    } rows[] = {
        {ARRAY("start='1 2 3'", "<Dimension valueReference='1'/>"), "3 start values, expected 2"},
        {ARRAY("start='1 x'", "<Dimension start='2'/>"), "start = '1 x'"},
        {ARRAY("", "<Dimension/>"), "needs either start or valueReference"},
        {ARRAY("", "<Dimension start='1' valueReference='1'/>"), "needs either start"},
        {ARRAY("", "<Dimension start='many'/>"), "start = 'many', expected a length"},
        {ARRAY("", "<Dimension valueReference='7'/>"), "valueReference 7, which no variable has"},
        {ARRAY("", "<Dimension valueReference='3'/>"), "expected a structural parameter"},
        {ARRAY("", "<Dimension valueReference='2'/>"), "expected a structural parameter"},
        {ARRAY("", "<Dimension start='100000'/><Dimension start='100000'/>"),
         "more than the limit of 100000000 elements"},
        {ARRAY("", "<Dimension start='18446744073709551615'/>"), "more than the limit"},
        {FMI3(VARIABLES("<String name='s' valueReference='1'><Start value='a'/><Start value='b'/>"
                        "</String>")),
         "2 start values, expected 1"},
        {FMI3(VARIABLES("<String name='s' valueReference='1'><Dimension start='90000000'/>"
                        "<Start value='a'/></String>")),
         "more than the limit of 16777216 bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refused(*state, rows[i].xml, CRD_E_FORMAT, rows[i].part);
    }
    char* deep = malloc(4000);
    strcpy(deep, "<fmiModelDescription fmiVersion='3.0' modelName='m' instantiationToken='t'>"
                 "<ModelVariables><Int8 name='x' valueReference='1'>");
    for (int i = 0; i < 33; i++) {
        strcat(deep, "<Dimension start='1'/>");
    }
    strcat(deep, "</Int8></ModelVariables></fmiModelDescription>");
    refused(*state, deep, CRD_E_FORMAT, "'x' has more than 32 dimensions");
    free(deep);
}

static void xml_that_is_not_xml_is_refused_with_its_line(void** state)
{
    refused(*state, "", CRD_E_FORMAT, "t.xml:1: not well-formed XML: no element found");
    refused(*state, "MZ\x90", CRD_E_FORMAT, "not well-formed");
    refused(*state, "<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'>\n\n<a></b>",
            CRD_E_FORMAT, "t.xml:3: not well-formed XML: mismatched tag");
    refused(*state, "<?xml version='1.0' encoding='klingon'?><fmiModelDescription/>", CRD_E_FORMAT,
            "unknown encoding");
    refused(*state, "<fmiModelDescription fmiVersion='2.0' modelName='\xff\xfe' guid='g'/>",
            CRD_E_FORMAT, "not well-formed XML");
    refused(*state, FMI2(VARIABLES(SCALAR("name='x' name='y'", ""))), CRD_E_FORMAT,
            "duplicate attribute");
}

static void document_types_and_entities_are_refused(void** state)
{
    refused(*state,
            "<?xml version='1.0'?>\n<!DOCTYPE lolz [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]>\n"
            "<fmiModelDescription fmiVersion='2.0' modelName='&b;' guid='g'/>",
            CRD_E_FORMAT, "t.xml:2: <!DOCTYPE lolz> is refused");
    refused(*state, "<!DOCTYPE x SYSTEM 'file:///etc/passwd'><fmiModelDescription/>", CRD_E_FORMAT,
            "<!DOCTYPE x> is refused");
    refused(*state, "<fmiModelDescription fmiVersion='2.0' modelName='&b;' guid='g'/>",
            CRD_E_FORMAT, "undefined entity");
}

static void deep_nesting_is_refused(void** state)
{
    char xml[4000] = "<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'>\n";
    for (int i = 0; i < 64; i++) {
        strcat(xml, "<a>\n");
    }
    refused(*state, xml, CRD_E_FORMAT, "t.xml:65: elements are nested more than 64 deep");
}

// Hands out a tag that never ends and counts how much of it was taken.
static crd_status endless_tag(void* user, void* buffer, size_t room, size_t* got)
{
    static const char head[] = "<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'>\n"
                               "<Tool text='";
    size_t* taken = user;
    memset(buffer, 'x', room);
    if (*taken == 0) { memcpy(buffer, head, strlen(head)); }
    *taken += room;
    *got = room;
    return CRD_OK;
}

static void an_endless_attribute_is_refused_after_16_mb(void** state)
{
    fixture* fx = *state;
    size_t taken = 0;
    crd_fmu f = {.ctx = fx->ctx};
    crd_arena_init(&f.arena, fx->ctx);
    crdi_map_init(&f.names, fx->ctx);
    check_status(crdi_description_read(&f, "t.xml", endless_tag, &taken), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx),
                   "t.xml:2: a tag (an attribute, a comment) is longer than the limit of 16777216");
    check(taken < 40 << 20);
    crdi_map_clear(&f.names);
    crd_arena_clear(&f.arena);
}

// White space without end behind the root element's tag.
static crd_status endless_space(void* user, void* buffer, size_t room, size_t* got)
{
    static const char head[] = "<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g'>";
    size_t* taken = user;
    memset(buffer, ' ', room);
    if (*taken == 0) { memcpy(buffer, head, strlen(head)); }
    *taken += room;
    *got = room;
    return CRD_OK;
}

static void an_endless_file_is_refused(void** state)
{
    fixture* fx = *state;
    size_t taken = 0;
    crd_fmu f = {.ctx = fx->ctx};
    crd_arena_init(&f.arena, fx->ctx);
    crdi_map_init(&f.names, fx->ctx);
    check_status(crdi_description_read(&f, "t.xml", endless_space, &taken), CRD_E_FORMAT);
    check_contains(crd_error_text(fx->ctx), "t.xml:1: the file has more than the limit of");
    crdi_map_clear(&f.names);
    crd_arena_clear(&f.arena);
}

static void a_long_attribute_below_the_limit_is_read(void** state)
{
    fixture* fx = *state;
    const size_t size = 5 << 20;
    char* xml = malloc(size + 1000);
    int n = sprintf(xml, "<fmiModelDescription fmiVersion='2.0' modelName='m' guid='g' author='");
    memset(xml + n, 'x', size);
    sprintf(xml + n + size, "'/>");
    crd_fmu* f = parse(fx, xml);
    check_int(strlen(crd_fmu_describe(f)->author), size);
    crd_fmu_close(f);
    free(xml);
}

static void hostile_text_in_messages_is_short_and_printable(void** state)
{
    fixture* fx = *state;
    char xml[1000];
    sprintf(xml, "<fmiModelDescription fmiVersion='&#127;[2J&#10;%0300d' modelName='m'/>", 0);
    refused(fx, xml, CRD_E_FORMAT, "'?[2J?000");
    check(strlen(crd_error_text(fx->ctx)) < 250);
}

// ---- memory ------------------------------------------------------------------------------------

static void every_allocation_may_fail(void** state)
{
    const char* const documents[] = {
        FMI2("<UnitDefinitions><Unit name='u'><BaseUnit m='1'/></Unit></UnitDefinitions>"
             "<TypeDefinitions><SimpleType name='T'><Enumeration><Item name='a' value='1'/>"
             "</Enumeration></SimpleType></TypeDefinitions>"
             "<LogCategories><Category name='c'/></LogCategories>" VARIABLES(
                 SCALAR("name='b' valueReference='2'", "<Real unit='u' start='1'/>") SCALAR(
                     "name='a' valueReference='1'",
                     "<Enumeration declaredType='T'/>")) "<ModelStructure><Outputs><Unknown "
                                                         "index='1' dependencies='2'/></Outputs>"
                                                         "</ModelStructure>"),
        FMI3(VARIABLES(
            "<String name='s' valueReference='7'><Dimension start='2'/>"
            "<Start value='abc'/><Alias name='t'/></String>"
            "<Float64 name='x' valueReference='1'/>") "<ModelStructure><Output valueReference='1' "
                                                      "dependencies='7'/></ModelStructure>"),
    };
    for (size_t k = 0; k < sizeof documents / sizeof *documents; k++) {
        int64_t failures = 0;
        for (int64_t fail_at = 1;; fail_at++) { // 0 is the context itself
            check_allocator a;
            crd_context* ctx = check_context(&a);
            a.fail_at = fail_at;
            crd_fmu* f = NULL;
            const crd_status st =
                crd_fmu_parse(ctx, documents[k], strlen(documents[k]), "t.xml", &f);
            if (st == CRD_OK) {
                crd_fmu_close(f);
            } else {
                check_status(st, CRD_E_MEMORY);
                check_contains(crd_error_text(ctx), "out of memory");
                check(f == NULL);
                failures++;
            }
            crd_context_destroy(ctx);
            check_int(a.live, 0);
            if (st == CRD_OK) { break; }
        }
        check(failures > 10);
    }
}

static void equal_texts_share_memory(void** state)
{
    crd_fmu* f =
        parse(*state, FMI2(VARIABLES(SCALAR("name='a' valueReference='1' description='same'",
                                            "<Real unit='kW' start='0.5'/>")
                                         SCALAR("name='b' valueReference='2' description='same'",
                                                "<Real unit='kW' start='0.5'/>"))));
    const crd_variable *a = variable(f, "a"), *b = variable(f, "b");
    check(a->unit == b->unit && a->start == b->start && a->description == b->description);
    check_int(a->unit_index, b->unit_index);
    crd_fmu_close(f);
}

// Bytes that are in use, and the most there were.
typedef struct meter {
    size_t now, most;
} meter;

static void* metered_realloc(void* user, void* p, size_t size)
{
    meter* m = user;
    m->now -= p ? malloc_usable_size(p) : 0;
    if (size == 0) {
        free(p);
        return NULL;
    }
    p = realloc(p, size);
    m->now += malloc_usable_size(p);
    if (m->now > m->most) { m->most = m->now; }
    return p;
}

static void a_hundred_thousand_variables_take_less_than_40_mb(void** state)
{
    enum { N = 100000 };
    char* xml = malloc(N * 200 + 1000);
    char* at = xml + sprintf(xml, "<fmiModelDescription fmiVersion='3.0' modelName='m' "
                                  "instantiationToken='g'><ModelVariables>");
    for (int i = 0; i < N; i++) {
        at += sprintf(at,
                      "<Float64 name='plant.section%d.signal[%d]' valueReference='%d'"
                      " description='signal %d of the plant' unit='N.m' start='%d'/>\n",
                      i / 1000, i, i, i, i % 10);
    }
    at = stpcpy(at, "</ModelVariables></fmiModelDescription>");
    meter m = {0};
    crd_context_options opt = crd_context_defaults();
    opt.realloc = metered_realloc;
    opt.realloc_user = &m;
    crd_context* ctx = crd_context_create(&opt);
    crd_fmu* f = NULL;
    check_ok(crd_fmu_parse(ctx, xml, (size_t)(at - xml), "t.xml", &f));
    check_int(crd_fmu_describe(f)->variable_count, N);
    check_int(crd_fmu_describe(f)->unit_count, 1);
    if (m.most > 40000000) { fail_msg("%zu bytes at most, expected below 40 MB", m.most); }
    crd_fmu_close(f);
    crd_context_destroy(ctx);
    check_int(m.now, 0);
    free(xml);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fmi2_header_capabilities_and_experiment_are_read),
        TEST(fmi3_capabilities_are_read),
        TEST(fmi2_knows_all_its_types_and_inherits_from_declared_types),
        TEST(fmi3_knows_all_its_types),
        TEST(fmus_that_need_clocks_are_refused),
        TEST(fmi3_types_hand_down_units_and_items),
        TEST(defaults_follow_the_tables_of_the_standards),
        TEST(a_local_variable_that_is_declared_again_has_its_line_in_its_name),
        TEST(odd_combinations_and_missing_starts_are_warned_of_once),
        TEST(written_initial_is_kept),
        TEST(fmi2_aliases_share_a_reference_within_a_base_type),
        TEST(fmi1_descriptions_are_read),
        TEST(fmi1_slaves_have_an_implementation),
        TEST(fmi1_mistakes_are_named),
        TEST(fmi3_alias_children_become_variables),
        TEST(sizes_of_arrays_follow_structural_parameters),
        TEST(fmi2_dependencies_count_from_one),
        TEST(fmi3_dependencies_are_value_references),
        TEST(many_unsorted_references_are_all_found),
        TEST(other_versions_are_refused_with_a_sentence),
        TEST(missing_attributes_are_named),
        TEST(bad_values_are_named_with_their_attribute),
        TEST(bad_model_structures_are_refused),
        TEST(bad_arrays_are_refused),
        TEST(xml_that_is_not_xml_is_refused_with_its_line),
        TEST(document_types_and_entities_are_refused),
        TEST(deep_nesting_is_refused),
        TEST(an_endless_attribute_is_refused_after_16_mb),
        TEST(an_endless_file_is_refused),
        TEST(a_long_attribute_below_the_limit_is_read),
        TEST(hostile_text_in_messages_is_short_and_printable),
        TEST(every_allocation_may_fail),
        TEST(equal_texts_share_memory),
        TEST(a_hundred_thousand_variables_take_less_than_40_mb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
