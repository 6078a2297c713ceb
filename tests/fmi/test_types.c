// The example FMU `types`, which hands every input and parameter on to an output: each type of both
// versions goes in and comes back.
#include <inttypes.h>
#include <stdio.h>

#include "cardan/fmi.h"
#include "check.h"

enum { MOST = 8 }; // elements of an array there

typedef union values {
    double reals[MOST];
    int64_t integers[MOST];
    const char* texts[MOST];
    crd_fmi_binary bytes[MOST];
} values;

// A value that differs by variable, element and round, and that its type can hold.
static void make(const crd_variable* v, int index, int round, values* out)
{
    static char texts[MOST][64];
    for (uint32_t e = 0; e < v->size; e++) {
        memset(texts[e], 0, sizeof texts[e]);
        const int k = 1 + (index + 3 * (int)e + 5 * round) % 100;
        switch (v->type) {
        case CRD_FLOAT64:
        case CRD_FLOAT32:
            out->reals[e] = 0.25 * k;
            break;
        case CRD_BOOLEAN:
            out->integers[e] = (k + round) % 2;
            break;
        case CRD_ENUMERATION:
            out->integers[e] = 1 + k % 3;
            break;
        case CRD_INT8:
        case CRD_INT16:
        case CRD_INT32: // negative where the start value is: FMI 2 has unsigned ones as Integer
            out->integers[e] = v->start && v->start[0] == '-' ? -k : k;
            break;
        case CRD_INT64:
            out->integers[e] = INT64_MIN + k;
            break;
        case CRD_UINT32:
            out->integers[e] = (int64_t)UINT32_MAX - k;
            break;
        case CRD_UINT64:
            out->integers[e] = -k; // its bits: larger than any int64_t
            break;
        case CRD_STRING:
            snprintf(texts[e], sizeof texts[e], "%s %d \xc3\xa4", v->name, k);
            out->texts[e] = texts[e];
            break;
        case CRD_BINARY:
            snprintf(texts[e], sizeof texts[e], "%c%d", k % 10, k);
            out->bytes[e] = (crd_fmi_binary){(const uint8_t*)texts[e], (size_t)(k % 9)};
            break;
        default:
            out->integers[e] = k;
            break;
        }
    }
}

static crd_status set(crd_fmi* i, const crd_variable* v, const values* x)
{
    const uint32_t* r = &v->reference;
    switch (v->type) {
    case CRD_FLOAT64:
        return crd_fmi_set_real(i, r, 1, x->reals, v->size);
    case CRD_FLOAT32:
        return crd_fmi_set_float32(i, r, 1, x->reals, v->size);
    case CRD_STRING:
        return crd_fmi_set_string(i, r, 1, x->texts, v->size);
    case CRD_BINARY:
        return crd_fmi_set_binary(i, r, 1, x->bytes, v->size);
    default:
        return crd_fmi_set_integer(i, (crd_type)v->type, r, 1, x->integers, v->size);
    }
}

static crd_status get(crd_fmi* i, const crd_variable* v, values* x)
{
    const uint32_t* r = &v->reference;
    switch (v->type) {
    case CRD_FLOAT64:
        return crd_fmi_get_real(i, r, 1, x->reals, v->size);
    case CRD_FLOAT32:
        return crd_fmi_get_float32(i, r, 1, x->reals, v->size);
    case CRD_STRING:
        return crd_fmi_get_string(i, r, 1, x->texts, v->size);
    case CRD_BINARY:
        return crd_fmi_get_binary(i, r, 1, x->bytes, v->size);
    default:
        return crd_fmi_get_integer(i, (crd_type)v->type, r, 1, x->integers, v->size);
    }
}

static void compare(const crd_variable* v, const values* have, const values* want)
{
    for (uint32_t e = 0; e < v->size; e++) {
        switch (crd_type_kind((crd_type)v->type)) {
        case CRD_REAL:
            check_near(have->reals[e], want->reals[e], 0);
            break;
        case CRD_INTEGER:
            check_int(have->integers[e], want->integers[e]);
            break;
        case CRD_BYTES:
            if (v->type == CRD_STRING) {
                check_text(have->texts[e], want->texts[e]);
            } else {
                check_int(have->bytes[e].size, want->bytes[e].size);
                if (want->bytes[e].size > 0) {
                    check(memcmp(have->bytes[e].data, want->bytes[e].data, want->bytes[e].size) ==
                          0);
                }
            }
        }
    }
}

static void set_made(crd_context* ctx, crd_fmi* i, const crd_variable* v, int index, int round)
{
    values x = {0};
    check(v->size <= MOST);
    make(v, index, round, &x);
    if (set(i, v, &x) < 0) { fail_msg("%s: %s", v->name, crd_error_text(ctx)); }
}

// Sets all variables whose name begins with `prefix`.
static void set_all(crd_context* ctx, crd_fmi* i, const crd_fmu_description* d, const char* prefix,
                    int round)
{
    for (int32_t k = 0; k < d->variable_count; k++) {
        const crd_variable* v = &d->variables[k];
        if (strncmp(v->name, prefix, strlen(prefix)) != 0) { continue; }
        set_made(ctx, i, v, k, round);
    }
}

// Finds them in the outputs that bear the same name after `to`; counts types.
static void expect_all(crd_fmi* i, const crd_fmu* f, const char* prefix, const char* to, int round,
                       int* seen)
{
    const crd_fmu_description* d = crd_fmu_describe(f);
    for (int32_t k = 0; k < d->variable_count; k++) {
        const crd_variable* v = &d->variables[k];
        if (strncmp(v->name, prefix, strlen(prefix)) != 0) { continue; }
        char name[128];
        snprintf(name, sizeof name, "%s%s", to, v->name + strlen(prefix));
        const int32_t o = crd_fmu_find(f, name);
        if (o < 0) { fail_msg("there is no output %s", name); }
        check_int(d->variables[o].type, v->type);
        check_int(d->variables[o].size, v->size);
        values want = {0}, have = {0};
        make(v, k, round, &want);
        check_ok(get(i, &d->variables[o], &have));
        compare(v, &have, &want);
        seen[v->type]++;
    }
}

static void drive(int version, int* seen)
{
    check_allocator memory;
    crd_context* ctx = check_context(&memory);
    crd_fmu* f = NULL;
    crd_fmi* i = NULL;
    crd_fmi_step step;
    char path[512];
    snprintf(path, sizeof path, TEST_BUILD_DIR "/fmus/fmi%d/types.fmu", version);
    if (crd_fmu_open(ctx, path, NULL, &f) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    const crd_fmu_description* d = crd_fmu_describe(f);
    check_int(d->version, version);
    const crd_fmi_options opt = {.instance_name = "types"};
    if (crd_fmi_instantiate(ctx, f, &opt, &i) < 0) { fail_msg("%s", crd_error_text(ctx)); }
    for (int32_t k = 0; k < d->variable_count; k++) { // par_out_ is no parameter
        const crd_variable* v = &d->variables[k];
        if (v->causality != CRD_PARAMETER || strncmp(v->name, "par_", 4) != 0) { continue; }
        set_made(ctx, i, v, k, 0);
    }
    check_ok(crd_fmi_enter_initialization(i, false, 0, 0, true, 1));
    set_all(ctx, i, d, "in_", 0);
    expect_all(i, f, "in_", "out_", 0, seen); // direct feedthrough in initialization mode
    check_ok(crd_fmi_exit_initialization(i));
    for (int n = 1; n <= 3; n++) {
        set_all(ctx, i, d, "in_", n);
        check_ok(crd_fmi_do_step(i, 0.01 * (n - 1), 0.01, true, &step));
        expect_all(i, f, "in_", "out_", n, seen);
    }
    int parameters = 0;
    for (int32_t k = 0; k < d->variable_count; k++) {
        const crd_variable* v = &d->variables[k];
        if (v->causality != CRD_PARAMETER || strncmp(v->name, "par_", 4) != 0) { continue; }
        char name[128];
        snprintf(name, sizeof name, "par_out_%s", v->name + 4);
        const int32_t o = crd_fmu_find(f, name);
        if (o < 0) { fail_msg("there is no output %s", name); }
        values want = {0}, have = {0};
        make(v, k, 0, &want);
        check_ok(get(i, &d->variables[o], &have));
        compare(v, &have, &want);
        parameters++;
    }
    check(parameters > 0);
    check_ok(crd_fmi_terminate(i));
    crd_fmi_destroy(i);
    crd_fmu_close(f);
    crd_context_destroy(ctx);
    check_int(memory.live, 0);
}

static void every_type_of_fmi2_goes_in_and_comes_back(void** state)
{
    int seen[CRD_TYPE_COUNT] = {0};
    drive(2, seen);
    const crd_type wanted[] = {CRD_FLOAT64, CRD_INT32, CRD_BOOLEAN, CRD_ENUMERATION, CRD_STRING};
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
        if (!seen[wanted[k]]) { fail_msg("type %d is not in the FMU", (int)wanted[k]); }
    }
}

static void every_type_of_fmi3_goes_in_and_comes_back(void** state)
{
    int seen[CRD_TYPE_COUNT] = {0};
    drive(3, seen);
    for (int type = 0; type < CRD_CLOCK; type++) {
        if (!seen[type]) { fail_msg("type %d is not in the FMU", type); }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_fmi2_goes_in_and_comes_back),
        cmocka_unit_test(every_type_of_fmi3_goes_in_and_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
