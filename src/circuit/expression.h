// Expressions: read by recursive descent, folded, kept as a straight list of operations.
#pragma once
#include "cardan/circuit.h"
#include "circuit/scan.h"
#include "shared/base.h"

enum {
    CRDI_OPERATIONS_MOST = 4096, // of a compiled expression
    CRDI_DEPTH_MOST = 400 // of the grammar: 200 brackets, 200 parameters that need each other
};

enum { CRDI_ARGUMENTS_MOST = 8 };
typedef struct crdi_function { // .func name(a,b) {body}
    const char* name;
    crdi_word arguments[CRDI_ARGUMENTS_MOST];
    int count;
    crdi_scan body;
} crdi_function;

// Who knows the names. Both functions word their failures.
typedef struct crdi_names {
    void* user;
    // A parameter; `*found` false: there is none of this name.
    crd_status (*parameter)(void* user, const crdi_scan* at, crdi_word name, double* value,
                            bool* found);
    // v(a), v(a,b), i(a) or an input; NULL: only constants are allowed here, because of `why`.
    // An input that there is not: `*found` false.
    crd_status (*use)(void* user, const crdi_scan* at, crd_use_kind kind, crdi_word a, crdi_word b,
                      crd_use* out, bool* found);
    const crdi_function* (*function)(void* user, crdi_word name); // NULL: there is none
    const char* why;                                              // "a parameter"
    bool dry;           // only the grammar: every name is 1
    double temperature; // K
} crdi_names;

typedef struct crdi_operation crdi_operation;

// Working memory of the reader, used again and again; parameters read inside an expression lie on
// top of it.
typedef struct crdi_builder {
    crd_context* ctx;
    crdi_operation* nodes;
    size_t count, capacity;
    double* table; // points of table() and pwl()
    size_t table_count, table_capacity;
    int depth;
    int work; // inside functions, since the outermost expression began
} crdi_builder;

void crdi_builder_init(crdi_builder* b, crd_context* ctx);
void crdi_builder_clear(crdi_builder* b);

// Reads as far as it is an expression; what follows is the caller's. A constant gives `*e` NULL
// (unless `always`) and its `*value`. Uses are filled in by names->use and lie in the arena.
crd_status crdi_expression_read(crdi_builder* b, crdi_scan* s, const crdi_names* names,
                                crd_arena* arena, bool always, double* value, crd_expression** e);
crd_use* crdi_expression_use_list(crd_expression* e, int* count); // to be completed later
