// `predict: auto` against hold on random linear systems with exact solutions, as black boxes and
// where units can be linearised. `test_master_never_worse 2000` tries so many, with `list` it says
// which were worse; AUTO_SEED is the seed before the first.
#include "check.h"
#include "random_linear.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct outcome {
    double c, noise, gain;
} outcome;

typedef struct survey {
    int systems, lost; // compared; hold itself is unstable
    int above, twice, unstable;
    double worst, gain; // chosen / hold; median without noise at c < 0.1
} survey;

static int systems = 300;
static bool lists;

static int by_value(const void* a, const void* b)
{
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static double median_gain(const outcome* o, int count, double low, double high)
{
    double* gains = calloc((size_t)count + 1, sizeof *gains);
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (o[i].c >= low && o[i].c < high && o[i].noise == 0) { gains[n++] = o[i].gain; }
    }
    qsort(gains, (size_t)n, sizeof *gains, by_value);
    const double median = n ? gains[n / 2] : NAN;
    free(gains);
    return median;
}

// What is asked here is asked of the prediction alone.
static void without_guard(void* user, crd_system* s)
{
    (void)user;
    s->run.guard.action = CRD_GUARD_NONE;
}

static void tell(uint64_t seed, const random_traits* t, double hold, double chosen)
{
    printf("%5d: %d units %s%s%s%s out %d in %d %s%s%s c %.3g gain %.2g stiff %.3g: hold %.4g, "
           "auto %.4g, %.3g\n",
           (int)seed, t->units, t->gauss_seidel ? "gs " : "jacobi ", t->multirate ? "multi " : "",
           t->feedthrough ? "through " : "", t->refresh ? "fresh" : "stale", t->output_order,
           t->input_order, t->noise > 0 ? "noise " : "", t->jump ? "jump " : "",
           t->forced ? "forced" : "free", t->c, t->gain, t->stiffness, hold, chosen, chosen / hold);
}

static double error_of(random_linear* s, crd_prediction predict, bool black_box)
{
    const random_run run = {.predict = predict, .black_box = black_box, .change = without_guard};
    return random_linear_run(s, &run).total;
}

static survey ask(bool black_box)
{
    survey r = {0};
    outcome* o = calloc((size_t)systems, sizeof *o);
    const char* text = getenv("AUTO_SEED");
    const uint64_t before = text ? strtoull(text, NULL, 10) : 0;
    for (uint64_t seed = before + 1; seed <= before + (uint64_t)systems; seed++) {
        const random_traits t = random_traits_of(seed);
        random_linear* s = random_linear_create(seed, &t);
        check(o && s);
        const double hold = error_of(s, CRD_PREDICTION_HOLD, black_box);
        const double chosen = error_of(s, CRD_PREDICTION_AUTO, black_box), ratio = chosen / hold;
        random_linear_destroy(s);
        if (!(hold < 10)) {
            r.lost++;
            continue;
        }
        if (lists && !(ratio <= 1.2)) { tell(seed, &t, hold, chosen); }
        o[r.systems++] = (outcome){t.c, t.noise, hold / chosen};
        r.above += !(ratio <= 1.2);
        r.twice += !(ratio <= 2);
        r.unstable += !(ratio <= 1000);
        r.worst = fmax(r.worst, ratio);
    }
    r.gain = median_gain(o, r.systems, 0, 0.1);
    printf("%s, %d systems, hold unstable in %d more: above 1.2 hold %d (%.2f %%), above 2 %d, "
           "unstable %d, worst %.3g; median gain without noise at c < 0.1: %.3g, 0.1 .. 0.5: %.3g, "
           "above: %.3g\n",
           black_box ? "black box" : "linearised", r.systems, r.lost, r.above,
           100.0 * r.above / r.systems, r.twice, r.unstable, r.worst, r.gain,
           median_gain(o, r.systems, 0.1, 0.5), median_gain(o, r.systems, 0.5, 9));
    free(o);
    return r;
}

// Of 4,382 systems that nothing was chosen on (AUTO_SEED=9000000, 4500) 3 were above 1.2 times hold
// as black boxes, none above 1.65. Others (AUTO_SEED=5500000, 4000) have two above twice: what a
// jump inside a step kept from the others is the same for all, and the error that hold had before
// makes up for it by chance.
static void check_survey(const survey* r, double above, double gain)
{
    check(r->systems > 0.9 * systems);
    check_int(r->unstable, 0);
    check_int(r->twice, 0);
    check(r->above <= above * r->systems + (systems < 1000));
    check(r->gain >= gain);
}

static void nothing_known_of_units_prediction_is_not_worse_than_hold(void** state)
{
    (void)state;
    const survey r = ask(true);
    check_survey(&r, 0.002, 5);
}

static void units_linearised_prediction_is_much_better_than_hold(void** state)
{
    (void)state;
    const survey r = ask(false);
    check_survey(&r, 0.002, 40);
}

// The second order makes this loop grow by 0.8 % a step, too slowly to ring: 1e10 in all.
static void a_loop_that_swings_up_slowly_stays_bounded(void** state)
{
    (void)state;
    random_traits t = random_traits_of(601194);
    t.steps = 3000;
    random_linear* s = random_linear_create(601194, &t);
    check(s);
    const double hold = error_of(s, CRD_PREDICTION_HOLD, true);
    const double chosen = error_of(s, CRD_PREDICTION_AUTO, true);
    printf("hold %.3g, auto %.3g of the signals\n", hold, chosen);
    check(hold < 1);
    check(chosen < 5); // some times the size of the signals before somebody notices
    random_linear_destroy(s);
}

int main(int argc, char** argv)
{
    systems = argc > 1 ? atoi(argv[1]) : systems;
    lists = argc > 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_known_of_units_prediction_is_not_worse_than_hold),
        cmocka_unit_test(units_linearised_prediction_is_much_better_than_hold),
        cmocka_unit_test(a_loop_that_swings_up_slowly_stays_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
