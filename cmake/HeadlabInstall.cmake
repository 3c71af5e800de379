include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(headlab_targets headlab headlab_flags)
if(TARGET headlab_command)
  list(APPEND headlab_targets headlab_command)
endif()
install(TARGETS ${headlab_targets} EXPORT headlabTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET headlab_main)
  install(TARGETS headlab_main RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY framework models DESTINATION include/headlab FILES_MATCHING PATTERN "*.h")
install(EXPORT headlabTargets NAMESPACE headlab:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headlab)
configure_package_config_file(cmake/headlabConfig.cmake.in ${PROJECT_BINARY_DIR}/headlabConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headlab)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/headlabConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/headlabConfig.cmake ${PROJECT_BINARY_DIR}/headlabConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/headlab)
