#!/bin/bash
# Sessions that came from elsewhere run nothing of their own: by import, by merge, over HTTP, and in a file of before
# their origin was kept. What is typed again takes the place of what they say. Nothing that they are called leaves the
# folder. Needs OUT, sqlite3 and python3; prints ok, not ok and skip lines (tests/README.md).
# Plan: 40
set -u
cd "$(dirname "$0")/../.."
source tests/cli/service.bash
source tests/cli/job.bash
finish() {
    [ -z "$service" ] || kill -9 "$service" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT
if ! command -v sqlite3 >/dev/null; then
    echo "skip foreign: needs sqlite3"
    exit 0
fi
tune() { timeout 100 "$syncopate" tune "$@"; }
column() { sqlite3 "$1" "SELECT $2 FROM sessions WHERE id = '$id'"; }

# refused NAME WORDS COMMAND...: status 2, the last line of standard error and no other says WORDS, nothing on standard
# output, and nothing ran.
refused() {
    local name=$1 words=$2 got
    shift 2
    "$@" >out 2>err </dev/null
    got=$?
    [ $got = 2 ] && tail -n 1 err | grep -qF -- "$words" && [ ! -s out ] && [ ! -e pwned ]
    verdict "$name" $? "status $got, $(echo *) $(head -c 400 err)"
}

# ---- a session, and what somebody makes of it ----
tune mlp-small lab-4x1g --command "$train json" --trials 2 --rounds 0 --trial-time 40ms --dataset own.db >out 2>err
id=$(session_of err | tr -d ';')
"$syncopate" dataset export --references --iterations --dataset own.db --session "$id" --out own.jsonl 2>/dev/null
spoil() { # PYTHON over the session s: spoiled.jsonl
    python3 - "$1" own.jsonl >spoiled.jsonl <<'PYTHON'
import json, sys
for line in open(sys.argv[2]):
    s = json.loads(line)
    if s["schema"] == "syncopate.session/1":
        s.update(state="running", budget={"trials": 4, "time_us": 0, "gap": 0})
        s.pop("ended", None)
        s.pop("reason", None)
        exec(sys.argv[1])
        line = json.dumps(s) + "\n"
    sys.stdout.write(line)
PYTHON
}
import_into() { rm -f "$1" && "$syncopate" dataset import spoiled.jsonl --dataset "$1" 2>/dev/null; }

check its_own_is_resumed_as_it_was 0 '"trials":2' "$syncopate" tune --resume "$id" --dataset own.db --json
[ -z "$(column own.db origin)" ]
verdict and_has_no_origin $? "$(column own.db origin)"

spoil 's["options"]["job"] = {"command": "touch pwned; \x1b]0;owned\x07\n" + s["options"]["job"]["command"]}'
import_into theirs.db
[ "$(column theirs.db origin)" = "import of spoiled.jsonl" ]
verdict what_is_imported_says_where_from $? "$(column theirs.db origin)"
refused what_it_would_run_is_not_run 'came from elsewhere: give --command again' tune --resume "$id" --dataset theirs.db
grep -qF -- '--command touch pwned; \x1b]0;owned\x07\x0a' err
verdict but_shown $? "$(cat err)"
check and_where_it_came_from 0 'not opened in this dataset: import of spoiled.jsonl' "$syncopate" sessions show "$id" --dataset theirs.db
tune --resume "$id" --dataset theirs.db --command "$train json && touch $dir/typed" --json >out 2>err
[ $? = 0 ] && [ -e typed ] && [ ! -e pwned ] && grep -q '"trials":4' out
verdict what_is_typed_is_run $? "$(ls; cat err)"
[ -z "$(column theirs.db origin)" ] && column theirs.db options | grep -qF "touch $dir/typed" &&
    ! column theirs.db options | grep -q pwned
verdict and_is_what_the_session_says_from_then_on $? "$(column theirs.db options)"
check which_is_its_own_now 0 '"trials":4' "$syncopate" tune --resume "$id" --dataset theirs.db --json

# ---- everything that reaches a program, a shell or a path ----
spoil 's["options"]["job"]["logs"] = "pwned"'
import_into logs.db
refused a_folder_to_write_into 'give --logs again' tune --resume "$id" --dataset logs.db --command "$train json"
refused and_the_command 'give --command and --logs again' tune --resume "$id" --dataset logs.db
spoil 's["options"].pop("job"); s["options"].update(runner="local", launch={"worker": "./evil"})'
import_into worker.db
printf '#!/bin/sh\ntouch %s/pwned\n' "$dir" >evil
chmod +x evil
refused a_worker_program 'give --worker again' tune --resume "$id" --dataset worker.db
refused a_command_is_no_worker 'are run by local' tune --resume "$id" --dataset worker.db --command true
spoil 's["options"].pop("job"); s["options"].update(runner="mpirun", hosts="pwned", launch={"launch_options": "--x",
    "pass": "HOME", "partition": "p", "account": "a"})'
import_into launch.db
refused words_for_launchers 'give --runner, --hosts, --partition, --account, --launch-options and --pass again' \
    tune --resume "$id" --dataset launch.db
# A stand-in for mpirun and srun: whatever starts it has started a program.
mkdir fake
printf '#!/bin/sh\ntouch %s/pwned\nexit 1\n' "$dir" | tee fake/mpirun fake/srun >fake/salloc
chmod +x fake/*
for runner in mpirun slurm; do
    spoil "s['options'].pop('job'); s['options']['runner'] = '$runner'"
    import_into $runner.db
    refused "$runner"_itself 'give --runner and --hosts again' env PATH="$dir/fake:$PATH" \
        timeout 100 "$syncopate" tune --resume "$id" --dataset $runner.db
    grep -qF -- "--runner $runner" err && grep -qF -- '--hosts (the names of its cluster'"'"'s nodes)' err
    verdict "$runner"_is_shown $? "$(cat err)"
    refused "$runner"_without_hosts 'give --hosts again' env PATH="$dir/fake:$PATH" \
        timeout 100 "$syncopate" tune --resume "$id" --dataset $runner.db --runner $runner
    refused not_"$runner"_but_another "are run by $runner" tune --resume "$id" --dataset $runner.db --runner local
done
seq -f '127.0.0.%g' 4 >hosts.txt
env PATH="$dir/fake:$PATH" timeout 100 "$syncopate" tune --resume "$id" --dataset mpirun.db --runner mpirun \
    --hosts hosts.txt --worker /bin/true >out 2>err </dev/null
! grep -q 'came from elsewhere' err && [ -e pwned ]
verdict what_is_typed_starts_it $? "$(cat err)"
rm -f pwned
spoil 's["options"].pop("job"); s["options"]["runner"] = "command"'
import_into none.db
refused a_command_that_is_not_said 'give --command again' tune --resume "$id" --dataset none.db
spoil 's["options"]["job"].pop("command")'
import_into none.db
refused or_was_left_out 'give --command again' tune --resume "$id" --dataset none.db

# ---- the other ways to come here ----
spoil 's["options"]["job"]["command"] = "touch pwned"'
import_into theirs.db
sqlite3 theirs.db 'UPDATE sessions SET origin = NULL' # whatever their file says
rm -f merged.db
"$syncopate" dataset merge theirs.db --dataset merged.db 2>/dev/null
refused a_merged_one 'give --command again' tune --resume "$id" --dataset merged.db
cp theirs.db older.db # as schema version 4 would have it
sqlite3 older.db 'DROP TABLE holdings; DROP TABLE audiences; DROP TABLE usage; DROP TABLE pruned_events;
    ALTER TABLE sessions DROP COLUMN origin; CREATE TABLE calibrations (session TEXT); PRAGMA user_version = 4'
refused one_of_before_origins_were_kept 'give --command again' tune --resume "$id" --dataset older.db
grep -q 'before version 5' err
verdict which_says_so $? "$(cat err)"
spoil 's.update(state="done", ended=s["started"])
s["options"]["job"]["command"] = "touch pwned"'
start 127.0.0.1:0 --open
"$syncopate" dataset import spoiled.jsonl --server "$url" 2>err
verdict it_goes_to_a_service $? "$(cat err)"
rm -f pulled.db
"$syncopate" dataset merge "$url" --dataset pulled.db 2>err
refused and_comes_from_one 'give --command again' tune --resume "$id" --dataset pulled.db
[ "$(column pulled.db origin)" = "merge of $url" ]
verdict whose_url_it_says $? "$(column pulled.db origin)"
stop
refused what_came_over_http 'give --command again' tune --resume "$id" --dataset d.db
[ "$(column d.db origin)" = records:import ]
verdict says_so $? "$(column d.db origin)"

# ---- a service that starts ----
# Without a launcher it says so of the sessions that it would go on with.
cp own.db d.db
sqlite3 d.db "UPDATE sessions SET options = json_set(options, '\$.served', json('true')), state = 'running', ended = NULL,
    budget = '{\"trials\":4,\"time_us\":0,\"gap\":0}'"
goes_on() { # ORIGIN, in SQL
    sqlite3 d.db "UPDATE sessions SET origin = $1"
    : >serve.err
    start 127.0.0.1:0 --open
    stop
    grep -q "session $id does not go on: no launcher" serve.err
}
goes_on NULL
verdict a_service_goes_on_with_its_own $? "$(cat serve.err)"
goes_on "'before version 5'"
verdict and_with_those_of_before $? "$(cat serve.err)"
! goes_on "'import of x'"
verdict and_not_with_others $? "$(cat serve.err)"

# ---- a name that is a path ----
cp own.db path.db
sqlite3 path.db "PRAGMA foreign_keys = OFF; UPDATE sessions SET id = '../pwned'; UPDATE trials SET session = '../pwned'"
mkdir inside
cd inside || exit 2
refused no_report_leaves_the_folder 'is no name of a file; give --out' "$syncopate" report ../pwned --dataset ../path.db
check but_where_it_is_told 0 'written to here.html' "$syncopate" report ../pwned --dataset ../path.db --out here.html
[ ! -e ../pwned.html ]
verdict and_nothing_is_outside $? "$(ls ..)"
sqlite3 ../path.db "UPDATE sessions SET mode = 'ask', state = 'running', ended = NULL, budget = '{\"trials\":9}'"
refused no_folder_of_trials_leaves_it_either 'is no name of a folder; give --out' \
    "$syncopate" session suggest ../pwned --dataset ../path.db
cd ..
