#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Called by ./run fuzz once the targets are built: tools/fuzz.sh SECONDS [TARGET...].
# A target starts from the corpus in the repository and from what earlier runs
# found (build/fuzz/corpus). Each ends with one line; a finding fails.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

programs=build/fuzz/bin/fuzz
seconds=$1
shift
if [ $# -eq 0 ]; then
    for program in "$programs"/fuzz_*; do set -- "$@" "$(basename "$program")"; done
fi

fuzz() {
    local target=$1 log=build/fuzz/$1.log findings=build/fuzz/findings/$1 runs rate
    mkdir -p "build/fuzz/corpus/$target" "$findings"
    if ! "$programs/$target" -max_total_time="$seconds" -max_len=2048 -timeout=10 \
        -dict=tests/fuzz/path.dict -print_final_stats=1 -artifact_prefix="$findings/" \
        "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "$target: FOUND SOMETHING; again: $programs/$target FILE, with a file of $findings"
        return 1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
    echo "$target: $runs runs in $seconds s, $rate per second, no finding"
}

status=0
for target in "$@"; do fuzz "$target" || status=1; done
exit $status
