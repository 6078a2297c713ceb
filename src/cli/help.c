// Help, manual page and docs/reference/commands.md, all from the tables.
#include "cli/cli.h"

#include <errno.h>
#include <string.h>

enum { WIDTH = 80, HELP_COLUMN = 30 };

static const char about[] = "couples real and virtual prototypes";

static const struct {
    const char *code, *meaning;
} exit_codes[] = {
    {"0", "done"},
    {"1", "failed: a unit failed or crashed, reading or writing failed, results differ, the run "
          "was interrupted"},
    {"2", "called or described wrongly: options, files, systems, FMUs"},
    {"3", "a limit was not kept: one that the user set, or the guard's (the coupling diverged), or "
          "the verdict's (the result is mostly error)"},
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

// A line for each command of a group.
static void print_commands(FILE* f, const char* group)
{
    int width = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; crdi_commands[i]; i++) {
            const char* name = crdi_commands[i]->name;
            if (!crdi_in_group(crdi_commands[i], group)) { continue; }
            if (pass == 0 && (int)strlen(name) + 2 > width) { width = (int)strlen(name) + 2; }
            if (pass == 1) { fprintf(f, "  %-*s%s\n", width, name, crdi_commands[i]->summary); }
        }
    }
}

// The words of a group, each once: the second ones if the group is a word itself.
static void print_words(FILE* f, const crdi_listed* group)
{
    const char* last = "";
    size_t last_length = 0;
    for (const crdi_listed* row = group + 1; row->command; row++) {
        const char* word = row->command->name;
        size_t n = strcspn(word, " ");
        if (n == strlen(group->group) && strncmp(word, group->group, n) == 0) {
            word += n + 1;
            n = strlen(word);
        }
        if (n == last_length && strncmp(word, last, n) == 0) { continue; }
        fprintf(f, "%s%.*s", last_length ? ", " : "", (int)n, word);
        last = word;
        last_length = n;
    }
    fputc('\n', f);
}

enum { NAME_COLUMN = 10 };

void crdi_print_overview(FILE* f)
{
    fprintf(f, "cardan %s: %s\nUsage: cardan COMMAND [options] [arguments]\n\n", crd_version(),
            about);
    const crdi_listed* row = crdi_listing + 1;
    for (; row->command; row++) { // the first group with what its commands do, the others as words
        fprintf(f, "  %-*s%s\n", NAME_COLUMN, row->command->name, row->command->summary);
    }
    fputc('\n', f);
    for (; row->group || row->command; row++) {
        if (!row->group) { continue; }
        fprintf(f, "  %-*s%s%s", NAME_COLUMN, row->group, row->about, *row->about ? ": " : "");
        print_words(f, row);
    }
    fputs("\n'cardan help NAME' tells about a command, a group, or a topic:\n ", f);
    for (int i = 0; crdi_topics[i].name; i++) {
        if (!crdi_is_listed_group(crdi_topics[i].name)) { fprintf(f, " %s", crdi_topics[i].name); }
    }
    fputc('\n', f);
}

void crdi_print_group(FILE* f, const char* group)
{
    const bool word = crdi_is_group(group); // on the command line, too
    if (word) { fprintf(f, "Usage: cardan %s COMMAND [options] [arguments]\n\n", group); }
    fputs("Commands:\n", f);
    print_commands(f, group);
    fprintf(f, "\n'cardan help %s%sCOMMAND' tells more.\n", word ? group : "", word ? " " : "");
}

void crdi_print_topic(FILE* f, const crdi_topic* t)
{
    for (int i = 0; strcmp(t->name, "exit-codes") == 0 && i < EXIT_CODES; i++) {
        fprintf(f, "  %s  ", exit_codes[i].code);
        print_wrapped(f, exit_codes[i].meaning, 5, 5);
    }
    for (const crdi_listed* row = crdi_listing; !*t->text && (row->group || row->command); row++) {
        if (!row->group) { continue; }
        fprintf(f, "%s%s%s%s\n", row == crdi_listing ? "" : "\n", row->group,
                *row->about ? ": " : "", row->about);
        print_commands(f, row->group);
    }
    fputs(t->text, f);
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

// The lines of a text as they are.
static void roff_lines(FILE* f, const char* text)
{
    fputs(".nf\n", f);
    for (; *text; text++) {
        const char piece[2] = {*text, 0};
        if (*text == '\n') {
            fputc('\n', f);
        } else {
            roff(f, piece);
        }
    }
    fputs(".fi\n", f);
}

static void print_man(FILE* f)
{
    fprintf(f, ".TH CARDAN 1 \"\" \"cardan %s\" \"User commands\"\n", crd_version());
    fprintf(f, ".SH NAME\ncardan \\- %s\n", about);
    fputs(".SH SYNOPSIS\n.B cardan\n.I COMMAND\n[options] [arguments]\n.SH COMMANDS\n", f);
    for (const crdi_listed* row = crdi_listing; row->group || row->command; row++) {
        if (row->group) {
            fprintf(f, ".SS \"%s%s%s\"\n", row->group, *row->about ? ": " : "", row->about);
            continue;
        }
        fprintf(f, ".TP\n.B cardan %s\n", row->command->name);
        roff(f, row->command->summary);
        fputc('\n', f);
    }
    fputs(".PP\nEach word has a page of its own: \\fBcardan\\-run\\fR(1).\n.SH EXIT STATUS\n", f);
    for (int i = 0; i < EXIT_CODES; i++) {
        fprintf(f, ".TP\n.B %s\n", exit_codes[i].code);
        roff(f, exit_codes[i].meaning);
        fputc('\n', f);
    }
    fputs(".SH ENVIRONMENT\n", f);
    roff_lines(f, crdi_find_topic("environment")->text);
}

// The page of all commands that begin with a word: cardan-run(1), cardan-bench(1).
static void print_man_of(FILE* f, const char* word)
{
    const crdi_command* alone = crdi_find_command(word);
    const crdi_topic* topic = crdi_find_topic(word);
    fputs(".TH CARDAN\\-", f);
    for (const char* c = word; *c; c++) {
        fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, f);
    }
    fprintf(f, " 1 \"\" \"cardan %s\" \"User commands\"\n", crd_version());
    fprintf(f, ".SH NAME\ncardan\\-%s \\- ", word);
    roff(f, alone ? alone->summary : topic ? topic->about : "a group of commands of cardan");
    fputc('\n', f);
    if (topic && !alone) {
        fputs(".SH DESCRIPTION\n", f);
        roff_lines(f, topic->text);
    }
    fputs(".SH COMMANDS\n", f);
    const size_t n = strlen(word);
    for (int i = 0; crdi_commands[i]; i++) {
        const char* name = crdi_commands[i]->name;
        if (strncmp(name, word, n) == 0 && (!name[n] || name[n] == ' ')) {
            roff_command(f, crdi_commands[i]);
        }
    }
    fputs(".SH SEE ALSO\n.BR cardan (1)\n", f);
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
    fprintf(f, "\n### cardan %s\n\n```\ncardan %s [options]%s%s\n```\n\n", c->name, c->name,
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

static void print_markdown(FILE* f)
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
    for (const crdi_listed* row = crdi_listing; row->group || row->command; row++) {
        if (row->command) {
            markdown_command(f, row->command);
            continue;
        }
        fprintf(f, "\n## %s%s%s\n\n| command | |\n|---|---|\n", row->group, *row->about ? ": " : "",
                row->about);
        for (const crdi_listed* r = row + 1; r->command; r++) {
            fprintf(f, "| [%s](#cardan-", r->command->name);
            for (const char* c = r->command->name; *c; c++) {
                fputc(*c == ' ' ? '-' : *c, f);
            }
            fprintf(f, ") | %s |\n", r->command->summary);
        }
    }
}

// ---- the command -------------------------------------------------------------------------------

typedef struct man_options {
    crdi_common common;
    int format;
    const char* directory;
} man_options;

static const char* next_word(void* user)
{
    int* i = user;
    return crdi_commands[*i] ? crdi_commands[(*i)++]->name : NULL;
}

// cardan.1 (word NULL) or the page of a word, as a file.
static crd_status write_page(crd_context* ctx, const char* folder, const char* word)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/cardan%s%s.1", folder, word ? "-" : "", word ? word : "");
    FILE* f = fopen(path, "w");
    if (!f) { return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno)); }
    if (word) {
        print_man_of(f, word);
    } else {
        print_man(f);
    }
    const bool failed = ferror(f) != 0;
    return fclose(f) != 0 || failed ? crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno))
                                    : CRD_OK;
}

static crd_status write_pages(crd_context* ctx, const char* folder)
{
    crd_status st = write_page(ctx, folder, NULL);
    for (int i = 0; st >= 0 && crdi_commands[i]; i++) {
        char word[32];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(crdi_commands[i]->name, " "),
                 crdi_commands[i]->name);
        st = write_page(ctx, folder, word); // of a group several times: it is short
    }
    return st;
}

static crd_status run_man(crdi_cli* cli, const void* options, const crdi_list* arguments,
                          crdi_result* out)
{
    (void)out;
    const man_options* o = options;
    const char* word = arguments->count ? arguments->items[0] : NULL;
    if (o->directory) { return write_pages(cli->ctx, o->directory); }
    if (o->format == 1) {
        print_markdown(stdout);
    } else if (!word) {
        print_man(stdout);
    } else if (crdi_find_command(word) || crdi_is_group(word)) {
        print_man_of(stdout, word);
    } else {
        int i = 0;
        const char* near = crdi_nearest(word, next_word, &i);
        return crdi_fail(cli->ctx, CRD_E_RANGE, "no command '%s'%s%s%s", word,
                         near ? ", did you mean " : "; 'cardan help' lists them", near ? near : "",
                         near ? "?" : "");
    }
    return crdi_stdout_done(cli->ctx);
}

static const char* const formats[] = {"roff", "markdown", NULL};
static const crdi_option man_rows[] = {
    OPT_CHOICE(man_options, format, "format", formats,
               "roff for man, or markdown (one page of all commands); roff unless given"),
    OPT_FILE(man_options, directory, "directory", NULL, "write all pages into this folder",
             .metavar = "FOLDER"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_man = {
    .name = "man",
    .arguments = "[COMMAND]",
    .summary = "print the manual pages",
    .description = "Prints a manual page on standard output: cardan(1), or that of a command or of "
                   "a group of them, such as cardan-bench(1).",
    .examples = {{"cardan man run | man -l -", "read the page of cardan run"},
                 {"cardan man --directory ~/.local/share/man/man1", "all pages for man"}},
    OPTIONS(man_rows, man_options),
    .max_arguments = 1,
    .words = crdi_any_command,
    .run = run_man,
};
