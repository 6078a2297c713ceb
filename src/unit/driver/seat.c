#include "shared/base.h"
#include "shared/unit_seat.h"

#include <math.h>

static void seat_rest(crdi_seat* s)
{
    for (int i = 0; i < s->driver->lever_count; i++) {
        atomic_store(&s->goals[i].target, s->driver->levers[i].rest);
        atomic_store(&s->goals[i].rate, s->driver->levers[i].rate);
    }
}

crd_status crdi_seat_take(crdi_seat* s, crd_context* ctx, int64_t page)
{
    long long had = atomic_load(&s->holder);
    do {
        if (had != 0 && had != page && !atomic_load(&s->gone)) {
            return crdi_fail(ctx, CRD_E_STATE,
                             "another page has '%s': it has to give it back, or be silent for %g s",
                             s->name, s->driver->silence);
        }
        if (had == 0) { seat_rest(s); } // nobody looks at them while nobody has it
    } while (!atomic_compare_exchange_weak(&s->holder, &had, page));
    atomic_store(&s->gone, false);
    atomic_fetch_add(&s->signs, 1);
    return CRD_OK;
}

static crd_status check_holder(const crdi_seat* s, crd_context* ctx, int64_t page)
{
    if (atomic_load(&s->holder) == page) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_STATE,
                     "this page does not have '%s' (any more): it has to take it first", s->name);
}

crd_status crdi_seat_release(crdi_seat* s, crd_context* ctx, int64_t page)
{
    long long had = page;
    if (atomic_compare_exchange_strong(&s->holder, &had, 0)) { return CRD_OK; }
    return check_holder(s, ctx, page);
}

void crdi_seat_leave(crdi_seat* s, int64_t page)
{
    if (atomic_load(&s->holder) == page) { atomic_store(&s->gone, true); }
}

static crd_status check_target(const crdi_seat* s, crd_context* ctx, int lever, double x)
{
    const crd_lever_spec* l = &s->driver->levers[lever];
    const char* unit = l->unit[0] ? " " : "";
    if (!isfinite(x) || x < l->min || x > l->max) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s.%s = %.10g%s%s, expected %.10g to %.10g%s%s",
                         s->name, l->name, x, unit, l->unit, l->min, l->max, unit, l->unit);
    }
    if (l->whole && x != floor(x)) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s.%s = %.10g, expected a whole number", s->name,
                         l->name, x);
    }
    return CRD_OK;
}

crd_status crdi_seat_drive(crdi_seat* s, crd_context* ctx, int64_t page, const double* values,
                           int count)
{
    crd_status st = CRD_OK;
    CRD_TRY(check_holder(s, ctx, page));
    if (count != 0 && count != s->driver->lever_count) {
        return crdi_fail(ctx, CRD_E_RANGE, "%d values for '%s', expected %d, one for each lever",
                         count, s->name, s->driver->lever_count);
    }
    for (int i = 0; i < count; i++) {
        CRD_TRY(check_target(s, ctx, i, values[i]));
    }
    for (int i = 0; i < count; i++) {
        atomic_store(&s->goals[i].rate, s->driver->levers[i].rate);
        atomic_store(&s->goals[i].target, values[i]);
    }
    atomic_fetch_add(&s->signs, 1);
fail:
    return st;
}

crd_status crdi_seat_go(crdi_seat* s, crd_context* ctx, int64_t page, int lever, double target,
                        double rate)
{
    crd_status st = CRD_OK;
    const crd_lever_spec* l = &s->driver->levers[lever];
    CRD_TRY(check_holder(s, ctx, page));
    if (!isnan(target)) { CRD_TRY(check_target(s, ctx, lever, target)); }
    if (!isnan(rate) && !(rate > 0 && rate <= l->rate)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s.%s: rate = %.10g, expected above 0 and up to %.10g %s/s", s->name,
                         l->name, rate, l->rate, l->unit);
    }
    atomic_store(&s->goals[lever].rate, isnan(rate) ? l->rate : rate);
    atomic_store(&s->goals[lever].target, target);
    atomic_fetch_add(&s->signs, 1);
fail:
    return st;
}

bool crdi_seat_expire(crdi_seat* s, int64_t holder)
{
    long long had = holder;
    if (!atomic_compare_exchange_strong(&s->holder, &had, 0)) { return false; }
    atomic_fetch_add(&s->lost, 1);
    return true;
}
