# What `cmake --install` puts where, so that a host says find_package(normc) or asks pkg-config:
#
#   runtime      libnormc_runtime: all that a machine needs to run kernels; LICENSE and NOTICE
#   tuner        libnormc_tuner, normc-bundle, normc-worker: tuning without a compiler
#   compiler     normc, and the generator and the emulator that it uses
#   development  headers as <normc/normc.h>, libnormc_runtime.a, CMake's files, pkg-config's
#
# Any of them alone: cmake --install build --component runtime. Nothing remembers the prefix: the tree may be moved.
# What was not built is left out, so `cmake --install` works after any build. `cpack` in the build folder makes a
# tarball and a .deb of each.
include(CMakePackageConfigHelpers)

set(libraries normc_runtime normc_tuner)
set(programs normc-worker normc-bundle)
if(NORMC_BUILD_COMPILER)
  list(APPEND programs normc)
  if(TARGET normc-halide-gen)
    list(APPEND programs normc-halide-gen)
  endif()
  if(TARGET normc_emulator)
    list(APPEND libraries normc_fake_cuda)
  endif()
endif()
file(RELATIVE_PATH fromPrograms ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(${libraries} PROPERTIES INSTALL_RPATH "$ORIGIN")
set_target_properties(${programs} PROPERTIES INSTALL_RPATH "$ORIGIN/${fromPrograms}" INSTALL_RPATH_USE_LINK_PATH ON)

set_target_properties(normc_runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(normc_runtime_static PROPERTIES EXPORT_NAME runtime_static)
set_target_properties(normc_tuner PROPERTIES EXPORT_NAME tuner)
install(TARGETS normc_runtime EXPORT normcRuntime OPTIONAL
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
install(TARGETS normc_runtime_static EXPORT normcRuntimeStatic OPTIONAL ARCHIVE COMPONENT development)
install(TARGETS normc_tuner EXPORT normcTuner OPTIONAL LIBRARY COMPONENT tuner)
install(TARGETS normc-worker normc-bundle OPTIONAL RUNTIME COMPONENT tuner)
if(NORMC_BUILD_COMPILER)
  install(TARGETS normc EXPORT normcCompiler OPTIONAL RUNTIME COMPONENT compiler)
  if(TARGET normc-halide-gen)
    # The Halide that it was linked with lies in the source tree, which INSTALL_RPATH_USE_LINK_PATH leaves out.
    set_property(TARGET normc-halide-gen APPEND PROPERTY INSTALL_RPATH "$<TARGET_FILE_DIR:Halide::Halide>")
    install(TARGETS normc-halide-gen OPTIONAL RUNTIME COMPONENT compiler)
  endif()
  if(TARGET normc_emulator)
    install(TARGETS normc_fake_cuda OPTIONAL LIBRARY COMPONENT compiler)
  endif()
endif()

set(config ${CMAKE_INSTALL_LIBDIR}/cmake/normc)
# Targets come with what they name, so that find_package offers what is there.
set(componentOfRuntime development)
set(componentOfRuntimeStatic development)
set(componentOfTuner tuner)
set(componentOfCompiler compiler)
foreach(part Runtime RuntimeStatic Tuner Compiler)
  if(NOT part STREQUAL Compiler OR NORMC_BUILD_COMPILER)
    install(EXPORT normc${part} FILE normc${part}Targets.cmake NAMESPACE normc:: DESTINATION ${config}
      COMPONENT ${componentOf${part}})
  endif()
endforeach()
configure_package_config_file(cmake/normcConfig.cmake.in normcConfig.cmake INSTALL_DESTINATION ${config}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(normcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/normcConfig.cmake ${PROJECT_BINARY_DIR}/normcConfigVersion.cmake
  cmake/NormcAddPackage.cmake DESTINATION ${config} COMPONENT development)

file(RELATIVE_PATH toPrefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
# In the prefix, or where they are given whole: such a path replaces what it is appended to.
cmake_path(APPEND pcLibraries "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pcHeaders "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(cmake/normc.pc.in normc.pc @ONLY)
configure_file(cmake/normc_tuner.pc.in normc_tuner.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/normc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/normc_tuner.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT tuner)
# The library holds code of others (NOTICE), so its terms go with it.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/normc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

set(CPACK_PACKAGE_VENDOR normc)
set(CPACK_PACKAGE_CONTACT normc)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Normalization layers as compiled kernels")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${tree}/${CMAKE_INSTALL_LIBDIR})
set(CPACK_INSTALL_PREFIX /usr)
include(CPack)
cpack_add_component(runtime)
cpack_add_component(tuner DEPENDS runtime)
cpack_add_component(compiler DEPENDS tuner)
cpack_add_component(development DEPENDS runtime)
