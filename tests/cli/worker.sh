#!/bin/bash
# The worker program from outside: what it prints, line by line, its exit codes, and that it does not outlive its
# reader. Prints ok / not ok / skip lines.
# Alone: real trials are timed.
cd "$(dirname "$0")/../.." || exit 1
worker=${OUT:-build/release}/bin/syncopate-worker-mpi
if ! [ -x "$worker" ] || ! command -v mpirun >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip worker: needs the worker program, mpirun and python3"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/model.json" <<'E2'
{"schema":"syncopate.model/1","name":"m","batch_per_device":1,
 "variables":[{"name":"a","shape":[1000],"dtype":"f32"},{"name":"b","shape":[70],"dtype":"u8"},
              {"name":"c","shape":[40000],"dtype":"f16"},{"name":"d","shape":[9],"dtype":"f64"}],
 "layers":[{"name":"1","forward_us":500,"backward_us":500,"variables":["a","b"]},
           {"name":"2","forward_us":500,"backward_us":500,"variables":["c","d"]}]}
E2
cat >"$dir/cluster.json" <<'E2'
{"schema":"syncopate.cluster/1","name":"c",
 "nodes":[{"name":"n","count":2,"devices":1,"device":"cpu","nic_gbit_per_s":1,"nic_latency_us":50}]}
E2
strategy() { # strategy ALGORITHM
    cat <<E2
{"schema":"syncopate.strategy/1","name":"s","schedule":{"policy":"priority","credit_bytes":1000,"cross_iteration":true},
 "groups":[{"id":0,"algorithm":"$1"},{"id":1,"algorithm":"$1"}],
 "variables":[{"name":"a","sync":{"kind":"all_reduce","group":0}},
  {"name":"b","sync":{"kind":"parameter_server","servers":["n2"]}},
  {"name":"c","sync":{"kind":"parameter_server","servers":["n2"],"partition_bytes":30000}},
  {"name":"d","sync":{"kind":"all_reduce","group":1}}]}
E2
}
strategy ring >"$dir/strategy.json"
strategy double_tree >"$dir/double.json"
cat >"$dir/sliced.json" <<'E2'
{"schema":"syncopate.strategy/1","name":"s",
 "schedule":{"policy":"preemptive","credit_bytes":0,"cross_iteration":true,"slices":[
  {"group":0,"bytes":2000},{"group":2,"bytes":30000},{"group":0,"bytes":2000},{"group":3,"bytes":72},
  {"group":2,"bytes":50000},{"group":1,"bytes":70}]},
 "groups":[{"id":0,"algorithm":"ring"},{"id":1,"algorithm":"ring"},{"id":2,"algorithm":"ring"},
  {"id":3,"algorithm":"ring"}],
 "variables":[{"name":"a","sync":{"kind":"all_reduce","group":0}},{"name":"b","sync":{"kind":"all_reduce","group":1}},
  {"name":"c","sync":{"kind":"all_reduce","group":2}},{"name":"d","sync":{"kind":"all_reduce","group":3}}]}
E2

root=
[ "$(id -u)" = 0 ] && root=--allow-run-as-root
ranks() { # ranks N ARGUMENT...
    local n=$1
    shift
    timeout 60 mpirun $root --oversubscribe --bind-to none --mca btl self,vader --mca mpi_yield_when_idle 1 -np "$n" \
        "$worker" "$@" 2>"$dir/stderr"
}
run() { # run N STRATEGY ARGUMENT...
    local n=$1 file=$2
    shift 2
    ranks "$n" run --model "$dir/model.json" --cluster "$dir/cluster.json" --strategy "$dir/$file" "$@"
}
verdict() { # verdict NAME STATUS WHY
    if [ "$2" = 0 ]; then
        echo "ok $1"
    else
        echo "not ok $1: $3"
    fi
}

# Two devices and one server. Samples: 16 of a, of b and of each of c's three parts, 9 of d; on two devices.
run 3 strategy.json --iterations 4 --warmup 1 --verify --trace >"$dir/lines"
status=$?
why=$(python3 - "$dir/lines" "$status" 2>&1 <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
events = [line["event"] for line in lines]
assert sys.argv[2] == "0", "exit status " + sys.argv[2]
assert events[0] == "ready" and events[-1] == "done", events
assert [line["index"] for line in lines if line["event"] == "iteration"] == [0, 1, 2, 3], events
assert lines[0]["ranks"] == 3 and "Open MPI" in lines[0]["mpi"], lines[0]
assert lines[-1]["iterations"] == 4 and lines[-1]["checked"] == 5 * 2 * (16 * 5 + 9), lines[-1]
traced = [line for line in lines if line["event"] == "message"]
assert sorted((t["iteration"], t["message"]) for t in traced) == [(i, m) for i in range(4) for m in range(6)], traced
assert all(t["ready_us"] <= t["start_us"] <= t["end_us"] for t in traced), traced
PYTHON
)
verdict a_run_tells_ready_iterations_trace_and_done $? "$why"

# c and d are ready first, yet a's first slice goes before them, and nothing overtakes: one at a time, in the file's order.
run 2 sliced.json --iterations 4 --warmup 1 --verify --trace >"$dir/lines"
status=$?
why=$(python3 - "$dir/lines" "$status" 2>&1 <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert sys.argv[2] == "0" and lines[-1]["event"] == "done", lines[-1]
assert lines[-1]["checked"] == 5 * 2 * (16 * 5 + 9), lines[-1]
traced = [line for line in lines if line["event"] == "message"]
traced.sort(key=lambda t: (t["iteration"], t["message"]))
assert [(t["iteration"], t["message"]) for t in traced] == [(i, m) for i in range(4) for m in range(6)], traced
assert all(a["end_us"] <= b["start_us"] for a, b in zip(traced, traced[1:])), traced
assert all(traced[6 * i]["ready_us"] > traced[6 * i + 1]["ready_us"] for i in range(4)), traced
PYTHON
)
verdict slices_go_one_by_one_in_their_order $? "$why"

out=$(run 3 double.json --iterations 4)
[[ $out == *'"event":"infeasible"'*double_tree* ]]
verdict an_algorithm_that_is_not_there_is_infeasible $? "$out"

out=$(run 2 strategy.json --iterations 4)
[[ $out == *'"event":"error"'*"needs 3 ranks"* ]]
verdict a_wrong_number_of_ranks_is_said $? "$out"

out=$(ranks 1 run --cluster "$dir/none.json" --model x --strategy y)
[[ $? = 2 && $out == *'"status":"not-found"'* ]]
verdict a_missing_file_is_said $? "$out"

out=$(ranks 1 run --iterations 0)
[[ $? = 2 && $out == *'"status":"usage"'* ]]
verdict a_bad_option_is_said $? "$out"

out=$(ranks 2 bench --cluster "$dir/cluster.json" --max-bytes 4096 --time-limit 20)
[[ $out == *'"operation":"all_reduce","algorithm":"ring","devices":2,"bytes":4096'* && $out == *'"operation":"push"'* &&
    $out == *'"event":"runtime"'*'"coordination_us"'*'"event":"done"'* ]]
verdict a_bench_tells_curves_and_runtime_costs $? "$out"

# A million iterations of at least 2 ms would take half an hour. mpirun 4.1 itself crashes when its reader goes, hence
# the braces: the shell's word about it is of no interest.
{ run 3 strategy.json --iterations 1000000 | head -n 3 >"$dir/lines"; ended=${PIPESTATUS[0]}; } 2>/dev/null
[ "$ended" != 124 ]
verdict a_run_ends_when_its_reader_goes $? "still there after a minute"
for _ in {1..50}; do
    pgrep -f "$dir/model.json" >/dev/null || break
    sleep 0.1
done
! pgrep -f "$dir/model.json" >/dev/null
verdict no_rank_outlives_its_run $? "$(pgrep -af "$dir/model.json")"
