// Names of places, types and ends of connections, for messages and records.
#include "master/plan/plan.h"

#include <stdio.h>
#include <string.h>

const char* crdi_where(crd_place p, char* buffer, size_t size)
{
    buffer[0] = 0;
    if (p.file && p.file[0]) {
        if (p.line > 0) {
            snprintf(buffer, size, "%s:%d: ", p.file, p.line);
        } else {
            snprintf(buffer, size, "%s: ", p.file);
        }
    }
    return buffer;
}

crd_status crdi_fail_at(crd_context* ctx, crd_status st, crd_place p)
{
    char at[512];
    const size_t n = strlen(crdi_where(p, at, sizeof at));
    at[n > 2 ? n - 2 : 0] = 0; // crdi_fail_in puts its own colon
    return at[0] ? crdi_fail_in(ctx, st, "%s", at) : st;
}

const crd_variable* crdi_variable_at(const crdi_plan* plan, const crdi_end* e)
{
    return &plan->members[e->member].unit->info.variables[e->variable];
}

// "[3]", or nothing
typedef struct {
    char text[16];
} index_text;

static index_text index_of(int32_t element, bool shown)
{
    index_text x = {""};
    if (shown) { snprintf(x.text, sizeof x.text, "[%d]", element + 1); }
    return x;
}

const char* crdi_end_name(const crdi_plan* plan, crd_arena* arena, const crdi_end* e)
{
    const crd_variable* v = crdi_variable_at(plan, e);
    const index_text index = index_of(e->element, v->rank > 0);
    const char* const parts[] = {plan->members[e->member].unit->name, ".", v->name, index.text};
    size_t lengths[4], at = 0;
    for (int i = 0; i < 4; i++) {
        at += lengths[i] = strlen(parts[i]);
    }
    char* text = crdi_arena_new(arena, at + 1, 1); // without printf: there may be a million of them
    at = 0;
    for (int i = 0; text && i < 4; at += lengths[i++]) {
        memcpy(text + at, parts[i], lengths[i]);
    }
    return text;
}

const char* crdi_end_short_name(const crdi_plan* plan, crd_arena* arena, const crdi_end* e)
{
    const crd_variable* v = crdi_variable_at(plan, e);
    if (!plan->sys->single) { return crdi_end_name(plan, arena, e); }
    return v->rank == 0
               ? v->name
               : crdi_arena_format(arena, "%s%s", v->name, index_of(e->element, true).text);
}

const char* crdi_end_written_name(const crdi_plan* plan, crd_arena* arena, const crdi_end* e,
                                  const char* written)
{
    const bool whole = crdi_variable_at(plan, e)->rank > 0 && written[strlen(written) - 1] != ']';
    const bool single = plan->sys->single;
    return crdi_arena_format(arena, "%s%s%s%s", single ? "" : plan->members[e->member].unit->name,
                             single ? "" : ".", written, index_of(e->element, whole).text);
}

int32_t crdi_variable_read(const crd_unit* u, int32_t variable)
{
    const int32_t alias = u->info.variables[variable].alias_of;
    return alias >= 0 ? alias : variable;
}

bool crdi_member_is_hidden(const crdi_plan* plan, int member)
{
    return plan->sys->single && member > 0;
}

const crd_label* crdi_variable_labels(crd_arena* room, const crd_unit* u, int32_t variable,
                                      int* count)
{
    int64_t value = 0;
    *count = 0;
    if (u->info.variables[variable].type != CRD_ENUMERATION || !CRDI_UNIT_HAS(u, names, item_at)) {
        return NULL;
    }
    while (crdi_unit_item_at(u, variable, *count, &value)) {
        (*count)++;
    }
    crd_label* labels = crdi_arena_new(room, (size_t)*count, sizeof *labels);
    for (int i = 0; labels && i < *count; i++) {
        labels[i].text = crdi_unit_item_at(u, variable, i, &labels[i].value);
    }
    if (!labels) { *count = -1; }
    return labels;
}

crdi_duration crdi_duration_text(double s, int digits)
{
    static const struct {
        double unit;
        const char* name;
    } units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    size_t k = 0;
    while (k < 3 && s < units[k].unit * (1 - 1e-9)) {
        k++;
    }
    crdi_duration d;
    snprintf(d.text, sizeof d.text, "%.*g %s", digits, s / units[k].unit, units[k].name);
    return d;
}
