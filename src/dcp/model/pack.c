// The table of bytes from which a slave's model is made: a description and how to run it.
//
// Numbers are little endian, texts have their length as u32 and a final zero, NULL has the length
// 2^32 - 1, lists begin with their count as u32. One walk serves for writing and reading, so that
// both agree; what is read is bounded by the bytes that there are, and what is written stays as it
// was.
#include "dcp/model/model.h"

#include <math.h>
#include <string.h>

static const char magic[8] = "CRDSLV1"; // with its zero

typedef struct walker {
    crd_text* out; // NULL: reading
    const uint8_t *at, *end;
    crd_arena* arena;
    bool torn, memory;
} walker;

// ---- pieces ------------------------------------------------------------------------------------

static uint64_t walk_number(walker* w, uint64_t x, size_t bytes)
{
    uint8_t b[8];
    if (w->out) {
        crdi_store_le(b, bytes, x);
        crdi_text_put(w->out, b, bytes);
        return x;
    }
    if ((size_t)(w->end - w->at) < bytes) {
        w->torn = true;
        return 0;
    }
    x = crdi_load_le(w->at, bytes);
    w->at += bytes;
    return x;
}

static void walk_u8(walker* w, uint8_t* x)
{
    const uint64_t y = walk_number(w, *x, 1);
    if (!w->out) { *x = (uint8_t)y; }
}

static void walk_u16(walker* w, uint16_t* x)
{
    const uint64_t y = walk_number(w, *x, 2);
    if (!w->out) { *x = (uint16_t)y; }
}

static void walk_u32(walker* w, uint32_t* x)
{
    const uint64_t y = walk_number(w, *x, 4);
    if (!w->out) { *x = (uint32_t)y; }
}

static void walk_u64(walker* w, uint64_t* x)
{
    const uint64_t y = walk_number(w, *x, 8);
    if (!w->out) { *x = y; }
}

static void walk_flag(walker* w, bool* x)
{
    const uint64_t y = walk_number(w, *x, 1);
    if (!w->out) { *x = y != 0; }
}

static void walk_real(walker* w, double* x)
{
    uint64_t bits;
    memcpy(&bits, x, 8);
    bits = walk_number(w, bits, 8);
    if (!w->out) { memcpy(x, &bits, 8); }
}

static void walk_text(walker* w, const char** x)
{
    if (w->out) {
        const size_t n = *x ? strlen(*x) : UINT32_MAX;
        (void)walk_number(w, n, 4);
        if (*x) { crdi_text_put(w->out, *x, n + 1); }
        return;
    }
    const uint64_t n = walk_number(w, 0, 4);
    *x = n == UINT32_MAX ? NULL : "";
    if (n == UINT32_MAX || w->torn) { return; }
    if ((uint64_t)(w->end - w->at) <= n || memchr(w->at, 0, (size_t)n + 1) != w->at + n) {
        w->torn = true;
        return;
    }
    *x = crdi_arena_text(w->arena, (const char*)w->at, (size_t)n);
    if (!*x) {
        w->memory = true;
        *x = "";
    }
    w->at += n + 1;
}

// Texts that may not be NULL.
static void walk_word(walker* w, const char** x)
{
    walk_text(w, x);
    if (!*x && !w->out) {
        *x = "";
        w->torn = true;
    }
}

// Room for a list whose elements take at least `least` bytes each; its count.
static int walk_list(walker* w, void* items, int* count, size_t size, size_t least)
{
    const uint64_t n = walk_number(w, (uint64_t)*count, 4);
    if (w->out) { return *count; }
    *count = 0;
    if (w->torn || n > (uint64_t)(w->end - w->at) / least || n > INT32_MAX) {
        w->torn = true;
        return 0;
    }
    void* room = crdi_arena_new(w->arena, n ? (size_t)n : 1, size);
    if (!room) {
        w->memory = true;
        return 0;
    }
    memcpy(items, &room, sizeof room);
    return *count = (int)n;
}

// ---- parts of a description --------------------------------------------------------------------

static void walk_dependencies(walker* w, bool* has, const crd_dcp_dependency** items, int* count)
{
    walk_flag(w, has);
    const int n = walk_list(w, items, count, sizeof **items, 9);
    for (int i = 0; i < n; i++) {
        crd_dcp_dependency* x = (crd_dcp_dependency*)&(*items)[i];
        walk_u64(w, &x->vr);
        walk_flag(w, &x->linear);
    }
}

static void walk_variable(walker* w, crd_dcp_variable* v)
{
    walk_word(w, &v->name);
    walk_word(w, &v->description);
    walk_u64(w, &v->vr);
    walk_u8(w, &v->causality);
    walk_u8(w, &v->variability);
    walk_u8(w, &v->type);
    walk_word(w, &v->unit);
    walk_real(w, &v->min);
    walk_real(w, &v->max);
    walk_real(w, &v->nominal);
    walk_u32(w, &v->max_size);
    walk_word(w, &v->mime);
    walk_text(w, &v->start);
    uint8_t rank = (uint8_t)v->rank;
    walk_u8(w, &rank);
    w->torn = w->torn || rank > 8;
    if (!w->out) { v->rank = rank > 8 ? 0 : rank; }
    for (int i = 0; i < v->rank; i++) {
        walk_u64(w, &v->dimensions[i]);
        walk_u64(w, &v->linked[i]);
        walk_flag(w, &v->is_linked[i]);
    }
    walk_flag(w, &v->has_max_missed);
    walk_u32(w, &v->max_missed);
    walk_u32(w, &v->default_steps);
    walk_u32(w, &v->min_steps);
    walk_u32(w, &v->max_steps);
    walk_flag(w, &v->fixed_steps);
    walk_flag(w, &v->initialization);
    walk_dependencies(w, &v->has_initial_dependencies, &v->initial_dependencies,
                      &v->initial_dependency_count);
    walk_dependencies(w, &v->has_run_dependencies, &v->run_dependencies, &v->run_dependency_count);
    if (v->causality >= CRD_CAUSALITY_COUNT || v->variability >= CRD_VARIABILITY_COUNT ||
        v->type >= CRD_DCP_DATA_TYPE_COUNT || !*v->name) {
        w->torn = true;
    }
}

static void walk_ports(walker* w, const crd_dcp_ports** items, int* count)
{
    const int n = walk_list(w, items, count, sizeof **items, 4);
    for (int i = 0; i < n; i++) {
        crd_dcp_ports* x = (crd_dcp_ports*)&(*items)[i];
        walk_u16(w, &x->from);
        walk_u16(w, &x->to);
    }
}

static void walk_endpoint(walker* w, crd_dcp_endpoint* e)
{
    walk_flag(w, &e->offered);
    walk_u32(w, &e->max_pdu_size);
    walk_word(w, &e->host);
    walk_u16(w, &e->port);
    walk_flag(w, &e->has_data);
    walk_flag(w, &e->has_parameter);
    walk_word(w, &e->data_host);
    walk_word(w, &e->parameter_host);
    walk_ports(w, &e->data, &e->data_count);
    walk_ports(w, &e->parameter, &e->parameter_count);
}

static void walk_capabilities(walker* w, crd_dcp_description* d)
{
    walk_flag(w, &d->hrt);
    walk_flag(w, &d->srt);
    walk_flag(w, &d->nrt);
    walk_u32(w, &d->nrt_default_steps);
    walk_u32(w, &d->nrt_min_steps);
    walk_u32(w, &d->nrt_max_steps);
    walk_flag(w, &d->nrt_fixed_steps);
    const int n = walk_list(w, &d->resolutions, &d->resolution_count, sizeof *d->resolutions, 13);
    for (int i = 0; i < n; i++) {
        crd_dcp_resolution* r = (crd_dcp_resolution*)&d->resolutions[i];
        walk_u32(w, &r->numerator);
        walk_u32(w, &r->numerator_to);
        walk_u32(w, &r->denominator);
        walk_flag(w, &r->recommended);
        w->torn = w->torn || r->denominator == 0 || r->numerator == 0;
    }
    walk_flag(w, &d->fixed_resolution);
    walk_flag(w, &d->has_heartbeat);
    walk_u32(w, &d->heartbeat_numerator);
    walk_u32(w, &d->heartbeat_denominator);
    walk_endpoint(w, &d->udp);
    walk_endpoint(w, &d->tcp);
    walk_flag(w, &d->can_accept_config);
    walk_flag(w, &d->can_reset);
    walk_flag(w, &d->can_vary_steps);
    walk_flag(w, &d->can_monitor_heartbeat);
    walk_flag(w, &d->can_log_on_request);
    walk_flag(w, &d->can_log_on_notification);
}

static void walk_units(walker* w, crd_dcp_description* d)
{
    const int n = walk_list(w, &d->units, &d->unit_count, sizeof *d->units, 30);
    for (int i = 0; i < n; i++) {
        crd_dcp_unit* u = (crd_dcp_unit*)&d->units[i];
        walk_word(w, &u->name);
        walk_flag(w, &u->has_base);
        for (int k = 0; k < 8; k++) {
            uint8_t e = (uint8_t)u->exponents[k];
            walk_u8(w, &e);
            if (!w->out) { u->exponents[k] = (int8_t)e; }
        }
        walk_real(w, &u->factor);
        walk_real(w, &u->offset);
    }
}

static void walk_logs(walker* w, crd_dcp_description* d)
{
    int n = walk_list(w, &d->categories, &d->category_count, sizeof *d->categories, 6);
    for (int i = 0; i < n; i++) {
        crd_dcp_log_category* c = (crd_dcp_log_category*)&d->categories[i];
        walk_u8(w, &c->id);
        walk_word(w, &c->name);
    }
    n = walk_list(w, &d->templates, &d->template_count, sizeof *d->templates, 12);
    for (int i = 0; i < n; i++) {
        crd_dcp_log_template* t = (crd_dcp_log_template*)&d->templates[i];
        walk_u8(w, &t->id);
        walk_u8(w, &t->category);
        walk_u8(w, &t->level);
        walk_word(w, &t->message);
        const int m = walk_list(w, &t->arguments, &t->argument_count, 1, 1);
        for (int k = 0; k < m; k++) {
            walk_u8(w, (uint8_t*)&t->arguments[k]);
            w->torn = w->torn || t->arguments[k] >= CRD_DCP_DATA_TYPE_COUNT;
        }
    }
}

static void walk_table(walker* w, crdi_dcp_model_setup* s, crd_dcp_description* d)
{
    for (size_t i = 0; i < sizeof magic; i++) {
        uint8_t c = (uint8_t)magic[i];
        walk_u8(w, &c);
        w->torn = w->torn || c != (uint8_t)magic[i];
    }
    walk_word(w, &s->name);
    walk_word(w, &s->address);
    walk_u8(w, &s->mode);
    walk_u32(w, &s->numerator);
    walk_u32(w, &s->denominator);
    walk_real(w, &s->step);
    walk_word(w, &d->name);
    walk_word(w, &d->description);
    for (int i = 0; i < 16; i++) {
        walk_u8(w, &d->uuid[i]);
    }
    walk_u8(w, &d->major);
    walk_u8(w, &d->minor);
    walk_capabilities(w, d);
    walk_units(w, d);
    const int n = walk_list(w, &d->variables, &d->variable_count, sizeof *d->variables, 80);
    for (int i = 0; i < n && !w->torn && !w->memory; i++) {
        walk_variable(w, (crd_dcp_variable*)&d->variables[i]);
    }
    walk_logs(w, d);
}

// ---- both ways ---------------------------------------------------------------------------------

crd_status crdi_dcp_table_write(const crd_dcp_description* d, const crdi_dcp_model_setup* s,
                                crd_text* out)
{
    walker w = {.out = out};
    crdi_dcp_model_setup setup = *s;
    crd_dcp_description copy = *d;
    walk_table(&w, &setup, &copy);
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}

crd_status crdi_dcp_table_read(crd_context* ctx, const void* bytes, size_t length, const char* file,
                               crd_arena* arena, crdi_dcp_model_setup* s, crd_dcp_description** d)
{
    crd_dcp_description* own = NULL;
    crd_status st = crd_dcp_description_create(ctx, &own);
    if (st < 0) { return st; }
    walker w = {.at = bytes, .end = (const uint8_t*)bytes + length, .arena = arena};
    walk_table(&w, s, own);
    if (w.memory) {
        st = CRD_E_MEMORY;
    } else if (w.torn || w.at != w.end) {
        st = crdi_fail(
            ctx, CRD_E_FORMAT,
            "%s: no table of a DCP slave at byte %zu of %zu, expected what 'cardan export "
            "dcp' of this version has written",
            file, (size_t)(w.at - (const uint8_t*)bytes), length);
    }
    if (st < 0) {
        crd_dcp_description_destroy(own);
        return st;
    }
    own->file = file;
    *d = own;
    return CRD_OK;
}
