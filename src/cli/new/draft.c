// A description in the making: what is in it, and how it is written.
#include "cli/new/new.h"
#include "cli/printable.h"
#include "shared/base_path.h"

#include <math.h>
#include <string.h>

enum { MOST_FREE = 20 }; // free inputs that are named; of more there is a number

crd_status crdi_draft_begin(crdi_draft* d, crd_arena* arena)
{
    const crd_ports* ports = d->p->ports;
    d->lines = crdi_arena_new(arena, (size_t)ports->port_count + 1, sizeof *d->lines);
    if (!d->lines) { return CRD_E_MEMORY; }
    int next = 0; // proposals are in the order of inputs
    for (int i = 0; i < ports->port_count; i++) {
        if (ports->ports[i].causality != CRD_INPUT || ports->ports[i].taken) { continue; }
        crdi_draft_line* line = &d->lines[d->count++];
        *line = (crdi_draft_line){.from = -1, .to = i, .why = ""};
        if (next < d->p->count && d->p->items[next].to == i) {
            const crd_proposal* x = &d->p->items[next++];
            *line = (crdi_draft_line){x->from, i, x->sure, x->sure > CRD_DOUBTFUL, x->why};
        }
    }
    return CRD_OK;
}

crd_status crdi_draft_choose(crd_context* ctx, crdi_draft* d, int line, const char* output)
{
    const crd_ports* ports = d->p->ports;
    int unit = -1;
    const char* name = NULL;
    const crd_status st =
        crd_system_split(d->system, output, (crd_place){.file = ""}, &unit, &name);
    if (st < 0) { return crdi_fail(ctx, st, "%s", crd_error_text(d->system->ctx)); }
    for (int i = 0; i < ports->port_count; i++) {
        const crd_endpoint* p = &ports->ports[i];
        if (p->unit != unit || strcmp(p->name, name) != 0) { continue; }
        const char* why =
            crd_propose_refusal(&d->p->ports->arena, p, &ports->ports[d->lines[line].to]);
        if (why) { return crdi_fail(ctx, CRD_E_RANGE, "%s", why); }
        d->lines[line] = (crdi_draft_line){i, d->lines[line].to, CRD_SURE, true, "as chosen"};
        return CRD_OK;
    }
    return crdi_fail(ctx, CRD_E_NOT_FOUND, "'%s' has no '%s'", d->system->units[unit].name, name);
}

// ---- as text -----------------------------------------------------------------------------------

// What follows a # must stay in its line.
static void put_comment(crd_text* t, const char* text)
{
    const size_t from = t->length;
    crdi_text_add(t, "%s", text);
    if (!t->failed) { t->length = from + crdi_printable(t->data + from, t->length - from); }
}

static const char* failure_of(const crdi_source* x, const crdi_proposed* p)
{
    if (x->failure || !p || !x->flow) { return x->failure; }
    for (int i = 0; i < p->ports->unit_count; i++) {
        if (strcmp(p->ports->units[i].name, x->name) == 0) { return p->ports->failures[i]; }
    }
    return NULL;
}

static void put_kind(crd_text* t, const crdi_proposed* p, const char* name)
{
    for (int i = 0; p && i < p->ports->unit_count; i++) {
        const crd_unit* u = p->ports->opened[i];
        if (!u || strcmp(p->ports->units[i].name, name) != 0) { continue; }
        int inputs = 0, outputs = 0;
        for (int k = 0; k < p->ports->port_count; k++) {
            const crd_endpoint* e = &p->ports->ports[k];
            inputs += e->unit == i && e->causality == CRD_INPUT;
            outputs += e->unit == i && e->causality == CRD_OUTPUT;
        }
        crdi_text_add(t, " # %s: %d input%s, %d output%s", u->info.kind, inputs,
                      crdi_plural(inputs), outputs, crdi_plural(outputs));
        return;
    }
}

void crdi_draft_write_units(const crdi_sources* s, const crdi_proposed* p, crd_text* out)
{
    int units = 0;
    bool below = false;
    for (int i = 0; i < s->count; i++) {
        const crdi_source* x = &s->items[i];
        if (x->system) {
            crdi_text_add(out, "system: ");
            crdi_yaml_text(out, x->name);
            crdi_text_add(out, " # its units and connections are below this file\n");
            below = true;
        }
        units += x->flow && !failure_of(x, p);
    }
    if (units) { crdi_text_add(out, below ? "\nunits:\n" : "units:\n"); }
    for (int i = 0; i < s->count; i++) {
        const crdi_source* x = &s->items[i];
        const char* failure = failure_of(x, p);
        if (failure) {
            crdi_text_add(out, "  # not used: ");
            if (!strstr(failure, x->path)) { crdi_text_add(out, "%s: ", x->path); }
            put_comment(out, failure);
            crdi_text_add(out, "\n");
        } else if (x->flow) {
            crdi_text_add(out, "  %s: %s", x->name, x->flow);
            put_kind(out, p, x->name);
            crdi_text_add(out, "\n");
        }
    }
}

static void put_line(const crdi_draft* d, const crdi_draft_line* l, crd_text* out)
{
    crdi_text_add(out, l->used ? "  - " : "  # - ");
    crdi_yaml_connection(out, crdi_port_name(d->p, l->from), crdi_port_name(d->p, l->to));
    crdi_text_add(out, " # %s%s", l->sure == CRD_SURE ? "" : crd_sureness_name(l->sure),
                  l->sure == CRD_SURE ? "" : ": ");
    put_comment(out, l->why);
    crdi_text_add(out, "\n");
}

static void put_connections(const crdi_draft* d, crd_text* out)
{
    int doubtful = 0, open = 0;
    crdi_text_add(out, "\nconnections:\n");
    for (int i = 0; i < d->count; i++) {
        if (d->lines[i].used) { put_line(d, &d->lines[i], out); }
        doubtful += !d->lines[i].used && d->lines[i].from >= 0;
    }
    if (doubtful) {
        crdi_text_add(out,
                      "  # To be looked at: take the # away from what is right, or use "
                      "'cardan connect %s add'.\n",
                      d->path);
    }
    for (int i = 0; i < d->count; i++) {
        if (!d->lines[i].used && d->lines[i].from >= 0) { put_line(d, &d->lines[i], out); }
    }
    for (int i = 0; i < d->count; i++) {
        const crd_endpoint* p = &d->p->ports->ports[d->lines[i].to];
        if (d->lines[i].from >= 0 || ++open > MOST_FREE) { continue; }
        crdi_text_add(out, "  # free: ");
        put_comment(out, crdi_port_name(d->p, d->lines[i].to));
        crdi_text_add(out, "%s%s%s\n", *p->measure ? " in " : "", p->measure,
                      ", keeps its start value");
    }
    if (open > MOST_FREE) { crdi_text_add(out, "  # free: %d more inputs\n", open - MOST_FREE); }
}

// Forces, torques, voltages and pressures are actions: what comes back times that is a power.
static void put_bonds(const crdi_draft* d, crd_text* out)
{
    const crd_endpoint* ports = d->p->ports->ports;
    int count = 0;
    for (int i = 0; i < d->count && count < MOST_FREE; i++) {
        const crdi_draft_line* a = &d->lines[i];
        if (!a->used || !ports[a->from].has_dimension || ports[a->from].dimension.kg != 1) {
            continue;
        }
        for (int k = 0; k < d->count && count < MOST_FREE; k++) {
            const crdi_draft_line* b = &d->lines[k];
            if (!b->used || ports[a->from].unit != ports[b->to].unit ||
                ports[a->to].unit != ports[b->from].unit ||
                !crd_is_power(&ports[a->from], &ports[b->from])) {
                continue;
            }
            if (count++ == 0) {
                crdi_text_add(out, "\n# Power bonds: the energy that the exchange creates or "
                                   "loses is watched at them.\n# bonds:\n");
            }
            crdi_text_add(out, "#   - [");
            crdi_yaml_text(out, crdi_port_name(d->p, a->from));
            crdi_text_add(out, ", ");
            crdi_yaml_text(out, crdi_port_name(d->p, b->from));
            crdi_text_add(out, "]\n");
        }
    }
}

// Whether one of the files is called STEM.mf4: results would take its place.
static bool is_source(const crdi_draft* d, const char* stem, size_t n)
{
    for (int i = 0; i < d->sources->count; i++) {
        const char* path = d->sources->items[i].path;
        const char* name = path + crdi_folder_length(path);
        if (strncmp(name, stem, n) == 0 && strcmp(name + n, ".mf4") == 0) { return true; }
    }
    return false;
}

void crdi_draft_write(const crdi_draft* d, crd_text* out)
{
    char step[32], stop[32];
    const char* name = d->path + crdi_folder_length(d->path);
    crdi_text_add(out, "# yaml-language-server: $schema=cardan.schema.json\n"
                       "# (cardan schema > cardan.schema.json: keys are then completed and "
                       "checked by editors)\n#\n# Made by: ");
    put_comment(out, d->command);
    crdi_text_add(out, "\n# Go on with:\n#   cardan check %s\n#   cardan run %s\n\ncardan: 1\n\n",
                  name, name);
    crdi_draft_write_units(d->sources, d->p, out);
    put_connections(d, out);
    put_bonds(d, out);
    crdi_text_add(out, "\nrun: { step: %s, stop: %s }", crdi_format_seconds(step, d->step),
                  crdi_format_seconds(stop, d->stop));
    if (d->step_why[0]) {
        crdi_text_add(out, " # ");
        put_comment(out, d->step_why);
    }
    size_t n;
    const char* stem = crdi_path_stem(name, &n);
    crd_text file;
    crd_text_init(&file, out->ctx);
    crdi_text_add(&file, "%.*s%s.mf4", (int)n, stem, is_source(d, stem, n) ? "_results" : "");
    crdi_text_add(out, "\n\nresults: ");
    if (!file.failed) { crdi_yaml_text(out, file.data); }
    crdi_text_add(out, " # all outputs, with units of measure and the verdict; also "
                       ".csv and .mat\n");
    crd_text_clear(&file);
}
