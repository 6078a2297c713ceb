// Foreign text in messages.
#include "shared/archive.h"

#include <string.h>

crdi_shown crdi_show(const char* text)
{
    crdi_shown s;
    size_t n = 0;
    for (; text[n] && n < 80; n++) {
        const unsigned char c = (unsigned char)text[n];
        s.text[n] = c < 0x20 || c == 0x7f ? '?' : (char)c;
    }
    if (text[n]) {
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) { // not inside a UTF-8 character
            n--;
        }
        memcpy(s.text + n, "...", 3);
        n += 3;
    }
    s.text[n] = 0;
    return s;
}
