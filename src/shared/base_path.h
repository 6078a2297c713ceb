/// Names in paths.
#pragma once
#include <stddef.h>

/// Bytes of the folder in front of a file's name, with its slash; 0: there is none.
size_t crdi_folder_length(const char* path);

/// Where the name in a path begins, and its length without the ending: "a/motor.fmu", "a/motor/".
const char* crdi_path_stem(const char* path, size_t* length);
