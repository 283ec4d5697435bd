#!/bin/bash
# syncopate advise: the answer for each memory, what it leaves out, what is written, and what is refused. Needs OUT.
# Plan: 14
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

check advise_answers_for_each_memory 0 "With 762.9 MiB: FSDP" "$syncopate" advise bert-large v100-16x10g --memory 16GB,800MB
check and_where_all_fits_it_is_the_fastest 0 "With 14.9 GiB: HSDP" "$syncopate" advise bert-large v100-16x10g --memory 16GB
check advise_says_what_memory_leaves_out 0 'the model has no "optimizer"' "$syncopate" advise mlp-small lab-4x1g
check advise_says_the_smallest 0 "The smallest memory at which anything fits" "$syncopate" advise mlp-small lab-4x1g
check what_fits_nowhere_is_said 0 ": nothing fits" "$syncopate" advise mlp-small lab-4x1g --memory 1KiB
check estimated_activations_are_said 0 "Activations are estimated from the model's architecture" \
    "$syncopate" advise llama-135m-v100 v100-16x10g --memory 16GB
check no_size_is_refused 2 "lots" "$syncopate" advise mlp-small lab-4x1g --memory lots
check too_many_sizes_are_refused 2 "--memory: at most 8 sizes" \
    "$syncopate" advise mlp-small lab-4x1g --memory 1GB,2GB,3GB,4GB,5GB,6GB,7GB,8GB,9GB
: >file
check a_file_is_no_folder 1 "file: cannot make this folder" "$syncopate" advise mlp-small lab-4x1g --out file
check strategies_are_written 0 "" "$syncopate" advise mlp-small lab-4x1g --memory 8MB,1GB --out advice --json
cp out advice.json

python3 - <<'PY' >why 2>&1
import json, subprocess, glob
advice = json.load(open("advice.json"))
rows = {c["id"]: c for c in advice["candidates"]}
assert len(rows) == len(advice["candidates"]) == sum("timeline" not in f for f in glob.glob("advice/*.json")), "each has its file"
for budget in advice["answers"]:
    fit = [c for c in rows.values() if c["memory"]["peak_bytes"] <= budget.get("memory_bytes", 1e99)]
    best = min(fit, key=lambda c: c["iteration_us"])["id"] if fit else None
    assert best == budget["id"], (best, budget)
assert advice["smallest_memory_bytes"] == min(c["memory"]["peak_bytes"] for c in rows.values())
same = [c for c in advice["at_other_rates"] if c["gbit_per_s"] == 1]
for budget in advice["answers"]:
    at = [c for c in same if c.get("memory_bytes") == budget.get("memory_bytes")][0]
    assert budget["id"] is None or abs(at["iteration_us"] - rows[budget["id"]]["iteration_us"]) < 1e-6, (at, budget)
PY
verdict answers_are_the_fastest_that_fit $? "$(tail -n 1 why)"

python3 - "$syncopate" <<'PY' >why 2>&1
import json, subprocess, sys
advice = json.load(open("advice.json"))
for c in advice["candidates"]:
    path = "advice/%.12s.json" % c["id"]
    said = subprocess.run([sys.argv[1], "simulate", "mlp-small", "lab-4x1g", "--strategy", path, "--json", "--memory", "1GB"],
                          capture_output=True, text=True, check=True).stdout
    p = json.loads(said)
    assert p["strategy"]["id"] == c["id"] and abs(p["iteration_us"] / c["iteration_us"] - 1) < 1e-9, (p, c)
    assert p["memory"]["peak_bytes"] == c["memory"]["peak_bytes"], (p, c)
    trace = json.load(open("advice/%.12s-timeline.json" % c["id"]))
    assert trace["traceEvents"], path
PY
verdict simulate_says_the_same_of_each_file $? "$(tail -n 1 why)"

python3 - "$syncopate" <<'PY' >why 2>&1
import json, subprocess, sys
sizes, times = [], []
for mb in (14, 10, 8, 7, 6, 5):
    said = subprocess.run([sys.argv[1], "advise", "mlp-small", "lab-4x1g", "--memory", "%dMB" % mb, "--json"],
                          capture_output=True, text=True, check=True).stdout
    advice = json.loads(said)
    rows = {c["id"]: c for c in advice["candidates"]}
    best = rows.get(advice["answers"][0]["id"])
    if best:
        times.append(best["iteration_us"])
    else:
        assert advice["smallest_memory_bytes"] > mb * 1e6
assert len(times) > 2 and times == sorted(times), times
PY
verdict less_memory_is_never_faster $? "$(tail -n 1 why)"
check help_teaches 0 "plain data parallel, servers, ZeRO or FSDP" "$syncopate" advise --help
