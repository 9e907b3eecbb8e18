# SPDX-License-Identifier: MIT OR Apache-2.0
#
# examples/NN_name.c sees the public headers and the shared library, as a user's
# program does. Its output must equal examples/NN_name.expected when there is one.

if(NOT FK_HOSTED_SOURCES)
    return()
endif()

fk_glob(sources "examples/[0-9][0-9]_*.c")
foreach(source ${sources})
    cmake_path(GET source STEM name)
    add_executable(example_${name} ${source})
    fk_program_flags(example_${name})
    file(STRINGS ${source} testkit REGEX "fraktor/testkit.h")
    if(testkit) # which brings the static library
        target_link_libraries(example_${name} PRIVATE fraktor-testkit Threads::Threads)
    else()
        target_link_libraries(example_${name} PRIVATE fraktor Threads::Threads)
    endif()
    set_target_properties(example_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/examples OUTPUT_NAME ${name})
    if(FK_TESTS AND Python3_FOUND)
        fk_add_test(example_${name} TIMEOUT 60
            COMMAND ${FK_PYTHON} ${FK_CHECKS}/run_example.py
                    --expected ${PROJECT_SOURCE_DIR}/examples/${name}.expected
                    -- $<TARGET_FILE:example_${name}>)
    endif()
endforeach()
