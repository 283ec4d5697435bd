#!/bin/bash
# Predicted against measured over real trials in emulated clusters, two of them of nodes with two devices: `make
# accuracy`. Needs root. Every strategy is tried twice. In lab-8x2x200m two devices share 0.2 Gbit/s, so that 2
# processors carry 16 devices and 8 servers.
#
#   TRIALS=12 SEED=1 BENCH=60s OUT=build/release tests/accuracy.sh [--sharded]
#
# With --sharded (`make accuracy-sharded`), once: all-reduces in halves, sharded parameters, replicas and micro-batches, 13
# trials a pair, five pairs.
# Each cluster is benched first; predictions come from that and are made before each trial. Descriptions and records
# stay in build/accuracy; DATASET=FILE tests/accuracy.sh prints the table of records that are already there.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-build/release}
if [ -n "${DATASET:-}" ]; then
    exec "$out/tests/accuracy/accuracy" "$DATASET"
fi
dir=build/accuracy${1:+-${1#--}}
pairs_of=(cnn-small=lab-4x1g cnn-small=lab-8x500m transformer-small=lab-mixed resnet18=lab-4x1g googlenet=lab-4x2x250m
    googlenet=lab-8x2x200m)
trials=12
if [ -n "${1:-}" ]; then
    pairs_of=(cnn-small=lab-4x1g transformer-small=lab-8x500m transformer-small=lab-mixed resnet18=lab-4x1g
        googlenet=lab-4x2x250m)
    trials=13
fi
rm -rf "$dir"
mkdir -p "$dir"
pairs=
for pair in ${PAIRS:-${pairs_of[@]}}; do
    cluster=${pair#*=}
    if [ ! -e "$dir/$cluster.json" ]; then
        echo "benching $cluster" >&2
        described=tests/accuracy/$cluster.json # or an example
        [ -e "$described" ] || described=$cluster
        "$out/bin/syncopate" bench "$described" --max-bytes 64M --time "${BENCH:-60s}" --out "$dir/$cluster.json"
    fi
    pairs="$pairs examples/models/${pair%=*}.json=$dir/$cluster.json"
done
SYNCOPATE_WORKER=$PWD/$out/bin/syncopate-worker-mpi \
    "$out/tests/accuracy/accuracy" "${@:---twice}" "$dir/accuracy.db" "${TRIALS:-$trials}" "${SEED:-1}" $pairs
