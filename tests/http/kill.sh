#!/bin/bash
# A service on a file and three on one PostgreSQL under SIGKILL (kill.py); SERVICES: how many alone. Needs OUT and
# python3; prints ok, not ok and skip lines (tests/README.md).
# Once: it is the time of several processes; what they run is under sanitizers in tests of its own.
# Waits: leases that end.
# Plan: 2
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 711 "$dir" # PostgreSQL is another user's
for services in ${SERVICES:-1 3}; do
    mkdir "$dir/$services"
    (cd "$dir/$services" && SERVICES=$services python3 "$ROOT/tests/http/kill.py")
done
