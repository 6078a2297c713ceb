// auto with commands, a wave port and a DCP slave in one program: what they take together of a
// controller (board_core.py). Runs SAMPLES samples without a network. COMMANDS, 0: two of `auto`
// as it is; else so many of its compact form, in as little memory as it needs.
#include "board.h"
#include "rotor.h"

#include "cardan/core.h"

enum { SAMPLES = 700, LATENCY = 5 };

#ifndef COMMANDS
#define COMMANDS 0
#define MEMORY (600 * 1024)
#endif
static _Alignas(8) unsigned char memory[MEMORY];
static crd_pair_port pair;
static double torque;

static double seconds(void* user)
{
    static double now;
    (void)user;
    return now += 1e-6;
}

static bool send_nothing(void* user, const crd_dcp_address* to, const uint8_t* bytes, size_t length)
{
    (void)user;
    (void)to;
    return bytes && length > 0;
}

static size_t receive_nothing(void* user, crd_dcp_address* from, crd_dcp_address* at,
                              uint8_t* bytes, size_t room)
{
    (void)user;
    (void)from;
    (void)at;
    (void)bytes;
    (void)room;
    return 0;
}

static crd_dcp_outcome take_value(void* user, int variable, const crd_dcp_slot* value)
{
    (void)user;
    if (variable == rotor_var_torque_ref) { torque = *value->real; }
    return CRD_DCP_DONE;
}

static int fail(const char* why)
{
    board_write(why);
    board_write("\n");
    return 1;
}

int main(void)
{
    const crd_core_port port = {.time = seconds, .send = send_nothing, .receive = receive_nothing};
    const char* why = NULL;
    crd_core* core = crd_core_start(&port, memory, sizeof memory, &why);
    if (!core) { return fail(why); }
    crd_context* ctx = crd_core_context(core);
    crd_coupling_options o = crd_coupling_defaults();
    o.step = 1e-3;
    o.compact = COMMANDS > 0;
    o.commands = COMMANDS > 0 ? COMMANDS : 2;
    o.k_max = COMMANDS > 0 ? LATENCY : 8;
    o.late = COMMANDS > 0 ? 4 : 8;
    if (COMMANDS > 0) { o.detection = CRD_DETECT_NONE; }
    crd_coupling* element = NULL;
    crd_pair_options side = crd_pair_defaults(CRD_PAIR_OWNS_FLOW);
    side.step = side.macro = 1e-3;
    side.impedance = 2;
    crd_dcp_slave* slave = NULL;
    crd_dcp_slave_options small = crd_core_slave_defaults(&rotor_description);
    small.max_groups = 3; // inputs, outputs, and one to spare
    small.max_targets = small.log_entries = 1;
    small.log_bytes = 64;
    small.max_pdu = 256;
    const crd_dcp_plant plant = {.set = take_value};
    if (crd_coupling_create(ctx, &o, &element) < 0 || crd_pair_init(ctx, &pair, &side) < 0 ||
        crd_core_serve(core, &rotor_description, &plant, &small, &slave) < 0) {
        return fail(crd_error_text(ctx));
    }
    crd_core_seal(core);
    double x = 0, speed = 0;
    uint32_t most = 0;
    for (int n = LATENCY; n < SAMPLES; n++) {
        const double now = 1e-3 * n, u[2] = {n % 90, n / 50 % 2};
        crd_pair_packet packet;
        const uint32_t start = board_ticks();
        crd_core_turn(core);
        crd_coupling_command(element, u, now);
        crd_coupling_push(element, speed, now - 1e-3 * LATENCY, n - LATENCY);
        x += crd_coupling_eval(element, now);
        const double before = speed;
        speed += 1e-3 * (0.1 * u[0] - crd_pair_act(&pair, speed, now) + torque);
        crd_pair_done(&pair, 0.5 * (before + speed));
        crd_pair_send(&pair, now, &packet);
        const uint32_t ticks = (start - board_ticks()) & 0xffffff;
        most = ticks > most ? ticks : most;
    }
    board_number(x);
    board_number((double)crd_core_get_state(core).most);
    board_number((double)crd_core_get_state(core).refused);
    board_number((double)most * BOARD_TICK);
    board_number(board_stack());
    board_write("\n");
    return 0;
}
