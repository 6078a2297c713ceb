// States of runs in files (state.c): what is in one, before it is used.
#pragma once
#include "master/snapshot.h"

typedef struct crdi_state_text {
    const char* at; // not terminated
    size_t length;
} crdi_state_text;

/// Borrows from the bytes. Whoever has read one can rely on every length and every place in it.
typedef struct crdi_state_file {
    crdi_state_text version, print;
    double time;
    uint32_t end;
    int32_t end_member;
    bool wish;
    uint32_t rooms, unit_count;
    const char *sizes, *units, *words;
    size_t words_size;
} crdi_state_file;

/// Any bytes, without the seal. false: they are no state.
bool crdi_state_read(const char* data, size_t size, crdi_state_file* f);
uint64_t crdi_state_room(const crdi_state_file* f, uint32_t i); ///< bytes of a room
