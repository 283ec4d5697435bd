#!/bin/bash
# simulate --sweep as a person types it: its outputs agree with each other and with plain predictions, what MG-WFBP's
# section 6.4 says about scale comes out, and bad sweeps get one clear line.
# Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Computes: it waits for nothing and times nothing.
# Plan: 42
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# holds NAME FILE: a Python check on standard input over the rows of a CSV file, `t[strategy][value]` being the times.
holds() {
    local name=$1 file=$2
    if python3 - "$file" 2>why <<PY; then
import collections, csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
t = collections.defaultdict(dict)
for r in rows:
    t[r["strategy"]][float(r["value"])] = float(r["iteration_us"])
$(cat)
PY
        echo "ok $name"
    else
        echo "not ok $name: $(tail -n 1 why)"
    fi
}

sweep() { "$syncopate" simulate "$@" </dev/null; }

# ---- the outputs ----
sweep resnet50-k80 k80-8x10g --sweep workers=4..2048x2 --baseline wfbp,single,mg-wfbp --csv ring.csv --plot ring.svg >out 2>err
holds csv_has_a_line_a_value_and_strategy ring.csv <<'PY'
assert list(rows[0]) == "axis value devices strategy iteration_us samples_per_s speedup efficiency lower_bound_us messages".split()
assert len(rows) == 30 and {r["axis"] for r in rows} == {"workers"} and sorted(t["wfbp"]) == [2.0 ** k for k in range(2, 12)]
PY
holds figures_of_a_line_agree_with_each_other ring.csv <<'PY'
for r in rows:
    us, n, speedup = float(r["iteration_us"]), int(r["devices"]), float(r["speedup"])
    assert abs(speedup / n - float(r["efficiency"])) < 1e-4, r
    assert abs(float(r["samples_per_s"]) / (n * 32e6 / us) - 1) < 1e-4, r
    assert us >= float(r["lower_bound_us"]) * 0.999999 and speedup <= n * 1.000001, r
PY
[ "$(grep -c ' ms\| s' out)" -ge 10 ] && grep -q '^workers .*wfbp .*single .*mg-wfbp .*lower bound$' out &&
    echo "ok table_has_a_column_a_strategy_and_the_bound" || echo "not ok table_has_a_column_a_strategy_and_the_bound: $(head -c 300 out)"
if command -v xmllint >/dev/null; then
    check chart_is_xml 0 "" xmllint --noout ring.svg
else
    echo "skip chart_is_xml: needs xmllint"
fi
sweep resnet50-k80 k80-8x10g --sweep workers=4,16 --baseline wfbp --csv - >bare.csv 2>err
holds csv_on_standard_output_is_all_there_is bare.csv <<'PY'
assert len(rows) == 2 and open(sys.argv[1]).read().count("\n") == 3
PY
sweep resnet50-k80 k80-8x10g --sweep workers=4,16 --baseline wfbp,single --json >lines 2>err
sweep resnet50-k80 k80-8x10g --baseline wfbp,single --json >plain 2>>err
if python3 - 2>why <<'PY'; then
import json
lines, plain = ([json.loads(l) for l in open(f)] for f in ("lines", "plain"))
assert len(lines) == 4 and len(plain) == 2
keys = "schema model cluster strategy iteration_us compute_us exposed_us lower_bound_us gap messages samples_per_s".split()
assert all(list(l) == keys + ["sweep"] for l in lines) and all(list(l) == keys for l in plain)
assert all(list(l["sweep"]) == "axis value devices speedup efficiency".split() for l in lines)
at_16 = {l["strategy"]["name"]: l for l in lines if l["sweep"]["value"] == 16}
for p in plain: # 16 devices are what the cluster has
    assert at_16[p["strategy"]["name"]]["iteration_us"] == p["iteration_us"], p
    assert abs(p["gap"] - (p["iteration_us"] / p["lower_bound_us"] - 1)) < 1e-12
PY
    echo "ok json_lines_are_predictions_and_the_described_size_is_the_plain_one"
else
    echo "not ok json_lines_are_predictions_and_the_described_size_is_the_plain_one: $(tail -n 1 why)"
fi
"$syncopate" strategy show resnet50-k80 k80-8x10g --baseline pytorch-ddp --json >ddp.json 2>err
check a_strategy_file_is_swept_over_bandwidth 0 "lower bound" sweep resnet50-k80 k80-8x10g --strategy ddp.json --sweep bandwidth=1..64x4
check every_baseline_is_swept_by_default 0 "ps-load-balanced" sweep mlp-small lab-4x1g --sweep workers=2..8x2
replicas=(sweep bert-base v100-16x10g --baseline hsdp,wfbp --sweep bandwidth=10)
"${replicas[@]}" --json >lines 2>err && "${replicas[@]}" --csv - >csv 2>err && python3 - 2>why <<'PY'
import csv, json
bounds = [json.loads(l)["lower_bound_us"] for l in open("lines")]
assert len(set(bounds)) == 2, bounds
assert all(abs(float(row["lower_bound_us"]) - min(bounds)) < 0.01 for row in csv.DictReader(open("csv")))
PY
if [ $? = 0 ]; then
    echo "ok the_bound_of_a_point_holds_for_all_that_is_swept"
else
    echo "not ok the_bound_of_a_point_holds_for_all_that_is_swept: $(tail -n 1 why)"
fi
check the_closed_form_is_swept_too 0 "lower bound" sweep mlp-small lab-4x1g --model autosync --sweep batch=8..64x2
"$syncopate" strategy show resnet50-k80 k80-8x10g --baseline wfbp --json >wfbp.json 2>err
check several_files_are_predicted_as_several_baselines_are 0 "" cmp <(sweep resnet50-k80 k80-8x10g --strategy wfbp.json,ddp.json --json) \
    <(sweep resnet50-k80 k80-8x10g --baseline pytorch-ddp,wfbp --json)
check a_file_that_is_missing_among_several_is_named 2 "none.json" sweep resnet50-k80 k80-8x10g --strategy wfbp.json,none.json
check several_files_have_no_one_timeline 2 "about one strategy" sweep resnet50-k80 k80-8x10g --strategy wfbp.json,ddp.json --timeline t.json
check several_baselines_make_a_table 0 "single" sweep resnet50 lab-4x1g --baseline wfbp,single

# ---- MG-WFBP §6.4 on its cluster 1 ----
sweep googlenet-k80 k80-8x10g --sweep workers=4..2048x2 --baseline wfbp,single --csv googlenet.csv >out 2>err
for model in ring googlenet; do
    holds "by_ring_wfbp_and_single_cross_between_16_and_256_workers_$model" $model.csv <<'PY'
ahead = [v for v in sorted(t["wfbp"]) if t["wfbp"][v] < t["single"][v]]
assert 16 in ahead and 256 not in ahead and ahead == [v for v in sorted(t["wfbp"]) if v <= ahead[-1]], ahead
PY
done
holds at_64_workers_merging_leads_both_by_about_as_much_as_published ring.csv <<'PY'
lead = [t[name][64] / t["mg-wfbp"][64] for name in ("wfbp", "single")]
assert all(1.25 < x < 1.85 for x in lead), lead
PY
holds from_256_workers_merging_is_the_single_message ring.csv <<'PY'
assert all(abs(t["mg-wfbp"][v] / t["single"][v] - 1) < 1e-9 for v in t["single"] if v >= 256)
PY
sweep resnet50-k80 k80-8x10g --sweep workers=128..2048x2 --baseline wfbp,single --all-reduce double_tree --csv tree.csv >out 2>err
holds by_double_trees_wfbp_stays_ahead_of_single tree.csv <<'PY'
assert len(t["wfbp"]) == 5 and all(t["wfbp"][v] < t["single"][v] for v in t["wfbp"])
PY
sweep vgg16 lab-4x1g --sweep bandwidth=1..64x2 --baseline wfbp,single,ps --csv bandwidth.csv >out 2>err
holds more_bandwidth_never_slows bandwidth.csv <<'PY'
for name in t:
    times = [t[name][v] for v in sorted(t[name])]
    assert len(times) == 7 and all(b <= a * 1.000001 for a, b in zip(times, times[1:])), name
PY

# ---- in weather ----
sweep mlp-small lab-4x1g-weather --sweep workers=2,4 --baseline wfbp,async-ps --seeds 2 --seed 3 --csv weather.csv >out 2>err
cp out said
check a_sweep_says_that_it_is_in_weather 0 'mean in weather' cat said
check a_sweep_says_what_takes_the_time 0 'time of an iteration or round; mean in weather' cat said
check a_sweep_names_strategies_with_rounds 0 'Strategies with rounds: async-ps' grep -x 'A round: .* async-ps' said
check a_sweep_of_updates_alone_has_rounds 0 'time of a round; ' sweep mlp-small lab-4x1g --sweep workers=2,4 --baseline async-ps,ssp --plot rounds.svg --y time
check and_so_has_its_chart 0 '' grep -q '>round (ms)<' rounds.svg
check a_sweep_without_updates_has_iterations 0 'time of an iteration; ' sweep mlp-small lab-4x1g --sweep workers=2,4 --baseline wfbp --plot iterations.svg --y time
cp out said
check and_says_nothing_of_rounds 1 '' grep -q 'round' said
"$syncopate" simulate mlp-small lab-4x1g-weather --baseline wfbp,async-ps --seeds 2 --seed 3 --json >plain.json 2>err
holds a_sweep_in_weather_expects_what_simulate_expects weather.csv <<'PY'
import json
for p in map(json.loads, open("plain.json")):
    assert abs(t[p["strategy"]["name"]][4] - p["in_weather"]["mean_us"]) < 0.01, (t, p)
assert all(t[name][2] < t[name][4] for name in ("wfbp", "async-ps")), t
PY

# ---- bad sweeps ----
check the_closed_form_knows_no_weather 2 'the closed form knows no weather' sweep mlp-small lab-4x1g-weather --sweep workers=2,4 --model autosync --baseline wfbp
check sweep_without_values 2 'for example workers=4..2048x2' sweep resnet50 lab-4x1g --sweep workers
check sweep_over_nothing_known 2 'AXIS workers, bandwidth or batch' sweep resnet50 lab-4x1g --sweep layers=1..4x2
check sweep_of_parts_of_nodes 3 '6 or 8 devices' sweep resnet50-k80 k80-8x10g --sweep workers=4..16+3 --baseline wfbp
check workers_of_a_strategy_file 2 'names the nodes' sweep resnet50-k80 k80-8x10g --strategy ddp.json --sweep workers=4..8x2
check chart_without_a_sweep 2 'are about a --sweep' sweep resnet50 lab-4x1g --plot x.svg
check chart_of_nothing_known 2 'none of time' sweep resnet50 lab-4x1g --sweep batch=1,2 --y cost
check algorithm_of_no_name 2 'none of auto' sweep resnet50 lab-4x1g --sweep batch=1,2 --all-reduce rings
check unknown_baseline_in_a_list 2 '"wfpb"' sweep resnet50 lab-4x1g --baseline single,wfpb
check baseline_twice_in_a_list 2 'twice' sweep resnet50 lab-4x1g --baseline single,single
check empty_name_in_a_list 2 'no baseline ""' sweep resnet50 lab-4x1g --baseline single,
check timeline_of_a_sweep 2 'one strategy at one size' sweep resnet50 lab-4x1g --baseline wfbp --sweep batch=1,2 --timeline t.json
check two_outputs_for_one_stream 2 'standard output' sweep resnet50 lab-4x1g --sweep batch=1,2 --json --csv -
"$syncopate" simulate resnet50 lab-4x1g --sweep batch=1,2 --plot /nonexistent/x.svg >out 2>err
[ $? = 1 ] && grep -q 'cannot write into' err && [ ! -s out ] && echo "ok bad_chart_file_is_said_before_the_work" ||
    echo "not ok bad_chart_file_is_said_before_the_work: $(head -c 200 err)"
