// cardan info on a parameter set or a mapping.
#include "cardan/system.h"
#include "cli/info/info.h"

static void info_ssv_put_parameters(crdi_result* out, const crd_ssp_parameters* p,
                                    const crdi_list* patterns)
{
    static const crdi_column columns[] = {{"parameter", "name", "%s"},
                                          {"type", "type", "%s"},
                                          {"value", "value", "%s"},
                                          {"unit", "unit", "%s"},
                                          {0}};
    static const crdi_column mapping[] = {
        {"target", "target", "%s"}, {"source", "source", "%s"}, {"change", "change", "%s"}, {0}};
    crdi_result* items = crdi_array(out, p->mapping ? "entries" : "parameters");
    for (int i = 0; i < p->count; i++) {
        const crd_ssp_parameter* k = &p->items[i];
        if (!crdi_match_any(patterns, k->name)) { continue; }
        if (p->mapping) {
            crdi_put(crdi_row(items), TEXT("target", k->name), TEXT("source", k->value),
                     TEXT("change", k->change));
        } else {
            crdi_put(crdi_row(items), TEXT("name", k->name), TEXT("value", k->value),
                     TEXT("type", k->type), TEXT("unit", k->unit));
        }
    }
    crdi_show_table(out, items, p->mapping ? mapping : columns, "  ");
}

static void put_file(crdi_result* out, const crd_ssp_parameters* p, const crdi_list* patterns)
{
    crdi_put(out, TEXT("kind", p->mapping ? "ssm" : "ssv"), TEXT("file", p->path),
             TEXT("version", p->version));
    if (!p->mapping) { crdi_put(out, TEXT("name", p->name)); }
    crdi_put(out, TEXT("description", p->description));
    crdi_say(out, "%s: SSP %s, %s%s, %d %s\n", p->path, p->version,
             p->mapping ? "parameter mapping" : "parameter set ", p->name, p->count,
             p->mapping      ? p->count == 1 ? "entry" : "entries"
             : p->count == 1 ? "parameter"
                             : "parameters");
    crdi_fact_if(out, "description", p->description);
    crdi_say(out, "\n");
    info_ssv_put_parameters(out, p, patterns);
}

crd_status crdi_info_ssv(crdi_cli* cli, const char* path, bool mapping, const crdi_info_options* o,
                         crdi_result* out)
{
    crd_ssp_parameters* p = NULL;
    const crd_status st = crd_ssp_list(cli->ctx, mapping ? CRD_SSP_SSM : CRD_SSP_SSV, path, &p);
    if (st < 0) { return st; }
    put_file(out, p, &o->variables);
    crd_ssp_parameters_destroy(p);
    return CRD_OK;
}
