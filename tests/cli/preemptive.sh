#!/bin/bash
# Policy preemptive from a file to a real trial: a strategy is cut into slices by a program that knows only the file
# format, and is checked, shown, compared, simulated and run. Prints ok, not ok and skip lines.
# Alone: real trials are timed.
# Plan: 10
set -u
cd "$(dirname "$0")/../.." || exit 1
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
model=$PWD/examples/models/mlp-small.json
lab=$PWD/examples/clusters/lab-4x1g.json
if ! [ -x "$syncopate" ] || ! command -v python3 >/dev/null; then
    echo "skip preemptive: needs the program and python3"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

# Groups fc4+fc3, fc2 and fc1, each in slices of at most 256 KiB: as they are ready, but every third slice, where it
# can, of the group that came last, which the next forward pass needs first. Prints how many slices.
cat >slice.py <<'PY'
import json, math, sys
model = json.load(open(sys.argv[1]))
group_of = {"fc4": 0, "fc3": 0, "fc2": 1, "fc1": 2}
left, slices, variables = [0, 0, 0], [], []
for v in model["variables"]:
    group = group_of[v["name"].split(".")[0]]
    left[group] += 4 * math.prod(v["shape"])
    variables.append({"name": v["name"], "sync": {"kind": "all_reduce", "group": group}})
while any(left):
    rest = [g for g in range(3) if left[g]]
    group = rest[-1] if len(slices) % 3 == 2 else rest[0]
    slices.append({"group": group, "bytes": min(left[group], 262144)})
    left[group] -= slices[-1]["bytes"]
strategy = {"schema": "syncopate.strategy/1", "name": "sliced",
            "schedule": {"policy": "preemptive", "credit_bytes": 0, "cross_iteration": True, "slices": slices},
            "groups": [{"id": g, "algorithm": "ring"} for g in range(3)], "variables": variables}
def write(path):
    json.dump(strategy, open(path, "w"))
write("sliced.json")
print(len(slices))
slices[1], slices[2] = slices[2], slices[1]
write("swapped.json")
slices.pop()
write("short.json")
strategy["schedule"].pop("slices")
write("without.json")
PY
if ! n=$(python3 slice.py "$model" 2>err); then
    echo "not ok slices_are_made: $(tail -n 1 err)"
    exit 1
fi

check slices_are_shown 0 "schedule: preemptive in $n slices, credit one message at a time" \
    "$syncopate" strategy show "$model" "$lab" --strategy sliced.json
check every_slice_is_a_message 0 "messages: $n an iteration" \
    "$syncopate" strategy show "$model" "$lab" --strategy sliced.json
"$syncopate" strategy show "$model" "$lab" --strategy sliced.json --json >again.json 2>err
check shown_slices_read_back_the_same 0 '' "$syncopate" strategy diff "$model" "$lab" sliced.json again.json
check another_order_shows 1 'slice 1' "$syncopate" strategy diff "$model" "$lab" sliced.json swapped.json
check slices_show_against_fifo 1 "preemptive in $n slices" "$syncopate" strategy diff "$model" "$lab" sliced.json single
check slices_that_leave_bytes 2 '/schedule/slices: the slices of group' \
    "$syncopate" strategy check "$model" "$lab" short.json
check slices_that_are_missing 2 '/schedule: the member "slices" is missing' \
    "$syncopate" strategy check "$model" "$lab" without.json
check slices_are_simulated 0 'sliced' "$syncopate" simulate "$model" "$lab" --strategy sliced.json

# The worker checks every sum, and fails the trial for a wrong one.
if ! command -v mpirun >/dev/null; then
    echo "skip a_sliced_trial: needs mpirun"
    exit 0
fi
check a_sliced_trial_completes 0 'an iteration' \
    "$syncopate" trial "$model" "$lab" --strategy sliced.json --runner local --iterations 4
if [ "$(id -u)" != 0 ] || ! unshare --net true 2>/dev/null; then
    echo "skip a_sliced_trial_completes_on_the_lab: needs root"
    exit 0
fi
check a_sliced_trial_completes_on_the_lab 0 'an iteration' \
    "$syncopate" trial "$model" "$lab" --strategy sliced.json --runner lab --iterations 4
