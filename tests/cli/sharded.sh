#!/bin/bash
# Sharded parameters ("sharded": "parameters"): refused where they cannot be, gathered and summed right over MPI and by
# NCCL, and in the lab as fast as predicted. Needs OUT and, for labs, root; prints ok, not ok and skip lines
# (tests/README.md).
# Alone: real trials are timed.
# Plan: 52
set -u
cd "$(dirname "$0")/../.."
double=$PWD/${OUT:-build/release}/tests/support/syncopate-worker-nccl
source tests/cli/trials.bash sharded

cat >model.json <<'END'
{"schema":"syncopate.model/1","name":"m","batch_per_device":1,
 "variables":[{"name":"a","shape":[60001]},{"name":"b","shape":[50000]},{"name":"c","shape":[3]},{"name":"d","shape":[40000]},
              {"name":"e","shape":[30,1000]}],
 "layers":[{"name":"1","forward_us":20000,"backward_us":30000,"variables":["a","c"]},
           {"name":"2","forward_us":20000,"backward_us":40000,"variables":["b"]},
           {"name":"3","forward_us":30000,"backward_us":40000,"variables":["d"]},
           {"name":"4","forward_us":20000,"backward_us":30000,"variables":["e"]}]}
END
cat >cluster.json <<'END'
{"schema":"syncopate.cluster/1","name":"slow",
 "nodes":[{"name":"n","count":3,"devices":1,"device":"cpu","nic_gbit_per_s":0.1,"nic_latency_us":50}]}
END
# strategy NAME SCHEDULE GROUP_MEMBERS GROUPS: the groups of a and c, b, d, e; in GROUP_MEMBERS a first, then of the others
strategy() {
    local of=($4)
    cat >"$1.json" <<END
{"schema":"syncopate.strategy/1","name":"$1","schedule":{"policy":"fifo"$2},
 "groups":[$(for g in $(printf '%s\n' "${of[@]}" | sort -u); do printf '%s{"id":%d%s}' "${sep:-}" "$g" "$3"; sep=,; done)],
 "variables":[{"name":"a","sync":{"kind":"all_reduce","group":${of[0]}}},{"name":"b","sync":{"kind":"all_reduce","group":${of[1]}}},
              {"name":"c","sync":{"kind":"all_reduce","group":${of[0]}}},{"name":"d","sync":{"kind":"all_reduce","group":${of[2]}}},
              {"name":"e","sync":{"kind":"all_reduce","group":${of[3]}}}]}
END
}
one=',"credit_bytes":0' sharded=',"sharded":"parameters"'
strategy layers "$one" "$sharded" "0 1 2 3"
strategy pairs "$one" "$sharded" "0 0 1 1"
strategy whole "$one" "$sharded" "0 0 0 0"
strategy kept "$one" "$sharded,\"reshard_after_forward\":false" "0 1 2 3"
strategy late "$one,\"forward_prefetch\":0,\"backward_prefetch\":0" "$sharded" "0 1 2 3"
strategy early "$one,\"forward_prefetch\":3,\"backward_prefetch\":2" "$sharded" "0 1 2 3"
strategy cut "" "$sharded,\"partition_bytes\":65536" "0 0 1 1"
# On two nodes of two devices: shards within a node, and parts kept by the devices of a node between the passes.
cat >pairs.cluster.json <<'END'
{"schema":"syncopate.cluster/1","name":"pairs",
 "nodes":[{"name":"n","count":2,"devices":2,"device":"cpu","nic_gbit_per_s":0.1,"nic_latency_us":50,"device_link_gbyte_per_s":2}]}
END
strategy replicas "$one,\"shard_ranks\":2" "$sharded" "0 1 2 3"
strategy replicas-cut ",\"shard_ranks\":2" "$sharded,\"partition_bytes\":65536" "0 0 1 1"
strategy fewer "$one" "$sharded,\"reshard_after_forward\":2" "0 1 2 3"
# Gathered and summed in types of their own, in one message where it lies, in several, cut, and among replicas.
carried() { echo "$sharded,\"gathered_as\":\"$1\",\"summed_as\":\"$2\""; }
twice=',"accumulation":{"micro_batches":2,"synchronize":'
strategy narrow "$one" "$(carried bf16 f32)" "0 1 2 3"
strategy narrow-pairs "$one" "$(carried bf16 f32)" "0 0 1 1"
strategy narrow-cut "" "$(carried f32 f16),\"partition_bytes\":65536" "0 0 1 1"
strategy halves "$one" "$(carried f16 bf16)" "0 0 1 2"
strategy narrow-last "$one$twice\"last\"}" "$(carried bf16 f32)" "0 1 1 2"
strategy narrow-each "$one$twice\"each\"}" "$(carried bf16 f32)" "0 1 1 2"
strategy narrow-replicas "$one,\"shard_ranks\":2" "$(carried f32 bf16)" "0 1 1 2"
strategy narrow-fewer "$one,\"shard_ranks\":2$twice\"each_all_reduce_last\"}" "$(carried bf16 f16)" "0 1 1 2"
# As ZeRO 3 has it, whose small variables are not sharded: their gradients are.
sed '0,/parameters/s//gradients/' layers.json >mixed.json

check simulate_knows_sharded_parameters 0 "layers" "$syncopate" simulate model.json cluster.json --strategy layers.json
check show_says_sharded_parameters 0 "sharded parameters" "$syncopate" strategy show model.json cluster.json --strategy kept.json
check show_says_how_far_ahead 0 "groups gathered ahead: 3 in the forward pass, 2 in the backward pass" \
    "$syncopate" strategy show model.json cluster.json --strategy early.json
check show_says_in_which_types 0 "sharded parameters, gathered as f16, summed as bf16" \
    "$syncopate" strategy show model.json cluster.json --strategy halves.json
check diff_says_in_which_types 1 "gathered as bf16" "$syncopate" strategy diff model.json cluster.json layers.json narrow.json
check diff_says_what_is_kept 1 "sharded parameters, kept" "$syncopate" strategy diff model.json cluster.json layers.json kept.json
check diff_says_how_far_ahead 1 "backward_prefetch  1       0" "$syncopate" strategy diff model.json cluster.json layers.json late.json
check diff_says_all_where_all_share_the_shards 1 "shard_ranks  all     2" \
    "$syncopate" strategy diff model.json pairs.cluster.json layers.json replicas.json
check diff_says_among_how_many_parts_are_kept 1 "kept in parts among 2" \
    "$syncopate" strategy diff model.json pairs.cluster.json layers.json fewer.json
refused() { # NAME SAID SED_SCRIPT
    sed "$3" layers.json >bad.json
    check "$1" 2 "$2" "$syncopate" simulate model.json cluster.json --strategy bad.json
}
refused priority_is_refused "which are gathered in order: policy fifo, not priority" 's/fifo/priority/'
refused no_barrier_is_refused '"cross_iteration" false' 's/"credit_bytes":0/&,"cross_iteration":true/'
refused deeper_than_there_are_groups_is_refused '"forward_prefetch" is 9, and 4 groups have "sharded" parameters' \
    's/"credit_bytes":0/&,"forward_prefetch":9/'
refused a_tree_is_refused "whose halves are a ring's" 's/"id":0/&,"algorithm":"tree"/'
refused what_is_not_gathered_is_not_kept '/groups/0/reshard_after_forward: it says when gathered parameters are freed' \
    '0,/parameters/s/"sharded":"parameters"/"sharded":"optimizer","reshard_after_forward":false/'

check what_does_not_divide_the_devices_is_refused 2 '"shard_ranks" is 2, and cluster "slow" has 3 devices' \
    "$syncopate" simulate model.json cluster.json --strategy replicas.json

for name in layers pairs whole kept late early cut mixed narrow narrow-pairs narrow-cut halves narrow-last narrow-each; do
    here $name --iterations 4 --warmup 1
    [ $? = 0 ] && grep -q '"event":"done"' out
    verdict "${name}_are_gathered_and_summed" $? "$(head -c 300 out)"
    grep -o '"checked":[0-9]*' out >$name.checked
done
! here narrow --iterations 4 --warmup 1 --fault sum && grep -qE '"event":"error".*(sum|gathered)' out
verdict a_wrong_part_in_another_type_is_noticed $? "$(head -c 300 out)"
# The NCCL worker on its stand-ins finds as many samples right.
by_nccl() {
    if under_sanitizer; then
        echo "skip $1_by_nccl_are_the_same: a sanitizer sees it in trial-runner/test_trial_nccl.c"
    elif [ -x "$double" ]; then
        worker=$double here $1 --iterations 4 --warmup 1
        [ $? = 0 ] && [ "$(grep -o '"checked":[0-9]*' out)" = "$(cat $1.checked)" ]
        verdict "$1_by_nccl_are_the_same" $? "$(head -c 300 out) $(cat $1.checked)"
    else
        echo "skip $1_by_nccl_are_the_same: needs the NCCL worker, which CUDA and NCCL are for"
    fi
}
by_nccl early
by_nccl mixed
by_nccl narrow-cut
by_nccl halves
by_nccl narrow-last
ranks=4 cluster=pairs.cluster.json
for name in replicas replicas-cut fewer narrow-replicas narrow-fewer; do
    here $name --iterations 4 --warmup 1
    [ $? = 0 ] && grep -q '"event":"done"' out
    verdict "${name}_are_gathered_and_summed" $? "$(head -c 300 out)"
    grep -o '"checked":[0-9]*' out >$name.checked
done
by_nccl replicas-cut
by_nccl fewer
by_nccl narrow-fewer
! here replicas --iterations 4 --warmup 1 --fault sum && grep -qE '"event":"error".*(sum|gathered)' out
verdict a_wrong_part_of_a_replica_is_noticed $? "$(head -c 300 out)"
unset ranks cluster
! here layers --iterations 4 --warmup 1 --fault sum && grep -qE '"event":"error".*(sum|gathered)' out
verdict a_wrong_part_is_noticed $? "$(head -c 300 out)"

needs_lab sharded
for name in layers pairs kept late early; do
    check "${name}_run_in_the_lab" 0 '"measured_us"' trial $name 6 2
    cp out $name.out
done
cluster=pairs.cluster.json check replicas_run_in_the_lab 0 '"measured_us"' trial replicas 6 2
cp out replicas.out
near 0.7 1.3 layers pairs kept late early replicas
