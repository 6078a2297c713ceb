// What the tests of the reader share: documents in a few words, files and archives, the log.
#pragma once
#include "cardan/system.h"
#include "check.h"
#include "shared/archive.h"
#include "ssp/read.h"

#include <stdio.h>
#include <sys/stat.h>

typedef struct ssp_log {
    int errors, warnings, infos;
    char last[3][1024]; // of each level
} ssp_log;

static ssp_log said;

static inline void ssp_listen(void* user, crd_level level, const char* text)
{
    (void)user;
    if (level > CRD_LOG_INFO) { return; }
    (level == CRD_LOG_ERROR     ? &said.errors
     : level == CRD_LOG_WARNING ? &said.warnings
                                : &said.infos)[0]++;
    snprintf(said.last[level], sizeof said.last[level], "%s", text);
}

static inline int ssp_set_up(void** state)
{
    crd_context_options opt = crd_context_defaults();
    opt.log = ssp_listen;
    opt.level = CRD_LOG_INFO;
    said = (ssp_log){0};
    *state = crd_context_create(&opt);
    return *state ? 0 : -1;
}

static inline int ssp_tear_down(void** state)
{
    crd_context_destroy(*state);
    return 0;
}

// ---- documents ---------------------------------------------------------------------------------

#define SPACES                                                                                     \
    " xmlns:ssd='http://ssp-standard.org/SSP1/SystemStructureDescription'"                         \
    " xmlns:ssc='http://ssp-standard.org/SSP1/SystemStructureCommon'"                              \
    " xmlns:ssv='http://ssp-standard.org/SSP1/SystemStructureParameterValues'"                     \
    " xmlns:ssm='http://ssp-standard.org/SSP1/SystemStructureParameterMapping'"                    \
    " xmlns:ssb='http://ssp-standard.org/SSP1/SystemStructureSignalDictionary'"

// Line 1 is the root, line 2 the system; `after` stands behind the system.
#define SSD_WITH(system, after)                                                                    \
    "<ssd:SystemStructureDescription version='1.0' name='test'" SPACES ">\n<ssd:System "           \
    "name='root'>\n" system "</ssd:System>\n" after "</ssd:SystemStructureDescription>\n"
#define SSD(system) SSD_WITH(system, "")
#define CONNECTORS(list) "<ssd:Connectors>" list "</ssd:Connectors>\n"
#define CONNECTOR(name, kind, type)                                                                \
    "<ssd:Connector name='" name "' kind='" kind "'>" type "</ssd:Connector>"
#define REAL(name, kind) CONNECTOR(name, kind, "<ssc:Real/>")
#define REAL_IN(name, kind, unit) CONNECTOR(name, kind, "<ssc:Real unit='" unit "'/>")
#define COMPONENT(name, content)                                                                   \
    "<ssd:Component name='" name "' source='" name ".fmu'>" content "</ssd:Component>\n"
#define SYSTEM(name, content) "<ssd:System name='" name "'>" content "</ssd:System>\n"
#define ELEMENTS(list) "<ssd:Elements>\n" list "</ssd:Elements>\n"
#define CONNECTIONS(list) "<ssd:Connections>\n" list "</ssd:Connections>\n"
#define CONNECT(a, x, b, y)                                                                        \
    "<ssd:Connection startElement='" a "' startConnector='" x "' endElement='" b                   \
    "' endConnector='" y "'/>\n"
#define INWARD(x, b, y)                                                                            \
    "<ssd:Connection startConnector='" x "' endElement='" b "' endConnector='" y "'/>\n"
#define BINDINGS(list) "<ssd:ParameterBindings>" list "</ssd:ParameterBindings>\n"
#define BINDING(content) "<ssd:ParameterBinding>" content "</ssd:ParameterBinding>\n"
#define VALUES(list)                                                                               \
    "<ssd:ParameterValues><ssv:ParameterSet version='1.0' name='s'><ssv:Parameters>\n" list        \
    "</ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues>\n"
#define VALUE(name, text)                                                                          \
    "<ssv:Parameter name='" name "'><ssv:Real value='" text "'/></ssv:Parameter>\n"
#define MAPPING(list)                                                                              \
    "<ssd:ParameterMapping><ssm:ParameterMapping version='1.0'>" list                              \
    "</ssm:ParameterMapping></ssd:ParameterMapping>\n"

/// From memory, no files.
static inline crd_system* ssp_system(crd_context* ctx, const char* text)
{
    crd_system* s = NULL;
    check_ok(crd_system_create(ctx, &s));
    const crd_status st = crdi_ssp_read_text(s, text, strlen(text), "t.ssd");
    if (st < 0) {
        crd_system_destroy(s);
        fail_msg("%s", crd_error_text(ctx));
    }
    return s;
}

static inline void ssp_refused(crd_context* ctx, const char* text, crd_status want,
                               const char* part)
{
    crd_system* s = NULL;
    check_ok(crd_system_create(ctx, &s));
    const crd_status st = crdi_ssp_read_text(s, text, strlen(text), "t.ssd");
    crd_system_destroy(s);
    check_status(st, want);
    check_contains(crd_error_text(ctx), part);
}

/// "a.y -> b.u", NULL if there is none.
static inline const crd_connection_spec* ssp_connection(const crd_system* s, const char* from,
                                                        const char* to)
{
    for (int i = 0; i < s->connection_count; i++) {
        const crd_connection_spec* c = &s->connections[i];
        char a[200], b[200];
        snprintf(a, sizeof a, "%s.%s", s->units[c->from_unit].name, c->from);
        snprintf(b, sizeof b, "%s.%s", s->units[c->to_unit].name, c->to);
        if (strcmp(a, from) == 0 && strcmp(b, to) == 0) { return c; }
    }
    fail_msg("no connection from %s to %s", from, to);
    return NULL;
}

/// The setting that counts: the last one.
static inline const crd_setting* ssp_setting(const crd_system* s, const char* unit,
                                             const char* variable)
{
    const int u = crd_system_find(s, unit);
    check(u >= 0);
    const crd_setting* found = NULL;
    for (int i = 0; i < s->units[u].parameter_count; i++) {
        const crd_setting* p = &s->units[u].parameters[i];
        if (strcmp(p->variable, variable) == 0) { found = p; }
    }
    return found;
}

// ---- files -------------------------------------------------------------------------------------

static inline void put_file(const char* path, const char* text)
{
    FILE* f = fopen(path, "wb");
    if (!f) { fail_msg("%s cannot be written", path); }
    fputs(text, f);
    fclose(f);
}

typedef struct packed {
    const char *name, *text;
} packed;

/// The list ends with a name that is NULL.
static inline void put_archive(crd_context* ctx, const char* path, const packed* files)
{
    crdi_archive_writer* w = NULL;
    check_ok(crdi_archive_create(ctx, path, &w));
    for (; files->name; files++) {
        check_ok(crdi_archive_add(w, files->name, files->text, strlen(files->text)));
    }
    check_ok(crdi_archive_finish(w));
    crdi_archive_discard(w);
}
