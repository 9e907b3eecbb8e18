#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# usage: remote.sh WORKLOAD THREADS [--ops N]
# Two nodes on loopback that find each other without epmd, which would stay behind: the second one
# listens at a port that the first one is told. The compiled module is expected in PEER_BUILD
# (default: beside this script).
here=$(dirname "$0")
threads=${2:?usage: remote.sh WORKLOAD THREADS [--ops N]}
port=$((20000 + $$ % 12000))
cookie=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')

# node NAME FLAG...: replaces this shell.
node() {
    name=$1
    shift
    exec erl +S "$threads:$threads" -start_epmd false -erl_epmd_port "$port" \
        -kernel inet_dist_use_interface '{127,0,0,1}' -name "$name@127.0.0.1" \
        -setcookie "$cookie" -pa "${PEER_BUILD:-$here}" "$@"
}

# The second node ends when its input does, so it gets one that ends with the first.
pipe=$(mktemp -u)
mkfifo "$pipe" || exit 1
(node second -noshell -run remote_bench serve <"$pipe") &
exec 9>"$pipe"
rm -f "$pipe"
# -extra keeps the virtual machine from reading --ops as a flag of its own.
node first -dist_listen false -noinput \
    -eval 'remote_bench:main(init:get_plain_arguments()).' -extra "$@"
