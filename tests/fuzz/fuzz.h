// What a fuzz target defines. libFuzzer calls it with what it invents, replay.c with the corpus.
#pragma once
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
