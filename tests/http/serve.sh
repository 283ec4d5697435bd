#!/bin/bash
# The service from outside: its command line, its tokens, TLS, its metrics, and its own description held against it.
# Needs OUT and python3; prints ok, not ok and skip lines (tests/README.md).
# Plan: 19
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 "$ROOT/tests/http/serve.py"
