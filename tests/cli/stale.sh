#!/bin/bash
# Sessions that may try stale models (--allow-stale) from outside: what is refused, what a session says, and that its
# records go through a dataset, a report, a merge and a service. Needs OUT; prints ok, not ok and skip lines
# (tests/README.md).
# Once: tests/unit/tuner/test_session_stale.c is what a sanitizer sees of it.
# Alone: real trials are timed.
# Plan: 37
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
source tests/cli/service.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
tiny=$PWD/tests/cli/mlp-tiny.json
if ! command -v mpirun >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip stale: needs mpirun and python3"
    exit 0
fi
dir=$(mktemp -d)
finish() {
    [ -z "$service" ] || stop
    rm -rf "$dir"
}
trap finish EXIT
cd "$dir" || exit 2
tune() { "$syncopate" tune "$tiny" lab-4x1g --dataset "$@"; }

check none_is_no_allowance 2 '--allow-stale must be 1 to 1000' tune no.db --allow-stale 0
check a_word_is_no_allowance 2 '"some" is not a whole number' tune no.db --allow-stale some
check too_stale_is_refused 2 '--allow-stale must be 1 to 1000' tune no.db --allow-stale 1001
check nccl_sends_no_updates 2 'the NCCL worker sends no whole updates' tune no.db --allow-stale 2 --runner local --worker nccl
check a_command_sends_no_updates 2 'a --command sends no whole updates' tune no.db --allow-stale 2 --command true
check two_files_for_two_strategies 2 'are one file, "same.json"' tune no.db --allow-stale 2 --out same.json --out-stale same.json
check nothing_stale_to_write 2 '--out-stale is for a session with --allow-stale' tune no.db --out-stale stale.json
echo '{"schema":"syncopate.cluster/1","name":"lonely","nodes":[{"name":"n","nic_gbit_per_s":1}]}' >lonely.json
check one_device_waits_for_nobody 2 '"lonely" has one device' \
    "$syncopate" tune "$tiny" lonely.json --allow-stale 2 --runner local --dataset no.db
check refusals_make_no_dataset 1 '' test -e no.db

consistencies() { # DATASET: how many strategies have one
    "$syncopate" dataset export --dataset "$1" 2>/dev/null | grep -c '"useful_per_s"'
}
check a_session_as_ever 0 '' tune plain.db --runner local --trials 8 --trial-time 50ms
check tries_nothing_stale 1 '' test "$(consistencies plain.db)" != 0

tune d.db --allow-stale 3 --runner local --trials 24 --rounds 2 --trial-time 50ms --out best.json --out-stale stale.json --json \
    >tuned 2>err
verdict a_session_with_stale_models_answers $? "$(tail -n 1 err)"
python3 - <<'PY' 2>err
import json
t = json.load(open("tuned"))
s, best = t["stale"], json.load(open("best.json"))
stale = json.load(open("stale.json"))
assert "consistency" not in best, best
c = stale["consistency"]
assert c["kind"] != "synchronous" and c.get("delay_bound", c.get("staleness")) <= 3, c
assert s["allowed"] == 3 and s["best"]["proposer"] == "stale" and s["best"]["final"] and s["speedup"]["rounds"] == 2, s
assert s["delay_mean"] <= s["delay_largest"] and 0 <= s["dropped_share"] < 1 and s["delay_variance"] >= 0, s
assert c["kind"] != "asynchronous" or s["delay_largest"] <= 3, s
training = s["training"]
assert training["least"] < training["target"] < training["first"] and training["synchronous"]["trials"] == 2, training
assert training["stale"]["last"] < training["first"] > training["synchronous"]["last"], training
assert training["updates"] == 248 and training["synchronous"]["updates"] % 4 == 0, training # 62 iterations of 4 workers
iterations = training["synchronous"]["updates"] / 4 # of which the mean counts, and not the median
assert 0.5 < training["synchronous"]["time_us"] / (iterations * t["best"]["measured_us"]) < 3, t
PY
verdict its_answer_says_delay_and_loss $? "$(tail -n 1 err)"
"$syncopate" dataset export --dataset d.db --out d.jsonl 2>err
python3 - <<'PY' 2>err
import json
trials = [json.loads(l) for l in open("d.jsonl")]
by = {}
for t in trials:
    by.setdefault(t["proposer"], []).append(t)
assert len(by["stale"]) == 3 + 2 and len(by["in-step"]) == 1 + 2 and len(trials) == 24, {k: len(v) for k, v in by.items()}
assert all(("updates" in t["environment_details"]) == (t["proposer"] in ("stale", "in-step")) for t in trials)
first = min(t["trial"] for t in by["stale"] + by["in-step"])
assert all(t["trial"] > first for t in trials if t["round"]), "stale trials come before the final"
PY
verdict its_records_say_what_they_told $? "$(tail -n 1 err)"
session=$("$syncopate" dataset sessions --dataset d.db | grep -o '[0-9]\{8\}-[0-9]\{6\}-[a-z0-9]*' | head -n 1)
check it_can_be_shown_again 0 'What it computes is not what synchronous training computes' \
    "$syncopate" tune --resume "$session" --dataset d.db
check sessions_show_tells_it 0 'Where models may be stale by 3, ' "$syncopate" sessions show "$session" --dataset d.db
cp out shown
check a_report_tells_it 0 'Where models may be stale by 3, ' "$syncopate" report "$session" --dataset d.db --out -
python3 - <<'PY' 2>err
import re
page = open("out").read()
assert 'id="chart-stale-text"' in page and 'id="chart-delays-1-text"' in page, re.findall('id="(chart[^"]*)"', page)
assert re.search("were dropped in [1-9][0-9]* trials", page), "no measured delays"
words = re.sub("<[^>]*>", "", page)
said = open("shown").read()
lines = [l.strip() for l in said[said.index("Where models may be stale"):said.index("see that your model")].split("\n")[:-1]]
assert len(lines) >= 6 and all(l in words for l in lines), [l for l in lines if l not in words]
PY
verdict with_lanes_and_delays_and_the_same_words $? "$(tail -n 1 err)"
check the_dataset_is_sound 0 '' "$syncopate" dataset check --dataset d.db
check it_goes_through_a_merge 0 '' "$syncopate" dataset merge d.db --dataset merged.db
check and_is_the_same_there 0 'Delays of its updates: mean ' "$syncopate" sessions show "$session" --dataset merged.db
check its_strategy_runs_alone 0 'useful updates a second' \
    "$syncopate" trial "$tiny" lab-4x1g --strategy stale.json --runner local
check later_sessions_learn_from_the_others 0 '' tune d.db --runner local --trials 6 --trial-time 50ms

compare() { "$syncopate" compare "$tiny" lab-4x1g "$@"; }
check compare_measures_them 0 '"measured":[{"name":"ssp",' compare --with ssp,wfbp --measure 2 --runner local --json --log warn
python3 - <<'PY' 2>err
import json
ssp, wfbp = json.load(open("out"))["measured"]
assert ssp["complete"] == wfbp["complete"] == 2 and ssp["mean_us"] > 0 < wfbp["mean_us"], (ssp, wfbp)
assert wfbp["ratio_low"] <= wfbp["ratio"] <= wfbp["ratio_high"] and "ratio" not in ssp, (ssp, wfbp)
assert abs(wfbp["ratio"] * ssp["mean_us"] / wfbp["mean_us"] - 1) < 0.2, (ssp, wfbp)
assert ssp["delay_largest"] >= ssp["delay_mean"] > 0 == ssp["dropped_share"] and "delay_mean" not in wfbp, (ssp, wfbp)
PY
verdict and_tells_of_updates_what_trials_told $? "$(tail -n 1 err)"
check compare_needs_a_worker_that_can 2 'the NCCL worker sends no whole updates' \
    compare --with ssp --measure 1 --runner local --worker nccl
check compare_plays_weather_in_the_lab_alone 2 'weather is played in the lab alone' \
    "$syncopate" compare "$tiny" lab-4x1g-weather --with ssp --measure 1 --runner local
check compare_measures_what_is_named 2 '--measure runs the strategies of --with' compare --measure 1
check compare_measures_on_one_cluster 2 'one model on one cluster' \
    "$syncopate" compare mlp-small lab-4x1g,lab-8x500m --with ssp --measure 1
check compare_names_what_it_does_not_know 2 'no-such' compare --with ssp,no-such

check a_small_budget_is_warned_of 0 'of 10 trials 9 are kept for stale models and the final' \
    tune small.db --trials 10 --rounds 1 --allow-stale 4 --runner local --trial-time 50ms
grep -q "8 trials; the search's share of the trials is used up" out
verdict and_does_not_say_that_all_is_used_up $? "$(head -n 1 out)"

# On a service: an agent runs the trials.
mkdir served
cd served || exit 2
start 127.0.0.1:0 --open
"$syncopate" --server "$url" tune "$tiny" lab-4x1g --runner local --allow-stale 2 --trials 16 --rounds 1 --trial-time 50ms \
    --out-stale stale.json >tuned 2>tune.err &
tuning=$!
until_true 20 eval '[ -n "$(session_of tune.err)" ]'
session=$(session_of tune.err)
"$syncopate" agent --server "$url" --session "$session" --runner local >agent.out 2>agent.err
verdict an_agent_runs_its_trials $? "$(tail -n 1 agent.err)"
wait $tuning
verdict a_service_s_session_answers $? "$(tail -n 1 tune.err)"
check it_says_delay_and_loss_too 0 'Where models may be stale by 2, ' cat tuned
! grep -q '\([0-9.]* [mµ]*s\) \.\. \1 ' tuned
verdict one_round_of_updates_has_no_interval $? "$(grep -m 1 ' rounds' tuned)"
check its_strategy_comes_along 0 '"consistency"' cat stale.json
