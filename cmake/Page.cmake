# The files of the live page become a table of bytes in one C source of crd_web: what lies in
# src/web/page is served under its own name, index.html as "/". chart.js is in crd_results.
file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/web/page/*)
set(assets "")
foreach(file ${files})
    cmake_path(GET file FILENAME name)
    string(MAKE_C_IDENTIFIER ${name} identifier)
    list(APPEND assets page_${identifier}=${file})
endforeach()
set(embedded ${CMAKE_BINARY_DIR}/live_assets.c)
add_custom_command(OUTPUT ${embedded}
                   COMMAND ${CMAKE_COMMAND} -D OUT=${embedded} -D "ASSETS=${assets}" -D HEADER=web/page.h
                           -D TABLE=crdi_page_files -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                   DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
target_sources(crd_web PRIVATE ${embedded})
