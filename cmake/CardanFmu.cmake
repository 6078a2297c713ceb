# One C model becomes two FMUs: fmus/fmi2/<name>.fmu and fmus/fmi3/<name>.fmu in the build folder.
#
# cardan_add_fmu(<name> SOURCES model.c [more.c] [HEADERS files] [RESOURCES dir] [INTERFACES me|cs|both])
#
# The sources define `const crd_model crd_model_<name>` (cardan/model.h), and other models too if they
# like; they are linked with the FMI functions of the export sources. Without INTERFACES they offer
# Co-Simulation, and Model Exchange as well if the model gives derivatives. modelDescription.xml comes from the
# same table. The archive holds all that was compiled, so that it builds from its own sources/ folder.
# The shared objects are plain: no sanitizers, optimised, exporting FMI functions alone.
#
# Also for projects outside of this tree, through find_package(cardan).

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(CARDAN_FMI2_PLATFORM aarch64-linux)
    set(CARDAN_FMI3_PLATFORM aarch64-linux)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^arm")
    set(CARDAN_FMI2_PLATFORM aarch32-linux)
    set(CARDAN_FMI3_PLATFORM aarch32-linux)
else()
    set(CARDAN_FMI2_PLATFORM linux64)
    set(CARDAN_FMI3_PLATFORM x86_64-linux)
endif()

# Where this file lies: in the source tree, or installed with the export sources beside it.
macro(cardan_fmu_places)
    set(here ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
    if(EXISTS ${here}/../src/fmi/export/fmu.h)
        get_filename_component(tree ${here}/.. ABSOLUTE)
        set(export ${tree}/src/fmi/export)
        set(headers ${tree}/include)
        set(quantities ${tree}/src/base/quantity.c ${tree}/src/base/number.c) # of the library
    else()
        set(export ${here}/export)
        set(quantities "")
        get_target_property(headers cardan::cardan INTERFACE_INCLUDE_DIRECTORIES)
    endif()
endmacro()

# Objects for FMUs: position independent, optimised, without sanitizers.
function(cardan_fmu_objects target)
    if(TARGET ${target})
        return()
    endif()
    cardan_fmu_places()
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${ARGN})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
                          C_VISIBILITY_PRESET hidden C_STANDARD 17 C_EXTENSIONS ON)
    target_include_directories(${target} PRIVATE ${headers})
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE CRD_VERSION="${cardan_VERSION}")
    target_compile_options(${target} PRIVATE -O2 -fno-sanitize=all -ffp-contract=off -fno-math-errno
                           -ffunction-sections -fdata-sections)
endfunction()

function(cardan_add_fmu name)
    cmake_parse_arguments(arg "" "RESOURCES;INTERFACES" "SOURCES;HEADERS" ${ARGN})
    if(CARDAN_SHARED_FMUS)
        add_custom_target(fmu_${name}) # another build makes it
        return()
    endif()
    set(interfaces FMU_AUTO)
    if(arg_INTERFACES STREQUAL cs)
        set(interfaces FMU_COSIMULATION)
    elseif(arg_INTERFACES STREQUAL me)
        set(interfaces FMU_EXCHANGE)
    elseif(arg_INTERFACES STREQUAL both)
        set(interfaces FMU_BOTH)
    elseif(DEFINED arg_INTERFACES)
        message(FATAL_ERROR "cardan_add_fmu(${name}): INTERFACES ${arg_INTERFACES}, expected me, cs or both")
    endif()
    cardan_fmu_places()
    set(model_header ${headers}/cardan/model.h)
    set(place ${CMAKE_BINARY_DIR}/fmus/stage/${name})
    set(code "")  # objects of the model
    set(files "") # what is copied
    set(units "") # what is compiled, as named in the archive
    foreach(file ${arg_SOURCES})
        get_filename_component(path ${file} ABSOLUTE)
        get_filename_component(base ${file} NAME)
        string(MD5 hash ${path})
        string(SUBSTRING ${hash} 0 8 hash)
        cardan_fmu_objects(fmu_code_${hash} ${path})
        list(APPEND code $<TARGET_OBJECTS:fmu_code_${hash}>)
        list(APPEND files ${path})
        list(APPEND units ${base})
    endforeach()
    foreach(file ${arg_HEADERS})
        get_filename_component(path ${file} ABSOLUTE)
        list(APPEND files ${path})
    endforeach()
    set(resources "")
    if(arg_RESOURCES)
        get_filename_component(arg_RESOURCES ${arg_RESOURCES} ABSOLUTE)
        file(GLOB_RECURSE resources CONFIGURE_DEPENDS ${arg_RESOURCES}/*)
    endif()

    # The one file that knows which model it is
    file(CONFIGURE OUTPUT ${place}/fmu_${name}.c CONTENT
         "#include \"fmu_model.h\"\n\nextern FMU_HIDDEN const crd_model crd_model_${name};\nconst crd_model* const fmu_model = &crd_model_${name};\nconst int fmu_interfaces = ${interfaces};\n")
    cardan_fmu_objects(fmu_main_${name} ${place}/fmu_${name}.c)
    target_include_directories(fmu_main_${name} PRIVATE ${export})
    list(APPEND code $<TARGET_OBJECTS:fmu_main_${name}>)

    # The program that writes the descriptions
    cardan_fmu_objects(fmu_describe ${export}/describe.c ${quantities})
    target_include_directories(fmu_describe PRIVATE ${export}/../..)
    add_executable(describe_${name} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:fmu_describe> ${code})
    set_target_properties(describe_${name} PROPERTIES LINKER_LANGUAGE C RUNTIME_OUTPUT_DIRECTORY ${place})
    target_link_options(describe_${name} PRIVATE -fno-sanitize=all)
    target_link_libraries(describe_${name} PRIVATE m)
    if(NOT quantities)
        target_link_libraries(describe_${name} PRIVATE cardan::cardan)
    endif()

    set(fmus "")
    foreach(version 2 3)
        set(stage ${place}/fmi${version})
        set(library fmi${version}_${name})
        cardan_fmu_objects(fmu_runtime_${version} ${export}/fmi${version}.c)
        add_library(${library} MODULE EXCLUDE_FROM_ALL $<TARGET_OBJECTS:fmu_runtime_${version}> ${code})
        target_link_options(${library} PRIVATE -fno-sanitize=all -Wl,--gc-sections -Wl,--no-undefined
                            $<$<NOT:$<CONFIG:Debug>>:-Wl,--strip-debug>)
        target_link_libraries(${library} PRIVATE m)
        set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C PREFIX "" OUTPUT_NAME ${name}
            LIBRARY_OUTPUT_DIRECTORY ${stage}/binaries/${CARDAN_FMI${version}_PLATFORM})

        set(copied ${place}/fmu_${name}.c ${export}/fmi${version}.c ${export}/fmi${version}_abi.h
            ${export}/fmi_both.h ${export}/fmu.h ${export}/fmu_model.h ${files})
        set(fmu ${CMAKE_BINARY_DIR}/fmus/fmi${version}/${name}.fmu)
        set(content modelDescription.xml binaries sources)
        set(copy_resources "")
        if(arg_RESOURCES)
            list(APPEND content resources)
            set(copy_resources COMMAND ${CMAKE_COMMAND} -E copy_directory ${arg_RESOURCES} ${stage}/resources)
        endif()
        add_custom_command(OUTPUT ${fmu}
            COMMAND ${CMAKE_COMMAND} -E make_directory ${stage}/sources/cardan ${CMAKE_BINARY_DIR}/fmus/fmi${version}
            COMMAND ${CMAKE_COMMAND} -E copy ${copied} ${stage}/sources
            COMMAND ${CMAKE_COMMAND} -E copy ${model_header} ${stage}/sources/cardan
            ${copy_resources}
            COMMAND describe_${name} ${version} ${stage} fmu_${name}.c fmi${version}.c ${units}
            COMMAND ${CMAKE_COMMAND} -E chdir ${stage} ${CMAKE_COMMAND} -E tar c ${fmu} --format=zip ${content}
            DEPENDS ${library} describe_${name} ${copied} ${resources} ${model_header}
            COMMENT "FMI ${version}.0: ${name}.fmu" VERBATIM)
        list(APPEND fmus ${fmu})
    endforeach()
    add_custom_target(fmu_${name} ALL DEPENDS ${fmus})
    set_property(GLOBAL APPEND PROPERTY CARDAN_FMU_TARGETS fmu_${name})
endfunction()
