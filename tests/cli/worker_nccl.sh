#!/bin/bash
# The NCCL worker from outside. Itself, as far as it comes without a GPU: one clear line, and nothing hangs. On stand-ins for
# CUDA and NCCL (tests/support/nccl/double.h): the same lines as the MPI worker's, compute that takes its time, a bench.
# Prints ok / not ok / skip lines.
# Alone: real trials are timed.
cd "$(dirname "$0")/../.." || exit 1
out=${OUT:-build/release}
worker=$out/bin/syncopate-worker-nccl
double=$out/tests/support/syncopate-worker-nccl
if ! [ -x "$worker" ] || ! [ -x "$double" ] || ! command -v mpirun >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip worker_nccl: needs the NCCL worker, which CUDA and NCCL are for, mpirun and python3"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/model.json" <<'E2'
{"schema":"syncopate.model/1","name":"m","batch_per_device":1,
 "variables":[{"name":"a","shape":[1000],"dtype":"f32"},{"name":"b","shape":[70],"dtype":"u8"},
              {"name":"c","shape":[40000],"dtype":"f16"},{"name":"d","shape":[9],"dtype":"f64"}],
 "layers":[{"name":"1","forward_us":2500,"backward_us":2500,"variables":["a","b"]},
           {"name":"2","forward_us":2500,"backward_us":2500,"variables":["c","d"]}]}
E2
cat >"$dir/cluster.json" <<'E2'
{"schema":"syncopate.cluster/1","name":"c",
 "nodes":[{"name":"n","count":2,"devices":1,"device":"gpu","nic_gbit_per_s":1,"nic_latency_us":50}]}
E2
cat >"$dir/strategy.json" <<'E2'
{"schema":"syncopate.strategy/1","name":"s","schedule":{"policy":"priority","credit_bytes":1000,"cross_iteration":true},
 "groups":[{"id":0,"algorithm":"ring"},{"id":1,"algorithm":"double_tree"}],
 "variables":[{"name":"a","sync":{"kind":"all_reduce","group":0}},
  {"name":"b","sync":{"kind":"parameter_server","servers":["n2"]}},
  {"name":"c","sync":{"kind":"parameter_server","servers":["n2"],"partition_bytes":30000}},
  {"name":"d","sync":{"kind":"all_reduce","group":1}}]}
E2

root=
[ "$(id -u)" = 0 ] && root=--allow-run-as-root
ranks() { # ranks N PROGRAM ARGUMENT...
    local n=$1
    shift
    timeout 60 mpirun $root --oversubscribe --bind-to none --mca btl self,vader --mca mpi_yield_when_idle 1 -np "$n" \
        "$@" 2>"$dir/stderr"
}
files=(--model "$dir/model.json" --cluster "$dir/cluster.json" --strategy "$dir/strategy.json")
verdict() { # verdict NAME STATUS WHY
    if [ "$2" = 0 ]; then
        echo "ok $1"
    else
        echo "not ok $1: $3"
    fi
}

said=$("$worker" probe)
status=$?
[[ $status = 0 && $said == '{"event":"probe",'*'"nccl":'* ]] ||
    [[ $status = 1 && $said == '{"event":"error","status":"environment","reason":"no GPU'* && $said != *$'\n'* ]]
verdict a_probe_says_in_one_line_what_is_there $? "$status: $said"

if [ $status = 0 ]; then
    echo "skip without_a_gpu_a_run_is_refused_on_every_rank: there is a GPU"
else
    said=$(ranks 2 "$worker" run "${files[@]}")
    [[ $? = 1 && $said == '{"event":"error","status":"environment","reason":"no GPU'* && $said != *$'\n'* ]]
    verdict without_a_gpu_a_run_is_refused_on_every_rank $? "$said"
    ! pgrep -f "$dir/model.json" >/dev/null
    verdict no_rank_outlives_a_refusal $? "$(pgrep -af "$dir/model.json")"
fi
said=$("$double" probe)
[[ $? = 0 && $said == '{"event":"probe","gpus":["double of a GPU"'* ]]
verdict a_probe_names_the_gpus $? "$said"

# Two devices and one server. Samples: 16 of a, of b and of each of c's three parts, 9 of d; on two devices.
ranks 3 "$double" run "${files[@]}" --iterations 4 --warmup 1 --verify --trace >"$dir/lines"
status=$?
why=$(python3 - "$dir/lines" "$status" 2>&1 <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
events = [line["event"] for line in lines]
assert sys.argv[2] == "0", "exit status " + sys.argv[2]
assert events[0] == "ready" and events[-1] == "done", events
assert [line["index"] for line in lines if line["event"] == "iteration"] == [0, 1, 2, 3], events
assert lines[0]["ranks"] == 3 and lines[0]["nccl"] and lines[0]["gpu"], lines[0]
done = lines[-1]
assert done["iterations"] == 4 and done["checked"] == 5 * 2 * (16 * 5 + 9), done
assert 9900 < done["compute_us"] < 20000, done
messages = [line for line in lines if line["event"] == "message"]
steps = [line for line in lines if line["event"] == "step"]
assert sorted((t["iteration"], t["message"]) for t in messages) == [(i, m) for i in range(4) for m in range(6)], messages
assert all(t["ready_us"] <= t["start_us"] <= t["end_us"] for t in messages), messages
assert [(t["iteration"], t["step"]) for t in steps] == [(i, s) for i in range(4) for s in range(4)], steps
assert all(a["end_us"] <= b["start_us"] + 1 for a, b in zip(steps, steps[1:])), steps
# The next forward pass begins after the messages that its first layer waits for, a's and b's, have ended.
end = {(t["iteration"], t["message"]): t["end_us"] for t in messages}
first = {t["iteration"]: t["start_us"] for t in steps if t["step"] == 0}
assert all(max(end[i, 0], end[i, 1]) <= first[i + 1] + 1 for i in range(3)), (end, first)
PYTHON
)
verdict a_run_tells_ready_iterations_trace_and_done $? "$why"

said=$(ranks 2 "$double" run "${files[@]}" --iterations 4)
[[ $said == *'"event":"error"'*"needs 3 ranks"* ]]
verdict a_wrong_number_of_ranks_is_said $? "$said"

said=$(ranks 2 "$double" bench --cluster "$dir/cluster.json" --max-bytes 4096 --time-limit 20)
[[ $said == *'"operation":"all_reduce","algorithm":"double_tree","devices":2,"bytes":4096'* &&
    $said == *'"operation":"push"'* && $said == *'"event":"runtime"'*'"coordination_us"'*'"event":"done"'* ]]
verdict a_bench_tells_curves_and_runtime_costs $? "$said"

# The stand-in for NCCL is no friendlier than NCCL: ranks that differ in their order do not get their sums.
[ "$("$out/tests/support/nccl-order" same 3000 1000 | sort | paste -sd ' ')" = "right right" ]
verdict one_order_on_all_ranks_sums $? "see nccl_order.c"
said=$("$out/tests/support/nccl-order" reversed 3000 1000 2>/dev/null | sort | paste -sd ' ')
[ "$said" = "failed hangs" ]
verdict another_order_of_other_sizes_is_found $? "$said"
said=$("$out/tests/support/nccl-order" reversed 1000 1000 | sort | paste -sd ' ')
[ "$said" = "wrong wrong" ]
verdict another_order_of_equal_sizes_sums_wrong $? "$said"

# Compute alone: one device, nobody to talk to. The simulator says the sum of the operators' times. The fastest of ten
# counts, since this machine may have other things to do.
cat >"$dir/one.json" <<'E2'
{"schema":"syncopate.cluster/1","name":"one",
 "nodes":[{"name":"n","devices":1,"device":"gpu","nic_gbit_per_s":1,"nic_latency_us":50}]}
E2
sed 's/2500/25000/g' "$dir/model.json" >"$dir/slow.json"
SYNCOPATE_WORKER=$double "$out/bin/syncopate" trial "$dir/slow.json" "$dir/one.json" --baseline pytorch-ddp \
    --runner local --json >"$dir/trial" 2>"$dir/stderr"
why=$(python3 - "$dir/trial" 2>&1 <<'PYTHON'
import json, sys
trial = json.load(open(sys.argv[1]))
predicted, fastest = trial["predicted_us"], min(trial["iterations_us"])
assert abs(predicted - 100000) < 100, trial
assert 0.99 * predicted <= fastest <= 1.05 * predicted, (predicted, fastest)
PYTHON
)
verdict compute_alone_takes_what_the_simulator_says $? "$why $(cat "$dir/stderr")"
