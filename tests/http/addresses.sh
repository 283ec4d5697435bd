#!/bin/bash
# How many connections may come from one address (addresses.py). Needs OUT and python3, and root for a network namespace of
# its own; prints ok, not ok and skip lines (tests/README.md).
# Plan: 3
set -u
cd "$(dirname "$0")/../.." || exit 1
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
if ! unshare --net ip link set lo up 2>unshare.err; then
    echo "skip addresses: no network namespace can be made: $(head -n 1 unshare.err)"
    exit 0
fi
# shellcheck disable=SC2016 # for the inner shell
unshare --net bash -c '
    ip link set lo up
    for ((i = 1; i <= 24; i++)); do
        for network in 2 3; do
            ip -6 address add "2001:db8:1:$network::$(printf %x "$i")/128" dev lo nodad || exit 1
        done
    done
    python3 "$ROOT/tests/http/addresses.py"'
