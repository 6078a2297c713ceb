// The safety core against the table of docs/explanation/safety.md, which is its model.
#include "check.h"
#include "shared/dcp_safety.h"

#include <math.h>
#include <stdio.h>

// ---- the table of the docs ---------------------------------------------------------------------

static const char* const movers[] = {"nobody", "bench", "master", "order"};
static const char* const deadmen[] = {"none", "heart", "first data", "data", "stage"};

typedef struct cell {
    int next; // phase
    bool cut;
} cell;

static struct {
    cell cells[CRDI_SAFETY_PHASES][CRDI_SAFETY_EVENTS];
    int mover[CRDI_SAFETY_PHASES], deadman[CRDI_SAFETY_PHASES];
    int rows;
} model;

static const int order[CRDI_SAFETY_PHASES] = {0, 1, 2, 3, 4, 11, 5, 6, 7, 8, 9, 10};

static void print_table(FILE* f)
{
    fprintf(f, "| phase | moves | deadman |");
    for (int e = 0; e < CRDI_SAFETY_EVENTS; e++) {
        fprintf(f, " %s |", crdi_safety_event_name(e));
    }
    fprintf(f, "\n|---|---|---|");
    for (int e = 0; e < CRDI_SAFETY_EVENTS; e++) {
        fprintf(f, "---|");
    }
    for (int i = 0; i < CRDI_SAFETY_PHASES; i++) {
        const crd_dcp_bench_phase p = (crd_dcp_bench_phase)order[i];
        fprintf(f, "\n| %s | %s | %s |", crd_dcp_bench_phase_name((int)p),
                movers[crdi_safety_mover_of(p)], deadmen[crdi_safety_deadman_of(p)]);
        for (int e = 0; e < CRDI_SAFETY_EVENTS; e++) {
            const crdi_safety_step s = crdi_safety_step_of(p, (crdi_safety_event)e);
            fprintf(f, " %s |",
                    s.cut         ? "cut"
                    : s.next == p ? "."
                                  : crd_dcp_bench_phase_name((int)s.next));
        }
    }
    fprintf(f, "\n");
}

// The next cell of a row of the table, without its blanks.
static const char* next_cell(char** at)
{
    static char text[64];
    char* end = strchr(*at, '|');
    check(end != NULL);
    while (**at == ' ') {
        (*at)++;
    }
    size_t n = (size_t)(end - *at);
    while (n > 0 && (*at)[n - 1] == ' ') {
        n--;
    }
    check(n < sizeof text);
    memcpy(text, *at, n);
    text[n] = 0;
    *at = end + 1;
    return text;
}

static int find_word(const char* const* words, int count, const char* text)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0) { return i; }
    }
    return -1;
}

static int phase_of(const char* text)
{
    for (int i = 0; i < CRDI_SAFETY_PHASES; i++) {
        if (strcmp(crd_dcp_bench_phase_name(i), text) == 0) { return i; }
    }
    return -1;
}

static void read_row(char* line)
{
    char* at = line + 1;
    const int p = phase_of(next_cell(&at));
    if (p < 0) { return; }
    model.mover[p] = find_word(movers, 4, next_cell(&at));
    model.deadman[p] = find_word(deadmen, 5, next_cell(&at));
    for (int e = 0; e < CRDI_SAFETY_EVENTS; e++) {
        const char* text = next_cell(&at);
        const bool cut = strcmp(text, "cut") == 0;
        const int next = cut || strcmp(text, ".") == 0 ? p : phase_of(text);
        check(next >= 0);
        model.cells[p][e] = (cell){next, cut};
    }
    model.rows++;
}

static int read_model(void** state)
{
    char line[1024];
    FILE* f = fopen(CARDAN_SOURCE "/docs/explanation/safety.md", "r");
    if (!f) { return -1; }
    bool inside = false;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "| phase | moves |", 17) == 0) { inside = true; }
        if (inside && line[0] == '|') { read_row(line); }
        if (inside && line[0] != '|') { break; }
    }
    fclose(f);
    return 0;
}

static void the_table_of_the_docs_is_the_one_of_the_code(void** state)
{
    bool same = model.rows == CRDI_SAFETY_PHASES;
    for (int p = 0; p < CRDI_SAFETY_PHASES && same; p++) {
        same = model.mover[p] == (int)crdi_safety_mover_of((crd_dcp_bench_phase)p) &&
               model.deadman[p] == (int)crdi_safety_deadman_of((crd_dcp_bench_phase)p);
        for (int e = 0; e < CRDI_SAFETY_EVENTS; e++) {
            const crdi_safety_step s =
                crdi_safety_step_of((crd_dcp_bench_phase)p, (crdi_safety_event)e);
            same = same && (int)s.next == model.cells[p][e].next && s.cut == model.cells[p][e].cut;
        }
    }
    if (!same) { print_table(stderr); }
    check(same);
}

// ---- what the table has to have, whatever else it says -----------------------------------------

static void what_may_move_has_a_deadman_and_a_way_to_rest(void** state)
{
    for (int i = 0; i < CRDI_SAFETY_PHASES; i++) {
        const crd_dcp_bench_phase p = (crd_dcp_bench_phase)i;
        const crdi_safety_mover mover = crdi_safety_mover_of(p);
        if (mover != CRDI_SAFETY_NOBODY) {
            check(crdi_safety_deadman_of(p) != CRDI_SAFETY_NO_DEADMAN);
        }
        if (mover == CRDI_SAFETY_CONDITION || mover == CRDI_SAFETY_MASTER) {
            const crdi_safety_event ends[] = {CRDI_SAFETY_STOP, CRDI_SAFETY_FAULT,
                                              CRDI_SAFETY_SILENCE};
            for (int k = 0; k < 3; k++) {
                check_int(crdi_safety_step_of(p, ends[k]).next, CRD_DCP_BENCH_SPEED_DOWN);
            }
        }
        for (int e = 0; e < CRDI_SAFETY_EVENTS; e++) {
            const crd_dcp_bench_phase to = crdi_safety_step_of(p, (crdi_safety_event)e).next;
            // The master drives behind valid data in RUNNING, and behind nothing else.
            if (to == CRD_DCP_BENCH_RUN && p != to) {
                check(e == CRDI_SAFETY_DATA && p == CRD_DCP_BENCH_ARMED);
            }
            // A stop goes on to its end.
            if (mover == CRDI_SAFETY_ORDER) {
                check(crdi_safety_mover_of(to) == CRDI_SAFETY_ORDER || to == CRD_DCP_BENCH_SAFE);
            }
            if (e == CRDI_SAFETY_EARLY || e == CRDI_SAFETY_FOREIGN) { check(to == p); }
        }
    }
}

// ---- random sequences --------------------------------------------------------------------------

static uint64_t draw(uint64_t* s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static const crdi_safety_times times = {
    .heart = 3, .watchdog = 0.5, .speed = 8, .voltage = 4, .cool = 60, .stand = 5};

// The deadline by the rule of the docs, from the events alone.
static double deadline_by_rule(int phase, double since, double heard, double due, double valid)
{
    const double heart = fmax(heard + 3, since);
    switch (model.deadman[phase]) {
    case 1:
        return heart;
    case 2:
        return fmin(heart, due + 0.5);
    case 3:
        return valid + 0.5;
    default:
        return INFINITY;
    }
}

// A hundred thousand sequences of 60 events; the deadman is asked behind each, and obeyed.
static void random_sequences_go_as_the_table_says(void** state)
{
    uint64_t seed = 20261116;
    int64_t runs = 0, silences = 0, ends = 0;
    for (int n = 0; n < 100000; n++) {
        crdi_safety s;
        int phase = CRD_DCP_BENCH_IDLE;
        double now = 1000, since = -INFINITY, heard = 1000, due = INFINITY, valid = -INFINITY;
        bool cut = false;
        crdi_safety_init(&s, &times);
        s.received = heard;
        for (int i = 0; i < 60; i++) {
            now += (double)(draw(&seed) % 1000) * 1e-3 * (draw(&seed) % 4 == 0 ? 4 : 0.2);
            int e = (int)(draw(&seed) % CRDI_SAFETY_EVENTS);
            if (draw(&seed) % 3) { // along the way, so that all of it is seen
                static const int on[] = {
                    CRDI_SAFETY_PREPARE, CRDI_SAFETY_READY, CRDI_SAFETY_CONFIGURE,
                    CRDI_SAFETY_WARM,    CRDI_SAFETY_START, CRDI_SAFETY_DATA,
                    CRDI_SAFETY_SLOW,    CRDI_SAFETY_HOT,   CRDI_SAFETY_COOL,
                    CRDI_SAFETY_STILL,   CRDI_SAFETY_RESET, CRDI_SAFETY_DATA};
                e = on[phase];
            }
            if (now >= deadline_by_rule(phase, since, heard, due, valid)) {
                e = CRDI_SAFETY_SILENCE;
                silences++;
            }
            const cell c = model.cells[phase][e];
            if (e == CRDI_SAFETY_START) {
                const double start = now + (double)(draw(&seed) % 3000) * 1e-3;
                crdi_safety_start(&s, now, start);
                if (c.next == CRD_DCP_BENCH_ARMED) {
                    due = start;
                    valid = -INFINITY;
                }
            } else if (e == CRDI_SAFETY_DATA) {
                crdi_safety_data(&s, now);
                valid = now;
            } else {
                const bool told = crdi_safety_happens(&s, (crdi_safety_event)e, now);
                check(told == (c.next != phase || (c.cut && !cut)));
            }
            cut = (cut || c.cut) && !(c.next == CRD_DCP_BENCH_IDLE && phase != c.next);
            if (c.next != phase) { since = now; }
            if (c.next == CRD_DCP_BENCH_IDLE && phase != c.next) { valid = -INFINITY; }
            phase = c.next;
            if (draw(&seed) % 8 == 0) { s.received = heard = now; }
            check_int(s.phase, phase);
            check(s.cut == cut);
            check(crdi_safety_deadline(&s) == deadline_by_rule(phase, since, heard, due, valid));
            runs += phase == CRD_DCP_BENCH_RUN;
            ends += phase == CRD_DCP_BENCH_SAFE;
        }
    }
    check(runs > 10000 && silences > 10000 && ends > 10000);
}

// ---- envelope ----------------------------------------------------------------------------------

static double number(uint64_t* seed, double scale)
{
    return scale * ((double)(draw(seed) >> 11) / 4503599627370496.0 - 1);
}

// The agreed range lies in all three, a set value goes to the nearest point of it, a change keeps
// to the least of the rates: a million times.
static void a_set_value_stays_in_the_intersection(void** state)
{
    uint64_t seed = 7;
    int64_t empty = 0;
    for (int n = 0; n < 1000000; n++) {
        crdi_safety_range r[3];
        double min = -INFINITY, max = INFINITY, rate = INFINITY;
        for (int k = 0; k < 3; k++) {
            const double a = number(&seed, 100), b = number(&seed, 100);
            r[k] = (crdi_safety_range){fmin(a, b), fmax(a, b), fabs(number(&seed, 50)) + 1e-3};
            min = fmax(min, r[k].min);
            max = fmin(max, r[k].max);
            rate = fmin(rate, r[k].rate);
        }
        crdi_safety_axis a = {.own = r[0]};
        crdi_safety_axis_open(&a);
        const bool left = crdi_safety_narrow(&a, &r[1]) && crdi_safety_narrow(&a, &r[2]);
        check(left == (min <= max));
        if (!left) {
            empty++;
            check(a.agreed.min <= a.agreed.max);
            continue;
        }
        check(a.agreed.min == min && a.agreed.max == max && a.agreed.rate == rate);
        const double x = number(&seed, 300), used = crdi_safety_keep(&a, x);
        check(used == fmin(fmax(x, min), max));
        const double own = crdi_safety_keep_own(&a, x);
        check(own >= fmin(r[0].min, own) && own <= r[0].max && own >= r[0].min);
        bool slow;
        const double from = number(&seed, 100), dt = 0.01;
        const double to = crdi_safety_move(from, used, a.agreed.rate, dt, &slow);
        check(fabs(to - from) <= rate * dt * (1 + 2e-9) + 1e-9);
        check(slow || to == used);
    }
    check(empty > 1000);
}

static void what_is_kept_is_counted_and_told_once(void** state)
{
    crdi_safety_clamps c = {.since = NAN};
    check(!crdi_safety_note(&c, 1, 1, 0));
    check(crdi_safety_note(&c, 5000, 3100, 1));
    check(!crdi_safety_note(&c, 5500, 3100, 2) && c.since == 1);
    check(!crdi_safety_note(&c, 3000, 3000, 3) && isnan(c.since));
    check(crdi_safety_note(&c, 4000, 3100, 4));
    check(c.count == 2 && c.values == 3 && c.wanted == 5000 && c.used == 3100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_the_docs_is_the_one_of_the_code),
        cmocka_unit_test(what_may_move_has_a_deadman_and_a_way_to_rest),
        cmocka_unit_test(random_sequences_go_as_the_table_says),
        cmocka_unit_test(a_set_value_stays_in_the_intersection),
        cmocka_unit_test(what_is_kept_is_counted_and_told_once),
    };
    return cmocka_run_group_tests(tests, read_model, NULL);
}
