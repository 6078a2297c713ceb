// What the schemas forbid is refused with its line.
#include "ssp_test.h"

typedef struct wrong {
    const char *text, *part;
} wrong;

static void refuse_all(crd_context* ctx, crd_ssp_kind kind, const wrong* rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const crd_status st = crd_ssp_parse(ctx, kind, rows[i].text, strlen(rows[i].text), "t.xml");
        if (st == CRD_OK) { fail_msg("not refused: %s", rows[i].part); }
        check_status(st, CRD_E_FORMAT);
        check_contains(crd_error_text(ctx), rows[i].part);
    }
}

static void wrong_descriptions_are_refused(void** state)
{
    static const wrong rows[] = {
        {SSD("<ssd:Elephants/>"), "t.xml:3: unknown element 'Elephants' in System, did you mean "
                                  "'Elements'?"},
        {SSD("<Elements/>"), "t.xml:3: Elements in System has the namespace '', expected"},
        {SSD("<ssc:Elements/>"), "Elements in System has the namespace "
                                 "'http://ssp-standard.org/SSP1/SystemStructureCommon', expected"},
        {SSD("<ssd:Connectors>\n<ssd:Connector name='a' kindd='input'/></ssd:Connectors>"),
         "t.xml:4: Connector has an unknown attribute 'kindd', did you mean 'kind'?"},
        {SSD("<ssd:Connectors><ssd:Connector name='a'/></ssd:Connectors>"),
         "t.xml:3: Connector lacks the attribute 'kind'"},
        {SSD("<ssd:Connectors><ssd:Connector name='a' kind='Input'/></ssd:Connectors>"),
         "Connector kind = 'Input', expected one of: input output parameter"},
        {SSD("<ssd:Connectors><ssd:Connector name='a' kind='|'/></ssd:Connectors>"), "kind = '|'"},
        {SSD("<ssd:Connectors><ssd:Connector name='' kind='input'/></ssd:Connectors>"),
         "Connector 'name' is empty"},
        {SSD(CONNECTORS(REAL("a", "input") "\n" REAL("a", "output"))),
         "t.xml:4: Connector name = 'a' is there twice, first in line 3"},
        {SSD(ELEMENTS(COMPONENT("a", "") SYSTEM("a", ""))),
         "t.xml:5: System name = 'a' is there twice, first in line 4"},
        {SSD(CONNECTORS(CONNECTOR("a", "input", "<ssc:Real/><ssc:Integer/>"))),
         "Connector has 2 types or transformations, expected one"},
        {SSD(CONNECTORS(CONNECTOR("a", "input", "<ssc:Integer unit='m'/>"))),
         "Integer has an unknown attribute 'unit'"},
        {SSD(CONNECTORS("") CONNECTORS("")), "a second Connectors in System, expected one"},
        {SSD("<ssd:SystemGeometry x1='0' y1='a' x2='1' y2='1'/>"),
         "SystemGeometry y1 = 'a', expected a number"},
        {SSD(CONNECTIONS("<ssd:Connection startConnector='a'/>")),
         "Connection lacks the attribute 'endConnector'"},
        {SSD(CONNECTIONS("<ssd:Connection startConnector='a' endConnector='b' "
                         "suppressUnitConversion='yes'/>")),
         "suppressUnitConversion = 'yes', expected true or false"},
        {SSD(CONNECTIONS("<ssd:Connection startConnector='a' endConnector='b' "
                         "startIndices='1 -2'/>")),
         "startIndices = '1 -2', expected whole numbers from 0"},
        {SSD_WITH("", "<ssd:Units><ssc:Unit name='m'/></ssd:Units>"),
         "Unit lacks the element 'BaseUnit'"},
        {SSD_WITH("", "<ssd:Units><ssc:Unit name='m'><ssc:BaseUnit m='300'/></ssc:Unit>"
                      "</ssd:Units>"),
         "BaseUnit m = '300', expected a whole number from -128 to 127"},
        {SSD_WITH("", "<ssd:DefaultExperiment stopTime='1 s'/>"),
         "DefaultExperiment stopTime = '1 s', expected a number"},
        {SSD_WITH("", "<ssd:Annotations><ssc:Annotation/></ssd:Annotations>"),
         "Annotation lacks the attribute 'type'"},
        {"<ssd:SystemStructureDescription version='1.0' name='x'" SPACES "/>",
         "t.xml:1: SystemStructureDescription lacks the element 'System'"},
        {"<ssv:ParameterSet version='1.0' name='x'" SPACES "/>",
         "t.xml:1: the root is 'ParameterSet', expected SystemStructureDescription"},
        {"<SystemStructureDescription/>", "the root SystemStructureDescription has the namespace "
                                          "'', expected"},
        {SSD(BINDINGS(BINDING(VALUES("<ssv:Parameter name='a'/>")))),
         "t.xml:4: Parameter lacks a type"}, // inline sets are looked at as well
    };
    refuse_all(*state, CRD_SSP_SSD, rows, sizeof rows / sizeof *rows);
}

#define SSV(list)                                                                                  \
    "<ssv:ParameterSet version='2.0' name='x'" SPACES "><ssv:Parameters>\n" list                   \
    "</ssv:Parameters></ssv:ParameterSet>"
#define P(content) "<ssv:Parameter name='p'>" content "</ssv:Parameter>"

static void wrong_parameter_sets_are_refused(void** state)
{
    static const wrong rows[] = {
        {SSV(P("<ssv:Real value='1,5'/>")), "t.xml:2: Real value = '1,5', expected numbers"},
        {SSV(P("<ssv:Real/>")), "Real lacks the attribute 'value'"},
        {SSV(P("<ssv:Integer value='1.5'/>")), "Integer value = '1.5', expected whole numbers"},
        {SSV(P("<ssv:UInt8 value='256'/>")), "UInt8 value = '256', expected whole numbers from 0 "
                                             "to 255"},
        {SSV(P("<ssv:Int8 value='-129'/>")), "from -128 to 127"},
        {SSV(P("<ssv:UInt64 value='-1'/>")), "from 0 to 18446744073709551615"},
        {SSV(P("<ssv:UInt64 value='18446744073709551616'/>")), "from 0 to 18446744073709551615"},
        {SSV(P("<ssv:Boolean value='True'/>")), "Boolean value = 'True', expected true or false"},
        {SSV(P("<ssv:Binary value='abc'/>")), "expected pairs of hexadecimal digits"},
        {SSV(P("<ssv:String/>")), "String needs the attribute 'value' or elements 'Value'"},
        {SSV(P("<ssv:String value='a'><ssv:Value value='b'/></ssv:String>")), "and not both"},
        {SSV(P("<ssv:Real value='1'/><ssv:Real value='2'/>")), "Parameter has 2 types"},
        {SSV("<ssv:Parameter><ssv:Real value='1'/></ssv:Parameter>"),
         "Parameter lacks the attribute 'name'"},
        {SSV("<ssv:Parameter name='a'><ssc:Real value='1'/></ssv:Parameter>"),
         "Real in Parameter has the namespace"},
        {"<ssv:ParameterSet version='2.0' name='x'" SPACES "/>", "lacks the element 'Parameters'"},
        {"<ssv:ParameterSet name='x'" SPACES "><ssv:Parameters/></ssv:ParameterSet>",
         "lacks the attribute 'version'"},
    };
    refuse_all(*state, CRD_SSP_SSV, rows, sizeof rows / sizeof *rows);
}

#define SSM(list) "<ssm:ParameterMapping version='1.0'" SPACES ">\n" list "</ssm:ParameterMapping>"

static void wrong_mappings_are_refused(void** state)
{
    static const wrong rows[] = {
        {SSM("<ssm:MappingEntry source='a' target='b'><ssc:LinearTransformation factor='1 2'/>"
             "</ssm:MappingEntry>"),
         "t.xml:2: LinearTransformation factor = '1 2', expected a number"},
        {SSM("<ssm:MappingEntry source='a' target='b'><ssc:LinearTransformation offset=' '/>"
             "</ssm:MappingEntry>"),
         "LinearTransformation offset = ' ', expected a number"},
        {SSM("<ssm:MappingEntry source='a'/>"), "t.xml:2: MappingEntry lacks the attribute "
                                                "'target'"},
        {SSM("<ssm:MappingEntry source='a' target='b'/><ssm:MappingEntry source='c' target='b'/>"),
         "MappingEntry target = 'b' is there twice"},
        {SSM("<ssm:MappingEntry source='a' target='b'><ssc:LinearTransformation factor='x'/>"
             "</ssm:MappingEntry>"),
         "LinearTransformation factor = 'x', expected a number"},
        {SSM("<ssm:MappingEntry source='a' target='b'><ssc:BooleanMappingTransformation>"
             "<ssc:MapEntry source='true' target='2'/></ssc:BooleanMappingTransformation>"
             "</ssm:MappingEntry>"),
         "MapEntry target = '2', expected true or false"},
        {SSM("<ssm:MappingEntry source='a' target='b'><ssc:IntegerMappingTransformation>"
             "<ssc:MapEntry source='1' target='2'/><ssc:MapEntry source='1' target='3'/>"
             "</ssc:IntegerMappingTransformation></ssm:MappingEntry>"),
         "MapEntry source = '1' is there twice"},
        {SSM("<ssm:MappingEntry source='a' target='b'><ssc:LinearTransformation/>"
             "<ssc:BooleanMappingTransformation/></ssm:MappingEntry>"),
         "has 2 types or transformations"},
    };
    refuse_all(*state, CRD_SSP_SSM, rows, sizeof rows / sizeof *rows);
}

static void the_first_problem_is_the_failure_and_the_others_are_logged(void** state)
{
    const char* text = SSD(CONNECTORS("<ssd:Connector name='a' kind='x'/>\n"
                                      "<ssd:Connector name='b' kind='y'/>\n<ssd:Wrong/>"));
    check_status(crd_ssp_parse(*state, CRD_SSP_SSD, text, strlen(text), "t.xml"), CRD_E_FORMAT);
    check_int(said.errors, 2);
    check_contains(crd_error_text(*state), "t.xml:3:");
    check_contains(said.last[CRD_LOG_ERROR], "t.xml:5: unknown element 'Wrong'");
}

static void the_list_of_problems_ends(void** state)
{
    crd_text t;
    crd_text_init(&t, *state);
    crdi_text_add(&t, "<ssm:ParameterMapping version='1.0'%s>", SPACES);
    for (int i = 0; i < 5000; i++) {
        crdi_text_add(&t, "<ssm:MappingEntry/>");
    }
    crdi_text_add(&t, "</ssm:ParameterMapping>");
    check_status(crd_ssp_parse(*state, CRD_SSP_SSM, t.data, t.length, "t.xml"), CRD_E_FORMAT);
    check_int(said.errors, 100); // 99 more, and that there are more
    crd_text_clear(&t);
}

static void other_versions_are_read_with_a_warning(void** state)
{
    static const struct {
        const char* version;
        int warnings;
    } rows[] = {{"1.0", 0}, {"2.0", 0}, {"1.0-beta", 1}, {"3.0", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1000];
        said.warnings = 0;
        snprintf(text, sizeof text, "<ssm:ParameterMapping version='%s'%s/>", rows[i].version,
                 SPACES);
        check_ok(crd_ssp_parse(*state, CRD_SSP_SSM, text, strlen(text), "t.xml"));
        check_int(said.warnings, rows[i].warnings);
    }
}

// In the manner of what OMSimulator writes.
static void foreign_elements_attributes_and_annotations_pass(void** state)
{
    const char* text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<ssd:SystemStructureDescription" SPACES
        " xmlns:oms='urn:oms' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' "
        "xsi:schemaLocation='a b' name='m' version='1.0' generationTool='OMSimulator v3' "
        "generationDateAndTime='2026-03-04T11:56:31'>\n"
        "<ssd:System name='root'><ssd:Elements><ssd:System name='wc'>"
        "<ssd:ElementGeometry x1='-10' y1='-1e1' x2='10' y2='10' rotation='90' iconSource='a.png' "
        "iconRotation='0' iconFlip='false' iconFixedAspectRatio='false'/>"
        "<ssd:Elements><ssd:Component name='A' type='application/x-fmu-sharedlibrary' "
        "source='resources/0001_A.fmu'><ssd:Connectors><ssd:Connector name='y' kind='output'>"
        "<ssc:Real unit='m/s'/><ssd:ConnectorGeometry x='1.000000' y='0.500000'/></ssd:Connector>"
        "</ssd:Connectors><ssd:Annotations><ssc:Annotation type='org.openmodelica'>"
        "<oms:Annotations><oms:SimulationInformation><oms:VariableStepSolver "
        "description='cvode'/></oms:SimulationInformation></oms:Annotations></ssc:Annotation>"
        "</ssd:Annotations></ssd:Component></ssd:Elements><ssd:Annotations>"
        "<ssc:Annotation type='org.openmodelica'><oms:Annotations/></ssc:Annotation>"
        "</ssd:Annotations></ssd:System></ssd:Elements><ssd:Connections/>"
        "<ssd:SystemGeometry x1='0' y1='0' x2='1' y2='1'/><ssd:GraphicalElements><ssd:Note x1='0' "
        "y1='0' x2='1' y2='1' text='hello'/></ssd:GraphicalElements></ssd:System>\n"
        "<ssd:Enumerations><ssc:Enumeration name='e'><ssc:Item name='a' value='1'/>"
        "</ssc:Enumeration></ssd:Enumerations><ssd:Units><ssc:Unit name='m/s'><ssc:BaseUnit m='1' "
        "s='-1'/></ssc:Unit></ssd:Units>"
        "<ssd:DefaultExperiment startTime='0.500000' stopTime='2.5'><ssd:Annotations>"
        "<ssc:Annotation type='org.openmodelica'><oms:Annotations><oms:SimulationInformation "
        "resultFile='r.mat'/></oms:Annotations></ssc:Annotation></ssd:Annotations>"
        "</ssd:DefaultExperiment></ssd:SystemStructureDescription>";
    crd_system* s = ssp_system(*state, text);
    check_int(said.errors + said.warnings, 0);
    check_text(s->title, "m");
    check_text(s->units[0].name, "wc.A");
    check_near(s->run.start, 0.5, 0);
    check_near(s->run.stop, 2.5, 0);
    check(isnan(s->run.step));
    check_int(s->note_count, 3); // of the experiment, of the nested system and of the component
    check_int(s->notes[0].unit, -1);
    check_text(s->notes[0].system, "");
    check_contains(s->notes[0].xml, "resultFile='r.mat'");
    const int component = s->notes[1].unit < 0 ? 2 : 1;
    check_int(s->notes[component].unit, 0);
    check_text(s->notes[component].type, "org.openmodelica");
    check_int(s->notes[3 - component].unit, -1);
    check_text(s->notes[3 - component].system, "wc");
    crdi_xml* x = NULL; // a document of its own, with all namespaces
    check_ok(crdi_xml_parse(*state, s->notes[component].xml, strlen(s->notes[component].xml),
                            "note", &x));
    check(crdi_xml_is(x->root, CRDI_SSC, "Annotation"));
    check(crdi_xml_is(x->root->first, "urn:oms", "Annotations"));
    crdi_xml_destroy(x);
    crd_system_destroy(s);
}

static void metadata_and_signatures_of_version_2_pass(void** state)
{
    const char* text = SSD_WITH(
        "", "<ssc:MetaData kind='general' type='application/x-srmd-meta-data' source='a.srmd' "
            "sourceBase='file'><ssc:Content><any xmlns='urn:x'/></ssc:Content><ssc:Signature "
            "role='authenticity' type='x'/></ssc:MetaData>");
    check_ok(crd_ssp_parse(*state, CRD_SSP_SSD, text, strlen(text), "t.xml"));
}

static void times_that_make_no_sense_are_refused(void** state)
{
    ssp_refused(*state, SSD_WITH("", "<ssd:DefaultExperiment startTime='2' stopTime='1'/>"),
                CRD_E_RANGE, "t.ssd:4: stopTime = 1 comes before startTime = 2");
    ssp_refused(*state, SSD_WITH("", "<ssd:DefaultExperiment stopTime='INF'/>"), CRD_E_RANGE,
                "stopTime = INF, expected a time");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, ssp_set_up, ssp_tear_down)
    const struct CMUnitTest tests[] = {
        T(wrong_descriptions_are_refused),
        T(wrong_parameter_sets_are_refused),
        T(wrong_mappings_are_refused),
        T(the_first_problem_is_the_failure_and_the_others_are_logged),
        T(the_list_of_problems_ends),
        T(other_versions_are_read_with_a_warning),
        T(foreign_elements_attributes_and_annotations_pass),
        T(metadata_and_signatures_of_version_2_pass),
        T(times_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
