#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# borders.sh - who may include whom (docs/design.md). A room may include itself, C and system headers, and the rooms
# listed for it. External libraries stay in the files named for them.
set -u
bad=0

# room: headers of other rooms it may include, as patterns of the include's text.
declare -A may=(
    [include]=''
    [src/base]='^quire\.h$'
    [src/plan]='^(quire\.h|base/)'
    [src/kernels]='^(quire\.h|base/)'
    [src/boot]='^(quire\.h|base/)'
    [topology]='^(quire\.h|base/)'
    [transport]='^(quire\.h|base/)'
    [algorithms]='^(quire\.h|base/|plan/plan\.h$)'
    [src/planner]='^(quire\.h|base/|plan/plan\.h$|algorithms\.h$|topology\.h$|transport\.h$)'
    [src/executor]='^(quire\.h|base/|plan/plan\.h$|lane\.h$|segment\.h$|transport\.h$|kernels/kernels\.h$)'
    [src/comm]='.'
    [src/api]='.'
    [perf]='^quire\.h$'
    [tools]='^quire\.h$'
)
# Named exceptions: tools that show the inside.
exception() { # file, include
    case "$1:$2" in
    tools/quire-plan.c:algorithms.h | tools/quire-plan.c:base/*) return 0 ;;
    tools/quire-info.c:base/bytes.h | tools/quire-info.c:kernels/kernels.h | tools/quire-info.c:topology.h | tools/quire-info.c:transport.h) return 0 ;;
    esac
    return 1
}
own() { # room, include, file: a header that lies beside the file, or the room's own by its path
    [ -e "$(dirname "$3")/$2" ] || [[ "$2" == "${1#src/}"/* ]]
}
for file in $(git ls-files 'include/*.h' 'src/*.[ch]' 'topology/*.[ch]' 'transport/*.[ch]' 'algorithms/*.[ch]' 'perf/*.[ch]' 'tools/*.c'); do
    room=$(dirname "$file")
    [ "$room" = perf/compare ] && room=perf
    allowed=${may[$room]-none}
    while read -r header; do
        if [[ "$header" == ../* || "$header" == */../* ]]; then
            echo "$file: \"$header\" goes around the borders; name the header by its room"
            bad=1
            continue
        fi
        own "$room" "$header" "$file" && continue
        exception "$file" "$header" && continue
        if [ -z "$allowed" ] || ! [[ "$header" =~ $allowed ]]; then
            echo "$file: $room may not include \"$header\""
            bad=1
        fi
    done < <(sed -n 's/^#[[:space:]]*include[[:space:]]*"\(.*\)".*/\1/p' "$file")
    while read -r header; do
        # Angle brackets are for the system's headers; ours would pass unseen.
        for root in include src transport topology algorithms tests; do
            if [ -e "$root/$header" ]; then
                echo "$file: <$header> is a header of this project; include it with quotes"
                bad=1
            fi
        done
        case "$header:$file" in
        hwloc*:topology/discover_hwloc.c | check.h:tests/*) ;;
        hwloc* | nvml* | infiniband/* | ucp/* | ucs/* | cuda* | check.h:*)
            echo "$file: <$header> belongs in another file"
            bad=1
            ;;
        esac
    done < <(sed -n 's/^#[[:space:]]*include[[:space:]]*<\(.*\)>.*/\1/p' "$file")
done
exit $bad
