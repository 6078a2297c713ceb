# The files of the live page become arrays of bytes in one C source of crd_web; uPlot is in crd_results.
set(page ${PROJECT_SOURCE_DIR}/src/web/page)
set(assets crdi_live_html=${page}/index.html crdi_live_css=${page}/live.css crdi_live_js=${page}/live.js
    crdi_live_benches=${page}/benches.js crdi_live_icon=${page}/icon.svg)
set(inputs ${assets})
list(TRANSFORM inputs REPLACE "^[^=]*=" "")
set(embedded ${CMAKE_BINARY_DIR}/live_assets.c)
add_custom_command(OUTPUT ${embedded}
                   COMMAND ${CMAKE_COMMAND} -D OUT=${embedded} -D "ASSETS=${assets}" -D HEADER=web/page.h
                           -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                   DEPENDS ${inputs} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
target_sources(crd_web PRIVATE ${embedded})
