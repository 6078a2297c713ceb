// One card, one part: the letters of SPICE and the words of heat.
#include "circuit/netlist.h"

#include <math.h>
#include <string.h>

enum { ELECTRIC = 1, THERMAL = 2 };

static crd_status expected(const crdi_reading* r, const char* what)
{
    return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: \"%s\" where %s is expected",
                          crdi_word_clip(r->name).text, crdi_word_clip(crdi_scan_look(&r->s)).text,
                          what);
}

static crd_status at_end(crdi_reading* r)
{
    if (crdi_scan_end(&r->s)) { return CRD_OK; }
    return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: \"%s\" is not understood here",
                          crdi_word_clip(r->name).text, crdi_word_clip(crdi_scan_look(&r->s)).text);
}

static crd_status unknown_key(const crdi_reading* r, crdi_word key)
{
    const bool series = crdi_word_is(key, "rser"), parallel = crdi_word_is(key, "rpar");
    return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED, "%s: \"%s=\" is not supported here%s%s",
                          crdi_word_clip(r->name).text, crdi_word_clip(key).text,
                          series || parallel ? "; write a resistor in " : "",
                          series     ? "series"
                          : parallel ? "parallel"
                                     : "");
}

static crd_part new_part(const crdi_reading* r, crd_part_kind kind)
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
static crd_status touch(crdi_reading* r, int32_t node, bool thermal)
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
    p->node_at[node] = (crdi_place){r->card->file, r->card->line};
    return CRD_OK;
}

static crd_status read_nodes(crdi_reading* r, crd_part* part, int count)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < count; i++) {
        crdi_word key;
        if (crdi_key(&r->s, &key)) {
            return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: \"%s=\" where a node is expected",
                                  crdi_word_clip(r->name).text, crdi_word_clip(key).text);
        }
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &part->nodes[i]));
        CRD_TRY(touch(r, part->nodes[i], part->thermal));
        (void)crdi_scan_take(&r->s, ',');
    }
fail:
    return st;
}

static crd_status add(crdi_reading* r, crd_part* part)
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

// ---- R, L, C, K --------------------------------------------------------------------------------

// As in ngspice 0 Ohm are 1 mOhm, 0 F are nothing and 0 H a wire; what is negative belongs to
// equivalent networks. Heat knows none of that.
static crd_status check_value(const crdi_reading* r, crd_part* part, const char* unit)
{
    const char* how = "is negative: what is here may grow without bounds";
    if (isfinite(part->value) && part->value > 0) { return CRD_OK; }
    if (!isfinite(part->value) || part->thermal) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s = %g %s, expected > 0",
                              crdi_word_clip(r->name).text, part->value, unit);
    }
    if (part->value == 0) {
        how = part->kind == CRD_PART_RESISTOR    ? "is taken as 1 mOhm"
              : part->kind == CRD_PART_CAPACITOR ? "is taken as if it were not there"
                                                 : "is taken as a wire";
        if (part->kind == CRD_PART_RESISTOR) { part->value = 1e-3; }
        crdi_log(r->p->ctx, CRD_LOG_WARNING, "netlist %s:%d: %s = 0 %s %s", r->s.file, r->s.line,
                 crdi_word_clip(r->name).text, unit, how);
        return CRD_OK;
    }
    crdi_log(r->p->ctx, CRD_LOG_WARNING, "netlist %s:%d: %s = %g %s %s", r->s.file, r->s.line,
             crdi_word_clip(r->name).text, part->value, unit, how);
    return CRD_OK;
}

typedef struct factors { // name=value behind the value
    double tc1, tc2, m, ic;
    bool has_ic;
} factors;

static crd_status read_factors(crdi_reading* r, bool ic, bool tc, factors* f)
{
    crd_status st = CRD_OK;
    crdi_word key;
    *f = (factors){.m = 1};
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
        if (!to) { return unknown_key(r, key); }
        CRD_TRY(crdi_value(r, false, "it", to));
    }
    if (!(f->m > 0)) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s: m = %g, expected > 0",
                              crdi_word_clip(r->name).text, f->m);
    }
    CRD_TRY(at_end(r));
fail:
    return st;
}

// The value behind the nodes, or behind `key`=
static crd_status read_amount(crdi_reading* r, const char* key, double* value, crd_expression** e)
{
    crd_status st = CRD_OK;
    crdi_scan before = r->s;
    crdi_word w;
    const bool keyed = crdi_key(&r->s, &w);
    if (keyed && !crdi_word_is(w, key)) {
        r->s = before;
        return expected(r, "a value");
    }
    before = r->s;
    st = crdi_law(r, keyed, false, value, e);
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

static crd_status resistor(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = new_part(r, CRD_PART_RESISTOR);
    crd_expression* e;
    factors f;
    CRD_TRY(read_nodes(r, &part, 2));
    CRD_TRY(read_amount(r, "r", &part.value, &e));
    CRD_TRY(read_factors(r, false, !part.thermal, &f));
    if (e) {
        if (f.tc1 != 0 || f.tc2 != 0 || f.m != 1) {
            return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED,
                                  "%s: tc1, tc2 and m belong into its expression",
                                  crdi_word_clip(r->name).text);
        }
        part.value = 0;
        CRD_TRY(crdi_expression_add(r, e, &part.index));
    } else {
        const double d = r->p->n->temperature - r->p->nominal;
        part.value *= (1 + d * (f.tc1 + d * f.tc2)) / f.m;
        CRD_TRY(check_value(r, &part, part.thermal ? "K/W" : "Ohm"));
    }
    CRD_TRY(add(r, &part));
fail:
    return st;
}

static crd_status no_law(const crdi_reading* r, const crd_expression* e)
{
    if (!e) { return CRD_OK; }
    return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED, "%s: its value has to be a constant",
                          crdi_word_clip(r->name).text);
}

static crd_status storage(crdi_reading* r, crd_part_kind kind)
{
    crd_status st = CRD_OK;
    const bool inductor = kind == CRD_PART_INDUCTOR;
    crd_part part = new_part(r, kind);
    crd_expression* e;
    factors f;
    CRD_TRY(read_nodes(r, &part, 2));
    CRD_TRY(read_amount(r, inductor ? "l" : "c", &part.value, &e));
    CRD_TRY(no_law(r, e));
    CRD_TRY(read_factors(r, true, false, &f));
    part.value = inductor ? part.value / f.m : part.value * f.m;
    part.has_ic = f.has_ic;
    part.ic = f.ic;
    CRD_TRY(check_value(r, &part, inductor ? "H" : "F"));
    CRD_TRY(add(r, &part));
fail:
    return st;
}

static crd_status mutual(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = new_part(r, CRD_PART_MUTUAL);
    CRD_TRY(crdi_mention(r, crdi_scan_word(&r->s), &part.refs[0]));
    CRD_TRY(crdi_mention(r, crdi_scan_word(&r->s), &part.refs[1]));
    if (part.refs[0] == part.refs[1]) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s couples an inductor with itself",
                              crdi_word_clip(r->name).text);
    }
    CRD_TRY(crdi_value(r, false, "a coupling", &part.value));
    if (!(fabs(part.value) <= 1)) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s = %g, expected -1 to 1",
                              crdi_word_clip(r->name).text, part.value);
    }
    CRD_TRY(at_end(r));
    CRD_TRY(add(r, &part));
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
static crd_status finish_source(crdi_reading* r, crd_part* part, bool laws)
{
    crd_status st = CRD_OK;
    crd_waveform wave;
    crd_expression* e = NULL;
    bool law = laws;
    CRD_TRY(crdi_source(r, &wave, &law, &e));
    CRD_TRY(at_end(r));
    if (e) {
        const bool voltage = part->kind == CRD_PART_VOLTAGE;
        part->kind = (uint8_t)(voltage ? CRD_PART_B_VOLTAGE : CRD_PART_B_CURRENT);
        CRD_TRY(crdi_expression_add(r, e, &part->index));
    } else {
        part->value = wave.kind == CRD_WAVE_DC ? wave.v[0] : 0;
        CRD_TRY(add_wave(r, &wave, &part->index));
    }
    CRD_TRY(add(r, part));
fail:
    return st;
}

static crd_status source(crdi_reading* r, crd_part_kind kind)
{
    crd_part part = new_part(r, kind);
    const crd_status st = read_nodes(r, &part, 2);
    return st < 0 ? st : finish_source(r, &part, false);
}

// V=..., I=... or value=..., behind the '='
static crd_status behavioural(crdi_reading* r, crd_part* part, bool voltage)
{
    crd_status st = CRD_OK;
    crd_expression* e;
    double value;
    CRD_TRY(crdi_law(r, true, false, &value, &e));
    CRD_TRY(at_end(r));
    if (e) {
        part->kind = (uint8_t)(voltage ? CRD_PART_B_VOLTAGE : CRD_PART_B_CURRENT);
        CRD_TRY(crdi_expression_add(r, e, &part->index));
    } else {
        const crd_waveform w = {.kind = CRD_WAVE_DC, .v = {value}};
        part->kind = (uint8_t)(voltage ? CRD_PART_VOLTAGE : CRD_PART_CURRENT);
        part->value = value;
        CRD_TRY(add_wave(r, &w, &part->index));
    }
    CRD_TRY(add(r, part));
fail:
    return st;
}

static crd_status b_source(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = new_part(r, CRD_PART_B_VOLTAGE);
    crdi_word key;
    CRD_TRY(read_nodes(r, &part, 2));
    if (!crdi_key(&r->s, &key)) { return expected(r, "V= or I="); }
    const bool voltage = crdi_word_is(key, "v");
    if (!voltage && !crdi_word_is(key, "i")) { return unknown_key(r, key); }
    CRD_TRY(behavioural(r, &part, voltage));
fail:
    return st;
}

// E and G: gain times a voltage, or an expression
static crd_status by_voltage(crdi_reading* r, bool voltage)
{
    crd_status st = CRD_OK;
    crd_part part = new_part(r, voltage ? CRD_PART_VCVS : CRD_PART_VCCS);
    crdi_word key;
    CRD_TRY(read_nodes(r, &part, 2));
    if (crdi_key(&r->s, &key)) {
        if (!crdi_word_is(key, voltage ? "vol" : "cur") && !crdi_word_is(key, "value")) {
            return unknown_key(r, key);
        }
        return behavioural(r, &part, voltage);
    }
    crdi_scan ahead = r->s;
    const crdi_word w = crdi_scan_word(&ahead);
    if (crdi_word_is(w, "poly") || crdi_word_is(w, "table") || crdi_word_is(w, "laplace")) {
        return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED,
                              "%s: %s is not supported; a B source with an expression is",
                              crdi_word_clip(r->name).text, crdi_word_clip(w).text);
    }
    const bool bracket = crdi_scan_take(&r->s, '('); // E1 a b (c,d) 2
    for (int i = 2; i < 4; i++) {
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &part.nodes[i]));
        (void)crdi_scan_take(&r->s, ',');
    }
    if (bracket && !crdi_scan_take(&r->s, ')')) { return expected(r, "')'"); }
    CRD_TRY(crdi_value(r, false, "a gain", &part.value));
    CRD_TRY(at_end(r));
    CRD_TRY(add(r, &part));
fail:
    return st;
}

// F and H: gain times the current of a voltage source
static crd_status by_current(crdi_reading* r, bool voltage)
{
    crd_status st = CRD_OK;
    crd_part part = new_part(r, voltage ? CRD_PART_CCVS : CRD_PART_CCCS);
    CRD_TRY(read_nodes(r, &part, 2));
    crdi_scan ahead = r->s;
    if (crdi_word_is(crdi_scan_word(&ahead), "poly")) {
        return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED,
                              "%s: poly is not supported; a B source with an expression is",
                              crdi_word_clip(r->name).text);
    }
    CRD_TRY(crdi_mention(r, crdi_scan_word(&r->s), &part.refs[0]));
    CRD_TRY(crdi_value(r, false, "a gain", &part.value));
    CRD_TRY(at_end(r));
    CRD_TRY(add(r, &part));
fail:
    return st;
}

// ---- diodes and switches -----------------------------------------------------------------------

static crd_status scaled_diode(crdi_reading* r, double area, int32_t* index)
{
    crdi_netlist* o = r->p->out;
    const size_t count = (size_t)o->n.diode_count;
    if (area == 1) { return CRD_OK; }
    crd_diode_model* list =
        crdi_grow(r->p->ctx, o->diodes, &o->diode_capacity, count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    o->diodes = list;
    crd_diode_model m = list[*index];
    m.is *= area;
    m.cjo *= area;
    m.ibv *= area;
    m.rs /= area;
    list[count] = m;
    o->n.diode_count++;
    *index = (int32_t)count;
    return CRD_OK;
}

static crd_status diode(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = new_part(r, CRD_PART_DIODE);
    double area = 1, m = 1;
    crdi_word key;
    CRD_TRY(read_nodes(r, &part, 2));
    CRD_TRY(crdi_model_find(r, crdi_scan_word(&r->s), "d", &part.index));
    while (!crdi_scan_end(&r->s)) {
        crdi_scan ahead = r->s;
        if (crdi_key(&r->s, &key)) {
            const bool is_area = crdi_word_is(key, "area");
            if (!is_area && !crdi_word_is(key, "m")) { return unknown_key(r, key); }
            CRD_TRY(crdi_value(r, false, "an area", is_area ? &area : &m));
        } else if (crdi_word_is(crdi_scan_word(&ahead), "off")) {
            r->s = ahead;
            crdi_netlist_note(r->p, &r->s, "off", "of a diode is a hint that is not needed here");
        } else {
            CRD_TRY(crdi_value(r, false, "an area", &area));
        }
    }
    if (!(area * m > 0)) {
        return crdi_scan_fail(&r->s, CRD_E_RANGE, "%s: the area is %g, expected > 0",
                              crdi_word_clip(r->name).text, area * m);
    }
    CRD_TRY(scaled_diode(r, area * m, &part.index));
    CRD_TRY(add(r, &part));
fail:
    return st;
}

static crd_status switched(crdi_reading* r, bool current)
{
    crd_status st = CRD_OK;
    crd_part part = new_part(r, current ? CRD_PART_CURRENT_SWITCH : CRD_PART_SWITCH);
    CRD_TRY(read_nodes(r, &part, 2));
    if (current) {
        CRD_TRY(crdi_mention(r, crdi_scan_word(&r->s), &part.refs[0]));
    } else {
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &part.nodes[2]));
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &part.nodes[3]));
    }
    CRD_TRY(crdi_model_find(r, crdi_scan_word(&r->s), current ? "csw" : "sw", &part.index));
    if (!crdi_scan_end(&r->s)) { // at the start
        const crdi_scan before = r->s;
        const crdi_word w = crdi_scan_word(&r->s);
        part.has_ic = true;
        part.ic = crdi_word_is(w, "on");
        if (!crdi_word_is(w, "on") && !crdi_word_is(w, "off")) {
            r->s = before;
            return expected(r, "on or off");
        }
    }
    CRD_TRY(at_end(r));
    CRD_TRY(add(r, &part));
fail:
    return st;
}

// ---- heat --------------------------------------------------------------------------------------

// start= of a capacity, or of its section; NAN without
static crd_status start_temperature(crdi_reading* r, double* out)
{
    crd_status st = CRD_OK;
    crdi_word key;
    if (crdi_key(&r->s, &key)) {
        if (!crdi_word_is(key, "start")) { return unknown_key(r, key); }
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

static crd_status check_kelvin(const crdi_reading* r, double kelvin)
{
    if (!(fabs(kelvin) > 1e5)) { return CRD_OK; }
    return crdi_scan_fail(&r->s, CRD_E_RANGE,
                          "%s: %g K; a K behind a number means a thousand, write it without",
                          crdi_word_clip(r->name).text, kelvin);
}

static crd_status capacity(crdi_reading* r)
{
    crd_status st = CRD_OK;
    crd_part part = new_part(r, CRD_PART_CAPACITOR);
    crd_expression* e;
    CRD_TRY(read_nodes(r, &part, 1));
    part.nodes[1] = 0;
    CRD_TRY(crdi_law(r, false, false, &part.value, &e));
    CRD_TRY(no_law(r, e));
    CRD_TRY(check_value(r, &part, "J/K"));
    CRD_TRY(start_temperature(r, &part.ic));
    CRD_TRY(at_end(r));
    part.has_ic = !isnan(part.ic);
    if (!part.has_ic) { part.ic = 0; }
    CRD_TRY(check_kelvin(r, part.ic));
    CRD_TRY(add(r, &part));
fail:
    return st;
}

static crd_status heat(crdi_reading* r, bool temperature)
{
    crd_status st = CRD_OK;
    crd_part part = new_part(r, temperature ? CRD_PART_VOLTAGE : CRD_PART_CURRENT);
    CRD_TRY(read_nodes(r, &part, 1));
    part.nodes[1] = 0;
    if (!temperature) { // a current flows from its first node to its second
        part.nodes[1] = part.nodes[0];
        part.nodes[0] = 0;
    }
    CRD_TRY(finish_source(r, &part, true));
    if (temperature) { CRD_TRY(check_kelvin(r, part.value)); }
fail:
    return st;
}

static crd_status thermal_card(crdi_reading* r)
{
    static const char* const words[] = {"heat", "resistance", "capacity", "temperature"};
    const crdi_word word = r->name;
    int i = 0;
    while (i < 4 && !crdi_word_is(word, words[i])) {
        i++;
    }
    if (i == 4) {
        return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED,
                              "\"%s\" inside .thermal; the words there are heat, resistance, "
                              "capacity and temperature",
                              crdi_word_clip(word).text);
    }
    r->name = crdi_scan_word(&r->s);
    if (!r->name.n) {
        r->name = word;
        return expected(r, "a name");
    }
    if (i == 1) { return resistor(r); }
    if (i == 2) { return capacity(r); }
    return heat(r, i == 3);
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
    if (crdi_scan_end(&r->s)) { return expected(r, "v(node)=value"); }
    while (!crdi_scan_end(&r->s)) {
        int32_t node;
        double value;
        const crdi_word v = crdi_scan_word(&r->s);
        const bool known = crdi_word_is(v, "v") || crdi_word_is(v, "t");
        if (!known || !crdi_scan_take(&r->s, '(')) { return expected(r, "v(node)=value"); }
        CRD_TRY(crdi_node(r, crdi_scan_word(&r->s), &node));
        if (!crdi_scan_take(&r->s, ')')) { return expected(r, "')'"); }
        if (!crdi_scan_take(&r->s, '=')) { return expected(r, "'='"); }
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
    switch (r->name.n ? *r->name.p | 0x20 : 0) {
    case 'r':
        return resistor(r);
    case 'c':
        return storage(r, CRD_PART_CAPACITOR);
    case 'l':
        return storage(r, CRD_PART_INDUCTOR);
    case 'k':
        return mutual(r);
    case 'v':
        return source(r, CRD_PART_VOLTAGE);
    case 'i':
        return source(r, CRD_PART_CURRENT);
    case 'd':
        return diode(r);
    case 's':
        return switched(r, false);
    case 'w':
        return switched(r, true);
    case 'e':
        return by_voltage(r, true);
    case 'g':
        return by_voltage(r, false);
    case 'f':
        return by_current(r, false);
    case 'h':
        return by_current(r, true);
    case 'b':
        return b_source(r);
    default:
        return unknown_part(r);
    }
}
