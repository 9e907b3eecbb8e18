# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Compiler flags, per target and never global, so that a project which takes
# fraktor in with add_subdirectory() keeps its own.

set(FK_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual
    -Wmissing-prototypes -Wvla -Wundef)
if(FK_WERROR)
    list(APPEND FK_WARNINGS -Werror)
endif()
if(CMAKE_C_COMPILER_ID MATCHES Clang)
    # FK_HOT functions are inline definitions with one external copy each, on purpose.
    list(APPEND FK_WARNINGS -Wno-static-in-inline)
    # What valgrind of Debian 12 can read.
    list(APPEND FK_WARNINGS -gdwarf-4)
endif()

if(FK_SANITIZE STREQUAL "")
    set(FK_SANITIZE_FLAGS)
elseif(FK_SANITIZE STREQUAL "address")
    set(FK_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
elseif(FK_SANITIZE STREQUAL "thread")
    set(FK_SANITIZE_FLAGS -fsanitize=thread -fno-omit-frame-pointer)
elseif(FK_SANITIZE STREQUAL "fuzzer")
    set(FK_SANITIZE_FLAGS -fsanitize=fuzzer-no-link,address,undefined
        -fno-sanitize-recover=all -fno-omit-frame-pointer)
else()
    message(FATAL_ERROR "FK_SANITIZE=${FK_SANITIZE}: use address, thread, fuzzer or nothing")
endif()

function(fk_common_flags target)
    set_target_properties(${target} PROPERTIES
        C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
    # __FILE__ in assertions is relative: the same binary whatever folder it was built in.
    target_compile_options(${target} PRIVATE ${FK_WARNINGS} ${FK_SANITIZE_FLAGS}
        -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
    if(FK_ASSERTIONS_SLOW)
        target_compile_definitions(${target} PRIVATE FK_ASSERT_SLOW=1)
    endif()
endfunction()

# Objects that go into the libraries: one position-independent set for both the
# shared and the static one.
function(fk_library_flags target)
    fk_common_flags(${target})
    target_include_directories(${target} PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_compile_options(${target} PRIVATE
        $<$<CONFIG:Release,RelWithDebInfo>:-fno-plt;-fno-semantic-interposition>)
    set_target_properties(${target} PROPERTIES
        POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
endfunction()

# [F] parts: nothing may pull in the C library behind our back.
function(fk_freestanding_flags target)
    target_compile_options(${target} PRIVATE
        -ffreestanding -fno-stack-protector -U_FORTIFY_SOURCE)
endfunction()

function(fk_sim_definitions target)
    target_compile_definitions(${target} PRIVATE FK_SIM=1)
    if(NOT FK_ASSERTIONS_SLOW)
        target_compile_definitions(${target} PRIVATE FK_ASSERT_SLOW=1)
    endif()
    target_compile_options(${target} PRIVATE -U_FORTIFY_SOURCE)
endfunction()

# What whoever links a library of ours in this build tree has to add. It stays
# out of the installed package: sanitized builds are not for installing.
function(fk_link_flags target)
    if(FK_SANITIZE_FLAGS)
        target_link_options(${target} PUBLIC $<BUILD_INTERFACE:${FK_SANITIZE_FLAGS}>)
    endif()
endfunction()

function(fk_program_flags target)
    fk_common_flags(${target})
    if(FK_SANITIZE_FLAGS)
        target_link_options(${target} PRIVATE ${FK_SANITIZE_FLAGS})
    endif()
endfunction()
