/// Words of the language of systems that options have, too. Each list is in the order of its
/// enumeration and ends with NULL.
#pragma once

extern const char* const crdi_predictions[];     ///< crd_prediction
extern const char* const crdi_solvers[];         ///< crd_solver
extern const char* const crdi_overruns[];        ///< crd_overrun
extern const char* const crdi_guard_actions[];   ///< crd_guard_action
extern const char* const crdi_circuit_methods[]; ///< crd_netlist_method, crd_circuit_method
extern const char* const crdi_circuit_forms[];   ///< crd_netlist_form, crd_circuit_form
extern const char* const crdi_shapes[];          ///< crd_signal_shape
extern const char* const crdi_interpolations[];  ///< crd_interpolation
