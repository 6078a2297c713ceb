// The schema file for editors and the reader's tables say the same.
#include "check.h"
#include "system/read.h"

#include <jansson.h>
#include <stdio.h>

static int set_up(void** state)
{
    json_error_t error;
    json_t* root = json_load_file(SCHEMA_FILE, 0, &error);
    if (!root) { fprintf(stderr, "%s:%d: %s\n", SCHEMA_FILE, error.line, error.text); }
    *state = root;
    return root ? 0 : -1;
}

static int tear_down(void** state)
{
    json_decref(*state);
    return 0;
}

// The file itself is the definition of the table "file".
static json_t* definition(json_t* root, const char* table)
{
    return strcmp(table, "file") == 0
               ? root
               : json_object_get(json_object_get(root, "definitions"), table);
}

static void the_schema_has_exactly_the_keys_of_the_tables(void** state)
{
    int count = 0, keys = 0;
    const crdi_table* const* tables = crdi_system_tables(&count);
    for (int i = 0; i < count; i++) {
        json_t* def = definition(*state, tables[i]->name);
        if (!def) { fail_msg("no definition '%s' in the schema", tables[i]->name); }
        json_t* properties = json_object_get(def, "properties");
        check(json_is_false(json_object_get(def, "additionalProperties")));
        for (int k = 0; k < tables[i]->count; k++, keys++) {
            if (!json_object_get(properties, tables[i]->keys[k].name)) {
                fail_msg("%s.%s is not in the schema", tables[i]->name, tables[i]->keys[k].name);
            }
        }
        const char* name;
        json_t* value;
        json_object_foreach(properties, name, value)
        {
            bool known = false;
            for (int k = 0; k < tables[i]->count; k++) {
                known = known || strcmp(tables[i]->keys[k].name, name) == 0;
            }
            if (!known) { fail_msg("%s.%s is in the schema only", tables[i]->name, name); }
        }
        check_int(json_object_size(properties), tables[i]->count);
    }
    check_int(count, 19);
    check(keys > 105);
}

static bool lists(const json_t* array, const char* text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (strcmp(json_string_value(json_array_get(array, i)), text) == 0) { return true; }
    }
    return false;
}

static void the_schema_requires_what_the_tables_require(void** state)
{
    int count = 0;
    const crdi_table* const* tables = crdi_system_tables(&count);
    for (int i = 0; i < count; i++) {
        const json_t* required = json_object_get(definition(*state, tables[i]->name), "required");
        size_t n = 0;
        for (int k = 0; k < tables[i]->count; k++) {
            if (!tables[i]->keys[k].required) { continue; }
            n++;
            if (!lists(required, tables[i]->keys[k].name)) {
                fail_msg("%s.%s is not required", tables[i]->name, tables[i]->keys[k].name);
            }
        }
        check_int(json_array_size(required), n);
    }
}

static const char* type_of(const json_t* property)
{
    const char* type = json_string_value(json_object_get(property, "type"));
    const json_t* parent = json_array_get(json_object_get(property, "allOf"), 0);
    const char* ref = json_string_value(json_object_get(parent, "$ref"));
    return ref ? strrchr(ref, '/') + 1 : type ? type : "";
}

static const char* item_type(const json_t* property)
{
    const json_t* items = json_object_get(property, "items");
    const char* ref = json_string_value(json_object_get(items, "$ref"));
    return ref ? strrchr(ref, '/') + 1 : "";
}

static void check_choices(const crdi_key* k, const json_t* property)
{
    const json_t* names = json_object_get(property, "enum");
    size_t n = 0;
    while (k->choices[n]) {
        check_text(json_string_value(json_array_get(names, n)), k->choices[n]);
        n++;
    }
    check_int(json_array_size(names), n);
}

static void check_type(const crdi_key* k, const json_t* property)
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
        check_int(json_integer_value(json_object_get(property, "minimum")), k->min);
        check_int(json_integer_value(json_object_get(property, "maximum")), k->max);
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
        check_choices(k, property);
        break;
    case CRDI_KEY_TEXTS:
    case CRDI_KEY_NODE:
        break;
    }
    if (k->type == CRDI_KEY_INT || k->type == CRDI_KEY_SEED) { return; }
    check_int(json_object_get(property, "exclusiveMinimum") != NULL, k->range == CRDI_POSITIVE);
    check_int(json_object_get(property, "minimum") != NULL, k->range == CRDI_NOT_NEGATIVE);
}

static void the_schema_has_the_types_choices_and_ranges_of_the_tables(void** state)
{
    int count = 0;
    const crdi_table* const* tables = crdi_system_tables(&count);
    for (int i = 0; i < count; i++) {
        const json_t* properties =
            json_object_get(definition(*state, tables[i]->name), "properties");
        for (int k = 0; k < tables[i]->count; k++) {
            const crdi_key* key = &tables[i]->keys[k];
            check_type(key, json_object_get(properties, key->name));
        }
    }
}

// For each shape the reader asks for the first key that the schema requires, or for none.
static void the_schema_requires_per_shape_what_the_reader_requires(void** state)
{
    const json_t* signal = definition(*state, "signal");
    const json_t* shapes =
        json_object_get(json_object_get(json_object_get(signal, "properties"), "shape"), "enum");
    const json_t* rules = json_object_get(signal, "allOf");
    crd_context* ctx = crd_context_create(NULL);
    for (size_t i = 0; i < json_array_size(shapes); i++) {
        const char* shape = json_string_value(json_array_get(shapes, i));
        const json_t* required = NULL;
        for (size_t k = 0; k < json_array_size(rules); k++) {
            const char* name = NULL;
            json_t* then = NULL;
            check(json_unpack(json_array_get(rules, k), "{s:{s:{s:{s:s}}}, s:{s:o}}", "if",
                              "properties", "shape", "const", &name, "then", "required",
                              &then) == 0);
            if (strcmp(name, shape) == 0) { required = then; }
        }
        char text[120];
        snprintf(text, sizeof text, "cardan: 1\nunits: { g: { signal: { shape: %s } } }\n", shape);
        crd_system* s = NULL;
        const crd_status st = crd_system_parse(ctx, text, strlen(text), "s.yaml", &s);
        check_status(st, required ? CRD_E_FORMAT : CRD_OK);
        if (required) {
            char part[60];
            const char* first = json_string_value(json_array_get(required, 0));
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
    (void)state;
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
    (void)state;
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
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
