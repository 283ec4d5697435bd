#!/bin/bash
# Which clusters a service runs trials on itself.
# Needs OUT and python3; prints ok, not ok and skip lines (tests/README.md).
# Plan: 6
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 "$ROOT/tests/http/launchers.py"
