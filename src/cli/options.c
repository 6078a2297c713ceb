// Arguments into structs, by the table of the command.
#include "cli/cli.h"

#include <math.h>
#include <string.h>

typedef struct parser {
    crd_context* ctx;
    const crdi_command* command;
    char* const* argv;
    int argc, next; // `next` is the argument behind the one that is looked at
    char* values;
} parser;

typedef struct names {
    const crdi_command* command;
    int i;
    bool alias;
} names;

static const char* options_next_name(void* user)
{
    names* n = user;
    while (n->i < n->command->option_count) {
        const crdi_option* o = &n->command->options[n->i];
        n->alias = !n->alias;
        if (n->alias) { return o->name; }
        n->i++;
        if (o->alias) { return o->alias; }
    }
    return NULL;
}

static const char* options_next_word(void* user)
{
    const char* const** words = user;
    return **words ? *(*words)++ : NULL;
}

const char* crdi_nearest_word(const char* word, const char* const* words)
{
    return crdi_nearest(word, options_next_word, &words);
}

const char* crdi_option_metavar(const crdi_option* o, char* buffer, size_t size)
{
    if (o->type == CRDI_OPT_FLAG) { return NULL; }
    if (o->metavar) { return o->metavar; }
    if (!o->choices) { return o->type == CRDI_OPT_FILE ? "FILE" : "VALUE"; }
    size_t used = 0;
    buffer[0] = 0;
    for (int i = 0; o->choices[i] && used < size; i++) {
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i ? "|" : "", o->choices[i]);
    }
    return buffer;
}

static const crdi_option* find_long(const crdi_command* c, const char* name, size_t length)
{
    for (int i = 0; i < c->option_count; i++) {
        const crdi_option* o = &c->options[i];
        const char* spellings[] = {o->name, o->alias};
        for (int k = 0; k < 2; k++) {
            const char* s = spellings[k];
            if (s && strlen(s) == length && strncmp(s, name, length) == 0) { return o; }
        }
    }
    return NULL;
}

static const crdi_option* find_short(const crdi_command* c, char letter)
{
    for (int i = 0; i < c->option_count; i++) {
        if (c->options[i].short_name == letter) { return &c->options[i]; }
    }
    return NULL;
}

static crd_status store_number(parser* p, const crdi_option* o, const char* text, double* out)
{
    double x = NAN;
    if (o->type == CRDI_OPT_QUANTITY) {
        crd_dimension want, got;
        bool bare = false;
        if (!crd_dimension_parse(o->unit, &want) || !crd_quantity_parse(text, &x, &got, &bare) ||
            (!bare && !crd_dimension_equal(&want, &got))) {
            if (!*o->unit) {
                return crdi_fail(p->ctx, CRD_E_RANGE,
                                 "--%s = '%s', expected a fraction, as in 0.01 or '1 %%'", o->name,
                                 text);
            }
            return crdi_fail(p->ctx, CRD_E_RANGE,
                             "--%s = '%s', expected a number in %s or with its unit, as in '%s'",
                             o->name, text, o->unit, strcmp(o->unit, "s") ? "1.5" : "10 ms");
        }
        if (bare) { x = want.factor * x + want.offset; }
    } else if (!crdi_parse_double(text, strlen(text), &x)) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "--%s = '%s', expected a number", o->name, text);
    }
    if (!isfinite(x)) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "--%s = '%s', expected a finite number", o->name,
                         text);
    }
    if (o->range == CRDI_POSITIVE && !(x > 0)) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "--%s = '%s', expected > 0", o->name, text);
    }
    if (o->range == CRDI_NOT_NEGATIVE && !(x >= 0)) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "--%s = '%s', expected >= 0", o->name, text);
    }
    *out = x;
    return CRD_OK;
}

static crd_status store_choice(parser* p, const crdi_option* o, const char* text, int* out)
{
    for (int i = 0; o->choices[i]; i++) {
        if (strcmp(o->choices[i], text) == 0) {
            *out = i;
            return CRD_OK;
        }
    }
    char list[256];
    const crdi_option plain = {.type = CRDI_OPT_CHOICE, .choices = o->choices};
    const char* near = crdi_nearest_word(text, o->choices);
    return crdi_fail(p->ctx, CRD_E_RANGE, "--%s = '%s', expected one of %s%s%s%s", o->name, text,
                     crdi_option_metavar(&plain, list, sizeof list), near ? "; did you mean " : "",
                     near ? near : "", near ? "?" : "");
}

static crd_status store_count(parser* p, const crdi_option* o, const char* text, int* out)
{
    int64_t n = 0;
    if (strcmp(text, "auto") == 0) {
        *out = 0;
        return CRD_OK;
    }
    if (!crdi_parse_int64(text, strlen(text), &n) || n < 1 || n > 1024) {
        return crdi_fail(p->ctx, CRD_E_RANGE,
                         "--%s = '%s', expected a number from 1 to 1024 or auto", o->name, text);
    }
    *out = (int)n;
    return CRD_OK;
}

static crd_status store_int(parser* p, const crdi_option* o, const char* text, int* out)
{
    int64_t n = 0;
    if (!crdi_parse_int64(text, strlen(text), &n) || n < 0 || n > INT32_MAX) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "--%s = '%s', expected a whole number from 0 to %d",
                         o->name, text, INT32_MAX);
    }
    *out = (int)n;
    return CRD_OK;
}

crd_status crdi_list_add(crd_context* ctx, crdi_list* list, const char* text)
{
    const char** items =
        crdi_grow(ctx, list->items, &list->capacity, (size_t)list->count + 1, sizeof *items);
    if (!items) { return CRD_E_MEMORY; }
    list->items = items;
    list->items[list->count++] = text;
    return CRD_OK;
}

static crd_status store(parser* p, const crdi_option* o, const char* text)
{
    void* target = p->values + o->offset;
    switch (o->type) {
    case CRDI_OPT_FLAG:
        *(bool*)target = true;
        return CRD_OK;
    case CRDI_OPT_TEXT:
    case CRDI_OPT_FILE:
        if (!*text) { return crdi_fail(p->ctx, CRD_E_RANGE, "--%s has an empty value", o->name); }
        *(const char**)target = text;
        return CRD_OK;
    case CRDI_OPT_NUMBER:
    case CRDI_OPT_QUANTITY:
        return store_number(p, o, text, target);
    case CRDI_OPT_COUNT:
        return store_count(p, o, text, target);
    case CRDI_OPT_INT:
        return store_int(p, o, text, target);
    case CRDI_OPT_CHOICE:
        return store_choice(p, o, text, target);
    case CRDI_OPT_LIST:
        return crdi_list_add(p->ctx, target, text);
    }
    return CRD_OK;
}

// The value of an option is what stands behind '=' (or behind the letter), else the next argument.
static crd_status take_value(parser* p, const crdi_option* o, const char* attached)
{
    if (o->type == CRDI_OPT_FLAG) {
        if (attached) {
            return crdi_fail(p->ctx, CRD_E_RANGE, "--%s takes no value, but '%s' was given",
                             o->name, attached);
        }
        return store(p, o, "");
    }
    if (!attached && p->next >= p->argc) {
        char buffer[256];
        return crdi_fail(p->ctx, CRD_E_RANGE, "--%s needs a value: --%s %s", o->name, o->name,
                         crdi_option_metavar(o, buffer, sizeof buffer));
    }
    return store(p, o, attached ? attached : p->argv[p->next++]);
}

// What other tools call it.
static const char* elsewhere(const crdi_command* c, const char* word)
{
    static const struct {
        const char *word, *option, *hint;
    } known[] = {
        {"start-values", "set", "--set NAME=VALUE, once for each"},
        {"output-variables", "variables", "--variables NAME, once for each"},
        {"resultFile", "output", "--output"},
        {"end-time", "stop-time", "--stop-time"},
        {"duration", "stop-time", "--stop-time"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].word, word) == 0 &&
            find_long(c, known[i].option, strlen(known[i].option))) {
            return known[i].hint;
        }
    }
    return NULL;
}

static crd_status parse_long(parser* p, const char* arg)
{
    const char* equals = strchr(arg, '=');
    const size_t length = equals ? (size_t)(equals - arg) : strlen(arg);
    const crdi_option* o = find_long(p->command, arg, length);
    if (o) { return take_value(p, o, equals ? equals + 1 : NULL); }

    char word[128];
    snprintf(word, sizeof word, "%.*s", (int)length, arg);
    const char* hint = elsewhere(p->command, word);
    if (hint) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "unknown option --%s; here it is %s", word, hint);
    }
    names n = {.command = p->command};
    const char* near = crdi_nearest(word, options_next_name, &n);
    if (near) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "unknown option --%s, did you mean --%s?", word,
                         near);
    }
    return crdi_fail(p->ctx, CRD_E_RANGE, "unknown option --%s; 'cardan %s --help' lists them",
                     word, p->command->name);
}

// "-o FILE", "-oFILE", and flags in one word.
static crd_status parse_short(parser* p, const char* arg)
{
    for (; *arg; arg++) {
        const crdi_option* o = find_short(p->command, *arg);
        if (!o) {
            return crdi_fail(p->ctx, CRD_E_RANGE,
                             "unknown option -%c; 'cardan %s --help' lists them", *arg,
                             p->command->name);
        }
        if (o->type != CRDI_OPT_FLAG) { return take_value(p, o, arg[1] ? arg + 1 : NULL); }
        const crd_status st = take_value(p, o, NULL);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static crd_status options_check_count(parser* p, const crdi_list* arguments)
{
    const crdi_command* c = p->command;
    if (arguments->count < c->min_arguments) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "%s is missing: cardan %s %s",
                         arguments->count ? "an argument" : c->arguments, c->name, c->arguments);
    }
    if (c->max_arguments >= 0 && arguments->count > c->max_arguments) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "unexpected argument '%s': cardan %s%s%s",
                         arguments->items[c->max_arguments], c->name, *c->arguments ? " " : "",
                         c->arguments);
    }
    return CRD_OK;
}

void crdi_options_defaults(const crdi_command* c, void* values)
{
    memset(values, 0, c->size);
    for (int i = 0; i < c->option_count; i++) {
        const crdi_option* o = &c->options[i];
        void* target = (char*)values + o->offset;
        if (o->type == CRDI_OPT_NUMBER || o->type == CRDI_OPT_QUANTITY) {
            *(double*)target = o->otherwise != 0 ? o->otherwise : NAN;
        } else if (o->type == CRDI_OPT_COUNT || o->type == CRDI_OPT_INT ||
                   o->type == CRDI_OPT_CHOICE) {
            *(int*)target = -1;
        }
    }
    if (c->defaults) { memcpy(values, c->defaults, c->size); }
    ((crdi_common*)values)->isolate = -1;
}

static bool takes_ending(const crdi_option* o, const char* ending)
{
    return o->extensions && strstr(o->extensions, ending);
}

const crdi_option* crdi_option_to_stdout(const crdi_command* c, const void* values)
{
    static const char* const outputs[] = {"output", "plot", "csv", "report"};
    for (int i = 0; i < c->option_count; i++) {
        const crdi_option* o = &c->options[i];
        const char* text =
            o->type == CRDI_OPT_FILE ? *(char* const*)((char*)values + o->offset) : NULL;
        for (size_t k = 0; text && k < sizeof outputs / sizeof *outputs; k++) {
            if (strcmp(o->name, outputs[k]) == 0 && strcmp(text, "-") == 0) { return o; }
        }
    }
    return NULL;
}

// "-" is standard output. Recordings are streamed there, other files written at their end.
static crd_status send_to_stdout(parser* p)
{
    const crdi_option* o = crdi_option_to_stdout(p->command, p->values);
    crdi_common* common = (crdi_common*)p->values;
    if (!o) { return CRD_OK; }
    const bool folder = o->metavar && strcmp(o->metavar, "FOLDER") == 0;
    if (folder || takes_ending(o, "key")) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "--%s -: %s, expected its name", o->name,
                         folder ? "several files are written, into a folder"
                                : "a key is a file that nobody else can read");
    }
    common->to_stdout = true;
    if (common->json) {
        return crdi_fail(p->ctx, CRD_E_RANGE,
                         "--json and --%s - both write to standard output, expected --%s with a "
                         "file",
                         o->name, o->name);
    }
    if (takes_ending(o, "mf4")) { *(const char**)(p->values + o->offset) = "/dev/stdout"; }
    return CRD_OK;
}

crd_status crdi_options_parse(crd_context* ctx, const crdi_command* c, int argc, char* const* argv,
                              void* values, crdi_list* arguments)
{
    parser p = {.ctx = ctx, .command = c, .argv = argv, .argc = argc, .values = values};
    crd_status st = CRD_OK;
    crdi_options_defaults(c, values);
    bool only_arguments = false;
    while (p.next < p.argc) {
        const char* arg = argv[p.next++];
        if (only_arguments || arg[0] != '-' || !arg[1]) {
            CRD_TRY(crdi_list_add(ctx, arguments, arg));
        } else if (strcmp(arg, "--") == 0) {
            only_arguments = true;
        } else if (arg[1] == '-') {
            CRD_TRY(parse_long(&p, arg + 2));
        } else {
            CRD_TRY(parse_short(&p, arg + 1));
        }
    }
    if (((crdi_common*)values)->help) { return CRD_OK; }
    CRD_TRY(send_to_stdout(&p));
    return options_check_count(&p, arguments);
fail:
    return st;
}

void crdi_options_clear(crd_context* ctx, const crdi_command* c, void* values, crdi_list* arguments)
{
    for (int i = 0; i < c->option_count; i++) {
        if (c->options[i].type != CRDI_OPT_LIST) { continue; }
        crdi_list* list = (crdi_list*)((char*)values + c->options[i].offset);
        crd_free(ctx, list->items);
        *list = (crdi_list){0};
    }
    crd_free(ctx, arguments->items);
    *arguments = (crdi_list){0};
}
