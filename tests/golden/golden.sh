#!/bin/bash
# Golden virtual times: predictions of every baseline for some models and clusters, exactly as they were. A change that
# moves one shows here, in review. `tests/golden/golden.sh --write` accepts the new ones.
# Computes: it waits for nothing and times nothing.
# Plan: 325
set -u
cd "$(dirname "$0")/../.."
syncopate=${OUT:-build/release}/bin/syncopate
golden=tests/golden/predictions.txt
line() {
    python3 -c 'import json, sys
for line in sys.stdin:
    p = json.loads(line)
    print(p["model"], p["cluster"], p["strategy"]["name"], p["strategy"]["id"][:12], "%.3f" % p["iteration_us"],
          "%.3f" % p.get("lower_bound_us", 0))'
}
times() {
    for model in resnet50 bert-base vgg16; do
        for cluster in lab-4x1g lab-mixed v100-16x10g k80-8x10g; do
            "$syncopate" simulate examples/models/$model.json examples/clusters/$cluster.json --json --all-baselines |
                line | sort
        done
    done
    for cluster in lab-4x1g lab-mixed v100-16x10g lab-4x1g-weather; do
        "$syncopate" simulate examples/models/resnet50.json examples/clusters/$cluster.json --json \
            --baseline async-ps,ssp,mlfabric-a,mlfabric-s | line | sort
    done
    for model in resnet50 bert-base; do
        for cluster in lab-4x1g v100-16x10g; do
            "$syncopate" simulate examples/models/$model.json examples/clusters/$cluster.json --json --baseline \
                dear,megatron-distributed-optimizer,fsdp-per-block,fsdp-whole,torchtitan,zero-1,zero-2,zero-3 | line | sort
        done
    done
}
if [ "${1:-}" = --write ]; then
    times >$golden
    exit
fi
now=$(mktemp)
trap 'rm -f "$now"' EXIT
times >"$now"
while read -r model cluster strategy id time bound; do
    if grep -qxF "$model $cluster $strategy $id $time $bound" "$now"; then
        echo "ok ${model}_on_${cluster}_by_$strategy"
    else
        echo "not ok ${model}_on_${cluster}_by_$strategy: was $id $time $bound, is $(grep -F "$model $cluster $strategy " "$now" | cut -d' ' -f4-)"
    fi
done <$golden
[ "$(wc -l <$golden)" = "$(wc -l <"$now")" ] && echo "ok as_many_predictions_as_before" ||
    echo "not ok as_many_predictions_as_before: $(wc -l <$golden) before, $(wc -l <"$now") now"
