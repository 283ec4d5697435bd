#!/bin/bash
# The Python client (interop/client) and its page, /llms.txt, and what empty answers say.
# Needs OUT and python3; prints ok, not ok and skip lines (tests/README.md).
# Plan: 14
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http:$PWD/interop/client PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 "$ROOT/tests/http/client.py"
