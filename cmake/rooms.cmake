# One object library a room: core/<room>/*.c becomes sl_<room>. core/rooms.txt says who may use whom
# and scripts/check-rooms checks it; here a room only gets the library headers that are its own.
set(SL_ROOMS base loop http wire topology packing scheduling state rpc stream batch cluster abi main)

# Rooms of pure algorithms and the hot path: an implicit narrowing is an error to look at.
set(SL_CONVERSION_ROOMS topology packing scheduling stream)

set(SL_PRESENT_ROOMS "")
foreach(room IN LISTS SL_ROOMS)
  file(GLOB room_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/core/${room}/*.c)
  if(room STREQUAL "wire")
    list(APPEND room_sources ${SL_PROTO_SOURCES})
  endif()
  if(NOT room_sources)
    continue()
  endif()
  add_library(sl_${room} OBJECT ${room_sources})
  target_link_libraries(sl_${room} PRIVATE sl_flags Threads::Threads)
  target_include_directories(sl_${room} PRIVATE ${CMAKE_SOURCE_DIR}/core ${SL_GEN_DIR})
  # The name that log lines and failed assertions of the room carry.
  target_compile_definitions(sl_${room} PRIVATE SL_MODULE="${room}")
  if(room IN_LIST SL_CONVERSION_ROOMS)
    target_compile_options(sl_${room} PRIVATE -Wconversion -Wno-sign-conversion)
  endif()
  if(SL_BUILD STREQUAL "release" AND room STREQUAL "stream")
    target_compile_options(sl_${room} PRIVATE -O3)
  endif()
  # Generated message headers are seen by wire and by rooms with a wrapper, and by nobody else.
  file(GLOB codecs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/core/${room}/*_codec.c)
  if(codecs OR room STREQUAL "wire" OR room STREQUAL "topology")
    target_include_directories(sl_${room} SYSTEM PRIVATE ${SL_GEN_DIR}/proto)
    target_link_libraries(sl_${room} PRIVATE PkgConfig::PROTOBUF_C)
    add_dependencies(sl_${room} sl_proto_headers)
  endif()
  list(APPEND SL_PRESENT_ROOMS ${room})
endforeach()

# What the headers of a foreign library need, given only to the room that hides the library.
function(sl_room_uses room)
  if(TARGET sl_${room})
    target_link_libraries(sl_${room} PRIVATE ${ARGN})
  endif()
endfunction()
sl_room_uses(loop PkgConfig::UV)
sl_room_uses(state sl_zookeeper)
sl_room_uses(http sl_microhttpd)
sl_room_uses(main PkgConfig::LUAJIT)
# Debian keeps C modules of Lua in a folder of the machine's architecture.
target_compile_definitions(sl_main PRIVATE SL_MULTIARCH="${CMAKE_LIBRARY_ARCHITECTURE}")
