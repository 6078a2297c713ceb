// Elements for the tests, from their formulas, and the readers of the reference tables.
#pragma once
#include <stdio.h>

#include "check.h"

#include "cardan/analysis.h"

typedef struct element {
    double a[32], A[32];
    crd_linear linear;
} element;

static inline void make_element(element* e, const char* algorithm, int k)
{
    *e = (element){.a = {1}};
    int m = 1;
    if (strcmp(algorithm, "FOH") == 0) {
        m = 2;
        e->a[0] = k + 1;
        e->a[1] = -k;
        e->A[0] = 1;
        e->A[1] = -1;
    } else if (strcmp(algorithm, "EROS") == 0) {
        m = k + 3;
        const double g = (k + 2.0) / (k + 1.0);
        e->A[0] += g; // indices coincide for k = 0
        e->A[1] -= 1;
        e->A[k + 1] -= g;
        e->A[k + 2] += 1;
        for (int i = 0; i < m; i++) {
            e->a[i] += k * e->A[i];
        }
    } else {
        check_text(algorithm, "ZOH");
    }
    e->linear = (crd_linear){.m = m, .k = k, .a = e->a, .A = e->A};
}

// The next line of a table, without its newline; false at the end.
static inline bool next_row(FILE* f, char* line, int size)
{
    if (!fgets(line, size, f)) { return false; }
    line[strcspn(line, "\r\n")] = 0;
    return true;
}

// Opens a table of tests/analysis/reference and passes over its head.
static inline FILE* open_table(const char* name)
{
    char path[512], line[512];
    snprintf(path, sizeof path, "%s/analysis/reference/%s", TEST_SOURCE_DIR, name);
    FILE* f = fopen(path, "r");
    if (!f) { fail_msg("%s does not open", path); }
    check(next_row(f, line, sizeof line));
    return f;
}
