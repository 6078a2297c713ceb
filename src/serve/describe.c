// A slave description from the variables that are served.
#include "serve/serve.h"
#include "shared/base_path.h"

#include <float.h>
#include <math.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct describer {
    crdi_serve* s;
    crd_dcp_description* d;
    crd_arena* a;         // of the description
    crd_fmu* const* fmus; // (unit_count), NULL: not an FMU
    crd_map units;        // names of units of measure
    crd_dcp_unit* unit_rows;
    size_t unit_capacity;
    int* outlet_at; // of the unit at hand: outlet of a variable, -1 (variables)
} describer;

// ---- pieces ------------------------------------------------------------------------------------

// The convergents of a continued fraction, until one is x.
bool crdi_serve_fraction(double x, uint32_t* numerator, uint32_t* denominator)
{
    if (!(x > 0) || !isfinite(x)) { return false; }
    double rest = x;
    uint64_t n0 = 0, d0 = 1, n1 = 1, d1 = 0;
    for (int i = 0; i < 32; i++) {
        const double whole = floor(rest);
        if (whole > UINT32_MAX) { return false; }
        const uint64_t n2 = (uint64_t)whole * n1 + n0, d2 = (uint64_t)whole * d1 + d0;
        if (n2 > UINT32_MAX || d2 > UINT32_MAX) { return false; }
        if (n2 > 0 && fabs((double)n2 / (double)d2 - x) <= 2 * DBL_EPSILON * x) {
            *numerator = (uint32_t)n2;
            *denominator = (uint32_t)d2;
            return true;
        }
        if (rest <= whole) { return false; }
        rest = 1 / (rest - whole);
        n0 = n1;
        d0 = d1;
        n1 = n2;
        d1 = d2;
    }
    return false;
}

// As an attribute may have it: blanks for control characters, '?' for what is no UTF-8.
static const char* plain_text(describer* w, const char* text)
{
    char* copy = crdi_arena_text(w->a, text ? text : "", text ? strlen(text) : 0);
    for (char* p = copy; p && *p;) {
        const size_t n = crdi_dcp_utf8(p);
        if (n == 0) { *p = '?'; }
        if (n == 1 && (unsigned char)*p < 0x20) { *p = ' '; }
        p += n ? n : 1;
    }
    return copy;
}

static const crd_variable* outlet_variable(const crdi_serve* s, const crdi_outlet* o)
{
    return &s->stations[o->unit].unit->info.variables[o->variable];
}

// ---- a variable --------------------------------------------------------------------------------

static crd_status add_unit_of_measure(describer* w, const crdi_outlet* o, const char* name)
{
    crd_unit* u = w->s->stations[o->unit].unit;
    bool fresh = false;
    const crd_status st = crdi_map_add(&w->units, name, w->d->unit_count, &fresh);
    if (st < 0 || !fresh) { return st; }
    crd_dcp_unit* rows = crdi_grow(w->s->ctx, w->unit_rows, &w->unit_capacity,
                                   (size_t)w->d->unit_count + 1, sizeof *rows);
    if (!rows) { return CRD_E_MEMORY; }
    w->unit_rows = rows;
    crd_dcp_unit row = {.name = name, .factor = 1};
    crd_dimension dim;
    if (crdi_unit_dimension(u, o->variable, &dim) && isfinite(dim.factor) && dim.factor != 0 &&
        isfinite(dim.offset)) {
        const int8_t exponents[8] = {dim.kg, dim.m, dim.s, dim.A, dim.K, dim.mol, dim.cd, dim.rad};
        row.has_base = true;
        memcpy(row.exponents, exponents, sizeof exponents);
        row.factor = dim.factor;
        row.offset = dim.offset;
    }
    rows[w->d->unit_count++] = row;
    return CRD_OK;
}

static bool is_limit(uint8_t type, double x)
{
    double low, high;
    crdi_dcp_range(type, &low, &high);
    if (crdi_dcp_is_real(type)) { return x >= low && x <= high; }
    const double exact = 0x1p53; // what a double says exactly
    return x >= fmax(low, -exact) && x <= fmin(high, exact - 1) && x == floor(x);
}

// Limits, unless start values are outside: then the FMU is not to be taken at its word.
static void serve_describe_put_limits(describer* w, const crdi_outlet* o, crd_dcp_variable* x)
{
    const crd_variable* v = outlet_variable(w->s, o);
    if (o->kind == CRD_BYTES) { return; }
    double low = v->min, high = v->max;
    if (v->type == CRD_BOOLEAN) {
        low = 0;
        high = 1;
    }
    if (is_limit(o->type, low)) { x->min = low; }
    if (is_limit(o->type, high)) { x->max = high; }
    if (x->min > x->max) { x->min = x->max = NAN; }
    for (const char* at = x->start; at && *at;) {
        at += strspn(at, " ");
        const size_t n = strcspn(at, " ");
        double value = 0;
        if (!crdi_parse_double(at, n, &value)) { break; }
        if (value < x->min || value > x->max) {
            crdi_log(w->s->ctx, CRD_LOG_WARNING,
                     "'%s' starts with %.10g, outside of %g to %g: described without limits",
                     o->name, value, v->min, v->max);
            x->min = x->max = NAN;
            break;
        }
        at += n;
    }
    if (o->kind == CRD_REAL && isfinite(v->nominal) && v->nominal > 0 && v->nominal != 1) {
        x->nominal = v->nominal;
    }
}

// Constants, or the structural parameters behind them.
static void put_dimensions(describer* w, const crdi_outlet* o, crd_dcp_variable* x)
{
    crd_unit* u = w->s->stations[o->unit].unit;
    const crd_variable* v = &u->info.variables[o->variable];
    const crd_fmu* fmu = w->fmus[o->unit];
    if (o->kind == CRD_BYTES) { return; }
    x->rank = v->rank;
    for (int i = 0; i < v->rank; i++) {
        x->dimensions[i] = crdi_unit_extent(u, o->variable, i);
        const crd_fmu_description* d = fmu ? crd_fmu_describe(fmu) : NULL;
        const int32_t first = d ? d->axis_first[o->variable] : -1;
        const int32_t by = first >= 0 ? d->axes[first + i].variable : -1;
        if (by < 0 || w->outlet_at[by] < 0) { continue; }
        x->is_linked[i] = true;
        x->linked[i] = w->s->outlets[w->outlet_at[by]].vr;
        x->dimensions[i] = 0;
    }
}

enum { NOT_SAID = -1, ON_ALL = -2 };

// The row of an output in a table of dependencies.
static int32_t dependency_row(const crd_dependencies* d, int32_t variable)
{
    for (int32_t r = 0; d && r < d->count; r++) {
        if (d->unknown[r] == variable) { return d->on_all && d->on_all[r] ? ON_ALL : r; }
    }
    return NOT_SAID;
}

static crd_status put_dependencies(describer* w, const crd_dependencies* d, int32_t variable,
                                   bool* has, const crd_dcp_dependency** out, int* count)
{
    const int32_t r = dependency_row(d, variable);
    if (r < 0) { return CRD_OK; }
    int n = 0;
    crd_dcp_dependency* list = NULL;
    for (int pass = 0; pass < 2; pass++) { // count, then fill
        n = 0;
        for (int32_t k = d->first[r]; k < d->first[r + 1]; k++) {
            const int32_t known = d->known[k];
            const int at = w->outlet_at[known];
            for (int i = at; i >= 0 && i < w->s->outlet_count; i++) { // elements, too
                const crdi_outlet* o = &w->s->outlets[i];
                if (o->unit != w->s->outlets[at].unit || o->variable != known) { break; }
                if (o->causality == CRD_OUTPUT) { break; }
                if (list) { list[n].vr = o->vr; }
                n++;
            }
        }
        if (!list) { list = crdi_arena_new(w->a, (size_t)n, sizeof *list); }
        if (!list) { return CRD_E_MEMORY; }
    }
    *has = true;
    *out = list;
    *count = n;
    return CRD_OK;
}

static crd_status describe_variable(describer* w, const crdi_outlet* o, crd_dcp_variable* x)
{
    crd_status st = CRD_OK;
    crdi_serve* s = w->s;
    const crd_unit_info* info = &s->stations[o->unit].unit->info;
    const crd_variable* v = outlet_variable(s, o);
    *x = crd_dcp_variable_defaults();
    x->name = plain_text(w, o->name);
    x->description = plain_text(w, v->description);
    x->vr = o->vr;
    x->causality = o->causality;
    x->type = o->type;
    const bool parameter = o->causality == CRD_PARAMETER;
    x->variability = parameter ? v->variability == CRD_TUNABLE ? CRD_TUNABLE : CRD_FIXED
                     : o->causality == CRD_STRUCTURAL_PARAMETER                ? CRD_FIXED
                     : v->variability == CRD_CONTINUOUS && o->kind == CRD_REAL ? CRD_CONTINUOUS
                                                                               : CRD_DISCRETE;
    if (o->kind == CRD_BYTES) { x->max_size = s->opt.max_text; }
    if (o->kind == CRD_REAL && v->unit && v->unit[0]) {
        x->unit = plain_text(w, v->unit);
        if (x->unit) { CRD_TRY(add_unit_of_measure(w, o, x->unit)); }
    }
    CRD_TRY(crdi_serve_start_text(s, o, w->a, &x->start));
    serve_describe_put_limits(w, o, x);
    put_dimensions(w, o, x);
    if (o->causality == CRD_OUTPUT) {
        x->fixed_steps = s->opt.max_steps < 2;
        x->max_steps = s->opt.max_steps;
    }
    if (o->causality == CRD_OUTPUT && s->one) {
        CRD_TRY(put_dependencies(w, info->outputs, o->variable, &x->has_run_dependencies,
                                 &x->run_dependencies, &x->run_dependency_count));
        CRD_TRY(put_dependencies(w, info->initial, o->variable, &x->has_initial_dependencies,
                                 &x->initial_dependencies, &x->initial_dependency_count));
        // One that is not among the unknowns of the start has its start value there.
        if (info->initial && dependency_row(info->initial, o->variable) == NOT_SAID &&
            v->initial == CRD_EXACT) {
            x->has_initial_dependencies = true;
        }
    }
    if (!x->name || !x->description || !x->unit) { st = CRD_E_MEMORY; }
fail:
    return st;
}

static crd_status describe_variables(describer* w)
{
    crdi_serve* s = w->s;
    crd_status st = CRD_OK;
    crd_dcp_variable* rows = crdi_arena_new(w->a, (size_t)s->outlet_count, sizeof *rows);
    if (!rows) { return CRD_E_MEMORY; }
    for (int i = 0; i < s->outlet_count;) {
        const int unit = s->outlets[i].unit;
        const size_t n = (size_t)s->stations[unit].unit->info.variable_count;
        crd_free(s->ctx, w->outlet_at);
        w->outlet_at = crdi_new_array(s->ctx, n, sizeof *w->outlet_at);
        if (!w->outlet_at) { return CRD_E_MEMORY; }
        memset(w->outlet_at, 0xff, n * sizeof *w->outlet_at);
        int end = i;
        for (; end < s->outlet_count && s->outlets[end].unit == unit; end++) {
            int* at = &w->outlet_at[s->outlets[end].variable];
            if (*at < 0) { *at = end; }
        }
        for (; i < end; i++) {
            CRD_TRY(describe_variable(w, &s->outlets[i], &rows[i]));
        }
    }
    w->d->variables = rows;
    w->d->variable_count = s->outlet_count;
    crd_dcp_unit* units = crdi_arena_new(w->a, (size_t)w->d->unit_count, sizeof *units);
    if (!units) { return CRD_E_MEMORY; }
    if (w->d->unit_count) { memcpy(units, w->unit_rows, (size_t)w->d->unit_count * sizeof *units); }
    w->d->units = units;
fail:
    return st;
}

// ---- the slave ---------------------------------------------------------------------------------

// "a/b/motor.fmu" -> "motor"
static const char* file_stem(describer* w, const char* path)
{
    size_t length;
    const char* name = crdi_path_stem(path, &length);
    return crdi_arena_text(w->a, name, length);
}

// NULL: that of the file.
static const char* slave_name(const crdi_serve* s, const crd_fmu_description* fmu)
{
    const crd_unit_spec* first = &s->sys->units[0];
    if (s->opt.name) { return s->opt.name; }
    if (s->sys->title && s->sys->title[0]) { return s->sys->title; }
    if (fmu) { return fmu->model_name; }
    if (s->one && first->source == CRD_UNIT_NATIVE) {
        return ((const crd_model*)first->model)->name;
    }
    if (s->one) { return first->name; }
    return s->sys->file && s->sys->file[0] ? NULL : "system";
}

static crd_status describe_slave(describer* w)
{
    crdi_serve* s = w->s;
    crd_dcp_description* d = w->d;
    const crd_fmu_description* fmu = s->one && w->fmus[0] ? crd_fmu_describe(w->fmus[0]) : NULL;
    const char* name = slave_name(s, fmu);
    d->name = name ? plain_text(w, name) : file_stem(w, s->sys->file);
    if (d->name && !d->name[0]) { d->name = "slave"; }
    d->description = plain_text(w, fmu ? fmu->description : "");
    d->author = plain_text(w, fmu ? fmu->author : "");
    d->version = plain_text(w, fmu ? fmu->model_version : "");
    d->copyright = plain_text(w, fmu ? fmu->copyright : "");
    d->license = plain_text(w, fmu ? fmu->license : "");
    d->tool = crdi_arena_format(w->a, "Cardan %s", crd_version());
    if (!d->name || !d->description || !d->author || !d->version || !d->copyright || !d->license ||
        !d->tool) {
        return CRD_E_MEMORY;
    }
    d->srt = d->nrt = true;
    d->hrt = s->opt.hrt;
    d->nrt_max_steps = s->opt.max_steps;
    d->nrt_fixed_steps = s->opt.max_steps == 1;
    d->can_accept_config = d->can_reset = d->can_vary_steps = true;
    d->can_log_on_request = d->can_log_on_notification = true;
    if (!isnan(s->opt.heartbeat)) {
        d->has_heartbeat = d->can_monitor_heartbeat = true;
        if (!crdi_serve_fraction(s->opt.heartbeat, &d->heartbeat_numerator,
                                 &d->heartbeat_denominator)) {
            return crdi_fail(s->ctx, CRD_E_RANGE, "heartbeat = %g s, expected > 0 and a fraction",
                             s->opt.heartbeat);
        }
    }
    return CRD_OK;
}

// The one that it is made for and, of a unit that steps by any length, 1 us to 10 s.
static crd_status describe_resolutions(describer* w)
{
    crdi_serve* s = w->s;
    crd_dcp_resolution* rows = crdi_arena_new(w->a, 2, sizeof *rows);
    if (!rows) { return CRD_E_MEMORY; }
    rows[0] = (crd_dcp_resolution){.numerator = s->numerator,
                                   .numerator_to = s->numerator,
                                   .denominator = s->denominator,
                                   .recommended = true};
    rows[1] =
        (crd_dcp_resolution){.numerator = 1, .numerator_to = 10000000, .denominator = 1000000};
    w->d->resolutions = rows;
    w->d->resolution_count = s->varies ? 2 : 1;
    w->d->fixed_resolution = !s->varies;
    if (!s->varies) { rows[0].recommended = false; }
    return CRD_OK;
}

static crd_status describe_addresses(describer* w)
{
    static const crd_dcp_address usual = {0x7F000001, 8080, CRD_DCP_UDP};
    static const crd_dcp_ports any = {1024, 65535};
    const crdi_serve_options* opt = &w->s->opt;
    const crd_dcp_address* list = opt->address_count ? opt->addresses : &usual;
    for (int i = 0; i < (opt->address_count ? opt->address_count : 1); i++) {
        const crd_dcp_address* a = &list[i];
        w->d->can = w->d->can || a->transport == CRD_DCP_CAN;
        crd_dcp_endpoint* e = a->transport == CRD_DCP_TCP ? &w->d->tcp : &w->d->udp;
        if (e->offered || (a->transport != CRD_DCP_TCP && a->transport != CRD_DCP_UDP)) {
            continue; // the first of a transport counts
        }
        char host[256] = "";
        if (a->ip == 0) { // all interfaces: others know this machine by its name
            if (gethostname(host, sizeof host - 1) != 0) {
                snprintf(host, sizeof host, "localhost");
            }
        } else {
            snprintf(host, sizeof host, "%u.%u.%u.%u", a->ip >> 24, a->ip >> 16 & 255,
                     a->ip >> 8 & 255, a->ip & 255);
        }
        e->offered = e->has_data = e->has_parameter = true;
        e->host = e->data_host = e->parameter_host = plain_text(w, host);
        e->port = a->port;
        e->data = e->parameter = &any;
        e->data_count = e->parameter_count = 1;
        if (!e->host) { return CRD_E_MEMORY; }
    }
    return CRD_OK;
}

static void describe_log(crd_dcp_description* d)
{
    static const crd_dcp_log_category categories[] = {{.id = 1, .name = "unit"},
                                                      {.id = 2, .name = "slave"}};
    static const uint8_t text[] = {CRD_DCP_STRING};
#define ENTRY(category, level)                                                                     \
    {                                                                                              \
        level + 1, category, level, "%string", text, 1, 0                                          \
    }
    static const crd_dcp_log_template templates[] = {ENTRY(2, 0), ENTRY(1, 1), ENTRY(1, 2),
                                                     ENTRY(1, 3), ENTRY(1, 4)};
    d->categories = categories;
    d->category_count = 2;
    d->templates = templates;
    d->template_count = 5;
}

// From the identity of the FMU and all that a master relies on: another interface is another slave.
// A UUID of version 8 (RFC 9562) from a SHA-256.
static crd_status describe_uuid(describer* w)
{
    crdi_serve* s = w->s;
    crd_text t;
    crd_text_init(&t, s->ctx);
    crdi_text_add(&t, "dcp slave\n%s\n", w->d->name);
    for (int i = 0; i < s->unit_count; i++) {
        const crd_unit* u = s->stations[i].unit;
        crdi_text_add(&t, "%s\n%s\n", s->sys->single ? "" : u->name, u->info.kind);
        if (w->fmus[i]) { crdi_text_add(&t, "%s\n", crd_fmu_describe(w->fmus[i])->token); }
    }
    for (int i = 0; i < w->d->variable_count; i++) {
        const crd_dcp_variable* x = &w->d->variables[i];
        crdi_text_add(&t, "%s %llu %d %d %d", x->name, (unsigned long long)x->vr, x->causality,
                      x->variability, x->type);
        for (int k = 0; k < x->rank; k++) {
            crdi_text_add(&t, " %llu",
                          (unsigned long long)(x->is_linked[k] ? x->linked[k] : x->dimensions[k]));
        }
        crdi_text_put(&t, "\n", 1);
    }
    const bool good = !t.failed;
    uint8_t hash[crypto_hash_sha256_BYTES];
    if (good) {
        crypto_hash_sha256(hash, (const unsigned char*)t.data, t.length);
        memcpy(w->d->uuid, hash, sizeof w->d->uuid);
        w->d->uuid[6] = (uint8_t)((w->d->uuid[6] & 0x0F) | 0x80);
        w->d->uuid[8] = (uint8_t)((w->d->uuid[8] & 0x3F) | 0x80);
    }
    crd_text_clear(&t);
    return good ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_serve_make_description(crdi_serve* s, crd_fmu* const* fmus,
                                       crd_dcp_description** out)
{
    crd_status st = CRD_OK;
    describer w = {.s = s, .fmus = fmus};
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    crdi_map_init(&w.units, s->ctx);
    CRD_TRY(crd_dcp_description_create(s->ctx, &w.d));
    w.a = &w.d->arena;
    CRD_TRY(describe_slave(&w));
    CRD_TRY(describe_resolutions(&w));
    CRD_TRY(describe_addresses(&w));
    describe_log(w.d);
    CRD_TRY(describe_variables(&w));
    CRD_TRY(describe_uuid(&w));
    CRD_TRY(crd_dcp_validate(w.d, &findings, &count));
    for (int i = 0; i < count; i++) { // by construction there are none
        if (findings[i].severity == CRD_DCP_FAULT) {
            st = crdi_fail(s->ctx, CRD_E_UNSUPPORTED,
                           "it cannot be described as a DCP slave: %s (%s)", findings[i].text,
                           findings[i].code);
            goto fail;
        }
        crdi_log(s->ctx, CRD_LOG_WARNING, "slave description: %s (%s)", findings[i].text,
                 findings[i].code);
    }
    *out = w.d;
    w.d = NULL;
fail:
    crd_dcp_description_destroy(w.d);
    crdi_map_clear(&w.units);
    crd_free(s->ctx, w.unit_rows);
    crd_free(s->ctx, w.outlet_at);
    return st;
}
