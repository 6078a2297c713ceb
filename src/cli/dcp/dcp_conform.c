// cardan dcp conform: does a slave keep to the standard?
#include "cli/dcp/dcp_query.h"

#include <math.h>
#include <string.h>

typedef struct conform_options {
    crdi_common common;
    const char *key, *capture, *description, *only;
    int mode, id, data_port; // -1: not given
    double timeout, patience;
    bool risky, take_over, failures;
} conform_options;

static const char* const modes[] = {"hrt", "srt", "nrt", NULL};

typedef struct conformer {
    crdi_cli* cli;
    const conform_options* o;
    crd_dcp_description* d;
    crdi_dcp_conform_result* results; // (crdi_dcp_conform_count())
    int count;
    int64_t begin;
} conformer;

static void dcp_conform_show_progress(void* user, const crdi_dcp_conform_result* r)
{
    conformer* c = user;
    (void)r;
    c->count++;
    crdi_show_progress(c->cli, c->begin, c->count, crdi_dcp_conform_count(), "cases");
}

// ---- what comes out ----------------------------------------------------------------------------

static int how_many(const conformer* c, crdi_dcp_verdict v)
{
    int n = 0;
    for (int i = 0; i < c->count; i++) {
        n += c->results[i].verdict == v;
    }
    return n;
}

static void put_cases(const conformer* c, crdi_result* out)
{
    static const crdi_column columns[] = {
        {"verdict", "verdict", ""},       {"case", "id", ""},   {"done", "done", ""},
        {"prescribed", "prescribed", ""}, {"came", "came", ""}, {0}};
    bool any = false;
    crdi_put(out, TEXT("slave", c->d->name));
    crdi_result* list = crdi_array(out, "cases");
    for (int i = 0; i < c->count; i++) {
        const crdi_dcp_conform_result* r = &c->results[i];
        const bool odd = r->verdict == CRDI_DCP_FAIL || r->verdict == CRDI_DCP_DIFFERS;
        crdi_result* row = crdi_row(list);
        crdi_put(row, TEXT("id", r->id), TEXT("done", r->done), TEXT("prescribed", r->prescribed),
                 TEXT("verdict", crdi_dcp_verdict_name(r->verdict)), TEXT("came", r->came),
                 TEXT("mode", r->mode >= 0 ? crd_dcp_op_mode_name(r->mode) : NULL),
                 REAL("seconds", r->seconds));
        if (c->o->failures && !odd) {
            crdi_only_json(row);
        } else {
            any = true;
        }
    }
    const int passed = how_many(c, CRDI_DCP_PASS), failed = how_many(c, CRDI_DCP_FAIL);
    const int differ = how_many(c, CRDI_DCP_DIFFERS), skipped = how_many(c, CRDI_DCP_SKIP);
    crdi_put(out, INT("passed", passed), INT("failed", failed), INT("differ", differ),
             INT("skipped", skipped));
    crdi_show_table(out, list, columns, "");
    crdi_say(out, "%s%d passed, %d failed, %d differ but are tolerated, %d skipped\n",
             any ? "\n" : "", passed, failed, differ, skipped);
}

// ---- the command -------------------------------------------------------------------------------

static crd_status fill_options(conformer* c, crdi_dcp_conform_options* opt)
{
    const conform_options* o = c->o;
    *opt = crdi_dcp_conform_defaults();
    opt->mode = o->mode; // the choices stand in the order of the numbers
    opt->risky = o->risky;
    opt->take_over = o->take_over;
    opt->only = o->only;
    if (o->id > 255 || o->id == 0 || o->data_port > 65535 || o->data_port == 0) {
        return crdi_fail(c->cli->ctx, CRD_E_RANGE,
                         "--id is 1 to 255 and --data-port is 1 to 65535");
    }
    if (o->id > 0) { opt->id = (uint8_t)o->id; }
    if (o->data_port > 0) { opt->data_port = (uint16_t)o->data_port; }
    if (!isnan(o->timeout)) { opt->timeout = o->timeout; }
    if (!isnan(o->patience)) { opt->patience = o->patience; }
    opt->cancelled = crdi_query_stopped;
    opt->next = dcp_conform_show_progress;
    opt->user = c;
    return CRD_OK;
}

static crd_status play(conformer* c, const char* address, crdi_result* out)
{
    crd_context* ctx = c->cli->ctx;
    crdi_query query = {0};
    crd_dcp_address control;
    crdi_dcp_conform_options opt;
    crd_status st = CRD_OK;
    CRD_TRY(crdi_query_address(ctx, address, &control));
    CRD_TRY(crdi_query_description(ctx, c->o->description, &c->d));
    CRD_TRY(fill_options(c, &opt));
    CRD_TRY(crdi_query_open(ctx, c->o->key, c->o->capture, &query));
    opt.local = control;
    opt.local.ip = crdi_dcp_net_source_ip(query.net, &control);
    opt.local.port = 0;
    CRD_TRY(crd_dcp_net_listen(query.net, &opt.local));
    c->begin = crdi_now_ns();
    int count = 0;
    st = crdi_dcp_conform(ctx, query.net, &control, c->d, &opt, c->results, &count);
    crdi_show_progress(c->cli, c->begin, -1, 0, "");
    CRD_TRY(st);
    c->count = count;
    if (count == 0) {
        CRD_TRY(crdi_fail(ctx, CRD_E_NOT_FOUND, "no case fits '%s'", c->o->only ? c->o->only : ""));
    }
    put_cases(c, out);
    const int failed = how_many(c, CRDI_DCP_FAIL);
    if (failed > 0) {
        st = crdi_fail(ctx, CRD_E_DIFFERENT, "%d case%s failed", failed, crdi_plural(failed));
    } else if (crdi_query_stopped(NULL)) {
        st = crdi_fail(ctx, CRD_E_DIFFERENT, "interrupted");
    }
fail : {
    const crd_status closed = crdi_query_close(&query);
    return st < 0 ? st : closed;
}
}

static crd_status run_conform(crdi_cli* cli, const void* options, const crdi_list* arguments,
                              crdi_result* out)
{
    conformer c = {.cli = cli, .o = options};
    if (!c.o->description) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "what does the slave say that it can do? expected --description X.dcpx");
    }
    c.results = crdi_new_array(cli->ctx, (size_t)crdi_dcp_conform_count(), sizeof *c.results);
    if (!c.results) { return CRD_E_MEMORY; }
    const crd_status st = play(&c, arguments->items[0], out);
    crd_dcp_description_destroy(c.d);
    crd_free(cli->ctx, c.results);
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(conform_options, description, "description", "dcpx|dcp",
             "what the slave says about itself; decides which cases apply"),
    OPT_CHOICE(conform_options, mode, "mode", modes,
               "operating mode; unless given, those that the slave offers, most of it in NRT"),
    OPT_FLAG(conform_options, risky, "include-risky",
             "also the cases that make slaves of the reference implementation (DCPLib) abort"),
    OPT_TEXT(conform_options, only, "only", "PATTERN",
             "cases whose names fit: 'register.*', 'seq.gap'"),
    OPT_FLAG(conform_options, failures, "failures", "show only cases that failed or differ"),
    OPT_FLAG(conform_options, take_over, "take-over",
             "stop and deregister a slave that is not in ALIVE first"),
    OPT_INT(conform_options, id, "id", "N", "id to register the slave under; 1 unless given"),
    OPT_INT(conform_options, data_port, "data-port", "PORT",
            "port of the slave for data; one of those that its description lists unless given"),
    OPT_TIME(conform_options, timeout, "timeout", CRDI_POSITIVE,
             "an answer has to come within this; 1 s unless given"),
    OPT_TIME(conform_options, patience, "patience", CRDI_POSITIVE,
             "a state has to come within this; 5 s unless given"),
    CRDI_PROBE_OPTIONS(conform_options),
    CRDI_JSON_OPTION("print {slave, cases: [{id, done, prescribed, came, verdict, mode, seconds}], "
                     "passed, failed, differ, skipped}"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_dcp_conform = {
    .name = "dcp conform",
    .arguments = "ADDRESS",
    .summary = "play the procedures of DCP against a slave and judge it",
    .description =
        "Plays right and wrong procedures of DCP 1.0 against a slave, ours or somebody else's: "
        "registration, sequence ids, lengths, garbage, configurations that are right, wrong and "
        "not complete, every request in every state, initialisation, steps, runs by the clock, "
        "data that are old, late or missing, logs, heartbeat, error, reset. Each case begins and "
        "ends in ALIVE. The table says what was done, what the standard prescribes and what came; "
        "'differs' is what the standard does not say, but masters can live with. The exit code is "
        "1 if a case failed. The slave must not do harm when it is started: on a test bench, think "
        "first.",
    .examples = {{"cardan dcp conform udp://127.0.0.1:8080 --description bench.dcpx",
                  "all that applies to it"},
                 {"cardan dcp conform 192.168.2.7 --description bench.dcpx --only 'state.*' "
                  "--mode srt",
                  "every request in every state, in soft real time"}},
    OPTIONS(rows, conform_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_conform,
};
