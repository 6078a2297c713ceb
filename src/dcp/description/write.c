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

void crdi_dcp_put_text(crd_text* out, const char* name, const char* value)
{
    crdi_text_add(out, " %s=\"", name);
    for (const char* p = value ? value : ""; *p;) {
        char part[128];
        size_t n = strcspn(p, "\t\n\r");
        if (n >= sizeof part) { n = sizeof part - 1; }
        memcpy(part, p, n);
        part[n] = 0;
        crdi_text_xml(out, part);
        p += n;
        if (*p == '\t' || *p == '\n' || *p == '\r') { crdi_text_add(out, "&#%d;", *p++); }
    }
    crdi_text_put(out, "\"", 1);
}

static void put_text(writer* w, const char* name, const char* value)
{
    crdi_dcp_put_text(w->out, name, value);
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

static void description_write_put_double(writer* w, const char* name, double value)
{
    crdi_text_add(w->out, " %s=\"", name);
    crdi_text_json_number(w->out, value);
    crdi_text_put(w->out, "\"", 1);
}

// A limit of an integer: double has rounded the last of 64 bits up, out of the range.
static void description_write_put_limit(writer* w, const char* name, uint8_t type, double value)
{
    if (crdi_dcp_is_real(type)) {
        description_write_put_double(w, name, value);
    } else if (type == CRD_DCP_UINT64) {
        put_whole(w, name, value >= 0x1p64 ? UINT64_MAX : (uint64_t)value);
    } else {
        crdi_text_add(w->out, " %s=\"%lld\"", name,
                      (long long)(value >= 0x1p63 ? INT64_MAX : (int64_t)value));
    }
}

static void put_uuid(writer* w, const char* name, const uint8_t* uuid)
{
    char text[37];
    crdi_dcp_uuid_print(uuid, text);
    put_text(w, name, text);
}

static bool is_left_out(const crdi_dcpx_attribute* a, double x)
{
    return isnan(x) || (a->sparse && !(x < a->unless || x > a->unless));
}

static void write_attribute(writer* w, const crdi_dcpx_attribute* a, const void* base)
{
    const void* at = (const char*)base + a->offset;
    if (a->flag && !*((const bool*)base + a->flag)) { return; }
    switch ((crdi_dcpx_kind)a->kind) {
    case CRDI_DCPX_OTHER:
        break;
    case CRDI_DCPX_TEXT:
        if (a->mandatory) {
            put_text(w, a->name, *(const char* const*)at);
        } else {
            put_given(w, a->name, *(const char* const*)at);
        }
        break;
    case CRDI_DCPX_DATE:
        if (*(const char* const*)at && crdi_dcp_is_date(*(const char* const*)at)) {
            put_text(w, a->name, *(const char* const*)at);
        }
        break;
    case CRDI_DCPX_UUID:
        put_uuid(w, a->name, at);
        break;
    case CRDI_DCPX_WORD:
        for (const crdi_dcpx_word* x = a->words; x->text; x++) {
            if (x->value == *(const uint8_t*)at) { put_text(w, a->name, x->text); }
        }
        break;
    case CRDI_DCPX_BOOL:
        put_bool(w, a->name, *(const bool*)at);
        break;
    case CRDI_DCPX_WHOLE: {
        const uint64_t x = crdi_dcp_member_get(base, a->offset, a->size);
        if (!is_left_out(a, (double)x)) { put_whole(w, a->name, x); }
        break;
    }
    case CRDI_DCPX_I8:
        if (!is_left_out(a, *(const int8_t*)at)) {
            crdi_text_add(w->out, " %s=\"%d\"", a->name, *(const int8_t*)at);
        }
        break;
    case CRDI_DCPX_REAL:
    case CRDI_DCPX_LIMIT:
        if (!is_left_out(a, *(const double*)at)) {
            const bool limit = a->kind == CRDI_DCPX_LIMIT;
            description_write_put_limit(
                w, a->name, limit ? ((const crd_dcp_variable*)base)->type : CRD_DCP_FLOAT64,
                *(const double*)at);
        }
        break;
    }
}

// In the order of the schema, from the struct of the element.
static void write_attributes(writer* w, crdi_dcpx_element element, const void* base)
{
    for (const crdi_dcpx_attribute* a = crdi_dcpx_attributes(element); a->name; a++) {
        write_attribute(w, a, base);
    }
}

static void write_line(writer* w, int depth, const char* text)
{
    crdi_text_add(w->out, "%*s%s\n", 2 * depth, "", text);
}

static void begin_element(writer* w, int depth, const char* element)
{
    crdi_text_add(w->out, "%*s<%s", 2 * depth, "", element);
}

static void end_element(writer* w, const char* how)
{
    crdi_text_add(w->out, "%s\n", how);
}

// ---- the parts ---------------------------------------------------------------------------------

// An element without children.
static void write_leaf(writer* w, int depth, const char* name, crdi_dcpx_element element,
                       const void* base)
{
    begin_element(w, depth, name);
    write_attributes(w, element, base);
    end_element(w, "/>");
}

static void write_root(writer* w)
{
    crdi_text_add(w->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<dcpSlaveDescription");
    write_attributes(w, CRDI_DCPX_ROOT, w->d);
    end_element(w, ">");
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
    write_line(w, 1, "<OpMode>");
    if (d->hrt) { write_line(w, 2, "<HardRealTime/>"); }
    if (d->srt) { write_line(w, 2, "<SoftRealTime/>"); }
    if (d->nrt) {
        begin_element(w, 2, "NonRealTime");
        write_steps(w, d->nrt_default_steps, d->nrt_fixed_steps, d->nrt_min_steps,
                    d->nrt_max_steps);
        end_element(w, "/>");
    }
    write_line(w, 1, "</OpMode>");
}

static void write_units(writer* w)
{
    const crd_dcp_description* d = w->d;
    if (d->unit_count == 0) { return; }
    write_line(w, 1, "<UnitDefinitions>");
    for (int i = 0; i < d->unit_count; i++) {
        const crd_dcp_unit* u = &d->units[i];
        const bool leaf = !u->has_base && !u->display_count;
        begin_element(w, 2, "Unit");
        write_attributes(w, CRDI_DCPX_UNIT, u);
        end_element(w, leaf ? "/>" : ">");
        if (leaf) { continue; }
        if (u->has_base) { write_leaf(w, 3, "BaseUnit", CRDI_DCPX_BASE_UNIT, u); }
        for (int k = 0; k < u->display_count; k++) {
            write_leaf(w, 3, "DisplayUnit", CRDI_DCPX_DISPLAY_UNIT, &u->displays[k]);
        }
        write_line(w, 2, "</Unit>");
    }
    write_line(w, 1, "</UnitDefinitions>");
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
        if (names.count == 1) { write_line(w, 1, "<TypeDefinitions>"); }
        begin_element(w, 2, "SimpleType");
        put_text(w, "name", v->declared_type);
        crdi_text_add(w->out, "><%s/></SimpleType>\n", crdi_dcp_type_elements[v->type]);
    }
    if (names.count) { write_line(w, 1, "</TypeDefinitions>"); }
    crdi_map_clear(&names);
}

static void write_time(writer* w)
{
    const crd_dcp_description* d = w->d;
    write_line(w, 1, "<TimeRes>");
    for (int i = 0; i < d->resolution_count; i++) {
        const crd_dcp_resolution* r = &d->resolutions[i];
        const bool range = r->numerator != r->numerator_to;
        begin_element(w, 2, range ? "ResolutionRange" : "Resolution");
        put_whole(w, range ? "numeratorFrom" : "numerator", r->numerator);
        if (range) { put_whole(w, "numeratorTo", r->numerator_to); }
        put_whole(w, "denominator", r->denominator);
        if (!range) {
            put_bool(w, "fixed", d->fixed_resolution);
            put_bool(w, "recommended", r->recommended);
        }
        end_element(w, "/>");
    }
    write_line(w, 1, "</TimeRes>");
    if (d->has_heartbeat) {
        write_line(w, 1, "<Heartbeat>");
        write_leaf(w, 2, "MaximumPeriodicInterval", CRDI_DCPX_INTERVAL, d);
        write_line(w, 1, "</Heartbeat>");
    }
}

static void write_ports(writer* w, const char* element, const char* host,
                        const crd_dcp_ports* ports, int count)
{
    begin_element(w, 3, element);
    put_given(w, "host", host);
    if (count == 0) {
        end_element(w, "/>");
        return;
    }
    end_element(w, ">");
    for (int i = 0; i < count; i++) {
        const bool one = ports[i].from == ports[i].to;
        write_leaf(w, 4, one ? "AvailablePort" : "AvailablePortRange",
                   one ? CRDI_DCPX_PORT : CRDI_DCPX_PORT_RANGE, &ports[i]);
    }
    crdi_text_add(w->out, "      </%s>\n", element);
}

static void write_endpoint(writer* w, const crd_dcp_endpoint* e, const char* element)
{
    if (!e->offered) { return; }
    begin_element(w, 2, element);
    write_attributes(w, CRDI_DCPX_IPV4, e);
    const bool control = (e->host && e->host[0]) || e->port;
    if (!control && !e->has_data && !e->has_parameter) {
        end_element(w, "/>");
        return;
    }
    end_element(w, ">");
    if (control) { write_leaf(w, 3, "Control", CRDI_DCPX_CONTROL, e); }
    if (e->has_data) { write_ports(w, "DAT_input_output", e->data_host, e->data, e->data_count); }
    if (e->has_parameter) {
        write_ports(w, "DAT_parameter", e->parameter_host, e->parameter, e->parameter_count);
    }
    crdi_text_add(w->out, "    </%s>\n", element);
}

static void write_transports(writer* w)
{
    const crd_dcp_description* d = w->d;
    write_line(w, 1, "<TransportProtocols>");
    write_endpoint(w, &d->udp, "UDP_IPv4");
    if (d->can) { write_line(w, 2, "<CAN/>"); }
    if (d->usb) { write_line(w, 2, "<USB2/>"); }
    write_endpoint(w, &d->tcp, "TCP_IPv4");
    write_line(w, 1, "</TransportProtocols>");
    write_leaf(w, 1, "CapabilityFlags", CRDI_DCPX_FLAGS, d);
}

// ---- variables ---------------------------------------------------------------------------------

static void write_type(writer* w, const crd_dcp_variable* v)
{
    crd_dcp_variable own = *v;
    if (!v->mime || !v->mime[0]) { own.mime = CRDI_DCP_MIME; }
    begin_element(w, 4, crdi_dcp_type_elements[v->type]);
    if (v->causality != CRD_STRUCTURAL_PARAMETER) {
        write_attributes(w, crdi_dcpx_type_element(v->type), &own);
    }
    // the schema wants it on all but outputs
    if (v->start || v->causality != CRD_OUTPUT) { put_text(w, "start", v->start); }
    end_element(w, "/>");
}

static void write_dependencies(writer* w, const char* element, const crd_dcp_dependency* all,
                               int count)
{
    begin_element(w, 5, element);
    end_element(w, count ? ">" : "/>");
    for (int i = 0; i < count; i++) {
        write_leaf(w, 6, "Dependency", CRDI_DCPX_DEPENDENCY, &all[i]);
    }
    if (count) { crdi_text_add(w->out, "          </%s>\n", element); }
}

static void write_causality(writer* w, const crd_dcp_variable* v)
{
    const char* element = v->causality == CRD_INPUT       ? "Input"
                          : v->causality == CRD_OUTPUT    ? "Output"
                          : v->causality == CRD_PARAMETER ? "Parameter"
                                                          : "StructuralParameter";
    begin_element(w, 3, element);
    if (v->causality == CRD_OUTPUT) {
        write_steps(w, v->default_steps, v->fixed_steps, v->min_steps, v->max_steps);
        write_attributes(w, CRDI_DCPX_OUTPUT, v);
    }
    end_element(w, ">");
    write_type(w, v);
    if (v->rank > 0) { write_line(w, 4, "<Dimensions>"); }
    for (int i = 0; i < v->rank; i++) {
        begin_element(w, 5, "Dimension");
        if (v->is_linked[i]) {
            put_whole(w, "linkedVR", v->linked[i]);
        } else {
            put_whole(w, "constant", v->dimensions[i]);
        }
        end_element(w, "/>");
    }
    if (v->rank > 0) { write_line(w, 4, "</Dimensions>"); }
    if (v->causality == CRD_OUTPUT && (v->has_initial_dependencies || v->has_run_dependencies)) {
        write_line(w, 4, "<Dependencies>");
        if (v->has_initial_dependencies) {
            write_dependencies(w, "Initialization", v->initial_dependencies,
                               v->initial_dependency_count);
        }
        if (v->has_run_dependencies) {
            write_dependencies(w, "Run", v->run_dependencies, v->run_dependency_count);
        }
        write_line(w, 4, "</Dependencies>");
    }
    crdi_text_add(w->out, "      </%s>\n", element);
}

static void write_variables(writer* w)
{
    write_line(w, 1, "<Variables>");
    for (int i = 0; i < w->d->variable_count; i++) {
        const crd_dcp_variable* v = &w->d->variables[i];
        begin_element(w, 2, "Variable");
        write_attributes(w, CRDI_DCPX_VARIABLE, v);
        end_element(w, ">");
        write_causality(w, v);
        write_line(w, 2, "</Variable>");
    }
    write_line(w, 1, "</Variables>");
}

static void write_log(writer* w)
{
    const crd_dcp_description* d = w->d;
    if (d->category_count == 0) { return; }
    write_line(w, 1, "<Log>");
    write_line(w, 2, "<Categories>");
    for (int i = 0; i < d->category_count; i++) {
        write_leaf(w, 3, "Category", CRDI_DCPX_CATEGORY, &d->categories[i]);
    }
    write_line(w, 2, "</Categories>");
    write_line(w, 2, "<Templates>");
    for (int i = 0; i < d->template_count; i++) {
        write_leaf(w, 3, "Template", CRDI_DCPX_TEMPLATE, &d->templates[i]);
    }
    write_line(w, 2, "</Templates>");
    write_line(w, 1, "</Log>");
}

// What breaks a rule is not written: others would have to refuse it.
static crd_status refuse_faults(const crd_dcp_description* d)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    crd_arena_init(&arena, d->ctx);
    crdi_dcp_findings f;
    crdi_dcp_findings_init(&f, d->ctx, &arena, &crdi_dcpx_rules);
    crdi_dcp_index* index = NULL;
    CRD_TRY(crdi_dcp_check(d, &arena, &f, &index));
    const crd_dcp_finding* fault = crdi_dcp_first_fault(f.items, f.count);
    if (fault) {
        CRD_TRY(crdi_fail(d->ctx, CRD_E_RANGE, "slave '%s' cannot be written: %s (%s)",
                          crdi_clip(d->name ? d->name : "").text, fault->text, fault->code));
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
    write_line(&w, 0, "</dcpSlaveDescription>");
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}
