#include "shared/base.h"
#include "shared/base_path.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 128 };

static int min3(int a, int b, int c)
{
    const int m = a < b ? a : b;
    return m < c ? m : c;
}

// Edit distance with transpositions (optimal string alignment), case counts half as much as a
// letter. In units of half an edit.
static int base_text_distance(const char* a, const char* b)
{
    const size_t na = strlen(a), nb = strlen(b);
    if (na > LONGEST || nb > LONGEST) { return INT_MAX; }
    int rows[3][LONGEST + 1];
    for (size_t j = 0; j <= nb; j++) {
        rows[0][j] = 2 * (int)j;
    }
    for (size_t i = 1; i <= na; i++) {
        int *now = rows[i % 3], *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        now[0] = 2 * (int)i;
        for (size_t j = 1; j <= nb; j++) {
            const int x = (unsigned char)a[i - 1], y = (unsigned char)b[j - 1];
            const int change = x == y ? 0 : tolower(x) == tolower(y) ? 1 : 2;
            now[j] = min3(last[j] + 2, now[j - 1] + 2, last[j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 2 < now[j]) {
                now[j] = before[j - 2] + 2;
            }
        }
    }
    return rows[na % 3][nb];
}

const char* crdi_nearest(const char* word, const char* (*next)(void* user), void* user)
{
    const char* best = NULL;
    const int length = (int)strlen(word);
    // Near enough: up to a third of the letters, at least one edit, but not all of them. Among
    // equals the first that begins with the same letter.
    int best_score = 2 * (2 * (length / 3 > 1 ? length / 3 : 1) + 1);
    for (const char* c = next(user); c; c = next(user)) {
        // The beginning of a longer name is what was meant, if there is enough of it.
        const bool begins = length > 2 && strncasecmp(word, c, (size_t)length) == 0;
        const int d = begins ? 1 : base_text_distance(word, c);
        if (d >= 2 * length) { continue; }
        const int score = 2 * d + (c[0] != word[0]);
        if (score < best_score) {
            best_score = score;
            best = c;
        }
    }
    return best;
}

// One bracket expression "[a-z]" or "[!a-z]"; *p stands behind '['. Moves *p behind ']'.
static bool in_set(const char** p, char c)
{
    const char* s = *p;
    const bool negate = *s == '!' || *s == '^';
    if (negate) { s++; }
    bool found = false;
    for (bool first = true; *s && (first || *s != ']'); first = false) {
        char low = *s++, high = low;
        if (*s == '-' && s[1] && s[1] != ']') {
            high = s[1];
            s += 2;
        }
        found = found || (low <= c && c <= high);
    }
    *p = *s ? s + 1 : s;
    return found != negate;
}

// "[2]", "[1,3]", "[*]" are the index of an array's element, not a set of characters; p is at '['.
static bool is_index(const char* p)
{
    const size_t n = strspn(p + 1, "0123456789,*?");
    return n > 0 && p[1 + n] == ']';
}

bool crdi_glob(const char* pattern, const char* text)
{
    const char *star = NULL, *retry = NULL; // behind the last '*', and where it tries next
    const char *p = pattern, *t = text;
    while (*t) {
        const char* q = p;
        bool hit = false;
        if (*p == '*') {
            star = ++p;
            retry = t;
            continue;
        }
        if (*p == '[' && strchr(p + 1, ']') && !is_index(p)) {
            q++;
            hit = in_set(&q, *t);
        } else if (*p) {
            q++;
            hit = *p == '?' || *p == *t;
        }
        if (hit) {
            p = q;
            t++;
        } else if (star) {
            p = star;
            t = ++retry;
        } else {
            return false;
        }
    }
    while (*p == '*') {
        p++;
    }
    return !*p;
}

crdi_quote crdi_clip(const char* text)
{
    crdi_quote q;
    enum { MOST = 60 };
    size_t n = 0;
    while (n < MOST && text[n]) {
        const unsigned char c = (unsigned char)text[n];
        q.text[n] = c < 0x20 || c == 0x7f ? '?' : text[n];
        n++;
    }
    if (text[n]) {
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80) { // not inside a character
            n--;
        }
        memcpy(q.text + n, "...", 3);
        n += 3;
    }
    q.text[n] = 0;
    return q;
}

bool crdi_ends_with(const char* text, const char* ending)
{
    const size_t n = strlen(text), k = strlen(ending);
    return n > k && strcasecmp(text + n - k, ending) == 0;
}

size_t crdi_folder_length(const char* path)
{
    const char* slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

const char* crdi_path_stem(const char* path, size_t* length)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    size_t dot = end;
    while (dot > begin && path[dot] != '.') {
        dot--;
    }
    *length = dot > begin ? dot - begin : end - begin;
    return path + begin;
}

crd_status crdi_check_plain(crd_context* ctx, const char* address, bool loopback, bool has_key,
                            bool plain, const char* words)
{
    if (has_key && plain) {
        return crdi_fail(ctx, CRD_E_RANGE, "%s: a key and plain at once, expected %s", address,
                         words);
    }
    if (loopback || has_key || plain) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "%s is beyond this host, where without a key everybody could read and steer: "
                     "expected %s, the latter if all of that network is trusted",
                     address, words);
}
