# cmake -D OUT=folder -D VERSION=x.y.z -D FILES=name=path;... -P flatten.cmake
#
# Sources of this tree for the sources/ folder of an FMU, which is compiled by people with other
# build systems: all files in one folder, so that no include path is needed, and settings that the
# build gives on the command line in a header. "coupling/history.h" becomes "coupling_history.h".
file(MAKE_DIRECTORY ${OUT})

function(write name text)
    set(old "")
    if(EXISTS ${OUT}/${name})
        file(READ ${OUT}/${name} old)
    endif()
    if(NOT old STREQUAL text)
        file(WRITE ${OUT}/${name} "${text}")
    endif()
endfunction()

write(fmu_settings.h "// What holds for all files of this FMU.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef CRD_VERSION
#define CRD_VERSION \"${VERSION}\"
#endif
#define FMU_OPENS_MODELS
")
foreach(file ${FILES})
    string(REGEX MATCH "^([^=]*)=(.*)$" ignored "${file}")
    set(name ${CMAKE_MATCH_1})
    file(READ ${CMAKE_MATCH_2} text)
    # Twice, as names have up to two slashes
    foreach(again 1 2)
        string(REGEX REPLACE "(#include \"[^\"/\n]*)/([^\"\n]*\")" "\\1_\\2" text "${text}")
    endforeach()
    # Nothing but the functions of FMI leaves the FMU.
    string(REPLACE "#define CRD_API __attribute__((visibility(\"default\")))"
           "#define CRD_API __attribute__((visibility(\"hidden\")))" text "${text}")
    if(name MATCHES "\\.c$")
        set(text "#include \"fmu_settings.h\"\n${text}")
    endif()
    write(${name} "${text}")
endforeach()
