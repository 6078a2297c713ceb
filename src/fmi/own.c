// FMUs that Cardan has made itself: by their binary, which is hashed. A name in a description would
// buy nothing.
#include "fmi/fmu_internal.h"
#include "shared/archive.h"
#include "shared/fmi_build.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_listed(FILE* list, const char* binary)
{
    struct stat s;
    char line[256], hex[65] = "", known[65];
    intmax_t bytes = 0;
    if (stat(binary, &s) != 0) { return false; }
    while (fgets(line, sizeof line, list)) {
        if (sscanf(line, "%64s %jd", known, &bytes) != 2 || bytes != (intmax_t)s.st_size) {
            continue; // what differs in length is not read
        }
        if (!hex[0] && !crdi_file_hash(binary, hex)) { return false; }
        if (strcmp(hex, known) == 0) { return true; }
    }
    return false;
}

bool crdi_fmu_is_own(crd_fmu* f, bool model_exchange, const char* list)
{
    int8_t* known = &f->own[model_exchange];
    char path[PATH_MAX];
    const char* library = crdi_fmu_library(f, model_exchange);
    if (*known || !library[0]) { return *known > 0; }
    const int n = library[0] == '/' ? snprintf(path, sizeof path, "%s", library)
                                    : snprintf(path, sizeof path, "%s/%s", f->folder, library);
    FILE* file = list && n < (int)sizeof path ? fopen(list, "re") : NULL;
    *known = file && is_listed(file, path) ? 1 : -1;
    if (file) { fclose(file); }
    return *known > 0;
}
