// cardan info on an SSP.
#include "cardan/ssp.h"
#include "cli/info.h"

static void print_line(const char* name, const char* value)
{
    if (value && *value) { printf("%-14s%s\n", name, value); }
}

static void print_list(const char* name, const char* const* items, int count)
{
    for (int i = 0; i < count; i++) {
        printf("%-14s%s\n", i ? "" : name, items[i]);
    }
}

static void print_ssp(crdi_cli* cli, const crd_ssp_info* i)
{
    printf("%s: SSP %s, %s\n", i->path, i->version, i->name);
    print_line("description", i->description);
    print_line("author", i->author);
    print_line("license", i->license);
    print_line("tool", i->tool);
    print_line("date", i->date);
    if (i->has_start || i->has_stop) { printf("%-14s", "experiment"); }
    if (i->has_start) { printf("start %.10g s%s", i->start, i->has_stop ? ", " : "\n"); }
    if (i->has_stop) { printf("stop %.10g s\n", i->stop); }
    printf("%-14s%d connection%s, %d parameter binding%s\n", "structure", i->connections,
           crdi_plural(i->connections), i->parameter_bindings, crdi_plural(i->parameter_bindings));
    print_list("variants", i->variants, i->variant_count);
    print_list("files", i->resources, i->resource_count);
    print_list("annotations", i->annotations, i->annotation_count);
    printf("\n");
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 4, 0x4);
    crdi_grid_add(&g, "%s", "component");
    crdi_grid_add(&g, "%s", "kind");
    crdi_grid_add(&g, "%s", "connectors");
    crdi_grid_add(&g, "%s", "source");
    for (int k = 0; k < i->component_count; k++) {
        const crd_ssp_component* c = &i->components[k];
        crdi_grid_add(&g, "%*s%s", 2 * c->depth, "", c->name);
        crdi_grid_add(&g, "%s", c->system ? "system" : c->implementation);
        crdi_grid_add(&g, "%d", c->connectors);
        crdi_grid_add(&g, "%s", c->source);
    }
    crdi_grid_print(&g, stdout, "  ");
    crdi_grid_clear(&g);
}

static json_t* texts_to_json(const char* const* items, int count)
{
    json_t* j = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(j, crdi_json_text(items[i]));
    }
    return j;
}

static json_t* ssp_to_json(const crd_ssp_info* i)
{
    json_t* j = json_object();
    json_object_set_new(j, "kind", json_string("ssp"));
    const struct {
        const char *key, *value;
    } texts[] = {{"file", i->path},       {"version", i->version},        {"name", i->name},
                 {"tool", i->tool},       {"author", i->author},          {"date", i->date},
                 {"license", i->license}, {"description", i->description}};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        json_object_set_new(j, texts[k].key, crdi_json_text(texts[k].value));
    }
    json_object_set_new(j, "start", i->has_start ? crdi_json_number(i->start) : json_null());
    json_object_set_new(j, "stop", i->has_stop ? crdi_json_number(i->stop) : json_null());
    json_object_set_new(j, "connections", json_integer(i->connections));
    json_object_set_new(j, "parameter_bindings", json_integer(i->parameter_bindings));
    json_object_set_new(j, "variants", texts_to_json(i->variants, i->variant_count));
    json_object_set_new(j, "files", texts_to_json(i->resources, i->resource_count));
    json_object_set_new(j, "annotations", texts_to_json(i->annotations, i->annotation_count));
    json_t* components = json_array();
    for (int k = 0; k < i->component_count; k++) {
        const crd_ssp_component* c = &i->components[k];
        json_t* x = json_object();
        json_object_set_new(x, "name", crdi_json_text(c->name));
        json_object_set_new(x, "system", json_boolean(c->system));
        json_object_set_new(x, "type", crdi_json_text(c->type));
        json_object_set_new(x, "source", crdi_json_text(c->source));
        json_object_set_new(x, "implementation", crdi_json_text(c->implementation));
        json_object_set_new(x, "connectors", json_integer(c->connectors));
        json_array_append_new(components, x);
    }
    json_object_set_new(j, "components", components);
    return j;
}

crd_status crdi_info_ssp(crdi_cli* cli, const char* path, const crdi_info_options* o)
{
    crd_ssp_info* i = NULL;
    crd_status st = crd_ssp_describe(cli->ctx, path, o->variant, &i);
    if (st < 0) { return st; }
    if (o->common.json) {
        st = crdi_json_print(cli, ssp_to_json(i));
    } else {
        print_ssp(cli, i);
        st = crdi_stdout_done(cli->ctx);
    }
    crd_ssp_info_destroy(i);
    return st;
}
