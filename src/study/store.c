// The study as a SQLite database: one transaction for each thing that happens, so that whoever is
// killed leaves either all of it or nothing.
//
//   meta(key, value)                format, file, text, describe, identity
//   owners(id, host, pid, start, until)   who works at it, and until when that is believed
//   runs(id, key, state, owner, seconds, reason, factors ..., kept ...)
#include <sqlite3.h>

#include "shared/base_system.h"
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LEASE = 60, HOST = 256 }; // s

const char* const crdi_run_states[] = {"open",     "claimed", "done", "limit", "failed",
                                       "diverged", "crashed", "hung", NULL};

struct crdi_study {
    crd_context* ctx;
    crd_arena arena;
    sqlite3* db;
    const char* path;
    crdi_study_file f;
    int64_t owner; // 0: none yet
    sqlite3_stmt *claim, *put, *merge;
};

static crd_status store_fail(crdi_study* s, const char* doing)
{
    const int code = sqlite3_errcode(s->db);
    const char* hint =
        code == SQLITE_BUSY   ? "; another process holds it for more than a minute"
        : code == SQLITE_FULL ? "; there is no room on the disk: make some and run "
                                "again, everything so far is in it"
        : code == SQLITE_IOERR
            ? "; a quota or a limit of the file's size, or a broken disk: everything "
              "so far is in it"
        : code == SQLITE_READONLY || code == SQLITE_CANTOPEN
            ? "; the folder has to be writable, too"
            : "";
    return crdi_fail(s->ctx, code == SQLITE_NOMEM ? CRD_E_MEMORY : CRD_E_IO, "%s: %s: %s%s",
                     s->path, doing, sqlite3_errmsg(s->db), hint);
}

static crd_status execute(crdi_study* s, const char* doing, const char* sql)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? CRD_OK : store_fail(s, doing);
}

static crd_status prepare(crdi_study* s, const char* sql, sqlite3_stmt** out)
{
    return sqlite3_prepare_v2(s->db, sql, -1, out, NULL) == SQLITE_OK
               ? CRD_OK
               : store_fail(s, "reading the study");
}

static void roll_back(crdi_study* s)
{
    sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

// ---- what it says of itself --------------------------------------------------------------------

static crd_status get_meta(crdi_study* s, const char* key, const char** out)
{
    sqlite3_stmt* q = NULL;
    crd_status st = prepare(s, "SELECT value FROM meta WHERE key = ?", &q);
    *out = "";
    if (st < 0) { return st; }
    sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
    const int code = sqlite3_step(q);
    if (code == SQLITE_ROW && sqlite3_column_text(q, 0)) {
        const char* text = (const char*)sqlite3_column_text(q, 0);
        *out = crdi_arena_text(&s->arena, text, strlen(text));
        if (!*out) { st = CRD_E_MEMORY; }
    } else if (code != SQLITE_DONE) {
        st = store_fail(s, "reading the study");
    }
    sqlite3_finalize(q);
    return st;
}

static crd_status put_meta(crdi_study* s, const char* key, const char* value)
{
    sqlite3_stmt* q = NULL;
    crd_status st = prepare(s, "INSERT OR REPLACE INTO meta VALUES(?, ?)", &q);
    if (st < 0) { return st; }
    sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, value, -1, SQLITE_STATIC);
    if (sqlite3_step(q) != SQLITE_DONE) { st = store_fail(s, "writing the study"); }
    sqlite3_finalize(q);
    return st;
}

static crd_status connect_file(crdi_study* s, bool make)
{
    const int flags = SQLITE_OPEN_READWRITE | (make ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX;
    // What begins with a colon or "file:" means other things to SQLite.
    const char* path = crdi_arena_format(&s->arena, "%s%s", s->path[0] == '/' ? "" : "./", s->path);
    if (!path) { return CRD_E_MEMORY; }
    if (sqlite3_open_v2(path, &s->db, flags, NULL) != SQLITE_OK) {
        return store_fail(s, "opening the study");
    }
    // A study may come from anywhere: what its schema says is not run.
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    // And "name" is no text where there is no such column.
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_busy_timeout(s->db, 60000);
    sqlite3_extended_result_codes(s->db, 0);
    return execute(s, "opening the study",
                   "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
                   "PRAGMA temp_store = MEMORY");
}

void crdi_study_close(crdi_study* s)
{
    if (!s) { return; }
    if (s->owner) { (void)crdi_study_release(s); }
    sqlite3_finalize(s->claim);
    sqlite3_finalize(s->put);
    sqlite3_finalize(s->merge);
    sqlite3_close(s->db);
    crd_arena_clear(&s->arena);
    crd_free(s->ctx, s);
}

static crdi_study* make_object(crd_context* ctx, const char* path)
{
    crdi_study* s = crdi_new(ctx, sizeof *s);
    if (!s) { return NULL; }
    s->ctx = ctx;
    crd_arena_init(&s->arena, ctx);
    s->path = crdi_arena_text(&s->arena, path, strlen(path));
    if (s->path) { return s; }
    crdi_study_close(s);
    return NULL;
}

// What no run can have: a number below 1, or a state that there is not.
static crd_status check_row(crdi_study* s, int64_t id, int64_t state)
{
    if (id >= 1 && state >= 0 && state < CRDI_RUN_STATES) { return CRD_OK; }
    return crdi_fail(s->ctx, CRD_E_FORMAT,
                     "%s: run %lld has state %lld, expected runs from 1 and states from 0 to %d: "
                     "the file is damaged, or something else has written into it",
                     s->path, (long long)id, (long long)state, CRDI_RUN_STATES - 1);
}

static bool is_there(const char* path)
{
    struct stat info;
    return stat(path, &info) == 0 && info.st_size > 0;
}

static crd_status count_tables(crdi_study* s, int* out)
{
    sqlite3_stmt* q = NULL;
    crd_status st = prepare(s, "SELECT count(*) FROM sqlite_master", &q);
    if (st >= 0 && sqlite3_step(q) != SQLITE_ROW) { st = store_fail(s, "reading the study"); }
    *out = st < 0 ? 0 : sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    return st;
}

crd_status crdi_study_open(crd_context* ctx, const char* database, crdi_study** out)
{
    crd_status st = CRD_OK;
    crdi_study* s = NULL;
    const char *format = "", *text = "", *file = "";
    int tables = 0;
    *out = NULL;
    if (!is_there(database)) { return CRD_OK; }
    s = make_object(ctx, database);
    if (!s) { return CRD_E_MEMORY; }
    CRD_TRY(connect_file(s, false));
    CRD_TRY(count_tables(s, &tables));
    if (tables == 0) { // another process is about to make them
        crdi_study_close(s);
        return CRD_OK;
    }
    st = get_meta(s, "format", &format);
    if (st < 0 || strcmp(format, "1") != 0) {
        st =
            crdi_fail(ctx, CRD_E_FORMAT, "%s: this is no study of cardan%s%s", database,
                      st >= 0 && *format ? " of this version: format " : "", st >= 0 ? format : "");
        goto fail;
    }
    CRD_TRY(get_meta(s, "file", &file));
    CRD_TRY(get_meta(s, "text", &text));
    CRD_TRY(crdi_study_file_read(ctx, text, strlen(text), file, &s->arena, &s->f));
    *out = s;
    return CRD_OK;
fail:
    crdi_study_close(s);
    return st;
}

const crdi_study_file* crdi_study_get_file(const crdi_study* s)
{
    return &s->f;
}

const char* crdi_study_database(const crdi_study* s)
{
    return s->path;
}

// ---- what would run now against what ran -------------------------------------------------------

static crd_status different(crd_context* ctx, const char* name, const char* format, ...)
    CRD_PRINTF(3, 4);
static crd_status different(crd_context* ctx, const char* name, const char* format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return crdi_fail(ctx, CRD_E_DIFFERENT,
                     "%s: %s; results of both do not belong into one study: begin another one with "
                     "--database FILE, or take the change back",
                     name, text);
}

static const char* text_of(const crdi_json* o, const char* key)
{
    return crdi_json_get_text(o, key);
}

// Whatever they are called and wherever they lie: each file that took part has to be there.
static crd_status compare_parts(crd_context* ctx, const char* name, const crdi_json* a,
                                const crdi_json* b)
{
    const crdi_json *before = crdi_json_first(crdi_json_get_list(a, "files")),
                    *now = crdi_json_first(crdi_json_get_list(b, "files"));
    for (const crdi_json* x = before; x; x = x->next) {
        const crdi_json *y = now, *named = NULL;
        for (; y && strcmp(text_of(x, "sha256"), text_of(y, "sha256")) != 0; y = y->next) {
            if (strcmp(text_of(x, "name"), text_of(y, "name")) == 0) { named = y; }
        }
        if (y) { continue; }
        return named ? different(ctx, name,
                                 "%s has changed since the study began (SHA-256 %.12s, then %.12s)",
                                 text_of(x, "name"), text_of(named, "sha256"), text_of(x, "sha256"))
                     : different(ctx, name,
                                 "%s took part when the study began, and is gone or not asked for",
                                 text_of(x, "name"));
    }
    return CRD_OK;
}

// Another file of a unit may be another value that comes first.
static crd_status compare_units(crd_context* ctx, const char* name, const crdi_json* a,
                                const crdi_json* b)
{
    const bool parts = crdi_json_get_list(a, "files") != NULL;
    const crdi_json *x = crdi_json_first(crdi_json_get_list(a, "units")),
                    *y = crdi_json_first(crdi_json_get_list(b, "units"));
    for (; x && y; x = x->next, y = y->next) {
        if (strcmp(text_of(x, "name"), text_of(y, "name")) != 0) {
            return different(ctx, name, "the unit '%s' was '%s' when the study began",
                             text_of(y, "name"), text_of(x, "name"));
        }
        if (parts && strcmp(text_of(x, "file"), text_of(y, "file")) != 0) { continue; }
        if (strcmp(text_of(x, "sha256"), text_of(y, "sha256")) != 0) {
            return different(ctx, name,
                             "%s of unit '%s' has changed since the study began (SHA-256 %.12s, "
                             "then %.12s)",
                             text_of(y, "file"), text_of(y, "name"), text_of(y, "sha256"),
                             text_of(x, "sha256"));
        }
    }
    return x || y ? different(ctx, name, "the system has another number of units") : CRD_OK;
}

crd_status study_compare_describe(crd_context* ctx, crd_arena* arena, const char* name,
                                  const char* before, const char* now)
{
    crd_status st = CRD_OK;
    crdi_json *a = NULL, *b = NULL;
    const crdi_json_source from = {name, 0};
    CRD_TRY(crdi_json_parse_most(arena, before, strlen(before), CRDI_JSON_RUN_BYTES, from, &a));
    CRD_TRY(crdi_json_parse_most(arena, now, strlen(now), CRDI_JSON_RUN_BYTES, from, &b));
    if (strcmp(text_of(a, "cardan"), text_of(b, "cardan")) != 0) {
        return different(ctx, name, "it was begun with cardan %s, this is %s", text_of(a, "cardan"),
                         text_of(b, "cardan"));
    }
    CRD_TRY(compare_units(ctx, name, a, b));
    const crdi_json *x = crdi_json_get_object(a, "system"), *y = crdi_json_get_object(b, "system");
    if (strcmp(text_of(x, "sha256"), text_of(y, "sha256")) != 0) {
        return different(ctx, name,
                         "the description %s has changed since the study began (SHA-256 %.12s, "
                         "then %.12s)",
                         text_of(y, "file"), text_of(y, "sha256"), text_of(x, "sha256"));
    }
    CRD_TRY(compare_parts(ctx, name, a, b));
    if (strcmp(text_of(a, "state"), text_of(b, "state")) != 0) {
        return different(
            ctx, name,
            "the state that runs go on from has changed since the study began (SHA-256 "
            "%.12s, then %.12s)",
            text_of(b, "state"), text_of(a, "state"));
    }
fail:
    return st;
}

static crd_status compare_texts(crdi_study* s, const char* what, const crdi_study_text* a, int n,
                                const crdi_study_text* b, int m)
{
    for (int i = 0; i < n || i < m; i++) {
        const char *x = i < n ? a[i].text : NULL, *y = i < m ? b[i].text : NULL;
        if (!x || !y || strcmp(x, y) != 0 || strcmp(a[i].name, b[i].name) != 0) {
            return different(s->ctx, s->path, "%s: %s%s%s where it had %s%s%s", what,
                             y && *b[i].name ? b[i].name : "", y && *b[i].name ? ": " : "",
                             y ? y : "nothing", x && *a[i].name ? a[i].name : "",
                             x && *a[i].name ? ": " : "", x ? x : "nothing");
        }
    }
    return CRD_OK;
}

// The study's own file: points may be added, nothing else.
static crd_status compare_files(crdi_study* s, const crdi_study_file* now)
{
    crd_status st = CRD_OK;
    const crdi_study_file* was = &s->f;
    if (was->factor_count != now->factor_count) {
        return different(s->ctx, s->path, "%d factors vary, and %d did", now->factor_count,
                         was->factor_count);
    }
    for (int i = 0; i < now->factor_count; i++) {
        const crdi_study_factor *a = &was->factors[i], *b = &now->factors[i];
        if (strcmp(a->name, b->name) != 0 || a->numeric != b->numeric ||
            strcmp(a->unit, b->unit) != 0) {
            return different(s->ctx, s->path, "vary.%s where it had %s%s", b->name, a->name,
                             strcmp(a->name, b->name) == 0 ? " in other units" : "");
        }
    }
    CRD_TRY(compare_texts(s, "keep", was->kept, was->kept_count, now->kept, now->kept_count));
    CRD_TRY(
        compare_texts(s, "limits", was->limits, was->limit_count, now->limits, now->limit_count));
    const char *a = was->change ? was->change : "", *b = now->change ? now->change : "";
    a += strspn(a, "\n");
    b += strspn(b, "\n");
    if (strcmp(a, b) != 0) {
        return different(s->ctx, s->path, "change has other words than it had");
    }
    if (was->isolate != now->isolate) { return different(s->ctx, s->path, "isolate has changed"); }
    if (was->seed != now->seed) { // also of what was not drawn: $seed of runs
        return different(s->ctx, s->path, "sample.seed is %llu where it was %llu",
                         (unsigned long long)now->seed, (unsigned long long)was->seed);
    }
    if (!was->minimise != !now->minimise) { // then all runs have one seed
        return different(s->ctx, s->path, "optimise is %s", now->minimise ? "new" : "gone");
    }
fail:
    return st;
}

static uint64_t draw(void)
{
    uint64_t number = 0;
    return getrandom(&number, sizeof number, 0) == (ssize_t)sizeof number
               ? number
               : study_mix((uint64_t)getpid() ^ (uint64_t)crdi_now_ns());
}

crd_status study_get_stamp(crdi_study* s, study_stamp* out)
{
    crd_status st = CRD_OK;
    char identity[32];
    CRD_TRY(get_meta(s, "identity", &out->identity));
    if (!*out->identity) { // of one that was made before chunks were
        sqlite3_stmt* q = NULL;
        snprintf(identity, sizeof identity, "%016llx", (unsigned long long)draw());
        CRD_TRY(prepare(s, "INSERT OR IGNORE INTO meta VALUES('identity', ?)", &q));
        sqlite3_bind_text(q, 1, identity, -1, SQLITE_STATIC);
        if (sqlite3_step(q) != SQLITE_DONE) { st = store_fail(s, "writing the study"); }
        sqlite3_finalize(q);
        if (st >= 0) { st = get_meta(s, "identity", &out->identity); }
    }
    if (st >= 0) { st = get_meta(s, "file", &out->path); }
    if (st >= 0) { st = get_meta(s, "text", &out->text); }
    if (st >= 0) { st = get_meta(s, "describe", &out->describe); }
fail:
    return st;
}

// ---- points ------------------------------------------------------------------------------------

static void put_name(crd_text* sql, const char* name)
{
    crdi_text_add(sql, "\"");
    for (const char* c = name; *c; c++) {
        crdi_text_add(sql, *c == '"' ? "\"\"" : "%c", *c);
    }
    crdi_text_add(sql, "\"");
}

static crd_status check_names(crdi_study* s)
{
    static const char* const own[] = {"id", "key", "state", "owner", "seconds", "reason", "rowid"};
    const crdi_study_file* f = &s->f;
    const int count = f->factor_count + f->kept_count;
    for (int i = 0; i < count; i++) {
        const bool factor = i < f->factor_count;
        const char* name = factor ? f->factors[i].name : f->kept[i - f->factor_count].name;
        const int line = factor ? f->factors[i].line : f->kept[i - f->factor_count].line;
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
            if (sqlite3_stricmp(name, own[k]) == 0) {
                return crdi_fail(s->ctx, CRD_E_RANGE,
                                 "%s:%d: '%s' is a column of every study, expected another name",
                                 f->file, line, name);
            }
        }
        for (int k = 0; k < i; k++) {
            const char* other =
                k < f->factor_count ? f->factors[k].name : f->kept[k - f->factor_count].name;
            if (sqlite3_stricmp(name, other) == 0) {
                return crdi_fail(s->ctx, CRD_E_RANGE, "%s:%d: the name '%s' is there twice",
                                 f->file, line, name);
            }
        }
    }
    return CRD_OK;
}

static crd_status make_tables(crdi_study* s)
{
    crd_text sql;
    const crdi_study_file* f = &s->f;
    crd_text_init(&sql, s->ctx);
    crdi_text_add(&sql,
                  "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
                  "CREATE TABLE owners(id INTEGER PRIMARY KEY, host TEXT, pid INTEGER, start TEXT, "
                  "until INTEGER);"
                  "CREATE TABLE runs(id INTEGER PRIMARY KEY, key INTEGER NOT NULL, state INTEGER "
                  "NOT NULL DEFAULT 0, owner INTEGER, seconds REAL, reason TEXT");
    for (int i = 0; i < f->factor_count; i++) {
        crdi_text_add(&sql, ", ");
        put_name(&sql, f->factors[i].name);
        crdi_text_add(&sql, f->factors[i].numeric ? " REAL" : " TEXT");
    }
    for (int i = 0; i < f->kept_count; i++) {
        crdi_text_add(&sql, ", ");
        put_name(&sql, f->kept[i].name);
        crdi_text_add(&sql, " REAL");
    }
    crdi_text_add(&sql, "); CREATE INDEX unfinished ON runs(id) WHERE state < 2;");
    if (f->minimise) { crdi_text_add(&sql, "CREATE INDEX points ON runs(key);"); }
    const crd_status st = sql.failed ? CRD_E_MEMORY : execute(s, "making the study", sql.data);
    crd_text_clear(&sql);
    return st;
}

static crd_status prepare_insert(crdi_study* s, sqlite3_stmt** out)
{
    crd_text sql;
    crd_text_init(&sql, s->ctx);
    crdi_text_add(&sql, "INSERT INTO runs(id, key");
    for (int i = 0; i < s->f.factor_count; i++) {
        crdi_text_add(&sql, ", ");
        put_name(&sql, s->f.factors[i].name);
    }
    crdi_text_add(&sql, ") VALUES(?, ?");
    for (int i = 0; i < s->f.factor_count; i++) {
        crdi_text_add(&sql, ", ?");
    }
    crdi_text_add(&sql, ")");
    const crd_status st = sql.failed ? CRD_E_MEMORY : prepare(s, sql.data, out);
    crd_text_clear(&sql);
    return st;
}

// Keys that are there, in the order of their numbers, to be looked up by halves.
typedef struct known_key {
    uint64_t key;
    int64_t id;
} known_key;

static int by_key(const void* a, const void* b)
{
    const uint64_t x = ((const known_key*)a)->key, y = ((const known_key*)b)->key;
    return x < y ? -1 : x > y;
}

static crd_status read_keys(crdi_study* s, known_key** out, int64_t* count)
{
    sqlite3_stmt* q = NULL;
    crd_status st = prepare(s, "SELECT key, id FROM runs", &q);
    size_t room = 0;
    int code = SQLITE_DONE;
    *out = NULL;
    *count = 0;
    while (st >= 0 && (code = sqlite3_step(q)) == SQLITE_ROW) {
        known_key* grown = crdi_grow(s->ctx, *out, &room, (size_t)*count + 1, sizeof **out);
        if (!grown) {
            st = CRD_E_MEMORY;
            break;
        }
        *out = grown;
        grown[(*count)++] =
            (known_key){(uint64_t)sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)};
    }
    if (st >= 0 && code != SQLITE_DONE) { st = store_fail(s, "reading the study"); }
    sqlite3_finalize(q);
    if (*count) { qsort(*out, (size_t)*count, sizeof **out, by_key); }
    return st;
}

static crd_status insert_point(crdi_study* s, sqlite3_stmt* q, int64_t id, uint64_t key,
                               const crdi_study_value* values)
{
    const crdi_study_file* f = &s->f;
    sqlite3_bind_int64(q, 1, id);
    sqlite3_bind_int64(q, 2, (int64_t)key);
    for (int k = 0; k < f->factor_count; k++) {
        if (f->factors[k].numeric) {
            sqlite3_bind_double(q, k + 3, values[k].x);
        } else {
            sqlite3_bind_text(q, k + 3, values[k].text, -1, SQLITE_STATIC);
        }
    }
    const bool done = sqlite3_step(q) == SQLITE_DONE;
    const crd_status st = done ? CRD_OK : store_fail(s, "writing the points");
    sqlite3_reset(q);
    return st;
}

static crd_status insert_points(crdi_study* s, int64_t* added)
{
    crd_status st = CRD_OK;
    crdi_points* d = NULL;
    sqlite3_stmt* q = NULL;
    known_key* known = NULL;
    int64_t count = 0, met = 0, next;
    const crdi_study_file* f = &s->f;
    const int64_t all = crdi_points_count(f);
    const bool ordered = f->method == CRDI_SAMPLE_MORRIS || f->method == CRDI_SAMPLE_SALTELLI;
    crdi_study_value* values = crdi_new_array(s->ctx, (size_t)f->factor_count, sizeof *values);
    if (!values) { return CRD_E_MEMORY; }
    CRD_TRY(crdi_points_create(s->ctx, f, &d));
    CRD_TRY(read_keys(s, &known, &count));
    CRD_TRY(prepare_insert(s, &q));
    next = count + 1; // rows are never deleted
    *added = 0;
    for (int64_t i = 0; i < all; i++) {
        known_key key = {0};
        if (!crdi_points_point(d, i, values, &key.key)) { continue; }
        const known_key* old =
            count ? bsearch(&key, known, (size_t)count, sizeof *known, by_key) : NULL;
        if (old) {
            met++;
            if (!ordered || old->id == i + 1) { continue; }
            met = -1;
            break;
        }
        CRD_TRY(insert_point(s, q, next++, key.key, values));
        (*added)++;
    }
    if (met < count && !f->minimise) {
        st = different(s->ctx, s->path,
                       "%lld of the %lld points that it has are none of %s any more",
                       (long long)(count - (met < 0 ? 0 : met)), (long long)count, f->file);
    }
fail:
    sqlite3_finalize(q);
    crdi_points_destroy(d);
    crd_free(s->ctx, known);
    crd_free(s->ctx, values);
    return st;
}

// The row of a key, or a number behind all of them.
static crd_status find_point(crdi_study* s, sqlite3_stmt* q, uint64_t key, int64_t* id, bool* found)
{
    sqlite3_bind_int64(q, 1, (int64_t)key);
    const bool row = sqlite3_step(q) == SQLITE_ROW;
    crd_status st = row ? CRD_OK : store_fail(s, "reading the points");
    *found = row && sqlite3_column_type(q, 0) != SQLITE_NULL;
    if (row) { *id = sqlite3_column_int64(q, *found ? 0 : 1); }
    sqlite3_reset(q);
    return st;
}

crd_status crdi_study_ask(crdi_study* s, const crdi_study_value* const* points, int count,
                          int64_t* ids)
{
    crd_status st = CRD_OK;
    sqlite3_stmt *find = NULL, *insert = NULL;
    CRD_TRY(execute(s, "writing the points", "BEGIN IMMEDIATE"));
    st = prepare(s,
                 "SELECT (SELECT min(id) FROM runs WHERE key = ?1), "
                 "(SELECT ifnull(max(id), 0) + 1 FROM runs)",
                 &find);
    if (st >= 0) { st = prepare_insert(s, &insert); }
    for (int i = 0; i < count && st >= 0; i++) {
        bool found = false;
        const uint64_t key = crdi_points_key(&s->f, points[i], 0, 0);
        st = find_point(s, find, key, &ids[i], &found);
        if (st >= 0 && !found) { st = insert_point(s, insert, ids[i], key, points[i]); }
    }
    sqlite3_finalize(find);
    sqlite3_finalize(insert);
    if (st >= 0) { st = execute(s, "writing the points", "COMMIT"); }
    if (st < 0) { roll_back(s); }
fail:
    return st;
}

static crd_status read_text(crdi_study* s, const char* path, const char** out)
{
    crd_text bytes;
    const crdi_file_need need = {.what = "a study", .most = 64u << 20, .text = true};
    crd_text_init(&bytes, s->ctx);
    crd_status st = crdi_file_read(s->ctx, path, &need, &bytes);
    if (st >= 0) {
        *out = crdi_arena_text(&s->arena, bytes.data, bytes.length);
        if (!*out) { st = CRD_E_MEMORY; }
    }
    crd_text_clear(&bytes);
    return st;
}

crd_status crdi_study_sync(crd_context* ctx, const char* database, const crdi_study_file* f,
                           const char* describe, crdi_study** out, int64_t* added)
{
    crd_status st = CRD_OK;
    crdi_study* s = NULL;
    const char *text = "", *before = "";
    char* whole = NULL;
    *added = 0;
    CRD_TRY(crdi_study_open(ctx, database, &s));
    const bool there = s;
    if (there) {
        CRD_TRY(get_meta(s, "describe", &before));
        CRD_TRY(study_compare_describe(ctx, &s->arena, s->path, before, describe));
        CRD_TRY(compare_files(s, f));
    } else {
        s = make_object(ctx, database);
        if (!s) { return CRD_E_MEMORY; }
        CRD_TRY(connect_file(s, true));
    }
    CRD_TRY(read_text(s, f->file, &text));
    whole = realpath(f->file, NULL);
    CRD_TRY(
        crdi_study_file_read(ctx, text, strlen(text), whole ? whole : f->file, &s->arena, &s->f));
    CRD_TRY(check_names(s));
    CRD_TRY(execute(s, "writing the study", "BEGIN IMMEDIATE"));
    if (!there) { // another process may have been faster
        int tables = 0;
        CRD_TRY(count_tables(s, &tables));
        if (tables) {
            roll_back(s);
            crdi_study_close(s);
            free(whole);
            return crdi_study_sync(ctx, database, f, describe, out, added);
        }
        st = make_tables(s);
    }
    if (st >= 0) { st = insert_points(s, added); }
    if (st >= 0) { st = put_meta(s, "format", "1"); }
    if (st >= 0) { st = put_meta(s, "file", s->f.file); }
    if (st >= 0) { st = put_meta(s, "text", text); }
    // Also of files that came with points.
    if (st >= 0 && (!there || *added)) { st = put_meta(s, "describe", describe); }
    if (st >= 0) { st = execute(s, "writing the study", "COMMIT"); }
    if (st < 0) {
        char kept[1024];
        snprintf(kept, sizeof kept, "%s", crd_error_text(ctx));
        roll_back(s);
        crdi_fail(ctx, st, "%s", kept);
        goto fail;
    }
    free(whole);
    *out = s;
    return CRD_OK;
fail:
    free(whole);
    crdi_study_close(s);
    return st;
}

crd_status crdi_study_count(crdi_study* s, crdi_study_counts* out)
{
    sqlite3_stmt* q = NULL;
    crd_status st =
        prepare(s, "SELECT state, count(*), sum(seconds), min(id) FROM runs GROUP BY state", &q);
    double seconds = 0;
    int64_t timed = 0;
    int code = SQLITE_DONE;
    *out = (crdi_study_counts){0};
    while (st >= 0 && (code = sqlite3_step(q)) == SQLITE_ROW) {
        const int64_t state = sqlite3_column_int64(q, 0), n = sqlite3_column_int64(q, 1);
        st = check_row(s, sqlite3_column_int64(q, 3), state);
        if (st < 0) { break; }
        out->by_state[state] = n;
        out->total += n;
        if (state == CRDI_RUN_DONE || state == CRDI_RUN_LIMIT) {
            seconds += sqlite3_column_double(q, 2);
            timed += n;
        }
    }
    if (st >= 0 && code != SQLITE_DONE) { st = store_fail(s, "reading the study"); }
    out->seconds = timed ? seconds / (double)timed : NAN;
    sqlite3_finalize(q);
    return st;
}

// ---- owners ------------------------------------------------------------------------------------

static bool is_gone(sqlite3_stmt* q, const char* host)
{
    const char* owner_host = (const char*)sqlite3_column_text(q, 1);
    const char* owner_start = (const char*)sqlite3_column_text(q, 3);
    if (sqlite3_column_int64(q, 4) < time(NULL)) { return true; }
    if (!owner_host || strcmp(owner_host, host) != 0 || !owner_start) { return false; }
    return crdi_process_is_gone((long)sqlite3_column_int64(q, 2), strtoull(owner_start, NULL, 10));
}

// Inside of a transaction: runs of owners that are gone are open again.
static crd_status bury_owners(crdi_study* s, const char* host)
{
    sqlite3_stmt* q = NULL;
    int64_t gone[64];
    int count = 0;
    crd_status st = prepare(s, "SELECT id, host, pid, start, until FROM owners", &q);
    while (st >= 0 && count < 64 && sqlite3_step(q) == SQLITE_ROW) {
        if (sqlite3_column_int64(q, 0) != s->owner && is_gone(q, host)) {
            gone[count++] = sqlite3_column_int64(q, 0);
        }
    }
    sqlite3_finalize(q);
    for (int i = 0; st >= 0 && i < count; i++) {
        char sql[256];
        snprintf(
            sql, sizeof sql,
            "UPDATE runs SET state = 0, owner = NULL WHERE state < 2 AND state = 1 AND owner = "
            "%lld; DELETE FROM owners WHERE id = %lld",
            (long long)gone[i], (long long)gone[i]);
        st = execute(s, "claiming runs", sql);
    }
    return st;
}

static void host_name(char out[HOST])
{
    gethostname(out, HOST - 1);
    for (char* c = out; *c; c++) {
        if (*c == '\'') { *c = '_'; }
    }
}

// In a transaction. A lease is renewed whenever something is claimed or put.
static crd_status renew(crdi_study* s)
{
    char host[HOST] = "", sql[512];
    host_name(host);
    if (!s->owner) { s->owner = (int64_t)(draw() >> 2) + 1; }
    snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO owners VALUES(%lld, '%s', %ld, '%llu', %lld)",
             (long long)s->owner, host, (long)getpid(), crdi_process_start(getpid()),
             (long long)time(NULL) + LEASE);
    crd_status st = execute(s, "claiming runs", sql);
    if (st >= 0) { st = bury_owners(s, host); }
    return st;
}

// ---- claims and results ------------------------------------------------------------------------

static crd_status prepare_claim(crdi_study* s)
{
    crd_text sql;
    if (s->claim) { return CRD_OK; }
    crd_text_init(&sql, s->ctx);
    crdi_text_add(
        &sql, "UPDATE runs SET state = 1, owner = ?1 WHERE id IN (SELECT id FROM runs INDEXED BY "
              "unfinished WHERE state < 2 AND state = 0 ORDER BY id LIMIT ?2) RETURNING id, key");
    for (int i = 0; i < s->f.factor_count; i++) {
        crdi_text_add(&sql, ", ");
        put_name(&sql, s->f.factors[i].name);
    }
    const crd_status st = sql.failed ? CRD_E_MEMORY : prepare(s, sql.data, &s->claim);
    crd_text_clear(&sql);
    return st;
}

static bool take_point(crdi_study* s, sqlite3_stmt* q, crd_arena* arena, crdi_study_run* r)
{
    const crdi_study_file* f = &s->f;
    *r = (crdi_study_run){.id = sqlite3_column_int64(q, 0)};
    r->seed = crdi_points_seed(f, (uint64_t)sqlite3_column_int64(q, 1));
    r->values = crdi_arena_new(arena, (size_t)f->factor_count, sizeof *r->values);
    r->kept = crdi_arena_new(arena, (size_t)f->kept_count, sizeof *r->kept);
    for (int k = 0; r->values && k < f->factor_count; k++) {
        if (f->factors[k].numeric) {
            r->values[k].x = sqlite3_column_double(q, k + 2);
            continue;
        }
        const char* text = (const char*)sqlite3_column_text(q, k + 2);
        const char* unit;
        r->values[k].text = crdi_arena_text(arena, text ? text : "", text ? strlen(text) : 0);
        if (!text || !crdi_study_number(text, &r->values[k].x, &unit)) { r->values[k].x = NAN; }
    }
    return !arena->failed;
}

static int by_id(const void* a, const void* b)
{
    const int64_t x = ((const crdi_study_run*)a)->id, y = ((const crdi_study_run*)b)->id;
    return x < y ? -1 : x > y;
}

crd_status crdi_study_claim(crdi_study* s, int most, crd_arena* arena, crdi_study_run** out,
                            int* count)
{
    crd_status st = CRD_OK;
    int code = SQLITE_DONE;
    *count = 0;
    *out = crdi_arena_new(arena, (size_t)most, sizeof **out);
    if (!*out) { return CRD_E_MEMORY; }
    CRD_TRY(execute(s, "claiming runs", "BEGIN IMMEDIATE"));
    st = renew(s);
    if (st >= 0) { st = prepare_claim(s); }
    if (st >= 0) {
        sqlite3_bind_int64(s->claim, 1, s->owner);
        sqlite3_bind_int(s->claim, 2, most);
        while ((code = sqlite3_step(s->claim)) == SQLITE_ROW && *count < most) {
            if (!take_point(s, s->claim, arena, &(*out)[*count])) { st = CRD_E_MEMORY; }
            if (st >= 0) { st = check_row(s, (*out)[*count].id, CRDI_RUN_CLAIMED); }
            if (st < 0) { break; }
            (*count)++;
        }
        if (st >= 0 && code != SQLITE_DONE) { st = store_fail(s, "claiming runs"); }
        sqlite3_reset(s->claim);
    }
    if (st >= 0) { st = execute(s, "claiming runs", "COMMIT"); }
    if (st < 0) {
        *count = 0;
        roll_back(s);
        goto fail;
    }
    qsort(*out, (size_t)*count, sizeof **out, by_id);
fail:
    return st;
}

// 1: this run is ours now, or was; 0: it is not to be had.
static crd_status hold_one(crdi_study* s, sqlite3_stmt* q, int64_t id, int* ours)
{
    sqlite3_bind_int64(q, 1, s->owner);
    sqlite3_bind_int64(q, 2, id);
    const crd_status st = sqlite3_step(q) == SQLITE_DONE ? CRD_OK : store_fail(s, "claiming runs");
    *ours = sqlite3_changes(s->db);
    sqlite3_reset(q);
    return st;
}

crd_status study_hold(crdi_study* s, crdi_study_run* runs, int* count)
{
    crd_status st = CRD_OK;
    sqlite3_stmt* q = NULL;
    int held = 0;
    CRD_TRY(
        prepare(s,
                "UPDATE runs SET state = 1, owner = ?1 WHERE id = ?2 AND (state = 0 OR (state = "
                "1 AND owner = ?1))",
                &q));
    CRD_TRY(execute(s, "claiming runs", "BEGIN IMMEDIATE"));
    st = renew(s);
    for (int i = 0, ours = 0; i < *count && st >= 0; i++) {
        st = hold_one(s, q, runs[i].id, &ours);
        if (ours) { runs[held++] = runs[i]; }
    }
    if (st >= 0) { st = execute(s, "claiming runs", "COMMIT"); }
    if (st < 0) { roll_back(s); }
    *count = held;
fail:
    sqlite3_finalize(q);
    return st;
}

crd_status study_unfinished(crdi_study* s, crdi_study_run* runs, int* count)
{
    sqlite3_stmt* q = NULL;
    int left = 0;
    crd_status st = prepare(s, "SELECT 1 FROM runs WHERE id = ? AND state < 2", &q);
    for (int i = 0; i < *count && st >= 0; i++) {
        sqlite3_bind_int64(q, 1, runs[i].id);
        const int code = sqlite3_step(q);
        if (code == SQLITE_ROW) { runs[left++] = runs[i]; }
        if (code != SQLITE_ROW && code != SQLITE_DONE) { st = store_fail(s, "reading the study"); }
        sqlite3_reset(q);
    }
    sqlite3_finalize(q);
    *count = left;
    return st;
}

static crd_status prepare_put(crdi_study* s, sqlite3_stmt** out, bool merge)
{
    crd_text sql;
    if (*out) { return CRD_OK; }
    crd_text_init(&sql, s->ctx);
    crdi_text_add(&sql, "UPDATE runs SET state = ?1, seconds = ?2, reason = ?3, owner = NULL");
    for (int i = 0; i < s->f.kept_count; i++) {
        crdi_text_add(&sql, ", ");
        put_name(&sql, s->f.kept[i].name);
        crdi_text_add(&sql, " = ?%d", i + 6);
    }
    crdi_text_add(&sql, merge ? " WHERE id = ?4 AND state < 2"
                              : " WHERE id = ?4 AND state = 1 AND owner = ?5");
    const crd_status st = sql.failed ? CRD_E_MEMORY : prepare(s, sql.data, out);
    crd_text_clear(&sql);
    return st;
}

static crd_status put_all(crdi_study* s, const crdi_study_run* const* runs, int count, bool merge)
{
    crd_status st = CRD_OK;
    sqlite3_stmt** statement = merge ? &s->merge : &s->put;
    CRD_TRY(prepare_put(s, statement, merge));
    CRD_TRY(execute(s, "writing results", "BEGIN IMMEDIATE"));
    if (!merge) { st = renew(s); }
    for (int i = 0; i < count && st >= 0; i++) {
        const crdi_study_run* r = runs[i];
        sqlite3_stmt* q = *statement;
        sqlite3_bind_int(q, 1, r->state);
        sqlite3_bind_double(q, 2, r->seconds);
        if (r->reason[0]) {
            sqlite3_bind_text(q, 3, r->reason, -1, SQLITE_STATIC);
        } else {
            sqlite3_bind_null(q, 3);
        }
        sqlite3_bind_int64(q, 4, r->id);
        if (!merge) { sqlite3_bind_int64(q, 5, s->owner); }
        for (int k = 0; k < s->f.kept_count; k++) { // NaN becomes NULL
            sqlite3_bind_double(q, k + 6, r->kept[k]);
        }
        if (sqlite3_step(q) != SQLITE_DONE) { st = store_fail(s, "writing results"); }
        sqlite3_reset(q);
    }
    if (st >= 0) { st = execute(s, "writing results", "COMMIT"); }
    if (st < 0) { roll_back(s); }
fail:
    return st;
}

crd_status crdi_study_put(crdi_study* s, const crdi_study_run* const* runs, int count)
{
    return put_all(s, runs, count, false);
}

// Whoever merges removes the copy afterwards: it is on the disk when this returns.
crd_status crdi_study_merge(crdi_study* s, const crdi_study_run* const* runs, int count)
{
    crd_status st = execute(s, "writing results", "PRAGMA synchronous = FULL");
    if (st >= 0) { st = put_all(s, runs, count, true); }
    return st;
}

crd_status crdi_study_release(crdi_study* s)
{
    char sql[320];
    if (!s->owner) { return CRD_OK; }
    snprintf(
        sql, sizeof sql,
        "BEGIN IMMEDIATE; UPDATE runs SET state = 0, owner = NULL WHERE state < 2 AND state = 1 "
        "AND owner = %lld; DELETE FROM owners WHERE id = %lld; COMMIT",
        (long long)s->owner, (long long)s->owner);
    const crd_status st = execute(s, "giving runs back", sql);
    if (st < 0) { roll_back(s); }
    s->owner = 0;
    return st;
}

crd_status crdi_study_count_others(crdi_study* s, int64_t* count)
{
    crd_status st = CRD_OK;
    sqlite3_stmt* q = NULL;
    char host[HOST] = "";
    host_name(host);
    CRD_TRY(execute(s, "claiming runs", "BEGIN IMMEDIATE"));
    st = bury_owners(s, host);
    if (st >= 0) { st = execute(s, "claiming runs", "COMMIT"); }
    if (st < 0) {
        roll_back(s);
        goto fail;
    }
    CRD_TRY(
        prepare(s, "SELECT count(*) FROM runs WHERE state < 2 AND state = 1 AND owner <> ?", &q));
    sqlite3_bind_int64(q, 1, s->owner);
    if (sqlite3_step(q) != SQLITE_ROW) { st = store_fail(s, "reading the study"); }
    *count = st < 0 ? 0 : sqlite3_column_int64(q, 0);
fail:
    sqlite3_finalize(q);
    return st;
}

crd_status crdi_study_reopen(crdi_study* s, crdi_run_state state, int64_t* count)
{
    char sql[160];
    snprintf(sql, sizeof sql,
             "UPDATE runs SET state = 0, owner = NULL, reason = NULL, seconds = NULL WHERE state = "
             "%d",
             (int)state);
    const crd_status st = execute(s, "opening runs again", sql);
    *count = sqlite3_changes64(s->db);
    return st;
}

// ---- reading -----------------------------------------------------------------------------------

static crd_status prepare_select(crdi_study* s, const char* where, const char* order, int64_t limit,
                                 sqlite3_stmt** out)
{
    crd_text sql;
    const crdi_study_file* f = &s->f;
    crd_text_init(&sql, s->ctx);
    crdi_text_add(&sql, "SELECT id, state, seconds, reason, key");
    for (int i = 0; i < f->factor_count + f->kept_count; i++) {
        crdi_text_add(&sql, ", ");
        put_name(&sql,
                 i < f->factor_count ? f->factors[i].name : f->kept[i - f->factor_count].name);
    }
    crdi_text_add(&sql, " FROM runs");
    if (where && *where) { crdi_text_add(&sql, " WHERE %s", where); }
    crdi_text_add(&sql, " ORDER BY ");
    if (order && *order) {
        const bool falling = *order == '-';
        put_name(&sql, order + falling);
        crdi_text_add(&sql, " IS NULL, ");
        put_name(&sql, order + falling);
        crdi_text_add(&sql, "%s, ", falling ? " DESC" : "");
    }
    crdi_text_add(&sql, "id");
    if (limit > 0) { crdi_text_add(&sql, " LIMIT %lld", (long long)limit); }
    crd_status st = sql.failed ? CRD_E_MEMORY : CRD_OK;
    const char* tail = "";
    const bool wrong = st >= 0 && sqlite3_prepare_v2(s->db, sql.data, -1, out, &tail) != SQLITE_OK;
    if (wrong && !(where && *where)) {
        st = store_fail(s, "reading the study");
    } else if (wrong) {
        st = crdi_fail(s->ctx, CRD_E_RANGE,
                       "%s: --where '%s': %s; expected a condition over columns, as \"peak < 3 AND "
                       "state = 2\"",
                       s->path, where ? where : "", sqlite3_errmsg(s->db));
    } else if (st >= 0 && (*tail || !sqlite3_stmt_readonly(*out))) {
        st = crdi_fail(s->ctx, CRD_E_RANGE, "%s: --where '%s': expected one condition", s->path,
                       where ? where : "");
    }
    crd_text_clear(&sql);
    return st;
}

static crd_status check_order(crdi_study* s, const char* order)
{
    const crdi_study_file* f = &s->f;
    static const char* const own[] = {"id", "state", "seconds"};
    if (!order || !*order) { return CRD_OK; }
    const char* name = order + (*order == '-');
    for (int i = 0; i < f->factor_count + f->kept_count; i++) {
        const char* known =
            i < f->factor_count ? f->factors[i].name : f->kept[i - f->factor_count].name;
        if (strcmp(known, name) == 0) { return CRD_OK; }
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(own[i], name) == 0) { return CRD_OK; }
    }
    return crdi_fail(s->ctx, CRD_E_NOT_FOUND, "%s: there is no column '%s'", s->path, name);
}

// Columns grow together.
typedef struct columns {
    size_t room;
    int64_t* ids;
    uint64_t* seeds;
    uint8_t* states;
    double* seconds;
    const char** reasons;
    double** numbers;
    const char*** texts;
} columns;

static bool grow_to(crd_context* ctx, columns* c, const crdi_study_file* f, size_t need)
{
    if (need <= c->room) { return true; }
    const size_t old = c->room;
    size_t room = old;
#define GROW(field)                                                                                \
    do {                                                                                           \
        room = old;                                                                                \
        void* grown = crdi_grow(ctx, c->field, &room, need, sizeof *c->field);                     \
        if (!grown) { return false; }                                                              \
        c->field = grown;                                                                          \
    } while (0)
    GROW(ids);
    GROW(seeds);
    GROW(states);
    GROW(seconds);
    GROW(reasons);
    size_t least = room;
    for (int i = 0; i < f->factor_count + f->kept_count; i++) {
        GROW(numbers[i]);
        least = room < least ? room : least;
        if (i < f->factor_count && !f->factors[i].numeric) { GROW(texts[i]); }
        least = room < least ? room : least;
    }
#undef GROW
    c->room = least;
    return true;
}

crd_status crdi_study_select(crdi_study* s, const char* where, const char* order, int64_t limit,
                             crdi_study_rows* out)
{
    crd_status st = CRD_OK;
    sqlite3_stmt* q = NULL;
    const crdi_study_file* f = &s->f;
    const int n = f->factor_count + f->kept_count;
    columns c = {0};
    int code = SQLITE_DONE;
    *out = (crdi_study_rows){.columns = n};
    crd_arena_init(&out->arena, s->ctx);
    out->names = crdi_arena_new(&out->arena, (size_t)n, sizeof *out->names);
    c.numbers = crdi_arena_new(&out->arena, (size_t)n, sizeof *c.numbers);
    c.texts = crdi_arena_new(&out->arena, (size_t)n, sizeof *c.texts);
    CRD_TRY(crdi_arena_status(&out->arena));
    for (int i = 0; i < n; i++) {
        const char* name =
            i < f->factor_count ? f->factors[i].name : f->kept[i - f->factor_count].name;
        out->names[i] = crdi_arena_text(&out->arena, name, strlen(name));
    }
    out->numbers = (const double**)c.numbers;
    out->texts = (const char* const**)c.texts;
    CRD_TRY(check_order(s, order));
    CRD_TRY(prepare_select(s, where, order, limit, &q));
    while ((code = sqlite3_step(q)) == SQLITE_ROW) {
        const int64_t k = out->count;
        CRD_TRY(check_row(s, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)));
        if (!grow_to(s->ctx, &c, f, (size_t)k + 1) || !c.ids) { CRD_TRY(CRD_E_MEMORY); }
        c.ids[k] = sqlite3_column_int64(q, 0);
        c.seeds[k] = crdi_points_seed(f, (uint64_t)sqlite3_column_int64(q, 4));
        c.states[k] = (uint8_t)sqlite3_column_int(q, 1);
        c.seconds[k] = sqlite3_column_type(q, 2) == SQLITE_NULL ? NAN : sqlite3_column_double(q, 2);
        const char* reason = (const char*)sqlite3_column_text(q, 3);
        c.reasons[k] = reason ? crdi_arena_text(&out->arena, reason, strlen(reason)) : "";
        for (int i = 0; i < n; i++) {
            c.numbers[i][k] = sqlite3_column_type(q, i + 5) == SQLITE_NULL
                                  ? NAN
                                  : sqlite3_column_double(q, i + 5);
            if (c.texts[i]) {
                const char* text = (const char*)sqlite3_column_text(q, i + 5);
                c.texts[i][k] =
                    crdi_arena_text(&out->arena, text ? text : "", text ? strlen(text) : 0);
            }
        }
        out->count++;
    }
    if (code != SQLITE_DONE) { CRD_TRY(store_fail(s, "reading the study")); }
    CRD_TRY(crdi_arena_status(&out->arena));
fail:
    sqlite3_finalize(q);
    out->ids = c.ids;
    out->seeds = c.seeds;
    out->states = c.states;
    out->seconds = c.seconds;
    out->reasons = c.reasons;
    if (st < 0) { crdi_study_rows_clear(out); }
    return st;
}

void crdi_study_rows_clear(crdi_study_rows* r)
{
    crd_context* ctx = r->arena.ctx;
    if (!ctx) { return; }
    for (int i = 0; r->numbers && r->texts && i < r->columns; i++) {
        crd_free(ctx, (void*)r->numbers[i]);
        crd_free(ctx, (void*)r->texts[i]);
    }
    crd_free(ctx, (void*)r->ids);
    crd_free(ctx, (void*)r->seeds);
    crd_free(ctx, (void*)r->states);
    crd_free(ctx, (void*)r->seconds);
    crd_free(ctx, (void*)r->reasons);
    crd_arena_clear(&r->arena);
    *r = (crdi_study_rows){0};
}

int crdi_study_find_column(const crdi_study_rows* r, const char* name)
{
    for (int i = 0; i < r->columns; i++) {
        if (strcmp(r->names[i], name) == 0) { return i; }
    }
    return -1;
}
