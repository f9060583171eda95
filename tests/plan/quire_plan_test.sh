#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# quire_plan_test.sh - the command line of quire-plan: what it prints, proves, reads and draws, and its exit status.
set -u
tool=${BUILD:-build}/quire-plan
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=0 failures=0

# name, wanted exit status, pattern wanted in stdout and stderr together (or none), arguments...
expect() {
    local name=$1 want=$2 pattern=$3 rc
    shift 3
    timeout 60 "$tool" "$@" >"$work/out" 2>&1 </dev/null
    rc=$?
    checks=$((checks + 1))
    if [ "$rc" != "$want" ] || { [ -n "$pattern" ] && ! grep -qE -- "$pattern" "$work/out"; }; then
        failures=$((failures + 1))
        echo "$name: exit $rc (wanted $want), wanted /$pattern/ in:"
        cat "$work/out"
    fi
}

# name, two texts that must be equal
same() {
    checks=$((checks + 1))
    if [ "$2" != "$3" ]; then
        failures=$((failures + 1))
        printf '%s: wanted "%s", got "%s"\n' "$1" "$2" "$3"
    fi
}

ring="--collective all_reduce --algorithm ring"
# shellcheck disable=SC2086 # options are words
{
    expect "prints rank 0 by default" 0 '^plan all_reduce algorithm 2 ranks 4 rank 0 ' --ranks 4 $ring
    expect "prints the rank asked for" 0 ' ranks 10000 rank 9999 ' --ranks 10000 $ring --rank 9999
    expect "lists algorithms" 0 '^two_shot +all_reduce +canonical' --list
    expect "proves a range" 0 '^ +9 ranks, root 0: proved' --ranks 1..9 $ring --check
    same "one line for each count" 9 "$(wc -l <"$work/out")"
    expect "proves all roots" 0 'root 4: proved' --ranks 1..5 --collective broadcast --algorithm binomial --root all --check
    same "one line for each count and root" 15 "$(wc -l <"$work/out")"
    expect "a deadlock is a failed check" 1 'FAILED: deadlock .*no room towards rank 1' --ranks 2 $ring --check --depth 1
    expect "passes over counts without the root" 0 '^ +3 ranks, root 2' --ranks 1..3 --root 2 --collective broadcast \
        --algorithm ring --check
    same "and only those" 1 "$(wc -l <"$work/out")"
    expect "does not fit" 1 'at most 64 ranks' --ranks 65 --collective all_reduce --algorithm one_shot

    expect "unknown option" 2 'unknown option --colour' --colour
    expect "a value is missing" 2 'missing behind --ranks' --ranks
    expect "no such algorithm" 2 'option can take: loop' --algorithm loop
    expect "nothing asked" 2 'are needed'
    expect "a range is for checks" 2 'range' --ranks 1..4 $ring
    expect "rank out of range" 2 '--rank must be below' --ranks 4 $ring --rank 4
    expect "root out of range" 2 '--root must be below' --ranks 4 --collective broadcast --algorithm ring --root 4
    expect "too many to draw" 2 'at most 16' --ranks 17 $ring --svg "$work/no.svg"
    expect "a file and a shape" 2 'its own shape' --ranks 4 "$work/none"
    expect "no such file" 1 'No such file' "$work/none"

    # Texts: all ranks in one file come back, are proved, and a broken one is told with its line in the file.
    "$tool" --ranks 3 $ring --rank all >"$work/all"
    expect "reads what it prints" 0 'rank 2 ' "$work/all"
    same "word for word" "$(cat "$work/all")" "$(cat "$work/out")"
    expect "proves a file" 0 '3 ranks, root 0: proved, 15 steps' --check "$work/all"
    same "reads standard input" "   3 ranks, root 0: proved, 15 steps in all" "$("$tool" --check - <"$work/all")"
    sed 's/finish //' "$work/all" >"$work/never"
    expect "proves a file wrong" 1 'FAILED: .*never finished' --check "$work/never"
    (echo "# a remark" && sed '11s/from/form/' "$work/all") >"$work/broken"
    expect "tells the line of the file" 1 'line 12: unknown key: form' --check "$work/broken"
    printf 'plan barrier ranks 2\nstrand 0\n send "to\\ 1\n' >"$work/quoted"
    expect "an odd word is no crash" 1 'line 3: unknown key: "to' "$work/quoted"
    : >"$work/empty"
    expect "an empty file" 1 'an empty text' --check "$work/empty"

    expect "draws" 0 '' --ranks 4 $ring --svg "$work/ring.svg"
    same "a box for each of 7 iterations of 4 ranks" 28 "$(grep -c '<rect x' "$work/ring.svg")"
    same "an arrow for each of 6 slots of 4 ranks" 24 "$(grep -c '<line' "$work/ring.svg")"
    expect "draws wide lanes" 0 '' --ranks 4 --collective all_reduce --algorithm two_shot --svg "$work/two.svg"
    same "every slot is read by three" 24 "$(grep -c '<line' "$work/two.svg")"
}
if command -v python3 >/dev/null; then
    # shellcheck disable=SC2086
    same "objects that others can read" "4 4" "$(
        { "$tool" --ranks 4 $ring --rank all --json && "$tool" --ranks 1..4 $ring --check --json; } |
            python3 -c 'import json, sys
o = [json.loads(line) for line in sys.stdin]
print(sum("text" in x for x in o), sum(x.get("proved") is True for x in o))'
    )"
    same "pictures that others can read" "svg" "$(python3 -c 'import sys, xml.dom.minidom
print(xml.dom.minidom.parse(sys.argv[1]).documentElement.tagName)' "$work/two.svg")"
fi
echo "$((checks == 0 ? 0 : (checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" = 0 ]
