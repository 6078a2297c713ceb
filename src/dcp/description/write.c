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
    crdi_xml_writer xml;
} writer;

// ---- attributes --------------------------------------------------------------------------------

// A limit of an integer: double has rounded the last of 64 bits up, out of the range.
static void description_write_put_limit(crdi_xml_writer* w, const char* name, uint8_t type,
                                        double value)
{
    if (crdi_dcp_is_real(type)) {
        crdi_xml_put_real(w, name, value);
    } else if (type == CRD_DCP_UINT64) {
        crdi_xml_put_whole(w, name, value >= 0x1p64 ? UINT64_MAX : (uint64_t)value);
    } else {
        crdi_xml_put_int(w, name, value >= 0x1p63 ? INT64_MAX : (int64_t)value);
    }
}

void crdi_dcp_put_uuid(crdi_xml_writer* w, const char* name, const uint8_t uuid[16])
{
    char text[37];
    crdi_dcp_uuid_print(uuid, text);
    crdi_xml_put(w, name, text);
}

static bool is_left_out(const crdi_dcpx_attribute* a, double x)
{
    return isnan(x) || (a->sparse && !(x < a->unless || x > a->unless));
}

static void write_attribute(crdi_xml_writer* w, const crdi_dcpx_attribute* a, const void* base)
{
    const void* at = (const char*)base + a->offset;
    if (a->flag && !*((const bool*)base + a->flag)) { return; }
    switch ((crdi_dcpx_kind)a->kind) {
    case CRDI_DCPX_OTHER:
        break;
    case CRDI_DCPX_TEXT:
        if (a->mandatory) {
            crdi_xml_put(w, a->name, *(const char* const*)at);
        } else {
            crdi_xml_put_if(w, a->name, *(const char* const*)at);
        }
        break;
    case CRDI_DCPX_DATE:
        if (*(const char* const*)at && crdi_dcp_is_date(*(const char* const*)at)) {
            crdi_xml_put(w, a->name, *(const char* const*)at);
        }
        break;
    case CRDI_DCPX_UUID:
        crdi_dcp_put_uuid(w, a->name, at);
        break;
    case CRDI_DCPX_WORD:
        for (const crdi_dcpx_word* x = a->words; x->text; x++) {
            if (x->value == *(const uint8_t*)at) { crdi_xml_put(w, a->name, x->text); }
        }
        break;
    case CRDI_DCPX_BOOL:
        crdi_xml_put_bool(w, a->name, *(const bool*)at);
        break;
    case CRDI_DCPX_WHOLE: {
        const uint64_t x = crdi_dcp_member_get(base, a->offset, a->size);
        if (!is_left_out(a, (double)x)) { crdi_xml_put_whole(w, a->name, x); }
        break;
    }
    case CRDI_DCPX_I8:
        if (!is_left_out(a, *(const int8_t*)at)) {
            crdi_xml_put_int(w, a->name, *(const int8_t*)at);
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
static void write_attributes(crdi_xml_writer* w, crdi_dcpx_element element, const void* base)
{
    for (const crdi_dcpx_attribute* a = crdi_dcpx_attributes(element); a->name; a++) {
        write_attribute(w, a, base);
    }
}

// ---- the parts ---------------------------------------------------------------------------------

// An element without children.
static void write_leaf(writer* w, const char* name, crdi_dcpx_element element, const void* base)
{
    crdi_xml_begin(&w->xml, name);
    write_attributes(&w->xml, element, base);
    crdi_xml_end(&w->xml);
}

static void write_empty(writer* w, const char* name)
{
    crdi_xml_begin(&w->xml, name);
    crdi_xml_end(&w->xml);
}

static void write_steps(crdi_xml_writer* x, uint32_t usual, bool fixed, uint32_t min, uint32_t max)
{
    crdi_xml_put_whole(x, "defaultSteps", usual);
    crdi_xml_put_bool(x, "fixedSteps", fixed);
    if (!fixed) {
        crdi_xml_put_whole(x, "minSteps", min);
        crdi_xml_put_whole(x, "maxSteps", max);
    }
}

static void write_modes(writer* w)
{
    const crd_dcp_description* d = w->d;
    crdi_xml_begin(&w->xml, "OpMode");
    if (d->hrt) { write_empty(w, "HardRealTime"); }
    if (d->srt) { write_empty(w, "SoftRealTime"); }
    if (d->nrt) {
        crdi_xml_begin(&w->xml, "NonRealTime");
        write_steps(&w->xml, d->nrt_default_steps, d->nrt_fixed_steps, d->nrt_min_steps,
                    d->nrt_max_steps);
        crdi_xml_end(&w->xml);
    }
    crdi_xml_end(&w->xml);
}

static void write_units(writer* w)
{
    const crd_dcp_description* d = w->d;
    if (d->unit_count == 0) { return; }
    crdi_xml_begin(&w->xml, "UnitDefinitions");
    for (int i = 0; i < d->unit_count; i++) {
        const crd_dcp_unit* u = &d->units[i];
        crdi_xml_begin(&w->xml, "Unit");
        write_attributes(&w->xml, CRDI_DCPX_UNIT, u);
        if (u->has_base) { write_leaf(w, "BaseUnit", CRDI_DCPX_BASE_UNIT, u); }
        for (int k = 0; k < u->display_count; k++) {
            write_leaf(w, "DisplayUnit", CRDI_DCPX_DISPLAY_UNIT, &u->displays[k]);
        }
        crdi_xml_end(&w->xml);
    }
    crdi_xml_end(&w->xml);
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
        if (crdi_map_add(&names, v->declared_type, i, &fresh) < 0) { w->xml.out->failed = true; }
        if (!fresh) { continue; }
        if (names.count == 1) { crdi_xml_begin(&w->xml, "TypeDefinitions"); }
        crdi_xml_begin(&w->xml, "SimpleType");
        crdi_xml_inline(&w->xml);
        crdi_xml_put(&w->xml, "name", v->declared_type);
        write_empty(w, crdi_dcp_type_elements[v->type]);
        crdi_xml_end(&w->xml);
    }
    if (names.count) { crdi_xml_end(&w->xml); }
    crdi_map_clear(&names);
}

static void write_time(writer* w)
{
    const crd_dcp_description* d = w->d;
    crdi_xml_writer* x = &w->xml;
    crdi_xml_begin(x, "TimeRes");
    for (int i = 0; i < d->resolution_count; i++) {
        const crd_dcp_resolution* r = &d->resolutions[i];
        const bool range = r->numerator != r->numerator_to;
        crdi_xml_begin(x, range ? "ResolutionRange" : "Resolution");
        crdi_xml_put_whole(x, range ? "numeratorFrom" : "numerator", r->numerator);
        if (range) { crdi_xml_put_whole(x, "numeratorTo", r->numerator_to); }
        crdi_xml_put_whole(x, "denominator", r->denominator);
        if (!range) {
            crdi_xml_put_bool(x, "fixed", d->fixed_resolution);
            crdi_xml_put_bool(x, "recommended", r->recommended);
        }
        crdi_xml_end(x);
    }
    crdi_xml_end(x);
    if (d->has_heartbeat) {
        crdi_xml_begin(x, "Heartbeat");
        write_leaf(w, "MaximumPeriodicInterval", CRDI_DCPX_INTERVAL, d);
        crdi_xml_end(x);
    }
}

static void write_ports(writer* w, const char* element, const char* host,
                        const crd_dcp_ports* ports, int count)
{
    crdi_xml_begin(&w->xml, element);
    crdi_xml_put_if(&w->xml, "host", host);
    for (int i = 0; i < count; i++) {
        const bool one = ports[i].from == ports[i].to;
        write_leaf(w, one ? "AvailablePort" : "AvailablePortRange",
                   one ? CRDI_DCPX_PORT : CRDI_DCPX_PORT_RANGE, &ports[i]);
    }
    crdi_xml_end(&w->xml);
}

static void write_endpoint(writer* w, const crd_dcp_endpoint* e, const char* element)
{
    if (!e->offered) { return; }
    crdi_xml_begin(&w->xml, element);
    write_attributes(&w->xml, CRDI_DCPX_IPV4, e);
    if ((e->host && e->host[0]) || e->port) { write_leaf(w, "Control", CRDI_DCPX_CONTROL, e); }
    if (e->has_data) { write_ports(w, "DAT_input_output", e->data_host, e->data, e->data_count); }
    if (e->has_parameter) {
        write_ports(w, "DAT_parameter", e->parameter_host, e->parameter, e->parameter_count);
    }
    crdi_xml_end(&w->xml);
}

static void write_transports(writer* w)
{
    const crd_dcp_description* d = w->d;
    crdi_xml_begin(&w->xml, "TransportProtocols");
    write_endpoint(w, &d->udp, "UDP_IPv4");
    if (d->can) { write_empty(w, "CAN"); }
    if (d->usb) { write_empty(w, "USB2"); }
    write_endpoint(w, &d->tcp, "TCP_IPv4");
    crdi_xml_end(&w->xml);
    write_leaf(w, "CapabilityFlags", CRDI_DCPX_FLAGS, d);
}

// ---- variables ---------------------------------------------------------------------------------

static void write_type(crdi_xml_writer* x, const crd_dcp_variable* v)
{
    crd_dcp_variable own = *v;
    if (!v->mime || !v->mime[0]) { own.mime = CRDI_DCP_MIME; }
    crdi_xml_begin(x, crdi_dcp_type_elements[v->type]);
    if (v->causality != CRD_STRUCTURAL_PARAMETER) {
        write_attributes(x, crdi_dcpx_type_element(v->type), &own);
    }
    // the schema wants it on all but outputs
    if (v->start || v->causality != CRD_OUTPUT) { crdi_xml_put(x, "start", v->start); }
    crdi_xml_end(x);
}

static void write_dimensions(crdi_xml_writer* x, const crd_dcp_variable* v)
{
    crdi_xml_begin(x, "Dimensions");
    for (int i = 0; i < v->rank; i++) {
        crdi_xml_begin(x, "Dimension");
        if (v->is_linked[i]) {
            crdi_xml_put_whole(x, "linkedVR", v->linked[i]);
        } else {
            crdi_xml_put_whole(x, "constant", v->dimensions[i]);
        }
        crdi_xml_end(x);
    }
    crdi_xml_end(x);
}

static void write_dependencies(writer* w, const char* element, const crd_dcp_dependency* all,
                               int count)
{
    crdi_xml_begin(&w->xml, element);
    for (int i = 0; i < count; i++) {
        write_leaf(w, "Dependency", CRDI_DCPX_DEPENDENCY, &all[i]);
    }
    crdi_xml_end(&w->xml);
}

static void write_causality(writer* w, const crd_dcp_variable* v)
{
    crdi_xml_writer* x = &w->xml;
    crdi_xml_begin(x, v->causality == CRD_INPUT       ? "Input"
                      : v->causality == CRD_OUTPUT    ? "Output"
                      : v->causality == CRD_PARAMETER ? "Parameter"
                                                      : "StructuralParameter");
    if (v->causality == CRD_OUTPUT) {
        write_steps(x, v->default_steps, v->fixed_steps, v->min_steps, v->max_steps);
        write_attributes(x, CRDI_DCPX_OUTPUT, v);
    }
    write_type(x, v);
    if (v->rank > 0) { write_dimensions(x, v); }
    if (v->causality == CRD_OUTPUT && (v->has_initial_dependencies || v->has_run_dependencies)) {
        crdi_xml_begin(x, "Dependencies");
        if (v->has_initial_dependencies) {
            write_dependencies(w, "Initialization", v->initial_dependencies,
                               v->initial_dependency_count);
        }
        if (v->has_run_dependencies) {
            write_dependencies(w, "Run", v->run_dependencies, v->run_dependency_count);
        }
        crdi_xml_end(x);
    }
    crdi_xml_end(x);
}

static void write_variables(writer* w)
{
    crdi_xml_begin(&w->xml, "Variables");
    for (int i = 0; i < w->d->variable_count; i++) {
        const crd_dcp_variable* v = &w->d->variables[i];
        crdi_xml_begin(&w->xml, "Variable");
        write_attributes(&w->xml, CRDI_DCPX_VARIABLE, v);
        write_causality(w, v);
        crdi_xml_end(&w->xml);
    }
    crdi_xml_end(&w->xml);
}

static void write_log(writer* w)
{
    const crd_dcp_description* d = w->d;
    if (d->category_count == 0) { return; }
    crdi_xml_begin(&w->xml, "Log");
    crdi_xml_begin(&w->xml, "Categories");
    for (int i = 0; i < d->category_count; i++) {
        write_leaf(w, "Category", CRDI_DCPX_CATEGORY, &d->categories[i]);
    }
    crdi_xml_end(&w->xml);
    crdi_xml_begin(&w->xml, "Templates");
    for (int i = 0; i < d->template_count; i++) {
        write_leaf(w, "Template", CRDI_DCPX_TEMPLATE, &d->templates[i]);
    }
    crdi_xml_end(&w->xml);
    crdi_xml_end(&w->xml);
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
    writer w = {.d = d};
    crdi_xml_writer_init(&w.xml, out);
    crdi_xml_begin(&w.xml, "dcpSlaveDescription");
    write_attributes(&w.xml, CRDI_DCPX_ROOT, d);
    write_modes(&w);
    write_units(&w);
    write_types(&w);
    write_time(&w);
    write_transports(&w);
    write_variables(&w);
    write_log(&w);
    crdi_xml_end(&w.xml);
    if (w.xml.bad) {
        return crdi_fail(d->ctx, CRD_E_RANGE,
                         "slave '%s' cannot be written: XML has no way to "
                         "hold '%s'",
                         crdi_clip(d->name ? d->name : "").text, crdi_clip(w.xml.bad).text);
    }
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}
