// A remote slave as a model: its table of bytes, its rows, and what is refused.
#include "allocations.h"
#include "check.h"
#include "rig_description.h"
#include "shared/dcp_model.h"

#include <stdio.h>

static crdi_dcp_model_options options(void)
{
    return (crdi_dcp_model_options){
        .name = "rig", .address = "udp://127.0.0.1:8080", .mode = CRD_DCP_NRT};
}

// The rig, made from its file.
static crd_dcp_description* load(crd_context* ctx)
{
    crd_dcp_description* d = NULL;
    check_ok(crd_dcp_load(ctx, TEST_SOURCE_DIR "/dcp/data/rig.dcpx", &d, NULL, NULL));
    return d;
}

static crd_text pack(crd_context* ctx, const crd_dcp_description* d)
{
    crd_text t;
    crd_text_init(&t, ctx);
    const crdi_dcp_model_options opt = options();
    check_ok(crdi_dcp_model_pack(d, &opt, &t));
    return t;
}

static const crd_model_variable* find(const crd_model* m, const char* name)
{
    for (int i = 0; i < m->variable_count; i++) {
        if (strcmp(m->variables[i].name, name) == 0) { return &m->variables[i]; }
    }
    fail_msg("no variable %s", name);
    return NULL;
}

static void the_rows_are_the_variables_of_the_description(void** state)
{
    crd_dcp_description* d = load(*state);
    crd_text t = pack(*state, d);
    const crd_model* m = NULL;
    check_ok(crdi_dcp_model_create(*state, t.data, t.length, "rig", &m));
    check_text(m->name, "rig");
    int structural = 0;
    for (int i = 0; i < d->variable_count; i++) {
        const crd_dcp_variable* v = &d->variables[i];
        if (v->causality == CRD_STRUCTURAL_PARAMETER) {
            structural++;
            continue;
        }
        const crd_model_variable* row = find(m, v->name);
        check_int(row->causality, v->causality);
        check_int(row->size > 0, v->rank > 0);
        if (!isnan(v->min)) { check_near(row->min, v->min, 0); }
        if (v->type == CRD_DCP_STRING) { check_text(row->start_text, v->start ? v->start : ""); }
    }
    check(structural > 0);
    check_int(m->variable_count, d->variable_count - structural + 2);
    check_text(find(m, "dcp.address")->start_text, "udp://127.0.0.1:8080");
    check(m->stateless && m->terminate && m->clear);
    char* self = calloc(1, m->size);
    check(self);
    crd_model_reset(m, self); // under the sanitizers: all fields are inside
    m->clear(self);
    free(self);
    crdi_dcp_model_destroy(m);
    crd_text_clear(&t);
    crd_dcp_description_destroy(d);
}

static void descriptions_in_read_only_memory_are_packed(void** state)
{
    crd_dcp_description d = rig_description();
    d.ctx = *state;
    crd_text t = pack(*state, &d), again = pack(*state, &d);
    check_int(t.length, again.length);
    check(memcmp(t.data, again.data, t.length) == 0);
    crd_text_clear(&t);
    crd_text_clear(&again);
}

static void torn_and_damaged_tables_are_refused_or_at_least_harmless(void** state)
{
    crd_dcp_description* d = load(*state);
    crd_text t = pack(*state, d);
    for (size_t n = 0; n < t.length; n++) {
        const crd_model* m = NULL;
        char* part = malloc(n ? n : 1); // its end is its end
        memcpy(part, t.data, n);
        check_status(crdi_dcp_model_create(*state, part, n, "torn", &m), CRD_E_FORMAT);
        free(part);
    }
    uint64_t seed = 1;
    for (int k = 0; k < 3000; k++) {
        const crd_model* m = NULL;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const size_t at = (size_t)(seed >> 33) % t.length;
        const char was = t.data[at];
        t.data[at] = (char)(seed >> 20);
        if (crdi_dcp_model_create(*state, t.data, t.length, "damaged", &m) == CRD_OK) {
            char* self = calloc(1, m->size);
            if (self) { crd_model_reset(m, self); }
            free(self);
        }
        crdi_dcp_model_destroy(m);
        t.data[at] = was;
    }
    crd_text_clear(&t);
    crd_dcp_description_destroy(d);
}

static void modes_and_resolutions_that_are_not_offered_are_refused(void** state)
{
    crd_dcp_description* d = load(*state);
    crd_text t;
    crd_text_init(&t, *state);
    crdi_dcp_model_options opt = options();
    opt.mode = CRD_DCP_HRT;
    check_status(crdi_dcp_model_pack(d, &opt, &t), CRD_E_RANGE);
    check(strstr(crd_error_text(*state), "does not offer HRT"));
    opt = options();
    opt.numerator = 1;
    opt.denominator = 7;
    check_status(crdi_dcp_model_pack(d, &opt, &t), CRD_E_RANGE);
    check(strstr(crd_error_text(*state), "1/7 s"));
    crd_text_clear(&t);
    crd_dcp_description_destroy(d);
}

static void folders_without_a_table_say_so(void** state)
{
    char message[200];
    check(!crdi_dcp_model_load(TEST_BUILD_DIR "/nowhere", message, sizeof message));
    check(strstr(message, "slave.table"));
}

static crd_status create_of(crd_context* ctx, const void* user)
{
    const crd_text* t = user;
    const crd_model* m = NULL;
    const crd_status st = crdi_dcp_model_create(ctx, t->data, t->length, "rig", &m);
    crdi_dcp_model_destroy(m);
    return st;
}

static void every_allocation_may_fail(void** state)
{
    crd_dcp_description* d = load(*state);
    crd_text t = pack(*state, d);
    check_allocations(create_of, &t);
    crd_text_clear(&t);
    crd_dcp_description_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_are_the_variables_of_the_description),
        cmocka_unit_test(descriptions_in_read_only_memory_are_packed),
        cmocka_unit_test(torn_and_damaged_tables_are_refused_or_at_least_harmless),
        cmocka_unit_test(modes_and_resolutions_that_are_not_offered_are_refused),
        cmocka_unit_test(folders_without_a_table_say_so),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, check_set_up, check_tear_down);
}
