// cardan info on the description of a DCP slave, alone (.dcpx) or in its archive (.dcp).
#include "cardan/dcp.h"
#include "cli/info.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { HEAD_KEYS = 8 };

typedef struct head {
    const char *key, *value;
} head;

// As the attributes of the document are called.
static void head_of(const crd_dcp_description* d, char uuid[40], head out[HEAD_KEYS])
{
    const uint8_t* u = d->uuid;
    snprintf(uuid, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
             u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
    const head all[HEAD_KEYS] = {{"uuid", uuid},
                                 {"description", d->description},
                                 {"author", d->author},
                                 {"version", d->version},
                                 {"generationTool", d->tool},
                                 {"generationDateAndTime", d->date},
                                 {"license", d->license},
                                 {"copyright", d->copyright}};
    memcpy(out, all, sizeof all);
}

// ---- a variable --------------------------------------------------------------------------------

typedef struct row {
    char vr[24], type[80], size[200], min[32], max[32];
    const char *role, *variability, *start;
} row;

static void number(char out[32], double x)
{
    if (isnan(x)) {
        out[0] = 0;
    } else {
        (void)crdi_format_double(out, x);
    }
}

static row row_of(const crd_dcp_variable* v)
{
    static const char* const variabilities[CRD_VARIABILITY_COUNT] = {
        "continuous", "discrete", "tunable", "fixed", "constant"};
    row r = {.role = v->causality == CRD_INPUT                  ? "Input"
                     : v->causality == CRD_OUTPUT               ? "Output"
                     : v->causality == CRD_STRUCTURAL_PARAMETER ? "StructuralParameter"
                                                                : "Parameter",
             .variability = variabilities[v->variability],
             .start = v->start ? v->start : ""};
    snprintf(r.vr, sizeof r.vr, "%llu", (unsigned long long)v->vr);
    snprintf(r.type, sizeof r.type, "%s", crd_dcp_data_type_name(v->type));
    r.type[0] = (char)toupper((unsigned char)r.type[0]); // Float64
    number(r.min, v->min);
    number(r.max, v->max);
    size_t used = 0;
    for (int i = 0; i < v->rank && used < sizeof r.size; i++) { // "[3]", "[#31]" by reference
        const int n =
            snprintf(r.size + used, sizeof r.size - used, "[%s%llu]", v->is_linked[i] ? "#" : "",
                     (unsigned long long)(v->is_linked[i] ? v->linked[i] : v->dimensions[i]));
        used += n > 0 ? (size_t)n : 0;
    }
    return r;
}

// ---- lists -------------------------------------------------------------------------------------

static void join(crd_text* out, bool there, const char* word)
{
    if (there) { crdi_text_add(out, "%s%s", out->length ? ", " : "", word); }
}

static void join_resolutions(const crd_dcp_description* d, crd_text* out)
{
    for (int i = 0; i < d->resolution_count; i++) {
        const crd_dcp_resolution* r = &d->resolutions[i];
        crdi_text_add(out, "%s%u/%u s", out->length ? ", " : "", r->numerator, r->denominator);
        if (r->numerator_to != r->numerator) {
            crdi_text_add(out, " to %u/%u s", r->numerator_to, r->denominator);
        }
        if (d->fixed_resolution) { crdi_text_add(out, " (fixed)"); }
    }
}

typedef struct summary {
    crd_text modes, resolutions, transports, flags;
} summary;

static void summary_init(summary* s, crd_context* ctx, const crd_dcp_description* d)
{
    crd_text_init(&s->modes, ctx);
    crd_text_init(&s->resolutions, ctx);
    crd_text_init(&s->transports, ctx);
    crd_text_init(&s->flags, ctx);
    join(&s->modes, d->hrt, "HardRealTime");
    join(&s->modes, d->srt, "SoftRealTime");
    join(&s->modes, d->nrt, "NonRealTime");
    join_resolutions(d, &s->resolutions);
    join(&s->transports, d->udp.offered, "UDP_IPv4");
    join(&s->transports, d->can, "CAN");
    join(&s->transports, d->usb, "USB2");
    join(&s->transports, d->bluetooth, "Bluetooth");
    join(&s->transports, d->tcp.offered, "TCP_IPv4");
    join(&s->flags, d->can_accept_config, "canAcceptConfigPdus");
    join(&s->flags, d->can_reset, "canHandleReset");
    join(&s->flags, d->can_vary_steps, "canHandleVariableSteps");
    join(&s->flags, d->can_monitor_heartbeat, "canMonitorHeartbeat");
    join(&s->flags, d->can_log_on_request, "canProvideLogOnRequest");
    join(&s->flags, d->can_log_on_notification, "canProvideLogOnNotification");
}

static void summary_clear(summary* s)
{
    crd_text_clear(&s->modes);
    crd_text_clear(&s->resolutions);
    crd_text_clear(&s->transports);
    crd_text_clear(&s->flags);
}

static void print_slave(crdi_cli* cli, const char* path, const crd_dcp_description* d,
                        const summary* s, const crdi_info_options* o)
{
    char uuid[40];
    head keys[HEAD_KEYS];
    head_of(d, uuid, keys);
    printf("%s: DCP %u.%u slave, %s\n", path, d->major, d->minor, d->name);
    for (int i = 0; i < HEAD_KEYS; i++) {
        if (*keys[i].value) { printf("%-22s %s\n", keys[i].key, keys[i].value); }
    }
    printf("%-22s %s\n", "operation modes", s->modes.data ? s->modes.data : "");
    printf("%-22s %s\n", "time resolution", s->resolutions.data ? s->resolutions.data : "");
    printf("%-22s %s\n", "transport", s->transports.data ? s->transports.data : "");
    printf("%-22s %s\n\n", "capabilities", s->flags.data ? s->flags.data : "none");
    static const char* const titles[] = {"vr",    "name", "role", "type",       "unit",
                                         "start", "min",  "max",  "variability"};
    crdi_grid g;
    crdi_grid_init(&g, cli->ctx, 9, 0x1);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        crdi_grid_add(&g, "%s", titles[i]);
    }
    for (int i = 0; i < d->variable_count; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        if (!crdi_match_any(&o->variables, v->name)) { continue; }
        const row r = row_of(v);
        crdi_grid_add(&g, "%s", r.vr);
        crdi_grid_add(&g, "%s", v->name);
        crdi_grid_add(&g, "%s", r.role);
        crdi_grid_add(&g, "%s%s", r.type, r.size);
        crdi_grid_add(&g, "%s", v->unit);
        crdi_grid_add(&g, "%.40s", r.start);
        crdi_grid_add(&g, "%s", r.min);
        crdi_grid_add(&g, "%s", r.max);
        crdi_grid_add(&g, "%s", r.variability);
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
}

static json_t* optional_text(const char* text)
{
    return *text ? crdi_json_text(text) : json_null();
}

// "a, b" -> ["a", "b"]
static json_t* list_to_json(const crd_text* joined)
{
    json_t* j = json_array();
    const char* at = joined->data ? joined->data : "";
    while (*at) {
        const char* comma = strstr(at, ", ");
        const size_t length = comma ? (size_t)(comma - at) : strlen(at);
        json_array_append_new(j, json_stringn_nocheck(at, length)); // XML is UTF-8 already
        at += length + (comma ? 2 : 0);
    }
    return j;
}

static json_t* variable_to_json(const crd_dcp_variable* v)
{
    const row r = row_of(v);
    json_t* x = json_object();
    json_object_set_new(x, "name", crdi_json_text(v->name));
    json_object_set_new(x, "value_reference", crdi_json_text(r.vr));
    json_object_set_new(x, "role", crdi_json_text(r.role));
    json_object_set_new(x, "type", crdi_json_text(r.type));
    json_object_set_new(x, "size", optional_text(r.size));
    json_object_set_new(x, "variability", crdi_json_text(r.variability));
    json_object_set_new(x, "description", crdi_json_text(v->description));
    json_object_set_new(x, "unit", optional_text(v->unit));
    json_object_set_new(x, "start", optional_text(r.start));
    json_object_set_new(x, "min", optional_text(r.min));
    json_object_set_new(x, "max", optional_text(r.max));
    return x;
}

static json_t* slave_to_json(const char* path, const crd_dcp_description* d, const summary* s,
                             const crdi_info_options* o)
{
    char uuid[40];
    head keys[HEAD_KEYS];
    head_of(d, uuid, keys);
    json_t* j = json_object();
    json_object_set_new(j, "kind", json_string("dcp slave"));
    json_object_set_new(j, "file", crdi_json_text(path));
    json_object_set_new(j, "name", crdi_json_text(d->name));
    for (int i = 0; i < HEAD_KEYS; i++) {
        json_object_set_new(j, keys[i].key, optional_text(keys[i].value));
    }
    json_object_set_new(j, "operation_modes", list_to_json(&s->modes));
    json_object_set_new(j, "time_resolution", list_to_json(&s->resolutions));
    json_object_set_new(j, "transport", list_to_json(&s->transports));
    json_object_set_new(j, "capabilities", list_to_json(&s->flags));
    json_t* list = json_array();
    for (int i = 0; i < d->variable_count; i++) {
        if (crdi_match_any(&o->variables, d->variables[i].name)) {
            json_array_append_new(list, variable_to_json(&d->variables[i]));
        }
    }
    json_object_set_new(j, "variables", list);
    return j;
}

static crd_status check_patterns(crd_context* ctx, const crd_dcp_description* d, const char* path,
                                 const crdi_list* patterns)
{
    for (int i = 0; i < patterns->count; i++) {
        int k = 0;
        while (k < d->variable_count && !crdi_glob(patterns->items[i], d->variables[k].name)) {
            k++;
        }
        if (k == d->variable_count) {
            return crdi_fail(ctx, CRD_E_NOT_FOUND, "--variables '%s' fits no variable of %s",
                             patterns->items[i], path);
        }
    }
    return CRD_OK;
}

// What breaks the rules of DCP is the business of `cardan check`.
crd_status crdi_info_dcp(crdi_cli* cli, const char* path, const crdi_info_options* o)
{
    crd_context* ctx = cli->ctx;
    crd_status st = CRD_OK;
    crd_dcp_description* d = NULL;
    CRD_TRY(crd_dcp_load(ctx, path, &d, NULL, NULL));
    CRD_TRY(check_patterns(ctx, d, path, &o->variables));
    summary s;
    summary_init(&s, ctx, d);
    if (o->common.json) {
        st = crdi_json_print(cli, slave_to_json(path, d, &s, o));
    } else {
        print_slave(cli, path, d, &s, o);
        st = crdi_stdout_done(ctx);
    }
    summary_clear(&s);
fail:
    crd_dcp_description_destroy(d);
    return st;
}
