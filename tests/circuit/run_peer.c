// run_peer NETLIST OUT FORM METHOD STEP RELATIVE: runs a netlist's .tran and writes what a peer is
// compared with: every node voltage and the currents of V, L, E, H and B. FORM: auto, dae, nodal;
// METHOD: bdf1 bdf2 bdf3 tr trbdf2 gauss2 gauss4. RELATIVE 0: fixed steps of STEP, else steps as
// large as that accuracy allows, the first of them STEP.
// run_peer NETLIST check: only reads it and makes the circuit.
// OUT: one line "time v(a) i(l1) ...", then rows of double. Exit code 3: the netlist is refused.
#include "cardan/circuit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int lookup(const char* word, const char* const* words)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(word, words[i]) == 0) { return i; }
    }
    fprintf(stderr, "run_peer: \"%s\"?\n", word);
    exit(2);
}

static bool has_current(const crd_part* p)
{
    switch (p->kind) {
    case CRD_PART_VOLTAGE:
    case CRD_PART_INDUCTOR:
    case CRD_PART_VCVS:
    case CRD_PART_CCVS:
    case CRD_PART_B_VOLTAGE:
        return true;
    default:
        return false;
    }
}

static void put_names(const crd_netlist* n, FILE* f)
{
    fputs("time", f);
    for (int32_t i = 1; i < n->node_count; i++) {
        fprintf(f, " v(%s)", n->nodes[i]);
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        if (has_current(&n->parts[i])) { fprintf(f, " i(%s)", n->names + n->parts[i].name); }
    }
    fputc('\n', f);
}

static void put_row(const crd_netlist* n, const crd_circuit* c, FILE* f)
{
    double x = crd_circuit_time(c);
    fwrite(&x, sizeof x, 1, f);
    for (int32_t i = 1; i < n->node_count; i++) {
        x = crd_circuit_voltage(c, i);
        fwrite(&x, sizeof x, 1, f);
    }
    for (int32_t i = 0; i < n->part_count; i++) {
        if (!has_current(&n->parts[i])) { continue; }
        x = crd_circuit_current(c, i);
        fwrite(&x, sizeof x, 1, f);
    }
}

static crd_status run(const crd_netlist* n, crd_circuit* c, double step, double relative, FILE* f)
{
    crd_status st = crd_circuit_begin(c, 0);
    if (st < 0) { return st; }
    put_row(n, c, f);
    if (relative > 0) {
        crd_circuit_control k = crd_circuit_control_defaults();
        k.relative = relative;
        k.voltage *= relative / 1e-4;
        k.current *= relative / 1e-4;
        k.largest = n->tran_step / 2;
        while (crd_circuit_time(c) < n->tran_stop && st >= 0) {
            st = crd_circuit_advance(c, n->tran_stop, &k);
            put_row(n, c, f);
        }
        const crd_circuit_counts counts = crd_circuit_get_counts(c);
        printf("steps %lld rejected %lld iterations %lld events %lld\n", (long long)counts.steps,
               (long long)counts.rejected, (long long)counts.iterations, (long long)counts.events);
        return st;
    }
    const long steps = lround(n->tran_stop / step);
    for (long i = 0; i < steps && st >= 0; i++) {
        st = crd_circuit_step(c);
        put_row(n, c, f);
    }
    return st;
}

int main(int argc, char** argv)
{
    static const char* const forms[] = {"auto", "dae", "nodal", NULL};
    static const char* const methods[] = {"bdf1",   "bdf2",   "bdf3",   "tr", "carried",
                                          "trbdf2", "gauss2", "gauss4", NULL};
    const bool check = argc == 3 && strcmp(argv[2], "check") == 0;
    if (argc != 7 && !check) {
        fputs("usage: run_peer NETLIST OUT FORM METHOD STEP RELATIVE\n", stderr);
        return 2;
    }
    crd_circuit_options o = crd_circuit_defaults();
    if (!check) {
        o.form = (crd_circuit_form)lookup(argv[3], forms);
        o.method = (crd_circuit_method)lookup(argv[4], methods);
    }
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = NULL;
    crd_circuit* c = NULL;
    FILE* f = fopen(check ? "/dev/null" : argv[2], "wb");
    if (!ctx || !f) { return 2; }
    int code = 3;
    if (crd_netlist_load(ctx, argv[1], NULL, &n) >= 0) {
        o.step = check ? n->tran_step : strtod(argv[5], NULL);
        if (crd_circuit_create(ctx, n, &o, &c) >= 0) { code = 0; }
    }
    if (!check && code == 0) {
        put_names(n, f);
        code = run(n, c, o.step, strtod(argv[6], NULL), f) < 0 ? 1 : 0;
    }
    if (code) { fprintf(stderr, "%s\n", crd_error_text(ctx)); }
    crd_circuit_destroy(c);
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
    return fclose(f) == 0 ? code : 2;
}
