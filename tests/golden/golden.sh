#!/bin/bash
# Golden virtual times: predictions of every baseline, and of sharded parameters, for some models and clusters, exactly as
# they were. A change that moves one shows here, in review. `tests/golden/golden.sh --write` accepts the new ones.
# Computes: it waits for nothing and times nothing.
# Plan: 353
set -u
cd "$(dirname "$0")/../.."
syncopate=${OUT:-build/release}/bin/syncopate
golden=tests/golden/predictions.txt
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
line() {
    python3 -c 'import json, sys
for line in sys.stdin:
    p = json.loads(line)
    print(p["model"], p["cluster"], p["strategy"]["name"], p["strategy"]["id"][:12], "%.3f" % p["iteration_us"],
          "%.3f" % p.get("lower_bound_us", 0))'
}
# Buckets of PyTorch's DistributedDataParallel, sharded as FSDP2 on a GPU does it, kept after the forward pass, gathered when
# they are needed, or half of them, beside others of ZeRO-2: MODEL CLUSTER.
sharded() {
    "$syncopate" strategy show "$1" "$2" --baseline pytorch-ddp --json | python3 -c 'import json, sys
ddp = json.load(sys.stdin)
ways = {"fsdp": ({"forward_prefetch": 2}, {}), "fsdp-kept": ({}, {"reshard_after_forward": False}),
        "fsdp-late": ({"forward_prefetch": 0, "backward_prefetch": 0}, {}), "fsdp-half": ({}, {})}
for name, (schedule, group) in ways.items():
    s = json.loads(json.dumps(ddp))
    s["name"] = name
    s["schedule"].update(schedule)
    for g in s["groups"]:
        half = name == "fsdp-half" and g["id"] % 2
        g.update({"sharded": "gradients"} if half else {"sharded": "parameters", **group})
    json.dump(s, open(sys.argv[1] + "/" + name + ".json", "w"))' "$dir"
    for way in fsdp fsdp-kept fsdp-late fsdp-half; do
        "$syncopate" simulate "$1" "$2" --json --strategy "$dir/$way.json" | line
    done
}
times() {
    for model in resnet50 bert-base vgg16; do
        for cluster in lab-4x1g lab-mixed v100-16x10g k80-8x10g; do
            "$syncopate" simulate examples/models/$model.json examples/clusters/$cluster.json --json --all-baselines |
                line | sort
        done
    done
    for model in resnet50 bert-base; do
        for cluster in lab-4x1g lab-mixed v100-16x10g; do
            sharded examples/models/$model.json examples/clusters/$cluster.json
        done
    done
    for cluster in lab-4x1g lab-mixed v100-16x10g lab-4x1g-weather; do
        "$syncopate" simulate examples/models/resnet50.json examples/clusters/$cluster.json --json \
            --baseline async-ps,ssp,mlfabric-a,mlfabric-s | line | sort
    done
    for model in resnet50 bert-base; do
        for cluster in lab-4x1g v100-16x10g; do
            "$syncopate" simulate examples/models/$model.json examples/clusters/$cluster.json --json --baseline \
                dear,megatron-distributed-optimizer,fsdp-per-block,fsdp-whole,torchtitan,hsdp,zero-1,zero-2,zero-3 | line | sort
        done
    done
}
if [ "${1:-}" = --write ]; then
    times >$golden
    exit
fi
now=$dir/now
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
