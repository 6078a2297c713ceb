// What the element knows of commands that act at its partner: a model of the answer to them that is
// learned while it runs, and how far it is believed.
#pragma once
#include "coupling/coupling.h"
#include "shared/coupling.h"

typedef struct crdi_commands crdi_commands;

crd_status crdi_commands_check(crd_context* ctx, const crd_coupling_options* o);
/// For options with commands.
crd_status crdi_commands_create(crd_context* ctx, const crd_coupling_options* o,
                                crdi_commands** out);
void crdi_commands_destroy(crdi_commands* q);
void crdi_commands_reset(crdi_commands* q, double step); // as after create but for the step
void crdi_commands_set_step(crdi_commands* q, double step);
void crdi_commands_tell(crdi_commands* q, const double* u, double acts_at);
/// The samples begin, or begin anew, with this one; what was learned stays.
void crdi_commands_start(crdi_commands* q, crd_real y, double stamp);
/// The newest sample is this one, `steps` after the one before. `real`: it has arrived.
void crdi_commands_push(crdi_commands* q, crd_real y, double stamp, int64_t steps, bool real);
/// One that was missing, `age` steps before the newest.
void crdi_commands_push_late(crdi_commands* q, crd_real y, int age);
/// The signal k steps after the newest sample; `alone` is what its own past says.
crd_real crdi_commands_predict(crdi_commands* q, crd_real alone, int k);
crd_coupling_commands crdi_commands_get(const crdi_commands* q);
bool crdi_commands_weights(const crdi_commands* q, crd_command_weights* out);

void crdi_commands_moving(const crdi_commands* q, crdi_note_moving* note, void* user);
