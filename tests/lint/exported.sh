#!/bin/bash
# No function is exported for nobody: each that a product object defines is called by another product object or in its
# own source. What only tests call belongs under tests/; what only its own source calls may stay exported for its unit
# test. Reads the symbols of the objects that `make all` left in $OUT/obj.
# Computes: it waits for nothing and times nothing.
# Plan: 2
set -u
cd "$(dirname "$0")/../.."
export LC_ALL=C
out=${OUT:-build/release}
folders="base strategy interop featurize simulator dataset trial-runner tuner report service cli"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Objects whose source is still there; those of the plugin that NCCL loads are built apart.
objects() {
    local source object
    for source in $(find $folders -name '*.c' | sort); do
        for object in "$out/obj/${source%.c}.o" "$out/pic/${source%.c}.o"; do
            [ ! -e "$object" ] || echo "$object"
        done
    done
}

# exported OBJECT...: "FUNCTION SOURCE", a line each.
exported() {
    nm -A --defined-only "$@" | awk -v out="$out/" '$2 == "T" {
        split($1, at, ":"); source = substr(at[1], length(out) + 1); sub(/^[a-z]*\//, "", source); sub(/o$/, "c", source)
        print $3, source }' | sort -u
}

# A name that another source mentions but no object refers to is called where its object was not built (CUDA).
mentioned_elsewhere() { # FUNCTION
    grep -lwE "$1" trial-runner/worker/nccl/*.c >/dev/null 2>&1
}

# unused OBJECT...: "SOURCE: FUNCTION" for each that no other object refers to and its source names once.
unused() {
    local function source
    exported "$@" >"$work/exported"
    nm -u "$@" | awk 'NF == 2 { print $2 }' | sort -u >"$work/wanted"
    join -v 1 "$work/exported" "$work/wanted" | while read -r function source; do
        case $function in main | __* | ncclTuner*) continue ;; esac
        [ "$(grep -vE '^ *(/\*|\*|//|#include)' "$source" | grep -cw "$function")" -gt 1 ] && continue
        mentioned_elsewhere "$function" || echo "$source: $function is exported and only tests call it"
    done
}

mapfile -t all < <(objects)
unused "${all[@]}" >"$work/found"
if [ -s "$work/found" ]; then
    cat "$work/found"
    echo "not ok no function is exported for tests alone: make these static, delete them or move them under tests/"
else
    echo "ok no function is exported for tests alone"
fi

# Without the object that calls it, propose_bayes is called by nobody.
mapfile -t fewer < <(printf '%s\n' "${all[@]}" | grep -v '/tuner/search/candidates\.o$')
if [ "$(unused "${fewer[@]}" | grep -c 'propose_bayes is exported')" = 1 ]; then
    echo "ok a function that nobody calls any more is found"
else
    echo "not ok a function that nobody calls any more is found: propose_bayes is not listed"
fi
