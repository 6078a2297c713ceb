// cardan key pair, show, revoke: keys between two hosts.
#include "cli/cli.h"
#include "shared/base_interrupt.h"
#include "shared/dcp_pair.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct key_options {
    crdi_common common;
    bool listen;
    int role, days, overlap;
    const char *name, *output, *renew;
} key_options;

static const char* const roles[] = {"master", "bench", "observer", NULL};
static const double PATIENCE = 300; // s, for the other side and its people

// The folder of keys, made if needed, and a file in it. The caller frees it.
static char* file_of(crd_context* ctx, const char* kind, const char* name)
{
    char* folder = crdi_dcp_key_folder(ctx);
    char* keys = folder ? crdi_format(ctx, "%s/keys", folder) : NULL;
    char* path = keys ? crdi_format(ctx, "%s/%s%s", *kind ? keys : folder, name, kind) : NULL;
    for (char* slash = keys ? strchr(keys + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(keys, 0755);
        *slash = '/';
    }
    if (keys) { (void)mkdir(keys, 0700); }
    crd_free(ctx, folder);
    crd_free(ctx, keys);
    return path;
}

// ---- pair --------------------------------------------------------------------------------------

typedef struct meeting {
    crdi_cli* cli;
    crdi_result* out;
    const key_options* o;
    crd_dcp_net* net;
    crd_dcp_address other;
    crdi_pair pair;
} meeting;

// One message of the other side, and what is sent back. CRD_E_UNIT: it is over.
static crd_status meet_once(meeting* x, double until)
{
    crd_context* ctx = x->cli->ctx;
    crd_dcp_packet k;
    uint8_t back[CRDI_PAIR_MESSAGE];
    size_t length = 0;
    while (!crd_dcp_net_receive(x->net, &k)) {
        if (crdi_interrupted()) { return crdi_fail(ctx, CRD_E_UNIT, "pairing was given up"); }
        if (crd_dcp_net_now(x->net) > until) {
            return crdi_fail(ctx, CRD_E_UNIT, "pairing: the other side has not answered for %g s",
                             PATIENCE);
        }
        crd_dcp_net_wait(x->net, 0.2);
    }
    if (x->other.port == 0) { x->other = k.from; } // who comes first is who it is
    if (!crd_dcp_address_equal(&x->other, &k.from)) { return CRD_OK; }
    if (crdi_pair_take(&x->pair, k.bytes, k.length, back, &length) == CRDI_PAIR_FAILED) {
        return crdi_fail(ctx, CRD_E_UNIT, "pairing with %s failed: %s; begin again on both sides",
                         crdi_dcp_address_text_of(&k.from).text, x->pair.why);
    }
    if (length > 0) { (void)crdi_dcp_net_send(x->net, &x->other, back, length); }
    return CRD_OK;
}

static crd_status compare_codes(meeting* x)
{
    char code[10], line[16] = "";
    const bool listens = x->o->listen;
    const uint8_t* m = listens ? x->pair.opening : x->pair.offer;
    crdi_pair_code(&x->pair, code);
    crdi_say(x->out, "%.32s (%s) at %s\nthe code is %s\n", (const char*)m + 6,
             crdi_dcp_role_names[m[2]], crdi_dcp_address_text_of(&x->other).text, code);
    if (x->o->renew) { return crdi_result_print(x->out->root); }
    crdi_say(x->out, "does the other side show the same code? Type yes, or anything else to give "
                     "up\n");
    const crd_status st = crdi_result_print(x->out->root);
    if (st < 0) { return st; }
    if (!fgets(line, sizeof line, stdin) || strcmp(line, "yes\n") != 0) {
        return crdi_fail(x->cli->ctx, CRD_E_UNIT, "the codes were not confirmed: no key was made");
    }
    return CRD_OK;
}

static crd_status open_meeting(meeting* x, const char* text, const crd_dcp_key* old)
{
    crd_status st = CRD_OK;
    crd_context* ctx = x->cli->ctx;
    crd_dcp_address a;
    uint8_t secret[32], random[32], first[CRDI_PAIR_MESSAGE];
    char host[33] = "";
    const char* name = x->o->name ? x->o->name : host;
    (void)gethostname(host, sizeof host - 1);
    if (!crdi_dcp_key_name_fits(name)) {
        return crdi_fail(ctx, CRD_E_RANGE,
                         "--name '%s', expected 1 to 32 letters, digits, - _ . of this side",
                         crdi_clip(name).text);
    }
    const int days = x->o->days < 0 ? 365 : x->o->days;
    if (days < 1 || days > 3650) {
        return crdi_fail(ctx, CRD_E_RANGE, "--days %d, expected 1 to 3650", days);
    }
    CRD_TRY(crd_dcp_address_parse(ctx, text, &a));
    if (sodium_init() < 0) {
        return crdi_fail(ctx, CRD_E_IO, "pairing: the system gives no random numbers");
    }
    randombytes_buf(secret, sizeof secret);
    randombytes_buf(random, sizeof random);
    crdi_pair_init(&x->pair, !x->o->listen, (crd_dcp_key_role)(x->o->role + 1), name, days, old,
                   secret, random);
    sodium_memzero(secret, sizeof secret);
    CRD_TRY(crd_dcp_net_create(ctx, &x->net));
    if (x->o->listen) {
        CRD_TRY(crd_dcp_net_listen(x->net, &a));
        crdi_say(x->out, "listening at %s\n", crdi_dcp_address_text_of(&a).text);
        CRD_TRY(crdi_result_print(x->out->root));
    } else {
        x->other = a;
        CRD_TRY(crdi_dcp_net_connect(x->net, &a));
        (void)crdi_dcp_net_send(x->net, &a, first, crdi_pair_begin(&x->pair, first));
    }
fail:
    return st;
}

static crd_status save_key(meeting* x)
{
    crd_context* ctx = x->cli->ctx;
    crd_dcp_key key;
    char id[17], until[11];
    const int overlap = x->o->overlap < 0 ? 7 : x->o->overlap;
    crdi_pair_key(&x->pair, (int64_t)time(NULL), overlap, &key);
    crdi_dcp_key_id(&key, id);
    crdi_dcp_date_print(key.expires, until);
    const char* wanted = x->o->renew ? x->o->renew : x->o->output;
    char* path = wanted ? crdi_format(ctx, "%s", wanted) : file_of(ctx, ".key", key.name);
    char* made = path ? crdi_format(ctx, "%s%s", path, x->o->renew ? ".new" : "") : NULL;
    crd_status st = made ? crd_dcp_key_write(ctx, made, &key) : CRD_E_MEMORY;
    if (st == CRD_OK && x->o->renew && rename(made, path) != 0) {
        st = crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
    }
    if (st == CRD_OK) {
        crdi_say(x->out, "%s: key %s of this %s for %s %s, until %s\n", path, id,
                 crdi_dcp_role_names[key.role], crdi_dcp_role_names[key.peer], key.name, until);
    }
    crd_dcp_key_clear(&key);
    crd_free(ctx, path);
    crd_free(ctx, made);
    return st;
}

static crd_status run_pair(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    meeting x = {.cli = cli, .out = out, .o = options};
    crd_status st = CRD_OK;
    uint8_t mine[CRDI_PAIR_MESSAGE];
    crd_dcp_key old = {0};
    if (x.o->role < 0) {
        return crdi_fail(
            cli->ctx, CRD_E_RANGE,
            "--role is missing, expected what this side is: master, bench or observer");
    }
    if (x.o->renew) { CRD_TRY(crd_dcp_key_load(cli->ctx, x.o->renew, &old)); }
    (void)crdi_interrupt_catch(&(crdi_interrupt_options){0});
    CRD_TRY(open_meeting(&x, arguments->items[0], x.o->renew ? &old : NULL));
    const double until = crd_dcp_net_now(x.net) + PATIENCE;
    while (x.pair.state != CRDI_PAIR_AGREED) {
        CRD_TRY(meet_once(&x, until));
    }
    CRD_TRY(compare_codes(&x));
    (void)crdi_dcp_net_send(x.net, &x.other, mine, crdi_pair_confirm(&x.pair, mine));
    const double confirmed = crd_dcp_net_now(x.net) + PATIENCE;
    while (!x.pair.confirmed) {
        CRD_TRY(meet_once(&x, confirmed));
    }
    CRD_TRY(save_key(&x));
fail:
    crd_dcp_net_destroy(x.net);
    crdi_pair_clear(&x.pair);
    crd_dcp_key_clear(&old);
    return st;
}

static const crdi_option pair_rows[] = {
    OPT_FLAG(key_options, listen, "listen", "be the side that waits at ADDRESS for the other"),
    OPT_CHOICE(key_options, role, "role", roles,
               "what this side is: a master drives, a bench is driven, an observer looks; one of "
               "the two is a bench"),
    OPT_TEXT(key_options, name, "name", "NAME",
             "of this side, for the other's file; that of the host unless given"),
    OPT_INT(key_options, days, "days", "N",
            "until the key expires, the lesser of both sides; 365 unless given"),
    OPT_FILE(
        key_options, renew, "renew", "key",
        "the key that both sides have already: it stands for the code, and a new one takes its "
        "place in the file"),
    OPT_INT(key_options, overlap, "overlap", "DAYS",
            "with --renew: the old key is taken, too, for so long; 7 unless given"),
    OPT_FILE(key_options, output, "output", "key",
             "the file to make; in the folder of keys (~/.config/cardan/keys), by the name of the "
             "other side, unless given",
             .short_name = 'o'),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_key_pair = {
    .name = "key pair",
    .arguments = "ADDRESS",
    .summary = "agree on a key with another host, by comparing a code",
    .description =
        "One side listens, the other names its address; both show a code of eight digits. If two "
        "people on the phone see the same one, nobody is in between, and each side gets a file "
        "with a key that nobody else has, its role, that of the other and the day on which it "
        "expires. Name it with --key or `session: { key: ... }`.",
    .examples = {{"cardan key pair --listen tcp://0.0.0.0:9000 --role bench --name hall7",
                  "on the bench"},
                 {"cardan key pair tcp://192.168.2.7:9000 --role master --name desk",
                  "at the desk"},
                 {"cardan key pair tcp://192.168.2.7:9000 --role master --renew hall7.key",
                  "a new key in good time; the other side with --listen and its file"}},
    OPTIONS(pair_rows, key_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .run = run_pair,
};

// ---- show and revoke ---------------------------------------------------------------------------

static crd_status run_show(crdi_cli* cli, const void* options, const crdi_list* arguments,
                           crdi_result* out)
{
    (void)options;
    crd_dcp_key key;
    char id[17], date[11];
    const crd_status st = crd_dcp_key_load(cli->ctx, arguments->items[0], &key);
    if (st < 0) { return st; }
    crdi_dcp_key_id(&key, id);
    if (key.role == CRD_DCP_ANY_ROLE) {
        crdi_say(out,
                 "%s: key %s of a group: whoever has it may do everything, and it never "
                 "expires; cardan key pair makes one for two hosts\n",
                 arguments->items[0], id);
    } else {
        crdi_dcp_date_print(key.expires, date);
        crdi_say(out, "%s: key %s of this %s for %s %s, until %s\n", arguments->items[0], id,
                 crdi_dcp_role_names[key.role], crdi_dcp_role_names[key.peer], key.name, date);
    }
    crd_dcp_key_clear(&key);
    return CRD_OK;
}

static crd_status run_revoke(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    (void)options;
    crd_context* ctx = cli->ctx;
    const char* text = arguments->items[0];
    char id[17] = "", today[11];
    crd_dcp_key key = {0};
    if (strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16) {
        memcpy(id, text, sizeof id);
    } else {
        const crd_status st = crd_dcp_key_load(ctx, text, &key);
        if (st < 0) { return st; }
        crdi_dcp_key_id(&key, id);
        crd_dcp_key_clear(&key);
    }
    char* path = file_of(ctx, "", "revoked");
    if (!path) { return CRD_E_MEMORY; }
    FILE* f = fopen(path, "ae");
    crdi_dcp_date_print((int64_t)time(NULL), today);
    const bool good = f && fprintf(f, "%s %s %s\n", id, today, crdi_clip(text).text) > 0;
    const bool closed = !f || fclose(f) == 0;
    const crd_status st =
        good && closed ? CRD_OK : crdi_fail(ctx, CRD_E_IO, "%s: %s", path, strerror(errno));
    if (st == CRD_OK) {
        crdi_say(out,
                 "key %s is revoked on this host (%s); processes that have it already go on "
                 "until they are started again\n",
                 id, path);
    }
    crd_free(ctx, path);
    return st;
}

static const crdi_option plain_rows[] = {CRDI_COMMON_OPTIONS};

const crdi_command crdi_command_key_show = {
    .name = "key show",
    .arguments = "FILE",
    .summary = "say what a key is for, without showing it",
    .description = "Says the id of the key, the roles of both sides and when it expires; or why it "
                   "is refused.",
    .examples = {{"cardan key show hall7.key", "what it is for"}},
    OPTIONS(plain_rows, key_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "key",
    .run = run_show,
};

const crdi_command crdi_command_key_revoke = {
    .name = "key revoke",
    .arguments = "FILE|ID",
    .summary = "refuse a key from now on",
    .description =
        "Writes the id of the key into the list of revoked ones (~/.config/cardan/revoked) of this "
        "host and user. Every command that is started with it then refuses it. Do it on the side "
        "that shall not be reached any more; restart what is running.",
    .examples = {{"cardan key revoke hall7.key", "the laptop was stolen"}},
    OPTIONS(plain_rows, key_options),
    .min_arguments = 1,
    .max_arguments = 1,
    .extensions = "key",
    .run = run_revoke,
};
