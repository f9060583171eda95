#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run-tests.sh - runs every test program of a build tree, then the fuzz targets briefly and the test scripts. One line
# a program; ends with "N passed, N failed" over all checks and exits 1 when any failed. A program that runs over its
# outer timer, crashes or prints no summary counts as one failure.
set -u
shopt -s nullglob
build=${BUILD:-build}
sanitize=${SANITIZE:-}
limit=${TESTS_TIMEOUT:-300}
passed=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:exitcode=99${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:exitcode=99${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
export TSAN_OPTIONS="halt_on_error=1:exitcode=99:die_after_fork=0${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
# Sanitized programs are several times slower; Check multiplies its own timers by this.
[ -n "$sanitize" ] && export CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-5}

report() { # name, checks that passed, checks that failed
    passed=$((passed + $2))
    failed=$((failed + $3))
    if [ "$3" = 0 ]; then
        printf '  ok    %-44s %4d\n' "$1" "$2"
    else
        printf '  FAIL  %-44s %4d passed, %d failed\n' "$1" "$2" "$3"
        tail -n 60 "$log" | sed 's/^/        /'
    fi
}

run_one() { # name, command...
    local name=$1 rc line checks bad
    shift
    timeout -k 10 "$limit" "$@" >"$log" 2>&1
    rc=$?
    line=$(grep -E '^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$log" | tail -n 1)
    if [ -n "$line" ]; then
        checks=$(sed -E 's/.*Checks: ([0-9]+),.*/\1/' <<<"$line")
        bad=$(sed -E 's/.*Failures: ([0-9]+), Errors: ([0-9]+).*/\1 \2/' <<<"$line")
        bad=$((${bad% *} + ${bad#* }))
        if [ "$bad" = 0 ] && { [ "$rc" != 0 ] || [ "$checks" = 0 ]; }; then
            bad=1
            echo "exit status $rc, $checks checks (a program that checks nothing counts as failed)" >>"$log"
        fi
        report "$name" $((checks >= bad ? checks - bad : 0)) "$bad"
    elif [ "$rc" = 0 ]; then
        report "$name" 1 0
    else
        echo "exit status $rc (124: over its timer of $limit s)" >>"$log"
        report "$name" 0 1
    fi
}

# What is run follows from the sources, so that a test that was not built, or lost its mode, is a failure and no gap, and
# a binary whose source is gone is not run.
for source in tests/*/*_test.c; do
    name=${source#tests/}
    name=${name%.c}
    run_one "$name" "$build/tests/$name"
done
for source in tests/fuzz/*_fuzz.c; do
    [ "$sanitize" = thread ] && break # one thread each; that tree does not build them
    name=$(basename "$source" _fuzz.c)
    run_one "fuzz/$name" "$build/fuzz/$name" -t 2 -o "$build/fuzz/$name.failed" "tests/fuzz/seeds/$name"
done
if [ -z "$sanitize" ]; then
    for script in tests/*/*_test.sh; do
        BUILD=$build run_one "${script#tests/}" "./$script"
    done
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
