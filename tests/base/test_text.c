#include "check.h"

#include <stdio.h>

#include "base/map.c" // its hash is static
#include "shared/base_path.h"

static const char* next_word(void* user)
{
    const char*** p = user;
    return **p ? *(*p)++ : NULL;
}

static const char* nearest(const char* word, const char** words)
{
    return crdi_nearest(word, next_word, &words);
}

static void the_nearest_name_is_what_was_meant_or_nothing(void** state)
{
    const char* words[] = {"velocity", "position", "Force", "x1", "x2", NULL};
    check_text(nearest("velocty", words), "velocity");
    check_text(nearest("postiion", words), "position"); // a transposition is one edit
    check_text(nearest("force", words), "Force");       // case is less than an edit
    check_text(nearest("x3", words), "x1");
    check(nearest("temperature", words) == NULL);
    check(nearest("", words) == NULL);
    char longest[1000];
    memset(longest, 'v', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    check(nearest(longest, words) == NULL);
}

static void patterns_match_like_a_shells(void** state)
{
    static const struct {
        const char *pattern, *text;
        bool match;
    } rows[] = {
        {"*", "", true},
        {"*", "a.b", true},
        {"mass1.*", "mass1.v", true},
        {"mass1.*", "mass2.v", false},
        {"*.v", "mass1.v", true},
        {"*.v", "mass1.vx", false},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"[xy]1", "x1", true},
        {"[xy]1", "z1", false},
        {"[!x]1", "z1", true},
        {"[a-c]*", "bcd", true},
        {"x[1]", "x[1]", true}, // the index of an array
        {"x[1]", "x1", false},
        {"x[12]", "x1", false},
        {"x[1-2]", "x1", true},
        {"*[*]", "a.x[2,3]", true},
        {"x[?,1]", "x[2,1]", true},
        {"x[", "x[", true},
        {"", "", true},
        {"", "a", false},
        {"*a*b*c*", "xxaxxbxxc", true},
        {"*a*b*c*", "xxaxxcxxb", false},
        {"**", "abc", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (crdi_glob(rows[i].pattern, rows[i].text) != rows[i].match) {
            fail_msg("'%s' against '%s'", rows[i].pattern, rows[i].text);
        }
    }
}

static void map_finds_what_was_added_and_keeps_the_first(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_map m;
    crdi_map_init(&m, ctx);
    enum { N = 20000 };
    static char names[N][12];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "v%d", i * 7);
        bool fresh = false;
        check_ok(crdi_map_add(&m, names[i], i, &fresh));
        check(fresh);
    }
    bool fresh = true;
    check_ok(crdi_map_add(&m, "v7", 99, &fresh));
    check(!fresh);
    for (int i = 0; i < N; i++) {
        check_int(crdi_map_find(&m, names[i]), i);
    }
    check_int(crdi_map_find(&m, "v1"), -1);
    check_int(crdi_map_find(&m, ""), -1);
    crdi_map_clear(&m);
    check_int(crdi_map_find(&m, "v7"), -1);
    crd_context_destroy(ctx);
    check_int(a.live, 0);
}

static void maps_hash_with_keys_of_their_own(void** state)
{
    check_allocator a;
    crd_context* ctx = check_context(&a);
    crd_map one, two;
    crdi_map_init(&one, ctx);
    crdi_map_init(&two, ctx);
    check_ok(crdi_map_add(&one, "x", 1, NULL));
    check_ok(crdi_map_add(&two, "x", 2, NULL));
    check(one.key[0] != two.key[0] && one.key[1] != two.key[1]);
    const uint64_t before = one.key[0];
    check_ok(crdi_map_reserve(&one, 1000)); // growing keeps the key, and so the hashes
    check(one.key[0] == before);
    check_int(crdi_map_find(&one, "x"), 1);
    crdi_map_clear(&one);
    crdi_map_clear(&two);
    crd_context_destroy(ctx);
}

static void maps_hash_by_siphash_1_3(void** state)
{
    // Expected: hash() of CPython 3.11 over the same bytes, with PYTHONHASHSEED=0, whose key is 0.
    static const struct {
        const char* text;
        uint64_t hash;
    } rows[] = {
        {"x", 0xd141bba7fdc215a3U},
        {"mass1.v", 0x9cc888e275cd061bU},
        {"velocity", 0xb9fe5d314b12b4caU}, // a whole word: the last one has the length alone
        {"a name that is longer", 0x0d8d923530dfb678U},
    };
    const crd_map keyless = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_int(hash_of(&keyless, rows[i].text), (uint32_t)rows[i].hash);
    }
}

static void names_in_paths_have_a_folder_a_stem_and_an_ending(void** state)
{
    static const struct {
        const char *path, *stem;
        size_t folder;
    } rows[] = {{"a/motor.fmu", "motor", 2},
                {"motor.fmu", "motor", 0},
                {"/motor", "motor", 1},
                {"a/b/motor/", "motor", 10},
                {"a/.hidden", ".hidden", 2},
                {"a.b/c", "c", 4},
                {"a/x.tar.gz", "x.tar", 2},
                {"a/end.", "end", 2},
                {"", "", 0},
                {"/", "", 1},
                {"a//", "a", 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = 99;
        const char* stem = crdi_path_stem(rows[i].path, &length);
        check_int(length, strlen(rows[i].stem));
        check(strncmp(stem, rows[i].stem, length) == 0);
        check_int(crdi_folder_length(rows[i].path), rows[i].folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_name_is_what_was_meant_or_nothing),
        cmocka_unit_test(patterns_match_like_a_shells),
        cmocka_unit_test(map_finds_what_was_added_and_keeps_the_first),
        cmocka_unit_test(maps_hash_with_keys_of_their_own),
        cmocka_unit_test(maps_hash_by_siphash_1_3),
        cmocka_unit_test(names_in_paths_have_a_folder_a_stem_and_an_ending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
