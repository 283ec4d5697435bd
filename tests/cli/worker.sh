#!/bin/bash
# The worker program from outside: what it prints, line by line, its exit codes, and that it does not outlive its
# reader. Prints ok / not ok / skip lines.
# Alone: real trials are timed.
# Plan: 10
cd "$(dirname "$0")/../.." || exit 1
worker=${OUT:-build/release}/bin/syncopate-worker-mpi
if ! [ -x "$worker" ] || ! command -v mpirun >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip worker: needs the worker program, mpirun and python3"
    exit 0
fi
source tests/cli/worker.bash
describe_job 500 cpu
describe_strategy ring ring >"$dir/strategy.json"
describe_strategy double_tree double_tree >"$dir/double.json"
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

# Two devices and one server.
run 3 "$worker" strategy.json --iterations 4 --warmup 1 --verify --trace >"$dir/lines"
why=$(lines_are $? <<'PYTHON'
assert lines[0]["ranks"] == 3 and "Open MPI" in lines[0]["mpi"], lines[0]
PYTHON
)
verdict a_run_tells_ready_iterations_trace_and_done $? "$why"

# c and d are ready first, yet a's first slice goes before them, and nothing overtakes: one at a time, in the file's order.
run 2 "$worker" sliced.json --iterations 4 --warmup 1 --verify --trace >"$dir/lines"
why=$(lines_are $? <<'PYTHON'
assert all(a["end_us"] <= b["start_us"] for a, b in zip(messages, messages[1:])), messages
assert all(messages[6 * i]["ready_us"] > messages[6 * i + 1]["ready_us"] for i in range(4)), messages
PYTHON
)
verdict slices_go_one_by_one_in_their_order $? "$why"

out=$(run 3 "$worker" double.json --iterations 4)
[[ $out == *'"event":"infeasible"'*double_tree* ]]
verdict an_algorithm_that_is_not_there_is_infeasible $? "$out"

refuses_a_wrong_number_of_ranks "$worker"

out=$(ranks 1 "$worker" run --cluster "$dir/none.json" --model x --strategy y)
[[ $? = 2 && $out == *'"status":"not-found"'* ]]
verdict a_missing_file_is_said $? "$out"

out=$(ranks 1 "$worker" run --iterations 0)
[[ $? = 2 && $out == *'"status":"usage"'* ]]
verdict a_bad_option_is_said $? "$out"

tells_curves_and_costs "$worker" ring
tells_complete_rounds "$worker"

# A million iterations of at least 2 ms would take half an hour. mpirun 4.1 itself crashes when its reader goes, hence
# the braces: the shell's word about it is of no interest.
{ run 3 "$worker" strategy.json --iterations 1000000 | head -n 3 >"$dir/lines"; ended=${PIPESTATUS[0]}; } 2>/dev/null
[ "$ended" != 124 ]
verdict a_run_ends_when_its_reader_goes $? "still there after a minute"
for _ in {1..50}; do
    pgrep -f "$dir/model.json" >/dev/null || break
    sleep 0.1
done
! pgrep -f "$dir/model.json" >/dev/null
verdict no_rank_outlives_its_run $? "$(pgrep -af "$dir/model.json")"
