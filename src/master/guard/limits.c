// Limits that act while the run goes. A limit is about the whole run, so a run ends when what
// happened so far alone breaks it, against the scales so far:
//   defects and errors   integral of the square up to now / length of the run  >  (limit scale)^2
//                        with the scale that is given, or else 1.5 times what the largest
//                        magnitude so far becomes if it grows evenly until the end
//   energy               |energy| > limit * what passes until the end, at the rate so far
#include "master/master.h"

#include <math.h>
#include <stdio.h>

static const double growth_of_scales = 1.5;
enum { LEAST_STEPS = 10 }; // before which means are those of a moment

static bool is_set(double limit)
{
    return limit > 0;
}

crd_status crdi_guard_check_limits(crd_master* m)
{
    crdi_guard* g = &m->guard;
    const crd_guard_spec* s = &g->spec;
    g->limited = is_set(s->max_defect) || is_set(s->max_energy) || is_set(s->max_error);
    const char* note = crdi_estimate_note(m);
    if (is_set(s->max_error) && *note) {
        return crdi_fail_at(m->ctx,
                            crdi_fail(m->ctx, CRD_E_UNSUPPORTED,
                                      "max_error = %g: errors cannot be estimated, %s",
                                      s->max_error, note),
                            s->place);
    }
    return CRD_OK;
}

// Part of the run that is behind; 1 where it has no end.
static double elapsed(const crd_master* m)
{
    const crdi_times* t = &m->plan->times;
    return m->plan->opt.open_end ? 1 : (m->clock.time - t->start) / (t->stop - t->start);
}

static void pass(crd_master* m, const char* what, const char* of, double is, const char* option,
                 double limit)
{
    crdi_guard* g = &m->guard;
    g->state = CRD_GUARD_LIMIT;
    g->time = m->clock.time;
    snprintf(g->text, sizeof g->text,
             "at t = %.6g s %s %.3g %% of %s, more than %s = %.3g %% allows for the whole run",
             m->clock.time, what, 100 * is, of, option, 100 * limit);
    g->help[0] = 0;
    crdi_guard_stop(m);
}

static double defect_of(const crd_master* m, const crdi_connection* k)
{
    const crdi_prediction* f = k->prediction;
    const double time = m->clock.time - m->plan->times.start;
    if (f) {
        const bool any = f->connection.steps > 0 || f->connection.broken > 0;
        return any ? crd_defect_rms(&f->connection) / crdi_prediction_scale(f) : 0;
    }
    const crdi_observed* w = k->observed;
    return w && time > 0 ? sqrt(w->integral / time) / crdi_observed_scale(w) : 0;
}

static double error_of(const crd_master* m, const crdi_connection* k)
{
    double rms = 0, max = 0;
    if (!k->prediction && !k->observed) { return 0; }
    crdi_estimate_of(m, k->from.member, k->from.slot, &rms, &max);
    const double scale =
        k->prediction ? crdi_prediction_scale(k->prediction) : crdi_observed_scale(k->observed);
    return fabs(k->gain) * rms / scale;
}

// One that does not grow any more: given, or that of a loop that was seen to explode.
static bool has_scale(const crdi_connection* k)
{
    return k->spec->scale > 0 || (k->prediction && k->prediction->scale_given > 0) ||
           (k->observed && k->observed->frozen > 0);
}

typedef double measure(const crd_master* m, const crdi_connection* k);

static void watch_connections(crd_master* m, double limit, double part, bool errors)
{
    measure* const of = errors ? error_of : defect_of;
    for (int i = 0; i < m->plan->connection_count && !m->guard.stopped; i++) {
        const crdi_connection* k = &m->plan->connections[i];
        const double is = of(m, k);
        const double scales = has_scale(k) ? 1 : part / growth_of_scales;
        if (!(is * sqrt(part) * scales > limit)) { continue; }
        char what[400];
        const char* from = crdi_end_name(m->plan, &m->arena, &k->from);
        const char* to = crdi_end_name(m->plan, &m->arena, &k->to);
        snprintf(what, sizeof what, "the %s of %s -> %s has become",
                 errors ? "estimated error" : "defect", from ? from : "", to ? to : "");
        pass(m, what, "its scale", is, errors ? "--max-error" : "--max-defect", limit);
    }
}

static void watch_bonds(crd_master* m, double limit, double part)
{
    for (int i = 0; i < m->energy.bond_count && !m->guard.stopped; i++) {
        crd_bond_report b;
        char what[400];
        crdi_bond_report(&m->energy.bonds[i], &b);
        if (!(fabs(b.relative) * part > limit)) { continue; }
        snprintf(what, sizeof what, "bond '%s' has %s", b.name, b.relative < 0 ? "lost" : "put in");
        pass(m, what, "the energy that passed it", fabs(b.relative), "--max-energy", limit);
    }
}

bool crdi_guard_is_limited(const crd_master* m)
{
    return m->guard.limited;
}

void crdi_guard_watch_limits(crd_master* m)
{
    const crd_guard_spec* s = &m->guard.spec;
    const double part = elapsed(m);
    if (m->clock.n < LEAST_STEPS) { return; }
    if (is_set(s->max_defect)) { watch_connections(m, s->max_defect, part, false); }
    if (is_set(s->max_error)) { watch_connections(m, s->max_error, part, true); }
    if (is_set(s->max_energy)) { watch_bonds(m, s->max_energy, part); }
}
