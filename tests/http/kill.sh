#!/bin/bash
# The service under SIGKILL (kill.py). Needs OUT and python3; prints ok, not ok and skip lines (tests/README.md).
# Waits: leases that end.
# Plan: 1
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
python3 "$ROOT/tests/http/kill.py"
