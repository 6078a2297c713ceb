#include "shared/base_values.h"
#include "shared/dcp_calibration.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const double GAIN_MIN = 0.5, GAIN_MAX = 2; // beyond: another sensor, unit or channel

// ---- two points --------------------------------------------------------------------------------

static bool one_line(const char* text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f) { return false; }
    }
    return true;
}

static crd_status check_texts(crd_context* ctx, const crdi_calibration* c)
{
    if (!c->name[0] || strpbrk(c->name, " \t") || !one_line(c->name)) {
        return crdi_fail(ctx, CRD_E_RANGE, "calibration: '%s' is no output of a bench", c->name);
    }
    if (!c->date[0] || strpbrk(c->date, " \t") || !one_line(c->date)) {
        return crdi_fail(
            ctx, CRD_E_RANGE,
            "calibration of %s: the date is '%s', expected one as 2026-11-17T13:45:00Z", c->name,
            c->date);
    }
    if (!c->by[0] || !one_line(c->by) || c->by[strspn(c->by, " ")] == 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "calibration of %s: nobody has done it, expected a name of 1 to %zu bytes",
                         c->name, sizeof c->by - 1);
    }
    return CRD_OK;
}

// How far the reading is from the value, and the points from each other.
static crd_status check_distances(crd_context* ctx, const crdi_calibration* c, double range)
{
    const double apart = fabs(c->reference[1] - c->reference[0]);
    for (int i = 0; i < 2; i++) {
        const double off = c->reading[i] - c->reference[i];
        if (fabs(off) <= apart) { continue; }
        return crdi_fail(
            ctx, CRD_E_RANGE,
            "calibration of %s: at %.10g %s it reads %.10g, off by more than the two "
            "points are apart (%.10g); expected points further apart, or the sensor is "
            "another one",
            c->name, c->reference[i], c->unit, c->reading[i], apart);
    }
    if (isfinite(range) && apart < 0.05 * range) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "calibration of %s: the points are %.10g %s apart, expected %.10g at "
                         "least, a twentieth of its range",
                         c->name, apart, c->unit, 0.05 * range);
    }
    return CRD_OK;
}

crd_status crdi_calibration_make(crd_context* ctx, crdi_calibration* c, double range)
{
    crd_status st = check_texts(ctx, c);
    if (st < 0) { return st; }
    for (int i = 0; i < 2; i++) {
        if (isfinite(c->reference[i]) && isfinite(c->reading[i])) { continue; }
        return crdi_fail(ctx, CRD_E_RANGE,
                         "calibration of %s: point %d is %g read as %g, expected two numbers",
                         c->name, i + 1, c->reference[i], c->reading[i]);
    }
    const double values = c->reference[1] - c->reference[0];
    const double readings = c->reading[1] - c->reading[0];
    if (values == 0 || readings == 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "calibration of %s: %.10g %s twice, expected two points with different "
                         "%s",
                         c->name, values == 0 ? c->reference[0] : c->reading[0], c->unit,
                         values == 0 ? "references" : "readings");
    }
    const double gain = values / readings;
    if (gain < 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "calibration of %s: the reading %s while the value %s; expected readings "
                         "in the order of their references",
                         c->name, readings < 0 ? "falls" : "rises", values < 0 ? "falls" : "rises");
    }
    if (!(gain >= GAIN_MIN && gain <= GAIN_MAX)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "calibration of %s: gain = %.6g, expected %g to %g: beyond that it is "
                         "another unit, sensor or channel",
                         c->name, gain, GAIN_MIN, GAIN_MAX);
    }
    st = check_distances(ctx, c, range);
    if (st < 0) { return st; }
    c->gain = gain;
    c->offset = c->reference[0] - gain * c->reading[0];
    return CRD_OK;
}

const crdi_calibration* crdi_calibrations_find(const crdi_calibrations* all, const char* name)
{
    for (int i = 0; i < all->count; i++) {
        if (strcmp(all->of[i].name, name) == 0) { return &all->of[i]; }
    }
    return NULL;
}

// ---- reading -----------------------------------------------------------------------------------

static crd_status read_member(crd_context* ctx, const crdi_json* n, const char* key, char* out,
                              size_t room)
{
    const crdi_json* v = crdi_json_member(n, key);
    if (!v || v->kind != CRDI_JSON_TEXT || strlen(v->text) >= room) {
        return crdi_fail(ctx, CRD_E_FORMAT, "\"%s\" is missing, no text or longer than %zu bytes",
                         key, room - 1);
    }
    snprintf(out, room, "%s", v->text);
    return CRD_OK;
}

static crd_status read_points(crd_context* ctx, const crdi_json* n, crdi_calibration* c)
{
    const crdi_json* list = crdi_json_member(n, "points");
    int i = 0;
    for (const crdi_json* p = crdi_json_first(list); p; p = p->next, i++) {
        const crdi_json* a = crdi_json_first(p);
        const crdi_json* b = a ? a->next : NULL;
        if (i == 2 || p->kind != CRDI_JSON_LIST || !b || b->next || a->kind != CRDI_JSON_NUMBER ||
            b->kind != CRDI_JSON_NUMBER) {
            i = -1;
            break;
        }
        c->reference[i] = a->number;
        c->reading[i] = b->number;
    }
    return i == 2 ? CRD_OK
                  : crdi_fail(ctx, CRD_E_FORMAT,
                              "\"points\", expected two of reference and reading: "
                              "[[0, 0.3], [50, 50.9]]");
}

static crd_status read_sensor(crd_context* ctx, const crdi_json* n, crdi_calibration* c)
{
    crd_status st = CRD_OK;
    *c = (crdi_calibration){.gain = NAN};
    CRD_TRY(read_member(ctx, n, "name", c->name, sizeof c->name));
    CRD_TRY(read_member(ctx, n, "unit", c->unit, sizeof c->unit));
    CRD_TRY(read_member(ctx, n, "date", c->date, sizeof c->date));
    CRD_TRY(read_member(ctx, n, "by", c->by, sizeof c->by));
    CRD_TRY(read_points(ctx, n, c));
    CRD_TRY(crdi_calibration_make(ctx, c, NAN));
    const double gain = crdi_json_get_number(n, "gain");
    const double offset = crdi_json_get_number(n, "offset");
    const double scale = fabs(c->reference[0]) + fabs(c->reference[1]) + fabs(c->offset);
    if (!(fabs(gain - c->gain) <= 1e-9) || !(fabs(offset - c->offset) <= 1e-9 * scale)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: gain %.10g and offset %.10g, but its points give %.10g and %.10g",
                         c->name, gain, offset, c->gain, c->offset);
    }
fail:
    return st;
}

crd_status crdi_calibrations_parse(crd_context* ctx, const char* text, size_t length,
                                   const char* file, crdi_calibrations* out)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    crdi_json* root = NULL;
    crdi_calibrations all = {.count = 0};
    crd_arena_init(&arena, ctx);
    CRD_TRY(crdi_json_parse(&arena, text, length, (crdi_json_source){.file = file, .first_line = 1},
                            &root));
    if (root->kind != CRDI_JSON_OBJECT || crdi_json_get_number(root, "calibration") != 1) {
        st =
            crdi_fail(ctx, CRD_E_FORMAT, "%s is no calibration, expected \"calibration\": 1", file);
        goto fail;
    }
    const crdi_json* list = crdi_json_get_list(root, "sensors");
    for (const crdi_json* n = crdi_json_first(list); n; n = n->next) {
        crdi_calibration c;
        if (all.count == CRDI_CALIBRATIONS_MAX) {
            st = crdi_fail(ctx, CRD_E_RANGE, "%s: more than %d sensors", file,
                           CRDI_CALIBRATIONS_MAX);
            goto fail;
        }
        st = read_sensor(ctx, n, &c);
        if (st == CRD_OK && crdi_calibrations_find(&all, c.name)) {
            st = crdi_fail(ctx, CRD_E_RANGE, "%s is there twice", c.name);
        }
        if (st < 0) {
            crdi_fail_in(ctx, st, "%s: sensor %d", file, all.count + 1);
            goto fail;
        }
        all.of[all.count++] = c;
    }
    *out = all;
fail:
    crd_arena_clear(&arena);
    return st;
}

crd_status crdi_calibrations_load(crd_context* ctx, const char* path, crdi_calibrations* out)
{
    static const crdi_file_need need = {.what = "a calibration", .most = 1 << 20};
    crd_text text;
    crd_text_init(&text, ctx);
    crd_status st = crdi_file_read(ctx, path, &need, &text);
    if (st == CRD_OK) { st = crdi_calibrations_parse(ctx, text.data, text.length, path, out); }
    crd_text_clear(&text);
    return st;
}

// ---- writing -----------------------------------------------------------------------------------

static void put_point(crdi_json_writer* w, double reference, double reading)
{
    crdi_json_begin_list(w, NULL);
    crdi_json_put(w, REAL(NULL, reference), REAL(NULL, reading));
    crdi_json_end(w);
}

static void put_all(crd_text* t, const crdi_calibrations* all)
{
    crdi_json_writer w;
    crdi_json_writer_init(&w, t, CRDI_JSON_ROWS);
    crdi_json_begin_object(&w, NULL);
    crdi_json_put_integer(&w, "calibration", 1);
    crdi_json_begin_list(&w, "sensors");
    for (int i = 0; i < all->count; i++) {
        const crdi_calibration* c = &all->of[i];
        crdi_json_begin_object(&w, NULL);
        crdi_json_put(&w, TEXT("name", c->name), TEXT("unit", c->unit));
        crdi_json_begin_list(&w, "points");
        put_point(&w, c->reference[0], c->reading[0]);
        put_point(&w, c->reference[1], c->reading[1]);
        crdi_json_end(&w);
        crdi_json_put(&w, REAL("gain", c->gain), REAL("offset", c->offset), TEXT("date", c->date),
                      TEXT("by", c->by));
        crdi_json_end(&w);
    }
    crdi_json_end(&w);
    crdi_json_end(&w);
    crdi_text_add(t, "\n");
}

crd_status crdi_calibrations_store(crd_context* ctx, const char* path, const crdi_calibration* c)
{
    crd_status st = CRD_OK;
    crdi_calibrations all = {.count = 0};
    crd_text text;
    crd_text_init(&text, ctx);
    if (access(path, F_OK) == 0) { CRD_TRY(crdi_calibrations_load(ctx, path, &all)); }
    int at = 0;
    while (at < all.count && strcmp(all.of[at].name, c->name) != 0) {
        at++;
    }
    if (at == CRDI_CALIBRATIONS_MAX) {
        st = crdi_fail(ctx, CRD_E_RANGE, "%s: no room for %s, expected %d sensors at most", path,
                       c->name, CRDI_CALIBRATIONS_MAX);
        goto fail;
    }
    all.of[at] = *c;
    all.count += at == all.count;
    put_all(&text, &all);
    CRD_TRY(crdi_file_write(ctx, path, &text));
fail:
    crd_text_clear(&text);
    return st;
}

// ---- on the wire -------------------------------------------------------------------------------

void crdi_calibration_print(const crdi_calibration* c, char* out, size_t room)
{
    snprintf(out, room, "%s %.17g %.17g %s %s", c->name, c->gain, c->offset, c->date, c->by);
}

bool crdi_calibration_scan(const char* text, crdi_calibration* out)
{
    crdi_calibration c = {.gain = NAN};
    char* end = NULL;
    int at = 0;
    if (sscanf(text, "%31s %n", c.name, &at) != 1 || at == 0) { return false; }
    c.gain = strtod(text + at, &end);
    if (end == text + at) { return false; }
    const char* rest = end;
    c.offset = strtod(rest, &end);
    if (end == rest || !isfinite(c.gain) || !isfinite(c.offset) || c.gain == 0) { return false; }
    if (sscanf(end, " %23s %47[^\n]", c.date, c.by) < 1) { return false; }
    *out = c;
    return true;
}
