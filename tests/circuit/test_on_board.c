// What controllers know of parts is what the rows of src/circuit/parts/ say.
#include "check.h"
#include "shared/circuit_part.h"

#define crdi_part_kinds board_kinds
#define crd_netlist_node board_node
#define crd_netlist_part board_part
const crdi_part_kind* const board_kinds[CRDI_PART_KINDS];
int32_t board_node(const crd_netlist* n, const char* name);
int32_t board_part(const crd_netlist* n, const char* name);
#include "circuit/on_board.c"
#undef crdi_part_kinds
#undef crd_netlist_node
#undef crd_netlist_part

static void parts_are_what_they_are_on_the_host(void** state)
{
    (void)state;
    int known = 0;
    for (int i = 0; i < CRDI_PART_KINDS; i++) {
        const crdi_part_kind *here = crdi_part_kinds[i], *there = board_kinds[i];
        assert_int_equal(there->linear, here->linear);
        if (!here->linear) { continue; }
        known++;
        assert_string_equal(there->article, here->article);
        assert_int_equal(there->unit == NULL, here->unit == NULL);
        assert_int_equal(there->fixes, here->fixes);
        assert_int_equal(there->control, here->control);
        assert_int_equal(there->stores, here->stores);
        assert_int_equal(there->model, here->model);
        assert_int_equal(there->couples, here->couples);
    }
    assert_int_equal(known, 10);
}

static void names_are_found_as_on_the_host(void** state)
{
    static const char text[] = "title\nR1 a b 1\nC1 b 0 1\nV1 A 0 1\n.tran 1m 1\n.end\n";
    static const char* const names[] = {"a", "A", "b", "0", "gnd", "GND", "c", "r1", "R1", "v1"};
    crd_context* ctx = crd_context_create(NULL);
    crd_netlist* n = NULL;
    (void)state;
    assert_int_equal(crd_netlist_parse(ctx, text, strlen(text), "x.cir", NULL, &n), CRD_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(board_node(n, names[i]), crd_netlist_node(n, names[i]));
        assert_int_equal(board_part(n, names[i]), crd_netlist_part(n, names[i]));
    }
    crd_netlist_destroy(n);
    crd_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_what_they_are_on_the_host),
        cmocka_unit_test(names_are_found_as_on_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
