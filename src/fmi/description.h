// modelDescription.xml of FMI 1.0 to 3.0, streamed through expat into the tables of a crd_fmu.
#pragma once
#include "fmi/fmu_internal.h"

// Hands out the next bytes; `*got` = 0 is the end. A failure's sentence is in the context.
typedef crd_status crdi_pull(void* user, void* buffer, size_t room, size_t* got);

// Fills fmu->description, fmu->variables and fmu->names. After a failure close the FMU.
crd_status crdi_description_read(crd_fmu* fmu, const char* name_in_messages, crdi_pull* pull,
                                 void* user);
