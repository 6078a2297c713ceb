// Limits of a bench and envelopes of a test case: their texts, and whether one keeps to the other.
#include "dcp/bench/bench.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- reading -----------------------------------------------------------------------------------

typedef struct reader {
    crd_context* ctx;
    const char *at, *end; // of the statement
    const char* statement;
} reader;

static crd_status fail_statement(const reader* r, const char* what)
{
    char copy[64];
    size_t n = (size_t)(r->end - r->statement);
    if (n >= sizeof copy) { n = sizeof copy - 1; }
    memcpy(copy, r->statement, n);
    copy[n] = 0;
    return crdi_fail(r->ctx, CRD_E_FORMAT, "'%s': %s", crdi_clip(copy).text, what);
}

static void skip_blanks(reader* r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at)) {
        r->at++;
    }
}

// Length of the word that is next.
static size_t word_length(reader* r)
{
    skip_blanks(r);
    size_t n = 0;
    while (r->at + n < r->end && !isspace((unsigned char)r->at[n])) {
        n++;
    }
    return n;
}

static bool take_word(reader* r, const char* wanted)
{
    const size_t n = word_length(r);
    if (n != strlen(wanted) || memcmp(r->at, wanted, n) != 0) { return false; }
    r->at += n;
    return true;
}

static bool is_keyword(const reader* r, size_t n)
{
    return n == 4 && (memcmp(r->at, "rate", 4) == 0 || memcmp(r->at, "with", 4) == 0);
}

static crd_status read_name(reader* r, char name[32])
{
    const size_t n = word_length(r);
    bool good = n > 0 && n < 32 && (isalpha((unsigned char)*r->at) || *r->at == '_');
    for (size_t i = 1; good && i < n; i++) {
        const unsigned char c = (unsigned char)r->at[i];
        good = isalnum(c) || c == '_' || c == '.' || c == '-';
    }
    if (!good || is_keyword(r, n) || (n == 5 && memcmp(r->at, "avoid", 5) == 0)) {
        return fail_statement(
            r, "expected the name of a quantity (a letter, then up to 30 letters, digits, "
               "'_', '.', '-')");
    }
    memcpy(name, r->at, n);
    name[n] = 0;
    r->at += n;
    return CRD_OK;
}

// A speed of rotation is written in 1/min, and means revolutions.
bool crdi_bench_dimension(const char* unit, crd_dimension* out)
{
    static const char* const turns[] = {"1/min", "min-1", "min^-1", "/min", "U/min"};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        if (strcmp(unit, turns[i]) == 0) { unit = "rpm"; }
    }
    return crd_dimension_parse(unit, out);
}

static crd_status limits_read_unit(reader* r, crdi_dcp_limit* l)
{
    const size_t n = word_length(r);
    if (n == 0 || is_keyword(r, n)) {
        l->unit[0] = 0;
        return crdi_bench_dimension("", &l->dimension) ? CRD_OK : CRD_E_FORMAT;
    }
    if (n >= sizeof l->unit) { return fail_statement(r, "the unit is longer than 15 characters"); }
    memcpy(l->unit, r->at, n);
    l->unit[n] = 0;
    if (!crdi_bench_dimension(l->unit, &l->dimension)) {
        return fail_statement(r, "its unit is not known; expected one as 1/min, N.m, V, degC");
    }
    r->at += n;
    return CRD_OK;
}

// Up to a blank or "..".
static bool read_limit_number(reader* r, double* out)
{
    size_t n = 0;
    while (r->at + n < r->end && !isspace((unsigned char)r->at[n]) &&
           !(r->at[n] == '.' && r->at + n + 1 < r->end && r->at[n + 1] == '.')) {
        n++;
    }
    if (n == 0 || !crdi_parse_double(r->at, n, out) || !isfinite(*out)) { return false; }
    r->at += n;
    return true;
}

// "a..b", "a..", "..b", "a".
static crd_status read_range(reader* r, crdi_dcp_limit* l)
{
    static const char expected[] = "expected a range of numbers as 0..6500, ..400 or 20..";
    word_length(r);
    const bool low = read_limit_number(r, &l->min);
    if (!low) { l->min = -INFINITY; }
    if (r->at + 1 < r->end && r->at[0] == '.' && r->at[1] == '.') {
        r->at += 2;
        const bool high = read_limit_number(r, &l->max);
        if (!high) { l->max = INFINITY; }
        if (!low && !high) { return fail_statement(r, expected); }
    } else {
        if (!low) { return fail_statement(r, expected); }
        l->max = l->min;
    }
    if (!(l->min <= l->max)) { return fail_statement(r, "the range ends before it begins"); }
    return limits_read_unit(r, l);
}

// "2000 1/min/s": the unit of the quantity over one of time. Without a unit of its own yet, the
// quantity gets this one.
static crd_status read_rate(reader* r, crdi_dcp_limit* l, bool has_unit)
{
    static const char expected[] = "expected a rate above 0 with its unit over a time, as "
                                   "2000 1/min/s";
    char unit[24];
    word_length(r);
    if (!read_limit_number(r, &l->rate) || !(l->rate > 0)) { return fail_statement(r, expected); }
    const size_t n = word_length(r);
    if (n == 0 || n >= sizeof unit) { return fail_statement(r, expected); }
    memcpy(unit, r->at, n);
    unit[n] = 0;
    r->at += n;
    char* slash = strrchr(unit, '/');
    if (!slash) { return fail_statement(r, expected); }
    *slash = 0;
    const char* base = strcmp(unit, "1") == 0 ? "" : unit;
    crd_dimension time, of, second;
    if (!crd_dimension_parse("s", &second) || !crd_dimension_parse(slash + 1, &time) ||
        !crd_dimension_equal(&time, &second) || !crdi_bench_dimension(base, &of)) {
        return fail_statement(r, expected);
    }
    if (!has_unit) {
        if (strlen(base) >= sizeof l->unit) { return fail_statement(r, expected); }
        snprintf(l->unit, sizeof l->unit, "%.15s", base);
        l->dimension = of;
    }
    if (!crd_dimension_equal(&of, &l->dimension)) {
        return fail_statement(r, "its rate is not in its unit over a time");
    }
    if (strcmp(base, l->unit) != 0) { l->rate *= of.factor / l->dimension.factor; }
    l->rate /= time.factor;
    return l->rate > 0 && isfinite(l->rate) ? CRD_OK : fail_statement(r, expected);
}

static crdi_dcp_limit unbounded(void)
{
    return (crdi_dcp_limit){.min = -INFINITY, .max = INFINITY, .rate = INFINITY};
}

static crd_status read_limit(reader* r, crdi_dcp_limits* out)
{
    crd_status st = CRD_OK;
    crdi_dcp_limit l = unbounded();
    CRD_TRY(read_name(r, l.name));
    if (crdi_dcp_limits_find(out, l.name)) { return fail_statement(r, "it has been given before"); }
    if (out->count == CRDI_DCP_LIMITS) {
        return fail_statement(r, CRDI_DCP_LIMITS == 16
                                     ? "there are more than 16 quantities"
                                     : "there are more quantities than a controller has room for");
    }
    const bool only_rate = take_word(r, "rate");
    if (!only_rate) { CRD_TRY(read_range(r, &l)); }
    if (only_rate || take_word(r, "rate")) { CRD_TRY(read_rate(r, &l, !only_rate)); }
    if (word_length(r) > 0) { return fail_statement(r, "expected ';' behind it"); }
    out->of[out->count++] = l;
fail:
    return st;
}

static crd_status read_region(reader* r, crdi_dcp_limits* out)
{
    crd_status st = CRD_OK;
    crdi_dcp_region g = {.where = unbounded(), .with = unbounded()};
    if (out->avoid_count == CRDI_DCP_REGIONS_MAX) {
        return fail_statement(
            r, CRDI_DCP_REGIONS_MAX == 8
                   ? "there are more than 8 forbidden regions"
                   : "there are more forbidden regions than a controller has room for");
    }
    CRD_TRY(read_name(r, g.where.name));
    CRD_TRY(read_range(r, &g.where));
    if (!take_word(r, "with")) {
        return fail_statement(
            r, "expected 'with' and another quantity, as avoid speed 0..50 1/min with "
               "torque");
    }
    CRD_TRY(read_name(r, g.with.name));
    if (word_length(r) > 0) {
        CRD_TRY(read_range(r, &g.with));
    } else {
        g.with.min = g.with.max = NAN; // anything but 0
    }
    if (word_length(r) > 0) { return fail_statement(r, "expected ';' behind it"); }
    if (strcmp(g.where.name, g.with.name) == 0) {
        return fail_statement(r, "expected two different quantities");
    }
    out->avoid[out->avoid_count++] = g;
fail:
    return st;
}

crd_status crdi_dcp_limits_parse(crd_context* ctx, const char* text, size_t length,
                                 crdi_dcp_limits* out)
{
    crdi_dcp_limits l = {0};
    crd_status st = CRD_OK;
    if (length > 0 && memchr(text, 0, length)) {
        return crdi_fail(ctx, CRD_E_FORMAT, "limits with a zero byte, expected text");
    }
    const char *at = text, *end = text + length;
    while (at < end) {
        reader r = {.ctx = ctx, .at = at, .end = at};
        while (r.end < end && *r.end != ';' && *r.end != '\n') {
            r.end++;
        }
        at = r.end + 1;
        skip_blanks(&r);
        r.statement = r.at;
        if (r.at == r.end) { continue; }
        CRD_TRY(take_word(&r, "avoid") ? read_region(&r, &l) : read_limit(&r, &l));
    }
    *out = l;
fail:
    return st;
}

crd_status crdi_dcp_initial_parse(crd_context* ctx, const char* text, size_t length,
                                  crdi_dcp_limits* out, double* tolerance)
{
    crd_status st = CRD_OK;
    crdi_dcp_limits l;
    crd_dimension kelvin;
    CRD_TRY(crdi_dcp_limits_parse(ctx, text, length, &l));
    CRD_TRY(crd_dimension_parse("K", &kelvin) ? CRD_OK : CRD_E_FORMAT);
    if (l.avoid_count > 0) {
        return crdi_fail(ctx, CRD_E_FORMAT, "initial temperatures have nothing to avoid");
    }
    int kept = 0;
    double found = NAN;
    for (int i = 0; i < l.count; i++) {
        const crdi_dcp_limit* t = &l.of[i];
        if (t->min != t->max || !crd_dimension_equal(&t->dimension, &kelvin)) {
            return crdi_fail(ctx, CRD_E_FORMAT,
                             "initial temperatures: %s, expected one temperature as %s 80 degC",
                             t->name, t->name);
        }
        if (strcmp(t->name, "tolerance") == 0) {
            found = t->min * t->dimension.factor;
        } else {
            l.of[kept++] = *t;
        }
    }
    if (found <= 0) { // not where it is NAN
        return crdi_fail(ctx, CRD_E_RANGE, "initial temperatures: tolerance = %g K, expected > 0",
                         found);
    }
    l.count = kept;
    *out = l;
    *tolerance = isnan(found) ? 1 : found;
fail:
    return st;
}

// ---- writing -----------------------------------------------------------------------------------

static void limits_put_words(crdi_dcp_line* w, const char* text)
{
    crdi_dcp_line_put(w, text, strlen(text));
}

static void put_shortest(crdi_dcp_line* w, double x)
{
    char text[32];
    crdi_dcp_line_put(w, text, (size_t)crdi_format_double(text, x));
}

static void put_range(crdi_dcp_line* w, const crdi_dcp_limit* l)
{
    limits_put_words(w, l->name);
    if (l->min > -INFINITY || l->max < INFINITY) {
        limits_put_words(w, " ");
        if (l->min > -INFINITY) { put_shortest(w, l->min); }
        if (l->max > l->min) { limits_put_words(w, ".."); }
        if (l->max > l->min && l->max < INFINITY) { put_shortest(w, l->max); }
        if (l->unit[0]) { limits_put_words(w, " "); }
        limits_put_words(w, l->unit);
    }
    if (l->rate < INFINITY) {
        limits_put_words(w, " rate ");
        put_shortest(w, l->rate);
        limits_put_words(w, " ");
        limits_put_words(w, l->unit[0] ? l->unit : "1");
        limits_put_words(w, "/s");
    }
}

int crdi_dcp_limits_print(const crdi_dcp_limits* l, char* out, size_t room)
{
    crdi_dcp_line w = {.out = out, .room = room};
    crdi_dcp_line_put(&w, "", 0);
    for (int i = 0; i < l->count; i++) {
        limits_put_words(&w, w.length ? "; " : "");
        put_range(&w, &l->of[i]);
    }
    for (int i = 0; i < l->avoid_count; i++) {
        limits_put_words(&w, w.length ? "; avoid " : "avoid ");
        put_range(&w, &l->avoid[i].where);
        limits_put_words(&w, " with ");
        if (isnan(l->avoid[i].with.min)) {
            limits_put_words(&w, l->avoid[i].with.name);
        } else {
            put_range(&w, &l->avoid[i].with);
        }
    }
    return (int)w.length;
}

// ---- checking ----------------------------------------------------------------------------------

const crdi_dcp_limit* crdi_dcp_limits_find(const crdi_dcp_limits* l, const char* name)
{
    for (int i = 0; i < l->count; i++) {
        if (strcmp(l->of[i].name, name) == 0) { return &l->of[i]; }
    }
    return NULL;
}

double crdi_bench_convert(double x, const crdi_dcp_limit* from, const char* unit,
                          const crd_dimension* dimension)
{
    if (strcmp(from->unit, unit) == 0 || !isfinite(x)) { return x; }
    return (x * from->dimension.factor + from->dimension.offset - dimension->offset) /
           dimension->factor;
}

bool crdi_bench_range(const crdi_dcp_limit* l, const char* unit, const crd_dimension* dimension,
                      crdi_safety_range* out)
{
    if (!crd_dimension_equal(dimension, &l->dimension)) { return false; }
    const double scale = strcmp(unit, l->unit) == 0 ? 1 : l->dimension.factor / dimension->factor;
    *out = (crdi_safety_range){.min = crdi_bench_convert(l->min, l, unit, dimension),
                               .max = crdi_bench_convert(l->max, l, unit, dimension),
                               .rate = l->rate * scale};
    return true;
}

// A value of `from` in the unit of `to`.
static double convert_limit(double x, const crdi_dcp_limit* from, const crdi_dcp_limit* to)
{
    return crdi_bench_convert(x, from, to->unit, &to->dimension);
}

static bool at_most(double a, double b) // but for rounding of units
{
    if (!isfinite(a) || !isfinite(b)) { return a <= b; }
    return a - b <= 1e-9 * fmax(fabs(a), fabs(b));
}

static void describe_limit(const crdi_dcp_limit* l, char* out, size_t room)
{
    crdi_dcp_limits one = {.count = 1, .of = {*l}};
    crdi_dcp_limits_print(&one, out, room);
}

static crd_status check_range(crd_context* ctx, const crdi_dcp_limit* p, const crdi_dcp_limit* l,
                              const char* who)
{
    if (!crd_dimension_equal(&p->dimension, &l->dimension)) {
        return crdi_fail(ctx, CRD_E_RANGE, "limit %s: the test case has it in '%s', %s in '%s'",
                         p->name, p->unit, who, l->unit);
    }
    const double scale =
        strcmp(p->unit, l->unit) == 0 ? 1 : p->dimension.factor / l->dimension.factor;
    char needs[96], allows[96];
    describe_limit(p, needs, sizeof needs);
    describe_limit(l, allows, sizeof allows);
    const bool ranged = isfinite(p->min) || isfinite(p->max); // else only its rate is said
    if (ranged && !at_most(l->min, convert_limit(p->min, p, l))) {
        return crdi_fail(ctx, CRD_E_RANGE, "limit %s min: the test case needs %s, %s allows %s",
                         p->name, needs, who, allows);
    }
    if (ranged && !at_most(convert_limit(p->max, p, l), l->max)) {
        return crdi_fail(ctx, CRD_E_RANGE, "limit %s max: the test case needs %s, %s allows %s",
                         p->name, needs, who, allows);
    }
    if (p->rate < INFINITY && !at_most(p->rate * scale, l->rate)) {
        return crdi_fail(ctx, CRD_E_RANGE, "limit %s rate: the test case needs %s, %s allows %s",
                         p->name, needs, who, allows);
    }
    return CRD_OK;
}

// Whether the test case has points of the region, as far as its ranges tell.
static bool touches(const crdi_dcp_limits* planned, const crdi_dcp_region* g)
{
    const crdi_dcp_limit* a = crdi_dcp_limits_find(planned, g->where.name);
    const crdi_dcp_limit* b = crdi_dcp_limits_find(planned, g->with.name);
    if (!a || !b) { return false; }
    const bool ranged = !isnan(g->with.min);
    if (!crd_dimension_equal(&a->dimension, &g->where.dimension) ||
        (ranged && !crd_dimension_equal(&b->dimension, &g->with.dimension))) {
        return true; // for all we know
    }
    if (convert_limit(a->max, a, &g->where) < g->where.min ||
        convert_limit(a->min, a, &g->where) > g->where.max) {
        return false;
    }
    if (!ranged) { return b->min != 0 || b->max != 0; }
    return convert_limit(b->max, b, &g->with) >= g->with.min &&
           convert_limit(b->min, b, &g->with) <= g->with.max;
}

static bool covers_range(const crdi_dcp_limit* wide, const crdi_dcp_limit* narrow,
                         const crdi_dcp_limit* planned)
{
    if (!crd_dimension_equal(&wide->dimension, &narrow->dimension)) { return false; }
    // Only the part of it that the test case reaches counts.
    const double low =
        fmax(convert_limit(narrow->min, narrow, wide), convert_limit(planned->min, planned, wide));
    const double high =
        fmin(convert_limit(narrow->max, narrow, wide), convert_limit(planned->max, planned, wide));
    return at_most(wide->min, low) && at_most(high, wide->max);
}

// Whether the test case says that it keeps clear of it.
static bool keeps_clear(const crdi_dcp_limits* planned, const crdi_dcp_region* g)
{
    const crdi_dcp_limit* a = crdi_dcp_limits_find(planned, g->where.name);
    const crdi_dcp_limit* b = crdi_dcp_limits_find(planned, g->with.name);
    for (int i = 0; i < planned->avoid_count; i++) {
        const crdi_dcp_region* p = &planned->avoid[i];
        if (strcmp(p->where.name, g->where.name) != 0 || strcmp(p->with.name, g->with.name) != 0 ||
            !covers_range(&p->where, &g->where, a)) {
            continue;
        }
        if (isnan(p->with.min)) { return true; }
        if (isnan(g->with.min) ? covers_range(&p->with, b, b)
                               : covers_range(&p->with, &g->with, b)) {
            return true;
        }
    }
    return false;
}

crd_status crdi_dcp_limits_check(crd_context* ctx, const crdi_dcp_limits* planned,
                                 const crdi_dcp_limits* limits, const char* who)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < planned->count; i++) {
        const crdi_dcp_limit* l = crdi_dcp_limits_find(limits, planned->of[i].name);
        if (l) { CRD_TRY(check_range(ctx, &planned->of[i], l, who)); }
    }
    for (int i = 0; i < limits->avoid_count; i++) {
        const crdi_dcp_region* g = &limits->avoid[i];
        if (!touches(planned, g) || keeps_clear(planned, g)) { continue; }
        char text[192];
        const crdi_dcp_limits one = {.avoid_count = 1, .avoid = {*g}};
        crdi_dcp_limits_print(&one, text, sizeof text);
        return crdi_fail(ctx, CRD_E_RANGE,
                         "limit '%s' of %s: the test case goes there; it says the same if it does "
                         "not",
                         text, who);
    }
fail:
    return st;
}

typedef struct names {
    const crdi_dcp_limits* of[2];
    int at;
} names;

static const char* next_quantity(void* user)
{
    names* n = user;
    int i = n->at++;
    for (int k = 0; k < 2; k++) {
        if (i < n->of[k]->count) { return n->of[k]->of[i].name; }
        i -= n->of[k]->count;
    }
    return NULL;
}

crd_status crdi_dcp_limits_agree(crd_context* ctx, const crdi_dcp_limits* planned,
                                 const crdi_dcp_limits* bench, const crdi_dcp_limits* peer)
{
    crd_status st = CRD_OK;
    for (int i = 0; i < planned->count; i++) {
        const char* name = planned->of[i].name;
        if (crdi_dcp_limits_find(bench, name) || crdi_dcp_limits_find(peer, name)) { continue; }
        names n = {.of = {bench, peer}};
        const char* near = crdi_nearest(name, next_quantity, &n);
        return crdi_fail(ctx, CRD_E_RANGE,
                         "limit %s: the test case has it, neither the bench nor its peer knows "
                         "it%s%s%s",
                         name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    }
    CRD_TRY(crdi_dcp_limits_check(ctx, planned, bench, "the bench"));
    CRD_TRY(crdi_dcp_limits_check(ctx, planned, peer, "its peer"));
fail:
    return st;
}
