// The check of a description between its files: rules.c has the list of rules and all but
// variables, rules_variables.c these.
#pragma once
#include "dcp/description/dcpx.h"

typedef struct crdi_dcp_checker {
    const crd_dcp_description* d;
    const crdi_dcp_index* by_vr;
    crdi_dcp_findings* f;
    crd_map units; // name -> index
} crdi_dcp_checker;

static inline const char* crdi_dcp_plain(const char* text)
{
    return text ? text : "";
}

// Names for messages.
#define CLIP(s) crdi_clip(crdi_dcp_plain(s)).text

// rules.c
void crdi_dcp_check_text(crdi_dcp_checker* c, const char* text, int line, const char* what);
/// Whether a name has not come before. `i` is found again by it.
bool crdi_dcp_is_new(crdi_dcp_checker* c, crd_map* names, const char* name, int i);

// rules_variables.c
void crdi_dcp_check_variables(crdi_dcp_checker* c);
