// Rodriguez Frade 2021, section 6.3: the bench of 200 kW, and the duty of section 6.4.
#include "reproduce/rodriguez2021_ch6.h"
#include "shared/testbench.h"

#include <stdio.h>

static const double none = NAN;

// Warm, and at a speed, with the torque that is asked for.
static void bring_up(crdi_ch6_bench* b, double voltage, double rpm)
{
    crdi_ch6_set(b, "coolant_ref", 65);
    crdi_ch6_set(b, "voltage_ref", voltage);
    crdi_ch6_set(b, "speed_ref", rpm);
    crdi_testbench_step(b->b, 2 + rpm / 1100);
}

// Section 6.3: what the bench can do, and what its supply, resistor and limits see of it.
static crd_status bench_data(crdi_reproduction* r)
{
    static const char* const names[] = {"torque_calc", "current", "power_mech", "power_supply",
                                        "voltage_dc"};
    enum { TORQUE, CURRENT, POWER, SUPPLY, VOLTAGE, COUNT };
    crd_status st = CRD_OK;
    crdi_ch6_bench b = {0};
    double low, full[COUNT], high[COUNT], resistor = 0;
    CRD_TRY(crdi_ch6_open(r->ctx, CRDI_TESTBENCH_TRACTION, false, &b));
    bring_up(&b, 270, 1000);
    crdi_ch6_mean(&b, 1, &names[VOLTAGE], 1, &low);
    bring_up(&b, 400, 4750); // of its peak power at 4775 1/min
    crdi_ch6_set(&b, "torque_ref", 400);
    crdi_testbench_step(b.b, 0.5);
    crdi_ch6_mean(&b, 1, names, COUNT, full);
    crdi_ch6_set(&b, "torque_ref", 0);
    crdi_testbench_step(b.b, 1);
    bring_up(&b, 400, 18000);
    crdi_ch6_mean(&b, 1, (const char* const[]){"speed"}, 1, high);
    crdi_ch6_set(&b, "speed_ref", 0);
    double most_voltage = 0;
    for (int i = 0; i < 18000; i++) {
        crdi_testbench_step(b.b, 1e-3);
        resistor = fmax(resistor, crdi_ch6_true(&b, "power_resistor"));
        most_voltage = fmax(most_voltage, crdi_ch6_true(&b, "voltage_dc"));
    }
    const crdi_claim rows[] = {
        CRDI_WITHIN(200, 1e-3 * full[POWER], 199, 0.01, .id = "bench.power",
                    .what = "200 kW bench: shaft at 4750 rpm and full torque, kW"),
        CRDI_WITHIN(400, full[TORQUE], 400, 0.005, .id = "bench.torque",
                    .what = "200 kW bench: torque, N.m"),
        CRDI_WITHIN(550, full[CURRENT], 550, 0.005, .id = "bench.current",
                    .what = "200 kW bench: phase current at full torque, A"),
        CRDI_WITHIN(18000, high[0], 18000, 1e-3, .id = "bench.speed",
                    .what = "200 kW bench: speed, rpm"),
        CRDI_WITHIN(270, low, 270, 2e-3, .id = "bench.voltage.low",
                    .what = "200 kW bench: DC link held at its lower end, V"),
        CRDI_WITHIN(400, full[VOLTAGE], 400, 2e-3, .id = "bench.voltage.high",
                    .what = "200 kW bench: DC link held at its upper end, V"),
        CRDI_AT_MOST(54, 1e-3 * full[SUPPLY], none, .id = "bench.supply",
                     .what = "200 kW bench: supply at 200 kW of the shaft, kW",
                     .remark = "losses only: the load gives the rest back"),
        CRDI_AT_MOST(3, 1e-3 * resistor, none, .id = "bench.resistor",
                     .what = "200 kW bench: braking resistor from 18000 rpm to rest, kW"),
        CRDI_WITHIN(none, 1e-3 * resistor, 2.32, 0.1, .id = "bench.resistor.needed",
                    .what = "200 kW bench: what the resistor has to take at 1100 rpm/s, kW",
                    .remark = "the largest of J w w' less iron, friction and inverters"),
        CRDI_AT_MOST(none, most_voltage, 415, .id = "bench.resistor.link",
                     .what = "200 kW bench: DC link meanwhile, V",
                     .remark = "set to 400 V; the resistor is at its end at 415 V"),
    };
    CRD_TRY(crdi_claims_add(r, rows, sizeof rows / sizeof *rows));
fail:
    crdi_ch6_close(&b);
    return st;
}

// ---- continuous duty ---------------------------------------------------------------------------

enum { DUTY_ROWS = 120, DUTY = 600 };

// 100 kW for 10 min, the longest that section 6.4 has, from a motor that is as warm as its coolant.
static crd_status continuous_duty(crdi_reproduction* r)
{
    static const char* const watts[] = {"power_dc", "power_ac", "torque_calc"};
    static const char* const names[] = {"t [s]", "winding [degC]", "coolant [degC]", "tank [degC]"};
    crd_status st = CRD_OK;
    crdi_ch6_bench b = {0};
    double see[DUTY_ROWS][4], least = INFINITY, most = 0, cold = INFINITY, hot = 0, end[3];
    CRD_TRY(crdi_ch6_open(r->ctx, CRDI_TESTBENCH_TRACTION, false, &b));
    crdi_ch6_set(&b, "coolant_ref", 65);
    crdi_testbench_step(b.b, 7200); // everything as warm as its coolant, standing
    crdi_ch6_set(&b, "voltage_ref", 380);
    bring_up(&b, 380, 4775);
    crdi_ch6_set(&b, "torque_ref", 200);
    for (int i = 0; i < DUTY_ROWS; i++) {
        crdi_testbench_step(b.b, (double)DUTY / DUTY_ROWS);
        const double coolant = crdi_ch6_true(&b, "coolant_in") + 273.15;
        const double tank = crdi_ch6_true(&b, "tank") + 273.15;
        const double row[4] = {(i + 1) * (double)DUTY / DUTY_ROWS, crdi_ch6_true(&b, "temperature"),
                               coolant - 273.15, tank - 273.15};
        for (int k = 0; k < 4; k++) {
            see[i][k] = row[k];
        }
        least = fmin(least, coolant);
        most = fmax(most, coolant);
        cold = fmin(cold, tank);
        hot = fmax(hot, tank);
    }
    const double winding = crdi_ch6_true(&b, "temperature");
    crdi_ch6_mean(&b, 1, watts, 3, end);
    const double efficiency = end[2] * 4775 * M_PI / 30 / end[0];
    const crdi_claim rows[] = {
        CRDI_NEAR(none, winding, 120.5585, 0.5, .id = "s1.winding",
                  .what = "100 kW for 10 min: winding, degC"),
        CRDI_WITHIN(none, end[0], 103189.5, 2e-3, .id = "s1.dc",
                    .what = "100 kW: wattmeter before the inverter, W"),
        CRDI_WITHIN(none, end[1], 101987.6, 2e-3, .id = "s1.ac",
                    .what = "100 kW: wattmeter behind the inverter, W"),
        CRDI_NEAR(none, efficiency, 100007.4 / 103189.5, 2e-3, .id = "s1.efficiency",
                  .what = "100 kW: of motor and inverter"),
        CRDI_AT_LEAST(330, least, none, .id = "s1.coolant.low",
                      .what = "100 kW for 10 min: coolant of the motor, least, K"),
        CRDI_AT_MOST(350, most, none, .id = "s1.coolant.high",
                     .what = "100 kW for 10 min: coolant of the motor, most, K"),
        CRDI_AT_LEAST(295, cold, none, .id = "s1.tank.low",
                      .what = "100 kW for 10 min: tank, least, K"),
        CRDI_AT_MOST(305, hot, none, .id = "s1.tank.high",
                     .what = "100 kW for 10 min: tank, most, K"),
    };
    CRD_TRY(crdi_claims_add(r, rows, sizeof rows / sizeof *rows));
    CRD_TRY(crdi_figure_add(
        r, &CRDI_FIGURE("s1", "continuous duty, 100 kW at 4775 rpm", 4, names, DUTY_ROWS, see[0])));
fail:
    crdi_ch6_close(&b);
    return st;
}

// ---- a driving cycle (Fig. 6.13) ---------------------------------------------------------------

enum { CYCLE_STEP_MS = 10, CYCLE_ROWS = 590 };

// A car of 1900 kg with one gear of 10: torque and speed of its motor. The cycle is the NEDC, which
// needs no file.
static void motor_of_car(const crdi_cycle* c, double t, double* torque, double* rpm)
{
    static const double mass = 1957, radius = 0.33, gear = 10, efficiency = 0.97;
    const double v = crdi_cycle_speed(c, t), h = 0.25;
    const double a = (crdi_cycle_speed(c, t + h) - crdi_cycle_speed(c, t - h)) / (2 * h);
    const double road = v > 0.1 ? 165 + 1.6 * v + 0.4 * v * v : 0;
    const double wheel = (mass * a + road) * radius / gear;
    *torque = wheel * (wheel > 0 ? 1 / efficiency : efficiency);
    *rpm = v / radius * gear * 30 / M_PI;
}

typedef struct duty {
    double motor, generator, rpm;            // largest, N m, N m, 1/min
    double supply, resistor, voltage, error; // W, W, V, N m
    double shaft, fed;                       // J through the shaft, out of the supply
    double see[CYCLE_ROWS][4];
} duty;

static crd_status drive_cycle(crdi_reproduction* r, const crdi_cycle* c, duty* d)
{
    crdi_ch6_bench b = {0};
    const crd_status st = crdi_ch6_open(r->ctx, CRDI_TESTBENCH_TRACTION, false, &b);
    if (st < 0) { return st; }
    const int steps = (int)(c->time[c->count - 1] * 1000 / CYCLE_STEP_MS), row = steps / CYCLE_ROWS;
    bring_up(&b, 380, 0);
    for (int i = 0; i < steps; i++) {
        double torque, rpm;
        motor_of_car(c, i * 1e-3 * CYCLE_STEP_MS, &torque, &rpm);
        crdi_ch6_set(&b, "torque_ref", torque);
        crdi_ch6_set(&b, "speed_ref", rpm);
        crdi_testbench_step(b.b, 1e-3 * CYCLE_STEP_MS);
        const double got = crdi_ch6_true(&b, "torque_calc"), h = 1e-3 * CYCLE_STEP_MS;
        d->motor = fmax(d->motor, got);
        d->generator = fmax(d->generator, -got);
        d->rpm = fmax(d->rpm, crdi_ch6_true(&b, "speed"));
        d->supply = fmax(d->supply, crdi_ch6_true(&b, "power_supply"));
        d->resistor = fmax(d->resistor, crdi_ch6_true(&b, "power_resistor"));
        d->voltage = fmax(d->voltage, crdi_ch6_true(&b, "voltage_dc"));
        d->shaft += h * fabs(crdi_ch6_true(&b, "power_mech"));
        d->fed += h * crdi_ch6_true(&b, "power_supply");
        if ((i + 1) % row == 0 && (i + 1) / row <= CYCLE_ROWS) {
            double* at = d->see[(i + 1) / row - 1];
            at[0] = (i + 1) * h;
            at[1] = crdi_ch6_measured(&b, "torque");
            at[2] = crdi_ch6_measured(&b, "speed");
            at[3] = crdi_ch6_true(&b, "temperature");
        }
    }
    crdi_ch6_close(&b);
    return CRD_OK;
}

static crd_status driving_cycle(crdi_reproduction* r)
{
    static const char* const names[] = {"t [s]", "torque [N.m]", "speed [rpm]", "winding [degC]"};
    crd_status st = CRD_OK;
    const crdi_cycle* c = NULL;
    duty* d = crdi_arena_new(&r->arena, 1, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_cycle_create(r->ctx, &(crdi_cycle_source){.name = "nedc"}, &c));
    CRD_TRY(drive_cycle(r, c, d));
    const double top = 120 / 3.6 / 0.33 * 10 * 30 / M_PI;
    const crdi_claim rows[] = {
        CRDI_AT_LEAST(none, d->motor, 50, .id = "fig6.13.motor",
                      .what = "NEDC on the 200 kW bench: largest torque as a motor, N.m",
                      .remark = "the figure's cycle is the WLTC, its car is not told"),
        CRDI_AT_LEAST(none, d->generator, 50, .id = "fig6.13.generator",
                      .what = "NEDC on the 200 kW bench: largest torque as a generator, N.m"),
        CRDI_WITHIN(none, d->rpm, top, 0.01, .id = "fig6.13.speed",
                    .what = "NEDC on the 200 kW bench: largest speed, rpm"),
        CRDI_AT_MOST(54, 1e-3 * d->supply, none, .id = "fig6.13.supply",
                     .what = "NEDC on the 200 kW bench: largest power of the supply, kW"),
        CRDI_AT_MOST(3, 1e-3 * d->resistor, none, .id = "fig6.13.resistor",
                     .what = "NEDC on the 200 kW bench: largest power of the braking resistor, kW"),
        CRDI_AT_MOST(none, d->voltage, 395, .id = "fig6.13.link",
                     .what = "NEDC on the 200 kW bench: DC link, set to 380 V, V"),
        CRDI_AT_MOST(none, d->fed / d->shaft, 0.5, .id = "fig6.13.fed",
                     .what = "NEDC on the 200 kW bench: energy of the supply, of that of the shaft",
                     .remark = "section 6.1: the grid gives losses and changes only"),
    };
    CRD_TRY(crdi_claims_add(r, rows, sizeof rows / sizeof *rows));
    CRD_TRY(crdi_figure_add(r, &CRDI_FIGURE("fig6.13", "a driving cycle on the 200 kW bench", 4,
                                            names, CYCLE_ROWS, d->see[0])));
fail:
    crdi_cycle_destroy(r->ctx, c);
    return st;
}

crd_status crdi_ch6_traction(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    CRD_TRY(bench_data(r));
    CRD_TRY(continuous_duty(r));
    CRD_TRY(driving_cycle(r));
fail:
    return st;
}
