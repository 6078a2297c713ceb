# The JSON schema of descriptions becomes bytes in crd_cli, for `cardan schema`.
set(schema ${PROJECT_SOURCE_DIR}/docs/schema/cardan.schema.json)
set(embedded ${CMAKE_BINARY_DIR}/schema_asset.c)
add_custom_command(OUTPUT ${embedded}
                   COMMAND ${CMAKE_COMMAND} -D OUT=${embedded} -D "ASSETS=crdi_schema=${schema}"
                           -D HEADER=cli/new/schema.h -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                   DEPENDS ${schema} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
target_sources(crd_cli PRIVATE ${embedded})
