# Libraries the core links with. scripts/packages.txt holds the Debian packages they come from.
find_package(PkgConfig REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
pkg_check_modules(LUAJIT REQUIRED IMPORTED_TARGET luajit)
pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)

# Only its header: core/http loads the library when a process serves HTTP.
pkg_check_modules(MICROHTTPD REQUIRED libmicrohttpd)
add_library(sl_microhttpd INTERFACE)
target_include_directories(sl_microhttpd SYSTEM INTERFACE ${MICROHTTPD_INCLUDE_DIRS})

# Debian's ZooKeeper client has no .pc file.
find_library(ZOOKEEPER_LIBRARY zookeeper_mt REQUIRED)
find_path(ZOOKEEPER_INCLUDE_DIR zookeeper/zookeeper.h REQUIRED)
add_library(sl_zookeeper INTERFACE)
target_link_libraries(sl_zookeeper INTERFACE ${ZOOKEEPER_LIBRARY})
target_include_directories(sl_zookeeper SYSTEM INTERFACE ${ZOOKEEPER_INCLUDE_DIR})
target_compile_definitions(sl_zookeeper INTERFACE THREADED)

find_program(SL_PROTOC_C protoc-c REQUIRED)
# Generators and checks are Lua programs; at build time our own binary does not exist yet.
find_program(SL_LUAJIT luajit REQUIRED)

# cmocka is needed by the tests only.
option(SL_TESTS "build the tests" ON)
if(SL_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()
