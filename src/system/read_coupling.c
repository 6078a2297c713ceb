// coupling: of a connection. What an element means is another module's business: here it becomes a
// text, and only what surrounds it is read.
#include "system/read.h"

#include "shared/base_findings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LARGEST = 4 << 20 }; // bytes of an element file

typedef struct coupling_draft {
    const char* file;
    const crdi_node *channel, *shadow;
    bool record;
    const char* model;
    crd_coupling_target target;
} coupling_draft;

static const char* const targets[] = {"usual", "now", "round-trip", NULL};

static const crdi_key coupling_keys[] = {
    {KEY("file", PATH, coupling_draft, file)},
    {KEY("channel", NODE, coupling_draft, channel)},
    {KEY("shadow", NODE, coupling_draft, shadow)},
    {KEY("record", BOOL, coupling_draft, record)},
    {KEY("model", TEXT, coupling_draft, model)},
    {KEY("target", CHOICE, coupling_draft, target), .choices = targets},
};

static const crdi_table coupling_table = {"coupling", coupling_keys, COUNT(coupling_keys)};

// The same names: what does not belong to the element.
static const char* const not_of_the_element[] = {"file",  "channel", "shadow", "record",
                                                 "model", "target",  NULL};
// What a link does to the samples is said one level further in; told once, and not by the element.
static const char* const beside_the_element[] = {"file",  "channel", "shadow",    "record",
                                                 "model", "target",  "delay",     "jitter",
                                                 "loss",  "burst",   "duplicate", NULL};
_Static_assert(COUNT(not_of_the_element) == COUNT(coupling_keys) + 1, "a name for each key");

static const crdi_key channel_keys[] = {
    {KEY("step", TIME, crd_channel_spec, step), .range = CRDI_POSITIVE},
    {KEY("delay", TIME, crd_channel_spec, delay), .range = CRDI_NOT_NEGATIVE},
    {KEY("jitter", TIME, crd_channel_spec, jitter), .range = CRDI_NOT_NEGATIVE},
    {KEY("loss", NUMBER, crd_channel_spec, loss), .range = CRDI_NOT_NEGATIVE},
    {KEY("burst", INT, crd_channel_spec, burst), .min = 1, .max = 10000},
    {KEY("duplicate", NUMBER, crd_channel_spec, duplicate), .range = CRDI_NOT_NEGATIVE},
    {KEY("seed", SEED, crd_channel_spec, seed)},
};

const crdi_table crdi_channel_table = {"channel", channel_keys, COUNT(channel_keys)};

const crd_channel_spec crdi_no_channel = {.step = NAN, .burst = 1, .seed = 1};

void crdi_flow_channel(crdi_flow* f, const crd_channel_spec* c)
{
    crdi_flow_table(f, &crdi_channel_table, c, &crdi_no_channel);
}

crd_status crdi_read_channel(crdi_reader* r, const crdi_node* n, crd_channel_spec* c)
{
    crd_status st = CRD_OK;
    const size_t mark = crdi_path_enter(r, "channel");
    *c = crdi_no_channel;
    CRD_TRY(crdi_read_mapping(r, n, &crdi_channel_table, c, NULL));
    if (c->jitter > c->delay) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "jitter"),
                              "jitter: %g s is more than the delay of %g s, expected at most that: "
                              "no sample arrives before it was taken",
                              c->jitter, c->delay);
    }
    const struct {
        const char* name;
        double x;
    } parts[] = {{"loss", c->loss}, {"duplicate", c->duplicate}};
    for (int i = 0; i < 2; i++) {
        if (parts[i].x > 1) {
            return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, parts[i].name),
                                  "%s: %g, expected a part from 0 to 1 such as 0.05 or 5 %%",
                                  parts[i].name, parts[i].x);
        }
    }
    crdi_path_leave(r, mark);
fail:
    return st;
}

// ---- elements as texts -------------------------------------------------------------------------

static crd_status store_element(crdi_reader* r, crd_text* text, const char** out)
{
    *out = text->failed ? NULL : crdi_arena_text(r->arena, text->data, text->length);
    crd_text_clear(text);
    return *out ? CRD_OK : CRD_E_MEMORY;
}

static crd_status element_of_node(crdi_reader* r, const crdi_node* n, const char* const* without,
                                  const char** out, crd_place* place)
{
    crd_text text;
    crd_text_init(&text, r->ctx);
    *place = (crd_place){r->file, n->line};
    crdi_node_json(n, n->line, without, &text);
    return store_element(r, &text, out);
}

// A file is read here, so that the description alone says the whole system.
static crd_status element_of_file(crdi_reader* r, int line, const char* path, const char** out,
                                  crd_place* place)
{
    crd_status st = CRD_OK;
    crd_text yaml, text;
    crd_text_init(&yaml, r->ctx);
    crd_text_init(&text, r->ctx);
    *place = (crd_place){path, 1};
    st = crdi_file_read(
        r->ctx, path, &(crdi_file_need){.what = "the file of an element", .most = LARGEST}, &yaml);
    if (st < 0 && st != CRD_E_MEMORY) { // where it is named
        char why[300];
        snprintf(why, sizeof why, "%s", crd_error_text(r->ctx));
        CRD_TRY(crdi_read_fail(r, st, line, "%s", why));
    }
    CRD_TRY(st);
    CRD_TRY(crd_yaml_to_json(r->ctx, yaml.data, yaml.length, *place, &text));
    CRD_TRY(store_element(r, &text, out));
fail:
    crd_text_clear(&text);
    crd_text_clear(&yaml);
    return st;
}

static bool is_file(const char* text)
{
    const char* const endings[] = {".yaml", ".yml", ".json"};
    const size_t n = strlen(text);
    bool file = strchr(text, '/') != NULL;
    for (int i = 0; i < 3; i++) {
        const size_t k = strlen(endings[i]);
        file = file || (n > k && strcasecmp(text + n - k, endings[i]) == 0);
    }
    return file;
}

// The word of an algorithm, or the path of a file.
static crd_status element_of_scalar(crdi_reader* r, const crdi_node* n, const char** out,
                                    crd_place* place)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_expect_kind(r, n, CRDI_SCALAR,
                             "an algorithm such as eros, an element file, or a mapping"));
    if (is_file(n->text)) {
        const char* path = NULL;
        CRD_TRY(crdi_read_path(r, n, &path));
        return element_of_file(r, n->line, path, out, place);
    }
    crd_text text;
    crd_text_init(&text, r->ctx);
    crdi_text_add(&text, "{\"algorithm\": ");
    crdi_text_json(&text, n->text);
    crdi_text_put(&text, "}", 1);
    *place = (crd_place){r->file, n->line};
    return store_element(r, &text, out);
fail:
    return st;
}

static crd_status read_shadows(crdi_reader* r, const crdi_node* n, crd_coupling_spec* c)
{
    crd_status st = CRD_OK;
    const size_t mark = crdi_path_enter(r, "shadow");
    const bool list = n->kind == CRDI_LIST;
    const int count = list ? n->count : 1;
    if (list && count == 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "an empty list, expected elements such as [zoh, eros]");
    }
    const char** shadows = crdi_arena_new(r->arena, (size_t)count, sizeof *shadows);
    crd_place* places = shadows ? crdi_arena_new(r->arena, (size_t)count, sizeof *places) : NULL;
    if (!places) { return CRD_E_MEMORY; }
    const crdi_node* m = list ? n->first : n;
    for (int i = 0; i < count; i++, m = m->next) {
        const size_t inner = crdi_path_enter_item(r, i);
        if (m->kind == CRDI_MAPPING) {
            for (int j = 0; not_of_the_element[j]; j++) {
                if (crdi_node_get(m, not_of_the_element[j])) {
                    return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(m, not_of_the_element[j]),
                                          "'%s' has no place in a shadow, expected an element",
                                          not_of_the_element[j]);
                }
            }
            CRD_TRY(element_of_node(r, m, not_of_the_element, &shadows[i], &places[i]));
        } else {
            CRD_TRY(element_of_scalar(r, m, &shadows[i], &places[i]));
        }
        crdi_path_leave(r, inner);
    }
    c->shadows = shadows;
    c->shadow_places = places;
    c->shadow_count = count;
    crdi_path_leave(r, mark);
fail:
    return st;
}

// ---- the whole ---------------------------------------------------------------------------------

// The keys that are not the element's; `*own`: there are others.
static crd_status read_surroundings(crdi_reader* r, const crdi_node* n, coupling_draft* d,
                                    bool* own)
{
    crdi_node rest = *n;
    crdi_node* last = NULL;
    rest.first = rest.last = NULL;
    rest.count = 0;
    *own = false;
    for (const crdi_node* m = n->first; m; m = m->next) {
        int i = 0;
        while (not_of_the_element[i] && strcmp(not_of_the_element[i], m->key) != 0) {
            i++;
        }
        if (!not_of_the_element[i]) {
            *own = true;
            continue;
        }
        crdi_node* copy = crdi_arena_new(r->scratch, 1, sizeof *copy);
        if (!copy) { return CRD_E_MEMORY; }
        *copy = *m;
        copy->next = NULL;
        if (last) {
            last->next = copy;
        } else {
            rest.first = copy;
        }
        last = copy;
        rest.count++;
    }
    return crdi_read_mapping(r, &rest, &coupling_table, d, NULL);
}

static crd_status check_link_keys(crdi_reader* r, const crdi_node* n)
{
    crd_status st = CRD_OK;
    for (int i = COUNT(coupling_keys); st >= 0 && beside_the_element[i]; i++) {
        const char* key = beside_the_element[i];
        if (!crdi_node_get(n, key)) { continue; }
        st = crdi_go_on(
            r->ctx,
            crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, key),
                           "unknown key '%s', it belongs to channel: { channel: { %s: ... } }", key,
                           key));
    }
    return st;
}

crd_status crdi_read_coupling(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_status st = CRD_OK, wrong = CRD_OK; // what was noted
    crd_coupling_spec* c = crdi_arena_new(r->arena, 1, sizeof *c);
    if (!c) { return CRD_E_MEMORY; }
    c->channel = crdi_no_channel;
    c->record = true;
    c->origin = (crd_place){r->file, n->line};
    if (n->kind != CRDI_MAPPING) {
        CRD_TRY(element_of_scalar(r, n, &c->element, &c->place));
    } else {
        coupling_draft d = {.record = true};
        bool own = false;
        CRD_TRY(check_link_keys(r, n));
        wrong = read_surroundings(r, n, &d, &own);
        CRD_TRY(crdi_go_on(r->ctx, wrong)); // the element is looked at all the same
        if (d.file && own) {
            return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "file"),
                                  "file: the element is in '%s', expected no other keys of it here "
                                  "(channel, shadow and record may stand beside, and model "
                                  "and target)",
                                  crdi_clip(d.file).text);
        }
        if (d.file) {
            CRD_TRY(element_of_file(r, crdi_line_of(n, "file"), d.file, &c->element, &c->place));
        } else {
            CRD_TRY(element_of_node(r, n, beside_the_element, &c->element, &c->place));
        }
        c->record = d.record;
        c->model = d.model;
        c->target = d.target;
        const size_t mark = r->path_length;
        const crd_status channel =
            d.channel ? crdi_read_channel(r, d.channel, &c->channel) : CRD_OK;
        CRD_TRY(crdi_go_on(r->ctx, channel));
        c->has_channel = d.channel && channel >= 0;
        wrong = channel < 0 ? channel : wrong;
        crdi_path_leave(r, mark);
        const crd_status shadow = d.shadow ? read_shadows(r, d.shadow, c) : CRD_OK;
        CRD_TRY(crdi_go_on(r->ctx, shadow));
        wrong = shadow < 0 ? shadow : wrong;
        crdi_path_leave(r, mark);
    }
    *(const crd_coupling_spec**)out = c;
    st = wrong;
fail:
    return st;
}
