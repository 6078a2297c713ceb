# uPlot (MIT, https://github.com/leeoniya/uPlot) draws the plots of reports. It is fetched once from
# the npm registry, checked against its SHA-256, and embedded into the library together with the
# report's own style and script.
#
# Without a network: unpack the archive somewhere and configure with CARDAN_UPLOT=folder (in the
# environment or with -D), where dist/uPlot.iife.min.js, dist/uPlot.min.css and LICENSE are found.
set(uplot_version 1.6.32)
set(uplot_url https://registry.npmjs.org/uplot/-/uplot-${uplot_version}.tgz)
set(uplot_sha256 4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d)
set(uplot_files dist/uPlot.iife.min.js dist/uPlot.min.css LICENSE)
set(CARDAN_UPLOT "" CACHE PATH "folder of an unpacked uPlot ${uplot_version}; empty: fetch it")
set(uplot "${CARDAN_UPLOT}")
if(NOT uplot)
    set(uplot "$ENV{CARDAN_UPLOT}")
endif()

function(cardan_fetch_uplot folder)
    message(STATUS "Fetching ${uplot_url}")
    string(RANDOM LENGTH 8 token) # another configuration may do the same at this moment
    set(work ${folder}.${token})
    foreach(again 1 2 3)
        file(DOWNLOAD ${uplot_url} ${work}/uplot.tgz STATUS status INACTIVITY_TIMEOUT 30)
        list(GET status 0 code)
        if(code EQUAL 0)
            break()
        endif()
    endforeach()
    list(GET status 1 reason)
    if(NOT code EQUAL 0)
        file(REMOVE_RECURSE ${work})
        message(FATAL_ERROR "cannot fetch ${uplot_url}: ${reason}.\n"
                "The reports of Cardan need uPlot. Without a network, unpack that archive somewhere "
                "and set CARDAN_UPLOT to the folder that has dist/ and LICENSE in it.")
    endif()
    file(SHA256 ${work}/uplot.tgz sum)
    if(NOT sum STREQUAL uplot_sha256)
        file(REMOVE_RECURSE ${work})
        message(FATAL_ERROR "${uplot_url} has the SHA-256 ${sum}, expected ${uplot_sha256}")
    endif()
    file(ARCHIVE_EXTRACT INPUT ${work}/uplot.tgz DESTINATION ${work})
    if(NOT EXISTS ${folder})
        file(RENAME ${work}/package ${folder} RESULT ignored) # whoever is first
    endif()
    file(REMOVE_RECURSE ${work})
endfunction()

if(uplot)
    if(IS_DIRECTORY ${uplot}/package) # as the archive has it
        set(uplot ${uplot}/package)
    endif()
else()
    # All presets share build/; a build elsewhere has its own unless that is there.
    set(uplot ${PROJECT_SOURCE_DIR}/build/uplot-${uplot_version})
    string(FIND ${CMAKE_BINARY_DIR}/ ${PROJECT_SOURCE_DIR}/build/ inside)
    if(NOT inside EQUAL 0 AND NOT EXISTS ${uplot})
        set(uplot ${CMAKE_BINARY_DIR}/uplot-${uplot_version})
    endif()
    if(NOT EXISTS ${uplot})
        cardan_fetch_uplot(${uplot})
    endif()
endif()
foreach(file ${uplot_files})
    if(NOT EXISTS ${uplot}/${file})
        message(FATAL_ERROR "${uplot}/${file} does not exist; expected an unpacked uPlot "
                "${uplot_version} in ${uplot}")
    endif()
endforeach()

# The files become arrays of bytes in one C source.
set(page ${PROJECT_SOURCE_DIR}/src/results/page)
set(assets crdi_page_css=${page}/report.css crdi_page_js=${page}/report.js crdi_chart_js=${page}/chart.js
    crdi_uplot_js=${uplot}/dist/uPlot.iife.min.js crdi_uplot_css=${uplot}/dist/uPlot.min.css
    crdi_uplot_license=${uplot}/LICENSE)
set(inputs ${assets})
list(TRANSFORM inputs REPLACE "^[^=]*=" "")
set(embedded ${CMAKE_BINARY_DIR}/report_assets.c)
add_custom_command(OUTPUT ${embedded}
                   COMMAND ${CMAKE_COMMAND} -D OUT=${embedded} -D "ASSETS=${assets}"
                           -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                   DEPENDS ${inputs} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
target_sources(crd_results PRIVATE ${embedded})
