// What a description adds to a system that is there already, and the keys that came with it.
#include "cardan/system.h"
#include "check.h"
#include "shared/base.h"

#include <stdio.h>

// ---- a system to stand on ----------------------------------------------------------------------

static const char* base_path; // as the last call of base got them
static const char* base_variant;
static crd_place base_place;

static crd_status add_unit(crd_system* s, const char* name, crd_unit_source source, int line)
{
    crd_unit_spec unit = crd_unit_spec_defaults();
    unit.name = name;
    unit.source = source;
    unit.path = source == CRD_UNIT_SIGNAL ? "" : "resources/x";
    unit.place = (crd_place){"car.ssd", line};
    return crd_system_add_unit(s, &unit, NULL);
}

static crd_status connect_units(crd_system* s, int from, const char* y, int to, const char* u,
                                int line)
{
    crd_connection_spec c = crd_connection_spec_defaults();
    c.from_unit = from;
    c.from = y;
    c.to_unit = to;
    c.to = u;
    c.place = (crd_place){"car.ssd", line};
    return crd_system_add_connection(s, &c);
}

// Reads "an SSP": units drive.motor and body (FMUs), wind (a generator without signals), track (a
// recording); motor.tau -> body.tau, body.w -> motor.w.
static crd_status base(crd_system* s, const char* path, const char* variant, crd_place place)
{
    crd_status st = CRD_OK;
    base_path = path;
    base_variant = variant;
    base_place = place;
    if (strcmp(path, "cars/bad.ssp") == 0) {
        return crdi_fail(s->ctx, CRD_E_NOT_FOUND, "%s:%d: %s: no such file", place.file, place.line,
                         path);
    }
    CRD_TRY(add_unit(s, "drive.motor", CRD_UNIT_FMU, 10));
    CRD_TRY(add_unit(s, "body", CRD_UNIT_FMU, 20));
    CRD_TRY(add_unit(s, "wind", CRD_UNIT_SIGNAL, 30));
    CRD_TRY(add_unit(s, "track", CRD_UNIT_REPLAY, 40));
    CRD_TRY(connect_units(s, 0, "tau", 1, "tau", 50));
    CRD_TRY(connect_units(s, 1, "w", 0, "w", 51));
    CRD_TRY(crd_system_set(s, 0, "R", "1", (crd_place){"car.ssv", 3}));
    s->run.stop = 5;
    s->title = "car";
fail:
    return st;
}

static crd_system* load(crd_context* ctx, const char* text)
{
    crd_system* s = NULL;
    if (crd_system_load_on(ctx, text, strlen(text), "cars/my.yaml", base, &s) != CRD_OK) {
        fail_msg("refused: %s", crd_error_text(ctx));
    }
    return s;
}

static void a_description_stands_on_a_system(void** state)
{
    crd_system* s = load(*state, "cardan: 1\nsystem: car.ssp\n");
    check_text(base_path, "cars/car.ssp");
    check(base_variant == NULL);
    check_text(base_place.file, "cars/my.yaml");
    check_int(base_place.line, 2);
    check_text(s->base, "cars/car.ssp");
    check_text(s->file, "cars/my.yaml");
    check_text(s->title, "car");
    check_int(s->unit_count, 4);
    check_int(s->connection_count, 2);
    crd_system_destroy(s);

    s = load(*state, "cardan: 1\ntitle: winter car\nvariant: winter\n"
                     "system: /abs/car.ssp\nunits: {}\nrun: { step: 1 ms }\n");
    check_text(base_path, "/abs/car.ssp");
    check_text(base_variant, "winter");
    check_int(base_place.line, 4);
    check_text(s->title, "winter car");
    check_near(s->run.step, 1e-3, 0);
    check_near(s->run.stop, 5, 0); // the base's
    crd_system_destroy(s);
}

static void units_of_the_base_get_parameters_and_options(void** state)
{
    crd_system* s = load(*state, "cardan: 1\n"
                                 "system: car.ssp\n"
                                 "units:\n"
                                 "  drive.motor:\n"
                                 "    parameters: { R: 2, L: 3 mH }\n"
                                 "    step: 2 ms\n"
                                 "    interface: model-exchange\n"
                                 "    solver: { method: rk4, step: 10 us }\n"
                                 "    logging: true\n"
                                 "    pinned: true\n"
                                 "  wind: { signal: { shape: constant, value: 3 } }\n"
                                 "  track: { replay: other.csv, repeat: true }\n"
                                 "  extra: { fmu: extra.fmu }\n");
    const crd_unit_spec* u = &s->units[0];
    check_int(s->unit_count, 5);
    check_int(u->parameter_count, 3); // the last one of a name wins
    check_text(u->parameters[0].text, "1");
    check_text(u->parameters[1].variable, "R");
    check_text(u->parameters[1].text, "2");
    check_text(u->parameters[1].place.file, "cars/my.yaml");
    check_int(u->parameters[1].place.line, 5);
    check_text(u->parameters[2].text, "3 mH");
    check_near(u->step, 2e-3, 1e-18);
    check_int(u->interface, CRD_INTERFACE_MODEL_EXCHANGE);
    check_int(u->solver.method, CRD_SOLVER_RK4);
    check_near(u->solver.step, 1e-5, 1e-18);
    check(isnan(u->solver.relative));
    check(u->logging && u->pinned);
    check_text(u->path, "resources/x");
    check_int(u->place.line, 10); // it is still where it was
    check_int(s->units[2].signal_count, 1);
    check_int(s->units[2].source, CRD_UNIT_SIGNAL);
    check_text(s->units[3].path, "cars/other.csv");
    check(s->units[3].repeat);
    check_text(s->units[4].path, "cars/extra.fmu");
    check_int(crd_system_find(s, "extra"), 4);
    crd_system_destroy(s);
}

static void connections_of_the_base_get_options_and_new_ones_are_added(void** state)
{
    crd_system* s = load(*state, "cardan: 1\n"
                                 "system: car.ssp\n"
                                 "connections:\n"
                                 "  - { from: drive.motor.tau, to: body.tau, gain: 2, offset: 1,\n"
                                 "      convert_units: false }\n"
                                 "  - { from: body.w, to: drive.motor.w, predict: hold }\n"
                                 "  - track.slope -> body.slope\n"
                                 "run: { predict: linear }\n");
    check_int(s->connection_count, 3);
    check_near(s->connections[0].gain, 2, 0);
    check_near(s->connections[0].offset, 1, 0);
    check(s->connections[0].has_transformation && !s->connections[0].convert_units);
    check_int(s->connections[0].predict, CRD_PREDICTION_LINEAR); // the run's
    check_int(s->connections[1].predict, CRD_PREDICTION_HOLD);
    check(s->connections[1].convert_units && !s->connections[1].has_transformation);
    check_int(s->connections[2].from_unit, 3);
    check_int(s->connections[2].predict, CRD_PREDICTION_LINEAR);

    static const char map[] = "connections: [{ from: drive.motor.tau, to: body.tau, map: "
                              "{ true: false, 3: 4, low: high } }]\n";
    check_ok(crd_system_amend(s, map, strlen(map), "a.yaml", 1));
    const crd_connection_spec* c = &s->connections[0];
    check_int(c->map_count, 3);
    check_text(c->map[0].from, "true");
    check_text(c->map[0].to, "false");
    check_text(c->map[1].from, "3");
    check_text(c->map[1].to, "4");
    check_text(c->map[2].from, "low");
    check(!c->has_transformation && c->gain == 1 && c->offset == 0); // a map takes their place
    check(!c->convert_units);                                        // as before

    static const char gain[] = "connections: [{ from: drive.motor.tau, to: body.tau, gain: 7 }]\n";
    check_ok(crd_system_amend(s, gain, strlen(gain), "a.yaml", 1));
    check_int(s->connections[0].map_count, 0);
    check_near(s->connections[0].gain, 7, 0);
    crd_system_destroy(s);
}

static void results_and_run_change_key_by_key(void** state)
{
    crd_system* s = load(*state, "cardan: 1\nsystem: car.ssp\n"
                                 "results: { file: a.mat, mat: 7.3, variables: [\"body.*\"] }\n");
    check_int(s->results.mat_version, 73);
    static const char more[] = "results: { interval: 1 s }\nrun: { tolerance: 1e-4 }\n";
    check_ok(crd_system_amend(s, more, strlen(more), "b/b.yaml", 1));
    check_text(s->results.path, "cars/a.mat");
    check_int(s->results.mat_version, 73);
    check_int(s->results.pattern_count, 1);
    check_near(s->results.interval, 1, 0);
    check_near(s->run.stop, 5, 0);
    static const char again[] = "results: { file: c.mat, mat: 5 }\n";
    check_ok(crd_system_amend(s, again, strlen(again), "b/b.yaml", 1));
    check_text(s->results.path, "b/c.mat");
    check_int(s->results.mat_version, 5);
    crd_system_destroy(s);
}

static void columns_of_a_recording_are_read(void** state)
{
    static const char text[] = "cardan: 1\n"
                               "units:\n"
                               "  cycle:\n"
                               "    replay: wltp.csv\n"
                               "    columns:\n"
                               "      speed: { unit: km/h }\n"
                               "      \"gear*\": { interpolation: hold, unit: \"1\" }\n"
                               "    time_offset: -10 s\n"
                               "    repeat: yes\n";
    crd_system* s = NULL;
    check_ok(crd_system_parse(*state, text, strlen(text), "s.yaml", &s));
    const crd_unit_spec* u = &s->units[0];
    check_int(u->column_count, 2);
    check_text(u->columns[0].name, "speed");
    check_text(u->columns[0].unit, "km/h");
    check(!u->columns[0].has_interpolation);
    check_text(u->columns[1].name, "gear*");
    check(u->columns[1].has_interpolation);
    check_int(u->columns[1].interpolation, CRD_INTERPOLATE_HOLD);
    check_near(u->time_offset, -10, 0);
    check(u->repeat);
    check_int(u->interpolation, CRD_INTERPOLATE_LINEAR);
    // new columns come first: the first that fits counts
    static const char more[] = "units: { cycle: { columns: { speed: { unit: m/s } } } }\n";
    check_ok(crd_system_amend(s, more, strlen(more), "s.yaml", 1));
    check_int(s->units[0].column_count, 3);
    check_text(s->units[0].columns[0].unit, "m/s");
    check_text(s->units[0].columns[1].unit, "km/h");
    crd_system_destroy(s);
}

static void solvers_are_read(void** state)
{
    static const char text[] =
        "cardan: 1\n"
        "units:\n"
        "  a: { fmu: a.fmu, interface: co-simulation }\n"
        "  b: { fmu: b.fmu, interface: model-exchange,\n"
        "       solver: { method: adams, relative: 1e-8, absolute: 1e-9, step: 1 ms } }\n"
        "  c: { fmu: c.fmu }\n";
    crd_system* s = NULL;
    check_ok(crd_system_parse(*state, text, strlen(text), "s.yaml", &s));
    check_int(s->units[0].interface, CRD_INTERFACE_COSIMULATION);
    check_int(s->units[1].solver.method, CRD_SOLVER_ADAMS);
    check_near(s->units[1].solver.relative, 1e-8, 0);
    check_near(s->units[1].solver.absolute, 1e-9, 0);
    check_near(s->units[1].solver.step, 1e-3, 0);
    check_int(s->units[2].interface, CRD_INTERFACE_AUTO);
    check_int(s->units[2].solver.method, CRD_SOLVER_BDF);
    check(isnan(s->units[2].solver.relative) && isnan(s->units[2].solver.step));
    crd_system_destroy(s);
}

static void lines_are_those_of_the_file_around_the_text(void** state)
{
    crd_system* s = load(*state, "cardan: 1\nsystem: car.ssp\n");
    static const char good[] = "\nunits:\n  body:\n    parameters: { m: 1 }\n";
    check_ok(crd_system_amend(s, good, strlen(good), "car.ssd", 100));
    check_int(s->units[1].parameters[0].place.line, 103);
    check_text(s->units[1].parameters[0].place.file, "car.ssd");
    static const char* const bad[] = {"\nrun:\n  stpo: 1\n", "\nrun:\n  step: -1\n",
                                      "\nrun:\n  [a\n", "\nrun:\n  step: \xff\n"};
    static const char* const at[] = {"car.ssd:102: run: unknown key 'stpo'",
                                     "car.ssd:102: run.step: '-1'", "car.ssd:103: not valid YAML",
                                     "car.ssd:102: not a YAML text"};
    for (int i = 0; i < 4; i++) {
        check(crd_system_amend(s, bad[i], strlen(bad[i]), "car.ssd", 100) < 0);
        check_contains(crd_error_text(*state), at[i]);
    }
    static const char unknown[] = "\n\nrun: { stpo: 1 }\n"; // no line known: none is said
    check(crd_system_amend(s, unknown, strlen(unknown), "car.ssd", 0) < 0);
    check_contains(crd_error_text(*state), "car.ssd: run: unknown key 'stpo'");
    crd_system_destroy(s);
}

static void what_does_not_fit_the_system_below_is_refused(void** state)
{
    static const struct {
        const char* text;
        crd_status status;
        const char *part, *other;
    } rows[] = {
        {"system: bad.ssp\n", CRD_E_NOT_FOUND, "my.yaml:2: cars/bad.ssp: no such file", ""},
        {"units: { bdy: { step: 1 } }\nsystem: c\n", CRD_E_NOT_FOUND,
         "my.yaml:2: units.bdy: there is no such unit, did you mean 'body'?", "fmu, signal"},
        {"system: c\nunits:\n  zebra:\n    step: 1\n", CRD_E_NOT_FOUND,
         "my.yaml:4: units.zebra: there is no such unit. A new one needs", ""},
        {"system: c\nunits: { body: { circuit: x.cir } }\n", CRD_E_RANGE,
         "my.yaml:3: units.body: 'circuit': the unit is there already, in car.ssd:20",
         "not what it is"},
        {"system: c\nunits: { wind: { replay: x.csv } }\n", CRD_E_RANGE, "car.ssd:30", ""},
        {"system: c\nunits: { track: { signal: { shape: step } } }\n", CRD_E_RANGE, "car.ssd:40",
         ""},
        {"system: c\nunits: { body: { fmu: a, replay: x.csv } }\n", CRD_E_FORMAT,
         "more than one of the keys", ""},
        {"system: c\nunits: { body: { repeat: true } }\n", CRD_E_FORMAT,
         "'repeat' is for units with the key 'replay' only", ""},
        {"system: c\nunits: { track: { parameters: {} } }\n", CRD_E_FORMAT,
         "'parameters' is for units with the key 'fmu', 'dcp', 'circuit', 'twin'", ""},
        {"system: c\nunits: { \"new one\": { fmu: x.fmu } }\n", CRD_E_FORMAT,
         "'new one' is no name for a unit", ""},
        {"system: c\nconnections:\n  - track.y -> body.tau\n", CRD_E_RANGE,
         "my.yaml:4: connections[1]: 'body.tau' gets its value from drive.motor.tau in car.ssd:50 "
         "already",
         "one source"},
        {"system: c\nconnections:\n  - body.w -> drive.motor.w\n  - body.w -> drive.motor.w\n",
         CRD_E_RANGE,
         "my.yaml:5: connections[2]: 'drive.motor.w' gets its value from body.w in "
         "line 4 already",
         ""},
        {"system: c\nrun: { stop: -1, start: 0 }\n", CRD_E_RANGE, "stop = -1 s is before", ""},
        {"variant: x\n", CRD_E_FORMAT, "variant: 'x' of what?", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[400];
        snprintf(text, sizeof text, "cardan: 1\n%s", rows[i].text);
        crd_system* s = NULL;
        check_status(crd_system_load_on(*state, text, strlen(text), "cars/my.yaml", base, &s),
                     rows[i].status);
        check(s == NULL);
        check_contains(crd_error_text(*state), rows[i].part);
        check_contains(crd_error_text(*state), rows[i].other);
    }
}

static void an_amendment_has_no_system_of_its_own(void** state)
{
    crd_system* s = load(*state, "cardan: 1\nsystem: car.ssp\n");
    static const char* const texts[] = {"system: x.ssp\n", "variant: x\n", "cardan: 2\n", "[a]\n",
                                        ""};
    static const char* const parts[] = {"'system' has no place", "'variant' has no place",
                                        "version '2'", "a list", "the text is empty"};
    for (int i = 0; i < 5; i++) {
        check(crd_system_amend(s, texts[i], strlen(texts[i]), "x.ssd", 7) < 0);
        check_contains(crd_error_text(*state), parts[i]);
    }
    static const char good[] = "cardan: 1\ntitle: x\n";
    check_ok(crd_system_amend(s, good, strlen(good), "x.ssd", 7));
    check_text(s->title, "x");
    // units have the names that an SSP gives them
    static const char names[] = "units: { drive.push me: { signal: { shape: step } } }\n";
    check_ok(crd_system_amend(s, names, strlen(names), "x.ssd", 7));
    check_int(crd_system_find(s, "drive.push me"), 4);
    static const char bad[] = "units: { \"a\\tb\": { fmu: x.fmu } }\n";
    check_status(crd_system_amend(s, bad, strlen(bad), "x.ssd", 7), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "x.ssd:7: units: 'a?b' is no name for a unit");
    crd_system_destroy(s);
}

static void groups_must_know_units_that_come_later(void** state)
{
    crd_system* s = load(*state, "cardan: 1\nsystem: car.ssp\n"
                                 "run: { scheme: { gauss-seidel: [wind, track, "
                                 "{ jacobi: [drive.motor, body] }] } }\n");
    check_int(s->run.group.members[2].members[0].unit, 0);
    static const char bad[] = "units:\n  late: { fmu: late.fmu }\n";
    check_status(crd_system_amend(s, bad, strlen(bad), "a.yaml", 1), CRD_E_RANGE);
    check_contains(crd_error_text(*state),
                   "a.yaml:1: the unit 'late' is new and not in the scheme");
    crd_system_destroy(s);
    s = load(*state, "cardan: 1\nsystem: car.ssp\n"
                     "run: { scheme: { jacobi: [wind, track, drive.motor, body] } }\n");
    static const char good[] =
        "units:\n  late: { fmu: late.fmu }\n"
        "run: { scheme: { jacobi: [wind, track, drive.motor, body, late] } }\n";
    check_ok(crd_system_amend(s, good, strlen(good), "a.yaml", 1));
    crd_system_destroy(s);
}

static void every_allocation_may_fail(void** state)
{
    static const char text[] =
        "cardan: 1\n"
        "system: car.ssp\n"
        "title: t\n"
        "units:\n"
        "  drive.motor: { parameters: { R: 2 }, solver: { method: rk4 } }\n"
        "  wind: { signal: { shape: step } }\n"
        "  track: { columns: { a: { unit: m } } }\n"
        "  late: { fmu: late.fmu }\n"
        "connections:\n"
        "  - { from: drive.motor.tau, to: body.tau, map: { 1: 2 } }\n"
        "  - track.a -> body.a\n"
        "run: { scheme: { jacobi: [drive.motor, body, wind, track, late] } }\n"
        "results: { file: x.mat, mat: 5 }\n";
    int failures = 0;
    for (int64_t fail_at = 0;; fail_at++) {
        check_allocator a;
        crd_context* ctx = check_context(&a);
        a.fail_at = a.allocations + fail_at;
        crd_system* s = NULL;
        const crd_status st = crd_system_load_on(ctx, text, strlen(text), "cars/my.yaml", base, &s);
        if (st != CRD_OK) {
            check_status(st, CRD_E_MEMORY);
            check(s == NULL);
            failures++;
        }
        crd_system_destroy(s);
        crd_context_destroy(ctx);
        check_int(a.live, 0);
        if (st == CRD_OK) { break; }
    }
    check(failures >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_description_stands_on_a_system),
        cmocka_unit_test(units_of_the_base_get_parameters_and_options),
        cmocka_unit_test(connections_of_the_base_get_options_and_new_ones_are_added),
        cmocka_unit_test(results_and_run_change_key_by_key),
        cmocka_unit_test(columns_of_a_recording_are_read),
        cmocka_unit_test(solvers_are_read),
        cmocka_unit_test(lines_are_those_of_the_file_around_the_text),
        cmocka_unit_test(what_does_not_fit_the_system_below_is_refused),
        cmocka_unit_test(an_amendment_has_no_system_of_its_own),
        cmocka_unit_test(groups_must_know_units_that_come_later),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
