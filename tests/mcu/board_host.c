#include "board.h"

#include <stdio.h>
#include <stdlib.h>

void board_write(const char* text)
{
    fputs(text, stdout);
}

void board_exit(int status)
{
    exit(status);
}

uint32_t board_ticks(void)
{
    return 0;
}

uint32_t board_stack(void)
{
    return 0;
}
