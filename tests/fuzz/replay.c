// Runs a fuzz target over the files and folders that are named: the corpus as an ordinary test.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

static int replay_file(const char* path)
{
    FILE* f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    // Exactly as many bytes as the file has, so that a read behind the end is noticed.
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    uint8_t* data = malloc(size > 0 ? (size_t)size : 1);
    if (!data || fread(data, 1, (size_t)size, f) != (size_t)size) {
        perror(path);
        exit(1);
    }
    fclose(f);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return 1;
}

static int replay(const char* path)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) { return replay_file(path); }
    int count = 0;
    DIR* dir = opendir(path);
    for (struct dirent* e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.') { count += replay(file); }
    }
    if (dir) { closedir(dir); }
    return count;
}

int main(int argc, char** argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        count += replay(argv[i]);
    }
    printf("%d inputs\n", count);
    return count > 0 ? 0 : 1;
}
