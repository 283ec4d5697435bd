#!/bin/bash
# docs/http.md: what it tells people to type is typed, and what it says that this answers is what it answers.
# Needs OUT, python3 and curl; prints ok, not ok and skip lines (tests/README.md).
# Plan: 29
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 "$ROOT/tests/http/guide.py"
