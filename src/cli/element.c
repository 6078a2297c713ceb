// Coupling elements as arguments: a word, a file, or inline YAML.
#include "cardan/coupling.h"
#include "cardan/system.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LARGEST = 4 << 20 };

static crd_status parse_yaml(crd_context* ctx, const char* text, size_t length, crd_place place,
                             crd_element** out)
{
    crd_text json;
    crd_text_init(&json, ctx);
    crd_status st = crd_yaml_to_json(ctx, text, length, place, &json);
    if (st >= 0) {
        st = crd_element_parse(ctx, json.data, json.length, place.file, place.line, out);
    }
    crd_text_clear(&json);
    return st;
}

static crd_status load_file(crd_context* ctx, const char* path, crd_element** out)
{
    crd_text bytes;
    crd_text_init(&bytes, ctx);
    crd_status st = crdi_file_read(
        ctx, path,
        &(crdi_file_need){.what = "the description of an element", .most = LARGEST, .pipes = true},
        &bytes);
    if (st >= 0 && crdi_ends_with(path, ".json")) {
        st = crd_element_parse(ctx, bytes.data, bytes.length, path, 1, out);
    } else if (st >= 0) {
        st = parse_yaml(ctx, bytes.data, bytes.length, (crd_place){path, 1}, out);
    }
    crd_text_clear(&bytes);
    return st;
}

crd_status crdi_load_element(crd_context* ctx, const char* text, struct crd_element** out)
{
    const char* p = text + strspn(text, " \t\r\n");
    if (*p == '{') {
        const crd_status st = parse_yaml(ctx, text, strlen(text), (crd_place){"", 0}, out);
        char shown[64];
        snprintf(shown, sizeof shown, strlen(text) < 60 ? "%s" : "%.56s...", p);
        return st == CRD_E_FORMAT || st == CRD_E_RANGE ? crdi_fail_in(ctx, st, "'%s'", shown) : st;
    }
    if (strchr(text, '/') || strchr(text, '.')) { return load_file(ctx, text, out); }
    struct stat info;
    const crd_status st = crd_element_of_name(ctx, text, out);
    if (st != CRD_E_NOT_FOUND) { return st; }
    if (stat(text, &info) == 0 && !S_ISDIR(info.st_mode)) { return load_file(ctx, text, out); }
    return crdi_fail_in(ctx, st, "'%.60s' is no coupling element", text);
}
