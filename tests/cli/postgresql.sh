#!/bin/bash
# A dataset in PostgreSQL: the tests of dataset/ on a server of their own, and the commands that a user types. Needs OUT;
# prints ok, not ok and skip lines (tests/README.md).
# Once: it is the server's time; what is common to both engines runs under sanitizers over SQLite.
# Plan: 55
set -u
cd "$(dirname "$0")/../.."
source tests/support/postgres.bash
source tests/cli/job.bash
trap 'postgres_stop; rm -rf "$dir"' EXIT
chmod 711 "$dir"
postgres_start "$dir/server" >why || { echo "skip a_dataset_in_postgresql: $(head -n 1 why)"; exit 0; }
at() { echo "$postgres_url&options=-csearch_path%3D$1"; } # the address of the dataset in schema $1

# ---- the tests of dataset/ ----
export SYNCOPATE_TEST_POSTGRESQL=$postgres_url
for test in "$root/$OUT"/tests/{unit,property}/dataset/test_*; do
    [[ -x $test && $test != *.* && $test != *_torture ]] && echo "$test"
done >programs
: >ended
# shellcheck disable=SC2016
(cd "$root" && xargs -P 2 -I{} sh -c '"$1" >"$0/$(basename "$1").log" 2>&1; echo "$(basename "$1") $?" >>"$0/ended"' "$dir" {}) <programs
while read -r name status; do
    verdict "${name}_in_postgresql" "$status" "$(grep -m 3 -E 'ERROR|failed|FAILED' "$name.log" | head -c 600)"
done <ended
unset SYNCOPATE_TEST_POSTGRESQL

# ---- what a user types ----
mine=$(at mine) theirs=$(at theirs)
check nothing_is_there_yet 2 'no such dataset (no schema "mine")' "$syncopate" dataset query --dataset "$mine"
check a_tuning_run 0 'the trials are used up' "$syncopate" tune mlp-small lab-4x1g --command "$train env log" --trials 3 --trial-time 30ms \
    --dataset "$mine"
check its_trials 0 'mlp-small' "$syncopate" dataset query --dataset "$mine"
check as_json 0 '"schema":"syncopate.record/1"' "$syncopate" dataset query --json --dataset "$mine" --filter 'state = complete'
check the_fastest_first 0 'mlp-small' "$syncopate" dataset query --dataset "$mine" --order measured
check its_session 0 'done' "$syncopate" dataset sessions --dataset "$mine"
id=$("$syncopate" session open mlp-small lab-4x1g --trial-time 30ms --rounds 0 --trials 3 --dataset "$mine" 2>err)
verdict a_session_is_opened $? "$(cat err)"
check asked 0 "SYNCOPATE_TRIAL_NUMBER='1'" "$syncopate" session suggest "$id" --dataset "$mine"
check and_told 0 '' "$syncopate" session complete "$id" 1 --time 12ms,13ms,12ms --dataset "$mine"
check shown 0 '1 are complete' "$syncopate" session show "$id" --dataset "$mine"
check whole 0 'are as they should be' "$syncopate" dataset check --dataset "$mine"
check a_ranker_is_kept_there 0 '' "$syncopate" train-ranker --dataset "$mine"

# ---- there and back ----
"$syncopate" dataset export --format jsonl --references --dataset "$mine" >first.jsonl 2>err
verdict exported $? "$(cat err)"
check imported_into_a_file 0 '' "$syncopate" dataset import first.jsonl --dataset file.db
check merged_from_a_file 0 '' "$syncopate" dataset merge file.db --dataset "$theirs"
check merged_into_a_file 0 '' "$syncopate" dataset merge "$theirs" --dataset again.db
for d in file.db "$theirs" again.db; do
    "$syncopate" dataset export --format jsonl --references --dataset "$d" 2>err | sed 's/"trial":[0-9]*,//'
done >all
n=$(($(wc -l <all) / 3))
[ $n -gt 3 ] && cmp -s <(head -n $n all) <(tail -n $n all) && cmp -s <(head -n $n all) <(sed -n "$((n + 1)),$((2 * n))p" all)
verdict every_byte_came_along $? "$(wc -l <all)"
check a_copy_is_postgresqls 2 'pg_dump --format=custom' "$syncopate" dataset backup copy.db --dataset "$mine"

# ---- users with the rights of docs/operations.md ----
users() { "$postgres_programs/psql" -X -q -v ON_ERROR_STOP=1 "$1" "${@:2}"; }
tuning="${postgres_url/\/postgres?/\/tuning?}"
as() { echo "${tuning/user=postgres/user=$1}"; }
for user in owner runner reader; do users "$postgres_url" -c "create role $user login"; done
users "$postgres_url" -c 'create database tuning owner owner'
check the_owner_makes_the_tables 0 '' "$syncopate" dataset merge file.db --dataset "$(as owner)"
sed -n '/^```sql$/,/^```$/{/^```/!p}' "$root/docs/operations.md" >grants.sql
check the_pages_rights_are_given 0 '' users "$(as owner)" -f grants.sql
check a_reader_reads 0 'mlp-small' "$syncopate" dataset query --dataset "$(as reader)"
check and_checks 0 'are as they should be' "$syncopate" dataset check --dataset "$(as reader)"
check and_does_not_write 1 'this user may not do that' "$syncopate" session suggest "$id" --dataset "$(as reader)"
of_runner=$("$syncopate" session open mlp-small lab-4x1g --trial-time 30ms --rounds 0 --trials 3 --dataset "$(as runner)" 2>err)
verdict a_runner_opens_a_session $? "$(cat err)"
check asks 0 "SYNCOPATE_TRIAL_NUMBER='1'" "$syncopate" session suggest "$of_runner" --dataset "$(as runner)"
check tells 0 '' "$syncopate" session complete "$of_runner" 1 --time 12ms,13ms,12ms --dataset "$(as runner)"
check merges 0 '' "$syncopate" dataset merge file.db --dataset "$(as runner)"
check and_makes_no_tables 1 'permission denied for schema public' users "$(as runner)" -c 'create table mine (a int)'

# ---- a copy that pg_dump makes, brought back elsewhere ----
"$postgres_programs/pg_dump" --format=custom --file=tuning.dump "$(as owner)"
users "$postgres_url" -c 'create database restored owner owner'
restored=$(as owner); restored=${restored/tuning/restored}
check brought_back 0 '' "$postgres_programs/pg_restore" --no-owner --dbname "$restored" tuning.dump
check and_whole 0 'are as they should be' "$syncopate" dataset check --dataset "$restored"
"$syncopate" dataset export --format jsonl --references --dataset "$restored" >restored.jsonl 2>err
"$syncopate" dataset export --format jsonl --references --dataset "$(as reader)" >tuning.jsonl 2>err
cmp -s restored.jsonl tuning.jsonl
verdict the_same_rows $? "$(wc -l <tuning.jsonl)"

# ---- a service ----
"$syncopate" serve --open --listen 127.0.0.1:0 --dataset "$mine" --no-access-log >serve.out 2>serve.err &
service=$!
for _ in $(seq 200); do [ -s serve.out ] && break; sleep 0.05; done
url=$(awk '{ print $NF }' serve.out)
check a_service_answers_from_it 0 'mlp-small' "$syncopate" dataset query --server "$url"
check a_command_writes_beside_it 0 "SYNCOPATE_TRIAL_NUMBER='2'" "$syncopate" session suggest "$id" --dataset "$mine"
check readers_as_many_as_like 0 'mlp-small' "$syncopate" dataset query --dataset "$mine"
postgres_stop
check away_is_one_line 1 'PostgreSQL cannot be reached' "$syncopate" dataset query --dataset "$mine"
postgres_start "$dir/server" >why
for _ in 1 2 3; do "$syncopate" dataset query --server "$url" >out 2>err && break; done
grep -q mlp-small out
verdict a_service_goes_on_after_a_restart $? "$(cat err serve.err)"
kill $service && wait $service
verdict and_stops $? "$(cat serve.err)"
check all_is_there_after_the_crash 0 'are as they should be' "$syncopate" dataset check --dataset "$mine"
check a_password_is_not_repeated 2 '~/.pgpass' "$syncopate" dataset query --dataset 'postgresql://me:geheim@localhost/x'
! grep -rq geheim out err
verdict nowhere $?
