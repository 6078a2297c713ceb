// cardan info on an SSP.
#include "cardan/system.h"
#include "cli/info/info.h"

// A list of texts, in text one below the other.
static void put_list(crdi_result* out, const char* key, const char* const* items, int count)
{
    crdi_put_texts(out, key, items, count);
    for (int i = 0; i < count; i++) {
        crdi_fact(out, i ? "" : key, "%s", items[i]);
    }
}

static void put_components(crdi_result* out, const crd_ssp_info* i)
{
    static const crdi_column columns[] = {{"component", "shown", "%s"},
                                          {"kind", "kind", "%s"},
                                          {">connectors", "connectors", "%d"},
                                          {"source", "source", "%s"},
                                          {0}};
    crdi_result* components = crdi_array(out, "components");
    for (int k = 0; k < i->component_count; k++) {
        const crd_ssp_component* c = &i->components[k];
        crdi_put(crdi_row(components), TEXT("name", c->name), BOOL("system", c->system),
                 TEXT("type", c->type), TEXT("source", c->source),
                 TEXT("implementation", c->implementation), INT("connectors", c->connectors),
                 CELL("shown", crdi_worded(out, "%*s%s", 2 * c->depth, "", c->name)),
                 CELL("kind", c->system ? "system" : c->implementation));
    }
    crdi_show_table(out, components, columns, "  ");
}

static void put_ssp(crdi_result* out, const crd_ssp_info* i)
{
    crdi_put(out, TEXT("kind", "ssp"), TEXT("file", i->path), TEXT("version", i->version),
             TEXT("name", i->name), TEXT("tool", i->tool), TEXT("author", i->author),
             TEXT("date", i->date), TEXT("license", i->license),
             TEXT("description", i->description), ONLY_IF(i->has_start, REAL("start", i->start)),
             ONLY_IF(i->has_stop, REAL("stop", i->stop)), INT("connections", i->connections),
             INT("parameter_bindings", i->parameter_bindings));
    crdi_say(out, "%s: SSP %s, %s\n", i->path, i->version, i->name);
    crdi_fact_if(out, "description", i->description);
    crdi_fact_if(out, "author", i->author);
    crdi_fact_if(out, "license", i->license);
    crdi_fact_if(out, "tool", i->tool);
    crdi_fact_if(out, "date", i->date);
    if (i->has_start || i->has_stop) { crdi_say(out, "%-14s", "experiment"); }
    if (i->has_start) { crdi_say(out, "start %.10g s%s", i->start, i->has_stop ? ", " : "\n"); }
    if (i->has_stop) { crdi_say(out, "stop %.10g s\n", i->stop); }
    crdi_fact(out, "structure", "%d connection%s, %d parameter binding%s", i->connections,
              crdi_plural(i->connections), i->parameter_bindings,
              crdi_plural(i->parameter_bindings));
    put_list(out, "variants", i->variants, i->variant_count);
    put_list(out, "files", i->resources, i->resource_count);
    put_list(out, "annotations", i->annotations, i->annotation_count);
    crdi_say(out, "\n");
    put_components(out, i);
}

crd_status crdi_info_ssp(crdi_cli* cli, const char* path, const crdi_info_options* o,
                         crdi_result* out)
{
    crd_ssp_info* i = NULL;
    const crd_status st = crd_ssp_describe(cli->ctx, path, o->variant, &i);
    if (st < 0) { return st; }
    put_ssp(out, i);
    crd_ssp_info_destroy(i);
    return CRD_OK;
}
