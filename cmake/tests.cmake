# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Every test has the label "test" (what ./run test runs); those that take a
# second or less and need no build product have "fast" as well.

find_package(Python3 3.9 COMPONENTS Interpreter)
set(FK_PYTHON ${Python3_EXECUTABLE} -B)
set(FK_CHECKS ${PROJECT_SOURCE_DIR}/tests/checks)

# Those that listen or start nodes run one at a time: ports are given to the next who asks, and a node
# that still tries to reach the one before it there would speak to a stranger.
set(FK_PORT_TESTS "^(net_|unit_host_.*(remote|cluster|grains|turns|settings)|stress_remote|stress_cluster|oom_|\
first_hour_1[6789]$|cli_.*remote|cli_.*cluster|cli_demo|example_1[1-5]_)")

# fk_add_test(<name> [FAST] [TIMEOUT s] COMMAND ...)
function(fk_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "FAST" "TIMEOUT" "COMMAND")
    if(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 60)
    endif()
    if(FK_SANITIZE) # which is slow, and more so where the machine is shared
        math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 3")
    endif()
    add_test(NAME ${name} COMMAND ${arg_COMMAND})
    set_tests_properties(${name} PROPERTIES
        LABELS "test;ci" TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77)
    if(arg_FAST)
        set_tests_properties(${name} PROPERTIES LABELS "fast;test;ci")
    endif()
    if(name MATCHES "${FK_PORT_TESTS}")
        set_tests_properties(${name} PROPERTIES RESOURCE_LOCK ports)
    endif()
    # They measure time, or race against it: nobody runs beside them.
    if(name MATCHES "^(stress_(retirement|cluster)|first_hour_19$)")
        set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
endfunction()

# fk_test_program(<name> <source> LIBRARIES ...): an executable that is a test.
# test_x.c is built together with x.c and x_*.c when those lie beside it, mutants_x.c with all that
# lies beside it and is no test itself.
function(fk_test_program name source)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT" "LIBRARIES")
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET source STEM stem)
    set(helpers)
    if(stem MATCHES "^test_(.*)$")
        file(GLOB helpers CONFIGURE_DEPENDS ${folder}/${CMAKE_MATCH_1}.c
             ${folder}/${CMAKE_MATCH_1}_*.c)
    elseif(stem MATCHES "^mutants_")
        file(GLOB helpers CONFIGURE_DEPENDS ${folder}/*.c)
        list(FILTER helpers EXCLUDE REGEX "/(test|mutants|plain)_[^/]*$")
    endif()
    list(APPEND source ${helpers})
    add_executable(${name} ${source})
    fk_program_flags(${name})
    target_include_directories(${name} PRIVATE
        ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE
        FK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} Threads::Threads)
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
    fk_add_test(${name} TIMEOUT ${arg_TIMEOUT} COMMAND ${name})
    if(FK_SANITIZE STREQUAL "address") # each block by itself, or the sanitizer sees only pages
        set_tests_properties(${name} PROPERTIES ENVIRONMENT "FK_POOLS=malloc")
    endif()
endfunction()

# ---- programs --------------------------------------------------------------

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
endif()
if(CMOCKA_FOUND)
    set(FK_CMOCKA PkgConfig::CMOCKA)
else()
    find_library(FK_CMOCKA_LIBRARY cmocka)
    find_path(FK_CMOCKA_INCLUDE cmocka.h)
    if(FK_CMOCKA_LIBRARY AND FK_CMOCKA_INCLUDE)
        add_library(fraktor-cmocka INTERFACE)
        target_include_directories(fraktor-cmocka SYSTEM INTERFACE ${FK_CMOCKA_INCLUDE})
        target_link_libraries(fraktor-cmocka INTERFACE ${FK_CMOCKA_LIBRARY})
        set(FK_CMOCKA fraktor-cmocka)
    endif()
endif()

# Tests without a framework.
fk_glob(sources "tests/unit/*/plain_*.c")
foreach(source ${sources})
    cmake_path(GET source STEM name)
    cmake_path(GET source PARENT_PATH part)
    cmake_path(GET part FILENAME part)
    fk_test_program(unit_${part}_${name} ${source} LIBRARIES fraktor-testkit)
endforeach()

fk_glob(unit_sources "tests/unit/*/test_*.c")
fk_glob(support_sources "tests/support/*.c")
if(FK_CMOCKA AND support_sources)
    add_library(fraktor-test-support STATIC ${support_sources})
    fk_common_flags(fraktor-test-support)
    target_include_directories(fraktor-test-support PUBLIC ${PROJECT_SOURCE_DIR}/tests
                               PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_compile_definitions(fraktor-test-support PRIVATE _GNU_SOURCE)
    target_link_libraries(fraktor-test-support PUBLIC fraktor-headers PRIVATE ${FK_CMOCKA})
    set(FK_TEST_LIBRARIES fraktor-test-support fraktor-static ${FK_CMOCKA} m)
    foreach(source ${unit_sources})
        cmake_path(GET source STEM name)
        cmake_path(GET source PARENT_PATH part)
        cmake_path(GET part FILENAME part)
        string(REGEX REPLACE "^test_" "" name ${name})
        if(part STREQUAL "sim") # see below: the simulator has its own build of the library
            continue()
        endif()
        set(libraries ${FK_TEST_LIBRARIES})
        if(part STREQUAL "testkit")
            list(PREPEND libraries fraktor-testkit)
        endif()
        fk_test_program(unit_${part}_${name} ${source} LIBRARIES ${libraries})
        target_include_directories(unit_${part}_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/unit)
    endforeach()
    # The network with a fake driver, compiled once more so that it calls that one.
    if(FK_HAS_LIBUV)
        add_library(fraktor-net-faked OBJECT ${FK_NET_SOURCES} tests/net/fake_driver.c)
        fk_common_flags(fraktor-net-faked)
        target_include_directories(fraktor-net-faked PRIVATE ${PROJECT_SOURCE_DIR}/include
            ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
        target_compile_definitions(fraktor-net-faked PRIVATE _GNU_SOURCE)
        target_compile_options(fraktor-net-faked PRIVATE
            -include ${PROJECT_SOURCE_DIR}/tests/net/fake_names.h)
        target_link_libraries(fraktor-net-faked PRIVATE PkgConfig::LIBUV)
        fk_glob(sources "tests/net/test_*.c")
        foreach(source ${sources})
            cmake_path(GET source STEM name)
            string(REGEX REPLACE "^test_" "net_" name ${name})
            fk_test_program(${name} "${source}" TIMEOUT 120
                            LIBRARIES ${FK_TEST_LIBRARIES} PkgConfig::LIBUV)
            target_sources(${name} PRIVATE $<TARGET_OBJECTS:fraktor-net-faked>)
        endforeach()
    else()
        message(STATUS "fraktor: tests of the network are OFF: libuv was not found")
    endif()
    # Stores: the kit of what must hold for each, and what is only so in one.
    fk_glob(kit "tests/store/kit*.c")
    fk_test_program(store_memory "${PROJECT_SOURCE_DIR}/tests/store/test_memory.c;${kit}"
                    LIBRARIES ${FK_TEST_LIBRARIES})
    if(FK_HAS_SQLITE)
        set(folder ${PROJECT_SOURCE_DIR}/tests/store)
        fk_test_program(store_sqlite "${folder}/test_sqlite.c;${kit};${folder}/disk.c" TIMEOUT 120
                        LIBRARIES ${FK_TEST_LIBRARIES} PkgConfig::SQLITE)
        fk_test_program(store_sqlite_faults
                        "${folder}/test_sqlite_faults.c;${folder}/kit.c;${folder}/disk.c"
                        TIMEOUT 120 LIBRARIES ${FK_TEST_LIBRARIES} PkgConfig::SQLITE)
        fk_test_program(store_sqlite_kill
                        "${folder}/test_sqlite_kill.c;${folder}/kit.c;${folder}/disk.c"
                        TIMEOUT 120 LIBRARIES ${FK_TEST_LIBRARIES} PkgConfig::SQLITE)
    else()
        message(STATUS "fraktor: tests of stores in SQLite files are OFF, as those are")
    endif()
    # fraktor/nanopb.h, with messages that nanopb makes during the build.
    find_program(FK_NANOPB_GENERATOR NAMES nanopb_generator.py nanopb_generator)
    find_library(FK_NANOPB_LIBRARY NAMES protobuf-nanopb nanopb)
    find_path(FK_NANOPB_INCLUDE pb_decode.h PATH_SUFFIXES nanopb)
    if(FK_NANOPB_GENERATOR AND FK_NANOPB_LIBRARY AND FK_NANOPB_INCLUDE)
        set(made ${PROJECT_BINARY_DIR}/nanopb)
        file(MAKE_DIRECTORY ${made})
        # When configuring, not when building: linters look at the test without building it.
        execute_process(COMMAND ${FK_NANOPB_GENERATOR} -q -D ${made} bank.proto
            WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/nanopb COMMAND_ERROR_IS_FATAL ANY)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
            tests/nanopb/bank.proto tests/nanopb/bank.options)
        add_library(fraktor-nanopb-bank STATIC ${made}/bank.pb.c)
        target_include_directories(fraktor-nanopb-bank SYSTEM PUBLIC ${made} ${FK_NANOPB_INCLUDE})
        target_link_libraries(fraktor-nanopb-bank PUBLIC ${FK_NANOPB_LIBRARY})
        fk_test_program(nanopb_codec ${PROJECT_SOURCE_DIR}/tests/nanopb/test_nanopb.c
                        LIBRARIES ${FK_TEST_LIBRARIES} fraktor-nanopb-bank)
    else()
        message(STATUS "fraktor: tests of fraktor/nanopb.h are OFF: nanopb was not found "
                       "(Debian: apt-get install nanopb libnanopb-dev)")
    endif()
    fk_glob(sources "tests/stress/*.c")
    foreach(source ${sources})
        cmake_path(GET source STEM name)
        string(REGEX REPLACE "^(test|stress)_" "" name ${name})
        fk_test_program(stress_${name} ${source} TIMEOUT 120 LIBRARIES ${FK_TEST_LIBRARIES})
    endforeach()
    fk_glob(sources "tests/oom/sweep*.c")
    fk_test_program(oom_sweep "${sources}" TIMEOUT 300 LIBRARIES ${FK_TEST_LIBRARIES})
    fk_glob(sources "tests/oom/cluster_*.c")
    fk_test_program(oom_cluster "${sources}" TIMEOUT 300 LIBRARIES ${FK_TEST_LIBRARIES})
    # What must hold for all inputs; test_*.c are the tests, the rest is what they share.
    fk_glob(sources "tests/property/test_*.c")
    fk_glob(shared "tests/property/*.c")
    list(REMOVE_ITEM shared ${sources})
    foreach(source ${sources})
        cmake_path(GET source STEM name)
        string(REGEX REPLACE "^test_" "" name ${name})
        fk_test_program(property_${name} "${source};${shared}" TIMEOUT 120
                        LIBRARIES ${FK_TEST_LIBRARIES})
    endforeach()
else()
    message(STATUS "fraktor: unit, property, stress and oom tests are OFF: cmocka was not found "
                   "(Debian: apt-get install libcmocka-dev)")
endif()

# Programs that run on fibers: looking for use after return makes AddressSanitizer
# map a second stack for each fiber, which costs a hundred times the run itself.
function(fk_fiber_test name)
    set_tests_properties(${name} PROPERTIES
        ENVIRONMENT "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=0")
endfunction()

# The first hour of a new user: public headers only, no test framework. Sanitizers are slow, so the
# programs that count to millions get a smaller number there.
fk_glob(sources "tests/first_hour/[0-9][0-9]_*.c")
foreach(source ${sources})
    cmake_path(GET source STEM name)
    string(SUBSTRING ${name} 0 2 number)
    if(number STREQUAL "03")
        continue() # compiled by its script, as a newcomer would
    endif()
    set(argument)
    if(FK_SANITIZE AND number STREQUAL "10")
        set(argument 100000)
    elseif(FK_SANITIZE AND number STREQUAL "11")
        set(argument 50000)
    elseif(FK_SANITIZE STREQUAL "thread" AND number STREQUAL "24")
        # ThreadSanitizer keeps a signal back until its thread calls something that it knows, and a
        # futex is not: so the thread that polls is to take it.
        set(argument blocked)
    endif()
    add_executable(first_hour_${number} ${source})
    fk_program_flags(first_hour_${number})
    target_compile_definitions(first_hour_${number} PRIVATE _GNU_SOURCE)
    target_link_libraries(first_hour_${number} PRIVATE fraktor-testkit Threads::Threads)
    set_target_properties(first_hour_${number} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
    fk_add_test(first_hour_${number} TIMEOUT 120 COMMAND first_hour_${number} ${argument})
endforeach()
if(TARGET first_hour_13) # it watches the memory: what AddressSanitizer keeps back must not count
    set_tests_properties(first_hour_13 PROPERTIES
        ENVIRONMENT "ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=1")
endif()

if(TARGET fraktor-simlib)
    # Unit tests that take safeguards out, one by one (base/safeguard.h).
    fk_glob(sources "tests/unit/*/mutants_*.c")
    if(NOT TARGET fraktor-test-support)
        set(sources)
    endif()
    foreach(source ${sources})
        cmake_path(GET source STEM name)
        fk_test_program(${name} ${source} TIMEOUT 120
                        LIBRARIES fraktor-test-support fraktor-simlib ${FK_CMOCKA} m)
        fk_sim_definitions(${name})
    endforeach()

    fk_glob(sources "tests/unit/sim/test_*.c")
    if(NOT TARGET fraktor-test-support)
        set(sources)
    endif()
    foreach(source ${sources})
        cmake_path(GET source STEM name)
        string(REGEX REPLACE "^test_" "" name ${name})
        fk_test_program(unit_sim_${name} ${source}
                        LIBRARIES fraktor-test-support fraktor-simlib ${FK_CMOCKA} m)
        fk_sim_definitions(unit_sim_${name})
    endforeach()

    fk_glob(sources "tests/explorer/h*.c")
    foreach(source ${sources})
        cmake_path(GET source STEM name)
        fk_test_program(explorer_${name} ${source} TIMEOUT 900 LIBRARIES fraktor-simlib)
        fk_sim_definitions(explorer_${name})
        fk_fiber_test(explorer_${name})
    endforeach()
endif()

if(TARGET fraktor-sim)
    # From 1000 runs on, every fault and branch must have happened at least once.
    fk_add_test(sim_kernel TIMEOUT 120
        COMMAND fraktor-sim kernel --seed 1 --runs 1000 --json)
    fk_fiber_test(sim_kernel)
    fk_add_test(sim_lifecycle TIMEOUT 120
        COMMAND fraktor-sim lifecycle --seed 1 --runs 1000 --json)
    fk_fiber_test(sim_lifecycle)
    # Two systems, each cut at 900 steps of its end.
    fk_add_test(sim_termination TIMEOUT 120
        COMMAND fraktor-sim termination --seed 0 --runs 1800 --json)
    fk_fiber_test(sim_termination)
    set(remote_runs 1000)
    if(FK_SANITIZE)
        set(remote_runs 200)
    endif()
    fk_add_test(sim_remote TIMEOUT 300
        COMMAND fraktor-sim remote --seed 1 --runs ${remote_runs} --json)
    fk_fiber_test(sim_remote)
    set(cluster_runs 1000)
    if(FK_SANITIZE)
        set(cluster_runs 100)
    endif()
    fk_add_test(sim_cluster TIMEOUT 120
        COMMAND fraktor-sim cluster --seed 1 --runs ${cluster_runs} --json)
    fk_fiber_test(sim_cluster)
    fk_add_test(sim_split_brain TIMEOUT 120
        COMMAND fraktor-sim split-brain --seed 1 --runs 100 --json)
    fk_fiber_test(sim_split_brain)
    fk_add_test(first_hour_20
        COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/first_hour/20_split_brain.py
                --program $<TARGET_FILE:fraktor-sim>)
    fk_fiber_test(first_hour_20)
    if(NOT FK_SANITIZE) # mutants corrupt memory, and a sanitizer would end the whole search
        fk_add_test(sim_supervision TIMEOUT 120
            COMMAND fraktor-sim supervision --seed 1 --runs 2 --json)
        fk_add_test(sim_mutants TIMEOUT 300
            COMMAND fraktor-sim kernel --mutants --json)
        fk_add_test(sim_lifecycle_mutants TIMEOUT 300
            COMMAND fraktor-sim lifecycle --mutants --json)
        fk_add_test(sim_remote_mutants TIMEOUT 300
            COMMAND fraktor-sim remote --mutants --json)
        fk_add_test(sim_cluster_mutants TIMEOUT 300
            COMMAND fraktor-sim cluster --mutants --json)
    endif()
endif()

# Fuzz targets: with libFuzzer in the preset of that name, else as tests that run over the corpus.
fk_glob(sources "tests/fuzz/fuzz_*.c")
add_library(fraktor-path-model OBJECT tests/property/path_model.c tests/property/path_piece.c)
add_library(fraktor-wire-reader OBJECT tests/support/wire_reader.c)
add_library(fraktor-cable OBJECT tests/support/cable.c)
add_custom_target(fuzzers)
foreach(source ${sources})
    cmake_path(GET source STEM name)
    set(model fraktor-path-model)
    if(name MATCHES "^fuzz_wire_")
        set(model fraktor-wire-reader)
    elseif(name STREQUAL "fuzz_connection")
        set(model fraktor-cable)
    endif()
    add_executable(${name} ${source} $<TARGET_OBJECTS:${model}>)
    target_link_libraries(${name} PRIVATE fraktor-static)
    add_dependencies(fuzzers ${name})
    if(FK_SANITIZE STREQUAL "fuzzer")
        target_link_libraries(${name} PRIVATE -fsanitize=fuzzer)
        set_target_properties(${name} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/fuzz)
    else()
        target_sources(${name} PRIVATE tests/fuzz/replay.c)
        set_target_properties(${name} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests)
        fk_add_test(${name} COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
    endif()
endforeach()
foreach(target ${sources} fraktor-path-model fraktor-wire-reader fraktor-cable)
    cmake_path(GET target STEM target)
    fk_program_flags(${target})
    target_include_directories(${target} PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
    if(FK_SANITIZE STREQUAL "fuzzer") # only new ways through the library are worth keeping
        target_compile_options(${target} PRIVATE -fno-sanitize=fuzzer-no-link)
    endif()
endforeach()

# ---- checks of the source and of what was built ----------------------------

if(NOT Python3_FOUND)
    message(STATUS "fraktor: source and package checks are OFF: python3 was not found")
    return()
endif()

# Each check first proves, on input made to be wrong, that it can fail.
foreach(check layers symbols headers unity source)
    fk_add_test(selftest_${check} FAST
        COMMAND ${FK_PYTHON} ${FK_CHECKS}/check_${check}.py --self-test)
endforeach()
fk_add_test(selftest_typestate TIMEOUT 180
    COMMAND ${FK_PYTHON} ${FK_CHECKS}/check_typestate.py --self-test)
fk_add_test(selftest_example FAST COMMAND ${FK_PYTHON} ${FK_CHECKS}/run_example.py --self-test)

foreach(check layers source)
    fk_add_test(check_${check} FAST
        COMMAND ${FK_PYTHON} ${FK_CHECKS}/check_${check}.py --root ${PROJECT_SOURCE_DIR})
endforeach()
foreach(check headers unity typestate)
    fk_add_test(check_${check} TIMEOUT 180
        COMMAND ${FK_PYTHON} ${FK_CHECKS}/check_${check}.py --root ${PROJECT_SOURCE_DIR})
endforeach()

# The program, asked as a user or a script would.
if(TARGET fraktor-cli)
    fk_add_test(cli_path_vectors
        COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/cli/path_vectors.py
                --program $<TARGET_FILE:fraktor-cli>
                --vectors ${PROJECT_SOURCE_DIR}/tests/vectors)
    fk_add_test(cli_path_command
        COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/cli/path_command.py
                --program $<TARGET_FILE:fraktor-cli>)
    fk_add_test(cli_remote_commands
        COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/cli/remote_commands.py
                --program $<TARGET_FILE:fraktor-cli>)
    if(FK_HAS_LIBUV AND FK_HAS_SQLITE)
        fk_add_test(cli_cluster_commands TIMEOUT 180
            COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/cli/cluster_commands.py
                    --program $<TARGET_FILE:fraktor-cli>)
        fk_add_test(cli_demo TIMEOUT 120
            COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/cli/demo.py
                    --program $<TARGET_FILE:fraktor-cli>)
        fk_add_test(first_hour_19 TIMEOUT 180
            COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/first_hour/19_cluster.py
                    --program $<TARGET_FILE:fraktor-cli>)
    endif()
    fk_add_test(first_hour_12_cli
        COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/first_hour/12_names.py
                --program $<TARGET_FILE:fraktor-cli>)
    foreach(script 16_remoting 17_incarnation 18_garbage)
        string(SUBSTRING ${script} 0 2 number)
        fk_add_test(first_hour_${number} TIMEOUT 180
            COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/first_hour/${script}.py
                    --program $<TARGET_FILE:fraktor-cli>)
    endforeach()
    set(flat_kb 4096)
    if(FK_SANITIZE) # which keeps what was freed for a while
        set(flat_kb 1000000)
    endif()
    set(slack_kb 32768)
    if(FK_SANITIZE)
        set(slack_kb 1000000)
    endif()
    fk_add_test(cli_remote_hostile TIMEOUT 180
        COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/cli/remote_hostile.py
                --program $<TARGET_FILE:fraktor-cli> --slack-kb ${slack_kb})
    fk_add_test(cli_bench_remote TIMEOUT 180
        COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/cli/bench_remote.py
                --program $<TARGET_FILE:fraktor-cli> --flat-kb ${flat_kb})
endif()

if(TARGET first_hour_21)
    set(seconds 1)
    if(FK_SANITIZE)
        set(seconds 20)
    endif()
    fk_add_test(first_hour_21_broken
        COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/first_hour/21_testing.py
                --program $<TARGET_FILE:first_hour_21> --seconds ${seconds})
endif()

# A sanitizer adds symbols of its own and needs its runtime in the consumer, so
# what leaves the build is looked at only in plain builds.
if(FK_SANITIZE STREQUAL "")
    fk_add_test(check_symbols_core
        COMMAND ${FK_PYTHON} ${FK_CHECKS}/check_symbols.py --core $<TARGET_FILE:fraktor-core>)
    fk_add_test(check_symbols_shared
        COMMAND ${FK_PYTHON} ${FK_CHECKS}/check_symbols.py --shared $<TARGET_FILE:fraktor>
                --soname libfraktor.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    find_program(FK_CXX NAMES c++ g++ clang++)
    set(cxx)
    if(FK_CXX)
        set(cxx --cxx ${FK_CXX})
    endif()
    set(needs)
    if(FK_LIBUV)
        string(JOIN " " needs ${LIBUV_LDFLAGS})
    endif()
    if(FK_SQLITE3)
        string(JOIN " " needs ${needs} ${SQLITE_LDFLAGS})
    endif()
    fk_add_test(first_hour_03 TIMEOUT 120
        COMMAND ${FK_PYTHON} ${PROJECT_SOURCE_DIR}/tests/first_hour/03_hello.py
                --include ${PROJECT_SOURCE_DIR}/include --library $<TARGET_FILE:fraktor-static>
                --cc ${CMAKE_C_COMPILER} ${cxx} --needs=${needs})
    foreach(way package subdirectory)
        fk_add_test(install_${way} TIMEOUT 300
            COMMAND ${FK_PYTHON} ${FK_CHECKS}/check_install.py --way ${way}
                    --root ${PROJECT_SOURCE_DIR} --build ${PROJECT_BINARY_DIR}
                    --cmake ${CMAKE_COMMAND} --cc ${CMAKE_C_COMPILER}
                    --version ${PROJECT_VERSION})
    endforeach()
    fk_add_test(selftest_install TIMEOUT 180
        COMMAND ${FK_PYTHON} ${FK_CHECKS}/check_install.py --self-test
                --root ${PROJECT_SOURCE_DIR} --build ${PROJECT_BINARY_DIR}
                --cmake ${CMAKE_COMMAND} --cc ${CMAKE_C_COMPILER}
                --version ${PROJECT_VERSION})
endif()
