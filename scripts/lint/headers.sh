#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# headers.sh - each header compiles alone, with every compiler that is here; the public one as C++ too.
set -u
bad=0
flags="-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -Wno-unused-variable -Werror -fsyntax-only -Iinclude -Isrc -Itransport -Itopology -Ialgorithms -Itests"
for header in $(git ls-files '*.h'); do
    [ "$header" = src/kernels/kernels_body.h ] && continue # a body that its includers complete
    for cc in gcc clang; do
        command -v "$cc" >/dev/null || continue
        # shellcheck disable=SC2086 # flags is a list
        "$cc" $flags -x c -include "$header" /dev/null || { echo "$header does not compile alone with $cc"; bad=1; }
    done
done
if command -v g++ >/dev/null; then
    g++ -fsyntax-only -Wall -Iinclude -x c++ -include include/quire.h /dev/null || { echo "include/quire.h is no C++"; bad=1; }
fi
exit $bad
