// cardan dcp key: a key for secured networks.
#include "cardan/dcp.h"
#include "cli/cli.h"

#include <string.h>

typedef struct key_options {
    crdi_common common;
    const char* output;
} key_options;

static crd_status run_key(crdi_cli* cli, const void* options, const crdi_list* arguments,
                          crdi_result* out)
{
    (void)arguments;
    const key_options* o = options;
    crd_dcp_key key;
    if (!o->output || o->common.to_stdout) {
        return crdi_fail(cli->ctx, CRD_E_RANGE,
                         "where shall the key go? expected -o FILE (it is never printed)");
    }
    crd_status st = crd_dcp_key_make(cli->ctx, &key);
    if (st == CRD_OK) { st = crd_dcp_key_write(cli->ctx, o->output, &key); }
    crd_dcp_key_clear(&key);
    if (st >= 0) {
        crdi_say(out, "%s: a new key; copy it to every partner and keep it from others\n",
                 o->output);
    }
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(key_options, output, "output", NULL,
             "the file to make, readable by its owner only; one that exists is left alone",
             .short_name = 'o'),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_dcp_key = {
    .name = "dcp key",
    .arguments = "",
    .summary = "make a key that encrypts and authenticates DCP",
    .description =
        "Makes 32 random bytes and writes them as 64 hex digits. All partners of a session get the "
        "same file (over a channel that is safe, such as scp) and name it with --key: then every "
        "PDU between them is encrypted and authenticated, and PDUs of others, damaged ones and "
        "recorded ones that are sent again are dropped and counted. A partner without the key "
        "cannot take part, so this is for Cardan on both sides.",
    .examples = {{"cardan dcp key -o bench.key", "a new key"},
                 {"cardan dcp slave motor.fmu --key bench.key", "a slave that only talks to those "
                                                                "who have it"}},
    OPTIONS(rows, key_options),
    .run = run_key,
};
