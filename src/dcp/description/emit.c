// A description as C, for controllers: constants, which take no memory there, and the indices of
// the variables by name.
#include "dcp/description/dcpx.h"
#include "shared/base_c.h"

#include <math.h>
#include <string.h>

static void put_count(crd_text* out, const char* field, uint64_t x)
{
    if (x) { crdi_text_add(out, ".%s = %lluu, ", field, (unsigned long long)x); }
}

static void put_flag(crd_text* out, const char* field, bool x)
{
    if (x) { crdi_text_add(out, ".%s = true, ", field); }
}

static void put_variable(crd_text* out, const crd_dcp_variable* v)
{
    crdi_text_add(out, "    {");
    crdi_c_string_field(out, "name", v->name);
    crdi_c_string_field(out, "description", ""); // of it nothing runs
    crdi_text_add(out, ".vr = %lluu, .causality = %d, .variability = %d, .type = %d,\n     ",
                  (unsigned long long)v->vr, v->causality, v->variability, v->type);
    crdi_c_string_field(out, "unit", v->unit);
    crdi_text_add(out, ".display_unit = \"\", .quantity = \"\", .declared_type = \"\", ");
    crdi_c_string_field(out, "mime", v->mime);
    crdi_c_string_field(out, "start", v->start);
    crdi_text_add(out, "\n     ");
    crdi_c_number_field(out, "min", v->min);
    crdi_c_number_field(out, "max", v->max);
    crdi_c_number_field(out, "gradient", v->gradient);
    crdi_c_number_field(out, "nominal", v->nominal);
    crdi_c_number_field(out, "pre_edge", v->pre_edge);
    crdi_c_number_field(out, "post_edge", v->post_edge);
    crdi_text_add(out, "\n     ");
    put_count(out, "max_size", v->max_size);
    put_count(out, "rank", (uint64_t)v->rank);
    for (int i = 0; i < v->rank; i++) {
        crdi_text_add(out, ".%s[%d] = %lluu, ", v->is_linked[i] ? "linked" : "dimensions", i,
                      (unsigned long long)(v->is_linked[i] ? v->linked[i] : v->dimensions[i]));
        if (v->is_linked[i]) { crdi_text_add(out, ".is_linked[%d] = true, ", i); }
    }
    put_flag(out, "has_max_missed", v->has_max_missed);
    put_count(out, "max_missed", v->max_missed);
    put_count(out, "default_steps", v->default_steps);
    put_count(out, "min_steps", v->min_steps);
    put_count(out, "max_steps", v->max_steps);
    put_flag(out, "fixed_steps", v->fixed_steps);
    put_flag(out, "initialization", v->initialization);
    crdi_text_add(out, "},\n");
}

static void put_ports(crd_text* out, const char* name, const crd_dcp_ports* ports, int count)
{
    if (count == 0) { return; }
    crdi_text_add(out, "static const crd_dcp_ports %s[] = {", name);
    for (int i = 0; i < count; i++) {
        crdi_text_add(out, "%s{%u, %u}", i ? ", " : "", ports[i].from, ports[i].to);
    }
    crdi_text_add(out, "};\n");
}

static void put_endpoint(crd_text* out, const char* name, const crd_dcp_endpoint* e)
{
    crdi_text_add(out, "    .%s = {", name);
    put_flag(out, "offered", e->offered);
    put_count(out, "max_pdu_size", e->max_pdu_size);
    crdi_c_string_field(out, "host", e->host);
    put_count(out, "port", e->port);
    put_flag(out, "has_data", e->has_data);
    put_flag(out, "has_parameter", e->has_parameter);
    crdi_c_string_field(out, "data_host", e->data_host);
    crdi_c_string_field(out, "parameter_host", e->parameter_host);
    if (e->data_count) {
        crdi_text_add(out, ".data = %s_data, .data_count = %d, ", name, e->data_count);
    }
    if (e->parameter_count) {
        crdi_text_add(out, ".parameter = %s_parameter, .parameter_count = %d, ", name,
                      e->parameter_count);
    }
    crdi_text_add(out, "},\n");
}

static void put_lists(crd_text* out, const crd_dcp_description* d)
{
    put_ports(out, "udp_data", d->udp.data, d->udp.data_count);
    put_ports(out, "udp_parameter", d->udp.parameter, d->udp.parameter_count);
    put_ports(out, "tcp_data", d->tcp.data, d->tcp.data_count);
    put_ports(out, "tcp_parameter", d->tcp.parameter, d->tcp.parameter_count);
    if (d->resolution_count) {
        crdi_text_add(out, "static const crd_dcp_resolution resolutions[] = {\n");
        for (int i = 0; i < d->resolution_count; i++) {
            const crd_dcp_resolution* r = &d->resolutions[i];
            crdi_text_add(out, "    {%uu, %uu, %uu, %s, 0},\n", r->numerator, r->numerator_to,
                          r->denominator, r->recommended ? "true" : "false");
        }
        crdi_text_add(out, "};\n");
    }
    for (int i = 0; i < d->template_count; i++) {
        const crd_dcp_log_template* t = &d->templates[i];
        if (t->argument_count == 0) { continue; }
        crdi_text_add(out, "static const uint8_t arguments_%d[] = {", i);
        for (int k = 0; k < t->argument_count; k++) {
            crdi_text_add(out, "%s%d", k ? ", " : "", t->arguments[k]);
        }
        crdi_text_add(out, "};\n");
    }
    if (d->template_count) { crdi_text_add(out, "static const crd_dcp_log_template logs[] = {\n"); }
    for (int i = 0; i < d->template_count; i++) {
        const crd_dcp_log_template* t = &d->templates[i];
        crdi_text_add(out, "    {%d, %d, %d, ", t->id, t->category, t->level);
        crdi_c_string(out, t->message);
        if (t->argument_count) {
            crdi_text_add(out, ", arguments_%d, %d, 0},\n", i, t->argument_count);
        } else {
            crdi_text_add(out, ", 0, 0, 0},\n");
        }
    }
    if (d->template_count) { crdi_text_add(out, "};\n"); }
    if (d->category_count) {
        crdi_text_add(out, "static const crd_dcp_log_category categories[] = {\n");
        for (int i = 0; i < d->category_count; i++) {
            crdi_text_add(out, "    {%d, ", d->categories[i].id);
            crdi_c_string(out, d->categories[i].name);
            crdi_text_add(out, ", 0},\n");
        }
        crdi_text_add(out, "};\n");
    }
    if (d->variable_count == 0) { return; }
    crdi_text_add(out, "static const crd_dcp_variable variables[] = {\n");
    for (int i = 0; i < d->variable_count; i++) {
        put_variable(out, &d->variables[i]);
    }
    crdi_text_add(out, "};\n");
}

static void put_head(crd_text* out, const crd_dcp_description* d)
{
    crdi_text_add(out, "    ");
    crdi_c_string_field(out, "file", "");
    crdi_c_string_field(out, "name", d->name);
    crdi_text_add(out, ".description = \"\", .author = \"\", .version = \"\", .copyright = \"\",\n"
                       "    .license = \"\", .tool = \"\", .date = \"\",\n    .uuid = {");
    for (int i = 0; i < 16; i++) {
        crdi_text_add(out, "%s0x%02x", i ? ", " : "", d->uuid[i]);
    }
    crdi_text_add(out, "},\n    ");
    put_count(out, "major", d->major);
    put_count(out, "minor", d->minor);
    put_flag(out, "structured", d->structured);
    put_flag(out, "hrt", d->hrt);
    put_flag(out, "srt", d->srt);
    put_flag(out, "nrt", d->nrt);
    put_count(out, "nrt_default_steps", d->nrt_default_steps);
    put_count(out, "nrt_min_steps", d->nrt_min_steps);
    put_count(out, "nrt_max_steps", d->nrt_max_steps);
    put_flag(out, "nrt_fixed_steps", d->nrt_fixed_steps);
    crdi_text_add(out, "\n    ");
    put_flag(out, "fixed_resolution", d->fixed_resolution);
    put_flag(out, "has_heartbeat", d->has_heartbeat);
    put_count(out, "heartbeat_numerator", d->heartbeat_numerator);
    put_count(out, "heartbeat_denominator", d->heartbeat_denominator);
    crdi_text_add(out, "\n    ");
    put_flag(out, "can", d->can);
    put_flag(out, "can_accept_config", d->can_accept_config);
    put_flag(out, "can_reset", d->can_reset);
    put_flag(out, "can_vary_steps", d->can_vary_steps);
    put_flag(out, "can_monitor_heartbeat", d->can_monitor_heartbeat);
    put_flag(out, "can_log_on_request", d->can_log_on_request);
    put_flag(out, "can_log_on_notification", d->can_log_on_notification);
    crdi_text_add(out, "\n");
    put_endpoint(out, "udp", &d->udp);
    put_endpoint(out, "tcp", &d->tcp);
    if (d->resolution_count) {
        crdi_text_add(out, "    .resolutions = resolutions, .resolution_count = %d,\n",
                      d->resolution_count);
    }
    if (d->category_count) {
        crdi_text_add(out, "    .categories = categories, .category_count = %d,\n",
                      d->category_count);
    }
    if (d->template_count) {
        crdi_text_add(out, "    .templates = logs, .template_count = %d,\n", d->template_count);
    }
    if (d->variable_count) {
        crdi_text_add(out, "    .variables = variables, .variable_count = %d,\n",
                      d->variable_count);
    }
}

static const char* name_of(const void* user, int i)
{
    return ((const crd_dcp_description*)user)->variables[i].name;
}

static void put_indices(crd_text* out, const crd_dcp_description* d, const char* name)
{
    if (d->variable_count == 0) { return; }
    crdi_text_add(out, "// Indices of variables, for crd_dcp_plant and crd_dcp_rig\nenum {\n");
    crdi_c_indices(out, name, "var", name_of, d, d->variable_count);
    crdi_text_add(out, "};\n\n");
}

void crdi_dcp_emit(const crd_dcp_description* d, const char* name, const char* origin,
                   crd_text* source, crd_text* header)
{
    crdi_text_add(header,
                  "// The slave %s (%s) for libcardan-core, by cardan export c.\n#pragma once\n"
                  "#include \"cardan/dcp.h\"\n\n",
                  crdi_clip(d->name).text, crdi_clip(origin).text);
    put_indices(header, d, name);
    crdi_text_add(header, "extern const crd_dcp_description %s_description;\n", name);
    crdi_text_add(source,
                  "// The slave %s (%s) for libcardan-core, by cardan export c.\n"
                  "#include \"%s.h\"\n\n#include <math.h>\n\n",
                  crdi_clip(d->name).text, crdi_clip(origin).text, name);
    put_lists(source, d);
    crdi_text_add(source, "\nconst crd_dcp_description %s_description = {\n", name);
    put_head(source, d);
    crdi_text_add(source, "};\n");
}
