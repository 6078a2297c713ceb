# Style and scripts of the report, and chart.js, the drawing of all pages, become arrays of bytes in one C source.
set(page ${PROJECT_SOURCE_DIR}/src/results/page)
set(assets crdi_page_css=${page}/report.css crdi_page_js=${page}/report.js crdi_chart_js=${page}/chart.js)
set(inputs ${assets})
list(TRANSFORM inputs REPLACE "^[^=]*=" "")
set(embedded ${CMAKE_BINARY_DIR}/report_assets.c)
add_custom_command(OUTPUT ${embedded}
                   COMMAND ${CMAKE_COMMAND} -D OUT=${embedded} -D "ASSETS=${assets}"
                           -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                   DEPENDS ${inputs} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
target_sources(crd_results PRIVATE ${embedded})
