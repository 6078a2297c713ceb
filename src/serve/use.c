// A slave description that was given: whether the units can be what it says.
#include "serve/serve.h"

#include <math.h>
#include <string.h>

typedef struct fitter {
    crdi_serve* s;
    const crd_dcp_description* d;
    crd_map names; // outlets
} fitter;

static const char* cause_name(int causality)
{
    return causality == CRD_INPUT       ? "an input"
           : causality == CRD_OUTPUT    ? "an output"
           : causality == CRD_PARAMETER ? "a parameter"
                                        : "a structural parameter";
}

typedef struct candidates {
    const crdi_serve* s;
    int i;
} candidates;

static const char* next_outlet(void* user)
{
    candidates* c = user;
    return c->i < c->s->outlet_count ? c->s->outlets[c->i++].name : NULL;
}

// Elements of an array, as far as constants tell.
static bool same_dimensions(const crd_dcp_description* d, const crd_dcp_variable* x,
                            const crd_dcp_description* own, const crd_dcp_variable* y)
{
    if (x->rank != y->rank) { return false; }
    for (int i = 0; i < x->rank; i++) {
        if (x->is_linked[i] != y->is_linked[i]) {
            return false; // fixed here, chosen by the master there
        }
        if (!x->is_linked[i] && x->dimensions[i] != y->dimensions[i]) { return false; }
        if (!x->is_linked[i]) { continue; }
        const int a = crd_dcp_find_vr(d, x->linked[i]), b = crd_dcp_find_vr(own, y->linked[i]);
        if (a < 0 || b < 0 || strcmp(d->variables[a].name, own->variables[b].name) != 0) {
            return false;
        }
    }
    return true;
}

static crd_status fit_variable(fitter* f, int i)
{
    crdi_serve* s = f->s;
    const crd_dcp_variable* x = &f->d->variables[i];
    const int32_t at = crdi_map_find(&f->names, x->name);
    if (at < 0) {
        candidates c = {.s = s};
        const char* near = crdi_nearest(x->name, next_outlet, &c);
        return crdi_fail(s->ctx, CRD_E_NOT_FOUND,
                         "%s:%d: there is no variable '%s' to be served%s%s%s", f->d->file, x->line,
                         x->name, near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    }
    const crd_dcp_variable* y = &s->own->variables[at];
    if (x->causality != y->causality) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%s:%d: '%s' is %s, expected %s", f->d->file, x->line,
                         x->name, cause_name(x->causality), cause_name(y->causality));
    }
    if (x->type != y->type) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%s:%d: '%s' is %s, expected %s", f->d->file, x->line,
                         x->name, crd_dcp_data_type_name(x->type), crd_dcp_data_type_name(y->type));
    }
    if (x->variability == CRD_TUNABLE && y->variability == CRD_FIXED) {
        return crdi_fail(s->ctx, CRD_E_RANGE, "%s:%d: '%s' is tunable, expected fixed", f->d->file,
                         x->line, x->name);
    }
    if (!same_dimensions(f->d, x, s->own, y)) {
        return crdi_fail(s->ctx, CRD_E_RANGE,
                         "%s:%d: '%s' has other dimensions than the unit's variable", f->d->file,
                         x->line, x->name);
    }
    s->outlet_of[i] = at;
    return CRD_OK;
}

// Steps of any length, or whole numbers of the unit's.
static crd_status fit_resolutions(fitter* f)
{
    crdi_serve* s = f->s;
    for (int i = 0; i < f->d->resolution_count && !s->varies; i++) {
        const crd_dcp_resolution* r = &f->d->resolutions[i];
        const double x = (double)r->numerator / r->denominator;
        if (r->numerator_to > r->numerator || fabs(x - s->resolution) > 1e-9 * s->resolution) {
            return crdi_fail(s->ctx, CRD_E_RANGE,
                             "%s:%d: resolution %u/%u s%s, expected %u/%u s: other steps are not "
                             "possible",
                             f->d->file, r->line, r->numerator, r->denominator,
                             r->numerator_to > r->numerator ? " and more" : "", s->numerator,
                             s->denominator);
        }
    }
    return CRD_OK;
}

static bool same_list(const char* a, const char* b)
{
    for (;;) {
        a += strspn(a, " \t\r\n");
        b += strspn(b, " \t\r\n");
        const size_t n = strcspn(a, " \t\r\n"), m = strcspn(b, " \t\r\n");
        double x = 0, y = 0;
        if (n == 0 || m == 0) { return n == m; }
        const bool numbers = crdi_parse_double(a, n, &x) && crdi_parse_double(b, m, &y);
        if (numbers ? x != y : n != m || memcmp(a, b, n) != 0) { return false; }
        a += n;
        b += m;
    }
}

// Start values that are others become settings, as those of the command line.
static crd_status use_start(fitter* f, int i)
{
    crdi_serve* s = f->s;
    const crd_dcp_variable* x = &f->d->variables[i];
    const crdi_outlet* o = &s->outlets[s->outlet_of[i]];
    const char* own = s->own->variables[s->outlet_of[i]].start;
    if (!x->start || x->causality == CRD_OUTPUT) { return CRD_OK; }
    if (o->kind == CRD_BYTES ? strcmp(x->start, own) == 0 : same_list(x->start, own)) {
        return CRD_OK;
    }
    const char* variable = o->own_name;
    if (o->element >= 0) {
        variable = crdi_arena_format(&s->arena, "%s[%d]", o->own_name, o->element + 1);
    }
    const char* text = crdi_arena_text(&s->arena, x->start, strlen(x->start));
    if (!variable || !text) { return CRD_E_MEMORY; }
    const crd_place place = {f->d->file, x->line};
    return crd_system_set(s->sys, o->unit, variable, text, place);
}

crd_status crdi_serve_use(crdi_serve* s, const crd_dcp_description* d)
{
    crd_status st = CRD_OK;
    fitter f = {.s = s, .d = d};
    crdi_map_init(&f.names, s->ctx);
    if (s->d != s->own || s->slave) {
        return crdi_fail(s->ctx, CRD_E_STATE,
                         "crdi_serve_use comes once and before crdi_serve_start");
    }
    if (s->wave_count > 0) {
        return crdi_fail(s->ctx, CRD_E_UNSUPPORTED,
                         "a slave with a pair has the description that is made for it, not "
                         "another one");
    }
    int* outlet_of = crdi_arena_new(&s->arena, (size_t)d->variable_count, sizeof *outlet_of);
    if (!outlet_of) { return CRD_E_MEMORY; }
    int* const before = s->outlet_of;
    s->outlet_of = outlet_of;
    for (int i = 0; i < s->outlet_count; i++) {
        CRD_TRY(crdi_map_add(&f.names, s->outlets[i].name, i, NULL));
    }
    for (int i = 0; i < d->variable_count; i++) {
        CRD_TRY(fit_variable(&f, i));
    }
    CRD_TRY(fit_resolutions(&f));
    crdi_serve_close(s);
    for (int i = 0; i < d->variable_count; i++) {
        CRD_TRY(use_start(&f, i));
    }
    for (int i = 0; i < s->unit_count; i++) { // as the settings are now
        s->stations[i].parameters = s->sys->units[i].parameters;
        s->stations[i].parameter_count = s->sys->units[i].parameter_count;
    }
    for (int i = 0; i < s->outlet_count; i++) {
        s->outlets[i].used = false;
    }
    for (int i = 0; i < d->variable_count; i++) {
        s->outlets[outlet_of[i]].used = true;
    }
    st = crdi_serve_make(s); // settings are checked
    if (st < 0) { CRD_TRY(crdi_fail(s->ctx, st, "%s", crd_error_text(s->log))); }
    s->d = d;
    crdi_serve_find_templates(s);
fail:
    if (st < 0) { s->outlet_of = before; }
    crdi_map_clear(&f.names);
    return st;
}
