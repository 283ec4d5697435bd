#!/bin/bash
# Agents of a service that comes late, goes away, ends and comes back, of a network that is cut, and of a clock that
# jumps: no result is lost, none counts twice. Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Waits: leases and clocks.
# Plan: 23
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
source tests/cli/service.bash
root=$PWD
syncopate=$root/${OUT:-build/release}/bin/syncopate
tiny=$root/tests/cli/mlp-tiny.json
if ! command -v mpirun >/dev/null || ! command -v python3 >/dev/null; then
    echo "skip agent: needs mpirun and python3"
    exit 0
fi
runner=lab
[ "$(id -u)" = 0 ] || runner=local
dir=$(mktemp -d)
network=
finish() {
    [ -z "$service" ] || kill -9 "$service" 2>/dev/null
    [ -z "$network" ] || kill "$network" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT
cd "$dir" || exit 2

# open NAME TRIALS TIME: a session for agents, which `tune` follows; its id is in $id.
open() {
    "$syncopate" --server "$url" tune "$tiny" lab-4x1g --trials "$2" --trial-time "$3" --rounds 0 --runner $runner \
        >"$1.out" 2>"$1.err" &
    tune=$!
    until_true 30 grep -q 'waits for agents' "$1.err"
    id=$(session_of "$1.err")
}
agent() { exec timeout 200 "$syncopate" agent "$@"; }
# A job whose trials last $1 seconds and leave the processor to others.
cat >slow.sh <<'END'
sleep "$1"
for i in $(seq $((SYNCOPATE_TRIAL_WARMUP + SYNCOPATE_TRIAL_ITERATIONS))); do echo "{\"iteration\":$i,\"time_us\":2000}"; done
END
runs() { trials "$id" | grep -q running; }
ended() { ! kill -0 "$1" 2>/dev/null; }

# ---- a service that is not up yet, and then does not know the cluster ----
port=$(quiet_port)
agent --server "http://127.0.0.1:$port" --cluster lab-4x1g --runner $runner --once 2>early.err &
early=$!
until_true 20 grep -q 'trying again' early.err
sleep 3
[ "$(grep -c 'trying again' early.err)" = 1 ] && ! ended $early
verdict an_agent_waits_for_a_service_that_is_not_up_and_says_so_once $? "$(cat early.err)"
start "127.0.0.1:$port" --open
until_true 20 grep -q 'waiting until it is added' early.err
sleep 2
[ "$(grep -c 'waiting until it is added' early.err)" = 1 ] && ! ended $early
verdict it_then_waits_for_its_cluster_and_says_so_once $? "$(cat early.err)"
open first 1 20ms
wait $early
verdict it_works_when_both_are_there $? "$(cat early.err)"
[ "$(trials "$id")" = '1 1 complete' ]
verdict its_trial_counts $? "$(trials "$id")"
said=$(python3 -c 'import json, sqlite3, sys
row = sqlite3.connect("file:d.db?mode=ro", uri=True).execute("SELECT options FROM sessions WHERE id = ?", sys.argv[1:])
print(json.loads(row.fetchone()[0])["algorithms"])' "$id" 2>&1)
[ "$said" = ring,tree,recursive_doubling,halving_doubling,all_gather ]
verdict the_session_keeps_to_what_its_workers_can_execute $? "$said"
wait $tune
timeout 60 "$syncopate" agent --server "$url" --cluster lab-4x1g --runner $runner --idle 1s 2>idle.err
[ $? = 0 ] && grep -q 'ran 0 trials' idle.err
verdict an_agent_without_work_ends_when_asked_to $? "$(cat idle.err)"

# ---- a trial that was cancelled while it ran ----
open cancelled 2 20ms
agent --server "$url" --session "$id" --command "bash $dir/slow.sh 3" --once 2>late.err &
late=$!
until_true 20 runs
"$syncopate" --server "$url" sessions cancel "$id" >/dev/null 2>&1
wait $late
[ $? = 0 ] && grep -q 'trial 1 was not taken' late.err && ! grep -q ' over ' late.err
verdict a_result_that_was_not_taken_is_not_told_as_one $? "$(cat late.err)"
wait $tune

# ---- a cluster that nobody measured ----
open hasty 1 20ms
timeout 60 "$syncopate" agent --server "$url" --cluster lab-4x1g --runner local --bench 1ms --once 2>none.err # too short
grep -q 'could not be measured' none.err && [ "$(trials "$id")" = '1 1 complete' ]
verdict without_figures_the_session_goes_on $? "$(cat none.err)"
wait $tune
for time in 12s 60s; do # the first may be too short on a busy machine
    open unmeasured 1 20ms
    timeout 200 "$syncopate" agent --server "$url" --cluster lab-4x1g --runner local --bench $time --once 2>bench.err
    grep -q 'not one message was timed' bench.err || break
    wait $tune
done
grep -q 'measured; the session predicts by it' bench.err && [ "$(trials "$id")" = '1 1 complete' ]
verdict an_agent_measures_it_before_the_first_trial $? "$(cat bench.err)"
wait $tune
verdict who_follows_the_session_sees_it_end $? "$(tail -n 3 unmeasured.err)"

# ---- a service that ends in order, and comes back ----
open drained 1 20ms
agent --server "$url" --session "$id" --command "bash $dir/slow.sh 4" 2>drained-agent.err &
busy=$!
until_true 60 runs
stop

sleep 2
start "127.0.0.1:$port" --open
wait $busy
verdict an_agent_outlasts_a_service_that_ends_in_order $? "$(cat drained-agent.err)"
[ "$(trials "$id")" = '1 1 complete' ]
verdict its_trial_is_in_its_first_attempt $? "$(trials "$id")"
wait $tune
verdict who_watched_has_an_answer $? "$(tail -n 2 drained.err)"

# ---- a network that is cut for longer than the lease ----
mkfifo open-end
python3 "$root/tests/cli/remote_network.py" relay "$port" <open-end >relay.port &
network=$!
exec 5>open-end
until_true 10 test -s relay.port
open lost 1 20ms
agent --server "http://127.0.0.1:$(cat relay.port)" --session "$id" --command "bash $dir/slow.sh 6" --lease 3s --once --name far 2>far.err &
far=$!
until_true 60 runs
touch cut
again() { trials "$id" | grep -q '^1 2 '; }
timeout 200 "$syncopate" agent --server "$url" --session "$id" --command "bash $dir/slow.sh 0" --once --name near 2>near.err &
near=$!
until_true 60 again
verdict a_trial_whose_agent_is_cut_off_is_offered_again $? "$(trials "$id")"
wait $near
verdict another_agent_runs_it $? "$(cat near.err)"
rm cut
wait $far
verdict the_first_agent_ends_in_order $? "$(cat far.err)"
[ "$(trials "$id")" = '1 2 complete' ] && grep -q 'trial 1 was \(not taken\|dropped\)' far.err
verdict what_it_measured_does_not_count_a_second_time $? "$(trials "$id") $(cat far.err)"
wait $tune
exec 5>&-
wait $network
network=

# ---- a clock that jumps ----
if "${CC:-cc}" -std=c17 -D_GNU_SOURCE -O1 -shared -fPIC -o clock.so "$root/tests/http/faulty_machine.c" 2>/dev/null; then
    open jumping 1 20ms
    echo 0 >clock
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
    FAULTY_CLOCK=$dir/clock LD_PRELOAD=$dir/clock.so agent --server "$url" --session "$id" --command "bash $dir/slow.sh 4" --lease 3s 2>jump.err &
    jumper=$!
    until_true 60 runs
    echo 86400 >clock
    sleep 1.5
    echo -86400 >clock
    wait $jumper
    verdict an_agent_does_not_mind_a_clock_that_jumps $? "$(cat jump.err)"
    [ "$(trials "$id")" = '1 1 complete' ]
    verdict its_trial_keeps_its_lease $? "$(trials "$id")"
    wait $tune
else
    echo "skip an_agent_does_not_mind_a_clock_that_jumps: needs cc"
fi

# ---- what does not pass by itself ----
timeout 60 "$syncopate" agent --server "$url" --cluster nobodys --runner $runner --idle 1s 2>nobodys.err
[ $? = 2 ] && grep -q '^syncopate: error: .*no cluster called or numbered "nobodys"' nobodys.err
verdict a_cluster_that_nobody_adds_is_waited_for_as_long_as_work_is $? "$(cat nobodys.err)"
stop
timeout 60 "$syncopate" agent --server "$url" --cluster lab-4x1g --runner $runner --patience 1s 2>patient.err
[ $? = 4 ] && grep -q "^syncopate: error: $url" patient.err
verdict patience_ends_when_told_to $? "$(cat patient.err)"

# ---- a session that was opened for whoever comes; and a token whose day is used up ----
rm -f d.db*
tokens() { "$syncopate" serve token create "$@" --dataset d.db; }
SYNCOPATE_TOKEN=$(tokens boss --role admin)
few=$(tokens few --role run --team hands --trials-per-day 1)
export SYNCOPATE_TOKEN
start 127.0.0.1:0
"$syncopate" clusters add --server "$url" lab-4x1g >/dev/null
"$syncopate" models add --server "$url" "$tiny" >/dev/null
id=$(curl -s -H "Authorization: Bearer $few" --json \
    '{"model":"mlp-tiny","cluster":"lab-4x1g","budget":{"trials":3},"trial_us":2e4,"final_rounds":0}' \
    "$url/api/v1/sessions" | python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])')
SYNCOPATE_TOKEN=$few timeout 200 "$syncopate" agent --server "$url" --session "$id" --runner $runner --idle 3s --patience 1s 2>few.err
[ $? = 0 ] && grep -q 'ran 1 trial' few.err && [ "$(grep -c 'within 24 hours.*waiting' few.err)" = 1 ]
verdict an_agent_whose_token_has_no_more_trials_today_waits_and_says_why $? "$(cat few.err)"
"$syncopate" dataset query --server "$url" --session "$id" --json 2>/dev/null | grep -q "\"runner\":\"$runner\""
verdict its_trial_says_what_ran_it $? "$("$syncopate" dataset query --server "$url" --session "$id" --json 2>&1 | head -c 500)"
stop
unset SYNCOPATE_TOKEN
