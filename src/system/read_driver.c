// A driver: the levers that somebody moves at the page.
#include "system/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double LONGEST = 10; // s without a page in which a machine may go on

typedef struct lever_draft {
    crd_lever_spec spec;
    crdi_texts items;
} lever_draft;

enum { L_UNIT, L_MIN, L_MAX, L_RATE, L_REST, L_WHOLE, L_ITEMS, L_GAMEPAD };

static const crdi_key lever_keys[] = {
    [L_UNIT] = {KEY("unit", TEXT, lever_draft, spec.unit)},
    [L_MIN] = {KEY("min", NUMBER, lever_draft, spec.min)},
    [L_MAX] = {KEY("max", NUMBER, lever_draft, spec.max)},
    [L_RATE] = {KEY("rate", NUMBER, lever_draft, spec.rate), .range = CRDI_POSITIVE},
    [L_REST] = {KEY("rest", NUMBER, lever_draft, spec.rest)},
    [L_WHOLE] = {KEY("whole", BOOL, lever_draft, spec.whole)},
    [L_ITEMS] = {KEY("items", TEXTS, lever_draft, items)},
    [L_GAMEPAD] = {KEY("gamepad", TEXT, lever_draft, spec.gamepad)},
};

const crdi_table crdi_lever_table = {"lever", lever_keys, COUNT(lever_keys)};

crd_status crdi_read_silence(crdi_reader* r, int line, double silence)
{
    if (silence <= LONGEST) { return CRD_OK; }
    return crdi_read_fail(r, CRD_E_RANGE, line,
                          "silence: %g s, expected %g s at most: so long nobody drives", silence,
                          LONGEST);
}

static crd_status check_items(crdi_reader* r, const crdi_node* n, lever_draft* d, uint64_t given)
{
    if (given & (BIT(L_MIN) | BIT(L_MAX) | BIT(L_RATE) | BIT(L_UNIT) | BIT(L_WHOLE))) {
        return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "items"),
                              "items are the numbers 0 to %d, expected neither min, max, rate, "
                              "unit nor whole beside them",
                              d->items.count - 1);
    }
    d->spec.items = d->items.items;
    d->spec.item_count = d->items.count;
    d->spec.min = 0;
    d->spec.max = d->items.count - 1;
    d->spec.whole = true;
    return CRD_OK;
}

static crd_status check_gamepad(crdi_reader* r, const crdi_node* n, const crd_lever_spec* s)
{
    char word[8] = "", rest[16] = "";
    int number = -1, end = 0;
    const int count = sscanf(s->gamepad, "%7s %2d%n %15s", word, &number, &end, rest);
    const bool button = count == 2 && strcmp(word, "button") == 0;
    const bool axis =
        strcmp(word, "axis") == 0 && (count == 2 || (count == 3 && strcmp(rest, "reversed") == 0));
    if ((button || axis) && number >= 0 && number < 32 && (count == 3 || s->gamepad[end] == 0)) {
        return CRD_OK;
    }
    return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "gamepad"),
                          "gamepad: '%s', expected 'button 7', 'axis 1' or 'axis 1 reversed', with "
                          "numbers from 0 to 31",
                          crdi_clip(s->gamepad).text);
}

static crd_status check_lever(crdi_reader* r, const crdi_node* n, const crd_lever_spec* s)
{
    crd_dimension dim;
    if (!crd_dimension_parse(s->unit, &dim)) {
        return crdi_read_fail(r, CRD_E_FORMAT, crdi_line_of(n, "unit"),
                              "unit: '%s' is not known, expected a unit such as N.m or rad/s",
                              crdi_clip(s->unit).text);
    }
    if (!(s->min < s->max) && !(s->item_count == 1)) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "max"),
                              "min = %g and max = %g, expected a range", s->min, s->max);
    }
    if (!(s->rest >= s->min && s->rest <= s->max)) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "rest"),
                              "rest = %g, expected a value of its range, %g to %g", s->rest, s->min,
                              s->max);
    }
    if (s->whole && (s->rest != floor(s->rest) || isfinite(s->rate))) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line,
                              "whole numbers change at once: expected no rate, and a whole number "
                              "for rest");
    }
    if (s->gamepad[0] && !(isfinite(s->min) && isfinite(s->max))) {
        return crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "gamepad"),
                              "a gamepad moves from min to max, expected both");
    }
    return s->gamepad[0] ? check_gamepad(r, n, s) : CRD_OK;
}

static crd_status read_lever(crdi_reader* r, const crdi_node* n, crd_lever_spec* out)
{
    crd_status st = CRD_OK;
    uint64_t given = 0;
    lever_draft d = {.spec = {.unit = "",
                              .min = -INFINITY,
                              .max = INFINITY,
                              .rate = INFINITY,
                              .gamepad = "",
                              .place = {r->file, n->line}}};
    CRD_TRY(crdi_read_check_name(r, n, "a lever"));
    const size_t mark = crdi_path_enter(r, n->key);
    CRD_TRY(crdi_read_mapping(r, n, &crdi_lever_table, &d, &given));
    if (given & BIT(L_ITEMS)) { CRD_TRY(check_items(r, n, &d, given)); }
    CRD_TRY(check_lever(r, n, &d.spec));
    d.spec.name = crdi_arena_text(r->arena, n->key, strlen(n->key));
    if (!d.spec.name) { return CRD_E_MEMORY; }
    *out = d.spec;
    crdi_path_leave(r, mark);
fail:
    return st;
}

crd_status crdi_read_levers(crdi_reader* r, const crdi_node* n, crd_driver_spec* out)
{
    crd_status st = CRD_OK;
    const size_t mark = crdi_path_enter(r, "driver");
    CRD_TRY(crdi_expect_kind(r, n, CRDI_MAPPING,
                             "a mapping of levers: accelerator: { min: 0, max: 100 }"));
    if (n->count < 1 || n->count > CRD_LEVERS_MAX) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "%d levers, expected 1 to %d", n->count,
                              CRD_LEVERS_MAX);
    }
    crd_lever_spec* levers = crdi_arena_new(r->arena, (size_t)n->count, sizeof *levers);
    if (!levers) { return CRD_E_MEMORY; }
    int i = 0;
    for (const crdi_node* k = n->first; k; k = k->next) {
        CRD_TRY(read_lever(r, k, &levers[i++]));
    }
    out->levers = levers;
    out->lever_count = i;
    crdi_path_leave(r, mark);
fail:
    return st;
}
