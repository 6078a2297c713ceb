// A remote slave as a model: the rows of its table, made from the description.
#include "dcp/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXT_ROOM = 1024,      // bytes of a string or binary without maxSize, as in a session
    MOST_TEXT = 65507,     // and of any: what a datagram carries
    MOST_BYTES = 64 << 20, // of a table
    EXACT = 53,            // bits of a whole number that a double has
};
static const uint64_t MOST_ELEMENTS = 1 << 24;

static const char* const both_items[] = {"NRT", "SRT", NULL};

// ---- what a description says -------------------------------------------------------------------

// Elements of a variable, its structural parameters having their start values; UINT64_MAX: too
// many.
static uint64_t count_elements(const crd_dcp_description* d, const crd_dcp_variable* v)
{
    uint64_t n = 1;
    for (int i = 0; i < v->rank; i++) {
        uint64_t k = v->dimensions[i];
        if (v->is_linked[i]) {
            const int at = crd_dcp_find_vr(d, v->linked[i]);
            const char* start = at < 0 ? NULL : d->variables[at].start;
            if (!start || !crdi_parse_uint64(start, strlen(start), &k)) { return UINT64_MAX; }
        }
        if (k > MOST_ELEMENTS || n * k > MOST_ELEMENTS) { return UINT64_MAX; }
        n *= k;
    }
    return n;
}

static bool dcp_model_is_text(const crd_dcp_variable* v)
{
    return v->type == CRD_DCP_STRING || v->type == CRD_DCP_BINARY;
}

static size_t room_of(const crd_dcp_variable* v)
{
    const uint32_t most = v->max_size == UINT32_MAX ? TEXT_ROOM : v->max_size;
    return most < MOST_TEXT ? most : MOST_TEXT;
}

// ---- rows --------------------------------------------------------------------------------------

typedef struct table {
    crdi_dcp_model* m;
    crd_model_variable* rows;
    int count;
    size_t used; // bytes of an instance
} table;

static void place_row(table* t, crd_model_variable row)
{
    row.offset = t->used;
    const size_t bytes = crd_model_stride(&row) * (row.size ? row.size : 1);
    t->used += (bytes + 7) / 8 * 8;
    t->rows[t->count++] = row;
}

static crd_status fail_start(table* t, const crd_dcp_variable* v, const char* word)
{
    return crdi_fail(t->m->ctx, CRD_E_RANGE,
                     "variable '%s': the start value '%.*s' %s, expected a number of its type %s",
                     v->name, (int)strcspn(word, " \t\r\n"), word,
                     v->type < CRD_DCP_FLOAT32 ? "is none that an FMU keeps exactly (53 bits)"
                                               : "is none",
                     crd_dcp_data_type_name(v->type));
}

// Start values as doubles; the last one given counts for the elements that follow.
static crd_status take_numbers(table* t, const crd_dcp_variable* v, crd_model_variable* row)
{
    const size_t n = row->size ? row->size : 1;
    double* starts = crdi_arena_new(&t->m->arena, n, sizeof *starts);
    if (!starts) { return CRD_E_MEMORY; }
    const char* at = v->start ? v->start : "";
    double x = 0;
    for (size_t i = 0; i < n; i++) {
        at += strspn(at, " \t\r\n");
        const size_t length = strcspn(at, " \t\r\n");
        if (length) {
            const bool whole = v->type < CRD_DCP_FLOAT32;
            if (!crdi_parse_double(at, length, &x) || (whole && fabs(x) > ldexp(1, EXACT))) {
                return fail_start(t, v, at);
            }
        }
        starts[i] = x;
        at += length;
    }
    row->start = starts[0];
    row->starts = row->size ? starts : NULL;
    return CRD_OK;
}

static crd_status take_start(table* t, const crd_dcp_variable* v, crd_model_variable* row)
{
    if (!dcp_model_is_text(v)) { return take_numbers(t, v, row); }
    const size_t room = room_of(v), length = v->start ? strlen(v->start) : 0;
    row->capacity = room + (v->type == CRD_DCP_STRING);
    if (!row->capacity) { row->capacity = 1; }
    row->start_text = v->start ? v->start : "";
    if (length <= (v->type == CRD_DCP_STRING ? room : 2 * room)) { return CRD_OK; }
    return crdi_fail(t->m->ctx, CRD_E_RANGE,
                     "variable '%s': its start value has more than the %zu bytes of maxSize",
                     v->name, room);
}

// An integer type's own limits say nothing.
static void take_limits(const crd_dcp_variable* v, crd_model_variable* row)
{
    if (dcp_model_is_text(v) || (isnan(v->min) && isnan(v->max))) { return; }
    row->min = isnan(v->min) ? -INFINITY : v->min;
    row->max = isnan(v->max) ? INFINITY : v->max;
}

static bool add_words(table* t, const crd_dcp_dependency* items, int count, crd_text* out)
{
    const crd_dcp_description* d = t->m->d;
    for (int i = 0; i < count; i++) {
        const int at = crd_dcp_find_vr(d, items[i].vr);
        if (at < 0 || d->variables[at].causality != CRD_INPUT) { continue; } // a parameter
        if (strchr(d->variables[at].name, ' ')) { return false; }            // not a word of a list
        crdi_text_add(out, "%s%s", out->length ? " " : "", d->variables[at].name);
    }
    return true;
}

// What acts on an output in the initialisation or in the run. NULL, all, where one of them is not
// said.
static crd_status take_dependencies(table* t, const crd_dcp_variable* v, crd_model_variable* row)
{
    if (v->causality != CRD_OUTPUT || !v->has_initial_dependencies || !v->has_run_dependencies) {
        return CRD_OK;
    }
    crd_text words;
    crd_text_init(&words, t->m->ctx);
    crd_status st = CRD_OK;
    if (add_words(t, v->initial_dependencies, v->initial_dependency_count, &words) &&
        add_words(t, v->run_dependencies, v->run_dependency_count, &words)) {
        row->depends = crdi_arena_text(&t->m->arena, words.data ? words.data : "", words.length);
        if (!row->depends || words.failed) { st = CRD_E_MEMORY; }
    }
    crd_text_clear(&words);
    return st;
}

static crd_status dcp_model_add_variable(table* t, int index)
{
    crd_status st = CRD_OK;
    const crdi_dcp_model* m = t->m;
    const crd_dcp_variable* v = &m->d->variables[index];
    const uint64_t n = count_elements(m->d, v);
    m->rows[index] = -1;
    if (v->causality == CRD_STRUCTURAL_PARAMETER) { return CRD_OK; }
    if (n == UINT64_MAX || n == 0) {
        return crdi_fail(m->ctx, CRD_E_RANGE,
                         "variable '%s' has %s elements with the structural parameters as they "
                         "are, expected 1 to %llu",
                         v->name, n ? "too many" : "no", (unsigned long long)MOST_ELEMENTS);
    }
    const crd_type type = crdi_dcp_type(v->type);
    const bool parameter = v->causality == CRD_PARAMETER;
    const bool smooth = type <= CRD_FLOAT32 && v->variability == CRD_CONTINUOUS;
    crd_model_variable row = {
        .name = v->name,
        .type = type,
        .causality = (crd_causality)v->causality,
        .variability = parameter ? (v->variability == CRD_TUNABLE ? CRD_TUNABLE : CRD_FIXED)
                                 : (smooth ? CRD_CONTINUOUS : CRD_DISCRETE),
        .size = v->rank ? (size_t)n : 0,
        .unit = *v->unit && type <= CRD_FLOAT32 ? v->unit : NULL,
        .description = *v->description ? v->description : NULL,
        .nominal = v->nominal > 0 && isfinite(v->nominal) && smooth ? v->nominal : 0,
    };
    CRD_TRY(take_start(t, v, &row));
    take_limits(v, &row);
    CRD_TRY(take_dependencies(t, v, &row));
    m->rows[index] = t->count;
    place_row(t, row);
fail:
    return st;
}

static void add_settings(table* t)
{
    crdi_dcp_model* m = t->m;
    const bool nrt = m->d->nrt, srt = m->d->srt;
    m->modes[0] = nrt ? CRD_DCP_NRT : CRD_DCP_SRT;
    m->modes[1] = CRD_DCP_SRT;
    t->rows[t->count++] = (crd_model_variable){
        .name = "dcp.address",
        .type = CRD_STRING,
        .causality = CRD_PARAMETER,
        .variability = CRD_FIXED,
        .offset = offsetof(crdi_dcp_model_self, address),
        .capacity = CRDI_DCP_MODEL_ADDRESS,
        .start_text = m->setup.address,
        .description = "where the slave is: udp://HOST:PORT or tcp://HOST:PORT"};
    static const char* const nrt_items[] = {"NRT", NULL};
    static const char* const srt_items[] = {"SRT", NULL};
    t->rows[t->count++] = (crd_model_variable){
        .name = "dcp.mode",
        .type = CRD_ENUMERATION,
        .causality = CRD_PARAMETER,
        .variability = CRD_FIXED,
        .offset = offsetof(crdi_dcp_model_self, mode),
        .items = nrt && srt ? both_items
                 : nrt      ? nrt_items
                            : srt_items,
        .start = m->setup.mode == (uint8_t)m->modes[0] ? 1 : 2,
        .description = "NRT: as fast as the slave computes; SRT: along with the wall clock"};
}

static crd_status check_names(table* t)
{
    crd_status st = CRD_OK;
    crd_map names;
    crdi_map_init(&names, t->m->ctx);
    for (int i = 0; i < t->count && st >= 0; i++) {
        bool fresh = true;
        st = crdi_map_add(&names, t->rows[i].name, i, &fresh);
        if (st >= 0 && !fresh) {
            st = crdi_fail(t->m->ctx, CRD_E_RANGE,
                           "two variables are called '%s', and an FMU would not know which is "
                           "meant%s",
                           t->rows[i].name,
                           strncmp(t->rows[i].name, "dcp.", 4) == 0
                               ? "; dcp.address and dcp.mode are its own"
                               : "");
        }
    }
    crdi_map_clear(&names);
    return st;
}

static crd_status take_units(crdi_dcp_model* m)
{
    const int n = m->d->unit_count;
    crd_model_unit* units = crdi_arena_new(&m->arena, n ? (size_t)n : 1, sizeof *units);
    if (!units) { return CRD_E_MEMORY; }
    for (int i = 0; i < n; i++) {
        const crd_dcp_unit* u = &m->d->units[i];
        units[i] = (crd_model_unit){u->name, u->has_base, {0}, u->factor, u->offset};
        memcpy(units[i].exponents, u->exponents, sizeof u->exponents);
    }
    m->base.units = units;
    m->base.unit_count = n;
    return CRD_OK;
}

// Parameters whose values the slave has: a copy of all values will do, so that offsets fit.
static void add_mirror(table* t)
{
    crdi_dcp_model* m = t->m;
    m->mirror = t->used;
    m->base.size = 2 * t->used;
}

static crd_status build_rows(crdi_dcp_model* m)
{
    crd_status st = CRD_OK;
    const size_t n = (size_t)m->d->variable_count;
    table t = {.m = m, .used = (sizeof(crdi_dcp_model_self) + 15) / 16 * 16};
    t.rows = crdi_arena_new(&m->arena, n + 2, sizeof *t.rows);
    m->rows = crdi_arena_new(&m->arena, n + 1, sizeof *m->rows);
    CRD_TRY(t.rows && m->rows ? CRD_OK : CRD_E_MEMORY);
    for (size_t i = 0; i < n; i++) {
        CRD_TRY(dcp_model_add_variable(&t, (int)i));
    }
    add_settings(&t);
    CRD_TRY(check_names(&t));
    CRD_TRY(take_units(m));
    add_mirror(&t);
    m->base.name = m->setup.name;
    m->base.description = *m->d->description ? m->d->description : m->d->name;
    m->base.variables = t.rows;
    m->base.variable_count = t.count;
    m->base.default_step = m->setup.step;
    m->base.default_stop = m->setup.step > 0 ? 1000 * m->setup.step : 1;
fail:
    return st;
}

// ---- create and destroy ------------------------------------------------------------------------

crd_status crdi_dcp_model_create(crd_context* ctx, const void* bytes, size_t length,
                                 const char* file, const crd_model** out)
{
    crd_status st = CRD_OK;
    crdi_dcp_model* m = crdi_new(ctx, sizeof *m);
    if (!m) { return CRD_E_MEMORY; }
    *m = (crdi_dcp_model){.base = {.initialize = crdi_dcp_model_initialize,
                                   .outputs = crdi_dcp_model_outputs,
                                   .step = crdi_dcp_model_step,
                                   .terminate = crdi_dcp_model_terminate,
                                   .clear = crdi_dcp_model_clear,
                                   .user = m,
                                   .pinned = true,
                                   .stateless = true,
                                   .kept = offsetof(crdi_dcp_model_self, mode)},
                          .ctx = ctx};
    crd_arena_init(&m->arena, ctx);
    CRD_TRY(crdi_dcp_table_read(ctx, bytes, length, file, &m->arena, &m->setup, &m->d));
    CRD_TRY(build_rows(m));
    *out = &m->base;
    return CRD_OK;
fail:
    crdi_dcp_model_destroy(&m->base);
    return st;
}

void crdi_dcp_model_destroy(const crd_model* model)
{
    if (!model) { return; }
    crdi_dcp_model* m = (crdi_dcp_model*)model->user;
    crd_context* ctx = m->ctx;
    const bool owns = m->owns_context;
    crd_dcp_description_destroy(m->d);
    crd_arena_clear(&m->arena);
    crd_free(ctx, m);
    if (owns) { crd_context_destroy(ctx); }
}

const crd_model* crdi_dcp_model_load(const char* folder, char* message, size_t room)
{
    crd_status st = CRD_OK;
    const crd_model* model = NULL;
    crd_text bytes = {0};
    snprintf(message, room, "out of memory");
    crd_context* ctx = crd_context_create(NULL);
    if (!ctx) { return NULL; }
    crd_text_init(&bytes, ctx);
    char* path = crdi_format(ctx, "%s/slave.table", folder);
    CRD_TRY(path ? CRD_OK : CRD_E_MEMORY);
    CRD_TRY(crdi_file_read(
        ctx, path, &(crdi_file_need){.what = "the table of a slave", .most = MOST_BYTES}, &bytes));
    CRD_TRY(crdi_dcp_model_create(ctx, bytes.data ? bytes.data : "", bytes.length,
                                  "resources/slave.table", &model));
    ((crdi_dcp_model*)model->user)->owns_context = true;
fail:
    if (st < 0) { snprintf(message, room, "%s", crd_error_text(ctx)); }
    crd_text_clear(&bytes);
    crd_free(ctx, path);
    if (st < 0) { crd_context_destroy(ctx); }
    return model;
}

// ---- pack --------------------------------------------------------------------------------------

static crd_status dcp_model_choose_resolution(const crd_dcp_description* d, crdi_dcp_model_setup* s)
{
    const crd_dcp_resolution* usual = crdi_dcp_usual_resolution(d);
    if (s->numerator == 0 && usual) {
        s->numerator = usual->numerator;
        s->denominator = usual->denominator;
    }
    if (crdi_dcp_offers_resolution(d, s->numerator, s->denominator)) { return CRD_OK; }
    return crdi_fail(d->ctx, CRD_E_RANGE, "the slave does not offer the time resolution %u/%u s",
                     s->numerator, s->denominator);
}

static crd_status check_pack_options(const crd_dcp_description* d,
                                     const crdi_dcp_model_options* opt)
{
    if (opt->mode == CRD_DCP_HRT || !crdi_dcp_offers_mode(d, (int)opt->mode)) {
        return crdi_fail(d->ctx, CRD_E_RANGE, "the slave does not offer %s, expected %s%s%s",
                         crd_dcp_op_mode_name(opt->mode), d->nrt ? "NRT" : "",
                         d->nrt && d->srt ? " or " : "",
                         d->srt   ? "SRT"
                         : d->nrt ? ""
                                  : "one with NRT or SRT: an FMU has no HRT");
    }
    if (strlen(opt->address) >= CRDI_DCP_MODEL_ADDRESS) {
        return crdi_fail(d->ctx, CRD_E_RANGE, "the address has %zu bytes, expected at most %d",
                         strlen(opt->address), CRDI_DCP_MODEL_ADDRESS - 1);
    }
    return CRD_OK;
}

crd_status crdi_dcp_model_pack(const crd_dcp_description* d, const crdi_dcp_model_options* opt,
                               crd_text* out)
{
    crd_status st = CRD_OK;
    crdi_dcp_model_setup s = {.name = opt->name,
                              .address = opt->address,
                              .mode = (uint8_t)opt->mode,
                              .numerator = opt->numerator,
                              .denominator = opt->denominator,
                              .step = opt->step};
    CRD_TRY(check_pack_options(d, opt));
    CRD_TRY(dcp_model_choose_resolution(d, &s));
    if (!(s.step > 0)) {
        const uint32_t steps = opt->mode == CRD_DCP_NRT ? d->nrt_default_steps : 1;
        s.step = (double)s.numerator / s.denominator * (steps ? steps : 1);
    }
    st = crdi_dcp_table_write(d, &s, out);
fail:
    return st;
}
