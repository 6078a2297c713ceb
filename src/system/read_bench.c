// Bench files: a unit becomes a bench by its roles, limits, checklist, and the order of its stop.
#include "shared/base_path.h"
#include "system/read.h"

#include <math.h>
#include <string.h>

static const char* const roles[] = {"other", "speed", "torque", "voltage", "temperature", NULL};
enum { OTHER, SPEED, TORQUE, VOLTAGE, TEMPERATURE };

static const crdi_key quantity_keys[] = {
    {KEY("role", CHOICE, crdi_bench_file_quantity, role), .choices = roles, .required = true},
    {KEY("set", TEXT, crdi_bench_file_quantity, set)},
    {KEY("measured", TEXT, crdi_bench_file_quantity, measured), .required = true},
    {KEY("limits", TEXT, crdi_bench_file_quantity, limits)},
    {KEY("trip", TEXT, crdi_bench_file_quantity, trip)},
    {KEY("conditioning", NUMBER, crdi_bench_file_quantity, conditioning)},
    {KEY("safe", NUMBER, crdi_bench_file_quantity, safe)},
    {KEY("cool_down", NUMBER, crdi_bench_file_quantity, cool_down)},
};
TABLE(quantity);

static int role_at(const crdi_bench_file* f, int role)
{
    for (int i = 0; i < f->quantity_count; i++) {
        if (f->quantities[i].role == role) { return i; }
    }
    return -1;
}

static crd_status read_quantity(crdi_reader* r, const crdi_node* n, crdi_bench_file* f)
{
    crd_status st = CRD_OK;
    crdi_bench_file_quantity* q = &f->quantities[f->quantity_count];
    const size_t mark = crdi_path_enter(r, n->key);
    if (f->quantity_count == CRDI_BENCH_FILE_QUANTITIES) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line, "the %dth quantity, expected %d at most",
                              f->quantity_count + 1, CRDI_BENCH_FILE_QUANTITIES);
    }
    *q = (crdi_bench_file_quantity){
        .name = n->key, .conditioning = NAN, .safe = NAN, .cool_down = NAN, .line = n->line};
    CRD_TRY(crdi_read_mapping(r, n, &quantity_table, q, NULL));
    q->limits_line = crdi_line_of(n, "limits");
    q->trip_line = crdi_line_of(n, "trip");
    q->set_line = crdi_line_of(n, "set");
    q->measured_line = crdi_line_of(n, "measured");
    const int other = role_at(f, q->role);
    if (other >= 0 && q->role >= SPEED && q->role <= VOLTAGE) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "role"),
                              "role: %s is the %s already (line %d), expected one of them",
                              f->quantities[other].name, roles[q->role], f->quantities[other].line);
    }
    if ((q->role == SPEED || q->role == TORQUE) && !isnan(q->safe) && q->safe != 0) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "safe"),
                              "safe: a stop ends with %s 0 and not with %g, expected 0 or nothing",
                              roles[q->role], q->safe);
    }
    if (q->set && !q->limits) {
        return crdi_read_fail(
            r, CRD_E_RANGE, n->line,
            "it is set and has no limits, expected some, as limits: 0..6500 1/min "
            "rate 2000 1/min/s");
    }
    if (q->limits && strncmp(q->limits, "rate", 4) == 0) {
        return crdi_read_fail(r, CRD_E_RANGE, q->limits_line,
                              "limits: '%s' is a rate without a range, expected the range in front "
                              "of it, as 0..6500 1/min rate 2000 1/min/s",
                              crdi_clip(q->limits).text);
    }
    f->quantity_count++;
fail:
    crdi_path_leave(r, mark);
    return st;
}

static crd_status read_quantities(crdi_reader* r, const crdi_node* n, void* out)
{
    crd_status st = crdi_expect_kind(r, n, CRDI_MAPPING, "quantities by their names");
    for (const crdi_node* m = n->first; m && st >= 0; m = m->next) {
        st = read_quantity(r, m, out);
    }
    return st;
}

static crd_status read_checklist(crdi_reader* r, const crdi_node* n, void* out)
{
    crdi_bench_file* f = out;
    crd_status st = crdi_expect_kind(r, n, CRDI_MAPPING,
                                     "items with the output that says whether they are met, as "
                                     "hood closed: hood");
    for (const crdi_node* m = n->first; m && st >= 0; m = m->next) {
        if (f->item_count == CRDI_BENCH_FILE_ITEMS) {
            return crdi_read_fail(r, CRD_E_RANGE, m->line, "more than %d items",
                                  CRDI_BENCH_FILE_ITEMS);
        }
        f->items[f->item_count] = m->key;
        f->item_lines[f->item_count] = m->line;
        st = crdi_read_text(r, m, &f->variables[f->item_count++]);
    }
    return st;
}

// The order is what a bench does; the file says it so that it is known what is promised.
static crd_status read_order(crdi_reader* r, const crdi_node* n, void* out)
{
    static const int order[] = {TORQUE, SPEED, VOLTAGE};
    const crdi_bench_file* f = out;
    crd_status st = crdi_expect_kind(r, n, CRDI_LIST, "a list as [torque, speed, voltage]");
    int at = 0;
    for (const crdi_node* m = n->first; m && st >= 0; m = m->next) {
        while (at < 3 && strcmp(roles[order[at]], m->text) != 0) {
            at++;
        }
        if (at == 3) {
            return crdi_read_fail(
                r, CRD_E_RANGE, m->line,
                "'%s' is not what can come here: a stop takes torque, then speed, "
                "then voltage, so that the induced voltage is never above that "
                "of the DC link; expected [torque, speed, voltage] or a part of "
                "it in this order",
                crdi_clip(m->text).text);
        }
        const int i = role_at(f, order[at++]);
        if (i < 0 || !f->quantities[i].set) {
            return crdi_read_fail(
                r, CRD_E_RANGE, m->line,
                "%s cannot be stopped: %s, expected a quantity with role: %s "
                "and set:",
                m->text, i < 0 ? "no quantity has that role" : "its quantity is not set", m->text);
        }
    }
    return st;
}

static const crdi_key stop_keys[] = {
    {KEY("order", OWN, crdi_bench_file, file), .read = read_order},
    {KEY("safe_speed", NUMBER, crdi_bench_file, safe_speed), .range = CRDI_POSITIVE},
    {KEY("turn_speed", NUMBER, crdi_bench_file, turn_speed), .range = CRDI_NOT_NEGATIVE},
    {KEY("rate", NUMBER, crdi_bench_file, stop_rate), .range = CRDI_POSITIVE},
    {KEY("standstill", NUMBER, crdi_bench_file, standstill), .range = CRDI_POSITIVE},
    {KEY("patience", TIME, crdi_bench_file, patience), .range = CRDI_NOT_NEGATIVE},
    {KEY("cool_patience", TIME, crdi_bench_file, cool_patience), .range = CRDI_NOT_NEGATIVE},
};
TABLE(stop);

typedef struct root {
    int version;
    const crdi_node *quantities, *checklist, *stop, *avoid;
    crdi_bench_file f;
} root;

static const crdi_key root_keys[] = {
    {KEY("bench", INT, root, version), .min = 1, .max = 1, .required = true},
    {KEY("quantities", NODE, root, quantities), .required = true},
    {KEY("checklist", NODE, root, checklist)},
    {KEY("avoid", TEXT, root, f.avoid)},
    {KEY("initial", TEXT, root, f.initial)},
    {KEY("tolerance", NUMBER, root, f.tolerance), .range = CRDI_POSITIVE},
    {KEY("induced", NUMBER, root, f.induced), .range = CRDI_NOT_NEGATIVE},
    {KEY("stop", NODE, root, stop)},
    {KEY("calibration", PATH, root, f.calibration)},
    {KEY("watchdog", TIME, root, f.watchdog), .range = CRDI_NOT_NEGATIVE},
    {KEY("heartbeat", TIME, root, f.heartbeat), .range = CRDI_NOT_NEGATIVE},
    {KEY("period", TIME, root, f.period), .range = CRDI_POSITIVE},
};
static const crdi_table root_table = {"bench file", root_keys, COUNT(root_keys)};

// Reads a key of the root by its own function.
static crd_status read_part(crdi_reader* r, const crdi_node* n, crdi_bench_file* f,
                            crd_status (*read)(crdi_reader* r, const crdi_node* n, void* out))
{
    if (!n) { return CRD_OK; }
    const size_t mark = crdi_path_enter(r, n->key);
    const crd_status st = read ? read(r, n, f) : crdi_read_mapping(r, n, &stop_table, f, NULL);
    crdi_path_leave(r, mark);
    return st;
}

static crd_status read_bench_file(crdi_reader* r, const crdi_node* n, crdi_bench_file* out)
{
    crd_status st = CRD_OK;
    root x = {.f = *out};
    CRD_TRY(crdi_read_mapping(r, n, &root_table, &x, NULL));
    x.f.avoid_line = crdi_line_of(n, "avoid");
    x.f.initial_line = crdi_line_of(n, "initial");
    CRD_TRY(read_part(r, x.quantities, &x.f, read_quantities));
    CRD_TRY(read_part(r, x.checklist, &x.f, read_checklist));
    const char* file = x.f.file;
    CRD_TRY(read_part(r, x.stop, &x.f, NULL));
    x.f.file = file;
    const int speed = role_at(&x.f, SPEED);
    if (role_at(&x.f, VOLTAGE) >= 0 && speed < 0) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "quantities"),
                              "quantities: %s is lowered when the speed is safe, but none has "
                              "role: speed",
                              x.f.quantities[role_at(&x.f, VOLTAGE)].name);
    }
    const double safe = isnan(x.f.safe_speed) ? 100 : x.f.safe_speed;
    if (x.f.standstill > safe) { // not where it is NAN
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(x.stop, "standstill"),
                              "stop.standstill: %g, expected at most safe_speed, which is %g",
                              x.f.standstill, safe);
    }
    *out = x.f;
fail:
    return st;
}

crd_status crdi_bench_file_load(crd_context* ctx, const char* path, crd_arena* arena,
                                crdi_bench_file* out)
{
    crd_status st = CRD_OK;
    crd_text bytes;
    crdi_node* tree = NULL;
    crd_text_init(&bytes, ctx);
    CRD_TRY(crdi_read_file(ctx, path, &bytes));
    *out = (crdi_bench_file){.file = path,
                             .tolerance = NAN,
                             .induced = NAN,
                             .watchdog = NAN,
                             .heartbeat = NAN,
                             .period = NAN,
                             .safe_speed = NAN,
                             .turn_speed = NAN,
                             .stop_rate = NAN,
                             .standstill = NAN,
                             .patience = NAN,
                             .cool_patience = NAN};
    CRD_TRY(crdi_yaml_parse(arena, bytes.data, bytes.length, (crd_place){path, -1}, &tree));
    crdi_reader r = {.ctx = ctx,
                     .arena = arena,
                     .scratch = arena,
                     .file = path,
                     .folder_length = crdi_folder_length(path)};
    CRD_TRY(read_bench_file(&r, tree, out));
fail:
    crd_text_clear(&bytes);
    return st;
}
