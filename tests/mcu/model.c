// An exported model run for STEPS steps: its outputs in every EVERY-th of them as hexadecimal bits,
// then the most ticks that a step took.
#include "model.h"
#include "board.h"

static model instance;

static void show(const double* u)
{
    double y[model_OUTPUTS];
    model_outputs(&instance, u, y);
    for (int i = 0; i < model_OUTPUTS; i++) {
        board_number(y[i]);
    }
    board_write("\n");
}

int main(void)
{
    const double u[] = {INPUTS 0};
    uint32_t most = 0;
    model_begin(&instance);
    show(u);
    for (int k = 1; k <= STEPS; k++) {
        const uint32_t before = board_ticks();
        const int st = model_step(&instance, u);
        const uint32_t ticks = (before - board_ticks()) & 0xffffff;
        most = ticks > most ? ticks : most;
        if (st) {
            board_write("failed\n");
            return st;
        }
        if (k % EVERY == 0) { show(u); }
    }
    board_number((double)most * BOARD_TICK);
    board_write("instructions\n");
    return 0;
}
