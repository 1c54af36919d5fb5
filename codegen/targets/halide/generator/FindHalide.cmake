# find_package(Halide VERSION): the target Halide::Halide, from what scripts/setup --halide installs or from the system.
#
# The CMake package in the wheel wants CMake 3.28, Debian 12 has 3.25; a header and a library are all there is to find.
file(GLOB wheel ${PROJECT_SOURCE_DIR}/.deps/python/lib/python3*/site-packages/halide)
foreach(found Halide_INCLUDE_DIR Halide_LIBRARY)
  if(${found} AND NOT EXISTS "${${found}}")  # it was removed since
    unset(${found} CACHE)
  endif()
endforeach()
find_path(Halide_INCLUDE_DIR Halide.h HINTS ${wheel} PATH_SUFFIXES include)
find_library(Halide_LIBRARY Halide HINTS ${wheel} PATH_SUFFIXES lib64 lib)
mark_as_advanced(Halide_INCLUDE_DIR Halide_LIBRARY)

set(Halide_VERSION "")
if(Halide_INCLUDE_DIR)
  file(STRINGS ${Halide_INCLUDE_DIR}/HalideRuntime.h lines REGEX "#define HALIDE_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND Halide_VERSION ${number})
  endforeach()
  list(JOIN Halide_VERSION "." Halide_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Halide REQUIRED_VARS Halide_LIBRARY Halide_INCLUDE_DIR VERSION_VAR Halide_VERSION
  HANDLE_VERSION_RANGE)
if(Halide_FOUND AND NOT TARGET Halide::Halide)
  add_library(Halide::Halide SHARED IMPORTED)
  set_target_properties(Halide::Halide PROPERTIES IMPORTED_LOCATION "${Halide_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Halide_INCLUDE_DIR}")
endif()
