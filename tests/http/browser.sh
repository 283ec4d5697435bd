#!/bin/bash
# The pages in a real browser: Chromium, headless. Screenshots are left in OUT/browser.
# Needs OUT, python3 and chromium (without it the test is skipped), and for one test axe-core (.ci/axe); prints ok, not
# ok and skip lines (tests/README.md).
# Once: it is the browser's time; the pages have unit tests.
# Plan: 22
set -u
cd "$(dirname "$0")/../.."
export ROOT=$PWD OUT=${OUT:-build/release} PYTHONPATH=$PWD/tests/http PYTHONDONTWRITEBYTECODE=1
if ! python3 -c 'import devtools, sys; sys.exit(not devtools.find())'; then
    echo "skip browser: chromium is not installed"
    exit 0
fi
mkdir -p "$OUT/browser"
PICTURES=$(cd "$OUT/browser" && pwd)
export PICTURES
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 "$ROOT/tests/http/browser.py"
