// The functions that FMI 2.0 and 3.0 both have, but for the spelling. fmi2.c and fmi3.c say it and
// include this:
//
//   FMI_NAME(name)                     fmi2 or fmi3 and the name
//   FMI_STATE(verb, what)              the same about states, FMUstate or FMUState
//   FMI_DESERIALIZE, FMI_DERIVATIVES   names that differ otherwise
//   FMI_INSTANCE, FMI_BOOLEAN, FMI_BYTE types
#include "fmu.h"
#include "fmu_model.h"

// Signatures are the standard's; importers declare them, and some parameters are of no use here.
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

#define REQUIRE(phases)                                                                            \
    do {                                                                                           \
        if (!fmu_allowed(c, phases, __func__)) { return FMI_NAME(Error); }                         \
    } while (0)

// Within the importer's callback inputs are being collected: outputs stay as they are.
#define REFRESH()                                                                                  \
    do {                                                                                           \
        fmu* refresh_f = c;                                                                        \
        const bool stale = refresh_f->dirty && refresh_f->phase != FMU_INTERMEDIATE;               \
        const int refreshed = stale ? fmu_refresh(refresh_f) : FMU_OK;                             \
        if (refreshed >= FMU_DISCARD) { return (FMI_NAME(Status))refreshed; }                      \
    } while (0)

void FMI_NAME(FreeInstance)(FMI_INSTANCE c)
{
    fmu_free(c);
}

FMI_NAME(Status)
FMI_NAME(SetDebugLogging)
(FMI_INSTANCE c, FMI_BOOLEAN loggingOn, size_t nCategories, const char* const categories[])
{
    REQUIRE(FMU_ALIVE);
    return (FMI_NAME(Status))fmu_set_log(c, loggingOn != 0, categories, nCategories, __func__);
}

// ---- modes -------------------------------------------------------------------------------------

FMI_NAME(Status) FMI_NAME(ExitInitializationMode)(FMI_INSTANCE c)
{
    REQUIRE(FMU_INITIALIZATION);
    return (FMI_NAME(Status))fmu_exit_initialization(c);
}

FMI_NAME(Status) FMI_NAME(Terminate)(FMI_INSTANCE c)
{
    REQUIRE(FMU_STEP | FMU_EVENT | FMU_CONTINUOUS);
    return (FMI_NAME(Status))fmu_terminate(c);
}

FMI_NAME(Status) FMI_NAME(Reset)(FMI_INSTANCE c)
{
    REQUIRE(FMU_ALIVE);
    fmu_reset(c);
    return FMI_NAME(OK);
}

// ---- states ------------------------------------------------------------------------------------

FMI_NAME(Status) FMI_STATE(Get, )(FMI_INSTANCE c, void** state)
{
    REQUIRE(FMU_ALIVE);
    return (FMI_NAME(Status))fmu_get_state(c, state, __func__);
}

FMI_NAME(Status) FMI_STATE(Set, )(FMI_INSTANCE c, void* state)
{
    REQUIRE(FMU_ALIVE);
    return (FMI_NAME(Status))fmu_set_state(c, state, __func__);
}

FMI_NAME(Status) FMI_STATE(Free, )(FMI_INSTANCE c, void** state)
{
    if (state) {
        free(*state);
        *state = NULL;
    }
    return FMI_NAME(OK);
}

FMI_NAME(Status) FMI_STATE(Serialized, Size)(FMI_INSTANCE c, void* state, size_t* size)
{
    REQUIRE(FMU_ALIVE);
    *size = fmu_state_bytes(c, state);
    return FMI_NAME(OK);
}

FMI_NAME(Status) FMI_STATE(Serialize, )(FMI_INSTANCE c, void* state, FMI_BYTE bytes[], size_t size)
{
    REQUIRE(FMU_ALIVE);
    return (FMI_NAME(Status))fmu_serialize(c, state, (uint8_t*)bytes, size, __func__);
}

FMI_NAME(Status) FMI_DESERIALIZE(FMI_INSTANCE c, const FMI_BYTE bytes[], size_t size, void** state)
{
    REQUIRE(FMU_ALIVE);
    return (FMI_NAME(Status))fmu_deserialize(c, (const uint8_t*)bytes, size, state, __func__);
}

// ---- Model Exchange ----------------------------------------------------------------------------

// Modes that only instances for Model Exchange ever enter, and those that they share.
enum {
    MODES = FMU_EVENT | FMU_CONTINUOUS,
    READABLE = FMU_INITIALIZATION | MODES | FMU_TERMINATED | FMU_FAILED,
};
#define REQUIRE_EXCHANGE(phases) REQUIRE(c && ((fmu*)c)->exchange ? (phases) : 0)

FMI_NAME(Status) FMI_NAME(EnterContinuousTimeMode)(FMI_INSTANCE c)
{
    REQUIRE_EXCHANGE(FMU_EVENT);
    return (FMI_NAME(Status))fmu_leave_events(c, FMU_CONTINUOUS, __func__);
}

FMI_NAME(Status)
FMI_NAME(CompletedIntegratorStep)
(FMI_INSTANCE c, FMI_BOOLEAN noSetFMUStatePriorToCurrentPoint, FMI_BOOLEAN* enterEventMode,
 FMI_BOOLEAN* terminateSimulation)
{
    REQUIRE_EXCHANGE(FMU_CONTINUOUS);
    bool event, terminate;
    const int status = fmu_completed(c, &event, &terminate);
    *enterEventMode = event;
    *terminateSimulation = terminate;
    return (FMI_NAME(Status))status;
}

FMI_NAME(Status) FMI_NAME(SetTime)(FMI_INSTANCE c, double time)
{
    REQUIRE_EXCHANGE(MODES);
    return (FMI_NAME(Status))fmu_set_time(c, time, __func__);
}

FMI_NAME(Status) FMI_NAME(SetContinuousStates)(FMI_INSTANCE c, const double x[], size_t nx)
{
    REQUIRE_EXCHANGE(FMU_CONTINUOUS);
    return (FMI_NAME(Status))fmu_set_continuous(c, x, nx, __func__);
}

FMI_NAME(Status) FMI_DERIVATIVES(FMI_INSTANCE c, double derivatives[], size_t nx)
{
    REQUIRE_EXCHANGE(READABLE);
    return (FMI_NAME(Status))fmu_get_slopes(c, derivatives, nx, __func__);
}

FMI_NAME(Status) FMI_NAME(GetEventIndicators)(FMI_INSTANCE c, double indicators[], size_t ni)
{
    REQUIRE_EXCHANGE(READABLE);
    return (FMI_NAME(Status))fmu_get_indicators(c, indicators, ni, __func__);
}

FMI_NAME(Status) FMI_NAME(GetContinuousStates)(FMI_INSTANCE c, double x[], size_t nx)
{
    REQUIRE_EXCHANGE(READABLE);
    return (FMI_NAME(Status))fmu_get_continuous(c, x, nx, __func__);
}

FMI_NAME(Status)
FMI_NAME(GetNominalsOfContinuousStates)(FMI_INSTANCE c, double nominals[], size_t nx)
{
    REQUIRE_EXCHANGE(FMU_INSTANTIATED | READABLE);
    return (FMI_NAME(Status))fmu_get_nominals(c, nominals, nx, __func__);
}
