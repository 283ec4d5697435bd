#!/bin/bash
# Run test programs and scripts and add up what they say. tests/README.md has the protocol.
#
#   OUT=build/release tests/run.sh PROGRAM...
#
# First come the executable tests/FOLDER/*.sh that say "# Alone: why", since other scripts beside them would change the times
# that they measure: one at a time. Beside them run those that say "# Waits: why", also one at a time, and, at the lowest
# priority, programs that only compute and scripts that say "# Computes: why". Then come the other scripts and programs, up to
# four at a time, of which at most one says "# Apart: why". Last come those that say "# Last: why", with nothing beside them.
# What says "# Once: why" runs for the builds release and coverage alone. Each has a time limit, a closed standard input and a TMPDIR of its own. At the end
# stand the ten slowest, what was not tested and why, what failed, once more, and the line "N passed, N failed, N skipped"; the
# exit status is 1 when anything failed or nothing ran. TEST_TIMEOUT (600) and TEST_SCRIPT_TIMEOUT (900) are seconds, of
# which what runs at the lowest priority, and may have to wait for all others, has three times as many;
# TEST_JOBS (2, or 1 where there is one processor) is how many compute at a time, and half of how many come then;
# TEST_SCRIPTS=0 leaves the scripts out; TEST_TIMES=FILE gets all times.
set -u
cd "$(dirname "$0")/.." || exit 2

# Count the results in FILE of something that ended with STATUS, and of which PLANNED are expected: "passed failed skipped
# missing". Where a script skips something, what is missing was skipped with it.
count() {
    awk -v status="$2" -v planned="$3" '
        BEGIN { promised = planned != "" }
        { sub(/^[ \t]+/, "") }
        /^1\.\.[0-9]+/ && !promised { planned += substr($0, 4) }
        /^skip / || /^(not )?ok .*# SKIP/ { skipped++; next }
        /^ok / { passed++ }
        /^not ok / { failed++ }
        END {
            seen = passed + failed + skipped
            if (promised && skipped && seen < planned) {
                skipped += planned - seen
                seen = planned
            }
            # A crash, a time-out, a bad exit that no test admits to, tests that never ran, that nobody planned, or none at all.
            if (status >= 124 || (status != 0 && failed == 0) || (planned != "" && seen != planned) || seen == 0)
                failed++
            print passed + 0, failed + 0, skipped + 0, (planned != "" ? planned - seen : 0)
        }' "$1"
}

# How many results a script promises in its head; nothing for a program, which says so itself.
plan() {
    [[ $1 != *.sh ]] || sed -n 's/^# Plan: \([0-9][0-9]*\)$/\1/p' "$1" | head -n 1
}

why() {
    case $1 in
    0) ;;
    124 | 137) echo " (killed after its time limit)" ;;
    134) echo " (aborted)" ;;
    139) echo " (segmentation fault)" ;;
    *) echo " (exit status $1)" ;;
    esac
}

# Run one program or script and report it; RESULTS gets the counts.
run_one() {
    local test=$1 limit=${TEST_TIMEOUT:-600} folder name log status counts passed failed skipped missing why
    [[ $test != *.sh ]] || limit=${TEST_SCRIPT_TIMEOUT:-900}
    folder=$(mktemp -d "$WORK/XXXXXX")
    chmod 711 "$WORK" "$folder" # tests that become another user must reach their files
    log=$folder.log
    mkdir "$folder/tmp"
    # The braces keep the shell's own word about a crash out of the report.
    local TIMEFORMAT='%R %U %S'
    { time { TMPDIR=$folder/tmp timeout --kill-after=10 "$limit" "$test" </dev/null >"$log" 2>&1; } 2>/dev/null; } 2>"$folder.time"
    status=$?
    counts=$(count "$log" "$status" "$(plan "$test")")
    read -r passed failed skipped missing <<<"$counts"
    why=$(why "$status")
    [ "$missing" -le 0 ] || why="$why ($missing planned, and no result)"
    [ "$missing" -ge 0 ] || why="$why ($((-missing)) more results than planned)"
    name=${test#"$OUT"/tests/}
    name=${name#tests/}
    {
        flock 9
        awk -v name="$name" '{ printf "%8.1f s, of which %6.1f s computing: %s\n", $1, $2 + $3, name }' "$folder.time" >>"$WORK/times"
        printf '  %-44s %4d passed' "$name" "$passed"
        [ "$failed" = 0 ] || printf ', %d FAILED%s' "$failed" "$why"
        [ "$skipped" = 0 ] || printf ', %d skipped' "$skipped"
        printf '\n'
        if [ "$failed" != 0 ]; then
            sed 's/^/    | /' "$log"
            echo "failed: $name$why" >>"$WORK/failures"
            { grep -A 3 '^[[:space:]]*not ok' "$log" || tail -n 5 "$log"; } | head -n 40 | sed 's/^/    | /' >>"$WORK/failures"
        fi
        if [ "$skipped" != 0 ]; then
            sed -nE "s#^[[:space:]]*(skip |ok .*\# SKIP)#not tested: $name: \1#p" "$log" >"$folder.skips"
            cat "$folder.skips" >>"$WORK/skips"
            [ "$failed" != 0 ] || sed 's/^not tested: [^ ]* /    | /' "$folder.skips"
        fi
        echo "$counts" >>"$WORK/results"
    } 9>"$WORK/lock"
    rm -rf "$folder"
}

if [ "${1-}" = --one ]; then
    run_one "$2"
    exit 0
fi

export OUT=${OUT:-build/release}
# Of each allocation eight frames are noted, and not thirty, which costs tests that allocate most a fifth of their time.
export ASAN_OPTIONS=${ASAN_OPTIONS:-allow_user_segv_handler=0:detect_leaks=1:malloc_context_size=8}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export CMOCKA_MESSAGE_OUTPUT=TAP
WORK=$(mktemp -d "${TMPDIR:-/tmp}/syncopate-tests.XXXXXX") || exit 2
export WORK
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT TERM
: >"$WORK/results"
: >"$WORK/failures"
: >"$WORK/times"
: >"$WORK/skips"

# Where python3 is a script that looks for the right one, as pyenv's is, the search would take longer than most programs.
python=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))' 2>/dev/null)
[ -z "$python" ] || [ "$python/python3" -ef "$(command -v python3)" ] || PATH=$python:$PATH
processors=$(nproc)
jobs=${TEST_JOBS:-$((processors < 2 ? processors : 2))}

# at_once N TEST...: up to N of them at a time.
at_once() {
    [ $# -gt 1 ] || return 0
    printf '%s\0' "${@:2}" | xargs -0 -n 1 -P "$1" ${politely-} tests/run.sh --one
}

computing=() waiting=()
for program; do
    case ${program#"$OUT"/tests/} in
    property/* | fuzz/* | *_torture | unit/base/* | unit/strategy/* | unit/interop/* | unit/featurize/* | unit/simulator/*) computing+=("$program") ;;
    *) waiting+=("$program") ;;
    esac
done
alone=() waits=() apart=() together=() last=()
for script in tests/*/*.sh; do
    case $script in
    tests/support/* | tests/fuzz/* | tests/load/* | tests/lint/lint.sh) continue ;;
    esac
    [ -x "$script" ] && [ "${TEST_SCRIPTS:-1}" != 0 ] || continue
    [[ ${OUT##*/} = @(release|coverage) ]] || ! grep -q '^# Once: ' "$script" || continue
    case $(grep -m 1 -oE '^# (Alone|Waits|Computes|Apart|Last): ' "$script") in
    *Alone*) alone+=("$script") ;;
    *Waits*) waits+=("$script") ;;
    *Computes*) computing+=("$script") ;;
    *Apart*) apart+=("$script") ;;
    *Last*) last+=("$script") ;;
    *) if grep -q '^# Once: ' "$script"; then together=("$script" "${together[@]}"); else together+=("$script"); fi ;; # the long ones first
    esac
done
TEST_TIMEOUT=$((3 * ${TEST_TIMEOUT:-600})) TEST_SCRIPT_TIMEOUT=$((3 * ${TEST_SCRIPT_TIMEOUT:-900})) \
    politely=$(chrt --idle 0 true 2>/dev/null && echo chrt --idle 0) at_once "$jobs" "${computing[@]}" &
at_once 1 "${waits[@]}" &
waited=$!
at_once 1 "${alone[@]}"
wait "$waited"
at_once 1 "${apart[@]}" &
at_once $((2 * jobs - 1)) "${together[@]}" "${waiting[@]}"
wait
at_once 1 "${last[@]}"

[ -z "${TEST_TIMES-}" ] || cp "$WORK/times" "$TEST_TIMES"
echo "the slowest of them:"
sort -rn "$WORK/times" | head -n 10
cat "$WORK/skips"
[ ! -s "$WORK/skips" ] || echo "To test these too: .ci/deps --optional (Debian packages, as root), .ci/nccl, .ci/torch"
cat "$WORK/failures"
awk '{ p += $1; f += $2; s += $3 }
     END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p + s == 0 }' "$WORK/results"
