// What the reader of DBC files is made of.
//
//   dbc_scan.c  words, numbers and texts
//   dbc.c       sections, and what they mean together
#pragma once
#include "shared/wire_can.h"

typedef enum crdi_dbc_kind {
    CRDI_DBC_END,
    CRDI_DBC_WORD,
    CRDI_DBC_NUMBER, // without its sign
    CRDI_DBC_TEXT,   // in quotes, which are not part of it
    CRDI_DBC_SIGN,   // one character
} crdi_dbc_kind;

typedef struct crdi_dbc_token {
    crdi_dbc_kind kind;
    const char* at;
    size_t length;
    int line;
} crdi_dbc_token;

// Looks at one token at a time. The first mistake is kept in `status`; from then on the file has
// ended, so that whoever reads need not look after each word.
typedef struct crdi_dbc_scan {
    crd_context* ctx;
    const char* file;
    const char *at, *end;
    int line; // of `at`
    crdi_dbc_token token;
    crd_status status;
} crdi_dbc_scan;

void crdi_dbc_next(crdi_dbc_scan* s); // the next token, the first at the beginning
void crdi_dbc_fail(crdi_dbc_scan* s, int line, const char* format, ...) CRD_PRINTF(3, 4);
// "expected ..., found ..."
void crdi_dbc_unexpected(crdi_dbc_scan* s, const char* expected);

bool crdi_dbc_is(const crdi_dbc_scan* s, const char* word); // the token is this word
bool crdi_dbc_accept(crdi_dbc_scan* s, char sign);          // past it, if it is there
void crdi_dbc_expect(crdi_dbc_scan* s, char sign);

// What stands there, and past it. In the arena; "" and 0 with a mistake.
const char* crdi_dbc_word(crdi_dbc_scan* s, crd_arena* a, const char* expected);
const char* crdi_dbc_text(crdi_dbc_scan* s, crd_arena* a); // as UTF-8, whatever it was
double crdi_dbc_real(crdi_dbc_scan* s, const char* expected);
int64_t crdi_dbc_integer(crdi_dbc_scan* s, int64_t first, int64_t last, const char* expected);
