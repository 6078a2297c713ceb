// Benchmark circuits, simulated: errors and CPU time.
#include "reproduce/circuits.h"
#include "shared/base_system.h"

#include <math.h>
#include <time.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

crd_status crdi_samples_init(const crdi_bench* b, crd_arena* arena, crdi_samples* out)
{
    const bool motor = b->problem == CRDI_MOTOR;
    const size_t count = (size_t)b->samples;
    *out = (crdi_samples){.count = b->samples};
    out->y = crdi_arena_new(arena, count, sizeof(double));
    out->z = crdi_arena_new(arena, count, sizeof(double));
    if (motor) { out->x = crdi_arena_new(arena, count, sizeof(double)); }
    return out->y && out->z && (out->x || !motor) ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_bench_solve(const crdi_bench* b, const crd_circuit_options* opt, crdi_samples* out)
{
    crd_status st = CRD_OK;
    crd_circuit* c = NULL;
    CRD_TRY(crd_circuit_create(b->ctx, b->n, opt, &c));
    CRD_TRY(crd_circuit_begin(c, 0));
    const long steps = lround(b->until / b->samples / opt->step); // per sample
    for (int i = 0; i < out->count; i++) {
        for (long k = 0; k < steps; k++) {
            CRD_TRY(crd_circuit_step(c));
        }
        out->y[i] = crd_circuit_voltage(c, b->node) - crd_circuit_voltage(c, b->minus);
        out->z[i] = crd_circuit_current(c, b->part);
        if (out->x) { out->x[i] = crd_circuit_voltage(c, b->yoke); }
    }
fail:
    crd_circuit_destroy(c);
    return st;
}

void crdi_samples_errors(const crdi_samples* a, const crdi_samples* exact, double error[2])
{
    double y = 0, z = 0;
    for (int i = 0; i < exact->count; i++) {
        y += (a->y[i] - exact->y[i]) * (a->y[i] - exact->y[i]);
        z += (a->z[i] - exact->z[i]) * (a->z[i] - exact->z[i]);
    }
    error[0] = sqrt(y / exact->count);
    error[1] = sqrt(z / exact->count);
}

// ---- time --------------------------------------------------------------------------------------

static unsigned flush_on(void)
{
#ifdef __SSE2__
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); // FTZ, DAZ
    return before;
#else
    return 0;
#endif
}

static void flush_back(unsigned before)
{
#ifdef __SSE2__
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

// What is monitored is read after every step: in real time somebody waits for it.
static crd_status block(const crdi_bench* b, crd_circuit* c, long steps, double* seconds)
{
    volatile double read = 0;
    const int64_t before = crdi_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < steps; i++) {
        const crd_status st = crd_circuit_step(c);
        if (st < 0) { return st; }
        read = crd_circuit_voltage(c, b->node) - crd_circuit_voltage(c, b->minus);
        read = crd_circuit_current(c, b->part);
    }
    (void)read;
    *seconds = 1e-9 * (double)(crdi_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before);
    return CRD_OK;
}

crd_status crdi_bench_cost(const crdi_bench* b, const crd_circuit_options* opt, double seconds,
                           double* out)
{
    crd_status st = CRD_OK;
    crd_circuit* c = NULL;
    const double all = round(b->until / opt->step);
    // Diodes take their turns ten times a second: half a period costs like any other.
    const long least = b->problem == CRDI_RECTIFIER ? lround(0.1 / opt->step) : 16;
    long steps = least;
    const unsigned before = flush_on();
    double taken = 0, best = INFINITY;
    CRD_TRY(crd_circuit_create(b->ctx, b->n, opt, &c));
    CRD_TRY(crd_circuit_begin(c, 0));
    CRD_TRY(block(b, c, least, &taken)); // and factors, caches
    for (;;) {
        CRD_TRY(block(b, c, steps, &taken));
        if (taken >= 0.25 * seconds || (double)steps >= all) { break; }
        steps = taken > 0 && taken < 0.125 * seconds ? 4 * steps : 2 * steps;
    }
    for (int i = 0; i < 3; i++) {
        best = fmin(best, taken / (double)steps);
        if (i < 2) { CRD_TRY(block(b, c, steps, &taken)); }
    }
    *out = best * all;
fail:
    flush_back(before);
    crd_circuit_destroy(c);
    return st;
}
