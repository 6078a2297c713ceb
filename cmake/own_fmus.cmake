# cmake -D BUILD=folder -P own_fmus.cmake: the binaries of all FMUs that this build has made, the templates of
# the command and the examples, as lines "<SHA-256> <bytes> <name>" of cardan-own-fmus. An FMU with one of these
# runs in Cardan's own process by default; see docs/explanation/isolation.md. Those that misbehave on purpose are not among them.
file(GLOB files ${BUILD}/*_fmu/fmi?/binaries/*/*.so ${BUILD}/fmus/stage/*/fmi?/binaries/*/*.so)
list(FILTER files EXCLUDE REGEX "/faulty[^/]*$")
set(text "")
foreach(file ${files})
    file(SHA256 ${file} hash)
    file(SIZE ${file} size)
    string(REGEX REPLACE ".*/(fmi.)/.*/([^/]*)$" "\\1/\\2" name ${file})
    string(APPEND text "${hash} ${size} ${name}\n")
endforeach()
string(RANDOM part)
file(WRITE ${BUILD}/fmus/own.${part} "${text}") # others may do the same, or read
file(RENAME ${BUILD}/fmus/own.${part} ${BUILD}/fmus/cardan-own-fmus)
