// The machines of the emulated benches against points that were worked out by hand.
#include "testbench/bench.h"

#include <math.h>

#include "check.h"

static int at(const crdi_plant* p, const char* name)
{
    for (int i = 0; i < p->type->signal_count; i++) {
        if (strcmp(p->type->signals[i].name, name) == 0) { return i; }
    }
    fail_msg("no signal %s", name);
    return -1;
}

static double is(const crdi_plant* p, const char* name)
{
    return p->value[at(p, name)];
}

static void set(crdi_plant* p, const char* name, double value)
{
    p->set[at(p, name)] = value;
}

static void heat_all(crdi_plant* p, double degrees)
{
    for (int i = 0; i < CRDI_NODES; i++) {
        p->temperature[i] = degrees;
    }
}

static crdi_plant em_at(double rpm, double torque, double voltage)
{
    crdi_plant p;
    crdi_plant_init(&p, &crdi_plant_em, 1);
    set(&p, "voltage_ref", voltage);
    set(&p, "speed_ref", rpm);
    crdi_plant_step(&p, 1);
    set(&p, "torque_ref", torque);
    crdi_plant_step(&p, 0.5);
    return p;
}

// Time until `signal` passes `value`.
static double time_to(crdi_plant* p, const char* signal, double value, double most)
{
    const int i = at(p, signal);
    const bool up = p->value[i] < value;
    double t = 0;
    while (t < most && (up ? p->value[i] < value : p->value[i] > value)) {
        crdi_plant_step(p, 0.01);
        t += 0.01;
    }
    return t * p->thermal_scale;
}

// ---- electric machine --------------------------------------------------------------------------

static void powers_of_a_steady_point_are_those_of_the_loss_formula(void** state)
{
    const crdi_plant p = em_at(3000, 100, 350);
    const double w = 100 * M_PI; // 3000 1/min
    check_near(is(&p, "speed"), 3000, 0.01);
    check_near(is(&p, "torque_calc"), 100, 1e-6);
    check_near(is(&p, "torque"), 99.5, 0.01); // 0.5 N m of friction on the way to the flange
    const double lost = 120 + 1.2 * w + 0.0035 * w * w +
                        0.055 * 1e4 * (1 + 0.0039 * (is(&p, "temperature_max") - 60));
    check_near(is(&p, "power_dc"), 100 * w + lost, 1);
    check_near(is(&p, "power_ac"), is(&p, "power_dc") - 120, 1e-6);
    check_near(is(&p, "power_mech"), 99.5 * w, 5);
    check_near(is(&p, "current_dc") * is(&p, "voltage_dc"), is(&p, "power_dc"), 1e-6);
    check_near(is(&p, "voltage_dc"), 350 - 0.02 * is(&p, "current_dc"), 0.01);
    // what the load machine takes: torque of the DUT less all friction, 1.5 N m and 0.002 N m s
    check_near(p.load, -(100 - 1.5 - 0.002 * w), 0.01);
}

static void torque_has_the_envelope_of_peak_torque_power_and_voltage(void** state)
{
    crdi_plant p = em_at(1500, 400, 350);
    check_near(is(&p, "torque_calc"), 250, 1e-3);
    p = em_at(6000, 400, 400);
    check_near(is(&p, "torque_max"), 85e3 / (200 * M_PI), 0.1);
    check_near(is(&p, "torque_calc"), 85e3 / (200 * M_PI), 0.1);
    check_near(is(&p, "power_max"), 85e3, 1e-6);
    p = em_at(3000, -400, 200); // regenerating at a low voltage
    check_near(is(&p, "torque_calc"), -250 * is(&p, "voltage_dc") / 330, 0.1);
    check(is(&p, "current_dc") < 0 && is(&p, "voltage_dc") > 200);
}

static void winding_derates_the_torque_from_140_degC_on(void** state)
{
    static const double points[][2] = {
        {139, 1}, {150, (1 + 40.0 / 85) / 2}, {160, 40.0 / 85}, {170, 20.0 / 85}, {185, 0}};
    for (int i = 0; i < 5; i++) {
        crdi_plant p = em_at(1000, 0, 400);
        heat_all(&p, points[i][0]);
        crdi_plant_step(&p, 0.002);
        check_near(is(&p, "torque_max"), 250 * points[i][1], 0.3);
    }
}

static void forty_kilowatts_are_continuous_and_eighty_five_are_not(void** state)
{
    crdi_plant p = em_at(3500, 0, 360);
    heat_all(&p, 60);
    set(&p, "oil_ref", 60);
    p.thermal_scale = 100;
    set(&p, "torque_ref", 40e3 / (3500 * M_PI / 30));
    crdi_plant_step(&p, 40);
    const double settled = is(&p, "temperature_max");
    crdi_plant_step(&p, 20);
    check_near(is(&p, "temperature_max"), settled, 0.1);
    check_near(settled, 117, 23); // below 140
    check_near(is(&p, "oil_in"), 60, 0.3);

    p = em_at(3500, 0, 360);
    heat_all(&p, 90);
    p.temperature[2] = 60;
    set(&p, "oil_ref", 60);
    p.thermal_scale = 10;
    set(&p, "torque_ref", 85e3 / (3500 * M_PI / 30));
    const double derates = time_to(&p, "temperature_max", 140, 30);
    check(derates > 60 && derates < 150);
}

static void oil_takes_the_times_of_table_3(void** state)
{
    crdi_plant p = em_at(100, 0, 60);
    heat_all(&p, 25);
    p.thermal_scale = 20;
    set(&p, "oil_ref", 90);
    check_near(time_to(&p, "oil_in", 80, 100), 9 * 60, 0.03 * 9 * 60);
    heat_all(&p, 80);
    set(&p, "oil_ref", 25);
    check_near(time_to(&p, "oil_in", 50, 100), 7 * 60, 0.03 * 7 * 60);
    check_near(time_to(&p, "oil_in", 35, 200), 23 * 60, 0.05 * 23 * 60);
}

// A start at -10 degC: 6 kW cool 70.58 kJ/K of circuit and, behind 80 + 140 W/K, the machine's 26
// kJ/K from 25 degC, while copper and iron at 100/min heat it with 133 W.
static void oil_gets_as_cold_as_a_start_in_winter(void** state)
{
    crdi_plant p = em_at(100, 0, 60);
    heat_all(&p, 25);
    p.thermal_scale = 20;
    set(&p, "oil_ref", -10);
    const double all = (70.58e3 + 26e3) * 35 / (6e3 - 133), bare = 70.58e3 * 35 / 6e3;
    const double cold = time_to(&p, "oil_in", -9.5, 200);
    check(cold > bare && cold < 1.05 * all);
    crdi_plant_step(&p, 100);
    check_near(is(&p, "oil_in"), -10, 0.5);
    check_near(is(&p, "temperature_max"), -10, 3);
    heat_all(&p, 25); // the house's water alone cannot: as before
    set(&p, "oil_ref", 25);
    crdi_plant_step(&p, 200);
    check(is(&p, "oil_in") > 24.9);
}

static void oil_is_held_within_a_kelvin_under_load(void** state)
{
    crdi_plant p = em_at(3000, 150, 360);
    heat_all(&p, 70);
    set(&p, "oil_ref", 70);
    p.thermal_scale = 50;
    for (int i = 0; i < 20; i++) {
        crdi_plant_step(&p, 1);
        check_near(is(&p, "oil_in"), 70, 0.5);
    }
    check(is(&p, "oil_out") > is(&p, "oil_in") + 2);
}

// How far the speed goes when the DUT jumps by 100 N m.
static double excursion(double rpm)
{
    crdi_plant p = em_at(rpm, 0, 350);
    set(&p, "torque_ref", 100);
    double most = 0;
    for (int i = 0; i < 3000; i++) {
        crdi_plant_step(&p, 1e-3);
        most = fmax(most, fabs(is(&p, "speed") - rpm));
    }
    check_near(is(&p, "speed"), rpm, 0.5);
    return most;
}

static void load_machine_is_slow_near_standstill(void** state)
{
    const double fast = excursion(2000), slow = excursion(5);
    // symmetrical optimum with 3 ms: 100 N m/(0.33 kg m^2 111 1/s) = 26 1/min, of which it uses
    // most
    check(fast > 10 && fast < 35);
    check(slow > 40 && slow > 2 * fast); // from 5 1/min: it is not held at all
}

static void speed_follows_a_ramp_of_a_gear_shift(void** state)
{
    crdi_plant p = em_at(3000, 50, 360);
    double rpm = 3000, worst = 0;
    for (int i = 0; i < 250; i++) { // 3000 to 2000 1/min in 0.25 s
        rpm -= 4;
        set(&p, "speed_ref", rpm);
        crdi_plant_step(&p, 1e-3);
        worst = fmax(worst, fabs(is(&p, "speed") - rpm));
    }
    check(worst < 4000 * 0.02); // it is less than 20 ms late
    crdi_plant_step(&p, 0.15);
    check_near(is(&p, "speed"), 2000, 5);
}

static void torque_and_power_stay_in_the_envelope_whatever_is_asked_for(void** state)
{
    crdi_plant p;
    crdi_plant_init(&p, &crdi_plant_em, 1);
    uint32_t random = 12345;
    double limit = 0, worst = 0;
    for (int i = 0; i < 20000; i++) {
        if (i % 100 == 0) {
            double x[4];
            for (int k = 0; k < 4; k++) {
                random = random * 1664525u + 1013904223u;
                x[k] = (double)(random >> 8) / (1 << 24);
            }
            set(&p, "speed_ref", 6500 * x[0]);
            set(&p, "torque_ref", 800 * x[1] - 400);
            set(&p, "voltage_ref", 400 * x[2]);
            p.temperature[0] = 60 + 130 * x[3];
        }
        crdi_plant_step(&p, 1e-3);
        const double now = is(&p, "torque_max");
        worst =
            fmax(worst, fabs(is(&p, "torque_calc")) - fmax(now, limit)); // of this ms or the last
        limit = now;
        const double shaft = is(&p, "torque_calc") * is(&p, "speed") * M_PI / 30;
        check(fabs(is(&p, "torque_calc")) <= 250 + 1e-9);
        check(shaft < 85e3 * 1.1);
        check(is(&p, "voltage_dc") <= 20 || is(&p, "power_dc") >= shaft - 1e-6);
        check(is(&p, "voltage_dc") >= 0.05 * fabs(is(&p, "speed")) - 0.1);
    }
    check(worst < 1);
}

// ---- engine ------------------------------------------------------------------------------------

static void engine_gives_its_full_load_and_drags_without_pedal(void** state)
{
    static const double points[][2] = {{1200, 400}, {3000, 400}, {5000, 400}, {5800, 370.4}};
    crdi_plant p;
    crdi_plant_init(&p, &crdi_plant_ice, 1);
    for (int i = 0; i < 4; i++) {
        set(&p, "speed_ref", points[i][0]);
        set(&p, "pedal_ref", 100);
        crdi_plant_step(&p, 2);
        check_near(is(&p, "torque"), points[i][1], 0.5);
    }
    check_near(is(&p, "power_mech"), 225e3, 300); // 225 kW at 5800 1/min
    set(&p, "speed_ref", 3000);
    set(&p, "pedal_ref", 50);
    crdi_plant_step(&p, 2);
    const double drag = 3e-3 / (4 * M_PI) * 1.85e5;
    check_near(is(&p, "torque"), 0.5 * (400 + drag) - drag, 0.5);
    // Willans: (T + T_loss) w/e by 42.5 MJ/kg
    const double w = 100 * M_PI, e = 0.41 - 0.03 / 36;
    check_near(is(&p, "fuel"), 0.5 * (400 + drag) * w / e / 42.5e6, 1e-6);
    set(&p, "pedal_ref", 0);
    crdi_plant_step(&p, 2);
    check_near(is(&p, "torque"), -drag, 0.1);
    check_near(is(&p, "fuel"), 0, 1e-9);
}

static void torque_of_the_engine_comes_through_throttle_and_manifold(void** state)
{
    crdi_plant p;
    crdi_plant_init(&p, &crdi_plant_ice, 1);
    set(&p, "speed_ref", 2000);
    crdi_plant_step(&p, 2);
    const double from = is(&p, "torque_calc");
    set(&p, "pedal_ref", 50);
    // two lags of 50 and 80 ms: 1 + (50 exp(-t/50 ms) - 80 exp(-t/80 ms))/30
    const double t = 0.13, part = 1 + (50 * exp(-t / 0.05) - 80 * exp(-t / 0.08)) / 30;
    crdi_plant_step(&p, t);
    const double now = is(&p, "torque_calc");
    crdi_plant_step(&p, 2);
    check_near((now - from) / (is(&p, "torque_calc") - from), part, 0.01);
}

static void media_of_the_engine_come_to_their_temperatures(void** state)
{
    crdi_plant p;
    crdi_plant_init(&p, &crdi_plant_ice, 1);
    set(&p, "speed_ref", 800);
    set(&p, "coolant_ref", 90);
    set(&p, "oil_ref", 90);
    p.thermal_scale = 50;
    crdi_plant_step(&p, 30);
    check_near(is(&p, "coolant_in"), 90, 0.5);
    check_near(is(&p, "oil"), 90, 0.5);
    set(&p, "speed_ref", 4000); // and stay there at load
    set(&p, "pedal_ref", 50);
    crdi_plant_step(&p, 30);
    check_near(is(&p, "coolant_in"), 90, 4);
    check(is(&p, "coolant_out") > is(&p, "coolant_in") + 1);
}

// ---- back to back ------------------------------------------------------------------------------

static void small_motors_have_the_numbers_of_table_6_1(void** state)
{
    crdi_plant p;
    crdi_plant_init(&p, &crdi_plant_back_to_back, 1);
    set(&p, "voltage_ref", 35);
    crdi_plant_step(&p, 0.5);
    set(&p, "speed_ref", 4200);
    crdi_plant_step(&p, 0.5);
    set(&p, "torque_ref", 8.81 * 48.6e-3); // the nominal current
    crdi_plant_step(&p, 0.5);
    check_near(is(&p, "current"), 8.81, 1e-3);
    check_near(is(&p, "speed"), 4200, 0.1);
    // no-load current 726 mA: what is lost on the way to the shaft
    const double torque = (8.81 - 0.726) * 48.6e-3, w = 140 * M_PI;
    check_near(is(&p, "torque"), torque, 1e-4);
    check_near(is(&p, "power_mech"), torque * w, 0.1);
    check(is(&p, "power_mech") > 165 && is(&p, "power_mech") < 185); // nominal: 180 W
    // The load gives it back: the supply pays friction and copper only.
    const double i_load = (8.81 - 2 * 0.726);
    const double paid = 2 * 0.726 * 48.6e-3 * w + 44.7e-3 * (8.81 * 8.81 + i_load * i_load);
    check_near(is(&p, "power_dc"), paid, 0.2);
    set(&p, "voltage_ref", 4200 * 5.076e-3 + 44.7e-3 * 5); // drives 5 A and no more
    crdi_plant_step(&p, 0.5);
    check_near(is(&p, "current"), 5, 0.01);
    set(&p, "speed_ref", -3000); // turns both ways
    crdi_plant_step(&p, 0.5);
    check_near(is(&p, "speed"), -3000, 0.5);
}

// ---- measurement, determinism ------------------------------------------------------------------

static void noise_has_its_deviation_and_mean_and_values_their_steps(void** state)
{
    crdi_plant p = em_at(2000, 80, 350);
    const int i = at(&p, "torque_calc"); // 0.2 N m, no low-pass
    double sum = 0, squares = 0;
    enum { COUNT = 20000 };
    for (int k = 0; k < COUNT; k++) {
        crdi_plant_step(&p, 1e-3);
        const double x = p.measured[i] - p.value[i];
        sum += x;
        squares += x * x;
        check_near(p.measured[i] / 0.05, nearbyint(p.measured[i] / 0.05), 1e-9);
    }
    const double deviation = sqrt(0.2 * 0.2 + 0.05 * 0.05 / 12);
    check_near(sum / COUNT, 0, 5 * deviation / sqrt(COUNT));
    check_near(sqrt(squares / COUNT), deviation, 0.03 * deviation);
}

static void measured_torque_is_late_by_its_dead_time(void** state)
{
    crdi_plant p = em_at(2000, 0, 350);
    set(&p, "torque_ref", 100);
    const int i = at(&p, "torque");
    int ms = 0;
    while (p.measured[i] < 50 && ms < 100) {
        crdi_plant_step(&p, 1e-3);
        ms++;
    }
    // lags of 2 ms (torque) and 2 ms (low-pass) have half of a step after 3.4 ms; 20 ms behind
    check(ms >= 22 && ms <= 26);
    p = em_at(2000, 0, 350);
    p.ideal = true;
    set(&p, "torque_ref", 100);
    crdi_plant_step(&p, 5e-3);
    check_near(p.measured[i], p.value[i], 0);
    check(p.measured[i] > 50);
}

static void equal_seeds_give_equal_bits_and_others_do_not(void** state)
{
    crdi_plant a, b, c;
    crdi_plant_init(&a, &crdi_plant_em, 7);
    crdi_plant_init(&b, &crdi_plant_em, 7);
    crdi_plant_init(&c, &crdi_plant_em, 8);
    for (int k = 0; k < 300; k++) {
        set(&a, "speed_ref", 10 * k);
        set(&b, "speed_ref", 10 * k);
        set(&c, "speed_ref", 10 * k);
        crdi_plant_step(&a, 1e-3); // 10 steps of the controller
        crdi_plant_step(&c, 1e-3);
        crdi_plant_step(&b, 0.4e-3); // the same in two parts
        crdi_plant_step(&b, 0.6e-3);
    }
    check(memcmp(a.measured, b.measured, sizeof a.measured) == 0);
    check(memcmp(a.measured, c.measured, sizeof a.measured) != 0);
    check(memcmp(a.value, c.value, sizeof a.value) == 0); // the machines know nothing of noise
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_a_steady_point_are_those_of_the_loss_formula),
        cmocka_unit_test(torque_has_the_envelope_of_peak_torque_power_and_voltage),
        cmocka_unit_test(winding_derates_the_torque_from_140_degC_on),
        cmocka_unit_test(forty_kilowatts_are_continuous_and_eighty_five_are_not),
        cmocka_unit_test(oil_takes_the_times_of_table_3),
        cmocka_unit_test(oil_gets_as_cold_as_a_start_in_winter),
        cmocka_unit_test(oil_is_held_within_a_kelvin_under_load),
        cmocka_unit_test(load_machine_is_slow_near_standstill),
        cmocka_unit_test(speed_follows_a_ramp_of_a_gear_shift),
        cmocka_unit_test(torque_and_power_stay_in_the_envelope_whatever_is_asked_for),
        cmocka_unit_test(engine_gives_its_full_load_and_drags_without_pedal),
        cmocka_unit_test(torque_of_the_engine_comes_through_throttle_and_manifold),
        cmocka_unit_test(media_of_the_engine_come_to_their_temperatures),
        cmocka_unit_test(small_motors_have_the_numbers_of_table_6_1),
        cmocka_unit_test(noise_has_its_deviation_and_mean_and_values_their_steps),
        cmocka_unit_test(measured_torque_is_late_by_its_dead_time),
        cmocka_unit_test(equal_seeds_give_equal_bits_and_others_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
