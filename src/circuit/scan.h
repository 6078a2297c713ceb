// The words of a netlist: one reader for cards and for the expressions in them.
//
// A card is a slice of its file. Continuation lines stay where they are: between two words the
// reader passes newlines, comments and the '+' of the next line, so that nothing is copied and
// every word knows its line.
#pragma once
#include "shared/base.h"

enum {
    CRDI_NAME_MOST = 255, // bytes of one name
    CRDI_PATH_MOST = 1023 // bytes of a flattened name, x1.x2.r1
};

typedef struct crdi_word {
    const char* p; // not terminated
    size_t n;
} crdi_word;

typedef struct crdi_scan {
    crd_context* ctx;
    const char *begin, *p, *end;
    const char* file;
    int32_t line; // of p
} crdi_scan;

void crdi_scan_space(crdi_scan* s); // to the next byte that means something
bool crdi_scan_end(crdi_scan* s);
char crdi_scan_peek(crdi_scan* s); // 0 at the end
bool crdi_scan_take(crdi_scan* s, char c);
crdi_word crdi_scan_word(crdi_scan* s);       // up to space , ( ) = { } ' " ;  may be empty
bool crdi_scan_delimited(const crdi_scan* s); // a word ends here
// What stands here, for a message: a word or one sign.
crdi_word crdi_scan_look(const crdi_scan* s);
// A number with its suffix (10k, 1meg, 2mil, 3.3uF); 0: none here, then nothing was taken.
// CRD_E_FORMAT: it begins as a number and is none.
crd_status crdi_scan_number(crdi_scan* s, double* out, bool* found);
crd_status crdi_scan_fail(const crdi_scan* s, crd_status st, const char* format, ...)
    CRD_PRINTF(3, 4); // with file and line in front

bool crdi_word_is(crdi_word w, const char* text); // without case
crdi_quote crdi_word_clip(crdi_word w);
// Lower case, terminated; false when it is longer than CRDI_NAME_MOST.
bool crdi_word_fold(crdi_word w, char out[CRDI_NAME_MOST + 1]);
