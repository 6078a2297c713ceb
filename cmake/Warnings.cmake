# Flags for everything that is compiled and linked here.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                    -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef -Wvla
                    -Wno-gnu-zero-variadic-macro-arguments)
add_compile_definitions(_GNU_SOURCE)
# Equal input gives equal bits: no fused multiply-add where the source has none.
add_compile_options(-ffp-contract=off -fno-semantic-interposition)
if(CARDAN_WERROR)
    add_compile_options(-Werror)
endif()
if(CARDAN_SANITIZE)
    string(REPLACE ";" "," crd_sanitizers "${CARDAN_SANITIZE}")
    add_compile_options(-fsanitize=${crd_sanitizers} -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${crd_sanitizers})
    if(CARDAN_SANITIZE MATCHES undefined)
        add_compile_options(-fno-sanitize-recover=undefined)
        # All widths of the chain kernels unrolled in one function each: minutes with this one, seconds without
        set_source_files_properties(src/circuit/chain_base.c src/circuit/chain_avx2.c src/circuit/chain_avx512.c
                                    PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
    endif()
endif()
# Hardening: addresses that cannot be foretold, tables of the linker that cannot be written, no code on the stack, a
# guard word in frames with arrays. No RUNPATH: CMake pads the one of the build tree with an empty element, which is
# the current folder, and whoever can put a library there has his code run. The test `hardening` reads the files.
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
set(CMAKE_SKIP_BUILD_RPATH ON)
add_compile_options(-fstack-protector-strong)
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
if(NOT CARDAN_SANITIZE) # the sanitizers look closer, and need the plain functions for it
    set(CARDAN_FORTIFY -U_FORTIFY_SOURCE $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>) # where optimised: not in tests
endif()
if(CARDAN_FUZZ) # all modules tell libFuzzer where they have been
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
endif()
