// Which signals share a plot: those of one unit of the system that have the same physical unit and
// kind, so that they have an axis in common, and whose ranges go together, so that none of them
// becomes a flat line. An estimate that has bounds, x with x.low and x.high, has a plot of its own.
#include "results/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// The longest name of a unit that `name` starts with, followed by a dot.
static size_t owner_length(const crdi_json* units, const char* name)
{
    size_t best = 0;
    for (const crdi_json* unit = crdi_json_first(units); unit; unit = unit->next) {
        const char* text = crdi_json_get_text(unit, "name");
        const size_t n = strlen(text);
        if (n > best && strncmp(name, text, n) == 0 && name[n] == '.' && name[n + 1]) { best = n; }
    }
    return best;
}

// A file that does not say what ran: "a.x" and "b.y" look like two units.
static bool names_look_owned(const crdi_report* r)
{
    bool several = false;
    for (int i = 0; i < r->signal_count; i++) {
        const char* name = r->signals[i].name;
        const char* dot = strchr(name, '.');
        if (!dot || dot == name || !dot[1]) { return false; }
        const size_t n = (size_t)(dot - name) + 1;
        several = several || strncmp(name, r->signals[0].name, n) != 0;
    }
    return several;
}

static crd_status find_owners(crdi_report* r)
{
    const crdi_json* units = NULL;
    for (int i = 0; i < r->part_count && !units; i++) {
        units = crdi_json_get_list(r->parts[i].what, "units");
    }
    const bool by_look = !units && names_look_owned(r);
    bool owned = false; // then the run's own signals have a heading, too
    for (int i = 0; i < r->signal_count; i++) {
        owned = owned || owner_length(units, r->signals[i].name) > 0;
    }
    for (int i = 0; i < r->signal_count; i++) {
        crdi_report_signal* s = &r->signals[i];
        size_t n = by_look ? strcspn(s->name, ".") : owner_length(units, s->name);
        if (!n && owned && strncmp(s->name, "cardan.", 7) == 0) { n = 6; }
        if (!n) { continue; }
        s->owner = crdi_arena_text(&r->arena, s->name, n);
        s->member = s->name + n + 1;
        if (!s->owner) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

// The signal called as `s` with `ending` if it could be a bound of it; -1: none.
static int find_bound(const crdi_report* r, const crd_map* names, const crdi_report_signal* s,
                      const char* ending)
{
    char name[500];
    const int n = snprintf(name, sizeof name, "%s%s", s->name, ending);
    const int at = n > 0 && n < (int)sizeof name ? crdi_map_find(names, name) : -1;
    return at >= 0 && r->signals[at].kind == s->kind &&
                   strcmp(r->signals[at].info->unit, s->info->unit) == 0
               ? at
               : -1;
}

static crd_status find_bands(crdi_report* r)
{
    crd_status st = CRD_OK;
    crd_map names;
    crdi_map_init(&names, r->ctx);
    for (int i = 0; i < r->signal_count; i++) {
        CRD_TRY(crdi_map_add(&names, r->signals[i].name, i, NULL));
    }
    for (int i = 0; i < r->signal_count; i++) {
        crdi_report_signal* s = &r->signals[i];
        if (s->kind != CRDI_KIND_REAL || s->bounds) { continue; }
        const int low = find_bound(r, &names, s, ".low"), high = find_bound(r, &names, s, ".high");
        if (low < 0 || high < 0 || r->signals[low].low || r->signals[high].low) { continue; }
        s->low = low + 1;
        s->high = high + 1;
        r->signals[low].bounds = r->signals[high].bounds = i + 1;
    }
fail:
    crdi_map_clear(&names);
    return st;
}

static bool same_labels(const crd_signal_info* a, const crd_signal_info* b)
{
    if (a->label_count != b->label_count) { return false; }
    for (int i = 0; i < a->label_count; i++) {
        if (a->labels[i].value != b->labels[i].value ||
            strcmp(a->labels[i].text, b->labels[i].text) != 0) {
            return false;
        }
    }
    return true;
}

// The plot with the signal in it.
static void extend_plot(const crdi_report* r, const crdi_report_signal* s, crdi_report_plot* p)
{
    for (int i = 0; i < r->part_count; i++) {
        const crdi_trace* t = &s->lines[i].trace;
        if (!s->lines[i].there || isnan(t->min)) { continue; }
        p->low = fmin(p->low, t->min); // fmin prefers the number to NaN
        p->high = fmax(p->high, t->max);
        if (t->max > t->min) { p->least = fmin(p->least, t->max - t->min); }
    }
}

// Every line that moves has at least a twentieth of the height.
static bool goes_together(const crdi_report* r, const crdi_report_plot* p,
                          const crdi_report_signal* s)
{
    crdi_report_plot both = *p;
    extend_plot(r, s, &both);
    return !(both.high - both.low > 20 * both.least);
}

// How many signals a plot takes: few lines each when several runs lie over each other.
static int most_signals(const crdi_report* r, crdi_kind kind)
{
    const int most = kind == CRDI_KIND_ENUMERATION ? CRDI_MOST_LINES / 2 : CRDI_MOST_LINES;
    return most / r->part_count > 1 ? most / r->part_count : 1;
}

static bool fits_plot(const crdi_report* r, const crdi_report_plot* p, const crdi_report_signal* s)
{
    const crdi_report_signal* first = &r->signals[p->signals[0]];
    if (p->band || s->low || p->kind != s->kind || p->count >= most_signals(r, s->kind) ||
        strcmp(p->owner, s->owner) != 0 || strcmp(p->unit, s->info->unit) != 0) {
        return false;
    }
    if (s->kind == CRDI_KIND_ENUMERATION) { return same_labels(first->info, s->info); }
    return s->kind == CRDI_KIND_BOOLEAN || goes_together(r, p, s);
}

// "mass: x, v" as far as it is short enough
static crd_status make_title(crdi_report* r, crdi_report_plot* p)
{
    enum { MOST = 60 };
    crd_text t;
    crd_text_init(&t, r->ctx);
    int i = 0;
    for (; i < (p->band ? 1 : p->count); i++) {
        const char* name = r->signals[p->signals[i]].member;
        if (i > 0 && t.length + strlen(name) > MOST) { break; }
        crdi_text_add(&t, "%s%s", i ? ", " : "", name);
    }
    if (p->band) {
        crdi_text_add(&t, " with its band");
    } else if (i < p->count) {
        crdi_text_add(&t, " and %d more", p->count - i);
    }
    p->title = t.failed ? NULL : crdi_arena_text(&r->arena, t.data ? t.data : "", t.length);
    crd_text_clear(&t);
    return p->title ? CRD_OK : CRD_E_MEMORY;
}

static void add_to_plot(const crdi_report* r, crdi_report_plot* p, int signal)
{
    p->signals[p->count++] = signal;
    extend_plot(r, &r->signals[signal], p);
}

crd_status crdi_report_group_signals(crdi_report* r)
{
    crd_status st = CRD_OK;
    CRD_TRY(find_owners(r));
    CRD_TRY(find_bands(r));
    r->plots = crdi_arena_new(&r->arena, (size_t)r->signal_count, sizeof *r->plots);
    if (!r->plots) { return CRD_E_MEMORY; }
    for (int i = 0; i < r->signal_count; i++) {
        const crdi_report_signal* s = &r->signals[i];
        if (s->kind == CRDI_KIND_TEXT || s->bounds) { continue; }
        int at = r->plot_count - 1;
        while (at >= 0 && !fits_plot(r, &r->plots[at], s)) {
            at--;
        }
        if (at < 0) {
            // Plots of one owner stand together: behind the last of them.
            int behind = r->plot_count;
            while (behind > 0 && strcmp(r->plots[behind - 1].owner, s->owner) != 0) {
                behind--;
            }
            at = behind ? behind : r->plot_count;
            memmove(&r->plots[at + 1], &r->plots[at],
                    (size_t)(r->plot_count - at) * sizeof *r->plots);
            r->plots[at] = (crdi_report_plot){.owner = s->owner,
                                              .unit = s->info->unit,
                                              .kind = s->kind,
                                              .low = (double)NAN,
                                              .high = (double)NAN,
                                              .least = (double)INFINITY};
            r->plot_count++;
        }
        add_to_plot(r, &r->plots[at], i);
        if (s->low) {
            add_to_plot(r, &r->plots[at], s->low - 1);
            add_to_plot(r, &r->plots[at], s->high - 1);
            r->plots[at].band = true;
        }
    }
    for (int i = 0; i < r->plot_count; i++) {
        CRD_TRY(make_title(r, &r->plots[i]));
    }
fail:
    return st;
}
