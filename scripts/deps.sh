#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# deps.sh - installs the Debian packages that are missing; silent when nothing is. Without root and without sudo it
# prints the line to run. LINT=1 adds what `make lint` and the second compiler need.
set -eu

need="gcc make pkg-config libhwloc-dev check libsubunit-dev"
[ "${LINT:-0}" = 1 ] && need="$need clang clang-format clang-tidy cppcheck shellcheck git iproute2"

command -v dpkg-query >/dev/null 2>&1 || exit 0 # no Debian: the compiler will say what is missing
missing=""
for package in $need; do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

run=""
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        run="sudo"
    else
        echo "missing packages; run:  sudo apt-get install -y$missing" >&2
        exit 1
    fi
fi
echo "installing$missing"
# shellcheck disable=SC2086 # lists of words on purpose
install() { $run env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null; }
install 2>/dev/null || { $run apt-get update -qq && install; }
