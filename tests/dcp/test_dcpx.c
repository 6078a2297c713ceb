// Descriptions of slaves: what is read from which text, which rules are found broken, and that what
// is written comes back.
#include "allocations.h"
#include "check.h"
#include "dcp/description/dcpx.h"
#include "shared/dcp.h"
#include "zip_maker.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER TEST_BUILD_DIR "/dcpx"
#define RIG TEST_SOURCE_DIR "/dcp/data/rig.dcpx"
#define ENTRY "v1.0/dcpSlaveDescription.dcpx"

typedef struct fixture {
    check_allocator allocator;
    crd_context* ctx;
    char* rig;
    crd_dcp_description* d;
    const crd_dcp_finding* findings;
    int count;
} fixture;

static char* read_all(const char* path)
{
    FILE* f = fopen(path, "rb");
    if (!f) { fail_msg("%s is missing", path); }
    fseek(f, 0, SEEK_END);
    const size_t n = (size_t)ftell(f);
    rewind(f);
    char* text = calloc(n + 1, 1);
    if (fread(text, 1, n, f) != n) { fail_msg("%s cannot be read", path); }
    fclose(f);
    return text;
}

static int set_up(void** state)
{
    fixture* f = calloc(1, sizeof *f);
    f->ctx = check_context(&f->allocator);
    f->rig = read_all(RIG);
    mkdir(FOLDER, 0700);
    *state = f;
    return 0;
}

static int tear_down(void** state)
{
    fixture* f = *state;
    crd_dcp_description_destroy(f->d);
    crd_context_destroy(f->ctx);
    const int64_t live = f->allocator.live;
    free(f->rig);
    free(f);
    check_int(live, 0);
    return 0;
}

static crd_status parse(fixture* f, const char* text)
{
    crd_dcp_description_destroy(f->d);
    f->d = NULL;
    return crd_dcp_parse(f->ctx, text, strlen(text), "rig.dcpx", &f->d, &f->findings, &f->count);
}

static const crd_dcp_finding* find(const fixture* f, const char* code)
{
    for (int i = 0; i < f->count; i++) {
        if (strcmp(f->findings[i].code, code) == 0) { return &f->findings[i]; }
    }
    return NULL;
}

static int faults(const fixture* f)
{
    int n = 0;
    for (int i = 0; i < f->count; i++) {
        n += f->findings[i].severity == CRD_DCP_FAULT;
    }
    return n;
}

// The text with its first `from` replaced; the line of the change.
static char* edited(const char* text, const char* from, const char* to, int* line)
{
    const char* at = strstr(text, from);
    if (!at) { fail_msg("'%s' is not in the file", from); }
    *line = 1;
    for (const char* p = text; p < at; p++) {
        *line += *p == '\n';
    }
    char* out = calloc(strlen(text) + strlen(to) + 1, 1);
    memcpy(out, text, (size_t)(at - text));
    strcat(out, to);
    strcat(out, at + strlen(from));
    return out;
}

static const crd_dcp_variable* variable(const fixture* f, uint64_t vr)
{
    const int i = crd_dcp_find_vr(f->d, vr);
    if (i < 0) { fail_msg("no variable %llu", (unsigned long long)vr); }
    return &f->d->variables[i];
}

// ---- reading -----------------------------------------------------------------------------------

static void the_rig_is_read_with_all_it_says(void** state)
{
    fixture* f = *state;
    check_ok(crd_dcp_load(f->ctx, RIG, &f->d, &f->findings, &f->count));
    const crd_dcp_description* d = f->d;
    check_int(f->count, 2); // a string and a binary have no start
    check_text(f->findings[0].code, "V29");
    check_text(f->findings[1].code, "V29");
    check_text(d->file, RIG);
    check_text(d->name, "MotorTestBench");
    check_text(d->date, "2026-01-31T12:00:00Z");
    check_text(d->license, "");
    static const uint8_t uuid[16] = {0x6f, 0x1d, 0x2c, 0x3b, 0x4a, 0x59, 0x4e, 0x68,
                                     0x8f, 0x70, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab};
    check(memcmp(d->uuid, uuid, 16) == 0);
    check(d->structured && !d->hrt && d->srt && d->nrt && !d->nrt_fixed_steps);
    check_int(d->major, 1);
    check_int(d->nrt_min_steps, 1);
    check_int(d->nrt_max_steps, 100);
    check_int(d->resolution_count, 2);
    check(!d->fixed_resolution && d->resolutions[0].recommended && !d->resolutions[1].recommended);
    check_int(d->resolutions[0].numerator_to, 1);
    check_int(d->resolutions[1].numerator_to, 100);
    check(!d->has_heartbeat && d->can_accept_config && d->can_reset && !d->can_monitor_heartbeat);
    check(d->udp.offered && d->tcp.offered && !d->can && !d->usb && !d->bluetooth);
    check_int(d->tcp.max_pdu_size, 4294967267);
    check_text(d->udp.host, "127.0.0.1");
    check_int(d->udp.port, 8080);
    check(d->udp.has_data && d->udp.has_parameter);
    check_int(d->udp.data_count, 1);
    check_int(d->udp.data[0].from, 2048);
    check_int(d->udp.data[0].to, 65535);
    check_int(d->unit_count, 6);
    check_int(d->units[3].exponents[3], -2);
    check_near(d->units[1].displays[0].offset, -273.15, 0);
    check_int(d->variable_count, 17);
    check_int(d->category_count, 1);
    check_int(d->template_count, 2);
    check_int(d->templates[0].argument_count, 2);
    check_int(d->templates[0].arguments[1], CRD_DCP_FLOAT64);
    check_int(d->templates[1].arguments[0], CRD_DCP_STRING);
}

static void variables_of_the_rig_have_types_limits_and_dimensions(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, f->rig));
    const crd_dcp_variable* v = variable(f, 1);
    check_text(v->name, "drive.u_dc");
    check_text(v->description, "armature voltage");
    check_int(v->causality, CRD_INPUT);
    check_int(v->variability, CRD_CONTINUOUS);
    check_int(v->type, CRD_DCP_FLOAT64);
    check_text(v->unit, "V");
    check_text(v->start, "0.0");
    check_near(v->min, -48, 0);
    check(isnan(v->nominal) && isnan(v->pre_edge) && !v->has_max_missed);
    check(v->line > 50);
    v = variable(f, 2);
    check(v->has_max_missed);
    check_int(v->max_missed, 5);
    v = variable(f, 3);
    check_int(v->type, CRD_DCP_STRING);
    check_int(v->max_size, 64);
    check_text(v->start, "");
    check_text(variable(f, 15)->mime, "application/octet-stream");
    check(!variable(f, 15)->start);
    v = variable(f, 6);
    check_int(v->rank, 1);
    check_int(v->dimensions[0], 3);
    check(!v->is_linked[0]);
    v = variable(f, 16);
    check(v->is_linked[0]);
    check_int(v->linked[0], 31);
    v = variable(f, 11);
    check(v->has_initial_dependencies && v->has_run_dependencies && !v->fixed_steps);
    check_int(v->initial_dependency_count, 1);
    check(v->initial_dependencies[0].linear);
    check_int(v->run_dependency_count, 2);
    check_int(v->run_dependencies[1].vr, 2);
    check_int(v->max_steps, 1000);
    check(!variable(f, 12)->has_run_dependencies);
    check_int(variable(f, 22)->variability, CRD_TUNABLE);
    check_int(variable(f, 31)->causality, CRD_STRUCTURAL_PARAMETER);
    check_int(crd_dcp_find_vr(f->d, 99), -1);
}

// Everything that may be left out is.
static const char bare[] =
    "<dcpSlaveDescription dcpMajorVersion='1' dcpMinorVersion='0' dcpSlaveName='bare'\n"
    "    uuid='6F1D2C3B-4A59-4E68-8F70-0123456789AB'>\n"
    "<OpMode><HardRealTime/><NonRealTime/></OpMode>\n"
    "<TimeRes><Resolution/></TimeRes>\n"
    "<TransportProtocols><UDP_IPv4/></TransportProtocols>\n"
    "<CapabilityFlags/>\n"
    "<Variables><Variable name='y' valueReference='7'><Output><Int8/></Output></Variable>"
    "</Variables>\n"
    "</dcpSlaveDescription>\n";

static void what_is_left_out_has_the_defaults_of_the_standard(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, bare));
    const crd_dcp_description* d = f->d;
    check_int(faults(f), 0);
    check(!find(f, "T04")); // nothing would come there
    check_int(d->uuid[0], 0x6f);
    check(d->hrt && d->nrt && d->nrt_fixed_steps && !d->structured);
    check_int(d->nrt_default_steps, 1);
    check_int(d->nrt_max_steps, 1);
    check(d->fixed_resolution);
    check_int(d->resolutions[0].numerator, 1);
    check_int(d->resolutions[0].denominator, 1000);
    check_int(d->udp.max_pdu_size, 65507);
    check(!d->tcp.offered && !d->udp.has_data && d->udp.port == 0);
    check_text(d->udp.host, "");
    check(!d->can_accept_config && !d->can_log_on_request);
    const crd_dcp_variable* v = &d->variables[0];
    check_int(v->causality, CRD_OUTPUT);
    check_int(v->variability, CRD_CONTINUOUS);
    check(v->fixed_steps && !v->initialization && !v->has_run_dependencies && !v->start);
    check_int(v->default_steps, 1);
    check_int(v->max_steps, 1);
    check(isnan(v->min) && isnan(v->gradient));
}

static void a_declared_type_gives_what_the_variable_does_not_say(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* text = edited(f->rig, "<Float64 unit=\"rad/s\" start=\"0.0\"/>",
                        "<Float64 max=\"500\" start=\"0.0\"/>", &line);
    check_ok(parse(f, text));
    const crd_dcp_variable* v = variable(f, 11);
    check_text(v->declared_type, "Speed");
    check_text(v->unit, "rad/s");
    check_text(v->display_unit, "rpm");
    check_near(v->min, -1000, 0);
    check_near(v->max, 500, 0);
    free(text);
}

static void a_unit_may_be_shown_as_itself(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* text = edited(f->rig, "unit=\"V\"", "unit=\"V\" displayUnit=\"V\"", &line);
    check_ok(parse(f, text));
    check(!find(f, "V26"));
    free(text);
}

static void empty_dependencies_differ_from_none(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* text = edited(
        f->rig, "<Initialization><Dependency vr=\"1\" dependencyKind=\"linear\"/></Initialization>",
        "<Initialization/>", &line);
    check_ok(parse(f, text));
    check(variable(f, 11)->has_initial_dependencies);
    check_int(variable(f, 11)->initial_dependency_count, 0);
    check(!variable(f, 12)->has_initial_dependencies);
    free(text);
}

static void placeholders_of_messages_become_arguments(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* text = edited(f->rig, "status %string",
                        "%%float64 100%% %uint8%int64 (%binary), %uint16x %%%float32", &line);
    check_ok(parse(f, text));
    const crd_dcp_log_template* t = &f->d->templates[1];
    static const uint8_t want[] = {CRD_DCP_UINT8, CRD_DCP_INT64, CRD_DCP_BINARY, CRD_DCP_UINT16,
                                   CRD_DCP_FLOAT32};
    check_int(t->argument_count, 5);
    check(memcmp(t->arguments, want, 5) == 0);
    check(!find(f, "L07"));
    free(text);
}

static void numbers_may_be_written_as_schemas_allow(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* a =
        edited(f->rig, "valueReference=\"1\"", "valueReference=\" +18446744073709551615 \"", &line);
    char* b = edited(a, "minSteps=\"1\"", "minSteps=\" 001\t\"", &line);
    char* c = edited(b, "canHandleReset=\"true\"", "canHandleReset=\" true \"", &line);
    char* e = edited(c, "maxConsecMissedPdus=\"5\"", "maxConsecMissedPdus=\"-00\"", &line);
    check_ok(parse(f, e));
    check_int(faults(f), 0);
    check_int(variable(f, 2)->max_missed, 0);
    free(e);
    check_text(variable(f, UINT64_MAX)->name, "drive.u_dc");
    check(f->d->can_reset);
    free(a);
    free(b);
    free(c);
}

// ---- rules -------------------------------------------------------------------------------------

typedef struct variant {
    const char *code, *from, *to, *says;
    bool elsewhere; // the finding is not in the line of the edit
} variant;

#define OUTPUT12                                                                                   \
    "<Variable name=\"drive.current\" valueReference=\"12\" variability=\"continuous\">\n      "   \
    "<Output fixedSteps=\"false\" minSteps=\"1\" maxSteps=\"1000\""
#define TO12(what)                                                                                 \
    "<Variable name=\"drive.current\" valueReference=\"12\" variability=\"continuous\">\n      "   \
    "<Output " what

static const variant variants[] = {
    {"X01", "<SoftRealTime/>", "<SoftRealTime/><Sometimes/>", "<Sometimes> is unknown in <OpMode>"},
    {"X01", "<Unit name=\"A\"><BaseUnit", "<Unit name=\"A\"><Baseunit", "'BaseUnit'?"},
    {"X02", "<Uint8 min=\"0\"", "<Uint8 unit=\"A\" min=\"0\"", "<Uint8> has no attribute 'unit'"},
    {"X02", "<Float64 min=\"-48\"", "<Float64 Min=\"-48\"", "is it meant to be 'min'?"},
    {"X03", "<SoftRealTime/>\n", "<SoftRealTime/><HardRealTime/>\n",
     "<HardRealTime> stands behind <SoftRealTime>"},
    {"X04", "<SoftRealTime/>\n", "<SoftRealTime/><SoftRealTime/>\n", "a second <SoftRealTime>"},
    {"X05", "<Categories><Category id=\"1\" name=\"BENCH\"/></Categories>", "",
     "<Log> lacks <Categories>", true},
    {"X06", "dcpSlaveName=\"MotorTestBench\"", "", "lacks its attribute 'dcpSlaveName'"},
    {"X06", " valueReference=\"1\"", "", "<Variable> lacks its attribute 'valueReference'"},
    {"X07", "maxConsecMissedPdus=\"5\"", "maxConsecMissedPdus=\"-5\"",
     "maxConsecMissedPdus = '-5', expected a whole number from 0 to 4294967295"},
    {"X07", "maxConsecMissedPdus=\"5\"", "preEdge=\"INF\"", "preEdge = 'INF', expected a finite"},
    {"X07", "port=\"8080\"", "port=\"65536\"", "port = '65536', expected a whole number from 0 to"},
    {"X07", "port=\"8080\"", "port=\" \"", "port = ' ', expected a whole number"},
    {"X07", "canHandleReset=\"true\"", "canHandleReset=\"yes\"", "expected true or false", true},
    {"X07", "variability=\"tunable\"", "variability=\"constant\"", "expected continuous, discrete"},
    {"X07", "dependencyKind=\"linear\"", "dependencyKind=\"fixed\"",
     "expected dependent or linear"},
    {"X07", "id=\"1\" name=\"BENCH\"", "id=\"256\" name=\"BENCH\"", "from 0 to 255"},
    {"X07", "A=\"-2\"", "A=\"200\"", "expected a whole number from -128 to 127"},
    {"X07", "\"structured\"", "\"mixed\"", "expected flat or structured", true},
    {"X08", "canHandleReset=\"true\"", "canHandleReset=\"1\"", "better 'true'", true},
    {"X09", "<dcpSlaveDescription ", "<dcpSlaveDescription xmlns=\"urn:x\" ", "'urn:x'"},
    {"G01", "dcpMajorVersion=\"1\"", "dcpMajorVersion=\"2\"", "dcpMajorVersion = 2, expected 1"},
    {"G02", "dcpMinorVersion=\"0\"", "dcpMinorVersion=\"1\"", "dcpMinorVersion = 1, expected 0"},
    {"G03", "6f1d2c3b-4a59", "6f1d2c3b4a59", "expected hexadecimal digits as 8-4-4-4-12", true},
    {"G03", "6f1d2c3b-4a59", "6f1d2c3b-4a5g", "expected hexadecimal digits as 8-4-4-4-12", true},
    {"G04", "6f1d2c3b-4a59-4e68-8f70-0123456789ab", "00000000-0000-0000-0000-000000000000",
     "all zeros", true},
    {"G05", "MotorTestBench", "", "dcpSlaveName is empty"},
    {"G06", "2026-01-31T12:00:00Z", "31.1.2026", "expected a time like", true},
    {"M01",
     "<SoftRealTime/>\n    <NonRealTime defaultSteps=\"1\" fixedSteps=\"false\" "
     "minSteps=\"1\" maxSteps=\"100\"/>",
     "", "no operating mode", true},
    {"M02", "<NonRealTime defaultSteps=\"1\" fixedSteps=\"false\"",
     "<NonRealTime defaultSteps=\"1\"", "fixedSteps = true (the default) with minSteps"},
    {"M03", "minSteps=\"1\" maxSteps=\"100\"", "minSteps=\"101\" maxSteps=\"100\"",
     "maxSteps = 100, expected at least minSteps = 101", true},
    {"M04", "minSteps=\"1\" maxSteps=\"100\"", "minSteps=\"0\" maxSteps=\"100\"", "minSteps = 0",
     true},
    {"M05", "defaultSteps=\"1\"", "defaultSteps=\"200\"", "defaultSteps = 200, expected 1 to 100",
     true},
    {"R01", "fixed=\"false\"", "fixed=\"true\"", "a fixed resolution among 2", true},
    {"R01", " fixed=\"false\"", "", "a fixed resolution among 2", true},
    {"R02", "numerator=\"1\" denominator=\"1000\"", "numerator=\"1\" denominator=\"0\"", "1/0 s"},
    {"R03", "numeratorFrom=\"1\"", "numeratorFrom=\"101\"", "from 101 to 100"},
    {"R04",
     "<Resolution numerator=\"1\" denominator=\"1000\" fixed=\"false\" recommended=\"true\"/>\n"
     "    <ResolutionRange numeratorFrom=\"1\" numeratorTo=\"100\" denominator=\"1000\"/>",
     "", "no resolution", true},
    {"R05", "canMonitorHeartbeat=\"false\"", "canMonitorHeartbeat=\"true\"", "without <Heartbeat>",
     true},
    {"R05", "  <TransportProtocols>",
     "  <Heartbeat><MaximumPeriodicInterval/></Heartbeat><TransportProtocols>",
     "canMonitorHeartbeat = false"},
    {"R02", "  <TransportProtocols>",
     "  <Heartbeat><MaximumPeriodicInterval numerator=\"0\"/></Heartbeat><TransportProtocols>",
     "a heartbeat every 0/1 s"},
    {"T02", " port=\"8080\"", "", "UDP_IPv4/Control has no port", true},
    {"T02", "host=\"127.0.0.1\" port=\"8080\"", "port=\"8080\"", "Control has no host", true},
    {"T03", "from=\"2048\" to=\"65535\"", "from=\"2048\" to=\"2047\"", "ports from 2048 to 2047",
     true},
    {"T04", "<AvailablePortRange from=\"2048\" to=\"65535\"/>", "",
     "DAT_input_output offers no port", true},
    {"T04",
     "<DAT_parameter host=\"127.0.0.1\">\n        <AvailablePortRange from=\"2048\" to=\"65535\"/>",
     "<DAT_parameter>", "UDP_IPv4/DAT_parameter offers no port", true},
    {"T05", "maxPduSize=\"65507\"", "maxPduSize=\"65508\"",
     "maxPduSize = 65508, expected 24 to 65507"},
    {"T05", "maxPduSize=\"65507\"", "maxPduSize=\"23\"", "maxPduSize = 23, expected 24 to 65507"},
    {"V02", "name=\"load.torque\"", "name=\"drive.u_dc\"", "a second variable 'drive.u_dc'"},
    {"V03", "valueReference=\"2\"", "valueReference=\"1\"",
     "variable 'load.torque' has the value reference 1 of 'drive.u_dc'"},
    {"V04", "name=\"load.torque\"", "name=\"\"", "empty name"},
    {"V05", "<Parameter><Int16 start=\"100\"/></Parameter>", "",
     "'ctrl.limit' is none of Input, Output", true},
    {"V05", "<Parameter><Int16 start=\"100\"/></Parameter>",
     "<Parameter><Int16 start=\"100\"/></Parameter><Input><Int16 start=\"1\"/></Input>",
     "'ctrl.limit' is declared as 2 of", true},
    {"V06", "<Parameter><Int16 start=\"100\"/></Parameter>", "<Parameter/>",
     "'ctrl.limit' has no data type", true},
    {"V06", "<Int16 start=\"100\"/>", "<Int16 start=\"100\"/><Int8 start=\"100\"/>",
     "'ctrl.limit' has 2 data types"},
    {"V07", "valueReference=\"24\" variability=\"tunable\"", "valueReference=\"24\"",
     "fixed or tunable on a parameter, said explicitly"},
    {"V07", "valueReference=\"2\" variability=\"continuous\"",
     "valueReference=\"2\" variability=\"fixed\"", "continuous or discrete on an input"},
    {"V07", "valueReference=\"31\" variability=\"fixed\"",
     "valueReference=\"31\" variability=\"discrete\"", "fixed or tunable"},
    {"V08", "<Int16 start=\"100\"/>", "<Int16/>", "'ctrl.limit' has no start", true},
    {"V09", "<String maxSize=\"64\" start=\"\"/>", "<String maxSize=\"64\"/>",
     "'cmd.text' has no start"},
    {"V10", "<Int16 start=\"100\"/>", "<Int16 start=\"32768\"/>",
     "start = '32768', expected a whole", true},
    {"V10", "<Int16 start=\"100\"/>", "<Int16 start=\"1.5\"/>", "start = '1.5', expected a whole",
     true},
    {"V10", "<Int16 start=\"100\"/>", "<Int16 start=\" \"/>", "start is empty", true},
    {"V10", "max=\"3\" start=\"0\"", "max=\"3\" start=\"-1\"", "start = '-1'", true},
    {"V10", "<Float64 start=\"1.0\"/>", "<Float64 start=\"NaN\"/>",
     "start = 'NaN', expected a finite", true},
    {"V10", "<Float32 unit=\"A\" start=\"0.0\"/>", "<Float32 unit=\"A\" start=\"1e39\"/>",
     "start = '1e39', expected a finite", true},
    {"V10", "maxSize=\"64\" start=\"00\"", "maxSize=\"64\" start=\"0\"",
     "expected pairs of hexadecimal digits", true},
    {"V11", "<Float32 start=\"0 0 0\"/>", "<Float32 start=\"0 0\"/>",
     "2 start values for 3 elements", true},
    {"V11", "start=\"293.15 293.15 293.15\"", "start=\"293.15\"", "1 start values for 3 elements",
     true},
    {"V11", "<Int16 start=\"100\"/>", "<Int16 start=\"1 2\"/>", "2 start values for 1 elements",
     true},
    {"V12", OUTPUT12, TO12("minSteps=\"1\""), "'drive.current': fixedSteps = true", true},
    {"V13", OUTPUT12, TO12("fixedSteps=\"false\" minSteps=\"1\""), "without maxSteps", true},
    {"V13", OUTPUT12, TO12("fixedSteps=\"false\" minSteps=\"5\" maxSteps=\"5\""),
     "maxSteps = 5, expected more than minSteps = 5"},
    {"V14", OUTPUT12, TO12("defaultSteps=\"0\" fixedSteps=\"true\""), "defaultSteps = 0"},
    {"V15", "maxSteps=\"1000\" initialization=\"false\"",
     "maxSteps=\"1000\" initialization=\"true\"", "'shaft.speed': initialization = true", true},
    {"V16", "valueReference=\"12\"", "valueReference=\"12\" maxConsecMissedPdus=\"3\"",
     "'drive.current' has maxConsecMissedPdus"},
    {"V17", "<Uint16 start=\"3\"/>", "<Uint16 start=\"0\"/>", "start = 0, expected at least 1",
     true},
    {"V17", "<Uint16 start=\"3\"/>", "<Int16 start=\"3\"/>", "is a int16, expected an unsigned",
     true},
    {"V18", "<Dimension constant=\"3\"/>", "<Dimension constant=\"3\" linkedVR=\"31\"/>",
     "with both constant and linkedVR"},
    {"V18", "<Dimension constant=\"3\"/>", "<Dimension/>", "with neither constant and linkedVR"},
    {"V18", "<Dimension constant=\"3\"/>", "", "<Dimensions> is empty"},
    {"X07", "<Dimension constant=\"3\"/>", "<Dimension constant=\"0\"/>", "constant = '0'"},
    {"V19", "linkedVR=\"31\"", "linkedVR=\"24\"", "linkedVR = 24, expected the value reference",
     true},
    {"V19", "linkedVR=\"31\"", "linkedVR=\"99\"", "linkedVR = 99, expected the value reference",
     true},
    {"V20", "<String maxSize=\"64\" start=\"\"/>",
     "<String maxSize=\"64\" start=\"\"/><Dimensions><Dimension constant=\"2\"/></Dimensions>",
     "expected none on a string", true},
    {"V21", "<Dimension constant=\"3\"/>",
     "<Dimension constant=\"4294967296\"/><Dimension constant=\"4294967296\"/>",
     "more elements than one PDU", true},
    {"V21", "<Dimension constant=\"3\"/>", "<Dimension constant=\"1073741824\"/>",
     "more elements than one PDU", true},
    {"V22", "<Dimension constant=\"3\"/>",
     "<Dimension constant=\"3\"/><Dimension constant=\"1\"/><Dimension constant=\"1\"/>"
     "<Dimension constant=\"1\"/><Dimension constant=\"1\"/><Dimension constant=\"1\"/>"
     "<Dimension constant=\"1\"/><Dimension constant=\"1\"/><Dimension constant=\"1\"/>",
     "more than 8 dimensions"},
    {"V23", "min=\"-48\"", "min=\"49\"", "min = 49, expected at most max = 48", true},
    {"V24", "<Float64 min=\"0.01\" unit=\"Ohm\" start=\"0.5\"/>",
     "<Float64 min=\"0.6\" unit=\"Ohm\" start=\"0.5\"/>", "lies outside of min and max", true},
    {"V25", "<Dependency vr=\"2\"", "<Dependency vr=\"77\"", "depends on value reference 77", true},
    {"V26", "unit=\"Ohm\"", "unit=\"ohm\"", "unit 'ohm' is not defined", true},
    {"V26", "unit=\"V\"", "unit=\"V\" displayUnit=\"mV\"", "display unit 'mV' is not defined",
     true},
    {"V27", "declaredType=\"Speed\"", "declaredType=\"Sped\"", "there is no type 'Sped'"},
    {"V28", "valueReference=\"24\"", "valueReference=\"24\" declaredType=\"Speed\"",
     "'ctrl.limit' is a int16 and its type 'Speed' a float64"},
    {"V29", "<Uint32 start=\"0\"/>", "<Uint32/>", "output 'bench.ticks' has no start", true},
    {"V30", "maxSize=\"32\" start=\"bench A\"", "maxSize=\"6\" start=\"bench A\"",
     "a start of 7 bytes, expected at most maxSize = 6", true},
    {"V31", "<String maxSize=\"32\"", "<String", "'bench.name' has no maxSize", true},
    {"V32", "valueReference=\"24\"", "valueReference=\"2147483648\"", "value reference 2147483648"},
    {"V33", "<Uint8 min=\"0\" max=\"3\"", "<Uint8 min=\"0\" max=\"256\"",
     "max = 256, expected a value of uint8", true},
    {"V33", "<Uint8 min=\"0\"", "<Uint8 min=\"0.5\"", "min = 0.5, expected a value of uint8", true},
    {"V34", "maxConsecMissedPdus=\"5\"", "postEdge=\"-1e-3\"", "postEdge = -0.001"},
    {"V35", OUTPUT12, TO12("defaultSteps=\"9\" fixedSteps=\"false\" minSteps=\"1\" maxSteps=\"8\""),
     "defaultSteps = 9, expected 1 to 8"},
    {"U01", "<Unit name=\"V\"", "<Unit name=\"A\"", "a second unit 'A'"},
    {"U02", "<DisplayUnit name=\"rpm\" factor=\"9.549296585513721\"/>",
     "<DisplayUnit name=\"rpm\"/><DisplayUnit name=\"rpm\"/>", "a second display unit 'rpm'", true},
    {"U03", "</TypeDefinitions>",
     "<SimpleType name=\"Speed\"><Int8/></SimpleType></TypeDefinitions>", "a second type 'Speed'"},
    {"U04", "</TypeDefinitions>", "<SimpleType name=\"None\"/></TypeDefinitions>",
     "type 'None' has 0 data types"},
    {"U05", "<BaseUnit A=\"1\"/>", "<BaseUnit A=\"1\" factor=\"0\"/>", "a factor of 0"},
    {"L01", "canProvideLogOnRequest=\"true\" canProvideLogOnNotification=\"true\"", "",
     "although no flag says so", true},
    {"L02", "name=\"BENCH\"/>", "name=\"BENCH\"/><Category id=\"1\" name=\"x\"/>",
     "a second category 1"},
    {"L03", "name=\"BENCH\"/>", "name=\"BENCH\"/><Category id=\"2\" name=\"BENCH\"/>",
     "a second category 'BENCH'"},
    {"L04", "<Template id=\"2\"", "<Template id=\"1\"", "a second template 1"},
    {"L05", "<Template id=\"2\" category=\"1\"", "<Template id=\"2\" category=\"3\"",
     "template 2: category 3"},
    {"L06", "level=\"3\"", "level=\"5\"", "template 1: level = 5, expected 0 to 4"},
    {"L07", "status %string", "status %text", "'status %text' has a % without data type"},
    {"L08", "id=\"1\" name=\"BENCH\"", "id=\"0\" name=\"BENCH\"", "has the id 0"},
    {"L09", "<Category id=\"1\" name=\"BENCH\"/>", "", "a log without categories", true},
    {"L09", "  <Log>", "  <Log/><Log>", "<Log> has no categories and no templates"},
};

static void each_rule_is_found_broken_where_it_is(void** state)
{
    fixture* f = *state;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const variant* v = &variants[i];
        int line = 0, count = 0;
        char* text = edited(f->rig, v->from, v->to, &line);
        check_ok(parse(f, text));
        const crd_dcp_finding* found = NULL;
        for (int k = 0; k < f->count; k++) {
            const crd_dcp_finding* x = &f->findings[k];
            if (strcmp(x->code, v->code) == 0 && strstr(x->text, v->says)) { found = x; }
        }
        if (!found) {
            const crd_dcp_finding* other = find(f, v->code);
            fail_msg("'%s': no %s that says '%s', but '%s'", v->to, v->code, v->says,
                     other ? other->text : "nothing");
        }
        const crdi_dcp_rule* rules = crdi_dcpx_rules.of;
        count = crdi_dcpx_rules.count;
        for (int k = 0; k < count; k++) {
            if (strcmp(rules[k].code, v->code) == 0) {
                check_int(found->severity, rules[k].severity);
            }
        }
        if (found->line < 1 || (!v->elsewhere && found->line != line)) {
            fail_msg("%s '%s' is in line %d, expected %d", v->code, v->says, found->line, line);
        }
        free(text);
    }
}

static void the_rig_breaks_no_rule_that_a_variant_shows(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, f->rig));
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        if (strcmp(variants[i].code, "V29") != 0 && find(f, variants[i].code)) {
            fail_msg("%s: %s", variants[i].code, find(f, variants[i].code)->text);
        }
    }
}

static void no_rule_is_without_a_test(void** state)
{
    // tests of their own: archives, other documents, descriptions made by hand
    static const char elsewhere[] = "A01 A02 T01 V01 G07 L10 L11 U06";
    int count = 0;
    const crdi_dcp_rule* rules = crdi_dcpx_rules.of;
    count = crdi_dcpx_rules.count;
    for (int i = 0; i < count; i++) {
        bool tested = strstr(elsewhere, rules[i].code) != NULL;
        for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
            tested = tested || strcmp(variants[k].code, rules[i].code) == 0;
        }
        if (!tested) { fail_msg("%s has no test", rules[i].code); }
        for (int k = 0; k < i; k++) {
            check(strcmp(rules[k].code, rules[i].code) != 0);
        }
        const size_t n = strlen(rules[i].text);
        check(n > 10 && rules[i].text[n - 1] == '.');
    }
}

static void a_log_is_wanted_by_either_flag(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* text = edited(bare, "<CapabilityFlags/>",
                        "<CapabilityFlags canProvideLogOnRequest='true'/>", &line);
    check_ok(parse(f, text));
    check(find(f, "L01") && !find(f, "L11"));
    check_contains(find(f, "L01")->text, "without <Log>");
    check_int(find(f, "L01")->line, line);
    free(text);
    text = edited(bare, "<CapabilityFlags/>",
                  "<CapabilityFlags canProvideLogOnNotification='true'/>", &line);
    check_ok(parse(f, text));
    check(!find(f, "L01") && find(f, "L11")); // the schema lets it pass
    check_int(faults(f), 0);
    free(text);
}

static void a_slave_without_variables_or_transport_is_told(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* a =
        edited(bare, "<Variable name='y' valueReference='7'><Output><Int8/></Output></Variable>",
               "", &line);
    char* b = edited(a, "<UDP_IPv4/>", "<USB2/>", &line);
    check_ok(parse(f, b));
    check(find(f, "V01") && find(f, "T01"));
    check(f->d->usb && !f->d->can);
    check_int(f->d->variable_count, 0);
    free(b);
    b = edited(a, "<UDP_IPv4/>", "<CAN/><USB2/>", &line);
    check_ok(parse(f, b));
    check(!find(f, "T01"));
    check(f->d->can && f->d->usb);
    free(a);
    free(b);
}

static void missing_parts_are_faults_and_the_rest_is_there(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, "<dcpSlaveDescription/>"));
    int missing = 0;
    for (int i = 0; i < f->count; i++) {
        missing += strcmp(f->findings[i].code, "X05") == 0;
    }
    check_int(missing, 5);
    for (int i = 0; i < f->count; i++) {
        check_int(f->findings[i].line, 1);
    }
    check_int(f->d->variable_count, 0);
    check_text(f->d->name, "");
    check_int(crd_dcp_find_vr(f->d, 0), -1);
}

static void elements_of_others_pass(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* a = edited(f->rig, "<dcpSlaveDescription ",
                     "<dcpSlaveDescription xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
                     "xsi:noNamespaceSchemaLocation=\"dcpSlaveDescription.xsd\" ",
                     &line);
    char* b = edited(a, "  <TimeRes>",
                     "<VendorAnnotations><Tool name=\"x\"><any><thing at=\"all\"/></any></Tool>"
                     "</VendorAnnotations><TimeRes>",
                     &line);
    check_ok(parse(f, b));
    check_int(f->count, 2); // as before
    free(a);
    free(b);
}

static void a_namespace_does_not_keep_it_from_being_read(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* text =
        edited(f->rig, "<dcpSlaveDescription ", "<dcpSlaveDescription xmlns=\"urn:x\" ", &line);
    check_ok(parse(f, text));
    check_int(f->d->variable_count, 17);
    check_int(faults(f), 0);
    free(text);
}

static void many_findings_of_a_kind_are_counted(void** state)
{
    fixture* f = *state;
    crd_text t;
    crd_text_init(&t, f->ctx);
    crdi_text_add(&t, "<dcpSlaveDescription><Variables>");
    for (int i = 0; i < 50000; i++) {
        crdi_text_add(&t, "<Variable name='a' valueReference='0' x='1'/>");
    }
    crdi_text_add(&t, "</Variables></dcpSlaveDescription>");
    check_ok(parse(f, t.data));
    check(f->count < 200);
    bool counted = false;
    for (int i = 0; i < f->count; i++) {
        counted = counted || (strcmp(f->findings[i].code, "V02") == 0 &&
                              strcmp(f->findings[i].text, "and 49979 more of this kind") == 0);
    }
    check(counted);
    crd_text_clear(&t);
}

static void findings_stand_in_the_order_of_lines(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* a = edited(f->rig, "<SoftRealTime/>", "<Sometimes/>", &line);
    char* b = edited(a, "<Int16 start=\"100\"/>", "<Int16/>", &line);
    check_ok(parse(f, b));
    for (int i = 1; i < f->count; i++) {
        check(f->findings[i - 1].line <= f->findings[i].line);
    }
    free(a);
    free(b);
}

// ---- what is no description --------------------------------------------------------------------

static void what_is_no_description_is_refused_with_file_and_line(void** state)
{
    fixture* f = *state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "rig.dcpx:"},
        {"<fmiModelDescription/>",
         "rig.dcpx:1: the document is a 'fmiModelDescription', expected a "
         "dcpSlaveDescription"},
        {"<dcpSlaveDescription>\n<OpMode>\n</dcpSlaveDescription>", "rig.dcpx:3: not well-formed"},
        {"<!DOCTYPE x [<!ENTITY a 'b'>]><dcpSlaveDescription/>", "DOCTYPE"},
        {"<?xml version='1.0' encoding='ISO-8859-1'?><dcpSlaveDescription/>", "expected UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_status(parse(f, cases[i].text), CRD_E_FORMAT);
        check_contains(crd_error_text(f->ctx), cases[i].says);
        check(!f->d);
    }
}

static void cut_and_changed_texts_do_no_harm(void** state)
{
    fixture* f = *state;
    const size_t n = strlen(f->rig);
    for (size_t i = 0; i < n; i += 13) {
        crd_dcp_description* d = NULL;
        check_status(crd_dcp_parse(f->ctx, f->rig, i, "cut", &d, NULL, NULL), CRD_E_FORMAT);
    }
    char* text = malloc(n + 1);
    uint32_t seed = 1;
    for (int i = 0; i < 400; i++) {
        memcpy(text, f->rig, n + 1);
        for (int k = 0; k < 3; k++) {
            seed = seed * 1664525 + 1013904223;
            text[seed % n] = (char)(' ' + (seed >> 24) % 95);
        }
        crd_dcp_description* d = NULL;
        const crd_status st = crd_dcp_parse(f->ctx, text, n, "changed", &d, NULL, NULL);
        check(st == CRD_OK || st == CRD_E_FORMAT);
        crd_dcp_description_destroy(d);
    }
    free(text);
}

// ---- many variables ----------------------------------------------------------------------------

static void a_hundred_thousand_variables_are_read_and_found(void** state)
{
    fixture* f = *state;
    enum { COUNT = 100000 };
    crd_text t;
    crd_text_init(&t, f->ctx);
    const char* at = strstr(bare, "<Variable name");
    crdi_text_put(&t, bare, (size_t)(at - bare));
    for (int i = 0; i < COUNT; i++) { // references in no order
        crdi_text_add(
            &t,
            "<Variable name='y%d' valueReference='%llu'><Output><Int8 start='0'/></Output>"
            "</Variable>",
            i, (unsigned long long)((uint64_t)i * 40503 % 100003));
    }
    crdi_text_add(&t, "</Variables></dcpSlaveDescription>");
    check_ok(parse(f, t.data));
    check_int(f->d->variable_count, COUNT);
    check_int(faults(f), 0);
    for (int i = 0; i < COUNT; i++) {
        check_int(crd_dcp_find_vr(f->d, (uint64_t)i * 40503 % 100003), i);
    }
    crd_text_clear(&t);
}

static void more_variables_than_anybody_has_are_refused(void** state)
{
    fixture* f = *state;
    crd_text t;
    crd_text_init(&t, f->ctx);
    crdi_text_add(&t, "<dcpSlaveDescription>\n<Variables>");
    for (int i = 0; i <= 1 << 18; i++) {
        crdi_text_add(&t, "<Variable/>");
    }
    crdi_text_add(&t, "</Variables></dcpSlaveDescription>");
    check_status(parse(f, t.data), CRD_E_FORMAT);
    check_contains(crd_error_text(f->ctx), "rig.dcpx:2: 262145 variables, expected at most 262144");
    crd_text_clear(&t);
}

// ---- writing -----------------------------------------------------------------------------------

static bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a <= b && a >= b);
}

#define SAME_TEXT(x) check_text(a->x, b->x)
#define SAME_INT(x) check_int(a->x, b->x)
#define SAME_NUMBER(x)                                                                             \
    if (!same_number(a->x, b->x)) { fail_msg(#x " = %.17g, expected %.17g", b->x, a->x); }

static void same_dependencies(const crd_dcp_dependency* a, const crd_dcp_dependency* b, int count)
{
    for (int i = 0; i < count; i++) {
        check(a[i].vr == b[i].vr && a[i].linear == b[i].linear);
    }
}

static void same_variables(const crd_dcp_variable* a, const crd_dcp_variable* b)
{
    SAME_TEXT(name);
    SAME_TEXT(description);
    check(a->vr == b->vr);
    SAME_INT(causality);
    SAME_INT(variability);
    SAME_INT(type);
    SAME_TEXT(unit);
    SAME_TEXT(display_unit);
    SAME_TEXT(quantity);
    SAME_TEXT(declared_type);
    SAME_NUMBER(min);
    SAME_NUMBER(max);
    SAME_NUMBER(gradient);
    SAME_NUMBER(nominal);
    SAME_INT(max_size);
    SAME_TEXT(mime);
    check(!a->start == !b->start);
    if (a->start) { SAME_TEXT(start); }
    SAME_INT(rank);
    for (int i = 0; i < a->rank; i++) {
        check(a->is_linked[i] == b->is_linked[i] && a->dimensions[i] == b->dimensions[i] &&
              a->linked[i] == b->linked[i]);
    }
    SAME_NUMBER(pre_edge);
    SAME_NUMBER(post_edge);
    SAME_INT(has_max_missed);
    SAME_INT(max_missed);
    SAME_INT(default_steps);
    SAME_INT(min_steps);
    SAME_INT(max_steps);
    SAME_INT(fixed_steps);
    SAME_INT(initialization);
    SAME_INT(has_initial_dependencies);
    SAME_INT(has_run_dependencies);
    SAME_INT(initial_dependency_count);
    SAME_INT(run_dependency_count);
    same_dependencies(a->initial_dependencies, b->initial_dependencies,
                      a->initial_dependency_count);
    same_dependencies(a->run_dependencies, b->run_dependencies, a->run_dependency_count);
}

static void same_endpoints(const crd_dcp_endpoint* a, const crd_dcp_endpoint* b)
{
    SAME_INT(offered);
    SAME_INT(max_pdu_size);
    SAME_TEXT(host);
    SAME_INT(port);
    SAME_INT(has_data);
    SAME_INT(has_parameter);
    SAME_TEXT(data_host);
    SAME_TEXT(parameter_host);
    SAME_INT(data_count);
    SAME_INT(parameter_count);
    for (int i = 0; i < a->data_count; i++) {
        check(a->data[i].from == b->data[i].from && a->data[i].to == b->data[i].to);
    }
    for (int i = 0; i < a->parameter_count; i++) {
        check(a->parameter[i].from == b->parameter[i].from &&
              a->parameter[i].to == b->parameter[i].to);
    }
}

static void same_parts(const crd_dcp_description* a, const crd_dcp_description* b)
{
    SAME_INT(resolution_count);
    for (int i = 0; i < a->resolution_count; i++) {
        const crd_dcp_resolution *x = &a->resolutions[i], *y = &b->resolutions[i];
        check(x->numerator == y->numerator && x->numerator_to == y->numerator_to &&
              x->denominator == y->denominator && x->recommended == y->recommended);
    }
    SAME_INT(unit_count);
    for (int i = 0; i < a->unit_count; i++) {
        const crd_dcp_unit *x = &a->units[i], *y = &b->units[i];
        check_text(x->name, y->name);
        check(x->has_base == y->has_base && memcmp(x->exponents, y->exponents, 8) == 0);
        check(same_number(x->factor, y->factor) && same_number(x->offset, y->offset));
        check_int(x->display_count, y->display_count);
        for (int k = 0; k < x->display_count; k++) {
            check_text(x->displays[k].name, y->displays[k].name);
            check(same_number(x->displays[k].factor, y->displays[k].factor) &&
                  same_number(x->displays[k].offset, y->displays[k].offset));
        }
    }
    SAME_INT(category_count);
    for (int i = 0; i < a->category_count; i++) {
        check_int(a->categories[i].id, b->categories[i].id);
        check_text(a->categories[i].name, b->categories[i].name);
    }
    SAME_INT(template_count);
    for (int i = 0; i < a->template_count; i++) {
        const crd_dcp_log_template *x = &a->templates[i], *y = &b->templates[i];
        check(x->id == y->id && x->category == y->category && x->level == y->level);
        check_text(x->message, y->message);
        check_int(x->argument_count, y->argument_count);
        check(memcmp(x->arguments, y->arguments, (size_t)x->argument_count) == 0);
    }
}

// All but the file's name and the lines.
static void same_descriptions(const crd_dcp_description* a, const crd_dcp_description* b)
{
    SAME_TEXT(name);
    SAME_TEXT(description);
    SAME_TEXT(author);
    SAME_TEXT(version);
    SAME_TEXT(copyright);
    SAME_TEXT(license);
    SAME_TEXT(tool);
    SAME_TEXT(date);
    check(memcmp(a->uuid, b->uuid, 16) == 0);
    check(a->major == b->major && a->minor == b->minor && a->structured == b->structured);
    check(a->hrt == b->hrt && a->srt == b->srt && a->nrt == b->nrt);
    SAME_INT(nrt_default_steps);
    SAME_INT(nrt_min_steps);
    SAME_INT(nrt_max_steps);
    SAME_INT(nrt_fixed_steps);
    SAME_INT(fixed_resolution);
    SAME_INT(has_heartbeat);
    SAME_INT(heartbeat_numerator);
    SAME_INT(heartbeat_denominator);
    same_endpoints(&a->udp, &b->udp);
    same_endpoints(&a->tcp, &b->tcp);
    check(a->can == b->can && a->usb == b->usb && a->bluetooth == b->bluetooth);
    check(a->can_accept_config == b->can_accept_config && a->can_reset == b->can_reset &&
          a->can_vary_steps == b->can_vary_steps &&
          a->can_monitor_heartbeat == b->can_monitor_heartbeat &&
          a->can_log_on_request == b->can_log_on_request &&
          a->can_log_on_notification == b->can_log_on_notification);
    same_parts(a, b);
    SAME_INT(variable_count);
    for (int i = 0; i < a->variable_count; i++) {
        same_variables(&a->variables[i], &b->variables[i]);
    }
}

// Written, read, equal; written again, the same bytes. No rule of the document is broken.
static void check_round(fixture* f, const crd_dcp_description* d)
{
    crd_text first, second;
    crd_text_init(&first, f->ctx);
    crd_text_init(&second, f->ctx);
    if (crd_dcp_write(d, &first) != CRD_OK) { fail_msg("%s", crd_error_text(f->ctx)); }
    crd_dcp_description* back = NULL;
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    if (crd_dcp_parse(f->ctx, first.data, first.length, "back", &back, &findings, &count) !=
        CRD_OK) {
        fail_msg("%s\n%s", crd_error_text(f->ctx), first.data);
    }
    for (int i = 0; i < count; i++) {
        if (findings[i].severity == CRD_DCP_FAULT || findings[i].code[0] == 'X') {
            fail_msg("line %d: %s: %s\n%s", findings[i].line, findings[i].code, findings[i].text,
                     first.data);
        }
    }
    same_descriptions(d, back);
    check_ok(crd_dcp_write(back, &second));
    check_text(second.data, first.data);
    crd_dcp_description_destroy(back);
    crd_text_clear(&first);
    crd_text_clear(&second);
}

static void what_is_written_is_read_as_it_was(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, f->rig));
    check_round(f, f->d);
    check_ok(parse(f, bare));
    check_round(f, f->d);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) { // those that are no faults
        int line = 0;
        char* text = edited(f->rig, variants[i].from, variants[i].to, &line);
        check_ok(parse(f, text));
        if (faults(f) == 0) { check_round(f, f->d); }
        free(text);
    }
}

static void what_decides_is_written_out(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, bare));
    crd_text t;
    crd_text_init(&t, f->ctx);
    check_ok(crd_dcp_write(f->d, &t));
    static const char* const parts[] = {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<dcpSlaveDescription dcpMajorVersion=\"1\"",
        " uuid=\"6f1d2c3b-4a59-4e68-8f70-0123456789ab\"",
        "<NonRealTime defaultSteps=\"1\" fixedSteps=\"true\"/>",
        "<Resolution numerator=\"1\" denominator=\"1000\" fixed=\"true\" recommended=\"false\"/>",
        "<UDP_IPv4 maxPduSize=\"65507\"/>",
        "canAcceptConfigPdus=\"false\" canHandleReset=\"false\" canHandleVariableSteps=\"false\" "
        "canMonitorHeartbeat=\"false\" canProvideLogOnRequest=\"false\" "
        "canProvideLogOnNotification=\"false\"/>",
        "<Variable name=\"y\" valueReference=\"7\" variability=\"continuous\">",
        "<Output defaultSteps=\"1\" fixedSteps=\"true\" initialization=\"false\">",
        "<Int8/>",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        check_contains(t.data, parts[i]);
    }
    crd_text_clear(&t);
}

static void limits_of_64_bits_stay_in_their_range(void** state)
{
    fixture* f = *state;
    int line = 0;
    char* a = edited(
        f->rig, "<Int16 start=\"100\"/>",
        "<Uint64 min=\"0\" max=\"18446744073709551615\" start=\"18446744073709551615\"/>", &line);
    char* b = edited(a, "<Uint8 min=\"0\" max=\"3\" start=\"0\"/>",
                     "<Int64 min=\"-9223372036854775808\" max=\"9223372036854775807\" "
                     "gradient=\"123456789012345678\" start=\"-9223372036854775808\"/>",
                     &line);
    check_ok(parse(f, b));
    check_int(faults(f), 0);
    crd_text t;
    crd_text_init(&t, f->ctx);
    check_ok(crd_dcp_write(f->d, &t));
    check_contains(t.data, "max=\"18446744073709551615\"");
    check_contains(t.data, "min=\"-9223372036854775808\" max=\"9223372036854775807\"");
    check_round(f, f->d);
    crd_text_clear(&t);
    free(a);
    free(b);
}

// ---- made by hand ------------------------------------------------------------------------------

static void by_hand(fixture* f, crd_dcp_variable* variables, int count)
{
    crd_dcp_description_destroy(f->d);
    f->d = NULL;
    check_ok(crd_dcp_description_create(f->ctx, &f->d));
    f->d->name = "by hand";
    f->d->uuid[15] = 1;
    f->d->nrt = true;
    f->d->variables = variables;
    f->d->variable_count = count;
}

static void texts_of_any_kind_survive(void** state)
{
    fixture* f = *state;
    crd_dcp_variable v[2] = {crd_dcp_variable_defaults(), crd_dcp_variable_defaults()};
    v[0].name = "a<b & \"c\" 'd' > \xC3\xA9\xF0\x9F\x9A\x97";
    v[0].causality = CRD_PARAMETER;
    v[0].variability = CRD_TUNABLE;
    v[0].type = CRD_DCP_STRING;
    v[0].start = " two\tlines\r\nand  blanks ";
    v[0].description = "]]> <!-- &amp; --> \n\n";
    v[1].name = "u";
    v[1].vr = UINT64_MAX;
    v[1].causality = CRD_INPUT;
    v[1].start = "1e-300";
    v[1].min = 5e-324;
    v[1].max = 1.7976931348623157e308;
    v[1].nominal = 0.1;
    v[1].pre_edge = 1.0 / 3;
    static const crd_dcp_resolution r = {1, 1, 1000, false, 0};
    by_hand(f, v, 2);
    f->d->resolutions = &r;
    f->d->resolution_count = 1;
    char longer[1000];
    memset(longer, '&', sizeof longer);
    longer[999] = 0;
    longer[127] = '\n';
    f->d->license = longer;
    check_round(f, f->d);
}

static void a_description_made_by_hand_obeys_the_same_rules(void** state)
{
    fixture* f = *state;
    static const uint8_t wrong[] = {CRD_DCP_FLOAT32};
    static const crd_dcp_log_category category = {1, "c", 0};
    static const crd_dcp_log_template message = {1, 1, 1, "speed %float64", wrong, 1, 0};
    crd_dcp_variable v[2] = {crd_dcp_variable_defaults(), crd_dcp_variable_defaults()};
    v[0].name = "bad \x01";
    v[0].causality = CRD_OUTPUT;
    v[1].name = "\xC3(";
    v[1].causality = CRD_LOCAL;
    by_hand(f, v, 2);
    f->d->categories = &category;
    f->d->category_count = 1;
    f->d->templates = &message;
    f->d->template_count = 1;
    f->d->can_log_on_request = true;
    check_ok(crd_dcp_validate(f->d, &f->findings, &f->count));
    check(find(f, "G07") && find(f, "L10") && find(f, "V03") && find(f, "V05") && find(f, "T01"));
    check_int(find(f, "L10")->line, 0);
    v[0].rank = 9;
    check_ok(crd_dcp_validate(f->d, &f->findings, &f->count));
    check(find(f, "V22"));
}

static void numbers_that_xml_cannot_hold_are_told(void** state)
{
    fixture* f = *state;
    crd_dcp_unit unit = {.name = "u", .has_base = true, .factor = (double)INFINITY};
    crd_dcp_variable v = crd_dcp_variable_defaults();
    v.name = "y";
    v.causality = CRD_OUTPUT;
    by_hand(f, &v, 1);
    f->d->units = &unit;
    f->d->unit_count = 1;
    check_ok(crd_dcp_validate(f->d, &f->findings, &f->count));
    check(find(f, "U06"));
    unit.factor = 1;
    check_ok(crd_dcp_validate(f->d, &f->findings, &f->count));
    check_int(faults(f), 0);
    double* const numbers[] = {&v.min, &v.max, &v.gradient, &v.nominal, &v.pre_edge, &v.post_edge};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        *numbers[i] = (double)INFINITY;
        check_ok(crd_dcp_validate(f->d, &f->findings, &f->count));
        check_int(faults(f), 1);
        check(find(f, "V33"));
        *numbers[i] = (double)NAN;
    }
    v.type = CRD_DCP_FLOAT32;
    v.max = 1e39;
    check_ok(crd_dcp_validate(f->d, &f->findings, &f->count));
    check(find(f, "V33"));
    v.max = 1;
    v.rank = 2;
    v.dimensions[0] = 1;
    check_ok(crd_dcp_validate(f->d, &f->findings, &f->count));
    check_contains(find(f, "V18")->text, "dimension 2 is 0");
    v.rank = 0;
    v.causality = CRD_INPUT;
    v.type = CRD_DCP_STRING;
    f->d->date = "today";
    check_ok(crd_dcp_validate(f->d, &f->findings, &f->count));
    check(find(f, "V09") && find(f, "G06"));
    check_int(faults(f), 0);
}

static void dates_are_those_of_xml_schema(void** state)
{
    static const char* const good[] = {"2026-01-31T12:00:00Z", "2026-01-31T12:00:00",
                                       "-0044-03-15T11:59:59.999+14:00",
                                       "12026-12-31T24:00:00-00:30"};
    static const char* const bad[] = {
        "",
        "2026-01-31",
        "2026-01-31 12:00:00",
        "26-01-31T12:00:00Z",
        "02026-01-31T12:00:00Z",
        "2026-13-31T12:00:00Z",
        "2026-00-31T12:00:00Z",
        "2026-01-32T12:00:00Z",
        "2026-01-31T25:00:00Z",
        "2026-01-31T12:60:00Z",
        "2026-01-31T12:00:60Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00ZZ",
        "2026-01-31T12:00:00+1:00",
        "2026-01-31T12:00:00+01:00Z",
        "2026-01-31T12:0",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!crdi_dcp_is_date(good[i])) { fail_msg("'%s' is a date", good[i]); }
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (crdi_dcp_is_date(bad[i])) { fail_msg("'%s' is no date", bad[i]); }
    }
}

static void texts_that_xml_cannot_hold_are_told(void** state)
{
    fixture* f = *state;
    static const char* const bad[] = {"\x80",         "\xC0\xAF",         "\xE0\x80\x80",
                                      "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xEF\xBF\xBF",
                                      "\xE2\x82",     "\x7F\x1B"};
    static const char* const good[] = {"\xC2\x80",
                                       "\xE0\xA0\x80",
                                       "\xED\x9F\xBF",
                                       "\xF0\x90\x80\x80",
                                       "\xF4\x8F\xBF\xBF",
                                       "\xEF\xBF\xBD",
                                       "\t"};
    crd_dcp_variable v = crd_dcp_variable_defaults();
    v.name = "y";
    v.causality = CRD_OUTPUT;
    by_hand(f, &v, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        f->d->name = bad[i];
        check_ok(crd_dcp_validate(f->d, &f->findings, &f->count));
        if (!find(f, "G07")) { fail_msg("text %zu was let pass", i); }
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        f->d->name = good[i];
        check_ok(crd_dcp_validate(f->d, &f->findings, &f->count));
        if (find(f, "G07")) { fail_msg("text %zu was not let pass", i); }
        check_round(f, f->d);
    }
}

static void what_breaks_a_rule_is_not_written(void** state)
{
    fixture* f = *state;
    crd_dcp_variable v = crd_dcp_variable_defaults();
    v.name = "u";
    v.causality = CRD_INPUT;
    by_hand(f, &v, 1);
    crd_text t;
    crd_text_init(&t, f->ctx);
    check_status(crd_dcp_write(f->d, &t), CRD_E_RANGE);
    check_text(
        crd_error_text(f->ctx),
        "slave 'by hand' cannot be written: variable 'u' has no start, expected a value (V08)");
    check_int(t.length, 0);
    v.start = "1";
    f->d->bluetooth = true;
    check_status(crd_dcp_write(f->d, &t), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(f->ctx), "Bluetooth");
    f->d->bluetooth = false;
    check_ok(crd_dcp_write(f->d, &t));
    crd_text_clear(&t);
}

static void variables_are_found_with_and_without_an_index(void** state)
{
    fixture* f = *state;
    crd_dcp_variable v[3];
    static const uint64_t references[] = {9, 2, 5};
    for (int i = 0; i < 3; i++) {
        v[i] = crd_dcp_variable_defaults();
        v[i].name = i == 0 ? "a" : i == 1 ? "b" : "c";
        v[i].causality = CRD_OUTPUT;
        v[i].vr = references[i];
    }
    by_hand(f, v, 3);
    check_int(crd_dcp_find_vr(f->d, 2), 1);
    check_ok(crd_dcp_validate(f->d, NULL, NULL));
    check_int(crd_dcp_find_vr(f->d, 5), 2);
    v[1].vr = 100; // the index is older than this
    check_int(crd_dcp_find_vr(f->d, 2), -1);
    check_int(crd_dcp_find_vr(f->d, 100), 1);
    f->d->variable_count = 1;
    check_int(crd_dcp_find_vr(f->d, 5), -1);
}

// ---- random descriptions -----------------------------------------------------------------------

typedef struct dice {
    uint64_t state;
    crd_dcp_description* d;
} dice;

static uint32_t roll(dice* r, uint32_t sides)
{
    r->state = r->state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(r->state >> 33) % sides;
}

static double roll_number(dice* r)
{
    switch (roll(r, 4)) {
    case 0:
        return (double)NAN;
    case 1:
        return (double)roll(r, 1000) / 8;
    case 2:
        return ldexp(1 + (double)roll(r, 1 << 30) / 3, (int)roll(r, 200) - 100);
    default:
        return -1.0 / (1 + roll(r, 100));
    }
}

static const char* roll_text(dice* r, const char* prefix, int number)
{
    static const char* const pieces[] = {"",      ".x",    " & ", "<\xC3\xBC>",
                                         "\"'\t", "[1,2]", "\n",  "%"};
    return crdi_arena_format(&r->d->arena, "%s%d%s%s", prefix, number, pieces[roll(r, 8)],
                             pieces[roll(r, 8)]);
}

static const char* roll_start(dice* r, const crd_dcp_variable* v, int elements)
{
    crd_text t;
    crd_text_init(&t, r->d->ctx);
    for (int i = 0; i < elements; i++) {
        if (v->type < CRD_DCP_INT8) {
            crdi_text_add(&t, "%s%u", i ? " " : "", 1 + roll(r, 200));
        } else if (v->type < CRD_DCP_FLOAT32) {
            crdi_text_add(&t, "%s%d", i ? " " : "", (int)roll(r, 200) - 100);
        } else if (v->type < CRD_DCP_STRING) {
            crdi_text_add(&t, "%s%g", i ? "  " : "", (double)roll(r, 100000) / 7);
        } else if (v->type == CRD_DCP_BINARY) {
            crdi_text_add(&t, "%04X", roll(r, 65536));
        }
    }
    const char* text = v->type == CRD_DCP_STRING ? roll_text(r, "s", elements)
                                                 : crdi_arena_text(&r->d->arena, t.data, t.length);
    crd_text_clear(&t);
    return text;
}

static const crd_dcp_dependency* roll_dependencies(dice* r, int variables, int* count)
{
    *count = (int)roll(r, 4);
    crd_dcp_dependency* all = crdi_arena_new(&r->d->arena, (size_t)*count, sizeof *all);
    for (int i = 0; i < *count; i++) {
        all[i] = (crd_dcp_dependency){(uint64_t)roll(r, (uint32_t)variables) * 3, roll(r, 2)};
    }
    return all;
}

static void roll_output(dice* r, crd_dcp_variable* v, int variables)
{
    v->fixed_steps = roll(r, 2);
    v->default_steps = v->min_steps = v->max_steps = 1 + roll(r, 9);
    if (!v->fixed_steps) { v->max_steps += 1 + roll(r, 9); }
    v->initialization = roll(r, 2);
    v->has_initial_dependencies = roll(r, 2);
    v->has_run_dependencies = !v->initialization && roll(r, 2);
    if (v->has_initial_dependencies) {
        v->initial_dependencies = roll_dependencies(r, variables, &v->initial_dependency_count);
    }
    if (v->has_run_dependencies) {
        v->run_dependencies = roll_dependencies(r, variables, &v->run_dependency_count);
    }
}

// Variable 0 is a structural parameter with start 2, for others to link.
static void roll_variable(dice* r, crd_dcp_variable* v, int i, int variables)
{
    static const uint8_t kinds[] = {CRD_INPUT, CRD_OUTPUT, CRD_PARAMETER, CRD_STRUCTURAL_PARAMETER};
    *v = crd_dcp_variable_defaults();
    v->name = roll_text(r, "v", i);
    v->vr = (uint64_t)i * 3;
    v->causality = i == 0 ? CRD_STRUCTURAL_PARAMETER : kinds[roll(r, 4)];
    const bool data = v->causality == CRD_INPUT || v->causality == CRD_OUTPUT;
    const bool structural = v->causality == CRD_STRUCTURAL_PARAMETER;
    v->variability = data ? (roll(r, 2) ? CRD_CONTINUOUS : CRD_DISCRETE)
                          : (roll(r, 2) ? CRD_FIXED : CRD_TUNABLE);
    v->type = (uint8_t)(structural ? roll(r, 4) : roll(r, CRD_DCP_DATA_TYPE_COUNT));
    if (roll(r, 2)) { v->description = roll_text(r, "about ", i); }
    v->pre_edge = fabs(roll_number(r));
    v->has_max_missed = v->causality != CRD_OUTPUT && roll(r, 2);
    if (v->has_max_missed) { v->max_missed = roll(r, 10); }
    int elements = 1;
    if (!structural && v->type < CRD_DCP_STRING) {
        v->rank = (int)roll(r, 4);
        for (int k = 0; k < v->rank; k++) {
            v->is_linked[k] = roll(r, 2);
            if (!v->is_linked[k]) { v->dimensions[k] = 1 + roll(r, 3); }
            elements *= v->is_linked[k] ? 2 : (int)v->dimensions[k];
        }
        if (v->type >= CRD_DCP_FLOAT32) {
            v->min = roll_number(r);
            v->gradient = roll_number(r);
            v->nominal = roll_number(r);
            if (roll(r, 2)) { v->unit = roll_text(r, "unit", (int)roll(r, 3)); }
            if (roll(r, 2)) { v->quantity = roll_text(r, "q", i); }
        } else if (roll(r, 2)) {
            v->min = 0;
            v->max = 100;
        }
    }
    if (roll(r, 3) == 0) { v->declared_type = crdi_arena_format(&r->d->arena, "T%d", v->type); }
    if (v->type == CRD_DCP_BINARY) { v->mime = roll(r, 2) ? "image/png" : CRDI_DCP_MIME; }
    if (v->type >= CRD_DCP_STRING && roll(r, 2)) { v->max_size = roll(r, 100); }
    if (v->causality != CRD_OUTPUT || roll(r, 2)) { v->start = roll_start(r, v, elements); }
    if (i == 0) { v->start = "2"; }
    if (v->causality == CRD_OUTPUT) { roll_output(r, v, variables); }
}

static void roll_endpoint(dice* r, crd_dcp_endpoint* e)
{
    e->offered = roll(r, 2);
    if (!e->offered) { return; }
    e->max_pdu_size = 24 + roll(r, 60000);
    if (roll(r, 2)) { e->host = "host.example"; }
    e->port = (uint16_t)roll(r, 65536);
    e->has_data = roll(r, 2);
    e->has_parameter = roll(r, 2);
    crd_dcp_ports* ports = crdi_arena_new(&r->d->arena, 4, sizeof *ports);
    for (int i = 0; i < 4; i++) {
        const uint16_t from = (uint16_t)roll(r, 60000);
        ports[i] = (crd_dcp_ports){from, (uint16_t)(from + roll(r, 2) * roll(r, 5000))};
    }
    if (e->has_data) {
        e->data_host = roll(r, 2) ? "10.0.0.1" : "";
        e->data = ports;
        e->data_count = (int)roll(r, 5);
    }
    if (e->has_parameter) {
        e->parameter = ports;
        e->parameter_count = (int)roll(r, 5);
    }
}

static void roll_log(dice* r)
{
    static const char* const messages[] = {"plain", "%% %uint8 %string%binary", "x = %float64",
                                           "%float32%int16 100%"};
    crd_dcp_description* d = r->d;
    d->can_log_on_request = true;
    d->category_count = 1 + (int)roll(r, 4);
    d->template_count = 1 + (int)roll(r, 4);
    crd_dcp_log_category* c = crdi_arena_new(&d->arena, (size_t)d->category_count, sizeof *c);
    for (int i = 0; i < d->category_count; i++) {
        c[i] = (crd_dcp_log_category){(uint8_t)(i + 1), roll_text(r, "c", i), 0};
    }
    crd_dcp_log_template* t = crdi_arena_new(&d->arena, (size_t)d->template_count, sizeof *t);
    for (int i = 0; i < d->template_count; i++) {
        t[i] = (crd_dcp_log_template){.id = (uint8_t)i,
                                      .category = c[roll(r, (uint32_t)d->category_count)].id,
                                      .level = (uint8_t)roll(r, 5),
                                      .message = messages[roll(r, 4)]};
        uint8_t* types = crdi_arena_new(&d->arena, 8, 1);
        const char* at = t[i].message;
        crdi_dcp_piece p = CRDI_DCP_LONE;
        while (p != CRDI_DCP_END) {
            p = crdi_dcp_placeholder(&at, &types[t[i].argument_count]);
            t[i].argument_count += p == CRDI_DCP_ARGUMENT;
        }
        t[i].arguments = types;
    }
    d->categories = c;
    d->templates = t;
}

static void roll_units(dice* r)
{
    crd_dcp_description* d = r->d;
    d->unit_count = (int)roll(r, 5);
    crd_dcp_unit* all = crdi_arena_new(&d->arena, (size_t)d->unit_count, sizeof *all);
    for (int i = 0; i < d->unit_count; i++) {
        crd_dcp_unit* u = &all[i];
        *u = (crd_dcp_unit){.name = roll_text(r, "unit", i), .factor = 1};
        u->has_base = roll(r, 2);
        if (u->has_base) {
            u->exponents[roll(r, 8)] = (int8_t)((int)roll(r, 256) - 128);
            u->factor = 1 + roll(r, 100) / 7.0;
            u->offset = roll(r, 100) / 3.0;
        }
        u->display_count = (int)roll(r, 3);
        crd_dcp_display_unit* x = crdi_arena_new(&d->arena, (size_t)u->display_count, sizeof *x);
        for (int k = 0; k < u->display_count; k++) {
            x[k] = (crd_dcp_display_unit){roll_text(r, "d", k), 1 + k / 3.0, -k / 7.0};
        }
        u->displays = x;
    }
    d->units = all;
}

static crd_dcp_description* roll_description(crd_context* ctx, uint64_t seed)
{
    crd_dcp_description* d = NULL;
    if (crd_dcp_description_create(ctx, &d) < 0) { return NULL; }
    dice r = {seed * 0x9E3779B97F4A7C15U, d};
    d->name = roll_text(&r, "slave", (int)seed);
    for (int i = 0; i < 16; i++) {
        d->uuid[i] = (uint8_t)(1 + roll(&r, 255));
    }
    if (roll(&r, 2)) { d->author = roll_text(&r, "me", 1); }
    if (roll(&r, 2)) { d->date = "2026-11-15T14:00:00.5+01:00"; }
    d->structured = roll(&r, 2);
    d->hrt = roll(&r, 2);
    d->srt = roll(&r, 2);
    d->nrt = roll(&r, 2) || (!d->hrt && !d->srt);
    if (d->nrt) {
        d->nrt_fixed_steps = roll(&r, 2);
        d->nrt_default_steps = d->nrt_min_steps = d->nrt_max_steps = 1 + roll(&r, 5);
        if (!d->nrt_fixed_steps) { d->nrt_max_steps += roll(&r, 5); }
    }
    d->fixed_resolution = roll(&r, 2);
    d->resolution_count = d->fixed_resolution ? 1 : (int)roll(&r, 4);
    crd_dcp_resolution* times =
        crdi_arena_new(&d->arena, (size_t)d->resolution_count, sizeof *times);
    for (int i = 0; i < d->resolution_count; i++) {
        const uint32_t n = 1 + roll(&r, 9), more = d->fixed_resolution ? 0 : roll(&r, 2) * 4;
        times[i] = (crd_dcp_resolution){n, n + more, 1 + roll(&r, 1000), !more && roll(&r, 2), 0};
    }
    d->resolutions = times;
    d->has_heartbeat = d->can_monitor_heartbeat = roll(&r, 2);
    if (d->has_heartbeat) { d->heartbeat_denominator = 1 + roll(&r, 10); }
    roll_endpoint(&r, &d->udp);
    roll_endpoint(&r, &d->tcp);
    d->can = roll(&r, 2);
    d->usb = roll(&r, 2);
    d->can_reset = roll(&r, 2);
    roll_units(&r);
    d->variable_count = 1 + (int)roll(&r, 12);
    crd_dcp_variable* all = crdi_arena_new(&d->arena, (size_t)d->variable_count, sizeof *all);
    for (int i = 0; i < d->variable_count; i++) {
        roll_variable(&r, &all[i], i, d->variable_count);
    }
    d->variables = all;
    if (roll(&r, 2)) { roll_log(&r); }
    return d;
}

static void any_description_is_read_as_it_was_written(void** state)
{
    fixture* f = *state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        crd_dcp_description* d = roll_description(f->ctx, seed);
        check_round(f, d);
        crd_dcp_description* again = roll_description(f->ctx, seed);
        crd_text a, b;
        crd_text_init(&a, f->ctx);
        crd_text_init(&b, f->ctx);
        check_ok(crd_dcp_write(d, &a));
        check_ok(crd_dcp_write(again, &b));
        check_text(a.data, b.data); // equal descriptions, equal bytes
        crd_text_clear(&a);
        crd_text_clear(&b);
        crd_dcp_description_destroy(d);
        crd_dcp_description_destroy(again);
    }
}

// ---- archives and files ------------------------------------------------------------------------

static crd_status load(fixture* f, const char* path)
{
    crd_dcp_description_destroy(f->d);
    f->d = NULL;
    return crd_dcp_load(f->ctx, path, &f->d, &f->findings, &f->count);
}

static void an_archive_holds_what_was_written(void** state)
{
    fixture* f = *state;
    const char* path = FOLDER "/rig.dcp";
    check_ok(parse(f, f->rig));
    check_ok(crd_dcp_write_archive(f->d, path));
    crd_dcp_description* back = NULL;
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    check_ok(crd_dcp_load(f->ctx, path, &back, &findings, &count));
    check_int(count, 2);
    check_text(back->file, FOLDER "/rig.dcp/" ENTRY);
    same_descriptions(f->d, back);
    crd_dcp_description_destroy(back);
    check_status(crd_dcp_write_archive(f->d, FOLDER "/none/rig.dcp"), CRD_E_IO);
}

static void an_archive_is_known_by_name_or_content(void** state)
{
    fixture* f = *state;
    const char* path = FOLDER "/archive.bin";
    zip_write(path, (zip_entry[]){{ENTRY, bare}}, 1);
    check_ok(load(f, path));
    FILE* file = fopen(FOLDER "/text.dcp", "wb");
    fputs(bare, file);
    fclose(file);
    check_status(load(f, FOLDER "/text.dcp"), CRD_E_FORMAT);
    check_contains(crd_error_text(f->ctx), "text.dcp: not a zip archive");
}

static void backslashes_in_an_archive_are_separators(void** state)
{
    fixture* f = *state;
    const char* path = FOLDER "/windows.dcp";
    zip_write(path, (zip_entry[]){{"v1.0\\dcpSlaveDescription.dcpx", bare}}, 1);
    check_ok(load(f, path));
    check_text(f->d->name, "bare");
    check(!find(f, "A01") && !find(f, "A02"));
}

static void only_v1_0_counts_in_an_archive(void** state)
{
    fixture* f = *state;
    const char* path = FOLDER "/more.dcp";
    zip_write(path,
              (zip_entry[]){{"readme.txt", "x"},
                            {"readme.txt", "x"},
                            {"folder/", NULL},
                            {"v2.0/dcpSlaveDescription.dcpx", "<x/>"},
                            {"v1.0/documentation/index.html", "x"},
                            {"v1.0/other.dcpx", "<x/>"},
                            {ENTRY, bare}},
              7);
    check_ok(load(f, path));
    check_text(f->d->name, "bare");
    int second = 0, outside = 0;
    for (int i = 0; i < f->count; i++) {
        second += strcmp(f->findings[i].code, "A01") == 0;
        outside += strcmp(f->findings[i].code, "A02") == 0;
    }
    check_int(second, 2);
    check_int(outside, 1);
    check_int(faults(f), 0);
}

static void an_archive_without_its_description_is_refused(void** state)
{
    fixture* f = *state;
    const char* path = FOLDER "/wrong.dcp";
    zip_write(path, (zip_entry[]){{"dcpSlaveDescription.dcpx", bare}}, 1);
    check_status(load(f, path), CRD_E_FORMAT);
    check_contains(crd_error_text(f->ctx), "the description lies at 'dcpSlaveDescription.dcpx', "
                                           "expected it at v1.0/dcpSlaveDescription.dcpx");
    zip_write(path, (zip_entry[]){{"modelDescription.xml", "x"}}, 1);
    check_status(load(f, path), CRD_E_FORMAT);
    check_contains(crd_error_text(f->ctx), "wrong.dcp: it has no v1.0/dcpSlaveDescription.dcpx");
    zip_write(path, (zip_entry[]){{ENTRY, bare}, {ENTRY, "<other/>"}}, 2);
    check_status(load(f, path), CRD_E_FORMAT);
    check_contains(crd_error_text(f->ctx), "is there twice, with different content");
    zip_write(path, (zip_entry[]){{ENTRY, "<broken"}}, 1);
    check_status(load(f, path), CRD_E_FORMAT);
    check_contains(crd_error_text(f->ctx), "wrong.dcp/" ENTRY ":1: not well-formed");
}

static void files_that_cannot_be_read_are_named(void** state)
{
    fixture* f = *state;
    check_status(load(f, FOLDER "/none.dcpx"), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(f->ctx), "none.dcpx: no such file");
    check_status(load(f, FOLDER "/none.dcp"), CRD_E_NOT_FOUND);
    FILE* file = fopen(FOLDER "/large.dcpx", "wb");
    check(file && ftruncate(fileno(file), (64 << 20) + 1) == 0);
    fclose(file);
    check_status(load(f, FOLDER "/large.dcpx"), CRD_E_FORMAT);
    check_contains(crd_error_text(f->ctx), "larger than 64 MiB, expected");
    remove(FOLDER "/large.dcpx");
    check_status(load(f, FOLDER), CRD_E_FORMAT);
    check_contains(crd_error_text(f->ctx), "a folder, expected");
}

// ---- memory ------------------------------------------------------------------------------------

static const char faulty[] =
    "<dcpSlaveDescription x='1'><OpMode/><Variables><Variable name='a' valueReference='1'>"
    "<Input><Int8/></Input></Variable><Variable name='a' valueReference='1'/></Variables>"
    "</dcpSlaveDescription>";

// Everything once: read, checked, written, as text and as archive.
static crd_status all_of_it(crd_context* ctx, const void* user)
{
    const char* text = user;
    crd_status st = CRD_OK;
    crd_dcp_description *d = NULL, *bad = NULL, *back = NULL;
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    crd_text out;
    crd_text_init(&out, ctx);
    CRD_TRY(crd_dcp_parse(ctx, text, strlen(text), "rig", &d, &findings, &count));
    if (count != 2) { CRD_TRY(CRD_E_STATE); }
    CRD_TRY(crd_dcp_parse(ctx, faulty, strlen(faulty), "faulty", &bad, &findings, &count));
    CRD_TRY(crd_dcp_validate(d, &findings, &count));
    CRD_TRY(crd_dcp_write(d, &out));
    CRD_TRY(crd_dcp_write_archive(d, FOLDER "/memory.dcp"));
    CRD_TRY(crd_dcp_load(ctx, FOLDER "/memory.dcp", &back, &findings, &count));
    if (count != 2) { st = CRD_E_STATE; } // what is out of memory finds nothing else
fail:
    crd_text_clear(&out);
    crd_dcp_description_destroy(d);
    crd_dcp_description_destroy(bad);
    crd_dcp_description_destroy(back);
    return st;
}

static void every_allocation_may_fail(void** state)
{
    fixture* f = *state;
    check_allocations(all_of_it, f->rig);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(the_rig_is_read_with_all_it_says),
        T(variables_of_the_rig_have_types_limits_and_dimensions),
        T(what_is_left_out_has_the_defaults_of_the_standard),
        T(a_declared_type_gives_what_the_variable_does_not_say),
        T(a_unit_may_be_shown_as_itself),
        T(empty_dependencies_differ_from_none),
        T(placeholders_of_messages_become_arguments),
        T(numbers_may_be_written_as_schemas_allow),
        T(each_rule_is_found_broken_where_it_is),
        T(the_rig_breaks_no_rule_that_a_variant_shows),
        T(no_rule_is_without_a_test),
        T(a_log_is_wanted_by_either_flag),
        T(a_slave_without_variables_or_transport_is_told),
        T(missing_parts_are_faults_and_the_rest_is_there),
        T(elements_of_others_pass),
        T(a_namespace_does_not_keep_it_from_being_read),
        T(many_findings_of_a_kind_are_counted),
        T(findings_stand_in_the_order_of_lines),
        T(what_is_no_description_is_refused_with_file_and_line),
        T(cut_and_changed_texts_do_no_harm),
        T(a_hundred_thousand_variables_are_read_and_found),
        T(more_variables_than_anybody_has_are_refused),
        T(what_is_written_is_read_as_it_was),
        T(what_decides_is_written_out),
        T(limits_of_64_bits_stay_in_their_range),
        T(texts_of_any_kind_survive),
        T(a_description_made_by_hand_obeys_the_same_rules),
        T(texts_that_xml_cannot_hold_are_told),
        T(numbers_that_xml_cannot_hold_are_told),
        T(dates_are_those_of_xml_schema),
        T(what_breaks_a_rule_is_not_written),
        T(variables_are_found_with_and_without_an_index),
        T(any_description_is_read_as_it_was_written),
        T(an_archive_holds_what_was_written),
        T(an_archive_is_known_by_name_or_content),
        T(backslashes_in_an_archive_are_separators),
        T(only_v1_0_counts_in_an_archive),
        T(an_archive_without_its_description_is_refused),
        T(files_that_cannot_be_read_are_named),
        T(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
