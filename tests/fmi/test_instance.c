// Making and ending instances of mock FMUs: what reaches the FMU, and what is refused.
#include <pthread.h>
#include <unistd.h>

#include "fmi/foreign.h"
#include "fmi/mock/fixture.h"
#include "shared/fmi_build.h"

// ---- order and arguments -----------------------------------------------------------------------

static void a_run_calls_the_fmu_in_the_order_of_the_standard(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "order", version);
        crd_fmi* i = instance_of(&x, NULL);
        double y = 0;
        crd_fmi_step step;
        check_ok(crd_fmi_set_real(i, &ref0, 1, &one, 1));
        check_ok(crd_fmi_enter_initialization(i, true, 1e-6, 0.5, true, 9));
        check_ok(crd_fmi_get_real(i, &ref1, 1, &y, 1));
        check_ok(crd_fmi_exit_initialization(i));
        check_ok(crd_fmi_set_real(i, &ref0, 1, &one, 1));
        check_ok(crd_fmi_do_step(i, 0.5, 0.25, true, &step));
        check_near(step.reached, 0.75, 0);
        check(!step.early && !step.discarded && !step.event_needed && !step.terminate);
        check_ok(crd_fmi_get_real(i, &ref1, 1, &y, 1));
        check_near(y, 0.25, 0);
        check_text(crd_fmi_last_call(i), version == 2 ? "fmi2GetReal" : "fmi3GetFloat64");
        crd_fmi_destroy(i); // terminates first
        check_trace(&x, version == 2
                            ? "Instantiate SetReal SetupExperiment EnterInitializationMode "
                              "GetReal ExitInitializationMode SetReal DoStep GetReal "
                              "Terminate FreeInstance"
                            : "InstantiateCoSimulation SetFloat64 EnterInitializationMode "
                              "GetFloat64 ExitInitializationMode SetFloat64 DoStep "
                              "GetFloat64 Terminate FreeInstance");
        check_near(x.mock->tolerance, 1e-6, 0);
        check_near(x.mock->start, 0.5, 0);
        check_near(x.mock->stop, 9, 0);
        check(x.mock->no_rollback);
        check_int(x.mock->live, 0);
        close_mock(&x);
    }
}

static void name_token_and_flags_arrive_as_they_are(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "arguments", version);
        const crd_fmi_options opt = {.instance_name = "left.motor",
                                     .logging_on = true,
                                     .visible = true,
                                     .early_return = true,
                                     .event_mode = true};
        crd_fmi* i = instance_of(&x, &opt);
        check_text(x.mock->name, "left.motor");
        check_text(x.mock->token, "{mock & token}");
        check(x.mock->logging_on && x.mock->visible);
        if (version == 2) {
            check_int(x.mock->allocated, 64);
        } else {
            check(x.mock->event_mode && x.mock->early_return && !x.mock->has_intermediate);
        }
        check_int(crd_fmi_get_state(i), CRD_FMI_INSTANTIATED);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void resources_come_as_a_uri_in_fmi2_and_as_a_path_in_fmi3(void** state)
{
    fixture x;
    char want[1024];
    open_at(&x, "a b%\xc3\xbc#", 2, "mock2", PLATFORM2, ALL2);
    crd_fmi_destroy(instance_of(&x, NULL));
    check(strncmp(x.mock->resources, "file:///", 8) == 0);
    check_contains(x.mock->resources, "/instance/a%20b%25%C3%BC%23/resources");
    check(x.mock->resources[strlen(x.mock->resources) - 1] != '/');
    close_mock(&x);

    open_at(&x, "a b%\xc3\xbc# 3", 3, "mock3", PLATFORM3, ALL3);
    crd_fmi_destroy(instance_of(&x, NULL));
    check(x.mock->resources[0] == '/');
    check_contains(x.mock->resources, "/instance/a b%\xc3\xbc# 3/resources/");
    snprintf(want, sizeof want, "%s/resources", x.folder);
    check(rmdir(want) == 0);
    crd_fmi_destroy(instance_of(&x, NULL));
    check(!x.mock->has_resources);
    close_mock(&x);
}

static void the_other_name_of_the_platform_serves_too(void** state)
{
    fixture x;
    open_at(&x, "tuple", 2, "mock2", PLATFORM3, ALL2);
    crd_fmi_destroy(instance_of(&x, NULL));
    close_mock(&x);
    open_at(&x, "legacy", 3, "mock3", PLATFORM2, ALL3);
    crd_fmi_destroy(instance_of(&x, NULL));
    close_mock(&x);
}

// Whether the tool is there shows when the library is loaded; many generators always say so.
static void an_fmu_that_needs_its_tool_is_tried(void** state)
{
    fixture x;
    open_at(&x, "tool", 2, "mock2", PLATFORM2, "needsExecutionTool=\"true\"");
    crd_fmi_destroy(instance_of(&x, NULL));
    close_mock(&x);
}

// ---- what cannot be instantiated ---------------------------------------------------------------

static void refused(fixture* x, crd_status want, const char* part)
{
    const crd_fmi_options opt = {.instance_name = "bob"};
    crd_fmi* i = NULL;
    check_status(crd_fmi_instantiate(x->ctx, x->fmu, &opt, &i), want);
    check(i == NULL);
    check_contains(crd_error_text(x->ctx), part);
    close_mock(x);
}

static void what_cannot_run_is_refused_with_a_sentence(void** state)
{
    fixture x;
    open_at(&x, "elsewhere", 2, "mock2", "win64", ALL2);
    refused(&x, CRD_E_UNSUPPORTED, "binaries/" PLATFORM2 "/mock.so");
    open_at(&x, "elsewhere3", 3, "mock3", "aarch64-darwin", ALL3);
    refused(&x, CRD_E_UNSUPPORTED, "aarch64-darwin");
    open_at(&x, "broken", 2, "mock2_broken", PLATFORM2, ALL2);
    refused(&x, CRD_E_FORMAT,
            "/broken: binaries/" PLATFORM2 "/mock.so: the library has no function "
            "fmi2DoStep");
    open_at(&x, "broken", 3, "mock3_broken", PLATFORM3, ALL3);
    refused(&x, CRD_E_FORMAT, "fmi3GetFloat64");
    open_mock(&x, "types", 2);
    x.mock->types = "standard32";
    refused(&x, CRD_E_UNSUPPORTED, "standard32");

    open_mock(&x, "unloadable", 2);
    dlclose(x.handle);
    x.handle = NULL;
    const crd_fmi_options opt = {.instance_name = "bob"}, nameless = {.instance_name = ""};
    crd_fmi* i = NULL;
    remove(x.library);
    write_file(x.library, "no library", 10);
    check_status(crd_fmi_instantiate(x.ctx, x.fmu, &opt, &i), CRD_E_UNIT);
    check_contains(crd_error_text(x.ctx), "mock.so: the library cannot be loaded");
    check_status(crd_fmi_instantiate(x.ctx, x.fmu, &nameless, &i), CRD_E_RANGE);
    close_mock(&x);
}

static void an_fmu_that_refuses_is_quoted(void** state)
{
    for (int version = 2; version <= 3; version++) {
        for (int talks = 0; talks <= 1; talks++) {
            fixture x;
            open_mock(&x, "refuses", version);
            x.mock->refuse = true;
            x.mock->log_status = talks ? CRDI_FMI_ERROR : 0;
            x.mock->format = talks ? "wrong GUID" : NULL;
            refused(&x, CRD_E_UNIT, talks ? "its last message: wrong GUID" : "gave no reason");
        }
    }
}

static void a_library_of_another_version_is_noted(void** state)
{
    fixture x;
    open_mock(&x, "version", 2);
    x.mock->version = "1.0";
    crd_fmi_destroy(instance_of(&x, NULL));
    check_int(lines_with(&x, CRD_LOG_WARNING, "FMI version '1.0'"), 1);
    close_mock(&x);
}

static void an_fmu_for_one_instance_per_process_gets_one(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_at(&x, version == 2 ? "once2" : "once3", version, version == 2 ? "mock2" : "mock3",
                version == 2 ? PLATFORM2 : PLATFORM3,
                "canBeInstantiatedOnlyOncePerProcess=\"true\"");
        crd_fmi* i = instance_of(&x, NULL);
        const crd_fmi_options opt = {.instance_name = "eve"};
        crd_fmi* second = NULL;
        check_status(crd_fmi_instantiate(x.ctx, x.fmu, &opt, &second), CRD_E_UNSUPPORTED);
        check_contains(crd_error_text(x.ctx), "only once per process and the instance bob");
        check_int(x.mock->live, 1);
        crd_fmi_destroy(i);
        crd_fmi_destroy(instance_of(&x, &opt)); // after the first is gone it is free again
        close_mock(&x);
    }
}

static void every_failing_allocation_is_survived(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "memory", version);
        const crd_fmi_options opt = {.instance_name = "bob"};
        const int64_t live = x.memory.live;
        int64_t failures = 0;
        for (;; failures++) {
            crd_fmi* i = NULL;
            x.memory.fail_at = x.memory.allocations + failures;
            const crd_status st = crd_fmi_instantiate(x.ctx, x.fmu, &opt, &i);
            x.memory.fail_at = -1;
            if (st == CRD_OK) {
                crd_fmi_destroy(i);
                check_int(x.memory.live, live);
                break;
            }
            check_status(st, CRD_E_MEMORY);
            check_int(x.memory.live, live);
            check_int(x.mock->live, 0);
        }
        check(failures >= 1);
        close_mock(&x);
    }
}

// ---- functions that are not there --------------------------------------------------------------

static void a_missing_optional_function_is_named_when_it_is_wanted(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_at(&x, version == 2 ? "lean2" : "lean3", version,
                version == 2 ? "mock2_lean" : "mock3_lean", version == 2 ? PLATFORM2 : PLATFORM3,
                version == 2 ? ALL2 : ALL3);
        crd_fmi* i = stepping(&x);
        double d = 0;
        int64_t k = 0;
        void* saved = NULL;
        check_status(crd_fmi_directional_derivative(i, &ref1, 1, &ref0, 1, &one, &d),
                     CRD_E_UNSUPPORTED);
        check_contains(crd_error_text(x.ctx), "GetDirectionalDerivative");
        check_contains(crd_error_text(x.ctx), version == 2 ? "lean2" : "lean3");
        check_status(crd_fmi_save(i, &saved), CRD_E_UNSUPPORTED);
        check_contains(crd_error_text(x.ctx), version == 2 ? "fmi2GetFMUstate" : "fmi3GetFMUState");
        check(saved == NULL);
        check_status(crd_fmi_get_integer(i, CRD_INT32, &ref0, 1, &k, 1), CRD_E_UNSUPPORTED);
        check_status(crd_fmi_reset(i), CRD_E_UNSUPPORTED);
        check_contains(crd_error_text(x.ctx), version == 2 ? "fmi2Reset" : "fmi3Reset");
        if (version == 2) { // a discarded step whose reach cannot be asked for
            crd_fmi_step step;
            x.mock->status[CRDI_FMI2_DoStep] = CRDI_FMI_DISCARD;
            check_ok(crd_fmi_do_step(i, 1, 0.5, true, &step));
            check_near(step.reached, 1, 0);
            check(step.discarded);
        }
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void a_pending_step_without_get_status_is_a_failure(void** state)
{
    fixture x;
    open_at(&x, "lean_pending", 2, "mock2_lean", PLATFORM2, ALL2);
    crd_fmi* i = stepping(&x);
    crd_fmi_step step;
    x.mock->status[CRDI_FMI2_DoStep] = CRDI_FMI_PENDING;
    check_status(crd_fmi_do_step(i, 0, 1, true, &step), CRD_E_UNSUPPORTED);
    check_contains(crd_error_text(x.ctx), "fmi2GetStatus");
    crd_fmi_destroy(i);
    close_mock(&x);
}

static void what_the_description_does_not_offer_is_not_tried(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_at(&x, version == 2 ? "plain2" : "plain3", version, version == 2 ? "mock2" : "mock3",
                version == 2 ? PLATFORM2 : PLATFORM3, "");
        crd_fmi* i = stepping(&x);
        const int calls = x.mock->calls;
        double d = 0;
        uint8_t bytes[16] = {0};
        size_t size = 0;
        const int32_t order = 1;
        void* saved = NULL;
        check_status(crd_fmi_directional_derivative(i, &ref1, 1, &ref0, 1, &one, &d),
                     CRD_E_UNSUPPORTED);
        check_contains(crd_error_text(x.ctx), "providesDirectionalDerivative");
        check_status(crd_fmi_save(i, &saved), CRD_E_UNSUPPORTED);
        check_contains(crd_error_text(x.ctx), "canGetAndSetFMU");
        check_status(crd_fmi_serialized_size(i, NULL, &size), CRD_E_UNSUPPORTED);
        check_status(crd_fmi_serialize(i, NULL, bytes, 16), CRD_E_UNSUPPORTED);
        check_status(crd_fmi_deserialize(i, bytes, 16, &saved), CRD_E_UNSUPPORTED);
        check_status(crd_fmi_restore(i, NULL), CRD_E_UNSUPPORTED);
        check_status(crd_fmi_set_input_derivatives(i, &ref0, 1, &order, &one), CRD_E_UNSUPPORTED);
        check_status(crd_fmi_enter_event_mode(i), version == 2 ? CRD_E_UNSUPPORTED : CRD_E_STATE);
        check_int(x.mock->calls, calls);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

// ---- the end, memory, threads ------------------------------------------------------------------

static void inside_of_a_step_floats_may_be_set_and_values_read_as_the_fmu_permits(void** state)
{
    fixture x;
    open_mock(&x, "intermediate", 3);
    crd_fmi* i = instance_of(&x, NULL);
    const struct {
        int function;
        bool sets;
    } rows[] = {{CRDI_FMI3_SetFloat64, true},  {CRDI_FMI3_SetFloat32, true},
                {CRDI_FMI3_GetFloat64, false}, {CRDI_FMI3_GetFloat32, false},
                {CRDI_FMI3_GetInt32, false},   {CRDI_FMI3_GetString, false}};
    for (int permits = 0; permits < 4; permits++) {
        const bool may_set = permits & 1, may_get = permits & 2;
        crdi_fmi_set_intermediate(i, may_set, may_get);
        check_int(crd_fmi_get_state(i), CRD_FMI_INTERMEDIATE);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            const int f = rows[k].function;
            check((i->library->present[f / 64] >> (f % 64)) & 1);
            check_int((i->allowed[f / 64] >> (f % 64)) & 1, rows[k].sets ? may_set : may_get);
        }
        const int never[] = {CRDI_FMI3_SetInt32, CRDI_FMI3_DoStep, CRDI_FMI3_Terminate};
        for (int k = 0; k < 3; k++) {
            check_int((i->allowed[never[k] / 64] >> (never[k] % 64)) & 1, 0);
        }
    }
    crdi_fmi_set_state(i, CRD_FMI_INSTANTIATED);
    crd_fmi_destroy(i);
    close_mock(&x);
}

static void an_abandoned_instance_is_not_called_again(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "abandon", version);
        crd_fmi* i = stepping(&x);
        const int calls = x.mock->calls;
        crd_fmi_abandon(i);
        check_int(x.mock->calls, calls);
        check_int(x.mock->live, 1);
        close_mock(&x); // nothing of ours is left
    }
}

static void ten_thousand_steps_allocate_nothing(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "steps", version);
        crd_fmi* i = stepping(&x);
        const uint32_t refs[4] = {0, 1, 2, 3};
        double values[4] = {1, 2, 3, 4};
        int64_t integer[4] = {1, 2, 3, 4};
        crd_fmi_step step;
        check_ok(crd_fmi_reserve(i, 4));
        check_ok(crd_fmi_reserve(i, 2));
        const int64_t allocations = x.memory.allocations;
        for (int n = 0; n < 10000; n++) {
            check_ok(crd_fmi_set_real(i, refs, 4, values, 4));
            check_ok(crd_fmi_set_integer(i, CRD_INT32, refs, 4, integer, 4));
            check_ok(crd_fmi_do_step(i, n, 1, true, &step));
            check_ok(crd_fmi_get_real(i, refs, 4, values, 4));
            check_ok(crd_fmi_get_integer(i, CRD_BOOLEAN, refs, 4, integer, 4));
        }
        check_int(x.memory.allocations, allocations);
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

static void* run_steps(void* user)
{
    crd_fmi* i = user;
    crd_fmi_step step;
    for (int n = 0; n < 2000; n++) {
        if (crd_fmi_set_real(i, &ref0, 1, &one, 1) < 0) { return NULL; }
        if (crd_fmi_do_step(i, n, 1, true, &step) < 0) { return NULL; }
    }
    return i;
}

static void two_instances_run_on_two_threads(void** state)
{
    fixture a, b; // two libraries: the mock counts without locks
    open_mock(&a, "thread_a", 2);
    open_mock(&b, "thread_b", 3);
    crd_fmi *i = stepping(&a), *j = stepping(&b);
    pthread_t one_thread, other;
    void *ri = NULL, *rj = NULL;
    check_int(pthread_create(&one_thread, NULL, run_steps, i), 0);
    check_int(pthread_create(&other, NULL, run_steps, j), 0);
    check_int(pthread_join(one_thread, &ri), 0);
    check_int(pthread_join(other, &rj), 0);
    check(ri == i && rj == j);
    check_int(a.mock->count[CRDI_FMI2_DoStep], 2000);
    check_int(b.mock->count[CRDI_FMI3_DoStep], 2000);
    crd_fmi_destroy(i);
    crd_fmi_destroy(j);
    close_mock(&a);
    close_mock(&b);
}

static void use_once(crd_context* ctx, crd_fmu* f)
{
    crd_fmi* i = NULL;
    check_ok(crd_fmi_instantiate(ctx, f, &(crd_fmi_options){.instance_name = "i"}, &i));
    crd_fmi_destroy(i);
}

static void a_library_that_remembers_nothing_stays_for_the_next_instance(void** state)
{
    (void)state;
    for (int version = 2; version <= 3; version++) {
        char path[512];
        crd_context* ctx = crd_context_create(NULL);
        crd_fmu *ours = NULL, *theirs = NULL;
        snprintf(path, sizeof path, TEST_BUILD_DIR "/fmus/fmi%d/lo_fd1.fmu", version);
        check_ok(crd_fmu_open(ctx, path, NULL, &ours));
        check_ok(crd_fmu_open(ctx, crd_fmu_folder(ours), NULL, &theirs));
        char* folder = realpath(crd_fmu_folder(ours), NULL);
        use_once(ctx, theirs); // whose files may change
        check(!crdi_fmi_is_loaded(folder) && !crdi_fmu_lingers(theirs));
        use_once(ctx, ours);
        check(crdi_fmi_is_loaded(folder) && !crdi_fmu_lingers(ours));
        use_once(ctx, ours);
        check(!crdi_fmu_lingers(ours));
        use_once(ctx, theirs); // the same object, which is still there now
        check(crdi_fmu_lingers(theirs));
        crd_fmu_close(theirs);
        crd_fmu_close(ours);
        check(!crdi_fmi_is_loaded(folder));
        free(folder);
        crd_context_destroy(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_calls_the_fmu_in_the_order_of_the_standard),
        cmocka_unit_test(name_token_and_flags_arrive_as_they_are),
        cmocka_unit_test(resources_come_as_a_uri_in_fmi2_and_as_a_path_in_fmi3),
        cmocka_unit_test(the_other_name_of_the_platform_serves_too),
        cmocka_unit_test(an_fmu_that_needs_its_tool_is_tried),
        cmocka_unit_test(what_cannot_run_is_refused_with_a_sentence),
        cmocka_unit_test(an_fmu_that_refuses_is_quoted),
        cmocka_unit_test(a_library_of_another_version_is_noted),
        cmocka_unit_test(an_fmu_for_one_instance_per_process_gets_one),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(a_missing_optional_function_is_named_when_it_is_wanted),
        cmocka_unit_test(a_pending_step_without_get_status_is_a_failure),
        cmocka_unit_test(what_the_description_does_not_offer_is_not_tried),
        cmocka_unit_test(inside_of_a_step_floats_may_be_set_and_values_read_as_the_fmu_permits),
        cmocka_unit_test(an_abandoned_instance_is_not_called_again),
        cmocka_unit_test(ten_thousand_steps_allocate_nothing),
        cmocka_unit_test(two_instances_run_on_two_threads),
        cmocka_unit_test(a_library_that_remembers_nothing_stays_for_the_next_instance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
