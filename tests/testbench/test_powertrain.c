// Each model of the hybrid powertrain against points of its equations, worked out by hand.
#include "check.h"
#include "shared/testbench.h"

#include <stdio.h>

static char message[256];

static void keep(void* user, crd_model_status status, const char* text)
{
    (void)user;
    (void)status;
    snprintf(message, sizeof message, "%s", text);
}

static const crd_model_host host = {.log = keep, .resources = ""};

typedef struct part {
    const crd_model* model;
    void* self;
    double t;
} part;

static const crd_model_variable* row_of(const part* p, const char* name)
{
    for (int i = 0; i < p->model->variable_count; i++) {
        if (!strcmp(p->model->variables[i].name, name)) { return &p->model->variables[i]; }
    }
    fail_msg("%s has no %s", p->model->name, name);
    return NULL;
}

static void set(const part* p, const char* name, double x)
{
    const crd_model_variable* r = row_of(p, name);
    void* at = (char*)p->self + r->offset;
    if (r->type == CRD_FLOAT64) {
        *(double*)at = x;
    } else {
        crd_model_set_integer(r->type, at, (int64_t)x);
    }
}

static double get(const part* p, const char* name)
{
    const crd_model_variable* r = row_of(p, name);
    const void* at = (const char*)p->self + r->offset;
    return r->type == CRD_FLOAT64 ? *(const double*)at : (double)crd_model_integer(r->type, at);
}

static part make(const char* name)
{
    part p = {.model = crdi_powertrain_model(name)};
    check(p.model);
    p.self = calloc(1, p.model->size);
    crd_model_reset(p.model, p.self);
    message[0] = 0;
    return p;
}

static void begin(part* p)
{
    check_int(p->model->initialize(p->self, &host, 0), CRD_MODEL_OK);
    p->model->outputs(p->self, 0);
}

static void run(part* p, int steps)
{
    for (int i = 0; i < steps; i++) {
        double reached = p->t + 0.01;
        check_int(p->model->step(p->self, &host, p->t, 0.01, &reached), CRD_MODEL_OK);
        p->t += 0.01;
        p->model->outputs(p->self, p->t);
    }
}

static void drop(part* p)
{
    free(p->self);
}

#define RPM (3.14159265358979323846 / 30)

// ---- engine ------------------------------------------------------------------------------------

static part running_engine(double rpm, double pedal)
{
    part e = make("pt_engine");
    set(&e, "speed_ref", rpm * RPM);
    begin(&e);
    set(&e, "run", 1);
    run(&e, 35);
    set(&e, "pedal", pedal);
    return e;
}

static void engine_reaches_its_published_corner_points(void** state)
{
    static const double points[][2] = {{600, 180},    {1000, 325}, {1200, 400}, {5000, 400},
                                       {5800, 370.4}, {6500, 310}, {8000, 310}};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        part e = running_engine(points[i][0], 1);
        run(&e, 200); // 25 lags
        check_near(get(&e, "torque_max"), points[i][1], 1e-9);
        check_near(get(&e, "torque"), points[i][1], 1e-6);
        drop(&e);
    }
    part e = running_engine(5800, 1);
    run(&e, 200);
    check_near(get(&e, "power_mech"), 225e3, 50); // Rautenberg et al. 2023: 225 kW at 5800/min
    drop(&e);
}

static void engine_burns_what_its_willans_line_says(void** state)
{
    part e = running_engine(3000, 0.5); // 200 N.m
    run(&e, 300);
    // (200 + 44.1661) 314.159 / 0.409167
    check_near(get(&e, "power_fuel"), 187471, 5);
    drop(&e);
    e = running_engine(2500, 1);
    run(&e, 300);
    const double grams_per_kwh = get(&e, "fuel_rate") * 3.6e9 / get(&e, "power_mech");
    check_near(grams_per_kwh, 228.1, 0.5); // the best point, about 230 g/kWh
    drop(&e);
}

static void engine_torque_follows_the_pedal_with_its_lag(void** state)
{
    part e = running_engine(2000, 0.25);
    check_near(get(&e, "torque"), 0, 0);
    run(&e, 8); // one lag of 80 ms
    check_near(get(&e, "torque"), 100 * (1 - exp(-1)), 1e-9);
    set(&e, "pedal_max", 0.1);
    run(&e, 400);
    check_near(get(&e, "torque"), 40, 1e-9); // the cap of the throttle
    drop(&e);
}

static void engine_needs_its_time_and_fuel_to_start(void** state)
{
    part e = make("pt_engine");
    set(&e, "speed_ref", 1500 * RPM);
    begin(&e);
    set(&e, "run", 1);
    set(&e, "pedal", 1);
    run(&e, 34);
    check_int(get(&e, "running"), 0);
    check_near(get(&e, "torque"), 0, 0);
    check_near(get(&e, "energy_fuel"), 0, 0);
    run(&e, 1);
    check_int(get(&e, "running"), 1);
    check_int(get(&e, "starts"), 1);
    check_near(get(&e, "energy_fuel") - 0.01 * get(&e, "power_fuel"), 8e3, 1e-9);
    set(&e, "run", 0);
    run(&e, 1);
    check_near(get(&e, "torque"), 0, 0);
    check_near(get(&e, "power_fuel"), 0, 0);
    drop(&e);
}

// ---- machine -----------------------------------------------------------------------------------

static part warm_machine(double torque, double speed, double winding)
{
    part m = make("pt_machine");
    set(&m, "start_temperature", winding);
    set(&m, "speed_ref", speed);
    set(&m, "torque_ref", torque);
    begin(&m);
    return m;
}

// 3000/min: drag 3e-3 / (4 pi) (1.5 + 0.35) 1e5 = 44.1655 N.m; throttle 0.5: 0.5 * 444.1655
// - 44.1655
static void engine_with_the_signals_of_a_bench_drags_without_throttle(void** state)
{
    part e = make("pt_engine");
    set(&e, "throttle", 1);
    set(&e, "speed_ref", 3000 * RPM);
    begin(&e);
    run(&e, 200);
    check_near(get(&e, "torque"), -44.165497, 1e-5);
    check_near(get(&e, "power_fuel"), 0, 1e-3); // it is driven
    set(&e, "pedal", 0.5);
    run(&e, 200);
    check_near(get(&e, "torque"), 177.917252, 1e-4);
    check_int((int)get(&e, "starts"), 0);
    drop(&e);
}

// ---- clutch ------------------------------------------------------------------------------------

static void clutch_closes_when_the_bench_has_come_to_the_speed_of_the_car(void** state)
{
    part c = make("pt_clutch");
    set(&c, "bench_torque_max", 400);
    set(&c, "bench_torque", 150);
    set(&c, "bench_speed", 84);
    set(&c, "shaft_speed", 300);
    set(&c, "pedal", 1);
    begin(&c);
    run(&c, 50); // nobody wants the engine
    check_near(get(&c, "speed_ref"), 84, 1e-12);
    check_near(get(&c, "machine_speed_ref"), 300, 1e-12);
    check_near(get(&c, "torque"), 0, 1e-12);
    check_near(get(&c, "pedal_ref"), 0, 1e-12);
    set(&c, "run", 1);
    run(&c, 100); // the bench is not there yet
    check_near(get(&c, "speed_ref"), 300, 1e-12);
    check_near(get(&c, "torque"), 0, 1e-12);
    check(get(&c, "running") == 0);
    set(&c, "bench_speed", 290);
    run(&c, 1);
    check(get(&c, "running") != 0);
    check_near(get(&c, "torque"), 15, 1e-9); // a tenth of its way in a tenth of 0.1 s
    run(&c, 9);
    check_near(get(&c, "torque"), 150, 1e-9);
    check_near(get(&c, "pedal_ref"), 0.5, 1e-12); // all that there is: the cap
    set(&c, "run", 0);
    run(&c, 5);
    check_near(get(&c, "torque"), 75, 1e-9);
    check_near(get(&c, "pedal_ref"), 0, 1e-12);
    set(&c, "shaft_speed", 10); // it stands: the launch clutch slips
    run(&c, 10);
    check_near(get(&c, "machine_speed_ref"), 84, 1e-12);
    check_near(get(&c, "torque"), 0, 1e-12);
    drop(&c);
}

static void clutch_turns_the_part_that_is_wanted_into_a_throttle(void** state)
{
    part c = make("pt_clutch");
    set(&c, "bench_torque_max", 400);
    set(&c, "bench_speed", 3000 * RPM);
    set(&c, "shaft_speed", 3000 * RPM);
    set(&c, "run", 1);
    begin(&c);
    run(&c, 60);
    check_near(get(&c, "torque_max"), 177.917252, 1e-4);
    static const double wanted[] = {0, 0.3, 0.8, 1};
    for (int i = 0; i < 4; i++) {
        set(&c, "pedal", wanted[i]);
        run(&c, 1);
        const double p = get(&c, "pedal_ref");
        check_near(p * 444.165497 - 44.165497, wanted[i] * 177.917252,
                   1e-3); // what the engine gives
    }
    drop(&c);
}

static void machine_envelope_knows_speed_voltage_and_temperature(void** state)
{
    static const struct {
        double speed, voltage, winding, most;
    } points[] = {
        {0, 340, 30, 250},
        {340, 340, 30, 250},
        {500, 340, 30, 170},
        {100, 297, 30, 225},
        {100, 340, 150, 250 * (1 + 40.0 / 85) / 2},
        {100, 340, 160, 250 * 40.0 / 85},
        {100, 340, 181, 0},
        {690, 340, 30, 0},
    };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        part m = warm_machine(1000, points[i].speed, points[i].winding);
        set(&m, "voltage_ref", points[i].voltage);
        run(&m, 1);
        check_near(get(&m, "torque_max"), points[i].most, 1e-9);
        check_near(get(&m, "torque"), points[i].most, 1e-9);
        set(&m, "torque_ref", -1000);
        run(&m, 1);
        check_near(get(&m, "torque"), -get(&m, "torque_max"), 1e-9);
        drop(&m);
    }
}

static void machine_loses_what_the_map_says_and_its_powers_add_up(void** state)
{
    part m = warm_machine(100, 300, 60);
    run(&m, 1);
    check_near(get(&m, "loss"), 120 + 360 + 315 + 550, 1e-9);
    check_near(get(&m, "power_dc"), 30e3 + 1345, 1e-9);
    check_near(get(&m, "power_ac"), 30e3 + 1225, 1e-9);
    check_near(get(&m, "current_dc"), 31345.0 / 340, 1e-9);
    drop(&m);
    m = warm_machine(-100, 300, 160);
    set(&m, "torque_peak", 300); // 300 * 40/85 = 141 N.m are left at 160 degC
    run(&m, 1);
    check_near(get(&m, "loss_copper"), 550 * 1.39, 1e-9);
    check_near(get(&m, "power_dc"), -30e3 + 120 + 360 + 315 + 764.5, 1e-9);
    drop(&m);
}

static void machine_settles_at_forty_kilowatts(void** state)
{
    part m = warm_machine(40e3 / 300, 300, 60);
    run(&m, 400000); // 4000 s
    // T_w = 60 + Q_cu / 25 + Q / 220, solved for T_w with Q_cu = 977.8 (1 + 0.0039 (T_w - 60))
    const double cold = 0.055 * (40e3 / 300) * (40e3 / 300), rest = 120 + 360 + 315;
    const double rise = (cold * (1 / 25.0 + 1 / 220.0) + rest / 220.0) /
                        (1 - 0.0039 * cold * (1 / 25.0 + 1 / 220.0));
    check_near(get(&m, "temperature_max"), 60 + rise, 0.1);
    check(get(&m, "temperature_max") < 140);
    check_near(get(&m, "derating"), 1, 0);
    drop(&m);
}

static void machine_derates_under_its_peak_after_a_minute_or_two_and_never_comes_back(void** state)
{
    part m = warm_machine(250, 340, 90);
    double before = 1, began = 0;
    for (int i = 0; i < 30000; i++) {
        run(&m, 1);
        const double now = get(&m, "derating");
        check(now <= before);
        check(get(&m, "torque") <= get(&m, "torque_max"));
        if (now < 1 && began == 0) { began = m.t; }
        before = now;
    }
    check(began > 60 && began < 150);
    check(get(&m, "temperature_max") < 180);
    drop(&m);
}

static void machine_takes_its_temperature_from_outside_when_told(void** state)
{
    part m = make("pt_machine");
    set(&m, "external", 1);
    set(&m, "winding_in", 170);
    set(&m, "torque_ref", 250);
    begin(&m);
    run(&m, 5);
    check_near(get(&m, "temperature_max"), 170, 0);
    check_near(get(&m, "torque"), 250 * 20.0 / 85, 1e-9);
    drop(&m);
}

// ---- battery -----------------------------------------------------------------------------------

static void battery_current_solves_its_quadratic(void** state)
{
    part b = make("pt_battery");
    set(&b, "aux", 0);
    begin(&b);
    set(&b, "power", 50e3);
    run(&b, 1);
    // V' = 96 * 3.58 = 343.68, (343.68 - sqrt(343.68^2 - 4 * 0.085 * 5e4)) / 0.17
    check_near(get(&b, "current"), 151.133, 1e-3);
    check_near(get(&b, "voltage") * get(&b, "current"), 50e3, 1e-6);
    check_near(get(&b, "soc"), 0.2 - 0.01 * 151.133 / (34 * 3600), 1e-9);
    drop(&b);
}

static void battery_voltage_sags_by_all_its_resistances(void** state)
{
    part b = make("pt_battery");
    set(&b, "aux", 0);
    set(&b, "capacity_ah", 1e9);
    begin(&b);
    set(&b, "power", 20e3);
    run(&b, 200000); // 13 times the slow time constant
    const double i = get(&b, "current");
    check_near(get(&b, "voltage"), 343.68 - (0.085 + 0.030 + 0.045) * i, 2e-3);
    check_near(get(&b, "energy_chemical"), get(&b, "energy_terminal") + get(&b, "energy_loss"),
               1e-3);
    drop(&b);
}

static void battery_keeps_to_its_currents_and_counts_what_it_could_not_give(void** state)
{
    part b = make("pt_battery");
    set(&b, "soc_start", 0.5);
    begin(&b);
    check_near(get(&b, "discharge_max"), (356.16 - 0.085 * 340) * 340 - 300, 1e-6);
    check_near(get(&b, "charge_max"), (356.16 + 0.085 * 260) * 260 + 300, 1e-6);
    set(&b, "power", get(&b, "discharge_max"));
    run(&b, 1);
    check_near(get(&b, "current"), 340, 1e-9);
    check_near(get(&b, "energy_missing"), 0, 1e-6);
    set(&b, "power", 1e6);
    run(&b, 1);
    check_near(get(&b, "current"), 340, 0);
    check(get(&b, "energy_missing") > 8e3);
    set(&b, "power", -1e6);
    run(&b, 1);
    check_near(get(&b, "current"), -260, 0);
    drop(&b);
}

// ---- vehicle -----------------------------------------------------------------------------------

static void vehicle_coasts_against_its_road_load(void** state)
{
    part c = make("pt_vehicle");
    set(&c, "speed_start", 20);
    set(&c, "gear", 6);
    begin(&c);
    set(&c, "machine_torque", 3); // the drag of the gearbox
    run(&c, 1);
    check_near(get(&c, "acceleration"), -(165 + 32 + 160) / 1957.0, 1e-12);
    check_near(get(&c, "shaft_speed"), 3.15 / 0.33 * get(&c, "speed"), 1e-9);
    drop(&c);
}

static void vehicle_gearbox_multiplies_and_loses(void** state)
{
    part c = make("pt_vehicle");
    begin(&c);
    set(&c, "engine_torque", 60);
    set(&c, "machine_torque", 43);
    run(&c, 1);
    check_near(get(&c, "force_wheel"), 100 * 4.71 * 3.15 / 0.33 * 0.9457, 1e-9);
    drop(&c);
    c = make("pt_vehicle");
    set(&c, "speed_start", 5);
    begin(&c);
    set(&c, "machine_torque", -97);
    run(&c, 1);
    check_near(get(&c, "force_wheel"), -100 * 4.71 * 3.15 / 0.33 / 0.9457, 1e-9);
    set(&c, "engine_torque", 400);
    set(&c, "machine_torque", 250);
    run(&c, 1);
    check_near(get(&c, "force_wheel"), 9000, 0); // the tyres
    check(get(&c, "energy_slip") > 0);
    drop(&c);
}

static void vehicle_interrupts_the_torque_for_a_quarter_of_a_second(void** state)
{
    part c = make("pt_vehicle");
    set(&c, "speed_start", 10);
    begin(&c);
    set(&c, "machine_torque", 100);
    set(&c, "gear", 2);
    const double first = 4.71 * 3.15 / 0.33, second = 3.14 * 3.15 / 0.33;
    for (int i = 1; i <= 25; i++) {
        run(&c, 1);
        check_int(get(&c, "shifting"), 1);
        check_near(get(&c, "force_wheel"), 0, 0);
        check_near(get(&c, "ratio"), first + (second - first) * i / 25, 1e-9);
    }
    run(&c, 1);
    check_int(get(&c, "shifting"), 0);
    check_int(get(&c, "engaged"), 2);
    check_int(get(&c, "shifts"), 1);
    check_near(get(&c, "force_wheel"), 97 * second * 0.9457, 1e-9);
    drop(&c);
}

static void vehicle_stands_on_its_brakes_and_never_rolls_back(void** state)
{
    part c = make("pt_vehicle");
    set(&c, "speed_start", 3);
    begin(&c);
    set(&c, "brake", 8000);
    set(&c, "machine_torque", -50);
    double before = 3;
    for (int i = 0; i < 200; i++) {
        run(&c, 1);
        check(get(&c, "speed") >= 0 && get(&c, "speed") <= before);
        before = get(&c, "speed");
    }
    check_near(before, 0, 0);
    check_near(get(&c, "energy_kinetic"), 0, 0);
    drop(&c);
}

static void vehicle_energies_close_to_rounding(void** state)
{
    part c = make("pt_vehicle");
    begin(&c);
    for (int i = 0; i < 3000; i++) {
        set(&c, "engine_torque", i > 500 && i < 1500 ? 150 : 0);
        set(&c, "machine_torque", i < 1500 ? 120 : i < 2300 ? -60 : 0);
        set(&c, "brake", i > 2200 ? 4000 : 0);
        set(&c, "gear", i < 300 ? 1 : i < 800 ? 2 : 3);
        run(&c, 1);
    }
    const double wheel = get(&c, "energy_wheel");
    check(wheel > 1e5);
    check_near(get(&c, "energy_brake") + get(&c, "energy_road") + get(&c, "energy_kinetic"), wheel,
               1e-9 * fabs(wheel));
    check_near(get(&c, "energy_gearbox") + get(&c, "energy_slip") + wheel, get(&c, "energy_shaft"),
               1e-9 * fabs(wheel));
    check(get(&c, "energy_gearbox") > 0);
    drop(&c);
}

// ---- driver ------------------------------------------------------------------------------------

static void driver_asks_for_resistance_acceleration_and_error(void** state)
{
    part d = make("pt_driver");
    set(&d, "speed", 10);
    set(&d, "target", 10);
    set(&d, "ahead", 10);
    begin(&d);
    run(&d, 1);
    check_near(get(&d, "force"), 165 + 16 + 40, 1e-9);
    set(&d, "ahead", 10.35); // 1 m/s^2
    run(&d, 1);
    check_near(get(&d, "force"), 221 + 1957 + 1800 * 0.35, 1e-6);
    set(&d, "ahead", 60);
    run(&d, 1000);
    check_near(get(&d, "force"), 9000, 0);
    set(&d, "target", 9);
    set(&d, "ahead", 8);
    run(&d, 1);
    check(get(&d, "force") < 0); // the integral did not wind up at the limit
    drop(&d);
}

static void driver_holds_the_car_at_a_stop(void** state)
{
    part d = make("pt_driver");
    begin(&d);
    run(&d, 100);
    check(get(&d, "force") < 0);
    set(&d, "ahead", 0.35); // it will go
    run(&d, 1);
    check(get(&d, "force") > 165);
    drop(&d);
}

// ---- controller --------------------------------------------------------------------------------

// At 10 m/s in a gear of 20 rad/m: 200 rad/s, 1910/min; nothing is at its limit.
static part made_controller(double force)
{
    part c = make("pt_controller");
    set(&c, "force", force);
    set(&c, "speed", 10);
    set(&c, "shaft_speed", 200);
    set(&c, "ratio", 20);
    set(&c, "soc", 0.2);
    set(&c, "discharge_max", 1e5);
    set(&c, "charge_max", 1e5);
    set(&c, "engine_torque_max", 400);
    set(&c, "machine_torque_max", 250);
    set(&c, "shift_interval", 60);
    begin(&c);
    set(&c, "engine_lag", 0);
    return c;
}

static void controller_drives_electrically_below_its_threshold(void** state)
{
    part c = made_controller(1000);
    run(&c, 60);
    const double wanted = 1000 / (0.9457 * 20) + 3; // 55.9 N.m, 11 kW
    check_near(get(&c, "torque_request"), wanted, 1e-9);
    check_near(get(&c, "machine_torque"), wanted, 1e-9);
    check_int(get(&c, "engine_on"), 0);
    check_int(get(&c, "mode"), 2);
    drop(&c);
}

static void controller_shifts_the_load_point_with_the_engine_on(void** state)
{
    part c = made_controller(2000); // 108.7 N.m, 21.7 kW: above 16 kW
    run(&c, 1);
    check_int(get(&c, "engine_on"), 1);
    check_near(get(&c, "machine_torque"), 2000 / (0.9457 * 20) + 3, 1e-9); // until it runs
    set(&c, "engine_running", 1);
    run(&c, 60);
    const double wanted = 2000 / (0.9457 * 20) + 3;
    check_near(get(&c, "torque_engine"), wanted + 8e3 / 200, 1e-9); // 8 kW to charge
    check_near(get(&c, "pedal"), (wanted + 40) / 400, 1e-9);
    check_near(get(&c, "machine_torque"), -40, 1e-9);
    check_int(get(&c, "mode"), 5);
    set(&c, "soc", 0.19); // more: 16 kW; but not beyond 190 N.m
    run(&c, 1);
    check_near(get(&c, "torque_engine"), wanted + 80, 1e-9);
    set(&c, "soc", 0.17);
    run(&c, 1);
    check_near(get(&c, "torque_engine"), 190, 1e-9);
    drop(&c);
}

static void controller_keeps_the_sum_while_the_engine_lags(void** state)
{
    part c = made_controller(3000);
    set(&c, "engine_lag", 0.08);
    set(&c, "engine_running", 1);
    part e = running_engine(200 / RPM, 0);
    for (int i = 0; i < 50; i++) {
        set(&c, "engine_torque", get(&e, "torque"));
        run(&c, 1);
        set(&e, "pedal", get(&c, "pedal"));
        run(&e, 1);
        check_near(get(&e, "torque") + get(&c, "machine_torque"), get(&c, "torque_request"), 1e-9);
    }
    drop(&c);
    drop(&e);
}

static void controller_boosts_beyond_the_full_load(void** state)
{
    part c = made_controller(9000); // 478.8 N.m
    set(&c, "engine_running", 1);
    run(&c, 60);
    check_near(get(&c, "pedal"), 1, 1e-12);
    check_near(get(&c, "machine_torque"), 9000 / (0.9457 * 20) + 3 - 400, 1e-9);
    check_int(get(&c, "mode"), 4);
    drop(&c);
}

static void controller_recuperates_within_limits_and_brakes_the_rest(void** state)
{
    part c = made_controller(-1000);
    run(&c, 60);
    check_near(get(&c, "machine_torque"), -1000 * 0.9457 / 20 + 3, 1e-9);
    check_near(get(&c, "brake"), 0, 1e-9);
    check_int(get(&c, "mode"), 6);
    set(&c, "charge_max", 4000); // 20 N.m at 200 rad/s
    run(&c, 1);
    check_near(get(&c, "machine_torque"), -20, 1e-9);
    check_near(get(&c, "brake"), 1000 - 23 * 20 / 0.9457, 1e-9);
    set(&c, "charge_max", 1e5);
    set(&c, "speed", 1.75); // half of where the fading begins
    run(&c, 1);
    check_near(get(&c, "machine_torque"), 0.5 * (-1000 * 0.9457 / 20 + 3), 1e-9);
    check(get(&c, "brake") > 400);
    drop(&c);
}

static void controller_lets_the_engine_run_its_six_seconds(void** state)
{
    part c = made_controller(2000);
    run(&c, 1);
    set(&c, "force", 200);
    run(&c, 599);
    check_int(get(&c, "engine_on"), 1);
    run(&c, 3);
    check_int(get(&c, "engine_on"), 0);
    set(&c, "force", 2000);
    run(&c, 1);
    set(&c, "force", 700); // 8 kW, between a third of the threshold and all of it
    run(&c, 900);
    check_int(get(&c, "engine_on"), 1);
    set(&c, "force", 200);
    run(&c, 1);
    check_int(get(&c, "engine_on"), 0);
    set(&c, "soc", 0.13); // an empty battery starts it whatever is asked for
    run(&c, 1);
    check_int(get(&c, "engine_on"), 1);
    set(&c, "shaft_speed", 70); // too slow to run
    run(&c, 1);
    check_int(get(&c, "engine_on"), 0);
    drop(&c);
}

static void controller_shifts_by_speed_and_load_and_not_too_often(void** state)
{
    part c = made_controller(100);
    set(&c, "shift_interval", 1.2);
    set(&c, "shaft_speed", 2000 * RPM);
    run(&c, 1);
    check_int(get(&c, "gear"), 2);
    run(&c, 119);
    check_int(get(&c, "gear"), 2);
    run(&c, 2);
    check_int(get(&c, "gear"), 3);
    set(&c, "shaft_speed", 1100 * RPM);
    run(&c, 121);
    check_int(get(&c, "gear"), 2);
    set(&c, "force", 9000); // full load: not below 5900/min
    set(&c, "shaft_speed", 5800 * RPM);
    run(&c, 200);
    check_int(get(&c, "gear"), 2);
    drop(&c);
}

// ---- all ---------------------------------------------------------------------------------------

static void models_refuse_parameters_that_make_no_sense(void** state)
{
    static const struct {
        const char *model, *parameter, *says;
        double value;
    } wrong[] = {
        {"pt_driver", "preview", "preview", 0},
        {"pt_controller", "fade_speed", "fade_speed", NAN},
        {"pt_engine", "displacement", "displacement", -1},
        {"pt_machine", "oil_rate", "oil_rate", 0},
        {"pt_battery", "soc_start", "soc_start", 1.5},
        {"pt_battery", "r0", "r0", NAN},
        {"pt_vehicle", "mass", "mass", 0},
        {"pt_vehicle", "efficiency", "efficiency", 1.2},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        part p = make(wrong[i].model);
        set(&p, wrong[i].parameter, wrong[i].value);
        check_int(p.model->initialize(p.self, &host, 0), CRD_MODEL_ERROR);
        check_contains(message, wrong[i].says);
        drop(&p);
    }
    check(!crdi_powertrain_model("pt_sail"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engine_reaches_its_published_corner_points),
        cmocka_unit_test(engine_burns_what_its_willans_line_says),
        cmocka_unit_test(engine_torque_follows_the_pedal_with_its_lag),
        cmocka_unit_test(engine_needs_its_time_and_fuel_to_start),
        cmocka_unit_test(engine_with_the_signals_of_a_bench_drags_without_throttle),
        cmocka_unit_test(clutch_closes_when_the_bench_has_come_to_the_speed_of_the_car),
        cmocka_unit_test(clutch_turns_the_part_that_is_wanted_into_a_throttle),
        cmocka_unit_test(machine_envelope_knows_speed_voltage_and_temperature),
        cmocka_unit_test(machine_loses_what_the_map_says_and_its_powers_add_up),
        cmocka_unit_test(machine_settles_at_forty_kilowatts),
        cmocka_unit_test(machine_derates_under_its_peak_after_a_minute_or_two_and_never_comes_back),
        cmocka_unit_test(machine_takes_its_temperature_from_outside_when_told),
        cmocka_unit_test(battery_current_solves_its_quadratic),
        cmocka_unit_test(battery_voltage_sags_by_all_its_resistances),
        cmocka_unit_test(battery_keeps_to_its_currents_and_counts_what_it_could_not_give),
        cmocka_unit_test(vehicle_coasts_against_its_road_load),
        cmocka_unit_test(vehicle_gearbox_multiplies_and_loses),
        cmocka_unit_test(vehicle_interrupts_the_torque_for_a_quarter_of_a_second),
        cmocka_unit_test(vehicle_stands_on_its_brakes_and_never_rolls_back),
        cmocka_unit_test(vehicle_energies_close_to_rounding),
        cmocka_unit_test(driver_asks_for_resistance_acceleration_and_error),
        cmocka_unit_test(driver_holds_the_car_at_a_stop),
        cmocka_unit_test(controller_drives_electrically_below_its_threshold),
        cmocka_unit_test(controller_shifts_the_load_point_with_the_engine_on),
        cmocka_unit_test(controller_keeps_the_sum_while_the_engine_lags),
        cmocka_unit_test(controller_boosts_beyond_the_full_load),
        cmocka_unit_test(controller_recuperates_within_limits_and_brakes_the_rest),
        cmocka_unit_test(controller_lets_the_engine_run_its_six_seconds),
        cmocka_unit_test(controller_shifts_by_speed_and_load_and_not_too_often),
        cmocka_unit_test(models_refuse_parameters_that_make_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
