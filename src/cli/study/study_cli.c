#include "cli/study/study_cli.h"

#include "shared/base_path.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_database(const char* path)
{
    char head[17] = "";
    return crdi_ends_with(path, ".study") || (crdi_file_head(path, head, sizeof head) >= 15 &&
                                              memcmp(head, "SQLite format 3", 15) == 0);
}

crd_status crdi_study_paths(crdi_cli* cli, const char* argument, const char* database,
                            crd_arena* arena, const char** yaml, const char** study)
{
    struct stat info;
    const bool is_study = is_database(argument);
    *yaml = is_study ? NULL : argument;
    *study = database ? database : argument;
    if (!is_study && !database) {
        size_t length = 0;
        const char* stem = crdi_path_stem(argument, &length);
        *study = crdi_arena_format(arena, "%.*s%.*s.study", (int)(stem - argument), argument,
                                   (int)length, stem);
    }
    if (stat(argument, &info) != 0) {
        return crdi_fail(cli->ctx, CRD_E_NOT_FOUND, "%s: no such file", argument);
    }
    return *study ? CRD_OK : CRD_E_MEMORY;
}

crd_status crdi_study_load(crdi_cli* cli, const char* argument, const char* database,
                           crdi_study** out)
{
    crd_status st = CRD_OK;
    crd_arena arena;
    const char *yaml = NULL, *study = "";
    crd_arena_init(&arena, cli->ctx);
    CRD_TRY(crdi_study_paths(cli, argument, database, &arena, &yaml, &study));
    CRD_TRY(crdi_study_open(cli->ctx, study, out));
    if (!*out) {
        st = crdi_fail(cli->ctx, CRD_E_NOT_FOUND,
                       "%s: there are no results yet; 'cardan study run %s' makes them", study,
                       argument);
    }
fail:
    crd_arena_clear(&arena);
    return st;
}

const char* crdi_study_duration(char out[32], double s)
{
    if (!(s >= 0) || s > 1e12) {
        snprintf(out, 32, "-");
    } else if (s < 100) {
        snprintf(out, 32, s < 10 ? "%.1f s" : "%.0f s", s);
    } else if (s < 6000) {
        snprintf(out, 32, "%.0f min", s / 60);
    } else if (s < 48 * 3600.0) {
        snprintf(out, 32, "%.0f h %02d min", floor(s / 3600), (int)(fmod(s, 3600) / 60));
    } else {
        snprintf(out, 32, "%.1f days", s / 86400);
    }
    return out;
}

const char* crdi_study_thousands(char out[32], int64_t n)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)(n < 0 ? -n : n));
    int at = 0;
    if (n < 0) { out[at++] = '-'; }
    for (int i = 0; i < length; i++) {
        out[at++] = digits[i];
        if ((length - 1 - i) % 3 == 0 && i + 1 < length) { out[at++] = ','; }
    }
    out[at] = 0;
    return out;
}

enum { LOOK_AT = 2000000 }; // points, one by one

crd_status crdi_study_try(crdi_cli* cli, const crdi_study_file* f, crd_arena* arena, bool run,
                          crdi_study_plan* plan, crd_text* describe)
{
    crd_status st = CRD_OK;
    crdi_points* d = NULL;
    crdi_study_worker* w = NULL;
    uint64_t key = 0;
    bool found = false;
    *plan = (crdi_study_plan){.points = crdi_points_count(f), .seconds = NAN};
    crdi_study_value* values = crdi_arena_new(arena, (size_t)f->factor_count, sizeof *values);
    crdi_study_run* r = &plan->run;
    r->values = crdi_arena_new(arena, (size_t)f->factor_count, sizeof *r->values);
    r->kept = crdi_arena_new(arena, (size_t)f->kept_count, sizeof *r->kept);
    CRD_TRY(crdi_arena_status(arena));
    CRD_TRY(crdi_points_create(cli->ctx, f, &d));
    plan->runs = f->exclude_count ? 0 : plan->points;
    for (int64_t i = 0; i < plan->points && (plan->runs != plan->points || !found); i++) {
        if (i == LOOK_AT && found) {
            plan->runs = -1;
            break;
        }
        if (i == 10 * LOOK_AT) {
            st = crdi_fail(cli->ctx, CRD_E_RANGE,
                           "%s: exclude: none of the first %d of %lld points is left", f->file,
                           10 * LOOK_AT, (long long)plan->points);
            goto fail;
        }
        if (!crdi_points_point(d, i, values, &key)) { continue; }
        if (!found) {
            memcpy(r->values, values, (size_t)f->factor_count * sizeof *values);
            r->seed = crdi_points_seed(f, key);
            found = true;
        }
        if (f->exclude_count) { plan->runs++; }
    }
    if (!found) {
        st = crdi_fail(cli->ctx, CRD_E_RANGE, "%s: exclude: no run is left of %lld points", f->file,
                       (long long)plan->points);
        goto fail;
    }
    if (f->minimise) { plan->runs = plan->points = f->minimise_runs; }
    const int64_t rows = plan->runs < 0 ? plan->points : plan->runs;
    plan->bytes = 20000 + rows * (30 + 9 * (int64_t)(f->factor_count + f->kept_count));
    CRD_TRY(crdi_study_worker_create(cli->ctx, f, &w));
    CRD_TRY(crdi_study_worker_describe(w, r, describe));
    if (run) {
        CRD_TRY(crdi_study_try_run(cli->ctx, f, r));
        plan->seconds = r->seconds;
    }
fail:
    crdi_study_worker_destroy(w);
    crdi_points_destroy(d);
    return st;
}
