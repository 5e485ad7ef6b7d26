# From the bare headers that core/abi/order.txt lists come, at build time:
#   gen/abi/abi.h       includes them all, the prototypes with default visibility
#   gen/abi_text.c      their bytes, as sl_abi_text() returns them
#   gen/abi_layout.c    the {struct, field, offset, size} table that the layout spec compares
file(STRINGS ${CMAKE_SOURCE_DIR}/core/abi/order.txt SL_ABI_ORDER REGEX "^[^#]")
list(TRANSFORM SL_ABI_ORDER PREPEND ${CMAKE_SOURCE_DIR}/core/ OUTPUT_VARIABLE SL_ABI_HEADERS)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/core/abi/order.txt)
file(MAKE_DIRECTORY ${SL_GEN_DIR}/abi)

set(SL_ABI_GENERATED
  ${SL_GEN_DIR}/abi/abi.h ${SL_GEN_DIR}/abi_text.c ${SL_GEN_DIR}/abi_layout.c)
add_custom_command(
  OUTPUT ${SL_ABI_GENERATED}
  COMMAND ${SL_LUAJIT} ${CMAKE_SOURCE_DIR}/scripts/abi/generate.lua
    ${CMAKE_SOURCE_DIR} ${SL_GEN_DIR}
  DEPENDS ${SL_ABI_HEADERS} ${CMAKE_SOURCE_DIR}/core/abi/order.txt
    ${CMAKE_SOURCE_DIR}/scripts/abi/generate.lua ${CMAKE_SOURCE_DIR}/scripts/abi/bare_header.lua
  COMMENT "ABI text, layouts and abi.h")
add_custom_target(sl_abi_generated DEPENDS ${SL_ABI_GENERATED})
target_sources(sl_abi PRIVATE ${SL_ABI_GENERATED})
target_compile_definitions(sl_abi PRIVATE SL_VERSION="${PROJECT_VERSION}")
add_dependencies(sl_main sl_abi_generated)
