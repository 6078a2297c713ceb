// What the files of the exporter share.
#pragma once
#include "circuit/dae.h"
#include "shared/base.h"
#include "shared/base_c.h"
#include "shared/circuit_emit.h"

typedef struct crdi_emit {
    crdi_dae* d;
    const crd_netlist* n;
    const crdi_emit_options* opt;
    crd_arena* arena;
    crd_text* out;
    int32_t* varying; // (entries of j) which of the numbers that move it is; -1: constant
    size_t entry;     // of j, while laws are written
    int32_t moving;   // numbers of j that move
    bool tables;      // expressions look up tables
} crdi_emit;

void crdi_emit_doubles(crd_text* out, const char* name, const double* v, size_t count, bool real);
void crdi_emit_integers(crd_text* out, const char* name, const int32_t* v, size_t count);
// What the text from `from` on computes when it runs once.
crdi_emit_cost crdi_emit_count(const crd_text* text, size_t from);

// emit_laws.c: functions of the file
void crdi_emit_tables(crdi_emit* e);   // waveforms, expressions
void crdi_emit_laws(crdi_emit* e);     // [Phi; b] and what moves of its derivative
void crdi_emit_rates(crdi_emit* e);    // b alone
void crdi_emit_limits(crdi_emit* e);   // diodes: where they are linear, how far off
void crdi_emit_switches(crdi_emit* e); // positions
void crdi_emit_outputs(crdi_emit* e);

// emit_text.c: what is the same in all files that need it
extern const char crdi_emit_waves[], crdi_emit_operators[], crdi_emit_diode[];
