// drive FMU VARIABLE: runs an FMU to its default stop time and prints the variable's last value.
#include <cardan/cardan.h>

#include <stdio.h>

int main(int argc, char** argv)
{
    if (argc != 3) { return 2; }
    crd_context* ctx = crd_context_create(NULL);
    crd_system* sys = NULL;
    crd_master* master = NULL;
    double value = 0;
    crd_status st = CRD_OK;
    CRD_TRY(crd_system_of_fmu(ctx, argv[1], &sys));
    CRD_TRY(crd_master_create(ctx, sys, NULL, &master));
    CRD_TRY(crd_master_initialize(master));
    while (crd_master_ended(master) == CRD_END_NONE) {
        CRD_TRY(crd_master_advance(master, 100));
    }
    CRD_TRY(crd_master_value(master, argv[2], &value));
    CRD_TRY(crd_master_finish(master));
    printf("cardan %s: %s = %.17g\n", crd_version(), argv[2], value);
fail:
    if (st < 0) { fprintf(stderr, "%s\n", crd_error_text(ctx)); }
    crd_master_destroy(master);
    crd_system_destroy(sys);
    crd_context_destroy(ctx);
    return crd_status_exit_code(st);
}
