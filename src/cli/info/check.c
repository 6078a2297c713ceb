// cardan check: everything but the run.
#include "cardan/master.h"
#include "cardan/results.h"
#include "cli/info/info.h"

#include <math.h>
#include <string.h>

typedef struct check_options {
    crdi_common common;
    crdi_list parameters, set;
    const char* variant;
    crdi_input input;
} check_options;

static void put_found(crdi_cli* cli, const crd_system* s, crd_master* m, crd_status st,
                      crdi_result* out)
{
    crdi_put(out, BOOL("ok", st == CRD_OK));
    crdi_put_status(cli, out, st);
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

static crd_status run_check(crdi_cli* cli, const void* options, const crdi_list* arguments,
                            crdi_result* out)
{
    const check_options* o = options;
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    crd_master* m = NULL;
    if (crdi_is_layout(arguments->items[0])) {
        return crdi_check_layout(cli, arguments->items[0], out);
    }
    if (crdi_is_can(arguments->items[0])) { return crdi_check_can(cli, arguments->items[0], out); }
    if (crdi_is_dcp(arguments->items[0])) { return crdi_check_dcp(cli, arguments->items[0], out); }
    if (crdi_is_circuit(arguments->items[0])) {
        return crdi_check_circuit(cli, arguments->items[0], out);
    }
    CRD_TRY(crdi_load_variant(cli->ctx, arguments->items[0], o->variant, &s));
    for (int i = 0; i < o->parameters.count; i++) {
        CRD_TRY(crdi_apply_parameters(s, o->parameters.items[i]));
    }
    for (int i = 0; i < o->set.count; i++) {
        CRD_TRY(crdi_apply_set(s, o->set.items[i]));
    }
    CRD_TRY(crdi_check_times(s));
    if (s->results.path) { CRD_TRY(crd_recorder_check_path(cli->ctx, s->results.path)); }
    CRD_TRY(crdi_connect_input(s, &o->input));
    CRD_TRY(crd_master_create(cli->ctx, s, NULL, &m));
fail:
    put_found(cli, s, m, st, out);
    crd_master_destroy(m);
    crd_system_destroy(s);
    return st;
}

static const crdi_option rows[] = {
    CRDI_PARAMETERS_OPTION(check_options, parameters),
    OPT_LIST(check_options, set, "set", "UNIT.VAR=VALUE",
             "start value or parameter as for run; for a single FMU VAR=VALUE"),
    CRDI_VARIANT_OPTION(check_options),
    CRDI_INPUT_OPTIONS(check_options, input),
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
        "and says what is wrong and where. Files of an SSP are checked against its schema, and the "
        "description of a DCP slave (.dcpx, .dcp) against the rules of its standard. A netlist "
        "(.cir, "
        ".ckt, .net, .sp, .spice) is read and its start computed, the layout of datagrams (.yaml "
        "with the key layout) and a DBC file (.dbc) with their fields: overlaps, places behind the "
        "end, multiplexors. No code of an FMU is run. A SYSTEM of - is read from "
        "standard input. Exit code 0 if the system can "
        "be run, warnings or not.",
    .examples = {{"cardan check oscillator.yaml", "is this system right?"},
                 {"cardan check oscillator.yaml --json | jq .warnings", "the same for programs"},
                 {"cardan check bench.dcpx", "does this slave description keep the standard?"}},
    OPTIONS(rows, check_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "fmu|yaml|yml|ssp|ssd|dcpx|dcp|cir|ckt|net|sp|spice|dbc",
    .run = run_check,
};
