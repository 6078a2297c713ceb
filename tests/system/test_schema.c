// The schema file for editors and the reader's tables say the same.
#include "check.h"
#include "json_tree.h"
#include "system/read.h"

#include <stdio.h>

static int set_up(void** state)
{
    *state = (void*)json_tree_of_file(SCHEMA_FILE);
    return 0;
}

// The file itself is the definition of the table "file".
static const crdi_json* definition(const crdi_json* root, const char* table)
{
    return strcmp(table, "file") == 0
               ? root
               : crdi_json_member(crdi_json_member(root, "definitions"), table);
}

static void the_schema_has_exactly_the_keys_of_the_tables(void** state)
{
    int count = 0, keys = 0;
    const crdi_table* const* tables = crdi_system_tables(&count);
    for (int i = 0; i < count; i++) {
        const crdi_json* def = definition(*state, tables[i]->name);
        if (!def) { fail_msg("no definition '%s' in the schema", tables[i]->name); }
        const crdi_json* properties = crdi_json_member(def, "properties");
        check(!crdi_json_get_bool(def, "additionalProperties", true));
        for (int k = 0; k < tables[i]->count; k++, keys++) {
            if (!crdi_json_member(properties, tables[i]->keys[k].name)) {
                fail_msg("%s.%s is not in the schema", tables[i]->name, tables[i]->keys[k].name);
            }
        }
        for (const crdi_json* p = crdi_json_first(properties); p; p = p->next) {
            bool known = false;
            for (int k = 0; k < tables[i]->count; k++) {
                known = known || strcmp(tables[i]->keys[k].name, p->key) == 0;
            }
            if (!known) { fail_msg("%s.%s is in the schema only", tables[i]->name, p->key); }
        }
        check_int(crdi_json_count(properties), tables[i]->count);
    }
    check_int(count, 22);
    check(keys > 105);
}

static bool lists(const crdi_json* array, const char* text)
{
    for (int i = 0; i < crdi_json_count(array); i++) {
        if (strcmp(json_text(crdi_json_item(array, i)), text) == 0) { return true; }
    }
    return false;
}

static void the_schema_requires_what_the_tables_require(void** state)
{
    int count = 0;
    const crdi_table* const* tables = crdi_system_tables(&count);
    for (int i = 0; i < count; i++) {
        const crdi_json* required =
            crdi_json_member(definition(*state, tables[i]->name), "required");
        size_t n = 0;
        for (int k = 0; k < tables[i]->count; k++) {
            if (!tables[i]->keys[k].required) { continue; }
            n++;
            if (!lists(required, tables[i]->keys[k].name)) {
                fail_msg("%s.%s is not required", tables[i]->name, tables[i]->keys[k].name);
            }
        }
        check_int(crdi_json_count(required), n);
    }
}

static const char* type_of(const crdi_json* property)
{
    const char* type = json_text(crdi_json_member(property, "type"));
    const crdi_json* parent = crdi_json_item(crdi_json_member(property, "allOf"), 0);
    const char* ref = json_text(crdi_json_member(parent, "$ref"));
    return ref ? strrchr(ref, '/') + 1 : type ? type : "";
}

static const char* item_type(const crdi_json* property)
{
    const crdi_json* items = crdi_json_member(property, "items");
    const char* ref = json_text(crdi_json_member(items, "$ref"));
    return ref ? strrchr(ref, '/') + 1 : "";
}

static void check_choices(const crdi_key* k, const crdi_json* property)
{
    const crdi_json* names = crdi_json_member(property, "enum");
    size_t n = 0;
    while (k->choices[n]) {
        check_text(json_text(crdi_json_item(names, (int)n)), k->choices[n]);
        n++;
    }
    check_int(crdi_json_count(names), n);
}

static void check_type(const crdi_key* k, const crdi_json* property)
{
    switch (k->type) {
    case CRDI_KEY_TEXT:
    case CRDI_KEY_PATH:
        check_text(type_of(property), "string");
        break;
    case CRDI_KEY_BOOL:
        check_text(type_of(property), "boolean");
        break;
    case CRDI_KEY_INT:
        check_text(type_of(property), "integer");
        check_int((int64_t)crdi_json_value(crdi_json_member(property, "minimum")), k->min);
        check_int((int64_t)crdi_json_value(crdi_json_member(property, "maximum")), k->max);
        break;
    case CRDI_KEY_SEED:
        check_text(type_of(property), "integer");
        break;
    case CRDI_KEY_NUMBER:
        check_text(type_of(property), "number");
        break;
    case CRDI_KEY_TIME:
        check_text(type_of(property), "time");
        break;
    case CRDI_KEY_FREQUENCY:
        check_text(type_of(property), "frequency");
        break;
    case CRDI_KEY_ANGLE:
        check_text(type_of(property), "angle");
        break;
    case CRDI_KEY_NUMBERS:
        check_text(item_type(property), "number");
        break;
    case CRDI_KEY_TIMES:
        check_text(item_type(property), "time");
        break;
    case CRDI_KEY_CHOICE:
    case CRDI_KEY_EITHER:
        check_choices(k, property);
        break;
    case CRDI_KEY_TEXTS:
    case CRDI_KEY_TABLE:
    case CRDI_KEY_OWN:
    case CRDI_KEY_NODE:
        break;
    }
    if (k->type == CRDI_KEY_INT || k->type == CRDI_KEY_SEED) { return; }
    check_int(crdi_json_member(property, "exclusiveMinimum") != NULL, k->range == CRDI_POSITIVE);
    check_int(crdi_json_member(property, "minimum") != NULL, k->range == CRDI_NOT_NEGATIVE);
}

static void the_schema_has_the_types_choices_and_ranges_of_the_tables(void** state)
{
    int count = 0;
    const crdi_table* const* tables = crdi_system_tables(&count);
    for (int i = 0; i < count; i++) {
        const crdi_json* properties =
            crdi_json_member(definition(*state, tables[i]->name), "properties");
        for (int k = 0; k < tables[i]->count; k++) {
            const crdi_key* key = &tables[i]->keys[k];
            check_type(key, crdi_json_member(properties, key->name));
        }
    }
}

// For each shape the reader asks for the first key that the schema requires, or for none.
static void the_schema_requires_per_shape_what_the_reader_requires(void** state)
{
    const crdi_json* signal = definition(*state, "signal");
    const crdi_json* shapes =
        crdi_json_member(crdi_json_member(crdi_json_member(signal, "properties"), "shape"), "enum");
    const crdi_json* rules = crdi_json_member(signal, "allOf");
    crd_context* ctx = crd_context_create(NULL);
    for (int i = 0; i < crdi_json_count(shapes); i++) {
        const char* shape = json_text(crdi_json_item(shapes, i));
        const crdi_json* required = NULL;
        for (int k = 0; k < crdi_json_count(rules); k++) {
            const crdi_json* rule = crdi_json_item(rules, k);
            const crdi_json* when =
                crdi_json_get_object(crdi_json_get_object(rule, "if"), "properties");
            const char* name = crdi_json_get_text(crdi_json_get_object(when, "shape"), "const");
            const crdi_json* then =
                crdi_json_get_list(crdi_json_get_object(rule, "then"), "required");
            check(*name && then);
            if (strcmp(name, shape) == 0) { required = then; }
        }
        char text[120];
        snprintf(text, sizeof text, "cardan: 1\nunits: { g: { signal: { shape: %s } } }\n", shape);
        crd_system* s = NULL;
        const crd_status st = crd_system_parse(ctx, text, strlen(text), "s.yaml", &s);
        check_status(st, required ? CRD_E_FORMAT : CRD_OK);
        if (required) {
            char part[60];
            const char* first = json_text(crdi_json_item(required, 0));
            snprintf(part, sizeof part, "shape %s needs the key '%s'", shape, first);
            check_contains(crd_error_text(ctx), part);
        }
        crd_system_destroy(s);
    }
    crd_context_destroy(ctx);
}

static char* page_text(void)
{
    static char page[131072];
    FILE* f = fopen(PAGE_FILE, "r");
    check(f != NULL);
    page[fread(page, 1, sizeof page - 1, f)] = 0;
    fclose(f);
    return page;
}

// The SSP of the example.
static crd_status below(crd_system* s, const char* path, const char* variant, crd_place place)
{
    check_text(path, "vehicle.ssp");
    check_text(variant, "winter");
    static const char text[] = "units: { drive_motor: { fmu: m.fmu }, body: { fmu: b.fmu } }\n";
    crd_status st = crd_system_amend(s, text, strlen(text), "SystemStructure.ssd", 1);
    crd_unit_spec unit = crd_unit_spec_defaults();
    unit.name = "drive.motor";
    unit.place = place;
    if (st == CRD_OK) { st = crd_system_add_unit(s, &unit, NULL); }
    return st;
}

static void the_examples_of_the_page_are_accepted(void** state)
{
    const char* page = page_text();
    crd_context* ctx = crd_context_create(NULL);
    int examples = 0;
    for (const char* p = strstr(page, "```yaml\n"); p; p = strstr(p, "```yaml\n")) {
        p += strlen("```yaml\n");
        const char* end = strstr(p, "```");
        check(end != NULL);
        crd_system* s = NULL;
        if (crd_system_load_on(ctx, p, (size_t)(end - p), "example", below, &s) != CRD_OK) {
            fail_msg("%s", crd_error_text(ctx));
        }
        crd_system_destroy(s);
        examples++;
    }
    crd_context_destroy(ctx);
    check(examples >= 3);
}

static void the_page_names_every_key(void** state)
{
    const char* page = page_text();
    int count = 0;
    const crdi_table* const* tables = crdi_system_tables(&count);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < tables[i]->count; k++) {
            char word[40];
            snprintf(word, sizeof word, "`%s`", tables[i]->keys[k].name);
            check_contains(page, word);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schema_has_exactly_the_keys_of_the_tables),
        cmocka_unit_test(the_schema_requires_what_the_tables_require),
        cmocka_unit_test(the_schema_has_the_types_choices_and_ranges_of_the_tables),
        cmocka_unit_test(the_schema_requires_per_shape_what_the_reader_requires),
        cmocka_unit_test(the_examples_of_the_page_are_accepted),
        cmocka_unit_test(the_page_names_every_key),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
