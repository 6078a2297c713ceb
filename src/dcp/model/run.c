// One instance of a slave's model: its session, and values on their way between both.
#include "dcp/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct crdi_dcp_session {
    crd_context* ctx; // of its own
    const crdi_dcp_model* model;
    const crd_model_host* host; // during a call, else NULL
    crd_dcp_net* net;
    crd_dcp_master* master;
    crd_dcp_op_mode mode;
    double resolution;
    int tunables; // group of them, -1: none
    bool running;
    double begin; // time of the experiment when the run began
    double start; // the same on the clock of the net
    int64_t late; // steps in SRT
};

static void* field_of(void* self, const crdi_dcp_session* s, int variable)
{
    return (char*)self + s->model->base.variables[s->model->rows[variable]].offset;
}

static size_t row_bytes(const crd_model_variable* row)
{
    return crd_model_stride(row) * (row->size ? row->size : 1);
}

// ---- messages ----------------------------------------------------------------------------------

static crd_model_status log_error(const crd_model_host* host, const char* text)
{
    host->log(host->user, CRD_MODEL_ERROR, text);
    return CRD_MODEL_ERROR;
}

static crd_model_status log_failure(const crdi_dcp_session* s, const crd_model_host* host,
                                    crd_status st)
{
    return st >= 0 ? CRD_MODEL_OK : log_error(host, crd_error_text(s->ctx));
}

static void notice(void* user, const crd_dcp_notice* n)
{
    const crdi_dcp_session* s = user;
    if (!s->host) { return; }
    const bool loud = n->kind == CRD_DCP_NOTICE_LOSS ||
                      (n->kind == CRD_DCP_NOTICE_LOG && n->level <= 2); // warnings of its log
    s->host->log(s->host->user, loud ? CRD_MODEL_WARNING : CRD_MODEL_OK, n->text);
}

// ---- values ------------------------------------------------------------------------------------

static void to_slot(const crd_model_variable* row, const char* from, const crd_dcp_slot* slot)
{
    const size_t stride = crd_model_stride(row);
    if (row->type == CRD_STRING || row->type == CRD_BINARY) {
        const bool text = row->type == CRD_STRING;
        size_t n = text ? strnlen(from, row->capacity) : *(const size_t*)(const void*)from;
        n = n < slot->max_size ? n : slot->max_size;
        if (n) { memcpy(slot->bytes, text ? from : from + sizeof(size_t), n); }
        *slot->byte_count = (uint32_t)n;
        return;
    }
    for (uint32_t i = 0; i < slot->count; i++, from += stride) {
        if (row->type == CRD_FLOAT64) {
            slot->real[i] = *(const double*)(const void*)from;
        } else if (row->type == CRD_FLOAT32) {
            slot->real[i] = *(const float*)(const void*)from;
        } else {
            slot->integer[i] = crd_model_integer(row->type, from);
        }
    }
}

static void from_slot(const crd_model_variable* row, char* to, const crd_dcp_slot* slot)
{
    const size_t stride = crd_model_stride(row);
    if (row->type == CRD_STRING || row->type == CRD_BINARY) {
        const bool text = row->type == CRD_STRING;
        const size_t room = row->capacity - text, n = *slot->byte_count;
        const size_t length = n < room ? n : room;
        if (length) { memcpy(text ? to : to + sizeof(size_t), slot->bytes, length); }
        if (text) {
            to[length] = 0;
        } else {
            *(size_t*)(void*)to = length;
        }
        return;
    }
    for (uint32_t i = 0; i < slot->count; i++, to += stride) {
        if (row->type == CRD_FLOAT64) {
            *(double*)(void*)to = slot->real[i];
        } else if (row->type == CRD_FLOAT32) {
            *(float*)(void*)to = (float)slot->real[i];
        } else {
            crd_model_set_integer(row->type, to, slot->integer[i]);
        }
    }
}

static void move_causality(void* self, const crdi_dcp_session* s, crd_causality which)
{
    const crd_dcp_description* d = s->model->d;
    for (int i = 0; i < d->variable_count; i++) {
        if (d->variables[i].causality != which) { continue; }
        const crd_model_variable* row = &s->model->base.variables[s->model->rows[i]];
        const crd_dcp_slot* slot = crd_dcp_master_slot(s->master, 0, i);
        if (which == CRD_OUTPUT) {
            from_slot(row, field_of(self, s, i), slot);
        } else {
            to_slot(row, field_of(self, s, i), slot);
        }
    }
}

// Whether a parameter has another value than the one that the slave was given last; then that is
// noted, if `note`.
static bool parameter_changed(void* self, const crdi_dcp_model* m, int row, bool note)
{
    const crd_model_variable* r = &m->base.variables[row];
    char* own = (char*)self + r->offset;
    char* had = own + m->mirror;
    if (memcmp(own, had, row_bytes(r)) == 0) { return false; }
    if (note) { memcpy(had, own, row_bytes(r)); }
    return true;
}

static bool any_changed(void* self, const crdi_dcp_model* m, bool tunable, bool note)
{
    bool found = false;
    for (int i = 0; i < m->base.variable_count; i++) {
        const crd_model_variable* r = &m->base.variables[i];
        if (r->causality != CRD_PARAMETER || (r->variability == CRD_TUNABLE) != tunable) {
            continue;
        }
        found = parameter_changed(self, m, i, note) || found;
    }
    return found;
}

// ---- the plan ----------------------------------------------------------------------------------

static crd_status check_transport(const crdi_dcp_session* s, const crd_dcp_address* a)
{
    const bool tcp = a->transport == CRD_DCP_TCP;
    if (crdi_dcp_find_endpoint(s->model->d, a->transport)) { return CRD_OK; }
    return crdi_fail(s->ctx, CRD_E_RANGE,
                     "dcp.address: the slave does not offer %s, expected %s://",
                     tcp ? "TCP_IPv4" : "UDP_IPv4", tcp ? "udp" : "tcp");
}

// Parameters that are not as the slave has them by itself.
static crd_status model_run_set_parameters(void* self, crdi_dcp_session* s)
{
    const crdi_dcp_model* m = s->model;
    crd_status st = CRD_OK;
    for (int pass = 0; pass < 2; pass++) { // structural ones first: they give the others their size
        for (int i = 0; i < m->d->variable_count; i++) {
            const uint8_t causality = m->d->variables[i].causality;
            if (pass == 0 && causality == CRD_STRUCTURAL_PARAMETER) {
                CRD_TRY(crd_dcp_master_set(s->master, 0, i)); // its slot has the start value
            } else if (pass == 1 && causality == CRD_PARAMETER &&
                       parameter_changed(self, m, m->rows[i], true)) {
                to_slot(&m->base.variables[m->rows[i]], field_of(self, s, i),
                        crd_dcp_master_slot(s->master, 0, i));
                CRD_TRY(crd_dcp_master_set(s->master, 0, i));
            }
        }
    }
fail:
    return st;
}

static int collect_variables(const crdi_dcp_model* m, crd_causality causality, bool tunable,
                             int* out)
{
    int count = 0;
    for (int i = 0; i < m->d->variable_count; i++) {
        const crd_dcp_variable* v = &m->d->variables[i];
        if (v->causality == causality && (!tunable || v->variability == CRD_TUNABLE)) {
            out[count++] = i;
        }
    }
    return count;
}

static crd_status plan_session(void* self, crdi_dcp_session* s, const crd_dcp_address* address)
{
    crd_status st = CRD_OK;
    const crdi_dcp_model* m = s->model;
    int index = 0;
    int* some = crdi_new_array(s->ctx, (size_t)m->d->variable_count + 1, sizeof *some);
    CRD_TRY(some ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(crd_dcp_master_add(s->master,
                               &(crd_dcp_slave_spec){.name = m->d->name,
                                                     .description = m->d,
                                                     .control = *address,
                                                     .mode = s->mode,
                                                     .numerator = m->setup.numerator,
                                                     .denominator = m->setup.denominator},
                               &index));
    CRD_TRY(model_run_set_parameters(self, s));
    CRD_TRY(crd_dcp_master_feed(s->master, 0, some, collect_variables(m, CRD_INPUT, false, some)));
    CRD_TRY(
        crd_dcp_master_watch(s->master, 0, some, collect_variables(m, CRD_OUTPUT, false, some), 0));
    const int count = collect_variables(m, CRD_PARAMETER, true, some);
    s->tunables = -1;
    if (count) { CRD_TRY(crd_dcp_master_tunable(s->master, 0, some, count, &s->tunables)); }
fail:
    crd_free(s->ctx, some);
    return st;
}

static crd_status configure_session(void* self, crdi_dcp_session* s)
{
    crd_status st = CRD_OK;
    const crdi_dcp_model_self* own = self;
    crd_dcp_address address;
    if (!own->address[0]) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "dcp.address is empty, expected where the slave is, as in "
                         "udp://127.0.0.1:8080");
    }
    CRD_TRY(crd_dcp_address_parse(s->ctx, own->address, &address));
    CRD_TRY(check_transport(s, &address));
    crd_dcp_master_options opt = crd_dcp_master_defaults();
    opt.notice = notice;
    opt.user = s;
    CRD_TRY(crd_dcp_net_create(s->ctx, &s->net));
    CRD_TRY(crd_dcp_master_create(s->ctx, s->net, &opt, &s->master));
    CRD_TRY(plan_session(self, s, &address));
    CRD_TRY(crd_dcp_master_configure(s->master));
    s->resolution = crd_dcp_master_resolution(s->master, 0);
fail:
    return st;
}

// ---- life --------------------------------------------------------------------------------------

static void destroy_session(crdi_dcp_session* s)
{
    if (!s) { return; }
    crd_context* ctx = s->ctx;
    crd_dcp_master_destroy(s->master);
    crd_dcp_net_destroy(s->net);
    crd_free(ctx, s);
    crd_context_destroy(ctx);
}

void crdi_dcp_model_clear(void* self)
{
    crdi_dcp_model_self* own = self;
    if (own->session && own->session->master) { (void)crd_dcp_master_stop(own->session->master); }
    destroy_session(own->session);
    own->session = NULL;
}

// The mirror as the slave is by itself: with the start values.
static void reset_mirror(void* self, const crdi_dcp_model* m)
{
    char* mirror = (char*)self + m->mirror;
    memset(mirror, 0, m->mirror);
    crd_model_reset(&m->base, mirror);
    memcpy(mirror, self, sizeof(crdi_dcp_model_self)); // dcp.address and dcp.mode are ours
}

static crd_model_status open_session(void* self, const crd_model_host* host)
{
    crdi_dcp_model_self* own = self;
    const crdi_dcp_model* m = host->model->user;
    crdi_dcp_model_clear(self);
    reset_mirror(self, m);
    crd_context* ctx = crdi_context_child(m->ctx);
    crdi_dcp_session* s = ctx ? crdi_new(ctx, sizeof *s) : NULL;
    if (!s) {
        crd_context_destroy(ctx);
        return log_error(host, "out of memory: the session with the slave");
    }
    *s = (crdi_dcp_session){
        .ctx = ctx, .model = m, .host = host, .mode = m->modes[own->mode == 2], .tunables = -1};
    own->session = s;
    const crd_model_status st = log_failure(s, host, configure_session(self, s));
    s->host = NULL;
    if (st != CRD_MODEL_OK) { crdi_dcp_model_clear(self); }
    return st;
}

crd_model_status crdi_dcp_model_initialize(void* self, const crd_model_host* host, double t)
{
    (void)t;
    crdi_dcp_model_self* own = self;
    const crdi_dcp_model* m = host->model->user;
    const bool other =
        own->session && (any_changed(self, m, false, false) || any_changed(self, m, true, false));
    if (!own->session || own->session->running || other) {
        const crd_model_status st = open_session(self, host);
        if (st != CRD_MODEL_OK) { return st; }
    }
    crdi_dcp_session* s = own->session;
    s->host = host;
    move_causality(self, s, CRD_INPUT);
    const crd_model_status st = log_failure(s, host, crd_dcp_master_initialize(s->master, 0));
    if (st == CRD_MODEL_OK) { move_causality(self, s, CRD_OUTPUT); }
    s->host = NULL;
    return st;
}

// They came with the step, or with the initialisation.
void crdi_dcp_model_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

// ---- steps -------------------------------------------------------------------------------------

static crd_status step_nrt(crdi_dcp_session* s, uint32_t steps)
{
    const crd_dcp_description* d = s->model->d;
    const uint32_t most = d->nrt_fixed_steps ? d->nrt_default_steps : d->nrt_max_steps;
    crd_status st = CRD_OK;
    while (steps > 0) {
        const uint32_t part = most > 0 && steps > most ? most : steps;
        CRD_TRY(crd_dcp_master_begin_step(s->master, 0, part));
        CRD_TRY(crd_dcp_master_end_step(s->master, 0));
        steps -= part;
    }
fail:
    return st;
}

static crd_status step_srt(crdi_dcp_session* s, double end)
{
    crd_status st = CRD_OK;
    CRD_TRY(crd_dcp_master_send(s->master, 0));
    const double until = s->start + (end - s->begin);
    const double behind = crd_dcp_master_now(s->master) - until;
    if (behind > s->resolution && s->late++ == 0 && s->host) {
        char text[200];
        snprintf(text, sizeof text,
                 "the simulation is slower than the wall clock: the step to %.10g s ends %.3g s "
                 "late (said once)",
                 end, behind);
        s->host->log(s->host->user, CRD_MODEL_WARNING, text);
    }
    st = crd_dcp_master_wait(s->master, until);
fail:
    return st;
}

static crd_status advance_session(void* self, crdi_dcp_session* s, double t, double h)
{
    crd_status st = CRD_OK;
    const double n = round(h / s->resolution);
    if (!(n >= 1) || n > UINT32_MAX || fabs(n * s->resolution - h) > 1e-6 * s->resolution) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "a communication step of %.10g s is not a multiple of the slave's time "
                         "resolution of %.10g s",
                         h, s->resolution);
    }
    move_causality(self, s, CRD_INPUT);
    if (!s->running) {
        s->begin = t;
        CRD_TRY(crd_dcp_master_run(s->master, 0, &s->start));
        s->running = true;
    }
    if (s->tunables >= 0 && any_changed(self, s->model, true, true)) {
        move_causality(self, s, CRD_PARAMETER);
        CRD_TRY(crd_dcp_master_tune(s->master, 0, s->tunables));
    }
    CRD_TRY(s->mode == CRD_DCP_NRT ? step_nrt(s, (uint32_t)n) : step_srt(s, t + h));
    move_causality(self, s, CRD_OUTPUT);
fail:
    return st;
}

crd_model_status crdi_dcp_model_step(void* self, const crd_model_host* host, double t, double h,
                                     double* reached)
{
    (void)reached;
    crdi_dcp_session* s = ((crdi_dcp_model_self*)self)->session;
    if (!s) { return log_error(host, "there is no session with the slave"); }
    s->host = host;
    const crd_model_status st = log_failure(s, host, advance_session(self, s, t, h));
    s->host = NULL;
    return st;
}

crd_model_status crdi_dcp_model_terminate(void* self, const crd_model_host* host)
{
    crdi_dcp_session* s = ((crdi_dcp_model_self*)self)->session;
    if (!s) { return CRD_MODEL_OK; }
    s->host = host;
    const crd_status st = crd_dcp_master_stop(s->master);
    s->host = NULL;
    if (st < 0) { host->log(host->user, CRD_MODEL_WARNING, crd_error_text(s->ctx)); }
    destroy_session(s);
    ((crdi_dcp_model_self*)self)->session = NULL;
    return st < 0 ? CRD_MODEL_WARNING : CRD_MODEL_OK;
}
