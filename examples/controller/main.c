// An electric drive on a microcontroller: a DCP slave with the safety core of a bench, by
// libcardan-core. The machine is a model here, a rotor with friction; what stands in `turn_rotor`
// would set a converter and read an encoder. docs/how-to/controllers.md tells the rest.
#include "drive.h" // by: cardan export c drive.dcpx --name drive
#include "port.h"

enum { SPEED, TORQUE, QUANTITIES };

// ---- the machine -------------------------------------------------------------------------------

typedef struct rotor {
    double speed, torque;   // rad/s, N.m
    double set[QUANTITIES]; // by the bench
    bool stopping;          // its own speed controller has it
    bool braked;
} rotor;

static double within(double x, double most)
{
    return x > most ? most : x < -most ? -most : x;
}

static void turn_rotor(void* user, double seconds)
{
    rotor* r = user;
    const double inertia = 0.05, friction = 0.02, gain = 2; // kg m2, N.m.s, N.m.s
    const double wish = r->stopping ? gain * (r->set[SPEED] - r->speed) : r->set[TORQUE];
    r->torque = r->braked ? within(-gain * r->speed, 20) : within(wish, 20);
    r->speed += seconds * (r->torque - friction * r->speed) / inertia;
}

static void set_quantity(void* user, int quantity, double value)
{
    rotor* r = user;
    r->set[quantity] = value;
    r->stopping = quantity == SPEED; // a speed is set in stops only
}

static double measure_quantity(void* user, int quantity)
{
    const rotor* r = user;
    return quantity == SPEED ? r->speed : r->torque;
}

static void cut_drive(void* user) // by the brake, which needs no controller
{
    rotor* r = user;
    r->braked = true;
}

static void give_remote(void* user, bool given)
{
    rotor* r = user;
    if (given) { r->braked = r->stopping = false; }
}

// ---- the program -------------------------------------------------------------------------------

static _Alignas(8) unsigned char memory[DRIVE_MEMORY];

static int stop(const char* why)
{
    board_say(why);
    return 1;
}

int main(void)
{
    static rotor machine;
    const char* why = NULL;
    crd_core* core = crd_core_start(&board_port, memory, sizeof memory, &why);
    if (!core) { return stop(why); }
    crd_context* ctx = crd_core_context(core);

    crd_dcp_quantity quantities[QUANTITIES] = {crd_dcp_quantity_defaults(),
                                               crd_dcp_quantity_defaults()};
    quantities[SPEED].name = quantities[SPEED].output = "speed";
    quantities[SPEED].role = CRD_DCP_ROLE_SPEED;
    quantities[TORQUE].name = quantities[TORQUE].output = "torque";
    quantities[TORQUE].input = "torque_ref";
    quantities[TORQUE].role = CRD_DCP_ROLE_TORQUE;
    crd_dcp_bench_config config = crd_dcp_bench_defaults();
    config.limits = "speed -300..300 rad/s; torque -20..20 N.m rate 5000 N.m/s";
    config.quantities = quantities;
    config.quantity_count = QUANTITIES;
    config.safe_speed = 10;
    config.period = 0.001;
    const crd_dcp_rig rig = {.user = &machine,
                             .set = set_quantity,
                             .measure = measure_quantity,
                             .remote = give_remote,
                             .step = turn_rotor,
                             .cut = cut_drive};

    crd_dcp_bench* bench = NULL;
    crd_dcp_slave* slave = NULL;
    if (crd_dcp_bench_create(ctx, &drive_description, &config, &rig, &bench) < 0) {
        return stop(crd_error_text(ctx));
    }
    const crd_dcp_plant plant = crd_dcp_bench_plant(bench);
    if (crd_core_serve(core, &drive_description, &plant, NULL, &slave) < 0) {
        return stop(crd_error_text(ctx));
    }
    crd_dcp_bench_attach(bench, slave);
    crd_core_seal(core);
    while (board_goes_on(core, slave)) {
        crd_core_turn(core);
    }
    return 0;
}
