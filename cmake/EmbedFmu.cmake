# FMUs that the command writes without a compiler: their binaries are the same for all, as they read
# what they are from their resources. They are built here, from sources that fit into one folder, and
# the command carries both versions as one archive.
#
# cardan_embed_fmu(<name> HEADER <of the model> MODEL <prefix of its functions> FILES <files of the tree>
#                  [LIBS <static archives>] [INCLUDES <folders>] [NOTICES <name in documentation/licenses>=<file> ...])
# makes crdi_<name>_template. What is not in FILES or LIBS does not link. The functions are <prefix>_load
# and <prefix>_destroy.
function(cardan_embed_fmu fmu)
    cmake_parse_arguments(arg "" "HEADER;MODEL" "FILES;LIBS;INCLUDES;NOTICES" ${ARGN})
    set(tree ${PROJECT_SOURCE_DIR})
    if(CARDAN_SHARED_FMUS) # another build makes it: sanitizers do not reach into these binaries anyhow
        set(embedded ${CARDAN_SHARED_FMUS}/templates/${fmu}.c)
        set_source_files_properties(${embedded} PROPERTIES GENERATED ON)
        target_sources(crd_cli PRIVATE ${embedded})
        return()
    endif()
    set(place ${CMAKE_BINARY_DIR}/${fmu}_fmu)
    foreach(name fmi2.c fmi2_abi.h fmi3.c fmi3_abi.h fmi_both.h fmu.h fmu_model.h)
        list(APPEND arg_FILES ${tree}/src/fmi/export/${name})
    endforeach()

    set(flat fmu_settings.h) # names in sources/
    set(flat_files "")       # name=path
    set(code "")             # what both versions compile
    foreach(file ${arg_FILES})
        file(RELATIVE_PATH name ${tree} ${file})
        string(REGEX REPLACE "^(src/fmi/export|src|include)/" "" name ${name})
        string(REPLACE "/" "_" name ${name})
        list(APPEND flat ${name})
        list(APPEND flat_files ${name}=${file})
        if(name MATCHES "\\.c$" AND NOT name MATCHES "^fmi[23]\\.c$")
            list(APPEND code ${place}/sources/${name})
        endif()
    endforeach()
    set(flat_paths ${flat})
    list(TRANSFORM flat_paths PREPEND ${place}/sources/)
    add_custom_command(OUTPUT ${flat_paths}
        COMMAND ${CMAKE_COMMAND} -D OUT=${place}/sources -D VERSION=${PROJECT_VERSION}
                -D "FILES=${flat_files}" -P ${tree}/cmake/flatten.cmake
        DEPENDS ${arg_FILES} ${tree}/cmake/flatten.cmake VERBATIM)

    # The file that says which model it is
    file(CONFIGURE OUTPUT ${place}/sources/fmu_${fmu}.c CONTENT
"#include \"fmu_settings.h\"
#include \"${arg_HEADER}\"
#include \"fmu_model.h\"

const int fmu_interfaces = FMU_COSIMULATION;

const crd_model* fmu_model_open(const char* resources, char* message, size_t room)
{
    return ${arg_MODEL}_load(resources, message, room);
}

void fmu_model_close(const crd_model* model)
{
    ${arg_MODEL}_destroy(model);
}
")
    list(APPEND code ${place}/sources/fmu_${fmu}.c)
    cardan_fmu_objects(${fmu}_fmu_code ${code})
    target_include_directories(${fmu}_fmu_code SYSTEM PRIVATE ${arg_INCLUDES})
    set(members fmu_${fmu}.c ${flat})
    list(TRANSFORM members PREPEND sources/)
    set(copy_notices "")
    set(notices "")
    foreach(notice ${arg_NOTICES})
        string(REGEX MATCH "^([^=]*)=(.*)$" ignored "${notice}")
        list(APPEND copy_notices COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_MATCH_2}
             ${place}/licenses/${CMAKE_MATCH_1})
        list(APPEND notices ${CMAKE_MATCH_2})
        list(APPEND members licenses/${CMAKE_MATCH_1})
    endforeach()
    set(libraries "")
    foreach(version 2 3)
        set(library ${fmu}_fmi${version})
        set(platform fmi${version}/binaries/${CARDAN_FMI${version}_PLATFORM})
        cardan_fmu_objects(${library}_code ${place}/sources/fmi${version}.c)
        # Its source is made by the same command: not twice at the same time.
        add_dependencies(${library}_code ${fmu}_fmu_code)
        add_library(${library} MODULE EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${library}_code>
                    $<TARGET_OBJECTS:${fmu}_fmu_code>)
        target_link_options(${library} PRIVATE -fno-sanitize=all -Wl,--gc-sections -Wl,--no-undefined
                            -Wl,--exclude-libs,ALL -s)
        target_link_libraries(${library} PRIVATE ${arg_LIBS} m)
        set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C PREFIX "" OUTPUT_NAME ${fmu}
                              LIBRARY_OUTPUT_DIRECTORY ${place}/${platform})
        list(APPEND libraries ${library})
        list(APPEND members ${platform}/${fmu}.so)
    endforeach()

    set(archive ${place}/template.zip)
    set(embedded ${CMAKE_BINARY_DIR}/fmus/templates/${fmu}.c)
    add_custom_command(OUTPUT ${embedded}
        COMMAND ${CMAKE_COMMAND} -E copy ${tree}/LICENSE ${place}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${place}/licenses ${CMAKE_BINARY_DIR}/fmus/templates
        ${copy_notices}
        COMMAND ${CMAKE_COMMAND} -E chdir ${place} ${CMAKE_COMMAND} -E tar c ${archive}
                --format=zip --mtime=1980-01-02 LICENSE ${members}
        COMMAND ${CMAKE_COMMAND} -D OUT=${embedded} -D HEADER=cli/export/export.h
                -D ASSETS=crdi_${fmu}_template=${archive} -P ${tree}/cmake/embed.cmake
        DEPENDS ${libraries} ${flat_paths} ${place}/sources/fmu_${fmu}.c ${notices}
                ${tree}/cmake/embed.cmake ${tree}/LICENSE
        COMMENT "${fmu} FMU" VERBATIM)
    target_sources(crd_cli PRIVATE ${embedded})
    add_custom_target(fmu_template_${fmu} DEPENDS ${embedded})
    add_dependencies(crd_cli fmu_template_${fmu}) # not twice at the same time
    set_property(GLOBAL APPEND PROPERTY CARDAN_FMU_TARGETS fmu_template_${fmu})
endfunction()

set(tree ${PROJECT_SOURCE_DIR})
file(GLOB base_files CONFIGURE_DEPENDS ${tree}/src/base/*.[ch])
list(FILTER base_files EXCLUDE REGEX "/base/(c_source|interrupt|names|process|progress|ring|values)\\.c$")
list(APPEND base_files ${tree}/src/shared/base_findings.h ${tree}/src/shared/base_path.h ${tree}/src/shared/base_system.h ${tree}/src/shared/base_units.h)

file(GLOB files CONFIGURE_DEPENDS ${tree}/src/coupling/*.[ch] ${tree}/src/unit/coupling/*.[ch])
list(FILTER files EXCLUDE REGEX "/coupling/(bank|emit|score|shadow)\\.c$")
foreach(name address.c client.c message.c message.h)
    list(APPEND files ${tree}/src/learn/${name})
endforeach()
foreach(name base coupling learn model pair quality system unit)
    list(APPEND files ${tree}/include/cardan/${name}.h)
endforeach()
list(APPEND files ${tree}/src/shared/base.h ${tree}/src/shared/coupling.h ${tree}/src/shared/unit.h)
cardan_embed_fmu(coupling HEADER cardan_unit.h MODEL crd_coupling_model FILES ${base_files} ${files})

file(GLOB files CONFIGURE_DEPENDS ${tree}/src/dcp/master/*.[ch] ${tree}/src/dcp/model/*.[ch])
foreach(name line.c names.c pdu.c sequence.c values.c variables.c description/dcpx.h
        description/description.c description/start.c net/address.c net/capture.c net/net.c net/net.h net/socket.c
        net/socket.h net/stream.c net/datagram.c)
    list(APPEND files ${tree}/src/dcp/${name})
endforeach()
foreach(name base dcp model)
    list(APPEND files ${tree}/include/cardan/${name}.h)
endforeach()
foreach(name base dcp dcp_model xml)
    list(APPEND files ${tree}/src/shared/${name}.h)
endforeach()
cardan_embed_fmu(dcp HEADER shared_dcp_model.h MODEL crdi_dcp_model FILES ${base_files} ${files})

# A circuit needs KLU, which goes into the binary: an FMU cannot ask for libraries.
set(archives "")
foreach(name klu btf amd colamd suitesparseconfig)
    find_library(CARDAN_STATIC_${name} NAMES lib${name}.a)
    mark_as_advanced(CARDAN_STATIC_${name})
    if(NOT CARDAN_STATIC_${name})
        message(FATAL_ERROR "lib${name}.a is not there: FMUs of circuits contain the static libraries "
                "klu, btf, amd, colamd and suitesparseconfig of SuiteSparse (Debian and Ubuntu: "
                "libsuitesparse-dev). If it lies in an unusual place: -DCARDAN_STATIC_${name}=FILE")
    endif()
    list(APPEND archives ${CARDAN_STATIC_${name}})
endforeach()
set(notices libraries.txt=${tree}/cmake/circuit_libraries.txt)
foreach(notice lgpl-2.1.txt=/usr/share/common-licenses/LGPL-2.1
        suitesparse.txt=/usr/share/doc/libsuitesparse-dev/copyright)
    string(REGEX REPLACE "^[^=]*=" "" file ${notice})
    if(EXISTS ${file})
        list(APPEND notices ${notice})
    endif()
endforeach()
file(GLOB_RECURSE files CONFIGURE_DEPENDS ${tree}/src/circuit/*.[ch])
list(FILTER files EXCLUDE REGEX "/circuit/(formula|on_board)\\.c$|/circuit/emit/") # for those beside circuits, for controllers
foreach(name base circuit model)
    list(APPEND files ${tree}/include/cardan/${name}.h)
endforeach()
list(APPEND files ${tree}/src/shared/base.h ${tree}/src/shared/circuit_model.h ${tree}/src/shared/circuit_part.h
     ${tree}/src/shared/circuit_table.h)
cardan_embed_fmu(circuit HEADER shared_circuit_model.h MODEL crdi_circuit_model
                 FILES ${base_files} ${files} LIBS ${archives} INCLUDES ${KLU_INCLUDE}
                 NOTICES ${notices})

# A twin is a circuit with a filter over it.
list(FILTER files EXCLUDE REGEX "/circuit/model[^/]*\\.c$|/shared/circuit_model\\.h$")
foreach(name dense.c dense.h description.c discretise.c factor.c factor.h instance.c instance.h
        model.c reduce.c rows.c start.c state.c table.c thesis.c twin.c twin.h ud.c ud.h)
    list(APPEND files ${tree}/src/twin/${name})
endforeach()
list(APPEND files ${tree}/include/cardan/twin.h ${tree}/src/shared/twin_model.h)
cardan_embed_fmu(twin HEADER shared_twin_model.h MODEL crdi_twin_model
                 FILES ${base_files} ${files} LIBS ${archives} INCLUDES ${KLU_INCLUDE}
                 NOTICES ${notices})
