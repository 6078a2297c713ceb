// The list of commands, and the way from the arguments to one of them.
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char* const crdi_log_levels[] = {"error", "warning", "info", "debug", NULL};

const crdi_command* const crdi_commands[] = {
#define COMMAND(name) &crdi_command_##name,
#include "cli/commands.def"
    NULL,
};
#undef COMMAND
#undef GROUP
#undef RENAMED

const crdi_listed crdi_listing[] = {
#define GROUP(name, about) {name, about, NULL},
#define COMMAND(name) {NULL, NULL, &crdi_command_##name},
#include "cli/commands.def"
    {NULL, NULL, NULL},
};
#undef COMMAND
#undef GROUP
#undef RENAMED

static const struct {
    const char *old, *now;
} renamed[] = {
#define RENAMED(old, now) {old, now},
#include "cli/commands.def"
};

const char* const crdi_any_command[] = {NULL};

const crdi_command* crdi_find_command(const char* name)
{
    for (int i = 0; crdi_commands[i]; i++) {
        if (strcmp(crdi_commands[i]->name, name) == 0) { return crdi_commands[i]; }
    }
    return NULL;
}

// The command that had this name in earlier versions, NULL.
static const crdi_command* find_renamed(const char* name)
{
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        if (strcmp(renamed[i].old, name) == 0) { return crdi_find_command(renamed[i].now); }
    }
    return NULL;
}

// ---- groups: "cardan dcp slave" ----------------------------------------------------------------

static bool in_group(const char* name, const char* group)
{
    const size_t n = strlen(group);
    return strncmp(name, group, n) == 0 && name[n] == ' ';
}

bool crdi_is_group(const char* name)
{
    for (int i = 0; crdi_commands[i]; i++) {
        if (in_group(crdi_commands[i]->name, name)) { return true; }
    }
    return false;
}

bool crdi_in_group(const crdi_command* c, const char* group)
{
    const char* listed = "";
    for (int i = 0; crdi_listing[i].command != c; i++) {
        if (crdi_listing[i].group) { listed = crdi_listing[i].group; }
    }
    return strcmp(listed, group) == 0 || in_group(c->name, group);
}

bool crdi_is_listed_group(const char* name)
{
    for (int i = 0; crdi_listing[i].group || crdi_listing[i].command; i++) {
        if (crdi_listing[i].group && strcmp(crdi_listing[i].group, name) == 0) { return true; }
    }
    return false;
}

typedef struct members {
    const char* group;
    int i;
} members;

static const char* next_member(void* user)
{
    members* m = user;
    while (crdi_commands[m->i] && !in_group(crdi_commands[m->i]->name, m->group)) {
        m->i++;
    }
    return crdi_commands[m->i] ? crdi_commands[m->i++]->name + strlen(m->group) + 1 : NULL;
}

// The command `word` of a group; `word` may be NULL.
static crd_status find_member(crd_context* ctx, const char* group, const char* word,
                              const crdi_command** out)
{
    members m = {group, 0};
    for (const char* name = next_member(&m); word && name; name = next_member(&m)) {
        if (strcmp(name, word) == 0) {
            *out = crdi_commands[m.i - 1];
            return CRD_OK;
        }
    }
    m = (members){group, 0};
    const char* near = word ? crdi_nearest(word, next_member, &m) : NULL;
    if (near) {
        return crdi_fail(ctx, CRD_E_RANGE, "unknown command '%s %s', did you mean %s %s?", group,
                         word, group, near);
    }
    char list[256] = "";
    size_t used = 0;
    m = (members){group, 0};
    for (const char* name = next_member(&m); name && used < sizeof list; name = next_member(&m)) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", name);
    }
    return crdi_fail(ctx, CRD_E_RANGE, "%s '%s%s%s': cardan %s takes one of %s",
                     word ? "unknown command" : "a word is missing behind", group, word ? " " : "",
                     word ? word : "", group, list);
}

static const char* next_command(void* user)
{
    int* i = user;
    return crdi_commands[*i] ? crdi_commands[(*i)++]->name : NULL;
}

// All that `cardan help` knows: groups, commands, topics.
static const char* next_helped(void* user)
{
    int* i = user;
    const int rows = (int)(sizeof crdi_listing / sizeof *crdi_listing) - 1;
    if (*i >= rows) { return crdi_topics[(*i)++ - rows].name; }
    const crdi_listed* row = &crdi_listing[(*i)++];
    return row->group ? row->group : row->command->name;
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
    if (crdi_is_listed_group(name) || crdi_find_topic(name)) {
        return crdi_fail(ctx, CRD_E_RANGE, "'%s' is no command; 'cardan help %s' tells about it",
                         name, name);
    }
    if (near) {
        return crdi_fail(ctx, CRD_E_RANGE, "unknown command '%s', did you mean %s?", name, near);
    }
    if (stat(name, &info) == 0) {
        return crdi_fail(ctx, CRD_E_RANGE, "unknown command '%s', did you mean 'cardan run %s'?",
                         name, name);
    }
    return crdi_fail(ctx, CRD_E_RANGE, "unknown command '%s'; 'cardan help' lists them", name);
}

// ---- help --------------------------------------------------------------------------------------

static crd_status help_about(crdi_cli* cli, const char* name, const char* second)
{
    const crdi_topic* topic = crdi_find_topic(name);
    const crdi_command* c = crdi_find_command(name);
    const bool group = crdi_is_group(name) || crdi_is_listed_group(name);
    if (!c) { c = find_renamed(name); }
    if (second && crdi_is_group(name)) {
        const crd_status st = find_member(cli->ctx, name, second, &c);
        if (st < 0) { return st; }
    } else if (second) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "unexpected argument '%s'", second);
    } else if (!c && (topic || group)) {
        if (topic) { crdi_print_topic(stdout, topic); }
        if (topic && group) { fputc('\n', stdout); }
        if (group) { crdi_print_group(stdout, name); }
        return CRD_OK;
    }
    if (!c) {
        int i = 0;
        const char* near = crdi_nearest(name, next_helped, &i);
        return crdi_fail(cli->ctx, CRD_E_RANGE, "no command or topic '%s'%s%s%s", name,
                         near ? ", did you mean " : "; 'cardan help' lists them", near ? near : "",
                         near ? "?" : "");
    }
    crdi_print_help(stdout, c);
    return CRD_OK;
}

static crd_status run_help(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    (void)out;
    (void)options;
    crd_status st = CRD_OK;
    if (arguments->count == 0) {
        crdi_print_overview(stdout);
    } else {
        st =
            help_about(cli, arguments->items[0], arguments->count > 1 ? arguments->items[1] : NULL);
    }
    return st < 0 ? st : crdi_stdout_done(cli->ctx);
}

static const crdi_option help_options[] = {CRDI_COMMON_OPTIONS};
const crdi_command crdi_command_help = {
    .name = "help",
    .arguments = "[COMMAND|GROUP|TOPIC]",
    .summary = "show what a command does, or tell about a topic",
    .description = "Shows the groups of commands, everything about one command, the commands of a "
                   "group, or a topic: start, coupling, benches, formats, units, exit-codes, "
                   "environment, commands (a list of all).",
    .examples = {{"cardan help run", "the options of cardan run"},
                 {"cardan help coupling", "what to do about signals that come late"},
                 {"cardan help commands", "all commands, a line each"}},
    .options = help_options,
    .option_count = sizeof help_options / sizeof *help_options,
    .max_arguments = 2,
    .words = crdi_any_command,
    .size = sizeof(crdi_common),
    .run = run_help,
};

// ---- dispatch ----------------------------------------------------------------------------------

// --quiet is about what is said on the way; a warning says that a result is not what was asked for.
static crd_context* commands_make_context(crdi_cli* cli, const crdi_common* common)
{
    crd_context_options opt = crd_context_defaults();
    opt.log = crdi_log_line;
    opt.log_user = cli;
    if (common && common->log_level >= 0) {
        opt.level = (crd_level)common->log_level;
    } else if (common && common->quiet) {
        cli->silent = common->json; // warnings are in its report
    }
    crd_context* ctx = crd_context_create(&opt);
    if (ctx && common && cli->terminal && !common->quiet) {
        crdi_context_show_progress(ctx, crdi_show_progress, cli);
    }
    return ctx;
}

static int commands_finish(crdi_cli* cli, crd_status st)
{
    if (cli->said) { return crd_status_exit_code(st); }
    if (st < 0 && *crd_error_text(cli->ctx)) {
        crdi_message(cli, CRD_LOG_ERROR, crd_error_text(cli->ctx));
    } else if (st < 0 && st != CRD_E_DIFFERENT) {
        crdi_message(cli, CRD_LOG_ERROR, crd_status_text(st));
    }
    return crd_status_exit_code(st);
}

static crd_status make_result(crdi_cli* cli, const crdi_command* c, const void* values,
                              const crdi_list* arguments)
{
    crdi_root root;
    crdi_result_init(&root, cli->ctx, ((const crdi_common*)values)->json);
    root.beside = ((const crdi_common*)values)->to_stdout;
    const crd_status st = c->run(cli, values, arguments, &root.result);
    crdi_progress_erase(cli);
    char why[1024];
    snprintf(why, sizeof why, "%s", st < 0 ? crd_error_text(cli->ctx) : "");
    const crd_status printed = crdi_result_print(&root);
    crdi_result_clear(&root);
    if (st >= 0 || printed >= 0) { return st < 0 ? st : printed; }
    char also[1024];
    snprintf(also, sizeof also, "%s", crd_error_text(cli->ctx));
    return crdi_fail(cli->ctx, st, "%s; the result: %s", why, also);
}

// FMUs and packages are made as files: one that is to go to standard output is copied there.
static crd_status make_archive(crdi_cli* cli, const crdi_command* c, char* values,
                               const crdi_list* arguments, const crdi_option* o)
{
    static const crdi_file_need need = {.what = "an archive", .most = (size_t)4 << 30};
    const char* folder = getenv("TMPDIR");
    char place[PATH_MAX], file[PATH_MAX + 16];
    crd_text bytes;
    crd_text_init(&bytes, cli->ctx);
    snprintf(place, sizeof place, "%s/cardan-XXXXXX", folder && *folder ? folder : "/tmp");
    if (!mkdtemp(place)) { return crdi_fail(cli->ctx, CRD_E_IO, "%s: %s", place, strerror(errno)); }
    snprintf(file, sizeof file, "%s/model", place);
    *(const char**)(values + o->offset) = file;
    crd_status st = make_result(cli, c, values, arguments);
    if (st >= 0) { st = crdi_file_read(cli->ctx, file, &need, &bytes); }
    if (st >= 0) { st = crdi_file_write(cli->ctx, "-", &bytes); }
    crd_text_clear(&bytes);
    unlink(file);
    rmdir(place);
    return st;
}

// Scripts go on: what they read is not touched.
static void hint_at_name(const crdi_command* c, const char* old, const crdi_common* common)
{
    if (common->json || common->quiet || common->log_level == CRD_LOG_ERROR) { return; }
    fprintf(stderr, "cardan: '%s' is called '%s' now; the old name works in this version\n", old,
            c->name);
}

// `old`: what it was called by, if that is not its name any more.
static crd_status run_command(crdi_cli* cli, const crdi_command* c, const char* old, int argc,
                              char** argv)
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
        if (old) { hint_at_name(c, old, common); }
        // One place says it to archives, wherever they are opened.
        if (common->max_unpacked) { setenv("CARDAN_MAX_UNPACKED", common->max_unpacked, 1); }
        // The level of messages is known only now, and a context keeps its level.
        crd_context* ctx = commands_make_context(cli, common);
        if (ctx) {
            cli->ctx = ctx;
            cli->collect = common->json;
            crdi_choose_isolation(common->isolate);
            const crdi_option* out = crdi_option_to_stdout(c, values);
            const bool archive = out && out->extensions && strstr(out->extensions, "fmu");
            st = archive ? make_archive(cli, c, values, &arguments, out)
                         : make_result(cli, c, values, &arguments);
            crdi_drop_warnings(cli);
            cli->ctx = parse_ctx;
            if (st < 0) { crdi_fail(parse_ctx, st, "%s", crd_error_text(ctx)); }
            crd_context_destroy(ctx);
        } else {
            st = CRD_E_MEMORY;
        }
    }
    crdi_options_clear(parse_ctx, c, values, &arguments);
    crd_free(parse_ctx, values);
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
        crdi_print_version();
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
    if (c) { return run_command(cli, c, NULL, argc - 2, argv + 2); }
    c = find_renamed(name);
    if (c) { return run_command(cli, c, name, argc - 2, argv + 2); }
    if (!crdi_is_group(name)) { return unknown_command(cli->ctx, name); }
    const char* word = argc > 2 ? argv[2] : NULL;
    if (word && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
        crdi_print_group(stdout, name);
        return crdi_stdout_done(cli->ctx);
    }
    const crd_status st = find_member(cli->ctx, name, word, &c);
    return st < 0 ? st : run_command(cli, c, NULL, argc - 3, argv + 3);
}

int crdi_cli_main(int argc, char** argv)
{
    const char* no_color = getenv("NO_COLOR");
    const char* term = getenv("TERM");
    crdi_cli cli = {.begin_ns = crdi_now_ns()};
    cli.terminal = isatty(STDERR_FILENO) == 1 && term && strcmp(term, "dumb") != 0;
    cli.color = cli.terminal && !(no_color && *no_color);
    pthread_mutex_init(&cli.lock, NULL);
    cli.ctx = commands_make_context(&cli, NULL);
    if (!cli.ctx) {
        crdi_message(&cli, CRD_LOG_ERROR, crd_status_text(CRD_E_MEMORY));
        return crd_status_exit_code(CRD_E_MEMORY);
    }
    const int code = commands_finish(&cli, dispatch(&cli, argc, argv));
    crd_context_destroy(cli.ctx);
    pthread_mutex_destroy(&cli.lock);
    return code;
}
