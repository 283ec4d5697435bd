#!/bin/bash
# Predictions of memory and budgets, as a person meets them: simulate, compare and tune; and what the workers' processes
# really take. Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Plan: 47
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
root=$PWD
syncopate=$PWD/${OUT:-build/release}/bin/syncopate double=$PWD/${OUT:-build/release}/tests/support/syncopate-worker-nccl
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# Worked out in tests/unit/strategy/test_memory.c: 36100 bytes, 35.3 KiB, while x.grad runs.
cat >model.json <<'END'
{"schema":"syncopate.model/1","name":"two","optimizer":"adam",
 "variables":[{"name":"a","shape":[1000]},{"name":"b","shape":[500]},{"name":"c","shape":[500]}],
 "layers":[{"name":"x","forward_us":1000,"backward_us":1000,"variables":["a"],"activation_bytes":100},
           {"name":"y","forward_us":1000,"backward_us":1000,"variables":["b","c"],"activation_bytes":50}]}
END
# cluster NAME MEMBERS
cluster() {
    echo '{"schema":"syncopate.cluster/1","name":"'"$1"'","nodes":[{"name":"n","count":4,"nic_gbit_per_s":1'"$2"'}]}' >"$1.json"
}
cluster four ""
cluster cpus ',"device":"cpu"'
cluster small ',"device_memory_gbyte":3.6e-5'
cluster large ',"device_memory_gbyte":4e-5'
cluster server ',"memory_gbyte":1e-5'
# strategy NAME GROUP_OF_A GROUP_OF_BC SHARDED
strategy() {
    cat >"$1.json" <<END
{"schema":"syncopate.strategy/1","name":"$1","schedule":{"policy":"fifo"},
 "groups":[{"id":0,"sharded":"$4"},{"id":1,"sharded":"$4"}],
 "variables":[{"name":"a","sync":{"kind":"all_reduce","group":$2}},{"name":"b","sync":{"kind":"all_reduce","group":$3}},
              {"name":"c","sync":{"kind":"all_reduce","group":$3}}]}
END
}
strategy two 0 1 none
strategy one 0 0 none
strategy halves 0 1 optimizer
# columns: the rows of the table of memory in out, with one blank between cells.
columns() {
    sed -n '/^MEMORY/,/^$/p' out | sed 's/  */ /g'
}

# ---- simulate ----

check the_peak_has_its_parts_and_its_place 0 "PEAK" "$syncopate" simulate model.json four.json --strategy two.json --memory 40KB
columns | grep -qx 'two 35.3 KiB 7.8 KiB 7.8 KiB 15.6 KiB 3.9 KiB 100 B 3.8 KiB backward step 2 of 2, x.grad'
verdict they_are_those_worked_out_by_hand $? "$(columns)"
"$syncopate" simulate model.json four.json --strategy two.json --memory 36099B >out 2>err
[ $? = 3 ] && [ "$(wc -l <err)" = 1 ] && columns | grep -q 'OVER by 1 B backward step 2 of 2, x.grad$' &&
    grep -q 'two needs 35.25 KiB on a device (backward step 2 of 2, x.grad), 1 B over the 35.25 KiB that it may have' err
verdict a_byte_too_much_is_said_and_ends_with_3 $? "$(cat out err)"
"$syncopate" simulate model.json small.json --strategy two.json >out 2>err
[ $? = 3 ] && columns | grep -q 'OVER by 100 B'
verdict the_budget_is_by_default_the_memory_of_the_devices $? "$(cat out err)"
check which_may_be_enough 0 "3.8 KiB" "$syncopate" simulate model.json large.json --strategy two.json,halves.json
check a_budget_that_is_said_counts_instead 0 "STRATEGY" "$syncopate" simulate model.json small.json --strategy two.json --memory 1MB
"$syncopate" simulate model.json four.json --strategy two.json,one.json,halves.json --memory 32000B >out 2>err
[ $? = 0 ] && [ "$(columns | awk 'NR == 2 { print $1 }')" = halves ] && [ "$(columns | grep -c OVER)" = 2 ]
verdict what_fits_comes_first $? "$(cat out err)"
"$syncopate" simulate model.json four.json --strategy two.json,one.json,halves.json --memory 20000B >out 2>err
[ $? = 3 ] && grep -q 'nothing fits: of these halves needs least, 25.4 KiB on a device; fsdp-optimal would fit, with 18.7 KiB' err
verdict where_nothing_fits_the_least_is_said $? "$(cat err)"
"$syncopate" simulate model.json server.json --baseline ps >out 2>err
[ $? = 3 ] && grep -q 'ps needs up to 31.2 KiB for the server on node "n1", which has 9.8 KiB' err
verdict a_server_has_the_memory_of_its_node $? "$(cat err)"
"$syncopate" simulate model.json four.json --strategy two.json --memory 40KB --json >out 2>err
grep -q '"memory":{"peak_bytes":36100,"at":"backward step 2 of 2, x.grad","parameters_bytes":8000,"gradients_bytes":8000,"optimizer_bytes":16000,"gathered_bytes":0,"buffers_bytes":4000,"encoding_bytes":0,"activations_bytes":100,"budget_bytes":40000,"fits":true}' out
verdict it_is_in_the_json $? "$(cat out)"
# What does not stay between the passes is gathered again, and no strategy that fits does without.
cat >eight.json <<'JSON'
{"schema":"syncopate.cluster/1","name":"eight","nodes":[{"name":"n","count":8,"devices":1,"device":"v100","nic_gbit_per_s":10,
 "nic_latency_us":20,"device_link_gbyte_per_s":12}]}
JSON
bound_within() { "$syncopate" simulate llama-1b-v100 eight.json --baseline fsdp-per-block --memory "$1" 2>err | sed -n '1s/.*lower bound //p'; }
[ "$(bound_within 16GB) $(bound_within 10GB)" = "3.460 s 4.608 s" ]
verdict a_budget_raises_the_bound $? "$(bound_within 16GB) $(bound_within 10GB) $(cat err)"
"$syncopate" simulate mlp-small lab-4x1g >out 2>err && "$syncopate" simulate mlp-small lab-4x1g --json >>out 2>err
! grep -qi memory out && grep -q iteration_us out
verdict without_a_budget_and_states_nothing_is_new $? "$(head -c 300 out)"
check what_a_model_does_not_say_is_said 0 'Without activations: the model' "$syncopate" simulate mlp-small lab-4x1g --baseline wfbp --memory 1GB
columns | grep -q '^wfbp .* unknown unknown '
verdict and_counts_as_unknown $? "$(columns)"
check of_updates_none_is_known 0 "Of async-ps no memory is known" "$syncopate" simulate mlp-small lab-4x1g --baseline async-ps --memory 1GB
check a_size_that_is_none 2 'memory' "$syncopate" simulate model.json four.json --memory lots
check a_sweep_has_no_budget 2 '--memory is about one size' "$syncopate" simulate mlp-small lab-4x1g --sweep workers=2,4 --memory 1GB

# ---- compare ----

check compare_passes_over_what_does_not_fit 0 "31.3 KiB  wfbp" "$syncopate" compare model.json four.json --memory 33000B
grep -q '^single  *over$' out && grep -qE '^wfbp  *\*?[0-9.]+$' out && ! grep -qE '^single.*\*' out
verdict the_fastest_is_one_that_fits $? "$(cat out)"

# ---- a wrapping for the budget ----

cp "$root/examples/clusters/lab-4x1g.json" lab.json
sed 's/"nic_gbit_per_s"/"device_memory_gbyte": 0.008, &/' lab.json >tight.json
sed 's/"nic_gbit_per_s"/"device_memory_gbyte": 0.001, &/' lab.json >tiny.json
# wrap CLUSTER OPTION...: predict fsdp-optimal into out; peak and id are of the one prediction there
wrap() {
    "$syncopate" simulate cnn-small "$1.json" --baseline fsdp-optimal "${@:2}" --json >out 2>err
}
peak() {
    grep -o '"peak_bytes":[0-9]*' out | cut -d: -f2
}
id() {
    grep -o '"id":"[0-9a-f]*"' out | cut -d'"' -f4
}
least=$("$syncopate" advise cnn-small lab.json --memory 8MB --json | grep -o '"smallest_memory_bytes":[0-9]*' | cut -d: -f2)
wrap lab --memory 1GB && [ "$(peak)" -gt 8000000 ] && wrap lab --memory 8MB && [ "$(peak)" -le 8000000 ]
verdict fsdp_optimal_is_wrapped_for_the_budget $? "$(peak) $(cat err)"
fitted=$(id)
"$syncopate" advise cnn-small lab.json --memory 8MB --json >out 2>err && grep -q "\"id\":\"$fitted\"" out
verdict as_advise_wraps_it $? "$fitted $(cat err)"
wrap tight && [ "$(id)" = "$fitted" ]
verdict or_for_the_memory_of_the_devices $? "$(id) $(cat err)"
for cluster in lab tiny; do
    wrap $cluster --memory $((least - 1))
    [ $? = 3 ] && [ "$(peak)" = "$least" ] && grep -q 'fsdp-optimal needs .*, 1 B over the' err && wrap $cluster --memory "$least" &&
        [ "$(peak)" = "$least" ] || break
done
verdict what_it_needs_at_least_is_true_to_the_byte $? "$least $(peak) $(cat err)"
wrap tiny
[ $? = 3 ] && [ "$(peak)" = "$least" ] && grep -q '"fits":false' out &&
    { "$syncopate" compare cnn-small tiny.json --with fsdp-optimal --json >out 2>err; [ $? = 3 ]; } &&
    grep -q "{\"name\":\"fsdp-optimal\",[^}]*\"peak_bytes\":$least,\"fits\":false" out &&
    grep -q 'nothing fits: of these fsdp-optimal needs least, 6.7 MiB on a device$' err
verdict devices_that_are_too_small_are_told_the_least $? "$(peak) $(cat err)"
"$syncopate" compare cnn-small lab.json --memory 1MB >out 2>err
[ $? = 3 ] && grep -q 'nothing fits: of these wfbp needs least, 1[0-9.]* MiB on a device; fsdp-optimal would need 6.7 MiB$' err
verdict compare_says_who_would_need_less $? "$(cat err)"
"$syncopate" compare cnn-small lab.json --memory 8MB --with fsdp-optimal --json >out 2>err && grep -q "\"front\":\[{\"id\":\"$fitted\"" out
verdict and_wraps_it_for_the_budget_too $? "$(cat err) $(grep -o '"front".*' out)"
of_lab=(--model cnn-small --cluster lab.json)
"$syncopate" strategy export fsdp-optimal "${of_lab[@]}" --memory 8MB --to fsdp2 >out 2>err && grep -q "$fitted" out &&
    "$syncopate" strategy show cnn-small lab.json --baseline fsdp-optimal --memory 8MB --json >fitted.json 2>err &&
    [ "$("$syncopate" strategy check cnn-small lab.json fitted.json)" = "$fitted" ]
verdict the_fitted_strategy_is_had_by_its_name $? "$(cat err) $(head -c 300 out)"
check and_refused_where_nothing_fits 3 'fsdp-optimal needs 6.659 MiB on a device' \
    "$syncopate" strategy export fsdp-optimal "${of_lab[@]}" --memory 1MB --to fsdp2
check as_what_needs_more_is 3 'single needs 39.06 KiB on a device (the update), 19.53 KiB over the 20KB (19.53 KiB)' \
    "$syncopate" trial model.json four.json --baseline single --runner local --memory 20000B
check from_a_file_too 3 'two needs 35.25 KiB on a device (backward step 2 of 2, x.grad), 1 B over' \
    "$syncopate" strategy show model.json four.json --strategy two.json --memory 36099B
check of_updates_nobody_knows 3 'async-ps: the memory of a strategy with "consistency" is not known' \
    "$syncopate" strategy show model.json four.json --baseline async-ps --memory 1GB
check a_session_knows_its_memory 2 'drop --model, --cluster and --memory' \
    "$syncopate" strategy export none --server http://127.0.0.1:1 --memory 1GB

# ---- sessions ----

# Refused before a worker starts or a dataset is made.
"$syncopate" tune model.json four.json --runner local --memory 18000B --dataset none.db >out 2>err
[ $? = 3 ] && grep -qE 'nothing fits into 18KB \(17.58 KiB\) on a device: the least that any needs is 18.[0-9]+ KiB' err
verdict a_session_of_nothing_says_the_least $? "$(cat err)"
"$syncopate" tune model.json four.json --runner local --memory 30000B --dataset none.db >out 2>err
[ $? = 3 ] && grep -q 'nothing that is tried fits into 30KB (29.30 KiB) on a device; dear does, with .*: --allow-sharded optimizer' err
verdict or_what_would_fit_and_must_be_allowed $? "$(cat err)"
echo exit 1 >job.sh
check what_the_forms_cannot_say_is_not_the_least 3 \
    'nothing that horovod can say fits into 18KB (17.58 KiB) on a device: the least that any of it needs is ' \
    "$syncopate" tune model.json four.json --memory 18KB --allow-sharded parameters --export-to horovod --command 'sh job.sh' \
    --trials 3 --dataset none.db --log error
check nobody_shards_the_batch 2 '"batch" is nothing that can be sharded: say optimizer, gradients, parameters or none' \
    "$syncopate" tune model.json four.json --runner local --allow-sharded batch --dataset batch.db
[ ! -e batch.db ]
verdict and_no_dataset_is_made $? "$(ls)"
check stale_models_have_no_budget 2 'or give a budget' "$syncopate" tune model.json four.json --runner local --memory 1MB --allow-stale 2

# ---- real runs ----

if under_sanitizer; then
    echo "skip memory_that_is_really_taken: a sanitizer takes several times as much; \`make test\` has it"
    exit 0
fi
if ! command -v mpirun >/dev/null; then
    echo "skip memory_that_is_really_taken: needs mpirun"
    exit 0
fi
cat >large.json <<'END'
{"schema":"syncopate.model/1","name":"large","variables":[{"name":"a","shape":[1000003]},{"name":"b","shape":[1500,1000]},
 {"name":"c","shape":[3]},{"name":"d","shape":[1000,2000]}],
 "layers":[{"name":"1","forward_us":4000,"backward_us":6000,"variables":["a","c"]},
           {"name":"2","forward_us":4000,"backward_us":6000,"variables":["b"]},
           {"name":"3","forward_us":4000,"backward_us":6000,"variables":["d"]}]}
END
# all NAME GROUP ENCODING: every variable in one group
all() {
    local encoding=${3:+,\"encoding\":$3}
    cat >"$1.json" <<END
{"schema":"syncopate.strategy/1","name":"$1","schedule":{"policy":"fifo"},"groups":[{"id":0$2}],
 "variables":[{"name":"a"$encoding,"sync":{"kind":"all_reduce","group":0}},{"name":"b"$encoding,"sync":{"kind":"all_reduce","group":0}},
              {"name":"c"$encoding,"sync":{"kind":"all_reduce","group":0}},{"name":"d"$encoding,"sync":{"kind":"all_reduce","group":0}}]}
END
}
all whole ""
all scattered ',"sharded":"optimizer"'
all shards ',"sharded":"parameters"'
all int8 "" '{"kind":"int8"}'
all powersgd "" '{"kind":"powersgd","rank":2}'
# taken NAME SHARE [CLUSTER [OPTION...]]: a trial's buffers are at most the predicted ones, and of these at least the SHARE; where SHARE is 1 the
# process grew by no more than 5% beyond them, and 2 MiB for the library.
taken() {
    "$syncopate" trial large.json "${3:-cpus}.json" --strategy "$1.json" --runner local "${@:4}" --iterations 3 --warmup 1 --json \
        >out 2>err
    python3 - "$2" <<'END' 2>>err
import json, sys
memory, share = json.load(open("out"))["memory"], float(sys.argv[1])
predicted, buffers, grown = (memory[k] for k in ("predicted_buffers_bytes", "buffers_bytes", "grown_bytes"))
assert share * predicted <= buffers <= predicted, memory
assert share < 1 or buffers <= grown <= 1.05 * predicted + (2 << 20), memory
END
    verdict "buffers_of_$1_are_those_predicted${4:+_by_nccl}" $? "$(tail -n 1 err)"
}
# What fits into this shards the optimizer, of which alone it is told: 16000 bytes of the 36100.
"$syncopate" tune model.json four.json --runner local --memory 30000B --allow-sharded gradients --trials 6 --rounds 1 \
    --trial-time 20ms --dataset sharded.db --out found.json >out 2>err && grep -q '"sharded"' found.json &&
    "$syncopate" simulate model.json four.json --strategy found.json --memory 30000B >>out 2>>err
verdict a_session_finds_what_fits_where_it_may_shard $? "$(head -c 400 out err)"
taken whole 0.999 # the library has as much again
taken scattered 1
taken shards 0.8 # what is packed and what is unpacked need not meet
taken int8 1
taken powersgd 1
if [ -x "$double" ]; then
    taken scattered 0.79 four --worker "$double" # NCCL's own buffers take what comes in
    taken shards 0.39 four --worker "$double"    # messages follow one another, in one buffer
else
    for name in scattered shards; do
        echo "skip buffers_of_${name}_are_those_predicted_by_nccl: needs the NCCL worker, which CUDA and NCCL are for"
    done
fi
check a_trial_says_it 0 'Buffers of messages: 21.5 MiB at once on the device that has most, predicted at most 21.5 MiB' "$syncopate" trial large.json cpus.json --strategy scattered.json --runner local --iterations 1
