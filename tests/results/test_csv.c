#include "check.h"
#include "results/csv.h"

#include <stdio.h>

static const char* text_field(const char* text)
{
    static char out[256];
    *crdi_csv_text(out, text, strlen(text)) = 0;
    return out;
}

static const char* value_field(crd_type type, const crd_word* word)
{
    static char out[1024];
    memset(out, '#', sizeof out);
    char* end = crdi_csv_value(out, type, word);
    check(end + 1 <= out + crdi_csv_room(type)); // the separator has room too
    *end = 0;
    return out;
}

static void texts_are_quoted_only_where_they_must_be(void** state)
{
    check_text(text_field("motor.torque"), "motor.torque");
    check_text(text_field("x[1]"), "x[1]");
    check_text(text_field("x[1,2]"), "\"x[1,2]\"");
    check_text(text_field("a \"b\" c"), "\"a \"\"b\"\" c\"");
    check_text(text_field("two\nlines"), "\"two\nlines\"");
    check_text(text_field("a;b"), "\"a;b\"");
    check_text(text_field(" blank"), "\" blank\"");
    check_text(text_field("a b"), "a b");
    check_text(text_field(""), "");
    check_text(text_field("\""), "\"\"\"\"");
}

static void numbers_are_written_by_their_type(void** state)
{
    check_text(value_field(CRD_FLOAT64, &(crd_word){.real = 0.1}), "0.1");
    check_text(value_field(CRD_FLOAT32, &(crd_word){.real = 0.5}), "0.5");
    check_text(value_field(CRD_INT32, &(crd_word){.integer = -7}), "-7");
    check_text(value_field(CRD_INT64, &(crd_word){.integer = INT64_MIN}), "-9223372036854775808");
    check_text(value_field(CRD_UINT64, &(crd_word){.integer = -1}), "18446744073709551615");
    check_text(value_field(CRD_BOOLEAN, &(crd_word){.integer = 1}), "1");
    check_text(value_field(CRD_BOOLEAN, &(crd_word){.integer = 0}), "0");
    check_text(value_field(CRD_ENUMERATION, &(crd_word){.integer = 3}), "3");
    check_text(value_field(CRD_CLOCK, &(crd_word){.integer = 1}), "1");
}

static void strings_are_cut_at_a_whole_character_and_binaries_are_hexadecimal(void** state)
{
    crd_word word[CRD_RECORD_BYTES];
    crd_word_set_bytes(word, "off", 3);
    check_text(value_field(CRD_STRING, word), "off");
    crd_word_set_bytes(word, "", 0);
    check_text(value_field(CRD_STRING, word), "");
    crd_word_set_bytes(word, "\x01\xAB\x00", 3);
    check_text(value_field(CRD_BINARY, word), "01ab00");
    char longer[301];
    memset(longer, 'x', 300);
    longer[300] = 0;
    crd_word_set_bytes(word, longer, 300);
    check_int(strlen(value_field(CRD_STRING, word)), 256);
    memcpy(longer + 254, "\xE2\x82\xAC", 3); // the euro sign lies across the end
    crd_word_set_bytes(word, longer, 300);
    check_int(strlen(value_field(CRD_STRING, word)), 254);
    memcpy(longer + 253, "\xE2\x82\xAC", 3); // now it just fits
    longer[256] = 'x';
    crd_word_set_bytes(word, longer, 300);
    check_int(strlen(value_field(CRD_STRING, word)), 256);
    memset(longer, '"', 300); // the most that a field can take
    crd_word_set_bytes(word, longer, 300);
    check_int(strlen(value_field(CRD_STRING, word)), 514);
    memset(longer, 0xFF, 300);
    crd_word_set_bytes(word, longer, 300);
    check_int(strlen(value_field(CRD_BINARY, word)), 512);
    word->integer = -5; // nonsense is no text
    check_text(value_field(CRD_STRING, word), "");
}

static void whole_rows_end_at_line_ends_outside_of_quotes(void** state)
{
    int64_t rows = -1;
    check_int(crdi_csv_whole_rows("1,2\n3,4\n5", 9, &rows), 8);
    check_int(rows, 2);
    check_int(crdi_csv_whole_rows("1,2", 3, &rows), 0);
    check_int(rows, 0);
    check_int(crdi_csv_whole_rows("1,a\n2,\"b\nc\n", 11, &rows), 4);
    check_int(rows, 1);
    check_int(crdi_csv_whole_rows("1,\"\"\"b\n\"\n2", 10, &rows), 9);
    check_int(rows, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_quoted_only_where_they_must_be),
        cmocka_unit_test(numbers_are_written_by_their_type),
        cmocka_unit_test(strings_are_cut_at_a_whole_character_and_binaries_are_hexadecimal),
        cmocka_unit_test(whole_rows_end_at_line_ends_outside_of_quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
