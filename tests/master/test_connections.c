// What happens to a value between an output and an input: units, gains, maps, and the stages of
// nested systems.
#include "models.h"

#include <stdio.h>

// Outputs that show what was set, inputs that show what arrived.
typedef struct {
    double r, ir, speed, ispeed, temperature, itemperature;
    int64_t e, ie;
    int32_t i, ii;
    int8_t small;
    uint64_t big, ibig;
    int64_t whole, iwhole;
    double tuned;
    bool b, ib;
    char text[16], itext[16];
    double list[2];
    int32_t counts[2], icounts[2];
} plugs;

static crd_model_status plugs_initialize(void* self, const crd_model_host* host, double t)
{
    (void)self;
    (void)host;
    (void)t;
    return CRD_MODEL_OK;
}

static void plugs_outputs(void* self, double t)
{
    (void)self;
    (void)t;
}

static crd_model_status plugs_step(void* self, const crd_model_host* host, double t, double h,
                                   double* reached)
{
    plugs* p = self;
    (void)host;
    *reached = t + h;
    p->i++; // so that something happens
    return CRD_MODEL_OK;
}

static const char* const valve_items[] = {"off", "on", "auto", 0};
static const char* const gate_items[] = {"shut", "open", "half", "stuck", 0};

#define OUT(field_, type_)                                                                         \
    .name = #field_, .type = type_, .causality = CRD_OUTPUT, .depends = "", .exact = true,         \
    .variability = (type_) == CRD_FLOAT64 ? CRD_CONTINUOUS : CRD_DISCRETE,                         \
    .offset = offsetof(plugs, field_)
#define IN(field_, type_)                                                                          \
    .name = #field_, .type = type_, .causality = CRD_INPUT,                                        \
    .variability = (type_) == CRD_FLOAT64 ? CRD_CONTINUOUS : CRD_DISCRETE,                         \
    .offset = offsetof(plugs, field_)

static const crd_model_variable plugs_rows[] = {
    {OUT(r, CRD_FLOAT64)},
    {IN(ir, CRD_FLOAT64)},
    {OUT(speed, CRD_FLOAT64), .unit = "km/h"},
    {IN(ispeed, CRD_FLOAT64), .unit = "m/s"},
    {OUT(temperature, CRD_FLOAT64), .unit = "degC"},
    {IN(itemperature, CRD_FLOAT64), .unit = "K"},
    {OUT(whole, CRD_INT64)},
    {IN(iwhole, CRD_INT64)},
    {.name = "tuned",
     .type = CRD_FLOAT64,
     .causality = CRD_PARAMETER,
     .variability = CRD_TUNABLE,
     .offset = offsetof(plugs, tuned)},
    {OUT(e, CRD_ENUMERATION), .items = valve_items, .start = 1},
    {IN(ie, CRD_ENUMERATION), .items = gate_items, .start = 1},
    {OUT(i, CRD_INT32)},
    {IN(ii, CRD_INT32)},
    {IN(small, CRD_INT8)},
    {OUT(big, CRD_UINT64)},
    {IN(ibig, CRD_UINT64)},
    {OUT(b, CRD_BOOLEAN)},
    {IN(ib, CRD_BOOLEAN)},
    {OUT(text, CRD_STRING), .capacity = 16},
    {IN(itext, CRD_STRING), .capacity = 16},
    {OUT(counts, CRD_INT32), .size = 2},
    {IN(icounts, CRD_INT32), .size = 2},
};
static const crd_model plugs_model = {.name = "plugs",
                                      .description = "shows what arrives",
                                      .size = sizeof(plugs),
                                      .variables = plugs_rows,
                                      .variable_count = sizeof plugs_rows / sizeof *plugs_rows,
                                      .default_step = 0.1,
                                      .default_stop = 1,
                                      .initialize = plugs_initialize,
                                      .outputs = plugs_outputs,
                                      .step = plugs_step};

typedef struct {
    crd_context* ctx;
    crd_system* s;
    crd_connection_spec* c;
} bench;

static bench lay(const char* from, const char* to)
{
    bench t = {0};
    t.ctx = crd_context_create(NULL);
    t.s = new_system(t.ctx, 0.1, 0.3);
    add_unit(t.s, "a", &plugs_model, 0);
    add_unit(t.s, "b", &plugs_model, 0);
    t.c = wire(t.s, 0, from, 1, to);
    t.c->place = (crd_place){"sys.yaml", 7};
    return t;
}

static void put_away(bench* t)
{
    crd_system_destroy(t->s);
    crd_context_destroy(t->ctx);
}

// The value that arrives when the output is set to `text`.
static double arrives(bench* t, const char* text)
{
    char name[64];
    crd_master* m = NULL;
    set(t->s, 0, t->c->from, text);
    check_run(crd_master_create(t->ctx, t->s, NULL, &m), t->ctx);
    check_run(crd_master_run(m), t->ctx);
    snprintf(name, sizeof name, "b.%s", t->c->to);
    const double x = value(m, name);
    crd_master_destroy(m);
    return x;
}

static void check_refused(bench* t, crd_status want, const char* part)
{
    crd_master* m = NULL;
    check_status(crd_master_create(t->ctx, t->s, NULL, &m), want);
    check(!m);
    check_contains(crd_error_text(t->ctx), "sys.yaml:7: ");
    check_contains(crd_error_text(t->ctx), part);
    put_away(t);
}

static void a_map_of_an_enumeration_goes_by_the_items_of_both_ends(void** state)
{
    (void)state;
    static const crd_map_entry map[] = {{"off", "shut"}, {"on", "open"}};
    bench t = lay("e", "ie");
    t.c->map = map;
    t.c->map_count = 2;
    check_near(arrives(&t, "on"), 2, 0);
    check_near(arrives(&t, "off"), 1, 0);
    check_near(arrives(&t, "auto"), 3, 0); // not in the map: stays as it is
    put_away(&t);
    static const crd_map_entry numbers[] = {{"1", "4"}, {"auto", "shut"}};
    t = lay("e", "ie");
    t.c->map = numbers;
    t.c->map_count = 2;
    check_near(arrives(&t, "off"), 4, 0);
    check_near(arrives(&t, "auto"), 1, 0);
    check_near(arrives(&t, "on"), 2, 0);
    put_away(&t);
}

static void a_map_takes_booleans_and_integers_into_any_type(void** state)
{
    (void)state;
    static const crd_map_entry invert[] = {{"true", "false"}, {"false", "true"}};
    bench t = lay("b", "ib");
    t.c->map = invert;
    t.c->map_count = 2;
    check_near(arrives(&t, "true"), 0, 0);
    check_near(arrives(&t, "false"), 1, 0);
    put_away(&t);

    static const crd_map_entry to_real[] = {{"true", "2.5"}, {"false", "-1e3"}};
    t = lay("b", "ir");
    t.c->map = to_real;
    t.c->map_count = 2;
    check_near(arrives(&t, "true"), 2.5, 0);
    check_near(arrives(&t, "false"), -1000, 0);
    put_away(&t);

    static const crd_map_entry to_small[] = {{"18446744073709551615", "-7"}, {"5", "6"}};
    t = lay("big", "small");
    t.c->map = to_small;
    t.c->map_count = 2;
    check_near(arrives(&t, "18446744073709551615"), -7, 0);
    check_near(arrives(&t, "5"), 6, 0);
    check_near(arrives(&t, "18446744073709551614"), 127, 0); // as without a map
    put_away(&t);

    static const crd_map_entry to_item[] = {{"38", "shut"}, {"39", "open"}, {"40", "half"}};
    t = lay("i", "ie");
    t.c->map = to_item;
    t.c->map_count = 3;
    check_near(arrives(&t, "38"), 3, 0); // counts to 40 in the first two of three steps
    put_away(&t);
}

static void a_map_works_for_each_element_of_an_array(void** state)
{
    (void)state;
    static const crd_map_entry map[] = {{"3", "30"}};
    bench t = lay("counts", "icounts");
    t.c->map = map;
    t.c->map_count = 1;
    crd_master* m = NULL;
    set(t.s, 0, "counts", "3 4");
    check_run(crd_master_create(t.ctx, t.s, NULL, &m), t.ctx);
    check_run(crd_master_run(m), t.ctx);
    check_near(value(m, "b.icounts[1]"), 30, 0);
    check_near(value(m, "b.icounts[2]"), 4, 0);
    crd_master_destroy(m);
    put_away(&t);
}

static void a_wrong_map_is_refused_with_place_and_items(void** state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        crd_map_entry map[2];
        int count;
        const char* part;
    } cases[] = {
        {"e", "ie", {{"of", "shut"}}, 1, "'e' = 'of', expected one of off, on, auto"},
        {"e",
         "ie",
         {{"off", "closed"}},
         1,
         "'ie' = 'closed', expected one of shut, open, half, stuck"},
        {"e", "ie", {{"9", "shut"}}, 1, "'e' = '9', expected one of off, on, auto"},
        {"e", "ie", {{"off", "shut"}, {"1", "open"}}, 2, "'off' and '1' are the same value"},
        {"b", "ib", {{"maybe", "true"}}, 1, "'b' = 'maybe', expected true, false, 1 or 0"},
        {"i", "small", {{"3", "300"}}, 1, "expected a whole number from -128 to 127"},
        {"i", "ir", {{"3", "x"}}, 1, "'ir' = 'x', expected a number"},
        {"r", "ir", {{"3", "4"}}, 1, "'r' is a real number, a map takes a Boolean, an integer"},
        {"text", "itext", {{"a", "b"}}, 1, "a map make no sense between String variables"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench t = lay(cases[i].from, cases[i].to);
        t.c->map = cases[i].map;
        t.c->map_count = cases[i].count;
        check_refused(&t, CRD_E_RANGE, cases[i].part);
    }
}

static void stages_of_real_numbers_become_one_gain_and_offset(void** state)
{
    (void)state;
    // km/h -> mph of a file's own -> doubled, then plain m/s
    const crd_dimension mile_per_hour = {.m = 1, .s = -1, .factor = 1609.344 / 3600};
    const crd_transformation via[] = {
        {.unit = "mph", .dimension = &mile_per_hour, .convert_units = true},
        {.unit = "mph",
         .dimension = &mile_per_hour,
         .convert_units = true,
         .gain = 2,
         .offset = 1,
         .has_transformation = true},
    };
    bench t = lay("speed", "ispeed");
    t.c->via = via;
    t.c->via_count = 2;
    const double mph = 72 / 3.6 / (1609.344 / 3600);
    check_near(arrives(&t, "72"), (2 * mph + 1) * 1609.344 / 3600, 1e-12);
    t.c->gain = 10;
    t.c->offset = -3;
    t.c->has_transformation = true;
    check_near(arrives(&t, "72"), 10 * (2 * mph + 1) * 1609.344 / 3600 - 3, 1e-11);
    put_away(&t);

    // degC -> degF -> K has offsets at every stage
    const crd_transformation fahrenheit = {.unit = "degF", .convert_units = true};
    t = lay("temperature", "itemperature");
    t.c->via = &fahrenheit;
    t.c->via_count = 1;
    check_near(arrives(&t, "20"), 293.15, 1e-11);
    put_away(&t);
}

static void integers_keep_to_what_their_target_can_hold(void** state)
{
    (void)state;
    static const struct {
        const char *from, *to, *value;
        double arrives;
    } cases[] = {
        {"big", "iwhole", "18446744073709551615", 9223372036854775807.0},
        {"big", "iwhole", "7", 7},
        {"whole", "ibig", "-1", 0},
        {"whole", "ibig", "9007199254740993", 9007199254740992.0},
        {"r", "ibig", "-1", 0},
        {"whole", "small", "-1000", -128},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench t = lay(cases[i].from, cases[i].to);
        check_near(arrives(&t, cases[i].value), cases[i].arrives, 0);
        put_away(&t);
    }
}

static void a_tunable_parameter_is_a_target_and_a_text_is_not_scaled(void** state)
{
    (void)state;
    bench t = lay("r", "tuned");
    check_near(arrives(&t, "4"), 4, 0);
    put_away(&t);
    const crd_transformation doubled = {.has_transformation = true, .gain = 2};
    t = lay("text", "itext");
    t.c->via = &doubled;
    t.c->via_count = 1;
    check_refused(&t, CRD_E_RANGE, "gain and offset or a map make no sense");
}

static void a_stage_converts_before_it_scales(void** state)
{
    (void)state;
    const crd_transformation both = {
        .unit = "m/s", .convert_units = true, .has_transformation = true, .gain = 2, .offset = 1};
    bench t = lay("speed", "ispeed");
    t.c->via = &both;
    t.c->via_count = 1;
    check_near(arrives(&t, "72"), 41, 1e-13);
    put_away(&t);
}

static void what_a_map_on_the_way_does_not_know_goes_on_as_a_number(void** state)
{
    (void)state;
    static const crd_map_entry five[] = {{"5", "300"}}, one[] = {{"1", "2"}}, two[] = {{"2", "9"}};
    const crd_transformation mapped = {.map = five, .map_count = 1};
    const crd_transformation halved = {.has_transformation = true, .gain = 0.5};
    bench t = lay("big", "ir"); // a large unsigned number is no negative one
    t.c->via = &mapped;
    t.c->via_count = 1;
    t.c->has_transformation = true;
    t.c->gain = 0.5;
    check_near(arrives(&t, "18446744073709551614"), 9223372036854775808.0, 0);
    check_near(arrives(&t, "5"), 150, 0);
    put_away(&t);
    t = lay("big", "small"); // 300 is in the first map only, and no Int8
    t.c->via = &mapped;
    t.c->via_count = 1;
    t.c->map = one;
    t.c->map_count = 1;
    check_near(arrives(&t, "5"), 127, 0);
    check_near(arrives(&t, "1"), 2, 0);
    put_away(&t);
    t = lay("big", "small"); // two and a half is not two
    t.c->via = &halved;
    t.c->via_count = 1;
    t.c->map = two;
    t.c->map_count = 1;
    check_near(arrives(&t, "4"), 9, 0);
    check_near(arrives(&t, "5"), 2, 0);
    put_away(&t);
}

static void a_stage_that_says_nothing_keeps_the_unit(void** state)
{
    (void)state;
    const crd_transformation plain = {.unit = "", .convert_units = true};
    bench t = lay("speed", "ispeed");
    t.c->via = &plain;
    t.c->via_count = 1;
    check_near(arrives(&t, "72"), 20, 1e-14);
    put_away(&t);
    // Of a unit that nobody knows, nothing is converted any more.
    const crd_transformation unknown = {.unit = "furlong/fortnight", .convert_units = true};
    t = lay("speed", "ispeed");
    t.c->via = &unknown;
    t.c->via_count = 1;
    check_near(arrives(&t, "72"), 72, 0);
    put_away(&t);
    const crd_transformation kept = {.unit = "kg", .convert_units = false};
    t = lay("speed", "ispeed");
    t.c->via = &kept;
    t.c->via_count = 1;
    t.c->convert_units = false;
    check_near(arrives(&t, "72"), 72, 0);
    put_away(&t);
}

static void units_that_do_not_convert_on_the_way_are_refused(void** state)
{
    (void)state;
    const crd_transformation mass = {.unit = "kg", .convert_units = true};
    bench t = lay("speed", "ispeed");
    t.c->via = &mass;
    t.c->via_count = 1;
    check_refused(&t, CRD_E_RANGE,
                  "a.speed -> b.ispeed: 'km/h' cannot be converted into 'kg' on the way");
    const crd_transformation kept = {.unit = "kg", .convert_units = false};
    t = lay("speed", "ispeed");
    t.c->via = &kept;
    t.c->via_count = 1;
    check_refused(&t, CRD_E_RANGE, "'kg' cannot be converted into 'm/s' on the way");
}

static void maps_one_after_the_other_speak_words_of_their_own(void** state)
{
    (void)state;
    // The connector in between has an enumeration that neither end knows.
    static const crd_map_entry first[] = {{"off", "night"}, {"on", "day"}};
    static const crd_map_entry second[] = {{"day", "half"}, {"night", "stuck"}};
    const crd_transformation via = {.map = first, .map_count = 2};
    bench t = lay("e", "ie");
    t.c->via = &via;
    t.c->via_count = 1;
    t.c->map = second;
    t.c->map_count = 2;
    check_near(arrives(&t, "off"), 4, 0);
    check_near(arrives(&t, "on"), 3, 0);
    check_near(arrives(&t, "auto"), 3, 0); // passes both
    put_away(&t);

    static const crd_map_entry lost[] = {{"day", "half"}};
    t = lay("e", "ie");
    t.c->via = &via;
    t.c->via_count = 1;
    t.c->map = lost;
    t.c->map_count = 1;
    check_refused(&t, CRD_E_RANGE, "'night' is no number");
}

static void maps_and_gains_may_take_turns(void** state)
{
    (void)state;
    static const crd_map_entry first[] = {{"3", "7"}};
    static const crd_map_entry last[] = {{"15", "100"}};
    const crd_transformation via[] = {
        {.map = first, .map_count = 1},
        {.gain = 2, .offset = 1, .has_transformation = true},
    };
    bench t = lay("big", "ii");
    t.c->via = via;
    t.c->via_count = 2;
    t.c->map = last;
    t.c->map_count = 1;
    check_near(arrives(&t, "3"), 100, 0); // 7, 15, 100
    check_near(arrives(&t, "4"), 9, 0);   // 4, 9
    check_near(arrives(&t, "7"), 100, 0); // 7, 15, 100
    put_away(&t);
}

static void a_map_moves_at_the_start_and_in_every_scheme(void** state)
{
    (void)state;
    static const crd_map_entry map[] = {{"3", "-3"}};
    for (int scheme = 0; scheme < 2; scheme++) {
        bench t = lay("i", "ii");
        t.c->map = map;
        t.c->map_count = 1;
        if (scheme) {
            check_ok(crd_system_set_scheme(t.s, "gauss-seidel: [a, b]", (crd_place){"", 0}));
        }
        crd_master* m = NULL;
        set(t.s, 0, "i", scheme ? "2" : "3");
        check_run(crd_master_create(t.ctx, t.s, NULL, &m), t.ctx);
        check_run(crd_master_initialize(m), t.ctx);
        check_near(value(m, "b.ii"), scheme ? 2 : -3, 0);
        check_run(crd_master_advance(m, 1), t.ctx);
        check_near(value(m, "b.ii"), -3, 0); // Jacobi: the value before the step, else behind it
        check_run(crd_master_finish(m), t.ctx);
        crd_master_destroy(m);
        put_away(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_of_an_enumeration_goes_by_the_items_of_both_ends),
        cmocka_unit_test(a_map_takes_booleans_and_integers_into_any_type),
        cmocka_unit_test(a_map_works_for_each_element_of_an_array),
        cmocka_unit_test(a_wrong_map_is_refused_with_place_and_items),
        cmocka_unit_test(stages_of_real_numbers_become_one_gain_and_offset),
        cmocka_unit_test(integers_keep_to_what_their_target_can_hold),
        cmocka_unit_test(a_tunable_parameter_is_a_target_and_a_text_is_not_scaled),
        cmocka_unit_test(a_stage_converts_before_it_scales),
        cmocka_unit_test(what_a_map_on_the_way_does_not_know_goes_on_as_a_number),
        cmocka_unit_test(a_stage_that_says_nothing_keeps_the_unit),
        cmocka_unit_test(units_that_do_not_convert_on_the_way_are_refused),
        cmocka_unit_test(maps_one_after_the_other_speak_words_of_their_own),
        cmocka_unit_test(maps_and_gains_may_take_turns),
        cmocka_unit_test(a_map_moves_at_the_start_and_in_every_scheme),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
