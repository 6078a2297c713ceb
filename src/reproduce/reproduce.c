#include "reproduce/papers.h"
#include "shared/base_progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char* const crdi_papers[] = {"baumann2024",       "baumann2020",       "glumac2023",
                                   "rodriguez2021-ch3", "rodriguez2021-ch4", "rodriguez2021-ch5",
                                   "rodriguez2021-ch6", "rautenberg2023",    NULL};
// In their order.
static crd_status (*const reproduce[])(crdi_reproduction* r) = {
    crdi_reproduce_baumann2024,       crdi_reproduce_baumann2020,
    crdi_reproduce_glumac2023,        crdi_reproduce_rodriguez2021_ch3,
    crdi_reproduce_rodriguez2021_ch4, crdi_reproduce_rodriguez2021,
    crdi_reproduce_rodriguez2021_ch6, crdi_reproduce_rautenberg2023};
enum { PAPERS = sizeof reproduce / sizeof *reproduce };

static const char* reproduce_copy_text(crdi_reproduction* r, const char* text)
{
    return crdi_arena_text(&r->arena, text ? text : "", text ? strlen(text) : 0);
}

crd_status crdi_claim_add(crdi_reproduction* r, const crdi_claim* c)
{
    crdi_claim* claims = crdi_grow(r->ctx, r->claims, &r->claim_capacity,
                                   (size_t)r->claim_count + 1, sizeof *claims);
    if (!claims) { return CRD_E_MEMORY; }
    r->claims = claims;
    crdi_claim* own = &claims[r->claim_count];
    *own = *c;
    own->id = reproduce_copy_text(r, c->id);
    own->what = reproduce_copy_text(r, c->what);
    own->remark = reproduce_copy_text(r, c->remark);
    if (!own->id || !own->what || !own->remark) { return CRD_E_MEMORY; }
    const double target = isnan(c->reference) ? c->published : c->reference;
    const double scale = c->relative ? fabs(target) : 1, off = c->ours - target;
    const double miss = c->rule == CRDI_CLAIM_NEAR      ? fabs(off)
                        : c->rule == CRDI_CLAIM_AT_MOST ? off
                                                        : -off;
    own->ok = c->rule == CRDI_CLAIM_SHOWN || miss <= c->tolerance * scale; // false for NaN
    crdi_claim_read_print(r->name, own);
    r->claim_count++;
    crdi_progress(r->ctx, r->name, r->claim_count, 0, "rows");
    return CRD_OK;
}

crd_status crdi_claim_row(crdi_reproduction* r, const char* family, const char* last,
                          const char* subject, const char* what, crdi_claim c)
{
    char id[96], text[256];
    snprintf(id, sizeof id, "%s.%s", family, last);
    snprintf(text, sizeof text, "%s: %s", subject, what);
    c.id = id;
    c.what = text;
    return crdi_claim_add(r, &c);
}

crd_status crdi_claims_add(crdi_reproduction* r, const crdi_claim* c, size_t count)
{
    crd_status st = CRD_OK;
    for (size_t i = 0; i < count && st >= 0; i++) {
        st = crdi_claim_add(r, &c[i]);
    }
    return st;
}

double crdi_printed(const char* text, double* unit)
{
    double value = NAN, power = 0;
    const char *point = strchr(text, '.'), *e = strchr(text, 'e');
    const size_t length = strlen(text);
    const size_t digits = point ? (size_t)((e ? e : text + length) - point) - 1 : 0;
    if (!crdi_parse_double(text, length, &value)) { value = NAN; }
    if (e && !crdi_parse_double(e + 1, strlen(e + 1), &power)) { power = NAN; }
    *unit = pow(10, power - (double)digits);
    return value;
}

crd_status crdi_figure_add(crdi_reproduction* r, const crdi_figure* f)
{
    crdi_figure* figures = crdi_grow(r->ctx, r->figures, &r->figure_capacity,
                                     (size_t)r->figure_count + 1, sizeof *figures);
    if (!figures) { return CRD_E_MEMORY; }
    r->figures = figures;
    crdi_figure own = *f;
    const size_t columns = (size_t)f->columns, count = (size_t)f->rows * columns;
    const char** names = crdi_arena_new(&r->arena, columns, sizeof *names);
    double* values = crdi_arena_new(&r->arena, count, sizeof *values);
    own.id = reproduce_copy_text(r, f->id);
    own.title = reproduce_copy_text(r, f->title);
    if (!names || !values || !own.id || !own.title) { return CRD_E_MEMORY; }
    for (size_t i = 0; i < columns; i++) {
        names[i] = reproduce_copy_text(r, f->names[i]);
        if (!names[i]) { return CRD_E_MEMORY; }
    }
    if (count > 0) { memcpy(values, f->values, count * sizeof *values); }
    own.names = names;
    own.values = values;
    figures[r->figure_count++] = own;
    return CRD_OK;
}

void crdi_reproduction_destroy(crdi_reproduction* r)
{
    if (!r) { return; }
    crd_free(r->ctx, r->claims);
    crd_free(r->ctx, r->figures);
    crd_arena_clear(&r->arena);
    crd_free(r->ctx, r);
}

static const char* next_paper(void* user)
{
    int* i = user;
    return crdi_papers[*i] ? crdi_papers[(*i)++] : NULL;
}

crd_status crdi_reproduce(crd_context* ctx, const char* name, crdi_reproduction** out)
{
    return crdi_reproduce_with(ctx, name, NULL, out);
}

crd_status crdi_reproduce_with(crd_context* ctx, const char* name,
                               const crdi_reproduce_options* opt, crdi_reproduction** out)
{
    int found = -1;
    for (int i = 0; i < PAPERS; i++) {
        if (strcmp(crdi_papers[i], name) == 0) { found = i; }
    }
    if (found < 0) {
        int i = 0;
        const char* near = crdi_nearest(name, next_paper, &i);
        return crdi_fail(ctx, CRD_E_NOT_FOUND,
                         "no paper '%s'%s%s, expected baumann2024, baumann2020, glumac2023, "
                         "rodriguez2021-ch3, rodriguez2021-ch4, rodriguez2021-ch5, "
                         "rodriguez2021-ch6 or rautenberg2023",
                         name, near ? ", did you mean " : "", near ? near : "");
    }
    crdi_reproduction* r = crdi_new(ctx, sizeof *r);
    if (!r) { return CRD_E_MEMORY; }
    r->ctx = ctx;
    r->name = crdi_papers[found];
    const crdi_reproduce_options o = opt ? *opt : (crdi_reproduce_options){0};
    r->quick = o.quick;
    r->times = o.times;
    r->whole = o.whole;
    r->cycle = o.cycle ? o.cycle : "build/cycles/wltc3b.csv";
    r->command = o.command;
    r->stop = o.stop;
    crd_arena_init(&r->arena, ctx);
    const crd_status st = reproduce[found](r);
    if (st < 0) {
        crdi_reproduction_destroy(r);
        return st;
    }
    *out = r;
    return CRD_OK;
}
