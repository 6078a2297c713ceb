// cardan dcp matrix: the file by which slaves on a CAN bus and their master are configured.
#include "cli/cli.h"
#include "shared/dcp.h"

#include <math.h>
#include <stdio.h>

enum { MOST = 255, FIRST = 0x100 };

typedef struct matrix_options {
    crdi_common common;
    const char* output;
    double resolution;
    int first; // -1: not given
} matrix_options;

static crd_status load_slave(crd_context* ctx, const char* path, crd_dcp_description** out)
{
    const crd_dcp_finding* findings = NULL;
    int count = 0;
    const crd_status st = crd_dcp_load(ctx, path, out, &findings, &count);
    if (st < 0) { return st; }
    for (int i = 0; i < count; i++) {
        if (findings[i].severity == CRD_DCP_FAULT) {
            return crdi_fail(ctx, CRD_E_FORMAT, "%s:%d: %s (%s)", path, findings[i].line,
                             findings[i].text, findings[i].code);
        }
    }
    if ((*out)->can) { return CRD_OK; }
    return crdi_fail(ctx, CRD_E_RANGE,
                     "%s: the slave does not offer CAN, expected <CAN/> among its "
                     "TransportProtocols ('cardan dcp describe --address can://can0')",
                     path);
}

static crd_status run_matrix(crdi_cli* cli, const void* options, const crdi_list* arguments,
                             crdi_result* out)
{
    const matrix_options* o = options;
    crd_dcp_description* slaves[MOST] = {0};
    crd_status st = CRD_OK;
    crd_text text;
    crd_text_init(&text, cli->ctx);
    if (o->first > 2047 || o->first < -1) {
        CRD_TRY(crdi_fail(cli->ctx, CRD_E_RANGE, "--first-id %d, expected 0 to 2047", o->first));
    }
    for (int i = 0; i < arguments->count; i++) {
        CRD_TRY(load_slave(cli->ctx, arguments->items[i], &slaves[i]));
    }
    const crdi_dcp_can_plan plan = {.slaves = (const crd_dcp_description* const*)slaves,
                                    .slave_count = arguments->count,
                                    .resolution = o->resolution,
                                    .first = (uint16_t)(o->first < 0 ? FIRST : o->first)};
    CRD_TRY(crdi_dcp_can_make(cli->ctx, &plan, &text));
    if (o->output) {
        CRD_TRY(crdi_file_write(cli->ctx, o->output, &text));
        crdi_say(out, "%s: %d slave%s\n", o->output, arguments->count,
                 crdi_plural(arguments->count));
    } else if (fwrite(text.data, 1, text.length, stdout) != text.length) {
        CRD_TRY(crdi_stdout_done(cli->ctx));
    }
fail:
    for (int i = 0; i < arguments->count; i++) {
        crd_dcp_description_destroy(slaves[i]);
    }
    crd_text_clear(&text);
    return st;
}

static const crdi_option rows[] = {
    OPT_FILE(matrix_options, output, "output", "xml", "file to write; standard output unless given",
             .short_name = 'o'),
    OPT_INT(matrix_options, first, "first-id", "ID",
            "first identifier of CAN that is used; 256 unless given. Requests come first, then "
            "answers, then data: lower ones win the bus"),
    OPT_TIME(matrix_options, resolution, "resolution", CRDI_POSITIVE,
             "time resolution of the slaves; what each recommends or has first unless given"),
    CRDI_COMMON_OPTIONS,
};

const crdi_command crdi_command_dcp_matrix = {
    .name = "dcp matrix",
    .arguments = "DCPX...",
    .summary = "write the file that configures DCP slaves on a CAN bus",
    .description =
        "DCP over CAN is not configured over the bus, but by a file that the master and all slaves "
        "have (DcpOverCan: KMatrix and ScenarioConfiguration): which identifier stands for which "
        "message, and what is in it. This writes one for slaves of which the descriptions are "
        "given: the n-th has dcp id n, all its inputs come from the master and all its outputs go "
        "there, as many in a frame as fit into 8 bytes. 'cardan check' holds any such file against "
        "its rules.",
    .examples = {{"cardan dcp matrix motor.dcpx -o bus.xml", "one slave"},
                 {"cardan dcp matrix motor.dcpx brake.dcpx --first-id 512 -o bus.xml",
                  "two, on a bus where others have the lower identifiers"}},
    OPTIONS(rows, matrix_options),
    .min_arguments = 1,
    .max_arguments = MOST,
    .extensions = "dcpx|dcp",
    .run = run_matrix,
};
