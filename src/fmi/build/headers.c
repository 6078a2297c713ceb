// The headers of FMI 1.0, 2.0 and 3.0 for sources that do not bring them. Functions of 2.0 and 3.0
// are those of the tables that importing uses (abi.h), whose types get their names here; the rest
// are the words of the standards that sources use: types, codes, and macros around names of
// functions.
//
// Names bear no prefix, as what is compiled becomes a shared library; those of FMI 1.0 always do.
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

// FMI 1.0 has two standards with one set of types; sources include the headers of one of them.
static const char types1[] = "#ifndef fmi1Types_h\n"
                             "#define fmi1Types_h\n"
                             "#include <stddef.h>\n"
                             "#define fmiModelTypesPlatform \"standard32\"\n"
                             "#define fmiPlatform \"standard32\"\n"
                             "typedef void* fmiComponent;\n"
                             "typedef unsigned int fmiValueReference;\n"
                             "typedef double fmiReal;\n"
                             "typedef int fmiInteger;\n"
                             "typedef char fmiBoolean;\n"
                             "typedef const char* fmiString;\n"
                             "#define fmiTrue 1\n"
                             "#define fmiFalse 0\n"
                             "#define fmiUndefinedValueReference (fmiValueReference)(-1)\n"
                             "#endif\n";

static const char begin1[] =
    "#ifndef fmi1Functions_h\n"
    "#define fmi1Functions_h\n"
    "#include \"fmiPlatformTypes.h\"\n"
    "#define fmiPaste(a, b) a##b\n"
    "#define fmiPasteB(a, b) fmiPaste(a, b)\n"
    "#define fmiFullName(name) fmiPasteB(MODEL_IDENTIFIER, name)\n"
    "#define fmiVersion \"1.0\"\n"
    "#ifndef DllExport\n"
    "#define DllExport\n"
    "#endif\n"
    "typedef struct {\n"
    "    fmiBoolean iterationConverged, stateValueReferencesChanged, stateValuesChanged;\n"
    "    fmiBoolean terminateSimulation, upcomingTimeEvent;\n"
    "    fmiReal nextEventTime;\n"
    "} fmiEventInfo;\n";

static const char codes1_exchange[] =
    "typedef enum { fmiOK, fmiWarning, fmiDiscard, fmiError, fmiFatal } fmiStatus;\n"
    "typedef void (*fmiCallbackLogger)(fmiComponent, fmiString, fmiStatus, fmiString, fmiString, "
    "...);\n"
    "typedef void* (*fmiCallbackAllocateMemory)(size_t, size_t);\n"
    "typedef void (*fmiCallbackFreeMemory)(void*);\n"
    "typedef struct {\n"
    "    fmiCallbackLogger logger;\n"
    "    fmiCallbackAllocateMemory allocateMemory;\n"
    "    fmiCallbackFreeMemory freeMemory;\n"
    "} fmiCallbackFunctions;\n";

static const char codes1[] =
    "typedef enum { fmiOK, fmiWarning, fmiDiscard, fmiError, fmiFatal, fmiPending } fmiStatus;\n"
    "typedef enum { fmiDoStepStatus, fmiPendingStatus, fmiLastSuccessfulTime } fmiStatusKind;\n"
    "typedef void (*fmiCallbackLogger)(fmiComponent, fmiString, fmiStatus, fmiString, fmiString, "
    "...);\n"
    "typedef void* (*fmiCallbackAllocateMemory)(size_t, size_t);\n"
    "typedef void (*fmiCallbackFreeMemory)(void*);\n"
    "typedef void (*fmiStepFinished)(fmiComponent, fmiStatus);\n"
    "typedef struct {\n"
    "    fmiCallbackLogger logger;\n"
    "    fmiCallbackAllocateMemory allocateMemory;\n"
    "    fmiCallbackFreeMemory freeMemory;\n"
    "    fmiStepFinished stepFinished;\n"
    "} fmiCallbackFunctions;\n";

typedef struct function {
    const char *name, *result, *arguments;
} function;
#define FUNCTION(name, need, result, arguments) {#name, #result, #arguments},
static const function functions2[] = {CRDI_FMI2_LIST(FUNCTION){0}};
static const function functions3[] = {CRDI_FMI3_LIST(FUNCTION){0}};

// FMI 1.0: Model Exchange begins with those of its own, Co-Simulation ends with them.
#define VALUES "(fmiComponent, const fmiValueReference[], size_t, "
static const function functions1[] = {
    {"GetModelTypesPlatform", "const char*", "(void)"},
    {"InstantiateModel", "fmiComponent",
     "(fmiString, fmiString, fmiCallbackFunctions, fmiBoolean)"},
    {"FreeModelInstance", "void", "(fmiComponent)"},
    {"SetTime", "fmiStatus", "(fmiComponent, fmiReal)"},
    {"SetContinuousStates", "fmiStatus", "(fmiComponent, const fmiReal[], size_t)"},
    {"CompletedIntegratorStep", "fmiStatus", "(fmiComponent, fmiBoolean*)"},
    {"Initialize", "fmiStatus", "(fmiComponent, fmiBoolean, fmiReal, fmiEventInfo*)"},
    {"GetDerivatives", "fmiStatus", "(fmiComponent, fmiReal[], size_t)"},
    {"GetEventIndicators", "fmiStatus", "(fmiComponent, fmiReal[], size_t)"},
    {"EventUpdate", "fmiStatus", "(fmiComponent, fmiBoolean, fmiEventInfo*)"},
    {"GetContinuousStates", "fmiStatus", "(fmiComponent, fmiReal[], size_t)"},
    {"GetNominalContinuousStates", "fmiStatus", "(fmiComponent, fmiReal[], size_t)"},
    {"GetStateValueReferences", "fmiStatus", "(fmiComponent, fmiValueReference[], size_t)"},
    {"Terminate", "fmiStatus", "(fmiComponent)"},
    {"GetVersion", "const char*", "(void)"},
    {"SetDebugLogging", "fmiStatus", "(fmiComponent, fmiBoolean)"},
    {"SetReal", "fmiStatus", VALUES "const fmiReal[])"},
    {"SetInteger", "fmiStatus", VALUES "const fmiInteger[])"},
    {"SetBoolean", "fmiStatus", VALUES "const fmiBoolean[])"},
    {"SetString", "fmiStatus", VALUES "const fmiString[])"},
    {"GetReal", "fmiStatus", VALUES "fmiReal[])"},
    {"GetInteger", "fmiStatus", VALUES "fmiInteger[])"},
    {"GetBoolean", "fmiStatus", VALUES "fmiBoolean[])"},
    {"GetString", "fmiStatus", VALUES "fmiString[])"},
    {"GetTypesPlatform", "const char*", "(void)"},
    {"InstantiateSlave", "fmiComponent",
     "(fmiString, fmiString, fmiString, fmiString, fmiReal, fmiBoolean, fmiBoolean, "
     "fmiCallbackFunctions, fmiBoolean)"},
    {"InitializeSlave", "fmiStatus", "(fmiComponent, fmiReal, fmiBoolean, fmiReal)"},
    {"TerminateSlave", "fmiStatus", "(fmiComponent)"},
    {"ResetSlave", "fmiStatus", "(fmiComponent)"},
    {"FreeSlaveInstance", "void", "(fmiComponent)"},
    {"SetRealInputDerivatives", "fmiStatus", VALUES "const fmiInteger[], const fmiReal[])"},
    {"GetRealOutputDerivatives", "fmiStatus", VALUES "const fmiInteger[], fmiReal[])"},
    {"DoStep", "fmiStatus", "(fmiComponent, fmiReal, fmiReal, fmiBoolean)"},
    {"CancelStep", "fmiStatus", "(fmiComponent)"},
    {"GetStatus", "fmiStatus", "(fmiComponent, const fmiStatusKind, fmiStatus*)"},
    {"GetRealStatus", "fmiStatus", "(fmiComponent, const fmiStatusKind, fmiReal*)"},
    {"GetIntegerStatus", "fmiStatus", "(fmiComponent, const fmiStatusKind, fmiInteger*)"},
    {"GetBooleanStatus", "fmiStatus", "(fmiComponent, const fmiStatusKind, fmiBoolean*)"},
    {"GetStringStatus", "fmiStatus", "(fmiComponent, const fmiStatusKind, fmiString*)"}};
enum { FUNCTIONS1 = sizeof functions1 / sizeof *functions1, FIRST_COMMON = 14, FIRST_SLAVE = 24 };

static const char* const names1[] = {"fmiModelTypes.h", "fmiPlatformTypes.h", "fmiModelFunctions.h",
                                     "fmiFunctions.h"};

static const char* const names[] = {"fmi2TypesPlatform.h",
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

// ball_fmiDoStep, by the macro of the standard.
static void put_functions1(crd_text* t, bool exchange)
{
    crdi_text_add(t, "%s%s", begin1, exchange ? codes1_exchange : codes1);
    for (int i = exchange ? 0 : FIRST_COMMON; i < (exchange ? FIRST_SLAVE : FUNCTIONS1); i++) {
        const function* f = &functions1[i];
        crdi_text_add(t, "#define fmi%s fmiFullName(_fmi%s)\nDllExport %s fmi%s%s;\n", f->name,
                      f->name, f->result, f->name, f->arguments);
    }
    crdi_text_add(t, "#endif\n");
}

crd_status crdi_headers_write(crd_context* ctx, const char* folder)
{
    crd_status st = CRD_OK;
    crd_text t;
    crd_text_init(&t, ctx);
    for (int i = 0; i < 4 && st == CRD_OK; i++) {
        t.length = 0;
        if (i < 2) {
            crdi_text_add(&t, "%s", types1);
        } else {
            put_functions1(&t, i == 2);
        }
        st = write_header(ctx, folder, names1[i], &t);
    }
    for (int i = 0; names[i] && st == CRD_OK; i++) {
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
        st = write_header(ctx, folder, names[i], &t);
    }
    crd_text_clear(&t);
    return st;
}
