// auto with two commands, a wave port and a DCP slave in one program: what they take together of a
// controller (board_core.py). Runs SAMPLES samples without a network.
#include "board.h"
#include "drive.h"

#include "cardan/core.h"

enum { SAMPLES = 700, LATENCY = 5 };

static _Alignas(8) unsigned char memory[600 * 1024];
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
    if (variable == drive_var_torque_ref) { torque = *value->real; }
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
    o.commands = 2;
    o.k_max = 8;
    o.late = 8;
    crd_coupling* element = NULL;
    crd_pair_options side = crd_pair_defaults(CRD_PAIR_OWNS_FLOW);
    side.step = side.macro = 1e-3;
    side.impedance = 2;
    crd_dcp_slave* slave = NULL;
    const crd_dcp_plant plant = {.set = take_value};
    if (crd_coupling_create(ctx, &o, &element) < 0 || crd_pair_init(ctx, &pair, &side) < 0 ||
        crd_core_serve(core, &drive_description, &plant, NULL, &slave) < 0) {
        return fail(crd_error_text(ctx));
    }
    crd_core_seal(core);
    double x = 0, speed = 0;
    for (int n = LATENCY; n < SAMPLES; n++) {
        const double now = 1e-3 * n, u[2] = {n % 90, n / 50 % 2};
        crd_pair_packet packet;
        crd_core_turn(core);
        crd_coupling_command(element, u, now);
        crd_coupling_push(element, speed, now - 1e-3 * LATENCY, n - LATENCY);
        x += crd_coupling_eval(element, now);
        const double before = speed;
        speed += 1e-3 * (0.1 * u[0] - crd_pair_act(&pair, speed, now) + torque);
        crd_pair_done(&pair, 0.5 * (before + speed));
        crd_pair_send(&pair, now, &packet);
    }
    board_number(x);
    board_number((double)crd_core_get_state(core).most);
    board_number((double)crd_core_get_state(core).refused);
    board_write("\n");
    return 0;
}
