// Arm's MPS2 boards as qemu has them: vectors, semihosting, SysTick. With -icount shift=0 an
// instruction takes 1 ns of the board's time, and SysTick counts at 25 MHz: a tick is 40
// instructions.
#include "board.h"

#include <stdbool.h>
#include <string.h>

extern uint32_t stack_bottom[], stack_top[], data_load[], data_start[], data_end[], bss_start[],
    bss_end[];
int main(void);

static int semihost(int operation, const void* argument)
{
    register int r0 __asm__("r0") = operation;
    register const void* r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_write(const char* text)
{
    (void)semihost(4, text); // SYS_WRITE0
}

void board_exit(int status)
{
    const uint32_t block[2] = {0x20026, (uint32_t)status}; // ADP_Stopped_ApplicationExit
    (void)semihost(0x20, block);                           // SYS_EXIT_EXTENDED
    for (;;) {}
}

uint32_t board_ticks(void)
{
    return *(volatile uint32_t*)0xe000e018;
}

uint32_t board_stack(void)
{
    const uint32_t* unused = stack_bottom;
    while (unused < stack_top && *unused == BOARD_UNUSED) {
        unused++;
    }
    return (uint32_t)(stack_top - unused) * 4;
}

static void reset(void)
{
    for (volatile uint32_t* p = stack_bottom; p < (uint32_t*)__builtin_frame_address(0) - 16; p++) {
        *p = BOARD_UNUSED;
    }
    *(volatile uint32_t*)0xe000ed88 |= 0xf << 20; // the FPU is on
    __asm__ volatile("dsb\n isb");
    memcpy(data_start, data_load, (size_t)((char*)data_end - (char*)data_start));
    memset(bss_start, 0, (size_t)((char*)bss_end - (char*)bss_start));
    *(volatile uint32_t*)0xe000e014 = 0xffffff; // SysTick, the processor's clock
    *(volatile uint32_t*)0xe000e018 = 0;
    *(volatile uint32_t*)0xe000e010 = 5;
    board_exit(main());
}

static void fault(void)
{
    board_write("fault\n");
    board_exit(99);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault};
