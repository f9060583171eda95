#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sizes.sh - files over 800 lines and functions over 100 lines need a reason: a comment with the word "long:" in the
# file's first lines, or in the lines before the function. Functions over 60 are listed, not refused.
set -u
bad=0
for file in $(git ls-files '*.c' '*.h'); do
    lines=$(wc -l <"$file")
    if [ "$lines" -gt 800 ] && ! head -n 20 "$file" | grep -q 'long:'; then
        echo "$file: $lines lines, over 800 without a reason (long: ...)"
        bad=1
    fi
    # Functions in this style begin with { in the first column and end with } there.
    awk -v file="$file" '
        /^[a-zA-Z_].*\(/ && !/;$/ { head = $0; reason = before ~ /long:/ }
        /^\{/ { start = NR; name = head }
        /^\}/ && start { n = NR - start; if (n > 100 && !reason) { printf "%s:%d: %d lines: %s\n", file, start, n, name; exit_bad = 1 }
                         else if (n > 60) printf "  note: %s:%d: %d lines\n", file, start, n; start = 0 }
        { before = before "\n" $0; if (length(before) > 400) before = substr(before, length(before) - 400) }
        END { exit exit_bad }' "$file" || bad=1
done
exit $bad
