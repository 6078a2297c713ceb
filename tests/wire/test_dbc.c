// DBC files: what they mean, and what is wrong with them by file, line, value and what would be
// right. Bits have peer_dbc.py.
#include "check.h"
#include "shared/wire_can.h"

#define HEAD "VERSION \"\"\nBU_: A B\nBO_ 10 One: 8 A\n" // lines 1 to 3
#define X " SG_ X : 0|8@1+ (1,0) [0|0] \"\" B\n"

static void refuse(const char* text, const char* first, const char* second)
{
    crd_context* ctx = crd_context_create(NULL);
    crd_arena arena;
    crdi_wire_catalog c;
    crd_arena_init(&arena, ctx);
    if (crdi_wire_dbc_parse(&arena, "car.dbc", text, strlen(text), &c) != CRD_E_FORMAT) {
        fail_msg("this is not refused: %s", text);
    }
    check_contains(crd_error_text(ctx), first);
    check_contains(crd_error_text(ctx), second);
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
}

static void wrong_files_are_told_with_their_lines(void** state)
{
    (void)state;
    refuse(HEAD X " SG_ Y : 7|2@1+ (1,0) [0|0] \"\" B\n", "car.dbc:5: ", "overlaps X");
    refuse(HEAD " SG_ X : 60|8@1+ (1,0) [0|0] \"\" B\n", "car.dbc:4: ", "64 bits (8 bytes)");
    refuse(HEAD " SG_ X : 56|16@0+ (1,0) [0|0] \"\" B\n", "car.dbc:4: ", "behind the end");
    refuse(HEAD " SG_ X m1 : 0|8@1+ (1,0) [0|0] \"\" B\n", "car.dbc:4: ", "no signal with M");
    refuse(HEAD X "SG_MUL_VAL_ 10 X Nowhere 0-1;\n", "car.dbc:5: ", "no signal 'Nowhere'");
    refuse(HEAD X "SG_MUL_VAL_ 10 X X 0-1;\n", "car.dbc:4: ", "selected by itself");
    refuse(HEAD X "SG_MUL_VAL_ 10 X X 3-1;\n", "car.dbc:5: ", "3-1 is empty");
    refuse(HEAD " SG_ P M : 0|8@1+ (1,0) [0|0] \"\" B\n SG_ Q M : 8|8@1+ (1,0) [0|0] \"\" B\n"
                " SG_ R m1 : 16|8@1+ (1,0) [0|0] \"\" B\n",
           "car.dbc:5: ", "two multiplexors M, 'P' and 'Q'");
    refuse(HEAD X X, "car.dbc:5: signal 'X' of message 10 is there already", "line 4");
    refuse(HEAD X "BO_ 10 Two: 8 A\n", "car.dbc:5: a message with the identifier 10", "line 3");
    refuse(HEAD X "BO_ 11 One: 8 A\n", "car.dbc:5: ", "two messages are called One");
    refuse(HEAD X "SIG_VALTYPE_ 10 X : 1;\n", "car.dbc:5: signal 'X' of line 4 has 8 bits", "32");
    refuse(HEAD X "SIG_VALTYPE_ 10 Y : 1;\n", "car.dbc:5: ", "no signal 'Y'");
    refuse(HEAD " SG_ X : 0|65@1+ (1,0) [0|0] \"\" B\n", "car.dbc:4: ", "1 to 64, found '65'");
    refuse(HEAD " SG_ X : 0|8@2+ (1,0) [0|0] \"\" B\n", "car.dbc:4: ", "1 (little endian) or 0");
    refuse(HEAD " SG_ X : 0|8@1+ (0,0) [0|0] \"\" B\n", "car.dbc:4: ", "factor not 0");
    refuse(HEAD " SG_ X : 0|8@1+ (1,0) [9|3] \"\" B\n", "car.dbc:4: ", "9 to 3");
    refuse("BO_ 2048 One: 8 A\n" X, "car.dbc:1: the identifier 2048", "0 to 2047");
    refuse("BO_ 1 One: 9999 A\n" X, "car.dbc:1: ", "0 to 1785, found '9999'");
    refuse(HEAD X "BA_ \"GenMsgCycleTime\" BO_ 10 -5;\n", "car.dbc:5: ", "-5 ms");
    refuse(HEAD X "VAL_ 10 X Table ;\n", "car.dbc:5: ", "no VAL_TABLE_ 'Table'");
    refuse(HEAD X "CM_ \"no end\n\n", "car.dbc:5: ", "no closing quote");
    refuse(HEAD " SG_ X : 0|8@1+ (1,0)", "car.dbc:4: ", "'[', found the end of the file");
    refuse("VERSION \"\"\n" X, "car.dbc:2: ", "a message (BO_) before its signals, found 'SG_'");
    refuse(HEAD X "nonsense\n", "car.dbc:5: ", "a section, as BO_, VAL_ or BA_, found 'nonsense'");
    refuse("", "car.dbc: ", "at least one BO_");
    refuse("PK\x03\x04", "car.dbc:1: ", "a section");
}

// All that a message and its signals are given by other sections.
static void sections_say_more_about_messages(void** state)
{
    (void)state;
    static const char text[] =
        "\xEF\xBB\xBFNS_ :\n\tBO_TX_BU_\n\tVAL_\nBS_: 500 : 1,2\nBU_: A B\n"
        "VAL_TABLE_ T 1 \"on\" 0 \"off\" ;\n"
        "BO_ 2147483658 One: 8 A\n SG_ X : 0|8@1+ (0.5,-10) [0|0] \"\xB0"
        "C\" A,B\n"
        " SG_ Y m2 : 8|8@1+ (1,0) [0|0] \"\" B\n SG_ Z M : 16|8@1+ (1,0) [5|9] \"\" B\n"
        "EV_ Light: 0 [0|1] \"\" 0 1 DUMMY A;\n"
        "BO_ 11 Long: 39 A\n"
        "CM_ BO_ 2147483658 \"of \\\"it\\\"\"; CM_ SG_ 2147483658 X \"h\xE4lt\";\n"
        "BA_DEF_ BO_ \"VFrameFormat\" ENUM \"StandardCAN\",\"My_FD\";\n"
        "BA_DEF_DEF_ \"GenMsgCycleTime\" 50;\nBA_DEF_DEF_ \"GenSigStartValue\" 0;\n"
        "BA_ \"VFrameFormat\" BO_ 2147483658 1;\nBA_ \"GenMsgCycleTime\" BO_ 11 20;\n"
        "BA_ \"GenSigStartValue\" SG_ 2147483658 X 100;\n"
        "BA_ \"SystemSignalLongSymbol\" SG_ 2147483658 Y \"A_rather_long_name\";\n"
        "VAL_ 2147483658 X T ; VAL_ 2147483658 Z -1 \"minus\" 18446744073709551615 \"all\" ;\n"
        "VAL_ 99 Q 0 \"of nothing\" ;\n";
    crd_context* ctx = crd_context_create(NULL);
    crd_arena arena;
    crdi_wire_catalog c;
    crd_arena_init(&arena, ctx);
    check_ok(crdi_wire_dbc_parse(&arena, "car.dbc", text, sizeof text - 1, &c));
    check_int(c.message_count, 2);
    const crdi_wire_message* m = &c.messages[0];
    check(m->extended && m->fd && m->id == 10 && m->field_count == 3);
    check_near(m->cycle, 0.05, 0);
    check_near(c.messages[1].cycle, 0.02, 0);
    check(!c.messages[1].extended && c.messages[1].length == 39);
    check_text(m->comment, "of \"it\"");
    check_text(m->fields[0].unit, "\xC2\xB0"
                                  "C");
    check_text(m->fields[0].comment, "h\xC3\xA4lt");
    check_near(m->fields[0].initial, 40, 0); // 100 * 0.5 - 10
    check_text(crdi_wire_item_name(&m->fields[0], 1), "on");
    check_text(m->fields[1].name, "A_rather_long_name");
    check_int(m->fields[1].selector, 2);
    check_int(m->fields[1].selected_by[0].first, 2);
    check_near(m->fields[2].initial, 5, 0); // 0 is not between 5 and 9
    check_text(crdi_wire_item_name(&m->fields[2], -1), "minus");
    crd_arena_clear(&arena);
    crd_context_destroy(ctx);
}

static void every_allocation_may_fail(void** state)
{
    (void)state;
    static const char text[] = HEAD X " SG_ M1 M : 8|8@1+ (1,0) [0|0] \"\" B\n"
                                      " SG_ Y m1 : 16|8@1+ (1,0) [0|0] \"\" B\n"
                                      "SG_MUL_VAL_ 10 Y M1 1-2;\nVAL_ 10 X 1 \"on\" ;\n";
    for (int round = 0; round < 2; round++) {
        crd_status st = CRD_E_MEMORY;
        for (int64_t n = 0; st == CRD_E_MEMORY; n++) {
            check_allocator a;
            crd_context* ctx = check_context(&a);
            crd_arena arena;
            crdi_wire_catalog c;
            crd_arena_init(&arena, ctx);
            a.fail_at = a.allocations + n;
            a.once = round;
            st = crdi_wire_dbc_parse(&arena, "car.dbc", text, sizeof text - 1, &c);
            check(st == CRD_OK || st == CRD_E_MEMORY);
            check(n > 3 || st == CRD_E_MEMORY);
            crd_arena_clear(&arena);
            crd_context_destroy(ctx);
            check_int(a.live, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_files_are_told_with_their_lines),
        cmocka_unit_test(sections_say_more_about_messages),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
