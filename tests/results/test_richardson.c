#include "cardan/results.h"
#include "check.h"

#include <stdio.h>

enum { TEXT = 1 << 16 };

static crd_table* parse(crd_context* ctx, const char* name, const char* text)
{
    crd_table* t = NULL;
    check_ok(crd_table_parse(ctx, text, strlen(text), name, &t));
    return t;
}

// A run over 0 .. 2 s with the step h of signals whose errors are known:
// x = sin(3 t) + c t h^p, y = 2 + (0.3 - t) c h^p, both with the same p.
static crd_table* run(crd_context* ctx, const char* name, double h, double p, double c)
{
    static char text[TEXT];
    size_t n = (size_t)snprintf(text, sizeof text, "time,x,y\n");
    const int steps = (int)lround(2 / h);
    for (int i = 0; i <= steps; i++) {
        const double t = i * h, e = c * pow(h, p);
        n += (size_t)snprintf(text + n, sizeof text - n, "%.17g,%.17g,%.17g\n", t,
                              sin(3 * t) + t * e, 2 + (0.3 - t) * e);
        check(n < sizeof text);
    }
    return parse(ctx, name, text);
}

// Estimates from texts, which are not needed afterwards.
static crd_status of_texts(crd_context* ctx, const char* const* texts, int count,
                           const crd_richardson_options* opt, crd_richardson** out)
{
    static const char* const names[] = {"a.csv", "b.csv", "c.csv"};
    crd_table* runs[3] = {NULL};
    for (int i = 0; i < count; i++) {
        runs[i] = parse(ctx, names[i], texts[i]);
    }
    const crd_status st =
        crd_richardson_create(ctx, (const crd_table* const*)runs, count, opt, out);
    for (int i = 0; i < count; i++) {
        crd_table_destroy(runs[i]);
    }
    return st;
}

static void two_runs_and_the_order_give_the_errors_of_both(void** state)
{
    static const double orders[] = {0.5, 1, 2, 3, 4};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        const double p = orders[i], h = 0.1, error = 0.7 * pow(h, p);
        const crd_table* runs[] = {run(*state, "a.csv", h, p, 0.7),
                                   run(*state, "b.csv", h / 2, p, 0.7)};
        crd_richardson_options opt = crd_richardson_defaults();
        opt.order = p;
        crd_richardson* r = NULL;
        check_ok(crd_richardson_create(*state, runs, 2, &opt, &r));
        check_int(r->signal_count, 2);
        check_near(r->ratios[0], 2, 0);
        check_near(r->start, 0, 0);
        check_near(r->stop, 2, 0);
        const crd_richardson_signal* x = &r->signals[0];
        check_text(x->name, "x");
        check_int(x->state, CRD_RICHARDSON_GOOD);
        check_int(x->rows, 21);
        check_int(x->of_rows, 21);
        check_near(x->order, p, 0);
        check(isnan(x->observed));
        // t e, largest at the end: 2 e, of the finer run 2 e / 2^p
        check_near(x->errors[0].max, 2 * error, 1e-12);
        check_near(x->errors[0].max_time, 2, 0);
        check_near(x->errors[1].max, 2 * error / pow(2, p), 1e-12);
        check_near(x->errors[1].relative, x->errors[1].max / x->scale, 1e-15);
        // RMS of t over 0, 0.1 ... 2: the sum of n^2 up to 20 is 2870
        check_near(x->errors[0].rms, error * sqrt(28.70 / 21), 1e-12);
        check_near(x->end_time, 2, 0);
        check_near(x->end, sin(6) + 2 * error / pow(2, p), 1e-12);
        check_near(x->extrapolated, sin(6), 1e-12); // so the sign is right as well
        const crd_richardson_signal* y = &r->signals[1];
        check_near(y->errors[1].max, 1.7 * error / pow(2, p), 1e-12);
        check_near(y->scale, 2 + 0.3 * error / pow(2, p), 1e-12);
        check_near(y->extrapolated, 2, 1e-12);
        crd_richardson_destroy(r);
        crd_table_destroy((crd_table*)runs[0]);
        crd_table_destroy((crd_table*)runs[1]);
    }
}

static void order_is_1_and_the_ratio_is_seen_in_the_rows_unless_given(void** state)
{
    const crd_table* runs[] = {run(*state, "a.csv", 0.1, 1, 0.7),
                               run(*state, "b.csv", 0.02, 1, 0.7)};
    crd_richardson* r = NULL;
    check_ok(crd_richardson_create(*state, runs, 2, NULL, &r));
    check_near(r->ratios[0], 5, 0);
    check_near(r->signals[0].order, 1, 0);
    check_near(r->signals[0].errors[0].max, 2 * 0.07, 1e-12);
    check_near(r->signals[0].errors[1].max, 2 * 0.014, 1e-12);
    crd_richardson_destroy(r);
    // Rows do not have to tell the step.
    crd_richardson_options opt = crd_richardson_defaults();
    opt.ratios[0] = 3;
    opt.order = 2;
    check_ok(crd_richardson_create(*state, runs, 2, &opt, &r));
    check_near(r->signals[0].errors[1].max, 2 * (0.07 - 0.014) / (9 - 1), 1e-12);
    check_near(r->signals[0].errors[0].max, 2 * (0.07 - 0.014) * 9 / (9 - 1), 1e-12);
    crd_richardson_destroy(r);
    crd_table_destroy((crd_table*)runs[0]);
    crd_table_destroy((crd_table*)runs[1]);
}

static void three_runs_show_the_order(void** state)
{
    static const struct {
        double p, r1, r2;
    } cases[] = {{1, 2, 2}, {2, 2, 2}, {0.5, 2, 2}, {3.7, 2, 2}, {4, 2, 2},
                 {1, 2, 5}, {2, 5, 2}, {1.5, 4, 2}, {2, 2.5, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double p = cases[i].p, h = 0.1, h1 = h / cases[i].r1, h2 = h1 / cases[i].r2;
        const crd_table* runs[] = {run(*state, "a.csv", h, p, -0.7),
                                   run(*state, "b.csv", h1, p, -0.7),
                                   run(*state, "c.csv", h2, p, -0.7)};
        crd_richardson* r = NULL;
        check_ok(crd_richardson_create(*state, runs, 3, NULL, &r));
        check_near(r->ratios[0], cases[i].r1, 1e-9);
        check_near(r->ratios[1], cases[i].r2, 1e-9);
        for (int k = 0; k < 2; k++) {
            const crd_richardson_signal* s = &r->signals[k];
            const double size = 0.7 * (k == 0 ? 2 : 1.7);
            check_int(s->state, CRD_RICHARDSON_GOOD);
            check_near(s->observed, p, 1e-6);
            check_near(s->order, s->observed, 0);
            check_near(s->errors[0].max, size * pow(h, p), 1e-9);
            check_near(s->errors[1].max, size * pow(h1, p), 1e-9);
            check_near(s->errors[2].max, size * pow(h2, p), 1e-9);
            check_near(s->extrapolated, k == 0 ? sin(6) : 2, 1e-9);
        }
        crd_richardson_destroy(r);
        for (int k = 0; k < 3; k++) {
            crd_table_destroy((crd_table*)runs[k]);
        }
    }
}

static void observed_orders_have_bounds(void** state)
{
    check_near(crd_richardson_order(4, 1, 2, 2), 2, 1e-12);
    check_near(crd_richardson_order(256, 1, 2, 2), 8, 1e-9);
    check_near(crd_richardson_order(pow(2, 0.1), 1, 2, 2), 0.1, 1e-9);
    check_near(crd_richardson_order(27e-300, 1e-300, 3, 3), 3, 1e-12);
    check(isnan(crd_richardson_order(260, 1, 2, 2)));
    check(isnan(crd_richardson_order(1, 1, 2, 2)));
    check(isnan(crd_richardson_order(1, 2, 2, 2))); // it would be -1
    check(isnan(crd_richardson_order(1, 0, 2, 2)));
    check(isnan(crd_richardson_order(0, 0, 2, 2)));
    check(isnan(crd_richardson_order((double)NAN, 1, 2, 2)));
    check(isnan(crd_richardson_order(4, 1, 1, 2)));
    check(isnan(crd_richardson_order(4, 1, 2, 0.5)));
}

static void differences_that_no_order_explains_give_no_errors(void** state)
{
    // x: the differences grow; y: 1000 times smaller
    const char* const texts[] = {
        "time,x,y\n0,1,2\n1,1,2\n2,1,2\n",
        "time,x,y\n0,1.1,1\n0.5,0,0\n1,1.1,1\n1.5,0,0\n2,1.1,1\n",
        ("time,x,y\n0,1.3,0.999\n0.25,0,0\n0.5,0,0\n0.75,0,0\n1,1.3,0.999\n1.25,0,0\n1.5,0,0\n"
         "1.75,0,0\n2,1.3,0.999\n")};
    crd_richardson* r = NULL;
    check_ok(of_texts(*state, texts, 3, NULL, &r));
    for (int i = 0; i < 2; i++) {
        const crd_richardson_signal* s = &r->signals[i];
        check_int(s->state, CRD_RICHARDSON_IRREGULAR);
        check(isnan(s->observed) && isnan(s->order) && isnan(s->extrapolated));
        check(isnan(s->errors[2].rms) && isnan(s->errors[2].relative));
        check_near(s->differences[0], i == 0 ? 0.1 : 1, 1e-12);
        check_near(s->differences[1], i == 0 ? 0.2 : 0.001, 1e-12);
    }
    crd_richardson_destroy(r);
    // Who gives the order gets what follows from it.
    crd_richardson_options opt = crd_richardson_defaults();
    opt.order = 1;
    check_ok(of_texts(*state, texts, 3, &opt, &r));
    check_int(r->signals[0].state, CRD_RICHARDSON_IRREGULAR);
    check(isnan(r->signals[0].observed));
    check_near(r->signals[0].errors[2].max, 0.2, 1e-12);
    check_near(r->signals[0].errors[1].max, 0.4, 1e-12);
    check_near(r->signals[0].errors[0].max, 0.5, 1e-12);
    check_near(r->signals[0].extrapolated, 1.5, 1e-12);
    crd_richardson_destroy(r);
}

static void constants_and_rounding_have_no_order(void** state)
{
    const char* const texts[] = {
        "time,c,z,r\n0,5,0,1\n1,5,0,1.0000000000000007\n2,5,0,1\n",
        "time,c,z,r\n0,5,0,1\n0.5,5,0,1\n1,5,0,1\n1.5,5,0,1\n2,5,0,1\n",
        ("time,c,z,r\n0,5,0,1\n0.25,5,0,1\n0.5,5,0,1\n0.75,5,0,1\n1,5,0,1.0000000000000002\n"
         "1.25,5,0,1\n1.5,5,0,1\n1.75,5,0,1\n2,5,0,1\n")};
    for (int count = 2; count <= 3; count++) {
        crd_richardson* r = NULL;
        check_ok(of_texts(*state, texts, count, NULL, &r));
        for (int i = 0; i < 3; i++) {
            const crd_richardson_signal* s = &r->signals[i];
            check_int(s->state, CRD_RICHARDSON_AGREE);
            check(isnan(s->observed));
            check_near(s->errors[count - 1].max, 0, 1e-15);
            check_near(s->errors[count - 1].relative, 0, 1e-15);
            check_near(s->extrapolated, s->end, 1e-15);
        }
        check_near(r->signals[0].scale, 5, 0);
        check_near(r->signals[1].scale, 0, 0);
        crd_richardson_destroy(r);
    }
    // What is rounding can be said.
    const char* const coarse[] = {"time,x\n0,1.01\n1,1\n2,1\n",
                                  "time,x\n0,1\n0.5,1\n1,1\n1.5,1\n2,1\n"};
    crd_richardson_options opt = crd_richardson_defaults();
    crd_richardson* r = NULL;
    check_ok(of_texts(*state, coarse, 2, &opt, &r));
    check_int(r->signals[0].state, CRD_RICHARDSON_GOOD);
    crd_richardson_destroy(r);
    opt.absolute = 0.006; // the RMS is 0.01 / sqrt(3)
    check_ok(of_texts(*state, coarse, 2, &opt, &r));
    check_int(r->signals[0].state, CRD_RICHARDSON_AGREE);
    crd_richardson_destroy(r);
}

static void an_error_of_a_signal_that_should_be_zero_is_infinite_relative_to_it(void** state)
{
    const char* const texts[] = {"time,x\n0,1\n1,1\n2,1\n",
                                 "time,x\n0,0\n0.5,0\n1,0\n1.5,0\n2,0\n"};
    crd_richardson* r = NULL;
    check_ok(of_texts(*state, texts, 2, NULL, &r));
    check_near(r->signals[0].errors[1].max, 1, 1e-15);
    check(isinf(r->signals[0].errors[1].relative));
    crd_richardson_destroy(r);
}

static void rows_without_numbers_are_left_out(void** state)
{
    const char* const texts[] = {"time,x,y\n0,1,1\n1,nan,2\n2,3,nan\n3,4,nan\n4,5,5\n",
                                 "time,x,y\n0,1.5,1\n0.5,9,9\n1,2,2\n1.5,nan,9\n2,3.5,3\n2.5,9,"
                                 "9\n3,inf,4\n3.5,9,9\n4,6,5\n"};
    crd_richardson* r = NULL;
    check_ok(of_texts(*state, texts, 2, NULL, &r));
    const crd_richardson_signal *x = &r->signals[0], *y = &r->signals[1];
    check_int(x->state, CRD_RICHARDSON_GOOD);
    check_int(x->rows, 3);
    check_int(x->skipped, 2);
    check_int(x->of_rows, 5);
    check_near(x->errors[1].max, 1, 1e-15);
    check_near(x->errors[1].max_time, 4, 0);
    check_near(x->errors[1].rms, sqrt((0.25 + 0.25 + 1) / 3), 1e-15);
    check_near(x->extrapolated, 7, 1e-15);
    check_int(y->state, CRD_RICHARDSON_AGREE);
    check_int(y->rows, 3);
    check_int(y->skipped, 2);
    crd_richardson_destroy(r);
    const char* const few[] = {"time,x\n0,1\n1,nan\n2,3\n",
                               "time,x\n0,1\n0.5,9\n1,2\n1.5,9\n2,3\n"};
    check_ok(of_texts(*state, few, 2, NULL, &r));
    check_int(r->signals[0].state, CRD_RICHARDSON_FEW);
    check_int(r->signals[0].rows, 2);
    check(isnan(r->signals[0].order) && isnan(r->signals[0].errors[0].max));
    crd_richardson_destroy(r);
}

static void only_times_that_all_have_are_compared(void** state)
{
    // Steps of 0.3 and 0.2: 0, 0.6, 1.2, 1.8 meet. What lies between would be wrong by a lot.
    const char* const texts[] = {"time,x\n0,1\n0.3,77\n0.6,2\n0.9,77\n1.2,3\n1.5,77\n1.8,4\n",
                                 "time,x\n0,1\n0.2,-9\n0.4,-9\n0.6000000000000001,2.5\n0.8,-9\n1,-"
                                 "9\n1.2000000000000002,3.5\n"
                                 "1.4,-9\n1.6,-9\n1.8,4.5\n"};
    crd_richardson* r = NULL;
    check_ok(of_texts(*state, texts, 2, NULL, &r));
    check_near(r->ratios[0], 1.5, 1e-9);
    check_int(r->signals[0].rows, 4);
    check_int(r->signals[0].of_rows, 7);
    check_near(r->signals[0].errors[1].max, 0.5 / (1.5 - 1), 1e-9);
    check_near(r->stop, 1.8, 0);
    crd_richardson_destroy(r);
    const char* const apart[] = {"time,x\n0,1\n1,1\n2,1\n3,1\n",
                                 "time,x\n0,1\n0.4999,1\n1.0001,1\n1.4999,1\n2.0001,1\n2.9,1\n"};
    check_status(of_texts(*state, apart, 2, NULL, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state),
                   "1 of the 4 times of a.csv is in b.csv as well, expected at least 3");
    const char* const third[] = {texts[0], texts[1], "time,x\n0,1\n0.1,1\n0.21,1\n0.33,1\n"};
    check_status(of_texts(*state, third, 3, NULL, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "1 of the 7 times of a.csv is in the others as well");
}

static void times_that_were_summed_up_meet(void** state)
{
    static char a[TEXT], b[TEXT];
    size_t n = (size_t)snprintf(a, sizeof a, "time,x\n"),
           m = (size_t)snprintf(b, sizeof b, "time,x\n");
    double sum = 0;
    for (int i = 0; i <= 1000; i++) {
        m += (size_t)snprintf(b + m, sizeof b - m, "%.17g,1\n", sum);
        if (i % 2 == 0) { n += (size_t)snprintf(a + n, sizeof a - n, "%.17g,2\n", i * 0.1); }
        sum += 0.1;
    }
    check(fabs(sum - 100.1) > 1e-13); // there is something to forgive
    const char* const texts[] = {a, b};
    crd_richardson* r = NULL;
    check_ok(of_texts(*state, texts, 2, NULL, &r));
    check_int(r->signals[0].rows, 501);
    check_near(r->ratios[0], 2, 0);
    crd_richardson_destroy(r);
}

static void rows_at_one_time_meet_in_their_order(void** state)
{
    // At 1 both have two rows; at 2 only the coarse run has: the last meets the last.
    const char* const texts[] = {"time,x\n0,0\n1,1\n1,5\n2,70\n2,6\n3,7\n",
                                 "time,x\n0,0\n0.5,9\n1,1.5\n1,5.5\n1.5,9\n2,6.5\n2.5,9\n3,7.5\n"};
    crd_richardson* r = NULL;
    check_ok(of_texts(*state, texts, 2, NULL, &r));
    check_int(r->signals[0].rows, 5);
    check_near(r->signals[0].errors[1].max, 0.5, 1e-15);
    crd_richardson_destroy(r);
}

static void names_that_not_all_have_are_told(void** state)
{
    const char* const texts[] = {"time,x,only_a,word\n0,1,1,p\n1,2,2,q\n2,3,3,r\n",
                                 "time,only_b,x,word\n0,1,1,p\n0.5,1,1,p\n1,2,2,q\n1.5,1,1,p\n"
                                 "2,3,3,r\n",
                                 "time,x,only_b\n0,1,1\n0.25,0,0\n0.5,0,0\n0.75,0,0\n1,2,2\n"
                                 "1.25,0,0\n1.5,0,0\n1.75,0,0\n2,3,3\n"};
    crd_richardson* r = NULL;
    check_ok(of_texts(*state, texts, 3, NULL, &r));
    check_int(r->signal_count, 3); // texts have no error
    check_text(r->signals[0].name, "x");
    check_int(r->signals[0].state, CRD_RICHARDSON_AGREE);
    check_text(r->signals[1].name, "only_a");
    check_int(r->signals[1].state, CRD_RICHARDSON_MISSING);
    check_text(r->signals[2].name, "only_b");
    check_int(r->signals[2].state, CRD_RICHARDSON_MISSING);
    check(isnan(r->signals[2].errors[0].rms));
    crd_richardson_destroy(r);
    const char* const none[] = {"time,x\n0,1\n1,1\n2,1\n", "time,y\n0,1\n0.5,1\n1,1\n"};
    check_status(of_texts(*state, none, 2, NULL, &r), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(*state), "no real signal of a.csv is in b.csv as well");
}

static void pairs_and_patterns_choose_signals(void** state)
{
    const char* const texts[] = {
        "time,x,u\n0,1,1\n1,2,2\n2,3,3\n",
        "time,body.x,u,w\n0,1,1,p\n0.5,1,1,p\n1,2.5,2,p\n1.5,1,1,p\n2,3,3,q\n"};
    const crd_pair pairs[] = {{"x", "body.x"}};
    crd_richardson_options opt = crd_richardson_defaults();
    opt.pairs = pairs;
    opt.pair_count = 1;
    crd_richardson* r = NULL;
    check_ok(of_texts(*state, texts, 2, &opt, &r));
    check_int(r->signal_count, 1);
    check_text(r->signals[0].name, "x=body.x");
    check_near(r->signals[0].errors[1].max, 0.5, 1e-15);
    crd_richardson_destroy(r);
    const crd_pair unknown[] = {{"x", "x"}}, words[] = {{"x", "w"}};
    opt.pairs = unknown;
    check_status(of_texts(*state, texts, 2, &opt, &r), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(*state), "b.csv has no signal 'x'");
    opt.pairs = words;
    check_status(of_texts(*state, texts, 2, &opt, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "b.csv: 'w' is not a real signal");
    const char* const patterns[] = {"u*"};
    opt = crd_richardson_defaults();
    opt.patterns = patterns;
    opt.pattern_count = 1;
    check_ok(of_texts(*state, texts, 2, &opt, &r));
    check_int(r->signal_count, 1);
    check_text(r->signals[0].name, "u");
    crd_richardson_destroy(r);
    const char* const others[] = {"q*"};
    opt.patterns = others;
    check_status(of_texts(*state, texts, 2, &opt, &r), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(*state), "'q*'");
}

static void what_makes_no_sense_is_said(void** state)
{
    const char* const texts[] = {"time,x\n0,1\n1,2\n2,3\n", "time,x\n0,1\n0.5,1\n1,2\n1.5,1\n2,3\n",
                                 "time,x\n0,1\n"};
    const char* const swapped[] = {texts[1], texts[0]};
    const char* const same[] = {texts[0], texts[0]};
    const char* const single[] = {texts[0], texts[2]};
    crd_richardson* r = NULL;
    check_status(of_texts(*state, swapped, 2, NULL, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state),
                   "0.5 times that of b.csv, expected > 1: the coarser run");
    check_status(of_texts(*state, same, 2, NULL, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "the rows of a.csv and b.csv are 1 s apart");
    check_status(of_texts(*state, single, 2, NULL, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "b.csv has 1 row, expected at least 3");
    check_status(of_texts(*state, texts, 1, NULL, &r), CRD_E_RANGE);
    check_contains(crd_error_text(*state), "1 runs, expected 2 or 3");
    crd_richardson_options opt = crd_richardson_defaults();
    static const double orders[] = {0, -1, INFINITY};
    for (size_t i = 0; i < 3; i++) {
        opt.order = orders[i];
        check_status(of_texts(*state, texts, 2, &opt, &r), CRD_E_RANGE);
        check_contains(crd_error_text(*state), "expected > 0");
    }
    opt = crd_richardson_defaults();
    static const double ratios[] = {1, 0.5, 0, -2, INFINITY};
    for (size_t i = 0; i < 5; i++) {
        opt.ratios[0] = ratios[i];
        check_status(of_texts(*state, texts, 2, &opt, &r), CRD_E_RANGE);
        check_contains(crd_error_text(*state), "expected > 1");
    }
    opt = crd_richardson_defaults();
    opt.relative = -1;
    check_status(of_texts(*state, texts, 2, &opt, &r), CRD_E_RANGE);
    crd_richardson_destroy(NULL);
}

static void every_allocation_may_fail(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    const crd_table* runs[] = {parse(ctx, "a.csv", "time,x\n0,1\n1,2\n2,3\n"),
                               parse(ctx, "b.csv", "time,x\n0,1\n0.5,0\n1,2.1\n1.5,0\n2,3\n")};
    const int64_t first = a.allocations, live = a.live;
    int failures = 0;
    for (;; failures++) {
        a.allocations = first;
        a.fail_at = first + failures;
        crd_richardson* r = NULL;
        const crd_status st = crd_richardson_create(ctx, runs, 2, NULL, &r);
        if (st == CRD_OK) {
            crd_richardson_destroy(r);
            break;
        }
        check_status(st, CRD_E_MEMORY);
        check_int(a.live, live);
    }
    check(failures >= 4);
    check_int(a.live, live);
    crd_table_destroy((crd_table*)runs[0]);
    crd_table_destroy((crd_table*)runs[1]);
    crd_context_destroy(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, check_count_up, check_count_down)
    const struct CMUnitTest tests[] = {
        TEST(two_runs_and_the_order_give_the_errors_of_both),
        TEST(order_is_1_and_the_ratio_is_seen_in_the_rows_unless_given),
        TEST(three_runs_show_the_order),
        TEST(observed_orders_have_bounds),
        TEST(differences_that_no_order_explains_give_no_errors),
        TEST(constants_and_rounding_have_no_order),
        TEST(an_error_of_a_signal_that_should_be_zero_is_infinite_relative_to_it),
        TEST(rows_without_numbers_are_left_out),
        TEST(only_times_that_all_have_are_compared),
        TEST(times_that_were_summed_up_meet),
        TEST(rows_at_one_time_meet_in_their_order),
        TEST(names_that_not_all_have_are_told),
        TEST(pairs_and_patterns_choose_signals),
        TEST(what_makes_no_sense_is_said),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
