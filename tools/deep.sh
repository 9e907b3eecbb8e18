#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Called by ./run deep. Each function is one search; add new ones to the list at
# the end. DEEP scales all of them: 1 is a night, 0.01 a rehearsal.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

DEEP=${DEEP:-1}
scaled() { awk -v n="$1" -v f="$DEEP" 'BEGIN { v = int(n * f); print (v > 0 ? v : 1) }'; }
fraktor=build/release/bin/fraktor

seeds() { "$fraktor" sim kernel --seed "${SEED:-$RANDOM$RANDOM}" --runs "$(scaled 2000000)"; }
mutants() { "$fraktor" sim kernel --mutants; }
explorer() {
    EXPLORER_BOUND=${EXPLORER_BOUND:-3} ctest --preset release -R '^explorer_' --timeout "$(scaled 36000)"
}
stress() {
    local preset
    for preset in release tsan; do
        STRESS_SECONDS=$(scaled 1800) ctest --preset "$preset" -R '^stress_' --timeout "$(scaled 36000)" || return 1
    done
}
memcheck() {
    local program status=0
    for program in build/debug/bin/tests/unit_*; do
        valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
            "$program" >/dev/null || { echo "valgrind: $program"; status=1; }
    done
    return $status
}
property() {
    local program status=0
    for program in build/release/bin/tests/property_*; do # not by ctest, which would end them early
        PROPERTY_SEED=$RANDOM$RANDOM$RANDOM PROPERTY_RUNS=$(scaled 100000000) "$program" || status=1
    done
    return $status
}
fuzz() { ./run fuzz --seconds "$(scaled 3600)"; }

for preset in release debug tsan; do ./run build "$preset" || exit 1; done

failed=0 passed=0
for search in seeds mutants explorer stress property memcheck fuzz; do
    printf '==> deep: %s\n' "$search" >&2
    start=$SECONDS
    if "$search"; then passed=$((passed + 1)) outcome=ok; else failed=$((failed + 1)) outcome=FAILED; fi
    printf 'deep: %-10s %-6s %6d s\n' "$search" "$outcome" "$((SECONDS - start))"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
