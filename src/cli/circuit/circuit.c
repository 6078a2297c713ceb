// cardan circuit: simulate a netlist, look at its structure, see whether it runs in real time.
#include "cli/circuit/circuit.h"
#include "cardan/system.h"

#include <math.h>
#include <string.h>

_Static_assert((int)CRD_NETLIST_METHOD_COUNT == CRD_METHOD_GAUSS4 + 1, "a word for each method");
static const char* const starts[] = {"tr", "minimum", "constant", NULL};
static const char* const projections[] = {"none", "exact", NULL};
static const char* const mat_versions[] = {"5", "7.3", NULL};

const char* crdi_circuit_method_text(crd_circuit_method m)
{
    static const char* const texts[] = {"BDF1",
                                        "BDF2",
                                        "BDF3",
                                        "trapezoidal rule",
                                        "trapezoidal rule with carried derivatives",
                                        "TR-BDF2",
                                        "Gauss with 2 stages",
                                        "Gauss with 4 stages"};
    return texts[m];
}

// ---- options that do not go together -----------------------------------------------------------

static crd_status exclude(crd_context* ctx, const char* a, const char* b, const char* why)
{
    return crdi_fail(ctx, CRD_E_RANGE, "--%s and --%s exclude each other: %s", a, b, why);
}

static crd_status circuit_check_variable(crd_context* ctx, const crdi_circuit_command* o)
{
    const struct {
        const char* name;
        double value;
    } only[] = {{"relative", o->relative},
                {"absolute-voltage", o->voltage},
                {"absolute-current", o->current},
                {"smallest-step", o->smallest},
                {"largest-step", o->largest}};
    for (size_t i = 0; i < sizeof only / sizeof *only && !o->variable; i++) {
        if (!isnan(only[i].value)) {
            return crdi_fail(ctx, CRD_E_RANGE,
                             "--%s says how steps vary, but there is no --variable", only[i].name);
        }
    }
    if (!o->variable) { return CRD_OK; }
    if (o->input) {
        return exclude(ctx, "variable", "input",
                       "steps would pass the corners of the recording; expected a fixed step");
    }
    if (o->smallest > o->largest) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--smallest-step = %g s, expected at most "
                         "--largest-step, %g s",
                         o->smallest, o->largest);
    }
    return CRD_OK;
}

static crd_status check_accuracy(crd_context* ctx, const crdi_circuit_command* o)
{
    if (isnan(o->accuracy)) { return CRD_OK; }
    if (!(o->accuracy < 1)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--accuracy = %g, expected a part of the range below 1, as in 1e-3",
                         o->accuracy);
    }
    if (o->method >= 0) { return exclude(ctx, "accuracy", "method", "it chooses the method"); }
    if (o->variable) { return exclude(ctx, "accuracy", "variable", "its step is fixed"); }
    if (o->input) {
        return exclude(ctx, "accuracy", "input", "it is judged with the start values of inputs");
    }
    return CRD_OK;
}

static crd_status circuit_check_modes(crd_context* ctx, const crdi_circuit_command* o)
{
    const char* mode = o->structure ? "structure" : o->realtime ? "realtime" : NULL;
    if (o->structure && o->realtime) {
        return exclude(ctx, "structure", "realtime", "each is a run of its own");
    }
    if (mode && o->output) { return exclude(ctx, mode, "output", "nothing is recorded"); }
    if (mode && o->variable) { return exclude(ctx, mode, "variable", "the step is fixed"); }
    if (mode && !isnan(o->accuracy)) {
        return exclude(ctx, mode, "accuracy", "simulate with it first, and take the step it says");
    }
    if (o->every == 0) { return crdi_fail(ctx, CRD_E_RANGE, "--every = '0', expected at least 1"); }
    return CRD_OK;
}

// ---- the command -------------------------------------------------------------------------------

static crd_status run_circuit(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    const crdi_circuit_command* o = options;
    crd_status st = CRD_OK;
    crdi_circuit_job j = {.cli = cli, .o = o, .out = out};
    crd_arena_init(&j.arena, cli->ctx);
    CRD_TRY(circuit_check_modes(cli->ctx, o));
    CRD_TRY(circuit_check_variable(cli->ctx, o));
    CRD_TRY(check_accuracy(cli->ctx, o));
    CRD_TRY(crdi_circuit_load(&j, cli, o, arguments->items[0], out));
    st = o->structure  ? crdi_circuit_show_structure(&j)
         : o->realtime ? crdi_circuit_realtime(&j)
                       : crdi_circuit_run(&j);
fail:
    if (st < 0 && !out->first) { crdi_put_status(cli, out, st); }
    crdi_circuit_clear(&j);
    return st;
}

static const crdi_option rows[] = {
    OPT_TIME(crdi_circuit_command, step, "step", CRDI_POSITIVE,
             "the fixed step, the first one with --variable, the longest that --accuracy tries; "
             "what .tran says unless given"),
    OPT_TIME(crdi_circuit_command, stop, "stop", CRDI_POSITIVE,
             "where the run ends; what .tran says unless given", .alias = "stop-time"),
    OPT_CHOICE(crdi_circuit_command, method, "method", crdi_circuit_methods,
               "of integration; tr, the trapezoidal rule, unless given; gauss2 has order 4, gauss4 "
               "order 8"),
    OPT_QUANTITY(
        crdi_circuit_command, accuracy, "accuracy", "FRACTION", "", CRDI_POSITIVE,
        "choose the cheapest method and step (among --step, 1/2, 1/4, 1/5 of it ...) whose "
        "error stays below this part of each output's range: 1e-3 or '0.1 %'; says what it "
        "chose"),
    OPT_FLAG(crdi_circuit_command, variable, "variable",
             "steps as large as the accuracy allows, onto the corners of sources and the switching "
             "of switches"),
    OPT_NUMBER(crdi_circuit_command, relative, "relative", "REL", CRDI_POSITIVE,
               "with --variable: error of a step by the largest value so far; 1e-4 unless given"),
    OPT_NUMBER(
        crdi_circuit_command, voltage, "absolute-voltage", "V", CRDI_POSITIVE,
        "with --variable: error of a capacitor's voltage or temperature that does not matter; "
        "1e-6 unless given"),
    OPT_NUMBER(crdi_circuit_command, current, "absolute-current", "A", CRDI_POSITIVE,
               "with --variable: error of an inductor's current that does not matter; 1e-9 unless "
               "given"),
    OPT_TIME(crdi_circuit_command, smallest, "smallest-step", CRDI_POSITIVE,
             "with --variable: where it gives up; 1e-9 of the first step unless given"),
    OPT_TIME(crdi_circuit_command, largest, "largest-step", CRDI_POSITIVE,
             "with --variable: what .tran says unless given, else no limit"),
    OPT_CHOICE(
        crdi_circuit_command, form, "form", crdi_circuit_forms,
        "of the equations: dae has all voltages and currents (Rodriguez 2021), nodal what is "
        "left after eliminating; auto takes nodal where it can"),
    OPT_CHOICE(crdi_circuit_command, start, "start", starts,
               "of bdf2 and bdf3: the first steps by the trapezoidal rule, as few of them as "
               "possible, or a constant history; tr unless given"),
    OPT_TEXT(crdi_circuit_command, projection, "projection", "none|exact|ALPHA",
             "of the derivatives that tr-carried carries: none, exact, or a penalty; exact unless "
             "given",
             .choices = projections),
    OPT_INT(crdi_circuit_command, iterations, "iterations", "N",
            "of Newton in one step, at most; 50 unless given"),
    OPT_INT(crdi_circuit_command, fixed_iterations, "fixed-iterations", "N",
            "exactly N iterations in each step, so that all take the same time"),
    OPT_NUMBER(crdi_circuit_command, tolerance, "tolerance", "REL", CRDI_POSITIVE,
               "of Newton, relative; 1e-10 unless given"),
    OPT_LIST(crdi_circuit_command, params, "param", "NAME=NUMBER",
             "value of a .param instead of the netlist's, as in 'R=10k'", .short_name = 'D',
             .alias = "define"),
    OPT_LIST(crdi_circuit_command, set, "set", "INPUT=VALUE",
             "value of an .input for the whole run, with its unit if it has one; its start unless "
             "given"),
    OPT_FILE(crdi_circuit_command, input, "input", "csv|mf4|mat",
             "recording whose columns drive the inputs of the same names along the lines between "
             "its rows: CSV, MF4 or MAT",
             .alias = "stimulus"),
    OPT_LIST(crdi_circuit_command, signals, "signals", "LIST",
             "what to record, with * and ?: 'v(3), v(a,b), i(L1), i(R*)', t() and q() of thermal "
             "circuits, outputs by name; the netlist's outputs unless given, without any all nodes",
             .alias = "variables"),
    OPT_FILE(crdi_circuit_command, output, "output", "csv|mf4|mat",
             "result file: .csv, .mf4 (MDF 4.10) or .mat; - for CSV on standard output; a table of "
             "the signals unless given",
             .short_name = 'o', .alias = "output-file"),
    OPT_INT(crdi_circuit_command, every, "every", "N", "record every N-th step; all unless given"),
    OPT_TIME(crdi_circuit_command, from, "from", CRDI_NOT_NEGATIVE,
             "where recording and the table begin; what .tran says unless given; the run begins at "
             "0 all the same"),
    CRDI_UNIT_ROW_OPTION(crdi_circuit_command, unit_row),
    OPT_CHOICE(crdi_circuit_command, mat_version, "mat-version", mat_versions,
               "of a .mat file; 5 unless the results are too large for it"),
    OPT_FLAG(crdi_circuit_command, structure, "structure",
             "do not simulate: show parts, equations, what the fast form is left with, inputs and "
             "outputs"),
    OPT_FLAG(crdi_circuit_command, realtime, "realtime",
             "run as fast as possible, show how long steps take and which rate this machine holds; "
             "exit code 3 if a step takes longer than the step"),
    OPT_TIME(crdi_circuit_command, seconds, "seconds", CRDI_POSITIVE,
             "how long --realtime measures; 2 s unless given", .otherwise = 2),
    CRDI_JSON_OPTION("print the report as JSON on standard output"),
    OPT_FLAG(crdi_common, quiet, "quiet",
             "no report and no progress line, only warnings and errors on standard error",
             .short_name = 'q'),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_circuit = {
    .name = "circuit",
    .arguments = "FILE",
    .summary = "simulate an electric or thermal circuit from a netlist",
    .description =
        "Simulates a netlist in the words of SPICE (R, L, C, K, V, I, D, S, W, E, F, G, H, B, "
        ".subckt, .model, .param), or a thermal network, with a fixed step fit for real time or "
        "with variable steps. Beside it .input and .output name what goes in and comes out; "
        ".tran's step and stop are those of the run. A FILE of - is read from standard input.\n"
        "Without --output standard output has a table: the last value of each signal, the "
        "smallest, the largest, mean and root mean square. Standard error says what was done: "
        "parts, method, steps, speed, the longest step, Newton's iterations, and what of the "
        "netlist was passed over. Ctrl-C ends the run between two steps with everything recorded "
        "so far and exit code 1.",
    .examples = {{"cardan circuit filter.cir", "simulate as .tran says; a table of the outputs"},
                 {"cardan circuit buck.cir --step '0.1 us' -D load=2 --signals 'v(out), i(L*)' -o "
                  "buck.csv",
                  "another step and another load, recorded"},
                 {"cardan circuit rectifier.cir --accuracy '0.1 %'",
                  "let it choose method and step"},
                 {"cardan circuit inverter.cir --realtime", "does this machine hold its step?"},
                 {"cardan circuit motor.cir --structure", "what is in it"}},
    OPTIONS(rows, crdi_circuit_command),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "cir|ckt|net|sp|spice",
    .run = run_circuit,
};
