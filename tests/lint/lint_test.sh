#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lint_test.sh - each of the project's own lint rules finds what it is for and names the place. Runs them in a repository
# of its own: a small copy that is clean, then one fault at a time.
set -u
command -v git >/dev/null || { echo "git is not installed; nothing was checked"; exit 0; }
here=$PWD
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
bad=0
cp -r "$here/scripts" "$tree" && cd "$tree" || exit 1
mkdir -p include src/base src/plan transport algorithms build
for file in include/quire.h src/base/names.h src/plan/plan.h transport/lane.h algorithms/ring.h; do
    printf '/* a header */\nvoid f(void);\n' >"$file"
done
printf '#include <stdio.h>\n\n#include "base/names.h"\n#include "plan/plan.h"\n' >algorithms/ring.c
git init -q . && git add -A || exit 1

rule() { # what, script, file, added text, what it must say ('' for nothing to find)
    local out rc
    cp "$3" keep
    printf '%b' "$4" >>"$3"
    out=$("scripts/lint/$2" 2>&1)
    rc=$?
    cp keep "$3"
    if [ -z "$5" ]; then
        [ "$rc" = 0 ] || { echo "$1: refused: $out"; bad=1; }
    elif [ "$rc" = 0 ] || ! grep -qF "$5" <<<"$out"; then
        echo "$1: not found (status $rc): $out"
        bad=1
    fi
}
lines() { printf '    ;\\n%.0s' $(seq "$1"); }
c=algorithms/ring.c
rule "clean borders" borders.sh $c '' ''
rule "a room that may not" borders.sh $c '#include "lane.h"\n' "$c: algorithms may not include \"lane.h\""
rule "up and into another room" borders.sh $c '#include "../transport/lane.h"\n' "$c: \"../transport/lane.h\" goes around"
rule "in and out again" borders.sh $c '#include "base/../../transport/lane.h"\n' "goes around"
rule "angle brackets" borders.sh $c '#include <lane.h>\n' "$c: <lane.h> is a header of this project"
rule "base knows no other room" borders.sh src/base/names.h '#include "plan/plan.h"\n' 'src/base may not include "plan/plan.h"'
rule "the public header is alone" borders.sh include/quire.h '#include "base/names.h"\n' 'include may not include "base/names.h"'
rule "a library outside its file" borders.sh $c '#include <hwloc.h>\n' "$c: <hwloc.h> belongs in another file"
rule "clean sizes" sizes.sh $c "int g(void)\n{\n$(lines 95)}\n" ''
rule "a long function" sizes.sh $c "int g(void)\n{\n$(lines 105)}\n" "$c:6: 106 lines: int g(void)"
rule "a long function with a reason" sizes.sh $c "/* long: one table */\nint g(void)\n{\n$(lines 105)}\n" ''
rule "a long file" sizes.sh $c "$(printf '\\n%.0s' $(seq 900))" "$c: 904 lines"
rule "clean headers" headers.sh src/plan/plan.h '' ''
rule "a header that needs another" headers.sh src/plan/plan.h 'struct x { uint64_t y; };\n' "src/plan/plan.h does not compile alone"

# Rules that are functions of `run` itself; the tools it may also find here are not what is tested.
ascii=$(sed -n 's/^manners() { \(.*\); }$/\1/p' scripts/lint/run)
printf '/* caf\303\251 */\n' >>$c
for locale in C C.UTF-8; do
    (LC_ALL=$locale LANG=$locale eval "$ascii") >/dev/null 2>&1 && { echo "an accent in a source: not found in locale $locale"; bad=1; }
done
git checkout -q -- $c
(eval "$ascii") || { echo "clean sources are called no ASCII"; bad=1; }

# Exports: a library that lacks one function of the header, or has one more.
printf '#define QUIRE_API __attribute__((visibility("default")))\nQUIRE_API int quire_one(void);\nQUIRE_API const char *quire_two(int a,\n    int b);\n' >include/quire.h
exports() { # what, source, what it must say
    local out rc
    printf '%s\n' "$2" | ${CC:-gcc} -shared -fPIC -x c -o build/libquire.so - || exit 1
    out=$(BUILD=build scripts/lint/exports.sh 2>&1)
    rc=$?
    local want=0
    [ -n "$3" ] && want=1
    if [ "$out" != "$3" ] || [ "$rc" != "$want" ]; then
        echo "$1: status $rc: $out"
        bad=1
    fi
}
exports "clean exports" 'int quire_one; int quire_two;' ''
exports "one missing" 'int quire_one;' 'declared, not exported: quire_two'
exports "one too many" 'int quire_one, quire_two, lane_x;' 'exported, not declared: lane_x'
exit $bad
