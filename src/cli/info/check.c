// cardan check: everything but the run.
#include "cardan/master.h"
#include "cardan/results.h"
#include "cli/info/findings.h"
#include "cli/run/run.h"
#include "shared/base_findings.h"
#include "shared/system_words.h"

#include <math.h>
#include <string.h>

typedef struct check_options {
    crdi_common common;
    crdi_overrides with;
    const char* variant;
} check_options;

static void put_found(const crd_system* s, crd_master* m, crdi_result* out)
{
    crdi_result* units = s ? crdi_array(out, "units") : NULL;
    for (int i = 0; s && i < s->unit_count; i++) {
        crdi_add(units, TEXT(NULL, s->units[i].name));
    }
    if (s) { crdi_put(out, INT("connections", s->connection_count)); }
    if (!m) { return; }
    const crd_master_report* r = crd_master_get_report(m);
    const int count = crd_master_signal_count(m);
    crdi_put(out, REAL("start", r->start), REAL("stop", r->stop), REAL("step", r->step));
    crdi_result* signals = crdi_array(out, "signals");
    for (int i = 0; i < count; i++) {
        crdi_add(signals, TEXT(NULL, crd_master_signal_name(m, i)));
    }
    char step[32];
    crdi_say(
        out,
        "ok: %d unit%s, %d connection%s, %d signal%s to record, %.10g s to %.10g s in steps of "
        "%s\n",
        s->unit_count, crdi_plural(s->unit_count), s->connection_count,
        crdi_plural(s->connection_count), count, crdi_plural(count), r->start, r->stop,
        crdi_format_seconds(step, r->step));
}

// Everything that is wrong is in the findings of `ctx` afterwards, or the status that ended it.
static crd_status check_system(crd_context* ctx, const char* path, const check_options* o,
                               crd_system** s, crd_master** m)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_load_variant(ctx, path, o->variant, s));
    CRD_TRY(crdi_apply_overrides(*s, path, &o->with));
    if ((*s)->results.path) {
        CRD_TRY(crdi_go_on(ctx, crd_recorder_check_path(ctx, (*s)->results.path)));
    }
    CRD_TRY(crd_master_create(ctx, *s, NULL, m));
fail:
    return st;
}

static crd_status run_check(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    const char* path = arguments->items[0];
    if (crdi_is_layout(path)) { return crdi_check_layout(cli, path, out); }
    if (crdi_is_can(path)) { return crdi_check_can(cli, path, out); }
    if (crdi_is_dcp(path)) { return crdi_check_dcp(cli, path, out); }
    if (crdi_is_circuit(path)) { return crdi_check_circuit(cli, path, out); }
    crd_system* s = NULL;
    crd_master* m = NULL;
    crdi_remarks remarks;
    crd_status st = crdi_remarks_begin(&remarks, cli);
    if (st < 0) { return st; }
    st = check_system(remarks.ctx, path, options, &s, &m);
    (void)crdi_go_on(remarks.ctx, st);
    if (st < 0 && st != CRD_E_MEMORY) { st = crdi_findings_status(remarks.ctx); }
    crdi_remarks_show(&remarks, st, path, out);
    put_found(s, m, out);
    crd_master_destroy(m);
    crd_system_destroy(s);
    crdi_remarks_end(&remarks);
    return st;
}

#define AS_FOR_RUN "as for run"
static const crdi_option rows[] = {
    OPT_TIME(check_options, with.start_time, "start-time", CRDI_ANY, AS_FOR_RUN),
    OPT_TIME(check_options, with.stop_time, "stop-time", CRDI_ANY, AS_FOR_RUN),
    OPT_TIME(check_options, with.step, "step", CRDI_POSITIVE, "macro step, as for run",
             .alias = "step-size"),
    OPT_TEXT(check_options, with.scheme, "scheme", "SCHEME", AS_FOR_RUN, .choices = crdi_schemes),
    OPT_CHOICE(check_options, with.predict, "predict", crdi_predictions, AS_FOR_RUN),
    OPT_NUMBER(check_options, with.control, "control", "TOL", CRDI_POSITIVE, AS_FOR_RUN),
    OPT_FLAG(check_options, with.iterate, "iterate", AS_FOR_RUN),
    OPT_TEXT(check_options, with.pace, "pace", "PACE", AS_FOR_RUN, .choices = crdi_paces),
    OPT_CHOICE(check_options, with.overrun, "overrun", crdi_overruns, AS_FOR_RUN),
    OPT_NUMBER(check_options, with.tolerance, "tolerance", "REL", CRDI_POSITIVE, AS_FOR_RUN),
    CRDI_PARAMETERS_OPTION(check_options, with.parameters),
    OPT_LIST(check_options, with.set, "set", "UNIT.VAR=VALUE",
             "start value or parameter as for run; for a single FMU VAR=VALUE"),
    CRDI_INPUT_OPTIONS(check_options, with.input),
    OPT_FILE(check_options, with.output, "output", "csv|mf4|mat", AS_FOR_RUN, .short_name = 'o',
             .alias = "output-file"),
    OPT_TEXT(check_options, with.on_full, "on-full", "stop|thin|drop|FILE", AS_FOR_RUN,
             .choices = crdi_on_fulls),
    OPT_FILE(check_options, with.exchange, "exchange", "mf4", AS_FOR_RUN),
    OPT_FILE(check_options, with.session, "session-record", "csv", AS_FOR_RUN),
    OPT_LIST(check_options, with.variables, "variables", "PATTERN", AS_FOR_RUN),
    OPT_TIME(check_options, with.interval, "interval", CRDI_NOT_NEGATIVE, AS_FOR_RUN,
             .alias = "output-interval"),
    OPT_CHOICE(check_options, with.interface, "interface-type", crdi_interfaces, AS_FOR_RUN),
    OPT_CHOICE(check_options, with.solver, "solver", crdi_solvers, AS_FOR_RUN),
    OPT_TEXT(check_options, with.guard, "guard", "ACTION", AS_FOR_RUN,
             .choices = crdi_guard_actions),
    OPT_QUANTITY(check_options, with.max_defect, "max-defect", "FRACTION", "", CRDI_POSITIVE,
                 AS_FOR_RUN),
    OPT_QUANTITY(check_options, with.max_energy, "max-energy", "FRACTION", "", CRDI_POSITIVE,
                 AS_FOR_RUN),
    OPT_QUANTITY(check_options, with.max_error, "max-error", "FRACTION", "", CRDI_POSITIVE,
                 AS_FOR_RUN),
    OPT_INT(check_options, with.max_overruns, "max-overruns", "N", AS_FOR_RUN),
    OPT_TIME(check_options, with.max_lateness, "max-lateness", CRDI_POSITIVE, AS_FOR_RUN),
    OPT_CHOICE(check_options, with.mat_version, "mat-version", crdi_mat_versions, AS_FOR_RUN),
    CRDI_UNIT_ROW_OPTION(check_options, with.unit_row),
    OPT_FLAG(check_options, with.allow_nan, "allow-nan", AS_FOR_RUN),
    OPT_FLAG(check_options, with.no_quality, "no-quality", AS_FOR_RUN),
    OPT_COUNT(check_options, with.threads, "threads", "N|auto", AS_FOR_RUN),
    CRDI_ISOLATE_OPTION,
    CRDI_VARIANT_OPTION(check_options),
    CRDI_UNPACKED_OPTION,
    CRDI_JSON_OPTION("print what was found as JSON on standard output"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_check = {
    .name = "check",
    .arguments = "SYSTEM|SSP|FMU|DCPX|NETLIST|LAYOUT|DBC",
    .summary = "validate a system without running it",
    .description =
        "Reads the system and all its units, resolves and checks every connection and start value, "
        "and says everything that is wrong, in the order of the file, each with its line and a "
        "mark below it. Files of an SSP are checked against its schema, and the "
        "description of a DCP slave (.dcpx, .dcp) against the rules of its standard. A netlist "
        "(.cir, "
        ".ckt, .net, .sp, .spice) is read and its start computed, the layout of datagrams (.yaml "
        "with the key layout) and a DBC file (.dbc) with their fields: overlaps, places behind the "
        "end, multiplexors. No code of an FMU is run. A SYSTEM of - is read from "
        "standard input. Exit code 0 if the system can "
        "be run, warnings or not.",
    .examples = {{"cardan check oscillator.yaml", "is this system right?"},
                 {"cardan check oscillator.yaml --json | jq .findings",
                  "for editors: with positions"},
                 {"cardan check oscillator.yaml --step '2 ms'", "would it run with another step?"},
                 {"cardan check bench.dcpx", "does this slave description keep the standard?"}},
    OPTIONS(rows, check_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|ssp|ssd|dcpx|dcp|cir|ckt|net|sp|spice|dbc",
    .run = run_check,
};
