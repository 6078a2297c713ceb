// What a good description becomes, and systems made by hand.
#include "cardan/system.h"
#include "check.h"

#include <stdio.h>
#include <unistd.h>

#define NOWHERE ((crd_place){"", 0})

static crd_system* parse_at(crd_context* ctx, const char* path, const char* text)
{
    crd_system* s = NULL;
    if (crd_system_parse(ctx, text, strlen(text), path, &s) != CRD_OK) {
        fail_msg("refused: %s", crd_error_text(ctx));
    }
    return s;
}

static crd_system* parse(crd_context* ctx, const char* text)
{
    return parse_at(ctx, "models/sys.yaml", text);
}

static const char everything[] =
    "cardan: 1\n"
    "units:\n"
    "  mass1: { fmu: mass1.fmu, parameters: { m: 100, name: \"x y\", arr: [1,2,3] }, step: 2 ms,\n"
    "           logging: true, pinned: yes }\n"
    "  src: { signal: { shape: sine, amplitude: 2, frequency: 1 Hz, offset: .5, phase: 180 deg } "
    "}\n"
    "  src2:\n"
    "    signals:\n"
    "      a: { shape: step, start: 0.5 min, unit: N.m }\n"
    "      b: { shape: table, times: [0, 500 ms, 1], values: [3, 2, 0x10], interpolation: hold }\n"
    "  rec: { replay: /data/run.csv, interpolation: hold }\n"
    "connections:\n"
    "  - { from: src.y, to: mass1.F, gain: 2, offset: 1, predict: linear,\n"
    "      convert_units: false }\n"
    "  - mass1.v -> mass1.u[2,3]\n"
    "run:\n"
    "  start: -1\n"
    "  step: 1 ms\n"
    "  stop: 0.5 min\n"
    "  tolerance: 1e-6\n"
    "  scheme: { gauss-seidel: [src, { jacobi: [mass1, rec] }, src2] }\n"
    "  predict: quadratic\n"
    "  threads: 2\n"
    "  initialization: { iterations: 7, tolerance: 1e-8 }\n"
    "results: { file: run.csv, variables: [\"mass1.*\", src.y], interval: 10 ms, unit_row: on }\n";

static void units_are_read_with_all_their_keys(void** state)
{
    crd_system* s = parse(*state, everything);
    check_int(s->unit_count, 4);
    check_text(s->file, "models/sys.yaml");
    check(!s->single);
    const crd_unit_spec* u = &s->units[0];
    check_text(u->name, "mass1");
    check_int(u->source, CRD_UNIT_FMU);
    check_text(u->path, "models/mass1.fmu");
    check_near(u->step, 0.002, 0);
    check(u->logging && u->pinned);
    check_int(u->place.line, 3);
    check_text(u->place.file, "models/sys.yaml");
    check_int(u->parameter_count, 3);
    check_text(u->parameters[0].variable, "m");
    check_text(u->parameters[0].text, "100");
    check_text(u->parameters[1].text, "x y");
    check_text(u->parameters[2].text, "1 2 3");
    check_int(u->parameters[2].place.line, 3);
    u = &s->units[3];
    check_int(u->source, CRD_UNIT_REPLAY);
    check_text(u->path, "/data/run.csv");
    check_int(u->interpolation, CRD_INTERPOLATE_HOLD);
    check_near(u->step, 0, 0);
    crd_system_destroy(s);
}

static void a_dcp_slave_is_read_with_all_its_keys(void** state)
{
    static const char text[] =
        "cardan: 1\n"
        "units:\n"
        "  motor:\n"
        "    dcp: udp://127.0.0.1:8080\n"
        "    description: em.dcpx\n"
        "    parameters: { R: 0.5 }\n"
        "    session: { mode: srt, resolution: 2 ms, steps: 5, id: 7, relay: yes, one_target: "
        "yes,\n"
        "               force: yes, lossy: yes, lead: 0, contact: 2 s, timeout: 0.1, retries: 3, "
        "patience: 20 min,\n"
        "               heartbeat: 1 s, local: 10.0.0.1, key: psk.key, capture: run.pcapng }\n"
        "    bench: { limits: a, case: b, initial: c, gap: 50, watchdog: 500 ms }\n"
        "  other: { dcp: tcp://bench:8080, description: em.dcpx }\n";
    crd_system* s = parse(*state, text);
    const crd_unit_spec* u = &s->units[0];
    check_int(u->source, CRD_UNIT_DCP);
    check_text(u->address, "udp://127.0.0.1:8080");
    check_text(u->path, "models/em.dcpx");
    check(u->pinned);
    check_int(u->parameter_count, 1);
    check_int(u->session.mode, CRD_DCP_MODE_SRT);
    check_near(u->session.resolution, 2e-3, 1e-18);
    check_int(u->session.steps, 5);
    check_int(u->session.id, 7);
    check(u->session.relay && u->session.one_target && u->session.force && u->session.lossy);
    check_near(u->session.lead, 0, 0);
    check_near(u->session.contact, 2, 0);
    check_near(u->session.timeout, 0.1, 1e-15);
    check_int(u->session.retries, 3);
    check_near(u->session.patience, 1200, 0);
    check_near(u->session.heartbeat, 1, 0);
    check_text(u->session.local, "10.0.0.1");
    check_text(u->session.key, "models/psk.key");
    check_text(u->session.capture, "models/run.pcapng");
    check(u->bench.used);
    check_text(u->bench.limits, "a");
    check_text(u->bench.plan, "b");
    check_text(u->bench.initial, "c");
    check_int(u->bench.gap, 50);
    check_near(u->bench.watchdog, 0.5, 0);
    u = &s->units[1];
    check_int(u->session.mode, CRD_DCP_MODE_AUTO);
    check(isnan(u->session.resolution) && isnan(u->session.patience));
    check_near(u->session.lead, 0.5, 0);
    check_int(u->session.steps, 1);
    check(!u->bench.used && !u->session.relay);
    crd_system_destroy(s);
}

static const char with_stand_in[] =
    "cardan: 1\n"
    "units:\n"
    "  em:\n"
    "    dcp: udp://127.0.0.1:8080\n"
    "    description: em.dcpx\n"
    "    standby:\n"
    "      fmu: machine.fmu\n"
    "      parameters: { R: 0.5 }\n"
    "      solver: { method: rk4 }\n"
    "      after: 50 ms\n"
    "      fade: 1 s\n"
    "      rejoin: no\n"
    "      names: { torque_ref: demand, speed: n }\n"
    "  ice: { fmu: engine.fmu, standby: { signals: { torque: { shape: constant } } } }\n"
    "  plain: { fmu: engine.fmu }\n";

static void a_stand_in_is_read_as_a_unit_inside_of_a_unit(void** state)
{
    crd_system* s = parse(*state, with_stand_in);
    const crd_standby_spec* b = &s->units[0].standby;
    check_int(s->units[0].source, CRD_UNIT_DCP);
    check(b->model != NULL);
    check_int(b->model->source, CRD_UNIT_FMU);
    check_text(b->model->path, "models/machine.fmu");
    check_int(b->model->parameter_count, 1);
    check_int(b->model->solver.method, CRD_SOLVER_RK4);
    check_int(b->model->place.line, 6);
    check(!b->model->standby.model);
    check_near(b->after, 0.05, 1e-18);
    check_near(b->fade, 1, 0);
    check(!b->rejoin);
    check_int(b->name_count, 2);
    check_text(b->names[0].name, "torque_ref");
    check_text(b->names[0].model, "demand");
    check_text(b->names[1].name, "speed");
    check_text(b->names[1].model, "n");
    b = &s->units[1].standby;
    check_int(b->model->source, CRD_UNIT_SIGNAL);
    check_int(b->model->signal_count, 1);
    check(isnan(b->after) && b->rejoin);
    check_near(b->fade, 0.2, 0);
    check(!s->units[2].standby.model);
    crd_system_destroy(s);
}

static void signals_are_read_with_all_their_keys(void** state)
{
    crd_system* s = parse(*state, everything);
    check_int(s->units[1].source, CRD_UNIT_SIGNAL);
    check_int(s->units[1].signal_count, 1);
    const crd_signal_spec* g = &s->units[1].signals[0];
    check_text(g->name, "y");
    check_int(g->shape, CRD_SIGNAL_SINE);
    check_near(g->amplitude, 2, 0);
    check_near(g->frequency, 1, 0);
    check_near(g->offset, 0.5, 0);
    check_near(g->phase, M_PI, 1e-15);
    check_int(s->units[2].signal_count, 2);
    g = &s->units[2].signals[0];
    check_text(g->name, "a");
    check_text(g->unit, "N.m");
    check_near(g->start, 30, 0);
    check_int(g->place.line, 8);
    g = &s->units[2].signals[1];
    check_int(g->shape, CRD_SIGNAL_TABLE);
    check_int(g->table_count, 3);
    check_near(g->times[1], 0.5, 0);
    check_near(g->values[2], 16, 0);
    check_int(g->interpolation, CRD_INTERPOLATE_HOLD);
    crd_system_destroy(s);
}

static void every_shape_is_read_with_its_defaults(void** state)
{
    crd_system* s = parse(
        *state, "cardan: 1\n"
                "units:\n"
                " g:\n"
                "  signals:\n"
                "   a: { shape: constant, value: -3 }\n"
                "   b: { shape: constant, amplitude: 4, offset: 1 }\n"
                "   c: { shape: step }\n"
                "   d: { shape: ramp, duration: 2 min }\n"
                "   e: { shape: sine, frequency: 2 kHz }\n"
                "   f: { shape: chirp, duration: 1, frequency: 0, frequency2: 5 }\n"
                "   g: { shape: prbs, duration: 10 ms }\n"
                "   h: { shape: multisine, frequency2: 9, order: 12, seed: 0xFFFFFFFFFFFFFFFF }\n"
                "   i: { shape: table, times: [0], values: [1] }\n");
    const crd_signal_spec* g = s->units[0].signals;
    check_int(s->units[0].signal_count, 9);
    check_near(g[0].offset + g[0].amplitude, -3, 0);
    check_near(g[1].offset + g[1].amplitude, 5, 0);
    check_near(g[2].amplitude, 1, 0);
    check_near(g[2].offset, 0, 0);
    check_near(g[2].start, 0, 0);
    check_near(g[3].duration, 120, 0);
    check_near(g[4].frequency, 2000, 0);
    check_near(g[5].frequency2, 5, 0);
    check_int(g[6].order, 9);
    check_near(g[6].duration, 0.01, 0);
    check_int(g[7].order, 12);
    check(g[7].seed == UINT64_MAX);
    check_int(g[8].interpolation, CRD_INTERPOLATE_LINEAR);
    crd_system_destroy(s);
}

static void the_ends_of_the_ranges_of_signals_are_allowed(void** state)
{
    crd_system* s = parse(*state, "cardan: 1\n"
                                  "units:\n"
                                  " g:\n"
                                  "  signals:\n"
                                  "   a: { shape: sine, frequency: 1e-9 }\n"
                                  "   b: { shape: chirp, duration: 1, frequency: 1e-9, "
                                  "frequency2: 0 }\n"
                                  "   c: { shape: chirp, duration: 1, frequency: 0, "
                                  "frequency2: 1e-9 }\n"
                                  "   d: { shape: prbs, duration: 1, order: 3 }\n"
                                  "   e: { shape: prbs, duration: 1, order: 31 }\n"
                                  "   f: { shape: multisine, frequency2: 1e-9, order: 1 }\n");
    const crd_signal_spec* g = s->units[0].signals;
    check_int(s->units[0].signal_count, 6);
    check_near(g[0].frequency, 1e-9, 0);
    check_near(g[2].frequency2, 1e-9, 0);
    check_int(g[3].order, 3);
    check_int(g[4].order, 31);
    check_near(g[5].frequency2, 1e-9, 0);
    crd_system_destroy(s);
}

static void blanks_around_the_names_of_a_connection_do_not_count(void** state)
{
    crd_system* s = parse(*state, "cardan: 1\n"
                                  "units: { a: { fmu: a }, b: { fmu: b } }\n"
                                  "connections: [' a.y \t-> b.u ', 'b.y->a.u  ']\n");
    check_int(s->connection_count, 2);
    check_text(s->connections[0].from, "y");
    check_text(s->connections[0].to, "u");
    check_text(s->connections[1].to, "u");
    crd_system_destroy(s);
}

static void a_file_of_any_length_is_read_to_its_end(void** state)
{
    const char* path = TEST_BUILD_DIR "/test_system_long.yaml";
    for (int units = 100; units <= 10000; units *= 10) { // 2 kB, 20 kB, 230 kB
        FILE* f = fopen(path, "w");
        check(f != NULL);
        fputs("cardan: 1\nunits:\n", f);
        for (int i = 0; i < units; i++) {
            fprintf(f, "  u%d: { fmu: x.fmu }\n", i);
        }
        check_int(fclose(f), 0);
        crd_system* s = NULL;
        check_ok(crd_system_load(*state, path, &s));
        check_int(s->unit_count, units);
        crd_system_destroy(s);
    }
}

static void connections_are_read_in_both_forms(void** state)
{
    crd_system* s = parse(*state, everything);
    check_int(s->connection_count, 2);
    const crd_connection_spec* c = &s->connections[0];
    check_int(c->from_unit, 1);
    check_text(c->from, "y");
    check_int(c->to_unit, 0);
    check_text(c->to, "F");
    check_near(c->gain, 2, 0);
    check_near(c->offset, 1, 0);
    check(c->has_transformation && !c->convert_units);
    check_int(c->predict, CRD_PREDICTION_LINEAR);
    check_int(c->place.line, 12);
    c++;
    check_text(c->from, "v");
    check_text(c->to, "u[2,3]");
    check_near(c->gain, 1, 0);
    check(!c->has_transformation && c->convert_units);
    check_int(c->predict, CRD_PREDICTION_QUADRATIC); // the run's
    check_int(c->place.line, 14);
    crd_system_destroy(s);
}

static void run_and_results_are_read_with_all_their_keys(void** state)
{
    crd_system* s = parse(*state, everything);
    check_near(s->run.start, -1, 0);
    check_near(s->run.step, 0.001, 0);
    check_near(s->run.stop, 30, 0);
    check_near(s->run.tolerance, 1e-6, 0);
    check_int(s->run.threads, 2);
    check_int(s->run.loop_iterations, 7);
    check_near(s->run.loop_tolerance, 1e-8, 0);
    check_int(s->run.scheme, CRD_SCHEME_GROUPS);
    const crd_group* g = &s->run.group;
    check_int(g->kind, CRD_GROUP_GAUSS_SEIDEL);
    check_int(g->member_count, 3);
    check_int(g->members[0].kind, CRD_GROUP_UNIT);
    check_int(g->members[0].unit, 1);
    check_int(g->members[1].kind, CRD_GROUP_JACOBI);
    check_int(g->members[1].members[1].unit, 3);
    check_int(g->members[2].unit, 2);
    check_text(s->results.path, "models/run.csv");
    check_int(s->results.pattern_count, 2);
    check_text(s->results.patterns[0], "mass1.*");
    check_text(s->results.patterns[1], "src.y");
    check_near(s->results.interval, 0.01, 0);
    check(s->results.unit_row);
    crd_system_destroy(s);
}

static void the_shortest_description_gets_the_defaults(void** state)
{
    crd_system* s = parse(*state, "cardan: 1\nunits: { a: { fmu: a.fmu } }\n");
    check(isnan(s->run.start) && isnan(s->run.stop) && isnan(s->run.step));
    check(isnan(s->run.tolerance));
    check_int(s->run.scheme, CRD_SCHEME_JACOBI);
    check_int(s->run.predict, CRD_PREDICTION_AUTO);
    check_int(s->run.threads, 0);
    check_int(s->run.loop_iterations, 50);
    check_near(s->run.loop_tolerance, 1e-10, 0);
    check(s->results.path == NULL);
    check_int(s->connection_count, 0);
    check_int(s->units[0].interpolation, CRD_INTERPOLATE_LINEAR);
    crd_system_destroy(s);
}

static void sections_may_come_in_any_order_and_json_is_yaml(void** state)
{
    crd_system* s = parse(*state, "{\"results\": \"r.csv\", \"run\": {\"scheme\": \"gauss-seidel\","
                                  "\"threads\": \"auto\"}, \"connections\": [{\"from\": \"a.y\","
                                  " \"to\": \"b.u\"}], \"units\": {\"a\": {\"fmu\": \"a.fmu\"},"
                                  " \"b\": {\"fmu\": \"b.fmu\"}}, \"cardan\": 1}");
    check_int(s->run.scheme, CRD_SCHEME_GAUSS_SEIDEL);
    check_int(s->run.threads, 0);
    check_int(s->connections[0].to_unit, 1);
    check_text(s->results.path, "models/r.csv");
    crd_system_destroy(s);
}

static void windows_files_and_directives_are_read(void** state)
{
    static const char* const texts[] = {
        ("\xef\xbb\xbf"
         "cardan: 1\r\nunits:\r\n  a: { fmu: a.fmu }\r\n"),
        "%YAML 1.2\n---\ncardan: 1\nunits:\n  a: { fmu: a.fmu }\n...\n",
        "# c\ncardan: 1 # one\n'units':\n    \"a\" : { 'fmu': \"a.fmu\" }",
    };
    for (int i = 0; i < 3; i++) {
        crd_system* s = parse(*state, texts[i]);
        check_text(s->units[0].path, "models/a.fmu");
        check_int(s->units[0].place.line, i == 0 ? 3 : i == 1 ? 5 : 4);
        crd_system_destroy(s);
    }
}

static void paths_are_relative_to_the_file(void** state)
{
    static const char text[] = "cardan: 1\nunits: { a: { fmu: sub/a.fmu }, b: { fmu: /b.fmu } }\n";
    static const struct {
        const char *file, *a;
    } rows[] = {{"sys.yaml", "sub/a.fmu"},
                {"./sys.yaml", "./sub/a.fmu"},
                {"/sys.yaml", "/sub/a.fmu"},
                {"../x/sys.yaml", "../x/sub/a.fmu"},
                {"", "sub/a.fmu"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_system* s = parse_at(*state, rows[i].file, text);
        check_text(s->units[0].path, rows[i].a);
        check_text(s->units[1].path, "/b.fmu");
        crd_system_destroy(s);
    }
}

static void parameters_keep_the_text_that_was_written(void** state)
{
    crd_system* s =
        parse(*state, "cardan: 1\n"
                      "units:\n"
                      "  a:\n"
                      "    fmu: a.fmu\n"
                      "    parameters:\n"
                      "      t: 10 ms\n"
                      "      on: yes\n"
                      "      body.J[2]: 1e-3\n"
                      "      q: \"007\"\n"
                      "      e: \"\"\n"
                      "      m: [[1, 2], [3, 4]]\n"
                      "      s: [\"a b\", c, \"\", 'say \"hi\"', 'back\\slash', 10 ms]\n"
                      "      block: |\n"
                      "        two\n"
                      "        lines\n"
                      "      list:\n"
                      "        - 1\n"
                      "        - 2\n");
    static const struct {
        const char *variable, *text;
    } rows[] = {
        {"t", "10 ms"},
        {"on", "yes"},
        {"body.J[2]", "1e-3"},
        {"q", "007"},
        {"e", ""},
        {"m", "1 2 3 4"},
        {"s", "\"a b\" c \"\" \"say \\\"hi\\\"\" \"back\\\\slash\" \"10 ms\""},
        {"block", "two\nlines\n"},
        {"list", "1 2"},
    };
    check_int(s->units[0].parameter_count, 9);
    for (int i = 0; i < 9; i++) {
        check_text(s->units[0].parameters[i].variable, rows[i].variable);
        check_text(s->units[0].parameters[i].text, rows[i].text);
        check_int(s->units[0].parameters[i].place.line, i < 8 ? 6 + i : 16);
    }
    crd_system_destroy(s);
}

static void numbers_may_be_written_in_all_usual_ways(void** state)
{
    static const struct {
        const char* text;
        double value;
    } rows[] = {
        {"1e-3", 1e-3}, {".5", 0.5},      {"0x10", 16},          {"5.", 5},     {"+2", 2},
        {"010", 10},    {"1 ms", 1e-3},   {"\"1 ms\"", 1e-3},    {"1ms", 1e-3}, {"0.1 min", 6},
        {"1 h", 3600},  {"25 us", 25e-6}, {"25 \u00b5s", 25e-6}, {"1e0", 1},    {"'2 s'", 2},
        {"1E3 ms", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[120];
        snprintf(text, sizeof text, "cardan: 1\nunits: { a: { fmu: a } }\nrun: { step: %s }\n",
                 rows[i].text);
        crd_system* s = parse(*state, text);
        check_near(s->run.step, rows[i].value, 0);
        crd_system_destroy(s);
    }
}

static void truth_has_six_words(void** state)
{
    static const char* const rows[] = {"false", "true", "no", "yes", "off", "on", "False", "TRUE"};
    for (int i = 0; i < 8; i++) {
        char text[120];
        snprintf(text, sizeof text, "cardan: 1\nunits: { a: { fmu: a, logging: %s } }\n", rows[i]);
        crd_system* s = parse(*state, text);
        check_int(s->units[0].logging, i % 2);
        crd_system_destroy(s);
    }
}

static void a_thousand_units_are_read(void** state)
{
    const int n = 1000;
    char* text = malloc((size_t)n * 80 + 100);
    check(text != NULL);
    int at = sprintf(text, "cardan: 1\nunits:\n");
    for (int i = 0; i < n; i++) {
        at += sprintf(text + at, "  u%d: { fmu: u.fmu }\n", i);
    }
    at += sprintf(text + at, "connections:\n");
    for (int i = 1; i < n; i++) {
        at += sprintf(text + at, "  - u%d.y -> u%d.u\n", i - 1, i);
    }
    crd_system* s = parse(*state, text);
    check_int(s->unit_count, n);
    check_int(s->connection_count, n - 1);
    check_int(crd_system_find(s, "u999"), 999);
    check_int(crd_system_find(s, "u1000"), -1);
    check_int(s->connections[500].to_unit, 501);
    crd_system_destroy(s);
    free(text);
}

static void a_file_is_loaded_with_its_folder(void** state)
{
    const char* path = TEST_BUILD_DIR "/test_system_load.yaml";
    FILE* f = fopen(path, "w");
    check(f != NULL);
    fputs("cardan: 1\nunits: { a: { fmu: a.fmu } }\n", f);
    fclose(f);
    crd_system* s = NULL;
    check_ok(crd_system_load(*state, path, &s));
    check_text(s->units[0].path, TEST_BUILD_DIR "/a.fmu");
    crd_system_destroy(s);
    unlink(path);

    s = NULL;
    check_status(crd_system_load(*state, path, &s), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(*state), path);
    check_contains(crd_error_text(*state), ": no such file");
    check_status(crd_system_load(*state, TEST_BUILD_DIR, &s), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "a folder, expected a description");
    check(s == NULL);
}

static void a_single_fmu_becomes_a_system_named_after_it(void** state)
{
    static const struct {
        const char *path, *name;
    } rows[] = {{"models/Bouncing Ball.fmu", "Bouncing_Ball"},
                {"a.fmu", "a"},
                {"/x/dir/", "dir"},
                {"2nd.v1.fmu", "_nd_v1"},
                {".fmu", "_fmu"},
                {"./m", "m"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        crd_system* s = NULL;
        check_ok(crd_system_of_fmu(*state, rows[i].path, &s));
        check(s->single);
        check_int(s->unit_count, 1);
        check_text(s->units[0].name, rows[i].name);
        check_text(s->units[0].path, rows[i].path);
        check_int(s->units[0].source, CRD_UNIT_FMU);
        int unit = -1;
        const char* variable = "";
        check_ok(crd_system_split(s, "body.m", NOWHERE, &unit, &variable));
        check_int(unit, 0);
        check_text(variable, "body.m");
        crd_system_destroy(s);
    }
    crd_system* s = NULL;
    check_status(crd_system_of_fmu(*state, "", &s), CRD_E_RANGE);
    check_status(crd_system_of_fmu(*state, "/", &s), CRD_E_RANGE);
}

static void a_circuit_has_a_netlist_parameters_and_a_solver(void** state)
{
    static const char text[] =
        "cardan: 1\n"
        "units:\n"
        "  plain: { circuit: /abs/x.cir }\n"
        "  motor:\n"
        "    circuit: motor.cir\n"
        "    parameters: { N: 10, loss: 2 kW }\n"
        "    step: 1 ms\n"
        "    solver: { method: bdf2, form: nodal, step: 10 us,\n"
        "              iterations: 3, tolerance: 1e-6, fixed_iterations: yes }\n";
    crd_system* s = NULL;
    check_ok(crd_system_parse(*state, text, strlen(text), "dir/s.yaml", &s));
    const crd_unit_spec *plain = &s->units[0], *motor = &s->units[1];
    check_int(plain->source, CRD_UNIT_CIRCUIT);
    check_text(plain->path, "/abs/x.cir");
    check_int(plain->netlist.method, CRD_NETLIST_TR);
    check_int(plain->netlist.form, CRD_NETLIST_AUTO);
    check(isnan(plain->netlist.step) && isnan(plain->netlist.tolerance));
    check_int(plain->netlist.iterations, 0);
    check_text(motor->path, "dir/motor.cir");
    check_int(motor->netlist.method, CRD_NETLIST_BDF2);
    check_int(motor->netlist.form, CRD_NETLIST_NODAL);
    check_near(motor->netlist.step, 1e-5, 1e-20);
    check_near(motor->step, 1e-3, 0);
    check_near(motor->netlist.tolerance, 1e-6, 0);
    check_int(motor->netlist.iterations, 3);
    check(motor->netlist.fixed_iterations);
    check_int(motor->parameter_count, 2);
    check_text(motor->parameters[1].text, "2 kW");
    // What is added later changes how it runs, not what it is.
    static const char more[] = "units: { motor: { solver: { step: 5 us } } }\n";
    check_ok(crd_system_amend(s, more, strlen(more), "more", 1));
    check_near(s->units[1].netlist.step, 5e-6, 1e-20);
    check_int(s->units[1].netlist.method, CRD_NETLIST_BDF2);
    static const char other[] = "units: { motor: { fmu: b.fmu } }\n";
    check_status(crd_system_amend(s, other, strlen(other), "more", 1), CRD_E_RANGE);
    crd_system_destroy(s);
    check_ok(crd_system_of_circuit(*state, "a/my net.cir", &s));
    check(s->single);
    check_text(s->units[0].name, "my_net");
    check_int(s->units[0].source, CRD_UNIT_CIRCUIT);
    crd_system_destroy(s);
    check_status(crd_system_of_circuit(*state, "", &s), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "netlist");
}

static crd_system* by_hand(crd_context* ctx, const char* const* names, int count)
{
    crd_system* s = NULL;
    check_ok(crd_system_create(ctx, &s));
    for (int i = 0; i < count; i++) {
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = names[i];
        u.path = "x.fmu";
        int index = -1;
        check_ok(crd_system_add_unit(s, &u, &index));
        check_int(index, i);
    }
    return s;
}

static void units_by_hand_must_differ_and_make_sense(void** state)
{
    char name[] = "abc";
    const char* const names[] = {name, "b"};
    crd_system* s = by_hand(*state, names, 2);
    name[0] = 'X'; // texts were copied
    check_text(s->units[0].name, "abc");
    crd_unit_spec u = crd_unit_spec_defaults();
    check_status(crd_system_add_unit(s, &u, NULL), CRD_E_RANGE);
    u.name = "b";
    check_status(crd_system_add_unit(s, &u, NULL), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "'b' is there twice");
    u.name = "c";
    u.step = NAN;
    check_status(crd_system_add_unit(s, &u, NULL), CRD_E_RANGE);
    u.step = -1;
    check_status(crd_system_add_unit(s, &u, NULL), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "step = -1");
    check_int(s->unit_count, 2);
    crd_system_destroy(s);
    crd_system_destroy(NULL);
}

static void connections_by_hand_are_checked(void** state)
{
    const char* const names[] = {"a", "b"};
    crd_system* s = by_hand(*state, names, 2);
    crd_connection_spec c = crd_connection_spec_defaults();
    c.from_unit = 0;
    c.to_unit = 1;
    c.from = "y";
    c.to = "u";
    for (int i = 0; i < 20; i++) {
        check_ok(crd_system_add_connection(s, &c));
    }
    check_int(s->connection_count, 20);
    check_text(s->connections[19].to, "u");
    c.to_unit = 2;
    check_status(crd_system_add_connection(s, &c), CRD_E_RANGE);
    c.to_unit = 1;
    c.gain = INFINITY;
    check_status(crd_system_add_connection(s, &c), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "b.u");
    c.gain = 1;
    c.to = "";
    check_status(crd_system_add_connection(s, &c), CRD_E_RANGE);
    check_int(s->connection_count, 20);
    crd_system_destroy(s);
}

static void the_longest_unit_name_that_fits_wins(void** state)
{
    const char* const names[] = {"a", "a.b", "motor"};
    crd_system* s = by_hand(*state, names, 3);
    int unit = -1;
    const char* variable = "";
    check_ok(crd_system_split(s, "a.b.c", NOWHERE, &unit, &variable));
    check_int(unit, 1);
    check_text(variable, "c");
    check_ok(crd_system_split(s, "a.x.c", NOWHERE, &unit, &variable));
    check_int(unit, 0);
    check_text(variable, "x.c");
    const crd_place place = {"--set", 0};
    check_status(crd_system_split(s, "moter.w", place, &unit, &variable), CRD_E_NOT_FOUND);
    check_text(crd_error_text(*state),
               "--set: 'moter.w': there is no unit 'moter', did you mean 'motor'?");
    check_status(crd_system_split(s, "zzzzzz.w", place, &unit, &variable), CRD_E_NOT_FOUND);
    check_text(crd_error_text(*state), "--set: 'zzzzzz.w': there is no unit 'zzzzzz'");
    static const char* const bad[] = {"motor", "motor.", ".w", "", "."};
    for (int i = 0; i < 5; i++) {
        check_status(crd_system_split(s, bad[i], NOWHERE, &unit, &variable), CRD_E_FORMAT);
        check_contains(crd_error_text(*state), "expected unit.variable");
    }
    crd_system_destroy(s);
}

static void settings_are_appended(void** state)
{
    crd_system* s = parse(*state, "cardan: 1\nunits: { a: { fmu: a, parameters: { m: 1 } } }\n");
    char text[] = "2";
    check_ok(crd_system_set(s, 0, "m", text, (crd_place){"--set", 0}));
    check_ok(crd_system_set(s, 0, "k", "", (crd_place){"--set", 0}));
    text[0] = 'x';
    check_int(s->units[0].parameter_count, 3);
    check_text(s->units[0].parameters[0].text, "1");
    check_text(s->units[0].parameters[1].text, "2");
    check_text(s->units[0].parameters[1].place.file, "--set");
    check_text(s->units[0].parameters[2].variable, "k");
    check_status(crd_system_set(s, 1, "m", "2", NOWHERE), CRD_E_RANGE);
    crd_system_destroy(s);
}

static void a_scheme_is_read_from_one_line(void** state)
{
    const char* const names[] = {"a", "b", "c"};
    crd_system* s = by_hand(*state, names, 3);
    const crd_place place = {"--scheme", 0};
    check_ok(crd_system_set_scheme(s, "gauss-seidel", place));
    check_int(s->run.scheme, CRD_SCHEME_GAUSS_SEIDEL);
    check_ok(crd_system_set_scheme(s, "gauss-seidel: [a, jacobi: [b, c]]", place));
    check_int(s->run.scheme, CRD_SCHEME_GROUPS);
    check_int(s->run.group.kind, CRD_GROUP_GAUSS_SEIDEL);
    check_int(s->run.group.members[1].kind, CRD_GROUP_JACOBI);
    check_int(s->run.group.members[1].members[0].unit, 1);
    check_ok(crd_system_set_scheme(s, "{ jacobi: [ { gauss-seidel: [c, b] }, a ] }", place));
    check_int(s->run.group.members[0].members[0].unit, 2);
    check_ok(crd_system_set_scheme(s, "jacobi", place));
    check_int(s->run.scheme, CRD_SCHEME_JACOBI);

    static const struct {
        const char* text;
        crd_status st;
        const char* part;
    } rows[] = {
        {"jacoby", CRD_E_FORMAT, "--scheme: 'jacoby', expected jacobi, gauss-seidel"},
        {"jacobi: [a, b]", CRD_E_RANGE, "unit 'c' is not in the scheme"},
        {"jacobi: [a, b, c, a]", CRD_E_RANGE, "unit 'a' is in the scheme twice"},
        {"jacobi: [a, b, d]", CRD_E_NOT_FOUND, "there is no unit 'd'"},
        {"jacobi: []", CRD_E_FORMAT, "an empty group"},
        {"jacobi: a", CRD_E_FORMAT, "expected a list of units and groups"},
        {"gauss: [a]", CRD_E_FORMAT, "unknown key 'gauss'"},
        {"{ jacobi: [a], gauss-seidel: [b] }", CRD_E_FORMAT, "expected one of the keys"},
        {"jacobi: [a", CRD_E_FORMAT, "not valid YAML"},
        {"", CRD_E_FORMAT, "--scheme: the text is empty"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_status(crd_system_set_scheme(s, rows[i].text, place), rows[i].st);
        check_contains(crd_error_text(*state), rows[i].part);
        check_contains(crd_error_text(*state), "--scheme: ");
        check_int(s->run.scheme, CRD_SCHEME_JACOBI); // unchanged
    }
    crd_system_destroy(s);
}

// More than a handful of keys, so that the map of keys takes part.
static const char* many_parameters(void)
{
    static char text[4000];
    int at =
        snprintf(text, sizeof text, "%sunits:\n  a:\n    fmu: a\n    parameters:\n", "cardan: 1\n");
    for (int i = 0; i < 40; i++) {
        at += snprintf(text + at, sizeof text - (size_t)at, "      p%d: [%d, x]\n", i, i);
    }
    return text;
}

static void every_allocation_may_fail(void** state)
{
    const char* const texts[] = {everything, many_parameters(), with_stand_in};
    for (int k = 0; k < 3; k++) {
        int failures = 0;
        for (int64_t fail_at = 0;; fail_at++) {
            check_allocator a;
            crd_context* ctx = check_context(&a);
            const int64_t before = a.live;
            a.fail_at = a.allocations + fail_at;
            crd_system* s = NULL;
            crd_status st = crd_system_parse(ctx, texts[k], strlen(texts[k]), "a/b.yaml", &s);
            if (st == CRD_OK) { st = crd_system_set(s, 0, "m", "2", (crd_place){"--set", 0}); }
            if (st == CRD_OK) { st = crd_system_set_scheme(s, "jacobi", (crd_place){"x", 0}); }
            if (st != CRD_OK) {
                check_status(st, CRD_E_MEMORY);
                check_contains(crd_error_text(ctx), "out of memory");
                failures++;
            }
            crd_system_destroy(s);
            check_int(a.live, before);
            crd_context_destroy(ctx);
            check_int(a.live, 0);
            if (st == CRD_OK) { break; }
        }
        check(failures >= 4);
    }
}

static crd_status of_fmu(crd_context* ctx, crd_system** out)
{
    return crd_system_of_fmu(ctx, "models/a.fmu", out);
}

#define LOADED TEST_BUILD_DIR "/test_system_memory.yaml"
static crd_status from_file(crd_context* ctx, crd_system** out)
{
    return crd_system_load(ctx, LOADED, out);
}

static crd_status with_hands(crd_context* ctx, crd_system** out)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    crd_unit_spec u = crd_unit_spec_defaults();
    crd_connection_spec c = crd_connection_spec_defaults();
    c.from = "y";
    c.to = "u";
    CRD_TRY(crd_system_create(ctx, &s));
    for (int i = 0; i < 30; i++) {
        char name[300];
        snprintf(name, sizeof name, "unit%d_%0200d", i, i);
        u.name = name;
        CRD_TRY(crd_system_add_unit(s, &u, &c.to_unit));
        CRD_TRY(crd_system_add_connection(s, &c));
    }
    *out = s;
    return CRD_OK;
fail:
    crd_system_destroy(s);
    return st;
}

static void every_allocation_may_fail_on_the_other_ways_too(void** state)
{
    FILE* f = fopen(LOADED, "w");
    check(f != NULL);
    fputs(everything, f);
    fclose(f);
    crd_status (*const ways[])(crd_context*, crd_system**) = {of_fmu, from_file, with_hands};
    for (int k = 0; k < 3; k++) {
        int failures = 0;
        for (int64_t fail_at = 0;; fail_at++) {
            check_allocator a;
            crd_context* ctx = check_context(&a);
            a.fail_at = a.allocations + fail_at;
            crd_system* s = NULL;
            const crd_status st = ways[k](ctx, &s);
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
        check(failures >= 3);
    }
    unlink(LOADED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_read_with_all_their_keys),
        cmocka_unit_test(a_dcp_slave_is_read_with_all_its_keys),
        cmocka_unit_test(a_stand_in_is_read_as_a_unit_inside_of_a_unit),
        cmocka_unit_test(signals_are_read_with_all_their_keys),
        cmocka_unit_test(every_shape_is_read_with_its_defaults),
        cmocka_unit_test(the_ends_of_the_ranges_of_signals_are_allowed),
        cmocka_unit_test(blanks_around_the_names_of_a_connection_do_not_count),
        cmocka_unit_test(a_file_of_any_length_is_read_to_its_end),
        cmocka_unit_test(connections_are_read_in_both_forms),
        cmocka_unit_test(run_and_results_are_read_with_all_their_keys),
        cmocka_unit_test(the_shortest_description_gets_the_defaults),
        cmocka_unit_test(sections_may_come_in_any_order_and_json_is_yaml),
        cmocka_unit_test(windows_files_and_directives_are_read),
        cmocka_unit_test(paths_are_relative_to_the_file),
        cmocka_unit_test(parameters_keep_the_text_that_was_written),
        cmocka_unit_test(numbers_may_be_written_in_all_usual_ways),
        cmocka_unit_test(truth_has_six_words),
        cmocka_unit_test(a_thousand_units_are_read),
        cmocka_unit_test(a_file_is_loaded_with_its_folder),
        cmocka_unit_test(a_single_fmu_becomes_a_system_named_after_it),
        cmocka_unit_test(a_circuit_has_a_netlist_parameters_and_a_solver),
        cmocka_unit_test(units_by_hand_must_differ_and_make_sense),
        cmocka_unit_test(connections_by_hand_are_checked),
        cmocka_unit_test(the_longest_unit_name_that_fits_wins),
        cmocka_unit_test(settings_are_appended),
        cmocka_unit_test(a_scheme_is_read_from_one_line),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_allocation_may_fail_on_the_other_ways_too),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
