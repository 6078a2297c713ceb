// What the rooms of building share: the recipe, the headers, the compiler, the store.
#pragma once
#include "fmi/fmu_internal.h"
#include "shared/fmi_build.h"

// One source file and how it is compiled.
typedef struct crdi_source {
    const char* file;           // below sources/
    const char* const* options; // -D, -I, -std; NULL-terminated, for all files of a set
    bool cpp;                   // C++
} crdi_source;

// What a binary is made of. Paths are below sources/ and do not leave it.
typedef struct crdi_recipe {
    crd_arena* arena;
    const char* from;     // what says so, for messages: "sources/buildDescription.xml"
    crdi_source* sources; // of the context
    size_t count, capacity;
    const char** libraries; // "-lhdf5"; of the context
    size_t library_count, library_capacity;
} crdi_recipe;

// buildDescription.xml of FMI 3: the first configuration of this identifier and platform.
crd_status crdi_recipe_read_build(crd_context* ctx, const char* xml, size_t length,
                                  const char* file, const char* identifier, const char* platform,
                                  crdi_recipe* r);
// Of an unpacked FMU, by whatever it has: a list, all.c, or everything in sources/.
crd_status crdi_recipe_find(crd_context* ctx, const crd_fmu* f, bool model_exchange,
                            const char* platform, crdi_recipe* r);
void crdi_recipe_clear(crd_context* ctx, crdi_recipe* r);

// The headers of the standards (fmi2Functions.h and so on), in our words, into a folder.
crd_status crdi_headers_write(crd_context* ctx, const char* folder);
// The i-th function of a version without its prefix, NULL behind the last.
const char* crdi_header_function(crd_fmi_version version, int i);

// A compiler and how it is called.
typedef struct crdi_compiler {
    const char* words[16]; // "ccache", "gcc"; the first is a path. NULL-terminated
    const char* real;      // where it really lies
} crdi_compiler;

typedef struct crdi_compile {
    const char* folder;   // of the FMU
    const char* scratch;  // writable: objects, headers and the result
    const char* binaries; // folder of the FMU with libraries that belong to it, or NULL
    const crdi_recipe* recipe;
    const crdi_platform* platform; // that it is for; NULL: this machine
    crdi_compiler c, cpp;          // cpp.real NULL: not needed
    const char* const* aliases;    // further options for linking; NULL-terminated
    const char* shown;             // the FMU, for messages
} crdi_compile;

// `platform` NULL: for this machine
crd_status crdi_compiler_find(crd_context* ctx, crd_arena* arena, bool cpp,
                              const crdi_platform* platform, crdi_compiler* out);
extern const char* const crdi_compile_flags[]; // NULL-terminated, those of all files
// Makes scratch/out.so; and its bytes.
crd_status crdi_compile_run(crd_context* ctx, const crdi_compile* c);
crd_status crdi_compile_result(crd_context* ctx, const crdi_compile* c, crd_text* out);

// The name under which the result is stored: SHA-256 of all that goes into it, 64 digits.
crd_status crdi_store_key(crd_context* ctx, const crdi_compile* c, char key[65]);
// The file of this key in the arena, or NULL: there is none.
const char* crdi_store_find(crd_arena* arena, const char* key);
// Into the store, and its name there. NULL: nothing can be stored, which is no failure.
const char* crdi_store_add(crd_context* ctx, crd_arena* arena, const char* key,
                           const crd_text* bytes);
