// Netlists made by hand, the benchmark circuits of Rodriguez 2021 ch. 3, and their error metric.
#pragma once
#include "cardan/circuit.h"
#include "check.h"

#include <stdio.h>

#define BUILD_PARTS 400
#define BUILD_NAMES 8000

typedef struct build {
    crd_netlist n;
    crd_part parts[BUILD_PARTS];
    char names[BUILD_NAMES];
    int32_t used;
    char node_names[BUILD_PARTS][8];
    const char* nodes[BUILD_PARTS];
    crd_waveform waves[16];
    crd_diode_model diodes[2];
    crd_switch_model switches[2];
    crd_circuit_input inputs[2];
} build;

static inline void build_init(build* b)
{
    memset(b, 0, sizeof *b);
    for (int i = 0; i < BUILD_PARTS; i++) {
        snprintf(b->node_names[i], sizeof b->node_names[i], "%d", i);
        b->nodes[i] = b->node_names[i];
    }
    b->n.parts = b->parts;
    b->n.names = b->names;
    b->n.nodes = b->nodes;
    b->n.node_count = 1;
    b->n.waves = b->waves;
    b->n.diodes = b->diodes;
    b->n.switches = b->switches;
    b->n.inputs = b->inputs;
    b->n.temperature = 300.15;
}

static inline crd_part* build_part(build* b, crd_part_kind kind, const char* name, int32_t from,
                                   int32_t to, double value)
{
    crd_part* p = &b->parts[b->n.part_count++];
    *p = (crd_part){.kind = (uint8_t)kind,
                    .nodes = {from, to, -1, -1},
                    .refs = {-1, -1},
                    .value = value,
                    .index = -1,
                    .name = b->used};
    const int32_t top = from > to ? from : to;
    if (top >= b->n.node_count) { b->n.node_count = top + 1; }
    b->used += snprintf(b->names + b->used, sizeof b->names - (size_t)b->used, "%s", name) + 1;
    return p;
}

static inline crd_part* build_storage(build* b, crd_part_kind kind, const char* name, int32_t from,
                                      int32_t to, double value, double ic)
{
    crd_part* p = build_part(b, kind, name, from, to, value);
    p->has_ic = true;
    p->ic = ic;
    return p;
}

static inline crd_part* build_source(build* b, crd_part_kind kind, const char* name, int32_t from,
                                     int32_t to, crd_waveform w)
{
    crd_part* p = build_part(b, kind, name, from, to, 0);
    p->index = b->n.wave_count;
    b->waves[b->n.wave_count++] = w;
    return p;
}

static inline crd_waveform build_dc(double v)
{
    return (crd_waveform){.kind = CRD_WAVE_DC, .v = {v}};
}

static inline crd_waveform build_sine(void) // of all three electric benchmarks
{
    return (crd_waveform){.kind = CRD_WAVE_SIN, .v = {0, 100, 5}};
}

static inline int32_t build_find(const build* b, const char* name)
{
    for (int32_t i = 0; i < b->n.part_count; i++) {
        if (strcmp(b->names + b->parts[i].name, name) == 0) { return i; }
    }
    return -1;
}

// Nodes: 1 source, 2 what the thesis calls 3.
static inline void build_rlc(build* b)
{
    build_init(b);
    build_source(b, CRD_PART_VOLTAGE, "V1", 1, 0, build_sine());
    build_part(b, CRD_PART_RESISTOR, "R1", 1, 2, 10);
    build_storage(b, CRD_PART_INDUCTOR, "L1", 2, 0, 0.1, 0);
    build_storage(b, CRD_PART_CAPACITOR, "C1", 2, 0, 0.4, 0);
    build_storage(b, CRD_PART_CAPACITOR, "C2", 2, 0, 0.2, 0);
}

// Loop i has nodes 2i (before L) and 2i + 1 (before C).
static inline void build_scalable(build* b, int loops)
{
    build_init(b);
    build_source(b, CRD_PART_VOLTAGE, "V1", 1, 0, build_sine());
    for (int i = 1; i <= loops; i++) {
        char name[16];
        snprintf(name, sizeof name, "R%d", i);
        build_part(b, CRD_PART_RESISTOR, name, i == 1 ? 1 : 2 * i - 2, 2 * i, 10);
        snprintf(name, sizeof name, "L%d", i);
        build_storage(b, CRD_PART_INDUCTOR, name, 2 * i, 2 * i + 1, 0.1, 0);
        snprintf(name, sizeof name, "C%d", i);
        build_storage(b, CRD_PART_CAPACITOR, name, 2 * i + 1, 0, 0.1, 0);
    }
}

// Nodes: 1 source, 2 load +, 3 between R and L, 4 load -.
static inline void build_rectifier(build* b)
{
    static const int32_t ends[4][2] = {{1, 2}, {0, 2}, {4, 1}, {4, 0}};
    build_init(b);
    b->diodes[0] = (crd_diode_model){.name = "dm",
                                     .is = 1e-15,
                                     .n = 1.5,
                                     .rs = 1e-3,
                                     .vt = 1.380649e-23 * 300 / 1.602176634e-19};
    b->n.diode_count = 1;
    build_source(b, CRD_PART_VOLTAGE, "V1", 1, 0, build_sine());
    for (int i = 0; i < 4; i++) {
        char name[4] = {'D', (char)('1' + i)};
        build_part(b, CRD_PART_DIODE, name, ends[i][0], ends[i][1], 0)->index = 0;
    }
    build_part(b, CRD_PART_RESISTOR, "R1", 2, 3, 10);
    build_storage(b, CRD_PART_INDUCTOR, "L1", 3, 4, 0.1, 0);
}

// Temperatures above those of the environment, 300 K, which is ground. The air gap is frozen.
static inline void build_motor(build* b)
{
    static const struct {
        const char* name;
        int32_t from, to;
        double value;
    } r[] = {{"Raxis1", 14, 12, 1},       {"Raxis2", 15, 13, 1},     {"Rinner", 1, 2, 0.025},
             {"Router", 2, 3, 0.015},     {"Rairgap", 3, 4, 0.2063}, {"Rtooth1", 4, 5, 0.025},
             {"Rtang", 5, 6, 0.01},       {"Rtooth2", 6, 9, 0.01},   {"Rcopper", 7, 8, 0.001},
             {"Rwire", 8, 9, 0.05},       {"Ryoke", 9, 10, 0.0025},  {"Rhousing1", 10, 12, 0.25},
             {"Rhousing2", 10, 13, 0.25}, {"Rwater", 10, 11, 0.001}, {"Rplate1", 12, 0, 0.5},
             {"Rplate2", 13, 0, 0.5},     {"Rbearing1", 1, 14, 3},   {"Rbearing2", 1, 15, 3}},
      c[] = {{"Caxis", 1, 0, 2000},   {"Crotor", 2, 0, 5000},    {"Ccopper", 7, 0, 2000},
             {"Cstator", 9, 0, 1500}, {"Chousing", 10, 0, 3000}, {"Cplate1", 12, 0, 300},
             {"Cplate2", 13, 0, 300}, {"Cbearing1", 14, 0, 500}, {"Cbearing2", 15, 0, 500}},
      q[] = {{"Irotor", 0, 2, 150},
             {"Icopper", 0, 7, 2000},
             {"Itooth", 0, 5, 200},
             {"Ibearing1", 0, 14, 50},
             {"Ibearing2", 0, 15, 50}};
    build_init(b);
    for (size_t i = 0; i < sizeof r / sizeof *r; i++) {
        build_part(b, CRD_PART_RESISTOR, r[i].name, r[i].from, r[i].to, r[i].value);
    }
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        build_storage(b, CRD_PART_CAPACITOR, c[i].name, c[i].from, c[i].to, c[i].value, 0);
    }
    for (size_t i = 0; i < sizeof q / sizeof *q; i++) {
        build_source(b, CRD_PART_CURRENT, q[i].name, q[i].from, q[i].to, build_dc(q[i].value));
    }
    build_source(b, CRD_PART_VOLTAGE, "Vwater", 11, 0, build_dc(20));
}

// ---- references --------------------------------------------------------------------------------

typedef struct reference {
    double t[1010], y[1010], z[1010]; // two monitored signals
    int count;
} reference;

// Columns of a CSV file; a row at t = 0 is left out: the metric has no sample there.
static inline void reference_load(reference* r, const char* file, int y, int z)
{
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/circuit/data/%s", TEST_SOURCE_DIR, file);
    FILE* f = fopen(path, "r");
    if (!f) { fail_msg("%s: cannot be read", path); }
    r->count = 0;
    check(fgets(line, sizeof line, f) != NULL);
    while (fgets(line, sizeof line, f)) {
        double v[16] = {0};
        char* at = line;
        for (int i = 0; i < 16 && *at && *at != '\n'; i++) {
            v[i] = strtod(at, &at);
            if (*at == ',') { at++; }
        }
        if (v[0] == 0) { continue; }
        check(r->count < 1010);
        r->t[r->count] = v[0];
        r->y[r->count] = v[y];
        r->z[r->count++] = v[z];
    }
    fclose(f);
}

// ---- running -----------------------------------------------------------------------------------

typedef struct watch { // what the tables of the thesis monitor
    int32_t node, minus, part;
} watch;

typedef struct trial {
    crd_circuit_method method;
    double step;
    crd_circuit_start start;
    double y, z; // expected errors
} trial;

static inline crd_circuit* run_begin(crd_context* ctx, const build* b, const trial* t)
{
    crd_circuit_options o = crd_circuit_defaults();
    o.method = t->method;
    o.step = t->step;
    o.start = t->start;
    o.form = CRD_FORM_DAE;
    crd_circuit* c = NULL;
    if (crd_circuit_create(ctx, &b->n, &o, &c) < 0 || crd_circuit_begin(c, 0) < 0) {
        fail_msg("%s", crd_error_text(ctx));
    }
    return c;
}

static inline void run_step(crd_context* ctx, crd_circuit* c)
{
    if (crd_circuit_step(c) < 0) { fail_msg("%s", crd_error_text(ctx)); }
}

static inline double run_difference(const crd_circuit* c, const watch* w)
{
    return crd_circuit_voltage(c, w->node) - crd_circuit_voltage(c, w->minus);
}

// sqrt(mean of squares) over the samples of the reference
static inline void run_errors(crd_context* ctx, const build* b, const reference* r, const watch* w,
                              const trial* t, double out[2])
{
    crd_circuit* c = run_begin(ctx, b, t);
    double y = 0, z = 0;
    long k = 0;
    for (int i = 0; i < r->count; i++) {
        for (const long to = lround(r->t[i] / t->step); k < to; k++) {
            run_step(ctx, c);
        }
        const double dy = run_difference(c, w) - r->y[i];
        const double dz = crd_circuit_current(c, w->part) - r->z[i];
        y += dy * dy;
        z += dz * dz;
    }
    crd_circuit_destroy(c);
    out[0] = sqrt(y / r->count);
    out[1] = sqrt(z / r->count);
}

static inline void run_trials(crd_context* ctx, const build* b, const reference* r, const watch* w,
                              const trial* t, size_t count, double relative)
{
    for (size_t i = 0; i < count; i++) {
        double e[2];
        run_errors(ctx, b, r, w, &t[i], e);
        if (!(fabs(e[0] / t[i].y - 1) <= relative && fabs(e[1] / t[i].z - 1) <= relative)) {
            fail_msg("trial %zu (method %d, step %g): errors %.6g, %.6g, expected %.6g, %.6g", i,
                     (int)t[i].method, t[i].step, e[0], e[1], t[i].y, t[i].z);
        }
    }
}
