// The parts of crdi_doctor_look that have a file of their own.
#pragma once
#include "cli/doctor.h"

void crdi_look_at_network(const char* root, const crdi_wish* w, crdi_facts* f);
void crdi_look_at_processes(const char* root, const crdi_wish* w, crdi_facts* f);
void crdi_look_at_ports(const char* root, const crdi_wish* w, crdi_facts* f);
void crdi_look_at_sandbox(const char* root, crdi_facts* f);
