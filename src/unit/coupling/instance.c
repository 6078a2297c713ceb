// One instance of the coupling model.
//
// A step of the importer is a micro step; a macro step begins with a new sample. A sample is new
// when its stamp or number is another one, or, if the signal has neither, when a macro step has
// passed since the last. It counts from the moment at which it is set: outputs that are asked for
// before the step have seen it. As an importer may set other values then, such a sample is only
// tried, and the step, which knows better, confirms it or puts another in its place. Commands are
// taken at each macro step since the start, before the sample that may come with them.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/coupling/coupling_model.h"

static const double GRID_TOLERANCE = 1e-6; // of a macro step: times are rounded

static double* reals(crdi_coupling_self* s, size_t at)
{
    return (double*)((char*)s + at);
}

static int32_t* integers(crdi_coupling_self* s, size_t at)
{
    return (int32_t*)((char*)s + at);
}

static crdi_place* instance_place_of(crdi_coupling_self* s, int i)
{
    const crdi_coupling_places* at = &s->model->at;
    return (crdi_place*)((char*)s + at->live + (size_t)i * at->room);
}

static size_t instance_input_bytes(const crdi_coupling_self* s)
{
    return (size_t)(s->model->n + s->model->commands) * sizeof(double);
}

// ---- life --------------------------------------------------------------------------------------

void crdi_coupling_clear(void* self)
{
    crdi_coupling_self* s = self;
    for (int i = 0; i < s->client_count; i++) {
        crd_learn_client_destroy(s->clients[i]);
    }
    if (s->line) { crd_free(s->line, s->clients); }
    crd_context_destroy(s->line);
    s->line = NULL;
    s->clients = NULL;
    s->client_count = 0;
}

static crd_model_status instance_refuse(const crd_model_host* host, const char* text)
{
    host->log(host->user, CRD_MODEL_ERROR, text);
    return CRD_MODEL_ERROR;
}

static const char* instance_name_of(const crdi_coupling_model* m, int i, char buffer[64])
{
    if (m->element->signal_names) { return m->element->signal_names[i]; }
    if (m->n == 1) { return m->base.name; }
    snprintf(buffer, 64, "%.40s[%d]", m->base.name, i + 1);
    return buffer;
}

// The lines to the learning server: nothing is connected yet.
static crd_model_status open_lines(crdi_coupling_self* s, const crd_model_host* host)
{
    const crdi_coupling_model* m = s->model;
    if (!s->learn_server[0]) { return CRD_MODEL_OK; }
    s->line = crdi_context_child(m->ctx);
    s->clients = s->line ? crdi_new_array(s->line, (size_t)m->n, sizeof(crd_learn_client*)) : NULL;
    if (!s->clients) {
        return instance_refuse(host, "out of memory: the lines to the learning server");
    }
    s->client_count = m->n;
    for (int i = 0; i < m->n; i++) {
        char buffer[64];
        if (crd_learn_client_create(s->line, s->learn_server, instance_name_of(m, i, buffer),
                                    s->macro_step, instance_place_of(s, i)->element,
                                    &s->clients[i]) < 0) {
            char text[600];
            snprintf(text, sizeof text, "learn_server: %s", crd_error_text(s->line));
            return instance_refuse(host, text);
        }
    }
    return CRD_MODEL_OK;
}

// What is known of a signal before its first sample.
static double start_value(crdi_coupling_self* s, int i)
{
    const double u = reals(s, s->model->at.u)[i];
    return fabs(u) <= 1e250 ? u : 0; // larger ones, and NaN, are no measurement for the element
}

static crd_model_status create_elements(crdi_coupling_self* s, const crd_model_host* host)
{
    const crdi_coupling_model* m = s->model;
    crd_coupling_options opt;
    if (crd_element_options(m->element, s->macro_step, &opt) < 0) {
        return instance_refuse(host, crd_error_text(m->element->ctx));
    }
    if (s->latency > opt.k_max) {
        char text[200];
        snprintf(
            text, sizeof text,
            "latency = %g macro steps, expected at most %d, which is latency-max of the element",
            s->latency, opt.k_max);
        return instance_refuse(host, text);
    }
    if (!(s->command_delay >= 0 && s->command_delay <= opt.k_max * s->macro_step)) {
        char text[200];
        snprintf(text, sizeof text,
                 "command_delay = %g s, expected 0 to %g s, which is latency-max of the element",
                 s->command_delay, opt.k_max * s->macro_step);
        return instance_refuse(host, text);
    }
    opt.start_time = s->start;
    opt.threshold = s->threshold;
    for (int i = 0; i < m->n; i++) {
        crdi_place* p = instance_place_of(s, i);
        opt.start_value = start_value(s, i);
        if (crdi_place_create(p, m->at.room, &opt) < 0) {
            return instance_refuse(host,
                                   p->ctx ? crd_error_text(p->ctx) : "out of memory: the element");
        }
    }
    return CRD_MODEL_OK;
}

static crd_model_status check_parameters(const crdi_coupling_self* s, const crd_model_host* host)
{
    char text[200];
    if (!(s->macro_step > 0) || !isfinite(s->macro_step)) {
        snprintf(text, sizeof text, "macro_step = %g, expected > 0", s->macro_step);
        return instance_refuse(host, text);
    }
    if (!(s->latency >= 0 || s->latency == -1) || s->latency > CRD_LATENCY_MAX) {
        snprintf(text, sizeof text,
                 "latency = %g, expected 0 to %d macro steps, or -1: from the time stamps",
                 s->latency, CRD_LATENCY_MAX);
        return instance_refuse(host, text);
    }
    return CRD_MODEL_OK;
}

crd_model_status crdi_coupling_initialize(void* self, const crd_model_host* host, double t)
{
    crdi_coupling_self* s = self;
    crd_model_status st = check_parameters(s, host);
    if (st != CRD_MODEL_OK) { return st; }
    crdi_coupling_clear(s);
    s->model = host->model->user;
    s->start = t;
    s->marks = (crdi_coupling_marks){.step = -1, .given = -1};
    s->settled = true;
    s->tried = false;
    st = create_elements(s, host);
    return st == CRD_MODEL_OK ? open_lines(s, host) : st;
}

// ---- samples -----------------------------------------------------------------------------------

static bool instance_same(const crdi_coupling_sample* a, const crdi_coupling_sample* b)
{
    return a->sequence == b->sequence &&
           (a->stamp == b->stamp || !(isfinite(a->stamp) || isfinite(b->stamp)));
}

// Is t in a later macro step than `*last`? Then it is the last one.
static bool instance_next_step(const crdi_coupling_self* s, double t, int64_t* last)
{
    const double steps = floor((t - s->start) / s->macro_step + GRID_TOLERANCE);
    if (!(steps > (double)*last)) { return false; }
    *last = steps < 1e18 ? (int64_t)steps : INT64_MAX;
    return true;
}

// Is there a sample at time t that has not been taken? Then the marks are set for it.
static bool instance_take(crdi_coupling_self* s, double t, crdi_coupling_sample* out)
{
    crdi_coupling_marks* m = &s->marks;
    if (s->latency < 0 && (isfinite(s->in.stamp) || s->in.sequence >= 0)) {
        if (m->stamped && instance_same(&m->newest, &s->in)) { return false; }
        m->stamped = true;
        m->newest = *out = s->in;
        return true;
    }
    if (s->latency < 0 && m->stamped) { return false; } // the stamps will come back
    if (!instance_next_step(s, t, &m->step)) { return false; }
    *out = (crdi_coupling_sample){t - fmax(s->latency, 0) * s->macro_step, -1};
    return true;
}

// Commands and the new sample, if there are any, as a trial that can be undone, or for good. true:
// there was a sample.
static bool receive(crdi_coupling_self* s, double t, bool trial, crdi_coupling_sample* x)
{
    const crdi_coupling_places* at = &s->model->at;
    const int n = s->model->n;
    const crdi_coupling_marks before = s->marks;
    char* bytes = (char*)s;
    const bool fresh = instance_take(s, t, x);
    const bool tell = s->model->commands > 0 && instance_next_step(s, t, &s->marks.given);
    if (!fresh && !tell) { return false; }
    if (trial) {
        memcpy(bytes + at->backup, bytes + at->live, (size_t)n * at->room);
        memcpy(bytes + at->tried_u, bytes + at->u, instance_input_bytes(s));
        s->before = before;
        s->tried_inputs = s->in;
        s->tried_sample = *x;
        s->tried_fresh = fresh;
        s->tried = true;
    }
    const bool first_mark = s->marks.stamped && !before.stamped;
    for (int i = 0; i < n; i++) {
        crd_coupling* c = instance_place_of(s, i)->element;
        if (first_mark) { crd_coupling_reset(c); } // what came before was of unknown age
        if (tell) { crd_coupling_command(c, reals(s, at->u) + n, t + s->command_delay); }
        if (fresh) { crd_coupling_push(c, reals(s, at->u)[i], x->stamp, x->sequence); }
    }
    return fresh;
}

static void undo_unless_confirmed(crdi_coupling_self* s)
{
    const crdi_coupling_places* at = &s->model->at;
    const size_t n = (size_t)s->model->n;
    char* bytes = (char*)s;
    if (!s->tried || (instance_same(&s->tried_inputs, &s->in) &&
                      memcmp(bytes + at->tried_u, bytes + at->u, instance_input_bytes(s)) == 0)) {
        return;
    }
    memcpy(bytes + at->live, bytes + at->backup, n * at->room);
    s->marks = s->before;
    s->tried = false;
}

// ---- outputs and steps -------------------------------------------------------------------------

static void show_counts(crdi_coupling_self* s, int i, const crd_coupling_counts* c)
{
    int32_t* out = integers(s, s->model->at.counters);
    for (int j = 0; j < CRDI_COUPLING_COUNTERS; j++) {
        const int64_t x = *(const int64_t*)((const char*)c + crdi_coupling_counters[j].offset);
        out[j * s->model->n + i] = x < INT32_MAX ? (int32_t)x : INT32_MAX;
    }
}

static void show_learning(crdi_coupling_self* s)
{
    int64_t networks = 0;
    s->learning = s->clients ? 2 + (int64_t)crd_learn_client_link(s->clients[0]) : 1;
    for (int i = 0; i < s->client_count; i++) {
        networks += crd_learn_client_get_counts(s->clients[i]).networks;
    }
    s->networks = networks < INT32_MAX ? (int32_t)networks : INT32_MAX;
}

static void show(crdi_coupling_self* s, double t)
{
    const crdi_coupling_places* at = &s->model->at;
    const bool initial = s->marks.step < 0 && !s->marks.stamped;
    for (int i = 0; i < s->model->n; i++) {
        crd_coupling* c = instance_place_of(s, i)->element;
        const double now = crd_coupling_eval(c, t);
        reals(s, at->y)[i] = initial ? start_value(s, i) : now;
        reals(s, at->slopes)[2 * i] = initial ? 0 : crd_coupling_slope(c, t);
        const crd_coupling_state state = crd_coupling_get_state(c);
        const crd_coupling_counts counts = crd_coupling_get_counts(c);
        integers(s, at->k)[i] = state.k;
        ((bool*)((char*)s + at->jump))[i] = state.jump;
        ((int64_t*)((char*)s + at->active))[i] = 1 + (int64_t)state.active;
        show_counts(s, i, &counts);
    }
    show_learning(s);
}

void crdi_coupling_outputs(void* self, double t)
{
    crdi_coupling_self* s = self;
    if (!s->settled) {
        crdi_coupling_sample x;
        undo_unless_confirmed(s);
        if (!s->tried) { (void)receive(s, t, true, &x); }
    }
    s->settled = false;
    show(s, t);
}

crd_model_status crdi_coupling_step(void* self, const crd_model_host* host, double t, double h,
                                    double* reached)
{
    (void)host;
    (void)h;
    (void)reached;
    crdi_coupling_self* s = self;
    undo_unless_confirmed(s);
    crdi_coupling_sample x = s->tried_sample;
    const bool fresh = s->tried ? s->tried_fresh : receive(s, t, false, &x);
    for (int i = 0; fresh && i < s->model->n; i++) {
        // The server learns of the latency with which the outputs were asked for.
        if (s->clients) {
            crd_learn_client_step(s->clients[i], reals(s, s->model->at.u)[i], x.stamp, t);
        }
        // The new curve begins here, whether somebody asks for its value or not.
        (void)crd_coupling_eval(instance_place_of(s, i)->element, t);
    }
    s->tried = false;
    s->settled = true; // what follows is the outputs at the end of this step
    return CRD_MODEL_OK;
}
