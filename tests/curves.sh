#!/bin/bash
# The tables of cost curves: `make curves`.
#
#   OUT=build/release tests/curves.sh
#
# Public tables come from ../shared/data, if it is there; clusters and iterations from the corpus that is shipped,
# unpacked into build/; DATASET=FILE takes another dataset.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-build/release}
dataset=${DATASET:-build/lab.db}
if [ -z "${DATASET:-}" ] && [ ! "$dataset" -nt examples/corpus/lab.db.xz ]; then
    mkdir -p build
    xz -dkc examples/corpus/lab.db.xz >"$dataset.part"
    mv "$dataset.part" "$dataset"
fi
exec "$out/tests/curves/curves" "$dataset"
