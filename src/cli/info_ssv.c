// cardan info on a parameter set or a mapping.
#include "cardan/ssp.h"
#include "cli/info.h"

static void print_values(crdi_grid* g, const crd_ssp_parameters* p, const crdi_list* patterns)
{
    static const char* const titles[] = {"parameter", "type", "value", "unit"};
    for (int i = 0; i < 4; i++) {
        crdi_grid_add(g, "%s", titles[i]);
    }
    for (int i = 0; i < p->count; i++) {
        const crd_ssp_parameter* k = &p->items[i];
        if (!crdi_match_any(patterns, k->name)) { continue; }
        crdi_grid_add(g, "%s", k->name);
        crdi_grid_add(g, "%s", k->type);
        crdi_grid_add(g, "%s", k->value);
        crdi_grid_add(g, "%s", k->unit);
    }
}

static void print_mapping(crdi_grid* g, const crd_ssp_parameters* p, const crdi_list* patterns)
{
    static const char* const titles[] = {"target", "source", "change"};
    for (int i = 0; i < 3; i++) {
        crdi_grid_add(g, "%s", titles[i]);
    }
    for (int i = 0; i < p->count; i++) {
        const crd_ssp_parameter* k = &p->items[i];
        if (!crdi_match_any(patterns, k->name)) { continue; }
        crdi_grid_add(g, "%s", k->name);
        crdi_grid_add(g, "%s", k->value);
        crdi_grid_add(g, "%s", k->change);
    }
}

static void print_list(crdi_cli* cli, const crd_ssp_parameters* p, const crdi_list* patterns)
{
    printf("%s: SSP %s, %s%s, %d %s\n", p->path, p->version,
           p->mapping ? "parameter mapping" : "parameter set ", p->name, p->count,
           p->mapping      ? p->count == 1 ? "entry" : "entries"
           : p->count == 1 ? "parameter"
                           : "parameters");
    if (*p->description) { printf("%-14s%s\n", "description", p->description); }
    printf("\n");
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, p->mapping ? 3 : 4, 0);
    if (p->mapping) {
        print_mapping(&g, p, patterns);
    } else {
        print_values(&g, p, patterns);
    }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
}

static json_t* list_to_json(const crd_ssp_parameters* p, const crdi_list* patterns)
{
    json_t* j = json_object();
    json_object_set_new(j, "kind", json_string(p->mapping ? "ssm" : "ssv"));
    json_object_set_new(j, "file", crdi_json_text(p->path));
    json_object_set_new(j, "version", crdi_json_text(p->version));
    if (!p->mapping) { json_object_set_new(j, "name", crdi_json_text(p->name)); }
    json_object_set_new(j, "description", crdi_json_text(p->description));
    json_t* items = json_array();
    for (int i = 0; i < p->count; i++) {
        const crd_ssp_parameter* k = &p->items[i];
        if (!crdi_match_any(patterns, k->name)) { continue; }
        json_t* x = json_object();
        json_object_set_new(x, p->mapping ? "target" : "name", crdi_json_text(k->name));
        json_object_set_new(x, p->mapping ? "source" : "value", crdi_json_text(k->value));
        if (p->mapping) {
            json_object_set_new(x, "change", crdi_json_text(k->change));
        } else {
            json_object_set_new(x, "type", crdi_json_text(k->type));
            json_object_set_new(x, "unit", crdi_json_text(k->unit));
        }
        json_array_append_new(items, x);
    }
    json_object_set_new(j, p->mapping ? "entries" : "parameters", items);
    return j;
}

crd_status crdi_info_ssv(crdi_cli* cli, const char* path, bool mapping, const crdi_info_options* o)
{
    crd_ssp_parameters* p = NULL;
    crd_status st = crd_ssp_list(cli->ctx, mapping ? CRD_SSP_SSM : CRD_SSP_SSV, path, &p);
    if (st < 0) { return st; }
    if (o->common.json) {
        st = crdi_json_print(cli, list_to_json(p, &o->variables));
    } else {
        print_list(cli, p, &o->variables);
        st = crdi_stdout_done(cli->ctx);
    }
    crd_ssp_parameters_destroy(p);
    return st;
}
