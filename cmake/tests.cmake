# Tests are found by their place:
#   tests/unit/<room>/test_*.c     one cmocka program each             label unit
#   tests/lua/**/*_spec.lua        busted inside the streamlua binary  label lua (abi_spec: abi)
#   tests/functional/*_spec.lua    busted that starts the real binary  label functional
#   tests/bench/limits.c           the program behind the limits of scripts/bench
#   tests/sim/*.c                  the simulated control plane         label sim
#   tests/fuzz/fuzz_*.c            LLVMFuzzerTestOneInput on mutations of tests/fuzz/corpus/<name>,
#                                  linked with tests/fuzz/driver.c     label fuzz
#   tests/bench/bench_*.c          programs of the benchmark, built only
# A first-lines comment `labels: short` adds labels; `timeout: 120` sets the limit in seconds. `short`
# runs under the sanitizers too, `zookeeper` with none of its kind beside it, `functional` takes a C test
# out of the label unit.
if(NOT SL_TESTS)
  return()
endif()
enable_testing()

set(SL_TEST_ENVIRONMENT
  "ASAN_OPTIONS=detect_stack_use_after_return=0:abort_on_error=0"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=0:second_deadlock_stack=1:suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.supp"
  "XDG_STATE_HOME=${CMAKE_BINARY_DIR}/tests/home/state"
  "XDG_CONFIG_HOME=${CMAKE_BINARY_DIR}/tests/home/config"
  "SL_TEST_BUILD=${SL_BUILD}"
  "SL_TEST_BINARY=$<TARGET_FILE:streamlua>")

# What a developer's shell may hold must not reach the tests.
set(SL_TEST_UNSET LUA_PATH=unset: LUA_CPATH=unset: LUA_INIT=unset: NO_COLOR=unset:)
foreach(name IN ITEMS
  HOME CLUSTER STATE SERVICE_URL SECRET CONFIG SET OUTPUT COLOR VERBOSE QUIET TIMEOUT)
  list(APPEND SL_TEST_UNSET "STREAMLUA_${name}=unset:")
endforeach()

# sl_add_test(NAME name LABEL label SOURCE file COMMAND ...)
function(sl_add_test)
  cmake_parse_arguments(T "" "NAME;LABEL;SOURCE" "COMMAND" ${ARGN})
  add_test(NAME ${T_NAME} COMMAND ${T_COMMAND} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set(labels ${T_LABEL})
  set(timeout 300)
  file(STRINGS ${T_SOURCE} marks LIMIT_COUNT 12 REGEX "(labels|timeout): ")
  foreach(mark IN LISTS marks)
    if(mark MATCHES "labels: ([a-z ]+)")
      string(STRIP "${CMAKE_MATCH_1}" words)
      string(REPLACE " " ";" words "${words}")
      list(APPEND labels ${words})
    endif()
    if(mark MATCHES "timeout: ([0-9]+)")
      set(timeout ${CMAKE_MATCH_1})
    endif()
  endforeach()
  # A C test that needs a real server is not for the quick runs.
  if("functional" IN_LIST labels)
    list(REMOVE_ITEM labels unit)
  endif()
  if(SL_SANITIZED)
    math(EXPR timeout "${timeout} * 3")
  endif()
  # The dear ones first, so that in the end nobody waits for a single long one. Those on ZooKeeper wait for
  # sessions, one after the other, for as long as all others take; the ones in C, which look at a clock, end
  # the row, when nothing is built any more.
  set(cost 0)
  if("zookeeper" IN_LIST labels)
    set_tests_properties(${T_NAME} PROPERTIES RESOURCE_LOCK zookeeper)
  endif()
  if("zookeeper" IN_LIST labels AND T_LABEL STREQUAL "functional")
    set(cost 3)
  elseif(T_LABEL STREQUAL "lua")
    set(cost 1)
  elseif(NOT T_LABEL STREQUAL "unit")
    set(cost 2)
  endif()
  set_tests_properties(${T_NAME} PROPERTIES
    LABELS "${labels}" TIMEOUT ${timeout} COST ${cost}
    ENVIRONMENT "${SL_TEST_ENVIRONMENT}" ENVIRONMENT_MODIFICATION "${SL_TEST_UNSET}")
endfunction()

# There are many programs to link, and where this linker is it takes half the time.
find_program(SL_GOLD ld.gold)

# What a C test of the core is compiled and linked with.
function(sl_core_test target)
  target_link_libraries(${target} PRIVATE sl_flags sl_core PkgConfig::CMOCKA PkgConfig::PROTOBUF_C)
  target_include_directories(${target} PRIVATE
    ${CMAKE_SOURCE_DIR}/core ${CMAKE_SOURCE_DIR}/tests/unit ${SL_GEN_DIR} ${SL_GEN_DIR}/proto)
  target_compile_definitions(${target} PRIVATE SL_MODULE="test")
  # Test functions and mocks need no prototype.
  target_compile_options(${target} PRIVATE -Wno-missing-prototypes)
  if(SL_BUILD STREQUAL "asan")
    # What is looked at is the core.
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  elseif(SL_BUILD STREQUAL "release")
    # Whoever steps through a test uses the dev build; here lines are enough.
    target_compile_options(${target} PRIVATE -g1)
  endif()
  if(SL_GOLD)
    target_link_options(${target} PRIVATE -fuse-ld=gold)
  endif()
  add_dependencies(${target} sl_proto_headers sl_abi_generated)
endfunction()

file(GLOB_RECURSE unit_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/test_*.c)
foreach(source IN LISTS unit_tests)
  file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/tests/unit ${source})
  get_filename_component(room ${relative} DIRECTORY)
  get_filename_component(name ${relative} NAME_WE)
  string(REPLACE "/" "_" target "unit_${room}_${name}")
  add_executable(${target} ${source})
  sl_core_test(${target})
  # The test is no product: what counts is how soon it is built. Without the optimiser gcc does not
  # know how long texts can be.
  set_source_files_properties(${source} PROPERTIES
    COMPILE_OPTIONS "-O0;-Wno-format-truncation")
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/unit/${room} OUTPUT_NAME ${name})
  sl_add_test(NAME unit/${room}/${name} LABEL unit SOURCE ${source} COMMAND ${target})
endforeach()

file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source IN LISTS fuzzers)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source} ${CMAKE_SOURCE_DIR}/tests/fuzz/driver.c)
  sl_core_test(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/fuzz)
  string(REGEX REPLACE "^fuzz_" "" corpus ${name})
  set(corpus ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${corpus})
  if(NOT EXISTS ${corpus})
    set(corpus "")
  endif()
  # Long where memory errors are seen, else only that it works.
  set(length --runs 20000)
  if(SL_BUILD STREQUAL "asan")
    set(length --seconds 10)
  endif()
  sl_add_test(NAME fuzz/${name} LABEL fuzz SOURCE ${source} COMMAND ${name} ${length} ${corpus})
endforeach()

# What the machine can do without the engine: see scripts/bench.
add_executable(sl_bench_limits EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/bench/limits.c)
target_link_libraries(sl_bench_limits PRIVATE sl_flags Threads::Threads)
set_target_properties(sl_bench_limits PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bench OUTPUT_NAME limits)

# Programs that workloads of scripts/bench.d start; scripts/bench builds them.
file(GLOB benches CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/bench/bench_*.c)
foreach(source IN LISTS benches)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  sl_core_test(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/bench)
endforeach()

file(GLOB sim_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/sim/*.c)
if(sim_sources)
  add_executable(control_plane_sim ${sim_sources})
  sl_core_test(control_plane_sim)
  target_include_directories(control_plane_sim PRIVATE ${CMAKE_SOURCE_DIR}/tests/sim)
  set_target_properties(control_plane_sim PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/sim)
  sl_add_test(NAME sim/control_plane LABEL sim
    SOURCE ${CMAKE_SOURCE_DIR}/tests/sim/control_plane_sim.c COMMAND control_plane_sim)
endif()

function(sl_add_specs label)
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/tests ${source})
    string(REGEX REPLACE "_spec\\.lua$" "" name ${relative})
    set(spec_label ${label})
    if(name STREQUAL "lua/abi")
      set(spec_label abi)
    endif()
    sl_add_test(NAME ${name} LABEL ${spec_label} SOURCE ${source}
      COMMAND streamlua exec tests/support/busted.lua ${source})
  endforeach()
endfunction()
file(GLOB_RECURSE lua_specs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/lua/*_spec.lua)
file(GLOB_RECURSE functional_specs CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/tests/functional/*_spec.lua)
sl_add_specs(lua ${lua_specs})
sl_add_specs(functional ${functional_specs})

sl_add_test(NAME check/rooms LABEL check SOURCE ${CMAKE_SOURCE_DIR}/scripts/check-rooms
  COMMAND ${SL_LUAJIT} ${CMAKE_SOURCE_DIR}/scripts/check-rooms)
sl_add_test(NAME check/meta LABEL check SOURCE ${CMAKE_SOURCE_DIR}/scripts/gen-meta
  COMMAND ${SL_LUAJIT} ${CMAKE_SOURCE_DIR}/scripts/gen-meta --check)

# Every header compiles alone and twice: one generated translation unit a header.
if(SL_BUILD STREQUAL "dev")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/core/*.h)
  list(FILTER headers EXCLUDE REGEX "\\.abi\\.h$")
  set(header_units "")
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR}/core ${header})
    set(unit ${SL_GEN_DIR}/headers/${relative}.c)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${relative}\"\n#include \"${relative}\"\n")
    list(APPEND header_units ${unit})
  endforeach()
  if(header_units)
    add_library(sl_header_checks OBJECT ${header_units})
    target_link_libraries(sl_header_checks PRIVATE sl_flags Threads::Threads PkgConfig::LUAJIT
      PkgConfig::UV PkgConfig::PROTOBUF_C sl_zookeeper)
    target_include_directories(sl_header_checks PRIVATE
      ${CMAKE_SOURCE_DIR}/core ${SL_GEN_DIR} ${SL_GEN_DIR}/proto)
    target_compile_definitions(sl_header_checks PRIVATE SL_MODULE="header")
    target_compile_options(sl_header_checks PRIVATE -O0)
    add_dependencies(sl_header_checks sl_proto_headers sl_abi_generated)
  endif()
endif()
