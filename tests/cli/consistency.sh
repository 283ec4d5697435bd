#!/bin/bash
# Strategies whose workers do not all wait for each other, predicted: what the table and the JSON say, and who refuses
# such a strategy. Needs OUT; prints ok and not ok lines (tests/README.md).
# Computes: it waits for nothing and times nothing.
# Plan: 19
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

check a_table_has_what_updates_do 0 'WORKER'"'"'S ITERATION' "$syncopate" simulate resnet50 v100-16x10g --baseline async-ps,wfbp
check what_a_round_is_is_said 0 'the time in which 16 updates' "$syncopate" simulate resnet50 v100-16x10g --baseline ssp
check weather_counts_for_all 0 'IN WEATHER' "$syncopate" simulate cnn-small lab-4x1g-weather --baseline mlfabric-a,ssp,wfbp --seeds 2
"$syncopate" simulate resnet50 v100-16x10g --baseline async-ps,ssp,mlfabric-a,mlfabric-s --json >all 2>err
python3 - <<'PY' 2>err
import json
rows = {r["strategy"]["name"]: r for r in map(json.loads, open("all"))}
assert len(rows) == 4
for name, row in rows.items():
    u = row["updates"]
    assert abs(sum(u["delays"]) - u["applied"]) < 1e-6
    assert abs(row["iteration_us"] - 16 * u["simulated_us"] / u["applied"]) < 1e-6 * row["iteration_us"]
    assert len(u["delays"]) == u["delay_most"] + 1
assert rows["mlfabric-s"]["updates"]["delay_most"] == 0
assert rows["mlfabric-a"]["updates"]["delay_most"] <= 16 < rows["async-ps"]["updates"]["delay_most"]
assert rows["async-ps"]["updates"]["dropped"] == rows["async-ps"]["updates"]["late"] == 0 < rows["mlfabric-a"]["updates"]["dropped"]
PY
verdict delays_and_drops_add_up $? "$(tail -n 1 err)"
check delays_are_a_picture 0 '' env LC_ALL=C "$syncopate" simulate resnet50 v100-16x10g --baseline async-ps,ssp,mlfabric-a,mlfabric-s
python3 - <<'PY' 2>err
import json
lines = open("out").read().splitlines()
rows = {r["strategy"]["name"]: r["updates"] for r in map(json.loads, open("all"))}
names, shares = [], {n: 0 for n in rows}
for begin in [i for i, l in enumerate(lines) if l.startswith("DELAY ")]:  # as many side by side as fit
    here = lines[begin].split()[1:]
    names += here
    for line in lines[begin + 1:lines.index("", begin)]:
        for k, name in enumerate(here):
            cell = line[10 + 24 * k:34 + 24 * k]
            share, bar = float(cell.split()[-1][:-1]), cell.count("#")
            shares[name] += share
            if line.startswith("dropped"):
                u = rows[name]
                lost = u["dropped"] + u["late"]
                assert abs(share - 100 * lost / (lost + u["applied"])) < 0.06, (line, u)
            assert (bar > 0) == (share > 3.5) or share < 5, line
assert sorted(names) == sorted(rows) and all(abs(s - 100) < 1 for s in shares.values()), (names, shares)
PY
verdict its_bars_are_all_updates $? "$(tail -n 1 err)"
check quiet_strategies_have_none 1 '' grep -q '^DELAY ' <("$syncopate" simulate cnn-small lab-4x1g --baseline wfbp)
"$syncopate" strategy show resnet50 v100-16x10g --baseline mlfabric-a --json >s.json 2>err || cat err
"$syncopate" simulate resnet50 v100-16x10g --baseline mlfabric-a --json >built 2>err
check a_description_is_read_back 0 '"mlfabric-a"' "$syncopate" simulate resnet50 v100-16x10g --strategy s.json --json
verdict and_predicted_the_same "$(cmp -s out built; echo $?)"
check show_says_it_in_words 0 'consistency: asynchronous, delay at most 16; batches of 100 ms' "$syncopate" strategy show resnet50 v100-16x10g --strategy s.json
check diff_too 1 'stale-synchronous, at most 2 iterations ahead' "$syncopate" strategy diff resnet50 v100-16x10g s.json ssp
check no_framework_can_be_given_it 3 'which no framework here can be given' "$syncopate" strategy export ssp --model resnet50 --cluster v100-16x10g --to horovod
check it_has_a_timeline 0 'timeline written' "$syncopate" simulate cnn-small lab-4x1g-weather --baseline mlfabric-a --seeds 1 --timeline t.json
python3 - <<'PY' 2>err
import json
events = json.load(open("t.json"))["traceEvents"]
names = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
assert names == {"n1", "n2", "n3", "n4"}, names
computes = [e for e in events if e["ph"] == "X" and e["cat"] == "compute"]
models = [e for e in events if e["ph"] == "X" and e["cat"] == "model"]
assert len(computes) >= 20 and models and {e["name"] for e in events if e["ph"] == "C"} == {"NIC out, Gbit/s", "NIC in, Gbit/s"}
assert all(e["dur"] >= 0 for e in computes + models)
PY
verdict it_shows_workers_transfers_and_rates $? "$(tail -n 1 err)"
check the_closed_form_is_for_iterations 2 'drop --model autosync' "$syncopate" simulate resnet50 v100-16x10g --baseline ssp --model autosync
sed 's/"n2"/"n1"/' s.json >server.json
check an_aggregator_is_not_the_server 2 '"n1" is the server and cannot be its aggregator' "$syncopate" simulate resnet50 v100-16x10g --strategy server.json
sed 's/"delay_bound": *16/"delay_bound": 0/' s.json >none.json
python3 - <<'PY'
import json
s = json.load(open("s.json"))
s["consistency"]["replica"] = {"node": "n1", "divergence": 10}
json.dump(s, open("replica.json", "w"))
PY
check a_replica_beside_its_server_is_warned_of 0 'both fail together' "$syncopate" simulate resnet50 v100-16x10g --strategy replica.json
check a_delay_bound_is_above_zero 2 'delay_bound: is 0' "$syncopate" simulate resnet50 v100-16x10g --strategy none.json
check baselines_lists_them 0 'mlfabric-s' "$syncopate" baselines
