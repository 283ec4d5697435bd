#!/bin/bash
# All-reduces in halves ("sharded": "optimizer"): refused where they cannot be, summed and gathered right over MPI, and in
# the lab as fast as predicted. Needs OUT and, for labs, root; prints ok, not ok and skip lines (tests/README.md).
# Alone: real trials are timed.
# Plan: 15
set -u
cd "$(dirname "$0")/../.."
source tests/cli/trials.bash halves

# Two layers: the second half of b passes while the first layer's forward pass runs.
cat >model.json <<'END'
{"schema":"syncopate.model/1","name":"m","batch_per_device":1,
 "variables":[{"name":"a","shape":[100003]},{"name":"b","shape":[150000]},{"name":"c","shape":[2]}],
 "layers":[{"name":"1","forward_us":40000,"backward_us":60000,"variables":["a","c"]},
           {"name":"2","forward_us":40000,"backward_us":60000,"variables":["b"]}]}
END
cat >cluster.json <<'END'
{"schema":"syncopate.cluster/1","name":"slow",
 "nodes":[{"name":"n","count":3,"devices":1,"device":"cpu","nic_gbit_per_s":0.1,"nic_latency_us":50}]}
END
# strategy NAME SCHEDULE GROUP_OF_A GROUP_OF_B SHARDED PARTITION
strategy() {
    local group='"algorithm":"ring"'
    [ "$5" = none ] || group="$group,\"sharded\":\"$5\""
    [ -z "${6:-}" ] || group="$group,\"partition_bytes\":$6"
    cat >"$1.json" <<END
{"schema":"syncopate.strategy/1","name":"$1","schedule":{$2},
 "groups":[{"id":0,$group},{"id":1,$group}],
 "variables":[{"name":"a","sync":{"kind":"all_reduce","group":$3}},{"name":"b","sync":{"kind":"all_reduce","group":$4}},
              {"name":"c","sync":{"kind":"all_reduce","group":$3}}]}
END
}
across='"policy":"fifo","cross_iteration":true'
strategy whole "$across" 0 1 none
strategy halves "$across" 0 1 optimizer
strategy barrier '"policy":"fifo","cross_iteration":false' 0 1 optimizer
strategy priority '"policy":"priority","credit_bytes":100000,"cross_iteration":true' 0 1 optimizer 65536
strategy fused "$across" 0 0 optimizer
# The two elements of c in a message of their own: one of three devices has no part of it.
sed 's/{"id":1,[^}]*}/&,{"id":2,"algorithm":"ring","sharded":"optimizer"}/
    s/\("c","sync":{"kind":"all_reduce","group":\)0/\12/' halves.json >alone.json

check simulate_knows_halves 0 "halves" "$syncopate" simulate model.json cluster.json --strategy halves.json
check show_says_halves 0 "ring, in halves" "$syncopate" strategy show model.json cluster.json --strategy halves.json
sed 's/"sync":{"kind":"all_reduce","group":1}/"encoding":"f16",&/' halves.json >encoded.json
check encoded_halves_are_refused 2 "variable \"b\" is encoded, but group 1 has \"sharded\"" \
    "$syncopate" simulate model.json cluster.json --strategy encoded.json

"$syncopate" simulate model.json cluster.json --strategy halves.json --timeline trace.json >out 2>err &&
    grep -q '"cat":"reduce-scatter"' trace.json && grep -q '"cat":"all-gather"' trace.json
verdict pictures_tell_halves_apart $? "$(head -c 300 err)"

for name in halves barrier priority fused alone; do
    here $name --iterations 4 --warmup 1
    [ $? = 0 ] && grep -q '"event":"done"' out
    verdict "sums_of_${name}_are_right_and_everywhere" $? "$(head -c 300 out)"
done
! here halves --iterations 4 --warmup 1 --fault sum && grep -q '"event":"error".*sum' out
verdict a_wrong_sum_of_halves_is_noticed $? "$(head -c 300 out)"

needs_lab halves
for name in whole halves barrier priority; do
    check "${name}_runs_in_the_lab" 0 '"measured_us"' trial $name 6 2
    cp out $name.out
done
near 0.7 1.3 whole halves barrier priority
