// Systems written as packages: the text of the files, and what the reader makes of them.
#include "cardan/system.h"
#include "check.h"
#include "shared/archive.h"
#include "shared/xml.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER TEST_BUILD_DIR "/test_ssp_write"
#define PACKAGE FOLDER "/out.ssp"
#define SSD "http://ssp-standard.org/SSP1/SystemStructureDescription"
#define SSC "http://ssp-standard.org/SSP1/SystemStructureCommon"
#define SSV "http://ssp-standard.org/SSP1/SystemStructureParameterValues"

typedef struct fixture {
    crd_context* ctx;
    char said[2000]; // warnings
    int warnings;
    crdi_xml *ssd, *ssv; // of the last package
} fixture;

static void listen(void* user, crd_level level, const char* text)
{
    fixture* fx = user;
    if (level != CRD_LOG_WARNING) { return; }
    fx->warnings++;
    snprintf(fx->said, sizeof fx->said, "%s", text);
}

static void put_file(const char* path, const char* text)
{
    FILE* f = fopen(path, "wb");
    check(f != NULL);
    fputs(text, f);
    fclose(f);
}

static int set_up(void** state)
{
    fixture* fx = calloc(1, sizeof *fx);
    crd_context_options opt = crd_context_defaults();
    opt.log = listen;
    opt.log_user = fx;
    fx->ctx = crd_context_create(&opt);
    *state = fx;
    mkdir(FOLDER, 0777);
    mkdir(FOLDER "/other", 0777);
    mkdir(FOLDER "/open.fmu", 0777);
    mkdir(FOLDER "/open.fmu/binaries", 0777);
    put_file(FOLDER "/a.fmu", "an FMU");
    put_file(FOLDER "/b.fmu", "another");
    put_file(FOLDER "/other/A.fmu", "with the same name but for a capital");
    put_file(FOLDER "/open.fmu/modelDescription.xml", "<x/>");
    put_file(FOLDER "/open.fmu/binaries/a b.so", "code");
    put_file(FOLDER "/run 1.csv", "time,x\n0,1\n1,2\n");
    unlink(PACKAGE);
    return fx->ctx ? 0 : -1;
}

static int tear_down(void** state)
{
    fixture* fx = *state;
    crdi_xml_destroy(fx->ssd);
    crdi_xml_destroy(fx->ssv);
    crd_context_destroy(fx->ctx);
    free(fx);
    return 0;
}

// ---- what the units look like ------------------------------------------------------------------

static const crd_ssp_item gears[] = {{"neutral", 0}, {"first", 1}, {"reverse", -1}};
static const uint64_t three[] = {3};

static crd_status connectors(void* user, int unit, const crd_ssp_connector** out, int* count)
{
    (void)unit;
    const crd_system* s = user;
    static const crd_ssp_connector all[] = {
        {.name = "u", .unit = "N", .causality = CRD_INPUT},
        {.name = "y", .unit = "m/s", .causality = CRD_OUTPUT},
        {.name = "torque",
         .unit = "kN.m",
         .causality = CRD_OUTPUT,
         .has_dimension = true,
         .dimension = {.kg = 1, .m = 2, .s = -2, .factor = 1000}},
        {.name = "load", .unit = "N.m", .causality = CRD_INPUT},
        {.name = "T", .unit = "degC", .causality = CRD_INPUT},
        {.name = "m", .unit = "kg", .causality = CRD_PARAMETER},
        {.name = "n", .unit = "", .type = CRD_INT32, .causality = CRD_PARAMETER},
        {.name = "on", .unit = "", .type = CRD_BOOLEAN, .causality = CRD_INPUT},
        {.name = "name", .unit = "", .type = CRD_STRING, .causality = CRD_PARAMETER},
        {.name = "gear",
         .unit = "",
         .type = CRD_ENUMERATION,
         .causality = CRD_INPUT,
         .enumeration = "Gear",
         .items = gears,
         .item_count = 3},
        {.name = "mode",
         .unit = "",
         .type = CRD_ENUMERATION,
         .causality = CRD_OUTPUT,
         .enumeration = "Gear",
         .items = gears,
         .item_count = 2},
        {.name = "blob", .unit = "", .type = CRD_BINARY, .causality = CRD_PARAMETER},
        {.name = "k", .unit = "", .type = CRD_UINT64, .causality = CRD_STRUCTURAL_PARAMETER},
        {.name = "c", .unit = "N/m", .causality = CRD_PARAMETER, .sizes = three, .rank = 1},
        {.name = "p", .unit = "N/m", .causality = CRD_INPUT, .sizes = three, .rank = 1},
        {.name = "w", .unit = "N/m", .causality = CRD_OUTPUT, .sizes = three, .rank = 1},
        {.name = "x[1]", .unit = "", .causality = CRD_PARAMETER},
        {.name = "x0", .unit = "m", .causality = CRD_LOCAL},
        {.name = "count", .unit = "", .type = CRD_INT32, .causality = CRD_OUTPUT},
        {.name = "warmer", .unit = "degC", .causality = CRD_INPUT, .relative = true},
        {.name = "v", .unit = "m/s", .causality = CRD_INPUT},
        {.name = "fast", .unit = "km/h", .causality = CRD_INPUT},
        {.name = "i", .unit = "", .type = CRD_INT32, .causality = CRD_INPUT},
    };
    *out = all;
    *count = s->units[unit].source == CRD_UNIT_FMU ? (int)(sizeof all / sizeof *all) : 0;
    return CRD_OK;
}

static crd_system* parse(fixture* fx, const char* text)
{
    crd_system* s = NULL;
    if (crd_system_parse(fx->ctx, text, strlen(text), FOLDER "/sys.yaml", &s) != CRD_OK) {
        fail_msg("%s", crd_error_text(fx->ctx));
    }
    return s;
}

static crd_status write_to(const crd_system* s, const char* path, int version)
{
    const crd_ssp_source src = {(void*)(uintptr_t)s, connectors};
    const crd_ssp_options opt = {.version = version};
    return crd_ssp_write(s, path, &src, &opt);
}

static char* entry_text(fixture* fx, const char* package, const char* name, size_t* length)
{
    static const crdi_archive_limits limits = {.max_unpacked = 1 << 24, .max_entries = 1000};
    crdi_archive* a = NULL;
    check_ok(crdi_archive_open(fx->ctx, package, &limits, &a));
    const int32_t index = crdi_archive_find(a, name);
    char* text = NULL;
    size_t n = 0;
    if (index >= 0) { check_ok(crdi_archive_read(a, index, 1 << 24, &text, &n)); }
    crdi_archive_close(a);
    if (length) { *length = n; }
    return text;
}

static crdi_xml* document(fixture* fx, const char* name)
{
    size_t n = 0;
    char* text = entry_text(fx, PACKAGE, name, &n);
    crdi_xml* x = NULL;
    if (text && crdi_xml_parse(fx->ctx, text, n, name, &x) != CRD_OK) {
        fail_msg("%s\n%s", crd_error_text(fx->ctx), text);
    }
    crd_free(fx->ctx, text);
    return x;
}

// Writes and opens the two documents.
static void pack(fixture* fx, const crd_system* s, int version)
{
    if (write_to(s, PACKAGE, version) != CRD_OK) { fail_msg("%s", crd_error_text(fx->ctx)); }
    crdi_xml_destroy(fx->ssd);
    crdi_xml_destroy(fx->ssv);
    fx->ssd = document(fx, "SystemStructure.ssd");
    fx->ssv = document(fx, "resources/sys.ssv");
    check(fx->ssd != NULL);
}

// The n-th element of this name and with this attribute below e; NULL.
static const crdi_xml_element* below(const crdi_xml_element* e, const char* name,
                                     const char* attribute, const char* value)
{
    for (const crdi_xml_element* c = e->first; c; c = c->next) {
        const char* is = attribute ? crdi_xml_get(c, attribute) : NULL;
        if (strcmp(c->name, name) == 0 && (!attribute || (is && strcmp(is, value) == 0))) {
            return c;
        }
        const crdi_xml_element* inner = below(c, name, attribute, value);
        if (inner) { return inner; }
    }
    return NULL;
}

static const char* value_of(const crdi_xml_element* e, const char* name)
{
    const char* value = e ? crdi_xml_get(e, name) : NULL;
    return value ? value : "(none)";
}

static const crdi_xml_element* parameter(fixture* fx, const char* name, const char* type)
{
    const crdi_xml_element* p = below(fx->ssv->root, "Parameter", "name", name);
    if (!p) { fail_msg("no parameter %s", name); }
    check_text(p->first->name, type);
    check_text(p->first->space, SSV);
    return p->first;
}

static const char* annotation(fixture* fx)
{
    const crdi_xml_element* a = below(fx->ssd->root, "Annotation", "type", CRD_SSP_ANNOTATION);
    if (!a) { return ""; }
    check_text(a->first->space, CRD_SSP_SPACE);
    check_text(a->first->name, "yaml");
    return a->first->text;
}

static crd_system* load(fixture* fx, const char* path)
{
    crd_system* s = NULL;
    if (crd_ssp_load(fx->ctx, path, NULL, &s) != CRD_OK) {
        fail_msg("%s", crd_error_text(fx->ctx));
    }
    return s;
}

// ---- the files ---------------------------------------------------------------------------------

static void components_connectors_and_units_are_written(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(fx, "cardan: 1\n"
                              "title: a & b\n"
                              "units:\n"
                              "  one: { fmu: a.fmu, interface: model-exchange }\n"
                              "  two: { fmu: b.fmu, interface: co-simulation }\n"
                              "  three: { fmu: a.fmu }\n"
                              "run: { start: 1, stop: 2.5 }\n");
    pack(fx, s, 1);
    const crdi_xml_element* root = fx->ssd->root;
    check(crdi_xml_is(root, SSD, "SystemStructureDescription"));
    check_text(value_of(root, "version"), "1.0");
    check_text(value_of(root, "name"), "a & b");
    check_contains(value_of(root, "generationTool"), "Cardan ");
    check(crdi_xml_is(root->first, SSD, "System"));
    static const char* const order[] = {"System", "Enumerations", "Units", "DefaultExperiment"};
    const crdi_xml_element* e = root->first;
    for (int i = 0; i < 4; i++, e = e->next) {
        check(e != NULL);
        check_text(e->name, order[i]);
    }
    check(e == NULL); // no annotation: there was nothing to say
    const crdi_xml_element* one = below(root, "Component", "name", "one");
    check_text(value_of(one, "source"), "resources/a.fmu");
    check_text(value_of(one, "type"), "application/x-fmu-sharedlibrary");
    check_text(value_of(one, "implementation"), "ModelExchange");
    const crdi_xml_element* two = below(root, "Component", "name", "two");
    check_text(value_of(two, "implementation"), "CoSimulation");
    const crdi_xml_element* three_ = below(root, "Component", "name", "three");
    check_text(value_of(three_, "source"), "resources/a.fmu"); // one file for two
    check_text(value_of(three_, "implementation"), "(none)");
    static const struct {
        const char *name, *kind, *type, *attribute, *value;
    } rows[] = {
        {"u", "input", "Real", "unit", "N"},
        {"torque", "output", "Real", "unit", "kN.m"},
        {"m", "parameter", "Real", "unit", "kg"},
        {"n", "parameter", "Integer", "unit", "(none)"},
        {"on", "input", "Boolean", "unit", "(none)"},
        {"name", "parameter", "String", "unit", "(none)"},
        {"gear", "input", "Enumeration", "name", "Gear"},
        {"mode", "output", "Enumeration", "name", "Gear_2"}, // other items, so another type
        {"blob", "parameter", "Binary", "unit", "(none)"},
        {"k", "parameter", "Integer", "unit", "(none)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const crdi_xml_element* c = below(one, "Connector", "name", rows[i].name);
        check(c != NULL);
        check_text(value_of(c, "kind"), rows[i].kind);
        check_text(c->first->name, rows[i].type);
        check_text(c->first->space, SSC);
        check_text(value_of(c->first, rows[i].attribute), rows[i].value);
    }
    check(below(one, "Connector", "name", "x0") == NULL); // a local variable
    const crdi_xml_element* unit = below(root, "Unit", "name", "kN.m");
    check_text(value_of(unit->first, "factor"), "1000");
    check_text(value_of(unit->first, "kg"), "1");
    check_text(value_of(unit->first, "s"), "-2");
    check_text(value_of(unit->first, "A"), "(none)");
    check_text(value_of(below(root, "Unit", "name", "degC")->first, "offset"), "273.15");
    const crdi_xml_element* gear = below(root, "Enumeration", "name", "Gear");
    check(gear != NULL);
    const crdi_xml_element* item = below(root, "Item", "name", "reverse");
    check_text(value_of(item, "value"), "-1");
    const crdi_xml_element* experiment = below(root, "DefaultExperiment", NULL, NULL);
    check_text(value_of(experiment, "startTime"), "1");
    check_text(value_of(experiment, "stopTime"), "2.5");
    check_int(fx->warnings, 0);
    crd_system_destroy(s);
}

static void version_two_has_the_types_of_fmi_3(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(fx, "cardan: 1\nunits: { one: { fmu: a.fmu, parameters: { m: 1 } } }\n");
    pack(fx, s, 2);
    check_text(value_of(fx->ssd->root, "version"), "2.0");
    check_text(value_of(fx->ssv->root, "version"), "2.0");
    const crdi_xml_element* k = below(fx->ssd->root, "Connector", "name", "k");
    check_text(value_of(k, "kind"), "structuralParameter");
    check_text(k->first->name, "UInt64");
    const crdi_xml_element* c = below(fx->ssd->root, "Connector", "name", "c");
    check_text(c->first->next->name, "Dimension");
    check_text(value_of(c->first->next, "size"), "3");
    crd_system_destroy(s);

    // arrays and their elements
    s = parse(fx, "cardan: 1\n"
                  "units: { one: { fmu: a.fmu, parameters: { c: [1, 2, 3], k: 5000000000 } } }\n"
                  "connections: [ \"one.w[3] -> one.p[2]\" ]\n");
    pack(fx, s, 2);
    const crdi_xml_element* list = parameter(fx, "one.c", "Real");
    check_text(value_of(list, "value"), "1 2 3");
    check_text(value_of(list->next, "size"), "3");
    check_text(value_of(parameter(fx, "one.k", "UInt64"), "value"), "5000000000");
    check_text(annotation(fx), "");
    const crdi_xml_element* link = below(fx->ssd->root, "Connection", NULL, NULL);
    check_text(value_of(link, "startConnector"), "w");
    check_text(value_of(link, "startIndices"), "3");
    check_text(value_of(link, "endConnector"), "p");
    check_text(value_of(link, "endIndices"), "2");
    check(below(fx->ssd->root, "Connector", "name", "p[2]") == NULL);
    crd_system* t = NULL;
    if (crd_ssp_load(fx->ctx, PACKAGE, NULL, &t) != CRD_OK) {
        fail_msg("%s", crd_error_text(fx->ctx));
    }
    check_text(t->connections[0].from, "w[3]");
    check_text(t->connections[0].to, "p[2]");
    check_int(t->units[0].parameter_count, 2);
    check_text(t->units[0].parameters[0].text, "1 2 3");
    crd_system_destroy(t);
    pack(fx, s, 1); // in 1.0 an element is a connector
    link = below(fx->ssd->root, "Connection", NULL, NULL);
    check_text(value_of(link, "endConnector"), "p[2]");
    check(below(fx->ssd->root, "Connector", "name", "p[2]") != NULL);
    check_ok(crd_ssp_load(fx->ctx, PACKAGE, NULL, &t));
    check_text(t->connections[0].to, "p[2]");
    crd_system_destroy(t);

    check_status(write_to(s, PACKAGE, 3), CRD_E_RANGE);
    check_contains(crd_error_text(fx->ctx), "SSP version 3, expected 1 or 2");
    crd_system_destroy(s);
}

static void connections_have_their_changes(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(
        fx, "cardan: 1\n"
            "units: { one: { fmu: a.fmu }, two: { fmu: b.fmu } }\n"
            "connections:\n"
            "  - one.y -> two.u\n"
            "  - { from: one.torque, to: two.load, gain: 2, offset: -1.5, convert_units: false }\n"
            "  - { from: two.on, to: one.on, map: { true: false, false: true } }\n"
            "  - { from: one.count, to: two.n, map: { 1: 2, -3: 7 } }\n"
            "  - { from: one.mode, to: two.gear, map: { first: reverse } }\n");
    pack(fx, s, 1);
    const crdi_xml_element* root = fx->ssd->root;
    const crdi_xml_element* plain = below(root, "Connection", "endConnector", "u");
    check_text(value_of(plain, "startElement"), "one");
    check_text(value_of(plain, "startConnector"), "y");
    check_text(value_of(plain, "endElement"), "two");
    check_text(value_of(plain, "suppressUnitConversion"), "(none)");
    check(plain->first == NULL);
    const crdi_xml_element* linear = below(root, "Connection", "endConnector", "load");
    check_text(value_of(linear, "suppressUnitConversion"), "true");
    check(crdi_xml_is(linear->first, SSC, "LinearTransformation"));
    check_text(value_of(linear->first, "factor"), "2");
    check_text(value_of(linear->first, "offset"), "-1.5");
    const crdi_xml_element* truth = below(root, "Connection", "endConnector", "on")->first;
    check(crdi_xml_is(truth, SSC, "BooleanMappingTransformation"));
    check_text(value_of(truth->first, "source"), "true");
    check_text(value_of(truth->first, "target"), "false");
    const crdi_xml_element* whole = below(root, "Connection", "endConnector", "n")->first;
    check(crdi_xml_is(whole, SSC, "IntegerMappingTransformation"));
    check_text(value_of(whole->first->next, "source"), "-3");
    const crdi_xml_element* items = below(root, "Connection", "endConnector", "gear")->first;
    check(crdi_xml_is(items, SSC, "EnumerationMappingTransformation"));
    check(crdi_xml_is(items->first, SSC, "MapEntry"));
    crd_system_destroy(s);
}

static void start_values_become_a_parameter_set(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(fx, "cardan: 1\n"
                              "units:\n"
                              "  one:\n"
                              "    fmu: a.fmu\n"
                              "    parameters:\n"
                              "      m: 5 g\n"
                              "      u: 1e-3\n"
                              "      n: 7\n"
                              "      \"on\": true\n"
                              "      name: \"a <b>\\n\\\"c\\\"\"\n"
                              "      gear: 1\n"
                              "      blob: 00fF\n"
                              "      c: [1, 2, 3]\n"
                              "      \"x[1]\": 4\n"
                              "      x0: 2 mm\n"
                              "      free: 3 mm\n"
                              "      strange: 3 blobs\n"
                              "      k: 5000000000\n"
                              "      unknown: 3\n");
    check_ok(crd_system_set(s, 0, "n", "8", (crd_place){"--set", 0}));
    pack(fx, s, 1);
    const crdi_xml_element* binding = below(fx->ssd->root, "ParameterBinding", NULL, NULL);
    check_text(value_of(binding, "source"), "resources/sys.ssv");
    check_text(binding->parent->parent->name, "System");
    check(crdi_xml_is(fx->ssv->root, SSV, "ParameterSet"));
    const crdi_xml_element* m = parameter(fx, "one.m", "Real");
    check_text(value_of(m, "value"), "0.005"); // not every tool converts
    check_text(value_of(m, "unit"), "kg");
    const crdi_xml_element* kg = below(fx->ssv->root, "Unit", "name", "kg");
    check_text(value_of(kg->first, "kg"), "1");
    check_text(value_of(parameter(fx, "one.u", "Real"), "value"), "0.001");
    check_text(value_of(parameter(fx, "one.n", "Integer"), "value"), "8"); // the last one wins
    check_text(value_of(parameter(fx, "one.on", "Boolean"), "value"), "true");
    check_text(value_of(parameter(fx, "one.name", "String"), "value"), "a <b>\n\"c\"");
    check_text(value_of(parameter(fx, "one.gear", "Enumeration"), "value"), "first");
    check_text(value_of(parameter(fx, "one.blob", "Binary"), "value"), "00fF");
    check_text(value_of(parameter(fx, "one.x[1]", "Real"), "value"), "4");
    check_text(value_of(parameter(fx, "one.x0", "Real"), "value"), "0.002");
    const crdi_xml_element* free = parameter(fx, "one.free", "Real"); // nothing to convert into
    check_text(value_of(free, "value"), "3");
    check_text(value_of(free, "unit"), "mm");
    const crdi_xml_element* mm = below(fx->ssv->root, "Unit", "name", "mm");
    check_text(value_of(mm->first, "factor"), "0.001");
    check_text(value_of(parameter(fx, "one.unknown", "Real"), "value"), "3");
    // no arrays and no 64 bits in SSP 1.0
    check(below(fx->ssv->root, "Parameter", "name", "one.c") == NULL);
    check_contains(annotation(fx),
                   "parameters: { c: \"1 2 3\", strange: \"3 blobs\", k: 5000000000 }");
    crd_system_destroy(s);
}

// As a parameter mapping leaves them: the package holds what comes out.
static void mapped_start_values_are_worked_out(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(fx, "cardan: 1\nunits: { one: { fmu: a.fmu } }\n");
    static const crd_dimension gram = {.kg = 1, .factor = 0.001};
    static const crd_map_entry items[] = {{"low", "first"}, {"2", "reverse"}};
    static const crd_transformation scaled = {.unit = "gramme",
                                              .dimension = &gram,
                                              .gain = 3,
                                              .offset = 1,
                                              .has_transformation = true,
                                              .convert_units = true};
    static const crd_transformation as_is = {
        .unit = "gramme", .dimension = &gram, .gain = 3, .has_transformation = true};
    static const crd_transformation unit = {
        .unit = "gramme", .dimension = &gram, .gain = 1, .convert_units = true};
    static const crd_transformation map = {
        .unit = "", .gain = 1, .convert_units = true, .map = items, .map_count = 2};
    static const crd_setting settings[] = {{.variable = "m", .text = "2000", .via = &scaled},
                                           {.variable = "u", .text = "7", .via = &as_is},
                                           {.variable = "unknown", .text = "8", .via = &unit},
                                           {.variable = "gear", .text = "low", .via = &map},
                                           {.variable = "c", .text = "1 2 3", .via = &as_is},
                                           {.variable = "n", .text = "5", .via = &map}};
    s->units[0].parameters = settings;
    s->units[0].parameter_count = 6;
    pack(fx, s, 1);
    check_text(value_of(parameter(fx, "one.m", "Real"), "value"), "7"); // 2 kg times 3 and 1
    check_text(value_of(parameter(fx, "one.u", "Real"), "value"), "21");
    const crdi_xml_element* free = parameter(fx, "one.unknown", "Real");
    check_text(value_of(free, "value"), "8");
    check_text(value_of(free, "unit"), "gramme");
    check_text(value_of(below(fx->ssv->root, "Unit", "name", "gramme")->first, "factor"), "0.001");
    check_text(value_of(parameter(fx, "one.gear", "Enumeration"), "value"), "first");
    check_text(value_of(parameter(fx, "one.n", "Integer"), "value"), "5");
    check_contains(annotation(fx), "parameters: { c: \"3 6 9\" }");
    crd_system_destroy(s);
}

static void differences_have_units_without_a_zero_point(void** state)
{
    fixture* fx = *state;
    crd_system* s =
        parse(fx, "cardan: 1\nunits: { one: { fmu: a.fmu, parameters: { warmer: 5 degC, T: "
                  "300 K } } }\n");
    pack(fx, s, 1);
    check_text(value_of(parameter(fx, "one.warmer", "Real"), "value"), "5");
    const crdi_xml_element* k = parameter(fx, "one.T", "Real");
    check_near(atof(value_of(k, "value")), 300 - 273.15, 1e-12);
    check_text(value_of(k, "unit"), "degC");
    const crdi_xml_element* c = below(fx->ssd->root, "Connector", "name", "warmer");
    const crdi_xml_element* unit = below(fx->ssd->root, "Unit", "name", value_of(c->first, "unit"));
    check_text(value_of(unit->first, "offset"), "(none)");
    crd_system_destroy(s);
}

static void what_ssp_has_no_word_for_is_in_the_annotation(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(
        fx,
        "cardan: 1\n"
        "units:\n"
        "  one: { fmu: a.fmu, step: 2 ms, logging: true, solver: { method: rk4, step: 1 ms } }\n"
        "  push: { signal: { shape: sine, amplitude: 2, frequency: 1 Hz, unit: N } }\n"
        "  load:\n"
        "    signals:\n"
        "      a: { shape: table, times: [0, 1], values: [2, 3], interpolation: hold }\n"
        "      b: { shape: prbs, duration: 0.1, seed: 7 }\n"
        "  rec:\n"
        "    replay: run 1.csv\n"
        "    columns: { x: { unit: km/h }, \"g*\": { interpolation: hold } }\n"
        "    time_offset: -1\n"
        "    repeat: true\n"
        "connections:\n"
        "  - { from: push.y, to: one.u, predict: quadratic }\n"
        "  - rec.x -> one.T\n"
        "run:\n"
        "  step: 1 ms\n"
        "  stop: 1\n"
        "  tolerance: 1e-5\n"
        "  scheme: { gauss-seidel: [push, { jacobi: [load, rec] }, one] }\n"
        "  threads: 2\n"
        "  initialization: { iterations: 9 }\n"
        "  predict: linear\n"
        "results: { file: out.mat, variables: [\"one.*\"], interval: 10 ms, mat: 7.3 }\n");
    pack(fx, s, 1);
    check_int(fx->warnings, 1);
    check_contains(fx->said, "3 units are no FMUs (push, ...): only Cardan runs");
    check_text(annotation(fx),
               "\nunits:\n"
               "  one: { step: 0.002, solver: { method: rk4, step: 0.001 }, logging: true }\n"
               "  push: { signal: { shape: sine, unit: N, amplitude: 2, frequency: 1 } }\n"
               "  load: { signals: { a: { shape: table, times: [0, 1], values: [2, 3], "
               "interpolation: hold }, b: { shape: prbs, duration: 0.1, order: 9, seed: 7 } } }\n"
               "  rec: { replay: \"resources/run_1.csv\", columns: { x: { unit: \"km/h\" }, "
               "\"g*\": { interpolation: hold } }, time_offset: -1, repeat: true }\n"
               "run: { step: 0.001, tolerance: 1e-05, scheme: { gauss-seidel: [push, { jacobi: "
               "[load, rec] }, one] }, predict: linear, threads: 2, initialization: "
               "{ iterations: 9, tolerance: 1e-10 } }\n"
               "connections:\n"
               "  - { from: push.y, to: one.u, predict: quadratic }\n"
               "results: { variables: [\"one.*\"], interval: 0.01, mat: 7.3 }\n");
    const crdi_xml_element* rec = below(fx->ssd->root, "Component", "name", "rec");
    check_text(value_of(rec, "type"), CRD_SSP_REPLAY);
    check_text(value_of(rec, "source"), "resources/run_1.csv");
    check_text(value_of(below(rec, "Connector", "name", "x"), "kind"), "output");
    check_text(value_of(below(fx->ssd->root, "Component", "name", "push"), "type"), CRD_SSP_SIGNAL);
    char* csv = entry_text(fx, PACKAGE, "resources/run_1.csv", NULL);
    check_text(csv, "time,x\n0,1\n1,2\n");
    crd_free(fx->ctx, csv);
    crd_system_destroy(s);
}

// ---- nested systems ----------------------------------------------------------------------------

static int add_unit(crd_system* s, const char* name)
{
    int index = -1;
    crd_unit_spec unit = crd_unit_spec_defaults();
    unit.name = name;
    unit.path = FOLDER "/a.fmu";
    check_ok(crd_system_add_unit(s, &unit, &index));
    return index;
}

static crd_connection_spec* join(crd_system* s, int from, const char* y, int to, const char* u)
{
    crd_connection_spec c = crd_connection_spec_defaults();
    c.from_unit = from;
    c.from = y;
    c.to_unit = to;
    c.to = u;
    check_ok(crd_system_add_connection(s, &c));
    return &s->connections[s->connection_count - 1];
}

static const crdi_xml_element* connection_in(const crdi_xml_element* system, const char* start,
                                             const char* y, const char* end, const char* u)
{
    const crdi_xml_element* list = crdi_xml_child(system, SSD, "Connections");
    for (const crdi_xml_element* c = list ? list->first : NULL; c; c = c->next) {
        if (strcmp(value_of(c, "startElement"), start) == 0 &&
            strcmp(value_of(c, "startConnector"), y) == 0 &&
            strcmp(value_of(c, "endElement"), end) == 0 &&
            strcmp(value_of(c, "endConnector"), u) == 0) {
            return c;
        }
    }
    fail_msg("no connection %s.%s -> %s.%s in %s", start, y, end, u, value_of(system, "name"));
    return NULL;
}

static void dots_in_names_are_systems_again(void** state)
{
    fixture* fx = *state;
    crd_system* s = NULL;
    check_ok(crd_system_create(fx->ctx, &s));
    s->title = "sys";
    const int motor = add_unit(s, "drive.front.motor"), body = add_unit(s, "body");
    const int gear = add_unit(s, "drive.gear"), rear = add_unit(s, "rear.axle.motor");
    join(s, motor, "torque", body, "load");
    join(s, motor, "torque", gear, "load"); // leaves `front` by the same connector
    join(s, motor, "torque", rear, "load");
    join(s, body, "y", motor, "u");
    check_ok(crd_system_set(s, motor, "m", "3", (crd_place){"", 0}));
    pack(fx, s, 1);
    const crdi_xml_element* root = fx->ssd->root->first;
    const crdi_xml_element* drive = below(root, "System", "name", "drive");
    const crdi_xml_element* front = below(drive, "System", "name", "front");
    check(below(front, "Component", "name", "motor") != NULL);
    check(crdi_xml_child(root, SSD, "Connectors") == NULL);
    const crdi_xml_element* out = crdi_xml_child(front, SSD, "Connectors")->first;
    check_text(value_of(out, "name"), "motor_torque");
    check_text(value_of(out, "kind"), "output");
    check_text(value_of(out->first, "unit"), "kN.m"); // nothing is converted on the way
    check_text(value_of(out->next, "name"), "motor_u");
    check_text(value_of(out->next, "kind"), "input");
    check(out->next->next == NULL);
    const char* none = "(none)";
    connection_in(front, "motor", "torque", none, "motor_torque");
    connection_in(drive, "front", "motor_torque", none, "front_motor_torque");
    connection_in(drive, "front", "motor_torque", "gear", "load");
    connection_in(root, "drive", "front_motor_torque", "body", "load");
    connection_in(root, "drive", "front_motor_torque", "rear", "axle_motor_load");
    const crdi_xml_element* back = below(root, "System", "name", "rear");
    connection_in(back, none, "axle_motor_load", "axle", "motor_load");
    connection_in(below(back, "System", "name", "axle"), none, "motor_load", "motor", "load");
    connection_in(root, "body", "y", "drive", "front_motor_u");
    connection_in(front, none, "motor_u", "motor", "u");
    check_text(value_of(parameter(fx, "drive.front.motor.m", "Real"), "value"), "3");
    crd_system_destroy(s);
}

static void changes_on_the_way_stay_where_they_fit(void** state)
{
    fixture* fx = *state;
    crd_system* s = NULL;
    check_ok(crd_system_create(fx->ctx, &s));
    const int motor = add_unit(s, "drive.motor"), body = add_unit(s, "body");
    static const crd_dimension newton_mm = {.kg = 1, .m = 2, .s = -2, .factor = 0.001};
    static const crd_transformation via[] = {
        {.unit = "N.mm",
         .dimension = &newton_mm,
         .gain = 3,
         .has_transformation = true,
         .convert_units = true},
        {.unit = "", .gain = 5, .offset = 1, .has_transformation = true}};
    crd_connection_spec* c = join(s, motor, "torque", body, "load");
    c->via = via;
    c->via_count = 1;
    c->gain = 2;
    c->has_transformation = true;
    s->title = "sys";
    pack(fx, s, 1);
    const crdi_xml_element* root = fx->ssd->root->first;
    const crdi_xml_element* drive = below(root, "System", "name", "drive");
    const crdi_xml_element* hop = crdi_xml_child(drive, SSD, "Connectors")->first;
    check_text(value_of(hop->first, "unit"), "N.mm");
    const crdi_xml_element* inner =
        connection_in(drive, "motor", "torque", "(none)", "motor_torque");
    check_text(value_of(inner->first, "factor"), "3");
    const crdi_xml_element* outer = connection_in(root, "drive", "motor_torque", "body", "load");
    check_text(value_of(outer->first, "factor"), "2");

    // One change more than connectors: kN.m -> N.mm, times 3, then 5x + 1 without a word about the
    // unit, which is still N.mm, -> N.m, times 2.
    s->connections[0].via_count = 2;
    pack(fx, s, 1);
    root = fx->ssd->root->first;
    outer = connection_in(root, "drive", "motor_torque", "body", "load");
    check_text(value_of(outer, "suppressUnitConversion"), "true");
    check_text(value_of(outer->first, "factor"), "30000");
    check_text(value_of(outer->first, "offset"), "0.002");

    static const crd_map_entry turn[] = {{"1", "2"}, {"3", "4"}};
    static const crd_map_entry next[] = {{"2", "7"}, {"5", "6"}};
    static const crd_transformation maps[] = {{.unit = "", .map = turn, .map_count = 2},
                                              {.unit = "", .map = next, .map_count = 2}};
    c = &s->connections[0];
    c->via = maps;
    c->has_transformation = false;
    c->gain = 1;
    pack(fx, s, 1);
    outer = connection_in(fx->ssd->root->first, "drive", "motor_torque", "body", "load");
    const crdi_xml_element* entry = outer->first->first;
    static const char* const pairs[][2] = {{"1", "7"}, {"3", "4"}, {"2", "7"}, {"5", "6"}};
    for (int i = 0; i < 4; i++, entry = entry->next) {
        check_text(value_of(entry, "source"), pairs[i][0]);
        check_text(value_of(entry, "target"), pairs[i][1]);
    }
    c->gain = 2;
    c->has_transformation = true;
    check_status(write_to(s, PACKAGE, 1), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(fx->ctx), "drive.motor.torque -> body.load");
    crd_system_destroy(s);
}

static void names_that_cannot_nest_stay_flat_and_differ(void** state)
{
    fixture* fx = *state;
    crd_system* s = NULL;
    check_ok(crd_system_create(fx->ctx, &s));
    const int drive = add_unit(s, "drive"), motor = add_unit(s, "drive.motor");
    add_unit(s, "drive_motor");
    add_unit(s, "a..b");
    add_unit(s, "odd <\"&'> name");
    add_unit(s, "1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.deep");
    join(s, drive, "y", motor, "v");
    s->title = "sys";
    check_ok(crd_system_set(s, drive, "m", "1", (crd_place){"", 0}));
    s->units[4].step = 0.5;
    pack(fx, s, 1);
    crd_system* t = load(fx, PACKAGE);
    check_near(t->units[crd_system_find(t, "odd <\"&'> name")].step, 0.5, 0);
    crd_system_destroy(t);
    const crdi_xml_element* root = fx->ssd->root->first;
    check(below(root, "System", NULL, NULL) == NULL);
    check(below(root, "Component", "name", "drive") != NULL);
    check(below(root, "Component", "name", "drive_motor_2") != NULL);
    check(below(root, "Component", "name", "a__b") != NULL);
    connection_in(root, "drive", "y", "drive_motor_2", "v");
    crd_system_destroy(s);
}

// ---- there and back ----------------------------------------------------------------------------

static const crd_setting* setting(const crd_system* s, const char* unit, const char* variable)
{
    const crd_unit_spec* u = &s->units[crd_system_find(s, unit)];
    for (int i = u->parameter_count; i-- > 0;) {
        if (strcmp(u->parameters[i].variable, variable) == 0) { return &u->parameters[i]; }
    }
    fail_msg("no start value of %s.%s", unit, variable);
    return NULL;
}

static const crd_connection_spec* driver_of(const crd_system* s, const char* unit, const char* to)
{
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        if (c->to_unit == crd_system_find(s, unit) && strcmp(c->to, to) == 0) { return c; }
    }
    fail_msg("nothing drives %s.%s", unit, to);
    return NULL;
}

static void couplings_survive_the_package(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(fx, "cardan: 1\n"
                              "units:\n"
                              "  one: { fmu: a.fmu }\n"
                              "  push: { signals: { a: { shape: step }, b: { shape: step } } }\n"
                              "connections:\n"
                              "  - { from: push.a, to: one.u, coupling: eros }\n"
                              "  - from: push.b\n"
                              "    to: one.T\n"
                              "    coupling:\n"
                              "      name: \"a: \\\"b\\\" <c>\"\n"
                              "      algorithm: wiener\n"
                              "      bands:\n"
                              "        - [0, 10, 1]\n"
                              "        - [5 Hz, 9 Hz, 0.03]\n"
                              "      channel: { step: 10 ms, delay: 57.5 ms, jitter: 5 ms,\n"
                              "                 loss: 5 %, burst: 3, duplicate: 1 %, seed: 7 }\n"
                              "      shadow: [zoh, { algorithm: rls, taps: 9 }]\n"
                              "      record: false\n");
    pack(fx, s, 1);
    crd_system* t = load(fx, PACKAGE);
    check_text(driver_of(t, "one", "u")->coupling->element, "{\"algorithm\": \"eros\"}");
    const crd_coupling_spec* c = driver_of(t, "one", "T")->coupling;
    check_text(c->element, "{\"name\": \"a: \\\"b\\\" \\u003cc>\", \"algorithm\": \"wiener\", "
                           "\"bands\": [[0, 10, 1], [\"5 Hz\", \"9 Hz\", 0.03]]}");
    check(c->has_channel && c->channel.step == 0.01 && c->channel.delay == 0.0575);
    check(c->channel.jitter == 0.005 && c->channel.loss == 0.05 && c->channel.burst == 3);
    check(c->channel.duplicate == 0.01 && c->channel.seed == 7);
    check_int(c->shadow_count, 2);
    check_text(c->shadows[0], "{\"algorithm\": \"zoh\"}");
    check_text(c->shadows[1], "{\"algorithm\": \"rls\", \"taps\": 9}");
    check(!c->record);
    crd_system_destroy(t);
    crd_system_destroy(s);
}

static void a_channel_alone_survives_the_package(void** state)
{
    fixture* fx = *state;
    crd_system* s =
        parse(fx, "cardan: 1\n"
                  "units: { one: { fmu: a.fmu }, push: { signal: { shape: step } } }\n"
                  "connections:\n"
                  "  - { from: push.y, to: one.u, coupling: { channel: { delay: 1 } } }\n");
    pack(fx, s, 1);
    crd_system* t = load(fx, PACKAGE);
    const crd_coupling_spec* c = driver_of(t, "one", "u")->coupling;
    check_text(c->element, "{}");
    check(c->has_channel && c->channel.delay == 1 && isnan(c->channel.step) && c->record);
    crd_system_destroy(t);
    crd_system_destroy(s);
}

// Packed again and again, what was read gives the same two documents. Not the first time: the
// reader converts units by what the package says of them, and that is then done.
static void check_same_again(fixture* fx, const crd_system* again, int version)
{
    static const char* const names[] = {"SystemStructure.ssd", "resources/sys.ssv"};
    check_ok(write_to(again, FOLDER "/again.ssp", version));
    crd_system* third = load(fx, FOLDER "/again.ssp");
    check_ok(write_to(third, FOLDER "/third.ssp", version));
    crd_system_destroy(third);
    for (int i = 0; i < 2; i++) {
        char* a = entry_text(fx, FOLDER "/again.ssp", names[i], NULL);
        char* b = entry_text(fx, FOLDER "/third.ssp", names[i], NULL);
        check(a != NULL && b != NULL);
        size_t at = 0, line = 0;
        while (a[at] && a[at] == b[at]) {
            if (a[at++] == '\n') { line = at; }
        }
        if (a[at] != b[at]) { fail_msg("%s\n%.300s\n\n%.300s", names[i], a + line, b + line); }
        crd_free(fx->ctx, a);
        crd_free(fx->ctx, b);
    }
}

static void a_system_comes_back_as_it_was(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(
        fx,
        "cardan: 1\n"
        "title: sys\n"
        "units:\n"
        "  one:\n"
        "    fmu: a.fmu\n"
        "    interface: model-exchange\n"
        "    parameters: { m: 5 g, n: 7, \"on\": true, name: \"a <b>\", gear: first, blob: 00fF,\n"
        "                  c: [1, 2, 3], \"c[2]\": 9, T: 20, x0: 4 }\n"
        "    solver: { method: adams, relative: 1e-7 }\n"
        "    step: 2 ms\n"
        "  two: { fmu: b.fmu, interface: co-simulation, logging: true, pinned: true }\n"
        "  push: { signal: { shape: chirp, duration: 2, frequency: 1, frequency2: 5, unit: N } }\n"
        "  rec: { replay: run 1.csv, interpolation: hold, time_offset: 3, repeat: true }\n"
        "connections:\n"
        "  - { from: one.torque, to: two.load, gain: 2, offset: -1.5, convert_units: false }\n"
        "  - { from: two.mode, to: one.gear, map: { first: neutral } }\n"
        "  - { from: two.count, to: one.i, map: { 1: 2 } }\n"
        "  - { from: two.y, to: one.v, predict: quadratic }\n"
        "  - { from: push.y, to: two.u, predict: hold }\n"
        "  - rec.x -> two.T\n"
        "run:\n"
        "  start: 0.5\n"
        "  stop: 2\n"
        "  step: 1 ms\n"
        "  tolerance: 1e-5\n"
        "  scheme: { gauss-seidel: [push, { jacobi: [two, rec] }, one] }\n"
        "  predict: linear\n"
        "results: { file: out.mat, variables: [\"one.*\", two.y], interval: 10 ms, mat: 7.3,\n"
        "           unit_row: true }\n");
    pack(fx, s, 1);
    crd_system* t = load(fx, PACKAGE);
    check_text(t->title, "sys");
    check_int(t->unit_count, 4);
    const crd_unit_spec *one = &t->units[crd_system_find(t, "one")],
                        *two = &t->units[crd_system_find(t, "two")],
                        *push = &t->units[crd_system_find(t, "push")],
                        *rec = &t->units[crd_system_find(t, "rec")];
    check_int(one->interface, CRD_INTERFACE_MODEL_EXCHANGE);
    check_int(two->interface, CRD_INTERFACE_COSIMULATION);
    check_int(one->solver.method, CRD_SOLVER_ADAMS);
    check_near(one->solver.relative, 1e-7, 0);
    check_near(one->step, 2e-3, 0);
    check(two->logging && two->pinned);
    check_text(setting(t, "one", "m")->text, "0.005");
    check_text(setting(t, "one", "n")->text, "7");
    check_text(setting(t, "one", "on")->text, "true");
    check_text(setting(t, "one", "name")->text, "a <b>");
    check_text(setting(t, "one", "gear")->text, "first");
    check_text(setting(t, "one", "x0")->text, "4"); // no connector, and it arrives all the same
    check_text(setting(t, "one", "c")->text, "1 2 3");
    check_text(setting(t, "one", "c[2]")->text, "9");
    check(setting(t, "one", "c[2]") > setting(t, "one", "c")); // the element comes after the whole
    check_int(push->source, CRD_UNIT_SIGNAL);
    check_int(push->signal_count, 1);
    check_int(push->signals[0].shape, CRD_SIGNAL_CHIRP);
    check_near(push->signals[0].frequency2, 5, 0);
    check_text(push->signals[0].unit, "N");
    check_int(rec->source, CRD_UNIT_REPLAY);
    check(access(rec->path, R_OK) == 0);
    check_int(rec->interpolation, CRD_INTERPOLATE_HOLD);
    check(rec->repeat && rec->time_offset == 3);
    check_int(t->connection_count, 6);
    const crd_connection_spec* load_ = driver_of(t, "two", "load");
    check(load_->has_transformation && !load_->convert_units);
    check_near(load_->gain, 2, 0);
    check_near(load_->offset, -1.5, 0);
    check_int(load_->predict, CRD_PREDICTION_LINEAR);
    check_int(driver_of(t, "one", "v")->predict, CRD_PREDICTION_QUADRATIC);
    check_int(driver_of(t, "two", "u")->predict, CRD_PREDICTION_HOLD);
    check_int(driver_of(t, "two", "T")->predict, CRD_PREDICTION_LINEAR);
    check_int(driver_of(t, "one", "gear")->map_count, 1);
    check_text(driver_of(t, "one", "gear")->map[0].to, "neutral");
    check_text(driver_of(t, "one", "i")->map[0].from, "1");
    check_near(t->run.start, 0.5, 0);
    check_near(t->run.stop, 2, 0);
    check_near(t->run.step, 1e-3, 0);
    check_near(t->run.tolerance, 1e-5, 0);
    check_int(t->run.scheme, CRD_SCHEME_GROUPS);
    check_int(t->run.group.members[1].member_count, 2);
    check_int(t->run.predict, CRD_PREDICTION_LINEAR);
    check(t->results.path == NULL); // where results go is nobody else's business
    check_int(t->results.pattern_count, 2);
    check_int(t->results.mat_version, 73);
    check(t->results.unit_row && t->results.interval == 0.01);
    check_same_again(fx, t, 1);
    crd_system_destroy(t);
    crd_system_destroy(s);
}

// Not results.exchange: like the result file it would be relative to where the package is unpacked.
static void how_a_run_follows_the_clock_comes_back(void** state)
{
    fixture* fx = *state;
    crd_system* s =
        parse(fx, "cardan: 1\n"
                  "title: sys\n"
                  "units:\n"
                  "  one: { fmu: a.fmu, budget: 500 us }\n"
                  "  push: { signal: { shape: step }, budget: 1 ms }\n"
                  "connections:\n"
                  "  - push.y -> one.v\n"
                  "run:\n"
                  "  stop: 1\n"
                  "  pace: { factor: 0.5x, overrun: skip, slack: 10 us, spin: 50 us, priority: 50, "
                  "cpu: 0, lock: false, required: true }\n");
    pack(fx, s, 1);
    check_text(annotation(fx),
               "\nunits:\n"
               "  one: { budget: 0.0005 }\n"
               "  push: { signal: { shape: step }, budget: 0.001 }\n"
               "run: { pace: { factor: 0.5, overrun: skip, slack: 1e-05, spin: 5e-05, "
               "priority: 50, cpu: 0, lock: false, required: true } }\n");
    crd_system* t = load(fx, PACKAGE);
    const crd_pace_spec *p = &t->run.pace, *of = &s->run.pace;
    check_near(p->factor, 0.5, 0);
    check_int(p->overrun, CRD_OVERRUN_SKIP);
    check_near(p->slack, of->slack, 0);
    check_near(p->spin, of->spin, 0);
    check_int(p->priority, 50);
    check_int(p->cpu, 0);
    check(!p->lock && p->required);
    check_near(t->units[crd_system_find(t, "one")].budget, 500e-6, 1e-18);
    check_near(t->units[crd_system_find(t, "push")].budget, 1e-3, 0);
    crd_system_destroy(t);
    crd_system_destroy(s);
}

static void what_a_run_does_about_its_errors_comes_back(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(
        fx, "cardan: 1\n"
            "title: sys\n"
            "units:\n"
            "  one: { fmu: a.fmu, parameters: { m: 2 }, real: true, refresh: no }\n"
            "  two: { fmu: b.fmu, refresh: yes }\n"
            "  push: { signal: { shape: step }, real: true }\n"
            "connections:\n"
            "  - { from: two.y, to: one.v, predict: hermite, scale: 10, tolerance: 1e-6 }\n"
            "  - { from: push.y, to: two.u, scale: 0.1 }\n"
            "  - { from: one.torque, to: two.load, predict: auto }\n"
            "bonds:\n"
            "  - [one.torque, two.y]\n"
            "  - { name: \"the shaft: 1\", action: one.v, flow: two.u, correct: power, mu: 0.5,\n"
            "      ki: 0.25, limiter: 0.05, forget: 0.9 }\n"
            "run:\n"
            "  stop: 1\n"
            "  predict: ab2\n"
            "  control: { tolerance: 1e-4, method: pi, absolute: true, first: 1 ms, floor: 1 us,\n"
            "             ceiling: 0.5 s, kp: 0.2, ki: 0.1, growth: 3, safety: 0.8, reject: true,\n"
            "             defects: one-sided, middle: false }\n"
            "  iterate: { tolerance: 1e-6, sweeps: 25, acceleration: aitken, otherwise: stop }\n"
            "  feedthrough: strict\n"
            "  monitor: none\n");
    pack(fx, s, 1);
    check_text(annotation(fx),
               "\nunits:\n"
               "  one: { real: true, refresh: no }\n"
               "  two: { refresh: yes }\n"
               "  push: { signal: { shape: step }, real: true }\n"
               "run: { predict: ab2, control: { tolerance: 0.0001, method: pi, absolute: true, "
               "first: 0.001, floor: 1e-06, ceiling: 0.5, kp: 0.2, ki: 0.1, growth: 3, "
               "safety: 0.8, reject: 1, defects: one-sided, middle: false }, iterate: { tolerance: "
               "1e-06, sweeps: 25, acceleration: aitken, otherwise: stop }, feedthrough: strict, "
               "monitor: none }\n"
               "connections:\n"
               "  - { from: two.y, to: one.v, predict: hermite, scale: 10, tolerance: 1e-06 }\n"
               "  - { from: push.y, to: two.u, scale: 0.1 }\n"
               "  - { from: one.torque, to: two.load, predict: auto }\n"
               "bonds:\n"
               "  - { action: one.torque, flow: two.y }\n"
               "  - { name: \"the shaft: 1\", action: one.v, flow: two.u, correct: power, mu: 0.5, "
               "ki: 0.25, limiter: 0.05, forget: 0.9 }\n");
    crd_system* t = load(fx, PACKAGE);
    const crd_unit_spec *one = &t->units[crd_system_find(t, "one")],
                        *two = &t->units[crd_system_find(t, "two")];
    check(one->real && !two->real && t->units[crd_system_find(t, "push")].real);
    check_int(one->refresh, CRD_REFRESH_NO);
    check_int(two->refresh, CRD_REFRESH_YES);
    check_int(t->run.predict, CRD_PREDICTION_AB2);
    check_int(driver_of(t, "one", "v")->predict, CRD_PREDICTION_HERMITE);
    check_near(driver_of(t, "one", "v")->scale, 10, 0);
    check_near(driver_of(t, "one", "v")->tolerance, 1e-6, 0);
    check_int(driver_of(t, "two", "u")->predict, CRD_PREDICTION_AB2);
    check_near(driver_of(t, "two", "u")->scale, 0.1, 0);
    check_int(driver_of(t, "two", "load")->predict, CRD_PREDICTION_AUTO);
    check(t->run.control.on && t->run.control.one_sided && !t->run.control.middle);
    check_near(t->run.control.ceiling, 0.5, 0);
    check_near(t->run.control.reject, 1, 0);
    check(t->run.iterate.on && t->run.iterate.stop);
    check_int(t->run.iterate.sweeps, 25);
    check_int(t->run.feedthrough, CRD_DEFECT_STRICT);
    check_int(t->run.monitor, 0);
    check_int(t->bond_count, 2);
    check_text(t->bonds[1].name, "the shaft: 1");
    check_int(t->bonds[1].action_unit, crd_system_find(t, "one"));
    check_text(t->bonds[1].flow, "u");
    check_int(t->bonds[1].correct, CRD_CORRECT_POWER);
    check_near(t->bonds[1].limiter, 0.05, 0);
    check(isnan(t->bonds[0].mu));
    check_same_again(fx, t, 1);
    crd_system_destroy(t);
    crd_system_destroy(s);
}

static void nested_systems_and_notes_come_back(void** state)
{
    fixture* fx = *state;
    crd_system* s = NULL;
    check_ok(crd_system_create(fx->ctx, &s));
    s->title = "sys";
    const int motor = add_unit(s, "drive.front.motor"), gear = add_unit(s, "drive.gear");
    const int body = add_unit(s, "body");
    join(s, motor, "torque", gear, "load");
    join(s, motor, "torque", body, "load");
    join(s, body, "y", motor, "fast")->gain = 3;
    s->connections[2].has_transformation = true;
    check_ok(crd_system_set(s, motor, "m", "3", (crd_place){"", 0}));
    static const crd_note notes[] = {
        {-1, "org.other",
         "<ssc:Annotation xmlns:ssc=\"" SSC
         "\" type=\"org.other\"><x xmlns=\"\"/></ssc:Annotation>"},
        {0, "org.more", "<ssc:Annotation xmlns:ssc=\"" SSC "\" type=\"org.more\"/>"},
        {-1, "org.deep", "<ssc:Annotation xmlns:ssc=\"" SSC "\" type=\"org.deep\"/>",
         "drive.front"},
        {-1, "org.gone", "<ssc:Annotation xmlns:ssc=\"" SSC "\" type=\"org.gone\"/>", "rear"}};
    s->notes = notes;
    s->note_count = 4;
    for (int version = 1; version <= 2; version++) {
        pack(fx, s, version);
        crd_system* t = load(fx, PACKAGE);
        check_int(t->unit_count, 3);
        check_int(t->connection_count, 3);
        const crd_connection_spec* c = driver_of(t, "drive.front.motor", "fast");
        check_text(t->units[c->from_unit].name, "body");
        // the reader may have done the conversion already
        check_near(c->gain * (c->convert_units ? 3.6 : 1), 3 * 3.6, 1e-14);
        check_text(t->units[driver_of(t, "body", "load")->from_unit].name, "drive.front.motor");
        check_text(setting(t, "drive.front.motor", "m")->text, "3");
        check_int(t->note_count, 4);
        for (int i = 0; i < 4; i++) {
            const crd_note* n = &t->notes[i];
            const bool deep = strcmp(n->type, "org.deep") == 0;
            // a system that is not there any more leaves its note to the whole
            check_text(n->system, deep ? "drive.front" : "");
            check_int(n->unit >= 0, strcmp(n->type, "org.more") == 0);
        }
        crd_system_destroy(t);
    }
    crd_system_destroy(s);
}

// ---- files and failures ------------------------------------------------------------------------

static void files_have_names_of_their_own_and_folders_are_zipped(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(fx, "cardan: 1\n"
                              "units:\n"
                              "  one: { fmu: a.fmu }\n"
                              "  two: { fmu: other/A.fmu }\n"
                              "  three: { fmu: open.fmu }\n"
                              "  four: { fmu: ./a.fmu }\n");
    pack(fx, s, 1);
    const crdi_xml_element* root = fx->ssd->root;
    check_text(value_of(below(root, "Component", "name", "one"), "source"), "resources/a.fmu");
    check_text(value_of(below(root, "Component", "name", "two"), "source"), "resources/A_2.fmu");
    check_text(value_of(below(root, "Component", "name", "three"), "source"), "resources/open.fmu");
    check_text(value_of(below(root, "Component", "name", "four"), "source"), "resources/a.fmu");
    size_t n = 0;
    char* fmu = entry_text(fx, PACKAGE, "resources/open.fmu", &n);
    static const crdi_archive_limits limits = {.max_unpacked = 1 << 20, .max_entries = 10};
    crdi_archive* a = NULL;
    check_ok(crdi_archive_open_memory(fx->ctx, fmu, n, "open.fmu", &limits, &a));
    check_int(crdi_archive_count(a), 2);
    check(crdi_archive_find(a, "modelDescription.xml") >= 0);
    check(crdi_archive_find(a, "binaries/a b.so") >= 0);
    crdi_archive_close(a);
    crd_free(fx->ctx, fmu);

    // equal content, equal bytes
    check_ok(write_to(s, FOLDER "/again.ssp", 1));
    struct stat x, y;
    check(stat(PACKAGE, &x) == 0 && stat(FOLDER "/again.ssp", &y) == 0);
    check_int(x.st_size, y.st_size);
    FILE *f = fopen(PACKAGE, "rb"), *g = fopen(FOLDER "/again.ssp", "rb");
    for (int c = fgetc(f); c != EOF; c = fgetc(f)) {
        check_int(fgetc(g), c);
    }
    fclose(f);
    fclose(g);
    crd_system_destroy(s);
}

static void failures_leave_no_package(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(fx, "cardan: 1\nunits: { one: { fmu: gone.fmu } }\n");
    check_status(write_to(s, PACKAGE, 1), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(fx->ctx), "unit 'one': ");
    check_contains(crd_error_text(fx->ctx), "gone.fmu");
    check(access(PACKAGE, F_OK) != 0);
    crd_system_destroy(s);

    s = parse(fx, "cardan: 1\nunits: { one: { fmu: a.fmu, parameters: { name: \"a\\x01b\" } } }\n");
    check_status(write_to(s, PACKAGE, 1), CRD_E_RANGE);
    check_contains(crd_error_text(fx->ctx), "'a?b' cannot stand in XML");
    check(access(PACKAGE, F_OK) != 0);
    check_status(write_to(s, FOLDER "/no/where.ssp", 1), CRD_E_RANGE);
    crd_system_destroy(s);

    s = parse(fx, "cardan: 1\nunits: { one: { fmu: a.fmu } }\n");
    check_status(write_to(s, FOLDER "/a.fmu", 1), CRD_E_RANGE);
    check_contains(crd_error_text(fx->ctx), "would overwrite the file of a unit");
    check(write_to(s, FOLDER "/no/where.ssp", 1) < 0);
    check_contains(crd_error_text(fx->ctx), "no/where.ssp");
    s->units[0].source = CRD_UNIT_NATIVE;
    check_status(write_to(s, PACKAGE, 1), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(fx->ctx), "unit 'one' is a model inside a program");
    crd_system_destroy(s);

    check_ok(crd_system_create(fx->ctx, &s));
    add_unit(s, "ctrl\x02");
    check_status(write_to(s, PACKAGE, 1), CRD_E_RANGE);
    check_contains(crd_error_text(fx->ctx), "cannot stand in XML");
    crd_system_destroy(s);
}

static void notes_of_other_tools_are_kept(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(fx, "cardan: 1\nunits: { one: { fmu: a.fmu } }\n");
    static const crd_note notes[] = {
        {-1, "org.other",
         "<ssc:Annotation xmlns:ssc=\"" SSC "\" type=\"org.other\"><x/></ssc:Annotation>"},
        {0, "org.more", "<q:Annotation xmlns:q=\"" SSC "\" type=\"org.more\"/>"}};
    s->notes = notes;
    s->note_count = 2;
    pack(fx, s, 1);
    const crdi_xml_element* a = below(fx->ssd->root, "Annotation", "type", "org.other");
    check_text(a->parent->parent->name, "SystemStructureDescription");
    check_text(a->parent->space, SSD);
    check_text(a->first->name, "x");
    a = below(fx->ssd->root, "Annotation", "type", "org.more");
    check_text(a->parent->parent->name, "Component");
    crd_system_destroy(s);
}

static void only_what_is_used_gets_connectors_on_request(void** state)
{
    fixture* fx = *state;
    crd_system* s = parse(fx, "cardan: 1\n"
                              "units: { one: { fmu: a.fmu, parameters: { m: 2 } } }\n"
                              "connections: [ one.y -> one.u ]\n");
    const crd_ssp_source src = {s, connectors};
    check_ok(
        crd_ssp_write(s, PACKAGE, &src, &(crd_ssp_options){.only_used = true, .author = "me"}));
    fx->ssd = document(fx, "SystemStructure.ssd");
    check_text(value_of(fx->ssd->root, "author"), "me");
    const crdi_xml_element* c = below(fx->ssd->root, "Connector", NULL, NULL);
    static const char* const names[] = {"u", "y", "m"};
    for (int i = 0; i < 3; i++, c = c->next) {
        check_text(value_of(c, "name"), names[i]);
    }
    check(c == NULL);
    // without a source: what connections and start values say
    check_ok(crd_ssp_write(s, PACKAGE, NULL, NULL));
    crdi_xml_destroy(fx->ssd);
    fx->ssd = document(fx, "SystemStructure.ssd");
    c = below(fx->ssd->root, "Connector", NULL, NULL);
    check_text(value_of(c, "name"), "y");
    check_text(value_of(c, "kind"), "output");
    check(c->first == NULL);
    crd_system_destroy(s);
}

static void every_allocation_may_fail(void** state)
{
    static const char text[] =
        "cardan: 1\n"
        "units:\n"
        "  one: { fmu: a.fmu, parameters: { m: 1 g, c: [1, 2] }, step: 1 ms }\n"
        "  push: { signal: { shape: step } }\n"
        "  three: { fmu: open.fmu }\n"
        "connections: [ { from: push.y, to: one.u, predict: linear } ]\n"
        "bonds: [ [one.v, push.y] ]\n"
        "run: { scheme: { jacobi: [one, push, three] } }\n";
    int failures = 0;
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        crd_system* s = NULL;
        check_ok(crd_system_parse(ctx, text, strlen(text), FOLDER "/sys.yaml", &s));
        crd_unit_spec unit = crd_unit_spec_defaults();
        unit.name = "drive.motor";
        unit.path = FOLDER "/b.fmu";
        check_ok(crd_system_add_unit(s, &unit, NULL));
        join(s, 3, "torque", 0, "load");
        s->run.scheme = CRD_SCHEME_JACOBI;
        a.fail_at = a.allocations + fail_at;
        const crd_status st = write_to(s, PACKAGE, 1);
        a.fail_at = -1;
        if (st != CRD_OK) {
            check_status(st, CRD_E_MEMORY);
            failures++;
        }
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
        check(access(PACKAGE, F_OK) != 0);
    }
    check(failures > 20);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(components_connectors_and_units_are_written),
        TEST(version_two_has_the_types_of_fmi_3),
        TEST(connections_have_their_changes),
        TEST(start_values_become_a_parameter_set),
        TEST(mapped_start_values_are_worked_out),
        TEST(differences_have_units_without_a_zero_point),
        TEST(what_ssp_has_no_word_for_is_in_the_annotation),
        TEST(couplings_survive_the_package),
        TEST(a_channel_alone_survives_the_package),
        TEST(dots_in_names_are_systems_again),
        TEST(changes_on_the_way_stay_where_they_fit),
        TEST(names_that_cannot_nest_stay_flat_and_differ),
        TEST(a_system_comes_back_as_it_was),
        TEST(how_a_run_follows_the_clock_comes_back),
        TEST(what_a_run_does_about_its_errors_comes_back),
        TEST(nested_systems_and_notes_come_back),
        TEST(files_have_names_of_their_own_and_folders_are_zipped),
        TEST(failures_leave_no_package),
        TEST(notes_of_other_tools_are_kept),
        TEST(only_what_is_used_gets_connectors_on_request),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
