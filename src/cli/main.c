// The command `cardan`. Everything else is in the module, where tests reach it.
#include "cli.h"
#include "shared/master_crash.h"

int main(int argc, char** argv)
{
    const int code = crdi_cli_main(argc, argv);
    crdi_crash_leave_process(code);
    return code;
}
