// The context's inside, for the files of base.
#pragma once
#include "cardan/base.h"

struct crd_context {
    crd_context_options opt;
    char error[2048];
};
