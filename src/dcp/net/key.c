// Keys of secured networks, in files: of a group (64 hex digits), or of two partners with their
// roles, which pairing makes.
//
//   cardan-key 2
//   role bench                 of this side: master, bench, observer
//   peer master desk           of the other side, and its name
//   created 2026-11-16
//   expires 2027-11-16         refused from then on (UTC)
//   key 64 hex digits
//   previous 64 hex digits 2026-11-23     taken too until then
#include "shared/base.h"
#include "shared/dcp.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KEY = 32, HEX = 64, BASE64 = 43, MOST = 4096 };
static const char HEADING[] = "cardan-key ";

const char* const crdi_dcp_role_names[] = {"any", "master", "bench", "observer"};

crd_status crd_dcp_key_make(crd_context* ctx, crd_dcp_key* out)
{
    *out = (crd_dcp_key){0};
    if (sodium_init() < 0) {
        return crdi_fail(ctx, CRD_E_IO, "key: the system gives no random numbers");
    }
    randombytes_buf(out->bytes, KEY);
    return CRD_OK;
}

void crd_dcp_key_clear(crd_dcp_key* key)
{
    sodium_memzero(key, sizeof *key);
}

void crdi_dcp_key_id(const crd_dcp_key* key, char out[17])
{
    static const char label[] = "cardan key id";
    uint8_t hash[crypto_generichash_BYTES_MIN];
    (void)crypto_generichash(hash, sizeof hash, (const uint8_t*)label, sizeof label, key->bytes,
                             KEY);
    sodium_bin2hex(out, 17, hash, 8);
}

// Days are counted from 1970, and years from March: the day that may be missing is their last one.
// Without time_t, which ends in 2038 where it has 32 bits.
enum { DAY = 86400, DAYS_BEFORE_1970 = 719468, DAYS_OF_400_YEARS = 146097 };

static int64_t days_until(int year, int month, int day)
{
    const int64_t y = month > 2 ? year : year - 1, m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - DAYS_BEFORE_1970;
}

void crdi_dcp_date_print(int64_t time, char out[11])
{
    snprintf(out, 11, "?");
    if (time < 0 || time >= days_until(10000, 1, 1) * DAY) { return; }
    const int64_t days = time / DAY + DAYS_BEFORE_1970, of_400 = days % DAYS_OF_400_YEARS;
    const int64_t y = (of_400 - of_400 / 1460 + of_400 / 36524 - of_400 / 146096) / 365;
    const int of_year = (int)(of_400 - (365 * y + y / 4 - y / 100)), m = (5 * of_year + 2) / 153;
    const int64_t year = days / DAYS_OF_400_YEARS * 400 + y + (m >= 10);
    const struct tm t = {.tm_year = (int)year - 1900,
                         .tm_mon = (m + 2) % 12,
                         .tm_mday = of_year - (153 * m + 2) / 5 + 1};
    (void)strftime(out, 11, "%Y-%m-%d", &t);
}

// ---- reading -----------------------------------------------------------------------------------

// Reads up to `room` bytes; -1: the system's error.
static ssize_t read_key_file(int fd, char* out, size_t room)
{
    size_t length = 0;
    while (length < room) {
        const ssize_t k = read(fd, out + length, room - length);
        if (k < 0 && errno == EINTR) { continue; }
        if (k < 0) { return -1; }
        if (k == 0) { break; }
        length += (size_t)k;
    }
    return (ssize_t)length;
}

static bool is_equal_bytes(const uint8_t bytes[KEY])
{
    size_t equal = 1;
    while (equal < KEY && bytes[equal] == bytes[0]) {
        equal++;
    }
    return equal == KEY;
}

static bool decode_hex(const char* text, size_t length, uint8_t out[KEY])
{
    size_t done = 0;
    return length == HEX && sodium_hex2bin(out, KEY, text, length, NULL, &done, NULL) == 0 &&
           done == KEY && !is_equal_bytes(out);
}

// "2027-11-16": midnight (UTC) at which it begins. 0: it is no date.
static int64_t parse_date(const char* text)
{
    int year = 0, month = 0, day = 0, length = 0;
    if (strlen(text) != 10 || sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &length) != 3 ||
        length != 10 || year < 1970 || month < 1 || month > 12) {
        return 0;
    }
    const int64_t time = days_until(year, month, day) * DAY;
    char again[11];
    crdi_dcp_date_print(time, again);
    return strcmp(again, text) == 0 ? time : 0; // February 30 is none
}

static bool parse_role(const char* text, crd_dcp_key_role* out)
{
    for (int i = CRD_DCP_MASTER_ROLE; i <= CRD_DCP_OBSERVER_ROLE; i++) {
        if (strcmp(text, crdi_dcp_role_names[i]) == 0) {
            *out = (crd_dcp_key_role)i;
            return true;
        }
    }
    return false;
}

bool crdi_dcp_key_name_fits(const char* name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("-_.", name[i])) { return false; }
    }
    return length > 0 && length < sizeof((crd_dcp_key*)0)->name && name[0] != '.';
}

enum { ROLE, PEER, CREATED, EXPIRES, WORD_KEY, PREVIOUS, WORDS };
static const struct {
    const char *name, *expected;
    int values;
} words[WORDS] = {{"role", "master, bench or observer", 1},
                  {"peer", "master, bench or observer and a name of letters, digits, - _ .", 2},
                  {"created", "a date such as 2026-11-16", 1},
                  {"expires", "a date such as 2027-11-16", 1},
                  {"key", "64 hex digits", 1},
                  {"previous", "64 hex digits and a date", 2}};

// One line: which word it is, and whether its values are good. -1: unknown.
static int take_word(crd_dcp_key* k, char* line, bool* good)
{
    char* save = NULL;
    const char* word = strtok_r(line, " ", &save);
    const char* a = strtok_r(NULL, " ", &save);
    const char* b = strtok_r(NULL, " ", &save);
    const bool more = strtok_r(NULL, " ", &save) != NULL;
    int i = 0;
    while (i < WORDS && strcmp(words[i].name, word ? word : "") != 0) {
        i++;
    }
    if (i == WORDS) { return -1; }
    *good = !more && (a != NULL) + (b != NULL) == words[i].values;
    if (!*good) { return i; }
    switch (i) {
    case ROLE:
        *good = parse_role(a, &k->role);
        break;
    case PEER:
        *good = parse_role(a, &k->peer) && crdi_dcp_key_name_fits(b);
        if (*good) { snprintf(k->name, sizeof k->name, "%s", b); }
        break;
    case CREATED:
        k->created = parse_date(a);
        *good = k->created != 0;
        break;
    case EXPIRES:
        k->expires = parse_date(a);
        *good = k->expires != 0;
        break;
    case WORD_KEY:
        *good = decode_hex(a, strlen(a), k->bytes);
        break;
    default:
        k->previous_until = parse_date(b);
        *good = decode_hex(a, strlen(a), k->previous) && k->previous_until != 0;
    }
    return i;
}

// Of two partners. The sentences never quote what may be a key.
static crd_status decode_paired(crd_context* ctx, const char* path, char* text, crd_dcp_key* out)
{
    unsigned seen = 0;
    int number = 1;
    char* save = NULL;
    const char* heading = strtok_r(text, "\n", &save);
    if (!heading || strcmp(heading, "cardan-key 2") != 0) {
        return crdi_fail(ctx, CRD_E_FORMAT,
                         "%s:1: a key of another version, expected 'cardan-key 2'; cardan key pair "
                         "makes one",
                         path);
    }
    for (char* line = strtok_r(NULL, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        bool good = false;
        number++;
        const int i = take_word(out, line, &good);
        if (i < 0 || (seen & 1U << i)) {
            return crdi_fail(
                ctx, CRD_E_FORMAT,
                "%s:%d: %s, expected each of role, peer, created, expires and key once", path,
                number, i < 0 ? "an unknown word" : "a word twice");
        }
        if (!good) {
            return crdi_fail(ctx, CRD_E_FORMAT, "%s:%d: %s is not right, expected %s", path, number,
                             words[i].name, words[i].expected);
        }
        seen |= 1U << i;
    }
    for (int i = 0; i < PREVIOUS; i++) {
        if (!(seen & 1U << i)) {
            return crdi_fail(ctx, CRD_E_FORMAT, "%s: %s is missing, expected %s", path,
                             words[i].name, words[i].expected);
        }
    }
    return CRD_OK;
}

// Of a group: 64 hex digits or base64.
static crd_status decode_group(crd_context* ctx, const char* path, const char* text, size_t length,
                               crd_dcp_key* out)
{
    static const char blank[] = " \t\r\n";
    size_t done = 0;
    while (length > 0 && strchr(blank, text[length - 1]) && text[length - 1]) {
        length--;
    }
    while (length > 0 && *text && strchr(blank, *text)) {
        text++;
        length--;
    }
    const bool good = length == HEX
                          ? sodium_hex2bin(out->bytes, KEY, text, length, NULL, &done, NULL) == 0
                          : (length == BASE64 &&
                             sodium_base642bin(out->bytes, KEY, text, length, NULL, &done, NULL,
                                               sodium_base64_VARIANT_ORIGINAL_NO_PADDING) == 0) ||
                                (length == BASE64 + 1 &&
                                 sodium_base642bin(out->bytes, KEY, text, length, NULL, &done, NULL,
                                                   sodium_base64_VARIANT_ORIGINAL) == 0);
    if (!good || done != KEY) {
        return crdi_fail(ctx, CRD_E_FORMAT,
                         "%s: not a key: %zu characters, expected 64 hex digits or 44 of base64 "
                         "(32 bytes); cardan key pair or cardan dcp key make one",
                         path, length);
    }
    if (is_equal_bytes(out->bytes)) {
        return crdi_fail(ctx, CRD_E_FORMAT,
                         "%s: a key of equal bytes is none, expected 32 random bytes", path);
    }
    return CRD_OK;
}

crd_status crdi_dcp_key_decode(crd_context* ctx, const char* path, const char* text, size_t length,
                               crd_dcp_key* out)
{
    char copy[MOST + 1];
    *out = (crd_dcp_key){0};
    if (length > MOST || memchr(text, 0, length)) { length = 0; } // which no key is
    memcpy(copy, text, length);
    copy[length] = '\0';
    const bool paired = strncmp(copy, HEADING, strlen(HEADING)) == 0;
    const crd_status st =
        paired ? decode_paired(ctx, path, copy, out) : decode_group(ctx, path, copy, length, out);
    sodium_memzero(copy, sizeof copy);
    if (st < 0) { crd_dcp_key_clear(out); }
    return st;
}

// ---- what a key may be used for ----------------------------------------------------------------

char* crdi_dcp_key_folder(crd_context* ctx)
{
    const char* base = getenv("XDG_CONFIG_HOME");
    const char* home = getenv("HOME");
    return base && *base ? crdi_format(ctx, "%s/cardan", base)
                         : crdi_format(ctx, "%s/.config/cardan", home && *home ? home : ".");
}

// Lines of the list: an id first, then what people like to know.
static crd_status check_revoked(crd_context* ctx, const char* path, const crd_dcp_key* key)
{
    char id[17], line[256];
    crdi_dcp_key_id(key, id);
    char* folder = crdi_dcp_key_folder(ctx);
    char* list = folder ? crdi_format(ctx, "%s/revoked", folder) : NULL;
    crd_status st = list ? CRD_OK : CRD_E_MEMORY;
    FILE* f = list ? fopen(list, "re") : NULL;
    if (list && !f && errno != ENOENT && errno != ENOTDIR) {
        st = crdi_fail(ctx, CRD_E_IO, "%s: the list of revoked keys cannot be read: %s", list,
                       strerror(errno));
    }
    while (st == CRD_OK && f && fgets(line, sizeof line, f)) {
        if (strncmp(line, id, 16) == 0) {
            st = crdi_fail(ctx, CRD_E_RANGE,
                           "%s: key %s is revoked (%s), expected another: cardan key pair", path,
                           id, list);
        }
    }
    if (f) { (void)fclose(f); }
    crd_free(ctx, folder);
    crd_free(ctx, list);
    return st;
}

static crd_status check_key(crd_context* ctx, const char* path, const struct stat* s,
                            const crd_dcp_key* key)
{
    if (S_ISREG(s->st_mode) && (s->st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: others may read or change this key (mode %03o), which is refused, "
                         "expected 600: make another, or chmod 600 %s if nobody has",
                         path, (unsigned)(s->st_mode & 0777), path);
    }
    if (key->expires != 0 && (int64_t)time(NULL) >= key->expires) {
        char date[11];
        crdi_dcp_date_print(key->expires, date);
        return crdi_fail(ctx, CRD_E_RANGE,
                         "%s: expired on %s, expected a key that is valid: cardan key pair", path,
                         date);
    }
    return check_revoked(ctx, path, key);
}

crd_status crd_dcp_key_load(crd_context* ctx, const char* path, crd_dcp_key* out)
{
    char text[MOST + 1];
    struct stat s = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read_key_file(fd, text, sizeof text);
    const int code = errno;
    if (fd >= 0) {
        (void)fstat(fd, &s);
        close(fd);
    }
    if (length < 0) {
        return crdi_fail(ctx, code == ENOENT ? CRD_E_NOT_FOUND : CRD_E_IO,
                         "%s: the key cannot be read: %s", path, strerror(code));
    }
    crd_status st = crdi_dcp_key_decode(ctx, path, text, (size_t)length, out);
    sodium_memzero(text, sizeof text);
    if (st == CRD_OK) {
        st = check_key(ctx, path, &s, out);
        if (st < 0) { crd_dcp_key_clear(out); }
    }
    return st;
}

crd_status crdi_dcp_key_check_role(crd_context* ctx, const char* path, const crd_dcp_key* key,
                                   crd_dcp_key_role role)
{
    const bool fits = role == CRD_DCP_ANY_ROLE || key->role == CRD_DCP_ANY_ROLE ||
                      key->role == role ||
                      (role == CRD_DCP_OBSERVER_ROLE && key->role == CRD_DCP_MASTER_ROLE);
    if (fits) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "%s: the key of a%s %s, expected one of a %s: cardan key pair --role %s", path,
                     key->role == CRD_DCP_OBSERVER_ROLE ? "n" : "", crdi_dcp_role_names[key->role],
                     crdi_dcp_role_names[role], crdi_dcp_role_names[role]);
}

// ---- writing -----------------------------------------------------------------------------------

static int print_key(const crd_dcp_key* key, char* out, size_t room)
{
    char hex[HEX + 1], previous[HEX + 1], created[11], expires[11], until[11];
    sodium_bin2hex(hex, sizeof hex, key->bytes, KEY);
    if (key->role == CRD_DCP_ANY_ROLE) {
        const int n = snprintf(out, room, "%s\n", hex);
        sodium_memzero(hex, sizeof hex);
        return n;
    }
    crdi_dcp_date_print(key->created, created);
    crdi_dcp_date_print(key->expires, expires);
    int n =
        snprintf(out, room, "cardan-key 2\nrole %s\npeer %s %s\ncreated %s\nexpires %s\nkey %s\n",
                 crdi_dcp_role_names[key->role], crdi_dcp_role_names[key->peer], key->name, created,
                 expires, hex);
    if (key->previous_until != 0) {
        sodium_bin2hex(previous, sizeof previous, key->previous, KEY);
        crdi_dcp_date_print(key->previous_until, until);
        n += snprintf(out + n, room - (size_t)n, "previous %s %s\n", previous, until);
        sodium_memzero(previous, sizeof previous);
    }
    sodium_memzero(hex, sizeof hex);
    return n;
}

crd_status crd_dcp_key_write(crd_context* ctx, const char* path, const crd_dcp_key* key)
{
    char text[MOST];
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0) {
        const int code = errno;
        return crdi_fail(ctx, CRD_E_IO, "%s: the key cannot be written: %s", path,
                         code == EEXIST ? "there is such a file already" : strerror(code));
    }
    const size_t length = (size_t)print_key(key, text, sizeof text);
    bool good = true;
    for (size_t done = 0; good && done < length;) {
        const ssize_t k = write(fd, text + done, length - done);
        good = k >= 0 || errno == EINTR;
        done += k > 0 ? (size_t)k : 0;
    }
    const int code = errno;
    sodium_memzero(text, sizeof text);
    if (close(fd) != 0 || !good) {
        const int why = good ? errno : code;
        (void)unlink(path);
        return crdi_fail(ctx, CRD_E_IO, "%s: the key cannot be written: %s", path, strerror(why));
    }
    return CRD_OK;
}

// ---- networks with the keys of files -----------------------------------------------------------

crd_status crdi_dcp_net_secure_files(crd_context* ctx, const char* const* paths, int count,
                                     crd_dcp_key_role role, const crd_dcp_secure_options* opt,
                                     crd_dcp_net** net)
{
    crd_dcp_key keys[CRD_DCP_MOST_KEYS];
    crd_dcp_secure_options o = opt ? *opt : crd_dcp_secure_defaults();
    crd_status st = CRD_OK;
    if (count > CRD_DCP_MOST_KEYS) {
        return crdi_fail(ctx, CRD_E_RANGE, "%d keys, expected %d at most", count,
                         CRD_DCP_MOST_KEYS);
    }
    for (int i = 0; i < count; i++) {
        CRD_TRY(crd_dcp_key_load(ctx, paths[i], &keys[i]));
        CRD_TRY(crdi_dcp_key_check_role(ctx, paths[i], &keys[i], role));
    }
    o.more = keys + 1;
    o.more_count = count - 1;
    CRD_TRY(crd_dcp_net_secure(ctx, *net, &keys[0], &o, net));
fail:
    sodium_memzero(keys, sizeof keys);
    return st;
}

crd_status crdi_dcp_check_plain(crd_context* ctx, const crd_dcp_address* a, bool has_key,
                                bool plain, const char* how)
{
    return crdi_check_plain(ctx, crdi_dcp_address_text_of(a).text, a->ip >> 24 == 127, has_key,
                            plain, how);
}

void crdi_dcp_security_print(const crd_dcp_address* a, const crd_dcp_key* key, char out[96])
{
    char id[17], date[11];
    if (!key) {
        snprintf(out, 96, "plain%s",
                 a->transport == CRD_DCP_CAN ? ", CAN"
                 : a->ip >> 24 == 127        ? ", this host"
                                             : "");
        return;
    }
    crdi_dcp_key_id(key, id);
    crdi_dcp_date_print(key->expires, date);
    if (key->role == CRD_DCP_ANY_ROLE) {
        snprintf(out, 96, "key %s of a group", id);
    } else {
        snprintf(out, 96, "key %s of %s %s, until %s", id, crdi_dcp_role_names[key->peer],
                 key->name, date);
    }
}
