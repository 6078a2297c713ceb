// Rautenberg et al. 2023: two coupled test benches, an engine's and an electric machine's, in one
// hybrid car on the WLTC; the states of master and slave (Fig. 7, Table 7), speeds and torques
// (Figs. 8 to 10), the signals (Tables 5, 6), and the oil that gearbox and machine share.
//
// The figures are printed without numbers: a curve that covers another one is taken for less than
// the width of a line, 1 % of the range of the signal.
#include "reproduce/rautenberg2023.h"
#include "reproduce/papers.h"

#include "shared/testbench_bench.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STEP 0.01       // s
#define RPM (30 / M_PI) // of rad/s
#define LINE 0.01       // width of a line, of the range
#define PART 1022.0     // s: where the third part of the WLTC begins, from standstill
#define PART_SECONDS 120.0
#define CYCLE_SECONDS 1800.0
#define ZERO 273.15 // K

enum { BOOST = 4, LOAD_POINT = 5 }; // modes of the controller

// ---- equations (1) and (2) ---------------------------------------------------------------------

typedef struct deviation {
    double dt;         // s: equation (1), by which y2 is later, where the two fit best
    double rms, range; // equation (2): of y2(t) - y1(t); range of y1
    double covered;    // part of the time in which |y2(t) - y1(t)| is below the width of a line
} deviation;

static double mean_square(const double* y1, const double* y2, int64_t rows, int lag, double gain)
{
    double sum = 0;
    for (int64_t i = 0; i + lag < rows; i++) {
        const double e = y2[i + lag] - gain * y1[i];
        sum += e * e;
    }
    return sum / (double)(rows - lag);
}

// The best lag is the vertex of the parabola through the smallest mean square and its neighbours.
static deviation deviation_of(const double* y1, const double* y2, int64_t rows, double gain)
{
    enum { LAGS = 12 };
    double q[LAGS], low = INFINITY, high = -INFINITY;
    int best = 0;
    for (int k = 0; k < LAGS; k++) {
        q[k] = mean_square(y1, y2, rows, k, gain);
        if (q[k] < q[best]) { best = k; }
    }
    for (int64_t i = 0; i < rows; i++) {
        low = fmin(low, gain * y1[i]);
        high = fmax(high, gain * y1[i]);
    }
    double shift = 0;
    if (best > 0 && best < LAGS - 1) {
        const double a = q[best - 1], b = q[best], c = q[best + 1];
        shift = a - 2 * b + c > 0 ? 0.5 * (a - c) / (a - 2 * b + c) : 0;
    }
    int64_t covered = 0;
    for (int64_t i = 0; i < rows; i++) {
        covered += fabs(y2[i] - gain * y1[i]) <= LINE * (high - low);
    }
    return (deviation){(best + shift) * STEP, sqrt(q[0]), high - low,
                       (double)covered / (double)rows};
}

// Printed are two curves which look like one; of torques section 4.2 says that they differ where
// there are peaks.
static crd_status follows(crdi_reproduction* r, const char* family, const char* subject,
                          const deviation* d, const char* unit)
{
    crd_status st = CRD_OK;
    char what[96], remark[96];
    snprintf(what, sizeof what, "delta y of set and actual, RMS, %s", unit);
    snprintf(remark, sizeof remark, "%.2g %% of its range; printed without numbers",
             100 * d->rms / d->range);
    CRD_TRY(
        crdi_claim_row(r, family, "dy", subject, what, CRDI_SHOWN(NAN, d->rms, .remark = remark)));
    CRD_TRY(crdi_claim_row(
        r, family, "line", subject, "part of the time with delta y below the width of a line",
        CRDI_AT_LEAST(NAN, d->covered, 0.9, .remark = "1 % of the range; but for peaks")));
    CRD_TRY(crdi_claim_row(r, family, "dt", subject, "delta t of set and actual, s",
                           CRDI_AT_MOST(NAN, d->dt, 0.05,
                                        .remark = "communication, filter and controller; printed "
                                                  "as small")));
fail:
    return st;
}

// ---- what a drive shows ------------------------------------------------------------------------

static double total(const double* y, int64_t rows)
{
    double sum = 0;
    for (int64_t i = 0; i < rows; i++) {
        sum += y[i];
    }
    return sum * STEP;
}

// Figs. 8 and 9.
static crd_status machine_rows(crdi_reproduction* r, const char* id, const char* how,
                               const crdi_drive* d)
{
    crd_status st = CRD_OK;
    char family[64];
    const double *ref = crdi_drive_column(d, "controller.machine_torque"),
                 *act = crdi_drive_column(d, "em.torque_calc"),
                 *most = crdi_drive_column(d, "em.torque_max");
    const deviation n = deviation_of(crdi_drive_column(d, "clutch.machine_speed_ref"),
                                     crdi_drive_column(d, "em.speed"), d->rows, RPM);
    const deviation t = deviation_of(ref, act, d->rows, 1);
    const deviation dead = deviation_of(act, crdi_drive_column(d, "em.torque"), d->rows, 1);
    double beyond = 0, asked = 0;
    for (int64_t i = 0; i < d->rows; i++) {
        beyond += fabs(act[i]) > most[i] + 1; // five deviations of its noise
        asked += fabs(ref[i]) > most[i] + 1;
    }
    snprintf(family, sizeof family, "fig8.%s", id);
    CRD_TRY(follows(r, family, how, &n, "1/min"));
    snprintf(family, sizeof family, "fig9.%s", id);
    CRD_TRY(follows(r, family, how, &t, "N.m"));
    CRD_TRY(crdi_claim_row(r, family, "max", how, "samples with more than the maximum torque",
                           CRDI_NEAR(0, beyond, NAN, 0)));
    CRD_TRY(crdi_claim_row(
        r, family, "ref", how, "share of set values above the maximum torque",
        CRDI_AT_MOST(NAN, asked / (double)d->rows, 0.01,
                     .remark = "the controller knows the maximum of the step before")));
    CRD_TRY(crdi_claim_row(r, family, "dead", how, "measured behind calculated torque, s",
                           CRDI_NEAR(NAN, dead.dt, 0.022, 0.004,
                                     .remark = "dead time 20 ms and lag 2 ms of the power meter; "
                                               "section 4.3 names it, without a number")));
fail:
    return st;
}

// Fig. 10: what the pedal asks beyond the cap of 50 % comes from the machine; lifted load points
// charge.
static crd_status engine_rows(crdi_reproduction* r, const char* id, const char* how,
                              const crdi_drive* d)
{
    crd_status st = CRD_OK;
    char family[64];
    const double *mode = crdi_drive_column(d, "controller.mode"),
                 *machine = crdi_drive_column(d, "controller.machine_torque"),
                 *pedal = crdi_drive_column(d, "clutch.pedal_ref");
    double cap = 0, boosts = 0, gives = 0, lifts = 0, takes = 0;
    for (int64_t i = 0; i < d->rows; i++) {
        cap = fmax(cap, 100 * pedal[i]);
        boosts += mode[i] == BOOST;
        gives += mode[i] == BOOST && machine[i] > 0;
        lifts += mode[i] == LOAD_POINT;
        takes += mode[i] == LOAD_POINT && machine[i] <= 0;
    }
    const deviation n = deviation_of(crdi_drive_column(d, "clutch.speed_ref"),
                                     crdi_drive_column(d, "ice.speed"), d->rows, RPM);
    snprintf(family, sizeof family, "fig10.%s", id);
    CRD_TRY(crdi_claim_row(r, family, "cap", how, "largest throttle of the engine, %",
                           CRDI_AT_MOST(50, cap, NAN, .tolerance = 1e-9)));
    CRD_TRY(crdi_claim_row(r, family, "boost", how, "share of boost in which the machine helps",
                           CRDI_AT_LEAST(NAN, boosts > 0 ? gives / boosts : 1, 0.9)));
    CRD_TRY(crdi_claim_row(r, family, "lift", how, "share of lifted load points that charge",
                           CRDI_AT_LEAST(NAN, lifts > 0 ? takes / lifts : 1, 0.9)));
    CRD_TRY(crdi_claim_row(r, family, "speed", how, "engine: delta t of set and actual speed, s",
                           CRDI_AT_MOST(NAN, n.dt, 0.08)));
fail:
    return st;
}

// Against the same machines without a network.
static crd_status against_local(crdi_reproduction* r, const char* id, const char* how,
                                const crdi_drive* d, const crdi_drive* local)
{
    crd_status st = CRD_OK;
    const int64_t last = d->rows - 1;
    const double fuel = total(crdi_drive_column(d, "ice.fuel"), d->rows),
                 fuel_local = total(crdi_drive_column(local, "ice.fuel"), local->rows);
    const double *set = crdi_drive_column(d, "oil.inlet"), *is = crdi_drive_column(d, "em.oil_in");
    double off = 0;
    for (int64_t i = 500; i <= last; i++) { // 5 s: conditioning has left it within 1 K
        off = fmax(off, fabs(set[i] - ZERO - is[i]));
    }
    CRD_TRY(crdi_claim_row(r, id, "fuel", how, "fuel, kg",
                           CRDI_WITHIN(NAN, fuel, fuel_local, 0.005,
                                       .remark = "reference: the same machines without network")));
    CRD_TRY(crdi_claim_row(r, id, "soc", how, "state of charge at the end",
                           CRDI_WITHIN(NAN, crdi_drive_column(d, "battery.soc")[last],
                                       crdi_drive_column(local, "battery.soc")[local->rows - 1],
                                       0.005)));
    CRD_TRY(crdi_claim_row(r, id, "oil", how, "oil of the machine's bench off its set value, K",
                           CRDI_AT_MOST(NAN, off, 1.5)));
fail:
    return st;
}

// What the guard of the run said of its loops: told, not judged.
static crd_status guard_row(crdi_reproduction* r, const char* id, const char* how,
                            const crdi_drive* d)
{
    return crdi_claim_row(r, id, "guard", how, "state of the guard",
                          CRDI_SHOWN(NAN, d->guard, .remark = d->guard_text));
}

static crd_status account_rows(crdi_reproduction* r, const char* id, const char* how,
                               const crdi_drive* d, bool clock)
{
    crd_status st = CRD_OK;
    const crdi_drive_account *a = &d->benches[CRDI_DRIVE_ICE], *b = &d->benches[CRDI_DRIVE_EM];
    CRD_TRY(crdi_claim_row(r, id, "unknown", how, "PDUs without account",
                           CRDI_NEAR(NAN, a->unknown + b->unknown, 0, 0)));
    CRD_TRY(
        crdi_claim_row(r, id, "lost", how, "PDUs lost", CRDI_NEAR(NAN, a->lost + b->lost, 0, 0)));
    if (!clock) { return CRD_OK; }
    char remark[160];
    snprintf(remark, sizeof remark,
             "woken late: %lld, behind another: %lld, the others are not attributed; the worst "
             "%.2g ms late, longest work %.2g ms",
             (long long)d->woken, (long long)d->behind, 1e3 * d->worst, 1e3 * d->busiest);
    CRD_TRY(crdi_claim_row(
        r, id, "overruns", how, "overruns",
        CRDI_SHOWN(NAN, (double)d->overruns, .remark = d->overruns > 0 ? remark : "")));
    CRD_TRY(crdi_claim_row(
        r, id, "latency", how, "mean age of a bench's data, s",
        CRDI_AT_MOST(3e-3, fmax(a->age, b->age), NAN, .remark = "section 3.4: at most 3 ms")));
    CRD_TRY(crdi_claim_row(r, id, "late", how, "late steps of the benches' processes",
                           CRDI_SHOWN(NAN, a->late + b->late, .remark = "not attributed")));
fail:
    return st;
}

// ---- states ------------------------------------------------------------------------------------

static const char* const master_states[] = {
    "REGISTER", "CONFIGURE", "APPLY", "INITIALIZE", "SEND_I", "RUN", "SEND_D", "STOP", "STOPPED"};

static double first_time(const crd_table* t, const char* column, int state)
{
    const crd_table_column* c = &t->columns[crd_table_find(t, column)];
    for (int64_t i = 0; i < c->rows; i++) {
        if (c->values[i] == state) { return c->time[i]; }
    }
    return NAN;
}

// How many of these were entered, one behind the other.
static crd_status state_rows(crdi_reproduction* r, const crd_table* t, const char* who,
                             const int* order, int count)
{
    crd_status st = CRD_OK;
    char column[32], family[32], last[32];
    int entered = 0;
    double before = 0;
    const bool master = strcmp(who, "master") == 0;
    snprintf(column, sizeof column, "%s.state", who);
    snprintf(family, sizeof family, "fig7.%s", who);
    for (int i = 0; i < count; i++) {
        const char* name = master ? master_states[order[i]] : crd_dcp_state_name(order[i]);
        const double at = first_time(t, column, order[i]);
        entered += at >= before;
        before = at;
        snprintf(last, sizeof last, "%d", order[i]);
        CRD_TRY(crdi_claim_row(r, family, last, who, name,
                               CRDI_SHOWN(NAN, at,
                                          .remark = "s of the session; conditioning is "
                                                    "500 times faster than life")));
    }
    CRD_TRY(crdi_claim_row(r, family, "order", who, "states of the run entered in their order",
                           CRDI_NEAR(count, entered, NAN, 0)));
fail:
    return st;
}

static crd_status states(crdi_reproduction* r, const crdi_drive* d)
{
    static const int master[] = {0, 1, 2, 3, 5, 7}, slave[] = {0, 1, 2, 3, 4, 5, 11, 15, 16};
    static const char* const printed[] = {
        "ALIVE",        "CONFIGURATION", "PREPARING",     "PREPARED",     "CONFIGURING",
        "CONFIGURED",   "INITIALIZING",  "INITIALIZED",   "SENDING_I",    "SYNCHRONIZING",
        "SYNCHRONIZED", "RUNNING",       "COMPUTING",     "COMPUTED",     "SENDING_D",
        "STOPPING",     "STOPPED",       "ERRORHANDLING", "ERRORRESOLVED"};
    crd_status st = CRD_OK;
    int same = 0;
    for (int i = 0; i < 19; i++) {
        same += strcmp(crd_dcp_state_name(i), printed[i]) == 0;
    }
    const double ready =
        fmax(first_time(d->session, "ice.state", 5), first_time(d->session, "em.state", 5));
    CRD_TRY(state_rows(r, d->session, "master", master, 6));
    CRD_TRY(state_rows(r, d->session, "ice", slave, 9));
    CRD_TRY(state_rows(r, d->session, "em", slave, 9));
    CRD_TRY(crdi_claim_row(
        r, "fig7", "wait", "master", "s from the last bench's CONFIGURED to INITIALIZE",
        CRDI_AT_LEAST(NAN, first_time(d->session, "master.state", 3) - ready, 0)));
    CRD_TRY(crdi_claim_row(r, "table7", "slave", "slave", "states with their names and numbers",
                           CRDI_NEAR(19, same, NAN, 0)));
fail:
    return st;
}

// Tables 5 and 6: what has no name here is what the protocol itself has (ids, numbers, types).
static crd_status signals(crdi_reproduction* r)
{
    static const char* const down[] = {"torque_ref", "speed_ref", "voltage_ref", "oil_ref"};
    static const char* const up[] = {"voltage_dc",      "torque",           "torque_max",
                                     "temperature_max", "temperature_mean", "power_dc",
                                     "power_ac",        "power_mech",       "power_max",
                                     "oil_in",          "oil_out",          "current_dc"};
    int downs = 0, ups = 0;
    for (size_t i = 0; i < 4; i++) {
        downs += crdi_testbench_find(CRDI_TESTBENCH_EM, down[i]) >= 0;
    }
    for (size_t i = 0; i < 12; i++) {
        ups += crdi_testbench_find(CRDI_TESTBENCH_EM, up[i]) >= 0;
    }
    crd_status st = crdi_claim_row(r, "table5", "signals", "machine's bench", "set values",
                                   CRDI_NEAR(4, downs, NAN, 0));
    if (st < 0) { return st; }
    return crdi_claim_row(r, "table6", "signals", "machine's bench", "measured values",
                          CRDI_NEAR(12, ups, NAN, 0));
}

// ---- heat --------------------------------------------------------------------------------------

static double reaches(const double* y, int64_t rows, double value)
{
    for (int64_t i = 0; i < rows; i++) {
        if (y[i] >= value) { return (double)i * STEP; }
    }
    return NAN;
}

// Independent of the netlist: gearbox, sump and pipes as one body, cooler closed,
//   28.5 kJ/K T' = Q_gearbox + Q_machine - (5 + 0.5 v) (T - T_air)
static double lumped(const crdi_drive* d, double start, double air, double value)
{
    const double *gear = crdi_drive_column(d, "vehicle.heat"),
                 *machine = crdi_drive_column(d, "oil.machine"),
                 *v = crdi_drive_column(d, "vehicle.speed");
    double t = start;
    for (int64_t i = 0; i < d->rows; i++) {
        if (t >= value) { return (double)i * STEP; }
        t += STEP * (gear[i] + machine[i] - (5 + 0.5 * v[i]) * (t - air)) / 28.5e3;
    }
    return NAN;
}

static crd_status heat(crdi_reproduction* r, const crdi_drive* d, const char* id, const char* how)
{
    const int64_t last = d->rows - 1;
    const double* stored = crdi_drive_column(d, "oil.stored");
    const double in = crdi_drive_column(d, "vehicle.energy_gearbox")[last] +
                      total(crdi_drive_column(d, "oil.machine"), d->rows);
    const double out = total(crdi_drive_column(d, "oil.lost"), d->rows) + stored[last] - stored[0];
    return crdi_claim_row(r, id, "balance", how, "oil: heat that is not accounted for, part of all",
                          CRDI_AT_MOST(NAN, fabs(in - out) / fabs(in), 1e-3));
}

static void set_bench(crdi_testbench* b, const char* name, double value)
{
    crdi_testbench_set(b, crdi_testbench_find(CRDI_TESTBENCH_EM, name), value);
}

// Minutes until a signal passes a value; an hour at most.
static double minutes_to(crdi_testbench* b, const char* name, double value)
{
    const int i = crdi_testbench_find(CRDI_TESTBENCH_EM, name);
    const bool up = crdi_testbench_true(b, i) < value;
    double t = 0;
    while (t < 3600 && (crdi_testbench_true(b, i) < value) == up) {
        crdi_testbench_step(b, 0.1);
        t += 0.1;
    }
    return t / 60;
}

// Table 3, and the derating of section 3.2.1, on the machine's bench alone.
static crd_status bench_alone(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    crdi_testbench* b = NULL;
    const crdi_testbench_options o = crdi_testbench_defaults(CRDI_TESTBENCH_EM);
    const int most = crdi_testbench_find(CRDI_TESTBENCH_EM, "torque_max");
    CRD_TRY(crdi_testbench_create(r->ctx, &o, &b));
    set_bench(b, "voltage_ref", 60);
    set_bench(b, "speed_ref", 100);
    set_bench(b, "oil_ref", 90);
    const char* const who = "conditioning";
    CRD_TRY(crdi_claim_row(r, "table3", "heat", who, "25 to 80 degC, min",
                           CRDI_WITHIN(9, minutes_to(b, "oil_in", 80), NAN, 0.05)));
    set_bench(b, "oil_ref", 80); // until the machine is as warm as its oil
    crdi_testbench_step(b, 3600);
    set_bench(b, "oil_ref", 25);
    CRD_TRY(crdi_claim_row(r, "table3", "cool", who, "80 to 50 degC, min",
                           CRDI_WITHIN(7, minutes_to(b, "oil_in", 50), NAN, 0.05)));
    CRD_TRY(crdi_claim_row(r, "table3", "cold", who, "50 to 35 degC, min",
                           CRDI_WITHIN(23, minutes_to(b, "oil_in", 35), NAN, 0.05)));
    set_bench(b, "voltage_ref", 360);
    set_bench(b, "speed_ref", 3500);
    set_bench(b, "oil_ref", 60);
    set_bench(b, "torque_ref", 85e3 / (3500 / RPM));
    crdi_testbench_step(b, 2);
    const double full = crdi_testbench_true(b, most);
    (void)minutes_to(b, "temperature_max", 139.5);
    CRD_TRY(crdi_claim_row(r, "derating", "below", "machine", "torque at 139.5 degC, part of all",
                           CRDI_NEAR(NAN, crdi_testbench_true(b, most) / full, 1, 0.01)));
    (void)minutes_to(b, "temperature_max", 150);
    CRD_TRY(crdi_claim_row(r, "derating", "above", "machine", "torque at 150 degC, part of all",
                           CRDI_NEAR(NAN, crdi_testbench_true(b, most) / full, 62.5 / 85, 0.02,
                                     .remark = "half way to 40 of 85 kW")));
fail:
    crdi_testbench_destroy(b);
    return st;
}

// ---- figures -----------------------------------------------------------------------------------

typedef struct curve {
    const char *name, *column;
    double gain, offset;
} curve;

static crd_status draw(crdi_reproduction* r, const char* id, const char* title, const crdi_drive* d,
                       double from, int64_t every, const curve* curves, int count)
{
    const char* names[8] = {"t [s]"};
    const int64_t rows = (d->rows + every - 1) / every, width = count + 1;
    double* v = crdi_arena_new(&r->arena, (size_t)(rows * width), sizeof *v);
    if (!v) { return CRD_E_MEMORY; }
    for (int j = 0; j < count; j++) {
        const double* y = crdi_drive_column(d, curves[j].column);
        names[j + 1] = curves[j].name;
        for (int64_t i = 0; i < rows; i++) {
            v[i * width] = from + (double)(i * every) * STEP;
            v[i * width + j + 1] = curves[j].gain * y[i * every] + curves[j].offset;
        }
    }
    return crdi_figure_add(r, &CRDI_FIGURE(id, title, (int)width, names, rows, v));
}

static crd_status draw_states(crdi_reproduction* r, const crd_table* t)
{
    static const char* const names[] = {"t [s]", "master", "ice", "em"};
    static const char* const from[] = {"master.state", "ice.state", "em.state"};
    double* v = crdi_arena_new(&r->arena, 8 * (size_t)t->rows, sizeof *v);
    if (!v) { return CRD_E_MEMORY; }
    for (int64_t i = 0; i < 2 * t->rows - 1; i++) { // each value holds until the next
        v[4 * i] = t->time[(i + 1) / 2];
        for (int j = 0; j < 3; j++) {
            v[4 * i + j + 1] = t->columns[crd_table_find(t, from[j])].values[i / 2];
        }
    }
    return crdi_figure_add(r, &CRDI_FIGURE("fig7", "Figure 7: states of master and benches", 4,
                                           names, 2 * t->rows - 1, v));
}

static crd_status figures(crdi_reproduction* r, const crdi_drive* d, double from,
                          const crdi_drive* cold)
{
    static const curve speeds[] = {{"v [km/h]", "vehicle.speed", 3.6, 0},
                                   {"n set [1/min]", "clutch.machine_speed_ref", RPM, 0},
                                   {"n actual [1/min]", "em.speed", 1, 0}};
    static const curve torques[] = {{"M set [N.m]", "controller.machine_torque", 1, 0},
                                    {"M actual [N.m]", "em.torque", 1, 0},
                                    {"M calculated [N.m]", "em.torque_calc", 1, 0},
                                    {"M max [N.m]", "em.torque_max", 1, 0}};
    static const curve pedals[] = {{"throttle set [%]", "clutch.pedal_ref", 100, 0},
                                   {"throttle [%]", "ice.throttle", 1, 0},
                                   {"M machine [N.m]", "em.torque_calc", 1, 0}};
    static const curve oils[] = {
        {"inlet [degC]", "oil.inlet", 1, -ZERO},        {"gearbox [degC]", "oil.gear", 1, -ZERO},
        {"sump [degC]", "oil.sump", 1, -ZERO},          {"cooler [degC]", "oil.cooler", 1, -ZERO},
        {"winding [degC]", "em.temperature_max", 1, 0}, {"gearbox heat [W]", "vehicle.heat", 1, 0},
        {"machine heat [W]", "oil.machine", 1, 0}};
    crd_status st = CRD_OK;
    if (d->session) { CRD_TRY(draw_states(r, d->session)); }
    CRD_TRY(draw(r, "fig8", "Figure 8: speed of the machine", d, from, 1, speeds, 3));
    CRD_TRY(draw(r, "fig9", "Figure 9: torque of the machine", d, from, 1, torques, 4));
    CRD_TRY(draw(r, "fig10", "Figure 10: throttle and machine", d, from, 1, pedals, 3));
    CRD_TRY(draw(r, "oil", "Oil of gearbox and machine from -10 degC on", cold, 0, 10, oils, 7));
fail:
    return st;
}

// ---- all of it ---------------------------------------------------------------------------------

static crd_status drive_rows(crdi_reproduction* r, const char* id, const char* how,
                             const crdi_drive* d)
{
    crd_status st = CRD_OK;
    CRD_TRY(machine_rows(r, id, how, d));
    CRD_TRY(engine_rows(r, id, how, d));
    CRD_TRY(heat(r, d, id, how));
    CRD_TRY(guard_row(r, id, how, d));
fail:
    return st;
}

static crd_status coupled(crdi_reproduction* r, const crdi_drive_spec* spec, const char* id,
                          const char* how, const crdi_drive* local, crdi_drive* d)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_drive_run(r, spec, d));
    CRD_TRY(drive_rows(r, id, how, d));
    CRD_TRY(against_local(r, id, how, d, local));
    CRD_TRY(account_rows(r, id, how, d, spec->how == CRDI_DRIVE_CLOCK));
fail:
    return st;
}

// The oil from -10 degC on, over two cycles, and what that costs in the first of them.
static crd_status start_in_the_cold(crdi_reproduction* r, crdi_drive* cold)
{
    crd_status st = CRD_OK;
    crdi_drive warm = {0};
    const char *id = "cold", *how = "start at -10 degC";
    CRD_TRY(crdi_drive_run(r, &(crdi_drive_spec){.seconds = CYCLE_SECONDS, .start = 30, .air = 23},
                           &warm));
    CRD_TRY(crdi_drive_run(
        r, &(crdi_drive_spec){.seconds = 2 * CYCLE_SECONDS, .start = -10, .air = -10}, cold));
    CRD_TRY(guard_row(r, "warm", "start at 30 degC", &warm));
    CRD_TRY(guard_row(r, id, how, cold));
    CRD_TRY(heat(r, &warm, "warm", "start at 30 degC"));
    CRD_TRY(heat(r, cold, id, how));
    const double sixty = reaches(crdi_drive_column(cold, "oil.inlet"), cold->rows, 60 + ZERO);
    CRD_TRY(crdi_claim_row(r, id, "sixty", how, "s until the oil has 60 degC",
                           CRDI_WITHIN(NAN, sixty, lumped(cold, -10, -10, 60), 0.1,
                                       .remark = "reference: one body, without the netlist")));
    CRD_TRY(crdi_claim_row(r, id, "fuel", how, "fuel over that of a start at 30 degC",
                           CRDI_AT_LEAST(NAN,
                                         total(crdi_drive_column(cold, "ice.fuel"), warm.rows) /
                                             total(crdi_drive_column(&warm, "ice.fuel"), warm.rows),
                                         1, .remark = "cold oil drags")));
fail:
    crdi_drive_clear(&warm);
    return st;
}

crd_status crdi_reproduce_rautenberg2023(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    crdi_drive local = {0}, cold = {0}, steps = {0}, clock = {0};
    const crdi_drive* shown = &local;
    r->paper = "Rautenberg et al. 2023: Electrified Powertrain Development: DCP Extension for "
               "Coupled Test Bench Operations, Applied Sciences 13, 2657";
    if (access(r->cycle, R_OK) != 0) {
        return crdi_fail(r->ctx, CRD_E_NOT_FOUND,
                         "%s: there is no such recording of the WLTC; 'sh cmake/wltc.sh "
                         "build/cycles' in the source tree fetches it, --cycle FILE names another",
                         r->cycle);
    }
    crdi_drive_spec s = {.from = r->whole ? 0 : PART,
                         .seconds = r->whole ? CYCLE_SECONDS : PART_SECONDS,
                         .start = 30,
                         .air = 23};
    CRD_TRY(signals(r));
    CRD_TRY(bench_alone(r));
    CRD_TRY(start_in_the_cold(r, &cold));
    CRD_TRY(crdi_drive_run(r, &s, &local));
    CRD_TRY(drive_rows(r, "local", "in one process", &local));
    if (r->command) {
        s.how = CRDI_DRIVE_STEPS;
        CRD_TRY(coupled(r, &s, "virtual", "virtual clock", &local, &steps));
        shown = &steps;
    }
    if (r->command && !r->quick) {
        s.how = CRDI_DRIVE_CLOCK;
        CRD_TRY(coupled(r, &s, "realtime", "real time", &local, &clock));
        shown = &clock;
    }
    if (shown->session) { CRD_TRY(states(r, shown)); }
    CRD_TRY(figures(r, shown, s.from, &cold));
fail:
    crdi_drive_clear(&local);
    crdi_drive_clear(&cold);
    crdi_drive_clear(&steps);
    crdi_drive_clear(&clock);
    return st;
}
