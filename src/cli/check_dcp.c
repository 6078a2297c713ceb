// cardan check on the description of a DCP slave, or of DCP over CAN: which rules of the standard
// it breaks.
#include "cardan/dcp.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

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

static json_t* to_json(crdi_cli* cli, const crd_dcp_finding* f, int count, crd_status st)
{
    json_t* j = json_object();
    json_t* findings = json_array();
    for (int i = 0; i < count; i++) {
        json_t* one = json_object();
        json_object_set_new(one, "severity", json_string(severities[f[i].severity]));
        json_object_set_new(one, "code", json_string(f[i].code));
        json_object_set_new(one, "line", json_integer(f[i].line));
        json_object_set_new(one, "text", crdi_json_text(f[i].text));
        json_array_append_new(findings, one);
    }
    json_object_set_new(j, "ok", json_boolean(st == CRD_OK));
    json_object_set_new(j, "status", json_string(crd_status_name(st)));
    json_object_set_new(j, "exit_code", json_integer(crd_status_exit_code(st)));
    json_object_set_new(j, "error",
                        st < 0 ? crdi_json_text(crd_error_text(cli->ctx)) : json_null());
    json_object_set_new(j, "findings", findings);
    return j;
}

// One line per finding on standard output; what breaks a rule is the exit code as well. `st` is
// that of loading; `what` there are `number` of.
static crd_status tell(crdi_cli* cli, const char* path, bool json, crd_status st,
                       const crd_dcp_finding* f, int count, int number, const char* what)
{
    int of[3] = {0};
    for (int i = 0; i < count; i++) {
        of[f[i].severity]++;
        if (json) { continue; }
        printf("%s:%d: %s: %s (%s)\n", path, f[i].line, severities[f[i].severity], f[i].text,
               f[i].code);
    }
    const int faults = of[CRD_DCP_FAULT];
    if (st == CRD_OK && !json) {
        printf("%s: %d %s%s, %d error%s, %d warning%s, %d note%s\n", faults ? "not ok" : "ok",
               number, what, crdi_plural(number), faults, crdi_plural(faults), of[CRD_DCP_WARNING],
               crdi_plural(of[CRD_DCP_WARNING]), of[CRD_DCP_NOTE], crdi_plural(of[CRD_DCP_NOTE]));
    }
    if (st == CRD_OK && faults) {
        st = crdi_fail(cli->ctx, CRD_E_FORMAT, "%s breaks %d rule%s of DCP", path, faults,
                       crdi_plural(faults));
    }
    const crd_status printed =
        json ? crdi_json_print(cli, to_json(cli, f, count, st)) : crdi_stdout_done(cli->ctx);
    return st < 0 ? st : printed;
}

crd_status crdi_check_dcp(crdi_cli* cli, const char* path, bool json)
{
    crd_dcp_description* d = NULL;
    const crd_dcp_finding* f = NULL;
    int count = 0;
    crd_status st = crd_dcp_load(cli->ctx, path, &d, &f, &count);
    st = tell(cli, path, json, st, f, count, d ? d->variable_count : 0, "variable");
    crd_dcp_description_destroy(d);
    return st;
}

// ---- DCP over CAN ------------------------------------------------------------------------------

bool crdi_is_can(const char* path)
{
    char head[4096];
    struct stat info;
    const char* dot = strrchr(path, '.');
    const bool xml = dot && strcasecmp(dot, ".xml") == 0 && stat(path, &info) == 0 &&
                     S_ISREG(info.st_mode); // opening a pipe would wait
    FILE* f = xml ? fopen(path, "rbe") : NULL;
    if (!f) { return false; }
    const size_t n = fread(head, 1, sizeof head - 1, f);
    head[n] = 0;
    fclose(f);
    return strlen(head) == n && strstr(head, "DcpOverCan");
}

crd_status crdi_check_can(crdi_cli* cli, const char* path, bool json)
{
    crd_dcp_can_description* d = NULL;
    const crd_dcp_finding* f = NULL;
    int count = 0;
    crd_status st = crd_dcp_can_load(cli->ctx, path, &d, &f, &count);
    st = tell(cli, path, json, st, f, count, d ? d->message_count : 0, "message");
    crd_dcp_can_description_destroy(d);
    return st;
}
