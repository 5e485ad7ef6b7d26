# proto/*.proto -> <build>/gen/proto/*.pb-c.{c,h}; cmake/rooms.cmake compiles the sources into room wire.
file(GLOB SL_PROTOS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/proto/*.proto)
set(SL_GEN_DIR ${CMAKE_BINARY_DIR}/gen)
file(MAKE_DIRECTORY ${SL_GEN_DIR}/proto)
set(SL_PROTO_SOURCES "")
set(SL_PROTO_HEADERS "")
foreach(proto IN LISTS SL_PROTOS)
  get_filename_component(name ${proto} NAME_WE)
  set(out ${SL_GEN_DIR}/proto/${name}.pb-c)
  add_custom_command(
    OUTPUT ${out}.c ${out}.h
    COMMAND ${SL_PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR}/proto --c_out=${SL_GEN_DIR}/proto ${proto}
    DEPENDS ${SL_PROTOS}
    COMMENT "protoc-c ${name}.proto")
  list(APPEND SL_PROTO_SOURCES ${out}.c)
  list(APPEND SL_PROTO_HEADERS ${out}.h)
endforeach()
if(SL_PROTO_SOURCES)
  # Generated code is not ours to keep free of warnings.
  set_source_files_properties(${SL_PROTO_SOURCES} PROPERTIES COMPILE_OPTIONS "-w")
endif()
add_custom_target(sl_proto_headers DEPENDS ${SL_PROTO_HEADERS})
