#!/bin/bash
# The tables of learned ranking from recorded trials: `make evaluate`.
#
#   OUT=build/release tests/evaluate.sh [TABLE...]
#
# They come from the corpus that is shipped, unpacked into build/; DATASET=FILE takes another dataset.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-build/release}
dataset=${DATASET:-build/lab.db}
if [ -z "${DATASET:-}" ] && [ ! "$dataset" -nt examples/corpus/lab.db.xz ]; then
    mkdir -p build
    xz -dkc examples/corpus/lab.db.xz >"$dataset.part"
    mv "$dataset.part" "$dataset"
fi
exec "$out/tests/evaluate/evaluate" "$dataset" "$@"
