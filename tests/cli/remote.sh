#!/bin/bash
# Commands as clients of a service, and agents that run its trials: the same answers as here, what is refused, and what
# a service that is killed and comes back costs. Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Waits: agents and leases; its trials are compared with nothing.
# Once: client and handlers have unit tests, which sanitizers see; agent.sh runs an agent under them.
# Plan: 103
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
source tests/cli/help.bash
source tests/cli/service.bash
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
tiny=$PWD/tests/cli/mlp-tiny.json
if ! command -v mpirun >/dev/null; then
    echo "skip remote: needs mpirun"
    exit 0
fi
runner=lab
[ "$(id -u)" = 0 ] || runner=local
dir=$(mktemp -d)
finish() {
    [ -z "$service" ] || kill -9 "$service" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT
cd "$dir" || exit 2

# ---- what cannot be ----
check nobody_is_there 4 'tried 4 times' "$syncopate" --server http://127.0.0.1:1 models list
check no_server_is_named 2 'say which with --server' "$syncopate" models list
check no_url 2 "is no service's URL" "$syncopate" --server nonsense models list
check a_command_of_this_machine 2 'works on this machine, not on a service' "$syncopate" --server http://127.0.0.1:1 lab up x
check an_agent_needs_something_to_serve 2 'either --session ID or --cluster' "$syncopate" agent --server http://127.0.0.1:1 --runner local

# Two variables are not guessed between; what is typed beats both.
both() { env SYNCOPATE_SERVER=http://127.0.0.1:1 SYNCOPATE_DATASET=v.db "$syncopate" "$@"; }
words='SYNCOPATE_SERVER=http://127.0.0.1:1 and SYNCOPATE_DATASET=v.db are both set: unset one, or say --server or --dataset'
for command in "tune mlp-small lab-4x1g" "dataset query" "dataset export" "dataset merge a.db" "report x" "sessions show x"; do
    # shellcheck disable=SC2086
    check "two_variables_are_told_by_${command%% *}_${command##* }" 2 "$words" both $command
done
check a_typed_service_beats_two_variables 4 'http://127.0.0.1:2' both dataset query --server http://127.0.0.1:2
check a_service_typed_before_the_command_beats_them 4 'http://127.0.0.1:2' both --server http://127.0.0.1:2 dataset query
check two_typed_services_are_not_merged 2 'two services are named' "$syncopate" --server http://127.0.0.1:2 dataset merge \
    http://127.0.0.1:1
check a_typed_dataset_beats_two_variables 2 'none.db: no such dataset' both dataset query --dataset none.db

# Each command that takes --server asks the same of the service that SYNCOPATE_SERVER names; here nobody is there.
words_of() {
    case $1 in
    tune | "models add" | "models show") echo mlp-small lab-4x1g | cut -d ' ' -f "1-$([ "$1" = tune ] && echo 2 || echo 1)" ;;
    simulate) echo mlp-small lab-4x1g --baseline wfbp ;;
    advise) echo mlp-small lab-4x1g ;;
    "clusters add" | "clusters show") echo lab-4x1g ;;
    agent) echo --session x --runner local --patience 1ms ;;
    report) echo x --out - ;;
    "dataset import") echo lines.jsonl ;;
    sessions\ list) ;;
    sessions\ * | "strategy export") echo x ;;
    esac
}
echo '{}' >lines.jsonl
all_commands "" >commands
while IFS= read -r command; do
    # shellcheck disable=SC2086
    "$syncopate" $command --help | grep -q '^  --server URL' || continue
    file=${command// /_}
    # shellcheck disable=SC2046,SC2086
    (
        "$syncopate" $command $(words_of "$command") --server http://127.0.0.1:1 >"$file.by-option" 2>&1
        echo $? >>"$file.by-option"
        SYNCOPATE_SERVER=http://127.0.0.1:1 "$syncopate" $command $(words_of "$command") >"$file.by-variable" 2>&1
        echo $? >>"$file.by-variable"
    ) &
done <commands
wait
sed -i 's/ after [0-9]* ms//' ./*.by-option ./*.by-variable # how long refusing took
for file in *.by-option; do
    cmp -s "$file" "${file%.by-option}.by-variable" && [ "$(tail -n 1 "$file")" = 4 ]
    verdict "the_service_can_be_named_by_a_variable_for_${file%.by-option}" $? "$(cat "$file" "${file%.by-option}.by-variable")"
done
[ "$(ls ./*.by-option | wc -l)" -ge 18 ]
verdict commands_that_take_a_service_are_read_from_help $? "$(ls ./*.by-option | wc -l)"
rm ./*.by-*

# ---- the same answers ----
port=$(quiet_port)
start "127.0.0.1:$port" --open
export SYNCOPATE_SERVER=$url
check a_model_is_added_by_its_shipped_name 0 "" "$syncopate" models add resnet18
check it_is_listed 0 resnet18 "$syncopate" models list
"$syncopate" clusters add lab-4x1g >/dev/null
"$syncopate" clusters show lab-4x1g --out shown.json
check a_cluster_is_shown_as_it_was 0 "$(cut -c 1-12 <<<"$("$syncopate" clusters add shown.json)")" "$syncopate" clusters list
for form in --json "--baseline wfbp,horovod" "--baseline p3 --timeline trace.json" "--memory 200MB" "--memory 1MB --json"; do
    # shellcheck disable=SC2086
    "$syncopate" simulate resnet18 lab-4x1g $form >there 2>there.err
    # shellcheck disable=SC2086
    env -u SYNCOPATE_SERVER "$syncopate" simulate resnet18 lab-4x1g $form >here 2>here.err
    cmp -s here there && cmp -s here.err there.err && [ -s here ]
    verdict "a_prediction_is_the_same_there_as_here_${form// /_}" $? "$(diff here there | head -n 3)"
done
"$syncopate" clusters add lab-4x1g-weather >/dev/null
for form in --json "--baseline wfbp,p3,async-ps,mlfabric-a"; do
    # shellcheck disable=SC2086
    "$syncopate" simulate resnet18 lab-4x1g-weather $form >there 2>err
    # shellcheck disable=SC2086
    env -u SYNCOPATE_SERVER "$syncopate" simulate resnet18 lab-4x1g-weather $form >here 2>err
    cmp -s here there && [ -s here ]
    verdict "a_prediction_in_weather_is_the_same_there_as_here_${form// /_}" $? "$(diff here there | head -n 3)"
done
for form in "lab-4x1g" "lab-4x1g --memory 40MB,1GB" "lab-4x1g --memory 40MB,1GB --json" "lab-4x1g --memory 1KB" "lab-4x1g-weather --memory 1KB,1GB"; do
    # shellcheck disable=SC2086
    "$syncopate" advise resnet18 $form >there 2>there.err
    # shellcheck disable=SC2086
    env -u SYNCOPATE_SERVER "$syncopate" advise resnet18 $form >here 2>here.err
    cmp -s here there && cmp -s here.err there.err && [ -s here ]
    verdict "an_advice_is_the_same_there_as_here_${form// /_}" $? "$(diff here there | head -n 3)"
done
check a_service_writes_no_files 2 'drop --out' "$syncopate" advise resnet18 lab-4x1g --out folder
check a_service_chooses_the_seeds 2 'a service chooses seeds' "$syncopate" simulate resnet18 lab-4x1g-weather --seeds 3
check a_sweep_is_not_for_a_service 2 'knows no --sweep' "$syncopate" simulate resnet18 lab-4x1g --sweep workers=2,4
check a_dataset_here_is_not_there 2 'drop one of the two' "$syncopate" dataset query --dataset d.db --server "$url"
check a_typed_dataset_beats_the_variable 2 'not-there.db' "$syncopate" dataset query --dataset not-there.db
check what_is_not_there_is_said 2 'no session nope' "$syncopate" strategy export nope

# ---- a session by an agent, and a service that is killed in between ----
"$syncopate" tune "$tiny" lab-4x1g --trials 8 --trial-time 20ms --runner local --out best.json >tune.out 2>tune.err &
tune=$!
until_true 30 grep -q 'waits for agents' tune.err
verdict a_session_for_agents_says_how_to_start_one $? "$(cat tune.err)"
id=$(session_of tune.err)
"$syncopate" agent --session "$id" --runner local --lease 20s >agent.out 2>agent.err &
agent=$!
until_true 120 grep -q '^trial 2:' agent.err
kill -9 "$service"
wait "$service" 2>/dev/null
sleep 1.5
start "127.0.0.1:$port" --open
wait $agent
verdict an_agent_outlasts_a_killed_service $? "$(tail -n 2 agent.err)"
wait $tune
verdict so_does_who_watches $? "$(tail -n 2 tune.err)"
[ "$(trials "$id" | awk '{ print $1, $2 }' | tr '\n' ';')" = '1 1;2 1;3 1;4 1;5 1;6 1;7 1;8 1;' ]
verdict no_trial_is_lost_or_run_twice $? "$(trials "$id" | tr '\n' ';')"
[ "$(grep -c '^trial ' agent.err)" = 8 ] && [ -z "$(grep '^trial ' agent.err | cut -d: -f1 | sort | uniq -d)" ]
verdict each_is_reported_once $? "$(cat agent.err)"
grep -q "session $id, 8 trials; the trials are used up" tune.out
verdict it_ends_with_an_answer $? "$(head -n 1 tune.out)"
"$syncopate" strategy export "$id" >exported.json
cmp -s exported.json best.json
verdict the_best_strategy_is_exported $?
for form in "query --json" query "query --state complete --order measured --limit 3" "export --format csv" \
    "export --iterations" "query --filter number>=3 --offset 1 --descending --json"; do
    # shellcheck disable=SC2086
    "$syncopate" dataset $form >there 2>there.err
    # shellcheck disable=SC2086
    env -u SYNCOPATE_SERVER "$syncopate" dataset $form --dataset d.db >here 2>here.err
    cmp -s here there && [ -s here ]
    verdict "trials_are_the_same_there_as_here_${form// /_}" $? "$(diff here there | head -n 3)"
done

shown_alike() { # SESSION [--json]: there as here
    "$syncopate" sessions show "$@" >there 2>there.err
    env -u SYNCOPATE_SERVER "$syncopate" sessions show "$@" --dataset d.db >here 2>here.err
    cmp -s here there && grep -q "$1" here
}
requests() { # WHAT of sessions, how often it was asked for: a line
    curl -s "$url/metrics" | awk -v route="requests_total{route=\"GET /api/v1/sessions/{session}/$1\"" 'index($0, route) { print $NF }'
}
copies=$(requests export) outcomes=$(requests outcome)
for form in "" --json; do
    # shellcheck disable=SC2086
    shown_alike "$id" $form
    verdict "a_session_is_shown_the_same_there_as_here${form//-/_}" $? "$(cat there.err; diff here there | head -n 3)"
done
[ "$(requests export)" = "$copies" ] && [ "$(requests outcome)" = $((outcomes + 2)) ]
verdict no_record_is_copied_to_show_it $? "export $copies, then $(requests export); outcome $outcomes, then $(requests outcome)"
mkdir -p tmp
TMPDIR=$dir/tmp "$syncopate" report "$id" --out - 2>err | sed 's/syncopate --server [^<]*best.json/COMMAND/' >there
env -u SYNCOPATE_SERVER "$syncopate" report "$id" --dataset d.db --out - 2>>err |
    sed 's/syncopate dataset show [^<]*best.json/COMMAND/' >here
cmp -s here there && grep -q '</html>' here && [ -z "$(ls tmp)" ]
verdict a_report_is_the_same_there_as_here_and_leaves_nothing $? "$(cat err; diff here there | head -c 500; ls tmp)"
check a_session_that_is_not_there_has_no_report 2 'no session nope' "$syncopate" report nope --out -
check a_report_of_a_service_takes_no_dataset 2 'drop one of the two' "$syncopate" report "$id" --dataset d.db --server "$url"

# ---- an agent that is asked to end gives its trial back ----
"$syncopate" tune mlp-small lab-4x1g --trials 2 --trial-time 2s --rounds 0 --runner $runner >short.out 2>short.err &
tune=$!
until_true 30 grep -q 'waits for agents' short.err
id=$(session_of short.err)
"$syncopate" agent --cluster lab-4x1g --runner $runner 2>first.err &
agent=$!
running() { trials "$id" | grep -q running; }
until_true 60 running
shown_alike "$id"
verdict so_is_one_whose_first_trial_runs $? "$(cat there.err; diff here there | head -n 3)"
sleep 1
kill $agent
wait $agent
verdict an_agent_ends_in_order $? "$(cat first.err)"
grep -q 'trial 1 given back' first.err
verdict its_trial_is_given_back $? "$(cat first.err)"
waits_again() { trials "$id" | grep -q '^1 2 waiting'; }
until_true 30 waits_again
"$syncopate" agent --cluster lab-4x1g --runner $runner --once 2>second.err
verdict an_agent_runs_one_and_ends $? "$(cat second.err)"
[ "$(trials "$id" | head -n 1)" = '1 2 complete' ]
verdict another_agent_runs_it_in_its_second_attempt $? "$(trials "$id" | tr '\n' ';')"

# ---- who watches may go ----
kill -INT $tune
wait $tune
[ $? = 130 ] && grep -q "tune --resume $id" short.err && grep -q "sessions stop $id" short.err
verdict who_interrupts_is_told_how_to_come_back $? "$(cat short.err)"
check the_session_goes_on 0 running "$syncopate" sessions list --state running
check it_is_paused 0 'is paused' "$syncopate" sessions pause "$id"
check it_is_resumed 0 'is running' "$syncopate" sessions resume "$id"
check it_is_stopped 0 'is stopped' "$syncopate" sessions stop "$id"
check what_was_stopped_has_an_answer 0 '1 trials; it was stopped' "$syncopate" tune --resume "$id"
check an_agent_has_nothing_left_to_do 0 'ran 0 trials' "$syncopate" agent --session "$id" --runner $runner
stop
unset SYNCOPATE_SERVER

# ---- the service's own runs, and the same words at the end as here ----
echo '{"launchers":[{"cluster":"lab-4x1g","runner":"'$runner'"}]}' >launchers.json
start 127.0.0.1:0 --open --launchers launchers.json
check a_session_of_the_service_itself 0 'the service runs its trials' "$syncopate" --server "$url" tune "$tiny" lab-4x1g \
    --trials 7 --trial-time 20ms
id=$(session_of err)
"$syncopate" --server "$url" tune --resume "$id" >there 2>/dev/null
"$syncopate" --server "$url" tune --resume "$id" --json >there.json 2>/dev/null
check so_may_be_limited_to_a_form 0 'the service runs its trials' "$syncopate" --server "$url" tune "$tiny" lab-4x1g \
    --trials 4 --trial-time 20ms --rounds 0 --export-to pytorch-ddp --accept groups --out ddp.json
[ "$(grep -c '"all_reduce"' ddp.json)" -gt 0 ] && ! grep -qE '"ps"|"priority"' ddp.json
verdict its_strategies_are_what_the_form_can_say $? "$(cat ddp.json)"
check what_a_form_may_lose_needs_the_form 2 'name the form' "$syncopate" --server "$url" tune "$tiny" lab-4x1g --accept groups
check it_is_not_for_agents 1 'not for agents' "$syncopate" --server "$url" agent --session "$id" --runner $runner
stop
"$syncopate" tune --resume "$id" --dataset d.db >here 2>/dev/null
"$syncopate" tune --resume "$id" --dataset d.db --json >here.json 2>/dev/null
grep -v 'were not run$' here | diff - there >difference && [ -s here ]
verdict the_answer_is_the_same_there_as_here $? "$(head -n 3 difference)"
cmp -s here.json there.json
verdict also_for_programs $? "$(cat here.json there.json)"

# ---- tokens and TLS ----
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 \
    -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
(umask 077 && "$syncopate" serve token create reader --role read --dataset d.db >token)
start 127.0.0.1:0 --tls-cert cert.pem --tls-key key.pem
url=https://localhost:${url##*:}
check a_stranger_is_refused 4 'give --token-file FILE or set SYNCOPATE_TOKEN' "$syncopate" --server "$url" --cacert cert.pem models list
check a_token_opens 0 mlp-tiny "$syncopate" --server "$url" --cacert cert.pem --token-file token models list
check also_from_the_environment 0 mlp-tiny env SYNCOPATE_TOKEN="$(cat token)" "$syncopate" --server "$url" \
    --cacert cert.pem models list
check a_reader_may_not_open_sessions 4 '403 forbidden' "$syncopate" --server "$url" --cacert cert.pem --token-file token \
    tune "$tiny" lab-4x1g
check an_unknown_certificate_is_refused 4 'certificate' "$syncopate" --server "$url" --token-file token models list
chmod 644 token
check a_token_that_others_can_read_is_refused 1 'chmod 600' "$syncopate" --server "$url" --cacert cert.pem \
    --token-file token models list
stop
