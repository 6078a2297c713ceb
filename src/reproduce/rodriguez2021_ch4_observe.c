// What can be found with which sensors, before anything is measured: the statements of Rodriguez
// Frade 2021, 4.4.4, about what is not observable, and what more there is to say.
#include "reproduce/rodriguez2021_ch4.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double none = NAN;

typedef struct experiment {
    crdi_reproduction* r;
    crd_arena arena;
    const crd_netlist* n;
    crd_twin_spec spec;
    int64_t rows;
    double from;
    const char* subject;
} experiment;

static crd_status observe_experiment(experiment* e, crd_observability* o)
{
    const crd_twin_data data = {.rows = e->rows, .from = e->from, .to = none};
    return crd_twin_observe(e->r->ctx, e->n, &e->spec, &data, false, &e->arena, o);
}

static crd_status claim_count(experiment* e, const char* id, const char* what, double ours,
                              double reference, const char* remark)
{
    return crdi_ch4_claim(e->r, id, e->subject,
                          CRDI_NEAR(none, ours, reference, 0, .what = what, .remark = remark));
}

static crd_status claim_sigma(experiment* e, const char* id, const char* what, double ours,
                              double reference)
{
    const double digit = pow(10, floor(log10(reference)) - 1); // the second
    return crdi_ch4_claim(e->r, id, e->subject,
                          CRDI_NEAR(none, ours, reference, 0.5 * digit, .what = what,
                                    .remark = "two digits of an independent program"));
}

// ---- the RC circuit ----------------------------------------------------------------------------

static const char rc[] = "rc\n.thermal\nheat q0 1 10\nresistance r1 1 2 1\nresistance r2 2 3 2\n"
                         "resistance r3 3 0 3\ncapacity c1 2 0.1 start=-1\n"
                         "capacity c2 3 0.2 start=1\n.endthermal\n.tran 1m 5 uic\n.end\n";
static const crd_twin_sensor rc_sensors[] = {{"s1", "t(1)", "K", CRDI_CH4_SD},
                                             {"s2", "t(2)", "K", CRDI_CH4_SD},
                                             {"s3", "t(3)", "K", CRDI_CH4_SD}};

static crd_status observe_rc(experiment* e)
{
    static const char* const names[] = {"r1", "r2", "r3", "c1", "c2"};
    static const double sigma[3] = {5.7e3, 2.0e3, 9.9e2};
    crd_status st;
    crd_observability o;
    int32_t parts[5], q0 = crd_netlist_part(e->n, "q0");
    crd_twin_parameter p[5];
    crdi_ch4_unknown(e->n, names, NULL, 1, 5, parts, p);
    e->subject = "RC circuit, resistors";
    e->spec = crdi_ch4_spec(rc_sensors, 3);
    e->spec.parameters = p;
    e->spec.parameter_count = 3;
    CRD_TRY(observe_experiment(e, &o));
    CRD_TRY(claim_count(e, "observe.rc.r.rank", "rank with sensors 1, 2, 3", o.rank, 3, ""));
    for (int i = 0; i < 3; i++) {
        char id[32], what[64];
        snprintf(id, sizeof id, "observe.rc.r.sigma%d", i + 1);
        snprintf(what, sizeof what, "signal to noise of direction %d", i + 1);
        CRD_TRY(claim_sigma(e, id, what, o.sigma[i], sigma[i]));
    }
    e->spec.sensors = rc_sensors + 1;
    e->spec.sensor_count = 2;
    CRD_TRY(observe_experiment(e, &o));
    CRD_TRY(claim_count(e, "observe.rc.r.no1", "rank without sensor 1", o.rank, 2,
                        crd_observability_name(&o, 2, &e->arena)));
    CRD_TRY(claim_count(e, "observe.rc.r.no1.r1", "of what was known of R1 before, remains",
                        round(1e9 * o.posterior[0]) / 1e9, 1, "nothing is learnt"));
    e->subject = "RC circuit, capacitors";
    e->spec.parameters = p + 3;
    e->spec.parameter_count = 2;
    CRD_TRY(observe_experiment(e, &o));
    CRD_TRY(
        claim_sigma(e, "observe.rc.c.sigma1", "signal to noise of direction 1", o.sigma[0], 1.2e3));
    CRD_TRY(
        claim_sigma(e, "observe.rc.c.sigma2", "signal to noise of direction 2", o.sigma[1], 2.8e2));
    e->rows = 20000;
    e->from = 19;
    CRD_TRY(observe_experiment(e, &o));
    CRD_TRY(claim_count(e, "observe.rc.c.steady", "directions that the steady state does not show",
                        o.practical, 2, "'non-observable once steady state is reached'"));
    e->rows = CRDI_CH4_ROWS;
    e->from = none;
    e->subject = "RC circuit, everything at once";
    const crd_twin_source q = {
        .group = {.name = "q0", .parts = &q0, .count = 1}, .start = 10, .sd = 10};
    e->spec.sensors = rc_sensors;
    e->spec.sensor_count = 3;
    e->spec.parameters = p;
    e->spec.parameter_count = 5;
    e->spec.sources = &q;
    e->spec.source_count = 1;
    CRD_TRY(observe_experiment(e, &o));
    CRD_TRY(claim_count(e, "observe.rc.all.rank", "rank of R1, R2, R3, C1, C2, Q0", o.rank, 5,
                        crd_observability_name(&o, 5, &e->arena)));
fail:
    return st;
}

// ---- the inverter ------------------------------------------------------------------------------

#define SENSOR(node)                                                                               \
    {                                                                                              \
        "s" #node, "t(" #node ")", "K", CRDI_CH4_SD                                                \
    }
static const crd_twin_sensor bench[] = {SENSOR(7), SENSOR(11), SENSOR(12), SENSOR(10), SENSOR(1)};
static const crd_twin_sensor no10[] = {SENSOR(7), SENSOR(11), SENSOR(12), SENSOR(1)};
static const crd_twin_sensor phases[] = {SENSOR(7), SENSOR(8), SENSOR(9), SENSOR(11), SENSOR(12)};

static crd_status rank_with(experiment* e, const char* id, const char* what,
                            const crd_twin_sensor* sensors, int count, int rank, int named)
{
    crd_observability o;
    e->spec.sensors = sensors;
    e->spec.sensor_count = count;
    const crd_status st = observe_experiment(e, &o);
    if (st < 0) { return st; }
    return claim_count(e, id, what, o.rank, rank,
                       named >= 0 ? crd_observability_name(&o, named, &e->arena) : "");
}

static crd_status observe_inverter(experiment* e, bool unequal)
{
    crd_status st;
    crd_observability o;
    crdi_inverter_unknowns u;
    crdi_inverter_find(e->n, &u);
    e->spec = crdi_ch4_spec(bench, 3);
    e->spec.parameters = u.p;
    e->spec.parameter_count = CRDI_INVERTER_UNKNOWNS;
    if (unequal) {
        e->subject = "inverter, losses of 400, 150, 74 W";
        return rank_with(e, "observe.inverter.unequal", "rank of 8 with sensors 7, 8, 9, 11, 12",
                         phases, 5, 7, 7);
    }
    e->subject = "inverter, 5 R and 3 C";
    CRD_TRY(
        rank_with(e, "observe.inverter.rank", "rank of 8 with sensors 7, 11, 12", bench, 3, 6, 7));
    CRD_TRY(observe_experiment(e, &o));
    // The other null keeps R dbc / 3 + R sp: in logarithms R dbc / 3 up, R sp down by as much
    const double* null = o.directions + (ptrdiff_t)6 * 8;
    const double* last = o.directions + (ptrdiff_t)7 * 8;
    const double* mixed = fabs(null[0]) > fabs(last[0]) ? null : last;
    const double kept = mixed[0] * crdi_inverter_truth[0] / 3 + mixed[6] * crdi_inverter_truth[6];
    const double size = fabs(mixed[6] * crdi_inverter_truth[6]);
    CRD_TRY(crdi_ch4_claim(e->r, "observe.inverter.null", e->subject,
                           CRDI_NEAR(none, kept / size, 0, 1e-4,
                                     .what = "change of R dbc / 3 + R sp in the direction that "
                                             "does not show, of that of R sp",
                                     .remark = "R die and R sp 'are not observable'")));
    CRD_TRY(rank_with(e, "observe.inverter.ten", "rank with node 10 in addition", bench, 4, 7, 7));
    CRD_TRY(rank_with(e, "observe.inverter.junction", "rank with a junction in addition", no10, 4,
                      7, 7));
    CRD_TRY(rank_with(e, "observe.inverter.both", "rank with both", bench, 5, 8, -1));
    CRD_TRY(rank_with(e, "observe.inverter.phases", "rank with sensors 7, 8, 9, 11, 12", phases, 5,
                      6, 7));
    e->spec.sensors = bench;
    e->spec.sensor_count = 3;
    e->from = 4;
    CRD_TRY(observe_experiment(e, &o));
    e->from = none;
    CRD_TRY(claim_count(e, "observe.inverter.window",
                        "directions that the window from 4 to 5 s shows (more than noise)",
                        8 - o.practical, 4, "three and a weak one"));
    CRD_TRY(claim_count(
        e, "observe.inverter.window.strong", "those with a signal to noise over 10",
        (o.sigma[0] > 10) + (o.sigma[1] > 10) + (o.sigma[2] > 10) + (o.sigma[3] > 10), 3, ""));
fail:
    return st;
}

crd_status crdi_ch4_observe(crdi_reproduction* r)
{
    crd_status st = CRD_OK;
    for (int k = 0; k < 3 && st >= 0; k++) {
        experiment e = {.r = r, .rows = CRDI_CH4_ROWS, .from = none};
        char text[CRDI_INVERTER_TEXT];
        crd_netlist* n = NULL;
        crdi_inverter_text(
            &(crdi_inverter){.start = 343.15,
                             .loss = "208",
                             .water = "343.15",
                             .outputs = "T7=t(7)",
                             .losses = {k == 2 ? 400 : 0, k == 2 ? 150 : 0, k == 2 ? 74 : 0}},
            text);
        const char* what = k ? text : rc;
        st = crd_netlist_parse(r->ctx, what, strlen(what), "network", NULL, &n);
        e.n = n;
        crd_arena_init(&e.arena, r->ctx);
        if (st >= 0) { st = k ? observe_inverter(&e, k == 2) : observe_rc(&e); }
        crd_arena_clear(&e.arena);
        crd_netlist_destroy(n);
    }
    return st;
}
