// What a test on a board needs of it, and what the same test has on the host.
#pragma once
#include <stdint.h>

void board_write(const char* text); // as it is
void board_number(double x);        // its bits in hexadecimal, and a blank
uint32_t board_ticks(void);         // falls by one every BOARD_TICK instructions, 24 bits
uint32_t board_stack(void);         // bytes of it that were used at most
void board_exit(int status);
enum { BOARD_TICK = 40 };
#define BOARD_UNUSED 0xa5a5a5a5u // what the stack is filled with on a board
