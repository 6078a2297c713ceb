// What of a description the conformance test is about, and what does not apply to it.
#include "dcptools/conform/conform.h"

static bool is_scalar(const crd_dcp_variable* v)
{
    return v->rank == 0 && crdi_dcp_size_of(v->type) > 0;
}

typedef bool fits(const crd_dcp_variable* v);

static bool is_output(const crd_dcp_variable* v)
{
    return v->causality == CRD_OUTPUT && is_scalar(v);
}

static bool is_input(const crd_dcp_variable* v)
{
    return v->causality == CRD_INPUT && is_scalar(v);
}

static bool is_watched(const crd_dcp_variable* v)
{
    return is_input(v) && v->has_max_missed && v->max_missed <= 1000;
}

static bool is_parameter(const crd_dcp_variable* v)
{
    return v->causality == CRD_PARAMETER && is_scalar(v);
}

static bool is_tunable(const crd_dcp_variable* v)
{
    return is_parameter(v) && v->variability == CRD_TUNABLE;
}

static bool is_fixed(const crd_dcp_variable* v)
{
    return is_parameter(v) && v->variability != CRD_TUNABLE;
}

static bool choose_is_text(const crd_dcp_variable* v)
{
    return v->causality == CRD_PARAMETER && v->type == CRD_DCP_STRING && v->max_size <= 900;
}

static bool is_no_input(const crd_dcp_variable* v)
{
    return v->causality != CRD_INPUT;
}

static bool is_no_output(const crd_dcp_variable* v)
{
    return v->causality != CRD_OUTPUT;
}

static const crd_dcp_variable* first(const crd_dcp_description* d, fits* f)
{
    for (int i = 0; i < d->variable_count; i++) {
        if (f(&d->variables[i])) { return &d->variables[i]; }
    }
    return NULL;
}

static uint64_t unused_vr(const crd_dcp_description* d)
{
    uint64_t vr = 0x7FFFFFFF; // what every slave can read
    while (crd_dcp_find_vr(d, vr) >= 0) {
        vr--;
    }
    return vr;
}

// ---- ports -------------------------------------------------------------------------------------

static uint16_t unlisted(const crd_dcp_ports* ports, int count, const crd_dcp_endpoint* e,
                         uint16_t control)
{
    for (uint32_t port = 1024; port < 65536; port++) {
        if (port != control && port != e->port && !crdi_dcp_port_listed(ports, count, port)) {
            return (uint16_t)port;
        }
    }
    return 0;
}

// Datagrams may come in through the port of Control, where nothing else can be in the way; streams
// have a port of their own.
static uint16_t usable(const crd_dcp_ports* ports, int count, const crd_dcp_address* control)
{
    const bool shared = control->transport == CRD_DCP_UDP;
    if (count == 0 || (shared && crdi_dcp_port_listed(ports, count, control->port))) {
        return control->port;
    }
    const uint32_t width = (uint32_t)ports[0].to - ports[0].from;
    uint32_t port = ports[0].from + (width > 1000 ? width / 3 : 0);
    if (port == control->port && port < ports[0].to) { port++; }
    return (uint16_t)port;
}

static void choose_ports(crdi_conform_choice* c, const crd_dcp_description* d,
                         const crd_dcp_address* control, uint16_t data_port)
{
    const crd_dcp_endpoint* e = control->transport == CRD_DCP_TCP ? &d->tcp : &d->udp;
    c->transport = control->transport;
    c->other_transport = !d->udp.offered   ? CRD_DCP_UDP
                         : !d->tcp.offered ? CRD_DCP_TCP
                         : !d->can         ? CRD_DCP_CAN
                                           : 9;
    c->data_port = data_port ? data_port : usable(e->data, e->data_count, control);
    c->tune_port = data_port ? data_port : usable(e->parameter, e->parameter_count, control);
    c->other_port = unlisted(e->data, e->data_count, e, control->port);
    c->other_tune_port = unlisted(e->parameter, e->parameter_count, e, control->port);
}

// ---- all of it ---------------------------------------------------------------------------------

static void choose_steps(crdi_conform_choice* c, const crd_dcp_description* d)
{
    if (d->nrt_fixed_steps) { return; }
    const uint32_t usual = d->nrt_default_steps,
                   least = d->nrt_min_steps > 0 ? d->nrt_min_steps : 1;
    if (d->nrt_max_steps == 0 || usual < d->nrt_max_steps) {
        c->other_steps = usual + 1;
    } else if (usual > least) {
        c->other_steps = usual - 1;
    }
}

static uint32_t what_there_is(const crdi_conform_choice* c, const crd_dcp_description* d)
{
    const bool config = d->can_accept_config, beats = c->heartbeat <= 10;
    const bool log = d->can_log_on_request || d->can_log_on_notification;
    const bool missed = config && c->input && is_watched(c->input);
    const bool steps = c->output && (c->output->fixed_steps || c->output->max_steps > 0);
    const bool given[CRDI_N_COUNT] = {
        [CRDI_NEED_OUTPUT] = config && c->output,
        [CRDI_NEED_INPUT] = config && c->input,
        [CRDI_NEED_TUNABLE] = c->tunable,
        [CRDI_NEED_PARAMETER] = c->parameter,
        [CRDI_NEED_FIXED] = c->fixed,
        [CRDI_NEED_TEXT] = c->text,
        [CRDI_NEED_MISSED] = missed,
        [CRDI_NEED_ERROR] = missed || beats,
        [CRDI_NEED_HEARTBEAT] = beats,
        [CRDI_NEED_RESET] = d->can_reset,
        [CRDI_NEED_NO_RESET] = !d->can_reset,
        [CRDI_NEED_LOG] = log,
        [CRDI_NEED_NO_LOG] = !log,
        [CRDI_NEED_LOG_REQUEST] = d->can_log_on_request,
        [CRDI_NEED_NO_LOG_REQUEST] = !d->can_log_on_request,
        [CRDI_NEED_LOG_NOTIFICATION] = d->can_log_on_notification,
        [CRDI_NEED_NO_LOG_NOTIFICATION] = !d->can_log_on_notification,
        [CRDI_NEED_FREE_RESOLUTION] = !d->fixed_resolution,
        [CRDI_NEED_FIXED_STEPS] = !d->can_vary_steps && c->other_steps > 0,
        [CRDI_NEED_MOST_STEPS] =
            d->nrt_fixed_steps || (d->nrt_max_steps > 0 && d->nrt_max_steps < UINT32_MAX),
        [CRDI_NEED_OUTPUT_STEPS] = steps,
        [CRDI_NEED_OTHER_PORT] = c->other_port,
        [CRDI_NEED_CONFIG] = config,
        [CRDI_NEED_NO_CONFIG] = !config,
        [CRDI_NEED_PARAMETER_PORT] = c->other_tune_port,
    };
    uint32_t have = 0;
    for (int i = 0; i < CRDI_N_COUNT; i++) {
        have |= given[i] ? 1u << i : 0;
    }
    return have;
}

void crdi_conform_choose(crdi_conform_choice* c, const crd_dcp_description* d,
                         const crd_dcp_address* control, uint16_t data_port)
{
    *c = (crdi_conform_choice){
        .numerator = 1, .denominator = 1000, .heartbeat = crdi_dcp_heartbeat(d)};
    c->output = first(d, is_output);
    c->input = first(d, is_watched);
    if (!c->input) { c->input = first(d, is_input); }
    c->tunable = first(d, is_tunable);
    c->parameter = first(d, is_parameter);
    c->fixed = first(d, is_fixed);
    c->text = first(d, choose_is_text);
    c->no_vr = unused_vr(d);
    const crd_dcp_variable* other = first(d, is_no_output);
    c->output_like = other ? other->vr : c->no_vr;
    other = first(d, is_no_input);
    c->input_like = other ? other->vr : c->no_vr;
    const crd_dcp_resolution* r = crdi_dcp_usual_resolution(d);
    if (r) {
        c->numerator = r->numerator;
        c->denominator = r->denominator;
    }
    choose_ports(c, d, control, data_port);
    choose_steps(c, d);
    c->have = what_there_is(c, d);
}
