// Every mistake gives one sentence: the line, what is wrong, what would be right.
#include "cardan/system.h"
#include "check.h"

#include <stdio.h>

typedef struct mistake {
    const char* text;
    crd_status status;
    int line;
    const char *part, *other; // fragments of the message
} mistake;

// Each row's text is put between head and tail; lines are those of the whole.
static void refused(crd_context* ctx, const char* head, const mistake* m, const char* tail)
{
    char text[2000], where[32];
    snprintf(text, sizeof text, "%s%s%s", head, m->text, tail);
    crd_system* s = NULL;
    const crd_status st = crd_system_parse(ctx, text, strlen(text), "s.yaml", &s);
    const char* said = crd_error_text(ctx);
    if (st == CRD_OK) { fail_msg("accepted:\n%s", text); }
    snprintf(where, sizeof where, "s.yaml:%d: ", m->line);
    if (st != m->status || s) {
        fail_msg("%s, expected %s, for:\n%s\n%s", crd_status_name(st), crd_status_name(m->status),
                 text, said);
    }
    if (strncmp(said, where, strlen(where)) != 0 || !strstr(said, m->part) ||
        (m->other && !strstr(said, m->other))) {
        fail_msg("for:\n%s\nit says \"%s\"\nexpected \"%s\", \"%s\", \"%s\"", text, said, where,
                 m->part, m->other ? m->other : "");
    }
    if (strchr(said, '\n') || crd_status_exit_code(st) != 2) { fail_msg("\"%s\"", said); }
}

static void all_refused(crd_context* ctx, const char* head, const mistake* rows, size_t n,
                        const char* tail)
{
    for (size_t i = 0; i < n; i++) {
        refused(ctx, head, &rows[i], tail);
    }
}

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define F CRD_E_FORMAT
#define R CRD_E_RANGE
#define N CRD_E_NOT_FOUND
#define U CRD_E_UNSUPPORTED

static void broken_yaml_is_refused_with_its_line(void** state)
{
    static const mistake rows[] = {
        {"cardan: 1\nunits: [a\n", F, 3, "not valid YAML", "line 2"},
        {"cardan: 1\nunits:\n\ta: 1\n", F, 3, "not valid YAML", "a tab stands"},
        {"cardan: 1\nunits: \"a\n", F, 3, "not valid YAML", NULL},
        {"cardan: 1\n x: 2\n", F, 2, "not valid YAML", NULL},
        {"cardan: 1\nunits: { a: { fmu: '\xff' } }\n", F, 2, "not a YAML text", "UTF-8"},
        {"\ncardan: '\xff'\n", F, 2, "not a YAML text", NULL},
        {"cardan: 1\nunits: \"a\\0b\"\n", F, 2, "zero byte in 'a'", "expected text"},
        {"cardan: 1\nunits:\n  a: &x { fmu: a }\n  b: *x\n", F, 3, "anchor '&x'",
         "write each value itself"},
        {"cardan: 1\nunits:\n  b: *x\n", F, 3, "alias '*x'", "write the value itself"},
        {"# x\n%TAG ! tag:x,2000:\n---\ncardan: 1\n", F, 2, "%TAG", "leave it out"},
        {"\xef\xbb\xbf%TAG ! tag:x,2000:\r---\rcardan: 1\r", F, 1, "%TAG", NULL},
        {"# x\r%TAG ! tag:x,2000:\r---\rcardan: 1\r", F, 1, "%TAG", NULL},
        {"\xff\xfe"
         "c\x01"
         "a\x01"
         "r\x01",
         F, 1, "not a YAML text", "UTF-8"},
        {"cardan: !!int 1\n", F, 1, "tag 'tag:yaml.org,2002:int'", "leave it out"},
        {"cardan: 1\nunits: {}\n---\ncardan: 1\n", F, 3, "a second document", "one in the file"},
        {"cardan: 1\n? [a, b]\n: 1\n", F, 2, "a list as a key", "expected a name"},
        {"cardan: 1\n? { a: b }\n: 1\n", F, 2, "a mapping as a key", NULL},
        {"cardan: 1\n"
         "x: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
         F, 2, "deeper than 32", NULL},
        {"cardan: 1\nunits: { a: { fmu: a } }\nrun: { stop: 1 }\n\nrun: { stop: 2 }\n", F, 5,
         "the key 'run' is given twice", "first in line 3"},
        {"cardan: 1\nunits: { a: { fmu: a, fmu: b } }\n", F, 2, "the key 'fmu' is given twice",
         NULL},
        {"cardan: 1\nunits:\n  a: { fmu: x }\n  a: { fmu: x }\n", F, 4,
         "the key 'a' is given twice", "first in line 3"},
        {"cardan: 1\nunits: {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1, k: 1,\n"
         " l: 1, m: 1, n: 1, c: 1}\n",
         F, 3, "the key 'c' is given twice", "first in line 2"},
    };
    all_refused(*state, "", rows, COUNT(rows), "");
    static const char* const empty[] = {"", "# only a comment\n"}; // no line where there is no text
    for (int i = 0; i < 2; i++) {
        crd_system* s = NULL;
        check_status(crd_system_parse(*state, empty[i], strlen(empty[i]), "s.yaml", &s), F);
        check_text(crd_error_text(*state), "s.yaml: the text is empty");
    }
}

static void the_version_is_checked_before_all_else(void** state)
{
    static const mistake rows[] = {
        {"units: { a: { fmu: a } }\n", F, 1, "not a system description", "cardan: 1"},
        {"just text\n", F, 1, "not a system description", NULL},
        {"- a\n- b\n", F, 1, "not a system description", NULL},
        {"new: thing\ncardan: 2\n", U, 2, "version '2'", "expected 1"},
        {"cardan: \"1\"\n", U, 1, "version '1'", NULL},
        {"cardan: [1]\n", U, 1, "version", NULL},
        {"cardan:\n", U, 1, "version ''", NULL},
        {"cardan: 1.0\n", U, 1, "version '1.0'", NULL},
        {"cardan: 1\n", F, 1, "the key 'units' is missing", NULL},
        {"cardan: 1\nunit: { a: { fmu: a } }\n", F, 2, "unknown key 'unit'",
         "did you mean 'units'? Allowed here: cardan, title, system, variant, units, connections, "
         "bonds, run, results"},
        {"cardan: 1\nunits: { a: { fmu: a } }\nbond: []\n", F, 3, "unknown key 'bond'",
         "Allowed here"},
        {"cardan: 1\ntitle: ''\nunits: { a: { fmu: a } }\n", F, 2, "title: an empty text", NULL},
        {"cardan: 1\n\nsystem: x.ssp\n", U, 3, "system: 'x.ssp' cannot be read here",
         "expected the keys units and connections"},
        {"cardan: 1\nvariant: x\nunits: { a: { fmu: a } }\n", F, 2, "variant: 'x' of what?",
         "system"},
    };
    all_refused(*state, "", rows, COUNT(rows), "");
}

static void wrong_units_are_refused(void** state)
{
    static const mistake rows[] = {
        {"\n", F, 2, "units: nothing", "expected a mapping of unit names"},
        {" [a]\n", F, 2, "units: a list", NULL},
        {" {}\n", F, 2, "units: no unit at all", NULL},
        {"\n  a:\n", F, 3, "units.a: nothing", "the keys fmu, signal, signals, replay, circuit"},
        {"\n  a: { dcp: udp://h:1 }\n", F, 3, "units.a: the key 'description' is missing", ".dcpx"},
        {"\n  a: { signal: { shape: constant }, session: { } }\n", F, 3, "'session' is for units",
         "'dcp'"},
        {"\n  a: { fmu: x, standby: { after: 1 s } }\n", F, 3,
         "units.a.standby: nothing says what the stand-in is", "fmu, signal, signals, replay"},
        {"\n  a: { fmu: x, standby: { fmu: y, twin: z } }\n", F, 3, "more than one key", NULL},
        {"\n  a:\n    fmu: x\n    standby:\n      fmu: y\n      standby: { fmu: z }\n", F, 7,
         "units.a.standby: unknown key 'standby'", "Allowed here: fmu"},
        {"\n  a:\n    fmu: x\n    standby:\n      dcp: udp://h:1\n", F, 6, "unknown key 'dcp'",
         NULL},
        {"\n  a: { fmu: x, standby: { fmu: y, fade: 0 } }\n", R, 3,
         "units.a.standby.fade: '0' is not greater than 0", NULL},
        {"\n  a: { fmu: x, standby: { twin: y, solver: {} } }\n", F, 3,
         "'solver' is for units with the key 'fmu' or 'circuit' only", NULL},
        {"\n  a: { fmu: x, standby: { fmu: y, names: [b] } }\n", F, 3,
         "units.a.standby.names: a list", "each with that of the stand-in"},
        {"\n  a: { fmu: x, standby: { fmu: y, names: { b: } } }\n", F, 3,
         "units.a.standby.names.b: nothing, expected a text", NULL},
        {"\n  a: { fmu: x, standby: y.fmu }\n", F, 3, "units.a.standby: 'y.fmu'",
         "expected a mapping with the keys fmu"},
        {"\n  a: a.fmu\n", F, 3, "units.a: 'a.fmu', expected a mapping", NULL},
        {"\n  a.b: { fmu: a }\n", F, 3, "'a.b' is no name for a unit", "letters, digits, _ or -"},
        {"\n  \"\": { fmu: a }\n", F, 3, "'' is no name for a unit", NULL},
        {"\n  2nd: { fmu: a }\n", F, 3, "'2nd' is no name for a unit", "a letter or _"},
        {"\n  a b: { fmu: a }\n", F, 3, "'a b' is no name", NULL},
        {"\n  a: {}\n", F, 3, "units.a: nothing says what the unit is", "fmu, signal"},
        {"\n  a:\n    step: 1 ms\n", F, 3, "nothing says what the unit is", NULL},
        {"\n  a: { fmu: a, replay: b }\n", F, 3, "more than one of the keys", "one of them"},
        {"\n  a:\n    fmu: x\n    paramters: {}\n", F, 5, "units.a: unknown key 'paramters'",
         "did you mean 'parameters'?"},
        {"\n  a: { fmu: x, coupling: {} }\n", F, 3, "unknown key 'coupling'", "Allowed here: fmu"},
        {"\n  a: { fmu: }\n", F, 3, "units.a.fmu: nothing, expected a text", NULL},
        {"\n  a: { fmu: '' }\n", F, 3, "units.a.fmu: an empty text", NULL},
        {"\n  a: { fmu: [x] }\n", F, 3, "units.a.fmu: a list, expected a text", NULL},
        {"\n  a: { fmu: x, step: 0 }\n", R, 3, "units.a.step: '0' is not greater than 0",
         "a time such as 10 ms"},
        {"\n  a: { fmu: x, logging: 1 }\n", F, 3, "units.a.logging: '1', expected true or false",
         NULL},
        {"\n  a: { fmu: x, logging: \"true\" }\n", F, 3, "in quotes and so a text",
         "expected true or false without quotes"},
        {"\n  a: { fmu: x, logging: y }\n", F, 3, "'y', expected true or false", NULL},
        {"\n  a: { fmu: x, interpolation: hold }\n", F, 3,
         "'interpolation' is for units with the key 'replay' only", NULL},
        {"\n  a:\n    replay: x\n    pinned: true\n", F, 5,
         "'pinned' is for units with the key 'fmu' only", NULL},
        {"\n  a: { fmu: x, interface: me }\n", F, 3, "units.a.interface: 'me' is not known",
         "auto, co-simulation, model-exchange"},
        {"\n  a: { replay: x, interface: auto }\n", F, 3,
         "'interface' is for units with the key 'fmu' only", NULL},
        {"\n  a:\n    replay: x\n    solver: {}\n", F, 5,
         "'solver' is for units with the key 'fmu' or 'circuit' only", NULL},
        {"\n  a: { circuit: }\n", F, 3, "units.a.circuit: nothing, expected a text", NULL},
        {"\n  a: { circuit: x, fmu: y }\n", F, 3, "more than one of the keys", "circuit"},
        {"\n  a: { twin: x, circuit: y }\n", F, 3, "more than one of the keys", "twin"},
        {"\n  a: { twin: x, solver: {} }\n", F, 3,
         "'solver' is for units with the key 'fmu' or 'circuit' only", NULL},
        {"\n  a:\n    circuit: x\n    interface: auto\n", F, 5,
         "'interface' is for units with the key 'fmu' only", NULL},
        {"\n  a: { circuit: x, solver: { method: trap } }\n", F, 3,
         "units.a.solver.method: 'trap' is not known", "bdf1, bdf2, bdf3, tr, tr-carried"},
        {"\n  a: { circuit: x, solver: { step: 0 } }\n", R, 3,
         "units.a.solver.step: '0' is not greater than 0", "a time such as 10 ms"},
        {"\n  a: { circuit: x, solver: { step: -1 us } }\n", R, 3, "not greater than 0", NULL},
        {"\n  a: { circuit: x, solver: { relative: 1e-3 } }\n", F, 3, "unknown key 'relative'",
         "method, form, step, iterations, tolerance, fixed_iterations"},
        {"\n  a: { circuit: x, solver: { iterations: 0 } }\n", R, 3, "iterations: '0'", NULL},
        {"\n  a: { fmu: x, solver: bdf }\n", F, 3, "units.a.solver: 'bdf', expected a mapping",
         "method, relative, absolute, step"},
        {"\n  a:\n    fmu: x\n    solver:\n      method: rk5\n", F, 6,
         "units.a.solver.method: 'rk5' is not known, did you mean 'rk4'?",
         "bdf, adams, euler, rk4"},
        {"\n  a: { fmu: x, solver: { relative: 0 } }\n", R, 3,
         "solver.relative: '0' is not greater", NULL},
        {"\n  a: { fmu: x, solver: { step: 1 m } }\n", F, 3, "solver.step: '1 m' is a length",
         NULL},
        {"\n  a: { fmu: x, solver: { order: 5 } }\n", F, 3, "units.a.solver: unknown key 'order'",
         NULL},
        {"\n  a: { fmu: x, repeat: true }\n", F, 3,
         "'repeat' is for units with the key 'replay' only", NULL},
        {"\n  a: { signal: { shape: step }, columns: {} }\n", F, 3,
         "'columns' is for units with the key 'replay' only", NULL},
        {"\n  a: { replay: x, columns: [b] }\n", F, 3, "units.a.columns: a list",
         "a mapping of column names"},
        {"\n  a:\n    replay: x\n    columns:\n      v: km/h\n", F, 6,
         "units.a.columns.v: 'km/h', expected a mapping", "interpolation, unit"},
        {"\n  a: { replay: x, columns: { v: { unit: kmh } } }\n", F, 3,
         "units.a.columns.v: unit: 'kmh' is not known", "such as km/h"},
        {"\n  a: { replay: x, columns: { '': { unit: m } } }\n", F, 3, "a column without a name",
         NULL},
        {"\n  a: { replay: x, time_offset: 3 m }\n", F, 3, "units.a.time_offset: '3 m' is a length",
         NULL},
        {"\n  a: { replay: x, repeat: 2 }\n", F, 3, "units.a.repeat: '2', expected true or false",
         NULL},
        {"\n  a: { replay: x, interpolation: cubic }\n", F, 3, "'cubic' is not known",
         "Expected one of hold, linear"},
        {"\n  a: { replay: x, interpolation: liner }\n", F, 3, "did you mean 'linear'?", NULL},
        {"\n  a: { fmu: x, parameters: 3 }\n", F, 3, "units.a.parameters: '3'", "a mapping"},
        {"\n  a: { fmu: x, parameters: { m: } }\n", F, 3, "units.a.parameters.m: nothing",
         "a value or a list"},
        {"\n  a: { fmu: x, parameters: { m: { n: 1 } } }\n", F, 3, "parameters.m: a mapping", NULL},
        {"\n  a: { fmu: x, parameters: { m: [] } }\n", F, 3, "parameters.m: an empty list", NULL},
        {"\n  a: { fmu: x, parameters: { m: [1, ] } }\n  a.b: {}", F, 4, "'a.b'", NULL},
        {"\n  a: { fmu: x, parameters: { m: [1, {b: 2}] } }\n", F, 3, "a mapping, expected a value",
         NULL},
        {"\n  a: { fmu: x, parameters: { '': 1 } }\n", F, 3, "a parameter without a name", NULL},
    };
    all_refused(*state, "cardan: 1\nunits:", rows, COUNT(rows), "");
}

static void a_quantity_of_another_kind_is_named(void** state)
{
    static const char* const rows[][2] = {
        {"5 %", "a plain ratio"},    {"1 Hz", "a frequency"},
        {"1 mm", "a length"},        {"1 m2", "an area"},
        {"1 l", "a volume"},         {"1 kg", "a mass"},
        {"1 deg", "an angle"},       {"1 rpm", "an angular velocity"},
        {"1 km/h", "a velocity"},    {"1 m/s2", "an acceleration"},
        {"1 kN", "a force"},         {"1 J", "a torque or an energy"},
        {"1 kW", "a power"},         {"1 bar", "a pressure"},
        {"1 degC", "a temperature"}, {"1 mA", "a current"},
        {"1 V", "a voltage"},        {"1 kg.m2", "something else"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[80], part[80];
        snprintf(text, sizeof text, " { a: { fmu: x, step: %s } }\n", rows[i][0]);
        snprintf(part, sizeof part, "'%s' is %s, expected a time", rows[i][0], rows[i][1]);
        refused(*state, "cardan: 1\nunits:", &(mistake){text, F, 2, part, NULL}, "");
    }
}

static void a_unit_name_may_not_be_endless(void** state)
{
    char text[400], name[200];
    memset(name, 'a', sizeof name);
    name[150] = 0;
    snprintf(text, sizeof text, " { %s: { fmu: a } }\n", name);
    refused(*state,
            "cardan: 1\nunits:", &(mistake){text, F, 2, "has 150 characters", "at most 100"}, "");
}

static void wrong_signals_are_refused(void** state)
{
    static const mistake rows[] = {
        {"{ amplitude: 1 }", F, 4, "units.g.signal: the key 'shape' is missing", NULL},
        {"{ shape: sinus, frequency: 1 }", F, 4, "signal.shape: 'sinus' is not known",
         "constant, step, ramp, sine, chirp, prbs, multisine, table"},
        {"{ shape: sine }", F, 4, "the shape sine needs the key 'frequency'", NULL},
        {"{ shape: sine, frequency: 1, duration: 2 }", F, 4,
         "the shape sine has no use for 'duration'", "shape, unit, offset, amplitude, start"},
        {"{ shape: sine, frequency: 0 }", R, 4, "frequency: 0 Hz", "more than 0"},
        {"{ shape: sine, frequency: 1 s }", F, 4, "'1 s' is a time, expected a frequency", "50 Hz"},
        {"{ shape: sine, frequency: 60 rpm }", F, 4, "is an angular velocity", NULL},
        {"{ shape: sine, frequency: -1 }", R, 4, "'-1' is less than 0", NULL},
        {"{ shape: sine, frequency: 1, phase: 1 s }", F, 4, "signal.phase: '1 s' is a time",
         "an angle such as 90 deg"},
        {"{ shape: step, amplitude: 3 N }", F, 4, "'3 N' is a force, expected a number", NULL},
        {"{ shape: step, amplitude: big }", F, 4, "'big' is not a number", NULL},
        {"{ shape: step, start: 1 sec }", F, 4, "no unit 'sec' is known", "a time such as"},
        {"{ shape: step, unit: parsec }", F, 4, "unit: 'parsec' is not known", "N.m"},
        {"{ shape: constant, value: 1, offset: 1 }", F, 4, "expected value alone", NULL},
        {"{ shape: ramp }", F, 4, "the shape ramp needs the key 'duration'", NULL},
        {"{ shape: ramp, duration: 0 s }", R, 4, "'0 s' is not greater than 0", NULL},
        {"{ shape: chirp, duration: 1, frequency: 0, frequency2: 0 }", R, 4, "are both 0",
         "from 0.1 Hz to 10 Hz"},
        {"{ shape: chirp, duration: 1, frequency: 1 }", F, 4, "needs the key 'frequency2'", NULL},
        {"{ shape: chirp, frequency: 1, frequency2: 2 }", F, 4, "needs the key 'duration'", NULL},
        {"{ shape: prbs, duration: 1, order: 2 }", R, 4, "order: 2", "3 to 31 bits"},
        {"{ shape: prbs, duration: 1, order: 32 }", R, 4, "order: 32", NULL},
        {"{ shape: prbs, duration: 1, order: 3.5 }", F, 4, "'3.5', expected a whole number",
         "from 1 to 10000"},
        {"{ shape: prbs, duration: 1, order: 99999999999 }", R, 4, "is out of range", NULL},
        {"{ shape: prbs, duration: 1, order: 0xFFFFFFFFFFFF }", R, 4, "is out of range", NULL},
        {"{ shape: prbs, duration: 1, seed: -1 }", F, 4, "seed: '-1'", "of at least 0"},
        {"{ shape: multisine, frequency2: 0, order: 3 }", R, 4, "frequency2: 0 Hz", NULL},
        {"{ shape: multisine, frequency2: 3 }", F, 4, "needs the key 'order'", NULL},
        {"{ shape: table, times: [0, 1], values: [1] }", R, 4, "2 times but 1 values", NULL},
        {"{ shape: table, times: [0, 1, 1], values: [1, 2, 3] }", R, 4, "times[3] = 1 after 1",
         "ascending"},
        {"{ shape: table, times: [0, 2, 1], values: [1, 2, 3] }", R, 4, "times[3] = 1 after 2",
         NULL},
        {"{ shape: table, times: [], values: [] }", R, 4, "times: an empty list", NULL},
        {"{ shape: table, times: 3, values: [1] }", F, 4, "times: '3', expected a list", NULL},
        {"{ shape: table, times: [0, 1 m], values: [1, 2] }", F, 4,
         "signal.times[2]: '1 m' is a length, expected a time", NULL},
        {"{ shape: table, times: [0, [1]], values: [1, 2] }", F, 4, "times[2]: a list", NULL},
        {"{ shape: table, times: [0, .nan], values: [1, 2] }", R, 4, "'.nan' is not finite", NULL},
        {"{ shape: table, times: [0], values: [-.INF] }", R, 4, "'-.INF' is not finite", NULL},
        {"3", F, 4, "units.g.signal: '3', expected a mapping", NULL},
    };
    all_refused(*state, "cardan: 1\nunits:\n  g:\n    signal: ", rows, COUNT(rows), "\n");
    static const mistake several[] = {
        {"[]", F, 4, "units.g.signals: a list, expected a mapping of output names", NULL},
        {"{}", F, 4, "no signal at all", NULL},
        {"{ a: 1 }", F, 4, "units.g.signals.a: '1', expected a mapping", NULL},
        {"{ a.b: { shape: step } }", F, 4, "'a.b' is no name for an output", NULL},
        {"\n      a: { shape: step }\n      b: { shape: sine }", F, 6,
         "units.g.signals.b: the shape sine needs", NULL},
    };
    all_refused(*state, "cardan: 1\nunits:\n  g:\n    signals: ", several, COUNT(several), "\n");
}

static void wrong_connections_are_refused(void** state)
{
    static const mistake rows[] = {
        {" false\n", F, 5, "connections: 'false', expected a list", NULL},
        {" { from: mass1.y, to: motor.u }\n", F, 5, "connections: a mapping, expected a list",
         NULL},
        {"\n  - mass1.y, motor.u\n", F, 6, "connections[1]: 'mass1.y, motor.u'",
         "unit.output -> unit.input"},
        {"\n  - mass1.y -> motor.u -> x.y\n", F, 6, "expected unit.output -> unit.input", NULL},
        {"\n  - mass1.y ->\n", F, 6, "expected unit.output -> unit.input", NULL},
        {"\n  - mas1.y -> motor.u\n", N, 6, "there is no unit 'mas1', did you mean 'mass1'?", NULL},
        {"\n  - mass1.y -> motr.u\n", N, 6, "'motr.u': there is no unit 'motr'",
         "did you mean 'motor'?"},
        {"\n  - mass1.y -> motor.u\n  - { from: whatever.x, to: motor.v }\n", N, 7,
         "there is no unit 'whatever'", NULL},
        {"\n  - y -> motor.u\n", F, 6, "'y', expected unit.variable", NULL},
        {"\n  - { from: mass1.y }\n", F, 6, "connections[1]: the key 'to' is missing", NULL},
        {"\n  - { from: mass1.y, too: motor.u }\n", F, 6, "unknown key 'too', did you mean 'to'?",
         "Allowed here: from, to, gain, offset, map, predict, scale, tolerance, coupling, "
         "convert_units"},
        {"\n  - { from: mass1.y, to: motor.u, bond: {} }\n", F, 6, "unknown key 'bond'", NULL},
        {"\n  - { from: mass1.y, to: motor.u, map: [1, 2] }\n", F, 6, "connections[1].map: a list",
         "a mapping such as { off: 0, slow: 1 }"},
        {"\n  - { from: mass1.y, to: motor.u, map: {} }\n", F, 6, "map: an empty mapping", NULL},
        {"\n  - { from: mass1.y, to: motor.u, map: { 1: [2] } }\n", F, 6, "map.1: a list", NULL},
        {"\n  - { from: mass1.y, to: motor.u, map: { '': 2 } }\n", F, 6, "map: an empty text",
         NULL},
        {"\n  - { from: mass1.y, to: motor.u, map: { 1: '' } }\n", F, 6, "map.1: an empty text",
         NULL},
        {"\n  - from: mass1.y\n    to: motor.u\n    gain: 2\n    map: { 1: 2 }\n", F, 9,
         "map and gain or offset", "expected map alone"},
        {"\n  - { from: mass1.y, to: motor.u, gain: 2 m }\n", F, 6, "gain: '2 m' is a length",
         "expected a number"},
        {"\n  - { from: mass1.y, to: motor.u, gain: \"2\" }\n", F, 6, "gain: '2' is in quotes",
         "without quotes"},
        {"\n  - { from: mass1.y, to: motor.u, gain: .inf }\n", R, 6, "'.inf' is not finite", NULL},
        {"\n  - { from: mass1.y, to: motor.u, predict: linaer }\n", F, 6,
         "did you mean 'linear'? Expected one of auto, hold, linear, quadratic, taylor1", NULL},
        {"\n  - { from: mass1.y, to: motor.u, convert_units: maybe }\n", F, 6,
         "convert_units: 'maybe', expected true or false", NULL},
        {"\n  -\n", F, 6, "connections[1]: nothing", NULL},
        {"\n  - [mass1.y, motor.u]\n", F, 6, "connections[1]: a list, expected a mapping", NULL},
        {"\n  - mass1.y -> motor.u\n  - mass1.x -> motor.v\n  - { from: mass1.z, to: motor.u }\n",
         R, 8, "'motor.u' gets its value from mass1.y in line 6 already", "one source"},
    };
    all_refused(*state,
                "cardan: 1\nunits:\n  mass1: { fmu: a }\n  motor: { fmu: b }\nconnections:", rows,
                COUNT(rows), "");
}

static void wrong_runs_are_refused(void** state)
{
    static const mistake rows[] = {
        {"\n", F, 3, "run: nothing, expected a mapping with the keys start, stop, step", NULL},
        {" 3\n", F, 3, "run: '3', expected a mapping", NULL},
        {"\n  stpe: 1\n", F, 4, "run: unknown key 'stpe', did you mean 'step'?",
         "Allowed here: start, stop, step, tolerance, scheme, predict, pace, control, iterate, "
         "feedthrough, monitor, guard, threads"},
        {" { pase: realtime }\n", F, 3, "unknown key 'pase', did you mean 'pace'?", NULL},
        {"\n  step: 10 m\n", F, 4, "run.step: '10 m' is a length, expected a time such as 10 ms",
         NULL},
        {" { step: 0 }\n", R, 3, "run.step: '0' is not greater than 0", "a time such as 10 ms"},
        {" { step: -1 ms }\n", R, 3, "run.step: '-1 ms' is not greater than 0", NULL},
        {" { step: .nan }\n", R, 3, "run.step: '.nan' is not finite", NULL},
        {" { step: NaN }\n", R, 3, "run.step: 'NaN' is not finite", NULL},
        {" { step: 1e-400 }\n", R, 3, "is not greater than 0", NULL},
        {" { stop: .inf }\n", R, 3, "run.stop: '.inf' is not finite", NULL},
        {" { step: fast }\n", F, 3, "run.step: 'fast' is not a number, expected a time", NULL},
        {" { step: 1_000 }\n", F, 3, "no unit '_000' is known", NULL},
        {" { step: 1:30 }\n", F, 3, "run.step", NULL},
        {" { step: \"0.1\" }\n", F, 3, "'0.1' is in quotes", NULL},
        {" { step: [1] }\n", F, 3, "run.step: a list, expected a time", NULL},
        {" { step: { a: 1 } }\n", F, 3, "run.step: a mapping, expected a time", NULL},
        {" { step: true }\n", F, 3, "'true' is not a number", NULL},
        {" { step: 10 furlongs }\n", F, 3, "no unit 'furlongs' is known", NULL},
        {" { step: 10 kg }\n", F, 3, "is a mass", NULL},
        {" { step: 10 Hz }\n", F, 3, "is a frequency", NULL},
        {" { step: 10 % }\n", F, 3, "is a plain ratio", NULL},
        {" { step: 10 kg.m }\n", F, 3, "is something else", NULL},
        {"\n  start: 2\n  stop: 1500 ms\n", R, 5, "run: stop = 1.5 s is before start = 2 s", NULL},
        {" { tolerance: 0 }\n", R, 3, "run.tolerance: '0'", NULL},
        {" { threads: 0 }\n", R, 3, "run.threads: '0' is out of range", "from 1 to 1024, or auto"},
        {" { threads: all }\n", F, 3, "run.threads: 'all'", "or auto"},
        {" { threads: 1.5 }\n", F, 3, "run.threads: '1.5'", NULL},
        {" { predict: cubic }\n", F, 3, "'cubic' is not known.",
         "one of auto, hold, linear, quadratic, taylor1, taylor2, hermite, ab2, ab3, ab4"},
        {" { initialization: { iteration: 3 } }\n", F, 3,
         "run.initialization: unknown key 'iteration', did you mean 'iterations'?", NULL},
        {" { initialization: { iterations: 0 } }\n", R, 3, "initialization.iterations: '0'", NULL},
        {" { initialization: { tolerance: -1 } }\n", R, 3, "initialization.tolerance: '-1'", NULL},
        {" { initialization: 3 }\n", F, 3, "run.initialization: '3', expected a mapping", NULL},
        {" { scheme: }\n", F, 3, "run.scheme: nothing, expected jacobi, gauss-seidel", NULL},
        {" { scheme: jacoby }\n", F, 3, "run.scheme: 'jacoby', expected jacobi", NULL},
        {" { scheme: [a, b] }\n", F, 3, "run.scheme: a list", NULL},
        {" { scheme: { jacobi: [mass] } }\n", R, 3, "the unit 'motor' is not in the scheme",
         "each unit once"},
        {"\n  scheme:\n    jacobi:\n      - mass\n      - gauss-seidel: [motor, mass]\n", R, 7,
         "run.scheme.jacobi.gauss-seidel: the unit 'mass' is in the scheme twice", NULL},
        {" { scheme: { jacobi: [mass, moter] } }\n", N, 3,
         "there is no unit 'moter', did you mean 'motor'?", NULL},
        {" { scheme: { jacobi: [] } }\n", F, 3, "an empty group", NULL},
        {" { scheme: {} }\n", F, 3, "expected one of the keys jacobi and gauss-seidel", NULL},
        {" { scheme: { gaus-seidel: [mass] } }\n", F, 3, "did you mean 'gauss-seidel'?", NULL},
        {" { scheme: { jacobi: [[mass, motor]] } }\n", F, 3, "a list, expected a mapping", NULL},
    };
    all_refused(*state, "cardan: 1\nunits: { mass: { fmu: a }, motor: { fmu: b } }\nrun:", rows,
                COUNT(rows), "");
}

static void wrong_results_are_refused(void** state)
{
    static const mistake rows[] = {
        {"\n", F, 3, "results: nothing, expected a mapping with the keys file, variables", NULL},
        {" ''\n", F, 3, "results.file: an empty text", NULL},
        {" [a.csv]\n", F, 3, "results: a list", NULL},
        {" { fiel: a.csv }\n", F, 3, "unknown key 'fiel', did you mean 'file'?", NULL},
        {" { variables: { a: b } }\n", F, 3, "results.variables: a mapping, expected a text", NULL},
        {" { variables: [a, ''] }\n", F, 3, "results.variables[2]: an empty text", NULL},
        {" { interval: -1 }\n", R, 3, "results.interval: '-1' is less than 0", NULL},
        {" { interval: 1 N }\n", F, 3, "results.interval: '1 N' is a force", NULL},
        {" { unit_row: 2 }\n", F, 3, "results.unit_row: '2', expected true or false", NULL},
        {" { mat: 7 }\n", F, 3, "results.mat: '7', expected 5 or 7.3", NULL},
        {" { mat: [5] }\n", F, 3, "results.mat: ", "expected 5 or 7.3"},
    };
    all_refused(*state, "cardan: 1\nunits: { a: { fmu: a } }\nresults:", rows, COUNT(rows), "");
}

static void hostile_texts_do_not_reach_the_message_whole(void** state)
{
    char text[1500];
    char name[900]; // YAML itself allows keys of 1024
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    snprintf(text, sizeof text, "cardan: 1\nunits: { a: { fmu: a } }\n\"%s\": 1\n", name);
    crd_system* s = NULL;
    check_status(crd_system_parse(*state, text, strlen(text), "s.yaml", &s), CRD_E_FORMAT);
    check(strlen(crd_error_text(*state)) < 300);
    check_contains(crd_error_text(*state), "xxx...'");

    // control characters do not reach the terminal, characters of several bytes are not cut
    const char* nasty = "cardan: 1\nunits: { \"a\\e[31m\\n\": 1 }\n";
    check_status(crd_system_parse(*state, nasty, strlen(nasty), "s.yaml", &s), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "'a?[31m?'");
    snprintf(
        text, sizeof text, "cardan: 1\nunits: { a%s%s%s: 1 }\n", "\u00fc\u00fc\u00fc\u00fc\u00fc",
        "\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc",
        "\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc");
    check_status(crd_system_parse(*state, text, strlen(text), "s.yaml", &s), CRD_E_FORMAT);
    check_contains(crd_error_text(*state), "\u00fc...'");
    check(s == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_yaml_is_refused_with_its_line),
        cmocka_unit_test(the_version_is_checked_before_all_else),
        cmocka_unit_test(wrong_units_are_refused),
        cmocka_unit_test(a_quantity_of_another_kind_is_named),
        cmocka_unit_test(a_unit_name_may_not_be_endless),
        cmocka_unit_test(wrong_signals_are_refused),
        cmocka_unit_test(wrong_connections_are_refused),
        cmocka_unit_test(wrong_runs_are_refused),
        cmocka_unit_test(wrong_results_are_refused),
        cmocka_unit_test(hostile_texts_do_not_reach_the_message_whole),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
