// Folder FMUs around the library for Model Exchange.
#pragma once
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/unit_test.h"

#if defined(__aarch64__)
#define PLATFORM2 "aarch64-linux"
#define PLATFORM3 "aarch64-linux"
#else
#define PLATFORM2 "linux64"
#define PLATFORM3 "x86_64-linux"
#endif

enum { UNKNOWN, BAND }; // what ModelStructure says of the derivatives: nothing, or neighbours

typedef struct me_fmu {
    const char* model; // of the library
    int version, n, nz;
    const char* flags; // attributes of <ModelExchange>
    int structure;
    bool array; // FMI 3: the states are one array, its length a structural parameter
} me_fmu;

static inline void say(FILE* f, const char* format, ...) CRD_PRINTF(2, 3);
static inline void say(FILE* f, const char* format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(f, format, args);
    va_end(args);
}

static inline void say_variables2(FILE* f, const me_fmu* m)
{
#define SCALAR2(causality, variability, ref, type, rest, ...)                                      \
    say(f, "<ScalarVariable causality=\"%s\" variability=\"%s\" valueReference=\"%d\" name=\"",    \
        causality, variability, ref),                                                              \
        say(f, __VA_ARGS__), say(f, "\"><" type " " rest "/></ScalarVariable>\n")
    const bool one = m->version == 1; // which has words of its own
    for (int k = 0; k < m->n; k++) {
        SCALAR2(one ? "internal" : "local", "continuous", 100 + k, "Real", "", "x%d", k);
    }
    for (int k = 0; k < m->n && !one; k++) {
        say(f,
            "<ScalarVariable valueReference=\"%d\" causality=\"local\" name=\"der(x%d)\">"
            "<Real derivative=\"%d\"/></ScalarVariable>\n",
            200 + k, k, k + 1);
    }
    for (int k = 0; k < 2; k++) {
        SCALAR2("input", "continuous", 300 + k, "Real", "start=\"0\"", "u%d", k);
    }
    for (int k = 0; k < 4; k++) {
        SCALAR2(one ? "internal" : "parameter", one ? "parameter" : "fixed", 400 + k, "Real",
                "start=\"0\"", "p%d", k);
    }
    for (int k = 0; k < 3; k++) {
        SCALAR2("output", "continuous", 500 + k, "Real", "", "y%d", k);
    }
    SCALAR2("input", "discrete", 600, "Integer", "start=\"0\"", "k");
    SCALAR2("output", "discrete", 601, "Integer", "", "events");
    if (!one) { return; }
    say(f, "<ScalarVariable alias=\"negatedAlias\" causality=\"input\" valueReference=\"300\" "
           "name=\"minus_u0\"><Real start=\"0\"/></ScalarVariable>\n"
           "<ScalarVariable alias=\"negatedAlias\" causality=\"output\" valueReference=\"500\" "
           "name=\"minus_y0\"><Real/></ScalarVariable>\n");
}

static inline void say_variables3(FILE* f, const me_fmu* m)
{
    say(f, "<Float64 name=\"time\" valueReference=\"0\" causality=\"independent\"/>\n");
    if (m->array) {
        say(f,
            "<UInt64 name=\"n\" valueReference=\"700\" causality=\"structuralParameter\" "
            "variability=\"fixed\" start=\"%d\"/>\n",
            m->n);
        say(f, "<Float64 name=\"x\" valueReference=\"100\"><Dimension valueReference=\"700\"/>"
               "</Float64>\n<Float64 name=\"der(x)\" valueReference=\"200\" derivative=\"100\">"
               "<Dimension valueReference=\"700\"/></Float64>\n");
    }
    for (int k = 0; k < m->n && !m->array; k++) {
        say(f, "<Float64 name=\"x%d\" valueReference=\"%d\"/>\n", k, 100 + k);
        say(f, "<Float64 name=\"der(x%d)\" valueReference=\"%d\" derivative=\"%d\"/>\n", k, 200 + k,
            100 + k);
    }
    for (int k = 0; k < 2; k++) {
        say(f, "<Float64 name=\"u%d\" valueReference=\"%d\" causality=\"input\" start=\"0\"/>\n", k,
            300 + k);
    }
    for (int k = 0; k < 4; k++) {
        say(f,
            "<Float64 name=\"p%d\" valueReference=\"%d\" causality=\"parameter\" "
            "variability=\"fixed\" start=\"0\"/>\n",
            k, 400 + k);
    }
    for (int k = 0; k < 3; k++) {
        say(f, "<Float64 name=\"y%d\" valueReference=\"%d\" causality=\"output\"/>\n", k, 500 + k);
    }
    say(f, "<Int32 name=\"k\" valueReference=\"600\" causality=\"input\" start=\"0\"/>\n"
           "<Int32 name=\"events\" valueReference=\"601\" causality=\"output\"/>\n");
    for (int k = 0; k < m->nz; k++) {
        say(f, "<Float64 name=\"z%d\" valueReference=\"%d\"/>\n", k, 800 + k);
    }
}

static inline void say_derivative(FILE* f, const me_fmu* m, int k)
{
    const bool two = m->version == 2;
    say(f, two ? "<Unknown index=\"%d\"" : "<ContinuousStateDerivative valueReference=\"%d\"",
        two ? m->n + k + 1 : 200 + k);
    if (m->structure == BAND) {
        say(f, " dependencies=\"");
        for (int c = k - 1; c <= k + 1; c++) {
            if (c >= 0 && c < m->n) { say(f, "%d ", two ? c + 1 : 100 + c); }
        }
        say(f, "\"");
    }
    say(f, "/>\n");
}

static inline void say_structure(FILE* f, const me_fmu* m)
{
    const bool two = m->version == 2;
    const int first = 2 * m->n + 2 + 4; // of the outputs, FMI 2
    say(f, two ? "<ModelStructure><Outputs>" : "<ModelStructure>");
    for (int k = 0; k < 3; k++) {
        say(f, two ? "<Unknown index=\"%d\"/>" : "<Output valueReference=\"%d\"/>",
            two ? first + k + 1 : 500 + k);
    }
    say(f, two ? "</Outputs><Derivatives>\n" : "\n");
    for (int k = 0; k < (m->array ? 1 : m->n); k++) {
        say_derivative(f, m, k);
    }
    for (int k = 0; k < m->nz && !two; k++) {
        say(f, "<EventIndicator valueReference=\"%d\"/>", 800 + k);
    }
    say(f, two ? "</Derivatives></ModelStructure>\n" : "</ModelStructure>\n");
}

// The path of a folder FMU. `name` keeps tests apart.
static inline const char* me_folder(const me_fmu* m, const char* name)
{
    static char folder[256];
    char path[512], library[512];
    const bool two = m->version == 2, one = m->version == 1;
    snprintf(folder, sizeof folder, TEST_BUILD_DIR "/unit_me/%s_%s_%d", m->model, name, m->version);
    mkdir(TEST_BUILD_DIR "/unit_me", 0777);
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/binaries", folder);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/binaries/%s", folder, two || one ? PLATFORM2 : PLATFORM3);
    mkdir(path, 0777);
    strcat(path, "/me.so");
    snprintf(library, sizeof library, TEST_BUILD_DIR "/unit_me_library/me%d.so", m->version);
    unlink(path);
    if (symlink(library, path) != 0) { fail_msg("cannot link %s", path); }
    snprintf(path, sizeof path, "%s/modelDescription.xml", folder);
    FILE* f = fopen(path, "w");
    check(f != NULL);
    say(f,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<fmiModelDescription fmiVersion=\"%d.0\" "
        "modelName=\"%s\" %s=\"%s\" version=\"7\" generationTool=\"a test\" "
        "generationDateAndTime=\"2026-01-01T00:00:00Z\"",
        m->version, m->model, two || one ? "guid" : "instantiationToken", m->model);
    if (two || one) { say(f, " numberOfEventIndicators=\"%d\"", m->nz); }
    if (one) { say(f, " numberOfContinuousStates=\"%d\" modelIdentifier=\"me\"", m->n); }
    say(f, ">\n");
    if (!one) { say(f, "<ModelExchange modelIdentifier=\"me\" %s/>\n", m->flags); }
    say(f, "<ModelVariables>\n");
    if (two || one) {
        say_variables2(f, m);
    } else {
        say_variables3(f, m);
    }
    say(f, "</ModelVariables>\n");
    if (!one) { say_structure(f, m); }
    say(f, "</fmiModelDescription>\n");
    check_int(fclose(f), 0);
    return folder;
}

static inline const char* all_flags(int version)
{
    return version == 1   ? ""
           : version == 2 ? "canGetAndSetFMUstate=\"true\" providesDirectionalDerivative=\"true\""
                          : "canGetAndSetFMUState=\"true\" providesDirectionalDerivatives=\"true\" "
                            "needsCompletedIntegratorStep=\"true\"";
}

static inline const char* few_flags(int version)
{
    return version <= 2 ? "" : "needsCompletedIntegratorStep=\"true\"";
}

static inline crd_unit_spec me_spec(const char* path)
{
    crd_unit_spec spec = crd_unit_spec_defaults();
    spec.name = "m";
    spec.source = CRD_UNIT_FMU;
    spec.path = path;
    spec.place = (crd_place){"sys.yaml", 4};
    return spec;
}
