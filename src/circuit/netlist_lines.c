// Files into cards, cards into definitions.
#include "circuit/netlist.h"
#include "shared/base_path.h"

#include <stdlib.h>
#include <string.h>

static const size_t file_most = (size_t)1 << 30;
enum { FILES_MOST = 10000, FILE_NAME_MOST = 1000 };

// ---- files -------------------------------------------------------------------------------------

crd_status crdi_netlist_read_file(crd_context* ctx, const char* path, crd_text* out)
{
    return crdi_file_read(ctx, path, &(crdi_file_need){.what = "a netlist", .most = file_most},
                          out);
}

static crd_status no_binary(crdi_parser* p, const char* text, size_t length, const char* file)
{
    int32_t line = 1;
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        line += c == '\n';
        if ((c < 32 && c != '\n' && c != '\t' && c != '\r' && c != '\f') || c == 127) {
            return crdi_fail(p->ctx, CRD_E_FORMAT,
                             "%s:%d: a byte %d is in the text; a netlist is plain text", file, line,
                             c);
        }
    }
    return CRD_OK;
}

// Takes a copy of the text.
static crd_status add_source(crdi_parser* p, const char* text, size_t length, const char* file,
                             int32_t* index)
{
    crd_status st = CRD_OK;
    crdi_netlist* o = p->out;
    CRD_TRY(no_binary(p, text, length, file));
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        length -= 3;
    }
    const size_t count = (size_t)o->file_count;
    p->text_length += length;
    if (count >= FILES_MOST || p->text_length > 2 * file_most) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "%s: more than %d files or 2 GB are included", file,
                         FILES_MOST);
    }
    crdi_file* s = crdi_grow(p->ctx, p->sources, &p->source_capacity, count + 1, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    p->sources = s;
    const char** names = crdi_grow(p->ctx, o->files, &o->file_capacity, count + 1, sizeof *names);
    if (!names) { return CRD_E_MEMORY; }
    o->files = names;
    s[count] = (crdi_file){.length = length};
    names[count] = crdi_arena_text(&o->n.arena, file, strlen(file));
    if (!names[count]) { return CRD_E_MEMORY; }
    s[count].text = crdi_new_array(p->ctx, length + 1, 1);
    if (!s[count].text) { return CRD_E_MEMORY; }
    if (length) { memcpy(s[count].text, text, length); }
    *index = o->file_count++;
fail:
    return st;
}

// ---- cards -------------------------------------------------------------------------------------

static const char* line_end(const char* p, const char* end)
{
    const char* q = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    return q ? q : end;
}

static const char* skip_blank(const char* p, const char* end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\f')) {
        p++;
    }
    return p;
}

static bool no_card(const char* p, const char* end)
{
    return p == end || *p == '\n' || *p == '*' || *p == ';' || *p == '$' ||
           (*p == '/' && p + 1 < end && p[1] == '/');
}

// The end of the card that begins at p: behind its last continuation line.
static const char* card_end(const char* p, const char* end)
{
    const char *last = line_end(p, end), *at = last;
    while (at < end) {
        const char* first = skip_blank(at + 1, end);
        at = line_end(first, end);
        if (first < end && *first == '+') {
            last = at;
        } else if (!no_card(first, end)) {
            break;
        }
    }
    return last;
}

static crd_status keep_card(crdi_parser* p, const crdi_card* card, int32_t* index)
{
    if (p->card_count >= INT32_MAX) {
        return crdi_fail(p->ctx, CRD_E_RANGE, "the netlist has more than %d lines", INT32_MAX);
    }
    crdi_card* c = crdi_grow(p->ctx, p->cards, &p->card_capacity, p->card_count + 1, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    p->cards = c;
    c[p->card_count] = *card;
    *index = (int32_t)p->card_count++;
    return CRD_OK;
}

static crd_status add_card(crdi_parser* p, const crdi_card* card)
{
    int32_t index = -1;
    const crd_status st = keep_card(p, card, &index);
    if (st < 0) { return st; }
    crdi_scope* s = &p->scopes[p->scope];
    if (s->last >= 0) {
        p->cards[s->last].next = index;
    } else {
        s->first = index;
    }
    s->last = index;
    return CRD_OK;
}

static crd_status fold(const crdi_scan* s, crdi_word w, char out[CRDI_NAME_MOST + 1])
{
    if (crdi_word_fold(w, out)) { return CRD_OK; }
    return crdi_scan_fail(s, CRD_E_RANGE, "the name \"%s\" is longer than %d bytes",
                          crdi_word_clip(w).text, CRDI_NAME_MOST);
}

static crd_status netlist_lines_expected(const crdi_scan* s, const char* what)
{
    return crdi_scan_fail(s, CRD_E_FORMAT, "\"%s\" where %s is expected",
                          crdi_word_clip(crdi_scan_look(s)).text, what);
}

static crd_status at_end(crdi_scan* s)
{
    if (crdi_scan_end(s)) { return CRD_OK; }
    return crdi_scan_fail(s, CRD_E_FORMAT, "\"%s\" is one word too many",
                          crdi_word_clip(crdi_scan_look(s)).text);
}

// A name into the working memory, and into a map under the next number.
static crd_status netlist_lines_add_name(crdi_parser* p, const crdi_scan* s, crdi_word w,
                                         crd_map* map, int32_t number, const char* what,
                                         const char** out)
{
    crd_status st = CRD_OK;
    char text[CRDI_NAME_MOST + 1];
    bool fresh = false;
    CRD_TRY(fold(s, w, text));
    const char* name = crdi_arena_text(&p->work, text, w.n);
    if (!name) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_map_add(map, name, number, &fresh));
    if (!fresh) {
        return crdi_scan_fail(s, CRD_E_FORMAT, "%s \"%s\" is there twice", what,
                              crdi_word_clip(w).text);
    }
    *out = name;
fail:
    return st;
}

// ---- .param, .model, .subckt -------------------------------------------------------------------

// Over an expression, looking only at its grammar.
static crd_status skip_value(crdi_parser* p, crdi_scan* s)
{
    crd_status st = CRD_OK;
    const crdi_names names = {.dry = true, .why = "a parameter"};
    double value;
    crd_expression* e;
    const char quote = crdi_scan_peek(s);
    const bool quoted = quote == '{' || quote == '\'';
    if (quoted) { s->p++; }
    CRD_TRY(crdi_expression_read(&p->builder, s, &names, NULL, false, &value, &e));
    if (quoted && !crdi_scan_take(s, quote == '{' ? '}' : '\'')) {
        return netlist_lines_expected(s,
                                      quote == '{' ? "the '}' of the expression" : "the closing '");
    }
fail:
    return st;
}

static bool is_identifier(crdi_word w)
{
    for (size_t i = 0; i < w.n; i++) {
        const char c = w.p[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i && c >= '0' && c <= '9')) { return false; }
    }
    return w.n > 0;
}

// name=value name=value ... to the end of the card
static crd_status add_params(crdi_parser* p, const crdi_card* card, crdi_scan* s)
{
    crd_status st = CRD_OK;
    while (crdi_scan_take(s, ',') || !crdi_scan_end(s)) {
        crdi_scope* scope = &p->scopes[p->scope];
        crdi_word key;
        if (!crdi_key(s, &key)) {
            return netlist_lines_expected(s, "the name of a parameter and '='");
        }
        if (!is_identifier(key)) {
            return crdi_scan_fail(s, CRD_E_FORMAT,
                                  "\"%s\" cannot be a parameter: letters, digits and _ only",
                                  crdi_word_clip(key).text);
        }
        crdi_param* list = crdi_grow(p->ctx, scope->params, &scope->param_capacity,
                                     (size_t)scope->param_count + 1, sizeof *list);
        if (!list) { return CRD_E_MEMORY; }
        scope->params = list;
        crdi_param* q = &list[scope->param_count];
        *q = (crdi_param){.written = key, .value = {s->p, card->end, card->file, s->line, -1, -1}};
        CRD_TRY(netlist_lines_add_name(p, s, key, &scope->param_map, scope->param_count,
                                       "the parameter", &q->name));
        scope->param_count++;
        CRD_TRY(skip_value(p, s));
    }
fail:
    return st;
}

static crd_status add_model(crdi_parser* p, const crdi_card* card, crdi_scan* s)
{
    crd_status st = CRD_OK;
    crdi_scope* scope = &p->scopes[p->scope];
    const crdi_word name = crdi_scan_word(s);
    if (!name.n) { return netlist_lines_expected(s, "the name of a model"); }
    crdi_named* list = crdi_grow(p->ctx, scope->models, &scope->model_capacity,
                                 (size_t)scope->model_count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    scope->models = list;
    crdi_named* m = &list[scope->model_count];
    *m = (crdi_named){.card = {s->p, card->end, card->file, s->line, -1, -1}};
    CRD_TRY(netlist_lines_add_name(p, s, name, &scope->model_map, scope->model_count, "the model",
                                   &m->name));
    scope->model_count++;
fail:
    return st;
}

// .func name(a, b ...) [=] {expression}
static crd_status add_function(crdi_parser* p, crdi_scan* s)
{
    crd_status st = CRD_OK;
    crdi_scope* scope = &p->scopes[p->scope];
    crdi_function f = {0};
    const crdi_word name = crdi_scan_word(s);
    if (!is_identifier(name)) { return netlist_lines_expected(s, "the name of a function"); }
    if (!crdi_scan_take(s, '(')) {
        return netlist_lines_expected(s, "'(' and the names of the arguments");
    }
    do {
        if (f.count == CRDI_ARGUMENTS_MOST) {
            return crdi_scan_fail(s, CRD_E_RANGE, "a function has at most %d arguments",
                                  CRDI_ARGUMENTS_MOST);
        }
        f.arguments[f.count] = crdi_scan_word(s);
        if (!is_identifier(f.arguments[f.count++])) {
            return netlist_lines_expected(s, "an argument's name");
        }
    } while (crdi_scan_take(s, ','));
    if (!crdi_scan_take(s, ')')) { return netlist_lines_expected(s, "')' behind the arguments"); }
    (void)crdi_scan_take(s, '=');
    f.body = *s;
    CRD_TRY(skip_value(p, s));
    CRD_TRY(at_end(s));
    if (!crdi_scan_take(&f.body, '{')) { (void)crdi_scan_take(&f.body, '\''); }
    crdi_function* list = crdi_grow(p->ctx, scope->functions, &scope->function_capacity,
                                    (size_t)scope->function_count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    scope->functions = list;
    CRD_TRY(netlist_lines_add_name(p, s, name, &scope->function_map, scope->function_count,
                                   "the function", &f.name));
    list[scope->function_count++] = f;
fail:
    return st;
}

static crd_status push_scope(crdi_parser* p, int32_t parent, const crdi_scan* s, int32_t file)
{
    crdi_scope* list =
        crdi_grow(p->ctx, p->scopes, &p->scope_capacity, (size_t)p->scope_count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    p->scopes = list;
    crdi_scope* n = &list[p->scope_count];
    *n = (crdi_scope){.parent = parent, .first = -1, .last = -1, .name = "", .file = file};
    n->depth = parent < 0 ? 0 : list[parent].depth + 1;
    n->line = s ? s->line : 0;
    crdi_map_init(&n->param_map, p->ctx);
    crdi_map_init(&n->model_map, p->ctx);
    crdi_map_init(&n->port_map, p->ctx);
    crdi_map_init(&n->child_map, p->ctx);
    crdi_map_init(&n->function_map, p->ctx);
    p->scope = p->scope_count++;
    return CRD_OK;
}

// .subckt name node ... [params:] [name=value ...]
static crd_status begin_subckt(crdi_parser* p, const crdi_card* card, crdi_scan* s)
{
    crd_status st = CRD_OK;
    if (p->section >= 0) {
        return crdi_scan_fail(s, CRD_E_FORMAT, ".subckt inside .thermal: end the section first");
    }
    if (p->scopes[p->scope].depth >= CRDI_NESTING_MOST) {
        return crdi_scan_fail(s, CRD_E_RANGE, "subcircuits are defined more than %d deep",
                              CRDI_NESTING_MOST);
    }
    const crdi_word name = crdi_scan_word(s);
    if (!name.n) { return netlist_lines_expected(s, "the name of a subcircuit"); }
    const int32_t parent = p->scope;
    const char* text;
    CRD_TRY(netlist_lines_add_name(p, s, name, &p->scopes[parent].child_map, p->scope_count,
                                   "the subcircuit", &text));
    CRD_TRY(push_scope(p, parent, s, card->file));
    crdi_scope* scope = &p->scopes[p->scope];
    scope->name = text;
    for (;;) {
        const crdi_scan before = *s;
        crdi_word w;
        if (crdi_scan_end(s)) { break; }
        if (crdi_key(s, &w)) {
            *s = before;
            break;
        }
        w = crdi_scan_word(s);
        if (crdi_word_is(w, "params:")) { break; }
        if (!w.n) { return netlist_lines_expected(s, "a node"); }
        if (crdi_word_is(w, "0")) {
            return crdi_scan_fail(s, CRD_E_FORMAT, "ground is everywhere and cannot be handed in");
        }
        const char* port;
        CRD_TRY(netlist_lines_add_name(p, s, w, &scope->port_map, scope->port_count, "the node",
                                       &port));
        scope->port_count++;
    }
    CRD_TRY(add_params(p, card, s));
    scope->header_count = scope->param_count;
fail:
    return st;
}

static crd_status end_subckt(crdi_parser* p, crdi_scan* s)
{
    const crdi_scope* scope = &p->scopes[p->scope];
    if (p->scope == 0) { return crdi_scan_fail(s, CRD_E_FORMAT, ".ends without .subckt"); }
    if (p->section >= 0) {
        return crdi_scan_fail(s, CRD_E_FORMAT, ".ends inside .thermal: end the section first");
    }
    const crdi_word w = crdi_scan_word(s);
    if (w.n && !crdi_word_is(w, scope->name)) {
        return crdi_scan_fail(s, CRD_E_FORMAT, ".ends %s, but the subcircuit of line %d is %s",
                              crdi_word_clip(w).text, scope->line, crdi_clip(scope->name).text);
    }
    p->scope = scope->parent;
    return at_end(s);
}

static crd_status begin_thermal(crdi_parser* p, const crdi_card* card, crdi_scan* s)
{
    if (p->section >= 0) { return crdi_scan_fail(s, CRD_E_FORMAT, ".thermal inside .thermal"); }
    crdi_card* list = crdi_grow(p->ctx, p->sections, &p->section_capacity,
                                (size_t)p->section_count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    p->sections = list;
    list[p->section_count] = (crdi_card){s->p, card->end, card->file, s->line, p->scope, -1};
    crdi_word key = {0};
    if (!crdi_scan_end(s)) {
        if (!crdi_key(s, &key) || !crdi_word_is(key, "start")) {
            return netlist_lines_expected(s, key.n ? "start= instead of this word" : "start=");
        }
        const crd_status st = skip_value(p, s);
        if (st < 0) { return st; }
    }
    p->section = p->section_count++;
    return at_end(s);
}

static crd_status end_thermal(crdi_parser* p, crdi_scan* s)
{
    if (p->section < 0) { return crdi_scan_fail(s, CRD_E_FORMAT, ".endthermal without .thermal"); }
    p->section = -1;
    return at_end(s);
}

static crd_status add_globals(crdi_parser* p, crdi_scan* s)
{
    crd_status st = CRD_OK;
    while (!crdi_scan_end(s)) {
        char text[CRDI_NAME_MOST + 1];
        const crdi_word w = crdi_scan_word(s);
        if (!w.n) { return netlist_lines_expected(s, "a node"); }
        CRD_TRY(fold(s, w, text));
        const char* name = crdi_arena_text(&p->work, text, w.n);
        if (!name) { return CRD_E_MEMORY; }
        CRD_TRY(crdi_map_add(&p->global_map, name, 1, NULL));
    }
fail:
    return st;
}

static crd_status add_control(crdi_parser* p, const crdi_card* card, crdi_scan* s, crdi_word word)
{
    crd_status st = CRD_OK;
    if (p->scope != 0) {
        const crdi_scope* in = &p->scopes[p->scope];
        return crdi_scan_fail(s, CRD_E_FORMAT,
                              "%s belongs to the whole netlist, not into .subckt %s of line %d; is "
                              "its .ends missing?",
                              crdi_word_clip(word).text, crdi_clip(in->name).text, in->line);
    }
    int32_t* list = crdi_grow(p->ctx, p->controls, &p->control_capacity,
                              (size_t)p->control_count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    p->controls = list;
    CRD_TRY(keep_card(p, card, &list[p->control_count]));
    p->control_count++;
fail:
    return st;
}

// ---- .include ----------------------------------------------------------------------------------

static crd_status read_lines(crdi_parser* p, int32_t file);

static crd_status open_include(crdi_parser* p, const crdi_scan* s, const char* path, int32_t* file)
{
    crd_status st = CRD_OK;
    crd_text text;
    crd_text_init(&text, p->ctx);
    char* real = realpath(path, NULL);
    for (int i = 0; real && i < p->include_depth; i++) {
        const char* other = p->sources[p->including[i]].path;
        if (other && strcmp(other, real) == 0) {
            free(real);
            return crdi_scan_fail(s, CRD_E_FORMAT, "%s includes itself", crdi_clip(path).text);
        }
    }
    st = crdi_netlist_read_file(p->ctx, path, &text);
    if (st < 0) {
        crdi_fail_in(p->ctx, st, "%s:%d: .include", s->file, s->line);
    } else {
        st = add_source(p, text.data ? text.data : "", text.length, path, file);
    }
    if (st == CRD_OK && real) {
        p->sources[*file].path = crdi_strdup(p->ctx, real);
        if (!p->sources[*file].path) { st = CRD_E_MEMORY; }
    }
    free(real);
    crd_text_clear(&text);
    return st;
}

static crd_status include(crdi_parser* p, const crdi_card* card, crdi_scan* s)
{
    crd_status st = CRD_OK;
    crdi_word w;
    const char quote = crdi_scan_peek(s);
    if (quote == '"' || quote == '\'') {
        const char* first = ++s->p;
        while (s->p < s->end && *s->p != quote && *s->p != '\n') {
            s->p++;
        }
        w = (crdi_word){first, (size_t)(s->p - first)};
        if (s->p == s->end || *s->p != quote) {
            return netlist_lines_expected(s, "the closing quote");
        }
        s->p++;
    } else {
        w = crdi_scan_word(s);
    }
    if (!w.n) { return netlist_lines_expected(s, "the name of a file"); }
    CRD_TRY(at_end(s));
    if (w.n > FILE_NAME_MOST) {
        return crdi_scan_fail(s, CRD_E_RANGE, "the name of the file has more than %d bytes",
                              FILE_NAME_MOST);
    }
    if (p->include_depth >= CRDI_INCLUDES_MOST) {
        return crdi_scan_fail(s, CRD_E_RANGE, "files are included more than %d deep",
                              CRDI_INCLUDES_MOST);
    }
    const char* from = p->out->files[card->file];
    const int folder = *w.p != '/' ? (int)crdi_folder_length(from) : 0;
    char* path = crdi_arena_format(&p->work, "%.*s%.*s", folder, from, (int)w.n, w.p);
    if (!path) { return CRD_E_MEMORY; }
    int32_t file;
    CRD_TRY(open_include(p, s, path, &file));
    CRD_TRY(read_lines(p, file));
fail:
    return st;
}

// ---- all of it ---------------------------------------------------------------------------------

void crdi_netlist_note(crdi_parser* p, const crdi_scan* s, const char* word, const char* why)
{
    bool fresh = true;
    const char* key = crdi_arena_text(&p->work, word, strlen(word));
    if (key) { (void)crdi_map_add(&p->noted, key, 1, &fresh); } // without memory: said once more
    if (fresh) {
        crdi_log(p->ctx, CRD_LOG_INFO, "netlist %s:%d: %s %s", s->file, s->line, word, why);
    }
}

typedef enum dot {
    DOT_PARAM,
    DOT_MODEL,
    DOT_FUNC,
    DOT_SUBCKT,
    DOT_ENDS,
    DOT_INCLUDE,
    DOT_THERMAL,
    DOT_ENDTHERMAL,
    DOT_GLOBAL,
    DOT_IC,
    DOT_CONTROL, // kept for later
    DOT_TITLE,
    DOT_END,
    DOT_SKIP, // .control ... .endc
    DOT_NOTE,
} dot;

static const struct {
    const char* word;
    dot what;
} dots[] = {{".param", DOT_PARAM},   {".model", DOT_MODEL},     {".func", DOT_FUNC},
            {".subckt", DOT_SUBCKT}, {".ends", DOT_ENDS},       {".include", DOT_INCLUDE},
            {".inc", DOT_INCLUDE},   {".thermal", DOT_THERMAL}, {".endthermal", DOT_ENDTHERMAL},
            {".global", DOT_GLOBAL}, {".ic", DOT_IC},           {".tran", DOT_CONTROL},
            {".temp", DOT_CONTROL},  {".options", DOT_CONTROL}, {".option", DOT_CONTROL},
            {".input", DOT_CONTROL}, {".output", DOT_CONTROL},  {".title", DOT_TITLE},
            {".end", DOT_END},       {".control", DOT_SKIP},    {".ac", DOT_NOTE},
            {".dc", DOT_NOTE},       {".op", DOT_NOTE},         {".print", DOT_NOTE},
            {".plot", DOT_NOTE},     {".probe", DOT_NOTE},      {".save", DOT_NOTE},
            {".width", DOT_NOTE},    {".four", DOT_NOTE},       {".noise", DOT_NOTE},
            {".tf", DOT_NOTE},       {".sens", DOT_NOTE},       {".pz", DOT_NOTE},
            {".disto", DOT_NOTE},    {".meas", DOT_NOTE},       {".measure", DOT_NOTE},
            {".nodeset", DOT_NOTE},  {".csparam", DOT_NOTE},    {".opt", DOT_CONTROL},
            {".sp", DOT_NOTE},       {".pss", DOT_NOTE},        {".backanno", DOT_NOTE}};
enum { DOT_COUNT = sizeof dots / sizeof *dots };

static const char* next_dot(void* user)
{
    int* i = user;
    return *i < DOT_COUNT ? dots[(*i)++].word : NULL;
}

static crd_status unknown_dot(const crdi_scan* s, crdi_word word)
{
    char text[CRDI_NAME_MOST + 1] = "";
    int i = 0;
    (void)crdi_word_fold(word, text);
    const char* near = crdi_nearest(text, next_dot, &i);
    return crdi_scan_fail(s, CRD_E_UNSUPPORTED, "\"%s\" is not supported%s%s",
                          crdi_word_clip(word).text, near ? "; is it meant to be " : "",
                          near ? near : "");
}

static crd_status set_title(crdi_parser* p, const char* text, size_t n)
{
    while (n && (text[n - 1] == '\r' || text[n - 1] == ' ')) {
        n--;
    }
    p->n->title = crdi_arena_text(&p->n->arena, text, n);
    return p->n->title ? CRD_OK : CRD_E_MEMORY;
}

static crd_status dot_card(crdi_parser* p, const crdi_card* card, crdi_scan* s, crdi_word word,
                           bool* skip)
{
    int i = 0;
    while (i < DOT_COUNT && !crdi_word_is(word, dots[i].word)) {
        i++;
    }
    if (i == DOT_COUNT) { return unknown_dot(s, word); }
    switch (dots[i].what) {
    case DOT_PARAM:
        return add_params(p, card, s);
    case DOT_MODEL:
        return add_model(p, card, s);
    case DOT_FUNC:
        return add_function(p, s);
    case DOT_SUBCKT:
        return begin_subckt(p, card, s);
    case DOT_ENDS:
        return end_subckt(p, s);
    case DOT_INCLUDE:
        return include(p, card, s);
    case DOT_THERMAL:
        return begin_thermal(p, card, s);
    case DOT_ENDTHERMAL:
        return end_thermal(p, s);
    case DOT_GLOBAL:
        return add_globals(p, s);
    case DOT_IC:
        return add_card(p, card);
    case DOT_CONTROL:
        return add_control(p, card, s, word);
    case DOT_TITLE:
        crdi_scan_space(s);
        return set_title(p, s->p, (size_t)(s->end - s->p));
    case DOT_END:
        p->ended = true;
        return CRD_OK;
    case DOT_SKIP:
        *skip = true;
        break;
    case DOT_NOTE:
        break;
    }
    crdi_netlist_note(p, s, dots[i].word, "does not matter here and is passed over");
    return CRD_OK;
}

// The first line is the title, whatever it says; one that begins with a dot never is one.
static crd_status title(crdi_parser* p, const char** at, int32_t* line)
{
    const crdi_file* f = &p->sources[0];
    const char *end = f->text + f->length, *first = skip_blank(f->text, end);
    if (first < end && *first == '.') { return set_title(p, "", 0); }
    const char* last = line_end(f->text, end);
    const bool starred = first < last && *first == '*';
    crdi_scan s = {p->ctx, first, first, last, p->out->files[0], 1};
    const crdi_word w = crdi_scan_word(&s);
    int words = 0;
    while (!crdi_scan_end(&s) && crdi_scan_word(&s).n) {
        words++;
    }
    if (w.n && strchr("rlcvidkRLCVIDK", *w.p) && words == 3 && w.n > 1 && w.n < 4) {
        crdi_log(p->ctx, CRD_LOG_WARNING,
                 "netlist %s:1: the first line is the title, although \"%s\" looks like an element",
                 s.file, crdi_word_clip((crdi_word){first, (size_t)(last - first)}).text);
    }
    if (starred) { first = skip_blank(first + 1, last); }
    *at = last < end ? last + 1 : end;
    *line = 2;
    return set_title(p, first, (size_t)(last - first));
}

static crd_status keep_flat(crdi_parser* p, const char* text, const char* end)
{
    crd_text* flat = p->opt.flat;
    if (!flat || flat->failed) { return flat ? CRD_E_MEMORY : CRD_OK; }
    crdi_text_put(flat, text, (size_t)(end - text));
    if (end > text && end[-1] != '\n') { crdi_text_put(flat, "\n", 1); }
    return flat->failed ? CRD_E_MEMORY : CRD_OK;
}

// A card into the flat text: of what included a file, and of the end of an included one, a comment
// is left, on as many lines.
static crd_status flatten(crdi_parser* p, const crdi_card* card, bool skip)
{
    crd_text* flat = p->opt.flat;
    if (!flat) { return CRD_OK; }
    crdi_scan s = {p->ctx, card->p, card->p, card->end, "", card->line};
    const crdi_word word = crdi_scan_word(&s);
    const bool out = !skip && (crdi_word_is(word, ".include") || crdi_word_is(word, ".inc") ||
                               (crdi_word_is(word, ".end") && p->include_depth > 1));
    if (!out) { return keep_flat(p, card->p, card->end); }
    for (const char* at = card->p; at <= card->end;) {
        const char* last = line_end(at, card->end);
        crdi_text_put(flat, "* ", 2);
        const crd_status st = keep_flat(p, at, last);
        if (st < 0) { return st; }
        at = last + 1;
    }
    return CRD_OK;
}

static crd_status read_cards(crdi_parser* p, int32_t file)
{
    crd_status st = CRD_OK;
    const crdi_file f = p->sources[file];
    const char *at = f.text, *end = f.text + f.length;
    int32_t line = 1;
    bool skip = false;
    if (file == 0) {
        CRD_TRY(title(p, &at, &line));
        CRD_TRY(keep_flat(p, f.text, at));
    }
    while (at < end && !p->ended) {
        const char* first = skip_blank(at, end);
        if (no_card(first, end)) {
            const char* last = line_end(first, end);
            CRD_TRY(keep_flat(p, first, last < end ? last + 1 : end));
            at = last;
        } else {
            crdi_card card = {first, card_end(first, end), file, line, -1, p->section};
            crdi_scan s = {p->ctx, f.text, first, card.end, p->out->files[file], line};
            if (*first == '+') {
                return crdi_scan_fail(&s, CRD_E_FORMAT, "this line continues no other");
            }
            CRD_TRY(flatten(p, &card, skip));
            if (skip) {
                skip = !crdi_word_is(crdi_scan_word(&s), ".endc");
            } else if (*first == '.') {
                const crdi_word word = crdi_scan_word(&s);
                CRD_TRY(dot_card(p, &card, &s, word, &skip));
            } else {
                CRD_TRY(add_card(p, &card));
            }
            for (const char* q = first; (q = memchr(q, '\n', (size_t)(card.end - q))); q++) {
                line++;
            }
            at = card.end;
        }
        if (at < end) { // the newline
            at++;
            line++;
        }
    }
    p->ended = false;
    if (skip) { // as far as to the end of its file
        static const char line_of_end[] = ".endc\n";
        CRD_TRY(keep_flat(p, line_of_end, line_of_end + strlen(line_of_end)));
    }
fail:
    return st;
}

static crd_status read_lines(crdi_parser* p, int32_t file)
{
    p->including[p->include_depth++] = file;
    const crd_status st = read_cards(p, file);
    p->include_depth--;
    return st;
}

crd_status crdi_netlist_lines(crdi_parser* p, const char* text, size_t length, const char* file)
{
    crd_status st = CRD_OK;
    int32_t index;
    CRD_TRY(push_scope(p, -1, NULL, 0));
    CRD_TRY(add_source(p, text, length, file, &index));
    char* real = realpath(file, NULL); // NULL: a text without file
    if (real) {
        p->sources[0].path = crdi_strdup(p->ctx, real);
        free(real);
        if (!p->sources[0].path) { return CRD_E_MEMORY; }
    }
    CRD_TRY(read_lines(p, 0));
    if (p->section >= 0) {
        const crdi_card* c = &p->sections[p->section];
        return crdi_fail(p->ctx, CRD_E_FORMAT, "%s:%d: .thermal without .endthermal",
                         p->out->files[c->file], c->line);
    }
    if (p->scope != 0) {
        const crdi_scope* s = &p->scopes[p->scope];
        return crdi_fail(p->ctx, CRD_E_FORMAT, "%s:%d: .subckt %s without .ends",
                         p->out->files[s->file], s->line, crdi_clip(s->name).text);
    }
fail:
    return st;
}
