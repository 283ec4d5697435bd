#!/bin/bash
# syncopate compare: its table and its JSON say the same as simulate does.
# Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Computes: it waits for nothing and times nothing.
# Plan: 5
set -u
cd "$(dirname "$0")/../.."
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ok() {
    local name=$1 why
    shift
    if why=$("$@" 2>&1); then echo "ok $name"; else echo "not ok $name: $(echo "$why" | tail -n 1 | head -c 300)"; fi
}

same_as_simulate() {
    "$syncopate" compare resnet50,mlp-small lab-4x1g,autosync-a --json >"$dir/compare" || return 1
    for model in resnet50 mlp-small; do
        for cluster in lab-4x1g autosync-a; do
            "$syncopate" simulate $model $cluster --all-baselines --json || return 1
        done
    done >"$dir/simulate"
    python3 - "$dir/compare" "$dir/simulate" <<'PYTHON'
import json, sys
compared, simulated = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
assert len(compared) == 4, len(compared)
times = {(c["model"], c["cluster"], b["name"]): b["iteration_us"] for c in compared for b in c["baselines"]}
for p in simulated:
    assert abs(times[p["model"], p["cluster"], p["strategy"]["name"]] / p["iteration_us"] - 1) < 1e-12, p
assert len(simulated) == sum(t is not None for t in times.values())
for c in compared:
    fastest = min(b["iteration_us"] for b in c["baselines"] if b["iteration_us"])
    assert abs(c["gap"] - (fastest / c["lower_bound_us"] - 1)) < 1e-12
    assert c["lower_bound_us"] <= fastest * (1 + 1e-9)
PYTHON
}

marks_the_fastest() {
    "$syncopate" compare vgg16,resnet18 k80-8x10g >"$dir/table" && [ "$(grep -o '\*' "$dir/table" | wc -l)" = 2 ] &&
        grep -q '^lower bound' "$dir/table" && grep -q '^gap of the fastest' "$dir/table"
}

# Of updates it says what simulate says, in weather too, and leaves them out of the fastest.
updates_are_as_simulated() {
    local with=async-ps,ssp,mlfabric-a,mlfabric-s,tree-reduce
    "$syncopate" compare mlp-small lab-4x1g,lab-4x1g-weather --with "$with" --json >"$dir/compare" || return 1
    for cluster in lab-4x1g lab-4x1g-weather; do
        "$syncopate" simulate mlp-small $cluster --baseline "$with" --json || return 1
    done >"$dir/simulate"
    python3 - "$dir/compare" "$dir/simulate" <<'PYTHON'
import json, sys
compared, simulated = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
rows = {(c["cluster"], b["name"]): b for c in compared for b in c["baselines"]}
assert len(simulated) == 10
for p in simulated:
    row, updates = rows[p["cluster"], p["strategy"]["name"]], p.get("updates")
    assert row["iteration_us"] == p["iteration_us"] and row.get("in_weather") == p.get("in_weather"), (row, p)
    assert ("updates" in row) == (updates is not None) == (p["strategy"]["name"] != "tree-reduce"), row
    if updates:
        lost = updates["dropped"] + updates["late"]
        assert row["updates"]["delay_mean"] == updates["delay_mean"], (row, updates)
        assert row["updates"]["delay_variance"] == updates["delay_variance"], (row, updates)
        assert row["updates"]["delay_largest"] == updates["delay_most"], (row, updates)
        assert abs(row["updates"]["dropped_share"] - lost / (updates["applied"] + lost)) < 1e-12, (row, updates)
for c in compared:
    fastest = min((b for b in c["baselines"] if b["iteration_us"] and "updates" not in b),
                  key=lambda b: b.get("in_weather", {"mean_us": b["iteration_us"]})["mean_us"])
    assert abs(c["gap"] - (fastest["iteration_us"] / c["lower_bound_us"] - 1)) < 1e-12, c
PYTHON
}

# An encoded strategy beside the baselines: the bound is of strategies that may encode as it does.
bound_is_of_what_is_given() {
    "$syncopate" strategy show resnet50 lab-4x1g --baseline wfbp --json |
        sed 's/"sync"/"encoding":"f16",&/; s/"wfbp"/"encoded"/' >"$dir/encoded.json" || return 1
    "$syncopate" compare resnet50 lab-4x1g --with "$dir/encoded.json" --json >"$dir/compare" &&
        "$syncopate" compare resnet50 lab-4x1g --json >>"$dir/compare" &&
        "$syncopate" simulate resnet50 lab-4x1g --strategy "$dir/encoded.json" --json >"$dir/simulate" || return 1
    python3 - "$dir/compare" "$dir/simulate" <<'PYTHON'
import json, sys
(beside, without), (simulated,) = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
assert beside["lower_bound_us"] == simulated["lower_bound_us"] < without["lower_bound_us"], (beside, simulated)
PYTHON
}

refuses_unknown() {
    "$syncopate" compare resnet50,no-such-model lab-4x1g >"$dir/out" 2>"$dir/err"
    [ $? = 2 ] && grep -q no-such-model "$dir/err" && [ "$(wc -l <"$dir/err")" = 1 ]
}

ok compare_says_what_simulate_says same_as_simulate
ok compare_marks_the_fastest_of_each_column marks_the_fastest
ok compare_says_of_updates_what_simulate_says updates_are_as_simulated
ok compare_has_the_bound_of_what_is_given bound_is_of_what_is_given
ok compare_names_a_model_that_it_does_not_know refuses_unknown
