#!/bin/bash
# Fuzz each TARGET for SECONDS: OUT=build/fuzz tests/fuzz/run.sh SECONDS TARGET...
#
# Inputs start from tests/fuzz/corpus/TARGET; what is found new stays in $OUT/corpus, what crashes in $OUT/crashes. A crash
# that was repaired belongs in the corpus, where `make test` replays it for ever.
set -u
seconds=$1
shift
out=${OUT:-build/fuzz}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}
bad=0
mkdir -p "$out/crashes"
for target in "$@"; do
    name=$(basename "$target")
    mkdir -p "$out/corpus/$name"
    log=$out/$name.log
    if "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="$out/crashes/$name-" "$out/corpus/$name" "tests/fuzz/corpus/$name" </dev/null >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        printf '  %-24s %10s inputs, nothing found\n' "$name" "$runs"
    else
        bad=$((bad + 1))
        printf '  %-24s FAILED; the input is in %s\n' "$name" "$out/crashes"
        grep -v '^#[0-9]' "$log" | tail -n 60 | sed 's/^/    | /'
    fi
done
exit $((bad > 0))
