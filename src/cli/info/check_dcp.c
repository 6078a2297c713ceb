// cardan check on the description of a DCP slave, or of DCP over CAN: which rules of the standard
// it breaks.
#include "cardan/dcp.h"
#include "cli/info/info.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char* const severities[] = {
    [CRD_DCP_NOTE] = "note",
    [CRD_DCP_WARNING] = "warning",
    [CRD_DCP_FAULT] = "error",
};

bool crdi_is_dcp(const char* path)
{
    const char* dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".dcpx") == 0 || strcasecmp(dot, ".dcp") == 0);
}

// One line per finding; what breaks a rule is the exit code as well. `st` is that of loading;
// `what` there are `number` of.
static crd_status put_findings(crdi_cli* cli, const char* path, crd_status st,
                               const crd_dcp_finding* f, int count, int number, const char* what,
                               crdi_result* out)
{
    const bool loaded = st == CRD_OK;
    int of[3] = {0};
    for (int i = 0; i < count; i++) {
        of[f[i].severity]++;
    }
    const int faults = of[CRD_DCP_FAULT];
    if (st == CRD_OK && faults) {
        st = crdi_fail(cli->ctx, CRD_E_FORMAT, "%s breaks %d rule%s of DCP", path, faults,
                       crdi_plural(faults));
    }
    crdi_put(out, BOOL("ok", st == CRD_OK), TEXT("status", crd_status_name(st)),
             INT("exit_code", crd_status_exit_code(st)),
             TEXT("error", st < 0 ? crd_error_text(cli->ctx) : NULL));
    crdi_result* findings = crdi_array(out, "findings");
    for (int i = 0; i < count; i++) {
        crdi_put(crdi_row(findings), TEXT("severity", severities[f[i].severity]),
                 TEXT("code", f[i].code), INT("line", f[i].line), TEXT("text", f[i].text));
        crdi_say(out, "%s:%d: %s: %s (%s)\n", path, f[i].line, severities[f[i].severity], f[i].text,
                 f[i].code);
    }
    if (loaded) {
        crdi_say(out, "%s: %d %s%s, %d error%s, %d warning%s, %d note%s\n",
                 faults ? "not ok" : "ok", number, what, crdi_plural(number), faults,
                 crdi_plural(faults), of[CRD_DCP_WARNING], crdi_plural(of[CRD_DCP_WARNING]),
                 of[CRD_DCP_NOTE], crdi_plural(of[CRD_DCP_NOTE]));
    }
    return st;
}

crd_status crdi_check_dcp(crdi_cli* cli, const char* path, crdi_result* out)
{
    crd_dcp_description* d = NULL;
    const crd_dcp_finding* f = NULL;
    int count = 0;
    crd_status st = crd_dcp_load(cli->ctx, path, &d, &f, &count);
    st = put_findings(cli, path, st, f, count, d ? d->variable_count : 0, "variable", out);
    crd_dcp_description_destroy(d);
    return st;
}

// ---- DCP over CAN ------------------------------------------------------------------------------

bool crdi_is_can(const char* path)
{
    char head[4096];
    if (!crdi_ends_with(path, ".xml")) { return false; }
    const size_t n = crdi_file_head(path, head, sizeof head);
    return strlen(head) == n && strstr(head, "DcpOverCan");
}

crd_status crdi_check_can(crdi_cli* cli, const char* path, crdi_result* out)
{
    crd_dcp_can_description* d = NULL;
    const crd_dcp_finding* f = NULL;
    int count = 0;
    crd_status st = crd_dcp_can_load(cli->ctx, path, &d, &f, &count);
    st =
        put_findings(cli, path, st, f, count, d ? crd_dcp_can_message_count(d) : 0, "message", out);
    crd_dcp_can_description_destroy(d);
    return st;
}
