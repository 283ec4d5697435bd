#!/bin/bash
# A session here whose trials scripts ask for: what is printed, leases, attempts, several at once, SIGKILL. Needs OUT;
# prints ok, not ok and skip lines (tests/README.md).
# Plan: 78
set -u
cd "$(dirname "$0")/../.."
source tests/cli/job.bash
open() { "$syncopate" session open mlp-small lab-4x1g --trial-time 30ms --rounds 0 "$@" 2>err; }
session() { "$syncopate" session "$@"; }
state() { # of trial $2 of session $1
    session show "$1" --json | python3 -c 'import json, sys
print(*[(t["state"], t["attempt"]) for t in json.load(sys.stdin)["trials"] if t["number"] == int(sys.argv[1])])' "$2"
}

# ---- a script that asks until it is over ----
id=$(open --trials 6)
verdict a_session_is_opened $? "$(cat err)"
while trial=$(session suggest "$id" 2>over); do
    (
        eval "$trial"
        $train file log && session complete "$id" "$SYNCOPATE_TRIAL_NUMBER" 2>>err
    ) || break
done
[ "$(wc -l <log)" = 6 ] && grep -q 'is over: the trials are used up' over
verdict a_shell_loop_runs_it_to_its_end $? "$(cat log over err)"
check it_is_over_for_all 3 'is over' session suggest "$id"
session suggest "$id" --json >last 2>err
grep -q '"next":"over","trials":\[\]' last
verdict programs_are_told_as_well $? "$(cat last err)"
check its_answer_is_shown 0 'is done: 6 trials were given, 6 are complete' session show "$id"
check the_best_is_written 0 '' session show "$id" --out best.json
check and_reads_back 0 '' "$syncopate" strategy check mlp-small lab-4x1g best.json
[ -e "$id/trial-1/strategy.json" ] && [ -e "$id/trial-1/horovod.env" ]
verdict each_trial_has_its_folder $? "$(ls "$id")"
[ "$(echo syncopate.db*)" = syncopate.db ]
verdict who_only_reads_leaves_no_files_beside_the_dataset $? "$(echo syncopate.db*)"

# ---- who may tell what ----
id=$(open --trials 8)
session suggest "$id" --client a --json >first
python3 -c 'import json
t = json.load(open("first"))["trials"][0]
assert t["number"] == 1 and t["attempt"] == 1 and t["strategy"]["schema"] == "syncopate.strategy/1" and t["warmup"] == 2, t' 2>why
verdict a_suggestion_as_json $? "$(tail -n 1 why)"
until=$(python3 -c 'import json; print(json.load(open("first"))["trials"][0]["lease_until"][:-3])')
check another_client_cannot_end_it 1 "trial 1 is with client \"a\", attempt 1, until $until" session complete "$id" 1 \
    --time 12ms,12ms,12ms --client b
check nor_another_attempt 1 'trial 1 is in attempt 1' session complete "$id" 1 --attempt 2 --time 12ms,12ms,12ms --client a
check a_time_needs_its_unit 2 'say the unit' session complete "$id" 1 --time 12 --client a
check nor_does_an_empty_time 2 'no number with its unit: ""' session complete "$id" 1 --time 12ms,12ms,12ms, --client a
check fewer_than_three_make_no_trial 2 'a trial needs at least 3 iterations, and this one has 2' session complete "$id" 1 --time 12ms,12ms --client a
check not_both_ways 2 '--time and --times: give one' session complete "$id" 1 --time 9ms,9ms,9ms --times x --client a
check no_file_of_times 2 'nowhere: No such file' session complete "$id" 1 --times nowhere --client a
check a_folder_is_no_file_of_times 1 '.: Is a directory' session complete "$id" 1 --times . --client a
check a_trial_that_is_not_there 2 'has no trial 9: 1 were suggested' session complete "$id" 9 --time 12ms,12ms,12ms --client a
for verb in 'complete nope 1 --time 9ms' 'fail nope 1 --reason x' 'heartbeat nope 1' 'suggest nope' 'show nope' 'stop nope'; do
    check "no_such_session_to_${verb%% *}" 2 '"syncopate dataset sessions --dataset syncopate.db" lists them' session $verb
done
check sessions_of_a_service_are_told_from_those_here 2 '"dataset sessions" lists them' "$syncopate" sessions list
check a_session_that_is_not_there 2 'no session' session suggest nothing-like-it
check a_dataset_that_is_not_there 2 'nothing.db' session suggest "$id" --dataset nothing.db
[ ! -e nothing.db ]
verdict none_is_made $? ""
check it_is_ended_once 0 '' session complete "$id" 1 --time '12ms,11ms, 13ms' --client a
check and_not_twice 1 'trial 1 has ended: it is complete' session complete "$id" 1 --time 12ms,12ms,12ms --client a
check nor_failed_after_that 1 'trial 1 has ended' session fail "$id" 1 --reason late --client a
session suggest "$id" --client a --json >second
check a_failure_has_a_reason 2 '--reason says why' session fail "$id" 2 --client a
check a_trial_fails 0 '' session fail "$id" 2 --reason 'rank 3 ran out of memory' --client a
session show "$id" --json | grep -q '"reason":"rank 3 ran out of memory"'
verdict the_reason_is_kept $? ""
session suggest "$id" --client a --json >third
printf '{"iteration":%s,"time_us":%s}\n' 0 900000 1 9000 2 9500 3 9250 >times
check times_from_a_file_without_warm_up 0 '' session complete "$id" 3 --times times --warmup 1 --client a
session show "$id" --json | grep -q '"measured_us":9250'
verdict their_median_counts $? "$(session show "$id" --json)"
session suggest "$id" --client a --json >fourth
printf '9ms\nnine\n' >times
check a_bad_line_is_named 2 'times:2' session complete "$id" 4 --times times --client a
echo '{"iteration":0,"time_us":-3}' >times
check a_bad_time_is_named 2 'times:1' session complete "$id" 4 --times times --client a
check too_few_for_the_warm_up 2 'for warming up' session complete "$id" 4 --times <(echo 9ms) --warmup 1 --client a
check a_line_that_says_more_needs_a_pattern 2 'give --pattern' session complete "$id" 4 --times <(echo epoch 1) --client a
check a_pattern_that_no_line_has 2 'no line has the pattern "step ([0-9]+)"' session complete "$id" 4 --times <(echo epoch 1) \
    --pattern 'step ([0-9]+)' --client a
check a_unit_needs_its_pattern 2 '--unit is of the number' session complete "$id" 4 --times times --unit s --client a

# ---- rates, in the words of --command: mlp-small has batches of 640, lab-4x1g four devices ----
told() { # NAME OPTIONS...: a new trial that told 1000000 us thrice or whose reason follows
    local name=$1 told
    shift
    session suggest "$rates" --json >out
    told=$(python3 -c 'import json; print(json.load(open("out"))["trials"][0]["number"])')
    session complete "$rates" "$told" "$@" 2>err &&
        session show "$rates" --json | grep -q "\"number\":$told,[^{]*\"measured_us\":1000000[,}]"
    verdict "$name" $? "$(cat err) $(session show "$rates" --json | tail -c 300)"
}
rates=$(open --trials 8)
told rates_on_the_command_line --time '2560samples/s, 2560 samples/s,1s'
printf '{"iteration":%s,"samples_per_s":%s}\n' 0 1 0 2560 1 2560 2 2560 3 2560 >times
told rates_in_json_lines --times times --warmup 1
printf 'rank 0 begins\nstep %s: speed 2560.0 images/s\n' 1 2 3 >output.log
told rates_that_a_pattern_finds --times output.log --pattern 'speed ([0-9.]+)' --unit samples/s
printf 'step took 1.0 s\n%.0s' 1 2 3 | told times_that_a_pattern_finds_with_their_unit --times - --pattern 'took ([0-9.]+)'
printf '2560 samples/s\n%.0s' 1 2 3 >times
told a_rate_a_line --times times

# ---- leases ----
check a_heartbeat 0 'Z' session heartbeat "$id" 4 --lease 4s --client a
session heartbeat "$id" 4 --lease 60s --client a >out 2>err
sleep 4.5
check keeps_it 0 'Z' session heartbeat "$id" 4 --lease 1s --client a
sleep 1.2
check one_that_comes_too_late 1 'its lease ran out, and it waits to be suggested as attempt 2' session heartbeat "$id" 4 --client a
check so_does_its_result 1 'its lease ran out' session complete "$id" 4 --time 9ms,9ms,9ms --client a
session suggest "$id" --client b --json >again
grep -q '"number":4,"attempt":2' again
verdict what_was_lost_is_offered_again $? "$(cut -c1-300 again)"
check the_first_attempt_is_stale 1 'trial 4 is in attempt 2' session complete "$id" 4 --time 9ms,9ms,9ms --client b
check the_second_counts 0 '' session complete "$id" 4 --attempt 2 --time 9ms,9ms,9ms --client b
for attempt in 1 2 3; do
    session suggest "$id" --lease 1s --json >out
    grep -q "\"number\":5,\"attempt\":$attempt" out || echo "# $(cut -c1-200 out)"
    sleep 1.1
done
session suggest "$id" --json >out
grep -q '"number":6,"attempt":1' out && state "$id" 5 | grep -q "'cancelled', 3"
verdict three_times_and_no_more $? "$(state "$id" 5) $(cut -c1-200 out)"
session complete "$id" 6 --time 9ms,9ms,9ms
for n in 7 8 9; do
    session suggest "$id" --json >out
    grep -q "\"number\":$n" out && session complete "$id" "$n" --time 9ms,9ms,9ms
done
check what_was_lost_costs_no_budget 3 'is over' session suggest "$id"
session show "$id" | grep -q '9 trials were given, 7 are complete'
verdict so_the_session_has_eight_and_a_lost_one $? "$(session show "$id" | head -n 1)"

# ---- what a shell is given is of its trial alone ----
given=$(open --trials 3)
session suggest "$given" --client me >variables
(
    eval "$(cat variables)"
    # A setting of that name is one of no command, so no command takes the variable for an option's.
    for variable in "${!SYNCOPATE_@}"; do
        option=$(echo "${variable#SYNCOPATE_}" | tr 'A-Z_' 'a-z-')
        echo "{\"$option\": \"1\"}" >syncopate.json
        "$syncopate" baselines >out 2>err
        grep -q "$option" err || echo "$option"
    done >options
    rm -f syncopate.json
    [ -n "$SYNCOPATE_TRIAL_NUMBER" ] && [ ! -s options ]
    verdict what_suggest_exports_is_no_option_of_any_command $? "$(cat options)"
    check other_commands_in_that_shell_do_as_they_are_told 0 'priority' "$syncopate" strategy show mlp-small lab-4x1g \
        --baseline bytescheduler-all-reduce
    check its_times_are_of_no_other_trial 2 'of trial 1, not of this one' session complete "$given" 2
    check nor_of_one_of_another_session 2 'of trial 1, not of this one' session complete "$rates" 1
    session heartbeat "$given" 1 --lease 1s >out 2>err
    sleep 1.1
)
session suggest "$given" --client me >variables
(
    eval "$(cat variables)"
    $train file
    echo '{"pattern": "took ([0-9]+)", "unit": "s"}' >syncopate.json # of others: a job's file of times has JSON lines
    check attempt_and_client_and_times_are_known 0 '' session complete "$given" "$SYNCOPATE_TRIAL_NUMBER"
    [ "$(state "$given" 1)" = "('complete', 2)" ]
    verdict and_are_those_of_this_attempt $? "$(state "$given" 1)"
    rm syncopate.json
)

# ---- a process that dies with its trial ----
id=$(open --trials 3)
bash -c "trial=\$('$syncopate' session suggest $id --lease 6s) && eval \"\$trial\" && echo \$SYNCOPATE_TRIAL_NUMBER >taken && sleep 100" &
dying=$!
for _ in $(seq 100); do [ -s taken ] && break; sleep 0.05; done
kill -9 $dying
wait $dying 2>/dev/null
session suggest "$id" --json >out
grep -q '"number":2' out
verdict while_its_lease_lasts_nobody_else_gets_it $? "$(cut -c1-200 out)"
session complete "$id" 2 --time 9ms,9ms,9ms
sleep 6
session suggest "$id" --json >out
grep -q '"number":1,"attempt":2' out
verdict then_it_is_offered_again $? "$(cut -c1-200 out)"
session complete "$id" 1 --attempt 2 --time 9ms,9ms,9ms
check several_at_once_need_json 2 '--count is for --json' session suggest "$id" --count 2

# ---- several at once ----
id=$(open --trials 12)
worker() {
    local trial
    while trial=$(session suggest "$id" --client "$1" --out "w$1" 2>>"w$1.err"); do
        (
            eval "$trial"
            $train file "w$1.log" && session complete "$id" "$SYNCOPATE_TRIAL_NUMBER" --client "$1" 2>>"w$1.err"
        ) || echo "worker $1 was refused" >>refused
    done
}
for w in 1 2 3; do worker $w & workers[w]=$!; done
wait "${workers[@]}"
[ ! -e refused ] && [ "$(cat w?.log | cut -d' ' -f1 | sort -n | uniq | wc -l)" = 12 ] && [ "$(cat w?.log | wc -l)" = 12 ]
verdict three_processes_run_each_trial_once $? "$(cat w?.log refused w?.err 2>/dev/null | tail -n 5)"
check all_of_them_count 0 '12 trials were given, 12 are complete' session show "$id"

# ---- waiting, stopping ----
id=$(open --trials 2)
session suggest "$id" --count 5 --json >out
python3 -c 'import json; t = json.load(open("out"))["trials"]; assert [x["number"] for x in t] == [1, 2], t' 2>why
verdict a_budget_is_not_overdrawn $? "$(tail -n 1 why)"
check nothing_to_give_for_now 1 'until one that runs has ended' session suggest "$id" --patience 0s
session suggest "$id" --patience 0s --json | grep -q '"next":"wait"'
verdict which_programs_are_told $? ""
check it_is_stopped 0 '' session stop "$id"
check what_ran_is_stale 1 'trial 1 has ended: it is cancelled, it was stopped' session complete "$id" 1 --time 9ms,9ms,9ms
check and_over 3 'it was stopped' session suggest "$id"
check tune_does_not_run_it 2 'ask' "$syncopate" tune --resume "$id"
id=$(open --trials 5 --export-to pytorch-ddp)
session suggest "$id" --count 5 --json >out
python3 -c 'import json
for t in json.load(open("out"))["trials"]:
    s = t["strategy"]
    assert s["schedule"]["policy"] == "fifo" and not s["schedule"]["cross_iteration"], s
    assert all(v["sync"]["kind"] == "all_reduce" for v in s["variables"]), s' 2>why
verdict a_session_keeps_to_its_form $? "$(tail -n 1 why)"
check a_service_of_its_own_is_refused 1 'runs its trials itself' bash -c "
    '$syncopate' tune mlp-small lab-4x1g --command '$train json' --trials 1 --trial-time 30ms >/dev/null 2>&1
    '$syncopate' session suggest \$('$syncopate' dataset sessions | awk 'NR == 2 { print \$1 }')"
