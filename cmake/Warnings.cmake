# Flags for everything that is compiled here.
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
    endif()
endif()
if(CARDAN_FUZZ) # all modules tell libFuzzer where they have been
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
endif()
