#include "cardan/learn.h"

crd_training crd_training_defaults(void)
{
    return (crd_training){.method = CRD_TRAIN_ADAM,
                          .epochs = 1000,
                          .rate = 1e-2,
                          .stages = 4,
                          .ridge = 1e-3,
                          .hold_out = 0.2,
                          .freeze_biases = true,
                          .drop_after_jump = true,
                          .seed = 1,
                          .protect = 1.5};
}

crd_learn_server_options crd_learn_server_defaults(void)
{
    return (crd_learn_server_options){
        .training = crd_training_defaults(), .every = 5000, .keep = 20000, .clients = 64};
}
