// Cards that concern the whole netlist: .temp .options .tran .input .output
#include "circuit/netlist.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static crd_status netlist_controls_expected(const crdi_reading* r, const char* what)
{
    return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: \"%s\" where %s is expected",
                          crdi_word_clip(r->name).text, crdi_word_clip(crdi_scan_look(&r->s)).text,
                          what);
}

static crd_status at_end(crdi_reading* r)
{
    return crdi_scan_end(&r->s) ? CRD_OK : netlist_controls_expected(r, "the end of the line");
}

static crd_status celsius(crdi_reading* r, double* kelvin)
{
    double value;
    const crd_status st = crdi_value(r, false, "a temperature", &value);
    if (st < 0) { return st; }
    if (!(value > -273.15) || !(value < 1e5)) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s: %g degrees Celsius, expected > -273.15",
                              crdi_word_clip(r->name).text, value);
    }
    *kelvin = value + 273.15;
    return CRD_OK;
}

static crd_status netlist_controls_options(crdi_reading* r)
{
    crd_status st = CRD_OK;
    while (!crdi_scan_end(&r->s)) {
        crdi_word key;
        char text[CRDI_NAME_MOST + 1];
        const bool valued = crdi_key(&r->s, &key);
        if (!valued) { key = crdi_scan_word(&r->s); }
        if (!key.n) { return netlist_controls_expected(r, "an option"); }
        if (valued && crdi_word_is(key, "temp")) {
            CRD_TRY(celsius(r, &r->p->n->temperature));
        } else if (valued && crdi_word_is(key, "tnom")) {
            CRD_TRY(celsius(r, &r->p->nominal));
        } else if (valued && crdi_word_is(key, "gmin")) {
            CRD_TRY(crdi_value(r, false, "gmin", &r->p->gmin));
            if (!(r->p->gmin >= 0 && r->p->gmin < 1)) {
                return crdi_scan_fail(&r->s, CRD_E_RANGE, "gmin = %g S, expected >= 0 and small",
                                      r->p->gmin);
            }
        } else {
            double unused;
            const char c = valued ? crdi_scan_peek(&r->s) : 0;
            if (c == '{' || c == '\'') {
                CRD_TRY(crdi_value(r, false, "an option", &unused));
            } else if (valued && !crdi_scan_word(&r->s).n) {
                return netlist_controls_expected(r, "the value of an option");
            }
            if (crdi_word_fold(key, text)) {
                crdi_netlist_note(r->p, &r->s, text, "(.options) is not used here");
            }
        }
        (void)crdi_scan_take(&r->s, ',');
    }
fail:
    return st;
}

// LTspice leaves the step to the simulator: .tran stop, or .tran 0 stop [start [longest]]
static void choose_step(crdi_reading* r, int count, double v[4])
{
    char how[120];
    if (count == 1) {
        v[1] = v[0];
        v[0] = 0;
    }
    if (v[0] != 0 || !(v[1] > 0)) { return; }
    v[0] = v[3] > 0 ? v[3] : v[1] / 1000;
    snprintf(how, sizeof how, "names no step: %.6g s, %s, is taken", v[0],
             v[3] > 0 ? "the longest" : "a thousandth of the run");
    crdi_netlist_note(r->p, &r->s, ".tran", how);
}

static crd_status transient(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_netlist* n = r->p->n;
    double v[4] = {(double)NAN, (double)NAN, 0, 0};
    int count = 0;
    if (!isnan(n->tran_stop)) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, ".tran is there twice");
    }
    while (!crdi_scan_end(&r->s)) {
        crdi_scan ahead = r->s;
        if (crdi_word_is(crdi_scan_word(&ahead), "uic")) {
            r->s = ahead;
            n->uic = true;
            break;
        }
        if (count == 4) { return netlist_controls_expected(r, "uic or the end of the line"); }
        CRD_TRY(crdi_value(r, false, "a time", &v[count]));
        count++;
    }
    CRD_TRY(at_end(r));
    if (count == 0) { return netlist_controls_expected(r, "step and stop"); }
    choose_step(r, count, v);
    if (!(v[0] > 0) || !(v[1] > 0)) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE,
                              ".tran: step %g s, stop %g s; both have to be > 0", v[0], v[1]);
    }
    if (!(v[2] >= 0 && v[2] < v[1]) || !(v[3] >= 0)) {
        return crdi_scan_fail(
            &r->s, CRD_E_RANGE,
            ".tran: start %g s, longest step %g s; expected a start from 0 to stop, "
            "%g s, and a step > 0",
            v[2], v[3], v[1]);
    }
    n->tran_step = v[0];
    n->tran_stop = v[1];
    n->tran_start = v[2];
    n->tran_largest = v[3];
fail:
    return st;
}

// unit=word or unit="word"
static crd_status unit(crdi_reading* r, const char** out)
{
    crdi_word w;
    if (crdi_scan_take(&r->s, '"')) {
        w.p = r->s.p;
        while (r->s.p < r->s.end && *r->s.p != '"' && *r->s.p != '\n') {
            r->s.p++;
        }
        w.n = (size_t)(r->s.p - w.p);
        if (!crdi_scan_take(&r->s, '"')) { return netlist_controls_expected(r, "the closing \""); }
    } else {
        w = crdi_scan_word(&r->s);
    }
    const char* text = crdi_arena_text(&r->p->n->arena, w.p, w.n);
    crd_dimension d;
    if (!text) { return CRD_E_MEMORY; }
    if (!crd_dimension_parse(text, &d)) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s: there is no unit \"%s\"",
                              crdi_word_clip(r->name).text, crdi_word_clip(w).text);
    }
    *out = text;
    return CRD_OK;
}

// .input name [source=part] [unit=u] [start=x]
static crd_status input(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crdi_parser* p = r->p;
    crdi_netlist* o = p->out;
    crd_circuit_input in = {.unit = "", .start = (double)NAN, .part = -1};
    char text[CRDI_NAME_MOST + 1];
    crdi_word key;
    bool fresh = false;
    const crdi_word name = crdi_scan_word(&r->s);
    if (!name.n || !crdi_word_fold(name, text)) { return netlist_controls_expected(r, "a name"); }
    while (crdi_key(&r->s, &key)) {
        if (crdi_word_is(key, "unit")) {
            CRD_TRY(unit(r, &in.unit));
        } else if (crdi_word_is(key, "start")) {
            CRD_TRY(crdi_value(r, false, "a start", &in.start));
        } else if (crdi_word_is(key, "source")) {
            CRD_TRY(crdi_mention(r, crdi_scan_word(&r->s), &in.part));
        } else {
            return crdi_scan_fail(&r->s, CRD_E_FORMAT,
                                  ".input %s: \"%s=\"; the words are source, unit and start",
                                  crdi_word_clip(name).text, crdi_word_clip(key).text);
        }
    }
    CRD_TRY(at_end(r));
    if (crdi_map_find(&p->scopes[0].param_map, text) >= 0) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, ".input %s: there is a parameter of this name",
                              crdi_word_clip(name).text);
    }
    const char* folded = crdi_arena_text(&p->work, text, name.n);
    in.name = crdi_arena_text(&o->n.arena, name.p, name.n);
    if (!folded || !in.name) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_map_add(&p->input_map, folded, o->n.input_count, &fresh));
    if (!fresh) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, ".input %s is there twice",
                              crdi_word_clip(name).text);
    }
    const size_t count = (size_t)o->n.input_count;
    crd_circuit_input* list =
        crdi_grow(p->ctx, o->inputs, &o->input_capacity, count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    o->inputs = list;
    list[count] = in;
    o->n.input_count++;
fail:
    return st;
}

static const char* default_unit(crdi_word w)
{
    static const char* const units[][2] = {{"v", "V"}, {"i", "A"}, {"t", "K"}, {"q", "W"}};
    for (int i = 0; i < 4; i++) {
        if (w.n > 2 && w.p[1] == '(' && crdi_word_is((crdi_word){w.p, 1}, units[i][0]) &&
            w.p[w.n - 1] == ')' && !memchr(w.p, ')', w.n - 1)) {
            return units[i][1];
        }
    }
    return "";
}

// [name =] expression [unit=u]; without a name it is the expression's text
static crd_status output(crdi_reading* r, crd_map* names)
{
    crd_status st = CRD_OK;
    crdi_netlist* o = r->p->out;
    crd_circuit_output out = {0};
    crd_expression* e;
    crdi_word name, key;
    double value;
    bool fresh = false;
    const bool named = crdi_key(&r->s, &name);
    crdi_scan_space(&r->s);
    const char* first = r->s.p;
    CRD_TRY(crdi_value_or_law(r, true, true, &value, &e));
    crdi_word text = {first, (size_t)(r->s.p - first)};
    while (text.n && strchr(" \t\r", text.p[text.n - 1])) {
        text.n--;
    }
    if (!named) { name = text; }
    if (name.n > CRDI_NAME_MOST || memchr(name.p, '\n', name.n)) {
        return netlist_controls_expected(r, "a name in front of a long expression");
    }
    out.unit = default_unit(text);
    crdi_scan before = r->s;
    if (crdi_key(&r->s, &key)) {
        if (crdi_word_is(key, "unit")) {
            CRD_TRY(unit(r, &out.unit));
        } else {
            r->s = before; // the next output
        }
    }
    (void)crdi_scan_take(&r->s, ',');
    out.name = crdi_arena_text(&o->n.arena, name.p, name.n);
    if (!out.name) { return CRD_E_MEMORY; }
    out.what = e;
    CRD_TRY(crdi_map_add(names, out.name, 1, &fresh));
    if (!fresh) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, ".output %s is there twice",
                              crdi_word_clip(name).text);
    }
    const size_t count = (size_t)o->n.output_count;
    crd_circuit_output* list =
        crdi_grow(r->p->ctx, o->outputs, &o->output_capacity, count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    o->outputs = list;
    list[count] = out;
    o->n.output_count++;
fail:
    return st;
}

static crdi_reading netlist_controls_begin(crdi_parser* p, crdi_env* root, int i)
{
    const crdi_card* card = &p->cards[p->controls[i]];
    crdi_reading r = {.p = p, .env = root, .card = card, .s = crdi_card_scan(p, card)};
    r.name = crdi_scan_word(&r.s);
    return r;
}

crd_status crdi_controls_early(crdi_parser* p, crdi_env* root)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < p->control_count; i++) { // first: expressions may use temp
        crdi_reading r = netlist_controls_begin(p, root, i);
        if (crdi_word_is(r.name, ".temp")) {
            CRD_TRY(celsius(&r, &p->n->temperature));
            CRD_TRY(at_end(&r));
        } else if (crdi_word_is(r.name, ".options") || crdi_word_is(r.name, ".option") ||
                   crdi_word_is(r.name, ".opt")) {
            CRD_TRY(netlist_controls_options(&r));
        }
    }
    CRD_TRY(crdi_env_params(p, root));
    for (int i = 0; i < p->control_count; i++) {
        crdi_reading r = netlist_controls_begin(p, root, i);
        if (crdi_word_is(r.name, ".tran")) { CRD_TRY(transient(&r)); }
        if (crdi_word_is(r.name, ".input")) { CRD_TRY(input(&r)); }
    }
fail:
    return st;
}

crd_status crdi_controls_late(crdi_parser* p, crdi_env* root)
{
    crd_status st = CRD_OK;
    crd_map names;
    crdi_map_init(&names, p->ctx);
    for (int i = 0; i < p->control_count; i++) {
        crdi_reading r = netlist_controls_begin(p, root, i);
        if (!crdi_word_is(r.name, ".output")) { continue; }
        if (crdi_scan_end(&r.s)) {
            st = netlist_controls_expected(&r, "v(node), i(part) or name=expression");
            goto fail;
        }
        while (!crdi_scan_end(&r.s)) {
            CRD_TRY(output(&r, &names));
        }
    }
fail:
    crdi_map_clear(&names);
    return st;
}
