#!/bin/bash
# syncopate weather and simulations in weather: the picture, the trace that can be played again, and what is refused.
# Also sessions in weather in the lab, here and on a service. Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Once: minutes of sessions and of weather drawn; what runs in it is under sanitizers in the unit and property tests.
# Apart: its ranks wait in loops, and beside others of the kind take several times as long.
# Plan: 61
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
source tests/cli/service.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
dir=$(mktemp -d)
finish() {
    [ -z "$service" ] || stop
    rm -rf "$dir"
}
trap finish EXIT
cd "$dir"

check a_picture_has_every_nic_both_ways 0 'n4           in ' "$syncopate" weather lab-4x1g-weather
check a_picture_says_who_is_slow 0 'x: takes 4 times as long' "$syncopate" weather lab-4x1g-weather --time 20s
LC_ALL=C.UTF-8 "$syncopate" weather lab-4x1g-weather --time 20s >blocks 2>err
LC_ALL=C "$syncopate" weather lab-4x1g-weather --time 20s >ascii 2>err
python3 - <<'PY' 2>err
blocks, ascii = ([l for l in open(f, encoding="utf-8").read().splitlines() if " in  " in l or " out " in l] for f in ("blocks", "ascii"))
as_ascii = dict(zip("▁▂▃▄▅▆▇█", ".:-=+*%#"))
assert len(blocks) == 8 and ["".join(as_ascii.get(c, c) for c in l) for l in blocks] == ascii, (blocks, ascii)
assert any("█" in l for l in blocks) and len({len(l) for l in blocks}) == 1, blocks
PY
verdict a_picture_is_of_blocks_or_of_ascii $? "$(tail -n 1 err)"
script -qec "stty cols 140; LC_ALL=C '$syncopate' weather lab-4x1g-weather" /dev/null >wide 2>err </dev/null
check a_picture_is_as_wide_as_the_terminal 0 '' grep -qE '^n1 +out +[.:=+*%#-]{99} ' wide
python3 - "$OLDPWD/examples/clusters/lab-4x1g-weather.json" <<'PY'
import json, sys
cluster = json.load(open(sys.argv[1]))
cluster["variability"]["background"] = {"flows_per_s": 2, "mbytes": 100, "gbit_per_s": 0.6}
json.dump(cluster, open("all.json", "w"))
cluster["nodes"] = [dict(cluster["nodes"][0], count=1, name="a-node-with-a-name-of-forty-characters-" + c) for c in "12"]
json.dump(cluster, open("long-names.json", "w"))
PY
for columns in 50 59 60 61 66 67 68 80 100 140 250; do
    for cluster in all long-names; do
        echo "# $columns $cluster"
        script -qec "stty cols $columns; LC_ALL=C '$syncopate' weather $cluster.json --seed 2" /dev/null </dev/null
    done
done 2>err | tr -d '\r' >widths
python3 - <<'PY' 2>err
import re
runs = open("widths").read().split("# ")[1:]
for run in runs:
    (columns, cluster), *lines = run.split("\n")[0].split(), *run.split("\n")[1:]
    longest = max(lines, key=len)
    assert any(l.startswith("Flows in the background") for l in lines) and any(" x: " in l or "; x: " in l for l in lines), run
    assert min(int(columns), 240) - 10 < len(longest) <= int(columns), (columns, cluster, len(longest), longest)
assert len(runs) == 22 and "a-node-with-a-name-of-forty-characters-1 " in runs[-1], runs[-1]
PY
verdict a_picture_wraps_in_no_terminal_of_50_columns_or_more $? "$(tail -n 1 err)"
check no_picture_is_in_the_json 1 '' grep -q '[#█]' <("$syncopate" weather lab-4x1g-weather --json)
check a_quiet_cluster_has_none 2 'has no "variability": nothing varies there' "$syncopate" weather lab-4x1g
"$syncopate" weather lab-4x1g-weather --seed 2 --time 3m >least 2>err
check the_least_is_a_rate_and_no_mean 0 '' test "$(awk '$2 == "in" || $2 == "out" { print $NF }' least | sort -u | tr '\n' ' ')" = '0.25 0.33 '
check no_weather_has_the_seed_0 2 '--seed must be above 0' "$syncopate" weather lab-4x1g-weather --seed 0
check too_much_weather_is_refused 2 'give a shorter --time' "$syncopate" weather lab-4x1g-weather --time 10000000s
check one_cluster_is_needed 2 'weather CLUSTER' "$syncopate" weather

"$syncopate" weather lab-4x1g-weather --seed 5 --time 100s --json >trace.json 2>err
"$syncopate" weather lab-4x1g-weather --seed 5 --time 100s --json >again.json 2>err
"$syncopate" weather lab-4x1g-weather --seed 6 --time 100s --json >other.json 2>err
check a_seed_draws_the_same_again 0 '' cmp trace.json again.json
check another_seed_draws_another 1 '' cmp -s trace.json other.json

# Rates that change five times a second. Of 20 changes, which are simulated, that is 4 s.
sed 's/"every_us":5000000/"every_us":200000/; s/"monitor_lag_us":200000,//' "$OLDPWD/examples/clusters/lab-4x1g-weather.json" >fast.json

# The trace of a seed, written into a description, is that seed's weather: the same times to the last digit.
python3 - "$OLDPWD/examples/clusters/lab-4x1g-weather.json" <<'PY'
import json, sys
cluster = json.load(open(sys.argv[1]))
del cluster["variability"]["compute"]
json.dump(cluster, open("drawn.json", "w"))
cluster["variability"]["network"] = json.load(open("trace.json"))
json.dump(cluster, open("played.json", "w"))
cluster["variability"] = {}
json.dump(cluster, open("still.json", "w"))
PY
"$syncopate" simulate cnn-small drawn.json --baseline wfbp,ps-load-balanced --seed 5 --seeds 1 --time 99s --json >drawn 2>err
"$syncopate" simulate cnn-small played.json --baseline wfbp,ps-load-balanced --seed 1 --seeds 1 --time 99s --json >played 2>err
python3 - <<'PY' 2>err
import json
a, b = ([json.loads(l)["in_weather"]["mean_us"] for l in open(f)] for f in ("drawn", "played"))
assert a == b and len(a) == 2 and a[0] > 0, (a, b)
PY
verdict a_trace_plays_what_was_drawn $? "$(tail -n 1 err)"
check one_seed_is_told 0 'In weather: 1 seed (the same for all strategies), ' \
    "$syncopate" simulate cnn-small drawn.json --baseline wfbp --seeds 1
! grep -q '95% interval' out && grep -q '^wfbp .*s *-  ' out
verdict and_has_no_interval $? "$(grep -m 1 '^wfbp' out)"
check a_prediction_says_what_to_expect 0 '"p95_us"' "$syncopate" simulate cnn-small lab-4x1g-weather --baseline wfbp --json
check rows_are_sorted_by_the_time_in_weather 0 'IN WEATHER' "$syncopate" simulate cnn-small fast.json --all-baselines --seeds 3
check compare_shows_both_times 0 '(quiet)' "$syncopate" compare mlp-small fast.json
check compare_has_no_weather_where_there_is_none 1 '' grep -q quiet <("$syncopate" compare mlp-small lab-4x1g)
"$syncopate" compare mlp-small fast.json --json >compared 2>err
"$syncopate" simulate mlp-small fast.json --all-baselines --json >simulated 2>err
python3 - <<'PY' 2>err
import json
simulated = {p["strategy"]["name"]: p["in_weather"] for p in map(json.loads, open("simulated"))}
compared = {b["name"]: b["in_weather"] for b in json.load(open("compared"))["baselines"] if "in_weather" in b}
assert simulated == compared and len(compared) > 15, (simulated, compared)
PY
verdict compare_expects_what_simulate_expects $? "$(tail -n 1 err)"
check seeds_need_weather 2 'it has no "variability"' "$syncopate" simulate cnn-small lab-4x1g --baseline wfbp --seeds 3
check only_the_lab_plays_weather 2 'weather is played in the lab alone' "$syncopate" trial cnn-small lab-4x1g-weather --baseline wfbp --runner local
check a_seed_needs_weather 2 'it has no "variability"' "$syncopate" trial cnn-small lab-4x1g --baseline wfbp --seed 2
check a_session_in_weather_is_asked_for 2 '--weather tunes in it' "$syncopate" tune cnn-small lab-4x1g-weather
check a_session_in_weather_needs_some 2 'lab-4x1g has no "variability"' "$syncopate" tune cnn-small lab-4x1g --weather
check this_machine_plays_no_weather 2 'weather is played in the lab alone' "$syncopate" tune cnn-small lab-4x1g-weather --weather --runner local
check a_command_plays_no_weather 2 'weather is played in the lab alone' "$syncopate" tune cnn-small lab-4x1g-weather --weather --command true
check a_session_of_others_knows_no_weather 2 'has "variability"' "$syncopate" session open cnn-small lab-4x1g-weather --dataset s.db
sed 's/"share":0.7/"share":0.6/' "$OLDPWD/examples/clusters/lab-4x1g-weather.json" >bad.json
check shares_that_do_not_add_up_are_refused 2 'the shares add up to 0.9, not to 1' "$syncopate" simulate cnn-small bad.json --baseline wfbp

# Flows of other jobs, and that they slow down who sends.
python3 - "$OLDPWD/examples/clusters/lab-4x1g.json" <<'PY'
import json, sys
cluster = json.load(open(sys.argv[1]))
def write(name, background):
    json.dump(dict(cluster, variability={"background": background}), open(name, "w"))
write("drawn-flows.json", {"flows_per_s": 2, "mbytes": 100, "gbit_per_s": 0.6})
flow = {"at_us": 0, "from": "n1", "to": "n2", "mbytes": 100, "gbit_per_s": 0.8}
write("flows.json", {"until_us": 4000000, "flows": [flow]})
write("too-fast.json", {"flows_per_s": 2, "mbytes": 100, "gbit_per_s": 2})
write("nowhere.json", {"until_us": 4000000, "flows": [dict(flow, to="n9")]})
PY
check flows_are_drawn_beside_the_rates_that_they_leave 0 'Flows in the background' "$syncopate" weather drawn-flows.json --seed 2 --time 60s
check recorded_flows_are_shown 0 '        0 s         1 s  n1           n2                0.8' "$syncopate" weather flows.json --time 8s
check half_of_a_nic_is_left_for_a_quarter_of_the_time 0 ' 0.875    0.5' "$syncopate" weather flows.json --time 8s
check flows_above_a_nic_are_refused 2 'background: 2 Gbit/s, but the NIC of "n1" has 1' "$syncopate" weather too-fast.json
check flows_to_nowhere_are_refused 2 '"to": the cluster has no node "n9"' "$syncopate" simulate mlp-small nowhere.json --baseline wfbp
check too_many_flows_are_refused 2 'give a shorter --time' "$syncopate" weather drawn-flows.json --time 10000000s
"$syncopate" weather drawn-flows.json --seed 5 --time 100s --json >trace.json 2>err
python3 - "$OLDPWD/examples/clusters/lab-4x1g.json" <<'PY'
import json, sys
cluster = json.load(open(sys.argv[1]))
cluster["variability"] = {"network": json.load(open("trace.json"))}
json.dump(cluster, open("played.json", "w"))
PY
for cluster in drawn-flows played; do
    "$syncopate" simulate mlp-small $cluster.json --baseline wfbp,async-ps,mlfabric-a --seed 5 --seeds 1 --time 90s --json >$cluster 2>err
done
python3 - <<'PY' 2>err
import json
a, b = ([json.loads(l) for l in open(f)] for f in ("drawn-flows", "played"))
means = [[row["in_weather"]["mean_us"] for row in rows] for rows in (a, b)]
assert means[0] == means[1] and len(a) == 3, means
wfbp, = (row for row in a if row["strategy"]["name"] == "wfbp")
assert wfbp["in_weather"]["mean_us"] > 1.2 * wfbp["iteration_us"], wfbp
PY
verdict rates_that_flows_leave_can_be_played $? "$(tail -n 1 err)"
check compare_meets_flows_too 0 '(quiet)' "$syncopate" compare mlp-small drawn-flows.json

# A session in weather, on a model that takes milliseconds.
if [ "$(id -u)" != 0 ] || ! unshare --net true 2>/dev/null || ! command -v mpirun >/dev/null; then
    echo "skip a_session_in_weather: needs root and mpirun"
    exit 0
fi
tiny=$OLDPWD/tests/cli/mlp-tiny.json
"$syncopate" tune "$tiny" fast.json --weather --seed 4 --trials 16 --rounds 2 --trial-time 300ms --dataset w.db --out best.json \
    --json >tuned 2>err
verdict a_session_in_weather_answers $? "$(tail -n 1 err)"
python3 - <<'PY' 2>err
import json
t = json.load(open("tuned"))
assert list(t["weather"])[:2] == ["seed", "quiet_best"] and t["weather"]["seed"] == 4, t
best, quiet = t["best"], t["weather"]["quiet_best"]
assert 0 < best["measured_us"] <= best["p95_us"] and 0 < best["in_weather"]["mean_us"] <= best["in_weather"]["p95_us"], t
assert 0 < quiet["quiet_us"] <= quiet["in_weather"]["mean_us"] and quiet["final"] and t["weather"]["loss"]["rounds"] == 2, t
PY
verdict its_answer_says_what_to_expect $? "$(tail -n 1 err)"
"$syncopate" dataset export --dataset w.db --out w.json 2>err
python3 - <<'PY' 2>err
import json
seeds = {t["round"]: t["environment_details"]["weather"] for t in map(json.loads, open("w.json"))}
assert seeds == {0: 4, 1: 5, 2: 6}, seeds
PY
verdict its_trials_say_their_weather $? "$(tail -n 1 err)"
session=$("$syncopate" dataset sessions --dataset w.db | grep -o '[0-9]\{8\}-[0-9]\{6\}-[a-z0-9]*' | head -n 1)
check it_can_be_shown_again 0 'n the quiet network' "$syncopate" tune --resume "$session" --dataset w.db
check a_report_tells_of_it 0 '' "$syncopate" report "$session" --dataset w.db --out w.html
check no_time_is_refused 2 '--time must be above 0' "$syncopate" weather drawn.json --time 0s
check nothing_that_varies_is_refused 2 'has nothing that varies' "$syncopate" weather still.json
check rankers_leave_it_out 2 'rankers know no weather' "$syncopate" train-ranker --dataset w.db
check a_lab_plays_flows 0 'in weather 3' "$syncopate" trial "$tiny" drawn-flows.json --baseline wfbp --seed 3 --iterations 5
check its_answer_runs_in_any_weather 0 'in weather 9' "$syncopate" trial "$tiny" fast.json --strategy best.json --seed 9 --iterations 5

# On a service: an agent runs the trials, and the service is killed and comes back meanwhile.
mkdir served
cd served || exit 2
start 127.0.0.1:0 --open
tune_there() { "$syncopate" --server "$url" tune "$tiny" ../fast.json --seed 4 --trials 10 --rounds 1 --trial-time 300ms "$@"; }
check a_service_s_session_in_weather_is_asked_for 2 '--weather tunes in it' tune_there
check a_service_s_session_in_weather_needs_some 2 'lab-4x1g has no "variability"' \
    "$syncopate" --server "$url" tune "$tiny" lab-4x1g --weather
check other_runners_are_refused_there_too 2 'weather is played in the lab alone' tune_there --weather --runner local
tune_there --weather --runner lab >tuned 2>tune.err &
tuning=$!
until_true 20 eval '[ -n "$(session_of tune.err)" ]'
session=$(session_of tune.err)
check an_agent_that_plays_no_weather_takes_no_trial 2 'weather is played in the lab alone' \
    "$syncopate" --server "$url" agent --session "$session" --runner local
"$syncopate" agent --server "$url" --session "$session" --runner lab >agent.out 2>agent.err &
agent=$!
until_true 60 grep -q '^trial 3:' agent.err
kill -9 "$service"
wait "$service" 2>/dev/null
start "${url#http://}" --open
wait $agent
verdict an_agent_runs_its_trials_in_weather $? "$(tail -n 1 agent.err)"
wait $tuning
verdict a_service_s_session_in_weather_answers $? "$(tail -n 1 tune.err)"
check it_says_mean_and_95th_percentile 0 'In this weather 95 of 100 iterations of it were shorter than' cat tuned
check and_what_the_quiet_best_does_there 0 'n the quiet network' cat tuned
check sessions_show_says_that_it_was_in_weather 0 'in which 95 of 100 iterations were shorter than' \
    "$syncopate" --server "$url" sessions show "$session"
weather_of() { # SESSION: how many trials of which round were in which weather
    "$syncopate" dataset query --server "$url" --session "$1" --json 2>/dev/null | python3 -c 'import collections, json, sys
trials = (json.loads(line) for line in sys.stdin)
print(sorted(collections.Counter((t["round"], t["environment_details"]["weather"]) for t in trials).items()))'
}
[ "$(weather_of "$session")" = "[((0, 4), 6), ((1, 5), 4)]" ]
verdict its_trials_say_their_weather_there $? "$(weather_of "$session")"

# And the service itself does.
stop
cp ../fast.json .
echo '{"launchers":[{"file":"fast.json","runner":"lab"}]}' >launchers.json
start 127.0.0.1:0 --open --launchers launchers.json
check a_service_plays_weather_itself 0 'In this weather 95 of 100 iterations' tune_there --weather --cold
[ "$(weather_of "$(session_of err)")" = "[((0, 4), 6), ((1, 5), 4)]" ]
verdict and_its_trials_say_so $? "$(weather_of "$(session_of err)")"
stop
echo '{"launchers":[{"file":"fast.json","runner":"local"}]}' >launchers.json
start 127.0.0.1:0 --open --launchers launchers.json
check a_launcher_that_plays_none_is_refused 2 'weather is played in the lab alone' tune_there --weather
