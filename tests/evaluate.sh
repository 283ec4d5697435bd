#!/bin/bash
# The tables of learned ranking from recorded trials: `make evaluate`.
#
#   OUT=build/release tests/evaluate.sh [TABLE...]
#
# They come from the corpus that is shipped, unpacked into build/; DATASET=FILE takes another dataset. After the table
# `search` Optuna's samplers play the same pools, if they are installed.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-build/release}
dataset=${DATASET:-build/lab.db}
if [ -z "${DATASET:-}" ] && [ ! "$dataset" -nt examples/corpus/lab.db.xz ]; then
    mkdir -p build
    xz -dkc examples/corpus/lab.db.xz >"$dataset.part"
    mv "$dataset.part" "$dataset"
fi
export EVALUATE_POOLS=build/pools.json
mkdir -p build
rm -f "$EVALUATE_POOLS"
"$out/tests/evaluate/evaluate" "$dataset" "$@"
[ ! -e "$EVALUATE_POOLS" ] || tests/evaluate/optuna_peer.py "$EVALUATE_POOLS"
