// Parameter bindings of SSDs become settings of units.
#include "ssp_test.h"

#include <stdlib.h>

static const char* text_of(const crd_system* s, const char* unit, const char* variable)
{
    const crd_setting* p = ssp_setting(s, unit, variable);
    return p ? p->text : "(nothing)";
}

static void values_of_a_component_become_settings(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(ELEMENTS(COMPONENT(
            "a",
            BINDINGS(BINDING(VALUES(VALUE("m", " +1.50 ") VALUE(
                "v",
                "1 2\n3") "<ssv:Parameter name='n'><ssv:Integer "
                          "value='-7'/></ssv:Parameter><ssv:Parameter name='on'><ssv:Boolean "
                          "value='1'/>"
                          "</ssv:Parameter><ssv:Parameter name='who'><ssv:String value='a "
                          "&quot;b&quot; c'/>"
                          "</ssv:Parameter><ssv:Parameter name='gear'><ssv:Enumeration "
                          "value='first'/>"
                          "</ssv:Parameter><ssv:Parameter name='raw'><ssv:Binary value='0aFF'/>"
                          "</ssv:Parameter><ssv:Parameter name='list'><ssv:String><ssv:Value "
                          "value='x y'/>"
                          "<ssv:Value value='q&quot;'/><ssv:Value value=''/><ssv:Value value='z'/>"
                          "</ssv:String></ssv:Parameter><ssv:Parameter name='big'><ssv:UInt64 "
                          "value='18446744073709551615'/></ssv:Parameter><ssv:Parameter "
                          "name='flags'>"
                          "<ssv:Boolean value='true 0'/></ssv:Parameter><ssv:Parameter name='f'>"
                          "<ssv:Float32 value='0.25'/></ssv:Parameter>")))))));
    check_int(s->units[0].parameter_count, 11);
    check_text(text_of(s, "a", "m"), "1.50");
    check_text(text_of(s, "a", "v"), "1 2 3");
    check_text(text_of(s, "a", "n"), "-7");
    check_text(text_of(s, "a", "on"), "true");
    check_text(text_of(s, "a", "who"), "a \"b\" c");
    check_text(text_of(s, "a", "gear"), "first");
    check_text(text_of(s, "a", "raw"), "0aFF");
    check_text(text_of(s, "a", "list"), "\"x y\" \"q\\\"\" \"\" z");
    check_text(text_of(s, "a", "big"), "18446744073709551615");
    check_text(text_of(s, "a", "flags"), "true false");
    const crd_setting* m = ssp_setting(s, "a", "m");
    check(m->optional);
    check(!m->via);
    check_text(m->place.file, "t.ssd");
    check_int(m->place.line, 5);
    crd_system_destroy(s);
}

static void the_higher_level_wins_and_then_the_later_one(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(BINDINGS(BINDING(VALUES(VALUE("s.a.top", "1") VALUE("s.a.twice", "1")))
                         BINDING(VALUES(VALUE("s.a.twice", "2"))))
                ELEMENTS(SYSTEM(
                    "s", BINDINGS(BINDING(VALUES(VALUE("a.top", "11") VALUE("a.middle", "11")
                                                     VALUE("a.twice", "11"))))
                             ELEMENTS(COMPONENT(
                                 "a", BINDINGS(BINDING(VALUES(
                                          VALUE("top", "111") VALUE("middle", "111")
                                              VALUE("bottom", "111") VALUE("twice", "111"))))))))));
    check_text(text_of(s, "s.a", "top"), "1");
    check_text(text_of(s, "s.a", "middle"), "11");
    check_text(text_of(s, "s.a", "bottom"), "111");
    check_text(text_of(s, "s.a", "twice"), "2");
    check_int(s->units[0].parameter_count, 10); // all of them, in order
    check_text(s->units[0].parameters[0].text, "111");
    crd_system_destroy(s);
}

static void a_prefix_comes_before_names_and_mapping(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(BINDINGS("<ssd:ParameterBinding prefix='a.'>" VALUES(VALUE(
            "m",
            "1")) "</ssd:ParameterBinding>"
                  "<ssd:ParameterBinding prefix='p_'>" VALUES(VALUE("x", "2") VALUE("y", "3"))
                         MAPPING(
                             "<ssm:MappingEntry source='p_x' target='a.n'/>"
                             "<ssm:MappingEntry source='y' target='a.o'/>") "</"
                                                                            "ssd:ParameterBinding>")
                ELEMENTS(COMPONENT("a", ""))));
    check_text(text_of(s, "a", "m"), "1");
    check_text(text_of(s, "a", "n"), "2");
    check_int(s->units[0].parameter_count, 2); // what is not mapped does not apply
    crd_system_destroy(s);
}

static void mappings_transform_and_may_have_several_targets(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(BINDINGS(BINDING(
            VALUES("<ssv:Parameter name='x'><ssv:Real value='2' unit='km'/></ssv:Parameter>"
                   "<ssv:Parameter name='i'><ssv:Integer value='3'/></ssv:Parameter>")
                MAPPING("<ssm:MappingEntry source='x' target='a.p'><ssc:LinearTransformation "
                        "factor='2' offset='1'/></ssm:MappingEntry>"
                        "<ssm:MappingEntry source='x' target='a.q' suppressUnitConversion='true'/>"
                        "<ssm:MappingEntry source='i' target='a.n'><ssc:"
                        "IntegerMappingTransformation><ssc:MapEntry source='3' target='4'/>"
                        "</ssc:IntegerMappingTransformation></ssm:MappingEntry>")))
                ELEMENTS(COMPONENT("a", ""))));
    const crd_setting* p = ssp_setting(s, "a", "p");
    check_text(p->text, "2");
    check_text(p->via->unit, "km");
    check_near(p->via->gain, 2, 0);
    check_near(p->via->offset, 1, 0);
    check(p->via->convert_units);
    check(!ssp_setting(s, "a", "q")->via->convert_units);
    const crd_setting* n = ssp_setting(s, "a", "n");
    check_int(n->via->map_count, 1);
    check_text(n->via->map[0].to, "4");
    crd_system_destroy(s);
}

static void units_of_a_set_are_its_own(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD_WITH(
            BINDINGS(BINDING(
                "<ssd:ParameterValues><ssv:ParameterSet version='2.0' name='s'><ssv:Parameters>"
                "<ssv:Parameter name='a.x'><ssv:Real value='1' unit='inch'/></ssv:Parameter>"
                "<ssv:Parameter name='a.y'><ssv:Real value='1' unit='yard'/></ssv:Parameter>"
                "<ssv:Parameter name='a.z'><ssv:Real value='1' unit='wibble'/></ssv:Parameter>"
                "</ssv:Parameters><ssv:Units><ssc:Unit name='inch'><ssc:BaseUnit m='1' "
                "factor='0.0254'/></ssc:Unit></ssv:Units></ssv:ParameterSet>"
                "</ssd:ParameterValues>")) ELEMENTS(COMPONENT("a", "")),
            "<ssd:Units><ssc:Unit name='yard'><ssc:BaseUnit m='1' factor='0.9144'/></ssc:Unit>"
            "</ssd:Units>"));
    check_near(ssp_setting(s, "a", "x")->via->dimension->factor, 0.0254, 0);
    check_near(ssp_setting(s, "a", "y")->via->dimension->factor, 0.9144, 0); // of the file around
    check_text(ssp_setting(s, "a", "z")->via->unit, "wibble");               // the FMU may know it
    check(!ssp_setting(s, "a", "z")->via->dimension);
    crd_system_destroy(s);
}

static void names_with_dots_reach_everything_that_fits(void** state)
{
    crd_system* s =
        ssp_system(*state, SSD(BINDINGS(BINDING(VALUES(VALUE("b.c.d", "5")))) ELEMENTS(
                               SYSTEM("b", ELEMENTS(COMPONENT("c", ""))) COMPONENT("b.x", ""))));
    check_text(text_of(s, "b.c", "d"), "5");
    crd_system_destroy(s);
    s = ssp_system(*state, SSD(BINDINGS(BINDING(VALUES(VALUE("b.c.d", "5"))))
                                   ELEMENTS(SYSTEM("b", ELEMENTS(COMPONENT("x", "")))
                                                COMPONENT("b.c", "") COMPONENT("b.c.d", ""))));
    check_text(text_of(s, "b.c", "d"), "5");
    check_int(s->units[2].parameter_count, 0);
    crd_system_destroy(s);
}

static void names_that_fit_nothing_are_noted(void** state)
{
    crd_system* s = ssp_system(
        *state, SSD(BINDINGS(BINDING(VALUES(VALUE("q.x", "5")))) ELEMENTS(COMPONENT("a", ""))));
    check_int(said.infos, 1);
    check_contains(said.last[CRD_LOG_INFO], "t.ssd:4: parameter 'q.x' fits nothing");
    crd_system_destroy(s);
}

// Q of the outermost system -> P of s (in mm) -> k of a (no unit)
#define DOWN(root_values, s_values, a_values, to_s, to_a)                                          \
    SSD(CONNECTORS(REAL_IN("Q", "parameter", "m")) BINDINGS(BINDING(VALUES(root_values)))          \
            ELEMENTS(SYSTEM(                                                                       \
                "s",                                                                               \
                CONNECTORS(REAL_IN("P", "parameter", "mm")) BINDINGS(BINDING(VALUES(s_values)))    \
                    ELEMENTS(COMPONENT("a", CONNECTORS(REAL("k", "parameter"))                     \
                                                BINDINGS(BINDING(VALUES(a_values)))))              \
                        CONNECTIONS("<ssd:Connection startConnector='P' endElement='a' "           \
                                    "endConnector='k'" to_a)))                                     \
                CONNECTIONS(                                                                       \
                    "<ssd:Connection startConnector='Q' endElement='s' endConnector='P'" to_s))

static void values_of_system_connectors_go_down_to_components(void** state)
{
    crd_system* s = ssp_system(
        *state, DOWN(VALUE("Q", "2"), VALUE("P", "7"), VALUE("k", "9"),
                     "><ssc:LinearTransformation factor='1' offset='5'/></ssd:Connection>",
                     "><ssc:LinearTransformation factor='3'/></ssd:Connection>"));
    check_int(s->connection_count, 0); // nothing flows while it runs
    const crd_setting* k = ssp_setting(s, "s.a", "k");
    check_text(k->text, "2005"); // 2 m, 2000 mm, + 5
    check_text(k->via->unit, "mm");
    check_near(k->via->gain, 3, 0); // behind the conversion into the FMU's own unit
    check_int(s->units[0].parameter_count, 3);
    check_text(s->units[0].parameters[0].text, "9");
    check_text(s->units[0].parameters[1].text, "7");
    crd_system_destroy(s);
}

static void what_a_connector_says_on_a_lower_level_gives_way(void** state)
{
    crd_system* s =
        ssp_system(*state, DOWN(VALUE("s.a.k", "1"), VALUE("P", "7"), VALUE("k", "9"), "/>", "/>"));
    check_text(text_of(s, "s.a", "k"), "1");
    crd_system_destroy(s);
    // On one level the connection decides, the farther source first.
    s = ssp_system(*state,
                   DOWN(VALUE("Q", "4") VALUE("s.a.k", "1") VALUE("s.P", "2"), "", "", "/>", "/>"));
    check_text(text_of(s, "s.a", "k"), "4000");
    crd_system_destroy(s);
    s = ssp_system(*state, DOWN(VALUE("s.a.k", "1") VALUE("s.P", "2"), "", "", "/>", "/>"));
    check_text(text_of(s, "s.a", "k"), "2");
    crd_system_destroy(s);
}

#define CHANGED(x, b, y, change)                                                                   \
    "<ssd:Connection startConnector='" x "' endElement='" b "' endConnector='" y                   \
    "'><ssc:LinearTransformation " change "/></ssd:Connection>"

static void changes_on_the_way_down_apply_from_outside_in(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(CONNECTORS(REAL("p", "parameter")) BINDINGS(BINDING(VALUES(VALUE("p", "10")))) ELEMENTS(
            SYSTEM("s", CONNECTORS(REAL("q", "parameter")) ELEMENTS(
                            SYSTEM("t", CONNECTORS(REAL("r", "parameter")) ELEMENTS(COMPONENT(
                                            "a", CONNECTORS(REAL_IN("k", "parameter", "m"))))
                                            CONNECTIONS(CHANGED("r", "a", "k", "factor='4'"))))
                            CONNECTIONS(CHANGED("q", "t", "r", "factor='3'"))))
                CONNECTIONS(CHANGED("p", "s", "q", "offset='1'"))));
    const crd_setting* k = ssp_setting(s, "s.t.a", "k");
    check_text(k->text, "132"); // (10 + 1) * 3 * 4
    check(!k->via);             // the SSD says the unit: nothing is left to do
    crd_system_destroy(s);
}

static void values_of_connectors_that_lead_nowhere_are_noted(void** state)
{
    crd_system* s = ssp_system(*state, SSD(CONNECTORS(REAL("free", "input"))
                                               BINDINGS(BINDING(VALUES(VALUE("free", "1"))))));
    check_contains(said.last[CRD_LOG_INFO], "parameter 'free' reaches no component");
    crd_system_destroy(s);
}

static void a_start_value_of_an_open_input_goes_down_as_well(void** state)
{
    crd_system* s = ssp_system(
        *state, SSD(CONNECTORS(REAL("in", "input")) BINDINGS(BINDING(VALUES(VALUE("in", "6"))))
                        ELEMENTS(COMPONENT("a", CONNECTORS(REAL_IN("u", "input", "m"))))
                            CONNECTIONS(INWARD("in", "a", "u"))));
    check_text(text_of(s, "a", "u"), "6");
    crd_system_destroy(s);
}

static void units_that_do_not_convert_are_refused_with_their_line(void** state)
{
    ssp_refused(*state,
                SSD(CONNECTORS(REAL_IN("P", "parameter", "m"))
                        BINDINGS(BINDING(VALUES("<ssv:Parameter name='P'>\n<ssv:Real value='1' "
                                                "unit='kg'/></ssv:Parameter>")))
                            ELEMENTS(COMPONENT("a", CONNECTORS(REAL("k", "parameter"))))
                                CONNECTIONS(INWARD("P", "a", "k"))),
                CRD_E_RANGE, "t.ssd:6: parameter 'P' in 'kg' cannot be converted into 'm'");
}

static void a_mapping_acts_behind_the_conversion_of_the_unit(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(CONNECTORS(REAL_IN("P", "parameter", "degF")) BINDINGS(BINDING(
            VALUES("<ssv:Parameter name='t'><ssv:Real value='20' unit='degC'/></ssv:Parameter>")
                MAPPING("<ssm:MappingEntry source='t' target='P'><ssc:LinearTransformation "
                        "factor='2' offset='1'/></ssm:MappingEntry>")))
                ELEMENTS(COMPONENT("a", CONNECTORS(REAL("k", "parameter"))))
                    CONNECTIONS(INWARD("P", "a", "k"))));
    check_near(atof(text_of(s, "a", "k")), 2 * 68.0 + 1, 1e-9);
    crd_system_destroy(s);
}

static void whole_numbers_stay_whole_on_the_way_down(void** state)
{
#define WHOLE(factor)                                                                              \
    SSD(CONNECTORS(CONNECTOR("P", "parameter", "<ssc:Integer/>")) BINDINGS(                        \
        BINDING(VALUES("<ssv:Parameter name='P'><ssv:Integer value='3'/></ssv:Parameter>")))       \
            ELEMENTS(SYSTEM(                                                                       \
                "s", CONNECTORS(CONNECTOR("Q", "parameter", "<ssc:Integer/>")) ELEMENTS(COMPONENT( \
                         "a", CONNECTORS(CONNECTOR("k", "parameter", "<ssc:Integer/>"))))          \
                         CONNECTIONS(INWARD("Q", "a", "k"))))                                      \
                CONNECTIONS(CHANGED("P", "s", "Q", factor)))
    crd_system* s = ssp_system(*state, WHOLE("factor='2' offset='1'"));
    check_text(text_of(s, "s.a", "k"), "7");
    crd_system_destroy(s);
    ssp_refused(*state, WHOLE("factor='0.5'"), CRD_E_RANGE,
                "t.ssd:5: parameter 'P' is Integer, a linear transformation makes 1.5 of it");
}

static void conversion_suppressed_into_no_unit_does_not_come_back(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(CONNECTORS(REAL_IN("P", "parameter", "mm")) BINDINGS(BINDING(VALUES(VALUE("P", "3"))))
                ELEMENTS(SYSTEM("s", CONNECTORS(REAL("Q", "parameter")) ELEMENTS(
                                         COMPONENT("a", CONNECTORS(REAL_IN("k", "parameter", "m"))))
                                         CONNECTIONS(INWARD("Q", "a", "k"))))
                    CONNECTIONS("<ssd:Connection startConnector='P' endElement='s' "
                                "endConnector='Q' suppressUnitConversion='true'/>")));
    check_text(text_of(s, "s.a", "k"), "3");
    crd_system_destroy(s);
}

static void a_unit_with_a_factor_of_zero_is_as_none(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD_WITH(CONNECTORS(REAL_IN("P", "parameter", "flat") REAL_IN("Q", "parameter", "good"))
                     BINDINGS(BINDING(
                         VALUES("<ssv:Parameter name='P'><ssv:Real value='3' unit='m'/>"
                                "</ssv:Parameter><ssv:Parameter name='Q'><ssv:Real value='3' "
                                "unit='m'/></ssv:Parameter>")))
                         ELEMENTS(COMPONENT(
                             "a", CONNECTORS(REAL("k", "parameter") REAL("l", "parameter"))))
                             CONNECTIONS(INWARD("P", "a", "k") INWARD("Q", "a", "l")),
                 "<ssd:Units><ssc:Unit name='flat'><ssc:BaseUnit m='1' factor='0'/>"
                 "</ssc:Unit><ssc:Unit name='good'><ssc:BaseUnit m='1' factor='0.5'/>"
                 "</ssc:Unit></ssd:Units>"));
    check_text(text_of(s, "a", "k"), "3");
    check_text(text_of(s, "a", "l"), "6"); // the next one in the list is itself
    crd_system_destroy(s);
}

static void maps_act_on_values_that_go_down(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(CONNECTORS(CONNECTOR("P", "parameter", "<ssc:Integer/>"))
                BINDINGS(BINDING(VALUES("<ssv:Parameter name='P'><ssv:Integer value='1 2'/>"
                                        "</ssv:Parameter>")))
                    ELEMENTS(SYSTEM(
                        "s", CONNECTORS(CONNECTOR("Q", "parameter", "<ssc:Integer/>"))
                                 ELEMENTS(COMPONENT("a", CONNECTORS(CONNECTOR("k", "parameter",
                                                                              "<ssc:Integer/>"))))
                                     CONNECTIONS(INWARD("Q", "a", "k"))))
                        CONNECTIONS(
                            "<ssd:Connection startConnector='P' endElement='s' endConnector='Q'>"
                            "<ssc:IntegerMappingTransformation><ssc:MapEntry source='2' "
                            "target='2000000011'/></ssc:IntegerMappingTransformation></"
                            "ssd:Connection>")));
    check_text(text_of(s, "s.a", "k"), "1 2000000011"); // to the digit
    crd_system_destroy(s);
}

static void bindings_without_content_are_refused(void** state)
{
    ssp_refused(*state, SSD(BINDINGS(BINDING(""))), CRD_E_FORMAT,
                "t.ssd:3: parameter binding has neither a source nor a ParameterSet inside");
    ssp_refused(*state, SSD(BINDINGS("<ssd:ParameterBinding type='text/cdf' source='x'/>")),
                CRD_E_UNSUPPORTED, "parameter binding of type 'text/cdf', expected");
}

static void of_two_parameters_of_one_name_the_last_counts(void** state)
{
    crd_system* s =
        ssp_system(*state, SSD(BINDINGS(BINDING(VALUES(VALUE("a.x", "1") VALUE("a.x", "2")))
                                            BINDING(VALUES(VALUE("y", "1") VALUE("y", "2")) MAPPING(
                                                "<ssm:MappingEntry source='y' target='a.y'/>")))
                                   ELEMENTS(COMPONENT("a", ""))));
    check_text(text_of(s, "a", "x"), "2");
    check_text(text_of(s, "a", "y"), "2");
    check_int(said.warnings, 2);
    crd_system_destroy(s);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, ssp_set_up, ssp_tear_down)
    const struct CMUnitTest tests[] = {
        T(values_of_a_component_become_settings),
        T(the_higher_level_wins_and_then_the_later_one),
        T(a_prefix_comes_before_names_and_mapping),
        T(mappings_transform_and_may_have_several_targets),
        T(units_of_a_set_are_its_own),
        T(names_with_dots_reach_everything_that_fits),
        T(names_that_fit_nothing_are_noted),
        T(values_of_system_connectors_go_down_to_components),
        T(what_a_connector_says_on_a_lower_level_gives_way),
        T(changes_on_the_way_down_apply_from_outside_in),
        T(values_of_connectors_that_lead_nowhere_are_noted),
        T(a_start_value_of_an_open_input_goes_down_as_well),
        T(units_that_do_not_convert_are_refused_with_their_line),
        T(a_mapping_acts_behind_the_conversion_of_the_unit),
        T(whole_numbers_stay_whole_on_the_way_down),
        T(conversion_suppressed_into_no_unit_does_not_come_back),
        T(a_unit_with_a_factor_of_zero_is_as_none),
        T(maps_act_on_values_that_go_down),
        T(bindings_without_content_are_refused),
        T(of_two_parameters_of_one_name_the_last_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
