// A description becomes a document.
//
// Elements stand in the order of the schema. Defaults that decide what a slave may do are written
// out, as not all validators and readers know them. A declared type is written as its name and data
// type alone: what it said is in the variables already.
#include "dcp/description/dcpx.h"

#include <math.h>
#include <string.h>

typedef struct writer {
    const crd_dcp_description* d;
    crd_text* out;
} writer;

// ---- attributes --------------------------------------------------------------------------------

// Line breaks and tabs would come back as blanks if they were not written as numbers.
static void put_text(writer* w, const char* name, const char* value)
{
    crdi_text_add(w->out, " %s=\"", name);
    for (const char* p = value ? value : ""; *p;) {
        char part[128];
        size_t n = strcspn(p, "\t\n\r");
        if (n >= sizeof part) { n = sizeof part - 1; }
        memcpy(part, p, n);
        part[n] = 0;
        crdi_text_xml(w->out, part);
        p += n;
        if (*p == '\t' || *p == '\n' || *p == '\r') { crdi_text_add(w->out, "&#%d;", *p++); }
    }
    crdi_text_put(w->out, "\"", 1);
}

static void put_given(writer* w, const char* name, const char* value)
{
    if (value && *value) { put_text(w, name, value); }
}

static void put_whole(writer* w, const char* name, uint64_t value)
{
    crdi_text_add(w->out, " %s=\"%llu\"", name, (unsigned long long)value);
}

static void put_bool(writer* w, const char* name, bool value)
{
    crdi_text_add(w->out, " %s=\"%s\"", name, value ? "true" : "false");
}

static void put_double(writer* w, const char* name, double value)
{
    if (isnan(value)) { return; }
    crdi_text_add(w->out, " %s=\"", name);
    crdi_text_json_number(w->out, value);
    crdi_text_put(w->out, "\"", 1);
}

// A limit of an integer: double has rounded the last of 64 bits up, out of the range.
static void put_limit(writer* w, const char* name, uint8_t type, double value)
{
    if (isnan(value)) { return; }
    if (type == CRD_DCP_FLOAT32 || type == CRD_DCP_FLOAT64) {
        put_double(w, name, value);
    } else if (type == CRD_DCP_UINT64) {
        put_whole(w, name, value >= 0x1p64 ? UINT64_MAX : (uint64_t)value);
    } else {
        crdi_text_add(w->out, " %s=\"%lld\"", name,
                      (long long)(value >= 0x1p63 ? INT64_MAX : (int64_t)value));
    }
}

static void line(writer* w, int depth, const char* text)
{
    crdi_text_add(w->out, "%*s%s\n", 2 * depth, "", text);
}

static void begin(writer* w, int depth, const char* element)
{
    crdi_text_add(w->out, "%*s<%s", 2 * depth, "", element);
}

static void end(writer* w, const char* how)
{
    crdi_text_add(w->out, "%s\n", how);
}

// ---- the parts ---------------------------------------------------------------------------------

static void write_root(writer* w)
{
    const crd_dcp_description* d = w->d;
    const uint8_t* u = d->uuid;
    crdi_text_add(w->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<dcpSlaveDescription");
    put_whole(w, "dcpMajorVersion", d->major);
    put_whole(w, "dcpMinorVersion", d->minor);
    put_text(w, "dcpSlaveName", d->name);
    crdi_text_add(w->out,
                  " uuid=\"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\"",
                  u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12],
                  u[13], u[14], u[15]);
    put_given(w, "description", d->description);
    put_given(w, "author", d->author);
    put_given(w, "version", d->version);
    put_given(w, "copyright", d->copyright);
    put_given(w, "license", d->license);
    put_given(w, "generationTool", d->tool);
    if (d->date && crdi_dcp_is_date(d->date)) { put_text(w, "generationDateAndTime", d->date); }
    put_text(w, "variableNamingConvention", d->structured ? "structured" : "flat");
    end(w, ">");
}

static void write_steps(writer* w, uint32_t usual, bool fixed, uint32_t min, uint32_t max)
{
    put_whole(w, "defaultSteps", usual);
    put_bool(w, "fixedSteps", fixed);
    if (!fixed) {
        put_whole(w, "minSteps", min);
        put_whole(w, "maxSteps", max);
    }
}

static void write_modes(writer* w)
{
    const crd_dcp_description* d = w->d;
    line(w, 1, "<OpMode>");
    if (d->hrt) { line(w, 2, "<HardRealTime/>"); }
    if (d->srt) { line(w, 2, "<SoftRealTime/>"); }
    if (d->nrt) {
        begin(w, 2, "NonRealTime");
        write_steps(w, d->nrt_default_steps, d->nrt_fixed_steps, d->nrt_min_steps,
                    d->nrt_max_steps);
        end(w, "/>");
    }
    line(w, 1, "</OpMode>");
}

static void write_scale(writer* w, double factor, double offset)
{
    if (factor < 1 || factor > 1) { put_double(w, "factor", factor); }
    if (offset < 0 || offset > 0) { put_double(w, "offset", offset); }
}

static void write_units(writer* w)
{
    static const char* const names[8] = {"kg", "m", "s", "A", "K", "mol", "cd", "rad"};
    const crd_dcp_description* d = w->d;
    if (d->unit_count == 0) { return; }
    line(w, 1, "<UnitDefinitions>");
    for (int i = 0; i < d->unit_count; i++) {
        const crd_dcp_unit* u = &d->units[i];
        begin(w, 2, "Unit");
        put_text(w, "name", u->name);
        if (!u->has_base && !u->display_count) {
            end(w, "/>");
            continue;
        }
        end(w, ">");
        if (u->has_base) {
            begin(w, 3, "BaseUnit");
            for (int k = 0; k < 8; k++) {
                if (u->exponents[k]) {
                    crdi_text_add(w->out, " %s=\"%d\"", names[k], u->exponents[k]);
                }
            }
            write_scale(w, u->factor, u->offset);
            end(w, "/>");
        }
        for (int k = 0; k < u->display_count; k++) {
            begin(w, 3, "DisplayUnit");
            put_text(w, "name", u->displays[k].name);
            write_scale(w, u->displays[k].factor, u->displays[k].offset);
            end(w, "/>");
        }
        line(w, 2, "</Unit>");
    }
    line(w, 1, "</UnitDefinitions>");
}

// Each name that variables use once, in the order in which they do.
static void write_types(writer* w)
{
    const crd_dcp_description* d = w->d;
    crd_map names;
    crdi_map_init(&names, d->ctx);
    for (int i = 0; i < d->variable_count; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        bool fresh = false;
        if (!v->declared_type || !v->declared_type[0]) { continue; }
        if (crdi_map_add(&names, v->declared_type, i, &fresh) < 0) { w->out->failed = true; }
        if (!fresh) { continue; }
        if (names.count == 1) { line(w, 1, "<TypeDefinitions>"); }
        begin(w, 2, "SimpleType");
        put_text(w, "name", v->declared_type);
        crdi_text_add(w->out, "><%s/></SimpleType>\n", crdi_dcp_type_elements[v->type]);
    }
    if (names.count) { line(w, 1, "</TypeDefinitions>"); }
    crdi_map_clear(&names);
}

static void write_time(writer* w)
{
    const crd_dcp_description* d = w->d;
    line(w, 1, "<TimeRes>");
    for (int i = 0; i < d->resolution_count; i++) {
        const crd_dcp_resolution* r = &d->resolutions[i];
        const bool range = r->numerator != r->numerator_to;
        begin(w, 2, range ? "ResolutionRange" : "Resolution");
        put_whole(w, range ? "numeratorFrom" : "numerator", r->numerator);
        if (range) { put_whole(w, "numeratorTo", r->numerator_to); }
        put_whole(w, "denominator", r->denominator);
        if (!range) {
            put_bool(w, "fixed", d->fixed_resolution);
            put_bool(w, "recommended", r->recommended);
        }
        end(w, "/>");
    }
    line(w, 1, "</TimeRes>");
    if (d->has_heartbeat) {
        line(w, 1, "<Heartbeat>");
        begin(w, 2, "MaximumPeriodicInterval");
        put_whole(w, "numerator", d->heartbeat_numerator);
        put_whole(w, "denominator", d->heartbeat_denominator);
        end(w, "/>");
        line(w, 1, "</Heartbeat>");
    }
}

static void write_ports(writer* w, const char* element, const char* host,
                        const crd_dcp_ports* ports, int count)
{
    begin(w, 3, element);
    put_given(w, "host", host);
    if (count == 0) {
        end(w, "/>");
        return;
    }
    end(w, ">");
    for (int i = 0; i < count; i++) {
        if (ports[i].from == ports[i].to) {
            begin(w, 4, "AvailablePort");
            put_whole(w, "port", ports[i].from);
        } else {
            begin(w, 4, "AvailablePortRange");
            put_whole(w, "from", ports[i].from);
            put_whole(w, "to", ports[i].to);
        }
        end(w, "/>");
    }
    crdi_text_add(w->out, "      </%s>\n", element);
}

static void write_endpoint(writer* w, const crd_dcp_endpoint* e, const char* element)
{
    if (!e->offered) { return; }
    begin(w, 2, element);
    put_whole(w, "maxPduSize", e->max_pdu_size);
    const bool control = (e->host && e->host[0]) || e->port;
    if (!control && !e->has_data && !e->has_parameter) {
        end(w, "/>");
        return;
    }
    end(w, ">");
    if (control) {
        begin(w, 3, "Control");
        put_given(w, "host", e->host);
        if (e->port) { put_whole(w, "port", e->port); }
        end(w, "/>");
    }
    if (e->has_data) { write_ports(w, "DAT_input_output", e->data_host, e->data, e->data_count); }
    if (e->has_parameter) {
        write_ports(w, "DAT_parameter", e->parameter_host, e->parameter, e->parameter_count);
    }
    crdi_text_add(w->out, "    </%s>\n", element);
}

static void write_transports(writer* w)
{
    const crd_dcp_description* d = w->d;
    line(w, 1, "<TransportProtocols>");
    write_endpoint(w, &d->udp, "UDP_IPv4");
    if (d->can) { line(w, 2, "<CAN/>"); }
    if (d->usb) { line(w, 2, "<USB2/>"); }
    write_endpoint(w, &d->tcp, "TCP_IPv4");
    line(w, 1, "</TransportProtocols>");
    begin(w, 1, "CapabilityFlags");
    put_bool(w, "canAcceptConfigPdus", d->can_accept_config);
    put_bool(w, "canHandleReset", d->can_reset);
    put_bool(w, "canHandleVariableSteps", d->can_vary_steps);
    put_bool(w, "canMonitorHeartbeat", d->can_monitor_heartbeat);
    put_bool(w, "canProvideLogOnRequest", d->can_log_on_request);
    put_bool(w, "canProvideLogOnNotification", d->can_log_on_notification);
    end(w, "/>");
}

// ---- variables ---------------------------------------------------------------------------------

static void write_type(writer* w, const crd_dcp_variable* v)
{
    begin(w, 4, crdi_dcp_type_elements[v->type]);
    const bool is_float = v->type == CRD_DCP_FLOAT32 || v->type == CRD_DCP_FLOAT64;
    if (v->type < CRD_DCP_STRING && v->causality != CRD_STRUCTURAL_PARAMETER) {
        put_limit(w, "min", v->type, v->min);
        put_limit(w, "max", v->type, v->max);
        put_limit(w, "gradient", v->type, v->gradient);
    }
    if (is_float) {
        put_double(w, "nominal", v->nominal);
        put_given(w, "quantity", v->quantity);
        put_given(w, "unit", v->unit);
        put_given(w, "displayUnit", v->display_unit);
    }
    if (v->type == CRD_DCP_BINARY) {
        put_text(w, "mimeType", v->mime && v->mime[0] ? v->mime : CRDI_DCP_MIME);
    }
    if (v->type >= CRD_DCP_STRING && v->max_size != UINT32_MAX) {
        put_whole(w, "maxSize", v->max_size);
    }
    // the schema wants it on all but outputs
    if (v->start || v->causality != CRD_OUTPUT) { put_text(w, "start", v->start); }
    end(w, "/>");
}

static void write_dependencies(writer* w, const char* element, const crd_dcp_dependency* all,
                               int count)
{
    begin(w, 5, element);
    end(w, count ? ">" : "/>");
    for (int i = 0; i < count; i++) {
        begin(w, 6, "Dependency");
        put_whole(w, "vr", all[i].vr);
        put_text(w, "dependencyKind", all[i].linear ? "linear" : "dependent");
        end(w, "/>");
    }
    if (count) { crdi_text_add(w->out, "          </%s>\n", element); }
}

static void write_causality(writer* w, const crd_dcp_variable* v)
{
    const char* element = v->causality == CRD_INPUT       ? "Input"
                          : v->causality == CRD_OUTPUT    ? "Output"
                          : v->causality == CRD_PARAMETER ? "Parameter"
                                                          : "StructuralParameter";
    begin(w, 3, element);
    if (v->causality == CRD_OUTPUT) {
        write_steps(w, v->default_steps, v->fixed_steps, v->min_steps, v->max_steps);
        put_bool(w, "initialization", v->initialization);
    }
    end(w, ">");
    write_type(w, v);
    if (v->rank > 0) { line(w, 4, "<Dimensions>"); }
    for (int i = 0; i < v->rank; i++) {
        begin(w, 5, "Dimension");
        if (v->is_linked[i]) {
            put_whole(w, "linkedVR", v->linked[i]);
        } else {
            put_whole(w, "constant", v->dimensions[i]);
        }
        end(w, "/>");
    }
    if (v->rank > 0) { line(w, 4, "</Dimensions>"); }
    if (v->causality == CRD_OUTPUT && (v->has_initial_dependencies || v->has_run_dependencies)) {
        line(w, 4, "<Dependencies>");
        if (v->has_initial_dependencies) {
            write_dependencies(w, "Initialization", v->initial_dependencies,
                               v->initial_dependency_count);
        }
        if (v->has_run_dependencies) {
            write_dependencies(w, "Run", v->run_dependencies, v->run_dependency_count);
        }
        line(w, 4, "</Dependencies>");
    }
    crdi_text_add(w->out, "      </%s>\n", element);
}

static void write_variables(writer* w)
{
    static const char* const words[] = {[CRD_CONTINUOUS] = "continuous",
                                        [CRD_DISCRETE] = "discrete",
                                        [CRD_TUNABLE] = "tunable",
                                        [CRD_FIXED] = "fixed"};
    line(w, 1, "<Variables>");
    for (int i = 0; i < w->d->variable_count; i++) {
        const crd_dcp_variable* v = &w->d->variables[i];
        begin(w, 2, "Variable");
        put_text(w, "name", v->name);
        put_whole(w, "valueReference", v->vr);
        put_given(w, "description", v->description);
        put_text(w, "variability", words[v->variability]);
        put_double(w, "preEdge", v->pre_edge);
        put_double(w, "postEdge", v->post_edge);
        if (v->has_max_missed) { put_whole(w, "maxConsecMissedPdus", v->max_missed); }
        put_given(w, "declaredType", v->declared_type);
        end(w, ">");
        write_causality(w, v);
        line(w, 2, "</Variable>");
    }
    line(w, 1, "</Variables>");
}

static void write_log(writer* w)
{
    const crd_dcp_description* d = w->d;
    if (d->category_count == 0) { return; }
    line(w, 1, "<Log>");
    line(w, 2, "<Categories>");
    for (int i = 0; i < d->category_count; i++) {
        begin(w, 3, "Category");
        put_whole(w, "id", d->categories[i].id);
        put_text(w, "name", d->categories[i].name);
        end(w, "/>");
    }
    line(w, 2, "</Categories>");
    line(w, 2, "<Templates>");
    for (int i = 0; i < d->template_count; i++) {
        const crd_dcp_log_template* t = &d->templates[i];
        begin(w, 3, "Template");
        put_whole(w, "id", t->id);
        put_whole(w, "category", t->category);
        put_whole(w, "level", t->level);
        put_text(w, "msg", t->message);
        end(w, "/>");
    }
    line(w, 2, "</Templates>");
    line(w, 1, "</Log>");
}

// What breaks a rule is not written: others would have to refuse it.
static crd_status refuse_faults(const crd_dcp_description* d)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    crd_arena_init(&arena, d->ctx);
    crdi_dcp_findings f;
    crdi_dcp_findings_init(&f, d->ctx, &arena);
    crdi_dcp_index* index = crdi_arena_new(&arena, (size_t)d->variable_count, sizeof *index);
    if (!index) { CRD_TRY(CRD_E_MEMORY); }
    crdi_dcp_sort(d, index);
    crdi_dcp_check(d, index, &f);
    if (f.failed) { CRD_TRY(CRD_E_MEMORY); }
    for (size_t i = 0; i < f.count && f.faults > 0; i++) {
        if (f.items[i].severity == CRD_DCP_FAULT) {
            CRD_TRY(crdi_fail(d->ctx, CRD_E_RANGE, "slave '%s' cannot be written: %s (%s)",
                              crdi_clip(d->name ? d->name : "").text, f.items[i].text,
                              f.items[i].code));
        }
    }
    if (d->bluetooth) {
        CRD_TRY(crdi_fail(d->ctx, CRD_E_UNSUPPORTED,
                          "slave '%s' cannot be written: Bluetooth needs an address, which is not "
                          "kept",
                          crdi_clip(d->name ? d->name : "").text));
    }
fail:
    crdi_dcp_findings_clear(&f);
    crd_arena_clear(&arena);
    return st;
}

crd_status crd_dcp_write(const crd_dcp_description* d, crd_text* out)
{
    const crd_status st = refuse_faults(d);
    if (st < 0) { return st; }
    writer w = {.d = d, .out = out};
    write_root(&w);
    write_modes(&w);
    write_units(&w);
    write_types(&w);
    write_time(&w);
    write_transports(&w);
    write_variables(&w);
    write_log(&w);
    line(&w, 0, "</dcpSlaveDescription>");
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}
