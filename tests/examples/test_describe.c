// What the writer of model descriptions refuses: tables that would give a wrong FMU.
#include "cardan/model.h"
#include "check.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const crd_model* under_test;
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
        char program[] = "describe", v[2] = {version[0], 0}, source[] = "a.c";
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
        {{.name = "z", .unit = "furlong"}, "unit is not known"},
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
    check_contains(said, "default_step");
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
    check_int(system("grep -q 'Output valueReference=\"1\" dependencies=\"0\"' " TEST_BUILD_DIR
                     "/describe/modelDescription.xml"),
              0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_tables_are_refused_with_the_variables_name),
        cmocka_unit_test(good_tables_are_written_and_bad_folders_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
