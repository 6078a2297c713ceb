// Study files: a system, what varies, what is kept.
#include "shared/base_path.h"
#include "shared/system_study.h"
#include "system/read.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <string.h>

const char* const crdi_samplings[] = {"random", "latin", "sobol", "morris", "saltelli", NULL};
const char* const crdi_optimisers[] = {"cobyla", "bobyqa", "sbplx", "direct", "isres", NULL};
static const char* const scales[] = {"linear", "log", NULL};
enum { VALUES_MOST = 1000000 };

bool crdi_study_number(const char* text, double* x, const char** unit)
{
    const size_t n = crdi_number_prefix(text);
    if (!n || !crdi_parse_double(text, n, x) || !isfinite(*x)) { return false; }
    const char* rest = text + n;
    *unit = rest + strspn(rest, " \t");
    crd_dimension d;
    return !**unit || crd_dimension_parse(*unit, &d);
}

// ---- factors -----------------------------------------------------------------------------------

typedef struct factor_draft {
    crdi_texts values, laws[5]; // by crdi_law - 1
    const char *from, *to, *step, *min, *max;
    int count, scale;
    bool whole;
} factor_draft;

static const crdi_key factor_keys[] = {
    {KEY("values", TEXTS, factor_draft, values)},
    {KEY("from", TEXT, factor_draft, from)},
    {KEY("to", TEXT, factor_draft, to)},
    {KEY("count", INT, factor_draft, count), .min = 1, .max = VALUES_MOST},
    {KEY("step", TEXT, factor_draft, step)},
    {KEY("scale", CHOICE, factor_draft, scale), .choices = scales},
    {KEY("uniform", TEXTS, factor_draft, laws[0])},
    {KEY("loguniform", TEXTS, factor_draft, laws[1])},
    {KEY("normal", TEXTS, factor_draft, laws[2])},
    {KEY("lognormal", TEXTS, factor_draft, laws[3])},
    {KEY("triangular", TEXTS, factor_draft, laws[4])},
    {KEY("min", TEXT, factor_draft, min)},
    {KEY("max", TEXT, factor_draft, max)},
    {KEY("whole", BOOL, factor_draft, whole)},
};
TABLE(factor);

// A number in the unit that the others have.
static crd_status number_of(crdi_reader* r, int line, const char* text, crdi_study_factor* f,
                            double* out)
{
    const char* unit = "";
    if (!crdi_study_number(text, out, &unit)) {
        return crdi_read_fail(r, CRD_E_FORMAT, line, "'%s', expected a number such as 10 or 10 ms",
                              crdi_clip(text).text);
    }
    if (!f->unit) { f->unit = unit; }
    if (strcmp(unit, f->unit) != 0) {
        return crdi_read_fail(r, CRD_E_FORMAT, line,
                              "'%s', expected a number in %s like the others", crdi_clip(text).text,
                              *f->unit ? f->unit : "no unit");
    }
    return CRD_OK;
}

static const char* worded(crdi_reader* r, const crdi_study_factor* f, double x)
{
    char number[32];
    crdi_format_double(number, x);
    return crdi_arena_format(r->arena, "%s%s%s", number, *f->unit ? " " : "", f->unit);
}

static crd_status take_list(crdi_reader* r, const crdi_node* n, crdi_texts list,
                            crdi_study_factor* f)
{
    if (list.count == 0) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line,
                              "an empty list, expected at least one value");
    }
    f->law = CRDI_LAW_LIST;
    f->texts = list.items;
    f->count = list.count;
    f->numeric = true;
    for (int i = 0; i < list.count; i++) {
        double x;
        const char* unit = "";
        f->numeric = f->numeric && crdi_study_number(list.items[i], &x, &unit) &&
                     (!f->unit || strcmp(unit, f->unit) == 0);
        if (!f->unit) { f->unit = unit; }
        for (int k = 0; k < i && i < 1000; k++) {
            if (strcmp(list.items[k], list.items[i]) == 0) {
                return crdi_read_fail(r, CRD_E_RANGE, n->line, "'%s' is in the list twice",
                                      crdi_clip(list.items[i]).text);
            }
        }
    }
    if (!f->numeric) { f->unit = ""; }
    return CRD_OK;
}

static crd_status read_range(crdi_reader* r, const crdi_node* n, const factor_draft* d,
                             crdi_study_factor* f)
{
    crd_status st = CRD_OK;
    double from = 0, to = 0, step = 0;
    int count = d->count;
    CRD_TRY(number_of(r, n->line, d->from, f, &from));
    CRD_TRY(number_of(r, n->line, d->to, f, &to));
    if (d->step) {
        CRD_TRY(number_of(r, n->line, d->step, f, &step));
        const double steps = (to - from) / step;
        if (!(steps >= 0) || steps > VALUES_MOST) {
            return crdi_read_fail(r, CRD_E_RANGE, n->line,
                                  "step: from %g to %g by %g is an empty or endless range", from,
                                  to, step);
        }
        count = (int)floor(steps * (1 + 1e-12) + 1e-9) + 1;
    }
    const bool logarithmic = d->scale == 1;
    if (logarithmic && (!(from > 0) || !(to > 0) || d->step)) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line,
                              "scale: log goes from a number above 0 to another one, with a count");
    }
    if (count < 1 || (count < 2 && from != to)) {
        return crdi_read_fail(r, CRD_E_RANGE, n->line, "expected a count of at least 2, or a step");
    }
    const char** texts = crdi_arena_new(r->arena, (size_t)count, sizeof *texts);
    if (!texts) { return CRD_E_MEMORY; }
    for (int i = 0; i < count; i++) {
        const double part = count > 1 ? (double)i / (count - 1) : 0;
        const double x = d->step       ? from + i * step
                         : logarithmic ? from * pow(to / from, part)
                                       : from + (to - from) * part;
        texts[i] = worded(r, f, i == count - 1 && !d->step ? to : x);
    }
    st = take_list(r, n, (crdi_texts){texts, count}, f);
fail:
    return st;
}

static crd_status check_law(crdi_reader* r, const crdi_node* n, const crdi_study_factor* f)
{
    const char* wrong = NULL;
    switch (f->law) {
    case CRDI_LAW_UNIFORM:
        wrong = f->a < f->b ? NULL : "the first number is not below the second";
        break;
    case CRDI_LAW_LOGUNIFORM:
        wrong = f->a > 0 && f->a < f->b ? NULL : "expected 0 < first < second";
        break;
    case CRDI_LAW_NORMAL:
        wrong = f->b > 0 ? NULL : "the second number is the standard deviation, expected above 0";
        break;
    case CRDI_LAW_LOGNORMAL:
        wrong = f->a > 0 && f->b > 0 ? NULL
                                     : "expected the median and the standard deviation of the "
                                       "logarithm, both above 0";
        break;
    case CRDI_LAW_TRIANGULAR:
        wrong = f->a < f->c && f->a <= f->b && f->b <= f->c
                    ? NULL
                    : "expected the least, the most likely and the largest value";
        break;
    case CRDI_LAW_LIST:
        break;
    }
    if (!wrong && !(f->low < f->high)) { wrong = "min is not below max"; }
    return wrong ? crdi_read_fail(r, CRD_E_RANGE, n->line, "an empty range: %s", wrong) : CRD_OK;
}

static crd_status read_law(crdi_reader* r, const crdi_node* n, const factor_draft* d, int law,
                           crdi_study_factor* f)
{
    crd_status st = CRD_OK;
    const crdi_texts* t = &d->laws[law - 1];
    double* at[] = {&f->a, &f->b, &f->c};
    const int need = law == CRDI_LAW_TRIANGULAR ? 3 : 2;
    if (t->count != need) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line, "%d number%s, expected %d", t->count,
                              t->count == 1 ? "" : "s", need);
    }
    f->law = (crdi_law)law;
    f->numeric = true;
    for (int i = 0; i < need; i++) {
        crdi_study_factor own = *f; // the logarithm has no unit
        const bool logarithm = law == CRDI_LAW_LOGNORMAL && i == 1;
        if (logarithm) { own.unit = ""; }
        CRD_TRY(number_of(r, n->line, t->items[i], logarithm ? &own : f, at[i]));
    }
    if (d->min) { CRD_TRY(number_of(r, n->line, d->min, f, &f->low)); }
    if (d->max) { CRD_TRY(number_of(r, n->line, d->max, f, &f->high)); }
    f->whole = d->whole;
    st = check_law(r, n, f);
fail:
    return st;
}

static crd_status read_factor(crdi_reader* r, const crdi_node* n, crdi_study_factor* f)
{
    crd_status st = CRD_OK;
    factor_draft d = {0};
    int laws = 0, law = 0;
    *f = (crdi_study_factor){.name = n->key, .low = -INFINITY, .high = INFINITY, .line = n->line};
    if (n->kind == CRDI_LIST) {
        const char** texts = crdi_arena_new(r->arena, (size_t)n->count, sizeof *texts);
        int i = 0;
        for (const crdi_node* m = n->first; m && texts; m = m->next) {
            CRD_TRY(crdi_read_text(r, m, &texts[i++]));
        }
        return texts ? take_list(r, n, (crdi_texts){texts, n->count}, f) : CRD_E_MEMORY;
    }
    CRD_TRY(crdi_expect_kind(r, n, CRDI_MAPPING,
                             "a list such as [1, 2, 5], a range such as { from: 1, to: 5, count: 9 "
                             "} or a distribution such as { uniform: [1, 5] }"));
    CRD_TRY(crdi_read_mapping(r, n, &factor_table, &d, NULL));
    for (int i = 0; i < 5; i++) {
        if (d.laws[i].items) {
            law = i + 1;
            laws++;
        }
    }
    const bool range = d.from || d.to, list = d.values.items != NULL;
    if (laws + range + list != 1 || (range && !(d.from && d.to)) ||
        (range && (d.count > 0) == (d.step != NULL))) {
        return crdi_read_fail(r, CRD_E_FORMAT, n->line,
                              "expected one of: values; from and to with count or step; uniform, "
                              "loguniform, normal, lognormal, triangular");
    }
    if (list) { return take_list(r, n, d.values, f); }
    st = range ? read_range(r, n, &d, f) : read_law(r, n, &d, law, f);
fail:
    return st;
}

// ---- the file ----------------------------------------------------------------------------------

typedef struct study_draft {
    const crdi_node *vary, *change, *keep, *limits, *exclude;
    crdi_study_file f;
    int version;
} study_draft;

static const crdi_key sample_keys[] = {
    {KEY("method", CHOICE, study_draft, f.method), .choices = crdi_samplings},
    {KEY("count", INT, study_draft, f.count), .min = 1, .max = 100000000},
    {KEY("seed", SEED, study_draft, f.seed)},
    {KEY("levels", INT, study_draft, f.levels), .min = 2, .max = 64},
};
TABLE(sample);

static const crdi_key optimise_keys[] = {
    {KEY("minimise", TEXT, study_draft, f.minimise), .required = true},
    {KEY("runs", INT, study_draft, f.minimise_runs), .min = 2, .max = 1000000},
    {KEY("method", CHOICE, study_draft, f.optimiser), .choices = crdi_optimisers},
    {KEY("tolerance", NUMBER, study_draft, f.tolerance), .range = CRDI_POSITIVE},
};
TABLE(optimise);

static const crdi_key study_keys[] = {
    {KEY("study", INT, study_draft, version), .min = 1, .max = 1, .required = true},
    {KEY("title", TEXT, study_draft, f.title)},
    {KEY("system", PATH, study_draft, f.system), .required = true},
    {KEY("state", PATH, study_draft, f.state)},
    {KEY("vary", NODE, study_draft, vary)},
    {.name = "sample", .type = CRDI_KEY_TABLE, .table = &sample_table},
    {KEY("repeat", INT, study_draft, f.repeat), .min = 1, .max = 100000000},
    {KEY("change", NODE, study_draft, change)},
    {KEY("exclude", NODE, study_draft, exclude)},
    {KEY("keep", NODE, study_draft, keep), .required = true},
    {KEY("limits", NODE, study_draft, limits)},
    {.name = "optimise", .type = CRDI_KEY_TABLE, .table = &optimise_table},
    {KEY("timeout", TIME, study_draft, f.timeout), .range = CRDI_POSITIVE},
    {KEY("isolate", BOOL, study_draft, f.isolate)},
};
TABLE(study);

static crd_status read_vary(crdi_reader* r, const crdi_node* n, crdi_study_file* f)
{
    if (!n) { return CRD_OK; }
    const size_t mark = crdi_path_enter(r, "vary");
    crd_status st =
        crdi_expect_kind(r, n, CRDI_MAPPING, "what varies, as motor.k: { uniform: [1, 2] }");
    if (st < 0) { return st; }
    crdi_study_factor* list = crdi_arena_new(r->arena, (size_t)n->count, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    for (const crdi_node* m = n->first; m && st >= 0; m = m->next) {
        const size_t inner = crdi_path_enter(r, m->key);
        st = read_factor(r, m, &list[f->factor_count++]);
        crdi_path_leave(r, inner);
    }
    f->factors = list;
    crdi_path_leave(r, mark);
    return st;
}

// Texts by name, or in a list.
static crd_status read_lines(crdi_reader* r, const crdi_node* n, const char* key, bool named,
                             const crdi_study_text** out, int* count)
{
    if (!n) { return CRD_OK; }
    const size_t mark = crdi_path_enter(r, key);
    const bool alone = !named && n->kind == CRDI_SCALAR;
    crd_status st = alone ? CRD_OK
                          : crdi_expect_kind(r, n, named ? CRDI_MAPPING : CRDI_LIST,
                                             named ? "names with what is kept, as peak: max motor.w"
                                                   : "a list of conditions");
    if (st < 0) { return st; }
    crdi_study_text* list = crdi_arena_new(r->arena, alone ? 1 : (size_t)n->count, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    for (const crdi_node* m = alone ? n : n->first; m && st >= 0; m = alone ? NULL : m->next) {
        crdi_study_text* t = &list[(*count)++];
        const size_t inner = named ? crdi_path_enter(r, m->key) : r->path_length;
        t->name = named ? m->key : "";
        t->line = m->line;
        if (named && !isalpha((unsigned char)m->key[0])) {
            st = crdi_read_fail(r, CRD_E_FORMAT, m->line,
                                "expected a name of letters, digits and _");
        }
        for (const char* c = m->key; named && st >= 0 && *c; c++) {
            if (!isalnum((unsigned char)*c) && *c != '_') {
                st = crdi_read_fail(r, CRD_E_FORMAT, m->line,
                                    "'%c' in a name, expected letters, digits and _", *c);
            }
        }
        if (st >= 0) { st = crdi_read_text(r, m, &t->text); }
        crdi_path_leave(r, inner);
    }
    *out = list;
    crdi_path_leave(r, mark);
    return st;
}

// What is looked for is kept, and every factor has an end on both sides. The sample is where
// searches begin.
static crd_status check_optimise(crdi_reader* r, const crdi_node* n, crdi_study_file* f)
{
    static const bool limited[] = {[CRDI_OPTIMISER_COBYLA] = true, [CRDI_OPTIMISER_ISRES] = true};
    const int line = f->minimise_line = crdi_line_of(n, "optimise");
    bool kept = false, laws = false;
    double grid = 1;
    for (int i = 0; i < f->kept_count; i++) {
        kept = kept || strcmp(f->kept[i].name, f->minimise) == 0;
    }
    if (!kept) {
        return crdi_read_fail(r, CRD_E_NOT_FOUND, line,
                              "optimise.minimise: '%s' is none of what is kept", f->minimise);
    }
    for (int i = 0; i < f->factor_count; i++) {
        const crdi_study_factor* v = &f->factors[i];
        const bool ends = v->law == CRDI_LAW_UNIFORM || v->law == CRDI_LAW_LOGUNIFORM;
        if (v->law == CRDI_LAW_LIST) {
            grid *= v->count;
        } else if (!ends) {
            return crdi_read_fail(r, CRD_E_RANGE, v->line,
                                  "vary.%s: optimise looks between two ends, expected uniform, "
                                  "loguniform or a list",
                                  v->name);
        }
        laws = laws || ends;
    }
    if (f->repeat > 1 || f->method == CRDI_SAMPLE_MORRIS || f->method == CRDI_SAMPLE_SALTELLI) {
        return crdi_read_fail(r, CRD_E_RANGE, line,
                              "optimise: goes without repeat, morris and saltelli");
    }
    if (f->limit_count && !limited[f->optimiser]) {
        return crdi_read_fail(r, CRD_E_RANGE, line,
                              "optimise.method: %s knows no limits; cobyla and isres do",
                              crdi_optimisers[f->optimiser]);
    }
    if (laws && f->count == 0) { // eight searches at least
        f->count = grid < 8 ? (int)ceil(8 / grid) : 1;
        f->method = CRDI_SAMPLE_SOBOL;
    }
    return CRD_OK;
}

// How many points are sampled, and by what.
static crd_status check_sample(crdi_reader* r, const crdi_node* n, const crdi_study_file* f)
{
    bool laws = false, lists = false;
    for (int i = 0; i < f->factor_count; i++) {
        (f->factors[i].law == CRDI_LAW_LIST ? &lists : &laws)[0] = true;
    }
    const int line = crdi_line_of(n, "sample");
    if (laws && f->count == 0) {
        return crdi_read_fail(r, CRD_E_RANGE, line,
                              "sample.count: how many points are drawn from the distributions is "
                              "not said, as sample: { method: sobol, count: 256 }");
    }
    if (!laws && f->count > 0) {
        return crdi_read_fail(r, CRD_E_RANGE, line,
                              "sample.count: nothing is drawn, as no factor has a distribution; "
                              "repeat: %d repeats each point with seeds of its own",
                              f->count);
    }
    const bool special = f->method == CRDI_SAMPLE_MORRIS || f->method == CRDI_SAMPLE_SALTELLI;
    if (special && (lists || f->repeat > 1 || f->exclude_count)) {
        return crdi_read_fail(r, CRD_E_RANGE, line,
                              "sample.method: %s is a design of distributions alone, without "
                              "lists, repeat or exclude",
                              crdi_samplings[f->method]);
    }
    if (f->method == CRDI_SAMPLE_MORRIS && f->levels % 2) {
        return crdi_read_fail(r, CRD_E_RANGE, line, "sample.levels: %d, expected an even number",
                              f->levels);
    }
    return CRD_OK;
}

static crd_status read_study(crdi_reader* r, const crdi_node* n, crdi_study_file* out)
{
    crd_status st = CRD_OK;
    study_draft d = {.f = *out};
    crd_text json;
    crd_text_init(&json, r->ctx);
    CRD_TRY(crdi_read_mapping(r, n, &study_table, &d, NULL));
    CRD_TRY(read_vary(r, d.vary, &d.f));
    CRD_TRY(read_lines(r, d.keep, "keep", true, &d.f.kept, &d.f.kept_count));
    CRD_TRY(read_lines(r, d.limits, "limits", false, &d.f.limits, &d.f.limit_count));
    CRD_TRY(read_lines(r, d.exclude, "exclude", false, &d.f.exclude, &d.f.exclude_count));
    if (d.f.kept_count == 0) {
        st = crdi_read_fail(r, CRD_E_RANGE, crdi_line_of(n, "keep"),
                            "keep: nothing is kept of the runs");
        goto fail;
    }
    d.f.state_line = crdi_line_of(n, "state");
    if (d.f.minimise) { CRD_TRY(check_optimise(r, n, &d.f)); }
    CRD_TRY(check_sample(r, n, &d.f));
    if (d.change) {
        CRD_TRY(crdi_expect_kind(r, d.change, CRDI_MAPPING, "what a description may say"));
        d.f.change_line = d.change->first ? d.change->first->line : d.change->line;
        crdi_node_json(d.change, d.f.change_line, (const char* const[]){NULL}, &json);
        d.f.change = json.failed ? NULL : crdi_arena_text(r->arena, json.data, json.length);
        if (!d.f.change) { CRD_TRY(CRD_E_MEMORY); }
    }
    *out = d.f;
fail:
    crd_text_clear(&json);
    return st;
}

crd_status crdi_study_file_read(crd_context* ctx, const char* text, size_t length, const char* path,
                                crd_arena* arena, crdi_study_file* out)
{
    crd_status st = CRD_OK;
    crd_text bytes;
    crdi_node* tree = NULL;
    crd_text_init(&bytes, ctx);
    if (text) {
        crdi_text_put(&bytes, text, length);
    } else {
        CRD_TRY(crdi_read_file(ctx, path, &bytes));
    }
    *out = (crdi_study_file){.file = crdi_arena_text(arena, path, strlen(path)),
                             .title = "",
                             .method = CRDI_SAMPLE_RANDOM,
                             .levels = 4,
                             .seed = 1,
                             .repeat = 1,
                             .minimise_runs = 200,
                             .tolerance = 1e-4,
                             .timeout = 600};
    CRD_TRY(crdi_arena_status(arena));
    if (bytes.failed) { CRD_TRY(CRD_E_MEMORY); }
    CRD_TRY(crdi_yaml_parse(arena, bytes.data, bytes.length, (crd_place){out->file, -1}, &tree));
    crdi_reader r = {.ctx = ctx,
                     .arena = arena,
                     .scratch = arena,
                     .file = out->file,
                     .folder_length = crdi_folder_length(path)};
    CRD_TRY(read_study(&r, tree, out));
fail:
    crd_text_clear(&bytes);
    return st;
}
