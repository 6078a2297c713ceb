// The command `cardan`. Everything else is in the module, where tests reach it.
#include "cli.h"

int main(int argc, char** argv)
{
    return crdi_cli_main(argc, argv);
}
