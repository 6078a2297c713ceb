# cardan-guard, which watches runs with test benches from outside. It has what speaks DCP and nothing else: it is
# locked into memory, and what is not in it cannot fail. The worker's way of linking.
file(GLOB guard_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/guard/*.c)
add_executable(cardan_guard ${guard_sources})
set_target_properties(cardan_guard PROPERTIES OUTPUT_NAME cardan-guard ENABLE_EXPORTS OFF
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_include_directories(cardan_guard PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(cardan_guard PRIVATE ${CARDAN_FORTIFY})
target_link_libraries(cardan_guard PRIVATE -Wl,--gc-sections -Wl,--as-needed crd_dcp crd_results crd_base)
add_dependencies(cardan_command cardan_guard)
add_dependencies(cardan cardan_guard)
install(TARGETS cardan_guard RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/cardan)
