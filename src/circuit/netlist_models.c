// .model, computed for the copy of the definition in which it stands.
#include "circuit/netlist.h"

#include <math.h>
#include <string.h>

static const double boltzmann = 1.380649e-23, charge = 1.602176634e-19;

typedef struct entry {
    const char* key;
    double* to; // NULL: noted
} entry;

// [(] key=value ... [)]
static crd_status read_entries(crdi_reading* r, const entry* list, int count)
{
    crd_status st = CRD_OK;
    crdi_word key;
    const bool bracket = crdi_scan_take(&r->s, '(');
    while (crdi_key(&r->s, &key)) {
        int i = 0;
        while (i < count && !crdi_word_is(key, list[i].key)) {
            i++;
        }
        if (i == count) {
            return crdi_scan_fail(&r->s, CRD_E_UNSUPPORTED,
                                  "the model %s: the parameter \"%s\" is not supported",
                                  crdi_word_clip(r->name).text, crdi_word_clip(key).text);
        }
        if (!list[i].to) { // a rating, who made it: a number or a word
            double unused;
            if (!crdi_scan_word(&r->s).n) { CRD_TRY(crdi_value(r, false, "it", &unused)); }
            crdi_netlist_note(r->p, &r->s, list[i].key, "of a diode does not matter here");
        } else {
            CRD_TRY(crdi_value(r, false, "the parameter of a model", list[i].to));
        }
        (void)crdi_scan_take(&r->s, ',');
    }
    if (bracket) { (void)crdi_scan_take(&r->s, ')'); }
    if (!crdi_scan_end(&r->s)) {
        return crdi_scan_fail(
            &r->s, CRD_E_FORMAT, "the model %s: \"%s\" where key=value is expected",
            crdi_word_clip(r->name).text, crdi_word_clip(crdi_scan_look(&r->s)).text);
    }
fail:
    return st;
}

static crd_status model_range(const crdi_reading* r, const char* key, double value,
                              const char* want)
{
    return crdi_scan_fail(&r->s, CRD_E_RANGE, "the model %s: %s = %g, expected %s",
                          crdi_word_clip(r->name).text, key, value, want);
}

// What the exponential of the breakdown carries at -bv. As ngspice has it: ibv less what it counts
// as leakage there, is bv/vt; with an ibv below that is itself.
static double breakdown_current(const crd_diode_model* m)
{
    const double least = m->is * m->bv / m->vt;
    if (!(m->ibv >= least)) { return m->is; }
    double edge = m->bv - m->n * m->vt * log(1 + m->ibv / m->is); // where it would carry is
    for (int i = 0; i < 25; i++) {
        edge = m->bv - m->n * m->vt * log(m->ibv / m->is + 1 - edge / m->vt);
    }
    const double i = m->is * exp((m->bv - edge) / (m->n * m->vt));
    return isfinite(i) && i > 0 ? i : m->is;
}

static crd_status diode(crdi_reading* r, int32_t* index)
{
    crd_status st = CRD_OK;
    crdi_netlist* o = r->p->out;
    crd_diode_model m = {.is = 1e-14, .n = 1, .vj = 1, .m = 0.5, .ibv = 1e-3};
    double eg = 1.11, xti = 3, tnom = r->p->nominal - 273.15, level = 1, fc = 0.5;
    const entry list[] = {{"is", &m.is},   {"js", &m.is},   {"n", &m.n},       {"rs", &m.rs},
                          {"cjo", &m.cjo}, {"cj0", &m.cjo}, {"cj", &m.cjo},    {"vj", &m.vj},
                          {"pb", &m.vj},   {"m", &m.m},     {"mj", &m.m},      {"tt", &m.tt},
                          {"bv", &m.bv},   {"ibv", &m.ibv}, {"eg", &eg},       {"xti", &xti},
                          {"tnom", &tnom}, {"fc", &fc},     {"level", &level}, {"kf", NULL},
                          {"af", NULL},    {"iave", NULL},  {"vpk", NULL},     {"ipk", NULL},
                          {"mfg", NULL},   {"type", NULL}};
    CRD_TRY(read_entries(r, list, (int)(sizeof list / sizeof *list)));
    if (level != 1) { return model_range(r, "level", level, "1"); }
    if (!(m.is > 0)) { return model_range(r, "is", m.is, "> 0"); }
    if (!(m.n > 0)) { return model_range(r, "n", m.n, "> 0"); }
    if (!(m.rs >= 0)) { return model_range(r, "rs", m.rs, ">= 0"); }
    if (!(m.cjo >= 0)) { return model_range(r, "cjo", m.cjo, ">= 0"); }
    if (!(m.tt >= 0)) { return model_range(r, "tt", m.tt, ">= 0"); }
    if (!(m.bv >= 0)) { return model_range(r, "bv", m.bv, ">= 0"); }
    if (m.cjo > 0 && !(m.vj > 0)) { return model_range(r, "vj", m.vj, "> 0"); }
    if (m.cjo > 0 && !(m.m > 0 && m.m < 1)) { return model_range(r, "m", m.m, "between 0 and 1"); }
    if (m.cjo > 0 && fc != 0.5) { return model_range(r, "fc", fc, "0.5"); }
    const double kelvin = r->p->n->temperature, ratio = kelvin / (tnom + 273.15);
    if (!(ratio > 0)) { return model_range(r, "tnom", tnom, "> -273.15"); }
    m.vt = boltzmann * kelvin / charge;
    m.gmin = r->p->gmin;
    if (ratio != 1) { // saturation current at the netlist's temperature
        m.is *= exp((ratio - 1) * eg / (m.n * m.vt)) * pow(ratio, xti / m.n);
        if (!(m.is > 0) || !isfinite(m.is)) { return model_range(r, "is(temp)", m.is, "> 0"); }
        if (m.cjo > 0) {
            crdi_netlist_note(r->p, &r->s, "cjo", "of a diode keeps its value at tnom");
        }
    }
    if (m.bv > 0) { m.ibv = breakdown_current(&m); }
    m.name = crdi_arena_text(&o->n.arena, r->name.p, r->name.n);
    if (!m.name) { return CRD_E_MEMORY; }
    const size_t count = (size_t)o->n.diode_count;
    crd_diode_model* all =
        crdi_grow(r->p->ctx, o->diodes, &o->diode_capacity, count + 1, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    o->diodes = all;
    all[count] = m;
    o->n.diode_count++;
    *index = (int32_t)count;
fail:
    return st;
}

static crd_status switch_model(crdi_reading* r, bool current, int32_t* index)
{
    crd_status st = CRD_OK;
    crdi_netlist* o = r->p->out;
    crd_switch_model m = {.on = 1, .off = 1e12};
    const entry list[] = {{current ? "it" : "vt", &m.threshold},
                          {current ? "ih" : "vh", &m.hysteresis},
                          {"ron", &m.on},
                          {"roff", &m.off}};
    CRD_TRY(read_entries(r, list, 4));
    if (!(m.hysteresis >= 0)) { return model_range(r, "hysteresis", m.hysteresis, ">= 0"); }
    if (!(m.on > 0)) { return model_range(r, "ron", m.on, "> 0"); }
    if (!(m.off > 0)) { return model_range(r, "roff", m.off, "> 0"); }
    m.name = crdi_arena_text(&o->n.arena, r->name.p, r->name.n);
    if (!m.name) { return CRD_E_MEMORY; }
    const size_t count = (size_t)o->n.switch_count;
    crd_switch_model* all =
        crdi_grow(r->p->ctx, o->switches, &o->switch_capacity, count + 1, sizeof *all);
    if (!all) { return CRD_E_MEMORY; }
    o->switches = all;
    all[count] = m;
    o->n.switch_count++;
    *index = (int32_t)count;
fail:
    return st;
}

static crd_status compute(crdi_reading* r, const char* type, int32_t* index)
{
    crdi_scan before = r->s;
    const crdi_word w = crdi_scan_word(&r->s);
    if (!crdi_word_is(w, type)) {
        return crdi_scan_fail(&before, CRD_E_FORMAT,
                              "the model %s is of type \"%s\", used as one of type %s",
                              crdi_word_clip(r->name).text, crdi_word_clip(w).text, type);
    }
    if (strcmp(type, "d") == 0) { return diode(r, index); }
    return switch_model(r, strcmp(type, "csw") == 0, index);
}

// A name that says what it is made for: a diode's index is no switch's.
crd_status crdi_model_find(crdi_reading* r, crdi_word name, const char* type, int32_t* index)
{
    crd_status st = CRD_OK;
    char text[CRDI_NAME_MOST + 1];
    if (!name.n || !crdi_word_fold(name, text)) {
        return crdi_scan_fail(&r->s, CRD_E_FORMAT, "%s: \"%s\" where a model is expected",
                              crdi_word_clip(r->name).text,
                              crdi_word_clip(crdi_scan_look(&r->s)).text);
    }
    for (crdi_env* e = r->env; e; e = e->outer) {
        const crdi_scope* s = &r->p->scopes[e->scope];
        const int32_t i = crdi_map_find(&s->model_map, text);
        if (i < 0) { continue; }
        const crdi_named* m = &s->models[i];
        crdi_reading q = {.p = r->p, .env = e, .card = &m->card};
        q.s = crdi_card_scan(r->p, &m->card);
        q.name = (crdi_word){m->name, strlen(m->name)};
        crdi_scan ahead = q.s;
        if (e->models[i] >= 0 && crdi_word_is(crdi_scan_word(&ahead), type)) {
            *index = e->models[i];
            return CRD_OK;
        }
        CRD_TRY(compute(&q, type, &e->models[i]));
        *index = e->models[i];
        return CRD_OK;
    }
    st = crdi_scan_fail(&r->s, CRD_E_NOT_FOUND, "%s: there is no model \"%s\"",
                        crdi_word_clip(r->name).text, crdi_word_clip(name).text);
fail:
    return st;
}
