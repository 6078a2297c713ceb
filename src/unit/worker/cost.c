// What a step of an FMU costs, from one run to the next: which units share a worker is settled
// before the first of them is loaded, and a unit cannot move afterwards. Stored by the FMU's token
// in the user's cache, one number each. Wrong numbers make runs slower, never different.
#include "shared/fmi_build.h"
#include "unit/fmi/fmi_unit.h"
#include "unit/worker/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t add_text(uint64_t hash, const char* text)
{
    for (const char* p = text ? text : ""; *p; p++) { // FNV-1a
        hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    }
    return (hash ^ 0xff) * 0x100000001b3u;
}

static bool find_file(const crdi_proxy* u, bool make, char path[PATH_MAX])
{
    const crdi_fmi_unit* f = (const crdi_fmi_unit*)u->inner;
    if (!crdi_cache_folder("steps", make, path)) { return false; }
    uint64_t key = add_text(0xcbf29ce484222325u, f->d->token);
    key = add_text(add_text(key, f->d->model_name), f->exchange ? "ME" : "CS");
    const size_t n = strlen(path);
    return snprintf(path + n, PATH_MAX - n, "/%016llx", (unsigned long long)key) < 80;
}

int64_t crdi_worker_recall_cost(const crdi_proxy* u)
{
    char path[PATH_MAX], text[32] = "";
    FILE* f = find_file(u, false, path) ? fopen(path, "re") : NULL;
    if (!f) { return 0; }
    const bool read = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    const long long ns = read ? strtoll(text, NULL, 10) : 0;
    return ns > 0 && ns < CRDI_WORKER_LONGEST ? (int64_t)ns : 0;
}

void crdi_worker_remember_cost(const crdi_proxy* u)
{
    const uint64_t ns = u->answer->step_ns; // its worker's word
    const uint64_t known = (uint64_t)u->cost;
    char path[PATH_MAX];
    if (!ns || ns >= (uint64_t)CRDI_WORKER_LONGEST || (ns < 2 * known && known < 2 * ns) ||
        !find_file(u, true, path)) {
        return;
    }
    FILE* f = fopen(path, "we"); // there may be no place: then not
    if (!f) { return; }
    fprintf(f, "%llu\n", (unsigned long long)ns);
    fclose(f);
}
