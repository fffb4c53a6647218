# What `cmake --install` puts where, and the package that find_package(ballast) finds there.
# Headers keep their folders, so a program writes #include "core/matrix.h" in this tree and outside it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ballast)
install(TARGETS ballast_core ballast_sim ballast_props EXPORT ballastTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ballast)
install(TARGETS ballast RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY core sim props DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ballast FILES_MATCHING PATTERN "*.h")
install(DIRECTORY props/examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/ballast/examples)
install(DIRECTORY scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/ballast OPTIONAL)

install(EXPORT ballastTargets NAMESPACE ballast:: DESTINATION ${package_dir})
configure_package_config_file(core/cmake/ballastConfig.cmake.in ${PROJECT_BINARY_DIR}/ballastConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ballastConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ballastConfig.cmake ${PROJECT_BINARY_DIR}/ballastConfigVersion.cmake
  DESTINATION ${package_dir})
