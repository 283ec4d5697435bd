#!/bin/bash
# Several services on one dataset in PostgreSQL: clients ask and tell through all of them, one is killed, the database
# goes away and comes back. Needs OUT; prints ok, not ok and skip lines (tests/README.md).
# Once: it is the time of several processes; what they run is under sanitizers in tests of its own.
# Plan: 14
set -u
cd "$(dirname "$0")/../.."
source tests/support/postgres.bash
source tests/cli/job.bash
services=()
finish() {
    [ ${#services[@]} = 0 ] || kill -9 "${services[@]}" 2>/dev/null
    postgres_stop
    rm -rf "$dir"
}
trap finish EXIT
chmod 711 "$dir"
postgres_start "$dir/server" >why || { echo "skip several_services: $(head -n 1 why)"; exit 0; }
dataset="$postgres_url&options=-csearch_path%3Dteam"

# serve I OPTION...: service I in a folder of its own; its address is in ${urls[I]}.
serve() {
    local i=$1
    shift
    mkdir -p "service$i" && : >"service$i/out"
    (cd "service$i" && exec "$syncopate" serve --open --listen 127.0.0.1:0 --dataset "$dataset" --no-access-log "$@" \
        >out 2>err) &
    services[i]=$!
    for _ in $(seq 200); do [ -s "service$i/out" ] && break; sleep 0.05; done
    urls[i]=$(awk '{ print $NF }' "service$i/out")
}
sql() { postgres_sql team "$1"; }
status_of() { curl -s -o answer -w '%{http_code}' -m 20 "$@"; }

# ---- they start at once, on a dataset that is not there yet ----
serve 0; serve 1; serve 2
[ -n "${urls[0]}" ] && [ -n "${urls[1]}" ] && [ -n "${urls[2]}" ]
verdict three_services_start $? "$(cat service*/err)"
trials=12
: >acknowledged
open() { "$syncopate" session open mlp-small lab-4x1g --trial-time 30ms --rounds 0 --trials "$1" --dataset "$dataset"; }
id=$(open $trials 2>err)
verdict a_command_opens_a_session_beside_them $? "$(cat err)"

# ---- clients of all of them; one is killed ----
python3 "$root/tests/cli/services.py" "$id" 4 acknowledged "${urls[@]}" >clients.out 2>clients.err &
clients=$!
for _ in $(seq 400); do [ "$(wc -l <acknowledged)" -ge 4 ] && break; sleep 0.05; done
kill -9 "${services[0]}"
wait "${services[0]}" 2>/dev/null
wait $clients
verdict clients_meet_the_end_and_no_lease_is_given_twice $? "$(cat clients.err clients.out service1/err service2/err)"
cat clients.out
[ "$(sql "SELECT state FROM sessions WHERE id = '$id'")" = done ]
verdict the_session_ends $? "$(sql "SELECT state, reason FROM sessions WHERE id = '$id'")"
sql "SELECT number || ' ' || attempt || ' ' || to_char(median_us, 'FM999990.000000') FROM trials
    WHERE session = '$id' AND state = 'complete' ORDER BY number" >there
sort -n acknowledged | diff - there >difference
verdict every_acknowledged_result_is_there_once $? "$(cat difference)"
[ "$(wc -l <there)" = "$(sql "SELECT count(DISTINCT number) FROM trials WHERE session = '$id'")" ]
verdict no_trial_is_there_that_nobody_told $? "$(sql "SELECT number, state, client FROM trials WHERE session = '$id'")"
[ "$(sql "SELECT count(*) FROM trials WHERE session = '$id'")" -ge $trials ]
verdict the_budget_is_used $? "$(wc -l <there)"
check the_dataset_is_sound 0 'are as they should be' "$syncopate" dataset check --dataset "$dataset"

# ---- a lease that its service did not survive ----
id=$(open 2 2>err)
post() { status_of -H 'Content-Type: application/json' -d "$2" "$1"; }
[ "$(post "${urls[1]}/api/v1/sessions/$id/trials:suggest" '{"client":"gone","lease_s":1}')" = 200 ]
verdict a_lease_is_taken $? "$(cat answer)"
kill -9 "${services[1]}"
wait "${services[1]}" 2>/dev/null
for _ in $(seq 60); do [ "$(sql "SELECT state FROM trials WHERE session = '$id'")" = waiting ] && break; sleep 0.1; done
[ "$(sql "SELECT state || attempt FROM trials WHERE session = '$id'")" = waiting2 ]
verdict another_service_ends_it $? "$(cat service2/err)"

# ---- trials that services run themselves ----
if command -v mpirun >/dev/null; then
    cp "$root/examples/clusters/lab-4x1g.json" .
    echo '{"launchers":[{"file":"lab-4x1g.json","runner":"local"}]}' >launchers.json
    serve 0 --launchers "$dir/launchers.json"
    serve 1 --launchers "$dir/launchers.json"
    "$syncopate" session open "$root/tests/cli/mlp-tiny.json" lab-4x1g --trials 1 --dataset "$dataset" >ignored 2>&1
    code=$(post "${urls[0]}/api/v1/sessions" '{"model":"mlp-tiny","cluster":"lab-4x1g","mode":"own","budget":{"trials":5},
        "trial_us":20000,"final_rounds":0}')
    own=$(sql "SELECT id FROM sessions WHERE mode = 'own'")
    n_own() { sql "SELECT count(*) FROM trials WHERE session = '$own' AND state $1"; }
    for _ in $(seq 200); do [ "$(n_own "= 'complete'")" -ge 2 ] && break; sleep 0.1; done
    kill -9 "${services[0]}"
    wait "${services[0]}" 2>/dev/null
    killed=$(date +%s%N)
    begun=$(sql "SELECT max(id) FROM events")
    for _ in $(seq 100); do
        [ "$(sql "SELECT count(*) FROM events WHERE id > $begun AND session = '$own'")" -gt 0 ] && break
        sleep 0.1
    done
    echo "# taken over after $((($(date +%s%N) - killed) / 1000000)) ms"
    state_of() { sql "SELECT state FROM sessions WHERE id = '$own'"; }
    for _ in $(seq 200); do [ "$(state_of)" = running ] || break; sleep 0.1; done
    [ "$code" = 201 ] && [ "$(state_of)" = done ] && [ "$(n_own "<> 'cancelled'")" = 5 ]
    verdict another_service_takes_over_its_trials $? "$code $(cat answer service1/err) $(sql "SELECT number, state, reason FROM trials
        WHERE session = '$own'")"
    kill "${services[1]}"
    wait "${services[1]}" 2>/dev/null
else
    echo "skip another_service_takes_over_its_trials: needs mpirun"
fi

# ---- the database goes away ----
postgres_stop
begun=$SECONDS
code=$(post "${urls[2]}/api/v1/sessions/$id/trials:suggest" '{"client":"c"}')
[ "$code" = 503 ] && grep -q 'database does not answer' answer && [ $((SECONDS - begun)) -lt 15 ]
verdict away_is_503_and_a_readable_line $? "$code $(cat answer)"
curl -s -o /dev/null -D - -m 20 "${urls[2]}/api/v1/sessions" | grep -qi '^retry-after: [0-9]'
verdict with_retry_after $?
postgres_start "$dir/server" >why
for _ in $(seq 100); do
    code=$(post "${urls[2]}/api/v1/sessions/$id/trials:suggest" '{"client":"c"}')
    [ "$code" = 200 ] && break
    sleep 0.1
done
[ "$code" = 200 ] && grep -q '"attempt":2' answer
verdict back_again_it_goes_on $? "$code $(cat answer service2/err)"
