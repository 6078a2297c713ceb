// CSV as Cardan writes it: comma, \n, quotes of RFC 4180 where they are needed.
#pragma once
#include "cardan/results.h"

/// Bytes that crdi_csv_text may write for a text of `length` bytes.
#define CRDI_CSV_TEXT_ROOM(length) (2 * (length) + 2)

/// Write a text as one field, quoted if it has to be. Returns the end.
char* crdi_csv_text(char* at, const char* text, size_t length);

/// Most bytes that a value of this type takes with the separator behind it.
size_t crdi_csv_room(crd_type type);

/// Write the value at `word` as one field. Returns the end.
char* crdi_csv_value(char* at, crd_type type, const crd_word* word);

/// The bare text of a string (at most 256 bytes, whole characters) or the digits of a binary (at
/// most 512). Returns the length.
size_t crdi_csv_copy_string(char* at, const crd_word* word);
size_t crdi_csv_copy_binary(char* at, const crd_word* word);

/// The end of the last complete row in [text, text + length), which begins with a row; `*rows`
/// is how many there are.
size_t crdi_csv_whole_rows(const char* text, size_t length, int64_t* rows);
