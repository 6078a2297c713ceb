// Plants whose output answers to commands, for the tests of elements that know them: written
// without anything of the element, stepped at 1 ms, sampled each macro step of 10 ms.
#pragma once
#include <math.h>
#include <stdlib.h>

#include "coupling_test.h"

enum { PLANT_COMMANDS = 3, PLANT_INNER = 10 };
#define PLANT_STEP 0.01

typedef struct plant_run {
    int count, commands;
    double* y;                 // (count) without noise
    double* noisy;             // (count) as it is measured
    double* u[PLANT_COMMANDS]; // (count) as they act at the plant
    double* model;             // (count) of a model with gain and lags wrong, if one was asked for
    double range;
} plant_run;

typedef enum plant_kind {
    PLANT_ENGINE,    // pedal, gear, speed: manifold and ignition paths
    PLANT_MACHINE,   // set torque, speed, derating: limits
    PLANT_HYDRAULIC, // valve, load: integrating, saturating
    PLANT_WEAKENED,  // set torque, speed, voltage: the field is weakened at half of all speeds
} plant_kind;

// A command that is held for a while, then another; some of the changes are ramps.
typedef struct plant_driver {
    double value, target, rate, hold;
    double low, high, shortest, longest, slope; // slope 0: steps
} plant_driver;

static inline double drive(plant_driver* d, uint32_t* seed)
{
    d->hold -= PLANT_STEP;
    if (d->hold <= 0) {
        d->hold = d->shortest + (d->longest - d->shortest) * next_uniform(seed);
        d->target = d->low + (d->high - d->low) * next_uniform(seed);
        const bool step = d->slope == 0 || next_uniform(seed) < 0.5;
        d->rate = step ? INFINITY : d->slope * (d->high - d->low);
    }
    const double most = d->rate * PLANT_STEP, want = d->target - d->value;
    d->value += fabs(want) <= most ? want : want > 0 ? most : -most;
    return d->value;
}

static inline void lag(double* x, double to, double tau)
{
    *x += (to - *x) * (1 - exp(-0.001 / tau));
}

// Air fills the manifold in 110 ms, the torque follows it by the map; ignition cuts it while a gear
// is shifted, within 15 ms; friction and pumping with the speed.
static inline double engine_step(double* x, const double* u, double gain, double lags)
{
    const double pedal = u[0], shift = u[1], speed = u[2]; // 0 .. 1, 0 or 1, rad/s / 500
    lag(&x[0], 0.15 + 0.85 * pedal, 0.11 * lags);
    lag(&x[1], 1 - shift, 0.015 * lags);
    const double map = 230 * x[0] * (0.75 + 0.6 * speed - 0.55 * speed * speed);
    lag(&x[2], gain * map * x[1] - 25 - 20 * speed, 0.02 * lags);
    return x[2];
}

// Current within 8 ms; at speed the power limits it; when it is hot it is derated.
static inline double machine_step(double* x, const double* u, double gain, double lags)
{
    const double set = u[0], speed = u[1], derating = u[2];
    const double most = fmin(150, 120 / fmax(0.3, speed)) * (0.7 + 0.3 * derating);
    lag(&x[0], gain * fmax(-most, fmin(most, set)), 0.008 * lags);
    lag(&x[1], x[0] - 6 * speed, 0.004 * lags);
    return x[1];
}

// A machine that is driven to its limits: current by 4000 N.m/s at most and within 8 ms; above a
// quarter of the speed it has less than what is asked for half of the time; it gets warm by itself
// and is derated by up to a fifth, which no command says.
static inline double weakened_step(double* x, const double* u, double gain, double lags)
{
    const double set = u[0], speed = u[1], voltage = 0.8 + 0.3 * u[2];
    const double most = fmin(150, 60 * voltage / fmax(0.05, speed)) * (1 - 0.2 * x[2]);
    const double want = fmax(-most, fmin(most, set)),
                 change = (want - x[0]) * (1 - exp(-0.001 / (0.008 * lags)));
    x[0] += fmax(-4, fmin(4, change));
    lag(&x[1], gain * x[0] - 6 * speed, 0.004 * lags);
    lag(&x[2], x[0] * x[0] / 22500, 20);
    return x[1];
}

// A valve with 25 ms, the pressure behind it with 60 ms against a load that leaks by the root.
static inline double hydraulic_step(double* x, const double* u, double gain, double lags)
{
    const double valve = u[0], load = u[1];
    lag(&x[0], valve, 0.025 * lags);
    const double flow = x[0] * sqrt(fmax(0.05, 1.2 - (x[0] > 0 ? 1 : -1) * x[1] / 250));
    lag(&x[1], gain * 160 * flow + 40 * load, 0.06 * lags);
    return x[1];
}

static inline double plant_step(plant_kind kind, double* x, const double* u, double gain,
                                double lags)
{
    double y = 0;
    for (int i = 0; i < PLANT_INNER; i++) {
        y = kind == PLANT_ENGINE     ? engine_step(x, u, gain, lags)
            : kind == PLANT_MACHINE  ? machine_step(x, u, gain, lags)
            : kind == PLANT_WEAKENED ? weakened_step(x, u, gain, lags)
                                     : hydraulic_step(x, u, gain, lags);
    }
    return y;
}

// The commands of the whole run, then what the plant makes of them.
static inline void plant_commands(plant_run* p, plant_kind kind, uint32_t* seed)
{
    const bool machine = kind == PLANT_MACHINE || kind == PLANT_WEAKENED;
    plant_driver d[PLANT_COMMANDS] = {
        [0] = {.low = kind == PLANT_ENGINE ? 0
                      : machine            ? -150
                                           : -1,
               .high = machine ? 150 : 1,
               .shortest = 0.3,
               .longest = 2,
               .slope = 2},
        [1] = {.low = 0, .high = 1, .shortest = 1, .longest = 3, .slope = 1},
        [2] = {.low = 0.2, .high = 1, .shortest = 1, .longest = 4, .slope = 0.3}};
    double shift = 0, next_shift = 2;
    for (int n = 0; n < p->count; n++) {
        double u[PLANT_COMMANDS];
        for (int a = 0; a < PLANT_COMMANDS; a++) {
            u[a] = drive(&d[a], seed);
        }
        next_shift -= PLANT_STEP;
        if (next_shift <= 0) { next_shift = 2 + 4 * next_uniform(seed); }
        shift = next_shift < 0.12;
        if (kind == PLANT_ENGINE) { u[1] = shift; }
        if (kind == PLANT_MACHINE) { u[1] = fabs(u[1]); }
        for (int a = 0; a < p->commands; a++) {
            p->u[a][n] = u[a];
        }
    }
}

static inline plant_run plant_make(plant_kind kind, int count, uint32_t seed, double wrong)
{
    plant_run p = {.count = count, .commands = kind == PLANT_HYDRAULIC ? 2 : 3};
    const size_t n = (size_t)count;
    p.y = calloc(n, sizeof *p.y);
    p.noisy = calloc(n, sizeof *p.noisy);
    p.model = calloc(n, sizeof *p.model);
    for (int a = 0; a < PLANT_COMMANDS; a++) {
        p.u[a] = calloc(n, sizeof *p.u[a]);
    }
    plant_commands(&p, kind, &seed);
    double x[3] = {0}, m[3] = {0}, low = INFINITY, high = -INFINITY;
    for (int i = 0; i < count; i++) {
        const double u[PLANT_COMMANDS] = {p.u[0][i], p.u[1][i], p.u[2][i]};
        p.y[i] = x[kind == PLANT_ENGINE ? 2 : 1]; // what acts at i shows from the next sample on
        p.model[i] = m[kind == PLANT_ENGINE ? 2 : 1];
        plant_step(kind, x, u, 1, 1);
        plant_step(kind, m, u, 1 - wrong, 1 + wrong);
        low = fmin(low, p.y[i]);
        high = fmax(high, p.y[i]);
    }
    p.range = high - low;
    for (int i = 0; i < count; i++) {
        p.noisy[i] = p.y[i] + 0.003 * p.range * next_normal(&seed);
    }
    return p;
}

static inline void plant_clear(plant_run* p)
{
    free(p->y);
    free(p->noisy);
    free(p->model);
    for (int a = 0; a < PLANT_COMMANDS; a++) {
        free(p->u[a]);
    }
}
