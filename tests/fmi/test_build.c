// What is to be compiled, out of buildDescription.xml; and who compiles it. Compiling itself is
// tested through the command.
#include "check.h"

#include "fmi/build/build.h"

static const char description[] =
    "<fmiBuildDescription fmiVersion='3.0'>"
    "<BuildConfiguration modelIdentifier='ball' platform='x86_64-windows'>"
    "<SourceFileSet><SourceFile name='win.c'/></SourceFileSet></BuildConfiguration>"
    "<BuildConfiguration modelIdentifier='other'>"
    "<SourceFileSet><SourceFile name='other.c'/></SourceFileSet></BuildConfiguration>"
    "<BuildConfiguration modelIdentifier='ball'>"
    "<SourceFileSet language='C99' compilerOptions=' -O1  -Wl,-x '>"
    "<SourceFile name='ball.c'/><SourceFile name='sub\\more.c'/><SourceFile name='ball.c'/>"
    "<PreprocessorDefinition name='N' value='2 3'/><PreprocessorDefinition name='M'/>"
    "<IncludeDirectory name='include'/></SourceFileSet>"
    "<SourceFileSet language='C++17'><SourceFile name='x.c'/></SourceFileSet>"
    "<Library name='hdf5' external='true'/>"
    "</BuildConfiguration></fmiBuildDescription>";

static crd_status read_text(crd_context* ctx, crd_arena* arena, const char* text, crdi_recipe* r)
{
    crd_arena_init(arena, ctx);
    *r = (crdi_recipe){.arena = arena};
    return crdi_recipe_read_build(ctx, text, strlen(text), "b.xml", "ball", "x86_64-linux", r);
}

static void clear(crd_context* ctx, crd_arena* arena, crdi_recipe* r)
{
    crdi_recipe_clear(ctx, r);
    crd_arena_clear(arena);
}

static void the_configuration_of_this_identifier_and_platform_is_taken(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_arena arena;
    crdi_recipe r;
    check_ok(read_text(ctx, &arena, description, &r));
    check_int(r.count, 3);
    check_text(r.sources[0].file, "ball.c");
    check_text(r.sources[1].file, "sub/more.c");
    check_text(r.sources[2].file, "x.c");
    check(!r.sources[0].cpp && r.sources[2].cpp);
    static const char* const wanted[] = {"-std=gnu99", "-O1", "-DN=2 3", "-DM", "-Iinclude"};
    for (size_t i = 0; i < 5; i++) {
        check_text(r.sources[0].options[i], wanted[i]);
    }
    check(r.sources[0].options[5] == NULL);
    check_text(r.sources[2].options[0], "-std=gnu++17");
    check_int(r.library_count, 1);
    check_text(r.libraries[0], "-lhdf5");
    clear(ctx, &arena, &r);
    crd_context_destroy(ctx);
}

static void every_allocation_may_fail(void** state)
{
    for (int64_t n = 0;; n++) {
        check_allocator allocator;
        crd_context* ctx = check_context(&allocator);
        allocator.fail_at = allocator.allocations + n;
        crd_arena arena;
        crdi_recipe r;
        const crd_status st = read_text(ctx, &arena, description, &r);
        clear(ctx, &arena, &r);
        allocator.fail_at = -1;
        crd_context_destroy(ctx);
        check_int(allocator.live, 0);
        if (st == CRD_OK) {
            check(n > 3);
            break;
        }
        check_status(st, CRD_E_MEMORY);
    }
}

static void a_compiler_with_options_is_split_into_words(void** state)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_arena arena;
    crd_arena_init(&arena, ctx);
    crdi_compiler c;
    setenv("CC", "  sh  -c  x ", 1); // any program will do
    check_ok(crdi_compiler_find(ctx, &arena, false, NULL, &c));
    check(c.words[0][0] == '/' && c.real[0] == '/');
    check_text(c.words[1], "-c");
    check_text(c.words[2], "x");
    check(c.words[3] == NULL);
    setenv("CC", "/no/such/cc -O", 1);
    check_status(crdi_compiler_find(ctx, &arena, false, NULL, &c), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(ctx), "/no/such/cc");
    unsetenv("CC");
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_configuration_of_this_identifier_and_platform_is_taken),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_compiler_with_options_is_split_into_words),
    };
    return cmocka_run_group_tests_name("build", tests, NULL, NULL);
}
