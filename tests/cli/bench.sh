#!/bin/bash
# The command bench. With a program in the worker's place that tells times which are known: what is written of how computing
# and messages slow each other, and what is said. With the MPI worker: the description is read back and predicts.
# Alone: real messages are timed.
# Plan: 18
cd "$(dirname "$0")/../.." || exit 1
out=$PWD/${OUT:-build/release}
syncopate=$out/bin/syncopate
if ! command -v mpirun >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip bench: needs mpirun and python3"
    exit 0
fi
source tests/cli/check.bash
model=$PWD/tests/cli/mlp-tiny.json
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

# An earlier bench has left its shares.
cat >cluster.json <<'END'
{"schema":"syncopate.cluster/1","name":"c","interference":{"startup":{"compute":0.1}},
 "nodes":[{"name":"n","count":2,"devices":1,"device":"cpu","nic_gbit_per_s":1,"nic_latency_us":50}]}
END

# worker ROUNDS SMALL LARGE: in the worker's place, device 0 tells so many rounds of ten small and ten large messages beside
# 8000 us of computing. SMALL and LARGE are "messages_us both_us beside_us".
worker() {
    python3 - "$@" >lines <<'PYTHON'
import json, sys
push = {"event": "measurement", "operation": "push", "devices": 2, "bytes": 1024, "time_us": 100}
print(json.dumps({**push, "low_us": 99, "high_us": 101}))
for _ in range(int(sys.argv[1])):
    for part, size, times in ("startup", 1024, sys.argv[2]), ("transfer", 262144, sys.argv[3]):
        line = {"event": "interference", "part": part, "operation": "all_reduce", "algorithm": "ring", "devices": 2}
        line.update(bytes=size, messages=10, time_us=100, compute_us=8000)
        line.update(zip(("messages_us", "both_us", "beside_us"), map(float, times.split())))
        print(json.dumps(line))
print('{"event":"runtime","message_us":5}\n{"event":"done"}')
PYTHON
    printf '#!/bin/bash\n[ "$OMPI_COMM_WORLD_RANK" != 0 ] || cat "%s"\n' "$dir/lines" >worker
    chmod +x worker
}
bench() {
    timeout 100 "$syncopate" bench cluster.json --runner local --worker "$dir/worker" --out measured.json "$@"
}
has() { # MEMBER: interference in measured.json, or None
    python3 -c 'import json, sys
found = json.load(open("measured.json")).get("interference")
assert found == eval(sys.argv[1]), found' "$1"
}

# Small messages: 500 us alone and 1000 beside computing, which loses 100 us. Large ones: 2500 us alone and 3500 beside
# computing, 2000 and 2500 without their startup; computing loses 1100 us, 1000 of them to transfers.
worker 9 "500 8100 1000" "2500 9100 3500"
check shares_are_told 0 "transfer: computing keeps 60% of its speed (60..60%), a message 80% (80..80%)" bench
check shares_are_written 0 "" has '{"startup": {"compute": 0.9, "traffic": 0.5}, "transfer": {"compute": 0.6, "traffic": 0.8}}'
"$syncopate" simulate "$model" measured.json --baseline wfbp --json >slowed 2>err
worker 9 "500 8000 501" "2500 8000 2502"
check nothing_slowed_is_said 0 "computing and messages do not measurably slow each other" bench
check nothing_slowed_is_not_written_and_the_earlier_shares_go 0 "" has None
"$syncopate" simulate "$model" measured.json --baseline wfbp --json >unslowed 2>err
check shares_lengthen_a_prediction 0 "" python3 -c 'import json
slowed, unslowed = (json.load(open(name))["iteration_us"] for name in ("slowed", "unslowed"))
assert slowed > unslowed, (slowed, unslowed)'
worker 9 "550 8000 500" "2500 8000 2450"
check a_share_above_1_is_warned_of 0 "startup: a message came out faster beside the other than alone, with a share of 1.10" bench
check a_share_above_1_is_not_written 0 "" has None
worker 0 "1 1 1" "1 1 1"
check what_was_not_measured_is_said 0 "was not measured in full" bench
check what_was_not_measured_is_not_written 0 "" has None
rm measured.json
sed -i '/"push"/d' lines
check a_bench_that_timed_no_message_fails 1 "not one message was timed in 7 s; give the bench longer" bench --time 7s
check then_nothing_is_written 1 "" test -e measured.json

# Halves of all-reduces are curves. With the second program a reduce-scatter of 1 MB takes 30 ms more.
halves() { # MS: of a reduce-scatter, in the worker's lines
    python3 - "$1" >>lines <<'PYTHON'
import json, sys
for half, ms in ("reduce_scatter", float(sys.argv[1])), ("all_gather", 10):
    for part in 1, 2:
        us = 1000 * ms * part
        line = {"event": "measurement", "operation": half, "devices": 2, "bytes": 1000000 * part, "time_us": us}
        print(json.dumps({**line, "low_us": us - 1, "high_us": us + 1}))
PYTHON
    tac lines >backwards # what was measured comes before the end
    mv backwards lines
}
worker 0 "1 1 1" "1 1 1"
halves 10
check halves_are_written 0 "" bench
check each_half_has_its_curve 0 "" python3 -c 'import json
found = [(m["operation"], m["bytes"], m["time_us"], m["low_us"]) for m in json.load(open("measured.json"))["measurements"]
         if m["operation"] != "push"]
want = [(half, 1000000 * part, 10000 * part, 10000 * part - 1) for half in ("reduce_scatter", "all_gather") for part in (1, 2)]
assert sorted(found) == sorted(want), found'
mv measured.json fast.json
worker 0 "1 1 1" "1 1 1"
halves 40
bench 2>err
check a_slower_half_slows_what_is_sharded_alone 0 "" python3 -c 'import json, subprocess, sys
def predict(cluster, baseline):
    command = [sys.argv[1], "simulate", sys.argv[2], cluster, "--baseline", baseline, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["iteration_us"]
for baseline, slower in ("zero-1", True), ("wfbp", False):
    times = [predict(cluster, baseline) for cluster in ("fast.json", "measured.json")]
    assert (times[1] > times[0] + 1000) == slower, (baseline, times)' "$syncopate" "$model"
worker 0 "1 1 1" "1 1 1"
halves -1
check a_half_of_no_time_is_refused 2 "measurements/2/time_us: is -2000" bench

# Times are this machine's, so what was measured is not known beforehand; but it is told and written alike.
worker=$out/bin/syncopate-worker-mpi
if ! [ -x "$worker" ]; then
    echo "skip bench_of_the_mpi_worker: needs the worker program"
    exit 0
fi
bench_really() { # with sanitizers on a busy machine 10 s may be too short for one message
    for time in 10s 60s; do
        timeout 150 "$syncopate" bench cluster.json --runner local --time $time --max-bytes 1M --out measured.json 2>said
        rc=$?
        grep -q "not one message was timed" said || break
    done
    cat said >&2
    return $rc
}
check the_mpi_worker_is_benched 0 "measured, written to measured.json" bench_really
check its_shares_are_shares 0 "" python3 -c 'import json
parts = json.load(open("measured.json")).get("interference", {})
assert parts != {"startup": {"compute": 0.1}} and set(parts) <= {"startup", "transfer"}, parts
assert all(0 < share < 1 for part in parts.values() for share in part.values()), parts
assert all(set(part) <= {"compute", "traffic"} for part in parts.values()), parts'
check its_description_predicts 0 "wfbp" "$syncopate" simulate "$model" measured.json --baseline wfbp
