// What an FMU has beside its netlist: a line for each setting, a word and its value.
#include "circuit/model.h"

#include <math.h>
#include <string.h>

static const char heading[] = "Cardan circuit 1";

crd_status crdi_circuit_model_pack(crd_context* ctx, const crdi_circuit_model_options* opt,
                                   crd_text* out)
{
    crdi_text_add(out, "%s\nname %s\nmethod %s\n", heading, opt->name,
                  crdi_circuit_method_names()[opt->method]);
    if (!isnan(opt->step)) { crdi_text_add(out, "step %.17g\n", opt->step); }
    for (int i = 0; i < opt->define_count; i++) {
        if (strchr(opt->defines[i], '\n')) {
            return crdi_fail(ctx, CRD_E_FORMAT, "a parameter has a line break");
        }
        crdi_text_add(out, "param %s\n", opt->defines[i]);
    }
    return out->failed ? CRD_E_MEMORY : CRD_OK;
}

typedef struct reader {
    crd_context* ctx;
    crd_arena* arena;
    const char* file;
    int line;
    crdi_circuit_model_options* out;
    const char** defines;
    size_t capacity;
} reader;

static crd_status wrong(const reader* r, const char* what, const char* value)
{
    return crdi_fail(r->ctx, CRD_E_FORMAT, "%s:%d: %s \"%s\"", r->file, r->line, what,
                     crdi_clip(value).text);
}

static crd_status take_method(reader* r, const char* value)
{
    const char* const* names = crdi_circuit_method_names();
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], value) == 0) {
            r->out->method = (crd_circuit_method)i;
            return CRD_OK;
        }
    }
    return wrong(r, "there is no method", value);
}

static crd_status take_define(reader* r, const char* value)
{
    const size_t count = (size_t)r->out->define_count;
    const char** list = crdi_grow(r->ctx, r->defines, &r->capacity, count + 1, sizeof *list);
    if (!list) { return CRD_E_MEMORY; }
    r->defines = list;
    list[count] = value;
    r->out->define_count++;
    return CRD_OK;
}

static crd_status take_line(reader* r, char* line)
{
    char* value = strchr(line, ' ');
    if (r->line == 1) {
        return strcmp(line, heading) == 0 ? CRD_OK : wrong(r, "expected the heading, not", line);
    }
    if (!*line) { return CRD_OK; }
    if (!value) { return wrong(r, "expected a word and its value, not", line); }
    *value++ = 0;
    if (strcmp(line, "name") == 0) {
        r->out->name = value;
        return CRD_OK;
    }
    if (strcmp(line, "method") == 0) { return take_method(r, value); }
    if (strcmp(line, "param") == 0) { return take_define(r, value); }
    if (strcmp(line, "step") == 0) {
        return crdi_parse_double(value, strlen(value), &r->out->step)
                   ? CRD_OK
                   : wrong(r, "expected a step in seconds, not", value);
    }
    return wrong(r, "there is no setting", line);
}

crd_status crdi_circuit_settings(crd_context* ctx, const char* text, size_t length,
                                 const char* file, crd_arena* arena,
                                 crdi_circuit_model_options* out)
{
    crd_status st = CRD_OK;
    reader r = {.ctx = ctx, .arena = arena, .file = file, .out = out};
    *out = crdi_circuit_model_defaults();
    const char* end = text + length;
    do {
        const char* newline = memchr(text, '\n', (size_t)(end - text));
        const char* last = newline ? newline : end;
        char* line = crdi_arena_text(arena, text, (size_t)(last - text));
        CRD_TRY(line ? CRD_OK : CRD_E_MEMORY);
        r.line++;
        CRD_TRY(take_line(&r, line));
        text = last + 1;
    } while (text < end);
    const char** defines = crdi_arena_new(arena, (size_t)out->define_count + 1, sizeof *defines);
    CRD_TRY(defines ? CRD_OK : CRD_E_MEMORY);
    if (r.defines) { memcpy(defines, r.defines, (size_t)out->define_count * sizeof *defines); }
    out->defines = defines;
fail:
    crd_free(ctx, r.defines);
    return st;
}
