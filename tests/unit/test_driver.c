// A driver: levers that go where a page says, and what they do when it is silent.
#include <math.h>
#include <stdio.h>

#include "unit_test.h"

#include "shared/unit_seat.h"

enum { PAGE = 7, OTHER = 8 };
enum { SILENCE = 64 };             // steps
static const double H = 1.0 / 128; // s, so that sums of it are exact

static const crd_lever_spec levers[] = {
    {.name = "accelerator", .unit = "%", .min = 0, .max = 100, .rate = 200, .gamepad = ""},
    {.name = "brake", .unit = "%", .min = 0, .max = 100, .rate = 50, .rest = 30, .gamepad = ""},
    {.name = "gear",
     .unit = "",
     .min = 0,
     .max = 5,
     .rate = INFINITY,
     .whole = true,
     .gamepad = ""},
};

typedef struct rig {
    crd_context* ctx;
    crd_unit_spec spec;
    crd_unit* unit;
    crdi_seat* seat;
    bound out;
    double t;
} rig;

static rig make_rig(bool stop)
{
    rig r = {.ctx = crd_context_create(NULL), .spec = crd_unit_spec_defaults()};
    r.spec.name = "human";
    r.spec.source = CRD_UNIT_DRIVER;
    r.spec.driver = (crd_driver_spec){levers, 3, 0.5, stop};
    return r;
}

static void begin(rig* r)
{
    if (crd_unit_create(r->ctx, &r->spec, &r->unit) < 0) { fail_msg("%s", crd_error_text(r->ctx)); }
    r->seat = crdi_unit_seat(r->unit);
    start(r->unit, 0, 100);
    r->out = bind_names(r->unit, "accelerator brake gear");
}

static void end(rig* r)
{
    unbind(&r->out);
    crd_unit_destroy(r->unit);
    crd_context_destroy(r->ctx);
}

// n steps; with a sign of life before each of them.
static void run_steps(rig* r, int n, bool alive)
{
    for (int i = 0; i < n; i++) {
        if (alive) { check_ok(crdi_seat_drive(r->seat, r->ctx, PAGE, NULL, 0)); }
        check_ok(r->unit->ops->step(r->unit, r->t, H));
        r->t += H;
    }
    get(&r->out);
}

static void nothing_moves_before_somebody_takes_it(void** state)
{
    (void)state;
    rig r = make_rig(false);
    begin(&r);
    const double full[] = {100, 100, 5};
    check_status(crdi_seat_drive(r.seat, r.ctx, PAGE, full, 3), CRD_E_STATE);
    check_status(crdi_seat_go(r.seat, r.ctx, PAGE, 0, 50, NAN), CRD_E_STATE);
    run_steps(&r, 100, false);
    check_near(r.out.v.real[0], 0, 0);
    check_near(r.out.v.real[1], 30, 0);
    check_ok(crdi_seat_take(r.seat, r.ctx, PAGE)); // nor by taking it
    run_steps(&r, 10, true);
    check_near(r.out.v.real[0], 0, 0);
    check_near(r.out.v.real[1], 30, 0);
    end(&r);
}

static void levers_go_to_their_targets_no_faster_than_their_rates(void** state)
{
    (void)state;
    rig r = make_rig(false);
    begin(&r);
    check_ok(crdi_seat_take(r.seat, r.ctx, PAGE));
    const double to[] = {40, 0, 3};
    check_ok(crdi_seat_drive(r.seat, r.ctx, PAGE, to, 3));
    double before = 0;
    for (int i = 1; i <= 30; i++) {
        run_steps(&r, 1, true);
        check_near(r.out.v.real[0], fmin(40, 200 * H * i), 1e-9);
        check_near(r.out.v.real[1], fmax(0, 30 - 50 * H * i), 1e-9);
        check(r.out.v.real[0] - before <= 200 * H + 1e-12);
        before = r.out.v.real[0];
    }
    check_near(r.out.v.real[2], 3, 0);
    check_ok(crdi_seat_go(r.seat, r.ctx, PAGE, 0, 80, 10)); // slower than it could
    run_steps(&r, 128, true);
    check_near(r.out.v.real[0], 50, 1e-9);
    check_ok(crdi_seat_go(r.seat, r.ctx, PAGE, 0, NAN, NAN)); // hold
    run_steps(&r, 100, true);
    check_near(r.out.v.real[0], 50, 1e-9);
    end(&r);
}

static void a_silent_page_loses_it_and_the_levers_go_to_rest(void** state)
{
    (void)state;
    rig r = make_rig(false);
    begin(&r);
    check_ok(crdi_seat_take(r.seat, r.ctx, PAGE));
    const double to[] = {100, 0, 3};
    check_ok(crdi_seat_drive(r.seat, r.ctx, PAGE, to, 3));
    run_steps(&r, 100, true);
    check_near(r.out.v.real[0], 100, 0);
    run_steps(&r, SILENCE - 1, false); // up to the silence it stays
    check_near(r.out.v.real[0], 100, 0);
    check_int(atomic_load(&r.seat->holder), PAGE);
    run_steps(&r, 1, false);
    check_int(atomic_load(&r.seat->holder), 0);
    check_int(atomic_load(&r.seat->lost), 1);
    check_near(r.out.v.real[0], 100 - 200 * H, 1e-9);
    run_steps(&r, 100, false);
    check_near(r.out.v.real[0], 0, 0);
    check_near(r.out.v.real[1], 30, 1e-9);
    check_near(r.out.v.real[2], 0, 0);
    check_status(crdi_seat_drive(r.seat, r.ctx, PAGE, to, 3), CRD_E_STATE); // it wakes up: nothing
    run_steps(&r, 10, false);
    check_near(r.out.v.real[0], 0, 0);
    check(!r.unit->wants_stop);
    end(&r);
}

static void a_desk_without_anybody_ends_the_run_and_moves_nothing_meanwhile(void** state)
{
    (void)state;
    rig r = make_rig(true);
    begin(&r);
    check_ok(crdi_seat_take(r.seat, r.ctx, PAGE));
    check_ok(crdi_seat_go(r.seat, r.ctx, PAGE, 0, 60, NAN));
    run_steps(&r, 100, true);
    run_steps(&r, SILENCE - 1, false);
    check(!r.unit->wants_stop);
    run_steps(&r, 1, false);
    check(r.unit->wants_stop); // the bench has an order for its stop
    check_near(r.out.v.real[0], 60, 0);
    end(&r);
    rig never = make_rig(true); // nobody came at all
    begin(&never);
    run_steps(&never, SILENCE, false);
    check(!never.unit->wants_stop);
    run_steps(&never, 1, false);
    check(never.unit->wants_stop);
    end(&never);
}

static void one_page_has_it_at_a_time(void** state)
{
    (void)state;
    rig r = make_rig(false);
    begin(&r);
    check_ok(crdi_seat_take(r.seat, r.ctx, PAGE));
    check_status(crdi_seat_take(r.seat, r.ctx, OTHER), CRD_E_STATE);
    check_contains(crd_error_text(r.ctx), "another page has 'human'");
    check_status(crdi_seat_release(r.seat, r.ctx, OTHER), CRD_E_STATE);
    check_status(crdi_seat_go(r.seat, r.ctx, OTHER, 0, 5, NAN), CRD_E_STATE);
    check_ok(crdi_seat_go(r.seat, r.ctx, PAGE, 0, 20, NAN));
    run_steps(&r, 30, true);
    crdi_seat_leave(r.seat, OTHER); // not its
    check_status(crdi_seat_take(r.seat, r.ctx, OTHER), CRD_E_STATE);
    crdi_seat_leave(r.seat, PAGE); // closed, and another one comes in time: nothing moves
    check_ok(crdi_seat_take(r.seat, r.ctx, OTHER));
    run_steps(&r, 5, false);
    check_near(r.out.v.real[0], 20, 1e-9);
    check_ok(crdi_seat_release(r.seat, r.ctx, OTHER));
    run_steps(&r, 1, false); // at rest from the next step on
    check_near(r.out.v.real[0], 20 - 200 * H, 1e-9);
    check_ok(crdi_seat_take(r.seat, r.ctx, PAGE)); // the old target is forgotten
    run_steps(&r, 100, true);
    check_near(r.out.v.real[0], 0, 0);
    end(&r);
}

static void targets_that_cannot_be_are_refused_and_change_nothing(void** state)
{
    (void)state;
    rig r = make_rig(false);
    begin(&r);
    check_ok(crdi_seat_take(r.seat, r.ctx, PAGE));
    const double wrong[][3] = {{101, 0, 0}, {0, -1, 0}, {0, 0, 2.5}, {NAN, 0, 0}, {0, INFINITY, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_status(crdi_seat_drive(r.seat, r.ctx, PAGE, wrong[i], 3), CRD_E_RANGE);
    }
    check_status(crdi_seat_drive(r.seat, r.ctx, PAGE, wrong[0], 2), CRD_E_RANGE);
    check_contains(crd_error_text(r.ctx), "expected 3, one for each lever");
    check_status(crdi_seat_go(r.seat, r.ctx, PAGE, 0, 101, NAN), CRD_E_RANGE);
    check_contains(crd_error_text(r.ctx), "human.accelerator = 101 %, expected 0 to 100 %");
    check_status(crdi_seat_go(r.seat, r.ctx, PAGE, 0, 50, 201), CRD_E_RANGE);
    check_contains(crd_error_text(r.ctx), "up to 200 %/s");
    check_status(crdi_seat_go(r.seat, r.ctx, PAGE, 0, 50, 0), CRD_E_RANGE);
    check_status(crdi_seat_go(r.seat, r.ctx, PAGE, 0, 50, INFINITY), CRD_E_RANGE);
    run_steps(&r, 20, true);
    check_near(r.out.v.real[0], 0, 0);
    check_near(r.out.v.real[1], 30, 0);
    end(&r);
}

static void steps_do_not_allocate(void** state)
{
    (void)state;
    check_allocator a;
    rig r = make_rig(false);
    crd_context_destroy(r.ctx);
    r.ctx = check_context(&a);
    crd_unit* u = make(r.ctx, &r.spec);
    start(u, 0, 100);
    check_ok(crdi_seat_take(crdi_unit_seat(u), r.ctx, PAGE));
    check_steps_do_not_allocate(&a, u, "", "accelerator brake gear", 0.001);
    crd_unit_destroy(u);
    crd_context_destroy(r.ctx);
    check_int(a.live, 0);
}

static void lack_of_memory_is_survived(void** state)
{
    (void)state;
    rig r = make_rig(false);
    check_survives_lack_of_memory(&r.spec);
    crd_context_destroy(r.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_moves_before_somebody_takes_it),
        cmocka_unit_test(levers_go_to_their_targets_no_faster_than_their_rates),
        cmocka_unit_test(a_silent_page_loses_it_and_the_levers_go_to_rest),
        cmocka_unit_test(a_desk_without_anybody_ends_the_run_and_moves_nothing_meanwhile),
        cmocka_unit_test(one_page_has_it_at_a_time),
        cmocka_unit_test(targets_that_cannot_be_are_refused_and_change_nothing),
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(lack_of_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
