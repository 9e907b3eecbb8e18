#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: run.sh WORKLOAD THREADS [--ops N]
# Runs the compiled module, which is expected in PEER_BUILD (default: beside this script).
here=$(dirname "$0")
threads=${2:?usage: run.sh WORKLOAD THREADS [--ops N]}
# -extra keeps the virtual machine from reading --ops as a flag of its own.
exec erl +S "$threads:$threads" +P 4000000 -noinput -pa "${PEER_BUILD:-$here}" \
    -eval 'peer_bench:main(init:get_plain_arguments()).' -extra "$@"
