# A toolchain for libraries that any Linux with glibc 2.28 or newer loads, as Python wheels hold them
# (manylinux_2_28): clang, its C++ library and the stubs of an old glibc, all from the PyPI package `ziglang`.
# scripts/wheel uses it. Programs and libraries carry their C++ library in themselves.
#
#   NORMC_ZIG        the program `zig`; by default the one that scripts/setup --wheel installs
#   NORMC_PROCESSOR  x86_64 or aarch64
if(NOT NORMC_PROCESSOR)
  set(NORMC_PROCESSOR x86_64)
endif()
if(NOT NORMC_ZIG)
  file(GLOB NORMC_ZIG ${CMAKE_CURRENT_LIST_DIR}/../.deps/python/lib/python3*/site-packages/ziglang/zig)
  if(NOT NORMC_ZIG)
    message(FATAL_ERROR "there is no zig; scripts/setup --wheel installs it, or set NORMC_ZIG")
  endif()
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES NORMC_ZIG NORMC_PROCESSOR)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${NORMC_PROCESSOR})
set(CMAKE_C_COMPILER ${NORMC_ZIG} cc -target ${NORMC_PROCESSOR}-linux-gnu.2.28)
set(CMAKE_CXX_COMPILER ${NORMC_ZIG} c++ -target ${NORMC_PROCESSOR}-linux-gnu.2.28)
find_program(CMAKE_AR NAMES llvm-ar-22 llvm-ar REQUIRED)
find_program(CMAKE_RANLIB NAMES llvm-ranlib-22 llvm-ranlib REQUIRED)
set(NORMC_CCACHE "" CACHE FILEPATH "zig has a cache of its own")

set(CMAKE_SHARED_LINKER_FLAGS_INIT -s)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -s)
# The build folder holds what is installed. A search path that CMake fills in at the installation has empty
# entries until then, and those mean the current folder.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

# nlohmann/json lies beside the headers of this machine's C library, which must not be seen: a link alone.
get_property(trying GLOBAL PROPERTY IN_TRY_COMPILE)
if(NOT trying)
  find_path(NORMC_JSON nlohmann/json.hpp REQUIRED PATHS /usr/include NO_CMAKE_FIND_ROOT_PATH)
  set(nlohmann_json_DIR ${CMAKE_BINARY_DIR}/json)
  file(MAKE_DIRECTORY ${nlohmann_json_DIR}/include)
  file(CREATE_LINK ${NORMC_JSON}/nlohmann ${nlohmann_json_DIR}/include/nlohmann SYMBOLIC)
  file(WRITE ${nlohmann_json_DIR}/nlohmann_jsonConfigVersion.cmake "set(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
  file(WRITE ${nlohmann_json_DIR}/nlohmann_jsonConfig.cmake "
    add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
    target_include_directories(nlohmann_json::nlohmann_json INTERFACE ${nlohmann_json_DIR}/include)\n")
endif()
