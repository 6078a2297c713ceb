// Help, manual page and docs/reference/commands.md, all from the tables.
#include "cli/cli.h"

#include <string.h>

enum { WIDTH = 88, HELP_COLUMN = 30 };

static const char about[] = "couples real and virtual prototypes";

static const struct {
    const char *code, *meaning;
} exit_codes[] = {
    {"0", "done"},
    {"1", "failed: a unit failed or crashed, reading or writing failed, results differ, the run "
          "was interrupted"},
    {"2", "called or described wrongly: options, files, systems, FMUs"},
    {"3", "a limit that the user set was not kept"},
};
enum { EXIT_CODES = sizeof exit_codes / sizeof *exit_codes };

// Words of `text` in lines of WIDTH, all but the first indented; `column` is where the cursor is.
static void print_wrapped(FILE* f, const char* text, int indent, int column)
{
    bool first = true;
    while (*text) {
        if (*text == '\n') { // a paragraph
            fprintf(f, "\n\n%*s", indent, "");
            column = indent;
            first = true;
            text++;
            continue;
        }
        const int n = (int)strcspn(text, " \n");
        if (!first && column + 1 + n > WIDTH) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        fprintf(f, "%s%.*s", first ? "" : " ", n, text);
        column += n + !first;
        first = false;
        text += n;
        if (*text == ' ') { text++; }
    }
    fputc('\n', f);
}

static void spell_option(char* out, size_t size, const crdi_option* o)
{
    char buffer[256], letter[8] = "    ";
    if (o->short_name) { snprintf(letter, sizeof letter, "-%c, ", o->short_name); }
    const char* metavar = crdi_option_metavar(o, buffer, sizeof buffer);
    snprintf(out, size, "%s--%s%s%s", letter, o->name, metavar ? " " : "", metavar ? metavar : "");
}

static void option_notes(char* out, size_t size, const crdi_option* o)
{
    snprintf(out, size, "%s%s%s%s", o->help,
             o->type == CRDI_OPT_LIST ? "; may be given several times" : "",
             o->alias ? "; also --" : "", o->alias ? o->alias : "");
}

// The commands of a group, NULL: all, with what they do.
static void print_commands(FILE* f, const char* group)
{
    const size_t n = group ? strlen(group) : 0;
    int width = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; crdi_commands[i]; i++) {
            const char* name = crdi_commands[i]->name;
            if (group && (strncmp(name, group, n) != 0 || name[n] != ' ')) { continue; }
            if (pass == 0 && (int)strlen(name) + 2 > width) { width = (int)strlen(name) + 2; }
            if (pass == 1) { fprintf(f, "  %-*s%s\n", width, name, crdi_commands[i]->summary); }
        }
    }
}

void crdi_print_overview(FILE* f)
{
    fprintf(f, "cardan %s: %s\n\nUsage: cardan COMMAND [options] [arguments]\n\nCommands:\n",
            crd_version(), about);
    print_commands(f, NULL);
    fprintf(f, "\nOptions:\n  -h, --help     show this help\n  -V, --version  show the version\n"
               "\nExample:\n  cardan run model.fmu --stop-time 10 --output run.csv\n"
               "\n'cardan help COMMAND' tells more. Exit code: 0 done, 1 failed, 2 called or "
               "described\nwrongly, 3 a limit that was set was not kept.\n");
}

void crdi_print_group(FILE* f, const char* group)
{
    fprintf(f, "Usage: cardan %s COMMAND [options] [arguments]\n\nCommands:\n", group);
    print_commands(f, group);
    fprintf(f, "\n'cardan help %s COMMAND' tells more.\n", group);
}

void crdi_print_help(FILE* f, const crdi_command* c)
{
    fprintf(f, "Usage: cardan %s [options]%s%s\n\n", c->name, *c->arguments ? " " : "",
            c->arguments);
    print_wrapped(f, c->description, 0, 0);
    fprintf(f, "\nOptions:\n");
    for (int i = 0; i < c->option_count; i++) {
        char left[320], notes[512];
        spell_option(left, sizeof left, &c->options[i]);
        option_notes(notes, sizeof notes, &c->options[i]);
        const int n = fprintf(f, "  %-*s", HELP_COLUMN - 4, left);
        if (n > HELP_COLUMN - 2) {
            fprintf(f, "\n%*s", HELP_COLUMN, "");
        } else {
            fprintf(f, "%*s", HELP_COLUMN - n, "");
        }
        print_wrapped(f, notes, HELP_COLUMN, HELP_COLUMN);
    }
    fprintf(f, "\nExample:\n");
    for (int i = 0; i < CRDI_EXAMPLES && c->examples[i].command; i++) {
        fprintf(f, "  %s\n      %s\n", c->examples[i].command, c->examples[i].meaning);
    }
}

// ---- manual page -------------------------------------------------------------------------------

// roff: a backslash and a hyphen are escaped; a dot at the beginning of a line would be a request.
static void roff(FILE* f, const char* text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) { fputs("\\&", f); }
        line_start = *text == '\n';
        switch (*text) {
        case '\\':
            fputs("\\e", f);
            break;
        case '-':
            fputs("\\-", f);
            break;
        case '\n':
            fputs("\n.PP\n", f);
            break;
        default:
            fputc(*text, f);
        }
    }
}

static void roff_option(FILE* f, const crdi_option* o)
{
    char buffer[256], notes[512];
    const char* metavar = crdi_option_metavar(o, buffer, sizeof buffer);
    fputs(".TP\n", f);
    if (o->short_name) { fprintf(f, "\\fB\\-%c\\fR, ", o->short_name); }
    fputs("\\fB\\-\\-", f);
    roff(f, o->name);
    fputs("\\fR", f);
    if (metavar) {
        fputs(" \\fI", f);
        roff(f, metavar);
        fputs("\\fR", f);
    }
    fputc('\n', f);
    option_notes(notes, sizeof notes, o);
    roff(f, notes);
    fputc('\n', f);
}

static void roff_command(FILE* f, const crdi_command* c)
{
    fprintf(f, ".SS \"cardan %s [options]%s%s\"\n", c->name, *c->arguments ? " " : "",
            c->arguments);
    roff(f, c->description);
    fputc('\n', f);
    for (int i = 0; i < c->option_count; i++) {
        roff_option(f, &c->options[i]);
    }
    for (int i = 0; i < CRDI_EXAMPLES && c->examples[i].command; i++) {
        fputs(i ? ".TP\n.B " : ".PP\nExamples:\n.TP\n.B ", f);
        roff(f, c->examples[i].command);
        fputc('\n', f);
        roff(f, c->examples[i].meaning);
        fputc('\n', f);
    }
}

void crdi_print_man(FILE* f)
{
    fprintf(f, ".TH CARDAN 1 \"\" \"cardan %s\" \"User commands\"\n", crd_version());
    fprintf(f, ".SH NAME\ncardan \\- %s\n", about);
    fputs(".SH SYNOPSIS\n.B cardan\n.I COMMAND\n[options] [arguments]\n.SH COMMANDS\n", f);
    for (int i = 0; crdi_commands[i]; i++) {
        roff_command(f, crdi_commands[i]);
    }
    fputs(".SH EXIT STATUS\n", f);
    for (int i = 0; i < EXIT_CODES; i++) {
        fprintf(f, ".TP\n.B %s\n", exit_codes[i].code);
        roff(f, exit_codes[i].meaning);
        fputc('\n', f);
    }
    fputs(".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nIf set, messages have no colours.\n"
          ".TP\n.B TMPDIR\nWhere FMUs are unpacked; /tmp unless set.\n",
          f);
}

// ---- commands.md -------------------------------------------------------------------------------

// In a table '|' ends a cell, code or not.
static void markdown_cell(FILE* f, const char* text)
{
    for (; *text; text++) {
        if (*text == '|') { fputc('\\', f); }
        fputc(*text, f);
    }
}

static void markdown_command(FILE* f, const crdi_command* c)
{
    fprintf(f, "\n## cardan %s\n\n```\ncardan %s [options]%s%s\n```\n\n", c->name, c->name,
            *c->arguments ? " " : "", c->arguments);
    print_wrapped(f, c->description, 0, 0);
    fputs("\n| option | meaning |\n|---|---|\n", f);
    for (int i = 0; i < c->option_count; i++) {
        char left[320], notes[512];
        spell_option(left, sizeof left, &c->options[i]);
        option_notes(notes, sizeof notes, &c->options[i]);
        fputs("| `", f);
        markdown_cell(f, left + strspn(left, " "));
        fputs("` | ", f);
        markdown_cell(f, notes);
        fputs(" |\n", f);
    }
    fputs("\n```sh\n", f);
    for (int i = 0; i < CRDI_EXAMPLES && c->examples[i].command; i++) {
        fprintf(f, "%s  # %s\n", c->examples[i].command, c->examples[i].meaning);
    }
    fputs("```\n", f);
}

void crdi_print_markdown(FILE* f)
{
    fputs(
        "# Commands\n\n<!-- Made by `cardan man --format markdown` from the tables that parse the "
        "arguments. -->\n\n",
        f);
    print_wrapped(f,
                  "Messages go to standard error as `cardan: file:line: what is wrong, and what "
                  "would be right`, warnings as `cardan: warning: ...`; results go to files, or "
                  "to standard output with `--json`. Times may carry a unit: `--step '10 ms'`. "
                  "`--name value` and `--name=value` are the same; `--` ends the options.",
                  0, 0);
    fputs("\n| exit code | meaning |\n|---|---|\n", f);
    for (int i = 0; i < EXIT_CODES; i++) {
        fprintf(f, "| %s | %s |\n", exit_codes[i].code, exit_codes[i].meaning);
    }
    fputc('\n', f);
    print_wrapped(f,
                  "Ctrl-C (SIGINT) and SIGTERM end a run between two steps: the units terminate, "
                  "everything recorded so far is in the file, and the exit code is 1. A second "
                  "Ctrl-C ends the process at once.",
                  0, 0);
    for (int i = 0; crdi_commands[i]; i++) {
        markdown_command(f, crdi_commands[i]);
    }
}

// ---- the command -------------------------------------------------------------------------------

typedef struct man_options {
    crdi_common common;
    int format;
} man_options;

static crd_status run_man(crdi_cli* cli, const void* options, const crdi_list* arguments,
                          crdi_result* out)
{
    (void)out;
    const man_options* o = options;
    (void)arguments;
    if (o->format == 1) {
        crdi_print_markdown(stdout);
    } else {
        crdi_print_man(stdout);
    }
    return crdi_stdout_done(cli->ctx);
}

static const char* const formats[] = {"roff", "markdown", NULL};
static const crdi_option man_rows[] = {
    OPT_CHOICE(man_options, format, "format", formats,
               "roff for man, or markdown; roff unless given"),
    CRDI_COMMON_OPTIONS,
};
static const char* const no_words[] = {NULL};

const crdi_command crdi_command_man = {
    .name = "man",
    .arguments = "",
    .summary = "print the manual page",
    .description = "Prints the manual page of all commands on standard output.",
    .examples = {{"cardan man | man -l -", "read it"}},
    OPTIONS(man_rows, man_options),
    .words = no_words,
    .run = run_man,
};
