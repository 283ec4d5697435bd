#!/bin/bash
# Trials of strategies with a "consistency" from outside: what they say in words and as JSON, and what is refused.
# Alone: real trials are timed.
# Plan: 28
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
if ! command -v mpirun >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip updates: needs mpirun and python3"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tiny=$PWD/tests/cli/mlp-tiny.json
cd "$dir"
trial() { "$syncopate" trial "$tiny" "$@"; }

check asynchronous_updates_run 0 'async-ps: ' trial lab-4x1g --baseline async-ps --runner local
cp out said
check what_was_dropped_is_said 0 'dropped: 0 of 40 updates (0.0%)' cat said
check delays_are_said 0 'delays: mean ' cat said
check delays_are_shown_side_by_side 0 '' grep -qE '^DELAY +predicted +measured$' said
check every_worker_is_said 0 "workers' iterations: " cat said
check stale_synchronous_updates_run 0 'useful updates a second, one in ' trial lab-4x1g --baseline ssp --runner local

"$syncopate" strategy show "$tiny" lab-4x1g --baseline async-ps --json >free.json 2>err
sed 's/"kind": "asynchronous"/"kind": "asynchronous", "delay_bound": 1/' free.json >bounded.json
check a_bound_drops 0 '"delay_largest":1' trial lab-4x1g --strategy bounded.json --runner local --iterations 30 --json
python3 - <<'PY' 2>why
import json
trial = json.load(open("out"))
u = trial["updates"]
assert u["useful"] == 120 == sum(u["delays"]) and len(u["delays"]) == 2 and len(u["workers"]) == 4, u
assert u["late"] > 0 == u["dropped"] and abs(u["dropped_share"] - u["late"] / (u["late"] + u["useful"])) < 1e-9, u
assert len(trial["iterations_us"]) == 30 and trial["predicted_us"] > 0, trial
assert abs(sum(trial["predicted_updates"]["delays"]) - 115) <= 4 and trial["predicted_updates"]["delay_largest"] <= 1, trial
assert abs(u["useful_per_s"] * u["each_us"] - 1e6) < 1 and abs(sum(trial["iterations_us"]) - 120 * u["each_us"]) < 1, u
PY
verdict json_adds_up $? "$(tail -n 1 why)"
check a_trial_is_recorded 0 '' trial lab-4x1g --baseline ssp --runner local --dataset d.db
python3 - "$syncopate" <<'PY' 2>why
import json, subprocess, sys
record, = map(json.loads, subprocess.run([sys.argv[1], "dataset", "export", "--dataset", "d.db"], capture_output=True,
                                         text=True, check=True).stdout.splitlines())
assert record["proposer"] == "ssp" and record["state"] == "complete" and record["predicted_us"] > 0, record
u = record["environment_details"]["updates"]
assert u["useful"] == 40 == sum(u["delays"]) and u["dropped"] == u["late"] == 0 and u["window_us"] > 0, u
PY
verdict its_record_has_the_rounds $? "$(tail -n 1 why)"
sed 's/"kind": "asynchronous"/"kind": "asynchronous", "delay_bound": 4, "scheduler": {"batch_us": 5000}/' free.json >ordered.json
sed 's/"kind": "asynchronous"/"kind": "synchronous", "scheduler": {"batch_us": 5000}/' free.json >together.json
check scheduled_updates_run 0 ', 0 too late at a server' trial lab-4x1g --strategy ordered.json --runner local
check scheduled_iterations_make_versions 0 '"delay_largest":0,' trial lab-4x1g --strategy together.json --runner local --json
sed 's/"batch_us": 5000/"batch_us": 100000, "aggregators": ["n2", "n3", "n4"]/' together.json >summed.json
check sums_run 0 '"late":0,"summed":' trial lab-4x1g --strategy summed.json --runner local --json
check mlfabric_a_runs 0 ', 0 too late at a server' trial lab-4x1g --baseline mlfabric-a --runner local
check mlfabric_s_runs 0 '"delay_largest":0,' trial lab-4x1g --baseline mlfabric-s --runner local --json
check a_trace_is_refused 2 'whose trials are not traced' trial lab-4x1g --baseline ssp --runner local --trace t.json
check nccl_is_refused 2 'which the MPI worker alone runs' trial lab-4x1g --baseline ssp --runner local --worker nccl --log warn

check workers_learn 0 'softmax: loss from 1.609 to ' trial lab-4x1g --baseline async-ps --runner local --train softmax --iterations 100 --target 20%
cp out said
check a_target_is_reached 0 'was reached after ' cat said
check losses_are_told 0 '"reached_update":' trial lab-4x1g --baseline ssp --runner local --train two-layer --momentum 0.5 --target 50% --iterations 100 --json
python3 - <<'PY' 2>why
import json
t = json.load(open("out"))["training"]
losses = [l["loss"] for l in t["losses"]]
assert losses[-1] < t["target"] < losses[0] <= t["first"] * 1.01 and t["least"] == 0, t
assert t["losses"] == sorted(t["losses"], key=lambda l: (l["update"], l["time_us"])) and t["reached_us"] > 0, t
PY
verdict losses_fall $? "$(tail -n 1 why)"
check an_unknown_task_is_refused 2 '"xor" is neither softmax nor two-layer' trial lab-4x1g --baseline ssp --train xor
check a_bad_momentum_is_refused 2 '--momentum must be from 0 to below 1' trial lab-4x1g --baseline ssp --train softmax --momentum 1
check a_rate_without_training_is_refused 2 'are for --train' trial lab-4x1g --baseline ssp --learning-rate 1
check a_bad_rate_is_refused 2 '--learning-rate must be above 0' trial lab-4x1g --baseline ssp --train softmax --learning-rate 0
check rings_learn 0 '"reached_update":' trial lab-4x1g --baseline wfbp --runner local --train softmax --iterations 100 --target 20% --json
check servers_of_sums_learn 0 'was reached after ' trial lab-4x1g --baseline ps-load-balanced --runner local --train softmax --iterations 100 --target 20%
check training_by_nccl_is_refused 2 'softmax is learned by the MPI worker alone' trial lab-4x1g --baseline wfbp --runner local --worker nccl --train softmax --log warn
