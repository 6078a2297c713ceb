// Elements as JSON: what crd_element_parse makes the same element of again.
#include "coupling/describe.h"
#include "shared/base.h"

#include <string.h>

typedef struct writer {
    crd_text* out;
    bool started; // a member stands there already
} writer;

static void put_key(writer* w, const char* key)
{
    crdi_text_add(w->out, w->started ? ", \"%s\": " : "\"%s\": ", key);
    w->started = true;
}

static void put_int(writer* w, const char* key, int x)
{
    put_key(w, key);
    crdi_text_add(w->out, "%d", x);
}

static void put_number(writer* w, const char* key, double x)
{
    put_key(w, key);
    crdi_text_json_number(w->out, x);
}

static void put_text(writer* w, const char* key, const char* text)
{
    put_key(w, key);
    crdi_text_json(w->out, text);
}

static void put_numbers(crd_text* out, const double* x, int count)
{
    crdi_text_put(out, "[", 1);
    for (int i = 0; i < count; i++) {
        if (i) { crdi_text_put(out, ", ", 2); }
        crdi_text_json_number(out, x[i]);
    }
    crdi_text_put(out, "]", 1);
}

static void put_list(writer* w, const char* key, const double* x, int count)
{
    put_key(w, key);
    put_numbers(w->out, x, count);
}

static void put_rows(writer* w, const char* key, const double* x, int rows, int columns)
{
    put_key(w, key);
    crdi_text_put(w->out, "[", 1);
    for (int i = 0; i < rows; i++) {
        if (i) { crdi_text_put(w->out, ", ", 2); }
        put_numbers(w->out, x + (size_t)i * (size_t)columns, columns);
    }
    crdi_text_put(w->out, "]", 1);
}

static void put_bands(writer* w, const crd_design* d)
{
    put_key(w, "bands");
    crdi_text_put(w->out, "[", 1);
    for (int i = 0; i < d->band_count; i++) {
        const double band[3] = {d->bands[i].low, d->bands[i].high, d->bands[i].power};
        if (i) { crdi_text_put(w->out, ", ", 2); }
        put_numbers(w->out, band, 3);
    }
    crdi_text_put(w->out, "]", 1);
}

static void put_design(writer* w, const crd_design* d, bool bands_given)
{
    const crdi_word word = (crdi_word)d->method;
    put_text(w, "algorithm", crdi_words[word]);
    if (crdi_element_has_key(word, "taps")) { put_int(w, "taps", d->taps); }
    if (crdi_element_has_key(word, "degree")) { put_int(w, "degree", d->degree); }
    if (word == CRDI_WORD_ERROR_SPACE) {
        put_int(w, "curve", d->curve);
        put_int(w, "errors", d->errors);
        put_int(w, "order", d->order);
        put_text(w, "distance", crdi_distances[d->distance]);
    }
    if (word == CRDI_WORD_WIENER) {
        if (bands_given) { put_bands(w, d); }
        put_number(w, "noise", d->noise);
    }
}

static void put_weights(writer* w, const crd_coupling_options* o)
{
    put_key(w, "weights");
    crdi_text_put(w->out, "[", 1);
    for (int i = 0; i < o->given_count; i++) {
        const crd_linear* l = &o->given[i];
        crdi_text_add(w->out, i ? ", {" : "{");
        writer inner = {w->out, false};
        put_int(&inner, "k", l->k);
        put_list(&inner, "a", l->a, l->m);
        if (l->A) { put_list(&inner, "A", l->A, l->m); }
        crdi_text_put(w->out, "}", 1);
    }
    crdi_text_put(w->out, "]", 1);
}

static void put_network(writer* w, const crd_network* n)
{
    put_key(w, "network");
    crdi_text_put(w->out, "{", 1);
    writer inner = {w->out, false};
    put_number(&inner, "alpha", n->alpha);
    put_rows(&inner, "W1", n->W1, n->n1, n->m);
    put_list(&inner, "b1", n->b1, n->n1);
    put_rows(&inner, "W2", n->W2, n->n2, n->n1);
    put_list(&inner, "b2", n->b2, n->n2);
    put_list(&inner, "W3", n->W3, n->n2);
    put_number(&inner, "b3", n->b3);
    crdi_text_put(w->out, "}", 1);
}

static void put_algorithm(writer* w, const crd_element* e)
{
    const crd_coupling_options* o = &e->options;
    const crdi_word word = crdi_word_of(o);
    if (o->algorithm == CRD_ALGORITHM_LINEAR) {
        put_design(w, &o->design, e->bands_given);
        return;
    }
    put_text(w, "algorithm", crdi_words[word]);
    if (o->any_gain && crdi_element_has_key(word, "any-gain")) {
        put_key(w, "any-gain");
        crdi_text_add(w->out, "true");
    }
    if (word == CRDI_WORD_LINEAR) { put_weights(w, o); }
    if (word == CRDI_WORD_NETWORK) { put_network(w, o->network); }
    if (word == CRDI_WORD_RIDGE || word == CRDI_WORD_RLS) {
        put_int(w, "taps", o->learning_taps);
        put_number(w, "window", o->learning_window);
    }
    if (word == CRDI_WORD_RIDGE) {
        put_number(w, "pull", o->learning_ridge);
        put_key(w, "towards");
        crdi_text_put(w->out, "{", 1);
        put_design(&(writer){w->out, false}, &o->design, e->bands_given);
        crdi_text_put(w->out, "}", 1);
    }
}

static void put_signals(writer* w, const crd_element* e)
{
    if (!e->signal_names) {
        if (e->signal_count != 1) { put_int(w, "signals", e->signal_count); }
        return;
    }
    put_key(w, "signals");
    for (int i = 0; i < e->signal_count; i++) {
        crdi_text_put(w->out, i ? ", " : "[", i ? 2 : 1);
        crdi_text_json(w->out, e->signal_names[i]);
    }
    crdi_text_put(w->out, "]", 1);
}

static void put_latency(writer* w, const crd_element* e)
{
    if (e->latency_steps >= 0) {
        put_int(w, "latency", e->latency_steps);
    } else if (isnan(e->latency)) {
        put_text(w, "latency", "measured");
    } else {
        put_key(w, "latency");
        crdi_text_put(w->out, "\"", 1);
        crdi_text_json_number(w->out, e->latency);
        crdi_text_add(w->out, " s\"");
    }
    put_int(w, "latency-max", e->options.k_max);
}

crd_status crd_element_write(const crd_element* e, crd_text* out)
{
    const crd_coupling_options* o = &e->options;
    writer w = {out, false};
    crdi_text_put(out, "{", 1);
    put_int(&w, "element", 1);
    if (e->name[0]) { put_text(&w, "name", e->name); }
    if (!isnan(e->step)) { put_number(&w, "step", e->step); }
    put_algorithm(&w, e);
    put_text(&w, "reconstruct", crdi_reconstructions[o->reconstruction]);
    put_text(&w, "detect", crdi_detections[o->detection]);
    if (o->threshold != 0) { put_number(&w, "threshold", o->threshold); }
    if (o->resolution != 0) { put_number(&w, "resolution", o->resolution); }
    put_text(&w, "react", crdi_reactions[o->reaction]);
    put_latency(&w, e);
    put_int(&w, "late", o->late);
    put_signals(&w, e);
    if (e->learn_server[0]) { put_text(&w, "learn", e->learn_server); }
    crdi_text_put(out, "}", 1);
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}
