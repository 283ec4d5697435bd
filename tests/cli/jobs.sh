#!/bin/bash
# docs/jobs.md: what it tells people to type is typed, and what it says that this answers is what it answers
# (tests/http/guide.py). Needs OUT and python3; prints ok, not ok and skip lines (tests/README.md).
# Once: command.sh and session.sh run the same commands under sanitizers.
# Plan: 4
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 2
python3 -c 'import guide; guide.main(["docs/jobs.md"])'
