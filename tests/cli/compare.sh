#!/bin/bash
# syncopate compare: its table and its JSON say the same as simulate does.
# Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Once: it computes for minutes, by code that the property tests run; memory.sh and hostile.sh compare under sanitizers.
# Computes: it waits for nothing and times nothing.
# Plan: 9
set -u
cd "$(dirname "$0")/../.."
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Ten times as short as it comes, since 20 changes of it are simulated.
weather=$dir/weather.json
sed 's/"every_us":5000000/"every_us":500000/' examples/clusters/lab-4x1g-weather.json >"$weather"
ok() {
    local name=$1 why
    shift
    if why=$("$@" 2>&1); then echo "ok $name"; else echo "not ok $name: $(echo "$why" | tail -n 1 | head -c 300)"; fi
}

same_as_simulate() {
    "$syncopate" compare resnet18,mlp-small lab-4x1g,autosync-a --json >"$dir/compare" || return 1
    for model in resnet18 mlp-small; do
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

# The bound of all strategies holds for all-reduces too, and so does theirs.
no_bound_of_a_part_is_below_that_of_all() {
    "$syncopate" compare cnn-small,resnet18 lab-4x1g,h100-64x8 --json >"$dir/compare" && python3 - "$dir/compare" <<'PYTHON'
import json, sys
compared = [json.loads(line) for line in open(sys.argv[1])]
assert len(compared) == 4, len(compared)
for c in compared:
    assert c["all_reduce_at_best_us"] >= c["lower_bound_us"], (c["model"], c["cluster"], c["all_reduce_at_best_us"])
PYTHON
}

marks_the_fastest() {
    "$syncopate" compare vgg16,resnet18 lab-4x1g >"$dir/table" && [ "$(grep -o '\*' "$dir/table" | wc -l)" = 2 ] &&
        grep -q '^lower bound' "$dir/table" && grep -q '^gap of the fastest' "$dir/table"
}

# Of updates it says what simulate says, in weather too, and leaves them out of the fastest.
updates_are_as_simulated() {
    local with=async-ps,ssp,mlfabric-a,mlfabric-s,tree-reduce
    "$syncopate" compare mlp-small "lab-4x1g,$weather" --with "$with" --json >"$dir/compare" || return 1
    for cluster in lab-4x1g "$weather"; do
        "$syncopate" simulate mlp-small "$cluster" --baseline "$with" --json || return 1
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

# Sharded strategies too, in weather too, and under a budget that some exceed. Of the picture every strategy is a line.
front_is_what_nothing_smaller_beats() {
    local with=zero-1,zero-3,fsdp-per-block,fsdp-optimal,async-ps
    cd "$dir" || return 1
    "$syncopate" compare gpt2-small lab-4x1g --with "$with" --json --plot front.svg >compare 2>err &&
        "$syncopate" compare gpt2-small lab-4x1g --with "$with" --json --memory 930MiB >>compare &&
        "$syncopate" compare mlp-small "$weather" --with zero-1 --json >>compare &&
        "$syncopate" simulate gpt2-small lab-4x1g --baseline zero-1,zero-3,wfbp,ps --memory 1TB --json >simulate || return 1
    python3 - <<'PYTHON'
import json, xml.dom.minidom
compared, simulated = ([json.loads(line) for line in open(name)] for name in ("compare", "simulate"))
for c in compared:
    rows = [(b["peak_bytes"], b.get("in_weather", {"mean_us": b["iteration_us"]})["mean_us"], b["id"]) for b in c["baselines"]
            if b["iteration_us"] and b.get("fits", True) and "updates" not in b]
    best = {(size, us) for size, us, _ in rows if not any(s <= size and t <= us and (s, t) != (size, us) for s, t, _ in rows)}
    front = [(p["peak_bytes"], p["iteration_us"]) for p in c["front"]]
    assert front == sorted(best) and all((*f, p["id"]) in rows for f, p in zip(front, c["front"])), (c["model"], front, best)
assert len(compared[0]["front"]) > 3 and 0 < len(compared[1]["front"]) < len(compared[0]["front"])
assert compared[1]["front"] == [p for p in compared[0]["front"] if p["peak_bytes"] <= compared[1]["memory_bytes"]]
peaks = {b["id"]: b["peak_bytes"] for b in compared[0]["baselines"] if "peak_bytes" in b}
for p in simulated:
    assert peaks[p["strategy"]["id"]] == p["memory"]["peak_bytes"], p
words = {t.firstChild.data for t in xml.dom.minidom.parse("front.svg").getElementsByTagName("text")
         if t.firstChild.nodeType == 3}
for name in {b["name"] for b in compared[0]["baselines"] if b["iteration_us"] and "updates" not in b} | {"fastest so far"}:
    assert name in words, (name, words)
assert "async-ps" not in words
PYTHON
}

# The front is the table of one model on one cluster, as --json says it.
one_has_a_table_of_its_front() {
    cd "$dir" || return 1
    "$syncopate" compare gpt2-small lab-4x1g --with fsdp-per-block,zero-3 >table &&
        "$syncopate" compare gpt2-small lab-4x1g --with fsdp-per-block,zero-3 --json >json || return 1
    sed -n '/^Time against memory; nothing that needs less is as fast:/,$p' table | grep -oE '[0-9a-f]{12}$' >shown
    python3 -c 'import json; print(*(p["id"][:12] for p in json.load(open("json"))["front"]), sep="\n")' >front
    [ "$(wc -l <front)" -gt 2 ] && cmp shown front && grep -q 'Without activations' table
}

several_have_none() {
    cd "$dir" || return 1
    "$syncopate" compare mlp-small,resnet18 lab-4x1g >table && ! grep -q '^Time against memory' table || return 1
    "$syncopate" compare mlp-small lab-4x1g,autosync-a --plot no.svg >out 2>err
    [ $? = 2 ] && grep -q -e '--plot is for one model on one cluster' err && [ "$(wc -l <err)" = 1 ] && [ ! -e no.svg ] &&
        "$syncopate" compare --help | grep -q 'front of time against memory'
}

refuses_unknown() {
    "$syncopate" compare resnet50,no-such-model lab-4x1g >"$dir/out" 2>"$dir/err"
    [ $? = 2 ] && grep -q no-such-model "$dir/err" && [ "$(wc -l <"$dir/err")" = 1 ]
}

ok compare_says_what_simulate_says same_as_simulate
ok compare_marks_the_fastest_of_each_column marks_the_fastest
ok no_bound_of_a_part_is_below_that_of_all no_bound_of_a_part_is_below_that_of_all
ok compare_says_of_updates_what_simulate_says updates_are_as_simulated
ok compare_has_the_bound_of_what_is_given bound_is_of_what_is_given
ok compare_has_the_front_of_time_against_memory front_is_what_nothing_smaller_beats
ok compare_shows_the_front_of_one_model_on_one_cluster one_has_a_table_of_its_front
ok compare_of_several_leaves_the_front_to_json several_have_none
ok compare_names_a_model_that_it_does_not_know refuses_unknown
