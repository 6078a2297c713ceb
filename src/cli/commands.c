// The list of commands, and the way from the arguments to one of them.
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char* const crdi_log_levels[] = {"error", "warning", "info", "debug", NULL};

const crdi_command* const crdi_commands[] = {
    &crdi_command_run,     &crdi_command_check, &crdi_command_info,
    &crdi_command_compare, &crdi_command_plot,  &crdi_command_report, &crdi_command_export,
    &crdi_command_analyze, &crdi_command_design, &crdi_command_compensate, &crdi_command_link, &crdi_command_learn, &crdi_command_reproduce,
    &crdi_command_completion,
    &crdi_command_man,     &crdi_command_help,  NULL,
};

const crdi_command* crdi_find_command(const char* name)
{
    for (int i = 0; crdi_commands[i]; i++) {
        if (strcmp(crdi_commands[i]->name, name) == 0) { return crdi_commands[i]; }
    }
    return NULL;
}

static const char* next_command(void* user)
{
    int* i = user;
    return crdi_commands[*i] ? crdi_commands[(*i)++]->name : NULL;
}

static crd_status unknown_command(crd_context* ctx, const char* name)
{
    static const char* const elsewhere[][2] = {
        {"simulate", "run"}, {"validate", "check"}, {"inspect", "info"}, {"diff", "compare"}};
    int i = 0;
    const char* near = crdi_nearest(name, next_command, &i);
    for (size_t k = 0; k < sizeof elsewhere / sizeof *elsewhere; k++) {
        if (strcmp(elsewhere[k][0], name) == 0) { near = elsewhere[k][1]; }
    }
    struct stat info;
    if (near) {
        return crdi_fail(ctx, CRD_E_RANGE, "unknown command '%s', did you mean %s?", name, near);
    }
    if (stat(name, &info) == 0) {
        return crdi_fail(ctx, CRD_E_RANGE, "unknown command '%s', did you mean 'cardan run %s'?",
                         name, name);
    }
    return crdi_fail(ctx, CRD_E_RANGE, "unknown command '%s'; 'cardan --help' lists them", name);
}

// ---- help --------------------------------------------------------------------------------------

static crd_status run_help(crdi_cli* cli, const void* options, const crdi_list* arguments)
{
    (void)options;
    if (arguments->count == 0) {
        crdi_print_overview(stdout);
    } else {
        const crdi_command* c = crdi_find_command(arguments->items[0]);
        if (!c) { return unknown_command(cli->ctx, arguments->items[0]); }
        crdi_print_help(stdout, c);
    }
    return crdi_stdout_done(cli->ctx);
}

static const crdi_option help_options[] = {CRDI_COMMON_OPTIONS};
static const crdi_common help_defaults = CRDI_COMMON_DEFAULTS;
static const char* const help_words[] = {"run",        "check", "info", "compare", "plot", "report", "export", "analyze", "design", "compensate", "link", "learn", "reproduce",
                                         "completion", "man",   "help", NULL};

const crdi_command crdi_command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "show what a command does",
    .description = "Shows the commands, or everything about one of them.",
    .examples = {{"cardan help run", "the options of cardan run"}},
    .options = help_options,
    .option_count = sizeof help_options / sizeof *help_options,
    .max_arguments = 1,
    .words = help_words,
    .size = sizeof(crdi_common),
    .defaults = &help_defaults,
    .run = run_help,
};

// ---- dispatch ----------------------------------------------------------------------------------

static crd_context* make_context(crdi_cli* cli, const crdi_common* common)
{
    crd_context_options opt = crd_context_defaults();
    opt.log = crdi_log_line;
    opt.log_user = cli;
    if (common && common->log_level >= 0) {
        opt.level = (crd_level)common->log_level;
    } else if (common && common->quiet) {
        opt.level = CRD_LOG_ERROR;
    }
    return crd_context_create(&opt);
}

static int finish(crdi_cli* cli, crd_status st)
{
    if (st < 0 && *crd_error_text(cli->ctx)) {
        crdi_message(cli, CRD_LOG_ERROR, crd_error_text(cli->ctx));
    } else if (st < 0 && st != CRD_E_DIFFERENT) {
        crdi_message(cli, CRD_LOG_ERROR, crd_status_text(st));
    }
    return crd_status_exit_code(st);
}

static crd_status run_command(crdi_cli* cli, const crdi_command* c, int argc, char** argv)
{
    crd_context* parse_ctx = cli->ctx;
    crdi_list arguments = {0};
    crd_status st = CRD_OK;
    void* values = crdi_new(parse_ctx, c->size);
    if (!values) { return CRD_E_MEMORY; }
    st = crdi_options_parse(parse_ctx, c, argc, argv, values, &arguments);
    const crdi_common* common = values;
    if (st < 0) {
        crdi_fail_in(parse_ctx, st, "%s", c->name);
    } else if (common->help) {
        crdi_print_help(stdout, c);
        st = crdi_stdout_done(parse_ctx);
    } else {
        // The level of messages is known only now, and a context keeps its level.
        crd_context* ctx = make_context(cli, common);
        if (ctx) {
            cli->ctx = ctx;
            cli->warnings = common->json ? json_array() : NULL;
            st = c->run(cli, values, &arguments);
            json_decref(cli->warnings);
            cli->warnings = NULL;
            cli->ctx = parse_ctx;
            if (st < 0) { crdi_fail(parse_ctx, st, "%s", crd_error_text(ctx)); }
            crd_context_destroy(ctx);
        } else {
            st = CRD_E_MEMORY;
        }
    }
    crdi_options_clear(parse_ctx, c, values, &arguments);
    crdi_free(parse_ctx, values);
    return st;
}

static crd_status dispatch(crdi_cli* cli, int argc, char** argv)
{
    if (argc < 2) {
        crdi_print_overview(stderr);
        return crdi_fail(cli->ctx, CRD_E_RANGE, "a command is missing, see above");
    }
    const char* name = argv[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("cardan %s\n", crd_version());
        return crdi_stdout_done(cli->ctx);
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) { name = "help"; }
    if (name[0] == '-') {
        static const char* const known[] = {"--help", "--version", NULL};
        const char* near = crdi_nearest_word(name, known);
        return crdi_fail(cli->ctx, CRD_E_RANGE, "unknown option %s%s%s%s", name,
                         near ? ", did you mean " : "; options stand behind a command",
                         near ? near : "", near ? "?" : "");
    }
    const crdi_command* c = crdi_find_command(name);
    if (!c) { return unknown_command(cli->ctx, name); }
    return run_command(cli, c, argc - 2, argv + 2);
}

int crdi_cli_main(int argc, char** argv)
{
    crdi_cli cli = {.terminal = isatty(STDERR_FILENO) == 1};
    const char* no_color = getenv("NO_COLOR");
    const char* term = getenv("TERM");
    cli.color = cli.terminal && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
    pthread_mutex_init(&cli.lock, NULL);
    cli.ctx = make_context(&cli, NULL);
    if (!cli.ctx) {
        crdi_message(&cli, CRD_LOG_ERROR, crd_status_text(CRD_E_MEMORY));
        return crd_status_exit_code(CRD_E_MEMORY);
    }
    const int code = finish(&cli, dispatch(&cli, argc, argv));
    crd_context_destroy(cli.ctx);
    pthread_mutex_destroy(&cli.lock);
    return code;
}
