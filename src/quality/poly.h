// Shared inside the module.
#pragma once
#include "cardan/quality.h"

// Data of a signal at one place: value and derivatives up to count - 1.
typedef struct crdi_node {
    double s;
    const double* y;
    int count;
} crdi_node;

// The polynomial through all of them (Hermite, Lagrange and what lies between), at most
// CRD_POLY_SIZE data in all, places distinct.
crd_poly crdi_poly_through(int n, const crdi_node* nodes);
