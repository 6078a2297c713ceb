// The rules for descriptions: the list of them all, and the check of those that a description
// shows, whether it was read or made by hand. Rules about the document itself (A, X, and what a
// description has no room for) are checked by the reader.
#include "dcp/description/rules.h"

#include <math.h>
#include <string.h>

// Code, severity and what is right; docs/reference/dcpx.md shows them in this order.
// clang-format off
static const crdi_dcp_rule rules[] = {
    {"A01", CRD_DCP_NOTE, "An archive has one description: v1.0/dcpSlaveDescription.dcpx."},
    {"A02", CRD_DCP_NOTE, "Everything in an archive lies below v1.0/."},

    {"X01", CRD_DCP_NOTE, "Elements are those of the schema; others are ignored."},
    {"X02", CRD_DCP_NOTE, "Attributes are those of the schema; others are ignored."},
    {"X03", CRD_DCP_WARNING, "Elements stand in the order of the schema."},
    {"X04", CRD_DCP_FAULT, "What may be there once is not there twice."},
    {"X05", CRD_DCP_FAULT, "Mandatory elements are there."},
    {"X06", CRD_DCP_FAULT, "Mandatory attributes are there."},
    {"X07", CRD_DCP_FAULT, "Values of attributes are of their type and in its range."},
    {"X08", CRD_DCP_NOTE, "Booleans are written true and false: some readers take 1 for false."},
    {"X09", CRD_DCP_WARNING, "Elements are in no namespace."},

    {"G01", CRD_DCP_FAULT, "dcpMajorVersion is 1."},
    {"G02", CRD_DCP_WARNING, "dcpMinorVersion is 0."},
    {"G03", CRD_DCP_FAULT, "uuid has hexadecimal digits as 8-4-4-4-12."},
    {"G04", CRD_DCP_WARNING, "uuid is not all zeros."},
    {"G05", CRD_DCP_WARNING, "dcpSlaveName is not empty."},
    {"G06", CRD_DCP_WARNING, "generationDateAndTime is a date and time as in XML Schema."},
    {"G07", CRD_DCP_FAULT, "Texts are UTF-8 without control characters."},

    {"M01", CRD_DCP_FAULT, "There is at least one operating mode."},
    {"M02", CRD_DCP_FAULT, "NonRealTime with fixedSteps = true has neither minSteps nor maxSteps."},
    {"M03", CRD_DCP_FAULT, "NonRealTime: maxSteps is not below minSteps."},
    {"M04", CRD_DCP_FAULT, "NonRealTime: steps are at least 1."},
    {"M05", CRD_DCP_WARNING, "NonRealTime: defaultSteps lies between minSteps and maxSteps."},

    {"R01", CRD_DCP_FAULT, "A fixed resolution is the only one."},
    {"R02", CRD_DCP_FAULT, "Numerators and denominators are at least 1."},
    {"R03", CRD_DCP_FAULT, "ResolutionRange: numeratorTo is not below numeratorFrom."},
    {"R04", CRD_DCP_WARNING, "There is at least one resolution."},
    {"R05", CRD_DCP_FAULT, "There is a Heartbeat if and only if canMonitorHeartbeat is true."},

    {"T01", CRD_DCP_WARNING, "UDP_IPv4, TCP_IPv4 or CAN is offered."},
    {"T02", CRD_DCP_NOTE, "Control has host and port."},
    {"T03", CRD_DCP_WARNING, "A range of ports does not end before it begins."},
    {"T04", CRD_DCP_NOTE, "There are ports for data if there are inputs, and for parameters if "
                          "there are tunable ones."},
    {"T05", CRD_DCP_WARNING, "maxPduSize has room for STC_register (24 bytes) and is no more than "
                             "the transport can carry (UDP: 65507 bytes)."},

    {"V01", CRD_DCP_FAULT, "There is at least one variable."},
    {"V02", CRD_DCP_FAULT, "Names of variables differ."},
    {"V03", CRD_DCP_FAULT, "Value references differ."},
    {"V04", CRD_DCP_WARNING, "Names of variables are not empty."},
    {"V05", CRD_DCP_FAULT, "A variable is one of Input, Output, Parameter, StructuralParameter."},
    {"V06", CRD_DCP_FAULT, "A variable has one data type."},
    {"V07", CRD_DCP_FAULT, "Inputs and outputs are continuous or discrete; parameters and "
                           "structural parameters say that they are fixed or tunable."},
    {"V08", CRD_DCP_FAULT, "Inputs, parameters and structural parameters have a start value."},
    {"V09", CRD_DCP_WARNING, "So have strings and binaries, although it may be empty."},
    {"V10", CRD_DCP_FAULT, "Start values are finite and of the variable's type."},
    {"V11", CRD_DCP_WARNING, "There are as many start values as the variable has elements."},
    {"V12", CRD_DCP_FAULT, "Output with fixedSteps = true has neither minSteps nor maxSteps."},
    {"V13", CRD_DCP_FAULT, "Output with fixedSteps = false has minSteps, and maxSteps above it."},
    {"V14", CRD_DCP_FAULT, "Output: steps are at least 1."},
    {"V15", CRD_DCP_FAULT, "Output with initialization = true has no dependencies for Run."},
    {"V16", CRD_DCP_FAULT, "Outputs have no maxConsecMissedPdus."},
    {"V17", CRD_DCP_FAULT, "A structural parameter is one unsigned integer and starts at 1 or "
                           "above."},
    {"V18", CRD_DCP_FAULT, "A dimension is either a constant or the value of another variable, and "
                           "at least 1."},
    {"V19", CRD_DCP_FAULT, "linkedVR is the value reference of a structural parameter."},
    {"V20", CRD_DCP_FAULT, "Strings, binaries and structural parameters have no dimensions."},
    {"V21", CRD_DCP_FAULT, "All elements of an array fit into one PDU."},
    {"V22", CRD_DCP_FAULT, "There are at most 8 dimensions."},
    {"V23", CRD_DCP_WARNING, "min is not above max."},
    {"V24", CRD_DCP_WARNING, "Start values lie between min and max."},
    {"V25", CRD_DCP_WARNING, "Dependencies are value references of variables."},
    {"V26", CRD_DCP_WARNING, "Units of variables are defined, and their display units too."},
    {"V27", CRD_DCP_FAULT, "declaredType is the name of a SimpleType."},
    {"V28", CRD_DCP_WARNING, "The declared type has the data type of the variable."},
    {"V29", CRD_DCP_NOTE, "Outputs have a start value: some slaves send what is in their memory."},
    {"V30", CRD_DCP_WARNING, "The start value is no longer than maxSize."},
    {"V31", CRD_DCP_NOTE, "Strings and binaries have a maxSize: some slaves reserve 4 GiB "
                          "without."},
    {"V32", CRD_DCP_NOTE, "Value references are below 2147483648: some masters read no larger "
                          "ones."},
    {"V33", CRD_DCP_FAULT, "min, max and gradient are values of the variable's type; nominal, "
                           "preEdge and postEdge are finite."},
    {"V34", CRD_DCP_WARNING, "preEdge and postEdge are not negative."},
    {"V35", CRD_DCP_WARNING, "Output: defaultSteps lies between minSteps and maxSteps."},

    {"U01", CRD_DCP_FAULT, "Names of units differ."},
    {"U02", CRD_DCP_FAULT, "Names of the display units of a unit differ."},
    {"U03", CRD_DCP_FAULT, "Names of types differ."},
    {"U04", CRD_DCP_FAULT, "A type has one data type."},
    {"U05", CRD_DCP_WARNING, "Factors of units are not 0."},
    {"U06", CRD_DCP_FAULT, "Factors and offsets of units are finite."},

    {"L01", CRD_DCP_FAULT, "There is a Log if and only if a flag says that logs are provided."},
    {"L02", CRD_DCP_FAULT, "Ids of categories differ."},
    {"L03", CRD_DCP_FAULT, "Names of categories differ."},
    {"L04", CRD_DCP_FAULT, "Ids of templates differ."},
    {"L05", CRD_DCP_FAULT, "The category of a template exists."},
    {"L06", CRD_DCP_WARNING, "The level of a template is 0 to 4."},
    {"L07", CRD_DCP_WARNING, "% in a message begins a data type (%float64) or another % (%%)."},
    {"L08", CRD_DCP_WARNING, "No category has the id 0, which stands for all."},
    {"L09", CRD_DCP_FAULT, "A Log has categories and templates."},
    {"L10", CRD_DCP_FAULT, "Arguments of a template are those of its message."},
    {"L11", CRD_DCP_WARNING, "There is a Log if canProvideLogOnNotification is true; the schema "
                             "forgets it."},
};
// clang-format on

_Static_assert(sizeof rules / sizeof *rules <= CRDI_DCP_MAX_RULES, "counted by rule");

const crdi_dcp_rules crdi_dcpx_rules = {
    .of = rules, .count = sizeof rules / sizeof *rules, .same = 20, .most = SIZE_MAX};

// ---- pieces ------------------------------------------------------------------------------------

const char* crdi_dcp_trim(const char* text, size_t* length)
{
    text += strspn(text, " \t\r\n");
    *length = strlen(text);
    while (*length > 0 && strchr(" \t\r\n", text[*length - 1])) {
        (*length)--;
    }
    return text;
}

const char* crdi_dcp_word(const char** text, size_t* length)
{
    const char* s = *text + strspn(*text, " \t\r\n");
    const size_t n = strcspn(s, " \t\r\n");
    *text = s + n;
    *length = n;
    return n ? s : NULL;
}

static bool digits_at(const char* text, int count, int low, int high)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9') { return false; }
        value = 10 * value + (text[i] - '0');
    }
    return value >= low && value <= high;
}

bool crdi_dcp_is_date(const char* text)
{
    const char* p = text + (*text == '-');
    const size_t year = strspn(p, "0123456789");
    if (year < 4 || (year > 4 && *p == '0')) { return false; }
    p += year;
    if (p[0] != '-' || !digits_at(p + 1, 2, 1, 12) || p[3] != '-' || !digits_at(p + 4, 2, 1, 31) ||
        p[6] != 'T' || !digits_at(p + 7, 2, 0, 24) || p[9] != ':' || !digits_at(p + 10, 2, 0, 59) ||
        p[12] != ':' || !digits_at(p + 13, 2, 0, 59)) {
        return false;
    }
    p += 15;
    if (*p == '.') {
        const size_t part = strspn(p + 1, "0123456789");
        if (part == 0) { return false; }
        p += 1 + part;
    }
    if (*p == 'Z') { return !p[1]; }
    if (*p != '+' && *p != '-') { return !*p; }
    return digits_at(p + 1, 2, 0, 14) && p[3] == ':' && digits_at(p + 4, 2, 0, 59) && !p[6];
}

crdi_dcp_piece crdi_dcp_placeholder(const char** at, uint8_t* type)
{
    for (const char* p = strchr(*at, '%'); p; p = strchr(p + 2, '%')) {
        if (p[1] == '%') { continue; }
        for (int i = 0; i < CRD_DCP_DATA_TYPE_COUNT; i++) {
            const char* name = crd_dcp_data_type_name(i);
            const size_t n = strlen(name);
            if (strncmp(p + 1, name, n) == 0) {
                *type = (uint8_t)i;
                *at = p + 1 + n;
                return CRDI_DCP_ARGUMENT;
            }
        }
        *at = p + 1;
        return CRDI_DCP_LONE;
    }
    *at += strlen(*at);
    return CRDI_DCP_END;
}

crd_status crdi_dcp_read_arguments(crd_arena* arena, crd_dcp_log_template* t)
{
    uint8_t type = 0;
    crdi_dcp_piece piece = CRDI_DCP_LONE;
    t->argument_count = 0;
    for (const char* at = t->message; piece != CRDI_DCP_END;) {
        piece = crdi_dcp_placeholder(&at, &type);
        t->argument_count += piece == CRDI_DCP_ARGUMENT;
    }
    uint8_t* types = crdi_arena_new(arena, (size_t)t->argument_count, 1);
    if (!types) { return CRD_E_MEMORY; }
    const char* at = t->message;
    for (int n = 0; n < t->argument_count;) {
        if (crdi_dcp_placeholder(&at, &type) == CRDI_DCP_ARGUMENT) { types[n++] = type; }
    }
    t->arguments = types;
    return CRD_OK;
}

// ---- the check ---------------------------------------------------------------------------------

// As XML may hold it.
static bool text_fits(const char* text)
{
    size_t n = 1;
    for (const char* p = crdi_dcp_plain(text); *p && n > 0; p += n) {
        n = crdi_dcp_utf8(p);
        if ((unsigned char)*p < 0x20 && !strchr("\t\n\r", *p)) { return false; }
    }
    return n > 0;
}

void crdi_dcp_check_text(crdi_dcp_checker* c, const char* text, int line, const char* what)
{
    if (!text_fits(text)) {
        crdi_dcp_found(c->f, "G07", line,
                       "%s is not UTF-8 or has control characters, expected plain text", what);
    }
}

bool crdi_dcp_is_new(crdi_dcp_checker* c, crd_map* names, const char* name, int i)
{
    bool fresh = true;
    if (crdi_map_add(names, crdi_dcp_plain(name), i, &fresh) == CRD_OK) { return fresh; }
    c->f->failed = true;
    return true;
}

static void check_root(crdi_dcp_checker* c)
{
    const crd_dcp_description* d = c->d;
    const int line = d->lines.root;
    if (d->major != 1) {
        crdi_dcp_found(c->f, "G01", line, "dcpMajorVersion = %d, expected 1", d->major);
    } else if (d->minor != 0) {
        crdi_dcp_found(c->f, "G02", line, "dcpMinorVersion = %d, expected 0", d->minor);
    }
    static const uint8_t nobody[16] = {0};
    if (memcmp(d->uuid, nobody, 16) == 0) {
        crdi_dcp_found(c->f, "G04", line,
                       "uuid is all zeros, expected one that no other description has");
    }
    if (!crdi_dcp_plain(d->name)[0]) {
        crdi_dcp_found(c->f, "G05", line, "dcpSlaveName is empty, expected a name");
    }
    if (crdi_dcp_plain(d->date)[0] && !crdi_dcp_is_date(d->date)) {
        crdi_dcp_found(c->f, "G06", line,
                       "generationDateAndTime = '%s', expected a time like 2026-01-31T12:00:00Z",
                       CLIP(d->date));
    }
    const char* texts[] = {d->name,      d->description, d->author, d->version,
                           d->copyright, d->license,     d->tool};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        crdi_dcp_check_text(c, texts[i], line, "a text about the slave");
    }
}

static void rules_check_modes(crdi_dcp_checker* c)
{
    const crd_dcp_description* d = c->d;
    const int line = d->lines.op_mode;
    if (!d->hrt && !d->srt && !d->nrt) {
        crdi_dcp_found(c->f, "M01", line,
                       "no operating mode, expected HardRealTime, SoftRealTime or NonRealTime");
    }
    if (!d->nrt) { return; }
    if (d->nrt_default_steps < 1 || (!d->nrt_fixed_steps && d->nrt_min_steps < 1)) {
        crdi_dcp_found(c->f, "M04", line, "NonRealTime: %s = 0, expected at least 1",
                       d->nrt_default_steps < 1 ? "defaultSteps" : "minSteps");
    }
    if (d->nrt_fixed_steps) { return; }
    if (d->nrt_max_steps < d->nrt_min_steps) {
        crdi_dcp_found(c->f, "M03", line,
                       "NonRealTime: maxSteps = %u, expected at least minSteps = %u",
                       d->nrt_max_steps, d->nrt_min_steps);
    } else if (d->nrt_default_steps < d->nrt_min_steps || d->nrt_default_steps > d->nrt_max_steps) {
        crdi_dcp_found(c->f, "M05", line, "NonRealTime: defaultSteps = %u, expected %u to %u",
                       d->nrt_default_steps, d->nrt_min_steps, d->nrt_max_steps);
    }
}

static void check_time(crdi_dcp_checker* c)
{
    const crd_dcp_description* d = c->d;
    if (d->resolution_count == 0) {
        crdi_dcp_found(c->f, "R04", d->lines.time_res,
                       "no resolution is offered, expected a <Resolution> or <ResolutionRange>");
    }
    bool range = false;
    for (int i = 0; i < d->resolution_count; i++) {
        const crd_dcp_resolution* r = &d->resolutions[i];
        range = range || r->numerator != r->numerator_to;
        if (r->numerator < 1 || r->denominator < 1) {
            crdi_dcp_found(c->f, "R02", r->line,
                           "a resolution of %u/%u s, expected numbers of at least 1", r->numerator,
                           r->denominator);
        }
        if (r->numerator_to < r->numerator) {
            crdi_dcp_found(c->f, "R03", r->line,
                           "a range of numerators from %u to %u, expected a first that is not "
                           "above the last",
                           r->numerator, r->numerator_to);
        }
    }
    if (d->fixed_resolution && (d->resolution_count != 1 || range)) {
        crdi_dcp_found(c->f, "R01", d->lines.time_res,
                       "a fixed resolution among %d, expected it alone or all with fixed = false",
                       d->resolution_count);
    }
    if (d->has_heartbeat != d->can_monitor_heartbeat) {
        crdi_dcp_found(
            c->f, "R05", d->has_heartbeat ? d->lines.heartbeat : d->lines.flags,
            d->has_heartbeat
                ? "a <Heartbeat> although canMonitorHeartbeat = false, expected true"
                : "canMonitorHeartbeat = true without <Heartbeat>, expected the element");
    }
    if (d->has_heartbeat && (d->heartbeat_numerator < 1 || d->heartbeat_denominator < 1)) {
        crdi_dcp_found(c->f, "R02", d->lines.heartbeat,
                       "a heartbeat every %u/%u s, expected numbers of at least 1",
                       d->heartbeat_numerator, d->heartbeat_denominator);
    }
}

// ---- transports --------------------------------------------------------------------------------

static void check_ports(crdi_dcp_checker* c, const crd_dcp_endpoint* e, const char* name,
                        const crd_dcp_ports* ports, int count, bool there, bool wanted,
                        const char* element)
{
    for (int i = 0; i < count; i++) {
        if (ports[i].to < ports[i].from) {
            crdi_dcp_found(c->f, "T03", e->line,
                           "%s/%s: ports from %u to %u, expected a first that is not above the "
                           "last",
                           name, element, ports[i].from, ports[i].to);
        }
    }
    if (wanted && (!there || count == 0)) {
        crdi_dcp_found(c->f, "T04", e->line,
                       "%s/%s offers no port, so that some masters cannot send anything there",
                       name, element);
    }
}

static void check_endpoint(crdi_dcp_checker* c, const crd_dcp_endpoint* e, const char* name,
                           uint32_t most, bool inputs, bool tunable)
{
    if (!e->offered) { return; }
    if (!crdi_dcp_plain(e->host)[0] || !e->port) {
        crdi_dcp_found(c->f, "T02", e->line,
                       "%s/Control has no %s, which masters have to know from elsewhere", name,
                       crdi_dcp_plain(e->host)[0] ? "port" : "host");
    }
    if (e->max_pdu_size < 24 || e->max_pdu_size > most) {
        crdi_dcp_found(c->f, "T05", e->line, "%s: maxPduSize = %u, expected 24 to %u", name,
                       e->max_pdu_size, most);
    }
    check_ports(c, e, name, e->data, e->data_count, e->has_data, inputs, "DAT_input_output");
    check_ports(c, e, name, e->parameter, e->parameter_count, e->has_parameter, tunable,
                "DAT_parameter");
    crdi_dcp_check_text(c, e->host, e->line, "a host");
    crdi_dcp_check_text(c, e->data_host, e->line, "a host");
    crdi_dcp_check_text(c, e->parameter_host, e->line, "a host");
}

static void check_transports(crdi_dcp_checker* c)
{
    const crd_dcp_description* d = c->d;
    bool inputs = false, tunable = false;
    for (int i = 0; i < d->variable_count; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        inputs = inputs || v->causality == CRD_INPUT;
        tunable = tunable || (v->causality == CRD_PARAMETER && v->variability == CRD_TUNABLE);
    }
    if (!d->udp.offered && !d->tcp.offered && !d->can) {
        crdi_dcp_found(c->f, "T01", d->lines.transports,
                       "neither UDP_IPv4, TCP_IPv4 nor CAN is offered, expected one that can be "
                       "reached from here");
    }
    check_endpoint(c, &d->udp, "UDP_IPv4", 65507, inputs, tunable);
    check_endpoint(c, &d->tcp, "TCP_IPv4", UINT32_MAX, inputs, tunable);
}

// ---- units and logs ----------------------------------------------------------------------------

static void rules_check_units(crdi_dcp_checker* c)
{
    const crd_dcp_description* d = c->d;
    for (int i = 0; i < d->unit_count; i++) {
        const crd_dcp_unit* u = &d->units[i];
        bool zero = u->has_base && !(u->factor < 0 || u->factor > 0);
        bool finite = !u->has_base || (isfinite(u->factor) && isfinite(u->offset));
        crdi_dcp_check_text(c, u->name, u->line, "the name of a unit");
        if (!crdi_dcp_is_new(c, &c->units, u->name, i)) {
            crdi_dcp_found(c->f, "U01", u->line, "a second unit '%s', expected another name",
                           CLIP(u->name));
        }
        crd_map displays;
        crdi_map_init(&displays, d->ctx);
        for (int k = 0; k < u->display_count; k++) {
            const crd_dcp_display_unit* x = &u->displays[k];
            zero = zero || !(x->factor < 0 || x->factor > 0);
            finite = finite && isfinite(x->factor) && isfinite(x->offset);
            crdi_dcp_check_text(c, x->name, u->line, "the name of a display unit");
            if (!crdi_dcp_is_new(c, &displays, x->name, k)) {
                crdi_dcp_found(c->f, "U02", u->line,
                               "unit '%s': a second display unit '%s', expected another name",
                               CLIP(u->name), CLIP(x->name));
            }
        }
        crdi_map_clear(&displays);
        if (!finite) {
            crdi_dcp_found(c->f, "U06", u->line,
                           "unit '%s': factors and offsets, expected finite numbers",
                           CLIP(u->name));
        } else if (zero) {
            crdi_dcp_found(c->f, "U05", u->line, "unit '%s': a factor of 0, expected another",
                           CLIP(u->name));
        }
    }
}

static void check_template(crdi_dcp_checker* c, const crd_dcp_log_template* t)
{
    crdi_dcp_check_text(c, t->message, t->line, "a log message");
    if (t->level > 4) {
        crdi_dcp_found(c->f, "L06", t->line, "template %d: level = %d, expected 0 to 4", t->id,
                       t->level);
    }
    bool same = true, lone = false;
    int n = 0;
    uint8_t type = 0;
    crdi_dcp_piece piece = CRDI_DCP_LONE;
    for (const char* at = crdi_dcp_plain(t->message); piece != CRDI_DCP_END;) {
        piece = crdi_dcp_placeholder(&at, &type);
        lone = lone || piece == CRDI_DCP_LONE;
        if (piece == CRDI_DCP_ARGUMENT) {
            same = same && n < t->argument_count && t->arguments[n] == type;
            n++;
        }
    }
    if (lone) {
        crdi_dcp_found(c->f, "L07", t->line,
                       "template %d: '%s' has a %% without data type, expected %%%% for the sign",
                       t->id, CLIP(t->message));
    }
    if (!same || n != t->argument_count) {
        crdi_dcp_found(c->f, "L10", t->line,
                       "template %d: %d arguments that are not those of its message '%s'", t->id,
                       t->argument_count, CLIP(t->message));
    }
}

static void check_log(crdi_dcp_checker* c)
{
    const crd_dcp_description* d = c->d;
    bool categories[256] = {false}, templates[256] = {false};
    crd_map names;
    crdi_map_init(&names, d->ctx);
    for (int i = 0; i < d->category_count; i++) {
        const crd_dcp_log_category* x = &d->categories[i];
        if (categories[x->id]) {
            crdi_dcp_found(c->f, "L02", x->line, "a second category %d, expected another id",
                           x->id);
        }
        categories[x->id] = true;
        crdi_dcp_check_text(c, x->name, x->line, "the name of a category");
        if (!crdi_dcp_is_new(c, &names, x->name, i)) {
            crdi_dcp_found(c->f, "L03", x->line, "a second category '%s', expected another name",
                           CLIP(x->name));
        }
        if (x->id == 0) {
            crdi_dcp_found(c->f, "L08", x->line,
                           "category '%s' has the id 0, which stands for all; expected 1 to 255",
                           CLIP(x->name));
        }
    }
    crdi_map_clear(&names);
    for (int i = 0; i < d->template_count; i++) {
        const crd_dcp_log_template* t = &d->templates[i];
        if (templates[t->id]) {
            crdi_dcp_found(c->f, "L04", t->line, "a second template %d, expected another id",
                           t->id);
        }
        templates[t->id] = true;
        if (!categories[t->category]) {
            crdi_dcp_found(c->f, "L05", t->line,
                           "template %d: category %d, expected one of those that are declared",
                           t->id, t->category);
        }
        check_template(c, t);
    }
    const bool there = d->category_count > 0 || d->template_count > 0;
    if (there && (!d->category_count || !d->template_count)) {
        crdi_dcp_found(c->f, "L09", d->lines.log, "a log without %s, expected at least one",
                       d->category_count ? "templates" : "categories");
    }
    if (there && !d->can_log_on_request && !d->can_log_on_notification) {
        crdi_dcp_found(c->f, "L01", d->lines.log,
                       "a <Log> although no flag says so, expected canProvideLogOnRequest or "
                       "canProvideLogOnNotification");
    } else if (!there && d->lines.log == 0 && d->can_log_on_request) {
        crdi_dcp_found(c->f, "L01", d->lines.flags,
                       "canProvideLogOnRequest = true without <Log>, expected the element");
    } else if (!there && d->lines.log == 0 && d->can_log_on_notification) {
        crdi_dcp_found(c->f, "L11", d->lines.flags,
                       "canProvideLogOnNotification = true without <Log>, expected the element");
    }
}

crd_status crdi_dcp_check(const crd_dcp_description* d, crd_arena* arena, crdi_dcp_findings* f,
                          crdi_dcp_index** by_vr)
{
    crdi_dcp_index* index = crdi_arena_new(arena, (size_t)d->variable_count, sizeof *index);
    if (!index) { return CRD_E_MEMORY; }
    crdi_dcp_sort(d, index);
    crdi_dcp_checker c = {.d = d, .by_vr = index, .f = f};
    crdi_map_init(&c.units, d->ctx);
    check_root(&c);
    rules_check_modes(&c);
    check_time(&c);
    check_transports(&c);
    rules_check_units(&c);
    crdi_dcp_check_variables(&c);
    check_log(&c);
    crdi_map_clear(&c.units);
    *by_vr = index;
    return f->failed ? CRD_E_MEMORY : CRD_OK;
}
