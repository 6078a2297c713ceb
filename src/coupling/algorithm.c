// The algorithms there are. A new one is a line here: a design at the end of the first table,
// anything else at the end of the second.
#include "coupling/algorithm.h"

#include <stdio.h>

#define DESIGN_LIST(X) /* in the order of crd_method */                                            \
    X(zoh)                                                                                         \
    X(foh)                                                                                         \
    X(eros)                                                                                        \
    X(error_space)                                                                                 \
    X(moment)                                                                                      \
    X(savitzky_golay)                                                                              \
    X(wiener)
#define OTHER_LIST(X) /* in the order of crd_algorithm, whose first are the designs */             \
    X(given)                                                                                       \
    X(network)                                                                                     \
    X(ridge)                                                                                       \
    X(rls)                                                                                         \
    X(auto)                                                                                        \
    X(commands)                                                                                    \
    X(smith)                                                                                       \
    X(error_curves)

#define DECLARE(name) extern const crdi_algorithm crdi_algorithm_##name;
#define ROW(name) &crdi_algorithm_##name,
DESIGN_LIST(DECLARE)
OTHER_LIST(DECLARE)
static const crdi_algorithm* const designs[] = {DESIGN_LIST(ROW)};
static const crdi_algorithm* const others[] = {NULL, OTHER_LIST(ROW)};

enum {
    DESIGNS = sizeof designs / sizeof *designs,
    OTHERS = sizeof others / sizeof *others, // the first is none
};

const crdi_algorithm* crdi_design_at(int method)
{
    return method >= 0 && method < DESIGNS ? designs[method] : NULL;
}

int crdi_design_count(void)
{
    return DESIGNS;
}

int crdi_algorithm_last(void)
{
    return OTHERS - 1;
}

const crdi_algorithm* crdi_algorithm_at(int index)
{
    if (index < DESIGNS) { return crdi_design_at(index); }
    return index - DESIGNS + 1 < OTHERS ? others[index - DESIGNS + 1] : NULL;
}

const crdi_algorithm* crdi_algorithm_of(const crd_coupling_options* o)
{
    const int kind = (int)o->algorithm;
    if (kind == CRD_ALGORITHM_LINEAR) { return crdi_design_at((int)o->design.method); }
    return kind > 0 && kind < OTHERS ? others[kind] : NULL;
}

void crdi_algorithm_choose(const crdi_algorithm* a, crd_coupling_options* o)
{
    for (int i = 0; i < DESIGNS; i++) {
        if (designs[i] != a) { continue; }
        o->algorithm = CRD_ALGORITHM_LINEAR;
        o->design = crd_design_defaults((crd_method)i);
    }
    for (int i = 1; i < OTHERS; i++) {
        if (others[i] == a) { o->algorithm = (crd_algorithm)i; }
    }
}

const char* crdi_design_names(char* out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < DESIGNS && at < size; i++) {
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", designs[i]->name);
    }
    return out;
}

const char* const* crd_element_algorithms(void)
{
    static _Thread_local const char* names[DESIGNS + OTHERS];
    int count = 0;
    for (int i = 0; crdi_algorithm_at(i); i++) {
        if (!crdi_algorithm_at(i)->needs_keys) { names[count++] = crdi_algorithm_at(i)->name; }
    }
    names[count] = NULL;
    return names;
}
