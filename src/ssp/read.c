// A package into a system: all stations in order.
#include "ssp/read.h"
#include "shared/base_path.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NOTES = 64 << 20 }; // bytes of all annotations that are kept

// ---- units -------------------------------------------------------------------------------------

static void number_units(crdi_ssp_reader* r)
{
    int n = r->s->unit_count;
    for (crdi_ssp_element* e = r->elements; e; e = e->next_of_all) {
        if (e->kind == CRDI_ELEMENT_UNIT) { e->unit = n++; }
    }
}

const crd_setting* crdi_ssp_take_settings(crdi_ssp_reader* r, int unit, size_t* at,
                                          const crd_setting* before, int* count)
{
    size_t end = *at;
    while (end < r->entry_count && r->entries[end].unit == unit) {
        end++;
    }
    const size_t n = (size_t)*count;
    crd_setting* all = crdi_arena_new(&r->s->arena, n + end - *at, sizeof *all);
    if (!all) { return NULL; }
    if (n) { memcpy(all, before, n * sizeof *all); }
    for (size_t i = *at; i < end; i++) {
        all[n + i - *at] = r->entries[i].setting;
    }
    *count += (int)(end - *at);
    *at = end;
    return all;
}

// Steps as tools of the Open Simulation Platform and their kin say them, in annotations:
//   DefaultExperiment: <Algorithm><FixedStepAlgorithm baseStepSize="1e-3"/></Algorithm>
//   Component: <StepSizeHint value="1e-2"/>
// By their names alone: prefix and type of the annotation differ from tool to tool.
static const crdi_xml_element* find_hint(const crdi_xml_element* e, const char* name, int depth)
{
    const crdi_xml_element* found = NULL;
    for (const crdi_xml_element* c = e->first; c && !found && depth < 3; c = c->next) {
        found = strcmp(c->name, name) == 0 ? c : find_hint(c, name, depth + 1);
    }
    return found;
}

static crd_status read_hint(crdi_ssp_reader* r, const crdi_document* d,
                            const crdi_xml_element* owner, const char* name, const char* attribute,
                            double* out)
{
    const crdi_xml_element* list = owner ? crdi_xml_child(owner, CRDI_SSD, "Annotations") : NULL;
    const crdi_xml_element* e = list ? find_hint(list, name, 0) : NULL;
    const char* text = e ? crdi_xml_get(e, attribute) : NULL;
    if (!e) { return CRD_OK; }
    double x = NAN;
    if (!text || !crdi_parse_double(text, strlen(text), &x) || !(x > 0 && isfinite(x))) {
        return crdi_ssp_bad(r, CRD_E_RANGE, d, e, "%s: %s = '%s', expected a step in seconds", name,
                            attribute, text ? crdi_show(text).text : "");
    }
    *out = x;
    return CRD_OK;
}

// Before the units: their hints become multiples of the common step, as there.
static crd_status read_base_step(crdi_ssp_reader* r, const crdi_document* d)
{
    const crdi_xml_element* e = crdi_xml_child(d->xml->root, CRDI_SSD, "DefaultExperiment");
    const crdi_xml_element* list = e ? crdi_xml_child(e, CRDI_SSD, "Annotations") : NULL;
    const crdi_xml_element* other = list ? find_hint(list, "Algorithm", 0) : NULL;
    if (other && other->first && strcmp(other->first->name, "FixedStepAlgorithm") != 0) {
        crdi_log(r->ctx, CRD_LOG_WARNING,
                 "%s:%d: the algorithm '%s' is not known here, the step is chosen without it",
                 d->shown, other->line, crdi_show(other->first->name).text);
    }
    return read_hint(r, d, e, "FixedStepAlgorithm", "baseStepSize", &r->s->run.step);
}

double crdi_ssp_multiple(double base, double hint)
{
    const double n = nearbyint(hint / base);
    return isnan(base) ? hint : base * (n > 1 ? n : 1);
}

static crd_status ssp_read_add_units(crdi_ssp_reader* r)
{
    size_t at = 0;
    for (const crdi_ssp_element* e = r->elements; e; e = e->next_of_all) {
        if (e->kind != CRDI_ELEMENT_UNIT) { continue; }
        crd_unit_spec u = crd_unit_spec_defaults();
        u.name = e->full;
        u.source = e->source;
        u.path = e->path;
        u.shown = e->shown;
        u.interface = e->interface;
        u.place = (crd_place){e->document->shown, e->xml->line};
        u.parameters = crdi_ssp_take_settings(r, e->unit, &at, NULL, &u.parameter_count);
        if (!u.parameters) { return CRD_E_MEMORY; }
        crd_status st = read_hint(r, e->document, e->xml, "StepSizeHint", "value", &u.step);
        if (u.step > 0) { u.step = crdi_ssp_multiple(r->s->run.step, u.step); }
        if (st >= 0) { st = crd_system_add_unit(r->s, &u, NULL); }
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// ---- annotations -------------------------------------------------------------------------------

typedef struct note_list {
    crd_note* items;
    size_t count, capacity, bytes;
} note_list;

static crd_status keep_note(crdi_ssp_reader* r, note_list* l, const crdi_document* d,
                            const crdi_xml_element* e, int unit, const char* system)
{
    crd_text t;
    crd_text_init(&t, r->ctx);
    crdi_xml_copy(d->xml, e, &t);
    crd_note* grown = crdi_grow(r->ctx, l->items, &l->capacity, l->count + 1, sizeof *grown);
    crd_status st = t.failed || !grown ? CRD_E_MEMORY : CRD_OK;
    if (grown) { l->items = grown; }
    if (st >= 0) {
        crd_note* n = &l->items[l->count];
        n->unit = unit;
        n->system = crdi_ssp_keep(r, system);
        n->type = crdi_ssp_keep(r, crdi_xml_get(e, "type"));
        n->xml = crdi_ssp_keep(r, t.data);
        st = n->system && n->type && n->xml ? CRD_OK : CRD_E_MEMORY;
        l->count++;
        l->bytes += t.length;
    }
    crd_text_clear(&t);
    if (st >= 0 && l->bytes > MAX_NOTES) {
        return crdi_ssp_bad(r, CRD_E_FORMAT, d, e, "more than %d bytes of annotations", MAX_NOTES);
    }
    return st;
}

static crd_status keep_notes(crdi_ssp_reader* r, note_list* l, const crdi_document* d,
                             const crdi_xml_element* owner, int unit, const char* system)
{
    const crdi_xml_element* list = owner ? crdi_xml_child(owner, CRDI_SSD, "Annotations") : NULL;
    const crdi_xml_element* e = list ? crdi_xml_child(list, CRDI_SSC, "Annotation") : NULL;
    for (; e; e = crdi_xml_same(e)) {
        if (strcmp(crdi_xml_get(e, "type"), CRD_SSP_ANNOTATION) == 0) { continue; }
        const crd_status st = keep_note(r, l, d, e, unit, system);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// Those of the file, of its systems and of the components.
static crd_status read_notes(crdi_ssp_reader* r, const crdi_document* d)
{
    crd_status st = CRD_OK;
    note_list l = {0};
    const crdi_xml_element* root = d->xml->root;
    CRD_TRY(keep_notes(r, &l, d, root, -1, ""));
    CRD_TRY(keep_notes(r, &l, d, r->root->xml, -1, ""));
    CRD_TRY(keep_notes(r, &l, d, crdi_xml_child(root, CRDI_SSD, "DefaultExperiment"), -1, ""));
    for (const crdi_ssp_element* e = r->elements; e; e = e->next_of_all) {
        if (e->kind == CRDI_ELEMENT_UNIT) {
            CRD_TRY(keep_notes(r, &l, e->document, e->xml, e->unit, ""));
        } else if (e->kind == CRDI_ELEMENT_SYSTEM && e->depth > 0) {
            CRD_TRY(keep_notes(r, &l, e->document, e->xml, -1, e->full));
        }
    }
    crd_note* all = crdi_arena_new(&r->s->arena, l.count, sizeof *all);
    if (!all) { CRD_TRY(CRD_E_MEMORY); }
    if (l.count) { memcpy(all, l.items, l.count * sizeof *all); }
    r->s->notes = all;
    r->s->note_count = (int)l.count;
fail:
    crd_free(r->ctx, l.items);
    return st;
}

// The line in which the text of an element begins: that of the end of its tag.
static int text_line(const crdi_xml* x, const crdi_xml_element* e)
{
    int line = e->line;
    char quote = 0;
    for (const char* p = x->source + e->begin; *p && (quote || *p != '>'); p++) {
        if (*p == '\n') { line++; }
        if (quote ? *p == quote : *p == '"' || *p == '\'') { quote = quote ? 0 : *p; }
    }
    return line;
}

// The file of a message, as the user knows it: not where it was unpacked.
static crd_status show_place(crdi_ssp_reader* r, const crdi_document* d, crd_status st)
{
    const size_t n = strlen(d->path);
    char text[1024];
    snprintf(text, sizeof text, "%s", crd_error_text(r->ctx));
    if (st == CRD_E_MEMORY || !n || strncmp(text, d->path, n) != 0) { return st; }
    return crdi_fail(r->ctx, st, "%s%s", d->shown, text + n);
}

// Results go beside the package, not into the folder that is gone after the run.
static crd_status move_results(crdi_ssp_reader* r, const crdi_document* d, const char* package)
{
    crd_results_spec* out = &r->s->results;
    const size_t n = strlen(d->folder);
    if (!out->path || !r->s->scratch || !d->root ||
        strncmp(d->folder, r->s->scratch, strlen(r->s->scratch)) != 0 ||
        strncmp(out->path, d->folder, n) != 0) {
        return CRD_OK;
    }
    out->path = crdi_arena_format(&r->s->arena, "%.*s%s", (int)crdi_folder_length(package), package,
                                  out->path + n);
    return out->path ? CRD_OK : CRD_E_MEMORY;
}

static crd_status amend(crdi_ssp_reader* r, const crdi_document* d, const char* package)
{
    const crdi_xml_element* list = crdi_xml_child(d->xml->root, CRDI_SSD, "Annotations");
    const crdi_xml_element* e = list ? crdi_xml_child(list, CRDI_SSC, "Annotation") : NULL;
    for (; e; e = crdi_xml_same(e)) {
        if (strcmp(crdi_xml_get(e, "type"), CRD_SSP_ANNOTATION) != 0) { continue; }
        const crdi_xml_element* yaml = crdi_xml_child(e, CRD_SSP_SPACE, "yaml");
        if (!yaml) {
            return crdi_ssp_bad(r, CRD_E_FORMAT, d, e,
                                "annotation '%s' without an element yaml of the namespace '%s'",
                                CRD_SSP_ANNOTATION, CRD_SSP_SPACE);
        }
        if (!yaml->text[0]) { continue; }
        const char* path = d->path[0] ? d->path : d->shown;
        const crd_status st =
            crd_system_amend(r->s, yaml->text, strlen(yaml->text), path, text_line(d->xml, yaml));
        if (st < 0) { return show_place(r, d, st); }
    }
    return move_results(r, d, package);
}

// ---- the rest of the root ----------------------------------------------------------------------

static crd_status read_experiment(crdi_ssp_reader* r, const crdi_document* d)
{
    const crdi_xml_element* e = crdi_xml_child(d->xml->root, CRDI_SSD, "DefaultExperiment");
    if (!e) { return CRD_OK; }
    static const char* const names[] = {"startTime", "stopTime"};
    double* const to[] = {&r->s->run.start, &r->s->run.stop};
    for (int i = 0; i < 2; i++) {
        const char* text = crdi_xml_get(e, names[i]);
        if (!text) { continue; }
        text += strspn(text, " \t\r\n+");
        double x = NAN;
        if (!crdi_parse_double(text, strcspn(text, " \t\r\n"), &x) || !isfinite(x)) {
            return crdi_ssp_bad(r, CRD_E_RANGE, d, e, "%s = %s, expected a time in seconds",
                                names[i], crdi_show(text).text);
        }
        *to[i] = x;
    }
    if (r->s->run.stop < (isnan(r->s->run.start) ? 0 : r->s->run.start)) {
        return crdi_ssp_bad(r, CRD_E_RANGE, d, e, "stopTime = %g comes before startTime = %g",
                            r->s->run.stop, isnan(r->s->run.start) ? 0 : r->s->run.start);
    }
    return CRD_OK;
}

crd_status crdi_ssp_names(crdi_ssp_reader* r, const char* title, const char* path)
{
    crd_system* s = r->s;
    if (!s->title[0]) { s->title = crdi_ssp_keep(r, title); }
    if (!s->base[0]) { s->base = crdi_ssp_keep(r, path); }
    if (!s->file[0]) { s->file = crdi_ssp_keep(r, path); }
    if (s->title && s->base && s->file) { return CRD_OK; }
    s->title = s->title ? s->title : "";
    s->base = s->base ? s->base : "";
    s->file = s->file ? s->file : "";
    return CRD_E_MEMORY;
}

static crd_status read_document(crdi_ssp_reader* r, crdi_document* d, const char* path)
{
    crd_status st = CRD_OK;
    CRD_TRY(crdi_ssp_names(r, crdi_xml_get(d->xml->root, "name"), path));
    CRD_TRY(crdi_ssp_build(r, d));
    CRD_TRY(crdi_ssp_connect(r));
    number_units(r);
    CRD_TRY(crdi_ssp_bind(r));
    CRD_TRY(read_base_step(r, d));
    CRD_TRY(ssp_read_add_units(r));
    CRD_TRY(read_experiment(r, d));
    CRD_TRY(read_notes(r, d));
    // Our annotation may bring units (signals, recordings) and options of connections. So those
    // between units that are there come first, then the annotation, then those that need it.
    CRD_TRY(crdi_ssp_add_connections(r, false));
    r->own_connections = r->s->connection_count;
    CRD_TRY(amend(r, d, path));
    CRD_TRY(crdi_ssp_add_connections(r, true));
fail:
    return st;
}

void crdi_ssp_clear(crdi_ssp_reader* r)
{
    crdi_ssp_clear_tree(r);
    for (crdi_ssp_units* u = r->units; u; u = u->next) {
        crdi_map_clear(&u->names);
    }
    for (crdi_document* d = r->documents; d; d = d->next) {
        crdi_map_clear(&d->ids);
        crdi_xml_destroy(d->xml);
    }
    crd_free(r->ctx, r->driven);
    crd_free(r->ctx, r->entries);
    crd_arena_clear(&r->arena);
}

crd_status crd_ssp_read(crd_system* s, const char* path, const char* variant, crd_place place)
{
    crd_status st = CRD_OK;
    crdi_ssp_reader r = {.ctx = s->ctx, .s = s};
    crd_arena_init(&r.arena, s->ctx);
    crdi_ssp_place at;
    crdi_document* d = NULL;
    char osp[PATH_MAX];
    if (!variant && crdi_osp_find(path, osp)) { return crdi_osp_read(s, osp); }
    st = crdi_ssp_locate(&r, path, path, variant, &at);
    if (st < 0) {
        if (place.line > 0 && st != CRD_E_MEMORY) { // who wanted it
            st = crdi_fail_in(s->ctx, st, "%s:%d", place.file, place.line);
        }
        goto fail;
    }
    CRD_TRY(crdi_ssp_open(&r, at.path, at.shown, at.root, CRDI_ROOT_SSD, &d));
    CRD_TRY(read_document(&r, d, path));
fail:
    crdi_ssp_clear(&r);
    return st;
}

crd_status crdi_ssp_read_text(crd_system* s, const char* text, size_t length, const char* shown)
{
    crdi_ssp_reader r = {.ctx = s->ctx, .s = s, .no_files = true};
    crd_arena_init(&r.arena, s->ctx);
    crdi_document* d = NULL;
    crd_status st = crdi_ssp_add_text(&r, text, length, "", shown, NULL, CRDI_ROOT_SSD, &d);
    if (st >= 0) { st = read_document(&r, d, shown); }
    crdi_ssp_clear(&r);
    return st;
}

crd_status crd_ssp_load(crd_context* ctx, const char* path, const char* variant, crd_system** out)
{
    crd_system* s = NULL;
    crd_status st = crd_system_create(ctx, &s);
    if (st < 0) { return st; }
    st = crd_ssp_read(s, path, variant, (crd_place){"", 0});
    if (st < 0) {
        crd_system_destroy(s);
        return st;
    }
    *out = s;
    return CRD_OK;
}

crd_status crd_ssp_parse(crd_context* ctx, crd_ssp_kind kind, const char* text, size_t length,
                         const char* name_in_messages)
{
    static const crdi_ssp_root roots[] = {CRDI_ROOT_SSD, CRDI_ROOT_SSV, CRDI_ROOT_SSM};
    crdi_xml* x = NULL;
    crd_status st = crdi_xml_parse(ctx, text, length, name_in_messages, &x);
    if (st >= 0) { st = crdi_ssp_check(ctx, x, roots[kind]); }
    crdi_xml_destroy(x);
    return st;
}
