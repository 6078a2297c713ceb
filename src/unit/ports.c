// The free ends of all units of a system.
#include "cardan/unit.h"
#include "shared/base.h"
#include "shared/unit.h"

#include <stdio.h>
#include <string.h>

// What a bench and its master, or two ports, tell each other is filled in without connections.
static bool is_own_affair(const crd_unit* u, const crd_variable* v)
{
    const bool dcp = u->spec && u->spec->source == CRD_UNIT_DCP;
    return (dcp && (strncmp(v->name, "bench.", 6) == 0 || strstr(v->name, ".pair."))) ||
           strcmp(v->name, "standby.use") == 0;
}

static bool is_port(const crd_unit* u, const crd_variable* v)
{
    return (v->causality == CRD_OUTPUT || (v->causality == CRD_INPUT && v->alias_of < 0)) &&
           v->type != CRD_CLOCK && !is_own_affair(u, v);
}

static void add_ports(crd_ports* p, int unit)
{
    const crd_unit* u = p->opened[unit];
    for (int32_t i = 0; u && i < u->info.variable_count; i++) {
        const crd_variable* v = &u->info.variables[i];
        if (!is_port(u, v)) { continue; }
        crd_endpoint* port = &p->ports[p->port_count++];
        *port = (crd_endpoint){.unit = unit,
                               .name = v->name,
                               .measure = v->unit ? v->unit : "",
                               .type = v->type,
                               .causality = v->causality,
                               .size = v->size};
        port->has_dimension = crd_type_kind(v->type) == CRD_REAL && port->measure[0] &&
                              crdi_unit_dimension(u, i, &port->dimension);
    }
}

static int count_ports(const crd_unit* u)
{
    int n = 0;
    for (int32_t i = 0; u && i < u->info.variable_count; i++) {
        n += is_port(u, &u->info.variables[i]);
    }
    return n;
}

// Index of an input by "unit.name".
static crd_status mark_taken(crd_ports* p, const crd_system* s)
{
    crd_status st = CRD_OK;
    crd_map inputs;
    crdi_map_init(&inputs, p->ctx);
    for (int i = 0; i < p->port_count; i++) {
        const crd_endpoint* port = &p->ports[i];
        if (port->causality != CRD_INPUT) { continue; }
        const char* key = crdi_arena_format(&p->arena, "%d %s", port->unit, port->name);
        CRD_TRY(key ? crdi_map_add(&inputs, key, i, NULL) : CRD_E_MEMORY);
    }
    for (int u = 0; u < s->unit_count; u++) {
        for (int k = 0; k < s->units[u].parameter_count; k++) {
            char key[512];
            snprintf(key, sizeof key, "%d %s", u, s->units[u].parameters[k].variable);
            const int i = crdi_map_find(&inputs, key);
            if (i >= 0) { p->ports[i].taken = true; }
        }
    }
    for (int c = 0; c < s->connection_count; c++) {
        char key[512];
        snprintf(key, sizeof key, "%d %s", s->connections[c].to_unit, s->connections[c].to);
        char* bracket = strrchr(key, '['); // an element takes the whole
        int i = crdi_map_find(&inputs, key);
        if (i < 0 && bracket) {
            *bracket = 0;
            i = crdi_map_find(&inputs, key);
        }
        if (i >= 0) { p->ports[i].taken = true; }
    }
fail:
    crdi_map_clear(&inputs);
    return st;
}

static crd_status open_units(crd_ports* p, const crd_system* s)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)s->unit_count + 1;
    p->opened = crdi_arena_new(&p->arena, n, sizeof(crd_unit*));
    p->failures = crdi_arena_new(&p->arena, n, sizeof *p->failures);
    p->units = crdi_arena_new(&p->arena, n, sizeof *p->units);
    if (!p->opened || !p->failures || !p->units) { return CRD_E_MEMORY; }
    CRD_TRY(crd_unit_store_create(p->ctx, &p->store));
    for (int i = 0; i < s->unit_count; i++) {
        p->unit_count++;
        st = crd_unit_create_shared(p->ctx, p->store, &s->units[i], &p->opened[i]);
        if (st == CRD_E_MEMORY) { return st; }
        const char* text = crd_error_text(p->ctx);
        if (st < 0) { p->failures[i] = crdi_arena_text(&p->arena, text, strlen(text)); }
        if (st < 0 && !p->failures[i]) { return CRD_E_MEMORY; }
        const crd_unit_source source = s->units[i].source;
        p->units[i] =
            (crd_port_unit){.name = s->units[i].name,
                            .source = source == CRD_UNIT_SIGNAL || source == CRD_UNIT_REPLAY};
    }
    st = CRD_OK;
fail:
    return st;
}

crd_status crd_ports_create(crd_context* ctx, const crd_system* s, crd_ports** out)
{
    crd_status st = CRD_OK;
    crd_ports* p = crdi_new(ctx, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    p->ctx = ctx;
    crd_arena_init(&p->arena, ctx);
    CRD_TRY(open_units(p, s));
    size_t count = 1;
    for (int i = 0; i < p->unit_count; i++) {
        count += (size_t)count_ports(p->opened[i]);
    }
    p->ports = crdi_arena_new(&p->arena, count, sizeof *p->ports);
    if (!p->ports) { CRD_TRY(CRD_E_MEMORY); }
    for (int i = 0; i < p->unit_count; i++) {
        add_ports(p, i);
    }
    CRD_TRY(mark_taken(p, s));
    *out = p;
    return CRD_OK;
fail:
    crd_ports_destroy(p);
    return st;
}

void crd_ports_destroy(crd_ports* p)
{
    if (!p) { return; }
    for (int i = 0; i < p->unit_count; i++) {
        crd_unit_destroy(p->opened[i]);
    }
    crd_unit_store_destroy(p->store);
    crd_arena_clear(&p->arena);
    crd_free(p->ctx, p);
}
