# cmake -D OUT=file.c -D ASSETS=name=path;... [-D HEADER=file.h] -P embed.cmake: the bytes of files as
# C arrays. The header declares them and their type, crdi_asset.
if(NOT HEADER)
    set(HEADER results/report.h)
endif()
set(text "// Made by cmake/embed.cmake.\n#include \"${HEADER}\"\n")
foreach(asset ${ASSETS})
    string(REGEX MATCH "^([^=]*)=(.*)$" ignored "${asset}")
    set(name ${CMAKE_MATCH_1})
    set(path ${CMAKE_MATCH_2})
    file(READ ${path} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
           bytes "${bytes}")
    string(APPEND text "\nstatic const unsigned char ${name}_bytes[] = {\n${bytes}\n};\n"
           "const crdi_asset ${name} = {${name}_bytes, sizeof ${name}_bytes};\n")
endforeach()
file(WRITE ${OUT} "${text}")
