#include "board.h"

#include <string.h>

void board_number(double x)
{
    char text[18];
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    for (int i = 0; i < 16; i++) {
        text[i] = "0123456789abcdef"[bits >> (60 - 4 * i) & 15];
    }
    text[16] = ' ';
    text[17] = 0;
    board_write(text);
}
