// The tables of options: what they parse, and what they refuse in which words.
#include "check.h"
#include "cli/cli.h"

typedef struct values {
    crdi_common common;
    double time, factor;
    const char *text, *file;
    int choice, count, number;
    crdi_list list;
    bool flag;
} values;

static const char* const colors[] = {"red", "green", NULL};
static const crdi_option rows[] = {
    {.name = "stop-time",
     .alias = "end",
     .type = CRDI_OPT_QUANTITY,
     .metavar = "TIME",
     .unit = "s",
     .range = CRDI_NOT_NEGATIVE,
     .offset = offsetof(values, time),
     .help = "x"},
    {.name = "factor",
     .type = CRDI_OPT_NUMBER,
     .range = CRDI_POSITIVE,
     .offset = offsetof(values, factor),
     .help = "x"},
    {.name = "text", .type = CRDI_OPT_TEXT, .offset = offsetof(values, text), .help = "x"},
    {.name = "output",
     .short_name = 'o',
     .type = CRDI_OPT_FILE,
     .metavar = "FILE",
     .offset = offsetof(values, file),
     .help = "x"},
    {.name = "color",
     .type = CRDI_OPT_CHOICE,
     .choices = colors,
     .offset = offsetof(values, choice),
     .help = "x"},
    {.name = "threads", .type = CRDI_OPT_COUNT, .offset = offsetof(values, count), .help = "x"},
    {.name = "seed", .type = CRDI_OPT_INT, .offset = offsetof(values, number), .help = "x"},
    {.name = "set",
     .short_name = 's',
     .type = CRDI_OPT_LIST,
     .offset = offsetof(values, list),
     .help = "x"},
    {.name = "flag",
     .short_name = 'f',
     .type = CRDI_OPT_FLAG,
     .offset = offsetof(values, flag),
     .help = "x"},
    CRDI_COMMON_OPTIONS,
};
static const crdi_command command = {.name = "try",
                                     .arguments = "FILE",
                                     .options = rows,
                                     .option_count = sizeof rows / sizeof *rows,
                                     .min_arguments = 1,
                                     .max_arguments = 2,
                                     .size = sizeof(values)};

typedef struct fixture {
    check_allocator memory;
    crd_context* ctx;
    values v;
    crdi_list arguments;
} fixture;

static int setup(void** state)
{
    static fixture f;
    f = (fixture){0};
    f.ctx = check_context(&f.memory);
    *state = &f;
    return 0;
}

static int teardown(void** state)
{
    fixture* f = *state;
    crdi_options_clear(f->ctx, &command, &f->v, &f->arguments);
    crd_context_destroy(f->ctx);
    return f->memory.live == 0 ? 0 : -1;
}

// Words separated by '|', so that spaces can be part of them.
static crd_status parse(fixture* f, const char* line)
{
    static char text[512];
    char* argv[32];
    int argc = 0;
    snprintf(text, sizeof text, "%s", line);
    crdi_options_clear(f->ctx, &command, &f->v, &f->arguments);
    for (char* word = text; *line; word = strchr(word, 0) + 1) {
        char* bar = strchr(word, '|');
        argv[argc++] = word;
        if (!bar) { break; }
        *bar = 0;
    }
    return crdi_options_parse(f->ctx, &command, argc, argv, &f->v, &f->arguments);
}

static void what_is_not_given_keeps_its_default(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, "file"));
    check(isnan(f->v.time) && isnan(f->v.factor) && !f->v.text && !f->v.file && !f->v.flag);
    check_int(f->v.choice, -1);
    check_int(f->v.count, -1);
    check_int(f->v.list.count, 0);
    check_int(f->arguments.count, 1);
    check_text(f->arguments.items[0], "file");
}

static void a_value_stands_behind_a_space_or_an_equals_sign(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, "--factor|2.5|--text=a=b|file|--color|green|--threads=3|--seed|0"));
    check_near(f->v.factor, 2.5, 0);
    check_text(f->v.text, "a=b");
    check_int(f->v.choice, 1);
    check_int(f->v.count, 3);
    check_int(f->v.number, 0);
    check_ok(parse(f, "--seed=2147483647|file"));
    check_int(f->v.number, 2147483647);
}

static void a_time_may_carry_its_unit(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, "file|--stop-time|10 ms"));
    check_near(f->v.time, 0.01, 1e-17);
    check_ok(parse(f, "file|--stop-time=2"));
    check_near(f->v.time, 2, 0);
    check_ok(parse(f, "file|--end=1 min"));
    check_near(f->v.time, 60, 0);
}

static void the_last_of_an_option_counts_and_a_list_keeps_all(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, "--factor=1|--factor=2|--set|a=1|file|--set=b=2|-sc=3"));
    check_near(f->v.factor, 2, 0);
    check_int(f->v.list.count, 3);
    check_text(f->v.list.items[0], "a=1");
    check_text(f->v.list.items[1], "b=2");
    check_text(f->v.list.items[2], "c=3");
}

static void letters_may_be_joined(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, "-fo|out.csv|file"));
    check(f->v.flag);
    check_text(f->v.file, "out.csv");
    check_ok(parse(f, "-oout.csv|file"));
    check_text(f->v.file, "out.csv");
    check_int(f->arguments.count, 1);
}

static void two_dashes_end_the_options(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, "--flag|--|--factor|-"));
    check_int(f->arguments.count, 2);
    check_text(f->arguments.items[0], "--factor");
    check_text(f->arguments.items[1], "-");
    check(isnan(f->v.factor));
}

static void a_number_may_begin_with_a_minus_sign(void** state)
{
    fixture* f = *state;
    check_status(parse(f, "file|--stop-time|-1"), CRD_E_RANGE);
    check_text(crd_error_text(f->ctx), "--stop-time = '-1', expected >= 0");
}

static void help_needs_no_arguments(void** state)
{
    fixture* f = *state;
    check_ok(parse(f, "--help"));
    check(f->v.common.help);
    check_ok(parse(f, "-h"));
    check(f->v.common.help);
}

static void wrong_arguments_are_named_with_what_would_be_right(void** state)
{
    static const struct {
        const char *line, *part;
    } cases[] = {
        {"file|--stop-tme|1", "unknown option --stop-tme, did you mean --stop-time?"},
        {"file|--edn=1", "did you mean --end?"},
        {"file|--zzzzzzzz", "unknown option --zzzzzzzz; 'cardan try --help' lists them"},
        {"file|-x", "unknown option -x"},
        {"file|--stop-time", "--stop-time needs a value: --stop-time TIME"},
        {"file|--color", "--color needs a value: --color red|green"},
        {"file|--stop-time=", "--stop-time = '', expected a number in s"},
        {"file|--stop-time=1 kg", "--stop-time = '1 kg', expected a number in s"},
        {"file|--stop-time=nan", "--stop-time = 'nan', expected a finite number"},
        {"file|--stop-time=1e999", "--stop-time = '1e999', expected a finite number"},
        {"file|--factor=0", "--factor = '0', expected > 0"},
        {"file|--factor=-2", "--factor = '-2', expected > 0"},
        {"file|--factor=NaN", "--factor = 'NaN', expected a finite number"},
        {"file|--factor=1x", "--factor = '1x', expected a number"},
        {"file|--flag=yes", "--flag takes no value, but 'yes' was given"},
        {"file|--color=gren", "expected one of red|green; did you mean green?"},
        {"file|--threads=0", "expected a number from 1 to 1024 or auto"},
        {"file|--seed=-1", "--seed = '-1', expected a whole number from 0 to 2147483647"},
        {"file|--seed=2147483648", "expected a whole number from 0"},
        {"file|--seed=1.5", "expected a whole number from 0"},
        {"file|--seed=auto", "expected a whole number from 0"},
        {"file|--threads=two", "expected a number from 1 to 1024 or auto"},
        {"file|--output=", "--output has an empty value"},
        {"--flag", "FILE is missing: cardan try FILE"},
        {"a|b|c", "unexpected argument 'c': cardan try FILE"},
    };
    fixture* f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_status(parse(f, cases[i].line), CRD_E_RANGE);
        check_contains(crd_error_text(f->ctx), cases[i].part);
    }
}

static void each_failing_allocation_is_reported_and_nothing_leaks(void** state)
{
    fixture* f = *state;
    crd_status st = CRD_E_MEMORY;
    int failures = 0;
    for (int64_t n = 0; st != CRD_OK; n++) {
        crdi_options_clear(f->ctx, &command, &f->v, &f->arguments);
        f->memory.allocations = 0;
        f->memory.fail_at = n;
        st = parse(f, "--set|a=1|--set|b=2|file");
        if (st != CRD_OK) {
            check_status(st, CRD_E_MEMORY);
            failures++;
        }
        check(n < 100);
    }
    check(failures >= 2);
    f->memory.fail_at = -1;
}

// ---- the tables of the real commands

static void tables_are_sound(void** state)
{
    for (int i = 0; crdi_commands[i]; i++) {
        const crdi_command* c = crdi_commands[i];
        check(c->name && c->summary && c->description && c->arguments && c->run);
        check(c->examples[0].command && strstr(c->examples[0].command, "cardan"));
        check(c->size >= sizeof(crdi_common));
        for (int k = 0; k < c->option_count; k++) {
            const crdi_option* o = &c->options[k];
            check(o->name && o->help && *o->help);
            check(o->offset < c->size);
            check((o->type == CRDI_OPT_CHOICE) <= (o->choices != NULL));
            check((o->type == CRDI_OPT_QUANTITY) == (o->unit != NULL));
            for (int j = 0; j < k; j++) {
                const crdi_option* p = &c->options[j];
                check(strcmp(o->name, p->name) != 0);
                check(!o->short_name || o->short_name != p->short_name);
                // Fields do not overlap: two rows never write to one place.
                check(o->offset != p->offset);
            }
        }
    }
}

static void stems_are_what_stands_between_folder_and_ending(void** state)
{
    fixture* f = *state;
    static const char* const cases[][2] = {{"a/b/name.fmu", "name"}, {"name", "name"},
                                           {"./x.y.csv", "x.y"},     {"folder/", "folder"},
                                           {".hidden", ".hidden"},   {"a.b/c", "c"}};
    crd_arena arena;
    crd_arena_init(&arena, f->ctx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_text(crdi_file_stem(&arena, cases[i][0]), cases[i][1]);
    }
    crd_arena_clear(&arena);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_not_given_keeps_its_default),
        T(a_value_stands_behind_a_space_or_an_equals_sign),
        T(a_time_may_carry_its_unit),
        T(the_last_of_an_option_counts_and_a_list_keeps_all),
        T(letters_may_be_joined),
        T(two_dashes_end_the_options),
        T(a_number_may_begin_with_a_minus_sign),
        T(help_needs_no_arguments),
        T(wrong_arguments_are_named_with_what_would_be_right),
        T(each_failing_allocation_is_reported_and_nothing_leaks),
        T(tables_are_sound),
        T(stems_are_what_stands_between_folder_and_ending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
