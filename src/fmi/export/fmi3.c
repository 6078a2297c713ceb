// The functions of FMI 3.0 for Co-Simulation and Model Exchange over the runtime in fmu.h.
//
// A value reference is a row of the table; one behind the last row stands for the time, those that
// follow for the event indicators.
#include "fmi3_abi.h"

#define FMI_NAME(name) fmi3##name
#define FMI_STATE(verb, what) fmi3##verb##FMUState##what
#define FMI_DESERIALIZE fmi3DeserializeFMUState
#define FMI_DERIVATIVES fmi3GetContinuousStateDerivatives
#define FMI_INSTANCE fmi3Instance
#define FMI_BOOLEAN bool
#define FMI_BYTE uint8_t
#include "fmi_both.h"

enum {
    MAY_GET = FMU_INITIALIZATION | FMU_STEP | FMU_EVENT | FMU_CONTINUOUS | FMU_INTERMEDIATE |
              FMU_TERMINATED | FMU_FAILED,
    MAY_SET = FMU_INSTANTIATED | FMU_INITIALIZATION | FMU_STEP | FMU_EVENT | FMU_CONTINUOUS |
              FMU_INTERMEDIATE,
};

static void log_line(fmu* f, int status, const char* category, const char* text)
{
    const fmi3LogMessageCallback log_message = (fmi3LogMessageCallback)f->callback;
    if (log_message) { log_message(f->environment, (fmi3Status)status, category, text); }
}

const char* fmi3GetVersion(void)
{
    return "3.0";
}

/// What the FMU is for, in words.
static const char* offered(const crd_model* model)
{
    return !fmu_offers(model, FMU_EXCHANGE)      ? "Co-Simulation"
           : fmu_offers(model, FMU_COSIMULATION) ? "Co-Simulation and Model Exchange"
                                                 : "Model Exchange";
}

/// NULL after a message, also if `interface` is not offered.
static fmu* create(const fmu* from, int interface, const char* name, const char* token,
                   const char* resources, size_t intermediate_count, const char* function)
{
    fmu here = *from;
    char message[512] = "";
    const crd_model* model = fmu_model_open(resources ? resources : "", message, sizeof message);
    if (!model) {
        fmu_say(&here, FMU_ERROR, "%s: %s", function, message);
        return NULL;
    }
    fmu* f = NULL;
    if (!interface || !fmu_offers(model, interface)) {
        fmu_say(&here, FMU_ERROR, "%s: this FMU is for %s only", function, offered(model));
    } else if (from->event_mode && !model->has_events) {
        fmu_say(&here, FMU_ERROR, "%s: this FMU has no event mode", function);
    } else {
        f = fmu_create(model, from, name, token, resources, (uint32_t)intermediate_count);
    }
    if (!f) {
        fmu_model_close(model);
        return NULL;
    }
    const size_t length = strlen(f->resources);
    if (length > 1 && f->resources[length - 1] == '/') { f->resources[length - 1] = 0; }
    return f;
}

fmi3Instance fmi3InstantiateModelExchange(const char* instanceName, const char* instantiationToken,
                                          const char* resourcePath, bool visible, bool loggingOn,
                                          void* environment, fmi3LogMessageCallback logMessage)
{
    const fmu from = {.log = log_line,
                      .log_mask = loggingOn ? ~0u : FMU_LOG_STATUS,
                      .environment = environment,
                      .callback = (void (*)(void))logMessage,
                      .exchange = true,
                      .name = ""};
    return create(&from, FMU_EXCHANGE, instanceName, instantiationToken, resourcePath, 0, __func__);
}

fmi3Instance fmi3InstantiateScheduledExecution(
    const char* instanceName, const char* instantiationToken, const char* resourcePath,
    bool visible, bool loggingOn, void* environment, fmi3LogMessageCallback logMessage,
    fmi3ClockUpdateCallback clockUpdate, fmi3LockPreemptionCallback lockPreemption,
    fmi3UnlockPreemptionCallback unlockPreemption)
{
    const fmu from = {.log = log_line,
                      .log_mask = FMU_LOG_STATUS,
                      .environment = environment,
                      .callback = (void (*)(void))logMessage,
                      .name = ""};
    return create(&from, 0, instanceName, instantiationToken, resourcePath, 0, __func__);
}

fmi3Instance fmi3InstantiateCoSimulation(const char* instanceName, const char* instantiationToken,
                                         const char* resourcePath, bool visible, bool loggingOn,
                                         bool eventModeUsed, bool earlyReturnAllowed,
                                         const fmi3ValueReference requiredIntermediateVariables[],
                                         size_t nRequiredIntermediateVariables, void* environment,
                                         fmi3LogMessageCallback logMessage,
                                         fmi3IntermediateUpdateCallback intermediateUpdate)
{
    const fmu from = {.log = log_line,
                      .log_mask = loggingOn ? ~0u : FMU_LOG_STATUS,
                      .environment = environment,
                      .callback = (void (*)(void))logMessage,
                      .intermediate = (void (*)(void))intermediateUpdate,
                      .event_mode = eventModeUsed,
                      .early_return = earlyReturnAllowed,
                      .name = ""};
    const size_t n = intermediateUpdate ? nRequiredIntermediateVariables : 0;
    fmu* f = create(&from, FMU_COSIMULATION, instanceName, instantiationToken, resourcePath, n,
                    __func__);
    if (!f) { return NULL; }
    for (size_t i = 0; i < n; i++) {
        const fmi3ValueReference r = requiredIntermediateVariables[i];
        if (r > f->count) {
            fmu_say(f, FMU_ERROR, "%s: there is no variable %u", __func__, (unsigned)r);
            fmu_free(f);
            return NULL;
        }
        if (r < f->count && f->slots[r].derivative) {
            f->intermediate_variables[f->intermediate_count++] = r;
        }
    }
    return f;
}

// ---- modes -------------------------------------------------------------------------------------

fmi3Status fmi3EnterInitializationMode(fmi3Instance c, bool toleranceDefined, double tolerance,
                                       double startTime, bool stopTimeDefined, double stopTime)
{
    REQUIRE(FMU_INSTANTIATED);
    return (fmi3Status)fmu_enter_initialization(c, startTime, stopTimeDefined, stopTime, __func__);
}

fmi3Status fmi3EnterEventMode(fmi3Instance c)
{
    const fmu* f = c;
    REQUIRE(f && f->exchange ? FMU_CONTINUOUS | FMU_EVENT : f && f->event_mode ? FMU_STEP : 0);
    ((fmu*)c)->phase = FMU_EVENT;
    return fmi3OK;
}

fmi3Status fmi3EnterStepMode(fmi3Instance c)
{
    REQUIRE(c && !((fmu*)c)->exchange ? FMU_EVENT : 0);
    REFRESH();
    return (fmi3Status)fmu_leave_events(c, FMU_STEP, __func__);
}

fmi3Status fmi3EnterConfigurationMode(fmi3Instance c)
{
    REQUIRE(0); // no structural parameters
    return fmi3Error;
}

fmi3Status fmi3ExitConfigurationMode(fmi3Instance c)
{
    REQUIRE(0);
    return fmi3Error;
}

fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance c)
{
    REQUIRE(FMU_INITIALIZATION | FMU_EVENT);
    REFRESH();
    return fmi3OK;
}

fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, bool* discreteStatesNeedUpdate,
                                    bool* terminateSimulation,
                                    bool* nominalsOfContinuousStatesChanged,
                                    bool* valuesOfContinuousStatesChanged,
                                    bool* nextEventTimeDefined, double* nextEventTime)
{
    REQUIRE(FMU_EVENT);
    fmu* f = c;
    fmu_update update;
    const int status = fmu_update_discrete(f, &update);
    if (status >= FMU_DISCARD) { return (fmi3Status)status; }
    *discreteStatesNeedUpdate = update.again;
    *terminateSimulation = update.terminate;
    *nominalsOfContinuousStatesChanged = false;
    *valuesOfContinuousStatesChanged = f->exchange && update.states_changed;
    *nextEventTimeDefined = f->next_event < INFINITY;
    *nextEventTime = f->next_event;
    return (fmi3Status)status;
}

// ---- steps -------------------------------------------------------------------------------------

/// Ask the importer for the inputs at the middle and at the end of the step and lay a parabola
/// through them: what FMI 2.0 had as input derivatives, and exact up to second order. Written with
/// differences, so that constant inputs have derivatives of exactly zero.
static void ask_for_inputs(fmu* f, double t, double h)
{
    const fmi3IntermediateUpdateCallback ask = (fmi3IntermediateUpdateCallback)f->intermediate;
    const bool quadratic = f->model->max_input_derivative > 1;
    bool return_early = false;
    double early_time = 0;
    f->phase = FMU_INTERMEDIATE;
    for (uint32_t i = 0; i < f->intermediate_count; i++) { // d[0] keeps the value at t
        const crd_model_variable* v = &f->model->variables[f->intermediate_variables[i]];
        double* d = (double*)(f->self + v->derivatives);
        d[0] = *(double*)(f->self + v->offset);
        d[1] = 0;
    }
    if (quadratic) {
        ask(f->environment, t + 0.5 * h, true, false, false, false, &return_early, &early_time);
        for (uint32_t i = 0; i < f->intermediate_count; i++) { // d[1]: the difference to the middle
            const crd_model_variable* v = &f->model->variables[f->intermediate_variables[i]];
            double* d = (double*)(f->self + v->derivatives);
            d[1] = *(double*)(f->self + v->offset) - d[0];
        }
    }
    ask(f->environment, t + h, true, false, false, false, &return_early, &early_time);
    for (uint32_t i = 0; i < f->intermediate_count; i++) {
        const crd_model_variable* v = &f->model->variables[f->intermediate_variables[i]];
        double* u = (double*)(f->self + v->offset);
        double* d = (double*)(f->self + v->derivatives);
        const double to_middle = d[1], to_end = *u - d[0];
        *u = d[0];
        d[0] = quadratic ? (4 * to_middle - to_end) / h : to_end / h;
        d[1] = quadratic ? 4 * (to_end - 2 * to_middle) / (h * h) : 0;
        f->moving = f->moving || d[0] != 0 || d[1] != 0;
    }
    f->phase = FMU_STEP;
}

fmi3Status fmi3DoStep(fmi3Instance c, double currentCommunicationPoint,
                      double communicationStepSize, bool noSetFMUStatePriorToCurrentPoint,
                      bool* eventHandlingNeeded, bool* terminateSimulation, bool* earlyReturn,
                      double* lastSuccessfulTime)
{
    REQUIRE(FMU_STEP);
    fmu* f = c;
    fmu_outcome out;
    f->terminate = false;
    if (f->intermediate_count && communicationStepSize > 0) {
        ask_for_inputs(f, currentCommunicationPoint, communicationStepSize);
    }
    const bool stop_at_event = f->event_mode && f->early_return;
    const int status = fmu_step(f, currentCommunicationPoint, communicationStepSize, stop_at_event,
                                &out, __func__);
    *eventHandlingNeeded = out.event;
    *terminateSimulation = f->terminate;
    *earlyReturn = out.early;
    *lastSuccessfulTime = out.reached;
    return (fmi3Status)status;
}

// ---- values ------------------------------------------------------------------------------------

static fmi3Status short_values(fmu* f, const char* function, size_t n)
{
    return (fmi3Status)fmu_say(f, FMU_ERROR, "%s: %zu values do not fit the variables' sizes",
                               function, n);
}

static bool is_indicator(const fmu* f, fmi3ValueReference r)
{
    return r > f->count && r - f->count <= (uint32_t)f->model->indicator_count;
}

static double indicator(fmu* f, fmi3ValueReference r)
{
    f->model->indicators(f->self, f->time, f->ode.z1); // room that is free between steps
    return f->ode.z1[r - f->count - 1];
}

/// Number variables: `types` are the crd_types that the function serves.
#define ACCESS(kind, ctype, types)                                                                 \
    fmi3Status fmi3Get##kind(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr,            \
                             ctype values[], size_t nValues)                                       \
    {                                                                                              \
        REQUIRE(MAY_GET);                                                                          \
        REFRESH();                                                                                 \
        fmu* f = c;                                                                                \
        size_t at = 0;                                                                             \
        for (size_t i = 0; i < nvr; i++) {                                                         \
            if (GET_TIME(kind) && vr[i] == f->count && at < nValues) {                             \
                values[at++] = (ctype)f->time;                                                     \
                continue;                                                                          \
            }                                                                                      \
            if (GET_TIME(kind) && is_indicator(f, vr[i]) && at < nValues) {                        \
                values[at++] = (ctype)indicator(f, vr[i]);                                         \
                continue;                                                                          \
            }                                                                                      \
            const fmu_slot* s = fmu_find(f, vr[i], types, __func__);                               \
            if (!s) { return fmi3Error; }                                                          \
            if (s->size > nValues - at) { return short_values(f, __func__, nValues); }             \
            const ctype* p = (const ctype*)(f->self + s->offset);                                  \
            for (uint32_t k = 0; k < s->size; k++) {                                               \
                values[at++] = p[k];                                                               \
            }                                                                                      \
        }                                                                                          \
        return at == nValues ? fmi3OK : short_values(f, __func__, nValues);                        \
    }                                                                                              \
                                                                                                   \
    fmi3Status fmi3Set##kind(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr,            \
                             const ctype values[], size_t nValues)                                 \
    {                                                                                              \
        REQUIRE(MAY_SET);                                                                          \
        fmu* f = c;                                                                                \
        size_t at = 0;                                                                             \
        f->dirty = true;                                                                           \
        for (size_t i = 0; i < nvr; i++) {                                                         \
            const fmu_slot* s = fmu_find(f, vr[i], types, __func__);                               \
            if (!s) { return fmi3Error; }                                                          \
            if (!(s->set_in & f->phase)) {                                                         \
                return (fmi3Status)fmu_not_settable(f, vr[i], __func__);                           \
            }                                                                                      \
            if (s->size > nValues - at) { return short_values(f, __func__, nValues); }             \
            ctype* p = (ctype*)(f->self + s->offset);                                              \
            for (uint32_t k = 0; k < s->size; k++) {                                               \
                if (s->type == CRD_ENUMERATION &&                                                  \
                    !fmu_enumeration_ok(f, vr[i], (int64_t)values[at], __func__)) {                \
                    return fmi3Error;                                                              \
                }                                                                                  \
                p[k] = values[at++];                                                               \
            }                                                                                      \
        }                                                                                          \
        return at == nValues ? fmi3OK : short_values(f, __func__, nValues);                        \
    }

#define GET_TIME(type) (sizeof #type == sizeof "Float64" && #type[5] == '6')
ACCESS(Float64, double, 1u << CRD_FLOAT64)
ACCESS(Float32, float, 1u << CRD_FLOAT32)
ACCESS(Int8, int8_t, 1u << CRD_INT8)
ACCESS(UInt8, uint8_t, 1u << CRD_UINT8)
ACCESS(Int16, int16_t, 1u << CRD_INT16)
ACCESS(UInt16, uint16_t, 1u << CRD_UINT16)
ACCESS(Int32, int32_t, 1u << CRD_INT32)
ACCESS(UInt32, uint32_t, 1u << CRD_UINT32)
ACCESS(Int64, int64_t, 1u << CRD_INT64 | 1u << CRD_ENUMERATION)
ACCESS(UInt64, uint64_t, 1u << CRD_UINT64)
ACCESS(Boolean, bool, 1u << CRD_BOOLEAN)

/// The slot of a string or binary variable whose elements are values at .. at + size - 1.
static const fmu_slot* bytes_slot(fmu* f, uint32_t reference, crd_type type, bool set, size_t at,
                                  size_t nValues, const char* function)
{
    const fmu_slot* s = fmu_find(f, reference, 1u << type, function);
    if (!s) { return NULL; }
    if (set && !(s->set_in & f->phase)) {
        fmu_not_settable(f, reference, function);
        return NULL;
    }
    if (s->size > nValues - at) {
        short_values(f, function, nValues);
        return NULL;
    }
    return s;
}

fmi3Status fmi3GetString(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr,
                         const char* values[], size_t nValues)
{
    REQUIRE(MAY_GET);
    REFRESH();
    fmu* f = c;
    size_t at = 0;
    for (size_t i = 0; i < nvr; i++) {
        const fmu_slot* s = bytes_slot(f, vr[i], CRD_STRING, false, at, nValues, __func__);
        if (!s) { return fmi3Error; }
        for (uint32_t k = 0; k < s->size; k++) {
            values[at++] = f->self + s->offset + k * f->model->variables[vr[i]].capacity;
        }
    }
    return fmi3OK;
}

fmi3Status fmi3SetString(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr,
                         const char* const values[], size_t nValues)
{
    REQUIRE(MAY_SET);
    fmu* f = c;
    size_t at = 0;
    f->dirty = true;
    for (size_t i = 0; i < nvr; i++) {
        const fmu_slot* s = bytes_slot(f, vr[i], CRD_STRING, true, at, nValues, __func__);
        if (!s) { return fmi3Error; }
        for (uint32_t k = 0; k < s->size; k++) {
            if (fmu_set_text(f, vr[i], k, values[at++], __func__) != FMU_OK) { return fmi3Error; }
        }
    }
    return fmi3OK;
}

fmi3Status fmi3GetBinary(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr,
                         size_t valueSizes[], const uint8_t* values[], size_t nValues)
{
    REQUIRE(MAY_GET);
    REFRESH();
    fmu* f = c;
    size_t at = 0;
    for (size_t i = 0; i < nvr; i++) {
        const fmu_slot* s = bytes_slot(f, vr[i], CRD_BINARY, false, at, nValues, __func__);
        if (!s) { return fmi3Error; }
        for (uint32_t k = 0; k < s->size; k++, at++) {
            const char* p = f->self + s->offset + k * crd_model_stride(&f->model->variables[vr[i]]);
            valueSizes[at] = *(const size_t*)p;
            values[at] = (const uint8_t*)p + sizeof(size_t);
        }
    }
    return fmi3OK;
}

fmi3Status fmi3SetBinary(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr,
                         const size_t valueSizes[], const uint8_t* const values[], size_t nValues)
{
    REQUIRE(MAY_SET);
    fmu* f = c;
    size_t at = 0;
    f->dirty = true;
    for (size_t i = 0; i < nvr; i++) {
        const fmu_slot* s = bytes_slot(f, vr[i], CRD_BINARY, true, at, nValues, __func__);
        if (!s) { return fmi3Error; }
        const crd_model_variable* v = &f->model->variables[vr[i]];
        for (uint32_t k = 0; k < s->size; k++, at++) {
            if (valueSizes[at] > v->capacity || (valueSizes[at] && !values[at])) {
                return (fmi3Status)fmu_say(f, FMU_ERROR, "%s: %s has room for %zu bytes, not %zu",
                                           __func__, v->name, v->capacity, valueSizes[at]);
            }
            char* p = f->self + s->offset + k * crd_model_stride(v);
            *(size_t*)p = valueSizes[at];
            if (valueSizes[at]) { memcpy(p + sizeof(size_t), values[at], valueSizes[at]); }
        }
    }
    return fmi3OK;
}

/// Functions about things that these FMUs have none of are fine with none.
static fmi3Status none_of(fmi3Instance c, size_t n, const char* what, const char* function)
{
    if (!fmu_allowed(c, FMU_ALIVE, function)) { return fmi3Error; }
    if (n == 0) { return fmi3OK; }
    return (fmi3Status)fmu_say(c, FMU_ERROR, "%s: this FMU has no %s", function, what);
}

#define NO_CLOCKS(name, ...)                                                                       \
    fmi3Status name(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr, __VA_ARGS__)        \
    {                                                                                              \
        return none_of(c, nvr, "clocks", __func__);                                                \
    }

NO_CLOCKS(fmi3GetClock, bool values[])
NO_CLOCKS(fmi3SetClock, const bool values[])
NO_CLOCKS(fmi3GetIntervalDecimal, double intervals[], fmi3IntervalQualifier qualifiers[])
NO_CLOCKS(fmi3GetIntervalFraction, uint64_t counters[], uint64_t resolutions[],
          fmi3IntervalQualifier qualifiers[])
NO_CLOCKS(fmi3GetShiftDecimal, double shifts[])
NO_CLOCKS(fmi3GetShiftFraction, uint64_t counters[], uint64_t resolutions[])
NO_CLOCKS(fmi3SetIntervalDecimal, const double intervals[])
NO_CLOCKS(fmi3SetIntervalFraction, const uint64_t counters[], const uint64_t resolutions[])
NO_CLOCKS(fmi3SetShiftDecimal, const double shifts[])
NO_CLOCKS(fmi3SetShiftFraction, const uint64_t counters[], const uint64_t resolutions[])

fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance c, fmi3ValueReference vr, size_t* n)
{
    return none_of(c, 1, "dependencies per element", __func__);
}

fmi3Status fmi3GetVariableDependencies(fmi3Instance c, fmi3ValueReference dependent,
                                       size_t elementIndicesOfDependent[],
                                       fmi3ValueReference independents[],
                                       size_t elementIndicesOfIndependents[],
                                       fmi3DependencyKind dependencyKinds[], size_t nDependencies)
{
    return none_of(c, 1, "dependencies per element", __func__);
}

// ---- derivatives -------------------------------------------------------------------------------

fmi3Status fmi3GetOutputDerivatives(fmi3Instance c, const fmi3ValueReference vr[], size_t nvr,
                                    const int32_t orders[], double values[], size_t nValues)
{
    REQUIRE(FMU_STEP | FMU_EVENT | FMU_INITIALIZATION | FMU_TERMINATED | FMU_FAILED);
    REFRESH();
    if (nvr != nValues) { return short_values(c, __func__, nValues); }
    for (size_t i = 0; i < nvr; i++) {
        if (fmu_output_derivative(c, vr[i], orders[i], &values[i], __func__) != FMU_OK) {
            return fmi3Error;
        }
    }
    return fmi3OK;
}

fmi3Status fmi3GetDirectionalDerivative(fmi3Instance c, const fmi3ValueReference unknowns[],
                                        size_t nUnknowns, const fmi3ValueReference knowns[],
                                        size_t nKnowns, const double seed[], size_t nSeed,
                                        double sensitivity[], size_t nSensitivity)
{
    REQUIRE(MAY_GET & ~FMU_INTERMEDIATE);
    if (nSeed != nKnowns || nSensitivity != nUnknowns) { return short_values(c, __func__, nSeed); }
    return (fmi3Status)fmu_derivative(c, unknowns, nUnknowns, knowns, nKnowns, seed, sensitivity,
                                      false, __func__);
}

fmi3Status fmi3GetAdjointDerivative(fmi3Instance c, const fmi3ValueReference unknowns[],
                                    size_t nUnknowns, const fmi3ValueReference knowns[],
                                    size_t nKnowns, const double seed[], size_t nSeed,
                                    double sensitivity[], size_t nSensitivity)
{
    REQUIRE(MAY_GET & ~FMU_INTERMEDIATE);
    if (nSeed != nUnknowns || nSensitivity != nKnowns) { return short_values(c, __func__, nSeed); }
    return (fmi3Status)fmu_derivative(c, unknowns, nUnknowns, knowns, nKnowns, seed, sensitivity,
                                      true, __func__);
}

// ---- Model Exchange ----------------------------------------------------------------------------

fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t* n)
{
    REQUIRE_EXCHANGE(FMU_INSTANTIATED | READABLE);
    *n = (size_t)((fmu*)c)->model->indicator_count;
    return fmi3OK;
}

fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t* n)
{
    REQUIRE_EXCHANGE(FMU_INSTANTIATED | READABLE);
    *n = ((fmu*)c)->ode.states;
    return fmi3OK;
}

// ---- Scheduled Execution: not offered ----------------------------------------------------------

fmi3Status fmi3ActivateModelPartition(fmi3Instance c, fmi3ValueReference clockReference,
                                      double activationTime)
{
    REQUIRE(0);
    return fmi3Error;
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
