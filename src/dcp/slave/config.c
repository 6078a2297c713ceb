// What CFG PDUs set, and whether it is complete.
#include "dcp/slave/slave.h"

#include <string.h>

// ---- groups ------------------------------------------------------------------------------------

crd_status crdi_dcp_config_create(crd_dcp_slave* s)
{
    const size_t groups = (size_t)s->opt.max_groups, size = (size_t)s->opt.max_group_size;
    const size_t targets = (size_t)s->opt.max_targets;
    s->groups = crdi_arena_new(&s->arena, groups, sizeof *s->groups);
    s->slots = crdi_arena_new(&s->arena, size, sizeof *s->slots);
    s->types = crdi_arena_new(&s->arena, size, sizeof *s->types);
    crdi_dcp_entry* entries = crdi_arena_new(&s->arena, groups * size, 2 * sizeof *entries);
    crd_dcp_address* addresses = crdi_arena_new(&s->arena, groups * targets, sizeof *addresses);
    if (!s->groups || !s->slots || !s->types || !entries || !addresses) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < groups; i++) {
        s->groups[i].in.entries = entries + 2 * i * size;
        s->groups[i].out.entries = entries + (2 * i + 1) * size;
        s->groups[i].targets = addresses + i * targets;
    }
    return CRD_OK;
}

crdi_dcp_group* crdi_dcp_find_group(crd_dcp_slave* s, uint16_t id, bool parameters)
{
    for (int i = 0; i < s->group_count; i++) {
        if (s->groups[i].id == id && s->groups[i].parameters == parameters) {
            return &s->groups[i];
        }
    }
    return NULL;
}

// The group, made if it is new; NULL: there is no room for another.
static crdi_dcp_group* need_group(crd_dcp_slave* s, uint16_t id, bool parameters)
{
    crdi_dcp_group* g = crdi_dcp_find_group(s, id, parameters);
    if (g) { return g; }
    if (s->group_count == s->opt.max_groups) { return NULL; }
    g = &s->groups[s->group_count++];
    *g = (crdi_dcp_group){.id = id,
                          .parameters = parameters,
                          .in.entries = g->in.entries,
                          .out.entries = g->out.entries,
                          .targets = g->targets};
    return g;
}

static void slave_config_put_entry(crdi_dcp_list* l, int pos, int variable, uint8_t type)
{
    for (; l->end <= pos; l->end++) {
        l->entries[l->end].variable = -1;
    }
    if (l->entries[pos].variable < 0) { l->count++; }
    l->entries[pos] = (crdi_dcp_entry){.variable = variable, .type = type};
}

// ---- time --------------------------------------------------------------------------------------

static crd_dcp_error set_time_res(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    if (!crdi_dcp_offers_resolution(s->d, p->numerator, p->denominator)) {
        return CRD_DCP_E_INVALID_TIME_RESOLUTION;
    }
    s->numerator = p->numerator;
    s->denominator = p->denominator;
    return CRD_DCP_NONE;
}

static crd_dcp_error set_steps(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    if (p->steps == 0) { return CRD_DCP_E_INVALID_STEPS; }
    crdi_dcp_group* g = need_group(s, p->id, false);
    if (!g) { return CRD_DCP_E_GENERIC; }
    for (int i = 0; i < g->out.end; i++) {
        const int variable = g->out.entries[i].variable;
        if (variable >= 0 && !crdi_dcp_output_steps_fit(&s->d->variables[variable], p->steps)) {
            return CRD_DCP_E_INVALID_STEPS;
        }
    }
    g->has_steps = true;
    g->steps = p->steps;
    return CRD_DCP_NONE;
}

// ---- variables ---------------------------------------------------------------------------------

// Index of a variable of this causality, -1.
static int slave_config_find_variable(const crd_dcp_slave* s, uint64_t vr, crd_causality causality)
{
    const int variable = crd_dcp_find_vr(s->d, vr);
    if (variable < 0 || s->d->variables[variable].causality != causality) { return -1; }
    return variable;
}

// Puts a variable that is received into its group: an input, or a parameter that is tuned.
static crd_dcp_error add_received(crd_dcp_slave* s, const crdi_dcp_pdu* p, int variable,
                                  bool parameters)
{
    if (variable < 0) { return CRD_DCP_E_INVALID_VALUE_REFERENCE; }
    if (!crdi_dcp_converts(p->data_type, s->d->variables[variable].type)) {
        return CRD_DCP_E_INVALID_SOURCE_DATA_TYPE;
    }
    if (p->pos >= s->opt.max_group_size) { return CRD_DCP_E_PDU_SIZE; }
    crdi_dcp_group* g = need_group(s, p->id, parameters);
    if (!g) { return CRD_DCP_E_GENERIC; }
    slave_config_put_entry(&g->in, p->pos, variable, p->data_type);
    return CRD_DCP_NONE;
}

static crd_dcp_error add_tunable(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    int variable = slave_config_find_variable(s, p->vr, CRD_PARAMETER);
    if (variable >= 0 && s->d->variables[variable].variability != CRD_TUNABLE) { variable = -1; }
    return add_received(s, p, variable, true);
}

static crd_dcp_error add_output(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    const int variable = slave_config_find_variable(s, p->vr, CRD_OUTPUT);
    if (variable < 0) { return CRD_DCP_E_INVALID_VALUE_REFERENCE; }
    const crdi_dcp_group* known = crdi_dcp_find_group(s, p->id, false);
    if (known && known->has_steps &&
        !crdi_dcp_output_steps_fit(&s->d->variables[variable], known->steps)) {
        return CRD_DCP_E_INVALID_STEPS;
    }
    if (p->pos >= s->opt.max_group_size) { return CRD_DCP_E_PDU_SIZE; }
    crdi_dcp_group* g = need_group(s, p->id, false);
    if (!g) { return CRD_DCP_E_GENERIC; }
    slave_config_put_entry(&g->out, p->pos, variable, s->d->variables[variable].type);
    return CRD_DCP_NONE;
}

static crd_dcp_error set_parameter(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    int variable = slave_config_find_variable(s, p->vr, CRD_PARAMETER);
    if (variable < 0) { variable = slave_config_find_variable(s, p->vr, CRD_STRUCTURAL_PARAMETER); }
    if (variable < 0) { return CRD_DCP_E_INVALID_VALUE_REFERENCE; }
    return crdi_dcp_set_parameter(s, variable, p->data_type, p->payload, p->payload_length);
}

static crd_dcp_error set_scope(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    if (p->scope > CRDI_DCP_RUN) { return CRD_DCP_E_INVALID_SCOPE; }
    crdi_dcp_group* g = need_group(s, p->id, false);
    if (!g) { return CRD_DCP_E_GENERIC; }
    g->has_scope = true;
    g->scope = p->scope;
    return CRD_DCP_NONE;
}

// ---- network -----------------------------------------------------------------------------------

uint32_t crdi_dcp_max_pdu(const crd_dcp_slave* s, uint8_t transport)
{
    const crd_dcp_endpoint* e = crdi_dcp_find_endpoint(s->d, transport);
    const uint32_t declared = e ? e->max_pdu_size : 0;
    return declared > 0 && declared < s->opt.max_pdu ? declared : s->opt.max_pdu;
}

// Data may come in through the ports that the description lists, and through that of Control.
static bool may_listen(const crd_dcp_slave* s, const crd_dcp_endpoint* e, const crdi_dcp_pdu* p)
{
    const bool parameters = p->type == CRDI_DCP_CFG_PARAM_NETWORK;
    const crd_dcp_ports* ports = parameters ? e->parameter : e->data;
    const int count = parameters ? e->parameter_count : e->data_count;
    if (p->port == 0) { return false; }
    return crdi_dcp_port_listed(ports, count, p->port) || p->port == e->port ||
           (p->port == s->control.port && p->transport == s->control.transport);
}

static bool may_send(const crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    if (p->port == 0) { return false; }
    if (!s->opt.allowed_ip) { return p->address >> 24 == 127 || p->address == s->master.ip; }
    for (int i = 0; i < s->opt.allowed_count; i++) {
        if (((p->address ^ s->opt.allowed_ip[i]) & s->opt.allowed_mask[i]) == 0) { return true; }
    }
    return false;
}

static bool add_target(const crd_dcp_slave* s, crdi_dcp_group* g, const crd_dcp_address* a)
{
    for (int i = 0; i < g->target_count; i++) {
        if (crd_dcp_address_equal(&g->targets[i], a)) { return true; }
    }
    if (g->target_count == s->opt.max_targets) { return false; }
    g->targets[g->target_count++] = *a;
    return true;
}

static crd_dcp_error set_network(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    const crd_dcp_endpoint* e = crdi_dcp_find_endpoint(s->d, p->transport);
    if (!e) { return CRD_DCP_E_INVALID_TRANSPORT_PROTOCOL; }
    const bool target = p->type == CRDI_DCP_CFG_TARGET_NETWORK;
    if (target ? !may_send(s, p) : !may_listen(s, e, p)) {
        return CRD_DCP_E_INVALID_NETWORK_INFORMATION;
    }
    crdi_dcp_group* g = need_group(s, p->id, p->type == CRDI_DCP_CFG_PARAM_NETWORK);
    if (!g) { return CRD_DCP_E_GENERIC; }
    const crd_dcp_address a = crdi_dcp_address_of(p);
    if (target) {
        return add_target(s, g, &a) ? CRD_DCP_NONE : CRD_DCP_E_INVALID_NETWORK_INFORMATION;
    }
    g->has_source = true;
    g->source = a;
    return CRD_DCP_NONE;
}

// ---- logging -----------------------------------------------------------------------------------

enum { LOG_NOT, LOG_ON_REQUEST, LOG_ON_NOTIFICATION };

bool crdi_dcp_log_category_known(const crd_dcp_slave* s, uint8_t category)
{
    if (category == 0) { return true; } // all of them
    for (int i = 0; i < s->d->category_count; i++) {
        if (s->d->categories[i].id == category) { return true; }
    }
    return false;
}

static crd_dcp_error set_logging(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    if (p->mode == LOG_ON_REQUEST && !s->d->can_log_on_request) {
        return CRD_DCP_E_NO_LOG_ON_REQUEST;
    }
    if (p->mode == LOG_ON_NOTIFICATION && !s->d->can_log_on_notification) {
        return CRD_DCP_E_NO_LOG_ON_NOTIFICATION;
    }
    if (!crdi_dcp_log_category_known(s, p->category)) { return CRD_DCP_E_INVALID_LOG_CATEGORY; }
    if (p->level >= CRDI_DCP_LEVELS) { return CRD_DCP_E_INVALID_LOG_LEVEL; }
    if (p->mode > LOG_ON_NOTIFICATION) { return CRD_DCP_E_INVALID_LOG_MODE; }
    const int first = p->category, last = p->category ? p->category : CRDI_DCP_CATEGORIES - 1;
    for (int i = first; i <= last; i++) {
        s->log_modes[i][p->level] = p->mode;
    }
    return CRD_DCP_NONE;
}

// ---- all of it ---------------------------------------------------------------------------------

void crdi_dcp_unconfigure(crd_dcp_slave* s)
{
    s->group_count = 0;
    s->numerator = s->denominator = 0;
    if (s->d->fixed_resolution && s->d->resolution_count > 0) {
        s->numerator = s->d->resolutions[0].numerator;
        s->denominator = s->d->resolutions[0].denominator;
    }
    memset(s->log_modes, LOG_NOT, sizeof s->log_modes);
    crdi_dcp_slave_values_restart(s);
}

crd_dcp_error crdi_dcp_configure(crd_dcp_slave* s, const crdi_dcp_pdu* p)
{
    switch (p->type) {
    case CRDI_DCP_CFG_TIME_RES:
        return set_time_res(s, p);
    case CRDI_DCP_CFG_STEPS:
        return set_steps(s, p);
    case CRDI_DCP_CFG_INPUT:
        return add_received(s, p, slave_config_find_variable(s, p->vr, CRD_INPUT), false);
    case CRDI_DCP_CFG_OUTPUT:
        return add_output(s, p);
    case CRDI_DCP_CFG_CLEAR:
        crdi_dcp_unconfigure(s);
        return CRD_DCP_NONE;
    case CRDI_DCP_CFG_TARGET_NETWORK:
    case CRDI_DCP_CFG_SOURCE_NETWORK:
    case CRDI_DCP_CFG_PARAM_NETWORK:
        return set_network(s, p);
    case CRDI_DCP_CFG_PARAMETER:
        return set_parameter(s, p);
    case CRDI_DCP_CFG_TUNABLE_PARAMETER:
        return add_tunable(s, p);
    case CRDI_DCP_CFG_LOGGING:
        return set_logging(s, p);
    case CRDI_DCP_CFG_SCOPE:
        return set_scope(s, p);
    default:
        return CRD_DCP_E_GENERIC;
    }
}

static bool has_gap(const crdi_dcp_list* l)
{
    return l->count < l->end;
}

static bool lacks_scope(const crdi_dcp_group* g)
{
    return !g->parameters && (g->in.count > 0 || g->out.count > 0) && !g->has_scope;
}

// Bytes of a PDU with these variables: the least for what is received, the most for what is sent.
static uint64_t pdu_size(const crd_dcp_slave* s, const crdi_dcp_list* l, bool most)
{
    uint64_t size = 5;
    for (int i = 0; i < l->end; i++) {
        const crdi_dcp_entry* e = &l->entries[i];
        const size_t element = crdi_dcp_size_of(e->type);
        const uint32_t declared = s->d->variables[e->variable].max_size;
        const crd_dcp_slot* slot = &s->values[e->variable].slot;
        size += element                          ? (uint64_t)slot->count * element
                : most && declared != UINT32_MAX ? 4 + (uint64_t)declared
                                                 : 4;
    }
    return size;
}

static bool slave_config_too_long(const crd_dcp_slave* s, const crdi_dcp_group* g)
{
    if (g->in.count > 0 && pdu_size(s, &g->in, false) > crdi_dcp_max_pdu(s, g->source.transport)) {
        return true;
    }
    const uint64_t out = g->out.count > 0 ? pdu_size(s, &g->out, true) : 0;
    for (int i = 0; i < g->target_count; i++) {
        if (out > crdi_dcp_max_pdu(s, g->targets[i].transport)) { return true; }
    }
    return false;
}

// The least of the maxConsecMissedPdus in the group.
static void find_limit(const crd_dcp_slave* s, crdi_dcp_group* g)
{
    g->has_limit = false;
    for (int i = 0; i < g->in.end; i++) {
        const crd_dcp_variable* v = &s->d->variables[g->in.entries[i].variable];
        if (v->has_max_missed && (!g->has_limit || v->max_missed < g->limit)) {
            g->has_limit = true;
            g->limit = v->max_missed;
        }
    }
}

// The first group that lacks something decides, but what is first asked for is asked of all groups.
static crd_dcp_error find_missing(const crd_dcp_slave* s)
{
    enum { CHECKS = 9 };
    for (int check = 0; check < CHECKS; check++) {
        // In NRT the master says when outputs are sent, so that steps do not matter.
        const bool nrt = s->mode == CRD_DCP_NRT;
        for (int i = 0; i < s->group_count; i++) {
            const crdi_dcp_group* g = &s->groups[i];
            const bool in = g->in.count > 0, out = g->out.count > 0, tuned = g->parameters;
            const struct {
                crd_dcp_error code;
                bool missing;
            } checks[CHECKS] = {
                {CRD_DCP_E_GAP_INPUT_POS, !tuned && has_gap(&g->in)},
                {CRD_DCP_E_GAP_OUTPUT_POS, has_gap(&g->out)},
                {CRD_DCP_E_GAP_TUNABLE_POS, tuned && has_gap(&g->in)},
                {CRD_DCP_E_NO_NETWORK_INPUT, !tuned && in && !g->has_source},
                {CRD_DCP_E_NO_NETWORK_OUTPUT, out && g->target_count == 0},
                {CRD_DCP_E_NO_NETWORK_TUNABLE, tuned && in && !g->has_source},
                {CRD_DCP_E_NO_STEPS, !nrt && out && !g->has_steps},
                {CRD_DCP_E_NO_TIME_RESOLUTION, s->denominator == 0},
                {CRD_DCP_E_NO_SCOPE, lacks_scope(g)},
            };
            if (checks[check].missing) { return checks[check].code; }
        }
    }
    return s->denominator == 0 ? CRD_DCP_E_NO_TIME_RESOLUTION : CRD_DCP_NONE;
}

crd_dcp_error crdi_dcp_complete(crd_dcp_slave* s)
{
    const crd_dcp_error missing = find_missing(s);
    if (missing != CRD_DCP_NONE) { return missing; }
    for (int i = 0; i < s->group_count; i++) {
        if (slave_config_too_long(s, &s->groups[i])) { return CRD_DCP_E_PDU_SIZE; }
        find_limit(s, &s->groups[i]);
        crdi_dcp_watch_group(s, &s->groups[i]);
    }
    crdi_dcp_join_groups(s);
    return CRD_DCP_NONE;
}
