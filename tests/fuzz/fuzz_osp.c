// modules: ssp system archive xml base
// Any bytes as OspSystemStructure.xml, beside a folder that is an FMU with groups of variables.
#include "cardan/system.h"
#include "fuzz.h"
#include "shared/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void write_file(const char* name, const void* data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) { abort(); }
    close(fd);
}

static void make_folder(void)
{
    static const char description[] =
        "<?xml version='1.0' encoding='ISO-8859-1'?><fmiModelDescription fmiVersion='2.0' "
        "modelName='m'><ModelVariables><ScalarVariable name='u' causality='input'/><ScalarVariable "
        "name='y' causality='output'/><ScalarVariable name='p\xE4' causality='parameter'/>"
        "</ModelVariables></fmiModelDescription>";
    static const char groups[] =
        "<OspModelDescription><VariableGroups><Generic name='in'><Variable ref='u'/></Generic>"
        "<Port name='port'><Force name='f'><Variable ref='u'/></Force><Flow name='v'><Variable "
        "ref='y'/></Flow></Port><Generic name='out'><Variable ref='y'/></Generic></VariableGroups>"
        "</OspModelDescription>";
    char inner[80];
    snprintf(folder, sizeof folder, "/dev/shm/fuzz-osp-%ld", (long)getpid());
    snprintf(inner, sizeof inner, "%s/a", folder);
    mkdir(folder, 0700);
    mkdir(inner, 0700);
    write_file("a/modelDescription.xml", description, sizeof description - 1);
    write_file("m_OspModelDescription.xml", groups, sizeof groups - 1);
}

static void remove_folder(void)
{
    static const char* const names[] = {"/a/modelDescription.xml", "/m_OspModelDescription.xml",
                                        "/s.xml", "/a", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", folder, names[i]);
        (void)remove(path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size)
{
    if (!folder[0]) {
        make_folder();
        atexit(remove_folder);
    }
    write_file("s.xml", data, size);
    char path[128];
    snprintf(path, sizeof path, "%s/s.xml", folder);
    crd_context* ctx = crd_context_create(NULL);
    crd_system* s = NULL;
    if (crd_ssp_load(ctx, path, NULL, &s) < 0 && !crd_error_text(ctx)[0]) { abort(); }
    crd_system_destroy(s);
    crd_context_destroy(ctx);
    return 0;
}
