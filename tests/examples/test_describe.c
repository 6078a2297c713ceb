// What the writer of model descriptions refuses: tables that would give a wrong FMU.
#include "cardan/model.h"
#include "check.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const crd_model* under_test;
static const char* source_file = "a.c";
#include "fmu_model.h"
#define CRD_VERSION "test"
#define fmu_model under_test
#define main describe_main
int describe_main(int argc, char** argv);
#include "describe.c"
#undef main
#undef model

typedef struct thing {
    double u, y;
    int32_t n;
    char text[8];
} thing;

static crd_model_status start(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status advance(void* self, const crd_model_host* host, double t, double h,
                                double* reached)
{
    (void)self;
    (void)host;
    (void)t;
    (void)h;
    (void)reached;
    return CRD_MODEL_OK;
}

static const crd_model_variable good[2] = {
    {.name = "u", .causality = CRD_INPUT, .offset = offsetof(thing, u)},
    {.name = "y", .causality = CRD_OUTPUT, .offset = offsetof(thing, y), .depends = "u"},
};

static crd_model make(const crd_model_variable* rows)
{
    return (crd_model){.name = "thing",
                       .size = sizeof(thing),
                       .variables = rows,
                       .variable_count = 2,
                       .default_step = 1,
                       .default_stop = 1,
                       .initialize = start,
                       .outputs = outputs,
                       .step = advance};
}

/// Runs the program in a child, as it ends itself. Its exit code; what it said goes to `said`.
static int describe(const crd_model* m, const char* version, char* said, size_t size)
{
    int ends[2];
    check_int(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        under_test = m;
        char folder[] = TEST_BUILD_DIR "/describe";
        char program[] = "describe", v[2] = {version[0], 0}, source[32];
        snprintf(source, sizeof source, "%s", source_file);
        char* argv[] = {program, v, folder, source, NULL};
        _exit(describe_main(4, argv));
    }
    close(ends[1]);
    const ssize_t n = read(ends[0], said, size - 1);
    said[n > 0 ? n : 0] = 0;
    close(ends[0]);
    int status = 0;
    check_int(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void wrong_tables_are_refused_with_the_variables_name(void** state)
{
    (void)state;
    static const char* const no_items[] = {NULL};
    const struct {
        crd_model_variable row;
        const char* said;
    } cases[] = {
        {{.name = "u", .causality = CRD_OUTPUT}, "variable u: the name is twice"},
        {{.name = "z", .offset = sizeof(thing)}, "outside of the struct"},
        {{.name = "z", .type = CRD_CLOCK, .variability = CRD_DISCRETE}, "clocks"},
        {{.name = "z", .type = CRD_STRING, .variability = CRD_DISCRETE}, "need a capacity"},
        {{.name = "z", .type = CRD_ENUMERATION, .variability = CRD_DISCRETE}, "items are missing"},
        {{.name = "z", .type = CRD_INT32, .items = no_items}, "can be continuous"},
        {{.name = "z", .causality = CRD_PARAMETER}, "fixed or tunable"},
        {{.name = "z", .unit = "furlong"}, "the unit furlong is not known, expected factors"},
        {{.name = "z\1"}, "control characters"},
        {{.name = "z", .description = "\033[1m"}, "control characters"},
        {{.name = ""}, "not empty"},
        {{.name = "z", .min = 1}, "INFINITY"},
        {{.name = "z", .min = 1, .max = 2, .exact = true}, "within min to max"},
        {{.name = "z", .type = CRD_FLOAT32, .derivatives = 8}, "scalar Float64"},
        {{.name = "z", .causality = CRD_OUTPUT, .depends = "u v"}, "no input"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const crd_model_variable rows[2] = {good[0], cases[i].row};
        const crd_model m = make(rows);
        char said[1024];
        check_int(describe(&m, "2", said, sizeof said), 1);
        check_contains(said, cases[i].said);
        check_contains(said, "model thing");
    }
    crd_model m = make(good);
    char said[1024];
    m.has_events = true;
    check_int(describe(&m, "3", said, sizeof said), 1);
    check_contains(said, "has_events");
    m = make(good);
    m.default_step = 0;
    check_int(describe(&m, "3", said, sizeof said), 1);
    check_contains(said, "model thing: default_step");
}

static void a_model_of_another_name_than_its_fmu_is_refused(void** state)
{
    (void)state;
    const crd_model m = make(good);
    char said[1024];
    source_file = "fmu_other.c";
    check_int(describe(&m, "3", said, sizeof said), 1);
    check_contains(said, "model thing: this name and that of cardan_add_fmu");
    source_file = "a.c";
}

static void units_with_prefixes_and_one_sided_limits_are_written(void** state)
{
    (void)state;
    const crd_model_variable rows[2] = {
        good[0],
        {.name = "z", .unit = "km/h", .min = 0, .max = INFINITY, .start = 3, .exact = true}};
    const crd_model m = make(rows);
    char said[1024];
    check_int(system("mkdir -p " TEST_BUILD_DIR "/describe/sources"), 0);
    check_int(describe(&m, "2", said, sizeof said), 0);
    check_int(system("grep -q 'm=\"1\" s=\"-1\" factor=\"0.27777777777777' " TEST_BUILD_DIR
                     "/describe/modelDescription.xml"),
              0);
    check_int(system("grep -qi 'min=\"0\"' " TEST_BUILD_DIR "/describe/modelDescription.xml"), 0);
    check_int(system("grep -qi 'inf\"' " TEST_BUILD_DIR "/describe/modelDescription.xml") != 0, 1);
}

static void good_tables_are_written_and_bad_folders_named(void** state)
{
    (void)state;
    const crd_model m = make(good);
    char said[1024];
    check_int(system("rm -rf " TEST_BUILD_DIR "/describe"), 0);
    check_int(describe(&m, "2", said, sizeof said), 1);
    check_contains(said, "/describe/modelDescription.xml");
    check_int(system("mkdir -p " TEST_BUILD_DIR "/describe/sources"), 0);
    check_int(describe(&m, "2", said, sizeof said), 0);
    check_int(describe(&m, "3", said, sizeof said), 0);
    check_int(describe(&m, "4", said, sizeof said), 2);
    check_int(system("grep -q '<SourceFile name=\"a.c\"/>' " TEST_BUILD_DIR
                     "/describe/sources/buildDescription.xml"),
              0);
    check_int(system("grep -q 'Output valueReference=\"1\" dependencies=\"0\"' " TEST_BUILD_DIR
                     "/describe/modelDescription.xml"),
              0);
}

static void both_versions_say_what_the_outputs_and_their_start_values_depend_on(void** state)
{
    (void)state;
    static const struct {
        const char *version, *outputs, *initial;
    } rows[] = {{"2", "<Outputs>.*<Unknown index=.2. dependencies=.1./>.*</Outputs>",
                 "<InitialUnknowns>.*<Unknown index=.2. dependencies=.1./>.*</InitialUnknowns>"},
                {"3", "<Output valueReference=.1. dependencies=.0./>",
                 "<InitialUnknown valueReference=.1. dependencies=.0./>"}};
    const crd_model m = make(good);
    check_int(system("mkdir -p " TEST_BUILD_DIR "/describe/sources"), 0);
    for (int i = 0; i < 2; i++) {
        char said[1024], command[1024];
        check_int(describe(&m, rows[i].version, said, sizeof said), 0);
        if (i == 0) {
            check_int(system("grep -q '<File name=\"a.c\"/>' " TEST_BUILD_DIR
                             "/describe/modelDescription.xml"),
                      0);
        }
        for (int k = 0; k < 2; k++) {
            snprintf(command, sizeof command, "tr -d '\\n' < '%s' | grep -q '%s'",
                     TEST_BUILD_DIR "/describe/modelDescription.xml",
                     k ? rows[i].initial : rows[i].outputs);
            if (system(command) != 0) { fail_msg("FMI %s: %s", rows[i].version, command); }
        }
    }
}

static void check_unit(const char* text)
{
    unit u;
    crd_dimension d;
    if (!parse_unit(text, &u) || !crd_dimension_parse(text, &d)) { fail_msg("%s", text); }
    const int exponents[8] = {d.kg, d.m, d.s, d.A, d.K, d.mol, d.cd, d.rad};
    for (int i = 0; i < 8; i++) {
        if (u.exponents[i] != exponents[i]) {
            fail_msg("%s: exponent of %s is %d, reading says %d", text, base_names[i],
                     u.exponents[i], exponents[i]);
        }
    }
    if (!(fabs(u.factor - d.factor) <= 1e-15 * d.factor) || u.offset != d.offset) {
        fail_msg("%s: %.17g and %g, reading says %.17g and %g", text, u.factor, u.offset, d.factor,
                 d.offset);
    }
}

// The writer has its own table, as FMUs are built without the library: both have to say the same.
static void units_are_written_as_they_are_read(void** state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known_units / sizeof *known_units; i++) {
        check_unit(known_units[i].name);
    }
    static const char* const more[] = {"N.m",    "m/s2",  "N.s/m",  "kg.m2/s2", "1/s",
                                       "m3/h",   "l/min", "rad/s2", "mm2",      "kW.h",
                                       "W/degC", "degC2", "degC.m"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        check_unit(more[i]);
    }
}

static void fmi_2_has_room_for_65535_elements_and_fmi_3_for_more(void** state)
{
    (void)state;
    check_int(system("mkdir -p " TEST_BUILD_DIR "/describe/sources"), 0);
    for (uint32_t size = 65535; size <= 65536; size++) {
        const crd_model_variable rows[2] = {good[0],
                                            {.name = "z", .causality = CRD_LOCAL, .size = size}};
        crd_model m = make(rows);
        m.size = size * sizeof(double);
        char said[1024];
        check_int(describe(&m, "2", said, sizeof said), size > 65535);
        if (size > 65535) { check_contains(said, "variable z: FMI 2.0 export has room for"); }
        check_int(describe(&m, "3", said, sizeof said), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_tables_are_refused_with_the_variables_name),
        cmocka_unit_test(a_model_of_another_name_than_its_fmu_is_refused),
        cmocka_unit_test(units_with_prefixes_and_one_sided_limits_are_written),
        cmocka_unit_test(good_tables_are_written_and_bad_folders_named),
        cmocka_unit_test(both_versions_say_what_the_outputs_and_their_start_values_depend_on),
        cmocka_unit_test(units_are_written_as_they_are_read),
        cmocka_unit_test(fmi_2_has_room_for_65535_elements_and_fmi_3_for_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
