// The command line: tables of options, and everything that is made from them.
//
// A command is one table row with a table of options. The same tables parse the arguments and give
// the help, the manual page, docs/commands.md and the completions of bash and zsh.
#pragma once
#include "shared/base.h"

#include <jansson.h>
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
    const char* metavar;        // "TIME"; of a choice NULL: its choices
    crdi_range range;           // of numbers; NaN and infinity are never taken
    const char* unit;           // of a quantity
    const char* const* choices; // NULL-terminated; for a text only suggestions
    const char* extensions;     // of a file: "csv|txt", NULL: any
    const char* help;
    size_t offset; // in the command's struct of options
} crdi_option;

typedef struct crdi_list {
    const char** items; // texts are borrowed from the arguments
    int count;
    size_t capacity;
} crdi_list;

// The structs of options of all commands begin with this.
typedef struct crdi_common {
    bool help, json, quiet;
    int log_level; // crd_level, -1: warnings
} crdi_common;

#define CRDI_COMMON_DEFAULTS                                                                       \
    {                                                                                              \
        .log_level = -1                                                                            \
    }
extern const char* const crdi_log_levels[];

// The rows that every command has.
#define CRDI_COMMON_OPTIONS                                                                        \
    {.name = "log-level",                                                                          \
     .type = CRDI_OPT_CHOICE,                                                                      \
     .choices = crdi_log_levels,                                                                   \
     .offset = offsetof(crdi_common, log_level),                                                   \
     .help = "which messages are shown on standard error; warning unless given"},                  \
    {                                                                                              \
        .name = "help", .short_name = 'h', .type = CRDI_OPT_FLAG,                                  \
        .offset = offsetof(crdi_common, help), .help = "show this help and end"                    \
    }
#define CRDI_JSON_OPTION(what)                                                                     \
    {                                                                                              \
        .name = "json", .type = CRDI_OPT_FLAG, .offset = offsetof(crdi_common, json),              \
        .help = (what)                                                                             \
    }

typedef struct crdi_cli {
    crd_context* ctx;
    bool terminal; // standard error is one
    bool color;
    bool progress_shown;  // a progress line stands on the terminal
    pthread_mutex_t lock; // of the two below
    json_t* warnings;     // collected for --json, else NULL
} crdi_cli;

enum { CRDI_EXAMPLES = 7 }; // of a command at most
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
    const void* defaults;             // its defaults
    crd_status (*run)(crdi_cli* cli, const void* options, const crdi_list* arguments);
} crdi_command;

extern const crdi_command crdi_command_run, crdi_command_check, crdi_command_info,
    crdi_command_compare, crdi_command_plot, crdi_command_report, crdi_command_export,
    crdi_command_analyze, crdi_command_design, crdi_command_compensate, crdi_command_link,
    crdi_command_learn, crdi_command_reproduce, crdi_command_completion, crdi_command_man,
    crdi_command_help;
extern const crdi_command crdi_command_circuit;
extern const crdi_command crdi_command_replay;
extern const crdi_command crdi_command_twin_check, crdi_command_twin_place, crdi_command_twin_tune,
    crdi_command_twin_run;
extern const crdi_command crdi_command_dcp_key;
extern const crdi_command crdi_command_doctor;
extern const crdi_command crdi_command_bench_em, crdi_command_bench_ice,
    crdi_command_bench_back_to_back;
extern const crdi_command crdi_command_bench_session;
extern const crdi_command crdi_command_bench_experiment;
extern const crdi_command crdi_command_dcp_scan, crdi_command_dcp_link, crdi_command_dcp_conform;
extern const crdi_command crdi_command_dcp_emulate, crdi_command_dcp_log;
extern const crdi_command crdi_command_dcp_slave, crdi_command_dcp_describe;

// NULL-terminated, in the order of listings.
extern const crdi_command* const crdi_commands[];
const crdi_command* crdi_find_command(const char* name); // NULL
// Commands of two words, "dcp slave", form a group "dcp".
bool crdi_is_group(const char* name);

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
// "FILE", "hold|linear", NULL for a flag. `buffer` serves the choices.
const char* crdi_option_metavar(const crdi_option* o, char* buffer, size_t size);
// The nearest of NULL-terminated words, NULL.
const char* crdi_nearest_word(const char* word, const char* const* words);

// ---- help.c, completion.c
void crdi_print_overview(FILE* f);
void crdi_print_help(FILE* f, const crdi_command* c);
void crdi_print_group(FILE* f, const char* group);
void crdi_print_man(FILE* f);
void crdi_print_markdown(FILE* f);
void crdi_print_bash(FILE* f);
void crdi_print_zsh(FILE* f);

// ---- output.c
// "cardan: warning: text" in one write; the progress line makes room for it.
void crdi_message(crdi_cli* cli, crd_level level, const char* text);
void crdi_log_line(void* cli, crd_level level, const char* text); // crd_log_sink
void crdi_write_all(int fd, const char* text, size_t length);
// On a terminal, once it has taken a second: how far it is. `done` < 0 takes the line away.
void crdi_show_progress(crdi_cli* cli, int64_t begin_ns, int done, int of, const char* what);

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
// With `digits` behind the point and a sign if something stands behind it; "-" if not finite.
void crdi_grid_add_fixed(crdi_grid* g, double x, int digits, const char* behind);
void crdi_grid_print(const crdi_grid* g, FILE* f, const char* indent);
void crdi_grid_clear(crdi_grid* g);

// "1.5 ms"; writes at most 32 bytes and returns `out`.
const char* crdi_format_seconds(char out[32], double seconds);
const char* crdi_plural(int64_t n); // "" or "s"

json_t* crdi_json_number(double x);       // null unless finite
json_t* crdi_json_text(const char* text); // text that may not be UTF-8; null for NULL
crd_status crdi_json_print(crdi_cli* cli, json_t* root); // to standard output; takes `root`
crd_status crdi_stdout_done(crd_context* ctx); // flush; CRD_E_IO if something did not get out

// ---- files.c
typedef enum crdi_file_kind {
    CRDI_FILE_FMU, // archive, folder or modelDescription.xml
    CRDI_FILE_SYSTEM,
    CRDI_FILE_SSP,       // package, .ssd or folder of an unpacked package
    CRDI_FILE_RECORDING, // CSV, MF4, MAT
    CRDI_FILE_DCP,       // slave description
    CRDI_FILE_SSV,       // parameter set
    CRDI_FILE_SSM,       // parameter mapping
    CRDI_FILE_CIRCUIT,   // netlist
    CRDI_FILE_PIPE,      // can be read once only: what the command expects
} crdi_file_kind;
// By ending, else by content. CRD_E_NOT_FOUND, CRD_E_IO, CRD_E_UNSUPPORTED with a sentence.
crd_status crdi_file_detect(crd_context* ctx, const char* path, crdi_file_kind* out);
bool crdi_is_archive(const char* path);            // it begins as a zip archive does
bool crdi_same_file(const char* a, const char* b); // false if one of them does not exist
// "a/b/name.fmu" -> "name", "." -> the folder's name, "-" -> "system"; in the arena.
const char* crdi_file_stem(crd_arena* a, const char* path);

struct crd_system;
struct crd_table;
// check_dcp.c: the description of a DCP slave, by its ending.
bool crdi_is_dcp(const char* path);
crd_status crdi_check_dcp(crdi_cli* cli, const char* path, bool json);
// An .xml with DcpOverCan in it.
bool crdi_is_can(const char* path);
crd_status crdi_check_can(crdi_cli* cli, const char* path, bool json);
// circuit_load.c, circuit_structure.c: a netlist, by its ending.
bool crdi_is_circuit(const char* path);
crd_status crdi_check_circuit(crdi_cli* cli, const char* path, bool json);
// A system description ("-": from standard input), an SSP, or one FMU as a system. `variant` is of
// an SSP, NULL: the default one.
crd_status crdi_load_variant(crd_context* ctx, const char* path, const char* variant,
                             struct crd_system** out);
crd_status crdi_load_system(crd_context* ctx, const char* path, struct crd_system** out);
// "FILE.ssv" or "FILE.ssv:FILE.ssm".
crd_status crdi_apply_parameters(struct crd_system* s, const char* text);
#define CRDI_PARAMETERS_OPTION(object, field)                                                      \
    {                                                                                              \
        .name = "parameters", .type = CRDI_OPT_LIST, .metavar = "FILE.ssv[:FILE.ssm]",             \
        .extensions = "ssv", .offset = offsetof(object, field),                                    \
        .help = "parameter set (SSV), with a mapping of its names (SSM) if there is one; comes "   \
                "before --set, and of several files the last one counts"                           \
    }
// "unit.variable=value", or "variable=value" for a single FMU.
crd_status crdi_apply_set(struct crd_system* s, const char* text);
// Stop before start as far as the description says it; the master looks at what units bring in.
crd_status crdi_check_times(const struct crd_system* s);
// Whether a name matches one of the patterns; no patterns: true.
bool crdi_match_any(const crdi_list* patterns, const char* name);
// CRD_E_NOT_FOUND if one of the patterns fits no column of any table.
crd_status crdi_check_patterns(crd_context* ctx, const crdi_list* patterns,
                               struct crd_table* const* tables, int count);

// ---- element.c
struct crd_element;
// A coupling element: a word such as eros, a YAML or JSON file, or inline YAML in braces.
crd_status crdi_load_element(crd_context* ctx, const char* text, struct crd_element** out);
// An element that has a name and a macro step as an FMU of version 2 or 3. `label` is what messages
// call it. export_coupling.c
crd_status crdi_write_coupling_fmu(crd_context* ctx, const struct crd_element* e, int version,
                                   const char* label, const char* path);

// ---- quality.c
struct crd_master_report;
// A title of at most eight characters, then words in lines that fit a terminal.
void crdi_print_wrapped(FILE* f, const char* title, const char* text);
void crdi_print_step_quality(const struct crd_master_report* r, FILE* f); // control, iteration
void crdi_print_quality(crd_context* ctx, const struct crd_master_report* r, FILE* f);
void crdi_quality_to_json(const struct crd_master_report* r, json_t* j);
// CRD_E_LIMIT with the worst connection or bond; NaN: no limit.
crd_status crdi_check_limits(crd_context* ctx, const struct crd_master_report* r, double max_defect,
                             double max_energy);

// ---- recorded.c
// The rows of a command whose struct of options has `signal`, `step`, `from` and `to`.
#define CRDI_RECORDED_OPTIONS(object)                                                              \
    {.name = "signal",                                                                             \
     .type = CRDI_OPT_TEXT,                                                                        \
     .metavar = "NAME",                                                                            \
     .offset = offsetof(object, signal),                                                           \
     .help = "signal of the recording; may be left out if there is only one"},                     \
        {.name = "step",                                                                           \
         .type = CRDI_OPT_QUANTITY,                                                                \
         .metavar = "TIME",                                                                        \
         .unit = "s",                                                                              \
         .range = CRDI_POSITIVE,                                                                   \
         .offset = offsetof(object, step),                                                         \
         .help = "macro step; the raster of the recording unless given"},                          \
        {.name = "from",                                                                           \
         .type = CRDI_OPT_QUANTITY,                                                                \
         .metavar = "TIME",                                                                        \
         .unit = "s",                                                                              \
         .offset = offsetof(object, from),                                                         \
         .help = "where the stretch of the recording that is used begins"},                        \
    {                                                                                              \
        .name = "to", .type = CRDI_OPT_QUANTITY, .metavar = "TIME", .unit = "s",                   \
        .offset = offsetof(object, to), .help = "where it ends"                                    \
    }
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

// ---- input.c
// --input and the options that go with it.
typedef struct crdi_input {
    const char* path; // NULL: none
    double offset;    // s, NaN: none
    bool repeat;
    crdi_list hold, linear; // patterns of columns
    crdi_list units;        // "PATTERN=UNIT"
    crdi_list map;          // "COLUMN=INPUT"
} crdi_input;

#define CRDI_INPUT_DEFAULTS                                                                        \
    {                                                                                              \
        .offset = NAN                                                                              \
    }
// The rows of a command whose struct of options has a crdi_input at `field`.
#define CRDI_INPUT_OPTIONS(object, field)                                                          \
    {.name = "input",                                                                              \
     .alias = "input-file",                                                                        \
     .type = CRDI_OPT_FILE,                                                                        \
     .metavar = "FILE",                                                                            \
     .extensions = "csv|mf4|mat",                                                                  \
     .offset = offsetof(object, field.path),                                                       \
     .help = "recording whose columns drive the free inputs of the same names (unit.variable in "  \
             "a system): CSV, MF4 or MAT; continuous inputs follow the lines between its rows, "   \
             "others keep the last value"},                                                        \
        {.name = "input-map",                                                                      \
         .type = CRDI_OPT_LIST,                                                                    \
         .metavar = "COLUMN=INPUT",                                                                \
         .offset = offsetof(object, field.map),                                                    \
         .help = "a column of the recording drives an input that has another name"},               \
        {.name = "input-unit",                                                                     \
         .type = CRDI_OPT_LIST,                                                                    \
         .metavar = "COLUMN=UNIT",                                                                 \
         .offset = offsetof(object, field.units),                                                  \
         .help = "physical unit of a column that does not say it: speed=km/h"},                    \
        {.name = "input-hold",                                                                     \
         .type = CRDI_OPT_LIST,                                                                    \
         .metavar = "COLUMN",                                                                      \
         .offset = offsetof(object, field.hold),                                                   \
         .help = "columns whose value stays until the next row; * and ? fit several"},             \
        {.name = "input-linear",                                                                   \
         .type = CRDI_OPT_LIST,                                                                    \
         .metavar = "COLUMN",                                                                      \
         .offset = offsetof(object, field.linear),                                                 \
         .help = "columns that go in straight lines from row to row"},                             \
        {.name = "input-offset",                                                                   \
         .type = CRDI_OPT_QUANTITY,                                                                \
         .metavar = "TIME",                                                                        \
         .unit = "s",                                                                              \
         .offset = offsetof(object, field.offset),                                                 \
         .help = "is added to the times of the recording"},                                        \
    {                                                                                              \
        .name = "input-repeat", .type = CRDI_OPT_FLAG, .offset = offsetof(object, field.repeat),   \
        .help = "begin the recording again when it ends"                                           \
    }

// Adds the recording to the system and connects its columns to inputs. Does nothing if nothing is
// given; the others without a path are CRD_E_RANGE.
crd_status crdi_connect_input(struct crd_system* s, const crdi_input* in);
