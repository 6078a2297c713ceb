// A description of DCP over CAN made for some slaves: all inputs from the master, all outputs to
// it, as many in a frame as there is room for, in the order of the description.
#include "dcp/can/can.h"

#include <math.h>
#include <string.h>

typedef struct maker {
    crd_context* ctx;
    crd_dcp_can_description* d;
    crdi_dcp_can_message* messages; // (as many as there are variables)
    int message_count;
    crdi_dcp_can_config* config; // of the slave that is being described
    crdi_dcp_pdu* settings;      // (its room)
    int setting_count;
    uint16_t next; // data_id
} maker;

static void add_setting(maker* k, crdi_dcp_pdu p)
{
    k->settings[k->setting_count++] = p;
}

// Bytes of a variable in a frame.
static crd_status measure(const maker* k, const crd_dcp_variable* v, uint8_t* size)
{
    const size_t element = crdi_dcp_size_of(v->type);
    if (v->rank > 0) {
        return crdi_fail(k->ctx, CRD_E_RANGE,
                         "CAN: %s.%s is an array, which a message of DCP over CAN cannot hold, "
                         "expected one variable for each element",
                         k->config->name, v->name);
    }
    const size_t n = element ? element : v->max_size;
    if (n == 0 || n > CRDI_DCP_CAN_ROOM) {
        return crdi_fail(k->ctx, CRD_E_RANGE,
                         "CAN: %s.%s has up to %zu bytes, expected 1 to 8, those of a frame%s",
                         k->config->name, v->name, n, element ? "" : " (maxSize)");
    }
    *size = (uint8_t)n;
    return CRD_OK;
}

static uint32_t usual_steps(const crd_dcp_variable* v)
{
    return v->causality == CRD_OUTPUT && v->default_steps ? v->default_steps : 1;
}

// The message that still has room for a variable of this kind; else a new one.
static crdi_dcp_can_message* message_for(maker* k, const crd_dcp_variable* v, uint8_t size,
                                         uint32_t steps, int first)
{
    const uint8_t sender = v->causality == CRD_OUTPUT ? k->config->id : 0;
    for (int i = first; i < k->message_count; i++) {
        crdi_dcp_can_message* m = &k->messages[i];
        // `line` has the steps while it is being made
        if (m->sender == sender && (uint32_t)m->line == steps && m->item_count < CRDI_CAN_ITEMS &&
            m->length + size <= CRDI_DCP_CAN_ROOM) {
            return m;
        }
    }
    uint8_t* receiver = crdi_arena_new(&k->d->arena, 1, 1);
    crdi_dcp_can_item* items = crdi_arena_new(&k->d->arena, CRDI_CAN_ITEMS, sizeof *items);
    if (!receiver || !items) { return NULL; }
    *receiver = v->causality == CRD_OUTPUT ? 0 : k->config->id;
    crdi_dcp_can_message* m = &k->messages[k->message_count++];
    *m = (crdi_dcp_can_message){.type = CRDI_DCP_DAT_INPUT_OUTPUT,
                                .sender = sender,
                                .id = ++k->next,
                                .items = items,
                                .receivers = receiver,
                                .receiver_count = 1,
                                .line = (int)steps};
    add_setting(k, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_SCOPE, .id = m->id});
    add_setting(k, (crdi_dcp_pdu){.type = v->causality == CRD_OUTPUT ? CRDI_DCP_CFG_TARGET_NETWORK
                                                                     : CRDI_DCP_CFG_SOURCE_NETWORK,
                                  .id = m->id,
                                  .transport = CRD_DCP_CAN});
    if (v->causality == CRD_OUTPUT) {
        add_setting(k, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_STEPS, .id = m->id, .steps = steps});
    }
    return m;
}

static crd_status add_variable(maker* k, const crd_dcp_variable* v, int first)
{
    uint8_t size = 0;
    const crd_status st = measure(k, v, &size);
    if (st < 0) { return st; }
    crdi_dcp_can_message* m = message_for(k, v, size, usual_steps(v), first);
    if (!m) { return CRD_E_MEMORY; }
    const bool out = v->causality == CRD_OUTPUT;
    crdi_dcp_can_item* items = (crdi_dcp_can_item*)m->items;
    items[m->item_count] = (crdi_dcp_can_item){.name = v->name,
                                               .unit = "",
                                               .type = (uint8_t)v->type,
                                               .offset = m->length,
                                               .length = size,
                                               .min = (double)NAN,
                                               .max = (double)NAN};
    add_setting(k, (crdi_dcp_pdu){.type = out ? CRDI_DCP_CFG_OUTPUT : CRDI_DCP_CFG_INPUT,
                                  .id = m->id,
                                  .pos = (uint16_t)m->item_count,
                                  .vr = v->vr,
                                  .data_type = (uint8_t)v->type});
    m->item_count++;
    m->length = (uint8_t)(m->length + size);
    return CRD_OK;
}

static crd_status add_resolution(maker* k, const crd_dcp_description* d, double wanted)
{
    uint32_t numerator = 0, denominator = 0;
    const crd_dcp_resolution* usual = crdi_dcp_usual_resolution(d);
    if (isnan(wanted) && usual) {
        numerator = usual->numerator;
        denominator = usual->denominator;
    } else if (isnan(wanted) || !crdi_dcp_divide_step(d, wanted, 1, &numerator, &denominator)) {
        return crdi_fail(k->ctx, CRD_E_RANGE,
                         "CAN: %s does not offer a time resolution of %g s, expected what its "
                         "description has under TimeRes",
                         d->name, wanted);
    }
    if (!d->fixed_resolution) {
        add_setting(k, (crdi_dcp_pdu){.type = CRDI_DCP_CFG_TIME_RES,
                                      .numerator = numerator,
                                      .denominator = denominator});
    }
    return CRD_OK;
}

static crd_status add_slave(maker* k, const crd_dcp_description* d, double resolution)
{
    const int first = k->message_count;
    k->settings =
        crdi_arena_new(&k->d->arena, 4 * (size_t)d->variable_count + 1, sizeof *k->settings);
    if (!k->settings) { return CRD_E_MEMORY; }
    k->setting_count = 0;
    memcpy(k->config->uuid, d->uuid, sizeof d->uuid);
    k->config->name = d->name;
    crd_status st = add_resolution(k, d, resolution);
    for (int i = 0; st == CRD_OK && i < d->variable_count; i++) {
        const uint8_t causality = d->variables[i].causality;
        if (causality != CRD_INPUT && causality != CRD_OUTPUT) { continue; }
        st = add_variable(k, &d->variables[i], first);
    }
    k->config->settings = k->settings;
    k->config->setting_count = k->setting_count;
    return st;
}

// Control comes first and wins the bus, data have the identifiers behind it.
static crd_status add_identifiers(maker* k, uint16_t first)
{
    const int control = CRDI_CAN_REQUESTS + 5 * k->d->slave_count;
    if (first + control + k->message_count > CRDI_CAN_STANDARD + 1) {
        return crdi_fail(k->ctx, CRD_E_RANGE,
                         "CAN: %d messages from identifier %d on, expected them below 2048",
                         control + k->message_count, first);
    }
    for (int i = 0; i < k->message_count; i++) {
        k->messages[i].can_id = (uint16_t)(first + control + i);
        k->messages[i].line = 0;
    }
    k->d->messages = k->messages;
    k->d->message_count = k->message_count;
    return crdi_dcp_can_add_control(k->d, first);
}

crd_status crdi_dcp_can_make(crd_context* ctx, const crdi_dcp_can_plan* plan, crd_text* out)
{
    crd_status st = CRD_OK;
    maker k = {.ctx = ctx};
    size_t variables = 1;
    CRD_TRY(crdi_dcp_can_description_create(ctx, &k.d));
    for (int i = 0; i < plan->slave_count; i++) {
        variables += (size_t)plan->slaves[i]->variable_count;
    }
    const size_t count = (size_t)plan->slave_count;
    crdi_dcp_can_config* slaves = crdi_arena_new(&k.d->arena, count + 1, sizeof *slaves);
    k.messages = crdi_arena_new(&k.d->arena, variables, sizeof *k.messages);
    if (!slaves || !k.messages) { CRD_TRY(CRD_E_MEMORY); }
    if (count > UINT8_MAX || variables > UINT16_MAX) {
        CRD_TRY(crdi_fail(ctx, CRD_E_RANGE,
                          "CAN: %zu slaves with %zu variables, expected at most "
                          "255 and 65535",
                          count, variables));
    }
    for (size_t i = 0; i < count; i++) {
        k.config = &slaves[i];
        k.config->id = (uint8_t)(i + 1);
        CRD_TRY(add_slave(&k, plan->slaves[i], plan->resolution));
    }
    k.d->slaves = slaves;
    k.d->slave_count = plan->slave_count;
    CRD_TRY(add_identifiers(&k, plan->first));
    CRD_TRY(crdi_dcp_can_write(k.d, out));
fail:
    crd_dcp_can_description_destroy(k.d);
    return st;
}
