# What libcardan-core is made of, from src/: the same files as of libcardan, and two of its own.
set(CARDAN_CORE_SOURCES
    base/builder.c base/context.c base/memory.c base/number.c base/quantity.c base/text.c
    coupling/algorithm.c coupling/bank.c coupling/basis.c coupling/cholesky.c coupling/commands.c coupling/commands_row.c
    coupling/detect.c coupling/element.c coupling/eros.c coupling/error_curves.c coupling/error_space.c coupling/given.c
    coupling/history.c coupling/hold.c coupling/learner.c coupling/linear.c coupling/mixture.c coupling/network.c
    coupling/networks.c coupling/pair.c coupling/pair_over.c coupling/polynomial.c coupling/rls.c coupling/score.c
    coupling/table.c coupling/timeline.c coupling/wiener.c
    dcp/line.c dcp/names.c dcp/pdu.c dcp/sequence.c dcp/states.c dcp/values.c dcp/variables.c
    dcp/description/description.c dcp/description/start.c
    dcp/slave/config.c dcp/slave/data.c dcp/slave/log.c dcp/slave/run.c dcp/slave/slave.c dcp/slave/watch.c
    dcp/bench/bench.c dcp/bench/describe.c dcp/bench/limits.c dcp/bench/numbers.c dcp/bench/run.c dcp/bench/safety.c
    circuit/expression_eval.c circuit/on_board.c circuit/waveform.c
    twin/dense.c twin/discretise.c twin/model.c twin/on_board.c twin/reduce.c twin/rows.c twin/state.c twin/thesis.c twin/twin.c twin/ud.c
    core/core.c core/format.c)
# Of these, what computes with crd_real: with -DCARDAN_CORE_SINGLE=ON in single precision. Designs, times, wave pairs, twins and
# all of DCP are in double precision always; the factorisation that designs need is compiled in both.
set(CARDAN_CORE_REAL
    coupling/basis.c coupling/cholesky.c coupling/commands.c coupling/commands_row.c coupling/detect.c coupling/element.c
    coupling/error_curves.c coupling/given.c coupling/history.c coupling/learner.c coupling/linear.c coupling/mixture.c
    coupling/network.c coupling/networks.c coupling/rls.c coupling/table.c)
# Its interface: all that the library is there for. What these do not need is left out of it.
set(CARDAN_CORE_INTERFACE
    crd_core_start crd_core_context crd_core_slave_defaults crd_core_serve crd_core_seal crd_core_turn crd_core_get_state
    crd_free crd_arena_init crd_arena_clear crd_error_text crd_status_name crd_status_text crd_version
    crd_design_defaults crd_linear_make crd_linear_wiener crd_linear_affine crd_linear_copy crd_linear_clear crd_linear_eval
    crd_detector_init crd_detector_set_spectrum crd_detector_push crd_spectrum_above
    crd_network_morph crd_network_morph_to crd_network_shape crd_network_clear crd_network_eval crd_command_weights_count
    crd_coupling_defaults crd_coupling_create crd_coupling_destroy crd_coupling_push crd_coupling_eval crd_coupling_slope
    crd_coupling_set_step crd_coupling_command crd_coupling_get_commands crd_coupling_get_weights crd_coupling_reset
    crd_coupling_swap crd_coupling_get_network crd_coupling_get_counts crd_coupling_get_state crd_score_add crd_score_metrics
    crd_coupling_bank_create crd_coupling_bank_destroy crd_coupling_bank_push crd_coupling_bank_eval
    crd_coupling_bank_set_step crd_coupling_bank_get_counts
    crd_pair_defaults crd_pair_init crd_pair_receive crd_pair_act crd_pair_done crd_pair_done_as crd_pair_send
    crd_pair_predict crd_pair_get_state
    crd_twin_create crd_twin_destroy crd_twin_begin crd_twin_set_input crd_twin_step crd_twin_step_to crd_twin_time
    crd_twin_states crd_twin_size crd_twin_now crd_twin_output crd_twin_node crd_twin_parameter_now crd_twin_source_now crd_twin_state
    crd_twin_sensor_now crd_twin_state_size crd_twin_save crd_twin_restore
    crd_dcp_state_name crd_dcp_data_type_name crd_dcp_error_name crd_dcp_error_text crd_dcp_op_mode_name
    crd_dcp_variable_defaults crd_dcp_find_vr crd_dcp_address_equal
    crd_dcp_slave_defaults crd_dcp_slave_create crd_dcp_slave_destroy crd_dcp_slave_receive crd_dcp_slave_advance
    crd_dcp_slave_next crd_dcp_slave_done crd_dcp_slave_fault crd_dcp_slave_stop crd_dcp_slave_log crd_dcp_slave_state
    crd_dcp_slave_error crd_dcp_slave_get_counts
    crd_dcp_quantity_defaults crd_dcp_bench_defaults crd_dcp_bench_create crd_dcp_bench_destroy crd_dcp_bench_plant
    crd_dcp_bench_attach crd_dcp_bench_stop crd_dcp_bench_get_state crd_dcp_bench_set_value crd_dcp_bench_phase_name
    crd_dcp_bench_reason_name)
