#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run_tests_test.sh - the runner counts what it should: failures, crashes, hangs, programs that check nothing, programs
# that were not built. Runs it in a tree of its own whose tests are small scripts.
set -u
runner=$PWD/tests/run-tests.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree" || exit 1
bad=0

program() { # name, text of a shell script
    mkdir -p tests/room build/tests/room
    touch "tests/room/$1_test.c"
    printf '#!/bin/sh\n%s\n' "$2" >"build/tests/room/$1_test"
    chmod +x "build/tests/room/$1_test"
}
summary() { echo "echo '$1%: Checks: $2, Failures: $3, Errors: $4'"; }
expect() { # what, last line, exit status
    local out rc line
    out=$(BUILD=build SANITIZE='' TESTS_TIMEOUT=2 "$runner" 2>/dev/null)
    rc=$?
    line=$(tail -n 1 <<<"$out")
    if [ "$line" != "$2" ] || [ "$rc" != "$3" ]; then
        printf '%s: "%s" with status %s, not "%s" with %s\n' "$1" "$line" "$rc" "$2" "$3"
        bad=1
    fi
    rm -rf tests build
}
program a "$(summary 100 5 0 0)"
program b "$(summary 100 7 0 0)"
expect "two good programs" "12 passed, 0 failed" 0
program a "$(summary 60 5 1 1); exit 1"
expect "failures and errors" "3 passed, 2 failed" 1
program a "$(summary 100 5 0 0); exit 1"
expect "a good summary and a bad exit" "4 passed, 1 failed" 1
program a "kill -SEGV \$\$"
expect "a crash" "0 passed, 1 failed" 1
program a "sleep 60"
expect "a hang" "0 passed, 1 failed" 1
program a "$(summary 100 0 0 0)"
program b "$(summary 100 7 0 0)"
expect "a program that checks nothing" "7 passed, 1 failed" 1
program a "$(summary 100 5 0 0)"
program b "$(summary 100 7 0 0)"
rm build/tests/room/b_test
expect "a program that was not built" "5 passed, 1 failed" 1
program a "$(summary 100 5 0 0)"
program b "$(summary 50 2 1 0); exit 1"
rm tests/room/b_test.c
expect "a program whose source is gone" "5 passed, 0 failed" 0
program a "$(summary 100 5 0 0)"
touch tests/room/c_test.sh
expect "a script that lost its mode" "5 passed, 1 failed" 1
mkdir -p tests build
expect "nothing to run" "0 passed, 0 failed" 1
exit $bad
