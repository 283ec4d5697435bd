#!/bin/bash
# The server of updates is killed in a real trial, and its replica goes on: trial-runner/worker/mpi/update_replica.h.
# `make failover` does it 20 times in the lab.
# Alone: the replica waits for a second before it takes over, and ranks must not be kept from saying that they live.
# Plan: 20
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
if ! command -v mpirun >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip failover: needs mpirun and python3"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tiny=$PWD/tests/cli/mlp-tiny.json tests=$PWD/tests

# NAME, words for sys.argv behind the folder; the rest of a script, with failover.py as f, that fails where NAME does not hold.
holds() {
    { printf 'import sys\nimport failover as f\n' && cat; } >"$dir/$1.py"
    PYTHONPATH=tests/failover python3 "$dir/$1.py" "$dir" "${@:2}" 2>"$dir/$1.why"
    verdict "$1" $? "$(tail -n 1 "$dir/$1.why")"
}

takes_over() { # NAME
    holds "a_replica_takes_over_$1" "$1" <<'PY'
folder, name = sys.argv[1:]
path = f.strategy(name, folder)
why = f.wrong(f.run(path, "local", 60, 20, 3), 60)
assert not why, why
PY
}
takes_over early
takes_over sums
for name in early sums; do
    holds "a_replica_follows_$name" "$name" <<'PY'
folder, name = sys.argv[1:]
trial = f.run(folder + f"/{name}.json", "local", 60)
why = f.wrong(trial, 60, died=False)
assert not why, why
assert trial["updates"]["copies"] >= 240 - 12, trial["updates"]["copies"]
PY
    holds "a_server_that_wakes_up_too_late_changes_nothing_$name" "$name" <<'PY'
folder, name = sys.argv[1:]
why = f.wrong(f.run(folder + f"/{name}.json", "local", 400, 20, 3, stop_ms=1500), 400)
assert not why, why
PY
done
holds a_replica_that_stops_does_not_take_over <<'PY'
trial = f.run(sys.argv[1] + "/early.json", "local", 400, 20, 3, stop_ms=1500, victim=3)
assert not trial.get("takeover") and not f.wrong(trial, 400, died=False), (trial.get("takeover"), trial["updates"])
PY
trial() { "$syncopate" trial "$tiny" lab-4x1g --runner local --iterations 2 --strategy "$@"; }
cd "$dir"
export KILL_WORKER=${syncopate}-worker-mpi SERVER_RANK=1 KILL_RANK=1 KILL_ROUNDS=2 KILL_MS=2 KILL_FLAG=$dir/flag
check a_takeover_is_told_in_words 0 'found equal to its own: ' trial early.json --iterations 30 --worker "$tests/failover/worker.py"
check copies_are_told_in_words 0 'copies for the replica: ' trial early.json
sed 's/"n3", "n4"/"n2", "n4"/' sums.json >aggregates.json
check a_replica_that_aggregates_is_refused 2 'with the replica "n2": it is an aggregator' trial aggregates.json
sed 's/"batch_us": 10000/"batch_us": 10000, "distributors": 2/' early.json >distributed.json
check distributors_are_refused 2 'with the replica "n2": distributors pass models on' trial distributed.json
sed 's/"node": "n2"/"node": "n1"/' early.json >same.json
check a_replica_of_itself_is_refused 2 "with the replica \"n1\": it is the server's node" trial same.json
sed 's/"momentum": 0.5/"momentum": 0.5, "aggregators": ["n3"]/' early.json >added.json
check sums_of_copies_are_refused 2 'with the replica "n2": it has aggregators' trial added.json

# A sanitizer has seen this code above: ranks that wait for seconds would take most of its time.
if under_sanitizer; then
    echo "skip more_replicas_and_silent_workers: under a sanitizer they take minutes; \`make test\` has them"
    exit 0
fi
check a_worker_that_dies_ends_the_trial 1 'rank 5 has died: it was silent for 10 s' \
    env KILL_RANK=-1 FAULT=kill "$syncopate" trial "$tiny" lab-4x1g --runner local --iterations 2 --strategy early.json \
    --worker "$tests/failover/worker.py"
cd "$OLDPWD"
for name in due stale synchronous; do takes_over $name; done
# Before or after it has taken leave, or too late to matter: the trial must not hang. Beside each other, since each waits for
# 10 s of silence.
for ms in 0 1 2; do
    holds a_worker_that_dies_at_the_end_ends_the_trial_$ms $ms <<'PY' &
why = f.run(sys.argv[1] + "/early.json", "local", 60, 60, int(sys.argv[2]), victim=5, fails=True)
assert why == "exit 0" or "has died: it was silent for 10 s" in why or "died at the end of the run" in why, why
PY
done
wait
