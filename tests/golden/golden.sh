#!/bin/bash
# Golden virtual times: predictions of every baseline, of sharded parameters, replicas and micro-batches, for some
# models and clusters, exactly as they were. A change that moves one shows here, in review. `tests/golden/golden.sh --write`
# accepts the new ones.
# Computes: it waits for nothing and times nothing.
# Once: a sanitizer sees the same predictions in other tests.
# Plan: 401
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
# Buckets of PyTorch's DistributedDataParallel, changed: WAYS MODEL CLUSTER.
#   sharded   as FSDP2 on a GPU does it, kept after the forward pass, gathered when they are needed, or half of them,
#             beside others of ZeRO-2
#   replicas  two devices share the parameters, or keep parts between the passes; three micro-batches of all of these
ways() {
    "$syncopate" strategy show "$2" "$3" --baseline pytorch-ddp --json | python3 -c 'import json, sys
ddp = json.load(sys.stdin)
whole, optimizer, gradients, fsdp = {}, {"sharded": "optimizer"}, {"sharded": "gradients"}, {"sharded": "parameters"}
kept, parts, two = {**fsdp, "reshard_after_forward": False}, {**fsdp, "reshard_after_forward": 2}, {"shard_ranks": 2}
three = lambda how: {"accumulation": {"micro_batches": 3, "synchronize": how}}
ways = {"sharded": {"fsdp": ({"forward_prefetch": 2}, fsdp), "fsdp-kept": ({}, kept),
                    "fsdp-late": ({"forward_prefetch": 0, "backward_prefetch": 0}, fsdp),
                    "fsdp-half": ({}, fsdp, gradients)},
        "replicas": {"replicas": (two, fsdp), "replicas-kept": (two, kept), "parts": ({}, parts),
                     "ddp-last": (three("last"), whole), "ddp-each": (three("each"), whole),
                     "optimizer-last": ({**three("last"), "cross_iteration": True}, optimizer),
                     "gradients-each": (three("each"), gradients),
                     "fsdp-last": (three("last"), fsdp), "fsdp-each": (three("each"), fsdp),
                     "parts-each": (three("each"), parts),
                     "replicas-last": ({**two, **three("last")}, fsdp),
                     "replicas-each": ({**two, **three("each_all_reduce_last")}, fsdp)}}
for name, (schedule, *groups) in ways[sys.argv[2]].items():
    s = json.loads(json.dumps(ddp))
    s["name"] = name
    s["schedule"].update(schedule)
    for g in s["groups"]:
        g.update(groups[g["id"] % len(groups)])
    json.dump(s, open(sys.argv[1] + "/" + name + ".json", "w"))
    print(name)' "$dir" "$1" | while read -r way; do
        "$syncopate" simulate "$2" "$3" --json --strategy "$dir/$way.json"
    done | line
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
            ways sharded examples/models/$model.json examples/clusters/$cluster.json
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
    for model in resnet50 bert-base; do
        for cluster in lab-4x1g v100-16x10g; do
            ways replicas examples/models/$model.json examples/clusters/$cluster.json
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
