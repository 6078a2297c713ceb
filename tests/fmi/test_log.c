// What an FMU says, and how it is passed on.
#include <pthread.h>

#include "fmi/mock/fixture.h"

// ---- messages ----------------------------------------------------------------------------------

typedef struct heard {
    int count, status;
    char category[64], text[4096];
} heard;

static void hear(void* user, int status, const char* category, const char* text)
{
    heard* h = user;
    h->count++;
    h->status = status;
    snprintf(h->category, sizeof h->category, "%s", category);
    snprintf(h->text, sizeof h->text, "%s", text);
}

static void messages_are_worded_before_they_reach_us(void** state)
{
    static char tail[6000];
    memset(tail, '#', sizeof tail - 1);
    const struct {
        const char* format;
        const char* want; // FMI 2, then FMI 3
        const char* want3;
    } rows[] = {
        {"%d and %s\n", "7 and seven", "%d and %s"},
        {"#r0# drives #r1#, #i0#, #b0#, #s0#", "u drives y, k, on, text",
         "#r0# drives #r1#, #i0#, #b0#, #s0#"},
        {"#0# drives #1# with #2#", "#0# drives #1# with #2#", "u drives y with k"},
        {"##4 and #r99# and #x1# and #r#", "#4 and #r99# and #x1# and #r#",
         "#4 and #r99# and #x1# and #r#"},
        {"#99999999999# #r4294967296# #r1", "#99999999999# #r4294967296# #r1",
         "#99999999999# #r4294967296# #r1"},
        {"two\nlines\t%%", "two lines %", "two lines %%"},
        {"#", "#", "#"},
        {"", "", ""},
        {NULL, "", ""},
    };
    for (int version = 2; version <= 3; version++) {
        fixture x;
        heard h = {0};
        open_mock(&x, "messages", version);
        const crd_fmi_options opt = {.logger = hear, .logger_user = &h};
        x.mock->log_status = CRDI_FMI_WARNING;
        x.mock->category = "during instantiate";
        crd_fmi* i = instance_of(&x, &opt);
        check_int(h.count, 1);
        check_text(h.category, "during instantiate");
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            x.mock->format = rows[k].format;
            x.mock->category = k % 2 ? "solver" : NULL;
            check_ok(crd_fmi_set_real(i, &ref0, 1, &one, 1));
            check_text(h.text, version == 2 ? rows[k].want : rows[k].want3);
            check_text(h.category, k % 2 ? "solver" : "");
            check_int(h.status, CRDI_FMI_WARNING);
        }
        x.mock->format = tail; // longer than any buffer, and all escapes
        check_ok(crd_fmi_set_real(i, &ref0, 1, &one, 1));
        check(strlen(h.text) > 500 && strlen(h.text) < CRDI_FMI_TEXT);
        x.mock->log_status = 99; // no status at all
        check_ok(crd_fmi_set_real(i, &ref0, 1, &one, 1));
        check_int(h.status, CRDI_FMI_ERROR);
        check_int(x.line_count, 0); // ours went nowhere else
        crd_fmi_destroy(i);         // FreeInstance logs as well
        close_mock(&x);
    }
    crdi_fmi2_log(NULL, "bob", CRDI_FMI_ERROR, "", "a call without environment");
    crdi_fmi3_log(NULL, CRDI_FMI_ERROR, "", "likewise");
}

static void without_a_logger_messages_go_to_the_log_of_the_context(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "context", version);
        crd_fmi* i = instance_of(&x, NULL);
        x.mock->format = "hello";
        x.mock->category = "solver";
        static const crd_level levels[] = {CRD_LOG_DEBUG, CRD_LOG_WARNING, CRD_LOG_WARNING,
                                           CRD_LOG_ERROR, CRD_LOG_ERROR,   CRD_LOG_DEBUG};
        for (int s = 0; s < 6; s++) {
            x.line_count = 0;
            x.mock->log_status = s;
            check_ok(crd_fmi_set_real(i, &ref0, 1, &one, 1));
            check_int(x.line_count, 1);
            check_int(x.lines[0].level, levels[s]);
            check_text(x.lines[0].text, "bob: solver: hello");
        }
        crd_fmi_destroy(i);
        close_mock(&x);
    }
}

// FMUs hand back 1 or 2 as their environment, or nothing, or one that was freed; and formats that
// would write through their arguments.
static void an_environment_is_looked_up_and_never_followed(void** state)
{
    for (int version = 2; version <= 3; version++) {
        fixture x;
        open_mock(&x, "environment", version);
        crd_fmi* freed = instance_of(&x, NULL);
        crd_fmi_destroy(freed);
        crd_fmi* i = instance_of(&x, NULL);
        check_ok(crd_fmi_set_real(i, &ref0, 1, &one, 1)); // it is the one that was called last
        void* const odd[] = {NULL, (void*)1, (void*)2, (void*)-1, freed, &x};
        for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
            x.line_count = 0;
            if (version == 2) {
                crdi_fmi2_log(odd[k], (const char*)1, CRDI_FMI_ERROR, "", "step %d", 7);
            } else {
                crdi_fmi3_log(odd[k], CRDI_FMI_ERROR, "", "step 7");
            }
            check_int(x.line_count, 1);
            check_text(x.lines[0].text, "bob: step 7");
        }
        x.line_count = 0;
        int written = 4711;
        if (version == 2) {
            crdi_fmi2_log(i, "bob", CRDI_FMI_ERROR, "", "%d %hhn%n %lln100%% %s", 1, &written,
                          &written, &written, "end");
            check_int(written, 4711);
            check_contains(x.lines[0].text, "100% end");
        }
        crd_fmi_destroy(i);
        crdi_fmi3_log(i, CRDI_FMI_ERROR, "", "nobody lives there any more");
        close_mock(&x);
    }
}

static void an_error_is_not_hidden_by_a_warning_that_follows_it(void** state)
{
    fixture x;
    open_mock(&x, "hidden", 2);
    crd_fmi* i = instance_of(&x, NULL);
    char text[CRDI_FMI_TEXT];
    crdi_fmi2_log(i, "bob", CRDI_FMI_WARNING, "", "slow");
    crdi_fmi2_log(i, "bob", CRDI_FMI_ERROR, "", "singular");
    crdi_fmi2_log(i, "bob", CRDI_FMI_WARNING, "", "giving up");
    crdi_fmi2_log(i, "bob", CRDI_FMI_OK, "", "bye");
    crdi_fmi_take_text(i, text);
    check_text(text, "singular");
    crdi_fmi_take_text(i, text); // it has been told
    check_text(text, "");
    crdi_fmi2_log(i, "bob", CRDI_FMI_WARNING, "", "again");
    crdi_fmi_take_text(i, text);
    check_text(text, "again");
    crd_fmi_destroy(i);
    close_mock(&x);
}

static void* chat(void* user)
{
    crd_fmi* i = user;
    for (int n = 0; n < 500; n++) {
        crdi_fmi2_log(i, "bob", CRDI_FMI_WARNING, "thread", "%d", n);
    }
    return NULL;
}

static void an_fmu_may_log_from_its_own_threads(void** state)
{
    fixture x;
    open_mock(&x, "chat", 2);
    heard h = {0}; // written by the other thread alone while it runs
    const crd_fmi_options opt = {.logger = hear, .logger_user = &h};
    crd_fmi* i = instance_of(&x, &opt);
    pthread_t thread;
    check_int(pthread_create(&thread, NULL, chat, i), 0);
    for (int n = 0; n < 500; n++) {
        check_ok(crd_fmi_set_real(i, &ref0, 1, &one, 1));
    }
    check_int(pthread_join(thread, NULL), 0);
    check_int(h.count, 500);
    check_text(h.text, "499");
    crd_fmi_destroy(i);
    close_mock(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_worded_before_they_reach_us),
        cmocka_unit_test(without_a_logger_messages_go_to_the_log_of_the_context),
        cmocka_unit_test(an_environment_is_looked_up_and_never_followed),
        cmocka_unit_test(an_error_is_not_hidden_by_a_warning_that_follows_it),
        cmocka_unit_test(an_fmu_may_log_from_its_own_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
