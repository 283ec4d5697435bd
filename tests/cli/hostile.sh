#!/bin/bash
# Names, ids and reasons that a terminal would obey, or a spreadsheet, on their way through every command that prints
# what a dataset, a file or a service says (hostile.py). Needs OUT and python3; prints ok, not ok and skip lines
# (tests/README.md).
# Plan: 263
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONDONTWRITEBYTECODE=1
unset "${!SYNCOPATE_@}" http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
python3 "$ROOT/tests/cli/hostile.py"
