// cardan info on the description of a DCP slave, alone (.dcpx) or in its archive (.dcp).
#include "cardan/archive.h"
#include "cardan/xml.h"
#include "cli/info.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BYTES = 64 << 20 };

static const char* const head_keys[] = {"uuid",    "description",    "author",
                                        "version", "generationTool", "generationDateAndTime",
                                        "license", "copyright"};

// "" for what is absent.
static const char* get(const crdi_xml_element* e, const char* name)
{
    const char* value = e ? crdi_xml_get(e, name) : NULL;
    return value ? value : "";
}

// The one element that says what a variable is (Input, Output ...), and in it the one of its type.
static const crdi_xml_element* role_of(const crdi_xml_element* variable)
{
    static const char* const roles[] = {"Input", "Output", "Parameter", "StructuralParameter"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const crdi_xml_element* e = crdi_xml_child(variable, "", roles[i]);
        if (e) { return e; }
    }
    return NULL;
}

static const crdi_xml_element* type_of(const crdi_xml_element* role)
{
    for (const crdi_xml_element* e = role ? role->first : NULL; e; e = e->next) {
        if (strcmp(e->name, "Dimensions") != 0 && strcmp(e->name, "Dependencies") != 0) {
            return e;
        }
    }
    return NULL;
}

// What its declared type says counts where it says nothing itself.
static const char* property(const crdi_xml_element* root, const crdi_xml_element* variable,
                            const crdi_xml_element* type, const char* name)
{
    const char* own = get(type, name);
    const char* declared = get(variable, "declaredType");
    const crdi_xml_element* types = crdi_xml_child(root, "", "TypeDefinitions");
    if (*own || !*declared || !types) { return own; }
    for (const crdi_xml_element* e = types->first; e; e = e->next) {
        if (strcmp(get(e, "name"), declared) == 0) { return get(e->first, name); }
    }
    return own;
}

// "[3]", "[3][n]" with the value reference of a structural parameter as #31.
static void format_size(const crdi_xml_element* role, char* out, size_t size)
{
    const crdi_xml_element* all = role ? crdi_xml_child(role, "", "Dimensions") : NULL;
    size_t used = 0;
    out[0] = 0;
    for (const crdi_xml_element* d = all ? all->first : NULL; d && used < size; d = d->next) {
        const char* constant = get(d, "constant");
        const int n = snprintf(out + used, size - used, "[%s%s]", *constant ? "" : "#",
                               *constant ? constant : get(d, "linkedVR"));
        used += n > 0 ? (size_t)n : 0;
    }
}

// Names of the children of an element, separated by commas.
static void join_children(const crdi_xml_element* e, crdi_text* out)
{
    for (const crdi_xml_element* c = e ? e->first : NULL; c; c = c->next) {
        crdi_text_add(out, "%s%s", out->length ? ", " : "", c->name);
    }
}

static void join_flags(const crdi_xml_element* e, crdi_text* out)
{
    for (int i = 0; e && i < e->attribute_count; i++) {
        if (strcmp(e->attributes[i].value, "true") == 0 ||
            strcmp(e->attributes[i].value, "1") == 0) {
            crdi_text_add(out, "%s%s", out->length ? ", " : "", e->attributes[i].name);
        }
    }
}

static void join_resolutions(const crdi_xml_element* e, crdi_text* out)
{
    for (const crdi_xml_element* r = e ? e->first : NULL; r; r = r->next) {
        const char* comma = out->length ? ", " : "";
        const char* denominator = get(r, "denominator");
        if (strcmp(r->name, "ResolutionRange") == 0) {
            crdi_text_add(out, "%s%s/%s s to %s/%s s", comma, get(r, "numeratorFrom"), denominator,
                          get(r, "numeratorTo"), denominator);
        } else {
            const char* numerator = get(r, "numerator");
            crdi_text_add(out, "%s%s/%s s%s", comma, *numerator ? numerator : "1",
                          *denominator ? denominator : "1000",
                          strcmp(get(r, "fixed"), "false") == 0 ? "" : " (fixed)");
        }
    }
}

typedef struct summary {
    crdi_text modes, resolutions, transports, flags;
} summary;

static void summary_init(summary* s, crd_context* ctx, const crdi_xml_element* root)
{
    crdi_text_init(&s->modes, ctx);
    crdi_text_init(&s->resolutions, ctx);
    crdi_text_init(&s->transports, ctx);
    crdi_text_init(&s->flags, ctx);
    join_children(crdi_xml_child(root, "", "OpMode"), &s->modes);
    join_resolutions(crdi_xml_child(root, "", "TimeRes"), &s->resolutions);
    join_children(crdi_xml_child(root, "", "TransportProtocols"), &s->transports);
    join_flags(crdi_xml_child(root, "", "CapabilityFlags"), &s->flags);
}

static void summary_clear(summary* s)
{
    crdi_text_clear(&s->modes);
    crdi_text_clear(&s->resolutions);
    crdi_text_clear(&s->transports);
    crdi_text_clear(&s->flags);
}

static void print_slave(crdi_cli* cli, const char* path, const crdi_xml_element* root,
                        const summary* s, const crdi_info_options* o)
{
    printf("%s: DCP %s.%s slave, %s\n", path, get(root, "dcpMajorVersion"),
           get(root, "dcpMinorVersion"), get(root, "dcpSlaveName"));
    for (size_t i = 0; i < sizeof head_keys / sizeof *head_keys; i++) {
        const char* value = get(root, head_keys[i]);
        if (*value) { printf("%-22s %s\n", head_keys[i], value); }
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
    const crdi_xml_element* variables = crdi_xml_child(root, "", "Variables");
    for (const crdi_xml_element* v = variables ? variables->first : NULL; v; v = v->next) {
        if (!crdi_match_any(&o->variables, get(v, "name"))) { continue; }
        const crdi_xml_element *role = role_of(v), *type = type_of(role);
        char size[64];
        format_size(role, size, sizeof size);
        crdi_grid_add(&g, "%s", get(v, "valueReference"));
        crdi_grid_add(&g, "%s", get(v, "name"));
        crdi_grid_add(&g, "%s", role ? role->name : "");
        crdi_grid_add(&g, "%s%s", type ? type->name : "", size);
        crdi_grid_add(&g, "%s", property(root, v, type, "unit"));
        crdi_grid_add(&g, "%.40s", property(root, v, type, "start"));
        crdi_grid_add(&g, "%s", property(root, v, type, "min"));
        crdi_grid_add(&g, "%s", property(root, v, type, "max"));
        crdi_grid_add(&g, "%s", *get(v, "variability") ? get(v, "variability") : "continuous");
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
}

static json_t* optional_text(const char* text)
{
    return *text ? crdi_json_text(text) : json_null();
}

// "a, b" -> ["a", "b"]
static json_t* list_to_json(const crdi_text* joined)
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

static json_t* slave_to_json(const char* path, const crdi_xml_element* root, const summary* s,
                             const crdi_info_options* o)
{
    json_t* j = json_object();
    json_object_set_new(j, "kind", json_string("dcp slave"));
    json_object_set_new(j, "file", crdi_json_text(path));
    json_object_set_new(j, "name", crdi_json_text(get(root, "dcpSlaveName")));
    for (size_t i = 0; i < sizeof head_keys / sizeof *head_keys; i++) {
        json_object_set_new(j, head_keys[i], optional_text(get(root, head_keys[i])));
    }
    json_object_set_new(j, "operation_modes", list_to_json(&s->modes));
    json_object_set_new(j, "time_resolution", list_to_json(&s->resolutions));
    json_object_set_new(j, "transport", list_to_json(&s->transports));
    json_object_set_new(j, "capabilities", list_to_json(&s->flags));
    json_t* list = json_array();
    const crdi_xml_element* variables = crdi_xml_child(root, "", "Variables");
    for (const crdi_xml_element* v = variables ? variables->first : NULL; v; v = v->next) {
        if (!crdi_match_any(&o->variables, get(v, "name"))) { continue; }
        static const char* const properties[] = {"unit", "start", "min", "max"};
        const crdi_xml_element *role = role_of(v), *type = type_of(role);
        char size[64];
        format_size(role, size, sizeof size);
        json_t* x = json_object();
        json_object_set_new(x, "name", crdi_json_text(get(v, "name")));
        json_object_set_new(x, "value_reference", crdi_json_text(get(v, "valueReference")));
        json_object_set_new(x, "role", crdi_json_text(role ? role->name : ""));
        json_object_set_new(x, "type", crdi_json_text(type ? type->name : ""));
        json_object_set_new(x, "size", optional_text(size));
        json_object_set_new(
            x, "variability",
            crdi_json_text(*get(v, "variability") ? get(v, "variability") : "continuous"));
        json_object_set_new(x, "description", crdi_json_text(get(v, "description")));
        for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
            json_object_set_new(x, properties[i],
                                optional_text(property(root, v, type, properties[i])));
        }
        json_array_append_new(list, x);
    }
    json_object_set_new(j, "variables", list);
    return j;
}

static crd_status read_whole(crd_context* ctx, const char* path, char** out, size_t* length)
{
    crd_status st = CRD_OK;
    char* text = NULL;
    size_t capacity = 0, used = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) { return crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno)); }
    for (;;) {
        char* grown = crdi_grow(ctx, text, &capacity, used + 65536, 1);
        if (!grown) {
            st = CRD_E_MEMORY;
            break;
        }
        text = grown;
        const ssize_t n = read(fd, text + used, 65536);
        if (n < 0 && errno == EINTR) { continue; }
        if (n < 0) { st = crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno)); }
        if (n <= 0) { break; }
        used += (size_t)n;
        if (used > MAX_BYTES) {
            st = crdi_fail(ctx, CRD_E_FORMAT, "%s: larger than %d MiB, no slave description is",
                           path, MAX_BYTES >> 20);
            break;
        }
    }
    close(fd);
    if (st < 0) {
        crdi_free(ctx, text);
        return st;
    }
    *out = text;
    *length = used;
    return CRD_OK;
}

// An archive has one folder for each version of the standard; there is 1.0 only.
static crd_status read_archived(crd_context* ctx, const char* path, char** out, size_t* length)
{
    static const char entry[] = "v1.0/dcpSlaveDescription.dcpx";
    const crdi_archive_limits limits = {.max_unpacked = UINT64_MAX, .max_entries = 100000};
    crdi_archive* a = NULL;
    crd_status st = crdi_archive_open(ctx, path, &limits, &a);
    if (st < 0) { return st; }
    const int32_t index = crdi_archive_find(a, entry);
    st = index < 0 ? crdi_fail(ctx, CRD_E_FORMAT,
                               "%s: it has no %s, expected the archive of a DCP slave", path, entry)
                   : crdi_archive_read(a, index, MAX_BYTES, out, length);
    crdi_archive_close(a);
    return st;
}

static crd_status check_patterns(crd_context* ctx, const crdi_xml_element* root, const char* path,
                                 const crdi_list* patterns)
{
    const crdi_xml_element* variables = crdi_xml_child(root, "", "Variables");
    for (int i = 0; i < patterns->count; i++) {
        const crdi_xml_element* v = variables ? variables->first : NULL;
        while (v && !crdi_glob(patterns->items[i], get(v, "name"))) {
            v = v->next;
        }
        if (!v) {
            return crdi_fail(ctx, CRD_E_NOT_FOUND, "--variables '%s' fits no variable of %s",
                             patterns->items[i], path);
        }
    }
    return CRD_OK;
}

crd_status crdi_info_dcp(crdi_cli* cli, const char* path, const crdi_info_options* o)
{
    crd_context* ctx = cli->ctx;
    crd_status st = CRD_OK;
    char* text = NULL;
    size_t length = 0;
    crdi_xml* x = NULL;
    CRD_TRY(crdi_is_archive(path) ? read_archived(ctx, path, &text, &length)
                                  : read_whole(ctx, path, &text, &length));
    CRD_TRY(crdi_xml_parse(ctx, text, length, path, &x));
    if (!crdi_xml_is(x->root, "", "dcpSlaveDescription")) {
        st = crdi_fail(ctx, CRD_E_FORMAT,
                       "%s:%d: the document is a '%s', expected a dcpSlaveDescription", path,
                       x->root->line, x->root->name);
        goto fail;
    }
    CRD_TRY(check_patterns(ctx, x->root, path, &o->variables));
    summary s;
    summary_init(&s, ctx, x->root);
    if (o->common.json) {
        st = crdi_json_print(cli, slave_to_json(path, x->root, &s, o));
    } else {
        print_slave(cli, path, x->root, &s, o);
        st = crdi_stdout_done(ctx);
    }
    summary_clear(&s);
fail:
    crdi_xml_destroy(x);
    crdi_free(ctx, text);
    return st;
}
