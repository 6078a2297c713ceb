// cardan analyze LOOP: stability, margins, poles and modes.
#include "cli/analyze.h"

#include "cardan/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POLES = 1000, MODES = 4 };

// Poles or modes by falling real part; of a pair the one above the real axis
typedef struct spots {
    bool known;
    int count; // all of them
    int shown;
    crd_complex* at;
} spots;

typedef struct result {
    bool nyquist_known;
    const char* no_nyquist; // why not
    crd_nyquist n;
    crd_loop_point* points;
    spots poles, after, before; // G_p, exact map with outputs sampled after and before the update
    const char* no_poles;
    bool stable;
} result;

typedef struct margins {
    crdi_cli* cli;
    const crdi_analyze_options* o;
    crdi_loop_case c;
    crd_arena arena;
    result r; // of the worst variant
    int worst, unstable_variants;
} margins;

// ---- finding out -------------------------------------------------------------------------------

static int by_real_part(const void* a, const void* b)
{
    const crd_complex *x = a, *y = b;
    if (x->re != y->re) { return x->re > y->re ? -1 : 1; }
    return x->im > y->im ? -1 : x->im < y->im;
}

static void keep_slowest(const margins* m, spots* s, int count, int usual)
{
    const int most = m->o->modes > 0 ? m->o->modes : usual;
    qsort(s->at, (size_t)count, sizeof *s->at, by_real_part);
    s->known = true;
    s->count = count;
    for (int i = 0; i < count && s->shown < most; i++) {
        if (s->at[i].im >= 0) { s->at[s->shown++] = s->at[i]; }
    }
}

// A sentence that the analysis may go on without
static bool may_go_on(crd_status st)
{
    return st == CRD_E_UNSUPPORTED || st == CRD_E_CONVERGENCE || st == CRD_E_RANGE;
}

static crd_status keep_sentence(margins* m, crd_status st, const char** out)
{
    if (!may_go_on(st)) { return st; }
    *out = crdi_arena_format(&m->arena, "%s", crd_error_text(m->cli->ctx));
    return *out ? CRD_OK : CRD_E_MEMORY;
}

static crd_status find_nyquist(margins* m, result* r)
{
    const crd_status st = crd_loop_curve(m->cli->ctx, &m->c.loop, &r->n, &r->points);
    r->nyquist_known = st >= 0;
    return st < 0 ? keep_sentence(m, st, &r->no_nyquist) : CRD_OK;
}

static crd_status find_poles(margins* m, result* r)
{
    r->poles.at = crdi_arena_new(&m->arena, MOST_POLES, sizeof *r->poles.at);
    if (!r->poles.at) { return CRD_E_MEMORY; }
    int count = 0;
    const crd_status st = crd_loop_poles(m->cli->ctx, &m->c.loop, MOST_POLES, r->poles.at, &count);
    if (st < 0) { return keep_sentence(m, st, &r->no_poles); }
    keep_slowest(m, &r->poles, count < MOST_POLES ? count : MOST_POLES,
                 m->o->common.json ? MOST_POLES : MODES);
    return CRD_OK;
}

static crd_status find_modes(margins* m, crd_sampling sampling, spots* s)
{
    crd_context* ctx = m->cli->ctx;
    crd_monodromy map = {0};
    if (m->c.no_map || !m->c.sampled.link_count) { return CRD_OK; }
    crd_status st = crd_plant_monodromy(ctx, &m->c.sampled, m->c.loop.dT, sampling, &map);
    if (st >= 0) {
        s->at = crdi_arena_new(&m->arena, (size_t)map.size, sizeof *s->at);
        st = s->at ? crd_monodromy_modes(ctx, &map, m->c.loop.dT, map.size, s->at) : CRD_E_MEMORY;
    }
    if (st >= 0) { keep_slowest(m, s, map.size, MODES); }
    crd_monodromy_clear(ctx, &map);
    return st < 0 ? keep_sentence(m, st, &m->c.no_map) : CRD_OK;
}

static bool decays(const spots* s)
{
    return !s->known || s->shown == 0 || s->at[0].re < 0;
}

static crd_status examine(margins* m, result* r)
{
    crd_status st = CRD_OK;
    CRD_TRY(find_nyquist(m, r));
    CRD_TRY(find_poles(m, r));
    CRD_TRY(find_modes(m, CRD_SAMPLE_AFTER, &r->after));
    CRD_TRY(find_modes(m, CRD_SAMPLE_BEFORE, &r->before));
    if (!r->nyquist_known && !r->poles.known && !r->after.known) {
        return crdi_fail(m->cli->ctx, CRD_E_UNSUPPORTED, "%s: %s", m->c.name, r->no_nyquist);
    }
    r->stable = (!r->nyquist_known || r->n.closed_unstable == 0) && decays(&r->poles) &&
                decays(&r->after) && decays(&r->before);
fail:
    return st;
}

// Is the first one worse?
static bool worse(const result* a, const result* b)
{
    if (a->stable != b->stable) { return !a->stable; }
    if (a->nyquist_known && b->nyquist_known) {
        return a->n.closed_unstable != b->n.closed_unstable
                   ? a->n.closed_unstable > b->n.closed_unstable
                   : a->n.min_distance < b->n.min_distance;
    }
    return a->poles.known && b->poles.known && a->poles.shown && b->poles.shown &&
           a->poles.at[0].re > b->poles.at[0].re;
}

static crd_status examine_all(margins* m)
{
    for (int i = 0; i < m->c.variants; i++) {
        result r = {0};
        crdi_loop_choose(&m->c, i);
        const crd_status st = examine(m, &r);
        if (st < 0) {
            crd_free(m->cli->ctx, r.points);
            return st;
        }
        m->unstable_variants += !r.stable;
        const bool first = i == 0;
        if (first || worse(&r, &m->r)) {
            crd_free(m->cli->ctx, m->r.points);
            m->r = r;
            m->worst = i;
        } else {
            crd_free(m->cli->ctx, r.points);
        }
    }
    crdi_loop_choose(&m->c, m->worst);
    return CRD_OK;
}

// ---- limits ------------------------------------------------------------------------------------

static const crd_crossing* smallest_phase(const crd_nyquist* n)
{
    const crd_crossing* best = NULL;
    for (int i = 0; i < n->phase_count; i++) {
        const crd_crossing* c = &n->phase[i];
        if (!best || fabs(c->margin) < fabs(best->margin)) { best = c; }
    }
    return best;
}

static const crd_crossing* smallest_gain(const crd_nyquist* n)
{
    const crd_crossing* best = NULL;
    for (int i = 0; i < n->gain_count; i++) {
        const crd_crossing* c = &n->gain[i];
        if (!best || fabs(log(c->margin)) < fabs(log(best->margin))) { best = c; }
    }
    return best;
}

static bool wants_margin(const crdi_analyze_options* o)
{
    return !isnan(o->min_phase) || !isnan(o->min_gain) || !isnan(o->min_delay);
}

static crd_status check_limits(const margins* m)
{
    const crdi_analyze_options* o = m->o;
    const crd_nyquist* n = &m->r.n;
    crd_context* ctx = m->cli->ctx;
    const bool any = o->require_stable || wants_margin(o) || !isnan(o->min_distance);
    if (!any) { return CRD_OK; }
    if (!m->r.stable) { return crdi_fail(ctx, CRD_E_LIMIT, "%s: it is not stable", m->c.name); }
    if ((wants_margin(o) || !isnan(o->min_distance)) && !m->r.nyquist_known) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED, "%s: its margins are not known: %s", m->c.name,
                         m->r.no_nyquist);
    }
    if (wants_margin(o) && !n->one_loop) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s: gain, phase and delay margins are those of one loop, and not all "
                         "loops of this network pass through one link; use --min-distance",
                         m->c.name);
    }
    const crd_crossing *phase = smallest_phase(n), *gain = smallest_gain(n);
    if (!isnan(o->min_phase) && phase && fabs(phase->margin) < o->min_phase) {
        return crdi_fail(ctx, CRD_E_LIMIT,
                         "%s: the phase margin is %.6g deg at %.6g rad/s, expected at least %g deg",
                         m->c.name, fabs(phase->margin), phase->omega, o->min_phase);
    }
    const double factor = o->min_gain < 1 ? 1 / o->min_gain : o->min_gain;
    if (!isnan(o->min_gain) && gain && exp(fabs(log(gain->margin))) < factor) {
        return crdi_fail(ctx, CRD_E_LIMIT,
                         "%s: the gain margin is a factor %.6g at %.6g rad/s, expected at least %g",
                         m->c.name, gain->margin, gain->omega, factor);
    }
    if (!isnan(o->min_delay) && n->delay_margin < o->min_delay) {
        return crdi_fail(ctx, CRD_E_LIMIT, "%s: the delay margin is %g s, expected at least %g s",
                         m->c.name, n->delay_margin, o->min_delay);
    }
    if (!isnan(o->min_distance) && n->min_distance < o->min_distance) {
        return crdi_fail(ctx, CRD_E_LIMIT, "%s: |1 + L| is %g at %g rad/s, expected at least %g",
                         m->c.name, n->min_distance, n->min_omega, o->min_distance);
    }
    return CRD_OK;
}

// ---- JSON --------------------------------------------------------------------------------------

static json_t* crossings_json(const crd_crossing* c, int count)
{
    json_t* j = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(
            j, json_pack("[o, o]", crdi_json_number(c[i].margin), crdi_json_number(c[i].omega)));
    }
    return j;
}

static json_t* spots_json(const spots* s)
{
    if (!s->known) { return json_null(); }
    json_t* j = json_array();
    for (int i = 0; i < s->shown; i++) {
        json_array_append_new(
            j, json_pack("[o, o]", crdi_json_number(s->at[i].re), crdi_json_number(s->at[i].im)));
    }
    return j;
}

static void add_nyquist(json_t* j, const result* r)
{
    const crd_nyquist* n = &r->n;
    if (!r->nyquist_known) {
        json_object_set_new(j, "nyquist", json_null());
        json_object_set_new(j, "reason", crdi_json_text(r->no_nyquist));
        return;
    }
    json_object_set_new(j, "unstable_poles", json_integer(n->closed_unstable));
    json_object_set_new(j, "encirclements", json_integer(n->encirclements));
    json_object_set_new(j, "open_unstable_poles", json_integer(n->open_unstable));
    json_object_set_new(j, "open_axis_poles", json_integer(n->open_axis));
    json_object_set_new(j, "one_loop", json_boolean(n->one_loop));
    json_object_set_new(
        j, "min_distance",
        json_pack("[o, o]", crdi_json_number(n->min_distance), crdi_json_number(n->min_omega)));
    json_object_set_new(j, "gain_margins", crossings_json(n->gain, n->gain_count));
    json_object_set_new(j, "phase_margins", crossings_json(n->phase, n->phase_count));
    json_object_set_new(j, "delay_margin", crdi_json_number(n->delay_margin));
}

static crd_status print_json(margins* m)
{
    const result* r = &m->r;
    json_t* j = json_object();
    json_object_set_new(j, "loop", crdi_json_text(m->c.name));
    json_object_set_new(j, "step", crdi_json_number(m->c.loop.dT));
    json_t* elements = json_array();
    for (int i = 0; i < m->c.element_count; i++) {
        const crdi_loop_element* e = &m->c.elements[i];
        json_array_append_new(elements, json_pack("{s:o, s:i}", "element", crdi_json_text(e->label),
                                                  "k", e->current->k));
    }
    json_object_set_new(j, "elements", elements);
    json_object_set_new(j, "direct_links", json_integer(m->c.direct));
    json_object_set_new(j, "exact", json_boolean(m->c.exact));
    json_object_set_new(j, "stable", json_boolean(r->stable));
    add_nyquist(j, r);
    json_object_set_new(j, "poles", spots_json(&r->poles));
    json_t* modes = json_object();
    json_object_set_new(modes, "after", spots_json(&r->after));
    json_object_set_new(modes, "before", spots_json(&r->before));
    json_object_set_new(j, "modes", modes);
    if (m->c.variants > 1) {
        json_object_set_new(j, "variants", json_integer(m->c.variants));
        json_object_set_new(j, "unstable_variants", json_integer(m->unstable_variants));
    }
    return crdi_json_print(m->cli, j);
}

// ---- text --------------------------------------------------------------------------------------

static void print_what(const margins* m)
{
    char step[32];
    printf("%s: %s\n", m->c.name, m->r.stable ? "stable" : "NOT stable");
    printf("macro step %s", crdi_format_seconds(step, m->c.loop.dT));
    for (int i = 0; i < m->c.element_count; i++) {
        const crdi_loop_element* e = &m->c.elements[i];
        printf("%s %s (k = %d)", i ? "," : "; elements", e->label, e->current->k);
    }
    if (m->c.direct) { printf("; %d direct link%s", m->c.direct, crdi_plural(m->c.direct)); }
    printf("\n");
    if (m->c.place[0]) {
        printf("units linearised %s by %s\n", m->c.place,
               m->c.exact ? "directional derivatives" : "differences");
    }
    if (m->c.variants > 1) {
        printf("%d combinations of linear pieces, %d of them not stable; the worst:\n",
               m->c.variants, m->unstable_variants);
    }
    printf("\n");
}

static void row(crdi_grid* g, const char* name, double value, const char* unit, double omega)
{
    crdi_grid_add(g, "%s", name);
    crdi_grid_add(g, "%.7g%s%s", value, unit[0] ? " " : "", unit);
    if (isnan(omega)) {
        crdi_grid_add(g, "%s", "");
    } else {
        crdi_grid_add(g, "at %.7g rad/s", omega);
    }
}

static void print_nyquist(const margins* m)
{
    const crd_nyquist* n = &m->r.n;
    if (!m->r.nyquist_known) {
        printf("Nyquist's criterion: %s\n", m->r.no_nyquist);
        return;
    }
    crdi_grid g;
    crdi_grid_init(&g, m->cli->ctx, 3, 2);
    row(&g, "unstable poles of the closed loop", n->closed_unstable, "", NAN);
    row(&g, "encirclements of -1", n->encirclements, "", NAN);
    row(&g, "unstable poles of the open loop", n->open_unstable, "", NAN);
    if (n->open_axis) { row(&g, "and on the imaginary axis", n->open_axis, "", NAN); }
    row(&g, "smallest |1 + L|", n->min_distance, "", n->min_omega);
    for (int i = 0; i < n->gain_count; i++) {
        row(&g, "gain margin (factor)", n->gain[i].margin, "", n->gain[i].omega);
    }
    for (int i = 0; i < n->phase_count; i++) {
        row(&g, "phase margin", n->phase[i].margin, "deg", n->phase[i].omega);
    }
    if (n->one_loop && isfinite(n->delay_margin)) {
        row(&g, "delay margin", n->delay_margin, "s", NAN);
    }
    crdi_grid_print(&g, stdout, "");
    crdi_grid_clear(&g);
    if (!n->one_loop) {
        printf("several loops: L stands for det(I - links units) - 1, gain and phase margins are "
               "not defined\n");
    }
}

static void add_spot(crdi_grid* g, const spots* s, int i)
{
    if (!s->known) { return; }
    if (i >= s->shown) {
        crdi_grid_add(g, "%s", "");
    } else if (s->at[i].im == 0) {
        crdi_grid_add(g, "%.8g", s->at[i].re);
    } else {
        crdi_grid_add(g, "%.8g +- %.7gj", s->at[i].re, s->at[i].im);
    }
}

static void print_modes(const margins* m)
{
    const result* r = &m->r;
    const spots* const lists[] = {&r->poles, &r->after, &r->before};
    static const char* const titles[] = {"poles with G_p", "exact, sampled after the update",
                                         "exact, sampled before it"};
    int columns = 0, rows = 0;
    for (int i = 0; i < 3; i++) {
        columns += lists[i]->known;
        rows = lists[i]->shown > rows ? lists[i]->shown : rows;
    }
    printf("\nslowest modes [1/s]\n");
    if (columns) {
        crdi_grid g;
        crdi_grid_init(&g, m->cli->ctx, columns, 0);
        for (int k = -1; k < rows; k++) {
            for (int i = 0; i < 3; i++) {
                if (k >= 0) {
                    add_spot(&g, lists[i], k);
                } else if (lists[i]->known) {
                    crdi_grid_add(&g, "%s", titles[i]);
                }
            }
        }
        crdi_grid_print(&g, stdout, "");
        crdi_grid_clear(&g);
    }
    if (!r->poles.known) { printf("poles with G_p: %s\n", r->no_poles); }
    if (!r->after.known && m->c.element_count) {
        printf("exact map over a macro step: %s\n", m->c.no_map ? m->c.no_map : "not made");
    }
}

// ---- curve -------------------------------------------------------------------------------------

typedef struct curve {
    int count;
    double *omega, *re, *im, *gain, *phase;
} curve;

static crd_status make_curve(margins* m, curve* c)
{
    const size_t n = (size_t)m->r.n.points;
    double** const fields[] = {&c->omega, &c->re, &c->im, &c->gain, &c->phase};
    for (int i = 0; i < 5; i++) {
        *fields[i] = crdi_arena_new(&m->arena, n, sizeof(double));
        if (!*fields[i]) { return CRD_E_MEMORY; }
    }
    c->count = (int)n;
    double turned = 0;
    for (size_t i = 0; i < n; i++) {
        const crd_complex L = m->r.points[i].L;
        const double phase = atan2(L.im, L.re) * (180 / M_PI);
        if (i > 0) { // the nearest to the one before
            turned += 360 * round((c->phase[i - 1] - phase - turned) / 360);
        }
        c->omega[i] = m->r.points[i].omega;
        c->re[i] = L.re;
        c->im[i] = L.im;
        c->gain[i] = m->o->decibel ? 20 * log10(hypot(L.re, L.im)) : hypot(L.re, L.im);
        c->phase[i] = phase + turned;
    }
    return CRD_OK;
}

static crd_status write_csv(const margins* m, const curve* c)
{
    const char* const names[] = {"omega [rad/s]", "Re L", "Im L",
                                 m->o->decibel ? "gain [dB]" : "gain", "phase [deg]"};
    const double* const columns[] = {c->omega, c->re, c->im, c->gain, c->phase};
    return crdi_write_columns(m->cli->ctx, m->o->csv, names, columns, 5, c->count);
}

static crd_status draw(margins* m, const curve* c)
{
    enum { ROUND = 181 };
    double circle[2][ROUND];
    double* below = crdi_arena_new(&m->arena, (size_t)c->count, sizeof *below);
    if (!below) { return CRD_E_MEMORY; }
    for (int i = 0; i < c->count; i++) { // the half for negative frequencies
        below[i] = -c->im[i];
    }
    for (int i = 0; i < ROUND; i++) {
        circle[0][i] = cos(2 * M_PI * i / (ROUND - 1));
        circle[1][i] = sin(2 * M_PI * i / (ROUND - 1));
    }
    const double critical[2] = {-1, 0}, ends[2] = {c->omega[1], c->omega[c->count - 1]};
    const double one[2] = {m->o->decibel ? 0 : 1, m->o->decibel ? 0 : 1}, turn[2] = {-180, -180};
    const crd_plot_series nyquist[] = {
        {.label = "L", .x = c->re, .y = c->im, .count = c->count},
        {.label = "-1", .x = critical, .y = critical + 1, .count = 1, .points = true},
        {.label = "negative frequencies",
         .x = c->re,
         .y = below,
         .count = c->count,
         .dashed = true},
        {.label = "|L| = 1", .x = circle[0], .y = circle[1], .count = ROUND, .dashed = true}};
    const crd_plot_series gain[] = {{.label = "", .x = c->omega, .y = c->gain, .count = c->count},
                                    {.label = "", .x = ends, .y = one, .count = 2, .dashed = true}};
    const crd_plot_series phase[] = {
        {.label = "", .x = c->omega, .y = c->phase, .count = c->count},
        {.label = "", .x = ends, .y = turn, .count = 2, .dashed = true}};
    const crd_plot_panel panels[] = {
        {.title = "Nyquist", .y_label = "Im L", .series = nyquist, .series_count = 4},
        {.title = "Gain",
         .y_label = m->o->decibel ? "|L| [dB]" : "|L|",
         .series = gain,
         .series_count = 2},
        {.title = "Phase", .y_label = "arg L [deg]", .series = phase, .series_count = 2}};
    const crd_plot_scale scales[] = {{.own_x = true,
                                      .equal = true,
                                      .x_label = "Re L",
                                      .x_low = -2.5,
                                      .x_high = 1.5,
                                      .y_low = -1.5,
                                      .y_high = 1.5},
                                     {.log_y = !m->o->decibel},
                                     {0}};
    const char* stem = crdi_file_stem(&m->arena, m->c.name);
    const char* title = crdi_arena_format(&m->arena, "%s: %s", stem ? stem : "",
                                          m->r.stable ? "stable" : "not stable");
    const crd_plot_options options = {
        .title = title, .x_label = "frequency [rad/s]", .log_x = true, .scales = scales};
    return crd_plot_svg_scaled(m->cli->ctx, m->o->plot, &options, panels, 3);
}

static crd_status write_curve(margins* m)
{
    curve c = {0};
    if (!m->o->csv && !m->o->plot) { return CRD_OK; }
    if (!m->r.nyquist_known) {
        return crdi_fail(m->cli->ctx, CRD_E_UNSUPPORTED, "%s: there is no curve to write: %s",
                         m->c.name, m->r.no_nyquist);
    }
    crd_status st = make_curve(m, &c);
    if (st >= 0 && m->o->csv) { st = write_csv(m, &c); }
    if (st >= 0 && m->o->plot) { st = draw(m, &c); }
    return st;
}

crd_status crdi_analyze_loop(crdi_cli* cli, const crdi_analyze_options* o, const char* path)
{
    margins m = {.cli = cli, .o = o};
    crd_status st = CRD_OK;
    crd_arena_init(&m.arena, cli->ctx);
    CRD_TRY(crdi_loop_read(cli->ctx, path, o, &m.c));
    CRD_TRY(examine_all(&m));
    CRD_TRY(write_curve(&m));
    if (o->common.json) {
        CRD_TRY(print_json(&m));
    } else {
        print_what(&m);
        print_nyquist(&m);
        print_modes(&m);
        CRD_TRY(crdi_stdout_done(cli->ctx));
    }
    CRD_TRY(check_limits(&m));
fail:
    crd_free(cli->ctx, m.r.points);
    crdi_loop_clear(&m.c);
    crd_arena_clear(&m.arena);
    return st;
}
