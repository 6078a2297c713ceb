# The system of examples/prototype that `cardan reproduce rautenberg2023` runs becomes bytes in crd_reproduce.
set(folder ${PROJECT_SOURCE_DIR}/examples/prototype)
set(embedded ${CMAKE_BINARY_DIR}/rautenberg_assets.c)
set(assets crdi_rautenberg_system=${folder}/wltc.yaml crdi_rautenberg_oil=${folder}/oil_circuit.cir)
add_custom_command(OUTPUT ${embedded}
                   COMMAND ${CMAKE_COMMAND} -D OUT=${embedded} -D "ASSETS=${assets}"
                           -D HEADER=reproduce/rautenberg2023.h -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                   DEPENDS ${folder}/wltc.yaml ${folder}/oil_circuit.cir ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                   VERBATIM)
target_sources(crd_reproduce PRIVATE ${embedded})
