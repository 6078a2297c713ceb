// Rodriguez Frade 2021, chapter 4: digital twins. Here what the parts share, and the entry.
#include "reproduce/rodriguez2021_ch4.h"
#include "reproduce/papers.h"
#include "shared/base_system.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

// ---- components --------------------------------------------------------------------------------

crd_status crdi_component_init(crdi_component* c, crd_context* ctx, const char* text, int64_t rows)
{
    *c = (crdi_component){.ctx = ctx, .rows = rows};
    crd_arena_init(&c->arena, ctx);
    crd_status st = crd_netlist_parse(ctx, text, strlen(text), "component", NULL, &c->n);
    if (st < 0) { return st; }
    crd_circuit* sim = NULL;
    crd_circuit_options o = crd_circuit_defaults();
    o.method = CRD_METHOD_GAUSS4;
    o.step = CRDI_CH4_STEP;
    c->outputs = c->n->output_count;
    const size_t outputs = (size_t)c->outputs;
    c->truth = crdi_arena_new(&c->arena, (size_t)rows * outputs, sizeof *c->truth);
    if (!c->truth) { return CRD_E_MEMORY; }
    st = crd_circuit_create(ctx, c->n, &o, &sim);
    if (st >= 0) { st = crd_circuit_begin(sim, 0); }
    for (int64_t i = 0; i < rows && st >= 0; i++) {
        st = crd_circuit_step(sim);
        for (int j = 0; j < c->outputs && st >= 0; j++) {
            c->truth[i * c->outputs + j] = crd_circuit_get_output(sim, j);
        }
    }
    crd_circuit_destroy(sim);
    return st;
}

void crdi_component_clear(crdi_component* c)
{
    crd_netlist_destroy(c->n);
    crd_arena_clear(&c->arena);
}

static double uniform(uint64_t* state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) / 9007199254740992.0;
}

// Normal noise on all of them: SplitMix64, pairs by Box and Muller
static void add_noise(uint64_t seed, double sd, int64_t count, double* y)
{
    for (int64_t i = 0; i < count; i += 2) {
        const double u = uniform(&seed), v = uniform(&seed);
        const double r = sd * sqrt(-2 * log(u)), a = 6.283185307179586 * v;
        y[i] += r * cos(a);
        if (i + 1 < count) { y[i + 1] += r * sin(a); }
    }
}

double* crdi_component_measure(crdi_component* c, uint64_t seed, int first, int count)
{
    const int64_t all = c->rows * count;
    double* y = crdi_arena_new(&c->arena, (size_t)all, sizeof *y);
    if (!y) { return NULL; }
    for (int64_t i = 0; i < c->rows; i++) {
        memcpy(y + i * count, c->truth + i * c->outputs + first, (size_t)count * sizeof *y);
    }
    add_noise(seed, CRDI_CH4_SD, all, y);
    return y;
}

// ---- twins -------------------------------------------------------------------------------------

void crdi_ch4_unknown(const crd_netlist* n, const char* const* names, const double* starts,
                      double sd, int count, int32_t* parts, crd_twin_parameter* p)
{
    for (int i = 0; i < count; i++) {
        parts[i] = crd_netlist_part(n, names[i]);
        p[i] = (crd_twin_parameter){.group = {.name = names[i], .parts = &parts[i], .count = 1},
                                    .start = starts ? starts[i] : (double)NAN,
                                    .sd = sd};
    }
}

crd_twin_spec crdi_ch4_spec(const crd_twin_sensor* sensors, int count)
{
    crd_twin_spec s = crd_twin_defaults();
    s.sensors = sensors;
    s.sensor_count = count;
    s.step = CRDI_CH4_STEP;
    return s;
}

crd_status crdi_ch4_tune(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                         crd_twin_data data, crd_tune_how how, int most, crd_arena* arena,
                         crd_tune_result* out)
{
    crd_tune_options o = crd_tune_defaults();
    o.how = how;
    o.max_iterations = most;
    return crd_twin_tune(ctx, n, spec, &data, &o, arena, out);
}

// CPU time of all rows with a filter, s, the least of some repetitions.
static crd_status cost_of(crd_context* ctx, const crd_netlist* n, const crd_twin_spec* spec,
                          const double* y, int64_t rows, double* seconds)
{
    enum { REPEATS = 5 };
    crd_twin* w = NULL;
    crd_status st = crd_twin_create(ctx, n, spec, &w);
    *seconds = HUGE_VAL;
    for (int k = 0; k < REPEATS && st >= 0; k++) {
        st = crd_twin_begin(w, 0);
        const int64_t begin = crdi_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        for (int64_t i = 0; i < rows && st >= 0; i++) {
            st = crd_twin_step(w, y + i * spec->sensor_count);
        }
        *seconds = fmin(*seconds, 1e-9 * (double)(crdi_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin));
    }
    crd_twin_destroy(w);
    return st;
}

crd_status crdi_ch4_compare_cost(crdi_reproduction* r, const char* id, const char* subject,
                                 const crd_netlist* n, const crd_twin_spec* spec, const double* y,
                                 double laptop, double raspberry)
{
    crd_status st;
    crd_twin_spec s = *spec;
    double cost[2];
    char name[64], remark[128];
    for (int k = 0; k < 2; k++) {
        s.filter = k ? CRD_TWIN_AUTO : CRD_TWIN_THESIS;
        CRD_TRY(cost_of(r->ctx, n, &s, y, CRDI_CH4_ROWS, &cost[k]));
    }
    snprintf(name, sizeof name, "%s.thesis", id);
    snprintf(remark, sizeof remark, "published of its laptop; Raspberry Pi 4 %g ms", raspberry);
    CRD_TRY(crdi_ch4_show(r, name, subject, "time of 5 s with the published filter, ms", laptop,
                          1e3 * cost[0], remark));
    snprintf(name, sizeof name, "%s.recommended", id);
    snprintf(remark, sizeof remark, "%.3g times as fast as the published filter here",
             cost[0] / cost[1]);
    CRD_TRY(crdi_ch4_show(r, name, subject, "time of 5 s with the recommended filter, ms", laptop,
                          1e3 * cost[1], remark));
fail:
    return st;
}

// ---- rows --------------------------------------------------------------------------------------

crd_status crdi_ch4_claim(crdi_reproduction* r, const char* id, const char* subject, crdi_claim c)
{
    char text[256];
    snprintf(text, sizeof text, "%s: %s", subject, c.what);
    c.id = id;
    c.what = text;
    return crdi_claim_add(r, &c);
}

crd_status crdi_ch4_show(crdi_reproduction* r, const char* id, const char* subject,
                         const char* what, double published, double ours, const char* remark)
{
    return crdi_ch4_claim(r, id, subject,
                          CRDI_SHOWN(published, ours, .what = what, .remark = remark));
}

crd_status crdi_reproduce_rodriguez2021_ch4(crdi_reproduction* r)
{
    crd_status st;
    r->paper = "Rodriguez Frade 2021: Multiphysics simulation and model-based system testing of "
               "automotive e-powertrains, chapter 4";
    CRD_TRY(crdi_ch4_scenarios(r));
    if (!r->times) { CRD_TRY(crdi_ch4_inverter(r)); }
    CRD_TRY(crdi_ch4_junction(r));
    if (r->times) { return CRD_OK; }
    CRD_TRY(crdi_ch4_observe(r));
fail:
    return st;
}
