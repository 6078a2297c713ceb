// cardan circuit: simulate a netlist, look at its structure, see whether it runs in real time.
#include "cli/circuit.h"

#include <math.h>
#include <string.h>

const char* const crdi_circuit_methods[] = {"bdf1",   "bdf2",   "bdf3",   "tr", "tr-carried",
                                            "trbdf2", "gauss2", "gauss4", NULL};
_Static_assert(sizeof crdi_circuit_methods / sizeof *crdi_circuit_methods == CRD_METHOD_GAUSS4 + 2,
               "a name for each method");
static const char* const forms[] = {"auto", "dae", "nodal", NULL};
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

static crd_status check_variable(crd_context* ctx, const crdi_circuit_command* o)
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

static crd_status check_modes(crd_context* ctx, const crdi_circuit_command* o)
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

static crd_status run_circuit(crdi_cli* cli, const void* options, const crdi_list* arguments)
{
    const crdi_circuit_command* o = options;
    crd_status st = CRD_OK;
    crdi_circuit_job j = {.cli = cli, .o = o};
    crd_arena_init(&j.arena, cli->ctx);
    CRD_TRY(check_modes(cli->ctx, o));
    CRD_TRY(check_variable(cli->ctx, o));
    CRD_TRY(check_accuracy(cli->ctx, o));
    CRD_TRY(crdi_circuit_load(&j, cli, o, arguments->items[0]));
    st = o->structure  ? crdi_circuit_show_structure(&j)
         : o->realtime ? crdi_circuit_realtime(&j)
                       : crdi_circuit_run(&j);
fail:
    if (st < 0 && o->common.json && !j.printed) {
        st = crdi_circuit_print_json(&j, json_object(), st);
    }
    crdi_circuit_clear(&j);
    return st;
}

#define AT(field) .offset = offsetof(crdi_circuit_command, field)
static const crdi_option rows[] = {
    {.name = "step",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     .range = CRDI_POSITIVE,
     AT(step),
     .help = "the fixed step, the first one with --variable, the longest that --accuracy tries; "
             "what .tran says unless given"},
    {.name = "stop",
     .alias = "stop-time",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     .range = CRDI_POSITIVE,
     AT(stop),
     .help = "where the run ends; what .tran says unless given"},
    {.name = "method",
     .type = CRDI_OPT_CHOICE,
     .choices = crdi_circuit_methods,
     AT(method),
     .help = "of integration; tr, the trapezoidal rule, unless given; gauss2 has order 4, gauss4 "
             "order 8"},
    {.name = "accuracy",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "FRACTION",
     .unit = "",
     .range = CRDI_POSITIVE,
     AT(accuracy),
     .help = "choose the cheapest method and step (among --step, 1/2, 1/4, 1/5 of it ...) whose "
             "error stays below this part of each output's range: 1e-3 or '0.1 %'; says what it "
             "chose"},
    {.name = "variable",
     .type = CRDI_OPT_FLAG,
     AT(variable),
     .help = "steps as large as the accuracy allows, onto the corners of sources and the switching "
             "of switches"},
    {.name = "relative",
     .type = CRDI_OPT_NUMBER,
     .metavar = "REL",
     .range = CRDI_POSITIVE,
     AT(relative),
     .help = "with --variable: error of a step by the largest value so far; 1e-4 unless given"},
    {.name = "absolute-voltage",
     .type = CRDI_OPT_NUMBER,
     .metavar = "V",
     .range = CRDI_POSITIVE,
     AT(voltage),
     .help = "with --variable: error of a capacitor's voltage or temperature that does not matter; "
             "1e-6 unless given"},
    {.name = "absolute-current",
     .type = CRDI_OPT_NUMBER,
     .metavar = "A",
     .range = CRDI_POSITIVE,
     AT(current),
     .help = "with --variable: error of an inductor's current that does not matter; 1e-9 unless "
             "given"},
    {.name = "smallest-step",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     .range = CRDI_POSITIVE,
     AT(smallest),
     .help = "with --variable: where it gives up; 1e-9 of the first step unless given"},
    {.name = "largest-step",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     .range = CRDI_POSITIVE,
     AT(largest),
     .help = "with --variable: what .tran says unless given, else no limit"},
    {.name = "form",
     .type = CRDI_OPT_CHOICE,
     .choices = forms,
     AT(form),
     .help = "of the equations: dae has all voltages and currents (Rodriguez 2021), nodal what is "
             "left after eliminating; auto takes nodal where it can"},
    {.name = "start",
     .type = CRDI_OPT_CHOICE,
     .choices = starts,
     AT(start),
     .help = "of bdf2 and bdf3: the first steps by the trapezoidal rule, as few of them as "
             "possible, or a constant history; tr unless given"},
    {.name = "projection",
     .type = CRDI_OPT_TEXT,
     .metavar = "none|exact|ALPHA",
     .choices = projections,
     AT(projection),
     .help = "of the derivatives that tr-carried carries: none, exact, or a penalty; exact unless "
             "given"},
    {.name = "iterations",
     .type = CRDI_OPT_INT,
     .metavar = "N",
     AT(iterations),
     .help = "of Newton in one step, at most; 50 unless given"},
    {.name = "fixed-iterations",
     .type = CRDI_OPT_INT,
     .metavar = "N",
     AT(fixed_iterations),
     .help = "exactly N iterations in each step, so that all take the same time"},
    {.name = "tolerance",
     .type = CRDI_OPT_NUMBER,
     .metavar = "REL",
     .range = CRDI_POSITIVE,
     AT(tolerance),
     .help = "of Newton, relative; 1e-10 unless given"},
    {.name = "param",
     .alias = "define",
     .short_name = 'D',
     .type = CRDI_OPT_LIST,
     .metavar = "NAME=NUMBER",
     AT(params),
     .help = "value of a .param instead of the netlist's, as in 'R=10k'"},
    {.name = "set",
     .type = CRDI_OPT_LIST,
     .metavar = "INPUT=VALUE",
     AT(set),
     .help = "value of an .input for the whole run, with its unit if it has one; its start unless "
             "given"},
    {.name = "input",
     .alias = "stimulus",
     .type = CRDI_OPT_FILE,
     .metavar = "FILE",
     .extensions = "csv|mf4|mat",
     AT(input),
     .help = "recording whose columns drive the inputs of the same names along the lines between "
             "its rows: CSV, MF4 or MAT"},
    {.name = "signals",
     .alias = "variables",
     .type = CRDI_OPT_LIST,
     .metavar = "LIST",
     AT(signals),
     .help =
         "what to record, with * and ?: 'v(3), v(a,b), i(L1), i(R*)', t() and q() of thermal "
         "circuits, outputs by name; the netlist's outputs unless given, without any all nodes"},
    {.name = "output",
     .alias = "output-file",
     .short_name = 'o',
     .type = CRDI_OPT_FILE,
     .metavar = "FILE",
     .extensions = "csv|mf4|mat",
     AT(output),
     .help = "result file: .csv, .mf4 (MDF 4.10) or .mat; - for CSV on standard output; a table of "
             "the signals unless given"},
    {.name = "every",
     .type = CRDI_OPT_INT,
     .metavar = "N",
     AT(every),
     .help = "record every N-th step; all unless given"},
    {.name = "from",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     .range = CRDI_NOT_NEGATIVE,
     AT(from),
     .help = "where recording and the table begin; what .tran says unless given; the run begins at "
             "0 all the same"},
    {.name = "unit-row",
     .type = CRDI_OPT_FLAG,
     AT(unit_row),
     .help = "write the physical units as second line of the CSV"},
    {.name = "mat-version",
     .type = CRDI_OPT_CHOICE,
     .choices = mat_versions,
     AT(mat_version),
     .help = "of a .mat file; 5 unless the results are too large for it"},
    {.name = "structure",
     .type = CRDI_OPT_FLAG,
     AT(structure),
     .help = "do not simulate: show parts, equations, what the fast form is left with, inputs and "
             "outputs"},
    {.name = "realtime",
     .type = CRDI_OPT_FLAG,
     AT(realtime),
     .help = "run as fast as possible, show how long steps take and which rate this machine holds; "
             "exit code 3 if a step takes longer than the step"},
    {.name = "seconds",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     .range = CRDI_POSITIVE,
     AT(seconds),
     .help = "how long --realtime measures; 2 s unless given"},
    CRDI_JSON_OPTION("print the report as JSON on standard output"),
    {.name = "quiet",
     .short_name = 'q',
     .type = CRDI_OPT_FLAG,
     .offset = offsetof(crdi_common, quiet),
     .help = "no report, no progress line, only errors on standard error"},
    CRDI_COMMON_OPTIONS,
};

const crdi_circuit_command crdi_circuit_command_defaults = {
    .common = CRDI_COMMON_DEFAULTS,
    .step = NAN,
    .stop = NAN,
    .from = NAN,
    .accuracy = NAN,
    .seconds = 2,
    .tolerance = NAN,
    .relative = NAN,
    .voltage = NAN,
    .current = NAN,
    .smallest = NAN,
    .largest = NAN,
    .method = -1,
    .form = -1,
    .start = -1,
    .every = -1,
    .iterations = -1,
    .fixed_iterations = -1,
    .mat_version = -1,
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
    .options = rows,
    .option_count = sizeof rows / sizeof *rows,
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "cir|ckt|net|sp|spice",
    .size = sizeof(crdi_circuit_command),
    .defaults = &crdi_circuit_command_defaults,
    .run = run_circuit,
};
