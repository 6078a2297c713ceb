// modules: study base
//
// Any text as a study file. What is accepted has a design whose points are of it: numbers within
// min and max, texts of the lists, and each point travels between processes as it is.
#include "shared/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { LARGE = 100000, POINTS = 64 };

static void must(bool holds)
{
    if (!holds) { abort(); }
}

static bool is_one_of(const crdi_study_factor* f, const char* text)
{
    for (int i = 0; i < f->count; i++) {
        if (strcmp(f->texts[i], text) == 0) { return true; }
    }
    return false;
}

static void check_value(const crdi_study_factor* f, const crdi_study_value* v)
{
    if (f->law == CRDI_LAW_LIST) {
        must(is_one_of(f, v->text));
    } else {
        must(isfinite(v->x) && v->x >= f->low && v->x <= f->high);
        must(!f->whole || v->x == floor(v->x));
    }
}

static void travel(const crdi_study_file* f, crdi_study_run* r, crdi_study_run* back)
{
    static char bytes[1 << 16];
    const size_t n = crdi_study_encode_point(f, r, bytes, sizeof bytes);
    if (!n) { return; } // too long, which is told
    must(crdi_study_decode_point(f, back, bytes, n));
    must(back->id == r->id && back->seed == r->seed);
    for (int i = 0; i < f->factor_count; i++) {
        must(memcmp(&back->values[i].x, &r->values[i].x, sizeof(double)) == 0);
    }
    must(n < 1 || !crdi_study_decode_point(f, back, bytes, n - 1));
}

static void look(crd_context* ctx, crd_arena* arena, const crdi_study_file* f)
{
    crdi_points* d = NULL;
    const int64_t all = crdi_points_count(f);
    if (all > LARGE || f->count > LARGE) { return; }
    if (crdi_points_create(ctx, f, &d) < 0) {
        must(crd_error_text(ctx)[0]);
        return;
    }
    const size_t room = (size_t)f->factor_count + 1;
    crdi_study_run r = {.id = 1, .values = crdi_arena_new(arena, room, sizeof *r.values)};
    crdi_study_run back = {.values = crdi_arena_new(arena, room, sizeof *back.values)};
    for (int64_t k = 0; k < POINTS && k < all; k++) {
        uint64_t key = 0;
        (void)crdi_points_point(d, k * all / (all < POINTS ? all : POINTS), r.values, &key);
        r.seed = crdi_points_seed(f, key);
        for (int i = 0; i < f->factor_count; i++) {
            check_value(&f->factors[i], &r.values[i]);
        }
        travel(f, &r, &back);
    }
    crdi_points_destroy(d);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_arena arena;
    crdi_study_file f;
    crd_arena_init(&arena, ctx);
    if (crdi_study_file_read(ctx, (const char*)data, size, "fuzz.yaml", &arena, &f) < 0) {
        must(crd_error_text(ctx)[0]);
    } else {
        look(ctx, &arena, &f);
    }
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
    return 0;
}
