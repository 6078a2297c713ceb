// cardan dcp conform: does a slave keep to the standard?
#include "cli/dcp/dcp_query.h"

#include "shared/results.h"

#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct conform_options {
    crdi_common common;
    const char *key, *capture, *description, *only, *report, *restart;
    int mode, id, data_port; // -1: not given
    double timeout, patience;
    bool risky, take_over, failures;
} conform_options;

static const char* const modes[] = {"hrt", "srt", "nrt", NULL};

enum { MOST_LINES = 400 };

// The PDUs of a case.
typedef struct script {
    const char** lines; // (MOST_LINES + 1), NULL: none
    int count, more;    // more: that are not kept
} script;

typedef struct conformer {
    crdi_cli* cli;
    const conform_options* o;
    crd_dcp_description* d;
    crdi_dcp_conform_result* results; // (crdi_dcp_conform_count())
    int count;
    crd_arena arena;
    script* scripts; // (crdi_dcp_conform_count())
    pid_t slave;     // what --restart has started, 0: nothing
} conformer;

static void dcp_conform_show_progress(void* user, const crdi_dcp_conform_result* r)
{
    conformer* c = user;
    (void)r;
    c->count++;
    crdi_progress(c->cli->ctx, "conformance", c->count, crdi_dcp_conform_count(), "cases");
}

// ---- what was said -----------------------------------------------------------------------------

// "> 80010001 INF_state seq=1 rcv=1"
static void keep_pdu(void* user, bool sent, const uint8_t* bytes, size_t length)
{
    enum { SHOWN = 64 };
    conformer* c = user;
    script* s = &c->scripts[c->count];
    if (s->count == MOST_LINES) {
        s->more++;
        return;
    }
    if (!s->lines) { s->lines = crdi_arena_new(&c->arena, MOST_LINES + 1, sizeof *s->lines); }
    char hex[2 * SHOWN + 1] = "", text[512] = "";
    for (size_t i = 0; i < length && i < SHOWN; i++) {
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    }
    crdi_dcp_pdu p;
    if (crdi_dcp_decode(bytes, length, &p) != CRDI_DCP_UNKNOWN) {
        (void)crdi_dcp_print(&p, text, sizeof text);
    }
    const char* line =
        crdi_arena_format(&c->arena, "%c %s%s %s", sent ? '>' : '<', length ? hex : "(no bytes)",
                          length > SHOWN ? "..." : "", text);
    if (s->lines && line) { s->lines[s->count++] = line; }
}

// ---- a slave that is gone ----------------------------------------------------------------------

static void end_slave(conformer* c, int signal)
{
    if (c->slave > 0 && waitpid(c->slave, NULL, WNOHANG) == 0) { // else it went on its own
        kill(-c->slave, signal);
        waitpid(c->slave, NULL, 0);
    }
    c->slave = 0;
}

// In a session of its own, what it says goes to standard error.
static bool start_slave(void* user)
{
    conformer* c = user;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    end_slave(c, SIGKILL);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, 2, 1);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);
    char* const arguments[] = {"sh", "-c", (char*)c->o->restart, NULL};
    const int error = posix_spawn(&c->slave, "/bin/sh", &files, &how, arguments, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    if (error) { c->slave = 0; }
    return error == 0;
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

// Cases that nobody knows of, because the slave was gone.
static int not_played(const conformer* c)
{
    int n = 0;
    for (int i = 0; i < c->count; i++) {
        n += c->results[i].unseen;
    }
    return n;
}

static void put_cases(const conformer* c, crdi_result* out)
{
    static const crdi_column columns[] = {{"verdict", "verdict", ""},
                                          {"case", "id", ""},
                                          {"done", "done", ""},
                                          {"prescribed", "prescribed", ""},
                                          {"came", "came", ""},
                                          {"DCP 1.0", "clause", ""},
                                          {0}};
    bool any = false;
    crdi_put(out, TEXT("slave", c->d->name));
    crdi_result* list = crdi_array(out, "cases");
    for (int i = 0; i < c->count; i++) {
        const crdi_dcp_conform_result* r = &c->results[i];
        const bool odd = r->verdict == CRDI_DCP_FAIL || r->verdict == CRDI_DCP_DIFFERS;
        crdi_result* row = crdi_row(list);
        crdi_put(row, TEXT("id", r->id), TEXT("done", r->done), TEXT("prescribed", r->prescribed),
                 TEXT("verdict", crdi_dcp_verdict_name(r->verdict)), TEXT("came", r->came),
                 TEXT("clause", r->clause),
                 TEXT("mode", r->mode >= 0 ? crd_dcp_op_mode_name(r->mode) : NULL),
                 REAL("seconds", r->seconds), BOOL("restarted", r->restarted));
        crdi_put_texts(row, "pdus", c->scripts[i].lines, c->scripts[i].count);
        if (c->o->failures && !odd) {
            crdi_only_json(row);
        } else {
            any = true;
        }
    }
    const int passed = how_many(c, CRDI_DCP_PASS), failed = how_many(c, CRDI_DCP_FAIL);
    const int differ = how_many(c, CRDI_DCP_DIFFERS), skipped = how_many(c, CRDI_DCP_SKIP);
    crdi_put(out, INT("passed", passed), INT("failed", failed), INT("differ", differ),
             INT("skipped", skipped), INT("not_played", not_played(c)));
    crdi_show_table(out, list, columns, "");
    crdi_say(out, "%s%d passed, %d failed, %d differ in what is left open, %d skipped\n",
             any ? "\n" : "", passed, failed, differ, skipped);
    const int unseen = not_played(c);
    if (unseen > 0) {
        crdi_say(out, "%d of the skipped were not played because the slave was gone%s\n", unseen,
                 c->o->restart ? "" : ": --restart 'COMMAND' starts it again");
    }
}

// ---- the report --------------------------------------------------------------------------------

static void put_conform_table(crdi_doc* d, const conformer* c)
{
    crdi_doc_heading(d, 2, "cases", "Cases");
    crdi_doc_table(d, "", "llllll",
                   "Verdict|Case|What was done|What DCP 1.0 prescribes|What came|Where it is said");
    for (int i = 0; i < c->count; i++) {
        const crdi_dcp_conform_result* r = &c->results[i];
        crdi_doc_cell(d, "%s", crdi_dcp_verdict_name(r->verdict));
        crdi_doc_cell(d, "%s", r->id);
        crdi_doc_cell(d, "%s", r->done);
        crdi_doc_cell(d, "%s", r->prescribed);
        crdi_doc_cell(d, "%s%s", r->came,
                      r->restarted ? "; the slave had to be started again" : "");
        crdi_doc_cell(d, "%s", r->clause);
    }
    crdi_doc_table_end(d);
}

static void put_conform_pdus(crdi_doc* d, const conformer* c, bool failed)
{
    for (int i = 0; i < c->count; i++) {
        const crdi_dcp_conform_result* r = &c->results[i];
        const script* s = &c->scripts[i];
        if (s->count == 0 || (r->verdict == CRDI_DCP_FAIL) != failed) { continue; }
        crdi_doc_heading(d, 3, "", r->id);
        crdi_doc_paragraph(d, "%s: %s. Expected: %s (%s). Came: %s.",
                           crdi_dcp_verdict_name(r->verdict), r->done, r->prescribed, r->clause,
                           r->came);
        crdi_doc_table(d, "", "ll", "|PDU");
        for (int k = 0; k < s->count; k++) {
            crdi_doc_cell(d, "%s", s->lines[k][0] == '>' ? "sent" : "came");
            crdi_doc_cell(d, "%s", s->lines[k] + 2);
        }
        crdi_doc_table_end(d);
        if (s->more > 0) { crdi_doc_paragraph(d, "%d more are left out.", s->more); }
    }
}

static void put_conform_report(crdi_doc* d, const void* user)
{
    const conformer* c = user;
    crdi_doc_paragraph(
        d,
        "Slave %s as %s describes it, played to by cardan dcp conform. Clauses are those of the "
        "DCP "
        "Specification Document 1.0 (2019-03-04), in other words than its own. FAIL: the slave "
        "does "
        "otherwise than the clause says. differs: not as usual, in what the standard leaves open. "
        "skip: does not apply to this description, or was not played.",
        c->d->name, c->o->description);
    put_conform_table(d, c);
    crdi_doc_heading(d, 2, "failed", "What was said in cases that failed");
    put_conform_pdus(d, c, true);
    crdi_doc_heading(d, 2, "others", "What was said in the others");
    put_conform_pdus(d, c, false);
}

static crd_status write_conform_report(const conformer* c)
{
    char title[256], verdict[256];
    const int failed = how_many(c, CRDI_DCP_FAIL), unseen = not_played(c);
    snprintf(title, sizeof title, "DCP conformance of %s", c->d->name);
    snprintf(verdict, sizeof verdict,
             "%d passed, %d failed, %d differ in what is left open, %d skipped, %d of them because "
             "the slave was gone",
             how_many(c, CRDI_DCP_PASS), failed, how_many(c, CRDI_DCP_DIFFERS),
             how_many(c, CRDI_DCP_SKIP), unseen);
    const crdi_page page = {.path = c->o->report,
                            .title = title,
                            .format = crdi_ends_with(c->o->report, ".md") ? CRD_REPORT_MARKDOWN
                                                                          : CRD_REPORT_HTML,
                            .good = failed == 0 && unseen == 0,
                            .verdict = verdict,
                            .put = put_conform_report,
                            .user = c};
    return crdi_page_write(c->cli->ctx, &page);
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
    opt->seen = keep_pdu;
    if (o->restart) { opt->restart = start_slave; }
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
    int count = 0;
    st = crdi_dcp_conform(ctx, query.net, &control, c->d, &opt, c->results, &count);
    crdi_progress_end(ctx);
    CRD_TRY(st);
    c->count = count;
    if (count == 0) {
        CRD_TRY(crdi_fail(ctx, CRD_E_NOT_FOUND, "no case fits '%s'", c->o->only ? c->o->only : ""));
    }
    put_cases(c, out);
    if (c->o->report) { CRD_TRY(write_conform_report(c)); }
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
    const size_t most = (size_t)crdi_dcp_conform_count();
    crd_arena_init(&c.arena, cli->ctx);
    c.results = crdi_arena_new(&c.arena, most, sizeof *c.results);
    c.scripts = crdi_arena_new(&c.arena, most + 1, sizeof *c.scripts);
    const bool room = c.results && c.scripts;
    const crd_status st = room ? play(&c, arguments->items[0], out) : CRD_E_MEMORY;
    end_slave(&c, SIGTERM);
    crd_dcp_description_destroy(c.d);
    crd_arena_clear(&c.arena);
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
    OPT_TEXT(
        conform_options, restart, "restart", "COMMAND",
        "run this in a shell when the slave is gone, wait until it answers and go on; includes "
        "the risky cases. If the command is the slave itself it is ended at last"),
    OPT_FILE(conform_options, report, "report", "html|md",
             "write a report to hand on: per case what was sent, what came, what was expected and "
             "where DCP says so"),
    OPT_INT(conform_options, id, "id", "N", "id to register the slave under; 1 unless given"),
    OPT_INT(conform_options, data_port, "data-port", "PORT",
            "port of the slave for data; one of those that its description lists unless given"),
    OPT_TIME(conform_options, timeout, "timeout", CRDI_POSITIVE,
             "an answer has to come within this; 1 s unless given"),
    OPT_TIME(conform_options, patience, "patience", CRDI_POSITIVE,
             "a state has to come within this; 5 s unless given"),
    CRDI_PROBE_OPTIONS(conform_options),
    CRDI_JSON_OPTION("print {slave, cases: [{id, done, prescribed, clause, came, verdict, mode, "
                     "seconds, restarted, pdus}], passed, failed, differ, skipped, not_played}"),
    CRDI_QUIET_OPTION,
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
        "ends in ALIVE. The table says what was done, what the standard prescribes, what came and "
        "where the standard says so. Everything that it says is asked for; 'differs' is another "
        "choice in what it leaves open. The exit code is "
        "1 if a case failed. The slave must not do harm when it is started: on a test bench, think "
        "first.",
    .examples = {{"cardan dcp conform udp://127.0.0.1:8080 --description bench.dcpx",
                  "all that applies to it"},
                 {"cardan dcp conform udp://127.0.0.1:8080 --description bench.dcpx --restart "
                  "'./slave 8080' --report bench.html",
                  "a report for who makes the slave, which may crash"},
                 {"cardan dcp conform 192.168.2.7 --description bench.dcpx --only 'state.*' "
                  "--mode srt",
                  "every request in every state, in soft real time"}},
    OPTIONS(rows, conform_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_conform,
};
