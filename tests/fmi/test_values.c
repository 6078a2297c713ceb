// Values of every type, to mock FMUs and back.
#include "fmi/mock/fixture.h"

// ---- values ------------------------------------------------------------------------------------

static const struct {
    crd_type type;
    int64_t low, high;
    bool in2;
    const char* name;
} integers[] = {
    {CRD_INT8, INT8_MIN, INT8_MAX, false, "Int8"},
    {CRD_UINT8, 0, UINT8_MAX, false, "UInt8"},
    {CRD_INT16, INT16_MIN, INT16_MAX, false, "Int16"},
    {CRD_UINT16, 0, UINT16_MAX, false, "UInt16"},
    {CRD_INT32, INT32_MIN, INT32_MAX, true, "Int32"},
    {CRD_UINT32, 0, UINT32_MAX, false, "UInt32"},
    {CRD_INT64, INT64_MIN, INT64_MAX, false, "Int64"},
    {CRD_UINT64, INT64_MIN, INT64_MAX, false, "UInt64"}, // by its bits
    {CRD_ENUMERATION, INT32_MIN, INT32_MAX, true, "Enumeration"},
    {CRD_BOOLEAN, 0, 1, true, "Boolean"},
};

static void integers_of_every_size_go_in_and_come_back(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "integers", version);
        crd_fmi* i = stepping(&x);
        for (size_t k = 0; k < sizeof integers / sizeof integers[0]; k++) {
            const crd_type type = integers[k].type;
            const uint32_t refs[3] = {1, 2, 3};
            const int64_t in[3] = {integers[k].low, integers[k].high, 1};
            int64_t out[3] = {9, 9, 9};
            // FMI 3: one array of three; FMI 2: three variables
            const size_t n = version == 2 ? 3 : 1;
            if (version == 2 && !integers[k].in2) {
                check_status(crd_fmi_set_integer(i, type, refs, n, in, 3), CRD_E_UNSUPPORTED);
                check_contains(crd_error_text(x.ctx), integers[k].name);
                check_status(crd_fmi_get_integer(i, type, refs, n, out, 3), CRD_E_UNSUPPORTED);
                continue;
            }
            check_ok(crd_fmi_set_integer(i, type, refs, n, in, 3));
            check_ok(crd_fmi_get_integer(i, type, refs, n, out, 3));
            for (int j = 0; j < 3; j++) {
                check_int(out[j], in[j]);
            }
        }
        check_ok(crd_fmi_set_integer(i, CRD_BOOLEAN, &ref0, 1, &(int64_t){256}, 1));
        const mock_instance* m = i->component;
        check_int(m->booleans[0], 1); // everything but zero is true, and true is 1
        check_status(crd_fmi_set_integer(i, CRD_CLOCK, &ref0, 1, &(int64_t){1}, 1),
                     CRD_E_UNSUPPORTED);
        check_status(crd_fmi_get_integer(i, CRD_STRING, &ref0, 1, &(int64_t){1}, 1),
                     CRD_E_UNSUPPORTED);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void a_number_too_large_for_its_type_is_refused_before_the_call(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "range", version);
        crd_fmi* i = stepping(&x);
        const int calls = x.mock->calls;
        for (size_t k = 0; k < sizeof integers / sizeof integers[0]; k++) {
            if (version == 2 ? !integers[k].in2 : integers[k].high > UINT32_MAX) { continue; }
            if (integers[k].type == CRD_BOOLEAN) { continue; }
            if (version == 3 && integers[k].type == CRD_ENUMERATION) { continue; }
            for (int side = 0; side < 2; side++) {
                const int64_t v = side ? integers[k].high + 1 : integers[k].low - 1;
                char want[64];
                snprintf(want, sizeof want, "%lld does not fit", (long long)v);
                check_status(crd_fmi_set_integer(i, integers[k].type, &ref0, 1, &v, 1),
                             CRD_E_RANGE);
                check_contains(crd_error_text(x.ctx), want);
                check_contains(crd_error_text(x.ctx), integers[k].name);
            }
        }
        if (version == 3) {
            check_status(crd_fmi_set_float32(i, &ref0, 1, &(double){1e39}, 1), CRD_E_RANGE);
            check_contains(crd_error_text(x.ctx), "does not fit into a Float32");
        }
        check_int(x.mock->calls, calls);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void texts_bytes_and_single_floats_go_in_and_come_back(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "texts", version);
        crd_fmi* i = stepping(&x);
        const uint32_t refs[2] = {4, 5};
        const size_t n = version == 2 ? 2 : 1;
        const char* const in[2] = {"one", "t\xc3\xbc"};
        const char* out[2];
        check_ok(crd_fmi_set_string(i, refs, n, in, 2));
        check_ok(crd_fmi_get_string(i, refs, n, out, 2));
        check_text(out[0], "one");
        check_text(out[1], "t\xc3\xbc");
        x.mock->null_strings = true;
        check_ok(crd_fmi_get_string(i, refs, n, out, 2));
        check_text(out[1], "");
        const crd_fmi_binary bytes[2] = {{(const uint8_t*)"\0\1\2", 3}, {NULL, 0}};
        crd_fmi_binary back[2];
        const double floats[2] = {0.5, -INFINITY};
        double floats_out[2];
        if (version == 2) {
            check_status(crd_fmi_set_binary(i, refs, n, bytes, 2), CRD_E_UNSUPPORTED);
            check_status(crd_fmi_get_binary(i, refs, n, back, 2), CRD_E_UNSUPPORTED);
            check_status(crd_fmi_set_float32(i, refs, n, floats, 2), CRD_E_UNSUPPORTED);
            check_status(crd_fmi_get_float32(i, refs, n, floats_out, 2), CRD_E_UNSUPPORTED);
        } else {
            check_ok(crd_fmi_set_binary(i, refs, n, bytes, 2));
            check_ok(crd_fmi_get_binary(i, refs, n, back, 2));
            check_int(back[0].size, 3);
            check(memcmp(back[0].data, "\0\1\2", 3) == 0);
            check_int(back[1].size, 0);
            check_ok(crd_fmi_set_float32(i, refs, n, floats, 2));
            check_ok(crd_fmi_get_float32(i, refs, n, floats_out, 2));
            check_near(floats_out[0], 0.5, 0);
            check(floats_out[1] == -INFINITY);
        }
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void derivatives_pass_through(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "derivatives", version);
        crd_fmi* i = stepping(&x);
        const uint32_t refs[2] = {0, 1};
        const int32_t orders[2] = {1, 2};
        const double in[2] = {3, 4};
        double out[2] = {0};
        const crd_status st = crd_fmi_set_input_derivatives(i, refs, 2, orders, in);
        check_status(st, version == 2 ? CRD_OK : CRD_E_UNSUPPORTED);
        check_ok(crd_fmi_get_output_derivatives(i, refs, 2, orders, out));
        check_near(out[0], version == 2 ? 3 : 10, 0);
        check_near(out[1], version == 2 ? 16 : 21, 0);
        const double seed[2] = {1, 10};
        check_ok(crd_fmi_directional_derivative(i, refs, 2, refs, 2, seed, out));
        check_near(out[0], 33, 0);
        check_near(out[1], 33, 0);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_every_size_go_in_and_come_back),
        cmocka_unit_test(a_number_too_large_for_its_type_is_refused_before_the_call),
        cmocka_unit_test(texts_bytes_and_single_floats_go_in_and_come_back),
        cmocka_unit_test(derivatives_pass_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
