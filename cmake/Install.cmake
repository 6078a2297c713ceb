# make install: the command, the library with headers, pkg-config and CMake files, man page,
# completions, example FMUs.
include(CMakePackageConfigHelpers)

install(TARGETS cardan_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS cardan cardan_static EXPORT cardan-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/cardan DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# What a static link needs besides libcardan.a
set(CARDAN_PRIVATE_PACKAGES "expat libzip yaml-0.1 lapacke")
set(CARDAN_PRIVATE_LIBS "-lm -ldl -lpthread")
configure_file(cmake/cardan.pc.in cardan.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cardan.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cardan)
install(EXPORT cardan-targets NAMESPACE cardan:: DESTINATION ${package_dir})
configure_package_config_file(cmake/cardan-config.cmake.in cardan-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(cardan-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/cardan-config.cmake ${CMAKE_BINARY_DIR}/cardan-config-version.cmake
        DESTINATION ${package_dir})

# The command writes its own man page and completions, from the tables that parse its arguments.
set(generated ${CMAKE_BINARY_DIR}/share)
file(MAKE_DIRECTORY ${generated})
function(cardan_generate file)
    add_custom_command(OUTPUT ${generated}/${file}
                       COMMAND cardan_command ${ARGN} > ${generated}/${file}.part
                       COMMAND ${CMAKE_COMMAND} -E rename ${generated}/${file}.part ${generated}/${file}
                       DEPENDS cardan_command VERBATIM)
endfunction()
cardan_generate(cardan.1 man)
cardan_generate(cardan.bash completion bash)
cardan_generate(_cardan completion zsh)
add_custom_target(cardan_generated ALL DEPENDS ${generated}/cardan.1 ${generated}/cardan.bash
                  ${generated}/_cardan)
install(FILES ${generated}/cardan.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${generated}/cardan.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME cardan)
install(FILES ${generated}/_cardan DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES docs/schema/cardan.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/cardan)
install(DIRECTORY ${CMAKE_BINARY_DIR}/fmus DESTINATION ${CMAKE_INSTALL_DATADIR}/cardan
        FILES_MATCHING PATTERN "*.fmu")
