// Elements out of descriptions: what all algorithms have in common; their own keys stand in their
// rows.
#include "coupling/algorithm.h"
#include "shared/base_findings.h"
#include "shared/coupling.h"

#include <stdio.h>
#include <string.h>

enum { SIGNALS_MAX = 4096, MOST_ALGORITHMS = 64 };

const char* const crdi_reconstructions[] = {"hold", "own", "smooth", NULL};
const char* const crdi_detections[] = {"none", "spectrum", "guarded", NULL};
const char* const crdi_reactions[] = {"none", "switch", "rebase", NULL};

extern const crdi_algorithm crdi_algorithm_auto; // the default

// Behind the word of an algorithm: detection and reaction as published (Baumann 2024, sec. 2.5), or
// the guarded detection with re-basing.
static const char switched[] = "+switch", rebased[] = "+rebase";

// ---- keys with a reader of their own -----------------------------------------------------------

static crd_status read_version(crdi_element_reader* r, const crdi_json* n)
{
    if (n->kind == CRDI_JSON_NUMBER && n->number == 1) { return CRD_OK; }
    return crdi_element_fail(r, n, CRD_E_UNSUPPORTED, "version %s, expected 1",
                             crdi_element_shown(n).text);
}

// Names become signals of recordings and stand in tables on terminals.
static bool is_name(const crdi_json* n)
{
    bool fine = n->kind == CRDI_JSON_TEXT && n->text[0];
    for (const char* p = n->text; *p; p++) {
        fine = fine && (unsigned char)*p >= 0x20 && *p != 0x7f;
    }
    return fine;
}

static crd_status read_name(crdi_element_reader* r, const crdi_json* n)
{
    return is_name(n) ? crdi_element_read_text(r, n, "a name", &r->e->name)
                      : crdi_element_expected(r, n, "a name without control characters");
}

static crd_status read_latency(crdi_element_reader* r, const crdi_json* n)
{
    const char* what = "measured, a number of steps such as 6, or a time such as \"60 ms\"";
    crd_element* e = r->e;
    if (n->kind == CRDI_JSON_TEXT && strcmp(n->text, "measured") == 0) { return CRD_OK; }
    if (n->kind == CRDI_JSON_TEXT) {
        return crdi_element_read_time(r, n, what, CRDI_NOT_NEGATIVE, &e->latency);
    }
    if (n->kind != CRDI_JSON_NUMBER || floor(n->number) != n->number) {
        return crdi_element_expected(r, n, what);
    }
    return crdi_element_read_int(r, n, 0, CRD_LATENCY_MAX, &e->latency_steps);
}

crd_status crdi_element_read_names(crdi_element_reader* r, const crdi_json* n, const char* what,
                                   int most, int* count, const char* const** out)
{
    if (n->kind == CRDI_JSON_NUMBER) { return crdi_element_read_int(r, n, 1, most, count); }
    if (n->kind != CRDI_JSON_LIST || n->count == 0) { return crdi_element_expected(r, n, what); }
    if (n->count > most) {
        return crdi_element_fail(r, n, CRD_E_RANGE, "%d %s, expected at most %d", n->count, n->key,
                                 most);
    }
    const char** names = crdi_arena_new(r->arena, (size_t)n->count, sizeof *names);
    if (!names) { return CRD_E_MEMORY; }
    crd_status st = CRD_OK;
    crd_map map;
    crdi_map_init(&map, r->ctx);
    int i = 0;
    for (const crdi_json* m = n->first; m; m = m->next, i++) {
        bool fresh = false;
        if (!is_name(m)) {
            CRD_TRY(crdi_json_fail(r->ctx, r->file, m->line, CRD_E_FORMAT,
                                   "%s[%d]: %s, expected a name without control characters", n->key,
                                   i + 1, crdi_element_shown(m).text));
        }
        CRD_TRY(crdi_map_add(&map, m->text, 0, &fresh));
        if (!fresh) {
            CRD_TRY(crdi_json_fail(r->ctx, r->file, m->line, CRD_E_RANGE,
                                   "%s: %s is there twice, expected names that differ", n->key,
                                   crdi_element_shown(m).text));
        }
        names[i] = m->text;
    }
    *out = names;
    *count = n->count;
fail:
    crdi_map_clear(&map);
    return st;
}

static crd_status read_signals(crdi_element_reader* r, const crdi_json* n)
{
    return crdi_element_read_names(r, n, "a number of signals, or a list of their names",
                                   SIGNALS_MAX, &r->e->signal_count, &r->e->signal_names);
}

// Of the spectral detection, which `detect` has chosen before.
static crd_status needs_spectrum(crdi_element_reader* r, const crdi_json* n)
{
    const int kind = (int)r->e->options.detection;
    if (kind == CRD_DETECT_SPECTRUM) { return CRD_OK; }
    return crdi_element_fail(r, n, CRD_E_FORMAT,
                             "this belongs to detect: spectrum, but detect is %s",
                             crdi_detections[kind]);
}

static crd_status read_detect_window(crdi_element_reader* r, const crdi_json* n)
{
    int* window = &r->e->options.detect_window;
    crd_status st = needs_spectrum(r, n);
    if (st >= 0) { st = crdi_element_read_int(r, n, 4, CRD_DETECT_SPAN, window); }
    return st < 0 ? st : crdi_element_placed(r, n, crdi_detection_check(r->ctx, *window, 0, 1));
}

static crd_status read_detect_band(crdi_element_reader* r, const crdi_json* n)
{
    crd_coupling_options* o = &r->e->options;
    double band[2];
    crd_status st = needs_spectrum(r, n);
    if (st >= 0) { st = crdi_element_read_numbers(r, n, 2, 2, band); }
    if (st < 0) { return st; }
    o->detect_low = band[0];
    o->detect_high = band[1];
    return crdi_element_placed(
        r, n, crdi_detection_check(r->ctx, o->detect_window, o->detect_low, o->detect_high));
}

// ---- the keys that every algorithm has ---------------------------------------------------------

static const crdi_element_option common[] = {
    {"element", .read = read_version},
    {"name", .read = read_name},
    {"step", CRDI_ELEMENT_TIME, offsetof(crd_element, step), .range = CRDI_POSITIVE},
    {.name = "algorithm"}, // first of all
    {"reconstruct", CRDI_ELEMENT_CHOICE, CRDI_ELEMENT_FIELD(reconstruction),
     .choices = crdi_reconstructions},
    {"detect", CRDI_ELEMENT_CHOICE, CRDI_ELEMENT_FIELD(detection), .choices = crdi_detections},
    {"detect-window", .read = read_detect_window},
    {"detect-band", .read = read_detect_band}, // after its window
    {"threshold", CRDI_ELEMENT_NUMBER, CRDI_ELEMENT_FIELD(threshold), .range = CRDI_NOT_NEGATIVE},
    {"resolution", CRDI_ELEMENT_NUMBER, CRDI_ELEMENT_FIELD(resolution), .range = CRDI_NOT_NEGATIVE},
    {"react", CRDI_ELEMENT_CHOICE, CRDI_ELEMENT_FIELD(reaction), .choices = crdi_reactions},
    {"latency", .read = read_latency},
    {"latency-max", CRDI_ELEMENT_INT, CRDI_ELEMENT_FIELD(k_max), .min = 0, .max = CRD_LATENCY_MAX},
    {"late", CRDI_ELEMENT_INT, CRDI_ELEMENT_FIELD(late), .min = 0, .max = 4096},
    {"signals", .read = read_signals},
    {0},
};

// `coupling:` of a connection has these beside them.
static const char* const connection_keys[] = {"file", "channel", "shadow", "record", NULL};

static const crdi_element_option* find_key(const crdi_element_option* keys, const char* name)
{
    for (const crdi_element_option* k = keys; k && k->name; k++) {
        if (strcmp(k->name, name) == 0) { return k; }
    }
    return NULL;
}

const char* crdi_element_key(int index)
{
    const crdi_element_option* keys = common;
    for (int i = 0; keys || i == 0 || crdi_algorithm_at(i - 1); i++) {
        keys = i == 0 ? common : crdi_algorithm_at(i - 1) ? crdi_algorithm_at(i - 1)->keys : NULL;
        for (const crdi_element_option* k = keys; k && k->name; k++) {
            if (index-- == 0) { return k->name; }
        }
    }
    return NULL;
}

// ---- the whole ---------------------------------------------------------------------------------

static crd_element blank_element(crd_context* ctx)
{
    return (crd_element){.ctx = ctx,
                         .name = "",
                         .label = "",
                         .step = NAN,
                         .latency = NAN,
                         .latency_steps = -1,
                         .options = crd_coupling_defaults(),
                         .signal_count = 1,
                         .learn_server = ""};
}

static bool coupling_describe_ends_with(const char* text, const char* tail)
{
    const size_t n = strlen(text), k = strlen(tail);
    return n > k && strcmp(text + n - k, tail) == 0;
}

static crd_status read_algorithm(crdi_element_reader* r, const crdi_json* n)
{
    r->algorithm = &crdi_algorithm_auto;
    if (!n) { return CRD_OK; }
    crdi_json word = *n;
    crd_coupling_options* o = &r->e->options;
    const bool is_switched = coupling_describe_ends_with(n->text, switched);
    if (is_switched || coupling_describe_ends_with(n->text, rebased)) {
        const size_t tail = is_switched ? sizeof switched - 1 : sizeof rebased - 1;
        word.text = crdi_arena_text(r->arena, n->text, strlen(n->text) - tail);
        if (!word.text) { return CRD_E_MEMORY; }
        o->detection = is_switched ? CRD_DETECT_SPECTRUM : CRD_DETECT_GUARDED;
        o->reaction = is_switched ? CRD_REACT_SWITCH : CRD_REACT_REBASE;
    }
    const char* words[MOST_ALGORITHMS + 1] = {NULL};
    for (int i = 0; i < MOST_ALGORITHMS && crdi_algorithm_at(i); i++) {
        words[i] = crdi_algorithm_at(i)->name;
    }
    int chosen = 0;
    const crd_status st = crdi_element_read_choice(r, &word, words, &chosen);
    if (st < 0) { return st; }
    r->algorithm = crdi_algorithm_at(chosen);
    crdi_algorithm_choose(r->algorithm, o);
    // What does not learn is the method as published unless something else is asked for.
    if (word.text == n->text && !r->algorithm->learns) { o->reaction = CRD_REACT_NONE; }
    return CRD_OK;
}

typedef struct key_list {
    int at, behind;
} key_list;

static const char* next_key(void* user)
{
    key_list* l = user;
    const char* name = crdi_element_key(l->at);
    if (!name) { return connection_keys[l->behind++]; }
    l->at++;
    return name;
}

static bool is_key_of_some(const char* key)
{
    int i = 0;
    while (crdi_algorithm_at(i) && !find_key(crdi_algorithm_at(i)->keys, key)) {
        i++;
    }
    return crdi_algorithm_at(i) != NULL;
}

// Neither a key of all algorithms nor of this one.
static crd_status refuse_key(crdi_element_reader* r, const crdi_json* n)
{
    for (int i = 0; connection_keys[i]; i++) {
        if (strcmp(connection_keys[i], n->key) == 0) {
            return crdi_element_fail(
                r, n, CRD_E_FORMAT,
                "this belongs to 'coupling' of a connection, not to an element");
        }
    }
    if (is_key_of_some(n->key)) {
        char list[200] = "";
        size_t at = 0;
        for (const crdi_element_option* k = r->algorithm->keys; k && k->name && at < sizeof list;
             k++) {
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s",
                                   at ? ", " : " Its own keys are ", k->name);
        }
        return crdi_element_fail(r, n, CRD_E_FORMAT, "the algorithm %s has no use for this key.%s",
                                 r->algorithm->name, list);
    }
    key_list near = {0};
    return crdi_element_fail(r, n, CRD_E_FORMAT, "unknown key%s",
                             crdi_element_hint(n->key, next_key, &near).text);
}

// The other keys are read where failures are noted.
static crd_status go_on(crdi_element_reader* r, crd_status st)
{
    if (st < 0) { r->wrong = st; }
    return crdi_go_on(r->ctx, st);
}

// In the order of the table, whatever that of the description is.
static crd_status read_keys(crdi_element_reader* r, const crdi_json* n,
                            const crdi_element_option* keys)
{
    for (const crdi_element_option* k = keys; k && k->name; k++) {
        const crdi_json* m = crdi_element_member(n, k->name);
        const crd_status st = m ? go_on(r, crdi_element_read_key(r, m, k)) : CRD_OK;
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// All keys but those that need the others.
static crd_status read_object(crdi_element_reader* r, const crdi_json* n)
{
    crd_status st = CRD_OK;
    if (n->kind != CRDI_JSON_OBJECT) {
        return crdi_element_expected(r, n, "a mapping such as {algorithm: eros}");
    }
    const crd_status chosen = read_algorithm(r, crdi_element_member(n, "algorithm"));
    CRD_TRY(go_on(r, chosen));
    for (const crdi_json* m = n->first; m; m = m->next) {
        const bool known = find_key(common, m->key) || find_key(r->algorithm->keys, m->key) ||
                           (chosen < 0 && is_key_of_some(m->key));
        if (!known) { CRD_TRY(go_on(r, refuse_key(r, m))); }
    }
    CRD_TRY(read_keys(r, n, r->algorithm->keys));
    CRD_TRY(read_keys(r, n, common));
    CRD_TRY(r->wrong); // what keys mean together is no question then
    if (r->algorithm->check_keys) { CRD_TRY(r->algorithm->check_keys(r, n)); }
fail:
    return st;
}

// A linear algorithm inside of another element: a word, or a mapping with its own keys.
crd_status crdi_element_read_nested(crdi_element_reader* r, const crdi_json* n, crd_element* out)
{
    *out = blank_element(r->ctx);
    crdi_element_reader inner = *r;
    inner.e = out;
    inner.inside = n->key;
    crd_status st = CRD_OK;
    if (n->kind == CRDI_JSON_TEXT) {
        crdi_json word = *n;
        word.key = NULL; // `inside` says it
        CRD_TRY(read_algorithm(&inner, &word));
        if (inner.algorithm->check_keys) { CRD_TRY(inner.algorithm->check_keys(&inner, &word)); }
    } else {
        crdi_json object = *n;
        object.key = NULL;
        for (const crdi_json* m = n->first; n->kind == CRDI_JSON_OBJECT && m; m = m->next) {
            if (find_key(common, m->key) && strcmp(m->key, "algorithm") != 0) {
                return crdi_element_fail(
                    &inner, m, CRD_E_FORMAT,
                    "this belongs to the element itself, expected keys of a linear "
                    "algorithm here");
            }
        }
        CRD_TRY(read_object(&inner, &object));
    }
    if (!inner.algorithm->weigh && !inner.algorithm->linear) {
        char all[200];
        return crdi_element_fail(r, n, CRD_E_FORMAT,
                                 "the algorithm %s is not linear, expected one of %s",
                                 inner.algorithm->name, crdi_design_names(all, sizeof all));
    }
fail:
    return st;
}

// Known latency in macro steps, -1.
int crdi_element_steps(const crd_element* e)
{
    if (e->latency_steps >= 0) { return e->latency_steps; }
    const double steps = ceil(e->latency / e->step - 1e-9);
    return steps >= 0 && steps <= CRD_LATENCY_MAX ? (int)steps : -1;
}

// k_max reaches up to the latency that was given.
static crd_status finish_latency(crdi_element_reader* r, const crdi_json* n)
{
    crd_element* e = r->e;
    const int k = crdi_element_steps(e);
    if (k <= e->options.k_max) { return CRD_OK; }
    const crdi_json* most = crdi_element_member(n, "latency-max");
    if (most) {
        return crdi_element_fail(r, most, CRD_E_RANGE, "%d is less than the latency of %d steps",
                                 e->options.k_max, k);
    }
    e->options.k_max = k;
    return CRD_OK;
}

// What create would say, said here with the line.
static crd_status try_design(crdi_element_reader* r, const crdi_json* n)
{
    crd_element* e = r->e;
    if (!r->algorithm->has_design || (e->bands_given && isnan(e->step))) { return CRD_OK; }
    crd_design d;
    crd_linear l = {0};
    const crdi_json* at = crdi_element_member(n, "bands");
    crd_status st = crdi_element_design(e, e->step, &d);
    if (st >= 0) { st = crd_linear_make(r->ctx, &d, e->options.k_max, &l); }
    crd_linear_clear(r->ctx, &l);
    return crdi_element_placed(r, at ? at : n, st);
}

// "wiener 25+rebase"
static crd_status name_it(crdi_element_reader* r)
{
    crd_element* e = r->e;
    const crd_element standard = blank_element(r->ctx);
    if (e->name[0]) {
        e->label = e->name;
        return CRD_OK;
    }
    const char* word = r->algorithm->name;
    const bool rebases = e->options.reaction == CRD_REACT_REBASE && !r->algorithm->learns;
    const char* tail = e->options.reaction == CRD_REACT_SWITCH ? switched : rebases ? rebased : "";
    const crdi_element_option* k = find_key(r->algorithm->keys, "taps");
    const int taps = k ? *(const int*)((const char*)e + k->offset) : 0;
    const bool usual = !k || taps == *(const int*)((const char*)&standard + k->offset);
    e->label = usual ? crdi_arena_format(r->arena, "%s%s", word, tail)
                     : crdi_arena_format(r->arena, "%s %d%s", word, taps, tail);
    return e->label ? CRD_OK : CRD_E_MEMORY;
}

static crd_element* new_element(crd_context* ctx)
{
    crd_element* e = crdi_new(ctx, sizeof *e);
    if (!e) { return NULL; }
    *e = blank_element(ctx);
    crd_arena_init(&e->arena, ctx);
    return e;
}

static crd_status read_element(crd_element* e, const crdi_json* root, const char* file)
{
    crd_status st = CRD_OK;
    crdi_element_reader r = {e->ctx, &e->arena, file ? file : "", "", e, &crdi_algorithm_auto,
                             CRD_OK};
    CRD_TRY(read_object(&r, root));
    CRD_TRY(finish_latency(&r, root));
    if (r.algorithm->complete) { CRD_TRY(r.algorithm->complete(&r, root)); }
    CRD_TRY(try_design(&r, root));
    CRD_TRY(name_it(&r));
fail:
    return st;
}

crd_status crd_element_parse(crd_context* ctx, const char* json, size_t length, const char* file,
                             int first_line, crd_element** out)
{
    crd_status st = CRD_OK;
    crdi_json* root = NULL;
    crd_element* e = new_element(ctx);
    if (!e) { return CRD_E_MEMORY; }
    const crdi_json_source source = {.file = file ? file : "", .first_line = first_line};
    CRD_TRY(crdi_json_parse(&e->arena, json, length, source, &root));
    CRD_TRY(read_element(e, root, file));
    *out = e;
    return CRD_OK;
fail:
    crd_element_destroy(e);
    return st;
}

crd_status crdi_element_read(crd_context* ctx, const crdi_json* root, const char* file,
                             crd_element** out)
{
    crd_element* e = new_element(ctx);
    if (!e) { return CRD_E_MEMORY; }
    const crd_status st = read_element(e, root, file);
    if (st < 0) {
        crd_element_destroy(e);
        return st;
    }
    *out = e;
    return CRD_OK;
}

crd_status crd_element_of_name(crd_context* ctx, const char* algorithm, crd_element** out)
{
    crd_text json;
    crd_text_init(&json, ctx);
    crdi_text_add(&json, "{\"algorithm\": ");
    crdi_text_json(&json, algorithm);
    crdi_text_add(&json, "}");
    crd_status st =
        json.failed ? CRD_E_MEMORY : crd_element_parse(ctx, json.data, json.length, "", 0, out);
    crd_text_clear(&json);
    if (st == CRD_E_FORMAT) { st = CRD_E_NOT_FOUND; }
    return st;
}

void crd_element_destroy(crd_element* e)
{
    if (!e) { return; }
    crd_arena_clear(&e->arena);
    crd_free(e->ctx, e);
}

// ---- use ---------------------------------------------------------------------------------------

int crd_element_latency(const crd_element* e, double step)
{
    return e->latency_steps >= 0 ? e->latency_steps
           : isnan(e->latency)   ? -1
                                 : (int)ceil(e->latency / step - 1e-9);
}

static crd_status own_step(const crd_element* e, double step, double* out)
{
    *out = isnan(step) ? e->step : step;
    if (*out > 0 && isfinite(*out) && isfinite(1 / *out)) { return CRD_OK; }
    return isnan(*out)
               ? crdi_fail(e->ctx, CRD_E_RANGE,
                           "%s: nothing says the macro step, expected the key 'step'", e->label)
               : crdi_fail(e->ctx, CRD_E_RANGE, "%s: step = %g, expected > 0", e->label, *out);
}

crd_status crdi_element_design(const crd_element* e, double step, crd_design* out)
{
    *out = e->options.design;
    for (int i = 0; e->bands_given && i < out->band_count; i++) {
        crd_band* b = &out->bands[i];
        if (!(b->high * step <= 3.1415926535897936)) {
            return crdi_fail(
                e->ctx, CRD_E_RANGE,
                "%s%sbands: band %d reaches up to %g rad/s, expected at most pi / step "
                "= %g rad/s, as the step is %g s",
                e->label, e->label[0] ? ": " : "", i + 1, b->high, 3.14159265358979323846 / step,
                step);
        }
        b->low *= step;
        b->high *= step;
    }
    return CRD_OK;
}

crd_status crd_element_options(const crd_element* e, double step, crd_coupling_options* out)
{
    crd_status st = CRD_OK;
    crd_coupling_options o = e->options;
    CRD_TRY(own_step(e, step, &o.step));
    CRD_TRY(crdi_element_design(e, o.step, &o.design));
    const double k = ceil(e->latency / o.step - 1e-9); // NaN: not given
    if (k > CRD_LATENCY_MAX) {
        return crdi_fail(e->ctx, CRD_E_RANGE,
                         "%s: a latency of %g s is %g macro steps of %g s, expected at most %d",
                         e->label, e->latency, k, o.step, CRD_LATENCY_MAX);
    }
    if (k > o.k_max) { o.k_max = (int)k; }
    *out = o;
fail:
    return st;
}

crd_status crd_element_linear(const crd_element* e, double step, int k, crd_linear* out)
{
    crd_status st = CRD_OK;
    crd_linear l = {0};
    const crd_coupling_options* o = &e->options;
    const crdi_algorithm* row = crdi_algorithm_of(o);
    if (!row->weigh && !row->linear) {
        char all[200];
        return crdi_fail(e->ctx, CRD_E_UNSUPPORTED,
                         "%s: the algorithm %s is not one linear function, expected %s or linear",
                         e->label, row->name, crdi_design_names(all, sizeof all));
    }
    if (o->reconstruction == CRD_RECONSTRUCT_SMOOTH) {
        return crdi_fail(e->ctx, CRD_E_UNSUPPORTED,
                         "%s: reconstruct: smooth has no linear form here, expected own or hold",
                         e->label);
    }
    if (row->linear) {
        if (k < 0 || k > CRD_LATENCY_MAX) {
            return crdi_fail(e->ctx, CRD_E_RANGE, "%s: k = %d, expected 0 .. %d", e->label, k,
                             CRD_LATENCY_MAX);
        }
        CRD_TRY(row->linear(e->ctx, o, k, &l));
        l.k = k;
    } else {
        crd_design d = o->design;
        if (e->bands_given) {
            double own = 0;
            CRD_TRY(own_step(e, step, &own));
            CRD_TRY(crdi_element_design(e, own, &d));
        }
        CRD_TRY(crd_linear_make(e->ctx, &d, k, &l));
    }
    if (o->reconstruction == CRD_RECONSTRUCT_HOLD) { l.A = NULL; } // in the block of a
    *out = l;
fail:
    return st;
}
