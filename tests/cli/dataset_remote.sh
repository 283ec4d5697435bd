#!/bin/bash
# Datasets and services brought together: by merge, export and import; who may, what is refused, and that what went there
# comes back to the byte. Needs OUT and xz; prints ok, not ok and skip lines (tests/README.md).
# Once: client and handlers have unit tests, which sanitizers see; foreign.sh merges and imports over HTTP under them.
# Plan: 30
set -u
cd "$(dirname "$0")/../.."
source tests/cli/check.bash
source tests/cli/service.bash
corpus=$PWD/examples/corpus/lab.db.xz
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
if ! command -v xz >/dev/null; then
    echo "skip dataset_remote: needs xz"
    exit 0
fi
dir=$(mktemp -d)
finish() {
    [ -z "$service" ] || kill -9 "$service" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT
cd "$dir" || exit 2
dataset() { timeout 120 "$syncopate" dataset "$@"; }
export_of() { dataset export --references --iterations --dataset "$1" 2>/dev/null; }

xz -dc "$corpus" >corpus.db
dataset merge corpus.db --dataset here.db 2>/dev/null
export_of here.db >here.jsonl
trials=$(grep -c syncopate.record here.jsonl)

# ---- there and back ----
start 127.0.0.1:0 --open
check a_dataset_goes_to_a_service 0 "$trials trials added" dataset merge here.db --server "$url"
check twice_adds_nothing 0 ' 0 trials added' dataset merge here.db --server "$url"
check it_comes_back 0 "$trials trials added" dataset merge "$url" --dataset back.db
check that_twice_adds_nothing 0 '0 descriptions, 0 sessions and 0 trials added' dataset merge --server "$url" --dataset back.db
export_of back.db | cmp -s - here.jsonl
verdict to_the_byte $?
check what_came_back_is_whole 0 'as they should be' dataset check --dataset back.db
[ -z "$(ls back.db.from* 2>/dev/null)" ]
verdict nothing_is_left_beside_it $? "$(ls)"
"$syncopate" serve --listen 127.0.0.1:0 --open --dataset late.db >late.out 2>late.err &
locker=$!
until_true 10 test -s late.out
dataset merge "$url" --dataset late.db >out 2>err
[ $? = 1 ] && grep -q 'what was fetched is kept in late.db.from-' err && [ -n "$(ls late.db.from-*)" ]
verdict what_was_fetched_stays_while_another_process_has_the_dataset $? "$(cat err; ls)"
kill $locker
wait $locker
check and_is_merged_when_it_has_gone 0 "$trials trials added" dataset merge "$url" --dataset late.db
[ -z "$(ls late.db.from* 2>/dev/null)" ]
verdict and_then_nothing_is_left $? "$(ls)"
dataset export --references --iterations --server "$url" --out there.jsonl 2>/dev/null
cmp -s <(sort there.jsonl) <(sort here.jsonl)
verdict an_export_there_has_what_one_here_has $?
check it_is_imported_here 0 "$trials trials added" dataset import there.jsonl --dataset again.db
cmp -s <(export_of again.db | grep syncopate.record) <(grep syncopate.record here.jsonl)
verdict as_it_was $?
stop
rm -f d.db*

# ---- who may, and what is refused ----
(umask 077 && for role in read submit admin; do
    "$syncopate" serve token create $role --role $role --dataset d.db >$role
done)
start 127.0.0.1:0
check an_import_needs_an_administrator 4 '403 forbidden' dataset import there.jsonl --server "$url" --token-file submit
check who_is_one_imports 0 "$trials trials added" dataset import there.jsonl --server "$url" --token-file admin
check a_reader_merges 0 "$trials trials added" dataset merge "$url" --token-file read --dataset reader.db
check a_stranger_does_not 4 '401 unauthorized' dataset merge "$url" --dataset stranger.db
[ ! -e stranger.db ]
verdict and_gets_no_dataset $?
echo '{"schema":"syncopate.record/9"}' >odd.jsonl
check a_bad_line_is_named 2 '/lines/0: this program imports no' dataset import odd.jsonl --server "$url" --token-file admin
echo '{"schema":"syncopate.calibration/1","session":"s","after_trial":0,"content":{}}' >calibrations.jsonl
check a_calibration_is_skipped_here 0 '1 calibrations skipped' dataset import calibrations.jsonl --dataset skips.db
check a_calibration_is_skipped_there 0 '1 calibrations skipped' \
    dataset import calibrations.jsonl --server "$url" --token-file admin
check two_services_are_one_too_many 2 'two services are named' dataset merge "$url" --server http://127.0.0.1:1
SYNCOPATE_SERVER=http://127.0.0.1:1 check a_service_that_is_typed_beats_the_variable 0 "merging from $url" \
    dataset merge "$url" --token-file read
check a_dataset_here_is_not_there 2 'drop one of the two' dataset merge here.db --server "$url" --dataset d.db
check nothing_to_merge 2 usage: dataset merge

# ---- where the two disagree ----
uid=$(grep -m 1 syncopate.record here.jsonl | sed 's/.*"uid":"\([^"]*\)".*/\1/')
sed "/\"uid\":\"$uid\"/s/\"median_us\":[0-9.]*/\"median_us\":1/;/\"uid\":\"$uid\"/s/\"low_us\":[0-9.]*,\"high_us\":[0-9.]*,//;
     /\"uid\":\"$uid\"/s/\"iterations_us\":\[[^]]*\]/\"iterations_us\":[]/" \
    here.jsonl | dataset import - --dataset odd.db 2>/dev/null
before=$(export_of odd.db | sha256sum)
dataset merge "$url" --token-file read --dataset odd.db >out 2>err
[ $? = 1 ] && grep -q "^uid $uid: here .*median 1.0), there " out && [ "$(wc -l <err)" = 1 ]
verdict a_conflict_is_told $? "$(cat out err)"
[ "$(export_of odd.db | sha256sum)" = "$before" ]
verdict and_changes_nothing $?
check also_the_other_way_round 1 "uid $uid is here with another median_us" dataset merge odd.db --server "$url" --token-file admin
stop
check who_is_away_is_away 4 'tried 4 times' dataset merge "$url" --dataset away.db
[ -z "$(ls away.db* 2>/dev/null)" ]
verdict and_leaves_nothing $? "$(ls)"
