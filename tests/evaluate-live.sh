#!/bin/bash
# Search methods against each other, live in the lab: `make evaluate-live`.
#
#   OUT=build/release tests/evaluate-live.sh           play (or go on with what was interrupted), then the tables
#   OUT=build/release tests/evaluate-live.sh table     the tables of the records that are shipped
#
# RECORDS=FILE (build/live.jsonl), SEEDS=N (2), DOMAINS="MODEL-CLUSTER ..." of the corpus. Playing needs root and a machine
# that does nothing else: 9 methods, 30 trials of 2 s a play, so half an hour a seed for three domains, and ten minutes
# at the end in which the fastest run again. Where other programs measure too, LOCK=FILE is held during each trial.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-build/release}
records=${RECORDS:-build/live.jsonl}
live=$out/tests/evaluate/live
mkdir -p build
if [ "${1:-play}" = table ]; then
    xz -dkc examples/corpus/live.jsonl.xz >build/live-shipped.jsonl
    exec "$live" table build/live-shipped.jsonl
fi
xz -dkc examples/corpus/lab.db.xz >build/live-corpus.db
# shellcheck disable=SC2086
SYNCOPATE_WORKER=$PWD/$out/bin/syncopate-worker-mpi "$live" play build/live-corpus.db "$records" \
    ${DOMAINS:-decoder-four recurrent-two recommender-mixed} --seeds "${SEEDS:-2}" ${LOCK:+--lock "$LOCK"}
"$live" table "$records"
