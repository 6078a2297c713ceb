// The language of element descriptions: its words and keys, shared by reader and writer.
#pragma once
#include "coupling/coupling.h"

typedef enum crdi_word {
    CRDI_WORD_ZOH,
    CRDI_WORD_FOH,
    CRDI_WORD_EROS,
    CRDI_WORD_ERROR_SPACE,
    CRDI_WORD_MOMENT,
    CRDI_WORD_SAVITZKY_GOLAY,
    CRDI_WORD_WIENER,
    CRDI_WORD_LINEAR,
    CRDI_WORD_NETWORK,
    CRDI_WORD_RIDGE,
    CRDI_WORD_RLS,
    CRDI_WORD_AUTO,
    CRDI_WORD_COUNT
} crdi_word;

extern const char* const crdi_words[]; // (CRDI_WORD_COUNT), then NULL
extern const char* const crdi_distances[];
extern const char* const crdi_reconstructions[];
extern const char* const crdi_detections[];
extern const char* const crdi_reactions[];

/// How the algorithm of these options is called.
crdi_word crdi_word_of(const crd_coupling_options* o);
/// Names of all keys, ends with NULL; one that two algorithms share may come twice.
const char* crdi_element_key(int index);
/// Has `key` a meaning for the algorithm?
bool crdi_element_has_key(crdi_word word, const char* key);
/// Design with bands in x = omega dT. CRD_E_RANGE: a band lies above pi / dT.
crd_status crdi_element_design(const crd_element* e, double step, crd_design* out);
