#!/bin/bash
# The shipped corpus: whole, of the promised shape, usable by the commands, and its models what models.py writes.
# Computes: it waits for nothing and times nothing.
# Plan: 13
set -u
syncopate=$OUT/bin/syncopate
corpus=examples/corpus/lab.db.xz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() { # NAME COMMAND...: ok when the command succeeds
    local name=$1
    shift
    if "$@" >"$work/out" 2>&1; then echo "ok $name"; else echo "not ok $name: $(head -n 1 "$work/out")"; fi
}
at_least() { [ "$1" -ge "$2" ] || { echo "$1 is less than $2"; return 1; }; }
per_domain="SELECT count(*) AS n FROM trials WHERE state = 'complete' GROUP BY model, cluster"
ask() { sqlite3 -readonly "$work/lab.db" "$1"; }

check "models are what models.py writes" python3 examples/corpus/models.py --check
check "the corpus unpacks" sh -c "xz -dc $corpus >$work/lab.db"
check "it is small" at_least $((3 << 20)) "$(stat -c %s $corpus)"
check "dataset check finds nothing" "$syncopate" dataset check --dataset "$work/lab.db"
check "4 domains have 260 trials" at_least "$(ask "SELECT count(*) FROM ($per_domain) WHERE n >= 260")" 4
check "6 domains have 130 trials" at_least "$(ask "SELECT count(*) FROM ($per_domain) WHERE n >= 130")" 6
check "32 domains have 25 trials" at_least "$(ask "SELECT count(*) FROM ($per_domain) WHERE n >= 25")" 32
check "8 models" at_least "$(ask "SELECT count(DISTINCT model) FROM trials")" 8
check "6 clusters" at_least "$(ask "SELECT count(DISTINCT cluster) FROM trials")" 6
check "with encoders too" at_least "$(ask "SELECT count(*) FROM trials t JOIN strategies s ON s.row = t.strategy
    WHERE state = 'complete' AND (content LIKE '%topk%' OR content LIKE '%powersgd%' OR content LIKE '%int8%')")" 50
check "a ranker learns from it" "$syncopate" train-ranker --dataset "$work/lab.db" --kind linear --cluster two --name fits
check "and ranks" "$syncopate" rank examples/corpus/models/decoder.json examples/corpus/clusters/two.json --baselines \
    --dataset "$work/lab.db" --ranker fits
check "it merges into another dataset" "$syncopate" dataset merge "$work/lab.db" --dataset "$work/other.db"
