// Why a loop does not hold, and what would hold it: tried on its map.
#include "master/master.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Growth over the run that nobody minds, ln 2.
static const double harmless = 0.693;

static bool holds_at(const crd_master* m, crdi_guard_loop* l, double tick)
{
    double excess = INFINITY;
    const crdi_times* t = &m->plan->times;
    return crdi_guard_try_tick(l, tick, &excess) && excess * (t->stop - t->start) / tick < harmless;
}

// The longest easy step below the present one that holds, 0: none within a thousandth.
static double find_step(const crd_master* m, crdi_guard_loop* l)
{
    static const double easy[] = {8, 5, 4, 2.5, 2, 1};
    const double now = m->plan->times.tick;
    double found = 0;
    for (double power = pow(10, floor(log10(now) + 1e-9)); power >= 1e-4 * now && found == 0;
         power /= 10) {
        for (int i = 0; i < 6 && found == 0; i++) {
            const double tick = easy[i] * power;
            if (tick < now * (1 - 1e-9) && tick > 1e-3 * now && holds_at(m, l, tick)) {
                found = tick;
            }
        }
    }
    (void)crdi_macro_set_tick(&l->macro, now);
    return found;
}

static bool is_jacobi(const crdi_guard_loop* l)
{
    for (int i = 0; i < l->macro.unit_count; i++) {
        if (l->macro.units[i].phase != l->macro.units[0].phase) { return false; }
    }
    return l->macro.period == 1;
}

// Each unit in a phase of its own, in the order of writing.
static bool gauss_seidel_holds(const crd_master* m, crdi_guard_loop* l)
{
    if (!is_jacobi(l) || l->macro.unit_count > 16) { return false; }
    int phase[16] = {0};
    crdi_macro* c = &l->macro;
    const int phases = c->phases;
    for (int i = 0; i < c->unit_count; i++) {
        phase[i] = c->units[i].phase;
        c->units[i].phase = i;
    }
    for (int i = 0; i < c->link_count; i++) {
        c->links[i].phase = c->links[i].to_unit;
        c->links[i].early = c->links[i].tap_count > 0;
    }
    c->phases = c->unit_count;
    const bool holds = holds_at(m, l, c->tick);
    for (int i = 0; i < c->unit_count; i++) {
        c->units[i].phase = phase[i];
    }
    for (int i = 0; i < c->link_count; i++) {
        c->links[i].phase = l->links[i].phase;
        c->links[i].early = l->links[i].early;
    }
    c->phases = phases;
    return holds;
}

static bool all_save(const crd_master* m, const crdi_guard_loop* l)
{
    bool all = !m->plan->times.multirate && l->coupled < 0;
    for (int i = 0; i < l->member_count; i++) {
        all = all && crdi_member_saves(&m->plan->members[l->members[i]]);
    }
    return all;
}

static void add(char* text, size_t size, size_t* n, const char* what)
{
    if (*n < size) {
        *n += (size_t)snprintf(text + *n, size - *n, "%s%s", *n ? ", or " : "", what);
    }
}

void crdi_guard_advise(crd_master* m, crdi_guard_loop* l, char* text, size_t size)
{
    size_t n = 0;
    char one[120];
    text[0] = 0;
    if (l->unknown) { return; }
    const double step = find_step(m, l);
    if (step > 0) {
        snprintf(one, sizeof one, "a step of %s", crdi_duration_text(step, 3).text);
        add(text, size, &n, one);
    }
    const double ticks = (double)m->plan->times.tick_count;
    if (!l->selects && l->coupled < 0 && crdi_guard_try_level(m, l, 0, 2) * ticks < harmless) {
        add(text, size, &n, "'predict: auto'");
    }
    if (gauss_seidel_holds(m, l)) { add(text, size, &n, "'scheme: gauss-seidel'"); }
    if (all_save(m, l)) { add(text, size, &n, "'iterate: true'"); }
    if (n > 0 && n < size) { snprintf(text + n, size - n, " would hold it"); }
    if (n == 0) { snprintf(text, size, "no step down to a thousandth would hold it"); }
}

// The unit whose own eigenvalues are the fastest against its step.
static const char* fastest_unit(const crd_master* m, const crdi_guard_loop* l)
{
    int found = 0;
    double most = -1;
    for (int i = 0; i < l->member_count; i++) {
        const crdi_macro_unit* u = &l->macro.units[i];
        double size = 0; // the largest diagonal or geometric mean of a pair: no allocation
        for (int a = 0; a < u->states; a++) {
            for (int b = 0; b <= a; b++) {
                const double x = sqrt(fabs(u->A[a * u->states + b] * u->A[b * u->states + a]));
                size = fmax(size, x * u->ticks);
            }
        }
        if (size > most) {
            most = size;
            found = i;
        }
    }
    return m->plan->members[l->members[found]].unit->name;
}

void crdi_guard_explain(crd_master* m, crdi_guard_loop* l, char* text, size_t size)
{
    const char* step = crdi_duration_text(m->plan->times.tick, 4).text;
    if (l->unknown) {
        snprintf(text, size, "%s", l->unknown);
    } else if (l->coupled >= 0) {
        const crdi_connection* k = &m->plan->connections[l->coupled];
        const char* to = crdi_end_name(m->plan, &m->arena, &k->to);
        snprintf(text, size, "the samples on their way to %s come too late for it", to ? to : "");
    } else if (!l->selects &&
               crdi_guard_try_level(m, l, 0, 0) * (double)m->plan->times.tick_count < harmless) {
        snprintf(text, size, "it is the prediction: held values would not diverge");
    } else {
        snprintf(text, size, "a step of %s is too long for it, '%s' is the fastest unit", step,
                 fastest_unit(m, l));
    }
}
