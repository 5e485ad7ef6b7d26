# Products: the executable with its ABI exported, and the shared library for a stock LuaJIT.
set(SL_LIBRARIES
  PkgConfig::LUAJIT PkgConfig::UV PkgConfig::PROTOBUF_C sl_zookeeper Threads::Threads m dl)

set(SL_CORE_OBJECTS "")
foreach(room IN LISTS SL_PRESENT_ROOMS)
  if(NOT room STREQUAL "main")
    list(APPEND SL_CORE_OBJECTS $<TARGET_OBJECTS:sl_${room}>)
  endif()
endforeach()

# Objects, not an archive: a linker drops archive members that only ffi.C reaches.
add_executable(streamlua $<TARGET_OBJECTS:sl_main> ${SL_CORE_OBJECTS})
target_link_libraries(streamlua PRIVATE sl_flags ${SL_LIBRARIES})
set_target_properties(streamlua PROPERTIES ENABLE_EXPORTS ON)

# Unit tests take from an archive only what they use, which keeps them small and quick to link.
add_library(sl_core STATIC EXCLUDE_FROM_ALL ${SL_CORE_OBJECTS})
set_target_properties(sl_core PROPERTIES LINKER_LANGUAGE C)
target_link_libraries(sl_core PUBLIC ${SL_LIBRARIES})

# A sanitizer's runtime must be loaded first, so a stock luajit can not load such a library.
if(NOT SL_SANITIZED)
  add_library(streamlua_shared SHARED ${SL_CORE_OBJECTS})
  set_target_properties(streamlua_shared PROPERTIES
    OUTPUT_NAME streamlua LINKER_LANGUAGE C SOVERSION ${PROJECT_VERSION_MAJOR}
    VERSION ${PROJECT_VERSION})
  target_link_libraries(streamlua_shared PRIVATE
    sl_flags PkgConfig::UV PkgConfig::PROTOBUF_C sl_zookeeper Threads::Threads m dl)
endif()
