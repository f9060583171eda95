#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# exports.sh - libquire.so exports the functions of include/quire.h, all of them and nothing else.
set -u
build=${BUILD:-build}
declared=$(tr '\n' ' ' <include/quire.h | grep -oE 'QUIRE_API [^;(]*[ *](quire_[a-z0-9_]+)\(' | sed -E 's/.*[ *](quire_[a-z0-9_]+)\($/\1/' | sort -u)
exported=$(nm -D --defined-only "$build/libquire.so" | awk '$2 ~ /[TDB]/ {print $3}' | sed 's/@.*//' | sort -u)
diff <(echo "$declared") <(echo "$exported") | sed -n 's/^< /declared, not exported: /p; s/^> /exported, not declared: /p'
[ "$declared" = "$exported" ]
