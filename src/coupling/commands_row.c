// The rows of the algorithms that know commands, and how descriptions say them.
#include "coupling/algorithm.h"

extern const crdi_algorithm crdi_algorithm_auto;

const crdi_algorithm crdi_algorithm_commands = {
    .name = "commands", .learns = true, .needs_keys = true, .alone = &crdi_algorithm_auto};

// The signal alone: hold. What the model adds comes from its one command (commands.c).
typedef struct smith {
    char none;
} smith;

static crd_status smith_init(void* self, crd_context* ctx, const crd_coupling_options* o)
{
    (void)self;
    (void)o;
    (void)ctx;
    return CRD_OK;
}
static void smith_clear(void* self, crd_context* ctx)
{
    (void)self;
    (void)ctx;
}
static void smith_forget(void* self)
{
    (void)self;
}
static void smith_push(void* self, const double* y, double lift)
{
    (void)self;
    (void)y;
    (void)lift;
}
static double smith_predict(void* self, const double* y, int k)
{
    (void)self;
    (void)k;
    return y[0];
}
static int smith_reach(const void* self)
{
    (void)self;
    return 1;
}

static crd_status smith_check_keys(crdi_element_reader* r, const crdi_json* n)
{
    (void)n;
    r->e->options.commands = 1;
    return CRD_OK;
}

const crdi_algorithm crdi_algorithm_smith = {.name = "smith",
                                             .check_keys = smith_check_keys,
                                             .learns = true,
                                             .needs_keys = true,
                                             .size = sizeof(smith),
                                             .init = smith_init,
                                             .clear = smith_clear,
                                             .forget = smith_forget,
                                             .push = smith_push,
                                             .predict = smith_predict,
                                             .reach = smith_reach,
                                             .memory = smith_reach};
