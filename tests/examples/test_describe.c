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
static int interfaces_under_test;
#define fmu_interfaces interfaces_under_test
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
        {{.name = "z", .causality = CRD_OUTPUT, .depends = "u v"}, "no input and no state"},
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
    const crd_model m = make(good);
    char said[1024];
    source_file = "fmu_other.c";
    check_int(describe(&m, "3", said, sizeof said), 1);
    check_contains(said, "model thing: this name and that of cardan_add_fmu");
    source_file = "a.c";
}

static void units_with_prefixes_and_one_sided_limits_are_written(void** state)
{
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

static void fmi_2_has_room_for_65535_elements_and_fmi_3_for_more(void** state)
{
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

// ---- differential equations --------------------------------------------------------------------

static crd_model_status slopes(void* self, double t)
{
    (void)self;
    (void)t;
    return CRD_MODEL_OK;
}

static void signs(void* self, double t, double* z)
{
    (void)self;
    (void)t;
    z[0] = z[1] = 1;
}

static crd_model_status on_event(void* self, const crd_model_host* host, double t, double* next)
{
    (void)self;
    (void)host;
    (void)t;
    *next = INFINITY;
    return CRD_MODEL_OK;
}

static double slope_of(const void* self, int unknown, int known)
{
    (void)self;
    return unknown + known;
}

#define STATE .name = "x", .causality = CRD_OUTPUT, .exact = true, .depends = "", .nominal = 7
#define SLOPE .name = "dx", .derivative_of = "x", .depends = "x u", .offset = 8

static crd_model make_ode(const crd_model_variable* rows, int count)
{
    crd_model m = make(rows);
    m.variable_count = count;
    m.step = NULL;
    m.derivatives = slopes;
    return m;
}

static void wrong_equations_are_refused(void** state)
{
    const crd_model_variable u = good[0], x = {STATE}, dx = {SLOPE};
    const struct {
        crd_model_variable rows[3];
        const char* said;
    } cases[] = {
        {{u, x, {.name = "dx", .derivative_of = "q"}}, "variable dx: derivative of something"},
        {{u, x, {.name = "dx", .derivative_of = "u"}}, "variable u: states and derivatives are"},
        {{u, x, {.name = "dx", .derivative_of = "x", .type = CRD_FLOAT32}},
         "variable dx: states and derivatives are"},
        {{u, x, {.name = "dx", .derivative_of = "x", .variability = CRD_DISCRETE}},
         "variable dx: states and derivatives are"},
        {{u, x, {.name = "dx", .derivative_of = "x", .size = 2}}, "another size"},
        {{u, x, {.name = "dx", .derivative_of = "x", .exact = true}}, "cannot be exact"},
        {{dx, x, {.name = "d2", .derivative_of = "x"}}, "variable d2: the state has a derivative"},
        {{u, x, {.name = "dx", .derivative_of = "x", .depends = "dx"}}, "no input and no state"},
        {{u, {STATE, .min = -INFINITY, .max = INFINITY}, {SLOPE, .nominal = -1}}, "nominal"},
    };
    char said[1024];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        crd_model_variable rows[3] = {cases[i].rows[0], cases[i].rows[1], cases[i].rows[2]};
        if (rows[0].derivative_of) { rows[0].depends = "x"; } // there is no u
        const crd_model m = make_ode(rows, 3);
        check_int(describe(&m, "3", said, sizeof said), 1);
        check_contains(said, cases[i].said);
    }
    const crd_model_variable rows[] = {u, x, dx};
    const crd_model ode = make_ode(rows, 3);
    const struct {
        crd_model m;
        int interfaces;
        const char* said;
    } models[] = {
        {make(good), FMU_EXCHANGE, "Model Exchange needs derivatives()"},
        {make(good), FMU_BOTH, "Model Exchange needs derivatives()"},
        {.m = ode, .said = "indicator_count and indicators() do not fit"},
        {.m = ode, .said = "need has_events"},
        {.m = make(rows), .said = "variable dx: derivative_of without derivatives()"},
        {.m = make(good), .said = "belong to models with derivatives()"},
        {.m = make(good), .said = "step or derivatives"},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        crd_model m = models[i].m;
        if (i == 2 || i == 3) { m.indicators = signs; }
        if (i == 3) { m.indicator_count = 1; }
        if (i == 4) { m.variable_count = 3; }
        if (i == 5) {
            m.indicators = signs;
            m.indicator_count = 1;
        }
        if (i == 6) { m.step = NULL; }
        interfaces_under_test = models[i].interfaces;
        check_int(describe(&m, "2", said, sizeof said), 1);
        check_contains(said, models[i].said);
    }
    interfaces_under_test = FMU_AUTO;
    const crd_model_variable taken[] = {
        {.name = "event_indicator_1"}, x, {.name = "dx", .derivative_of = "x"}};
    crd_model m = make_ode(taken, 3);
    m.indicators = signs;
    m.indicator_count = 1;
    m.has_events = true;
    m.event = on_event;
    check_int(describe(&m, "3", said, sizeof said), 1);
    check_contains(said, "under such names");
}

static void check_written(const char* pattern, bool there)
{
    char command[1024];
    snprintf(command, sizeof command, "tr -d '\\n' < '%s' | grep -q '%s'",
             TEST_BUILD_DIR "/describe/modelDescription.xml", pattern);
    if ((system(command) == 0) != there) {
        fail_msg("%s: %s", there ? "missing" : "not expected", pattern);
    }
}

static void model_exchange_is_described_in_both_versions(void** state)
{
    const crd_model_variable rows[] = {good[0], {STATE}, {SLOPE}};
    crd_model m = make_ode(rows, 3);
    m.has_events = true;
    m.event = on_event;
    m.indicators = signs;
    m.indicator_count = 2;
    m.partial = slope_of;
    char said[1024];
    check_int(system("mkdir -p " TEST_BUILD_DIR "/describe/sources"), 0);
    static const char* const two[] = {
        "numberOfEventIndicators=.2.",
        ("<ModelExchange modelIdentifier=.thing. completedIntegratorStepNotNeeded=.true.[^>]*"
         "providesDirectionalDerivative=.true.>.*</ModelExchange> *<CoSimulation"),
        "name=.x.[^/]*<Real nominal=.7. reinit=.true. start=.0.",
        "name=.dx.[^/]*<Real derivative=.2./>",
        "<Outputs> *<Unknown index=.2. dependencies=.2./> *</Outputs>",
        "<Derivatives> *<Unknown index=.3. dependencies=.1 2./> *</Derivatives>",
        "<InitialUnknowns> *<Unknown index=.3. dependencies=.1 2./> *</InitialUnknowns>",
    };
    check_int(describe(&m, "2", said, sizeof said), 0);
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        check_written(two[i], true);
    }
    static const char* const three[] = {
        "<ModelExchange modelIdentifier=.thing. [^>]*providesDirectionalDerivatives=.true.[^>]*/>"
        " *<CoSimulation",
        "name=.dx.[^>]* derivative=.1./>",
        "name=.event_indicator_2. valueReference=.5.",
        "<Output valueReference=.1. dependencies=.1./> *"
        "<ContinuousStateDerivative valueReference=.2. dependencies=.0 1./> *"
        "<InitialUnknown valueReference=.2. dependencies=.0 1./> *"
        "<EventIndicator valueReference=.4./> *<EventIndicator valueReference=.5./>",
    };
    check_int(describe(&m, "3", said, sizeof said), 0);
    for (size_t i = 0; i < sizeof three / sizeof *three; i++) {
        check_written(three[i], true);
    }
    for (int version = '2'; version <= '3'; version++) {
        const char text[2] = {(char)version, 0};
        interfaces_under_test = FMU_EXCHANGE;
        check_int(describe(&m, text, said, sizeof said), 0);
        check_written("<CoSimulation", false);
        check_written("<ModelExchange", true);
        interfaces_under_test = FMU_COSIMULATION;
        check_int(describe(&m, text, said, sizeof said), 0);
        check_written("<CoSimulation", true);
        check_written("<ModelExchange", false);
        check_written("StateDerivative\\|<Derivatives\\|EventIndicator valueRef", false);
        interfaces_under_test = FMU_AUTO;
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
        cmocka_unit_test(fmi_2_has_room_for_65535_elements_and_fmi_3_for_more),
        cmocka_unit_test(wrong_equations_are_refused),
        cmocka_unit_test(model_exchange_is_described_in_both_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
