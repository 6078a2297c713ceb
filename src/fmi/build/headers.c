// The headers of FMI 2.0 and 3.0 for sources that do not bring them. Functions are those of the
// tables that importing uses (abi.h), whose types get their names here; the rest are the words of
// the standards that sources use: types, codes, and macros around names of functions.
//
// Names bear no prefix: what is compiled becomes a shared library.
#include <stdio.h>
#include <string.h>

#include "fmi/abi.h"
#include "fmi/build/build.h"

static const char types2[] = "#ifndef fmi2TypesPlatform_h\n"
                             "#define fmi2TypesPlatform_h\n"
                             "#include <stddef.h>\n"
                             "#define fmi2TypesPlatform \"default\"\n"
                             "typedef void* fmi2Component;\n"
                             "typedef void* fmi2ComponentEnvironment;\n"
                             "typedef void* fmi2FMUstate;\n"
                             "typedef unsigned int fmi2ValueReference;\n"
                             "typedef double fmi2Real;\n"
                             "typedef int fmi2Integer;\n"
                             "typedef int fmi2Boolean;\n"
                             "typedef char fmi2Char;\n"
                             "typedef const fmi2Char* fmi2String;\n"
                             "typedef char fmi2Byte;\n"
                             "#define fmi2True 1\n"
                             "#define fmi2False 0\n"
                             "#endif\n";

static const char codes2[] =
    "#ifndef fmi2FunctionTypes_h\n"
    "#define fmi2FunctionTypes_h\n"
    "#include \"fmi2TypesPlatform.h\"\n"
    "typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } "
    "fmi2Status;\n"
    "typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;\n"
    "typedef enum { fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated } "
    "fmi2StatusKind;\n"
    "typedef void (*fmi2CallbackLogger)(fmi2ComponentEnvironment, fmi2String, fmi2Status, "
    "fmi2String, fmi2String, ...);\n"
    "typedef void* (*fmi2CallbackAllocateMemory)(size_t, size_t);\n"
    "typedef void (*fmi2CallbackFreeMemory)(void*);\n"
    "typedef void (*fmi2StepFinished)(fmi2ComponentEnvironment, fmi2Status);\n"
    "typedef struct {\n"
    "    fmi2CallbackLogger logger;\n"
    "    fmi2CallbackAllocateMemory allocateMemory;\n"
    "    fmi2CallbackFreeMemory freeMemory;\n"
    "    fmi2StepFinished stepFinished;\n"
    "    fmi2ComponentEnvironment componentEnvironment;\n"
    "} fmi2CallbackFunctions;\n"
    "typedef struct {\n"
    "    fmi2Boolean newDiscreteStatesNeeded, terminateSimulation;\n"
    "    fmi2Boolean nominalsOfContinuousStatesChanged, valuesOfContinuousStatesChanged;\n"
    "    fmi2Boolean nextEventTimeDefined;\n"
    "    fmi2Real nextEventTime;\n"
    "} fmi2EventInfo;\n"
    "typedef fmi2Status crdi_fmi_status;\n"
    "typedef fmi2ValueReference crdi_fmi_ref;\n"
    "typedef fmi2Type crdi_fmi2_kind;\n"
    "typedef fmi2StatusKind crdi_fmi2_status_kind;\n"
    "typedef fmi2CallbackFunctions crdi_fmi2_callbacks;\n"
    "typedef fmi2EventInfo crdi_fmi2_event_info;\n";

static const char types3[] = "#ifndef fmi3PlatformTypes_h\n"
                             "#define fmi3PlatformTypes_h\n"
                             "#include <stdbool.h>\n"
                             "#include <stddef.h>\n"
                             "#include <stdint.h>\n"
                             "#ifdef __cplusplus\n"
                             "#define _Bool bool\n"
                             "#endif\n"
                             "typedef void* fmi3Instance;\n"
                             "typedef void* fmi3InstanceEnvironment;\n"
                             "typedef void* fmi3FMUState;\n"
                             "typedef uint32_t fmi3ValueReference;\n"
                             "typedef float fmi3Float32;\n"
                             "typedef double fmi3Float64;\n"
                             "typedef int8_t fmi3Int8;\n"
                             "typedef uint8_t fmi3UInt8;\n"
                             "typedef int16_t fmi3Int16;\n"
                             "typedef uint16_t fmi3UInt16;\n"
                             "typedef int32_t fmi3Int32;\n"
                             "typedef uint32_t fmi3UInt32;\n"
                             "typedef int64_t fmi3Int64;\n"
                             "typedef uint64_t fmi3UInt64;\n"
                             "typedef bool fmi3Boolean;\n"
                             "typedef char fmi3Char;\n"
                             "typedef const fmi3Char* fmi3String;\n"
                             "typedef uint8_t fmi3Byte;\n"
                             "typedef const fmi3Byte* fmi3Binary;\n"
                             "typedef bool fmi3Clock;\n"
                             "#define fmi3True true\n"
                             "#define fmi3False false\n"
                             "#define fmi3ClockActive true\n"
                             "#define fmi3ClockInactive false\n"
                             "#endif\n";

static const char codes3[] =
    "#ifndef fmi3FunctionTypes_h\n"
    "#define fmi3FunctionTypes_h\n"
    "#include \"fmi3PlatformTypes.h\"\n"
    "typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;\n"
    "typedef enum { fmi3Independent, fmi3Constant, fmi3Fixed, fmi3Tunable, fmi3Discrete, "
    "fmi3Dependent } fmi3DependencyKind;\n"
    "typedef enum { fmi3IntervalNotYetKnown, fmi3IntervalUnchanged, fmi3IntervalChanged } "
    "fmi3IntervalQualifier;\n"
    "typedef fmi3Status crdi_fmi_status;\n"
    "typedef fmi3ValueReference crdi_fmi_ref;\n"
    "typedef fmi3DependencyKind crdi_fmi3_dependency;\n"
    "typedef fmi3IntervalQualifier crdi_fmi3_interval;\n"
    "typedef void crdi_fmi3_logger(fmi3InstanceEnvironment, fmi3Status, fmi3String, fmi3String);\n"
    "typedef void crdi_fmi3_clock_update(fmi3InstanceEnvironment);\n"
    "typedef void crdi_fmi3_intermediate(fmi3InstanceEnvironment, fmi3Float64, fmi3Boolean, "
    "fmi3Boolean, fmi3Boolean, fmi3Boolean, fmi3Boolean*, fmi3Float64*);\n"
    "typedef void crdi_fmi3_preemption(void);\n"
    "typedef crdi_fmi3_logger* fmi3LogMessageCallback;\n"
    "typedef crdi_fmi3_clock_update* fmi3ClockUpdateCallback;\n"
    "typedef crdi_fmi3_intermediate* fmi3IntermediateUpdateCallback;\n"
    "typedef crdi_fmi3_preemption* fmi3LockPreemptionCallback;\n"
    "typedef crdi_fmi3_preemption* fmi3UnlockPreemptionCallback;\n";

typedef struct function {
    const char *name, *result, *arguments;
} function;
#define FUNCTION(name, need, result, arguments) {#name, #result, #arguments},
static const function functions2[] = {CRDI_FMI2_LIST(FUNCTION){0}};
static const function functions3[] = {CRDI_FMI3_LIST(FUNCTION){0}};

const char* const crdi_header_names[] = {"fmi2TypesPlatform.h",
                                         "fmi2FunctionTypes.h",
                                         "fmi2Functions.h",
                                         "fmi3PlatformTypes.h",
                                         "fmi3FunctionTypes.h",
                                         "fmi3Functions.h",
                                         NULL};

const char* crdi_header_function(crd_fmi_version version, int i)
{
    return version == CRD_FMI_3 ? functions3[i].name : functions2[i].name;
}

static crd_status write_header(crd_context* ctx, const char* folder, const char* name,
                               const crd_text* text)
{
    char* path = crdi_format(ctx, "%s/%s", folder, name);
    if (!path) { return CRD_E_MEMORY; }
    const crd_status st = crdi_file_write(ctx, path, text);
    crd_free(ctx, path);
    return st;
}

// fmi2GetRealTYPE, for whoever loads others.
static void put_types(crd_text* t, int version, const char* begin, const function* list)
{
    crdi_text_add(t, "%s", begin);
    for (; list->name; list++) {
        crdi_text_add(t, "typedef %s fmi%d%sTYPE%s;\n", list->result, version, list->name,
                      list->arguments);
    }
    crdi_text_add(t, "#endif\n");
}

static void put_functions(crd_text* t, int v, const function* list)
{
    crdi_text_add(t,
                  "#ifndef fmi%dFunctions_h\n"
                  "#define fmi%dFunctions_h\n"
                  "#include \"fmi%dFunctionTypes.h\"\n"
                  "#ifndef FMI%d_Export\n"
                  "#define FMI%d_Export __attribute__((visibility(\"default\")))\n"
                  "#endif\n"
                  "#define fmi%dFullName(name) name\n"
                  "#define fmi%dVersion \"%d.0\"\n"
                  "#ifdef __cplusplus\n"
                  "extern \"C\" {\n"
                  "#endif\n",
                  v, v, v, v, v, v, v, v);
    for (; list->name; list++) {
        crdi_text_add(t, "FMI%d_Export %s fmi%d%s%s;\n", v, list->result, v, list->name,
                      list->arguments);
    }
    crdi_text_add(t, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

crd_status crdi_headers_write(crd_context* ctx, const char* folder)
{
    crd_status st = CRD_OK;
    crd_text t;
    crd_text_init(&t, ctx);
    for (int i = 0; crdi_header_names[i] && st == CRD_OK; i++) {
        const int version = i < 3 ? 2 : 3;
        const function* list = version == 2 ? functions2 : functions3;
        t.length = 0;
        if (i % 3 == 0) {
            crdi_text_add(&t, "%s", version == 2 ? types2 : types3);
        } else if (i % 3 == 1) {
            put_types(&t, version, version == 2 ? codes2 : codes3, list);
        } else {
            put_functions(&t, version, list);
        }
        st = write_header(ctx, folder, crdi_header_names[i], &t);
    }
    crd_text_clear(&t);
    return st;
}
