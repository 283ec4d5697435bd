#!/bin/bash
# House rules that the compiler does not check; `make lint` calls it in the project's root with
#
#   FOLDERS="base strategy ..."  DEPS="base: strategy:base simulator:strategy,base ..."  CC=cc
#
# Each finding is a line "FILE:LINE: what is wrong; what to do". Exit status 1 when there is one. tests/lint/test_lint.sh
# breaks every rule once and expects the finding.
set -u
: "${FOLDERS:?}" "${DEPS?}"
CC=${CC:-cc}
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
found=$work/found

present=()
for folder in $FOLDERS; do
    [ -z "$(find "$folder" -type f 2>/dev/null | head -n 1)" ] || present+=("$folder")
done
sources() { # the C files of the folders in "$@"
    [ $# = 0 ] || find "$@" \( -name '*.c' -o -name '*.h' \) -type f | sort
}
mapfile -t ours < <(sources "${present[@]}")
mapfile -t all < <(printf '%s\n' "${ours[@]}"; [ ! -d tests ] || sources tests)
mapfile -t all < <(printf '%s\n' "${all[@]}" | grep .)

# A folder includes itself and what DEPS allows it, by names that start at the root.
include_law() {
    grep -nE '^[[:space:]]*#[[:space:]]*include' "${ours[@]}" /dev/null | awk -v deps="$DEPS" -v folders="$FOLDERS" '
        function own(path) { sub(/[^\/]*$/, "", path); return path }
        BEGIN {
            n = split(deps, rows, " ")
            for (i = 1; i <= n; i++) { split(rows[i], r, ":"); law[r[1]] = r[2]; allowed[r[1]] = "," r[1] "," r[2] "," }
            n = split(folders, list, " ")
            for (i = 1; i <= n; i++) is_folder[list[i]] = 1
            home["sqlite3.h"] = home["libpq-fe.h"] = "dataset/"; home["mpi.h"] = "trial-runner/worker/"
            home["nccl.h"] = home["cuda_runtime.h"] = home["cuda_runtime_api.h"] = "trial-runner/worker/nccl/"
            home["microhttpd.h"] = home["gnutls/abstract.h"] = "service/http/"; home["curl/curl.h"] = "cli/client/"; home["lapacke.h"] = home["nlopt.h"] = "tuner/"
            home["xgboost/c_api.h"] = "simulator/learned/"; home["yaml.h"] = "interop/import/"
        }
        {
            match($0, /^[^:]*:[0-9]+:/); place = substr($0, 1, RLENGTH); folder = place; sub(/\/.*/, "", folder)
            if (match($0, /"[^"]*"/)) {
                name = substr($0, RSTART + 1, RLENGTH - 2); to = name; sub(/\/.*/, "", to)
                if (name !~ /\//)
                    print place " includes \"" name "\"; write it from the root: \"" folder "/...\""
                else if (is_folder[to] && !index(allowed[folder], "," to ","))
                    print place " " folder "/ must not include " to "/; it may use " \
                        (law[folder] == "" ? "nothing of ours" : law[folder]) ": move the code, or pass the value in"
                else if (to == "tests")
                    print place " the program must not include tests/"
                else if (name ~ /_internal\.h$/ && own(name) != own(place))
                    print place " includes the private header " name "; use the public one of " own(name)
            } else if (match($0, /<[^>]*>/)) {
                name = substr($0, RSTART + 1, RLENGTH - 2)
                if (name in home && index(place, home[name]) != 1)
                    print place " <" name "> belongs in " home[name] " only; call what is there"
            }
        }'
}

# Inner folders have an order too, whatever it is: none may use, by whatever way, what uses it.
folder_circles() {
    grep -oE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]*"' "${ours[@]}" /dev/null | awk -F '[:"]' '
        function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
        function room(path) { sub(/\/.*/, "", path); return path }
        room($1) == room($3) && folder($1) != folder($3) { print folder($1), folder($3) }' | sort -u |
        tsort 2>&1 >"$work/sorted" | sed -nE '/loop:$/!s|^tsort: ||p' | paste -s -d ' ' |
        sed -nE 's|.+|&: these folders use each other in a circle; move what they share below them|p'
}

source_circles() {
    python3 "$(dirname "$0")/circles.py" "${present[@]}"
}

compiles_alone() {
    local words
    # shellcheck disable=SC2086
    words=$(printf '#include "%s"\n' "$1" | $CC -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -I. $flags -fsyntax-only -x c - 2>&1) ||
        echo "$1:1: does not compile alone: $(grep -m1 -E 'error|Error' <<<"$words"); include what it uses"
}

# The headers of the NCCL worker are left out where CUDA or NCCL is not.
headers_compile_alone() {
    local cuda=${CUDA_HOME:-/usr/local/cuda}/include nccl without='^$'
    nccl=${NCCL_HOME:-${CUDA_HOME:-/usr/local/cuda}}/include
    [ -e "$cuda/cuda_runtime_api.h" ] && [ -e "$nccl/nccl.h" ] || without='/(worker|support)/nccl/'
    export CC flags
    export -f compiles_alone
    flags="$(mpicc --showme:compile 2>/dev/null) -isystem $cuda -isystem $nccl"
    printf '%s\n' "${all[@]}" | grep '\.h$' | grep -vE "$without" | xargs -P "$(nproc)" -I {} bash -c 'compiles_alone {}'
}

# rule PATTERN MESSAGE: every line of every C file that has PATTERN.
rule() {
    grep -nE "$1" "${all[@]}" /dev/null | sed -E "s|^([^:]*:[0-9]+:).*|\1 $2|"
}

# A status is checked in one way: "if (st)" and "if (!st)".
status_checks() {
    grep -nE '[!=]= ?ST_OK\b' "${ours[@]}" /dev/null |
        sed -E 's|^([^:]*:[0-9]+:).*|\1 compares a status with ST_OK; write "st" or "!st"|'
}

# What others wrote goes to a terminal by text_print alone (base/text.h). The listed files print their own words.
raw_prints() {
    local file
    for file in "${ours[@]}"; do
        case $file in
        cli/options.c | cli/manual.c | cli/completion.c | cli/main.c) continue ;;
        cli/*.c) ;;
        *) continue ;;
        esac
        grep -nE '(^|[^_[:alnum:]])(printf|puts|putchar|vprintf|perror) *\(|fprintf\((stdout|stderr)|fputs\(.*, *(stdout|stderr)\)' \
            "$file" /dev/null | sed -E 's|^([^:]*:[0-9]+:).*|\1 prints what a terminal may obey; use text_print of base/text.h|'
    done
}

# Who adds trials says who sees what they are about (dataset/audiences_internal.h). These do, once each.
uncounted_trials() {
    local file counted
    for file in "${ours[@]}"; do
        case $file in
        dataset/trials.c | dataset/ingest.c | dataset/merge.c) counted=1 ;;
        *) counted=0 ;;
        esac
        grep -nE 'INTO (main\.)?trials\b' "$file" /dev/null | tail -n +$((counted + 1)) |
            sed -E 's|^([^:]*:[0-9]+:).*|\1 adds trials; whoever does must call audiences_add, and be listed here|'
    done
}

first_lines() {
    local file
    for file in "${all[@]}"; do
        case $(head -c 2 "$file") in
        '/*' | '//') ;;
        *) echo "$file:1: does not start with a comment; say what the file does, the idea, its source and cost" ;;
        esac
    done
}

# So that a check which crashes is missed (tests/run.sh).
plans() {
    local script
    for script in tests/*/*.sh; do
        case $script in tests/support/* | tests/fuzz/* | tests/load/* | tests/lint/lint.sh) continue ;; esac
        [ ! -x "$script" ] || grep -qE '^# Plan: [0-9]+$' "$script" ||
            echo "$script:1: does not say how many results it has; add a line \"# Plan: N\" to its head"
    done
}

readmes() {
    local folder
    for folder in "${present[@]}" tests docs examples; do
        [ ! -d "$folder" ] || [ -z "$(find "$folder" -type f | head -n 1)" ] || [ -s "$folder/README.md" ] ||
            echo "$folder/README.md:1: is missing; say what the folder is for and its files in reading order"
    done
}

{
    if [ ${#all[@]} -gt 0 ]; then
        include_law
        folder_circles
        source_circles
        headers_compile_alone
        rule $'\t' 'a tab; indent with 4 spaces'
        rule '[ ]+$' 'blanks at the end of the line; remove them'
        rule $'\r' 'a carriage return; save with plain line ends'
        rule '\b(TO''DO|FIX''ME|XXX)\b' 'a note to do something later; do it or leave it out'
        LC_ALL=C.UTF-8 rule '^.{121,}$' 'is longer than 120 columns; run make format'
        first_lines
        status_checks
        raw_prints
        uncounted_trials
    fi
    readmes
    plans
} >"$found"
[ -s "$found" ] || exit 0
sort -u "$found"
echo "lint: $(sort -u "$found" | wc -l) findings" >&2
exit 1
