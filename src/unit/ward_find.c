// Guards of this machine, as the system knows them: there is no list that could be wrong. What a
// guard shares with its run is open to every process of the same user.
#include "shared/unit_ward.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_guard(pid_t pid)
{
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    return crdi_file_head(path, name, sizeof name) > 0 && strcmp(name, "cardan-guard\n") == 0;
}

static int by_number(const void* a, const void* b)
{
    return *(const pid_t*)a < *(const pid_t*)b ? -1 : 1;
}

int crdi_ward_find(pid_t* out, int most)
{
    int n = 0;
    DIR* d = opendir("/proc");
    for (struct dirent* e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        const pid_t pid = isdigit((unsigned char)e->d_name[0]) ? (pid_t)atoi(e->d_name) : 0;
        if (pid == 0 || !is_guard(pid)) { continue; }
        if (n < most) { out[n] = pid; }
        n++;
    }
    if (d) { closedir(d); }
    qsort(out, (size_t)(n < most ? n : most), sizeof *out, by_number);
    return n;
}

crdi_ward_page* crdi_ward_open(pid_t guard)
{
    char path[64];
    struct stat s;
    if (!is_guard(guard)) { return NULL; }
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)guard, CRDI_WARD_PAGE_FD);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) { return NULL; }
    void* p = MAP_FAILED;
    if (fstat(fd, &s) == 0 && s.st_size == (off_t)sizeof(crdi_ward_page)) {
        p = mmap(NULL, sizeof(crdi_ward_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    crdi_ward_page* page = p == MAP_FAILED ? NULL : p;
    if (page && page->layout == sizeof *page) { return page; }
    if (page) { munmap(page, sizeof *page); }
    return NULL;
}
