#include "results/mat.h"

#include <hdf5.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static H5E_auto2_t print; // what HDF5 did with errors before
static void* print_user;

void crdi_matio_begin(void)
{
    pthread_mutex_lock(&lock);
    H5Eget_auto2(H5E_DEFAULT, &print, &print_user);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void crdi_matio_end(void)
{
    H5Eset_auto2(H5E_DEFAULT, print, print_user);
    pthread_mutex_unlock(&lock);
}
