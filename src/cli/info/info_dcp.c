// cardan info on the description of a DCP slave, alone (.dcpx) or in its archive (.dcp).
#include "cardan/dcp.h"
#include "cli/info/info.h"
#include "shared/base_names.h"

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

static void info_dcp_number(char out[32], double x)
{
    if (isnan(x)) {
        out[0] = 0;
    } else {
        (void)crdi_format_double(out, x);
    }
}

static row info_dcp_row_of(const crd_dcp_variable* v)
{
    row r = {.role = v->causality == CRD_INPUT                  ? "Input"
                     : v->causality == CRD_OUTPUT               ? "Output"
                     : v->causality == CRD_STRUCTURAL_PARAMETER ? "StructuralParameter"
                                                                : "Parameter",
             .variability = crdi_variability_names[v->variability],
             .start = v->start ? v->start : ""};
    snprintf(r.vr, sizeof r.vr, "%llu", (unsigned long long)v->vr);
    snprintf(r.type, sizeof r.type, "%s", crd_dcp_data_type_name(v->type));
    r.type[0] = (char)toupper((unsigned char)r.type[0]); // Float64
    info_dcp_number(r.min, v->min);
    info_dcp_number(r.max, v->max);
    size_t used = 0;
    for (int i = 0; i < v->rank && used < sizeof r.size; i++) { // "[3]", "[#31]" by reference
        const int n =
            snprintf(r.size + used, sizeof r.size - used, "[%s%llu]", v->is_linked[i] ? "#" : "",
                     (unsigned long long)(v->is_linked[i] ? v->linked[i] : v->dimensions[i]));
        used += n > 0 ? (size_t)n : 0;
    }
    return r;
}

// ---- the slave ---------------------------------------------------------------------------------

typedef struct word {
    const char* text;
    bool there;
} word;

// A list in JSON, words between commas in text.
static void info_dcp_put_words(crdi_result* out, const char* key, const char* label,
                               const word* words, int count, const char* none)
{
    crdi_result* list = crdi_array(out, key);
    const char* joined = "";
    for (int i = 0; i < count; i++) {
        if (!words[i].there) { continue; }
        crdi_add(list, TEXT(NULL, words[i].text));
        joined = crdi_worded(out, "%s%s%s", joined, *joined ? ", " : "", words[i].text);
    }
    crdi_fact(out, label, "%s", *joined ? joined : none);
}

static void put_resolutions(crdi_result* out, const crd_dcp_description* d)
{
    word all[64];
    int count = 0;
    for (int i = 0; i < d->resolution_count && count < 64; i++) {
        const crd_dcp_resolution* r = &d->resolutions[i];
        const char* to = r->numerator_to == r->numerator
                             ? ""
                             : crdi_worded(out, " to %u/%u s", r->numerator_to, r->denominator);
        all[count++] = (word){crdi_worded(out, "%u/%u s%s%s", r->numerator, r->denominator, to,
                                          d->fixed_resolution ? " (fixed)" : ""),
                              true};
    }
    info_dcp_put_words(out, "time_resolution", "time resolution", all, count, "");
}

static void put_abilities(crdi_result* out, const crd_dcp_description* d)
{
    const word modes[] = {
        {"HardRealTime", d->hrt}, {"SoftRealTime", d->srt}, {"NonRealTime", d->nrt}};
    const word transports[] = {{"UDP_IPv4", d->udp.offered},
                               {"CAN", d->can},
                               {"USB2", d->usb},
                               {"Bluetooth", d->bluetooth},
                               {"TCP_IPv4", d->tcp.offered}};
    const word flags[] = {{"canAcceptConfigPdus", d->can_accept_config},
                          {"canHandleReset", d->can_reset},
                          {"canHandleVariableSteps", d->can_vary_steps},
                          {"canMonitorHeartbeat", d->can_monitor_heartbeat},
                          {"canProvideLogOnRequest", d->can_log_on_request},
                          {"canProvideLogOnNotification", d->can_log_on_notification}};
    info_dcp_put_words(out, "operation_modes", "operation modes", modes, 3, "");
    put_resolutions(out, d);
    info_dcp_put_words(out, "transport", "transport", transports, 5, "");
    info_dcp_put_words(out, "capabilities", "capabilities", flags, 6, "none");
}

static const char* or_null(const char* text)
{
    return *text ? text : NULL;
}

static void put_variables(crdi_result* out, const crd_dcp_description* d, const crdi_list* patterns)
{
    static const crdi_column columns[] = {{">vr", "value_reference", "%s"},
                                          {"name", "name", "%s"},
                                          {"role", "role", "%s"},
                                          {"type", "type", "%s"},
                                          {"unit", "unit", "%s"},
                                          {"start", "start", "%s"},
                                          {"min", "min", "%s"},
                                          {"max", "max", "%s"},
                                          {"variability", "variability", "%s"},
                                          {0}};
    crdi_result* list = crdi_array(out, "variables");
    for (int i = 0; i < d->variable_count; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        if (!crdi_match_any(patterns, v->name)) { continue; }
        const row r = info_dcp_row_of(v);
        crdi_put(crdi_row(list), TEXT("name", v->name), TEXT("value_reference", r.vr),
                 TEXT("role", r.role),
                 AS(TEXT("type", r.type), crdi_worded(out, "%s%s", r.type, r.size)),
                 TEXT("size", or_null(r.size)), TEXT("variability", r.variability),
                 TEXT("description", v->description), TEXT("unit", or_null(v->unit)),
                 AS(TEXT("start", or_null(r.start)), crdi_worded(out, "%.40s", r.start)),
                 TEXT("min", or_null(r.min)), TEXT("max", or_null(r.max)));
    }
    crdi_show_table(out, list, columns, "");
}

static void put_slave(crdi_result* out, const char* path, const crd_dcp_description* d,
                      const crdi_list* patterns)
{
    char uuid[40];
    head keys[HEAD_KEYS];
    head_of(d, uuid, keys);
    crdi_label_width(out, 23);
    crdi_put(out, TEXT("kind", "dcp slave"), TEXT("file", path), TEXT("name", d->name));
    crdi_say(out, "%s: DCP %u.%u slave, %s\n", path, d->major, d->minor, d->name);
    for (int i = 0; i < HEAD_KEYS; i++) {
        crdi_put(out, TEXT(keys[i].key, or_null(keys[i].value)));
        crdi_fact_if(out, keys[i].key, keys[i].value);
    }
    put_abilities(out, d);
    crdi_say(out, "\n");
    put_variables(out, d, patterns);
}

static const char* info_dcp_variable_name(const void* d, int i)
{
    return ((const crd_dcp_description*)d)->variables[i].name;
}

// What breaks the rules of DCP is the business of `cardan check`.
crd_status crdi_info_dcp(crdi_cli* cli, const char* path, const crdi_info_options* o,
                         crdi_result* out)
{
    crd_context* ctx = cli->ctx;
    crd_status st = CRD_OK;
    crd_dcp_description* d = NULL;
    CRD_TRY(crd_dcp_load(ctx, path, &d, NULL, NULL));
    CRD_TRY(crdi_check_names(ctx, &o->variables, path, "variable", info_dcp_variable_name, d,
                             d->variable_count));
    put_slave(out, path, d, &o->variables);
fail:
    crd_dcp_description_destroy(d);
    return st;
}
