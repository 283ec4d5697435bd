#!/bin/bash
# Micro-batches ("accumulation"): refused where they cannot be, their gradients added up and summed right over MPI and by
# NCCL, and in the lab as fast as predicted. Needs OUT and, for labs, root; prints ok, not ok and skip lines (tests/README.md).
# Alone: real trials are timed.
# Plan: 27
set -u
cd "$(dirname "$0")/../.."
double=$PWD/${OUT:-build/release}/tests/support/syncopate-worker-nccl
source tests/cli/trials.bash accumulation

cat >model.json <<'END'
{"schema":"syncopate.model/1","name":"m","batch_per_device":8,
 "variables":[{"name":"a","shape":[60001]},{"name":"b","shape":[50000]},{"name":"c","shape":[200,200]}],
 "layers":[{"name":"1","forward_us":5000,"backward_us":10000,"variables":["a"]},
           {"name":"2","forward_us":5000,"backward_us":10000,"variables":["b"]},
           {"name":"3","forward_us":5000,"backward_us":10000,"variables":["c"]}]}
END
cat >cluster.json <<'END'
{"schema":"syncopate.cluster/1","name":"slow",
 "nodes":[{"name":"n","count":3,"devices":1,"device":"cpu","nic_gbit_per_s":0.2,"nic_latency_us":50}]}
END
sed 's/"count":3,"devices":1/"count":2,"devices":2,"device_link_gbyte_per_s":1/; s/slow/pairs/' cluster.json >pairs.cluster.json
# strategy NAME SYNCHRONIZE GROUP_MEMBERS: three micro-batches; a and b in one group, c in another
strategy() {
    cat >"$1.json" <<END
{"schema":"syncopate.strategy/1","name":"$1",
 "schedule":{"policy":"fifo","credit_bytes":0,"accumulation":{"micro_batches":3,"synchronize":"$2"}},
 "groups":[{"id":0$3},{"id":1$3}],
 "variables":[{"name":"a","sync":{"kind":"all_reduce","group":0}},{"name":"b","sync":{"kind":"all_reduce","group":0}},
              {"name":"c","sync":{"kind":"all_reduce","group":1}}]}
END
}
for how in last each; do
    strategy whole-$how $how ""
    strategy zero-$how $how ',"sharded":"optimizer"'
    strategy sharded-$how $how ',"sharded":"parameters"'
    sed 's/{"kind":"all_reduce","group":1}/{"kind":"parameter_server","servers":["n2"]}/; s/,{"id":1}//' whole-$how.json >served-$how.json
done

check an_iteration_has_the_samples_of_all_micro_batches 0 "" "$syncopate" simulate model.json cluster.json \
    --strategy whole-last.json --json
python3 -c 'import json; p = json.load(open("out")); assert abs(p["samples_per_s"] - 3 * 3 * 8 / p["iteration_us"] * 1e6) < 0.01
assert p["compute_us"] == 135000 and p["lower_bound_us"] >= 135000' 2>why
verdict and_its_bound_too $? "$(tail -n 1 why)"
sed 's/,"accumulation":{[^}]*}//; s/whole-last/once/' whole-last.json >once.json
"$syncopate" simulate model.json cluster.json --strategy whole-last.json | grep -q ' lower bound 145 ms$' &&
    "$syncopate" simulate model.json cluster.json --strategy whole-last.json,once.json | grep -q ' lower bounds of these 54.6 ms to 145 ms$'
verdict bounds_are_those_of_the_strategies_shown $?
check show_says_how_many 0 "micro-batches: 3 an iteration, gradients summed in each" \
    "$syncopate" strategy show model.json cluster.json --strategy whole-each.json
check diff_says_when_they_are_summed 1 "synchronize" "$syncopate" strategy diff model.json cluster.json whole-last.json whole-each.json
refused() { # NAME SAID SED_SCRIPT
    sed "$3" whole-each.json >bad.json
    check "$1" 2 "$2" "$syncopate" simulate model.json cluster.json --strategy bad.json
}
refused no_micro_batch_is_refused "/schedule/accumulation/micro_batches: is 0" 's/"micro_batches":3/"micro_batches":0/'
refused no_replicas_are_refused "each_all_reduce_last, which tells replicas of shards when to all-reduce, and there are none" 's/"each"/"each_all_reduce_last"/'
for encoding in topk powersgd; do
    refused what_${encoding}_keeps_back_is_refused "encoded as $encoding, which keeps back what does not travel" "s/\"name\":\"c\"/&,\"encoding\":\"$encoding\"/"
done
sed 's/"groups"/"consistency":{"kind":"asynchronous"},&/' served-last.json >bad.json
check drifting_workers_are_refused 2 'but workers with a "consistency" (asynchronous) send whole updates' "$syncopate" simulate \
    model.json cluster.json --strategy bad.json

check no_sweep_counts_them 2 "has 3 micro-batches, and a sweep counts the samples of one: drop --sweep" "$syncopate" simulate \
    model.json cluster.json --strategy whole-last.json --sweep bandwidth=1,2

sed 's/"name":"c"/&,"encoding":{"kind":"powersgd","rank":16}/' whole-last.json >powersgd-last.json
for how in last each_all_reduce_last; do
    sed "s/\"last\"/\"$how\"/; s/\"credit_bytes\"/\"shard_ranks\":2,&/" sharded-last.json >replicas-$how.json
done
cp whole-last.json whole-wrong.json && cp replicas-last.json replicas-wrong.json
# apart NAME OPTION...: in a folder of its own, since runs that no time is taken of go at once. Another worker: `by`. Inputs
# are copied, so all are written before the first run.
apart() {
    mkdir "run-$1${by:-}" && cp ./*.json "run-$1${by:-}" && cd "run-$1${by:-}" && here "$@" --iterations 2
    echo $? >status
}
fine="$(echo {whole,zero,sharded}-{last,each}) powersgd-last" replicas="replicas-last replicas-each_all_reduce_last"
for name in $fine; do
    (apart $name) &
done
for name in $replicas; do
    (ranks=4 cluster=pairs.cluster.json apart $name) &
done
if [ -x "$double" ]; then # on stand-ins
    (by=-nccl worker=$double apart zero-each) &
    (by=-nccl worker=$double ranks=4 cluster=pairs.cluster.json apart replicas-each_all_reduce_last) &
fi
(apart whole-wrong --fault sum) &
(ranks=4 cluster=pairs.cluster.json apart replicas-wrong --fault sum) &
wait
for name in $fine $replicas; do
    [ "$(cat run-$name/status)" = 0 ] && grep -q '"event":"done"' run-$name/out
    verdict "${name}_is_summed" $? "exit status $(cat run-$name/status): $(cat run-$name/out run-$name/err | head -c 300)"
done
for name in zero-each replicas-each_all_reduce_last; do
    if [ -x "$double" ]; then
        [ "$(cat run-$name-nccl/status)" = 0 ] &&
            [ "$(grep -o '"checked":[0-9]*' run-$name-nccl/out)" = "$(grep -o '"checked":[0-9]*' run-$name/out)" ]
        verdict "${name}_by_nccl_is_the_same" $? "$(head -c 300 run-$name-nccl/out)"
    else
        echo "skip ${name}_by_nccl_is_the_same: needs the NCCL worker, which CUDA and NCCL are for"
    fi
done
for name in whole-wrong replicas-wrong; do
    [ "$(cat run-$name/status)" != 0 ] && grep -qE '"event":"error".*sum' run-$name/out
    verdict "${name}_is_noticed" $? "$(head -c 300 run-$name/out)"
done

needs_lab accumulation
for name in sharded-last served-each; do
    check "${name}_runs_in_the_lab" 0 '"measured_us"' trial $name 3 1
    cp out $name.out
done
near 0.7 1.3 sharded-last served-each
