// One card, one part: what the kinds of parts (parts/) read from it, and who reads it.
#include "circuit/netlist.h"

#include <math.h>
#include <string.h>

enum { ELECTRIC = 1, THERMAL = 2 };

crd_status crdi_part_expected(const crdi_reading* r, const char* what)
{
    return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: \"%s\" where %s is expected",
                          crdi_word_clip(r->name).text, crdi_word_clip(crdi_scan_look(&r->s)).text,
                          what);
}

crd_status crdi_part_end(crdi_reading* r)
{
    if (crdi_scan_end(&r->s)) { return CRD_OK; }
    return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: \"%s\" is not understood here",
                          crdi_word_clip(r->name).text, crdi_word_clip(crdi_scan_look(&r->s)).text);
}

crd_status crdi_part_unknown_key(const crdi_reading* r, crdi_word key)
{
    const bool series = crdi_word_is(key, "rser"), parallel = crdi_word_is(key, "rpar");
    return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED, "%s: \"%s=\" is not supported here%s%s",
                          crdi_word_clip(r->name).text, crdi_word_clip(key).text,
                          series || parallel ? "; write a resistor in " : "",
                          series     ? "series"
                          : parallel ? "parallel"
                                     : "");
}

crd_part crdi_part_start(const crdi_reading* r, crd_part_kind kind)
{
    return (crd_part){.kind = (uint8_t)kind,
                      .thermal = r->card->section >= 0,
                      .nodes = {-1, -1, -1, -1},
                      .refs = {-1, -1},
                      .index = -1,
                      .file = r->card->file,
                      .line = r->card->line};
}

// A node is in volts or in kelvins, not both.
static crd_status claim_node(crdi_reading* r, int32_t node, bool thermal)
{
    crdi_parser* p = r->p;
    const uint8_t mine = thermal ? THERMAL : ELECTRIC;
    if (node == 0 || p->node_domain[node] == mine) { return CRD_OK; }
    if (p->node_domain[node]) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT,
                              "%s: the node %s (line %d) is %s, and this part is %s",
                              crdi_word_clip(r->name).text, crdi_clip(p->out->nodes[node]).text,
                              p->node_at[node].line, thermal ? "electric" : "thermal",
                              thermal ? "thermal" : "electric");
    }
    p->node_domain[node] = mine;
    p->node_at[node] = (crdi_mark){r->card->file, r->card->line};
    return CRD_OK;
}

crd_status crdi_part_nodes(crdi_reading* r, crd_part* part, int count)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < count; i++) {
        crdi_word key;
        if (crdi_key(&r->s, &key)) {
            return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: \"%s=\" where a node is expected",
                                  crdi_word_clip(r->name).text, crdi_word_clip(key).text);
        }
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &part->nodes[i]));
        CRD_TRY(claim_node(r, part->nodes[i], part->thermal));
        (void)crdi_scan_take(&r->s, ',');
    }
fail:
    return st;
}

crd_status crdi_part_add(crdi_reading* r, crd_part* part)
{
    crd_status st = CRD_OK;
    crdi_parser* p = r->p;
    crdi_netlist* o = p->out;
    char name[CRDI_PATH_MOST + 1];
    size_t n;
    CRD_TRY(crdi_full_name(r, r->name, name, &n));
    if (p->n->part_count >= p->opt.max_parts) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "the netlist has more than %lld parts",
                              (long long)p->opt.max_parts);
    }
    if (o->names.length + n + 1 > INT32_MAX) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "the names of the parts take more than 2 GB");
    }
    const size_t count = (size_t)p->n->part_count;
    crd_part* list = crdi_grow(p->ctx, p->n->parts, &o->part_capacity, count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    p->n->parts = list;
    part->name = (int32_t)o->names.length;
    crdi_text_put(&o->names, name, n + 1);
    if (o->names.failed) { return CRD_E_MEMORY; }
    list[count] = *part;
    p->n->part_count++;
fail:
    return st;
}

// ---- values --------------------------------------------------------------------------------

// As in ngspice 0 Ohm are 1 mOhm, 0 F are nothing and 0 H a wire; what is negative belongs to
// equivalent networks. Heat knows none of that.
crd_status crdi_part_positive(const crdi_reading* r, const crd_part* part, const char* unit,
                              const char* at_zero)
{
    if (isfinite(part->value) && part->value > 0) { return CRD_OK; }
    if (!isfinite(part->value) || part->thermal) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s = %g %s, expected > 0",
                              crdi_word_clip(r->name).text, part->value, unit);
    }
    crdi_log(r->p->ctx, CRD_LOG_WARNING, "netlist %s:%d: %s = %g %s %s", r->s.file, r->s.line,
             crdi_word_clip(r->name).text, part->value, unit,
             part->value == 0 ? at_zero : "is negative: what is here may grow without bounds");
    return CRD_OK;
}

crd_status crdi_part_factors(crdi_reading* r, bool ic, bool tc, crdi_factors* f)
{
    crd_status st = CRD_OK;
    crdi_word key;
    *f = (crdi_factors){.m = 1};
    while (crdi_key(&r->s, &key)) {
        double* to = NULL;
        if (tc && crdi_word_is(key, "tc1")) { to = &f->tc1; }
        if (tc && crdi_word_is(key, "tc2")) { to = &f->tc2; }
        if (crdi_word_is(key, "m")) { to = &f->m; }
        if (ic && crdi_word_is(key, "ic")) {
            to = &f->ic;
            f->has_ic = true;
        }
        if (tc && crdi_word_is(key, "tc")) { // tc=tc1[,tc2]
            CRD_TRY(crdi_value(r, false, "it", &f->tc1));
            const char c = crdi_scan_take(&r->s, ',') ? '+' : crdi_scan_peek(&r->s);
            if (c && strchr("+-.0123456789{'", c)) { CRD_TRY(crdi_value(r, false, "it", &f->tc2)); }
            continue;
        }
        if (tc && crdi_word_is(key, "ac")) {
            double unused;
            CRD_TRY(crdi_value(r, false, "it", &unused));
            crdi_netlist_note(r->p, &r->s, "ac=", "of a resistor does not matter here");
            continue;
        }
        if (!to) { return crdi_part_unknown_key(r, key); }
        CRD_TRY(crdi_value(r, false, "it", to));
    }
    if (!(f->m > 0)) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s: m = %g, expected > 0",
                              crdi_word_clip(r->name).text, f->m);
    }
    CRD_TRY(crdi_part_end(r));
fail:
    return st;
}

// The value behind the nodes, or behind `key`=
crd_status crdi_part_amount(crdi_reading* r, const char* key, double* value, crd_expression** e)
{
    crd_status st = CRD_OK;
    crdi_scan before = r->s;
    crdi_word w;
    const bool keyed = crdi_key(&r->s, &w);
    if (keyed && !crdi_word_is(w, key)) {
        r->s = before;
        return crdi_part_expected(r, "a value");
    }
    before = r->s;
    st = crdi_value_or_law(r, keyed, false, value, e);
    if (st == CRD_E_FORMAT && !keyed) {
        char text[CRDI_NAME_MOST + 1];
        crdi_scan s = before;
        w = crdi_scan_word(&s);
        for (const crdi_env* v = r->env; w.n && v && crdi_word_fold(w, text); v = v->outer) {
            if (crdi_map_find(&r->p->scopes[v->scope].model_map, text) >= 0) {
                return crdi_scan_fail(&before, CRD_E_UNSUPPORTED,
                                      "%s: models of R, L and C (\"%s\") are not supported",
                                      crdi_word_clip(r->name).text, text);
            }
        }
    }
    return st;
}

crd_status crdi_part_constant(const crdi_reading* r, const crd_expression* e)
{
    if (!e) { return CRD_OK; }
    return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED, "%s: its value has to be a constant",
                          crdi_word_clip(r->name).text);
}

// Nodes, value and factors of a capacitor or an inductor
crd_status crdi_part_storage(crdi_reading* r, crd_part* part, const char* key, double* m)
{
    crd_status st = CRD_OK;
    crd_expression* e;
    crdi_factors f;
    CRD_TRY(crdi_part_nodes(r, part, 2));
    CRD_TRY(crdi_part_amount(r, key, &part->value, &e));
    CRD_TRY(crdi_part_constant(r, e));
    CRD_TRY(crdi_part_factors(r, true, false, &f));
    part->has_ic = f.has_ic;
    part->ic = f.ic;
    *m = f.m;
fail:
    return st;
}

// ---- sources -----------------------------------------------------------------------------------

static crd_status add_wave(crdi_reading* r, const crd_waveform* w, int32_t* index)
{
    crdi_netlist* o = r->p->out;
    const size_t count = (size_t)o->n.wave_count;
    crd_waveform* list = crdi_grow(r->p->ctx, o->waves, &o->wave_capacity, count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    o->waves = list;
    list[count] = *w;
    o->n.wave_count++;
    *index = (int32_t)count;
    return CRD_OK;
}

// What follows is the value of a source; one with a law becomes a B.
crd_status crdi_part_wave(crdi_reading* r, crd_part* part, bool laws)
{
    crd_status st = CRD_OK;
    crd_waveform wave;
    crd_expression* e = NULL;
    bool law = laws;
    CRD_TRY(crdi_source(r, &wave, &law, &e));
    CRD_TRY(crdi_part_end(r));
    if (e) {
        const bool voltage = part->kind == CRD_PART_VOLTAGE;
        part->kind = (uint8_t)(voltage ? CRD_PART_B_VOLTAGE : CRD_PART_B_CURRENT);
        CRD_TRY(crdi_expression_add(r, e, &part->index));
    } else {
        part->value = wave.kind == CRD_WAVE_DC ? wave.v[0] : 0;
        CRD_TRY(add_wave(r, &wave, &part->index));
    }
    CRD_TRY(crdi_part_add(r, part));
fail:
    return st;
}

// V=..., I=... or value=..., behind the '='
crd_status crdi_part_behaviour(crdi_reading* r, crd_part* part, bool voltage)
{
    crd_status st = CRD_OK;
    crd_expression* e;
    double value;
    CRD_TRY(crdi_value_or_law(r, true, false, &value, &e));
    CRD_TRY(crdi_part_end(r));
    if (e) {
        part->kind = (uint8_t)(voltage ? CRD_PART_B_VOLTAGE : CRD_PART_B_CURRENT);
        CRD_TRY(crdi_expression_add(r, e, &part->index));
    } else {
        const crd_waveform w = {.kind = CRD_WAVE_DC, .v = {value}};
        part->kind = (uint8_t)(voltage ? CRD_PART_VOLTAGE : CRD_PART_CURRENT);
        part->value = value;
        CRD_TRY(add_wave(r, &w, &part->index));
    }
    CRD_TRY(crdi_part_add(r, part));
fail:
    return st;
}

// ---- heat --------------------------------------------------------------------------------------

// start= of a capacity, or of its section; NAN without
crd_status crdi_part_start_temperature(crdi_reading* r, double* out)
{
    crd_status st = CRD_OK;
    crdi_word key;
    if (crdi_key(&r->s, &key)) {
        if (!crdi_word_is(key, "start")) { return crdi_part_unknown_key(r, key); }
        return crdi_value(r, false, "a temperature", out);
    }
    const crdi_card* section = &r->p->sections[r->card->section];
    crdi_reading q = {.p = r->p, .env = r->env, .card = section};
    q.s = crdi_card_scan(r->p, section);
    *out = (double)NAN;
    if (crdi_key(&q.s, &key)) { CRD_TRY(crdi_value(&q, false, "a temperature", out)); }
fail:
    return st;
}

crd_status crdi_part_check_kelvin(const crdi_reading* r, double kelvin)
{
    if (!(fabs(kelvin) > 1e5)) { return CRD_OK; }
    return crdi_scan_fail(&r->s, CRD_E_RANGE,
                          "%s: %g K; a K behind a number means a thousand, write it without",
                          crdi_word_clip(r->name).text, kelvin);
}

static crd_status thermal_card(crdi_reading* r)
{
    const crdi_word word = r->name;
    const crdi_part_kind* kind = NULL;
    for (int i = 0; i < CRDI_PART_KINDS && !kind; i++) {
        const char* own = crdi_part_kinds[i]->word;
        if (own && crdi_word_is(word, own)) { kind = crdi_part_kinds[i]; }
    }
    if (!kind) {
        return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED,
                              "\"%s\" inside .thermal; the words there are heat, resistance, "
                              "capacity and temperature",
                              crdi_word_clip(word).text);
    }
    r->name = crdi_scan_word(&r->s);
    if (!r->name.n) {
        r->name = word;
        return crdi_part_expected(r, "a name");
    }
    return kind->read_thermal(r);
}

// ---- .ic ---------------------------------------------------------------------------------------

static crd_status set_ic(crdi_reading* r, int32_t node, double value)
{
    crdi_parser* p = r->p;
    const size_t had = p->node_ic ? p->node_ic_capacity : 0, need = (size_t)p->n->node_count;
    double* list = crdi_grow(p->ctx, p->node_ic, &p->node_ic_capacity, need, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    p->node_ic = list;
    for (size_t i = had; i < p->node_ic_capacity; i++) {
        list[i] = (double)NAN;
    }
    list[node] = value;
    return CRD_OK;
}

static crd_status initial(crdi_reading* r)
{
    crd_status st = CRD_OK;
    if (crdi_scan_end(&r->s)) { return crdi_part_expected(r, "v(node)=value"); }
    while (!crdi_scan_end(&r->s)) {
        int32_t node;
        double value;
        const crdi_word v = crdi_scan_word(&r->s);
        const bool known = crdi_word_is(v, "v") || crdi_word_is(v, "t");
        if (!known || !crdi_scan_take(&r->s, '(')) {
            return crdi_part_expected(r, "v(node)=value");
        }
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &node));
        if (!crdi_scan_take(&r->s, ')')) { return crdi_part_expected(r, "')'"); }
        if (!crdi_scan_take(&r->s, '=')) { return crdi_part_expected(r, "'='"); }
        CRD_TRY(crdi_value(r, false, "a start", &value));
        if (node == 0) {
            return crdi_scan_fail(&r->s, CRD_E_RANGE, ".ic: ground has no start, it is 0");
        }
        CRD_TRY(set_ic(r, node, value));
    }
fail:
    return st;
}

static crd_status unknown_part(const crdi_reading* r)
{
    static const char* const names[26] = {['a' - 'a'] = "code models",
                                          ['j' - 'a'] = "JFETs",
                                          ['m' - 'a'] = "MOSFETs",
                                          ['n' - 'a'] = "Verilog-A devices",
                                          ['o' - 'a'] = "lossy lines",
                                          ['p' - 'a'] = "coupled lines",
                                          ['q' - 'a'] = "bipolar transistors",
                                          ['t' - 'a'] = "transmission lines",
                                          ['u' - 'a'] = "distributed RC lines",
                                          ['y' - 'a'] = "single lossy lines",
                                          ['z' - 'a'] = "MESFETs"};
    const char c = r->name.n ? (char)(*r->name.p | 0x20) : 0;
    const char* what = c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
    return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED, "\"%s\": %s%s", crdi_word_clip(r->name).text,
                          what ? what : "no part begins with this letter",
                          what ? " are not supported" : "");
}

crd_status crdi_part_card(crdi_reading* r)
{
    if (r->name.n && *r->name.p == '.') { return initial(r); }
    if (r->card->section >= 0) { return thermal_card(r); }
    const int letter = r->name.n ? *r->name.p | 0x20 : 0;
    for (int i = 0; i < CRDI_PART_KINDS && letter; i++) {
        if (crdi_part_kinds[i]->letter == letter) { return crdi_part_kinds[i]->read(r); }
    }
    return unknown_part(r);
}
