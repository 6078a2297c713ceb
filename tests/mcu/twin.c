// An exported twin run over the measurements of measured.h: estimates of every EVERY-th step as
// hexadecimal bits, then memory, allocations refused, and the most instructions of a step.
#include "twin.h"
#include "board.h"
#include "measured.h" // ROWS, SENSORS, OUTPUTS, SOURCES, VALUES, measured

#include "cardan/core.h"

static _Alignas(16) unsigned char memory[400 * 1024];

static double count_calls(void* user)
{
    static uint32_t calls;
    (void)user;
    return 1e-6 * ++calls;
}

static void show(crd_estimate e)
{
    board_number(e.value);
    board_number(e.sd);
}

static int fail(const char* why)
{
    board_write(why);
    board_write("\n");
    return 1;
}

int main(void)
{
    const crd_core_port port = {.time = count_calls};
    const char* why = NULL;
    crd_core* core = crd_core_start(&port, memory, sizeof memory, &why);
    if (!core) { return fail(why); }
    crd_context* ctx = crd_core_context(core);
    crd_twin* w = NULL;
    if (twin_create(ctx, &w) < 0 || crd_twin_begin(w, 0) < 0) { return fail(crd_error_text(ctx)); }
    crd_core_seal(core);
    uint32_t most = 0;
    for (int n = 0; n < ROWS; n++) {
        const uint32_t before = board_ticks();
        if (crd_twin_step(w, measured[n]) < 0) { return fail(crd_error_text(ctx)); }
        const uint32_t ticks = (before - board_ticks()) & 0xffffff;
        most = ticks > most ? ticks : most;
        if ((n + 1) % EVERY != 0) { continue; }
        for (int i = 0; i < OUTPUTS; i++) {
            show(crd_twin_output(w, i));
        }
        for (int i = 0; i < SOURCES; i++) {
            show(crd_twin_source_now(w, i));
        }
        for (int i = 0; i < VALUES; i++) {
            show(crd_twin_parameter_now(w, i));
        }
        board_write("\n");
    }
    board_number((double)crd_core_get_state(core).most);
    board_number((double)crd_core_get_state(core).refused);
    board_number((double)most * BOARD_TICK);
    board_write("\n");
    return 0;
}
