// Files: packages, variants, nested packages, sources, our annotation; what is hostile is refused.
#include "allocations.h"
#include "ssp_test.h"

#include <unistd.h>

#define FOLDER TEST_BUILD_DIR "/test_ssp_package"
#define PACKAGE FOLDER "/p.ssp"

static int set_up(void** state)
{
    (void)crdi_scratch_remove(FOLDER);
    mkdir(FOLDER, 0777);
    mkdir(FOLDER "/sub", 0777);
    put_file(FOLDER "/a.fmu", "an FMU");
    put_file(FOLDER "/sub/b c.fmu", "another");
    return ssp_set_up(state);
}

static int tear_down(void** state)
{
    (void)crdi_scratch_remove(FOLDER);
    return ssp_tear_down(state);
}

static crd_system* load(crd_context* ctx, const char* path, const char* variant)
{
    crd_system* s = NULL;
    const crd_status st = crd_ssp_load(ctx, path, variant, &s);
    if (st < 0) { fail_msg("%s", crd_error_text(ctx)); }
    return s;
}

static void refused(crd_context* ctx, const char* path, const char* variant, crd_status want,
                    const char* part)
{
    crd_system* s = NULL;
    const crd_status st = crd_ssp_load(ctx, path, variant, &s);
    check(!s);
    check_contains(crd_error_text(ctx), part);
    check_status(st, want);
}

#define ONE(source) SSD(ELEMENTS("<ssd:Component name='a' source='" source "'/>"))

// ---- sources -----------------------------------------------------------------------------------

static void sources_are_relative_to_the_file_and_decoded(void** state)
{
    static const char* const sources[] = {"../a.fmu",
                                          "b%20c.fmu",
                                          "./b c.fmu",
                                          "file:b%20c.fmu",
                                          "file://" FOLDER "/a.fmu",
                                          "..\\a.fmu",
                                          "file:" FOLDER "/sub/../a.fmu",
                                          FOLDER "/a.fmu"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        char text[2000];
        snprintf(text, sizeof text, ONE("%s"), sources[i]);
        put_file(FOLDER "/sub/s.ssd", text);
        crd_system* s = load(*state, FOLDER "/sub/s.ssd", NULL);
        check_int(access(s->units[0].path, R_OK), 0);
        check(!s->scratch);
        check_text(s->base, FOLDER "/sub/s.ssd");
        check_text(s->file, FOLDER "/sub/s.ssd");
        crd_system_destroy(s);
    }
}

static void missing_files_are_named_with_their_line(void** state)
{
    put_file(FOLDER "/s.ssd", ONE("sub/x.fmu"));
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_NOT_FOUND,
            FOLDER "/s.ssd:4: component 'a': there is no file '");
    refused(*state, FOLDER "/none.ssd", NULL, CRD_E_NOT_FOUND, FOLDER "/none.ssd: no such file");
    put_file(FOLDER "/s.ssd", SSD(BINDINGS("<ssd:ParameterBinding source='x.ssv'/>")));
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_NOT_FOUND, "s.ssd:3: parameter binding: there is");
    put_file(FOLDER "/s.ssd", ONE("http://example.org/a.fmu"));
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_UNSUPPORTED, "only files are read");
    put_file(FOLDER "/s.ssd", ONE("file://host/a.fmu"));
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_UNSUPPORTED, "on another machine");
    put_file(FOLDER "/s.ssd", ONE("a%00.fmu"));
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_FORMAT, "a zero byte");
}

static void what_is_no_xml_is_refused(void** state)
{
    put_file(FOLDER "/s.ssd", "PK not at all");
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_FORMAT, FOLDER "/s.ssd:1: not well-formed");
    put_file(PACKAGE, "no archive");
    refused(*state, PACKAGE, NULL, CRD_E_FORMAT, PACKAGE);
}

static void a_file_that_is_too_large_is_refused_unread(void** state)
{
    put_file(FOLDER "/s.ssd", "");
    check_int(truncate(FOLDER "/s.ssd", (off_t)65 << 20), 0); // takes no room on the disk
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_FORMAT, "s.ssd: larger than 64 MiB, expected");
    check_status(crd_ssp_describe(*state, FOLDER "/s.ssd", NULL, &(crd_ssp_info*){NULL}),
                 CRD_E_FORMAT);
    unlink(FOLDER "/s.ssd");
    check_int(mkfifo(FOLDER "/s.ssd", 0600), 0); // nobody writes into it
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_FORMAT, "s.ssd: not a regular file");
}

// One long text for many variables.
static void values_that_multiply_are_refused(void** state)
{
    crd_text t;
    crd_text_init(&t, *state);
    crdi_text_add(
        &t,
        "<ssd:SystemStructureDescription version='1.0' name='t'%s><ssd:System name='r'>"
        "<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues>"
        "<ssv:ParameterSet version='2.0' name='v'><ssv:Parameters><ssv:Parameter name='x'>"
        "<ssv:String value='%0*d'/></ssv:Parameter></ssv:Parameters></ssv:ParameterSet>"
        "</ssd:ParameterValues><ssd:ParameterMapping><ssm:ParameterMapping "
        "version='1.0'>",
        SPACES, 4 << 20, 0);
    for (int i = 0; i < 100; i++) {
        crdi_text_add(&t, "<ssm:MappingEntry source='x' target='a.x%d'/>", i);
    }
    crdi_text_add(&t, "</ssm:ParameterMapping></ssd:ParameterMapping></ssd:ParameterBinding>"
                      "</ssd:ParameterBindings><ssd:Elements><ssd:Component name='a' "
                      "source='a.fmu'/></ssd:Elements></ssd:System>"
                      "</ssd:SystemStructureDescription>");
    ssp_refused(*state, t.data, CRD_E_FORMAT, "take more than 256 MB");
    crd_text_clear(&t);
}

// ---- packages ----------------------------------------------------------------------------------

static void a_package_is_unpacked_and_goes_with_the_system(void** state)
{
    put_archive(*state, PACKAGE,
                (packed[]){{"SystemStructure.ssd", ONE("resources/a.fmu")},
                           {"resources/a.fmu", "fmu"},
                           {NULL}});
    crd_system* s = load(*state, PACKAGE, NULL);
    check_int(s->unit_count, 1);
    check_int(access(s->units[0].path, R_OK), 0);
    check_text(s->units[0].place.file, PACKAGE "/SystemStructure.ssd");
    check_int(s->units[0].place.line, 4);
    char path[1000];
    snprintf(path, sizeof path, "%s", s->units[0].path);
    check(s->scratch && strncmp(path, s->scratch, strlen(s->scratch)) == 0);
    crd_system_destroy(s);
    check(access(path, F_OK) != 0);
}

static void a_folder_is_a_package_as_well(void** state)
{
    put_file(FOLDER "/SystemStructure.ssd", ONE("sub/b%20c.fmu"));
    crd_system* s = load(*state, FOLDER "/", NULL);
    check(!s->scratch);
    check_text(s->units[0].place.file, FOLDER "/SystemStructure.ssd");
    crd_system_destroy(s);
}

static void a_variant_is_another_ssd_of_the_root(void** state)
{
    const packed files[] = {
        {"SystemStructure.ssd", ONE("a.fmu")},
        {"Winter.ssd",
         SSD(ELEMENTS(COMPONENT("a", "") "<ssd:Component name='b' source='a.fmu'/>"))},
        {"deep/Hidden.ssd", ONE("a.fmu")},
        {"a.fmu", ""},
        {NULL}};
    put_archive(*state, PACKAGE, files);
    static const char* const names[] = {"Winter", "Winter.ssd"};
    for (int i = 0; i < 2; i++) {
        crd_system* s = load(*state, PACKAGE, names[i]);
        check_int(s->unit_count, 2);
        crd_system_destroy(s);
    }
    refused(*state, PACKAGE, "winter", CRD_E_NOT_FOUND,
            PACKAGE ": there is no variant winter in it, did you mean 'Winter.ssd'?; there are "
                    "SystemStructure.ssd, Winter.ssd");
    refused(*state, PACKAGE, "Hidden", CRD_E_NOT_FOUND, "there is no variant Hidden");
    put_file(FOLDER "/One.ssd", ONE("a.fmu"));
    put_file(FOLDER "/Two.ssd", SSD(""));
    crd_system* s = load(*state, FOLDER "/Two.ssd", "One"); // a sibling
    check_int(s->unit_count, 1);
    crd_system_destroy(s);
    refused(*state, FOLDER, NULL, CRD_E_NOT_FOUND,
            "there is no SystemStructure.ssd in it; there "
            "are One.ssd, Two.ssd");
    put_archive(*state, PACKAGE, (packed[]){{"a.fmu", ""}, {NULL}});
    refused(*state, PACKAGE, NULL, CRD_E_NOT_FOUND, "there is no SystemStructure.ssd in it");
}

#define NEST(type, source, more)                                                                   \
    SSD(ELEMENTS("<ssd:Component name='n' type='application/x-ssp-" type "' source='" source       \
                 "'>" more "</ssd:Component>" COMPONENT("a", CONNECTORS(REAL("y", "output"))))     \
            CONNECTIONS(CONNECT("a", "y", "n", "in")))
#define INNER                                                                                      \
    SSD(CONNECTORS(REAL("in", "input"))                                                            \
            BINDINGS(BINDING(VALUES(VALUE("b.k", "1") VALUE("b.l", "1"))))                         \
                ELEMENTS(COMPONENT("b", CONNECTORS(REAL("u", "input"))))                           \
                    CONNECTIONS(INWARD("in", "b", "u")))

static void packages_and_files_nest(void** state)
{
    put_archive(
        *state, FOLDER "/inner.ssp",
        (packed[]){{"SystemStructure.ssd", INNER}, {"Other.ssd", INNER}, {"b.fmu", ""}, {NULL}});
    FILE* f = fopen(FOLDER "/inner.ssp", "rb");
    char bytes[8000];
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    check(n > 100 && n < sizeof bytes);
    crdi_archive_writer* w = NULL;
    const char* text =
        NEST("package", "in/inner.ssp#Other.ssd",
             CONNECTORS(REAL("in", "input")) BINDINGS(BINDING(VALUES(VALUE("b.k", "2")))));
    check_ok(crdi_archive_create(*state, PACKAGE, &w));
    check_ok(crdi_archive_add(w, "SystemStructure.ssd", text, strlen(text)));
    check_ok(crdi_archive_add(w, "in/inner.ssp", bytes, n));
    check_ok(crdi_archive_add(w, "a.fmu", "", 0));
    check_ok(crdi_archive_finish(w));
    crdi_archive_discard(w);
    crd_system* s = load(*state, PACKAGE, NULL);
    check_int(s->unit_count, 2);
    ssp_connection(s, "a.y", "n.b.u");
    check_text(ssp_setting(s, "n.b", "k")->text, "2"); // the component's own comes behind
    check_text(ssp_setting(s, "n.b", "l")->text, "1");
    check_text(s->units[crd_system_find(s, "n.b")].place.file, PACKAGE "/in/inner.ssp/Other.ssd");
    crd_system_destroy(s);

    put_file(FOLDER "/b.fmu", "");
    put_file(FOLDER "/inner.ssd", INNER);
    put_file(FOLDER "/outer.ssd", NEST("definition", "inner.ssd", ""));
    s = load(*state, FOLDER "/outer.ssd", NULL);
    ssp_connection(s, "a.y", "n.b.u");
    crd_system_destroy(s);
    put_file(FOLDER "/outer.ssd",
             NEST("definition", "inner.ssd", CONNECTORS(REAL("other", "input"))));
    refused(*state, FOLDER "/outer.ssd", NULL, CRD_E_RANGE,
            "component 'n' has a connector 'other', which the system in " FOLDER
            "/inner.ssd lacks");
}

static void files_that_contain_each_other_are_refused_with_the_chain(void** state)
{
    put_file(FOLDER "/one.ssd",
             SSD(ELEMENTS("<ssd:Component name='x' type='application/x-ssp-definition' "
                          "source='two.ssd'/>")));
    put_file(FOLDER "/two.ssd", SSD(ELEMENTS("<ssd:Component name='y' source='sub/../one.ssd'/>")));
    refused(*state, FOLDER "/one.ssd", NULL, CRD_E_FORMAT,
            "two.ssd:4: component 'y' contains itself");
    check_contains(crd_error_text(*state), "/one.ssd in ");
}

static void systems_nest_so_deep_and_no_deeper(void** state)
{
    crd_text t;
    crd_text_init(&t, *state);
    crdi_text_add(&t, "<ssd:SystemStructureDescription version='1.0' name='t'%s>", SPACES);
    for (int i = 0; i < 80; i++) {
        crdi_text_add(&t, "<ssd:System name='s'><ssd:Elements>");
    }
    for (int i = 0; i < 80; i++) {
        crdi_text_add(&t, "</ssd:Elements></ssd:System>");
    }
    crdi_text_add(&t, "</ssd:SystemStructureDescription>");
    ssp_refused(*state, t.data, CRD_E_FORMAT, "systems are nested deeper than 64");
    crd_text_clear(&t);
}

// Each system has two of the next: 2^60 components if nobody counts.
static void systems_that_multiply_are_refused(void** state)
{
    crd_text t;
    crd_text_init(&t, *state);
    crdi_text_add(&t,
                  "<ssd:SystemStructureDescription version='1.0' name='t'%s><ssd:System "
                  "name='r'><ssd:Elements>",
                  SPACES);
    for (int i = 0; i < 60; i++) {
        crdi_text_add(&t, "<ssd:System name='s%d' id='s%d'><ssd:Elements>", i, i);
        for (int k = 0; i < 59 && k < 2; k++) {
            crdi_text_add(&t,
                          "<ssd:Component name='c%d' type='application/x-ssp-definition' "
                          "source='#s%d'/>",
                          k, i + 1);
        }
        crdi_text_add(&t, "</ssd:Elements></ssd:System>\n");
    }
    crdi_text_add(&t, "</ssd:Elements></ssd:System></ssd:SystemStructureDescription>");
    ssp_refused(*state, t.data, CRD_E_FORMAT, "more than 131072 components and systems");
    crd_text_clear(&t);
}

static void sources_do_not_leave_a_package(void** state)
{
    static const char* const sources[] = {
        "../a.fmu",  "resources/../../a.fmu", "/etc/passwd", "file:///etc/passwd", "%2e%2e/a.fmu",
        "..\\a.fmu", "r/%2E%2E/..//../a"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        char text[2000];
        snprintf(text, sizeof text, ONE("%s"), sources[i]);
        put_archive(*state, PACKAGE, (packed[]){{"SystemStructure.ssd", text}, {NULL}});
        refused(*state, PACKAGE, NULL, CRD_E_FORMAT, "leaves the package");
        // the user's own folder may lead to its neighbours, by a relative path
        const bool absolute = strstr(sources[i], "/etc/passwd") != NULL;
        put_file(FOLDER "/SystemStructure.ssd", text);
        refused(*state, FOLDER, NULL, absolute ? CRD_E_FORMAT : CRD_E_NOT_FOUND,
                absolute ? "leaves the package" : "there is no file");
    }
}

static void names_that_leave_the_archive_are_refused(void** state)
{
    put_archive(*state, PACKAGE,
                (packed[]){{"SystemStructure.ssd", ONE("a.fmu")}, {"../evil.fmu", ""}, {NULL}});
    refused(*state, PACKAGE, NULL, CRD_E_FORMAT, "evil.fmu");
    check(access(TEST_BUILD_DIR "/evil.fmu", F_OK) != 0);
}

static void a_package_inside_of_a_package_cannot_reach_out(void** state)
{
    put_file(FOLDER "/SystemStructure.ssd",
             SSD(ELEMENTS("<ssd:Component name='n' source='sub/in.ssp'/>")));
    put_archive(*state, FOLDER "/sub/in.ssp",
                (packed[]){{"SystemStructure.ssd",
                            SSD(ELEMENTS("<ssd:Component name='x' source='../../a.fmu'/>"))},
                           {NULL}});
    refused(*state, FOLDER, NULL, CRD_E_FORMAT, "leaves the package");
}

// ---- parameters from files ---------------------------------------------------------------------

static void parameter_sets_and_mappings_come_from_files(void** state)
{
    put_file(FOLDER "/v.ssv", "<ParameterSet version='1.0' name='v' "
                              "xmlns='http://ssp-standard.org/SSP1/SystemStructureParameterValues'>"
                              "<Parameters>\n<Parameter name='x'><Real value='1'/></Parameter>"
                              "<Parameter name='y'><Real value='2'/></Parameter></Parameters>"
                              "</ParameterSet>");
    put_file(FOLDER "/m.ssm",
             "<ssm:ParameterMapping version='2.0'" SPACES
             "><ssm:MappingEntry source='x' target='a.z'/></ssm:ParameterMapping>");
    put_file(FOLDER "/s.ssd",
             SSD(BINDINGS("<ssd:ParameterBinding source='v.ssv'><ssd:ParameterMapping "
                          "source='m.ssm'/></ssd:ParameterBinding>"
                          "<ssd:ParameterBinding source='v.ssv' prefix='a.'/>")
                     ELEMENTS(COMPONENT("a", ""))));
    crd_system* s = load(*state, FOLDER "/s.ssd", NULL);
    check_text(ssp_setting(s, "a", "z")->text, "1");
    check_text(ssp_setting(s, "a", "x")->text, "1");
    check_text(ssp_setting(s, "a", "y")->text, "2");
    check_text(ssp_setting(s, "a", "y")->place.file, FOLDER "/v.ssv");
    check_int(ssp_setting(s, "a", "y")->place.line, 2);
    crd_system_destroy(s);
    put_file(FOLDER "/m.ssm", "<wrong/>");
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_FORMAT, "/m.ssm:1: the root is 'wrong'");
}

static void a_source_may_lie_inside_of_the_component(void** state)
{
    static const char ssv[] =
        "<ssv:ParameterSet version='1.0' name='v'" SPACES
        "><ssv:Parameters><ssv:Parameter name='x'><ssv:Real value='1'/></ssv:Parameter>"
        "</ssv:Parameters></ssv:ParameterSet>";
    const char* text = SSD(ELEMENTS(COMPONENT(
        "a", BINDINGS("<ssd:ParameterBinding source='resources/v.ssv' sourceBase='component'/>"))));
    put_archive(*state, FOLDER "/a.fmu", (packed[]){{"resources/v.ssv", ssv}, {NULL}});
    put_file(FOLDER "/s.ssd", text);
    crd_system* s = load(*state, FOLDER "/s.ssd", NULL);
    check_text(ssp_setting(s, "a", "x")->text, "1");
    check_text(ssp_setting(s, "a", "x")->place.file, FOLDER "/a.fmu/resources/v.ssv");
    crd_system_destroy(s);
    put_archive(*state, FOLDER "/a.fmu", (packed[]){{"other", ""}, {NULL}});
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_NOT_FOUND, "s.ssd:4: " FOLDER "/a.fmu/resources");
    unlink(FOLDER "/a.fmu"); // unpacked
    mkdir(FOLDER "/a.fmu", 0777);
    mkdir(FOLDER "/a.fmu/resources", 0777);
    put_file(FOLDER "/a.fmu/resources/v.ssv", ssv);
    s = load(*state, FOLDER "/s.ssd", NULL);
    check_text(ssp_setting(s, "a", "x")->text, "1");
    crd_system_destroy(s);
}

static void a_source_may_lie_beside_the_file_of_the_component(void** state)
{
    mkdir(FOLDER "/sub", 0777);
    put_file(FOLDER "/sub/a.fmu", "");
    put_file(FOLDER "/sub/v.ssv",
             "<ssv:ParameterSet version='1.0' name='v'" SPACES
             "><ssv:Parameters>" VALUE("a.x", "1") "</ssv:Parameters></ssv:ParameterSet>");
    put_file(FOLDER "/sub/in.ssd", SSD(ELEMENTS(COMPONENT("a", ""))));
    put_file(FOLDER "/s.ssd",
             SSD("<ssd:Elements><ssd:Component name='b' type='application/x-ssp-definition' "
                 "source='sub/in.ssd'>" BINDINGS("<ssd:ParameterBinding source='v.ssv' "
                                                 "sourceBase='component'/>") "</ssd:Component>"
                                                                             "</ssd:Elements>"));
    crd_system* s = load(*state, FOLDER "/s.ssd", NULL);
    check_text(ssp_setting(s, "b.a", "x")->text, "1");
    check_text(ssp_setting(s, "b.a", "x")->place.file, FOLDER "/sub/v.ssv");
    crd_system_destroy(s);
}

static void signal_dictionaries_come_from_files(void** state)
{
    put_file(FOLDER "/d.ssb", "<ssb:SignalDictionary version='1.0'" SPACES
                              "><ssb:DictionaryEntry name='s'><ssc:Real/></ssb:DictionaryEntry>"
                              "</ssb:SignalDictionary>");
    put_file(
        FOLDER "/s.ssd",
        SSD("<ssd:Elements>" COMPONENT(
            "a", CONNECTORS(REAL("y", "output") REAL(
                     "u", "input"))) "<ssd:SignalDictionaryReference name='r' "
                                     "dictionary='d'>" CONNECTORS(REAL(
                                         "s", "inout")) "</"
                                                        "ssd:"
                                                        "SignalDictionaryRefere"
                                                        "nce></"
                                                        "ssd:"
                                                        "Elements>" CONNECTIONS(
                                                            CONNECT("a", "y", "r", "s")
                                                                CONNECT("a", "u", "r", "s")) "<ssd"
                                                                                             ":"
                                                                                             "Sign"
                                                                                             "alDi"
                                                                                             "ctio"
                                                                                             "nari"
                                                                                             "es><"
                                                                                             "ssd:"
                                                                                             "Sign"
                                                                                             "alDi"
                                                                                             "ctio"
                                                                                             "nary"
                                                                                             " nam"
                                                                                             "e='"
                                                                                             "d' "
                                                                                             "sour"
                                                                                             "ce='"
                                                                                             "d."
                                                                                             "ssb'"
                                                                                             "/>"
                                                                                             "</"
                                                                                             "ssd:"
                                                                                             "Sign"
                                                                                             "alDi"
                                                                                             "ctio"
                                                                                             "nari"
                                                                                             "es"
                                                                                             ">"));
    crd_system* s = load(*state, FOLDER "/s.ssd", NULL);
    ssp_connection(s, "a.y", "a.u");
    crd_system_destroy(s);
}

// ---- our annotation ----------------------------------------------------------------------------

#define OURS(yaml)                                                                                 \
    "<ssd:Annotations><ssc:Annotation type='org.cardan'><yaml xmlns='urn:org.cardan'>" yaml        \
    "</yaml></ssc:Annotation><ssc:Annotation type='x.y'/></ssd:Annotations>"

static void our_annotation_adds_run_options_units_and_connections(void** state)
{
    put_file(
        FOLDER "/s.ssd",
        SSD_WITH(
            ELEMENTS("<ssd:Component name='sig' type='application/x-cardan-signal'>" CONNECTORS(
                REAL("y",
                     "output")) "</ssd:Component>"
                                "<ssd:Component name='t' "
                                "type='application/x-cardan-signal'>" CONNECTORS(REAL(
                                    "y",
                                    "output")) "</ssd:Component>" COMPONENT("a",
                                                                            CONNECTORS(
                                                                                REAL("u", "input")
                                                                                    REAL("v",
                                                                                         "input")
                                                                                        REAL("y",
                                                                                             "outpu"
                                                                                             "t"))))
                CONNECTIONS(CONNECT("sig", "y", "a", "u") CONNECT("t", "y", "a", "v")),
            "<ssd:DefaultExperiment startTime='1' stopTime='5'/>" OURS(
                "\nrun: { step: 2 ms, stop: 7 }\nunits:\n  sig: { signal: { shape: sine, "
                "frequency: 1 } }\n"
                "  t: { signal: { shape: step } }\n  a: { step: 4 ms }\nconnections:\n"
                "  - { from: t.y, to: a.v, predict: linear }\n"
                "results: out.csv\n")));
    crd_system* s = load(*state, FOLDER "/s.ssd", NULL);
    check_near(s->run.step, 0.002, 1e-15);
    check_near(s->run.start, 1, 0);
    check_near(s->run.stop, 7, 0); // the annotation comes last
    check_int(s->unit_count, 3);
    check_near(s->units[0].step, 0.004, 1e-15);
    check_int(s->connection_count, 2);
    ssp_connection(s, "sig.y", "a.u");
    check_int(ssp_connection(s, "t.y", "a.v")->predict, CRD_PREDICTION_LINEAR);
    check_int(s->note_count, 1);
    check_text(s->notes[0].type, "x.y");
    check_text(s->results.path, FOLDER "/out.csv");
    crd_system_destroy(s);
}

static void mistakes_in_our_annotation_have_the_line_of_the_file(void** state)
{
    const char* text = SSD_WITH("", OURS("\nrun:\n  stpe: 1 ms\n"));
    put_archive(*state, PACKAGE, (packed[]){{"SystemStructure.ssd", text}, {NULL}});
    refused(*state, PACKAGE, NULL, CRD_E_FORMAT, PACKAGE "/SystemStructure.ssd:6: ");
    check_contains(crd_error_text(*state), "stpe");
    put_file(
        FOLDER "/s.ssd",
        SSD(ELEMENTS("<ssd:Component name='sig' type='application/x-cardan-signal'>" CONNECTORS(
            REAL("y", "output")) "</ssd:Component>" COMPONENT("a", CONNECTORS(REAL("u", "input"))))
                CONNECTIONS(CONNECT("sig", "y", "a", "u"))));
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_RANGE,
            "s.ssd:4: component 'sig' is one of ours, but the annotation 'org.cardan'");
    put_file(FOLDER "/s.ssd", SSD_WITH("", "<ssd:Annotations><ssc:Annotation type='org.cardan'/>"
                                           "</ssd:Annotations>"));
    refused(*state, FOLDER "/s.ssd", NULL, CRD_E_FORMAT, "without an element yaml");
}

static void results_of_a_package_go_beside_it(void** state)
{
    const char* text = SSD_WITH("", OURS("results: out/run.csv"));
    put_archive(*state, PACKAGE, (packed[]){{"SystemStructure.ssd", text}, {NULL}});
    crd_system* s = load(*state, PACKAGE, NULL);
    check_text(s->results.path, FOLDER "/out/run.csv");
    crd_system_destroy(s);
}

static void a_yaml_description_may_stand_on_a_package(void** state)
{
    put_file(FOLDER "/s.ssd", ONE("a.fmu"));
    const char* yaml = "cardan: 1\nsystem: s.ssd\nrun: { step: 1 ms }\n";
    crd_system* s = NULL;
    const crd_status st =
        crd_system_load_on(*state, yaml, strlen(yaml), FOLDER "/s.yaml", crd_ssp_read, &s);
    if (st < 0) { fail_msg("%s", crd_error_text(*state)); }
    check_int(s->unit_count, 1);
    check_near(s->run.step, 1e-3, 0);
    crd_system_destroy(s);
    yaml = "cardan: 1\nsystem: none.ssp\n";
    check_status(crd_system_load_on(*state, yaml, strlen(yaml), FOLDER "/s.yaml", crd_ssp_read, &s),
                 CRD_E_NOT_FOUND);
    check_contains(crd_error_text(*state), "s.yaml:2: ");
}

// ---- listing -----------------------------------------------------------------------------------

static void a_description_lists_what_is_there(void** state)
{
    const packed files[] = {
        {"SystemStructure.ssd",
         "<ssd:SystemStructureDescription version='2.0' name='car' author='me' license='MIT' "
         "description='d' generationTool='T 1' generationDateAndTime='2026'" SPACES
         "><ssd:System name='r'>" BINDINGS(BINDING(VALUES(""))) ELEMENTS(SYSTEM(
             "s", ELEMENTS("<ssd:Component name='a' source='resources/a.fmu' "
                           "implementation='CoSimulation'>" CONNECTORS(
                               REAL("y", "output")) "</ssd:Component>")
                      CONNECTIONS(
                          "<ssd:Connection startConnector='x' endElement='a' "
                          "endConnector='y'/>")) "<ssd:Component name='n' "
                                                 "type='application/x-ssp-package' "
                                                 "source='n.ssp'/>") "</"
                                                                     "ssd:System><ssd:"
                                                                     "DefaultExperiment "
                                                                     "stopTime='3'/"
                                                                     "><ssd:Annotations>"
                                                                     "<ssc:Annotation "
                                                                     "type='p.q'/><ssc:Annotation "
                                                                     "type='p.q'/></"
                                                                     "ssd:Annotations>"
                                                                     "</"
                                                                     "ssd:"
                                                                     "SystemStructureDescription>"},
        {"Zwei.ssd", SSD("")},
        {"resources/a.fmu", ""},
        {"extra/x.txt", ""},
        {NULL}};
    put_archive(*state, PACKAGE, files);
    crd_ssp_info* i = NULL;
    check_ok(crd_ssp_describe(*state, PACKAGE, NULL, &i));
    check_text(i->version, "2.0");
    check_text(i->name, "car");
    check_text(i->author, "me");
    check_text(i->license, "MIT");
    check_text(i->tool, "T 1");
    check_text(i->date, "2026");
    check_text(i->description, "d");
    check_int(i->variant_count, 2);
    check_text(i->variants[0], "SystemStructure.ssd");
    check_int(i->resource_count, 2);
    check_int(i->component_count, 3);
    check(i->components[0].system);
    check_text(i->components[0].name, "s");
    check_text(i->components[1].name, "s.a");
    check_int(i->components[1].depth, 1);
    check_int(i->components[1].connectors, 1);
    check_text(i->components[1].implementation, "CoSimulation");
    check_text(i->components[1].type, "application/x-fmu-sharedlibrary");
    check_text(i->components[2].source, "n.ssp");
    check_int(i->connections, 1);
    check_int(i->parameter_bindings, 1);
    check_int(i->annotation_count, 1);
    check(!i->has_start && i->has_stop);
    check_near(i->stop, 3, 0);
    crd_ssp_info_destroy(i);
    check_ok(crd_ssp_describe(*state, PACKAGE, "Zwei", &i));
    check_text(i->variants[0], "Zwei.ssd");
    check_text(i->variants[1], "SystemStructure.ssd");
    crd_ssp_info_destroy(i);
    check_status(crd_ssp_describe(*state, PACKAGE, "Drei", &i), CRD_E_NOT_FOUND);
    put_file(FOLDER "/One.ssd", ONE("a.fmu"));
    check_ok(crd_ssp_describe(*state, FOLDER "/One.ssd", NULL, &i));
    check_int(i->component_count, 1);
    check_int(i->variant_count, 1);
    crd_ssp_info_destroy(i);
    check_ok(crd_ssp_describe(*state, FOLDER, "One", &i));
    check_int(i->resource_count, 3); // a.fmu, sub/b c.fmu, p.ssp
    crd_ssp_info_destroy(i);
    check_status(crd_ssp_describe(*state, FOLDER "/none", NULL, &i), CRD_E_NOT_FOUND);
}

// ---- out of memory -----------------------------------------------------------------------------

static const char everything[] = SSD_WITH(
    CONNECTORS(REAL_IN("P", "parameter", "m") REAL("in", "input")) BINDINGS(
        BINDING(VALUES(VALUE("P", "1") VALUE("s.a.x", "2") VALUE("none", "3")))
            BINDING(VALUES(VALUE("q", "1 2")) MAPPING(
                "<ssm:MappingEntry source='q' target='P'>"
                "<ssc:LinearTransformation factor='2'/>"
                "</ssm:MappingEntry>"))) "<ssd:Elements>" SYSTEM("s",
                                                                 CONNECTORS(
                                                                     REAL("P", "parameter") REAL_IN(
                                                                         "out", "output", "deg"))
                                                                     ELEMENTS(COMPONENT(
                                                                         "a",
                                                                         CONNECTORS(
                                                                             REAL("k", "parameter")
                                                                                 REAL_IN("y",
                                                                                         "output",
                                                                                         "rad"))))
                                                                         CONNECTIONS(
                                                                             INWARD("P", "a", "k")
                                                                                 INWARD("out", "a",
                                                                                        "y")))
        COMPONENT(
            "b",
            CONNECTORS(REAL_IN("u", "input", "rad") REAL(
                "v",
                "input")) "<ssd:Annotations><ssc:Annotation type='t'>x</ssc:Annotation>"
                          "</ssd:Annotations>") "<ssd:Component name='c' "
                                                "type='application/x-ssp-definition' "
                                                "source='#sub'/>"
                                                "<ssd:System name='d' id='sub'/>"
                                                "<ssd:SignalDictionaryReference name='r' "
                                                "dictionary='bus'>" CONNECTORS(REAL("s", "inout")) "</ssd:SignalDictionaryReference></ssd:Elements>" CONNECTIONS(
                                                    INWARD("P", "s", "P")
                                                        CONNECT("s", "out", "b", "u")
                                                            CONNECT("s", "out", "r", "s") CONNECT(
                                                                "r", "s", "b",
                                                                "v")) "<ssd:SignalDictionaries><"
                                                                      "ssd:SignalDictionary "
                                                                      "name='bus'><ssb:"
                                                                      "SignalDictionary "
                                                                      "version='1.0'><ssb:"
                                                                      "DictionaryEntry "
                                                                      "name='s'><ssc:Real/></"
                                                                      "ssb:DictionaryEntry>"
                                                                      "</ssb:SignalDictionary></"
                                                                      "ssd:SignalDictionary></"
                                                                      "ssd:SignalDictionaries>",
    "<ssd:Units><ssc:Unit name='rad'><ssc:BaseUnit rad='1'/></ssc:Unit></ssd:Units>" OURS(
        "run: { step: 1 ms }"));

static crd_status load_and_describe(crd_context* ctx, const void* user)
{
    const char* path = user;
    crd_system* s = NULL;
    crd_ssp_info* i = NULL;
    crd_status st = crd_ssp_load(ctx, path, NULL, &s);
    crd_system_destroy(s);
    if (st >= 0) { st = crd_ssp_describe(ctx, path, NULL, &i); }
    crd_ssp_info_destroy(i);
    return st;
}

static void running_out_of_memory_is_an_error_everywhere(void** state)
{
    put_archive(
        *state, PACKAGE,
        (packed[]){{"SystemStructure.ssd", everything}, {"a.fmu", ""}, {"b.fmu", ""}, {NULL}});
    check_allocations(load_and_describe, PACKAGE);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(sources_are_relative_to_the_file_and_decoded),
        T(missing_files_are_named_with_their_line),
        T(what_is_no_xml_is_refused),
        T(a_file_that_is_too_large_is_refused_unread),
        T(values_that_multiply_are_refused),
        T(a_package_is_unpacked_and_goes_with_the_system),
        T(a_folder_is_a_package_as_well),
        T(a_variant_is_another_ssd_of_the_root),
        T(packages_and_files_nest),
        T(files_that_contain_each_other_are_refused_with_the_chain),
        T(systems_nest_so_deep_and_no_deeper),
        T(systems_that_multiply_are_refused),
        T(sources_do_not_leave_a_package),
        T(names_that_leave_the_archive_are_refused),
        T(a_package_inside_of_a_package_cannot_reach_out),
        T(parameter_sets_and_mappings_come_from_files),
        T(a_source_may_lie_inside_of_the_component),
        T(a_source_may_lie_beside_the_file_of_the_component),
        T(signal_dictionaries_come_from_files),
        T(our_annotation_adds_run_options_units_and_connections),
        T(mistakes_in_our_annotation_have_the_line_of_the_file),
        T(results_of_a_package_go_beside_it),
        T(a_yaml_description_may_stand_on_a_package),
        T(a_description_lists_what_is_there),
        T(running_out_of_memory_is_an_error_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
