#!/bin/bash
# What `make convergence` prints: time and updates to a target loss, against how far workers may drift apart.
#
# Four workers of lab-4x1g-weather (C2: in one iteration of ten a worker takes 4 times as long; NICs change every 5 s) send
# the updates of mlp-small to one server, and learn a task of trial-runner/training.h. Each row has SEEDS (5) runs of ROUNDS
# (50) rounds of 4 useful updates, one for each seed of weather and batches; rows take turns. Intervals are of the mean, by
# Student's t. Where some runs do not reach the target, the others alone are averaged. Needs root, and about 15 s a run.
set -u
cd "$(dirname "$0")/.." || exit 2
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$syncopate" strategy show mlp-small lab-4x1g-weather --baseline async-ps --json >"$dir/asynchronous.json" || exit 2
named() { # NAME KIND: the same with another consistency
    sed "s/\"kind\": \"asynchronous\"/$2/" "$dir/asynchronous.json" >"$dir/$1.json"
}
named bound-4 '"kind": "asynchronous", "delay_bound": 4'
named staleness-2 '"kind": "stale_synchronous", "staleness": 2'
named staleness-0 '"kind": "stale_synchronous", "staleness": 0'

for seed in $(seq "${SEEDS:-5}"); do
    for run in ${RUNS:-two-layer/0.02 two-layer/0.03 two-layer/0.04 softmax/0.1}; do
        for strategy in staleness-0 staleness-2 bound-4 asynchronous; do
            json=$("$syncopate" trial mlp-small lab-4x1g-weather --strategy "$dir/$strategy.json" --seed "$seed" --log error \
                --train "${run%/*}" --learning-rate "${run#*/}" --iterations "${ROUNDS:-50}" --warmup 2 --json) || exit 1
            echo "${run%/*} ${run#*/} $strategy $seed $json" >>"$dir/runs"
        done
    done
done
[ -z "${RAW-}" ] || cp "$dir/runs" "$RAW"

python3 - "$dir/runs" <<'PY'
import json, sys
from math import sqrt

T = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]  # 95%, by degrees of freedom

def interval(values, unit):
    if not values:
        return "-"
    n, mean = len(values), sum(values) / len(values)
    if n == 1:
        return f"{mean:.1f}{unit}"
    half = T[min(n - 1, 9)] * sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return f"{mean:.1f}{unit} +- {half:.1f}"

rows = {}
for line in open(sys.argv[1]):
    task, rate, strategy, seed, text = line.split(" ", 4)
    rows.setdefault((task, rate), {}).setdefault(strategy, []).append(json.loads(text))
print(f"{'TASK':10}{'RATE':6}{'CONSISTENCY':14}{'REACHED':9}{'TIME':17}{'UPDATES':17}{'A SECOND':15}{'DELAY':7}{'VARIANCE':10}{'LARGEST':9}DROPPED")
for (task, rate), strategies in rows.items():
    for strategy, runs in strategies.items():
        reached = [r["training"] for r in runs if "reached_us" in r["training"]]
        u = [r["updates"] for r in runs]
        mean = lambda key: sum(x[key] for x in u) / len(u)
        print(f"{task:10}{rate:6}{strategy:14}{f'{len(reached)} of {len(runs)}':9}"
              f"{interval([t['reached_us'] / 1e6 for t in reached], ' s'):17}"
              f"{interval([t['reached_update'] for t in reached], ''):17}"
              f"{interval([x['useful_per_s'] for x in u], ''):15}{mean('delay_mean'):<7.2f}{mean('delay_variance'):<10.2f}"
              f"{max(x['delay_largest'] for x in u):<9.0f}{mean('dropped_share') * 100:.1f}%")
PY
