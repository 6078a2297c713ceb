#include "cardan/system.h"
#include "shared/archive.h"
#include "shared/base_path.h"
#include "system/read.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

crd_unit_spec crd_unit_spec_defaults(void)
{
    return (crd_unit_spec){.name = "",
                           .path = "",
                           .budget = NAN,
                           .interpolation = CRD_INTERPOLATE_LINEAR,
                           .solver = {.relative = NAN, .absolute = NAN, .step = NAN},
                           .netlist = {.method = CRD_NETLIST_TR, .step = NAN, .tolerance = NAN},
                           .session = {.resolution = NAN,
                                       .steps = 1,
                                       .lead = 0.5,
                                       .contact = NAN,
                                       .timeout = NAN,
                                       .patience = NAN,
                                       .heartbeat = NAN,
                                       .alive = NAN},
                           .bench = {.watchdog = NAN},
                           .link = {.contact = NAN, .timeout = NAN},
                           .driver = {.silence = 0.5},
                           .standby = {.after = NAN, .fade = 0.2, .rejoin = true},
                           .place = {"", 0}};
}

crd_connection_spec crd_connection_spec_defaults(void)
{
    return (crd_connection_spec){.from = "",
                                 .to = "",
                                 .gain = 1,
                                 .convert_units = true,
                                 .scale = NAN,
                                 .tolerance = NAN,
                                 .place = {"", 0}};
}

crd_signal_spec crd_signal_spec_defaults(void)
{
    return (crd_signal_spec){.name = "y",
                             .unit = "",
                             .amplitude = 1,
                             .order = 9,
                             .interpolation = CRD_INTERPOLATE_LINEAR,
                             .place = {"", 0}};
}

crd_bond_spec crd_bond_spec_defaults(void)
{
    return (crd_bond_spec){.name = "",
                           .action = "",
                           .flow = "",
                           .mu = NAN,
                           .ki = NAN,
                           .limiter = NAN,
                           .forget = NAN,
                           .factor = "",
                           .stiffness = "",
                           .damping = "",
                           .impedance = "",
                           .inner = NAN,
                           .channel = crdi_no_channel,
                           .place = {"", 0}};
}

const char* crd_prediction_name(crd_prediction p)
{
    return crdi_predictions[p];
}

crd_run_spec crdi_run_spec_defaults(void)
{
    return (crd_run_spec){
        .start = NAN,
        .stop = NAN,
        .step = NAN,
        .tolerance = NAN,
        .predict = CRD_PREDICTION_AUTO,
        .control = {.method = CRD_STEP_H211B,
                    .tolerance = NAN,
                    .first = NAN,
                    .floor = NAN,
                    .ceiling = NAN,
                    .kp = NAN,
                    .ki = NAN,
                    .growth = NAN,
                    .safety = NAN,
                    .reject = NAN,
                    .middle = true,
                    .place = {"", 0}},
        .iterate = {.acceleration = CRD_ACCEL_IQN_ILS,
                    .tolerance = 1e-8,
                    .sweeps = 10,
                    .place = {"", 0}},
        .pace = {.priority = 80, .cpu = -1, .lock = true, .place = {"", 0}},
        .feedthrough = CRD_DEFECT_FRESH,
        .monitor = CRD_MONITOR_DEFECT | CRD_MONITOR_ENERGY,
        .guard = {.max_defect = NAN, .max_energy = NAN, .max_error = NAN, .place = {"", 0}},
        .isolate = crdi_isolation_default(CRD_ISOLATE_FOREIGN),
        .loop_iterations = 50,
        .loop_tolerance = 1e-10,
        .watchdog = NAN};
}

static crd_status create_named(crd_context* ctx, const char* file, crd_system** out)
{
    crd_system* s = crdi_new(ctx, sizeof *s);
    if (!s) { return CRD_E_MEMORY; }
    s->ctx = ctx;
    s->title = s->base = "";
    s->run = crdi_run_spec_defaults();
    crd_arena_init(&s->arena, ctx);
    crdi_map_init(&s->unit_map, ctx);
    s->file = file[0] ? crdi_arena_text(&s->arena, file, strlen(file)) : "";
    if (!s->file) {
        crd_system_destroy(s);
        return CRD_E_MEMORY;
    }
    *out = s;
    return CRD_OK;
}

crd_status crd_system_create(crd_context* ctx, crd_system** out)
{
    return create_named(ctx, "", out);
}

void crd_system_destroy(crd_system* s)
{
    if (!s) { return; }
    if (s->scratch && !crdi_scratch_remove(s->scratch)) {
        crdi_log(s->ctx, CRD_LOG_WARNING, "the folder %s could not be removed", s->scratch);
    }
    crdi_map_clear(&s->unit_map);
    crd_free(s->ctx, s->units);
    crd_free(s->ctx, s->connections);
    crd_free(s->ctx, s->bonds);
    crd_arena_clear(&s->arena);
    crd_free(s->ctx, s);
}

// ---- reading -----------------------------------------------------------------------------------

static crdi_reader reader_for(crd_system* s, const char* file, crd_arena* scratch)
{
    return (crdi_reader){.ctx = s->ctx,
                         .system = s,
                         .arena = &s->arena,
                         .scratch = scratch,
                         .file = file,
                         .folder_length = crdi_folder_length(file)};
}

static crd_status parse_on(crd_context* ctx, const char* text, size_t length, const char* path,
                           crd_system_base* base, crd_system** out)
{
    crd_status st = CRD_OK;
    crd_system* s = NULL;
    crd_arena scratch;
    crd_arena_init(&scratch, ctx);
    CRD_TRY(create_named(ctx, path, &s));
    crdi_node* root = NULL;
    CRD_TRY(crdi_yaml_parse(&scratch, text, length, (crd_place){s->file, -1}, &root));
    crdi_reader r = reader_for(s, s->file, &scratch);
    CRD_TRY(crdi_read_system(&r, root, s, base));
    crd_arena_clear(&scratch);
    *out = s;
    return CRD_OK;
fail:
    crd_arena_clear(&scratch);
    crd_system_destroy(s);
    return st;
}

crd_status crdi_read_file(crd_context* ctx, const char* path, crd_text* out)
{
    return crdi_file_read(
        ctx, path,
        &(crdi_file_need){.what = "a description", .most = CRDI_YAML_BYTES, .pipes = true}, out);
}

crd_status crd_system_load_on(crd_context* ctx, const char* text, size_t length, const char* path,
                              crd_system_base* base, crd_system** out)
{
    if (text) { return parse_on(ctx, text, length, path, base, out); }
    crd_text bytes;
    crd_text_init(&bytes, ctx);
    crd_status st = crdi_read_file(ctx, path, &bytes);
    if (st >= 0) { st = parse_on(ctx, bytes.data, bytes.length, path, base, out); }
    crd_text_clear(&bytes);
    return st;
}

crd_status crd_system_parse(crd_context* ctx, const char* text, size_t length, const char* path,
                            crd_system** out)
{
    return parse_on(ctx, text, length, path, NULL, out);
}

crd_status crd_system_load(crd_context* ctx, const char* path, crd_system** out)
{
    return crd_system_load_on(ctx, NULL, 0, path, NULL, out);
}

crd_status crd_system_amend(crd_system* s, const char* text, size_t length, const char* path,
                            int first_line)
{
    crd_status st = CRD_OK;
    crd_arena scratch;
    crd_arena_init(&scratch, s->ctx);
    crdi_node* root = NULL;
    const char* file = crdi_arena_text(&s->arena, path, strlen(path)); // places keep it
    CRD_TRY(file ? CRD_OK : CRD_E_MEMORY);
    const crd_place place = {file, first_line > 0 ? -first_line : 0};
    CRD_TRY(crdi_yaml_parse(&scratch, text, length, place, &root));
    crdi_reader r = reader_for(s, file, &scratch);
    CRD_TRY(crdi_read_amendment(&r, root, s));
fail:
    crd_arena_clear(&scratch);
    return st;
}

// One key of a system, given as a text.
static crd_status read_text_of(crd_system* s, const char* text, crd_place place,
                               crd_status (*read)(crdi_reader* r, const crdi_node* n, void* out),
                               void* out)
{
    crd_status st = CRD_OK;
    crd_arena scratch;
    crd_arena_init(&scratch, s->ctx);
    crdi_node* root = NULL;
    CRD_TRY(crdi_yaml_parse(&scratch, text, strlen(text), place, &root));
    crdi_reader r = reader_for(s, place.file ? place.file : "", &scratch);
    CRD_TRY(read(&r, root, out));
fail:
    crd_arena_clear(&scratch);
    return st;
}

crd_status crd_system_set_scheme(crd_system* s, const char* text, crd_place place)
{
    return read_text_of(s, text, place, crdi_read_scheme, &s->run);
}

crd_status crd_system_set_pace(crd_system* s, const char* text, crd_place place)
{
    return read_text_of(s, text, place, crdi_read_pace, &s->run.pace);
}

crd_status crd_system_set_guard(crd_system* s, const char* text, crd_place place)
{
    return read_text_of(s, text, place, crdi_read_guard, &s->run.guard);
}

static crd_status of_file(crd_context* ctx, const char* path, crd_unit_source source,
                          const char* what, crd_system** out)
{
    // The unit is called after the file: letters and digits of its name up to the last dot.
    char name[64];
    size_t n = 0, length;
    const char* stem = crdi_path_stem(path, &length);
    for (size_t i = 0; i < length && n + 1 < sizeof name; i++) {
        const unsigned char c = (unsigned char)stem[i];
        const bool later = n > 0 && (isdigit(c) || c == '-');
        name[n] = c < 0x80 && (isalpha(c) || later) ? (char)c : '_';
        n++;
    }
    name[n] = 0;
    if (n == 0) { return crdi_fail(ctx, CRD_E_RANGE, "'%s' is no path of %s", path, what); }

    crd_status st = CRD_OK;
    crd_system* s = NULL;
    CRD_TRY(crd_system_create(ctx, &s));
    crd_unit_spec unit = crd_unit_spec_defaults();
    unit.name = name;
    unit.source = source;
    unit.path = path;
    unit.place.file = path;
    CRD_TRY(crd_system_add_unit(s, &unit, NULL));
    s->single = true;
    *out = s;
    return CRD_OK;
fail:
    crd_system_destroy(s);
    return st;
}

crd_status crd_system_of_fmu(crd_context* ctx, const char* fmu_path, crd_system** out)
{
    return of_file(ctx, fmu_path, CRD_UNIT_FMU, "an FMU", out);
}

crd_status crd_system_of_circuit(crd_context* ctx, const char* path, crd_system** out)
{
    return of_file(ctx, path, CRD_UNIT_CIRCUIT, "a netlist", out);
}

// ---- making by hand ----------------------------------------------------------------------------

static bool system_keep_text(crd_system* s, const char** text)
{
    if (!*text || !(*text)[0]) {
        *text = "";
        return true;
    }
    if (*text == s->file) { return true; }
    *text = crdi_arena_text(&s->arena, *text, strlen(*text));
    return *text != NULL;
}

crd_status crdi_add_unit(crd_system* s, const crd_unit_spec* unit)
{
    crd_unit_spec* grown =
        crdi_grow(s->ctx, s->units, &s->unit_capacity, (size_t)s->unit_count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    s->units = grown;
    bool fresh = false;
    const crd_status st = crdi_map_add(&s->unit_map, unit->name, s->unit_count, &fresh);
    if (st < 0) { return st; }
    if (!fresh) {
        const crd_unit_spec* first = &s->units[crdi_map_find(&s->unit_map, unit->name)];
        char line[40] = "";
        if (first->place.line > 0) {
            snprintf(line, sizeof line, ", first in line %d", first->place.line);
        }
        return crdi_fail(s->ctx, CRD_E_RANGE, "%sthe unit '%s' is there twice%s",
                         crdi_place_text(unit->place).text, crdi_clip(unit->name).text, line);
    }
    s->units[s->unit_count++] = *unit;
    return CRD_OK;
}

crd_status crd_system_add_unit(crd_system* s, const crd_unit_spec* unit, int* index)
{
    crd_unit_spec u = *unit;
    if (!u.name || !u.name[0]) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%sa unit without a name",
                         crdi_place_text(u.place).text);
    }
    if (!(u.step >= 0) || !isfinite(u.step)) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%sunit '%s': step = %g, expected > 0, or 0",
                         crdi_place_text(u.place).text, crdi_clip(u.name).text, u.step);
    }
    const crd_unit_spec* last = s->unit_count ? &s->units[s->unit_count - 1] : NULL;
    const bool same =
        last && last->path && u.path && strcmp(last->path, u.path) == 0; // many units of one FMU
    if (same) { u.path = last->path; }
    if (!system_keep_text(s, &u.name) || (!same && !system_keep_text(s, &u.path)) ||
        !system_keep_text(s, &u.shown) || !system_keep_text(s, &u.isolate) ||
        !system_keep_text(s, &u.place.file)) {
        return CRD_E_MEMORY;
    }
    const crd_status st = crdi_add_unit(s, &u);
    if (st >= 0 && index) { *index = s->unit_count - 1; }
    return st;
}

crd_status crd_system_add_model(crd_system* s, const char* name, const crd_model* model,
                                double step, int* index)
{
    crd_unit_spec unit = crd_unit_spec_defaults();
    unit.name = name;
    unit.source = CRD_UNIT_NATIVE;
    unit.model = model;
    unit.step = step;
    return crd_system_add_unit(s, &unit, index);
}

crd_status crd_system_add_connection(crd_system* s, const crd_connection_spec* connection)
{
    crd_connection_spec c = *connection;
    const crdi_where where = crdi_place_text(c.place);
    if (c.from_unit < 0 || c.from_unit >= s->unit_count || c.to_unit < 0 ||
        c.to_unit >= s->unit_count) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%sconnection from unit %d to unit %d, there are %d",
                         where.text, c.from_unit, c.to_unit, s->unit_count);
    }
    if (!c.from || !c.from[0] || !c.to || !c.to[0]) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%sconnection from %s to %s without a variable",
                         where.text, s->units[c.from_unit].name, s->units[c.to_unit].name);
    }
    if (!isfinite(c.gain) || !isfinite(c.offset)) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "%sconnection to %s.%s: gain = %g, offset = %g, expected finite numbers",
                         where.text, s->units[c.to_unit].name, crdi_clip(c.to).text, c.gain,
                         c.offset);
    }
    if (c.scale < 0 || isinf(c.scale) || c.tolerance < 0 || isinf(c.tolerance)) { // NaN: not said
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "%sconnection to %s.%s: scale = %g, tolerance = %g, expected > 0, or 0",
                         where.text, s->units[c.to_unit].name, crdi_clip(c.to).text, c.scale,
                         c.tolerance);
    }
    if (!system_keep_text(s, &c.from) || !system_keep_text(s, &c.to) ||
        !system_keep_text(s, &c.place.file)) {
        return CRD_E_MEMORY;
    }
    crd_connection_spec* grown = crdi_grow(s->ctx, s->connections, &s->connection_capacity,
                                           (size_t)s->connection_count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    s->connections = grown;
    s->connections[s->connection_count++] = c;
    return CRD_OK;
}

crd_status crd_system_add_bond(crd_system* s, const crd_bond_spec* bond)
{
    crd_bond_spec b = *bond;
    const crdi_where where = crdi_place_text(b.place);
    if (b.action_unit < 0 || b.action_unit >= s->unit_count || b.flow_unit < 0 ||
        b.flow_unit >= s->unit_count) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%sbond of unit %d and unit %d, there are %d",
                         where.text, b.action_unit, b.flow_unit, s->unit_count);
    }
    if (!b.action || !b.action[0] || !b.flow || !b.flow[0]) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%sbond of %s and %s without a variable", where.text,
                         s->units[b.action_unit].name, s->units[b.flow_unit].name);
    }
    const char* key = "";
    const crd_status st = crdi_bond_check(s->ctx, &b, &key);
    if (st < 0) {
        char why[300];
        snprintf(why, sizeof why, "%s", crd_error_text(s->ctx));
        return crdi_fail(s->ctx, st, "%sbond of %s.%s and %s.%s: %s", where.text,
                         crdi_clip(s->units[b.action_unit].name).text, crdi_clip(b.action).text,
                         crdi_clip(s->units[b.flow_unit].name).text, crdi_clip(b.flow).text, why);
    }
    const char** texts[] = {&b.name,      &b.action,  &b.flow,      &b.factor,
                            &b.stiffness, &b.damping, &b.impedance, &b.place.file};
    bool stored = true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!*texts[i]) { *texts[i] = ""; }
        stored = stored && system_keep_text(s, texts[i]);
    }
    if (!stored) { return CRD_E_MEMORY; }
    crd_bond_spec* grown =
        crdi_grow(s->ctx, s->bonds, &s->bond_capacity, (size_t)s->bond_count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    s->bonds = grown;
    s->bonds[s->bond_count++] = b;
    return CRD_OK;
}

int crd_system_find(const crd_system* s, const char* unit)
{
    return crdi_map_find(&s->unit_map, unit);
}

typedef struct unit_names {
    const crd_system* s;
    int at;
} unit_names;

static const char* next_unit(void* user)
{
    unit_names* u = user;
    return u->at < u->s->unit_count ? u->s->units[u->at++].name : NULL;
}

crdi_hint crdi_unit_hint(const crd_system* s, const char* word)
{
    return crdi_hint_from(word, next_unit, &(unit_names){s, 0});
}

crd_status crd_system_split(const crd_system* s, const char* text, crd_place place, int* unit,
                            const char** variable)
{
    char name[256];
    // From the last dot to the first: the longest name wins.
    for (size_t i = strlen(text); i-- > 0;) {
        if (text[i] != '.' || i >= sizeof name || !text[i + 1]) { continue; }
        memcpy(name, text, i);
        name[i] = 0;
        const int found = crd_system_find(s, name);
        if (found >= 0) {
            *unit = found;
            *variable = text + i + 1;
            return CRD_OK;
        }
    }
    if (s->single && text[0]) {
        *unit = 0;
        *variable = text;
        return CRD_OK;
    }
    const crdi_where where = crdi_place_text(place);
    const char* dot = strchr(text, '.');
    if (!dot || dot == text || !dot[1]) {
        return crdi_fail(s->ctx, CRD_E_FORMAT, "%s'%s', expected unit.variable", where.text,
                         crdi_clip(text).text);
    }
    const size_t length = (size_t)(dot - text) < sizeof name ? (size_t)(dot - text) : 0;
    memcpy(name, text, length);
    name[length] = 0;
    return crdi_fail(s->ctx, CRD_E_NOT_FOUND, "%s'%s': there is no unit '%s'%s", where.text,
                     crdi_clip(text).text, crdi_clip(name).text, crdi_unit_hint(s, name).text);
}

crd_status crd_system_set(crd_system* s, int unit, const char* variable, const char* text,
                          crd_place place)
{
    if (unit < 0 || unit >= s->unit_count || !variable[0]) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%sa start value for '%s' of unit %d, there are %d",
                         crdi_place_text(place).text, crdi_clip(variable).text, unit,
                         s->unit_count);
    }
    crd_unit_spec* u = &s->units[unit];
    const size_t n = (size_t)u->parameter_count;
    crd_setting* all = crdi_arena_new(&s->arena, n + 1, sizeof *all);
    if (!all || !system_keep_text(s, &variable) || !system_keep_text(s, &text) ||
        !system_keep_text(s, &place.file)) {
        return CRD_E_MEMORY;
    }
    if (n) { memcpy(all, u->parameters, n * sizeof *all); }
    all[n] = (crd_setting){.variable = variable, .text = text, .place = place};
    u->parameters = all;
    u->parameter_count = (int)n + 1;
    return CRD_OK;
}

const char* const crdi_isolations[] = {"none", "foreign", "all", NULL};

const char* crd_isolation_name(crd_isolation i)
{
    return crdi_isolations[i];
}

crd_isolation crdi_isolation_default(crd_isolation otherwise)
{
    const char* said = getenv("CARDAN_ISOLATE");
    for (int i = 0; said && crdi_isolations[i]; i++) {
        if (strcmp(said, crdi_isolations[i]) == 0) { return (crd_isolation)i; }
    }
    return otherwise;
}
