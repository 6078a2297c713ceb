# cmake -D SOURCE=folder -D OUT=file -P commit.cmake: the commit that is built, as a header that changes only with it.
find_program(git git)
set(commit "")
if(git AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${git} log -1 --format=%h\ of\ %cs WORKING_DIRECTORY ${SOURCE}
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND ${git} diff --quiet HEAD WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE changed ERROR_QUIET)
    if(commit AND changed)
        string(APPEND commit " with changes")
    endif()
endif()
if(NOT commit) # an archive: git has put it in there
    file(STRINGS ${SOURCE}/cmake/commit.txt commit REGEX "^[0-9a-f]+ of ")
endif()
if(NOT commit)
    set(commit "not known")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define CRDI_COMMIT \"${commit}\"\n")
