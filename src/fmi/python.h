// FMUs whose code is Python: their libraries want symbols of libpython and do not say of which, as
// they are made for any version of it.
#pragma once
#include "shared/base.h"

/// Does the library in this file leave symbols of Python open?
bool crdi_python_needed(const char* file);
/// Is this why a library was not loaded? A text of dlerror().
bool crdi_python_missing(const char* why);

/// The libpython to be loaded before it, for all to see: $CARDAN_LIBPYTHON, else that of python3 in
/// $VIRTUAL_ENV or $PATH, else one of the system. Who has found it says so in the environment, with
/// the folders of its packages in $CARDAN_READABLE: the worker processes that follow cannot look
/// for it themselves. NULL: there is none.
const char* crdi_python_library(void);
/// What to do then, as a clause.
extern const char crdi_python_advice[];
