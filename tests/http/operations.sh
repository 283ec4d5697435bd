#!/bin/bash
# docs/operations.md: its commands, its figures, the alerts, the systemd unit, and the proxies that are installed.
# Needs OUT, python3 and curl; prints ok, not ok and skip lines (tests/README.md).
# Plan: 18
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 "$ROOT/tests/http/operations.py"
