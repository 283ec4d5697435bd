#!/bin/bash
# The service under attack, for about 15 s (attack.py): no crash, no loss, no undocumented 5xx, bounded memory. `make attack` is
# the long run, with limits of time. Needs OUT and python3; prints ok, not ok and skip lines (tests/README.md).
# Last: attackers take all there is of the processor.
# Plan: 18
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} SHORT=${SHORT:-1} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
python3 "$ROOT/tests/http/attack.py"
