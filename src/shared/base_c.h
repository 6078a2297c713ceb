/// Numbers, strings and names in C source, for those who export some.
#pragma once
#include "cardan/base.h"

/// A number with a point or an exponent, so that it is a double, INFINITY, NAN; a string in its
/// quotes.
#define CRDI_C_NUMBER 40 // bytes
const char* crdi_c_number(char out[CRDI_C_NUMBER], double x);
void crdi_c_string(crd_text* out, const char* text);
/// ".field = value, "; nothing for NULL.
void crdi_c_number_field(crd_text* out, const char* field, double x);
void crdi_c_string_field(crd_text* out, const char* field, const char* text);
/// Lines of an enum, PREFIX_KIND_NAME = index. Characters that no name of C has become '_', as in
/// x_y_2_ of "x.y[2]"; what would be there twice has its index behind it.
void crdi_c_indices(crd_text* out, const char* prefix, const char* kind,
                    const char* (*name)(const void* user, int i), const void* user, int count);
