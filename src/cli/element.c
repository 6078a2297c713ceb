// Coupling elements as arguments: a word, a file, or inline YAML.
#include "cardan/coupling.h"
#include "cardan/system.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

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

// Regular files, pipes and the like; the size is bounded by what is read.
static crd_status load_file(crd_context* ctx, const char* path, crd_element** out)
{
    crd_status st = CRD_OK;
    char* bytes = NULL;
    size_t length = 0, capacity = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return crdi_fail(ctx, errno == ENOENT ? CRD_E_NOT_FOUND : CRD_E_IO, "%s: %s", path,
                         strerror(errno));
    }
    for (ssize_t n = 1; n > 0;) {
        char* grown = crdi_grow(ctx, bytes, &capacity, length + 65536, 1);
        CRD_TRY(grown ? CRD_OK : CRD_E_MEMORY);
        bytes = grown;
        n = read(fd, bytes + length, capacity - length);
        if (n < 0 && errno == EISDIR) {
            CRD_TRY(crdi_fail(ctx, CRD_E_FORMAT,
                              "%s: a folder, expected the description of an element", path));
        }
        if (n < 0) { CRD_TRY(crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno))); }
        length += (size_t)n;
        if (length > LARGEST) {
            CRD_TRY(crdi_fail(ctx, CRD_E_FORMAT,
                              "%s: larger than %d bytes, expected the description of an element",
                              path, LARGEST));
        }
    }
    const size_t name = strlen(path);
    if (name > 5 && strcasecmp(path + name - 5, ".json") == 0) {
        CRD_TRY(crd_element_parse(ctx, bytes, length, path, 1, out));
    } else {
        CRD_TRY(parse_yaml(ctx, bytes, length, (crd_place){path, 1}, out));
    }
fail:
    close(fd);
    crd_free(ctx, bytes);
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
