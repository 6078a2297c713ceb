// .model, computed for the copy of the definition in which it stands.
#include "circuit/netlist.h"

#include <math.h>
#include <string.h>

// [(] key=value ... [)]
crd_status crdi_model_entries(crdi_reading* r, const crdi_model_entry* list, int count)
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

crd_status crdi_model_range(const crdi_reading* r, const char* key, double value, const char* want)
{
    return crdi_scan_fail(&r->s, CRD_E_RANGE, "the model %s: %s = %g, expected %s",
                          crdi_word_clip(r->name).text, key, value, want);
}

static crd_status compute(crdi_reading* r, const crdi_part_kind* kind, int32_t* index)
{
    crdi_scan before = r->s;
    const crdi_word w = crdi_scan_word(&r->s);
    if (crdi_word_is(w, kind->model_type)) { return kind->read_model(r, index); }
    return crdi_scan_fail(&before, CRD_E_FORMAT,
                          "the model %s is of type \"%s\", used as one of type %s",
                          crdi_word_clip(r->name).text, crdi_word_clip(w).text, kind->model_type);
}

// A name that says what it is made for: a diode's index is no switch's.
crd_status crdi_model_find(crdi_reading* r, crdi_word name, const crdi_part_kind* kind,
                           int32_t* index)
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
        if (e->models[i] >= 0 && crdi_word_is(crdi_scan_word(&ahead), kind->model_type)) {
            *index = e->models[i];
            return CRD_OK;
        }
        CRD_TRY(compute(&q, kind, &e->models[i]));
        *index = e->models[i];
        return CRD_OK;
    }
    st = crdi_scan_fail(&r->s, CRD_E_NOT_FOUND, "%s: there is no model \"%s\"",
                        crdi_word_clip(r->name).text, crdi_word_clip(name).text);
fail:
    return st;
}
