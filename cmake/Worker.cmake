# cardan-worker, in which FMUs run that are isolated. It starts often, so it has only what FMUs need, and
# nothing in it can be bound by an FMU: our libraries are linked statically and no symbol leaves it.
file(GLOB worker_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/unit/worker/program/*.c)
add_executable(cardan_worker ${worker_sources})
set_target_properties(cardan_worker PROPERTIES OUTPUT_NAME cardan-worker ENABLE_EXPORTS OFF
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_include_directories(cardan_worker PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_include_directories(cardan_worker SYSTEM PRIVATE ${KLU_INCLUDE})
set(worker_modules unit fmi sandbox archive base)
foreach(name ${worker_modules})
    list(APPEND worker_archives $<TARGET_FILE:crd_${name}>)
endforeach()
list(TRANSFORM worker_modules PREPEND crd_)
add_dependencies(cardan_worker ${worker_modules})
foreach(name sundials_cvode sundials_sunlinsolklu klu btf amd colamd suitesparseconfig expat)
    find_library(WORKER_LIB_${name} NAMES lib${name}.a ${name} REQUIRED)
    list(APPEND worker_archives ${WORKER_LIB_${name}})
endforeach()
target_link_libraries(cardan_worker PRIVATE -Wl,--start-group ${worker_archives} -Wl,--end-group
                      -Wl,--as-needed Threads::Threads m ${CMAKE_DL_LIBS})
set_target_properties(cardan_worker PROPERTIES LINK_DEPENDS "${worker_archives}")
add_dependencies(cardan_command cardan_worker)
add_dependencies(cardan cardan_worker)
install(TARGETS cardan_worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/cardan)
