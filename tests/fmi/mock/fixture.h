// Folder FMUs around the mock libraries, and what tests ask of them.
#pragma once
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "check.h"
#include "fmi/instance.h"
#include "fmi/mock/mock.h"

#if defined(__aarch64__)
#define PLATFORM2 "aarch64-linux"
#define PLATFORM3 "aarch64-linux"
#else
#define PLATFORM2 "linux64"
#define PLATFORM3 "x86_64-linux"
#endif

static const char description2[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<fmiModelDescription fmiVersion=\"2.0\" modelName=\"Mock\" guid=\"{mock &amp; token}\"\n"
    " numberOfEventIndicators=\"1\">\n"
    "<ModelExchange modelIdentifier=\"mock\" canGetAndSetFMUstate=\"true\"\n"
    " canSerializeFMUstate=\"true\" providesDirectionalDerivative=\"true\"/>\n"
    "<CoSimulation modelIdentifier=\"mock\" canHandleVariableCommunicationStepSize=\"true\"\n"
    " maxOutputDerivativeOrder=\"2\" %s/>\n"
    "<ModelVariables>\n"
    "<ScalarVariable name=\"u\" valueReference=\"0\" causality=\"input\"><Real start=\"0\"/>\n"
    "</ScalarVariable>\n"
    "<ScalarVariable name=\"y\" valueReference=\"1\" "
    "causality=\"output\"><Real/></ScalarVariable>\n"
    "<ScalarVariable name=\"k\" valueReference=\"0\" causality=\"input\"><Integer start=\"0\"/>\n"
    "</ScalarVariable>\n"
    "<ScalarVariable name=\"on\" valueReference=\"0\" causality=\"input\">\n"
    "<Boolean start=\"false\"/></ScalarVariable>\n"
    "<ScalarVariable name=\"text\" valueReference=\"0\" causality=\"input\"><String start=\"\"/>\n"
    "</ScalarVariable>\n"
    "</ModelVariables>\n"
    "<ModelStructure><Outputs><Unknown index=\"2\"/></Outputs>\n"
    "<InitialUnknowns><Unknown index=\"2\"/></InitialUnknowns></ModelStructure>\n"
    "</fmiModelDescription>\n";

static const char description3[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<fmiModelDescription fmiVersion=\"3.0\" modelName=\"Mock\"\n"
    " instantiationToken=\"{mock &amp; token}\">\n"
    "<ModelExchange modelIdentifier=\"mock\" canGetAndSetFMUState=\"true\"\n"
    " canSerializeFMUState=\"true\" providesDirectionalDerivatives=\"true\"/>\n"
    "<CoSimulation modelIdentifier=\"mock\" canHandleVariableCommunicationStepSize=\"true\"\n"
    " maxOutputDerivativeOrder=\"2\" %s/>\n"
    "<ModelVariables>\n"
    "<Float64 name=\"time\" valueReference=\"99\" causality=\"independent\"\n"
    " variability=\"continuous\"/>\n"
    "<Float64 name=\"u\" valueReference=\"0\" causality=\"input\" start=\"0\"\n"
    " intermediateUpdate=\"true\"/>\n"
    "<Float64 name=\"y\" valueReference=\"1\" causality=\"output\"/>\n"
    "<Int32 name=\"k\" valueReference=\"2\" causality=\"input\" start=\"0\"/>\n"
    "</ModelVariables>\n"
    "<ModelStructure><Output valueReference=\"1\"/><InitialUnknown valueReference=\"1\"/>\n"
    "</ModelStructure>\n"
    "</fmiModelDescription>\n";

#define ALL2                                                                                       \
    "canInterpolateInputs=\"true\" canGetAndSetFMUstate=\"true\" canSerializeFMUstate=\"true\" "   \
    "providesDirectionalDerivative=\"true\""
#define ALL3                                                                                       \
    "canGetAndSetFMUState=\"true\" canSerializeFMUState=\"true\" hasEventMode=\"true\" "           \
    "providesDirectionalDerivatives=\"true\" providesIntermediateUpdate=\"true\" "                 \
    "canReturnEarlyAfterIntermediateUpdate=\"true\""

typedef struct line {
    crd_level level;
    char text[512];
} line;

typedef struct fixture {
    check_allocator memory;
    crd_context* ctx;
    crd_fmu* fmu;
    int version;
    char folder[512];
    char library[768];
    void* handle;     // keeps the library loaded, so that its memory outlives instances
    mock_block* mock; // the mock's control block
    line lines[64];
    int line_count;
} fixture;

static inline void keep_line(void* user, crd_level level, const char* text)
{
    fixture* x = user;
    line* l = &x->lines[x->line_count++ % 64];
    l->level = level;
    snprintf(l->text, sizeof l->text, "%s", text);
}

static inline void make_folder(const char* path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) { fail_msg("cannot make %s", path); }
}

static inline void write_file(const char* path, const char* bytes, size_t size)
{
    FILE* f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0) {
        fail_msg("cannot write %s", path);
    }
}

static inline void copy_file(const char* from, const char* to)
{
    static char bytes[8 << 20];
    FILE* f = fopen(from, "rb");
    if (!f) { fail_msg("cannot read %s", from); }
    const size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    check(size > 0 && size < sizeof bytes);
    remove(to); // a new file: the old one may still be mapped
    write_file(to, bytes, size);
}

// Makes a folder FMU out of a mock library and opens it.
static inline void open_at(fixture* x, const char* name, int version, const char* library,
                           const char* platform, const char* attributes)
{
    *x = (fixture){.version = version, .memory = {.fail_at = -1}};
    crd_context_options opt = crd_context_defaults();
    opt.realloc = check_realloc;
    opt.realloc_user = &x->memory;
    opt.log = keep_line;
    opt.log_user = x;
    opt.level = CRD_LOG_DEBUG;
    x->ctx = crd_context_create(&opt);
    make_folder(TEST_BUILD_DIR "/instance");
    snprintf(x->folder, sizeof x->folder, TEST_BUILD_DIR "/instance/%s", name);
    char path[1024], text[8192];
    const char* const folders[] = {"", "/resources", "/binaries"};
    for (int k = 0; k < 3; k++) {
        snprintf(path, sizeof path, "%s%s", x->folder, folders[k]);
        make_folder(path);
    }
    snprintf(path, sizeof path, "%s/binaries/%s", x->folder, platform);
    make_folder(path);
    snprintf(x->library, sizeof x->library, "%s/binaries/%s/mock.so", x->folder, platform);
    snprintf(path, sizeof path, TEST_BUILD_DIR "/mock/%s.so", library);
    copy_file(path, x->library);
    // the format is one of the two above
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const int n =
        snprintf(text, sizeof text, version == 2 ? description2 : description3, attributes);
#pragma GCC diagnostic pop
    snprintf(path, sizeof path, "%s/modelDescription.xml", x->folder);
    write_file(path, text, (size_t)n);
    x->handle = dlopen(x->library, RTLD_NOW | RTLD_LOCAL);
    if (!x->handle) { fail_msg("%s", dlerror()); }
    x->mock = dlsym(x->handle, "mock_control");
    check(x->mock != NULL);
    if (crd_fmu_open(x->ctx, x->folder, NULL, &x->fmu) != CRD_OK) {
        fail_msg("%s", crd_error_text(x->ctx));
    }
    x->line_count = 0;
}

static inline void open_mock(fixture* x, const char* name, int version)
{
    char full[128];
    snprintf(full, sizeof full, "%s_%d", name, version);
    open_at(x, full, version, version == 2 ? "mock2" : "mock3",
            version == 2 ? PLATFORM2 : PLATFORM3, version == 2 ? ALL2 : ALL3);
}

static inline void close_mock(fixture* x)
{
    crd_fmu_close(x->fmu);
    crd_context_destroy(x->ctx);
    check_int(x->memory.live, 0);
    if (x->handle) { dlclose(x->handle); }
}

static inline crd_fmi* instance_of(fixture* x, const crd_fmi_options* more)
{
    crd_fmi_options opt = more ? *more : (crd_fmi_options){0};
    if (!opt.instance_name) { opt.instance_name = "bob"; }
    crd_fmi* i = NULL;
    if (crd_fmi_instantiate(x->ctx, x->fmu, &opt, &i) != CRD_OK) {
        fail_msg("%s", crd_error_text(x->ctx));
    }
    return i;
}

static inline crd_fmi* stepping(fixture* x)
{
    crd_fmi* i = instance_of(x, NULL);
    check_ok(crd_fmi_enter_initialization(i, false, 0, 0, false, 0));
    check_ok(crd_fmi_exit_initialization(i));
    check_int(crd_fmi_get_state(i), CRD_FMI_STEP);
    return i;
}

static inline int id(const fixture* x, const char* name)
{
    for (int f = 0; f < crdi_fmi_function_count((crd_fmi_version)x->version); f++) {
        if (strcmp(crdi_fmi_function_name((crd_fmi_version)x->version, false, f) + 4, name) == 0) {
            return f;
        }
    }
    fail_msg("no function %s", name);
    return -1;
}

static inline const char* real_name(const fixture* x, const char* verb)
{
    static char name[32];
    snprintf(name, sizeof name, "%s%s", verb, x->version == 2 ? "Real" : "Float64");
    return name;
}

static inline void check_trace(const fixture* x, const char* want)
{
    char have[2048] = "";
    for (int k = 0; k < x->mock->calls; k++) {
        strcat(have,
               crdi_fmi_function_name((crd_fmi_version)x->version, false, x->mock->trace[k]) + 4);
        strcat(have, k + 1 < x->mock->calls ? " " : "");
    }
    check_text(have, want);
}

static inline int lines_with(const fixture* x, crd_level level, const char* part)
{
    int n = 0;
    for (int k = 0; k < x->line_count && k < 64; k++) {
        n += x->lines[k].level == level && strstr(x->lines[k].text, part);
    }
    return n;
}

static const uint32_t ref0 = 0, ref1 = 1;
static const double one = 1;
