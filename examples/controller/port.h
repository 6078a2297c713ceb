// What the program of the drive needs of its board.
#pragma once
#include "cardan/core.h"

#ifndef DRIVE_MEMORY
#define DRIVE_MEMORY (24 * 1024)
#endif

extern const crd_core_port board_port; // the five functions
void board_say(const char* text);
bool board_goes_on(const crd_core* core, const crd_dcp_slave* slave); // once in a turn
