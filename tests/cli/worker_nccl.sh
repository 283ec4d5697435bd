#!/bin/bash
# The NCCL worker from outside. Itself, as far as it comes without a GPU: one clear line, and nothing hangs. On stand-ins for
# CUDA and NCCL (tests/support/nccl/double.h): the same lines as the MPI worker's, compute that takes its time, a bench.
# Prints ok / not ok / skip lines.
# Once: trial-runner/test_trial_nccl.c is what a sanitizer sees of this worker, and worker.sh of what workers tell.
# Alone: real trials are timed.
# Plan: 21
cd "$(dirname "$0")/../.." || exit 1
out=${OUT:-build/release}
worker=$out/bin/syncopate-worker-nccl
double=$out/tests/support/syncopate-worker-nccl
if ! [ -x "$worker" ] || ! [ -x "$double" ] || ! command -v mpirun >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip worker_nccl: needs the NCCL worker, which CUDA and NCCL are for, mpirun and python3"
    exit 0
fi
source tests/cli/worker.bash
describe_job 2500 gpu
describe_strategy ring double_tree >"$dir/strategy.json"

said=$("$worker" probe)
status=$?
[[ $status = 0 && $said == '{"event":"probe",'*'"nccl":'* ]] ||
    [[ $status = 1 && $said == '{"event":"error","status":"environment","reason":"no GPU'* && $said != *$'\n'* ]]
verdict a_probe_says_in_one_line_what_is_there $? "$status: $said"

if [ $status = 0 ]; then
    echo "skip without_a_gpu_a_run_is_refused_on_every_rank: there is a GPU"
else
    said=$(run 2 "$worker" strategy.json)
    [[ $? = 1 && $said == '{"event":"error","status":"environment","reason":"no GPU'* && $said != *$'\n'* ]]
    verdict without_a_gpu_a_run_is_refused_on_every_rank $? "$said"
    ! pgrep -f "$dir/model.json" >/dev/null
    verdict no_rank_outlives_a_refusal $? "$(pgrep -af "$dir/model.json")"
fi
said=$("$double" probe)
[[ $? = 0 && $said == '{"event":"probe","gpus":["double of a GPU"'* ]]
verdict a_probe_names_the_gpus $? "$said"

# Two devices and one server.
run 3 "$double" strategy.json --iterations 4 --warmup 1 --verify --trace >"$dir/lines"
why=$(lines_are $? <<'PYTHON'
assert lines[0]["ranks"] == 3 and lines[0]["nccl"] and lines[0]["gpu"], lines[0]
assert 9900 < done["compute_us"] < 20000, done
assert [(t["iteration"], t["step"]) for t in steps] == [(i, s) for i in range(4) for s in range(4)], steps
assert all(a["end_us"] <= b["start_us"] + 1 for a, b in zip(steps, steps[1:])), steps
# The next forward pass begins after the messages that its first layer waits for, a's and b's, have ended.
end = {(t["iteration"], t["message"]): t["end_us"] for t in messages}
first = {t["iteration"]: t["start_us"] for t in steps if t["step"] == 0}
assert all(max(end[i, 0], end[i, 1]) <= first[i + 1] + 1 for i in range(3)), (end, first)
PYTHON
)
verdict a_run_tells_ready_iterations_trace_and_done $? "$why"

# Each encoder over 24 iterations, in which what it keeps comes later, and what it leaves of 16 samples on each of two
# devices.
cat >"$dir/matrix.json" <<'END'
{"schema":"syncopate.model/1","name":"matrix","batch_per_device":1,
 "variables":[{"name":"a","shape":[300,70],"dtype":"f32"},{"name":"b","shape":[50],"dtype":"f32"}],
 "layers":[{"name":"1","forward_us":100,"backward_us":100,"variables":["a","b"]}]}
END
for encoding in int8:block_size:64 topk:part:0.0005 powersgd:rank:3; do
    IFS=: read -r kind figure number <<<"$encoding"
    encoding='{"kind":"'$kind'","'$figure'":'$number'}'
    cat >"$dir/encoded.json" <<END
{"schema":"syncopate.strategy/1","name":"s","schedule":{"policy":"fifo"},"groups":[{"id":0}],"variables":[
 {"name":"a","encoding":$encoding,"sync":{"kind":"all_reduce","group":0}},
 {"name":"b","encoding":$encoding,"sync":{"kind":"all_reduce","group":0}}]}
END
    said=$(ranks 2 "$double" run --model "$dir/matrix.json" --cluster "$dir/cluster.json" --strategy "$dir/encoded.json" \
        --iterations 20 --warmup 4 --verify)
    [[ $? = 0 && $said == *'"event":"done","iterations":20,"checked":768,'* ]]
    verdict "what_${kind}_leaves_is_what_comes_back" $? "$said $(cat "$dir/stderr")"
done

# Ranks that share the GPU of 132 multiprocessors have a quarter of their part of it for each of NCCL's kernels, and what the
# user's variables say of communicators does not let calls come back too soon.
said=$(NCCL_COMM_BLOCKING=0 SYNCOPATE_SHARE_GPU=1 run 3 "$double" strategy.json --iterations 1 --warmup 1 --verify)
[[ $? = 0 && $said == *'"shared_gpu":true'*'"max_ctas":11'* && $said == *'"event":"done"'* ]]
verdict ranks_that_share_a_gpu_fit_on_it_together $? "$said $(cat "$dir/stderr")"

# Hosts may be one machine's, as a lab's are; the GPU is the same, and so is each rank's part of it.
cat >"$dir/agent" <<'END'
#!/bin/bash
export TMPDIR=${0%/*}/$1
mkdir -p "$TMPDIR"
exec unshare --uts bash -c "hostname $1; ${*:2}"
END
chmod +x "$dir/agent"
if unshare --uts true 2>"$dir/stderr"; then
    said=$(SYNCOPATE_SHARE_GPU=1 timeout 60 mpirun --allow-run-as-root --host n1:1,n2:2 -np 3 -x SYNCOPATE_SHARE_GPU \
        --bind-to none --mca plm_rsh_agent "$dir/agent" --mca plm_rsh_no_tree_spawn 1 --mca btl self,tcp \
        --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo --mca mpi_yield_when_idle 1 "$double" run \
        --model "$dir/model.json" --cluster "$dir/cluster.json" --strategy "$dir/strategy.json" --iterations 1 \
        2>"$dir/stderr")
    [[ $? = 0 && $said == *'"host":"n1"'*'"max_ctas":11'* && $said == *'"event":"done"'* ]]
    verdict hosts_of_one_machine_share_its_gpu $? "$said $(cat "$dir/stderr")"
else
    echo "skip hosts_of_one_machine_share_its_gpu: needs root, for host names of their own"
fi

mkdir "$dir/mps"
touch "$dir/mps/control"
said=$(CUDA_MPS_PIPE_DIRECTORY=$dir/mps SYNCOPATE_DOUBLE_MULTIPROCESSORS=11 SYNCOPATE_SHARE_GPU=1 run 3 "$double" strategy.json)
[[ $? = 1 && $said == *'"status":"environment"'*'3 ranks on a GPU of 11 multiprocessors under MPS'*'at most 2 are sure'* ]]
verdict more_ranks_than_fit_under_mps_are_refused $? "$said"

refuses_a_wrong_number_of_ranks "$double"
tells_curves_and_costs "$double" double_tree
tells_complete_rounds "$double"

# What comes behind a layer of no time that had to wait takes its time all the same: c is on its way for longer than the
# first layer's forward pass.
cat >"$dir/waits.json" <<'END'
{"schema":"syncopate.model/1","name":"waits","batch_per_device":1,
 "variables":[{"name":"a","shape":[1000],"dtype":"f32"},{"name":"c","shape":[8000000],"dtype":"f32"}],
 "layers":[{"name":"1","forward_us":25000,"backward_us":25000,"variables":["a"]},
           {"name":"2","forward_us":0,"backward_us":0,"variables":["c"]}]}
END
cat >"$dir/waits-strategy.json" <<'END'
{"schema":"syncopate.strategy/1","name":"s","schedule":{"policy":"fifo","cross_iteration":true},
 "groups":[{"id":0,"algorithm":"ring"},{"id":1,"algorithm":"ring"}],
 "variables":[{"name":"a","sync":{"kind":"all_reduce","group":0}},{"name":"c","sync":{"kind":"all_reduce","group":1}}]}
END
ranks 2 "$double" run --model "$dir/waits.json" --cluster "$dir/cluster.json" --strategy "$dir/waits-strategy.json" --iterations 3 \
    --warmup 1 >"$dir/lines"
why=$(python3 - "$dir/lines" 2>&1 <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert min(line["time_us"] for line in lines if line["event"] == "iteration") > 55000, lines  # it did wait
assert lines[-1]["event"] == "done" and lines[-1]["compute_us"] > 49500, lines[-1]
PYTHON
)
verdict a_wait_before_a_layer_of_no_time_shortens_none_behind_it $? "$why"

# The stand-in for NCCL is no friendlier than NCCL: ranks that differ in their order do not get their sums.
[ "$("$out/tests/support/nccl-order" same 3000 1000 | sort | paste -sd ' ')" = "right right" ]
verdict one_order_on_all_ranks_sums $? "see nccl_order.c"
said=$("$out/tests/support/nccl-order" reversed 3000 1000 2>/dev/null | sort | paste -sd ' ')
[ "$said" = "failed hangs" ]
verdict another_order_of_other_sizes_is_found $? "$said"
said=$("$out/tests/support/nccl-order" reversed 1000 1000 | sort | paste -sd ' ')
[ "$said" = "wrong wrong" ]
verdict another_order_of_equal_sizes_sums_wrong $? "$said"
[ "$("$out/tests/support/nccl-order" parts 3000 1000 | sort | paste -sd ' ')" = "right right" ] &&
    [ "$("$out/tests/support/nccl-order" reversed-parts 3000 1000 2>/dev/null | sort -u)" = "failed" ] &&
    [ "$("$out/tests/support/nccl-order" reversed-parts 1000 1000 | sort | paste -sd ' ')" = "wrong wrong" ]
verdict parts_that_are_swapped_in_another_order_are_found $? "see nccl_order.c"

# Compute alone: one device, nobody to talk to. The simulator says the sum of the operators' times. The fastest of ten
# counts, since this machine may have other things to do.
cat >"$dir/one.json" <<'E2'
{"schema":"syncopate.cluster/1","name":"one",
 "nodes":[{"name":"n","devices":1,"device":"gpu","nic_gbit_per_s":1,"nic_latency_us":50}]}
E2
# What is copied must have come to the GPU before: nothing, which is what is there else, is copied at 3,000 GB/s.
ranks 1 "$double" bench --cluster "$dir/one.json" --max-bytes 4096 --time-limit 20 >"$dir/lines"
why=$(python3 - "$dir/lines" 2>&1 <<'PYTHON'
import json, sys
runtime = [json.loads(line) for line in open(sys.argv[1]) if '"runtime"' in line][0]
assert 0 < runtime["copy_gbyte_per_s"] < 500, runtime
PYTHON
)
verdict a_bench_copies_what_it_was_given $? "$why $(cat "$dir/stderr")"

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
