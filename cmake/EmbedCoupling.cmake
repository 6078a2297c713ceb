# The coupling FMU that `cardan export coupling` writes is the same for all elements: it reads the
# element from its resources. So its binaries are built here, from sources that fit into one folder,
# and the command carries both as one archive; it needs no compiler and no file beside it.
set(coupling_place ${CMAKE_BINARY_DIR}/coupling_fmu)
set(tree ${PROJECT_SOURCE_DIR})
file(GLOB coupling_files CONFIGURE_DEPENDS ${tree}/src/base/*.[ch] ${tree}/src/coupling/*.[ch]
     ${tree}/src/unit/coupling/*.[ch])
# What it does without; a mistake here does not link.
list(FILTER coupling_files EXCLUDE REGEX "/base/ring\\.c$|/coupling/(bank|describe_write|score|shadow)\\.c$")
foreach(name address.c client.c message.c message.h)
    list(APPEND coupling_files ${tree}/src/learn/${name})
endforeach()
foreach(name base coupling learn model quality system unit)
    list(APPEND coupling_files ${tree}/include/cardan/${name}.h)
endforeach()
foreach(name fmi2.c fmi2_abi.h fmi3.c fmi3_abi.h fmu.h fmu_model.h)
    list(APPEND coupling_files ${tree}/src/fmi/export/${name})
endforeach()

set(flat fmu_settings.h) # names in sources/
set(flat_files "")       # name=path
set(coupling_code "")    # what both versions compile
foreach(file ${coupling_files})
    file(RELATIVE_PATH name ${tree} ${file})
    string(REGEX REPLACE "^(src/fmi/export|src|include)/" "" name ${name})
    string(REPLACE "/" "_" name ${name})
    list(APPEND flat ${name})
    list(APPEND flat_files ${name}=${file})
    if(name MATCHES "\\.c$" AND NOT name MATCHES "^fmi[23]\\.c$")
        list(APPEND coupling_code ${coupling_place}/sources/${name})
    endif()
endforeach()
set(flat_paths ${flat})
list(TRANSFORM flat_paths PREPEND ${coupling_place}/sources/)
add_custom_command(OUTPUT ${flat_paths}
    COMMAND ${CMAKE_COMMAND} -D OUT=${coupling_place}/sources -D VERSION=${PROJECT_VERSION}
            -D "FILES=${flat_files}" -P ${tree}/cmake/flatten.cmake
    DEPENDS ${coupling_files} ${tree}/cmake/flatten.cmake VERBATIM)

# The file that says which model it is
file(CONFIGURE OUTPUT ${coupling_place}/sources/fmu_coupling.c CONTENT
"#include \"fmu_settings.h\"
#include \"cardan_unit.h\"
#include \"fmu_model.h\"

const int fmu_interfaces = FMU_COSIMULATION;

const crd_model* fmu_model_open(const char* resources, char* message, size_t room)
{
    return crd_coupling_model_load(resources, message, room);
}

void fmu_model_close(const crd_model* model)
{
    crd_coupling_model_destroy(model);
}
")
list(APPEND coupling_code ${coupling_place}/sources/fmu_coupling.c)
cardan_fmu_objects(coupling_fmu_code ${coupling_code})
set(members fmu_coupling.c ${flat})
list(TRANSFORM members PREPEND sources/)
set(libraries "")
foreach(version 2 3)
    set(library coupling_fmi${version})
    set(platform fmi${version}/binaries/${CARDAN_FMI${version}_PLATFORM})
    cardan_fmu_objects(${library}_code ${coupling_place}/sources/fmi${version}.c)
    # Its source is made by the same command: not twice at the same time.
    add_dependencies(${library}_code coupling_fmu_code)
    add_library(${library} MODULE EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${library}_code>
                $<TARGET_OBJECTS:coupling_fmu_code>)
    target_link_options(${library} PRIVATE -fno-sanitize=all -Wl,--gc-sections -Wl,--no-undefined -s)
    target_link_libraries(${library} PRIVATE m)
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C PREFIX "" OUTPUT_NAME coupling
                          LIBRARY_OUTPUT_DIRECTORY ${coupling_place}/${platform})
    list(APPEND libraries ${library})
    list(APPEND members ${platform}/coupling.so)
endforeach()

set(archive ${coupling_place}/template.zip)
set(embedded ${coupling_place}/template.c)
add_custom_command(OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -E copy ${tree}/LICENSE ${coupling_place}
    COMMAND ${CMAKE_COMMAND} -E chdir ${coupling_place} ${CMAKE_COMMAND} -E tar c ${archive}
            --format=zip --mtime=1980-01-02 LICENSE ${members}
    COMMAND ${CMAKE_COMMAND} -D OUT=${embedded} -D HEADER=cli/export.h
            -D ASSETS=crdi_coupling_template=${archive} -P ${tree}/cmake/embed.cmake
    DEPENDS ${libraries} ${flat_paths} ${coupling_place}/sources/fmu_coupling.c
            ${tree}/cmake/embed.cmake ${tree}/LICENSE
    COMMENT "coupling FMU" VERBATIM)
target_sources(crd_cli PRIVATE ${embedded})
