// A room with a heater that a thermostat switches with hysteresis: tau T' = ambient - T + on *
// rise. Below set - band it goes on, above set + band off: two indicators. T moves exponentially
// between the two limits, which gives the switching times.
#include "numerics.h"

typedef struct room {
    double T, slope;
    double ambient, rise, tau, set, band;
    bool on;
    int32_t switches;
} room;

static crd_model_status initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    room* r = self;
    if (!(r->tau > 0 && r->band > 0)) {
        host->log(host->user, CRD_MODEL_ERROR, "expected tau > 0 and band > 0");
        return CRD_MODEL_ERROR;
    }
    r->on = r->T < r->set - r->band;
    return CRD_MODEL_OK;
}

static crd_model_status derivatives(void* self, double t)
{
    (void)t;
    room* r = self;
    r->slope = (r->ambient - r->T + (r->on ? r->rise : 0)) / r->tau;
    return CRD_MODEL_OK;
}

static void outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static void indicators(void* self, double t, double* z)
{
    (void)t;
    const room* r = self;
    z[0] = r->T - (r->set - r->band);
    z[1] = r->set + r->band - r->T;
}

static crd_model_status event(void* self, const crd_model_host* host, double t, double* next)
{
    (void)host;
    (void)t;
    room* r = self;
    *next = INFINITY;
    const bool on = r->on ? r->T < r->set + r->band : r->T <= r->set - r->band;
    if (on != r->on) { r->switches++; }
    r->on = on;
    return CRD_MODEL_OK;
}

static double partial(const void* self, int unknown, int known)
{
    const room* r = self;
    return unknown == 1 && known == 0 ? -1 / r->tau : unknown == known;
}

static const crd_model_variable rows[] = {
    {ROW_REAL(room, T, "T", CRD_OUTPUT, "degC"), .start = 15, .exact = true, .nominal = 20},
    {ROW_DERIVATIVE(room, slope, "T", "K/s"), .depends = "T"},
    {.name = "on",
     .type = CRD_BOOLEAN,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(room, on),
     .depends = ""},
    {.name = "switches",
     .type = CRD_INT32,
     .causality = CRD_OUTPUT,
     .variability = CRD_DISCRETE,
     .offset = offsetof(room, switches),
     .exact = true,
     .depends = ""},
    {ROW_PARAMETER(room, ambient, "ambient", 10, "degC")},
    {ROW_PARAMETER(room, rise, "rise", 20, "K"), .description = "what the heater adds in the end"},
    {ROW_PARAMETER(room, tau, "tau", 600, "s")},
    {ROW_PARAMETER(room, set, "set", 20, "degC")},
    {ROW_PARAMETER(room, band, "band", 0.5, "K"), .description = "half of the hysteresis"},
};

const crd_model crd_model_thermostat = {
    .name = "thermostat",
    .description = "room and thermostat with hysteresis: two event indicators",
    .size = sizeof(room),
    ROWS(rows),
    .default_step = 5,
    .default_stop = 3600,
    .has_events = true,
    .initialize = initialize,
    .outputs = outputs,
    .event = event,
    .derivatives = derivatives,
    .indicator_count = 2,
    .indicators = indicators,
    .partial = partial,
};
