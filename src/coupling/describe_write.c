// Elements as JSON: what crd_element_parse makes the same element of again.
#include "coupling/algorithm.h"
#include "shared/base.h"

#include <string.h>

void crdi_element_put_key(crdi_element_writer* w, const char* key)
{
    crdi_text_add(w->out, w->started ? ", \"%s\": " : "\"%s\": ", key);
    w->started = true;
}

void crdi_element_put_int(crdi_element_writer* w, const char* key, int x)
{
    crdi_element_put_key(w, key);
    crdi_text_add(w->out, "%d", x);
}

void crdi_element_put_number(crdi_element_writer* w, const char* key, double x)
{
    crdi_element_put_key(w, key);
    crdi_text_json_number(w->out, x);
}

void crdi_element_put_text(crdi_element_writer* w, const char* key, const char* text)
{
    crdi_element_put_key(w, key);
    crdi_text_json(w->out, text);
}

static void describe_write_put_numbers(crd_text* out, const double* x, int count)
{
    crdi_text_put(out, "[", 1);
    for (int i = 0; i < count; i++) {
        if (i) { crdi_text_put(out, ", ", 2); }
        crdi_text_json_number(out, x[i]);
    }
    crdi_text_put(out, "]", 1);
}

void crdi_element_put_list(crdi_element_writer* w, const char* key, const double* x, int count)
{
    crdi_element_put_key(w, key);
    describe_write_put_numbers(w->out, x, count);
}

void crdi_element_put_rows(crdi_element_writer* w, const char* key, const double* x, int rows,
                           int columns)
{
    crdi_element_put_key(w, key);
    crdi_text_put(w->out, "[", 1);
    for (int i = 0; i < rows; i++) {
        if (i) { crdi_text_put(w->out, ", ", 2); }
        describe_write_put_numbers(w->out, x + (size_t)i * (size_t)columns, columns);
    }
    crdi_text_put(w->out, "]", 1);
}

static void put_own_key(crdi_element_writer* w, const crdi_element_option* k, const crd_element* e)
{
    const void* at = (const char*)e + k->offset;
    switch (k->type) {
    case CRDI_ELEMENT_INT:
        crdi_element_put_int(w, k->name, *(const int*)at);
        break;
    case CRDI_ELEMENT_NUMBER:
    case CRDI_ELEMENT_TIME:
        crdi_element_put_number(w, k->name, *(const double*)at);
        break;
    case CRDI_ELEMENT_CHOICE:
        crdi_element_put_text(w, k->name, k->choices[*(const int*)at]);
        break;
    case CRDI_ELEMENT_BOOL:
        if (!*(const bool*)at) { break; }
        crdi_element_put_key(w, k->name);
        crdi_text_add(w->out, "true");
        break;
    case CRDI_ELEMENT_OWN:
        if (k->write) { k->write(w, e); }
        break;
    }
}

void crdi_element_write_gain_limit(crdi_element_writer* w, const crd_element* e)
{
    const double limit = e->options.gain_limit;
    if (limit > 0) { crdi_element_put_number(w, "gain-limit", limit); }
}

void crdi_element_put_algorithm(crdi_element_writer* w, const crdi_algorithm* a,
                                const crd_element* e)
{
    crdi_element_put_text(w, "algorithm", a->name);
    for (const crdi_element_option* k = a->keys; k && k->name; k++) {
        put_own_key(w, k, e);
    }
}

void crdi_element_put_names(crdi_element_writer* w, const char* key, const char* const* names,
                            int count)
{
    crdi_element_put_key(w, key);
    for (int i = 0; i < count; i++) {
        crdi_text_put(w->out, i ? ", " : "[", i ? 2 : 1);
        crdi_text_json(w->out, names[i]);
    }
    crdi_text_put(w->out, "]", 1);
}

static void describe_write_put_signals(crdi_element_writer* w, const crd_element* e)
{
    if (e->signal_names) {
        crdi_element_put_names(w, "signals", e->signal_names, e->signal_count);
    } else if (e->signal_count != 1) {
        crdi_element_put_int(w, "signals", e->signal_count);
    }
}

static void put_latency(crdi_element_writer* w, const crd_element* e)
{
    if (e->latency_steps >= 0) {
        crdi_element_put_int(w, "latency", e->latency_steps);
    } else if (isnan(e->latency)) {
        crdi_element_put_text(w, "latency", "measured");
    } else {
        crdi_element_put_key(w, "latency");
        crdi_text_put(w->out, "\"", 1);
        crdi_text_json_number(w->out, e->latency);
        crdi_text_add(w->out, " s\"");
    }
    crdi_element_put_int(w, "latency-max", e->options.k_max);
}

crd_status crd_element_write(const crd_element* e, crd_text* out)
{
    const crd_coupling_options* o = &e->options;
    crdi_element_writer w = {out, false};
    crdi_text_put(out, "{", 1);
    crdi_element_put_int(&w, "element", 1);
    if (e->name[0]) { crdi_element_put_text(&w, "name", e->name); }
    if (!isnan(e->step)) { crdi_element_put_number(&w, "step", e->step); }
    crdi_element_put_algorithm(&w, crdi_algorithm_of(o), e);
    crdi_element_put_text(&w, "reconstruct", crdi_reconstructions[o->reconstruction]);
    crdi_element_put_text(&w, "detect", crdi_detections[o->detection]);
    if (o->detect_window != CRD_DETECT_WINDOW) {
        crdi_element_put_int(&w, "detect-window", o->detect_window);
    }
    if (o->detect_low != 0 || o->detect_high != 1) {
        crdi_element_put_list(&w, "detect-band", (double[]){o->detect_low, o->detect_high}, 2);
    }
    if (o->threshold != 0) { crdi_element_put_number(&w, "threshold", o->threshold); }
    if (o->resolution != 0) { crdi_element_put_number(&w, "resolution", o->resolution); }
    crdi_element_put_text(&w, "react", crdi_reactions[o->reaction]);
    put_latency(&w, e);
    crdi_element_put_int(&w, "late", o->late);
    describe_write_put_signals(&w, e);
    if (e->learn_server[0]) { crdi_element_put_text(&w, "learn", e->learn_server); }
    crdi_text_put(out, "}", 1);
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}
