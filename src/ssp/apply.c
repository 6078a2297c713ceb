// A parameter set from outside: as if it were bound to the outermost system, behind all others.
//
// For this the flat system becomes a tree again, of one level: its units are the components, and
// its ports the connectors.
#include "ssp/read.h"

#include <string.h>

static crd_status apply_add_units(crdi_ssp_reader* r, crdi_ssp_element* root)
{
    const crd_system* s = r->s;
    const size_t n = (size_t)s->unit_count;
    crdi_ssp_element* units = crdi_arena_new(&r->arena, n, sizeof *units);
    root->children = crdi_arena_new(&r->arena, n, sizeof(crdi_ssp_element*));
    if (!units || !root->children) { return CRD_E_MEMORY; }
    for (int i = 0; i < s->unit_count; i++) {
        units[i] = (crdi_ssp_element){
            .kind = CRDI_ELEMENT_UNIT, .name = s->units[i].name, .depth = 1, .unit = i};
        root->children[i] = &units[i];
        const crd_status st = crdi_map_add(&root->child_map, units[i].name, i, NULL);
        if (st < 0) { return st; }
    }
    root->child_count = s->unit_count;
    return CRD_OK;
}

static crd_status add_connectors(crdi_ssp_reader* r, crdi_ssp_element* root)
{
    size_t count = 0;
    for (const crd_port* p = r->s->ports; p; p = p->next) {
        count++;
    }
    root->connectors = crdi_arena_new(&r->arena, count, sizeof *root->connectors);
    if (!root->connectors) { return CRD_E_MEMORY; }
    for (const crd_port* p = r->s->ports; p; p = p->next) {
        bool fresh = false;
        const crd_status st =
            crdi_map_add(&root->connector_map, p->name, root->connector_count, &fresh);
        if (st < 0) { return st; }
        if (fresh) { root->connectors[root->connector_count++].name = p->name; }
    }
    return CRD_OK;
}

static crd_status pass_down(crdi_ssp_reader* r, const crdi_ssp_element* root)
{
    for (const crd_port* p = r->s->ports; p; p = p->next) {
        const int32_t i = crdi_map_find(&root->connector_map, p->name);
        const crd_status st = crdi_ssp_pass_down(r, p, root->connectors[i].given);
        if (st < 0) { return st; }
    }
    return CRD_OK;
}

// All or nothing.
static crd_status append_settings(crdi_ssp_reader* r)
{
    crd_system* s = r->s;
    const size_t n = (size_t)s->unit_count;
    const crd_setting** all = crdi_arena_new(&r->arena, n, sizeof *all);
    int* counts = crdi_arena_new(&r->arena, n, sizeof *counts);
    if (!all || !counts) { return CRD_E_MEMORY; }
    size_t at = 0;
    for (int i = 0; i < s->unit_count; i++) {
        counts[i] = s->units[i].parameter_count;
        all[i] = crdi_ssp_take_settings(r, i, &at, s->units[i].parameters, &counts[i]);
        if (!all[i]) { return CRD_E_MEMORY; }
    }
    for (int i = 0; i < s->unit_count; i++) {
        s->units[i].parameters = all[i];
        s->units[i].parameter_count = counts[i];
    }
    return CRD_OK;
}

crd_status crd_ssp_apply(crd_system* s, const char* ssv, const char* ssm)
{
    crd_status st = CRD_OK;
    crdi_ssp_reader r = {.ctx = s->ctx, .s = s};
    crdi_ssp_element root = {.kind = s->single ? CRDI_ELEMENT_UNIT : CRDI_ELEMENT_SYSTEM};
    crdi_document *set = NULL, *mapping = NULL;
    crdi_ssp_value* values = NULL;
    int count = 0;
    crd_arena_init(&r.arena, s->ctx);
    crdi_map_init(&root.connector_map, s->ctx);
    crdi_map_init(&root.child_map, s->ctx);
    r.elements = &root; // crdi_ssp_clear finds its maps
    CRD_TRY(apply_add_units(&r, &root));
    CRD_TRY(add_connectors(&r, &root));
    CRD_TRY(crdi_ssp_open(&r, ssv, ssv, NULL, CRDI_ROOT_SSV, &set));
    if (ssm) { CRD_TRY(crdi_ssp_open(&r, ssm, ssm, NULL, CRDI_ROOT_SSM, &mapping)); }
    CRD_TRY(crdi_ssp_read_set(&r, set, set->xml->root, "", &values, &count));
    CRD_TRY(
        crdi_ssp_assign(&r, &root, values, count, mapping, mapping ? mapping->xml->root : NULL));
    CRD_TRY(pass_down(&r, &root));
    if (count > 0 && r.entry_count == 0) {
        crdi_log(s->ctx, CRD_LOG_WARNING, "%s: nothing in it fits the system", ssv);
    }
    crdi_ssp_sort_entries(&r);
    CRD_TRY(append_settings(&r));
fail:
    crdi_ssp_clear(&r);
    return st;
}
