// What is in a parameter set or a mapping, for listings.
#include "ssp/read.h"

#include <string.h>

static crd_status list_set(crdi_ssp_reader* r, const crdi_document* d, crd_ssp_parameters* p)
{
    crdi_ssp_value* values = NULL;
    const crd_status st = crdi_ssp_read_set(r, d, d->xml->root, "", &values, &p->count);
    if (st < 0) { return st; }
    crd_ssp_parameter* items = crdi_arena_new(&r->s->arena, (size_t)p->count, sizeof *items);
    if (!items) { return CRD_E_MEMORY; }
    p->items = items;
    for (int i = 0; i < p->count; i++) {
        crd_ssp_parameter* k = &items[i];
        k->name = crdi_ssp_keep(r, values[i].name);
        k->type = crdi_ssp_keep(r, values[i].type);
        k->value = crdi_ssp_join(r, &values[i]);
        k->unit = values[i].unit;
        k->change = "";
        if (!k->name || !k->type || !k->value) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

static void put_change(crd_text* t, const crd_transformation* change)
{
    if (change->has_transformation) {
        char gain[32], offset[32];
        crdi_format_double(gain, change->gain);
        crdi_format_double(offset, change->offset < 0 ? -change->offset : change->offset);
        crdi_text_add(t, "%s x", gain);
        if (change->offset != 0) {
            crdi_text_add(t, " %c %s", change->offset < 0 ? '-' : '+', offset);
        }
    }
    for (int i = 0; i < change->map_count; i++) {
        crdi_text_add(t, "%s%s -> %s", i ? ", " : "", change->map[i].from, change->map[i].to);
    }
    if (!change->convert_units) {
        crdi_text_add(t, "%sunits are not converted", t->length ? ", " : "");
    }
}

static crd_status list_entry(crdi_ssp_reader* r, const crdi_xml_element* e, crd_ssp_parameter* k)
{
    crd_transformation change;
    const crd_status st = crdi_ssp_transformation(r, e, &change);
    if (st < 0) { return st; }
    crd_text t;
    crd_text_init(&t, r->ctx);
    put_change(&t, &change);
    k->name = crdi_ssp_keep(r, crdi_xml_get(e, "target"));
    k->value = crdi_ssp_keep(r, crdi_xml_get(e, "source"));
    k->type = k->unit = "";
    k->change = t.failed ? NULL : crdi_ssp_keep(r, t.data ? t.data : "");
    crd_text_clear(&t);
    return k->name && k->value && k->change ? CRD_OK : CRD_E_MEMORY;
}

static crd_status list_mapping(crdi_ssp_reader* r, const crdi_document* d, crd_ssp_parameters* p)
{
    const crdi_xml_element* first = crdi_xml_child(d->xml->root, CRDI_SSM, "MappingEntry");
    size_t count = 0;
    for (const crdi_xml_element* e = first; e; e = crdi_xml_same(e)) {
        count++;
    }
    crd_ssp_parameter* items = crdi_arena_new(&r->s->arena, count, sizeof *items);
    if (!items) { return CRD_E_MEMORY; }
    p->items = items;
    for (const crdi_xml_element* e = first; e; e = crdi_xml_same(e)) {
        const crd_status st = list_entry(r, e, &items[p->count++]);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

static const char* keep_attribute(crdi_ssp_reader* r, const crdi_document* d, const char* name)
{
    const char* text = crdi_xml_get(d->xml->root, name);
    return crdi_ssp_keep(r, text ? text : "");
}

crd_status crd_ssp_list(crd_context* ctx, crd_ssp_kind kind, const char* path,
                        crd_ssp_parameters** out)
{
    crd_status st = CRD_OK;
    crd_ssp_parameters* p = crdi_new(ctx, sizeof *p);
    crdi_document* d = NULL;
    crdi_ssp_reader r = {.ctx = ctx};
    crd_arena_init(&r.arena, ctx);
    if (!p) { return CRD_E_MEMORY; }
    CRD_TRY(crd_system_create(ctx, &p->owner));
    r.s = p->owner;
    p->mapping = kind == CRD_SSP_SSM;
    CRD_TRY(crdi_ssp_open(&r, path, path, NULL, p->mapping ? CRDI_ROOT_SSM : CRDI_ROOT_SSV, &d));
    p->path = crdi_ssp_keep(&r, path);
    p->version = keep_attribute(&r, d, "version");
    p->name = keep_attribute(&r, d, "name");
    p->description = keep_attribute(&r, d, "description");
    if (!p->path || !p->version || !p->name || !p->description) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(p->mapping ? list_mapping(&r, d, p) : list_set(&r, d, p));
    crdi_ssp_clear(&r);
    *out = p;
    return CRD_OK;
fail:
    crdi_ssp_clear(&r);
    crd_system_destroy(p->owner);
    crd_free(ctx, p);
    return st;
}

void crd_ssp_parameters_destroy(crd_ssp_parameters* p)
{
    if (!p) { return; }
    crd_context* ctx = p->owner->ctx;
    crd_system_destroy(p->owner);
    crd_free(ctx, p);
}
