#!/bin/bash
# SIGKILL the tuner at random moments (KILLS, 5) and resume: no completed trial is lost, none is run again, and no process,
# namespace, interface or file stays behind. Runs in the lab; without root on the loopback.
# Once: it is the time of several processes; command.sh resumes a session that was killed under sanitizers.
# Alone: real trials are timed.
# Plan: 9
set -u
cd "$(dirname "$0")/../.."
syncopate=$PWD/${OUT:-build/release}/bin/syncopate
tiny=$PWD/tests/cli/mlp-tiny.json clusters=$PWD/examples/clusters
kills=${KILLS:-5}
if ! command -v mpirun >/dev/null; then
    echo "skip kill: needs mpirun"
    exit 0
fi
runner=lab
[ "$(id -u)" = 0 ] || runner=local
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export TMPDIR=$dir/tmp SYNCOPATE_KILL_TEST=$dir
mkdir "$TMPDIR"
db=$dir/d.db
RANDOM=${SYNCOPATE_TEST_SEED:-20261121}
echo "# seed ${SYNCOPATE_TEST_SEED:-20261121}"

complete() { # uid strategy number round of every completed trial, oldest first
    "$syncopate" dataset export --dataset "$db" --state complete 2>/dev/null |
        python3 -c 'import json, sys
for line in sys.stdin:
    r = json.loads(line)
    print(r["uid"], r["strategy"]["id"] if isinstance(r["strategy"], dict) else r["strategy"], r["number"], r["round"])'
}
interfaces() {
    ip -o link | awk '{print $2}'
    ip netns list
}
# Processes that carry our mark in their environment.
ours() {
    grep -lsF "SYNCOPATE_KILL_TEST=$dir" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | while read -r pid; do
        case $pid in $$ | $BASHPID) continue ;; esac
        exe=$(readlink "/proc/$pid/exe") || continue
        case $exe in */syncopate* | */mpirun | */orterun | */orted) echo "$pid:$exe" ;; esac
    done
}
session() {
    [ -e "$db" ] && "$syncopate" dataset sessions --dataset "$db" 2>/dev/null | awk 'NR == 2 { print $1 }'
}
tune() {
    local id
    id=$(session)
    if [ -n "$id" ]; then
        set -- --resume "$id"
    else
        set -- "$tiny" "$clusters/lab-4x1g.json" --trials 10 --trial-time 40ms
    fi
    exec "$syncopate" tune "$@" --runner $runner --dataset "$db" --out "$dir/best.json" >"$dir/out" 2>"$dir/err"
}

before=$(interfaces)
: >"$dir/kept"
lost=0 left=
for i in $(seq "$kills"); do
    (tune) &
    pid=$!
    sleep "$((RANDOM % 4)).$((RANDOM % 10))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    for wait in 1 2 3 4 5 6 7 8 9 10; do
        left=$(ours)
        [ -z "$left" ] && break
        sleep 0.3
    done
    [ -n "$left" ] && break
    complete >"$dir/now"
    while read -r row; do
        grep -qxF "$row" "$dir/now" || lost=$((lost + 1))
    done <"$dir/kept"
    cp "$dir/now" "$dir/kept"
done
echo "# $(wc -l <"$dir/kept") trials were complete at the last kill"
[ -z "$left" ] && echo "ok no_process_stays_behind" || echo "not ok no_process_stays_behind: $left"
[ $lost = 0 ] && echo "ok no_completed_trial_is_lost" || echo "not ok no_completed_trial_is_lost: $lost"
[ "$(interfaces)" = "$before" ] && echo "ok no_namespace_or_interface_stays_behind" ||
    echo "not ok no_namespace_or_interface_stays_behind: $(interfaces | diff <(echo "$before") - | head -3)"
stray=$(find "$TMPDIR" -mindepth 1 | head -3)
[ -z "$stray" ] && echo "ok no_file_stays_behind" || echo "not ok no_file_stays_behind: $stray"

(tune)
status=$?
[ $status = 0 ] && echo "ok the_session_ends_after_$kills kills" | tr ' ' '_' | sed 's/^ok_/ok /' ||
    echo "not ok the_session_ends: exit status $status: $(head -c 300 "$dir/err")"
complete >"$dir/now"
while read -r row; do
    grep -qxF "$row" "$dir/now" || lost=$((lost + 1))
done <"$dir/kept"
[ $lost = 0 ] && echo "ok the_end_holds_all_that_was_completed" || echo "not ok the_end_holds_all_that_was_completed: $lost"
twice=$(awk '{print $2, $4}' "$dir/now" | sort | uniq -d | head -3)
[ -z "$twice" ] && echo "ok no_trial_is_repeated" || echo "not ok no_trial_is_repeated: $twice"
[ -s "$dir/best.json" ] && echo "ok the_answer_is_written" || echo "not ok the_answer_is_written"
[ "$("$syncopate" dataset check --dataset "$db" 2>&1 | grep -c 'as they should be')" = 1 ] && echo "ok the_dataset_is_whole" ||
    echo "not ok the_dataset_is_whole: $("$syncopate" dataset check --dataset "$db" 2>&1 | head -2)"
