// Prediction, step control, iteration, monitors and power bonds in a description.
#include "cardan/system.h"
#include "check.h"
#include "shared/base.h"

#include <stdio.h>

#define UNITS                                                                                      \
    "cardan: 1\nunits:\n  motor: { fmu: a.fmu }\n  mass1: { fmu: b.fmu }\n  g: { signal: { "       \
    "shape: step } }\n"

static crd_system* parse(crd_context* ctx, const char* text)
{
    crd_system* s = NULL;
    if (crd_system_parse(ctx, text, strlen(text), "s.yaml", &s) != CRD_OK) {
        fail_msg("refused: %s\n%s", crd_error_text(ctx), text);
    }
    return s;
}

static void amend(crd_system* s, const char* text)
{
    if (crd_system_amend(s, text, strlen(text), "more.yaml", 1) != CRD_OK) {
        fail_msg("refused: %s\n%s", crd_error_text(s->ctx), text);
    }
}

static const char everything[] =
    "cardan: 1\n"
    "units:\n"
    "  motor: { fmu: a.fmu, real: true, refresh: no }\n"
    "  mass1: { fmu: b.fmu, refresh: yes }\n"
    "  mass2: { fmu: b.fmu, refresh: auto }\n"
    "connections:\n"
    "  - { from: motor.torque, to: mass1.f, predict: hermite, scale: 10, tolerance: 1e-6 }\n"
    "  - mass1.v -> motor.speed\n"
    "bonds:\n"
    "  - [mass1.f, motor.v]\n"
    "  - { name: shaft, action: motor.torque, flow: mass1.v, correct: gated, mu: 0.5, ki: 0.25,\n"
    "      limiter: 2 %, forget: 0.9 }\n"
    "run:\n"
    "  predict: ab3\n"
    "  control:\n"
    "    tolerance: 1e-4\n"
    "    method: pi\n"
    "    absolute: true\n"
    "    first: 1 ms\n"
    "    floor: 1 us\n"
    "    ceiling: 0.5 s\n"
    "    kp: 0.2\n"
    "    ki: 0.1\n"
    "    growth: 3\n"
    "    safety: 0.8\n"
    "    reject: 4\n"
    "    defects: one-sided\n"
    "    middle: false\n"
    "  iterate: { tolerance: 1e-6, sweeps: 25, acceleration: aitken, otherwise: stop }\n"
    "  feedthrough: program\n"
    "  monitor: [energy]\n";

static void connections_and_units_are_read_with_their_keys(void** state)
{
    crd_system* s = parse(*state, everything);
    check(s->units[0].real && !s->units[1].real);
    check_int(s->units[0].refresh, CRD_REFRESH_NO);
    check_int(s->units[1].refresh, CRD_REFRESH_YES);
    check_int(s->units[2].refresh, CRD_REFRESH_AUTO);
    const crd_connection_spec* c = s->connections;
    check_int(c[0].predict, CRD_PREDICTION_HERMITE);
    check_near(c[0].scale, 10, 0);
    check_near(c[0].tolerance, 1e-6, 0);
    check_int(c[1].predict, CRD_PREDICTION_AB3); // the run's
    check(isnan(c[1].scale) && isnan(c[1].tolerance));
    crd_system_destroy(s);
}

static void control_and_iteration_are_read_with_all_their_keys(void** state)
{
    crd_system* s = parse(*state, everything);
    const crd_control_spec* c = &s->run.control;
    check(c->on && c->absolute && c->one_sided && !c->middle);
    check_int(c->method, CRD_STEP_PI);
    check_near(c->tolerance, 1e-4, 0);
    check_near(c->first, 1e-3, 0);
    check_near(c->floor, 1e-6, 1e-21);
    check_near(c->ceiling, 0.5, 0);
    check_near(c->kp, 0.2, 0);
    check_near(c->ki, 0.1, 0);
    check_near(c->growth, 3, 0);
    check_near(c->safety, 0.8, 0);
    check_near(c->reject, 4, 0);
    check_int(c->place.line, 15);
    check_text(c->place.file, "s.yaml");
    const crd_iterate_spec* i = &s->run.iterate;
    check(i->on && i->stop);
    check_near(i->tolerance, 1e-6, 0);
    check_int(i->sweeps, 25);
    check_int(i->acceleration, CRD_ACCEL_AITKEN);
    check_int(i->place.line, 29);
    check_int(s->run.predict, CRD_PREDICTION_AB3);
    check_int(s->run.feedthrough, CRD_DEFECT_PROGRAM);
    check_int(s->run.monitor, CRD_MONITOR_ENERGY);
    crd_system_destroy(s);
}

static void bonds_are_read_in_both_forms(void** state)
{
    crd_system* s = parse(*state, everything);
    check_int(s->bond_count, 2);
    const crd_bond_spec* b = s->bonds;
    check_text(b->name, "");
    check_int(b->action_unit, 1);
    check_text(b->action, "f");
    check_int(b->flow_unit, 0);
    check_text(b->flow, "v");
    check_int(b->correct, CRD_CORRECT_NONE);
    check(isnan(b->mu) && isnan(b->ki) && isnan(b->limiter) && isnan(b->forget));
    check_int(b->place.line, 10);
    b++;
    check_text(b->name, "shaft");
    check_int(b->action_unit, 0);
    check_text(b->action, "torque");
    check_int(b->flow_unit, 1);
    check_text(b->flow, "v");
    check_int(b->correct, CRD_CORRECT_GATED);
    check_near(b->mu, 0.5, 0);
    check_near(b->ki, 0.25, 0);
    check_near(b->limiter, 0.02, 1e-18);
    check_near(b->forget, 0.9, 0);
    check_int(b->place.line, 11);
    crd_system_destroy(s);
}

static void without_a_word_the_defaults_hold(void** state)
{
    crd_system* s = parse(*state, UNITS "connections: [ motor.y -> mass1.u ]\n");
    const crd_run_spec* r = &s->run;
    check_int(r->predict, CRD_PREDICTION_AUTO);
    check_int(r->feedthrough, CRD_DEFECT_FRESH);
    check_int(r->monitor, CRD_MONITOR_DEFECT | CRD_MONITOR_ENERGY);
    check(!r->control.on && !r->control.absolute && !r->control.one_sided && r->control.middle);
    check_int(r->control.method, CRD_STEP_H211B);
    const double unsaid[] = {r->control.first,  r->control.floor, r->control.ceiling,
                             r->control.kp,     r->control.ki,    r->control.growth,
                             r->control.safety, r->control.reject};
    for (size_t i = 0; i < sizeof unsaid / sizeof *unsaid; i++) {
        check(isnan(unsaid[i]));
    }
    check(!r->iterate.on && !r->iterate.stop);
    check_int(r->iterate.acceleration, CRD_ACCEL_IQN_ILS);
    check_near(r->iterate.tolerance, 1e-8, 0);
    check_int(r->iterate.sweeps, 10);
    check_int(s->bond_count, 0);
    check_int(s->connections[0].predict, CRD_PREDICTION_AUTO);
    check(isnan(s->connections[0].scale) && isnan(s->connections[0].tolerance));
    check(!s->units[0].real);
    check_int(s->units[0].refresh, CRD_REFRESH_AUTO);
    crd_system_destroy(s);
}

static void short_forms_say_the_same(void** state)
{
    crd_system* s = parse(*state, UNITS "run: { control: 1e-3, iterate: on, monitor: defect }\n");
    check(s->run.control.on && s->run.iterate.on);
    check_near(s->run.control.tolerance, 1e-3, 0);
    check_int(s->run.monitor, CRD_MONITOR_DEFECT);
    crd_system_destroy(s);
    s = parse(*state, UNITS "run: { control: { tolerance: 0.1 %, reject: true }, iterate: false,\n"
                            "       monitor: none }\n");
    check_near(s->run.control.tolerance, 1e-3, 1e-18);
    check_near(s->run.control.reject, 1, 0);
    check(!s->run.iterate.on);
    check_int(s->run.monitor, 0);
    crd_system_destroy(s);
    s = parse(*state, UNITS "run: { monitor: all }\n");
    check_int(s->run.monitor, CRD_MONITOR_DEFECT | CRD_MONITOR_ENERGY | CRD_MONITOR_SOLVER);
    crd_system_destroy(s);
    s = parse(*state, UNITS "run: { monitor: solver }\n");
    check_int(s->run.monitor, CRD_MONITOR_DEFECT | CRD_MONITOR_SOLVER);
    crd_system_destroy(s);
    s = parse(*state, UNITS "run: { control: false, monitor: [energy, defect, energy] }\n");
    check(!s->run.control.on);
    check_int(s->run.monitor, CRD_MONITOR_DEFECT | CRD_MONITOR_ENERGY);
    crd_system_destroy(s);
}

static void every_word_is_that_of_its_method(void** state)
{
    crd_context* ctx = *state;
    char text[400];
    for (int p = 0; p < CRD_PREDICTION_COUNT; p++) {
        snprintf(text, sizeof text, UNITS "run: { predict: %s }\n",
                 crd_prediction_name((crd_prediction)p));
        crd_system* s = parse(ctx, text);
        check_int(s->run.predict, p);
        crd_system_destroy(s);
        // From taylor1 on, and hold, they are the predictors of quality.h.
        crd_predictor found = CRD_PREDICT_COUNT;
        check_int(crd_predictor_find(crd_prediction_name((crd_prediction)p), &found),
                  p == CRD_PREDICTION_HOLD || p >= CRD_PREDICTION_TAYLOR1);
    }
    for (int i = CRD_DEFECT_STRICT; i <= CRD_DEFECT_PROGRAM; i++) {
        snprintf(text, sizeof text, UNITS "run: { feedthrough: %s }\n",
                 crd_defect_scheme_name((crd_defect_scheme)i));
        crd_system* s = parse(ctx, text);
        check_int(s->run.feedthrough, i);
        crd_system_destroy(s);
    }
    for (int i = CRD_ACCEL_FIXED; i <= CRD_ACCEL_IQN_ILS; i++) {
        snprintf(text, sizeof text, UNITS "run: { iterate: { acceleration: %s } }\n",
                 crd_accel_name((crd_accel_method)i));
        crd_system* s = parse(ctx, text);
        check_int(s->run.iterate.acceleration, i);
        crd_system_destroy(s);
    }
    for (int i = CRD_CORRECT_NONE; i <= CRD_CORRECT_PROBE; i++) {
        snprintf(text, sizeof text,
                 UNITS "bonds: [ { action: motor.t, flow: mass1.v, correct: %s } ]\n",
                 crd_correction_name((crd_correction)i));
        crd_system* s = parse(ctx, text);
        check_int(s->bonds[0].correct, i);
        crd_system_destroy(s);
    }
}

static void the_ends_of_the_ranges_are_allowed(void** state)
{
    crd_system* s = parse(
        *state, UNITS
        "bonds: [ { action: motor.t, flow: mass1.v, mu: 0, ki: 2, limiter: 1e-9, forget: 1 } ]\n"
        "run:\n"
        "  control: { tolerance: 1e300, floor: 1 s, ceiling: 1 s, first: 1 s, kp: 0,\n"
        "             growth: 1.001, safety: 1, reject: 1.001 }\n"
        "  iterate: { sweeps: 2 }\n");
    check_near(s->bonds[0].mu, 0, 0);
    check_near(s->bonds[0].forget, 1, 0);
    check_near(s->run.control.floor, s->run.control.ceiling, 0);
    check_int(s->run.iterate.sweeps, 2);
    crd_system_destroy(s);
}

// ---- amendments --------------------------------------------------------------------------------

static void amendments_change_control_key_by_key(void** state)
{
    crd_system* s = parse(*state, everything);
    amend(s, "run: { control: { ceiling: 1 s }, iterate: { sweeps: 5 } }\n");
    check_near(s->run.control.ceiling, 1, 0);
    check_near(s->run.control.tolerance, 1e-4, 0); // as before
    check(s->run.control.one_sided && !s->run.control.middle && s->run.control.absolute);
    check_near(s->run.control.reject, 4, 0);
    check_text(s->run.control.place.file, "more.yaml");
    check_int(s->run.iterate.sweeps, 5);
    check(s->run.iterate.stop);
    check_int(s->run.iterate.acceleration, CRD_ACCEL_AITKEN);
    amend(s, "run: { control: 1e-5, iterate: false, monitor: [defect] }\n");
    check_near(s->run.control.tolerance, 1e-5, 0);
    check_near(s->run.control.ceiling, 1, 0);
    check(!s->run.iterate.on);
    check_int(s->run.monitor, CRD_MONITOR_DEFECT);
    amend(s, "run: { control: off, iterate: true }\n");
    check(!s->run.control.on && s->run.iterate.on);
    check_int(s->run.iterate.sweeps, 5);
    amend(s, "run: { control: { reject: false, defects: two-point, middle: true } }\n");
    check(s->run.control.on && !s->run.control.one_sided && s->run.control.middle);
    check(isinf(s->run.control.reject)); // never
    check_near(s->run.control.tolerance, 1e-5, 0);
    check_int(s->run.feedthrough, CRD_DEFECT_PROGRAM);
    crd_system_destroy(s);
}

static void amendments_change_bonds_and_add_others(void** state)
{
    crd_system* s = parse(*state, everything);
    amend(s, "bonds:\n"
             "  - { action: motor.torque, flow: mass1.v, mu: 0.75 }\n"
             "  - { action: mass2.f, flow: mass1.v, correct: lead }\n");
    check_int(s->bond_count, 3);
    check_near(s->bonds[1].mu, 0.75, 0);
    check_int(s->bonds[1].correct, CRD_CORRECT_GATED); // as before
    check_text(s->bonds[1].name, "shaft");
    check_near(s->bonds[1].ki, 0.25, 0);
    check_text(s->bonds[1].place.file, "more.yaml");
    check_int(s->bonds[2].correct, CRD_CORRECT_LEAD);
    amend(s,
          "bonds: [ [motor.torque, mass1.v], { name: axle, action: mass1.f, flow: motor.v } ]\n");
    check_int(s->bond_count, 3);
    check_near(s->bonds[1].mu, 0.75, 0);
    check_text(s->bonds[0].name, "axle");
    // names may change places; one name twice is one bond with several components
    amend(s, "bonds: [ { name: axle, action: motor.torque, flow: mass1.v },\n"
             "         { name: shaft, action: mass1.f, flow: motor.v } ]\n");
    check_text(s->bonds[0].name, "shaft");
    check_text(s->bonds[1].name, "axle");
    amend(s, "bonds: [ { name: axle, action: motor.fx, flow: mass1.vx } ]\n");
    check_int(s->bond_count, 4);
    crd_system_destroy(s);
}

static void amendments_reach_connections_and_units(void** state)
{
    crd_system* s = parse(*state, UNITS "connections:\n"
                                        "  - motor.y -> mass1.u\n"
                                        "  - { from: mass1.y, to: motor.u, coupling: eros }\n"
                                        "  - { from: g.y, to: motor.w, predict: hold }\n");
    amend(s, "units: { motor: { real: yes, refresh: false } }\n"
             "connections:\n"
             "  - { from: motor.y, to: mass1.u, scale: 3 }\n"
             "  - { from: mass1.y, to: motor.u, predict: ab2, tolerance: 1e-3 }\n"
             "run: { predict: taylor2 }\n");
    const crd_connection_spec* c = s->connections;
    check(s->units[0].real);
    check_int(s->units[0].refresh, CRD_REFRESH_NO);
    check_int(c[0].predict, CRD_PREDICTION_TAYLOR2); // the run's new one
    check_near(c[0].scale, 3, 0);
    check(isnan(c[0].tolerance));
    check_int(c[1].predict, CRD_PREDICTION_AB2);
    check_near(c[1].tolerance, 1e-3, 0);
    check(c[1].coupling == NULL); // predict took its place
    check_int(c[2].predict, CRD_PREDICTION_HOLD);
    amend(s, "connections: [ { from: motor.y, to: mass1.u, coupling: foh } ]\n");
    check(s->connections[0].coupling != NULL);
    check(isnan(s->connections[0].scale));
    static const char beside[] = "connections: [ { from: motor.y, to: mass1.u, scale: 2 } ]\n";
    check_status(crd_system_amend(s, beside, strlen(beside), "more.yaml", 1), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "more.yaml:1: connections[1]: scale: the connection has "
                                           "a coupling, expected predict beside it");
    crd_system_destroy(s);
}

// ---- mistakes ----------------------------------------------------------------------------------

typedef struct mistake {
    const char* text;
    crd_status status;
    int line;
    const char* said;
} mistake;

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define F CRD_E_FORMAT
#define R CRD_E_RANGE
#define N CRD_E_NOT_FOUND

static void all_refused(crd_context* ctx, const char* head, const mistake* rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[2000], where[32];
        snprintf(text, sizeof text, "%s%s", head, rows[i].text);
        snprintf(where, sizeof where, "s.yaml:%d: ", rows[i].line);
        crd_system* s = NULL;
        const crd_status st = crd_system_parse(ctx, text, strlen(text), "s.yaml", &s);
        const char* said = crd_error_text(ctx);
        if (st != rows[i].status || s || strncmp(said, where, strlen(where)) != 0 ||
            !strstr(said, rows[i].said) || strchr(said, '\n')) {
            fail_msg("%s for:\n%s\nit says \"%s\"\nexpected \"%s%s\"", crd_status_name(st), text,
                     said, where, rows[i].said);
        }
    }
}

static void wrong_control_is_refused(void** state)
{
    static const mistake rows[] = {
        {" 0\n", R, 4, "run.control: '0' is not greater than 0, expected a number"},
        {" -1e-4\n", R, 4, "run.control: '-1e-4' is not greater than 0"},
        {" fine\n", F, 4, "run.control: 'fine' is not a number"},
        {" 1 ms\n", F, 4, "run.control: '1 ms' is a time, expected a number"},
        {" \"1e-4\"\n", F, 4, "run.control: '1e-4' is in quotes"},
        {" [1e-4]\n", F, 4, "run.control: a list, expected a number"},
        {"\n", F, 4, "run.control: nothing"},
        {" true\n", F, 4,
         "run.control: the tolerance is missing, expected one such as control: 1e-4"},
        {" {}\n", F, 4, "run.control: the tolerance is missing"},
        {" { tolerance: 0 }\n", R, 4, "run.control.tolerance: '0' is not greater than 0"},
        {" { tolerance: .inf }\n", R, 4, "run.control.tolerance: '.inf' is not finite"},
        {" { tol: 1 }\n", F, 4, "run.control: unknown key 'tol'"},
        {" { tolerence: 1 }\n", F, 4, "unknown key 'tolerence', did you mean 'tolerance'?"},
        {" { tolerance: 1, method: pid }\n", F, 4,
         "run.control.method: 'pid' is not known, did you mean 'pi'? Expected one of pi, h211b"},
        {" { tolerance: 1, first: 0 s }\n", R, 4, "run.control.first: '0 s'"},
        {" { tolerance: 1, first: 1 m }\n", F, 4, "'1 m' is a length, expected a time"},
        {"\n    tolerance: 1\n    floor: 1 s\n    ceiling: 0.1 s\n", R, 6,
         "run.control: floor = 1 s and ceiling = 0.1 s, expected 0 < floor <= ceiling"},
        {"\n    tolerance: 1\n    ceiling: 1 ms\n    first: 2 ms\n", R, 7,
         "run.control: first: 0.002 s, expected a step from the floor of 0 s to the ceiling of "
         "0.001 s"},
        {" { tolerance: 1, floor: 3, first: 2 }\n", R, 4, "first: 2 s, expected a step from"},
        {" { tolerance: 1, kp: -1 }\n", R, 4, "run.control.kp: '-1' is less than 0"},
        {" { tolerance: 1, ki: 0 }\n", R, 4, "run.control.ki: '0' is not greater than 0"},
        {"\n    tolerance: 1\n    growth: 1\n", R, 6,
         "run.control: growth: 1, expected more than 1"},
        {"\n    tolerance: 1\n    safety: 1.5\n", R, 6,
         "run.control: safety = 1.5, expected 0 < safety <= 1"},
        {" { tolerance: 1, reject: 0.9 }\n", R, 4, "run.control.reject: 0.9, expected 1 or more"},
        {" { tolerance: 1, reject: -2 }\n", R, 4, "run.control.reject: '-2' is not greater"},
        {" { tolerance: 1, reject: maybe }\n", F, 4, "run.control.reject: 'maybe' is not a number"},
        {" { tolerance: 1, defects: both }\n", F, 4,
         "run.control.defects: 'both' is not known. Expected one of two-point, one-sided"},
        {" { tolerance: 1, middle: 3 }\n", F, 4, "run.control.middle: '3', expected true or false"},
        {" { tolerance: 1, absolute: }\n", F, 4, "run.control.absolute: nothing"},
    };
    all_refused(*state, "cardan: 1\nunits: { a: { fmu: a } }\nrun:\n  control:", rows, COUNT(rows));
}

static void other_wrong_keys_of_a_run_are_refused(void** state)
{
    static const mistake rows[] = {
        {"iterate: 3", F, 3, "run.iterate: '3', expected true, false, or a mapping with the keys"},
        {"iterate: [fixed]", F, 3, "run.iterate: a list, expected true, false"},
        {"iterate: \"true\"", F, 3, "run.iterate: 'true', expected true, false"},
        {"iterate:", F, 3, "run.iterate: nothing, expected true, false"},
        {"iterate: { sweeps: 1 }", R, 3,
         "run.iterate.sweeps: '1' is out of range, expected a whole number from 2 to 1000"},
        {"iterate: { sweeps: 2.5 }", F, 3, "run.iterate.sweeps: '2.5'"},
        {"iterate: { tolerance: 0 }", R, 3, "run.iterate.tolerance: '0' is not greater than 0"},
        {"iterate: { acceleration: newton }", F, 3, "Expected one of fixed, aitken, iqn-ils"},
        {"iterate: { otherwise: stopp }", F, 3, "did you mean 'stop'? Expected one of explicit"},
        {"iterate: { sweep: 3 }", F, 3, "unknown key 'sweep', did you mean 'sweeps'?"},
        {"predict: euler", F, 3, "run.predict: 'euler' is not known. Expected one of auto, hold"},
        {"predict: hermit", F, 3, "did you mean 'hermite'?"},
        {"feedthrough: fresch", F, 3, "did you mean 'fresh'? Expected one of strict, fresh"},
        {"monitor: []", F, 3, "run.monitor: an empty list, expected [defect, energy]"},
        {"monitor: most", F, 3, "run.monitor: 'most' is not known. Expected defect, energy"},
        {"monitor: [defect, none]", F, 3, "run.monitor[2]: 'none' is not known"},
        {"monitor: { a: 1 }", F, 3, "run.monitor: a mapping, expected defect, energy"},
        {"monitor:", F, 3, "run.monitor: nothing"},
        {"extrapolation: hold", F, 3, "run: unknown key 'extrapolation'"},
    };
    char text[200];
    for (size_t i = 0; i < COUNT(rows); i++) {
        mistake m = rows[i];
        snprintf(text, sizeof text, "%s }\n", rows[i].text);
        m.text = text;
        all_refused(*state, "cardan: 1\nunits: { a: { fmu: a } }\nrun: { ", &m, 1);
    }
}

static void wrong_bonds_are_refused(void** state)
{
    static const mistake rows[] = {
        {"\n", F, 6, "bonds: nothing, expected a list of pairs such as [motor.torque"},
        {" { action: motor.t, flow: mass1.v }\n", F, 6, "bonds: a mapping, expected a list"},
        {" [ motor.t, mass1.v ]\n", F, 6,
         "bonds[1]: 'motor.t', expected a mapping with the keys name, action, flow"},
        {"\n  - [motor.t]\n", F, 7, "bonds[1]: a list of 1, expected two outputs, action and flow"},
        {"\n  - [motor.t, mass1.v, mass1.x]\n", F, 7, "bonds[1]: a list of 3"},
        {"\n  - [motor.t, [mass1.v]]\n", F, 7, "bonds[1]: a list, expected a text"},
        {"\n  - [motr.t, mass1.v]\n", N, 7,
         "bonds[1].action: 'motr.t': there is no unit 'motr', did you mean 'motor'?"},
        {"\n  - action: motor.t\n    flow: mas1.v\n", N, 8,
         "bonds[1].flow: 'mas1.v': there is no unit 'mas1', did you mean 'mass1'?"},
        {"\n  - [torque, mass1.v]\n", F, 7, "bonds[1].action: 'torque', expected unit.variable"},
        {"\n  - { action: motor.t }\n", F, 7, "bonds[1]: the key 'flow' is missing"},
        {"\n  - { flow: motor.t }\n", F, 7, "bonds[1]: the key 'action' is missing"},
        {"\n  - { action: motor.t, flo: mass1.v }\n", F, 7,
         "unknown key 'flo', did you mean 'flow'?"},
        {"\n  - { action: motor.t, flow: mass1.v, correct: powr }\n", F, 7,
         "bonds[1].correct: 'powr' is not known, did you mean 'power'? Expected one of none, "
         "power"},
        {"\n  - { action: motor.t, flow: mass1.v, mu: -0.5 }\n", R, 7,
         "bonds[1].mu: '-0.5' is less than 0"},
        {"\n  - { action: motor.t, flow: mass1.v, ki: -1 }\n", R, 7, "bonds[1].ki: '-1' is less"},
        {"\n  - action: motor.t\n    flow: mass1.v\n    ki: 3\n", R, 9,
         "bonds[1]: ki = 3, expected 0 <= ki <= 2"},
        {"\n  - { action: motor.t, flow: mass1.v, limiter: 0 }\n", R, 7,
         "bonds[1].limiter: '0' is not greater than 0"},
        {"\n  - { action: motor.t, flow: mass1.v, forget: 0 }\n", R, 7,
         "bonds[1].forget: '0' is not greater than 0"},
        {"\n  - { action: motor.t, flow: mass1.v, forget: 1.5 }\n", R, 7,
         "bonds[1]: forget = 1.5, expected 0 < forget <= 1"},
        {"\n  - { action: motor.t, flow: mass1.v, factor: wide }\n", R, 7,
         "bonds[1]: factor = 'wide', expected a number that is not 0 and its unit, such as 0.0012"},
        {"\n  - { action: motor.t, flow: mass1.v, factor: 0 m2 }\n", R, 7, "factor = '0 m2'"},
        {"\n  - action: motor.t\n    flow: mass1.v\n    stiffness: -3 N/m\n", R, 9,
         "bonds[1]: stiffness = '-3 N/m', expected a number greater than 0"},
        {"\n  - { action: motor.t, flow: mass1.v, damping: 1 N.s/m }\n", R, 7,
         "bonds[1]: damping without stiffness"},
        {"\n  - { action: motor.t, flow: mass1.v, factor: 2 m, stiffness: 1 N/m }\n", R, 7,
         "bonds[1]: factor and stiffness, expected one of them"},
        {"\n  - { action: motor.t, flow: mass1.v, name: '' }\n", F, 7,
         "bonds[1].name: an empty text"},
        {"\n  - [motor.t, mass1.v]\n  - { action: motor.t, flow: mass1.v }\n", R, 8,
         "bonds[2]: the bond of 'motor.t' and 'mass1.v' is there twice, first in line 7"},
        {"\n  - { name: a, action: motor.t, flow: mass1.v }\n"
         "  - { name: a, action: mass1.t, flow: motor.w }\n",
         R, 8, "bonds: the name 'a' is there twice, expected one of its own"},
    };
    all_refused(*state, UNITS "bonds:", rows, COUNT(rows));
}

static void wrong_keys_of_connections_and_units_are_refused(void** state)
{
    static const mistake rows[] = {
        {"connections: [ { from: motor.y, to: mass1.u, scale: 0 } ]\n", R, 6,
         "connections[1].scale: '0' is not greater than 0, expected a number"},
        {"connections: [ { from: motor.y, to: mass1.u, tolerance: -1 } ]\n", R, 6,
         "connections[1].tolerance: '-1' is not greater than 0"},
        {"connections: [ { from: motor.y, to: mass1.u, extrapolation: hold } ]\n", F, 6,
         "connections[1]: unknown key 'extrapolation'"},
        {"connections: [ { from: motor.y, to: mass1.u, coupling: eros, scale: 1 } ]\n", F, 6,
         "connections[1]: coupling and scale, expected one of them"},
    };
    all_refused(*state, UNITS, rows, COUNT(rows));
    static const mistake units[] = {
        {"{ fmu: a, refresh: often }", F, 2, "units.a.refresh: 'often', expected auto, yes or no"},
        {"{ fmu: a, refresh: }", F, 2, "units.a.refresh: nothing, expected auto, yes or no"},
        {"{ fmu: a, refresh: \"yes\" }", F, 2, "units.a.refresh: 'yes', expected auto, yes or no"},
        {"{ signal: { shape: step }, refresh: yes }", F, 2,
         "units.a: 'refresh' is for units with the key 'fmu' only"},
        {"{ fmu: a, real: 2 }", F, 2, "units.a.real: '2', expected true or false"},
    };
    char text[200];
    for (size_t i = 0; i < COUNT(units); i++) {
        mistake m = units[i];
        snprintf(text, sizeof text, "%s }\n", units[i].text);
        m.text = text;
        all_refused(*state, "cardan: 1\nunits: { a: ", &m, 1);
    }
}

static void an_amendment_is_refused_as_a_whole_description_would_be(void** state)
{
    crd_context* ctx = *state;
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"bonds: [ [motor.torque, mass1.v], [motor.torque, mass1.v] ]\n",
         "more.yaml:1: bonds[2]: the bond of 'motor.torque' and 'mass1.v' is there twice"},
        {"bonds:\n - { name: shaft, action: mass1.f, flow: motor.v }\n",
         "bonds: the name 'shaft' is there twice"},
        {"run:\n  control: { ceiling: 1 ns }\n",
         "more.yaml:2: run.control: floor = 1e-06 s and ceiling = 1e-09 s"},
        {"run:\n  control: { first: 1 s }\n", "more.yaml:2: run.control: first: 1 s, expected"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        crd_system* s = parse(ctx, everything);
        check_status(crd_system_amend(s, rows[i].text, strlen(rows[i].text), "more.yaml", 1), R);
        check_contains(crd_error_text(ctx), rows[i].said);
        crd_system_destroy(s);
    }
}

// ---- by hand -----------------------------------------------------------------------------------

static void bonds_are_made_by_hand(void** state)
{
    crd_system* s = parse(*state, UNITS);
    crd_bond_spec b = crd_bond_spec_defaults();
    char action[] = "torque";
    b.action = action;
    b.flow_unit = 1;
    b.flow = "v";
    b.correct = CRD_CORRECT_POWER;
    check_ok(crd_system_add_bond(s, &b));
    action[0] = 'x'; // texts are copied
    check_int(s->bond_count, 1);
    check_text(s->bonds[0].action, "torque");
    check_text(s->bonds[0].name, "");
    b.flow_unit = 3;
    check_status(crd_system_add_bond(s, &b), R);
    check_contains(crd_error_text(*state), "bond of unit 0 and unit 3, there are 3");
    b.flow_unit = 1;
    b.flow = "";
    check_status(crd_system_add_bond(s, &b), R);
    check_contains(crd_error_text(*state), "bond of motor and mass1 without a variable");
    b.flow = "v";
    b.mu = -1;
    check_status(crd_system_add_bond(s, &b), R);
    check_contains(crd_error_text(*state), "bond of motor.xorque and mass1.v: ");
    check_contains(crd_error_text(*state), "mu = -1, expected >= 0");
    check_int(s->bond_count, 1);
    crd_connection_spec c = crd_connection_spec_defaults();
    c.from = c.to = "x";
    c.scale = -1;
    check_status(crd_system_add_connection(s, &c), R);
    check_contains(crd_error_text(*state), "scale = -1");
    c.scale = 0; // as good as not said
    check_ok(crd_system_add_connection(s, &c));
    crd_system_destroy(s);
}

static void every_allocation_may_fail(void** state)
{
    static const char more[] = "bonds: [ { name: b, action: mass1.f, flow: motor.v },\n"
                               "         [mass2.f, mass1.v] ]\n";
    int failures = 0;
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        a.fail_at = a.allocations + fail_at;
        crd_system* s = NULL;
        crd_status st = crd_system_parse(ctx, everything, strlen(everything), "s.yaml", &s);
        if (st == CRD_OK) { st = crd_system_amend(s, more, strlen(more), "more.yaml", 1); }
        crd_bond_spec b = crd_bond_spec_defaults();
        b.name = "by hand";
        b.action = b.flow = "x";
        for (int i = 0; i < 20 && st == CRD_OK; i++) {
            st = crd_system_add_bond(s, &b);
        }
        if (st != CRD_OK) {
            check_status(st, CRD_E_MEMORY);
            failures++;
        } else {
            check_int(s->bond_count, 23);
        }
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
    }
    check(failures >= 8);
}

// A file that only repeats itself must not take for ever.
static void a_hundred_thousand_bonds_are_read(void** state)
{
    enum { BONDS = 100000 };
    crd_text t;
    crd_text_init(&t, *state);
    crdi_text_add(&t, UNITS "bonds:\n");
    for (int i = 0; i < BONDS; i++) {
        crdi_text_add(&t, "  - { name: b%d, action: motor.t%d, flow: mass1.v }\n", i, i);
    }
    crd_system* s = NULL;
    check_ok(crd_system_parse(*state, t.data, t.length, "s.yaml", &s));
    check_int(s->bond_count, BONDS);
    crd_system_destroy(s);
    crd_text_clear(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_and_units_are_read_with_their_keys),
        cmocka_unit_test(control_and_iteration_are_read_with_all_their_keys),
        cmocka_unit_test(bonds_are_read_in_both_forms),
        cmocka_unit_test(without_a_word_the_defaults_hold),
        cmocka_unit_test(short_forms_say_the_same),
        cmocka_unit_test(every_word_is_that_of_its_method),
        cmocka_unit_test(the_ends_of_the_ranges_are_allowed),
        cmocka_unit_test(amendments_change_control_key_by_key),
        cmocka_unit_test(amendments_change_bonds_and_add_others),
        cmocka_unit_test(amendments_reach_connections_and_units),
        cmocka_unit_test(wrong_control_is_refused),
        cmocka_unit_test(other_wrong_keys_of_a_run_are_refused),
        cmocka_unit_test(wrong_bonds_are_refused),
        cmocka_unit_test(wrong_keys_of_connections_and_units_are_refused),
        cmocka_unit_test(an_amendment_is_refused_as_a_whole_description_would_be),
        cmocka_unit_test(bonds_are_made_by_hand),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_hundred_thousand_bonds_are_read),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
