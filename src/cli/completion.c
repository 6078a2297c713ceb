// Completions of bash, zsh and fish. The scripts are small: they hand the words of the line to
// `cardan completion words` and offer what it prints, from the tables of options and from the files
// that stand on the line.
//
// Its first line is "words", "words-open" (no blank behind them) or "files" with the endings that
// fit; below it are words with a tab and what they mean.
#include "cardan/fmi.h"
#include "cardan/results.h"
#include "cardan/unit.h"
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 8 }; // of the line that are looked into

typedef struct line {
    crd_context* ctx;
    const crdi_command* command;
    const char* files[MAX_FILES]; // arguments so far
    int file_count;
    const char* typed; // what is being completed
} line;

static void offer(const char* typed, const char* word, size_t length, const char* meaning)
{
    if (strncmp(word, typed, strlen(typed)) != 0) { return; }
    printf("%.*s\t%.*s\n", (int)length, word, (int)strcspn(meaning, "\n\t"), meaning);
}

static void offer_words(const char* typed, const char* const* words)
{
    puts("words");
    for (int i = 0; words[i]; i++) {
        offer(typed, words[i], strlen(words[i]), "");
    }
}

// ---- commands ----------------------------------------------------------------------------------

// The first words of all commands, each once; with what else `cardan help` knows.
static void offer_commands(const char* typed, bool topics)
{
    puts("words");
    const char* last = "";
    for (int i = 0; crdi_commands[i]; i++) {
        const char* name = crdi_commands[i]->name;
        const size_t n = strcspn(name, " ");
        if (strncmp(name, last, n) == 0 && (last[n] == ' ' || !last[n])) { continue; }
        char group[32];
        snprintf(group, sizeof group, "%.*s", (int)n, name);
        const crdi_topic* topic = name[n] ? crdi_find_topic(group) : NULL;
        offer(typed, name, n,
              !name[n] ? crdi_commands[i]->summary
              : topic  ? topic->about
                       : "a group of commands");
        last = name;
    }
    for (int i = 0; topics && crdi_topics[i].name; i++) {
        if (crdi_is_group(crdi_topics[i].name)) { continue; }
        offer(typed, crdi_topics[i].name, strlen(crdi_topics[i].name), crdi_topics[i].about);
    }
}

static void offer_members(const char* typed, const char* group)
{
    puts("words");
    const size_t n = strlen(group);
    for (int i = 0; crdi_commands[i]; i++) {
        const char* name = crdi_commands[i]->name;
        if (strncmp(name, group, n) != 0 || name[n] != ' ') { continue; }
        offer(typed, name + n + 1, strlen(name + n + 1), crdi_commands[i]->summary);
    }
}

// ---- names out of files: nothing of an FMU but its description is read -------------------------

typedef enum names { NAMES_NONE, NAMES_SIGNALS, NAMES_VALUES, NAMES_UNITS } names;

static names names_of(const crdi_option* o)
{
    static const struct {
        const char* option;
        names what;
    } table[] = {
        {"set", NAMES_VALUES},      {"variables", NAMES_SIGNALS},     {"signal", NAMES_SIGNALS},
        {"signals", NAMES_SIGNALS}, {"command", NAMES_SIGNALS},       {"plot", NAMES_SIGNALS},
        {"panel", NAMES_SIGNALS},   {"pair", NAMES_SIGNALS},          {"x", NAMES_SIGNALS},
        {"play", NAMES_UNITS},      {"stream-signals", NAMES_SIGNALS}};
    for (size_t i = 0; o->type >= CRDI_OPT_TEXT && i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].option, o->name) == 0) { return table[i].what; }
    }
    return NAMES_NONE;
}

// unit.name=, as far as it fits; of "a,b" the last is being completed.
static void offer_name(const line* l, names what, const char* unit, const char* name,
                       const char* meaning)
{
    char word[1024];
    const char* comma = strrchr(l->typed, ',');
    const int before = comma ? (int)(comma + 1 - l->typed) : 0;
    const int n = snprintf(word, sizeof word, "%.*s%s%s%s%s", before, l->typed, unit,
                           *unit && *name ? "." : "", name, what == NAMES_VALUES ? "=" : "");
    if (n > 0 && (size_t)n < sizeof word) { offer(l->typed, word, (size_t)n, meaning); }
}

static void offer_variables(const line* l, names what, const char* unit, const crd_variable* v,
                            int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const bool settable = v[i].causality == CRD_PARAMETER || v[i].causality == CRD_INPUT;
        if (what != NAMES_VALUES || settable) {
            offer_name(l, what, unit, v[i].name, v[i].description ? v[i].description : "");
        }
    }
}

static void offer_fmu(const line* l, names what, const char* unit, const char* path)
{
    crd_fmu_options opt = crd_fmu_defaults();
    opt.description_only = true;
    crd_fmu* f = NULL;
    if (crd_fmu_open(l->ctx, path, &opt, &f) < 0) { return; }
    const crd_fmu_description* d = crd_fmu_describe(f);
    offer_variables(l, what, unit, d->variables, d->variable_count);
    crd_fmu_close(f);
}

static void offer_recording(const line* l, names what, const char* path)
{
    crd_recording* r = NULL;
    if (what == NAMES_VALUES || crd_recording_open(l->ctx, path, &r) < 0) { return; }
    const crd_recording_info* info = crd_recording_describe(r);
    for (int i = 0; i < info->signal_count; i++) {
        offer_name(l, what, "", info->signals[i].name, info->signals[i].unit);
    }
    crd_recording_close(r);
}

static void offer_unit(const line* l, names what, const crd_unit_spec* spec)
{
    crd_unit* u = NULL;
    if (what == NAMES_UNITS) {
        offer_name(l, what, spec->name, "", "");
    } else if (spec->source == CRD_UNIT_FMU) {
        offer_fmu(l, what, spec->name, spec->path);
    } else if (spec->source == CRD_UNIT_SIGNAL || spec->source == CRD_UNIT_REPLAY ||
               spec->source == CRD_UNIT_CIRCUIT) { // nobody is asked over a network
        if (crd_unit_create(l->ctx, spec, &u) < 0) { return; }
        offer_variables(l, what, spec->name, u->info.variables, u->info.variable_count);
        crd_unit_destroy(u);
    }
}

static void offer_names(const line* l, names what)
{
    puts(what == NAMES_VALUES ? "words-open" : "words");
    for (int i = 0; i < l->file_count; i++) {
        crdi_file_kind kind;
        crd_system* s = NULL;
        if (crdi_file_detect(l->ctx, l->files[i], &kind) < 0) { continue; }
        if (kind == CRDI_FILE_FMU) {
            offer_fmu(l, what, "", l->files[i]);
        } else if (kind == CRDI_FILE_RECORDING) {
            offer_recording(l, what, l->files[i]);
        } else if ((kind == CRDI_FILE_SYSTEM || kind == CRDI_FILE_SSP || kind == CRDI_FILE_OSP) &&
                   crdi_load_system(l->ctx, l->files[i], &s) >= 0) {
            for (int k = 0; k < s->unit_count; k++) {
                offer_unit(l, what, &s->units[k]);
            }
            crd_system_destroy(s);
        }
    }
}

// ---- options and arguments ---------------------------------------------------------------------

// "--name", "--name=..." or "-n".
static const crdi_option* find_option(const crdi_command* c, const char* word)
{
    const size_t n = strcspn(word, "=");
    for (int i = 0; i < c->option_count; i++) {
        const crdi_option* o = &c->options[i];
        const char* spellings[] = {o->name, o->alias};
        for (int k = 0; k < 2 && strncmp(word, "--", 2) == 0; k++) {
            if (spellings[k] && strlen(spellings[k]) == n - 2 &&
                strncmp(spellings[k], word + 2, n - 2) == 0) {
                return o;
            }
        }
        if (o->short_name && word[1] == o->short_name && !word[2]) { return o; }
    }
    return NULL;
}

static void offer_files(const char* endings)
{
    printf("files %s\n", endings ? endings : "");
}

static void offer_values(const line* l, const crdi_option* o)
{
    static const char* const automatic[] = {"auto", NULL};
    if (o->choices) {
        offer_words(l->typed, o->choices);
    } else if (names_of(o)) {
        offer_names(l, names_of(o));
    } else if (o->type == CRDI_OPT_FILE || o->extensions) {
        offer_files(o->extensions);
    } else if (o->type == CRDI_OPT_COUNT) {
        offer_words(l->typed, automatic);
    } else {
        puts("words");
    }
}

static void offer_options(const line* l)
{
    puts("words");
    for (int i = 0; i < l->command->option_count; i++) {
        const crdi_option* o = &l->command->options[i];
        char word[64];
        const int n = snprintf(word, sizeof word, "--%s", o->name);
        offer(l->typed, word, (size_t)n, o->help);
        if (!o->short_name) { continue; }
        snprintf(word, sizeof word, "-%c", o->short_name);
        offer(l->typed, word, 2, o->help);
    }
}

// Walks over the finished words; the option whose value is being completed, or NULL.
static const crdi_option* read_line(line* l, const char* const* words, int count)
{
    for (int i = 0; i < count; i++) {
        if (words[i][0] == '-' && words[i][1]) {
            const crdi_option* o = find_option(l->command, words[i]);
            if (!o || o->type == CRDI_OPT_FLAG || strchr(words[i], '=')) { continue; }
            if (++i == count) { return o; }
        } else if (l->file_count < MAX_FILES) {
            l->files[l->file_count++] = words[i];
        }
    }
    return NULL;
}

static void complete(crd_context* ctx, const char* const* words, int count)
{
    line l = {.ctx = ctx, .typed = words[count - 1]};
    if (count == 1) {
        offer_commands(l.typed, false);
        offer(l.typed, "--help", 6, "show the help");
        offer(l.typed, "--version", 9, "show the version");
        return;
    }
    int used = 1;
    l.command = crdi_find_command(words[0]);
    if (!l.command && crdi_is_group(words[0])) {
        if (count == 2) {
            offer_members(l.typed, words[0]);
            return;
        }
        char name[128];
        snprintf(name, sizeof name, "%s %s", words[0], words[1]);
        l.command = crdi_find_command(name);
        used = 2;
    }
    if (!l.command) { return; }
    const crdi_option* o = read_line(&l, words + used, count - 1 - used);
    const char* equals = strncmp(l.typed, "--", 2) == 0 ? strchr(l.typed, '=') : NULL;
    if (!o && equals) {
        o = find_option(l.command, l.typed);
        l.typed = equals + 1;
    }
    if (o) {
        offer_values(&l, o);
    } else if (l.typed[0] == '-') {
        offer_options(&l);
    } else if (l.command->words == crdi_any_command) {
        if (l.file_count == 0) {
            offer_commands(l.typed, true);
        } else if (l.file_count == 1 && crdi_is_group(l.files[0])) {
            offer_members(l.typed, l.files[0]);
        }
    } else if (l.command->words && l.file_count == 0) {
        offer_words(l.typed, l.command->words);
    } else {
        offer_files(l.command->extensions);
    }
}

// ---- the scripts -------------------------------------------------------------------------------

static const char bash_script[] =
    "# bash completion of cardan\n"
    "_cardan() {\n"
    "    local words=() answer word file endings i IFS=$'\\n' cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do # bash takes --name=value apart at the sign\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((i > 1)) && [[ $word == = || ${COMP_WORDS[i-1]} == = ]]; then\n"
    "            words[-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "    done\n"
    "    [[ $cur == = ]] && cur=\n"
    "    COMPREPLY=()\n"
    "    mapfile -t answer < <(\"${COMP_WORDS[0]}\" completion words -- \"${words[@]}\" "
    "2>/dev/null)\n"
    "    case ${answer[0]} in\n"
    "    words*)\n"
    "        [[ ${answer[0]} == words-open ]] && compopt -o nospace 2>/dev/null\n"
    "        for word in \"${answer[@]:1}\"; do\n"
    "            COMPREPLY+=(\"${word%%$'\\t'*}\")\n"
    "        done ;;\n"
    "    files*)\n"
    "        endings=${answer[0]#files }\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        COMPREPLY=($(compgen -d -- \"$cur\"))\n"
    "        for file in $(compgen -f -- \"$cur\"); do\n"
    "            [[ -d $file ]] && continue\n"
    "            [[ -z $endings || $file =~ \\.($endings)$ ]] && COMPREPLY+=(\"$file\")\n"
    "        done ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _cardan cardan\n";

static const char zsh_script[] =
    "#compdef cardan\n"
    "_cardan() {\n"
    "    local -a answer shown\n"
    "    local row word\n"
    "    answer=(\"${(@f)$($words[1] completion words -- \"${(@Q)words[2,CURRENT]}\" "
    "2>/dev/null)}\")\n"
    "    [[ $PREFIX == --*=* ]] && compset -P '*='\n"
    "    case $answer[1] in\n"
    "    files*)\n"
    "        local endings=${answer[1]#files }\n"
    "        if [[ -n $endings ]]; then _files -g \"*.($endings)(-.)\"; else _files; fi ;;\n"
    "    words*)\n"
    "        for row in \"${(@)answer[2,-1]}\"; do\n"
    "            word=${row%%$'\\t'*}\n"
    "            shown+=(\"${word//:/\\\\:}:${row#*$'\\t'}\")\n"
    "        done\n"
    "        if [[ $answer[1] == words-open ]]; then\n"
    "            _describe cardan shown -S ''\n"
    "        else\n"
    "            _describe cardan shown\n"
    "        fi ;;\n"
    "    esac\n"
    "}\n"
    "if [[ $funcstack[1] == _cardan ]]; then\n"
    "    _cardan \"$@\"\n"
    "else\n"
    "    compdef _cardan cardan\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion of cardan\n"
    "function __cardan_complete\n"
    "    set -l line (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    test -z \"$current\"; and set current ''\n"
    "    set -l option (string match -r -- '^--[^=]*=' $current)\n"
    "    set -l answer ($line[1] completion words -- $line[2..-1] $current 2>/dev/null)\n"
    "    switch \"$answer[1]\"\n"
    "        case 'files*'\n"
    "            set -l endings (string replace -r '^files ' '' -- $answer[1])\n"
    "            set -l part (string replace -r -- '^--[^=]*=' '' $current)\n"
    "            for file in $part*\n"
    "                if test -d $file\n"
    "                    echo \"$option\"$file/\n"
    "                else if test -z \"$endings\"; or string match -qr \"\\.($endings)\\$\" -- "
    "$file\n"
    "                    echo \"$option\"$file\n"
    "                end\n"
    "            end\n"
    "        case 'words*'\n"
    "            for row in $answer[2..-1]\n"
    "                echo \"$option\"$row\n"
    "            end\n"
    "    end\n"
    "end\n"
    "complete -c cardan -f -a '(__cardan_complete)'\n";

static const char* const shells[] = {"bash", "zsh", "fish", NULL};
static const char* const scripts[] = {bash_script, zsh_script, fish_script};

static crd_status run_completion(crdi_cli* cli, const void* options, const crdi_list* arguments,
                                 crdi_result* out)
{
    (void)out;
    (void)options;
    const char* shell = arguments->items[0];
    if (strcmp(shell, "words") == 0) {
        if (arguments->count > 1) {
            complete(cli->ctx, arguments->items + 1, arguments->count - 1);
        }
        return crdi_stdout_done(cli->ctx);
    }
    if (arguments->count > 1) {
        return crdi_fail(cli->ctx, CRD_E_RANGE, "completion: unexpected argument '%s'",
                         arguments->items[1]);
    }
    for (int i = 0; shells[i]; i++) {
        if (strcmp(shell, shells[i]) != 0) { continue; }
        fputs(scripts[i], stdout);
        return crdi_stdout_done(cli->ctx);
    }
    return crdi_fail(cli->ctx, CRD_E_RANGE, "completion: '%s', expected bash, zsh or fish", shell);
}

static const crdi_option completion_rows[] = {CRDI_COMMON_OPTIONS};
const crdi_command crdi_command_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "print the completion script of a shell",
    .description =
        "Prints a script that lets the shell complete commands, options, files, and the names of "
        "units and variables in the files on the line. The script asks 'cardan completion words' "
        "for them, which reads descriptions and runs no code of an FMU.",
    .examples = {{"source <(cardan completion bash)", "for this session of bash"},
                 {"cardan completion zsh > ~/.zfunc/_cardan", "for zsh, in a folder of $fpath"},
                 {"cardan completion fish > ~/.config/fish/completions/cardan.fish", "for fish"}},
    .options = completion_rows,
    .option_count = sizeof completion_rows / sizeof *completion_rows,
    .min_arguments = 1,
    .max_arguments = -1,
    .words = shells,
    .size = sizeof(crdi_common),
    .run = run_completion,
};
