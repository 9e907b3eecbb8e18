# SPDX-License-Identifier: MIT OR Apache-2.0

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fraktor)

install(TARGETS fraktor-headers fraktor-core fraktor fraktor-static fraktor-testkit
        EXPORT fraktor-targets FILE_SET HEADERS)
install(EXPORT fraktor-targets NAMESPACE fraktor:: DESTINATION ${package_dir})
foreach(program fraktor-cli fraktor-sim)
    if(TARGET ${program})
        install(TARGETS ${program})
    endif()
endforeach()

# The static library needs libuv and SQLite, if it was built with them; the shared one has them by
# itself.
set(FK_PC_LIBUV)
set(FK_CONFIG_LIBUV)
set(FK_PC_SQLITE)
set(FK_CONFIG_SQLITE)
if(FK_LIBUV)
    set(FK_PC_LIBUV libuv)
    set(FK_CONFIG_LIBUV "find_dependency(PkgConfig)\npkg_check_modules(LIBUV REQUIRED QUIET IMPORTED_TARGET libuv)")
endif()
if(FK_SQLITE3)
    set(FK_PC_SQLITE sqlite3)
    set(FK_CONFIG_SQLITE "find_dependency(PkgConfig)\npkg_check_modules(SQLITE REQUIRED QUIET IMPORTED_TARGET sqlite3)")
endif()
configure_package_config_file(cmake/fraktor-config.cmake.in
    ${PROJECT_BINARY_DIR}/fraktor-config.cmake INSTALL_DESTINATION ${package_dir})
# Until 1.0 the minor version carries the ABI, as the SONAME does.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fraktor-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fraktor-config.cmake
              ${PROJECT_BINARY_DIR}/fraktor-config-version.cmake DESTINATION ${package_dir})

# The prefix is found from where the .pc file lies, so the tree may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR
    BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE FK_PC_LIBDIR)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR
    BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE FK_PC_INCLUDEDIR)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
    BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE FK_PC_UP)
foreach(pc fraktor fraktor-core fraktor-testkit)
    configure_file(cmake/${pc}.pc.in ${PROJECT_BINARY_DIR}/${pc}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${pc}.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

install(FILES LICENSE-MIT LICENSE-APACHE DESTINATION ${CMAKE_INSTALL_DOCDIR})
