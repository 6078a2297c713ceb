// Completions of bash and zsh from the tables.
#include "cli/cli.h"

#include <string.h>

static void words(FILE* f, const char* const* list)
{
    for (int i = 0; list && list[i]; i++) {
        fprintf(f, "%s%s", i ? " " : "", list[i]);
    }
}

// The length of the first word of a command, and whether no command before it has the same.
static size_t first_word(int i)
{
    return strcspn(crdi_commands[i]->name, " ");
}

static bool same_first(int i, int k)
{
    return first_word(i) == first_word(k) &&
           strncmp(crdi_commands[i]->name, crdi_commands[k]->name, first_word(i)) == 0;
}

static bool is_first(int i)
{
    for (int k = 0; k < i; k++) {
        if (same_first(i, k)) { return false; }
    }
    return true;
}

// What the arguments of a command can be.
static void argument_words(FILE* f, const crdi_command* c)
{
    if (c->words != crdi_any_command) {
        words(f, c->words);
        return;
    }
    for (int i = 0; crdi_commands[i]; i++) {
        if (!is_first(i)) { continue; }
        fprintf(f, "%s%.*s", i ? " " : "", (int)first_word(i), crdi_commands[i]->name);
    }
}

// The second words of the group that command i begins.
static void second_words(FILE* f, int i)
{
    for (int k = i; crdi_commands[k]; k++) {
        if (!same_first(i, k)) { continue; }
        fprintf(f, "%s%s", k == i ? "" : " ", crdi_commands[k]->name + first_word(k) + 1);
    }
}

// ---- bash --------------------------------------------------------------------------------------

static const char bash_head[] =
    "# bash completion of cardan\n"
    "_cardan_files() { # endings separated by |, none: all files\n"
    "    local IFS=$'\\n' file\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    COMPREPLY=($(compgen -d -- \"$cur\"))\n"
    "    for file in $(compgen -f -- \"$cur\"); do\n"
    "        [[ -d $file ]] && continue\n"
    "        [[ -z $1 || $file =~ \\.($1)$ ]] && COMPREPLY+=(\"$file\")\n"
    "    done\n"
    "}\n"
    "_cardan_words() {\n"
    "    COMPREPLY=($(compgen -W \"$1\" -- \"$cur\"))\n"
    "}\n"
    "_cardan() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    COMPREPLY=()\n"
    "    # bash takes --name=value apart at the sign\n"
    "    if [[ $cur == = ]]; then\n"
    "        cur=\n"
    "    elif [[ $prev == = ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    local command=${COMP_WORDS[1]}\n"
    "    if ((COMP_CWORD == 1)); then\n";

static void bash_value(FILE* f, const crdi_command* c, const crdi_option* o)
{
    fprintf(f, "    '%s':--%s", c->name, o->name);
    if (o->alias) { fprintf(f, "|'%s':--%s", c->name, o->alias); }
    if (o->short_name) { fprintf(f, "|'%s':-%c", c->name, o->short_name); }
    fputs(") ", f);
    if (o->choices) {
        fputs("_cardan_words '", f);
        words(f, o->choices);
        fputs("'; ", f);
    } else if (o->type == CRDI_OPT_FILE || o->extensions) {
        fprintf(f, "_cardan_files '%s'; ", o->extensions ? o->extensions : "");
    } else if (o->type == CRDI_OPT_COUNT) {
        fputs("_cardan_words auto; ", f);
    }
    fputs("return ;;\n", f);
}

static void bash_command(FILE* f, const crdi_command* c)
{
    fprintf(f, "    '%s':-*) _cardan_words '", c->name);
    for (int i = 0; i < c->option_count; i++) {
        const crdi_option* o = &c->options[i];
        fprintf(f, "%s--%s", i ? " " : "", o->name);
        if (o->short_name) { fprintf(f, " -%c", o->short_name); }
    }
    fprintf(f, "' ;;\n    '%s':*) ", c->name);
    if (c->words) {
        fputs("_cardan_words '", f);
        argument_words(f, c);
        fputs("' ;;\n", f);
    } else {
        fprintf(f, "_cardan_files '%s' ;;\n", c->extensions ? c->extensions : "");
    }
}

void crdi_print_bash(FILE* f)
{
    fputs(bash_head, f);
    fputs("        _cardan_words '", f);
    for (int i = 0; crdi_commands[i]; i++) {
        if (is_first(i)) { fprintf(f, "%.*s ", (int)first_word(i), crdi_commands[i]->name); }
    }
    fputs("--help --version'\n        return\n    fi\n    case $command in\n", f);
    for (int i = 0; crdi_commands[i]; i++) {
        if (!is_first(i) || !crdi_commands[i]->name[first_word(i)]) { continue; }
        fprintf(f, "    %.*s)\n        if ((COMP_CWORD == 2)); then\n            _cardan_words '",
                (int)first_word(i), crdi_commands[i]->name);
        second_words(f, i);
        fputs("'\n            return\n        fi\n        command+=\" ${COMP_WORDS[2]}\" ;;\n", f);
    }
    fputs("    esac\n    case $command:$prev in\n", f);
    for (int i = 0; crdi_commands[i]; i++) {
        for (int k = 0; k < crdi_commands[i]->option_count; k++) {
            const crdi_option* o = &crdi_commands[i]->options[k];
            if (o->type != CRDI_OPT_FLAG) { bash_value(f, crdi_commands[i], o); }
        }
    }
    fputs("    esac\n    case $command:$cur in\n", f);
    for (int i = 0; crdi_commands[i]; i++) {
        bash_command(f, crdi_commands[i]);
    }
    fputs("    esac\n}\ncomplete -F _cardan cardan\n", f);
}

// ---- zsh ---------------------------------------------------------------------------------------

// Inside '...[help]:...': quotes end the word, brackets and colons the part.
static void zsh_text(FILE* f, const char* text)
{
    for (; *text; text++) {
        switch (*text) {
        case '\'':
            fputs("'\\''", f);
            break;
        case '[':
        case ']':
        case ':':
        case '\\':
            fprintf(f, "\\%c", *text);
            break;
        default:
            fputc(*text, f);
        }
    }
}

static void zsh_files(FILE* f, const char* extensions)
{
    if (extensions) {
        fprintf(f, "_files -g \"*.(%s)(-.)\"", extensions);
    } else {
        fputs("_files", f);
    }
}

// One spelling of an option. After a long name the value may stand behind '='.
static void zsh_spelling(FILE* f, const crdi_option* o, const char* dashes, const char* name)
{
    const bool takes = o->type != CRDI_OPT_FLAG;
    const bool is_long = dashes[1] == '-';
    fprintf(f, "            '%s%s%s%s[", o->type == CRDI_OPT_LIST ? "*" : "", dashes, name,
            !takes    ? ""
            : is_long ? "="
                      : "+");
    zsh_text(f, o->help);
    fputc(']', f);
    if (takes) {
        fputc(':', f);
        zsh_text(f, o->metavar ? o->metavar : o->type == CRDI_OPT_FILE ? "FILE" : o->name);
        fputc(':', f);
        if (o->choices) {
            fputc('(', f);
            words(f, o->choices);
            fputc(')', f);
        } else if (o->type == CRDI_OPT_FILE || o->extensions) {
            zsh_files(f, o->extensions);
        } else if (o->type == CRDI_OPT_COUNT) {
            fputs("(auto)", f);
        }
    }
    fputs("' \\\n", f);
}

static void zsh_command(FILE* f, const crdi_command* c)
{
    fprintf(f, "    '%s')\n        _arguments -s \\\n", c->name);
    for (int i = 0; i < c->option_count; i++) {
        const crdi_option* o = &c->options[i];
        const char letter[2] = {o->short_name, 0};
        zsh_spelling(f, o, "--", o->name);
        if (o->alias) { zsh_spelling(f, o, "--", o->alias); }
        if (o->short_name) { zsh_spelling(f, o, "-", letter); }
    }
    fputs("            '*:", f);
    zsh_text(f, *c->arguments ? c->arguments : " ");
    fputc(':', f);
    if (c->words) {
        fputc('(', f);
        argument_words(f, c);
        fputc(')', f);
    } else {
        zsh_files(f, c->extensions);
    }
    fputs("'\n        ;;\n", f);
}

void crdi_print_zsh(FILE* f)
{
    fputs("#compdef cardan\n"
          "_cardan() {\n"
          "    local -a commands=(\n",
          f);
    for (int i = 0; crdi_commands[i]; i++) {
        if (!is_first(i)) { continue; }
        const size_t n = first_word(i);
        fprintf(f, "        '%.*s:", (int)n, crdi_commands[i]->name);
        zsh_text(f, crdi_commands[i]->name[n] ? "a group of commands" : crdi_commands[i]->summary);
        fputs("'\n", f);
    }
    fputs("    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe command commands\n"
          "        _arguments '--help[show the help]' '--version[show the version]'\n"
          "        return\n"
          "    fi\n"
          "    local command=$words[2]\n"
          "    shift words\n"
          "    ((CURRENT--))\n",
          f);
    for (int i = 0; crdi_commands[i]; i++) {
        if (!is_first(i) || !crdi_commands[i]->name[first_word(i)]) { continue; }
        fprintf(f,
                "    if [[ $command == %.*s ]]; then\n        if ((CURRENT == 2)); then\n"
                "            compadd ",
                (int)first_word(i), crdi_commands[i]->name);
        second_words(f, i);
        fputs("\n            return\n        fi\n        command+=\" $words[2]\"\n"
              "        shift words\n        ((CURRENT--))\n    fi\n",
              f);
    }
    fputs("    case $command in\n", f);
    for (int i = 0; crdi_commands[i]; i++) {
        zsh_command(f, crdi_commands[i]);
    }
    fputs("    esac\n}\n"
          "if [[ $funcstack[1] == _cardan ]]; then\n"
          "    _cardan \"$@\"\n"
          "else\n"
          "    compdef _cardan cardan\n"
          "fi\n",
          f);
}

// ---- the command -------------------------------------------------------------------------------

static const char* const shells[] = {"bash", "zsh", NULL};

static crd_status run_completion(crdi_cli* cli, const void* options, const crdi_list* arguments,
                                 crdi_result* out)
{
    (void)out;
    (void)options;
    const char* shell = arguments->items[0];
    if (strcmp(shell, "bash") == 0) {
        crdi_print_bash(stdout);
    } else if (strcmp(shell, "zsh") == 0) {
        crdi_print_zsh(stdout);
    } else {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "completion: '%s', expected bash or zsh", shell);
    }
    return crdi_stdout_done(cli->ctx);
}

static const crdi_option completion_rows[] = {CRDI_COMMON_OPTIONS};
const crdi_command crdi_command_completion = {
    .name = "completion",
    .arguments = "bash|zsh",
    .summary = "print the completion script of a shell",
    .description = "Prints a script that lets the shell complete commands, options and files.",
    .examples = {{"source <(cardan completion bash)", "for this session of bash"},
                 {"cardan completion zsh > ~/.zfunc/_cardan", "for zsh, in a folder of $fpath"}},
    .options = completion_rows,
    .option_count = sizeof completion_rows / sizeof *completion_rows,
    .min_arguments = 1,
    .max_arguments = 1,
    .words = shells,
    .size = sizeof(crdi_common),
    .run = run_completion,
};
