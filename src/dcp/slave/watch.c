// Watch over inputs in a run: gradient (how fast a value changes from one PDU to the next), preEdge
// and postEdge (how far from its time a PDU arrives). DCP 1.0 leaves all of them to the slave.
#include "dcp/slave/slave.h"

#include <math.h>
#include <string.h>

static const double clock_error = 1e-6; // s: what a double leaves of the time since 1970

static bool has_gradient(const crd_dcp_variable* v)
{
    return v->causality == CRD_INPUT && !crdi_dcp_is_bytes(v->type) && v->gradient > 0; // not NAN
}

crd_status crdi_dcp_watch_create(crd_dcp_slave* s)
{
    for (int i = 0; i < s->d->variable_count; i++) {
        if (!has_gradient(&s->d->variables[i])) { continue; }
        s->marks[i].last = crdi_arena_new(&s->arena, s->values[i].capacity, sizeof(double));
        if (!s->marks[i].last) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

// The least of the edges counts. Without CFG_steps for the data_id nobody knows when it is due.
void crdi_dcp_watch_group(crd_dcp_slave* s, crdi_dcp_group* g)
{
    g->steep = false;
    g->pre_edge = g->post_edge = INFINITY;
    g->arrived = NAN;
    for (int i = 0; i < g->in.end && !g->parameters; i++) {
        const int variable = g->in.entries[i].variable;
        const crd_dcp_variable* v = &s->d->variables[variable];
        if (v->pre_edge < g->pre_edge) { g->pre_edge = v->pre_edge; }
        if (v->post_edge < g->post_edge) { g->post_edge = v->post_edge; }
        if (s->marks[variable].last) {
            g->steep = true;
            s->marks[variable].time = NAN;
        }
    }
    g->edged = g->has_steps && g->steps > 0 && s->mode != CRD_DCP_NRT &&
               (isfinite(g->pre_edge) || isfinite(g->post_edge));
}

// Two PDUs at the same time are taken to be one resolution apart.
static bool too_steep(crd_dcp_slave* s, int variable)
{
    crdi_dcp_mark* w = &s->marks[variable];
    const crd_dcp_slot* slot = &s->values[variable].slot;
    const double now = s->mode == CRD_DCP_NRT ? (double)s->steps_done * s->resolution : s->now;
    const double most =
        s->d->variables[variable].gradient * (fmax(now - w->time, s->resolution) + clock_error);
    bool steep = false;
    for (uint32_t i = 0; i < slot->count; i++) {
        const double x = crdi_dcp_slot_number(slot, i);
        // written so that NAN is too steep
        if (!isnan(w->time) && !(fabs(x - w->last[i]) <= most)) { steep = true; }
        w->last[i] = x;
    }
    w->time = now;
    return steep;
}

bool crdi_dcp_watch_data(crd_dcp_slave* s, crdi_dcp_group* g, int gap)
{
    bool good = true;
    bool steep = false;
    for (int i = 0; g->steep && i < g->in.end; i++) {
        const int variable = g->in.entries[i].variable;
        if (s->marks[variable].last) { steep = too_steep(s, variable) || steep; }
    }
    if (steep) {
        s->counts.too_steep++;
        good = !s->opt.check_gradient;
    }
    if (!g->edged) { return good; }
    const double due = g->arrived + (gap + 1) * (double)g->steps * s->resolution;
    const bool off = s->now < due - g->pre_edge - clock_error ||
                     s->now > due + g->post_edge + clock_error; // not where due is NAN
    g->arrived = s->now;
    if (off) {
        s->counts.off_edge++;
        good = good && !s->opt.check_edges;
    }
    return good;
}
