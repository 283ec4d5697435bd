#!/bin/bash
# The service where disks, clocks and clients go wrong (faults.py). Needs OUT and python3; prints ok, not ok and skip lines
# (tests/README.md).
# Waits: deadlines of slow clients.
# Plan: 11
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
python3 "$ROOT/tests/http/faults.py"
