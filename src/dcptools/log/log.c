// What the CFG PDUs said about slaves and groups, and data in the words of the description.
#include "dcptools/log/log.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ---- create ------------------------------------------------------------------------------------

static crd_status learn_matrix(crdi_dcp_log* l);

crd_status crdi_dcp_log_create(crd_context* ctx, const crdi_dcp_log_options* opt,
                               crdi_dcp_log** out)
{
    crdi_dcp_log* l = crdi_new(ctx, sizeof *l);
    if (!l) { return CRD_E_MEMORY; }
    l->ctx = ctx;
    l->opt = *opt;
    crd_text_init(&l->text, ctx);
    const size_t ports = (size_t)opt->port_count, count = (size_t)opt->description_count;
    l->ports = crdi_new_array(ctx, ports, sizeof *l->ports);
    l->descriptions = l->ports ? crdi_new_array(ctx, count, sizeof *l->descriptions) : NULL;
    if (!l->descriptions) {
        crdi_dcp_log_destroy(l);
        return CRD_E_MEMORY;
    }
    if (ports) { memcpy(l->ports, opt->ports, ports * sizeof *l->ports); }
    if (count) { memcpy(l->descriptions, opt->descriptions, count * sizeof *l->descriptions); }
    l->opt.ports = l->ports;
    l->opt.descriptions = l->descriptions;
    if (opt->matrix && learn_matrix(l) < 0) {
        crdi_dcp_log_destroy(l);
        return CRD_E_MEMORY;
    }
    *out = l;
    return CRD_OK;
}

void crdi_dcp_log_destroy(crdi_dcp_log* l)
{
    if (!l) { return; }
    crd_context* ctx = l->ctx;
    for (int i = 0; i < l->flow_count; i++) {
        crd_free(ctx, l->flows[i].buffer);
        for (int k = 0; k < CRDI_LOG_EARLY; k++) {
            crd_free(ctx, l->flows[i].early[k].bytes);
        }
    }
    for (size_t i = 0; i < l->group_count; i++) {
        crd_free(ctx, l->groups[i].items);
    }
    crd_free(ctx, l->groups);
    crd_free(ctx, l->flows);
    crd_free(ctx, l->slaves);
    crd_free(ctx, l->ports);
    crd_free(ctx, l->descriptions);
    crd_dcp_can_destroy(l->can);
    crd_text_clear(&l->text);
    crd_free(ctx, l);
}

crdi_dcp_log_counts crdi_dcp_log_get_counts(const crdi_dcp_log* l)
{
    return l->counts;
}

// ---- slaves and groups -------------------------------------------------------------------------

static int slave_at(crdi_dcp_log* l, const crd_dcp_address* at)
{
    for (int i = 0; i < l->slave_count; i++) {
        if (crd_dcp_address_equal(&l->slaves[i].at, at)) { return i; }
    }
    const size_t need = (size_t)l->slave_count + 1;
    if (need > CRDI_LOG_SLAVES) { return -1; }
    crdi_log_slave* more = crdi_grow(l->ctx, l->slaves, &l->slave_room, need, sizeof *more);
    if (!more) { return -1; }
    l->slaves = more;
    l->slaves[l->slave_count] = (crdi_log_slave){.at = *at};
    if (l->opt.description_count == 1) { l->slaves[l->slave_count].d = l->descriptions[0]; }
    return l->slave_count++;
}

static void forget_groups(crdi_dcp_log* l, int slave)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->group_count; i++) {
        if (l->groups[i].slave == slave) {
            crd_free(l->ctx, l->groups[i].items);
        } else {
            l->groups[kept++] = l->groups[i];
        }
    }
    l->group_count = kept;
    l->slaves[slave].size_count = 0;
}

static crdi_log_group* log_group_of(crdi_dcp_log* l, int slave, crdi_log_kind kind, uint16_t id)
{
    for (size_t i = 0; i < l->group_count; i++) {
        crdi_log_group* g = &l->groups[i];
        if (g->slave == slave && g->kind == kind && g->id == id) { return g; }
    }
    if (l->group_count == CRDI_LOG_GROUPS) { return NULL; }
    crdi_log_group* more =
        crdi_grow(l->ctx, l->groups, &l->group_room, l->group_count + 1, sizeof *more);
    if (!more) { return NULL; }
    l->groups = more;
    l->groups[l->group_count] = (crdi_log_group){.slave = slave, .kind = kind, .id = id};
    return &l->groups[l->group_count++];
}

static const crd_dcp_variable* log_variable_of(const crdi_dcp_log* l, int slave, uint64_t vr)
{
    const crd_dcp_description* d = l->slaves[slave].d;
    const int i = d ? crd_dcp_find_vr(d, vr) : -1;
    return i < 0 ? NULL : &d->variables[i];
}

static void learn_item(crdi_dcp_log* l, int slave, crdi_log_kind kind, const crdi_dcp_pdu* p)
{
    const crd_dcp_variable* v = log_variable_of(l, slave, p->vr);
    crdi_log_group* g = v && p->pos < CRDI_LOG_ITEMS ? log_group_of(l, slave, kind, p->id) : NULL;
    if (!g) { return; }
    const size_t need = (size_t)p->pos + 1;
    crdi_log_item* more = crdi_grow(l->ctx, g->items, &g->capacity, need, sizeof *more);
    if (!more) { return; }
    g->items = more;
    while (g->count < need) {
        g->items[g->count++] = (crdi_log_item){0};
    }
    g->items[p->pos] = (crdi_log_item){v, kind == CRDI_LOG_OUT ? v->type : p->data_type};
}

static void learn_network(crdi_dcp_log* l, int slave, const crdi_dcp_seen* s)
{
    const crdi_dcp_pdu* p = s->pdu;
    const crdi_log_kind kind = p->type == CRDI_DCP_CFG_TARGET_NETWORK   ? CRDI_LOG_OUT
                               : p->type == CRDI_DCP_CFG_SOURCE_NETWORK ? CRDI_LOG_IN
                                                                        : CRDI_LOG_PARAM;
    if (p->transport != CRD_DCP_UDP && p->transport != CRD_DCP_TCP) { return; }
    crd_dcp_address end = crdi_dcp_address_of(p);
    if (end.ip == 0) { end.ip = s->to.ip; }
    crdi_log_know(l, &end);
    crdi_log_group* g = log_group_of(l, slave, kind, p->id);
    if (!g) { return; }
    for (int i = 0; i < g->end_count; i++) {
        if (crd_dcp_address_equal(&g->ends[i], &end)) { return; }
    }
    if (g->end_count < CRDI_LOG_TARGETS) { g->ends[g->end_count++] = end; }
}

// A structural parameter: the size of arrays.
static void learn_size(crdi_dcp_log* l, int slave, const crdi_dcp_pdu* p)
{
    const crd_dcp_variable* v = log_variable_of(l, slave, p->vr);
    crdi_log_slave* x = &l->slaves[slave];
    const size_t size = crdi_dcp_size_of(p->data_type);
    if (!v || v->causality != CRD_STRUCTURAL_PARAMETER || !size || p->payload_length != size) {
        return;
    }
    int i = 0;
    while (i < x->size_count && x->size_vr[i] != p->vr) {
        i++;
    }
    if (i == CRDI_LOG_SIZES) { return; }
    if (i == x->size_count) { x->size_count++; }
    x->size_vr[i] = p->vr;
    x->size[i] = crdi_load_le(p->payload, size);
}

static void learn_slave(crdi_dcp_log* l, int slave, const crdi_dcp_pdu* p)
{
    forget_groups(l, slave);
    for (int i = 0; i < l->opt.description_count; i++) {
        if (memcmp(l->descriptions[i]->uuid, p->uuid, sizeof p->uuid) == 0) {
            l->slaves[slave].d = l->descriptions[i];
        }
    }
}

void crdi_log_learn(crdi_dcp_log* l, const crdi_dcp_seen* s)
{
    const crdi_dcp_pdu* p = s->pdu;
    const bool tells = p->type == CRDI_DCP_STC_REGISTER || p->type == CRDI_DCP_STC_RESET ||
                       crdi_dcp_is_configuration(p->type);
    if (s->decoded != CRDI_DCP_GOOD || !tells) { return; }
    const int slave = slave_at(l, &s->to);
    if (slave < 0) { return; }
    switch (p->type) {
    case CRDI_DCP_STC_REGISTER:
        learn_slave(l, slave, p);
        break;
    case CRDI_DCP_STC_RESET:
    case CRDI_DCP_CFG_CLEAR:
        forget_groups(l, slave);
        break;
    case CRDI_DCP_CFG_INPUT:
        learn_item(l, slave, CRDI_LOG_IN, p);
        break;
    case CRDI_DCP_CFG_OUTPUT:
        learn_item(l, slave, CRDI_LOG_OUT, p);
        break;
    case CRDI_DCP_CFG_TUNABLE_PARAMETER:
        learn_item(l, slave, CRDI_LOG_PARAM, p);
        break;
    case CRDI_DCP_CFG_PARAMETER:
        learn_size(l, slave, p);
        break;
    case CRDI_DCP_CFG_TARGET_NETWORK:
    case CRDI_DCP_CFG_SOURCE_NETWORK:
    case CRDI_DCP_CFG_PARAM_NETWORK:
        learn_network(l, slave, s);
        break;
    default:
        break;
    }
}

// What CFG PDUs would have said is in the file.
static crd_status learn_matrix(crdi_dcp_log* l)
{
    const crd_status st = crdi_dcp_can_reader(l->ctx, l->opt.matrix, &l->can);
    crdi_dcp_pdu p;
    uint8_t id = 0;
    const uint8_t* uuid = NULL;
    for (int k = 0; st >= 0 && crdi_dcp_can_slave_of(l->opt.matrix, k, &id, &uuid); k++) {
        const crd_dcp_address at = {.port = id, .transport = CRD_DCP_CAN};
        const int slave = slave_at(l, &at);
        if (slave < 0) { return CRD_E_MEMORY; }
        for (int i = 0; i < l->opt.description_count; i++) {
            if (memcmp(l->descriptions[i]->uuid, uuid, sizeof p.uuid) == 0) {
                l->slaves[slave].d = l->descriptions[i];
            }
        }
        for (int i = 0; crdi_dcp_can_setting(l->opt.matrix, k, i, &p); i++) {
            if (p.type == CRDI_DCP_CFG_INPUT) { learn_item(l, slave, CRDI_LOG_IN, &p); }
            if (p.type == CRDI_DCP_CFG_OUTPUT) { learn_item(l, slave, CRDI_LOG_OUT, &p); }
            if (p.type == CRDI_DCP_CFG_TUNABLE_PARAMETER) {
                learn_item(l, slave, CRDI_LOG_PARAM, &p);
            }
        }
    }
    return st;
}

// ---- values ------------------------------------------------------------------------------------

static uint64_t size_of_dimension(const crdi_dcp_log* l, const crdi_log_slave* x,
                                  const crd_dcp_variable* v, int k)
{
    if (!v->is_linked[k]) { return v->dimensions[k]; }
    for (int i = 0; i < x->size_count; i++) {
        if (x->size_vr[i] == v->linked[k]) { return x->size[i]; }
    }
    const crd_dcp_variable* s = log_variable_of(l, (int)(x - l->slaves), v->linked[k]);
    uint64_t n = 1;
    if (s && s->start) { (void)crdi_parse_uint64(s->start, strlen(s->start), &n); }
    return n;
}

// Elements; 0: absurd.
static uint64_t elements_of(const crdi_dcp_log* l, const crdi_log_slave* x,
                            const crd_dcp_variable* v)
{
    uint64_t n = 1;
    for (int k = 0; k < v->rank && k < 8; k++) {
        const uint64_t d = size_of_dimension(l, x, v, k);
        if (d == 0 || d > CRDI_LOG_MOST_PDU || n > CRDI_LOG_MOST_PDU) { return 0; }
        n *= d;
    }
    return n;
}

// Bytes of an item that begins at `p`; SIZE_MAX: more than there are.
static size_t bytes_of(const crdi_dcp_log* l, const crdi_log_group* g, const crdi_log_item* i,
                       const uint8_t* p, size_t left)
{
    const uint64_t n = elements_of(l, &l->slaves[g->slave], i->variable);
    return n ? crdi_dcp_encoded_size(i->type, n, p, left) : SIZE_MAX;
}

static bool group_fits(const crdi_dcp_log* l, const crdi_log_group* g, const crdi_dcp_pdu* p)
{
    size_t at = 0;
    for (size_t i = 0; i < g->count; i++) {
        if (!g->items[i].variable) { return false; }
        const size_t n = bytes_of(l, g, &g->items[i], p->payload + at, p->payload_length - at);
        if (n == SIZE_MAX) { return false; }
        at += n;
    }
    return g->count > 0 && at == p->payload_length;
}

// The group that a data PDU belongs to: one that goes there, else any of this id that fits.
static const crdi_log_group* find_group(const crdi_dcp_log* l, const crdi_dcp_seen* s)
{
    const crdi_log_group* found = NULL;
    int best = 0;
    const bool parameter = s->pdu->type == CRDI_DCP_DAT_PARAMETER;
    if (s->decoded != CRDI_DCP_GOOD || (!parameter && s->pdu->type != CRDI_DCP_DAT_INPUT_OUTPUT)) {
        return NULL;
    }
    for (size_t i = 0; i < l->group_count; i++) {
        const crdi_log_group* g = &l->groups[i];
        if (g->id != s->pdu->id || (g->kind == CRDI_LOG_PARAM) != parameter) { continue; }
        int score = 1 + (g->kind == CRDI_LOG_OUT);
        for (int k = 0; k < g->end_count; k++) {
            if (crd_dcp_address_equal(&g->ends[k], &s->to)) { score += 4; }
        }
        if (score > best && group_fits(l, g, s->pdu)) {
            best = score;
            found = g;
        }
    }
    return found;
}

static void put_float(crd_text* t, double x, bool single)
{
    if (!isfinite(x)) {
        crdi_text_add(t, "%s", isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity");
        return;
    }
    for (int digits = 6; single && digits <= 9; digits++) {
        char text[32];
        double back = 0;
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (!crdi_parse_double(text, strlen(text), &back) || (float)back != (float)x) { continue; }
        crdi_text_add(t, "%s", text);
        return;
    }
    crdi_text_json_number(t, x);
}

static void put_element(crd_text* t, uint8_t type, const uint8_t* p)
{
    double real = 0;
    int64_t integer = 0;
    crdi_dcp_load_number(type, p, &real, &integer);
    if (crdi_dcp_is_real(type)) {
        put_float(t, real, type == CRD_DCP_FLOAT32);
    } else if (type <= CRD_DCP_UINT64) {
        crdi_text_add(t, "%" PRIu64, (uint64_t)integer);
    } else {
        crdi_text_add(t, "%" PRId64, integer);
    }
}

static void put_string(crdi_dcp_log* l, const uint8_t* p, size_t length)
{
    char* copy = crdi_new(l->ctx, length + 1);
    if (!copy) {
        l->text.failed = true;
        return;
    }
    if (length) { memcpy(copy, p, length); }
    crdi_text_json(&l->text, copy);
    crd_free(l->ctx, copy);
}

static void log_put_value(crdi_dcp_log* l, const crdi_log_item* i, const uint8_t* p, size_t length)
{
    crd_text* t = &l->text;
    if (i->type == CRD_DCP_STRING) {
        put_string(l, p + 4, length - 4);
        return;
    }
    if (i->type == CRD_DCP_BINARY) {
        crdi_text_add(t, "\"");
        for (size_t k = 4; k < length; k++) {
            crdi_text_add(t, "%02x", p[k]);
        }
        crdi_text_add(t, "\"");
        return;
    }
    const size_t size = crdi_dcp_size_of(i->type);
    if (i->variable->rank == 0) {
        put_element(t, i->type, p);
        return;
    }
    crdi_text_add(t, "[");
    for (size_t at = 0; at < length; at += size) {
        if (at) { crdi_text_add(t, ", "); }
        put_element(t, i->type, p + at);
    }
    crdi_text_add(t, "]");
}

bool crdi_dcp_log_next(crdi_dcp_log* l, const crdi_dcp_seen* s, int* next, crdi_dcp_log_value* out)
{
    const crdi_log_group* g = find_group(l, s);
    if (!g || (size_t)*next >= g->count) { return false; }
    const crdi_dcp_pdu* p = s->pdu;
    size_t at = 0;
    for (int i = 0; i < *next; i++) {
        at += bytes_of(l, g, &g->items[i], p->payload + at, p->payload_length - at);
    }
    const crdi_log_item* item = &g->items[(*next)++];
    const size_t length = bytes_of(l, g, item, p->payload + at, p->payload_length - at);
    l->text.length = 0;
    l->text.failed = false;
    log_put_value(l, item, p->payload + at, length);
    if (l->text.failed || !l->text.data) { return false; }
    *out = (crdi_dcp_log_value){item->variable, l->text.data};
    return true;
}

// ---- lines -------------------------------------------------------------------------------------

// What a number in the PDU is called.
static void log_put_name(crdi_dcp_log* l, crdi_dcp_line* x, const crdi_dcp_seen* s)
{
    const crdi_dcp_pdu* p = s->pdu;
    const char* name = NULL;
    if (p->type == CRDI_DCP_RSP_NACK || p->type == CRDI_DCP_RSP_ERROR_ACK) {
        name = crd_dcp_error_name(p->error);
    } else if (crdi_dcp_names_variable(p->type)) {
        for (int i = 0; i < l->slave_count && !name; i++) {
            if (!crd_dcp_address_equal(&l->slaves[i].at, &s->to)) { continue; }
            const crd_dcp_variable* v = log_variable_of(l, i, p->vr);
            name = v ? v->name : NULL;
        }
    }
    if (!name || s->decoded != CRDI_DCP_GOOD) { return; }
    crdi_dcp_line_put(x, " (", 2);
    crdi_dcp_line_put(x, name, strlen(name));
    crdi_dcp_line_put(x, ")", 1);
}

static int print_seen(crdi_dcp_log* l, const crdi_dcp_seen* s, char* out, size_t room)
{
    crdi_dcp_line x = {out, room, 0};
    crdi_dcp_log_value v;
    int next = 0;
    char head[128];
    crdi_dcp_pdu bare = *s->pdu;
    if (!crdi_dcp_log_next(l, s, &next, &v)) {
        const int n = crdi_dcp_print(s->pdu, out, room);
        x.length = n > 0 ? (size_t)n : 0;
        log_put_name(l, &x, s);
        return (int)x.length;
    }
    bare.payload_length = 0;
    (void)crdi_dcp_print(&bare, head, sizeof head);
    crdi_dcp_line_put(&x, head, strlen(head));
    do {
        crdi_dcp_line_put(&x, " ", 1);
        crdi_dcp_line_put(&x, v.variable->name, strlen(v.variable->name));
        crdi_dcp_line_put(&x, "=", 1);
        crdi_dcp_line_put(&x, v.text, strlen(v.text));
    } while (crdi_dcp_log_next(l, s, &next, &v));
    return (int)x.length;
}

// What a frame has no room for is not said.
static int leave_out(char* line, int length)
{
    static const char* const words[] = {
        " seq=", " resp_seq=", " exp_seq=", " uuid=", " ver=", " time="};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char* at = strstr(line, words[i]);
        if (!at) { continue; }
        const size_t n = 1 + strcspn(at + 1, " ");
        memmove(at, at + n, strlen(at + n) + 1);
        length -= (int)n;
    }
    return length;
}

int crdi_dcp_log_print(crdi_dcp_log* l, const crdi_dcp_seen* s, char* out, size_t room)
{
    const int n = print_seen(l, s, out, room);
    return s->to.transport == CRD_DCP_CAN && n >= 0 && (size_t)n < room ? leave_out(out, n) : n;
}
