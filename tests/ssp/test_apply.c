// Parameter sets for systems that are there already, and listings of sets and mappings.
#include "allocations.h"
#include "ssp_test.h"

#define SET(list)                                                                                  \
    "<ssv:ParameterSet version='1.0' name='s'" SPACES ">\n<ssv:Parameters>\n" list                 \
    "</ssv:Parameters></ssv:ParameterSet>\n"
#define MAP(list)                                                                                  \
    "<ssm:ParameterMapping version='1.0'" SPACES ">\n" list "</ssm:ParameterMapping>\n"
#define IN_UNIT(name, text, unit)                                                                  \
    "<ssv:Parameter name='" name "'><ssv:Real value='" text "' unit='" unit "'/></"                \
    "ssv:Parameter>\n"

static const char* path_of(const char* name)
{
    static char path[2][600];
    static int at;
    at = !at;
    snprintf(path[at], sizeof path[at], "%s/%s", TEST_BUILD_DIR, name);
    return path[at];
}

static const char* put(const char* name, const char* text)
{
    const char* path = path_of(name);
    put_file(path, text);
    return path;
}

static const char* text_of(const crd_system* s, const char* unit, const char* variable)
{
    const crd_setting* p = ssp_setting(s, unit, variable);
    return p ? p->text : "(nothing)";
}

static crd_system* flat(crd_context* ctx)
{
    static const char yaml[] = "cardan: 1\n"
                               "units:\n"
                               "  a: { fmu: a.fmu, parameters: { m: 1 kg, n: 7 } }\n"
                               "  b: { fmu: b.fmu }\n";
    crd_system* s = NULL;
    check_ok(crd_system_parse(ctx, yaml, strlen(yaml), "t.yaml", &s));
    return s;
}

static void values_of_a_file_win_over_those_that_are_there(void** state)
{
    crd_system* s = flat(*state);
    const char* path = put("p.ssv", SET(IN_UNIT("a.m", "2", "g") VALUE("b.k.x", "3")));
    check_ok(crd_ssp_apply(s, path, NULL));
    const crd_setting* m = ssp_setting(s, "a", "m");
    check_text(m->text, "2");
    check_text(m->via->unit, "g");
    check_text(m->place.file, path);
    check_int(m->place.line, 3);
    check(m->optional);
    check_text(text_of(s, "a", "n"), "7");
    check_text(text_of(s, "b", "k.x"), "3");
    check_int(s->units[0].parameter_count, 3);
    // The next file wins over this one.
    check_ok(crd_ssp_apply(s, put("q.ssv", SET(VALUE("a.m", "5"))), NULL));
    check_text(text_of(s, "a", "m"), "5");
    // --set comes behind both.
    check_ok(crd_system_set(s, 0, "m", "6", (crd_place){"--set", 0}));
    check_text(text_of(s, "a", "m"), "6");
    check_int(said.infos, 0);
    crd_system_destroy(s);
}

static void a_single_fmu_has_plain_names(void** state)
{
    crd_system* s = NULL;
    check_ok(crd_system_of_fmu(*state, "x/motor.fmu", &s));
    check_ok(crd_ssp_apply(s, put("p.ssv", SET(VALUE("J", "2") VALUE("motor.R", "3"))), NULL));
    check_int(s->units[0].parameter_count, 2);
    check_text(s->units[0].parameters[0].variable, "J");
    check_text(s->units[0].parameters[1].variable, "motor.R");
    crd_system_destroy(s);
}

static void a_mapping_renames_and_transforms(void** state)
{
    crd_system* s = flat(*state);
    const char* ssv = put("p.ssv", SET(IN_UNIT("mass", "2", "g") VALUE("a.n", "3")));
    const char* ssm =
        put("p.ssm", MAP("<ssm:MappingEntry source='mass' target='a.m'>"
                         "<ssc:LinearTransformation factor='10' offset='1'/></ssm:MappingEntry>\n"
                         "<ssm:MappingEntry source='mass' target='b.m'/>\n"
                         "<ssm:MappingEntry source='miss' target='b.n'/>\n"));
    check_ok(crd_ssp_apply(s, ssv, ssm));
    const crd_setting* m = ssp_setting(s, "a", "m");
    check_text(m->text, "2");
    check_near(m->via->gain, 10, 0);
    check_near(m->via->offset, 1, 0);
    check_text(m->via->unit, "g");
    check_text(text_of(s, "b", "m"), "2");
    check_text(text_of(s, "a", "n"), "7"); // not mapped: does not apply
    check_int(said.infos, 1);
    check_contains(said.last[CRD_LOG_INFO], "p.ssm:4: there is no parameter 'miss'");
    crd_system_destroy(s);
}

static void names_that_fit_nothing_are_noted(void** state)
{
    crd_system* s = flat(*state);
    check_ok(crd_ssp_apply(s, put("p.ssv", SET(VALUE("c.m", "2") VALUE("a", "3"))), NULL));
    check_int(said.infos, 2);
    check_contains(said.last[CRD_LOG_INFO], "p.ssv:4: parameter 'a' fits nothing");
    check_int(s->units[0].parameter_count, 2);
    check_int(s->units[1].parameter_count, 0);
    check_contains(said.last[CRD_LOG_WARNING], "p.ssv: nothing in it fits the system");
    crd_system_destroy(s);
}

// Q (m) of the outermost system -> P (mm) of s, + 5 -> k of a, times 3; and Q -> j (cm) of b.
#define PORTS                                                                                      \
    SSD(CONNECTORS(REAL_IN("Q", "parameter", "m")) BINDINGS(BINDING(VALUES(VALUE("Q", "1"))))      \
            ELEMENTS(SYSTEM("s", CONNECTORS(REAL_IN("P", "parameter", "mm"))                       \
                                     ELEMENTS(COMPONENT("a", CONNECTORS(REAL("k", "parameter"))))  \
                                         CONNECTIONS("<ssd:Connection startConnector='P' "         \
                                                     "endElement='a' endConnector='k'>"            \
                                                     "<ssc:LinearTransformation factor='3'/>"      \
                                                     "</ssd:Connection>"))                         \
                         COMPONENT("b", CONNECTORS(REAL_IN("j", "parameter", "cm"))))              \
                CONNECTIONS(                                                                       \
                    "<ssd:Connection startConnector='Q' endElement='s' endConnector='P'>"          \
                    "<ssc:LinearTransformation factor='1' offset='5'/></ssd:Connection>" INWARD(   \
                        "Q", "b", "j")))

static void connectors_of_the_outermost_system_lead_to_units(void** state)
{
    crd_system* s = ssp_system(*state, PORTS);
    check_text(text_of(s, "b", "j"), "100");
    check_ok(
        crd_ssp_apply(s, put("p.ssv", SET(IN_UNIT("Q", "200", "cm") VALUE("b.j", "9"))), NULL));
    const crd_setting* k = ssp_setting(s, "s.a", "k");
    check_text(k->text, "2005"); // 200 cm, 2 m, 2000 mm, + 5
    check_text(k->via->unit, "mm");
    check_near(k->via->gain, 3, 0);
    check_text(text_of(s, "b", "j"), "200"); // in cm; a connection wins over a name
    check_int(said.infos, 0);
    // The connectors of systems inside are not seen from here.
    check_ok(crd_ssp_apply(s, put("q.ssv", SET(VALUE("s.P", "1") VALUE("P", "2"))), NULL));
    check_int(said.infos, 2);
    check_text(text_of(s, "s.a", "k"), "2005");
    crd_system_destroy(s);
}

static void what_is_wrong_has_its_line_and_changes_nothing(void** state)
{
    crd_system* s = ssp_system(*state, PORTS);
    const int before = s->units[1].parameter_count;
    const char* path = put("p.ssv", SET(VALUE("b.j", "2") IN_UNIT("Q", "1", "kg")));
    check_status(crd_ssp_apply(s, path, NULL), CRD_E_RANGE);
    check_contains(crd_error_text(*state),
                   "p.ssv:4: parameter 'Q' in 'kg' cannot be converted into 'm'");
    check_int(s->units[1].parameter_count, before);
    path = put("p.ssv", SET(VALUE("b.j", "two")));
    check_status(crd_ssp_apply(s, path, NULL), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "p.ssv:3: Real value = 'two', expected numbers");
    check_status(crd_ssp_apply(s, path_of("none.ssv"), NULL), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(*state), "none.ssv: no such file");
    path = put("p.ssv", SET(VALUE("b.j", "2")));
    check_status(crd_ssp_apply(s, path, path), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "the root is 'ParameterSet', expected ParameterMapping");
    check_status(crd_ssp_apply(s, path, path_of("none.ssm")), CRD_E_NOT_FOUND);
    check_int(s->units[1].parameter_count, before);
    crd_system_destroy(s);
}

static void a_set_is_listed_as_it_stands(void** state)
{
    crd_ssp_parameters* p = NULL;
    check_ok(crd_ssp_list(
        *state, CRD_SSP_SSV,
        put("p.ssv",
            SET(IN_UNIT("a.m", "1 2", "wibble") "<ssv:Parameter name='on'>"
                                                "<ssv:Boolean value='1'/></ssv:Parameter>")),
        &p));
    check(!p->mapping);
    check_text(p->name, "s");
    check_text(p->version, "1.0");
    check_int(p->count, 2);
    check_text(p->items[0].name, "a.m");
    check_text(p->items[0].type, "Real");
    check_text(p->items[0].value, "1 2");
    check_text(p->items[0].unit, "wibble"); // known or not
    check_text(p->items[1].type, "Boolean");
    check_text(p->items[1].value, "true");
    check_text(p->items[1].unit, "");
    crd_ssp_parameters_destroy(p);
    crd_ssp_parameters_destroy(NULL);
}

static void a_mapping_is_listed_with_what_it_does(void** state)
{
    crd_ssp_parameters* p = NULL;
    const char* path = put(
        "p.ssm", MAP("<ssm:MappingEntry source='a' target='u'/>"
                     "<ssm:MappingEntry source='b' target='v' suppressUnitConversion='true'>"
                     "<ssc:LinearTransformation factor='2' offset='-1'/></ssm:MappingEntry>"
                     "<ssm:MappingEntry source='c' target='w'><ssc:IntegerMappingTransformation>"
                     "<ssc:MapEntry source='1' target='2'/><ssc:MapEntry source='3' "
                     "target='4'/></ssc:IntegerMappingTransformation></ssm:MappingEntry>"));
    check_ok(crd_ssp_list(*state, CRD_SSP_SSM, path, &p));
    check(p->mapping);
    check_int(p->count, 3);
    check_text(p->items[0].name, "u");
    check_text(p->items[0].value, "a");
    check_text(p->items[0].change, "");
    check_text(p->items[1].change, "2 x - 1, units are not converted");
    check_text(p->items[2].change, "1 -> 2, 3 -> 4");
    crd_ssp_parameters_destroy(p);
    p = NULL;
    check_status(crd_ssp_list(*state, CRD_SSP_SSV, path, &p), CRD_E_FORMAT);
    check(!p);
}

static crd_status apply_and_list(crd_context* ctx, const void* user)
{
    const char *ssv = ((const char*const*)user)[0], *ssm = ((const char*const*)user)[1];
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    crd_ssp_parameters *p = NULL, *q = NULL;
    CRD_TRY(crd_system_create(ctx, &s));
    CRD_TRY(crdi_ssp_read_text(s, PORTS, sizeof PORTS - 1, "t.ssd"));
    CRD_TRY(crd_ssp_apply(s, ssv, NULL));
    CRD_TRY(crd_ssp_apply(s, ssv, ssm));
    CRD_TRY(crd_ssp_list(ctx, CRD_SSP_SSV, ssv, &p));
    CRD_TRY(crd_ssp_list(ctx, CRD_SSP_SSM, ssm, &q));
fail:
    crd_ssp_parameters_destroy(p);
    crd_ssp_parameters_destroy(q);
    crd_system_destroy(s);
    return st;
}

static void every_allocation_may_fail(void** state)
{
    const char* ssv = put("m.ssv", SET(IN_UNIT("Q", "200", "cm") VALUE("b.j", "9 8")));
    const char* ssm =
        put("m.ssm", MAP("<ssm:MappingEntry source='Q' target='b.j'><ssc:LinearTransformation "
                         "factor='10' offset='1'/></ssm:MappingEntry>\n"));
    check_allocations(apply_and_list, (const char*[]){ssv, ssm});
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, ssp_set_up, ssp_tear_down)
    const struct CMUnitTest tests[] = {
        T(values_of_a_file_win_over_those_that_are_there),
        T(a_single_fmu_has_plain_names),
        T(a_mapping_renames_and_transforms),
        T(names_that_fit_nothing_are_noted),
        T(connectors_of_the_outermost_system_lead_to_units),
        T(what_is_wrong_has_its_line_and_changes_nothing),
        T(a_set_is_listed_as_it_stands),
        T(a_mapping_is_listed_with_what_it_does),
        T(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
