# The small part of the Python module that is written in C (python/fast.c), beside libcardan.so; left out where there are
# no headers of Python: then ctypes does it all.
if(NOT CMAKE_BUILD_TYPE STREQUAL Debug) # one with sanitizers cannot be loaded into a foreign program
    find_package(Python3 3.9 QUIET COMPONENTS Interpreter Development.Module)
    if(Python3_Development.Module_FOUND)
        add_library(python_fast MODULE python/fast.c)
        set_target_properties(python_fast PROPERTIES PREFIX "" OUTPUT_NAME _fast SUFFIX .abi3.so
                              LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
        target_include_directories(python_fast PRIVATE include)
        target_compile_options(python_fast PRIVATE -Wno-pedantic) # tables of slots have functions as objects
        target_include_directories(python_fast SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
    endif()
endif()
