# make install: the command, the library with headers, pkg-config and CMake files, man pages,
# completions, documentation, examples and their FMUs.
include(CMakePackageConfigHelpers)

install(TARGETS cardan_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS cardan cardan_static EXPORT cardan-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/cardan DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# pkg-config: the prefix is found from the file's own place, so that the tree can be moved. Programs
# that link libcardan.so need none of the libraries behind it; --static names them.
list(JOIN MATIO_LDFLAGS " " matio_libs) # with the folder of HDF5
set(CARDAN_PRIVATE_LIBS "-lexpat -lzip -lyaml -llapacke -lz -ldeflate ${matio_libs} -lsodium -lsqlite3 -lnlopt \
-lsundials_cvode -lsundials_sunlinsolklu -lklu -lm -ldl -lpthread")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
    file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
    string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${up}")
endif()
set(pc_libdir "\${prefix}")
set(pc_includedir "\${prefix}")
cmake_path(APPEND pc_libdir ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(cmake/cardan.pc.in cardan.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/cardan.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# CMake: the libraries, and cardan_add_fmu with the sources that it compiles into FMUs.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cardan)
install(EXPORT cardan-targets NAMESPACE cardan:: DESTINATION ${package_dir})
set(share_dir ${CMAKE_INSTALL_DATADIR}/cardan)
install(FILES cmake/CardanFmu.cmake DESTINATION ${share_dir})
install(DIRECTORY src/fmi/export DESTINATION ${share_dir} FILES_MATCHING PATTERN "*.[ch]")
configure_package_config_file(cmake/cardan-config.cmake.in cardan-config.cmake
                              INSTALL_DESTINATION ${package_dir} PATH_VARS share_dir)
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
cardan_generate(cardan.bash completion bash)
cardan_generate(_cardan completion zsh)
cardan_generate(cardan.fish completion fish)
add_custom_command(OUTPUT ${generated}/man1/cardan.1
                   COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}/man1
                   COMMAND cardan_command man --directory ${generated}/man1
                   DEPENDS cardan_command VERBATIM)
add_custom_target(cardan_generated ALL DEPENDS ${generated}/man1/cardan.1 ${generated}/cardan.bash
                  ${generated}/_cardan ${generated}/cardan.fish)
install(DIRECTORY ${generated}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} FILES_MATCHING PATTERN "*.1")
install(FILES ${generated}/cardan.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${generated}/cardan.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME cardan)
install(FILES ${generated}/_cardan DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
# Examples lie beside their FMUs; the build tree has links to both, so that the command finds them there, too.
set(example_fmus ${CMAKE_BINARY_DIR}/fmus)
if(CARDAN_SHARED_FMUS)
    set(example_fmus ${CARDAN_SHARED_FMUS})
endif()
file(MAKE_DIRECTORY ${generated}/cardan)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/examples ${generated}/cardan/examples SYMBOLIC)
file(CREATE_LINK ${example_fmus} ${generated}/cardan/fmus SYMBOLIC)
install(DIRECTORY examples DESTINATION ${share_dir}
        PATTERN models EXCLUDE PATTERN CMakeLists.txt EXCLUDE PATTERN __pycache__ EXCLUDE)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/cardan)
install(FILES docs/schema/cardan.schema.json tools/dcp.lua DESTINATION ${share_dir}) # dcp.lua: for Wireshark
install(DIRECTORY ${CMAKE_BINARY_DIR}/fmus/fmi2 ${CMAKE_BINARY_DIR}/fmus/fmi3
        DESTINATION ${share_dir}/fmus FILES_MATCHING PATTERN "*.fmu")
install(FILES ${CMAKE_BINARY_DIR}/fmus/cardan-own-fmus DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/cardan/fmus)
