#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Called by ./run lint: every linter runs, then the outcome is one line; any
# finding fails. --fix lets clang-format rewrite the files first.

set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()
step() {
    local name=$1
    shift
    printf '==> lint: %s\n' "$name" >&2
    "$@" || failed+=("$name")
}

c_files() { find . -name '*.[ch]' -not -path './build*' -not -path './.*/*' | sort; }
# The sources that the compilation database knows: what is not built cannot be analysed.
built_files() {
    sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/release-clang/compile_commands.json |
        sort -u | grep -E "^$PWD/(src|examples|interop|tests)/"
}

format() { c_files | xargs -r clang-format --dry-run -Werror; }
tidy() {
    cmake --preset release-clang >/dev/null || return 1
    # One file per process: with several, version 14 reports initialised va_lists as not.
    built_files | xargs -r -n 1 -P "${JOBS:-$(nproc)}" \
        clang-tidy -p build/release-clang --quiet 2> >(grep -v 'warnings generated' >&2)
}
check_cpp() {
    local parts
    mapfile -t parts < <(ls -d src examples interop 2>/dev/null)
    cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr -j "${JOBS:-$(nproc)}" \
        --enable=warning,performance,portability -I include -I src \
        --suppress=missingIncludeSystem "${parts[@]}"
}
scripts() {
    local status=0 file
    for file in run .ci/run tools/*.sh; do bash -n "$file" || status=1; done
    return $status
}

[ "${1:-}" = --fix ] && c_files | xargs -r clang-format -i

step "clang-format" format
step "source rules" python3 -B tests/checks/check_source.py
step "layers" python3 -B tests/checks/check_layers.py
step "shell syntax" scripts
step "cppcheck" check_cpp
step "clang-tidy" tidy

if [ ${#failed[@]} -gt 0 ]; then
    printf 'lint: findings in:'
    printf ' %s;' "${failed[@]}"
    printf ' see above (./run lint --fix mends the format)\n'
    exit 1
fi
echo "lint: no findings"
