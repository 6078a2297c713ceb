// From text to operations. Precedence, lowest first:
//   ?:   ||   &&   == != <>   < <= > >=   + -   * / %   unary - + !   ^ **   (right to left)
// so that -2^2 is -4. Operations of constants are done at once; those without a finite value wait:
// in the branch of ?: that a constant condition does not take, they do not matter.
#include "circuit/operation.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { NODES_MOST = 1 << 16, WORK_MOST = 1000000 };

typedef struct reader {
    crdi_builder* b;
    crdi_scan* s;
    const crdi_names* names;
    size_t base;                        // of its nodes
    const crdi_function* inside;        // whose body this is; NULL
    int32_t bound[CRDI_ARGUMENTS_MOST]; // nodes of its arguments
} reader;

static crd_status expression_choose(reader* r, int32_t* out);

void crdi_builder_init(crdi_builder* b, crd_context* ctx)
{
    *b = (crdi_builder){.ctx = ctx};
}

void crdi_builder_clear(crdi_builder* b)
{
    if (b->ctx) {
        crd_free(b->ctx, b->nodes);
        crd_free(b->ctx, b->table);
    }
    *b = (crdi_builder){.ctx = b->ctx};
}

static crdi_step step_of(const crdi_operation* n)
{
    return (crdi_step){.op = n->op, .a = n->a, .b = n->b, .c = n->c, .k = n->k};
}

static bool constant(const reader* r, int32_t node)
{
    return r->b->nodes[node].op == OP_CONST;
}

// Functions that call functions twice double the work with each of them.
static crd_status count_work(reader* r)
{
    if (++r->b->work <= WORK_MOST) { return CRD_OK; }
    return crdi_scan_fail(r->s, CRD_E_RANGE,
                          "the functions of an expression need more than %d "
                          "operations",
                          WORK_MOST);
}

static crd_status push(reader* r, crdi_operation n, int32_t* out)
{
    crdi_builder* b = r->b;
    if (r->inside) {
        const crd_status st = count_work(r);
        if (st < 0) { return st; }
    }
    if (b->count - r->base >= NODES_MOST) {
        return crdi_scan_fail(r->s, CRD_E_RANGE, "the expression has more than %d operations",
                              NODES_MOST);
    }
    crdi_operation* p = crdi_grow(b->ctx, b->nodes, &b->capacity, b->count + 1, sizeof *p);
    if (!p) { return CRD_E_MEMORY; }
    b->nodes = p;
    p[b->count] = n;
    p[b->count].line = r->s->line;
    *out = (int32_t)b->count++;
    return CRD_OK;
}

static crd_status expression_number(reader* r, double k, int32_t* out)
{
    return push(r, (crdi_operation){.op = OP_CONST, .k = k}, out);
}

// The node of an operation, folded if its operands are constants.
static crd_status operation(reader* r, crdi_op op, int32_t a, int32_t b, int32_t c, int32_t* out)
{
    crdi_builder* bu = r->b;
    crdi_operation n = {.op = (uint8_t)op, .a = a, .b = b, .c = c};
    const int count = crdi_op_operands(op);
    const bool known =
        constant(r, a) && (count < 2 || constant(r, b)) && (count < 3 || constant(r, c));
    if (op == OP_CHOOSE && constant(r, a)) {
        *out = bu->nodes[a].k != 0 ? b : c;
        return CRD_OK;
    }
    if (known) {
        const crdi_step s = step_of(&n);
        const crdi_operation* v = bu->nodes;
        const double k =
            crdi_op_value(&s, v[a].k, count > 1 ? v[b].k : 0, count > 2 ? v[c].k : 0, bu->table);
        if (isfinite(k)) {
            const size_t top = bu->count; // operands that are on top are not needed any more
            if (count < 3 && (size_t)a + (size_t)count == top && (count < 2 || b == a + 1)) {
                bu->count = (size_t)a;
            }
            return expression_number(r, k, out);
        }
        n.bad = true;
    }
    return push(r, n, out);
}

// ---- names and functions -----------------------------------------------------------------------

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static crdi_word identifier(crdi_scan* s)
{
    crdi_scan_space(s);
    crdi_word w = {s->p, 0};
    while (s->p < s->end && (letter(*s->p) || (s->p > w.p && *s->p >= '0' && *s->p <= '9'))) {
        s->p++;
    }
    w.n = (size_t)(s->p - w.p);
    return w;
}

static const struct {
    const char* name;
    uint8_t op, arguments;
} functions[] = {{"sin", OP_SIN, 1},     {"cos", OP_COS, 1},
                 {"tan", OP_TAN, 1},     {"asin", OP_ASIN, 1},
                 {"acos", OP_ACOS, 1},   {"atan", OP_ATAN, 1},
                 {"arctan", OP_ATAN, 1}, {"atan2", OP_ATAN2, 2},
                 {"sinh", OP_SINH, 1},   {"cosh", OP_COSH, 1},
                 {"tanh", OP_TANH, 1},   {"asinh", OP_ASINH, 1},
                 {"acosh", OP_ACOSH, 1}, {"atanh", OP_ATANH, 1},
                 {"exp", OP_EXP, 1},     {"ln", OP_LN, 1},
                 {"log", OP_LN, 1},      {"log10", OP_LOG10, 1},
                 {"sqrt", OP_SQRT, 1},   {"abs", OP_ABS, 1},
                 {"min", OP_MIN, 2},     {"max", OP_MAX, 2},
                 {"pow", OP_POW, 2},     {"pwr", OP_PWR, 2},
                 {"sgn", OP_SGN, 1},     {"u", OP_STEP, 1},
                 {"uramp", OP_RAMP, 1},  {"floor", OP_FLOOR, 1},
                 {"ceil", OP_CEIL, 1},   {"int", OP_INT, 1},
                 {"limit", OP_LIMIT, 3}, {"ternary_fcn", OP_CHOOSE, 3},
                 {"if", OP_CHOOSE, 3}};

static crd_status expect(reader* r, char c, const char* where)
{
    if (crdi_scan_take(r->s, c)) { return CRD_OK; }
    return crdi_scan_fail(r->s, CRD_E_FORMAT, "\"%s\" where a '%c' is expected %s",
                          crdi_word_clip(crdi_scan_look(r->s)).text, c, where);
}

// One operand that has to be a constant, taken off again.
static crd_status constant_argument(reader* r, double* out)
{
    crd_status st = CRD_OK;
    int32_t node;
    const size_t mark = r->b->count, points = r->b->table_count;
    CRD_TRY(expression_choose(r, &node));
    if (!constant(r, node) && !r->names->dry) {
        return crdi_scan_fail(r->s, CRD_E_RANGE, "the points of a table are finite constants");
    }
    *out = r->b->nodes[node].k;
    r->b->count = mark;
    r->b->table_count = points;
fail:
    return st;
}

// table(x, x1,y1, x2,y2 ...), behind the bracket
static crd_status table(reader* r, crdi_op op, int32_t* out)
{
    crd_status st = CRD_OK;
    crdi_builder* b = r->b;
    int32_t x;
    CRD_TRY(expression_choose(r, &x));
    const size_t first = b->table_count;
    size_t count = 0; // numbers
    while (crdi_scan_take(r->s, ',')) {
        double k = 0;
        CRD_TRY(constant_argument(r, &k));
        double* p = crdi_grow(b->ctx, b->table, &b->table_capacity, b->table_count + 1, sizeof *p);
        if (!p) { return CRD_E_MEMORY; }
        b->table = p;
        if (!r->names->dry && count >= 2 && count % 2 == 0 && !(k > p[b->table_count - 2])) {
            return crdi_scan_fail(r->s, CRD_E_RANGE,
                                  "the arguments of a table have to grow: %g comes after %g", k,
                                  p[b->table_count - 2]);
        }
        p[b->table_count++] = k;
        count++;
    }
    if (count < 2 || count % 2 || count > INT32_MAX || first > INT32_MAX) {
        return crdi_scan_fail(r->s, CRD_E_FORMAT, "a table has %zu numbers; expected pairs x, y",
                              count);
    }
    CRD_TRY(expect(r, ')', "behind the last point"));
    CRD_TRY(operation(r, op, x, (int32_t)first, (int32_t)(count / 2), out));
fail:
    return st;
}

static crd_status expression_call(reader* r, crdi_word name, size_t f, int32_t* out)
{
    crd_status st = CRD_OK;
    int32_t v[3] = {0};
    for (int i = 0; i < functions[f].arguments; i++) {
        if (i) { CRD_TRY(expect(r, ',', "between the arguments of a function")); }
        CRD_TRY(expression_choose(r, &v[i]));
    }
    if (crdi_scan_peek(r->s) == ',') {
        return crdi_scan_fail(r->s, CRD_E_FORMAT, "%s() has %d argument%s",
                              crdi_word_clip(name).text, functions[f].arguments,
                              functions[f].arguments == 1 ? "" : "s");
    }
    CRD_TRY(expect(r, ')', "behind the arguments of a function"));
    CRD_TRY(operation(r, (crdi_op)functions[f].op, v[0], v[1], v[2], out));
fail:
    return st;
}

// v(a), v(a,b), i(a), and in the words of heat t(a), q(a); behind the bracket
static crd_status use(reader* r, bool current, int32_t* out)
{
    crd_status st = CRD_OK;
    crdi_scan* s = r->s;
    if (r->names->dry) { // the caller's business
        while (!crdi_scan_end(s) && *s->p != ')') {
            s->p++;
        }
        CRD_TRY(expect(r, ')', "behind the name"));
        return expression_number(r, 1, out);
    }
    if (!r->names->use) {
        return crdi_scan_fail(s, CRD_E_RANGE, "%s is a constant and cannot use v() or i()",
                              r->names->why);
    }
    const crdi_scan at = *s;
    const crdi_word a = crdi_scan_word(s);
    crdi_word b = {s->p, 0};
    bool pair = false, found = false;
    if (!current && crdi_scan_take(s, ',')) {
        b = crdi_scan_word(s);
        pair = true;
    }
    if (!a.n || (pair && !b.n)) {
        return crdi_scan_fail(s, CRD_E_FORMAT, "\"%s\" where the name of a %s is expected",
                              crdi_word_clip(crdi_scan_look(s)).text, current ? "part" : "node");
    }
    CRD_TRY(expect(r, ')', "behind the name"));
    crdi_operation n = {.op = OP_USE};
    const crd_use_kind kind = current ? CRD_USE_CURRENT : pair ? CRD_USE_PAIR : CRD_USE_NODE;
    CRD_TRY(r->names->use(r->names->user, &at, kind, a, b, &n.use, &found));
    CRD_TRY(push(r, n, out));
fail:
    return st;
}

// The body is read once more for every call, with the arguments' nodes under their names.
static crd_status user_function(reader* r, const crdi_function* f, int32_t* out)
{
    crd_status st = CRD_OK;
    reader inner = {.b = r->b, .names = r->names, .base = r->base, .inside = f};
    crdi_scan body = f->body;
    inner.s = &body;
    CRD_TRY(count_work(r));
    for (int i = 0; i < f->count; i++) {
        if (i) { CRD_TRY(expect(r, ',', "between the arguments of a function")); }
        CRD_TRY(expression_choose(r, &inner.bound[i]));
    }
    CRD_TRY(expect(r, ')', "behind the arguments of a function"));
    CRD_TRY(expression_choose(&inner, out));
fail:
    return st;
}

static crd_status function(reader* r, const crdi_scan* at, crdi_word name, int32_t* out)
{
    crd_status st = CRD_OK;
    if (crdi_word_is(name, "v") || crdi_word_is(name, "t")) { return use(r, false, out); }
    if (crdi_word_is(name, "i") || crdi_word_is(name, "q")) { return use(r, true, out); }
    if (crdi_word_is(name, "table")) { return table(r, OP_TABLE, out); }
    if (crdi_word_is(name, "pwl")) { return table(r, OP_PWL, out); }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (crdi_word_is(name, functions[i].name)) { return expression_call(r, name, i, out); }
    }
    const crdi_function* f = NULL;
    if (r->names->function) { f = r->names->function(r->names->user, name); }
    if (f) { return user_function(r, f, out); }
    if (r->names->dry) { // it may be defined later
        do {
            CRD_TRY(expression_choose(r, out));
        } while (crdi_scan_take(r->s, ','));
        return expect(r, ')', "behind the arguments of a function");
    }
    st = crdi_scan_fail(at, CRD_E_UNSUPPORTED, "there is no function \"%s\"",
                        crdi_word_clip(name).text);
fail:
    return st;
}

static crd_status expression_name_of(reader* r, const crdi_scan* at, crdi_word name, int32_t* out)
{
    crd_status st = CRD_OK;
    const crdi_names* names = r->names;
    const size_t mark = r->b->count;
    bool found = false;
    double value = 0;
    for (int i = 0; r->inside && i < r->inside->count; i++) {
        const crdi_word w = r->inside->arguments[i];
        if (w.n == name.n && strncasecmp(w.p, name.p, w.n) == 0) {
            // A constant gets a node of its own: folding takes those on top away.
            if (constant(r, r->bound[i])) {
                return expression_number(r, r->b->nodes[r->bound[i]].k, out);
            }
            *out = r->bound[i];
            return CRD_OK;
        }
    }
    if (names->dry) { return expression_number(r, 1, out); }
    if (names->parameter) {
        CRD_TRY(names->parameter(names->user, at, name, &value, &found));
        r->b->count = mark;
        if (found) { return expression_number(r, value, out); }
    }
    if (names->use) {
        crdi_operation n = {.op = OP_USE};
        CRD_TRY(names->use(names->user, at, CRD_USE_INPUT, name, name, &n.use, &found));
        if (found) { return push(r, n, out); }
    }
    if (crdi_word_is(name, "time")) {
        if (names->use) { return push(r, (crdi_operation){.op = OP_TIME}, out); }
        return crdi_scan_fail(at, CRD_E_RANGE, "%s is a constant and cannot use time", names->why);
    }
    const struct {
        const char* name;
        double value;
    } known[] = {{"pi", 3.14159265358979323846},
                 {"temp", names->temperature - 273.15},
                 {"temper", names->temperature - 273.15},
                 {"boltz", 1.380649e-23},
                 {"echarge", 1.602176634e-19},
                 {"kelvin", -273.15}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (crdi_word_is(name, known[i].name)) { return expression_number(r, known[i].value, out); }
    }
    st = crdi_scan_fail(at, CRD_E_NOT_FOUND, "there is no parameter%s \"%s\"",
                        names->use ? " or input" : "", crdi_word_clip(name).text);
fail:
    return st;
}

// ---- the grammar -------------------------------------------------------------------------------

static crd_status unary(reader* r, int32_t* out);

static crd_status primary(reader* r, int32_t* out)
{
    crd_status st = CRD_OK;
    crdi_scan* s = r->s;
    const crdi_scan at = *s;
    if (crdi_scan_take(s, '(')) {
        CRD_TRY(expression_choose(r, out));
        return expect(r, ')', "behind the expression in brackets");
    }
    if (crdi_scan_take(s, '{')) { // of a parameter, where all is an expression
        CRD_TRY(expression_choose(r, out));
        return expect(r, '}', "behind the expression in braces");
    }
    const crdi_word name = identifier(s);
    if (name.n) {
        if (s->p < s->end && *s->p == '(') {
            s->p++;
            return function(r, &at, name, out);
        }
        return expression_name_of(r, &at, name, out);
    }
    double value;
    bool found = false;
    if (crdi_scan_peek(s) != '-' && crdi_scan_peek(s) != '+') {
        CRD_TRY(crdi_scan_number(s, &value, &found));
    }
    if (found) { return expression_number(r, value, out); }
    st = crdi_scan_fail(s, CRD_E_FORMAT, "\"%s\" where a number or a name is expected",
                        crdi_word_clip(crdi_scan_look(s)).text);
fail:
    return st;
}

static bool take_power(crdi_scan* s)
{
    if (crdi_scan_take(s, '^')) { return true; }
    if (crdi_scan_peek(s) == '*' && s->p + 1 < s->end && s->p[1] == '*') {
        s->p += 2;
        return true;
    }
    return false;
}

static crd_status powers(reader* r, int32_t* out)
{
    crd_status st = CRD_OK;
    int32_t exponent;
    CRD_TRY(primary(r, out));
    if (take_power(r->s)) {
        CRD_TRY(unary(r, &exponent)); // 2^-1, 2^3^2
        CRD_TRY(operation(r, OP_POW, *out, exponent, 0, out));
    }
fail:
    return st;
}

static crd_status unary(reader* r, int32_t* out)
{
    crd_status st = CRD_OK;
    bool minus = false;
    const char c = crdi_scan_peek(r->s);
    if (++r->b->depth > CRDI_DEPTH_MOST) {
        r->b->depth--;
        return crdi_scan_fail(r->s, CRD_E_RANGE, "the expression is nested too deep");
    }
    if (c == '!') {
        r->s->p++;
        CRD_TRY(unary(r, out));
        CRD_TRY(operation(r, OP_NOT, *out, 0, 0, out));
        goto fail;
    }
    while (crdi_scan_peek(r->s) == '-' || crdi_scan_peek(r->s) == '+') {
        minus ^= *r->s->p == '-';
        r->s->p++;
    }
    CRD_TRY(crdi_scan_peek(r->s) == '!' ? unary(r, out) : powers(r, out));
    if (minus) { CRD_TRY(operation(r, OP_NEG, *out, 0, 0, out)); }
fail:
    r->b->depth--;
    return st;
}

// The operator that stands here: its precedence (0: none), length and operation.
static int infix(crdi_scan* s, crdi_op* op, size_t* length)
{
    static const struct {
        char text[3];
        uint8_t level, op;
    } list[] = {{"||", 1, OP_OR}, {"&&", 2, OP_AND}, {"==", 3, OP_EQ}, {"!=", 3, OP_NE},
                {"<>", 3, OP_NE}, {"<=", 4, OP_LE},  {">=", 4, OP_GE}, {"<", 4, OP_LT},
                {">", 4, OP_GT},  {"+", 5, OP_ADD},  {"-", 5, OP_SUB}, {"*", 6, OP_MUL},
                {"/", 6, OP_DIV}, {"%", 6, OP_MOD}};
    if (crdi_scan_end(s)) { return 0; }
    const char c = s->p[0], d = s->p + 1 < s->end ? s->p[1] : 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (c == list[i].text[0] && (!list[i].text[1] || d == list[i].text[1])) {
            *op = (crdi_op)list[i].op;
            *length = strlen(list[i].text);
            return list[i].level;
        }
    }
    return 0;
}

static crd_status binary(reader* r, int lowest, int32_t* out)
{
    crd_status st = CRD_OK;
    CRD_TRY(unary(r, out));
    for (;;) {
        crdi_op op = OP_ADD;
        size_t length = 0;
        const int level = infix(r->s, &op, &length);
        if (level < lowest || level == 0) { return CRD_OK; }
        r->s->p += length;
        int32_t right;
        CRD_TRY(binary(r, level + 1, &right));
        CRD_TRY(operation(r, op, *out, right, 0, out));
    }
fail:
    return st;
}

static crd_status expression_choose(reader* r, int32_t* out)
{
    crd_status st = CRD_OK;
    int32_t yes, no;
    if (++r->b->depth > CRDI_DEPTH_MOST) {
        r->b->depth--;
        return crdi_scan_fail(r->s, CRD_E_RANGE, "the expression is nested too deep");
    }
    CRD_TRY(binary(r, 1, out));
    if (crdi_scan_take(r->s, '?')) {
        CRD_TRY(expression_choose(r, &yes));
        CRD_TRY(expect(r, ':', "between the two values of ?:"));
        CRD_TRY(expression_choose(r, &no));
        CRD_TRY(operation(r, OP_CHOOSE, *out, yes, no, out));
    }
fail:
    r->b->depth--;
    return st;
}

// ---- the finished list -------------------------------------------------------------------------

// Marks in `line` (as -1 - line) what the result needs, and refuses what has no value.
static crd_status mark(reader* r, int32_t root, int* steps, int* uses, size_t* points)
{
    crdi_operation* n = r->b->nodes;
    *steps = *uses = 0;
    *points = 0;
    n[root].line = -1 - n[root].line;
    for (int32_t i = root; i >= (int32_t)r->base; i--) {
        if (n[i].line >= 0) { continue; }
        if (n[i].bad) {
            crdi_scan at = *r->s;
            at.line = -1 - n[i].line;
            if (n[i].op == OP_DIV || n[i].op == OP_MOD) {
                return crdi_scan_fail(&at, CRD_E_RANGE, "the expression divides %g by %g",
                                      n[n[i].a].k, n[n[i].b].k);
            }
            return crdi_scan_fail(&at, CRD_E_RANGE,
                                  "a part of the expression has no finite value (argument %g)",
                                  n[n[i].a].k);
        }
        const int32_t operands[3] = {n[i].a, n[i].b, n[i].c};
        for (int k = 0; k < crdi_op_operands((crdi_op)n[i].op); k++) {
            crdi_operation* o = &n[operands[k]];
            if (o->line >= 0) { o->line = -1 - o->line; }
        }
        (*steps)++;
        *uses += n[i].op == OP_USE;
        if (n[i].op == OP_TABLE || n[i].op == OP_PWL) { *points += (size_t)n[i].c; }
    }
    if (*steps > CRDI_OPERATIONS_MOST) {
        return crdi_scan_fail(r->s, CRD_E_RANGE, "the expression has %d operations, at most %d",
                              *steps, CRDI_OPERATIONS_MOST);
    }
    return CRD_OK;
}

static int32_t use_index(crd_expression* e, crd_use u)
{
    for (int i = 0; i < e->use_count; i++) {
        const crd_use* k = &e->uses[i];
        if (k->kind == u.kind && k->a == u.a && k->b == u.b) { return i; }
    }
    e->uses[e->use_count] = u;
    return e->use_count++;
}

enum { BACK = 256 }; // how far repetitions are looked for

static int32_t repeated_constant(const crd_expression* e, double k)
{
    for (int i = e->count > BACK ? e->count - BACK : 0; i < e->count; i++) {
        // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits, -0 is not 0
        if (memcmp(&e->steps[i].k, &k, sizeof k) == 0) { return i; }
    }
    return -1;
}

// The same operation with the same operands among the last steps, or -1: functions that are called
// several times with the same argument.
static int32_t repeated(const crd_expression* e, const crdi_step* s)
{
    const int count = crdi_op_operands((crdi_op)s->op);
    if (s->op == OP_TABLE || s->op == OP_PWL) { return -1; }
    const int first = e->count - e->constants > BACK ? e->count - BACK : e->constants;
    for (int i = first; i < e->count; i++) {
        const crdi_step* k = &e->steps[i];
        if (k->op == s->op && (k->a == s->a || s->op == OP_TIME) && (count < 2 || k->b == s->b) &&
            (count < 3 || k->c == s->c)) {
            return i;
        }
    }
    return -1;
}

static void expression_fill(reader* r, int32_t root, crd_expression* e)
{
    crdi_operation* n = r->b->nodes;
    size_t points = 0;
    for (int32_t i = (int32_t)r->base; i <= root; i++) {
        if (n[i].line >= 0 || n[i].op != OP_CONST) { continue; }
        const int32_t same = repeated_constant(e, n[i].k);
        n[i].line = same >= 0 ? same : e->count;
        if (same < 0) { e->steps[e->count++] = step_of(&n[i]); }
    }
    e->constants = e->count;
    for (int32_t i = (int32_t)r->base; i <= root; i++) {
        if (n[i].line >= 0) { continue; }
        crdi_step s = step_of(&n[i]);
        const int count = crdi_op_operands((crdi_op)s.op);
        if (s.op == OP_USE) { s.a = use_index(e, n[i].use); }
        if (count > 0) { s.a = n[s.a].line; } // the place in the list, see below
        if (count > 1) { s.b = n[s.b].line; }
        if (count > 2) { s.c = n[s.c].line; }
        if (s.op == OP_TABLE || s.op == OP_PWL) {
            memcpy(e->table + points, r->b->table + s.b, 2 * (size_t)s.c * sizeof *e->table);
            s.b = (int32_t)points;
            points += 2 * (size_t)s.c;
        }
        const int32_t same = i == root ? -1 : repeated(e, &s);
        if (same >= 0) {
            n[i].line = same;
            continue;
        }
        n[i].line = e->count;
        e->steps[e->count++] = s;
    }
}

static crd_status expression_finish(reader* r, int32_t root, crd_arena* arena, crd_expression** out)
{
    crd_status st = CRD_OK;
    int steps, uses;
    size_t points;
    CRD_TRY(mark(r, root, &steps, &uses, &points));
    crd_expression* e = crdi_arena_new(arena, 1, sizeof *e);
    if (!e) { return CRD_E_MEMORY; }
    e->uses = crdi_arena_new(arena, (size_t)uses, sizeof *e->uses);
    e->steps = crdi_arena_new(arena, (size_t)steps, sizeof *e->steps);
    e->table = crdi_arena_new(arena, 2 * points, sizeof *e->table);
    if (!e->uses || !e->steps || !e->table) { return CRD_E_MEMORY; }
    expression_fill(r, root, e);
    *out = e;
fail:
    return st;
}

crd_status crdi_expression_read(crdi_builder* b, crdi_scan* s, const crdi_names* names,
                                crd_arena* arena, bool always, double* value, crd_expression** e)
{
    crd_status st = CRD_OK;
    reader r = {.b = b, .s = s, .names = names, .base = b->count};
    const size_t points = b->table_count;
    int32_t root;
    *e = NULL;
    *value = (double)NAN;
    if (b->depth == 0) { b->work = 0; }
    CRD_TRY(expression_choose(&r, &root));
    if (constant(&r, root)) { *value = b->nodes[root].k; }
    if (!names->dry && (always || !constant(&r, root))) {
        CRD_TRY(expression_finish(&r, root, arena, e));
    }
fail:
    b->count = r.base;
    b->table_count = points;
    return st;
}
