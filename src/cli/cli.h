// The command line: tables of options, and everything that is made from them.
//
// A command is a crdi_command in a file of its own and a line in commands.def. It has a table of
// options and makes a result. The same tables parse the arguments and give the help, the manual
// page, docs/reference/commands.md and the completions of bash and zsh; result.h prints what it
// found.
#pragma once
#include "cardan/coupling.h"
#include "cli/result.h"
#include "shared/base.h"
#include "shared/base_progress.h"
#include "shared/system.h"

#include <pthread.h>
#include <stdio.h>

typedef enum crdi_option_type {
    CRDI_OPT_FLAG,     // bool
    CRDI_OPT_TEXT,     // const char*, NULL: not given
    CRDI_OPT_FILE,     // const char*, likewise; completed as a file name
    CRDI_OPT_NUMBER,   // double, NaN: not given
    CRDI_OPT_QUANTITY, // double in SI, NaN: not given; "10 ms" or a bare number in `unit`
    CRDI_OPT_COUNT,    // int >= 1, 0: "auto", -1: not given
    CRDI_OPT_INT,      // int >= 0, -1: not given
    CRDI_OPT_CHOICE,   // int, index into `choices`, -1: not given
    CRDI_OPT_LIST,     // crdi_list, one text per occurrence
} crdi_option_type;

typedef enum crdi_range { CRDI_ANY, CRDI_POSITIVE, CRDI_NOT_NEGATIVE } crdi_range;

typedef struct crdi_option {
    const char* name;  // without dashes
    const char* alias; // another long name, NULL
    char short_name;   // 0: none
    crdi_option_type type;
    const char* metavar;        // "TIME"; NULL: of a choice its choices, of a file "FILE"
    crdi_range range;           // of numbers; NaN and infinity are never taken
    const char* unit;           // of a quantity
    const char* const* choices; // NULL-terminated; for a text only suggestions
    const char* extensions;     // of a file: "csv|txt", NULL: any
    const char* help;
    double otherwise; // of a number that is not given, 0: see the type
    size_t offset;    // in the command's struct of options
} crdi_option;

// Rows of a table of options: what is said goes into `field` of a struct `object`. Behind the help
// other fields of crdi_option may follow: .short_name = 'o'.
#define OPT_ROW(kind, object, field, word, ...)                                                    \
    {                                                                                              \
        .type = (kind), .offset = offsetof(object, field), .name = (word), .help = __VA_ARGS__     \
    }
#define OPT_FLAG(object, field, word, ...) OPT_ROW(CRDI_OPT_FLAG, object, field, word, __VA_ARGS__)
#define OPT_TEXT(object, field, word, what, ...)                                                   \
    OPT_ROW(CRDI_OPT_TEXT, object, field, word, __VA_ARGS__, .metavar = (what))
#define OPT_FILE(object, field, word, endings, ...)                                                \
    OPT_ROW(CRDI_OPT_FILE, object, field, word, __VA_ARGS__, .extensions = (endings))
#define OPT_NUMBER(object, field, word, what, limits, ...)                                         \
    OPT_ROW(CRDI_OPT_NUMBER, object, field, word, __VA_ARGS__, .metavar = (what), .range = (limits))
#define OPT_QUANTITY(object, field, word, what, si, limits, ...)                                   \
    OPT_ROW(CRDI_OPT_QUANTITY, object, field, word, __VA_ARGS__, .metavar = (what), .unit = (si),  \
            .range = (limits))
#define OPT_TIME(object, field, word, limits, ...)                                                 \
    OPT_QUANTITY(object, field, word, "TIME", "s", limits, __VA_ARGS__)
#define OPT_COUNT(object, field, word, what, ...)                                                  \
    OPT_ROW(CRDI_OPT_COUNT, object, field, word, __VA_ARGS__, .metavar = (what))
#define OPT_INT(object, field, word, what, ...)                                                    \
    OPT_ROW(CRDI_OPT_INT, object, field, word, __VA_ARGS__, .metavar = (what))
#define OPT_CHOICE(object, field, word, list, ...)                                                 \
    OPT_ROW(CRDI_OPT_CHOICE, object, field, word, __VA_ARGS__, .choices = (list))
#define OPT_LIST(object, field, word, what, ...)                                                   \
    OPT_ROW(CRDI_OPT_LIST, object, field, word, __VA_ARGS__, .metavar = (what))

typedef struct crdi_list {
    const char** items; // texts are borrowed from the arguments
    int count;
    size_t capacity;
} crdi_list;

// The structs of options of all commands begin with this.
typedef struct crdi_common {
    bool help, json, quiet;
    bool to_stdout; // an output is "-": what is said goes to standard error
    int log_level;  // crd_level, -1: warnings
    const char* max_unpacked;
    int isolate; // crd_isolation, -1: what the system says
} crdi_common;

#define CRDI_COMMON_DEFAULTS                                                                       \
    {                                                                                              \
        .log_level = -1, .isolate = -1                                                             \
    }
extern const char* const crdi_log_levels[];

// The rows that every command has.
#define CRDI_COMMON_OPTIONS                                                                        \
    OPT_CHOICE(crdi_common, log_level, "log-level", crdi_log_levels,                               \
               "which messages are shown on standard error; warning unless given"),                \
        OPT_FLAG(crdi_common, help, "help", "show this help and end", .short_name = 'h')
// Of those that run systems.
#define CRDI_ISOLATE_OPTION                                                                        \
    OPT_CHOICE(                                                                                    \
        crdi_common, isolate, "isolate", crdi_isolations,                                          \
        "which FMUs run in worker processes, where a crash or a hang cannot spoil the run: "       \
        "none, foreign (those that Cardan did not make) or all; what the system says, else "       \
        "foreign")
#define CRDI_JSON_OPTION(what) OPT_FLAG(crdi_common, json, "json", (what))
// Of those that take long.
#define CRDI_QUIET_OPTION                                                                          \
    OPT_FLAG(crdi_common, quiet, "quiet", "no progress line on the terminal", .short_name = 'q')
// Of commands that open FMUs and SSPs.
#define CRDI_UNPACKED_OPTION                                                                       \
    OPT_TEXT(crdi_common, max_unpacked, "max-unpacked", "BYTES",                                   \
             "what each FMU or SSP may unpack to, as in 8G; CARDAN_MAX_UNPACKED in the "           \
             "environment, else 1G or 20 times its own size")

typedef struct crdi_cli {
    crd_context* ctx;
    bool terminal; // standard error is one
    bool color;
    bool progress_shown; // a progress line stands on the terminal
    struct crdi_progress_part {
        char name[64]; // what is going on, "": nothing
        double first;  // how much of it was done when it was first told
        int64_t begin_ns, shown_ns;
    } part;
    int64_t begin_ns;     // of the command
    pthread_mutex_t lock; // of progress and warnings
    bool collect;         // warnings, for --json
    bool silent;          // errors only on standard error: the rest is in the report of --json
    bool printed;         // the result is on standard output
    bool said;            // the failure is on standard error
    crdi_list warnings;
} crdi_cli;

enum { CRDI_EXAMPLES = 8 }; // of a command at most
typedef struct crdi_example {
    const char* command;
    const char* meaning;
} crdi_example;

typedef struct crdi_command {
    const char* name;      // one word, or two: "dcp slave"
    const char* arguments; // "SYSTEM", "A B", ""
    const char* summary;   // one line without full stop
    const char* description;
    crdi_example examples[CRDI_EXAMPLES]; // up to the first without command
    const crdi_option* options;
    int option_count;
    int min_arguments, max_arguments; // max -1: any number
    const char* const* words;         // what the arguments can be; NULL: files
    const char* extensions;           // of files
    size_t size;                      // of the struct of options
    const void* defaults;             // NULL: nothing is given
    // What it puts into `out` is printed afterwards, also if it fails then.
    crd_status (*run)(crdi_cli* cli, const void* options, const crdi_list* arguments,
                      crdi_result* out);
} crdi_command;

// The table and the struct of options of a command.
#define OPTIONS(rows, object)                                                                      \
    .options = (rows), .option_count = sizeof(rows) / sizeof *(rows), .size = sizeof(object)

#define COMMAND(name) extern const crdi_command crdi_command_##name;
#include "cli/commands.def"
#undef COMMAND
#undef GROUP
#undef RENAMED

// NULL-terminated, in the order of listings.
extern const crdi_command* const crdi_commands[];
// The groups with their commands behind them; ends with a row of nothing.
typedef struct crdi_listed {
    const char *group, *about;   // a group: its name, and what its commands have in common; or
    const crdi_command* command; // one of its commands
} crdi_listed;
extern const crdi_listed crdi_listing[];
const crdi_command* crdi_find_command(const char* name); // NULL
// Commands of two words, "dcp slave", form a group "dcp".
bool crdi_is_group(const char* name);
bool crdi_is_listed_group(const char* name); // one of crdi_listing
// Whether a command belongs to a group: one that is listed, or one of a word.
bool crdi_in_group(const crdi_command* c, const char* group);
// As `words` of a command: the first words of all commands.
extern const char* const crdi_any_command[];

// The whole command; `argv[0]` is the program. Returns the exit code.
int crdi_cli_main(int argc, char** argv);

// ---- options.c
// Puts the defaults into `values` and then what `argv` (without program and command) says.
// CRD_E_RANGE: one sentence about the argument that is wrong. Nothing is freed but lists:
// crdi_options_clear, also after a failure.
crd_status crdi_options_parse(crd_context* ctx, const crdi_command* c, int argc, char* const* argv,
                              void* values, crdi_list* arguments);
void crdi_options_clear(crd_context* ctx, const crdi_command* c, void* values,
                        crdi_list* arguments);
// The output that is "-", NULL.
const crdi_option* crdi_option_to_stdout(const crdi_command* c, const void* values);
// What `values` are if nothing is given.
void crdi_options_defaults(const crdi_command* c, void* values);
crd_status crdi_list_add(crd_context* ctx, crdi_list* list, const char* text); // borrows it
// "FILE", "hold|linear", NULL for a flag. `buffer` serves the choices.
const char* crdi_option_metavar(const crdi_option* o, char* buffer, size_t size);
// The nearest of NULL-terminated words, NULL.
const char* crdi_nearest_word(const char* word, const char* const* words);

// ---- help.c
void crdi_print_overview(FILE* f); // a screen of 24 lines
void crdi_print_help(FILE* f, const crdi_command* c);
void crdi_print_group(FILE* f, const char* group);

// ---- topics.c
// What `cardan help TOPIC` says about more than one command.
typedef struct crdi_topic {
    const char *name, *about;
    const char* text; // of 80 columns
} crdi_topic;
extern const crdi_topic crdi_topics[]; // up to the first without name
const crdi_topic* crdi_find_topic(const char* name);
void crdi_print_topic(FILE* f, const crdi_topic* t); // help.c

// ---- output.c
// "cardan: warning: text" in one write; the progress line makes room for it.
void crdi_message(crdi_cli* cli, crd_level level, const char* text);
void crdi_log_line(void* user, crd_level level, const char* text); // crd_log_sink
void crdi_drop_warnings(crdi_cli* cli);                            // those that were collected
struct crd_last_words;
void crdi_last_words(void* user, const struct crd_last_words* w); // user: crdi_cli or NULL
void crdi_write_all(int fd, const char* text, size_t length);
// The line at the bottom of a terminal, and its end.
void crdi_progress_line(crdi_cli* cli, const char* format, ...) CRD_PRINTF(2, 3);
void crdi_progress_erase(crdi_cli* cli);
void crdi_show_progress(void* user, const char* part, double done, double of,
                        const char* unit); // a crdi_progress_sink, user: crdi_cli

// A table of texts with aligned columns. Memory problems make it fall silent, not fail.
typedef struct crdi_grid {
    crd_arena arena;
    const char** cells; // row by row
    size_t count, capacity;
    int columns;
    uint32_t right; // bit per column: aligned right
} crdi_grid;
void crdi_grid_init(crdi_grid* g, crd_context* ctx, int columns, uint32_t right);
void crdi_grid_add(crdi_grid* g, const char* format, ...) CRD_PRINTF(2, 3);
void crdi_grid_write(const crdi_grid* g, crd_text* out, const char* indent);
void crdi_grid_clear(crdi_grid* g);

// "1.5 ms"; writes at most 32 bytes and returns `out`.
const char* crdi_format_seconds(char out[32], double seconds);
const char* crdi_plural(int64_t n); // "" or "s"

// "status", "exit_code", "error", "warnings": how it ended, and what was said on the way.
void crdi_put_status(crdi_cli* cli, crdi_result* out, crd_status st);
void crdi_print_version(void); // of the program, how it was built, and of this machine
crd_status crdi_stdout_done(crd_context* ctx); // flush; CRD_E_IO if something did not get out

// ---- files.c
typedef enum crdi_file_kind {
    CRDI_FILE_FMU, // archive, folder or modelDescription.xml
    CRDI_FILE_SYSTEM,
    CRDI_FILE_SSP,       // package, .ssd or folder of an unpacked package
    CRDI_FILE_OSP,       // OspSystemStructure.xml, or a folder with one
    CRDI_FILE_RECORDING, // CSV, MF4, MAT
    CRDI_FILE_DCP,       // slave description
    CRDI_FILE_SSV,       // parameter set
    CRDI_FILE_SSM,       // parameter mapping
    CRDI_FILE_CIRCUIT,   // netlist
    CRDI_FILE_PIPE,      // can be read once only: what the command expects
} crdi_file_kind;
// By ending, else by content. CRD_E_NOT_FOUND, CRD_E_IO, CRD_E_UNSUPPORTED with a sentence.
crd_status crdi_file_detect(crd_context* ctx, const char* path, crdi_file_kind* out);
bool crdi_same_file(const char* a, const char* b); // false if one of them does not exist
// CRD_E_RANGE if both are one file: "the results" would overwrite "the netlist". NULL: no input.
crd_status crdi_refuse_overwriting(crd_context* ctx, const char* output, const char* input,
                                   const char* what, const char* of);
// "a/b/name.fmu" -> "name", "." -> the folder's name, "-" -> "system"; in the arena.
const char* crdi_file_stem(crd_arena* a, const char* path);

struct crd_system;
struct crd_table;
// info/check_dcp.c: the description of a DCP slave, by its ending.
bool crdi_is_dcp(const char* path);
// circuit/circuit_load.c: a netlist, by its ending.
bool crdi_is_circuit(const char* path);
// A system description ("-": from standard input), an SSP, or one FMU as a system. `variant` is of
// an SSP, NULL: the default one.
// Their FMUs are isolated as crdi_choose_isolation was told (-1: as they say themselves).
void crdi_choose_isolation(int which);
void crdi_apply_isolation(struct crd_system* s);
crd_status crdi_load_variant(crd_context* ctx, const char* path, const char* variant,
                             struct crd_system** out);
crd_status crdi_load_system(crd_context* ctx, const char* path, struct crd_system** out);
// "FILE.ssv" or "FILE.ssv:FILE.ssm".
crd_status crdi_apply_parameters(struct crd_system* s, const char* text);
#define CRDI_PARAMETERS_OPTION(object, field)                                                      \
    OPT_LIST(object, field, "parameters", "FILE.ssv[:FILE.ssm]",                                   \
             "parameter set (SSV), with a mapping of its names (SSM) if there is one; comes "      \
             "before --set, and of several files the last one counts",                             \
             .extensions = "ssv")
#define CRDI_VARIANT_OPTION(object)                                                                \
    OPT_TEXT(object, variant, "variant", "NAME", "of an SSP: another .ssd file at its root")
#define CRDI_SIGNALS_OPTION(object)                                                                \
    OPT_LIST(object, variables, "variables", "PATTERN", "only signals that fit, with * and ?")
#define CRDI_UNIT_ROW_OPTION(object, field)                                                        \
    OPT_FLAG(object, field, "unit-row", "write the physical units as second line of the CSV")
// "unit.variable=value", or "variable=value" for a single FMU.
crd_status crdi_apply_set(struct crd_system* s, const char* text);
// Stop before start as far as the description says it; the master looks at what units bring in.
crd_status crdi_check_times(const struct crd_system* s);
// Whether a name matches one of the patterns; no patterns: true.
bool crdi_match_any(const crdi_list* patterns, const char* name);
// CRD_E_NOT_FOUND if one of the patterns fits none of `count` names; `what` they are.
crd_status crdi_check_names(crd_context* ctx, const crdi_list* patterns, const char* path,
                            const char* what, const char* (*name)(const void* user, int i),
                            const void* user, int count);
// CRD_E_NOT_FOUND if one of the patterns fits no column of any table.
crd_status crdi_check_patterns(crd_context* ctx, const crdi_list* patterns,
                               struct crd_table* const* tables, int count);

// ---- element.c
struct crd_element;
// A coupling element: a word such as eros, a YAML or JSON file, or inline YAML in braces.
crd_status crdi_load_element(crd_context* ctx, const char* text, struct crd_element** out);
// An element that has a name and a macro step as an FMU of version 2 or 3. `label` is what messages
// call it. export/export_coupling.c
crd_status crdi_write_coupling_fmu(crd_context* ctx, const struct crd_element* e, int version,
                                   const char* platforms, const char* label, const char* path);

// ---- recorded.c
// The rows of a command whose struct of options has `signal`, `step`, `from` and `to`.
#define CRDI_RECORDED_OPTIONS(object)                                                              \
    OPT_TEXT(object, signal, "signal", "NAME",                                                     \
             "signal of the recording; may be left out if there is only one"),                     \
        OPT_TIME(object, step, "step", CRDI_POSITIVE,                                              \
                 "macro step; the raster of the recording unless given"),                          \
        OPT_TIME(object, from, "from", CRDI_ANY,                                                   \
                 "where the stretch of the recording that is used begins"),                        \
        OPT_TIME(object, to, "to", CRDI_ANY, "where it ends")
// A signal of a recording on the grid of the macro steps, for analysis, design, compensate, learn.
typedef struct crdi_recorded_options {
    const char* signal; // NULL: the only one
    double step;        // s, NaN: the recording's own raster
    double from, to;    // s, NaN: all
} crdi_recorded_options;
typedef struct crdi_recorded {
    crd_context* ctx;
    char *name, *unit;
    double start, step; // s
    int64_t count;
    double* y;               // (count) by the lines between rows; NaN in a gap
    int64_t missing;         // how many of them are NaN
    double gap_from, gap_to; // of the first gap
    double raster;           // s between two rows of the recording, mostly
} crdi_recorded;
crd_status crdi_recorded_load(crd_context* ctx, const char* path, const crdi_recorded_options* o,
                              crdi_recorded* out);
void crdi_recorded_clear(crdi_recorded* r);
// CRD_E_RANGE that names the first gap if there is one.
crd_status crdi_recorded_without_gaps(const crdi_recorded* r, const char* path);

/// What was wrong with the values of commands that elements were told, "": nothing.
const char* crdi_commands_trouble(crdi_result* out, const crd_coupling_commands* s);

// ---- run/input.c
// --input and the options that go with it.
typedef struct crdi_input {
    const char* path; // NULL: none
    double offset;    // s, NaN: none
    bool repeat;
    crdi_list hold, linear; // patterns of columns
    crdi_list units;        // "PATTERN=UNIT"
    crdi_list map;          // "COLUMN=INPUT"
} crdi_input;

// The rows of a command whose struct of options has a crdi_input at `field`.
#define CRDI_INPUT_OPTIONS(object, field)                                                          \
    OPT_FILE(object, field.path, "input", "csv|mf4|mat",                                           \
             "recording whose columns drive the free inputs and tunable parameters of the same "   \
             "names (unit.variable in a system): CSV, MF4 or MAT; continuous inputs follow the "   \
             "lines between its rows, "                                                            \
             "others keep the last value",                                                         \
             .alias = "input-file"),                                                               \
        OPT_LIST(object, field.map, "input-map", "COLUMN=INPUT",                                   \
                 "a column of the recording drives an input that has another name"),               \
        OPT_LIST(object, field.units, "input-unit", "COLUMN=UNIT",                                 \
                 "physical unit of a column that does not say it: speed=km/h"),                    \
        OPT_LIST(object, field.hold, "input-hold", "COLUMN",                                       \
                 "columns whose value stays until the next row; * and ? fit several"),             \
        OPT_LIST(object, field.linear, "input-linear", "COLUMN",                                   \
                 "columns that go in straight lines from row to row"),                             \
        OPT_TIME(object, field.offset, "input-offset", CRDI_ANY,                                   \
                 "is added to the times of the recording"),                                        \
        OPT_FLAG(object, field.repeat, "input-repeat", "begin the recording again when it ends")

// Adds the recording to the system and connects its columns to inputs. Does nothing if nothing is
// given; the others without a path are CRD_E_RANGE.
crd_status crdi_connect_input(struct crd_system* s, const crdi_input* in);
