// Descriptions of elements: what is read is what was written, and what is wrong is said with its
// place.
#include "coupling/algorithm.h"
#include "coupling_test.h"
#include "json_tree.h"
#include "shared/base.h"
#include "shared/coupling.h"

#include <stdio.h>

static crd_element* parse(crd_context* ctx, const char* json)
{
    crd_element* e = NULL;
    const crd_status st = crd_element_parse(ctx, json, strlen(json), "e.json", 1, &e);
    if (st < 0) { fail_msg("%s: %s", json, crd_error_text(ctx)); }
    return e;
}

// An element in each of its shapes.
static const char* const examples[] = {
    "{}",
    "{\"algorithm\": \"zoh\"}",
    "{\"algorithm\": \"commands\"}",
    "{\"algorithm\": \"commands\", \"commands\": [\"pedal\", \"gear\"], \"mixture\": false}",
    "{\"algorithm\": \"commands\", \"commands\": [\"pedal\"], \"weights\": {\"basis\": 2, "
    "\"step\": 0.01, \"w\": [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5]}}",
    "{\"algorithm\": \"commands\", \"commands\": [\"pedal\"], \"weights\": {\"basis\": 2, "
    "\"step\": 0.01, \"w\": [1, 2, 3, 4, 5, 6, 7, 8], \"range\": [-20, 150.5]}}",
    "{\"algorithm\": \"smith\"}",
    "{\"algorithm\": \"smith\", \"commands\": [\"model\"]}",
    "{\"algorithm\": \"foh\", \"reconstruct\": \"smooth\", \"react\": \"none\"}",
    "{\"algorithm\": \"eros\", \"step\": \"10 ms\", \"latency\": 6, \"name\": \"torque \\u00e9\"}",
    "{\"algorithm\": \"eros+switch\", \"threshold\": 4.7, \"resolution\": 1e-3}",
    "{\"algorithm\": \"network\", \"start\": \"foh\", \"latency\": 3, \"neurons\": [6, 4]}",
    "{\"algorithm\": \"foh+switch\", \"detect-window\": 16, \"detect-band\": [0.25, 0.9]}",
    "{\"algorithm\": \"error-space\", \"curve\": 2, \"errors\": 7, \"order\": 2, \"distance\": "
    "\"mean\"}",
    "{\"algorithm\": \"moment\", \"taps\": 4, \"degree\": 3, \"latency\": \"57.5 ms\"}",
    "{\"algorithm\": \"savitzky-golay\", \"taps\": 31, \"degree\": 0, \"latency-max\": 3}",
    "{\"algorithm\": \"wiener\"}",
    "{\"algorithm\": \"wiener+rebase\"}",
    "{\"algorithm\": \"wiener\", \"taps\": 25, \"bands\": [[\"0 rad/s\", \"10 rad/s\", 1], "
    "[\"5 Hz\", 55.3, 0.03]], \"noise\": 0.1234567890123456789, \"step\": 0.01}",
    "{\"algorithm\": \"linear\", \"weights\": {\"a\": [3, -2], \"A\": [1, -1]}}",
    "{\"algorithm\": \"linear\", \"any-gain\": true, \"weights\": {\"a\": [0.9], \"b\": 0.1}}",
    "{\"algorithm\": \"error-curves\"}",
    "{\"algorithm\": \"error-curves\", \"family\": \"decay\", \"points\": 12, \"fit\": "
    "\"quadratic\"}",
    "{\"algorithm\": \"error-curves\", \"family\": \"swing\", \"errors\": 5, \"order\": 2, "
    "\"points\": [0.1, 0.25, 0.7]}",
    "{\"algorithm\": \"network\", \"start\": \"foh\", \"latency\": 3, \"neurons\": [2]}",
    "{\"algorithm\": \"network\", \"start\": \"foh\", \"latency\": 3, \"neurons\": [5, 4, 2, "
    "6]}",
    "{\"algorithm\": \"network\", \"start\": {\"algorithm\": \"linear\", \"any-gain\": true, "
    "\"weights\": {\"a\": [0.5], \"b\": 2}}, \"latency\": 3}",
    "{\"algorithm\": \"network\", \"network\": {\"W1\": [[1, 2, 3], [4, 5, 6.5]], \"W2\": [1, "
    "0.1], \"b2\": 3}}",
    "{\"algorithm\": \"network\", \"network\": {\"W1\": [[1, 2]], \"W2\": [[1], [2]], \"b2\": [0, "
    "7], \"W3\": [[1, 2], [3, 4], [5, 6]], \"W4\": [7, 8, 9], \"b4\": -1}}",
    "{\"algorithm\": \"linear\", \"any-gain\": true, \"weights\": [{\"k\": 1, \"a\": [0.1]}, "
    "{\"k\": 7, \"a\": [3, -2, 0.3333333333333333], \"A\": [1, -1, 5]}]}",
    "{\"algorithm\": \"network\", \"network\": {\"alpha\": 0.3, \"W1\": [[1, 2, 3], [4, 5, 6.5]], "
    "\"W2\": [[1, 0.1]], \"b2\": [-3e-7], \"W3\": [0.25]}}",
    "{\"algorithm\": \"network\", \"start\": \"eros\", \"latency\": 6, \"any-gain\": true, "
    "\"learn\": \"unix:/tmp/s\"}",
    "{\"algorithm\": \"network\", \"start\": {\"algorithm\": \"wiener\", \"bands\": [[0, 10, 1]]}, "
    "\"step\": \"10 ms\", \"latency\": \"57 ms\", \"learn\": \"tcp:[::1]:7000\"}",
    "{\"algorithm\": \"network\", \"start\": \"foh\", \"step\": 0.01, \"latency\": \"0 ms\"}",
    "{\"algorithm\": \"ridge\", \"taps\": 60, \"window\": 600.5, \"pull\": 0.05}",
    "{\"algorithm\": \"ridge\", \"towards\": {\"algorithm\": \"wiener\", \"taps\": 25, \"bands\": "
    "[[0, 3, 2]]}, \"late\": 0}",
    "{\"algorithm\": \"rls\", \"taps\": 9, \"window\": 200}",
    "{\"element\": 1, \"algorithm\": \"auto\", \"signals\": [\"a\", \"b\"], \"latency\": "
    "\"measured\", \"detect\": \"none\"}",
    "{\"algorithm\": \"auto\", \"signals\": 12, \"latency\": 100}",
    "{\"algorithm\": \"foh\", \"latency\": 0}",
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static bool same_numbers(const double* a, const double* b, int n)
{
    return (!a && !b) || (a && b && memcmp(a, b, (size_t)n * sizeof *a) == 0);
}

static void check_same(const crd_element* x, const crd_element* y)
{
    crd_coupling_options a = x->options, b = y->options;
    check_int(a.given_count, b.given_count);
    for (int i = 0; i < a.given_count; i++) {
        const crd_linear *l = &a.given[i], *m = &b.given[i];
        check(l->k == m->k && l->m == m->m);
        check(same_numbers(l->a, m->a, l->m) && same_numbers(l->A, m->A, l->m));
    }
    check(!a.network == !b.network);
    if (a.network) {
        const crd_network *n = a.network, *o = b.network;
        check(n->m == o->m && n->n1 == o->n1 && n->n2 == o->n2 && n->alpha == o->alpha);
        check(n->n1 == 0 ||
              (same_numbers(n->W1, o->W1, n->n1 * n->m) && same_numbers(n->b1, o->b1, n->n1)));
        check(same_numbers(n->W2, o->W2, n->n2 * crdi_network_columns(n)) &&
              same_numbers(n->b2, o->b2, n->n2));
        check(crdi_network_same_shape(n, o) && n->b3 == o->b3);
        check(same_numbers(n->W3, o->W3, crdi_network_last(n)));
        for (int h = 0, before = n->n2; h < n->more; before = n->n_more[h], h++) {
            check(same_numbers(n->W_more[h], o->W_more[h], n->n_more[h] * before));
            check(same_numbers(n->b_more[h], o->b_more[h], n->n_more[h]));
        }
    }
    check(a.commands == b.commands && a.command_mixture == b.command_mixture);
    check(!x->command_names == !y->command_names);
    for (int i = 0; x->command_names && i < a.commands; i++) {
        check_text(x->command_names[i], y->command_names[i]);
    }
    check(!a.command_weights == !b.command_weights);
    if (a.command_weights) {
        const crd_command_weights *v = a.command_weights, *w = b.command_weights;
        check(v->basis == w->basis && v->step == w->step && v->commands == w->commands);
        check(v->count == w->count && same_numbers(v->w, w->w, v->count));
        check(v->low == w->low && v->high == w->high);
    }
    a.given = b.given = NULL;
    a.network = b.network = NULL;
    check(memcmp(&a.design, &b.design, sizeof a.design) == 0);
    check(a.algorithm == b.algorithm && a.k_max == b.k_max && a.late == b.late);
    check(a.any_gain == b.any_gain && a.learning_taps == b.learning_taps);
    check(a.learning_window == b.learning_window && a.learning_ridge == b.learning_ridge);
    check(a.reconstruction == b.reconstruction && a.detection == b.detection);
    check(a.reaction == b.reaction && a.threshold == b.threshold && a.resolution == b.resolution);
    check(a.detect_window == b.detect_window && a.detect_low == b.detect_low &&
          a.detect_high == b.detect_high);
    check_text(x->name, y->name);
    check_text(x->label, y->label);
    check_text(x->learn_server, y->learn_server);
    check(memcmp(&x->step, &y->step, sizeof x->step) == 0);
    check(memcmp(&x->latency, &y->latency, sizeof x->latency) == 0);
    check_int(x->latency_steps, y->latency_steps);
    check_int(x->bands_given, y->bands_given);
    check_int(x->signal_count, y->signal_count);
    check(!x->signal_names == !y->signal_names);
    for (int i = 0; x->signal_names && i < x->signal_count; i++) {
        check_text(x->signal_names[i], y->signal_names[i]);
    }
}

static void what_is_written_reads_back_bit_for_bit(void** state)
{
    crd_context* ctx = context_of(state);
    const crdi_algorithm* seen[EXAMPLES];
    for (int i = 0; i < EXAMPLES; i++) {
        crd_element* e = parse(ctx, examples[i]);
        crd_text text, again;
        crd_text_init(&text, ctx);
        crd_text_init(&again, ctx);
        check_ok(crd_element_write(e, &text));
        crd_element* back = parse(ctx, text.data);
        check_same(e, back);
        check_ok(crd_element_write(back, &again));
        check_text(again.data, text.data);
        seen[i] = crdi_algorithm_of(&e->options);
        crd_element_destroy(e);
        crd_element_destroy(back);
        crd_text_clear(&text);
        crd_text_clear(&again);
    }
    for (int i = 0; crdi_algorithm_at(i); i++) {
        bool found = false;
        for (int k = 0; k < EXAMPLES; k++) {
            found = found || seen[k] == crdi_algorithm_at(i);
        }
        if (!found) { fail_msg("no example for %s", crdi_algorithm_at(i)->name); }
    }
}

static void every_example_can_be_created(void** state)
{
    crd_context* ctx = context_of(state);
    for (int i = 0; i < EXAMPLES; i++) {
        crd_element* e = parse(ctx, examples[i]);
        crd_coupling_options o;
        crd_coupling* c = NULL;
        check_ok(crd_element_options(e, 0.01, &o));
        check(o.step == 0.01);
        if (crd_coupling_create(ctx, &o, &c) < 0) {
            fail_msg("%s: %s", examples[i], crd_error_text(ctx));
        }
        crd_coupling_destroy(c);
        crd_element_destroy(e);
    }
}

static void an_empty_description_is_the_default(void** state)
{
    crd_context* ctx = context_of(state);
    crd_element* e = parse(ctx, "{}");
    const crd_coupling_options o = crd_coupling_defaults();
    check(memcmp(&o, &e->options, sizeof o) == 0);
    check_text(e->label, "auto");
    check(isnan(e->step) && isnan(e->latency));
    check_int(e->latency_steps, -1);
    check_int(e->signal_count, 1);
    crd_element_destroy(e);
}

static void words_alone_are_elements(void** state)
{
    crd_context* ctx = context_of(state);
    crd_element* e = NULL;
    int count = 0;
    for (const char* const* name = crd_element_algorithms(); *name; name++, count++) {
        check_ok(crd_element_of_name(ctx, *name, &e));
        check_text(e->label, *name);
        crd_element_destroy(e);
    }
    check_int(count, 10);
    check_ok(crd_element_of_name(ctx, "eros+switch", &e));
    check_text(e->label, "eros+switch");
    check(e->options.detection == CRD_DETECT_SPECTRUM && e->options.reaction == CRD_REACT_SWITCH);
    crd_element_destroy(e);
    check_status(crd_element_of_name(ctx, "erso", &e), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(ctx), "did you mean 'eros'?");
    check_status(crd_element_of_name(ctx, "linear", &e), CRD_E_NOT_FOUND);
    check_contains(crd_error_text(ctx), "weights");
}

static void bands_in_hertz_become_angles_per_step(void** state)
{
    crd_context* ctx = context_of(state);
    crd_element* e =
        parse(ctx, "{\"algorithm\": \"wiener\", \"bands\": [[0, \"2 Hz\", 1], [30, 55, 0.03]]}");
    crd_coupling_options o;
    check_near(e->options.design.bands[0].high, 4 * acos(-1), 1e-12);
    check_ok(crd_element_options(e, 0.01, &o));
    check_near(o.design.bands[0].high, 0.04 * acos(-1), 1e-14);
    check_near(o.design.bands[1].low, 0.3, 1e-14);
    check_status(crd_element_options(e, 0.1, &o), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "55 rad/s");
    check_status(crd_element_options(e, NAN, &o), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "'step'");
    crd_element_destroy(e);
}

static void a_network_begins_as_the_linear_algorithm_it_names(void** state)
{
    crd_context* ctx = context_of(state);
    crd_element* e =
        parse(ctx, "{\"algorithm\": \"network\", \"start\": \"eros\", \"latency\": 6}");
    crd_linear l = make(ctx, CRD_METHOD_EROS, 6);
    const crd_network* n = e->options.network;
    double y[9];
    for (int i = 0; i < 9; i++) {
        y[i] = sin(1.0 + i * i);
    }
    check_int(n->m, 9);
    check_near(n->alpha, 0.01, 0);
    check_near(crd_network_eval(n, y), crd_linear_eval(&l, y, 0), 1e-12);
    crd_linear_clear(ctx, &l);
    crd_element_destroy(e);
}

static void linear_elements_tell_their_weights(void** state)
{
    crd_context* ctx = context_of(state);
    crd_linear l, want = make(ctx, CRD_METHOD_EROS, 3);
    crd_element* e = parse(ctx, "{\"algorithm\": \"eros\"}");
    check_ok(crd_element_linear(e, NAN, 3, &l));
    check_int(l.m, want.m);
    check(same_numbers(l.a, want.a, l.m) && same_numbers(l.A, want.A, l.m));
    crd_linear_clear(ctx, &l);
    crd_linear_clear(ctx, &want);
    crd_element_destroy(e);

    e = parse(ctx, "{\"algorithm\": \"linear\", \"reconstruct\": \"hold\", \"weights\": "
                   "[{\"k\": 1, \"a\": [1]}, {\"k\": 4, \"a\": [5, -4]}]}");
    check_ok(crd_element_linear(e, NAN, 3, &l));
    check(l.k == 3 && l.m == 1 && l.A == NULL);
    crd_linear_clear(ctx, &l);
    check_ok(crd_element_linear(e, NAN, 9, &l));
    check(l.k == 9 && l.m == 2 && l.a[0] == 5);
    crd_linear_clear(ctx, &l);
    check_status(crd_element_linear(e, NAN, -1, &l), CRD_E_RANGE);
    crd_element_destroy(e);

    const char* const others[] = {"ridge", "rls", "auto"};
    for (int i = 0; i < 3; i++) {
        check_ok(crd_element_of_name(ctx, others[i], &e));
        check_status(crd_element_linear(e, 0.01, 3, &l), CRD_E_UNSUPPORTED);
        check_contains(crd_error_text(ctx), others[i]);
        crd_element_destroy(e);
    }
    e = parse(ctx, "{\"algorithm\": \"wiener\", \"bands\": [[0, 10, 1]]}");
    check_status(crd_element_linear(e, NAN, 3, &l), CRD_E_RANGE);
    check_ok(crd_element_linear(e, 0.01, 3, &l));
    crd_linear_clear(ctx, &l);
    crd_element_destroy(e);
}

// ---- what is wrong -----------------------------------------------------------------------------

typedef struct mistake {
    const char* json;
    crd_status st;
    const char* words[3]; // in the message
} mistake;

#define F CRD_E_FORMAT
#define R CRD_E_RANGE

static const mistake mistakes[] = {
    {"[]", F, {"e.json:1: ", "an empty list, expected a mapping"}},
    {"", F, {"e.json:1: ", "the end, expected a value"}},
    {"{\"algorithm\": \"wienr\"}", F, {"algorithm: 'wienr' is not known", "'wiener'?"}},
    {"{\"algorithm\": 3}", F, {"algorithm: 3, expected one of zoh, foh"}},
    {"{\n\"algorithm\": \"moment\",\n\"tabs\": 3}", F, {"e.json:3: tabs: unknown key", "'taps'?"}},
    {"{\"algorithm\": \"eros\", \"taps\": 3}", F, {"taps: the algorithm eros has no use for"}},
    {"{\"algorithm\": \"rls\", \"pull\": 3}", F, {"pull: the algorithm rls", "taps, window"}},
    {"{\"chanel\": {}}", F, {"'channel'?"}},
    {"{\"channel\": {}}", F, {"belongs to 'coupling' of a connection"}},
    {"{\"algorithm\": \"zoh\", \"algorithm\": \"foh\"}", F, {"'algorithm' is given twice"}},
    {"{\"element\": 2}", CRD_E_UNSUPPORTED, {"version 2, expected 1"}},
    {"{\"step\": 0}", R, {"step: 0 is out of range, expected more than 0"}},
    {"{\"step\": \"10 m\"}", F, {"step: '10 m', expected a time"}},
    {"{\"step\": \"10\"}", F, {"step: '10', expected a time"}},
    {"{\"step\": 1e400}", R, {"1e400 is beyond the largest number"}},
    {"{\"step\": NaN}", F, {"'NaN', expected a value"}},
    {"{\"latency\": 1.5}", F, {"latency: 1.5, expected measured"}},
    {"{\"latency\": -1}", R, {"latency: -1 is out of range"}},
    {"{\"latency\": \"-1 ms\"}", R, {"latency: '-1 ms' is out of range"}},
    {"{\"latency\": 121}", R, {"from 0 to 120"}},
    {"{\"latency\": 9, \"latency-max\": 8}", R, {"latency-max: 8 is less than", "9 steps"}},
    {"{\"latency-max\": 3.5}", F, {"latency-max: 3.5, expected a whole number from 0 to 120"}},
    {"{\"detect-window\": 16}",
     F,
     {"detect-window: this belongs to detect: spectrum, but detect is guarded"}},
    {"{\"detect\": \"spectrum\", \"detect-window\": 7}",
     R,
     {"detect_window = 7, expected an even number from 4 to 16"}},
    {"{\"detect\": \"spectrum\", \"detect-band\": [0.3, 0.45]}",
     R,
     {"detect-band [0.3, 0.45] has no bin in it", "a multiple of 0.25"}},
    {"{\"algorithm\": \"network\", \"start\": \"foh\", \"latency\": 3, \"neurons\": [4, 3]}",
     R,
     {"3 leaky ReLUs, expected an even number"}},
    {"{\"algorithm\": \"network\", \"start\": \"foh\", \"latency\": 3, \"neurons\": [4.5, 2]}",
     R,
     {"neurons: 4.5 neurons, expected whole numbers from 1 to 64"}},
    {"{\"threshold\": -1}", R, {"threshold: -1 is out of range, expected at least 0"}},
    {"{\"name\": \"\"}", F, {"name: '', expected a name"}},
    {"{\"detect\": \"guard\"}", F, {"detect: 'guard' is not known", "'guarded'?"}},
    {"{\"react\": true}", F, {"react: true, expected one of none, switch, rebase"}},
    {"{\"signals\": []}", F, {"signals: an empty list"}},
    {"{\"signals\": 0}", R, {"signals: 0 is out of range"}},
    {"{\"signals\": [\"a\", \"a\"]}", R, {"'a' is there twice"}},
    {"{\"signals\": [\"a\", 3]}", F, {"signals[2]: 3, expected a name"}},
    {"{\"algorithm\": \"wiener\", \"bands\": []}", F, {"bands: an empty list, expected a list"}},
    {"{\"algorithm\": \"wiener\", \"bands\": [[1, 2]]}", F, {"band 1 is a list of another length"}},
    {"{\"algorithm\": \"wiener\", \"bands\": [[3, 2, 1]]}", R, {"band 1 = [3, 2] rad/s"}},
    {"{\"algorithm\": \"wiener\", \"bands\": [[2, 2, 1]]}", R, {"expected 0 <= low < high"}},
    {"{\"algorithm\": \"wiener\", \"bands\": [[-1, 2, 1]]}", R, {"expected 0 <= low < high"}},
    {"{\"algorithm\": \"wiener\", \"bands\": [[1, 2, 0]]}", R, {"the power of band 1 = 0"}},
    {"{\"algorithm\": \"wiener\", \"bands\": [[1, \"2 m\", 1]]}", F, {"'2 m', expected a freq"}},
    {"{\"algorithm\": \"wiener\", \"bands\": [[5, 9, 1], [1, 2, 1]]}", R, {"ascending bands"}},
    {"{\"algorithm\": \"wiener\", \"step\": 0.1,\n\"bands\": [[5, 90, 1]]}",
     R,
     {"e.json:2: ", "band 1 reaches up to 90 rad/s", "31.4159 rad/s"}},
    {"{\"algorithm\": \"wiener\", \"taps\": 256, \"noise\": 1e-300}", R, {"e.json:1: ", "noise"}},
    {"{\"algorithm\": \"moment\", \"taps\": 2, \"degree\": 3}", R, {"more taps than the degree"}},
    {"{\"algorithm\": \"error-space\", \"errors\": 2, \"order\": 2}", R, {"more errors than"}},
    {"{\"algorithm\": \"linear\"}", F, {"the algorithm linear needs the key 'weights'"}},
    {"{\"algorithm\": \"commands\", \"commands\": [\"pedal\"], \"weights\": {\"basis\": 2, "
     "\"step\": 0.01, \"w\": [1, 2, 3, 4, 5, 6, 7, 8], \"range\": [3, -3]}}",
     R,
     {"range: [3, -3], expected the smaller value of the signal first"}},
    {"{\"algorithm\": \"linear\",\n\"weights\": {\"a\": [0.5]}}",
     R,
     {"e.json:2: ", "sum to 0.5, expected 1"}},
    {"{\"algorithm\": \"linear\", \"weights\": {\"a\": [1], \"A\": [1]}}", R, {"A sum to 1"}},
    {"{\"algorithm\": \"linear\", \"weights\": {\"a\": [1], \"A\": [1, -1]}}", R, {"2 numbers"}},
    {"{\"algorithm\": \"linear\", \"weights\": {\"a\": []}}", R, {"0 numbers, expected 1 .. 256"}},
    {"{\"algorithm\": \"linear\", \"weights\": {\"a\": [\"1\"]}}", F, {"a[1]: '1', expected"}},
    {"{\"algorithm\": \"linear\", \"weights\": {\"c\": [1]}}", F, {"unknown key", "k, a, A"}},
    {"{\"algorithm\": \"linear\", \"weights\": {\"k\": 3}}", F, {"the key 'a' is missing"}},
    {"{\"algorithm\": \"linear\", \"weights\": []}", R, {"0 sets of weights"}},
    {"{\"algorithm\": \"linear\", \"weights\": [{\"a\": [1]}, {\"a\": [1]}]}", F, {"'k' is miss"}},
    {"{\"algorithm\": \"linear\", \"weights\": [{\"k\": 1, \"a\": [1]}, {\"k\": 1, \"a\": [1]}]}",
     R,
     {"k = 1 after 1, expected ascending"}},
    {"{\"algorithm\": \"network\"}", F, {"needs the key 'network'", "'start'"}},
    {"{\"algorithm\": \"network\", \"network\": {}}", F, {"the key 'W1' is missing"}},
    {"{\"algorithm\": \"network\", \"network\": {\"W1\": [[1]]}}", F, {"the key 'W2' is missing"}},
    {"{\"algorithm\": \"network\", \"network\": {\"W1\": [[1]], \"W2\": [1], \"b3\": 1}}",
     F,
     {"W2 is the list of the output, expected nothing behind it"}},
    {"{\"algorithm\": \"network\", \"start\": \"foh\", \"latency\": 1, \"neurons\": [4, 2, 3]}",
     R,
     {"3 leaky ReLUs, expected an even number"}},
    {"{\"algorithm\": \"network\", \"start\": \"foh\", \"latency\": 1, \"neurons\": "
     "[4, 2, 2, 2, 2]}",
     R,
     {"neurons: 5 numbers, expected 1 .. 4"}},
    {"{\"algorithm\": \"linear\", \"weights\": {\"a\": [1], \"b\": 0.1}}",
     R,
     {"b = 0.1, expected 0"}},
    {"{\"algorithm\": \"error-curves\", \"points\": [0, 1, 1]}",
     R,
     {"point 3 = 1, expected ascending"}},
    {"{\"algorithm\": \"error-curves\", \"points\": 1}", R, {"points"}},
    {"{\"algorithm\": \"error-curves\", \"family\": \"parabola\"}",
     F,
     {"Expected one of line, decay, swing"}},
    {"{\"algorithm\": \"error-curves\", \"errors\": 1}",
     R,
     {"errors = 1 for order = 1, expected more errors than the order"}},
    {"{\"algorithm\": \"network\", \"network\": {\"W1\": [[1, 2], [1]], \"W2\": [[1, 2]], \"W3\": "
     "[1]}}",
     R,
     {"W1: a row of 1 numbers, expected 2"}},
    {"{\"algorithm\": \"network\", \"network\": {\"W1\": [[1, 2]], \"W2\": [[1, 2]], \"W3\": [1]}}",
     R,
     {"W2: a row of 2 numbers, expected 1"}},
    {"{\"algorithm\": \"network\", \"network\": {\"alpha\": -1, \"W1\": [[1]], \"W2\": [[1]], "
     "\"W3\": [1]}}",
     R,
     {"alpha = -1"}},
    {"{\"algorithm\": \"network\", \"start\": \"eros\"}", F, {"expected the key 'latency'"}},
    {"{\"algorithm\": \"network\", \"start\": \"auto\", \"latency\": 3}", F, {"is not linear"}},
    {"{\"algorithm\": \"network\", \"start\": {\"algorithm\": \"wiener\", \"bands\": [[0, 1, 1]]}, "
     "\"latency\": 3}",
     F,
     {"bands in rad/s need the key 'step'"}},
    {"{\"algorithm\": \"network\", \"start\": {\"latency\": 3}}",
     F,
     {"start.latency: this belong"}},
    {"{\"algorithm\": \"network\", \"learn\": \"udp:1\"}",
     F,
     {"learn: 'udp:1', expected the addr"}},
    {"{\"algorithm\": \"network\", \"learn\": \"tcp:a:99999\"}", F, {"learn: 'tcp:a:99999'"}},
    {"{\"algorithm\": \"eros\", \"learn\": \"unix:a\"}", F, {"has no use for this key"}},
    {"{\"algorithm\": \"ridge\", \"towards\": \"linear\"}", F, {"towards", "weights"}},
    {"{\"algorithm\": \"ridge\", \"towards\": {\"algorithm\": \"moment\",\n\"taps\": 0}}",
     R,
     {"e.json:2: towards.taps: 0"}},
    {"{\"algorithm\": \"ridge\", \"window\": 1}", R, {"window: 1 is out of range"}},
    {"{\"algorithm\": \"ridge\", \"taps\": 1}", R, {"taps: 1 is out of range", "2 to 128"}},
    // JSON itself
    {"{\"step\": 1", F, {"the end, expected ',' or '}'"}},
    {"{\"step\": 1} x", F, {"'x', expected nothing behind"}},
    {"{step: 1}", F, {"'step', expected a key in quotes"}},
    {"{\"step\" 1}", F, {"expected ':' behind a key"}},
    {"{\"step\": 01}", F, {"leading zero"}},
    {"{\"step\": 1.}", F, {"expected a number such as"}},
    {"{\"step\": -}", F, {"expected a number such as"}},
    {"{\"step\": 1,}", F, {"expected a key in quotes"}},
    {"{\"signals\": [1,]}", F, {"']', expected a value"}},
    {"{\"name\": \"a", F, {"at the end of a text"}},
    {"{\"name\": \"a\\q\"}", F, {"an escape in a text that means nothing"}},
    {"{\"name\": \"\\u0000\"}", F, {"an escape"}},
    {"{\"name\": \"\\ud800\"}", F, {"an escape"}},
    {"{\"name\": \"\\ud800\\u0041\"}", F, {"an escape"}},
    {"{\"name\": \"\\u12\"}", F, {"an escape"}},
    {"{\"name\": \"\xff\"}", F, {"byte 0xff, expected a text in UTF-8"}},
    {"{\"name\": \"\xc0\x80\"}", F, {"byte 0xc0"}},
    {"{\"name\": \"\xed\xa0\x80\"}", F, {"byte 0xed"}},
    {"{\"name\": \"\xe2\x82\"}", F, {"byte 0xe2"}},
    {"{\"name\": \"a\tb\"}", F, {"control characters"}},
    {"{\"react\": \"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
     F,
     {"'012345678901234567890123456789012345678901234567890123456789...' is not known"}},
    {"{\"react\": "
     "\"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
     "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
     "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4x\xc3\xa4\xc3\xa4\"}",
     F,
     {"\xc3\xa4x...' is not known"}}, // not in the middle of a character
    {"{\"name\": \"a\\u001b[2J\"}", F, {"name: 'a?[2J', expected a name without control"}},
    {"{\"signals\": [\"a\", \"b\\n\"]}", F, {"signals[2]: 'b?', expected a name without"}},
    {"{\"algorithm\": \"network\", \"network\": {\"W1\": [[1], 2], \"W2\": [[1, 2]], \"W3\": "
     "[1]}}",
     F,
     {"W1: a list, expected a list of rows"}},
};

static void mistakes_are_said_in_one_sentence_with_their_line(void** state)
{
    crd_context* ctx = context_of(state);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const mistake* m = &mistakes[i];
        crd_element* e = NULL;
        const crd_status st = crd_element_parse(ctx, m->json, strlen(m->json), "e.json", 1, &e);
        if (st != m->st) {
            fail_msg("%s gave %s: %s", m->json, crd_status_name(st), crd_error_text(ctx));
        }
        for (int w = 0; w < 3 && m->words[w]; w++) {
            check_contains(crd_error_text(ctx), m->words[w]);
        }
        if (strncmp(crd_error_text(ctx), "e.json:", 7) != 0) {
            fail_msg("%s: no place in \"%s\"", m->json, crd_error_text(ctx));
        }
    }
}

static void hostile_bytes_are_refused(void** state)
{
    crd_context* ctx = context_of(state);
    crd_element* e = NULL;
    static const char zero[] = "{\"name\": \"a\0b\"}", zero_outside[] = "{\0}";
    check_status(crd_element_parse(ctx, zero, sizeof zero - 1, "", 0, &e), CRD_E_FORMAT);
    check_status(crd_element_parse(ctx, zero_outside, 3, "", 0, &e), CRD_E_FORMAT);

    enum { DEEP = 100000 };
    char* deep = malloc(2 * DEEP);
    memset(deep, '[', 2 * DEEP);
    check_status(crd_element_parse(ctx, deep, 2 * DEEP, "", 0, &e), CRD_E_FORMAT);
    check_contains(crd_error_text(ctx), "nested deeper than 32");
    for (int i = 0; i < DEEP; i++) { // 100000 keys that are equal
        memcpy(deep + 2 * i, i ? "1," : "[{", 2);
    }
    check_status(crd_element_parse(ctx, deep, 2 * DEEP, "", 0, &e), CRD_E_FORMAT);
    free(deep);

    const size_t size = CRDI_JSON_BYTES + 1;
    char* large = malloc(size);
    memset(large, ' ', size);
    check_status(crd_element_parse(ctx, large, size, "", 0, &e), CRD_E_FORMAT);
    check_contains(crd_error_text(ctx), "expected at most");
    free(large);
    check_status(crd_element_parse(ctx, "", 0, NULL, 0, &e), CRD_E_FORMAT);
}

// One long row and many empty ones: room for all of them would be two terabytes.
static void rows_that_are_not_there_take_no_room(void** state)
{
    crd_context* ctx = context_of(state);
    static const char head[] = "{\"algorithm\": \"network\", \"network\": {\"W1\": [[0",
                      tail[] = "], \"W2\": [[1]], \"W3\": [1]}}";
    enum { MANY = 500000 };
    crd_element* e = NULL;
    crd_text t;
    crd_text_init(&t, ctx);
    crdi_text_put(&t, head, sizeof head - 1);
    for (int i = 1; i < MANY; i++) {
        crdi_text_put(&t, ",0", 2);
    }
    crdi_text_put(&t, "]", 1);
    for (int i = 1; i < MANY; i++) {
        crdi_text_put(&t, ",[]", 3);
    }
    crdi_text_put(&t, tail, sizeof tail - 1);
    check_status(crd_element_parse(ctx, t.data, t.length, "e.json", 1, &e), CRD_E_RANGE);
    check_contains(crd_error_text(ctx), "W1: a row of 0 numbers, expected 500000");
    crd_text_clear(&t);
}

static void a_known_latency_is_compensated_at_the_next_step(void** state)
{
    crd_context* ctx = context_of(state);
    crd_element* e = parse(ctx, "{\"algorithm\": \"eros\", \"latency\": \"165 ms\"}");
    crd_coupling_options o;
    check_ok(crd_element_options(e, 0.01, &o));
    check_int(o.k_max, 17);
    check_ok(crd_element_options(e, 0.055, &o));
    check_int(o.k_max, 16); // as ever
    check_ok(crd_element_options(e, 0.165 / 120, &o));
    check_int(o.k_max, 120);
    check_status(crd_element_options(e, 0.165 / 120.5, &o), CRD_E_RANGE);
    crd_element_destroy(e);
}

static void escapes_are_characters(void** state)
{
    crd_context* ctx = context_of(state);
    crd_element* e =
        parse(ctx, "{\"name\": \"\\u0041\\u00e9\\u20aC\\uFFFD\\ud83d\\ude09\\\"\\\\\\/\"}");
    check_text(e->name, "A\xc3\xa9\xe2\x82\xac\xef\xbf\xbd\xf0\x9f\x98\x89\"\\/");
    crd_element_destroy(e);
}

static void given_weights_are_told_for_any_latency(void** state)
{
    crd_context* ctx = context_of(state);
    crd_element* e =
        parse(ctx, "{\"algorithm\": \"linear\", \"weights\": [{\"k\": 2, \"a\": [3, -2]}, "
                   "{\"k\": 5, \"a\": [6, -5]}]}");
    for (int k = -1; k <= CRD_LATENCY_MAX + 1; k++) {
        crd_linear l = {0};
        const crd_status st = crd_element_linear(e, NAN, k, &l);
        if (k < 0 || k > CRD_LATENCY_MAX) {
            check_status(st, CRD_E_RANGE);
        } else {
            check_ok(st);
            check_int(l.k, k);
            check_near(l.a[0], k < 5 ? 3 : 6, 0); // the nearest not above k, else the first
        }
        crd_linear_clear(ctx, &l);
    }
    crd_element_destroy(e);
}

static void weights_for_every_latency_fit(void** state)
{
    crd_context* ctx = context_of(state);
    for (int count = CRD_LATENCY_MAX + 1; count <= CRD_LATENCY_MAX + 2; count++) {
        crd_element* e = NULL;
        crd_text t;
        crd_text_init(&t, ctx);
        crdi_text_add(&t, "{\"algorithm\": \"linear\", \"weights\": [");
        for (int k = 0; k < count; k++) {
            crdi_text_add(&t, "%s{\"k\": %d, \"a\": [%d, %d]}", k ? ", " : "", k, k + 1, -k);
        }
        crdi_text_add(&t, "]}");
        const crd_status st = crd_element_parse(ctx, t.data, t.length, "e.json", 1, &e);
        check_status(st, count == CRD_LATENCY_MAX + 1 ? CRD_OK : CRD_E_RANGE);
        if (e) {
            check_int(e->options.given_count, count);
            check_near(e->options.given[CRD_LATENCY_MAX].a[0], CRD_LATENCY_MAX + 1, 0);
        } else {
            check_contains(crd_error_text(ctx), "weights: 122 sets of weights, expected 1 .. 121");
        }
        crd_element_destroy(e);
        crd_text_clear(&t);
    }
}

static void every_beginning_of_an_example_is_refused(void** state)
{
    crd_context* ctx = context_of(state);
    for (int i = 0; i < EXAMPLES; i++) {
        const size_t length = strlen(examples[i]);
        for (size_t n = 0; n < length; n++) {
            char* exact = malloc(n ? n : 1); // so that reading behind it is noticed
            memcpy(exact, examples[i], n);
            crd_element* e = NULL;
            check_status(crd_element_parse(ctx, exact, n, "", 0, &e), CRD_E_FORMAT);
            free(exact);
        }
    }
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    for (int i = 0; i < EXAMPLES; i++) {
        crd_status st = CRD_E_MEMORY;
        int64_t at = 0;
        for (; st == CRD_E_MEMORY; at++) {
            check_allocator memory;
            crd_context* ctx = check_context(&memory);
            const int64_t before = memory.live;
            crd_element* e = NULL;
            memory.fail_at = memory.allocations + at;
            st = crd_element_parse(ctx, examples[i], strlen(examples[i]), "x", 1, &e);
            if (st >= 0) {
                crd_text text;
                crd_text_init(&text, ctx);
                st = crd_element_write(e, &text);
                crd_text_clear(&text);
            }
            crd_element_destroy(e);
            memory.fail_at = -1;
            check_int(memory.live, before);
            crd_context_destroy(ctx);
        }
        check_ok(st);
        check(at > 3);
    }
}

// ---- the schema for editors --------------------------------------------------------------------

static void the_schema_of_systems_has_the_keys_of_elements(void** state)
{
    (void)state;
    const crdi_json* root = json_tree_of_file(SCHEMA_FILE);
    const char* const places[] = {"coupling", "element"};
    for (int p = 0; p < 2; p++) {
        const crdi_json* definition =
            crdi_json_member(crdi_json_member(root, "definitions"), places[p]);
        const crdi_json* properties = crdi_json_member(definition, "properties");
        check(!crdi_json_get_bool(definition, "additionalProperties", true));
        size_t count = 0;
        for (int i = 0; crdi_element_key(i); i++) {
            bool again = false;
            for (int j = 0; j < i; j++) {
                again = again || strcmp(crdi_element_key(i), crdi_element_key(j)) == 0;
            }
            count += !again;
            if (!crdi_json_member(properties, crdi_element_key(i))) {
                fail_msg("%s.%s is not in the schema", places[p], crdi_element_key(i));
            }
        }
        // file, channel, shadow, record, model, target stand beside an element in a system
        check_int(crdi_json_count(properties), count + (p == 0 ? 6 : 0));
    }
}

// ---- the manual --------------------------------------------------------------------------------

static void the_manual_and_the_schema_name_every_algorithm(void** state)
{
    (void)state;
    const char* const files[] = {MANUAL_FILE, SCHEMA_FILE};
    for (int f = 0; f < 2; f++) {
        static char text[1 << 20];
        FILE* file = fopen(files[f], "r");
        check(file != NULL);
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
        for (int i = 0; crdi_algorithm_at(i); i++) {
            const char* name = crdi_algorithm_at(i)->name;
            if (!strstr(text, name)) { fail_msg("%s does not name %s", files[f], name); }
        }
        for (int i = 0; crdi_element_key(i); i++) {
            if (!strstr(text, crdi_element_key(i))) {
                fail_msg("%s does not name the key %s", files[f], crdi_element_key(i));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        coupling_unit_test(what_is_written_reads_back_bit_for_bit),
        coupling_unit_test(every_example_can_be_created),
        coupling_unit_test(an_empty_description_is_the_default),
        coupling_unit_test(words_alone_are_elements),
        coupling_unit_test(bands_in_hertz_become_angles_per_step),
        coupling_unit_test(a_network_begins_as_the_linear_algorithm_it_names),
        coupling_unit_test(linear_elements_tell_their_weights),
        coupling_unit_test(mistakes_are_said_in_one_sentence_with_their_line),
        coupling_unit_test(hostile_bytes_are_refused),
        coupling_unit_test(rows_that_are_not_there_take_no_room),
        coupling_unit_test(a_known_latency_is_compensated_at_the_next_step),
        coupling_unit_test(escapes_are_characters),
        coupling_unit_test(given_weights_are_told_for_any_latency),
        coupling_unit_test(weights_for_every_latency_fit),
        coupling_unit_test(every_beginning_of_an_example_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(the_manual_and_the_schema_name_every_algorithm),
        cmocka_unit_test(the_schema_of_systems_has_the_keys_of_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
