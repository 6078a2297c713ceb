// libpython is found, and works inside the sandbox with nothing but what the environment says of
// it.
#include "check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fmi/python.h"
#include "shared/sandbox.h"

static void texts_of_the_loader_are_understood(void** state)
{
    check(crdi_python_missing("/tmp/x.so: undefined symbol: _Py_NoneStruct"));
    check(crdi_python_missing("undefined symbol: PyObject_Call"));
    check(!crdi_python_missing("undefined symbol: cblas_dgemm"));
    check(!crdi_python_missing("libPython.so: cannot open shared object file"));
    check(!crdi_python_missing(NULL));
}

static void a_file_tells_whether_it_needs_python(void** state)
{
    char path[] = "/tmp/test_python_XXXXXX";
    const int fd = mkstemp(path);
    check(!crdi_python_needed(path)); // empty
    check_int(write(fd, "\177ELF x\0_Py_NoneStruct\0y", 24), 24);
    check(crdi_python_needed(path));
    check_int(ftruncate(fd, 10), 0);
    check(!crdi_python_needed(path));
    close(fd);
    remove(path);
    check(!crdi_python_needed(path));
    check(!crdi_python_needed("/tmp"));
}

// In a child that has shut itself in. 0: all went well.
static int run_inside(const char* library, const char* scratch)
{
    crd_context* ctx = crd_context_create(NULL);
    if (crdi_sandbox_enter(ctx, &(crdi_sandbox){.scratch = scratch}) < 0) { return 2; }
    void* python = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (!python) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    void (*begin)(int) = NULL;
    int (*run)(const char*) = NULL;
    *(void**)&begin = dlsym(python, "Py_InitializeEx");
    *(void**)&run = dlsym(python, "PyRun_SimpleString");
    begin(0);
    if (run("import json, math, ctypes, tempfile, datetime, threading\n"
            "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
            "with tempfile.NamedTemporaryFile('w') as f: f.write(json.dumps({'pi': math.pi}))\n") !=
        0) {
        return 4;
    }
    // and it is shut in
    return run("import subprocess\n"
               "try: subprocess.run(['true']); raise SystemExit(1)\n"
               "except PermissionError: pass\n"
               "try: open('/etc/shadow'); raise SystemExit(1)\n"
               "except PermissionError: pass\n") == 0
               ? 0
               : 5;
}

static void python_works_inside_the_sandbox(void** state)
{
    char scratch[] = "/tmp/test_python_XXXXXX", missing[128];
    crdi_sandbox_missing(missing, sizeof missing);
    unsetenv("CARDAN_LIBPYTHON");
    unsetenv("CARDAN_READABLE");
    const char* library = crdi_python_library();
#ifdef __SANITIZE_THREAD__ // which has a thread of its own, and nobody shuts that in
    skip();
#endif
    if (!library || missing[0]) {
        print_message("%s%s\n", library ? "" : crdi_python_advice, missing);
        skip();
    }
    check_text(getenv("CARDAN_LIBPYTHON"), library);
    check(library[0] == '/');
    check(mkdtemp(scratch) != NULL);
    const pid_t child = fork();
    if (child == 0) { _exit(run_inside(library, scratch)); }
    int status = -1;
    check_int(waitpid(child, &status, 0), child);
    check(WIFEXITED(status));
    check_int(WEXITSTATUS(status), 0);
    rmdir(scratch);
}

static void what_the_user_names_is_taken(void** state)
{
    setenv("CARDAN_LIBPYTHON", "/opt/libpython3.99.so", 1);
    check_text(crdi_python_library(), "/opt/libpython3.99.so");
    unsetenv("CARDAN_LIBPYTHON");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_the_loader_are_understood),
        cmocka_unit_test(a_file_tells_whether_it_needs_python),
        cmocka_unit_test(python_works_inside_the_sandbox),
        cmocka_unit_test(what_the_user_names_is_taken),
    };
    return cmocka_run_group_tests_name("python", tests, NULL, NULL);
}
