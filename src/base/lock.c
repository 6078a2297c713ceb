#include "shared/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

bool crdi_lock_memory(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) { return false; }
    FILE* maps = fopen("/proc/self/maps", "re");
    if (!maps) { return mlockall(MCL_CURRENT | MCL_FUTURE) == 0; }
    char line[4096], rights[5];
    uintptr_t from = 0, to = 0;
    while (fgets(line, sizeof line, maps)) { // from-to rwxp ...; p: private
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) == 3 &&
            rights[0] == 'r' && rights[3] == 'p') {
            (void)mlock((void*)from, to - from); // pages of the kernel cannot be
        }
    }
    fclose(maps);
    return true;
}
