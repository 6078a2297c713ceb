# A module is a folder in src/ and becomes the static library crd_<name>; libcardan holds them all.

# cardan_module(<name> [DEPENDS <modules below>] [LIBS <outside libraries>])
function(cardan_module name)
    cmake_parse_arguments(arg "" "" "DEPENDS;LIBS" ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c)
    list(FILTER sources EXCLUDE REGEX "/src/cli/main\\.c$|/src/fmi/export/|/src/unit/worker/program/|/src/study/plugin/|/on_board\\.c$")
    add_library(crd_${name} STATIC ${sources})
    target_include_directories(crd_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                               ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(crd_${name} PRIVATE CRD_VERSION="${PROJECT_VERSION}")
    target_compile_options(crd_${name} PRIVATE ${CARDAN_FORTIFY})
    list(TRANSFORM arg_DEPENDS PREPEND crd_)
    target_link_libraries(crd_${name} PUBLIC ${arg_DEPENDS} ${arg_LIBS})
endfunction()

# libcardan.so and libcardan.a out of the modules' objects
function(cardan_libraries)
    set(objects "")
    set(libs "")
    foreach(name ${ARGN})
        list(APPEND objects $<TARGET_OBJECTS:crd_${name}>)
        get_target_property(sources crd_${name} SOURCES)
        get_target_property(l crd_${name} LINK_LIBRARIES)
        list(FILTER l EXCLUDE REGEX "^crd_")
        list(APPEND libs ${l})
    endforeach()
    list(REMOVE_DUPLICATES libs)
    add_library(cardan SHARED ${objects})
    add_library(cardan_static STATIC ${objects})
    set_target_properties(cardan PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
    set_target_properties(cardan_static PROPERTIES OUTPUT_NAME cardan)
    # Only the interface leaves: what a header in include/cardan declares with CRD_API.
    set(map ${PROJECT_SOURCE_DIR}/cmake/cardan.map)
    target_link_options(cardan PRIVATE -Wl,--version-script=${map} -Wl,--exclude-libs,ALL)
    set_target_properties(cardan PROPERTIES LINK_DEPENDS ${map})
    foreach(t cardan cardan_static)
        set_target_properties(${t} PROPERTIES LINKER_LANGUAGE C)
        target_include_directories(${t} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
        target_link_libraries(${t} PRIVATE ${libs})
    endforeach()
endfunction()

# cardan_test(<name> SOURCES <files> MODULES <modules> [LABELS <labels>] [LIBS <outside libraries>])
# A cmocka program from tests/; named after what it tests. If no module of it starts threads or is called
# from several, nor the test itself (LIBS Threads::Threads), it is labelled `serial`: ThreadSanitizer
# would only slow it down.
function(cardan_test name)
    cmake_parse_arguments(arg "" "" "SOURCES;MODULES;LABELS;LIBS" ${ARGN})
    set(threaded ${arg_MODULES})
    list(FILTER threaded INCLUDE REGEX "^(learn|fmi|results|unit|master|serve|web|cli)$")
    list(TRANSFORM arg_MODULES PREPEND crd_)
    add_executable(${name} ${arg_SOURCES})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name} PRIVATE ${arg_MODULES} ${arg_LIBS} PkgConfig::CMOCKA)
    # Tests say of a struct what matters to them. What they test is optimised; they need not be, and
    # to optimise them is most of the time that building takes.
    target_compile_options(${name} PRIVATE -Wno-missing-field-initializers -O0)
    target_compile_definitions(${name} PRIVATE TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}/tests"
                               TEST_BUILD_DIR="${CMAKE_BINARY_DIR}")
    add_test(NAME ${name} COMMAND ${name})
    set(patience 300)
    if(NOT arg_LABELS)
        set(arg_LABELS unit)
    endif()
    if(CMAKE_CROSSCOMPILING AND name MATCHES "^test_(base|coupling|circuit|twin|dcp)_" AND NOT "long" IN_LIST arg_LABELS
       AND NOT name STREQUAL test_base_interrupt)
        list(APPEND arg_LABELS arm)
        set_property(GLOBAL APPEND PROPERTY CARDAN_ARM_TESTS ${name})
        target_compile_definitions(${name} PRIVATE TEST_EMULATED)
        set(patience 1500)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${patience})
    set_property(GLOBAL APPEND PROPERTY CARDAN_TEST_PROGRAMS ${name})
    if(NOT threaded AND NOT Threads::Threads IN_LIST arg_LIBS)
        cardan_serial_tests(${name})
    endif()
endfunction()

# The tests of this folder, or those named, have one thread although their modules know more.
macro(cardan_serial_tests)
    set(serial_tests ${ARGN})
    if(NOT serial_tests)
        get_property(serial_tests DIRECTORY PROPERTY TESTS)
    endif()
    set_property(TEST ${serial_tests} APPEND PROPERTY LABELS serial)
    set_property(GLOBAL APPEND PROPERTY CARDAN_SERIAL_TESTS ${serial_tests})
endmacro()
