// cardan coupling analyze LOOP: stability, margins, poles and modes.
#include "cli/analyze/analyze.h"

#include "cardan/results.h"

#include <math.h>
#include <string.h>

enum { MODES = 4 };

typedef struct margins {
    crdi_cli* cli;
    const crdi_analyze_options* o;
    crd_arena arena;
    crd_loop_model c;
    crd_stability r; // of the worst variant
} margins;

// ---- limits ------------------------------------------------------------------------------------

static bool wants_margin(const crdi_analyze_options* o)
{
    return !isnan(o->min_phase) || !isnan(o->min_gain) || !isnan(o->min_delay);
}

static crd_status analyze_loop_check_limits(const margins* m)
{
    const crdi_analyze_options* o = m->o;
    const crd_nyquist* n = &m->r.nyquist;
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
    const crd_crossing* phase = crd_nyquist_phase_margin(n);
    const crd_crossing* gain = crd_nyquist_gain_margin(n);
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

// ---- what comes out ----------------------------------------------------------------------------

static int shown_modes(const margins* m, const crd_modes* s, int usual)
{
    const int most = m->o->modes > 0 ? m->o->modes : usual;
    return s->count < most ? s->count : most;
}

static void put_modes(crdi_result* o, const char* key, const crd_modes* s, int shown)
{
    if (!s->known) {
        crdi_put(o, NONE(key));
        return;
    }
    crdi_result* list = crdi_array(o, key);
    for (int i = 0; i < shown; i++) {
        crdi_put_numbers(list, NULL, (double[]){s->at[i].re, s->at[i].im}, 2);
    }
}

// Margins: a value, where it is; in JSON pairs of both, in text a row each.
static void put_crossings(crdi_result* o, crdi_result* rows, const char* key, const char* title,
                          const char* unit, const crd_crossing* c, int count)
{
    crdi_result* list = crdi_array(o, key);
    for (int i = 0; i < count; i++) {
        crdi_put_numbers(list, NULL, (double[]){c[i].margin, c[i].omega}, 2);
        crdi_result* row = crdi_row(rows);
        crdi_put(row, CELL("name", title),
                 CELL("value", crdi_worded(row, "%.7g%s", c[i].margin, unit)),
                 CELL("at", crdi_worded(row, "at %.7g rad/s", c[i].omega)));
    }
}

static void put_count(crdi_result* rows, const char* title, int count)
{
    crdi_result* row = crdi_row(rows);
    crdi_put(row, CELL("name", title), CELL("value", crdi_worded(row, "%d", count)),
             CELL("at", ""));
}

static void put_nyquist(const margins* m, crdi_result* out)
{
    static const crdi_column columns[] = {
        {"", "name", ""}, {">", "value", ""}, {"", "at", ""}, {0}};
    const crd_nyquist* n = &m->r.nyquist;
    if (!m->r.nyquist_known) {
        crdi_put(out, NONE("nyquist"), TEXT("reason", m->r.no_nyquist));
        crdi_say(out, "Nyquist's criterion: %s\n", m->r.no_nyquist);
        return;
    }
    crdi_result* rows = crdi_array(out, NULL);
    put_count(rows, "unstable poles of the closed loop", n->closed_unstable);
    put_count(rows, "encirclements of -1", n->encirclements);
    put_count(rows, "unstable poles of the open loop", n->open_unstable);
    if (n->open_axis) { put_count(rows, "and on the imaginary axis", n->open_axis); }
    crdi_put(out, INT("unstable_poles", n->closed_unstable), INT("encirclements", n->encirclements),
             INT("open_unstable_poles", n->open_unstable), INT("open_axis_poles", n->open_axis),
             BOOL("one_loop", n->one_loop));
    crdi_put_numbers(out, "min_distance", (double[]){n->min_distance, n->min_omega}, 2);
    crdi_result* nearest = crdi_row(rows);
    crdi_put(nearest, CELL("name", "smallest |1 + L|"),
             CELL("value", crdi_worded(nearest, "%.7g", n->min_distance)),
             CELL("at", crdi_worded(nearest, "at %.7g rad/s", n->min_omega)));
    put_crossings(out, rows, "gain_margins", "gain margin (factor)", "", n->gain, n->gain_count);
    put_crossings(out, rows, "phase_margins", "phase margin", " deg", n->phase, n->phase_count);
    crdi_put(out, REAL("delay_margin", n->delay_margin));
    if (n->one_loop && isfinite(n->delay_margin)) {
        crdi_result* row = crdi_row(rows);
        crdi_put(row, CELL("name", "delay margin"),
                 CELL("value", crdi_worded(row, "%.7g s", n->delay_margin)), CELL("at", ""));
    }
    crdi_show_table(out, rows, columns, "");
    if (!n->one_loop) {
        crdi_say(out, "several loops: L stands for det(I - links units) - 1, gain and phase "
                      "margins are not defined\n");
    }
}

static const char* mode_text(crdi_result* row, const crd_modes* s, int i, int shown)
{
    if (i >= shown) { return ""; }
    return s->at[i].im == 0 ? crdi_worded(row, "%.8g", s->at[i].re)
                            : crdi_worded(row, "%.8g +- %.7gj", s->at[i].re, s->at[i].im);
}

// A column for each of the three that is known
static void say_modes(const margins* m, crdi_result* out)
{
    static const char* const titles[] = {"poles with G_p", "exact, sampled after the update",
                                         "exact, sampled before it"};
    static const char* const keys[] = {"poles", "after", "before"};
    const crd_stability* r = &m->r;
    const crd_modes* const lists[] = {&r->poles, &r->after, &r->before};
    crdi_column* columns = crdi_arena_new(&out->root->arena, 4, sizeof *columns);
    int count = 0, rows = 0;
    for (int i = 0; i < 3 && columns; i++) {
        if (!lists[i]->known) { continue; }
        columns[count++] = (crdi_column){titles[i], keys[i], ""};
        const int shown = shown_modes(m, lists[i], MODES);
        rows = shown > rows ? shown : rows;
    }
    crdi_say(out, "\nslowest modes [1/s]\n");
    crdi_result* table = crdi_array(out, NULL);
    for (int k = 0; k < rows; k++) {
        crdi_result* row = crdi_row(table);
        for (int i = 0; i < 3; i++) {
            if (!lists[i]->known) { continue; }
            crdi_put(row,
                     CELL(keys[i], mode_text(row, lists[i], k, shown_modes(m, lists[i], MODES))));
        }
    }
    if (columns) { crdi_show_table(out, table, columns, ""); }
    if (!r->poles.known) { crdi_say(out, "poles with G_p: %s\n", r->no_poles); }
    if (!r->after.known && m->c.element_count) {
        crdi_say(out, "exact map over a macro step: %s\n", m->c.no_map ? m->c.no_map : "not made");
    }
}

static void analyze_loop_put_loop(const margins* m, crdi_result* out)
{
    char step[32];
    const crd_loop_model* c = &m->c;
    crdi_say(out, "%s: %s%s\n", c->name, m->r.stable ? "stable" : "NOT stable",
             crdi_analyze_varies(c) ? " with constant latencies; what varies is below" : "");
    crdi_say(out, "macro step %s", crdi_format_seconds(step, c->loop.dT));
    crdi_put(out, TEXT("loop", c->name), REAL("step", c->loop.dT));
    crdi_result* elements = crdi_array(out, "elements");
    for (int i = 0; i < c->element_count; i++) {
        const crd_loop_element* e = &c->elements[i];
        crdi_say(out, "%s %s (k = %d)%s", i ? "," : "; elements", e->label, e->current->k,
                 e->adapts ? " taken as a hold" : "");
        crdi_put(crdi_row(elements), TEXT("element", e->label), INT("k", e->current->k));
    }
    if (c->direct) { crdi_say(out, "; %d direct link%s", c->direct, crdi_plural(c->direct)); }
    crdi_say(out, "\n");
    if (c->place[0]) {
        crdi_say(out, "units linearised %s by %s\n", c->place,
                 c->exact ? "directional derivatives" : "differences");
    }
    if (c->variants > 1) {
        crdi_say(out, "%d combinations of linear pieces, %d of them not stable; the worst:\n",
                 c->variants, m->r.unstable_variants);
    }
    crdi_say(out, "\n");
    crdi_put(out, INT("direct_links", c->direct), BOOL("exact", c->exact),
             BOOL("stable", m->r.stable));
    put_nyquist(m, out);
    say_modes(m, out);
    put_modes(out, "poles", &m->r.poles, shown_modes(m, &m->r.poles, m->r.poles.count));
    crdi_result* modes = crdi_object(out, "modes");
    put_modes(modes, "after", &m->r.after, shown_modes(m, &m->r.after, MODES));
    put_modes(modes, "before", &m->r.before, shown_modes(m, &m->r.before, MODES));
    if (c->variants > 1) {
        crdi_put(out, INT("variants", c->variants),
                 INT("unstable_variants", m->r.unstable_variants));
    }
}

// ---- curve -------------------------------------------------------------------------------------

typedef struct curve {
    int count;
    double *omega, *re, *im, *gain, *phase;
} curve;

static crd_status make_curve(margins* m, curve* c)
{
    const size_t n = (size_t)m->r.nyquist.points;
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

static crd_status analyze_loop_write_csv(const margins* m, const curve* c)
{
    const char* const names[] = {"omega [rad/s]", "Re L", "Im L",
                                 m->o->decibel ? "gain [dB]" : "gain", "phase [deg]"};
    const double* const columns[] = {c->omega, c->re, c->im, c->gain, c->phase};
    return crdi_write_columns(m->cli->ctx, m->o->csv, names, columns, 5, c->count);
}

static crd_status draw_nyquist(margins* m, const curve* c)
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
    return crdi_picture_write(m->cli, m->o->plot, &options, panels, 3);
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
    if (st >= 0 && m->o->csv) { st = analyze_loop_write_csv(m, &c); }
    if (st >= 0 && m->o->plot) { st = draw_nyquist(m, &c); }
    return st;
}

static crd_status read_loop(margins* m, const char* path, crd_element** given)
{
    const crdi_analyze_options* o = m->o;
    crd_context* ctx = m->cli->ctx;
    crd_status st = CRD_OK;
    crd_loop_options with = crd_loop_defaults();
    with.step = o->step;
    if (o->elements.count > 1) {
        CRD_TRY(crdi_fail(ctx, CRD_E_RANGE, "--element: %d are given, expected one for a loop",
                          o->elements.count));
    }
    CRD_TRY(crdi_parse_spread(ctx, o->latency, &with));
    with.varied = true;
    with.spread.jitter = o->jitter;
    CRD_TRY(crdi_parse_part(ctx, "loss", o->loss, &with.spread.loss));
    with.spread.burst = o->losses;
    if (o->elements.count) { CRD_TRY(crdi_load_element(ctx, o->elements.items[0], given)); }
    with.element = *given;
    CRD_TRY(crdi_loop_read(ctx, path, &with, o->at, &m->c));
fail:
    return st;
}

crd_status crdi_analyze_loop(crdi_cli* cli, const crdi_analyze_options* o, const char* path,
                             crdi_result* out)
{
    margins m = {.cli = cli, .o = o};
    crd_element* given = NULL;
    crd_status st = CRD_OK;
    crd_arena_init(&m.arena, cli->ctx);
    CRD_TRY(read_loop(&m, path, &given));
    CRD_TRY(crd_analysis_loop(&m.c, &m.r));
    CRD_TRY(write_curve(&m));
    analyze_loop_put_loop(&m, out);
    CRD_TRY(analyze_loop_check_limits(&m));
    CRD_TRY(crdi_analyze_varied(cli, &m.c, o->require_stable, out));
fail:
    crd_free(cli->ctx, m.r.points);
    crd_loop_model_clear(&m.c);
    crd_element_destroy(given);
    crd_arena_clear(&m.arena);
    return st;
}
