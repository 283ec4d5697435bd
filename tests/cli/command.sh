#!/bin/bash
# The user's own job as the trial: how its times are read, how it may end, what it is given, what a framework's form
# leaves of the search, and that nothing of it stays. Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Plan: 66
set -u
cd "$(dirname "$0")/../.."
source tests/cli/job.bash
mkdir tmp
export TMPDIR=$dir/tmp SYNCOPATE_COMMAND_TEST=$dir
trial() { "$syncopate" trial mlp-small lab-4x1g --baseline horovod --iterations 5 "$@"; }
try() { # NAME STATUS PART COMMAND OPTIONS...
    local name=$1 status=$2 part=$3 command=$4
    shift 4
    check "$name" "$status" "$part" "$syncopate" trial mlp-small lab-4x1g --baseline horovod --iterations 5 \
        --command "$command" "$@"
}
ours() { grep -lsF "SYNCOPATE_COMMAND_TEST=$dir" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | grep -vx "$$"; }
nothing_left() { # of processes that sleep for $1 seconds, which no other test does, and no folder
    sleep 0.1
    ! pgrep -f "^sleep $1\$" >/dev/null && [ -z "$(ls tmp)" ]
}

# ---- how times are read ----
try a_pattern_with_its_unit_in_the_line 0 '1.75 ms an iteration' "$train print" --pattern 'iteration [0-9]+: ([0-9.]+) ms'
try a_unit_inside_the_group 0 '1.75 ms an iteration' "$train print" --pattern 'iteration [0-9]+: ([0-9.]+ ms)'
try a_pattern_with_a_unit 0 '1.75 ms an iteration' "$train seconds" --pattern 'took ([0-9.]+)' --unit s
try json_lines_on_standard_output 0 '1.75 ms an iteration' "$train json"
try json_lines_in_a_file 0 '5 iterations' "$train file"
lines='for i in 1 2 3 4 5 6 7; do echo "{\"time_us\":1500}"; done'
lost=0
for _ in {1..10}; do # a job that shuts its output early ends without waking whoever listens
    "$syncopate" trial mlp-small lab-4x1g --baseline horovod --iterations 5 \
        --command "exec >&- 2>&-; sleep 0.01; { $lines; } >\$SYNCOPATE_TRIAL_TIMES" >out 2>err || lost=$((lost + 1))
done
verdict a_file_is_read_however_short_the_job $lost "$lost of 10: $(head -c 300 err)"
try a_file_that_is_moved_into_place 0 '5 iterations' "{ $lines; } >f && mv f \$SYNCOPATE_TRIAL_TIMES && sleep 0.2"
try a_rate 0 '1.000 s an iteration' \
    'for i in 1 2 3 4 5 6 7; do echo "speed: 2560.0 images/s"; done' --pattern 'speed: ([0-9.]+)' --unit samples/s
try json_with_a_rate 0 '1.000 s an iteration' \
    'for i in 1 2 3 4 5 6 7; do echo "{\"iteration\": $i, \"samples_per_s\": 2560}"; done'
try several_ranks_tell_one_iteration 0 '5 iterations' \
    'for i in 1 2 3 4 5 6 7; do for r in 1 2 3 4; do echo "{\"iteration\": $i, \"time_us\": 10}"; done; done'
trial --command "$train json" --json >times 2>err
python3 -c 'import json; t = json.load(open("times")); assert t["iterations_us"] == [1750.0] * 5, t' 2>why
verdict warm_up_does_not_count $? "$(tail -n 1 why) $(cat err)"
try a_job_that_goes_on_is_ended 0 '5 iterations' \
    'i=0; while :; do i=$((i + 1)); echo "{\"iteration\": $i, \"time_us\": 100}"; sleep 0.05; done'

# ---- how it may end ----
try no_such_program 2 'not found' ./nothing
try no_line_has_the_pattern 2 'no line of the command'"'"'s output has the pattern "step ([0-9]+)"; its last line is "epoch' \
    "$train print" --pattern 'step ([0-9]+)'
try no_unit 2 'no unit stands behind the number' "$train seconds" --pattern 'took ([0-9.]+)'
try no_number 2 "the pattern's group is no number" "$train print" --pattern '(epoch)'
try no_times_at_all 2 'and no --pattern; its last line is "epoch 1' "$train print"
try a_time_of_zero 2 'this is no time of an iteration' 'echo "{\"time_us\": 0}"'
try warm_up_alone 1 'times of 2 iterations, and the first 2' 'for i in 1 2; do echo "{\"time_us\": 5}"; done'
try a_bad_pattern 2 'Unmatched' true --pattern '(a'
try a_pattern_without_a_group 2 '0 groups' true --pattern 'a'
try a_pattern_with_two_groups 2 '2 groups' true --pattern '(a)(b)'
try an_unknown_unit 2 'none of s, ms, us, samples/s' true --pattern '(a)' --unit h
try exit_3_is_infeasible 3 'out of memory on rank 2' 'echo starting; echo out of memory on rank 2; exit 3'
try another_status_failed 1 'exit code 7: starting NCCL error 2' 'echo starting; echo NCCL error 2 >&2; exit 7'
try a_signal_failed 1 'killed by signal 11' 'kill -SEGV $$'
try a_hang_is_ended 1 'not done after' 'sleep 4321 & sleep 4321' --time-limit 0.5s
nothing_left 4321
verdict with_all_that_it_started $? "$(ours) $(ls tmp)"
try one_that_ignores_sigterm_too 1 'not done after' \
    'trap "" TERM; setsid sleep 4322 & while :; do sleep 0.2; done' --time-limit 0.5s
nothing_left 4322
verdict nothing_of_it_stays $? "$(ours) $(ls tmp)"
try a_job_may_end_in_order 1 'not done after' \
    "trap 'echo saved >$dir/saved; exit 0' TERM; sleep 4323 & wait" --time-limit 0.5s
[ -e saved ]
verdict sigterm_comes_first $? ""
try what_daemonizes_is_ended 0 '5 iterations' "setsid sleep 4324 & $train json"
nothing_left 4324
verdict daemons_do_not_stay $? "$(ours) $(ls tmp)"
try a_flood_of_output 0 '5 iterations' "yes 'this line says nothing' | head -n 2000000; $train json" --logs flood
[ "$(stat -c %s flood/trial-1/output.log)" -lt 34000000 ] && tail -n 1 flood/trial-1/output.log | grep -q 'the rest is not kept'
verdict a_flood_does_not_fill_the_disk $? "$(stat -c %s flood/trial-1/output.log)"
rm -rf flood

# ---- what it is given ----
try its_folder 0 '5 iterations' "env | sort >$dir/environment; ls \$SYNCOPATE_TRIAL_DIR >$dir/files; $train json" \
    --export-env horovod --logs kept
grep -q "^SYNCOPATE_TRIAL_DIR=$dir/kept/trial-1\$" environment && grep -q '^HOROVOD_FUSION_THRESHOLD=' environment &&
    grep -q '^SYNCOPATE_TRIAL_ITERATIONS=5$' environment && grep -q '^SYNCOPATE_TRIAL_NUMBER=1$' environment
verdict variables $? "$(grep -E 'SYNCOPATE|HOROVOD' environment)"
[ "$(echo strategy.json ddp.json horovod.env byteps.env nccl.env deepspeed.json autodist.pb | tr ' ' '\n' | comm -23 <(sort) \
    <(sort files))" = '' ]
verdict every_form_is_there $? "$(cat files)"
[ -s kept/trial-1/output.log ] && cmp -s <(grep -c time_us kept/trial-1/output.log) <(echo 7)
verdict its_output_is_kept $? ""
trial --command "$train json" --logs kept >out 2>err
[ -e kept/trial-1.2/output.log ]
verdict an_earlier_folder_is_left_alone $? "$(ls kept)"
mkdir temporary
TMPDIR=temporary trial --command "cd / && ls \$SYNCOPATE_TRIAL_STRATEGY >$dir/seen && $train json" >out 2>err
grep -q "^$dir/temporary/syncopate-[^/]*/strategy.json\$" seen && [ -z "$(ls temporary)" ]
verdict its_folder_has_a_whole_path_from_a_relative_tmpdir $? "$(cat seen err)"
TMPDIR=none try a_tmpdir_that_is_not_there_is_named 1 'none: cannot make a folder here' true
check a_form_without_variables 2 'the form pytorch-ddp has no variables' "$syncopate" trial mlp-small lab-4x1g \
    --baseline horovod --command true --export-env pytorch-ddp
check what_a_form_cannot_say_is_not_run 3 'pytorch-ddp cannot say everything that pace does: preemption' "$syncopate" trial \
    mlp-small lab-4x1g --baseline pace --command "$train json" --export-to pytorch-ddp
check options_of_a_job_need_one 2 '--pattern is about the job' "$syncopate" trial mlp-small lab-4x1g --baseline ps \
    --pattern '(a)'
check a_runner_and_a_job 2 'give one of them, not both' "$syncopate" tune mlp-small lab-4x1g --command true --runner local
check a_form_that_is_none 2 'no form "torch"' "$syncopate" tune mlp-small lab-4x1g --command true --export-to torch
# fsdp-per-block takes 3 ms, fsdp-optimal 2, and what is found 1.5. The exact schedule is said beside the best baseline.
cat >exact.py <<'END'
import json, os
name = json.load(open(os.environ["SYNCOPATE_TRIAL_STRATEGY"]))["name"]
us = {"fsdp-per-block": 3000, "fsdp-optimal": 2000}.get(name, 1500)
for i in range(int(os.environ["SYNCOPATE_TRIAL_WARMUP"]) + int(os.environ["SYNCOPATE_TRIAL_ITERATIONS"])):
    print(json.dumps({"iteration": i, "time_us": us + i % 3}))
END
"$syncopate" tune gpt2-small lab-4x1g --memory 600MB --allow-sharded parameters --command "python3 exact.py" --trials 3 \
    --rounds 0 --dataset exact.db >out 2>err && grep -q "2.00x as fast as the best baseline, fsdp-per-block" out &&
    grep -q "^fsdp-optimal, an exact schedule, which counts as no baseline, took 2.00 ms: 1.33x as long.$" out
verdict an_exact_schedule_is_said_beside_the_best_baseline $? "$(grep -A 2 '^Use' out; head -c 300 err)"
"$syncopate" tune mlp-small lab-4x1g --command true --export-to fsdp2 >out 2>err
[ $? = 3 ] && grep -qF 'allow them (--allow-sharded parameters; HTTP: "allow_sharded":"parameters")' err
verdict a_form_of_shards_alone_says_what_to_allow $? "$(head -c 300 err)"
"$syncopate" tune mlp-small lab-4x1g --allow-lossy --command false --trials 1 --dataset said.db >out 2>err
sed 's/"f32"/"bf16"/' "$root/examples/models/mlp-small.json" >bf16.json
"$syncopate" tune bf16.json lab-4x1g --allow-lossy --command false --trials 1 --dataset said.db >out 2>bf16
grep -q "nothing of this model can be encoded: only f32 and f64 can" bf16 && ! grep -q "can be encoded" err
verdict tune_says_when_nothing_can_be_encoded $? "$(head -c 300 bf16)"
for command in "tune --command false --trials 1" "session open"; do
    # shellcheck disable=SC2086
    "$syncopate" $command mlp-small lab-4x1g --allow-sharded parameters --export-to horovod --dataset said.db >out 2>horovod
    # shellcheck disable=SC2086
    "$syncopate" $command mlp-small lab-4x1g --allow-sharded parameters --export-to fsdp2 --dataset said.db >out 2>err
    [ "$(grep -c -e "--allow-sharded does nothing here: horovod cannot say what is sharded" horovod)" = 1 ] &&
        ! grep -q "does nothing here" err
    verdict "${command%% *}_says_when_a_form_cannot_say_what_is_sharded" $? "$(head -c 300 horovod err)"
done
check variables_of_another_framework 2 '--export-env horovod sets variables that a job of --export-to fsdp2,nccl does not read' \
    "$syncopate" tune mlp-small lab-4x1g --command true --export-to fsdp2,nccl --export-env horovod --dataset other.db
[ ! -e other.db ]
verdict are_refused_before_there_is_a_session $? ""
check also_of_one_trial 2 'does not read: drop one of them' "$syncopate" trial mlp-small lab-4x1g --baseline horovod --command true \
    --export-to byteps --export-env horovod
check but_not_what_goes_beside_it 0 'an iteration' "$syncopate" trial mlp-small lab-4x1g --baseline horovod --command "$train json" \
    --export-to horovod --export-env horovod,nccl
check a_loss_that_is_none 2 'there is no loss "speed"; losses are groups all-reduce' "$syncopate" tune mlp-small lab-4x1g --command true \
    --export-to horovod --accept speed

# ---- sessions ----
echo text >file
check logs_that_cannot_be_are_said_first 1 'file is no folder; logs need one' "$syncopate" tune mlp-small lab-4x1g \
    --command "$train json" --logs file --dataset logs.db
[ ! -e logs.db ]
verdict before_there_is_a_session $? ""
"$syncopate" tune mlp-small lab-4x1g --command "$train json $dir/log" --trials 8 --rounds 0 --trial-time 40ms --dataset d.db \
    --export-env horovod --json >tuning 2>err
verdict a_session_of_commands $? "$(cat err)"
id=$(sed -n 's/^session \([^;]*\); .*: syncopate tune --resume \1 --dataset d.db$/\1/p' err)
[ -n "$id" ] && grep -qF "\"session\":\"$id\"" tuning
verdict it_says_at_the_start_how_to_resume_it $? "$(cat err)"
"$syncopate" dataset export --dataset d.db --references >trials 2>err
python3 - <<'PY' 2>why
import json
lines = [json.loads(line) for line in open("trials")]
trials = [r for r in lines if "runner" in r and "proposer" in r]
assert len(trials) == 8 and all(r["runner"] == "command" for r in trials), lines
assert [int(line.split()[0]) for line in open("log")] == sorted(r["number"] for r in trials)
strategies = [r["content"] if "content" in r else r for r in lines if "groups" in json.dumps(r) and "schedule" in json.dumps(r)]
assert strategies
for s in strategies:
    text = json.dumps(s)
    assert '"priority"' not in text and "parameter_server" not in text and '"cross_iteration": true' not in text, text
PY
verdict its_records_say_so_and_keep_to_the_form $? "$(tail -n 1 why) $(cat err)"

# ---- killed and resumed ----
"$syncopate" tune mlp-small lab-4x1g --command "$train json $dir/again; sleep 0.2" --trials 8 --rounds 0 --trial-time 40ms \
    --dataset k.db >out 2>err &
tune=$!
for _ in $(seq 100); do [ "$(wc -l 2>/dev/null <again || echo 0)" -ge 3 ] && break; sleep 0.1; done
kill -9 $tune
wait $tune 2>/dev/null
for _ in $(seq 300); do [ -z "$(ls tmp)" ] && break; sleep 0.1; done
[ -z "$(ls tmp)" ]
verdict a_killed_session_leaves_no_folder $? "$(ls tmp)"
before=$("$syncopate" dataset query --dataset k.db --state complete --json 2>/dev/null | wc -l)
id=$("$syncopate" dataset sessions --dataset k.db | awk 'NR == 2 { print $1 }')
check a_resumed_session_knows_its_command 0 '"trials":8' "$syncopate" tune --resume "$id" --dataset k.db --json
after=$("$syncopate" dataset query --dataset k.db --state complete --json 2>/dev/null | wc -l)
[ "$before" -ge 1 ] && [ "$after" = 8 ]
verdict it_goes_on_where_it_was $? "$before complete before, $after after"
