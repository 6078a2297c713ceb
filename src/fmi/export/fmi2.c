// The functions of FMI 2.0 for Co-Simulation and Model Exchange over the runtime in fmu.h.
//
// A value reference is the row of the table in its lower 16 bits and, as FMI 2.0 has no arrays, the
// element of an array in the upper 16. All integers and enumerations go through the Integer
// functions; binaries do not exist here.
#include "fmi2_abi.h"

#define FMI_NAME(name) fmi2##name
#define FMI_STATE(verb, what) fmi2##verb##FMUstate##what
#define FMI_DESERIALIZE fmi2DeSerializeFMUstate
#define FMI_DERIVATIVES fmi2GetDerivatives
#define FMI_INSTANCE fmi2Component
#define FMI_BOOLEAN fmi2Boolean
#define FMI_BYTE char
#include "fmi_both.h"

#define ROW(reference) ((reference)&0xffffu)
#define ELEMENT(reference) ((reference) >> 16)

enum {
    STATUS = FMU_INITIALIZATION | FMU_STEP | FMU_TERMINATED | FMU_FAILED,
    MAY_GET = STATUS | FMU_EVENT | FMU_CONTINUOUS,
    MAY_SET = FMU_INSTANTIATED | FMU_INITIALIZATION | FMU_STEP | FMU_EVENT | FMU_CONTINUOUS,
    INTEGERS = 1 << CRD_INT8 | 1 << CRD_UINT8 | 1 << CRD_INT16 | 1 << CRD_UINT16 | 1 << CRD_INT32 |
               1 << CRD_UINT32 | 1 << CRD_INT64 | 1 << CRD_UINT64 | 1 << CRD_ENUMERATION,
    REALS = 1 << CRD_FLOAT64 | 1 << CRD_FLOAT32,
};

static void log_line(fmu* f, int status, const char* category, const char* text)
{
    const fmi2CallbackLogger logger = (fmi2CallbackLogger)f->callback;
    if (logger) { logger(f->environment, f->name, (fmi2Status)status, category, "%s", text); }
}

/// The path in file:///..., file:/... or a bare path, percent signs undone. `path` has room.
static void path_of_uri(const char* uri, char* path)
{
    if (strncmp(uri, "file:", 5) == 0) {
        uri += 5;
        if (strncmp(uri, "//", 2) == 0) {
            uri += 2;
            while (*uri && *uri != '/') {
                uri++;
            } // the host
        }
    }
    char* out = path;
    for (; *uri; uri++) {
        const char digits[3] = {uri[1], uri[1] ? uri[2] : 0, 0};
        char* end = NULL;
        const long byte = *uri == '%' && digits[0] > ' ' ? strtol(digits, &end, 16) : 0;
        if (byte > 0 && end == digits + 2) {
            *out++ = (char)byte;
            uri += 2;
        } else {
            *out++ = *uri;
        }
    }
    while (out > path + 1 && out[-1] == '/') {
        out--;
    }
    *out = 0;
}

const char* fmi2GetTypesPlatform(void)
{
    return "default";
}

const char* fmi2GetVersion(void)
{
    return "2.0";
}

static fmu* create(const fmu* from, const char* name, const char* token, const char* resources)
{
    fmu here = *from;
    char message[512] = "";
    const crd_model* model = fmu_model_open(resources, message, sizeof message);
    if (!model) {
        fmu_say(&here, FMU_ERROR, "fmi2Instantiate: %s", message);
        return NULL;
    }
    fmu* f = NULL;
    if (!fmu_offers(model, from->exchange ? FMU_EXCHANGE : FMU_COSIMULATION)) {
        fmu_say(&here, FMU_ERROR, "fmi2Instantiate: this FMU is for %s only",
                from->exchange ? "Co-Simulation" : "Model Exchange");
    } else {
        f = fmu_create(model, from, name, token, resources, 0);
    }
    if (!f) { fmu_model_close(model); }
    return f;
}

fmi2Component fmi2Instantiate(const char* instanceName, fmi2Type fmuType, const char* fmuGUID,
                              const char* fmuResourceLocation,
                              const fmi2CallbackFunctions* functions, fmi2Boolean visible,
                              fmi2Boolean loggingOn)
{
    const fmu from = {.log = log_line,
                      .log_mask = loggingOn ? ~0u : FMU_LOG_STATUS,
                      .environment = functions ? functions->componentEnvironment : NULL,
                      .callback = functions ? (void (*)(void))functions->logger : NULL,
                      .exchange = fmuType == fmi2ModelExchange,
                      .name = ""};
    const char* uri = fmuResourceLocation ? fmuResourceLocation : "";
    char* path = malloc(strlen(uri) + 1);
    if (!path) { return NULL; }
    path_of_uri(uri, path);
    fmu* f = create(&from, instanceName, fmuGUID, path);
    free(path);
    return f;
}

// ---- modes -------------------------------------------------------------------------------------

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean toleranceDefined, double tolerance,
                               double startTime, fmi2Boolean stopTimeDefined, double stopTime)
{
    REQUIRE(FMU_INSTANTIATED);
    fmu* f = c;
    f->start = startTime;
    f->has_stop = stopTimeDefined != 0;
    f->stop = stopTime;
    f->ready = true;
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component c)
{
    REQUIRE(FMU_INSTANTIATED);
    fmu* f = c;
    if (!f->ready) {
        return (fmi2Status)fmu_say(f, FMU_ERROR, "%s: fmi2SetupExperiment has to come before",
                                   __func__);
    }
    return (fmi2Status)fmu_enter_initialization(f, f->start, f->has_stop, f->stop, __func__);
}

fmi2Status fmi2DoStep(fmi2Component c, double currentCommunicationPoint,
                      double communicationStepSize, fmi2Boolean noSetFMUStatePriorToCurrentPoint)
{
    REQUIRE(FMU_STEP);
    fmu* f = c;
    fmu_outcome out;
    f->terminate = false;
    const int status =
        fmu_step(f, currentCommunicationPoint, communicationStepSize, false, &out, __func__);
    return f->terminate ? fmi2Discard : (fmi2Status)status;
}

fmi2Status fmi2CancelStep(fmi2Component c)
{
    REQUIRE(0); // no step is ever pending
    return fmi2Error;
}

fmi2Status fmi2GetStatus(fmi2Component c, fmi2StatusKind s, fmi2Status* value)
{
    REQUIRE(STATUS);
    return (fmi2Status)fmu_say(c, FMU_DISCARD, "%s: no step is pending (kind %d)", __func__,
                               (int)s);
}

fmi2Status fmi2GetRealStatus(fmi2Component c, fmi2StatusKind s, double* value)
{
    REQUIRE(STATUS);
    if (s != fmi2LastSuccessfulTime) {
        return (fmi2Status)fmu_say(c, FMU_DISCARD, "%s: kind %d is not real", __func__, (int)s);
    }
    *value = ((fmu*)c)->time;
    return fmi2OK;
}

fmi2Status fmi2GetIntegerStatus(fmi2Component c, fmi2StatusKind s, int* value)
{
    REQUIRE(STATUS);
    return (fmi2Status)fmu_say(c, FMU_DISCARD, "%s: kind %d is no integer", __func__, (int)s);
}

fmi2Status fmi2GetBooleanStatus(fmi2Component c, fmi2StatusKind s, fmi2Boolean* value)
{
    REQUIRE(STATUS);
    if (s != fmi2Terminated) {
        return (fmi2Status)fmu_say(c, FMU_DISCARD, "%s: kind %d is no boolean", __func__, (int)s);
    }
    *value = ((fmu*)c)->terminate;
    return fmi2OK;
}

fmi2Status fmi2GetStringStatus(fmi2Component c, fmi2StatusKind s, const char** value)
{
    REQUIRE(STATUS);
    *value = "";
    return (fmi2Status)fmu_say(c, FMU_DISCARD, "%s: no step is pending (kind %d)", __func__,
                               (int)s);
}

// ---- values ------------------------------------------------------------------------------------

/// Address of a variable of one of the types, NULL after a message.
static void* field(fmu* f, uint32_t reference, uint32_t types, uint8_t* type, const char* function)
{
    const fmu_slot* s = fmu_find(f, ROW(reference), types, function);
    if (!s) { return NULL; }
    if (ELEMENT(reference) >= s->size) {
        fmu_say(f, FMU_ERROR, "%s: value reference %u is no variable", function, reference);
        return NULL;
    }
    *type = s->type;
    const size_t stride = crd_model_stride(&f->model->variables[ROW(reference)]);
    return f->self + s->offset + ELEMENT(reference) * stride;
}

static void* settable_field(fmu* f, uint32_t reference, uint32_t types, uint8_t* type,
                            const char* function)
{
    void* p = field(f, reference, types, type, function);
    if (p && !(f->slots[ROW(reference)].set_in & f->phase)) {
        fmu_not_settable(f, ROW(reference), function);
        return NULL;
    }
    return p;
}

fmi2Status fmi2GetReal(fmi2Component c, const uint32_t vr[], size_t nvr, double value[])
{
    REQUIRE(MAY_GET);
    REFRESH();
    fmu* f = c;
    for (size_t i = 0; i < nvr; i++) {
        if (vr[i] < f->count && f->slots[vr[i]].type == CRD_FLOAT64) { // nearly always
            value[i] = *(const double*)(f->self + f->slots[vr[i]].offset);
            continue;
        }
        uint8_t type;
        const void* p = field(f, vr[i], REALS, &type, __func__);
        if (!p) { return fmi2Error; }
        value[i] = type == CRD_FLOAT64 ? *(const double*)p : (double)*(const float*)p;
    }
    return fmi2OK;
}

fmi2Status fmi2SetReal(fmi2Component c, const uint32_t vr[], size_t nvr, const double value[])
{
    REQUIRE(MAY_SET);
    fmu* f = c;
    f->dirty = true;
    for (size_t i = 0; i < nvr; i++) {
        if (vr[i] < f->count && f->slots[vr[i]].type == CRD_FLOAT64 &&
            (f->slots[vr[i]].set_in & f->phase)) {
            *(double*)(f->self + f->slots[vr[i]].offset) = value[i];
            continue;
        }
        uint8_t type;
        void* p = settable_field(f, vr[i], REALS, &type, __func__);
        if (!p) { return fmi2Error; }
        if (type == CRD_FLOAT64) {
            *(double*)p = value[i];
        } else {
            *(float*)p = (float)value[i];
        }
    }
    return fmi2OK;
}

/// false if the value does not fit.
static bool write_integer(void* p, uint8_t type, int value)
{
    crd_model_set_integer((crd_type)type, p, value);
    return crd_model_integer((crd_type)type, p) == value && (type != CRD_UINT64 || value >= 0);
}

fmi2Status fmi2GetInteger(fmi2Component c, const uint32_t vr[], size_t nvr, int value[])
{
    REQUIRE(MAY_GET);
    REFRESH();
    fmu* f = c;
    for (size_t i = 0; i < nvr; i++) {
        uint8_t type;
        const void* p = field(f, vr[i], INTEGERS, &type, __func__);
        if (!p) { return fmi2Error; }
        const int64_t x = crd_model_integer((crd_type)type, p);
        value[i] = (int)x;
        if (value[i] != x || (type == CRD_UINT64 && x < 0)) {
            const char* name = f->model->variables[ROW(vr[i])].name;
            return (fmi2Status)fmu_say(f, FMU_ERROR, "%s: %s does not fit into 32 bits", __func__,
                                       name);
        }
    }
    return fmi2OK;
}

fmi2Status fmi2SetInteger(fmi2Component c, const uint32_t vr[], size_t nvr, const int value[])
{
    REQUIRE(MAY_SET);
    fmu* f = c;
    f->dirty = true;
    for (size_t i = 0; i < nvr; i++) {
        uint8_t type;
        void* p = settable_field(f, vr[i], INTEGERS, &type, __func__);
        if (!p) { return fmi2Error; }
        if (type == CRD_ENUMERATION && !fmu_enumeration_ok(f, ROW(vr[i]), value[i], __func__)) {
            return fmi2Error;
        }
        if (!write_integer(p, type, value[i])) {
            return (fmi2Status)fmu_say(f, FMU_ERROR, "%s: %d does not fit into %s", __func__,
                                       value[i], f->model->variables[ROW(vr[i])].name);
        }
    }
    return fmi2OK;
}

fmi2Status fmi2GetBoolean(fmi2Component c, const uint32_t vr[], size_t nvr, fmi2Boolean value[])
{
    REQUIRE(MAY_GET);
    REFRESH();
    for (size_t i = 0; i < nvr; i++) {
        uint8_t type;
        const bool* p = field(c, vr[i], 1u << CRD_BOOLEAN, &type, __func__);
        if (!p) { return fmi2Error; }
        value[i] = *p;
    }
    return fmi2OK;
}

fmi2Status fmi2SetBoolean(fmi2Component c, const uint32_t vr[], size_t nvr,
                          const fmi2Boolean value[])
{
    REQUIRE(MAY_SET);
    ((fmu*)c)->dirty = true;
    for (size_t i = 0; i < nvr; i++) {
        uint8_t type;
        bool* p = settable_field(c, vr[i], 1u << CRD_BOOLEAN, &type, __func__);
        if (!p) { return fmi2Error; }
        *p = value[i] != 0;
    }
    return fmi2OK;
}

fmi2Status fmi2GetString(fmi2Component c, const uint32_t vr[], size_t nvr, const char* value[])
{
    REQUIRE(MAY_GET);
    REFRESH();
    for (size_t i = 0; i < nvr; i++) {
        uint8_t type;
        value[i] = field(c, vr[i], 1u << CRD_STRING, &type, __func__);
        if (!value[i]) { return fmi2Error; }
    }
    return fmi2OK;
}

fmi2Status fmi2SetString(fmi2Component c, const uint32_t vr[], size_t nvr,
                         const char* const value[])
{
    REQUIRE(MAY_SET);
    ((fmu*)c)->dirty = true;
    for (size_t i = 0; i < nvr; i++) {
        uint8_t type;
        if (!settable_field(c, vr[i], 1u << CRD_STRING, &type, __func__) ||
            fmu_set_text(c, ROW(vr[i]), ELEMENT(vr[i]), value[i], __func__) != FMU_OK) {
            return fmi2Error;
        }
    }
    return fmi2OK;
}

// ---- derivatives -------------------------------------------------------------------------------

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const uint32_t vr[], size_t nvr,
                                       const int order[], const double value[])
{
    REQUIRE(FMU_INITIALIZATION | FMU_STEP);
    for (size_t i = 0; i < nvr; i++) {
        if (fmu_set_input_derivative(c, vr[i], order[i], value[i], __func__) != FMU_OK) {
            return fmi2Error;
        }
    }
    return fmi2OK;
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const uint32_t vr[], size_t nvr,
                                        const int order[], double value[])
{
    REQUIRE(MAY_GET);
    REFRESH();
    for (size_t i = 0; i < nvr; i++) {
        if (fmu_output_derivative(c, vr[i], order[i], &value[i], __func__) != FMU_OK) {
            return fmi2Error;
        }
    }
    return fmi2OK;
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const uint32_t vUnknown_ref[],
                                        size_t nUnknown, const uint32_t vKnown_ref[], size_t nKnown,
                                        const double dvKnown[], double dvUnknown[])
{
    REQUIRE(MAY_GET);
    return (fmi2Status)fmu_derivative(c, vUnknown_ref, nUnknown, vKnown_ref, nKnown, dvKnown,
                                      dvUnknown, false, __func__);
}

// ---- Model Exchange ----------------------------------------------------------------------------

fmi2Status fmi2EnterEventMode(fmi2Component c)
{
    REQUIRE_EXCHANGE(MODES);
    ((fmu*)c)->phase = FMU_EVENT;
    return fmi2OK;
}

fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo* info)
{
    REQUIRE_EXCHANGE(FMU_EVENT);
    fmu* f = c;
    fmu_update update;
    const int status = fmu_update_discrete(f, &update);
    if (status >= FMU_DISCARD) { return (fmi2Status)status; }
    *info = (fmi2EventInfo){.newDiscreteStatesNeeded = update.again,
                            .terminateSimulation = update.terminate,
                            .valuesOfContinuousStatesChanged = update.states_changed,
                            .nextEventTimeDefined = f->next_event < INFINITY,
                            .nextEventTime = f->next_event};
    return (fmi2Status)status;
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
