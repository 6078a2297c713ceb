// Texts of somebody else in messages, tables and comments.
#pragma once
#include <stddef.h>

/// Makes a text one line that does nothing to a terminal or a YAML file: spaces for line ends and
/// tabs, ? for other control characters (ESC, U+0080 to U+009F too) and for what is no UTF-8. In
/// place; the length that is left.
size_t crdi_printable(char* text, size_t length);
