// Connections of SSDs become connections of units.
#include "ssp_test.h"

#define A_TO_B                                                                                     \
    ELEMENTS(COMPONENT("a", CONNECTORS(REAL("y", "output") REAL("k", "parameter")                  \
                                           REAL("c", "calculatedParameter")))                      \
                 COMPONENT("b", CONNECTORS(REAL("u", "input") REAL("p", "parameter"))))

static void a_connection_leads_from_output_to_input_whichever_is_the_start(void** state)
{
    static const char* const texts[] = {SSD(A_TO_B CONNECTIONS(CONNECT("a", "y", "b", "u"))),
                                        SSD(A_TO_B CONNECTIONS(CONNECT("b", "u", "a", "y")))};
    for (int i = 0; i < 2; i++) {
        crd_system* s = ssp_system(*state, texts[i]);
        check_int(s->unit_count, 2);
        check_int(s->connection_count, 1);
        const crd_connection_spec* c = ssp_connection(s, "a.y", "b.u");
        check(!c->has_transformation && c->convert_units && c->via_count == 0);
        check_text(c->place.file, "t.ssd");
        check_int(c->place.line, 10);
        crd_system_destroy(s);
    }
}

static void default_and_prefixed_namespaces_are_alike(void** state)
{
    crd_system* s = ssp_system(
        *state,
        "<SystemStructureDescription version='2.0' name='plain' "
        "xmlns='http://ssp-standard.org/SSP1/SystemStructureDescription' "
        "xmlns:x='http://ssp-standard.org/SSP1/SystemStructureCommon'><System name='r'>"
        "<Elements><Component name='a' source='a.fmu'><Connectors>"
        "<Connector name='y' kind='output'><x:Float64/></Connector></Connectors></Component>"
        "<Component name='b' source='b.fmu'><Connectors><Connector name='u' kind='input'>"
        "<Real xmlns='http://ssp-standard.org/SSP1/SystemStructureCommon'/></Connector>"
        "</Connectors></Component></Elements><Connections><Connection startElement='a' "
        "startConnector='y' endElement='b' endConnector='u'/></Connections></System>"
        "</SystemStructureDescription>");
    check_text(s->title, "plain");
    ssp_connection(s, "a.y", "b.u");
    crd_system_destroy(s);
}

// a.y -> out of `left`, in of `right` -> b.u
#define NESTED(inner_left, inner_right, top)                                                       \
    SSD(ELEMENTS(SYSTEM("left", CONNECTORS(REAL_IN("out", "output", "deg"))                        \
                                    ELEMENTS(COMPONENT("a", CONNECTORS(REAL("y", "output"))))      \
                                        CONNECTIONS(inner_left))                                   \
                     SYSTEM("right", CONNECTORS(REAL("in", "input"))                               \
                                         ELEMENTS(COMPONENT("b", CONNECTORS(REAL("u", "input"))))  \
                                             CONNECTIONS(inner_right))) CONNECTIONS(top))

static void chains_through_systems_become_one_connection_with_stages(void** state)
{
    crd_system* s = ssp_system(
        *state,
        NESTED("<ssd:Connection startConnector='out' endElement='a' endConnector='y'>"
               "<ssc:LinearTransformation factor='2' offset='1'/></ssd:Connection>",
               INWARD("in", "b", "u"),
               "<ssd:Connection startElement='right' startConnector='in' endElement='left' "
               "endConnector='out'><ssc:LinearTransformation factor='3'/></ssd:Connection>"));
    check_int(s->connection_count, 1);
    const crd_connection_spec* c = ssp_connection(s, "left.a.y", "right.b.u");
    // into deg, then 2 x + 1 at `out`; 3 x at `in`, which has no unit; nothing at the input itself
    check_int(c->via_count, 2);
    check_text(c->via[0].unit, "deg");
    check(c->via[0].convert_units);
    check_near(c->via[0].gain, 2, 0);
    check_near(c->via[0].offset, 1, 0);
    check_text(c->via[1].unit, "");
    check_near(c->via[1].gain, 3, 0);
    check(!c->has_transformation && c->convert_units);
    crd_system_destroy(s);
}

static void connectors_without_unit_and_transformation_leave_no_trace(void** state)
{
    crd_system* s = ssp_system(
        *state, SSD(ELEMENTS(SYSTEM(
                    "s", CONNECTORS(REAL("in", "input") REAL("out", "output")) ELEMENTS(
                             COMPONENT("b", CONNECTORS(REAL("u", "input") REAL("y", "output"))))
                             CONNECTIONS(INWARD("in", "b", "u") INWARD("out", "b", "y")))
                                 COMPONENT("a", CONNECTORS(REAL("y", "output") REAL("u", "input"))))
                        CONNECTIONS(CONNECT("a", "y", "s", "in") CONNECT("s", "out", "a", "u"))));
    check_int(s->connection_count, 2);
    check_int(ssp_connection(s, "a.y", "s.b.u")->via_count, 0);
    check_int(ssp_connection(s, "s.b.y", "a.u")->via_count, 0);
    crd_system_destroy(s);
}

static void a_system_may_pass_a_signal_straight_through(void** state)
{
    crd_system* s = ssp_system(
        *state, SSD(ELEMENTS(COMPONENT("a", CONNECTORS(REAL("y", "output")))
                                 COMPONENT("b", CONNECTORS(REAL("u", "input"))) SYSTEM(
                                     "s", CONNECTORS(REAL("in", "input") REAL("out", "output"))
                                              CONNECTIONS("<ssd:Connection "
                                                          "startConnector='out' "
                                                          "endConnector='in'/>")))
                        CONNECTIONS(CONNECT("a", "y", "s", "in") CONNECT("s", "out", "b", "u"))));
    ssp_connection(s, "a.y", "b.u");
    crd_system_destroy(s);
}

#define PAIR(from, to, connection)                                                                 \
    SSD_WITH(ELEMENTS(COMPONENT("a", CONNECTORS(from)) COMPONENT("b", CONNECTORS(to)))             \
                 CONNECTIONS("<ssd:Connection startElement='a' startConnector='y' "                \
                             "endElement='b' endConnector='u' " connection "</ssd:Connection>"),   \
             "<ssd:Units><ssc:Unit name='half'><ssc:BaseUnit rad='1' factor='0.5'/></ssc:Unit>"    \
             "<ssc:Unit name='celsius'><ssc:BaseUnit K='1' offset='273.15'/></ssc:Unit>"           \
             "<ssc:Unit name='kelvin'><ssc:BaseUnit K='1'/></ssc:Unit></ssd:Units>\n")

static void units_of_the_connectors_count_whatever_the_fmus_say(void** state)
{
    crd_system* s =
        ssp_system(*state, PAIR(REAL_IN("y", "output", "half"), REAL_IN("u", "input", "rad"), ">"));
    const crd_connection_spec* c = ssp_connection(s, "a.y", "b.u");
    check(!c->convert_units);
    check_near(c->gain, 0.5, 0);
    check_near(c->offset, 0, 0);
    crd_system_destroy(s);
}

// A difference of temperatures has no zero point, and only the FMUs know what is one.
static void zero_points_of_units_are_left_to_the_run(void** state)
{
    crd_system* s =
        ssp_system(*state, PAIR(REAL_IN("y", "output", "celsius"), REAL_IN("u", "input", "kelvin"),
                                "><ssc:LinearTransformation factor='2' offset='-1'/>"));
    const crd_connection_spec* c = ssp_connection(s, "a.y", "b.u");
    check_int(c->via_count, 2);
    check_text(c->via[0].unit, "celsius");
    check(!c->via[0].convert_units); // whatever the FMU calls it
    check_text(c->via[1].unit, "kelvin");
    check(c->via[1].convert_units);
    check_near(c->via[1].gain, 2, 0);
    check_near(c->via[1].offset, -1, 0);
    check(!c->convert_units && !c->has_transformation);
    crd_system_destroy(s);
}

static void the_unit_of_one_end_is_a_stage_of_its_own(void** state)
{
    crd_system* s =
        ssp_system(*state, PAIR(REAL_IN("y", "output", "half"), REAL("u", "input"), ">"));
    const crd_connection_spec* c = ssp_connection(s, "a.y", "b.u");
    check_int(c->via_count, 1);
    check(!c->via[0].convert_units); // it says what the number is
    check_near(c->via[0].dimension->factor, 0.5, 0);
    check(c->convert_units);
    crd_system_destroy(s);
    s = ssp_system(*state, PAIR(REAL("y", "output"), REAL_IN("u", "input", "half"),
                                "><ssc:LinearTransformation factor='7'/>"));
    c = ssp_connection(s, "a.y", "b.u");
    check_int(c->via_count, 1);
    check(c->via[0].convert_units);
    check_near(c->via[0].gain, 7, 0);
    check(!c->convert_units && !c->has_transformation);
    crd_system_destroy(s);
}

static void a_unit_that_nobody_knows_is_as_none(void** state)
{
    crd_system* s = ssp_system(
        *state, PAIR(REAL_IN("y", "output", "wibble"), REAL_IN("u", "input", "wobble"), ">"));
    const crd_connection_spec* c = ssp_connection(s, "a.y", "b.u");
    check(c->convert_units && c->via_count == 0);
    crd_system_destroy(s);
}

static void suppressed_conversion_leaves_the_numbers(void** state)
{
    crd_system* s =
        ssp_system(*state, PAIR(REAL_IN("y", "output", "half"), REAL_IN("u", "input", "m"),
                                "suppressUnitConversion='true'>"
                                "<ssc:LinearTransformation factor='4'/>"));
    const crd_connection_spec* c = ssp_connection(s, "a.y", "b.u");
    check(!c->convert_units);
    check_near(c->gain, 4, 0);
    crd_system_destroy(s);
    s = ssp_system(*state,
                   PAIR(REAL("y", "output"), REAL("u", "input"), "suppressUnitConversion='1'>"));
    check(!ssp_connection(s, "a.y", "b.u")->convert_units);
    crd_system_destroy(s);
}

// y of a -> in of s -> u of b
#define THROUGH(y, in, u, first, second)                                                           \
    SSD(ELEMENTS(COMPONENT("a", CONNECTORS(y)) SYSTEM(                                             \
        "s", CONNECTORS(in) ELEMENTS(COMPONENT("b", CONNECTORS(u))) CONNECTIONS(                   \
                 "<ssd:Connection startConnector='in' endElement='b' endConnector='u' " second     \
                 "</ssd:Connection>")))                                                            \
            CONNECTIONS("<ssd:Connection startElement='a' startConnector='y' endElement='s' "      \
                        "endConnector='in' " first "</ssd:Connection>"))

static void conversion_suppressed_into_no_unit_does_not_come_back(void** state)
{
    crd_system* s = ssp_system(*state, THROUGH(REAL_IN("y", "output", "mm"), REAL("in", "input"),
                                               REAL_IN("u", "input", "m"),
                                               "suppressUnitConversion='true'>", ">"));
    const crd_connection_spec* c = ssp_connection(s, "a.y", "s.b.u");
    check_near(c->gain, 1, 0);
    check(!c->convert_units);
    crd_system_destroy(s);
    // The same with the FMUs' own units: the run may not convert either.
    s = ssp_system(*state, THROUGH(REAL("y", "output"), REAL("in", "input"), REAL("u", "input"),
                                   "suppressUnitConversion='true'>", ">"));
    check(!ssp_connection(s, "a.y", "s.b.u")->convert_units);
    crd_system_destroy(s);
}

static void changes_on_the_way_apply_one_after_the_other(void** state)
{
    // mm -> m: 0.001 y; times 2, + 5; -> cm: times 100; times 3, + 7
    crd_system* s =
        ssp_system(*state, THROUGH(REAL_IN("y", "output", "mm"), REAL_IN("in", "input", "m"),
                                   REAL_IN("u", "input", "cm"),
                                   "><ssc:LinearTransformation factor='2' offset='5'/>",
                                   "><ssc:LinearTransformation factor='3' offset='7'/>"));
    const crd_connection_spec* c = ssp_connection(s, "a.y", "s.b.u");
    check_int(c->via_count, 0);
    check_near(c->gain, 0.001 * 2 * 100 * 3, 1e-15);
    check_near(c->offset, 5 * 100 * 3 + 7, 1e-12);
    crd_system_destroy(s);
}

static void units_that_do_not_convert_are_refused(void** state)
{
    ssp_refused(*state, PAIR(REAL_IN("y", "output", "half"), REAL_IN("u", "input", "m"), ">"),
                CRD_E_RANGE, "t.ssd:10: 'y' in 'half' cannot be converted into 'm' of 'u'");
}

static void values_are_mapped(void** state)
{
    crd_system* s = ssp_system(
        *state,
        PAIR(CONNECTOR("y", "output", "<ssc:Boolean/>"), CONNECTOR("u", "input", "<ssc:Boolean/>"),
             "><ssc:BooleanMappingTransformation><ssc:MapEntry source='true' target='0'/>"
             "</ssc:BooleanMappingTransformation>"));
    const crd_connection_spec* c = ssp_connection(s, "a.y", "b.u");
    check_int(c->map_count, 1);
    check_text(c->map[0].from, "true");
    check_text(c->map[0].to, "false");
    crd_system_destroy(s);
    s = ssp_system(
        *state,
        PAIR(CONNECTOR("y", "output", "<ssc:Integer/>"), CONNECTOR("u", "input", "<ssc:Integer/>"),
             "><ssc:IntegerMappingTransformation><ssc:MapEntry source='1' target='-7'/>"
             "<ssc:MapEntry source='2' target='8'/></ssc:IntegerMappingTransformation>"));
    c = ssp_connection(s, "a.y", "b.u");
    check_int(c->map_count, 2);
    check_text(c->map[1].from, "2");
    check_text(c->map[0].to, "-7");
    crd_system_destroy(s);
    s = ssp_system(*state, PAIR(CONNECTOR("y", "output", "<ssc:Enumeration name='e'/>"),
                                CONNECTOR("u", "input", "<ssc:Enumeration name='e'/>"),
                                "><ssc:EnumerationMappingTransformation><ssc:MapEntry source='off' "
                                "target='closed'/></ssc:EnumerationMappingTransformation>"));
    check_text(ssp_connection(s, "a.y", "b.u")->map[0].to, "closed");
    crd_system_destroy(s);
}

static void connectors_of_all_types_are_known(void** state)
{
    static const char* const types[] = {
        "<ssc:Real/>",
        "<ssc:Float64/>",
        "<ssc:Float32/>",
        "<ssc:Integer/>",
        "<ssc:Int8/>",
        "<ssc:UInt8/>",
        "<ssc:Int16/>",
        "<ssc:UInt16/>",
        "<ssc:Int32/>",
        "<ssc:UInt32/>",
        "<ssc:Int64/>",
        "<ssc:UInt64/>",
        "<ssc:Boolean/>",
        "<ssc:String/>",
        "<ssc:Enumeration name='e'/>",
        "<ssc:Binary/>",
        "",
        "<ssc:Binary mime-type='a/b'/>",
        "<ssc:Clock intervalVariability='triggered'/>",
        "<ssc:Real unit='m'/><ssc:Dimension size='3'/><ssd:Clock name='c'/>",
        "<ssc:Int8/><ssd:ConnectorGeometry x='0' y='1' systemInnerX='0.5'/>"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char text[3000];
        snprintf(text, sizeof text,
                 SSD(ELEMENTS(COMPONENT("a", CONNECTORS(CONNECTOR("y", "output", "%s")))
                                  COMPONENT("b", CONNECTORS(CONNECTOR("u", "input", "%s"))))
                         CONNECTIONS(CONNECT("a", "y", "b", "u"))),
                 types[i], types[i]);
        crd_system* s = ssp_system(*state, text);
        check_int(s->connection_count, 1);
        crd_system_destroy(s);
    }
}

static void elements_of_arrays_are_named_by_their_index(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(ELEMENTS(COMPONENT("a", CONNECTORS(REAL("y", "output")))
                         COMPONENT("b", CONNECTORS(REAL("u", "input") REAL("v", "input")))
                             SYSTEM("s", CONNECTORS(REAL("in", "input")) ELEMENTS(
                                             COMPONENT("c", CONNECTORS(REAL("u", "input"))))
                                             CONNECTIONS("<ssd:Connection startConnector='in' "
                                                         "startIndices='3' endElement='c' "
                                                         "endConnector='u'/>")))
                CONNECTIONS(
                    "<ssd:Connection startElement='a' startConnector='y' startIndices='2 1' "
                    "endElement='b' endConnector='u'/>"
                    "<ssd:Connection startElement='a' startConnector='y' endElement='b' "
                    "endConnector='v' startIndices='1' endIndices='4'/>" CONNECT("a", "y", "s",
                                                                                 "in"))));
    ssp_connection(s, "a.y[2,1]", "b.u");
    ssp_connection(s, "a.y[1]", "b.v[4]");
    ssp_connection(s, "a.y[3]", "s.c.u"); // the whole comes in, one element goes on
    crd_system_destroy(s);
    ssp_refused(*state,
                SSD(A_TO_B CONNECTIONS("<ssd:Connection startElement='a' startConnector='y' "
                                       "startIndices='0' endElement='b' endConnector='u'/>")),
                CRD_E_RANGE, "expected numbers from 1");
}

static void an_input_has_one_source(void** state)
{
    ssp_refused(*state,
                SSD(ELEMENTS(COMPONENT("a", CONNECTORS(REAL("y", "output") REAL("z", "output")))
                                 COMPONENT("b", CONNECTORS(REAL("u", "input"))))
                        CONNECTIONS(CONNECT("a", "y", "b", "u") CONNECT("b", "u", "a", "z"))),
                CRD_E_RANGE, "t.ssd:11: 'u' gets a second source, the first in t.ssd:10");
}

static void what_does_not_exist_is_named_with_the_nearest(void** state)
{
    ssp_refused(*state, SSD(A_TO_B CONNECTIONS(CONNECT("A", "y", "b", "u"))), CRD_E_RANGE,
                "t.ssd:10: there is no component or system 'A' here, did you mean 'a'?");
    ssp_refused(*state,
                SSD(ELEMENTS(COMPONENT("a", CONNECTORS(REAL("speed", "output")))
                                 COMPONENT("b", CONNECTORS(REAL("u", "input"))))
                        CONNECTIONS(CONNECT("a", "sped", "b", "u"))),
                CRD_E_RANGE, "component 'a' has no connector 'sped', did you mean 'speed'?");
    ssp_refused(*state, SSD(A_TO_B CONNECTIONS(INWARD("x", "b", "u"))), CRD_E_RANGE,
                "the system 'root' has no connector 'x'");
}

typedef struct pairing {
    const char *source, *target; // kind, of an element; with '^' of the system
    bool allowed;
} pairing;

// The standard's table of allowed connections, and what is not in it.
static const pairing pairings[] = {
    {"^structuralParameter", "^calculatedParameter", true},
    {"^structuralParameter", "^output", true},
    {"^structuralParameter", "^local", true},
    {"^parameter", "^calculatedParameter", true},
    {"^parameter", "^output", true},
    {"^parameter", "^local", true},
    {"^input", "^output", true},
    {"^input", "^local", true},
    {"^structuralParameter", "structuralParameter", true},
    {"^structuralParameter", "parameter", true},
    {"^structuralParameter", "input", true},
    {"^structuralParameter", "inout", true},
    {"^parameter", "parameter", true},
    {"^parameter", "input", true},
    {"^parameter", "inout", true},
    {"^input", "input", true},
    {"^input", "inout", true},
    {"constant", "structuralParameter", true},
    {"constant", "parameter", true},
    {"constant", "input", true},
    {"constant", "inout", true},
    {"calculatedParameter", "parameter", true},
    {"calculatedParameter", "input", true},
    {"calculatedParameter", "inout", true},
    {"output", "input", true},
    {"output", "inout", true},
    {"local", "input", true},
    {"local", "inout", true},
    {"inout", "input", true},
    {"constant", "^constant", true},
    {"constant", "^calculatedParameter", true},
    {"constant", "^output", true},
    {"constant", "^local", true},
    {"calculatedParameter", "^calculatedParameter", true},
    {"calculatedParameter", "^output", true},
    {"calculatedParameter", "^local", true},
    {"output", "^output", true},
    {"output", "^local", true},
    {"local", "^output", true},
    {"local", "^local", true},
    {"inout", "^output", true},
    {"inout", "^local", true},
    {"unspecified", "input", true},
    {"unspecified", "parameter", true},
    {"^input", "^calculatedParameter", false},
    {"^input", "parameter", false},
    {"^input", "structuralParameter", false},
    {"^parameter", "structuralParameter", false},
    {"calculatedParameter", "structuralParameter", false},
    {"output", "parameter", false},
    {"output", "^calculatedParameter", false},
    {"output", "^constant", false},
    {"calculatedParameter", "^constant", false},
    {"output", "output", false},
    {"input", "input", false},
    {"output", "^input", false},
    {"input", "^output", false},
    {"^input", "^input", false},
    {"^output", "^local", false},
    {"inout", "inout", false},
    {"parameter", "calculatedParameter", true}, // read backwards
};

static void the_table_of_allowed_connections_holds_in_both_spellings(void** state)
{
    for (size_t i = 0; i < sizeof pairings / sizeof *pairings; i++) {
        const pairing* p = &pairings[i];
        const bool inner[2] = {p->source[0] != '^', p->target[0] != '^'};
        const char* kinds[2] = {p->source + !inner[0], p->target + !inner[1]};
        for (int back = 0; back < 2; back++) {
            char text[4000], connector[2][200], ends[2][200];
            for (int k = 0; k < 2; k++) {
                const char* side = (k == 0) == (back == 0) ? "start" : "end";
                snprintf(connector[k], sizeof connector[k], "<ssd:Connector name='x%d' kind='%s'/>",
                         k, kinds[k]);
                const int n =
                    inner[k] ? snprintf(ends[k], sizeof ends[k], "%sElement='e%d' ", side, k) : 0;
                snprintf(ends[k] + n, sizeof ends[k] - (size_t)n, "%sConnector='x%d'", side, k);
            }
            snprintf(text, sizeof text,
                     SSD(CONNECTORS("%s%s") ELEMENTS(COMPONENT("e0", CONNECTORS("%s")) COMPONENT(
                         "e1", CONNECTORS("%s"))) CONNECTIONS("<ssd:Connection %s %s/>")),
                     inner[0] ? "" : connector[0], inner[1] ? "" : connector[1],
                     inner[0] ? connector[0] : "", inner[1] ? connector[1] : "", ends[0], ends[1]);
            crd_system* s = NULL;
            check_ok(crd_system_create(*state, &s));
            const crd_status st = crdi_ssp_read_text(s, text, strlen(text), "t.ssd");
            crd_system_destroy(s);
            if ((st == CRD_OK) != p->allowed) {
                fail_msg("%s to %s: %s", p->source, p->target, crd_error_text(*state));
            }
            if (!p->allowed) { check_status(st, CRD_E_RANGE); }
        }
    }
}

#define BUS(kind_in, kind_out)                                                                                                                                                           \
    SSD("<ssd:Elements>\n" COMPONENT("a", CONNECTORS(REAL("y", "output"))) COMPONENT(                                                                                                    \
        "b", CONNECTORS(REAL("u", "input"))) "<ssd:SignalDictionaryReference "                                                                                                           \
                                             "name='r' "                                                                                                                                 \
                                             "dictionary='bus'>" CONNECTORS(REAL("s", kind_in)) "</ssd:SignalDictionaryReference>\n" SYSTEM(                                             \
                                                 "deep",                                                                                                                                 \
                                                 "<ssd:Elements>" COMPONENT("c", CONNECTORS(REAL("u", "input"))) "<ssd:SignalDictionaryReference name='q' dictionary='bus'>" CONNECTORS( \
                                                     REAL(                                                                                                                               \
                                                         "s",                                                                                                                            \
                                                         kind_out)) "</"                                                                                                                 \
                                                                    "ssd:"                                                                                                               \
                                                                    "SignalDictionaryRefer"                                                                                              \
                                                                    "ence></"                                                                                                            \
                                                                    "ssd:"                                                                                                               \
                                                                    "Elements"                                                                                                           \
                                                                    ">" CONNECTIONS(CONNECT(                                                                                             \
                                                                        "q",                                                                                                             \
                                                                        "s",                                                                                                             \
                                                                        "c",                                                                                                             \
                                                                        "u"))) "</"                                                                                                      \
                                                                               "ssd:Elements>"                                                                                           \
                                                                               "\n" CONNECTIONS(                                                                                         \
                                                                                   CONNECT("a", "y", "r", "s") CONNECT(                                                                  \
                                                                                       "r",                                                                                              \
                                                                                       "s",                                                                                              \
                                                                                       "b",                                                                                              \
                                                                                       "u")) "<ss"                                                                                       \
                                                                                             "d:"                                                                                        \
                                                                                             "Sig"                                                                                       \
                                                                                             "nal"                                                                                       \
                                                                                             "Dic"                                                                                       \
                                                                                             "tio"                                                                                       \
                                                                                             "nar"                                                                                       \
                                                                                             "ies"                                                                                       \
                                                                                             "><"                                                                                        \
                                                                                             "ssd"                                                                                       \
                                                                                             ":Si"                                                                                       \
                                                                                             "gna"                                                                                       \
                                                                                             "lDi"                                                                                       \
                                                                                             "cti"                                                                                       \
                                                                                             "ona"                                                                                       \
                                                                                             "ry "                                                                                       \
                                                                                             "nam"                                                                                       \
                                                                                             "e='"                                                                                       \
                                                                                             "bus"                                                                                       \
                                                                                             "'><"                                                                                       \
                                                                                             "ssb"                                                                                       \
                                                                                             ":Si"                                                                                       \
                                                                                             "gna"                                                                                       \
                                                                                             "lDi"                                                                                       \
                                                                                             "cti"                                                                                       \
                                                                                             "ona"                                                                                       \
                                                                                             "ry "                                                                                       \
                                                                                             "ver"                                                                                       \
                                                                                             "sio"                                                                                       \
                                                                                             "n='"                                                                                       \
                                                                                             "1."                                                                                        \
                                                                                             "0'>"                                                                                       \
                                                                                             "<ss"                                                                                       \
                                                                                             "b:"                                                                                        \
                                                                                             "Dic"                                                                                       \
                                                                                             "tio"                                                                                       \
                                                                                             "nar"                                                                                       \
                                                                                             "yEn"                                                                                       \
                                                                                             "try"                                                                                       \
                                                                                             " na"                                                                                       \
                                                                                             "me="                                                                                       \
                                                                                             "'s'"                                                                                       \
                                                                                             "><"                                                                                        \
                                                                                             "ssc"                                                                                       \
                                                                                             ":Re"                                                                                       \
                                                                                             "al "                                                                                       \
                                                                                             "uni"                                                                                       \
                                                                                             "t='"                                                                                       \
                                                                                             "km/"                                                                                       \
                                                                                             "h'/"                                                                                       \
                                                                                             ">"                                                                                         \
                                                                                             "</"                                                                                        \
                                                                                             "ssb"                                                                                       \
                                                                                             ":Di"                                                                                       \
                                                                                             "cti"                                                                                       \
                                                                                             "ona"                                                                                       \
                                                                                             "ryE"                                                                                       \
                                                                                             "ntr"                                                                                       \
                                                                                             "y><"                                                                                       \
                                                                                             "/ss"                                                                                       \
                                                                                             "b:"                                                                                        \
                                                                                             "Sig"                                                                                       \
                                                                                             "nal"                                                                                       \
                                                                                             "Dic"                                                                                       \
                                                                                             "tio"                                                                                       \
                                                                                             "nar"                                                                                       \
                                                                                             "y><"                                                                                       \
                                                                                             "/ss"                                                                                       \
                                                                                             "d:"                                                                                        \
                                                                                             "Sig"                                                                                       \
                                                                                             "nal"                                                                                       \
                                                                                             "Dic"                                                                                       \
                                                                                             "tio"                                                                                       \
                                                                                             "nar"                                                                                       \
                                                                                             "y>"                                                                                        \
                                                                                             "</"                                                                                        \
                                                                                             "ssd"                                                                                       \
                                                                                             ":Si"                                                                                       \
                                                                                             "gna"                                                                                       \
                                                                                             "lDi"                                                                                       \
                                                                                             "cti"                                                                                       \
                                                                                             "ona"                                                                                       \
                                                                                             "rie"                                                                                       \
                                                                                             "s>"                                                                                        \
                                                                                             "\n")

static void a_signal_dictionary_carries_one_source_to_many(void** state)
{
    crd_system* s = ssp_system(*state, BUS("inout", "output"));
    check_int(s->connection_count, 2);
    const crd_connection_spec* c = ssp_connection(s, "a.y", "deep.c.u");
    check_int(c->via_count, 1);
    check_text(c->via[0].unit, "km/h");
    ssp_connection(s, "a.y", "b.u");
    crd_system_destroy(s);
}

static void a_signal_of_a_dictionary_has_one_source(void** state)
{
    ssp_refused(
        *state,
        SSD("<ssd:Elements>" COMPONENT("a", CONNECTORS(REAL("y", "output"))) COMPONENT(
            "b",
            CONNECTORS(REAL("y", "output"))) "<ssd:"
                                             "SignalDictionaryReference "
                                             "name='r' "
                                             "dictionary='bus'"
                                             ">" CONNECTORS(REAL(
                                                 "s", "i"
                                                      "n"
                                                      "o"
                                                      "u"
                                                      "t")) "</ssd:SignalDictionaryReference></"
                                                            "ssd:Elements>" CONNECTIONS(
                                                                CONNECT("a", "y", "r", "s") CONNECT(
                                                                    "r", "s", "b", "y")) "<ssd:"
                                                                                         "SignalDi"
                                                                                         "ctionari"
                                                                                         "es><ssd:"
                                                                                         "SignalDi"
                                                                                         "ctionary"
                                                                                         " name='"
                                                                                         "bus'><"
                                                                                         "ssb:"
                                                                                         "SignalDi"
                                                                                         "ctionary"
                                                                                         " "
                                                                                         "version="
                                                                                         "'1.0'><"
                                                                                         "ssb:"
                                                                                         "Dictiona"
                                                                                         "ryEntry "
                                                                                         "name='s'"
                                                                                         "><ssc:"
                                                                                         "Real/></"
                                                                                         "ssb:"
                                                                                         "Dictiona"
                                                                                         "ryEntry>"
                                                                                         "</"
                                                                                         "ssb:"
                                                                                         "SignalDi"
                                                                                         "ctionary"
                                                                                         "></"
                                                                                         "ssd:"
                                                                                         "SignalDi"
                                                                                         "ctionary"
                                                                                         "></"
                                                                                         "ssd:"
                                                                                         "SignalDi"
                                                                                         "ctionari"
                                                                                         "es>"),
        CRD_E_RANGE, "'s' gets a second source");
}

static void dictionaries_that_do_not_exist_are_refused(void** state)
{
    ssp_refused(*state, SSD(ELEMENTS("<ssd:SignalDictionaryReference name='r' dictionary='bus'/>")),
                CRD_E_RANGE, "there is no signal dictionary 'bus'");
}

static void rings_without_a_component_are_refused(void** state)
{
    // out -> in through the outer system, in -> out through the inner one
    ssp_refused(*state,
                SSD(ELEMENTS(
                    SYSTEM("s", CONNECTORS(REAL("in", "input") REAL("out", "output"))
                                    ELEMENTS(COMPONENT("b", CONNECTORS(REAL("u", "input"))))
                                        CONNECTIONS("<ssd:Connection startConnector='in' "
                                                    "endConnector='out'/>" INWARD("in", "b", "u"))))
                        CONNECTIONS(CONNECT("s", "out", "s", "in"))),
                CRD_E_RANGE, "ring of connectors");
}

static void a_component_without_a_source_is_left_out(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(ELEMENTS("<ssd:Component name='a'>" CONNECTORS(
            REAL("y", "output")) "</ssd:Component>" COMPONENT("b", CONNECTORS(REAL("u", "input"))))
                CONNECTIONS(CONNECT("a", "y", "b", "u"))));
    check_int(s->unit_count, 1);
    check_int(s->connection_count, 0);
    check_int(said.warnings, 1);
    check_contains(said.last[CRD_LOG_WARNING], "t.ssd:4: component 'a' has no source");
    crd_system_destroy(s);
}

static void a_system_may_be_there_several_times(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(ELEMENTS("<ssd:System name='one' id='wheel'>" ELEMENTS(COMPONENT(
            "a", CONNECTORS(REAL("y", "output"))) COMPONENT("b", CONNECTORS(REAL("u", "input"))))
                         CONNECTIONS(CONNECT(
                             "a", "y", "b",
                             "u")) "</ssd:System>"
                                   "<ssd:Component name='two' type='application/x-ssp-definition' "
                                   "source='#wheel'/>")));
    check_int(s->unit_count, 4);
    ssp_connection(s, "one.a.y", "one.b.u");
    ssp_connection(s, "two.a.y", "two.b.u");
    crd_system_destroy(s);
    ssp_refused(*state,
                SSD(ELEMENTS("<ssd:System name='one' id='wheel'>" ELEMENTS(
                    "<ssd:Component name='two' type='application/x-ssp-definition' "
                    "source='#wheel'/>") "</ssd:System>")),
                CRD_E_FORMAT, "t.ssd:5: component 'two' contains itself");
}

static void implementations_choose_the_interface(void** state)
{
    crd_system* s = ssp_system(
        *state,
        SSD(ELEMENTS("<ssd:Component name='a' source='a.fmu' implementation='any'/>"
                     "<ssd:Component name='b' source='a.fmu' implementation='CoSimulation'/>"
                     "<ssd:Component name='c' source='a.fmu' "
                     "implementation='ModelExchange'/>")));
    check_int(s->units[0].interface, CRD_INTERFACE_AUTO);
    check_int(s->units[1].interface, CRD_INTERFACE_COSIMULATION);
    check_int(s->units[2].interface, CRD_INTERFACE_MODEL_EXCHANGE);
    check_int(s->units[0].source, CRD_UNIT_FMU);
    crd_system_destroy(s);
    s = ssp_system(*state, SSD(ELEMENTS("<ssd:Component name='a' source='a.csv' "
                                        "type='application/table'/>"))); // OMSimulator's
    check_int(s->units[0].source, CRD_UNIT_REPLAY);
    crd_system_destroy(s);
    ssp_refused(*state,
                SSD(ELEMENTS("<ssd:Component name='a' source='a.fmu' "
                             "implementation='ScheduledExecution'/>")),
                CRD_E_UNSUPPORTED, "ScheduledExecution is not supported");
    ssp_refused(*state,
                SSD(ELEMENTS("<ssd:Component name='a' source='a.mo' type='text/x-modelica'/>")),
                CRD_E_UNSUPPORTED, "t.ssd:4: component 'a' of type 'text/x-modelica', expected");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, ssp_set_up, ssp_tear_down)
    const struct CMUnitTest tests[] = {
        T(a_connection_leads_from_output_to_input_whichever_is_the_start),
        T(default_and_prefixed_namespaces_are_alike),
        T(chains_through_systems_become_one_connection_with_stages),
        T(connectors_without_unit_and_transformation_leave_no_trace),
        T(a_system_may_pass_a_signal_straight_through),
        T(units_of_the_connectors_count_whatever_the_fmus_say),
        T(zero_points_of_units_are_left_to_the_run),
        T(the_unit_of_one_end_is_a_stage_of_its_own),
        T(a_unit_that_nobody_knows_is_as_none),
        T(suppressed_conversion_leaves_the_numbers),
        T(conversion_suppressed_into_no_unit_does_not_come_back),
        T(changes_on_the_way_apply_one_after_the_other),
        T(units_that_do_not_convert_are_refused),
        T(values_are_mapped),
        T(connectors_of_all_types_are_known),
        T(elements_of_arrays_are_named_by_their_index),
        T(an_input_has_one_source),
        T(what_does_not_exist_is_named_with_the_nearest),
        T(the_table_of_allowed_connections_holds_in_both_spellings),
        T(a_signal_dictionary_carries_one_source_to_many),
        T(a_signal_of_a_dictionary_has_one_source),
        T(dictionaries_that_do_not_exist_are_refused),
        T(rings_without_a_component_are_refused),
        T(a_component_without_a_source_is_left_out),
        T(a_system_may_be_there_several_times),
        T(implementations_choose_the_interface),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
