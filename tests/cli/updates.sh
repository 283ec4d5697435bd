#!/bin/bash
# Trials of strategies with a "consistency" from outside: what they say in words and as JSON, and what is refused.
# Alone: real trials are timed.
# Plan: 12
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
check every_worker_is_said 0 "workers' iterations: " cat said
check stale_synchronous_updates_run 0 'useful updates a second, one in ' trial lab-4x1g --baseline ssp --runner local

"$syncopate" strategy show "$tiny" lab-4x1g --baseline async-ps --json >free.json 2>err
sed 's/"kind": "asynchronous"/"kind": "asynchronous", "delay_bound": 1/' free.json >bounded.json
check a_bound_drops 0 '"delay_largest":1' trial lab-4x1g --strategy bounded.json --runner local --iterations 30 --json
check json_adds_up 0 '' python3 - <<'PY'
import json
trial = json.load(open("out"))
u = trial["updates"]
assert u["useful"] == 120 == sum(u["delays"]) and len(u["delays"]) == 2 and len(u["workers"]) == 4, u
assert u["dropped"] > 0 and abs(u["dropped_share"] - u["dropped"] / (u["dropped"] + u["useful"])) < 1e-9, u
assert len(trial["iterations_us"]) == 30 and "predicted_us" not in trial, trial
assert abs(u["useful_per_s"] * u["each_us"] - 1e6) < 1 and abs(sum(trial["iterations_us"]) - 120 * u["each_us"]) < 1, u
PY
check a_record_has_no_prediction 0 '' trial lab-4x1g --baseline ssp --runner local --dataset d.db
check its_record_has_the_rounds 0 '' python3 - "$syncopate" <<'PY'
import json, subprocess, sys
record, = map(json.loads, subprocess.run([sys.argv[1], "dataset", "export", "--dataset", "d.db"], capture_output=True,
                                         text=True, check=True).stdout.splitlines())
assert record["proposer"] == "ssp" and record["state"] == "complete" and record.get("predicted_us") is None, record
PY
check a_scheduler_is_refused 2 'has a "scheduler" in its "consistency"' trial lab-4x1g --baseline mlfabric-a --runner local
check a_trace_is_refused 2 'whose trials are not traced' trial lab-4x1g --baseline ssp --runner local --trace t.json
check nccl_is_refused 2 'which the MPI worker alone runs' trial lab-4x1g --baseline ssp --runner local --worker nccl --log warn
