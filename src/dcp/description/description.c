// Descriptions: made, destroyed, looked up in, and what they offer. Without files, so that an FMU
// can do with it.
#include "dcp/description/dcpx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- make and destroy --------------------------------------------------------------------------

crd_status crd_dcp_description_create(crd_context* ctx, crd_dcp_description** out)
{
    crd_dcp_description* d = crdi_new(ctx, sizeof *d);
    if (!d) { return CRD_E_MEMORY; }
    d->ctx = ctx;
    crd_arena_init(&d->arena, ctx);
    d->file = d->name = d->description = d->author = d->version = d->copyright = d->license =
        d->tool = d->date = "";
    d->major = 1;
    d->nrt_default_steps = d->nrt_min_steps = d->nrt_max_steps = 1;
    d->nrt_fixed_steps = true;
    d->heartbeat_numerator = d->heartbeat_denominator = 1;
    d->udp.max_pdu_size = 65507;
    d->tcp.max_pdu_size = 4294967267;
    d->udp.host = d->udp.data_host = d->udp.parameter_host = "";
    d->tcp.host = d->tcp.data_host = d->tcp.parameter_host = "";
    *out = d;
    return CRD_OK;
}

void crd_dcp_description_destroy(crd_dcp_description* d)
{
    if (!d) { return; }
    crd_context* ctx = d->ctx;
    crd_arena_clear(&d->arena);
    crd_free(ctx, d);
}

crd_dcp_variable crd_dcp_variable_defaults(void)
{
    return (crd_dcp_variable){.name = "",
                              .description = "",
                              .unit = "",
                              .display_unit = "",
                              .quantity = "",
                              .declared_type = "",
                              .mime = "",
                              .variability = CRD_CONTINUOUS,
                              .type = CRD_DCP_FLOAT64,
                              .min = (double)NAN,
                              .max = (double)NAN,
                              .gradient = (double)NAN,
                              .nominal = (double)NAN,
                              .max_size = UINT32_MAX,
                              .pre_edge = (double)NAN,
                              .post_edge = (double)NAN,
                              .default_steps = 1,
                              .min_steps = 1,
                              .max_steps = 1,
                              .fixed_steps = true};
}

// ---- value references --------------------------------------------------------------------------

static int by_reference(const void* a, const void* b)
{
    const crdi_dcp_index *x = a, *y = b;
    if (x->vr != y->vr) { return x->vr < y->vr ? -1 : 1; }
    return (x->index > y->index) - (x->index < y->index);
}

void crdi_dcp_sort(const crd_dcp_description* d, crdi_dcp_index* room)
{
    bool sorted = true;
    for (int i = 0; i < d->variable_count; i++) {
        room[i] = (crdi_dcp_index){d->variables[i].vr, i};
        sorted = sorted && (i == 0 || room[i - 1].vr <= room[i].vr);
    }
    if (!sorted) { qsort(room, (size_t)d->variable_count, sizeof *room, by_reference); }
}

int crdi_dcp_look_up(const crdi_dcp_index* by_vr, int count, uint64_t vr)
{
    int low = 0, high = count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (by_vr[middle].vr < vr) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && by_vr[low].vr == vr ? by_vr[low].index : -1;
}

// Descriptions made by hand may have no index, or one from before a change: what it says is
// believed only after a look.
int crd_dcp_find_vr(const crd_dcp_description* d, uint64_t vr)
{
    if (d->by_vr) {
        const int i = crdi_dcp_look_up(d->by_vr, d->by_vr_count, vr);
        if (i >= 0 && i < d->variable_count && d->variables[i].vr == vr) { return i; }
    }
    for (int i = 0; i < d->variable_count; i++) {
        if (d->variables[i].vr == vr) { return i; }
    }
    return -1;
}

int crdi_dcp_find_name(const crd_dcp_description* d, const char* name)
{
    for (int i = 0; i < d->variable_count; i++) {
        if (strcmp(d->variables[i].name, name) == 0) { return i; }
    }
    return -1;
}

const crd_dcp_log_template* crdi_dcp_find_template(const crd_dcp_description* d, uint8_t id)
{
    for (int i = 0; i < d->template_count; i++) {
        if (d->templates[i].id == id) { return &d->templates[i]; }
    }
    return NULL;
}

// ---- what it offers ----------------------------------------------------------------------------

bool crdi_dcp_offers_mode(const crd_dcp_description* d, int mode)
{
    return mode == CRD_DCP_HRT   ? d->hrt
           : mode == CRD_DCP_SRT ? d->srt
                                 : mode == CRD_DCP_NRT && d->nrt;
}

const crd_dcp_endpoint* crdi_dcp_find_endpoint(const crd_dcp_description* d, int transport)
{
    const crd_dcp_endpoint* e = transport == CRD_DCP_UDP   ? &d->udp
                                : transport == CRD_DCP_TCP ? &d->tcp
                                                           : NULL;
    return e && e->offered ? e : NULL;
}

bool crdi_dcp_offers_resolution(const crd_dcp_description* d, uint32_t numerator,
                                uint32_t denominator)
{
    for (int i = 0; i < d->resolution_count && numerator && denominator; i++) {
        const crd_dcp_resolution* r = &d->resolutions[i];
        const uint32_t to = r->numerator_to < r->numerator ? r->numerator : r->numerator_to;
        // numerator / denominator = k / r->denominator, with k in the range
        const uint64_t k = (uint64_t)numerator * r->denominator;
        if (k % denominator == 0 && k / denominator >= r->numerator && k / denominator <= to) {
            return true;
        }
    }
    return false;
}

const crd_dcp_resolution* crdi_dcp_usual_resolution(const crd_dcp_description* d)
{
    for (int i = 0; i < d->resolution_count; i++) {
        if (d->resolutions[i].recommended) { return &d->resolutions[i]; }
    }
    return d->resolution_count ? d->resolutions : NULL;
}

bool crdi_dcp_divide_step(const crd_dcp_description* d, double step, int most, uint32_t* numerator,
                          uint32_t* denominator)
{
    double longest = 0;
    for (int i = 0; i < d->resolution_count; i++) {
        const crd_dcp_resolution* r = &d->resolutions[i];
        const double ticks = step * r->denominator; // of which n make a resolution, k times
        for (double k = fmax(1, floor(ticks / r->numerator_to)); k <= most; k++) {
            const double n = round(ticks / k), s = n / r->denominator;
            if (n < r->numerator) { break; }
            if (n <= r->numerator_to && fabs(k * s - step) <= 1e-9 * step && s > longest) {
                longest = s;
                *numerator = (uint32_t)n;
                *denominator = r->denominator;
                break;
            }
        }
    }
    return longest > 0;
}

double crdi_dcp_heartbeat(const crd_dcp_description* d)
{
    if (!d->can_monitor_heartbeat || !d->has_heartbeat || d->heartbeat_denominator == 0) {
        return INFINITY;
    }
    return (double)d->heartbeat_numerator / (double)d->heartbeat_denominator;
}

static bool steps_fit(bool fixed, uint32_t usual, uint32_t min, uint32_t max, uint32_t steps)
{
    return fixed ? steps == usual : steps >= min && (max == 0 || steps <= max);
}

bool crdi_dcp_nrt_steps_fit(const crd_dcp_description* d, uint32_t steps)
{
    return steps_fit(d->nrt_fixed_steps, d->nrt_default_steps, d->nrt_min_steps, d->nrt_max_steps,
                     steps);
}

bool crdi_dcp_output_steps_fit(const crd_dcp_variable* v, uint32_t steps)
{
    return steps_fit(v->fixed_steps, v->default_steps, v->min_steps, v->max_steps, steps);
}

bool crdi_dcp_supports(const crd_dcp_description* d, int type, crd_dcp_op_mode mode)
{
    switch (type) {
    case CRDI_DCP_STC_RESET:
        return d->can_reset;
    case CRDI_DCP_STC_DO_STEP:
        return mode == CRD_DCP_NRT;
    case CRDI_DCP_CFG_INPUT:
    case CRDI_DCP_CFG_OUTPUT:
    case CRDI_DCP_CFG_TARGET_NETWORK:
    case CRDI_DCP_CFG_SOURCE_NETWORK:
        return d->can_accept_config;
    case CRDI_DCP_CFG_LOGGING:
    case CRDI_DCP_INF_LOG:
        return d->can_log_on_request || d->can_log_on_notification;
    default:
        return true;
    }
}

bool crdi_dcp_port_listed(const crd_dcp_ports* ports, int count, uint32_t port)
{
    for (int i = 0; i < count; i++) {
        if (port >= ports[i].from && port <= ports[i].to) { return true; }
    }
    return false;
}

// ---- characters --------------------------------------------------------------------------------

size_t crdi_dcp_utf8(const char* text)
{
    const unsigned char* p = (const unsigned char*)text;
    const size_t n = *p < 0x80                 ? 1
                     : *p >= 0xC2 && *p < 0xE0 ? 2
                     : *p >= 0xE0 && *p < 0xF0 ? 3
                     : *p >= 0xF0 && *p < 0xF5 ? 4
                                               : 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) { return 0; }
    }
    const bool long_form =
        (n == 3 && p[0] == 0xE0 && p[1] < 0xA0) || (n == 4 && p[0] == 0xF0 && p[1] < 0x90);
    const bool surrogate = n == 3 && p[0] == 0xED && p[1] > 0x9F;
    const bool beyond = n == 4 && p[0] == 0xF4 && p[1] > 0x8F;
    const bool none = n == 3 && p[0] == 0xEF && p[1] == 0xBF && p[2] > 0xBD; // U+FFFE, U+FFFF
    return long_form || surrogate || beyond || none ? 0 : n;
}

// ---- hexadecimal digits ------------------------------------------------------------------------

static int digit_of(char c)
{
    const char low = (char)(c | 0x20);
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

bool crdi_dcp_hex_parse(const char* text, size_t length, uint8_t* out, size_t room, size_t* count)
{
    *count = 0;
    if (length % 2 || length / 2 > room) { return false; }
    for (size_t i = 0; i < length; i += 2) {
        const int high = digit_of(text[i]), low = digit_of(text[i + 1]);
        if (high < 0 || low < 0) { return false; }
        out[(*count)++] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool crdi_dcp_uuid_parse(const char* text, size_t length, uint8_t out[16])
{
    static const uint8_t groups[] = {8, 4, 4, 4, 12};
    uint8_t bytes[16];
    size_t done = 0, n = 0;
    if (length != 36) { return false; }
    for (size_t i = 0; i < sizeof groups; i++) {
        if (i > 0 && *text++ != '-') { return false; }
        if (!crdi_dcp_hex_parse(text, groups[i], bytes + done, sizeof bytes - done, &n)) {
            return false;
        }
        text += groups[i];
        done += n;
    }
    memcpy(out, bytes, sizeof bytes);
    return true;
}

void crdi_dcp_uuid_print(const uint8_t uuid[16], char out[37])
{
    for (int i = 0; i < 16; i++) {
        const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        out += snprintf(out, 4, "%s%02x", dash ? "-" : "", uuid[i]);
    }
}
