# Compiler flags of the five kinds of build. SL_BUILD names the kind; a preset sets it.
set(SL_BUILD "release" CACHE STRING "dev, release, asan, tsan or coverage")
set_property(CACHE SL_BUILD PROPERTY STRINGS dev release asan tsan coverage)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# The kind of build decides the optimisation, so CMake's own build types stay out of the way.
set(CMAKE_BUILD_TYPE "" CACHE STRING "unused: see SL_BUILD" FORCE)

add_library(sl_flags INTERFACE)
target_compile_options(sl_flags INTERFACE
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2
  -fno-omit-frame-pointer -fno-semantic-interposition)
target_compile_definitions(sl_flags INTERFACE _GNU_SOURCE)

# Reports of sanitizers name functions and lines; types and variables would only be to build and link.
set(SL_DEBUG_INFO -g)
set(SL_SANITIZED FALSE)
if(SL_BUILD STREQUAL "dev")
  target_compile_options(sl_flags INTERFACE -O1 -Werror)
  target_compile_definitions(sl_flags INTERFACE SL_DEBUG=1)
elseif(SL_BUILD STREQUAL "release")
  target_compile_options(sl_flags INTERFACE -O2)
  target_compile_definitions(sl_flags INTERFACE NDEBUG)
elseif(SL_BUILD STREQUAL "asan")
  set(SL_SANITIZED TRUE)
  set(SL_DEBUG_INFO -g1)
  # A place that is known when it is linked spares half a million relocations a program.
  set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(sl_flags INTERFACE -fno-pie)
  target_link_options(sl_flags INTERFACE -no-pie)
  # gcc's optimiser takes three times as long over this instrumentation, and the tests mostly wait.
  target_compile_options(sl_flags INTERFACE -O0
    -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_link_options(sl_flags INTERFACE -fsanitize=address,undefined)
  target_compile_definitions(sl_flags INTERFACE SL_DEBUG=1)
elseif(SL_BUILD STREQUAL "tsan")
  set(SL_SANITIZED TRUE)
  set(SL_DEBUG_INFO -g1)
  target_compile_options(sl_flags INTERFACE -O1 -fsanitize=thread)
  target_link_options(sl_flags INTERFACE -fsanitize=thread)
  target_compile_definitions(sl_flags INTERFACE SL_DEBUG=1)
elseif(SL_BUILD STREQUAL "coverage")
  target_compile_options(sl_flags INTERFACE -O0 --coverage)
  target_link_options(sl_flags INTERFACE --coverage)
  target_compile_definitions(sl_flags INTERFACE SL_DEBUG=1)
else()
  message(FATAL_ERROR "SL_BUILD is '${SL_BUILD}'; use dev, release, asan, tsan or coverage")
endif()
target_compile_options(sl_flags INTERFACE ${SL_DEBUG_INFO})
