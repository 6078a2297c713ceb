// What has to be compiled: buildDescription.xml, <SourceFiles>, or what lies in sources/.
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fmi/build/build.h"
#include "shared/archive.h"
#include "shared/base_system.h"
#include "shared/xml.h"

enum { MOST_SOURCES = 4096, MOST_SETS = 64, MOST_OPTIONS = 512, LARGEST_XML = 64 << 20 };

// ---- what may stand in it ----------------------------------------------------------------------

static crd_status recipe_fail(crd_context* ctx, const crdi_recipe* r, int line, const char* text,
                              const char* what)
{
    return crdi_fail(ctx, CRD_E_FORMAT, "%s:%d: '%s' %s", r->from, line, crdi_show(text).text,
                     what);
}

// A path below sources/, with '/' in the arena. No part may be "..", and none may look like an
// option.
static crd_status clean_path(crd_context* ctx, const crdi_recipe* r, int line, const char* text,
                             const char** out)
{
    char* path = text ? crdi_arena_text(r->arena, text, strlen(text)) : NULL;
    if (text && !path) { return CRD_E_MEMORY; }
    if (!path || !*path) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s:%d: a name is missing", r->from, line);
    }
    for (char* p = path; *p; p++) {
        if (*p == '\\') { *p = '/'; }
        if ((unsigned char)*p < ' ') { return recipe_fail(ctx, r, line, text, "is no path"); }
    }
    if (path[0] == '/' || path[0] == '-' || path[0] == '@' || (path[0] && path[1] == ':')) {
        return recipe_fail(ctx, r, line, text, "is no path below sources/");
    }
    for (const char* p = path; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2])) {
            return recipe_fail(ctx, r, line, text, "leaves the folder sources/ of the FMU");
        }
    }
    *out = path;
    return CRD_OK;
}

static bool is_name(const char* text)
{
    if (!text || !(isalpha((unsigned char)*text) || *text == '_')) { return false; }
    for (; *text; text++) {
        if (!isalnum((unsigned char)*text) && *text != '_') { return false; }
    }
    return true;
}

static bool ends_as(const char* file, const char* const* endings)
{
    const char* dot = strrchr(file, '.');
    for (; dot && *endings; endings++) {
        if (strcmp(dot, *endings) == 0) { return true; }
    }
    return false;
}

static bool is_cpp_file(const char* file)
{
    static const char* const endings[] = {".cpp", ".cc", ".cxx", ".C", NULL};
    return ends_as(file, endings);
}

static bool is_source(const char* file)
{
    static const char* const endings[] = {".c", NULL};
    return ends_as(file, endings) || is_cpp_file(file);
}

static crd_status add_source(crd_context* ctx, crdi_recipe* r, crdi_source s)
{
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->sources[i].file, s.file) == 0) { return CRD_OK; } // once is enough
    }
    if (r->count == MOST_SOURCES) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s: more than %d source files", r->from, MOST_SOURCES);
    }
    crdi_source* grown = crdi_grow(ctx, r->sources, &r->capacity, r->count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    r->sources = grown;
    r->sources[r->count++] = s;
    return CRD_OK;
}

void crdi_recipe_clear(crd_context* ctx, crdi_recipe* r)
{
    crd_free(ctx, r->sources);
    crd_free(ctx, r->libraries);
    r->sources = NULL;
    r->libraries = NULL;
}

// ---- FMI 3 -------------------------------------------------------------------------------------

// Options of one SourceFileSet while they are gathered.
typedef struct option_list {
    const char** items;
    size_t count;
} option_list;

static crd_status add_option(crd_context* ctx, const crdi_recipe* r, option_list* l,
                             const char* text)
{
    if (!text) { return CRD_E_MEMORY; }
    if (l->count == MOST_OPTIONS) {
        return crdi_fail(ctx, CRD_E_FORMAT, "%s: more than %d options of one set", r->from,
                         MOST_OPTIONS);
    }
    l->items[l->count++] = text;
    return CRD_OK;
}

// FMI 3.0.2, 2.5.1: "C99", "C++11". GNU's dialect of it, as sources take libc's functions for
// granted.
static crd_status add_language(crd_context* ctx, const crdi_recipe* r, const crdi_xml_element* set,
                               option_list* l, bool* cpp)
{
    const char* language = crdi_xml_get(set, "language");
    if (!language || !*language) { return CRD_OK; }
    const char* digits = language + (strncmp(language, "C++", 3) == 0 ? 3 : 1);
    *cpp = digits == language + 3;
    if (language[0] != 'C' || (*digits && strspn(digits, "0123456789") != strlen(digits)) ||
        strlen(digits) > 2) {
        return crdi_fail(ctx, CRD_E_UNSUPPORTED,
                         "%s:%d: sources in the language '%s', expected C "
                         "or C++",
                         r->from, set->line, crdi_show(language).text);
    }
    if (!*digits) { return CRD_OK; }
    return add_option(ctx, r, l,
                      crdi_arena_format(r->arena, "-std=gnu%s%s", *cpp ? "++" : "", digits));
}

// What tunes or defines is passed on. What names files, plugins or other programs is not.
static bool is_harmless(const char* option)
{
    static const char* const whole[] = {"-w", "-pthread", "-pedantic", "-g", "-ansi"};
    static const char* const begins[] = {"-D", "-U", "-O", "-W", "-m", "-f", "-std="};
    static const char* const not_those[] = {"-Wl,",     "-Wa,",      "-Wp,",   "-fplugin",
                                            "-fuse-ld", "-fprofile", "-fdump", "-fsanitize",
                                            "-fmodule", "-mllvm"};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        if (strcmp(option, whole[i]) == 0) { return true; }
    }
    for (size_t i = 0; i < sizeof not_those / sizeof *not_those; i++) {
        if (strncmp(option, not_those[i], strlen(not_those[i])) == 0) { return false; }
    }
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const size_t n = strlen(begins[i]); // -D alone would take the next word
        if (strncmp(option, begins[i], n) == 0 && option[n]) { return true; }
    }
    return false;
}

static crd_status add_compiler_options(crd_context* ctx, const crdi_recipe* r,
                                       const crdi_xml_element* set, option_list* l)
{
    const char* text = crdi_xml_get(set, "compilerOptions");
    const char* blanks = " \t\r\n";
    for (const char* p = text ? text + strspn(text, blanks) : ""; *p; p += strspn(p, blanks)) {
        const size_t n = strcspn(p, blanks);
        const char* option = crdi_arena_text(r->arena, p, n);
        if (!option) { return CRD_E_MEMORY; }
        p += n;
        if (is_harmless(option)) {
            const crd_status st = add_option(ctx, r, l, option);
            if (st < 0) { return st; }
        } else {
            crdi_log(ctx, CRD_LOG_WARNING, "%s:%d: the compiler option '%s' is left out", r->from,
                     set->line, crdi_show(option).text);
        }
    }
    return CRD_OK;
}

static crd_status add_definition(crd_context* ctx, const crdi_recipe* r, const crdi_xml_element* d,
                                 option_list* l)
{
    const char *name = crdi_xml_get(d, "name"), *value = crdi_xml_get(d, "value");
    if (!is_name(name)) {
        return recipe_fail(ctx, r, d->line, name ? name : "", "is no name that can be defined");
    }
    return add_option(
        ctx, r, l,
        crdi_arena_format(r->arena, "-D%s%s%s", name, value ? "=" : "", value ? value : ""));
}

static crd_status read_set(crd_context* ctx, crdi_recipe* r, const crdi_xml_element* set)
{
    crd_status st = CRD_OK;
    bool cpp = false;
    option_list l = {.items = crdi_arena_new(r->arena, MOST_OPTIONS + 1, sizeof *l.items)};
    if (!l.items) { return CRD_E_MEMORY; }
    CRD_TRY(add_language(ctx, r, set, &l, &cpp));
    CRD_TRY(add_compiler_options(ctx, r, set, &l));
    for (const crdi_xml_element* e = set->first; e; e = e->next) {
        const char* path = NULL;
        if (strcmp(e->name, "PreprocessorDefinition") == 0) {
            CRD_TRY(add_definition(ctx, r, e, &l));
        } else if (strcmp(e->name, "IncludeDirectory") == 0) {
            CRD_TRY(clean_path(ctx, r, e->line, crdi_xml_get(e, "name"), &path));
            CRD_TRY(add_option(ctx, r, &l, crdi_arena_format(r->arena, "-I%s", path)));
        } else if (strcmp(e->name, "SourceFile") == 0) {
            CRD_TRY(clean_path(ctx, r, e->line, crdi_xml_get(e, "name"), &path));
            CRD_TRY(add_source(
                ctx, r,
                (crdi_source){.file = path, .options = l.items, .cpp = cpp || is_cpp_file(path)}));
        }
    }
fail:
    return st;
}

static crd_status add_library(crd_context* ctx, crdi_recipe* r, const crdi_xml_element* e)
{
    const char* name = crdi_xml_get(e, "name");
    if (!name || !*name ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+.-") !=
            strlen(name)) {
        return recipe_fail(ctx, r, e->line, name ? name : "", "is no name of a library");
    }
    const char** grown = crdi_grow(ctx, (void*)r->libraries, &r->library_capacity,
                                   r->library_count + 1, sizeof *grown);
    if (!grown) { return CRD_E_MEMORY; }
    r->libraries = grown;
    const char* option = crdi_arena_format(r->arena, "-l%s", name);
    if (!option) { return CRD_E_MEMORY; }
    r->libraries[r->library_count++] = option;
    return CRD_OK;
}

static crd_status read_configuration(crd_context* ctx, crdi_recipe* r, const crdi_xml_element* c)
{
    crd_status st = CRD_OK;
    int sets = 0;
    for (const crdi_xml_element* e = c->first; e && st == CRD_OK; e = e->next) {
        if (strcmp(e->name, "SourceFileSet") == 0) {
            st = sets++ < MOST_SETS ? read_set(ctx, r, e)
                                    : crdi_fail(ctx, CRD_E_FORMAT,
                                                "%s:%d: more than %d sets of "
                                                "source files",
                                                r->from, e->line, MOST_SETS);
        } else if (strcmp(e->name, "Library") == 0) {
            st = add_library(ctx, r, e);
        }
    }
    if (st == CRD_OK && r->count == 0) {
        st = crdi_fail(ctx, CRD_E_FORMAT, "%s:%d: the configuration has no source file", r->from,
                       c->line);
    }
    return st;
}

// The one of this identifier and platform; the only one of this platform, whatever its identifier.
// `*other`: a platform that another one is for.
static const crdi_xml_element* choose_configuration(crd_context* ctx, const crdi_recipe* r,
                                                    const crdi_xml_element* root,
                                                    const char* identifier, const char* platform,
                                                    const char** other)
{
    int count = 0;
    const crdi_xml_element* only = NULL;
    for (const crdi_xml_element* c = crdi_xml_child(root, "", "BuildConfiguration"); c;
         c = crdi_xml_same(c)) {
        const char *of = crdi_xml_get(c, "modelIdentifier"), *on = crdi_xml_get(c, "platform");
        if (on && *on && strcmp(on, platform) != 0) {
            *other = on;
        } else if (of && strcmp(of, identifier) == 0) {
            return c;
        } else {
            only = c;
            count++;
        }
    }
    if (count != 1) { return NULL; }
    const char* of = crdi_xml_get(only, "modelIdentifier");
    crdi_log(ctx, CRD_LOG_WARNING, "%s:%d: the configuration is of '%s', expected '%s'", r->from,
             only->line, crdi_show(of ? of : "").text, crdi_show(identifier).text);
    return only;
}

crd_status crdi_recipe_read_build(crd_context* ctx, const char* xml, size_t length,
                                  const char* file, const char* identifier, const char* platform,
                                  crdi_recipe* r)
{
    crdi_xml* x = NULL;
    r->from = file;
    crd_status st = crdi_xml_parse(ctx, xml, length, file, &x);
    if (st < 0) { return st; }
    const char* other = "";
    const crdi_xml_element* c = choose_configuration(ctx, r, x->root, identifier, platform, &other);
    if (strcmp(x->root->name, "fmiBuildDescription") != 0) {
        st = crdi_fail(ctx, CRD_E_FORMAT, "%s:%d: <%s>, expected <fmiBuildDescription>", file,
                       x->root->line, crdi_show(x->root->name).text);
    } else if (!c) {
        st = crdi_fail(ctx, CRD_E_UNSUPPORTED, "%s: no BuildConfiguration of '%s' for %s%s%s", file,
                       crdi_show(identifier).text, platform, *other ? ", but one for " : "",
                       crdi_show(other).text);
    } else {
        st = read_configuration(ctx, r, c);
    }
    crdi_xml_destroy(x);
    return st;
}

// ---- of an FMU ---------------------------------------------------------------------------------

static const char* const none[] = {NULL}; // options

static bool is_file(const crd_fmu* f, const char* name)
{
    char path[PATH_MAX];
    struct stat s;
    return (size_t)snprintf(path, sizeof path, "%s/sources/%s", f->folder, name) < sizeof path &&
           stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

static int only_sources(const struct dirent* e)
{
    return is_source(e->d_name);
}

// Without a list: all.c, which includes the rest by convention, or all there is.
static crd_status take_folder(crd_context* ctx, const crd_fmu* f, bool model_exchange,
                              crdi_recipe* r)
{
    // What sources for both interfaces of FMI 1.0 ask for.
    static const char* const slave[] = {"-DFMI_COSIMULATION", NULL};
    const char* const* options =
        f->description.version < CRD_FMI_2 && !model_exchange ? slave : none;
    char path[PATH_MAX];
    r->from = "sources/";
    if (is_file(f, "all.c")) {
        return add_source(ctx, r, (crdi_source){.file = "all.c", .options = options});
    }
    if ((size_t)snprintf(path, sizeof path, "%s/sources", f->folder) >= sizeof path) {
        return CRD_OK;
    }
    crd_status st = CRD_OK;
    struct dirent** list = NULL;
    const int n = scandir(path, &list, only_sources, crdi_by_entry);
    for (int i = 0; i < n; i++) {
        const char* name = list[i]->d_name;
        if (st == CRD_OK && name[0] != '-' && is_file(f, name)) {
            const char* own = crdi_arena_text(r->arena, name, strlen(name));
            st = own ? add_source(
                           ctx, r,
                           (crdi_source){.file = own, .options = options, .cpp = is_cpp_file(own)})
                     : CRD_E_MEMORY;
        }
        free(list[i]);
    }
    free(list);
    return st;
}

static crd_status read_build(crd_context* ctx, const crd_fmu* f, const char* identifier,
                             const char* platform, crdi_recipe* r)
{
    const char* name = "sources/buildDescription.xml";
    const crdi_file_need need = {.what = "an XML file", .most = LARGEST_XML, .shown = name};
    char* path = crdi_format(ctx, "%s/%s", f->folder, name);
    crd_text text;
    crd_text_init(&text, ctx);
    crd_status st = path ? crdi_file_read(ctx, path, &need, &text) : CRD_E_MEMORY;
    if (st == CRD_OK) {
        st = crdi_recipe_read_build(ctx, text.data, text.length, name, identifier, platform, r);
    }
    crd_text_clear(&text);
    crd_free(ctx, path);
    return st;
}

// FMI 2: <SourceFiles>
static crd_status take_names(crd_context* ctx, const crdi_source_name* list, crdi_recipe* r)
{
    crd_status st = CRD_OK;
    r->from = "modelDescription.xml";
    for (; list && st == CRD_OK; list = list->next) {
        const char* path = NULL;
        st = clean_path(ctx, r, list->line, list->name, &path);
        if (st == CRD_OK && is_source(path)) { // some lists have headers, too
            st = add_source(ctx, r,
                            (crdi_source){.file = path, .options = none, .cpp = is_cpp_file(path)});
        }
    }
    return st;
}

crd_status crdi_recipe_find(crd_context* ctx, const crd_fmu* f, bool model_exchange,
                            const char* platform, crdi_recipe* r)
{
    const crd_fmu_description* d = &f->description;
    crd_status st =
        is_file(f, "buildDescription.xml")
            ? read_build(ctx, f,
                         model_exchange ? d->exchange.model_identifier : d->model_identifier,
                         platform, r)
            : take_names(ctx, f->source_names[model_exchange], r);
    if (st == CRD_OK && r->count == 0) { st = take_folder(ctx, f, model_exchange, r); }
    if (st < 0) { return crdi_fail_in(ctx, st, "%s", f->path); }
    for (size_t i = 0; i < r->count; i++) {
        if (!is_file(f, r->sources[i].file)) {
            return crdi_fail(ctx, CRD_E_FORMAT,
                             "%s: the source file 'sources/%s', which %s names, is not in the FMU",
                             f->path, crdi_show(r->sources[i].file).text, r->from);
        }
    }
    return r->count ? CRD_OK
                    : crdi_fail(ctx, CRD_E_UNSUPPORTED,
                                "%s: the FMU has no source files that could be compiled", f->path);
}
